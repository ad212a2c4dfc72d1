#pragma once
/* Darshan logs, versions 3.00 to 3.41 and later minors, without Darshan's library. The format is
 * that of darshan-log-format.h of Darshan 3.5.0 and of what its runtime writes.
 *
 * A log is read region by region. What is wrong with one region is a note and leaves the others:
 * only a file without a usable header is no log. Counts in the file are never trusted: nothing is
 * allocated from them, and each region unpacks to at most DARSHAN_REGION_MAX bytes.
 * Memory: 200 KiB, and the names (at most DARSHAN_NAMES_MAX bytes of text and 24 bytes a name). */
#include <bzlib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"

/* ---- layouts of records: a row for each module and version, with the names of the counters ----
 */

/* From darshan-*-log-format.h of Darshan 3.5.0 and the conversions of its utilities. */

/* Module ids as log version 3.41 numbers them. */
enum darshan_module {
	DARSHAN_POSIX = 1,
	DARSHAN_MPIIO,
	DARSHAN_H5F,
	DARSHAN_H5D,
	DARSHAN_PNETCDF_FILE,
	DARSHAN_PNETCDF_VAR,
	DARSHAN_BGQ,
	DARSHAN_LUSTRE,
	DARSHAN_STDIO,
	DARSHAN_DXT_POSIX,
	DARSHAN_DXT_MPIIO,
	DARSHAN_MDHIM,
	DARSHAN_APXC,
	DARSHAN_APMPI,
	DARSHAN_HEATMAP,
	DARSHAN_DFS,
	DARSHAN_DAOS,
	DARSHAN_KNOWN, /* one more than the last */
	DARSHAN_MODULES = 64
};

#define DARSHAN_INTS 120   /* most integers of a record */
#define DARSHAN_DOUBLES 17 /* most doubles */
#define DARSHAN_RECORD_MAX 1136

/* What a record is made of. `absent` tells which counters of the newest version this one lacks, as
 * indices with a negative end (NULL: none); they read as -1 (`absent_zero`, where it is not 0: as
 * 0). */
struct darshan_layout {
	enum darshan_module module;
	uint32_t version;
	uint16_t ints, doubles; /* of the newest version: indices of struct darshan_record */
	uint16_t before;        /* bytes between id, rank and the integers that are skipped */
	uint16_t after;         /* bytes after the doubles that are skipped */
	bool has_file_id;       /* the id of the file that the record is part of comes first */
	/* `dropped` integers after the first `keep` are of no later version; a record in which
	 * the first of them is above 0 is left out, as Darshan's tools do */
	uint16_t keep, dropped;
	/* the record has `merged` integers in all, whose sum is the integer `merged_into` */
	uint16_t merged, merged_into;
	const int8_t *absent_int, *absent_double;
	int8_t absent_zero;
	const char **int_name, **double_name; /* valid while the program runs */
	const char *file_id_name; /* of the newest version; NULL: its records have none */
};

/* The layout of fixed-size records; NULL for other modules and versions. */
const struct darshan_layout *darshan_layout(unsigned module, uint32_t version);
/* Bytes of one record. */
size_t darshan_record_bytes(const struct darshan_layout *l);
/* As Darshan's tools call the module: "MPI-IO"; "module 40" of one that is not known here. */
const char *darshan_module_name(unsigned module);
/* The newest version of the module that is known here; 0: none is read. */
uint32_t darshan_newest(unsigned module);

