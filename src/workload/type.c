/* From the composed document to the typed fields: every key of it is matched with a row. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "conf/opt.h"
#include "workload/key.h"
#include "workload/validate.h"

struct typing {
	struct workload *w;
	const struct node *sections; /* the map below "workload" */
	bool strict;
	struct err *e;
};

/* YAML 1.1 reads an unquoted off as false; a choice of that meaning is what its writer wanted. */
static struct node *as_choice(const struct opt *row, const struct node *v)
{
	if (row->type != OPT_ENUM || v->kind != NODE_BOOL || v->b)
		return NULL;
	for (const char *const *c = row->choices; *c; c++)
		if (strcmp(*c, "off") == 0 || strcmp(*c, "none") == 0)
			return node_new_str(*c, v->mark);
	return NULL;
}

/* Whether null is a value; elsewhere it keeps the default. */
static bool takes_null(const struct opt *row)
{
	switch (row->type) {
	case OPT_STR:
		return !row->def;
	case OPT_MAP:
	case OPT_TIME:
	case OPT_I64_LIST:
	case OPT_STR_LIST:
		return true;
	default:
		return false;
	}
}

static int set_row(struct typing *t, const struct opt *row, const struct node *v)
{
	struct opt_origin *origin = &t->w->origin[row - workload_rows];
	struct node *choice = as_choice(row, v);
	int rc = 0;

	if (v->kind != NODE_NULL || takes_null(row))
		rc = opt_set_node(row, choice ? choice : v, t->w, t->e);
	node_free(choice);
	if (rc < 0)
		return rc;
	origin->mark = v->mark;
	origin->source = v->mark.file && strcmp(v->mark.file, NODE_COMMAND_LINE) == 0
				 ? ORIGIN_OVERRIDE
				 : ORIGIN_FILE;
	return 0;
}

static int set_alias(struct typing *t, const struct opt *row, const char *key, const struct node *v)
{
	char where[256];

	workload_place(&v->mark, where, sizeof(where));
	if (node_path(t->sections, row->key)) {
		workload_warn(t->w,
			      "%s%s is ignored because %s, the current name of the key, "
			      "is set too",
			      where, key, row->key);
		return 0;
	}
	workload_warn(t->w, "%s%s is read as %s", where, key, row->key);
	return set_row(t, row, v);
}

static int unknown_key(struct typing *t, const char *key, const struct node_mark *mark)
{
	const char *near = opt_nearest_key(workload_rows, workload_row_count, key);
	char where[256];

	workload_place(mark, where, sizeof(where));
	if (t->strict)
		return err_set(t->e, ERR_USAGE, "%s%s is not a key%s%s%s", where, key,
			       near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	workload_warn(t->w, "%s%s is not a key and has no effect%s%s%s", where, key,
		      near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	return 0;
}

static int type_map(struct typing *t, const struct node *map, const char *prefix);

static int type_key(struct typing *t, const char *key, const struct node *v,
		    const struct node_mark *mark)
{
	const struct opt *row = workload_key_row(key);
	char where[256];

	/* OmegaConf's mark of a value still to be given: the key counts as absent. */
	if (v->kind == NODE_STR && !v->quoted && strcmp(v->s, "???") == 0)
		return 0;
	if (row)
		return strcmp(row->key, key) == 0 ? set_row(t, row, v) : set_alias(t, row, key, v);
	if (workload_section_known(key)) {
		if (v->kind == NODE_MAP)
			return type_map(t, v, key);
		if (v->kind == NODE_NULL)
			return 0;
		return err_set(t->e, ERR_USAGE, "%s%s is a section, a map of keys, not %s",
			       workload_place(mark, where, sizeof(where)), key,
			       node_kind_name(v->kind));
	}
	if (workload_store_section(key) && v->kind == NODE_MAP)
		return 0;
	return unknown_key(t, key, mark);
}

static bool replaces_reader(const struct node *sections)
{
	const struct node *data_reader = node_get(sections, "data_reader");

	return data_reader && data_reader->kind == NODE_MAP;
}

static int type_map(struct typing *t, const struct node *map, const char *prefix)
{
	for (size_t i = 0; i < map->n; i++) {
		AUTO_FREE char *key =
			xasprintf("%s%s%s", prefix ? prefix : "", prefix ? "." : "", map->key[i]);
		const struct node_mark *mark = &map->key_mark[i];
		char where[256];
		int rc;

		if (!prefix && strcmp(key, "reader") == 0 && replaces_reader(map)) {
			workload_warn(t->w,
				      "%sthe section reader is ignored because there is a "
				      "section data_reader",
				      workload_place(mark, where, sizeof(where)));
			continue;
		}
		if (!prefix && replaces_reader(map) && strcmp(key, "data_reader") == 0)
			rc = type_map(t, map->child[i], "reader");
		else
			rc = type_key(t, key, map->child[i],
				      mark->file ? mark : &map->child[i]->mark);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Keys that do nothing, named once in one sentence. */
static void warn_unused(struct workload *w)
{
	struct buf keys = {0};

	for (size_t i = 0; i < workload_row_count; i++) {
		const struct opt *row = &workload_rows[i];

		if (!(row->flags & OPT_UNUSED) || w->origin[i].source == ORIGIN_DEFAULT)
			continue;
		AUTO_FREE char *text = opt_get_text(row, w);

		if (row->def && strcmp(text, row->def) == 0)
			continue;
		buf_printf(&keys, "%s%s", keys.len ? ", " : "", row->key);
	}
	if (keys.len)
		workload_warn(w, "keys without effect: %s", keys.data);
	buf_release(&keys);
}

int workload_type(struct workload *w, bool strict, struct err *e)
{
	struct typing t = {.w = w, .strict = strict, .e = e};
	int rc = 0;

	for (size_t i = 0; i < w->tree->n && rc == 0; i++)
		if (strcmp(w->tree->key[i], "workload") != 0)
			rc = unknown_key(&t, w->tree->key[i], &w->tree->key_mark[i]);
	t.sections = node_get(w->tree, "workload");
	if (rc == 0)
		rc = type_map(&t, t.sections, NULL);
	if (rc == 0)
		warn_unused(w);
	return rc;
}
