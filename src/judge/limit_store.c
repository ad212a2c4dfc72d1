/* What of reading limits: a ceiling that is reached, or the time that each request takes. Named is
 * only what all explanations of the reads say. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory_speed.h"
#include "base/str.h"
#include "judge/limit_memory.h"
#include "judge/limit_view.h"
#include "store/store.h"

static const double COPY_SHARE = 0.4; /* of the speed of copying: the bytes are what costs */
static const double DATA_SHARE = 0.5; /* of the time in requests: the same */
static const double CPU_SHARE = 0.5;  /* of the time in requests: they compute, they do not wait */
static const double OPEN_SHARE = 0.5; /* of the time in requests */
static const double FULL = 0.85;      /* of a ceiling: it is reached */
static const double SAME = 1.25;      /* times the time alone: no longer without waiting */
static const double APART = 2;        /* times what was looked at: it is not what takes long */
static const double WORSE = 4;        /* times the best error, and */
static const double EXPLAINS = 0.3;   /* of a request's time: no explanation of it */

/* All that reading returned, and how fast this machine's memory could give it. */
struct reading {
	double bytes, requests;
	double readers; /* threads that read */
	double threads; /* of them, those that can run at once */
	bool cached;    /* the page cache, or a store in memory, has the samples */
	double copy;    /* bytes/s that as many threads can copy; 0: not known */
};

static struct reading reading_of(const struct limit_view *v)
{
	struct reading x = {.readers = v->workers * v->r->ranks};

	for (uint32_t k = 0; k < v->r->ranks; k++) {
		const struct io_stat *io = &v->r->rank[k].train_io;

		for (int i = IO_META; i <= IO_DATA; i++) {
			x.bytes += (double)io->kind[i].returned_bytes;
			x.requests += (double)io->kind[i].requests;
		}
	}
	/* those that moved bytes: a stat of an open file waits in no queue */
	if (v->stations.known)
		x.requests = v->stations.reads_of_batch * (double)v->d->batches;
	/* a shim over a store in memory is there to be slow */
	x.cached = v->r->nodes < 2 &&
		   (limit_cached(v->r) ||
		    (workload_base_store(v->r->workload)->flags & STORE_IS_VOLATILE &&
		     !strchr(v->r->workload->storage.store, '+')));
	if (!x.cached)
		return x;
	x.threads = fmin(x.readers,
			 fmin(MEMORY_COPIERS_MAX, fmax(1, ceil(result_usable_cpus(&v->r->host)))));
	x.copy = memory_copy_speed((unsigned)x.threads);
	return x;
}

/* Whose limit it is. Where the kernel does not count what reads of the file system fetch, nobody
 * knows that it was the storage. */
static const char *place(const struct limit_view *v, char *out, size_t size)
{
	const struct host_io_source *s = v->r->host_source;
	bool unknown = v->r->judged.measured.storage == MEASURED_UNKNOWN;
	bool files = workload_base_store(v->r->workload)->flags & STORE_HAS_FILES;

	if (!files || !s || (!unknown && !s->client.uncounted))
		return "the storage";
	snprintf(out, size, "the file system%s%s", s->client.type[0] ? " " : "", s->client.type);
	return out;
}

/* Memory, and nothing between: reads move bytes at a good part of its speed, or compute as long as
 * they take. */
static bool at_memory(struct limit_view *v, const struct reading *x)
{
	double data = v->d->work_s[WORK_DATA], rate;
	double other = v->d->work_s[WORK_DECODE];

	if (!x->cached || data <= 0)
		return false;
	rate = x->bytes / data * x->threads;
	if (x->copy > 0 && data >= DATA_SHARE * v->io && rate >= COPY_SHARE * x->copy) {
		limit_say(
			v, "memory_bandwidth",
			"limited by the memory bandwidth of this machine: reads deliver %.3g GB/s "
			"of the %.3g GB/s that %.0f threads can copy; the dataset is in memory, "
			"so this says nothing about the storage",
			rate / 1e9, fmax(rate, x->copy) / 1e9, x->threads);
		return true;
	}
	if (fmax(0, v->cpu - other) < CPU_SHARE * v->io)
		return false;
	rate = x->bytes / v->io * x->threads;
	limit_say(v, "page_cache",
		  "limited by reads from the memory of this machine: %.3g us each, %.0f %% of that "
		  "on the processor",
		  x->requests > 0 ? 1e6 * v->io / x->requests : 0,
		  fmin(100, 100 * fmax(0, v->cpu - other) / v->io));
	if (x->copy > 0)
		limit_add(v, ", at %.3g GB/s of the %.3g GB/s that %.0f threads can copy",
			  rate / 1e9, fmax(rate, x->copy) / 1e9, x->threads);
	limit_add(v,
		  ": system calls cost more than the bytes; this says nothing about the storage");
	return true;
}

