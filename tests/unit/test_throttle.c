/* The throttle: its arithmetic exactly, with a fake clock, and its waiting against a simulation. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/thread.h"
#include "store/store.h"
#include "store/throttle_share.h"

#define MS 1000000LL
#define MB 1000000ULL

/* ---- the arithmetic ---- */

#define LIMITS(B, b1, n)                                                                           \
	(&(struct share_limits){.bandwidth = (B), .stream_bandwidth = (b1), .slots = (n)})

static void assert_ns(double got, double want)
{
	if (fabs(got - want) > 0.01)
		fail_msg("%.3f ns, %.3f wanted", got, want);
}

static void expect_done(struct share *s, struct share_request *r, double at_ns)
{
	assert_ptr_equal(share_take_done(s), r);
	assert_int_equal(r->phase, SHARE_DONE);
	assert_ns(r->done_ns, at_ns);
}

static void one_stream(void **state)
{
	struct share s;
	struct share_request r, *whose;
	int64_t at;

	(void)state;
	share_init(&s, LIMITS(1e9, 0, 0), 5000);
	assert_false(share_next(&s, &at, &whose));
	share_submit(&s, &r, 6000, 0, 1 * MB);
	assert_true(share_next(&s, &at, &whose));
	assert_int_equal(at, 6000 + 1 * MS);
	assert_ptr_equal(whose, &r);
	share_advance(&s, 6000 + 1 * MS - 1);
	assert_null(share_take_done(&s));
	share_advance(&s, 6000 + 1 * MS);
	expect_done(&s, &r, 1000 + 1 * MS);
	assert_null(share_take_done(&s));
	assert_false(share_next(&s, &at, &whose));
}

/* Two start together, a third joins half way, all of one size: by hand. */
static void sharing_and_arrivals(void **state)
{
	struct share s;
	struct share_request a, b, c;

	(void)state;
	share_init(&s, LIMITS(1e9, 0, 0), 0);
	share_submit(&s, &a, 0, 0, 1 * MB);
	share_submit(&s, &b, 0, 0, 1 * MB);
	share_submit(&s, &c, 1 * MS, 0, 1 * MB); /* a and b have 0.5 MB left each */
	share_advance(&s, 100 * MS);
	expect_done(&s, &a, 2.5e6); /* 0.5 MB at a third of the bandwidth */
	expect_done(&s, &b, 2.5e6);
	expect_done(&s, &c, 3.0e6); /* 0.5 MB alone */
}

static void stream_cap(void **state)
{
	struct share s;
	struct share_request r[5];

	(void)state;
	share_init(&s, LIMITS(1e9, 4e8, 0), 0);
	share_submit(&s, &r[0], 0, 0, 4 * MB);
	share_submit(&s, &r[1], 0, 0, 8 * MB); /* both at the cap: 0.8 of 1.0 */
	share_advance(&s, 50 * MS);
	expect_done(&s, &r[0], 10e6);
	expect_done(&s, &r[1], 20e6);
	for (int i = 0; i < 5; i++)
		share_submit(&s, &r[i], 50 * MS, 0, 2 * MB); /* 0.2 each */
	share_advance(&s, 60 * MS);
	for (int i = 0; i < 5; i++)
		expect_done(&s, &r[i], 60e6);
}

static void fifo_slots(void **state)
{
	struct share s;
	struct share_request r[6];

	(void)state;
	share_init(&s, LIMITS(0, 0, 2), 0);
	for (int i = 0; i < 6; i++)
		share_submit(&s, &r[i], i, (i + 1) * 1000, 0);
	/* slots: 0 until 1000, 1 until 2001; then in order */
	share_advance(&s, 1000 * MS);
	expect_done(&s, &r[0], 1000);
	expect_done(&s, &r[1], 2001);
	expect_done(&s, &r[2], 4000);
	expect_done(&s, &r[3], 6001);
	expect_done(&s, &r[4], 9000);
	expect_done(&s, &r[5], 12001);
}

static void admission_evenly(void **state)
{
	struct share s;
	struct share_request r[6], *whose;
	int64_t at;

	(void)state;
	share_init(&s, &(struct share_limits){.rate = 1000, .slots = 2}, 500);
	for (int i = 0; i < 4; i++)
		share_submit(&s, &r[i], 500, i == 2 ? 7 * MS : MS / 2, 0);
	assert_true(share_next(&s, &at, &whose));
	assert_int_equal(at, 500 + MS / 2);
	share_advance(&s, 500 + MS / 2);
	expect_done(&s, &r[0], 0.5e6);
	assert_true(share_next(&s, &at, &whose));
	assert_int_equal(at, 500 + MS);
	assert_ptr_equal(whose, &r[1]);
	/* the third holds one slot from 2 until 9, the fourth comes at 3 to the other */
	share_advance(&s, 500 + 8 * MS);
	expect_done(&s, &r[1], 1.5e6);
	expect_done(&s, &r[3], 3.5e6);
	/* what was not used before does not come back */
	share_submit(&s, &r[4], 500 + 8 * MS, 0, 0);
	share_submit(&s, &r[5], 500 + 8 * MS, 0, 0);
	share_advance(&s, 500 + 20 * MS);
	expect_done(&s, &r[4], 8e6);
	expect_done(&s, &r[2], 9e6);
	expect_done(&s, &r[5], 9e6);
}

