#pragma once
/* Reading with the requests that a real job made (ACCESS_RECORDED), whatever the format. */
#include "format/format.h"

/* Files that a reader keeps open at most with reader.read_type memory. */
#define RECORDED_KEPT_OPEN 64u

/* Has a reader's functions alone. */
extern const struct format_ops recorded_requests_ops;
