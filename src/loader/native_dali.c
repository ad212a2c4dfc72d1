/* DALI's own readers, DLIO's data loader "native_dali": one thread per rank reads the samples of
 * its shard one after another through the shuffle buffer into a ring of `prefetch_size` batches (at
 * least 1); a pipeline of `read_threads` threads copies and decodes them batch by batch, and keeps
 * two processed batches beyond the one handed out. With read_threads 0 batches are processed when
 * they are asked for.
 *
 * A place of the ring is free again when its batch was copied, and one of the pipeline's when a
 * batch is handed out. Every epoch begins with an empty buffer, which is filled before the first
 * batch: the cold start of a pipeline that is built anew. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "dataset/order_stream.h"
#include "loader/crew.h"
#include "loader/native_dali_source.h"
#include "workload/time_draw.h"

#define POLL_NS NS_PER_S /* a stop flag set without wake is noticed this soon */

/* One place of a batch. */
struct dali_work {
	struct dali_item *item; /* NULL: the sample before is repeated */
	uint64_t sample, payload;
};

/* A batch on its way. */
struct dali_group {
	struct batch batch; /* first: what is handed out */
	struct dali_work *work;
};

struct native_dali {
	struct loader base;
	struct loader_config config;
	struct dali_source source;
	uint64_t batch_size, depth, groups, items; /* depth: of the reader's ring */
	bool async;                                /* an executor thread processes ahead */

	struct dali_reader reader;
	struct dali_copier *copier;
	uint32_t copiers;
	struct worker_stat *stat; /* the reader's, then the copiers' */
	struct dali_group *group;
	struct dali_work *work;
	struct dali_item *item;
	unsigned char *kept;
	uint64_t kept_bytes;
	struct order_held *held_samples; /* of the shuffle buffer */
	struct rng_np rng;               /* of preprocess times */
	bool preprocess;

	/* slots: places in the reader's ring that are free; places: those of the pipeline's output
	 * queue; the other queues carry what they are named after. */
	struct queue slots, places, spare, free_items, raw, todo, done, ready;

	struct dali_thread {
		struct native_dali *loader;
		void (*main)(struct native_dali *l, uint32_t i);
		uint32_t index;
		pthread_t thread;
		bool running;
		_Atomic uint32_t ended; /* futex word: the thread's last act */
	} * thread;
	uint32_t threads;

	struct order order;
	uint64_t steps, handed;
	uint32_t held;
	bool open;
	_Atomic uint32_t halt;
	_Atomic int64_t woken_ns;
	_Atomic uint32_t stuck;
	/* for describe */
	_Atomic uint64_t epoch, last_step, waiting;
	_Atomic int64_t waiting_since;
};

/* Batches processed and not handed out: the pipeline's prefetch_queue_depth, as DALI has it. */
#define DALI_PIPELINE_DEPTH 2

extern const struct loader_ops loader_native_dali;

/* ---- the threads ---- */

static bool called_off(const struct native_dali *l)
{
	const struct stop_flag *stop = l->config.stop;

	return atomic_load_explicit(&l->halt, memory_order_acquire) ||
	       (stop && atomic_load_explicit(&stop->set, memory_order_relaxed));
}

/* ---- the reader ---- */

static bool read_one(struct native_dali *l, struct order_stream *s, uint64_t sample)
{
	void *item;

	if (called_off(l) || queue_get(&l->free_items, &item) != 1)
		return false;
	dali_reader_get(&l->reader, sample, item);
	if (l->config.progress_ns)
		atomic_store_explicit(l->config.progress_ns, clock_now_ns(), memory_order_relaxed);
	order_stream_add(s, sample, (uint64_t)((struct dali_item *)item - l->item));
	return true;
}

/* Picks a batch, reading what the buffer asks for. */
static bool fill_group(struct native_dali *l, struct order_stream *s, struct dali_group *g)
{
	struct order_held got = {0};
	uint64_t sample;
	bool again;

	for (uint64_t i = 0; i < l->batch_size; i++) {
		while (order_stream_wants(s, &sample))
			if (!read_one(l, s, sample))
				return false;
		if (!order_stream_next(s, &got, &again))
			return false;
		g->work[i] = (struct dali_work){.item = again ? NULL : &l->item[got.item],
						.sample = got.sample};
		if (order_stream_more(s, &sample) && !read_one(l, s, sample))
			return false;
	}
	return true;
}

