/* One worker's reading of samples through the dataset's format. */
#include "loader/sample_reader.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/run_delay.h"
#include "base/saturate.h"
#include "base/str.h"
#include "loader/ahead.h"
#include "loader/fetch.h"
#include "loader/flight.h"
#include "loader/shard_cache.h"
#include "workload/time_draw.h"
#include "workload/key.h"

enum activity { IDLE, READING, PREPROCESSING, IN_FRAMEWORK };
#define ACTIVITY_BITS 2

/* Where samples are read from. */
static struct store *store_of(const struct loader_config *c)
{
	return c->cache ? shard_cache_store(c->cache) : c->store;
}

/* Of the format's reader. */
static size_t format_bytes(const struct loader_config *config, const struct reader_config *settings,
			   struct err *e)
{
	size_t bytes = format_reader(config->dataset->format, settings)
			       ->reader_bytes(settings, store_of(config));

	if (bytes == 0)
		err_set(e, -ENOMEM,
			"reading samples of %llu bytes in files of up to %llu bytes exceeds the "
			"memory of any machine",
			(unsigned long long)settings->max_sample_bytes,
			(unsigned long long)settings->max_file_bytes);
	return bytes;
}

static bool loads_indices(const struct loader_config *c)
{
	return c->workload->compat.dlio && c->dataset->format->load_index &&
	       c->workload->reader.access == ACCESS_FRAMEWORK;
}

/* Of DLIO's sample map, which each worker shuffles for itself (load_shuffled). */
static uint64_t map_bytes(const struct loader_config *c)
{
	uint64_t count;

	if (!loads_indices(c) || c->ranks == 0 || c->workload->reader.sample_shuffle == SHUFFLE_OFF)
		return 0;
	count = dataset_samples(c->dataset, c->kind) / c->ranks + 1;
	return u64_sum(u64_product(count, sizeof(uint64_t)),
		       (count / c->dataset->samples_per_file + 2) * sizeof(bool));
}

size_t sample_reader_bytes(const struct loader_config *config, const struct reader_config *settings,
			   struct err *e)
{
	size_t bytes = format_bytes(config, settings, e);
	uint64_t flight;

	if (bytes == 0)
		return 0;
	bytes = u64_sum(bytes, map_bytes(config));
	if (shard_cache_wanted(config->workload))
		bytes = u64_sum(bytes, fetch_bytes(config));
	if (ahead_wanted(config)) {
		flight = ahead_bytes(config, e);
		return flight ? bytes + flight : 0;
	}
	if (groups_wanted(config)) {
		flight = groups_bytes(config, settings, e);
		return flight ? bytes + flight : 0;
	}
	if (!flight_wanted(config))
		return bytes;
	flight = flight_bytes(config, settings, e);
	return flight ? bytes + flight : 0;
}

/* Of a reader's thread so far: what tells its own work on a sample from that of the kernel. */
static struct own_times own_times_now(const struct sample_reader *r)
{
	const struct io_stat *io = r->stat->io;

	if (!io)
		return (struct own_times){.thread_ns = framework_thread_ns()};
	return (struct own_times){
		.begin_ns = clock_now_ns(),
		.thread_ns = framework_thread_ns(),
		.requests_ns = io->kind[IO_OPEN].busy_ns + io->kind[IO_META].busy_ns +
			       io->kind[IO_DATA].busy_ns,
		.opens = io->kind[IO_OPEN].requests,
		.data_bytes = io->kind[IO_DATA].returned_bytes,
	};
}

/* What of a sample was computed here by `to`, in `took_ns`, outside of requests and beside what was
 * spent between them. Without a processor it computed less than it was outside of them. */
static int64_t computed_ns(const struct sample_reader *r, const struct own_times *to,
			   int64_t took_ns)
{
	int64_t outside = took_ns - (to->requests_ns - r->from.requests_ns);
	int64_t thread = to->thread_ns - r->from.thread_ns - r->code.load.spent_ns;

	return thread < outside ? thread : outside;
}

/* Between two requests of a sample. */
static void before_read(struct io_before *before, uint64_t asked)
{
	struct sample_reader *r =
		(struct sample_reader *)((char *)before - offsetof(struct sample_reader, before));
	struct own_times to;
	int64_t took;

	if (!r->code.load.law)
		return;
	to = own_times_now(r);
	took = to.begin_ns - r->from.begin_ns - r->code.load.took_ns;
	took = framework_load_between(&r->code, asked, computed_ns(r, &to, took));
	if (took)
		span_add(r->ring, SPAN_FRAMEWORK, 0, to.begin_ns, to.begin_ns + took, 0);
}

