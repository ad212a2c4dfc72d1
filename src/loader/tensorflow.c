/* tf.data as DLIO builds it.
 *
 * TFRecord files: list of files (shuffled or not), every ranks-th of them for a rank,
 * TFRecordDataset(buffer_size = transfer_size, num_parallel_reads = read_threads), shuffle, batch
 * (drop_remainder), map(num_parallel_calls = computation_threads), prefetch. num_parallel_reads = k
 * is the legacy interleave: 3k threads, of which k take turns and 2k have opened and read ahead the
 * files that come next, each with two records beside the one it is at. interleave with
 * num_parallel_calls is the same for the storage, with blocks and two of them ahead; without, who
 * pulls reads the files in turn. Where batch comes last tf.data adds a prefetch of its own
 * (inject_prefetch). An epoch is a new iterator:
 * new threads, an empty shuffle buffer, nothing read ahead across its beginning. With compat.dlio
 * the records are repeated after batch, as DLIO has it, although it takes a new iterator each
 * epoch: the stages read on past the end, and one batch more is fetched.
 *
 * Other formats: one Python generator for each of read_threads, which yields whole batches of
 * consecutive samples; interleave takes a batch of each in turn and keeps three of each read;
 * prefetch. There the interpreter's lock would serialise what is not a request: here it does not.
 *
 * With a profile of tf.data (framework.costs) its own code takes its time: making an iterator and
 * ending it, and taking a batch, the rank's; parsing, that of map's calls; reading a record and
 * making a file's dataset, that of who reads.
 */
#include "loader/tensorflow.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "os/sysinfo.h"
#include "workload/time_draw.h"

/* Where a batch's samples come from: threads that read files record by record, the turns they take,
 * the shuffle buffer, the batch; and DLIO's generators, which yield batches. */

/* ---- records ---- */

static bool halted(const struct tensorflow *l)
{
	return atomic_load_explicit(&l->crew.halt, memory_order_acquire) != 0;
}

/* The framework's code for a batch or a file, of the reader's thread. */
static void in_framework(struct sample_reader *r, enum cost_row row, double samples, double bytes,
			 int64_t *now)
{
	int64_t begin = *now;

	framework_spend(&r->code, row, samples, bytes, 0);
	*now = clock_now_ns();
	r->stat->framework_ns += *now - begin;
	span_add(r->ring, SPAN_FRAMEWORK, 0, begin, *now, (uint64_t)bytes);
}

static void read_record(struct tf_reader *r, uint64_t sample, struct record_slot *slot)
{
	struct record *rec = &slot->record;
	int64_t now = clock_now_ns();
	int rc;

	*rec = (struct record){.sample = sample, .begun_ns = now, .worker = r->number};
	slot->err.code = 0;
	store_serve_rank(r->loader->crew.config.rank);
	worker_work_begin(r->reader->stat, &rec->work);
	if (r->loader->woven && sample % r->loader->crew.config.dataset->samples_per_file == 0)
		in_framework(r->reader, COST_INTERLEAVE, 0, 0, &now);
	rc = sample_reader_read(r->reader, sample, &now, &rec->payload_bytes, &slot->err);
	if (rc < 0)
		slot->err.code = rc;
	rec->done_ns = now;
	worker_note_delay(r->reader->stat, now - rec->begun_ns);
	worker_work_end(r->reader->stat, &rec->work);
	sample_reader_idle(r->reader);
}

/* Reads a record before it waits for room, as TensorFlow's threads do: one more than the buffer. */
static void tensorflow_record_work(void *arg)
{
	struct tf_reader *r = arg;
	struct tensorflow *l = r->loader;
	uint64_t per_file = l->crew.config.dataset->samples_per_file, n = 0;
	int64_t idle_from = clock_now_ns();
	void *item;

	while (crew_get(&l->crew, &r->in, &item) == 0) {
		uint64_t first = ((uint64_t)(uintptr_t)item - 1) * per_file;

		for (uint64_t i = 0; i < per_file; i++) {
			struct record_slot *slot = &r->slot[n++ % l->slots];

			if (halted(l))
				return;
			read_record(r, first + i, slot);
			r->reader->stat->idle_ns += slot->record.begun_ns - idle_from;
			idle_from = slot->record.done_ns;
			if (queue_put(&r->out, slot) < 0)
				return;
		}
	}
}

