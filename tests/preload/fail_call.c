/* Loaded before the C library (LD_PRELOAD): one system call of the program fails, or is half done.
 *
 * Every system call comes here, those of stdio, of liburing and of raw syscall() too: each thread
 * asks the kernel for a SIGSYS in place of a call (PR_SET_SYSCALL_USER_DISPATCH, Linux 5.11), and
 * the handler makes the call, or does not. Calls are told apart by the place they are made from,
 * which is the chain of callers within the program and the number of the call.
 *
 * FAIL_CALL=none lets all succeed; the file FAIL_CALL_TOLD gets a line for each call that can fail,
 * `call PLACE N NAME RC ADDRESS,ADDRESS... WHAT`, where N counts the calls of that place from 1 and
 * WHAT is the path, or what the descriptor is. FAIL_CALL=PLACE:N:HOW lets the N-th of that place
 * fail, once in all processes: HOW is a number of errno, `-NUMBER` for a failure that is reported
 * after the call was made (as close and fsync do), or `half` for a transfer of half the bytes.
 *
 * Processes that this one starts are followed if they load the same library. */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__) && defined(PR_SET_SYSCALL_USER_DISPATCH)

#define DEPTH 5
#define PLACES (1u << 15)

/* The only code whose system calls are not taken away. The bytes of restore are those by which the
 * unwinder knows the frame of a signal. */
__asm__(".pushsection .text\n"
	".globl fail_call_begin\nfail_call_begin:\n"
	".globl fail_call_raw\nfail_call_raw:\n"
	"movq %rdi, %rax\nmovq %rsi, %rdi\nmovq %rdx, %rsi\nmovq %rcx, %rdx\nmovq %r8, %r10\n"
	"movq %r9, %r8\nmovq 8(%rsp), %r9\nsyscall\nret\n"
	".globl fail_call_restore_at\nfail_call_restore_at:\n"
	"movq %rdi, %rsp\nmovq $15, %rax\nsyscall\n"
	"nop\n.globl fail_call_restore\nfail_call_restore:\n"
	"movq $15, %rax\nsyscall\n"
	".globl fail_call_end\nfail_call_end:\n"
	".popsection\n");
extern char fail_call_begin[], fail_call_end[], fail_call_restore[];
extern long fail_call_raw(long nr, long a, long b, long c, long d, long e, long f);
extern void fail_call_restore_at(long sp) __attribute__((noreturn));