void sample_reader_init(struct sample_reader *r, const struct loader_config *config,
			const struct reader_config *settings, uint32_t worker, bool of_rank,
			_Atomic uint32_t *halt, struct worker_stat *stat)
{
	const struct workload *w = config->workload;
	const struct time_dist *delay = &w->reader.preprocess_time;
	/* DLIO never calls its own reader for a format without I/O or TensorFlow's records, so
	 * nothing waits there either. */
	bool skipped = w->compat.dlio &&
		       (config->dataset->format->is.flags & FORMAT_NO_IO || order_tf_records(w));

	memset(r, 0, sizeof(*r));
	r->config = config;
	r->settings = settings;
	r->halt = halt;
	r->stat = stat;
	r->worker = worker;
	r->path_file = UINT64_MAX;
	if (w->reader.recorded_work)
		r->recorded = &w->recorded->part[config->kind == DATASET_EVAL ? RECORDED_EVAL
									      : RECORDED_TRAIN];
	r->preprocess = (time_dist_waits(delay) || r->recorded) && !skipped;
	r->ring = trace_ring(config->trace, config->rank, config->kind, worker, of_rank);
	r->io = (struct io){.store = store_of(config),
			    .stat = w->run.measure == MEASURE_ALL ? stat->io : NULL,
			    .trace = r->ring,
			    .stop = config->stop};
	if (config->costs) {
		r->io.waits = &r->waits;
		r->before.read = before_read;
		r->loaded_bytes = (double)config->dataset->max_sample_bytes;
	}
	if (stat->io)
		io_stat_init(stat->io);
	r->code = (struct framework_code){
		.costs = config->costs,
		.stop = config->stop,
		.halt = halt,
		.halts = HALT_DROP | HALT_STOP,
		.spent = &stat->framework,
		.dlio = w->compat.dlio,
		.alone = w->reader.read_threads == 0,
		.key = rng_key((uint64_t)w->train.seed, (uint64_t)config->kind << 32 | config->rank,
			       worker),
	};
	if (r->preprocess && time_dist_varies(delay)) {
		uint64_t key = rng_key((uint64_t)w->train.seed, config->kind, config->rank);

		rng_np_seed(&r->rng, (uint32_t)rng_word(key, worker));
	}
}

int sample_reader_open(struct sample_reader *r, struct err *e)
{
	const struct loader_config *c = r->config;
	int code;

	if (r->reader)
		return 0;
	if (!r->memory) {
		r->memory_bytes = format_bytes(c, r->settings, e);
		if (r->memory_bytes == 0)
			return -ENOMEM;
		r->memory = buffer_alloc(r->memory_bytes, "buffers of a reader worker", e);
		if (!r->memory)
			return -ENOMEM;
	}
	if (flight_wanted(c) && !r->flight) {
		code = flight_create(&r->flight, c, r->settings, &r->io, e);
		if (code < 0)
			return code;
	}
	if (groups_wanted(c) && !r->groups) {
		code = groups_create(&r->groups, c, r->settings, &r->io, e);
		if (code < 0)
			return code;
	}
	if (ahead_wanted(c) && !r->ahead) {
		code = ahead_create(&r->ahead, c, &r->io, e);
		if (code < 0)
			return code;
	}
	if (c->cache && !r->fetch) {
		code = fetch_create(&r->fetch, c, r->worker, r->halt, &r->stat->fetched, e);
		if (code < 0)
			return code;
	}
	r->prepared = false;
	r->failed.code = 0;
	r->ops = format_reader(c->dataset->format, r->settings);
	code = r->ops->reader_init(r->memory, r->settings,
				   r->flight   ? flight_io(r->flight)
				   : r->groups ? groups_io(r->groups)
					       : &r->io,
				   &r->reader, e);
	if (code < 0)
		r->reader = NULL;
	return code;
}

int sample_reader_close(struct sample_reader *r, struct err *e)
{
	struct reader *reader = r->reader;
	int rc, closed = 0;

	r->reader = NULL;
	ahead_end(r->ahead);
	groups_end(r->groups);
	if (!reader)
		return 0;
	rc = r->ops->reader_close(reader, e);
	if (r->flight)
		closed = flight_close(r->flight, rc == 0 ? e : NULL);
	return rc < 0 ? rc : closed;
}

void sample_reader_release(struct sample_reader *r)
{
	buffer_free(r->memory, r->memory_bytes);
	r->memory = NULL;
	flight_destroy(r->flight);
	r->flight = NULL;
	groups_destroy(r->groups);
	r->groups = NULL;
	ahead_destroy(r->ahead);
	r->ahead = NULL;
	fetch_destroy(r->fetch);
	r->fetch = NULL;
}

static void publish_activity(struct sample_reader *r, enum activity what, uint64_t sample,
			     int64_t since)
{
	atomic_store_explicit(&r->since_ns, since, memory_order_relaxed);
	atomic_store_explicit(&r->doing, sample << ACTIVITY_BITS | what, memory_order_release);
}

static bool called_off(const struct sample_reader *r)
{
	return atomic_load_explicit(r->halt, memory_order_acquire) || stop_is_set(r->config->stop);
}

static void tell_progress(const struct sample_reader *r, int64_t now)
{
	if (r->config->progress_ns)
		atomic_store_explicit(r->config->progress_ns, now, memory_order_relaxed);
}

/* What the spans that follow belong to. */
static inline void span_at(struct sample_reader *r, uint64_t sample)
{
	if (r->ring) {
		r->ring->sample = sample;
		r->ring->file = sample / r->config->dataset->samples_per_file;
	}
}

/* Waits on the halt word and not in a sleep, so that a long wait ends with the run; and looks up
 * now and then, for a stop flag that was set without wake. */
