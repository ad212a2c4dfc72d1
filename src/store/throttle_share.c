/* Admission, slots, latency and processor sharing by virtual time. */
#include "store/throttle_share.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"

/* The clock of a store that stalls. */

void throttle_stall_start(struct throttle_stall *s, int64_t now_ns)
{
	int64_t none = 0;

	if (atomic_load_explicit(&s->start_ns, memory_order_relaxed) == 0)
		atomic_compare_exchange_strong_explicit(&s->start_ns, &none, now_ns,
							memory_order_relaxed, memory_order_relaxed);
}

/* When the first stall begins; INT64_MAX without one. */
static int64_t first_stall(const struct throttle_stall *s)
{
	int64_t start;

	if (!s || s->length_ns == 0)
		return INT64_MAX;
	start = atomic_load_explicit(&s->start_ns, memory_order_relaxed);
	return start == 0 || s->at_ns > INT64_MAX - start ? INT64_MAX : start + s->at_ns;
}

int64_t throttle_stall_work_ns(const struct throttle_stall *s, int64_t real_ns)
{
	int64_t first = first_stall(s), past = real_ns - first, whole = 0;

	if (real_ns <= first)
		return real_ns;
	if (s->every_ns > 0) {
		whole = past / s->every_ns * s->length_ns;
		past %= s->every_ns;
	}
	return real_ns - whole - (past < s->length_ns ? past : s->length_ns);
}

int64_t throttle_stall_real_ns(const struct throttle_stall *s, int64_t work_ns)
{
	int64_t first = first_stall(s), stalls = 1;

	if (work_ns <= first || work_ns == INT64_MAX)
		return work_ns;
	if (s->every_ns > 0) {
		int64_t between = s->every_ns - s->length_ns;

		/* what is due as a stall begins is not late */
		stalls = (work_ns - first + between - 1) / between;
	}
	if (stalls > (INT64_MAX - work_ns) / s->length_ns)
		return INT64_MAX;
	return work_ns + stalls * s->length_ns;
}

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

/* Steps in which a half-life passes. */
#define STEPS_PER_HALF 32

void share_init(struct share *s, const struct share_limits *limits, int64_t now_ns)
{
	assert(!(limits->burst_bytes > 0) ||
	       (limits->bandwidth > 0 && limits->burst_bandwidth > 0));
	assert(!limits->half_life_ns || limits->bandwidth > 0);
	memset(s, 0, sizeof(*s));
	s->limits = *limits;
	s->credit = limits->burst_bytes;
	s->slice = -1;
	s->origin_ns = now_ns;
}

/* The bandwidth of this moment in bytes/s; 0: no limit. */
static double bandwidth_now(const struct share *s)
{
	double b = s->limits.bandwidth;

	if (s->credit > 0)
		return s->limits.burst_bandwidth;
	if (s->limits.half_life_ns)
		b = fmax(b * exp2(-s->steps / STEPS_PER_HALF), fmin(b, s->limits.floor));
	return b;
}

/* Bytes per ns that each active transfer receives; infinity without limits. */
static double transfer_rate(const struct share *s)
{
	double r = HUGE_VAL, b = bandwidth_now(s);

	if (b > 0)
		r = b / (double)s->transfers;
	if (s->limits.stream_bandwidth > 0 && s->limits.stream_bandwidth < r)
		r = s->limits.stream_bandwidth;
	return r / (double)NS_PER_S;
}

/* When the first transfer ends if nothing else happens. */
static double transfer_end(const struct share *s)
{
	double left = s->transfer.root->key - s->v;

	return left > 0 ? s->now_ns + left / transfer_rate(s) : s->now_ns;
}

static double step_ns(const struct share *s)
{
	return (double)s->limits.half_life_ns / STEPS_PER_HALF;
}

/* When the bandwidth changes if nothing else happens; while nothing moves, that is of no interest.
 */
static double bandwidth_change(const struct share *s)
{
	if (s->transfers == 0)
		return HUGE_VAL;
	if (s->credit > 0)
		return s->now_ns + s->credit / ((double)s->transfers * transfer_rate(s));
	if (s->limits.half_life_ns && bandwidth_now(s) > s->limits.floor)
		return s->first_ns + (s->steps + 1) * step_ns(s);
	return HUGE_VAL;
}

/* How far the half-life has got by now. */
static void count_steps(struct share *s)
{
	double steps = s->limits.half_life_ns ? floor((s->now_ns - s->first_ns) / step_ns(s)) : 0;

	s->steps = fmax(s->steps, steps);
}

/* Every active transfer has received `bytes` more. */
static void move_bytes(struct share *s, double bytes)
{
	s->v += bytes;
	s->credit = fmax(0, s->credit - bytes * (double)s->transfers);
}

static void move_time_to(struct share *s, double t)
{
	double dt = t - s->now_ns;

	if (dt <= 0)
		return;
	if (s->transfers > 0)
		move_bytes(s, dt * transfer_rate(s));
	else if (s->limits.burst_refill > 0)
		s->credit = fmin(s->limits.burst_bytes,
				 s->credit + dt * s->limits.burst_refill / (double)NS_PER_S);
	s->now_ns = t;
}

