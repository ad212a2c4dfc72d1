#pragma once
/* From calls by descriptor and path to the events of a job: for logs of system calls. A reader says
 * what each call was and what it returned; here descriptors become files and offsets, paths are
 * made absolute, and the events are added.
 *
 * Times are in the log's clock until call_log_finish makes them relative to the first. A call whose
 * result the log does not have is not given here. Bounds: those of descriptors; CALLERS_MAX
 * threads at a time; CALL_FILES_MAX files, later ones are one file and a note; 24 bytes for each of
 * at most CALL_MAPS_MAX mappings. One thread. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/map.h"
#include "trace/job_log.h"

/* ---- descriptors (descriptors.c) ---- */

/* Which file, and where in it, a descriptor of a process means: tables of descriptors as the kernel
 * has them. A table belongs to a process, or to several that share it (CLONE_FILES). Its entries
 * lead to open file descriptions, which hold the position and are shared by dup, fork and passing
 * over a socket (open(2), "Open file descriptions").
 *
 * A reader of logs says what the calls were, in their order, and asks for files and offsets. What a
 * log does not show is unknown (JOB_UNKNOWN), never guessed: a position is unknown until a seek if
 * the open was not seen.
 *
 * A table is an array, which a fork copies. Bounds: DESCRIPTORS_OPEN descriptors of a table, and
 * DESCRIPTORS_ENTRIES in all (72 MiB with what they lead to); a table that would exceed them is
 * emptied and unknown from then on, which is counted (descriptors_lost). Beside this 8 bytes for
 * each file of the job and 24 for each table. One thread.
 */

#define DESCRIPTORS_OPEN (UINT32_C(1) << 16)
#define DESCRIPTORS_ENTRIES (UINT32_C(1) << 21)
#define DESCRIPTOR_MAX INT32_MAX /* larger ones, and negative ones, are never open */

enum descriptor_flags {
	DESCRIPTOR_CLOEXEC = 1 << 0, /* of the descriptor: closed by exec */
	DESCRIPTOR_APPEND = 1 << 1,  /* of the description: writes go to the end of the file */
	DESCRIPTOR_STREAM = 1 << 2,  /* a pipe, socket or eventfd: there is no position */
};

struct descriptors;

struct descriptors *descriptors_new(void);
void descriptors_free(struct descriptors *d); /* accepts NULL */

/* Tables: a number each, valid until it is dropped as often as it was made or shared. */

uint32_t descriptors_table(struct descriptors *d); /* an empty one */
/* fork, vfork: the child's table, in which every description is shared with the parent's. */
uint32_t descriptors_fork(struct descriptors *d, uint32_t table);
/* clone with CLONE_FILES: the same table. Returns it. */
uint32_t descriptors_share(struct descriptors *d, uint32_t table);
/* exec: ends sharing and closes what is close-on-exec. Returns the caller's table from now on. */
uint32_t descriptors_exec(struct descriptors *d, uint32_t table);
/* unshare(CLONE_FILES), close_range with UNSHARE: as exec without closing. */
uint32_t descriptors_unshare(struct descriptors *d, uint32_t table);
/* exit of one that has the table. */
void descriptors_drop(struct descriptors *d, uint32_t table);

/* A new description of `file` (an index of the job) at `position`, which is 0 after an open, and
 * JOB_UNKNOWN where the open was not seen. What the number meant before is closed. */
void descriptors_open(struct descriptors *d, uint32_t table, int64_t fd, uint32_t file,
		      int64_t position, unsigned flags);
/* dup, fcntl(F_DUPFD), and SCM_RIGHTS with two tables: `to` of `to_table` leads to the description
 * of `fd`. Where that is unknown, `to` becomes unknown. Flags: DESCRIPTOR_CLOEXEC or 0. */
void descriptors_dup(struct descriptors *d, uint32_t table, int64_t fd, uint32_t to_table,
		     int64_t to, unsigned flags);
void descriptors_close(struct descriptors *d, uint32_t table, int64_t fd);
void descriptors_close_range(struct descriptors *d, uint32_t table, int64_t first, int64_t last);
void descriptors_set_cloexec(struct descriptors *d, uint32_t table, int64_t fd, bool on);
void descriptors_set_append(struct descriptors *d, uint32_t table, int64_t fd, bool on);

/* The file of a descriptor, JOB_NONE where it is unknown. */
uint32_t descriptors_file(const struct descriptors *d, uint32_t table, int64_t fd);
/* As descriptors_open at an unknown position, unless the descriptor leads to `file` already, or to
 * what was renamed to it: for logs that name the file beside each descriptor. Returns the file of
 * the descriptor. */
uint32_t descriptors_expect(struct descriptors *d, uint32_t table, int64_t fd, uint32_t file,
			    unsigned flags);

/* A read or write of `n` bytes at the position, which moves behind them. Returns where they lie,
 * JOB_UNKNOWN. n of JOB_UNKNOWN makes the position unknown; negative ones (errors) move nothing. */
int64_t descriptors_transfer(struct descriptors *d, uint32_t table, int64_t fd, int64_t n,
			     bool write);
/* The same at an offset of the call (pread, pwrite), which leaves the position. Returns where they
 * lie: a write to a descriptor that appends is at the end (pwrite(2), BUGS). */
int64_t descriptors_transfer_at(struct descriptors *d, uint32_t table, int64_t fd, int64_t offset,
				int64_t n, bool write);
/* The position, after a seek whose result the log has; JOB_UNKNOWN where it has not. */
void descriptors_seek(struct descriptors *d, uint32_t table, int64_t fd, int64_t position);
int64_t descriptors_position(const struct descriptors *d, uint32_t table, int64_t fd);

/* ---- files ---- */

