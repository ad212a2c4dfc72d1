/* result.json: everything a run was told, measured and judged to be, for programs. */
#include <string.h>

#include "result/json_out.h"
#include "result/json_parts.h"
#include "result/sink.h"

/* Raised when a key changes its meaning or goes away; new keys do not raise it. */
#define RESULT_SCHEMA 1

static const char *const status_names[] = {
	[RUN_COMPLETE] = "complete", [RUN_INTERRUPTED] = "interrupted", [RUN_FAILED] = "failed"};
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
	json_put_text(o, "checked_by",
		      !r->presence.note[0]                   ? NULL
		      : r->presence.how == PRESENCE_MANIFEST ? "manifest"
		      : r->presence.how == PRESENCE_ASSUMED  ? "nothing"
							     : "sizes");
	json_put_int(o, "files_found", r->presence.files_found);
	json_put_int(o, "sizes_checked", r->presence.sizes_checked);
	json_put_text(o, "note", r->presence.note);
	return o;
}

static json_t *generation(const struct result *r)
{
	json_t *o = json_object();
	double s = (double)r->generation.wall_ns / 1e9;

	json_put_int(o, "files_written", r->generation.files);
	json_put_int(o, "files_kept", r->generation.skipped);
	json_put_int(o, "written_bytes", r->generation.bytes);
	json_put_real(o, "wall_s", s);
	if (s > 0)
		json_put_real(o, "rate_bytes_per_s", (double)r->generation.bytes / s);
	return o;
}

static json_t *trace(const struct result *r)
{
	json_t *o = json_object();
	uint64_t kept, dropped;

	trace_count(r->trace, &kept, &dropped);
	json_put_int(o, "spans", kept);
	json_put_int(o, "spans_dropped", dropped);
	json_put_int(o, "spans_a_reader", r->trace->capacity);
	return o;
}

static void put_run(json_t *o, const struct result *r)
{
	const struct workload *w = r->workload;

	json_put_int(o, "schema", RESULT_SCHEMA);
	json_put_text(o, "program", "stoker");
	json_put_text(o, "version", STOKER_VERSION);
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
	json_put(o, "warnings", json_texts(&w->warnings));
	if (r->judged.limit.text[0])
		json_put(o, "limit", json_limit(&r->judged.limit));
	if (r->judged.outlook.known)
		json_put(o, "what_if", json_what_if(&r->judged.outlook));
}

static int render(const struct result *r, const struct run_metrics *m, struct err *e)
{
	json_t *o = json_object(), *memory = json_object();

	put_run(o, r);
	if (r->trained && r->rank && r->usage)
		json_put(o, "training", json_training(r, m));
	if (r->trained && r->rank && r->usage)
		json_put(o, "ledger", json_ledger(r));
	if (r->host_source)
		json_put(o, "storage_path", json_storage_path(r));
	if (r->evaluated && r->rank && r->usage)
		json_put(o, "evaluation", json_evaluation(r, m));
	if (r->checkpointed && r->rank)
		json_put(o, "checkpoint", json_checkpoint(r));
	if (r->generated)
		json_put(o, "generation", generation(r));
	if (r->dataset)
		json_put(o, "dataset", dataset_facts(r));
	json_put_int(memory, "bound_bytes", r->memory_bound_bytes);
	json_put_int(memory, "peak_rss_bytes", r->peak_rss_bytes);
	json_put(o, "memory", memory);
	if (r->trace)
		json_put(o, "trace", trace(r));
	if (r->trained && r->rank)
		json_put(o, "ranks", json_ranks(r, m));
	if (r->process)
		json_put(o, "hosts", json_hosts(r));
	json_put(o, "environment", json_environment(&r->host));
	json_put_pairs(o, "system", r->system.pair, r->system.pairs);
	if (r->series)
		json_put(o, "series", json_series(r));
	json_put(o, "configuration", json_configuration(r->workload));
	return json_write(o, r->folder, "result.json", e);
}

extern const struct sink_ops sink_json;
const struct sink_ops sink_json = {
	.name = "json",
	.help = "result.json: configuration, environment, every measure with its unit, verdicts",
	.render = render,
};
