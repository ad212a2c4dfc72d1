/* PyTorch's DataLoader: W workers with an index queue each, P batches read ahead for each worker, a
 * shared result queue, refill when a batch is handed out, delivery in order or as batches arrive.
 *
 * At most P * W batches exist beyond the one handed out, whatever their state, and in order batch k
 * is read by worker k mod W: out-of-order arrivals wait for their turn and free no place. Every epoch
 * starts with an empty pipeline at worker 0. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "loader/worker.h"

#define POLL_NS NS_PER_S             /* a stop flag set without wake is noticed this soon */
#define JOIN_POLL_NS (NS_PER_S / 10)
#define GRACE_DEFAULT_NS (5 * NS_PER_S)
#define PAGE_BYTES 4096
#define GUARD_BYTES PAGE_BYTES       /* below each stack */
#define FACTOR_DEFAULT 2             /* prefetch_factor of PyTorch */

struct pytorch {
	struct loader base;
	struct loader_config config;
	struct reader_config settings;
	uint32_t workers;            /* 0: the rank reads */
	uint64_t factor, capacity;   /* P; P * W */
	bool in_order, persistent;

	_Atomic uint32_t halt;       /* futex word, HALT_* */
	_Atomic int64_t woken_ns;    /* 0: not woken */
	struct queue results;
	struct worker *worker;       /* W of them */
	struct sample_reader inline_reader;
	struct worker_stat *stat;    /* max(W, 1) */
	uint64_t *assigned;          /* per worker: sent and not handed out */
	struct task *task, **spare;  /* all; those not in use */
	uint64_t spares, held;       /* held: with the rank */
	struct task **window;        /* in order: batch k at k mod capacity */

	struct order order;
	uint64_t steps, sent, handed, received; /* batches of this epoch */
	uint32_t cursor;             /* the worker whose turn it is */
	bool open, threads;          /* within an epoch; workers run */

	/* For describe. */
	_Atomic uint64_t epoch, last_step, waiting; /* waiting: batch + 1, 0 when not */
	_Atomic int64_t waiting_since;
	_Atomic uint32_t stuck;      /* threads given up */
};

static struct pytorch *self(struct loader *l)
{
	return (struct pytorch *)l;
}

static const struct pytorch *self_const(const struct loader *l)
{
	return (const struct pytorch *)l;
}

static uint64_t prefetch_factor(const struct workload *w)
{
	uint64_t size = w->reader.prefetch_size > 0 ? (uint64_t)w->reader.prefetch_size : 0;
	uint64_t workers = (uint64_t)w->reader.read_threads;

	return size ? size / workers + (size % workers != 0) : FACTOR_DEFAULT;
}

static void pytorch_window(const struct workload *w, uint32_t *workers, uint64_t *batches)
{
	*workers = (uint32_t)w->reader.read_threads;
	*batches = *workers ? prefetch_factor(w) * *workers : 0;
}

static int check_config(const struct loader_config *c, struct err *e)
{
	int64_t workers = c->workload->reader.read_threads;
	uint64_t capacity;

	if (c->batch_size == 0 || c->batch_size > UINT32_MAX)
		return err_set(e, ERR_USAGE,
			       "reader.batch_size is %llu; a batch has 1 to %u samples",
			       (unsigned long long)c->batch_size, UINT32_MAX);
	if (workers < 0 || workers > UINT16_MAX + 1)
		return err_set(e, ERR_USAGE, "reader.read_threads is %lld; 0 to 65536 are possible",
			       (long long)workers);
	if (workers > 0 &&
	    (__builtin_mul_overflow(prefetch_factor(c->workload), (uint64_t)workers, &capacity) ||
	     capacity > UINT32_MAX))
		return err_set(e, ERR_USAGE,
			       "reader.prefetch_size is %lld for %lld workers; that is more batches "
			       "than this program keeps",
			       (long long)c->workload->reader.prefetch_size, (long long)workers);
	return 0;
}

static int pytorch_memory_bytes(const struct loader_config *c, uint64_t *out, struct err *e)
{
	uint64_t workers, factor = 0, readers, each, total = sizeof(struct pytorch), tasks, buffers;
	struct reader_config settings;
	int rc = check_config(c, e);

	if (rc < 0)
		return rc;
	sample_reader_settings(&settings, c);
	buffers = sample_reader_bytes(c, &settings, e);
	if (buffers == 0)
		return -ENOMEM;
	workers = (uint64_t)c->workload->reader.read_threads;
	factor = workers ? prefetch_factor(c->workload) : 0;
	readers = workers ? workers : 1;
	tasks = factor * workers + LOADER_HELD_MAX;
	each = sizeof(struct worker_stat) + sizeof(uint64_t);
	if (workers)
		each += sizeof(struct worker) + worker_queue_bytes(factor) +
			worker_stack_bytes(c->workload) + GUARD_BYTES;
	total += tasks * (sizeof(struct task) + 2 * sizeof(void *)) + worker_queue_bytes(tasks + workers);
	if (__builtin_add_overflow(each, buffers + PAGE_BYTES - buffers % PAGE_BYTES, &each) ||
	    __builtin_mul_overflow(each, readers, &each) ||
	    __builtin_add_overflow(total, each, &total))
		return err_set(e, -ENOMEM, "the buffers of %llu workers do not fit in memory",
			       (unsigned long long)readers);
	*out = total;
	return 0;
}

