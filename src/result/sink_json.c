/* result.json: everything a run was told, measured and judged to be, for programs. */
#include <math.h>
#include <string.h>

#include "result/json_out.h"
#include "result/json_parts.h"

/* Raised when a key changes its meaning or goes away; new keys do not raise it. */
#define RESULT_SCHEMA 1

static const char *const status_names[] = {
	[RUN_COMPLETE] = "complete", [RUN_INTERRUPTED] = "interrupted", [RUN_FAILED] = "failed"};
static const char *const level_names[] = {[VERDICT_PASS] = "pass",
					  [VERDICT_WARN] = "warn",
					  [VERDICT_FAIL] = "fail",
					  [VERDICT_UNKNOWN] = "unknown"};

static json_t *limit(const struct result *r)
{
	json_t *o = json_object();

	json_put_text(o, "cause", r->limit.cause);
	json_put_text(o, "text", r->limit.text);
	json_put_real(o, "lost_percent", r->limit.loss_share);
	return o;
}

static json_t *what_if(const struct result *r)
{
	const struct outlook *w = &r->outlook;
	json_t *o = json_object(), *list = json_array();

	json_put_real(o, "measured_whole_au_percent", w->measured_au);
	json_put_real(o, "modeled_whole_au_percent", w->modeled_au);
	if (w->changes)
		json_put_real(o, "storage_bytes_per_s", w->change[0].rate_now);
	json_put_real(o, "batch_fixed_s", w->fixed_s);
	json_put_real(o, "batch_shared_s", w->shared_s);
	json_put_bool(o, "sharing_known", w->sharing_known);
	json_put_real(o, "reads_latency_share", w->latency_share);
	json_put_real(o, "reads_stream_share", w->stream_share);
	json_put_real(o, "reads_shared_share", w->shared_share);
	json_put(o, "workers_for_90_percent",
		 w->workers_needed ? json_count(w->workers_needed) : json_null());
	for (uint32_t i = 0; i < w->changes; i++) {
		json_t *one = json_object();

		json_put_text(one, "change", w->change[i].change);
		/* without a figure the explanations of the reads say too different things */
		json_put_real(one, "whole_au_percent", w->change[i].known ? w->change[i].au : NAN);
		json_put_real(one, "error_points", w->change[i].known ? w->change[i].error : NAN);
		json_put_real(one, "low_percent", w->change[i].low);
		json_put_real(one, "high_percent", w->change[i].high);
		json_put_real(one, "storage_bytes_per_s", w->change[i].rate);
		json_array_append_new(list, one);
	}
	json_put(o, "changes", list);
	return o;
}

static json_t *verdict_list(const struct result *r)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < r->verdicts; i++) {
		json_t *o = json_object();

		json_put_text(o, "check", r->verdict[i].check);
		json_put_text(o, "level", level_names[r->verdict[i].level]);
		json_put_text(o, "text", r->verdict[i].text);
		json_array_append_new(list, o);
	}
	return list;
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
	json_put(o, "verdicts", verdict_list(r));
	json_put(o, "warnings", json_texts(&w->warnings));
	if (r->limit.text[0])
		json_put(o, "limit", limit(r));
	if (r->outlook.known)
		json_put(o, "what_if", what_if(r));
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
