/* Spending processor time. */
#include "loader/framework.h"

#include <math.h>
#include <time.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/run_delay.h"

#define LOOK_NS 50000 /* between checks of the processor time and of reasons to stop */

#define LEAST_NS 2000 /* not worth its own look at the time */

static const double QUARTILE = 0.6745; /* of a normal distribution, in standard deviations */
static const double FARTHEST = 0.9;    /* from the law, as a fraction of it: never negative */
static const double TO_UNIT = 0x1p-64; /* a word to [0, 1) */
static const double OF_THREE = 0.5;    /* standard deviation of the sum of three of these */
static const double MOST_S = 3600;     /* no single time is longer */

int64_t framework_thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* How far a single time is from the law, as a fraction of it: nearly normal, with a mean of 0. */
static double drawn(struct framework_code *f, const struct cost_law *law)
{
	double sum = 0;

	if (!(law->spread > 0))
		return 0;
	for (int i = 0; i < 3; i++)
		sum += (double)rng_word(f->key, f->draws++) * TO_UNIT;
	return fmax(-FARTHEST, fmin(FARTHEST, law->spread / QUARTILE * (sum - 1.5) / OF_THREE));
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

/* Spends so much from begin_ns of the thread on. Returns what it was. */
static int64_t spend_until(struct framework_code *f, int64_t begin_ns, int64_t want_ns)
{
	int64_t done = 0;

	while (done < want_ns && !ended(f)) {
		spin(want_ns - done < LOOK_NS ? want_ns - done : LOOK_NS);
		done = framework_thread_ns() - begin_ns;
	}
	f->spent->cpu_ns += done;
	return done;
}

/* A new worker is slower at first. */
static double first_s(struct framework_code *f, const struct cost_law *law, size_t row)
{
	bool first = !(f->been & (uint64_t)1 << row);

	f->been |= (uint64_t)1 << row;
	return first ? law->first : 0;
}

static int64_t spend(struct framework_code *f, const struct cost_law *law, size_t row, double s,
		     double bytes, const struct io_waits *within, double off, int64_t own_ns)
{
	int64_t begin = framework_thread_ns(), want, done = 0;
	double waited = waited_s(f, row, begin);

	s += cost_after_wait_s(law, bytes, waited) + first_s(f, law, row);
	if (within)
		s += each_wait_s(law, within, waited - (double)within->ns / NS_PER_S);
	want = s > 0 ? (int64_t)(fmin(s * (1 + off), MOST_S) * 1e9) : 0;
	if (own_ns < want)
		done = spend_until(f, begin, want - (own_ns > 0 ? own_ns : 0));
	else
		f->spent->beyond_ns += own_ns - want;
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
	return law->present ? spend(f, law, row, cost_law_s(law, samples, bytes), bytes, NULL,
				    drawn(f, law), own_ns)
			    : 0;
}

int64_t framework_spend_once(struct framework_code *f, enum cost_row row, int64_t *late_ns)
{
	int64_t begin, spent;

	if (!framework_on(f))
		return 0;
	begin = clock_now_ns();
	spent = framework_spend(f, row, 0, 0, 0);
	*late_ns += run_delay_take(clock_now_ns() - begin);
	return spent;
}

int64_t framework_spend_import(struct framework_code *f, const struct format_facts *format)
{
	const struct cost_law *law = f->dlio ? costs_of_load(f->costs, format) : NULL;
	const struct cost_law import = {.fixed = law ? law->import_s : 0};

	return import.fixed > 0 ? spend(f, &import, COST_BEGIN_DLIO, import.fixed, 0, NULL, 0, 0)
				: 0;
}

int64_t framework_spend_load(struct framework_code *f, const struct format_facts *format,
			     bool opened, double bytes, const struct io_waits *within,
			     int64_t own_ns)
{
	const struct framework_load l = f->load;
	const struct cost_law *law;
	double off;

	f->load.law = NULL;
	f->load.heads_most = l.heads;
	if (!f->costs)
		return 0;
	law = costs_of_load(f->costs, format);
	if (!law->present)
		return 0;
	off = l.law ? l.off : drawn(f, law);
	return spend(f, law, COST_ROWS,
		     cost_load_s(law, bytes, f->alone) - (opened ? 0 : law->fixed), bytes, within,
		     off, own_ns + (l.law ? l.spent_ns : 0));
}

void framework_load_begin(struct framework_code *f, const struct format_facts *format, double bytes)
{
	const struct cost_law *law = f->costs ? costs_of_load(f->costs, format) : NULL;

	f->load = (struct framework_load){.heads_most = f->load.heads_most};
	if (!law || !law->present || !(law->before_data + law->after_data > 0))
		return;
	f->load.law = law;
	f->load.bytes = bytes;
	f->load.off = drawn(f, law);
}

/* Of the law, by the time of a request for so many bytes; small requests behind data fill up a
 * buffer at once. The requests before the data are as many as for the sample before this one, and
 * what comes before the data lies between them evenly. */
static double so_far_s(struct framework_load *l, uint64_t asked, bool alone)
{
	double all = cost_load_s(l->law, l->bytes, alone), between, heads, done;
	double before = fmin(l->law->before_data, all);

	if (asked < COST_DATA_BYTES && l->data > 0)
		return 0;
	between = fmax(0, all - before - l->law->after_data);
	if (asked < COST_DATA_BYTES) {
		heads = ++l->heads < l->heads_most ? l->heads : l->heads_most;
		return before * heads / (l->heads_most + 1.0);
	}
	done = l->bytes > 0 ? fmin(1, (double)l->data / l->bytes) : 1;
	l->data += asked;
	return before + between * done;
}

int64_t framework_load_between(struct framework_code *f, uint64_t asked, int64_t own_ns)
{
	struct framework_load *l = &f->load;
	int64_t begin, at, want, took;

	if (!l->law)
		return 0;
	want = (int64_t)(so_far_s(l, asked, f->alone) * (1 + l->off) * 1e9) - own_ns - l->spent_ns;
	if (want < LEAST_NS)
		return 0;
	at = clock_now_ns();
	begin = framework_thread_ns();
	l->spent_ns += spend_until(f, begin, want);
	took = clock_now_ns() - at;
	l->took_ns += took;
	return took;
}
