#pragma once
/* What a run tells of larger ones (result/basis.h), from its costs and its reads' times. */
#include "predict/costs.h"
#include "result/basis.h"

/* From the first `epochs` epochs, whose decomposition is r->judged.time, and the explanations of
 * their reads. Tries them on the run itself. */
void basis_of(const struct result *r, uint32_t epochs, const struct variants *v, struct basis *out);