/* 250 a second in slices of 10 ms: 2.5 a slice, so 2 and 3 in turn. */
static void admission_in_slices(void **state)
{
	static const double when[] = {3, 3, 10, 10, 10, 20, 20, 30, 30, 30};
	struct share s;
	struct share_request r[11];

	(void)state;
	share_init(&s, &(struct share_limits){.rate = 250, .slice_ns = 10 * MS}, 0);
	for (int i = 0; i < 10; i++)
		share_submit(&s, &r[i], 3 * MS, 0, 0);
	share_advance(&s, 95 * MS);
	for (int i = 0; i < 10; i++)
		expect_done(&s, &r[i], when[i] * 1e6);
	share_submit(&s, &r[10], 95 * MS, 0, 0);
	expect_done(&s, &r[10], 95e6);
	/* less than one a slice: 40 a second are one in 2.5 slices */
	share_init(&s, &(struct share_limits){.rate = 40, .slice_ns = 10 * MS}, 0);
	for (int i = 0; i < 4; i++)
		share_submit(&s, &r[i], 0, 0, 0);
	share_advance(&s, NS_PER_S);
	expect_done(&s, &r[0], 20e6);
	expect_done(&s, &r[1], 40e6);
	expect_done(&s, &r[2], 70e6);
	expect_done(&s, &r[3], 90e6);
}

/* 4 MB of credit at 1 GB/s, then 0.1 GB/s. */
static void burst_credit(void **state)
{
	struct share s;
	struct share_request a, b, c, d;

	(void)state;
	share_init(&s,
		   &(struct share_limits){.bandwidth = 1e8,
					  .burst_bandwidth = 1e9,
					  .burst_bytes = 4e6,
					  .burst_refill = 1e8},
		   0);
	share_submit(&s, &a, 0, 0, 1 * MB);
	share_submit(&s, &b, 0, 0, 5 * MB);
	/* 1 MB each until 2 ms, 2 MB of b until 4, the rest of 2 MB takes 20 ms */
	share_advance(&s, 100 * MS);
	expect_done(&s, &a, 2e6);
	expect_done(&s, &b, 24e6);
	/* idle from 24 to 100: all of the credit is back, and not more */
	share_submit(&s, &c, 100 * MS, 0, 5 * MB);
	share_advance(&s, 120 * MS);
	expect_done(&s, &c, 114e6);
	/* 6 ms after that: 0.6 MB */
	share_submit(&s, &d, 120 * MS, 0, 1 * MB);
	share_advance(&s, 130 * MS);
	expect_done(&s, &d, 120e6 + 0.6e6 + 4e6);
	/* credit that does not come back */
	share_init(&s,
		   &(struct share_limits){
			   .bandwidth = 1e8, .burst_bandwidth = 1e9, .burst_bytes = 1e6},
		   0);
	share_submit(&s, &a, 0, 0, 1 * MB);
	share_submit(&s, &b, 50 * MS, 0, 1 * MB);
	share_advance(&s, 100 * MS);
	expect_done(&s, &a, 1e6);
	expect_done(&s, &b, 60e6);
	/* a stream that is slower than both */
	share_init(&s,
		   &(struct share_limits){.bandwidth = 1e8,
					  .stream_bandwidth = 5e7,
					  .burst_bandwidth = 1e9,
					  .burst_bytes = 1e6},
		   0);
	share_submit(&s, &a, 0, 0, 2 * MB);
	share_advance(&s, 100 * MS);
	expect_done(&s, &a, 40e6);
}

static void bandwidth_decays(void **state)
{
	struct share s;
	struct share_request a, b, c;
	double moved = 0;

	(void)state;
	share_init(
		&s,
		&(struct share_limits){.bandwidth = 1e9, .half_life_ns = 32 * MS, .floor = 2.5e8},
		0);
	for (int i = 0; i < 32; i++)
		moved += 1e9 * exp2(-i / 32.0) * 1e-3;
	/* counted from the first request, whether anything moves or not */
	share_submit(&s, &a, 7 * MS, 0, (uint64_t)llround(moved));
	share_advance(&s, 41 * MS);
	if (!(fabs(a.done_ns - 39e6) < 10))
		fail_msg("%.3f", a.done_ns);
	assert_ptr_equal(share_take_done(&s), &a);
	share_submit(&s, &b, 7 * MS + 64 * MS, 0, 1 * MB);
	share_advance(&s, 75 * MS);
	expect_done(&s, &b, 71e6 + 4e6);
	/* later than the floor is reached: it stays */
	share_submit(&s, &c, NS_PER_S, 0, 1 * MB);
	share_advance(&s, 2 * NS_PER_S);
	expect_done(&s, &c, 1e9 + 4e6);
}