/* The samples are in memory, and yet reads take long: what lies between? */
static void add_between(struct limit_view *v, const struct reading *x)
{
	double each;

	if (!x->cached || x->requests <= 0 || !(x->copy > 0))
		return;
	each = x->bytes / x->requests / (x->copy / x->threads);
	limit_add(v,
		  ". The data was in memory, which could give it in %.2g ms a request, not %.3g: "
		  "the time goes to what is between, the file system or the store '%.64s'",
		  1e3 * each,
		  1e3 * (v->d->work_s[WORK_META] + v->d->work_s[WORK_DATA]) / x->requests,
		  v->r->workload->storage.store ? v->r->workload->storage.store : "");
}

/* What all explanations of the requests that are as good as the best agree on. */
enum agreed {
	AGREED_NOTHING,
	AGREED_SHARED, /* requests wait for each other, or a ceiling of all together is reached */
	AGREED_EACH,   /* each takes as long as if it were alone */
};

/* Requests as the counters of the run have them: those that were looked at one by one are fewer,
 * and shorter, because the long ones do not lie in one window of time as a whole. */
struct requests {
	double each_s, bytes; /* mean */
	double per_s;         /* of all readers */
};

/* Whether reads took longer than alone, and what of their ceiling was used, by the arithmetic of
 * each explanation. */
static enum agreed agreed_on(const struct read_law *law, const struct requests *q)
{
	bool shared = law->count > 0, alone = law->count > 0;

