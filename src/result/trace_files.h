#pragma once
/* Files of a trace, in the folder of the result: of the ranks of this process, with times by its
 * own clock. The result has a trace, and no other thread uses its rings. */
#include <stdbool.h>

#include "result/result.h"

/* trace-R-of-N.pfw for each rank R of N, as DFTracer leaves them under DLIO. */
int trace_write_pfw(const struct result *r, struct err *e);
/* trace.json for Perfetto and chrome://tracing; with `several` processes trace-R.json, R being the
 * first rank of this one. */
int trace_write_chrome(const struct result *r, bool several, struct err *e);
