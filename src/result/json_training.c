/* The measures of result.json: training, evaluation, ranks. Units are in the names of the keys. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "result/json_out.h"
#include "result/json_result.h"

/* "<name>_mean_<unit>" and so on; nothing when there is no value. */
static void put_series(json_t *o, const char *name, const char *unit, const struct series_stat *s)
{
	const struct {
		const char *what;
		double v;
	} parts[] = {{"mean", s->mean}, {"stdev", s->stdev}, {"min", s->min}, {"max", s->max}};
	char key[96];

	for (size_t i = 0; s->count && i < sizeof(parts) / sizeof(parts[0]); i++) {
		snprintf(key, sizeof(key), "%s_%s_%s", name, parts[i].what, unit);
		json_put_real(o, key, parts[i].v);
	}
}

static json_t *proc_io_of(const struct proc_io *p)
{
	json_t *o = json_object();

	if (!p->known)
		return json_decref(o), json_null();
	json_put_int(o, "read_calls", p->syscr);
	json_put_int(o, "returned_bytes", p->rchar_bytes);
	json_put_int(o, "device_read_bytes", p->read_bytes);
	json_put_int(o, "device_write_bytes", p->write_bytes);
	return o;
}

static void put_known(json_t *o, const char *key, bool known, uint64_t v)
{
	if (known)
		json_put_int(o, key, v);
	else
		json_put(o, key, json_null());
}

/* What was cached and what the kernel had taken back, `when`: "at_start". Null, and why, where this
 * look failed. */
static void put_residency(json_t *o, const char *when, const struct residency *c)
{
	char key[64];

	snprintf(key, sizeof(key), "cached_%s_bytes", when);
	put_known(o, key, c->known, c->cached_bytes);
	snprintf(key, sizeof(key), "reclaimed_%s_bytes", when);
	if (!c->mincore)
		put_known(o, key, c->known, c->reclaimed_bytes);
	if (!c->known && c->why[0] && !json_object_get(o, "missing_because"))
		json_put_text(o, "missing_because", c->why);
}

/* What the page cache held of the dataset around an epoch; null where nobody looked. */
static json_t *page_cache_of(const struct result *r, const struct epoch_usage *u)
{
	const struct residency *c = u->cache_start.known ? &u->cache_start : &u->cache_end;
	json_t *o = json_object();

	if (!c->known) {
		if (!u->cache_start.why[0])
			return json_decref(o), json_null();
		json_put_text(o, "missing_because", u->cache_start.why);
		return o;
	}
	json_put_text(o, "file_system", c->file_system);
	json_put_text(o, "method", c->mincore ? "mincore" : "cachestat");
	if (c->hosts > 1 && r->process && c->process < r->processes) {
		json_put_text(o, "host", r->process[c->process].hostname);
		json_put_int(o, "hosts", c->hosts);
	}
	json_put_int(o, "files", c->files);
	json_put_int(o, "files_looked_at", c->looked);
	json_put_int(o, "bytes_looked_at", c->bytes);
	if (u->evicted) {
		put_residency(o, "before_eviction", &u->cache_found);
		json_put_real(o, "eviction_s", (double)u->evict_ns / 1e9);
	}
	put_residency(o, "at_start", &u->cache_start);
	put_residency(o, "at_end", &u->cache_end);
	return o;
}

/* How one measure spreads over the ranks of an epoch. */
enum rank_measure {
	RANK_AU,
	RANK_WHOLE,
	RANK_RATE,
	RANK_WAIT,
	RANK_BARRIER,
	RANK_WALL,
	RANK_MEASURES
};

static const struct {
	const char *name, *unit;
} rank_measures[RANK_MEASURES] = {
	[RANK_AU] = {"au", "percent"},
	[RANK_WHOLE] = {"whole_au", "percent"},
	[RANK_RATE] = {"throughput", "samples_per_s"},
	[RANK_WAIT] = {"exposed_wait", "s"},
	[RANK_BARRIER] = {"barrier_wait", "s"},
	[RANK_WALL] = {"wall", "s"},
};

