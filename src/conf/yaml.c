/* YAML text to a document tree, from libyaml's events, with every growth of the input bounded. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/alloc.h"
#include "conf/node.h"

#define TEXT_MAX ((size_t)4 << 20)
#define KEYS_MAX 10000
#define STD_TAG "tag:yaml.org,2002:"

struct anchor {
	char *name;
	struct node *value; /* a clone: merging may take the original apart */
};

struct loader {
	yaml_parser_t parser;
	const char *text;
	size_t text_len;
	const char *file;
	struct anchor *anchor;
	size_t anchors;
	size_t nodes;
	struct err *e;
};

static int yaml_error(struct loader *l, struct node_mark at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int yaml_error(struct loader *l, struct node_mark at, const char *fmt, ...)
{
	va_list ap;

	if (!l->e)
		return ERR_USAGE;
	va_start(ap, fmt);
	err_vset(l->e, ERR_USAGE, fmt, ap);
	va_end(ap);
	return err_wrap(l->e, "%s: line %d, column %d", l->file, at.line, at.column);
}

static struct node_mark mark_of(const struct loader *l, yaml_mark_t m)
{
	return (struct node_mark){l->file, (int)m.line + 1, (int)m.column + 1};
}

static int fail_scan(struct loader *l)
{
	const yaml_parser_t *p = &l->parser;
	const char *problem = p->problem ? p->problem : "the text is not YAML";
	size_t at = p->problem_mark.index;

	if (p->error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	if (p->error == YAML_READER_ERROR)
		return err_set(l->e, ERR_USAGE, "%s: byte %zu: %s: the file must be UTF-8 text",
			       l->file, p->problem_offset, problem);
	if (at < l->text_len && l->text[at] == '\t')
		return yaml_error(l, mark_of(l, p->problem_mark),
				  "a tab cannot indent or separate YAML: use spaces");
	return yaml_error(l, mark_of(l, p->problem_mark), "%s%s%s", problem, p->context ? " " : "",
			  p->context ? p->context : "");
}

static int next_event(struct loader *l, yaml_event_t *event)
{
	return yaml_parser_parse(&l->parser, event) ? 0 : fail_scan(l);
}

static int count_nodes(struct loader *l, size_t n, struct node_mark at)
{
	l->nodes += n;
	if (l->nodes <= NODE_COUNT_MAX)
		return 0;
	return yaml_error(l, at, "the document has more than %d values (aliases expanded)",
			  NODE_COUNT_MAX);
}

static int remember(struct loader *l, const char *name, const struct node *v)
{
	int rc = count_nodes(l, node_count(v), v->mark);

	if (rc != 0)
		return rc;
	for (size_t i = 0; i < l->anchors; i++) {
		if (strcmp(l->anchor[i].name, name) == 0) {
			node_free(l->anchor[i].value);
			l->anchor[i].value = node_clone(v);
			return 0;
		}
	}
	if (l->anchors == KEYS_MAX)
		return yaml_error(l, v->mark, "the document has more than %d anchors", KEYS_MAX);
	l->anchor = xrealloc(l->anchor, (l->anchors + 1) * sizeof(*l->anchor));
	l->anchor[l->anchors++] = (struct anchor){xstrdup(name), node_clone(v)};
	return 0;
}

static int expand_alias(struct loader *l, const yaml_event_t *event, int depth, struct node **out)
{
	struct node_mark at = mark_of(l, event->start_mark);
	const char *name = (const char *)event->data.alias.anchor;
	int rc;

	for (size_t i = 0; i < l->anchors; i++) {
		const struct node *v = l->anchor[i].value;

		if (strcmp(l->anchor[i].name, name) != 0)
			continue;
		if (depth + node_depth(v) - 1 > NODE_DEPTH_MAX)
			return yaml_error(l, at, "nesting is deeper than %d levels",
					  NODE_DEPTH_MAX);
		rc = count_nodes(l, node_count(v), at);
		if (rc == 0)
			*out = node_clone(v);
		return rc;
	}
	return yaml_error(
		l, at,
		"the alias '*%s' refers to an anchor that is undefined or contains the alias",
		name);
}

/* An explicit tag such as !!str overrules the rules for plain text. */
static int apply_tag(struct loader *l, const char *tag, struct node *n)
{
	static const struct {
		const char *tag;
		enum node_kind kind;
	} known[] = {{STD_TAG "str", NODE_STR},     {STD_TAG "int", NODE_INT},
		     {STD_TAG "float", NODE_FLOAT}, {STD_TAG "bool", NODE_BOOL},
		     {STD_TAG "null", NODE_NULL},   {STD_TAG "seq", NODE_LIST},
		     {STD_TAG "map", NODE_MAP}};
	size_t i = 0;

	while (i < sizeof(known) / sizeof(known[0]) && strcmp(tag, known[i].tag) != 0)
		i++;
	if (i == sizeof(known) / sizeof(known[0]))
		return yaml_error(l, n->mark,
				  "the tag '%s' is not supported: write the value without it", tag);
	if (n->kind == known[i].kind)
		return 0;
	if (known[i].kind == NODE_FLOAT && n->kind == NODE_INT) {
		n->kind = NODE_FLOAT;
		return 0;
	}
	return yaml_error(l, n->mark, "the value is %s, but its tag is for %s",
			  node_kind_name(n->kind), node_kind_name(known[i].kind));
}

static int read_scalar(struct loader *l, const yaml_event_t *event, struct node **out)
{
	struct node_mark at = mark_of(l, event->start_mark);
	const char *text = (const char *)event->data.scalar.value;
	const char *tag = (const char *)event->data.scalar.tag;
	bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	int rc = count_nodes(l, 1, at);

	if (rc != 0)
		return rc;
	if (strlen(text) != event->data.scalar.length)
		return yaml_error(l, at, "the text contains a zero byte");
	if (tag && strcmp(tag, "!") != 0 && strcmp(tag, STD_TAG "str") != 0) {
		*out = yaml_plain_scalar(text, at);
		return apply_tag(l, tag, *out);
	}
	if (plain && !tag) {
		*out = yaml_plain_scalar(text, at);
		if ((*out)->kind == NODE_NULL || (*out)->kind == NODE_STR)
			(*out)->quoted = false;
		return 0;
	}
	*out = node_new_str(text, at);
	(*out)->quoted = true;
	return 0;
}

static int read_value(struct loader *l, yaml_event_t *event, int depth, struct node **out);

static int read_list(struct loader *l, int depth, struct node *list)
{
	for (;;) {
		struct node *v = NULL;
		yaml_event_t event;
		int rc = next_event(l, &event);

		if (rc != 0)
			return rc;
		if (event.type == YAML_SEQUENCE_END_EVENT) {
			yaml_event_delete(&event);
			return 0;
		}
		rc = read_value(l, &event, depth + 1, &v);
		yaml_event_delete(&event);
		if (v)
			node_append(list, v);
		if (rc != 0)
			return rc;
	}
}

static int check_key(struct loader *l, const yaml_event_t *event)
{
	struct node_mark at = mark_of(l, event->start_mark);

	if (event->type != YAML_SCALAR_EVENT)
		return yaml_error(l, at, "a key must be plain text, not a list, a map or an alias");
	if (strlen((const char *)event->data.scalar.value) != event->data.scalar.length)
		return yaml_error(l, at, "the key contains a zero byte");
	if (event->data.scalar.length == 0 && event->data.scalar.plain_implicit)
		return yaml_error(l, at, "a key is missing before the colon");
	return 0;
}

static int read_pair(struct loader *l, const yaml_event_t *key_event, int depth, struct node *map)
{
	const char *key = (const char *)key_event->data.scalar.value;
	struct node *v = NULL;
	yaml_event_t event;
	int rc = check_key(l, key_event);

	if (rc == 0 && map->n >= KEYS_MAX)
		rc = yaml_error(l, mark_of(l, key_event->start_mark), "a map has more than %d keys",
				KEYS_MAX);
	if (rc == 0)
		rc = next_event(l, &event);
	if (rc != 0)
		return rc;
	rc = read_value(l, &event, depth + 1, &v);
	yaml_event_delete(&event);
	if (v)
		node_add(map, key, mark_of(l, key_event->start_mark), v);
	return rc;
}

static int by_key(const void *a, const void *b, void *map)
{
	size_t i = *(const size_t *)a, j = *(const size_t *)b;
	const struct node *m = map;
	int c = strcmp(m->key[i], m->key[j]);

	return c ? c : (i > j) - (i < j);
}

/* Sorting keeps a hostile map of thousands of keys from taking quadratic time. */
static int check_duplicates(struct loader *l, struct node *map)
{
	size_t *at = xcalloc(map->n + 1, sizeof(*at));
	int rc = 0;

	for (size_t i = 0; i < map->n; i++)
		at[i] = i;
	qsort_r(at, map->n, sizeof(*at), by_key, map);
	for (size_t i = 1; i < map->n && rc == 0; i++) {
		const char *key = map->key[at[i]];

		if (strcmp(key, map->key[at[i - 1]]) == 0 && strcmp(key, "<<") != 0)
			rc = yaml_error(
				l, map->key_mark[at[i]],
				"duplicate key '%s', first defined on line %d: remove one of them",
				key, map->key_mark[at[i - 1]].line);
	}
	free(at);
	return rc;
}

static void lay_over(struct node *into, const struct node *map)
{
	for (size_t i = 0; i < map->n; i++)
		node_set(into, map->key[i], node_clone(map->child[i]));
}

static int merge_source(struct loader *l, struct node *into, const struct node *from)
{
	int rc = from->kind == NODE_MAP ? count_nodes(l, node_count(from), from->mark) : 0;

	if (rc != 0)
		return rc;
	if (from->kind == NODE_MAP) {
		lay_over(into, from);
		return 0;
	}
	if (from->kind != NODE_LIST)
		return yaml_error(l, from->mark, "'<<' merges a map or a list of maps, not %s",
				  node_kind_name(from->kind));
	/* the first map of the list wins */
	for (size_t i = from->n; i-- > 0;) {
		if (from->child[i]->kind != NODE_MAP)
			return yaml_error(l, from->child[i]->mark, "'<<' merges maps, not %s",
					  node_kind_name(from->child[i]->kind));
		rc = count_nodes(l, node_count(from->child[i]), from->mark);
		if (rc != 0)
			return rc;
		lay_over(into, from->child[i]);
	}
	return 0;
}

/* Merged keys come first and the map's own keys win, as PyYAML does it. */
static int flatten(struct loader *l, struct node *map)
{
	struct node *flat;
	int rc = 0;

	if (!node_get(map, "<<"))
		return 0;
	flat = node_new(NODE_MAP, map->mark);
	for (size_t i = 0; i < map->n && rc == 0; i++) {
		if (strcmp(map->key[i], "<<") == 0)
			rc = merge_source(l, flat, map->child[i]);
	}
	for (size_t i = 0; i < map->n; i++) {
		if (strcmp(map->key[i], "<<") == 0)
			continue;
		node_set(flat, map->key[i], map->child[i]);
		map->child[i] = NULL;
	}
	node_become(map, flat);
	return rc;
}

static int read_map(struct loader *l, int depth, struct node *map)
{
	int rc;

	for (;;) {
		yaml_event_t event;

		rc = next_event(l, &event);
		if (rc != 0)
			return rc;
		if (event.type == YAML_MAPPING_END_EVENT) {
			yaml_event_delete(&event);
			break;
		}
		rc = read_pair(l, &event, depth, map);
		yaml_event_delete(&event);
		if (rc != 0)
			return rc;
	}
	rc = check_duplicates(l, map);
	return rc ? rc : flatten(l, map);
}

static int read_container(struct loader *l, const yaml_event_t *event, int depth, struct node **out)
{
	bool list = event->type == YAML_SEQUENCE_START_EVENT;
	const char *tag = (const char *)(list ? event->data.sequence_start.tag
					      : event->data.mapping_start.tag);
	struct node_mark at = mark_of(l, event->start_mark);
	int rc = count_nodes(l, 1, at);

	if (rc == 0 && depth > NODE_DEPTH_MAX)
		rc = yaml_error(l, at, "nesting is deeper than %d levels", NODE_DEPTH_MAX);
	if (rc != 0)
		return rc;
	*out = node_new(list ? NODE_LIST : NODE_MAP, at);
	if (tag && strcmp(tag, "!") != 0)
		rc = apply_tag(l, tag, *out);
	if (rc != 0)
		return rc;
	return list ? read_list(l, depth, *out) : read_map(l, depth, *out);
}

/* On failure *out may hold a part: the caller keeps it in the tree, which is freed as a whole. */
static int read_value(struct loader *l, yaml_event_t *event, int depth, struct node **out)
{
	const yaml_char_t *anchor = NULL;
	int rc;

	switch (event->type) {
	case YAML_ALIAS_EVENT:
		return expand_alias(l, event, depth, out);
	case YAML_SCALAR_EVENT:
		anchor = event->data.scalar.anchor;
		rc = read_scalar(l, event, out);
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = event->data.sequence_start.anchor;
		rc = read_container(l, event, depth, out);
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = event->data.mapping_start.anchor;
		rc = read_container(l, event, depth, out);
		break;
	default:
		return yaml_error(l, mark_of(l, event->start_mark), "a value is missing");
	}
	return rc == 0 && anchor ? remember(l, (const char *)anchor, *out) : rc;
}

/* stream start, document start, value, document end, stream end */
static int read_stream(struct loader *l, struct node **out)
{
	bool seen = false;

	for (;;) {
		yaml_event_t event;
		int rc = next_event(l, &event);
		yaml_event_type_t type;

		if (rc != 0)
			return rc;
		type = event.type;
		if (type == YAML_DOCUMENT_START_EVENT && seen) {
			rc = yaml_error(
				l, mark_of(l, event.start_mark),
				"a second document starts here, but a file can have only one");
		} else if (type != YAML_STREAM_START_EVENT && type != YAML_DOCUMENT_START_EVENT &&
			   type != YAML_DOCUMENT_END_EVENT && type != YAML_STREAM_END_EVENT) {
			rc = read_value(l, &event, 1, out);
			seen = true;
		}
		yaml_event_delete(&event);
		if (rc != 0 || type == YAML_STREAM_END_EVENT)
			return rc;
	}
}

/* *without: it ended for want of memory. */
static struct node *parse(const char *text, size_t n, const char *file, bool *without,
			  struct err *e)
{
	struct loader l = {.text = text, .text_len = n, .file = node_file_name(file), .e = e};
	struct node *root = NULL;
	int rc;

	if (n > TEXT_MAX) {
		err_set(e, ERR_USAGE, "%s: %zu bytes are more than the %zu allowed", file, n,
			TEXT_MAX);
		return NULL;
	}
	*without = !yaml_parser_initialize(&l.parser);
	if (*without)
		return NULL;
	yaml_parser_set_input_string(&l.parser, (const unsigned char *)text, n);
	rc = read_stream(&l, &root);
	*without = l.parser.error == YAML_MEMORY_ERROR;
	yaml_parser_delete(&l.parser);
	for (size_t i = 0; i < l.anchors; i++) {
		free(l.anchor[i].name);
		node_free(l.anchor[i].value);
	}
	free(l.anchor);
	if (rc != 0) {
		node_free(root);
		return NULL;
	}
	/* nothing, or nothing but comments */
	if (!root || (root->kind == NODE_NULL && !root->s)) {
		node_free(root);
		root = node_new(NODE_MAP, (struct node_mark){l.file, 1, 1});
	}
	return root;
}

struct node *yaml_parse(const char *text, size_t n, const char *file, struct err *e)
{
	struct node *root;
	bool without = false;

	do
		root = parse(text, n, file, &without, e);
	while (without && alloc_spend());
	if (without)
		out_of_memory_for("%s", file);
	return root;
}
