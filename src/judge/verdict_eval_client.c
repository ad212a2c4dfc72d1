/* Whether the machine was itself the limit in evaluations. */
#include <math.h>

#include "judge/verdict.h"

static const double CPU_BUSY_SHARE = 0.90;

static void judge_eval_client(const struct result *r, const struct run_metrics *m,
			      struct verdict *v)
{
	double cpus = verdict_cpus(r), busy = 0, own = 0;
	uint32_t at = 0;

	for (uint32_t i = 0; i < m->epochs; i++) {
		const struct epoch_usage *u = &r->usage[i];
		double share;

		if (!m->epoch[i].has_eval || u->eval_wall_ns <= 0 || u->cpu_eval_ns <= 0 ||
		    !(cpus > 0))
			continue;
		share = (double)u->cpu_eval_ns / (double)u->eval_wall_ns / cpus;
		at = share > busy ? i + 1 : at;
		busy = fmax(busy, share);
		own = fmax(own, share - result_framework_ns(r, i, true) / (double)u->eval_wall_ns /
						cpus);
	}
	if (at == 0)
		return;
	verdict_found(v, VERDICT_PASS, FACT(CLIENT_EVAL_BUSY, busy, cpus, at));
	if (busy > own + 0.005)
		verdict_found(v, VERDICT_PASS, FACT(CLIENT_FRAMEWORK, busy - own));
	if (own <= CPU_BUSY_SHARE)
		return;
	verdict_found(v, VERDICT_WARN, FACT(CLIENT_CPU, own, CPU_BUSY_SHARE));
	verdict_takes(v, TAKES_CLIENT, REASON_NONE);
}

extern const struct verdict_ops verdict_eval_client;
const struct verdict_ops verdict_eval_client = {
	.name = "eval-client",
	.help = "Was this machine, not the storage, the bottleneck in evaluations?",
	.about = ABOUT_MACHINE,
	.worst_first = true,
	.needs = VERDICT_OF_EVALUATION | VERDICT_OF_EVAL_STEPS | VERDICT_OF_EPOCHS,
	.takes = TAKES_CLIENT,
	.judge = judge_eval_client,
};
