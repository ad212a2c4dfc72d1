/* Removing folders. */
#include "base/remove_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/path.h"
#include "base/transfer.h"

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
