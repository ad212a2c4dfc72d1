#include "base/folder_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/left.h"
#include "base/str.h"
#include "base/transfer.h"

#define TRIES 16

/* ---- who holds it ---- */

/* Whoever reads it while the lock is held learns who holds it. */
static void write_holder(int fd)
{
	char host[256] = "?", text[FILE_LOCK_WHO_MAX];
	int n;

	gethostname(host, sizeof(host) - 1);
	n = snprintf(text, sizeof(text), "process %ld on host '%s'\n", (long)getpid(), host);
	if (ftruncate(fd, 0) == 0 && pwrite_fully(fd, text, (size_t)n, 0) < 0)
		return; /* it is a lock without a name then */
}

/* The process of this machine that has a lock on the file, or 0: one of another machine. */
static long local_holder(const struct stat *st)
{
	FILE *f = WITH_MEMORY(fopen("/proc/locks", "re"));
	char line[256];
	long found = 0;

	while (f && !found && fgets(line, sizeof(line), f)) {
		unsigned major, minor;
		unsigned long long inode;
		char type[16];
		long pid;

		if (sscanf(line, "%*s %15s %*s %*s %ld %x:%x:%llu", type, &pid, &major, &minor,
			   &inode) == 5 &&
		    strcmp(type, "FLOCK") == 0 && pid > 0 && inode == st->st_ino &&
		    makedev(major, minor) == st->st_dev)
			found = pid;
	}
	if (f)
		fclose(f);
	return found;
}

/* What a file says that its holder could not write is what an earlier one, which died, wrote. */
static void read_holder(int fd, char who[FILE_LOCK_WHO_MAX])
{
	char written[32];
	struct stat st;
	ssize_t n = pread_fully(fd, who, FILE_LOCK_WHO_MAX - 64, 0);
	long pid;

	who[n > 0 ? n : 0] = '\0';
	who[strcspn(who, "\n")] = '\0';
	if (fstat(fd, &st) != 0)
		return;
	pid = local_holder(&st);
	snprintf(written, sizeof(written), "process %ld on ", pid);
	if (pid && !str_starts(who, written))
		snprintf(who, FILE_LOCK_WHO_MAX, "process %ld on this machine", pid);
	else if (st.st_uid != geteuid())
		str_append(who, FILE_LOCK_WHO_MAX, "%sof the user with uid %ld", who[0] ? ", " : "",
			   (long)st.st_uid);
}

/* ---- the file ---- */

/* The file may have been removed between opening and locking it. */
static bool is_current(int fd, const char *path)
{
	struct stat mine, there;

	return fstat(fd, &mine) == 0 && lstat(path, &there) == 0 && mine.st_ino == there.st_ino &&
	       mine.st_dev == there.st_dev;
}

/* Of what is there already. Without O_CREAT, which the kernel refuses for files of others in
 * folders like /tmp (fs.protected_regular). A descriptor, -ENOENT, or negative with a sentence. */
static int open_existing(const char *path, struct err *e)
{
	int flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, fd;
	struct stat st;

	if (lstat(path, &st) != 0)
		return errno == ENOENT ? -ENOENT
				       : err_sys(e, errno, "cannot use the lock file '%s'", path);
	if (!S_ISREG(st.st_mode))
		return err_set(
			e, ERR_KIND,
			"cannot use the lock file '%s': it is %s; remove it if nothing needs "
			"it",
			path, file_kind(st.st_mode));
	fd = open_fully(AT_FDCWD, path, O_RDWR | flags, 0);
	if (fd < 0 && errno != ENOENT)
		fd = open_fully(AT_FDCWD, path, O_RDONLY | flags,
				0); /* of another user: enough for a lock */
	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0)
		return err_sys(
			e, errno,
			"whether another program works in this folder cannot be told, as its "
			"lock file '%s' cannot be opened (it belongs to the user with uid "
			"%ld)",
			path, (long)st.st_uid);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -ENOENT; /* replaced meanwhile: looked at again */
}

static int lock_now(int fd, int how)
{
	int rc;

	do
		rc = flock(fd, how | LOCK_NB);
	while (rc < 0 && errno == EINTR);
	return rc < 0 ? -errno : 0;
}

