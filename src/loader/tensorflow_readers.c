/* Where a batch's samples come from: threads that read files record by record, the turns they take,
 * the shuffle buffer, the batch; and DLIO's generators, which yield batches. */
#include "loader/tensorflow.h"

#include "base/clock.h"

/* ---- records ---- */

static bool halted(const struct tensorflow *l)
{
	return atomic_load_explicit(&l->crew.halt, memory_order_acquire) != 0;
}

static void read_record(struct tf_reader *r, uint64_t sample, struct record_slot *slot)
{
	struct record *rec = &slot->record;
	int64_t now = clock_now_ns();
	int rc;

	*rec = (struct record){.sample = sample, .begun_ns = now, .worker = r->number};
	slot->err.code = 0;
	worker_work_begin(r->reader->stat, &rec->work);
	rc = sample_reader_read(r->reader, sample, &now, &rec->payload_bytes, &slot->err);
	if (rc < 0)
		slot->err.code = rc;
	rec->done_ns = now;
	worker_note_delay(r->reader->stat, now - rec->begun_ns);
	worker_work_end(r->reader->stat, &rec->work);
	sample_reader_idle(r->reader);
}

/* Reads a record before it waits for room, as TensorFlow's threads do: one more than the buffer. */
void tensorflow_record_work(void *arg)
{
	struct tf_reader *r = arg;
	struct tensorflow *l = r->loader;
	uint64_t per_file = l->crew.config.dataset->samples_per_file, n = 0;
	int64_t idle_from = clock_now_ns();
	void *item;

	while (crew_get(&l->crew, &r->in, &item) == 0) {
		uint64_t first = ((uint64_t)(uintptr_t)item - 1) * per_file;

		for (uint64_t i = 0; i < per_file; i++) {
			struct record_slot *slot = &r->slot[n++ % RECORD_SLOTS];

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
		slot = &l->reader[0].slot[0];
		if (halted(l) || crew_stopped(&l->crew))
			return ERR_CANCELED;
		read_record(&l->reader[0], sample, slot);
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

void tensorflow_readers_begin(struct tensorflow *l)
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

int tensorflow_fill(struct tensorflow *l, struct tf_batch *t)
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

uint64_t tensorflow_position(const struct tensorflow *l, uint64_t k)
{
	uint64_t t = k % l->threads, each = l->all_steps / l->threads;
	uint64_t more = l->all_steps % l->threads;

	return (t * each + (t < more ? t : more) + k / l->threads) * l->crew.config.batch_size;
}

void tensorflow_generator_work(void *arg)
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

int tensorflow_generated(struct tensorflow *l, struct tf_batch **out)
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
