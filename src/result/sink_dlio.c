/* The files of DLIO's output folder: summary.json, N_output.json and N_per_epoch_stats.json. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "result/dlio_log.h"
#include "result/json_out.h"
#include "result/sink.h"

/* ---- N_output.json and N_per_epoch_stats.json: the times of every step of one rank ---- */

enum step_value { STEP_LOAD, STEP_PROC, STEP_COMPUTE };

static json_t *step_list(const struct phase *p, enum step_value what)
{
	json_t *list = json_array();

	for (uint64_t i = 0; i < p->steps; i++) {
		const struct step_times *t = &p->step[i];
		int64_t ns = what == STEP_LOAD   ? t->got_ns - t->ask_ns
			     : what == STEP_PROC ? t->compute_end_ns - t->ask_ns
						 : t->compute_end_ns - t->compute_begin_ns;

		json_array_append_new(list, json_real((double)ns / 1e9));
	}
	return list;
}

/* The maps of one epoch of N_output.json: each has one entry a phase. */
struct epoch_maps {
	json_t *load, *proc, *throughput, *au, *compute;
};

static void add_phase(struct epoch_maps *m, const struct result *r, const struct phase *p,
		      const char *name)
{
	double au, throughput;
	uint64_t measured;
	char why[256];

	json_put(m->load, name, step_list(p, STEP_LOAD));
	json_put(m->proc, name, step_list(p, STEP_PROC));
	json_put(m->compute, name, step_list(p, STEP_COMPUTE));
	if (metrics_phase(r, p, &au, &throughput, &measured, why, sizeof(why)))
		json_put_real(m->au, name, au);
	else if (!(throughput > 0))
		return;
	json_put_real(m->throughput, name, throughput);
}

static json_t *epoch_output(const struct result *r, uint32_t rank, uint32_t epoch)
{
	const struct rank_epoch *ep = &r->rank[rank].epoch[epoch];
	struct epoch_maps m = {json_object(), json_object(), json_object(), json_object(),
			       json_object()};
	const struct sysinfo_pair *memory;
	json_t *out = json_object();
	size_t memory_count;
	char name[32];

	for (uint32_t b = 0; b < ep->blocks; b++) {
		snprintf(name, sizeof(name), "block%u", ep->block[b].number);
		add_phase(&m, r, &ep->block[b], name);
	}
	if (ep->has_eval)
		add_phase(&m, r, &ep->eval, "eval");
	if (!r->trained && !r->only_evaluated)
		json_put_time(out, "start", ep->begin_wall_ns);
	json_put(out, "load", m.load);
	json_put(out, "proc", m.proc);
	json_put(out, "throughput", m.throughput);
	json_put(out, "au", m.au);
	json_put(out, "compute", m.compute);
	result_rank_memory(r, rank, epoch, &memory, &memory_count);
	if (r->trained || r->only_evaluated)
		json_put(out, "host_meminfo", json_pairs(memory, memory_count));
	if (ep->end_wall_ns)
		json_put_time(out, "end", ep->end_wall_ns);
	return out;
}

static json_t *rank_output(const struct result *r, uint32_t rank)
{
	const struct host_facts *h = result_rank_host(r, rank);
	json_t *out = json_object();
	char name[32];

	json_put_mark(out);
	json_put_real(out, "host_memory_GB", h->memory_gib);
	json_put(out, "host_cpu_count", json_integer(h->cpu_count));
	json_put_text(out, "host_processor_name", h->processor);
	json_put(out, "potential_caching", json_integer(dlio_fits_memory(r, h)));
	json_put(out, "host_cpuinfo", json_pairs(h->cpuinfo, h->cpuinfo_count));
	json_put(out, "host_meminfo", json_pairs(h->meminfo, h->meminfo_count));
	for (uint32_t i = 0; i < r->epochs_begun; i++) {
		snprintf(name, sizeof(name), "%u", i + 1);
		json_put(out, name, epoch_output(r, rank, i));
	}
	json_put_text(out, "hostname", h->hostname);
	return out;
}

/* DLIO subtracts its two timestamps, which have microseconds. */
static void put_duration(json_t *object, int64_t begin_wall_ns, int64_t end_wall_ns)
{
	char text[64];

	snprintf(text, sizeof(text), "%.2f",
		 (double)(end_wall_ns / 1000 - begin_wall_ns / 1000) / 1e6);
	json_put_text(object, "duration", text);
}

static void put_span(json_t *object, const char *name, int64_t begin_wall_ns, int64_t end_wall_ns)
{
	json_t *span = json_object();

	json_put_time(span, "start", begin_wall_ns);
	if (end_wall_ns) {
		json_put_time(span, "end", end_wall_ns);
		put_duration(span, begin_wall_ns, end_wall_ns);
	}
	json_put(object, name, span);
}