static double rank_measure(const struct rank_epoch_metrics *k, enum rank_measure what)
{
	switch (what) {
	case RANK_AU:
		return k->train_valid ? k->train_au : NAN;
	case RANK_RATE:
		return k->train_valid ? k->train_throughput : NAN;
	case RANK_WHOLE:
		return k->whole_au;
	case RANK_WAIT:
		return k->exposed_wait_s;
	case RANK_BARRIER:
		return k->barrier_wait_s;
	default:
		return k->wall_s;
	}
}

static json_t *rank_spread(const struct result *r, uint32_t epoch)
{
	double *v = xcalloc(r->ranks, RANK_MEASURES * sizeof(*v));
	json_t *o = json_object();

	for (uint32_t k = 0; k < r->ranks; k++) {
		struct rank_epoch_metrics one;

		metrics_rank_epoch(r, k, epoch, &one);
		for (int i = 0; i < RANK_MEASURES; i++)
			v[(size_t)i * r->ranks + k] =
				r->rank[k].lost ? NAN : rank_measure(&one, (enum rank_measure)i);
	}
	for (int i = 0; i < RANK_MEASURES; i++) {
		struct series_stat s = series_stat_of(v + (size_t)i * r->ranks, r->ranks);

		put_series(o, rank_measures[i].name, rank_measures[i].unit, &s);
	}
	free(v);
	return o;
}

/* Of the host that was shortest of memory; what the kernel does not say is left out. */
static json_t *memory_pressure_of(const struct memory_pressure *p)
{
	json_t *o = json_object();

	if (p->stall_ns >= 0)
		json_put_real(o, "stall_s", (double)p->stall_ns / 1e9);
	if (p->refault_bytes >= 0)
		json_put_int(o, "refault_bytes", (uint64_t)p->refault_bytes);
	if (p->limit_bytes)
		json_put_int(o, "control_group_limit_bytes", p->limit_bytes);
	return o;
}

/* What the readers of all ranks asked for in a phase. */
static void put_requested(json_t *o, const struct result *r, uint32_t epoch, bool eval)
{
	const struct epoch_judgement *e = &r->judged.epoch[epoch];
	const double *bytes = eval ? e->eval_bytes : e->train_bytes;

	if (isnan(bytes[LEDGER_ASKED]))
		return;
	json_put_int(o, "asked_bytes", (uint64_t)bytes[LEDGER_ASKED]);
	json_put_int(o, "returned_bytes", (uint64_t)bytes[LEDGER_RETURNED]);
}

/* Of the processor time, what was spent as the framework's own code would; only with costs. */
static void put_framework(json_t *o, const struct result *r, uint32_t epoch, bool eval)
{
	if (r->workload->costs)
		json_put_real(o, "framework_cpu_s", result_framework_ns(r, epoch, eval) / 1e9);
}

