/* From laws to the parts of a model. */
#include "predict/own_work.h"

#include <math.h>

#include "base/clock.h"
#include "dataset/order.h"
#include "loader/workers.h"
#include "metric/io_waits.h"

static const double MATTERS = 2; /* points: costs that take more are worth a line */
static const int TURNS = 4;

/* Each kind of worker and each start counts as a part of an epoch: persistent ones start once. */
static void of_workers(const struct framework_costs *f, const struct result *r, uint32_t epochs,
		       bool dlio, struct own_work *out)
{
	int method = r->workload->reader.multiprocessing_context;
	const struct cost_law *starting = costs_of(f, costs_start_row(f, method));
	double start = starting->fixed + starting->first / result_workers(r);
	double begin = costs_of(f, costs_begin_row(f, method))->fixed +
		       (method == START_FORK ? 0 : costs_in(f, COST_IMPORT_DLIO, dlio)->fixed) +
		       costs_in(f, COST_BEGIN_DLIO, dlio)->fixed +
		       (dlio ? costs_of_load(f, workload_format(r->workload))->import_s : 0);
	double resume = costs_of(f, COST_RESUME_WORKER)->fixed;

	if (r->workload->reader.persistent_workers) {
		start = (start + resume * (epochs - 1)) / epochs;
		begin /= epochs;
		out->ready_s /= epochs;
	}
	out->fork_s = start;
	out->begin_s = begin;
	if (!r->workload->reader.persistent_workers)
		out->end_s += costs_of(f, COST_END_WORKER)->fixed * result_workers(r);
}

/* What threads wait between two turns of the same code, in s. */
struct waits {
	double sample;   /* of a reader for one sample */
	double request;  /* for each request that returns bytes; */
	double requests; /* so many a sample */
	double between;  /* of a reader from one batch to the next */
	double rank;     /* of a rank from one step to the next */
};

/* A law with what a wait before it adds. */
static double after(const struct cost_law *law, double wait_s, double samples, double bytes)
{
	return cost_law_s(law, samples, bytes) + cost_after_wait_s(law, bytes, wait_s);
}

/* Packing and taking batches of so many bytes, beyond what this run did of it (reader.transport,
 * reader.pin_thread). batch_wait_s: of a worker, from one batch packed to the next. */
static void of_handing(const struct framework_costs *f, const struct result *r, double bytes,
		       double batch_wait_s, double rank_wait_s, struct own_work *out)
{
	double batches = (double)r->judged.time.batches, unpack = 0, pin = 0;

	for (uint32_t k = 0; k < r->ranks; k++) {
		unpack += (double)r->rank[k].unpack_ns / 1e9 / batches;
		pin += (double)r->rank[k].pin_ns / 1e9 / batches;
	}
	out->batch_s += fmax(0, after(costs_of(f, COST_PACK), batch_wait_s, 0, bytes) -
					r->judged.time.work_s[WORK_TRANSPORT] / batches);
	out->take_s = fmax(0, after(costs_of(f, COST_HAND_OVER), rank_wait_s, 0, bytes) - unpack);
	if (!r->workload->reader.pin_thread)
		return;
	/* a thread of its own takes them: the rank waits for it where it waits anyway */
	out->pin_s =
		out->take_s + fmax(0, after(costs_of(f, COST_PIN), rank_wait_s, 0, bytes) - pin);
	out->take_s = 0;
}

/* Files opened for the samples of a batch: of opening and closing, which count alike. */
static double files_opened(const struct result *r, const struct costs *c)
{
	double requests = 0;

	for (uint32_t k = 0; k < r->ranks; k++)
		requests += (double)r->rank[k].train_io.kind[IO_OPEN].requests;
	return fmin(c->samples, requests / 2 / (double)r->judged.time.batches);
}

/* With what the code takes by `o`. Steps that take longer than their batches let readers wait, and
 * the other way round. Readers that are the rank wait while it computes. */
