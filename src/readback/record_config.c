/* The configuration of a result: as Hydra left it, or by result.json. */
#include "readback/record_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "conf/override.h"
#include "readback/dlio_version.h"
#include "result/fields.h"
#include "result/json_out.h"
#include "workload/recorded_file.h"

#define YAML_BYTES_MAX (4u << 20)

const struct part *record_part(const struct run_record *r, enum field id)
{
	return part(part_whole(r->result), id);
}

const json_t *record_configured(const struct run_record *r, const char *key, enum field id)
{
	const json_t *all = figure_json(part_whole(r->result), F_RUN_CONFIGURATION);

	return figure_json(part_whole(json_object_get(all, key)), id);
}

static void read_overrides(struct run_record *r, const struct node *list)
{
	for (size_t i = 0; list->kind == NODE_LIST && i < list->n; i++) {
		const struct node *one = list->child[i];

		if (one->kind != NODE_STR)
			continue;
		str_list_add(&r->overrides, xstrdup(one->s));
	}
}

/* The harness of MLPerf Storage renames .hydra to configs (v1.0) or dlio_config. NULL, with -ENOENT
 * in `why` when there is none; what is not of `kind` is damaged. */
static struct node *hydra_file(const char *folder, const char *name, enum node_kind kind,
			       bool *renamed, struct err *why)
{
	static const char *const subs[] = {".hydra", "dlio_config", "configs", NULL};

	*why = (struct err){.code = -ENOENT};
	for (size_t i = 0; subs[i]; i++) {
		AUTO_FREE char *path = xasprintf("%s/%s/%s", folder, subs[i], name);
		struct buf text = {0};
		struct node *root = NULL;
		struct err e = {0};

		if (file_read(path, YAML_BYTES_MAX, &text, &e) == 0)
			root = yaml_parse(text.data ? text.data : "", text.len,
					  node_file_name(path), &e);
		buf_release(&text);
		if (root && (root->kind == kind || root->kind == NODE_NULL)) {
			*renamed = i > 0;
			return root;
		}
		if (root)
			err_set(&e, ERR_DATA, "'%s' is damaged: it is not a %s", path,
				kind == NODE_MAP ? "map of keys" : "list of overrides");
		node_free(root);
		if (e.code == -ENOMEM)
			out_of_memory(); /* not "has no configuration" */
		if (why->code == -ENOENT && e.code != -ENOENT && e.code != -ENOTDIR)
			*why = e;
	}
	return NULL;
}

/* A value of result.json as the node that it was typed from; NULL: it names nothing. */
static struct node *value_node(const struct opt *row, const json_t *v)
{
	struct node *n;
	struct err ignored = {0};

	if (json_is_boolean(v)) {
		n = node_new(NODE_BOOL, (struct node_mark){0});
		n->b = json_is_true(v);
	} else if (json_is_integer(v)) {
		n = node_new(NODE_INT, (struct node_mark){0});
		n->i = json_integer_value(v);
		n->f = (double)n->i;
	} else if (json_is_real(v)) {
		n = node_new(NODE_FLOAT, (struct node_mark){0});
		n->f = json_real_value(v);
	} else if (!json_is_string(v)) {
		n = NULL;
	} else if (row->type == OPT_STR || row->type == OPT_ENUM) {
		n = node_new_str(json_string_value(v), (struct node_mark){0});
		n->literal = true;
	} else {
		n = override_parse_value(json_string_value(v), &ignored);
	}
	return n;
}

static void put_node(struct node *sections, const char *dotted, struct node *value)
{
	AUTO_FREE char *key = xstrdup(dotted);
	struct node *map = sections;
	char *rest = key, *dot;

	while ((dot = strchr(rest, '.'))) {
		*dot = '\0';
		if (!node_get(map, rest))
			node_set(map, rest, node_new(NODE_MAP, (struct node_mark){0}));
		map = node_get(map, rest);
		rest = dot + 1;
		if (map->kind != NODE_MAP) {
			node_free(value);
			return;
		}
	}
	node_set(map, rest, value);
}

/* The options of stores that result.json has beside the rows. */
static void put_store_options(struct node *sections, const struct run_record *r)
{
	for (size_t f = 0; store_facts_table[f]; f++)
		for (size_t i = 0; i < store_facts_table[f]->option_count; i++) {
			const struct opt *row = &store_facts_table[f]->options[i];
			AUTO_FREE char *key =
				xasprintf("storage.%s.%s", store_facts_table[f]->name, row->key);
			const json_t *v = record_configured(r, key, F_CONFIGURED_VALUE);
			struct node *n = value_node(row, v);

			if (n)
				put_node(sections, key, n);
		}
}

