/* PyTorch's DataLoader: W workers with an index queue each, P batches read ahead for each worker, a
 * shared result queue, refill when a batch is handed out, delivery in order or as batches arrive.
 *
 * At most P * W batches exist beyond the one handed out, whatever their state, and in order batch k
 * is read by worker k mod W: out-of-order arrivals wait for their turn and free no place. Every
 * epoch starts with an empty pipeline at worker 0.
 *
 * The rows mds and litdata are it with the orders of their libraries (dataset/deal.h), in which
 * batch k of a rank is that of its worker k mod W, too.
 *
 * The row row_groups is the same DataLoader over DLIO's iterator over row groups
 * (loader/row_groups.h).
 *
 * The row webdataset is the same DataLoader over an iterable dataset: batch after batch a worker
 * goes on in the stream of its shards (dataset/shard_stream.h), and one whose stream has no whole
 * batch left gets no further task. Which worker then gets the next one depends in PyTorch on when
 * the end of the other arrives; here the turn passes on at once. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "loader/ahead.h"
#include "loader/fetch.h"
#include "loader/workers.h"
#include "workload/key.h"

#define FACTOR_DEFAULT 2 /* prefetch_factor of PyTorch */

struct pytorch {
	struct workers workers;    /* first */
	uint64_t factor, capacity; /* P; P * W */
	bool in_order;
	bool ahead; /* a worker's objects are read ahead: it has every so-manieth batch */

	uint64_t *assigned;         /* per worker: sent and not handed out */
	struct task *task, **spare; /* all; those not in use */
	uint64_t tasks, spares;
	struct task **window; /* in order: batch k at k mod capacity */

	/* webdataset: of each worker; else NULL */
	struct stream_of {
		struct shard_stream stream;
		uint64_t sent, handed, batches; /* of this epoch */
		void *memory, *plan;            /* plan: for who asks ahead of it; else NULL */
	} * streams;
	size_t stream_bytes; /* of each one's memory, and of the plan's */
	void *plan_memory;   /* to walk through a stream that its worker is still in */

	uint64_t sent, received; /* batches of this epoch */
	uint32_t cursor;         /* the worker whose turn it is */
	bool over;               /* the rank asked past the last one */

	/* reader.transport and reader.pin_thread */
	bool transport, pin;
	struct handover handover;
	int64_t taken_over_ns;  /* processor time of the framework's code in this call of next */
	struct span_ring *ring; /* of whoever receives batches; NULL: no trace is kept */
	struct {
		unsigned char *area; /* a batch a task */
		uint64_t bytes;
		bool locked;
		struct thread thread;
		struct queue out;
		struct framework_code code;
	} pinning;
};

static struct pytorch *pytorch_of(struct loader *l)
{
	return (struct pytorch *)l;
}

static const struct pytorch *pytorch_of_const(const struct loader *l)
{
	return (const struct pytorch *)l;
}

extern const struct loader_ops loader_pytorch, loader_webdataset, loader_mds, loader_litdata,
	loader_row_groups;

static bool streams_of(const struct workload *w)
{
	return workload_loader(w)->flags & LOADER_STREAMS;
}

static const struct loader_ops *row_of(const struct workload *w)
{
	const struct loader_facts *f = workload_loader(w);

	return f->flags & LOADER_GROUPS    ? &loader_row_groups
	       : f->flags & LOADER_STREAMS ? &loader_webdataset
	       : f->deal == DEAL_MDS       ? &loader_mds
	       : f->deal == DEAL_LITDATA   ? &loader_litdata
					   : &loader_pytorch;
}

/* ---- the pin thread: takes batches as they arrive, maps them, and copies each into memory that
 * the system may not move ---- */

static int pin_init(struct pytorch *l, struct err *e)
{
	char size[32];

	if (__builtin_mul_overflow(l->tasks, l->handover.bytes, &l->pinning.bytes))
		return err_set(e, -ENOMEM, "%llu batches do not fit in memory",
			       (unsigned long long)l->tasks);
	l->pinning.area = buffer_alloc(l->pinning.bytes, "pinned batches", e);
	if (!l->pinning.area)
		return -ENOMEM;
	l->pinning.locked = mlock(l->pinning.area, l->pinning.bytes) == 0;
	if (!l->pinning.locked && l->workers.crew.config.rank == 0)
		log_warning("reader.pin_thread: the system does not allow %s to be locked in "
			    "memory (see 'ulimit -l'): batches are copied into ordinary memory",
			    str_bytes((double)l->pinning.bytes, size, sizeof(size)));
	return queue_init(&l->pinning.out, l->tasks + l->workers.count, e);
}

