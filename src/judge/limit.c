/* What held the run back most: the loss is looked for where most of it can be. */
#include "judge/limit.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory_speed.h"
#include "base/str.h"
#include "judge/limit_memory.h"
#include "judge/limit_unsteady.h"
#include "predict/costs.h"
#include "predict/outlook.h"

static const double SMALL_LOSS = 0.05;    /* of the wall time: nothing to find */
static const double RANK_SHARE = 0.4;     /* of the loss, by one rank's being behind */
static const double ALONE_SHARE = 0.5;    /* of its host's being behind, by the last rank's own */
static const double AS_SLOW = 0.7;        /* of the last rank's time for a sample: as slow as it */
static const double SLOWER = 2;           /* times what ranks of other hosts take for a sample */
static const double BUSY_SHARE = 0.85;    /* of the workers' time: they are what is short */
static const double RECOVERED = 0.4;      /* of the loss, by a wider window */
static const double OWN_CPU_SHARE = 0.75; /* of computing time; below, the CPU was taken away */
static const double OTHERS_SHARE = 0.25;  /* of the processors, used by other programs */
static const double COPY_SHARE = 0.4;     /* of the speed of copying: the bytes are what costs */
static const uint32_t FEW_WORKERS = 4;    /* a common number of them would be enough */

struct view {
	const struct result *r;
	const struct run_metrics *m;
	struct limit *limit;
	const struct outlook *outlook;
	const struct decomposition *d;
	struct read_law law;
	double compute, wait, skew, loss; /* mean over ranks, s */
	double workers;                   /* of a rank, at least 1 */
	double busy, inside;              /* of the workers' time: with batches; in requests */
	double work;                      /* s, all */
};

static void view_fill(struct view *v, const struct result *r)
{
	double room;

	v->law = costs_read_law(r);
	v->compute = v->d->mean_s[TIME_COMPUTE];
	for (int p = TIME_WAIT; p <= TIME_WAIT_END; p++)
		v->wait += v->d->mean_s[p];
	v->skew = v->d->mean_s[TIME_SKEW];
	v->loss = v->d->wall_s - v->compute;
	v->workers = fmax(1, r->rank[result_present_rank(r)].workers);
	for (int k = 0; k < WORK_KINDS; k++)
		v->work += v->d->work_s[k];
	room = v->d->wall_s * v->workers * v->d->ranks;
	v->busy = room > 0 ? fmin(1, v->work / room) : 0;
	v->inside = room > 0 ? fmin(1, (v->d->work_s[WORK_OPEN] + v->d->work_s[WORK_META] +
					v->d->work_s[WORK_DATA]) /
					       room)
			     : 0;
}

__attribute__((format(printf, 3, 4))) static void limited_by(struct view *v, const char *cause,
							     const char *fmt, ...)
{
	struct limit *l = v->limit;
	double au = v->m->train_au.count ? v->m->train_au.mean : v->m->whole_au.mean;
	va_list ap;

	snprintf(l->cause, sizeof(l->cause), "%s", cause);
	snprintf(l->text, sizeof(l->text), "AU %.1f %%: ", au);
	va_start(ap, fmt);
	str_append_args(l->text, sizeof(l->text), fmt, ap);
	va_end(ap);
}

/* Ends the sentence with what more workers would do. */
static void say_workers_needed(struct view *v)
{
	struct limit *l = v->limit;

	outlook_say_workers(v->outlook, v->r->rank[0].workers, l->text, sizeof(l->text));
	str_append(l->text, sizeof(l->text), ".");
}

static void at_computation(struct view *v)
{
	const struct measured *of = &v->r->judged.measured;
	char figures[96];

	snprintf(figures, sizeof(figures), "(workers %.0f %% busy, %.3g batches ready on average)",
		 100 * v->busy, v->d->ready_mean);
	if (limit_cached(v->r))
		limited_by(v, "page_cache",
			   "limited by computation, but the dataset was in the page cache: this "
			   "says nothing about the storage.");
	else if (of->taken || of->storage == MEASURED_NOT || of->storage == MEASURED_UNKNOWN)
		limited_by(v, "compute",
			   "limited by computation %s. Whether the storage keeps up is not known. "
			   "Measured: %s",
			   figures, of->text);
	else
		limited_by(v, "compute", "limited by computation; the %s keeps up %s.",
			   of->storage == MEASURED_EMULATED ? "emulated store" : "storage",
			   figures);
}

/* Whether all ranks of the host that is behind read about as slowly as the one that is last most
 * often, and far more slowly than ranks of other hosts. They need not arrive together: ranks that
 * read ahead from one slow store keep the distance in time at which they happened to start. */
