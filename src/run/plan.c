/* What a run will do: steps, epochs and checkpoints. */
#include "run/state.h"

#include <math.h>

#include "base/saturate.h"
#include "run/checkpoints.h"

/* ---- steps and epochs ---- */

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

/* ---- checkpoints ---- */

uint64_t run_checkpoint_steps(const struct workload *w)
{
	int64_t n = w->checkpoint.steps_between_checkpoints;

	return w->workflow.checkpoint && n > 0 ? (uint64_t)n : 0;
}

int64_t run_checkpoint_interval_ns(const struct workload *w)
{
	double seconds = w->checkpoint.seconds_between_checkpoints;

	/* what is less than a ns is no 0, which is another way to go by */
	return w->workflow.checkpoint && w->workflow.train && seconds > 0
		       ? (int64_t)ceil(seconds * 1e9)
		       : 0;
}

bool run_epoch_has_checkpoint(const struct workload *w, uint32_t epoch)
{
	int64_t first = w->checkpoint.checkpoint_after_epoch;
	int64_t every = w->checkpoint.epochs_between_checkpoints;

	return w->workflow.checkpoint && w->checkpoint.steps_between_checkpoints < 0 &&
	       run_checkpoint_interval_ns(w) == 0 && epoch >= first && (epoch - first) % every == 0;
}

uint32_t run_epoch_blocks(const struct workload *w, uint64_t steps)
{
	uint64_t every = run_checkpoint_steps(w);

	if (run_checkpoint_interval_ns(w))
		return CHECKPOINTS_AT_FIRST;
	return every && steps ? (uint32_t)((steps + every - 1) / every) : 1;
}

uint32_t run_epoch_saves(const struct workload *w, uint32_t epoch, uint64_t steps)
{
	uint64_t every = run_checkpoint_steps(w);

	if (run_checkpoint_interval_ns(w))
		return CHECKPOINTS_AT_FIRST;
	return every ? (uint32_t)(steps / every) : run_epoch_has_checkpoint(w, epoch);
}

static uint32_t count_or_none(int64_t n)
{
	return n > 0 ? (uint32_t)n : 0;
}

uint64_t run_loads_planned(const struct run_state *s)
{
	return s->checkpoint && !s->w->workflow.train
		       ? count_or_none(s->w->checkpoint.num_checkpoints_read)
		       : 0;
}

uint64_t run_saves_planned(const struct run_state *s)
{
	uint64_t n = 0;

	if (!s->checkpoint || run_checkpoint_interval_ns(s->w))
		return 0;
	if (!s->w->workflow.train)
		return count_or_none(s->w->checkpoint.num_checkpoints_write);
	for (uint32_t i = 1; i <= (uint32_t)s->w->train.epochs; i++)
		n = u64_sum(n, run_epoch_saves(s->w, i, run_epoch_steps(s, i)));
	return n;
}
