/* Steps, epochs, checkpoints and memory of a run. */
#include "run/plan.h"

#include <assert.h>
#include <errno.h>
#include <math.h>

#include "base/rng.h"
#include "base/saturate.h"
#include "base/str.h"
#include "dataset/listed.h"
#include "os/sysinfo.h"
#include "judge/judge.h"
#include "metric/series.h"
#include "metric/step.h"
#include "result/result.h"
#include "store/batch.h"
#include "store/mem_body.h"

/* Writers of a dataset: enough to keep a device busy, few enough for a small machine. */
#define GENERATE_THREADS_MAX 32
/* Code, libraries and small things that the program has not touched when it states its memory. */
#define UNTOUCHED_BYTES (6u << 20)

/* ---- an epoch ---- */

static uint64_t steps_of_epoch(const struct run_plan *p, uint32_t epoch)
{
	uint64_t all = p->steps[DATASET_TRAIN], before = (epoch - 1) * all;
	uint64_t cap = p->w->train.total_training_steps > 0
			       ? (uint64_t)p->w->train.total_training_steps
			       : UINT64_MAX;

	/* DLIO restarts its counter every epoch, so that its cap is one per epoch */
	if (p->w->compat.dlio || cap == UINT64_MAX)
		return all < cap ? all : cap;
	if (before >= cap)
		return 0;
	return all < cap - before ? all : cap - before;
}

static bool epoch_is_evaluated(const struct workload *w, uint32_t epoch)
{
	int64_t first = w->evaluation.eval_after_epoch, every = w->evaluation.epochs_between_evals;

	if (!w->workflow.evaluation || epoch < first)
		return false;
	/* DLIO moves its next evaluation on by `every` each time one happens */
	return every <= 1 || (epoch - first) % every == 0;
}

/* As many as there would be beside training. */
static uint32_t evaluations(const struct workload *w)
{
	uint32_t n = 0;

	for (int64_t i = 1; i <= w->train.epochs; i++)
		n += epoch_is_evaluated(w, (uint32_t)i);
	return n;
}

static bool epoch_is_saved(const struct run_plan *p, uint32_t epoch)
{
	const struct workload *w = p->w;
	int64_t first = w->checkpoint.checkpoint_after_epoch;
	int64_t every = w->checkpoint.epochs_between_checkpoints;

	return w->workflow.checkpoint && w->checkpoint.steps_between_checkpoints < 0 &&
	       p->save_every_ns == 0 && epoch >= first && (epoch - first) % every == 0;
}

static uint32_t count_or_none(int64_t n)
{
	return n > 0 ? (uint32_t)n : 0;
}

struct epoch_plan plan_epoch(const struct run_plan *p, uint32_t epoch)
{
	const struct workload *w = p->w;
	struct epoch_plan e = {.blocks = 1};

	assert(epoch >= 1);
	if (workload_only_evaluates(w)) {
		e.evaluated = true;
		return e;
	}
	if (!w->workflow.train) {
		e.saves = w->workflow.checkpoint
				  ? count_or_none(w->checkpoint.num_checkpoints_write)
				  : 0;
		e.loads = w->workflow.checkpoint ? count_or_none(w->checkpoint.num_checkpoints_read)
						 : 0;
		return e;
	}
	e.steps = steps_of_epoch(p, epoch);
	e.evaluated = epoch_is_evaluated(w, epoch);
	e.saved_after = epoch_is_saved(p, epoch);
	e.saves = e.saved_after;
	if (p->save_every_ns) {
		e.blocks = e.saves = CHECKPOINTS_AT_FIRST;
	} else if (p->save_every) {
		e.saves = (uint32_t)(e.steps / p->save_every);
		if (e.steps)
			e.blocks = (uint32_t)((e.steps + p->save_every - 1) / p->save_every);
	}
	return e;
}

/* ---- orders ---- */

static uint64_t batch_size(const struct workload *w, int kind)
{
	return (uint64_t)(kind == DATASET_TRAIN ? w->reader.batch_size : w->reader.batch_size_eval);
}

