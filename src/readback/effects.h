#pragma once
/* What changes a measure: two groups of runs compared, and the groups that differ in one factor
 * alone. Only runs that count are looked at (readback/groups.h). */
#include "readback/groups.h"

enum effect_measure { EFFECT_WHOLE_AU, EFFECT_WHOLE_RATE };

struct effect {
	double change; /* mean of x minus mean of base: percent points, or samples/s */
	bool differs;
	bool tested; /* Welch's test, at 5 %; there are COMPARE_RUNS_NEEDED runs of both */
	struct welch test;
};

/* Without a test two groups differ if their values (of runs, or of the epochs of single runs) do
 * not overlap and their means are more than 2 % of the larger one apart; of fewer than
 * SPREAD_VALUES values, which show no error, more than 10 %. 1 and 5 points of AU are enough. */
struct effect effect_of(const struct run_group *base, const struct run_group *x,
			enum effect_measure m);

/* What the value of a key is as a number, with the unit that the key may have ("64KiB"). false: it
 * is none. */
bool key_number(const char *key, const char *value, double *out);

/* Groups of one model and number of processes that differ in the value of one key alone. */
struct family {
	const struct run_group **group; /* the first is what the others are compared with; then by
					   value, numbers as numbers */
	size_t groups;
	char *key;              /* of the factor */
	char *rest;             /* the factors that all have, joined by ", " */
	bool base;              /* the first group has no override of the key */
	char *value;            /* the first group's value of the key; "" if it is not known */
	struct str_list unlike; /* "8 (train.epochs differs, too)": groups that are not compared */
};

struct families {
	struct family *v;
	size_t n;
};

/* Those with at least two groups, in the order of the groups. Borrows from `g`. */
void families_find(struct families *f, const struct run_groups *g);
void families_release(struct families *f);
/* The value of the family's key in a group: "8"; what the first group has, without an override. */
const char *family_value(const struct family *f, const struct run_group *x);

/* The first key in which the configurations of two groups differ, other than `key` (NULL: none is
 * allowed); heap, NULL: in no other one. */
char *other_difference(const struct run_groups *g, const struct run_group *a,
		       const struct run_group *b, const char *key);
