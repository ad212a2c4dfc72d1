/* Whether every sample was read exactly once in each epoch. */
#include "judge/verdict.h"

/* The first epoch whose order is `kept`, or the first such evaluation. */
static bool name_epoch(struct verdict *v, const struct result *r, enum order_kept kept,
		       const char *what)
{
	for (uint32_t i = 0; r->trained && i < r->epochs_done; i++) {
		const struct epoch_usage *u = &r->usage[i];

		if (u->order_kept != kept)
			continue;
		verdict_say(v, "Epoch %u %s: %s", i + 1, what,
			    u->order_note[0] ? u->order_note : "no proof was made");
		return true;
	}
	for (uint32_t i = 0; i < r->epochs_done; i++) {
		const struct epoch_usage *u = &r->usage[i];

		if (u->eval_order_kept != kept || !u->eval_order_note[0])
			continue;
		verdict_say(v, "The evaluation of epoch %u %s: %s", i + 1, what,
			    u->eval_order_note);
		return true;
	}
	return false;
}

static void judge_order(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	(void)m;
	if (r->epochs_done == 0 || !r->usage) {
		v->level = VERDICT_UNKNOWN;
		verdict_say(v, "No epoch was completed, so there is nothing to prove.");
		return;
	}
	if (name_epoch(v, r, ORDER_BROKEN, "is not proved complete")) {
		v->level = VERDICT_FAIL;
		return;
	}
	if (name_epoch(v, r, ORDER_UNKNOWN, "could not be checked")) {
		v->level = VERDICT_UNKNOWN;
		return;
	}
	if (r->only_evaluated) {
		verdict_say(v, "Proved for %s%u evaluation%s: %s",
			    r->epochs_done > 1 ? "each of " : "", r->epochs_done,
			    r->epochs_done > 1 ? "s; the first" : "", r->usage[0].eval_order_note);
		verdict_close(v);
		return;
	}
	if (r->epochs_done == 1)
		verdict_say(v, "Proved for the epoch: ");
	else
		verdict_say(v, "Proved for each of %u epochs; epoch 1: ", r->epochs_done);
	verdict_say(v, "%s", r->usage[0].order_note);
	verdict_close(v);
}

extern const struct verdict_ops verdict_order;
const struct verdict_ops verdict_order = {
	.name = "order",
	.help = "Was every sample read exactly once in each epoch?",
	.needs = VERDICT_OF_READING,
	.takes = TAKES_CONTENT,
	.judge = judge_order,
};
