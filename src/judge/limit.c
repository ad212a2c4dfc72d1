/* What held the run back most: the loss is looked for where most of it can be. */
#include "judge/limit.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory_speed.h"
#include "base/str.h"
#include "judge/decompose.h"
#include "predict/outlook.h"

static const double SMALL_LOSS = 0.05;    /* of the wall time: nothing to find */
static const double RANK_SHARE = 0.4;     /* of the loss, by one rank's being behind */
static const double ALONE_SHARE = 0.5;    /* of its host's being behind, by the last rank's own */
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

static void look(struct view *v, const struct result *r)
{
	double room;

	v->law = outlook_law(r);
	v->compute = v->d->mean_s[TIME_COMPUTE];
	v->wait = decompose_wait(v->d->mean_s);
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

__attribute__((format(printf, 3, 4))) static void name(struct view *v, const char *cause,
						       const char *fmt, ...)
{
	struct limit *l = v->limit;
	double au = v->m->train_au.count ? v->m->train_au.mean : v->m->whole_au.mean;
	va_list ap;
	size_t n;

	snprintf(l->cause, sizeof(l->cause), "%s", cause);
	snprintf(l->text, sizeof(l->text), "AU %.1f %%: ", au);
	n = strlen(l->text);
	va_start(ap, fmt);
	vsnprintf(l->text + n, sizeof(l->text) - n, fmt, ap);
	va_end(ap);
}

/* What would help. */
static void advise(struct view *v)
{
	const struct outlook *o = v->outlook;
	struct limit *l = v->limit;
	size_t n = strlen(l->text);
	char *at = l->text + n;
	size_t room = sizeof(l->text) - n;

	if (!o->known)
		snprintf(at, room, ".");
	else if (!o->needed_known)
		snprintf(at, room,
			 "; what more workers would reach cannot be said, as readers "
			 "always ran in the same company.");
	else if (o->workers_needed > v->r->rank[0].workers)
		snprintf(at, room, "; %u workers a rank would reach %.0f %%.", o->workers_needed,
			 o->needed_au);
	else if (o->workers_needed == 0)
		snprintf(at, room, "; more workers would not reach 90 %%.");
	else
		snprintf(at, room, ".");
}

static void no_loss(struct view *v)
{
	if (limit_cached(v->r))
		name(v, "page_cache",
		     "limited by computation, but the dataset lay in the page cache: this says "
		     "nothing of the storage.");
	else
		name(v, "compute",
		     "limited by computation; the storage keeps up (workers %.0f %% busy, %.3g "
		     "batches ready when asked for).",
		     100 * v->busy, v->d->ready_mean);
}

/* Of several hosts one whose ranks are behind nearly always, and not one of them alone: then that
 * one would be far behind the others of its host, too. */
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
	    d->last_behind_s >= ALONE_SHARE * d->last_node_behind_s)
		return false;
	h = result_node_host(v->r, d->last_node);
	name(v, "slow_host",
	     "limited by host %s, whose %u ranks come last in %.0f %% of the steps, %.3g ms after "
	     "those of other hosts, because of %s; all others wait for them.",
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
		name(v, "slow_rank",
		     "limited by rank %u%s%s, which comes last in %.0f %% of the steps, %.3g ms "
		     "after the others, because of %s; all others wait for it.",
		     d->last_rank, v->r->nodes > 1 ? " on host " : "",
		     v->r->nodes > 1 ? result_rank_host(v->r, d->last_rank)->hostname : "",
		     100 * d->last_share, 1e3 * d->last_behind_s, time_part_names[d->last_part]);
		return true;
	}
	if (v->skew <= v->wait || v->skew < 0.4 * v->loss)
		return false;
	name(v, "barrier",
	     "limited by ranks waiting for each other: %.0f %% of the time at the barrier, because "
	     "steps differ and a different rank is last (the slowest one, rank %u, in %.0f %%).",
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
	name(v, "prefetch",
	     "limited by the prefetch window of %llu batches: batches take %.3g ms +- %.3g ms, "
	     "and the workers are busy only %.0f %% of the time; a window of %llu would reach "
	     "%.0f %%",
	     (unsigned long long)v->r->rank[0].prefetch_batches, 1e3 * v->d->service_mean_s,
	     1e3 * v->d->service_dev_s, 100 * v->busy,
	     (unsigned long long)v->r->rank[0].prefetch_batches * 4, o->window_au);
	if (isnan(o->unordered_au))
		return true;
	size_t n = strlen(v->limit->text);

	snprintf(v->limit->text + n, sizeof(v->limit->text) - n, ", batches as they come %.0f %%.",
		 o->unordered_au);
	return true;
}

