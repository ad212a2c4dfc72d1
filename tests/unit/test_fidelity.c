/* The statistics of fidelity against values worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trace/replay/fidelity.h"

static void distances_of_distributions(void **state)
{
	double same[] = {1, 2, 3, 4}, again[] = {4, 3, 2, 1}, above[] = {5, 6},
	       half[] = {1, 2, 9, 9};
	double one[] = {1, 1, 1}, two[] = {1, 2};

	(void)state;
	assert_true(fidelity_ks(same, 4, again, 4) == 0);
	assert_true(fidelity_ks(same, 4, above, 2) == 1);
	assert_true(fidelity_ks(same, 4, half, 4) == 0.5);
	/* ties count at once */
	assert_true(fidelity_ks(one, 3, two, 2) == 0.5);
	assert_true(isnan(fidelity_ks(one, 0, two, 2)));
}

static void orders(void **state)
{
	uint32_t spare[8], same[] = {0, 1, 2, 3, 4}, back[] = {4, 3, 2, 1, 0};
	uint32_t swapped[] = {0, 2, 1, 3}, halves[] = {3, 4, 5, 0, 1, 2};

	(void)state;
	assert_true(fidelity_tau(same, spare, 5) == 1);
	assert_true(fidelity_tau(back, spare, 5) == -1);
	/* one of six pairs; nine of fifteen */
	assert_true(fabs(fidelity_tau(swapped, spare, 4) - (1 - 2.0 / 6)) < 1e-12);
	assert_true(fabs(fidelity_tau(halves, spare, 6) - (1 - 18.0 / 15)) < 1e-12);
	assert_true(isnan(fidelity_tau(same, spare, 1)));
}

/* Two jobs of one thread: a file is read in other pieces, and in another order. */
static void add(struct job *job, uint32_t file, int64_t begin, int64_t bytes)
{
	struct job_event v = {.begin_ns = begin,
			      .end_ns = begin + 1000,
			      .offset = 0,
			      .asked = bytes,
			      .result = bytes,
			      .file = file,
			      .other = JOB_NONE,
			      .descriptor = JOB_NONE,
			      .kind = JOB_READ};

	assert_int_equal(job_add(job, &v, NULL), 0);
}

static void make(struct job *job, const int64_t *bytes, size_t n)
{
	uint32_t file, process;

	job_init(job);
	job->sees = JOB_SEES_REQUESTS | JOB_SEES_TIMES;
	process = job_process(job, 1, "", JOB_NONE);
	job_add_thread(job, process, 1);
	file = job_file(job, "/data/a", JOB_FILE_REGULAR);
	for (size_t i = 0; i < n; i++)
		add(job, file, (int64_t)i * 10000, bytes[i]);
	assert_int_equal(job_finish(job, NULL), 0);
}

static void multisets(void **state)
{
	const int64_t a[] = {10, 20, 20, 30}, b[] = {30, 20, 10, 40};
	struct fidelity f;
	struct job x, y;

	(void)state;
	make(&x, a, 4);
	make(&y, b, 4);
	fidelity_of(&x, &y, true, false, &f);
	/* 10, 20 and 30 have partners */
	assert_true(f.equal == 2 * 3 / 8.0);
	assert_true(f.read_bytes.log == 80 && f.read_bytes.run == 100);
	/* they come as 30, 20, 10 */
	assert_true(f.tau == -1 && f.readers == 1);
	assert_true(fabs(f.concurrency.log - 4 * 1000.0 / 31000) < 1e-12);
	assert_true(fabs(f.wall_s.run - 31000e-9) < 1e-12);
	fidelity_of(&x, &x, true, false, &f);
	assert_true(f.equal == 1 && f.tau == 1);
	job_release(&x);
	job_release(&y);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(distances_of_distributions),
					   cmocka_unit_test(orders), cmocka_unit_test(multisets)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
