#pragma once
/* What simulations of a fleet have in common. Private to predict/. */
#include "base/hist.h"
#include "predict/fleet.h"
#include "predict/model.h"

/* Over the epochs that were simulated; s, AU in percent. */
struct fleet_sums {
	struct hist wait_ns;
	double wall, computed, au; /* computed: mean over ranks; au: by DLIO's definition */
	double steps;              /* of a rank */
	double wait, slowest;      /* of all ranks; of the slowest one of each step */
	double at_store, cpu;
};

/* Borrows the fleet. */
struct model fleet_model(const struct fleet *f, uint64_t seed);
void fleet_fill(const struct fleet *f, const struct fleet_sums *s, double epochs,
		struct fleet_result *out);
