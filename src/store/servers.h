#pragma once
/* What a store did with the servers that it talks to: counted by the store since it was created,
 * kept by a run as a list with what of it was in its timed part. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

/* What is asked of a server of objects. A store that counts has kinds of its own in this order. */
enum server_request {
	SERVER_GET,
	SERVER_HEAD,
	SERVER_LIST,
	SERVER_PUT,
	SERVER_MULTIPART_BEGIN,
	SERVER_PART,
	SERVER_MULTIPART_END,
	SERVER_MULTIPART_ABORT,
	SERVER_COPY,
	SERVER_DELETE,
	SERVER_REQUESTS
};

/* Why a request was sent again. */
enum server_again {
	SERVER_CLOSED,  /* a kept connection had been closed by the server: at once */
	SERVER_LOST,    /* a connection was lost before or in the middle of an answer */
	SERVER_CONNECT, /* no connection */
	SERVER_TIME,    /* a time limit */
	SERVER_BUSY,    /* 503, 429 */
	SERVER_ERROR,   /* 500, 502, 504 */
	SERVER_MOVED,   /* a redirect, or another region */
	SERVER_CLOCK,   /* signed anew with the server's time */
	SERVER_EXPIRED, /* signed anew with fresh credentials */
	SERVER_AGAINS
};

/* Nothing but numbers that grow, so that they are summed and subtracted as an array. */
struct server_counts {
	uint64_t requests[SERVER_REQUESTS]; /* answered or failed, without repetitions */
	uint64_t failed;
	uint64_t again[SERVER_AGAINS], again_ns; /* repetitions; their void tries and pauses */
	uint64_t connections, reopened;          /* opened; of them, where one had been lost */
	uint64_t body_sent, body_received, wire_sent, wire_received; /* bytes */
	/* of all answers: from the end of the request to the first and to the last byte */
	uint64_t answers, first_ns, last_ns;
	/* of kept connections: whose bytes came 35 to 46 ms late although the network is faster, as
	 * from a server that waits for the acknowledgement of what it sent; and up to 10 ms less
	 * or more than that */
	uint64_t clumped, beside_clump;
};

/* One server, as its store counts it. */
struct store_server {
	const char *address; /* "host:port"; lives as long as the store */
	bool tls;
	bool given;     /* by the user; else redirected to */
	int64_t skew_s; /* its clock less ours, where requests are signed with that; else 0 */
	const char *const *kind_names, *const *again_names; /* for people */
	uint64_t first_max_ns;                              /* the longest wait for a first byte */
	struct server_counts n;
};

/* Server number i of the store below all shims; false when it has fewer. Any thread. */
bool store_server(const struct store *s, unsigned i, struct store_server *out);
/* A line of the log for each; a warning where requests were sent again or failed. */
void store_servers_log(const struct store *s);

/* ---- of a run ---- */

#define SERVERS_MAX 256 /* of all processes */

struct server_use {
	char address[280];
	bool tls, given;
	int64_t skew_s;
	uint64_t first_max_ns;
	struct server_counts whole; /* from the creation of the store to its end */
	struct server_counts timed; /* training; evaluations where nothing was trained */
	struct server_counts mark;  /* when the present part of that began */
};
struct servers {
	struct server_use *use; /* owned */
	uint32_t n, room;
};

/* Room for all servers of a store, and some that it is redirected to. Nothing where it has none. */
int servers_init(struct servers *l, const struct store *s, struct err *e);
void servers_release(struct servers *l);
/* The timed part begins and ends, any number of times. Neither allocates. */
void servers_begin(struct servers *l, const struct store *s);
void servers_end(struct servers *l, const struct store *s);
/* All that was counted until now. */
void servers_count(struct servers *l, const struct store *s);
/* Adds what another process counted, by address. */
int servers_add(struct servers *l, const struct server_use *one, struct err *e);

uint64_t server_requests(const struct server_counts *n);
uint64_t server_repetitions(const struct server_counts *n); /* by whatever reason */
/* All that was sent: requests and repetitions. */
uint64_t server_tries(const struct server_counts *n);
/* The sum of all servers' counts. */
struct server_counts servers_sum(const struct servers *l, bool timed);

/* Whether an answer over the socket `fd` waited for an acknowledgement, by the time of a gap before
 * its bytes: 1; 0: no, -1: not, but nearly as long. */
int server_waited(int fd, int64_t gap_ns);
