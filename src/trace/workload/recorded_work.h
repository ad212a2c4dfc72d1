#pragma once
/* What the readers of a job did beside their requests. */
#include "trace/profile/profile.h"

/* Nanoseconds of each visit, of malloc. NULL: the log does not show it, or threads that read at
 * once share it. */
double *recorded_work_of(const struct profile *a);