static void native_dali_read(struct native_dali *l, uint32_t unused)
{
	struct worker_stat *stat = &l->stat[0];
	struct order_stream s;
	struct err failed = {0};
	void *token, *spare;

	(void)unused;
	order_stream_init(&s, &l->order, l->config.rank, l->held_samples);
	failed.code = dali_reader_index(&l->reader, &failed);
	for (uint64_t k = 0; k < l->steps; k++) {
		int64_t idle_from = clock_now_ns();
		struct dali_group *g;

		if (queue_get(&l->slots, &token) != 1 || queue_get(&l->spare, &spare) != 1)
			break;
		g = spare;
		stat->idle_ns += clock_now_ns() - idle_from;
		g->batch = (struct batch){.index = k,
					  .first = k * l->batch_size,
					  .samples = (uint32_t)l->batch_size,
					  .sent_ns = idle_from,
					  .begun_ns = clock_now_ns()};
		worker_work_begin(stat, &g->batch.work);
		if (failed.code < 0)
			g->batch.err = failed;
		else if (!fill_group(l, &s, g))
			break;
		worker_work_end(stat, &g->batch.work);
		stat->batches++;
		if (queue_put(&l->raw, g) < 0)
			break;
	}
	dali_reader_end(&l->reader);
}

/* ---- the copiers ---- */

static void native_dali_copy(struct native_dali *l, uint32_t i)
{
	struct dali_copier *c = &l->copier[i];
	int64_t idle_from = clock_now_ns();
	void *item;

	while (queue_get(&l->todo, &item) == 1) {
		struct dali_work *w = item;

		c->stat->idle_ns += clock_now_ns() - idle_from;
		if (!called_off(l))
			dali_copier_take(c, w->item, &w->payload);
		idle_from = clock_now_ns();
		if (queue_put(&l->done, w) < 0)
			break;
	}
}

/* ---- the executor ---- */

/* A Python function sees one sample after another. */
static void preprocess(struct native_dali *l)
{
	const struct time_dist *delay = &l->config.workload->reader.preprocess_time;
	int64_t begin = clock_now_ns(), deadline = begin, left;

	for (uint64_t i = 0; i < l->batch_size; i++)
		deadline += time_draw_ns(delay, &l->rng);
	while ((left = deadline - clock_now_ns()) > 0 && !called_off(l))
		thread_wait(&l->halt, 0, left < NS_PER_S ? left : NS_PER_S);
	l->stat[1].preprocess_ns += clock_now_ns() - begin;
}

/* Of the copiers; they rest while the executor looks. */
static void copiers_work(const struct native_dali *l, struct batch_work *w,
			 void (*look)(const struct worker_stat *s, struct batch_work *w))
{
	for (uint32_t i = 0; i < l->copiers; i++)
		look(&l->stat[1 + i], w);
}

static bool native_dali_process(struct native_dali *l, struct dali_group *g)
{
	struct batch *b = &g->batch;
	uint64_t sent = 0;
	void *item;

	if (b->err.code < 0) {
		queue_put(&l->slots, l);
		return true;
	}
	copiers_work(l, &b->work, worker_work_begin);
	for (uint64_t i = 0; i < l->batch_size; i++)
		if (g->work[i].item && queue_put(&l->todo, &g->work[i]) == 0)
			sent++;
	for (uint64_t i = 0; i < sent; i++)
		if (queue_get(&l->done, &item) != 1)
			return false;
	if (called_off(l))
		return false;
	for (uint64_t i = 0; i < l->batch_size; i++) {
		struct dali_work *w = &g->work[i];

		if (w->item && w->item->err.code < 0 && b->err.code == 0)
			b->err = w->item->err;
		b->payload_bytes += w->payload;
		order_proof_add(&b->proof, w->sample);
		if (w->item) {
			dali_item_drop(w->item);
			queue_put(&l->free_items, w->item);
		}
	}
	/* the ring's place is free once the batch was copied out of it */
	queue_put(&l->slots, l);
	if (l->preprocess)
		preprocess(l);
	copiers_work(l, &b->work, worker_work_end);
	b->done_ns = clock_now_ns();
	return true;
}

