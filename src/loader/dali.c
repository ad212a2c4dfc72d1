/* DALI's parallel external source, DLIO's data loader "dali": Python workers read the samples of
 * each batch together, and the pipeline hands batches out in order.
 *
 * A batch is cut into as many runs of consecutive samples as there are workers (fewer when it has
 * fewer samples), the first ones a sample longer; the runs are dealt to the workers in turn, from
 * batch to batch. Each worker reads its runs first in first out. `depth` batches (prefetch_size, or
 * 2) are scheduled beyond the one handed out, and the next one when one is handed out.
 *
 * Without workers the callback runs in the rank: the pipeline fills its queue before it hands out
 * the first batch, and afterwards reads one batch whenever one is asked for. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "loader/workers.h"

#define DEPTH_DEFAULT 2 /* prefetch_queue_depth of DALI */

/* A batch and the runs it was cut into. */
struct whole {
	struct batch batch; /* first: what is handed out */
	uint32_t missing;   /* runs that are not back */
};

struct dali {
	struct workers workers;   /* first */
	uint64_t depth, capacity; /* capacity: batches in the window */
	uint32_t runs;            /* of a batch */

	struct whole *whole, **spare, **window; /* batch k at k mod capacity of the window */
	struct task *run;                       /* `runs` of each batch */
	uint64_t wholes, spares;
	uint64_t sent, out; /* batches of this epoch; runs that are not back */
};

extern const struct loader_ops loader_dali;

static struct dali *dali_of(struct loader *l)
{
	return (struct dali *)l;
}

static const struct dali *dali_of_const(const struct loader *l)
{
	return (const struct dali *)l;
}

static uint64_t depth_of(const struct workload *w)
{
	return w->reader.prefetch_size > 0 ? (uint64_t)w->reader.prefetch_size : DEPTH_DEFAULT;
}

static uint32_t runs_of(uint64_t batch, uint32_t workers)
{
	return workers == 0 ? 1 : batch < workers ? (uint32_t)batch : workers;
}

static void dali_window(const struct workload *w, uint32_t *workers, uint64_t *batches)
{
	*workers = (uint32_t)w->reader.read_threads;
	*batches = *workers ? depth_of(w) : depth_of(w) - 1;
}

static int check_config(const struct loader_config *c, struct err *e)
{
	int rc = loader_check_batch(c, e);

	return rc < 0 ? rc : loader_check_threads(c, e);
}

/* Runs of one worker that may be queued: its share of all that exist. */
static uint64_t queued(uint64_t wholes, uint32_t runs, uint32_t workers)
{
	return workers ? wholes * runs / workers + 1 : 0;
}

static int dali_memory_bytes(const struct loader_config *c, uint64_t *out, struct err *e)
{
	uint64_t wholes = depth_of(c->workload) + LOADER_HELD_MAX, crew = 0;
	uint32_t workers, runs;
	int rc = check_config(c, e);

	if (rc < 0)
		return rc;
	workers = (uint32_t)c->workload->reader.read_threads;
	runs = runs_of(c->batch_size, workers);
	rc = workers_memory_bytes(c, workers, queued(wholes, runs, workers), wholes * runs, &crew,
				  e);
	if (rc < 0)
		return rc;
	*out = crew + sizeof(struct dali) +
	       wholes * (sizeof(struct whole) + 2 * sizeof(void *) + runs * sizeof(struct task));
	return 0;
}

static int allocate_batches(struct dali *l, struct err *e)
{
	l->whole = try_calloc(l->wholes, sizeof(*l->whole), "batches", e);
	l->spare = l->whole ? try_calloc(l->wholes, sizeof(void *), "batches", e) : NULL;
	l->window = l->spare ? try_calloc(l->capacity, sizeof(void *), "batches", e) : NULL;
	l->run = l->window ? try_calloc(l->wholes * l->runs, sizeof(*l->run), "parts of batches", e)
			   : NULL;
	if (!l->run)
		return -ENOMEM;
	for (uint64_t i = 0; i < l->wholes; i++)
		l->spare[l->spares++] = &l->whole[i];
	return 0;
}

