/* The bytes of one blob of the memory store, and the names that lead to blobs. */
#include "store/mem_body.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/map.h"

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

/* Names and folders of the memory store: nodes in one hash table keyed by folder and name. */

/* The last name of a path and where it stands. */
struct place {
	struct mem_node *dir;  /* NULL when the path means the root */
	struct mem_node *node; /* NULL when the folder has no such entry */
	const char *name;
	size_t len;
};

static uint64_t hash_of(const struct mem_node *dir, const char *name, size_t len)
{
	uint64_t h = fnv1a(FNV_START, name, len);

	h ^= (uint64_t)(uintptr_t)dir * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

void mem_tree_init(struct mem_tree *t)
{
	memset(t, 0, sizeof(*t));
	t->buckets = 64;
	t->bucket = xcalloc(t->buckets, sizeof(*t->bucket));
	t->root.mtime_ns = clock_wall_ns();
}

static void node_release(struct mem_node *n)
{
	mem_body_unref(n->body);
	free(n->name);
	free(n);
}

void mem_tree_release(struct mem_tree *t)
{
	for (size_t i = 0; i < t->buckets; i++) {
		struct mem_node *n = t->bucket[i];

		while (n) {
			struct mem_node *next = n->hash_next;

			node_release(n);
			n = next;
		}
	}
	free(t->bucket);
}

static struct mem_node *find_child(const struct mem_tree *t, const struct mem_node *dir,
				   const char *name, size_t len)
{
	uint64_t h = hash_of(dir, name, len);
	struct mem_node *n = t->bucket[h & (t->buckets - 1)];

	while (n && !(n->hash == h && n->dir == dir && strncmp(n->name, name, len) == 0 &&
		      n->name[len] == '\0'))
		n = n->hash_next;
	return n;
}

static void rehash(struct mem_tree *t)
{
	size_t buckets = t->buckets * 2;
	struct mem_node **bucket = xcalloc(buckets, sizeof(*bucket));

	for (size_t i = 0; i < t->buckets; i++) {
		struct mem_node *n = t->bucket[i];

		while (n) {
			struct mem_node *next = n->hash_next;

			n->hash_next = bucket[n->hash & (buckets - 1)];
			bucket[n->hash & (buckets - 1)] = n;
			n = next;
		}
	}
	free(t->bucket);
	t->bucket = bucket;
	t->buckets = buckets;
}

/* Takes over `name`. */
static void attach_node(struct mem_tree *t, struct mem_node *n, struct mem_node *dir, char *name)
{
	/* the hash is cut by a mask */
	assert((t->buckets & (t->buckets - 1)) == 0);
	if (t->count == t->buckets)
		rehash(t);
	t->count++;
	n->dir = dir;
	n->name = name;
	n->hash = hash_of(dir, name, strlen(name));
	n->hash_next = t->bucket[n->hash & (t->buckets - 1)];
	t->bucket[n->hash & (t->buckets - 1)] = n;
	if (dir->first) {
		n->next = dir->first;
		n->prev = dir->first->prev;
		n->prev->next = n;
		n->next->prev = n;
	} else {
		n->next = n->prev = n;
		dir->first = n;
	}
	dir->mtime_ns = clock_wall_ns();
}

static void detach_node(struct mem_tree *t, struct mem_node *n)
{
	struct mem_node **link = &t->bucket[n->hash & (t->buckets - 1)];

	assert(n->dir && t->count > 0);
	while (*link != n)
		link = &(*link)->hash_next;
	*link = n->hash_next;
	t->count--;
	n->prev->next = n->next;
	n->next->prev = n->prev;
	if (n->dir->first == n)
		n->dir->first = n->next == n ? NULL : n->next;
	n->dir->mtime_ns = clock_wall_ns();
	n->dir = NULL;
}

static struct mem_node *new_folder(struct mem_tree *t, struct mem_node *dir, const char *name,
				   size_t len)
{
	struct mem_node *n = xcalloc(1, sizeof(*n));

	n->mtime_ns = clock_wall_ns();
	attach_node(t, n, dir, xstrndup(name, len));
	return n;
}

/* Walks to the last name of `path`. With `make`, folders on the way that are missing, the last one
 * included, are created. */
static int walk_path(struct mem_tree *t, const char *path, bool make, struct place *out)
{
	struct mem_node *at = &t->root;

	if (!*path)
		return -ENOENT;
	*out = (struct place){.node = at};
	for (;;) {
		size_t len;

		path += strspn(path, "/");
		len = strcspn(path, "/");
		if (len == 0)
			return 0;
		if (!at)
			return -ENOENT;
		if (at->body)
			return -ENOTDIR;
		if (len > MEM_NAME_MAX)
			return -ENAMETOOLONG;
		if (len == 1 && path[0] == '.') {
			path += len;
			continue;
		}
		if (len == 2 && path[0] == '.' && path[1] == '.') {
			at = at->dir ? at->dir : at;
			*out = (struct place){.dir = at->dir, .node = at, .name = at->name};
			out->len = at->name ? strlen(at->name) : 0;
			path += len;
			continue;
		}
		*out = (struct place){at, find_child(t, at, path, len), path, len};
		if (!out->node && make)
			out->node = new_folder(t, at, path, len);
		at = out->node;
		path += len;
	}
}

int mem_tree_find(const struct mem_tree *t, const char *path, struct mem_node **out)
{
	struct place p;
	/* walk only writes when told to make folders */
	int rc = walk_path((struct mem_tree *)(uintptr_t)t, path, false, &p);

	if (rc == 0 && !p.node)
		rc = -ENOENT;
	if (rc == 0)
		*out = p.node;
	return rc;
}

int mem_tree_put(struct mem_tree *t, const char *path, struct mem_body *body)
{
	struct place p;
	int rc = walk_path(t, path, false, &p);

	if (rc < 0)
		return rc;
	if (p.node && !p.node->body)
		return -EISDIR;
	if (p.node) {
		mem_body_unref(p.node->body);
		p.node->body = body;
		return 0;
	}
	p.node = xcalloc(1, sizeof(*p.node));
	p.node->body = body;
	attach_node(t, p.node, p.dir, xstrndup(p.name, p.len));
	return 0;
}

int mem_tree_mkdirs(struct mem_tree *t, const char *path)
{
	struct place p;
	int rc = walk_path(t, path, true, &p);

	if (rc == 0 && p.node->body)
		rc = -ENOTDIR;
	return rc;
}

int mem_tree_remove(struct mem_tree *t, const char *path)
{
	struct place p;
	int rc = walk_path(t, path, false, &p);

	if (rc < 0)
		return rc;
	if (!p.node)
		return -ENOENT;
	if (!p.dir)
		return -EBUSY;
	if (p.node->first)
		return -ENOTEMPTY;
	detach_node(t, p.node);
	node_release(p.node);
	return 0;
}

static int may_replace(const struct mem_node *from, const struct mem_node *to)
{
	if (from->body)
		return to->body ? 0 : -EISDIR;
	if (to->body)
		return -ENOTDIR;
	return to->first ? -ENOTEMPTY : 0;
}

int mem_tree_rename(struct mem_tree *t, const char *from, const char *to)
{
	struct place a, b;
	char *name;
	int rc = walk_path(t, from, false, &a);

	if (rc == 0 && !a.node)
		rc = -ENOENT;
	if (rc == 0)
		rc = walk_path(t, to, false, &b);
	if (rc < 0)
		return rc;
	if (!a.dir || !b.dir)
		return -EBUSY;
	if (a.node == b.node)
		return 0;
	for (const struct mem_node *up = b.dir; up; up = up->dir) {
		if (up == a.node)
			return -EINVAL;
	}
	if (b.node) {
		rc = may_replace(a.node, b.node);
		if (rc < 0)
			return rc;
		detach_node(t, b.node);
	}
	/* b.name may point into the node's old name */
	name = xstrndup(b.name, b.len);
	detach_node(t, a.node);
	free(a.node->name);
	attach_node(t, a.node, b.dir, name);
	if (b.node)
		node_release(b.node);
	return 0;
}
