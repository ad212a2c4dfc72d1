/* What the PyTorch loader takes before the first epoch: checks, memory, readers. */
#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "loader/pytorch.h"

#define FACTOR_DEFAULT 2 /* prefetch_factor of PyTorch */

static uint64_t prefetch_factor(const struct workload *w)
{
	uint64_t size = w->reader.prefetch_size > 0 ? (uint64_t)w->reader.prefetch_size : 0;
	uint64_t workers = (uint64_t)w->reader.read_threads;

	return size ? size / workers + (size % workers != 0) : FACTOR_DEFAULT;
}

void pytorch_window(const struct workload *w, uint32_t *workers, uint64_t *batches)
{
	*workers = (uint32_t)w->reader.read_threads;
	*batches = *workers ? prefetch_factor(w) * *workers : 0;
}

static int check_config(const struct loader_config *c, struct err *e)
{
	int64_t workers = c->workload->reader.read_threads;
	uint64_t capacity;

	if (c->batch_size == 0 || c->batch_size > UINT32_MAX)
		return err_set(e, ERR_USAGE,
			       "reader.batch_size is %llu; a batch has 1 to %u samples",
			       (unsigned long long)c->batch_size, UINT32_MAX);
	if (workers < 0 || workers > UINT16_MAX + 1)
		return err_set(e, ERR_USAGE, "reader.read_threads is %lld; 0 to 65536 are possible",
			       (long long)workers);
	if (workers > 0 &&
	    (__builtin_mul_overflow(prefetch_factor(c->workload), (uint64_t)workers, &capacity) ||
	     capacity > UINT32_MAX))
		return err_set(
			e, ERR_USAGE,
			"reader.prefetch_size is %lld for %lld workers; that is more batches "
			"than this program keeps",
			(long long)c->workload->reader.prefetch_size, (long long)workers);
	return 0;
}

static bool transports(const struct workload *w)
{
	return w->reader.transport != TRANSPORT_NONE && w->reader.read_threads > 0;
}

static bool pins(const struct workload *w)
{
	return w->reader.pin_thread && w->reader.read_threads > 0;
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

int pytorch_memory_bytes(const struct loader_config *c, uint64_t *out, struct err *e)
{
	uint64_t workers, factor, tasks, crew = 0, handover = 0;
	int rc = check_config(c, e);

	if (rc < 0)
		return rc;
	workers = (uint64_t)c->workload->reader.read_threads;
	factor = workers ? prefetch_factor(c->workload) : 0;
	tasks = factor * workers + LOADER_HELD_MAX;
	rc = crew_memory_bytes(c, (uint32_t)workers, factor, tasks, &crew, e);
	if (rc == 0)
		rc = handover_memory(c, tasks, &handover, e);
	if (rc < 0)
		return rc;
	crew += sizeof(struct pytorch) + (workers ? workers : 1) * sizeof(uint64_t) +
		tasks * (sizeof(struct task) + 3 * sizeof(void *)) + workers * sizeof(void *);
	if (pins(c->workload))
		crew += worker_stack_bytes(c->workload);
	if (transports(c->workload) || pins(c->workload))
		crew += loader_trace_bytes(c);
	if (__builtin_add_overflow(crew, handover, out))
		return err_set(e, -ENOMEM, "the batches of a loader do not fit in memory");
	return 0;
}

static int init_handover(struct pytorch *l, struct err *e)
{
	const struct workload *w = l->crew.config.workload;
	int rc;

	l->transport = transports(w);
	l->pin = pins(w);
	if (!l->transport && !l->pin)
		return 0;
	rc = handover_init(&l->handover, &l->crew.config, l->tasks, l->transport, e);
	if (rc == 0 && l->pin)
		rc = pytorch_pin_init(l, e);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; l->transport && i < l->crew.workers; i++)
		l->crew.worker[i].handover = &l->handover;
	l->ring = trace_ring(l->crew.config.trace, l->crew.config.rank, l->crew.config.kind,
			     SPAN_RECEIVES, !l->pin);
	if (l->pin)
		l->crew.inbox = &l->pinning.out;
	return 0;
}

static int allocate(struct pytorch *l, struct err *e)
{
	l->task = try_calloc(l->tasks, sizeof(*l->task), "batches", e);
	l->spare = l->task ? try_calloc(l->tasks, sizeof(*l->spare), "batches", e) : NULL;
	l->window = l->spare ? try_calloc(l->capacity, sizeof(*l->window), "batches", e) : NULL;
	l->assigned =
		l->window ? try_calloc(crew_readers(&l->crew), sizeof(*l->assigned), "workers", e)
			  : NULL;
	if (!l->assigned)
		return -ENOMEM;
	for (uint64_t i = 0; i < l->tasks; i++)
		l->spare[l->spares++] = &l->task[i];
	return 0;
}

void pytorch_release(struct pytorch *l)
{
	for (uint64_t i = 0; l->task && i < l->tasks; i++)
		handover_drop(&l->handover, &l->task[i].parcel);
	pytorch_pin_release(l);
	handover_release(&l->handover);
	crew_release(&l->crew);
	free(l->assigned);
	free(l->window);
	free(l->spare);
	free(l->task);
	free(l);
}

int pytorch_create(struct loader **out, const struct loader_config *c, struct err *e)
{
	struct pytorch *l;
	uint32_t workers;
	int rc = check_config(c, e);

	if (rc < 0)
		return rc;
	l = try_calloc(1, sizeof(*l), "loader", e);
	if (!l)
		return -ENOMEM;
	l->base.ops = &loader_pytorch;
	workers = (uint32_t)c->workload->reader.read_threads;
	l->factor = workers ? prefetch_factor(c->workload) : 0;
	l->capacity = l->factor * workers;
	l->tasks = l->capacity + LOADER_HELD_MAX;
	l->in_order = c->workload->reader.in_order;
	rc = crew_init(&l->crew, c, workers, l->factor, l->tasks, e);
	if (rc == 0)
		rc = allocate(l, e);
	if (rc == 0)
		rc = init_handover(l, e);
	if (rc < 0) {
		pytorch_release(l);
		return rc;
	}
	*out = &l->base;
	return 0;
}
