#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file_out.h"
#include "base/str.h"
#include "base/transfer.h"

/* Paths as texts. */

char *path_join(const char *dir, const char *name)
{
	size_t n = strlen(dir);

	if (name[0] == '/' || n == 0)
		return xstrdup(name);
	return xasprintf(dir[n - 1] == '/' ? "%s%s" : "%s/%s", dir, name);
}

char *path_dirname(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return xstrdup(".");
	return slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

const char *path_basename(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

char *path_absolute(const char *path)
{
	AUTO_FREE char *cwd = NULL;

	if (path[0] == '/')
		return xstrdup(path);
	cwd = getcwd(NULL, 0);
	if (!cwd && errno == ENOMEM)
		out_of_memory();
	return path_join(cwd ? cwd : ".", strncmp(path, "./", 2) == 0 ? path + 2 : path);
}

char *path_nearest(const char *path, struct stat *st)
{
	char *at = path_absolute(path);

	while (stat(at, st) < 0) {
		char *parent;

		if (strcmp(at, "/") == 0) {
			free(at);
			return NULL;
		}
		parent = path_dirname(at);
		free(at);
		at = parent;
	}
	return at;
}

char *path_of_program(struct err *e)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n > 0)
		return xstrndup(path, (size_t)n);
	err_sys(e, n < 0 ? errno : ENOENT, "cannot find the path of this program (/proc/self/exe)");
	return NULL;
}

/* ---- folders ---- */

/* Where the link at `path` leads. Heap string, or NULL with errno. */
static char *link_target(const char *path)
{
	char text[PATH_MAX];
	ssize_t n = readlink(path, text, sizeof(text) - 1);

	if (n < 0)
		return NULL;
	text[n] = '\0';
	AUTO_FREE char *dir = path_dirname(path);

	return path_join(dir, text);
}

/* A link to where nothing is yet: the folder is made there. Loops never get here, as stat(2) says
 * ELOOP of them. */
static int mkdir_behind(const char *path, struct err *e)
{
	AUTO_FREE char *target = link_target(path);

	if (!target)
		return err_sys(e, errno, "cannot create the folder '%s'", path);
	return file_mkdirs(target, e);
}

int file_mkdirs(const char *path, struct err *e)
{
	AUTO_FREE char *copy = xstrdup(path);
	char *p = copy;
	struct stat st;

	while (*p == '/')
		p++;
	for (;;) {
		char *slash = strchr(p, '/');

		if (slash)
			*slash = '\0';
		if (*copy && mkdir(copy, 0755) != 0 && errno != EEXIST) {
			int saved = errno;

			/* automounters refuse to make even what exists */
			if (!file_is_dir(copy))
				return err_sys(e, saved, "cannot create the folder '%s'", copy);
		} else if (*copy && stat(copy, &st) != 0 && errno == ENOENT) {
			int rc = mkdir_behind(copy, e);

			if (rc < 0)
				return rc;
		}
		if (!slash)
			break;
		*slash = '/';
		p = slash + 1;
	}
	if (stat(path, &st) != 0)
		return err_sys(e, errno, "cannot create the folder '%s'", path);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, -ENOTDIR, "'%s' exists and is not a folder", path);
	return 0;
}

int file_mkdir_ours(const char *path, struct err *e)
{
	struct stat st;

	if (mkdir(path, 0755) == 0)
		return 0;
	if (errno != EEXIST)
		return err_sys(e, errno, "cannot create the folder '%s'", path);
	if (lstat(path, &st) != 0)
		return err_sys(e, errno, "cannot create the folder '%s'", path);
	if (S_ISDIR(st.st_mode))
		return 0;
	return err_set(e, -ENOTDIR,
		       "cannot create the folder '%s': %s has that name; remove it or choose "
		       "another folder",
		       path, file_kind(st.st_mode));
}

int path_look(const char *path, struct err *e)
{
	struct stat st;
	int rc;

	do
		rc = stat(path, &st);
	while (rc != 0 && errno == EINTR);
	if (rc == 0)
		return S_ISDIR(st.st_mode) ? PATH_FOLDER : PATH_OTHER;
	/* who reads a link that leads to nothing is told so */
	if (errno == ENOENT && lstat(path, &st) == 0)
		return PATH_OTHER;
	if (errno == ENOENT || errno == ENOTDIR)
		return PATH_ABSENT;
	return err_sys(e, errno, "cannot look at '%s'", path);
}

