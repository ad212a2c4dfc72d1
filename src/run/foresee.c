/* The plan of a run that is not made. */
#include "run/foresee.h"

#include "base/saturate.h"
#include "checkpoint/checkpoint_plan.h"
#include "judge/run_length.h"
#include "run/epoch_edges.h"
#include "checkpoint/checkpoint.h"
#include "run/memory_bound.h"

/* Steps of an epoch that the window of AU leaves out: DLIO does so in each block. */
static uint64_t steps_excluded(const struct workload *w, uint32_t blocks)
{
	int64_t out = w->output.metric.exclude_start_steps + w->output.metric.exclude_end_steps;

	return out < 0 ? 0 : u64_product((uint64_t)out, w->compat.dlio ? blocks : 1);
}

static void foresee_steps(const struct run_plan *p, struct run_foresight *out)
{
	uint64_t excluded;

	for (uint32_t i = 1; i <= p->epochs; i++) {
		struct epoch_plan one = plan_epoch(p, i);
		uint64_t measured;

		if (one.steps == 0)
			continue;
		excluded = steps_excluded(p->w, one.blocks);
		measured = one.steps > excluded ? one.steps - excluded : 0;
		if (out->steps && measured >= out->measured)
			continue;
		out->steps = one.steps;
		out->measured = measured;
		out->needed = run_length_needed(out->ahead, excluded);
	}
	if (p->eval_steps) {
		out->eval_steps = p->steps[DATASET_EVAL];
		out->eval_needed = run_length_needed(out->ahead, steps_excluded(p->w, 1));
	}
	out->train_steps = p->train_steps;
	out->eval_steps_of_run = p->eval_steps;
}

static double sample_bytes(const struct dataset *d)
{
	uint64_t samples =
		u64_sum(dataset_samples(d, DATASET_TRAIN), dataset_samples(d, DATASET_EVAL));

	return samples ? (double)d->likely_bytes / (double)samples : 0;
}

static void foresee_work(const struct run_plan *p, struct run_foresight *out)
{
	const struct workload *w = p->w;
	double ranks = p->at->ranks, samples;

	out->compute_s = (double)p->train_steps * time_dist_mean(&w->train.computation_time) +
			 (double)p->eval_steps * time_dist_mean(&w->evaluation.eval_time);
	samples = ranks * ((double)p->train_steps * (double)w->reader.batch_size +
			   (double)p->eval_steps * (double)w->reader.batch_size_eval);
	if (!(p->d->format->is.flags & FORMAT_NO_IO))
		out->read_bytes = (uint64_t)(samples * sample_bytes(p->d));
}

static int foresee_checkpoints(const struct run_plan *p, struct run_foresight *out, struct err *e)
{
	const struct workload *w = p->w;
	uint64_t keep = (uint64_t)w->checkpoint.keep_last;
	struct checkpoint_totals totals;
	struct checkpoint_plan plan;
	int rc;

	if (!w->workflow.checkpoint)
		return 0;
	rc = checkpoint_plan_init(&plan, w, p->at->ranks, e);
	if (rc < 0)
		return rc;
	checkpoint_plan_totals(&plan, &totals);
	checkpoint_plan_release(&plan);
	out->checkpoint_bytes = totals.total_bytes;
	out->checkpoints_by_time = p->save_every_ns > 0;
	out->checkpoints = p->saves;
	out->checkpoints_kept = out->checkpoints_by_time ? 1 : p->saves;
	/* the oldest is removed when the next is whole */
	if (w->checkpoint.keep_last > 0 && out->checkpoints_kept > keep + 1)
		out->checkpoints_kept = keep + 1;
	return 0;
}

static int foresee_memory(struct run_plan *p, struct run_foresight *out, struct err *e)
{
	int rc = 0;

	if (p->w->workflow.checkpoint)
		rc = checkpoint_open(&p->checkpoint, p->w, p->at->ranks, e);
	if (rc == 0)
		rc = run_memory(p, e);
	out->memory_bytes = p->memory_bound_bytes;
	checkpoint_close(p->checkpoint);
	return rc;
}

int run_foresee(const struct workload *w, struct dataset *d, uint32_t ranks, bool memory,
		struct run_foresight *out, struct err *e)
{
	struct run_place at;
	struct run_plan p = {
		.w = w, .at = &at, .d = d, .loader = loader_find(w->reader.data_loader)};
	int rc;

	*out = (struct run_foresight){0};
	run_place_init(&at, NULL, NULL, ranks);
	if (d && !p.loader)
		return err_set(e, ERR_ABSENT, "reader.data_loader: '%s' is not supported",
			       w->reader.data_loader);
	rc = store_create(&p.store, w->storage.store, node_path(w->tree, "workload.storage"), e);
	if (rc == 0 && d)
		rc = page_cache_check(&p, e);
	if (rc == 0)
		rc = plan_make(&p, e);
	if (rc == 0) {
		out->epochs = p.epochs;
		if (d) {
			p.loader->window(w, &out->workers, &out->ahead);
			foresee_steps(&p, out);
			foresee_work(&p, out);
		}
		rc = foresee_checkpoints(&p, out, e);
	}
	if (rc == 0 && memory)
		rc = foresee_memory(&p, out, e);
	store_destroy(p.store);
	return rc;
}