static json_t *train_epoch(const struct result *r, const struct run_metrics *m, uint32_t epoch)
{
	const struct epoch_metrics *e = &m->epoch[epoch];
	const struct epoch_usage *u = &r->usage[epoch];
	json_t *o = json_object();

	json_put_int(o, "epoch", epoch + 1);
	json_put_int(o, "steps", e->steps);
	json_put_int(o, "measured_steps", e->measured_steps);
	if (e->train_valid) {
		json_put_real(o, "au_percent", e->train_au);
		json_put_real(o, "throughput_samples_per_s", e->train_throughput);
		json_put_real(o, "io_mib_per_s", e->train_io_mib);
	} else {
		json_put_text(o, "au_missing_because", e->why);
	}
	json_put_real(o, "whole_au_percent", e->whole_au);
	json_put_real(o, "whole_throughput_samples_per_s", e->whole_throughput);
	json_put_real(o, "payload_rate_bytes_per_s", e->whole_payload_rate);
	json_put_int(o, "samples", e->samples);
	json_put_int(o, "payload_bytes", e->payload_bytes);
	put_requested(o, r, epoch, false);
	json_put_real(o, "wall_s", e->wall_s);
	json_put_real(o, "compute_s", e->compute_s);
	json_put_real(o, "compute_late_s", e->compute_late_s);
	json_put_real(o, "exposed_wait_s", e->exposed_wait_s);
	json_put_real(o, "barrier_wait_s", e->barrier_wait_s);
	json_put_real(o, "cpu_s", (double)u->cpu_ns / 1e9);
	put_framework(o, r, epoch, false);
	json_put(o, "process_io", proc_io_of(&u->train));
	json_put(o, "host_io", json_host_io(r, &u->host_train));
	json_put(o, "memory_pressure", memory_pressure_of(&u->memory));
	json_put_processors(o, r, &u->cpu_train, u->cpu_train_process);
	json_put(o, "page_cache", page_cache_of(r, u));
	json_put_bool(o, "order_proved", u->order_kept == ORDER_KEPT);
	json_put_text(o, "order_note", u->order_note);
	json_put(o, "over_ranks", rank_spread(r, epoch));
	json_put(o, "decomposition", json_decomposition(&r->judged.epoch[epoch].time));
	return o;
}

/* Over all ranks; too large for a stack. */
static json_t *merged_io(const struct result *r, bool eval, json_t *totals)
{
	struct io_stat *sum = xmalloc(sizeof(*sum));
	uint64_t asked, returned;
	json_t *io;

	io_stat_init(sum);
	for (uint32_t k = 0; k < r->ranks && !eval; k++)
		io_stat_merge(sum, &r->rank[k].train_io);
	if (eval && r->eval_io)
		io_stat_merge(sum, r->eval_io);
	asked = sum->kind[IO_DATA].asked_bytes + sum->kind[IO_META].asked_bytes;
	returned = sum->kind[IO_DATA].returned_bytes + sum->kind[IO_META].returned_bytes;
	json_put_int(totals, "asked_bytes", asked);
	json_put_int(totals, "returned_bytes", returned);
	io = json_io(sum);
	free(sum);
	return io;
}

static json_t *json_reading(const struct busy_reading *b)
{
	json_t *o = json_object();

	json_put_real(o, "busy_s", b->busy_s);
	json_put_real(o, "batches", b->batches);
	json_put_real(o, "later_busy_s", b->later_s);
	json_put_real(o, "later_batches", b->later_batches);
	return o;
}

json_t *json_training(const struct result *r, const struct run_metrics *m)
{
	const struct workload *w = r->workload;
	json_t *o = json_object(), *epochs = json_array(), *io;

	assert(r->judged.epochs >= m->epochs);
	json_put_text(o, "definition", w->compat.dlio ? "dlio" : "stoker");
	json_put_int(o, "epochs_planned", r->epochs_planned);
	json_put_int(o, "epochs_begun", r->epochs_begun);
	json_put_int(o, "epochs_done", r->epochs_done);
	json_put_int(o, "steps_per_epoch", r->steps_per_epoch);
	json_put_int(o, "dropped_samples_per_epoch", r->dropped_samples);
	json_put_int(o, "shuffle_seed", r->shuffle_seed);
	json_put_real(o, "au_target_percent", w->metric.au * 100);
	json_put_real(o, "whole_run_au_percent", m->whole.au);
	json_put_real(o, "whole_run_samples_per_s", m->whole.throughput);
	json_put_real(o, "whole_run_payload_bytes_per_s", m->whole.payload_rate);
	put_series(o, "au", "percent", &m->train_au);
	put_series(o, "throughput", "samples_per_s", &m->train_throughput);
	put_series(o, "io", "mib_per_s", &m->train_io);
	put_series(o, "whole_au", "percent", &m->whole_au);
	json_put_real(o, "compute_late_mean_percent", m->late_percent);
	put_series(o, "whole_throughput", "samples_per_s", &m->whole_throughput);
	put_series(o, "payload_rate", "bytes_per_s", &m->payload_rate);
	json_put_text(o, "payload_counts",
		      "decoded bytes of samples read from the store; those served "
		      "from a reader's own copy of a file add none");
	json_put_int(o, "payload_bytes", m->payload_bytes);
	json_put(o, "device_read_bytes",
		 m->device_known ? json_count(m->device_bytes) : json_null());
	if (m->overshoot_known) {
		json_put_real(o, "compute_overshoot_mean_s", m->compute_overshoot_mean_s);
		json_put_real(o, "compute_overshoot_max_s", m->compute_overshoot_max_s);
	}
	io = merged_io(r, false, o);
	for (uint32_t i = 0; i < m->epochs; i++)
		json_array_append_new(epochs, train_epoch(r, m, i));
	json_put(o, "epochs", epochs);
	if (m->epochs)
		json_put(o, "decomposition", json_decomposition(&r->judged.time));
	if (m->epochs && r->rank)
		json_put(o, "stragglers", json_stragglers(r));
	if (m->epochs && r->rank)
		json_put(o, "reading", json_reading(&r->judged.reading));
	if (m->epochs && r->rank)
		json_put(o, "steadiness", json_steadiness(&r->judged.steady));
	json_put(o, "io", io);
	return o;
}

