#pragma once
/* What a change in the middle of a run, or a single stall, had to do with it. */
#include "result/result.h"

/* Whether stalls, slow phases or a slower last part are what most time was lost to; then the cause
 * ("stall", "unsteady") and the sentence are in `cause` and `out`. `loss_s`: all time lost, of
 * training. */
bool limit_unsteady(const struct result *r, double loss_s, char *cause, size_t cause_size,
		    char *out, size_t size);
/* Whether predictions from this run would be from two different storages; then why is in `out`. */
bool limit_no_forecast(const struct result *r, double loss_s, char *out, size_t size);
