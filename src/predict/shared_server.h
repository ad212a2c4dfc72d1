#pragma once
/* What those who are simulated wait for: a heap of moments, a server that is shared equally by
 * those at it, and lines in which they wait in turn. Private to predict/. */
#include <stdbool.h>
#include <stdint.h>

struct moments {
	struct moment_order {
		uint64_t key; /* the bits of a double that is not negative */
		uint64_t seq; /* those of one key go in the order in which they came */
	} * order;
	struct moment_of {
		uint32_t who, what;
	} * of;
	uint32_t n, room;
	uint64_t seq;
};

#define MOMENT_BYTES (sizeof(struct moment_order) + sizeof(struct moment_of))

struct moment {
	double key;
	uint32_t who, what;
};

void moments_reserve(struct moments *h, uint32_t room);
void moments_release(struct moments *h);
/* A key is not negative and may be INFINITY. */
void moments_push(struct moments *h, double key, uint32_t who, uint32_t what);
struct moment moments_pop(struct moments *h);

/* Shared by all at it: each of n gets min(each, all / n) of it a second. INFINITY: no limit. */
struct shared_server {
	struct moments heap; /* by the v at which one is done: all need the same rate */
	double each, all;
	double v;   /* what one that was there all the time has got, */
	double at;  /* by then */
	double due; /* for the simulation: when it looks again; INFINITY: not */
	uint32_t looks;
};

/* Takes time into account; before any change of its rates. */
void server_touch(struct shared_server *t, double now);
void server_enter(struct shared_server *t, double now, double amount, uint32_t who);
/* When the first of them is done if nothing changes; INFINITY: nobody is there. */
double server_due(const struct shared_server *t);
/* The first one leaves. */
uint32_t server_leave(struct shared_server *t, double now);

/* Where requests wait in turn: a pace, then servers. The ends are known when one comes. */
struct line {
	uint32_t servers; /* 0: no limit */
	uint32_t burst;   /* 0: no ceiling; any burst + 1 requests in a row take burst * pace_s */
	double pace_s;
	double *free;     /* heap of `servers`: when each of them is */
	double *released; /* ring of `burst` */
	uint64_t releases;
	double carry; /* requests that a part leaves over */
};

void line_reserve(struct line *l, uint32_t servers, uint32_t burst, double pace_s);
void line_release(struct line *l);
/* When so many requests that come now are begun, by the pace. */
double line_pace(struct line *l, double now, double requests);
/* When one that a server serves for so long is done; just the sum without servers. */
double line_serve(struct line *l, double now, double demand);
