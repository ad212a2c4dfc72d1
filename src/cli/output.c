#include "cli/output.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

/* The first failure of each stream. */
static int failed[STDERR_FILENO + 1];
static char text[BUFSIZ]; /* of standard output */

static ssize_t put(void *cookie, const char *p, size_t n)
{
	int fd = (int)(intptr_t)cookie;
	size_t done = 0;

	while (done < n) {
		ssize_t w = write(fd, p + done, n - done);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0 && errno == EAGAIN) {
			struct pollfd ready = {.fd = fd, .events = POLLOUT};

			poll(&ready, 1, -1);
			continue;
		}
		if (w <= 0) {
			if (!failed[fd])
				failed[fd] = w < 0 ? errno : EIO;
			return 0;
		}
		done += (size_t)w;
	}
	return (ssize_t)n;
}

static void replace(FILE **stream, int fd, int buffering)
{
	cookie_io_functions_t io = {.write = put};
	FILE *f = fopencookie((void *)(intptr_t)fd, "w", io);

	if (f)
		*stream = f;
	/* the library would allocate one, which it never releases, and print each character by
	 * itself where it cannot */
	setvbuf(*stream, buffering == _IONBF ? NULL : text, buffering, sizeof(text));
}

void output_begin(void)
{
	replace(&stdout, STDOUT_FILENO, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF);
	replace(&stderr, STDERR_FILENO, _IONBF);
}

int output_end(void)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	if (!failed[STDOUT_FILENO])
		failed[STDOUT_FILENO] = errno ? errno : EIO;
	return failed[STDOUT_FILENO];
}
