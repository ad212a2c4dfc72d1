#pragma once
/* Feeds the model with what a run measured, and asks it for changes. */
#include "metric/read_fit.h"
#include "result/result.h"

/* Over the first `epochs` epochs, whose decomposition is r->judged.time and whose reads go by
 * `law`. Fills *out. */
void outlook_compute(const struct result *r, uint32_t epochs, const struct read_law *law,
		     struct outlook *out);
