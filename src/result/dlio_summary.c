/* summary.json, key by key in DLIO's order. */
#include <string.h>

#include "result/dlio_values.h"
#include "result/json_out.h"

static const double GIB = 1073741824.0;

double dlio_data_gib(const struct result *r)
{
	double share = 1;

	/* of the first host, by its ranks */
	for (uint32_t p = 0; p < r->processes; p++)
		share -= r->process[p].node != 0 ? (double)r->process[p].ranks / r->ranks : 0;
	return share * metrics_data_bytes(r) / GIB;
}

double dlio_checkpoint_gib(const struct result *r)
{
	return checkpoint_size_bytes(r) / GIB;
}

bool dlio_fits_memory(const struct result *r, const struct host_facts *h)
{
	return dlio_data_gib(r) <= h->memory_gib;
}

const char *dlio_expectation(const struct result *r, const struct series_stat *au)
{
	return au->count && au->mean >= r->workload->metric.au * 100 ? "success" : "fail";
}

static void put_stat(json_t *metric, const char *mean_key, const char *stdev_key,
		     const struct series_stat *s)
{
	if (s->count == 0)
		return;
	json_put_real(metric, mean_key, s->mean);
	json_put_real(metric, stdev_key, s->stdev);
}

static void put_train(json_t *metric, const struct result *r, const struct run_metrics *m)
{
	json_t *au = json_array(), *rate = json_array();

	for (uint32_t i = 0; i < m->epochs; i++) {
		const struct epoch_metrics *e = &m->epoch[i];

		if (e->steps == 0)
			continue;
		json_array_append_new(au, e->train_valid ? json_number(e->train_au) : json_null());
		json_array_append_new(rate, e->train_valid ? json_number(e->train_throughput)
							   : json_null());
	}
	json_put(metric, "train_au_percentage", au);
	if (m->train_au.count)
		json_put_real(metric, "train_au_mean_percentage", m->train_au.mean);
	json_put_text(metric, "train_au_meet_expectation", dlio_expectation(r, &m->train_au));
	if (m->train_au.count)
		json_put_real(metric, "train_au_stdev_percentage", m->train_au.stdev);
	json_put(metric, "train_throughput_samples_per_second", rate);
	put_stat(metric, "train_throughput_mean_samples_per_second",
		 "train_throughput_stdev_samples_per_second", &m->train_throughput);
	put_stat(metric, "train_io_mean_MB_per_second", "train_io_stdev_MB_per_second",
		 &m->train_io);
}

static void put_checkpoints(json_t *metric, const struct result *r)
{
	struct series_stat duration, rate;

	checkpoint_series(r, false, &duration, &rate);
	put_stat(metric, "save_checkpoint_io_mean_GB_per_second",
		 "save_checkpoint_io_stdev_GB_per_second", &rate);
	put_stat(metric, "save_checkpoint_duration_mean_seconds",
		 "save_checkpoint_duration_stdev_seconds", &duration);
	checkpoint_series(r, true, &duration, &rate);
	put_stat(metric, "load_checkpoint_io_mean_GB_per_second",
		 "load_checkpoint_io_stdev_GB_per_second", &rate);
	put_stat(metric, "load_checkpoint_duration_mean_seconds",
		 "load_checkpoint_duration_stdev_seconds", &duration);
	json_put_real(metric, "checkpoint_size_GB", dlio_checkpoint_gib(r));
}

static void put_eval(json_t *metric, const struct result *r, const struct run_metrics *m)
{
	json_t *au = json_array(), *rate = json_array();

	for (uint32_t i = 0; i < m->evals; i++) {
		json_array_append_new(au, json_number(m->eval_au_list[i]));
		json_array_append_new(rate, json_number(m->eval_throughput_list[i]));
	}
	json_put(metric, "eval_au_percentage", au);
	if (m->eval_au.count)
		json_put_real(metric, "eval_au_mean_percentage", m->eval_au.mean);
	json_put_text(metric, "eval_au_meet_expectation", dlio_expectation(r, &m->eval_au));
	if (m->eval_au.count)
		json_put_real(metric, "eval_au_stdev_percentage", m->eval_au.stdev);
	json_put(metric, "eval_throughput_samples_per_second", rate);
	put_stat(metric, "eval_throughput_mean_samples_per_second",
		 "eval_throughput_stdev_samples_per_second", &m->eval_throughput);
	put_stat(metric, "eval_io_mean_MB_per_second", "eval_io_stdev_MB_per_second", &m->eval_io);
}

enum host_value { HOST_CPUS, HOST_MEMORY, HOST_CACHING };

/* One value a host. */
static json_t *by_host(const struct result *r, enum host_value what)
{
	json_t *list = json_array();

	for (uint32_t n = 0; n < (r->nodes ? r->nodes : 1); n++) {
		const struct host_facts *h = result_node_host(r, n);

		json_array_append_new(list, !h                  ? json_null()
					    : what == HOST_CPUS ? json_integer(h->cpu_count)
					    : what == HOST_MEMORY
						    ? json_number(h->memory_gib)
						    : json_integer(dlio_fits_memory(r, h)));
	}
	return list;
}

json_t *dlio_summary(const struct result *r, const struct run_metrics *m)
{
	const struct workload *w = r->workload;
	json_t *s = json_object(), *metric = json_object();

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
	json_put(s, "num_samples_per_file", json_integer(w->dataset.num_samples_per_file));
	json_put(s, "host_cpu_count", by_host(r, HOST_CPUS));
	json_put_text(s, "host_processor_name", r->host.processor);
	json_put(s, "potential_caching", by_host(r, HOST_CACHING));
	json_put_pairs(s, "host_cpuinfo", r->host.cpuinfo, r->host.cpuinfo_count);
	json_put_pairs(s, "host_meminfo", r->host.meminfo, r->host.meminfo_count);
	json_put(s, "host_memory_GB", by_host(r, HOST_MEMORY));
	json_put_real(s, "data_size_per_host_GB", dlio_data_gib(r));
	json_put_int(s, "epochs", r->epochs_done);
	json_put_time(s, "end", r->end_wall_ns);
	return s;
}
