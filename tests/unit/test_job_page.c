/* The page of a real job: what its timeline and curves add up to, and that its size has a bound. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "page/job_curves.h"
#include "page/job_lanes.h"
#include "page/job_page.h"

#define MS 1000000LL

/* `workers` processes that read, wait for a pipe, and read again, `rounds` times. */
static void make_job(struct job *job, size_t workers, size_t rounds)
{
	struct err e = {0};
	uint32_t data, pipe, code, saved, trainer;

	job_init(job);
	job->source = "a test";
	job->sees = JOB_SEES_REQUESTS | JOB_SEES_TIMES | JOB_SEES_OFFSETS | JOB_SEES_OPENS |
		    JOB_SEES_PIPES | JOB_SEES_PROCESSES;
	data = job_file(job, "/data/train/</script>\x01.npz", JOB_FILE_REGULAR);
	pipe = job_file(job, "pipe:[7]", JOB_FILE_PIPE);
	code = job_file(job, "/usr/lib/python3/os.py", JOB_FILE_REGULAR);
	saved = job_file(job, "/out/ckpt.pt", JOB_FILE_REGULAR);
	job_process(job, 100, "", JOB_NONE);
	trainer = job_add_thread(job, 0, 100);
	for (size_t w = 0; w < workers; w++) {
		uint32_t p = job_process(job, 101 + (int64_t)w, "", 0);
		uint32_t t = job_add_thread(job, p, 101 + (int64_t)w);

		for (size_t r = 0; r < rounds; r++) {
			int64_t at = (int64_t)r * 10 * MS;
			struct job_event v = {.begin_ns = at,
					      .end_ns = at + 2 * MS,
					      .offset = 0,
					      .asked = 4096,
					      .result = 4096,
					      .thread = t,
					      .file = data,
					      .other = JOB_NONE,
					      .kind = JOB_READ};

			assert_int_equal(job_add(job, &v, &e), 0);
			v.begin_ns = at + 2 * MS;
			v.end_ns = at + 7 * MS;
			v.file = pipe;
			v.asked = v.result = 4;
			assert_int_equal(job_add(job, &v, &e), 0);
		}
	}
	for (int k = 0; k < 2; k++) {
		struct job_event v = {.begin_ns = k * MS,
				      .end_ns = (k + 1) * MS,
				      .asked = 1 << 20,
				      .result = 1 << 20,
				      .thread = trainer,
				      .file = k ? saved : code,
				      .other = JOB_NONE,
				      .kind = k ? JOB_WRITE : JOB_READ};

		assert_int_equal(job_add(job, &v, &e), 0);
	}
	assert_int_equal(job_finish(job, &e), 0);
}

static double seconds(const json_t *lanes, size_t lane, enum lane_state s)
{
	const json_t *l = json_array_get(json_object_get(lanes, "lanes"), lane);

	return json_number_value(json_array_get(json_object_get(l, "seconds"), s));
}

/* What the columns of a text add up to, in columns. */
static double columns(const json_t *lanes, size_t lane, enum lane_state s, size_t *n)
{
	static const char digits[] =
		"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
	const json_t *w = json_array_get(json_object_get(lanes, "windows"), 0);
	const char *p = json_string_value(
		json_array_get(json_array_get(json_object_get(w, "rows"), lane), s));
	double sum = 0;

	for (*n = 0; *p; p++) {
		double share = (double)(strchr(digits, *p) - digits) / 63;
		size_t times = 1;

		if (p[1] == '{') {
			char *end;

			times = strtoul(p + 2, &end, 10);
			p = end;
		}
		*n += times;
		sum += share * (double)times;
	}
	return sum;
}

