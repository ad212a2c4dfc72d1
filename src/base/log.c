#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"

static _Atomic int threshold = LOG_WARNING;
static _Atomic int console = LOG_CONSOLE_ALL;
static _Atomic int file_fd = -1;
static _Atomic(const struct log_sink *) console_sink;

void log_set_level(enum log_level level)
{
	threshold = (int)level;
}

void log_set_console(enum log_console what)
{
	console = (int)what;
}

void log_set_sink(const struct log_sink *sink)
{
	atomic_store(&console_sink, sink);
}

/* OUTPUT lines tell how far the run is, although their level is above that of warnings. */
static bool on_console(enum log_level level)
{
	if (level >= LOG_ERROR)
		return true;
	if (level == LOG_WARNING)
		return console >= LOG_CONSOLE_WARNINGS;
	return console == LOG_CONSOLE_ALL;
}

int log_open(const char *path, struct err *e)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
	int old;

	if (fd < 0)
		return err_sys(e, errno, "cannot create the log file '%s'", path);
	old = atomic_exchange(&file_fd, fd);
	if (old >= 0)
		close(old);
	return 0;
}

int log_close(struct err *e)
{
	int fd = atomic_exchange(&file_fd, -1);

	if (fd >= 0 && close(fd) != 0)
		return err_sys(e, errno, "cannot finish writing the log file");
	return 0;
}

static const char *level_name(enum log_level level)
{
	switch (level) {
	case LOG_DEBUG:
		return "DEBUG";
	case LOG_INFO:
		return "INFO";
	case LOG_WARNING:
		return "WARNING";
	case LOG_OUTPUT:
		return "OUTPUT";
	case LOG_ERROR:
		return "ERROR";
	}
	return "LOG";
}

static void write_line(int fd, const char *s, size_t n)
{
	while (n > 0) {
		ssize_t w = write(fd, s, n);

		if (w < 0) {
			if (errno == EINTR)
				continue;
			return; /* nowhere left to report to */
		}
		s += w;
		n -= (size_t)w;
	}
}

void log_msg(enum log_level level, const char *fmt, ...)
{
	const struct log_sink *sink = atomic_load(&console_sink);
	char line[2048];
	va_list ap;
	int head, body, fd;
	size_t n;

	if ((int)level < threshold)
		return;
	head = snprintf(line, sizeof(line), "[%s] ", level_name(level));
	va_start(ap, fmt);
	body = vsnprintf(line + head, sizeof(line) - (size_t)head - 1, fmt, ap);
	va_end(ap);
	if (body < 0)
		return;
	n = (size_t)head + (size_t)body;
	if (n > sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (on_console(level) && sink)
		sink->line(sink->arg, line, n);
	else if (on_console(level))
		write_line(STDERR_FILENO, line, n);
	fd = file_fd;
	if (fd >= 0)
		write_line(fd, line, n);
}