static void pin_release(struct pytorch *l)
{
	if (l->pinning.locked)
		munlock(l->pinning.area, l->pinning.bytes);
	buffer_free(l->pinning.area, l->pinning.bytes);
	queue_release(&l->pinning.out);
}

static void unpack_batch(struct pytorch *l, struct task *t)
{
	int64_t begin = clock_now_ns(), end;
	int rc;

	if (!l->transport || t->batch.err.code < 0)
		return;
	rc = handover_unpack(&l->handover, &t->parcel, &t->batch.err);
	t->batch.err.code = rc;
	end = clock_now_ns();
	span_add(l->ring, SPAN_UNPACK, rc < 0 ? SPAN_FAILED : 0, begin, end, l->handover.bytes);
	l->workers.crew.stat[t->batch.worker].unpack_ns += end - begin;
}

/* What is left of the framework's law after `own_ns` here. Returns the processor time. */
static int64_t spend_on_batch(struct pytorch *l, struct task *t, struct framework_code *code,
			      enum cost_row row, int64_t own_ns)
{
	int64_t begin = clock_now_ns(), spent;

	if (t->batch.err.code < 0)
		return 0;
	spent = framework_spend(code, row, t->batch.samples, (double)l->workers.collated_bytes,
				own_ns);
	span_add(l->ring, SPAN_FRAMEWORK, 0, begin, clock_now_ns(), l->workers.collated_bytes);
	return spent;
}

/* A batch taken out of the queue as the framework does it. Returns the processor time that its code
 * takes beside what was done here. */
static int64_t take_over(struct pytorch *l, struct task *t, struct framework_code *code)
{
	int64_t own = l->transport ? framework_thread_ns() : 0;

	unpack_batch(l, t);
	own = l->transport ? framework_thread_ns() - own : 0;
	return spend_on_batch(l, t, code, COST_HAND_OVER, own);
}

static void copy_to_pinned(struct pytorch *l, const struct task *t)
{
	uint64_t bytes = l->handover.bytes;

	memcpy(l->pinning.area + (uint64_t)(t - l->task) * bytes,
	       t->parcel.map ? t->parcel.map : l->handover.content, bytes);
}

static void pin_batch(struct pytorch *l, struct task *t)
{
	int64_t begin, end, own = 0;

	if (framework_on(&l->pinning.code)) {
		t->batch.costs.pin_ns = take_over(l, t, &l->pinning.code);
		own = framework_thread_ns();
	} else {
		unpack_batch(l, t);
	}
	if (t->batch.err.code < 0)
		return;
	begin = clock_now_ns();
	copy_to_pinned(l, t);
	end = clock_now_ns();
	span_add(l->ring, SPAN_PIN, 0, begin, end, l->handover.bytes);
	l->workers.crew.stat[0].pin_ns += end - begin;
	if (own)
		t->batch.costs.pin_ns += spend_on_batch(l, t, &l->pinning.code, COST_PIN,
							framework_thread_ns() - own);
}

static void pin_main(void *arg)
{
	struct pytorch *l = arg;
	void *item;

	while (queue_get(&l->workers.results, &item) == 1) {
		struct task *t = item;

		if (t->kind == TASK_READ)
			pin_batch(l, t);
		if (queue_put(&l->pinning.out, t) < 0)
			break;
	}
}

static int pin_start(struct pytorch *l, struct err *e)
{
	const struct loader_config *c = &l->workers.crew.config;
	char name[32];

	if (!l->pin || l->pinning.thread.running)
		return 0;
	snprintf(name, sizeof(name), "p%c%u", crew_letter(&l->workers.crew), c->rank);
	return thread_run(&l->pinning.thread, pin_main, l, loader_stack_bytes(c->workload), name,
			  e);
}

static void pin_stop(struct pytorch *l)
{
	if (!l->pinning.thread.running)
		return;
	queue_close(&l->workers.results);
	queue_close(&l->pinning.out);
	thread_join_within(&l->pinning.thread, -1);
}

/* ---- memory ---- */

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
	const struct workload *w = c->workload;
	uint64_t capacity;
	int rc = loader_check_batch(c, e);

	if (rc == 0)
		rc = loader_check_threads(c, e);
	if (rc < 0 || w->reader.read_threads == 0)
		return rc;
	if (!__builtin_mul_overflow(prefetch_factor(w), (uint64_t)w->reader.read_threads,
				    &capacity) &&
	    capacity <= UINT32_MAX)
		return 0;
	return err_set(e, ERR_USAGE,
		       "reader.prefetch_size is %lld for %lld workers, which makes more than %u "
		       "batches: lower it",
		       (long long)w->reader.prefetch_size, (long long)w->reader.read_threads,
		       UINT32_MAX);
}