static void put_checkpoint(json_t *object, const struct result *r, const struct checkpoint_times *t,
			   const char *what)
{
	double took = (double)(t->end_wall_ns / 1000 - t->begin_wall_ns / 1000) / 1e6;
	json_t *span = json_object();
	char name[32];

	snprintf(name, sizeof(name), "%s_ckpt%u", what, t->number);
	json_put_time(span, "start", t->begin_wall_ns);
	if (t->done) {
		json_put_time(span, "end", t->end_wall_ns);
		json_put_real(span, "duration", took);
		/* microseconds can be too coarse for a rank that writes nothing */
		if (took <= 0)
			took = (double)(t->end_ns - t->begin_ns) / 1e9;
		if (took > 0)
			json_put_real(span, "throughput", dlio_checkpoint_gib(r) / took);
	}
	json_put(object, name, span);
}

static json_t *epoch_spans(const struct result *r, const struct rank_epoch *ep)
{
	json_t *out = json_object();
	char name[32];

	/* readers go over the numbers of epochs, and in an epoch look at objects only */
	json_put_mark(out);
	json_put_time(out, "start", ep->begin_wall_ns);
	for (uint32_t b = 0; b < ep->blocks; b++) {
		const struct phase *p = &ep->block[b];

		snprintf(name, sizeof(name), "block%u", p->number);
		put_span(out, name, p->begin_wall_ns, p->end_wall_ns);
		if (b < ep->saves)
			put_checkpoint(out, r, &ep->save[b], "save");
	}
	for (uint32_t i = ep->blocks; i < ep->saves; i++)
		put_checkpoint(out, r, &ep->save[i], "save");
	for (uint32_t i = 0; i < ep->loads; i++)
		put_checkpoint(out, r, &ep->load[i], "load");
	if (ep->end_wall_ns)
		json_put_time(out, "end", ep->end_wall_ns);
	if (ep->train_end_wall_ns)
		put_duration(out, ep->begin_wall_ns, ep->train_end_wall_ns);
	if (ep->has_eval)
		put_span(out, "eval", ep->eval.begin_wall_ns, ep->eval.end_wall_ns);
	return out;
}

static json_t *rank_epochs(const struct result *r, uint32_t rank)
{
	json_t *out = json_object();
	char name[32];

	for (uint32_t i = 0; i < r->epochs_begun; i++) {
		/* another rank may have been first into an epoch that ended there */
		if (r->rank[rank].epoch[i].begin_wall_ns == 0)
			continue;
		snprintf(name, sizeof(name), "%u", i + 1);
		json_put(out, name, epoch_spans(r, &r->rank[rank].epoch[i]));
	}
	if (json_object_size(out) == 0)
		json_put_mark(out);
	return out;
}

/* ---- summary.json, key by key in DLIO's order ---- */

/* Readers of DLIO's files add and print what lists hold: what was not measured is not in them, and
 * result.json says why. */
static void append_measured(json_t *list, double v)
{
	if (isfinite(v))
		json_array_append_new(list, json_real(v));
}

/* Takes ownership of the value; the key is made. */
__attribute__((format(printf, 3, 4))) static void put_as(json_t *metric, json_t *value,
							 const char *fmt, ...)
{
	char key[80];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(key, sizeof(key), fmt, ap);
	va_end(ap);
	json_put(metric, key, value);
}

static void put_stat(json_t *metric, const char *of, const char *unit, const struct series_stat *s)
{
	if (s->count && isfinite(s->mean))
		put_as(metric, json_real(s->mean), "%s_mean_%s", of, unit);
	if (s->count && isfinite(s->stdev))
		put_as(metric, json_real(s->stdev), "%s_stdev_%s", of, unit);
}

/* Of "train" or "eval": each value of AU and throughput, and what they are on average. */
static void put_phase(json_t *metric, const struct result *r, const char *phase, json_t *values[2],
		      const struct series_stat *au, const struct series_stat *rate,
		      const struct series_stat *io)
{
	char of[32];

	put_as(metric, values[0], "%s_au_percentage", phase);
	if (au->count && isfinite(au->mean))
		put_as(metric, json_real(au->mean), "%s_au_mean_percentage", phase);
	put_as(metric, json_text(dlio_expectation(r, au)), "%s_au_meet_expectation", phase);
	if (au->count && isfinite(au->stdev))
		put_as(metric, json_real(au->stdev), "%s_au_stdev_percentage", phase);
	put_as(metric, values[1], "%s_throughput_samples_per_second", phase);
	snprintf(of, sizeof(of), "%s_throughput", phase);
	put_stat(metric, of, "samples_per_second", rate);
	snprintf(of, sizeof(of), "%s_io", phase);
	put_stat(metric, of, "MB_per_second", io);
}

static void put_train(json_t *metric, const struct result *r, const struct run_metrics *m)
{
	json_t *values[2] = {json_array(), json_array()};

	for (uint32_t i = 0; i < m->epochs; i++) {
		const struct epoch_metrics *e = &m->epoch[i];

		if (e->steps == 0 || !e->train_valid)
			continue;
		append_measured(values[0], e->train_au);
		append_measured(values[1], e->train_throughput);
	}
	put_phase(metric, r, "train", values, &m->train_au, &m->train_throughput, &m->train_io);
}

