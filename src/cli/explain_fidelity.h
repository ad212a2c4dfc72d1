#pragma once
/* stoker explain --fidelity: how near the run of a workload came to the job. */
#include "base/err.h"
#include "base/map.h"
#include "conf/opt.h"
#include "trace/job_log.h"

/* `runs`: a log of the run (of 'stoker record' or another that explain reads), which gives its
 * requests; a folder of results, which gives its steps and its time; or both, in any order. Prints
 * the comparison, as JSON if asked. */
int explain_fidelity(const struct job *log, const struct str_list *runs, bool json, struct err *e);