static struct waits waits_of(const struct result *r, const struct costs *c,
			     const struct own_work *o)
{
	double workers = result_workers(r);
	double requests = c->open + c->close + c->reads + c->later +
			  r->judged.time.work_s[WORK_PREPROCESS] / (double)r->judged.time.batches;
	double compute = time_dist_mean(&r->workload->train.computation_time);
	double batch = c->service + o->batch_s, own = o->take_s + o->step_s;
	double step = fmax(compute + own, workers > 0 ? batch / workers : 0);

	return (struct waits){
		.sample = requests / c->samples,
		.request = c->requests > 0 ? c->reads / c->requests : 0,
		.requests = c->requests / c->samples,
		.between = workers > 0 ? fmax(0, workers * step - batch) : compute,
		.rank = workers > 0 ? step - own : compute + requests,
	};
}

/* Bytes that loading the samples of a batch goes by: what comes of them, or what was read for them
 * where that is more (texts; files that the framework's library reads whole). */
static double bytes_loaded(const struct result *r, const struct costs *c)
{
	return fmax(c->samples * dataset_mean_sample_bytes(r->dataset, DATASET_TRAIN),
		    c->data_bytes);
}

/* What the waits of a sample add that are not the longest; before_s: of a wait before them. */
static double each_wait_s(const struct cost_law *law, const struct waits *w, double before_s)
{
	double each = w->request * NS_PER_S < IO_WAIT_LEAST_NS
			      ? 0
			      : io_wait_weight(w->request, COST_EACH_WAIT_S);
	double before = io_wait_weight(before_s, COST_EACH_WAIT_S);

	return law->after_each_wait *
	       (each * w->requests + before - fmax(w->requests < 1 ? 0 : each, before));
}

static double loading_s(const struct cost_law *law, const struct result *r, const struct costs *c,
			const struct waits *w)
{
	double bytes = bytes_loaded(r, c) / c->samples;
	bool alone = result_workers(r) == 0;

	return c->samples * cost_load_s(law, bytes, alone) -
	       law->fixed * (c->samples - files_opened(r, c)) +
	       /* the first sample of a batch comes after the wait for the batch */
	       cost_after_wait_s(law, bytes, w->sample + w->between) +
	       (c->samples - 1) * cost_after_wait_s(law, bytes, w->sample) +
	       each_wait_s(law, w, w->between) + (c->samples - 1) * each_wait_s(law, w, 0);
}

/* What the code takes where threads wait so long. bytes: of a batch, as it is handed over. */
static void of_run(const struct framework_costs *f, const struct result *r, const struct costs *c,
		   double bytes, const struct waits *wait, bool dlio, struct own_work *out)
{
	bool workers = result_workers(r) > 0;
	const struct format_facts *format = &r->dataset->format->is;
	const struct cost_law *load = costs_of_load(f, format);
	double share = (double)dataset_samples(r->dataset, DATASET_TRAIN) / r->ranks;
	double batch_wait_s = c->samples * wait->sample + wait->between;

	out->batch_s =
		fmax(0, loading_s(load, r, c, wait) - c->decode) +
		cost_law_s(costs_in(f, COST_SAMPLE, dlio), c->samples, 0) +
		(workers ? cost_law_s(costs_in(f, COST_KEEP, dlio), c->samples, bytes_loaded(r, c))
			 : 0) +
		(format->flags & FORMAT_INDEX_UNTOLD
			 ? 0
			 : c->samples * cost_law_s(costs_in(f, COST_INDEX, dlio), share, 0)) +
		after(costs_of(f, workers ? COST_COLLATE : COST_INLINE), batch_wait_s, c->samples,
		      bytes);
	out->step_s = after(costs_in(f, COST_STEP, dlio), wait->rank, 0, 0) +
		      after(costs_in(f, COST_STEP_END, dlio),
			    time_dist_mean(&r->workload->train.computation_time), 0, 0);
	out->end_s = costs_in(f, COST_BLOCK, dlio)->fixed + costs_in(f, COST_LOOP_END, dlio)->fixed;
	if (workers)
		of_handing(f, r, bytes, batch_wait_s, wait->rank, out);
}

