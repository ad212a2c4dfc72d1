#pragma once
/* What a store did with the servers that it talks to, since it was created. */
#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

#define STORE_SERVER_KINDS 16

struct store_server {
	const char *address; /* "host:port"; lives as long as the store */
	bool tls;
	/* by kind, of which there are `kinds`; repetitions are not counted here */
	uint64_t requests[STORE_SERVER_KINDS];
	const char *const *kind_names;
	unsigned kinds;
	uint64_t all, failed;
	/* requests that were sent again, by reason, and the time of the void tries and pauses */
	uint64_t again[STORE_SERVER_KINDS];
	const char *const *again_names;
	unsigned again_kinds;
	uint64_t again_ns;
	uint64_t connections;                                        /* opened */
	uint64_t body_sent, body_received, wire_sent, wire_received; /* bytes */
	/* of all answers together: from the end of the request to the first and to the last byte;
	 * the longest wait for a first byte; answers that came 38 to 46 ms after a request on a
	 * kept connection, as with a server that lacks TCP_NODELAY */
	uint64_t answers, first_ns, last_ns, first_max_ns, clumped;
};

/* Server number i of the store below all shims; false when it has fewer. Any thread. */
bool store_server(const struct store *s, unsigned i, struct store_server *out);
/* A line of the log for each; a warning where requests were sent again or failed. */
void store_servers_log(const struct store *s);
