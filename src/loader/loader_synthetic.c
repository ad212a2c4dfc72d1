/* DLIO's synthetic loader: batches that cost nothing, as many as the dataset gives. No sample is
 * read, whatever the format; what is left is the run itself.
 *
 * DLIO's ends one batch early and counts the batches of all ranks together: with one rank a step is
 * missing, with several none is. So it is with compat.dlio. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "loader/loader.h"

struct synthetic {
	struct loader base;
	struct loader_config config;
	struct worker_stat stat; /* stays empty but for the batches */
	struct batch batch[LOADER_HELD_MAX];
	bool used[LOADER_HELD_MAX];
	struct order order;
	uint64_t steps, handed;
	unsigned held;
	bool open;
	_Atomic bool woken;
};

extern const struct loader_ops loader_synthetic;

static struct synthetic *synthetic_of(struct loader *l)
{
	return (struct synthetic *)l;
}

static void synthetic_window(const struct workload *w, uint32_t *workers, uint64_t *batches)
{
	(void)w;
	*workers = 0;
	*batches = 0;
}

static int synthetic_memory_bytes(const struct loader_config *c, uint64_t *out, struct err *e)
{
	(void)c, (void)e;
	*out = sizeof(struct synthetic);
	return 0;
}

static int synthetic_create(struct loader **out, const struct loader_config *c, struct err *e)
{
	struct synthetic *l;

	if (c->batch_size == 0 || c->batch_size > UINT32_MAX)
		return err_set(e, ERR_USAGE,
			       "reader.batch_size is %llu; a batch has 1 to %u samples",
			       (unsigned long long)c->batch_size, UINT32_MAX);
	l = try_calloc(1, sizeof(*l), "loader", e);
	if (!l)
		return -ENOMEM;
	l->base.ops = &loader_synthetic;
	l->config = *c;
	io_stat_init(&l->stat.io);
	*out = &l->base;
	return 0;
}

static bool stopped(const struct synthetic *l)
{
	return atomic_load(&l->woken) || (l->config.stop && atomic_load(&l->config.stop->set));
}

static int canceled(const struct synthetic *l, struct err *e)
{
	return err_set(e, ERR_CANCELED, "rank %u: the run was told to stop", l->config.rank);
}

static int synthetic_start(struct loader *base, const struct order *order, uint64_t steps,
			   struct err *e)
{
	struct synthetic *l = synthetic_of(base);
	uint64_t most = order_steps(order);

	if (l->open || l->held)
		return err_set(e, -EINVAL,
			       "rank %u: an epoch was begun before the last one was ended",
			       l->config.rank);
	if (order->batch != l->config.batch_size)
		return err_set(e, -EINVAL,
			       "rank %u: the order has batches of %llu, the loader of %llu",
			       l->config.rank, (unsigned long long)order->batch,
			       (unsigned long long)l->config.batch_size);
	if (stopped(l))
		return canceled(l, e);
	if (l->config.workload->compat.dlio && most > 0) {
		uint64_t dlio = order->samples / order->batch - 1;

		most = dlio < most ? dlio : most;
	}
	l->order = *order;
	l->steps = steps < most ? steps : most;
	l->handed = 0;
	l->open = true;
	return 0;
}

static int synthetic_next(struct loader *base, struct batch **out, struct err *e)
{
	struct synthetic *l = synthetic_of(base);
	struct batch *b = &l->batch[l->used[0]];

	*out = NULL;
	if (!l->open || l->held == LOADER_HELD_MAX)
		return err_set(e, -EINVAL, "rank %u: a batch was asked for %s", l->config.rank,
			       l->open ? "before one was given back" : "outside of an epoch");
	if (stopped(l))
		return canceled(l, e);
	if (l->handed == l->steps)
		return 0;
	*b = (struct batch){
		.index = l->handed,
		.first = l->handed * l->config.batch_size,
		.samples = (uint32_t)l->config.batch_size,
		.sent_ns = clock_now_ns(),
	};
	b->begun_ns = b->done_ns = b->sent_ns;
	for (uint32_t i = 0; i < b->samples; i++)
		order_proof_add(&b->proof, order_at(&l->order, l->config.rank, b->first + i));
	l->handed++;
	l->stat.batches++;
	l->stat.samples += b->samples;
	if (l->config.progress_ns)
		atomic_store_explicit(l->config.progress_ns, b->done_ns, memory_order_relaxed);
	l->used[b - l->batch] = true;
	l->held++;
	*out = b;
	return 1;
}

static void synthetic_give_back(struct loader *base, struct batch *b)
{
	struct synthetic *l = synthetic_of(base);

	l->used[b - l->batch] = false;
	l->held--;
}

static int synthetic_finish(struct loader *base, struct err *e)
{
	(void)e;
	synthetic_of(base)->open = false;
	return 0;
}

static const struct worker_stat *synthetic_stats(const struct loader *base, uint32_t *workers)
{
	*workers = 1;
	return &((const struct synthetic *)base)->stat;
}

static void synthetic_describe(const struct loader *base, char *out, size_t out_size)
{
	snprintf(out, out_size, "rank %u does not wait for its loader, which reads nothing",
		 ((const struct synthetic *)base)->config.rank);
}

static void synthetic_wake(struct loader *base)
{
	atomic_store(&synthetic_of(base)->woken, true);
}

static unsigned synthetic_destroy(struct loader *base)
{
	free(base);
	return 0;
}

const struct loader_ops loader_synthetic = {
	.is.name = "synthetic",
	.is.help = "Batches that nobody reads: a run without its storage.",
	.window = synthetic_window,
	.memory_bytes = synthetic_memory_bytes,
	.create = synthetic_create,
	.start = synthetic_start,
	.next = synthetic_next,
	.give_back = synthetic_give_back,
	.finish = synthetic_finish,
	.stats = synthetic_stats,
	.describe = synthetic_describe,
	.wake = synthetic_wake,
	.destroy = synthetic_destroy,
};