/* The size of a file, which the log shows (stat, truncate, an open that created or truncated it):
 * where appended bytes go. */
void descriptors_size(struct descriptors *d, uint32_t file, int64_t size);
int64_t descriptors_size_of(const struct descriptors *d, uint32_t file); /* JOB_UNKNOWN */
/* `from` has the name of `to` from now on; descriptors of `from` still lead to `from`. */
void descriptors_rename(struct descriptors *d, uint32_t from, uint32_t to);

/* Descriptors that were not kept because of the bounds. */
uint64_t descriptors_lost(const struct descriptors *d);

/* ---- calls ---- */

#define CALLERS_MAX (UINT32_C(1) << 20)
#define CALL_FILES_MAX (UINT32_C(1) << 24)
#define CALL_MAPS_MAX (UINT32_C(1) << 18)
#define CALL_CWD (-100) /* AT_FDCWD */

/* A thread that makes calls. */
struct caller {
	uint32_t thread, process; /* of the job */
	uint32_t table;           /* of descriptors */
	const char *cwd;          /* ""; of the job's names */
};

struct call {
	struct caller *caller;
	int64_t begin_ns, end_ns; /* JOB_UNKNOWN */
	int64_t result;           /* as the system's: -errno */
};

struct call_log {
	struct job *job;
	struct descriptors *descriptors;
	struct err *e; /* of call_log_failed */
	bool failed;
	uint32_t line; /* of the present call; 0: not known */
	unsigned seen; /* JOB_SEES_*: that calls of this kind occurred */
	uint64_t streams, callers;
	struct map mapped; /* files by address and process */
};

void call_log_init(struct call_log *l, struct job *job, struct err *e);
void call_log_release(struct call_log *l);
/* Makes all times relative to the least one, which is returned (JOB_UNKNOWN without any), and notes
 * what the bounds left out. */
int64_t call_log_finish(struct call_log *l);

/* ---- who calls ---- */

enum caller_flags {
	CALLER_THREAD = 1 << 0, /* of the parent's process */
	CALLER_FILES = 1 << 1,  /* shares the parent's descriptors */
};

/* The first thread of a process (parent NULL or the one that forked it), or another one. False and
 * the error: more than CALLERS_MAX. */
bool caller_begin(struct call_log *l, struct caller *c, const struct caller *parent, unsigned flags,
		  int64_t pid, const char *host);
void caller_end(struct call_log *l, struct caller *c);

/* ---- files ---- */

/* A path as a call names it: absolute with the folder `dir` (CALL_CWD: where the process is), when
 * that is known. `folder`: it is known to be one. */
uint32_t call_path(struct call_log *l, const struct caller *c, int64_t dir, const char *path,
		   bool folder);
/* A file that a log names beside a descriptor: absolute, or `pipe:[5]`, `socket:[7]`. */
uint32_t call_named(struct call_log *l, const char *name, bool folder);
bool call_is_stream(const struct call_log *l, uint32_t file);
/* The file of a descriptor, where one is known. */
uint32_t call_file_of(const struct call_log *l, const struct caller *c, int64_t fd);
/* A pipe or socket that the log does not name: a name of its own. */
uint32_t call_stream(struct call_log *l, enum job_file_kind kind);

/* ---- what was called ---- */

/* Whether a call of this name (n bytes) is one of `names`, which blanks separate. */
bool call_is(const char *names, const char *name, size_t n);
/* The flags of open(2) that the mode of fopen(3) means; n bytes, of which there may be none. */
int call_mode_flags(const char *mode, size_t n);
/* Where a seek leads that does not return it; JOB_UNKNOWN. */
int64_t call_seek_target(const struct call_log *l, const struct caller *c, int64_t fd,
			 int64_t offset, int64_t whence);

/* flags as of open(2), in Linux' numbers for x86-64. */
void call_open(struct call_log *l, const struct call *c, uint32_t file, int flags);
/* A descriptor of a stream or of something else without positions. */
void call_make(struct call_log *l, const struct call *c, int64_t fd, uint32_t file, bool cloexec);
void call_close(struct call_log *l, const struct call *c, int64_t fd);
/* A read or write (kind) of `asked` bytes, at `offset` or, if that is JOB_UNKNOWN, at the position.
 * result: what was moved. */
void call_transfer(struct call_log *l, const struct call *c, enum job_event_kind kind, int64_t fd,
		   int64_t asked, int64_t offset);
void call_seek(struct call_log *l, const struct call *c, int64_t fd, int64_t offset, int whence);
/* Calls without data: `file` is the one they name, or that of `fd`. */
void call_other(struct call_log *l, const struct call *c, enum job_event_kind kind, uint32_t file,
		int64_t fd, int64_t asked, unsigned flags);
void call_stat(struct call_log *l, const struct call *c, uint32_t file, int64_t fd, int64_t size);
void call_truncate(struct call_log *l, const struct call *c, uint32_t file, int64_t fd,
		   int64_t size);
void call_rename(struct call_log *l, const struct call *c, uint32_t from, uint32_t to);
void call_map(struct call_log *l, const struct call *c, int64_t fd, uint64_t address, int64_t asked,
	      int64_t offset);
void call_unmap(struct call_log *l, const struct call *c, uint64_t address, int64_t asked);
/* JOB_ADVISE and JOB_SYNC of mapped memory. */
void call_at_address(struct call_log *l, const struct call *c, enum job_event_kind kind,
		     uint64_t address, int64_t asked, unsigned flags);
/* JOB_FORK, JOB_WAIT: about another process of the job, or JOB_NONE. */
void call_process(struct call_log *l, const struct call *c, enum job_event_kind kind,
		  uint32_t other);
void call_exec(struct call_log *l, const struct call *c, uint32_t file, const char *command);
