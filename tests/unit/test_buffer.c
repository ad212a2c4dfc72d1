/* buffer_alloc: every page is there before the buffer is used, whatever the system offers for it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"

#define PAGES 64

/* A system that gives memory without its pages, and one that does not know how to ask for them. */
void *__real_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset);
int __real_madvise(void *p, size_t n, int advice);
int __wrap_madvise(void *p, size_t n, int advice);
static int refusal, advised;

void *__wrap_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
	return __real_mmap(at, n, protection, flags & ~MAP_POPULATE, fd, offset);
}

int __wrap_madvise(void *p, size_t n, int advice)
{
	advised++;
	if (refusal == 0)
		return __real_madvise(p, n, advice);
	errno = refusal;
	return -1;
}

static unsigned resident(void *p, size_t page)
{
	unsigned char in[PAGES];
	unsigned n = 0;

	assert_int_equal(mincore(p, PAGES * page, in), 0);
	for (int i = 0; i < PAGES; i++)
		n += in[i] & 1;
	return n;
}

static void check_touched(int why)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = PAGES * page - 1;
	unsigned char *p;

	refusal = why;
	p = buffer_alloc(bytes, "a buffer", NULL);
	refusal = 0;
	assert_non_null(p);
	assert_int_equal((uintptr_t)p % 4096, 0);
	assert_int_equal(resident(p, page), PAGES);
	assert_true(bytes_are_zero(p, bytes));
	buffer_free(p, bytes);
}

static void test_every_page_is_touched(void **state)
{
	(void)state;
	check_touched(0);
	/* an older system, and an interrupted one */
	check_touched(EINVAL);
	check_touched(EINTR);
	assert_true(advised >= 3);
}

static void test_no_pages_is_a_refusal(void **state)
{
	struct err e = {0};

	(void)state;
	refusal = ENOMEM;
	assert_null(buffer_alloc(100000, "buffers of a test", &e));
	refusal = 0;
	assert_int_equal(e.code, -ENOMEM);
	assert_string_equal(e.text, "buffers of a test: the system refused 100000 bytes of memory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_page_is_touched),
		cmocka_unit_test(test_no_pages_is_a_refusal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
