#pragma once
/* Virtual time: the threads of a simulation as fibers of one thread, under a clock that stands
 * still while they compute and jumps to the next deadline when all of them wait. What is built on
 * base/thread.h, base/queue.h and base/clock.h runs in it unchanged: these ask virtual_on(), which
 * is one look at a variable of the thread, and then wait here.
 *
 * One fiber runs at a time, until it waits: what it shares with others needs no lock. All is
 * deterministic: who becomes ready first runs first, deadlines of one time pass in the order in
 * which they were set, and whoever is ready runs before the next deadline passes.
 *
 * A world belongs to the thread in virtual_run; several threads may each have one. Signals should
 * be blocked in it (thread_start does): a handler would run on a fiber's small stack. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct virtual;
struct virtual_fiber;

struct virtual_settings {
	uint32_t fibers;    /* that live at once, at most; memory is taken as they begin */
	size_t stack_bytes; /* of each; 0: VIRTUAL_STACK */
	int64_t begin_ns;   /* where the clock begins; must not be negative */
	/* What takes a fiber `ns` of processor time, virtual_compute: waits until it had them.
	 * NULL: every fiber has a processor of its own. */
	void (*compute)(void *arg, int64_t ns);
	void *compute_arg;
};

/* Loaders need less than half. Sanitizers grow every frame. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VIRTUAL_STACK (256u * 1024u)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define VIRTUAL_STACK (256u * 1024u)
#endif
#endif
#ifndef VIRTUAL_STACK
#define VIRTUAL_STACK (8u * 1024u)
#endif

/* Memory of a world when as many fibers live; timers beside those of fibers are not in it.
 * UINT64_MAX: more than any machine has. */
uint64_t virtual_bytes(const struct virtual_settings *s);
int virtual_create(struct virtual **out, const struct virtual_settings *s, struct err *e);
/* Accepts NULL. Fibers that have not ended are forgotten, with all they hold. Not in virtual_run.
 */
void virtual_destroy(struct virtual *v);
/* A fiber that begins with `fn(arg)`, after all that are ready now. Before virtual_run, or in a
 * fiber of `v`. -EAGAIN when as many live as may, -ENOMEM. */
int virtual_spawn(struct virtual *v, void (*fn)(void *arg), void *arg, struct err *e);
/* Runs until every fiber has ended, but for those that serve: 0. -EDEADLK when those left wait for
 * what nobody will do; then only virtual_destroy makes sense. Not in a fiber. */
int virtual_run(struct virtual *v, struct err *e);

struct virtual_stats {
	uint64_t switches, deadlines; /* deadlines: that passed */
	uint32_t fibers_most;         /* that lived at once */
	size_t stack_most;            /* bytes that any stack was used to; takes a look at all */
};
/* Between runs. */
void virtual_stats_of(const struct virtual *v, struct virtual_stats *out);

/* ---- in a fiber ---- */

extern _Thread_local struct virtual *virtual_here; /* NULL: an ordinary thread */

static inline bool virtual_on(void)
{
	return __builtin_expect(virtual_here != NULL, 0);
}

/* The world's time: in a fiber. */
int64_t virtual_now_ns(void);
/* Waits until then; lets nobody else run when it is past. */
void virtual_sleep_until(int64_t deadline_ns);
/* The calling fiber need not end: virtual_run does not wait for it, and it goes no further then. */
void virtual_serve(void);
/* Lets all run that are ready. */
void virtual_yield(void);
/* Takes processor time, as settings.compute has it. */
void virtual_compute(int64_t ns);
/* Processor time that the calling fiber took so far; and how long it waited beyond it since the
 * last call. */
int64_t virtual_computed_ns(void);
int64_t virtual_compute_waited_ns(void);

/* Those who wait for something, first come first; all zeros: nobody. It must stay where it is while
 * someone waits. */
struct virtual_waiters {
	struct virtual_fiber *first, *last;
};

/* Waits to be woken. */
void virtual_wait(struct virtual_waiters *w);
/* The same until a time, INT64_MAX being never: false when that came first. */
bool virtual_wait_until(struct virtual_waiters *w, int64_t deadline_ns);
/* Makes up to `count` of those who wait ready, in their order; < 0: all. They run later. */
void virtual_wake(struct virtual_waiters *w, int count);

/* A function that is called at a time. It runs on the stack of any fiber and must not wait; it may
 * wake, and set timers. All zeros but fn and arg: not set. Once set it must be kept, whether it is
 * cleared or not, until virtual_run returns. */
struct virtual_timer {
	void (*fn)(void *arg);
	void *arg;
	uint32_t number; /* private: 0 while it is not set */
};

/* Sets it, also one that is set: only the last time counts. One in the past comes next. */
void virtual_timer_set(struct virtual_timer *t, int64_t at_ns);
void virtual_timer_clear(struct virtual_timer *t);

/* thread_wait and thread_wake of base/thread.h. */
void virtual_word_wait(_Atomic uint32_t *word, uint32_t seen, int64_t timeout_ns);
void virtual_word_wake(_Atomic uint32_t *word, int count);
