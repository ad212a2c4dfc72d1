#pragma once
/* Which results are of one run: a copy of a result is no repetition of it. By run_id of result.json
 * where both have one; whatever those say, also when they began and ended at the same moments on
 * the same host, or when the waiting times of all steps of all ranks are equal. */
#include "base/map.h"
#include "readback/record.h"

/* Whether a run that was added to `seen` under this number of a group is the run of `r`. */
bool runs_have(const struct texts *seen, const struct run_record *r, size_t group);
void runs_add(struct texts *seen, const struct run_record *r, size_t group);
/* Indexes of the first result of each run among r[0..n), on the heap; *count gets how many. */
size_t *records_distinct(const struct run_record *r, size_t n, size_t *count);
