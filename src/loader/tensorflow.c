/* tf.data as DLIO builds it.
 *
 * TFRecord files: list of files (shuffled or not), every ranks-th of them for a rank,
 * TFRecordDataset(buffer_size = transfer_size, num_parallel_reads = read_threads), shuffle, batch
 * (drop_remainder), map(num_parallel_calls = computation_threads), prefetch. num_parallel_reads = k
 * is the legacy interleave: 3k threads, of which k take turns and 2k have opened and read ahead the
 * files that come next, each with two records beside the one it is at. An epoch is a new iterator:
 * new threads, an empty shuffle buffer, nothing read ahead across its beginning. With compat.dlio
 * the records are repeated after batch, as DLIO has it, although it takes a new iterator each
 * epoch: the stages read on past the end, and one batch more is fetched.
 *
 * Other formats: one Python generator for each of read_threads, which yields whole batches of
 * consecutive samples; interleave takes a batch of each in turn and keeps three of each read;
 * prefetch. There the interpreter's lock would serialise what is not a request: here it does not.
 */
#include "loader/tensorflow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/sysinfo.h"
#include "workload/time_draw.h"

#define POLL_NS NS_PER_S /* a stop flag set without wake is noticed this soon */
#define GRACE_DEFAULT_NS (5 * NS_PER_S)
#define PAGE_BYTES 4096
#define GUARD_BYTES PAGE_BYTES /* below each stack */
#define AUTOTUNE_CALLS 16

/* ---- what a workload means ---- */

static uint32_t autotune_calls(void)
{
	double cpus = host_usable_cpus();

	return cpus < 1 ? 1 : cpus < AUTOTUNE_CALLS ? (uint32_t)cpus : AUTOTUNE_CALLS;
}

/* What a workload means: all of the struct that is not memory. */
static void plan(struct tensorflow *l, const struct workload *w)
{
	uint32_t threads = (uint32_t)w->reader.read_threads;
	int64_t calls = w->reader.computation_threads, prefetch = w->reader.prefetch_size;

	l->records = order_tf_records(w);
	l->endless = l->records && w->compat.dlio;
	l->cycle = threads;
	l->threads = l->records ? 3 * threads : threads ? threads : 1;
	l->autotune = prefetch < 0;
	l->prefetch = l->autotune ? AUTOTUNE_PREFETCH : (uint32_t)prefetch;
	l->batches = l->prefetch + LOADER_HELD_MAX + 1;
	if (!l->records) {
		l->batches += BATCHES_AHEAD * l->threads;
	} else {
		l->calls = calls < 0 ? autotune_calls() : (uint32_t)calls;
		/* in DLIO nothing waits for a record */
		l->wait = time_dist_waits(&w->reader.preprocess_time) && !w->compat.dlio;
		l->mappers = l->wait ? l->calls : 0;
		l->batches += l->calls;
	}
	l->stats = l->threads ? l->threads : 1;
	if (l->wait)
		l->stats += l->mappers ? l->mappers : 1;
	l->thread_count = l->threads + (l->calls > 0) + l->mappers + (l->prefetch > 0);
}

/* Records that can be there before their batch is: the rank that has taken the first batch has
 * waited for all of them, and at the end of an epoch they are delivered without a read. */
static uint64_t records_ahead(const struct tensorflow *l, const struct workload *w)
{
	uint64_t all =
		(uint64_t)w->dataset.num_files_train * (uint64_t)w->dataset.num_samples_per_file;
	uint64_t most = (RECORDS_AHEAD + 1) * (uint64_t)l->threads;

	if (w->reader.sample_shuffle != SHUFFLE_OFF)
		most += (uint64_t)w->reader.shuffle_size;
	return most < all ? most : all;
}

static void tensorflow_window(const struct workload *w, uint32_t *workers, uint64_t *batches)
{
	uint64_t batch = w->reader.batch_size > 0 ? (uint64_t)w->reader.batch_size : 1, records;
	struct tensorflow l = {0};

	plan(&l, w);
	*workers = l.threads;
	*batches = l.prefetch + l.calls;
	if (l.records) {
		records = records_ahead(&l, w);
		*batches += records / batch + (records % batch != 0);
	} else {
		*batches += BATCHES_AHEAD * (uint64_t)l.threads;
	}
}

