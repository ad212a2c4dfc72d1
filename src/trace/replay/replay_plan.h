#pragma once
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
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trace/job_log.h"
#include "trace/replay/replay_image.h"

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
	uint64_t matched, unmatched;  /* reads of pipes whose writer was found, and not */
};

/* `job` must outlive it, `names` only this call. Release in any case. */
int replay_plan_make(struct replay_plan *p, const struct job *job, const struct replay_names *names,
		     struct err *e);
void replay_plan_release(struct replay_plan *p);
