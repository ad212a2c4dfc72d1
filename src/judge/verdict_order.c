/* Whether every sample was read exactly once in each epoch. */
#include "judge/verdict.h"

static void judge_order(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	(void)m;
	if (r->epochs_done == 0 || !r->usage) {
		v->level = VERDICT_UNKNOWN;
		verdict_say(v, "No epoch was finished, so that none was proved complete.");
		return;
	}
	for (uint32_t i = 0; i < r->epochs_done; i++) {
		if (r->usage[i].order_proved)
			continue;
		v->level = VERDICT_FAIL;
		verdict_say(v, "Epoch %u is not proved complete: %s", i + 1,
			    r->usage[i].order_note[0] ? r->usage[i].order_note
						      : "no proof was taken");
		return;
	}
	for (uint32_t i = 0; i < r->epochs_done; i++) {
		if (r->usage[i].eval_order_proved || !r->usage[i].eval_order_note[0])
			continue;
		v->level = VERDICT_FAIL;
		verdict_say(v, "The evaluation of epoch %u is not proved complete: %s", i + 1,
			    r->usage[i].eval_order_note);
		return;
	}
	if (r->epochs_done == 1)
		verdict_say(v, "Proved for the epoch: ");
	else
		verdict_say(v, "Proved for each of %u epochs; the first: ", r->epochs_done);
	verdict_say(v, "%s", r->usage[0].order_note);
	verdict_close(v);
}

extern const struct verdict_ops verdict_order;
const struct verdict_ops verdict_order = {
	.name = "order",
	.help = "Was every sample read exactly once in each epoch?",
	.needs = VERDICT_OF_TRAINING,
	.judge = judge_order,
};