void sample_reader_preprocess(struct sample_reader *r, uint64_t sample, int64_t *now)
{
	int64_t begin = *now, delay;

	if (!r->preprocess)
		return;
	delay = r->recorded ? recorded_work_ns(r->recorded,
					       sample / r->config->dataset->samples_per_file,
					       sample % r->config->dataset->samples_per_file)
			    : time_draw_ns(&r->config->workload->reader.preprocess_time, &r->rng);
	publish_activity(r, PREPROCESSING, sample, begin);
	while (*now - begin < delay && !called_off(r)) {
		int64_t left = delay - (*now - begin);

		thread_wait(r->halt, 0, left < NS_PER_S ? left : NS_PER_S);
		*now = clock_now_ns();
	}
	r->stat->preprocess_ns += *now - begin;
	span_at(r, sample);
	span_add(r->ring, SPAN_PREPROCESS, 0, begin, *now, 0);
	tell_progress(r, *now);
}

/* The framework's code for a sample that was just read: what `own_ns` of processor time of this
 * program did not do already. */
static void sample_in_framework(struct sample_reader *r, uint64_t sample, bool opened,
				uint64_t payload, const struct io_waits *within, int64_t own_ns,
				int64_t *now)
{
	const struct format_facts *format = &r->config->dataset->format->is;
	int64_t begin = *now;

	publish_activity(r, IN_FRAMEWORK, sample, begin);
	framework_spend_load(&r->code, format, opened, (double)payload, within, own_ns);
	if (r->config->workload->reader.read_threads > 0)
		framework_spend(&r->code, COST_KEEP, 1, (double)payload, 0);
	framework_spend(&r->code, COST_SAMPLE, 1, (double)payload, 0);
	if (!(format->flags & FORMAT_INDEX_UNTOLD))
		framework_spend(&r->code, COST_INDEX, r->share, (double)payload, 0);
	*now = clock_now_ns();
	r->stat->framework_ns += *now - begin;
	span_at(r, sample);
	span_add(r->ring, SPAN_FRAMEWORK, 0, begin, *now, 0);
	tell_progress(r, *now);
}

/* What the thread waited for in the requests of a sample: they may have copied for a part of their
 * time. */
static const struct io_waits *waits_within(struct sample_reader *r, int64_t waited_ns,
					   int64_t requests_ns)
{
	struct io_waits *w = &r->waits;
	double part = requests_ns > 0 ? (double)waited_ns / (double)requests_ns : 0;

	part = part < 0 ? 0 : part > 1 ? 1 : part;
	w->all *= part;
	w->most *= part;
	w->ns = (int64_t)(part * (double)w->ns);
	return w;
}

/* What of a read that took `took_ns` was computed here. Where requests are not timed
 * (run.measure=none) that is not known, and counts as nothing. */
static void read_in_framework(struct sample_reader *r, uint64_t sample, int64_t took_ns,
			      uint64_t payload, int64_t *now)
{
	const struct own_times *from = &r->from, to = own_times_now(r);
	int64_t requests = to.requests_ns - from->requests_ns;
	int64_t thread = to.thread_ns - from->thread_ns;
	uint64_t data = to.data_bytes - from->data_bytes;

	/* all samples of a file, where the framework's library makes an array of them for one */
	payload = payload > data ? payload : data;
	r->loaded_bytes = (double)payload;
	thread -= r->code.load.spent_ns;
	if (!r->io.stat)
		sample_in_framework(r, sample, !r->settings->keep_open, payload, NULL, 0, now);
	else
		sample_in_framework(r, sample, to.opens > from->opens, payload,
				    waits_within(r, took_ns - thread, requests),
				    computed_ns(r, &to, took_ns), now);
}

static int read_file_sample(struct sample_reader *r, uint64_t sample, struct sample *out,
			    struct err *e)
{
	const struct dataset *d = r->config->dataset;
	uint64_t file = sample / d->samples_per_file, index = sample % d->samples_per_file;
	struct file_spec spec;
	int rc = 0;

	if (file != r->path_file)
		rc = r->fetch
			     ? shard_cache_path(r->config->cache, file, r->path, sizeof(r->path), e)
			     : dataset_path(d, r->config->kind, file, r->path, sizeof(r->path), e);
	r->path_file = rc < 0 ? UINT64_MAX : file;
	if (rc == 0 && r->fetch)
		rc = fetch_await(r->fetch, file, e);
	if (rc < 0)
		return rc;
	dataset_file_spec(d, r->config->kind, file, &spec);
	do {
		rc = r->ops->read(r->reader, r->path, &spec, index, out, e);
	} while (rc < 0 && r->fetch && fetch_again(r->fetch, file, rc, e) == 0);
	if (rc == 0 && r->fetch)
		fetch_was_read(r->fetch, file);
	return rc;
}

/* What a flight is asked to read: positions of an epoch, or one sample. */
struct reading {
	struct flight_run run; /* first: found from it */
	struct sample_reader *reader;
	const struct order *order; /* NULL: one sample */
	uint64_t position, end;    /* of the next sample; the sample itself when it is one */
	struct order_proof *proof; /* NULL: neither it nor the preprocess wait is needed */
	uint64_t *payload;
	bool off; /* reading was called off */
};