json_t *json_evaluation(const struct result *r, const struct run_metrics *m)
{
	json_t *o = json_object(), *epochs = json_array(), *io;

	json_put_int(o, "steps", r->eval_steps);
	put_series(o, "au", "percent", &m->eval_au);
	if (m->eval_au.count)
		json_put_real(o, "whole_au_mean_percent", r->judged.eval_steady.whole_au);
	put_series(o, "throughput", "samples_per_s", &m->eval_throughput);
	put_series(o, "io", "mib_per_s", &m->eval_io);
	for (uint32_t i = 0; i < m->epochs; i++) {
		const struct epoch_metrics *e = &m->epoch[i];
		json_t *one;

		if (!e->has_eval)
			continue;
		one = json_object();
		json_put_int(one, "epoch", i + 1);
		if (e->eval_valid)
			json_put_real(one, "au_percent", e->eval_au);
		else
			json_put_text(one, "au_missing_because", e->eval_why);
		if (e->eval_throughput > 0) {
			json_put_real(one, "throughput_samples_per_s", e->eval_throughput);
			json_put_real(one, "io_mib_per_s", e->eval_io_mib);
		}
		json_put_int(one, "samples", e->eval_samples);
		json_put_int(one, "payload_bytes", e->eval_payload_bytes);
		put_requested(one, r, i, true);
		json_put_real(one, "wall_s", e->eval_wall_s);
		json_put_real(one, "cpu_s", (double)r->usage[i].cpu_eval_ns / 1e9);
		put_framework(one, r, i, true);
		put_residency(one, "at_start", &r->usage[i].cache_eval);
		if (r->usage[i].cache_eval.known)
			json_put_int(one, "bytes_looked_at", r->usage[i].cache_eval.bytes);
		json_put(one, "process_io", proc_io_of(&r->usage[i].eval));
		json_put(one, "host_io", json_host_io(r, &r->usage[i].host_eval));
		json_put_processors(one, r, &r->usage[i].cpu_eval, r->usage[i].cpu_eval_process);
		if (r->usage[i].eval_order_note[0]) {
			json_put_bool(one, "order_proved",
				      r->usage[i].eval_order_kept == ORDER_KEPT);
			json_put_text(one, "order_note", r->usage[i].eval_order_note);
		}
		json_array_append_new(epochs, one);
	}
	io = merged_io(r, true, o);
	json_put(o, "epochs", epochs);
	json_put(o, "steadiness", json_steadiness(&r->judged.eval_steady));
	json_put(o, "io", io);
	return o;
}