static int check_config(const struct loader_config *c, struct err *e)
{
	const struct workload *w = c->workload;
	int64_t threads = w->reader.read_threads;

	if (c->batch_size == 0 || c->batch_size > UINT32_MAX)
		return err_set(e, ERR_USAGE,
			       "reader.batch_size is %llu; a batch has 1 to %u samples",
			       (unsigned long long)c->batch_size, UINT32_MAX);
	if (threads < 0 || threads > UINT16_MAX + 1)
		return err_set(e, ERR_USAGE, "reader.read_threads is %lld; 0 to 65536 are possible",
			       (long long)threads);
	if (w->reader.prefetch_size > UINT16_MAX + 1)
		return err_set(e, ERR_USAGE,
			       "reader.prefetch_size is %lld; -1 (AUTOTUNE) to 65536 are possible",
			       (long long)w->reader.prefetch_size);
	if (w->reader.computation_threads > UINT16_MAX + 1)
		return err_set(
			e, ERR_USAGE,
			"reader.computation_threads is %lld; -1 (AUTOTUNE) to 65536 are possible",
			(long long)w->reader.computation_threads);
	return 0;
}

static void settings(struct reader_config *out, const struct loader_config *c)
{
	sample_reader_settings(out, c);
	/* the iterator of a file reads it through, whatever read_type says */
	if (order_tf_records(c->workload))
		out->keep_open = false;
}

static uint64_t buffer_records(const struct loader_config *c)
{
	const struct workload *w = c->workload;
	uint64_t all = dataset_samples(c->dataset, c->kind);
	uint64_t size = (uint64_t)w->reader.shuffle_size;

	if (!order_tf_records(w) || w->reader.sample_shuffle == SHUFFLE_OFF)
		return 0;
	return size < all ? size : all;
}

/* All queues of the loader's own. */
static uint64_t queue_bytes(const struct tensorflow *l)
{
	uint64_t each = l->records ? 1 + RECORDS_AHEAD : 2 * BATCHES_AHEAD;

	return (l->batches + 3ull * l->calls + 2ull * l->prefetch + each * l->threads) *
	       sizeof(void *);
}

static int tensorflow_memory_bytes(const struct loader_config *c, uint64_t *out, struct err *e)
{
	struct stream_rules rules = {0};
	struct tensorflow l = {0};
	struct reader_config told;
	uint64_t total, each, readers, buffer;
	int rc = check_config(c, e);

	if (rc < 0)
		return rc;
	plan(&l, c->workload);
	settings(&told, c);
	each = sample_reader_bytes(c, &told, e);
	if (each == 0)
		return -ENOMEM;
	readers = l.threads ? l.threads : 1;
	rules.cycle = l.cycle;
	rules.ahead = 2 * l.cycle;
	total = sizeof(l) + queue_bytes(&l) + l.batches * sizeof(*l.batch) +
		2 * stream_cycle_bytes(&rules) + ERRORS_KEPT * sizeof(struct err) +
		l.stats * (sizeof(struct worker_stat) + sizeof(struct tf_mapper) +
			   loader_trace_bytes(c)) +
		l.thread_count * (sizeof(struct stage_thread) + worker_stack_bytes(c->workload) +
				  GUARD_BYTES);
	if (__builtin_add_overflow(each, PAGE_BYTES + sizeof(struct tf_reader), &each) ||
	    __builtin_mul_overflow(each, readers, &each) ||
	    __builtin_add_overflow(total, each, &total) ||
	    __builtin_mul_overflow(buffer_records(c), sizeof(struct record) + sizeof(uint64_t),
				   &buffer) ||
	    __builtin_add_overflow(total, buffer, &total))
		return err_set(
			e, -ENOMEM,
			"the buffers of %llu readers and of reader.shuffle_size %lld records "
			"do not fit in memory",
			(unsigned long long)readers, (long long)c->workload->reader.shuffle_size);
	*out = total;
	return 0;
}

