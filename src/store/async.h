#pragma once
/* Requests in flight: a queue of up to `depth` requests on the blobs of one store, of one thread.
 *
 * A store with a way of its own to keep requests in flight has a row of functions
 * (store_ops.queue); any other, and every shim, gets `depth` helper threads that call its pread and
 * pwrite, so that a depth means the same on every store: that many requests are with the store at
 * once. Depth 1 on such a store is a plain pread in the calling thread.
 *
 * All memory and threads are taken by store_queue_create; nothing is allocated afterwards. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "store/store.h"

#define STORE_DEPTH_MAX 1024u

/* One request, lent to the queue from submit until reap gives it back (or destroy returns). */
struct store_request {
	/* Open; any number of requests may be in flight on one blob. Not to be closed, nor used by
	 * another call, before they have all come back. */
	struct blob *blob;
	void *buffer; /* n bytes, of nobody else's until then */
	/* In a queue of whole objects `buffer` is NULL, offset 0 and n what the object should have,
	 * or 0: the bytes are counted and forgotten. */
	size_t n;
	uint64_t offset;
	bool write;
	uint64_t tag; /* the caller's; not looked at */

	/* Filled by reap. `result` as pread's and pwrite's: bytes, fewer than n only where a read
	 * reached the end of the blob; or a negative code, and the sentence in `err`. */
	ssize_t result;
	int64_t submitted_ns, done_ns; /* the second when the completion was seen */

	/* The queue's own. */
	size_t moved;
	struct store_request *next;

	struct err err;
};

struct store_queue_config {
	unsigned depth; /* 1 to STORE_DEPTH_MAX */
	/* Where the buffers of all requests lie, for stores that register memory with the kernel;
	 * NULL: anywhere. It must outlive the queue. */
	void *memory;
	size_t memory_bytes;
	/* Requests ask for whole objects, as the store's client does (store_objects): depth is how
	 * many of them, each with as many requests of the server's as the client makes. Blobs are
	 * opened with STORE_WHOLE. reap may return 0 after a tenth of a second without a result. */
	bool objects;
};

struct store_queue;

/* A store's own queue. `store_queue` is the first member of its struct; create fills the rest. */
struct store_queue_ops {
	/* Bytes that create will take. */
	uint64_t (*bytes)(const struct store *s, unsigned depth, bool objects);
	/* What offset, n and buffer of a request must be multiples of; 1: of nothing. */
	uint32_t (*align)(const struct store *s);
	int (*create)(struct store_queue **out, struct store *s,
		      const struct store_queue_config *config, struct err *e);
	/* Waits for what is in flight, or calls it off. */
	void (*destroy)(struct store_queue *q);
	/* There is room. May keep the request until flush or reap. */
	int (*submit)(struct store_queue *q, struct store_request *r, struct err *e);
	int (*flush)(struct store_queue *q, struct err *e);
	/* Between 1 and max requests that are done, waiting for the first; at least one is in
	 * flight. 0 as store_queue_config says. */
	int (*reap)(struct store_queue *q, struct store_request **out, unsigned max, struct err *e);
};

struct store_queue {
	const struct store_queue_ops *ops;
	const struct io *io;
	unsigned depth, in_flight;
};

/* Memory of a queue of this depth, for a stated bound; without the stacks' untouched pages.
 * objects: of whole ones. */
uint64_t store_queue_bytes(const struct store *s, unsigned depth, bool objects);
/* What offset, n and buffer of every request must be multiples of, a power of two. A read that
 * reaches beyond the end of the blob gives what there is. */
uint32_t store_queue_align(const struct store *s);

/* Requests are counted into io->stat, reads as IO_DATA and writes as IO_WRITE, from submit to the
 * moment the completion was seen; times of requests in flight together overlap, so their sum may
 * exceed the time that passed. `io` is borrowed. The queue may be used by one thread at a time. */
int store_queue_create(struct store_queue **out, const struct io *io,
		       const struct store_queue_config *config, struct err *e);
/* Ends it with whatever is in flight: requests that were not begun are dropped, for others it
 * waits. Nothing is given back or counted. Accepts NULL. */
void store_queue_destroy(struct store_queue *q);
/* Hands in a request: blob, buffer, n, offset, write and tag are set. -EAGAIN when `depth` are in
 * flight, -EINVAL for an impossible range or alignment, ERR_CANCELED once io->stop is set: the
 * request is the caller's again and was not counted. */
int store_queue_submit(struct store_queue *q, struct store_request *r, struct err *e);
/* Sees to it that all that was submitted is with the store. reap does it too: wanted before the
 * caller turns to something else. */
int store_queue_flush(struct store_queue *q, struct err *e);
/* Gives back between 1 and `max` requests that are done, in any order, waiting for the first; 0
 * when none is in flight. A failed request is given back like the others, its failure in `result`
 * and `err`. A negative return says that the queue itself broke: only destroy makes sense then. */
int store_queue_reap(struct store_queue *q, struct store_request **out, unsigned max,
		     struct err *e);
