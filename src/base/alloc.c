#include "base/alloc.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/abi.h"

/* ---- what is set aside ---- */

/* Small pieces for the time until the run has stopped: one for each thread that is refused
 * meanwhile. The last is for its results. */
enum { PIECES = 9, RESULTS = PIECES - 1 };
#define FOR_THE_STOP ((size_t)256 << 10)
#define OF_A_LIBRARY SIZE_MAX /* how much it was is not known */

static _Atomic(void *) reserve[PIECES];
static size_t results_bytes; /* 0: nothing was set aside */
static atomic_bool for_results;
static _Atomic size_t refused; /* bytes of the first refusal before results are written */

static void *map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static bool spend_piece(int i)
{
	void *p = atomic_exchange_explicit(&reserve[i], NULL, memory_order_relaxed);

	if (p)
		munmap(p, i == RESULTS ? results_bytes : FOR_THE_STOP);
	return p != NULL;
}

int alloc_reserve(size_t bytes, struct err *e)
{
	assert(!results_bytes && bytes > 0);
	results_bytes = bytes;
	for (int i = 0; i < PIECES; i++) {
		void *p = map(i == RESULTS ? bytes : FOR_THE_STOP);

		if (!p) {
			alloc_reserve_release();
			return err_set(e, -ENOMEM,
				       "memory to write results: the system refused %zu bytes",
				       bytes);
		}
		atomic_store_explicit(&reserve[i], p, memory_order_relaxed);
	}
	return 0;
}

void alloc_reserve_release(void)
{
	for (int i = 0; i < PIECES; i++)
		spend_piece(i);
	results_bytes = 0;
	atomic_store_explicit(&for_results, false, memory_order_relaxed);
	atomic_store_explicit(&refused, 0, memory_order_relaxed);
}

void alloc_for_results(void)
{
	atomic_store_explicit(&for_results, true, memory_order_relaxed);
}

static bool spend(size_t bytes)
{
	bool last = atomic_load_explicit(&for_results, memory_order_relaxed);
	size_t none = 0;

	if (!results_bytes)
		return false;
	if (!last)
		atomic_compare_exchange_strong_explicit(&refused, &none, bytes,
							memory_order_relaxed, memory_order_relaxed);
	for (int i = 0; i < (last ? PIECES : RESULTS); i++)
		if (spend_piece(i))
			return true;
	return false;
}

bool alloc_spend(void)
{
	return spend(OF_A_LIBRARY);
}

int alloc_refusal(struct err *e)
{
	size_t bytes = atomic_load_explicit(&refused, memory_order_relaxed);

	if (!bytes)
		return 0;
	if (bytes == OF_A_LIBRARY)
		return err_set(e, -ENOMEM, "out of memory");
	return err_set(e, -ENOMEM, "out of memory: the system refused %zu bytes", bytes);
}

/* ---- small amounts ---- */

static _Noreturn void end_without(size_t size)
{
	fprintf(stderr, "stoker: out of memory: the system refused %zu bytes\n", size);
	err_leave_code(-ENOMEM);
	_exit(1);
}

void out_of_memory(void)
{
	fputs("stoker: out of memory\n", stderr);
	err_leave_code(-ENOMEM);
	_exit(1);
}

