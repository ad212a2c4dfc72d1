#pragma once
/* A crew of equal reader workers: each takes tasks from a queue of its own, first in first out, one
 * at a time, and puts each into the common queue of results when it is done. Which task goes to
 * whom is the loader's policy. With no workers the rank reads, with a reader of its own. */
#include "loader/crew.h"
#include "loader/handover.h"

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
