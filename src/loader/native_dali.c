/* DALI's own readers, DLIO's data loader "native_dali": one thread per rank reads the samples of
 * its shard one after another through the shuffle buffer into a ring of `prefetch_size` batches (at
 * least 1); a pipeline of `read_threads` threads copies and decodes them batch by batch, and keeps
 * two processed batches beyond the one handed out. With read_threads 0 batches are processed when
 * they are asked for.
 *
 * A place of the ring is free again when its batch was copied, and one of the pipeline's when a
 * batch is handed out. Every epoch begins with an empty buffer, which is filled before the first
 * batch: the cold start of a new pipeline. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "dataset/order_proof.h"
#include "loader/crew.h"
#include "loader/native_dali_source.h"
#include "workload/time_draw.h"

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
	struct crew crew; /* first */
	struct dali_source source;
	uint64_t batch_size, depth, groups, items; /* depth: of the reader's ring */
	bool async;                                /* an executor thread processes ahead */

	struct dali_reader reader;
	struct dali_copying {
		struct native_dali *loader;
		struct dali_copier copier;
	} * copying;
	uint32_t copiers; /* the crew's statistics are the reader's, then theirs */
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
};

/* Batches processed and not handed out: the pipeline's prefetch_queue_depth, as DALI has it. */
#define DALI_PIPELINE_DEPTH 2

extern const struct loader_ops loader_native_dali;

/* ---- the threads ---- */

static struct native_dali *dali_of(struct loader *l)
{
	return (struct native_dali *)l;
}

static const struct native_dali *dali_of_const(const struct loader *l)
{
	return (const struct native_dali *)l;
}

/* ---- the reader ---- */

static bool read_one(struct native_dali *l, struct order_stream *s, uint64_t sample)
{
	void *item;

	if (crew_called_off(&l->crew) || queue_get(&l->free_items, &item) != 1)
		return false;
	dali_reader_get(&l->reader, sample, item);
	crew_progress(&l->crew, clock_now_ns());
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

static void reader_main(void *arg)
{
	struct native_dali *l = arg;
	struct worker_stat *stat = &l->crew.stat[0];
	struct order_stream s;
	struct err failed = {0};
	void *token, *spare;

	store_serve_rank(l->crew.config.rank);
	order_stream_init(&s, &l->crew.order, l->crew.config.rank, l->held_samples);
	failed.code = dali_reader_index(&l->reader, &failed);
	for (uint64_t k = 0; k < l->crew.steps; k++) {
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
		worker_note_delay(stat, clock_now_ns() - g->batch.begun_ns);
		worker_work_end(stat, &g->batch.work);
		stat->batches++;
		if (queue_put(&l->raw, g) < 0)
			break;
	}
	dali_reader_end(&l->reader);
}

/* ---- the copiers ---- */

static void copier_main(void *arg)
{
	struct dali_copying *copying = arg;
	struct native_dali *l = copying->loader;
	struct dali_copier *c = &copying->copier;
	int64_t idle_from = clock_now_ns(), begin;
	void *item;

	while (queue_get(&l->todo, &item) == 1) {
		struct dali_work *w = item;

		begin = clock_now_ns();
		c->stat->idle_ns += begin - idle_from;
		if (!crew_called_off(&l->crew))
			dali_copier_take(c, w->item, &w->payload);
		idle_from = clock_now_ns();
		worker_note_delay(c->stat, idle_from - begin);
		if (queue_put(&l->done, w) < 0)
			break;
	}
}

/* ---- the executor ---- */

/* A Python function sees one sample after another. */
static void wait_for_function(struct native_dali *l)
{
	const struct time_dist *delay = &l->crew.config.workload->reader.preprocess_time;
	int64_t begin = clock_now_ns(), deadline = begin, left;

	for (uint64_t i = 0; i < l->batch_size; i++)
		deadline += time_draw_ns(delay, &l->rng);
	while ((left = deadline - clock_now_ns()) > 0 && !crew_called_off(&l->crew))
		thread_wait(&l->crew.halt, 0, left < NS_PER_S ? left : NS_PER_S);
	l->crew.stat[1].preprocess_ns += clock_now_ns() - begin;
}

/* Of the copiers; they rest while the executor looks. */
static void copiers_work(const struct native_dali *l, struct batch_work *w,
			 void (*look)(const struct worker_stat *s, struct batch_work *w))
{
	for (uint32_t i = 0; i < l->copiers; i++)
		look(&l->crew.stat[1 + i], w);
}

static bool process_batch(struct native_dali *l, struct dali_group *g)
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
	if (crew_called_off(&l->crew))
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
		wait_for_function(l);
	copiers_work(l, &b->work, worker_work_end);
	b->done_ns = clock_now_ns();
	return true;
}

