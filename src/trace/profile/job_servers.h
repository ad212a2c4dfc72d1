#pragma once
/* The servers that a job's sockets lead to, as far as its log shows them: what it asked of them
 * over http, how much it had over https, on how many connections. */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "trace/job_log.h"

struct job_server {
	const char *name;  /* the host that was asked for, else address and port; of the job */
	const char *peer;  /* of its first connection, */
	const char *agent; /* and who asked there; "" */
	char *bucket;      /* of the first object, where it is one of S3; NULL. Owned */
	enum job_speaks speaks;
	bool local;
	bool others;    /* several that are not told apart: their name is no address */
	uint64_t peers; /* addresses */
	uint64_t connections, reused, open_at_once;
	int64_t sent, received;
	uint64_t requests[JOB_METHODS], listings;
	uint64_t ranged, gets;       /* answered GETs of objects: of a part, and all */
	uint64_t objects;            /* that were read */
	uint64_t unnamed;            /* GETs of objects whose paths are cut */
	uint64_t again;              /* answers 429, 500, 502, 503 and 504 */
	uint64_t refused;            /* other answers of 400 and more */
	uint64_t unanswered, cut;    /* cut: the answer ended before its length */
	uint64_t at_once;            /* GETs under way, the most */
	int64_t got, put;            /* bytes of bodies: of those GETs, of PUTs */
	int64_t least, median, most; /* bytes of a GET */
	double span_s;               /* from the first of them to the end of the last */
	double first_s, first_99_s;  /* to the first byte of an answer: median and 99 % */
	double last_s;               /* to the last one: median */
};

struct job_servers {
	struct job_server *v; /* those with the most bytes first */
	size_t n;
};

/* Those that are worth telling: of http, where an object was read or written, or of much data. */
void job_servers_find(const struct job *job, struct job_servers *out);
void job_servers_release(struct job_servers *s);
/* Sentences about the first of them, each with a blank behind it: "Objects over http from ...". */
void job_servers_answer(const struct job_servers *s, struct buf *out);
/* All of them, in lines. */
void job_servers_print(const struct job_servers *s, struct buf *out);
json_t *job_servers_json(const struct job_servers *s);
