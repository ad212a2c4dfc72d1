/* Spending processor time. */
#include "loader/framework.h"

#include <math.h>
#include <time.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/virtual.h"

#define LOOK_NS 50000 /* between looks at the processor time and at what may end it */

static const double QUARTILE = 0.6745; /* of a normal distribution, in standard deviations */
static const double FARTHEST = 0.9;    /* from the law, as a fraction of it: never negative */
static const double TO_UNIT = 0x1p-64; /* a word to [0, 1) */
static const double OF_THREE = 0.5;    /* standard deviation of the sum of three of these */
static const double MOST_S = 3600;     /* no single time is longer */

int64_t framework_thread_ns(void)
{
	struct timespec t;

	if (virtual_on())
		return virtual_computed_ns();
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* A single time about the law: nearly normal, with the law as its mean. */
static double drawn(struct framework_code *f, const struct cost_law *law, double s)
{
	double sum = 0, off;

	if (!(law->spread > 0))
		return s;
	for (int i = 0; i < 3; i++)
		sum += (double)rng_word(f->key, f->draws++) * TO_UNIT;
	off = law->spread / QUARTILE * (sum - 1.5) / OF_THREE;
	return s * (1 + fmax(-FARTHEST, fmin(FARTHEST, off)));
}

static bool ended(const struct framework_code *f)
{
	return stop_is_set(f->stop) ||
	       (f->halt && atomic_load_explicit(f->halt, memory_order_acquire) & f->halts);
}

/* In user mode, as the framework's code: the clock below needs no system call. */
static void spin(int64_t ns)
{
	int64_t until = clock_now_ns() + ns;

	if (virtual_on()) {
		virtual_compute(ns);
		return;
	}
	while (clock_now_ns() < until)
		continue;
}

/* What the thread waited since the row was spent last. From 0 for the first time, which is long
 * ago. */
static double waited_s(const struct framework_code *f, size_t row, int64_t thread_ns)
{
	int64_t waited =
		clock_now_ns() - f->left[row].clock_ns - (thread_ns - f->left[row].thread_ns);

	return (double)waited / NS_PER_S;
}

/* What waits add that are not the longest. before_s: of a wait before them. */
static double each_wait_s(const struct cost_law *law, const struct io_waits *within,
			  double before_s)
{
	double before = io_wait_weight(before_s, COST_EACH_WAIT_S);

	return law->after_each_wait * (within->all + before - fmax(within->most, before));
}

static int64_t spend(struct framework_code *f, const struct cost_law *law, size_t row, double s,
		     double bytes, const struct io_waits *within, int64_t own_ns)
{
	int64_t begin = framework_thread_ns(), want, done = 0;
	double waited = waited_s(f, row, begin);

	s += cost_after_wait_s(law, bytes, waited);
	if (within)
		s += each_wait_s(law, within, waited - (double)within->ns / NS_PER_S);
	want = s > 0 ? (int64_t)(fmin(drawn(f, law, s), MOST_S) * 1e9) : 0;
	if (own_ns < want) {
		want -= own_ns > 0 ? own_ns : 0;
		while (done < want && !ended(f)) {
			/* in virtual time nothing but the end of a run comes between */
			spin(want - done < LOOK_NS || virtual_on() ? want - done : LOOK_NS);
			done = framework_thread_ns() - begin;
		}
		f->spent->cpu_ns += done;
	} else {
		f->spent->beyond_ns += own_ns - want;
	}
	f->left[row].thread_ns = begin + done;
	f->left[row].clock_ns = clock_now_ns();
	return done;
}

int64_t framework_spend(struct framework_code *f, enum cost_row row, double samples, double bytes,
			int64_t own_ns)
{
	const struct cost_law *law;

	if (!f->costs)
		return 0;
	law = costs_in(f->costs, row, f->dlio);
	return law->present
		       ? spend(f, law, row, cost_law_s(law, samples, bytes), bytes, NULL, own_ns)
		       : 0;
}

int64_t framework_spend_load(struct framework_code *f, const struct format_facts *format,
			     bool opened, double bytes, const struct io_waits *within,
			     int64_t own_ns)
{
	const struct cost_law *law;

	if (!f->costs)
		return 0;
	law = costs_of_load(f->costs, format);
	return law->present ? spend(f, law, COST_ROWS,
				    cost_law_s(law, 1, bytes) - (opened ? 0 : law->fixed), bytes,
				    within, own_ns)
			    : 0;
}
