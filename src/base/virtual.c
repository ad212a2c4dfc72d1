/* Fibers, the order in which they run, and the clock. */
#include "base/virtual.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/saturate.h"
#include "base/virtual_switch.h"

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define WITH_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WITH_TSAN 1
#endif
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef WITH_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#define CANARY 0x5a17c0de5a17c0deULL
#define LINE 64u
/* Between stacks, beside their size: so that the same depth of many is not in the same lines of a
 * processor's cache. */
#define STAGGER (5u * LINE)
#define CHILDREN 4u
#define PREFETCHED 10
#define STALE_LEAST 64u
#define DEADLINES_LEAST 64u
#define PAGE_BYTES 4096u
#define SMALL_BYTES (32u << 10) /* of larger stacks most pages are never used */
#define CHUNK_BYTES (2u << 20)  /* a large page of most processors */

enum fiber_state { FIBER_FREE, FIBER_READY, FIBER_RUNNING, FIBER_WAITING };

/* Lies at the end of its stack. */
struct virtual_fiber {
	struct virtual_context context;
	struct virtual_fiber *next, *before; /* in a list of ready, waiting or free ones */
	struct virtual_waiters *in;          /* the list it waits in; NULL: none */
	struct virtual_timer timer;          /* fn is NULL: it wakes the fiber */
	const _Atomic uint32_t *word;        /* that it waits for */
	uint8_t state;                       /* enum fiber_state */
	bool woken;                          /* and not by its timer */
	bool serves;
	int64_t computed_ns, waited_ns;
	void (*fn)(void *arg);
	void *arg;
	uint64_t *bottom; /* of its stack: the canary */
#ifdef WITH_ASAN
	void *fake_stack;
	const void *asan_bottom;
	size_t asan_bytes;
#endif
#ifdef WITH_TSAN
	void *tsan;
#endif
};

struct deadline {
	int64_t at_ns;
	uint32_t number; /* ascending: who was set first; that of the timer while it counts */
	struct virtual_timer *timer;
};

struct virtual
{
	struct virtual_settings settings;
	int64_t now_ns;
	struct virtual_fiber *running;
	struct virtual_waiters ready, free;
	struct virtual_waiters *bucket; /* of words */
	uint32_t buckets;               /* a power of two */
	struct deadline *heap;          /* of CHILDREN each */
	size_t deadlines, room, stale;
	uint32_t number;
	bool inside, calling; /* in virtual_run; in a timer's function */

	char **chunk;                      /* of `each` stacks */
	size_t chunks, each, stride, used; /* used: stacks ever taken */
	uint32_t live, serving;
	struct virtual_stats stats;
	struct virtual_fiber host; /* whoever called virtual_run */
};

_Thread_local struct virtual *virtual_here;

/* ---- lists ---- */

static void append(struct virtual_waiters *w, struct virtual_fiber *f)
{
	f->next = NULL;
	f->before = w->last;
	if (w->last)
		w->last->next = f;
	else
		w->first = f;
	w->last = f;
}

static void unlink_fiber(struct virtual_waiters *w, struct virtual_fiber *f)
{
	if (f->before)
		f->before->next = f->next;
	else
		w->first = f->next;
	if (f->next)
		f->next->before = f->before;
	else
		w->last = f->before;
}

static void make_ready(struct virtual *v, struct virtual_fiber *f)
{
	f->state = FIBER_READY;
	append(&v->ready, f);
}

/* ---- deadlines ---- */

static bool earlier(const struct deadline *a, const struct deadline *b)
{
	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns;
	/* numbers go round; those that are there at once are near each other */
	return (int32_t)(a->number - b->number) < 0;
}

static void sift_up(struct virtual *v, size_t i, struct deadline d)
{
	for (; i > 0 && earlier(&d, &v->heap[(i - 1) / CHILDREN]); i = (i - 1) / CHILDREN)
		v->heap[i] = v->heap[(i - 1) / CHILDREN];
	v->heap[i] = d;
}

static void sift_down(struct virtual *v, size_t i, struct deadline d)
{
	size_t child, n = v->deadlines;

	for (; (child = CHILDREN * i + 1) < n; i = child) {
		size_t end = child + CHILDREN < n ? child + CHILDREN : n;

		for (size_t k = child + 1; k < end; k++)
			child = earlier(&v->heap[k], &v->heap[child]) ? k : child;
		if (!earlier(&v->heap[child], &d))
			break;
		v->heap[i] = v->heap[child];
	}
	v->heap[i] = d;
}

