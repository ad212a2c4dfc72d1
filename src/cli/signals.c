#include "cli/signals.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"

/* Signals so close to each other are one request. */
#define SAME_NS (NS_PER_S / 2)

static _Atomic unsigned continued;

unsigned signals_continued(void)
{
	return atomic_load_explicit(&continued, memory_order_relaxed);
}

void signals_of_end(sigset_t *set)
{
	static const int all[] = {SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGXCPU};
	struct sigaction hangup;

	sigemptyset(set);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		sigaddset(set, all[i]);
	if (sigaction(SIGHUP, NULL, &hangup) != 0 || hangup.sa_handler != SIG_IGN)
		sigaddset(set, SIGHUP);
}

bool signals_insist(int sig)
{
	return sig == SIGINT || sig == SIGTERM || sig == SIGQUIT;
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
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
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
