/* Where a value comes from: result.json, which has what took effect; else .hydra/config.yaml with
 * the defaults of the option tables. */
#include "readback/configuration.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/vector.h"
#include "result/json_out.h"
#include "workload/backend.h"
#include "workload/key.h"

#define NOTHING 0 /* the number of no text */

/* A key that is no row, by the numbers of texts. */
struct entry {
	uint32_t key, value;
	bool given; /* of a setting: not the default of an option */
	bool row;   /* of an extra: another name of a row */
};

struct entries {
	struct entry *v;
	size_t n, room;
};

/* Numbers are those of `texts`, + 1: of its own until it is kept. */
struct configuration {
	struct texts *texts;
	bool read; /* the workload is known: `own` has the values */
	bool complete;
	uint32_t *stated, *own; /* of each row */
	struct entries setting;
	struct entries extra; /* of result.json, under a key that is no row */
};

/* The number of a text, which is released. */
static uint32_t number_of(struct configuration *c, char *text)
{
	uint32_t n = text ? (uint32_t)texts_add(c->texts, text) + 1 : NOTHING;

	free(text);
	return n;
}

static uint32_t known_number(const struct configuration *c, const char *text)
{
	size_t i = texts_find(c->texts, text);

	return i == TEXT_NONE ? NOTHING : (uint32_t)i + 1;
}

static const char *text_of(const struct configuration *c, uint32_t number)
{
	return number == NOTHING ? NULL : c->texts->v[number - 1];
}

static const struct entry *find_entry(const struct entries *in, uint32_t key)
{
	for (size_t i = 0; i < in->n; i++)
		if (in->v[i].key == key)
			return &in->v[i];
	return NULL;
}

/* ---- taken from a whole record ---- */

static void add_setting(struct configuration *c, char *key, char *value, bool given)
{
	struct entry *one = VECTOR_ADD(c->setting.v, c->setting.n, c->setting.room);

	/* what was in the environment of that run is not recorded */
	if (strstr(value, "${"))
		c->complete = false;
	one->key = number_of(c, key);
	one->value = number_of(c, value);
	one->given = given;
}

static const json_t *recorded(const struct run_record *r)
{
	return figure_json(part_whole(r->result), F_RUN_CONFIGURATION);
}

static char *value_text(const json_t *entry)
{
	const json_t *v = figure_json(part_whole(entry), F_CONFIGURED_VALUE);

	if (!v || json_is_string(v))
		return v ? xstrdup(json_string_value(v)) : NULL;
	if (json_is_number(v))
		return xasprintf("%.15g", json_number_value(v));
	return json_dump_text(v, JSON_ENCODE_ANY);
}

static void add_store(struct configuration *s, const struct run_record *r,
		      const struct store_facts *f)
{
	struct err ignored = {0};
	void *config = workload_store_config(&r->workload, f, &ignored);

	if (!config) {
		s->complete = false;
		return;
	}
	for (size_t i = 0; i < f->option_count; i++) {
		AUTO_FREE char *path =
			xasprintf("workload.storage.%s.%s", f->name, f->options[i].key);
		char *key = xstrdup(path + strlen("workload."));

		if (!r->config && !json_object_get(recorded(r), key))
			s->complete = false; /* a result of a version that left options out */
		add_setting(s, key, opt_get_text(&f->options[i], config),
			    node_path(r->workload.tree, path) != NULL);
	}
	opt_release(f->options, f->option_count, config);
	free(config);
}

/* Each part of the expression, "throttle+posix". */
static void add_stores(struct configuration *s, const struct run_record *r)
{
	const char *rest = r->workload.storage.store;

	while (rest && *rest) {
		AUTO_FREE char *name = xstrndup(rest, strcspn(rest, "+"));
		const struct store_facts *f = store_facts_find(name);

		if (f)
			add_store(s, r, f);
		else
			s->complete = false;
		rest += strlen(name);
		rest += *rest == '+';
	}
}

/* What was written in the configuration and is neither a row nor an option of a store in use. */
static void add_leaves(struct configuration *s, const struct node *map, const char *prefix)
{
	for (size_t i = 0; map->kind == NODE_MAP && i < map->n; i++) {
		char *key = xasprintf("%s%s%s", prefix, prefix[0] ? "." : "", map->key[i]);
		const struct node *v = map->child[i];

		if (workload_key_row(key) || strcmp(key, "data_reader") == 0 ||
		    find_entry(&s->setting, known_number(s, key))) {
			free(key);
		} else if (v->kind == NODE_MAP) {
			add_leaves(s, v, key);
			free(key);
		} else {
			struct buf text = {0};

			node_emit_flow(v, &text);
			add_setting(s, key, buf_take(&text), true);
		}
	}
}

static void add_extras(struct configuration *s, const json_t *all)
{
	const char *key;
	json_t *entry;

	json_object_foreach((json_t *)(uintptr_t)all, key, entry)
	{
		const struct opt *row = workload_key_row(key);
		struct entry *one;

		if (row && strcmp(row->key, key) == 0)
			continue;
		one = VECTOR_ADD(s->extra.v, s->extra.n, s->extra.room);
		one->key = number_of(s, xstrdup(key));
		one->value = number_of(s, value_text(entry));
		one->row = row != NULL;
	}
}

struct configuration *configuration_find(const struct run_record *r)
{
	struct configuration *s = xcalloc(1, sizeof(*s));
	const struct node *sections = node_get(r->config, "workload");
	const json_t *all = recorded(r);