/* A timer that was cleared or set again leaves its entry. */
static bool is_stale(const struct deadline *d)
{
	return d->timer->number != d->number;
}

static void drop_stale(struct virtual *v)
{
	size_t kept = 0;

	for (size_t i = 0; i < v->deadlines; i++)
		if (!is_stale(&v->heap[i]))
			v->heap[kept++] = v->heap[i];
	v->deadlines = kept;
	v->stale = 0;
	for (size_t i = kept / CHILDREN + 1; i-- > 0;)
		if (i < kept)
			sift_down(v, i, v->heap[i]);
}

static void unset(struct virtual *v, struct virtual_timer *t)
{
	if (t->number == 0)
		return;
	t->number = 0;
	v->stale++;
	if (v->stale > STALE_LEAST && v->stale > v->deadlines / 2)
		drop_stale(v);
}

static void set(struct virtual *v, struct virtual_timer *t, int64_t at_ns)
{
	unset(v, t);
	if (v->deadlines == v->room) {
		v->room *= 2;
		v->heap = xrealloc(v->heap, v->room * sizeof(*v->heap));
	}
	if (++v->number == 0)
		v->number = 1;
	t->number = v->number;
	sift_up(v, v->deadlines++,
		(struct deadline){.at_ns = at_ns, .number = t->number, .timer = t});
}

/* The next deadline passes; NULL: there is none. */
static struct virtual_timer *pass_deadline(struct virtual *v)
{
	while (v->deadlines > 0) {
		const struct deadline d = v->heap[0];

		if (--v->deadlines > 0)
			sift_down(v, 0, v->heap[v->deadlines]);
		if (is_stale(&d)) {
			v->stale--;
			continue;
		}
		d.timer->number = 0;
		v->now_ns = d.at_ns > v->now_ns ? d.at_ns : v->now_ns;
		v->stats.deadlines++;
		return d.timer;
	}
	return NULL;
}

/* ---- who runs ---- */

static struct virtual_fiber *fiber_of(struct virtual_timer *t)
{
	return (struct virtual_fiber *)(void *)((char *)t - offsetof(struct virtual_fiber, timer));
}

/* Its time has come. */
static void fiber_is_due(struct virtual_fiber *f)
{
	assert(f->state == FIBER_WAITING);
	if (f->in)
		unlink_fiber(f->in, f);
	f->in = NULL;
}

/* Thousands that run in turn find their stacks out of the cache: most of them wait a few hundred
 * bytes deep. */
static inline void prefetch(const struct virtual_fiber *f)
{
	for (int i = -PREFETCHED; i < 2; i++)
		__builtin_prefetch((const char *)f + i * (int)LINE, 1);
	__builtin_prefetch(f->next);
}

/* The next one to run; the host when nobody ever will. */
static struct virtual_fiber *next_fiber(struct virtual *v)
{
	struct virtual_fiber *f;
	struct virtual_timer *t;

	if (v->live == v->serving)
		return &v->host;
	while (!v->ready.first) {
		t = pass_deadline(v);
		if (!t)
			return &v->host;
		if (!t->fn) {
			f = fiber_of(t);
			fiber_is_due(f);
			if (v->deadlines > 0 && !v->heap[0].timer->fn)
				prefetch(fiber_of(v->heap[0].timer));
			return f;
		}
		v->calling = true;
		t->fn(t->arg);
		v->calling = false;
	}
	f = v->ready.first;
	unlink_fiber(&v->ready, f);
	if (v->ready.first)
		prefetch(v->ready.first);
	return f;
}

static void switch_to(struct virtual *v, struct virtual_fiber *from, struct virtual_fiber *to,
		      bool ends)
{
	v->running = to;
	v->stats.switches++;
	to->state = FIBER_RUNNING;
	/* below the end of its stack lies what does not belong to it */
	assert(from == &v->host || *from->bottom == CANARY);
#ifdef WITH_ASAN
	__sanitizer_start_switch_fiber(ends ? NULL : &from->fake_stack, to->asan_bottom,
				       to->asan_bytes);
#endif
#ifdef WITH_TSAN
	__tsan_switch_to_fiber(to->tsan, 0);
#endif
	(void)ends;
	virtual_context_switch(&from->context, &to->context);
#ifdef WITH_ASAN
	__sanitizer_finish_switch_fiber(from->fake_stack, NULL, NULL);
#endif
}

