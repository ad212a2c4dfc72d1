/* The curves of the machine against what was counted of the epochs: both are differences of the
 * same counters, and the epochs lie within the curves. */
#include <math.h>
#include <stddef.h>

#include "metric/series.h"
#include "readback/derivation.h"
#include "result/result.h"

static const double BYTES_SHARE = 0.01, BYTES_LEAST = 1 << 20;
static const double CPU_SHARE = 0.05, CPU_LEAST_S = 0.1; /* read by two ways */
static const char by_epochs[] = "what the epochs counted";

/* What the epochs counted. */
struct sums {
	double payload, returned, fetched, device, cpu_s;
};

static double known(bool is, uint64_t v)
{
	return is ? (double)v : 0;
}

static void add_usage(struct sums *s, const struct epoch_usage *u)
{
	s->returned += known(u->train.known, u->train.rchar_bytes) +
		       known(u->eval.known, u->eval.rchar_bytes);
	s->fetched += known(u->train.known, u->train.read_bytes) +
		      known(u->eval.known, u->eval.read_bytes);
	s->device += known(u->host_train.whole.known, u->host_train.whole.read_bytes) +
		     known(u->host_eval.whole.known, u->host_eval.whole.read_bytes);
	s->cpu_s += (double)(u->cpu_ns + u->cpu_eval_ns) / 1e9;
}

static struct sums sums_of(const struct result *r)
{
	struct sums s = {0};

	for (uint32_t e = 0; e < r->epochs_begun; e++) {
		if (r->usage)
			add_usage(&s, &r->usage[e]);
		for (uint32_t k = 0; r->rank && k < r->ranks; k++)
			s.payload += (double)r->rank[k].epoch[e].payload_bytes +
				     (double)r->rank[k].epoch[e].eval_payload_bytes;
	}
	return s;
}

/* ---- counters ---- */

/* What both a point and the difference over a phase have. */
struct counter {
	const char *name;
	bool disk; /* of the device, in struct block_counters; else of the process, in proc_io */
	size_t at;
	double least; /* by which the two may differ */
};

#define KIB64 65536.0
static const struct counter counter[] = {
	{"bytes returned to the run", false, offsetof(struct proc_io, rchar_bytes), KIB64},
	{"bytes fetched for the run", false, offsetof(struct proc_io, read_bytes), KIB64},
	{"bytes that the run wrote", false, offsetof(struct proc_io, write_bytes), KIB64},
	{"read calls of the run", false, offsetof(struct proc_io, syscr), 200},
	{"bytes read from the device", true, offsetof(struct block_counters, read_bytes), KIB64},
	{"bytes written to the device", true, offsetof(struct block_counters, written_bytes),
	 KIB64},
	{"reads of the device", true, offsetof(struct block_counters, reads), 20},
	{"writes of the device", true, offsetof(struct block_counters, writes), 20},
};
#define COUNTERS (sizeof(counter) / sizeof(counter[0]))

static double count_of(const struct counter *c, const struct proc_io *process,
		       const struct block_counters *disk)
{
	const void *of = c->disk ? (const void *)disk : process;

	return (c->disk ? disk->known : process->known)
		       ? (double)*(const uint64_t *)((const char *)of + c->at)
		       : NAN;
}

static double count_at(const struct counter *c, const struct series_point *p)
{
	return count_of(c, &p->process, &p->disk);
}

/* Counters do not go back. */
static void check_order(struct derive *d, const struct series_point *p, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		bool on = p[i].t_ns >= p[i - 1].t_ns && p[i].user >= p[i - 1].user &&
			  p[i].process_cpu_ns >= p[i - 1].process_cpu_ns &&
			  p[i].process.known == p->process.known &&
			  p[i].disk.known == p->disk.known;

		for (size_t k = 0; k < COUNTERS; k++)
			on = on &&
			     !(count_at(&counter[k], &p[i]) < count_at(&counter[k], &p[i - 1]));
		derive_holds(d, on, "the curves of result.json: a counter goes back at point %zu.",
			     i + 1);
	}
}

/* A point's time is read before its counters, and its thread may be stopped between. */
#define POINT_NS 100000000

/* The last point whose counters were read before a time; the first one when there is none. */
static size_t point_before(const struct series_point *p, size_t n, int64_t ns)
{
	size_t i = 0;

	while (i + 1 < n && p[i + 1].t_ns <= ns - POINT_NS)
		i++;
	return i;
}

/* The first point from a time on; the last one when there is none. */
static size_t point_from(const struct series_point *p, size_t n, int64_t ns)
{
	size_t i = 0;

	while (i + 1 < n && p[i].t_ns < ns)
		i++;
	return i;
}

/* A phase [begin, end] on the first rank, and until when what it counted may have been read. */
struct window {
	struct derive *d;
	const struct series_point *p;
	size_t n, epoch;
	int64_t before_ns, begin_ns, end_ns, after_ns;
	const char *name;
};

