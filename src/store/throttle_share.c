/* Admission, slots, latency and processor sharing by virtual time. */
#include "store/throttle_share.h"

#include <assert.h>
#include <linux/futex.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/thread.h"

/* Latencies drawn from a counter-based generator. */

/* A Poisson draw takes about this many steps at most. */
#define POISSON_MAX 10000.0

struct draw {
	uint64_t key, i;
};

/* (0, 1), never an end */
static double uniform(struct draw *d)
{
	return ((double)(rng_word(d->key, d->i++) >> 12) + 0.5) * 0x1p-52;
}

static double gauss(struct draw *d)
{
	double r = sqrt(-2 * log(uniform(d)));

	return r * cos(2 * M_PI * uniform(d));
}

/* Marsaglia and Tsang's squeeze; shapes below 1 by a power of a uniform number. */
static double gamma_of(struct draw *d, double shape)
{
	double b, c, boost = 1;

	if (shape <= 0)
		return 0;
	if (shape < 1) {
		boost = pow(uniform(d), 1 / shape);
		shape += 1;
	}
	b = shape - 1.0 / 3;
	c = 1 / sqrt(9 * b);
	for (;;) {
		double x = gauss(d), v = 1 + c * x;

		if (v <= 0)
			continue;
		v = v * v * v;
		if (log(uniform(d)) < 0.5 * x * x + b * (1 - v + log(v)))
			return b * v * boost;
	}
}

/* Products of uniform numbers, in portions whose exponential does not underflow. */
static double poisson(struct draw *d, double mean)
{
	double count = 0;

	while (mean > 0) {
		double part = mean < 16 ? mean : 16;
		double floor_ = exp(-part);

		for (double p = uniform(d); p > floor_; p *= uniform(d))
			count++;
		mean -= part;
	}
	return count;
}

int latency_check(const struct time_dist *d, const char *key, struct err *e)
{
	if (!isfinite(d->a) || !isfinite(d->b))
		return err_set(e, ERR_USAGE, "%s: the numbers must be finite", key);
	if (d->kind == TIME_GAMMA && d->a < 0)
		return err_set(e, ERR_USAGE, "%s: the shape is %g; it must be 0 or more", key,
			       d->a);
	if (d->kind == TIME_POISSON && !(d->a >= 0 && d->a <= POISSON_MAX))
		return err_set(e, ERR_USAGE, "%s: lam is %g; it must be from 0 to %g seconds", key,
			       d->a, POISSON_MAX);
	return 0;
}

int64_t latency_draw_ns(const struct time_dist *d, uint64_t key, uint64_t number)
{
	struct draw at = {rng_key(key, number, 0), 0};
	double s = 0;

	switch (d->kind) {
	case TIME_NONE:
		return 0;
	case TIME_CONSTANT:
		s = d->a;
		break;
	case TIME_NORMAL:
		s = d->a + d->b * gauss(&at);
		break;
	case TIME_UNIFORM:
		s = d->a + (d->b - d->a) * uniform(&at);
		break;
	case TIME_GAMMA:
		s = gamma_of(&at, d->a) * d->b;
		break;
	case TIME_EXPONENTIAL:
		s = -log(uniform(&at)) * d->a;
		break;
	case TIME_PARETO:
		s = d->b * pow(uniform(&at), -1 / d->a);
		break;
	case TIME_POISSON:
		s = poisson(&at, d->a);
		break;
	}
	s = fabs(s) * (double)NS_PER_S;
	return s < (double)LATENCY_MAX_NS ? (int64_t)s : LATENCY_MAX_NS;
}

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

/* Sleeping until an emulated request is done, without a service thread and without polling. */

enum { WORD_WAIT, WORD_NUDGED, WORD_DONE };

/* Words to wake once the lock is free. Only their addresses are used then: a sleeper that is done
 * may have returned already, and a wake of a word nobody watches is harmless. */
struct wakes {
	_Atomic uint32_t *word[32];
	int n;
};

static void send_wakes(struct wakes *w)
{
	for (int i = 0; i < w->n; i++)
		thread_wake(w->word[i], 1);
	w->n = 0;
}

static void wake_later(struct wakes *w, _Atomic uint32_t *word)
{
	if (w->n == (int)(sizeof(w->word) / sizeof(w->word[0])))
		send_wakes(w);
	w->word[w->n++] = word;
}

/* Asks for the finest timers once per thread: threads of others than thread_start do not have them.
 */
static void throttle_precise(void)
{
	static _Thread_local bool precise;

	if (!precise)
		clock_precise_timers();
	precise = true;
}

void throttle_line_init(struct throttle_line *l, const struct share_limits *limits,
			struct throttle_stall *stall)
{
	memset(l, 0, sizeof(*l));
	pthread_mutex_init(&l->lock, NULL);
	share_init(&l->share, limits, clock_now_ns());
	l->stall = stall;
	l->timer_ns = INT64_MAX;
}

void throttle_line_release(struct throttle_line *l)
{
	pthread_mutex_destroy(&l->lock);
}

