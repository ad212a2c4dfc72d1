/* Independent pieces of work on all processors: each once, several at once, and a limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "os/at_once.h"
#include "os/sysinfo.h"

#define PIECES 1000

struct seen {
	_Atomic uint32_t times[PIECES];
	_Atomic uint32_t now, most;
	bool beside;
};

static void note(void *arg, uint32_t i)
{
	struct seen *s = arg;
	uint32_t now = atomic_fetch_add(&s->now, 1) + 1, most = atomic_load(&s->most);

	while (now > most && !atomic_compare_exchange_weak(&s->most, &most, now))
		;
	atomic_fetch_add(&s->times[i], 1);
	/* the first is not done before another has begun, where there may be another */
	if (i == 0 && s->beside)
		for (int k = 0; k < 10000 && atomic_load(&s->most) < 2; k++)
			clock_sleep_until(clock_now_ns() + 1000000);
	atomic_fetch_sub(&s->now, 1);
}

static void check_each_once(uint32_t n, uint32_t most)
{
	struct seen s = {.beside = n > 1 && most != 1 && host_threads() > 1};

	at_once(n, most, note, &s);
	for (uint32_t i = 0; i < PIECES; i++)
		assert_int_equal(s.times[i], i < n);
	if (most)
		assert_true(s.most <= most);
	assert_true(s.most <= host_threads());
	if (s.beside)
		assert_true(s.most > 1);
}

static void test_each_piece_once(void **state)
{
	(void)state;
	check_each_once(0, 0);
	check_each_once(1, 0);
	check_each_once(2, 0);
	check_each_once(PIECES, 0);
	check_each_once(PIECES, 1);
	check_each_once(PIECES, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_piece_once)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
