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
#include "loader/crew.h"

struct synthetic {
	struct crew crew; /* first; without threads or readers */
	struct batch batch[LOADER_HELD_MAX];
	bool used[LOADER_HELD_MAX];
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

/* One set of statistics, for the batches that the rank gets; there are no readers. */
static const struct crew_size size = {.stats = 1};

static int synthetic_memory_bytes(const struct loader_config *c, uint64_t *out, struct err *e)
{
	uint64_t crew = 0;
	int rc = crew_memory_bytes(c, NULL, &size, &crew, e);

	*out = sizeof(struct synthetic) + crew;
	return rc;
}

static unsigned synthetic_destroy(struct loader *base)
{
	struct synthetic *l = synthetic_of(base);

	if (l)
		crew_release(&l->crew);
	free(l);
	return 0;
}

static int synthetic_create(struct loader **out, const struct loader_config *c, struct err *e)
{
	struct synthetic *l;
	int rc = loader_check_batch(c, e);

	if (rc < 0)
		return rc;
	l = try_calloc(1, sizeof(*l), "loader", e);
	if (!l)
		return -ENOMEM;
	rc = crew_init(&l->crew, &loader_synthetic, c, &size, NULL, e);
	if (rc < 0) {
		synthetic_destroy(&l->crew.base);
		return rc;
	}
	*out = &l->crew.base;
	return 0;
}

static int synthetic_start(struct loader *base, const struct order *order, uint64_t steps,
			   struct err *e)
{
	struct crew *c = &synthetic_of(base)->crew;
	int rc = crew_begin(c, order, steps, e);

	if (rc < 0)
		return rc;
	if (c->config.workload->compat.dlio && order_steps(order) > 0) {
		uint64_t dlio = order->samples / order->batch - 1;

		c->steps = dlio < c->steps ? dlio : c->steps;
	}
	c->open = true;
	return 0;
}

static int synthetic_next(struct loader *base, struct batch **out, struct err *e)
{
	struct synthetic *l = synthetic_of(base);
	struct batch *b = &l->batch[l->used[0]];
	struct crew *c = &l->crew;
	int rc = crew_ask(c, e);

	*out = NULL;
	if (rc <= 0)
		return rc;
	*b = (struct batch){
		.index = c->handed,
		.first = c->handed * c->config.batch_size,
		.samples = (uint32_t)c->config.batch_size,
		.sent_ns = clock_now_ns(),
	};
	b->begun_ns = b->done_ns = b->sent_ns;
	for (uint32_t i = 0; i < b->samples; i++)
		order_proof_add(&b->proof, order_at(&c->order, c->config.rank, b->first + i));
	c->stat[0].batches++;
	worker_has_read(&c->stat[0], b->samples, 0);
	l->used[b - l->batch] = true;
	*out = b;
	return crew_hand_out(c, b, b->done_ns, e);
}

static void synthetic_give_back(struct loader *base, struct batch *b)
{
	struct synthetic *l = synthetic_of(base);

	l->used[b - l->batch] = false;
	l->crew.held--;
}

static int synthetic_finish(struct loader *base, struct err *e)
{
	(void)e;
	synthetic_of(base)->crew.open = false;
	return 0;
}

static void synthetic_describe(const struct loader *base, char *out, size_t out_size)
{
	snprintf(out, out_size, "rank %u does not wait for its loader, which reads nothing",
		 ((const struct crew *)base)->config.rank);
}

const struct loader_ops loader_synthetic = {
	.is.name = "synthetic",
	.is.help = "Batches that are not read: a run without storage.",
	.window = synthetic_window,
	.memory_bytes = synthetic_memory_bytes,
	.create = synthetic_create,
	.start = synthetic_start,
	.next = synthetic_next,
	.give_back = synthetic_give_back,
	.finish = synthetic_finish,
	.stats = crew_stats,
	.describe = synthetic_describe,
	.wake = crew_wake,
	.destroy = synthetic_destroy,
};
