#pragma once
/* A recording of `stoker record` as a job, and what it says of itself. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/map.h"
#include "recorder/ring.h"
#include "trace/job_log.h"

/* ---- the rings (ring_file.c) ---- */

/* The rings of a recording (recorder/ring.h) as one stream of events, in order of their begin.
 * Rings are input of others: what is damaged ends the chunk it is in, and is counted. Chunks whose
 * checksum does not match are left out whole; those of version 1 have none.
 *
 * Memory: RING_CHUNK_MOST bytes for each thread that is in the middle of a chunk at one time, 64
 * bytes a chunk, RING_PAGE a process. One thread. */

#define RING_CHUNK_MOST ((size_t)1 << 20)
#define RINGS_MAX ((size_t)1 << 20)
#define RING_HARMED 5

struct ring_event {
	enum ring_kind kind;
	uint32_t ring; /* index */
	int64_t tid;
	int64_t begin_ns, end_ns; /* of the clock of the recording, begin of the first process: 0 */
	uint64_t serial;
	int64_t asked, offset, result; /* of transfers */
	int64_t v[RING_FIELDS_MAX];    /* the other numbers, in the order of ring_fields */
	const char *name[2];           /* NUL-terminated, valid until the next event */
};

struct ring_info {
	struct ring_head head;
	bool checked;              /* has checksums */
	struct ring_counts counts; /* of all its chunks */
	char name[40];             /* of the file */
	int64_t shift_ns;          /* adds to times of the ring */
};

struct ring_files {
	struct ring_info *ring; /* by start */
	size_t rings;
	struct ring_end *end; /* of `stoker record` */
	size_t ends;
	int64_t start_s;      /* since 1970, of time 0 */
	uint64_t damaged;     /* chunks that are cut or damaged */
	uint64_t unread;      /* files that are no rings, or cannot be read */
	struct texts harmed;  /* of both, the first RING_HARMED: which, and why */
	uint64_t found;       /* rings, also those that cannot be read */
	uint64_t begun, cut;  /* as struct ring_control has them, of all hosts */
	uint64_t bytes;       /* of the folder's files */
	uint64_t event_bytes; /* of all chunks */
	struct ring_merge *merge;
};

/* Whether the folder holds a recording, of whatever version. */
bool ring_folder(const char *path);
/* Negative, with a sentence, where it is none that this program reads. *processors: that a host of
 * the job had; 0: it does not say. */
int ring_folder_check(const char *path, double *processors, struct err *e);
/* Opens the recording in a folder: all heads and chunks are known then. */
int ring_files_open(struct ring_files *f, const char *path, struct err *e);
/* The next event; false at the end. */
bool ring_files_next(struct ring_files *f, struct ring_event *out);
void ring_files_close(struct ring_files *f);

/* ---- the job ---- */

/* Names are front-coded: few bytes of a recording can say much text. Those of the files have
 * RECORDING_NAMES_BYTES at most, and RECORDING_NAMES_TIMES the bytes of all events; a recording
 * with more is refused as damaged. */
#define RECORDING_NAMES_BYTES ((uint64_t)64 << 20)
#define RECORDING_NAMES_TIMES 32

struct recording_facts {
	uint64_t events, files;     /* files: regular ones that were opened */
	uint64_t processes, killed; /* killed: that did not tell their end */
	uint64_t ranked;            /* processes that a launcher gave a rank */
	uint64_t elsewhere;         /* started by others than the command, such as daemons */
	uint64_t bytes_read,
		bytes_written; /* recorded: what the kernel counts in rchar and wchar */
	uint64_t excluded_calls, excluded_read, excluded_written; /* of these */
	uint64_t message_bytes;                                   /* of sockets */
	uint64_t requests, connections; /* of http; of any kind, to servers */
	uint64_t mapped_files, mapped_bytes, mapped_came; /* came: into memory while mapped */
	uint64_t major_faults;
	uint64_t folder_bytes, limit, lost; /* lost: events beyond the limit, or without room */
	uint64_t lost_bytes;
	uint64_t cut_off; /* events that signal handlers interrupted for good */
	bool full, anonymous;
	bool ended;       /* `stoker record` wrote its end, behind all that it had to keep */
	uint64_t uring;   /* processes that used io_uring */
	uint64_t damaged; /* chunks and files that are cut or damaged */
	struct texts harmed;
	uint64_t cut;                         /* processes whose ring was cut while they wrote it */
	uint64_t missing;                     /* files of processes that are not there any more */
	uint64_t filtered, filtered_children; /* processes behind a filter of calls, and theirs */
	/* the kernel's counts of the whole command, where `stoker record` saw its end */
	bool kernel_known;
	uint64_t kernel_read, kernel_written, kernel_storage_read;
	uint64_t loader_read;                /* before programs begin: libraries being loaded */
	int64_t unseen_read, unseen_written; /* kernel's, less all of the above; 0 at least */
	struct texts unrecorded;             /* programs that ran without being recorded, and why */
};

/* Reads the recording in a folder into `job`: without its events when `events` is false, so that
 * the memory is that of its names. -EFBIG: more names than above. `facts` may be NULL. Free with
 * recording_facts_release. */
int recording_read(struct job *job, const char *folder, bool events, struct recording_facts *facts,
		   struct err *e);
/* The facts alone. */
int recording_summary(const char *folder, struct recording_facts *facts, struct err *e);
void recording_facts_release(struct recording_facts *f);

/* The last part of reading a recording, after its events. */
/* Sets of each process how it ended and the bytes that the kernel counted of it, and in `facts`
 * what was recorded, what was not, and why; adds notes to the job about what is missing. `process`:
 * of each ring, its process in the job. */
void recording_ends(struct job *job, const struct ring_files *files, const uint32_t *process,
		    struct recording_facts *facts);
/* Why a program of this enum ring_image cannot be recorded: "statically linked"; NULL: it can, or
 * the number is none. */
const char *recording_image_why(uint64_t image);