bool file_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

bool file_is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Removing folders. */

#define DEPTH_MAX 64

static int remove_at(int dir, const char *name, const char *path, int depth, struct err *e);

static int remove_entries(int fd, const char *path, int depth, struct err *e)
{
	DIR *d = WITH_MEMORY(fdopendir(fd));
	struct dirent *entry;
	int rc = 0, more = 0;

	if (!d) {
		close(fd);
		return err_sys(e, errno, "cannot read the folder '%s'", path);
	}
	while (rc == 0 && (more = folder_next(d, &entry)) > 0)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			rc = remove_at(dirfd(d), entry->d_name, path, depth + 1, e);
	closedir(d);
	if (rc == 0 && more < 0)
		rc = err_sys(e, -more, "cannot read the folder '%s'", path);
	return rc;
}

/* A file system that is read-only says so also of what is not there. */
static int no_removal(int dir, const char *name, const char *path, int code, struct err *e)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
		return 0;
	return dir == AT_FDCWD ? err_sys(e, code, "cannot remove '%s'", path)
			       : err_sys(e, code, "cannot remove '%s' in '%s'", name, path);
}

static int remove_at(int dir, const char *name, const char *path, int depth, struct err *e)
{
	int fd, rc;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return no_removal(dir, name, path, errno, e);
	if (depth > DEPTH_MAX)
		return err_set(e, -ELOOP, "'%s' has more than %d levels of folders", path,
			       DEPTH_MAX);
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return dir == AT_FDCWD ? err_sys(e, errno, "cannot open the folder '%s'", path)
				       : err_sys(e, errno, "cannot open the folder '%s' in '%s'",
						 name, path);
	rc = remove_entries(fd, path, depth, e);
	if (rc == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		rc = no_removal(dir, name, path, errno, e);
	return rc;
}

int remove_tree(const char *path, struct err *e)
{
	return remove_at(AT_FDCWD, path, path, 0, e);
}

void remove_empty_folders(const char *path, const char *top)
{
	char *at = path_absolute(path);

	/* a path may end with a slash: its folder comes again */
	while (strcmp(at, "/") != 0 && (!top || strcmp(at, top) != 0) &&
	       (rmdir(at) == 0 || errno == ENOENT) && top) {
		char *parent = path_dirname(at);

		free(at);
		at = parent;
	}
	free(at);
}

#define TRIES 3
#define LEASE_WAITS 300
#define LEASE_WAIT_NS 10000000L
#define CHUNK 65536u

const char *file_kind(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "a regular file";
	case S_IFDIR:
		return "a folder";
	case S_IFIFO:
		return "a FIFO (named pipe)";
	case S_IFSOCK:
		return "a socket";
	case S_IFCHR:
		return "a character device";
	case S_IFBLK:
		return "a block device";
	case S_IFLNK:
		return "a symbolic link";
	}
	return "no regular file";
}

static int wrong_kind(const char *path, mode_t mode, struct err *e)
{
	return err_set(e, S_ISDIR(mode) ? -EISDIR : ERR_KIND,
		       "cannot read '%s': it is %s; only a regular file is read", path,
		       file_kind(mode));
}

/* A file that another program has a lease on: the kernel asks it to give that up, and a later try
 * succeeds. */
static int open_patiently(const char *path, int flags)
{
	struct timespec pause = {.tv_nsec = LEASE_WAIT_NS};
	int fd;

	for (int i = 0;; i++) {
		fd = open(path, flags);
		if (fd >= 0 || (errno != EWOULDBLOCK && errno != EINTR) || i == LEASE_WAITS)
			return fd;
		if (errno == EWOULDBLOCK)
			nanosleep(&pause, NULL);
	}
}

/* What an O_PATH descriptor stands for is opened through /proc, so that it is what was looked at.
 * Without /proc it is opened by its name, and must be the same. A descriptor, or -errno. */
static int reopen(int at, const char *path, const struct stat *looked)
{
	int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	char link[64];
	struct stat st;
	int fd;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", at);
	fd = open_patiently(link, flags);
	if (fd >= 0 || errno != ENOENT)
		return fd >= 0 ? fd : -errno;
	fd = open_patiently(path, flags);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && st.st_dev == looked->st_dev && st.st_ino == looked->st_ino)
		return fd;
	close(fd);
	return -ESTALE;
}

