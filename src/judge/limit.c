/* What held the run back most: those that can name a cause are asked one after another. */
#include "judge/limit.h"

#include <assert.h>
#include <math.h>

#include "base/alloc.h"
#include "judge/limit_io.h"
#include "judge/limit_memory.h"
#include "judge/limit_view.h"
#include "judge/change_facts.h"
#include "predict/costs.h"
#include "predict/outlook.h"
#include "workload/framework_key.h"

static const double SMALL_LOSS = 0.05; /* of the wall time: nothing to find */
static const double OWN_MEMORY = 0.25; /* of the memory: the run itself could use less */

void limit_found(struct limit_view *v, struct fact f)
{
	fact_add(&v->limit->facts, f);
}

void limit_would(struct limit_view *v, struct fact f)
{
	fact_add(&v->limit->effects, f);
}

void limit_workers_would(struct limit_view *v)
{
	outlook_tell_workers(v->outlook, result_workers(v->r), &v->limit->effects);
}

/* ---- those that need little evidence ---- */

static bool loses_little(const struct limit_view *v)
{
	return v->loss < SMALL_LOSS * v->d->wall_s;
}

static bool at_computation_from_memory(struct limit_view *v)
{
	if (!loses_little(v) || !limit_cached(v->r))
		return false;
	limit_found(v, FACT(LIMIT_COMPUTE_CACHED));
	return true;
}

static bool at_computation(struct limit_view *v)
{
	const struct measured *of = &v->r->judged.measured;

	if (!loses_little(v))
		return false;
	if (of->taken || of->storage == MEASURED_NOT || of->storage == MEASURED_UNKNOWN)
		limit_found(v, FACT(LIMIT_COMPUTE_UNTOLD, v->busy, v->d->ready_mean));
	else if (of->storage == MEASURED_EMULATED)
		limit_found(v, FACT(LIMIT_COMPUTE_EMULATED, v->busy, v->d->ready_mean));
	else
		limit_found(v, FACT(LIMIT_COMPUTE, v->busy, v->d->ready_mean));
	return true;
}

/* What is said of training alone may sound as if evaluations had been as good. */
static void add_evaluation(struct limit_view *v)
{
	const struct steadiness *c = &v->r->judged.eval_steady;

	if (stalls_matter(v->r, true))
		limit_found(
			v, FACT(LIMIT_EVALUATION_STALLED, c->stall[0].epoch, c->stall[0].length_s));
}

/* All of it is the wait for the first batches: a longer epoch would not lose it. */
static bool at_beginnings(struct limit_view *v)
{
	double rest = v->loss - v->first, code = v->d->framework_start_s;
	double step = v->compute * v->r->ranks / (double)v->d->steps;

	/* what was read ahead would not last: the workers are slower than computation */
	if (v->d->batches == 0 || v->work / (double)v->d->batches / v->workers > step)
		return false;
	if (v->first < 0.5 * v->loss || rest >= SMALL_LOSS * (v->d->wall_s - v->first))
		return false;
	limit_found(v, FACT(LIMIT_START_UP, v->first / v->d->wall_s, v->first,
			    code >= 0.1 * v->first ? code : NAN));
	return true;
}

static bool at_checkpoints(struct limit_view *v)
{
	if (v->lost[LOST_CHECKPOINT] <= 0.5 * v->loss)
		return false;
	limit_found(v, FACT(LIMIT_CHECKPOINT, v->d->mean_s[TIME_CHECKPOINT] / v->d->wall_s));
	return true;
}

static bool at_io_limit(struct limit_view *v)
{
	struct fact group;
	bool reached;

	if (!io_group_fact(v->r, &reached, &group) || !reached)
		return false;
	limit_found(v, FACT(LIMIT_IO_GROUP));
	limit_found(v, group);
	limit_would(v, FACT(EFFECT_RAISE_LIMIT));
	return true;
}

/* What the run itself has of the memory, beside what there is. */
static void found_own_memory(struct limit_view *v)
{
	const struct result *r = v->r;
	double group = (double)r->usage[r->epochs_done - 1].memory.limit_bytes;
	double all = group > 0 ? group : r->host.memory_gib * 1024 * 1024 * 1024;
	double own = (double)r->peak_rss_bytes;

	limit_found(v, FACT(LIMIT_MEMORY_OWN, own, all > 0 ? all : NAN));
	limit_would(v, all > 0 && own >= OWN_MEMORY * all ? FACT(EFFECT_LESS_MEMORY)
							  : FACT(EFFECT_MORE_MEMORY));
}

