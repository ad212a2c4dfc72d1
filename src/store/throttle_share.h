#pragma once
/* The arithmetic of an emulated storage system: a rate of admission, first-in-first-out slots, a
 * latency, then processor sharing of a bandwidth. Time is a parameter, so that it can be checked
 * exactly.
 *
 * A request is admitted in its turn, waits for one of `slots` slots, then its latency passes, then
 * its bytes move: each of n active transfers progresses at min(stream_bandwidth, B / n), where B is
 * the bandwidth of that moment. Every event takes place at its ideal time, however late
 * `share_advance` is called: lateness of the caller never accumulates.
 *
 * Admission: at most `rate` requests per second, evenly spaced after each other, in order of
 * arrival. With a slice, `rate * slice` requests are admitted at once when a slice begins and the
 * others wait for a later one; what a slice leaves over expires (as the block layer throttles a
 * control group).
 *
 * B is `burst_bandwidth` while there is credit, otherwise `bandwidth`, which halves every
 * `half_life_ns` since the first request (in steps of a 32nd of it) until `floor`. Credit starts at
 * `burst_bytes`, is spent by each byte moved, and grows back by `burst_refill` while nothing moves.
 *
 * Requests are lent by the caller from share_submit until share_take_done returns them; nothing is
 * allocated. Not thread-safe. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "conf/opt.h"

/* Draws from a duration distribution without state, so that threads need no lock and the n-th
 * request of a run waits the same time whenever it is repeated. */

/* Longest wait ever drawn. */
#define LATENCY_MAX_NS 1000000000000000LL

/* Whether the parameters can be drawn from; the sentence names `key`. */
int latency_check(const struct time_dist *d, const char *key, struct err *e);
/* The absolute value of draw `number` of the sequence named by `key`, in ns. */
int64_t latency_draw_ns(const struct time_dist *d, uint64_t key, uint64_t number);

/* A clock that stops: the stalls of an emulated storage system. Everything that is due during a
 * stall is due after it; what was due before is unchanged. */

struct throttle_stall {
	int64_t at_ns;     /* the first stall, since the start */
	int64_t every_ns;  /* from the beginning of one stall to that of the next; 0: one only */
	int64_t length_ns; /* shorter than every_ns; 0: no stalls */
	_Atomic int64_t start_ns; /* of the monotonic clock; 0 before the first request */
};

/* The first request arrives: the stalls are counted from here. Later calls change nothing. Any
 * thread. */
void throttle_stall_start(struct throttle_stall *s, int64_t now_ns);
/* The time on the clock that stops, at the time `real_ns`; and back: when the clock that stops gets
 * to `work_ns` (INT64_MAX stays). NULL: a clock that does not stop. */
int64_t throttle_stall_work_ns(const struct throttle_stall *s, int64_t real_ns);
int64_t throttle_stall_real_ns(const struct throttle_stall *s, int64_t work_ns);

enum share_phase {
	SHARE_IDLE,
	SHARE_ADMISSION,
	SHARE_QUEUED,
	SHARE_LATENCY,
	SHARE_TRANSFER,
	SHARE_DONE
};

/* A member that is 0 sets no limit. */
struct share_limits {
	double bandwidth, stream_bandwidth; /* bytes per second */
	uint64_t slots;
	double rate;        /* requests per second */
	int64_t slice_ns;   /* in which they are admitted; 0: evenly */
	double burst_bytes; /* needs bandwidth, and burst_bandwidth above it */
	double burst_bandwidth;
	double burst_refill;  /* bytes per second */
	int64_t half_life_ns; /* needs bandwidth */
	double floor;         /* bytes per second */
};

struct share_request {
	enum share_phase phase;
	double latency_ns;
	double bytes;
	double done_ns; /* SHARE_DONE: the ideal time, since the origin */
	double key;     /* order in its heap */
	uint64_t seq;   /* order of submission: ties */
	struct share_request *child, *next, *prev; /* heap; `next` also links lists */
};

struct share_heap {
	struct share_request *root;
};

struct share {
	struct share_limits limits;
	int64_t origin_ns; /* all doubles below count from here */
	double now_ns;
	double v;           /* bytes every transfer active since v = 0 has received */
	double credit;      /* bytes */
	double first_ns;    /* the first request */
	double steps;       /* of the half-life, since the first request */
	double next_ns;     /* admission without slices: the earliest of the next request */
	double slice, left; /* the slice of the last admission, and what it has left */
	uint64_t in_service, transfers, submitted;
	struct share_heap latency;  /* by the end of the latency */
	struct share_heap transfer; /* by the v at which the last byte arrives */
	struct share_request *admission, *admission_last; /* in order; key: when */
	struct share_request *queue, *queue_last;
	struct share_request *done, *done_last;
};

void share_init(struct share *s, const struct share_limits *limits, int64_t now_ns);
/* Takes a request at `now_ns` (advances to it first). */
void share_submit(struct share *s, struct share_request *r, int64_t now_ns, int64_t latency_ns,
		  uint64_t bytes);
/* Fewer bytes than submitted are to be moved, as it turned out by `now_ns`. A request that is past
 * the new size ends now; one that is done stays done. */
void share_shrink(struct share *s, struct share_request *r, int64_t now_ns, uint64_t bytes);
/* Lets everything happen that is due by `now_ns`; a time before the last one is the last one. */
void share_advance(struct share *s, int64_t now_ns);
/* The finished requests in the order of their ideal times, one a call; NULL when there are none. */
struct share_request *share_take_done(struct share *s);
/* When a request will be done, if that is known already and no other request can change it: nothing
 * is shared between transfers, and it has been admitted. False otherwise. */
bool share_own_end(const struct share *s, const struct share_request *r, int64_t *at_ns);
/* The earliest time at which something may be done, and whose it is. False when nothing is pending.
 * Nothing finishes before it; later submissions never make it earlier, except by their own. */
bool share_next(const struct share *s, int64_t *at_ns, struct share_request **whose);

/* Makes threads wait as the arithmetic of throttle_share.h says. Any number of threads; those who
 * wait sleep, and at any moment one sleeper at least holds a timer for the next event, and all
 * whose end depends on no other request hold one for their own. */

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
