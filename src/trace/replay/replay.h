#pragma once
/* The requests of a job made again: each thread of the job by a thread of this process, in a closed
 * loop. Timestamps of the log are not followed: faster storage makes the replay faster. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/folder_lock.h"
#include "base/map.h"
#include "base/thread.h"
#include "trace/job_log.h"

/* ---- names of the job (replay_image.c) ---- */

/* Which files of a job have one name, and which folders above them the job itself changes.
 *
 * A log may have a name as several files: as a folder where it was listed, as a file where it was
 * only asked about. For the storage they are one. What lies below a folder that the job makes,
 * renames or removes depends on that.
 *
 * Memory: the names of the files once more, and 8 bytes a file. */
struct replay_names {
	uint32_t *of;    /* of each file of the job: the first one with its name */
	uint32_t *above; /* of each: the nearest such folder above it, by the number of `of`;
			  * JOB_NONE */
	uint32_t *first; /* of each text */
	struct texts texts;
};

/* Release in any case. Files that are neither regular nor folders stand for themselves. */
int replay_names_make(struct replay_names *n, const struct job *job, struct err *e);
void replay_names_release(struct replay_names *n);

/* ---- files of the job ---- */

/* The files of a job below a folder: same names, same sizes, bytes of ours. A job is replayed over
 * them instead of over its own data.
 *
 * A name becomes a path below the folder, whatever it is: the parts of "/data/a.npz" follow the
 * folder; ".." becomes "%2e%2e"; names that are not absolute lie below "%relative"; parts and paths
 * that no file system takes are cut and end with a number made of the whole; the name of the file
 * that marks the folder as ours begins with "%2e". Nothing outside of the folder is touched, and a
 * folder that holds other things is refused, as are links, files with other names, FIFOs, sockets
 * and devices in place of a file of the job.
 *
 * Memory: a path for each file of the job. */

enum image_place {
	IMAGE_NONE,    /* a pipe, a terminal, shared memory, ... */
	IMAGE_PRESENT, /* is there before the job */
	IMAGE_MADE,    /* the job makes it: absent before */
	IMAGE_ABSENT,  /* the job looks for it in vain */
	IMAGE_UNSEEN,  /* absent before, and there when the job uses it: below a folder that the job
			* makes, by means that the log lacks (sockets, links) */
};

struct replay_image {
	const struct replay_names *names;
	char *folder;
	int fd;                          /* of it, from making it on; -1 */
	bool links;                      /* the job gives files second names */
	struct file_lock lock;           /* from making it to release: one replay at a time */
	char **path;                     /* of each file of the job; NULL: IMAGE_NONE */
	uint8_t *place;                  /* enum image_place of each */
	bool *is_folder;                 /* whatever the log calls it: other names lie below it */
	int64_t *size;                   /* before the job: what it appends, the replay does */
	size_t files;                    /* of the job */
	uint64_t present, bytes;         /* regular files before the job, and their bytes */
	uint64_t written, written_bytes; /* of these, not there from before */
};

/* Decides names and places; touches nothing. `names` must outlive it. Release in any case. */
int replay_image_init(struct replay_image *m, const struct job *job,
		      const struct replay_names *names, const char *folder, struct err *e);
/* Takes the folder: -EBUSY, with a sentence, while another replay has it. Makes the files that are
 * to be there before the job, unless they are there with their size, and removes those that the job
 * makes. `sparse`: files without blocks, which take no space and whose reading costs the storage
 * nothing; else bytes that cannot be compressed, the same for every image of the job. `cold`: the
 * files leave the page cache afterwards. ERR_CANCELED soon after `stop`. */
int replay_image_make(struct replay_image *m, bool sparse, bool cold, const struct stop_flag *stop,
		      struct err *e);
void replay_image_release(struct replay_image *m);
/* Opens a file or folder of it (base/beneath.h): only regular files that have no other name, unless
 * the job makes such names. -1 with errno. Any thread. */
int replay_image_open(const struct replay_image *m, uint32_t file, int flags);
/* The folder that it is in, and its name there: for mkdirat(2) and the like. -1 with errno. */
int replay_image_at(const struct replay_image *m, uint32_t file, const char **name);
/* Makes a file or folder that is missing, with its size before the job and no blocks, and the
 * folders above it. What is there stays. -1 with errno. Any thread. */
int replay_image_restore(const struct replay_image *m, uint32_t file);
/* `n` bytes that cannot be compressed, of the stream `key`. Pure. */
void replay_image_fill(uint64_t key, uint64_t offset, void *out, size_t n);

/* ---- the plan (replay_plan.c) ---- */

