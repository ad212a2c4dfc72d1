#include "base/out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

int out_file_open(struct out_file *f, const char *path, struct err *e)
{
	int code;

	*f = (struct out_file){.path = xstrdup(path),
			       .tmp = xasprintf("%s.tmp.%ld", path, (long)getpid()),
			       .buffer = xmalloc(OUT_FILE_BUFFER)};
	f->fd = open(f->tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (f->fd >= 0)
		return 0;
	code = err_sys(e, errno, "cannot create '%s'", f->tmp);
	free(f->path);
	free(f->tmp);
	free(f->buffer);
	return code;
}

static void flush(struct out_file *f)
{
	const char *p = f->buffer;

	while (f->used > 0 && f->failed == 0) {
		ssize_t n = write(f->fd, p, f->used);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			f->failed = n < 0 ? -errno : -EIO;
			break;
		}
		p += n;
		f->used -= (size_t)n;
	}
	f->used = 0;
}

void out_file_put(struct out_file *f, const char *bytes, size_t n)
{
	while (n > 0) {
		size_t room = OUT_FILE_BUFFER - f->used, part = n < room ? n : room;

		memcpy(f->buffer + f->used, bytes, part);
		f->used += part;
		bytes += part;
		n -= part;
		if (f->used == OUT_FILE_BUFFER)
			flush(f);
	}
}

void out_file_number(struct out_file *f, uint64_t v)
{
	char digits[20], *at = digits + sizeof(digits);

	do {
		*--at = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	out_file_put(f, at, (size_t)(digits + sizeof(digits) - at));
}

void out_file_print(struct out_file *f, const char *format, ...)
{
	va_list args;
	int n;

	if (OUT_FILE_BUFFER - f->used < OUT_FILE_LINE)
		flush(f);
	va_start(args, format);
	n = vsnprintf(f->buffer + f->used, OUT_FILE_LINE, format, args);
	va_end(args);
	if (n > 0)
		f->used += (size_t)n < OUT_FILE_LINE ? (size_t)n : OUT_FILE_LINE - 1;
}

int out_file_close(struct out_file *f, struct err *e)
{
	int rc;

	flush(f);
	rc = f->failed;
	if (rc == 0 && fsync(f->fd) != 0)
		rc = -errno;
	if (close(f->fd) != 0 && rc == 0)
		rc = -errno;
	if (rc == 0 && rename(f->tmp, f->path) != 0)
		rc = -errno;
	if (rc != 0) {
		unlink(f->tmp);
		rc = err_sys(e, -rc, "cannot write '%s'", f->path);
	}
	free(f->path);
	free(f->tmp);
	free(f->buffer);
	return rc;
}
