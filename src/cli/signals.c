#include "cli/signals.h"

#include <stdatomic.h>
#include <unistd.h>

static _Atomic unsigned continued;

unsigned signals_continued(void)
{
	return atomic_load_explicit(&continued, memory_order_relaxed);
}

void signals_of_end(sigset_t *set)
{
	struct sigaction hangup;

	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	if (sigaction(SIGHUP, NULL, &hangup) != 0 || hangup.sa_handler != SIG_IGN)
		sigaddset(set, SIGHUP);
}

static void *signals_main(void *arg)
{
	struct stop_flag *stop = arg;
	sigset_t set;
	int sig;

	signals_of_end(&set);
	sigaddset(&set, SIGCONT);
	for (;;) {
		if (sigwait(&set, &sig) != 0)
			continue;
		if (sig == SIGCONT) {
			atomic_fetch_add_explicit(&continued, 1, memory_order_relaxed);
			continue;
		}
		if (atomic_exchange_explicit(&stop->set, 1, memory_order_acq_rel))
			_exit(128 + sig);
	}
	return NULL;
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
	/* a full file-size limit or a closed pipe is an error of the write, not the end of the run
	 */
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	rc = thread_start(&t, signals_main, stop, 0, "signals", e);
	if (rc == 0)
		pthread_detach(t);
	return rc;
}