/* What a replay of a job does: the operations of each of its threads in their order, what each
 * waits for, and how long its thread thinks before.
 *
 * An operation begins when the one before it in its thread has ended, its thread has thought, and
 * all that it waits for has ended. It waits for
 *   - the write of a pipe that a read of that pipe got its last byte from,
 *   - the last change of a file, or of a folder above it, by another thread (a write, a
 *     truncation, a rename, a removal, its creation); a change, for the last use by each other
 *     thread,
 *   - the end of the child, or of what another thread of its process did last, if it is a wait of
 *     the log,
 *   - the opening of its descriptor by another thread; closing one, for its last use,
 *   - in the first operation of a process or thread: the fork, or what its process or its parent
 *     did last,
 *   - after a gap of more than PLAN_GAP_NS in which another thread of its process was active: that
 *     thread's last operation. A lock between them, which no log shows, may have been the reason.
 *     What then passed until the thread went on counts as thought of the other one (`lag_ns`).
 *
 * Thinking is the time between two operations of a thread, less what it waited for somebody: in
 * pipes, and in the log's waits (futex, poll, wait). A wait for which nobody is found in the log
 * counts as thinking. All this is of times of the log before anything is replayed; the log's clock
 * is not followed afterwards.
 *
 * Memory: 88 bytes an operation, 16 a dependency, of which an operation has about one. */

#define PLAN_GAP_NS 200000
/* A pipe that is read so soon after it was written was waited for. */
#define PLAN_PROMPT_NS 300000
#define PLAN_NO_SLOT UINT32_MAX

struct plan_op {
	uint32_t event; /* index in job->event */
	uint32_t slot;  /* of the open file, or the first one that an end closes; PLAN_NO_SLOT */
	uint32_t dep, deps; /* in plan->dep */
	uint32_t next;      /* the thread's next operation + 1; 0: the last one */
	uint8_t closes;     /* JOB_CLOSE that ends the last descriptor of the slot */
	bool begins;        /* a thread begins after it; the engine's */
	uint8_t only;     /* nothing is asked of the storage: only its place in the order counts */
	int64_t think_ns; /* before it */
	int64_t hold_ns;  /* of `only`: it takes so long in any case */
	int64_t log_begin_ns, log_end_ns; /* of the log, made to follow one another in a thread */
	/* Of the replay, since its begin; JOB_UNKNOWN: not made. The end is written last. */
	int64_t begin_ns;
	int64_t result; /* bytes, or -errno */
	_Atomic int64_t end_ns;
};

struct plan_dep {
	uint32_t op;
	uint32_t pad;
	int64_t lag_ns; /* from its end to the earliest begin of the one that waits */
};

struct plan_slot { /* an open file, shared by all descriptors that go back to one open */
	uint32_t file;
	uint32_t thread; /* that opens it */
	uint32_t op;     /* its open; UINT32_MAX: none in the log, it is opened at first use */
	uint32_t next;   /* closed by the same end of a process; PLAN_NO_SLOT */
	bool shared;     /* used by several threads */
	bool writes;
};

struct plan_thread {
	uint32_t first, ops;              /* first: an index + 1; 0: none */
	int64_t most_bytes, most_written; /* of a transfer */
};

struct replay_plan {
	const struct job *job;
	struct plan_op *op;
	struct plan_dep *dep;
	struct plan_slot *slot;
	struct plan_thread *thread; /* as job->thread */
	uint32_t ops, deps, slots;
	size_t dep_room, slot_room;
	uint64_t left_out[JOB_KINDS]; /* events of each kind that are not replayed: of shared
				       * memory, terminals and the like, mapped memory, advice */
	uint64_t of_objects;          /* requests, which are in none of these */
	uint64_t matched, unmatched;  /* reads of pipes whose writer was found, and not */
};

/* `job` must outlive it, `names` only this call. Release in any case. */
int replay_plan_make(struct replay_plan *p, const struct job *job, const struct replay_names *names,
		     struct err *e);
void replay_plan_release(struct replay_plan *p);

/* ---- carrying it out ---- */

/* More bytes are asked for in several requests. A thread has a buffer of its largest read; all
 * write from one of the largest write. */
#define REPLAY_TRANSFER_MAX (INT64_C(1) << 30)

struct replay_options {
	double think_scale;           /* 0: no thinking */
	const struct stop_flag *stop; /* may be NULL */
};

struct replay_done {
	uint64_t ops;       /* made */
	uint64_t differing; /* answers other than the log's: fewer bytes, a file that is there or
			       not */
	uint32_t differs;   /* the operation + 1 of the first of them, by the log's order */
	int64_t wall_ns;
	bool stopped;
};

/* Makes all operations of the plan over the image, whose files are there; their times are in the
 * plan afterwards. Fails with a sentence at the first request that the storage refuses although the
 * job's was served. */
int replay_run(struct replay_plan *p, const struct replay_image *image,
	       const struct replay_options *o, struct replay_done *done, struct err *e);

/* The operations that were made as a job, which can be compared with the log's, with the times and
 * results of the replay. Threads, processes and files have the numbers that they have in the job.
 * After the replay's threads have ended. `out` is to be released in any case. Negative where memory
 * or JOB_EVENTS_MAX is exceeded. */
int replay_job(const struct replay_plan *p, struct job *out, struct err *e);