void plan_order(const struct run_plan *p, const struct order_list *list, int kind, uint32_t epoch,
		struct order *out)
{
	order_of_dataset(out, p->w, p->d, (enum dataset_kind)kind, p->at->ranks,
			 batch_size(p->w, kind), p->seed, epoch);
	if (list && list->n)
		out->list = list;
}

int plan_lists(const struct run_plan *p, struct order_list list[DATASET_KINDS], struct err *e)
{
	int rc = 0;

	for (int kind = 0; kind < DATASET_KINDS && rc == 0; kind++) {
		uint64_t samples = dataset_samples(p->d, kind);
		uint64_t n = order_list_entries(p->w, kind == DATASET_EVAL, samples);
		const struct sample_counts *counts = dataset_counts(p->d, (enum dataset_kind)kind);

		if (p->steps[kind] && order_file_sums(p->w, counts))
			rc = order_list_init_files(&list[kind], counts, e);
		else if (p->steps[kind] && n)
			rc = order_list_init(&list[kind], n, e);
		else if (p->steps[kind] && workload_loader(p->w)->deal != DEAL_NONE)
			rc = order_deal_init(&list[kind], p->w, samples, p->at->ranks,
					     batch_size(p->w, kind), e);
	}
	return rc;
}

void plan_fill_lists(const struct run_plan *p, struct order_list list[DATASET_KINDS],
		     uint32_t epoch)
{
	bool evaluated = plan_epoch(p, epoch).evaluated;

	for (int kind = 0; kind < DATASET_KINDS; kind++)
		if (list[kind].n && (kind == DATASET_TRAIN || evaluated))
			order_list_fill(&list[kind], p->w, kind == DATASET_EVAL, p->seed, epoch);
}

/* ---- the whole ---- */

static int no_step(const struct run_plan *p, struct err *e)
{
	const struct workload *w = p->w;
	uint64_t samples = dataset_samples(p->d, DATASET_TRAIN);
	long long batch = (long long)w->reader.batch_size;
	bool enough = samples / p->at->ranks >= (uint64_t)batch;

	if (w->compat.dlio && enough)
		return err_set(
			e, ERR_USAGE,
			"no training step is possible with compat.dlio: DLIO leaves out all %lld "
			"files, because it keeps a multiple of num_samples_per_file (%lld) x "
			"batch_size (%lld) x ranks (%u) files, and makes an epoch without a step. "
			"Use compat.dlio=false, with which all samples are read, or more files",
			(long long)w->dataset.num_files_train,
			(long long)w->dataset.num_samples_per_file, batch, p->at->ranks);
	return err_set(e, ERR_USAGE,
		       "no training step is possible: %llu samples do not fill one batch of %lld "
		       "on each of %u ranks (raise dataset.num_files_train, or lower "
		       "reader.batch_size or the number of ranks)",
		       (unsigned long long)samples, batch, p->at->ranks);
}

static int no_evaluation(const struct run_plan *p, struct err *e)
{
	return err_set(e, ERR_USAGE,
		       "no evaluation step is possible, and nothing else is to be done: %llu "
		       "samples do not fill one batch of %lld on each of %u ranks (raise "
		       "dataset.num_files_eval, or lower reader.batch_size_eval or the number of "
		       "ranks)",
		       (unsigned long long)dataset_samples(p->d, DATASET_EVAL),
		       (long long)p->w->reader.batch_size_eval, p->at->ranks);
}