static void give_file(void *arg, uint32_t worker, uint64_t file)
{
	struct tensorflow *l = arg;

	/* it has given all records of its last file, so it waits; closed queues end the epoch */
	if (l->threads)
		(void)queue_put(&l->reader[worker].in, (void *)(uintptr_t)(file + 1));
}

/* A failed record waits in the shuffle buffer with the others; its sentence is kept apart. */
static uint32_t keep_error(struct tensorflow *l, const struct err *e)
{
	struct err *to;

	if (l->errors_used == ERRORS_KEPT)
		return ERRORS_KEPT;
	to = &l->error[l->errors_used++];
	*to = *e;
	if (l->errors_used == ERRORS_KEPT)
		err_wrap(to, "one of many records that could not be read");
	return l->errors_used;
}

/* 1 with a record, 0 after the last one, or ERR_CANCELED. */
static int next_record(struct tensorflow *l, struct record *out)
{
	struct record_slot *slot;
	uint64_t sample;
	uint32_t w;
	void *item;

	if (!stream_cycle_next(&l->turns, &w, &sample))
		return 0;
	if (l->threads == 0) {
		slot = &l->reader[w].slot[0];
		if (halted(l) || crew_stopped(&l->crew))
			return ERR_CANCELED;
		read_record(&l->reader[w], sample, slot);
	} else {
		if (crew_get(&l->crew, &l->reader[w].out, &item) < 0)
			return ERR_CANCELED;
		slot = item;
	}
	if (slot->err.code == ERR_CANCELED)
		return ERR_CANCELED;
	*out = slot->record;
	if (slot->err.code < 0)
		out->failed = keep_error(l, &slot->err);
	return 1;
}

static int shuffled_record(struct tensorflow *l, struct record *out)
{
	uint64_t pick, front;

	if (l->shuffle.places == 0)
		return next_record(l, out);
	while (!stream_shuffle_full(&l->shuffle)) {
		struct record r;
		int rc = next_record(l, &r);

		if (rc < 0)
			return rc;
		if (rc == 0)
			break;
		l->buffer[stream_shuffle_put(&l->shuffle)] = r;
	}
	if (!stream_shuffle_take(&l->shuffle, &pick, &front))
		return 0;
	*out = l->buffer[pick];
	l->buffer[pick] = l->buffer[front];
	return 1;
}

/* With fewer files than ranks each rank reads every record and keeps its share. */
static int kept_record(struct tensorflow *l, struct record *out)
{
	const struct stream_rules *s = &l->crew.order.stream;
	int rc;

	do {
		rc = shuffled_record(l, out);
		if (rc <= 0)
			return rc;
	} while (s->files < s->ranks && l->left++ % s->ranks != l->crew.config.rank);
	return 1;
}

static void add_record(struct tensorflow *l, struct batch *b, const struct record *r)
{
	if (r->begun_ns < b->begun_ns)
		b->begun_ns = r->begun_ns;
	if (r->done_ns > b->done_ns)
		b->done_ns = r->done_ns;
	if (r->failed && b->err.code == 0)
		b->err = l->error[r->failed - 1];
	if (r->failed)
		return;
	b->payload_bytes += r->payload_bytes;
	batch_work_merge(&b->work, &r->work);
	order_proof_add(&b->proof, r->sample);
}

static void batch_begin(const struct tensorflow *l, struct batch *b, uint64_t index, uint64_t first)
{
	b->index = index;
	b->first = first;
	b->samples = (uint32_t)l->crew.config.batch_size;
	b->sent_ns = clock_now_ns();
	b->begun_ns = INT64_MAX;
	b->done_ns = 0;
	b->payload_bytes = 0;
	b->work = (struct batch_work){0};
	b->proof = (struct order_proof){0};
	b->err.code = 0;
}

