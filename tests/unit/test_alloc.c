/* Memory that is set aside for results, and what may use it when the system refuses more. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"

#include "../skip.h"

#define RESULTS ((size_t)4 << 20)

static int refuse; /* so many allocations, from now on */

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);

void *__wrap_malloc(size_t n)
{
	if (refuse > 0) {
		refuse--;
		errno = ENOMEM;
		return NULL;
	}
	return __real_malloc(n);
}

static size_t address_space(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void *refused_once(void)
{
	refuse = 1;
	return xmalloc(100);
}

/* How many refusals are answered before one ends the process: in a process of its own. */
static int status_after(int times, int in_a_row, bool results)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		close(STDERR_FILENO);
		if (results)
			alloc_for_results();
		for (int i = 0; i < times; i++) {
			refuse = in_a_row;
			free(xmalloc(100));
		}
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_reserve_is_set_aside_and_given_back(void **state)
{
	size_t before = address_space(), during;
	struct err e = {0};

	(void)state;
	assert_false(alloc_spend());
	assert_int_equal(alloc_reserve(RESULTS, &e), 0);
	during = address_space();
	assert_true(during >= before + RESULTS);
	assert_int_equal(alloc_refusal(&e), 0);
	alloc_reserve_release();
	assert_true(address_space() <= during - RESULTS);
	assert_false(alloc_spend());
}

static void test_reserve_is_refused(void **state)
{
	struct rlimit old, small;
	size_t before = address_space();
	struct err e = {0};

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
	small = old;
	/* what is small fits, what is for results does not */
	small.rlim_cur = before + RESULTS;
	assert_int_equal(setrlimit(RLIMIT_AS, &small), 0);
	assert_int_equal(alloc_reserve(RESULTS, &e), -ENOMEM);
	assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
	assert_non_null(strstr(e.text, "memory to write results"));
	assert_true(address_space() <= before);
	assert_int_equal(alloc_reserve(RESULTS, &e), 0); /* once more is allowed */
	alloc_reserve_release();
}

static void test_the_first_refusal_is_told(void **state)
{
	struct err e = {0};
	void *p;

	(void)state;
	assert_int_equal(alloc_reserve(RESULTS, &e), 0);
	p = refused_once();
	assert_non_null(p);
	free(p);
	refuse = 1;
	free(xmalloc(7));
	assert_int_equal(alloc_refusal(&e), -ENOMEM);
	assert_non_null(strstr(e.text, "refused 100 bytes"));
	alloc_reserve_release();
	assert_int_equal(alloc_refusal(&e), 0);
	assert_int_equal(alloc_reserve(RESULTS, &e), 0);
	assert_true(alloc_spend()); /* by a library */
	assert_int_equal(alloc_refusal(&e), -ENOMEM);
	assert_string_equal(e.text, "out of memory");
	alloc_reserve_release();
}

static void test_refusals_while_results_are_written_are_not_the_reason(void **state)
{
	struct err e = {0};
	void *p;

	(void)state;
	assert_int_equal(alloc_reserve(RESULTS, &e), 0);
	alloc_for_results();
	p = refused_once();
	assert_non_null(p);
	free(p);
	assert_int_equal(alloc_refusal(&e), 0);
	alloc_reserve_release();
}

static void test_an_end_has_the_reserve(void **state)
{
	size_t before;
	struct err e = {0};

	(void)state;
	assert_int_equal(alloc_reserve(RESULTS, &e), 0);
	before = address_space();
	for (int i = 0; i < 8; i++)
		assert_true(alloc_spend());
	assert_false(alloc_spend()); /* the last piece is for results */
	assert_true(address_space() > before - RESULTS);
	alloc_for_results();
	assert_true(alloc_spend());
	assert_true(address_space() <= before - RESULTS);
	assert_false(alloc_spend());
	alloc_reserve_release();
}

static void test_what_is_left_ends_the_process(void **state)
{
	struct err e = {0};

	(void)state;
	assert_int_equal(status_after(1, 1, false), 1); /* nothing is set aside */
	assert_int_equal(alloc_reserve(RESULTS, &e), 0);
	assert_int_equal(status_after(8, 1, false), 0);
	assert_int_equal(status_after(9, 1, false), 1);
	assert_int_equal(status_after(9, 1, true), 0);
	assert_int_equal(status_after(10, 1, true), 1);
	/* refused again: one piece of it is not enough */
	assert_int_equal(status_after(1, 8, false), 0);
	assert_int_equal(status_after(1, 9, false), 1);
	assert_int_equal(status_after(1, 9, true), 0);
	assert_int_equal(status_after(1, 10, true), 1);
	alloc_reserve_release();
}

/* More than one piece of what is set aside for the stop. */
static void test_what_is_written_may_take_several_pieces(void **state)
{
	struct rlimit old, small;
	struct err e = {0};
	void *p, *q;

	(void)state;
	assert_int_equal(alloc_reserve(RESULTS, &e), 0);
	assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
	small = old;
	small.rlim_cur = address_space();
	assert_int_equal(setrlimit(RLIMIT_AS, &small), 0);
	p = xmalloc((size_t)1 << 20);
	alloc_for_results();
	q = xmalloc((size_t)3 << 20);
	assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
	assert_non_null(p);
	assert_non_null(q);
	free(p);
	free(q);
	alloc_reserve_release();
}

/* What a workload sizes is no reason to take from the results; while they are written, it is. */
static void test_large_amounts_have_it_for_results_only(void **state)
{
	struct rlimit old, small;
	struct err e = {0};
	void *p;

	(void)state;
	assert_int_equal(alloc_reserve(RESULTS, &e), 0);
	assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
	small = old;
	small.rlim_cur = address_space();
	assert_int_equal(setrlimit(RLIMIT_AS, &small), 0);
	assert_null(buffer_alloc(RESULTS / 2, "a buffer", &e));
	assert_non_null(strstr(e.text, "a buffer"));
	assert_int_equal(alloc_refusal(&e), 0);
	alloc_for_results();
	p = buffer_alloc(RESULTS / 2, "a buffer", &e);
	assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
	assert_non_null(p);
	buffer_free(p, RESULTS / 2);
	alloc_reserve_release();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reserve_is_set_aside_and_given_back),
		cmocka_unit_test(test_reserve_is_refused),
		cmocka_unit_test(test_the_first_refusal_is_told),
		cmocka_unit_test(test_refusals_while_results_are_written_are_not_the_reason),
		cmocka_unit_test(test_an_end_has_the_reserve),
		cmocka_unit_test(test_what_is_left_ends_the_process),
		cmocka_unit_test(test_what_is_written_may_take_several_pieces),
		cmocka_unit_test(test_large_amounts_have_it_for_results_only),
	};

	if (getenv("STOKER_SANITIZE") && getenv("STOKER_SANITIZE")[0]) {
		left_out("memory set aside: a sanitizer takes the address space");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
