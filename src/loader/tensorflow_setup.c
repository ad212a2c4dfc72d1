/* What the tf.data loader takes before the first epoch: checks, memory, readers. */
#include "loader/tensorflow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sysinfo.h"
#include "workload/time_draw.h"

#define PAGE_BYTES 4096
#define GUARD_BYTES PAGE_BYTES /* below each stack */
#define AUTOTUNE_CALLS 16

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

void tensorflow_window(const struct workload *w, uint32_t *workers, uint64_t *batches)
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

int tensorflow_memory_bytes(const struct loader_config *c, uint64_t *out, struct err *e)
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

int tensorflow_open_readers(struct tensorflow *l, struct err *e)
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
int tensorflow_close_readers(struct tensorflow *l, struct err *e)
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

void tensorflow_release(struct tensorflow *l)
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

int tensorflow_create(struct loader **out, const struct loader_config *c, struct err *e)
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
