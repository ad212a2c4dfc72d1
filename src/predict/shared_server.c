#include "predict/shared_server.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* ---- moments: a heap of four children, which is half as high as one of two ----
 *
 * Most of a simulation's time is spent here, waiting for comparisons that cannot be predicted: keys
 * are compared as whole numbers, key and sequence at once, and without a branch. */

#define CHILDREN 4
#define CYCLES 3 /* of a line's bursts, before they are all alike */

typedef unsigned __int128 order_t;

static order_t order_of(const struct moment_order *o)
{
	return (order_t)o->key << 64 | o->seq;
}

/* Of a key that is not negative: ordered as the number is. */
static uint64_t bits_of(double key)
{
	uint64_t bits;

	key += 0.0; /* no negative zero */
	memcpy(&bits, &key, sizeof(bits));
	return bits;
}

static double key_of(uint64_t bits)
{
	double key;

	memcpy(&key, &bits, sizeof(key));
	return key;
}

static void reserve(struct moments *h, uint32_t room)
{
	h->room = room;
	h->order = xrealloc(h->order, room * sizeof(*h->order));
	h->of = xrealloc(h->of, room * sizeof(*h->of));
}

void moments_reserve(struct moments *h, uint32_t room)
{
	*h = (struct moments){0};
	reserve(h, room + CHILDREN);
}

void moments_release(struct moments *h)
{
	free(h->order);
	free(h->of);
}

static double moments_first(const struct moments *h)
{
	assert(h->n > 0);
	return key_of(h->order[0].key);
}

/* Up from a free place. */
static void rise(struct moments *h, uint32_t i, struct moment_order order, struct moment_of of)
{
	for (; i > 0; i = (i - 1) / CHILDREN) {
		uint32_t above = (i - 1) / CHILDREN;

		if (order_of(&h->order[above]) <= order_of(&order))
			break;
		h->order[i] = h->order[above];
		h->of[i] = h->of[above];
	}
	h->order[i] = order;
	h->of[i] = of;
}

void moments_push(struct moments *h, double key, uint32_t who, uint32_t what)
{
	assert(key >= 0);
	if (h->n == h->room)
		reserve(h, 2 * h->room + CHILDREN);
	rise(h, h->n++, (struct moment_order){bits_of(key), h->seq++},
	     (struct moment_of){who, what});
}

struct moment moments_pop(struct moments *h)
{
	const struct moment first = {key_of(h->order[0].key), h->of[0].who, h->of[0].what};
	uint32_t i = 0, child;

	assert(h->n > 0);
	h->n--;
	/* the free place goes down to the end, where the last one nearly always belongs */
	for (; (child = CHILDREN * i + 1) + CHILDREN <= h->n; i = child) {
		order_t least = order_of(&h->order[child]);

		for (uint32_t c = child + 1, end = child + CHILDREN; c < end; c++) {
			order_t order = order_of(&h->order[c]);
			bool less = order < least;

			least = less ? order : least;
			child = less ? c : child;
		}
		h->order[i] = h->order[child];
		h->of[i] = h->of[child];
	}
	if (child < h->n) {
		for (uint32_t c = child + 1; c < h->n; c++)
			if (order_of(&h->order[c]) < order_of(&h->order[child]))
				child = c;
		h->order[i] = h->order[child];
		h->of[i] = h->of[child];
		i = child;
	}
	rise(h, i, h->order[h->n], h->of[h->n]);
	return first;
}

/* ---- a shared server ---- */

static double rate_of(const struct shared_server *t)
{
	return fmin(t->each, t->all / t->heap.n);
}

void server_touch(struct shared_server *t, double now)
{
	if (t->heap.n && now > t->at)
		t->v += (now - t->at) * rate_of(t);
	t->at = now;
}

void server_enter(struct shared_server *t, double now, double amount, uint32_t who)
{
	server_touch(t, now);
	if (t->heap.n == 0)
		t->v = 0;
	moments_push(&t->heap, t->v + amount, who, 0);
}

double server_due(const struct shared_server *t)
{
	double left;

	if (t->heap.n == 0)
		return INFINITY;
	left = moments_first(&t->heap) - t->v;
	return left > 0 ? t->at + left / rate_of(t) : t->at;
}

uint32_t server_leave(struct shared_server *t, double now)
{
	server_touch(t, now);
	return moments_pop(&t->heap).who;
}

/* ---- a line ---- */

void line_reserve(struct line *l, uint32_t servers, uint32_t burst, double pace_s)
{
	*l = (struct line){.servers = servers,
			   .burst = burst,
			   .pace_s = pace_s,
			   .free = xcalloc(servers ? servers : 1, sizeof(double)),
			   .released = xcalloc(burst ? burst : 1, sizeof(double))};
}

void line_release(struct line *l)
{
	free(l->free);
	free(l->released);
}

/* After some cycles of its bursts each takes as long as the one before: what is left of whole ones
 * at once. */
static void line_skip(struct line *l, double *at)
{
	double skipped = floor(l->carry / l->burst) - 1, later = skipped * l->burst * l->pace_s;

	for (uint32_t i = 0; i < l->burst; i++)
		l->released[i] += later;
	*at += later;
	l->carry -= skipped * l->burst;
}

double line_pace(struct line *l, double now, double requests)
{
	uint64_t cycles = 0;
	double at = now;

	if (!l->burst)
		return now;
	for (l->carry += requests; l->carry >= 1; l->carry--) {
		if (l->carry >= CYCLES * (double)l->burst && cycles++ == CYCLES * l->burst)
			line_skip(l, &at);
		double *slot = &l->released[l->releases % l->burst];

		if (l->releases++ >= l->burst)
			at = fmax(at, *slot + l->burst * l->pace_s);
		*slot = at;
	}
	return at;
}

double line_serve(struct line *l, double now, double demand)
{
	uint32_t i = 0, child;
	double done = now + demand;

	if (!l->servers)
		return done;
	/* the one that is free first takes it, and sinks in the heap */
	done = fmax(now, l->free[0]) + demand;
	for (; (child = 2 * i + 1) < l->servers; i = child) {
		if (child + 1 < l->servers && l->free[child + 1] < l->free[child])
			child++;
		if (!(l->free[child] < done))
			break;
		l->free[i] = l->free[child];
	}
	l->free[i] = done;
	return done;
}