static void put_eval(json_t *metric, const struct result *r, const struct run_metrics *m)
{
	json_t *values[2] = {json_array(), json_array()};

	for (uint32_t i = 0; i < m->evals; i++) {
		append_measured(values[0], m->eval_au_list[i]);
		append_measured(values[1], m->eval_throughput_list[i]);
	}
	put_phase(metric, r, "eval", values, &m->eval_au, &m->eval_throughput, &m->eval_io);
}

static void put_checkpoints(json_t *metric, const struct result *r)
{
	struct series_stat duration, rate;

	for (int load = 0; load < 2; load++) {
		const char *io = load ? "load_checkpoint_io" : "save_checkpoint_io";

		checkpoint_series(r, load, &duration, &rate);
		put_stat(metric, io, "GB_per_second", &rate);
		put_stat(metric, load ? "load_checkpoint_duration" : "save_checkpoint_duration",
			 "seconds", &duration);
	}
	json_put_real(metric, "checkpoint_size_GB", dlio_checkpoint_gib(r));
}

enum host_value { HOST_CPUS, HOST_MEMORY, HOST_CACHING };

/* One value a host of which they are known. */
static json_t *by_host(const struct result *r, enum host_value what)
{
	json_t *list = json_array();

	for (uint32_t n = 0; n < (r->nodes ? r->nodes : 1); n++) {
		const struct host_facts *h = result_node_host(r, n);

		if (h && what == HOST_MEMORY)
			append_measured(list, h->memory_gib);
		else if (h)
			json_array_append_new(list, json_integer(what == HOST_CPUS
									 ? h->cpu_count
									 : dlio_fits_memory(r, h)));
	}
	return list;
}

static json_t *summary(const struct result *r, const struct run_metrics *m)
{
	const struct workload *w = r->workload;
	json_t *s = json_object(), *metric = json_object();

	json_put_mark(s);
	json_put_time(s, "start", r->begin_wall_ns);
	json_put_int(s, "num_accelerators", r->ranks);
	json_put_int(s, "num_hosts", r->nodes ? r->nodes : 1);
	json_put_text(s, "hostname", r->host.hostname);
	if (r->checkpointed)
		put_checkpoints(metric, r);
	if (r->trained)
		put_train(metric, r, m);
	if (r->evaluated)
		put_eval(metric, r, m);
	json_put(s, "metric", metric);
	json_put(s, "num_files_train", json_integer(w->dataset.num_files_train));
	json_put(s, "num_files_eval", json_integer(w->dataset.num_files_eval));
	/* whoever multiplies it by the files has the samples, also where files have different
	 * numbers */
	if (workload_files_differ(w))
		json_put_real(s, "num_samples_per_file", workload_file_samples(w, false));
	else
		json_put(s, "num_samples_per_file", json_integer(w->dataset.num_samples_per_file));
	json_put(s, "host_cpu_count", by_host(r, HOST_CPUS));
	json_put_text(s, "host_processor_name", r->host.processor);
	json_put(s, "potential_caching", by_host(r, HOST_CACHING));
	json_put(s, "host_cpuinfo", json_pairs(r->host.cpuinfo, r->host.cpuinfo_count));
	json_put(s, "host_meminfo", json_pairs(r->host.meminfo, r->host.meminfo_count));
	json_put(s, "host_memory_GB", by_host(r, HOST_MEMORY));
	json_put_real(s, "data_size_per_host_GB", dlio_data_gib(r));
	json_put_int(s, "epochs", r->epochs_done);
	json_put_time(s, "end", r->end_wall_ns);
	return s;
}

/* ---- all of them ---- */

static int render_dlio(const struct result *r, const struct run_metrics *m, struct sink_out *out,
		       struct err *e)
{
	char name[64];
	int rc = 0;

	if ((!r->trained && !r->checkpointed && !r->only_evaluated) || !r->rank)
		return 0;
	for (uint32_t k = 0; rc == 0 && k < r->ranks; k++) {
		if (r->rank[k].lost)
			continue;
		snprintf(name, sizeof(name), "%u_per_epoch_stats.json", k);
		rc = sink_put_json(out, rank_epochs(r, k), r->folder, name, e);
		if (rc < 0)
			break;
		snprintf(name, sizeof(name), "%u_output.json", k);
		rc = sink_put_json(out, rank_output(r, k), r->folder, name, e);
	}
	if (rc == 0)
		rc = sink_put_json(out, summary(r, m), r->folder, "summary.json", e);
	return rc;
}

extern const struct sink_ops sink_dlio;
const struct sink_ops sink_dlio = {
	.name = "dlio",
	.help = "summary.json, N_output.json and N_per_epoch_stats.json as DLIO writes them",
	.render = render_dlio,
	.figures = true,
};
