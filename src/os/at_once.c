#include "os/at_once.h"

#include <stdatomic.h>

#include "base/thread.h"
#include "os/sysinfo.h"

#define THREADS_MOST 16
#define STACK_BYTES (1u << 20)

struct shared {
	void (*work)(void *arg, uint32_t i);
	void *arg;
	uint32_t n;
	_Atomic uint32_t next;
};

static void take_all(void *arg)
{
	struct shared *s = arg;
	uint32_t i;

	while ((i = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < s->n)
		s->work(s->arg, i);
}

void at_once(uint32_t n, uint32_t most, void (*work)(void *arg, uint32_t i), void *arg)
{
	struct thread threads[THREADS_MOST - 1] = {0};
	struct shared s = {.work = work, .arg = arg, .n = n};
	uint32_t started = 0;

	if (most == 0 || most > THREADS_MOST)
		most = THREADS_MOST;
	if (most > host_threads())
		most = host_threads();
	for (; started + 1 < most && started + 1 < n; started++)
		if (thread_run(&threads[started], take_all, &s, STACK_BYTES, "stoker-work", NULL))
			break;
	take_all(&s);
	for (uint32_t i = 0; i < started; i++)
		thread_join_within(&threads[i], -1);
}