static bool transports(const struct workload *w)
{
	return w->reader.transport != TRANSPORT_NONE && w->reader.read_threads > 0;
}

static bool pins(const struct workload *w)
{
	return w->reader.pin_thread && w->reader.read_threads > 0;
}

/* Bytes of the memory of one worker's stream. */
static size_t stream_memory(const struct loader_config *c)
{
	struct order o;

	order_of_dataset(&o, c->workload, c->dataset, c->kind, c->ranks ? c->ranks : 1,
			 c->batch_size, 0, 1);
	return shard_stream_bytes(&o.shards);
}

static uint64_t stream_count(const struct loader_config *c)
{
	uint64_t workers = (uint64_t)c->workload->reader.read_threads;

	return !streams_of(c->workload) ? 0 : workers ? workers : 1;
}

/* The content, a shared object for each batch on its way, a pinned copy of each. */
static int handover_memory(const struct loader_config *c, uint64_t tasks, uint64_t *out,
			   struct err *e)
{
	uint64_t copies = 1, bytes;

	*out = 0;
	if (!transports(c->workload) && !pins(c->workload))
		return 0;
	bytes = handover_bytes(c, e);
	if (bytes == 0)
		return -ENOMEM;
	copies += transports(c->workload) ? tasks : 0;
	copies += pins(c->workload) ? tasks : 0;
	if (__builtin_mul_overflow(bytes, copies, out))
		return err_set(e, -ENOMEM, "the batches of a loader do not fit in memory");
	return 0;
}

/* Tasks that one worker may have. */
static uint64_t depth_of(const struct loader_config *c, uint64_t factor, uint64_t capacity)
{
	return streams_of(c->workload) || ahead_wanted(c) ? capacity : factor;
}

static int pytorch_memory_bytes(const struct loader_config *c, uint64_t *out, struct err *e)
{
	uint64_t workers, factor, tasks, crew = 0, handover = 0, streams;
	int rc = check_config(c, e);

	if (rc < 0)
		return rc;
	workers = (uint64_t)c->workload->reader.read_threads;
	factor = workers ? prefetch_factor(c->workload) : 0;
	tasks = factor * workers + LOADER_HELD_MAX;
	rc = workers_memory_bytes(c, (uint32_t)workers, depth_of(c, factor, factor * workers),
				  tasks, &crew, e);
	if (rc == 0)
		rc = handover_memory(c, tasks, &handover, e);
	if (rc < 0)
		return rc;
	if (stream_count(c) &&
	    (__builtin_mul_overflow(stream_count(c),
				    sizeof(struct stream_of) + 2 * stream_memory(c), &streams) ||
	     __builtin_add_overflow(crew, streams + stream_memory(c), &crew)))
		return err_set(e, -ENOMEM,
			       "the shuffle buffers of a loader do not fit in memory: lower "
			       "reader.shuffle_size");
	crew += sizeof(struct pytorch) + (workers ? workers : 1) * sizeof(uint64_t) +
		tasks * (sizeof(struct task) + 3 * sizeof(void *)) + workers * sizeof(void *);
	if (pins(c->workload))
		crew += loader_stack_bytes(c->workload);
	if (transports(c->workload) || pins(c->workload))
		crew += loader_trace_bytes(c);
	if (__builtin_add_overflow(crew, handover, out))
		return err_set(e, -ENOMEM, "the batches of a loader do not fit in memory");
	return 0;
}

static int init_handover(struct pytorch *l, struct err *e)
{
	const struct workload *w = l->workers.crew.config.workload;
	int rc;

	l->transport = transports(w);
	l->pin = pins(w);
	if (!l->transport && !l->pin)
		return 0;
	rc = handover_init(&l->handover, &l->workers.crew.config, l->tasks, l->transport, e);
	if (rc == 0 && l->pin)
		rc = pin_init(l, e);
	if (rc < 0)
		return rc;
	if (l->transport)
		l->workers.handover = &l->handover;
	l->ring = trace_ring(l->workers.crew.config.trace, l->workers.crew.config.rank,
			     l->workers.crew.config.kind, SPAN_RECEIVES, !l->pin);
	if (l->pin)
		l->workers.inbox = &l->pinning.out;
	return 0;
}

