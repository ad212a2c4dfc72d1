/* The end of a run, and what ranks publish. */
#include "run/shared.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "comm/net.h"
#include "metric/split.h"

#define LOOK_NS (NS_PER_S / 20)

void run_stop_init(struct run_stop *s, struct net *net, const struct stop_flag *asked)
{
	s->net = net;
	s->asked = asked;
	pthread_mutex_init(&s->lock, NULL);
}

void run_stop_release(struct run_stop *s)
{
	pthread_mutex_destroy(&s->lock);
}

void run_stop(struct run_stop *s, const struct err *why)
{
	int64_t never = 0;

	assert(why->code < 0);
	pthread_mutex_lock(&s->lock);
	if (s->reason.code == 0)
		s->reason = *why;
	pthread_mutex_unlock(&s->lock);
	/* released by the flag: who sees that knows the time */
	atomic_compare_exchange_strong_explicit(&s->at_ns, &never, clock_now_ns(),
						memory_order_relaxed, memory_order_relaxed);
	atomic_store_explicit(&s->flag.set, 1, memory_order_release);
	atomic_store_explicit(&s->halt, 1, memory_order_release);
	thread_wake(&s->halt, -1);
	if (s->group)
		comm_wake(s->group);
	if (s->net)
		net_stop(s->net, why->code == ERR_CANCELED ? NET_CAUSE_STOP : NET_CAUSE_ERROR, why);
}

bool run_stopped(const struct run_stop *s)
{
	return atomic_load_explicit(&s->flag.set, memory_order_acquire);
}

void run_stop_look(struct run_stop *s)
{
	struct err e = {0};

	if (run_stopped(s))
		return;
	if (stop_is_set(s->asked)) {
		err_set(&e, ERR_CANCELED, "stopped by a signal");
		run_stop(s, &e);
	} else if (alloc_refusal(&e) < 0) {
		run_stop(s, &e);
	} else if (s->net && net_cause(s->net, NULL, &e)) {
		run_stop(s, &e);
	}
}

bool run_hurries(const struct run_stop *s)
{
	return stop_hurries(s->asked);
}

bool run_leave_is_over(struct run_stop *s)
{
	int64_t at = atomic_load_explicit(&s->at_ns, memory_order_relaxed), now, never = 0;

	if (!at)
		return false;
	now = clock_now_ns();
	if (now - at > RUN_LEAVE_NS)
		return true;
	if (!run_hurries(s))
		return false;
	atomic_compare_exchange_strong_explicit(&s->hurried_ns, &never, now, memory_order_relaxed,
						memory_order_relaxed);
	return now - atomic_load_explicit(&s->hurried_ns, memory_order_relaxed) > RUN_HURRY_NS;
}

int run_stop_reason(struct run_stop *s, struct err *e)
{
	int rc;

	pthread_mutex_lock(&s->lock);
	rc = s->reason.code;
	if (rc)
		*e = s->reason;
	pthread_mutex_unlock(&s->lock);
	return rc;
}

int64_t run_wait_until(struct run_stop *s, int64_t deadline_ns)
{
	int64_t now = clock_now_ns();

	while (now < deadline_ns && atomic_load_explicit(&s->halt, memory_order_relaxed) == 0) {
		thread_wait(&s->halt, 0, deadline_ns - now);
		now = clock_now_ns();
	}
	return now;
}

bool run_join(struct run_stop *s, struct thread *t)
{
	while (!thread_join_within(t, LOOK_NS))
		if (run_leave_is_over(s))
			return thread_join_within(t, 0);
	return true;
}

/* ---- a rank ---- */

void rank_publish(struct rank_live *k, enum rank_activity what, int64_t progress_ns)
{
	atomic_store_explicit(&k->activity, (int)what, memory_order_relaxed);
	atomic_store_explicit(&k->progress_ns, progress_ns, memory_order_relaxed);
}

/* Steps come last and are read first, computation second, so that no reader sees either without the
 * time it took. */
void rank_publish_step(struct rank_live *k, const struct phase *p, const struct step_times *t,
		       uint64_t bytes, uint64_t samples)
{
	if (p->kind == PHASE_EVAL) {
		atomic_store_explicit(&k->eval_ns, t->compute_end_ns - k->eval_zero_ns,
				      memory_order_relaxed);
		atomic_fetch_add_explicit(&k->eval_done, 1, memory_order_release);
		return;
	}
	atomic_store_explicit(&k->train_ns, t->barrier_out_ns - k->train_zero_ns,
			      memory_order_relaxed);
	atomic_fetch_add_explicit(&k->train_bytes, bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&k->train_samples, samples, memory_order_relaxed);
	atomic_fetch_add_explicit(&k->wait_ns, t->got_ns - t->ask_ns, memory_order_release);
	atomic_fetch_add_explicit(&k->compute_ns,
				  t->compute_end_ns - t->compute_begin_ns - step_late_ns(t),
				  memory_order_release);
	atomic_fetch_add_explicit(&k->steps_done, 1, memory_order_release);
}
