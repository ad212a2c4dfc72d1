#pragma once
/* What each thread of a run did and when: spans in memory that is taken before anything is timed.
 *
 * One ring belongs to one thread at a time (a worker's threads of several epochs use it in turn).
 * It is filled once: when it is full, later spans are dropped and counted, so that what is there
 * can be read, and sorted, while a thread that hangs may still add to it. Without tracing there is
 * no ring, and all that is left is the test of a pointer. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum span_kind {
	/* requests to the store */
	SPAN_OPEN,
	SPAN_CLOSE,
	SPAN_STAT,
	SPAN_READ,
	SPAN_WRITE,
	SPAN_SYNC,
	SPAN_RENAME,
	SPAN_MAP,
	SPAN_TOUCH, /* bytes of a mapping were used */
	/* of a worker; what holds others comes after them */
	SPAN_SAMPLE,     /* the format's read of a sample, requests and decoding */
	SPAN_DECODE,     /* where a thread does nothing else */
	SPAN_PREPROCESS, /* the wait after a sample */
	SPAN_ITEM,       /* sample and wait */
	SPAN_BATCH,
	SPAN_FRAMEWORK, /* the framework's own code, after what it is for */
	SPAN_TRANSPORT, /* a batch handed over, after it */
	SPAN_UNPACK,    /* and received */
	SPAN_PIN,       /* and copied into pinned memory */
	/* of a rank; made from the times of its steps, in no ring */
	SPAN_RUN,
	SPAN_EPOCH,
	SPAN_TRAIN,
	SPAN_EVALUATE,
	SPAN_WAIT, /* for a batch */
	SPAN_STEP, /* from having the batch to the end of the barrier */
	SPAN_COMPUTE,
	SPAN_BARRIER,
	SPAN_CAPTURE, /* a checkpoint written */
	SPAN_RESTART, /* and read back */
	SPAN_KINDS
};

enum {
	SPAN_META = 1u << 0,      /* not payload */
	SPAN_VECTOR = 1u << 1,    /* one request for several pieces of memory */
	SPAN_FAILED = 1u << 2,    /* it reported an error */
	SPAN_IN_FLIGHT = 1u << 3, /* beside others of the same thread: they may overlap */
};

#define SPAN_NONE UINT64_MAX     /* no file or sample is meant */
#define SPAN_NO_STEP UINT32_MAX  /* nor a step */
#define SPAN_RECEIVES UINT32_MAX /* a worker's number: the thread that pins */
#define SPAN_NAMED UINT8_MAX     /* files of no dataset: those of checkpoints */

struct span {
	int64_t begin_ns, end_ns; /* monotonic */
	uint64_t sample, file;    /* of the dataset; a companion counts as the file it belongs to */
	uint64_t offset;
	uint64_t asked, moved; /* bytes */
	uint32_t step;         /* of the epoch, from 0; SPAN_NO_STEP */
	uint8_t kind, flags;   /* enum span_kind, SPAN_* */
};
_Static_assert(sizeof(struct span) == 64, "one line of a processor's cache");

struct span_ring {
	struct span *span;
	uint32_t capacity;
	_Atomic uint32_t count;   /* of valid spans; stored after the span */
	_Atomic uint64_t dropped; /* came when it was full */
	/* What the thread is at: copied into each span. */
	uint64_t sample, file;
	uint32_t step;
	/* Whose. */
	uint32_t rank, worker, slot; /* slot: numbers the rings of a rank, from 0 */
	uint8_t dataset;             /* enum dataset_kind, or SPAN_NAMED */
	bool of_rank;                /* the rank's own thread reads */
	/* SPAN_NAMED: `file` is where in these texts the file's name begins */
	char *names;
	uint32_t names_bytes, names_used;
	struct span_ring *next;
};

/* All rings of a process. */
struct trace {
	pthread_mutex_t lock; /* of what follows */
	struct span_ring *first, *last;
	uint32_t capacity; /* spans of a ring */
	uint32_t first_rank, ranks;
	uint32_t *slots; /* rings of each rank */
	bool refused;    /* memory for a ring was */
};

/* For the ranks first_rank..first_rank + ranks - 1 of this process. */
int trace_create(struct trace **out, uint32_t first_rank, uint32_t ranks, uint32_t capacity,
		 struct err *e);
/* No thread uses a ring any more. Accepts NULL. */
void trace_destroy(struct trace *t);
/* Memory of one ring. */
uint64_t trace_ring_bytes(uint64_t capacity);
/* A ring, its memory touched. NULL when `t` is NULL, or memory was refused (t->refused). Any
 * thread; before timing. */
struct span_ring *trace_ring(struct trace *t, uint32_t rank, int dataset, uint32_t worker,
			     bool of_rank);
/* The same for files that span_name names, as those of checkpoints, and what it takes: half as much
 * again for the names. */
struct span_ring *trace_ring_named(struct trace *t, uint32_t rank, bool of_rank);
uint64_t trace_ring_named_bytes(uint64_t capacity);
/* 0, or -ENOMEM with a sentence when a ring was refused. Accepts NULL. */
int trace_check(struct trace *t, struct err *e);
/* Spans kept and dropped in all rings. Accepts NULL. */
void trace_count(struct trace *t, uint64_t *kept, uint64_t *dropped);

/* Adds *s. One writer a ring. */
void span_put(struct span_ring *r, const struct span *s);
/* The same of what the thread is at; nothing when r is NULL. */
static inline void span_add(struct span_ring *r, enum span_kind kind, unsigned flags,
			    int64_t begin_ns, int64_t end_ns, uint64_t moved)
{
	if (r)
		span_put(r, &(struct span){.begin_ns = begin_ns,
					   .end_ns = end_ns,
					   .sample = r->sample,
					   .file = r->file,
					   .step = r->step,
					   .moved = moved,
					   .kind = (uint8_t)kind,
					   .flags = (uint8_t)flags});
}
/* The file of the spans that follow, of a ring for names: the text is copied. Where no room is left
 * for it, they are of no file. Nothing when r is NULL. */
void span_name(struct span_ring *r, const char *name);
/* Sorts the spans that are there by their beginning, and of those that begin together the one that
 * holds the others first. Returns how many. */
uint32_t span_ring_sort(struct span_ring *r);