static void stalls(void **state)
{
	struct throttle_stall once = {.at_ns = 100, .length_ns = 50};
	struct throttle_stall often = {.at_ns = 100, .every_ns = 200, .length_ns = 50};
	struct throttle_stall never = {.at_ns = 100};

	(void)state;
	assert_int_equal(throttle_stall_work_ns(NULL, 7), 7);
	assert_int_equal(throttle_stall_real_ns(NULL, 7), 7);
	assert_int_equal(throttle_stall_work_ns(&often, 5000), 5000);
	throttle_stall_start(&once, 1000);
	throttle_stall_start(&once, 2000);
	throttle_stall_start(&often, 1000);
	throttle_stall_start(&never, 1000);
	assert_int_equal(throttle_stall_work_ns(&never, 5000), 5000);
	assert_int_equal(throttle_stall_work_ns(&once, 1100), 1100);
	assert_int_equal(throttle_stall_work_ns(&once, 1130), 1100);
	assert_int_equal(throttle_stall_work_ns(&once, 1150), 1100);
	assert_int_equal(throttle_stall_work_ns(&once, 9000), 8950);
	assert_int_equal(throttle_stall_real_ns(&once, 1100), 1100);
	assert_int_equal(throttle_stall_real_ns(&once, 1101), 1151);
	assert_int_equal(throttle_stall_real_ns(&once, 8950), 9000);
	assert_int_equal(throttle_stall_real_ns(&once, INT64_MAX), INT64_MAX);
	/* stalls at 1100, 1300, 1500 ... */
	assert_int_equal(throttle_stall_work_ns(&often, 1299), 1249);
	assert_int_equal(throttle_stall_work_ns(&often, 1320), 1250);
	assert_int_equal(throttle_stall_work_ns(&often, 1360), 1260);
	assert_int_equal(throttle_stall_real_ns(&often, 1250), 1300);
	assert_int_equal(throttle_stall_real_ns(&often, 1251), 1351);
	for (int64_t t = 900; t < 3000; t++) {
		int64_t w = throttle_stall_work_ns(&often, t);
		int64_t r = throttle_stall_real_ns(&often, w);

		/* back at the same time, or, within a stall, at its beginning */
		assert_true(r == t || (r < t && t - r <= 50 && (r - 1100) % 200 == 0));
	}
}

/* A caller that looks late sees the same times as one that looks at each nanosecond it is told. */
static void look_late(const struct share_limits *limits)
{
	struct share late, punctual;
	struct share_request a[40], b[40], *whose;
	int64_t at;

	share_init(&late, limits, 0);
	share_init(&punctual, limits, 0);
	for (int i = 0; i < 40; i++) {
		int64_t t = (int64_t)(rng_word(1, (uint64_t)i) % 1000) + i * 500;
		int64_t latency = (int64_t)(rng_word(2, (uint64_t)i) % 5000);
		uint64_t bytes = rng_word(3, (uint64_t)i) % 10000;

		while (share_next(&punctual, &at, &whose) && at < t)
			share_advance(&punctual, at);
		share_submit(&late, &a[i], t, latency, bytes);
		share_submit(&punctual, &b[i], t, latency, bytes);
	}
	while (share_next(&punctual, &at, &whose))
		share_advance(&punctual, at);
	share_advance(&late, 10 * NS_PER_S);
	for (int i = 0; i < 40; i++) {
		assert_int_equal(a[i].phase, SHARE_DONE);
		assert_ns(a[i].done_ns, b[i].done_ns);
	}
}

/* What is said of a request's end when nothing is shared holds whatever comes after; where
 * something is shared, nothing is said. */
static void own_ends(void **state)
{
	struct share s;
	struct share_request r[30];
	int64_t said[30], at;

	(void)state;
	share_init(&s, &(struct share_limits){.stream_bandwidth = 1e9, .slots = 4}, 700);
	for (int i = 0; i < 30; i++) {
		said[i] = 0;
		share_submit(&s, &r[i], 700 + i * 900, i % 7 * (int64_t)1000,
			     (uint64_t)(i % 5) * 1000);
		for (int k = 0; k <= i; k++)
			if (share_own_end(&s, &r[k], &at)) {
				assert_true(said[k] == 0 || llabs(at - said[k]) <= 1);
				said[k] = at;
			}
	}
	assert_true(share_own_end(&s, &r[29], &at) == (r[29].phase == SHARE_LATENCY));
	share_advance(&s, NS_PER_S);
	for (int i = 0; i < 30; i++)
		if (said[i])
			assert_true(fabs(r[i].done_ns + 700 - (double)said[i]) <= 1.5);
	assert_false(share_own_end(&s, &r[3], &at));
	share_init(&s, LIMITS(1e9, 0, 0), 0);
	share_submit(&s, &r[0], 0, 1000, 1000);
	assert_false(share_own_end(&s, &r[0], &at));
}

static void lateness_does_not_accumulate(void **state)
{
	(void)state;
	look_late(LIMITS(1e9, 3e8, 3));
	look_late(&(struct share_limits){.rate = 1e6, .slots = 2});
	look_late(&(struct share_limits){.rate = 1e6, .slice_ns = 7000, .bandwidth = 1e9});
	look_late(&(struct share_limits){.bandwidth = 1e9,
					 .burst_bandwidth = 3e9,
					 .burst_bytes = 50000,
					 .burst_refill = 1e9,
					 .half_life_ns = 20000,
					 .floor = 1e8});
}

static void shrinking(void **state)
{
	struct share s;
	struct share_request a, b, c, d;

	(void)state;
	share_init(&s, LIMITS(1e9, 0, 3), 0);
	share_submit(&s, &a, 0, 0, 1 * MB);
	share_submit(&s, &b, 0, 0, 1 * MB);
	share_submit(&s, &c, 0, 5 * MS, 1 * MB);
	share_submit(&s, &d, 0, 0, 1 * MB);
	share_shrink(&s, &c, 0, 0);           /* while its latency passes */
	share_shrink(&s, &d, 0, 500000);      /* while it waits for a slot */
	share_shrink(&s, &b, 1 * MS, 100000); /* has had 0.5 MB: ends now */
	share_shrink(&s, &a, 1 * MS, 2 * MB); /* more than announced: nothing */
	share_advance(&s, 100 * MS);
	expect_done(&s, &b, 1e6);
	/* a has 0.5 MB left, d starts with 0.5 MB: both at half the bandwidth */
	expect_done(&s, &a, 2e6);
	expect_done(&s, &d, 2e6);
	expect_done(&s, &c, 5e6);
}

