#pragma once
/* Bytes over time and sizes of a job, as data of its page: of any number of requests the same
 * amount. */
#include <jansson.h>

#include "trace/profile/profile.h"

#define JOB_BINS 240
#define JOB_MARKS 400 /* epochs, evaluations, checkpoints; further ones are not drawn */

/* {"dt", "series": [{"name", "rate": [bytes/s]}], "marks": [{"kind", "from", "to", "label"}]}; null
 * when the log has no times of its requests and no bytes over time. */
json_t *job_bytes(const struct profile *a);
/* [{"title", "unit", "labels": [], "series": [{"name", "counts": []}]}] */
json_t *job_sizes(const struct profile *a);
