#include "os/signals.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"

/* Signals so close to each other are one request. */
#define SAME_NS (NS_PER_S / 2)

static _Atomic unsigned continued;

unsigned signals_continued(void)
{
	return atomic_load_explicit(&continued, memory_order_relaxed);
}

/* ---- what each does ---- */

enum signal_role { ROLE_INSISTS, ROLE_WARNS, ROLE_WRITE, ROLE_STOPS };

static const struct {
	int number;
	const char *name;
	enum signal_role role;
} signals[] = {{SIGINT, "SIGINT", ROLE_INSISTS},   {SIGTERM, "SIGTERM", ROLE_INSISTS},
	       {SIGQUIT, "SIGQUIT", ROLE_INSISTS}, {SIGHUP, "SIGHUP", ROLE_WARNS},
	       {SIGUSR1, "SIGUSR1", ROLE_WARNS},   {SIGUSR2, "SIGUSR2", ROLE_WARNS},
	       {SIGXCPU, "SIGXCPU", ROLE_WARNS},   {SIGPIPE, "SIGPIPE", ROLE_WRITE},
	       {SIGXFSZ, "SIGXFSZ", ROLE_WRITE},   {SIGTSTP, "SIGTSTP", ROLE_STOPS},
	       {SIGCONT, "SIGCONT", ROLE_STOPS}};
#define SIGNALS (sizeof(signals) / sizeof(signals[0]))

static const char *const roles[] = {
	[ROLE_INSISTS] =
		"The first ends run, generate, verify and study, and the results of what was "
		"measured are "
		"written (status 1). The second does so without waiting for requests that do not "
		"return. The third ends the process at once.",
	[ROLE_WARNS] =
		"Ends them as the first SIGTERM does, however often it comes, so that it can be "
		"a scheduler's warning before a limit (sbatch \\-\\-signal=USR1@60). "
		"SIGHUP has no effect after nohup.",
	[ROLE_WRITE] =
		"Ignored. A closed pipe, or a file over the limit, is an error of that output; "
		"all other results are written.",
	[ROLE_STOPS] =
		"Stops the process, or continues it. The time is reported as time in which the "
		"process stood still.",
};

void signals_man(struct buf *out)
{
	for (size_t i = 0; i < SIGNALS; i++) {
		bool same = i > 0 && signals[i].role == signals[i - 1].role;

		buf_printf(out, same ? ", %s" : ".TP\n.B %s", signals[i].name);
		if (i + 1 == SIGNALS || signals[i + 1].role != signals[i].role)
			buf_printf(out, "\n%s\n", roles[signals[i].role]);
	}
}

static bool asks_for_end(size_t i)
{
	return signals[i].role == ROLE_INSISTS || signals[i].role == ROLE_WARNS;
}

void signals_of_end(sigset_t *set)
{
	struct sigaction hangup;

	sigemptyset(set);
	for (size_t i = 0; i < SIGNALS; i++)
		if (asks_for_end(i))
			sigaddset(set, signals[i].number);
	if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler == SIG_IGN)
		sigdelset(set, SIGHUP);
}

bool signals_insist(int sig)
{
	for (size_t i = 0; i < SIGNALS; i++)
		if (signals[i].number == sig)
			return signals[i].role == ROLE_INSISTS;
	return false;
}

/* The end that was asked for when the last signal counted, and this one. */
static void ask(struct stop_flag *stop, int sig, int64_t *last_ns)
{
	int64_t now = clock_now_ns();
	int level = atomic_load_explicit(&stop->set, memory_order_relaxed);

	if (level != STOP_NOT && (!signals_insist(sig) || now - *last_ns < SAME_NS))
		return;
	*last_ns = now;
	if (level >= STOP_HURRY)
		_exit(128 + sig);
	atomic_store_explicit(&stop->set, level + 1, memory_order_release);
}

static void *signals_main(void *arg)
{
	struct stop_flag *stop = arg;
	int64_t last_ns = 0;
	sigset_t set;
	int sig;

	signals_of_end(&set);
	sigaddset(&set, SIGCONT);
	for (;;) {
		if (sigwait(&set, &sig) != 0)
			continue;
		if (sig == SIGCONT)
			atomic_fetch_add_explicit(&continued, 1, memory_order_relaxed);
		else
			ask(stop, sig, &last_ns);
	}
	return NULL;
}

void signals_of_writes(void)
{
	for (size_t i = 0; i < SIGNALS; i++)
		if (signals[i].role == ROLE_WRITE)
			signal(signals[i].number, SIG_IGN);
}

int signals_start(struct stop_flag *stop, struct err *e)
{
	pthread_t t;
	sigset_t set;
	int rc;

	signals_of_end(&set);
	sigaddset(&set, SIGCONT);
	/* inherited by every thread: only sigwait sees them */
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signals_of_writes();
	rc = thread_start(&t, signals_main, stop, 0, "signals", e);
	if (rc == 0)
		pthread_detach(t);
	return rc;
}
