#include "predict/shared_server.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

/* ---- moments: a heap of four children, which is half as high as one of two ---- */

#define CHILDREN 4

static bool before(const struct moment *a, const struct moment *b)
{
	return a->key < b->key || (!(b->key < a->key) && a->seq < b->seq);
}

void moments_reserve(struct moments *h, uint32_t room)
{
	*h = (struct moments){.entry = xcalloc(room ? room : 1, sizeof(*h->entry)), .room = room};
}

void moments_release(struct moments *h)
{
	free(h->entry);
}

void moments_push(struct moments *h, double key, uint32_t who, uint32_t what)
{
	const struct moment e = {key, h->seq++, who, what};
	uint32_t i = h->n++;

	if (i == h->room) {
		h->room = 2 * h->room + CHILDREN;
		h->entry = xrealloc(h->entry, h->room * sizeof(*h->entry));
	}
	for (; i > 0 && before(&e, &h->entry[(i - 1) / CHILDREN]); i = (i - 1) / CHILDREN)
		h->entry[i] = h->entry[(i - 1) / CHILDREN];
	h->entry[i] = e;
}

struct moment moments_pop(struct moments *h)
{
	const struct moment first = h->entry[0];
	uint32_t i = 0, child;

	assert(h->n > 0);
	h->n--;
	const struct moment last = h->entry[h->n];

	for (; (child = CHILDREN * i + 1) < h->n; i = child) {
		uint32_t end = child + CHILDREN < h->n ? child + CHILDREN : h->n;

		for (uint32_t c = child + 1; c < end; c++)
			if (before(&h->entry[c], &h->entry[child]))
				child = c;
		if (!before(&h->entry[child], &last))
			break;
		h->entry[i] = h->entry[child];
	}
	h->entry[i] = last;
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
	left = t->heap.entry[0].key - t->v;
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

double line_pace(struct line *l, double now, double requests)
{
	double at = now;

	if (!l->burst)
		return now;
	for (l->carry += requests; l->carry >= 1; l->carry--) {
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