/* The running fiber is in no state to go on. */
static void leave(struct virtual *v)
{
	struct virtual_fiber *me = v->running, *next = next_fiber(v);

	if (next == me)
		me->state = FIBER_RUNNING;
	else
		switch_to(v, me, next, false);
}

static void give_stack_back(struct virtual *v, struct virtual_fiber *f)
{
	f->state = FIBER_FREE;
	/* the last one is taken first: its stack is in the cache */
	f->next = v->free.first;
	v->free.first = f;
	v->live--;
	v->serving -= f->serves;
}

static void fiber_entry(void)
{
	struct virtual *v = virtual_here;
	struct virtual_fiber *me = v->running;

#ifdef WITH_ASAN
	const void *bottom;
	size_t bytes;

	__sanitizer_finish_switch_fiber(NULL, &bottom, &bytes);
	/* the first one comes from the host, whose stack nobody else can tell */
	if (!v->host.asan_bottom) {
		v->host.asan_bottom = bottom;
		v->host.asan_bytes = bytes;
	}
#endif
	me->fn(me->arg);
	give_stack_back(v, me);
	switch_to(v, me, next_fiber(v), true);
	__builtin_unreachable();
}

/* ---- a world ---- */

static size_t stack_bytes_of(const struct virtual_settings *s)
{
	size_t bytes = s->stack_bytes ? s->stack_bytes : VIRTUAL_STACK;

	return (bytes + LINE - 1) / LINE * LINE;
}

static size_t stride_of(const struct virtual_settings *s)
{
	size_t own = (sizeof(struct virtual_fiber) + LINE - 1) / LINE * LINE;

	return stack_bytes_of(s) + own + STAGGER;
}

static uint32_t buckets_of(const struct virtual_settings *s)
{
	uint32_t n = 64;

	while (n < s->fibers / 2 && n < 1u << 20)
		n *= 2;
	return n;
}

/* Stacks of a chunk. */
static size_t each_of(const struct virtual_settings *s)
{
	size_t n = CHUNK_BYTES / stride_of(s);

	return n ? n : 1;
}

uint64_t virtual_bytes(const struct virtual_settings *s)
{
	uint64_t each = each_of(s), chunks = (s->fibers + each - 1) / each;
	uint64_t chunk = each * stride_of(s);

	if (chunk < CHUNK_BYTES)
		chunk = CHUNK_BYTES;
	return u64_sum(
		u64_product(chunks, chunk + sizeof(char *)),
		u64_sum(u64_product(2 * (uint64_t)s->fibers, sizeof(struct deadline)),
			sizeof(struct virtual) + buckets_of(s) * sizeof(struct virtual_waiters)));
}

int virtual_create(struct virtual **out, const struct virtual_settings *s, struct err *e)
{
	struct virtual *v = try_calloc(1, sizeof(*v), "virtual time", e);
	size_t chunks = s->fibers / each_of(s) + 1;

	*out = v;
	if (!v)
		return -ENOMEM;
	assert(s->begin_ns >= 0 && s->fibers > 0);
	v->settings = *s;
	v->now_ns = s->begin_ns;
	v->stride = stride_of(s);
	v->each = each_of(s);
	v->buckets = buckets_of(s);
	v->room = DEADLINES_LEAST;
	v->bucket = try_calloc(v->buckets, sizeof(*v->bucket), "waits in virtual time", e);
	v->heap = v->bucket ? try_calloc(v->room, sizeof(*v->heap), "deadlines in virtual time", e)
			    : NULL;
	v->chunk =
		v->heap ? try_calloc(chunks, sizeof(*v->chunk), "stacks in virtual time", e) : NULL;
	if (v->chunk)
		return 0;
	virtual_destroy(v);
	*out = NULL;
	return -ENOMEM;
}

static size_t chunk_bytes(const struct virtual *v)
{
	size_t bytes = v->each * v->stride;

	return bytes < CHUNK_BYTES ? CHUNK_BYTES : bytes;
}

static char *bottom_of(const struct virtual *v, size_t i)
{
	return v->chunk[i / v->each] + i % v->each * v->stride;
}

static struct virtual_fiber *fiber_at(const struct virtual *v, size_t i)
{
	return (void *)(bottom_of(v, i) + stack_bytes_of(&v->settings));
}