/* The framework's code: the rank's and the pin thread's. */
static int init_costs(struct pytorch *l, struct err *e)
{
	struct crew *c = &l->workers.crew;
	uint64_t bytes;

	if (!c->config.costs)
		return 0;
	bytes = handover_bytes(&c->config, e);
	if (bytes == 0)
		return -ENOMEM;
	workers_cost(&l->workers, bytes);
	if (!l->pin)
		return 0;
	l->pinning.code = l->workers.code;
	l->pinning.code.spent = &c->stat[0].framework_pin;
	l->pinning.code.key = ~l->workers.code.key;
	return 0;
}

static int allocate_tasks(struct pytorch *l, struct err *e)
{
	l->task = try_calloc(l->tasks, sizeof(*l->task), "batches", e);
	l->spare = l->task ? try_calloc(l->tasks, sizeof(*l->spare), "batches", e) : NULL;
	l->window = l->spare ? try_calloc(l->capacity, sizeof(*l->window), "batches", e) : NULL;
	l->assigned = l->window ? try_calloc(l->workers.crew.size.readers, sizeof(*l->assigned),
					     "workers", e)
				: NULL;
	if (!l->assigned)
		return -ENOMEM;
	for (uint64_t i = 0; i < l->tasks; i++)
		l->spare[l->spares++] = &l->task[i];
	return 0;
}

static int allocate_streams(struct pytorch *l, const struct loader_config *c, struct err *e)
{
	uint64_t n = stream_count(c);

	if (n == 0)
		return 0;
	l->stream_bytes = stream_memory(c);
	l->streams = try_calloc(n, sizeof(*l->streams), "streams", e);
	l->plan_memory = l->streams ? buffer_alloc(l->stream_bytes, "shuffle buffers", e) : NULL;
	for (uint64_t i = 0; l->plan_memory && i < n; i++) {
		l->streams[i].memory = buffer_alloc(l->stream_bytes, "shuffle buffers", e);
		if (!l->streams[i].memory)
			return -ENOMEM;
		l->workers.crew.reader[i].stream = &l->streams[i].stream;
		if (!groups_wanted(c))
			continue;
		l->streams[i].plan = buffer_alloc(l->stream_bytes, "shuffle buffers", e);
		if (!l->streams[i].plan)
			return -ENOMEM;
		l->workers.crew.reader[i].plan.memory = l->streams[i].plan;
	}
	return l->plan_memory ? 0 : -ENOMEM;
}

static void release_streams(struct pytorch *l)
{
	for (uint64_t i = 0; l->streams && i < l->workers.crew.size.readers; i++) {
		buffer_free(l->streams[i].memory, l->stream_bytes);
		buffer_free(l->streams[i].plan, l->stream_bytes);
	}
	buffer_free(l->plan_memory, l->stream_bytes);
	free(l->streams);
}

static void release_loader(struct pytorch *l)
{
	release_streams(l);
	for (uint64_t i = 0; l->task && i < l->tasks; i++)
		handover_drop(&l->handover, &l->task[i].parcel);
	pin_release(l);
	handover_release(&l->handover);
	workers_release(&l->workers);
	free(l->assigned);
	free(l->window);
	free(l->spare);
	free(l->task);
	free(l);
}

static int pytorch_create(struct loader **out, const struct loader_config *c, struct err *e)
{
	struct pytorch *l;
	uint32_t workers;
	int rc = check_config(c, e);

	if (rc < 0)
		return rc;
	l = try_calloc(1, sizeof(*l), "loader", e);
	if (!l)
		return -ENOMEM;
	workers = (uint32_t)c->workload->reader.read_threads;
	l->factor = workers ? prefetch_factor(c->workload) : 0;
	l->capacity = l->factor * workers;
	l->tasks = l->capacity + LOADER_HELD_MAX;
	l->in_order = c->workload->reader.in_order;
	l->ahead = ahead_wanted(c) && row_of(c->workload) == &loader_pytorch;
	rc = workers_init(&l->workers, row_of(c->workload), c, workers,
			  depth_of(c, l->factor, l->capacity), l->tasks, e);
	if (rc == 0)
		rc = allocate_tasks(l, e);
	if (rc == 0)
		rc = allocate_streams(l, c, e);
	if (rc == 0)
		rc = init_handover(l, e);
	if (rc == 0)
		rc = init_costs(l, e);
	if (rc < 0) {
		release_loader(l);
		return rc;
	}
	*out = &l->workers.crew.base;
	return 0;
}

/* ---- the policy ---- */

