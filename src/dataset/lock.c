/* A lock file in the dataset's folder. */
#include "dataset/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME ".stoker_generate.lock"
#define TRIES 16

static int busy(int fd, const char *folder, struct err *e)
{
	char who[320] = "";
	ssize_t n = pread(fd, who, sizeof(who) - 1, 0);

	who[n > 0 ? n : 0] = '\0';
	who[strcspn(who, "\n")] = '\0';
	return err_set(e, -EBUSY,
		       "another program is generating a dataset in '%s'%s%s: wait until it has "
		       "ended, end it, or choose another dataset.data_folder",
		       folder, who[0] ? ": " : "", who);
}

/* Whoever reads it while the lock is held learns who holds it. */
static void sign(int fd)
{
	char host[256] = "?", text[320];
	int n;

	gethostname(host, sizeof(host) - 1);
	n = snprintf(text, sizeof(text), "process %ld on host '%s'\n", (long)getpid(), host);
	if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)n, 0) < 0)
		return; /* it is a lock without a name then */
}

/* The file may have been removed between opening and locking it. */
static bool is_current(int fd, const char *path)
{
	struct stat mine, there;

	return fstat(fd, &mine) == 0 && stat(path, &there) == 0 && mine.st_ino == there.st_ino &&
	       mine.st_dev == there.st_dev;
}

int folder_lock(struct folder_lock *l, struct store *s, const char *folder, struct err *e)
{
	struct store_stat st;

	l->fd = -1;
	l->made = s->ops->stat(s, folder, &st, NULL) == -ENOENT;
	if (!(store_base_flags(s) & STORE_HAS_FILES) ||
	    (size_t)snprintf(l->path, sizeof(l->path), "%s/" NAME, folder) >= sizeof(l->path) ||
	    s->ops->mkdirs(s, folder, NULL) < 0)
		return 0;
	for (int i = 0; i < TRIES; i++) {
		int fd = open(l->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666), rc;

		if (fd < 0)
			return 0;
		do
			rc = flock(fd, LOCK_EX | LOCK_NB);
		while (rc < 0 && errno == EINTR);
		if (rc < 0 && errno == EWOULDBLOCK) {
			rc = busy(fd, folder, e);
			close(fd);
			return rc;
		}
		if (rc < 0) {
			close(fd);
			unlink(l->path);
			return 0;
		}
		if (is_current(fd, l->path)) {
			sign(fd);
			l->fd = fd;
			return 0;
		}
		close(fd);
	}
	return 0;
}

void folder_unlock(struct folder_lock *l)
{
	if (l->fd < 0)
		return;
	unlink(l->path);
	if (l->made) {
		*strrchr(l->path, '/') = '\0';
		rmdir(l->path);
	}
	close(l->fd);
	l->fd = -1;
}
