#pragma once
/* JSON of any size read value by value in constant memory, plain or through gzip: what reading a
 * trace needs. Private to this folder. Functions return 0, TRACE_END where the file ends within
 * what was begun, or ERR_DATA with the file and the line. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define TRACE_TEXT_MAX 4096u /* longer texts are cut */
#define TRACE_END (-1)       /* no code of an error */

struct trace_text {
	char s[TRACE_TEXT_MAX];
	size_t n;
};

struct trace_scan {
	void *file;
	char *path;
	unsigned char *chunk;
	unsigned used, have;
	uint64_t line; /* from 1 */
	bool cut;      /* TRACE_END was returned */
	int failed;    /* errno, where the file ends because it could not be read on; else 0 */
	struct trace_text word;
};

int trace_scan_open(struct trace_scan *s, const char *path, struct err *e);
void trace_scan_close(struct trace_scan *s);
/* "trace 'FILE', line N: <what>"; ERR_DATA. */
int trace_scan_bad(struct trace_scan *s, struct err *e, const char *what);
/* Notes that the file ended too early; TRACE_END. */
int trace_scan_early(struct trace_scan *s);
/* The next byte, or TRACE_END. A gzip stream that breaks off ends there. */
int trace_scan_peek(struct trace_scan *s);
int trace_scan_take(struct trace_scan *s);
/* Skips blanks, and commas too with `commas`; the byte after them, or TRACE_END. */
int trace_scan_blanks(struct trace_scan *s, bool commas);
/* A string's text, or a number, true, false, null as written. */
int trace_scan_scalar(struct trace_scan *s, struct trace_text *t, struct err *e);
/* Any value. Overwrites `word`. */
int trace_scan_skip(struct trace_scan *s, struct err *e);
/* The next key of an object into `word`: 1, its value being next; 0 at the end of the object.
 * `first`: nothing of it was read but its bracket. */
int trace_scan_key(struct trace_scan *s, bool first, struct err *e);
