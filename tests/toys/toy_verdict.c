/* A verdict for a test: every trained epoch is a toy's. Its sentence is a row of words/. */
#include "judge/verdict.h"

static void judge_toys(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	verdict_found(v, VERDICT_WARN, FACT(TOY_TRAINED, m->epochs, r->ranks));
}

const struct verdict_ops verdict_toy = {
	.name = "toy",
	.help = "Were toys used?",
	.needs = VERDICT_OF_TRAINING,
	.judge = judge_toys,
};