static void no_bytes_no_limits(void **state)
{
	struct share s;
	struct share_request r, z;

	(void)state;
	share_init(&s, LIMITS(0, 0, 0), 0);
	share_submit(&s, &r, 7, 0, UINT64_MAX);
	expect_done(&s, &r, 7);
	share_init(&s, LIMITS(1, 0, 0), 0);
	share_submit(&s, &z, 9, 0, 0);
	expect_done(&s, &z, 9);
	/* slower than any clock lives: pending, not overflowing */
	share_submit(&s, &r, 10, LATENCY_MAX_NS, UINT64_MAX);
	share_advance(&s, 11);
	assert_null(share_take_done(&s));
}

/* The same by brute force: steps of rates between events, over random arrivals. */
struct sim {
	double arrive, latency, bytes, done;
	double start; /* when its bytes begin to move; < 0 before it has a slot */
	double left;
};

static void simulate(struct sim *q, int n, double B, double b1, int slots)
{
	double t = 0;
	int finished = 0, served = 0, next = 0;

	for (int i = 0; i < n; i++) {
		q[i].start = -1;
		q[i].left = q[i].bytes;
		q[i].done = -1;
	}
	while (finished < n) {
		double at = HUGE_VAL, rate;
		int active = 0;

		/* q is in order of arrival, which is the order of the queue */
		while (next < n && q[next].arrive <= t && (!slots || served < slots)) {
			q[next].start = t + q[next].latency;
			next++;
			served++;
		}
		for (int i = 0; i < next; i++)
			active += q[i].done < 0 && q[i].start <= t;
		rate = HUGE_VAL;
		if (B > 0 && active)
			rate = B / active;
		if (b1 > 0 && b1 < rate)
			rate = b1;
		if (next < n && q[next].arrive > t)
			at = q[next].arrive;
		for (int i = 0; i < next; i++) {
			if (q[i].done >= 0)
				continue;
			if (q[i].start > t)
				at = fmin(at, q[i].start);
			else
				at = fmin(at, t + q[i].left / rate);
		}
		for (int i = 0; i < next; i++) {
			if (q[i].done >= 0 || q[i].start > t)
				continue;
			q[i].left -= isinf(rate) ? q[i].left : (at - t) * rate;
			if (q[i].left <= 1e-6) {
				q[i].done = at;
				finished++;
				served--;
			}
		}
		t = at;
	}
}

static void random_against_simulation(void **state)
{
	static const struct {
		double B, b1;
		uint64_t slots;
	} system[] = {{1e9, 0, 0}, {1e9, 2e8, 0}, {1e9, 3e8, 4},
		      {0, 1e8, 2}, {1e9, 0, 1},   {0, 0, 3}};

	(void)state;
	for (size_t k = 0; k < sizeof(system) / sizeof(system[0]); k++) {
		struct share s;
		struct share_request r[200];
		struct sim q[200];
		int64_t t = 0;

		share_init(&s, LIMITS(system[k].B, system[k].b1, system[k].slots), 0);
		for (uint64_t i = 0; i < 200; i++) {
			int64_t latency = (int64_t)(rng_word(k, 3 * i) % 200000);
			uint64_t bytes = rng_word(k, 3 * i + 1) % 100000;

			t += (int64_t)(rng_word(k, 3 * i + 2) % 120000);
			share_submit(&s, &r[i], t, latency, bytes);
			q[i] = (struct sim){.arrive = (double)t,
					    .latency = (double)latency,
					    .bytes = (double)bytes};
		}
		share_advance(&s, 1000 * NS_PER_S);
		simulate(q, 200, system[k].B / 1e9, system[k].b1 / 1e9, (int)system[k].slots);
		for (int i = 0; i < 200; i++) {
			assert_int_equal(r[i].phase, SHARE_DONE);
			if (fabs(r[i].done_ns - q[i].done) > 0.1)
				fail_msg("system %zu, request %d: %.3f, simulated %.3f", k, i,
					 r[i].done_ns, q[i].done);
		}
	}
}

/* ---- latencies ---- */

static void check_moments(struct time_dist d, double mean, double stdev)
{
	const int n = 20000;
	double sum = 0, square = 0;

	for (int i = 0; i < n; i++) {
		double x = (double)latency_draw_ns(&d, 99, (uint64_t)i) / 1e9;

		sum += x;
		square += x * x;
	}
	sum /= n;
	square = sqrt(fmax(0, square / n - sum * sum));
	if (fabs(sum - mean) > 5 * stdev / sqrt(n) + 1e-8 ||
	    fabs(square - stdev) > 0.05 * stdev + 1e-8)
		fail_msg("kind %d: mean %g, deviation %g; wanted %g, %g", d.kind, sum, square, mean,
			 stdev);
}

