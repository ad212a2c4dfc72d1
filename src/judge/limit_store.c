/* What of reading limits: a ceiling that is reached, or the time that each request takes. Named is
 * only what all explanations of the reads say. */
#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "judge/limit_memory.h"
#include "judge/limit_view.h"
#include "predict/outlook.h"
#include "store/store.h"

static const double STATS_SHARE = 0.3; /* of the time in requests: look-ups that are named */
static const double DATA_SHARE = 0.5;  /* of the time in requests: the same */
static const double CPU_SHARE = 0.5;   /* of the time in requests: they compute, they do not wait */
static const double OPEN_SHARE = 0.5;  /* of the time in requests */
static const double REACHED = 0.85;    /* of a ceiling: it limits, */
static const double EXCEEDED = 1.1;    /* and beyond this, it is none */
static const double OF_BYTES = 0.15;   /* of a request's time: it depends on its size */
static const double SAME = 1.25;       /* times the time alone: no longer without waiting */
static const double APART = 2;         /* times what was looked at: it is not what takes long */
static const double WORSE = 4;         /* times the best error, and */
static const double EXPLAINS = 0.3;    /* of a request's time: no explanation of it */

/* Finds the place of the limit. Where the kernel does not count what reads fetch from the file
 * system, it is not known to be the storage. */
static void find_place(struct limit_view *v)
{
	const struct host_io_source *s = v->r->host_source;
	bool unknown = v->r->judged.measured.storage == MEASURED_UNKNOWN;
	bool files = workload_base_store(v->r->workload)->flags & STORE_HAS_FILES;

	if (!files || !s || (!unknown && !s->client.uncounted))
		snprintf(v->place, sizeof(v->place), "storage");
	else
		snprintf(v->place, sizeof(v->place), "file system%s%s",
			 s->client.type[0] ? " " : "", s->client.type);
}

void limit_view_reading(struct limit_view *v)
{
	struct limit_reading *x = &v->reading;

	*x = (struct limit_reading){.readers = v->workers * v->r->ranks};
	for (uint32_t k = 0; k < v->r->ranks; k++) {
		const struct io_stat *io = &v->r->rank[k].train_io;

		for (int i = IO_META; i <= IO_DATA; i++) {
			x->bytes += (double)io->kind[i].returned_bytes;
			x->requests += (double)io->kind[i].requests;
		}
	}
	/* those that moved bytes: a stat of an open file waits in no queue */
	if (v->stations.known)
		x->requests = v->stations.reads_of_batch * (double)v->d->batches;
	x->each_s = v->stations.read_s;
	x->size = x->requests > 0 ? x->bytes / x->requests : 0;
	x->per_s = x->requests / v->d->wall_s;
	x->cached = v->r->nodes < 2 && (limit_cached(v->r) || limit_in_memory(v->r->workload));
	x->threads = v->r->memory_copy.threads;
	x->copy = x->cached ? v->r->memory_copy.bytes_per_s : 0;
	find_place(v);
}

static struct fact at_place(const struct limit_view *v, struct fact f)
{
	return fact_with(f, 0, v->place);
}

/* ---- memory, and nothing between: reads move bytes at a good part of its speed, or compute as
 * long as they take ---- */

static bool is_in_memory(const struct limit_view *v)
{
	return v->doing == LOST_REQUESTS && v->reading.cached && v->d->work_s[WORK_DATA] > 0;
}

/* Of a ceiling that is not reached, or that more than was reached refutes, nothing is said. */
static bool is_reached(double used, double ceiling)
{
	return isfinite(ceiling) && ceiling > 0 && used >= REACHED * ceiling &&
	       used <= EXCEEDED * ceiling;
}

/* Adds a fact with what is used of a ceiling, its figures `used` and the one after that: at least
 * what was reached. */
static void found_ceiling(struct limit_view *v, struct fact f, unsigned used)
{
	assert(f.figure[used] > 0 && isfinite(f.figure[used + 1]));
	f.figure[used + 1] = fmax(f.figure[used], f.figure[used + 1]);
	limit_found(v, f);
}

bool limit_at_memory_bandwidth(struct limit_view *v)
{
	const struct limit_reading *x = &v->reading;
	double data = v->d->work_s[WORK_DATA], rate;

	if (!is_in_memory(v))
		return false;
	rate = x->bytes / data * x->threads;
	/* the speed of copying was measured for a moment: reads may exceed it */
	if (rate < REACHED * x->copy || !(x->copy > 0) || data < DATA_SHARE * v->io)
		return false;
	found_ceiling(v, FACT(LIMIT_MEMORY_BANDWIDTH, rate, fmax(rate, x->copy), x->threads), 0);
	limit_workers_would(v);
	return true;
}

