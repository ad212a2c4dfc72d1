/* Where a value comes from: result.json, which has what took effect; else .hydra/config.yaml with
 * the defaults of the option tables. */
#include "readback/configuration.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "workload/backend.h"
#include "workload/key.h"

#define NOTHING 0 /* the number of no text */

struct setting {
	char *key, *value;
	bool given; /* not the default of an option */
};

/* Of result.json, under a key that is no row. */
struct extra {
	char *key, *value;
	bool row; /* another name of one */
};

/* Built with texts of its own; once it is kept, numbers stand for them. */
struct configuration {
	bool recorded; /* result.json has one */
	bool read;     /* the workload is known: `own` has the values */
	bool complete;
	char **stated, **own; /* of each row; NULL where there is none */
	struct setting *setting;
	size_t settings;
	struct extra *extra;
	size_t extras;
};

struct kept_setting {
	uint32_t key, value;
	bool given;
};

struct kept_extra {
	uint32_t key, value;
	bool row;
};

/* Numbers of texts + 1. */
struct kept_configuration {
	const struct texts *texts;
	bool recorded, read, complete;
	uint32_t *stated, *own;
	struct kept_setting *setting;
	size_t settings;
	struct kept_extra *extra;
	size_t extras;
};

/* ---- taken from a whole record ---- */

static void add_setting(struct configuration *s, char *key, char *value, bool given)
{
	s->setting = xrealloc(s->setting, (s->settings + 1) * sizeof(*s->setting));
	s->setting[s->settings++] = (struct setting){key, value, given};
	/* what was in the environment of that run is not recorded */
	if (strstr(value, "${"))
		s->complete = false;
}

static const struct setting *find_setting(const struct configuration *s, const char *key)
{
	for (size_t i = 0; i < s->settings; i++)
		if (strcmp(s->setting[i].key, key) == 0)
			return &s->setting[i];
	return NULL;
}

static const json_t *recorded(const struct run_record *r)
{
	return figure_json(part_whole(r->result), F_RUN_CONFIGURATION);
}