/* ---- memory ---- */

static int tensorflow_open_readers(struct tensorflow *l, struct err *e)
{
	for (uint32_t i = 0; i < (l->threads ? l->threads : 1); i++) {
		int rc = sample_reader_open(&l->reader[i].reader, e);

		if (rc < 0) {
			if (e)
				err_wrap(e, "rank %u, worker %u", l->config.rank, i);
			return rc;
		}
	}
	return 0;
}

/* The first error is the one reported; all are closed. */
static int tensorflow_close_readers(struct tensorflow *l, struct err *e)
{
	int first = 0;

	for (uint32_t i = 0; i < (l->threads ? l->threads : 1); i++) {
		int rc = sample_reader_close(&l->reader[i].reader, first ? NULL : e);

		if (rc < 0 && first == 0) {
			first = rc;
			if (e)
				err_wrap(e, "rank %u, worker %u", l->config.rank, i);
		}
	}
	return first;
}

static int init_queues(struct tensorflow *l, struct err *e)
{
	int rc = queue_init(&l->spare, l->batches, e);

	if (rc == 0 && l->calls) {
		rc = queue_init(&l->map_room, l->calls, e);
		rc = rc ? rc : queue_init(&l->mapping, l->calls, e);
		rc = rc ? rc : queue_init(&l->calling, l->calls, e);
	}
	if (rc == 0 && l->prefetch) {
		rc = queue_init(&l->ring_room, l->prefetch, e);
		rc = rc ? rc : queue_init(&l->ready, l->prefetch, e);
	}
	for (uint32_t i = 0; i < l->threads && rc == 0; i++) {
		rc = queue_init(&l->reader[i].in, l->records ? 1 : BATCHES_AHEAD, e);
		rc = rc ? rc
			: queue_init(&l->reader[i].out, l->records ? RECORDS_AHEAD : BATCHES_AHEAD,
				     e);
	}
	return rc;
}

static void init_readers(struct tensorflow *l)
{
	uint32_t readers = l->threads ? l->threads : 1;

	for (uint32_t i = 0; i < readers; i++) {
		struct tf_reader *r = &l->reader[i];

		r->loader = l;
		r->number = i;
		sample_reader_init(&r->reader, &l->config, &l->settings, i, l->threads == 0,
				   &l->halt, &l->stat[i]);
	}
	for (uint32_t i = readers; i < l->stats; i++) {
		struct tf_mapper *m = &l->mapper[i - readers];

		m->loader = l;
		sample_reader_init(&m->reader, &l->config, &l->settings, i, false, &l->halt,
				   &l->stat[i]);
	}
}

static int allocate(struct tensorflow *l, struct err *e)
{
	struct stream_rules rules = {.cycle = l->cycle, .ahead = 2 * l->cycle};
	uint32_t readers = l->threads ? l->threads : 1;

	l->stat = try_calloc(l->stats, sizeof(*l->stat), "statistics of readers", e);
	l->reader = l->stat ? try_calloc(readers, sizeof(*l->reader), "readers", e) : NULL;
	l->mapper = l->reader ? try_calloc(l->stats, sizeof(*l->mapper), "map's calls", e) : NULL;
	l->batch = l->mapper ? try_calloc(l->batches, sizeof(*l->batch), "batches", e) : NULL;
	l->thread = l->batch ? try_calloc(l->thread_count ? l->thread_count : 1, sizeof(*l->thread),
					  "threads", e)
			     : NULL;
	l->error = l->thread ? try_calloc(ERRORS_KEPT, sizeof(*l->error), "errors", e) : NULL;
	if (!l->error)
		return -ENOMEM;
	init_readers(l);
	if (l->records) {
		l->buffer_room = buffer_records(&l->config);
		l->cycle_memory = try_calloc(1, stream_cycle_bytes(&rules), "turns of files", e);
		l->plan_memory = l->cycle_memory
					 ? try_calloc(stream_cycle_bytes(&rules) +
							      l->buffer_room * sizeof(uint64_t),
						      1, "the plan of an epoch", e)
					 : NULL;
		l->buffer = l->plan_memory ? try_calloc(l->buffer_room ? l->buffer_room : 1,
							sizeof(*l->buffer), "the shuffle buffer", e)
					   : NULL;
		if (!l->buffer)
			return -ENOMEM;
		memset(l->buffer, 0, l->buffer_room * sizeof(*l->buffer));
	}
	return init_queues(l, e);
}