/* In order plain round robin; else the next in the cycle who has less than its share. Every worker
 * stays active here, so a share is P and someone is always below it. */
static uint32_t pick_worker(struct pytorch *l)
{
	uint32_t w = l->cursor;

	while (l->streams && l->streams[w].sent == l->streams[w].batches)
		w = (w + 1) % l->workers.count;
	while (!l->streams && !l->ahead && !l->in_order && l->assigned[w] >= l->factor)
		w = (w + 1) % l->workers.count;
	l->cursor = (w + 1) % l->workers.count;
	return w;
}

static struct task *new_task(struct pytorch *l, uint64_t index, uint32_t worker)
{
	struct task *t;
	struct batch *b;

	/* as many as may be on their way and with the rank at once */
	assert(l->spares > 0);
	t = l->spare[--l->spares];
	b = &t->batch;
	t->kind = TASK_READ;
	t->arrived = false;
	t->pending = true;
	b->index = index;
	b->first = index * l->workers.crew.config.batch_size;
	b->samples = (uint32_t)l->workers.crew.config.batch_size;
	b->worker = worker;
	b->sent_ns = clock_now_ns();
	b->err.code = 0;
	return t;
}

static void give_task_back(struct pytorch *l, struct task *t)
{
	if (l->transport)
		handover_drop(&l->handover, &t->parcel);
	l->spare[l->spares++] = t;
}

static void put_index(struct pytorch *l)
{
	struct task *t;
	uint32_t w;

	if (l->sent == l->workers.crew.steps)
		return;
	w = pick_worker(l);
	t = new_task(l, l->sent, w);
	if (l->in_order)
		l->window[l->sent % l->capacity] = t;
	l->assigned[w]++;
	if (l->streams)
		l->streams[w].sent++;
	l->sent++;
	workers_send(&l->workers, w, t);
}

static int begin_streams(struct pytorch *l, const struct order *order, struct err *e)
{
	const struct crew *c = &l->workers.crew;

	if ((order->how == ORDER_STREAMS) != (l->streams != NULL) ||
	    (l->streams && (shard_stream_bytes(&order->shards) > l->stream_bytes ||
			    order->shards.workers != l->workers.count)))
		return err_set(e, -EINVAL, "rank %u: the order belongs to another loader",
			       c->config.rank);
	for (uint32_t i = 0; l->streams && i < c->size.readers; i++) {
		struct stream_of *s = &l->streams[i];

		shard_stream_begin(&s->stream, &c->order.shards, c->config.rank, i, s->memory);
		l->workers.crew.reader[i].fresh = true;
		s->sent = s->handed = 0;
		s->batches = shard_batches(&c->order.shards, c->config.rank, i);
	}
	return 0;
}

static int pytorch_start(struct loader *base, const struct order *order, uint64_t steps,
			 struct err *e)
{
	struct pytorch *l = pytorch_of(base);
	struct crew *c = &l->workers.crew;
	int rc = crew_begin(c, order, steps, e);

	if (rc == 0)
		rc = begin_streams(l, order, e);
	if (rc < 0)
		return rc;
	l->sent = l->received = 0;
	l->over = false;
	l->cursor = 0;
	for (uint64_t i = 0; i < l->tasks; i++)
		l->task[i].pending = false;
	for (uint32_t i = 0; (l->ahead || c->config.cache) && i < c->size.readers; i++)
		c->reader[i].steps = c->steps;
	memset(l->assigned, 0, c->size.readers * sizeof(*l->assigned));
	rc = pin_start(l, e);
	if (rc == 0)
		rc = workers_begin(&l->workers, e);
	if (rc < 0)
		return rc;
	c->open = true;
	for (uint64_t i = 0; i < l->capacity; i++)
		put_index(l);
	return 0;
}

static struct task *read_inline(struct pytorch *l)
{
	struct task *t = new_task(l, l->sent++, 0);

	workers_read_inline(&l->workers, t);
	l->received++;
	return t;
}

/* The rank takes batches out of the queue, at the framework's cost. */
static bool takes_over(const struct pytorch *l)
{
	return framework_on(&l->workers.code) && !l->pin;
}

/* The batch whose turn it is: that of the lowest number, or the first to arrive. */
static int receive_in_turn(struct pytorch *l, struct task **out)
{
	struct task **turn = l->in_order ? &l->window[l->workers.crew.handed % l->capacity] : NULL;

	while (!turn || !(*turn)->arrived) {
		struct task *t;

		if (workers_receive(&l->workers, &t) < 0)
			return ERR_CANCELED;
		l->received++;
		t->arrived = true;
		if (takes_over(l))
			l->taken_over_ns += take_over(l, t, &l->workers.code);
		if (!turn) {
			*out = t;
			return 0;
		}
	}
	*out = *turn;
	*turn = NULL;
	return 0;
}