/* The framework's costs as they were written. */
static struct node *costs_of(const json_t *profile)
{
	char *text = json_dump_text(profile, JSON_COMPACT);
	struct err ignored = {0};
	struct node *n = text ? yaml_parse(text, strlen(text), "result.json", &ignored) : NULL;

	free(text);
	return n ? n : node_new(NODE_NULL, (struct node_mark){0});
}

/* Whether an entry has the default of its row, and not one that follows from other keys. */
static bool is_default(const struct opt *row, const json_t *entry)
{
	const char *origin = figure_text(part_whole(entry), F_CONFIGURED_ORIGIN);
	const json_t *v = figure_json(part_whole(entry), F_CONFIGURED_VALUE);
	double number;

	/* schema 1 says so of each default */
	if ((origin && strcmp(origin, "default") != 0) || !row->def)
		return false;
	if (json_is_number(v))
		return str_to_f64(row->def, &number) && number == json_number_value(v);
	return json_is_string(v) && strcmp(json_string_value(v), row->def) == 0;
}

/* With hydra.run.dir or compat.dlio, .hydra is elsewhere: result.json repeats every key. */
static bool read_result_config(struct run_record *r)
{
	const json_t *all = figure_json(part_whole(r->result), F_RUN_CONFIGURATION);
	struct node *root, *sections;
	struct err e = {0};

	if (!all)
		return false;
	root = node_new(NODE_MAP, (struct node_mark){0});
	node_set(root, "workload", node_new(NODE_MAP, (struct node_mark){0}));
	sections = node_get(root, "workload");
	for (size_t i = 0; i < workload_row_count; i++) {
		const struct opt *row = &workload_rows[i];
		const json_t *entry = json_object_get(all, row->key), *profile;
		struct node *n = NULL;

		/* a default that is written would be an answer to other keys */
		if (!is_default(row, entry))
			n = value_node(row, record_configured(r, row->key, F_CONFIGURED_VALUE));
		/* a label stands for them, beside the key of the framework's name */
		profile = record_configured(r, row->key, F_CONFIGURED_PROFILE);
		if (profile) {
			node_free(n);
			n = NULL;
			node_set(sections, row->key, costs_of(profile));
		}
		if (n)
			put_node(sections, row->key, n);
	}
	put_store_options(sections, r);
	r->has_workload = workload_read_back(&r->workload, root, &e) == 0;
	if (!r->has_workload)
		workload_release(&r->workload);
	node_free(root);
	return r->has_workload;
}

void record_note_fault(struct run_record *r, const struct err *e)
{
	if (e->code && e->code != -ENOENT)
		str_list_add(&r->damage, xstrdup(e->text));
}

/* Sizes, orders and requests of a recorded job: the copy in the folder, or the file that the run
 * had where that is still the same path. */
static void read_recorded(struct run_record *r)
{
	AUTO_FREE char *copy = path_join(r->folder, RECORDED_COPY);
	struct workload *w = &r->workload;
	struct err e = {0};

	if (!r->has_workload || !workload_is_recorded(w))
		return;
	w->recorded = recorded_read(copy, &e);
	if (!w->recorded && e.code == -ENOENT && w->dataset.recorded_file)
		w->recorded = recorded_read(w->dataset.recorded_file, &e);
	if (!w->recorded && e.code != -ENOENT)
		record_note_fault(r, &e);
}

void record_read_config(struct run_record *r)
{
	struct err e = {0};
	struct node *overrides = hydra_file(r->folder, "overrides.yaml", NODE_LIST, &r->mlperf, &e);

	record_note_fault(r, &e);
	r->config = hydra_file(r->folder, "config.yaml", NODE_MAP, &r->mlperf, &e);
	record_note_fault(r, &e);
	if (overrides)
		read_overrides(r, overrides);
	node_free(overrides);
	if (!r->ours)
		r->dlio = dlio_version_of(r->folder, r->checkpointed,
					  node_get(r->config, "workload"), &r->overrides);
	workload_mend_model(node_get(r->config, "workload"));
	if (!r->config && read_result_config(r)) {
		/* nothing is missing */
	} else if (!r->config) {
		str_list_add(&r->notes, xasprintf("'%s' has no readable .hydra/config.yaml, so the "
						  "configuration of the run is "
						  "unknown",
						  r->folder));
	} else if (workload_read_back(&r->workload, r->config, &e) < 0) {
		str_list_add(&r->notes,
			     xasprintf("the configuration of '%s' cannot be read back: %s",
				       r->folder, e.text));
		workload_release(&r->workload);
	} else {
		r->has_workload = true;
	}
	read_recorded(r);
}