static bool next_sample(struct flight_run *run, uint64_t *sample)
{
	struct reading *g = (struct reading *)run;

	if (g->position == g->end)
		return false;
	if (called_off(g->reader)) {
		g->off = true;
		return false;
	}
	*sample = g->order ? order_at(g->order, g->reader->config->rank, g->position) : g->position;
	g->position++;
	return true;
}

static void sample_under_way(struct flight_run *run, uint64_t sample, int64_t since_ns)
{
	publish_activity(((struct reading *)run)->reader, READING, sample, since_ns);
}

static inline void note_if_slow(struct sample_reader *r, uint64_t sample, int64_t begin,
				int64_t took)
{
	if (took > r->stat->slow.least_ns)
		slow_samples_add(&r->stat->slow, sample, begin, took);
}

static void sample_is_read(struct flight_run *run, uint64_t sample, uint64_t payload, int64_t *now)
{
	struct reading *g = (struct reading *)run;
	struct sample_reader *r = g->reader;

	worker_has_read(r->stat, 1, payload);
	*g->payload += payload;
	r->stat->in_flight_ns += *now - run->begun_ns;
	note_if_slow(r, sample, run->begun_ns, *now - run->begun_ns);
	tell_progress(r, *now);
	span_at(r, sample);
	span_add(r->ring, SPAN_SAMPLE, SPAN_IN_FLIGHT, run->begun_ns, *now, payload);
	if (sample_reader_at_cost(r)) {
		/* of what this thread did since the last one, this sample's part is not known */
		sample_in_framework(r, sample, true, payload, NULL,
				    framework_thread_ns() - r->code_from_ns, now);
		r->code_from_ns = framework_thread_ns();
	}
	if (!g->proof)
		return;
	sample_reader_preprocess(r, sample, now);
	order_proof_add(g->proof, sample);
	span_add(r->ring, SPAN_ITEM, SPAN_IN_FLIGHT, run->begun_ns, *now, payload);
}

/* Runs the flight; what it takes counts as reading, but for the waits within. */
static int read_in_flight(struct reading *g, int64_t *now, struct err *e)
{
	struct sample_reader *r = g->reader;
	int64_t begin = *now, waited = r->stat->preprocess_ns + r->stat->framework_ns;
	int rc;

	if (sample_reader_at_cost(r))
		r->code_from_ns = framework_thread_ns();
	g->run.next = next_sample;
	g->run.doing = sample_under_way;
	g->run.done = sample_is_read;
	g->run.lingers = (g->proof && r->preprocess) || sample_reader_at_cost(r);
	rc = flight_read(r->flight, r->reader, &g->run, e);
	*now = clock_now_ns();
	r->stat->read_ns +=
		*now - begin - (r->stat->preprocess_ns + r->stat->framework_ns - waited);
	if (rc < 0 && e)
		err_wrap(e, "rank %u, worker %u, sample %llu", r->config->rank, r->worker,
			 (unsigned long long)g->run.failed);
	return rc;
}

/* ---- whole objects ---- */

/* What DLIO's readers of objects do with a sample whose object has come: nothing. */
static void object_is_there(struct sample_reader *r, uint64_t sample, int64_t begun_ns,
			    int64_t done_ns, uint64_t payload, int64_t *now)
{
	int64_t begin = *now;

	worker_has_read(r->stat, 1, payload);
	note_if_slow(r, sample, begun_ns, done_ns - begun_ns);
	tell_progress(r, *now);
	span_at(r, sample);
	span_add(r->ring, SPAN_SAMPLE, SPAN_IN_FLIGHT, begun_ns, done_ns, payload);
	if (!sample_reader_at_cost(r))
		return;
	publish_activity(r, IN_FRAMEWORK, sample, begin);
	framework_spend(&r->code, COST_SAMPLE, 1, (double)payload, 0);
	*now = clock_now_ns();
	r->stat->framework_ns += *now - begin;
	span_add(r->ring, SPAN_FRAMEWORK, 0, begin, *now, 0);
	tell_progress(r, *now);
}

/* One by itself. Of the other samples of a file that a stream goes through, nothing is read. */
static int read_object(struct sample_reader *r, uint64_t sample, int64_t *now, uint64_t *payload,
		       struct err *e)
{
	const struct dataset *d = r->config->dataset;
	uint64_t file = sample / d->samples_per_file, bytes;
	int64_t begin = *now, begun = begin;
	int rc = 0;

	publish_activity(r, READING, sample, begin);
	if (!r->stream || file != r->path_file)
		rc = ahead_read(r->ahead, file, &begun, e);
	r->path_file = rc < 0 ? UINT64_MAX : file;
	*now = clock_now_ns();
	r->stat->read_ns += *now - begin;
	if (rc < 0)
		return err_wrap(e, "rank %u, worker %u, sample %llu", r->config->rank, r->worker,
				(unsigned long long)sample);
	bytes = dataset_sample_bytes(d, r->config->kind, file);
	*payload += bytes;
	object_is_there(r, sample, begun, *now, bytes, now);
	return 0;
}

static int take_object(struct sample_reader *r, struct ahead_sample *out, int64_t *now,
		       struct err *e)
{
	int64_t begin = *now, since = begin;
	uint64_t sample = 0;
	int rc;

