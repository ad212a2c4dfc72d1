#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file_out.h"
#include "base/say.h"
#include "base/str.h"
#include "base/transfer.h"

static _Atomic int threshold = LOG_WARNING;
static _Atomic int console = LOG_CONSOLE_ALL;
static _Atomic int file_fd = -1;
static _Atomic int file_errno; /* of the first line that the file did not take whole; 0: none */
static char file_path[4096];   /* written while no file is open */
static _Atomic(const struct log_sink *) console_sink;
static _Atomic unsigned console_lines;

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&threshold, (int)level, memory_order_relaxed);
}

void log_set_console(enum log_console what)
{
	atomic_store_explicit(&console, (int)what, memory_order_relaxed);
}

void log_set_sink(const struct log_sink *sink)
{
	/* who finds it sees what it points to */
	atomic_store_explicit(&console_sink, sink, memory_order_release);
}

/* OUTPUT lines tell how far the run is, although their level is above that of warnings. */
static bool on_console(enum log_level level)
{
	int what = atomic_load_explicit(&console, memory_order_relaxed);

	if (level >= LOG_ERROR)
		return true;
	if (level == LOG_WARNING)
		return what >= LOG_CONSOLE_WARNINGS;
	return what == LOG_CONSOLE_ALL;
}

int log_open(const char *path, struct err *e)
{
	int fd = file_make_ours(path, O_APPEND, 0644, e);
	int old;

	if (fd < 0)
		return fd;
	old = atomic_exchange_explicit(&file_fd, -1, memory_order_acq_rel);
	if (old >= 0)
		close(old);
	snprintf(file_path, sizeof(file_path), "%s", path);
	atomic_store_explicit(&file_errno, 0, memory_order_relaxed);
	atomic_store_explicit(&file_fd, fd, memory_order_release);
	return 0;
}

int log_close(struct err *e)
{
	int fd = atomic_exchange_explicit(&file_fd, -1, memory_order_acq_rel);
	int failed;

	if (fd < 0)
		return 0;
	/* some file systems tell only now that there was no space */
	failed = -sync_fully(fd);
	failed = failed == EINVAL || failed == EROFS ? 0 : failed;
	if (close(fd) != 0 && !failed && errno != EINTR)
		failed = errno;
	if (atomic_load_explicit(&file_errno, memory_order_relaxed))
		failed = atomic_load_explicit(&file_errno, memory_order_relaxed);
	if (failed)
		return err_sys(e, failed, "the log file '%s' is incomplete", file_path);
	return 0;
}

void log_leave(void)
{
	atomic_store_explicit(&file_fd, -1, memory_order_release);
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

/* Later lines are still tried, as space may be freed. */
static void write_to_file(int fd, const char *s, size_t n)
{
	int failed = -write_fully(fd, s, n), none = 0;

	if (failed)
		atomic_compare_exchange_strong_explicit(&file_errno, &none, failed,
							memory_order_relaxed, memory_order_relaxed);
}

unsigned log_console_lines(void)
{
	return atomic_load_explicit(&console_lines, memory_order_relaxed);
}

void log_console_count(void)
{
	atomic_fetch_add_explicit(&console_lines, 1, memory_order_relaxed);
}

__attribute__((format(printf, 4, 0))) static void put_line(enum log_level level, bool console_gets,
							   enum say_keep keep, const char *fmt,
							   va_list ap)
{
	const struct log_sink *sink = atomic_load_explicit(&console_sink, memory_order_acquire);
	char raw[2048], line[2048];
	int head, body, fd;
	size_t n;

	if ((int)level < atomic_load_explicit(&threshold, memory_order_relaxed))
		return;
	head = snprintf(line, sizeof(line), "[%s] ", level_name(level));
	body = vsnprintf(raw, sizeof(raw), fmt, ap);
	if (body < 0)
		return;
	n = utf8_whole(raw, strlen(raw));
	n = (size_t)head + say_escape(line + head, sizeof(line) - (size_t)head - 1, raw, n, keep);
	line[n++] = '\n';
	if (console_gets)
		log_console_count();
	if (console_gets && sink)
		sink->line(sink->arg, line, n);
	else if (console_gets)
		(void)write_fully(STDERR_FILENO, line, n); /* nowhere left to report to */
	fd = atomic_load_explicit(&file_fd, memory_order_acquire);
	if (fd >= 0)
		write_to_file(fd, line, n);
}

void log_msg(enum log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_line(level, on_console(level), SAY_LINE, fmt, ap);
	va_end(ap);
}

void log_text(enum log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_line(level, on_console(level), SAY_LINES, fmt, ap);
	va_end(ap);
}

void log_file_line(const char *fmt, ...)
{
	int fd = atomic_load_explicit(&file_fd, memory_order_acquire), n;
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (n < 0 || fd < 0)
		return;
	if ((size_t)n > sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';
	write_to_file(fd, line, (size_t)n);
}

void log_noted(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_line(LOG_WARNING, on_console(LOG_OUTPUT), SAY_LINE, fmt, ap);
	va_end(ap);
}
