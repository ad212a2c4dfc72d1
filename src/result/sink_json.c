/* result.json: the configuration, measures and judgement of a run, for programs. */
#include <errno.h>
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/build_id.h"
#include "base/file.h"
#include "result/json_basis.h"
#include "result/json_out.h"
#include "result/json_result.h"
#include "result/seal.h"
#include "result/sink.h"
#include "workload/backend.h"
#include "workload/framework_costs.h"

/* Raised when a key changes its meaning or goes away; new keys do not raise it. */
#define RESULT_SCHEMA 1

static const char *const status_names[] = {
	[RUN_COMPLETE] = "complete", [RUN_INTERRUPTED] = "interrupted", [RUN_FAILED] = "failed"};
struct named_count {
	const char *name;
	uint64_t count;
};

static json_t *counts(const struct named_count *c, size_t n)
{
	json_t *o = json_object();

	for (size_t i = 0; i < n; i++)
		json_put_int(o, c[i].name, c[i].count);
	return o;
}

#define COUNTS(c) counts(c, sizeof(c) / sizeof((c)[0]))

/* What files hold and where they lie; absent where nobody looked. */
static void put_survey(json_t *to, const struct survey *s)
{
	const struct named_count extents[] = {
		{"files", s->mapped},
		{"bytes", s->mapped_bytes},
		{"files_with_holes", s->hole_files},
		{"hole_bytes", s->hole_bytes},
		{"files_with_blocks_of_others_checked", s->twin_files},
		{"files_with_shared_blocks", s->shared_files},
		{"compressed_files", s->compressed_files},
		{"inline_files", s->inline_files}};
	const struct named_count content[] = {{"samples", s->samples},
					      {"files", s->files},
					      {"compared_bytes", s->bytes},
					      {"files_as_generated", s->files_as_generated},
					      {"files_of_zeros", s->zero_files},
					      {"files_of_one_byte", s->constant_files},
					      {"files_with_the_content_of_others", s->copied_files},
					      {"files_with_other_content", s->other_files},
					      {"files_not_compared", s->failed_files}};

	if (s->named) {
		json_put_int(to, "names_checked", s->named);
		json_put_int(to, "different_files", s->distinct);
	}
	if (s->mapped)
		json_put(to, "extents", COUNTS(extents));
	if (s->counted)
		json_put_int(to, "files_with_fewer_blocks_than_bytes", s->sparse_files);
	if (s->files)
		json_put(to, "content", COUNTS(content));
}

static json_t *dataset_facts(const struct result *r)
{
	const struct dataset *d = r->dataset;
	json_t *o = json_object();

	json_put_text(o, "folder", d->folder);
	json_put_text(o, "format", d->format ? d->format->is.name : NULL);
	json_put_int(o, "train_files", d->files[DATASET_TRAIN]);
	json_put_int(o, "eval_files", d->files[DATASET_EVAL]);
	json_put_int(o, "samples_per_file", d->samples_per_file);
	if (d->total_bytes != UINT64_MAX)
		json_put_int(o, "total_bytes", d->total_bytes);
	if (d->seen_files[DATASET_TRAIN])
		json_put_real(o, "mean_train_file_bytes",
			      (double)d->seen_bytes[DATASET_TRAIN] /
				      (double)d->seen_files[DATASET_TRAIN]);
	json_put_text(o, "checked_by",
		      !r->presence.note[0]                   ? NULL
		      : r->presence.how == PRESENCE_MANIFEST ? "manifest"
		      : r->presence.how == PRESENCE_ASSUMED  ? "nothing"
							     : "sizes");
	json_put_int(o, "files_found", r->presence.files_found);
	json_put_int(o, "sizes_checked", r->presence.sizes_checked);
	json_put_text(o, "note", r->presence.note);
	put_survey(o, &r->presence.survey);
	return o;
}

static json_t *generation_facts(const struct result *r)
{
	json_t *o = json_object();
	double s = (double)r->generation.wall_ns / 1e9;

	json_put_int(o, "files_written", r->generation.files);
	json_put_int(o, "files_kept", r->generation.skipped);
	json_put_int(o, "written_bytes", r->generation.bytes);
	json_put_real(o, "wall_s", s);
	if (r->generation.mean_file_bytes > 0)
		json_put_real(o, "mean_file_bytes", r->generation.mean_file_bytes);
	if (s > 0)
		json_put_real(o, "rate_bytes_per_s", (double)r->generation.bytes / s);
	return o;
}