	do {
		if (called_off(r))
			return err_set(e, ERR_CANCELED, "a batch was not read completely");
		rc = ahead_take(r->ahead, out, NS_PER_S / 10, e);
		if (rc == 0 && ahead_oldest(r->ahead, &sample, &since))
			publish_activity(r, READING, sample, since);
	} while (rc == 0);
	*now = clock_now_ns();
	r->stat->read_ns += *now - begin;
	if (rc < 0)
		err_wrap(e, "rank %u, worker %u", r->config->rank, r->worker);
	return rc;
}

static int batch_of_objects(struct sample_reader *r, const struct order *o, struct batch *b,
			    int64_t *now)
{
	const struct dataset *d = r->config->dataset;
	uint64_t workers = (uint64_t)r->config->workload->reader.read_threads;
	char name[32];
	int rc = 0;

	snprintf(name, sizeof(name), "o%u.%u", r->config->rank, r->worker);
	if (b->index == r->worker)
		rc = ahead_begin(r->ahead, o, r->worker, workers, r->steps, name, &b->err);
	for (uint32_t i = 0; i < b->samples && rc >= 0; i++) {
		struct ahead_sample got;
		int64_t begin = *now;
		uint64_t bytes;

		rc = take_object(r, &got, now, &b->err);
		if (rc < 0)
			break;
		bytes = dataset_sample_bytes(d, r->config->kind, got.sample / d->samples_per_file);
		b->payload_bytes += bytes;
		if (got.first)
			r->stat->in_flight_ns += got.done_ns - got.begun_ns;
		object_is_there(r, got.sample, got.begun_ns, got.done_ns, bytes, now);
		sample_reader_preprocess(r, got.sample, now);
		order_proof_add(&b->proof, got.sample);
		span_add(r->ring, SPAN_ITEM, 0, begin, *now, bytes);
	}
	return rc < 0 ? rc : 0;
}

/* ---- row groups ---- */

/* Waits for the row group of a sample. What its library does with it is the framework's. */
static int take_group(struct sample_reader *r, uint64_t sample, int64_t *now, struct err *e)
{
	int64_t begin = *now, begun = begin;
	int rc;

	span_at(r, sample);
	rc = groups_take(r->groups, r->reader, sample, &begun, e);
	*now = clock_now_ns();
	r->stat->read_ns += *now - begin;
	r->stat->in_flight_ns += *now - begun;
	note_if_slow(r, sample, begun, *now - begun);
	tell_progress(r, *now);
	span_add(r->ring, SPAN_SAMPLE, SPAN_IN_FLIGHT | (rc < 0 ? SPAN_FAILED : 0), begun, *now,
		 rc < 0 ? 0 : groups_payload(r->groups));
	if (rc < 0)
		err_wrap(e, "rank %u, worker %u, sample %llu", r->config->rank, r->worker,
			 (unsigned long long)sample);
	return rc;
}

/* A sample whose row group has come. DLIO's iterator runs no code for it. */
static uint64_t credit(struct sample_reader *r, uint64_t sample, int64_t *now)
{
	uint64_t payload = groups_payload(r->groups);

	worker_has_read(r->stat, 1, payload);
	if (sample_reader_at_cost(r) && !r->stream)
		sample_in_framework(r, sample, false, payload, NULL, 0, now);
	return payload;
}

static bool next_planned(struct groups_source *source, uint64_t *sample)
{
	struct group_plan *p = (struct group_plan *)source;

	while (!p->open ||
	       p->next >= samples_in_file(p->walk.rules->counts, p->file, p->per_file)) {
		p->open = shard_stream_next_file(&p->walk, &p->file);
		p->next = 0;
		if (!p->open)
			break;
	}
	*sample = p->file * p->per_file + p->next;
	return p->open;
}

static void cover_planned(struct groups_source *source, uint64_t first, uint64_t end)
{
	struct group_plan *p = (struct group_plan *)source;

	(void)first;
	p->next = end - p->file * p->per_file;
}

static int load_index(struct sample_reader *r, uint64_t file);

static void begin_plan(struct sample_reader *r)
{
	r->plan.open = false;
	shard_stream_begin(&r->plan.walk, r->stream->rules, r->stream->rank, r->stream->worker,
			   r->plan.memory);
}

/* A worker's epoch over its stream: first the metadata of all of its files, one after another. */
static int begin_groups(struct sample_reader *r, int64_t *now)
{
	int64_t begin = *now;
	uint64_t file;
	int rc = 0;

	r->fresh = false;
	r->plan.source = (struct groups_source){next_planned, cover_planned};
	r->plan.per_file = r->config->dataset->samples_per_file;
	groups_end(r->groups);
	begin_plan(r);
	publish_activity(r, READING, 0, begin);
	while (rc == 0 && r->settings->access == ACCESS_FRAMEWORK &&
	       shard_stream_next_file(&r->plan.walk, &file))
		if (dataset_file_samples(r->config->dataset, r->config->kind, file) > 0)
			rc = load_index(r, file);
	*now = clock_now_ns();
	r->stat->read_ns += *now - begin;
	if (rc < 0)
		return err_wrap(&r->failed, "rank %u, worker %u, its metadata", r->config->rank,
				r->worker);
	begin_plan(r);
	groups_begin(r->groups, &r->plan.source);
	return 0;
}

/* Positions of an epoch, or one sample. */
struct group_positions {
	struct groups_source source; /* first */
	const struct sample_reader *reader;
	const struct order *order; /* NULL: the sample itself */
	uint64_t position, end;
};

