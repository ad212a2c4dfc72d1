/* Loaded before the C library (LD_PRELOAD): the disk is full at one point of one file.
 *
 * FULL_DISK=CALL:BYTES:NAME lets a call that the file of that name needs fail with ENOSPC, then and
 * ever after: `open` (its creation), `mkdir`, `write` (beyond that many bytes; a write that crosses
 * them is short), `sync`, `close`, `rename` (to that name). NAME is what the path ends in, without
 * the suffix of a temporary file. FULL_DISK=none lets all succeed. The file FULL_DISK_TOLD gets a
 * line for each call, `CALL BYTES PATH`, or `failed CALL BYTES PATH`. Files without a name
 * (O_TMPFILE) are not supported.
 *
 * Programs that this one starts are not touched: LD_PRELOAD leaves the environment. */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int told = -1;
static char want_call[16], want_name[PATH_MAX];
static long long limit = -1, written;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The path without what a name has until the file is whole: NAME.tmp, .NAME.0123456789abcdef.tmp */
static void final_name(char *path)
{
	char *base = strrchr(path, '/'), *tmp, *digits;

	base = base ? base + 1 : path;
	tmp = strstr(base, ".tmp");
	if (!tmp || tmp[4])
		return;
	*tmp = '\0';
	digits = strrchr(base, '.');
	if (base[0] == '.' && digits > base && strlen(digits) == 17) {
		*digits = '\0';
		memmove(base, base + 1, strlen(base));
	}
}

static bool matches(const char *path)
{
	size_t n = strlen(path), m = strlen(want_name);

	return m > 0 && n >= m && strcmp(path + n - m, want_name) == 0;
}

static void tell(const char *what, const char *call, long long bytes, const char *path)
{
	char line[PATH_MAX + 64];
	int n = snprintf(line, sizeof(line), "%s%s %lld %s\n", what, call, bytes, path);

	if (n < 0 || syscall(SYS_write, told, line, (size_t)n) != n)
		_exit(99);
}

/* Whether a call that needs no bytes fails. */
static bool fails(const char *call, const char *path_now)
{
	char path[PATH_MAX];
	bool yes;

	if (told < 0 || !path_now)
		return false;
	snprintf(path, sizeof(path), "%s", path_now);
	final_name(path);
	yes = strcmp(call, want_call) == 0 && matches(path);
	tell(yes ? "failed " : "", call, 0, path);
	if (yes)
		errno = ENOSPC;
	return yes;
}

static const char *name_of(int fd, char path[PATH_MAX])
{
	char link[64];
	struct stat st;
	ssize_t n;

	if (told < 0 || fd == told || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return NULL;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, PATH_MAX - 1);
	if (n <= 0 || strncmp(path, "/memfd:", 7) == 0)
		return NULL;
	path[n] = '\0';
	return path;
}

/* How many of `n` bytes may be written; 0: none, and errno is set. */
static size_t allowed(int fd, size_t n)
{
	char path[PATH_MAX];
	size_t ok = n;

	if (n == 0 || !name_of(fd, path))
		return n;
	final_name(path);
	pthread_mutex_lock(&lock);
	if (strcmp(want_call, "write") == 0 && matches(path)) {
		if (written + (long long)n > limit)
			ok = limit > written ? (size_t)(limit - written) : 0;
		written += (long long)ok;
	}
	tell(ok ? "" : "failed ", "write", (long long)ok, path);
	pthread_mutex_unlock(&lock);
	if (!ok)
		errno = ENOSPC;
	return ok;
}

ssize_t write(int fd, const void *p, size_t n)
{
	size_t ok = allowed(fd, n);

	return n && !ok ? -1 : syscall(SYS_write, fd, p, ok);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
	size_t ok = allowed(fd, n);

	return n && !ok ? -1 : syscall(SYS_pwrite64, fd, p, ok, at);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
	return pwrite(fd, p, n, at);
}

ssize_t pwritev(int fd, const struct iovec *v, int n, off_t at)
{
	size_t total = 0, ok;

	for (int i = 0; i < n; i++)
		total += v[i].iov_len;
	ok = allowed(fd, total);
	if (ok == total)
		return syscall(SYS_pwritev, fd, v, (long)n, (long)at, 0L);
	if (!ok)
		return -1;
	/* short: the first piece is enough */
	return syscall(SYS_pwrite64, fd, v[0].iov_base, ok < v[0].iov_len ? ok : v[0].iov_len, at);
}

ssize_t pwritev64(int fd, const struct iovec *v, int n, off64_t at)
{
	return pwritev(fd, v, n, at);
}

#define SYNC(name, number)                                                                         \
	int name(int fd)                                                                           \
	{                                                                                          \
		char path[PATH_MAX];                                                               \
                                                                                                   \
		return fails("sync", name_of(fd, path)) ? -1 : (int)syscall(number, fd);           \
	}

SYNC(fsync, SYS_fsync)
SYNC(fdatasync, SYS_fdatasync)

int close(int fd)
{
	char path[PATH_MAX];
	int flags = fcntl(fd, F_GETFL);
	bool failed =
		flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && fails("close", name_of(fd, path));
	int rc = (int)syscall(SYS_close, fd);

	if (failed) {
		errno = ENOSPC;
		return -1;
	}
	return rc;
}

int rename(const char *from, const char *to)
{
	return fails("rename", to) ? -1 : (int)syscall(SYS_rename, from, to);
}

/* The path of a name in an open folder. */
static const char *path_at(int folder, const char *name, char path[PATH_MAX])
{
	char link[64];
	ssize_t n;

	if (folder == AT_FDCWD || name[0] == '/')
		return name;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", folder);
	n = readlink(link, path, PATH_MAX - 1);
	if (n <= 0)
		return name;
	snprintf(path + n, (size_t)(PATH_MAX - n), "/%s", name);
	return path;
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
	char path[PATH_MAX];

	return fails("rename", path_at(to_folder, to, path))
		       ? -1
		       : (int)syscall(SYS_renameat, from_folder, from, to_folder, to);
}

int mkdir(const char *path, mode_t mode)
{
	return fails("mkdir", path) ? -1 : (int)syscall(SYS_mkdir, path, mode);
}

static int open_at(int folder, const char *path, int flags, mode_t mode)
{
	char whole[PATH_MAX];

	/* files without a name could not be told apart */
	if ((flags & __O_TMPFILE) == __O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	if (flags & O_CREAT && faccessat(folder, path, F_OK, 0) != 0 &&
	    fails("open", path_at(folder, path, whole)))
		return -1;
	return (int)syscall(SYS_openat, folder, path, flags, mode);
}

#define OPEN(name, folder, ...)                                                                    \
	int name(__VA_ARGS__, int flags, ...)                                                      \
	{                                                                                          \
		va_list ap;                                                                        \
		mode_t mode;                                                                       \
                                                                                                   \
		va_start(ap, flags);                                                               \
		mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(ap, mode_t) : 0;                   \
		va_end(ap);                                                                        \
		return open_at(folder, path, flags, mode);                                         \
	}

OPEN(open, AT_FDCWD, const char *path)
OPEN(open64, AT_FDCWD, const char *path)
OPEN(openat, folder, int folder, const char *path)
OPEN(openat64, folder, int folder, const char *path)

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("FULL_DISK_TOLD"), *which = getenv("FULL_DISK");

	unsetenv("LD_PRELOAD");
	if (!path || !which)
		return;
	if (strcmp(which, "none") != 0 &&
	    sscanf(which, "%15[a-z]:%lld:%4095[^\n]", want_call, &limit, want_name) != 3)
		_exit(98);
	told = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
			    0600);
}