static int plan_steps(struct run_plan *p, struct err *e)
{
	const struct workload *w = p->w;
	uint64_t samples, given, all;
	struct order o;

	for (int kind = 0; kind < DATASET_KINDS; kind++) {
		plan_order(p, NULL, kind, 1, &o);
		p->steps[kind] = order_steps(&o);
		samples = dataset_samples(p->d, kind);
		given = o.used - order_repeats(&o);
		if (kind == DATASET_TRAIN)
			p->dropped_samples = samples > given ? samples - given : 0;
	}
	if (workload_only_evaluates(w)) {
		p->steps[DATASET_TRAIN] = p->dropped_samples = 0;
		/* DLIO evaluates 0 steps of files that it leaves out */
		if (p->steps[DATASET_EVAL] == 0 &&
		    (!w->compat.dlio || w->dataset.num_files_eval == 0))
			return no_evaluation(p, e);
		return 0;
	}
	if (p->steps[DATASET_TRAIN] == 0)
		return no_step(p, e);
	all = u64_product(p->steps[DATASET_TRAIN], (uint64_t)w->train.epochs);
	if (w->train.total_training_steps > 0 && (uint64_t)w->train.total_training_steps > all)
		return err_set(e, ERR_USAGE,
			       "train.total_training_steps is %lld, but %lld epochs of this "
			       "dataset have only %llu steps: lower it, or raise train.epochs or "
			       "dataset.num_files_train",
			       (long long)w->train.total_training_steps, (long long)w->train.epochs,
			       (unsigned long long)all);
	return 0;
}

static void plan_checkpoints(struct run_plan *p)
{
	const struct workload *w = p->w;
	int64_t steps = w->checkpoint.steps_between_checkpoints;
	double seconds = w->checkpoint.seconds_between_checkpoints;

	if (!w->workflow.checkpoint)
		return;
	if (steps > 0)
		p->save_every = (uint64_t)steps;
	/* rounded up: an interval of less than a ns must not become 0, which means not by time */
	if (w->workflow.train && seconds > 0)
		p->save_every_ns = (int64_t)ceil(seconds * 1e9);
}

unsigned plan_generate_threads(const struct run_place *at)
{
	/* some wait for the disk while others write */
	unsigned share = 2 * host_threads() / run_processes_here(at);
	unsigned threads = at->locals > share ? at->locals : share;

	return threads > GENERATE_THREADS_MAX ? GENERATE_THREADS_MAX : threads;
}

int plan_make(struct run_plan *p, struct err *e)
{
	uint32_t epochs = workload_only_evaluates(p->w) ? evaluations(p->w)
			  : p->w->workflow.train        ? (uint32_t)p->w->train.epochs
							: 1;
	int rc = workload_reads(p->w) ? plan_steps(p, e) : 0;

	if (rc < 0)
		return rc;
	plan_checkpoints(p);
	/* a cap on the steps of the run ends it where it is reached */
	for (uint32_t i = 1; i <= epochs; i++) {
		struct epoch_plan one = plan_epoch(p, i);

		if (p->w->workflow.train && one.steps == 0)
			break;
		p->epochs = i;
		p->train_steps = u64_sum(p->train_steps, one.steps);
		p->eval_steps = u64_sum(p->eval_steps, one.evaluated ? p->steps[DATASET_EVAL] : 0);
		p->saves = u64_sum(p->saves, p->save_every_ns ? 0 : one.saves);
		p->loads = u64_sum(p->loads, one.loads);
	}
	return 0;
}

int plan_draw_seed(struct run_plan *p, struct err *e)
{
	const struct workload *w = p->w;
	struct rng_np rng;

	p->seed = (uint64_t)w->train.seed;
	if (w->reader.sample_shuffle == SHUFFLE_RANDOM ||
	    w->reader.file_shuffle == SHUFFLE_RANDOM) {
		rng_np_seed_entropy(&rng);
		p->seed = rng_np_u32(&rng);
	}
	return run_share(p->at, &p->seed, sizeof(p->seed), e);
}

/* ---- memory ---- */

/* Files of content-dependent size are within 2 % of their estimate. */
static uint64_t most_bytes(const struct dataset *d)
{
	return d->total_bytes == UINT64_MAX ? u64_sum(d->likely_bytes, d->likely_bytes / 50)
					    : d->likely_bytes;
}

/* What the run itself adds to its loaders: times of steps, rank threads and their counters, and a
 * dataset that lives in memory. Orders take none: they are computed. */