/* Indices that have a meaning here. */
enum darshan_posix {
	POSIX_OPENS,
	POSIX_FILENOS,
	POSIX_DUPS,
	POSIX_READS,
	POSIX_WRITES,
	POSIX_SEEKS,
	POSIX_STATS,
	POSIX_MMAPS,
	POSIX_FSYNCS,
	POSIX_FDSYNCS,
	POSIX_RENAMED_FROM = 12,
	POSIX_BYTES_READ = 14,
	POSIX_BYTES_WRITTEN,
	POSIX_MAX_BYTE_READ,
	POSIX_MAX_BYTE_WRITTEN,
	POSIX_CONSEC_READS,
	POSIX_SEQ_READS = 20,
	POSIX_SIZE_READ = 29,
	POSIX_SIZE_WRITE = 39,
	POSIX_ACCESS = 57,
	POSIX_ACCESS_COUNT = 61,
};
enum darshan_posix_f {
	POSIX_F_OPEN_START,
	POSIX_F_READ_START,
	POSIX_F_WRITE_START,
	POSIX_F_CLOSE_START,
	POSIX_F_OPEN_END,
	POSIX_F_READ_END,
	POSIX_F_WRITE_END,
	POSIX_F_CLOSE_END,
	POSIX_F_READ_TIME,
	POSIX_F_WRITE_TIME,
	POSIX_F_META_TIME,
};
enum darshan_stdio {
	STDIO_OPENS,
	STDIO_FDOPENS,
	STDIO_READS,
	STDIO_WRITES,
	STDIO_SEEKS,
	STDIO_FLUSHES,
	STDIO_BYTES_WRITTEN,
	STDIO_BYTES_READ,
	STDIO_MAX_BYTE_READ,
	STDIO_MAX_BYTE_WRITTEN,
};
enum darshan_stdio_f {
	STDIO_F_META_TIME,
	STDIO_F_WRITE_TIME,
	STDIO_F_READ_TIME,
	STDIO_F_OPEN_START,
	STDIO_F_CLOSE_START,
	STDIO_F_WRITE_START,
	STDIO_F_READ_START,
	STDIO_F_OPEN_END,
	STDIO_F_CLOSE_END,
	STDIO_F_WRITE_END,
	STDIO_F_READ_END,
};

/* ---- regions as streams ---- */

/* A compressed region of a log: complete zlib or bzip2 streams one behind another, or plain bytes.
 * Memory: DARSHAN_WINDOW twice, and the library's state. */

#define DARSHAN_WINDOW 32768

enum darshan_compression { DARSHAN_ZLIB, DARSHAN_BZIP2, DARSHAN_PLAIN };

struct darshan_stream {
	int fd;
	enum darshan_compression kind;
	uint64_t at, end;   /* of the compressed bytes that were not read yet */
	uint64_t given;     /* bytes that came out */
	uint64_t ceiling;   /* of `given` */
	bool open;          /* in the middle of a compressed stream */
	const char *broken; /* why nothing more comes: a clause; NULL at the end of the region */
	union {
		z_stream z;
		bz_stream bz;
	};
	size_t in_n, in_at, out_n, out_at;
	unsigned char in[DARSHAN_WINDOW], out[DARSHAN_WINDOW];
};

/* Bytes [at, at + len) of the file, which must exist. At most `ceiling` bytes come out. */
void darshan_stream_open(struct darshan_stream *s, int fd, enum darshan_compression kind,
			 uint64_t at, uint64_t len, uint64_t ceiling);
/* Takes up to n bytes to `to` (NULL: nowhere). Fewer than n: the end, or s->broken says why. */
size_t darshan_stream_take(struct darshan_stream *s, void *to, size_t n);
/* Bytes up to and with the first NUL, at most max of them to `to`, which is then NUL-terminated;
 * longer text is cut. The bytes taken, 0 at the end; *whole tells whether a NUL ended them. `to`
 * has room for max + 1. */
size_t darshan_stream_text(struct darshan_stream *s, char *to, size_t max, bool *whole);
void darshan_stream_close(struct darshan_stream *s);

/* ---- logs ---- */

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
	struct map
		names; /* where in names_text, by id; the key of its hashes is the process's own */
	bool damaged;  /* a region is missing or cut */
	struct texts notes; /* what is missing or damaged, and what was left out: sentences */
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
