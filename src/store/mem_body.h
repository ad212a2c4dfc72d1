#pragma once
/* The bytes of one blob in memory: chunks that never move, so that growing copies nothing and
 * reading takes no lock. Small blobs use small chunks (4 KiB, doubling up to 1 MiB). */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Largest blob: its table of chunks stays small. */
#define MEM_BODY_MAX (1ull << 44)

/* What all blobs of a store may hold together: the sum of their sizes. limit 0: no limit. */
struct mem_space {
	_Atomic uint64_t used;
	uint64_t limit;
};

struct mem_table {
	struct mem_table *older;
	size_t cap;
	_Atomic(char *) chunk[];
};

struct mem_body {
	_Atomic unsigned refs;
	_Atomic uint64_t size;
	_Atomic int64_t mtime_ns;
	_Atomic(struct mem_table *) table;
	struct mem_space *space;
	pthread_mutex_t grow; /* chunks and `reserved` change under it */
	uint64_t reserved;    /* how far writers have been let in: what counts against the space */
};

/* Most memory that `files` blobs with `bytes` in all take, with what a store has beside each. */
uint64_t mem_body_bound(uint64_t files, uint64_t bytes);

/* An empty body with one reference. */
struct mem_body *mem_body_new(struct mem_space *space);
void mem_body_ref(struct mem_body *b);
/* Frees the body with its last reference. NULL is fine. */
void mem_body_unref(struct mem_body *b);
/* Bytes read: fewer than n only at the end. Holes are zeros. */
size_t mem_body_read(struct mem_body *b, void *p, size_t n, uint64_t offset);
/* All n bytes, or nothing and -ENOSPC, -EFBIG or -ENOMEM. */
int mem_body_write(struct mem_body *b, const void *p, size_t n, uint64_t offset, struct err *e);

/* Names and folders of the memory store. Paths are cut at '/'; "/a", "a" and "./a" are the same
 * name. None of these functions lock: the store does. Codes are negative errno values. */

#define MEM_NAME_MAX 255

struct mem_node {
	struct mem_node *dir; /* NULL for the root and for removed nodes */
	struct mem_node *hash_next;
	struct mem_node *prev, *next; /* ring of the folder's entries, oldest first */
	struct mem_node *first;       /* folder: its oldest entry */
	struct mem_body *body;        /* NULL for a folder */
	int64_t mtime_ns;             /* folder */
	uint64_t hash;
	char *name;
};

struct mem_tree {
	struct mem_node root;
	struct mem_node **bucket;
	size_t buckets; /* a power of two */
	size_t count;
};

void mem_tree_init(struct mem_tree *t);
void mem_tree_release(struct mem_tree *t);
/* The node of a path in *out. */
int mem_tree_find(const struct mem_tree *t, const char *path, struct mem_node **out);
/* Puts `body` (taken over on success) at a path whose folder exists; an existing file's body is
 * released and replaced. */
int mem_tree_put(struct mem_tree *t, const char *path, struct mem_body *body);
int mem_tree_mkdirs(struct mem_tree *t, const char *path);
/* A file or an empty folder. */
int mem_tree_remove(struct mem_tree *t, const char *path);
int mem_tree_rename(struct mem_tree *t, const char *from, const char *to);
