/* A loader for a test: the rank itself reads each batch when it asks for it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "loader/sample_reader.h"

struct toy {
	struct loader base;
	struct loader_config config;
	struct reader_config settings;
	struct sample_reader reader;
	struct worker_stat stat;
	struct io_stat io; /* stat.io */
	struct batch batch[LOADER_HELD_MAX];
	struct order order;
	uint64_t steps, handed;
	_Atomic uint32_t halt;
};

extern const struct loader_ops loader_toy;

static void toy_window(const struct workload *w, uint32_t *workers, uint64_t *batches)
{
	(void)w;
	*workers = 0;
	*batches = 0;
}

static int toy_memory_bytes(const struct loader_config *c, uint64_t *out, struct err *e)
{
	struct reader_config settings;
	size_t bytes;

	sample_reader_settings(&settings, c);
	bytes = sample_reader_bytes(c, &settings, e);
	*out = bytes + sizeof(struct toy) + loader_trace_bytes(c);
	return bytes ? 0 : -ENOMEM;
}

static int toy_create(struct loader **out, const struct loader_config *c, struct err *e)
{
	struct toy *l = try_calloc(1, sizeof(*l), "loader", e);

	if (!l)
		return -ENOMEM;
	l->base.ops = &loader_toy;
	l->config = *c;
	l->stat.io = &l->io;
	sample_reader_settings(&l->settings, c);
	sample_reader_init(&l->reader, &l->config, &l->settings, 0, true, &l->halt, &l->stat);
	*out = &l->base;
	return 0;
}

static int toy_start(struct loader *base, const struct order *order, uint64_t steps, struct err *e)
{
	struct toy *l = (struct toy *)base;
	uint64_t most = order_steps(order);

	l->order = *order;
	l->steps = steps < most ? steps : most;
	l->handed = 0;
	return sample_reader_open(&l->reader, e);
}

static int toy_next(struct loader *base, struct batch **out, struct err *e)
{
	struct toy *l = (struct toy *)base;
	struct batch *b = &l->batch[l->handed % LOADER_HELD_MAX];

	if (l->handed == l->steps)
		return 0;
	*b = (struct batch){.index = l->handed,
			    .first = l->handed * l->config.batch_size,
			    .samples = (uint32_t)l->config.batch_size,
			    .sent_ns = clock_now_ns()};
	l->handed++;
	sample_reader_batch(&l->reader, &l->order, b);
	sample_reader_idle(&l->reader);
	if (b->err.code) {
		*e = b->err;
		return b->err.code;
	}
	l->stat.batches++;
	*out = b;
	return 1;
}

static void toy_give_back(struct loader *l, struct batch *b)
{
	(void)l, (void)b;
}

static int toy_finish(struct loader *l, struct err *e)
{
	return sample_reader_close(&((struct toy *)l)->reader, e);
}

static const struct worker_stat *toy_stats(const struct loader *l, uint32_t *workers)
{
	*workers = 1;
	return &((const struct toy *)l)->stat;
}

static void toy_describe(const struct loader *l, char *out, size_t out_size)
{
	sample_reader_describe(&((const struct toy *)l)->reader, out, out_size);
}

static void toy_wake(struct loader *l)
{
	atomic_fetch_or_explicit(&((struct toy *)l)->halt, HALT_STOP, memory_order_release);
}

static unsigned toy_destroy(struct loader *base)
{
	struct toy *l = (struct toy *)base;

	if (l) {
		sample_reader_close(&l->reader, NULL);
		sample_reader_release(&l->reader);
	}
	free(l);
	return 0;
}

const struct loader_ops loader_toy = {
	.is.name = "toy",
	.is.help = "Whoever wants a toy fetches it.",
	.window = toy_window,
	.memory_bytes = toy_memory_bytes,
	.create = toy_create,
	.start = toy_start,
	.next = toy_next,
	.give_back = toy_give_back,
	.finish = toy_finish,
	.stats = toy_stats,
	.describe = toy_describe,
	.wake = toy_wake,
	.destroy = toy_destroy,
};
