#pragma once
/* The servers of a store: from which figures on a verdict or a limit speaks of them. All of them
 * are of the timed part of a run; of a run that only writes checkpoints, of all of it. */
#include "result/result.h"

#define SERVERS_LEAST 20   /* requests that something must have happened to: fewer are chance */
#define BUSY_WARN 0.01     /* of all that was sent: refused, as the server was too busy */
#define AGAIN_WARN 0.05    /* of the time of all requests: void tries and pauses */
#define REOPENED_WARN 0.10 /* of all that was sent: before which a connection was opened again */
#define CLUMP_WARN 0.10    /* of the answers: waited for an acknowledgement */
#define CLUMP_BESIDE 0.25  /* of these: answers that took nearly as long tell of a slow server */
#define IDLE_SHARE 0.25    /* of its even share of the requests: a server hardly asked */
#define SLOW_RATIO 2.0     /* of its time for an answer to that of the others together */
#define SLOW_LEAST_S 0.001 /* that it is longer by */
#define UPLOADS_ALIKE 0.01 /* shares of uploads that differ by more: times are not compared */
#define CACHED_RATIO 2.0   /* of the middle time of a read in the first epoch to later ones */
#define CACHED_LEAST_S 0.001
#define CACHED_READS 20    /* timed in the second half of the first epoch and in each later one */
#define CACHED_NO_CPU 0.05 /* of the first epoch: time without a processor */

struct servers_view {
	struct server_counts n; /* of all servers */
	bool timed;             /* else of the whole run */
	double tries;
	double again;          /* repetitions of the kinds of which `why` is one */
	double again_share;    /* of the time of all requests; NAN: not known */
	bool busy;             /* most of that time because servers were too busy */
	enum server_again why; /* most repetitions that took time; of none SERVER_AGAINS */
};

/* False: nothing was sent. */
bool servers_view_of(const struct result *r, struct servers_view *out);
/* What that reason is called: "lost connections". */
const char *servers_why(enum server_again why);
