/* The division of a wait: known answers, and sums over random spans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "metric/split.h"

static int64_t sum(const int64_t v[WAIT_PARTS])
{
	int64_t s = 0;

	for (int i = 0; i < WAIT_PARTS; i++)
		s += v[i];
	return s;
}

static void known(void **state)
{
	const struct batch_work w = {.ns = {[WORK_OPEN] = 100,
					    [WORK_META] = 100,
					    [WORK_DATA] = 600,
					    [WORK_DECODE] = 200}};
	const struct batch_span b = {
		.sent_ns = 1100, .begun_ns = 1200, .done_ns = 2200, .work = &w};
	struct step_times t = {.ask_ns = 1000, .got_ns = 2300};
	int64_t out[WAIT_PARTS], again[WAIT_PARTS];

	(void)state;
	wait_split(out, &t, &b, false);
	assert_int_equal(out[WAIT_START], 0);
	assert_int_equal(out[WAIT_STARVED], 100);
	assert_int_equal(out[WAIT_QUEUE], 100);
	assert_int_equal(out[WAIT_OPEN], 200);
	assert_int_equal(out[WAIT_DATA], 600);
	assert_int_equal(out[WAIT_DECODE], 200);
	assert_int_equal(out[WAIT_TRANSPORT], 100);
	wait_split(out, &t, &b, true);
	assert_int_equal(out[WAIT_START], 200);
	assert_int_equal(out[WAIT_STARVED] + out[WAIT_QUEUE], 0);
	/* asked in the middle of the reading */
	t.ask_ns = 1700;
	wait_split(out, &t, &b, false);
	assert_int_equal(out[WAIT_DATA], 300);
	assert_int_equal(out[WAIT_OPEN], 100);
	assert_int_equal(out[WAIT_TRANSPORT], 100);
	wait_split_again(again, &t);
	assert_int_equal(sum(again), 600);
	assert_in_range(again[WAIT_DATA], 295, 320);
	/* ready before it was asked for */
	t = (struct step_times){.ask_ns = 5000, .got_ns = 5003};
	wait_split(out, &t, &b, false);
	assert_int_equal(out[WAIT_TRANSPORT], 3);
	assert_int_equal(sum(out), 3);
}

/* The framework's code: before, within and after the work of the readers. */
static void framework(void **state)
{
	const struct batch_work w = {.ns = {[WORK_DATA] = 600, [WORK_FRAMEWORK] = 400}};
	struct batch_span b = {.sent_ns = 1300,
			       .begun_ns = 1500,
			       .done_ns = 2500,
			       .work = &w,
			       .costs = {.start_ns = 200,
					 .start_late_ns = 30,
					 .begin_ns = 150,
					 .pack_ns = 40,
					 .pin_ns = 20,
					 .hand_ns = 50}};
	struct step_times t = {.ask_ns = 1000, .got_ns = 2640};
	int64_t out[WAIT_PARTS];
	struct epoch_split s = {0}, all = {0};

	(void)state;
	wait_split(out, &t, &b, true);
	assert_int_equal(out[WAIT_FRAMEWORK], 200 + 150 + 400 + 110);
	assert_int_equal(out[WAIT_START], 70 + 50);
	assert_int_equal(out[WAIT_NO_CPU], 30);
	assert_int_equal(out[WAIT_DATA], 600);
	assert_int_equal(out[WAIT_TRANSPORT], 30);
	assert_int_equal(sum(out), 1640);
	t.service_us = t.ready_us = 0;
	epoch_split_add(&s, out, &t, 0, &b);
	epoch_split_merge(&all, &s);
	assert_int_equal(all.work_ns[WORK_FRAMEWORK], 400);
	assert_true(all.service_ns == 1040 && all.delivery_ns == 30);
	assert_int_equal(all.framework_start_ns, 350);
	assert_int_equal(all.framework_step_ns, 50);
	/* asked while it was packed: 25 of 60 are past; then long after */
	t = (struct step_times){.ask_ns = 2525, .got_ns = 2640};
	wait_split(out, &t, &b, false);
	assert_int_equal(out[WAIT_FRAMEWORK], 50 + 35);
	assert_int_equal(out[WAIT_TRANSPORT], 30);
	t = (struct step_times){.ask_ns = 5000, .got_ns = 5052};
	wait_split(out, &t, &b, false);
	assert_int_equal(out[WAIT_FRAMEWORK], 50);
	assert_int_equal(out[WAIT_TRANSPORT], 2);
	/* never more than the wait */
	t = (struct step_times){.ask_ns = 5000, .got_ns = 5003};
	wait_split(out, &t, &b, false);
	assert_int_equal(out[WAIT_FRAMEWORK], 3);
	assert_int_equal(sum(out), 3);
}

