/* Threads of one epoch. */
#include "loader/stage.h"

#include "base/clock.h"
#include "base/thread.h"

#define POLL_NS (NS_PER_S / 10)

static void *member_main(void *arg)
{
	struct stage_thread *m = arg;

	m->work(m->arg);
	atomic_store_explicit(&m->ended, 1, memory_order_release);
	thread_wake(&m->ended, 1);
	return NULL;
}

int stage_start(struct stage_thread *m, void (*work)(void *arg), void *arg, size_t stack_bytes,
		const char *name, struct err *e)
{
	int rc;

	m->work = work;
	m->arg = arg;
	atomic_store_explicit(&m->ended, 0, memory_order_relaxed);
	rc = thread_start(&m->thread, member_main, m, stack_bytes, name, e);
	m->running = rc == 0;
	return rc;
}

static bool join_within(struct stage_thread *m, int64_t timeout_ns)
{
	int64_t deadline = clock_now_ns() + timeout_ns;

	while (!atomic_load_explicit(&m->ended, memory_order_acquire)) {
		int64_t left = deadline - clock_now_ns();

		if (left <= 0)
			return false;
		thread_wait(&m->ended, 0, left);
	}
	pthread_join(m->thread, NULL);
	m->running = false;
	return true;
}

uint32_t stage_join(struct stage_thread *m, uint32_t count, const _Atomic int64_t *woken_ns,
		    int64_t grace_ns, bool (*stopped)(void *arg), void *arg)
{
	uint32_t stuck = 0;

	for (uint32_t i = 0; i < count; i++) {
		int64_t patience = 1;

		while (m[i].running && patience > 0) {
			patience = POLL_NS;
			if (stopped(arg)) {
				int64_t left = atomic_load(woken_ns) + grace_ns - clock_now_ns();

				patience = left < 0 ? 0 : left < POLL_NS ? left : POLL_NS;
			}
			join_within(&m[i], patience);
		}
		stuck += m[i].running;
	}
	return stuck;
}

void stage_detach(struct stage_thread *m, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (m[i].running)
			pthread_detach(m[i].thread);
}