static int pytorch_next(struct loader *base, struct batch **out, struct err *e)
{
	struct pytorch *l = pytorch_of(base);
	struct crew *c = &l->workers.crew;
	struct task *t = NULL;
	int rc = crew_ask(c, e);

	*out = NULL;
	if (rc == 0 && !l->over) {
		l->over = true;
		workers_epoch_over(&l->workers);
	}
	if (rc <= 0)
		return rc;
	l->taken_over_ns = 0;
	crew_waits(c, c->handed + 1);
	if (l->workers.count)
		rc = receive_in_turn(l, &t);
	else
		t = read_inline(l);
	crew_waits(c, 0);
	if (rc < 0)
		return crew_canceled(c, e);
	if (l->workers.count) {
		l->assigned[t->batch.worker]--;
		put_index(l);
	}
	t->batch.costs.hand_ns = l->taken_over_ns;
	if (c->handed == 0) {
		t->batch.costs.start_ns = l->workers.started_ns;
		t->batch.costs.start_late_ns = l->workers.started_late_ns;
	}
	if (!l->pin && !takes_over(l))
		unpack_batch(l, t);
	rc = crew_hand_out(c, &t->batch, clock_now_ns(), e);
	t->pending = rc == ERR_CANCELED; /* not delivered: the run was stopped */
	if (l->streams && !t->pending)
		l->streams[t->batch.worker].handed++;
	if (rc < 0)
		give_task_back(l, t);
	else
		*out = &t->batch;
	return rc;
}

static void pytorch_give_back(struct loader *base, struct batch *b)
{
	struct pytorch *l = pytorch_of(base);

	assert(l->workers.crew.held > 0);
	l->workers.crew.held--;
	give_task_back(l, (struct task *)b);
}

/* Calls batches in reading off and takes everything back that was sent. */
static int take_all_back(struct pytorch *l)
{
	struct task *t;

	if (l->received < l->sent)
		crew_drop(&l->workers.crew);
	while (l->received < l->sent) {
		if (workers_receive(&l->workers, &t) < 0)
			return ERR_CANCELED;
		l->received++;
		t->arrived = true;
		if (!l->in_order)
			give_task_back(l, t);
	}
	for (uint64_t k = l->workers.crew.handed; l->in_order && k < l->sent; k++)
		give_task_back(l, l->window[k % l->capacity]);
	return 0;
}

/* Every worker's stream beyond the batches that were handed out: in order the first steps, in turn.
 */
static void streams_undelivered(struct pytorch *l, uint64_t steps_done, struct order_proof *p)
{
	const struct crew *c = &l->workers.crew;
	uint32_t readers = c->size.readers, w = 0;

	for (uint32_t i = 0; l->in_order && i < readers; i++)
		l->streams[i].handed = 0;
	for (uint64_t k = 0; l->in_order && k < steps_done; k++) {
		while (l->streams[w].handed == l->streams[w].batches)
			w = (w + 1) % readers;
		l->streams[w].handed++;
		w = (w + 1) % readers;
	}
	for (uint32_t i = 0; i < readers; i++)
		order_stream_undelivered(p, &c->order, c->config.rank, i, l->streams[i].handed,
					 l->plan_memory);
}

/* Out of order the batches handed out need not be the first ones. */
static bool pytorch_undelivered(struct loader *base, uint64_t steps_done, struct order_proof *p)
{
	const struct pytorch *l = pytorch_of(base);
	const struct order *o = &l->workers.crew.order;
	uint32_t rank = l->workers.crew.config.rank;

	if (l->streams) {
		streams_undelivered(pytorch_of(base), steps_done, p);
		return true;
	}
	/* samples come in any order: which ones did is known of a whole epoch alone */
	if (l->ahead) {
		p->refused += steps_done < l->workers.crew.steps;
		return steps_done < l->workers.crew.steps;
	}
	if (l->in_order)
		return false;
	order_proof_undelivered(p, o, rank, l->sent);
	for (uint64_t i = 0; i < l->tasks; i++) {
		const struct task *t = &l->task[i];

		for (uint32_t k = 0; t->pending && k < t->batch.samples; k++)
			order_proof_add(p, order_at(o, rank, t->batch.first + k));
	}
	return true;
}

