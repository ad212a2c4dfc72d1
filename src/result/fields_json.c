/* What result.json holds beside figures: lists of numbers and names, and the configuration. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "result/fields.h"
#include "result/json_out.h"
#include "result/json_result.h"
#include "workload/backend.h"
#include "workload/framework_costs.h"

static json_t *bucket(uint64_t low, uint32_t count)
{
	json_t *pair = json_array();

	json_array_append_new(pair, json_count(low));
	json_array_append_new(pair, json_count(count));
	return pair;
}

json_t *latency_buckets(const struct hist *h)
{
	json_t *list = json_array();

	for (size_t i = 0; i < HIST_BUCKETS; i++)
		if (h->count[i])
			json_array_append_new(list, bucket(hist_bucket_low(i), h->count[i]));
	return list;
}

json_t *sized_buckets(const struct io_latency *l)
{
	json_t *list = json_array();

	for (size_t i = 0; i < IO_CLASS_BUCKETS; i++)
		if (l->count[i])
			json_array_append_new(list, bucket(io_latency_bucket_low(i), l->count[i]));
	return list;
}

json_t *block_names(const struct block_list *l)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < l->n; i++)
		json_array_append_new(list, json_text(l->device[i].name));
	return list;
}

/* One number an epoch, null where it is not known; NULL when none is. */
json_t *ledger_epochs(const struct judgement *j, enum ledger_key key, bool eval)
{
	json_t *list = json_array();
	bool some = false;

	for (uint32_t i = 0; i < j->epochs; i++) {
		const struct epoch_judgement *e = &j->epoch[i];
		double bytes = eval ? e->eval_bytes[key] : e->train_bytes[key];

		some = some || !isnan(bytes);
		json_array_append_new(list,
				      isnan(bytes) ? json_null() : json_count((uint64_t)bytes));
	}
	if (some)
		return list;
	json_decref(list);
	return NULL;
}

/* ---- the configuration ---- */

/* `written`: the value in the composed document; NULL: none. */
static json_t *typed_value(const struct opt *row, const void *base, const struct node *written)
{
	const char *field = (const char *)base + row->offset;
	AUTO_FREE char *text = NULL;

	switch (row->type) {
	case OPT_BOOL:
		return json_boolean(*(const bool *)field);
	case OPT_I64:
		return json_integer(*(const int64_t *)field);
	case OPT_F64:
		return json_number(*(const double *)field);
	case OPT_STR:
		return json_text(*(char *const *)field);
	case OPT_NODES:
	case OPT_MAP: {
		/* as written, so that a secret named by ${oc.env:...} stays out of the file */
		struct buf b = {0};
		json_t *v;

		if (written)
			node_emit_flow(written, &b);
		v = json_text(b.data);
		buf_release(&b);
		return v;
	}
	default:
		text = opt_get_text(row, base);
		return json_text(text);
	}
}

static void put_origin(json_t *entry, const struct opt_origin *o)
{
	/* of most keys: without a word of it */
	if (o->source != ORIGIN_DEFAULT)
		json_put_text(entry, field_key(F_CONFIGURED_ORIGIN),
			      o->source == ORIGIN_FILE ? "file" : "override");
	if (o->source != ORIGIN_FILE)
		return;
	if (o->mark.file)
		json_put_text(entry, "file", o->mark.file);
	if (o->mark.line > 0)
		json_put(entry, "line", json_integer(o->mark.line));
}

static const struct node *written_at(const struct workload *w, const char *key)
{
	AUTO_FREE char *path = xasprintf("workload.%s", key);

	return w->composed ? node_path(w->composed, path) : NULL;
}

/* Of a store in use: all options with the values that took effect. */
static void put_store_options(json_t *map, const struct workload *w, const struct store_facts *s)
{
	struct err ignored = {0};
	void *config = workload_store_config(w, s, &ignored);

	for (size_t i = 0; config && i < s->option_count; i++) {
		const struct opt *row = &s->options[i];
		AUTO_FREE char *key = xasprintf("storage.%s.%s", s->name, row->key);
		const struct node *written = written_at(w, key);
		struct opt_origin origin = {.source = ORIGIN_DEFAULT};
		json_t *entry = json_object();
		struct buf text = {0};

		if (written) {
			node_emit_flow(written, &text);
			origin.source = written->mark.file && strcmp(written->mark.file,
								     NODE_COMMAND_LINE) != 0
						? ORIGIN_FILE
						: ORIGIN_OVERRIDE;
			origin.mark = written->mark;
		}
		/* a secret from the environment stays out, as in .hydra */
		json_put(entry, field_key(F_CONFIGURED_VALUE),
			 text.data && strstr(text.data, "${") ? json_text(text.data)
							      : typed_value(row, config, written));
		if (row->unit)
			json_put_text(entry, "unit", row->unit);
		put_origin(entry, &origin);
		json_put(map, key, entry);
		buf_release(&text);
	}
	if (config)
		opt_release(s->options, s->option_count, config);
	free(config);
}

json_t *json_node(const struct node *n)
{
	json_t *o;

	if (n->kind == NODE_FLOAT || n->kind == NODE_INT)
		return json_number(n->f);
	if (n->kind == NODE_LIST) {
		o = json_array();
		for (size_t i = 0; i < n->n; i++)
			json_array_append_new(o, json_node(n->child[i]));
		return o;
	}
	if (n->kind != NODE_MAP)
		return json_text(n->s);
	o = json_object();
	for (size_t i = 0; i < n->n; i++)
		json_put(o, n->key[i], json_node(n->child[i]));
	return o;
}

/* What the label of framework.costs stands for. */
static json_t *costs_json(const struct framework_costs *c)
{
	struct node *doc = costs_node(c);
	json_t *o = json_node(doc);

	node_free(doc);
	return o;
}

json_t *json_configuration(const struct workload *w)
{
	static const struct opt_origin unknown = {0};
	json_t *map = json_object();

	for (size_t i = 0; i < workload_row_count; i++) {
		const struct opt *row = &workload_rows[i];
		json_t *entry = json_object();

		json_put(entry, field_key(F_CONFIGURED_VALUE),
			 typed_value(row, w, written_at(w, row->key)));
		if (row->unit)
			json_put_text(entry, "unit", row->unit);
		put_origin(entry, w->origin ? &w->origin[i] : &unknown);
		if (w->costs && strcmp(row->key, "framework.costs") == 0)
			json_put(entry, field_key(F_CONFIGURED_PROFILE), costs_json(w->costs));
		json_put(map, row->key, entry);
	}
	for (size_t i = 0; store_facts_table[i]; i++)
		if (store_expression_has(w->storage.store, store_facts_table[i]->name))
			put_store_options(map, w, store_facts_table[i]);
	return map;
}
