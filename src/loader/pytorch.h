#pragma once
/* The PyTorch loader's state, shared by its files: setup (memory), policy, pinning.
 */
#include "loader/crew.h"

struct pytorch {
	struct loader base;
	struct crew crew;
	uint64_t factor, capacity; /* P; P * W */
	bool in_order;

	uint64_t *assigned;           /* per worker: sent and not handed out */
	struct task *task, **spare;   /* all; those not in use */
	uint64_t tasks, spares, held; /* held: with the rank */
	struct task **window;         /* in order: batch k at k mod capacity */

	uint64_t steps, sent, handed, received; /* batches of this epoch */
	uint32_t cursor;                        /* the worker whose turn it is */
	bool open;                              /* within an epoch */

	/* reader.transport and reader.pin_thread */
	bool transport, pin;
	struct handover handover;
	struct span_ring *ring; /* of whoever receives batches; NULL: no trace is kept */
	struct {
		unsigned char *area; /* a batch a task */
		uint64_t bytes;
		bool locked, running;
		pthread_t thread;
		struct queue out;
	} pinning;
};

static inline struct pytorch *pytorch_of(struct loader *l)
{
	return (struct pytorch *)l;
}

static inline const struct pytorch *pytorch_of_const(const struct loader *l)
{
	return (const struct pytorch *)l;
}

void pytorch_window(const struct workload *w, uint32_t *workers, uint64_t *batches);
int pytorch_memory_bytes(const struct loader_config *c, uint64_t *out, struct err *e);
int pytorch_create(struct loader **out, const struct loader_config *c, struct err *e);
/* Frees everything; no thread runs. */
void pytorch_release(struct pytorch *l);

/* The memory of the pin thread: a batch a task, touched, and locked where the system lets it. */
int pytorch_pin_init(struct pytorch *l, struct err *e);
void pytorch_pin_release(struct pytorch *l);
/* Starts its thread, unless it runs. */
int pytorch_pin_start(struct pytorch *l, struct err *e);
/* Ends and joins it. */
void pytorch_pin_stop(struct pytorch *l);
/* Maps what the worker packed: the receiver's part of the transport. */
void pytorch_unpack(struct pytorch *l, struct task *t);

extern const struct loader_ops loader_pytorch;
