#pragma once
/* What every loader does with its threads and readers, whatever its policy: memory, starting and
 * ending, being woken, saying whom one waits for; and the state of an epoch that all keep alike.
 *
 * A crew is the first member of a loader's struct. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/thread.h"
#include "loader/sample_reader.h"

/* Bounded queue of pointers: any number of producers and consumers, first in first out, no
 * allocation after init. The only lock of the timed path. */

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t not_empty, not_full;
	void **slot;
	size_t cap, head, count;
	bool closed;
};

int queue_init(struct queue *q, size_t capacity, struct err *e);
void queue_release(struct queue *q);
/* Adds an item, waiting while the queue is full. 0, or ERR_CANCELED once the queue is closed. */
int queue_put(struct queue *q, void *item);
/* Takes the oldest item. 1 with *item set; 0 when closed and empty. Waits while empty and open. */
int queue_get(struct queue *q, void **item);
/* As queue_get but returns -ETIMEDOUT after timeout_ns without an item; at once when it is <= 0. */
int queue_get_timeout(struct queue *q, void **item, int64_t timeout_ns);
/* Wakes everyone; puts fail from now on, gets drain what is left. May be called more than once. */
void queue_close(struct queue *q);
/* Empties and opens it again. No thread may be inside. */
void queue_reopen(struct queue *q);

struct crew_size {
	uint32_t threads;  /* at most */
	uint32_t readers;  /* that read samples */
	uint32_t waiters;  /* further ones that are never opened: they only preprocess */
	uint32_t stats;    /* 0: one for each of both */
	bool inline_reads; /* no thread reads: whoever asks for a batch does */
};

struct crew {
	struct loader base; /* first: what the loader's functions are given */
	struct loader_config config;
	struct reader_config settings; /* of the readers */
	struct crew_size size;
	void (*close_queues)(struct crew *c);

	struct thread *thread;
	struct sample_reader *reader; /* readers, then waiters */
	struct worker_stat *stat;
	struct io_stat *io; /* of each */

	_Atomic uint32_t halt;    /* futex word, HALT_* */
	_Atomic int64_t woken_ns; /* 0: not woken */
	_Atomic uint32_t stuck;   /* threads given up */

	/* The epoch: batches in it, handed out so far, with the rank now. Threads read the order.
	 */
	struct order order;
	uint64_t steps, handed;
	uint32_t held;
	bool open;

	/* For describe. */
	_Atomic uint64_t epoch, last_step, waiting; /* waiting: batch + 1, 0 when not */
	_Atomic int64_t waiting_since;
};

/* Bytes that crew_init takes beside the struct, stacks and what readers take when they are opened
 * included. */
int crew_memory_bytes(const struct loader_config *c, const struct reader_config *settings,
		      const struct crew_size *size, uint64_t *out, struct err *e);
/* Takes memory; readers are not opened. c->settings and the struct's other members are zero or as
 * the loader set them. `close_queues` is called from any thread, more than once: afterwards nobody
 * waits in a queue of the loader. NULL: it has none. Needs crew_release in any case. */
int crew_init(struct crew *c, const struct loader_ops *ops, const struct loader_config *config,
	      const struct crew_size *size, void (*close_queues)(struct crew *c), struct err *e);
/* Frees everything but the struct; no thread runs. */
void crew_release(struct crew *c);

/* The framework's code that the rank spends in this loader, with the profile's costs. */
struct framework_code crew_code_of_rank(struct crew *c);

/* Opens every reader, and closes all: the first error is the one reported. */
int crew_open_readers(struct crew *c, struct err *e);
int crew_close_readers(struct crew *c, struct err *e);

/* Starts thread `i`, named after a letter, the rank and a number. */
int crew_start_thread(struct crew *c, uint32_t i, void (*work)(void *arg), void *arg, char letter,
		      uint32_t number, struct err *e);
/* The letter of threads that read. */
char crew_letter(const struct crew *c);

/* Begins an epoch of at most `steps` batches: checks, and the state above but for `open`, which the
 * loader sets when all has begun. Threads are idle or not started. -EINVAL when the last epoch was
 * not ended or the order has other batches than the loader; ERR_CANCELED once woken. */
int crew_begin(struct crew *c, const struct order *order, uint64_t steps, struct err *e);
/* Before a batch is waited for: 1 when there is a further one, 0 when there is none. */
int crew_ask(struct crew *c, struct err *e);
/* After it: 1 when it goes to the rank, or the code of its failure, with which it does not. */
int crew_hand_out(struct crew *c, const struct batch *b, int64_t now_ns, struct err *e);
/* Tells readers to leave their batches after the present sample. */
void crew_drop(struct crew *c);
/* Waits until every thread has ended; once the run was stopped, until the grace after that is over.
 * -ETIMEDOUT when one hangs, with describe's sentence. */
int crew_join(struct crew *c, struct err *e);
/* The same for the end of an epoch after which no thread lives: drops, and closes the queues. */
int crew_end(struct crew *c, struct err *e);
/* Ends and joins all threads for good; the number of those that hang and were left behind. */
unsigned crew_dismiss(struct crew *c);

/* struct loader_ops' destroy, of a loader that `release` frees. */
unsigned crew_destroy(struct loader *l, void (*release)(struct crew *c));
/* struct loader_ops' wake and stats. */
void crew_wake(struct loader *l);
const struct worker_stat *crew_stats(const struct loader *l, uint32_t *workers);
/* Whether the run is to end; notices a stop flag that was set without wake. */
bool crew_stopped(struct crew *c);
/* Whether readers are to leave their batches; asks the stop flag too. */
bool crew_called_off(const struct crew *c);
int crew_canceled(const struct crew *c, struct err *e);
/* How soon a stop flag that was set without wake is to be noticed. */
#define CREW_POLL_NS NS_PER_S
/* The next item of a queue: 0, or ERR_CANCELED once the run is stopped. For the rank. */
int crew_receive(struct crew *c, struct queue *q, void **item);
/* The same for the loader's threads, which also end with the epoch. */
int crew_get(struct crew *c, struct queue *q, void **item);

/* What the rank waits for, for describe: batch + 1, or 0. */
void crew_waits(struct crew *c, uint64_t batch);
/* Says that somebody got somewhere. */
void crew_progress(struct crew *c, int64_t now_ns);
/* The sentence for the watchdog about a crew of readers. `due`: the reader to blame when a batch is
 * waited for, or UINT32_MAX for the one that has been busy longest. */
void crew_describe(const struct crew *c, uint32_t due, char *out, size_t out_size);
/* Its first part: what the rank does. */
void crew_describe_rank(const struct crew *c, char *out, size_t out_size);