static void tensorflow_release(struct tensorflow *l)
{
	if (l->error)
		tensorflow_close_readers(l, NULL);
	for (uint32_t i = 0; l->error && i < (l->threads ? l->threads : 1); i++) {
		sample_reader_release(&l->reader[i].reader);
		queue_release(&l->reader[i].in);
		queue_release(&l->reader[i].out);
	}
	queue_release(&l->spare);
	queue_release(&l->map_room);
	queue_release(&l->mapping);
	queue_release(&l->calling);
	queue_release(&l->ring_room);
	queue_release(&l->ready);
	free(l->buffer);
	free(l->plan_memory);
	free(l->cycle_memory);
	free(l->error);
	free(l->thread);
	free(l->batch);
	free(l->mapper);
	free(l->reader);
	free(l->stat);
	free(l);
}

static int tensorflow_create(struct loader **out, const struct loader_config *c, struct err *e)
{
	struct tensorflow *l;
	int rc = check_config(c, e);

	if (rc < 0)
		return rc;
	l = try_calloc(1, sizeof(*l), "loader", e);
	if (!l)
		return -ENOMEM;
	l->base.ops = &loader_tensorflow;
	l->config = *c;
	plan(l, c->workload);
	settings(&l->settings, c);
	rc = allocate(l, e);
	if (rc == 0)
		rc = tensorflow_open_readers(l, e);
	if (rc < 0) {
		tensorflow_release(l);
		return rc;
	}
	*out = &l->base;
	return 0;
}

/* ---- ends ---- */

/* Wakes whoever waits; `why` is in the halt word by then. */
static void close_queues(struct tensorflow *l)
{
	struct queue *own[] = {&l->spare,   &l->map_room,  &l->mapping,
			       &l->calling, &l->ring_room, &l->ready};

	thread_wake(&l->halt, -1);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (own[i]->slot)
			queue_close(own[i]);
	for (uint32_t i = 0; i < l->threads; i++) {
		queue_close(&l->reader[i].in);
		queue_close(&l->reader[i].out);
	}
	for (uint32_t i = 0; i < l->batches; i++)
		thread_wake(&l->batch[i].mapped, -1);
}

static void tensorflow_wake(struct loader *base)
{
	struct tensorflow *l = tensorflow_of(base);
	int64_t never = 0;

	atomic_compare_exchange_strong(&l->woken_ns, &never, clock_now_ns());
	atomic_fetch_or(&l->halt, HALT_STOP);
	close_queues(l);
}

bool tensorflow_stopped(void *arg)
{
	struct tensorflow *l = arg;

	if (atomic_load_explicit(&l->halt, memory_order_acquire) & HALT_STOP)
		return true;
	if (!l->config.stop || !atomic_load_explicit(&l->config.stop->set, memory_order_relaxed))
		return false;
	tensorflow_wake(&l->base);
	return true;
}

int tensorflow_get(struct tensorflow *l, struct queue *q, void **item)
{
	while (!tensorflow_stopped(l) && atomic_load_explicit(&l->halt, memory_order_acquire) == 0)
		if (queue_get_timeout(q, item, POLL_NS) == 1)
			return 0;
	return ERR_CANCELED;
}

static int canceled(const struct tensorflow *l, struct err *e)
{
	return err_set(e, ERR_CANCELED, "rank %u: the run was told to stop", l->config.rank);
}

/* ---- map and prefetch ---- */

