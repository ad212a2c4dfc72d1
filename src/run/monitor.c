/* The run's own eye: tells progress, passes a stop request on to everyone who waits, and ends a run
 * in which nothing moves any more. */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "comm/net.h"
#include "run/state.h"

#define TICK_NS (NS_PER_S / 10)

static const char *const activity_text[] = {
	"is starting",
	"waits for a batch",
	"computes",
	"waits for the other ranks",
	"writes a checkpoint",
	"reads a checkpoint",
	"pauses between checkpoints",
	"is done",
};

const char *rank_activity_text(int activity)
{
	return activity_text[activity];
}

static void describe_rank(struct run_state *s, struct rank *k, char *out, size_t n)
{
	char inner[512] = "";
	int what = atomic_load_explicit(&k->activity, memory_order_relaxed);
	struct loader *l =
		atomic_load_explicit(&k->evaluating, memory_order_relaxed) ? k->eval : k->train;

	if (what == RANK_WAITING && l)
		s->loader_ops->describe(l, inner, sizeof(inner));
	snprintf(out, n, "rank %u %s%s%s", k->comm.rank, activity_text[what], inner[0] ? ": " : "",
		 inner);
}

/* The rank that everyone waits for: one that is not in the barrier, the longest without progress.
 */
static struct rank *slowest(struct run_state *s)
{
	struct rank *worst = &s->rank[0];
	int64_t oldest = INT64_MAX;

	for (uint32_t r = 0; r < s->locals; r++) {
		struct rank *k = &s->rank[r];
		int64_t t = atomic_load_explicit(&k->progress_ns, memory_order_relaxed);
		int what = atomic_load_explicit(&k->activity, memory_order_relaxed);

		if (what != RANK_BARRIER && what != RANK_DONE && t < oldest) {
			oldest = t;
			worst = k;
		}
	}
	return worst;
}

static void check_watchdog(struct run_state *s, int64_t now)
{
	double limit_s = s->w->run.watchdog;
	struct rank *late;
	int64_t last = 0;
	char text[768];
	struct err e;

	if (limit_s <= 0 || !s->rank || atomic_load(&s->stop.set))
		return;
	for (uint32_t r = 0; r < s->locals; r++) {
		int64_t t = atomic_load_explicit(&s->rank[r].progress_ns, memory_order_relaxed);

		if (t > last)
			last = t;
	}
	late = slowest(s);
	/* who waits for another process leaves it to that one to say what hangs there */
	if (s->net && atomic_load_explicit(&late->activity, memory_order_relaxed) == RANK_BARRIER)
		limit_s = 1.5 * limit_s + 2;
	if (last == 0 || (double)(now - last) < limit_s * 1e9)
		return;
	describe_rank(s, late, text, sizeof(text));
	err_set(&e, -ETIMEDOUT, "no rank made progress for %.0f s (run.watchdog): %s",
		(double)(now - last) / 1e9, text);
	run_stop(s, &e);
}

/* The check of a dataset moves with every file it looks at. */
static void check_stall(struct run_state *s, int64_t now)
{
	double limit_s = s->w->run.watchdog;
	uint64_t done = atomic_load_explicit(&s->checked, memory_order_relaxed);
	struct err e;

	if (done != s->seen_checked || s->seen_ns == 0) {
		s->seen_checked = done;
		s->seen_ns = now;
	}
	if (limit_s <= 0 || atomic_load(&s->stop.set) || (double)(now - s->seen_ns) < limit_s * 1e9)
		return;
	err_set(&e, -ETIMEDOUT,
		"checking the dataset in '%s' has not moved for %.0f s (run.watchdog): its "
		"storage does not answer; %llu files or names were looked at",
		s->w->dataset.data_folder, (double)(now - s->seen_ns) / 1e9,
		(unsigned long long)done);
	run_stop(s, &e);
}

static void wake_everyone(struct run_state *s)
{
	if (s->group)
		comm_wake(s->group);
	for (uint32_t r = 0; s->rank && r < s->locals; r++) {
		struct loader *train = s->rank[r].train, *eval = s->rank[r].eval;

		if (train)
			s->loader_ops->wake(train);
		if (eval)
			s->loader_ops->wake(eval);
	}
}

static void *monitor_main(void *arg)
{
	struct run_state *s = arg;

	while (!atomic_load(&s->monitor_quit)) {
		int64_t now = clock_now_ns();

		if (s->o->stop && atomic_load(&s->o->stop->set) && !atomic_load(&s->stop.set)) {
			struct err e;

			err_set(&e, ERR_CANCELED, "stopped by a signal");
			run_stop(s, &e);
		}
		if (s->net && !atomic_load(&s->stop.set)) {
			struct err e = {0};

			if (net_cause(s->net, NULL, &e))
				run_stop(s, &e);
		}
		/* a thread may have gone to sleep between its check and the first wake-up */
		if (atomic_load(&s->stop.set))
			wake_everyone(s);
		else if (atomic_load(&s->phase) == PROGRESS_CHECK)
			check_stall(s, now);
		else
			check_watchdog(s, now);
		run_tell(s, now, false);
		thread_wait(&s->monitor_quit, 0, TICK_NS);
	}
	return NULL;
}

int monitor_start(struct run_state *s, struct err *e)
{
	int rc = s->rank ? run_tell_begin(s, e) : 0;

	return rc < 0 ? rc : thread_start(&s->monitor, monitor_main, s, 0, "monitor", e);
}

void monitor_stop(struct run_state *s)
{
	atomic_store(&s->monitor_quit, 1);
	thread_wake(&s->monitor_quit, -1);
	pthread_join(s->monitor, NULL);
}

void run_stop(struct run_state *s, const struct err *why)
{
	pthread_mutex_lock(&s->lock);
	if (s->reason.code == 0)
		s->reason = *why;
	pthread_mutex_unlock(&s->lock);
	if (atomic_load(&s->stop_ns) == 0)
		atomic_store(&s->stop_ns, clock_now_ns());
	atomic_store(&s->stop.set, 1);
	atomic_store(&s->halt, 1);
	thread_wake(&s->halt, -1);
	if (s->group)
		comm_wake(s->group);
	if (s->net)
		net_stop(s->net, why->code == ERR_CANCELED ? NET_CAUSE_STOP : NET_CAUSE_ERROR, why);
}
