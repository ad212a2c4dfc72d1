#pragma once
/* The samples that took longest to read, over all ranks. */
#include "result/result.h"

/* Over the whole training. Pure. */
void stragglers_find(const struct result *r, struct stragglers *out);
