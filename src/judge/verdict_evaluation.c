/* Whether evaluations were made and could be measured. */
#include "judge/recorded.h"
#include "judge/verdict.h"

static void judge_evaluation(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	if (r->eval_steps == 0) {
		v->level = VERDICT_WARN;
		verdict_say(v,
			    "Evaluation is enabled, but %lld evaluation files do not fill a step: "
			    "nothing was evaluated.",
			    (long long)r->workload->dataset.num_files_eval);
		return;
	}
	for (uint32_t i = 0; i < m->epochs; i++) {
		if (!m->epoch[i].has_eval || m->epoch[i].eval_valid)
			continue;
		v->level = VERDICT_WARN;
		verdict_say(v, "The evaluation of epoch %u has no AU: %s.", i + 1,
			    m->epoch[i].eval_why);
		return;
	}
	if (m->eval_au.count == 0) {
		v->level = VERDICT_UNKNOWN;
		verdict_say(v, "No evaluation was completed.");
		return;
	}
	verdict_say(v, "%llu steps in each evaluation.", (unsigned long long)r->eval_steps);
}

extern const struct verdict_ops verdict_evaluation;
const struct verdict_ops verdict_evaluation = {
	.name = "evaluation",
	.help = "Were evaluations carried out, and could they be measured?",
	.needs = VERDICT_OF_TRAINING | VERDICT_OF_EVALUATION,
	.judge = judge_evaluation,
	.at_least = recorded_evaluation,
};
