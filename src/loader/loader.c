/* Finds loaders by name; how a worker's time divides. */
#include "loader/loader.h"

#include <assert.h>
#include <stdalign.h>
#include <string.h>

#include "base/run_delay.h"

const struct loader_ops *loader_find(const char *name)
{
	for (size_t i = 0; loader_table[i]; i++)
		if (strcmp(loader_table[i]->is.name, name) == 0)
			return loader_table[i];
	return NULL;
}

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

size_t loader_stack_bytes(const struct workload *w)
{
	return w->run.stack_bytes > 0 ? (size_t)w->run.stack_bytes : STACK_DEFAULT;
}

/* Of its reader, or of the thread that reads ahead of it and may count just now. */
static int64_t busy_ns(const struct io_stat *io, enum io_kind kind)
{
	return __atomic_load_n(&io->kind[kind].busy_ns, __ATOMIC_RELAXED);
}

static void work_of(const struct worker_stat *s, struct batch_work *w)
{
	int64_t open = s->io ? busy_ns(s->io, IO_OPEN) : 0;
	int64_t meta = s->io ? busy_ns(s->io, IO_META) : 0;
	int64_t data = s->io ? busy_ns(s->io, IO_DATA) : s->read_ns;

	*w = (struct batch_work){.ns = {
					 [WORK_OPEN] = open,
					 [WORK_META] = meta,
					 [WORK_DATA] = data,
					 [WORK_DECODE] = s->read_ns - open - meta - data,
					 [WORK_PREPROCESS] = s->preprocess_ns,
					 [WORK_TRANSPORT] = s->transport_ns,
					 [WORK_FRAMEWORK] = s->framework_ns,
					 [WORK_NO_CPU] = s->no_cpu_ns,
				 }};
}

void worker_read_so_far(const struct loader *l, uint64_t *samples, uint64_t *bytes)
{
	uint32_t workers;
	const struct worker_stat *s = l->ops->stats(l, &workers);

	for (uint32_t i = 0; i < workers; i++) {
		uint64_t payload = __atomic_load_n(&s[i].payload_bytes, __ATOMIC_RELAXED);
		uint64_t returned = s[i].io ? io_stat_read_so_far(s[i].io) : 0;

		*samples += __atomic_load_n(&s[i].samples, __ATOMIC_RELAXED);
		*bytes += returned ? returned : payload;
	}
}

/* The writer's stores are plain, and aligned words are written at once. Out of sight of the thread
 * sanitizer, to which any such look is a race. */
__attribute__((no_sanitize("thread"))) static void copy_words(void *out, const void *p,
							      size_t bytes)
{
	volatile const uint64_t *from = p;
	uint64_t *to = out;

	for (size_t i = 0; i < bytes / sizeof(*to); i++)
		to[i] = from[i];
}

void worker_stat_glance(struct worker_stat *out, const struct worker_stat *s)
{
	struct io_stat *io = out->io;

	static_assert(sizeof(*s) % sizeof(uint64_t) == 0 && sizeof(*io) % sizeof(uint64_t) == 0 &&
			      alignof(struct worker_stat) >= sizeof(uint64_t) &&
			      alignof(struct io_stat) >= sizeof(uint64_t),
		      "are copied in words");
	copy_words(out, s, sizeof(*s));
	if (io && s->io)
		copy_words(io, s->io, sizeof(*io));
	out->io = io;
}

void worker_note_delay(struct worker_stat *s, int64_t took_ns)
{
	int64_t waited = run_delay_take(took_ns);

	s->no_cpu_ns += waited < took_ns ? waited : took_ns;
}

void worker_work_begin(const struct worker_stat *s, struct batch_work *w)
{
	struct batch_work now;

	work_of(s, &now);
	for (int k = 0; k < WORK_KINDS; k++)
		w->ns[k] -= now.ns[k];
}

void worker_work_end(const struct worker_stat *s, struct batch_work *w)
{
	struct batch_work now;

	work_of(s, &now);
	batch_work_merge(w, &now);
}

void batch_work_merge(struct batch_work *into, const struct batch_work *from)
{
	for (int k = 0; k < WORK_KINDS; k++)
		into->ns[k] += from->ns[k];
}

#define THREADS_MAX 65536

int loader_check_batch(const struct loader_config *c, struct err *e)
{
	if (c->batch_size > 0 && c->batch_size <= UINT32_MAX)
		return 0;
	return err_set(e, ERR_USAGE, "reader.batch_size is %llu; it must be between 1 and %u",
		       (unsigned long long)c->batch_size, UINT32_MAX);
}

int loader_check_threads(const struct loader_config *c, struct err *e)
{
	int64_t threads = c->workload->reader.read_threads;

	if (threads >= 0 && threads <= THREADS_MAX)
		return 0;
	return err_set(e, ERR_USAGE, "reader.read_threads is %lld; it must be between 0 and %d",
		       (long long)threads, THREADS_MAX);
}
