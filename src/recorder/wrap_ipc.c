/* Pipes and waiting: what makes a descriptor, and which thread waits for another. */
#include "recorder/wrap.h"

#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WAITED_NS 10000 /* shorter ones are not waiting */

static void wrap_pair(int r, const int *fd, enum ring_file kind, int64_t begin)
{
	struct fd_facts a, b;
	uint64_t u, v;

	if (r < 0)
		return;
	(void)fd_facts(fd[0], &a);
	(void)fd_facts(fd[1], &b);
	u = fd_new(fd[0], kind);
	v = fd_new(fd[1], kind);
	note(RING_PAIR, begin, N(kind), N(fd[0]), FD_SERIAL(u), a.inode, N(fd[1]), FD_SERIAL(v),
	     b.inode);
}

#define PAIR(name, kind, type, params, args)                                                       \
	WRAP_CALL(int, name, type, params, args, , wrap_pair(r, fd, kind, begin))
PAIR(pipe, RING_PIPE, (int[2]), (int fd[2]), (fd))
PAIR(pipe2, RING_PIPE, (int[2], int), (int fd[2], int flags), (fd, flags))
PAIR(socketpair, RING_SOCKETS, (int, int, int, int[2]), (int family, int type, int what, int fd[2]),
     (family, type, what, fd))

/* Other descriptors: what was known of the number is over. */
#define FORGET(name, type, params, args)                                                           \
	WRAP int name params                                                                       \
	{                                                                                          \
		REAL_V(int, name, type);                                                           \
		int fd = real ? real args : no_call();                                             \
		if (fd >= 0 && recording())                                                        \
			fd_forget(fd);                                                             \
		return fd;                                                                         \
	}
FORGET(eventfd, (unsigned, int), (unsigned n, int flags), (n, flags))
FORGET(epoll_create, (int), (int n), (n))
FORGET(epoll_create1, (int), (int flags), (flags))
FORGET(timerfd_create, (int, int), (int clock, int flags), (clock, flags))
FORGET(inotify_init, (void), (void), ())
FORGET(inotify_init1, (int), (int flags), (flags))
FORGET(pidfd_open, (pid_t, unsigned), (pid_t pid, unsigned flags), (pid, flags))
FORGET(posix_openpt, (int), (int flags), (flags))

/* ---- waiting ---- */

enum { WAIT_POLL = 1, WAIT_SEMAPHORE };

static void waited(int what, int64_t begin, int64_t result)
{
	if (now_ns() - begin >= WAITED_NS)
		note(RING_BLOCK, begin, N(what), result);
}

#define WAITS(what, name, type, params, args)                                                      \
	WRAP_CALL(int, name, type, params, args, , waited(what, begin, RESULT))
WAITS(WAIT_POLL, poll, (struct pollfd *, nfds_t, int), (struct pollfd * p, nfds_t n, int ms),
      (p, n, ms))
WAITS(WAIT_POLL, __poll_chk, (struct pollfd *, nfds_t, int, size_t),
      (struct pollfd * p, nfds_t n, int ms, size_t room), (p, n, ms, room))
WAITS(WAIT_POLL, ppoll, (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *),
      (struct pollfd * p, nfds_t n, const struct timespec *t, const sigset_t *s), (p, n, t, s))
WAITS(WAIT_POLL, epoll_wait, (int, struct epoll_event *, int, int),
      (int fd, struct epoll_event *v, int n, int ms), (fd, v, n, ms))
WAITS(WAIT_POLL, epoll_pwait, (int, struct epoll_event *, int, int, const sigset_t *),
      (int fd, struct epoll_event *v, int n, int ms, const sigset_t *s), (fd, v, n, ms, s))

/* Without descriptors select(2) is a sleep. */
#define SELECT(name, time, extra_type, extra, extra_arg)                                           \
	WRAP int name(int n, fd_set *in, fd_set *out, fd_set *x, time *t extra)                    \
	{                                                                                          \
		REAL(int, name, int, fd_set *, fd_set *, fd_set *, time *extra_type);              \
		if (!in && !out && !x)                                                             \
			return real(n, in, out, x, t extra_arg);                                   \
		WRAP_BODY(int, real(n, in, out, x, t extra_arg), ,                                 \
			  waited(WAIT_POLL, begin, RESULT));                                       \
	}
#define COMMA ,
SELECT(select, struct timeval, , , )
SELECT(pselect, const struct timespec, COMMA const sigset_t *, COMMA const sigset_t *s, COMMA s)

/* libc writes a new semaphore into a file of its own. */
WRAP sem_t *sem_open(const char *name, int flags, ...)
{
	REAL(sem_t *, sem_open, const char *, int, ...);
	mode_t mode = 0;
	unsigned value = 0;

	if (flags & O_CREAT) {
		va_list ap;

		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		value = va_arg(ap, unsigned);
		va_end(ap);
	}
	WRAP_BODY(sem_t *, real(name, flags, mode, value), ,
		  if (r != SEM_FAILED && flags & O_EXCL) note_counted(0, sizeof(sem_t)));
}

WAITS(WAIT_SEMAPHORE, sem_wait, (sem_t *), (sem_t * s), (s))
WAITS(WAIT_SEMAPHORE, sem_timedwait, (sem_t *, const struct timespec *),
      (sem_t * s, const struct timespec *t), (s, t))
WAITS(WAIT_SEMAPHORE, sem_clockwait, (sem_t *, clockid_t, const struct timespec *),
      (sem_t * s, clockid_t clock, const struct timespec *t), (s, clock, t))
