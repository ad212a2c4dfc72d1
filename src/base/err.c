#include "base/err.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int err_vset(struct err *e, int code, const char *fmt, va_list ap)
{
	if (e) {
		e->code = code;
		e->named = false;
		vsnprintf(e->text, sizeof(e->text), fmt, ap);
	}
	return code;
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	err_vset(e, code, fmt, ap);
	va_end(ap);
	return code;
}

int err_sys(struct err *e, int errnum, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	err_vset(e, -errnum, fmt, ap);
	va_end(ap);
	if (e) {
		char why[128];
		size_t n = strlen(e->text);

		/* glibc's GNU strerror_r may return a static string instead of filling the buffer
		 */
		snprintf(e->text + n, sizeof(e->text) - n, ": %s",
			 strerror_r(errnum, why, sizeof(why)));
	}
	return -errnum;
}

__attribute__((format(printf, 2, 0))) static void put_before(struct err *e, const char *fmt,
							     va_list ap)
{
	char inner[ERR_TEXT_MAX];
	size_t n;

	memcpy(inner, e->text, sizeof(inner));
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	n = strlen(e->text);
	snprintf(e->text + n, sizeof(e->text) - n, ": %s", inner);
}

int err_wrap(struct err *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_before(e, fmt, ap);
	va_end(ap);
	return e->code;
}

int err_named(int rc, struct err *e)
{
	if (e)
		e->named = true;
	return rc;
}

int err_name(int rc, struct err *e, const char *fmt, ...)
{
	va_list ap;

	if (!e || e->named)
		return rc;
	va_start(ap, fmt);
	put_before(e, fmt, ap);
	va_end(ap);
	return err_named(rc, e);
}

int err_exit_status(int code)
{
	if (code >= 0)
		return 0;
	if (code == ERR_USAGE)
		return 2;
	if (code == ERR_TARGET)
		return 3;
	return 1;
}

/* Also called when there is no memory. */
void err_leave_code(int code)
{
	const char *path = getenv(ERR_CODE_FILE);
	char text[16];
	int fd = -1, n;

	if (path)
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	n = snprintf(text, sizeof(text), "%d", code);
	if (write(fd, text, (size_t)n) != n)
		unlink(path);
	close(fd);
}

int err_in_path(int rc, const char *path, struct err *e)
{
	return err_name(rc, e, "'%s'", path);
}