static json_t *trace_facts(const struct result *r)
{
	json_t *o = json_object();
	uint64_t kept, dropped;

	trace_count(r->trace, &kept, &dropped);
	json_put_int(o, "spans", kept);
	json_put_int(o, "spans_dropped", dropped);
	json_put_int(o, "spans_a_reader", r->trace->capacity);
	return o;
}

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
	static const char *const names[] = {[ORIGIN_DEFAULT] = "default",
					    [ORIGIN_FILE] = "file",
					    [ORIGIN_OVERRIDE] = "override"};

	json_put_text(entry, "origin", names[o->source]);
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
		json_put(entry, "value",
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

static json_t *node_json(const struct node *n)
{
	json_t *o;

	if (n->kind == NODE_FLOAT || n->kind == NODE_INT)
		return json_number(n->f);
	if (n->kind != NODE_MAP)
		return json_text(n->s);
	o = json_object();
	for (size_t i = 0; i < n->n; i++)
		json_put(o, n->key[i], node_json(n->child[i]));
	return o;
}

/* What the label of framework.costs stands for. */
static json_t *costs_json(const struct framework_costs *c)
{
	struct node *doc = costs_node(c);
	json_t *o = node_json(doc);

	node_free(doc);
	return o;
}

static json_t *configuration(const struct workload *w)
{
	static const struct opt_origin unknown = {0};
	json_t *map = json_object();

	for (size_t i = 0; i < workload_row_count; i++) {
		const struct opt *row = &workload_rows[i];
		json_t *entry = json_object();

		json_put(entry, "value", typed_value(row, w, written_at(w, row->key)));
		if (row->unit)
			json_put_text(entry, "unit", row->unit);
		put_origin(entry, w->origin ? &w->origin[i] : &unknown);
		if (w->costs && strcmp(row->key, "framework.costs") == 0)
			json_put(entry, "profile", costs_json(w->costs));
		json_put(map, row->key, entry);
	}
	for (size_t i = 0; store_facts_table[i]; i++)
		if (store_expression_has(w->storage.store, store_facts_table[i]->name))
			put_store_options(map, w, store_facts_table[i]);
	return map;
}

static json_t *environment(const struct host_facts *h)
{
	json_t *env = json_object(), *versions = json_object();

	json_put_text(env, "hostname", h->hostname);
	json_put_text(env, "kernel", h->kernel);
	json_put_text(env, "processor", h->processor);
	json_put(env, "cpu_count", json_integer(h->cpu_count));
	json_put_real(env, "usable_cpus", h->usable_cpus);
	json_put_real(env, "memory_bytes", h->memory_gib * 1073741824.0);
	json_put_text(versions, "stoker", STOKER_VERSION);
	json_put_text(versions, "build", build_id);
	json_put_text(versions, "compiler", __VERSION__);
	json_put_text(versions, "libc", gnu_get_libc_version());
	json_put_text(versions, "jansson", jansson_version_str());
	json_put(env, "versions", versions);
	json_put_pairs(env, "cpuinfo", h->cpuinfo, h->cpuinfo_count);
	json_put_pairs(env, "meminfo", h->meminfo, h->meminfo_count);
	return env;
}

static void put_run(json_t *o, const struct result *r)
{
	const struct workload *w = r->workload;

	json_put_int(o, "schema", RESULT_SCHEMA);
	json_put_text(o, "program", "stoker");
	json_put_text(o, "version", STOKER_VERSION);
	if (r->id[0])
		json_put_text(o, "run_id", r->id);
	json_put_text(o, "status", status_names[r->status]);
	json_put_text(o, "reason", r->reason.code ? r->reason.text : NULL);
	json_put_text(o, "workload", w->choice);
	json_put(o, "overrides", json_texts(&w->overrides));
	json_put_int(o, "accelerators", r->ranks);
	json_put_time(o, "start", r->begin_wall_ns);
	json_put_time(o, "end", r->end_wall_ns);
	json_put_real(o, "wall_s", (double)(r->end_wall_ns - r->begin_wall_ns) / 1e9);
	json_put_text(o, "folder", r->folder);
	json_put(o, "verdicts", json_verdicts(&r->judged));
	if (r->judged.measured.text[0])
		json_put(o, "measured", json_measured(&r->judged.measured));
	json_put(o, "warnings", json_texts(&w->warnings));
	json_put(o, "notes", json_texts(&w->notes));
	if (r->judged.limit.text[0])
		json_put(o, "limit", json_limit(&r->judged.limit));
	if (r->judged.outlook.known || r->judged.outlook.why[0])
		json_put(o, "what_if", json_what_if(&r->judged.outlook));
	if (r->judged.basis)
		json_put(o, "fleet", json_basis(r->judged.basis));
	if (r->probe.asked)
		json_put(o, "probe", json_probe(&r->probe));
}

static int write_sealed(json_t *o, const char *folder, struct sink_out *out, struct err *e)
{
	AUTO_FREE char *text = json_file_text(o);

	json_decref(o);
	if (!text)
		return err_set(e, -ENOMEM, "there is no memory to write '%s/result.json'", folder);
	seal_text(&text);
	return sink_put(out, folder, "result.json", text, strlen(text), e);
}

static json_t *json_barrier(const struct result *r)
{
	const struct barrier_cost *b = &r->barrier;
	double share = result_barrier_share(r);
	json_t *o = json_object();

	json_put_text(o, "over", result_barrier_way(b));
	json_put_int(o, "processes", b->processes);
	if (b->processes > 1) {
		json_put_int(o, "depth", b->depth);
		json_put_real(o, "messages", b->messages);
	}
	if (b->library[0])
		json_put_text(o, "library", b->library);
	if (b->sockets_s > 0)
		json_put_real(o, "sockets_s", b->sockets_s);
	if (b->mpi_s > 0)
		json_put_real(o, "mpi_s", b->mpi_s);
	json_put_int(o, "barriers", b->count);
	json_put_real(o, "median_s", b->median_s);
	json_put_real(o, "mean_s", b->mean_s);
	json_put_real(o, "max_s", b->max_s);
	if (isfinite(share))
		json_put_real(o, "percent_of_step", 100 * share);
	return o;
}

static int render_json(const struct result *r, const struct run_metrics *m, struct sink_out *out,
		       struct err *e)
{
	json_t *o = json_object(), *memory = json_object(), *seal;

	put_run(o, r);
	if (r->trained && r->rank && r->usage)
		json_put(o, "training", json_training(r, m));
	if (r->barrier.count)
		json_put(o, "barrier", json_barrier(r));
	if ((r->trained || r->only_evaluated) && r->rank && r->usage)
		json_put(o, "need", json_need(r, m));
	if (r->trained && r->rank && r->usage)
		json_put(o, "ledger", json_ledger(r));
	if (r->host_source)
		json_put(o, "storage_path", json_storage_path(r));
	if (r->evaluated && r->rank && r->usage)
		json_put(o, "evaluation", json_evaluation(r, m));
	if (r->checkpointed && r->rank)
		json_put(o, "checkpoint", json_checkpoint(r));
	if (r->generated)
		json_put(o, "generation", generation_facts(r));
	if (r->dataset)
		json_put(o, "dataset", dataset_facts(r));
	json_put_int(memory, "bound_bytes", r->memory_bound_bytes);
	json_put_int(memory, "peak_rss_bytes", r->peak_rss_bytes);
	json_put(o, "memory", memory);
	if (r->trace)
		json_put(o, "trace", trace_facts(r));
	if (r->trained && r->rank)
		json_put(o, "ranks", json_ranks(r, m));
	if (r->process)
		json_put(o, "hosts", json_hosts(r));
	json_put(o, "environment", environment(&r->host));
	json_put_pairs(o, "system", r->system.pair, r->system.pairs);
	if (r->series)
		json_put(o, "series", json_series(r));
	json_put(o, "configuration", configuration(r->workload));
	seal = sink_seal(out);
	json_put_text(seal, SEAL_SELF, "");
	json_put(o, "integrity", seal);
	return write_sealed(o, r->folder, out, e);
}

extern const struct sink_ops sink_json;
const struct sink_ops sink_json = {
	.name = "json",
	.help = "result.json: configuration, environment, every measure with its unit, verdicts",
	.render = render_json,
	.seals = true,
};
