#pragma once
/* The threads of a loader whose parts are unlike each other: each is a function with its own thread
 * for one epoch. They end when the loader's queues are closed; joining them has a limit, because a
 * read may hang for ever. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct stage_thread {
	void (*work)(void *arg);
	void *arg;
	pthread_t thread;
	bool running;           /* started and not yet joined */
	_Atomic uint32_t ended; /* futex word: the thread's last act */
};

/* `name` as for thread_start. */
int stage_start(struct stage_thread *m, void (*work)(void *arg), void *arg, size_t stack_bytes,
		const char *name, struct err *e);
/* Joins every one that ends; with a stop asked for at woken_ns (0: none yet; read again and again)
 * until grace_ns after it, else for ever. `stopped` is asked several times a second, so that a stop
 * that nobody told is noticed. Returns the number of those that hang. */
uint32_t stage_join(struct stage_thread *m, uint32_t count, const _Atomic int64_t *woken_ns,
		    int64_t grace_ns, bool (*stopped)(void *arg), void *arg);
/* Leaves those that hang to themselves. */
void stage_detach(struct stage_thread *m, uint32_t count);