static void distributions(void **state)
{
	struct time_dist d = {TIME_NORMAL, 0.1, 0.01};

	(void)state;
	check_moments((struct time_dist){TIME_NONE, 1, 1}, 0, 0);
	check_moments((struct time_dist){TIME_CONSTANT, 0.25, 0}, 0.25, 0);
	check_moments((struct time_dist){TIME_CONSTANT, -0.25, 0}, 0.25, 0);
	check_moments(d, 0.1, 0.01);
	/* the absolute value is waited: a half-normal distribution */
	check_moments((struct time_dist){TIME_NORMAL, 0, 1}, sqrt(2 / M_PI), sqrt(1 - 2 / M_PI));
	check_moments((struct time_dist){TIME_UNIFORM, 1, 3}, 2, 1 / sqrt(3));
	check_moments((struct time_dist){TIME_GAMMA, 4, 0.5}, 2, 1);
	check_moments((struct time_dist){TIME_GAMMA, 0.5, 1}, 0.5, sqrt(0.5));
	check_moments((struct time_dist){TIME_GAMMA, 0.2, 1}, 0.2, sqrt(0.2));
	check_moments((struct time_dist){TIME_EXPONENTIAL, 0.2, 0}, 0.2, 0.2);
	check_moments((struct time_dist){TIME_POISSON, 3, 0}, 3, sqrt(3));
	check_moments((struct time_dist){TIME_PARETO, 5, 0.4}, 0.5, 0.5 / sqrt(15));
	check_moments((struct time_dist){TIME_POISSON, 100, 0}, 100, 10);
	assert_int_equal(latency_draw_ns(&d, 1, 7), latency_draw_ns(&d, 1, 7));
	assert_int_not_equal(latency_draw_ns(&d, 1, 7), latency_draw_ns(&d, 1, 8));
	assert_int_not_equal(latency_draw_ns(&d, 1, 7), latency_draw_ns(&d, 2, 7));
	d = (struct time_dist){TIME_CONSTANT, 1e300, 0};
	assert_int_equal(latency_draw_ns(&d, 1, 1), LATENCY_MAX_NS);
	assert_int_equal(latency_check(&d, "k", NULL), 0);
	d = (struct time_dist){TIME_POISSON, 1e9, 0};
	assert_int_equal(latency_check(&d, "k", NULL), ERR_USAGE);
	d = (struct time_dist){TIME_GAMMA, -1, 1};
	assert_int_equal(latency_check(&d, "k", NULL), ERR_USAGE);
	d = (struct time_dist){TIME_NORMAL, (double)NAN, 1};
	assert_int_equal(latency_check(&d, "k", NULL), ERR_USAGE);
}

/* ---- real threads ---- */

struct reader {
	struct throttle_line *line;
	int64_t start_ns; /* when to begin, on the monotonic clock */
	int64_t latency_ns;
	uint64_t bytes;
	int requests;
	int64_t end_ns;
};

static void *reader_main(void *arg)
{
	struct reader *r = arg;

	clock_sleep_until(r->start_ns);
	for (int i = 0; i < r->requests; i++) {
		struct throttle_waiter w;

		throttle_line_arrive(r->line, &w, r->latency_ns, r->bytes);
		throttle_line_wait(r->line, &w, r->bytes);
	}
	r->end_ns = clock_now_ns();
	return NULL;
}

/* Starts the readers, joins them, and returns the time from `start_ns` to the last end in ms. */
static double run_readers(struct reader *r, int n, int64_t start_ns)
{
	pthread_t *t = xcalloc((size_t)n, sizeof(*t));
	int64_t last = 0;

	for (int i = 0; i < n; i++)
		assert_int_equal(thread_start(&t[i], reader_main, &r[i], 0, "reader", NULL), 0);
	for (int i = 0; i < n; i++) {
		pthread_join(t[i], NULL);
		last = r[i].end_ns > last ? r[i].end_ns : last;
	}
	free(t);
	return (double)(last - start_ns) / 1e6;
}

/* Never early. Late by at most 10 % or 3 ms where the machine lets threads run: a busy machine gets
 * more attempts, of which 3 in 4 must be on time. */
static bool on_time(double got_ms, double want_ms)
{
	double slack = fmax(0.1 * want_ms, 3);

	if (got_ms < want_ms - 0.05)
		fail_msg("%.2f ms, earlier than %.2f", got_ms, want_ms);
	if (got_ms > want_ms + slack)
		print_message("%.2f ms, %.2f wanted\n", got_ms, want_ms);
	return got_ms <= want_ms + slack;
}

#define ATTEMPTS 4
#define RIGHT 3 /* of the attempts, where the first is late */

struct attempts {
	int right, late;
};

/* Every hand-over is slowed down: the paths are run, and only the time is not judged. */
static bool sanitized(void)
{
	const char *which = getenv("STOKER_SANITIZE");

	return which && which[0];
}

/* Notes an attempt; whether there is to be another one. */
static bool again(struct attempts *a, bool on_time)
{
	a->late += !on_time;
	a->right += on_time;
	return !sanitized() && a->late > 0 && a->right < RIGHT && a->late <= ATTEMPTS - RIGHT;
}

static bool well(const struct attempts *a, const char *what)
{
	if (a->late > 0 && sanitized())
		print_message("left out: whether %s are in time: a sanitizer slows them down\n",
			      what);
	else if (a->late > 0)
		print_message("attempts: %s: right in %d of %d\n", what, a->right,
			      a->right + a->late);
	return a->late <= ATTEMPTS - RIGHT || sanitized();
}