static void native_dali_execute(struct native_dali *l, uint32_t unused)
{
	void *token, *g;

	(void)unused;
	while (queue_get(&l->places, &token) == 1 && queue_get(&l->raw, &g) == 1)
		if (!native_dali_process(l, g) || queue_put(&l->ready, g) < 0)
			break;
}

/* ---- memory ---- */

/* Copying threads: DLIO makes the pipeline with one for read_threads 0. */
static uint32_t copiers_of(const struct workload *w)
{
	return w->reader.read_threads > 0 ? (uint32_t)w->reader.read_threads : 1;
}

/* The reader's prefetch_queue_depth. */
static uint64_t depth_of(const struct workload *w)
{
	return w->reader.prefetch_size > 1 ? (uint64_t)w->reader.prefetch_size : 1;
}

static void native_dali_window(const struct workload *w, uint32_t *workers, uint64_t *batches)
{
	*workers = 1 + copiers_of(w);
	*batches = depth_of(w) + (w->reader.read_threads > 0 ? DALI_PIPELINE_DEPTH : 0);
}

/* Sizes that follow from the workload alone. */
static int size(struct native_dali *l, const struct loader_config *c, struct err *e)
{
	uint64_t samples = dataset_samples(c->dataset, c->kind), fill;

	if (c->batch_size == 0 || c->batch_size > UINT32_MAX)
		return err_set(e, ERR_USAGE,
			       "reader.batch_size is %llu; a batch has 1 to %u samples",
			       (unsigned long long)c->batch_size, UINT32_MAX);
	l->config = *c;
	l->batch_size = c->batch_size;
	l->depth = depth_of(c->workload);
	l->copiers = copiers_of(c->workload);
	l->async = c->workload->reader.read_threads > 0;
	l->threads = 1 + l->copiers + l->async;
	l->groups = l->depth + DALI_PIPELINE_DEPTH + LOADER_HELD_MAX;
	fill = order_fill(c->workload, samples);
	/* buffered, one more read for the one handed out, and a ring of batches */
	l->items = fill + 1 + l->depth * l->batch_size;
	return dali_source_init(&l->source, c, e);
}

static int native_dali_memory_bytes(const struct loader_config *c, uint64_t *out, struct err *e)
{
	struct native_dali *l = try_calloc(1, sizeof(*l), "loader", e);
	uint64_t copier, kept, total, work;
	int rc = l ? size(l, c, e) : -ENOMEM;

	if (rc < 0) {
		free(l);
		return rc;
	}
	copier = dali_copier_bytes(&l->source, e);
	if (copier == 0) {
		free(l);
		return -ENOMEM;
	}
	copier += sizeof(struct worker_stat) + sizeof(struct dali_thread) +
		  worker_stack_bytes(c->workload) + loader_trace_bytes(c);
	work = l->groups * l->batch_size * (sizeof(struct dali_work) + 2 * sizeof(void *));
	total = sizeof(*l) + work + l->groups * (sizeof(struct dali_group) + 4 * sizeof(void *)) +
		l->items * (sizeof(struct dali_item) + sizeof(void *) + sizeof(struct order_held)) +
		dali_reader_bytes(&l->source, l->items) + 2 * worker_stack_bytes(c->workload) +
		loader_trace_bytes(c);
	if (__builtin_mul_overflow(copier, (uint64_t)l->copiers, &copier) ||
	    __builtin_mul_overflow(dali_item_bytes(&l->source), l->items, &kept) ||
	    __builtin_add_overflow(total, copier, &total) ||
	    __builtin_add_overflow(total, kept, out))
		rc = err_set(e, -ENOMEM,
			     "%llu samples on their way to a rank do not fit in memory: lower "
			     "reader.shuffle_size, reader.prefetch_size or reader.batch_size",
			     (unsigned long long)l->items);
	free(l);
	return rc;
}