void virtual_destroy(struct virtual *v)
{
	if (!v)
		return;
	assert(!v->inside);
#ifdef WITH_TSAN
	for (size_t i = 0; i < v->used; i++)
		__tsan_destroy_fiber(fiber_at(v, i)->tsan);
#endif
	for (size_t i = 0; i < v->chunks; i++) {
#ifdef WITH_ASAN
		__asan_unpoison_memory_region(v->chunk[i], chunk_bytes(v));
#endif
		munmap(v->chunk[i], chunk_bytes(v));
	}
	free(v->chunk);
	free(v->heap);
	free(v->bucket);
	free(v);
}

/* Small stacks on large pages where there are such: thousands that are used in turn would need as
 * many entries of the processor's table of pages. */
static char *map_chunk(size_t bytes, bool small)
{
	size_t more = bytes + CHUNK_BYTES, before;
	char *at = mmap(NULL, more, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	before = (CHUNK_BYTES - (uintptr_t)at % CHUNK_BYTES) % CHUNK_BYTES;
	if (before)
		munmap(at, before);
	/* the length is rounded up to pages by both calls */
	munmap(at + before + (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES,
	       more - before - bytes);
	if (small)
		madvise(at + before, bytes, MADV_HUGEPAGE);
	return at + before;
}

static int more_stacks(struct virtual *v, struct err *e)
{
	if (v->used < v->chunks * v->each)
		return 0;
	v->chunk[v->chunks] = map_chunk(chunk_bytes(v), v->stride < SMALL_BYTES);
	if (!v->chunk[v->chunks])
		return err_set(e, -ENOMEM, "cannot allocate %zu bytes of stacks in virtual time",
			       chunk_bytes(v));
	v->chunks++;
	return 0;
}

/* One that was used before, or a new one. */
static struct virtual_fiber *take_stack(struct virtual *v, int *rc, struct err *e)
{
	struct virtual_fiber *f = v->free.first;

	if (f) {
		v->free.first = f->next;
		return f;
	}
	*rc = v->used < v->settings.fibers
		      ? more_stacks(v, e)
		      : err_set(e, -EAGAIN, "more than %u threads in virtual time",
				v->settings.fibers);
	if (*rc < 0)
		return NULL;
	f = fiber_at(v, v->used);
	f->bottom = (void *)bottom_of(v, v->used);
	*f->bottom = CANARY;
#ifdef WITH_TSAN
	f->tsan = __tsan_create_fiber(0);
#endif
	v->used++;
	return f;
}

int virtual_spawn(struct virtual *v, void (*fn)(void *arg), void *arg, struct err *e)
{
	struct virtual_fiber *f;
	int rc = 0;

	assert(!virtual_here || virtual_here == v);
	f = take_stack(v, &rc, e);
	if (!f)
		return rc;
	assert(f->timer.number == 0);
	f->fn = fn;
	f->arg = arg;
	f->in = NULL;
	f->serves = false;
	f->computed_ns = f->waited_ns = 0;
	virtual_context_make(&f->context, f->bottom, stack_bytes_of(&v->settings), fiber_entry);
#ifdef WITH_ASAN
	f->fake_stack = NULL;
	f->asan_bottom = f->bottom;
	f->asan_bytes = stack_bytes_of(&v->settings);
	__asan_unpoison_memory_region(f->bottom, f->asan_bytes);
#endif
	v->live++;
	if (v->live > v->stats.fibers_most)
		v->stats.fibers_most = v->live;
	make_ready(v, f);
	return 0;
}

int virtual_run(struct virtual *v, struct err *e)
{
	struct virtual_fiber *first;

	assert(!virtual_here && !v->inside);
	virtual_here = v;
	v->inside = true;
	v->running = &v->host;
#ifdef WITH_TSAN
	v->host.tsan = __tsan_get_current_fiber();
#endif
	first = next_fiber(v);
	if (first != &v->host)
		switch_to(v, &v->host, first, false);
	v->inside = false;
	virtual_here = NULL;
	if (v->live == v->serving)
		return 0;
	return err_set(e, -EDEADLK, "%u threads in virtual time wait for what nobody will do",
		       v->live - v->serving);
}

void virtual_stats_of(const struct virtual *v, struct virtual_stats *out)
{
	size_t bytes = stack_bytes_of(&v->settings);

	*out = v->stats;
	for (size_t i = 0; i < v->used; i++) {
		const uint64_t *at = (const void *)bottom_of(v, i);
		size_t n = 1; /* after the canary: what was never used is zero */

		while (n * sizeof(*at) < bytes && at[n] == 0)
			n++;
		if (bytes - n * sizeof(*at) > out->stack_most)
			out->stack_most = bytes - n * sizeof(*at);
	}
}

/* ---- in a fiber ---- */

int64_t virtual_now_ns(void)
{
	return virtual_here->now_ns;
}

void virtual_serve(void)
{
	struct virtual *v = virtual_here;

	v->serving += !v->running->serves;
	v->running->serves = true;
}

void virtual_yield(void)
{
	struct virtual *v = virtual_here;

	make_ready(v, v->running);
	leave(v);
}

void virtual_sleep_until(int64_t deadline_ns)
{
	struct virtual *v = virtual_here;

	assert(v->running != &v->host && !v->calling);
	if (deadline_ns <= v->now_ns)
		return;
	v->running->state = FIBER_WAITING;
	set(v, &v->running->timer, deadline_ns);
	leave(v);
}

bool virtual_wait_until(struct virtual_waiters *w, int64_t deadline_ns)
{
	struct virtual *v = virtual_here;
	struct virtual_fiber *me = v->running;

	assert(me != &v->host && !v->calling);
	if (deadline_ns <= v->now_ns)
		return false;
	me->state = FIBER_WAITING;
	me->woken = false;
	me->in = w;
	append(w, me);
	if (deadline_ns != INT64_MAX)
		set(v, &me->timer, deadline_ns);
	leave(v);
	return me->woken;
}

void virtual_wait(struct virtual_waiters *w)
{
	virtual_wait_until(w, INT64_MAX);
}

static void wake_fiber(struct virtual *v, struct virtual_waiters *w, struct virtual_fiber *f)
{
	assert(f->in == w && f->state == FIBER_WAITING);
	unlink_fiber(w, f);
	f->in = NULL;
	f->woken = true;
	unset(v, &f->timer);
	make_ready(v, f);
}

void virtual_wake(struct virtual_waiters *w, int count)
{
	while (count-- != 0 && w->first)
		wake_fiber(virtual_here, w, w->first);
}

void virtual_timer_set(struct virtual_timer *t, int64_t at_ns)
{
	assert(t->fn);
	set(virtual_here, t, at_ns);
}

void virtual_timer_clear(struct virtual_timer *t)
{
	unset(virtual_here, t);
}

/* ---- processor time ---- */

void virtual_compute(int64_t ns)
{
	struct virtual *v = virtual_here;
	struct virtual_fiber *me = v->running;
	int64_t begin = v->now_ns;

	if (ns <= 0)
		return;
	if (v->settings.compute)
		v->settings.compute(v->settings.compute_arg, ns);
	else
		virtual_sleep_until(begin + ns);
	me->computed_ns += ns;
	if (v->now_ns - begin > ns)
		me->waited_ns += v->now_ns - begin - ns;
}

int64_t virtual_computed_ns(void)
{
	return virtual_here->running->computed_ns;
}

int64_t virtual_compute_waited_ns(void)
{
	struct virtual_fiber *me = virtual_here->running;
	int64_t waited = me->waited_ns;

	me->waited_ns = 0;
	return waited;
}

/* ---- words ---- */

static struct virtual_waiters *bucket_of(struct virtual *v, const _Atomic uint32_t *word)
{
	uint64_t h = (uint64_t)(uintptr_t)word * 0x9e3779b97f4a7c15ULL;

	return &v->bucket[(h >> 32) & (v->buckets - 1)];
}

void virtual_word_wait(_Atomic uint32_t *word, uint32_t seen, int64_t timeout_ns)
{
	struct virtual *v = virtual_here;
	int64_t deadline;

	if (atomic_load_explicit(word, memory_order_relaxed) != seen)
		return;
	if (timeout_ns < 0 || __builtin_add_overflow(v->now_ns, timeout_ns, &deadline))
		deadline = INT64_MAX;
	v->running->word = word;
	virtual_wait_until(bucket_of(v, word), deadline);
}

void virtual_word_wake(_Atomic uint32_t *word, int count)
{
	struct virtual *v = virtual_here;
	struct virtual_waiters *w = bucket_of(v, word);
	struct virtual_fiber *next;

	for (struct virtual_fiber *f = w->first; f && count != 0; f = next) {
		next = f->next;
		if (f->word != word)
			continue;
		wake_fiber(v, w, f);
		count--;
	}
}
