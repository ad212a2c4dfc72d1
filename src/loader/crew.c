/* The threads and readers of a loader: memory, begin and end of epochs, stops, words. */
#include "loader/crew.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"

int queue_init(struct queue *q, size_t capacity, struct err *e)
{
	pthread_condattr_t attr;

	*q = (struct queue){0};
	q->slot = try_calloc(capacity, sizeof(void *), "queue", e);
	if (!q->slot)
		return -ENOMEM;
	q->cap = capacity ? capacity : 1;
	pthread_mutex_init(&q->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&q->not_empty, &attr);
	pthread_cond_init(&q->not_full, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

void queue_release(struct queue *q)
{
	if (!q->slot)
		return;
	pthread_mutex_destroy(&q->lock);
	pthread_cond_destroy(&q->not_empty);
	pthread_cond_destroy(&q->not_full);
	free(q->slot);
	*q = (struct queue){0};
}

int queue_put(struct queue *q, void *item)
{
	pthread_mutex_lock(&q->lock);
	while (q->count == q->cap && !q->closed)
		pthread_cond_wait(&q->not_full, &q->lock);
	if (q->closed) {
		pthread_mutex_unlock(&q->lock);
		return ERR_CANCELED;
	}
	q->slot[(q->head + q->count++) % q->cap] = item;
	pthread_cond_signal(&q->not_empty);
	pthread_mutex_unlock(&q->lock);
	return 0;
}

static int take_first(struct queue *q, void **item)
{
	assert(q->count <= q->cap);
	if (q->count == 0)
		return 0;
	*item = q->slot[q->head];
	q->head = (q->head + 1) % q->cap;
	q->count--;
	pthread_cond_signal(&q->not_full);
	return 1;
}

int queue_get(struct queue *q, void **item)
{
	int got;

	pthread_mutex_lock(&q->lock);
	while (q->count == 0 && !q->closed)
		pthread_cond_wait(&q->not_empty, &q->lock);
	got = take_first(q, item);
	pthread_mutex_unlock(&q->lock);
	return got;
}

int queue_get_timeout(struct queue *q, void **item, int64_t timeout_ns)
{
	struct timespec until;
	int64_t deadline;
	bool in_time = true;
	int got = 0;

	if (timeout_ns < 0)
		timeout_ns = 0;
	if (__builtin_add_overflow(clock_now_ns(), timeout_ns, &deadline))
		deadline = INT64_MAX;
	until = (struct timespec){deadline / NS_PER_S, deadline % NS_PER_S};
	pthread_mutex_lock(&q->lock);
	while (q->count == 0 && !q->closed && in_time)
		in_time = pthread_cond_timedwait(&q->not_empty, &q->lock, &until) == 0;
	got = take_first(q, item);
	if (got == 0 && !q->closed)
		got = -ETIMEDOUT;
	pthread_mutex_unlock(&q->lock);
	return got;
}

void queue_close(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->closed = true;
	pthread_cond_broadcast(&q->not_empty);
	pthread_cond_broadcast(&q->not_full);
	pthread_mutex_unlock(&q->lock);
}

void queue_reopen(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->closed = false;
	q->head = 0;
	q->count = 0;
	pthread_mutex_unlock(&q->lock);
}

#define GRACE_DEFAULT_NS (5 * NS_PER_S)
#define PAGE_BYTES 4096
#define GUARD_BYTES PAGE_BYTES /* below each stack */

static uint32_t stats_of(const struct crew_size *s)
{
	return s->stats ? s->stats : s->readers + s->waiters;
}

/* ---- memory ---- */

int crew_memory_bytes(const struct loader_config *c, const struct reader_config *settings,
		      const struct crew_size *size, uint64_t *out, struct err *e)
{
	uint64_t each = 0, total;

	if (size->readers) {
		each = sample_reader_bytes(c, settings, e);
		if (each == 0)
			return -ENOMEM;
	}
	total = size->threads * sizeof(struct thread) +
		stats_of(size) * sizeof(struct worker_stat) +
		(size->readers + size->waiters) * sizeof(struct sample_reader);
	total += size->threads * (loader_stack_bytes(c->workload) + GUARD_BYTES) +
		 stats_of(size) * (sizeof(struct io_stat) + loader_trace_bytes(c));
	if (__builtin_add_overflow(each, (uint64_t)PAGE_BYTES, &each) ||
	    __builtin_mul_overflow(each, (uint64_t)size->readers, &each) ||
	    __builtin_add_overflow(total, each, out))
		return err_set(e, -ENOMEM, "the buffers of %u workers do not fit in memory",
			       size->readers);
	return 0;
}

int crew_init(struct crew *c, const struct loader_ops *ops, const struct loader_config *config,
	      const struct crew_size *size, void (*close_queues)(struct crew *c), struct err *e)
{
	uint32_t readers = size->readers + size->waiters;

	c->base.ops = ops;
	c->config = *config;
	c->size = *size;
	c->close_queues = close_queues;
	c->stat = try_calloc(stats_of(size), sizeof(*c->stat), "statistics of workers", e);
	if (!c->stat)
		return -ENOMEM;
	c->io = try_calloc(stats_of(size), sizeof(*c->io), "statistics of workers", e);
	if (!c->io)
		return -ENOMEM;
	if (size->threads) {
		c->thread = try_calloc(size->threads, sizeof(*c->thread), "threads", e);
		if (!c->thread)
			return -ENOMEM;
	}
	if (readers) {
		c->reader = try_calloc(readers, sizeof(*c->reader), "readers", e);
		if (!c->reader)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < stats_of(size); i++)
		c->stat[i].io = &c->io[i];
	for (uint32_t i = 0; i < readers; i++)
		sample_reader_init(&c->reader[i], &c->config, &c->settings, i,
				   i < size->readers && size->inline_reads, &c->halt, &c->stat[i]);
	return 0;
}

void crew_release(struct crew *c)
{
	if (c->reader) {
		crew_close_readers(c, NULL);
		for (uint32_t i = 0; i < c->size.readers; i++)
			sample_reader_release(&c->reader[i]);
	}
	free(c->reader);
	free(c->thread);
	free(c->io);
	free(c->stat);
}

int crew_open_readers(struct crew *c, struct err *e)
{
	for (uint32_t i = 0; i < c->size.readers; i++) {
		int rc = sample_reader_open(&c->reader[i], e);

		if (rc < 0) {
			if (e)
				err_wrap(e, "rank %u, worker %u", c->config.rank, i);
			return rc;
		}
	}
	return 0;
}

int crew_close_readers(struct crew *c, struct err *e)
{
	int first = 0;

	for (uint32_t i = 0; i < c->size.readers; i++) {
		int rc = sample_reader_close(&c->reader[i], first ? NULL : e);

		if (rc < 0 && first == 0) {
			first = rc;
			if (e)
				err_wrap(e, "rank %u, worker %u", c->config.rank, i);
		}
	}
	return first;
}

/* ---- the end of the run ---- */

static void close_queues(struct crew *c)
{
	if (c->close_queues)
		c->close_queues(c);
}

struct framework_code crew_code_of_rank(struct crew *c)
{
	const struct loader_config *own = &c->config;

	return (struct framework_code){
		.costs = own->costs,
		.stop = own->stop,
		.halt = &c->halt,
		.halts = HALT_STOP,
		.spent = &c->stat[0].framework_rank,
		.dlio = own->workload->compat.dlio,
		.key = rng_key((uint64_t)own->workload->train.seed, ~(uint64_t)own->kind,
			       own->rank),
	};
}

void crew_wake(struct loader *l)
{
	struct crew *c = (struct crew *)l;
	int64_t never = 0;

	/* the first one counts; nothing is published by it */
	atomic_compare_exchange_strong_explicit(&c->woken_ns, &never, clock_now_ns(),
						memory_order_relaxed, memory_order_relaxed);
	/* release: who sees the halt has a time to count the grace from */
	atomic_fetch_or_explicit(&c->halt, HALT_STOP, memory_order_release);
	thread_wake(&c->halt, -1);
	close_queues(c);
}

bool crew_stopped(struct crew *c)
{
	if (atomic_load_explicit(&c->halt, memory_order_acquire) & HALT_STOP)
		return true;
	if (!stop_is_set(c->config.stop))
		return false;
	crew_wake(&c->base);
	return true;
}

bool crew_called_off(const struct crew *c)
{
	return atomic_load_explicit(&c->halt, memory_order_acquire) || stop_is_set(c->config.stop);
}

int crew_canceled(const struct crew *c, struct err *e)
{
	return err_set(e, ERR_CANCELED, "rank %u: the run was stopped", c->config.rank);
}

int crew_receive(struct crew *c, struct queue *q, void **item)
{
	while (!crew_stopped(c))
		if (queue_get_timeout(q, item, CREW_POLL_NS) == 1)
			return 0;
	return ERR_CANCELED;
}

int crew_get(struct crew *c, struct queue *q, void **item)
{
	while (!crew_stopped(c) && atomic_load_explicit(&c->halt, memory_order_acquire) == 0)
		if (queue_get_timeout(q, item, CREW_POLL_NS) == 1)
			return 0;
	return ERR_CANCELED;
}

/* ---- threads ---- */

char crew_letter(const struct crew *c)
{
	return c->config.kind == DATASET_TRAIN ? 'w' : 'e';
}

int crew_start_thread(struct crew *c, uint32_t i, void (*work)(void *arg), void *arg, char letter,
		      uint32_t number, struct err *e)
{
	char name[32];

	assert(i < c->size.threads);
	snprintf(name, sizeof(name), "%c%u.%u", letter, c->config.rank, number);
	return thread_run(&c->thread[i], work, arg, loader_stack_bytes(c->config.workload), name,
			  e);
}

/* For thread_join_grace. The grace counts from wake, so that giving up on many loaders one after
 * another takes no longer than on one. */
static int64_t stopped_ns(void *arg)
{
	struct crew *c = arg;

	return crew_stopped(c) ? atomic_load_explicit(&c->woken_ns, memory_order_relaxed) : 0;
}

/* The number of threads that hang. */
static uint32_t join_threads(struct crew *c)
{
	int64_t grace = c->config.grace_ns > 0 ? c->config.grace_ns : GRACE_DEFAULT_NS;
	uint32_t stuck = 0;

	for (uint32_t i = 0; c->thread && i < c->size.threads; i++)
		stuck += !thread_join_grace(&c->thread[i], stopped_ns, c, grace);
	atomic_store_explicit(&c->stuck, stuck, memory_order_relaxed);
	return stuck;
}

void crew_drop(struct crew *c)
{
	atomic_fetch_or_explicit(&c->halt, HALT_DROP, memory_order_release);
	thread_wake(&c->halt, -1);
}

int crew_join(struct crew *c, struct err *e)
{
	char what[ERR_TEXT_MAX / 2];

	if (join_threads(c) == 0)
		return 0;
	c->base.ops->describe(&c->base, what, sizeof(what));
	return err_set(e, -ETIMEDOUT, "%s", what);
}

int crew_end(struct crew *c, struct err *e)
{
	crew_drop(c);
	close_queues(c);
	return crew_join(c, e);
}

unsigned crew_dismiss(struct crew *c)
{
	unsigned stuck;

	crew_drop(c);
	close_queues(c);
	stuck = join_threads(c);
	for (uint32_t i = 0; stuck && i < c->size.threads; i++)
		thread_leave(&c->thread[i]);
	return stuck;
}

unsigned crew_destroy(struct loader *l, void (*release)(struct crew *c))
{
	struct crew *c = (struct crew *)l;
	unsigned stuck;

	if (!c)
		return 0;
	stuck = crew_dismiss(c);
	if (stuck == 0)
		release(c);
	return stuck;
}

/* ---- the epoch ---- */

int crew_begin(struct crew *c, const struct order *order, uint64_t steps, struct err *e)
{
	uint64_t most = order_steps(order);

	if (c->open || c->held)
		return err_set(e, -EINVAL, "rank %u: an epoch was begun before the last one ended",
			       c->config.rank);
	if (order->batch != c->config.batch_size)
		return err_set(e, -EINVAL,
			       "rank %u: the order has batches of %llu, the loader of %llu",
			       c->config.rank, (unsigned long long)order->batch,
			       (unsigned long long)c->config.batch_size);
	if (crew_stopped(c))
		return crew_canceled(c, e);
	/* no thread looks at the order now: each begins with a task or is started after this */
	c->order = *order;
	c->steps = steps < most ? steps : most;
	c->handed = 0;
	atomic_fetch_and_explicit(&c->halt, ~HALT_DROP, memory_order_relaxed);
	atomic_store_explicit(&c->last_step, c->steps, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->epoch, 1, memory_order_relaxed);
	return 0;
}

int crew_ask(struct crew *c, struct err *e)
{
	if (!c->open || c->held == LOADER_HELD_MAX)
		return err_set(e, -EINVAL, "rank %u: a batch was requested %s", c->config.rank,
			       c->open ? "before another was given back" : "outside of an epoch");
	if (crew_stopped(c))
		return crew_canceled(c, e);
	assert(c->handed <= c->steps);
	return c->handed < c->steps;
}

int crew_hand_out(struct crew *c, const struct batch *b, int64_t now_ns, struct err *e)
{
	assert(c->handed < c->steps && c->held < LOADER_HELD_MAX);
	/* whoever made the batch may have seen the stop first, and cut its costs short */
	if (crew_stopped(c))
		return crew_canceled(c, e);
	c->handed++;
	crew_progress(c, now_ns);
	if (b->err.code < 0) {
		if (e)
			*e = b->err;
		return b->err.code;
	}
	c->held++;
	return 1;
}

const struct worker_stat *crew_stats(const struct loader *l, uint32_t *workers)
{
	const struct crew *c = (const struct crew *)l;

	*workers = stats_of(&c->size);
	return c->stat;
}

/* ---- words ---- */

void crew_waits(struct crew *c, uint64_t batch)
{
	if (batch)
		atomic_store_explicit(&c->waiting_since, clock_now_ns(), memory_order_relaxed);
	/* release: whoever sees the batch sees since when */
	atomic_store_explicit(&c->waiting, batch, memory_order_release);
}

void crew_progress(struct crew *c, int64_t now_ns)
{
	if (c->config.progress_ns)
		atomic_store_explicit(c->config.progress_ns, now_ns, memory_order_relaxed);
}

void crew_describe_rank(const struct crew *c, char *out, size_t out_size)
{
	uint64_t batch = atomic_load_explicit(&c->waiting, memory_order_acquire);
	int64_t since = atomic_load_explicit(&c->waiting_since, memory_order_relaxed);
	uint32_t stuck = atomic_load_explicit(&c->stuck, memory_order_relaxed);
	unsigned long long last = atomic_load_explicit(&c->last_step, memory_order_relaxed);
	unsigned long long epoch = atomic_load_explicit(&c->epoch, memory_order_relaxed);
	const char *what = c->config.kind == DATASET_TRAIN ? "epoch" : "evaluation";
	char age[32];

	str_seconds((double)(clock_now_ns() - since) * 1e-9, age, sizeof(age));
	if (stuck)
		snprintf(out, out_size, "rank %u gave up on %u hung thread%s", c->config.rank,
			 stuck, stuck == 1 ? "" : "s");
	else if (batch > last)
		snprintf(out, out_size, "rank %u waits for the end of %s %llu for %s",
			 c->config.rank, what, epoch, age);
	else if (batch)
		snprintf(out, out_size, "rank %u waits for batch %llu of %llu of %s %llu for %s",
			 c->config.rank, (unsigned long long)batch, last, what, epoch, age);
	else
		snprintf(out, out_size, "rank %u does not wait for its loader", c->config.rank);
}

/* Who has been busy longest, or NULL; and how many of those that read are idle. */
static const struct sample_reader *busiest_reader(const struct crew *c, uint32_t *idle)
{
	const struct sample_reader *oldest = NULL;
	int64_t since = INT64_MAX;

	*idle = 0;
	for (uint32_t i = 0; i < c->size.readers + c->size.waiters; i++) {
		int64_t busy = sample_reader_busy_since(&c->reader[i]);

		if (busy && busy < since) {
			since = busy;
			oldest = &c->reader[i];
		}
		*idle += i < c->size.readers && busy == 0;
	}
	return oldest;
}

void crew_describe(const struct crew *c, uint32_t due, char *out, size_t out_size)
{
	char state[192], who[DATASET_PATH_MAX + 128] = "no worker is busy", rest[64] = "";
	uint32_t idle;
	const struct sample_reader *r = busiest_reader(c, &idle);

	if (due < c->size.readers && !atomic_load_explicit(&c->stuck, memory_order_relaxed) &&
	    atomic_load_explicit(&c->waiting, memory_order_relaxed))
		r = &c->reader[due];
	crew_describe_rank(c, state, sizeof(state));
	if (r)
		sample_reader_describe(r, who, sizeof(who));
	if (c->size.readers > 1)
		snprintf(rest, sizeof(rest), "; %u of %u workers idle", idle, c->size.readers);
	snprintf(out, out_size, "%s; %s%s", state, who, rest);
}
