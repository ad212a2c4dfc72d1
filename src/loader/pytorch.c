/* PyTorch's DataLoader: W workers with an index queue each, P batches read ahead for each worker, a
 * shared result queue, refill when a batch is handed out, delivery in order or as batches arrive.
 *
 * At most P * W batches exist beyond the one handed out, whatever their state, and in order batch k
 * is read by worker k mod W: out-of-order arrivals wait for their turn and free no place. Every
 * epoch starts with an empty pipeline at worker 0. */
#include "loader/pytorch.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"

#define POLL_NS NS_PER_S /* a stop flag set without wake is noticed this soon */
#define JOIN_POLL_NS (NS_PER_S / 10)
#define GRACE_DEFAULT_NS (5 * NS_PER_S)

static void pytorch_wake(struct loader *base)
{
	struct pytorch *l = pytorch_of(base);
	int64_t never = 0;

	atomic_compare_exchange_strong(&l->woken_ns, &never, clock_now_ns());
	atomic_fetch_or(&l->halt, HALT_STOP);
	thread_wake(&l->halt, -1);
	if (l->workers == 0)
		return;
	queue_close(&l->results);
	for (uint32_t i = 0; i < l->workers; i++)
		queue_close(&l->worker[i].in);
}

static bool stopped(struct pytorch *l)
{
	if (atomic_load_explicit(&l->halt, memory_order_acquire) & HALT_STOP)
		return true;
	if (!l->config.stop || !atomic_load_explicit(&l->config.stop->set, memory_order_relaxed))
		return false;
	pytorch_wake(&l->base);
	return true;
}

static int canceled(const struct pytorch *l, struct err *e)
{
	return err_set(e, ERR_CANCELED, "rank %u: the run was told to stop", l->config.rank);
}

/* The next task that comes back from a worker. */
static int receive(struct pytorch *l, struct task **out)
{
	void *item;

	while (!stopped(l)) {
		if (queue_get_timeout(&l->results, &item, POLL_NS) == 1) {
			*out = item;
			return 0;
		}
	}
	return ERR_CANCELED;
}

/* In order plain round robin; else the next in the cycle who has less than its share. Every worker
 * stays active here, so a share is P and someone is always below it. */
static uint32_t pick_worker(struct pytorch *l)
{
	uint32_t w = l->cursor;

	while (!l->in_order && l->assigned[w] >= l->factor)
		w = (w + 1) % l->workers;
	l->cursor = (w + 1) % l->workers;
	return w;
}

static struct task *new_task(struct pytorch *l, uint64_t index, uint32_t worker)
{
	struct task *t = l->spare[--l->spares];
	struct batch *b = &t->batch;

	t->kind = TASK_READ;
	t->arrived = false;
	b->index = index;
	b->first = index * l->config.batch_size;
	b->samples = (uint32_t)l->config.batch_size;
	b->worker = worker;
	b->sent_ns = clock_now_ns();
	b->err.code = 0;
	return t;
}

static void give_task_back(struct pytorch *l, struct task *t)
{
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
	worker_send(&l->worker[w], t);
}

/* Persistent workers acknowledge that they are ready for the epoch, as PyTorch's do. */
static int resume_workers(struct pytorch *l, struct err *e)
{
	struct task *t;

	for (uint32_t i = 0; i < l->workers; i++)
		worker_control(&l->worker[i], TASK_RESUME);
	for (uint32_t i = 0; i < l->workers; i++)
		if (receive(l, &t) < 0)
			return canceled(l, e);
	return 0;
}

/* A worker that is started again begins with a new reader, as a new process would; its buffers were
 * taken and touched in create, because this is timed. */
static int start_workers(struct pytorch *l, struct err *e)
{
	for (uint32_t i = 0; i < l->workers; i++) {
		int rc;

		if (l->worker[i].running)
			continue;
		rc = sample_reader_open(&l->worker[i].reader, e);
		if (rc < 0)
			return rc;
		rc = worker_start(&l->worker[i], e);
		if (rc < 0)
			return rc;
	}
	l->threads = true;
	return 0;
}

static int pytorch_start(struct loader *base, const struct order *order, uint64_t steps,
			 struct err *e)
{
	struct pytorch *l = pytorch_of(base);
	uint64_t most = order_steps(order);
	int rc = 0;

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
	/* The workers are idle: none looks at the order. */
	l->order = *order;
	l->steps = steps < most ? steps : most;
	l->sent = l->handed = l->received = 0;
	l->cursor = 0;
	memset(l->assigned, 0, pytorch_readers(l) * sizeof(*l->assigned));
	atomic_fetch_and(&l->halt, ~HALT_DROP);
	atomic_store(&l->last_step, l->steps);
	atomic_fetch_add(&l->epoch, 1);
	if (l->workers)
		rc = l->threads ? resume_workers(l, e) : start_workers(l, e);
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

	sample_reader_batch(&l->inline_reader, &l->order, &t->batch);
	sample_reader_idle(&l->inline_reader);
	l->received++;
	return t;
}

