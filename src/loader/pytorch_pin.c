/* PyTorch's pin thread: between workers and rank, one thread that takes batches as they arrive,
 * maps them, and copies each into memory that the system may not move. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "loader/pytorch.h"

int pytorch_pin_init(struct pytorch *l, struct err *e)
{
	char size[32];

	if (__builtin_mul_overflow(l->tasks, l->handover.bytes, &l->pinning.bytes))
		return err_set(e, -ENOMEM, "%llu batches do not fit in memory",
			       (unsigned long long)l->tasks);
	l->pinning.area = buffer_alloc(l->pinning.bytes, "pinned batches", e);
	if (!l->pinning.area)
		return -ENOMEM;
	l->pinning.locked = mlock(l->pinning.area, l->pinning.bytes) == 0;
	if (!l->pinning.locked && l->crew.config.rank == 0)
		log_warning("reader.pin_thread: the system does not let %s be locked in memory "
			    "(see 'ulimit -l'): batches are copied into ordinary memory",
			    str_bytes((double)l->pinning.bytes, size, sizeof(size)));
	return queue_init(&l->pinning.out, l->tasks + l->crew.workers, e);
}

void pytorch_pin_release(struct pytorch *l)
{
	if (l->pinning.locked)
		munlock(l->pinning.area, l->pinning.bytes);
	buffer_free(l->pinning.area, l->pinning.bytes);
	queue_release(&l->pinning.out);
}

void pytorch_unpack(struct pytorch *l, struct task *t)
{
	int64_t begin = clock_now_ns(), end;
	int rc;

	if (!l->transport || t->batch.err.code < 0)
		return;
	rc = handover_unpack(&l->handover, &t->parcel, &t->batch.err);
	t->batch.err.code = rc;
	end = clock_now_ns();
	span_add(l->ring, SPAN_UNPACK, rc < 0 ? SPAN_FAILED : 0, begin, end, l->handover.bytes);
	l->crew.stat[t->batch.worker].unpack_ns += end - begin;
}

static void copy(struct pytorch *l, struct task *t)
{
	uint64_t bytes = l->handover.bytes;
	const void *from;
	int64_t begin, end;

	pytorch_unpack(l, t);
	if (t->batch.err.code < 0)
		return;
	begin = clock_now_ns();
	from = t->parcel.map ? t->parcel.map : l->handover.content;
	memcpy(l->pinning.area + (uint64_t)(t - l->task) * bytes, from, bytes);
	end = clock_now_ns();
	span_add(l->ring, SPAN_PIN, 0, begin, end, bytes);
	l->crew.stat[0].pin_ns += end - begin;
}

static void *pin_main(void *arg)
{
	struct pytorch *l = arg;
	void *item;

	while (queue_get(&l->crew.results, &item) == 1) {
		struct task *t = item;

		if (t->kind == TASK_READ)
			copy(l, t);
		if (queue_put(&l->pinning.out, t) < 0)
			break;
	}
	return NULL;
}

int pytorch_pin_start(struct pytorch *l, struct err *e)
{
	const struct loader_config *c = &l->crew.config;
	char name[32];
	int rc;

	if (!l->pin || l->pinning.running)
		return 0;
	snprintf(name, sizeof(name), "p%c%u", c->kind == DATASET_TRAIN ? 'w' : 'e', c->rank);
	rc = thread_start(&l->pinning.thread, pin_main, l, worker_stack_bytes(c->workload), name,
			  e);
	l->pinning.running = rc == 0;
	return rc;
}

void pytorch_pin_stop(struct pytorch *l)
{
	if (!l->pinning.running)
		return;
	queue_close(&l->crew.results);
	queue_close(&l->pinning.out);
	pthread_join(l->pinning.thread, NULL);
	l->pinning.running = false;
}