/* The clock of the emulated system. */
static int64_t work_now_ns(const struct throttle_line *l)
{
	return throttle_stall_work_ns(l->stall, clock_now_ns());
}

static void sleepers_add(struct throttle_line *l, struct throttle_waiter *w)
{
	if (w->asleep)
		return;
	w->asleep = true;
	if (l->sleepers) {
		w->next = l->sleepers;
		w->prev = l->sleepers->prev;
		w->prev->next = w;
		w->next->prev = w;
	} else {
		w->next = w->prev = w;
		l->sleepers = w;
	}
}

static void sleepers_remove(struct throttle_line *l, struct throttle_waiter *w)
{
	if (l->timer == w) {
		l->timer = NULL;
		l->timer_ns = INT64_MAX;
	}
	if (!w->asleep)
		return;
	assert(l->sleepers);
	w->asleep = false;
	w->prev->next = w->next;
	w->next->prev = w->prev;
	if (l->sleepers == w)
		l->sleepers = w->next == w ? NULL : w->next;
}

/* Tells the owners of finished requests. After its word says DONE a waiter must not be touched. */
static void finish_done(struct throttle_line *l, struct wakes *wakes)
{
	struct share_request *r;

	while ((r = share_take_done(&l->share))) {
		struct throttle_waiter *w = (struct throttle_waiter *)r;
		bool slept = w->asleep;
		_Atomic uint32_t *word = &w->word;

		sleepers_remove(l, w);
		atomic_store_explicit(word, WORD_DONE, memory_order_release);
		if (slept)
			wake_later(wakes, word);
	}
}

/* When nobody's timer covers the next event, hands it to a sleeper: the one it concerns, or any. */
static void arm_timer(struct throttle_line *l, struct wakes *wakes)
{
	struct share_request *whose;
	struct throttle_waiter *w;
	int64_t at;

	if (!l->sleepers || !share_next(&l->share, &at, &whose) || at >= l->timer_ns)
		return;
	w = (struct throttle_waiter *)whose;
	if (!w->asleep)
		w = l->sleepers;
	l->timer = w;
	l->timer_ns = at;
	atomic_store_explicit(&w->word, WORD_NUDGED, memory_order_relaxed);
	wake_later(wakes, &w->word);
}

void throttle_line_arrive(struct throttle_line *l, struct throttle_waiter *w, int64_t latency_ns,
			  uint64_t bytes)
{
	struct wakes wakes = {.n = 0};

	atomic_init(&w->word, WORD_WAIT);
	w->asleep = false;
	/* what takes no time would pass through a stall */
	if (l->stall && latency_ns == 0)
		latency_ns = 1;
	pthread_mutex_lock(&l->lock);
	share_submit(&l->share, &w->request, work_now_ns(l), latency_ns, bytes);
	finish_done(l, &wakes);
	/* an arrival makes nobody's end earlier, so a timer that runs still covers the sleepers */
	if (!l->timer)
		arm_timer(l, &wakes);
	pthread_mutex_unlock(&l->lock);
	send_wakes(&wakes);
}

static void sleep_until(_Atomic uint32_t *word, int64_t deadline_ns)
{
	struct timespec ts = {deadline_ns / NS_PER_S, deadline_ns % NS_PER_S};

	syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, WORD_WAIT,
		deadline_ns == INT64_MAX ? NULL : &ts, NULL, FUTEX_BITSET_MATCH_ANY);
}

/* One round under the lock. False when the request is done; otherwise *deadline_ns says when to
 * wake, INT64_MAX: when told. */
static bool wait_round(struct throttle_line *l, struct throttle_waiter *w, int64_t *deadline_ns,
		       struct wakes *wakes)
{
	struct share_request *whose;
	int64_t at = INT64_MAX;

	share_advance(&l->share, work_now_ns(l));
	finish_done(l, wakes);
	if (w->request.phase == SHARE_DONE) {
		arm_timer(l, wakes);
		return false;
	}
	sleepers_add(l, w);
	atomic_store_explicit(&w->word, WORD_WAIT, memory_order_relaxed);
	*deadline_ns = INT64_MAX;
	/* whoever holds the timer may itself wait for a processor */
	share_own_end(&l->share, &w->request, deadline_ns);
	share_next(&l->share, &at, &whose);
	if (l->timer == w || at < l->timer_ns) {
		l->timer = w;
		l->timer_ns = at;
		*deadline_ns = at;
	}
	return true;
}

void throttle_line_wait(struct throttle_line *l, struct throttle_waiter *w, uint64_t bytes)
{
	bool first = true;

	throttle_precise();
	while (atomic_load_explicit(&w->word, memory_order_acquire) != WORD_DONE) {
		struct wakes wakes = {.n = 0};
		int64_t deadline_ns;
		bool more;

		pthread_mutex_lock(&l->lock);
		if (first)
			share_shrink(&l->share, &w->request, work_now_ns(l), bytes);
		first = false;
		more = wait_round(l, w, &deadline_ns, &wakes);
		pthread_mutex_unlock(&l->lock);
		send_wakes(&wakes);
		if (more)
			sleep_until(&w->word, throttle_stall_real_ns(l->stall, deadline_ns));
	}
}
