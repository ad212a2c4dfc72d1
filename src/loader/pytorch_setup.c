/* What the PyTorch loader takes before the first epoch: checks, memory, readers. */
#include "loader/pytorch.h"

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"

#define PAGE_BYTES 4096
#define GUARD_BYTES PAGE_BYTES /* below each stack */
#define FACTOR_DEFAULT 2       /* prefetch_factor of PyTorch */

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

int pytorch_memory_bytes(const struct loader_config *c, uint64_t *out, struct err *e)
{
	uint64_t workers, factor, readers, tasks, buffers, each, total = sizeof(struct pytorch);
	struct reader_config settings;
	int rc = check_config(c, e);

	if (rc < 0)
		return rc;
	sample_reader_settings(&settings, c);
	buffers = sample_reader_bytes(c, &settings, e);
	if (buffers == 0)
		return -ENOMEM;
	workers = (uint64_t)c->workload->reader.read_threads;
	factor = workers ? prefetch_factor(c->workload) : 0;
	readers = workers ? workers : 1;
	tasks = factor * workers + LOADER_HELD_MAX;
	each = sizeof(struct worker_stat) + sizeof(uint64_t);
	if (workers)
		each += sizeof(struct worker) + worker_queue_bytes(factor) +
			worker_stack_bytes(c->workload) + GUARD_BYTES;
	total += tasks * (sizeof(struct task) + 2 * sizeof(void *)) +
		 worker_queue_bytes(tasks + workers);
	if (__builtin_add_overflow(buffers, PAGE_BYTES, &buffers) ||
	    __builtin_add_overflow(each, buffers, &each) ||
	    __builtin_mul_overflow(each, readers, &each) ||
	    __builtin_add_overflow(total, each, &total))
		return err_set(e, -ENOMEM, "the buffers of %llu workers do not fit in memory",
			       (unsigned long long)readers);
	*out = total;
	return 0;
}

static struct sample_reader *reader_of(struct pytorch *l, uint32_t i)
{
	return l->workers ? &l->worker[i].reader : &l->inline_reader;
}

static int open_readers(struct pytorch *l, struct err *e)
{
	for (uint32_t i = 0; i < pytorch_readers(l); i++) {
		int rc = sample_reader_open(reader_of(l, i), e);

		if (rc < 0) {
			if (e)
				err_wrap(e, "rank %u, worker %u", l->config.rank, i);
			return rc;
		}
	}
	return 0;
}

/* The first error is the one reported; all are closed. */
int pytorch_close_readers(struct pytorch *l, struct err *e)
{
	int first = 0;

	for (uint32_t i = 0; i < pytorch_readers(l); i++) {
		int rc = sample_reader_close(reader_of(l, i), first ? NULL : e);

		if (rc < 0 && first == 0) {
			first = rc;
			if (e)
				err_wrap(e, "rank %u, worker %u", l->config.rank, i);
		}
	}
	return first;
}

static int allocate(struct pytorch *l, struct err *e)
{
	uint64_t tasks = l->capacity + LOADER_HELD_MAX;

	l->stat = try_calloc(pytorch_readers(l), sizeof(*l->stat), "statistics of workers", e);
	l->task = l->stat ? try_calloc(tasks, sizeof(*l->task), "batches", e) : NULL;
	l->spare = l->task ? try_calloc(tasks, sizeof(*l->spare), "batches", e) : NULL;
	l->window = l->spare ? try_calloc(l->capacity, sizeof(*l->window), "batches", e) : NULL;
	l->assigned = l->window ? try_calloc(pytorch_readers(l), sizeof(*l->assigned), "workers", e)
				: NULL;
	if (!l->assigned)
		return -ENOMEM;
	for (uint64_t i = 0; i < tasks; i++)
		l->spare[l->spares++] = &l->task[i];
	if (l->workers == 0) {
		sample_reader_init(&l->inline_reader, &l->config, &l->settings, 0, &l->halt,
				   &l->stat[0]);
		return 0;
	}
	if (queue_init(&l->results, l->capacity + l->workers, e) < 0)
		return -ENOMEM;
	l->worker = try_calloc(l->workers, sizeof(*l->worker), "workers", e);
	if (!l->worker)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->workers; i++) {
		int rc = worker_init(&l->worker[i], &l->config, &l->settings, i, &l->halt,
				     &l->stat[i], &l->results, &l->order, l->factor, e);

		if (rc < 0)
			return rc;
	}
	return 0;
}

void pytorch_release(struct pytorch *l)
{
	if (l->worker || (l->workers == 0 && l->assigned)) {
		pytorch_close_readers(l, NULL);
		for (uint32_t i = 0; i < pytorch_readers(l); i++)
			sample_reader_release(reader_of(l, i));
	}
	for (uint32_t i = 0; l->worker && i < l->workers; i++)
		worker_release(&l->worker[i]);
	queue_release(&l->results);
	free(l->worker);
	free(l->assigned);
	free(l->window);
	free(l->spare);
	free(l->task);
	free(l->stat);
	free(l);
}

int pytorch_create(struct loader **out, const struct loader_config *c, struct err *e)
{
	struct pytorch *l;
	int rc = check_config(c, e);

	if (rc < 0)
		return rc;
	l = try_calloc(1, sizeof(*l), "loader", e);
	if (!l)
		return -ENOMEM;
	l->base.ops = &loader_pytorch;
	l->config = *c;
	sample_reader_settings(&l->settings, c);
	l->workers = (uint32_t)c->workload->reader.read_threads;
	l->factor = l->workers ? prefetch_factor(c->workload) : 0;
	l->capacity = l->factor * l->workers;
	l->in_order = c->workload->reader.in_order;
	l->persistent = c->workload->reader.persistent_workers;
	rc = allocate(l, e);
	if (rc == 0)
		rc = open_readers(l, e);
	if (rc < 0) {
		pytorch_release(l);
		return rc;
	}
	*out = &l->base;
	return 0;
}
