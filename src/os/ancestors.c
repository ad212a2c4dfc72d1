#include "os/ancestors.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"

/* An environment is at most a quarter of the stack. */
#define FILE_MAX ((size_t)4 << 20)

static bool read_of(pid_t pid, const char *name, struct buf *out)
{
	char path[64];
	ssize_t n = 1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	buf_reset(out);
	while (n > 0 && out->len < FILE_MAX) {
		char part[4096];

		n = read(fd, part, sizeof(part));
		if (n > 0)
			buf_append(out, part, (size_t)n);
	}
	close(fd);
	return n >= 0 && out->data;
}

/* Parent and time of start: the 4th and the 22nd field, the second of which is a name with anything
 * in it. */
static bool read_stat(pid_t pid, pid_t *parent, uint64_t *start, struct buf *text)
{
	const char *rest = read_of(pid, "stat", text) ? strrchr(text->data, ')') : NULL;
	unsigned long long began;
	int above;

	if (!rest || sscanf(rest + 1,
			    " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
			    "%*d %*d %llu",
			    &above, &began) != 2)
		return false;
	*parent = above;
	*start = began;
	return true;
}

static bool has_mark(pid_t pid, const char *mark, struct buf *text)
{
	size_t n = strlen(mark) + 1;

	if (!read_of(pid, "environ", text))
		return false;
	for (const char *p = text->data; p < text->data + text->len; p += strlen(p) + 1)
		if ((size_t)(text->data + text->len + 1 - p) >= n && memcmp(p, mark, n) == 0)
			return true;
	return false;
}

size_t ancestors_to_launcher(const char *mark, struct ancestor out[ANCESTORS_MAX])
{
	struct buf text = {0};
	pid_t pid = getppid(), parent;
	size_t n = 0;
	bool found = false;

	while (pid > 0 && n < ANCESTORS_MAX && !found) {
		out[n].pid = pid;
		if (!read_stat(pid, &parent, &out[n].start, &text))
			break;
		found = !has_mark(pid, mark, &text);
		n++;
		pid = parent;
	}
	buf_release(&text);
	return found ? n : 0;
}
