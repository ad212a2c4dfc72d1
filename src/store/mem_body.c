/* The bytes of one blob of the memory store. */
#include "store/mem_body.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

#define SMALL_SHIFT 12
#define LARGE_SHIFT 20
/* chunks below 1 MiB: one of 4 KiB, then one for each doubling */
#define SMALL_CHUNKS (LARGE_SHIFT - SMALL_SHIFT + 1)

struct span {
	size_t index;
	uint64_t start, bytes;
};

static struct span span_at(uint64_t offset)
{
	if (offset >> SMALL_SHIFT == 0)
		return (struct span){0, 0, 1u << SMALL_SHIFT};
	if (offset >> LARGE_SHIFT == 0) {
		unsigned top = 63 - (unsigned)__builtin_clzll(offset);

		return (struct span){top - SMALL_SHIFT + 1, 1ull << top, 1ull << top};
	}
	return (struct span){SMALL_CHUNKS + (size_t)(offset >> LARGE_SHIFT) - 1,
			     offset >> LARGE_SHIFT << LARGE_SHIFT, 1ull << LARGE_SHIFT};
}

/* A body, a name of up to MEM_NAME_MAX bytes, a node and its share of the hash table. */
#define BESIDE_BYTES 768

uint64_t mem_body_bound(uint64_t files, uint64_t bytes)
{
	uint64_t each = (1u << SMALL_SHIFT) + BESIDE_BYTES, spare, total;

	/* small chunks double, large ones are whole: the last one of each blob may be nearly empty
	 */
	if (__builtin_mul_overflow(files, (uint64_t)1 << LARGE_SHIFT, &spare) || spare > bytes)
		spare = bytes;
	if (__builtin_mul_overflow(files, each, &total) ||
	    __builtin_add_overflow(total, spare, &total) ||
	    __builtin_add_overflow(total, bytes, &total))
		return UINT64_MAX / 2;
	return total;
}

struct mem_body *mem_body_new(struct mem_space *space)
{
	struct mem_body *b = xcalloc(1, sizeof(*b));

	atomic_init(&b->refs, 1);
	atomic_init(&b->mtime_ns, clock_wall_ns());
	b->space = space;
	pthread_mutex_init(&b->grow, NULL);
	return b;
}

void mem_body_ref(struct mem_body *b)
{
	atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
}

void mem_body_unref(struct mem_body *b)
{
	struct mem_table *t;
	unsigned refs;

	if (!b)
		return;
	/* release what this reference did, acquire what the others did before it is freed */
	refs = atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel);
	assert(refs > 0);
	if (refs > 1)
		return;
	t = atomic_load_explicit(&b->table, memory_order_relaxed);
	/* the newest table names every chunk */
	for (size_t i = 0; t && i < t->cap; i++)
		free(atomic_load_explicit(&t->chunk[i], memory_order_relaxed));
	while (t) {
		struct mem_table *older = t->older;

		free(t);
		t = older;
	}
	atomic_fetch_sub_explicit(&b->space->used, b->reserved, memory_order_relaxed);
	pthread_mutex_destroy(&b->grow);
	free(b);
}

size_t mem_body_read(struct mem_body *b, void *p, size_t n, uint64_t offset)
{
	/* size before table: a size that covers the bytes was stored after their chunks */
	uint64_t size = atomic_load_explicit(&b->size, memory_order_acquire);
	struct mem_table *t = atomic_load_explicit(&b->table, memory_order_acquire);
	char *out = p;
	size_t left;

	if (offset >= size)
		return 0;
	if (n > size - offset)
		n = (size_t)(size - offset);
	for (left = n; left > 0;) {
		struct span s = span_at(offset);
		uint64_t in = offset - s.start;
		size_t part = left < s.bytes - in ? left : (size_t)(s.bytes - in);
		const char *chunk = NULL;

		if (s.index < t->cap)
			chunk = atomic_load_explicit(&t->chunk[s.index], memory_order_acquire);
		if (chunk)
			memcpy(out, chunk + in, part);
		else
			memset(out, 0, part);
		out += part;
		offset += part;
		left -= part;
	}
	return n;
}

