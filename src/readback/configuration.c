/* Where a value comes from: result.json, which has what took effect; else .hydra/config.yaml with
 * the defaults of the option tables. */
#include "readback/configuration.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "workload/backend.h"
#include "workload/key.h"

/* ---- keys of a run that are no row of the workload ---- */

struct setting {
	char *key, *value;
	bool given; /* not the default of an option */
};

struct settings {
	struct setting *v;
	size_t n;
	bool complete;
};

static void add_setting(struct settings *s, char *key, char *value, bool given)
{
	s->v = xrealloc(s->v, (s->n + 1) * sizeof(*s->v));
	s->v[s->n++] = (struct setting){key, value, given};
	/* what was in the environment of that run is not recorded */
	if (strstr(value, "${"))
		s->complete = false;
}

static void release_settings(struct settings *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->v[i].key);
		free(s->v[i].value);
	}
	free(s->v);
}

static const struct setting *find_setting(const struct settings *s, const char *key)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->v[i].key, key) == 0)
			return &s->v[i];
	return NULL;
}

static json_t *recorded(const struct run_record *r)
{
	return json_object_get(r->result, "configuration");
}

static char *recorded_value(const struct run_record *r, const char *key)
{
	const json_t *v = json_object_get(json_object_get(recorded(r), key), "value");
	char *dump, *text;

	if (!v || json_is_string(v))
		return v ? xstrdup(json_string_value(v)) : NULL;
	if (json_is_number(v))
		return xasprintf("%.15g", json_number_value(v));
	dump = json_dumps(v, JSON_ENCODE_ANY);
	text = dump ? xstrdup(dump) : NULL;
	free(dump);
	return text;
}

static void add_store(struct settings *s, const struct run_record *r, const struct store_facts *f)
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
static void add_stores(struct settings *s, const struct run_record *r)
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
static void add_leaves(struct settings *s, const struct node *map, const char *prefix)
{
	for (size_t i = 0; map->kind == NODE_MAP && i < map->n; i++) {
		char *key = xasprintf("%s%s%s", prefix, prefix[0] ? "." : "", map->key[i]);
		const struct node *v = map->child[i];

		if (workload_key_row(key) || strcmp(key, "data_reader") == 0 ||
		    find_setting(s, key)) {
			free(key);
		} else if (v->kind == NODE_MAP) {
			add_leaves(s, v, key);
			free(key);
		} else {
			struct buf text = {0};

			node_emit_flow(v, &text);
			add_setting(s, key, text.data ? buf_take(&text) : xstrdup(""), true);
			buf_release(&text);
		}
	}
}

static void find_settings(struct settings *s, const struct run_record *r)
{
	const struct node *sections = node_get(r->config, "workload");

	*s = (struct settings){.complete = r->has_workload};
	for (size_t i = 0; recorded(r) && i < workload_row_count; i++)
		if (!json_object_get(recorded(r), workload_rows[i].key))
			s->complete = false;
	if (r->has_workload)
		add_stores(s, r);
	if (sections)
		add_leaves(s, sections, "");
}

char *key_value(const struct run_record *r, const char *key)
{
	char *value = recorded_value(r, key);
	const struct opt *row = workload_key_row(key);
	const struct setting *one;
	struct settings s;

	if (value)
		return value;
	if (row)
		return r->has_workload ? opt_get_text(row, &r->workload) : NULL;
	find_settings(&s, r);
	one = find_setting(&s, key);
	value = one ? xstrdup(one->value) : NULL;
	release_settings(&s);
	return value;
}

/* ---- two runs ---- */

static void add_difference(struct key_differences *d, const char *key, const char *x, const char *y)
{
	for (size_t i = 0; i < d->n; i++)
		if (strcmp(d->v[i].key, key) == 0)
			return;
	d->v = xrealloc(d->v, (d->n + 1) * sizeof(*d->v));
	d->v[d->n++] = (struct key_difference){xstrdup(key), xstrdup(x), xstrdup(y)};
}

/* From where both have the value, so that it is written in the same way. */
static void compare_row(struct key_differences *d, const struct run_record *a,
			const struct run_record *b, const struct opt *row)
{
	AUTO_FREE char *x = recorded_value(a, row->key);
	AUTO_FREE char *y = recorded_value(b, row->key);

	if (!x || !y) {
		if (!a->has_workload || !b->has_workload)
			return;
		free(x);
		free(y);
		x = opt_get_text(row, &a->workload);
		y = opt_get_text(row, &b->workload);
	}
	d->known = true;
	if (strcmp(x, y) != 0)
		add_difference(d, row->key, x, y);
}

/* Keys that are only in result.json: of a version with other options. */
static void compare_recorded(struct key_differences *d, const struct run_record *a,
			     const struct run_record *b)
{
	const char *key;
	json_t *entry;

	json_object_foreach(recorded(a), key, entry)
	{
		AUTO_FREE char *x = recorded_value(a, key);
		AUTO_FREE char *y = recorded_value(b, key);

		if (x && y && strcmp(x, y) != 0)
			add_difference(d, key, x, y);
	}
}

static void compare_settings(struct key_differences *d, const struct settings *x,
			     const struct settings *y, bool second)
{
	for (size_t i = 0; i < x->n; i++) {
		const struct setting *one = &x->v[i];
		const struct setting *other = find_setting(y, one->key);
		const char *value = other ? other->value : "not set";

		/* the options of a store that the other side does not use are its defaults, and
		 * storage.store tells that already */
		if (other ? strcmp(one->value, value) == 0 : !one->given)
			continue;
		add_difference(d, one->key, second ? value : one->value,
			       second ? one->value : value);
	}
}

/* Whether each key outside the rows that `a` records is known of `b`. */
static bool covers(const struct run_record *a, const struct run_record *b,
		   const struct settings *of)
{
	const char *key;
	json_t *entry;

	json_object_foreach(recorded(a), key, entry)
	{
		if (!workload_key_row(key) && !json_object_get(recorded(b), key) &&
		    !find_setting(of, key))
			return false;
	}
	return true;
}

void key_differences_find(struct key_differences *d, const struct run_record *a,
			  const struct run_record *b)
{
	struct settings x, y;

	*d = (struct key_differences){0};
	find_settings(&x, a);
	find_settings(&y, b);
	for (size_t i = 0; i < workload_row_count; i++)
		compare_row(d, a, b, &workload_rows[i]);
	compare_settings(d, &x, &y, false);
	compare_settings(d, &y, &x, true);
	compare_recorded(d, a, b);
	d->complete = x.complete && y.complete && covers(a, b, &y) && covers(b, a, &x);
	release_settings(&x);
	release_settings(&y);
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
