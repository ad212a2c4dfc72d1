#pragma once
/* A crew of equal reader workers: each takes tasks from a queue of its own, first in first out, one
 * at a time, and puts each into the common queue of results when it is done. Which task goes to
 * whom is the loader's policy. With no workers the rank reads, with a reader of its own. */
#include <stdbool.h>
#include <stdint.h>

#include "loader/crew.h"
#include "loader/loader.h"

/* What it costs to hand a batch from a PyTorch worker to the rank: a POSIX shared memory object per
 * batch, created, unlinked, sized, mapped and filled by the worker, and mapped and touched by the
 * receiver, as torch.multiprocessing does with the one tensor of a DLIO batch. The descriptor needs
 * no socket here, because workers are threads: PyTorch's connection per tensor is not emulated.
 *
 * Batches carry no bytes: what is copied is an area of the collated batch's size that all workers
 * of a loader share. */

/* One batch on its way. All zeros: nothing is. */
struct parcel {
	bool packed;
	int fd; /* valid while packed and not mapped */
	void *map;
};

struct handover {
	uint64_t bytes;         /* of a collated batch */
	unsigned char *content; /* what is copied */
	uint32_t rank;
};

/* Bytes of a collated batch in memory: samples of reader.transformed_record_dims, else of
 * dataset.record_length_bytes_resize, else as they were read. 0 and `e` when beyond any machine. */
uint64_t handover_bytes(const struct loader_config *c, struct err *e);
/* Takes the area. Checks that `parcels` batches fit into the shared
 * memory file system (`shared`). Release in any case. */
int handover_init(struct handover *h, const struct loader_config *c, uint64_t parcels, bool shared,
		  struct err *e);
void handover_release(struct handover *h);
/* The receiver's: maps, and touches every page. */
int handover_unpack(const struct handover *h, struct parcel *p, struct err *e);
/* Frees what there is of it. Any state. */
void handover_drop(const struct handover *h, struct parcel *p);

/* ---- the workers ---- */

struct worker; /* one thread */

enum task_kind {
	TASK_READ,   /* read the batch */
	TASK_RESUME, /* acknowledge: everything sent before is done */
	TASK_QUIT,   /* end the thread; does not come back */
};

struct task {
	struct batch batch; /* first: what the loader hands out */
	enum task_kind kind;
	bool arrived; /* the loader's mark: done, waiting for its turn */
	bool pending; /* the loader's mark: of this epoch and not handed out */
	struct parcel parcel;
};

/* First member of a loader's struct. */
struct workers {
	struct crew crew;
	uint32_t count;       /* 0: the rank reads */
	bool persistent;      /* threads live on between epochs */
	bool threads;         /* they run */
	struct queue results; /* tasks done */
	struct queue *inbox;  /* where the rank takes them: results, or a later stage's */
	const struct handover *handover; /* batches are packed; NULL: they are not */
	/* The framework's code that the rank spends, where workers are the framework's own; else
	 * without costs. */
	struct framework_code code;
	uint64_t collated_bytes; /* of a batch, for that code */
	/* Of starting, or resuming, them for this epoch: processor time; without one. */
	int64_t started_ns, started_late_ns;
	struct worker *worker;
};

/* Memory for tasks that exist at once: `depth` queued to one worker, `results` in all. */
int workers_memory_bytes(const struct loader_config *c, uint32_t count, uint64_t depth,
			 uint64_t results, uint64_t *out, struct err *e);
/* Takes all memory and opens the readers. Needs workers_release in any case. */
int workers_init(struct workers *w, const struct loader_ops *ops,
		 const struct loader_config *config, uint32_t count, uint64_t depth,
		 uint64_t results, struct err *e);
/* After it: workers cost what framework.costs says of PyTorch's, and batches are collated, to this
 * many bytes. Does nothing without costs. */
void workers_cost(struct workers *w, uint64_t collated_bytes);
/* Frees everything but the struct; no thread runs. */
void workers_release(struct workers *w);

/* After crew_begin: workers that live on acknowledge, others are started, one after another. */
int workers_begin(struct workers *w, struct err *e);
/* Queues a task to a worker; nothing is queued once the run was stopped. */
void workers_send(struct workers *w, uint32_t worker, struct task *t);
/* Reads a task's batch here. Without workers. */
void workers_read_inline(struct workers *w, struct task *t);
/* The next task that comes back; ERR_CANCELED once stopped. */
int workers_receive(struct workers *w, struct task **out);
/* The rank asked past the last batch: what the framework spends on ending workers. */
void workers_epoch_over(struct workers *w);
/* Ends an epoch once every task is back, or (`woken`) the run: threads that do not live on are
 * joined; of those that do, none counts any more. -ETIMEDOUT when one hangs, with describe's
 * sentence. */
int workers_end(struct workers *w, bool woken, struct err *e);
