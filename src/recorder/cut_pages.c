/* Pages of a ring that another process cuts off, or that its file system cannot give, end the
 * process that stores into them with SIGBUS. The recorder's action for that signal puts memory in
 * their place; the program's own action, which it sets and asks for as ever, has all others. */
#include "recorder/wrap.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct sigaction program; /* its action */
static bool watched;

static int (*real_action(void))(int, const struct sigaction *, struct sigaction *)
{
	static void *slot;

	return (int (*)(int, const struct sigaction *, struct sigaction *))real_of(&slot,
										   "sigaction");
}

static bool is_plain(const struct sigaction *a)
{
	return !(a->sa_flags & SA_SIGINFO) &&
	       (a->sa_handler == SIG_DFL || a->sa_handler == SIG_IGN);
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	struct sigaction a = program;

	if (info->si_code > 0 && ring_lost_page(info->si_addr))
		return;
	if (is_plain(&a)) {
		/* what is repeated when this returns ends the process */
		a = (struct sigaction){.sa_handler = SIG_DFL};
		(void)real_action()(sig, &a, NULL);
		if (info->si_code <= 0)
			kernel6(SYS_rt_tgsigqueueinfo, kernel6(SYS_getpid, 0, 0, 0, 0, 0, 0),
				kernel6(SYS_gettid, 0, 0, 0, 0, 0, 0), sig, (long)info, 0, 0);
		return;
	}
	if (a.sa_flags & (int)SA_RESETHAND) {
		program.sa_handler = SIG_DFL;
		program.sa_flags &= ~SA_SIGINFO;
	}
	if (a.sa_flags & SA_SIGINFO)
		a.sa_sigaction(sig, info, context);
	else
		a.sa_handler(sig);
}

/* The program's action becomes that of the kernel. */
static void give_back(void)
{
	if (watched)
		(void)real_action()(SIGBUS, &program, NULL);
}

void faults_watch(void)
{
	struct sigaction now;

	/* a child of vfork has the memory of its parent, and actions of its own */
	if (process_is_filtered() || process_is_vforked() ||
	    real_action()(SIGBUS, NULL, &now) < 0 ||
	    (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault))
		return;
	program = now;
	watched = true;
	/* programs that are executed inherit that a signal is ignored, and no action */
	if (is_plain(&now) && now.sa_handler == SIG_IGN)
		return;
	if (is_plain(&now))
		now.sa_flags = SA_RESTART;
	now.sa_flags = (now.sa_flags & ~(int)SA_RESETHAND) | SA_SIGINFO;
	now.sa_sigaction = on_fault;
	(void)real_action()(SIGBUS, &now, NULL);
}

/* A call that sets or tells the action of SIGBUS finds the program's. */
#define ACTION(ret, name, type, params, args)                                                      \
	WRAP ret name params                                                                       \
	{                                                                                          \
		REAL_V(ret, name, type);                                                           \
		ret r;                                                                             \
		if (LIKELY(sig != SIGBUS) || !watched || process_is_vforked())                     \
			return real args;                                                          \
		give_back();                                                                       \
		r = real args;                                                                     \
		KEEP_ERRNO(faults_watch());                                                        \
		return r;                                                                          \
	}
typedef void (*handler)(int);
/* libc adds a flag of its own to what is set: what it was is told as it was. */
#define SIGACTION(name)                                                                            \
	WRAP int name(int sig, const struct sigaction *act, struct sigaction *old)                 \
	{                                                                                          \
		REAL(int, name, int, const struct sigaction *, struct sigaction *);                \
		struct sigaction was;                                                              \
		int r;                                                                             \
		if (LIKELY(sig != SIGBUS) || !watched || process_is_vforked())                     \
			return real(sig, act, old);                                                \
		was = program;                                                                     \
		r = act ? real(sig, act, NULL) : 0;                                                \
		KEEP_ERRNO(faults_watch());                                                        \
		if (r == 0 && old)                                                                 \
			*old = was;                                                                \
		return r;                                                                          \
	}
SIGACTION(sigaction)
SIGACTION(__sigaction)
ACTION(handler, signal, (int, handler), (int sig, handler h), (sig, h))
ACTION(handler, bsd_signal, (int, handler), (int sig, handler h), (sig, h))
ACTION(handler, ssignal, (int, handler), (int sig, handler h), (sig, h))
ACTION(handler, sysv_signal, (int, handler), (int sig, handler h), (sig, h))
ACTION(handler, __sysv_signal, (int, handler), (int sig, handler h), (sig, h))
ACTION(handler, sigset, (int, handler), (int sig, handler h), (sig, h))
ACTION(int, sigignore, (int), (int sig), (sig))
ACTION(int, siginterrupt, (int, int), (int sig, int on), (sig, on))
