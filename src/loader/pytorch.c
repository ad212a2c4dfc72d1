/* PyTorch's DataLoader: W workers with an index queue each, P batches read ahead for each worker, a
 * shared result queue, refill when a batch is handed out, delivery in order or as batches arrive.
 *
 * At most P * W batches exist beyond the one handed out, whatever their state, and in order batch k
 * is read by worker k mod W: out-of-order arrivals wait for their turn and free no place. Every
 * epoch starts with an empty pipeline at worker 0. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "loader/pytorch.h"

static void pytorch_wake(struct loader *base)
{
	crew_wake(&pytorch_of(base)->crew);
}

/* In order plain round robin; else the next in the cycle who has less than its share. Every worker
 * stays active here, so a share is P and someone is always below it. */
static uint32_t pick_worker(struct pytorch *l)
{
	uint32_t w = l->cursor;

	while (!l->in_order && l->assigned[w] >= l->factor)
		w = (w + 1) % l->crew.workers;
	l->cursor = (w + 1) % l->crew.workers;
	return w;
}

static struct task *new_task(struct pytorch *l, uint64_t index, uint32_t worker)
{
	struct task *t = l->spare[--l->spares];
	struct batch *b = &t->batch;

	t->kind = TASK_READ;
	t->arrived = false;
	t->pending = true;
	b->index = index;
	b->first = index * l->crew.config.batch_size;
	b->samples = (uint32_t)l->crew.config.batch_size;
	b->worker = worker;
	b->sent_ns = clock_now_ns();
	b->err.code = 0;
	return t;
}

static void give_task_back(struct pytorch *l, struct task *t)
{
	if (l->transport)
		handover_drop(&l->handover, &t->parcel);
	l->spare[l->spares++] = t;
}

static void put_index(struct pytorch *l)
{
	struct task *t;
	uint32_t w;

	if (l->sent == l->steps)
		return;
	w = pick_worker(l);
	t = new_task(l, l->sent, w);
	if (l->in_order)
		l->window[l->sent % l->capacity] = t;
	l->assigned[w]++;
	l->sent++;
	worker_send(&l->crew.worker[w], t);
}

static int pytorch_start(struct loader *base, const struct order *order, uint64_t steps,
			 struct err *e)
{
	struct pytorch *l = pytorch_of(base);
	uint64_t most = order_steps(order);
	int rc;

	if (l->open || l->held)
		return err_set(e, -EINVAL,
			       "rank %u: an epoch was begun before the last one was ended",
			       l->crew.config.rank);
	l->steps = steps < most ? steps : most;
	l->sent = l->handed = l->received = 0;
	l->cursor = 0;
	for (uint64_t i = 0; i < l->tasks; i++)
		l->task[i].pending = false;
	memset(l->assigned, 0, crew_readers(&l->crew) * sizeof(*l->assigned));
	rc = pytorch_pin_start(l, e);
	if (rc == 0)
		rc = crew_begin(&l->crew, order, l->steps, e);
	if (rc < 0)
		return rc;
	l->open = true;
	for (uint64_t i = 0; i < l->capacity; i++)
		put_index(l);
	return 0;
}

static struct task *read_inline(struct pytorch *l)
{
	struct task *t = new_task(l, l->sent++, 0);

	sample_reader_batch(&l->crew.inline_reader, &l->crew.order, &t->batch);
	sample_reader_idle(&l->crew.inline_reader);
	l->received++;
	return t;
}

/* The batch whose turn it is: that of the lowest number, or the first to arrive. */
static int take(struct pytorch *l, struct task **out)
{
	struct task **turn = l->in_order ? &l->window[l->handed % l->capacity] : NULL;

	while (!turn || !(*turn)->arrived) {
		struct task *t;

		if (crew_receive(&l->crew, &t) < 0)
			return ERR_CANCELED;
		l->received++;
		t->arrived = true;
		if (!turn) {
			*out = t;
			return 0;
		}
	}
	*out = *turn;
	*turn = NULL;
	return 0;
}

