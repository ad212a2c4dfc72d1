/* Whether the run came to its end. */
#include "judge/verdict.h"

static void judge_complete(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	(void)m;
	if (r->status == RUN_COMPLETE)
		return;
	v->level = VERDICT_FAIL;
	verdict_say(v, "The run %s", r->status == RUN_INTERRUPTED ? "was interrupted" : "failed");
	if (r->checkpointed && !r->trained)
		verdict_say(v, "; only complete checkpoints are included below.");
	else
		verdict_say(v, " after %u of %u epochs; only completed epochs are included below.",
			    r->epochs_done, r->epochs_planned);
	if (r->reason.text[0])
		verdict_say(v, " Reason: %.400s", r->reason.text);
}

extern const struct verdict_ops verdict_complete;
const struct verdict_ops verdict_complete = {
	.name = "complete",
	.help = "Was the run completed?",
	.takes = TAKES_END,
	.judge = judge_complete,
};