static bool at_memory(struct limit_view *v)
{
	if (!limit_memory(v->r, &v->limit->facts))
		return false;
	found_own_memory(v);
	return true;
}

static bool at_the_rest(struct limit_view *v)
{
	limit_found(v, FACT(LIMIT_OTHER, v->lost[LOST_BETWEEN] / v->d->wall_s));
	return true;
}

static bool at_nothing_known(struct limit_view *v)
{
	limit_found(v, FACT(LIMIT_NOT_KNOWN, v->loss / v->d->wall_s, v->lost[v->doing] / v->loss));
	return true;
}

/* ---- the s that were lost to what a cause is about ---- */

static double to_data(const struct limit_view *v)
{
	return v->lost_to_data;
}

static double to_requests(const struct limit_view *v)
{
	return v->lost[LOST_REQUESTS];
}

static double to_decoding(const struct limit_view *v)
{
	return v->lost[LOST_DECODE];
}

static double to_computing(const struct limit_view *v)
{
	return v->lost[LOST_DECODE] + v->lost[LOST_FRAMEWORK] + v->lost[LOST_NO_CPU];
}

static double to_preprocessing(const struct limit_view *v)
{
	return v->lost[LOST_PREPROCESS];
}

static double to_transport(const struct limit_view *v)
{
	return v->lost[LOST_TRANSPORT];
}

static double to_framework(const struct limit_view *v)
{
	return v->lost[LOST_FRAMEWORK];
}

static double to_beginnings(const struct limit_view *v)
{
	return v->first;
}

static double to_start(const struct limit_view *v)
{
	return v->lost[LOST_START];
}

static double to_checkpoints(const struct limit_view *v)
{
	return v->lost[LOST_CHECKPOINT];
}

static double to_barrier(const struct limit_view *v)
{
	return v->skew;
}

static double to_the_rest(const struct limit_view *v)
{
	return v->lost[LOST_BETWEEN];
}

struct asked {
	enum cause cause;
	bool (*is)(struct limit_view *v);
	/* NULL: the cause is not about lost time */
	double (*lost)(const struct limit_view *v);
};

/* Of the lost time: what takes less of it is not what limits, whatever else speaks for it. */
static const double LEAST_SHARE = 0.3;
static const double LEAST_SPOILT = 0.25; /* what no processor does to requests comes on top */

/* The first whose function says so decides. Of a run without processors nothing can be said about
 * the storage, and no remedy is predicted. */
static const struct asked of_processors[] = {
	{CAUSE_HYPERVISOR, limit_at_hypervisor, to_computing},
	{CAUSE_FRAMEWORK, limit_at_own_framework, limit_lost_to_cpu},
	{CAUSE_DECODE, limit_at_own_decoding, limit_lost_to_cpu},
	{CAUSE_OTHER_PROGRAMS, limit_at_other_programs, limit_lost_to_cpu},
	{CAUSE_CPU_QUOTA, limit_at_quota, limit_lost_to_cpu},
	{CAUSE_STOPPED, limit_at_interruption, limit_lost_to_cpu},
};

