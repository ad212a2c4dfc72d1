#include "base/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/transfer.h"

/* ---- outputs that somebody names ---- */

#define LINKS_MAX 40 /* as the kernel */

/* What follows the links of a path's last component, and so does not stop at one that leads
 * nowhere, which open(2) with O_CREAT would, nor at an open file behind /proc. */
struct place {
	char *path;
	struct stat st;
	bool exists;
	bool magic; /* a link of /proc to an open file: its text is no path to go by */
};

static bool in_proc(const char *path)
{
	AUTO_FREE char *dir = path_dirname(path);
	struct statfs fs;

	return statfs(dir, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

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

/* 0, or -errno. p->path is to be freed in any case. */
static int find_place(const char *path, struct place *p)
{
	*p = (struct place){.path = xstrdup(path)};
	for (int links = 0; links < LINKS_MAX; links++) {
		char *next;

		if (lstat(p->path, &p->st) != 0)
			return errno == ENOENT ? 0 : -errno;
		p->exists = true;
		if (!S_ISLNK(p->st.st_mode))
			return 0;
		if (in_proc(p->path)) {
			p->magic = true;
			return stat(p->path, &p->st) == 0 ? 0 : -errno;
		}
		next = link_target(p->path);
		if (!next)
			return -errno;
		free(p->path);
		p->path = next;
		p->exists = false;
	}
	return -ELOOP;
}

/* The descriptor of this process that a magic link stands for, or -1. */
static int place_descriptor(const struct place *p)
{
	AUTO_FREE char *dir = path_dirname(p->path);
	char real[PATH_MAX], own[64];
	int64_t fd;

	snprintf(own, sizeof(own), "/proc/%ld/fd", (long)getpid());
	if (!p->magic || !realpath(dir, real) || strcmp(real, own) != 0 ||
	    !str_to_i64(path_basename(p->path), &fd) || fd < 0 || fd > INT_MAX)
		return -1;
	return (int)fd;
}

int file_descriptor_named(const char *path)
{
	struct place p;
	int fd = find_place(path, &p) == 0 ? place_descriptor(&p) : -1;

	free(p.path);
	return fd;
}

/* What cannot be replaced is written to as it is. A descriptor of this process is not opened again:
 * a socket could not be, and a file would be written from its beginning. */
static int open_through(const struct place *p)
{
	int fd = place_descriptor(p);

	if (fd >= 0 && fcntl(fd, F_GETFL) < 0)
		return -EBADF;
	if (fd == STDOUT_FILENO)
		fflush(stdout); /* what was said before comes before */
	fd = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3)
		     : open(p->path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
	return fd >= 0 ? fd : -errno;
}

/* The new file gets what the old one had. An owner that may not be given away is this process's;
 * then the rights of a group are not handed to another one. */
static int keep_attributes(int fd, const struct stat *old)
{
	mode_t mode = old->st_mode & 07777;
	struct stat new;

	if (fstat(fd, &new) != 0)
		return -errno;
	if ((new.st_uid != old->st_uid || new.st_gid != old->st_gid) &&
	    fchown(fd, old->st_uid, old->st_gid) != 0) {
		mode &= ~(mode_t)(S_ISUID | S_ISGID);
		if (new.st_gid != old->st_gid && fchown(fd, (uid_t)-1, old->st_gid) != 0)
			mode &= ~(mode_t)S_IRWXG;
	}
	return fchmod(fd, mode) == 0 ? 0 : -errno;
}

static int open_beside(struct file_out *f, const struct place *p)
{
	static _Atomic unsigned serial; /* threads may write the same path at the same time */
	int fd, rc;

	f->target = xstrdup(p->path);
	f->tmp = xasprintf("%s.tmp.%ld.%u", p->path, (long)getpid(),
			   atomic_fetch_add_explicit(&serial, 1, memory_order_relaxed));
	unlink(f->tmp); /* left by a dead process of the same number */
	fd = open(f->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	rc = p->exists ? keep_attributes(fd, &p->st) : 0;
	if (rc == 0)
		return fd;
	close(fd);
	unlink(f->tmp);
	return rc;
}

static void file_out_release(struct file_out *f)
{
	free(f->path);
	free(f->target);
	free(f->tmp);
	*f = (struct file_out){.fd = -1};
}

int file_out_open(struct file_out *f, const char *path, struct err *e)
{
	struct place p;
	int rc = find_place(path, &p);

	*f = (struct file_out){.path = xstrdup(path), .fd = -1};
	if (rc == 0 && p.exists && S_ISDIR(p.st.st_mode))
		rc = err_set(e, -EISDIR, "cannot write '%s': it is a folder; name a file", path);
	else if (rc < 0)
		rc = err_sys(e, -rc, "cannot write '%s'", path);
	else {
		bool through = p.exists && (p.magic || !S_ISREG(p.st.st_mode));

		f->fd = through ? open_through(&p) : open_beside(f, &p);
		if (f->fd < 0)
			rc = err_sys(e, -f->fd, "cannot write '%s'", path);
	}
	free(p.path);
	if (rc < 0)
		file_out_release(f);
	return rc;
}

int file_out_write(const struct file_out *f, const void *bytes, size_t n)
{
	return write_fully(f->fd, bytes, n);
}

int file_out_close(struct file_out *f, int failed, struct err *e)
{
	int rc = failed;

	assert(f->fd >= 0 && failed <= 0 && !f->tmp == !f->target);
	/* pipes and devices have nothing to sync, and say so */
	if (rc == 0) {
		rc = sync_fully(f->fd);
		if (!f->tmp && (rc == -EINVAL || rc == -EROFS))
			rc = 0;
	}
	if (close(f->fd) != 0 && rc == 0)
		rc = -errno;
	if (rc == 0 && f->tmp && rename(f->tmp, f->target) != 0)
		rc = -errno;
	if (rc != 0) {
		if (f->tmp)
			unlink(f->tmp);
		rc = err_sys(e, -rc, "cannot write '%s'", f->path);
	}
	file_out_release(f);
	return rc;
}

int file_write(const char *path, const void *bytes, size_t n, struct err *e)
{
	struct file_out f;
	int rc = file_out_open(&f, path, e);

	return rc < 0 ? rc : file_out_close(&f, file_out_write(&f, bytes, n), e);
}

/* ---- folders and paths ---- */

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

bool file_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

bool file_is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

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
