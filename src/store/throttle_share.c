/* Slots, latency and processor sharing by virtual time. */
#include "store/throttle_share.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"

/* ---- pairing heaps: nodes on the waiters' stacks, nothing to allocate ---- */

static bool heap_before(const struct share_request *a, const struct share_request *b)
{
	return a->key < b->key || (!(b->key < a->key) && a->seq < b->seq);
}

static struct share_request *heap_meld(struct share_request *a, struct share_request *b)
{
	struct share_request *t;

	if (!a)
		return b;
	if (!b)
		return a;
	if (heap_before(b, a)) {
		t = a;
		a = b;
		b = t;
	}
	/* prev of a first child is its parent */
	b->prev = a;
	b->next = a->child;
	if (a->child)
		a->child->prev = b;
	a->child = b;
	return a;
}

static void heap_push(struct share_heap *h, struct share_request *r)
{
	r->child = r->next = r->prev = NULL;
	h->root = heap_meld(h->root, r);
}

/* Two passes: pairs from the left, then all from the right. */
static struct share_request *heap_meld_children(struct share_request *first)
{
	struct share_request *pairs = NULL, *root = NULL;

	while (first) {
		struct share_request *a = first, *b = a->next, *m;

		first = b ? b->next : NULL;
		a->next = a->prev = NULL;
		if (b)
			b->next = b->prev = NULL;
		m = heap_meld(a, b);
		m->next = pairs;
		pairs = m;
	}
	while (pairs) {
		struct share_request *m = pairs;

		pairs = m->next;
		m->next = NULL;
		root = heap_meld(root, m);
	}
	return root;
}

static void heap_remove(struct share_heap *h, struct share_request *r)
{
	struct share_request *rest = heap_meld_children(r->child);

	assert(h->root && (h->root == r || r->prev));
	if (h->root == r) {
		h->root = rest;
	} else {
		if (r->prev->child == r)
			r->prev->child = r->next;
		else
			r->prev->next = r->next;
		if (r->next)
			r->next->prev = r->prev;
		h->root = heap_meld(h->root, rest);
	}
	if (h->root)
		h->root->prev = h->root->next = NULL;
	r->child = r->next = r->prev = NULL;
}

/* ---- the system ---- */

void share_init(struct share *s, double bandwidth, double stream_bandwidth, uint64_t slots,
		int64_t now_ns)
{
	memset(s, 0, sizeof(*s));
	s->bandwidth = bandwidth;
	s->stream_bandwidth = stream_bandwidth;
	s->slots = slots;
	s->origin_ns = now_ns;
}

/* Bytes per ns that each active transfer receives; infinity without limits. */
static double transfer_rate(const struct share *s)
{
	double r = HUGE_VAL;

	if (s->bandwidth > 0)
		r = s->bandwidth / (double)s->transfers;
	if (s->stream_bandwidth > 0 && s->stream_bandwidth < r)
		r = s->stream_bandwidth;
	return r / (double)NS_PER_S;
}

/* When the first transfer ends if nothing else happens. */
static double transfer_end(const struct share *s)
{
	double left = s->transfer.root->key - s->v;

	return left > 0 ? s->now_ns + left / transfer_rate(s) : s->now_ns;
}

static void enter_service(struct share *s, struct share_request *r)
{
	s->in_service++;
	r->phase = SHARE_LATENCY;
	r->key = s->now_ns + r->latency_ns;
	heap_push(&s->latency, r);
}

static void start_transfer(struct share *s)
{
	struct share_request *r = s->latency.root;

	heap_remove(&s->latency, r);
	/* a busy period starts at zero again, so that rounding never builds up */
	if (s->transfers == 0)
		s->v = 0;
	s->transfers++;
	r->phase = SHARE_TRANSFER;
	r->key = s->v + r->bytes;
	heap_push(&s->transfer, r);
}

static void end_transfer(struct share *s, struct share_request *r)
{
	assert(s->transfers > 0 && s->in_service >= s->transfers);
	heap_remove(&s->transfer, r);
	s->transfers--;
	s->in_service--;
	r->phase = SHARE_DONE;
	r->done_ns = s->now_ns;
	if (s->done_last)
		s->done_last->next = r;
	else
		s->done = r;
	s->done_last = r;
	if (s->queue) {
		struct share_request *q = s->queue;

		s->queue = q->next;
		if (!s->queue)
			s->queue_last = NULL;
		enter_service(s, q);
	}
}

static void move_time_to(struct share *s, double t)
{
	if (s->transfers > 0 && t > s->now_ns)
		s->v += (t - s->now_ns) * transfer_rate(s);
	if (t > s->now_ns)
		s->now_ns = t;
}

void share_advance(struct share *s, int64_t now_ns)
{
	double until = (double)(now_ns - s->origin_ns);

	for (;;) {
		double end = s->transfer.root ? transfer_end(s) : HUGE_VAL;
		double start = s->latency.root ? s->latency.root->key : HUGE_VAL;

		if (fmin(end, start) > until)
			break;
		/* at the same moment those who leave go first, as a slot or share freed is free */
		if (end <= start) {
			double tag = s->transfer.root->key;

			if (end > s->now_ns)
				s->now_ns = end;
			s->v = tag > s->v ? tag : s->v;
			end_transfer(s, s->transfer.root);
		} else {
			move_time_to(s, start);
			start_transfer(s);
		}
	}
	if (until > s->now_ns)
		move_time_to(s, until);
}

void share_submit(struct share *s, struct share_request *r, int64_t now_ns, int64_t latency_ns,
		  uint64_t bytes)
{
	share_advance(s, now_ns);
	memset(r, 0, sizeof(*r));
	r->latency_ns = (double)latency_ns;
	r->bytes = (double)bytes;
	r->seq = s->submitted++;
	if (!s->slots || s->in_service < s->slots) {
		enter_service(s, r);
	} else {
		r->phase = SHARE_QUEUED;
		if (s->queue_last)
			s->queue_last->next = r;
		else
			s->queue = r;
		s->queue_last = r;
	}
	share_advance(s, now_ns);
}

void share_shrink(struct share *s, struct share_request *r, int64_t now_ns, uint64_t bytes)
{
	share_advance(s, now_ns);
	if (r->phase == SHARE_DONE || (double)bytes >= r->bytes)
		return;
	if (r->phase == SHARE_TRANSFER) {
		heap_remove(&s->transfer, r);
		r->key -= r->bytes - (double)bytes;
		heap_push(&s->transfer, r);
	}
	r->bytes = (double)bytes;
	share_advance(s, now_ns);
}

struct share_request *share_take_done(struct share *s)
{
	struct share_request *r = s->done;

	if (!r)
		return NULL;
	s->done = r->next;
	if (!s->done)
		s->done_last = NULL;
	r->next = NULL;
	return r;
}

bool share_next(const struct share *s, int64_t *at_ns, struct share_request **whose)
{
	double end = s->transfer.root ? transfer_end(s) : HUGE_VAL;
	double start = s->latency.root ? s->latency.root->key : HUGE_VAL;
	double t = fmin(end, start);

	if (!s->transfer.root && !s->latency.root)
		return false;
	*whose = end <= start ? s->transfer.root : s->latency.root;
	/* times no clock reaches still fit */
	*at_ns = t < 9e18 - (double)s->origin_ns ? s->origin_ns + (int64_t)ceil(t) : INT64_MAX;
	return true;
}
