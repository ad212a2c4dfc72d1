#pragma once
/* Messages for people, on stderr and, once log_open was called, in the run's log file. One write(2)
 * a line, so that lines of several threads never mix. Nothing in the timed path logs. */
#include "base/err.h"

/* DLIO's levels and their numbers (its log shows OUTPUT at the default threshold WARNING). */
enum log_level {
	LOG_DEBUG = 10,
	LOG_INFO = 20,
	LOG_WARNING = 30,
	LOG_OUTPUT = 35,
	LOG_ERROR = 40,
};

void log_set_level(enum log_level level);
/* What of it also goes to stderr; the file gets everything at or above the level. Default: all. */
enum log_console { LOG_CONSOLE_ERRORS, LOG_CONSOLE_WARNINGS, LOG_CONSOLE_ALL };
void log_set_console(enum log_console what);
/* Lines for stderr go to this instead, whole, with their line break, from any thread, while it is
 * set: for who draws on that terminal. It must live until the process ends; NULL: none. */
struct log_sink {
	void (*line)(void *arg, const char *text, size_t n);
	void *arg;
};
void log_set_sink(const struct log_sink *sink);
/* Creates the log file, in the place of what has its name, links included (file_make_ours). */
int log_open(const char *path, struct err *e);
/* Syncs and closes it. Negative when a line was not written whole since log_open, or this failed:
 * `e` names the file. Does nothing when none is open. */
int log_close(struct err *e);

/* Lines go to no file any more, and the file stays open: closing one on storage that does not
 * answer does not return. */
void log_leave(void);

/* One line: what could command a terminal, and line breaks, are escaped (base/say.h). */
void log_msg(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Text of several lines, which only the program composes. */
void log_text(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A line that only the file gets, whatever the levels. */
void log_file_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A warning that the console gets only with LOG_CONSOLE_ALL: what other words say there anyway. */
void log_noted(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Lines that went to stderr or to the sink so far. */
unsigned log_console_lines(void);
/* One more, that someone else wrote there. */
void log_console_count(void);

#define log_info(...) log_msg(LOG_INFO, __VA_ARGS__)
#define log_warning(...) log_msg(LOG_WARNING, __VA_ARGS__)
#define log_output(...) log_msg(LOG_OUTPUT, __VA_ARGS__)
#define log_error(...) log_msg(LOG_ERROR, __VA_ARGS__)