static void transform(struct tensorflow *l, struct tf_mapper *m, struct tf_batch *t)
{
	int64_t now = clock_now_ns(), begin = now;

	if (l->wait && t->batch.err.code == 0) {
		for (uint32_t i = 0; i < t->batch.samples; i++)
			sample_reader_preprocess(&m->reader, t->sample, &now);
		sample_reader_idle(&m->reader);
		t->batch.done_ns = now;
		t->batch.work.ns[WORK_PREPROCESS] += now - begin;
	}
}

/* One of the calls that run at once. */
static void mapper_work(void *arg)
{
	struct tf_mapper *m = arg;
	struct tensorflow *l = m->loader;
	void *item;

	while (tensorflow_get(l, &l->calling, &item) == 0) {
		struct tf_batch *t = item;

		transform(l, m, t);
		atomic_store_explicit(&t->mapped, 1, memory_order_release);
		thread_wake(&t->mapped, 1);
	}
}

/* Map's own thread: asks for a batch whenever there is room for another call. */
static void map_work(void *arg)
{
	struct tensorflow *l = arg;
	void *room, *item;

	for (uint64_t k = 0; k < l->read_steps; k++) {
		struct tf_batch *t;

		if (tensorflow_get(l, &l->map_room, &room) < 0 ||
		    tensorflow_get(l, &l->spare, &item) < 0)
			return;
		t = item;
		if (tensorflow_fill(l, t) < 0)
			return;
		atomic_store_explicit(&t->mapped, l->mappers == 0, memory_order_relaxed);
		if (queue_put(&l->mapping, t) < 0 || (l->mappers && queue_put(&l->calling, t) < 0))
			return;
	}
}

static int pull_mapped(struct tensorflow *l, struct tf_batch **out)
{
	struct tf_batch *t;
	void *item;

	if (tensorflow_get(l, &l->mapping, &item) < 0)
		return ERR_CANCELED;
	t = item;
	while (!atomic_load_explicit(&t->mapped, memory_order_acquire)) {
		if (tensorflow_stopped(l) || atomic_load(&l->halt))
			return ERR_CANCELED;
		thread_wait(&t->mapped, 0, POLL_NS);
	}
	(void)queue_put(&l->map_room, l);
	*out = t;
	return 0;
}

/* The next batch of what lies before prefetch. */
static int pull(struct tensorflow *l, struct tf_batch **out)
{
	void *item;
	int rc;

	if (!l->records)
		return tensorflow_generated(l, out);
	if (l->calls)
		return pull_mapped(l, out);
	if (tensorflow_get(l, &l->spare, &item) < 0)
		return ERR_CANCELED;
	*out = item;
	rc = tensorflow_fill(l, *out);
	if (rc == 0)
		transform(l, l->mapper, *out);
	return rc;
}

static void prefetch_work(void *arg)
{
	struct tensorflow *l = arg;
	void *room;

	for (uint64_t k = 0; k < l->read_steps; k++) {
		struct tf_batch *t;

		if (tensorflow_get(l, &l->ring_room, &room) < 0 || pull(l, &t) < 0)
			return;
		atomic_fetch_add_explicit(&l->in_ring, 1, memory_order_relaxed);
		if (queue_put(&l->ready, t) < 0)
			return;
	}
}

/* AUTOTUNE's rule: a ring that was full once and is then found empty was too small. */
static void tune(struct tensorflow *l)
{
	uint32_t held = atomic_load_explicit(&l->in_ring, memory_order_relaxed);

	if (held >= l->ring) {
		l->was_full = true;
	} else if (held == 0 && l->was_full) {
		l->was_full = false;
		for (uint32_t i = l->ring; i > 0 && l->ring < l->prefetch; i--, l->ring++)
			(void)queue_put(&l->ring_room, l);
	}
}

static int take(struct tensorflow *l, struct tf_batch **out)
{
	void *item;

	if (l->prefetch == 0)
		return pull(l, out);
	if (l->autotune)
		tune(l);
	if (tensorflow_get(l, &l->ready, &item) < 0)
		return ERR_CANCELED;
	atomic_fetch_sub_explicit(&l->in_ring, 1, memory_order_relaxed);
	(void)queue_put(&l->ring_room, l);
	*out = item;
	return 0;
}