/* At the time of bandwidth_change. Says so itself, as rounding may put the moment just after now.
 */
static void change_bandwidth(struct share *s)
{
	if (s->credit > 0) {
		s->credit = 0;
		count_steps(s);
	} else {
		s->steps++;
	}
}

static void append(struct share_request **first, struct share_request **last,
		   struct share_request *r)
{
	r->next = NULL;
	if (*first)
		(*last)->next = r;
	else
		*first = r;
	*last = r;
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
	if (s->transfers == 0) {
		s->v = 0;
		count_steps(s);
	}
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
	append(&s->done, &s->done_last, r);
	if (s->queue) {
		struct share_request *q = s->queue;

		s->queue = q->next;
		if (!s->queue)
			s->queue_last = NULL;
		enter_service(s, q);
	}
}

static void admit(struct share *s, struct share_request *r)
{
	if (!s->limits.slots || s->in_service < s->limits.slots) {
		enter_service(s, r);
		return;
	}
	r->phase = SHARE_QUEUED;
	append(&s->queue, &s->queue_last, r);
}

static void admit_first(struct share *s)
{
	struct share_request *r = s->admission;

	s->admission = r->next;
	if (!s->admission)
		s->admission_last = NULL;
	r->next = NULL;
	admit(s, r);
}

/* When a request that arrives now is admitted. */
static double admission_time(struct share *s)
{
	const struct share_limits *l = &s->limits;
	double slice_ns = (double)l->slice_ns, at, quota;

	if (!l->slice_ns) {
		at = fmax(s->now_ns, s->next_ns);
		s->next_ns = at + (double)NS_PER_S / l->rate;
		return at;
	}
	quota = l->rate * slice_ns / (double)NS_PER_S;
	if (floor(s->now_ns / slice_ns) > s->slice) {
		s->slice = floor(s->now_ns / slice_ns);
		/* a part of a request is kept, or the rate would be missed */
		s->left = s->left - floor(s->left) + quota;
	}
	if (s->left < 1) {
		double later = ceil((1 - s->left) / quota);

		s->slice += later;
		s->left += later * quota;
	}
	s->left--;
	return fmax(s->now_ns, s->slice * slice_ns);
}

void share_advance(struct share *s, int64_t now_ns)
{
	double until = (double)(now_ns - s->origin_ns);

	for (;;) {
		double end = s->transfer.root ? transfer_end(s) : HUGE_VAL;
		double start = s->latency.root ? s->latency.root->key : HUGE_VAL;
		double enter = s->admission ? s->admission->key : HUGE_VAL;
		double change = bandwidth_change(s);

		if (fmin(fmin(end, start), fmin(enter, change)) > until)
			break;
		/* at the same moment those who leave go first, as a slot or share freed is free */
		if (end <= start && end <= enter && end <= change) {
			double tag = s->transfer.root->key;

			if (tag > s->v)
				move_bytes(s, tag - s->v);
			s->now_ns = fmax(s->now_ns, end);
			end_transfer(s, s->transfer.root);
		} else if (change <= start && change <= enter) {
			move_time_to(s, change);
			change_bandwidth(s);
		} else if (start <= enter) {
			move_time_to(s, start);
			start_transfer(s);
		} else {
			move_time_to(s, enter);
			admit_first(s);
		}
	}
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
	if (r->seq == 0)
		s->first_ns = s->now_ns;
	if (s->limits.rate > 0) {
		r->phase = SHARE_ADMISSION;
		r->key = admission_time(s);
		append(&s->admission, &s->admission_last, r);
	} else {
		admit(s, r);
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

/* The clock's time of one since the origin; times no clock reaches still fit. */
static int64_t clock_time(const struct share *s, double t)
{
	return t < 9e18 - (double)s->origin_ns ? s->origin_ns + (int64_t)ceil(t) : INT64_MAX;
}

bool share_own_end(const struct share *s, const struct share_request *r, int64_t *at_ns)
{
	double per_byte =
		s->limits.stream_bandwidth > 0 ? (double)NS_PER_S / s->limits.stream_bandwidth : 0;

	if (s->limits.bandwidth > 0)
		return false;
	if (r->phase == SHARE_LATENCY)
		*at_ns = clock_time(s, r->key + r->bytes * per_byte);
	else if (r->phase == SHARE_TRANSFER)
		*at_ns = clock_time(s, s->now_ns + fmax(0, r->key - s->v) * per_byte);
	else
		return false;
	return true;
}

bool share_next(const struct share *s, int64_t *at_ns, struct share_request **whose)
{
	double end = s->transfer.root ? transfer_end(s) : HUGE_VAL;
	double start = s->latency.root ? s->latency.root->key : HUGE_VAL;
	double enter = s->admission ? s->admission->key : HUGE_VAL;
	double t = fmin(fmin(end, start), enter);

	if (!s->transfer.root && !s->latency.root && !s->admission)
		return false;
	if (s->transfer.root && end <= fmin(start, enter))
		*whose = s->transfer.root;
	else
		*whose = s->latency.root && start <= enter ? s->latency.root : s->admission;
	*at_ns = clock_time(s, t);
	return true;
}