static void pipeline_begin(struct tensorflow *l)
{
	l->left = 0;
	stream_shuffle_begin(&l->shuffle, &l->crew.order.stream, l->crew.config.rank);
	stream_cycle_begin(&l->turns, &l->crew.order.stream, l->crew.config.rank, l->cycle_memory,
			   give_file, l);
}

static void tensorflow_readers_begin(struct tensorflow *l)
{
	l->made = l->pulled = 0;
	l->errors_used = 0;
	if (l->records)
		pipeline_begin(l);
}

/* 1 when filled; 0 when the records end before, which drops those that were taken. */
static int fill_once(struct tensorflow *l, struct tf_batch *t)
{
	struct batch *b = &t->batch;

	batch_begin(l, b, l->made, l->made * l->crew.config.batch_size);
	for (uint32_t i = 0; i < b->samples; i++) {
		struct record r;
		int rc = kept_record(l, &r);

		if (rc <= 0)
			return rc;
		if (i == 0) {
			b->worker = r.worker;
			t->sample = r.sample;
		}
		add_record(l, b, &r);
	}
	return 1;
}

/* Fills a batch with what comes next, reading it here where no thread does. ERR_CANCELED, or 0; a
 * failed read is in b->batch.err. */
static int tensorflow_fill(struct tensorflow *l, struct tf_batch *t)
{
	int rc = fill_once(l, t);

	/* only what is repeated comes to the end: an order has whole steps */
	if (rc == 0 && l->endless) {
		pipeline_begin(l);
		rc = fill_once(l, t);
	}
	if (rc == 0)
		err_set(&t->batch.err, ERR_DATA,
			"rank %u: the files ended before the epoch was complete",
			l->crew.config.rank);
	l->made++;
	return rc < 0 ? rc : 0;
}

/* ---- generators ---- */

static uint64_t tensorflow_position(const struct tensorflow *l, uint64_t k)
{
	uint64_t t = k % l->threads, each = l->all_steps / l->threads;
	uint64_t more = l->all_steps % l->threads;

	return (t * each + (t < more ? t : more) + k / l->threads) * l->crew.config.batch_size;
}

static void tensorflow_generator_work(void *arg)
{
	struct tf_reader *r = arg;
	struct tensorflow *l = r->loader;
	int64_t idle_from = clock_now_ns();
	void *room, *item;

	for (uint64_t k = r->number; k < l->crew.steps; k += l->threads) {
		struct batch *b;

		if (crew_get(&l->crew, &r->in, &room) < 0 ||
		    crew_get(&l->crew, &l->spare, &item) < 0)
			return;
		b = &((struct tf_batch *)item)->batch;
		batch_begin(l, b, k, tensorflow_position(l, k));
		b->worker = r->number;
		sample_reader_batch(r->reader, &l->crew.order, b);
		r->reader->stat->idle_ns += b->begun_ns - idle_from;
		idle_from = b->done_ns;
		sample_reader_idle(r->reader);
		if (queue_put(&r->out, item) < 0)
			return;
	}
}

/* The next batch of a generator. */
static int tensorflow_generated(struct tensorflow *l, struct tf_batch **out)
{
	struct tf_reader *r = &l->reader[l->pulled % l->threads];
	void *item;

	if (crew_get(&l->crew, &r->out, &item) < 0)
		return ERR_CANCELED;
	(void)queue_put(&r->in, r);
	l->pulled++;
	*out = item;
	return 0;
}

#define AUTOTUNE_CALLS 16

/* ---- what a workload means ---- */

static uint32_t autotune_calls(void)
{
	double cpus = host_usable_cpus();

	return cpus < 1 ? 1 : cpus < AUTOTUNE_CALLS ? (uint32_t)cpus : AUTOTUNE_CALLS;
}