bool limit_at_memory_reads(struct limit_view *v)
{
	const struct limit_reading *x = &v->reading;
	double computed = fmax(0, v->cpu - v->d->work_s[WORK_DECODE]), rate;
	bool known = x->copy > 0;

	if (!is_in_memory(v) || computed < CPU_SHARE * v->io)
		return false;
	rate = x->bytes / v->io * x->threads;
	limit_found(v, FACT(LIMIT_MEMORY_READS, x->requests > 0 ? v->io / x->requests : 0,
			    fmin(1, computed / v->io), known ? rate : NAN,
			    known ? fmax(rate, x->copy) : NAN, x->threads));
	limit_workers_would(v);
	return true;
}

/* What all explanations of the requests that are as good as the best agree on. */
enum agreed {
	AGREED_NOTHING,
	AGREED_SHARED, /* a ceiling of all together is reached */
	AGREED_EACH,   /* each takes as long as if it were alone */
};

/* Whether requests of mean time and size took longer than alone, and what of their ceiling was
 * used, by the arithmetic of each explanation. The means are those of the run's counters: requests
 * that were looked at one by one are fewer, and shorter, because the long ones do not lie in one
 * window of time as a whole. */
static enum agreed agreed_on(const struct read_law *law, double each_s, double bytes, double per_s)
{
	bool shared = law->count > 0, alone = law->count > 0;

	for (uint32_t i = 0; i < law->count; i++) {
		const struct read_rates *r = &law->one[i];
		double ceiling = read_rates_ceiling(r, bytes);
		double by_itself = read_rates_alone(r, bytes) / 1e9;

		if (r->error_ns > WORSE * law->best.error_ns &&
		    r->error_ns > EXPLAINS * law->mean_ns)
			continue;
		shared = shared && is_reached(per_s, ceiling);
		alone = alone && by_itself * SAME >= each_s && by_itself <= APART * each_s;
	}
	shared = shared && is_reached(per_s, read_rates_ceiling(&law->best, bytes));
	return shared ? AGREED_SHARED : alone ? AGREED_EACH : AGREED_NOTHING;
}

/* What of a request's own time goes with its bytes, by one explanation. */
static double share_of_bytes(const struct read_rates *r, double bytes)
{
	double moving = fmax(r->stream_ns_per_byte, r->shared_ns_per_byte) * bytes +
			r->serve_ns_per_byte * bytes;
	double all = read_rates_alone(r, bytes);

	return all > 0 ? moving / all : 0;
}

/* ---- the store ---- */

/* How many are served at a time, and what a request takes without waiting; NAN where explanations
 * differ. */
static double servers_told(const struct read_law *law)
{
	uint32_t servers = read_law_servers(law);

	return servers ? (double)servers : (double)NAN;
}

static double alone_told(const struct read_law *law, double bytes)
{
	return read_law_servers(law) ? read_rates_alone(&law->best, bytes) / 1e9 : NAN;
}

/* A run without a probe says that one could tell. */
static void advise_probe(struct limit_view *v)
{
	if (v->law.probed)
		return;
	v->advised = true;
	limit_found(v, outlook_probe_would(v->outlook));
}

/* The samples are in memory, and yet reads take long: what lies between? And what more workers
 * would do, unless it is known that only a probe can tell. */
bool limit_end_reading(struct limit_view *v)
{
	const struct limit_reading *x = &v->reading;
	const double *work = v->d->work_s;

	limit_tell_kind(v);

	if (x->cached && x->requests > 0 && x->copy > 0)
		limit_found(v, fact_with(FACT(LIMIT_BETWEEN, x->size / (x->copy / x->threads),
					      (work[WORK_META] + work[WORK_DATA]) / x->requests),
					 0, v->r->workload->storage.store));
	if (v->outlook->needed_known || !v->advised)
		limit_workers_would(v);
	return true;
}

static bool mostly_opens(const struct limit_view *v, double and_s)
{
	return v->doing == LOST_REQUESTS && v->d->work_s[WORK_OPEN] + and_s >= OPEN_SHARE * v->io;
}

static enum agreed agreed_on_opens(const struct limit_view *v, double *each_s, double *per_s)
{
	double opens = v->stations.opens_of_batch * (double)v->d->batches;

	*each_s = opens > 0 ? v->d->work_s[WORK_OPEN] / opens : 0;
	*per_s = opens / v->d->wall_s;
	return agreed_on(&v->law.opens, *each_s, 1, *per_s);
}

bool limit_at_opens(struct limit_view *v)
{
	const struct read_law *law = &v->law.opens;
	double each_s, per_s;

	if (!mostly_opens(v, 0) || agreed_on_opens(v, &each_s, &per_s) != AGREED_SHARED)
		return false;
	found_ceiling(v,
		      at_place(v, FACT(LIMIT_OPENS, per_s, read_rates_ceiling(&law->best, 1),
				       each_s, alone_told(law, 1), servers_told(law))),
		      0);
	return limit_end_reading(v);
}

