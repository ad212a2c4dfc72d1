/* The curves of the machine against what was counted of the epochs: both are differences of the
 * same counters, and the epochs lie within the curves. */
#include <math.h>

#include "metric/series.h"
#include "readback/derivation.h"
#include "result/result.h"

static const double BYTES_SHARE = 0.01, BYTES_LEAST = 1 << 20;
static const double CPU_SHARE = 0.05, CPU_LEAST_S = 0.1; /* read by two ways */
static const char counted[] = "what the epochs counted";

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

/* Counters do not go back. */
static void check_order(struct derive *d, const struct series_point *p, size_t n)
{
	for (size_t i = 1; i < n; i++)
		derive_holds(d,
			     p[i].t_ns >= p[i - 1].t_ns && p[i].user >= p[i - 1].user &&
				     p[i].process.rchar_bytes >= p[i - 1].process.rchar_bytes &&
				     p[i].process.read_bytes >= p[i - 1].process.read_bytes &&
				     p[i].process_cpu_ns >= p[i - 1].process_cpu_ns,
			     "the curves of result.json: a counter goes back at point %zu.", i + 1);
}

static void check_bytes(struct derive *d, double part, double whole, const char *what)
{
	derive_at_most(d, part, whole, BYTES_SHARE * whole + BYTES_LEAST, "that of its curve",
		       "%s in the epochs (bytes)", what);
}

void derive_curves(struct audit *a, size_t i, const struct result *r)
{
	struct derive d = derive_begin(a, i, "figures", "curves",
				       "curves of data delivered, returned, fetched and of "
				       "processors, from what the epochs counted");
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
	if (r->status == RUN_COMPLETE)
		derive_near(&d, (double)last->user, s.payload,
			    BYTES_SHARE * s.payload + BYTES_LEAST, counted,
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
