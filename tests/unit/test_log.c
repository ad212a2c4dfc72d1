/* The log file: what it cannot take is reported when it is closed, and nothing else is. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/log.h"

static char folder[] = "/tmp/stoker-log-XXXXXX", path[64];

static int enter(void **state)
{
	(void)state;
	log_set_console(LOG_CONSOLE_ERRORS);
	signal(SIGXFSZ, SIG_IGN);
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/dlio.log", folder);
	return 0;
}

static int leave(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static struct err untouched(void)
{
	struct err e;

	memset(&e, 0x5a, sizeof(e));
	return e;
}

static void whole(void **state)
{
	struct err e = untouched(), before = e;
	struct buf b = {0};

	(void)state;
	assert_int_equal(log_open(path, &e), 0);
	log_warning("one line");
	assert_int_equal(log_close(&e), 0);
	assert_int_equal(log_close(&e), 0);
	assert_memory_equal(&e, &before, sizeof(e));
	assert_int_equal(file_read(path, 100, &b, &e), 0);
	assert_string_equal(b.data, "[WARNING] one line\n");
	buf_release(&b);
}

static void no_space(void **state)
{
	struct err e = untouched(), before = e;
	struct rlimit all, none;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = all.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_int_equal(log_open(path, &e), 0);
	log_warning("one line");
	log_warning("and another");
	assert_memory_equal(&e, &before, sizeof(e));
	assert_int_equal(log_close(&e), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
	assert_non_null(strstr(e.text, path));
	assert_non_null(strstr(e.text, "incomplete: File too large"));
	/* of that file alone */
	e = before;
	assert_int_equal(log_open(path, &e), 0);
	log_warning("one line");
	assert_int_equal(log_close(&e), 0);
	assert_memory_equal(&e, &before, sizeof(e));
}

/* The beginning of a line is written, and nothing after it until there is room again. */
static void cut(void **state)
{
	struct rlimit all, small;
	struct err e = untouched();
	struct buf b = {0};

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
	small = (struct rlimit){.rlim_cur = 14, .rlim_max = all.rlim_max};
	assert_int_equal(log_open(path, &e), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	log_warning("one line");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
	log_warning("later");
	assert_int_equal(log_close(&e), -EFBIG);
	assert_non_null(strstr(e.text, path));
	assert_int_equal(file_read(path, 100, &b, &e), 0);
	assert_string_equal(b.data, "[WARNING] one [WARNING] later\n");
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole),
		cmocka_unit_test(no_space),
		cmocka_unit_test(cut),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