/* `counted` over the phase is not less than its curve rises within, nor more than around it. */
static void check_rise(const struct window *w, const char *what, double counted,
		       double (*at)(const struct counter *, const struct series_point *),
		       const struct counter *c, double slack)
{
	const struct series_point *in = &w->p[point_from(w->p, w->n, w->begin_ns)],
				  *out = &w->p[point_before(w->p, w->n, w->end_ns)],
				  *before = &w->p[point_before(w->p, w->n, w->before_ns)],
				  *after = &w->p[point_from(w->p, w->n, w->after_ns)];

	if (in < out)
		derive_at_most(w->d, at(c, out) - at(c, in), counted, slack, by_epochs,
			       "%s, by its curve within %s of epoch %zu,", what, w->name,
			       w->epoch + 1);
	derive_at_most(w->d, counted, at(c, after) - at(c, before), slack, "that of its curve",
		       "%s in %s of epoch %zu", what, w->name, w->epoch + 1);
}

#define TICKS_A_SECOND 100.0 /* of /proc/stat, on every architecture */
static double cpu_at(const struct counter *c, const struct series_point *p)
{
	(void)c;
	return (double)p->process_cpu_ns / 1e9;
}

static double host_cpu_at(const struct counter *c, const struct series_point *p)
{
	(void)c;
	return (double)p->cpu_busy_ticks / TICKS_A_SECOND;
}

static void check_window(const struct window *w, const struct proc_io *process,
			 const struct block_counters *disk, double cpu_s, double host_cpu_s)
{
	derive_holds(w->d, process->known == w->p->process.known && disk->known == w->p->disk.known,
		     "measures.bin: %s of epoch %zu was counted otherwise than the curves.",
		     w->name, w->epoch + 1);
	check_rise(w, "processor time of all programs (s)", host_cpu_s, host_cpu_at, NULL,
		   CPU_LEAST_S + CPU_SHARE * host_cpu_s);
	for (size_t k = 0; k < COUNTERS; k++) {
		double counted = count_of(&counter[k], process, disk);

		check_rise(w, counter[k].name, counted, count_at, &counter[k],
			   counter[k].least + BYTES_SHARE * counted);
	}
	check_rise(w, "processor time (s)", cpu_s, cpu_at, NULL, CPU_LEAST_S + CPU_SHARE * cpu_s);
}

static void check_windows(struct derive *d, const struct result *r, const struct series_point *p,
			  size_t n)
{
	const struct rank_epoch *ep = r->rank[0].epoch;
	struct window w = {.d = d, .p = p, .n = n};
	int64_t before = INT64_MIN / 2;

	for (w.epoch = 0; r->usage && w.epoch < r->epochs_done; w.epoch++) {
		const struct rank_epoch *one = &ep[w.epoch];
		const struct epoch_usage *u = &r->usage[w.epoch];
		int64_t next = w.epoch + 1 < r->epochs_begun ? one[1].begin_ns : INT64_MAX;

		w.name = "training";
		w.before_ns = before;
		w.begin_ns = one->begin_ns;
		w.end_ns = one->train_end_ns;
		w.after_ns = one->has_eval ? one->eval.begin_ns : next;
		if (r->trained)
			check_window(&w, &u->train, &u->host_train.whole, (double)u->cpu_ns / 1e9,
				     u->host_cpu_ns > 0 ? (double)u->host_cpu_ns / 1e9 : NAN);
		w.name = "the evaluation";
		w.before_ns = one->train_end_ns;
		w.begin_ns = one->eval.begin_ns;
		w.end_ns = one->eval.end_ns;
		w.after_ns = next;
		if (one->has_eval)
			check_window(&w, &u->eval, &u->host_eval.whole,
				     (double)u->cpu_eval_ns / 1e9, NAN);
		before = one->end_ns;
	}
}

/* Checkpoints read the counters of the process as the curves do. */
static void check_checkpoints(struct derive *d, const struct result *r,
			      const struct series_point *p, size_t n)
{
	for (uint32_t k = 0; k < r->ranks; k++)
		for (uint32_t e = 0; e < r->epochs_done; e++)
			for (uint32_t i = 0; i < r->rank[k].epoch[e].saves; i++) {
				const struct checkpoint_times *t = &r->rank[k].epoch[e].save[i];
				size_t a = point_before(p, n, t->begin_ns),
				       b = point_from(p, n, t->end_ns + POINT_NS);
				bool on = true;

				if (!t->done || p[a].t_ns > t->begin_ns || p[b].t_ns < t->end_ns)
					continue;
				for (size_t c = 0; c < COUNTERS; c++)
					on = on && (counter[c].disk ||
						    !(count_of(&counter[c], &t->io_before, NULL) <
							      count_at(&counter[c], &p[a]) ||
						      count_of(&counter[c], &t->io_after, NULL) >
							      count_at(&counter[c], &p[b])));
				derive_holds(d, on,
					     "measures.bin: the counters of checkpoint %u of epoch "
					     "%u on rank %u do not lie on their curves.",
					     i + 1, e + 1, k);
			}
}

