#pragma once
/* The lines of logs, plain or gzip. A line may be of any length: of a quoted string what exceeds
 * TRACE_STRING bytes is left out, and of a line what exceeds TRACE_LINE. The file is open only
 * while a piece of it is read, so that thousands of logs can be read side by side. Memory of each:
 * its longest line and 64 KiB, or `piece` and 40 KiB more of a gzip file. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/err.h"

#define TRACE_STRING (24U << 10)
#define TRACE_LINE (1U << 20)

struct trace_lines {
	const char *path; /* not owned */
	uint64_t line;    /* number of the line that was had last, from 1 */
	bool whole;       /* that line ended in a newline and nothing of it was left out */
	bool damaged;     /* the gzip data are cut or broken behind what was read */
	int64_t at;       /* in the file */
	size_t piece;
	unsigned char *in, *out;
	size_t have, used; /* of `out`, or of `in` of a plain file */
	bool gzip, began, ended;
	z_stream z;
	struct buf text;
};

void trace_lines_open(struct trace_lines *l, const char *path, size_t piece);
void trace_lines_close(struct trace_lines *l);
/* The next line without its newline in l->text: 1; the end: 0; negative: cannot be read. NULs in
 * it are made blanks. */
int trace_lines_next(struct trace_lines *l, struct err *e);
