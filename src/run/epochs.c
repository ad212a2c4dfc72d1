/* Which epochs a run has, and what is in them. */
#include "run/state.h"

uint64_t run_epoch_steps(const struct run_state *s, uint32_t epoch)
{
	uint64_t cap = s->w->train.total_training_steps > 0
			       ? (uint64_t)s->w->train.total_training_steps
			       : UINT64_MAX;
	uint64_t before = (epoch - 1) * s->steps[DATASET_TRAIN];

	/* DLIO restarts its counter every epoch, so that its cap is one per epoch */
	if (s->w->compat.dlio || cap == UINT64_MAX)
		return s->steps[DATASET_TRAIN] < cap ? s->steps[DATASET_TRAIN] : cap;
	if (before >= cap)
		return 0;
	return s->steps[DATASET_TRAIN] < cap - before ? s->steps[DATASET_TRAIN] : cap - before;
}

bool run_epoch_has_eval(const struct workload *w, uint32_t epoch)
{
	int64_t first = w->evaluation.eval_after_epoch, every = w->evaluation.epochs_between_evals;

	if (!w->workflow.evaluation || epoch < first)
		return false;
	/* DLIO moves its next evaluation on by `every` each time one happens */
	return every <= 1 || (epoch - first) % every == 0;
}

uint32_t run_planned_epochs(const struct run_state *s)
{
	uint32_t n = 0;

	while (n < (uint32_t)s->w->train.epochs && run_epoch_steps(s, n + 1) > 0)
		n++;
	return n;
}
