#pragma once
/* Observations of one value of a job, and what most of them say. Zeroed structs are empty; whoever
 * has one frees its array. */
#include <stddef.h>
#include <stdint.h>

struct values {
	double *v;
	size_t n, room;
};

void values_add(struct values *s, double v);
/* Sorts them; 0 of none. */
double values_median(struct values *s);
/* How many lie within 10 % of `v`. */
uint64_t values_near(const struct values *s, double v);
/* For qsort, of doubles. */
int values_compare(const void *x, const void *y);

/* Counts of small numbers: how often each came. */
#define COUNTS_MAX 65536
struct counts {
	uint32_t *of; /* COUNTS_MAX + 1; the last: longer ones */
	uint64_t all;
};

void counts_add(struct counts *c, size_t n);
/* The most frequent number, the least of equals, and how often it came; 0 of none. */
uint32_t counts_mode(const struct counts *c, uint64_t *agree);