/* NFS makes an exclusive lock only for who can write the file. A shared one tells at least whether
 * it is held. */
static int lock_file(int fd, bool *shared)
{
	int rc = lock_now(fd, LOCK_EX);

	*shared = rc == -EBADF;
	return *shared ? lock_now(fd, LOCK_SH) : rc;
}

static bool cannot_be_made(int code)
{
	return code == EACCES || code == EPERM || code == EROFS || code == ENOENT ||
	       code == ENOTDIR || code == ENAMETOOLONG || code == ENOSPC || code == EDQUOT;
}

static bool no_locks(int code)
{
	return code == ENOLCK || code == EOPNOTSUPP || code == ENOSYS || code == EINVAL;
}

/* We hold the lock of a file that a dead process left. 1: the file was removed, so a new one must
 * be created; 0: it stays, and the lock is ours; negative: an error. */
static int take_left(int fd, const char *path, bool shared, struct err *e)
{
	struct stat st;

	if (unlink(path) == 0)
		return 1;
	if (shared)
		return err_sys(e, errno,
			       "the lock file '%s', which another user left, cannot be removed",
			       path);
	/* its other names, and another user's file, are not ours to write to */
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && st.st_nlink == 1)
		write_holder(fd);
	return 0;
}

/* 1: to be tried again. */
static int try_lock(struct file_lock *l, char who[FILE_LOCK_WHO_MAX], struct err *e)
{
	int fd = open_fully(AT_FDCWD, l->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0644),
	    rc;
	bool made = fd >= 0, shared;

	if (fd < 0 && errno == EINTR)
		return 1;
	if (fd < 0 && cannot_be_made(errno))
		return 0;
	if (fd < 0 && errno != EEXIST)
		return err_sys(e, errno, "cannot make the lock file '%s'", l->path);
	if (fd < 0)
		fd = open_existing(l->path, e);
	else
		(void)!fchmod(fd, 0644);
	if (fd < 0)
		return fd == -ENOENT ? 1 : fd;
	rc = lock_file(fd, &shared);
	if (rc == -EWOULDBLOCK) {
		read_holder(fd, who);
		rc = -EBUSY;
	} else if (rc < 0 && no_locks(-rc)) {
		if (made)
			unlink(l->path);
		rc = 0;
	} else if (rc < 0) {
		rc = err_sys(e, -rc, "cannot lock '%s'", l->path);
	} else if (!is_current(fd, l->path)) {
		rc = 1;
	} else {
		l->left = left_note(AT_FDCWD, l->path);
		if (made)
			write_holder(fd);
		else
			rc = take_left(fd, l->path, shared, e);
		if (rc == 0) {
			l->fd = fd;
			return 0;
		}
		left_forget(l->left);
	}
	close(fd);
	return rc;
}

int file_lock(struct file_lock *l, const char *path, char who[FILE_LOCK_WHO_MAX], struct err *e)
{
	int rc = 1;

	l->fd = -1;
	who[0] = '\0';
	if ((size_t)snprintf(l->path, sizeof(l->path), "%s", path) >= sizeof(l->path))
		return 0;
	for (int i = 0; rc == 1 && i < TRIES; i++)
		rc = try_lock(l, who, e);
	/* others make and remove it all the time */
	return rc == 1 ? -EBUSY : rc;
}

void file_unlock(struct file_lock *l)
{
	if (l->fd < 0)
		return;
	if (is_current(l->fd, l->path))
		unlink(l->path);
	left_forget(l->left);
	close(l->fd);
	l->fd = -1;
}

bool file_lock_held(const char *path, char who[FILE_LOCK_WHO_MAX])
{
	int fd = open_fully(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0), rc;
	bool held;

	who[0] = '\0';
	if (fd < 0)
		return false;
	do
		rc = flock(fd, LOCK_SH | LOCK_NB);
	while (rc < 0 && errno == EINTR);
	held = rc < 0 && errno == EWOULDBLOCK;
	if (held)
		read_holder(fd, who);
	close(fd);
	return held;
}
