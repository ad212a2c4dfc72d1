#include "base/thread.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

#define STACK_DEFAULT (256u * 1024u)

struct start {
	void *(*fn)(void *);
	void *arg;
	char name[16];
};

static void *trampoline(void *p)
{
	struct start s = *(struct start *)p;

	free(p);
	pthread_setname_np(pthread_self(), s.name);
	clock_precise_timers();
	return s.fn(s.arg);
}

int thread_start(pthread_t *out, void *(*fn)(void *), void *arg, size_t stack_bytes,
		 const char *name, struct err *e)
{
	struct start *s = xmalloc(sizeof(*s));
	pthread_attr_t attr;
	sigset_t all, old;
	int rc;

	s->fn = fn;
	s->arg = arg;
	snprintf(s->name, sizeof(s->name), "%.15s", name);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, stack_bytes ? stack_bytes : STACK_DEFAULT);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(out, &attr, trampoline, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (rc != 0) {
		free(s);
		return err_sys(
			e, rc,
			"cannot start thread '%s' (see 'ulimit -u' and the pids limit of the "
			"control group)",
			name);
	}
	return 0;
}

void thread_wait(_Atomic uint32_t *word, uint32_t seen, int64_t timeout_ns)
{
	struct timespec ts = {timeout_ns / NS_PER_S, timeout_ns % NS_PER_S};

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, timeout_ns < 0 ? NULL : &ts, NULL, 0);
}

void thread_wake(_Atomic uint32_t *word, int count)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count < 0 ? INT_MAX : count, NULL, NULL, 0);
}