static bool few_workers(struct view *v)
{
	const struct outlook *o = v->outlook;
	uint32_t have = v->r->rank[0].workers;

	if (!o->known || o->workers_needed == 0 || o->workers_needed <= have ||
	    o->workers_needed > FEW_WORKERS || o->shared_s > o->fixed_s)
		return false;
	if (have == 0)
		name(v, "workers",
		     "limited by the lack of workers: the rank itself reads, %.3g ms a batch, and "
		     "nothing is computed meanwhile",
		     1e3 * v->d->service_mean_s);
	else
		name(v, "workers",
		     "limited by too few workers: %u, busy %.0f %% of the time, and a batch takes "
		     "one %.3g ms, while a step computes %.3g ms",
		     have, 100 * v->busy, 1e3 * v->d->service_mean_s,
		     1e3 * v->compute * v->r->ranks / (double)v->d->steps);
	advise(v);
	return true;
}

static double usable_cpus(const struct view *v)
{
	const struct host_facts *h = &v->r->host;

	return h->usable_cpus > 0 ? h->usable_cpus : h->cpu_count;
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
	readers = fmin(readers, fmin(MEMORY_COPIERS_MAX, fmax(1, ceil(usable_cpus(v)))));
	copy = memory_copy_speed((unsigned)readers);
	rate = bytes / data * readers;
	if (copy > 0 && rate >= COPY_SHARE * copy)
		name(v, "memory_bandwidth",
		     "limited by this machine's memory: reading delivers %.3g GB/s while it goes "
		     "on, of %.3g GB/s that %.0f threads copy; the dataset lies in memory, and "
		     "this says nothing of the storage",
		     rate / 1e9, copy / 1e9, readers);
	else if (!(copy > 0))
		name(v, "page_cache",
		     "limited by reading from this machine's memory, %.3g GB/s while it goes on; "
		     "this says nothing of the storage",
		     rate / 1e9);
	else
		name(v, "page_cache",
		     "limited by reading from this machine's memory, %.3g GB/s while it goes on, "
		     "of %.3g GB/s that %.0f threads copy: the system's calls cost more than the "
		     "bytes, and this says nothing of the storage",
		     rate / 1e9, copy / 1e9, readers);
	return true;
}

static void say_store(struct view *v)
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
		name(v, "metadata",
		     "limited by opening files: the workers are inside requests %.0f %% of the "
		     "time, %.0f %% of that opening",
		     100 * v->inside, 100 * d->work_s[WORK_OPEN] / io);
	else if (law->shared_share >= law->stream_share && law->shared_share >= law->latency_share)
		name(v, "bandwidth",
		     "limited by the storage's bandwidth: the workers are inside requests %.0f %% "
		     "of the time, and %.0f readers get %s/s together, each the less the more "
		     "there are",
		     100 * v->inside, readers, rate);
	else if (law->stream_share >= law->latency_share)
		name(v, apart ? "stream_bandwidth" : "bandwidth",
		     "limited by the storage's bandwidth%s: the workers are inside requests %.0f "
		     "%% of the time, and %.0f readers get %s/s together",
		     apart ? " for one reader" : "", 100 * v->inside, readers, rate);
	else if (law->sizes_differ)
		name(v, "latency",
		     "limited by the storage's latency: the workers are inside requests %.0f %% "
		     "of the time, and one takes %.3g ms whatever its size (%.3g requests a "
		     "batch)",
		     100 * v->inside, 1e-6 * law->best.latency_ns, requests / (double)d->batches);
	else
		name(v, "storage",
		     "limited by the storage: the workers are inside requests %.0f %% of the time; "
		     "all requests have one size, so that latency and bandwidth cannot be told "
		     "apart",
		     100 * v->inside);
}