static struct sample_reader *reader_of(struct pytorch *l, uint32_t i)
{
	return l->workers ? &l->worker[i].reader : &l->inline_reader;
}

static uint32_t readers(const struct pytorch *l)
{
	return l->workers ? l->workers : 1;
}

static int open_readers(struct pytorch *l, struct err *e)
{
	for (uint32_t i = 0; i < readers(l); i++) {
		int rc = sample_reader_open(reader_of(l, i), e);

		if (rc < 0) {
			if (e)
				err_wrap(e, "rank %u, worker %u", l->config.rank, i);
			return rc;
		}
	}
	return 0;
}

/* The first error is the one reported; all are closed. */
static int close_readers(struct pytorch *l, struct err *e)
{
	int first = 0;

	for (uint32_t i = 0; i < readers(l); i++) {
		int rc = sample_reader_close(reader_of(l, i), first ? NULL : e);

		if (rc < 0 && first == 0) {
			first = rc;
			if (e)
				err_wrap(e, "rank %u, worker %u", l->config.rank, i);
		}
	}
	return first;
}

static int allocate(struct pytorch *l, struct err *e)
{
	uint64_t tasks = l->capacity + LOADER_HELD_MAX;

	l->stat = try_calloc(readers(l), sizeof(*l->stat), "statistics of workers", e);
	l->task = l->stat ? try_calloc(tasks, sizeof(*l->task), "batches", e) : NULL;
	l->spare = l->task ? try_calloc(tasks, sizeof(*l->spare), "batches", e) : NULL;
	l->window = l->spare ? try_calloc(l->capacity, sizeof(*l->window), "batches", e) : NULL;
	l->assigned = l->window ? try_calloc(readers(l), sizeof(*l->assigned), "workers", e) : NULL;
	if (!l->assigned)
		return -ENOMEM;
	for (uint64_t i = 0; i < tasks; i++)
		l->spare[l->spares++] = &l->task[i];
	if (l->workers == 0) {
		sample_reader_init(&l->inline_reader, &l->config, &l->settings, 0, &l->halt, &l->stat[0]);
		return 0;
	}
	if (queue_init(&l->results, l->capacity + l->workers, e) < 0)
		return -ENOMEM;
	l->worker = try_calloc(l->workers, sizeof(*l->worker), "workers", e);
	if (!l->worker)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->workers; i++) {
		int rc = worker_init(&l->worker[i], &l->config, &l->settings, i, &l->halt, &l->stat[i],
				     &l->results, &l->order, l->factor, e);

		if (rc < 0)
			return rc;
	}
	return 0;
}

static void release(struct pytorch *l)
{
	if (l->worker || (l->workers == 0 && l->assigned))
		close_readers(l, NULL);
	for (uint32_t i = 0; l->worker && i < l->workers; i++)
		worker_release(&l->worker[i]);
	queue_release(&l->results);
	free(l->worker);
	free(l->assigned);
	free(l->window);
	free(l->spare);
	free(l->task);
	free(l->stat);
	free(l);
}

extern const struct loader_ops loader_pytorch;

static int pytorch_create(struct loader **out, const struct loader_config *c, struct err *e)
{
	struct pytorch *l;
	int rc = check_config(c, e);

	if (rc < 0)
		return rc;
	l = try_calloc(1, sizeof(*l), "loader", e);
	if (!l)
		return -ENOMEM;
	l->base.ops = &loader_pytorch;
	l->config = *c;
	sample_reader_settings(&l->settings, c);
	l->workers = (uint32_t)c->workload->reader.read_threads;
	l->factor = l->workers ? prefetch_factor(c->workload) : 0;
	l->capacity = l->factor * l->workers;
	l->in_order = c->workload->reader.in_order;
	l->persistent = c->workload->reader.persistent_workers;
	rc = allocate(l, e);
	if (rc == 0)
		rc = open_readers(l, e);
	if (rc < 0) {
		release(l);
		return rc;
	}
	*out = &l->base;
	return 0;
}

