/* What the workers of a rank are short of: a place in the window, their own number, or what takes
 * most of their time. */
#include <math.h>

#include "judge/limit_view.h"
#include "predict/outlook.h"
#include "predict/slow_worker.h"

static const double BUSY_SHARE = 0.85;    /* of the workers' time: they are what is short */
static const double BUSY_ENOUGH = 0.6;    /* the same, for more workers to be of use */
static const double RECOVERED = 0.4;      /* of the loss, by a wider window */
static const double OWN_CPU_SHARE = 0.75; /* of computing time; below, the CPU was taken away */
static const double OTHERS_SHARE = 0.25;  /* of the processors, used by other programs */
static const uint32_t FEW_WORKERS = 4;    /* a common number of them would be enough */

/* Workers rest while the rank waits: in order, ready batches hold the places of the window. */
bool limit_at_window(struct limit_view *v)
{
	const struct outlook *o = v->outlook;
	double best = 0;

	if (!o->known || result_workers(v->r) == 0 || v->busy > BUSY_SHARE)
		return false;
	best = fmax(isnan(o->window_au) ? 0 : o->window_au,
		    isnan(o->unordered_au) ? 0 : o->unordered_au);
	if (best - o->measured_au < 3 || best - o->measured_au < RECOVERED * (100 - o->measured_au))
		return false;
	limit_found(v, FACT(LIMIT_PREFETCH, (double)result_window(v->r), v->d->service_mean_s,
			    v->d->service_dev_s, v->busy));
	outlook_tell_window(o, result_window(v->r) * 4, &v->limit->effects);
	return true;
}

/* ---- one worker that is slower than the others of its rank, whoever its files are ---- */

struct found_worker {
	struct slow_worker of;
	double lost_s;
};

/* Nobody's turn comes before the slow one's batch has. */
static bool find_slow_worker(const struct limit_view *v, struct found_worker *out)
{
	*out = (struct found_worker){.lost_s = 0};
	for (uint32_t k = 0; k < v->r->ranks; k++) {
		struct slow_worker one;
		double even, lost;

		if (!slow_worker_of(v->r, v->m->epochs, k, &one))
			continue;
		even = v->r->rank[k].workers * v->compute * v->r->ranks / (double)v->d->steps;
		lost = one.batches * (one.each_s - fmax(one.others_s, even));
		if (lost > out->lost_s)
			*out = (struct found_worker){one, lost};
	}
	return out->lost_s > 0;
}

double limit_lost_to_worker(const struct limit_view *v)
{
	struct found_worker w;

	return find_slow_worker(v, &w) ? fmin(w.lost_s, v->loss) : 0;
}

bool limit_at_worker(struct limit_view *v)
{
	struct found_worker w;

	if (!find_slow_worker(v, &w))
		return false;
	limit_found(v, FACT(LIMIT_SLOW_WORKER, w.of.worker, w.of.rank, w.of.each_s, w.of.others_s,
			    fmin(w.lost_s, v->loss) / v->d->wall_s));
	outlook_tell_window(v->outlook, result_window(v->r) * 4, &v->limit->effects);
	if (v->limit->effects.count == 0)
		limit_would(v, FACT(EFFECT_TRY_UNORDERED));
	return true;
}

bool limit_at_number(struct limit_view *v)
{
	const struct outlook *o = v->outlook;
	uint32_t have = result_workers(v->r);

	if (!o->known || !o->needed_known || o->workers_needed == 0 || o->workers_needed <= have ||
	    o->workers_needed > FEW_WORKERS || o->shared_s > o->fixed_s)
		return false;
	if (have > 0 && v->busy < BUSY_ENOUGH)
		return false;
	if (have == 0)
		limit_found(v, FACT(LIMIT_NO_WORKERS, v->d->service_mean_s));
	else
		limit_found(v, FACT(LIMIT_FEW_WORKERS, have, v->busy, v->d->service_mean_s,
				    v->compute * v->r->ranks / (double)v->d->steps));
	limit_tell_kind(v);
	limit_workers_would(v);
	return true;
}

bool limit_at_start(struct limit_view *v)
{
	if (v->doing != LOST_START)
		return false;
	limit_found(v, FACT(LIMIT_START_UP_READERS, v->d->mean_s[TIME_WAIT + WAIT_START]));
	return true;
}

bool limit_at_unmeasured(struct limit_view *v)
{
	if (v->doing != LOST_DECODE || v->r->workload->run.measure != MEASURE_NONE)
		return false;
	limit_found(v, FACT(LIMIT_READING, v->busy));
	limit_workers_would(v);
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
	if (!(decode > 0) || own >= OWN_CPU_SHARE * decode)
		return false;
	return *others > OTHERS_SHARE;
}

bool limit_at_others_decoding(struct limit_view *v)
{
	double others;

	if (v->doing != LOST_DECODE || !cpu_taken(v, &others))
		return false;
	limit_found(v, FACT(LIMIT_OTHERS_DECODING, others));
	return true;
}

bool limit_at_decoding(struct limit_view *v)
{
	if (v->doing != LOST_DECODE)
		return false;
	limit_found(v, FACT(LIMIT_DECODE, v->busy, v->d->work_s[WORK_DECODE] / v->work));
	limit_workers_would(v);
	return true;
}

bool limit_at_preprocessing(struct limit_view *v)
{
	if (v->doing != LOST_PREPROCESS)
		return false;
	limit_found(v, FACT(LIMIT_PREPROCESS, v->busy, v->d->work_s[WORK_PREPROCESS] / v->work));
	limit_workers_would(v);
	return true;
}

bool limit_at_transport(struct limit_view *v)
{
	if (v->doing != LOST_TRANSPORT)
		return false;
	limit_found(v, FACT(LIMIT_TRANSPORT, v->busy, v->d->work_s[WORK_TRANSPORT] / v->work));
	limit_workers_would(v);
	return true;
}
