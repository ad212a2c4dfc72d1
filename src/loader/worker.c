/* The thread of a reader worker. */
#include "loader/worker.h"

#include <stdio.h>

#include "base/clock.h"

/* Formats need a few KiB. Sanitizers grow every frame. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STACK_DEFAULT (1024u * 1024u)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STACK_DEFAULT (1024u * 1024u)
#endif
#endif
#ifndef STACK_DEFAULT
#define STACK_DEFAULT (128u * 1024u)
#endif

size_t worker_stack_bytes(const struct workload *w)
{
	int64_t bytes = w->run.stack_bytes > 0 ? w->run.stack_bytes : 0;

	return bytes ? (size_t)bytes : STACK_DEFAULT;
}

size_t worker_queue_bytes(size_t depth)
{
	return depth * sizeof(void *);
}

int worker_init(struct worker *w, const struct loader_config *config,
		const struct reader_config *settings, uint32_t id, _Atomic uint32_t *halt,
		struct worker_stat *stat, struct queue *out, const struct order *order,
		size_t depth, struct err *e)
{
	*w = (struct worker){.out = out, .order = order};
	sample_reader_init(&w->reader, config, settings, id, false, halt, stat);
	return queue_init(&w->in, depth, e);
}

void worker_release(struct worker *w)
{
	queue_release(&w->in);
}

void worker_pause(_Atomic uint32_t *halt, const struct stop_flag *stop, double seconds)
{
	int64_t deadline = clock_now_ns() + (int64_t)(seconds * (double)NS_PER_S), left;

	while (seconds > 0 && (left = deadline - clock_now_ns()) > 0) {
		uint32_t seen = atomic_load(halt);

		if (seen & HALT_STOP || (stop && atomic_load(&stop->set)))
			break;
		thread_wait(halt, seen, left < NS_PER_S ? left : NS_PER_S);
	}
}

static void pack(struct worker *w, struct task *t)
{
	int64_t begin = clock_now_ns(), took;
	int rc;

	if (!w->handover || t->batch.err.code < 0)
		return;
	rc = handover_pack(w->handover, &t->parcel, &t->batch.err);
	t->batch.err.code = rc;
	took = clock_now_ns() - begin;
	span_add(w->reader.ring, SPAN_TRANSPORT, rc < 0 ? SPAN_FAILED : 0, begin, begin + took,
		 w->handover->bytes);
	w->reader.stat->transport_ns += took;
	t->batch.work.ns[WORK_TRANSPORT] += took;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	const struct loader_config *c = w->reader.config;
	int64_t idle_from;
	void *item;

	worker_pause(w->reader.halt, c->stop, c->workload->reader.worker_init_time);
	idle_from = clock_now_ns();

	while (queue_get(&w->in, &item) == 1) {
		struct task *t = item;

		if (t->kind == TASK_QUIT)
			break;
		if (t->kind == TASK_READ) {
			w->reader.stat->idle_ns += clock_now_ns() - idle_from;
			sample_reader_batch(&w->reader, w->order, &t->batch);
			pack(w, t);
		} else {
			worker_pause(w->reader.halt, c->stop,
				     c->workload->reader.worker_resume_time);
		}
		/* Before the put: whoever receives it may already send the next task. */
		idle_from = clock_now_ns();
		if (queue_put(w->out, t) < 0)
			break;
		sample_reader_idle(&w->reader);
	}
	sample_reader_idle(&w->reader);
	atomic_store_explicit(&w->ended, 1, memory_order_release);
	thread_wake(&w->ended, 1);
	return NULL;
}

int worker_start(struct worker *w, struct err *e)
{
	const struct loader_config *c = w->reader.config;
	char name[32];
	int rc;

	snprintf(name, sizeof(name), "%c%u.%u", c->kind == DATASET_TRAIN ? 'w' : 'e', c->rank,
		 w->reader.worker);
	atomic_store_explicit(&w->ended, 0, memory_order_relaxed);
	rc = thread_start(&w->thread, worker_main, w, worker_stack_bytes(c->workload), name, e);
	w->running = rc == 0;
	return rc;
}

void worker_send(struct worker *w, struct task *t)
{
	/* Fails only once the queue is closed, which is how a run ends: whoever waits finds out. */
	(void)queue_put(&w->in, t);
}

void worker_control(struct worker *w, enum task_kind kind)
{
	w->control.kind = kind;
	worker_send(w, &w->control);
}

bool worker_join(struct worker *w, int64_t timeout_ns)
{
	int64_t deadline = clock_now_ns() + timeout_ns;

	while (!atomic_load_explicit(&w->ended, memory_order_acquire)) {
		int64_t left = deadline - clock_now_ns();

		if (left <= 0)
			return false;
		thread_wait(&w->ended, 0, left);
	}
	pthread_join(w->thread, NULL);
	w->running = false;
	return true;
}
