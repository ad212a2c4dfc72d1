#pragma once
/* The bytes of samples: incompressible, a pure function of (seed, file, offset), so that any byte
 * can be verified without a second copy. Floats are uniform in [0, 1) (never NaN), bools 0 or 1. */
#include "format/format.h"

void content_init(struct content_source *src, uint64_t seed, const struct elem_type *elem);
