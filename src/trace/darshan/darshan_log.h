#pragma once
/* Darshan logs, versions 3.00 to 3.41 and later minors, without Darshan's library. The format is
 * that of darshan-log-format.h of Darshan 3.5.0 and of what its runtime writes.
 *
 * A log is read region by region. What is wrong with one region is a note and leaves the others:
 * only a file without a usable header is no log. Counts in the file are never trusted: nothing is
 * allocated from them, and each region unpacks to at most DARSHAN_REGION_MAX bytes.
 * Memory: 200 KiB, and the names (at most DARSHAN_NAMES_MAX bytes of text and 24 bytes a name). */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "trace/darshan/darshan_layout.h"

#define DARSHAN_REGION_MAX (UINT64_C(1) << 32)
#define DARSHAN_NAMES_MAX (UINT64_C(1) << 28)
#define DARSHAN_NAME_MAX 4096 /* bytes of one name that are kept */
#define DARSHAN_HOST 64
#define DARSHAN_BINS_MAX 16384 /* of one row of bytes over time; Darshan has 200 */

struct darshan_region {
	uint64_t at, len; /* compressed */
	uint32_t version;
	bool usable; /* it is there, and lies within the file */
};

struct darshan_mount {
	const char *path, *type; /* within struct darshan_log.text */
};

struct darshan_name {
	uint64_t id, at; /* of the text in names_text, + 1; 0: free */
};

struct darshan_log {
	char *path;
	int fd;
	uint64_t size;
	unsigned minor; /* of the log's version 3.minor */
	bool swap;      /* the log has the other byte order */
	uint8_t compression;
	uint64_t partial; /* bit id: the module ran out of memory, and its data are incomplete */
	struct darshan_region job, name, module[DARSHAN_MODULES];
	/* of the job; zero where `has_job` is false */
	bool has_job, nanoseconds; /* the latter: of begin and end, not whole seconds */
	int64_t uid, start_s, start_ns, end_s, end_ns, ranks, job_id;
	char *text;           /* the job's texts, NUL-terminated each */
	const char *metadata; /* `key=value` lines */
	const char *command;
	struct darshan_mount *mount; /* the longest path first */
	size_t mounts;
	struct buf names_text;
	struct darshan_name *names;
	size_t names_n, name_slots;
	bool damaged;       /* a region is missing or cut */
	struct texts notes; /* what is missing or damaged, and what was left out: sentences */
	uint64_t hash_key;
};

/* Whether the first n bytes of a file are those of a Darshan log. */
bool darshan_is_log(const unsigned char *head, size_t n);
/* Opens the log and reads header, job and names. Negative if the file is no log or cannot be
 * read; then nothing is to be closed. */
int darshan_open(struct darshan_log *log, const char *path, struct err *e);
void darshan_close(struct darshan_log *log);
/* The name of a record; NULL where the log has none. */
const char *darshan_name(const struct darshan_log *log, uint64_t id);
/* The mount of a path; NULL. */
const struct darshan_mount *darshan_mount_of(const struct darshan_log *log, const char *path);
/* The value of `key` in the job's metadata, cut to `size`; false if it is not there. */
bool darshan_metadata(const struct darshan_log *log, const char *key, char *value, size_t size);
/* Seconds of the job. Before version 3.41 the log has whole seconds alone, and 1 is added, as
 * Darshan does. 0 where the job is unknown. */
double darshan_run_s(const struct darshan_log *log);

struct darshan_record {
	const struct darshan_layout *layout;
	uint64_t id;
	int64_t rank; /* -1: one record of all ranks */
	uint64_t file_id;
	int64_t ints[DARSHAN_INTS];
	double doubles[DARSHAN_DOUBLES];
};

/* The requests of a process on a file: all writes, then all reads, each in their order. */
struct darshan_trace {
	unsigned module; /* DARSHAN_DXT_POSIX or DARSHAN_DXT_MPIIO */
	bool has_threads, has_offsets;
	uint64_t id;
	int64_t rank, shared;
	char host[DARSHAN_HOST + 1];
	int64_t writes, reads; /* as the log says; fewer may come where it is damaged */
};

struct darshan_segment {
	bool write;
	int64_t index; /* among the writes or the reads */
	int64_t offset, length;
	double begin_s, end_s; /* of the log's begin; may be any double */
	uint64_t thread;
};

/* Bytes over time. */
struct darshan_heat {
	uint64_t id;
	int64_t rank;
	double bin_s;
	size_t bins;
	const int64_t *written, *read;
};

struct darshan_stripes {
	uint64_t id;
	int64_t rank;
	int64_t components, stripes;
};

#define DARSHAN_COMPONENT_INTS 7
enum {
	DARSHAN_STRIPE_SIZE,
	DARSHAN_STRIPE_COUNT,
	DARSHAN_STRIPE_PATTERN,
	DARSHAN_STRIPE_FLAGS,
	DARSHAN_EXTENT_BEGIN,
	DARSHAN_EXTENT_END,
	DARSHAN_MIRROR
};

/* What the walk calls; any may be NULL. A negative return ends the walk and is its result. */
struct darshan_walk {
	void *context;
	int (*record)(void *context, const struct darshan_record *r, struct err *e);
	int (*trace)(void *context, const struct darshan_trace *t, struct err *e);
	int (*segment)(void *context, const struct darshan_trace *t,
		       const struct darshan_segment *s, struct err *e);
	int (*trace_end)(void *context, const struct darshan_trace *t, struct err *e);
	int (*heat)(void *context, const struct darshan_heat *h, struct err *e);
	int (*stripes)(void *context, const struct darshan_stripes *s, struct err *e);
	/* component number `index` of s, its counters and pool, and each of its OSTs */
	int (*component)(void *context, const struct darshan_stripes *s, int64_t index,
			 const int64_t *counter, const char *pool, const int64_t *ost,
			 struct err *e);
};

/* Goes through the records of a module. Damage becomes a note of the log: what came before it
 * counts. Records with a rank that the job does not have are left out and noted. */
int darshan_walk(struct darshan_log *log, unsigned module, const struct darshan_walk *w,
		 struct err *e);

/* ---- as text ---- */

/* A Darshan log as text: its counters one a line, as `darshan-parser` prints them, and its requests
 * as `darshan-dxt-parser` does, with times in full. */
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
