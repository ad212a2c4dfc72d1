/* The process a launcher started: it meets the others, and holds the place of the child that does
 * the work. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ending.h"
#include "base/say.h"
#include "base/thread.h"
#include "comm/fabric.h"
#include "comm/meet.h"
#include "comm/mpi_library.h"
#include "launch/launcher.h"
#include "os/child.h"
#include "os/signals.h"

/* Launchers send several signals in a row; the child takes a second one as impatience. Nobody waits
 * less before insisting. */
#define SIGNAL_PAUSE_NS NS_PER_S
/* A child that cannot end, because storage does not answer, is not waited for any longer. */
#define CANNOT_END_NS NS_PER_S

/* A child whose beats stay out so much longer than they say that it may be silent (net_set_silence)
 * is stuck; they come every second. A process that was itself not running (a suspended job) has not
 * heard them. */
#define CHILD_SILENCE_NS (2 * NS_PER_S)
#define OWN_PAUSE_NS (3 * NS_PER_S)

/* The limit of what has none of its own: MPI libraries that begin. */
#define LIBRARY_LIMIT 2 /* times that of the other ways */
#define FINALIZE_NS (5 * NS_PER_S)

static int read_all(int fd, void *p, size_t n)
{
	for (size_t have = 0; have < n;) {
		ssize_t r = read(fd, (char *)p + have, n - have);

		if (r == 0)
			return -EPIPE;
		if (r < 0 && errno != EINTR)
			return -errno;
		have += r > 0 ? (size_t)r : 0;
	}
	return 0;
}

static int write_all(int fd, const void *p, size_t n)
{
	for (size_t have = 0; have < n;) {
		ssize_t r = send(fd, (const char *)p + have, n - have, MSG_NOSIGNAL);

		if (r < 0 && errno != EINTR)
			return -errno;
		have += r > 0 ? (size_t)r : 0;
	}
	return 0;
}

/* A library that ends the process, or hangs, says nothing that helps. */
static struct {
	const struct launcher *l;
	pid_t child;
	_Atomic uint32_t over; /* futex word */
} meeting;

static void say_and_leave(const char *what)
{
	say(stderr,
	    "stoker: the MPI library '%s' %s under %s: see whether another MPI program runs there, "
	    "or set STOKER_MPI to another library\n",
	    meet_mpi_name(), what, meeting.l->name);
	kill(meeting.child, SIGKILL);
	_exit(1);
}

static void library_exits(void)
{
	if (meeting.child > 0 && !atomic_load_explicit(&meeting.over, memory_order_acquire))
		say_and_leave("ended the process instead of introducing it to the others");
}

static void *library_hangs(void *arg)
{
	int64_t limit = LIBRARY_LIMIT * meeting.l->job.limit_ns, end = clock_now_ns() + limit;
	char what[96];

	(void)arg;
	while (!atomic_load_explicit(&meeting.over, memory_order_acquire)) {
		int64_t left = end - clock_now_ns();

		if (left <= 0) {
			snprintf(what, sizeof(what),
				 "has not introduced the processes (MPI_Init_thread, MPI_Bcast) "
				 "within %d s",
				 (int)(limit / NS_PER_S));
			say_and_leave(what);
		}
		thread_wait(&meeting.over, 0, left);
	}
	return NULL;
}

static void library_is_done(pthread_t watcher)
{
	atomic_store_explicit(&meeting.over, 1, memory_order_release);
	thread_wake(&meeting.over, -1);
	pthread_join(watcher, NULL);
}

/* The library that is kept for barriers. */
static struct {
	struct fabric *fabric;            /* NULL: none is kept */
	const struct meet_way *otherwise; /* without the library; NULL: there is no other way */
	uint32_t process;
	pthread_t thread;
	_Atomic uint32_t over; /* futex word */
	int status;
} serving;

static void *serve(void *arg)
{
	(void)arg;
	fabric_serve(serving.fabric, meet_mpi_library(), serving.process);
	return NULL;
}

/* MPI_Finalize waits for the other processes, which may be gone. */
static void *finalize_hangs(void *arg)
{
	int64_t end = clock_now_ns() + FINALIZE_NS, left;

	(void)arg;
	while (!atomic_load_explicit(&serving.over, memory_order_acquire)) {
		left = end - clock_now_ns();
		if (left <= 0)
			_exit(serving.status);
		thread_wait(&serving.over, 0, left);
	}
	return NULL;
}