static uint64_t sample_of(const struct group_positions *p)
{
	return p->order ? order_at(p->order, p->reader->config->rank, p->position) : p->position;
}

static bool next_position(struct groups_source *source, uint64_t *sample)
{
	struct group_positions *p = (struct group_positions *)source;

	if (p->position == p->end || called_off(p->reader))
		return false;
	*sample = sample_of(p);
	return true;
}

static void cover_positions(struct groups_source *source, uint64_t first, uint64_t end)
{
	struct group_positions *p = (struct group_positions *)source;
	uint64_t sample;

	do {
		p->position++;
		sample = p->position < p->end ? sample_of(p) : end;
	} while (sample >= first && sample < end);
}

static int read_of_group(struct sample_reader *r, uint64_t sample, int64_t *now, uint64_t *payload,
			 struct err *e)
{
	struct group_positions p = {{next_position, cover_positions}, r, NULL, sample, sample + 1};
	int rc = 0;

	if (!groups_has(r->groups, sample)) {
		groups_begin(r->groups, &p.source);
		rc = take_group(r, sample, now, e);
	}
	if (rc == 0)
		*payload += credit(r, sample, now);
	return rc;
}

int sample_reader_read(struct sample_reader *r, uint64_t sample, int64_t *now, uint64_t *payload,
		       struct err *e)
{
	struct sample got = {0};
	int64_t begin = *now, took;
	int rc;

	publish_activity(r, READING, sample, begin);
	if (r->groups)
		return read_of_group(r, sample, now, payload, e);
	if (r->flight) {
		struct reading g = {
			.reader = r, .position = sample, .end = sample + 1, .payload = payload};

		rc = read_in_flight(&g, now, e);
		if (rc == 0 && g.off)
			rc = err_set(e, ERR_CANCELED, "sample %llu was not read",
				     (unsigned long long)sample);
		return rc;
	}
	if (r->ahead)
		return read_object(r, sample, now, payload, e);
	span_at(r, sample);
	if (sample_reader_at_cost(r)) {
		r->waits = (struct io_waits){.scale_s = COST_EACH_WAIT_S};
		r->io.before = r->io.stat ? &r->before : NULL;
		framework_load_begin(&r->code, &r->config->dataset->format->is, r->loaded_bytes);
		r->from = own_times_now(r);
	}
	rc = read_file_sample(r, sample, &got, e);
	r->along = rc == 0 ? got.along : 0;
	*now = clock_now_ns();
	took = *now - begin - r->code.load.took_ns;
	r->io.before = NULL;
	r->stat->read_ns += took;
	r->stat->framework_ns += r->code.load.took_ns;
	note_if_slow(r, sample, begin, took);
	span_add(r->ring, SPAN_SAMPLE, rc < 0 ? SPAN_FAILED : 0, begin, *now, got.payload_bytes);
	if (rc < 0) {
		err_wrap(e, "rank %u, worker %u, sample %llu", r->config->rank, r->worker,
			 (unsigned long long)sample);
		return rc;
	}
	worker_has_read(r->stat, 1, got.payload_bytes);
	*payload += got.payload_bytes;
	tell_progress(r, *now);
	if (sample_reader_at_cost(r))
		read_in_framework(r, sample, took, got.payload_bytes, now);
	return 0;
}

static int not_to_its_end(const struct batch *b, struct err *e)
{
	return err_set(e, ERR_CANCELED, "batch %llu was not read completely",
		       (unsigned long long)b->index);
}

static int batch_in_flight(struct sample_reader *r, const struct order *o, struct batch *b,
			   int64_t *now)
{
	struct reading g = {.reader = r,
			    .order = o,
			    .position = b->first,
			    .end = b->first + b->samples,
			    .proof = &b->proof,
			    .payload = &b->payload_bytes};
	int rc = read_in_flight(&g, now, &b->err);

	return rc == 0 && g.off ? not_to_its_end(b, &b->err) : rc;
}

/* What is delivered of a sample that was read. */
static void deliver(struct sample_reader *r, struct batch *b, uint64_t sample, int64_t begin,
		    uint64_t payload, int64_t *now)
{
	sample_reader_preprocess(r, sample, now);
	order_proof_add(&b->proof, sample);
	span_add(r->ring, SPAN_ITEM, 0, begin, *now, payload);
}

/* Row groups of one batch; the last one of a batch is not read again for the next. */
static int batch_of_groups(struct sample_reader *r, const struct order *o, struct batch *b,
			   int64_t *now)
{
	struct group_positions p = {
		{next_position, cover_positions}, r, o, b->first, b->first + b->samples};
	uint64_t sample = 0;
	bool begun = false;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < b->samples; i++) {
		uint64_t payload;
		int64_t begin = *now;

		if (called_off(r)) {
			rc = not_to_its_end(b, &b->err);
			break;
		}
		sample = order_at(o, r->config->rank, b->first + i);
		publish_activity(r, READING, sample, begin);
		if (!groups_has(r->groups, sample)) {
			if (!begun) {
				p.position = b->first + i;
				groups_begin(r->groups, &p.source);
			}
			begun = true;
			rc = take_group(r, sample, now, &b->err);
			if (rc < 0)
				break;
		}
		payload = credit(r, sample, now);
		b->payload_bytes += payload;
		deliver(r, b, sample, begin, payload, now);
	}
	if (rc < 0)
		groups_end(r->groups);
	return rc;
}