/* What was measured as such before what is concluded. */
static const struct asked of_training[] = {
	{CAUSE_PAGE_CACHE, at_computation_from_memory, NULL},
	{CAUSE_COMPUTE, at_computation, NULL},
	/* what was sent again is slow, and seems a tail, a stall or contention */
	{CAUSE_THROTTLED, limit_at_throttle, limit_lost_to_repetitions},
	{CAUSE_REPETITIONS, limit_at_repetitions, limit_lost_to_repetitions},
	{CAUSE_SLOW_WORKER, limit_at_worker, limit_lost_to_worker},
	{CAUSE_SLOW_FILES, limit_at_slow_files, limit_lost_by_name},
	{CAUSE_METADATA, limit_at_tail, limit_lost_to_slow_names},
	/* reads that the page cache serves are fast, and all others seem a tail */
	{CAUSE_MEMORY, at_memory, to_data},
	{CAUSE_LATENCY, limit_at_tail, limit_lost_to_slow_reads},
	{CAUSE_STALL, limit_at_stall, limit_lost_to_stalls},
	{CAUSE_UNSTEADY, limit_at_phases, limit_lost_to_phases},
	{CAUSE_UNSTEADY, limit_at_slower_part, limit_lost_to_slower_part},
	{CAUSE_CHECKPOINT, at_checkpoints, to_checkpoints},
	{CAUSE_IO_LIMIT, at_io_limit, to_requests},
	{CAUSE_START_UP, at_beginnings, to_beginnings},
	{CAUSE_FRAMEWORK, limit_at_framework, to_framework},
	{CAUSE_SLOW_HOST, limit_at_host, limit_lost_to_host},
	{CAUSE_SLOW_RANK, limit_at_rank, limit_lost_to_rank},
	{CAUSE_BARRIER, limit_at_barrier, to_barrier},
	{CAUSE_PROCESSORS, limit_at_no_processor, limit_lost_to_cpu},
	{CAUSE_QUEUE, limit_at_turns, limit_lost_by_name},
	{CAUSE_CONTENTION, limit_at_contention, to_requests},
	{CAUSE_PREFETCH, limit_at_window, to_data},
	{CAUSE_WORKERS, limit_at_number, to_data},
	{CAUSE_START_UP, limit_at_start, to_start},
	{CAUSE_READING, limit_at_unmeasured, to_decoding},
	{CAUSE_OTHER_PROGRAMS, limit_at_others_decoding, to_decoding},
	{CAUSE_DECODE, limit_at_decoding, to_decoding},
	{CAUSE_PREPROCESS, limit_at_preprocessing, to_preprocessing},
	{CAUSE_TRANSPORT, limit_at_transport, to_transport},
	{CAUSE_MEMORY_BANDWIDTH, limit_at_memory_bandwidth, to_requests},
	{CAUSE_PAGE_CACHE, limit_at_memory_reads, to_requests},
	{CAUSE_METADATA, limit_at_closes, limit_lost_to_closes},
	{CAUSE_METADATA, limit_at_lookups, limit_lost_to_lookups},
	{CAUSE_OPENS, limit_at_opens, to_requests},
	{CAUSE_METADATA, limit_at_metadata, to_requests},
	{CAUSE_STORAGE, limit_at_unseen_requests, to_requests},
	{CAUSE_QUEUE, limit_at_queue, to_requests},
	{CAUSE_REQUESTS, limit_at_request_rate, to_requests},
	{CAUSE_BANDWIDTH, limit_at_bandwidth, to_requests},
	{CAUSE_STREAM_BANDWIDTH, limit_at_stream, to_requests},
	{CAUSE_LATENCY, limit_at_latency, to_requests},
	{CAUSE_STORAGE, limit_at_storage, to_requests},
	{CAUSE_OTHER, at_the_rest, to_the_rest},
	{CAUSE_UNKNOWN, at_nothing_known, NULL},
};

/* No cause is named that takes less of the lost time than `least`. */
static bool ask(struct limit_view *v, const struct asked *rows, size_t n, double least)
{
	for (size_t i = 0; i < n; i++) {
		double share = rows[i].lost ? rows[i].lost(v) / v->loss : NAN;

		if (share < least || !rows[i].is(v))
			continue;
		assert(!rows[i].lost || share >= least);
		v->limit->cause = rows[i].cause;
		v->limit->cause_share = rows[i].lost ? 100 * fmin(1, share) : 0;
		return true;
	}
	return false;
}

/* ---- what they share ---- */

/* s, mean over ranks, that ranks waited at the barrier because computation took others longer. */
static double skew_of_compute(const struct result *r, uint32_t epochs)
{
	double sum = 0;

	for (uint32_t e = 0; e < epochs; e++) {
		const struct rank_epoch *first = &r->rank[result_present_rank(r)].epoch[e];

		for (uint32_t b = 0; b < first->blocks; b++)
			for (uint64_t i = 0; i < first->block[b].steps; i++) {
				double most = 0, all = 0, ranks = 0;

				for (uint32_t k = 0; k < r->ranks; k++) {
					const struct rank_epoch *ep = &r->rank[k].epoch[e];
					const struct step_times *t;
					double took;

					if (b >= ep->blocks || i >= ep->block[b].steps)
						continue;
					t = &ep->block[b].step[i];
					took = (double)(t->compute_end_ns - t->compute_begin_ns);
					most = fmax(most, took);
					all += took;
					ranks++;
				}
				sum += ranks > 0 ? most - all / ranks : 0;
			}
	}
	return sum / 1e9;
}

/* s, mean over ranks, that they waited for the first batch of each epoch. */
static double first_waits(const struct result *r, uint32_t epochs)
{
	double sum = 0, ranks = 0;

	for (uint32_t k = 0; k < r->ranks; k++) {
		ranks += !r->rank[k].lost;
		for (uint32_t e = 0; e < epochs; e++) {
			const struct rank_epoch *ep = &r->rank[k].epoch[e];

			if (ep->blocks && ep->block[0].steps)
				sum += (double)(ep->block[0].step[0].got_ns -
						ep->block[0].step[0].ask_ns);
		}
	}
	return ranks > 0 ? sum / ranks / 1e9 : 0;
}

