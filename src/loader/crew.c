/* The workers of a loader: memory, threads, ends and words. */
#include "loader/crew.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"

#define POLL_NS NS_PER_S /* a stop flag set without wake is noticed this soon */
#define JOIN_POLL_NS (NS_PER_S / 10)
#define GRACE_DEFAULT_NS (5 * NS_PER_S)
#define PAGE_BYTES 4096
#define GUARD_BYTES PAGE_BYTES /* below each stack */

int crew_memory_bytes(const struct loader_config *c, uint32_t workers, uint64_t depth,
		      uint64_t results, uint64_t *out, struct err *e)
{
	uint64_t readers = workers ? workers : 1, each = sizeof(struct worker_stat), buffers, total;
	struct reader_config settings;

	sample_reader_settings(&settings, c);
	buffers = sample_reader_bytes(c, &settings, e);
	if (buffers == 0)
		return -ENOMEM;
	if (workers)
		each += sizeof(struct worker) + worker_queue_bytes(depth) +
			worker_stack_bytes(c->workload) + GUARD_BYTES;
	total = worker_queue_bytes(results + workers);
	if (__builtin_add_overflow(buffers, PAGE_BYTES + loader_trace_bytes(c), &buffers) ||
	    __builtin_add_overflow(each, buffers, &each) ||
	    __builtin_mul_overflow(each, readers, &each) ||
	    __builtin_add_overflow(total, each, &total))
		return err_set(e, -ENOMEM, "the buffers of %llu workers do not fit in memory",
			       (unsigned long long)readers);
	*out = total;
	return 0;
}

struct sample_reader *crew_reader(struct crew *c, uint32_t i)
{
	return c->workers ? &c->worker[i].reader : &c->inline_reader;
}

static int open_readers(struct crew *c, struct err *e)
{
	for (uint32_t i = 0; i < crew_readers(c); i++) {
		int rc = sample_reader_open(crew_reader(c, i), e);

		if (rc < 0) {
			if (e)
				err_wrap(e, "rank %u, worker %u", c->config.rank, i);
			return rc;
		}
	}
	return 0;
}

/* The first error is the one reported; all are closed. */
static int close_readers(struct crew *c, struct err *e)
{
	int first = 0;

	for (uint32_t i = 0; i < crew_readers(c); i++) {
		int rc = sample_reader_close(crew_reader(c, i), first ? NULL : e);

		if (rc < 0 && first == 0) {
			first = rc;
			if (e)
				err_wrap(e, "rank %u, worker %u", c->config.rank, i);
		}
	}
	return first;
}

int crew_init(struct crew *c, const struct loader_config *config, uint32_t workers, uint64_t depth,
	      uint64_t results, struct err *e)
{
	c->config = *config;
	c->workers = workers;
	c->persistent = config->workload->reader.persistent_workers;
	c->inbox = &c->results;
	sample_reader_settings(&c->settings, config);
	c->stat = try_calloc(crew_readers(c), sizeof(*c->stat), "statistics of workers", e);
	if (!c->stat)
		return -ENOMEM;
	if (workers == 0) {
		sample_reader_init(&c->inline_reader, &c->config, &c->settings, 0, true, &c->halt,
				   &c->stat[0]);
		return open_readers(c, e);
	}
	if (queue_init(&c->results, results + workers, e) < 0)
		return -ENOMEM;
	c->worker = try_calloc(workers, sizeof(*c->worker), "workers", e);
	if (!c->worker)
		return -ENOMEM;
	for (uint32_t i = 0; i < workers; i++) {
		int rc = worker_init(&c->worker[i], &c->config, &c->settings, i, &c->halt,
				     &c->stat[i], &c->results, &c->order, depth, e);

		if (rc < 0)
			return rc;
	}
	return open_readers(c, e);
}

void crew_release(struct crew *c)
{
	if (c->worker || (c->workers == 0 && c->stat)) {
		close_readers(c, NULL);
		for (uint32_t i = 0; i < crew_readers(c); i++)
			sample_reader_release(crew_reader(c, i));
	}
	for (uint32_t i = 0; c->worker && i < c->workers; i++)
		worker_release(&c->worker[i]);
	queue_release(&c->results);
	free(c->worker);
	free(c->stat);
}