/* Delivers the samples that came with the one at position i and follow it in the order. Nothing of
 * them is asked for, so none is timed by itself. The last one is left, to be read as others are:
 * its reader shall know how far this worker is. */
static uint32_t deliver_along(struct sample_reader *r, const struct order *o, struct batch *b,
			      uint32_t i, uint64_t sample, uint64_t payload)
{
	uint64_t most = b->samples - i - 1, n = 0;

	most = r->along < most ? r->along : most;
	r->along = 0;
	if (most == 0 || r->ring || r->preprocess || framework_on(&r->code))
		return 0;
	while (n < most && order_at(o, r->config->rank, b->first + i + n + 1) == sample + n + 1)
		n++;
	if (n < 2)
		return 0;
	n--;
	order_proof_range(&b->proof, sample + 1, sample + 1 + n);
	worker_has_read(r->stat, n, n * payload);
	b->payload_bytes += n * payload;
	return (uint32_t)n;
}

static int batch_one_by_one(struct sample_reader *r, const struct order *o, struct batch *b,
			    int64_t *now)
{
	for (uint32_t i = 0; i < b->samples; i++) {
		uint64_t sample = order_at(o, r->config->rank, b->first + i);
		uint64_t payload = b->payload_bytes;
		int64_t begin = *now;
		int rc;

		if (called_off(r))
			return not_to_its_end(b, &b->err);
		rc = sample_reader_read(r, sample, now, &b->payload_bytes, &b->err);
		if (rc < 0)
			return rc;
		payload = b->payload_bytes - payload;
		deliver(r, b, sample, begin, payload, now);
		i += deliver_along(r, o, b, i, sample, payload);
	}
	return 0;
}

/* What is read for a sample that is delivered is not always that sample, so the payload of a batch
 * is that of its own; but for readers that load whole files at once, and nothing for other samples.
 */
static int batch_of_stream(struct sample_reader *r, struct batch *b, int64_t *now)
{
	const struct dataset *d = r->config->dataset;
	bool by_read = (r->settings->keep_open && !r->ahead) || d->format->is.flags & FORMAT_NO_IO;

	for (uint32_t i = 0; i < b->samples; i++) {
		uint64_t sample, payload = 0;
		int64_t begin = *now;
		int rc;

		while (shard_stream_wants(r->stream, &sample)) {
			if (called_off(r))
				return not_to_its_end(b, &b->err);
			if (!r->groups)
				rc = sample_reader_read(r, sample, now, &payload, &b->err);
			else if (!groups_has(r->groups, sample))
				rc = take_group(r, sample, now, &b->err);
			else
				rc = 0;
			if (rc == 0 && r->groups)
				credit(r, sample, now);
			/* one that cannot be read costs its batch, and the stream goes on */
			shard_stream_add(r->stream, sample);
			if (rc < 0)
				return rc;
		}
		if (called_off(r) || !shard_stream_take(r->stream, &sample))
			return not_to_its_end(b, &b->err);
		if (r->groups)
			payload = groups_payload(r->groups);
		else if (!by_read)
			payload = dataset_sample_bytes(d, r->config->kind,
						       sample / d->samples_per_file);
		b->payload_bytes += payload;
		deliver(r, b, sample, begin, payload, now);
	}
	return 0;
}

/* ---- what DLIO loads when a worker begins ---- */

static int load_index(struct sample_reader *r, uint64_t file)
{
	const struct dataset *d = r->config->dataset;
	struct file_spec spec;
	int rc;

	if (called_off(r))
		return err_set(&r->failed, ERR_CANCELED, "not every index was loaded");
	rc = dataset_path(d, r->config->kind, file, r->path, sizeof(r->path), &r->failed);
	r->path_file = UINT64_MAX;
	if (rc < 0)
		return rc;
	dataset_file_spec(d, r->config->kind, file, &spec);
	return d->format->load_index(r->reader, r->path, &spec, &r->failed);
}

/* Samples first, first + 1, ... as np.random.shuffle leaves them in DLIO's first epoch. */
static int load_shuffled(struct sample_reader *r, uint64_t first, uint64_t count, uint64_t per_file)
{
	const struct workload *w = r->config->workload;
	uint64_t from = first / per_file, files = (first + count - 1) / per_file - from + 1;
	AUTO_FREE uint64_t *id = try_calloc(count, sizeof(*id), "DLIO's sample map", &r->failed);
	AUTO_FREE bool *seen = try_calloc(files, sizeof(*seen), "DLIO's sample map", &r->failed);
	struct rng_np rng;
	int rc = 0;

	if (!id || !seen)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++)
		id[i] = first + i;
	rng_np_seed(&rng, (uint32_t)(w->train.seed + (w->train.seed_change_epoch ? 1 : 0)));
	rng_np_shuffle_u64(&rng, id, count);
	for (uint64_t i = 0; i < count && rc == 0; i++) {
		uint64_t file = id[i] / per_file;

		if (seen[file - from])
			continue;
		seen[file - from] = true;
		rc = load_index(r, file);
	}
	return rc;
}

