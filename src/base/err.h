#pragma once
/* Errors as sentences.
 *
 * Every function that can fail takes a `struct err *` as its last parameter, returns 0 (or a count)
 * on success and a negative code on failure. The code is a negative errno value or one of ERR_*.
 * `struct err` is written only on failure. It may be NULL where the caller only wants the code. */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#define ERR_TEXT_MAX 1024

struct err {
	int code;
	bool named; /* the sentence names the file that it is about */
	char text[ERR_TEXT_MAX];
};

enum {
	ERR_USAGE = -10001,    /* the command line or the workload is wrong: exit code 2 */
	ERR_TARGET = -10002,   /* a checked target, such as AU, was missed: exit code 3 */
	ERR_DATA = -10003,     /* bytes on a store are not what their format or manifest says */
	ERR_CANCELED = -10004, /* the run was told to stop; not a failure of the callee */
	ERR_ABSENT = -10005,   /* a feature that this build or version does not have */
	ERR_KIND = -10006,     /* no regular file where one is read: a FIFO, a socket, a device */
};

/* Sets `e` to the formatted sentence and returns `code`. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int err_vset(struct err *e, int code, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));
/* As err_set for the positive errno value `errnum`: appends ": <strerror>" and returns -errnum. */
int err_sys(struct err *e, int errnum, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Puts "<formatted>: " before the text of `e` and returns e->code. `e` must not be NULL. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same with the name of the file that the sentence is about; nothing when the sentence names it
 * already. Returns `rc`; `e` may be NULL. */
int err_name(int rc, struct err *e, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Says of a sentence that it names its file. Returns `rc`; `e` may be NULL. */
int err_named(int rc, struct err *e);
/* Leaves the code of a failure that ends the process for the one that started it: in the new file
 * that this variable of the environment names, if it is set. The first code stays. */
#define ERR_CODE_FILE "STOKER_ERR_CODE_FILE"
void err_leave_code(int code);
/* Exit status for a code: 0, 1 failed, 2 usage, 3 target missed. */
int err_exit_status(int code);
/* Puts "'path': " before a sentence that does not name its file yet, and returns rc. */
int err_in_path(int rc, const char *path, struct err *e);
