#pragma once
/* A Darshan log as text: its counters one a line, as `darshan-parser` prints them, and its requests
 * as `darshan-dxt-parser` does, with times in full. */
#include <stddef.h>

#include "base/err.h"

/* Takes text of whole lines, which is escaped for people. */
typedef void darshan_put(void *context, const char *text, size_t n);

/* All of the log at `path`: lines of `#` with the job; of each module the lines
 *	module rank record counter value name mount type
 * separated by tabs, and of modules with requests
 *	module rank record read|write number offset length begin end thread host name
 * with "N/A" where the log lacks a thread or offset; for POSIX, MPI-IO, STDIO, DFS and DAOS then
 * `total_COUNTER: value` over all records, and `# agg_...` as `darshan-parser --perf`. What the log
 * lacks, or is damaged, follows as lines `# note: ...`. Memory: that of darshan_log.h, and at most
 * 128 bytes a rank that has records of files. Negative if the file is no Darshan log. */
int darshan_print(const char *path, darshan_put *put, void *context, struct err *e);
