/* What of reading limits: the station that is full, or the one whose time explains a batch. */
#include <math.h>
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
static const double FULL = 0.85;      /* of a ceiling */
static const double EXPLAINS = 0.5;   /* of a batch's time in requests, by one station */
static const double EXPLAINS_MOST = 1.6;

/* All that reading returned, and how fast this machine's memory could give it. */
struct reading {
	double bytes, requests, opens;
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
			rate / 1e9, x->copy / 1e9, x->threads);
		return true;
	}
	if (fmax(0, v->cpu - other) < CPU_SHARE * v->io)
		return false;
	limit_say(v, "page_cache",
		  "limited by reads from the memory of this machine: %.3g us each, %.0f %% of that "
		  "on the processor, at %.3g GB/s",
		  x->requests > 0 ? 1e6 * v->io / x->requests : 0,
		  fmin(100, 100 * fmax(0, v->cpu - other) / v->io), rate / 1e9);
	if (x->copy > 0)
		limit_add(v, " of the %.3g GB/s that %.0f threads can copy", x->copy / 1e9,
			  x->threads);
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

/* The largest share of the time in requests; those that share a ceiling count together. */
static int largest(const struct stations *s)
{
	int at = STATION_LATENCY;

	for (int k = 0; k < STATION_KINDS; k++)
		at = s->of[k].share > s->of[at].share ? k : at;
	return at;
}

/* Whether requests of a batch by the time of each are about the time a batch is in requests. */
static bool explains_batch(const struct limit_view *v, const struct station *t, double io)
{
	double of_batch = v->d->batches ? io / (double)v->d->batches : 0;

	return of_batch > 0 && t->of_batch_s >= EXPLAINS * of_batch &&
	       t->of_batch_s <= EXPLAINS_MOST * of_batch;
}

/* A ceiling of all requests together that is reached. */
static bool at_ceiling(struct limit_view *v, const struct reading *x, bool opens)
{
	const struct stations *s = &v->stations;
	const struct station *t;
	char used[32], most[32];
	int k = s->saturated;

	if (k < 0 || s->of[k].utilization < FULL || (k >= STATION_OPEN_LATENCY) != opens)
		return false;
	t = &s->of[k];
	str_bytes(t->used, used, sizeof(used));
	str_bytes(t->ceiling, most, sizeof(most));
	switch (k) {
	case STATION_BANDWIDTH:
		limit_say(v, "bandwidth",
			  "limited by the bandwidth of the storage: the workers spend %.0f %% of "
			  "the time in requests, and %.0f readers share %s/s (it can give %s/s)",
			  100 * v->inside, x->readers, used, most);
		return true;
	case STATION_QUEUE:
		if (!(t->servers > 0))
			limit_say(v, "queue",
				  "limited by a queue of the storage: it serves %.3g requests/s "
				  "of the %.3g/s it can, and each takes %.3g ms with its waiting",
				  t->used, t->ceiling, 1e3 * s->read_s);
		else
			limit_say(v, "queue",
				  "limited by a queue of the storage: it serves %.0f request%s at "
				  "a time, "
				  "%.3g/s of the %.3g/s it can; of the %.3g ms that a request "
				  "takes, it "
				  "is served for %.3g ms and waits for others else",
				  t->servers, t->servers == 1 ? "" : "s", t->used, t->ceiling,
				  1e3 * s->read_s, 1e3 * t->each_s);
		return true;
	case STATION_REQUESTS:
		limit_say(v, "requests",
			  "limited by the number of requests that the storage takes: %.3g/s of the "
			  "%.3g/s it can, of all readers together, whatever their size",
			  t->used, t->ceiling);
		return true;
	case STATION_OPEN_QUEUE:
		limit_say(v, "opens", "limited by opening files");
		if (t->servers > 0)
			limit_add(v, ", %.0f at a time", t->servers);
		limit_add(v,
			  ": %.3g opens/s of the %.3g/s that the storage can; the workers spend "
			  "%.0f %% of the time in requests, %.0f %% of that opening files",
			  t->used, t->ceiling, 100 * v->inside,
			  100 * v->d->work_s[WORK_OPEN] / v->io);
		return true;
	default:
		return false;
	}
}

static void at_opens(struct limit_view *v, const struct reading *x)
{
	const struct stations *s = &v->stations;

	if (at_ceiling(v, x, true))
		return;
	limit_say(v, "metadata",
		  "limited by opening files: the workers spend %.0f %% of the time in requests, "
		  "%.0f %% of that opening files (%.3g opens per batch, %.3g ms each)",
		  100 * v->inside, 100 * v->d->work_s[WORK_OPEN] / v->io, s->opens_of_batch,
		  s->opens_of_batch > 0 ? 1e3 * v->d->work_s[WORK_OPEN] / (double)v->d->batches /
						  s->opens_of_batch
					: 0);
}

static void at_unknown(struct limit_view *v, const char *either)
{
	const struct stations *s = &v->stations;

	limit_say(v, "storage",
		  "limited by the storage: the workers spend %.0f %% of the time in requests, "
		  "%.3g per batch and %.3g ms each; whether %s cannot be told from this run%s%s "
		  "(run.probe=true can)",
		  100 * v->inside, s->reads_of_batch, 1e3 * s->read_s, either,
		  s->untold[0] ? ", because " : "", s->untold);
}

bool limit_at_store(struct limit_view *v)
{
	const struct reading x = reading_of(v);
	const struct stations *s = &v->stations;
	double reads = v->d->work_s[WORK_META] + v->d->work_s[WORK_DATA];
	const struct station *latency = &s->of[STATION_LATENCY];
	char rate[32];
	int most = largest(s);

	if (at_memory(v, &x)) {
		limit_add_workers(v);
		return true;
	}
	str_bytes(x.bytes / v->d->wall_s, rate, sizeof(rate));
	if (v->d->work_s[WORK_OPEN] >= OPEN_SHARE * v->io)
		at_opens(v, &x);
	else if (at_ceiling(v, &x, false))
		;
	else if (!s->known)
		limit_say(v, "storage",
			  "limited by the storage: the workers spend %.0f %% of the time in "
			  "requests, at %s/s",
			  100 * v->inside, rate);
	else if (most == STATION_LATENCY && latency->known && explains_batch(v, latency, reads))
		limit_say(v, "latency",
			  "limited by the latency of the storage: the workers spend %.0f %% of "
			  "the time in requests, and each request takes %.3g ms regardless of its "
			  "size (%.3g requests per batch)",
			  100 * v->inside, 1e3 * latency->each_s, s->reads_of_batch);
	else if (most == STATION_STREAM)
		limit_say(v, "stream_bandwidth",
			  "limited by the bandwidth of the storage for one reader: the workers "
			  "spend %.0f %% of the time in requests, and %.0f readers together get "
			  "%s/s",
			  100 * v->inside, x.readers, rate);
	else if (most == STATION_BANDWIDTH)
		limit_say(v, "bandwidth",
			  "limited by the bandwidth of the storage: the workers spend %.0f %% of "
			  "the time in requests, and %.0f readers share %s/s",
			  100 * v->inside, x.readers, rate);
	else if (most == STATION_LATENCY && !v->law.reads.sizes_differ)
		at_unknown(v, "each request takes so long whatever its size, or by its bytes");
	else
		at_unknown(v, "requests wait for each other or take so long each");
	add_between(v, &x);
	if (strcmp(v->limit->cause, "storage") == 0 && !v->outlook->needed_known)
		limit_add(v, ".");
	else
		limit_add_workers(v);
	return true;
}