static bool host_reads_slowly(const struct view *v)
{
	const struct host_facts *slow = result_node_host(v->r, v->d->last_node);
	double last = (double)v->r->rank[v->d->last_rank].sample_ns, here = INFINITY, others = 0;
	uint32_t ranks = 0;

	for (uint32_t k = 0; k < v->r->ranks_here; k++) {
		double took = (double)v->r->rank[k].sample_ns;

		if (v->r->rank[k].lost || k == v->d->last_rank)
			continue;
		if (result_rank_host(v->r, k) == slow) {
			here = fmin(here, took);
		} else {
			others += took;
			ranks++;
		}
	}
	return ranks > 0 && others > 0 && isfinite(here) && here >= AS_SLOW * last &&
	       here >= SLOWER * others / ranks;
}

/* Of several hosts one that is behind nearly always, and not because of a single rank: such a rank
 * would be far behind the others of its host, too, and they would read faster. */
static bool at_host(struct view *v)
{
	const struct decomposition *d = v->d;
	double of_ranks = (double)d->last_node_ranks / v->r->ranks;
	const struct host_facts *h;

	double behind = d->last_node_behind_s * d->last_node_share * (double)d->common_steps;

	if (v->r->nodes < 2 || d->last_node_ranks < 2 || d->last_node_share < 0.75 ||
	    d->last_node_share < fmin(0.95, 1.5 * of_ranks) || behind < RANK_SHARE * v->loss)
		return false;
	if (d->last_share >= 0.75 * d->last_node_share &&
	    d->last_behind_s >= ALONE_SHARE * d->last_node_behind_s && !host_reads_slowly(v))
		return false;
	h = result_node_host(v->r, d->last_node);
	limited_by(v, "slow_host",
		   "limited by host %s: its %u ranks arrive last in %.0f %% of the steps, %.3g ms "
		   "after those of other hosts, because of %s; all others wait for them.",
		   h ? h->hostname : "?", d->last_node_ranks, 100 * d->last_node_share,
		   1e3 * d->last_node_behind_s, time_part_names[d->last_part]);
	return true;
}

/* A rank that is behind nearly always; or ranks that take turns. */
static bool at_barrier(struct view *v)
{
	const struct decomposition *d = v->d;
	double often = fmax(0.6, fmin(0.75, 1.5 / v->r->ranks));
	double behind = d->last_behind_s * d->last_share * (double)d->common_steps;

	if (v->r->ranks < 2)
		return false;
	if (at_host(v))
		return true;
	if (d->last_share >= often && behind >= RANK_SHARE * v->loss) {
		limited_by(v, "slow_rank",
			   "limited by rank %u%s%s, which arrives last in %.0f %% of the steps, "
			   "%.3g ms after the others, because of %s; all others wait for it.",
			   d->last_rank, v->r->nodes > 1 ? " on host " : "",
			   v->r->nodes > 1 ? result_rank_host(v->r, d->last_rank)->hostname : "",
			   100 * d->last_share, 1e3 * d->last_behind_s,
			   time_part_names[d->last_part]);
		return true;
	}
	if (v->skew <= v->wait || v->skew < 0.4 * v->loss)
		return false;
	limited_by(v, "barrier",
		   "limited by ranks waiting for each other: %.0f %% of the time is barrier wait, "
		   "because step times vary and no rank is always last (rank %u most often, in "
		   "%.0f %% of the steps).",
		   100 * v->skew / d->wall_s, d->last_rank, 100 * d->last_share);
	return true;
}

/* Workers rest while the rank waits: in order, ready batches hold the places of the window. */
static bool at_window(struct view *v)
{
	const struct outlook *o = v->outlook;
	double best = 0;

	if (!o->known || v->r->rank[0].workers == 0 || v->busy > BUSY_SHARE)
		return false;
	best = fmax(isnan(o->window_au) ? 0 : o->window_au,
		    isnan(o->unordered_au) ? 0 : o->unordered_au);
	if (best - o->measured_au < 3 || best - o->measured_au < RECOVERED * (100 - o->measured_au))
		return false;
	limited_by(v, "prefetch",
		   "limited by the prefetch window of %llu batches: a batch takes %.3g ms +- %.3g "
		   "ms, but the workers are busy only %.0f %% of the time",
		   (unsigned long long)v->r->rank[0].prefetch_batches, 1e3 * v->d->service_mean_s,
		   1e3 * v->d->service_dev_s, 100 * v->busy);
	outlook_say_window(o, v->r->rank[0].prefetch_batches * 4, v->limit->text,
			   sizeof(v->limit->text));
	str_append(v->limit->text, sizeof(v->limit->text), ".");
	return true;
}

