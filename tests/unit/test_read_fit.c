/* Laws of stores found in reads: readers over a store whose rates are known, simulated in steps. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/rng.h"
#include "predict/read_fit.h"
#include "store/throttle_share.h"

#define READERS 6
#define READS 600

/* Closed loop: each of `readers` waits `rest` of its own, reads, and begins again. */
struct made {
	struct share_limits limits;
	int64_t late_ns; /* a reader notices the end so much later, at most */
	int64_t latency_ns;
	uint64_t bytes, more; /* and up to so many more */
	int64_t rest_ns, rest_more_ns;
	int readers;
	struct read_seen seen[READS];
};

static int by_begin(const void *x, const void *y)
{
	const struct read_seen *a = x, *b = y;

	return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

static uint64_t draw(uint64_t i, uint64_t below)
{
	return below ? rng_word(rng_key(11, 0, 0), i) % below : 0;
}

static void make(struct made *m)
{
	struct share share;
	struct share_request q[READERS] = {0};
	struct read_seen now[READERS] = {0};
	int64_t next[READERS], at = 0, due;
	struct share_request *done, *whose;
	uint64_t seed = 0;
	int n = 0;

	share_init(&share, &m->limits, 0);
	for (int w = 0; w < m->readers; w++)
		next[w] = m->rest_ns + (int64_t)draw(seed++, (uint64_t)m->rest_more_ns);
	while (n < READS) {
		int w = 0;

		for (int i = 1; i < m->readers; i++)
			w = next[i] < next[w] ? i : w;
		if (share_next(&share, &due, &whose) && due <= next[w]) {
			at = due > at ? due : at;
			share_advance(&share, at);
		} else {
			at = next[w];
			next[w] = INT64_MAX;
			now[w] = (struct read_seen){at, 0, m->bytes + draw(seed++, m->more), 0, 0};
			share_submit(&share, &q[w], at, m->latency_ns, now[w].bytes);
		}
		while (n < READS && (done = share_take_done(&share))) {
			w = (int)(done - q);
			now[w].end_ns = (int64_t)done->done_ns +
					(int64_t)draw(seed++, (uint64_t)m->late_ns);
			m->seen[n++] = now[w];
			next[w] = now[w].end_ns + m->rest_ns +
				  (int64_t)draw(seed++, (uint64_t)m->rest_more_ns);
		}
	}
	qsort(m->seen, READS, sizeof(*m->seen), by_begin);
}

static struct read_law law_of(struct made *m)
{
	make(m);
	return read_fit(&(struct read_set){m->seen, READS, 0, 0}, 1, 1);
}

/* The lowest and the highest ceiling, reads/s, of all explanations. */
static void ceilings(const struct read_law *law, double *low, double *high)
{
	*low = INFINITY;
	*high = 0;
	for (uint32_t i = 0; i < law->count; i++) {
		double c = read_rates_ceiling(&law->one[i], law->mean_bytes);

		*low = fmin(*low, c);
		*high = fmax(*high, c);
	}
}

static void near(double value, double wanted, double within)
{
	if (!(value >= wanted - within && value <= wanted + within))
		fail_msg("%g is not within %g of %g", value, within, wanted);
}

/* That the best is a queue or ceiling of so many reads/s, and nothing else is as good. */
static void settled(const struct read_law *law, double wanted, double within)
{
	double low, high;

	ceilings(law, &low, &high);
	near(low, wanted, within * wanted);
	near(high, wanted, within * wanted);
}

static void shared(void **state)
{
	struct made m = {.limits.bandwidth = 100e6,
			 .latency_ns = 2000000,
			 .bytes = 200000,
			 .rest_ns = 1000000,
			 .rest_more_ns = 8000000,
			 .readers = 6};
	struct read_law law = law_of(&m);

	(void)state;
	near(law.best.latency_ns, 2e6, 5e4);
	near(law.best.shared_ns_per_byte, 10, 0.2);
	settled(&law, 500, 0.07);
	assert_true(law.best.stream_ns_per_byte * 1 < 10.5);
	assert_true(law.shared_share > 0.4);
}

/* Nobody waits for anybody; that all six have all there is looks the same. */
static void latency_alone(void **state)
{
	struct made m = {.latency_ns = 5000000,
			 .bytes = 200000,
			 .more = 400000,
			 .rest_ns = 1000000,
			 .rest_more_ns = 8000000,
			 .readers = 6};
	struct read_law law = law_of(&m);
	double low, high;

	(void)state;
	near(law.best.latency_ns, 5e6, 1e5);
	near(law.best.shared_ns_per_byte, 0, 0);
	assert_int_equal(law.best.servers, 0);
	assert_float_equal(law.latency_share, 1, 0.02);
	assert_int_equal(law.most, 6);
	ceilings(&law, &low, &high);
	near(low, 6 / 5e-3, 20);
	assert_true(isinf(high));
}

static void streams(void **state)
{
	struct made m = {.limits.stream_bandwidth = 50e6,
			 .latency_ns = 1000000,
			 .bytes = 100000,
			 .more = 300000,
			 .rest_ns = 1000000,
			 .rest_more_ns = 8000000,
			 .readers = 4};
	struct read_law law = law_of(&m);

	(void)state;
	near(law.best.latency_ns, 1e6, 1e5);
	near(law.best.stream_ns_per_byte, 20, 0.5);
	assert_true(law.stream_share > 0.7);
	near(law.best.shared_ns_per_byte, 0, 0.01);
}

/* Always the same company and size: anything from latency to bandwidth explains it. */
static void in_step(void **state)
{
	struct made m = {
		.limits.bandwidth = 100e6, .bytes = 200000, .rest_ns = 1000000, .readers = 4};
	struct read_law law = law_of(&m);
	double low, high;

	(void)state;
	ceilings(&law, &low, &high);
	assert_true(isinf(high));
	near(low, 500, 25);
}

/* One server, whatever waits, whether or not the sizes differ. */
static void one_by_one(void **state)
{
	struct made m = {.limits.slots = 1,
			 .limits.stream_bandwidth = 80e6,
			 .latency_ns = 3000000,
			 .bytes = 40000,
			 .more = 160000,
			 .rest_ns = 2000000,
			 .rest_more_ns = 12000000,
			 .late_ns = 150000,
			 .readers = 4};
	struct read_law law = law_of(&m);

	(void)state;
	assert_int_equal(law.best.servers, 1);
	near(law.best.serve_ns, 3e6, 2e5);
	near(law.best.serve_ns_per_byte, 12.5, 1);
	settled(&law, 222, 0.05);
	assert_true(law.queue_share > 0.9);
	m.more = 0;
	law = law_of(&m);
	settled(&law, 286, 0.05);
}

static void three_at_once(void **state)
{
	struct made m = {.limits.slots = 3,
			 .latency_ns = 7000000,
			 .bytes = 50000,
			 .more = 20000,
			 .rest_ns = 500000,
			 .rest_more_ns = 4000000,
			 .late_ns = 200000,
			 .readers = 6};
	struct read_law law = law_of(&m);

	(void)state;
	assert_int_equal(law.best.servers, 3);
	settled(&law, 3 / 7e-3, 0.05);
}

/* Reads begin at most so often, each otherwise takes 2 ms: no queue of servers does that. */
static void requests(void **state)
{
	struct made m = {.limits.rate = 150,
			 .latency_ns = 2000000,
			 .bytes = 50000,
			 .more = 50000,
			 .rest_ns = 3000000,
			 .rest_more_ns = 25000000,
			 .late_ns = 100000,
			 .readers = 5};
	struct read_law law = law_of(&m);

	(void)state;
	assert_int_equal(law.best.burst, 1);
	near(law.best.latency_ns, 2e6, 2e5);
	settled(&law, 150, 0.05);
}

/* 14 reads at once every 70 ms, as the block layer limits a control group. */
static void slices(void **state)
{
	struct made m = {.limits.rate = 200,
			 .limits.slice_ns = 70000000,
			 .latency_ns = 300000,
			 .bytes = 50000,
			 .more = 50000,
			 .rest_ns = 500000,
			 .rest_more_ns = 1000000,
			 .late_ns = 300000,
			 .readers = 6};
	struct read_law law = law_of(&m);

	(void)state;
	near(law.best.burst, 14, 0);
	near(read_rates_ceiling(&law.best, 1), 200, 4);
}

/* Two readers that take turns: nothing tells a queue of one from a latency of twice as much, and
 * that must be said. What tells it is a time with one of them alone. */
static void two_in_turn(void **state)
{
	struct made m = {.limits.slots = 1, .latency_ns = 10000000, .bytes = 1000, .readers = 2};
	struct read_law law = law_of(&m);
	struct read_seen *seen = m.seen;
	double low, high;

	(void)state;
	ceilings(&law, &low, &high);
	near(low, 100, 2);
	assert_true(isinf(high));
	for (int i = READS / 2; i < READS; i++) {
		seen[i].begin_ns = seen[i - 1].end_ns;
		seen[i].end_ns = seen[i].begin_ns + 10000000;
	}
	law = read_fit(&(struct read_set){seen, READS, 0, 0}, 1, 1);
	settled(&law, 100, 0.03);
}

/* A sweep of readers after the run, as a set of its own, tells it as well. */
static void two_sets(void **state)
{
	struct made run = {.limits.slots = 1, .latency_ns = 10000000, .bytes = 1000, .readers = 2};
	struct made probe = {
		.limits.slots = 1, .latency_ns = 10000000, .bytes = 1000, .readers = 1};
	struct read_law law;

	(void)state;
	make(&run);
	make(&probe);
	for (int i = 0; i < READS; i++) {
		probe.seen[i].begin_ns += 10 * NS_PER_S;
		probe.seen[i].end_ns += 10 * NS_PER_S;
	}
	law = read_fit(
		(const struct read_set[]){{run.seen, READS, 0, 0}, {probe.seen, READS, 0, 0}}, 2,
		1);
	settled(&law, 100, 0.03);
}

/* Two readers have their own streams' rate; six of a sweep share what all streams can have. */
static void streams_that_share(void **state)
{
	struct made run = {.limits = {.stream_bandwidth = 40e6, .bandwidth = 120e6},
			   .bytes = 250000,
			   .more = 300000,
			   .rest_ns = 1000000,
			   .rest_more_ns = 4000000,
			   .readers = 2};
	struct made sweep = run;
	struct read_law law;

	(void)state;
	sweep.readers = 6;
	make(&run);
	make(&sweep);
	for (int i = 0; i < READS; i++) {
		sweep.seen[i].begin_ns += 60 * NS_PER_S;
		sweep.seen[i].end_ns += 60 * NS_PER_S;
	}
	law = read_fit(
		(const struct read_set[]){{run.seen, READS, 0, 0}, {sweep.seen, READS, 0, 0}}, 2,
		1);
	near(law.best.stream_ns_per_byte, 25, 0.5);
	near(law.best.shared_ns_per_byte, 8.33, 0.3);
	settled(&law, 300, 0.05);
}

/* Every other file lies on a slow device, whatever else is read: no queue, no ceiling. */
static void two_devices(void **state)
{
	struct made m = {.readers = 2};
	struct read_law law;
	int64_t next[2] = {0, 500000};
	double low, high, mean = 0;

	(void)state;
	for (uint64_t i = 0; i < READS; i++) {
		int w = next[1] < next[0];
		int64_t took = (draw(i, 2) ? 1000000 : 31000000) + (int64_t)draw(READS + i, 200000);

		m.seen[i] = (struct read_seen){next[w], next[w] + took, 50000, 0, 0};
		next[w] += took + 100000;
		mean += (double)took / READS;
	}
	law = read_fit(&(struct read_set){m.seen, READS, 0, 0}, 1, 1);
	assert_int_equal(law.best.servers, 0);
	assert_int_equal(law.best.burst, 0);
	near(law.best.shared_ns_per_byte, 0, 0);
	near(law.best.latency_ns, mean, 0.1 * mean);
	ceilings(&law, &low, &high);
	assert_true(isinf(high));
	near(low, 2e9 / mean, 0.1 * 2e9 / mean);
}

static void nothing(void **state)
{
	const struct read_seen few[4] = {{0, 5, 1, 0, 0}, {0}, {1, 1, 1, 0, 0}, {3, 4, 0, 0, 0}};
	struct read_law law = read_fit(&(struct read_set){few, 4, 0, 0}, 1, 1);

	(void)state;
	assert_int_equal(law.reads, 0);
	assert_float_equal(law.latency_share, 0, 0);
	law = read_fit(NULL, 0, 1);
	assert_int_equal(law.reads, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shared),
		cmocka_unit_test(latency_alone),
		cmocka_unit_test(streams),
		cmocka_unit_test(in_step),
		cmocka_unit_test(one_by_one),
		cmocka_unit_test(three_at_once),
		cmocka_unit_test(requests),
		cmocka_unit_test(slices),
		cmocka_unit_test(two_in_turn),
		cmocka_unit_test(two_sets),
		cmocka_unit_test(streams_that_share),
		cmocka_unit_test(two_devices),
		cmocka_unit_test(nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
