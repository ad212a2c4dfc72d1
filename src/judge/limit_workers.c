/* What the workers of a rank are short of: a place in the window, their own number, or what takes
 * most of their time. */
#include <math.h>
#include <string.h>

#include "judge/limit_view.h"
#include "predict/outlook.h"

static const double BUSY_SHARE = 0.85;    /* of the workers' time: they are what is short */
static const double BUSY_ENOUGH = 0.6;    /* the same, for more workers to be of use */
static const double RECOVERED = 0.4;      /* of the loss, by a wider window */
static const double OWN_CPU_SHARE = 0.75; /* of computing time; below, the CPU was taken away */
static const double OTHERS_SHARE = 0.25;  /* of the processors, used by other programs */
static const uint32_t FEW_WORKERS = 4;    /* a common number of them would be enough */

/* Workers rest while the rank waits: in order, ready batches hold the places of the window. */
static bool at_window(struct limit_view *v)
{
	const struct outlook *o = v->outlook;
	double best = 0;

	if (!o->known || result_workers(v->r) == 0 || v->busy > BUSY_SHARE)
		return false;
	best = fmax(isnan(o->window_au) ? 0 : o->window_au,
		    isnan(o->unordered_au) ? 0 : o->unordered_au);
	if (best - o->measured_au < 3 || best - o->measured_au < RECOVERED * (100 - o->measured_au))
		return false;
	limit_say(v, "prefetch",
		  "limited by the prefetch window of %llu batches: a batch takes %.3g ms +- %.3g "
		  "ms, but the workers are busy only %.0f %% of the time",
		  (unsigned long long)result_window(v->r), 1e3 * v->d->service_mean_s,
		  1e3 * v->d->service_dev_s, 100 * v->busy);
	v->limit->effects = (uint16_t)strlen(v->limit->text);
	outlook_say_window(o, result_window(v->r) * 4, v->limit->text, sizeof(v->limit->text));
	limit_add(v, ".");
	return true;
}

static bool at_number(struct limit_view *v)
{
	const struct outlook *o = v->outlook;
	uint32_t have = result_workers(v->r);

	if (!o->known || !o->needed_known || o->workers_needed == 0 || o->workers_needed <= have ||
	    o->workers_needed > FEW_WORKERS || o->shared_s > o->fixed_s)
		return false;
	if (have > 0 && v->busy < BUSY_ENOUGH)
		return false;
	if (have == 0)
		limit_say(v, "workers",
			  "limited by the lack of workers: the rank reads its batches itself, "
			  "%.3g ms each, and computes nothing while it reads",
			  1e3 * v->d->service_mean_s);
	else
		limit_say(v, "workers",
			  "limited by too few workers: %u per rank, busy %.0f %% of the time; a "
			  "worker takes %.3g ms for a batch, and a step computes for %.3g ms",
			  have, 100 * v->busy, 1e3 * v->d->service_mean_s,
			  1e3 * v->compute * v->r->ranks / (double)v->d->steps);
	limit_add_workers(v);
	return true;
}

/* The CPU's share of what computes in the workers, and what others had of it. */
static bool cpu_taken(const struct limit_view *v, double *others)
{
	double cpus = v->r->host.cpu_count, own = 0, all = 0, wall = 0;
	double decode = v->d->work_s[WORK_DECODE];

	for (uint32_t i = 0; i < v->r->epochs_done; i++) {
		own += (double)v->r->usage[i].cpu_ns / 1e9;
		all += (double)v->r->usage[i].host_cpu_ns / 1e9;
		wall += (double)v->r->usage[i].wall_ns / 1e9;
	}
	*others = wall > 0 && cpus > 0 ? (all - own) / (wall * cpus) : 0;
	return decode > 0 && own<OWN_CPU_SHARE * decode && * others> OTHERS_SHARE;
}

static void at_decode(struct limit_view *v)
{
	double others;

	if (v->r->workload->run.measure == MEASURE_NONE) {
		limit_say(v, "reading",
			  "limited by reading: the workers are busy %.0f %% of the time; the share "
			  "of the storage was not measured (run.measure=none)",
			  100 * v->busy);
		limit_add_workers(v);
		return;
	}
	if (cpu_taken(v, &others)) {
		limit_say(v, "other_programs",
			  "limited by other programs on this machine, which use %.0f %% of its "
			  "processors and leave too little for decoding.",
			  100 * others);
		return;
	}
	limit_say(v, "decode",
		  "limited by decoding on this machine: the workers are busy %.0f %% of the time, "
		  "%.0f %% of that decoding",
		  100 * v->busy, 100 * v->d->work_s[WORK_DECODE] / v->work);
	limit_add_workers(v);
}

/* What takes the workers' time most. */
static void at_work(struct limit_view *v)
{
	const double *w = v->d->work_s;

	if (w[WORK_DECODE] >= v->io && w[WORK_DECODE] >= w[WORK_PREPROCESS] &&
	    w[WORK_DECODE] >= w[WORK_TRANSPORT]) {
		at_decode(v);
		return;
	}
	if (w[WORK_PREPROCESS] >= v->io && w[WORK_PREPROCESS] >= w[WORK_TRANSPORT]) {
		limit_say(v, "preprocess",
			  "limited by preprocessing: the workers are busy %.0f %% of the time, "
			  "%.0f %% of that preprocessing",
			  100 * v->busy, 100 * w[WORK_PREPROCESS] / v->work);
	} else if (w[WORK_TRANSPORT] > v->io) {
		limit_say(v, "transport",
			  "limited by handing over batches: the workers are busy %.0f %% of the "
			  "time, %.0f %% of that packing",
			  100 * v->busy, 100 * w[WORK_TRANSPORT] / v->work);
	} else {
		limit_at_store(v);
		return;
	}
	limit_add_workers(v);
}

bool limit_at_workers(struct limit_view *v)
{
	if (at_window(v) || at_number(v))
		return true;
	if (v->lost_to_data <= 0.3 * v->loss || !(v->work > 0))
		return false;
	if (v->d->mean_s[TIME_WAIT + WAIT_START] > 0.5 * v->wait)
		limit_say(v, "start_up",
			  "limited by the start of the epochs: %.3g s in all before their first "
			  "batches are started.",
			  v->d->mean_s[TIME_WAIT + WAIT_START]);
	else
		at_work(v);
	return true;
}