/* ---- sample data ---- */

/* Bytes of the batches that ranks had by a time, where all samples have one size, and those of one
 * batch of each. */
static double payload_by(const struct result *r, int64_t ns, double *batch, size_t *steps)
{
	double sum = 0;

	*batch = 0;
	*steps = 0;
	for (uint32_t k = 0; k < r->ranks; k++) {
		double most = 0;

		for (uint32_t e = 0; e < r->epochs_begun; e++) {
			const struct rank_epoch *ep = &r->rank[k].epoch[e];
			uint64_t had[2] = {0}, all[2] = {0};
			uint64_t bytes[2] = {ep->payload_bytes, ep->eval_payload_bytes};

			for (uint32_t b = 0; b < ep->blocks + ep->has_eval; b++) {
				const struct phase *p = b < ep->blocks ? &ep->block[b] : &ep->eval;
				int eval = b >= ep->blocks;

				all[eval] += p->steps;
				*steps += p->steps;
				for (uint64_t i = 0; i < p->steps; i++)
					had[eval] += p->step[i].got_ns <= ns;
			}
			for (int of = 0; of < 2; of++) {
				double one = all[of] ? (double)bytes[of] / (double)all[of] : 0;

				sum += one * (double)had[of];
				most = fmax(most, one);
			}
		}
		*batch += most;
	}
	return sum;
}

#define LOOKED_AT 20000000 /* steps, of all points together, about */
static void check_payload(struct derive *d, const struct result *r, const struct series_point *p,
			  size_t n)
{
	size_t steps = 0;

	for (size_t i = 0; i < n; i += 1 + n / (1 + LOOKED_AT / (1 + steps))) {
		double batch, low = payload_by(r, p[i].t_ns - POINT_NS, &batch, &steps),
			      high = payload_by(r, p[i].t_ns + POINT_NS, &batch, &steps);
		double user = (double)p[i].user;

		derive_holds(d, user + 2 * batch >= low && user <= high + 2 * batch,
			     "the curve of sample data has %.10g bytes at point %zu, but ranks had "
			     "%.10g to %.10g by then, with the times of their steps.",
			     user, i + 1, low, high);
	}
}

/* ---- all ---- */

static void check_bytes(struct derive *d, double part, double whole, const char *what)
{
	derive_at_most(d, part, whole, BYTES_SHARE * whole + BYTES_LEAST, "that of its curve",
		       "%s in the epochs (bytes)", what);
}

void derive_curves(struct audit *a, size_t i, const struct result *r)
{
	struct derive d = derive_begin(a, i, "figures", "curves",
				       "curves of data delivered, returned, fetched and of "
				       "processors, from what the epochs counted and the steps "
				       "delivered");
	const struct series_point *p, *last;
	struct sums s = sums_of(r);
	size_t n = 0;

	p = r->series ? series_points(r->series, &n) : NULL;
	if (n < 2 || r->processes > 1) {
		derive_unchecked(&d, n < 2 ? "there are no curves"
					   : "counters of several processes are joined");
		return;
	}
	last = &p[n - 1];
	check_order(&d, p, n);
	if (r->rank && r->status == RUN_COMPLETE) {
		check_windows(&d, r, p, n);
		check_checkpoints(&d, r, p, n);
		if (!(r->workload->dataset.record_length_bytes_stdev > 0))
			check_payload(&d, r, p, n);
	}
	if (r->status == RUN_COMPLETE)
		derive_near(&d, (double)last->user, s.payload,
			    BYTES_SHARE * s.payload + BYTES_LEAST, by_epochs,
			    "sample data delivered by the end of its curve (bytes)");
	if (p->process.known && last->process.known) {
		check_bytes(&d, s.returned,
			    (double)(last->process.rchar_bytes - p->process.rchar_bytes),
			    "bytes returned to the run");
		check_bytes(&d, s.fetched,
			    (double)(last->process.read_bytes - p->process.read_bytes),
			    "bytes fetched for the run");
	}
	if (p->disk.known && last->disk.known)
		check_bytes(&d, s.device, (double)(last->disk.read_bytes - p->disk.read_bytes),
			    "bytes read from the device");
	derive_at_most(&d, s.cpu_s, (double)(last->process_cpu_ns - p->process_cpu_ns) / 1e9,
		       CPU_SHARE * s.cpu_s + CPU_LEAST_S, "that of its curve",
		       "processor time in the epochs (s)");
}
