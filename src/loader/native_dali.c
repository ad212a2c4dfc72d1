/* DALI's own readers, DLIO's data loader "native_dali": one thread per rank reads the samples of
 * its shard one after another through the shuffle buffer into a ring of `prefetch_size` batches (at
 * least 1); a pipeline of `read_threads` threads copies and decodes them batch by batch, and keeps
 * two processed batches beyond the one handed out. With read_threads 0 batches are processed when
 * they are asked for.
 *
 * A place of the ring is free again when its batch was copied, and one of the pipeline's when a
 * batch is handed out. Every epoch begins with an empty buffer, which is filled before the first
 * batch: the cold start of a pipeline that is built anew. */
#include "loader/native_dali.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/str.h"

#define POLL_NS NS_PER_S /* a stop flag set without wake is noticed this soon */

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
