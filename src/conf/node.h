#pragma once
/* A document tree: what a YAML file, an override or a merge of several means, each node with the place
 * it came from. Scalars are typed by the YAML 1.1 rules that OmegaConf (and so DLIO) uses. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum node_kind { NODE_NULL, NODE_BOOL, NODE_INT, NODE_FLOAT, NODE_STR, NODE_LIST, NODE_MAP };

/* `file` is interned for the life of the process ("<command line>" for overrides). line 0: unknown. */
struct node_mark {
	const char *file;
	int line, column;
};

struct node {
	enum node_kind kind;
	struct node_mark mark;
	bool b;
	int64_t i;
	double f;
	char *s;             /* NODE_STR: the text. Numbers and bools: the text as written. */
	bool quoted;         /* NODE_STR written with quotes */
	size_t n, cap;       /* NODE_LIST, NODE_MAP: children */
	struct node **child;
	char **key;          /* NODE_MAP: keys, in file order */
	struct node_mark *key_mark;
};

struct node *node_new(enum node_kind kind, struct node_mark mark);
struct node *node_new_str(const char *s, struct node_mark mark);
/* Frees the whole tree. NULL is fine. */
void node_free(struct node *n);
struct node *node_clone(const struct node *n);
const char *node_kind_name(enum node_kind kind);

/* Map access. node_get: child of `key` or NULL. node_set: replaces or appends, takes ownership of v. */
struct node *node_get(const struct node *map, const char *key);
void node_set(struct node *map, const char *key, struct node *v);
bool node_unset(struct node *map, const char *key);
void node_append(struct node *list, struct node *v);
/* The node at a dotted path ("reader.batch_size", list items by number), or NULL. */
struct node *node_path(const struct node *root, const char *dotted);

/* Deep merge as OmegaConf does: maps merge key by key, everything else replaces. Copies from `from`. */
void node_merge(struct node *into, const struct node *from);

/* Parses one YAML document (libyaml). Errors: "file: line L, column C: what". Duplicate keys,
 * anchors cycles, nesting deeper than 64 and documents over 4 MiB are errors. An empty document is an
 * empty map. */
struct node *yaml_parse(const char *text, size_t n, const char *file, struct err *e);
struct node *yaml_load(const char *path, struct err *e);
/* The typed node of a plain (unquoted) scalar by YAML 1.1 as OmegaConf reads it. */
struct node *yaml_plain_scalar(const char *text, struct node_mark mark);
/* Block style as OmegaConf.to_yaml writes it: 2-space indentation, "- " at the indentation of the key,
 * quotes only where the plain form would read back as another type. */
void yaml_emit(const struct node *n, struct buf *out);