/* What a workload means: all of the struct that is not memory. */
static void plan_pipeline(struct tensorflow *l, const struct workload *w)
{
	uint32_t threads = (uint32_t)w->reader.read_threads, readers;
	int64_t calls = w->reader.computation_threads, prefetch = w->reader.prefetch_size;
	bool one = w->reader.interleave == INTERLEAVE_ONE;

	l->records = order_tf_records(w);
	l->woven = l->records && w->reader.interleave != INTERLEAVE_READS;
	l->endless = l->records && w->compat.dlio;
	l->cycle = threads;
	l->ahead = w->reader.interleave == INTERLEAVE_READS ? READS_AHEAD
							    : 2 * (uint32_t)w->reader.block_length;
	l->threads = !l->records ? (threads ? threads : 1) : one ? 0 : 3 * threads;
	readers = l->threads ? l->threads : one && threads ? threads : 1;
	l->slots = l->threads ? l->ahead + 2 : 1;
	/* in DLIO a map comes behind batch in any case */
	l->autotune = prefetch < 0 || (prefetch == 0 && l->records && calls == 0 && !l->endless);
	l->prefetch = l->autotune ? AUTOTUNE_PREFETCH : (uint32_t)prefetch;
	l->batches = l->prefetch + LOADER_HELD_MAX + 1;
	if (!l->records) {
		l->batches += BATCHES_AHEAD * l->threads;
	} else {
		l->calls = calls < 0 ? autotune_calls() : (uint32_t)calls;
		/* in DLIO nothing waits for a record */
		l->wait = time_dist_waits(&w->reader.preprocess_time) && !w->compat.dlio;
		/* there map does something else */
		l->parse = l->calls && !w->compat.dlio && costs_of(w->costs, COST_PARSE)->present;
		l->mappers = l->wait || l->parse ? l->calls : 0;
		l->batches += l->calls;
	}
	l->crew.size = (struct crew_size){
		.threads = l->threads + (l->calls > 0) + l->mappers + (l->prefetch > 0),
		.readers = readers,
		.waiters = l->mappers ? l->mappers : l->wait,
		.inline_reads = l->threads == 0,
	};
}

/* Records that can be there before their batch is: the rank that has taken the first batch has
 * waited for all of them, and at the end of an epoch they are delivered without a read. */
static uint64_t records_ahead(const struct tensorflow *l, const struct workload *w)
{
	uint64_t all =
		(uint64_t)w->dataset.num_files_train * (uint64_t)w->dataset.num_samples_per_file;
	uint64_t most = (l->ahead + 1ull) * l->threads;

	if (w->reader.sample_shuffle != SHUFFLE_OFF)
		most += (uint64_t)w->reader.shuffle_size;
	return most < all ? most : all;
}

static void tensorflow_window(const struct workload *w, uint32_t *workers, uint64_t *batches)
{
	uint64_t batch = w->reader.batch_size > 0 ? (uint64_t)w->reader.batch_size : 1, records;
	struct tensorflow l = {0};

	plan_pipeline(&l, w);
	*workers = l.threads;
	*batches = l.prefetch + l.calls;
	if (l.records) {
		records = records_ahead(&l, w);
		*batches += records / batch + (records % batch != 0);
	} else {
		*batches += BATCHES_AHEAD * (uint64_t)l.threads;
	}
}

/* -1 is AUTOTUNE. */
static int check_depth(const char *key, int64_t n, struct err *e)
{
	if (n <= UINT16_MAX + 1)
		return 0;
	return err_set(e, ERR_USAGE, "%s is %lld; it must be between -1 (AUTOTUNE) and %d", key,
		       (long long)n, UINT16_MAX + 1);
}

static int check_config(const struct loader_config *c, struct err *e)
{
	const struct workload *w = c->workload;
	int rc = loader_check_batch(c, e);

	if (rc == 0)
		rc = loader_check_threads(c, e);
	if (rc == 0)
		rc = check_depth("reader.prefetch_size", w->reader.prefetch_size, e);
	if (rc == 0)
		rc = check_depth("reader.computation_threads", w->reader.computation_threads, e);
	if (rc == 0 && w->reader.block_length > 1 && w->reader.interleave == INTERLEAVE_READS)
		rc = err_set(e, ERR_USAGE,
			     "reader.block_length is %lld, but reader.interleave reads takes one "
			     "record of each file in turn: set reader.interleave to calls or one",
			     (long long)w->reader.block_length);
	return rc;
}

