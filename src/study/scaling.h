#pragma once
/* --scale: a number of a workload, whoever set it, times a factor. */
#include "base/err.h"
#include "conf/opt.h"
#include "workload/workload.h"

/* What "MODEL:text" says to a model: the text, or NULL when it is another model's. Without "MODEL:"
 * in front it is for all. */
const char *scaling_for_model(const char *text, const char *model);
/* ERR_USAGE for the first of the texts ("KEY=FACTOR", "MODEL:KEY=FACTOR") whose key is unknown or
 * no number, or whose factor is none above 0. */
int scaling_check(const struct str_list *texts, struct err *e);
/* Appends the overrides that set the key of "KEY=FACTOR" to what it is in `w`, times the factor: a
 * number, each number of a list, or a time, whose distribution keeps its form. A key with a
 * standard deviation of its own (KEY_stdev) takes it along. Counts and bytes stay whole numbers of
 * at least 1, and what is 0, or below as a sign for "none", stays as it is. `text` passed
 * scaling_check. */
int scaling_apply(const struct workload *w, const char *text, struct str_list *overrides,
		  struct err *e);
/* The same for one key of the table of keys. */
void scaling_key(const struct workload *w, const char *key, double factor,
		 struct str_list *overrides);
