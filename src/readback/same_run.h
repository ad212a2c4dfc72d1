#pragma once
/* Which results are of one run: a copy of a result is no repetition of it. */
#include "readback/record.h"

/* Whether two results are of the same run. By run_id of result.json where both have one; whatever
 * those say, also when they began and ended at the same moments on the same host, or when the
 * waiting times of all steps of all ranks are equal. */
bool record_same_run(const struct run_record *a, const struct run_record *b);
/* Indexes of the first result of each run among r[0..n), on the heap; *count gets how many. */
size_t *records_distinct(const struct run_record *r, size_t n, size_t *count);
