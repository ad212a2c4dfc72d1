#pragma once
/* The memory of a whole run, of which plan_memory adds up the parts. Private to run/. */
#include "run/plan.h"

/* Sets p->memory_bound_bytes, from a plan that is made and whose store (and checkpoint) are open.
 * -ENOMEM, with a sentence, when the host has less. */
int run_memory(struct run_plan *p, struct err *e);