static void view_fill(struct limit_view *v)
{
	const struct result *r = v->r;
	double room;

	v->law = costs_store_law(r);
	v->stations = stations_of(r, &v->law);
	v->compute = v->d->mean_s[TIME_COMPUTE];
	for (int p = TIME_WAIT; p <= TIME_WAIT_END; p++)
		v->wait += v->d->mean_s[p];
	v->skew = v->d->mean_s[TIME_SKEW];
	v->skew_of_compute = fmin(v->skew, skew_of_compute(r, v->m->epochs));
	v->first = fmin(v->wait, first_waits(r, v->m->epochs));
	v->lost_to_data = v->wait + v->skew - v->skew_of_compute;
	v->loss = v->d->wall_s - v->compute;
	v->workers = fmax(1, r->rank[result_present_rank(r)].workers);
	for (int k = 0; k < WORK_KINDS; k++)
		v->work += v->d->work_s[k];
	v->io = v->d->work_s[WORK_OPEN] + v->d->work_s[WORK_META] + v->d->work_s[WORK_DATA];
	for (uint32_t i = 0; i < r->epochs_done; i++)
		v->cpu += (double)r->usage[i].cpu_ns / 1e9;
	room = v->d->wall_s * v->workers * v->d->ranks;
	v->busy = room > 0 ? fmin(1, v->work / room) : 0;
	v->inside = room > 0 ? fmin(1, v->io / room) : 0;
	limit_view_lost(v);
	v->doing = limit_most_lost(v);
	if (v->doing == LOST_REQUESTS)
		limit_view_reading(v);
	limit_view_cpu(v);
}

/* The profile built in for the framework that the run's loader is of; NULL: there is none. */
static struct framework_costs *builtin_costs(const struct workload *w)
{
	unsigned loader_of = workload_loader(w)->default_of;
	const char *name = NULL;

	for (int i = 0; workload_framework_names[i] && !name; i++)
		if (loader_of & 1u << i)
			name = framework_profile(i);
	return name ? costs_load(name, NULL) : NULL;
}

/* Where the run has spent no costs, what it would have been with those built in. */
static void look_ahead(struct limit_view *v, struct outlook *out, struct basis **basis)
{
	const struct workload *w = v->r->workload;
	struct framework_costs *builtin = w->costs ? NULL : builtin_costs(w);

	*basis = xcalloc(1, sizeof(**basis));
	outlook_compute(v->r, v->m->epochs, &v->law, w->costs ? w->costs : builtin,
			v->m->train_au.count ? v->m->train_au.mean : NAN, out, *basis);
	(*basis)->au = v->m->train_au.mean;
	costs_release(builtin);
}

#define ROWS(table) (table), sizeof(table) / sizeof((table)[0])

/* Readers that stand in each other's way: more of them are no remedy, whatever a model says that
 * knows nothing of names. */
static bool is_crowded(const struct limit *l)
{
	enum reason first = l->facts.count ? l->facts.fact[0].reason : REASON_NONE;

	return l->cause == CAUSE_CONTENTION || l->cause == CAUSE_THROTTLED ||
	       first == REASON_LIMIT_TURNS_FOLDER || first == REASON_LIMIT_TURNS_FILE;
}

void limit_find(const struct result *r, const struct run_metrics *m, struct limit *limit,
		struct outlook *outlook, struct basis **basis)
{
	struct limit_view v = {
		.r = r, .m = m, .limit = limit, .outlook = outlook, .d = &r->judged.time};
	struct fact why;

	if (m->epochs == 0 || !r->rank || !r->usage)
		return;
	if (!(v.d->wall_s > 0) || v.d->steps == 0)
		return;
	view_fill(&v);
	look_ahead(&v, outlook, basis);
	/* what a run of two halves would predict is true for neither */
	if (limit_no_forecast(&v, &why) || limit_is_repeated(&v, &why))
		*outlook = (struct outlook){.why = why, .costs = outlook->costs};
	limit->loss_share = 100 * v.loss / v.d->wall_s;
	if (!loses_little(&v) && ask(&v, ROWS(of_processors), LEAST_SPOILT))
		return;
	ask(&v, ROWS(of_training), LEAST_SHARE);
	if (!loses_little(&v))
		outlook_tell_best(outlook, r->rank[result_present_rank(r)].workers,
				  is_crowded(limit), r->judged.measured.taken & TAKES_LASTING,
				  &limit->remedy);
	add_evaluation(&v);
}