#define RAW(nr, ...) RAW_(nr, __VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define RAW_(nr, a, b, c, d, e, f, ...)                                                            \
	fail_call_raw(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

struct kernel_sigaction {
	void (*handler)(int, siginfo_t *, void *);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

struct place {
	_Atomic uint64_t hash;
	_Atomic unsigned long count;
};

static __thread volatile char selector __attribute__((tls_model("initial-exec")));
static struct place *places;
static uint64_t fail_place;
static unsigned long fail_at;
static int fail_errno;
static bool fail_half, fail_after, active;
static char told_path[PATH_MAX], once_path[PATH_MAX];
static int told = -1;
static uintptr_t text_begin, text_end, load_base;

#define SIGSYS_BIT (1ull << (SIGSYS - 1))

/* What the arguments of a call mean. P: a path (of the folder in the argument before it, for
 * ..at), F: a descriptor, B: bytes in the third argument may be halved, V: a vector of pieces. */
static const struct call {
	short nr;
	const char *name, *how;
} calls[] = {
	{SYS_open, "open", "P0"},
	{SYS_openat, "openat", "P1"},
	{SYS_creat, "creat", "P0"},
	{SYS_stat, "stat", "P0"},
	{SYS_lstat, "lstat", "P0"},
	{SYS_newfstatat, "newfstatat", "P1"},
	{SYS_statx, "statx", "P1"},
	{SYS_access, "access", "P0"},
	{SYS_faccessat, "faccessat", "P1"},
	{SYS_readlink, "readlink", "P0"},
	{SYS_readlinkat, "readlinkat", "P1"},
	{SYS_mkdir, "mkdir", "P0"},
	{SYS_mkdirat, "mkdirat", "P1"},
	{SYS_rmdir, "rmdir", "P0"},
	{SYS_unlink, "unlink", "P0"},
	{SYS_unlinkat, "unlinkat", "P1"},
	{SYS_rename, "rename", "P1s"},
	{SYS_renameat, "renameat", "P3"},
	{SYS_renameat2, "renameat2", "P3"},
	{SYS_link, "link", "P1s"},
	{SYS_linkat, "linkat", "P3"},
	{SYS_symlink, "symlink", "P1s"},
	{SYS_symlinkat, "symlinkat", "P2"},
	{SYS_statfs, "statfs", "P0"},
	{SYS_chmod, "chmod", "P0"},
	{SYS_chdir, "chdir", "P0"},
	{SYS_truncate, "truncate", "P0"},
	{SYS_execve, "execve", "P0"},
	{SYS_read, "read", "FB"},
	{SYS_pread64, "pread64", "FB"},
	{SYS_readv, "readv", "FV"},
	{SYS_preadv, "preadv", "FV"},
	{SYS_preadv2, "preadv2", "FV"},
	{SYS_write, "write", "FB"},
	{SYS_pwrite64, "pwrite64", "FB"},
	{SYS_writev, "writev", "FV"},
	{SYS_pwritev, "pwritev", "FV"},
	{SYS_pwritev2, "pwritev2", "FV"},
	{SYS_sendto, "sendto", "FB"},
	{SYS_recvfrom, "recvfrom", "FB"},
	{SYS_sendmsg, "sendmsg", "F"},
	{SYS_recvmsg, "recvmsg", "F"},
	{SYS_fstat, "fstat", "F"},
	{SYS_fstatfs, "fstatfs", "F"},
	{SYS_fsync, "fsync", "F"},
	{SYS_fdatasync, "fdatasync", "F"},
	{SYS_syncfs, "syncfs", "F"},
	{SYS_sync_file_range, "sync_file_range", "F"},
	{SYS_ftruncate, "ftruncate", "F"},
	{SYS_fallocate, "fallocate", "F"},
	{SYS_fadvise64, "fadvise64", "F"},
	{SYS_fchmod, "fchmod", "F"},
	{SYS_fchown, "fchown", "F"},
	{SYS_flock, "flock", "F"},
	{SYS_fcntl, "fcntl", "F"},
	{SYS_ioctl, "ioctl", "F"},
	{SYS_lseek, "lseek", "F"},
	{SYS_getdents64, "getdents64", "F"},
	{SYS_close, "close", "F"},
	{SYS_dup, "dup", "F"},
	{SYS_dup2, "dup2", "F"},
	{SYS_dup3, "dup3", "F"},
	{SYS_mmap, "mmap", "M"},
	{451, "cachestat", "F"},
	{SYS_copy_file_range, "copy_file_range", "F"},
	{SYS_sendfile, "sendfile", "F"},
	{SYS_socket, "socket", ""},
	{SYS_socketpair, "socketpair", ""},
	{SYS_connect, "connect", "F"},
	{SYS_bind, "bind", "F"},
	{SYS_listen, "listen", "F"},
	{SYS_accept, "accept", "F"},
	{SYS_accept4, "accept4", "F"},
	{SYS_shutdown, "shutdown", "F"},
	{SYS_getsockname, "getsockname", "F"},
	{SYS_getpeername, "getpeername", "F"},
	{SYS_setsockopt, "setsockopt", "F"},
	{SYS_getsockopt, "getsockopt", "F"},
	{SYS_poll, "poll", ""},
	{SYS_ppoll, "ppoll", ""},
	{SYS_select, "select", ""},
	{SYS_pselect6, "pselect6", ""},
	{SYS_epoll_create1, "epoll_create1", ""},
	{SYS_epoll_ctl, "epoll_ctl", "F"},
	{SYS_epoll_wait, "epoll_wait", "F"},
	{SYS_epoll_pwait, "epoll_pwait", "F"},
	{SYS_eventfd2, "eventfd2", ""},
	{SYS_timerfd_create, "timerfd_create", ""},
	{SYS_signalfd4, "signalfd4", ""},
	{SYS_memfd_create, "memfd_create", ""},
	{SYS_pipe, "pipe", ""},
	{SYS_pipe2, "pipe2", ""},
	{SYS_wait4, "wait4", ""},
	{SYS_io_uring_setup, "io_uring_setup", ""},
	{SYS_io_uring_enter, "io_uring_enter", "F"},
	{SYS_io_uring_register, "io_uring_register", "F"},
	{SYS_getcwd, "getcwd", ""},
	{SYS_sched_getaffinity, "sched_getaffinity", ""},
	{SYS_sched_setaffinity, "sched_setaffinity", ""},
	{SYS_prlimit64, "prlimit64", ""},
	{SYS_uname, "uname", ""},
	{SYS_sysinfo, "sysinfo", ""},
	{SYS_getrusage, "getrusage", ""},
	{SYS_getrandom, "getrandom", ""},
	{SYS_mincore, "mincore", ""},
	{SYS_mlock, "mlock", ""},
	{SYS_setsid, "setsid", ""},
	{SYS_setpgid, "setpgid", ""},
	{SYS_inotify_init1, "inotify_init1", ""},
};

static const struct call *call_of(long nr)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (calls[i].nr == nr)
			return &calls[i];
	return NULL;
}

static void link_of(int fd, char *out, size_t size)
{
	char link[64];
	long n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = RAW(SYS_readlink, link, out, size - 1);
	out[n > 0 ? n : 0] = '\0';
}

static void path_at(int folder, const char *path, char *out, size_t size)
{
	size_t n;

	out[0] = '\0';
	if (path[0] != '/') {
		if (folder == AT_FDCWD)
			RAW(SYS_getcwd, out, size);
		else
			link_of(folder, out, size);
	}
	n = strlen(out);
	snprintf(out + n, size - n, "%s%s", path[0] == '/' || !path[0] ? "" : "/", path);
}

static void what_is(const struct call *c, const greg_t *g, char *out, size_t size)
{
	const long arg[6] = {g[REG_RDI], g[REG_RSI], g[REG_RDX], g[REG_R10], g[REG_R8], g[REG_R9]};

	out[0] = '\0';
	if (c->how[0] == 'P') {
		int i = c->how[1] - '0';

		path_at(i == 0 || c->how[2] == 's' ? AT_FDCWD : (int)arg[i - 1],
			arg[i] ? (const char *)arg[i] : "", out, size);
	} else if (c->how[0] == 'F') {
		link_of((int)arg[0], out, size);
	} else if (c->how[0] == 'M') {
		link_of((int)arg[4], out, size);
	} else {
		snprintf(out, size, "-");
	}
	for (char *p = out; *p; p++)
		if (*p == '\n')
			*p = '?';
}

/* The callers that belong to the program itself; how many. */
static int callers(void *out[DEPTH])
{
	void *all[48];
	int n = backtrace(all, 48), kept = 0;

	for (int i = 0; i < n && kept < DEPTH; i++)
		if ((uintptr_t)all[i] >= text_begin && (uintptr_t)all[i] < text_end)
			out[kept++] = all[i];
	for (int i = kept; i < DEPTH; i++)
		out[i] = NULL;
	return kept;
}

static uint64_t hash_of(long nr, void *const caller[DEPTH])
{
	uint64_t h = 0xCBF29CE484222325u ^ (uint64_t)nr;

	h *= 0x100000001B3u;
	for (int i = 0; i < DEPTH && caller[i]; i++)
		h = (h ^ ((uintptr_t)caller[i] - load_base)) * 0x100000001B3u;
	return h ? h : 1;
}

static unsigned long count_at(uint64_t hash)
{
	for (size_t i = hash & (PLACES - 1);; i = (i + 1) & (PLACES - 1)) {
		uint64_t none = 0;

		if (places[i].hash == hash ||
		    __atomic_compare_exchange_n((uint64_t *)&places[i].hash, &none, hash, false,
						__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ||
		    none == hash)
			return ++places[i].count;
	}
}

static void tell(const char *first, uint64_t hash, unsigned long n, const char *name, long rc,
		 void *const caller[DEPTH], const char *what)
{
	char line[PATH_MAX + 512];
	int at = snprintf(line, sizeof(line), "%s %lx %lu %s %ld ", first, hash, n, name, rc);

	for (int i = 0; i < DEPTH && caller[i]; i++)
		at += snprintf(line + at, sizeof(line) - (size_t)at, "%s%lx", i ? "," : "",
			       (unsigned long)((uintptr_t)caller[i] - load_base));
	at += snprintf(line + at, sizeof(line) - (size_t)at, "%s %s\n", caller[0] ? "" : "-", what);
	RAW(SYS_write, told, line, at);
}

/* The first process to come here makes the failure. */
static bool first_to_fail(void)
{
	long fd = RAW(SYS_openat, AT_FDCWD, once_path, O_CREAT | O_EXCL | O_WRONLY, 0600);

	if (fd >= 0)
		RAW(SYS_close, fd);
	return fd >= 0;
}

/* Half of what the pieces hold. Returns how many pieces are left. */
static long halve(const struct iovec *v, long n, struct iovec *out, long room)
{
	size_t total = 0, left;
	long i = 0;

	for (long k = 0; k < n; k++)
		total += v[k].iov_len;
	left = total / 2;
	for (; i < n && i < room && left > 0; i++) {
		out[i] = v[i];
		if (out[i].iov_len > left)
			out[i].iov_len = left;
		left -= out[i].iov_len;
	}
	return i;
}

static long make_half(const struct call *c, greg_t *g)
{
	struct iovec some[64];
	long n = g[REG_RDX], count;
	char has = c->how[0] == 'F' ? c->how[1] : '\0';

	if (has == 'B' && n > 1)
		return fail_call_raw(g[REG_RAX], g[REG_RDI], g[REG_RSI], n / 2, g[REG_R10],
				     g[REG_R8], g[REG_R9]);
	count = has == 'V' ? halve((const struct iovec *)g[REG_RSI], n, some, 64) : 0;
	if (count > 0)
		return fail_call_raw(g[REG_RAX], g[REG_RDI], (long)some, count, g[REG_R10],
				     g[REG_R8], g[REG_R9]);
	return fail_call_raw(g[REG_RAX], g[REG_RDI], g[REG_RSI], g[REG_RDX], g[REG_R10], g[REG_R8],
			     g[REG_R9]);
}

static long make(const greg_t *g)
{
	return fail_call_raw(g[REG_RAX], g[REG_RDI], g[REG_RSI], g[REG_RDX], g[REG_R10], g[REG_R8],
			     g[REG_R9]);
}

static long examined(const struct call *c, greg_t *g)
{
	char what[PATH_MAX];
	void *caller[DEPTH];
	unsigned long n;
	uint64_t hash;
	long rc;

	if (c->how[0] == 'M' && (int)g[REG_R8] < 0)
		return make(g);
	if (c->nr == SYS_close && (int)g[REG_RDI] == told)
		return 0;
	callers(caller);
	hash = hash_of(g[REG_RAX], caller);
	n = count_at(hash);
	if (fail_at) {
		if (hash != fail_place || n != fail_at || !first_to_fail())
			return make(g);
		what_is(c, g, what, sizeof(what));
		rc = fail_half ? make_half(c, g) : fail_after ? make(g) : -fail_errno;
		if (fail_after)
			rc = -fail_errno;
		tell("failed", hash, n, c->name, rc, caller, what);
		return rc;
	}
	what_is(c, g, what, sizeof(what));
	rc = make(g);
	tell("call", hash, n, c->name, rc, caller, what);
	return rc;
}

static long mask_signals(const greg_t *g, ucontext_t *uc)
{
	uint64_t now, *kept = (uint64_t *)&uc->uc_sigmask;
	const uint64_t *set = (const uint64_t *)g[REG_RSI];

	now = *kept;
	if (set) {
		if (g[REG_RDI] == SIG_BLOCK)
			*kept |= *set;
		else if (g[REG_RDI] == SIG_UNBLOCK)
			*kept &= ~*set;
		else
			*kept = *set;
		*kept &= ~SIGSYS_BIT;
	}
	if (g[REG_RDX])
		*(uint64_t *)g[REG_RDX] = now;
	return 0;
}

static long set_handler(const greg_t *g)
{
	const struct kernel_sigaction *given = (const struct kernel_sigaction *)g[REG_RSI];
	struct kernel_sigaction a;

	if (g[REG_RDI] == SIGSYS)
		return 0;
	if (!given)
		return make(g);
	a = *given;
	a.mask &= ~SIGSYS_BIT;
	return fail_call_raw(g[REG_RAX], g[REG_RDI], (long)&a, g[REG_RDX], g[REG_R10], 0, 0);
}

static void on_call(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	greg_t *g = uc->uc_mcontext.gregs;
	const struct call *c;
	int saved = errno;

	(void)sig;
	(void)info;
	selector = 0;
	switch (g[REG_RAX]) {
	case SYS_rt_sigreturn:
		selector = 1;
		fail_call_restore_at(g[REG_RSP]);
	case SYS_rt_sigprocmask:
		g[REG_RAX] = mask_signals(g, uc);
		break;
	case SYS_rt_sigaction:
		g[REG_RAX] = set_handler(g);
		break;
	default:
		c = call_of(g[REG_RAX]);
		g[REG_RAX] = c && active ? examined(c, g) : make(g);
	}
	errno = saved;
	selector = 1;
}

static void take_calls(void)
{
	if (fail_call_raw(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON,
			  (long)fail_call_begin, fail_call_end - fail_call_begin, (long)&selector,
			  0) != 0)
		_exit(97);
	selector = 1;
}

/* ---- what makes threads and processes ---- */

struct start {
	void *(*fn)(void *);
	void *arg;
};

static void *thread_main(void *p)
{
	struct start s = *(struct start *)p;
	void *r;

	free(p);
	take_calls();
	r = s.fn(s.arg);
	selector = 0;
	return r;
}

/* Whether making a thread or a process is what fails. */
static bool fails(long nr, const char *name)
{
	void *caller[DEPTH];
	uint64_t hash;
	unsigned long n;

	callers(caller);
	hash = hash_of(nr, caller);
	n = count_at(hash);
	if (!fail_at)
		tell("call", hash, n, name, 0, caller, "-");
	if (!fail_at || hash != fail_place || n != fail_at || !first_to_fail())
		return false;
	tell("failed", hash, n, name, -fail_errno, caller, "-");
	return true;
}

int pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	struct start *s;
	char was = selector;
	int rc;

	if (!next)
		next = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
				void *))dlsym(RTLD_NEXT, "pthread_create");
	if (!active)
		return next(out, attr, fn, arg);
	selector = 0;
	if (fails(SYS_clone3, "pthread_create")) {
		selector = was;
		return fail_errno;
	}
	s = malloc(sizeof(*s));
	if (!s)
		_exit(96);
	*s = (struct start){fn, arg};
	rc = next(out, attr, thread_main, s);
	selector = was;
	return rc;
}