static void expect_total(double B, double b1, uint64_t slots, const struct reader *proto, int n,
			 int64_t stagger_ns, double want_ms)
{
	struct attempts a = {0};
	bool good;

	do {
		struct throttle_line line;
		struct reader *r = xcalloc((size_t)n, sizeof(*r));
		int64_t start = clock_now_ns() + 30 * MS;
		double got;

		throttle_line_init(&line, LIMITS(B, b1, slots), NULL);
		for (int i = 0; i < n; i++) {
			r[i] = *proto;
			r[i].line = &line;
			r[i].start_ns = start + i * stagger_ns;
		}
		got = run_readers(r, n, start);
		free(r);
		throttle_line_release(&line);
		good = on_time(got, want_ms);
	} while (again(&a, good));
	if (!well(&a, "readers"))
		fail_msg("late in %d attempts", a.late);
}

static void real_one_stream(void **state)
{
	struct reader r = {.bytes = 2 * MB, .requests = 10};

	(void)state;
	expect_total(100e6, 0, 0, &r, 1, 0, 200);
}

static void real_four_streams(void **state)
{
	struct reader r = {.bytes = 1 * MB, .requests = 5};

	(void)state;
	expect_total(100e6, 0, 0, &r, 4, 0, 200);
}

/* 3 readers of one request of 5 MB at 100 MB/s, 20 ms apart: all bytes are moved without a gap. */
static void real_staggered(void **state)
{
	struct reader r = {.bytes = 5 * MB, .requests = 1};

	(void)state;
	expect_total(100e6, 0, 0, &r, 3, 20 * MS, 150);
}

static void real_stream_cap(void **state)
{
	struct reader r = {.bytes = 1 * MB, .requests = 5};

	(void)state;
	expect_total(1000e6, 25e6, 0, &r, 4, 0, 200);
}

static void real_slots(void **state)
{
	struct reader r = {.latency_ns = 10 * MS, .requests = 4};

	(void)state;
	expect_total(0, 0, 2, &r, 10, 0, 200);
}

static void real_latency(void **state)
{
	struct reader r = {.latency_ns = 5 * MS, .requests = 30};

	(void)state;
	expect_total(0, 0, 0, &r, 3, 0, 150);
}

/* Many sleepers on few cores: right in time, and the processor mostly idle. */
static void real_crowd(void **state)
{
	struct reader r = {.bytes = 100000, .requests = 3};
	struct rusage before, after;
	double cpu;

	(void)state;
	getrusage(RUSAGE_SELF, &before);
	/* 300 x 3 requests of 0.1 MB at 300 MB/s */
	expect_total(300e6, 0, 0, &r, 300, 0, 300);
	getrusage(RUSAGE_SELF, &after);
	cpu = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
	      (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec);
	print_message("%.0f ms of processor time\n", cpu * 1e3);
	assert_true(cpu <= 1.5 * ATTEMPTS);
}

struct mixed {
	struct throttle_line *line;
	uint64_t key;
};

static void *mixed_main(void *arg)
{
	struct mixed *m = arg;

	for (uint64_t i = 0; i < 40; i++) {
		struct throttle_waiter w;
		uint64_t x = rng_word(m->key, i), bytes = x % 5000;

		throttle_line_arrive(m->line, &w, (int64_t)(x >> 32) % 300000, bytes);
		/* some are busy below while their request ends, some turn out shorter */
		if (x & 1u << 20)
			clock_sleep_until(clock_now_ns() + (int64_t)(x >> 40) % 1000000);
		throttle_line_wait(m->line, &w, x & 1u << 21 ? bytes / 2 : bytes);
	}
	return NULL;
}

/* Nobody is forgotten: every kind of request, with each kind of system, comes back. */
static void real_mixture_ends(void **state)
{
	static const uint64_t slots[] = {0, 1, 7};

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		struct throttle_line line;
		struct mixed m[48];
		pthread_t t[48];

		throttle_line_init(&line, LIMITS(300e6, 50e6, slots[k]), NULL);
		for (uint64_t i = 0; i < 48; i++) {
			m[i] = (struct mixed){&line, i + 100 * k};
			assert_int_equal(thread_start(&t[i], mixed_main, &m[i], 0, "mixed", NULL),
					 0);
		}
		for (int i = 0; i < 48; i++)
			pthread_join(t[i], NULL);
		assert_null(line.sleepers);
		assert_null(line.timer);
		assert_int_equal(line.share.in_service, 0);
		assert_null(line.share.queue);
		throttle_line_release(&line);
	}
}

/* The sleeper whose timer covered the others is finished by an arrival that looks first, and never
 * wakes here: the arrival must hand the timer on. */
static void timer_is_handed_on(void **state)
{
	struct throttle_line line;
	struct throttle_waiter gone, late;
	struct reader other = {.line = &line, .latency_ns = 60 * MS, .requests = 1};
	pthread_t t;
	bool asleep = false;

	(void)state;
	throttle_line_init(&line, LIMITS(0, 0, 0), NULL);
	throttle_line_arrive(&line, &gone, 20 * MS, 0);
	gone.asleep = true;
	gone.prev = gone.next = &gone;
	line.sleepers = &gone;
	line.timer = &gone;
	line.timer_ns = 0;
	assert_int_equal(thread_start(&t, reader_main, &other, 0, "other", NULL), 0);
	while (!asleep) {
		clock_sleep_until(clock_now_ns() + MS);
		pthread_mutex_lock(&line.lock);
		asleep = line.sleepers != NULL && line.sleepers->next != line.sleepers;
		asleep |= gone.request.phase == SHARE_DONE;
		pthread_mutex_unlock(&line.lock);
	}
	clock_sleep_until(clock_now_ns() + 25 * MS);
	throttle_line_arrive(&line, &late, 10 * NS_PER_S, 0);
	pthread_join(t, NULL);
	/* without the hand-over the other would sleep until somebody else looked */
	assert_true(clock_now_ns() < line.share.origin_ns + 9 * NS_PER_S);
	throttle_line_release(&line);
}

