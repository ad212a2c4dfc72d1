#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

static void truncate_to(struct buf *b, size_t len)
{
	b->len = len;
	if (b->data)
		b->data[len] = '\0';
}

int file_read(const char *path, size_t max_bytes, struct buf *out, struct err *e)
{
	char chunk[16384];
	size_t total = 0, had = out->len;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, errno, "cannot open '%s'", path);
	for (;;) {
		ssize_t r = read(fd, chunk, sizeof(chunk));

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0) {
			int saved = errno;

			close(fd);
			truncate_to(out, had);
			return err_sys(e, saved, "cannot read '%s'", path);
		}
		if (r == 0)
			break;
		total += (size_t)r;
		if (total > max_bytes) {
			close(fd);
			truncate_to(out, had);
			return err_set(e, -EFBIG, "'%s' is larger than the %zu bytes allowed here",
				       path, max_bytes);
		}
		buf_append(out, chunk, (size_t)r);
	}
	close(fd);
	if (!out->data)
		buf_append(out, "", 0);
	return 0;
}

static int write_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t w = write(fd, p, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return w < 0 ? -errno : -EIO;
		p += w;
		n -= (size_t)w;
	}
	return 0;
}

int file_write_atomic(const char *path, const void *bytes, size_t n, struct err *e)
{
	static _Atomic unsigned serial; /* threads may write the same path at the same time */
	AUTO_FREE char *tmp = xasprintf("%s.tmp.%ld.%u", path, (long)getpid(), serial++);
	int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	int rc;

	if (fd < 0)
		return err_sys(e, errno, "cannot create '%s'", tmp);
	rc = write_all(fd, bytes, n);
	if (rc == 0 && fsync(fd) != 0)
		rc = -errno;
	if (close(fd) != 0 && rc == 0)
		rc = -errno;
	if (rc == 0 && rename(tmp, path) != 0)
		rc = -errno;
	if (rc != 0) {
		unlink(tmp);
		return err_sys(e, -rc, "cannot write '%s'", path);
	}
	return 0;
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