static int open_file(const char *path, struct stat *st, struct err *e)
{
	struct stat own;
	int at, fd;

	st = st ? st : &own;
	for (int i = 0;; i++) {
		do
			at = open(path, O_PATH | O_CLOEXEC);
		while (at < 0 && errno == EINTR);
		if (at < 0 && errno == ENOENT && lstat(path, st) == 0 && S_ISLNK(st->st_mode))
			return err_set(e, ERR_KIND,
				       "cannot read '%s': it is a symbolic link that leads to "
				       "nothing",
				       path);
		if (at < 0)
			return err_sys(e, errno, "cannot open '%s'", path);
		if (fstat(at, st) != 0)
			fd = -errno;
		else if (S_ISREG(st->st_mode))
			fd = reopen(at, path, st);
		else
			fd = wrong_kind(path, st->st_mode, e);
		close(at);
		if (fd >= 0)
			break;
		if (fd == ERR_KIND || fd == -EISDIR)
			return fd;
		/* replaced meanwhile */
		if (fd != -ESTALE || i == TRIES)
			return err_sys(e, -fd, "cannot open '%s'", path);
	}
	/* opening does not wait, but reading may, for a file that is fetched from an archive; one
	 * without a size may be the kernel's, which waits for what never comes */
	if (st->st_size > 0)
		fcntl(fd, F_SETFL, 0);
	named_output_read(st);
	return fd;
}

static bool names_descriptor(const char *path)
{
	return strcmp(path, "/dev/stdin") == 0 || str_starts(path, "/dev/fd/") ||
	       str_starts(path, "/proc/self/fd/");
}

/* A pipe that was given to this process, or -1. */
static int given_pipe(const char *path, struct stat *st)
{
	struct stat own;
	int fd = names_descriptor(path) ? place_named_descriptor(path) : -1;

	st = st ? st : &own;
	if (fd < 0 || fstat(fd, st) != 0 || !S_ISFIFO(st->st_mode))
		return -1;
	return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

int file_open(const char *path, struct stat *st, struct err *e)
{
	int fd = given_pipe(path, st);

	return fd >= 0 ? fd : open_file(path, st, e);
}

static int too_large(const char *path, size_t max_bytes, struct err *e)
{
	return err_set(e, -EFBIG, "'%s' is larger than the %zu bytes allowed here", path,
		       max_bytes);
}

int file_read_open(int fd, const char *path, size_t max_bytes, struct buf *out, struct err *e)
{
	size_t had = out->len, total = 0, part = CHUNK;
	struct stat st;
	int rc = 0;

	/* a sparse file of terabytes is refused before its first byte */
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		if ((uint64_t)st.st_size > max_bytes)
			return too_large(path, max_bytes, e);
		if (st.st_size > 0)
			part = (size_t)st.st_size + 1;
	}
	for (;;) {
		ssize_t n;

		/* whoever goes on without a file that cannot be read would give another answer */
		if (!buf_room(out, part))
			out_of_memory_for("%zu bytes for '%s' were refused", part, path);
		n = read_fully(fd, out->data + out->len, part);
		if (n < 0) {
			rc = err_sys(e, (int)-n, "cannot read '%s'", path);
			break;
		}
		out->len += (size_t)n;
		out->data[out->len] = '\0';
		total += (size_t)n;
		if (total > max_bytes) {
			rc = too_large(path, max_bytes, e);
			break;
		}
		if ((size_t)n < part)
			break;
	}
	if (rc < 0) {
		out->len = had;
		if (out->data)
			out->data[had] = '\0';
	}
	return rc;
}

int file_read(const char *path, size_t max_bytes, struct buf *out, struct err *e)
{
	int fd = file_open(path, NULL, e), rc;

	if (fd < 0)
		return fd;
	rc = file_read_open(fd, path, max_bytes, out, e);
	close(fd);
	return rc;
}

int file_there(const char *path, struct err *e)
{
	struct stat st;

	if (lstat(path, &st) == 0)
		return 1;
	return errno == ENOENT || errno == ENOTDIR ? 0
						   : err_sys(e, errno, "cannot look at '%s'", path);
}

void file_allow_more(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}