/* The batch whose turn it is: that of the lowest number, or the first to arrive. */
static int take(struct pytorch *l, struct task **out)
{
	struct task **turn = l->in_order ? &l->window[l->handed % l->capacity] : NULL;

	while (!turn || !(*turn)->arrived) {
		struct task *t;

		if (receive(l, &t) < 0)
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

static void progress(struct pytorch *l)
{
	if (l->config.progress_ns)
		atomic_store_explicit(l->config.progress_ns, clock_now_ns(), memory_order_relaxed);
}

static int pytorch_next(struct loader *base, struct batch **out, struct err *e)
{
	struct pytorch *l = pytorch_of(base);
	struct task *t = NULL;
	int rc = 0;

	*out = NULL;
	if (!l->open || l->held == LOADER_HELD_MAX)
		return err_set(e, -EINVAL, "rank %u: a batch was asked for %s", l->config.rank,
			       l->open ? "before one was given back" : "outside of an epoch");
	if (stopped(l))
		return canceled(l, e);
	if (l->handed == l->steps)
		return 0;
	atomic_store_explicit(&l->waiting_since, clock_now_ns(), memory_order_relaxed);
	atomic_store_explicit(&l->waiting, l->handed + 1, memory_order_release);
	if (l->workers)
		rc = take(l, &t);
	else
		t = read_inline(l);
	atomic_store_explicit(&l->waiting, 0, memory_order_release);
	if (rc < 0)
		return canceled(l, e);
	l->handed++;
	if (l->workers) {
		l->assigned[t->batch.worker]--;
		put_index(l);
	}
	progress(l);
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

/* How long to wait for a thread before looking again; 0 once the grace after wake is over. The
 * grace counts from wake, so that giving up on many loaders one after another takes no longer than
 * on one. */
static int64_t patience_ns(struct pytorch *l)
{
	int64_t grace = l->config.grace_ns > 0 ? l->config.grace_ns : GRACE_DEFAULT_NS, left;

	if (!stopped(l))
		return JOIN_POLL_NS;
	left = atomic_load(&l->woken_ns) + grace - clock_now_ns();
	return left < 0 ? 0 : left < JOIN_POLL_NS ? left : JOIN_POLL_NS;
}

/* Joins every worker that ends; without wake waits for ever, after it until the grace is over. The
 * number of those that hang. */
static uint32_t join_workers(struct pytorch *l)
{
	uint32_t stuck = 0;

	for (uint32_t i = 0; i < l->workers; i++) {
		struct worker *w = &l->worker[i];
		int64_t patience = 1;

		while (w->running && patience > 0) {
			patience = patience_ns(l);
			worker_join(w, patience);
		}
		stuck += w->running;
	}
	atomic_store(&l->stuck, stuck);
	return stuck;
}

static int join_or_tell(struct pytorch *l, struct err *e)
{
	char what[ERR_TEXT_MAX / 2];

	if (join_workers(l) == 0) {
		l->threads = false;
		return 0;
	}
	pytorch_describe(&l->base, what, sizeof(what));
	return err_set(e, -ETIMEDOUT, "%s", what);
}

/* Calls batches in reading off and takes everything back that was sent. */
static int drain(struct pytorch *l)
{
	struct task *t;

	if (l->received < l->sent) {
		atomic_fetch_or(&l->halt, HALT_DROP);
		thread_wake(&l->halt, -1);
	}
	while (l->received < l->sent) {
		if (receive(l, &t) < 0)
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

static int pytorch_finish(struct loader *base, struct err *e)
{
	struct pytorch *l = pytorch_of(base);
	int rc;

	if (!l->open)
		return 0;
	l->open = false;
	if (l->workers == 0)
		return 0;
	if (stopped(l) || drain(l) < 0)
		return join_or_tell(l, e);
	if (l->persistent)
		return 0;
	for (uint32_t i = 0; i < l->workers; i++)
		worker_control(&l->worker[i], TASK_QUIT);
	rc = join_or_tell(l, e);
	return rc < 0 ? rc : pytorch_close_readers(l, e);
}

static const struct worker_stat *pytorch_stats(const struct loader *base, uint32_t *workers)
{
	*workers = pytorch_readers(pytorch_of_const(base));
	return pytorch_of_const(base)->stat;
}

static unsigned pytorch_destroy(struct loader *base)
{
	struct pytorch *l = pytorch_of(base);

	if (!l)
		return 0;
	if (l->workers) {
		atomic_fetch_or(&l->halt, HALT_DROP);
		thread_wake(&l->halt, -1);
		for (uint32_t i = 0; i < l->workers; i++)
			queue_close(&l->worker[i].in);
		if (join_workers(l) > 0) {
			for (uint32_t i = 0; i < l->workers; i++)
				if (l->worker[i].running)
					pthread_detach(l->worker[i].thread);
			return atomic_load(&l->stuck);
		}
	}
	pytorch_release(l);
	return 0;
}

const struct loader_ops loader_pytorch = {
	.name = "pytorch",
	.help = "PyTorch's DataLoader: worker queues, prefetch_factor, in-order delivery.",
	.window = pytorch_window,
	.memory_bytes = pytorch_memory_bytes,
	.create = pytorch_create,
	.start = pytorch_start,
	.next = pytorch_next,
	.give_back = pytorch_give_back,
	.finish = pytorch_finish,
	.stats = pytorch_stats,
	.describe = pytorch_describe,
	.wake = pytorch_wake,
	.destroy = pytorch_destroy,
};
