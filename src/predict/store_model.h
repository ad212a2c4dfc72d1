#pragma once
/* The store of a model (predict/model.h): what requests wait for there, whoever makes them. Times
 * are the simulation's, in s, and must not go back. Private to predict/. */
#include <stdbool.h>
#include <stdint.h>

#include "predict/model.h"
#include "predict/shared_server.h"

/* Requests of one kind. */
struct way {
	struct line store;
	struct line *host; /* `hosts` of them; NULL: no pace of theirs */
	const struct model_queue *q;
	const struct model_drawn *drawn;
	bool waits; /* in a line */
};

struct store_model {
	const struct model *m; /* borrowed */
	uint32_t hosts;
	struct way open, read;
	bool of_hosts;      /* bytes are shared on each host, else at the store: in store_bytes */
	struct line *fluid; /* of bytes, where they are not shared: of hosts, or the store; NULL */
};

/* Some of the requests of a batch: `part` of them, of a rank's reader, numbered so that each draws
 * its own times. */
struct store_ask {
	uint32_t rank;
	uint64_t key;
	double part, size; /* size: factor of what goes with bytes */
};

uint32_t store_hosts(const struct model *m);
bool store_waits(const struct model_queue *q, const struct model_drawn *d);
void store_model_init(struct store_model *s, const struct model *m);
void store_model_release(struct store_model *s);

static inline uint32_t store_host(const struct store_model *s, uint32_t rank)
{
	return s->hosts == 1 ? 0 : (uint32_t)((uint64_t)rank * s->hosts / s->m->ranks);
}

/* When its opens, or requests, are served that come now: only of a way that waits. */
double store_pass(struct store_model *s, struct way *w, double now, const struct store_ask *a);
/* What it takes whatever others do: requests of the ways that do not wait. */
double store_delay(const struct store_model *s, const struct store_ask *a);

/* Whether bytes take time. */
bool store_moves(const struct store_model *s);
/* The servers that share bytes: `store_hosts` of them are initialised, of which a rank uses this.
 */
void store_bytes_init(const struct store_model *s, struct shared_server *t);
uint32_t store_bytes_of(const struct store_model *s, uint32_t rank);
/* Where hosts and the store have a bandwidth, bytes are shared where less is left for each, and the
 * other one lets none through before this time. */
double store_fluid(struct store_model *s, double now, uint32_t rank, double bytes);
