/* Whether the run came to its end. */
#include "judge/verdict.h"

static void judge_complete(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	bool ended = r->status == RUN_INTERRUPTED;
	struct fact f;

	(void)m;
	if (r->status == RUN_COMPLETE)
		return;
	if (r->checkpointed && !r->trained)
		f = ended ? FACT(COMPLETE_CHECKPOINTS_INTERRUPTED)
			  : FACT(COMPLETE_CHECKPOINTS_FAILED);
	else
		f = ended ? FACT(COMPLETE_INTERRUPTED, r->epochs_done, r->epochs_planned)
			  : FACT(COMPLETE_FAILED, r->epochs_done, r->epochs_planned);
	verdict_found(v, VERDICT_FAIL, fact_with_clause(f, 0, r->reason.text));
}

extern const struct verdict_ops verdict_complete;
const struct verdict_ops verdict_complete = {
	.name = "complete",
	.help = "Was the run completed?",
	.takes = TAKES_END,
	.judge = judge_complete,
};
