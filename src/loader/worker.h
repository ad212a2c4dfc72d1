#pragma once
/* A reader thread: takes tasks from its own queue first in first out, one at a time, and puts each
 * into the loader's result queue when it is done. Which task goes to whom is the loader's policy.
 */
#include <pthread.h>

#include "base/queue.h"
#include "loader/handover.h"
#include "loader/sample_reader.h"

enum task_kind {
	TASK_READ,   /* read the batch */
	TASK_RESUME, /* acknowledge: everything sent before is done */
	TASK_QUIT,   /* end the thread; does not come back */
};

struct task {
	struct batch batch; /* first: what the loader hands out */
	enum task_kind kind;
	bool arrived; /* the loader's mark: done, waiting for its turn */
	struct parcel parcel;
};

struct worker {
	struct sample_reader reader;
	struct queue in;
	struct queue *out;
	const struct order *order;
	pthread_t thread;
	bool running;                    /* the loader's: started and not yet joined */
	_Atomic uint32_t ended;          /* futex word: the thread's last act */
	struct task control;             /* the one RESUME or QUIT under way */
	const struct handover *handover; /* the loader's: batches are packed; NULL: they are not */
};

/* `order` is read while tasks are being done. `depth`: tasks queued at most, at least 1. Needs
 * worker_release in any case. */
int worker_init(struct worker *w, const struct loader_config *config,
		const struct reader_config *settings, uint32_t id, _Atomic uint32_t *halt,
		struct worker_stat *stat, struct queue *out, const struct order *order,
		size_t depth, struct err *e);
/* Starts the thread. The reader must be open. */
int worker_start(struct worker *w, struct err *e);
/* Queues a task; nothing is queued once the queue is closed. */
void worker_send(struct worker *w, struct task *t);
/* Sends the worker's own RESUME or QUIT; its queue must be empty, so all before has come back. */
void worker_control(struct worker *w, enum task_kind kind);
/* Waits up to timeout_ns for the thread to end; true when it has, and is joined. */
bool worker_join(struct worker *w, int64_t timeout_ns);
/* Frees all but the struct; the thread must not run. */
void worker_release(struct worker *w);
/* A pause of so many seconds that ends early with the run: of a start-up that is emulated. */
void worker_pause(_Atomic uint32_t *halt, const struct stop_flag *stop, double seconds);
/* The stack a worker's thread gets. */
size_t worker_stack_bytes(const struct workload *w);
/* Memory of one worker beside the struct, its sample buffers and its stack. */
size_t worker_queue_bytes(size_t depth);
