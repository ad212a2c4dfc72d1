/* Overrides onto a document tree, with Hydra's rules about what has to exist. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "conf/override.h"

static int apply_error(const struct override *o, struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int apply_error(const struct override *o, struct err *e, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return ERR_USAGE;
	va_start(ap, fmt);
	err_vset(e, ERR_USAGE, fmt, ap);
	va_end(ap);
	return err_wrap(e, "%s: '%.120s%s'", override_place(), o->text,
			strlen(o->text) > 120 ? "..." : "");
}

static bool is_container(const struct node *n)
{
	return n && (n->kind == NODE_MAP || n->kind == NODE_LIST);
}

/* What follows the operator, as typed. */
static const char *text_without_operator(const struct override *o)
{
	return o->text + strspn(o->text, "+~");
}

/* The key that is known to be meant, else the nearest one beside it; or NULL. */
static const char *hint_of(const struct override *o, const struct node *map, const char *key)
{
	if (o->meant || !map || map->kind != NODE_MAP)
		return o->meant;
	return str_nearest(key, (const char *const *)map->key, map->n);
}

/* Puts the hint first. Returns the error's code. */
static int hint_first(const struct override *o, const struct node *map, const char *key,
		      struct err *e)
{
	const char *near = hint_of(o, map, key);
	struct err rest;

	if (!e || !near)
		return ERR_USAGE;
	rest = *e;
	return err_set(e, rest.code, "did you mean '%.150s'? %.850s", near, rest.text);
}

/* The key as it is known to whoever typed it. */
static const char *bare_key(const struct override *o)
{
	return str_starts(o->key, "workload.") ? o->key + strlen("workload.") : o->key;
}

static int absent_key(const struct override *o, const struct node *parent, const char *part,
		      struct err *e)
{
	if (parent && !is_container(parent))
		return apply_error(
			o, e,
			"'%s' is not in the configuration, and the parent of '%s' is %s: to "
			"replace it by a map, write ++%.200s",
			o->key, part, node_kind_name(parent->kind), text_without_operator(o));
	if (hint_of(o, parent, part))
		apply_error(o, e, "there is no key '%s' (++%.200s would add it)", bare_key(o),
			    text_without_operator(o));
	else
		apply_error(o, e, "'%s' is not in the configuration: to add it, write ++%.200s",
			    bare_key(o), text_without_operator(o));
	return hint_first(o, parent, part, e);
}

static void put_value(struct node *parent, const char *part, const struct node *value)
{
	struct node *old = node_step(parent, part);

	if (old && old->kind == NODE_MAP && value->kind == NODE_MAP)
		node_merge(old, value);
	else if (parent->kind == NODE_MAP)
		node_set(parent, part, node_clone(value));
	else if (old)
		node_become(old, node_clone(value));
}

/* A map merges into a map, and without ++ it may only change what is there. */
static const char *unknown_key(const struct node *into, const struct node *from)
{
	if (into->kind != NODE_MAP || from->kind != NODE_MAP)
		return NULL;
	for (size_t i = 0; i < from->n; i++) {
		const struct node *old = node_get(into, from->key[i]);
		const char *bad = old ? unknown_key(old, from->child[i]) : from->key[i];

		if (bad)
			return bad;
	}
	return NULL;
}

static int set_existing(struct node *parent, const char *part, const struct override *o,
			struct err *e)
{
	struct node *old = node_step(parent, part);
	const char *bad;

	if (!old)
		return absent_key(o, parent, part, e);
	bad = unknown_key(old, o->value);
	if (bad)
		return apply_error(o, e, "'%s' has no key '%s': to add it, write ++%.200s", o->key,
				   bad, text_without_operator(o));
	put_value(parent, part, o->value);
	return 0;
}

static int add_new(struct node *parent, const char *part, const struct override *o, struct err *e)
{
	const struct node *old = node_step(parent, part);

	if (old && old->kind != NODE_NULL && !is_container(o->value))
		return apply_error(o, e,
				   "'%s' already exists: to change it, write ++%.200s, or %.200s "
				   "without the plus",
				   o->key, text_without_operator(o), text_without_operator(o));
	if (!old && parent->kind == NODE_LIST)
		return apply_error(o, e, "'%s' is not a position in the list, which has %zu items",
				   part, parent->n);
	put_value(parent, part, o->value);
	return 0;
}

static int remove_key(struct node *parent, const char *part, const struct override *o,
		      struct err *e)
{
	const struct node *old = node_step(parent, part);
	char is[NODE_QUOTE_MAX], want[NODE_QUOTE_MAX];

	if (!old) {
		apply_error(o, e, "'%s' cannot be deleted: it is not in the configuration", o->key);
		return hint_first(o, parent, part, e);
	}
	if (o->value && !node_equal(old, o->value))
		return apply_error(o, e, "'%s' was not deleted: its value is %s, not %s", o->key,
				   node_quote(old, is, sizeof(is)),
				   node_quote(o->value, want, sizeof(want)));
	if (parent->kind == NODE_LIST)
		return apply_error(
			o, e, "items of a list cannot be deleted one by one: set the whole list");
	node_unset(parent, part);
	return 0;
}

/* The container under `parent`; with `create`, made where it is missing or a scalar stands. */
static int descend(struct node **parent, const char *part, const struct override *o, bool create,
		   struct err *e)
{
	struct node *next = node_step(*parent, part);

	if (!is_container(next) && create) {
		struct node *map = node_new(NODE_MAP, o->value->mark);

		if (!next && (*parent)->kind == NODE_LIST) {
			node_free(map);
			return apply_error(
				o, e, "'%s' is not a position in the list, which has %zu items",
				part, (*parent)->n);
		}
		if (next)
			node_become(next, map);
		else
			node_set(*parent, part, map);
		next = node_step(*parent, part);
	}
	if (!next)
		return o->op == OVERRIDE_DELETE ? remove_key(*parent, part, o, e)
						: absent_key(o, *parent, part, e);
	*parent = next;
	return 0;
}

int override_apply(struct node *root, const struct override *o, struct err *e)
{
	AUTO_FREE char *copy = xstrdup(o->key);
	char *rest = copy, *part = strsep(&rest, ".");
	bool create = o->op == OVERRIDE_FORCE || o->op == OVERRIDE_ADD;

	if (strpbrk(o->key, "/@"))
		return apply_error(
			o, e,
			"'%s' names a configuration group, and the only group is workload "
			"(workload=NAME)",
			o->key);
	if (!o->value && o->op != OVERRIDE_DELETE)
		return apply_error(o, e, "a value is missing");
	for (; rest; part = strsep(&rest, ".")) {
		int rc = descend(&root, part, o, create, e);

		if (rc != 0)
			return rc;
	}
	switch (o->op) {
	case OVERRIDE_SET:
		return set_existing(root, part, o, e);
	case OVERRIDE_DELETE:
		return remove_key(root, part, o, e);
	case OVERRIDE_ADD:
		return add_new(root, part, o, e);
	case OVERRIDE_FORCE:
		if (root->kind == NODE_LIST && !node_step(root, part))
			return apply_error(
				o, e, "'%s' is not a position in the list, which has %zu items",
				part, root->n);
		put_value(root, part, o->value);
		return 0;
	}
	return 0;
}
