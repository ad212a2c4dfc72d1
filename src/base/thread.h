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

/* A one-way flag: the run is to end. Whoever sets it also wakes those who wait. Never cleared
 * during a run. */
struct stop_flag {
	_Atomic int set;
};

/* Futex wait/wake on a 32-bit word. thread_wait returns when woken, on timeout (ns, < 0: none) or
 * spuriously; callers re-check. */
void thread_wait(_Atomic uint32_t *word, uint32_t seen, int64_t timeout_ns);
void thread_wake(_Atomic uint32_t *word, int count);
