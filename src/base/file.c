#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/path.h"
#include "base/transfer.h"

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

static int remove_at(int dir, const char *name, const char *path, int depth, struct err *e)
{
	int fd, rc;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return err_sys(e, errno, "cannot remove '%s' in '%s'", name, path);
	if (depth > DEPTH_MAX)
		return err_set(e, -ELOOP, "'%s' has more than %d levels of folders", path,
			       DEPTH_MAX);
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, errno, "cannot open the folder '%s' in '%s'", name, path);
	rc = remove_entries(fd, path, depth, e);
	if (rc == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		rc = err_sys(e, errno, "cannot remove the folder '%s' in '%s'", name, path);
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
