#include "os/signals.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/left.h"
#include "os/child.h"

/* Signals so close to each other are one request. */
#define SAME_NS (NS_PER_S / 2)
#define LAST_NS (NS_PER_S / 2)
#define HURRY_NS (SIGNALS_HURRY_S * NS_PER_S)
/* In a quarter of a second, by a process that is at work. */
#define BUSY_NS (NS_PER_S / 20)

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
		"The first ends run, generate, verify, study, survey, capacity, replay and "
		"calibrate, and the results of what was measured are written (status 1); it ends "
		"the other commands at once. The second ends the process: run, generate, study, "
		"survey and capacity write what they have without waiting for requests that do "
		"not return, within ten seconds. The third ends it at once.",
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

/* ---- an end by force ---- */

static _Atomic(const struct signal_work *) current;
static const char *farewell;
static _Atomic bool ends_by_force;
static _Atomic int leaves_with = -1; /* a status, once the process ends by itself */

bool signals_end_by_force(void)
{
	return atomic_load_explicit(&ends_by_force, memory_order_relaxed);
}

void signals_leave(int status)
{
	/* seq_cst, as in end_now: one of the two sees the other */
	atomic_store_explicit(&leaves_with, status, memory_order_seq_cst);
	while (atomic_load_explicit(&ends_by_force, memory_order_seq_cst))
		pause();
}

static void part(void *arg)
{
	(void)arg;
	/* a reader may be gone, or not read */
	(void)!write(STDERR_FILENO, farewell, strlen(farewell));
	process_drop_outputs();
	left_remove();
}

/* What hangs is left hanging. `bare`: nothing was begun that could be kept, so that whoever started
 * the program sees the signal that ended it. */
static _Noreturn void end_now(const struct signal_work *w, int sig, bool bare)
{
	static struct thread t;
	sigset_t set;
	int status;

	/* what the other threads find now is its consequence */
	atomic_store_explicit(&ends_by_force, true, memory_order_seq_cst);
	status = atomic_load_explicit(&leaves_with, memory_order_seq_cst);
	if (status >= 0)
		_exit(status);
	farewell = bare ? "stoker: stopped by a signal\n"
			: "stoker: ended at once by a further signal: what was not complete is not "
			  "kept\n";
	if (w->last)
		w->last();
	if (thread_run(&t, part, NULL, 0, "end", NULL) == 0 && !thread_join_within(&t, LAST_NS))
		thread_leave(&t);
	if (bare && sig != SIGQUIT) {
		signal(sig, SIG_DFL);
		sigemptyset(&set);
		sigaddset(&set, sig);
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
		kill(getpid(), sig);
	}
	_exit(128 + sig);
}

/* What the signals so far have asked for. */
struct asked {
	int sig;          /* the last one that counted */
	int64_t last_ns;  /* when */
	int64_t hurry_ns; /* until when it has to end; 0: no limit */
	int64_t used_ns;  /* of processors by then */
};

static void ask(const struct signal_work *w, int sig, struct asked *a)
{
	int64_t now = clock_now_ns();
	int level;

	if (!w->stop)
		end_now(w, sig, true);
	level = atomic_load_explicit(&w->stop->set, memory_order_relaxed);
	if (level != STOP_NOT && (!signals_insist(sig) || now - a->last_ns < SAME_NS))
		return;
	a->sig = sig;
	a->last_ns = now;
	if (level >= STOP_HURRY || (level == STOP_SOON && !w->hurries))
		end_now(w, sig, false);
	atomic_store_explicit(&w->stop->set, level + 1, memory_order_release);
	if (level == STOP_SOON)
		a->hurry_ns = now + HURRY_NS;
}

/* Results that take long to write are written: the limit is for what hangs. */
static void allow_work(struct asked *a)
{
	struct timespec t;
	int64_t used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	used = t.tv_sec * NS_PER_S + t.tv_nsec;
	if (used - a->used_ns > BUSY_NS)
		a->hurry_ns = clock_now_ns() + HURRY_NS;
	a->used_ns = used;
}

static void *signals_main(void *arg)
{
	const struct timespec tick = {.tv_nsec = NS_PER_S / 4};
	struct asked a = {0};
	sigset_t set;

	(void)arg;
	signals_of_end(&set);
	sigaddset(&set, SIGCONT);
	for (;;) {
		int sig = a.hurry_ns ? sigtimedwait(&set, NULL, &tick) : sigwaitinfo(&set, NULL);
		/* acquire: what it points to was written before */
		const struct signal_work *w = atomic_load_explicit(&current, memory_order_acquire);

		if (sig == SIGCONT) {
			atomic_fetch_add_explicit(&continued, 1, memory_order_relaxed);
		} else if (sig > 0) {
			ask(w, sig, &a);
			if (w->told)
				w->told(sig);
		}
		if (a.hurry_ns && clock_now_ns() > a.hurry_ns)
			end_now(w, a.sig, false);
		if (a.hurry_ns && sig < 0)
			allow_work(&a);
	}
	return NULL;
}

void signals_of_writes(void)
{
	for (size_t i = 0; i < SIGNALS; i++)
		if (signals[i].role == ROLE_WRITE)
			signal(signals[i].number, SIG_IGN);
}

int signals_start(const struct signal_work *work, struct err *e)
{
	static struct signal_work kept[2];
	static unsigned starts;
	static bool runs;
	struct signal_work *w = &kept[starts++ % 2]; /* the thread may look at the other one */
	pthread_t t;
	sigset_t set;
	int rc = 0;

	*w = *work;
	/* release: with what it points to */
	atomic_store_explicit(&current, w, memory_order_release);
	signals_of_end(&set);
	sigaddset(&set, SIGCONT);
	/* inherited by every thread: only sigwait sees them */
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (w->stop)
		signals_of_writes();
	if (!runs)
		rc = thread_start(&t, signals_main, NULL, 0, "signals", e);
	if (rc == 0 && !runs)
		pthread_detach(t);
	runs = rc == 0;
	return rc;
}