static bool at_workers(struct view *v)
{
	const struct outlook *o = v->outlook;
	uint32_t have = v->r->rank[0].workers;

	if (!o->known || o->workers_needed == 0 || o->workers_needed <= have ||
	    o->workers_needed > FEW_WORKERS || o->shared_s > o->fixed_s)
		return false;
	if (have == 0)
		limited_by(v, "workers",
			   "limited by the lack of workers: the rank reads its batches itself, "
			   "%.3g ms each, and computes nothing while it reads",
			   1e3 * v->d->service_mean_s);
	else
		limited_by(v, "workers",
			   "limited by too few workers: %u per rank, busy %.0f %% of the time; a "
			   "worker takes %.3g ms for a batch, and a step computes for %.3g ms",
			   have, 100 * v->busy, 1e3 * v->d->service_mean_s,
			   1e3 * v->compute * v->r->ranks / (double)v->d->steps);
	say_workers_needed(v);
	return true;
}

/* The CPU's share of what computes in the workers, and what others had of it. */
static bool cpu_taken(const struct view *v, double *others)
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

/* What the samples came from is this machine's memory, not storage. */
static bool from_memory(struct view *v, double bytes)
{
	const char *store = v->r->workload->storage.store;
	double data = v->d->work_s[WORK_DATA], readers = v->workers * v->r->ranks, copy, rate;

	if (v->r->nodes > 1 || strchr(store, '+') || data <= 0 ||
	    !(limit_cached(v->r) || workload_base_store(v->r->workload)->flags & STORE_IS_VOLATILE))
		return false;
	readers = fmin(readers,
		       fmin(MEMORY_COPIERS_MAX, fmax(1, ceil(result_usable_cpus(&v->r->host)))));
	copy = memory_copy_speed((unsigned)readers);
	rate = bytes / data * readers;
	if (copy > 0 && rate >= COPY_SHARE * copy)
		limited_by(v, "memory_bandwidth",
			   "limited by the memory bandwidth of this machine: reads deliver %.3g "
			   "GB/s of the %.3g GB/s that %.0f threads can copy; the dataset is in "
			   "memory, so this says nothing about the storage",
			   rate / 1e9, copy / 1e9, readers);
	else if (!(copy > 0))
		limited_by(v, "page_cache",
			   "limited by reads from the memory of this machine, at %.3g GB/s; this "
			   "says nothing about the storage",
			   rate / 1e9);
	else
		limited_by(v, "page_cache",
			   "limited by reads from the memory of this machine, at %.3g GB/s of the "
			   "%.3g GB/s that %.0f threads can copy: system calls cost more than the "
			   "bytes; this says nothing about the storage",
			   rate / 1e9, copy / 1e9, readers);
	return true;
}

static void at_store(struct view *v)
{
	const struct decomposition *d = v->d;
	double io = d->work_s[WORK_OPEN] + d->work_s[WORK_META] + d->work_s[WORK_DATA];
	double bytes = 0, requests = 0, readers = v->workers * v->r->ranks;
	const struct read_law *law = &v->law;
	bool apart = !(law->most.shared_ns_per_byte > 0);
	char rate[32];

	for (uint32_t k = 0; k < v->r->ranks; k++)
		for (int i = IO_META; i <= IO_DATA; i++) {
			bytes += (double)v->r->rank[k].train_io.kind[i].returned_bytes;
			requests += (double)v->r->rank[k].train_io.kind[i].requests;
		}
	if (from_memory(v, bytes))
		return;
	str_bytes(bytes / v->d->wall_s, rate, sizeof(rate));
	if (d->work_s[WORK_OPEN] >= 0.5 * io)
		limited_by(v, "metadata",
			   "limited by opening files: the workers spend %.0f %% of the time in "
			   "requests, %.0f %% of that opening files",
			   100 * v->inside, 100 * d->work_s[WORK_OPEN] / io);
	else if (law->shared_share >= law->stream_share && law->shared_share >= law->latency_share)
		limited_by(v, "bandwidth",
			   "limited by the bandwidth of the storage: the workers spend %.0f %% of "
			   "the time in requests, and %.0f concurrent readers share %s/s",
			   100 * v->inside, readers, rate);
	else if (law->stream_share >= law->latency_share)
		limited_by(v, apart ? "stream_bandwidth" : "bandwidth",
			   "limited by the bandwidth of the storage%s: the workers spend %.0f %% "
			   "of the time in requests, and %.0f readers together get %s/s",
			   apart ? " for one reader" : "", 100 * v->inside, readers, rate);
	else if (law->sizes_differ)
		limited_by(v, "latency",
			   "limited by the latency of the storage: the workers spend %.0f %% of "
			   "the time in requests, and each request takes %.3g ms regardless of its "
			   "size (%.3g requests per batch)",
			   100 * v->inside, 1e-6 * law->best.latency_ns,
			   requests / (double)d->batches);
	else
		limited_by(v, "storage",
			   "limited by the storage: the workers spend %.0f %% of the time in "
			   "requests; all requests have one size, so latency and bandwidth cannot "
			   "be separated",
			   100 * v->inside);
}

