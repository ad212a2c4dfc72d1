#pragma once
/* From calls by descriptor and path to the events of a job: for logs of system calls. A reader says
 * what each call was and what it returned; here descriptors become files and offsets, paths are
 * made absolute, and the events are added.
 *
 * Times are in the log's clock until call_log_finish makes them relative to the first. A call whose
 * result the log does not have is not given here. Bounds: those of descriptors.h; CALLERS_MAX
 * threads at a time; CALL_FILES_MAX files, later ones are one file and a note; 24 bytes for each of
 * at most CALL_MAPS_MAX mappings. One thread. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/map.h"
#include "trace/descriptors.h"
#include "trace/job_log.h"

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

/* ---- calls ---- */

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