bool limit_at_metadata(struct limit_view *v)
{
	double each_s, per_s, stats = fmin(v->law.stat_s, v->d->work_s[WORK_META]);
	double of_batch = v->stations.opens_of_batch;
	enum agreed agreed;

	if (!mostly_opens(v, stats) || !(of_batch > 0))
		return false;
	agreed = agreed_on_opens(v, &each_s, &per_s);
	limit_found(v, FACT(LIMIT_METADATA, v->inside, (v->d->work_s[WORK_OPEN] + stats) / v->io,
			    of_batch, each_s + stats / (of_batch * (double)v->d->batches)));
	if (stats >= STATS_SHARE * v->io)
		limit_found(v, FACT(LIMIT_STATS, stats / v->io));
	if (agreed != AGREED_EACH) {
		limit_found(v, FACT(LIMIT_METADATA_UNTOLD));
		advise_probe(v);
	}
	return limit_end_reading(v);
}

bool limit_at_unseen_requests(struct limit_view *v)
{
	if (v->doing != LOST_REQUESTS || v->stations.known)
		return false;
	limit_found(v, at_place(v, FACT(LIMIT_STORAGE_RATE, v->inside,
					v->reading.bytes / v->d->wall_s)));
	return limit_end_reading(v);
}

static bool reads_agree(const struct limit_view *v, enum agreed on)
{
	const struct limit_reading *x = &v->reading;

	return v->doing == LOST_REQUESTS &&
	       agreed_on(&v->law.reads, x->each_s, x->size, x->per_s) == on;
}

bool limit_at_queue(struct limit_view *v)
{
	const struct read_law *law = &v->law.reads;
	const struct limit_reading *x = &v->reading;

	if (!reads_agree(v, AGREED_SHARED) || law->best.servers == 0)
		return false;
	found_ceiling(
		v,
		at_place(v, FACT(LIMIT_QUEUE, x->per_s, read_rates_ceiling(&law->best, x->size),
				 x->each_s, alone_told(law, x->size), servers_told(law))),
		0);
	return limit_end_reading(v);
}

bool limit_at_request_rate(struct limit_view *v)
{
	const struct read_rates *best = &v->law.reads.best;
	const struct limit_reading *x = &v->reading;

	if (!reads_agree(v, AGREED_SHARED) || best->burst == 0)
		return false;
	found_ceiling(
		v, at_place(v, FACT(LIMIT_REQUESTS, x->per_s, read_rates_ceiling(best, x->size))),
		0);
	return limit_end_reading(v);
}

bool limit_at_bandwidth(struct limit_view *v)
{
	const struct limit_reading *x = &v->reading;
	double ceiling = read_rates_ceiling(&v->law.reads.best, x->size);

	if (!reads_agree(v, AGREED_SHARED))
		return false;
	found_ceiling(v,
		      at_place(v, FACT(LIMIT_BANDWIDTH, v->inside, x->readers,
				       x->bytes / v->d->wall_s, ceiling * x->size)),
		      2);
	return limit_end_reading(v);
}

/* Whether each request takes its time by itself, most of it by its bytes, or most of it whatever
 * its size: by all explanations, and seen with different sizes. *share is the most that goes with
 * bytes, by any of them. */
static bool each_takes(const struct limit_view *v, bool by_bytes, double *share)
{
	const struct read_law *law = &v->law.reads;

	*share = 0;
	if (!reads_agree(v, AGREED_EACH) || !law->sizes_differ)
		return false;
	for (uint32_t i = 0; i < law->count; i++) {
		double one = share_of_bytes(&law->one[i], v->reading.size);

		if (by_bytes ? one < 0.5 : one > 0.5)
			return false;
		*share = fmax(*share, one);
	}
	return true;
}

bool limit_at_stream(struct limit_view *v)
{
	const struct limit_reading *x = &v->reading;
	double share;

	if (!each_takes(v, true, &share))
		return false;
	limit_found(
		v, at_place(v, FACT(LIMIT_STREAM, v->inside, x->readers, x->bytes / v->d->wall_s)));
	return limit_end_reading(v);
}

bool limit_at_latency(struct limit_view *v)
{
	double each_s = read_rates_alone(&v->law.reads.best, 0) / 1e9, share;
	double requests = v->stations.reads_of_batch;

	if (!each_takes(v, false, &share))
		return false;
	limit_found(v, at_place(v, share > OF_BYTES || v->law.places.slow != READS_ALIKE
					   ? FACT(LIMIT_LATENCY_MOSTLY, v->inside, each_s, requests)
					   : FACT(LIMIT_LATENCY, v->inside, each_s, requests)));
	return limit_end_reading(v);
}

/* The candidates are named, and what can tell them apart. */
bool limit_at_storage(struct limit_view *v)
{
	const struct stations *s = &v->stations;
	bool each = reads_agree(v, AGREED_EACH);

	if (v->doing != LOST_REQUESTS)
		return false;
	limit_found(v, at_place(v, each ? FACT(LIMIT_STORAGE_SIZE, v->inside, s->reads_of_batch,
					       s->read_s)
					: FACT(LIMIT_STORAGE_QUEUE, v->inside, s->reads_of_batch,
					       s->read_s)));
	if (!s->told)
		limit_found(v, FACT(UNTOLD_READS, v->law.reads.most));
	advise_probe(v);
	return limit_end_reading(v);
}
