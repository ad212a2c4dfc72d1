#pragma once
/* Times and sizes that were drawn, against what was asked for. Private to judge/. */
#include "judge/verdict.h"

/* A fact for each that varies, with means and deviations; a warning where the mean is off by more
 * than chance does. */
void draws_judge(struct verdict *v, const struct result *r);