static char *value_text(const json_t *entry)
{
	const json_t *v = figure_json(part_whole(entry), F_CONFIGURED_VALUE);
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

static void add_extras(struct configuration *s, const json_t *all)
{
	const char *key;
	json_t *entry;

	json_object_foreach((json_t *)(uintptr_t)all, key, entry)
	{
		const struct opt *row = workload_key_row(key);
		char *value;

		if (row && strcmp(row->key, key) == 0)
			continue;
		value = value_text(entry);
		s->extra = xrealloc(s->extra, (s->extras + 1) * sizeof(*s->extra));
		s->extra[s->extras++] = (struct extra){xstrdup(key), value, row != NULL};
	}
}

struct configuration *configuration_find(const struct run_record *r)
{
	struct configuration *s = xcalloc(1, sizeof(*s));
	const struct node *sections = node_get(r->config, "workload");
	const json_t *all = recorded(r);

	s->recorded = all != NULL;
	s->read = s->complete = r->has_workload;
	s->stated = xcalloc(workload_row_count, sizeof(*s->stated));
	s->own = xcalloc(workload_row_count, sizeof(*s->own));
	for (size_t i = 0; i < workload_row_count; i++) {
		const json_t *entry = json_object_get(all, workload_rows[i].key);

		s->stated[i] = value_text(entry);
		if (all && !entry)
			s->complete = false;
		if (r->has_workload)
			s->own[i] = opt_get_text(&workload_rows[i], &r->workload);
	}
	if (r->has_workload)
		add_stores(s, r);
	if (sections)
		add_leaves(s, sections, "");
	add_extras(s, all);
	return s;
}

/* ---- kept: each text once ---- */

/* The number of a text, which is released. */
static uint32_t number_of(struct texts *t, char *text)
{
	uint32_t n = text ? (uint32_t)texts_add(t, text) + 1 : NOTHING;

	free(text);
	return n;
}

static uint32_t *numbers_of(struct texts *t, char **v)
{
	uint32_t *n = xcalloc(workload_row_count, sizeof(*n));

	for (size_t i = 0; i < workload_row_count; i++)
		n[i] = number_of(t, v[i]);
	free(v);
	return n;
}

struct kept_configuration *configuration_keep(struct configuration *s, struct texts *t)
{
	struct kept_configuration *k = xcalloc(1, sizeof(*k));

	*k = (struct kept_configuration){.texts = t,
					 .recorded = s->recorded,
					 .read = s->read,
					 .complete = s->complete,
					 .settings = s->settings,
					 .extras = s->extras};
	k->stated = numbers_of(t, s->stated);
	k->own = numbers_of(t, s->own);
	k->setting = xcalloc(s->settings + 1, sizeof(*k->setting));
	for (size_t i = 0; i < s->settings; i++)
		k->setting[i] = (struct kept_setting){number_of(t, s->setting[i].key),
						      number_of(t, s->setting[i].value),
						      s->setting[i].given};
	k->extra = xcalloc(s->extras + 1, sizeof(*k->extra));
	for (size_t i = 0; i < s->extras; i++)
		k->extra[i] = (struct kept_extra){number_of(t, s->extra[i].key),
						  number_of(t, s->extra[i].value), s->extra[i].row};
	free(s->setting);
	free(s->extra);
	free(s);
	return k;
}

void configuration_release(struct kept_configuration *k)
{
	if (!k)
		return;
	free(k->stated);
	free(k->own);
	free(k->setting);
	free(k->extra);
	free(k);
}

static const char *text_of(const struct kept_configuration *k, uint32_t number)
{
	return number == NOTHING ? NULL : k->texts->v[number - 1];
}

static const struct kept_setting *kept_setting(const struct kept_configuration *k, uint32_t key)
{
	for (size_t i = 0; i < k->settings; i++)
		if (k->setting[i].key == key)
			return &k->setting[i];
	return NULL;
}

static const struct kept_extra *kept_extra(const struct kept_configuration *k, uint32_t key)
{
	for (size_t i = 0; i < k->extras; i++)
		if (k->extra[i].key == key)
			return &k->extra[i];
	return NULL;
}

static char *copy_of(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

char *key_value(const struct run_record *r, const char *key)
{
	const struct kept_configuration *k = r->configuration;
	const struct opt *row = workload_key_row(key);
	size_t known = texts_find(k->texts, key);
	uint32_t number = known == TEXT_NONE ? NOTHING : (uint32_t)known + 1;
	const struct kept_extra *extra = number ? kept_extra(k, number) : NULL;
	const struct kept_setting *setting;
	size_t at = row ? (size_t)(row - workload_rows) : 0;

	if (row && strcmp(row->key, key) == 0 && k->stated[at])
		return copy_of(text_of(k, k->stated[at]));
	if (extra && extra->value)
		return copy_of(text_of(k, extra->value));
	if (row)
		return copy_of(text_of(k, k->own[at]));
	setting = number ? kept_setting(k, number) : NULL;
	return setting ? copy_of(text_of(k, setting->value)) : NULL;
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
static void compare_row(struct key_differences *d, const struct kept_configuration *a,
			const struct kept_configuration *b, size_t row)
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
static void compare_extras(struct key_differences *d, const struct kept_configuration *a,
			   const struct kept_configuration *b)
{
	for (size_t i = 0; i < a->extras; i++) {
		const struct kept_extra *x = &a->extra[i], *y = kept_extra(b, x->key);

		if (y && x->value && y->value && x->value != y->value)
			add_difference(d, text_of(a, x->key), text_of(a, x->value),
				       text_of(b, y->value));
	}
}

static void compare_settings(struct key_differences *d, const struct kept_configuration *x,
			     const struct kept_configuration *y, bool second)
{
	for (size_t i = 0; i < x->settings; i++) {
		const struct kept_setting *one = &x->setting[i];
		const struct kept_setting *other = kept_setting(y, one->key);
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
static bool covers(const struct kept_configuration *a, const struct kept_configuration *b)
{
	for (size_t i = 0; i < a->extras; i++)
		if (!a->extra[i].row && !kept_extra(b, a->extra[i].key) &&
		    !kept_setting(b, a->extra[i].key))
			return false;
	return true;
}

void key_differences_find(struct key_differences *d, const struct run_record *a,
			  const struct run_record *b)
{
	const struct kept_configuration *x = a->configuration, *y = b->configuration;

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