/* The threads that download for the workers, none of which reads. How many hang. */
static unsigned end_fetching(struct pytorch *l)
{
	struct crew *c = &l->workers.crew;
	unsigned hung = 0;

	for (uint32_t i = 0; c->reader && i < c->size.readers; i++)
		fetch_halt(c->reader[i].fetch);
	for (uint32_t i = 0; c->reader && i < c->size.readers; i++)
		hung += !fetch_end(c->reader[i].fetch);
	return hung;
}

static int pytorch_finish(struct loader *base, struct err *e)
{
	struct pytorch *l = pytorch_of(base);
	struct crew *c = &l->workers.crew;
	bool woken;
	int rc;

	if (!c->open)
		return 0;
	c->open = false;
	woken = crew_stopped(c) || (l->workers.count && take_all_back(l) < 0);
	for (uint32_t i = 0; l->ahead && i < c->size.readers; i++)
		ahead_end(c->reader[i].ahead);
	for (uint32_t i = 0; !woken && i < c->size.readers; i++)
		groups_end(c->reader[i].groups);
	rc = workers_end(&l->workers, woken, e);
	if (end_fetching(l) && rc != -ETIMEDOUT)
		rc = err_set(e, -ETIMEDOUT,
			     "rank %u: a thread that downloads shards into the cache hangs in the "
			     "storage",
			     c->config.rank);
	return rc;
}

/* With in-order delivery, the loader waits for the worker whose batch is due. */
static void pytorch_describe(const struct loader *base, char *out, size_t out_size)
{
	const struct pytorch *l = pytorch_of_const(base);
	uint64_t batch = atomic_load_explicit(&l->workers.crew.waiting, memory_order_acquire);
	uint32_t due = UINT32_MAX;

	if (l->in_order && batch && l->workers.count && !l->streams)
		due = (uint32_t)((batch - 1) % l->workers.count);
	crew_describe(&l->workers.crew, due, out, out_size);
}

static unsigned pytorch_destroy(struct loader *base)
{
	struct pytorch *l = pytorch_of(base);
	unsigned stuck;

	if (!l)
		return 0;
	stuck = crew_dismiss(&l->workers.crew);
	stuck += end_fetching(l);
	pin_stop(l);
	if (stuck == 0)
		release_loader(l);
	return stuck;
}

/* What both rows have: PyTorch's DataLoader. */
#define DATA_LOADER_KEYS                                                                           \
	{"reader.multiprocessing_context", USED_BY_WORKERS},                                       \
		{"reader.transport", USED_BY_WORKERS}, {"reader.pin_thread", USED_BY_WORKERS},     \
		{"reader.worker_start_time", USED_BY_WORKERS},                                     \
		{"reader.worker_init_time", USED_BY_WORKERS},                                      \
		{"reader.worker_resume_time", USED_BY_WORKERS},                                    \
	{                                                                                          \
		NULL, 0                                                                            \
	}
#define DATA_LOADER                                                                                \
	.window = pytorch_window, .memory_bytes = pytorch_memory_bytes, .create = pytorch_create,  \
	.start = pytorch_start, .next = pytorch_next, .give_back = pytorch_give_back,              \
	.finish = pytorch_finish, .stats = crew_stats, .undelivered = pytorch_undelivered,         \
	.describe = pytorch_describe, .wake = crew_wake, .destroy = pytorch_destroy

const struct loader_ops loader_pytorch = {
	.is.name = "pytorch",
	.is.help = "PyTorch's DataLoader: worker queues, prefetch_factor, in-order delivery.",
	.is.flags = LOADER_TAKES_OBJECTS,
	.is.default_of = 1u << FRAMEWORK_PYTORCH,
	.is.rule = RULE_PYTORCH,
	.is.keys = (const struct loader_key[]){DATA_LOADER_KEYS},
	DATA_LOADER,
};

const struct loader_ops loader_webdataset = {
	.is.name = "webdataset",
	.is.help = "WebDataset in PyTorch's DataLoader: shards for each worker, shuffle buffers.",
	.is.flags = LOADER_STREAMS | LOADER_TAKES_OBJECTS,
	.is.keys = (const struct loader_key[]){{"reader.file_shuffle_size", USED_ALWAYS},
					       {"reader.shuffle_initial", USED_ALWAYS},
					       DATA_LOADER_KEYS},
	DATA_LOADER,
};

