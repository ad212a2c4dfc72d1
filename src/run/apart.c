/* Work in a thread that can be left behind. */
#include "run/apart.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"

#define LOOK_NS (NS_PER_S / 20)
/* A gap between two looks that is longer: this process did not run (it was suspended). */
#define ASLEEP_NS (2 * NS_PER_S)
#define APART_STACK (4u << 20)

struct job {
	int (*work)(void *arg, struct err *e);
	void *arg;
	struct err err;
	int rc;
	struct thread thread;
};

static void apart_main(void *arg)
{
	struct job *j = arg;

	j->rc = j->work(j->arg, &j->err);
}

/* Processor time that the thread has used, in ns; -1: it is about to end. */
static int64_t cpu_of(const struct thread *t)
{
	struct timespec now;
	clockid_t clock;

	if (pthread_getcpuclockid(t->id, &clock) != 0 || clock_gettime(clock, &now) != 0)
		return -1;
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* 0: it has ended; else why it is left behind. */
static int watch_job(struct run_stop *s, const struct apart *a, struct job *j, struct err *e)
{
	int64_t since = clock_now_ns(), round = since, used = -1;

	while (!thread_join_within(&j->thread, LOOK_NS)) {
		int64_t now = clock_now_ns(), cpu = cpu_of(&j->thread);

		if (cpu != used || now - round > ASLEEP_NS)
			since = now;
		used = cpu;
		round = now;
		if (!a->after)
			run_stop_look(s);
		if (!a->after && run_leave_is_over(s))
			return run_stop_reason(s, e);
		if (a->after && run_hurries(s) && now - since > RUN_HURRY_NS)
			return err_set(e, ERR_CANCELED, "%s does not answer", a->place);
		if (a->limit_s > 0 && (double)(now - since) > a->limit_s * 1e9) {
			err_set(e, -ETIMEDOUT,
				"%s does not answer: one call to the system has not returned for "
				"%.0f s%s",
				a->place, (double)(now - since) / 1e9,
				a->after ? "" : " (run.watchdog)");
			if (!a->after)
				run_stop(s, e);
			return -ETIMEDOUT;
		}
	}
	return 0;
}

int run_apart(struct run_stop *s, const struct apart *a, bool *stuck, struct err *e)
{
	struct job *j = xcalloc(1, sizeof(*j));
	int rc;

	j->work = a->work;
	j->arg = a->arg;
	rc = thread_run(&j->thread, apart_main, j, APART_STACK, "apart", e);
	if (rc < 0 && a->after) {
		/* results are written, if without the thread that could be left behind */
		apart_main(j);
		rc = 0;
	} else if (rc == 0) {
		rc = watch_job(s, a, j, e);
	}
	if (j->thread.running) { /* the thread keeps `j` */
		thread_leave(&j->thread);
		*stuck = true;
		return rc;
	}
	if (rc == 0 && j->rc < 0) {
		rc = j->rc;
		if (e)
			*e = j->err;
	} else if (rc == 0) {
		rc = j->rc;
	}
	free(j);
	return rc;
}
