/* Whether the workload was understood, and used as it is. */
#include "judge/draws.h"

static const double DROPPED_SHARE = 0.01;

static uint64_t train_samples(const struct workload *w)
{
	return (uint64_t)workload_samples(w, false);
}

#define NAMED_MOST 3

/* The first of them, and how many more there are. */
static void name_first(struct verdict *v, const struct str_list *sentences, struct fact each)
{
	for (size_t i = 0; i < sentences->n && i < NAMED_MOST; i++)
		verdict_found(v, VERDICT_PASS, fact_with_clause(each, 0, sentences->v[i]));
	if (sentences->n > NAMED_MOST)
		verdict_found(v, VERDICT_PASS,
			      FACT(CONFIG_MORE, (double)(sentences->n - NAMED_MOST)));
}

static void judge_config(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	const struct str_list *warnings = &r->workload->warnings, *notes = &r->workload->notes;
	uint64_t samples = train_samples(r->workload);
	double share = samples ? (double)r->dropped_samples / (double)samples : 0;

	(void)m;
	if (r->dropped_samples)
		verdict_found(v, share > DROPPED_SHARE ? VERDICT_WARN : VERDICT_PASS,
			      FACT(CONFIG_DROPPED, (double)r->dropped_samples, (double)samples,
				   100 * share));
	draws_judge(v, r);
	if (r->workload->added.n)
		verdict_found(v, VERDICT_WARN,
			      fact_with(FACT(CONFIG_ADDED, (double)r->workload->added.n), 0,
					r->workload->added.v[0]));
	if (warnings->n) {
		verdict_found(v, VERDICT_WARN, FACT(CONFIG_WARNINGS, (double)warnings->n));
		name_first(v, warnings, FACT(CONFIG_WARNING));
	} else {
		verdict_found(v, VERDICT_PASS, FACT(CONFIG_RECOGNIZED));
	}
	name_first(v, notes, FACT(CONFIG_NOTE));
}

extern const struct verdict_ops verdict_config;
const struct verdict_ops verdict_config = {
	.name = "config",
	.help = "Was every key recognized, and every sample used?",
	.about = ABOUT_WORKLOAD,
	.judge = judge_config,
};
