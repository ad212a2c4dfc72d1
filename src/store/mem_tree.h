#pragma once
/* Names and folders of the memory store. Paths are cut at '/'; "/a", "a" and "./a" are the same
 * name. None of these functions lock: the store does. Codes are negative errno values. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/mem_body.h"

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
