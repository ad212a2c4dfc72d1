#pragma once
/* A document tree: what a YAML file, an override or a merge of several means, each node with the
 * place it came from. Scalars are typed by the YAML 1.1 rules that OmegaConf (and so DLIO) uses. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum node_kind { NODE_NULL, NODE_BOOL, NODE_INT, NODE_FLOAT, NODE_STR, NODE_LIST, NODE_MAP };

/* The file of values that were typed as overrides. */
#define NODE_COMMAND_LINE "<command line>"

/* `file` lives as long as the process: a literal or node_file_name(). line 0: unknown. */
struct node_mark {
	const char *file;
	int line, column;
};

struct node {
	enum node_kind kind;
	struct node_mark mark;
	bool b;
	int64_t i;
	double f;      /* NODE_FLOAT, and the value of a NODE_INT */
	char *s;       /* NODE_STR: the text. Numbers and bools: the text as written, or NULL. */
	bool quoted;   /* NODE_STR written with quotes */
	bool literal;  /* NODE_STR whose "${" is plain text: already interpolated */
	size_t n, cap; /* NODE_LIST, NODE_MAP: children */
	struct node **child;
	char **key; /* NODE_MAP: keys, in file order */
	struct node_mark *key_mark;
};

/* The interned copy of a file name. */
const char *node_file_name(const char *file);
/* "x.yaml: line 14", "command line", or "configuration" when nothing is known. Returns `out`. */
char *node_mark_text(struct node_mark mark, char *out, size_t out_size);
/* ERR_USAGE: "<mark of v>: <key>: <sentence>". */
int node_refuse(const struct node *v, const char *key, struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The value as a sentence quotes it: numbers as written, text in quotes and cut, "a list". */
#define NODE_QUOTE_MAX 96
char *node_quote(const struct node *v, char *out, size_t out_size);

struct node *node_new(enum node_kind kind, struct node_mark mark);
struct node *node_new_str(const char *s, struct node_mark mark);
/* Frees the whole tree. NULL is fine. */
void node_free(struct node *n);
struct node *node_clone(const struct node *n);
/* "a list", "text", ... for sentences. */
const char *node_kind_name(enum node_kind kind);
/* Python's ==: 1 equals 1.0, maps in any order. */
bool node_equal(const struct node *a, const struct node *b);
/* The first place, in the order of `a`, where the trees differ by node_equal: its dotted path is
 * appended to `path`, and *x and *y are what is there, NULL where one tree has nothing. False when
 * they are equal. */
bool node_first_difference(const struct node *a, const struct node *b, struct buf *path,
			   const struct node **x, const struct node **y);
/* Nodes in the tree, and levels: 1 for a scalar. */
size_t node_count(const struct node *n);
int node_depth(const struct node *n);
/* Replaces what `n` holds by what `from` holds, and frees the shell of `from`. */
void node_become(struct node *n, struct node *from);

/* Map access. node_get: child of `key` or NULL. node_set: replaces or appends, takes ownership of
 * v. */
struct node *node_get(const struct node *map, const char *key);
void node_set(struct node *map, const char *key, struct node *v);
bool node_unset(struct node *map, const char *key);
void node_append(struct node *list, struct node *v);
/* Appends to a map without looking for the key: the caller knows that it is new. */
void node_add(struct node *map, const char *key, struct node_mark key_mark, struct node *v);
/* The child called `component`: a key of a map, a position in a list. NULL when there is none. */
struct node *node_step(const struct node *n, const char *component);
/* The node at a dotted path ("reader.batch_size", list items by number), or NULL. */
struct node *node_path(const struct node *root, const char *dotted);

/* Deep merge as OmegaConf does: maps merge key by key, everything else replaces. Copies from
 * `from`. */
void node_merge(struct node *into, const struct node *from);

/* Parses one YAML document (libyaml). Errors are ERR_USAGE: "file: line L, column C: what".
 * Duplicate keys, unknown tags, several documents, nesting deeper than NODE_DEPTH_MAX, more than
 * NODE_COUNT_MAX nodes (aliases expanded) and documents over 4 MiB are errors. An empty document is
 * an empty map; the root may be any kind. Merge keys ("<<") are merged. */
#define NODE_DEPTH_MAX 64
#define NODE_COUNT_MAX 100000
struct node *yaml_parse(const char *text, size_t n, const char *file, struct err *e);
/* The typed node of a plain (unquoted) scalar by YAML 1.1 as OmegaConf reads it. */
struct node *yaml_plain_scalar(const char *text, struct node_mark mark);
/* The same choice without building a node. */
enum node_kind yaml_plain_kind(const char *text);
/* Python's repr of a double ("0.1", "1e-05", "1000.0", "inf"). Returns `out`. */
#define NODE_FLOAT_TEXT_MAX 32
char *node_float_text(double v, char *out, size_t out_size);
/* Block style as OmegaConf.to_yaml writes it: 2-space indentation, "- " at the indentation of the
 * key, quotes only where the plain form would read back as another type. */
void yaml_emit(const struct node *n, struct buf *out);
/* One line in the override value grammar, which override_parse_value reads back:
 * {mean: 0.3, dims: [4, 4]}. */
void node_emit_flow(const struct node *n, struct buf *out);