static void release_loader(struct crew *c)
{
	struct dali *l = (struct dali *)c;

	workers_release(&l->workers);
	free(l->run);
	free(l->window);
	free(l->spare);
	free(l->whole);
	free(l);
}

static int dali_create(struct loader **out, const struct loader_config *c, struct err *e)
{
	uint32_t workers;
	struct dali *l;
	int rc = check_config(c, e);

	if (rc < 0)
		return rc;
	l = try_calloc(1, sizeof(*l), "loader", e);
	if (!l)
		return -ENOMEM;
	workers = (uint32_t)c->workload->reader.read_threads;
	l->depth = l->capacity = depth_of(c->workload);
	l->runs = runs_of(c->batch_size, workers);
	l->wholes = l->capacity + LOADER_HELD_MAX;
	rc = workers_init(&l->workers, &loader_dali, c, workers,
			  queued(l->wholes, l->runs, workers), l->wholes * l->runs, e);
	if (rc == 0)
		rc = allocate_batches(l, e);
	if (rc < 0) {
		release_loader(&l->workers.crew);
		return rc;
	}
	*out = &l->workers.crew.base;
	return 0;
}

/* Cuts batch `sent` and sends its runs out. */
static void schedule_batch(struct dali *l)
{
	const struct crew *c = &l->workers.crew;
	uint64_t k = l->sent, first = k * c->config.batch_size;
	uint32_t workers = l->workers.count, samples = (uint32_t)c->config.batch_size;
	struct whole *b;

	if (k == c->steps)
		return;
	l->sent++;
	assert(l->spares > 0);
	b = l->spare[--l->spares];
	l->window[k % l->capacity] = b;
	b->missing = l->runs;
	b->batch.sent_ns = clock_now_ns();
	for (uint32_t i = 0; i < l->runs; i++) {
		struct task *t = &l->run[(uint64_t)(b - l->whole) * l->runs + i];
		uint32_t n = samples / l->runs + (i < samples % l->runs);

		t->kind = TASK_READ;
		t->batch.index = k;
		t->batch.first = first;
		t->batch.samples = n;
		t->batch.sent_ns = b->batch.sent_ns;
		t->batch.err.code = 0;
		t->batch.worker = workers ? (uint32_t)((k * l->runs + i) % workers) : 0;
		first += n;
		l->out++;
		if (workers)
			workers_send(&l->workers, t->batch.worker, t);
	}
}

static struct whole *whole_of(struct dali *l, const struct task *t)
{
	return &l->whole[(uint64_t)(t - l->run) / l->runs];
}

static int dali_start(struct loader *base, const struct order *order, uint64_t steps, struct err *e)
{
	struct dali *l = dali_of(base);
	int rc = crew_begin(&l->workers.crew, order, steps, e);

	if (rc == 0)
		rc = workers_begin(&l->workers, e);
	if (rc < 0)
		return rc;
	l->sent = l->out = 0;
	l->workers.crew.open = true;
	for (uint64_t i = 0; i < l->depth && l->workers.count; i++)
		schedule_batch(l);
	return 0;
}

/* What the runs did, as one batch; the first run's failure is the batch's. */
static void join_runs(struct dali *l, struct whole *b)
{
	const struct task *run = &l->run[(uint64_t)(b - l->whole) * l->runs];
	struct batch *out = &b->batch;
	int64_t sent = out->sent_ns;

	*out = run[0].batch;
	out->sent_ns = sent;
	for (uint32_t i = 1; i < l->runs; i++) {
		const struct batch *part = &run[i].batch;

		out->samples += part->samples;
		if (part->begun_ns < out->begun_ns)
			out->begun_ns = part->begun_ns;
		if (part->done_ns > out->done_ns)
			out->done_ns = part->done_ns;
		out->payload_bytes += part->payload_bytes;
		batch_work_merge(&out->work, &part->work);
		order_proof_merge(&out->proof, &part->proof);
		if (out->err.code == 0 && part->err.code < 0)
			out->err = part->err;
	}
}

