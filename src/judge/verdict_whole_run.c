/* What the whole run says, nothing left out, and whether ranks and epochs agree. */
#include <math.h>

#include "judge/verdict.h"

static const double RANK_SPREAD_POINTS = 5;
static const double EPOCH_SPREAD_SHARE = 0.10;

static void judge_whole_run(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	(void)r;
	double low = 100, high = 0, gap = 0, first_low = 0, first_high = 0;
	double spread = 0, spread_low = 0, spread_high = 0;
	double shortest = INFINITY, longest = 0;
	uint32_t shortest_at = 0, longest_at = 0;

	if (m->whole_au.count == 0) {
		verdict_found(v, VERDICT_UNKNOWN, FACT(WHOLE_RUN_NO_EPOCH));
		return;
	}
	for (uint32_t i = 0; i < m->epochs; i++) {
		const struct epoch_metrics *e = &m->epoch[i];

		if (e->steps == 0)
			continue;
		low = fmin(low, e->whole_au_min);
		high = fmax(high, e->whole_au_max);
		if (e->whole_au_max - e->whole_au_min > spread) {
			spread = e->whole_au_max - e->whole_au_min;
			spread_low = e->whole_au_min;
			spread_high = e->whole_au_max;
		}
		if (e->train_valid && e->train_au_max - e->train_au_min > gap) {
			gap = e->train_au_max - e->train_au_min;
			first_low = e->train_au_min;
			first_high = e->train_au_max;
		}
		if (e->wall_s / (double)e->steps < shortest) {
			shortest = e->wall_s / (double)e->steps;
			shortest_at = i;
		}
		if (e->wall_s / (double)e->steps > longest) {
			longest = e->wall_s / (double)e->steps;
			longest_at = i;
		}
	}
	verdict_found(
		v, VERDICT_PASS,
		FACT(WHOLE_RUN_SHARE, m->whole.au, low, high, m->whole_au.min, m->whole_au.max));
	if (gap > RANK_SPREAD_POINTS)
		verdict_found(v, VERDICT_WARN, FACT(WHOLE_RUN_RANKS_DIFFER, first_low, first_high));
	else if (spread > RANK_SPREAD_POINTS)
		verdict_found(v, VERDICT_WARN,
			      FACT(WHOLE_RUN_RANKS_DIFFER, spread_low, spread_high));
	if (longest > shortest * (1 + EPOCH_SPREAD_SHARE))
		verdict_found(v, VERDICT_WARN,
			      FACT(WHOLE_RUN_EPOCHS_DIFFER, longest, longest_at + 1, shortest,
				   shortest_at + 1));
}

extern const struct verdict_ops verdict_whole_run;
const struct verdict_ops verdict_whole_run = {
	.name = "whole-run",
	.help = "What is AU over the whole wall time, and do ranks and epochs agree?",
	.needs = VERDICT_OF_TRAINING,
	.judge = judge_whole_run,
};
