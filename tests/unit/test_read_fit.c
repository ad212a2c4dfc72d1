/* Laws of stores found in reads: readers over a store whose rates are known, simulated in steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "metric/read_fit.h"
#include "store/throttle_share.h"

#define READERS 6
#define READS 600

/* Closed loop: each of `readers` waits `rest` of its own, reads, and begins again. */
struct made {
	double bandwidth, stream;
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

	share_init(&share,
		   &(struct share_limits){.bandwidth = m->bandwidth, .stream_bandwidth = m->stream},
		   0);
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
			now[w] = (struct read_seen){at, 0, m->bytes + draw(seed++, m->more)};
			share_submit(&share, &q[w], at, m->latency_ns, now[w].bytes);
		}
		while (n < READS && (done = share_take_done(&share))) {
			w = (int)(done - q);
			now[w].end_ns = (int64_t)done->done_ns;
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
	return read_fit(m->seen, READS, 0, 0, 1);
}

static void near(double value, double wanted, double within)
{
	if (!(value >= wanted - within && value <= wanted + within))
		fail_msg("%g is not within %g of %g", value, within, wanted);
}

static void shared(void **state)
{
	struct made m = {.bandwidth = 100e6,
			 .latency_ns = 2000000,
			 .bytes = 200000,
			 .rest_ns = 1000000,
			 .rest_more_ns = 8000000,
			 .readers = 6};
	struct read_law law = law_of(&m);

	(void)state;
	near(law.best.latency_ns, 2e6, 5e4);
	near(law.best.shared_ns_per_byte, 10, 0.2);
	near(law.least.shared_ns_per_byte, 10, 0.7);
	near(law.most.shared_ns_per_byte, 10, 0.7);
	assert_true(law.best.stream_ns_per_byte * 1 < 10.5);
	assert_true(law.shared_share > 0.4);
}

static void latency_alone(void **state)
{
	struct made m = {.latency_ns = 5000000,
			 .bytes = 200000,
			 .more = 400000,
			 .rest_ns = 1000000,
			 .rest_more_ns = 8000000,
			 .readers = 6};
	struct read_law law = law_of(&m);

	(void)state;
	near(law.best.latency_ns, 5e6, 1e5);
	near(law.most.shared_ns_per_byte, 0, 0.5);
	assert_float_equal(law.latency_share, 1, 0.02);
}

static void streams(void **state)
{
	struct made m = {.stream = 50e6,
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
	near(law.most.shared_ns_per_byte, 0, 0.01);
}

/* Always the same company and size: anything from latency to bandwidth explains it. */
static void in_step(void **state)
{
	struct made m = {.bandwidth = 100e6, .bytes = 200000, .rest_ns = 1000000, .readers = 4};
	struct read_law law = law_of(&m);

	(void)state;
	assert_float_equal(law.least.shared_ns_per_byte, 0, 1e-9);
	near(law.most.shared_ns_per_byte, 10, 0.5);
}

static void nothing(void **state)
{
	const struct read_seen few[4] = {{0, 5, 1}, {0, 0, 0}, {1, 1, 1}, {3, 4, 0}};
	struct read_law law = read_fit(few, 4, 0, 0, 1);

	(void)state;
	assert_int_equal(law.reads, 0);
	assert_float_equal(law.latency_share, 0, 0);
	law = read_fit(NULL, 0, 0, 0, 1);
	assert_int_equal(law.reads, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shared),  cmocka_unit_test(latency_alone),
		cmocka_unit_test(streams), cmocka_unit_test(in_step),
		cmocka_unit_test(nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
