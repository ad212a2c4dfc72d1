/* Memory of the program, which may not be there, and room that is not on its stack, which may be
 * small. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recorder/recorder.h"

/* ---- what the program points at ---- */

/* Whether the page of p can be read: the kernel looks at the eight bytes before it refuses to do
 * what no sigprocmask(2) does. Every sandbox has the call. */
static bool page_readable(uintptr_t p)
{
	return raw(SYS_rt_sigprocmask, ~0, p & ~(uintptr_t)7, 0, 8) == -EINVAL;
}

bool memory_readable(struct probe *k, const void *p, size_t n)
{
	uintptr_t at = (uintptr_t)p, page = at / RING_PAGE, last = (at + n - 1) / RING_PAGE;

	if (n == 0 || k->trusted)
		return true;
	for (; page <= last; page++) {
		if (page + 1 == k->next)
			continue;
		if (!page_readable(page == at / RING_PAGE ? at : page * RING_PAGE))
			return false;
		k->next = page + 1;
	}
	return at + n > at;
}

bool text_readable(struct probe *k, const char *s, size_t most, size_t *bytes)
{
	for (*bytes = 0; *bytes < most;) {
		size_t left = RING_PAGE - (uintptr_t)(s + *bytes) % RING_PAGE, n;

		if (!memory_readable(k, s + *bytes, 1))
			return false;
		left = left < most - *bytes ? left : most - *bytes;
		n = strnlen(s + *bytes, left);
		*bytes += n;
		if (n < left)
			return true;
	}
	return true;
}

bool text_begins(struct probe *k, const char *s, const char *with)
{
	for (; *with; s++, with++)
		if (!memory_readable(k, s, 1) || *s != *with)
			return false;
	return true;
}

/* ---- room ---- */

static __thread struct {
	char *page, *exec;
	size_t exec_bytes;
	bool busy;
} mine;

static char *map(size_t n)
{
	long p = raw(SYS_mmap, 0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return raw_failed(p) ? NULL : (char *)p;
}

/* The thread keeps its room; a signal handler that interrupts its use, and the last functions of a
 * thread, get one that they give back. */
char *scratch_take(void)
{
	if (mine.busy || thread_is_leaving())
		return map(SCRATCH);
	mine.busy = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (!mine.page)
		mine.page = map(SCRATCH);
	if (!mine.page)
		mine.busy = false;
	return mine.page;
}

void scratch_give(char *p)
{
	if (p && p != mine.page)
		raw(SYS_munmap, p, SCRATCH);
	else if (p)
		mine.busy = false;
}

char *exec_room(size_t n)
{
	if (n > mine.exec_bytes) {
		if (mine.exec)
			raw(SYS_munmap, mine.exec, mine.exec_bytes);
		n = (n * 2 + RING_PAGE) / RING_PAGE * RING_PAGE;
		mine.exec = map(n);
		mine.exec_bytes = mine.exec ? n : 0;
	}
	return mine.exec;
}

void rooms_end(void)
{
	if (mine.page)
		raw(SYS_munmap, mine.page, SCRATCH);
	if (mine.exec)
		raw(SYS_munmap, mine.exec, mine.exec_bytes);
	mine.page = mine.exec = NULL;
	mine.exec_bytes = 0;
}
