#include "metric/span.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define AHEAD 4
#define NAME_BYTES 32u /* a span */
#define NAMES_LEAST 65536u
#define NAMES_MOST (1u << 30)

int trace_create(struct trace **out, uint32_t first_rank, uint32_t ranks, uint32_t capacity,
		 struct err *e)
{
	struct trace *t = try_calloc(1, sizeof(*t), "a trace", e);

	*out = NULL;
	if (!t)
		return -ENOMEM;
	t->slots = try_calloc(ranks ? ranks : 1, sizeof(*t->slots), "a trace", e);
	if (!t->slots) {
		free(t);
		return -ENOMEM;
	}
	pthread_mutex_init(&t->lock, NULL);
	t->capacity = capacity;
	t->first_rank = first_rank;
	t->ranks = ranks;
	*out = t;
	return 0;
}

uint64_t trace_ring_bytes(uint64_t capacity)
{
	return sizeof(struct span_ring) + capacity * sizeof(struct span);
}

void trace_destroy(struct trace *t)
{
	if (!t)
		return;
	while (t->first) {
		struct span_ring *r = t->first;

		t->first = r->next;
		buffer_free(r->span, r->capacity * sizeof(*r->span));
		buffer_free(r->names, r->names_bytes);
		free(r);
	}
	pthread_mutex_destroy(&t->lock);
	free(t->slots);
	free(t);
}

/* A name for every few spans, as each file is at least opened, written or read, and closed. */
static uint64_t names_of(uint64_t capacity)
{
	uint64_t n = capacity * NAME_BYTES;

	return n < NAMES_LEAST ? NAMES_LEAST : n < NAMES_MOST ? n : NAMES_MOST;
}

uint64_t trace_ring_named_bytes(uint64_t capacity)
{
	return trace_ring_bytes(capacity) + names_of(capacity);
}

static struct span_ring *ring_new(uint32_t capacity, uint64_t names)
{
	struct span_ring *r = try_calloc(1, sizeof(*r), "a trace", NULL);

	if (!r)
		return NULL;
	r->span = buffer_alloc(capacity * sizeof(*r->span), "a trace", NULL);
	if (!r->span) {
		free(r);
		return NULL;
	}
	if (names) {
		r->names = buffer_alloc(names, "a trace", NULL);
		r->names_bytes = (uint32_t)names;
	}
	if (names && !r->names) {
		buffer_free(r->span, capacity * sizeof(*r->span));
		free(r);
		return NULL;
	}
	r->capacity = capacity;
	r->sample = SPAN_NONE;
	r->file = SPAN_NONE;
	r->step = SPAN_NO_STEP;
	return r;
}

struct span_ring *trace_ring(struct trace *t, uint32_t rank, int dataset, uint32_t worker,
			     bool of_rank)
{
	struct span_ring *r;

	if (!t)
		return NULL;
	r = ring_new(t->capacity, dataset == SPAN_NAMED ? names_of(t->capacity) : 0);
	if (r) {
		r->rank = rank;
		r->dataset = (uint8_t)dataset;
		r->worker = worker;
		r->of_rank = of_rank;
	}
	pthread_mutex_lock(&t->lock);
	if (!r) {
		t->refused = true;
	} else {
		if (rank - t->first_rank < t->ranks)
			r->slot = t->slots[rank - t->first_rank]++;
		if (t->last)
			t->last->next = r;
		else
			t->first = r;
		t->last = r;
	}
	pthread_mutex_unlock(&t->lock);
	return r;
}

struct span_ring *trace_ring_named(struct trace *t, uint32_t rank, bool of_rank)
{
	return trace_ring(t, rank, SPAN_NAMED, 0, of_rank);
}

void span_name(struct span_ring *r, const char *name)
{
	size_t n;

	if (!r)
		return;
	n = strlen(name) + 1;
	r->file = SPAN_NONE;
	if (n > r->names_bytes - r->names_used)
		return;
	memcpy(r->names + r->names_used, name, n);
	r->file = r->names_used;
	r->names_used += (uint32_t)n;
}

int trace_check(struct trace *t, struct err *e)
{
	bool refused;

	if (!t)
		return 0;
	pthread_mutex_lock(&t->lock);
	refused = t->refused;
	pthread_mutex_unlock(&t->lock);
	if (refused)
		return err_set(e, -ENOMEM,
			       "no memory for the trace: allocating %llu bytes for a worker "
			       "failed; lower run.trace_events",
			       (unsigned long long)trace_ring_bytes(t->capacity));
	return 0;
}

void trace_count(struct trace *t, uint64_t *kept, uint64_t *dropped)
{
	*kept = 0;
	*dropped = 0;
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	for (struct span_ring *r = t->first; r; r = r->next) {
		*kept += atomic_load_explicit(&r->count, memory_order_acquire);
		*dropped += atomic_load_explicit(&r->dropped, memory_order_relaxed);
	}
	pthread_mutex_unlock(&t->lock);
}

void span_put(struct span_ring *r, const struct span *s)
{
	uint32_t n = atomic_load_explicit(&r->count, memory_order_relaxed);

	if (n == r->capacity) {
		uint64_t lost = atomic_load_explicit(&r->dropped, memory_order_relaxed);

		atomic_store_explicit(&r->dropped, lost + 1, memory_order_relaxed);
		return;
	}
	/* a cache line that will be written soon and is not in the cache */
	__builtin_prefetch(&r->span[n + AHEAD < r->capacity ? n + AHEAD : n], 1);
	r->span[n] = *s;
	atomic_store_explicit(&r->count, n + 1, memory_order_release);
}

static int by_begin(const void *x, const void *y)
{
	const struct span *a = x, *b = y;

	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns ? -1 : 1;
	return b->kind - a->kind;
}

uint32_t span_ring_sort(struct span_ring *r)
{
	uint32_t n = atomic_load_explicit(&r->count, memory_order_acquire);

	qsort(r->span, n, sizeof(*r->span), by_begin);
	return n;
}
