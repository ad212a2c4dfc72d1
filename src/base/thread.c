/* Threads, their ends, and waiting on a word. */
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/run_delay.h"

#define STACK_DEFAULT (256u * 1024u)
#define STOP_POLL_NS (NS_PER_S / 10)

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
	struct start *s = try_calloc(1, sizeof(*s), "the start of a thread", e);
	pthread_attr_t attr;
	sigset_t all, old;
	int rc;

	if (!s)
		return -ENOMEM;
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

static void *thread_main(void *arg)
{
	struct thread *t = arg;
	struct run_delay_thread counted;

	run_delay_begin(&counted);
	t->work(t->arg);
	run_delay_end(&counted);
	/* release: whoever sees it sees all that the thread did, without having joined it */
	atomic_store_explicit(&t->ended, 1, memory_order_release);
	thread_wake(&t->ended, -1);
	return NULL;
}

int thread_run(struct thread *t, void (*work)(void *arg), void *arg, size_t stack_bytes,
	       const char *name, struct err *e)
{
	int rc;

	assert(!t->running);
	t->work = work;
	t->arg = arg;
	atomic_store_explicit(&t->ended, 0, memory_order_relaxed);
	rc = thread_start(&t->id, thread_main, t, stack_bytes, name, e);
	t->running = rc == 0;
	return rc;
}

bool thread_join_within(struct thread *t, int64_t timeout_ns)
{
	int64_t deadline = timeout_ns < 0 ? INT64_MAX : clock_now_ns() + timeout_ns;

	if (!t->running)
		return true;
	while (!atomic_load_explicit(&t->ended, memory_order_acquire)) {
		int64_t left = deadline - clock_now_ns();

		if (left <= 0)
			return false;
		thread_wait(&t->ended, 0, timeout_ns < 0 ? -1 : left);
	}
	pthread_join(t->id, NULL);
	t->running = false;
	return true;
}

bool thread_join_grace(struct thread *t, int64_t (*stopped_ns)(void *arg), void *arg,
		       int64_t grace_ns)
{
	int64_t patience;

	do {
		int64_t stopped = stopped_ns(arg);

		patience = STOP_POLL_NS;
		if (stopped) {
			int64_t left = stopped + grace_ns - clock_now_ns();

			patience = left < 0 ? 0 : left < STOP_POLL_NS ? left : STOP_POLL_NS;
		}
		if (thread_join_within(t, patience))
			return true;
	} while (patience > 0);
	return false;
}

void thread_leave(struct thread *t)
{
	if (t->running)
		pthread_detach(t->id);
	t->running = false;
}