static void set_settings(struct reader_config *out, const struct loader_config *c)
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
	uint64_t each = l->records ? 1 + l->ahead : 2 * BATCHES_AHEAD;

	return (l->batches + 3ull * l->calls + 2ull * l->prefetch + each * l->threads) *
	       sizeof(void *);
}

static int tensorflow_memory_bytes(const struct loader_config *c, uint64_t *out, struct err *e)
{
	struct stream_rules rules = {0};
	struct tensorflow l = {0};
	struct reader_config settings;
	uint64_t total, crew = 0, buffer;
	int rc = check_config(c, e);

	if (rc < 0)
		return rc;
	plan_pipeline(&l, c->workload);
	set_settings(&settings, c);
	rc = crew_memory_bytes(c, &settings, &l.crew.size, &crew, e);
	if (rc < 0)
		return rc;
	rules.cycle = l.cycle;
	rules.ahead = l.threads ? 2 * l.cycle : 0;
	total = sizeof(l) + queue_bytes(&l) + l.batches * sizeof(*l.batch) +
		2 * stream_cycle_bytes(&rules) + ERRORS_KEPT * sizeof(struct err) +
		l.crew.size.readers *
			(sizeof(struct tf_reader) + l.slots * sizeof(struct record_slot)) +
		(l.crew.size.waiters + 1) * sizeof(struct tf_mapper);
	if (!__builtin_add_overflow(total, crew, &total) &&
	    !__builtin_mul_overflow(buffer_records(c), sizeof(struct record) + sizeof(uint64_t),
				    &buffer) &&
	    !__builtin_add_overflow(total, buffer, out))
		return 0;
	return err_set(e, -ENOMEM,
		       "the buffers of %u readers and of reader.shuffle_size %lld records do not "
		       "fit in memory",
		       l.crew.size.readers, (long long)c->workload->reader.shuffle_size);
}

/* ---- memory ---- */

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
			: queue_init(&l->reader[i].out, l->records ? l->ahead : BATCHES_AHEAD, e);
	}
	return rc;
}

static void init_readers(struct tensorflow *l)
{
	const struct crew_size *size = &l->crew.size;

	for (uint32_t i = 0; i < size->readers; i++) {
		l->reader[i].reader = &l->crew.reader[i];
		l->reader[i].loader = l;
		l->reader[i].number = i;
		l->reader[i].slot = l->slot + (size_t)i * l->slots;
	}
	for (uint32_t i = 0; i < size->waiters; i++) {
		l->mapper[i].reader = &l->crew.reader[size->readers + i];
		l->mapper[i].loader = l;
	}
}

