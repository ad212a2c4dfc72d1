/* Samples of the machine over time, and the flows of other processes added to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include <jansson.h>

#include "metric/series.h"
#include "result/json_result.h"
#include "result/result.h"

static uint64_t thousand(void *arg)
{
	return atomic_fetch_add((_Atomic uint64_t *)arg, 1000);
}

static struct series *sampled(_Atomic uint64_t *calls)
{
	struct timespec rest = {0, 120000000};
	struct series *s;
	struct err e;

	assert_int_equal(series_start(&s, ".", 10000000, false, thousand, calls, &e), 0);
	nanosleep(&rest, NULL);
	series_stop(s);
	return s;
}

static void points_are_in_order(void **state)
{
	_Atomic uint64_t calls = 0;
	struct series *s = sampled(&calls);
	size_t n;
	const struct series_point *p = series_points(s, &n);

	(void)state;
	assert_true(n >= 3);
	assert_int_equal(n * 1000, calls);
	for (size_t i = 1; i < n; i++) {
		assert_true(p[i].t_ns > p[i - 1].t_ns);
		assert_int_equal(p[i].user - p[i - 1].user, 1000);
	}
	series_release(s);
}

static uint64_t down(void *arg)
{
	return 1000000 - atomic_fetch_add((_Atomic uint64_t *)arg, 1000);
}

/* A counter that goes back has no rate, least of all one of 2^64 bytes. */
static void what_goes_back_has_no_rate(void **state)
{
	struct timespec rest = {0, 60000000};
	_Atomic uint64_t calls = 0;
	struct result r = {0};
	json_t *o, *values;
	struct err e;

	(void)state;
	assert_int_equal(series_start(&r.series, ".", 10000000, false, down, &calls, &e), 0);
	nanosleep(&rest, NULL);
	series_stop(r.series);
	o = json_series(&r);
	values =
		json_object_get(json_object_get(json_object_get(o, "curves"), "payload"), "values");
	assert_true(json_array_size(values) > 1);
	for (size_t i = 0; i < json_array_size(values); i++)
		assert_true(json_is_null(json_array_get(values, i)));
	json_decref(o);
	series_release(r.series);
}

/* Another process that moved 1 byte a ms from the second point's time to the last but one's. */
static void flows_are_added_between_their_points(void **state)
{
	_Atomic uint64_t calls = 0;
	struct series *s = sampled(&calls);
	struct series_flow flow[3];
	uint64_t before[SERIES_POINTS_MAX];
	size_t n;
	const struct series_point *p = series_points(s, &n);

	(void)state;
	assert_true(n >= 5);
	for (size_t i = 0; i < n; i++)
		before[i] = p[i].user;
	for (size_t i = 0; i < 3; i++) {
		int64_t t = p[1].t_ns + (int64_t)i * (p[n - 2].t_ns - p[1].t_ns) / 2;
		uint64_t moved = (uint64_t)(t - p[1].t_ns);

		flow[i] = (struct series_flow){t, moved, 2 * moved, (int64_t)moved};
	}
	series_add_flows(s, flow, 3);
	for (size_t i = 0; i < n; i++) {
		int64_t at = p[i].t_ns < p[n - 2].t_ns ? p[i].t_ns : p[n - 2].t_ns;
		double expected = at > p[1].t_ns ? (double)(at - p[1].t_ns) : 0;
		double added = (double)(p[i].user - before[i]);

		assert_true(added >= expected - 2 && added <= expected + 2);
	}
	series_add_flows(s, flow, 0);
	series_release(s);
}

static void flows_keep_both_ends(void **state)
{
	_Atomic uint64_t calls = 0;
	struct series *s = sampled(&calls);
	struct series_flow flow[SERIES_FLOWS_MAX];
	size_t n, kept = series_flows(s, flow);
	const struct series_point *p = series_points(s, &n);

	(void)state;
	assert_int_equal(kept, n < SERIES_FLOWS_MAX ? n : SERIES_FLOWS_MAX);
	assert_int_equal(flow[0].t_ns, p[0].t_ns);
	assert_int_equal(flow[kept - 1].user, p[n - 1].user);
	assert_int_equal(series_flows(NULL, flow), 0);
	series_release(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_goes_back_has_no_rate),
		cmocka_unit_test(points_are_in_order),
		cmocka_unit_test(flows_are_added_between_their_points),
		cmocka_unit_test(flows_keep_both_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
