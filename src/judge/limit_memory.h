#pragma once
/* What memory had to do with it: whether the page cache served, and whether there was too little.
 */
#include "result/result.h"

/* Whether the page cache served most of what was read. */
bool limit_cached(const struct result *r);
/* Whether memory was too short for the run; then the sentence is in `out`. */
bool limit_memory(const struct result *r, char *out, size_t size);
