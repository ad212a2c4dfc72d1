#pragma once
/* Where the wall time of training went: disjoint parts that sum to it. By the definitions of
 * docs/metrics.md. */
#include "result/result.h"

/* Over the epochs [from, to) of the begun ones. Pure. */
void decompose(const struct result *r, uint32_t from, uint32_t to, struct decomposition *out);