static void say_wait(struct view *v)
{
	const double *w = v->d->work_s;
	double io = w[WORK_OPEN] + w[WORK_META] + w[WORK_DATA], others;

	if (v->d->mean_s[TIME_WAIT + WAIT_START] > 0.5 * v->wait)
		name(v, "start_up",
		     "limited by the start of the epochs: %.3g s until the first batch is begun",
		     v->d->mean_s[TIME_WAIT + WAIT_START]);
	else if (w[WORK_DECODE] >= io && w[WORK_DECODE] >= w[WORK_PREPROCESS] &&
		 w[WORK_DECODE] >= w[WORK_TRANSPORT]) {
		if (v->r->workload->run.measure == MEASURE_NONE) {
			name(v, "reading",
			     "limited by reading: the workers are busy %.0f %% of the time; what "
			     "of it is the storage's was not measured (run.measure=none)",
			     100 * v->busy);
			advise(v);
			return;
		}
		if (cpu_taken(v, &others)) {
			name(v, "other_programs",
			     "limited by other programs on this machine, which use %.0f %% of its "
			     "processors: decoding gets too little of them.",
			     100 * others);
			return;
		}
		name(v, "decode",
		     "limited by decoding on this machine: the workers are busy %.0f %% of the "
		     "time, %.0f %% of that decoding",
		     100 * v->busy, 100 * w[WORK_DECODE] / v->work);
	} else if (w[WORK_PREPROCESS] >= io && w[WORK_PREPROCESS] >= w[WORK_TRANSPORT]) {
		name(v, "preprocess",
		     "limited by preprocessing: the workers are busy %.0f %% of the time, %.0f %% "
		     "of that preprocessing",
		     100 * v->busy, 100 * w[WORK_PREPROCESS] / v->work);
	} else if (w[WORK_TRANSPORT] > io) {
		name(v, "transport",
		     "limited by handing batches over: the workers are busy %.0f %% of the time, "
		     "%.0f %% of that packing",
		     100 * v->busy, 100 * w[WORK_TRANSPORT] / v->work);
	} else {
		say_store(v);
	}
	advise(v);
}

void limit_find(const struct result *r, const struct run_metrics *m, struct limit *limit,
		struct outlook *outlook)
{
	struct view v = {.r = r, .m = m, .limit = limit, .outlook = outlook, .d = &r->judged.time};
	char text[sizeof(limit->text)];

	if (m->epochs == 0 || !r->rank || !r->usage)
		return;
	if (!(v.d->wall_s > 0) || v.d->steps == 0)
		return;
	look(&v, r);
	outlook_compute(r, m->epochs, &v.law, outlook);
	limit->loss_share = 100 * v.loss / v.d->wall_s;
	if (v.loss < SMALL_LOSS * v.d->wall_s)
		no_loss(&v);
	else if (v.d->mean_s[TIME_CHECKPOINT] > 0.5 * v.loss)
		name(&v, "checkpoint",
		     "limited by checkpoints, for which training stood %.0f %% of the time.",
		     100 * v.d->mean_s[TIME_CHECKPOINT] / v.d->wall_s);
	else if (v.wait > 0.3 * v.loss && limit_memory(r, text, sizeof(text)))
		name(&v, "memory", "%s", text);
	else if (at_barrier(&v) || at_window(&v) || few_workers(&v))
		return;
	else if (v.wait > 0.3 * v.loss && v.work > 0)
		say_wait(&v);
	else
		name(&v, "other", "%.0f %% of the time lies between the steps or in their meeting.",
		     100 * (v.loss - v.wait) / v.d->wall_s);
}