/* ---- through the store ---- */

static struct store *make(const char *expression, const char *yaml)
{
	struct node *n = yaml_parse(yaml, strlen(yaml), "test", NULL);
	struct store *s = NULL;
	struct err e;

	assert_non_null(n);
	if (store_create(&s, expression, n, &e) != 0)
		fail_msg("%s", e.text);
	node_free(n);
	return s;
}

static double timed_read(const struct io *io, size_t n)
{
	char *p = xmalloc(n);
	struct blob *b = store_blob_new(io->store, NULL);
	int64_t start = clock_now_ns();

	assert_int_equal(io_open(io, "f", STORE_READ, b, NULL), 0);
	assert_true(io_pread(io, IO_DATA, b, p, n, 0, NULL) >= 0);
	assert_int_equal(io_close(io, b, NULL), 0);
	free(b);
	free(p);
	return (double)(clock_now_ns() - start) / 1e6;
}

static void write_file(const struct io *io)
{
	struct blob *b = store_blob_new(io->store, NULL);

	assert_int_equal(io_open(io, "f", STORE_WRITE | STORE_CREATE, b, NULL), 0);
	assert_int_equal(io_pwrite(io, b, "0123456789", 10, 0, NULL), 10);
	assert_int_equal(io_close(io, b, NULL), 0);
	free(b);
}

struct opener {
	struct io io;
};

static void *opener_main(void *arg)
{
	timed_read(&((struct opener *)arg)->io, 1);
	return NULL;
}

static void store_is_slow_as_told(void **state)
{
	struct store *s = make("throttle+memory", "throttle: {bandwidth: 10e6, latency: 0.02, "
						  "open_latency: 0.03}");
	struct io io = {.store = s};
	struct blob *b = store_blob_new(s, NULL);
	static char p[200000];
	int64_t start;
	struct store_stat st;
	struct attempts a = {0};
	bool good;

	(void)state;
	assert_int_equal(io_open(&io, "f", STORE_WRITE | STORE_CREATE, b, NULL), 0);
	assert_int_equal(io_pwrite(&io, b, p, sizeof(p), 0, NULL), sizeof(p));
	assert_int_equal(io_close(&io, b, NULL), 0);
	do
		good = on_time(timed_read(&io, sizeof(p)), 30 + 20 + 20);
	while (again(&a, good));
	assert_true(well(&a, "one read"));
	/* what the file does not hold is not waited for */
	a = (struct attempts){0};
	do
		good = on_time(timed_read(&io, 1 << 20), 30 + 20 + 20);
	while (again(&a, good));
	assert_true(well(&a, "one read"));
	start = clock_now_ns();
	assert_int_equal(io_stat_path(&io, "f", &st, NULL), 0);
	assert_true(clock_now_ns() - start >= 30 * MS);
	assert_true(io_stat_path(&io, "absent", &st, NULL) < 0);
	assert_true(clock_now_ns() - start >= 60 * MS);
	store_destroy(s);
	free(b);
}

static void store_writes_freely(void **state)
{
	struct store *s = make("throttle+memory", "throttle: {latency: 10, open_latency: 10}");
	struct io io = {.store = s};
	struct blob *b = store_blob_new(s, NULL);
	int64_t start = clock_now_ns();

	(void)state;
	assert_int_equal(io_open(&io, "f", STORE_WRITE | STORE_CREATE, b, NULL), 0);
	assert_int_equal(io_pwrite(&io, b, "x", 1, 0, NULL), 1);
	assert_int_equal(io_close(&io, b, NULL), 0);
	assert_true(clock_now_ns() - start < 9 * NS_PER_S);
	store_destroy(s);
	free(b);
}

static void store_writes_slow_when_asked(void **state)
{
	struct store *s =
		make("throttle+memory",
		     "throttle: {stream_bandwidth: 10e6, write: true, open_latency: 0.01}");
	struct io io = {.store = s};
	struct blob *b = store_blob_new(s, NULL);
	static char p[200000];
	int64_t start = clock_now_ns();

	(void)state;
	assert_int_equal(io_open(&io, "f", STORE_WRITE | STORE_CREATE, b, NULL), 0);
	assert_int_equal(io_pwrite(&io, b, p, sizeof(p), 0, NULL), sizeof(p));
	assert_int_equal(io_close(&io, b, NULL), 0);
	assert_true(clock_now_ns() - start >= 30 * MS);
	store_destroy(s);
	free(b);
}

/* Opens one after another, 20 ms each, while reads go on. */
static void store_opens_one_at_a_time(void **state)
{
	struct attempts a = {0};
	bool good;

	(void)state;
	do {
		struct store *s =
			make("throttle+memory",
			     "throttle: {open_latency: 0.02, open_concurrency: 2, latency: 0.005}");
		struct io io = {.store = s};
		struct opener o[6];
		pthread_t t[6];
		int64_t start;

		write_file(&io);
		start = clock_now_ns();
		for (int i = 0; i < 6; i++) {
			o[i].io = io;
			assert_int_equal(thread_start(&t[i], opener_main, &o[i], 0, "o", NULL), 0);
		}
		for (int i = 0; i < 6; i++)
			pthread_join(t[i], NULL);
		good = on_time((double)(clock_now_ns() - start) / 1e6, 3 * 20 + 5);
		store_destroy(s);
	} while (again(&a, good));
	assert_true(well(&a, "six opens"));
}

