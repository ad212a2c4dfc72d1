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

#include "base/clock.h"

#define POLL_NS NS_PER_S /* a stop flag set without wake is noticed this soon */
#define GRACE_DEFAULT_NS (5 * NS_PER_S)

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
