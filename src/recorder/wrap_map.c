/* Files that are mapped: the kernel reads them when they are touched, which nothing here sees. What
 * is in memory of a mapping when it is made and when it ends is all that can be told. */
#include "recorder/wrap.h"

#include <stdarg.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAPS 1024
#define WINDOW ((uint64_t)8 << 20) /* of one mincore(2) */
#define WINDOWS_MAX 64             /* of larger mappings so many are looked at, evenly spread */

static struct {
	uint64_t at, bytes; /* at 0: free */
} maps[MAPS];
static size_t maps_high;

#define PAGE_LEAST 4096 /* of the processors that the recorder knows */

static uint64_t page_bytes(void)
{
	static uint64_t known;
	uint64_t n = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (UNLIKELY(n == 0)) {
		n = getauxval(AT_PAGESZ);
		n = n < PAGE_LEAST ? PAGE_LEAST : n;
		__atomic_store_n(&known, n, __ATOMIC_RELAXED);
	}
	return n;
}

static int64_t in_memory(uint64_t at, uint64_t bytes)
{
	unsigned char *page = (unsigned char *)scratch_take();
	const uint64_t each = page_bytes();
	uint64_t windows = (bytes + WINDOW - 1) / WINDOW, step = 1, seen = 0, there = 0;
	bool failed = !page;

	if (windows > WINDOWS_MAX)
		step = (windows + WINDOWS_MAX - 1) / WINDOWS_MAX;
	for (uint64_t w = 0; w < windows && !failed; w += step) {
		uint64_t from = at + w * WINDOW, n = bytes - w * WINDOW;

		n = n < WINDOW ? n : WINDOW;
		failed = raw(SYS_mincore, from, n, page) < 0;
		for (uint64_t i = 0; !failed && i < (n + each - 1) / each; i++)
			there += page[i] & 1;
		seen += n;
	}
	scratch_give((char *)page);
	if (failed)
		return -1;
	return seen ? (int64_t)((double)(there * each) * ((double)bytes / (double)seen)) : 0;
}

static void remember(uint64_t at, uint64_t bytes)
{
	for (size_t i = 0; i < MAPS; i++) {
		uint64_t none = 0;

		if (!__atomic_compare_exchange_n(&maps[i].at, &none, at, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		maps[i].bytes = bytes;
		if (i >= __atomic_load_n(&maps_high, __ATOMIC_RELAXED))
			__atomic_store_n(&maps_high, i + 1, __ATOMIC_RELAXED);
		return;
	}
}

static bool forget(uint64_t at, uint64_t *bytes)
{
	size_t n = __atomic_load_n(&maps_high, __ATOMIC_RELAXED);

	for (size_t i = 0; i < n; i++) {
		uint64_t is = at;

		*bytes = maps[i].bytes;
		if (__atomic_load_n(&maps[i].at, __ATOMIC_RELAXED) == at &&
		    __atomic_compare_exchange_n(&maps[i].at, &is, 0, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return true;
	}
	return false;
}

static void mapped(int fd, int64_t begin, long result, uint64_t bytes, int prot, int flags,
		   int64_t at)
{
	uint64_t w = fd_word(fd);
	int64_t there = -1;

	if (FD_KIND(w) == RING_EXCLUDED || !w) {
		note_excluded(0, 0);
		return;
	}
	if (result > 0 && FD_KIND(w) == RING_REGULAR) {
		there = in_memory((uint64_t)result, bytes);
		remember((uint64_t)result, bytes);
	}
	note(RING_MAP, begin, FD_SERIAL(w), N(result), bytes, at, N(prot), N(flags), there);
}

#define MMAP(name, off)                                                                            \
	WRAP void *name(void *want, size_t n, int prot, int flags, int fd, off at)                 \
	{                                                                                          \
		REAL(void *, name, void *, size_t, int, int, int, off);                            \
		if (fd < 0 || flags & MAP_ANONYMOUS)                                               \
			return real(want, n, prot, flags, fd, at);                                 \
		WRAP_BODY(void *, real(want, n, prot, flags, fd, at), ,                            \
			  mapped(fd, begin, r == MAP_FAILED ? -errno : (long)r, n, prot, flags,    \
				 at));                                                             \
	}
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)

WRAP int munmap(void *at, size_t n)
{
	REAL(int, munmap, void *, size_t);
	uint64_t bytes;

	if (__atomic_load_n(&maps_high, __ATOMIC_RELAXED) > 0 && recording() &&
	    forget((uint64_t)(uintptr_t)at, &bytes))
		note(RING_UNMAP, now_ns(), N(at), bytes, in_memory((uint64_t)(uintptr_t)at, bytes));
	return real(at, n);
}

WRAP void *mremap(void *old, size_t n, size_t to, int flags, ...)
{
	REAL(void *, mremap, void *, size_t, size_t, int, ...);
	uint64_t bytes;
	va_list ap;
	void *want, *p;

	va_start(ap, flags);
	want = va_arg(ap, void *);
	va_end(ap);
	p = real(old, n, to, flags, want);
	if (p != MAP_FAILED && __atomic_load_n(&maps_high, __ATOMIC_RELAXED) > 0 && recording() &&
	    forget((uint64_t)(uintptr_t)old, &bytes))
		remember((uint64_t)(uintptr_t)p, to);
	return p;
}

#define MADVISE(name)                                                                              \
	WRAP int name(void *at, size_t n, int advice)                                              \
	{                                                                                          \
		REAL(int, name, void *, size_t, int);                                              \
		if (__atomic_load_n(&maps_high, __ATOMIC_RELAXED) == 0)                            \
			return real(at, n, advice);                                                \
		WRAP_BODY(int, real(at, n, advice), ,                                              \
			  note(RING_MADVISE, begin, N(at), N(n), N(advice)));                      \
	}
MADVISE(madvise)
MADVISE(posix_madvise)

void maps_end(void)
{
	size_t n = __atomic_load_n(&maps_high, __ATOMIC_RELAXED);

	for (size_t i = 0; i < n; i++) {
		uint64_t at = __atomic_load_n(&maps[i].at, __ATOMIC_RELAXED), bytes;

		if (at && forget(at, &bytes))
			note(RING_UNMAP, now_ns(), N(at), bytes, in_memory(at, bytes));
	}
}
