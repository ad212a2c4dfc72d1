#pragma once
/* What the sockets of a job show, while its log is read: a reader says which connections were made,
 * what was said on them and how many bytes moved; here requests and answers become exchanges of the
 * job (job_log.h), and those of objects its events. Times are those of the reader.
 *
 * A log that shows a request after its answer, two requests before an answer, or half a head, is
 * followed as far as it goes: what cannot be told is unknown. Bounds: CONNECTIONS_MOST, later ones
 * are left out; names of objects of `names_most` bytes in all. One thread. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/map.h"
#include "recorder/heard.h"
#include "trace/job_log.h"

#define CONNECTIONS_MOST (UINT32_C(1) << 22)

struct connections {
	struct job *job;
	struct err *e;
	struct connection_state *state; /* of each connection of the job */
	size_t states, room;
	struct map last;                 /* of each thread, the object that it read last */
	uint64_t name_bytes, names_most; /* of objects; 0: of any number of bytes */
	uint64_t requests, cut;          /* cut: those whose targets are */
	bool printed; /* by strace, which cuts what it prints: what to do about that is noted */
	bool events;  /* are added, and exchanges; else the requests are only counted */
	bool left_out;
	int rc; /* negative once something failed, with `e` */
};

/* `e` lives as long. */
void connections_init(struct connections *c, struct job *job, bool events, struct err *e);
/* Ends what is under way; then releases. Returns rc; in *requests, which may be NULL, how many
 * there were. */
int connections_finish(struct connections *c, uint64_t *requests);

/* A connection that was made; JOB_NONE beyond the bound. */
uint32_t connection_made(struct connections *c, uint32_t process, const char *peer, bool local,
			 int64_t at_ns);
/* In all below, `i` may be JOB_NONE. */
void connection_speaks(struct connections *c, uint32_t i, enum job_speaks what);
void connection_host(struct connections *c, uint32_t i, const char *host);
void connection_agent(struct connections *c, uint32_t i, const char *agent);
/* A head, or lines of one (HEARD_GOES_ON, status 0), in front of the bytes that it came with:
 * `bytes` of them are the head's. `h->target` is the path; it, and the numbers, are used. */
void connection_request(struct connections *c, uint32_t i, uint32_t thread, const struct heard *h,
			int64_t at_ns);
void connection_answer(struct connections *c, uint32_t i, const struct heard *h, int64_t at_ns);
/* Bytes that moved; of a receive 0 is the end. */
void connection_moved(struct connections *c, uint32_t i, bool sent, int64_t bytes, int64_t at_ns);
void connection_closed(struct connections *c, uint32_t i, int64_t at_ns);
/* The host's name that was asked for, which may have several addresses; else address and port. */
const char *job_server_name(const struct job_connection *c);
/* "10.0.0.1:9000" of an address' bytes in hexadecimal digits; other text stays. */
void connection_peer(const char *address, unsigned port, char *out, size_t size);