static uint64_t own_bytes(const struct run_plan *p, uint64_t rank_bytes)
{
	uint64_t steps = u64_sum(p->train_steps, p->eval_steps);
	uint64_t epochs = p->epochs;
	uint64_t times =
		u64_sum(u64_product(steps, sizeof(struct step_times)),
			u64_product(epochs, sizeof(struct rank_epoch) + sizeof(struct phase)));
	uint64_t total =
		u64_sum(u64_product(u64_sum(times, rank_bytes), p->at->locals),
			u64_sum(u64_product(epochs, sizeof(struct epoch_usage)),
				u64_sum(judge_memory_bytes(epochs), series_memory_bytes())));
	uint64_t writing = plan_generate_threads(p->at) *
			   (uint64_t)(FORMAT_WRITE_SCRATCH + STORE_BATCH_MEMORY);

	/* generation is over before the ranks begin */
	if (p->w->workflow.generate_data && writing > total)
		total = writing;
	if (p->d && store_base_flags(p->store) & STORE_IS_VOLATILE)
		total = u64_sum(total, mem_body_bound(p->d->files[DATASET_TRAIN] +
							      p->d->files[DATASET_EVAL],
						      most_bytes(p->d)));
	/* a run of checkpoints alone has no dataset */
	for (int kind = 0; p->d && kind < DATASET_KINDS; kind++)
		total = u64_sum(
			total,
			u64_sum(order_list_bytes(order_list_entries(p->w, kind == DATASET_EVAL,
								    dataset_samples(p->d, kind))),
				order_deal_bytes(p->w, dataset_samples(p->d, kind), p->at->ranks,
						 batch_size(p->w, kind))));
	for (int kind = 0; p->d && kind < DATASET_KINDS; kind++)
		total = u64_sum(
			total,
			8 * order_file_sums(p->w, dataset_counts(p->d, (enum dataset_kind)kind)));
	if (p->d && p->d->listed)
		total = u64_sum(total, p->d->listed->index_bytes);
	if (p->d && shard_cache_wanted(p->w))
		total = u64_sum(total, shard_cache_bytes(p->d));
	if (p->eval_steps)
		total = u64_sum(total, sizeof(struct io_stat));
	return u64_sum(total, proc_peak_rss_bytes() + UNTOUCHED_BYTES);
}

/* Of a rank's loaders. */
static int loader_bytes(const struct run_plan *p, uint64_t *bytes, struct err *e)
{
	struct loader_config c = {.workload = p->w,
				  .dataset = p->d,
				  .store = p->store,
				  .ranks = p->at->ranks,
				  .batch_size = (uint64_t)p->w->reader.batch_size};
	uint64_t train = 0, eval = 0;
	int rc = p->w->workflow.train ? p->loader->memory_bytes(&c, &train, e) : 0;

	if (rc == 0 && p->w->workflow.evaluation && p->steps[DATASET_EVAL]) {
		c.kind = DATASET_EVAL;
		c.batch_size = (uint64_t)p->w->reader.batch_size_eval;
		rc = p->loader->memory_bytes(&c, &eval, e);
	}
	*bytes = u64_sum(train, eval);
	return rc;
}

int plan_memory(struct run_plan *p, uint64_t rank_bytes, uint64_t checkpoint_bytes,
		uint64_t later_bytes, struct err *e)
{
	uint64_t loaders, total, avail;
	char need[32], have[32];
	int rc = loader_bytes(p, &loaders, e);

	if (rc < 0)
		return rc;
	loaders = u64_product(loaders, p->at->locals);
	total = u64_sum(loaders > later_bytes ? loaders : later_bytes, own_bytes(p, rank_bytes));
	total = u64_sum(total, checkpoint_bytes);
	p->memory_bound_bytes = total;
	total = u64_product(total, run_processes_here(p->at));
	avail = host_available_bytes();
	if (total > avail)
		return err_set(
			e, -ENOMEM,
			"the run needs up to %s of memory, but only %s are available: lower "
			"the number of ranks, reader.read_threads or the record size, or use "
			"reader.access=native",
			str_bytes((double)total, need, sizeof(need)),
			str_bytes((double)avail, have, sizeof(have)));
	return 0;
}