/* ---- the epoch ---- */

static void fill_queue(struct queue *q, void *token, uint32_t n)
{
	queue_reopen(q);
	for (uint32_t i = 0; i < n; i++)
		(void)queue_put(q, token);
}

static void reset(struct tensorflow *l)
{
	queue_reopen(&l->spare);
	for (uint32_t i = 0; i < l->batches; i++)
		(void)queue_put(&l->spare, &l->batch[i]);
	if (l->calls) {
		fill_queue(&l->map_room, l, l->calls);
		queue_reopen(&l->mapping);
		queue_reopen(&l->calling);
	}
	l->ring = l->autotune ? 1 : l->prefetch;
	l->was_full = false;
	atomic_store(&l->in_ring, 0);
	if (l->prefetch) {
		fill_queue(&l->ring_room, l, l->ring);
		queue_reopen(&l->ready);
	}
	for (uint32_t i = 0; i < l->threads; i++) {
		fill_queue(&l->reader[i].in, l, l->records ? 0 : BATCHES_AHEAD);
		queue_reopen(&l->reader[i].out);
	}
	tensorflow_readers_begin(l);
}

static int start_member(struct tensorflow *l, uint32_t at, void (*work)(void *), void *arg,
			char letter, uint32_t number, struct err *e)
{
	char name[32];

	snprintf(name, sizeof(name), "%c%u.%u", letter, l->config.rank, number);
	return stage_start(&l->thread[at], work, arg, worker_stack_bytes(l->config.workload), name,
			   e);
}

static int start_threads(struct tensorflow *l, struct err *e)
{
	bool train = l->config.kind == DATASET_TRAIN;
	uint32_t at = 0;
	int rc = 0;

	for (uint32_t i = 0; i < l->threads && rc == 0; i++)
		rc = start_member(l, at++,
				  l->records ? tensorflow_record_work : tensorflow_generator_work,
				  &l->reader[i], train ? 'w' : 'e', i, e);
	if (l->calls && rc == 0)
		rc = start_member(l, at++, map_work, l, 'm', 0, e);
	for (uint32_t i = 0; i < l->mappers && rc == 0; i++)
		rc = start_member(l, at++, mapper_work, &l->mapper[i], 'm', i + 1, e);
	if (l->prefetch && rc == 0)
		rc = start_member(l, at++, prefetch_work, l, 'p', 0, e);
	return rc;
}

/* Calls all threads off and waits for them. The number of those that hang. */
static uint32_t end_threads(struct tensorflow *l)
{
	int64_t grace = l->config.grace_ns > 0 ? l->config.grace_ns : GRACE_DEFAULT_NS;
	uint32_t stuck;

	atomic_fetch_or(&l->halt, HALT_DROP);
	close_queues(l);
	stuck = stage_join(l->thread, l->thread_count, &l->woken_ns, grace, tensorflow_stopped, l);
	atomic_store(&l->stuck, stuck);
	return stuck;
}

/* Who has been busy longest: in a pipeline nobody behind it can go on without it for long. */
static const struct sample_reader *busiest(const struct tensorflow *l, uint32_t *idle)
{
	const struct sample_reader *oldest = NULL;
	uint32_t readers = l->threads ? l->threads : 1;
	int64_t since = INT64_MAX;

	*idle = 0;
	for (uint32_t i = 0; i < l->stats; i++) {
		const struct sample_reader *r =
			i < readers ? &l->reader[i].reader : &l->mapper[i - readers].reader;
		int64_t busy = sample_reader_busy_since(r);

		if (busy && busy < since) {
			since = busy;
			oldest = r;
		}
		*idle += i < readers && busy == 0;
	}
	return oldest;
}