static void at_wait(struct view *v)
{
	const double *w = v->d->work_s;
	double io = w[WORK_OPEN] + w[WORK_META] + w[WORK_DATA], others;

	if (v->d->mean_s[TIME_WAIT + WAIT_START] > 0.5 * v->wait)
		limited_by(v, "start_up",
			   "limited by the start of the epochs: %.3g s in all before their first "
			   "batches are started",
			   v->d->mean_s[TIME_WAIT + WAIT_START]);
	else if (w[WORK_DECODE] >= io && w[WORK_DECODE] >= w[WORK_PREPROCESS] &&
		 w[WORK_DECODE] >= w[WORK_TRANSPORT]) {
		if (v->r->workload->run.measure == MEASURE_NONE) {
			limited_by(v, "reading",
				   "limited by reading: the workers are busy %.0f %% of the time; "
				   "the share of the storage was not measured (run.measure=none)",
				   100 * v->busy);
			say_workers_needed(v);
			return;
		}
		if (cpu_taken(v, &others)) {
			limited_by(v, "other_programs",
				   "limited by other programs on this machine, which use %.0f %% "
				   "of its processors and leave too little for decoding.",
				   100 * others);
			return;
		}
		limited_by(
			v, "decode",
			"limited by decoding on this machine: the workers are busy %.0f %% of the "
			"time, %.0f %% of that decoding",
			100 * v->busy, 100 * w[WORK_DECODE] / v->work);
	} else if (w[WORK_PREPROCESS] >= io && w[WORK_PREPROCESS] >= w[WORK_TRANSPORT]) {
		limited_by(v, "preprocess",
			   "limited by preprocessing: the workers are busy %.0f %% of the time, "
			   "%.0f %% "
			   "of that preprocessing",
			   100 * v->busy, 100 * w[WORK_PREPROCESS] / v->work);
	} else if (w[WORK_TRANSPORT] > io) {
		limited_by(v, "transport",
			   "limited by handing over batches: the workers are busy %.0f %% of the "
			   "time, %.0f %% of that packing",
			   100 * v->busy, 100 * w[WORK_TRANSPORT] / v->work);
	} else {
		at_store(v);
	}
	say_workers_needed(v);
}

void limit_find(const struct result *r, const struct run_metrics *m, struct limit *limit,
		struct outlook *outlook)
{
	struct view v = {.r = r, .m = m, .limit = limit, .outlook = outlook, .d = &r->judged.time};
	char text[sizeof(limit->text)], cause[sizeof(limit->cause)];

	if (m->epochs == 0 || !r->rank || !r->usage)
		return;
	if (!(v.d->wall_s > 0) || v.d->steps == 0)
		return;
	view_fill(&v, r);
	outlook_compute(r, m->epochs, &v.law, outlook);
	/* what a run of two halves would predict is true for neither */
	if (limit_no_forecast(r, v.loss, text, sizeof(text))) {
		*outlook = (struct outlook){0};
		snprintf(outlook->why, sizeof(outlook->why), "%.150s", text);
	}
	limit->loss_share = 100 * v.loss / v.d->wall_s;
	if (v.loss < SMALL_LOSS * v.d->wall_s)
		at_computation(&v);
	else if (limit_unsteady(r, v.loss, cause, sizeof(cause), text, sizeof(text)))
		limited_by(&v, cause, "%s", text);
	else if (v.d->mean_s[TIME_CHECKPOINT] > 0.5 * v.loss)
		limited_by(&v, "checkpoint",
			   "limited by checkpoints, which stop training for %.0f %% of the time.",
			   100 * v.d->mean_s[TIME_CHECKPOINT] / v.d->wall_s);
	else if (v.wait > 0.3 * v.loss && limit_memory(r, text, sizeof(text)))
		limited_by(&v, "memory", "%s", text);
	else if (at_barrier(&v) || at_window(&v) || at_workers(&v))
		return;
	else if (v.wait > 0.3 * v.loss && v.work > 0)
		at_wait(&v);
	else
		limited_by(&v, "other",
			   "%.0f %% of the time is spent between steps or at the barrier.",
			   100 * (v.loss - v.wait) / v.d->wall_s);
}
