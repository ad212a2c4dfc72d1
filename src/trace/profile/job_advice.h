#pragma once
/* What changes would give a job that trained, by the times of its own log: bounds, as no log tells
 * whether the storage or the processors serve more readers as fast as those of the job. */
#include <jansson.h>
#include <stdint.h>

#include "base/buf.h"
#include "conf/opt.h"
#include "trace/profile/profile.h"

/* What more workers, cached data and faster storage would give, or why it is not known, as facts;
 * NULL where the log shows no training. */
json_t *job_advice_json(const struct profile *a);
/* The same as lines, and the commands to type next: `log` are the names of the log, `workload` the
 * file that was written of it; NULL: none. */
void job_advice_put(const struct profile *a, const struct str_list *log, const char *workload,
		    struct buf *out);
