#pragma once
/* Threads with small stacks, and the two blocking primitives everything else is made of. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Starts `fn(arg)` on a stack of `stack_bytes` (0: 256 KiB) under `name` (cut to 15 characters, as
 * the kernel shows it). All signals are blocked in the thread: the main thread handles them. */
int thread_start(pthread_t *out, void *(*fn)(void *), void *arg, size_t stack_bytes,
		 const char *name, struct err *e);

/* A thread whose end is waited for with a limit, because it may hang in a call that never returns.
 */
struct thread {
	void (*work)(void *arg);
	void *arg;
	pthread_t id;
	bool running;           /* started, and neither joined nor left behind */
	_Atomic uint32_t ended; /* futex word: the thread's last act */
};

/* As thread_start. A thread that was joined can be run again. Its waits for a processor are counted
 * (base/run_delay.h). */
int thread_run(struct thread *t, void (*work)(void *arg), void *arg, size_t stack_bytes,
	       const char *name, struct err *e);
/* Joins it when it ends within timeout_ns (< 0: whenever it ends): true when it does not run any
 * more. */
bool thread_join_within(struct thread *t, int64_t timeout_ns);
/* The same with a grace: waits for as long as `stopped_ns` says 0, and from the time that it says
 * then grace_ns longer. It is asked several times a second. */
bool thread_join_grace(struct thread *t, int64_t (*stopped_ns)(void *arg), void *arg,
		       int64_t grace_ns);
/* Leaves one that hangs to itself; its struct must be kept. */
void thread_leave(struct thread *t);

/* A one-way flag: the run is to end. Whoever sets it also wakes those who wait. Never cleared
 * during a run. STOP_HURRY, from a second signal: without waiting for what does not end by itself;
 * what was measured is still written. */
enum stop_level { STOP_NOT, STOP_SOON, STOP_HURRY };
struct stop_flag {
	_Atomic int set; /* enum stop_level */
};

/* NULL: never. Relaxed: nothing but the wish to stop is read with it. */
static inline bool stop_is_set(const struct stop_flag *stop)
{
	return stop && atomic_load_explicit(&stop->set, memory_order_relaxed);
}

static inline bool stop_hurries(const struct stop_flag *stop)
{
	return stop && atomic_load_explicit(&stop->set, memory_order_relaxed) >= STOP_HURRY;
}

/* Futex wait/wake on a 32-bit word. thread_wait returns when woken, on timeout (ns, < 0: none) or
 * spuriously; callers re-check. */
void thread_wait(_Atomic uint32_t *word, uint32_t seen, int64_t timeout_ns);
void thread_wake(_Atomic uint32_t *word, int count);
