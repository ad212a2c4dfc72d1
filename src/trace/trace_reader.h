#pragma once
/* The readers of logs, as rows: the build writes the table from the TRACE_READER lines. */
#include <zlib.h>

#include "base/buf.h"
#include "trace/job_log.h"

#define TRACE_HEAD 4096 /* bytes of the beginning of a file by which it is recognised */

struct trace_reader {
	const char *name;   /* `strace`, for --from and messages */
	const char *people; /* "strace -f -ttt -T" */
	/* Whether this reader reads the file or folder. `head`: its first bytes after gzip is
	 * unpacked (n of them, 0 for a folder). The content decides, never the name. */
	bool (*recognize)(const char *path, bool folder, const unsigned char *head, size_t n);
	/* Adds the logs of one job: all `paths` are recognised by this reader. A file that is cut
	 * or damaged in part gives what can be read and a note; one of which nothing can be read
	 * gives an error with file and offset or line. */
	int (*read)(struct job *job, const char *const *paths, size_t n, struct err *e);
};

extern const struct trace_reader *const trace_reader_table[]; /* NULL at the end */

/* Appends what they read: "Darshan, strace -f, ..." */
void trace_readers_put(struct buf *out);
/* Reads the logs of one job, all of one kind, detected by content, and finishes the job. */
int job_read(struct job *job, const char *const *paths, size_t n, struct err *e);

/* ---- lines ---- */

/* The lines of logs, plain or gzip. A line may be of any length: of a quoted string what exceeds
 * TRACE_STRING bytes is left out, and of a line what exceeds TRACE_LINE. The file is open only
 * while a piece of it is read, so that thousands of logs can be read side by side. Memory of each:
 * its longest line and 64 KiB, or `piece` and 40 KiB more of a gzip file. */
#define TRACE_STRING (24U << 10)
#define TRACE_LINE (1U << 20)

struct trace_lines {
	const char *path; /* not owned */
	uint64_t line;    /* number of the line that was had last, from 1 */
	bool whole;       /* that line ended in a newline and nothing of it was left out */
	bool damaged;     /* the gzip data are cut or broken behind what was read */
	int64_t at;       /* in the file */
	int64_t unpacked; /* bytes that came out of it; of a gzip file */
	size_t piece;
	unsigned char *in, *out;
	size_t have, used; /* of `out`, or of `in` of a plain file */
	bool gzip, began, ended;
	z_stream z;
	struct buf text;
};

void trace_lines_open(struct trace_lines *l, const char *path, size_t piece);
void trace_lines_close(struct trace_lines *l);
/* The next line that is not empty, without its newline, in l->text: 1; the end: 0; negative: it
 * cannot be read, or is a gzip file that unpacks to far more than a log does. NULs in it are made
 * blanks. */
int trace_lines_next(struct trace_lines *l, struct err *e);

/* The same file by its JSON values instead, wherever its lines break; l->line counts the newlines
 * before what comes next. All return 0 where the file ends. */
/* The next byte that is none of `skip`: 1. `l->used++` takes it. */
int trace_lines_peek(struct trace_lines *l, const char *skip, char *c, struct err *e);
/* The value that begins with the next byte, in l->text: 1. It is one only if it is JSON: it ends
 * with its last bracket or quote, before what no number has, or with a string that is not closed on
 * its line. */
int trace_lines_value(struct trace_lines *l, struct err *e);
