#include "base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/abi.h"
#include "base/transfer.h"

#define FOLDER (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define AGAIN_MAX 16 /* others rename folders at the same time */

/* One step down from `at`, which is closed. */
static int step(int at, const char *part, bool make)
{
	int fd = -1, code;

	if (strcmp(part, "..") == 0)
		errno = EXDEV;
	else if (!make || mkdirat(at, part, 0777) == 0 || errno == EEXIST)
		fd = open_fully(at, part, FOLDER, 0);
	code = errno;
	close(at);
	errno = code;
	return fd;
}

/* From part to part, for kernels before 5.6, sandboxes without openat2(2), and to make folders. */
static int walk(int folder, const char *path, size_t n, bool make)
{
	int at = open_fully(folder, ".", FOLDER, 0);

	for (size_t i = 0; at >= 0 && i < n;) {
		size_t length = strcspn(path + i, "/");
		char part[NAME_MAX + 1];

		if (length > n - i)
			length = n - i;
		if (length > NAME_MAX) {
			close(at);
			errno = ENAMETOOLONG;
			return -1;
		}
		if (length > 0) {
			snprintf(part, sizeof(part), "%.*s", (int)length, path + i);
			at = step(at, part, make);
		}
		i += length + 1;
	}
	return at;
}

static int resolve(int folder, const char *path, int flags, mode_t mode)
{
	struct open_how how = {.flags = (unsigned)flags,
			       .mode = flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)) ? mode : 0,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
	long fd = -1;

	for (int i = 0; i < AGAIN_MAX; i++) {
		fd = syscall(SYS_openat2, folder, path, &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return (int)fd;
}

static size_t parent_length(const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');

	*name = slash ? slash + 1 : path[0] ? path : ".";
	return slash ? (size_t)(slash - path) : 0;
}

int beneath_parent(int folder, const char *path, bool make, const char **name)
{
	size_t n = parent_length(path, name);
	char parent[PATH_MAX];
	int fd;

	if (make || n == 0 || n >= sizeof(parent))
		return walk(folder, path, n, make);
	memcpy(parent, path, n);
	parent[n] = '\0';
	fd = resolve(folder, parent, FOLDER, 0);
	return fd < 0 && (errno == ENOSYS || errno == EPERM) ? walk(folder, path, n, false) : fd;
}

int beneath_open(int folder, const char *path, int flags, mode_t mode)
{
	int fd, at, code;
	const char *name;

	flags |= O_NOFOLLOW | O_CLOEXEC;
	if (!(flags & O_PATH))
		flags |= O_NONBLOCK | O_NOCTTY;
	fd = resolve(folder, path[0] ? path : ".", flags, mode);
	if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
		return fd;
	at = beneath_parent(folder, path, false, &name);
	if (at < 0)
		return -1;
	fd = open_fully(at, name, flags, mode);
	code = errno;
	close(at);
	errno = code;
	return fd;
}

bool beneath_is_plain(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_nlink <= 1;
}
