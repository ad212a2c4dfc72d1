#pragma once
/* The samples that took longest to read. */
#include <stdint.h>

#define SLOW_SAMPLES_KEPT 8

struct slow_sample {
	uint64_t sample;
	int64_t begin_ns, ns; /* CLOCK_MONOTONIC when it began, and how long it took */
};

/* All zeros: none. */
struct slow_samples {
	int64_t least_ns; /* a shorter one is not kept; 0 until all places are taken */
	uint32_t n;
	struct slow_sample kept[SLOW_SAMPLES_KEPT]; /* in no order */
};

/* Keeps it if it is among the longest. Call only with ns > s->least_ns. */
void slow_samples_add(struct slow_samples *s, uint64_t sample, int64_t begin_ns, int64_t ns);
void slow_samples_merge(struct slow_samples *into, const struct slow_samples *from);