static int space_reserve(struct mem_space *s, uint64_t bytes, struct err *e)
{
	/* a sum and no more: nothing is published with it */
	uint64_t used = atomic_load_explicit(&s->used, memory_order_relaxed);

	do {
		if (s->limit && (bytes > s->limit || used > s->limit - bytes))
			return err_set(e, -ENOSPC,
				       "the memory store is full: %llu more bytes with %llu in use "
				       "exceed storage.memory.size = %llu",
				       (unsigned long long)bytes, (unsigned long long)used,
				       (unsigned long long)s->limit);
	} while (!atomic_compare_exchange_weak_explicit(
		&s->used, &used, used + bytes, memory_order_relaxed, memory_order_relaxed));
	return 0;
}

/* Under b->grow: the table with room for chunk `last`. Readers may still hold the older ones, which
 * therefore stay until the body ends; doubling keeps them smaller than the newest together. */
static struct mem_table *table_for(struct mem_body *b, size_t last, struct err *e)
{
	struct mem_table *old = atomic_load_explicit(&b->table, memory_order_relaxed);
	struct mem_table *t;
	size_t cap = old ? old->cap : 0;

	if (last < cap)
		return old;
	cap = last + 1 > 2 * cap ? last + 1 : 2 * cap;
	t = try_calloc(1, sizeof(*t) + cap * sizeof(t->chunk[0]), "a blob of the memory store", e);
	if (!t)
		return NULL;
	t->cap = cap;
	t->older = old;
	for (size_t i = 0; old && i < old->cap; i++)
		atomic_init(&t->chunk[i],
			    atomic_load_explicit(&old->chunk[i], memory_order_relaxed));
	atomic_store_explicit(&b->table, t, memory_order_release);
	return t;
}

static int chunks_for(struct mem_body *b, uint64_t offset, uint64_t end, struct err *e)
{
	struct mem_table *t = table_for(b, span_at(end - 1).index, e);

	assert(offset < end);
	if (!t)
		return -ENOMEM;
	for (size_t i = span_at(offset).index; i <= span_at(end - 1).index; i++) {
		size_t bytes = i == 0             ? 1u << SMALL_SHIFT
			       : i < SMALL_CHUNKS ? (size_t)1 << (SMALL_SHIFT + i - 1)
						  : 1u << LARGE_SHIFT;
		char *chunk;

		if (atomic_load_explicit(&t->chunk[i], memory_order_relaxed))
			continue;
		chunk = try_calloc(1, bytes, "a blob of the memory store", e);
		if (!chunk)
			return -ENOMEM;
		atomic_store_explicit(&t->chunk[i], chunk, memory_order_release);
	}
	return 0;
}

static int reserve_chunks(struct mem_body *b, uint64_t offset, uint64_t end, struct err *e)
{
	uint64_t more = 0;
	int rc = 0;

	pthread_mutex_lock(&b->grow);
	if (end > b->reserved) {
		more = end - b->reserved;
		rc = space_reserve(b->space, more, e);
	}
	if (rc == 0) {
		rc = chunks_for(b, offset, end, e);
		if (rc == 0)
			b->reserved += more;
		else
			atomic_fetch_sub_explicit(&b->space->used, more, memory_order_relaxed);
	}
	pthread_mutex_unlock(&b->grow);
	return rc;
}

int mem_body_write(struct mem_body *b, const void *p, size_t n, uint64_t offset, struct err *e)
{
	uint64_t end, size;
	struct mem_table *t;
	const char *in = p;
	int rc;

	if (n == 0)
		return 0;
	if (__builtin_add_overflow(offset, (uint64_t)n, &end) || end > MEM_BODY_MAX)
		return err_set(e, -EFBIG,
			       "writing %zu bytes at offset %llu: a blob in memory is limited to "
			       "%llu bytes",
			       n, (unsigned long long)offset, MEM_BODY_MAX);
	rc = reserve_chunks(b, offset, end, e);
	if (rc < 0)
		return rc;
	t = atomic_load_explicit(&b->table, memory_order_acquire);
	while (offset < end) {
		struct span s = span_at(offset);
		uint64_t at = offset - s.start;
		uint64_t part = end - offset < s.bytes - at ? end - offset : s.bytes - at;

		memcpy(atomic_load_explicit(&t->chunk[s.index], memory_order_acquire) + at, in,
		       (size_t)part);
		in += part;
		offset += part;
	}
	/* release: who sees the size sees the bytes and chunks below it */
	size = atomic_load_explicit(&b->size, memory_order_relaxed);
	while (size < end &&
	       !atomic_compare_exchange_weak_explicit(&b->size, &size, end, memory_order_acq_rel,
						      memory_order_relaxed))
		;
	atomic_store_explicit(&b->mtime_ns, clock_wall_ns(), memory_order_relaxed);
	return 0;
}