static void pytorch_wake(struct loader *base)
{
	struct pytorch *l = self(base);
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

static int start_workers(struct pytorch *l, struct err *e)
{
	for (uint32_t i = 0; i < l->workers; i++) {
		int rc;

		if (l->worker[i].running)
			continue;
		if (!l->worker[i].reader.memory) {
			rc = sample_reader_open(&l->worker[i].reader, e);
			if (rc < 0)
				return rc;
		}
		rc = worker_start(&l->worker[i], e);
		if (rc < 0)
			return rc;
	}
	l->threads = true;
	return 0;
}

static int pytorch_start(struct loader *base, const struct order *order, uint64_t steps, struct err *e)
{
	struct pytorch *l = self(base);
	uint64_t most = order_steps(order);
	int rc = 0;

	if (l->open || l->held)
		return err_set(e, -EINVAL, "rank %u: an epoch was begun before the last one was ended",
			       l->config.rank);
	if (order->batch != l->config.batch_size)
		return err_set(e, -EINVAL, "rank %u: the order has batches of %llu, the loader of %llu",
			       l->config.rank, (unsigned long long)order->batch,
			       (unsigned long long)l->config.batch_size);
	if (stopped(l))
		return canceled(l, e);
	/* The workers are idle: none looks at the order. */
	l->order = *order;
	l->steps = steps < most ? steps : most;
	l->sent = l->handed = l->received = 0;
	l->cursor = 0;
	memset(l->assigned, 0, readers(l) * sizeof(*l->assigned));
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
	struct pytorch *l = self(base);
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
	struct pytorch *l = self(base);

	l->held--;
	give_task_back(l, (struct task *)b);
}

/* How long to wait for a thread before looking again; 0 once the grace after wake is over. The grace
 * counts from wake, so that giving up on many loaders one after another takes no longer than on one. */
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

static void pytorch_describe(const struct loader *base, char *out, size_t out_size);

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
	struct pytorch *l = self(base);
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
	return rc < 0 ? rc : close_readers(l, e);
}

static const struct worker_stat *pytorch_stats(const struct loader *base, uint32_t *workers)
{
	*workers = readers(self_const(base));
	return self_const(base)->stat;
}

/* The worker to blame: in order the one whose batch is due, else who has been busy longest. */
static const struct sample_reader *blamed(const struct pytorch *l, uint64_t batch)
{
	const struct sample_reader *oldest = NULL;
	int64_t since = INT64_MAX;

	if (l->workers == 0)
		return &l->inline_reader;
	if (l->in_order && batch)
		return &l->worker[(batch - 1) % l->workers].reader;
	for (uint32_t i = 0; i < l->workers; i++) {
		int64_t busy = sample_reader_busy_since(&l->worker[i].reader);

		if (busy && busy < since) {
			since = busy;
			oldest = &l->worker[i].reader;
		}
	}
	return oldest;
}

static uint32_t idle_workers(const struct pytorch *l)
{
	uint32_t idle = 0;

	for (uint32_t i = 0; i < l->workers; i++)
		idle += sample_reader_busy_since(&l->worker[i].reader) == 0;
	return idle;
}

static void describe_wait(const struct pytorch *l, uint64_t batch, char *out, size_t out_size)
{
	int64_t since = atomic_load_explicit(&l->waiting_since, memory_order_relaxed);
	char age[32];

	str_seconds((double)(clock_now_ns() - since) * 1e-9, age, sizeof(age));
	snprintf(out, out_size, "waits for batch %llu of %llu of %s %llu for %s",
		 (unsigned long long)batch, (unsigned long long)atomic_load(&l->last_step),
		 l->config.kind == DATASET_TRAIN ? "epoch" : "evaluation",
		 (unsigned long long)atomic_load(&l->epoch), age);
}

static void pytorch_describe(const struct loader *base, char *out, size_t out_size)
{
	const struct pytorch *l = self_const(base);
	uint64_t batch = atomic_load_explicit(&l->waiting, memory_order_acquire);
	uint32_t stuck = atomic_load(&l->stuck);
	const struct sample_reader *r = blamed(l, stuck ? 0 : batch);
	char state[160], who[DATASET_PATH_MAX + 128] = "no worker is busy", idle[64] = "";

	if (stuck)
		snprintf(state, sizeof(state), "gave up on %u hung worker%s", stuck,
			 stuck == 1 ? "" : "s");
	else if (batch)
		describe_wait(l, batch, state, sizeof(state));
	else
		snprintf(state, sizeof(state), "does not wait for its loader");
	if (r)
		sample_reader_describe(r, who, sizeof(who));
	if (l->workers > 1)
		snprintf(idle, sizeof(idle), "; %u of %u workers idle", idle_workers(l), l->workers);
	snprintf(out, out_size, "rank %u %s; %s%s", l->config.rank, state, who, idle);
}

static unsigned pytorch_destroy(struct loader *base)
{
	struct pytorch *l = self(base);

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
	release(l);
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