pid_t fork(void)
{
	static pid_t (*next)(void);
	char was = selector;
	pid_t pid;

	if (!next)
		next = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
	if (!active)
		return next();
	selector = 0;
	if (fails(SYS_fork, "fork")) {
		selector = was;
		errno = fail_errno;
		return -1;
	}
	pid = next();
	if (pid == 0)
		take_calls();
	selector = was;
	return pid;
}

/* ---- begin ---- */

/* The program is the first object listed. */
static int find_text(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	load_base = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
			text_begin = load_base + info->dlpi_phdr[i].p_vaddr;
			text_end = text_begin + info->dlpi_phdr[i].p_memsz;
		}
	}
	return 1;
}

__attribute__((constructor)) static void begin(void)
{
	struct kernel_sigaction a = {.handler = on_call,
				     .flags = SA_SIGINFO | SA_NODEFER | 0x04000000,
				     .restorer = (void (*)(void))fail_call_restore};
	const char *path = getenv("FAIL_CALL_TOLD"), *which = getenv("FAIL_CALL");
	const char *program = getenv("FAIL_CALL_PROGRAM");
	char how[32], exe[PATH_MAX];
	void *first[2];
	int fd;

	if (!path || !which)
		return;
	fd = (int)readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	exe[fd > 0 ? fd : 0] = '\0';
	if (program && strcmp(program, exe) != 0)
		return;
	if (strcmp(which, "none") != 0) {
		if (sscanf(which, "%lx:%lu:%31s", &fail_place, &fail_at, how) != 3)
			_exit(98);
		fail_half = strcmp(how, "half") == 0;
		fail_after = how[0] == '-';
		fail_errno = abs(atoi(how));
	}
	snprintf(told_path, sizeof(told_path), "%s", path);
	snprintf(once_path, sizeof(once_path), "%s.once", path);
	dl_iterate_phdr(find_text, NULL);
	backtrace(first, 2); /* loads what it needs */
	places = (struct place *)RAW(SYS_mmap, NULL, PLACES * sizeof(*places), 3, 0x22, -1, 0);
	fd = open(told_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	told = fcntl(fd, F_DUPFD_CLOEXEC, 900); /* where it is in nobody's way */
	close(fd);
	if (told < 0 || RAW(SYS_rt_sigaction, SIGSYS, &a, NULL, 8) != 0)
		_exit(97);
	active = true;
	take_calls();
}

#else
int fail_call_unsupported;
#endif
