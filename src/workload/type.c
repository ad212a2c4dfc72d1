/* From the composed document to the typed fields: every key of it is matched with a row. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "conf/opt.h"
#include "workload/compose.h"
#include "workload/foreign.h"
#include "workload/framework_costs.h"
#include "workload/framework_key.h"
#include "workload/key.h"
#include "workload/validate.h"

/* A value that follows from another key, which may come later in the file. */
struct waiting {
	const struct foreign_name *name;
	char *key;
	const struct node *v;
};

#define WAITING_MAX 16

struct typing {
	struct workload *w;
	struct waiting waiting[WAITING_MAX];
	size_t waits;
	const struct node *sections; /* the map below "workload" */
	const struct workload_request *req;
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
	case OPT_NODES:
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

bool workload_wants_dlio(const struct node *value)
{
	return value && value->kind == NODE_BOOL && value->b;
}

/* A file that is built in is not the user's to mend. */
static bool built_in(const struct node_mark *m)
{
	return m->file && str_starts(m->file, WORKLOAD_BUILTIN_PREFIX);
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
	if (workload_wants_dlio(node_path(t->sections, "compat.dlio"))) {
		workload_warn(t->w,
			      "%s%s has no effect with compat.dlio, as in DLIO: the key is %s",
			      where, key, row->key);
		return 0;
	}
	if (!built_in(&v->mark))
		workload_warn(t->w, "%s%s is read as %s", where, key, row->key);
	return set_row(t, row, v);
}

static int unknown_near(struct typing *t, const char *key, const char *near,
			const struct node_mark *mark)
{
	bool typed = mark->file && strcmp(mark->file, NODE_COMMAND_LINE) == 0;
	char where[256];

	workload_place_behind(mark, where, sizeof(where));
	if (t->req->strict || (t->req->strict_overrides && typed && near))
		return err_set(t->e, ERR_USAGE, "%s%s%s%s is not a key%s",
			       near ? "did you mean " : "", near ? near : "", near ? "? " : "", key,
			       where);
	if (typed)
		str_list_add(&t->w->added, xstrdup(key));
	workload_warn(t->w, "%s%s%s%s is not a key and has no effect%s",
		      near ? "did you mean " : "", near ? near : "", near ? "? " : "", key, where);
	return 0;
}

/* The option of a store that "storage.NAME.OPTION" most likely means; NULL when none is near. */
static char *nearest_of_stores(const char *key)
{
	unsigned best = 2 + (unsigned)strlen(key) / 6;
	char *near = NULL;

	for (size_t i = 0; str_starts(key, "storage.") && store_facts_table[i]; i++)
		for (size_t k = 0; k < store_facts_table[i]->option_count; k++) {
			AUTO_FREE char *known =
				xasprintf("storage.%s.%s", store_facts_table[i]->name,
					  store_facts_table[i]->options[k].key);
			unsigned d = str_distance(key, known);

			if (d >= best)
				continue;
			best = d;
			free(near);
			near = xstrdup(known);
		}
	return near;
}

static char *nearest_key(const char *key)
{
	const char *near = foreign_nearest_key(key);
	char *of_store = nearest_of_stores(key);

	if (of_store && near && str_distance(key, near) < str_distance(key, of_store)) {
		free(of_store);
		of_store = NULL;
	}
	return of_store ? of_store : near ? xstrdup(near) : NULL;
}

#define SECTION_MAX 64 /* keys: of those that are known, none has so many */

static bool any_near(const char *section, const struct node *map)
{
	for (size_t i = 0; i < map->n && map->n <= SECTION_MAX; i++) {
		AUTO_FREE char *key = xasprintf("%s.%s", section, map->key[i]);
		AUTO_FREE char *near = nearest_key(key);

		if (near)
			return true;
	}
	return false;
}

/* A section that does not exist is named by its keys, where one of them is like a known one. */
static int unknown_key(struct typing *t, const char *key, const struct node *v,
		       const struct node_mark *mark)
{
	if (v->kind != NODE_MAP || !any_near(key, v)) {
		AUTO_FREE char *near = v->kind == NODE_MAP ? NULL : nearest_key(key);

		return unknown_near(t, key, near, mark);
	}
	for (size_t i = 0; i < v->n; i++) {
		AUTO_FREE char *below = xasprintf("%s.%s", key, v->key[i]);
		const struct node_mark *own = &v->key_mark[i];

		if (unknown_key(t, below, v->child[i], own->file ? own : &v->child[i]->mark) < 0)
			return ERR_USAGE;
	}
	return 0;
}

/* What a store that is used does not know, it says itself. */
static int type_store(struct typing *t, const char *section, const struct node *map)
{
	const struct store_facts *s = store_facts_find(section + strlen("storage."));

	for (size_t i = 0; s && i < map->n; i++) {
		AUTO_FREE char *key = xasprintf("%s.%s", section, map->key[i]), *near = NULL;
		const char *known = opt_nearest_key(s->options, s->option_count, map->key[i]);

		if (opt_find(s->options, s->option_count, map->key[i]) ||
		    store_expression_has(t->w->storage.store, s->name))
			continue;
		if (known)
			near = xasprintf("%s.%s", section, known);
		if (unknown_near(t, key, near, &map->key_mark[i]) < 0)
			return ERR_USAGE;
	}
	return 0;
}

/* ---- names of the frameworks ---- */

/* Sets what the name stands for, unless that is set by its own name. */
static int set_foreign(struct typing *t, const struct foreign_name *f, const char *key,
		       const struct node *v)
{
	const struct opt *row = f->key ? workload_key_row(f->key) : NULL;
	struct node *value = foreign_value(f, v, t->w->reader.read_threads, key, t->e);
	const struct node *own = row ? node_path(t->sections, row->key) : NULL;
	char where[256];
	int rc = 0;

	if (!value)
		return ERR_USAGE;
	workload_place(&v->mark, where, sizeof(where));
	if (!row) {
		workload_note(t->w, "%s%s is what happens in any case", where, key);
	} else if (own && own->mark.file && strcmp(own->mark.file, NODE_COMMAND_LINE) == 0) {
		/* what was typed replaces what the file says, by whatever name */
	} else if (own) {
		workload_warn(t->w, "%s%s is ignored because %s, which it stands for, is set too",
			      where, key, row->key);
	} else if (t->w->origin[row - workload_rows].source != ORIGIN_DEFAULT) {
		rc = err_set(t->e, ERR_USAGE,
			     "remove one of two names: %s%s stands for %s, which another name has "
			     "set already",
			     where, key, row->key);
	} else {
		struct buf text = {0};

		rc = set_row(t, row, value);
		node_emit_flow(value, &text);
		workload_note(t->w, "%s%s is read as %s=%s%s%s%s", where, key, row->key, text.data,
			      f->note ? " (" : "", f->note ? f->note : "", f->note ? ")" : "");
		buf_release(&text);
	}
	node_free(value);
	return rc;
}

static int take_foreign(struct typing *t, const struct foreign_name *f, const char *key,
			const struct node *v)
{
	if (f->how != FOREIGN_PER_WORKER || t->waits == WAITING_MAX)
		return set_foreign(t, f, key, v);
	t->waiting[t->waits++] = (struct waiting){.name = f, .key = xstrdup(key), .v = v};
	return 0;
}

/* A key without its section, or in the section of another program. */
static int take_bare(struct typing *t, const char *key, const struct node *v,
		     const struct node_mark *mark)
{
	const char *dot = strrchr(key, '.'), *name = dot ? dot + 1 : key;
	char several[512], where[256];
	const char *own = foreign_bare_key(name, several, sizeof(several));
	const struct foreign_name same = {name, "", own, FOREIGN_SAME, NULL};

	if (own)
		return set_foreign(t, &same, key, v);
	if (several[0] && !t->req->strict) {
		workload_warn(t->w, "write %s%s: %s has no effect%s",
			      strchr(several, ',') ? "one of " : "", several, key,
			      workload_place_behind(mark, where, sizeof(where)));
		return 0;
	}
	if (several[0])
		return err_set(t->e, ERR_USAGE, "write %s%s: %s is not a key%s",
			       strchr(several, ',') ? "one of " : "", several, key,
			       workload_place_behind(mark, where, sizeof(where)));
	return unknown_key(t, key, v, mark);
}

static bool in_their_section(const char *key)
{
	AUTO_FREE char *section = xstrndup(key, strcspn(key, "."));

	return strchr(key, '.') && foreign_section(section);
}

/* The document of a profile is one value: its label. */
static int set_costs(struct typing *t, const struct opt *row, const struct node *v)
{
	AUTO_FREE char *label = costs_label(t->w->costs);
	struct node *text = node_new_str(label, v->mark);
	int rc = set_row(t, row, text);

	node_free(text);
	return rc;
}

static int type_map(struct typing *t, const struct node *map, const char *prefix);

static int type_key(struct typing *t, const char *key, const struct node *v,
		    const struct node_mark *mark)
{
	const struct opt *row = workload_key_row(key);
	const struct foreign_name *foreign;
	char where[256];

	/* OmegaConf's mark of a value still to be given: the key counts as absent. */
	if (v->kind == NODE_STR && !v->quoted && strcmp(v->s, "???") == 0)
		return 0;
	if (row && t->w->costs && strcmp(key, FRAMEWORK_COSTS) == 0)
		return set_costs(t, row, v);
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
		return type_store(t, key, v);
	if (v->kind == NODE_MAP && foreign_section(key))
		return type_map(t, v, key);
	foreign = foreign_find(key);
	if (foreign)
		return take_foreign(t, foreign, key, v);
	if (!strchr(key, '.') ? v->kind != NODE_MAP : in_their_section(key))
		return take_bare(t, key, v, mark);
	return unknown_key(t, key, v, mark);
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
			workload_keep_error(t->w, t->e);
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

int workload_type(struct workload *w, const struct workload_request *req, struct err *e)
{
	struct err own = {0};
	struct typing t = {.w = w, .req = req, .e = &own};

	t.sections = node_get(w->tree, "workload");
	for (size_t i = 0; i < w->tree->n; i++)
		if (strcmp(w->tree->key[i], "workload") != 0 &&
		    unknown_key(&t, w->tree->key[i], w->tree->child[i], &w->tree->key_mark[i]) < 0)
			workload_keep_error(w, t.e);
	type_map(&t, t.sections, NULL);
	for (size_t i = 0; i < t.waits; i++) {
		if (set_foreign(&t, t.waiting[i].name, t.waiting[i].key, t.waiting[i].v) < 0)
			workload_keep_error(w, t.e);
		free(t.waiting[i].key);
	}
	if (w->errors.n == 0)
		warn_unused(w);
	return workload_first_error(w, e);
}
