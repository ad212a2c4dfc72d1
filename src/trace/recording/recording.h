#pragma once
/* A recording of `stoker record` as a job, and what it says of itself. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/map.h"
#include "trace/job_log.h"
#include "trace/recording/ring_file.h"

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
	uint64_t mapped_files, mapped_bytes, mapped_came; /* came: into memory while mapped */
	uint64_t major_faults;
	uint64_t folder_bytes, limit, lost; /* lost: events beyond the limit, or without room */
	uint64_t lost_bytes;
	uint64_t cut_off; /* events that signal handlers interrupted for good */
	bool full, anonymous;
	uint64_t uring;   /* processes that used io_uring */
	uint64_t damaged; /* chunks and files that are cut or damaged */
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