void crew_wake(struct crew *c)
{
	int64_t never = 0;

	atomic_compare_exchange_strong(&c->woken_ns, &never, clock_now_ns());
	atomic_fetch_or(&c->halt, HALT_STOP);
	thread_wake(&c->halt, -1);
	if (c->workers == 0)
		return;
	queue_close(&c->results);
	if (c->inbox != &c->results)
		queue_close(c->inbox);
	for (uint32_t i = 0; i < c->workers; i++)
		queue_close(&c->worker[i].in);
}

bool crew_stopped(struct crew *c)
{
	if (atomic_load_explicit(&c->halt, memory_order_acquire) & HALT_STOP)
		return true;
	if (!c->config.stop || !atomic_load_explicit(&c->config.stop->set, memory_order_relaxed))
		return false;
	crew_wake(c);
	return true;
}

int crew_canceled(const struct crew *c, struct err *e)
{
	return err_set(e, ERR_CANCELED, "rank %u: the run was told to stop", c->config.rank);
}

int crew_receive(struct crew *c, struct task **out)
{
	void *item;

	while (!crew_stopped(c)) {
		if (queue_get_timeout(c->inbox, &item, POLL_NS) == 1) {
			*out = item;
			return 0;
		}
	}
	return ERR_CANCELED;
}

/* Workers that live on acknowledge that they are ready for the epoch, as PyTorch's do. */
static int resume_workers(struct crew *c, struct err *e)
{
	struct task *t;

	for (uint32_t i = 0; i < c->workers; i++)
		worker_control(&c->worker[i], TASK_RESUME);
	for (uint32_t i = 0; i < c->workers; i++)
		if (crew_receive(c, &t) < 0)
			return crew_canceled(c, e);
	return 0;
}

/* A worker that is started again begins with a new reader, as a new process would; its buffers were
 * taken and touched in crew_init, because this is timed. */
static int start_workers(struct crew *c, struct err *e)
{
	double cost = c->config.workload->reader.worker_start_time;

	for (uint32_t i = 0; i < c->workers; i++) {
		int rc;

		if (c->worker[i].running)
			continue;
		worker_pause(&c->halt, c->config.stop, cost);
		if (crew_stopped(c))
			return crew_canceled(c, e);
		rc = sample_reader_open(&c->worker[i].reader, e);
		if (rc < 0)
			return rc;
		rc = worker_start(&c->worker[i], e);
		if (rc < 0)
			return rc;
	}
	c->threads = true;
	return 0;
}

int crew_begin(struct crew *c, const struct order *order, uint64_t steps, struct err *e)
{
	if (order->batch != c->config.batch_size)
		return err_set(e, -EINVAL,
			       "rank %u: the order has batches of %llu, the loader of %llu",
			       c->config.rank, (unsigned long long)order->batch,
			       (unsigned long long)c->config.batch_size);
	if (crew_stopped(c))
		return crew_canceled(c, e);
	/* The workers are idle: none looks at the order. */
	c->order = *order;
	atomic_fetch_and(&c->halt, ~HALT_DROP);
	atomic_store(&c->steps, steps);
	atomic_fetch_add(&c->epoch, 1);
	if (c->workers == 0)
		return 0;
	return c->threads ? resume_workers(c, e) : start_workers(c, e);
}

void crew_drop(struct crew *c)
{
	atomic_fetch_or(&c->halt, HALT_DROP);
	thread_wake(&c->halt, -1);
}

int64_t crew_patience_ns(int64_t woken_ns, int64_t grace_ns)
{
	int64_t grace = grace_ns > 0 ? grace_ns : GRACE_DEFAULT_NS, left;

	if (woken_ns == 0)
		return JOIN_POLL_NS;
	left = woken_ns + grace - clock_now_ns();
	return left < 0 ? 0 : left < JOIN_POLL_NS ? left : JOIN_POLL_NS;
}

/* Joins every worker that ends; without wake waits for ever, after it until the grace is over. The
 * number of those that hang. */
static uint32_t join_workers(struct crew *c)
{
	uint32_t stuck = 0;

	for (uint32_t i = 0; i < c->workers; i++) {
		struct worker *w = &c->worker[i];
		int64_t patience = 1;

		while (w->running && patience > 0) {
			patience = crew_patience_ns(crew_stopped(c) ? atomic_load(&c->woken_ns) : 0,
						    c->config.grace_ns);
			worker_join(w, patience);
		}
		stuck += w->running;
	}
	atomic_store(&c->stuck, stuck);
	return stuck;
}