	s->texts = xcalloc(1, sizeof(*s->texts));
	s->read = s->complete = r->has_workload;
	s->stated = xcalloc(workload_row_count, sizeof(*s->stated));
	s->own = xcalloc(workload_row_count, sizeof(*s->own));
	for (size_t i = 0; i < workload_row_count; i++) {
		const json_t *entry = json_object_get(all, workload_rows[i].key);

		s->stated[i] = number_of(s, value_text(entry));
		if (all && !entry)
			s->complete = false;
		if (r->has_workload)
			s->own[i] = number_of(s, opt_get_text(&workload_rows[i], &r->workload));
	}
	if (r->has_workload)
		add_stores(s, r);
	if (sections)
		add_leaves(s, sections, "");
	add_extras(s, all);
	return s;
}

/* ---- kept: each text once ---- */

static uint32_t kept_number(const struct configuration *c, struct texts *t, uint32_t number)
{
	return number == NOTHING ? NOTHING : (uint32_t)texts_add(t, text_of(c, number)) + 1;
}

static void keep_entries(const struct configuration *c, struct texts *t, struct entries *e)
{
	for (size_t i = 0; i < e->n; i++) {
		e->v[i].key = kept_number(c, t, e->v[i].key);
		e->v[i].value = kept_number(c, t, e->v[i].value);
	}
	if (e->n)
		e->v = xrealloc(e->v, e->n * sizeof(*e->v));
	e->room = e->n;
}

void configuration_keep(struct configuration *c, struct texts *t)
{
	for (size_t i = 0; i < workload_row_count; i++) {
		c->stated[i] = kept_number(c, t, c->stated[i]);
		c->own[i] = kept_number(c, t, c->own[i]);
	}
	keep_entries(c, t, &c->setting);
	keep_entries(c, t, &c->extra);
	texts_release(c->texts);
	free(c->texts);
	c->texts = t;
}

void configuration_release(struct configuration *c)
{
	if (!c)
		return;
	free(c->stated);
	free(c->own);
	free(c->setting.v);
	free(c->extra.v);
	free(c);
}

char *key_value(const struct run_record *r, const char *key)
{
	const struct configuration *c = r->configuration;
	const struct opt *row = workload_key_row(key);
	const struct entry *extra = find_entry(&c->extra, known_number(c, key));
	const struct entry *setting = find_entry(&c->setting, known_number(c, key));
	size_t at = row ? (size_t)(row - workload_rows) : 0;
	uint32_t value = NOTHING;

	if (row && strcmp(row->key, key) == 0 && c->stated[at])
		value = c->stated[at];
	else if (extra && extra->value)
		value = extra->value;
	else if (row)
		value = c->own[at];
	else if (setting)
		value = setting->value;
	return value ? xstrdup(text_of(c, value)) : NULL;
}

/* ---- two runs ---- */

static void add_difference(struct key_differences *d, const char *key, const char *x, const char *y)
{
	for (size_t i = 0; i < d->n; i++)
		if (strcmp(d->v[i].key, key) == 0)
			return;
	VECTOR_PUSH(d->v, d->n, d->room, {xstrdup(key), xstrdup(x), xstrdup(y)});
}

/* From where both have the value, so that it is written in the same way. */
static void compare_row(struct key_differences *d, const struct configuration *a,
			const struct configuration *b, size_t row)
{
	uint32_t x = a->stated[row], y = b->stated[row];

	if (!x || !y) {
		if (!a->read || !b->read)
			return;
		x = a->own[row];
		y = b->own[row];
	}
	d->known = true;
	if (x != y)
		add_difference(d, workload_rows[row].key, text_of(a, x), text_of(b, y));
}

/* Keys that are only in result.json: of a version with other options. */
static void compare_extras(struct key_differences *d, const struct configuration *a,
			   const struct configuration *b)
{
	for (size_t i = 0; i < a->extra.n; i++) {
		const struct entry *x = &a->extra.v[i], *y = find_entry(&b->extra, x->key);

		if (y && x->value && y->value && x->value != y->value)
			add_difference(d, text_of(a, x->key), text_of(a, x->value),
				       text_of(b, y->value));
	}
}

static void compare_settings(struct key_differences *d, const struct configuration *x,
			     const struct configuration *y, bool second)
{
	for (size_t i = 0; i < x->setting.n; i++) {
		const struct entry *one = &x->setting.v[i];
		const struct entry *other = find_entry(&y->setting, one->key);
		const char *value = other ? text_of(y, other->value) : "not set";

		/* the options of a store that the other side does not use are its defaults, and
		 * storage.store tells that already */
		if (other ? one->value == other->value : !one->given)
			continue;
		add_difference(d, text_of(x, one->key), second ? value : text_of(x, one->value),
			       second ? text_of(x, one->value) : value);
	}
}

/* Whether each key outside the rows that `a` records is known of `b`. */
static bool covers(const struct configuration *a, const struct configuration *b)
{
	for (size_t i = 0; i < a->extra.n; i++) {
		const struct entry *one = &a->extra.v[i];

		if (!one->row && !find_entry(&b->extra, one->key) &&
		    !find_entry(&b->setting, one->key))
			return false;
	}
	return true;
}

void key_differences_find(struct key_differences *d, const struct run_record *a,
			  const struct run_record *b)
{
	const struct configuration *x = a->configuration, *y = b->configuration;

	assert(x->texts == y->texts);
	*d = (struct key_differences){0};
	for (size_t i = 0; i < workload_row_count; i++)
		compare_row(d, x, y, i);
	compare_settings(d, x, y, false);
	compare_settings(d, y, x, true);
	compare_extras(d, x, y);
	d->complete = x->complete && y->complete && covers(x, y) && covers(y, x);
}

void key_differences_release(struct key_differences *d)
{
	for (size_t i = 0; i < d->n; i++) {
		free(d->v[i].key);
		free(d->v[i].x);
		free(d->v[i].y);
	}
	free(d->v);
	*d = (struct key_differences){0};
}
