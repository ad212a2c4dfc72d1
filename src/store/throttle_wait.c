/* Sleeping until an emulated request is done, without a service thread and without polling. */
#include "store/throttle_wait.h"

#include <assert.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

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