static int allocate_pipeline(struct tensorflow *l, struct err *e)
{
	struct stream_rules rules = {.cycle = l->cycle, .ahead = l->threads ? 2 * l->cycle : 0};

	l->reader = try_calloc(l->crew.size.readers, sizeof(*l->reader), "readers", e);
	l->slot = l->reader ? try_calloc((size_t)l->crew.size.readers * l->slots, sizeof(*l->slot),
					 "records", e)
			    : NULL;
	l->mapper =
		l->slot ? try_calloc(l->crew.size.waiters + 1, sizeof(*l->mapper), "map's calls", e)
			: NULL;
	l->batch = l->mapper ? try_calloc(l->batches, sizeof(*l->batch), "batches", e) : NULL;
	l->error = l->batch ? try_calloc(ERRORS_KEPT, sizeof(*l->error), "errors", e) : NULL;
	if (!l->error)
		return -ENOMEM;
	init_readers(l);
	if (l->records) {
		l->buffer_room = buffer_records(&l->crew.config);
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

static void release_loader(struct crew *c)
{
	struct tensorflow *l = (struct tensorflow *)c;

	crew_release(&l->crew);
	for (uint32_t i = 0; l->reader && i < l->threads; i++) {
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
	free(l->batch);
	free(l->mapper);
	free(l->slot);
	free(l->reader);
	free(l);
}

static void tensorflow_close_queues(struct crew *c)
{
	struct tensorflow *l = (struct tensorflow *)c;
	struct queue *own[] = {&l->spare,   &l->map_room,  &l->mapping,
			       &l->calling, &l->ring_room, &l->ready};

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

static int tensorflow_create(struct loader **out, const struct loader_config *c, struct err *e)
{
	struct crew_size size;
	struct tensorflow *l;
	int rc = check_config(c, e);

	if (rc < 0)
		return rc;
	l = try_calloc(1, sizeof(*l), "loader", e);
	if (!l)
		return -ENOMEM;
	plan_pipeline(l, c->workload);
	set_settings(&l->crew.settings, c);
	size = l->crew.size;
	rc = crew_init(&l->crew, &loader_tensorflow, c, &size, tensorflow_close_queues, e);
	if (rc == 0 && costs_of(c->costs, COST_ITERATOR)->present)
		l->code = crew_code_of_rank(&l->crew);
	if (rc == 0)
		rc = allocate_pipeline(l, e);
	if (rc == 0)
		rc = crew_open_readers(&l->crew, e);
	if (rc < 0) {
		release_loader(&l->crew);
		return rc;
	}
	*out = &l->crew.base;
	return 0;
}

/* ---- map and prefetch ---- */

static void map_batch(struct tensorflow *l, struct tf_mapper *m, struct tf_batch *t)
{
	int64_t now = clock_now_ns(), begin = now;

	if (t->batch.err.code < 0)
		return;
	if (l->parse) {
		in_framework(m->reader, COST_PARSE, t->batch.samples,
			     (double)t->batch.payload_bytes, &now);
		t->batch.work.ns[WORK_FRAMEWORK] += now - begin;
		begin = now;
	}
	for (uint32_t i = 0; i < t->batch.samples && l->wait; i++)
		sample_reader_preprocess(m->reader, t->sample, &now);
	if (l->parse || l->wait) {
		sample_reader_idle(m->reader);
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

	while (crew_get(&l->crew, &l->calling, &item) == 0) {
		struct tf_batch *t = item;

		map_batch(l, m, t);
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

		if (crew_get(&l->crew, &l->map_room, &room) < 0 ||
		    crew_get(&l->crew, &l->spare, &item) < 0)
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

	if (crew_get(&l->crew, &l->mapping, &item) < 0)
		return ERR_CANCELED;
	t = item;
	while (!atomic_load_explicit(&t->mapped, memory_order_acquire)) {
		if (crew_stopped(&l->crew) ||
		    atomic_load_explicit(&l->crew.halt, memory_order_acquire))
			return ERR_CANCELED;
		thread_wait(&t->mapped, 0, CREW_POLL_NS);
	}
	(void)queue_put(&l->map_room, l);
	*out = t;
	return 0;
}

/* The next batch of what lies before prefetch. */
static int pull_batch(struct tensorflow *l, struct tf_batch **out)
{
	void *item;
	int rc;

	if (!l->records)
		return tensorflow_generated(l, out);
	if (l->calls)
		return pull_mapped(l, out);
	if (crew_get(&l->crew, &l->spare, &item) < 0)
		return ERR_CANCELED;
	*out = item;
	rc = tensorflow_fill(l, *out);
	if (rc == 0)
		map_batch(l, l->mapper, *out);
	return rc;
}

static void prefetch_work(void *arg)
{
	struct tensorflow *l = arg;
	void *room;

	for (uint64_t k = 0; k < l->read_steps; k++) {
		struct tf_batch *t;

		if (crew_get(&l->crew, &l->ring_room, &room) < 0 || pull_batch(l, &t) < 0)
			return;
		atomic_fetch_add_explicit(&l->in_ring, 1, memory_order_relaxed);
		if (queue_put(&l->ready, t) < 0)
			return;
	}
}

/* AUTOTUNE's rule: a ring that was full once and is then found empty was too small. */
static void tune_ring(struct tensorflow *l)
{
	uint32_t held = atomic_load_explicit(&l->in_ring, memory_order_relaxed);
	/* written by the rank alone, which this is */
	uint32_t ring = atomic_load_explicit(&l->ring, memory_order_relaxed);

	if (held >= ring) {
		l->was_full = true;
	} else if (held == 0 && l->was_full) {
		l->was_full = false;
		for (uint32_t more = ring; more > 0 && ring < l->prefetch; more--, ring++)
			(void)queue_put(&l->ring_room, l);
		atomic_store_explicit(&l->ring, ring, memory_order_relaxed);
	}
}

static int next_batch(struct tensorflow *l, struct tf_batch **out)
{
	void *item;

	if (l->prefetch == 0)
		return pull_batch(l, out);
	if (l->autotune)
		tune_ring(l);
	if (crew_get(&l->crew, &l->ready, &item) < 0)
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

static void reset_queues(struct tensorflow *l)
{
	uint32_t ring;

	queue_reopen(&l->spare);
	for (uint32_t i = 0; i < l->batches; i++)
		(void)queue_put(&l->spare, &l->batch[i]);
	if (l->calls) {
		fill_queue(&l->map_room, l, l->calls);
		queue_reopen(&l->mapping);
		queue_reopen(&l->calling);
	}
	ring = l->autotune ? 1 : l->prefetch;
	atomic_store_explicit(&l->ring, ring, memory_order_relaxed);
	l->was_full = false;
	atomic_store_explicit(&l->in_ring, 0, memory_order_relaxed);
	if (l->prefetch) {
		fill_queue(&l->ring_room, l, ring);
		queue_reopen(&l->ready);
	}
	for (uint32_t i = 0; i < l->threads; i++) {
		fill_queue(&l->reader[i].in, l, l->records ? 0 : BATCHES_AHEAD);
		queue_reopen(&l->reader[i].out);
	}
	tensorflow_readers_begin(l);
}

static int start_threads(struct tensorflow *l, struct err *e)
{
	void (*const read)(void *) =
		l->records ? tensorflow_record_work : tensorflow_generator_work;
	struct crew *c = &l->crew;
	uint32_t at = 0;
	int rc = 0;

	for (uint32_t i = 0; i < l->threads && rc == 0; i++)
		rc = crew_start_thread(c, at++, read, &l->reader[i], crew_letter(c), i, e);
	if (l->calls && rc == 0)
		rc = crew_start_thread(c, at++, map_work, l, 'm', 0, e);
	for (uint32_t i = 0; i < l->mappers && rc == 0; i++)
		rc = crew_start_thread(c, at++, mapper_work, &l->mapper[i], 'm', i + 1, e);
	if (l->prefetch && rc == 0)
		rc = crew_start_thread(c, at++, prefetch_work, l, 'p', 0, e);
	return rc;
}

static void tensorflow_describe(const struct loader *base, char *out, size_t out_size)
{
	crew_describe(&tensorflow_of_const(base)->crew, UINT32_MAX, out, out_size);
}

static int check_order(const struct tensorflow *l, const struct order *order, struct err *e)
{
	uint32_t rank = l->crew.config.rank;

	if ((order->how == ORDER_TF_RECORDS) == l->records &&
	    (!l->records || (order->stream.cycle == l->cycle &&
			     stream_shuffle_places(&order->stream, rank) <= l->buffer_room)))
		return 0;
	return err_set(e, -EINVAL, "rank %u: the order belongs to another loader", rank);
}

/* What the framework spends on it before its first element is asked for. */
static void make_iterator(struct tensorflow *l)
{
	const enum cost_row row[] = {COST_ITERATOR, COST_ITERATOR_MAP, COST_ITERATOR_INTERLEAVE};
	const bool has[] = {true, l->calls > 0, l->woven};

	l->started_ns = l->started_late_ns = 0;
	for (int i = 0; i < 3; i++)
		if (has[i])
			l->started_ns +=
				framework_spend_once(&l->code, row[i], &l->started_late_ns);
}

static int tensorflow_start(struct loader *base, const struct order *order, uint64_t steps,
			    struct err *e)
{
	struct tensorflow *l = tensorflow_of(base);
	struct crew *c = &l->crew;
	int rc = check_order(l, order, e);

	if (rc == 0)
		rc = crew_begin(c, order, steps, e);
	if (rc == 0)
		rc = crew_open_readers(c, e);
	if (rc < 0)
		return rc;
	l->all_steps = order_steps(order);
	l->read_steps = l->endless ? UINT64_MAX : c->steps;
	l->over = false;
	make_iterator(l);
	reset_queues(l);
	rc = start_threads(l, e);
	if (rc < 0)
		crew_end(c, NULL);
	c->open = rc == 0;
	return rc;
}

/* The rank asked past the last batch. */
static void end_iterator(struct tensorflow *l)
{
	if (!l->over)
		framework_spend(&l->code, COST_ITERATOR_END, 0, 0, 0);
	l->over = true;
}

static int tensorflow_next(struct loader *base, struct batch **out, struct err *e)
{
	struct tensorflow *l = tensorflow_of(base);
	struct crew *c = &l->crew;
	struct tf_batch *t = NULL;
	int rc = crew_ask(c, e);

	*out = NULL;
	if (rc == 0 && (!l->endless || l->over))
		end_iterator(l);
	if (rc < 0 || (rc == 0 && l->over))
		return rc;
	crew_waits(c, c->handed + 1);
	rc = next_batch(l, &t);
	crew_waits(c, 0);
	if (rc < 0)
		return crew_canceled(c, e);
	if (c->handed == c->steps) {
		/* DLIO's loop checks its count after it has taken the batch */
		end_iterator(l);
		(void)queue_put(&l->spare, t);
		return 0;
	}
	t->batch.costs = (struct batch_costs){0};
	if (c->handed == 0) {
		t->batch.costs.start_ns = l->started_ns;
		t->batch.costs.start_late_ns = l->started_late_ns;
	}
	if (t->batch.err.code == 0)
		t->batch.costs.hand_ns = framework_spend(&l->code, COST_HAND_OVER, t->batch.samples,
							 (double)t->batch.payload_bytes, 0);
	rc = crew_hand_out(c, &t->batch, clock_now_ns(), e);
	if (rc < 0)
		(void)queue_put(&l->spare, t);
	else
		*out = &t->batch;
	return rc;
}

static void tensorflow_give_back(struct loader *base, struct batch *b)
{
	struct tensorflow *l = tensorflow_of(base);

	assert(l->crew.held > 0);
	l->crew.held--;
	/* an epoch that was ended in between has closed it, and the next one collects them all */
	(void)queue_put(&l->spare, b);
}

static int tensorflow_finish(struct loader *base, struct err *e)
{
	struct tensorflow *l = tensorflow_of(base);
	int rc;

	if (!l->crew.open)
		return 0;
	l->crew.open = false;
	rc = crew_end(&l->crew, e);
	return rc < 0 ? rc : crew_close_readers(&l->crew, e);
}

static bool tensorflow_undelivered(struct loader *base, uint64_t steps_done, struct order_proof *p)
{
	struct tensorflow *l = tensorflow_of(base);
	const struct order *o = &l->crew.order;

	if (l->records) {
		order_tf_undelivered(p, o, l->crew.config.rank, steps_done, l->plan_memory);
		return true;
	}
	order_proof_undelivered(p, o, l->crew.config.rank, order_steps(o));
	for (uint64_t k = steps_done; k < l->all_steps; k++)
		for (uint64_t i = 0, first = tensorflow_position(l, k); i < o->batch; i++)
			order_proof_add(p, order_at(o, l->crew.config.rank, first + i));
	return true;
}

static unsigned tensorflow_destroy(struct loader *base)
{
	return crew_destroy(base, release_loader);
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
	.is.keys = (const struct loader_key[]){{"reader.interleave", USED_BY_WORKERS},
					       {"reader.block_length", USED_BY_WORKERS},
					       {NULL, 0}},
	.is.ignores = (const char *const[]){"reader.in_order", "reader.persistent_workers", NULL},
	.is.ignores_why = "batches are delivered in order, and threads end with their epoch",
	.window = tensorflow_window,
	.memory_bytes = tensorflow_memory_bytes,
	.create = tensorflow_create,
	.start = tensorflow_start,
	.next = tensorflow_next,
	.give_back = tensorflow_give_back,
	.finish = tensorflow_finish,
	.stats = crew_stats,
	.undelivered = tensorflow_undelivered,
	.describe = tensorflow_describe,
	.wake = crew_wake,
	.destroy = tensorflow_destroy,
};
