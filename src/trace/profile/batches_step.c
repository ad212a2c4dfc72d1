/* What every way of finding batches needs. */
#include "trace/profile/profile_parts.h"

bool batches_follows(const struct batches *b, size_t i)
{
	const struct visit *v, *last;

	if (i == 0 || i >= b->a->visits)
		return false;
	v = batches_visit(b, i);
	last = batches_visit(b, i - 1);
	return b->sequence[v->reader] == b->sequence[last->reader] && v->epoch == last->epoch &&
	       is_eval(b->a, v) == is_eval(b->a, last);
}

double batches_say_step(struct profile *a, struct values *period, struct fact rule)
{
	double step = values_median(period);

	profile_inferred(a, PROFILE_STEP, step, rule, values_near(period, step), period->n);
	return step;
}
