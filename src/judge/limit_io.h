#pragma once
/* The limit that a control group sets to reads of the dataset's device. */
#include <stdbool.h>

#include "result/result.h"

/* That limit, with what the run read beside it. False, and nothing written, when there is none.
 * `reached`: the run was at the limit; may be NULL. */
bool io_group_fact(const struct result *r, bool *reached, struct fact *out);
