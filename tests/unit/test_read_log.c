/* Logs of reads: what is kept are all reads of some windows, whatever the threads' rates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "metric/read_log.h"

#define READS 60000

static struct read_seen made(uint32_t thread, uint64_t i, int64_t each_ns)
{
	int64_t at = INT64_C(123456789) + thread * 37 + (int64_t)i * each_ns;
	int64_t took =
		each_ns / 2 + (int64_t)(rng_word(rng_key(3, thread, 0), i) % 1000) * each_ns / 3000;

	return (struct read_seen){at, at + took, 1000 * thread + i, 0, 0};
}

static void fill(struct read_log *l, uint32_t thread, uint64_t reads, int64_t each_ns)
{
	for (uint64_t i = 0; i < reads; i++) {
		struct read_seen s = made(thread, i, each_ns);

		read_log_add(l, s.begin_ns, s.end_ns, s.bytes, 0, 0);
	}
}

/* Exactly the reads of `reads` that touch the windows are there. */
static void complete(const struct read_log *l, uint32_t thread, uint64_t reads, int64_t each_ns)
{
	uint32_t at = 0;

	for (uint64_t i = 0; i < reads; i++) {
		struct read_seen s = made(thread, i, each_ns);

		if (!read_log_touches(l->apart, l->wide, &s))
			continue;
		assert_true(at < l->n);
		assert_int_equal(l->seen[at].begin_ns, s.begin_ns);
		at++;
	}
	assert_int_equal(at, l->n);
}

static void one_thread(void **state)
{
	(void)state;
	for (uint64_t reads = 1; reads < 600000; reads = reads * 3 + 1) {
		struct read_log *l = calloc(1, sizeof(*l));

		fill(l, 1, reads, 20000);
		complete(l, 1, reads, 20000);
		if (reads <= READ_LOG_KEPT)
			assert_int_equal(l->n, reads);
		else
			assert_in_range(l->n, READ_LOG_KEPT / 8, READ_LOG_KEPT);
		free(l);
	}
}

/* By the clocks of two threads a read may end before it began: the log still does. */
static void ends_before_it_begins(void **state)
{
	struct read_log *l = calloc(1, sizeof(*l));

	(void)state;
	assert_non_null(l);
	for (int64_t i = 0; i < 4 * READ_LOG_KEPT; i++)
		read_log_add(l, 1000000 + 1000 * i, 1000000 + 1000 * i - 90, 1, 0, 0);
	assert_true(l->n > 0 && l->n <= READ_LOG_KEPT && l->apart > 0);
	for (uint32_t i = 0; i < l->n; i++)
		assert_true(l->seen[i].end_ns >= l->seen[i].begin_ns);
	free(l);
}

static void changing_rate(void **state)
{
	struct read_log *l = calloc(1, sizeof(*l));
	int64_t at = 1;

	(void)state;
	for (int64_t each = 10000000; each > 1; each /= 2)
		for (int i = 0; i < 3000; i++, at += each)
			read_log_add(l, at, at + each, 1, 0, 0);
	assert_in_range(l->n, 1, READ_LOG_KEPT);
	/* more at one moment than can be kept: none of them is */
	for (int i = 0; i < 2 * READ_LOG_KEPT; i++)
		read_log_add(l, at, at, 1, 0, 0);
	assert_in_range(l->n, 0, READ_LOG_KEPT);
	free(l);
}

static void threads_together(void **state)
{
	struct read_log *l = calloc(5, sizeof(*l)), *sum = calloc(1, sizeof(*sum));
	const struct read_log *all[4] = {&l[0], &l[1], &l[2], &l[3]};
	const int64_t each[4] = {20000, 30000, 1000000, 21000};
	uint64_t apart, wide;
	struct read_seen *seen;
	size_t n, at = 0;

	(void)state;
	for (uint32_t t = 0; t < 4; t++) {
		fill(&l[t], t, (uint64_t)(READS * INT64_C(20000) / each[t]), each[t]);
		read_log_merge(sum, &l[t]);
	}
	assert_in_range(sum->n, 64, READ_LOG_KEPT);
	read_log_merge(sum, &l[4]); /* empty */
	seen = read_log_join(all, 4, &n, &apart, &wide);
	assert_non_null(seen);
	for (uint32_t t = 0; t < 4; t++) {
		uint32_t in_sum = 0, kept = 0;

		for (uint64_t i = 0; i < (uint64_t)(READS * INT64_C(20000) / each[t]); i++) {
			struct read_seen s = made(t, i, each[t]);

			in_sum += read_log_touches(sum->apart, sum->wide, &s);
			at += read_log_touches(apart, wide, &s);
		}
		for (uint32_t i = 0; i < sum->n; i++)
			kept += (sum->seen[i].begin_ns - 123456789 - t * 37) % each[t] == 0 &&
				sum->seen[i].bytes / 1000 >= t;
		assert_true(kept >= in_sum && in_sum > 0);
	}
	assert_int_equal(at, n);
	for (size_t i = 1; i < n; i++)
		assert_true(seen[i - 1].begin_ns <= seen[i].begin_ns);
	free(seen);
	assert_null(read_log_join((const struct read_log *[]){&l[4]}, 1, &n, &apart, &wide));
	free(l);
	free(sum);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_thread),
		cmocka_unit_test(ends_before_it_begins),
		cmocka_unit_test(changing_rate),
		cmocka_unit_test(threads_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
