/* What the threads of the loader with DALI's own readers do. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "loader/native_dali.h"
#include "workload/time_draw.h"

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

void native_dali_read(struct native_dali *l, uint32_t unused)
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

void native_dali_copy(struct native_dali *l, uint32_t i)
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

bool native_dali_process(struct native_dali *l, struct dali_group *g)
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

void native_dali_execute(struct native_dali *l, uint32_t unused)
{
	void *token, *g;

	(void)unused;
	while (queue_get(&l->places, &token) == 1 && queue_get(&l->raw, &g) == 1)
		if (!native_dali_process(l, g) || queue_put(&l->ready, g) < 0)
			break;
}