static void executor_main(void *arg)
{
	struct native_dali *l = arg;
	void *token, *g;

	while (queue_get(&l->places, &token) == 1 && queue_get(&l->raw, &g) == 1)
		if (!process_batch(l, g) || queue_put(&l->ready, g) < 0)
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
static int set_sizes(struct native_dali *l, const struct loader_config *c, struct crew_size *size,
		     struct err *e)
{
	uint64_t samples = dataset_samples(c->dataset, c->kind);
	int rc = loader_check_batch(c, e);

	if (rc < 0)
		return rc;
	l->batch_size = c->batch_size;
	l->depth = depth_of(c->workload);
	l->copiers = copiers_of(c->workload);
	l->async = c->workload->reader.read_threads > 0;
	l->groups = l->depth + DALI_PIPELINE_DEPTH + LOADER_HELD_MAX;
	/* buffered, one more read for the one handed out, and a ring of batches */
	l->items = order_fill(c->workload, samples) + 1 + l->depth * l->batch_size;
	*size = (struct crew_size){.threads = 1 + l->copiers + l->async, .stats = 1 + l->copiers};
	return dali_source_init(&l->source, c, e);
}

static int add_memory(const struct native_dali *l, const struct loader_config *c,
		      const struct crew_size *size, uint64_t *out, struct err *e)
{
	uint64_t copiers = dali_copier_bytes(&l->source, e), crew = 0, kept, total;
	int rc = copiers ? crew_memory_bytes(c, NULL, size, &crew, e) : -ENOMEM;

	if (rc < 0)
		return rc;
	total = sizeof(*l) +
		l->groups * l->batch_size * (sizeof(struct dali_work) + 2 * sizeof(void *)) +
		l->groups * (sizeof(struct dali_group) + 4 * sizeof(void *)) +
		l->items * (sizeof(struct dali_item) + sizeof(void *) + sizeof(struct order_held)) +
		dali_reader_bytes(&l->source, l->items) + l->copiers * sizeof(struct dali_copying);
	if (!__builtin_mul_overflow(copiers, (uint64_t)l->copiers, &copiers) &&
	    !__builtin_mul_overflow(dali_item_bytes(&l->source), l->items, &kept) &&
	    !__builtin_add_overflow(total, crew, &total) &&
	    !__builtin_add_overflow(total, copiers, &total) &&
	    !__builtin_add_overflow(total, kept, out))
		return 0;
	return err_set(e, -ENOMEM,
		       "%llu samples buffered for one rank do not fit in memory: lower "
		       "reader.shuffle_size, reader.prefetch_size or reader.batch_size",
		       (unsigned long long)l->items);
}

static int native_dali_memory_bytes(const struct loader_config *c, uint64_t *out, struct err *e)
{
	struct native_dali *l = try_calloc(1, sizeof(*l), "loader", e);
	struct crew_size size;
	int rc = l ? set_sizes(l, c, &size, e) : -ENOMEM;

	if (rc == 0)
		rc = add_memory(l, c, &size, out, e);
	free(l);
	return rc;
}

#define QUEUES 8

static struct queue *queue_number(struct native_dali *l, int i)
{
	struct queue *all[QUEUES] = {&l->slots, &l->places, &l->spare, &l->free_items,
				     &l->raw,   &l->todo,   &l->done,  &l->ready};

	return all[i];
}

static void native_dali_close_queues(struct crew *c)
{
	for (int i = 0; i < QUEUES; i++)
		queue_close(queue_number((struct native_dali *)c, i));
}

static int make_queues(struct native_dali *l, struct err *e)
{
	const uint64_t room[QUEUES] = {l->depth,      DALI_PIPELINE_DEPTH + l->groups,
				       l->groups,     l->items,
				       l->groups,     l->batch_size,
				       l->batch_size, l->groups};

	for (int i = 0; i < QUEUES; i++)
		if (queue_init(queue_number(l, i), room[i], e) < 0)
			return -ENOMEM;
	return 0;
}

static int allocate_samples(struct native_dali *l, struct err *e)
{
	uint64_t work;

	if (__builtin_mul_overflow(l->groups, l->batch_size, &work) ||
	    __builtin_mul_overflow(l->items, dali_item_bytes(&l->source), &l->kept_bytes))
		return err_set(e, -ENOMEM, "the samples of a loader do not fit in memory");
	l->copying = try_calloc(l->copiers, sizeof(*l->copying), "threads", e);
	l->group = l->copying ? try_calloc(l->groups, sizeof(*l->group), "batches", e) : NULL;
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
	int rc = dali_reader_init(&l->reader, &l->source, &l->crew.stat[0], l->items, e);

	for (uint32_t i = 0; i < l->copiers && rc == 0; i++) {
		l->copying[i].loader = l;
		rc = dali_copier_init(&l->copying[i].copier, &l->source, i + 1,
				      &l->crew.stat[1 + i], e);
	}
	return rc;
}

static void release_loader(struct crew *c)
{
	struct native_dali *l = (struct native_dali *)c;

	for (uint64_t i = 0; l->item && i < l->items; i++)
		dali_item_drop(&l->item[i]);
	for (uint32_t i = 0; l->copying && i < l->copiers && l->copying[i].copier.source; i++)
		dali_copier_release(&l->copying[i].copier);
	if (l->reader.source)
		dali_reader_release(&l->reader);
	for (int i = 0; i < QUEUES; i++)
		queue_release(queue_number(l, i));
	if (l->kept)
		buffer_free(l->kept, l->kept_bytes);
	free(l->held_samples);
	free(l->item);
	free(l->work);
	free(l->group);
	free(l->copying);
	crew_release(&l->crew);
	free(l);
}

static int native_dali_create(struct loader **out, const struct loader_config *c, struct err *e)
{
	const struct time_dist *delay = &c->workload->reader.preprocess_time;
	struct native_dali *l = try_calloc(1, sizeof(*l), "loader", e);
	struct crew_size size;
	int rc;

	if (!l)
		return -ENOMEM;
	rc = set_sizes(l, c, &size, e);
	/* the source keeps the config's address */
	l->source.config = &l->crew.config;
	if (rc == 0)
		rc = crew_init(&l->crew, &loader_native_dali, c, &size, native_dali_close_queues,
			       e);
	if (rc == 0)
		rc = allocate_samples(l, e);
	if (rc == 0)
		rc = init_threads(l, e);
	if (rc < 0) {
		release_loader(&l->crew);
		return rc;
	}
	/* DLIO preprocesses the images of these readers, and nothing else */
	l->preprocess = time_dist_waits(delay) &&
			(!c->workload->compat.dlio || l->source.kind == DALI_IMAGE);
	rng_np_seed(&l->rng,
		    (uint32_t)rng_word(rng_key((uint64_t)c->workload->train.seed, c->kind, c->rank),
				       0));
	*out = &l->crew.base;
	return 0;
}

static void rewind_epoch(struct native_dali *l)
{
	for (int i = 0; i < QUEUES; i++)
		queue_reopen(queue_number(l, i));
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

/* ---- the epoch ---- */

static int start_threads(struct native_dali *l, struct err *e)
{
	char letter = l->crew.config.kind == DATASET_TRAIN ? 'd' : 'e';
	int rc = crew_start_thread(&l->crew, 0, reader_main, l, letter, 0, e);
	uint32_t at = 1;

	for (uint32_t i = 0; i < l->copiers && rc == 0; i++, at++)
		rc = crew_start_thread(&l->crew, at, copier_main, &l->copying[i], letter, at, e);
	if (l->async && rc == 0)
		rc = crew_start_thread(&l->crew, at, executor_main, l, letter, at, e);
	return rc;
}

static int native_dali_start(struct loader *base, const struct order *order, uint64_t steps,
			     struct err *e)
{
	struct native_dali *l = dali_of(base);
	int rc;

	if (order->fill > l->items)
		return err_set(e, -EINVAL,
			       "rank %u: the order has a larger shuffle buffer than the loader",
			       l->crew.config.rank);
	rc = crew_begin(&l->crew, order, steps, e);
	if (rc < 0)
		return rc;
	rewind_epoch(l);
	rc = start_threads(l, e);
	if (rc < 0)
		crew_end(&l->crew, NULL);
	l->crew.open = rc == 0;
	return rc;
}

static int native_dali_next(struct loader *base, struct batch **out, struct err *e)
{
	struct native_dali *l = dali_of(base);
	struct crew *c = &l->crew;
	struct dali_group *g;
	int rc = crew_ask(c, e);
	void *item;

	*out = NULL;
	if (rc <= 0)
		return rc;
	crew_waits(c, c->handed + 1);
	rc = crew_receive(c, l->async ? &l->ready : &l->raw, &item);
	g = rc == 0 ? item : NULL;
	if (rc == 0 && !l->async && !process_batch(l, g))
		rc = ERR_CANCELED;
	crew_waits(c, 0);
	if (rc < 0)
		return crew_canceled(c, e);
	if (l->async)
		queue_put(&l->places, l);
	rc = crew_hand_out(c, &g->batch, clock_now_ns(), e);
	if (rc < 0)
		queue_put(&l->spare, g);
	else
		*out = &g->batch;
	return rc;
}

static void native_dali_give_back(struct loader *base, struct batch *b)
{
	struct native_dali *l = dali_of(base);

	assert(l->crew.held > 0);
	l->crew.held--;
	queue_put(&l->spare, (struct dali_group *)b);
}

static int native_dali_finish(struct loader *base, struct err *e)
{
	struct native_dali *l = dali_of(base);

	if (!l->crew.open)
		return 0;
	l->crew.open = false;
	return crew_end(&l->crew, e);
}

/* "DALI's reader has been at sample 118 ('...') for 34 s" */
static bool describe_thread(const struct native_dali *l, const char *who, uint64_t doing,
			    int64_t since, char *out, size_t out_size)
{
	uint64_t sample = doing - 1;
	char path[DATASET_PATH_MAX] = "?", age[32];

	if (doing == 0)
		return false;
	dataset_path(l->crew.config.dataset, l->crew.config.kind,
		     sample / l->crew.config.dataset->samples_per_file, path, sizeof(path), NULL);
	snprintf(out, out_size, "%s has been at sample %llu ('%s') for %s", who,
		 (unsigned long long)sample, path,
		 str_seconds((double)(clock_now_ns() - since) * 1e-9, age, sizeof(age)));
	return true;
}

static void native_dali_describe(const struct loader *base, char *out, size_t out_size)
{
	const struct native_dali *l = dali_of_const(base);
	char state[192], who[DATASET_PATH_MAX + 128];
	bool busy;

	crew_describe_rank(&l->crew, state, sizeof(state));
	busy = describe_thread(l, "the reader thread",
			       atomic_load_explicit(&l->reader.doing, memory_order_acquire),
			       atomic_load_explicit(&l->reader.since_ns, memory_order_relaxed), who,
			       sizeof(who));
	for (uint32_t i = 0; !busy && i < l->copiers; i++) {
		const struct dali_copier *c = &l->copying[i].copier;

		busy = describe_thread(l, "a copying thread",
				       atomic_load_explicit(&c->doing, memory_order_acquire),
				       atomic_load_explicit(&c->since_ns, memory_order_relaxed),
				       who, sizeof(who));
	}
	snprintf(out, out_size, "%s; %s", state, busy ? who : "all its threads are idle");
}

static unsigned native_dali_destroy(struct loader *base)
{
	return crew_destroy(base, release_loader);
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
	.stats = crew_stats,
	.describe = native_dali_describe,
	.wake = crew_wake,
	.destroy = native_dali_destroy,
};