static void test_time_of_threads_is_kept(void **state)
{
	struct profile a;
	struct job job;
	json_t *lanes;
	size_t n;

	(void)state;
	make_job(&job, 2, 10);
	profile_make(&a, &job);
	a.role[0] = FILE_DATASET;
	lanes = job_lanes(&a);
	assert_int_equal(json_array_size(json_object_get(lanes, "lanes")), 3);
	/* the whole is 97 ms: the last wait ends there */
	assert_true(fabs(seconds(lanes, 1, LANE_READ) - 0.020) < 1e-9);
	assert_true(fabs(seconds(lanes, 2, LANE_WAIT) - 0.050) < 1e-9);
	assert_true(fabs(columns(lanes, 1, LANE_READ, &n) - JOB_COLUMNS * 20.0 / 97) < 5);
	assert_int_equal(n, JOB_COLUMNS);
	assert_true(fabs(columns(lanes, 1, LANE_WAIT, &n) - JOB_COLUMNS * 50.0 / 97) < 5);
	assert_int_equal(n, JOB_COLUMNS);
	assert_true(fabs(seconds(lanes, 0, LANE_PROGRAM) - 0.001) < 1e-9);
	assert_true(fabs(seconds(lanes, 0, LANE_WRITE) - 0.001) < 1e-9);
	json_decref(lanes);
	profile_release(&a);
	job_release(&job);
}

static void test_bytes_are_kept(void **state)
{
	const json_t *series, *rate;
	struct profile a;
	struct job job;
	json_t *bytes;
	double sum = 0, dt;

	(void)state;
	make_job(&job, 2, 10);
	profile_make(&a, &job);
	a.role[0] = FILE_DATASET;
	bytes = job_bytes(&a);
	dt = json_number_value(json_object_get(bytes, "dt"));
	series = json_array_get(json_object_get(bytes, "series"), 0);
	assert_string_equal(json_string_value(json_object_get(series, "name")), "read: dataset");
	rate = json_object_get(series, "rate");
	for (size_t i = 0; i < json_array_size(rate); i++)
		sum += json_number_value(json_array_get(rate, i)) * dt;
	assert_true(fabs(sum - 2 * 10 * 4096) < 1);
	json_decref(bytes);
	profile_release(&a);
	job_release(&job);
}

static size_t page_size(size_t workers, size_t rounds)
{
	struct buf page = {0};
	struct profile a;
	struct job job;
	size_t n;

	make_job(&job, workers, rounds);
	profile_make(&a, &job);
	job_page_render(&a, &page);
	/* a name of a file neither ends the script nor commands a terminal */
	assert_null(strstr(page.data, "train/</script>"));
	assert_null(strchr(page.data, 1));
	assert_non_null(strstr(page.data, "</html>"));
	n = page.len;
	buf_release(&page);
	profile_release(&a);
	job_release(&job);
	return n;
}

static void test_size_is_bounded(void **state)
{
	size_t small = page_size(100, 10), large = page_size(100, 2000);

	(void)state;
	/* 63 threads have rows; each column of a row takes two characters at most */
	assert_true(large < small + (size_t)JOB_LANES * 2 * JOB_COLUMNS * 2);
	assert_true(large < 1 << 20);
}

static void test_without_requests(void **state)
{
	struct buf page = {0};
	struct profile a;
	struct job job;
	json_t *none;
	struct err e = {0};

	(void)state;
	job_init(&job);
	job.source = "counters";
	job.sees = JOB_SEES_COUNTS;
	job_process(&job, 1, "", JOB_NONE);
	job_add_thread(&job, 0, 1);
	job_file(&job, "/data/a.npz", JOB_FILE_REGULAR);
	job.file[0].counts.read_size[2] = 5;
	assert_int_equal(job_finish(&job, &e), 0);
	profile_make(&a, &job);
	none = job_lanes(&a);
	assert_true(json_is_null(none));
	json_decref(none);
	none = job_bytes(&a);
	assert_true(json_is_null(none));
	json_decref(none);
	job_page_render(&a, &page);
	assert_non_null(strstr(page.data, "\"Requests by size\""));
	buf_release(&page);
	profile_release(&a);
	job_release(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time_of_threads_is_kept),
		cmocka_unit_test(test_bytes_are_kept),
		cmocka_unit_test(test_size_is_bounded),
		cmocka_unit_test(test_without_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