/* The child has ended. Where a barrier is under way somebody is missing. */
static void end_serving(int status)
{
	pthread_t watcher;
	bool waiting;

	if (!serving.fabric)
		return;
	waiting = fabric_is_waiting(serving.fabric);
	fabric_quit(serving.fabric);
	pthread_join(serving.thread, NULL);
	serving.status = status;
	if (waiting || thread_start(&watcher, finalize_hangs, NULL, 0, "mpi-end", NULL) < 0)
		_exit(status);
	meet_over_mpi.end();
	atomic_store_explicit(&serving.over, 1, memory_order_release);
	thread_wake(&serving.over, -1);
	pthread_join(watcher, NULL);
}

/* There is no library to keep, and the barriers go over sockets. */
static void keep_none(const char *why)
{
	snprintf(serving.fabric->why, sizeof(serving.fabric->why), "%s", why);
	serving.fabric = NULL;
}

static int begin_meeting(struct launcher *l, struct meet_place *place, struct err *e)
{
	int rc = l->way->begin(&l->job, place, e);
	sigset_t set;

	if (rc < 0 && serving.fabric && serving.otherwise) {
		keep_none(e->text);
		l->way = serving.otherwise;
		l->job.keeps = false;
		signals_of_end(&set);
		sigaddset(&set, SIGCHLD);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		rc = l->way->begin(&l->job, place, e);
	}
	if (rc == 0 && serving.fabric) {
		snprintf(serving.fabric->library, sizeof(serving.fabric->library), "%s",
			 meet_mpi_library()->version);
		if (!meet_mpi_library()->serves)
			keep_none("the library has no MPI_Ibarrier, or not in another thread");
	}
	return rc;
}

/* Brings the invitation of process 0's child to all children. */
static int introduce(struct launcher *l, int fd, struct err *e)
{
	struct net_invitation inv = {0};
	struct meet_place place;
	int rc = begin_meeting(l, &place, e);

	if (rc < 0)
		return rc;
	rc = write_all(fd, &place, sizeof(place));
	if (rc == 0 && place.process == 0)
		rc = read_all(fd, &inv, sizeof(inv));
	if (rc < 0) { /* the child said why */
		l->way->give_up();
		return ERR_CANCELED;
	}
	rc = l->way->broadcast(&inv, sizeof(inv), e);
	if (rc < 0)
		return rc;
	if (place.process != 0)
		write_all(fd, &inv, sizeof(inv));
	serving.process = place.process;
	if (!serving.fabric)
		l->way->end();
	return 0;
}

/* What a library prints to the standard output is no part of this program's. */
static int introduce_guarded(struct launcher *l, int fd, pid_t child, struct err *e)
{
	pthread_t watcher;
	int rc, output;

	if (l->way != &meet_over_mpi)
		return introduce(l, fd, e);
	meeting.l = l;
	meeting.child = child;
	rc = thread_start(&watcher, library_hangs, NULL, 0, "mpi-limit", e);
	if (rc < 0)
		return rc;
	atexit(library_exits);
	fflush(stdout);
	output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	if (output >= 0)
		dup2(STDERR_FILENO, STDOUT_FILENO);
	rc = introduce(l, fd, e);
	fflush(stdout);
	if (output >= 0) {
		dup2(output, STDOUT_FILENO);
		close(output);
	}
	library_is_done(watcher);
	return rc;
}

static int status_of(int wait_status)
{
	sigset_t set;
	int sig;

	if (WIFEXITED(wait_status))
		return WEXITSTATUS(wait_status);
	/* the launcher is to see what ended the child */
	sig = WTERMSIG(wait_status);
	signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(sig);
	return 128 + sig;
}

/* Passes signals on until the child has ended; ends a child that is stuck, which the other
 * processes have given up by then, so that the launcher does not wait for it. */
static int hold(pid_t child, pid_t launcher, int control, const sigset_t *set)
{
	int64_t passed_ns = 0, heard_ns = 0, round_ns = clock_now_ns(), ending_ns = 0;
	int64_t silence_ns = NET_SILENCE_S * NS_PER_S;
	const struct timespec tick = {.tv_sec = 1};

	for (;;) {
		int wait_status, sig;
		int64_t now;
		unsigned char beats[16];
		ssize_t n;

		if (waitpid(child, &wait_status, WNOHANG) == child)
			return status_of(wait_status);
		sig = sigtimedwait(set, NULL, &tick);
		now = clock_now_ns();
		n = recv(control, beats, sizeof(beats), MSG_DONTWAIT);
		if (n > 0)
			silence_ns = beats[n - 1] * NS_PER_S;
		if (n > 0 || now - round_ns > OWN_PAUSE_NS)
			heard_ns = now;
		round_ns = now;
		if (heard_ns && now - heard_ns > silence_ns + CHILD_SILENCE_NS)
			kill(child, SIGKILL);
		if (!process_ends(child, &wait_status))
			ending_ns = 0;
		else if (ending_ns == 0)
			ending_ns = now;
		else if (now - ending_ns > CANNOT_END_NS)
			return status_of(wait_status);
		if (getppid() != launcher) { /* it is gone, and did not say so */
			launcher = getppid();
			sig = SIGTERM;
		}
		if (sig > 0 && sig != SIGCHLD &&
		    (passed_ns == 0 ||
		     (signals_insist(sig) && now - passed_ns > SIGNAL_PAUSE_NS))) {
			passed_ns = now;
			kill(child, sig);
		}
	}
}

