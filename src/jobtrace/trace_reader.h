#pragma once
/* The readers of logs, as rows: the build writes the table from the TRACE_READER lines. */
#include "jobtrace/job_log.h"

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

/* Reads the logs of one job, all of one kind, detected by content, and finishes the job. */
int job_read(struct job *job, const char *const *paths, size_t n, struct err *e);
