#pragma once
/* A fleet with the loaders' own code, in virtual time (predict/virtual_run.h), where
 * predict/model.h has their rules: slower by some ten times, for any loader. The store and
 * processors are the same (predict/store_model.h). */
#include "base/err.h"
#include "predict/fleet.h"
#include "workload/workload.h"

/* The loader and its settings are those of the workload, which has as many workers and samples of a
 * batch as the fleet; all else is the fleet's. fork_s, begin_s, start_s and hand_s are left out.
 * Fails where the loader cannot have the workload, or without memory. */
int fleet_run_virtual(const struct fleet *f, const struct workload *w, uint64_t seed,
		      struct fleet_result *out, struct err *e);