/* Where a run is not DLIO's yet: files of several samples that DLIO leaves out, and indices that
 * each of its workers reads for all files of its rank before its first sample. False: DLIO makes no
 * step.
 */
static bool of_dlio(const struct result *r, const struct costs *c, struct own_work *out)
{
	const struct dataset *d = r->dataset;
	uint64_t batch = (uint64_t)c->samples, files = d->files[DATASET_TRAIN];
	double parts = 1.0 + d->format->sidecars;

	if (r->workload->compat.dlio)
		return true;
	if (d->samples_per_file > 1) {
		files = order_dlio_files(files, d->samples_per_file, batch, r->ranks);
		out->steps = files * d->samples_per_file / (batch * r->ranks);
	}
	if (d->format->load_index) {
		out->saved_s = (parts - 1) / parts * c->open +
			       r->judged.time.work_s[WORK_META] / (double)r->judged.time.batches;
		out->ready_s = out->saved_s * (double)files / (double)(batch * r->ranks);
	}
	return d->samples_per_file == 1 || out->steps > 0;
}

bool own_work_of(const struct framework_costs *f, const struct result *r, uint32_t epochs,
		 const struct costs *c, bool dlio, struct own_work *out)
{
	const struct workload *w = r->workload;
	const struct loader_config config = {
		.workload = r->workload, .dataset = r->dataset, .batch_size = (uint64_t)c->samples};
	double bytes;

	*out = (struct own_work){0};
	if (!r->dataset || r->dataset->files[DATASET_TRAIN] == 0 || w->reader.access != 0 ||
	    w->run.measure != MEASURE_ALL || r->judged.time.batches == 0 || epochs == 0)
		return false;
	bytes = (double)handover_bytes(&config, NULL);
	if (!costs_of_load(f, &r->dataset->format->is)->present || !(bytes > 0))
		return false;
	if (dlio && !of_dlio(r, c, out))
		return false;
	/* code that takes longer leaves less to wait: near enough after a few turns */
	for (int i = 0; i < TURNS; i++) {
		const struct waits wait = waits_of(r, c, out);

		of_run(f, r, c, bytes, &wait, dlio, out);
	}
	if (result_workers(r) > 0)
		of_workers(f, r, epochs, dlio, out);
	return true;
}

void own_work_add(const struct own_work *o, double by, struct model *m)
{
	m->fork_s += by * o->fork_s;
	m->begin_s += by * o->begin_s;
	m->cpu_s += by * o->batch_s;
	m->take_s += by * o->take_s;
	m->end_s += by * o->step_s;
	m->hand_s += by * o->pin_s;
	m->after_s += by * o->end_s;
	if (m->workers)
		m->ready_s += by * o->ready_s;
	else
		m->start_s += by * o->ready_s;
	m->delay_s -= by * o->saved_s;
	if (o->steps && o->steps < m->steps)
		m->steps = o->steps;
}

void own_work_remove(const struct costs *c, const struct variant *v, struct model *m)
{
	double spent = c->framework * v->scale;
	double computed = fmin(spent, m->cpu_s);

	m->cpu_s -= computed;
	m->delay_s -= fmin(spent - computed, v->decode);
	m->fork_s = m->take_s = 0;
}

void own_work_judge(const struct outlook *out, const struct what_if *w, double repeats,
		    double dlio_au, struct costs_effect *c)
{
	double takes = w->au - out->measured_au, doubt;

	c->au = w->au;
	c->low = w->low;
	c->high = w->high;
	/* fmax passes over what is not known */
	c->said =
		fmax(fmax(-takes, dlio_au - c->dlio_au), out->measured_au - c->loop_au) >= MATTERS;
	if (!c->spent)
		return;
	c->au = w->known ? w->au : NAN;
	doubt = fmax(w->high - w->au, w->au - w->low) - repeats;
	c->said = w->known ? takes > MATTERS && takes > doubt : w->low - out->measured_au > MATTERS;
}
