#pragma once
/* Makes threads wait as the arithmetic of throttle_share.h says. Any number of threads; those who
 * wait sleep, and at any moment one sleeper at least holds a timer for the next event, and all
 * whose end depends on no other request hold one for their own. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/throttle_share.h"

struct throttle_waiter {
	struct share_request request; /* first: found from it */
	_Atomic uint32_t word;        /* what the sleeper watches */
	bool asleep;
	struct throttle_waiter *prev, *next; /* ring of the sleepers */
};

struct throttle_line {
	pthread_mutex_t lock;
	struct share share;
	struct throttle_stall *stall;     /* of the store; NULL: none */
	struct throttle_waiter *sleepers; /* ring or NULL */
	struct throttle_waiter *timer;    /* the sleeper with the earliest timer, or NULL */
	int64_t timer_ns;                 /* when it wakes; INT64_MAX without one */
};

/* `stall`, if any, must outlive the line; lines that stall together share one. */
void throttle_line_init(struct throttle_line *l, const struct share_limits *limits,
			struct throttle_stall *stall);
void throttle_line_release(struct throttle_line *l);
/* The request arrives now. `w` must live until throttle_line_wait has returned. */
void throttle_line_arrive(struct throttle_line *l, struct throttle_waiter *w, int64_t latency_ns,
			  uint64_t bytes);
/* Sleeps until the request, which turned out to be of `bytes` (not more than announced), is done.
 */
void throttle_line_wait(struct throttle_line *l, struct throttle_waiter *w, uint64_t bytes);