/* Nothing is read during the stall, the open before it and the read after it take their time. */
static void store_stalls(void **state)
{
	struct attempts a = {0};
	bool good;

	(void)state;
	do {
		struct store *s = make("throttle+memory",
				       "throttle: {open_latency: 0.02, latency: 0.03, stall: "
				       "0.1, stall_at: 0.03}");
		struct io io = {.store = s};

		write_file(&io);
		good = on_time(timed_read(&io, 10), 20 + 30 + 100);
		good &= on_time(timed_read(&io, 10), 20 + 30);
		store_destroy(s);
		/* what takes no time does not pass through a stall either */
		s = make("throttle+memory", "throttle: {stall: 0.2, stall_at: 0.05}");
		io.store = s;
		write_file(&io);
		good &= on_time(timed_read(&io, 10), 0);
		clock_sleep_until(clock_now_ns() + 60 * MS);
		good &= timed_read(&io, 10) > 100;
		store_destroy(s);
	} while (again(&a, good));
	assert_true(well(&a, "reads in a stall"));
}

/* The time of a slow store below is part of the emulated time, not added to it. */
static void real_time_is_subsumed(void **state)
{
	struct store *s =
		make("throttle+fault+memory",
		     "{throttle: {latency: 0.1}, fault: {op: read, nth: 1, count: 0, action: "
		     "delay, delay: 0.06}}");
	struct io io = {.store = s};
	struct blob *b = store_blob_new(s, NULL);
	struct attempts a = {0};
	bool good;

	(void)state;
	assert_int_equal(io_open(&io, "f", STORE_WRITE | STORE_CREATE, b, NULL), 0);
	assert_int_equal(io_close(&io, b, NULL), 0);
	do
		good = on_time(timed_read(&io, 10), 100);
	while (again(&a, good));
	assert_true(well(&a, "one read"));
	store_destroy(s);
	free(b);
}

static void bad_options(void **state)
{
	static const char *const bad[] = {
		"throttle: {bandwith: 1}",
		"throttle: {bandwidth: -1}",
		"throttle: {concurrency: 1.5}",
		"throttle: {latency: foo}",
		"throttle: {latency: {type: odd}}",
		"throttle: 3",
		"throttle: {latency: {type: poisson, lam: 1000000}}",
		"throttle: {open_concurrency: 1}",
		"throttle: {iops_slice: 0.1}",
		"throttle: {burst_bytes: 1e6, burst_bandwidth: 1e6}",
		"throttle: {burst_bytes: 1e6, bandwidth: 1e6}",
		"throttle: {bandwidth: 1e6, burst_bandwidth: 1e7}",
		"throttle: {bandwidth: 1e6, burst_refill: 1e7}",
		"throttle: {bandwidth_half_life: 3}",
		"throttle: {stall: 1}",
		"throttle: {stall: 1, stall_every: 1}",
		"throttle: {stall: 1e-9, stall_every: 1.5e-9}",
	};
	struct store *s = NULL;
	struct err e = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct node *n = yaml_parse(bad[i], strlen(bad[i]), "w.yaml", NULL);

		e.text[0] = '\0';
		if (store_create(&s, "throttle+memory", n, &e) == 0)
			fail_msg("accepted: %s", bad[i]);
		assert_non_null(strstr(e.text, "throttle"));
		if (i == 0)
			assert_non_null(
				strstr(e.text, "did you mean 'storage.throttle.bandwidth'"));
		node_free(n);
	}
	assert_null(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_stream),
		cmocka_unit_test(sharing_and_arrivals),
		cmocka_unit_test(stream_cap),
		cmocka_unit_test(fifo_slots),
		cmocka_unit_test(admission_evenly),
		cmocka_unit_test(admission_in_slices),
		cmocka_unit_test(burst_credit),
		cmocka_unit_test(bandwidth_decays),
		cmocka_unit_test(stalls),
		cmocka_unit_test(own_ends),
		cmocka_unit_test(lateness_does_not_accumulate),
		cmocka_unit_test(shrinking),
		cmocka_unit_test(no_bytes_no_limits),
		cmocka_unit_test(random_against_simulation),
		cmocka_unit_test(distributions),
		cmocka_unit_test(real_one_stream),
		cmocka_unit_test(real_four_streams),
		cmocka_unit_test(real_staggered),
		cmocka_unit_test(real_stream_cap),
		cmocka_unit_test(real_slots),
		cmocka_unit_test(real_latency),
		cmocka_unit_test(real_crowd),
		cmocka_unit_test(real_mixture_ends),
		cmocka_unit_test(timer_is_handed_on),
		cmocka_unit_test(store_is_slow_as_told),
		cmocka_unit_test(store_writes_freely),
		cmocka_unit_test(store_writes_slow_when_asked),
		cmocka_unit_test(store_opens_one_at_a_time),
		cmocka_unit_test(store_stalls),
		cmocka_unit_test(real_time_is_subsumed),
		cmocka_unit_test(bad_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