static void sums(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 20000; i++) {
		uint64_t key = rng_key(7, i, 0);
		struct batch_work w;
		struct step_times t = {.ask_ns = 100000};
		int64_t out[WAIT_PARTS], again[WAIT_PARTS];

		for (int k = 0; k < WORK_KINDS; k++)
			w.ns[k] = (int64_t)(rng_word(key, k) % 5000) - 500;
		const struct batch_span b = {
			.sent_ns = (int64_t)(rng_word(key, 10) % 200000),
			.begun_ns = (int64_t)(rng_word(key, 11) % 200000),
			.done_ns = (int64_t)(rng_word(key, 12) % 200000),
			.late_ns = (int64_t)(rng_word(key, 14) % 3000) - 100,
			.rank_late_ns = (int64_t)(rng_word(key, 15) % 3000) - 100,
			.work = &w,
		};

		t.got_ns = t.ask_ns + (int64_t)(rng_word(key, 13) % 100000);
		wait_split(out, &t, &b, i % 2);
		wait_split_again(again, &t);
		assert_int_equal(sum(out), t.got_ns - t.ask_ns);
		assert_int_equal(sum(again), t.got_ns - t.ask_ns);
		for (int k = 0; k < WAIT_PARTS; k++) {
			assert_true(out[k] >= 0);
			assert_true(again[k] >= 0);
		}
		/* a time that the process stood still is taken off the others */
		struct epoch_split s = {0};
		int64_t still = (int64_t)(rng_word(key, 16) % 120000), taken, had;

		epoch_split_add(&s, out, &t, 0, &b);
		had = s.wait_ns[WAIT_NO_CPU];
		taken = wait_split_take(&s, &t, still);
		assert_true(taken >= 0 && taken <= still);
		/* but for what the rounding of shares hides */
		assert_true(taken == still ||
			    taken + again[WAIT_NO_CPU] + (t.got_ns - t.ask_ns) / 20 + WAIT_PARTS >=
				    t.got_ns - t.ask_ns ||
			    taken + WAIT_PARTS >= still * 9 / 10);
		assert_int_equal(s.wait_ns[WAIT_NO_CPU], had + taken);
		assert_int_equal(sum(s.wait_ns), t.got_ns - t.ask_ns);
		for (int k = 0; k < WAIT_PARTS; k++)
			assert_true(s.wait_ns[k] >= 0);
	}
}

static void totals(void **state)
{
	const struct batch_work w = {.ns = {[WORK_DATA] = 50}};
	struct step_times t[3] = {{.ask_ns = 0, .got_ns = 60},
				  {.ask_ns = 100, .got_ns = 101},
				  {.ask_ns = 200, .got_ns = 201}};
	const struct batch_span b[3] = {{.done_ns = 50, .work = &w},
					{.begun_ns = 50, .done_ns = 90, .work = &w},
					{.begun_ns = 60, .done_ns = 95, .work = &w}};
	struct epoch_split s = {0};
	int64_t wait[WAIT_PARTS];

	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		wait_split(wait, &t[i], &b[i], i == 0);
		epoch_split_add(&s, wait, t, i, &b[i]);
	}
	assert_int_equal(sum(s.wait_ns), 62);
	assert_int_equal(s.work_ns[WORK_DATA], 150);
	/* at ask 1 both later batches lay ready, at ask 2 the last one */
	assert_int_equal(s.ready, 3);
	assert_int_equal(s.waited, 1);
}

/* Waiting for a processor is taken off what the worker was at, and off the ways to it and from it.
 */
static void without_processor(void **state)
{
	const struct batch_work w = {
		.ns = {[WORK_DATA] = 600, [WORK_DECODE] = 200, [WORK_NO_CPU] = 400}};
	const struct batch_span b = {.sent_ns = 1000,
				     .begun_ns = 1200,
				     .done_ns = 2000,
				     .late_ns = 150,
				     .rank_late_ns = 90,
				     .work = &w};
	struct step_times t = {.ask_ns = 1000, .got_ns = 2100};
	struct epoch_split s = {0};
	int64_t out[WAIT_PARTS];

	(void)state;
	wait_split(out, &t, &b, false);
	assert_int_equal(out[WAIT_QUEUE], 50);
	assert_int_equal(out[WAIT_DATA], 300);
	assert_int_equal(out[WAIT_DECODE], 100);
	assert_int_equal(out[WAIT_TRANSPORT], 10);
	assert_int_equal(out[WAIT_NO_CPU], 150 + 400 + 90);
	epoch_split_add(&s, out, &t, 0, &b);
	assert_int_equal(s.work_ns[WORK_DATA], 300);
	assert_int_equal(s.work_ns[WORK_DECODE], 100);
	assert_int_equal(s.work_ns[WORK_NO_CPU], 400);
	/* more than the wait is no more than the wait */
	assert_in_range(wait_split_take(&s, &t, 5000), 1100 - 640 - 10, 1100 - 640);
	assert_in_range(s.wait_ns[WAIT_NO_CPU], 1090, 1100);
	assert_int_equal(sum(s.wait_ns), 1100);
	wait_split_again(out, &t);
	assert_in_range(out[WAIT_NO_CPU], 1085, 1100);
	assert_int_equal(late_ns(late_share(250, 1000), 1000), 249);
	assert_int_equal(late_share(2000, 1000), 65535);
	assert_int_equal(late_share(-1, 1000), 0);
	assert_int_equal(late_share(5, 0), 0);
}

static void kept_times(void **state)
{
	struct service_times s = {0};

	(void)state;
	for (int64_t i = 0; i < 100000; i++)
		service_times_add(&s, i);
	assert_in_range(s.n, SERVICE_KEPT / 2, SERVICE_KEPT);
	for (uint32_t i = 0; i < s.n; i++)
		assert_int_equal(s.ns[i], (int64_t)(i * s.stride));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known),
		cmocka_unit_test(framework),
		cmocka_unit_test(sums),
		cmocka_unit_test(totals),
		cmocka_unit_test(without_processor),
		cmocka_unit_test(kept_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
