#pragma once
/* The rings of a recording (recorder/ring.h) as one stream of events, in order of their begin.
 * Rings are input of others: what is damaged ends the chunk it is in, and is counted.
 *
 * Memory: RING_CHUNK_MOST bytes for each thread that is in the middle of a chunk at one time, 64
 * bytes a chunk, RING_PAGE a process. One thread. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "recorder/ring.h"

#define RING_CHUNK_MOST ((size_t)1 << 20)
#define RINGS_MAX ((size_t)1 << 20)

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
	uint64_t bytes;       /* of the folder's files */
	uint64_t event_bytes; /* of all chunks */
	struct ring_merge *merge;
};

/* Whether the folder holds a recording, of whatever version. */
bool ring_folder(const char *path);
/* Negative, with a sentence, where it is none that this program reads. */
int ring_folder_check(const char *path, struct err *e);
/* Opens the recording in a folder: all heads and chunks are known then. */
int ring_files_open(struct ring_files *f, const char *path, struct err *e);
/* The next event; false at the end. */
bool ring_files_next(struct ring_files *f, struct ring_event *out);
void ring_files_close(struct ring_files *f);
