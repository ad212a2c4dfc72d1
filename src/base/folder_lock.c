#include "base/folder_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/left.h"
#include "base/ending.h"
#include "base/str.h"
#include "base/transfer.h"

#define TRIES 16
/* A holder that is ending is waited for: the kernel gives back its memory, and writes down what it
 * wrote. */
#define ENDING_NS (10 * NS_PER_S)
#define LOOK_NS (NS_PER_S / 20)
#define UNSEEN_MAX 2

/* ---- who holds it ---- */

#define TEXT_MAX 1024
#define COMMAND_MAX 160

/* The names of this boot of this machine and of the numbers of its processes: "BOOT PIDS". A number
 * means a process only where both are the same. */
static void put_place(char *out, size_t size)
{
	char boot[64], pids[64] = "";

	read_kernel_text("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	boot[strcspn(boot, "\n")] = '\0';
	if (readlink("/proc/self/ns/pid", pids, sizeof(pids) - 1) < 0)
		pids[0] = '\0';
	snprintf(out, size, "%s %s", boot, pids);
}

/* The command line, cut. */
static void put_command(char *out, size_t size)
{
	ssize_t n = read_kernel_text("/proc/self/cmdline", out, size - 3);
	bool more = n == (ssize_t)size - 4;

	for (ssize_t i = 0; i < n; i++)
		if (!out[i] || out[i] == '\n')
			out[i] = ' ';
	while (n > 0 && out[n - 1] == ' ')
		n--;
	out[n > 0 ? n : 0] = '\0';
	if (more)
		str_append(out, size, "...");
}

/* Whoever reads it while the lock is held learns who holds it: in the first line for people, in the
 * second for is_stale. */
static void write_holder(int fd)
{
	char host[256] = "?", text[TEXT_MAX], command[COMMAND_MAX], since[32] = "?", place[160];
	time_t now = time(NULL);
	struct tm tm;
	int n;

	gethostname(host, sizeof(host) - 1);
	put_command(command, sizeof(command));
	put_place(place, sizeof(place));
	if (gmtime_r(&now, &tm))
		strftime(since, sizeof(since), "%Y-%m-%d %H:%M:%S UTC", &tm);
	n = snprintf(text, sizeof(text), "process %ld on host '%.64s' since %s: %s\n%s\n",
		     (long)getpid(), host, since, command, place);
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

struct holder {
	char who[FILE_LOCK_WHO_MAX];
	long pid;   /* of this machine, or 0 */
	bool stale; /* it was a process of this machine that is no more */
};

/* A server of files that has not heard of the end of a client keeps its locks. What the file says
 * of its holder tells then that it is gone: another boot of this machine, or a number that no
 * process has. */
static bool is_stale(const char *text)
{
	char host[256] = "?", place[160], mine[128];
	const char *second = strchr(text, '\n');
	long pid;

	gethostname(host, sizeof(host) - 1);
	if (!second || sscanf(text, "process %ld on host", &pid) != 1 || pid <= 0)
		return false;
	snprintf(mine, sizeof(mine), "process %ld on host '%.64s' ", pid, host);
	put_place(place, sizeof(place));
	second++;
	/* neither is known of a machine that does not tell */
	if (!str_starts(text, mine) || place[0] == ' ' || strcspn(second, " ") < 8)
		return false;
	if (strncmp(second, place, strcspn(place, " ")) != 0)
		return true;
	return strncmp(second, place, strlen(place)) == 0 && kill((pid_t)pid, 0) != 0 &&
	       errno == ESRCH;
}

/* What a file says that its holder could not write is what an earlier one, which died, wrote. */
static void read_holder(int fd, struct holder *h)
{
	char written[32], text[TEXT_MAX];
	struct stat st;
	ssize_t n = pread_fully(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	*h = (struct holder){0};
	snprintf(h->who, sizeof(h->who) - 64, "%.*s", (int)strcspn(text, "\n"), text);
	if (fstat(fd, &st) != 0)
		return;
	h->pid = local_holder(&st);
	h->stale = h->pid == 0 && is_stale(text);
	snprintf(written, sizeof(written), "process %ld on ", h->pid);
	if (h->pid && !str_starts(h->who, written))
		snprintf(h->who, sizeof(h->who), "process %ld on this machine", h->pid);
	else if (st.st_uid != geteuid())
		str_append(h->who, sizeof(h->who), "%sof the user with uid %ld",
			   h->who[0] ? ", " : "", (long)st.st_uid);
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
static int try_lock(struct file_lock *l, struct holder *h, struct err *e)
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
		read_holder(fd, h);
		/* what the one who is no more has left goes with its lock */
		rc = h->stale && is_current(fd, l->path) && unlink(l->path) == 0 ? 1 : -EBUSY;
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
	int64_t until = clock_now_ns() + ENDING_NS;
	struct holder h = {0};
	int rc = 1, status;

	l->fd = -1;
	who[0] = '\0';
	if ((size_t)snprintf(l->path, sizeof(l->path), "%s", path) >= sizeof(l->path))
		return 0;
	for (int unseen = 0;;) {
		bool ends;

		for (int i = 0; rc == 1 && i < TRIES; i++)
			rc = try_lock(l, &h, e);
		if (rc != -EBUSY || clock_now_ns() > until)
			break;
		/* one that is not seen may have ended since it was found to hold the lock */
		ends = h.pid ? process_ends((pid_t)h.pid, &status) : unseen++ < UNSEEN_MAX;
		if (!ends)
			break;
		clock_sleep_until(clock_now_ns() + LOOK_NS);
		rc = 1;
	}
	if (rc == -EBUSY && h.pid && process_ends((pid_t)h.pid, &status))
		str_append(h.who, sizeof(h.who), " (it was ended, but storage does not let go)");
	memcpy(who, h.who, sizeof(h.who));
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
	if (held) {
		struct holder h;
		int status;

		read_holder(fd, &h);
		held = !h.pid || !process_ends((pid_t)h.pid, &status);
		memcpy(who, h.who, sizeof(h.who));
	}
	close(fd);
	return held;
}
