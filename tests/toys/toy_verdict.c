/* A verdict for a test: every trained epoch is a toy's. */
#include "judge/verdict.h"

static void judge_toys(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	v->level = VERDICT_WARN;
	verdict_say(v, "%u epochs were trained with toys by %u ranks.", m->epochs, r->ranks);
}

const struct verdict_ops verdict_toy = {
	.name = "toy",
	.help = "Were toys used?",
	.needs = VERDICT_OF_TRAINING,
	.judge = judge_toys,
};
