/* What the loader with DALI's own readers takes before the first epoch. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "loader/native_dali.h"
#include "workload/time_draw.h"

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

void native_dali_window(const struct workload *w, uint32_t *workers, uint64_t *batches)
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

int native_dali_memory_bytes(const struct loader_config *c, uint64_t *out, struct err *e)
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

void native_dali_release(struct native_dali *l)
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

int native_dali_create(struct loader **out, const struct loader_config *c, struct err *e)
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

void native_dali_rewind(struct native_dali *l)
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

void native_dali_close_queues(struct native_dali *l)
{
	struct queue *all[] = {&l->slots, &l->places, &l->spare, &l->free_items,
			       &l->raw,   &l->todo,   &l->done,  &l->ready};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		queue_close(all[i]);
}