static int make_queues(struct native_dali *l, struct err *e)
{
	struct {
		struct queue *q;
		uint64_t room;
	} all[] = {
		{&l->slots, l->depth},     {&l->places, DALI_PIPELINE_DEPTH + l->groups},
		{&l->spare, l->groups},    {&l->free_items, l->items},
		{&l->raw, l->groups},      {&l->todo, l->batch_size},
		{&l->done, l->batch_size}, {&l->ready, l->groups},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (queue_init(all[i].q, all[i].room, e) < 0)
			return -ENOMEM;
	return 0;
}

static int allocate(struct native_dali *l, struct err *e)
{
	uint64_t work;

	if (__builtin_mul_overflow(l->groups, l->batch_size, &work) ||
	    __builtin_mul_overflow(l->items, dali_item_bytes(&l->source), &l->kept_bytes))
		return err_set(e, -ENOMEM, "the samples of a loader do not fit in memory");
	l->stat = try_calloc(1 + l->copiers, sizeof(*l->stat), "statistics of workers", e);
	l->copier = l->stat ? try_calloc(l->copiers, sizeof(*l->copier), "threads", e) : NULL;
	l->thread = l->copier ? try_calloc(l->threads, sizeof(*l->thread), "threads", e) : NULL;
	l->group = l->thread ? try_calloc(l->groups, sizeof(*l->group), "batches", e) : NULL;
	l->work = l->group ? try_calloc(work, sizeof(*l->work), "batches", e) : NULL;
	l->item = l->work ? try_calloc(l->items, sizeof(*l->item), "samples", e) : NULL;
	l->held_samples =
		l->item ? try_calloc(l->items, sizeof(*l->held_samples), "samples", e) : NULL;
	if (!l->held_samples)
		return -ENOMEM;
	if (l->kept_bytes) {
		l->kept = buffer_alloc(l->kept_bytes, "samples on their way", e);
		if (!l->kept)
			return -ENOMEM;
	}
	for (uint64_t i = 0; i < l->groups; i++)
		l->group[i].work = &l->work[i * l->batch_size];
	for (uint64_t i = 0; l->kept && i < l->items; i++)
		l->item[i].kept = l->kept + i * dali_item_bytes(&l->source);
	return make_queues(l, e);
}

static int init_threads(struct native_dali *l, struct err *e)
{
	int rc = dali_reader_init(&l->reader, &l->source, &l->stat[0], l->items, e);

	for (uint32_t i = 0; i < l->copiers && rc == 0; i++)
		rc = dali_copier_init(&l->copier[i], &l->source, i + 1, &l->stat[1 + i], e);
	for (uint32_t i = 0; i < l->threads; i++)
		l->thread[i] = (struct dali_thread){
			.loader = l,
			.main = i == 0            ? native_dali_read
				: i <= l->copiers ? native_dali_copy
						  : native_dali_execute,
			.index = i - 1,
		};
	return rc;
}

static void native_dali_release(struct native_dali *l)
{
	struct queue *all[] = {&l->slots, &l->places, &l->spare, &l->free_items,
			       &l->raw,   &l->todo,   &l->done,  &l->ready};

	for (uint64_t i = 0; l->item && i < l->items; i++)
		dali_item_drop(&l->item[i]);
	if (l->copier)
		for (uint32_t i = 0; i < l->copiers && l->copier[i].source; i++)
			dali_copier_release(&l->copier[i]);
	if (l->reader.source)
		dali_reader_release(&l->reader);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		queue_release(all[i]);
	if (l->kept)
		buffer_free(l->kept, l->kept_bytes);
	free(l->held_samples);
	free(l->item);
	free(l->work);
	free(l->group);
	free(l->thread);
	free(l->copier);
	free(l->stat);
	free(l);
}

static int native_dali_create(struct loader **out, const struct loader_config *c, struct err *e)
{
	const struct time_dist *delay = &c->workload->reader.preprocess_time;
	struct native_dali *l = try_calloc(1, sizeof(*l), "loader", e);
	int rc;

	if (!l)
		return -ENOMEM;
	l->base.ops = &loader_native_dali;
	rc = size(l, c, e);
	/* the source is told its config by address */
	l->source.config = &l->config;
	if (rc == 0)
		rc = allocate(l, e);
	if (rc == 0)
		rc = init_threads(l, e);
	if (rc < 0) {
		native_dali_release(l);
		return rc;
	}
	/* DLIO preprocesses the images of these readers, and nothing else */
	l->preprocess = time_dist_waits(delay) &&
			(!c->workload->compat.dlio || l->source.kind == DALI_IMAGE);
	rng_np_seed(&l->rng,
		    (uint32_t)rng_word(rng_key((uint64_t)c->workload->train.seed, c->kind, c->rank),
				       0));
	*out = &l->base;
	return 0;
}

static void native_dali_rewind(struct native_dali *l)
{
	struct queue *all[] = {&l->slots, &l->places, &l->spare, &l->free_items,
			       &l->raw,   &l->todo,   &l->done,  &l->ready};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		queue_reopen(all[i]);
	for (uint64_t i = 0; i < l->items; i++) {
		dali_item_drop(&l->item[i]);
		queue_put(&l->free_items, &l->item[i]);
	}
	for (uint64_t i = 0; i < l->groups; i++)
		queue_put(&l->spare, &l->group[i]);
	for (uint64_t i = 0; i < l->depth; i++)
		queue_put(&l->slots, l);
	for (uint64_t i = 0; i < DALI_PIPELINE_DEPTH; i++)
		queue_put(&l->places, l);
}

static void native_dali_close_queues(struct native_dali *l)
{
	struct queue *all[] = {&l->slots, &l->places, &l->spare, &l->free_items,
			       &l->raw,   &l->todo,   &l->done,  &l->ready};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		queue_close(all[i]);
}

/* ---- the epoch ---- */

static struct native_dali *dali_of(struct loader *l)
{
	return (struct native_dali *)l;
}

static const struct native_dali *dali_of_const(const struct loader *l)
{
	return (const struct native_dali *)l;
}

static void halt(struct native_dali *l, uint32_t why)
{
	atomic_fetch_or(&l->halt, why);
	thread_wake(&l->halt, -1);
	native_dali_close_queues(l);
}

static void native_dali_wake(struct loader *base)
{
	struct native_dali *l = dali_of(base);
	int64_t never = 0;

	atomic_compare_exchange_strong(&l->woken_ns, &never, clock_now_ns());
	halt(l, HALT_STOP);
}

static bool stopped(struct native_dali *l)
{
	if (atomic_load_explicit(&l->halt, memory_order_acquire) & HALT_STOP)
		return true;
	if (!l->config.stop || !atomic_load_explicit(&l->config.stop->set, memory_order_relaxed))
		return false;
	native_dali_wake(&l->base);
	return true;
}

static int canceled(const struct native_dali *l, struct err *e)
{
	return err_set(e, ERR_CANCELED, "rank %u: the run was told to stop", l->config.rank);
}

static void *thread_main(void *arg)
{
	struct dali_thread *t = arg;

	t->main(t->loader, t->index);
	atomic_store_explicit(&t->ended, 1, memory_order_release);
	thread_wake(&t->ended, 1);
	return NULL;
}

static int start_threads(struct native_dali *l, struct err *e)
{
	const struct loader_config *c = &l->config;

	for (uint32_t i = 0; i < l->threads; i++) {
		struct dali_thread *t = &l->thread[i];
		char name[32];
		int rc;

		snprintf(name, sizeof(name), "%c%u.%u", c->kind == DATASET_TRAIN ? 'd' : 'e',
			 c->rank, i);
		atomic_store_explicit(&t->ended, 0, memory_order_relaxed);
		rc = thread_start(&t->thread, thread_main, t, worker_stack_bytes(c->workload), name,
				  e);
		if (rc < 0)
			return rc;
		t->running = true;
	}
	return 0;
}

/* The number of threads that hang. */
static uint32_t join_threads(struct native_dali *l)
{
	uint32_t stuck = 0;

	for (uint32_t i = 0; i < l->threads; i++) {
		struct dali_thread *t = &l->thread[i];
		int64_t patience = 1;

		while (t->running && patience > 0) {
			patience = crew_patience_ns(stopped(l) ? atomic_load(&l->woken_ns) : 0,
						    l->config.grace_ns);
			if (!atomic_load_explicit(&t->ended, memory_order_acquire)) {
				thread_wait(&t->ended, 0, patience);
				continue;
			}
			pthread_join(t->thread, NULL);
			t->running = false;
		}
		stuck += t->running;
	}
	atomic_store(&l->stuck, stuck);
	return stuck;
}

static int native_dali_start(struct loader *base, const struct order *order, uint64_t steps,
			     struct err *e)
{
	struct native_dali *l = dali_of(base);
	uint64_t most = order_steps(order);
	int rc;

	if (l->open || l->held)
		return err_set(e, -EINVAL,
			       "rank %u: an epoch was begun before the last one was ended",
			       l->config.rank);
	if (order->batch != l->batch_size)
		return err_set(e, -EINVAL,
			       "rank %u: the order has batches of %llu, the loader of %llu",
			       l->config.rank, (unsigned long long)order->batch,
			       (unsigned long long)l->batch_size);
	if (order->fill > l->items)
		return err_set(e, -EINVAL,
			       "rank %u: the order has a larger shuffle buffer than the loader",
			       l->config.rank);
	if (stopped(l))
		return canceled(l, e);
	l->order = *order;
	l->steps = steps < most ? steps : most;
	l->handed = 0;
	atomic_fetch_and(&l->halt, ~HALT_DROP);
	atomic_store(&l->last_step, l->steps);
	atomic_fetch_add(&l->epoch, 1);
	native_dali_rewind(l);
	l->open = true;
	rc = start_threads(l, e);
	if (rc < 0) {
		halt(l, HALT_DROP);
		join_threads(l);
		l->open = false;
	}
	return rc;
}

/* The next batch out of a queue. */
static int take(struct native_dali *l, struct queue *q, struct dali_group **out)
{
	void *item;

	while (!stopped(l)) {
		if (queue_get_timeout(q, &item, POLL_NS) == 1) {
			*out = item;
			return 0;
		}
	}
	return ERR_CANCELED;
}

static void waits(struct native_dali *l, uint64_t batch)
{
	if (batch)
		atomic_store_explicit(&l->waiting_since, clock_now_ns(), memory_order_relaxed);
	atomic_store_explicit(&l->waiting, batch, memory_order_release);
}

static int native_dali_next(struct loader *base, struct batch **out, struct err *e)
{
	struct native_dali *l = dali_of(base);
	struct dali_group *g = NULL;
	int rc;

	*out = NULL;
	if (!l->open || l->held == LOADER_HELD_MAX)
		return err_set(e, -EINVAL, "rank %u: a batch was asked for %s", l->config.rank,
			       l->open ? "before one was given back" : "outside of an epoch");
	if (stopped(l))
		return canceled(l, e);
	if (l->handed == l->steps)
		return 0;
	waits(l, l->handed + 1);
	rc = take(l, l->async ? &l->ready : &l->raw, &g);
	if (rc == 0 && !l->async && !native_dali_process(l, g))
		rc = ERR_CANCELED;
	waits(l, 0);
	if (rc < 0)
		return canceled(l, e);
	l->handed++;
	if (l->async)
		queue_put(&l->places, l);
	if (l->config.progress_ns)
		atomic_store_explicit(l->config.progress_ns, clock_now_ns(), memory_order_relaxed);
	if (g->batch.err.code < 0) {
		rc = g->batch.err.code;
		if (e)
			*e = g->batch.err;
		queue_put(&l->spare, g);
		return rc;
	}
	l->held++;
	*out = &g->batch;
	return 1;
}

static void native_dali_give_back(struct loader *base, struct batch *b)
{
	struct native_dali *l = dali_of(base);

	l->held--;
	queue_put(&l->spare, (struct dali_group *)b);
}

static void native_dali_describe(const struct loader *base, char *out, size_t out_size);

static int native_dali_finish(struct loader *base, struct err *e)
{
	struct native_dali *l = dali_of(base);
	char what[ERR_TEXT_MAX / 2];

	if (!l->open)
		return 0;
	l->open = false;
	halt(l, HALT_DROP);
	if (join_threads(l) == 0)
		return 0;
	native_dali_describe(base, what, sizeof(what));
	return err_set(e, -ETIMEDOUT, "%s", what);
}

static const struct worker_stat *native_dali_stats(const struct loader *base, uint32_t *workers)
{
	*workers = 1 + dali_of_const(base)->copiers;
	return dali_of_const(base)->stat;
}

/* "DALI's reader has been at sample 118 ('...') for 34 s" */
static bool describe_thread(const struct native_dali *l, const char *who, uint64_t doing,
			    int64_t since, char *out, size_t out_size)
{
	uint64_t sample = doing - 1;
	char path[DATASET_PATH_MAX] = "?", age[32];

	if (doing == 0)
		return false;
	dataset_path(l->config.dataset, l->config.kind,
		     sample / l->config.dataset->samples_per_file, path, sizeof(path), NULL);
	snprintf(out, out_size, "%s has been at sample %llu ('%s') for %s", who,
		 (unsigned long long)sample, path,
		 str_seconds((double)(clock_now_ns() - since) * 1e-9, age, sizeof(age)));
	return true;
}

static void native_dali_describe(const struct loader *base, char *out, size_t out_size)
{
	const struct native_dali *l = dali_of_const(base);
	uint64_t batch = atomic_load_explicit(&l->waiting, memory_order_acquire);
	char state[160], who[DATASET_PATH_MAX + 160], age[32];
	uint32_t stuck = atomic_load(&l->stuck), i = 0;
	bool busy;

	if (stuck)
		snprintf(state, sizeof(state), "gave up on %u hung thread%s", stuck,
			 stuck == 1 ? "" : "s");
	else if (batch)
		snprintf(state, sizeof(state), "waits for batch %llu of %llu of %s %llu for %s",
			 (unsigned long long)batch, (unsigned long long)atomic_load(&l->last_step),
			 l->config.kind == DATASET_TRAIN ? "epoch" : "evaluation",
			 (unsigned long long)atomic_load(&l->epoch),
			 str_seconds((double)(clock_now_ns() - atomic_load(&l->waiting_since)) *
					     1e-9,
				     age, sizeof(age)));
	else
		snprintf(state, sizeof(state), "does not wait for its loader");
	busy = describe_thread(l, "the reader thread",
			       atomic_load_explicit(&l->reader.doing, memory_order_acquire),
			       atomic_load_explicit(&l->reader.since_ns, memory_order_relaxed), who,
			       sizeof(who));
	for (; !busy && i < l->copiers; i++)
		busy = describe_thread(
			l, "a copying thread",
			atomic_load_explicit(&l->copier[i].doing, memory_order_acquire),
			atomic_load_explicit(&l->copier[i].since_ns, memory_order_relaxed), who,
			sizeof(who));
	snprintf(out, out_size, "rank %u %s; %s", l->config.rank, state,
		 busy ? who : "none of its threads is busy");
}

static unsigned native_dali_destroy(struct loader *base)
{
	struct native_dali *l = dali_of(base);

	if (!l)
		return 0;
	halt(l, HALT_DROP);
	if (join_threads(l) > 0) {
		for (uint32_t i = 0; i < l->threads; i++)
			if (l->thread[i].running)
				pthread_detach(l->thread[i].thread);
		return atomic_load(&l->stuck);
	}
	native_dali_release(l);
	return 0;
}

const struct loader_ops loader_native_dali = {
	.is.name = "native_dali",
	.is.help = "DALI's own readers: one reading thread, shards, shuffle buffer, mapped files.",
	.is.flags = LOADER_SHARDS | LOADER_READS_AS_DALI,
	.is.keys = (const struct loader_key[]){{"reader.stick_to_shard", USED_ALWAYS},
					       {"reader.pad_last_batch", USED_ALWAYS},
					       {"reader.read_ahead", USED_BY_MAPS},
					       {NULL, 0}},
	.window = native_dali_window,
	.memory_bytes = native_dali_memory_bytes,
	.create = native_dali_create,
	.start = native_dali_start,
	.next = native_dali_next,
	.give_back = native_dali_give_back,
	.finish = native_dali_finish,
	.stats = native_dali_stats,
	.describe = native_dali_describe,
	.wake = native_dali_wake,
	.destroy = native_dali_destroy,
};