int crew_end(struct crew *c, bool woken, const struct loader *l, struct err *e)
{
	char what[ERR_TEXT_MAX / 2];

	if (c->workers == 0 || (!woken && c->persistent))
		return 0;
	for (uint32_t i = 0; i < c->workers && !woken; i++)
		worker_control(&c->worker[i], TASK_QUIT);
	if (join_workers(c) > 0) {
		l->ops->describe(l, what, sizeof(what));
		return err_set(e, -ETIMEDOUT, "%s", what);
	}
	c->threads = false;
	return woken ? 0 : close_readers(c, e);
}

unsigned crew_dismiss(struct crew *c)
{
	if (c->workers == 0 || !c->worker)
		return 0;
	crew_drop(c);
	for (uint32_t i = 0; i < c->workers; i++)
		queue_close(&c->worker[i].in);
	if (join_workers(c) == 0)
		return 0;
	for (uint32_t i = 0; i < c->workers; i++)
		if (c->worker[i].running)
			pthread_detach(c->worker[i].thread);
	return atomic_load(&c->stuck);
}

void crew_waits(struct crew *c, uint64_t batch)
{
	if (batch)
		atomic_store_explicit(&c->waiting_since, clock_now_ns(), memory_order_relaxed);
	atomic_store_explicit(&c->waiting, batch, memory_order_release);
}

void crew_progress(struct crew *c)
{
	if (c->config.progress_ns)
		atomic_store_explicit(c->config.progress_ns, clock_now_ns(), memory_order_relaxed);
}

/* The one that has been busy longest, or NULL. */
static const struct sample_reader *busiest(const struct crew *c)
{
	const struct sample_reader *oldest = NULL;
	int64_t since = INT64_MAX;

	for (uint32_t i = 0; i < c->workers; i++) {
		int64_t busy = sample_reader_busy_since(&c->worker[i].reader);

		if (busy && busy < since) {
			since = busy;
			oldest = &c->worker[i].reader;
		}
	}
	return oldest;
}

static uint32_t idle_workers(const struct crew *c)
{
	uint32_t idle = 0;

	for (uint32_t i = 0; i < c->workers; i++)
		idle += sample_reader_busy_since(&c->worker[i].reader) == 0;
	return idle;
}

static void describe_wait(const struct crew *c, uint64_t batch, char *out, size_t out_size)
{
	int64_t since = atomic_load_explicit(&c->waiting_since, memory_order_relaxed);
	char age[32];

	str_seconds((double)(clock_now_ns() - since) * 1e-9, age, sizeof(age));
	snprintf(out, out_size, "waits for batch %llu of %llu of %s %llu for %s",
		 (unsigned long long)batch, (unsigned long long)atomic_load(&c->steps),
		 c->config.kind == DATASET_TRAIN ? "epoch" : "evaluation",
		 (unsigned long long)atomic_load(&c->epoch), age);
}

void crew_describe(const struct crew *c, uint32_t due, char *out, size_t out_size)
{
	uint64_t batch = atomic_load_explicit(&c->waiting, memory_order_acquire);
	uint32_t stuck = atomic_load(&c->stuck);
	char state[160], who[DATASET_PATH_MAX + 128] = "no worker is busy", idle[64] = "";
	const struct sample_reader *r;

	if (c->workers == 0)
		r = &c->inline_reader;
	else if (due < c->workers && batch && !stuck)
		r = &c->worker[due].reader;
	else
		r = busiest(c);
	if (stuck)
		snprintf(state, sizeof(state), "gave up on %u hung worker%s", stuck,
			 stuck == 1 ? "" : "s");
	else if (batch)
		describe_wait(c, batch, state, sizeof(state));
	else
		snprintf(state, sizeof(state), "does not wait for its loader");
	if (r)
		sample_reader_describe(r, who, sizeof(who));
	if (c->workers > 1)
		snprintf(idle, sizeof(idle), "; %u of %u workers idle", idle_workers(c),
			 c->workers);
	snprintf(out, out_size, "rank %u %s; %s%s", c->config.rank, state, who, idle);
}
