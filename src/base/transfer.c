#include "base/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"

/* One call moves no more than 2^31 - 4096 bytes. */
#define CALL_MAX ((size_t)1 << 30)

ssize_t read_fully(int fd, void *p, size_t n)
{
	size_t done = 0;

	while (done < n) {
		size_t ask = n - done < CALL_MAX ? n - done : CALL_MAX;
		ssize_t r = read(fd, (char *)p + done, ask);

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

ssize_t pread_fully(int fd, void *p, size_t n, off_t offset)
{
	size_t done = 0;

	while (done < n) {
		size_t ask = n - done < CALL_MAX ? n - done : CALL_MAX;
		ssize_t r = pread(fd, (char *)p + done, ask, offset + (off_t)done);

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

int write_fully(int fd, const void *p, size_t n)
{
	const char *at = p;

	while (n > 0) {
		ssize_t w = write(fd, at, n < CALL_MAX ? n : CALL_MAX);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return w < 0 ? -errno : -EIO;
		at += w;
		n -= (size_t)w;
	}
	return 0;
}

int pwrite_fully(int fd, const void *p, size_t n, off_t offset)
{
	const char *at = p;

	while (n > 0) {
		ssize_t w = pwrite(fd, at, n < CALL_MAX ? n : CALL_MAX, offset);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return w < 0 ? -errno : -EIO;
		at += w;
		offset += w;
		n -= (size_t)w;
	}
	return 0;
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
