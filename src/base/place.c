/* From link to link. */
#include "base/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/path.h"
#include "base/str.h"
#include "base/transfer.h"

#define LINKS_MAX 40 /* as the kernel */

static bool in_proc(const char *path)
{
	AUTO_FREE char *dir = path_dirname(path);
	struct statfs fs;

	return statfs(dir, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

int place_foreign(const char *path, const char *what, uid_t owner, const char *todo, struct err *e)
{
	return err_set(e, -EACCES, "cannot write '%s': %s belongs to another user (uid %ld); %s",
		       path, what, (long)owner, todo);
}

bool place_trusted(uid_t owner)
{
	return owner == geteuid() || owner == 0;
}

/* *next: the path behind the link at `path`, whose owner and text are those of one inode. */
static int follow(const char *path, const char *named, char **next, struct err *e)
{
	AUTO_FREE char *dir = path_dirname(path);
	int fd = open_fully(AT_FDCWD, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	char text[PATH_MAX];
	struct stat st;
	ssize_t n = -1;
	int code;

	if (fd >= 0 && fstat(fd, &st) == 0)
		n = readlinkat(fd, "", text, sizeof(text) - 1);
	code = errno;
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return err_sys(e, code, "cannot write '%s'", named);
	text[n] = '\0';
	if (!place_trusted(st.st_uid)) {
		AUTO_FREE char *what = xasprintf("the symbolic link '%s' to '%s'", path, text);

		return place_foreign(named, what, st.st_uid, "links of others are not followed", e);
	}
	*next = path_join(dir, text);
	return 0;
}

int place_find(const char *path, struct place *p, struct err *e)
{
	*p = (struct place){.path = xstrdup(path)};
	for (int links = 0; links < LINKS_MAX; links++) {
		char *next = NULL;
		int rc;

		if (lstat(p->path, &p->st) != 0)
			return errno == ENOENT ? 0 : err_sys(e, errno, "cannot write '%s'", path);
		p->exists = true;
		if (!S_ISLNK(p->st.st_mode))
			return 0;
		if (in_proc(p->path)) {
			p->magic = true;
			return stat(p->path, &p->st) == 0
				       ? 0
				       : err_sys(e, errno, "cannot write '%s'", path);
		}
		rc = follow(p->path, path, &next, e);
		if (rc < 0)
			return rc;
		free(p->path);
		p->path = next;
		p->exists = false;
	}
	return err_sys(e, ELOOP, "cannot write '%s'", path);
}

int place_descriptor(const struct place *p)
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

int place_named_descriptor(const char *path)
{
	struct place p;
	int fd = place_find(path, &p, NULL) == 0 ? place_descriptor(&p) : -1;

	free(p.path);
	return fd;
}