static void tensorflow_describe(const struct loader *base, char *out, size_t out_size)
{
	const struct tensorflow *l = tensorflow_of_const(base);
	uint64_t batch = atomic_load_explicit(&l->waiting, memory_order_acquire);
	int64_t waiting = atomic_load_explicit(&l->waiting_since, memory_order_relaxed);
	uint32_t stuck = atomic_load(&l->stuck), idle;
	const struct sample_reader *r = busiest(l, &idle);
	char state[160], who[DATASET_PATH_MAX + 128] = "no worker is busy", rest[64] = "", age[32];

	if (stuck)
		snprintf(state, sizeof(state), "gave up on %u hung thread%s", stuck,
			 stuck == 1 ? "" : "s");
	else if (batch > atomic_load(&l->last_step))
		snprintf(state, sizeof(state), "waits for the end of %s %llu for %s",
			 l->config.kind == DATASET_TRAIN ? "epoch" : "evaluation",
			 (unsigned long long)atomic_load(&l->epoch),
			 str_seconds((double)(clock_now_ns() - waiting) * 1e-9, age, sizeof(age)));
	else if (batch)
		snprintf(state, sizeof(state), "waits for batch %llu of %llu of %s %llu for %s",
			 (unsigned long long)batch, (unsigned long long)atomic_load(&l->last_step),
			 l->config.kind == DATASET_TRAIN ? "epoch" : "evaluation",
			 (unsigned long long)atomic_load(&l->epoch),
			 str_seconds((double)(clock_now_ns() - waiting) * 1e-9, age, sizeof(age)));
	else
		snprintf(state, sizeof(state), "does not wait for its loader");
	if (r)
		sample_reader_describe(r, who, sizeof(who));
	if (l->threads > 1)
		snprintf(rest, sizeof(rest), "; %u of %u workers idle", idle, l->threads);
	snprintf(out, out_size, "rank %u %s; %s%s", l->config.rank, state, who, rest);
}

static int check_start(struct tensorflow *l, const struct order *order, struct err *e)
{
	if (l->open || l->held)
		return err_set(e, -EINVAL,
			       "rank %u: an epoch was begun before the last one was ended",
			       l->config.rank);
	if (order->batch != l->config.batch_size)
		return err_set(e, -EINVAL,
			       "rank %u: the order has batches of %llu, the loader of %llu",
			       l->config.rank, (unsigned long long)order->batch,
			       (unsigned long long)l->config.batch_size);
	if ((order->how == ORDER_TF_RECORDS) != l->records ||
	    (l->records &&
	     (order->stream.cycle != l->cycle ||
	      stream_shuffle_places(&order->stream, l->config.rank) > l->buffer_room)))
		return err_set(e, -EINVAL, "rank %u: the order is of another loader",
			       l->config.rank);
	return tensorflow_stopped(l) ? canceled(l, e) : 0;
}

static int tensorflow_start(struct loader *base, const struct order *order, uint64_t steps,
			    struct err *e)
{
	struct tensorflow *l = tensorflow_of(base);
	int rc = check_start(l, order, e);

	if (rc < 0)
		return rc;
	l->order = *order;
	l->all_steps = order_steps(order);
	l->steps = steps < l->all_steps ? steps : l->all_steps;
	l->read_steps = l->endless ? UINT64_MAX : l->steps;
	l->handed = 0;
	l->asked_on = false;
	atomic_fetch_and(&l->halt, ~HALT_DROP);
	atomic_store(&l->last_step, l->steps);
	atomic_fetch_add(&l->epoch, 1);
	rc = tensorflow_open_readers(l, e);
	if (rc < 0)
		return rc;
	reset(l);
	rc = start_threads(l, e);
	if (rc < 0) {
		end_threads(l);
		return rc;
	}
	l->open = true;
	return 0;
}

