/* N_output.json and N_per_epoch_stats.json: the times of every step of one rank. */
#include <stdio.h>

#include "result/dlio_values.h"
#include "result/json_out.h"

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
	if (!metrics_phase(r, p, &au, &throughput, &measured, why, sizeof(why)))
		return;
	json_put_real(m->throughput, name, throughput);
	json_put_real(m->au, name, au);
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
	if (!r->trained)
		json_put_time(out, "start", ep->begin_wall_ns);
	json_put(out, "load", m.load);
	json_put(out, "proc", m.proc);
	json_put(out, "throughput", m.throughput);
	json_put(out, "au", m.au);
	json_put(out, "compute", m.compute);
	result_rank_memory(r, rank, epoch, &memory, &memory_count);
	if (r->trained)
		json_put_pairs(out, "host_meminfo", memory, memory_count);
	if (ep->end_wall_ns)
		json_put_time(out, "end", ep->end_wall_ns);
	return out;
}

json_t *dlio_rank_output(const struct result *r, uint32_t rank)
{
	const struct host_facts *h = result_rank_host(r, rank);
	json_t *out = json_object();
	char name[32];

	json_put_real(out, "host_memory_GB", h->memory_gib);
	json_put(out, "host_cpu_count", json_integer(h->cpu_count));
	json_put_text(out, "host_processor_name", h->processor);
	json_put(out, "potential_caching", json_integer(dlio_fits_memory(r, h)));
	json_put_pairs(out, "host_cpuinfo", h->cpuinfo, h->cpuinfo_count);
	json_put_pairs(out, "host_meminfo", h->meminfo, h->meminfo_count);
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

json_t *dlio_rank_epochs(const struct result *r, uint32_t rank)
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
	return out;
}
