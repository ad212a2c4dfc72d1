/* Names and folders of the memory store: nodes in one hash table keyed by folder and name. */
#include "store/mem_tree.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

/* The last name of a path and where it stands. */
struct place {
	struct mem_node *dir;  /* NULL when the path means the root */
	struct mem_node *node; /* NULL when the folder has no such entry */
	const char *name;
	size_t len;
};

static uint64_t hash_of(const struct mem_node *dir, const char *name, size_t len)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)name[i]) * 0x100000001b3u;
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