static int tensorflow_next(struct loader *base, struct batch **out, struct err *e)
{
	struct tensorflow *l = tensorflow_of(base);
	struct tf_batch *t = NULL;
	int rc;

	*out = NULL;
	if (!l->open || l->held == LOADER_HELD_MAX)
		return err_set(e, -EINVAL, "rank %u: a batch was asked for %s", l->config.rank,
			       l->open ? "before one was given back" : "outside of an epoch");
	if (tensorflow_stopped(l))
		return canceled(l, e);
	if (l->handed == l->steps && (!l->endless || l->asked_on))
		return 0;
	atomic_store_explicit(&l->waiting_since, clock_now_ns(), memory_order_relaxed);
	atomic_store_explicit(&l->waiting, l->handed + 1, memory_order_release);
	rc = take(l, &t);
	atomic_store_explicit(&l->waiting, 0, memory_order_release);
	if (rc < 0)
		return canceled(l, e);
	if (l->handed == l->steps) {
		/* DLIO's loop looks at its count when it has the batch */
		l->asked_on = true;
		(void)queue_put(&l->spare, t);
		return 0;
	}
	l->handed++;
	if (l->config.progress_ns)
		atomic_store_explicit(l->config.progress_ns, clock_now_ns(), memory_order_relaxed);
	if (t->batch.err.code < 0) {
		rc = t->batch.err.code;
		if (e)
			*e = t->batch.err;
		(void)queue_put(&l->spare, t);
		return rc;
	}
	l->held++;
	*out = &t->batch;
	return 1;
}

static void tensorflow_give_back(struct loader *base, struct batch *b)
{
	struct tensorflow *l = tensorflow_of(base);

	l->held--;
	/* an epoch that was ended in between has closed it, and the next one collects them all */
	(void)queue_put(&l->spare, b);
}

static int tensorflow_finish(struct loader *base, struct err *e)
{
	struct tensorflow *l = tensorflow_of(base);
	char what[ERR_TEXT_MAX / 2];

	if (!l->open)
		return 0;
	l->open = false;
	if (end_threads(l) == 0)
		return tensorflow_close_readers(l, e);
	tensorflow_describe(&l->base, what, sizeof(what));
	return err_set(e, -ETIMEDOUT, "%s", what);
}

static const struct worker_stat *tensorflow_stats(const struct loader *base, uint32_t *workers)
{
	*workers = tensorflow_of_const(base)->stats;
	return tensorflow_of_const(base)->stat;
}

static bool tensorflow_undelivered(struct loader *base, uint64_t steps_done, struct order_proof *p)
{
	struct tensorflow *l = tensorflow_of(base);
	const struct order *o = &l->order;

	if (l->records) {
		order_tf_undelivered(p, o, l->config.rank, steps_done, l->plan_memory);
		return true;
	}
	order_proof_undelivered(p, o, l->config.rank, order_steps(o));
	for (uint64_t k = steps_done; k < l->all_steps; k++)
		for (uint64_t i = 0, first = tensorflow_position(l, k); i < o->batch; i++)
			order_proof_add(p, order_at(o, l->config.rank, first + i));
	return true;
}

static unsigned tensorflow_destroy(struct loader *base)
{
	struct tensorflow *l = tensorflow_of(base);

	if (!l)
		return 0;
	if (end_threads(l) > 0) {
		stage_detach(l->thread, l->thread_count);
		return atomic_load(&l->stuck);
	}
	tensorflow_release(l);
	return 0;
}

const struct loader_ops loader_tensorflow = {
	.is.name = "tensorflow",
	.is.help =
		"tf.data: TFRecordDataset, interleave, shuffle buffer, map, prefetch; generators "
		"for "
		"other formats.",
	.is.flags = LOADER_ITERATES,
	.is.default_of = 1u << FRAMEWORK_TENSORFLOW,
	.is.rule = RULE_GENERATORS,
	.is.ignores = (const char *const[]){"reader.in_order", "reader.persistent_workers", NULL},
	.is.ignores_why = "batches come in order, and the threads of an epoch end with it",
	.window = tensorflow_window,
	.memory_bytes = tensorflow_memory_bytes,
	.create = tensorflow_create,
	.start = tensorflow_start,
	.next = tensorflow_next,
	.give_back = tensorflow_give_back,
	.finish = tensorflow_finish,
	.stats = tensorflow_stats,
	.undelivered = tensorflow_undelivered,
	.describe = tensorflow_describe,
	.wake = tensorflow_wake,
	.destroy = tensorflow_destroy,
};
