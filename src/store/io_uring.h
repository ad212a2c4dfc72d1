#pragma once
/* The parts of the io_uring store: one ring, which any of its requests goes through, and the store
 * that lends rings to threads and to queues. */
#include <liburing.h>
#include <stdbool.h>

#include "store/async.h"
#include "store/posix.h"

/* What O_DIRECT may ask of offsets, sizes and memory; a file that wants more does not open. */
#define URING_ALIGN 4096u

struct uring_options {
	bool direct, sqpoll, registered_buffers;
	int64_t sqpoll_idle_ms;
};

struct uring {
	struct io_uring ring;
	const void *registered; /* buffers inside are known to the kernel; NULL: none */
	size_t registered_bytes;
	unsigned unsubmitted; /* requests that the kernel was not told of */
};

/* ERR_ABSENT, or the system's code, in one sentence where the kernel has no io_uring, does not
 * allow it or has no room. `memory` (may be NULL) is registered if the options say so. */
int uring_open(struct uring *u, const struct uring_options *o, unsigned entries, bool poll,
	       const void *memory, size_t memory_bytes, struct err *e);
void uring_close(struct uring *u);
/* Queues what is left of a request: r->moved bytes of it are done. There is room. */
void uring_put(struct uring *u, struct store_request *r);
int uring_submit(struct uring *u, struct err *e);
/* As store_queue_ops.reap. Short requests are continued inside. */
int uring_reap(struct uring *u, struct store_request **out, unsigned max, struct err *e);

/* Of the store that a queue belongs to. */
const struct uring_options *uring_options_of(const struct store *s);
extern const struct store_queue_ops store_queue_uring;
