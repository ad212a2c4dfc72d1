#pragma once
/* What a probe's numbers of readers got against what an explanation foretells of them: of a change
 * that leads to more or fewer readers at the store, whichever explanation is right, that much is
 * known. */
#include "predict/misfit.h"
#include "predict/model.h"
#include "result/probe.h"

struct probe_curve {
	uint32_t count; /* 0: nothing is known */
	struct probe_curve_at {
		double readers;
		double times; /* what was foretold takes so many times as long */
		double sure;  /* standard error, of that */
	} at[PROBE_POINTS_MAX];
};

/* The points of `p` against the store of `of`, whose requests take `delay_s` of a batch whoever
 * else reads; each simulated: readers that do nothing else, one sample at a time. */
void probe_curve_of(struct probe_curve *c, const struct probe *p, const struct model *of,
		    double delay_s);
/* Whether more readers got as much more: none waits for another one. */
bool probe_scales(const struct probe *p);
/* By how many times as long the store takes for `to` readers at it as it would if the explanation
 * held from `from` on. */
struct misfit_range probe_curve_from_to(const struct probe_curve *c, double from, double to);
