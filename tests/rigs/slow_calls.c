/* A store of known speed for any dynamically linked program, by LD_PRELOAD: calls that open or read
 * regular files of one file system take a set time more. Unlike a file system in user space it uses
 * no processor.
 *
 *   SLOW_DEVICE   st_dev of the file system (a number)
 *   SLOW_OPEN_US  added to each open
 *   SLOW_READ_US  added to each read
 *   SLOW_BYTES_S  bytes each second, shared by all programs
 *   SLOW_DROP     1: a file leaves the page cache when it is closed
 *   SLOW_SHARED   a file of 8 bytes or more in memory that holds when the store is free again
 *
 * Reads of mapped files are not seen, nor requests of io_uring. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static dev_t device;
static int64_t open_ns, read_ns;
static double byte_ns;
static int drop;
static _Atomic int64_t own, *free_at = &own;

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static double number(const char *name)
{
	const char *s = getenv(name);

	return s ? atof(s) : 0;
}

__attribute__((constructor)) static void settle(void)
{
	const char *shared = getenv("SLOW_SHARED");
	double rate = number("SLOW_BYTES_S");
	int fd = shared ? open(shared, O_RDWR | O_CLOEXEC) : -1;

	if (fd >= 0) {
		void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		if (at != MAP_FAILED)
			free_at = at;
		close(fd);
	}
	device = (dev_t)number("SLOW_DEVICE");
	open_ns = (int64_t)(number("SLOW_OPEN_US") * 1e3);
	read_ns = (int64_t)(number("SLOW_READ_US") * 1e3);
	drop = number("SLOW_DROP") != 0;
	byte_ns = rate > 0 ? 1e9 / rate : 0;
}

static int is_slow(int fd)
{
	int keep = errno, slow;
	struct stat s;

	slow = device && fd >= 0 && fstat(fd, &s) == 0 && s.st_dev == device && S_ISREG(s.st_mode);
	errno = keep;
	return slow;
}

/* Returns when the store, which serves one request after another, would have. */
static void serve(int64_t begin, int64_t latency, int64_t bytes)
{
	int64_t takes = (int64_t)((double)bytes * byte_ns), end = begin + takes;
	int keep = errno;

	if (takes > 0) {
		int64_t busy = atomic_load(free_at);

		do
			end = (busy > begin ? busy : begin) + takes;
		while (!atomic_compare_exchange_weak(free_at, &busy, end));
	}
	end += latency;
	if (end > now_ns()) {
		struct timespec t = {end / 1000000000, end % 1000000000};

		prctl(PR_SET_TIMERSLACK, 1000);
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
			;
	}
	errno = keep;
}

#define REAL(name)                                                                                 \
	static typeof(name) *real;                                                                 \
	if (!real)                                                                                 \
	real = (typeof(name) *)dlsym(RTLD_NEXT, #name)

static int opened(int fd, int64_t begin)
{
	if (open_ns && is_slow(fd))
		serve(begin, open_ns, 0);
	return fd;
}

#define OPENS(name, before, ...)                                                                   \
	int name before                                                                            \
	{                                                                                          \
		int64_t begin = now_ns();                                                          \
		mode_t mode = 0;                                                                   \
		va_list list;                                                                      \
                                                                                                   \
		REAL(name);                                                                        \
		if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {                         \
			va_start(list, flags);                                                     \
			mode = va_arg(list, mode_t);                                               \
			va_end(list);                                                              \
		}                                                                                  \
		return opened(real(__VA_ARGS__, flags, mode), begin);                              \
	}

OPENS(open, (const char *path, int flags, ...), path)
OPENS(open64, (const char *path, int flags, ...), path)
OPENS(openat, (int at, const char *path, int flags, ...), at, path)
OPENS(openat64, (int at, const char *path, int flags, ...), at, path)

FILE *fopen(const char *path, const char *mode)
{
	int64_t begin = now_ns();
	FILE *f;

	REAL(fopen);
	f = real(path, mode);
	if (f)
		opened(fileno(f), begin);
	return f;
}

int close(int fd)
{
	REAL(close);
	if (drop && is_slow(fd))
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	return real(fd);
}

#define READS(kind, name, before, fd, ...)                                                         \
	kind name before                                                                           \
	{                                                                                          \
		int slow = is_slow(fd);                                                            \
		int64_t begin = slow ? now_ns() : 0;                                               \
		kind got;                                                                          \
                                                                                                   \
		REAL(name);                                                                        \
		got = real(__VA_ARGS__);                                                           \
		if (slow)                                                                          \
			serve(begin, read_ns, got > 0 ? (int64_t)got : 0);                         \
		return got;                                                                        \
	}

READS(ssize_t, read, (int fd, void *to, size_t n), fd, fd, to, n)
READS(ssize_t, pread, (int fd, void *to, size_t n, off_t at), fd, fd, to, n, at)
READS(ssize_t, pread64, (int fd, void *to, size_t n, off64_t at), fd, fd, to, n, at)
READS(ssize_t, readv, (int fd, const struct iovec *v, int n), fd, fd, v, n)
READS(ssize_t, preadv, (int fd, const struct iovec *v, int n, off_t at), fd, fd, v, n, at)
READS(ssize_t, preadv64, (int fd, const struct iovec *v, int n, off64_t at), fd, fd, v, n, at)

/* What a C library reads for a stream is counted as the program asked for it. */
size_t fread(void *to, size_t size, size_t n, FILE *f)
{
	int slow = is_slow(fileno(f));
	int64_t begin = slow ? now_ns() : 0;
	size_t got;

	REAL(fread);
	got = real(to, size, n, f);
	if (slow)
		serve(begin, read_ns, (int64_t)(got * size));
	return got;
}