json_t *json_ranks(const struct result *r, const struct run_metrics *m)
{
	json_t *list = json_array();

	for (uint32_t k = 0; k < r->ranks; k++) {
		const struct rank_result *rank = &r->rank[k];
		uint64_t payload = 0, samples = 0, requests = 0;
		double compute = 0, late = 0, wall = 0, wait = 0, barrier = 0;
		json_t *o = json_object();

		json_put_int(o, "rank", k);
		if (rank->lost) {
			json_put_bool(o, "lost", true);
			json_array_append_new(list, o);
			continue;
		}
		for (uint32_t i = 0; i < m->epochs; i++) {
			struct rank_epoch_metrics one;

			metrics_rank_epoch(r, k, i, &one);
			payload += one.payload_bytes;
			samples += one.samples;
			compute += one.compute_s - one.compute_late_s;
			late += one.compute_late_s;
			wall += one.wall_s;
			wait += one.exposed_wait_s;
			barrier += one.barrier_wait_s;
		}
		for (int i = 0; i < IO_KINDS; i++)
			requests += rank->train_io.kind[i].requests;
		json_put_int(o, "workers", rank->workers);
		json_put_int(o, "prefetch_batches", rank->prefetch_batches);
		json_put_int(o, "samples", samples);
		json_put_int(o, "payload_bytes", payload);
		json_put_int(o, "requests", requests);
		if (wall > 0)
			json_put_real(o, "whole_au_percent", 100 * compute / wall);
		json_put_real(o, "compute_late_s", late);
		json_put_real(o, "wall_s", wall);
		json_put_real(o, "exposed_wait_s", wait);
		json_put_real(o, "barrier_wait_s", barrier);
		json_put_real(o, "worker_busy_s", (double)rank->worker_busy_ns / 1e9);
		json_put_real(o, "worker_idle_s", (double)rank->worker_idle_ns / 1e9);
		json_put_real(o, "preprocess_s", (double)rank->preprocess_ns / 1e9);
		if (rank->transport_ns > 0) {
			json_put_real(o, "transport_s", (double)rank->transport_ns / 1e9);
			json_put_real(o, "transport_unpack_s", (double)rank->unpack_ns / 1e9);
		}
		if (rank->pin_ns > 0)
			json_put_real(o, "pin_s", (double)rank->pin_ns / 1e9);
		if (rank->framework_ns > 0 || rank->framework_beyond_ns > 0) {
			json_put_real(o, "framework_s", (double)rank->framework_ns / 1e9);
			json_put_real(o, "framework_beyond_s",
				      (double)rank->framework_beyond_ns / 1e9);
		}
		json_array_append_new(list, o);
	}
	return list;
}

json_t *json_hosts(const struct result *r)
{
	json_t *list = json_array();

	for (uint32_t n = 0; n < r->nodes; n++) {
		const struct host_facts *h = result_node_host(r, n);
		json_t *o = json_object(), *processes = json_array();

		for (uint32_t p = 0; p < r->processes; p++) {
			const struct result_process *k = &r->process[p];
			json_t *one;

			if (k->node != n)
				continue;
			if (!json_object_get(o, "hostname"))
				json_put_text(o, "hostname", k->hostname);
			one = json_object();
			json_put_int(one, "process", p);
			json_put_int(one, "first_rank", k->first_rank);
			json_put_int(one, "ranks", k->ranks);
			if (k->lost)
				json_put_bool(one, "lost", true);
			json_put_real(one, "clock_offset_s", (double)k->wall_offset_ns / 1e9);
			json_put_real(one, "clock_offset_error_s",
				      (double)k->offset_error_ns / 1e9);
			json_array_append_new(processes, one);
		}
		if (h) {
			json_put_text(o, "kernel", h->kernel);
			json_put(o, "cpu_count", json_integer(h->cpu_count));
			json_put_real(o, "memory_gib", h->memory_gib);
		}
		json_put(o, "processes", processes);
		json_array_append_new(list, o);
	}
	return list;
}