static int child_part(int fd, const struct launcher *l, struct launch *out, struct err *e)
{
	struct meet_place place;
	int rc;

	/* a group of its own: what the launcher sends to its group is for its own process */
	setsid();
	memset(out, 0, sizeof(*out));
	out->control = fd;
	rc = read_all(fd, &place, sizeof(place));
	if (rc < 0)
		return ERR_CANCELED; /* the other process said why */
	out->process = place.process;
	out->processes = place.processes;
	if (place.process != 0)
		return read_all(fd, &out->invitation, sizeof(out->invitation)) < 0 ? ERR_CANCELED
										   : 0;
	rc = net_listen(&out->listener, &out->invitation, &l->where, e);
	if (rc == 0)
		rc = write_all(fd, &out->invitation, sizeof(out->invitation)) < 0 ? ERR_CANCELED
										  : 0;
	return rc;
}

/* MPICH's launcher (mpiexec.hydra 4.0.2) takes how a process ended only while another one's output
 * is open, and one of them with each event of such an output; when all end at once it returns 0,
 * whatever they returned. After a failure the first one therefore ends last, and its two outputs
 * one after the other. */
#define LAST_NS (NS_PER_S / 10)

static void end_last(void)
{
	int nowhere;

	clock_sleep_until(clock_now_ns() + LAST_NS);
	fflush(stdout);
	nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (nowhere < 0)
		return;
	dup2(nowhere, STDOUT_FILENO);
	close(nowhere);
	clock_sleep_until(clock_now_ns() + LAST_NS);
}

int launch(struct launcher *l, enum launch_mpi mpi, struct launch *out, int *status, struct err *e)
{
	sigset_t set;
	pid_t child, launcher = getppid();
	int fd[2], rc = launcher_way(l, e);

	if (rc < 0)
		return rc;
	if (!l->way)
		return err_set(
			e, -ENOTSUP,
			"%s started %lld processes that cannot find each other: set "
			"STOKER_ADDRESS to HOST:PORT of process 0 in all of them, with "
			"STOKER_PROCESS and STOKER_PROCESSES; or use srun --mpi=pmix (Open MPI) or "
			"--mpi=pmi2 (MPICH)",
			l->name, (long long)l->processes);
	/* this program's own hosts have none */
	if (mpi != LAUNCH_MPI_NOT_KEPT && !l->own && !l->no_library)
		serving.fabric = fabric_create();
	if (serving.fabric) {
		if (mpi == LAUNCH_MPI_TRIED && l->way != &meet_over_mpi)
			serving.otherwise = l->way;
		l->way = &meet_over_mpi;
		l->job.keeps = true;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0)
		return err_sys(e, errno, "cannot create a socket pair");
	fflush(NULL);
	child = fork();
	if (child < 0)
		return err_sys(e, errno, "cannot create a process");
	if (child == 0) {
		close(fd[0]);
		rc = child_part(fd[1], l, out, e);
		out->fabric = serving.fabric;
		return rc;
	}
	close(fd[1]);
	signals_of_end(&set);
	sigaddset(&set, SIGCHLD);
	/* in a library's threads too: only hold() is to see them; elsewhere they end the waiting */
	if (l->way == &meet_over_mpi)
		sigprocmask(SIG_BLOCK, &set, NULL);
	rc = introduce_guarded(l, fd[0], child, e);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (rc < 0) {
		int wait_status;

		close(fd[0]); /* the child ends, unless it listens for others already */
		if (rc != ERR_CANCELED)
			kill(child, SIGKILL);
		waitpid(child, &wait_status, 0);
		*status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 1;
		return rc == ERR_CANCELED ? 1 : rc;
	}
	if (serving.fabric && thread_start(&serving.thread, serve, NULL, 0, "mpi", e) < 0) {
		atomic_store_explicit(&serving.fabric->failed, 1, memory_order_release);
		l->way->end();
		serving.fabric = NULL;
	}
	*status = hold(child, launcher, fd[0], &set);
	end_serving(*status);
	if (*status && l->process <= 0 && l->mpich)
		end_last();
	return 1;
}
