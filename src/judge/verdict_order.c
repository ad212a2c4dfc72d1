/* Whether every sample was read exactly once in each epoch. */
#include "judge/verdict.h"

/* The first epoch whose order is `kept`, or the first such evaluation. */
static bool name_epoch(struct verdict *v, const struct result *r, enum order_kept kept)
{
	bool broken = kept == ORDER_BROKEN;
	enum verdict_level level = broken ? VERDICT_FAIL : VERDICT_UNKNOWN;

	for (uint32_t i = 0; r->trained && i < r->epochs_done; i++) {
		const struct epoch_usage *u = &r->usage[i];

		if (u->order_kept != kept)
			continue;
		verdict_found(v, level,
			      fact_with_clause(
				      broken ? FACT(ORDER_NOT_PROVED, i + 1)
					     : FACT(ORDER_NOT_CHECKED, i + 1),
				      0, u->order_note[0] ? u->order_note : "no proof was made"));
		return true;
	}
	for (uint32_t i = 0; i < r->epochs_done; i++) {
		const struct epoch_usage *u = &r->usage[i];

		if (u->eval_order_kept != kept || !u->eval_order_note[0])
			continue;
		verdict_found(v, level,
			      fact_with_clause(broken ? FACT(ORDER_EVAL_NOT_PROVED, i + 1)
						      : FACT(ORDER_EVAL_NOT_CHECKED, i + 1),
					       0, u->eval_order_note));
		return true;
	}
	return false;
}

static void judge_order(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	(void)m;
	if (r->epochs_done == 0 || !r->usage)
		verdict_found(v, VERDICT_UNKNOWN, FACT(ORDER_NO_EPOCH));
	else if (name_epoch(v, r, ORDER_BROKEN) || name_epoch(v, r, ORDER_UNKNOWN))
		return;
	else if (r->only_evaluated)
		verdict_found(v, VERDICT_PASS,
			      fact_with_clause(FACT(ORDER_EVAL_PROVED, r->epochs_done), 0,
					       r->usage[0].eval_order_note));
	else
		verdict_found(v, VERDICT_PASS,
			      fact_with_clause(FACT(ORDER_PROVED, r->epochs_done), 0,
					       r->usage[0].order_note));
}

extern const struct verdict_ops verdict_order;
const struct verdict_ops verdict_order = {
	.name = "order",
	.help = "Was every sample read exactly once in each epoch?",
	.needs = VERDICT_OF_READING,
	.takes = TAKES_CONTENT,
	.judge = judge_order,
};
