#pragma once
/* A thread that calls a function at a fixed interval. A tick that comes late is not made up for: a
 * machine that was suspended or overloaded takes no burst of ticks. */
#include <pthread.h>
#include <stdint.h>

#include "base/err.h"

struct ticker {
	void (*fn)(void *arg);
	void *arg;
	int64_t interval_ns; /* fn may change it, for the ticks that follow */
	pthread_t thread;
	_Atomic uint32_t quit;
};

/* The first call is one interval from now. fn, arg and interval_ns are set by the caller. */
int ticker_start(struct ticker *t, const char *name, struct err *e);
/* Ends the thread; fn is not running any more. */
void ticker_stop(struct ticker *t);