void sample_reader_prepare(struct sample_reader *r, const struct order *o)
{
	uint64_t first = r->config->rank * o->block, count = o->block, per = o->samples_per_file;
	int64_t begin;
	int rc = 0;

	if (r->prepared)
		return;
	r->prepared = true;
	if (!loads_indices(r->config) || o->how != ORDER_SEQUENTIAL || count == 0)
		return;
	begin = clock_now_ns();
	publish_activity(r, READING, first, begin);
	if (r->config->workload->reader.sample_shuffle != SHUFFLE_OFF)
		rc = load_shuffled(r, first, count, per);
	else
		for (uint64_t f = first / per; rc == 0 && f <= (first + count - 1) / per; f++)
			rc = load_index(r, f);
	r->stat->read_ns += clock_now_ns() - begin;
	if (rc == ERR_CANCELED) {
		/* of an epoch that ends early: the worker may live on */
		r->prepared = false;
		r->failed.code = 0;
	} else if (rc < 0) {
		err_wrap(&r->failed, "rank %u, worker %u, its indices", r->config->rank, r->worker);
	}
}

void sample_reader_batch(struct sample_reader *r, const struct order *o, struct batch *b)
{
	int64_t now, rested;

	store_serve_rank(r->config->rank);
	if (r->fetch && b->index == r->worker && r->failed.code == 0)
		fetch_begin(r->fetch, o, r->steps, &r->failed);
	sample_reader_prepare(r, o);
	now = clock_now_ns();
	rested = now - r->rested_ns;
	b->begun_ns = now;
	r->share = (double)o->samples / o->ranks;
	/* what it waited before it could begin is no part of the batch */
	b->late_ns = run_delay_take(rested);
	if (r->ring)
		r->ring->step = (uint32_t)b->index;
	b->proof = (struct order_proof){0};
	b->payload_bytes = 0;
	b->err.code = 0;
	b->work = (struct batch_work){0};
	b->costs = (struct batch_costs){0};
	worker_work_begin(r->stat, &b->work);
	if (r->fresh && r->stream && r->groups && r->failed.code == 0)
		r->failed.code = begin_groups(r, &now);
	if (r->failed.code < 0)
		b->err = r->failed;
	else
		b->err.code = r->stream              ? batch_of_stream(r, b, &now)
			      : r->steps && r->ahead ? batch_of_objects(r, o, b, &now)
			      : r->groups            ? batch_of_groups(r, o, b, &now)
			      : r->flight            ? batch_in_flight(r, o, b, &now)
						     : batch_one_by_one(r, o, b, &now);
	b->done_ns = now;
	r->rested_ns = now;
	worker_note_delay(r->stat, now - b->begun_ns);
	worker_work_end(r->stat, &b->work);
	if (r->ring) {
		r->ring->sample = SPAN_NONE;
		r->ring->file = SPAN_NONE;
		span_add(r->ring, SPAN_BATCH, b->err.code < 0 ? SPAN_FAILED : 0, b->begun_ns, now,
			 b->payload_bytes);
	}
	r->stat->batches += b->err.code == 0;
}

void sample_reader_idle(struct sample_reader *r)
{
	/* The time stays: whoever still sees the activity must not see it without its beginning. */
	atomic_store_explicit(&r->doing, IDLE, memory_order_release);
}

int64_t sample_reader_busy_since(const struct sample_reader *r)
{
	uint64_t doing = atomic_load_explicit(&r->doing, memory_order_acquire);

	return (doing & ((1u << ACTIVITY_BITS) - 1)) == IDLE
		       ? 0
		       : atomic_load_explicit(&r->since_ns, memory_order_relaxed);
}

void sample_reader_describe(const struct sample_reader *r, char *out, size_t out_size)
{
	const struct dataset *d = r->config->dataset;
	uint64_t doing = atomic_load_explicit(&r->doing, memory_order_acquire);
	int64_t since = atomic_load_explicit(&r->since_ns, memory_order_relaxed);
	unsigned long long sample = doing >> ACTIVITY_BITS;
	char path[DATASET_PATH_MAX] = "?", age[32];

	switch ((enum activity)(doing & ((1u << ACTIVITY_BITS) - 1))) {
	case READING:
		dataset_path(d, r->config->kind, sample / d->samples_per_file, path, sizeof(path),
			     NULL);
		snprintf(out, out_size, "worker %u has been reading sample %llu ('%s') for %s",
			 r->worker, sample, path,
			 str_seconds((double)(clock_now_ns() - since) * 1e-9, age, sizeof(age)));
		break;
	case PREPROCESSING:
		snprintf(out, out_size,
			 "worker %u has been in the preprocess wait of sample %llu for %s",
			 r->worker, sample,
			 str_seconds((double)(clock_now_ns() - since) * 1e-9, age, sizeof(age)));
		break;
	case IN_FRAMEWORK:
		snprintf(out, out_size,
			 "worker %u has been in the framework's code for sample %llu for %s",
			 r->worker, sample,
			 str_seconds((double)(clock_now_ns() - since) * 1e-9, age, sizeof(age)));
		break;
	case IDLE:
		snprintf(out, out_size, "worker %u is idle", r->worker);
		break;
	}
}
