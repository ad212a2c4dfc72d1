#include "base/folder_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES 16

/* Whoever reads it while the lock is held learns who holds it. */
static void write_holder(int fd)
{
	char host[256] = "?", text[FILE_LOCK_WHO_MAX];
	int n;

	gethostname(host, sizeof(host) - 1);
	n = snprintf(text, sizeof(text), "process %ld on host '%s'\n", (long)getpid(), host);
	if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)n, 0) < 0)
		return; /* it is a lock without a name then */
}

static void read_holder(int fd, char who[FILE_LOCK_WHO_MAX])
{
	ssize_t n = pread(fd, who, FILE_LOCK_WHO_MAX - 1, 0);

	who[n > 0 ? n : 0] = '\0';
	who[strcspn(who, "\n")] = '\0';
}

/* The file may have been removed between opening and locking it. */
static bool is_current(int fd, const char *path)
{
	struct stat mine, there;

	return fstat(fd, &mine) == 0 && stat(path, &there) == 0 && mine.st_ino == there.st_ino &&
	       mine.st_dev == there.st_dev;
}

int file_lock(struct file_lock *l, const char *path, char who[FILE_LOCK_WHO_MAX])
{
	l->fd = -1;
	who[0] = '\0';
	if ((size_t)snprintf(l->path, sizeof(l->path), "%s", path) >= sizeof(l->path))
		return 0;
	for (int i = 0; i < TRIES; i++) {
		int fd = open(l->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666), rc;

		if (fd < 0)
			return 0;
		do
			rc = flock(fd, LOCK_EX | LOCK_NB);
		while (rc < 0 && errno == EINTR);
		if (rc < 0 && errno == EWOULDBLOCK) {
			read_holder(fd, who);
			close(fd);
			return -EBUSY;
		}
		if (rc < 0) {
			close(fd);
			unlink(l->path);
			return 0;
		}
		if (is_current(fd, l->path)) {
			write_holder(fd);
			l->fd = fd;
			return 0;
		}
		close(fd);
	}
	return 0;
}

void file_unlock(struct file_lock *l)
{
	if (l->fd < 0)
		return;
	unlink(l->path);
	close(l->fd);
	l->fd = -1;
}

bool file_lock_held(const char *path, char who[FILE_LOCK_WHO_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW), rc;
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