static int pytorch_next(struct loader *base, struct batch **out, struct err *e)
{
	struct pytorch *l = pytorch_of(base);
	struct task *t = NULL;
	int rc = 0;

	*out = NULL;
	if (!l->open || l->held == LOADER_HELD_MAX)
		return err_set(e, -EINVAL, "rank %u: a batch was asked for %s", l->crew.config.rank,
			       l->open ? "before one was given back" : "outside of an epoch");
	if (crew_stopped(&l->crew))
		return crew_canceled(&l->crew, e);
	if (l->handed == l->steps)
		return 0;
	crew_waits(&l->crew, l->handed + 1);
	if (l->crew.workers)
		rc = take(l, &t);
	else
		t = read_inline(l);
	crew_waits(&l->crew, 0);
	if (rc < 0)
		return crew_canceled(&l->crew, e);
	l->handed++;
	t->pending = false;
	if (l->crew.workers) {
		l->assigned[t->batch.worker]--;
		put_index(l);
	}
	if (!l->pin)
		pytorch_unpack(l, t);
	crew_progress(&l->crew);
	if (t->batch.err.code < 0) {
		if (e)
			*e = t->batch.err;
		rc = t->batch.err.code;
		give_task_back(l, t);
		return rc;
	}
	l->held++;
	*out = &t->batch;
	return 1;
}

static void pytorch_give_back(struct loader *base, struct batch *b)
{
	struct pytorch *l = pytorch_of(base);

	l->held--;
	give_task_back(l, (struct task *)b);
}

/* Calls batches in reading off and takes everything back that was sent. */
static int drain(struct pytorch *l)
{
	struct task *t;

	if (l->received < l->sent)
		crew_drop(&l->crew);
	while (l->received < l->sent) {
		if (crew_receive(&l->crew, &t) < 0)
			return ERR_CANCELED;
		l->received++;
		t->arrived = true;
		if (!l->in_order)
			give_task_back(l, t);
	}
	for (uint64_t k = l->handed; l->in_order && k < l->sent; k++)
		give_task_back(l, l->window[k % l->capacity]);
	return 0;
}

/* Out of order the batches handed out need not be the first ones. */
static bool pytorch_undelivered(struct loader *base, uint64_t steps_done, struct order_proof *p)
{
	const struct pytorch *l = pytorch_of(base);
	const struct order *o = &l->crew.order;
	uint32_t rank = l->crew.config.rank;

	(void)steps_done;
	if (l->in_order)
		return false;
	order_proof_undelivered(p, o, rank, l->sent);
	for (uint64_t i = 0; i < l->tasks; i++) {
		const struct task *t = &l->task[i];

		for (uint32_t k = 0; t->pending && k < t->batch.samples; k++)
			order_proof_add(p, order_at(o, rank, t->batch.first + k));
	}
	return true;
}

static int pytorch_finish(struct loader *base, struct err *e)
{
	struct pytorch *l = pytorch_of(base);
	bool woken;

	if (!l->open)
		return 0;
	l->open = false;
	woken = crew_stopped(&l->crew) || (l->crew.workers && drain(l) < 0);
	return crew_end(&l->crew, woken, base, e);
}

static const struct worker_stat *pytorch_stats(const struct loader *base, uint32_t *workers)
{
	*workers = crew_readers(&pytorch_of_const(base)->crew);
	return pytorch_of_const(base)->crew.stat;
}

/* In order the worker whose batch is due is the one to blame. */
static void pytorch_describe(const struct loader *base, char *out, size_t out_size)
{
	const struct pytorch *l = pytorch_of_const(base);
	uint64_t batch = atomic_load_explicit(&l->crew.waiting, memory_order_acquire);
	uint32_t due = UINT32_MAX;

	if (l->in_order && batch && l->crew.workers)
		due = (uint32_t)((batch - 1) % l->crew.workers);
	crew_describe(&l->crew, due, out, out_size);
}

static unsigned pytorch_destroy(struct loader *base)
{
	struct pytorch *l = pytorch_of(base);
	unsigned stuck;

	if (!l)
		return 0;
	stuck = crew_dismiss(&l->crew);
	pytorch_pin_stop(l);
	if (stuck == 0)
		pytorch_release(l);
	return stuck;
}

const struct loader_ops loader_pytorch = {
	.is.name = "pytorch",
	.is.help = "PyTorch's DataLoader: worker queues, prefetch_factor, in-order delivery.",
	.window = pytorch_window,
	.memory_bytes = pytorch_memory_bytes,
	.create = pytorch_create,
	.start = pytorch_start,
	.next = pytorch_next,
	.give_back = pytorch_give_back,
	.finish = pytorch_finish,
	.stats = pytorch_stats,
	.undelivered = pytorch_undelivered,
	.describe = pytorch_describe,
	.wake = pytorch_wake,
	.destroy = pytorch_destroy,
};
