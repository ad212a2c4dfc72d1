#include "base/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"

/* One call moves no more than 2^31 - 4096 bytes. */
#define CALL_MAX ((size_t)1 << 30)

/* From where the descriptor stands, or (`at` not NULL) from a place. */
static ssize_t read_all(int fd, char *p, size_t n, const off_t *at)
{
	size_t done = 0;

	while (done < n) {
		size_t ask = n - done < CALL_MAX ? n - done : CALL_MAX;
		ssize_t r =
			at ? pread(fd, p + done, ask, *at + (off_t)done) : read(fd, p + done, ask);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		done += (size_t)r;
	}
	return (ssize_t)done;
}

ssize_t read_fully(int fd, void *p, size_t n)
{
	return read_all(fd, p, n, NULL);
}

ssize_t pread_fully(int fd, void *p, size_t n, off_t offset)
{
	return read_all(fd, p, n, &offset);
}

ssize_t read_kernel_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -errno : read_fully(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n;
}

/* To where the descriptor stands, or to a place. */
static int write_all(int fd, const char *p, size_t n, const off_t *at)
{
	size_t done = 0;

	while (done < n) {
		size_t ask = n - done < CALL_MAX ? n - done : CALL_MAX;
		ssize_t w = at ? pwrite(fd, p + done, ask, *at + (off_t)done)
			       : write(fd, p + done, ask);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return w < 0 ? -errno : -EIO;
		done += (size_t)w;
	}
	return 0;
}

int write_fully(int fd, const void *p, size_t n)
{
	return write_all(fd, p, n, NULL);
}

int pwrite_fully(int fd, const void *p, size_t n, off_t offset)
{
	return write_all(fd, p, n, &offset);
}

int sync_fully(int fd)
{
	int rc;

	do
		rc = fsync(fd);
	while (rc != 0 && errno == EINTR);
	return rc == 0 ? 0 : -errno;
}

int open_fully(int folder, const char *name, int flags, mode_t mode)
{
	int fd;

	do
		fd = openat(folder, name, flags, mode);
	while (fd < 0 && errno == EINTR);
	return fd;
}

DIR *folder_open(const char *path)
{
	DIR *d;

	do
		d = WITH_MEMORY(opendir(path));
	while (!d && errno == EINTR);
	return d;
}

int folder_next(DIR *d, struct dirent **out)
{
	do {
		errno = 0;
		*out = readdir(d);
	} while (!*out && errno == EINTR);
	return *out ? 1 : -errno;
}