void out_of_memory_for(const char *fmt, ...)
{
	va_list ap;

	fputs("stoker: out of memory: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	err_leave_code(-ENOMEM);
	_exit(1);
}

void *xmalloc(size_t size)
{
	void *p = malloc(size);

	while (!p && size && spend(size))
		p = malloc(size);
	if (!p && size)
		end_without(size);
	return p;
}

void *xcalloc(size_t count, size_t size)
{
	size_t bytes;
	void *p = calloc(count, size);

	if (p)
		return p;
	if (__builtin_mul_overflow(count, size, &bytes))
		end_without(SIZE_MAX);
	while (!p && bytes && spend(bytes))
		p = calloc(count, size);
	if (!p && bytes)
		end_without(bytes);
	return p;
}

void *xrealloc(void *old, size_t size)
{
	for (;;) {
		void *p = realloc(old, size);

		if (p || !size)
			return p;
		if (!spend(size))
			end_without(size);
	}
}

char *xstrndup(const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *p = xmalloc(len + 1);

	memcpy(p, s, len);
	p[len] = '\0';
	return p;
}

char *xstrdup(const char *s)
{
	return xstrndup(s, strlen(s));
}

char *xvasprintf(const char *fmt, va_list ap)
{
	char *s = NULL;
	int n;

	do {
		va_list copy;

		va_copy(copy, ap);
		n = vasprintf(&s, fmt, copy);
		va_end(copy);
	} while (n < 0 && alloc_spend());
	if (n < 0)
		out_of_memory();
	return s;
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = xvasprintf(fmt, ap);
	va_end(ap);
	return s;
}

ssize_t xgetline(char **line, size_t *cap, FILE *f)
{
	ssize_t n;

	do {
		errno = 0;
		n = getline(line, cap, f);
	} while (n < 0 && errno == ENOMEM && alloc_spend());
	if (n < 0 && errno == ENOMEM)
		out_of_memory();
	return n;
}

static _Atomic uint64_t refusals;

uint64_t alloc_refusals(void)
{
	return atomic_load_explicit(&refusals, memory_order_relaxed);
}

void *try_calloc(size_t count, size_t size, const char *what, struct err *e)
{
	size_t total;
	void *p;

	if (__builtin_mul_overflow(count, size, &total)) {
		err_set(e, -ENOMEM, "%s: %zu elements of %zu bytes do not fit in memory", what,
			count, size);
		return NULL;
	}
	p = calloc(count ? count : 1, size ? size : 1);
	while (!p && atomic_load_explicit(&for_results, memory_order_relaxed) && spend(total))
		p = calloc(count ? count : 1, size ? size : 1);
	if (!p) {
		atomic_fetch_add_explicit(&refusals, 1, memory_order_relaxed);
		err_set(e, -ENOMEM, "%s: the system refused %zu bytes of memory", what, total);
	}
	return p;
}

/* From here on NumPy asks for large pages as well. */
#define LARGE_PAGES_FROM ((size_t)4 << 20)

/* Touches every page. MAP_POPULATE would do it as well, but does not tell when it could not. */
static int populate(unsigned char *p, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (madvise(p, size, MADV_POPULATE_WRITE) == 0)
		return 0;
	if (errno == ENOMEM || errno == EHWPOISON)
		return -ENOMEM;
	/* Linux before 5.14, or interrupted: if there is no memory for a page, the process ends
	 * here, not while time is measured */
	for (size_t at = 0; at < size; at += page)
		((volatile unsigned char *)p)[at] = 0;
	return 0;
}

void *buffer_alloc(size_t size, const char *what, struct err *e)
{
	size_t bytes = size ? size : 1;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	/* what a system call copies into large pages costs less; where there are none, nothing */
	if (p != MAP_FAILED && bytes >= LARGE_PAGES_FROM)
		(void)madvise(p, bytes, MADV_HUGEPAGE);
	if (p != MAP_FAILED && populate(p, bytes) < 0) {
		munmap(p, bytes);
		p = MAP_FAILED;
	}
	if (p == MAP_FAILED && atomic_load_explicit(&for_results, memory_order_relaxed) &&
	    spend(bytes))
		return buffer_alloc(size, what, e);
	if (p == MAP_FAILED) {
		err_set(e, -ENOMEM, "%s: the system refused %zu bytes of memory", what, size);
		return NULL;
	}
	return p;
}

void buffer_free(void *p, size_t size)
{
	if (p)
		munmap(p, size ? size : 1);
}

void auto_free(void *pp)
{
	free(*(void **)pp);
}

bool bytes_are_zero(const void *p, size_t n)
{
	const unsigned char *b = p;

	return n == 0 || (b[0] == 0 && memcmp(b, b + 1, n - 1) == 0);
}
