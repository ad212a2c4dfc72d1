#pragma once
/* Whether the limit that a control group sets to reads held a run back: judge/limit.h asks. */
#include <stdbool.h>
#include <stddef.h>

#include "result/result.h"

/* The group's limit on the device of the dataset, with what the run read beside it: "the control
 * group limits reads of this device (vda) to 50 MiB/s; the run read 49.1 MiB/s". False, and
 * nothing written, when there is none. `reached`: the run was at the limit; may be NULL. */
bool io_group_text(const struct result *r, bool *reached, char *out, size_t size);
/* A sentence that begins with "limited by"; false when there is no limit, or the run was below it.
 */
bool limit_io_group(const struct result *r, char *out, size_t size);