const struct loader_ops loader_row_groups = {
	.is.name = "row_groups",
	.is.help =
		"DLIO's iterator over row groups in PyTorch's DataLoader: files for each worker.",
	.is.flags = LOADER_STREAMS | LOADER_GROUPS,
	.is.keys = (const struct loader_key[]){{"reader.file_shuffle_size", USED_ALWAYS},
					       {"reader.shuffle_initial", USED_ALWAYS},
					       DATA_LOADER_KEYS},
	DATA_LOADER,
};

/* What downloads into reader.cache_folder demand: whole shards that an index lists, and a worker
 * whose samples are known before. */
static int check_cache(const struct workload *w, int64_t ranks, struct err *e)
{
	(void)ranks;
	if (!w->reader.cache_folder || !w->reader.cache_folder[0])
		return 0;
	if (!workload_format(w)->folder_file)
		return workload_key_error(w, ERR_USAGE, e, "reader.cache_folder",
					  "reader.cache_folder is for files that an index lists, "
					  "and those of dataset.format %s have none: use mds or "
					  "litdata, or leave it out",
					  w->dataset.format);
	if (w->reader.queue_depth > 1)
		return workload_key_error(w, ERR_USAGE, e, "reader.cache_folder",
					  "reader.cache_folder: samples are read from it one by "
					  "one, so leave reader.queue_depth %" PRId64 " out",
					  w->reader.queue_depth);
	if (!w->reader.in_order)
		return workload_key_error(w, ERR_USAGE, e, "reader.cache_folder",
					  "reader.cache_folder needs reader.in_order: which shards "
					  "a worker downloads ahead follows from its batches");
	return 0;
}

/* MosaicML Streaming's rules across nodes. */
static int check_nodes(const struct workload *w, int64_t ranks, struct err *e)
{
	int64_t nodes = w->reader.nodes, canonical = w->reader.canonical_nodes;
	int64_t samples;
	int rc = check_cache(w, ranks, e);

	if (rc < 0)
		return rc;

	if (ranks % nodes)
		return workload_key_error(
			w, ERR_USAGE, e, "reader.nodes",
			"reader.nodes is %" PRId64 ", but %" PRId64
			" ranks (-n) cannot be divided equally among as many nodes",
			nodes, ranks);
	if (canonical && canonical % nodes && nodes % canonical)
		return workload_key_error(w, ERR_USAGE, e, "reader.canonical_nodes",
					  "reader.canonical_nodes is %" PRId64
					  " and reader.nodes %" PRId64
					  ": one of them must be a multiple of the other",
					  canonical, nodes);
	if (canonical == 0)
		canonical = nodes * workload_canonical_of(w->reader.shuffle_algorithm);
	if (__builtin_mul_overflow(w->dataset.num_files_train, w->dataset.num_samples_per_file,
				   &samples) ||
	    !w->workflow.train || samples > canonical)
		return 0;
	return workload_key_error(w, ERR_USAGE, e, "reader.canonical_nodes",
				  "%" PRId64 " training samples are not more than the %" PRId64
				  " canonical nodes of MosaicML Streaming, between which it would "
				  "repeat them: use more samples, or a smaller "
				  "reader.canonical_nodes",
				  samples, canonical);
}

const struct loader_ops loader_mds = {
	.is.name = "mds",
	.is.help = "MosaicML Streaming in PyTorch's DataLoader: its partition and its shuffles.",
	.is.rule = RULE_PYTORCH,
	.is.deal = DEAL_MDS,
	.is.check_keys = check_nodes,
	.is.keys = (const struct loader_key[]){{"reader.cache_folder", USED_ALWAYS},
					       {"reader.cache_limit", USED_ALWAYS},
					       {"reader.predownload", USED_ALWAYS},
					       {"reader.shuffle_algorithm", USED_ALWAYS},
					       {"reader.shuffle_block_size", USED_ALWAYS},
					       {"reader.canonical_nodes", USED_ALWAYS},
					       {"reader.nodes", USED_ALWAYS},
					       DATA_LOADER_KEYS},
	DATA_LOADER,
};

const struct loader_ops loader_litdata = {
	.is.name = "litdata",
	.is.help = "LitData in PyTorch's DataLoader: chunks for each worker, FullShuffle.",
	.is.rule = RULE_PYTORCH,
	.is.deal = DEAL_LITDATA,
	.is.check_keys = check_cache,
	.is.keys = (const struct loader_key[]){{"reader.cache_folder", USED_ALWAYS},
					       {"reader.cache_limit", USED_ALWAYS},
					       {"reader.max_pre_download", USED_ALWAYS},
					       DATA_LOADER_KEYS},
	DATA_LOADER,
};