/* One run comes back. */
static int receive_run(struct dali *l)
{
	struct task *t;

	if (workers_receive(&l->workers, &t) < 0)
		return ERR_CANCELED;
	l->out--;
	whole_of(l, t)->missing--;
	return 0;
}

static void read_inline(struct dali *l)
{
	struct whole *b;

	schedule_batch(l);
	b = l->window[(l->sent - 1) % l->capacity];
	workers_read_inline(&l->workers, &l->run[(uint64_t)(b - l->whole)]);
	b->missing = 0;
	l->out--;
}

/* The batch whose turn it is. */
static int receive_in_turn(struct dali *l, struct whole **out)
{
	struct crew *c = &l->workers.crew;
	struct whole **turn = &l->window[c->handed % l->capacity];

	while (l->workers.count == 0 && l->sent < c->steps && l->sent < c->handed + l->depth &&
	       !crew_stopped(c))
		read_inline(l);
	if (l->workers.count == 0 && l->sent == c->handed)
		return ERR_CANCELED;
	while ((*turn)->missing > 0)
		if (receive_run(l) < 0)
			return ERR_CANCELED;
	*out = *turn;
	*turn = NULL;
	return 0;
}

static int dali_next(struct loader *base, struct batch **out, struct err *e)
{
	struct dali *l = dali_of(base);
	struct crew *c = &l->workers.crew;
	struct whole *b = NULL;
	int rc = crew_ask(c, e);

	*out = NULL;
	if (rc <= 0)
		return rc;
	crew_waits(c, c->handed + 1);
	rc = receive_in_turn(l, &b);
	crew_waits(c, 0);
	if (rc < 0)
		return crew_canceled(c, e);
	if (l->workers.count)
		schedule_batch(l);
	join_runs(l, b);
	rc = crew_hand_out(c, &b->batch, clock_now_ns(), e);
	if (rc < 0)
		l->spare[l->spares++] = b;
	else
		*out = &b->batch;
	return rc;
}

static void dali_give_back(struct loader *base, struct batch *b)
{
	struct dali *l = dali_of(base);

	assert(l->workers.crew.held > 0 && l->spares < l->wholes);
	l->workers.crew.held--;
	l->spare[l->spares++] = (struct whole *)b;
}

static int dali_finish(struct loader *base, struct err *e)
{
	struct dali *l = dali_of(base);
	struct crew *c = &l->workers.crew;
	bool woken;

	if (!c->open)
		return 0;
	c->open = false;
	if (l->out > 0)
		crew_drop(c);
	while (l->out > 0 && receive_run(l) == 0)
		;
	woken = l->out > 0 || crew_stopped(c);
	for (uint64_t k = c->handed; k < l->sent && !woken; k++)
		l->spare[l->spares++] = l->window[k % l->capacity];
	return workers_end(&l->workers, woken, e);
}

static void dali_describe(const struct loader *base, char *out, size_t out_size)
{
	crew_describe(&dali_of_const(base)->workers.crew, UINT32_MAX, out, out_size);
}

static unsigned dali_destroy(struct loader *base)
{
	return crew_destroy(base, release_loader);
}

const struct loader_ops loader_dali = {
	.is.name = "dali",
	.is.help = "DALI's parallel external source: the samples of a batch over Python workers.",
	.is.rule = RULE_EXTERNAL,
	.is.keys = (const struct loader_key[]){{"reader.worker_start_time", USED_BY_WORKERS},
					       {"reader.worker_init_time", USED_BY_WORKERS},
					       {"reader.worker_resume_time", USED_BY_WORKERS},
					       {NULL, 0}},
	.window = dali_window,
	.memory_bytes = dali_memory_bytes,
	.create = dali_create,
	.start = dali_start,
	.next = dali_next,
	.give_back = dali_give_back,
	.finish = dali_finish,
	.stats = crew_stats,
	.describe = dali_describe,
	.wake = crew_wake,
	.destroy = dali_destroy,
};