	for (uint32_t i = 0; i < law->count; i++) {
		const struct read_rates *r = &law->one[i];
		double ceiling = read_rates_ceiling(r, q->bytes);
		double by_itself = read_rates_alone(r, q->bytes) / 1e9;

		if (r->error_ns > WORSE * law->best.error_ns &&
		    r->error_ns > EXPLAINS * law->mean_ns)
			continue;
		shared = shared && isfinite(ceiling) &&
			 (by_itself * SAME < q->each_s || q->per_s >= FULL * ceiling);
		alone = alone && by_itself * SAME >= q->each_s && by_itself <= APART * q->each_s;
	}
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

/* How many requests are served at a time, if all explanations of such a queue say the same; else 0.
 */
static uint32_t servers_of(const struct read_law *law)
{
	for (uint32_t i = 0; i < law->count; i++)
		if (law->one[i].servers && law->one[i].servers != law->best.servers)
			return 0;
	return law->best.servers;
}

/* Three digits, and no powers of ten. */
static const char *count_text(double n, char *out, size_t size)
{
	snprintf(out, size, n < 1000 ? "%.3g" : "%.0f", n);
	return out;
}

/* A ceiling of all readers together. */
static void at_ceiling(struct limit_view *v, const struct reading *x, const struct requests *q)
{
	const struct read_rates *best = &v->law.reads.best;
	double ceiling = read_rates_ceiling(best, q->bytes);
	char rate[32], most[32], at[64];
	const char *where = place(v, at, sizeof(at));

	if (best->servers) {
		limit_say(v, "queue",
			  "limited by a queue of %s: requests wait for others, and it "
			  "serves %s/s of the %s/s it can; a request takes %.3g ms",
			  where, count_text(q->per_s, rate, sizeof(rate)),
			  count_text(ceiling, most, sizeof(most)), 1e3 * q->each_s);
		if (servers_of(&v->law.reads))
			limit_add(v, ", %.3g ms of that without waiting (%u at a time)",
				  1e-6 * read_rates_alone(best, q->bytes), best->servers);
	} else if (best->burst)
		limit_say(v, "requests",
			  "limited by the number of requests that %s takes: %s/s of the "
			  "%s/s it can, of all readers together, whatever their size",
			  where, count_text(q->per_s, rate, sizeof(rate)),
			  count_text(ceiling, most, sizeof(most)));
	else
		limit_say(v, "bandwidth",
			  "limited by the bandwidth of %s: the workers spend %.0f %% of "
			  "the time in requests, and %.0f readers share %s/s of the %s/s it can "
			  "give",
			  where, 100 * v->inside, x->readers,
			  str_bytes(x->bytes / v->d->wall_s, rate, sizeof(rate)),
			  str_bytes(ceiling * q->bytes, most, sizeof(most)));
}

static const char *advice(const struct limit_view *v)
{
	return v->law.probed ? "" : " (run.probe=true can)";
}

static void at_opens(struct limit_view *v)
{
	const struct read_rates *best = &v->law.opens.best;
	const struct stations *s = &v->stations;
	double opens = s->opens_of_batch * (double)v->d->batches;
	const struct requests q = {.each_s = opens > 0 ? v->d->work_s[WORK_OPEN] / opens : 0,
				   .bytes = 1,
				   .per_s = opens / v->d->wall_s};
	enum agreed agreed = agreed_on(&v->law.opens, &q);
	char rate[32], most[32], at[64];

	if (agreed == AGREED_SHARED) {
		limit_say(v, "opens",
			  "limited by opening files: %s opens/s of the %s/s that %s "
			  "can, of all readers together; an open takes %.3g ms",
			  count_text(q.per_s, rate, sizeof(rate)),
			  count_text(read_rates_ceiling(best, 1), most, sizeof(most)),
			  place(v, at, sizeof(at)), 1e3 * q.each_s);
		if (servers_of(&v->law.opens))
			limit_add(v, ", %.3g ms of that without waiting (%u at a time)",
				  1e-6 * read_rates_alone(best, 1), best->servers);
	} else
		limit_say(v, "metadata",
			  "limited by opening files: the workers spend %.0f %% of the time in "
			  "requests, %.0f %% of that opening files (%.3g opens per batch, %.3g ms "
			  "each)%s%s",
			  100 * v->inside, 100 * v->d->work_s[WORK_OPEN] / v->io, s->opens_of_batch,
			  1e3 * q.each_s,
			  agreed == AGREED_EACH
				  ? ""
				  : "; whether opens wait for each other cannot be told from this "
				    "run",
			  agreed == AGREED_EACH ? "" : advice(v));
}

/* Each request takes its time by itself: whatever its size, or by its bytes. */
static bool at_each(struct limit_view *v, const struct reading *x, const struct requests *q)
{
	const struct read_law *law = &v->law.reads;
	bool bytes = true, latency = true;
	char rate[32], at[64];
	const char *where = place(v, at, sizeof(at));

	for (uint32_t i = 0; i < law->count; i++) {
		double share = share_of_bytes(&law->one[i], q->bytes);

		bytes = bytes && share >= 0.5;
		latency = latency && share <= 0.5;
	}
	if (!law->sizes_differ || (!bytes && !latency))
		return false;
	if (bytes)
		limit_say(v, "stream_bandwidth",
			  "limited by the bandwidth of %s for one reader: the workers "
			  "spend %.0f %% of the time in requests, and %.0f readers together get "
			  "%s/s without waiting for each other",
			  where, 100 * v->inside, x->readers,
			  str_bytes(x->bytes / v->d->wall_s, rate, sizeof(rate)));
	else
		limit_say(v, "latency",
			  "limited by the latency of %s: the workers spend %.0f %% of "
			  "the time in requests, and each request takes %.3g ms regardless of its "
			  "size (%.3g requests per batch)",
			  where, 100 * v->inside, 1e-6 * read_rates_alone(&law->best, 0),
			  v->stations.reads_of_batch);
	return true;
}

/* The candidates are named, and what can tell them apart. */
static void at_unknown(struct limit_view *v, const char *either)
{
	const struct stations *s = &v->stations;
	char at[64];

	limit_say(v, "storage",
		  "limited by %s: the workers spend %.0f %% of the time in requests, "
		  "%.3g per batch and %.3g ms each; whether %s cannot be told from this run%s%s%s",
		  place(v, at, sizeof(at)), 100 * v->inside, s->reads_of_batch, 1e3 * s->read_s,
		  either, s->untold[0] ? ", because " : "", s->untold, advice(v));
}

bool limit_at_store(struct limit_view *v)
{
	const struct reading x = reading_of(v);
	const struct stations *s = &v->stations;
	const struct requests q = {.each_s = s->read_s,
				   .bytes = x.requests > 0 ? x.bytes / x.requests : 0,
				   .per_s = x.requests / v->d->wall_s};
	char rate[32], at[64];

	if (at_memory(v, &x)) {
		limit_add_workers(v);
		return true;
	}
	if (v->d->work_s[WORK_OPEN] >= OPEN_SHARE * v->io) {
		at_opens(v);
	} else if (!s->known) {
		limit_say(v, "storage",
			  "limited by %s: the workers spend %.0f %% of the time in "
			  "requests, at %s/s",
			  place(v, at, sizeof(at)), 100 * v->inside,
			  str_bytes(x.bytes / v->d->wall_s, rate, sizeof(rate)));
	} else {
		switch (agreed_on(&v->law.reads, &q)) {
		case AGREED_SHARED:
			at_ceiling(v, &x, &q);
			break;
		case AGREED_EACH:
			if (!at_each(v, &x, &q))
				at_unknown(v, "it takes so long whatever the size of a request, or "
					      "by its bytes,");
			break;
		case AGREED_NOTHING:
			at_unknown(v, "requests wait for each other, or each takes so long by "
				      "itself,");
		}
	}
	add_between(v, &x);
	if (v->outlook->needed_known || !strstr(v->limit->text, "run.probe"))
		limit_add_workers(v);
	else
		limit_add(v, ".");
	return true;
}
