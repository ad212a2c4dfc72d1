/* Processes: fork, exec, exit, wait. */
#include "recorder/wrap.h"

#include <alloca.h>
#include <fcntl.h>
#include <link.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 65536

/* ---- what is executed ---- */

struct image_room {
	char head[IMAGE_HEAD] __attribute__((aligned(8)));
	char name[256];
};

static enum ring_image look_at_image(int dirfd, const char *path, struct image_room *room)
{
	enum ring_image image = RING_IMAGE_UNKNOWN;

	for (int i = 0; i < IMAGE_INTERPRETERS; i++) {
		long fd = raw(SYS_openat, dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), n;
		struct stat st;

		if (fd < 0)
			return image;
		if (raw(SYS_fstat, fd, &st) == 0 && st.st_mode & S_ISUID &&
		    st.st_uid != (uid_t)raw(SYS_getuid)) {
			raw(SYS_close, fd);
			return RING_IMAGE_SETUID;
		}
		n = raw(SYS_read, fd, room->head, sizeof(room->head));
		raw(SYS_close, fd);
		if (!process_is_vforked())
			note_counted(n > 0 ? n : 0, 0);
		image = ring_image_of(room->head, n, room->name, sizeof(room->name));
		if (!*room->name)
			return image;
		path = room->name;
		dirfd = AT_FDCWD;
	}
	return image;
}

/* Reads the beginning of the file: what exec(2) will do, too. */
static enum ring_image image_of(int dirfd, const char *path)
{
	struct image_room *room;
	enum ring_image image;

	if (process_is_filtered())
		return RING_IMAGE_FILTERED;
	room = (struct image_room *)(void *)scratch_take();
	image = room ? look_at_image(dirfd, path, room) : RING_IMAGE_UNKNOWN;
	scratch_give((char *)room);
	return image;
}

/* The program that a name without a slash leads to. */
static const char *search(const char *file, char *out)
{
	const char *path = getenv("PATH"), *next;
	struct probe k = {0};
	size_t n;

	if (!out || !text_readable(&k, file, FD_NAME_MAX, &n) || strchr(file, '/'))
		return file;
	for (; path; path = next) {
		const char *colon = strchr(path, ':');
		size_t m = colon ? (size_t)(colon - path) : strlen(path);

		next = colon ? colon + 1 : NULL;
		if (m == 0 || m + n + 2 > SCRATCH)
			continue;
		memcpy(out, path, m);
		out[m] = '/';
		memcpy(out + m + 1, file, n + 1);
		if (raw(SYS_faccessat, AT_FDCWD, out, X_OK) == 0)
			return out;
	}
	return file;
}

/* In a child of vfork, the thread of the parent that waits for it has the place for events. */
static void executes(int dirfd, const char *path, int64_t pid)
{
	enum ring_image image = image_of(dirfd, path);
	uint64_t base;

	if (!process_is_filtered())
		path = wrap_name(path, -EFAULT);
	(void)at_base(dirfd, path, &base);
	note(RING_EXEC, now_ns(), pid, base ? FD_SERIAL(base) + 1 : 0, path, N(image));
}

static void executes_found(const char *file, int64_t pid)
{
	char *room = scratch_take();

	executes(AT_FDCWD, search(file, room), pid);
	scratch_give(room);
}

/* ---- the environment of what is executed ---- */

#define PRELOAD "LD_PRELOAD="
#define OWN "STOKER_RECORD_"
#define PRELOAD_MOST 65536

struct variables {
	size_t n;
	const char *preload; /* its value; NULL: none */
	size_t preload_bytes;
	bool own; /* the recorder's folder is there */
};

/* False: the kernel will refuse them, or they are too many. */
static bool look_at_variables(char *const *env, struct variables *out)
{
	bool trusted = process_is_filtered();
	struct probe array = {.trusted = trusted}, text = {.trusted = trusted};

	*out = (struct variables){0};
	for (; env; out->n++) {
		if (out->n == ARGUMENTS_MAX || !memory_readable(&array, env + out->n, sizeof(*env)))
			return false;
		if (!env[out->n])
			break;
		if (!memory_readable(&text, env[out->n], 1))
			return false;
		if (text_begins(&text, env[out->n], RING_ENV_DIR "=")) {
			out->own = true;
		} else if (!out->preload && text_begins(&text, env[out->n], PRELOAD)) {
			out->preload = env[out->n] + sizeof(PRELOAD) - 1;
			if (!text_readable(&text, out->preload, PRELOAD_MOST,
					   &out->preload_bytes) ||
			    out->preload_bytes == PRELOAD_MOST)
				return false;
		}
	}
	return true;
}

/* The value with the recorder in it: before others, but for libraries of sanitizers. */
static void put_preload(char *to, const struct variables *v, const char *add)
{
	size_t n = v->preload_bytes, m = strlen(add);
	bool there = n && strstr(v->preload, add), last = n && strstr(v->preload, RING_SANITIZER);

	memcpy(to, PRELOAD, sizeof(PRELOAD) - 1);
	to += sizeof(PRELOAD) - 1;
	if (!there && !last) {
		memcpy(to, add, m);
		to += m;
		if (n)
			*to++ = ':';
	}
	memcpy(to, n ? v->preload : "", n);
	to += n;
	if (!there && last) {
		*to++ = ':';
		memcpy(to, add, m);
		to += m;
	}
	*to = '\0';
}

/* What the program gets: `env`, or where that lacks what the recorder needs, one that has it.
 * Behind a filter of calls, one that has it not: the recorder would begin with calls of its own. */
static char *const *environment(char *const *env)
{
	bool filtered = process_is_filtered();
	struct probe k = {.trusted = filtered};
	struct variables v;
	const char *const *add;
	size_t n = process_variables(&add), to = 0;
	char **out;

	if (n == 0 || !look_at_variables(env, &v) ||
	    (filtered ? !v.own : v.own && v.preload && strstr(v.preload, add[0])))
		return env;
	out = (char **)(void *)exec_room((v.n + 8) * sizeof(*out) + sizeof(PRELOAD) +
					 v.preload_bytes + strlen(add[0]) + 2);
	if (!out)
		return env;
	for (size_t i = 0; i < v.n; i++)
		if (!text_begins(&k, env[i], OWN) &&
		    (filtered || !text_begins(&k, env[i], PRELOAD)))
			out[to++] = env[i];
	for (size_t i = 1; i < n && !filtered; i++)
		out[to++] = (char *)(uintptr_t)add[i];
	if (!filtered) {
		out[to++] = (char *)(out + v.n + 8);
		put_preload(out[to - 1], &v, add[0]);
	}
	out[to] = NULL;
	return out;
}

/* Whether the program runs under the recorder at all, also as a child of vfork. */
static bool recorded(void)
{
	return recording() || process_is_vforked();
}

/* All is noted: the program's memory ends if the call succeeds. */
static void before_exec(void)
{
	if (process_is_vforked())
		return;
	maps_end();
	process_ends(0);
}

static void exec_failed(int error)
{
	note(RING_EXEC_FAILED, now_ns(), N(process_id()), N(error));
}

static int exec_at(int dirfd, const char *path, char *const argv[], char *const *env, int flags)
{
	long r;
	bool noted = recorded();

	if (noted) {
		env = environment(env);
		executes(dirfd, path, process_id());
		before_exec();
	}
	r = kernel6(SYS_execveat, dirfd, (long)path, (long)argv, (long)env, flags, 0);
	if (noted)
		exec_failed((int)-r);
	errno = (int)-r;
	return -1;
}

WRAP int execve(const char *path, char *const argv[], char *const envp[])
{
	REAL(int, execve, const char *, char *const[], char *const[]);
	char *const *env = envp;
	int r;

	if (!recorded())
		return real(path, argv, envp);
	env = environment(env);
	executes(AT_FDCWD, path, process_id());
	before_exec();
	r = real(path, argv, env);
	KEEP_ERRNO(exec_failed(errno));
	return r;
}

WRAP int execveat(int dirfd, const char *path, char *const argv[], char *const envp[], int flags)
{
	return exec_at(dirfd, path, argv, envp, flags);
}

WRAP int fexecve(int fd, char *const argv[], char *const envp[])
{
	if (fd < 0 || !argv || !envp) {
		errno = EINVAL;
		return -1;
	}
	return exec_at(fd, "", argv, envp, AT_EMPTY_PATH);
}

WRAP int execvpe(const char *file, char *const argv[], char *const envp[])
{
	REAL(int, execvpe, const char *, char *const[], char *const[]);
	char *const *env = envp;
	int r;

	if (!recorded())
		return real(file, argv, envp);
	env = environment(env);
	executes_found(file, process_id());
	before_exec();
	r = real(file, argv, env);
	KEEP_ERRNO(exec_failed(errno));
	return r;
}

WRAP int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

WRAP int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

#define LIST_OF_ARGUMENTS(last)                                                                    \
	va_list ap, again;                                                                         \
	size_t n = 1;                                                                              \
	char **argv;                                                                               \
	va_start(ap, first);                                                                       \
	va_copy(again, ap);                                                                        \
	while (first && va_arg(again, const char *))                                               \
		n++;                                                                               \
	va_end(again);                                                                             \
	argv = alloca((n + 1) * sizeof(*argv));                                                    \
	argv[0] = (char *)(uintptr_t)first;                                                        \
	for (size_t i = 1; first && i <= n; i++)                                                   \
		argv[i] = va_arg(ap, char *);                                                      \
	last va_end(ap);

WRAP int execl(const char *path, const char *first, ...)
{
	LIST_OF_ARGUMENTS()
	return execve(path, argv, environ);
}

WRAP int execlp(const char *file, const char *first, ...)
{
	LIST_OF_ARGUMENTS()
	return execvpe(file, argv, environ);
}

WRAP int execle(const char *path, const char *first, ...)
{
	char *const *env;

	LIST_OF_ARGUMENTS(env = va_arg(ap, char *const *);)
	return execve(path, argv, env);
}

/* ---- children ---- */

static void forked(int64_t begin, int64_t pid)
{
	if (pid == 0) {
		process_forked();
		return;
	}
	note(RING_FORK, begin, pid);
	fd_doubt();
}

#define FORK(name) WRAP_CALL(pid_t, name, (void), (void), (), , forked(begin, RESULT))
FORK(fork)
FORK(__fork)
FORK(_Fork)

/* As libc's, whose fork and exit cannot be seen. */
WRAP int daemon(int stays, int keeps)
{
	int fd;

	switch (fork()) {
	case -1:
		return -1;
	case 0:
		break;
	default:
		_exit(0);
	}
	if (setsid() < 0)
		return -1;
	if (!stays)
		(void)!chdir("/");
	if (keeps)
		return 0;
	fd = open("/dev/null", O_RDWR);
	if (fd < 0)
		return -1;
	for (int i = 0; i < 3; i++)
		(void)dup2(fd, i);
	if (fd > 2)
		close(fd);
	return 0;
}

/* vfork(2) returns twice from one frame, so nothing of ours can be between it and its caller. */
__attribute__((used)) static void *before_vfork(void)
{
	static void *slot;

	process_vforks();
	fd_doubt();
	return real_of(&slot, "vfork");
}

#if defined(__x86_64__)
__asm__(".text\n.globl vfork\n.type vfork, @function\nvfork:\n"
	"	.cfi_startproc\n"
	"	sub $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call before_vfork\n"
	"	add $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	jmp *%rax\n"
	"	.cfi_endproc\n"
	".size vfork, . - vfork\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl vfork\n.type vfork, %function\nvfork:\n"
	"	stp x29, x30, [sp, -16]!\n"
	"	bl before_vfork\n"
	"	ldp x29, x30, [sp], 16\n"
	"	br x0\n"
	".size vfork, . - vfork\n");
#endif

#define SPAWN(name, executes_it)                                                                   \
	WRAP int name(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,     \
		      const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) \
	{                                                                                          \
		REAL(int, name, pid_t *, const char *, const posix_spawn_file_actions_t *,         \
		     const posix_spawnattr_t *, char *const[], char *const[]);                     \
		int64_t begin;                                                                     \
		pid_t child = 0;                                                                   \
		int r;                                                                             \
		if (!recording())                                                                  \
			return real(pid, path, actions, attributes, argv, envp);                   \
		begin = now_ns();                                                                  \
		r = real(&child, path, actions, attributes, argv,                                  \
			 environment(envp ? envp : environ));                                      \
		if (r == 0) {                                                                      \
			if (pid)                                                                   \
				*pid = child;                                                      \
			KEEP_ERRNO(note(RING_FORK, begin, N(child)); executes_it; fd_doubt());     \
		}                                                                                  \
		return r;                                                                          \
	}
SPAWN(posix_spawn, executes(AT_FDCWD, path, child))
SPAWN(posix_spawnp, executes_found(path, child))

/* clone(2) of libc: what it makes begins with a function. */
WRAP int clone(int (*run)(void *), void *stack, int flags, void *arg, ...)
{
	REAL(int, clone, int (*)(void *), void *, int, void *, ...);
	va_list ap;
	void *parent, *tls, *child;
	int64_t begin;
	int r;

	va_start(ap, arg);
	parent = va_arg(ap, void *);
	tls = va_arg(ap, void *);
	child = va_arg(ap, void *);
	va_end(ap);
	if (!recording())
		return real(run, stack, flags, arg, parent, tls, child);
	/* CLONE_VM and CLONE_VFORK: as vfork(2) */
	if (flags & 0x100 && flags & 0x4000)
		process_vforks();
	begin = now_ns();
	r = real(run, stack, flags, arg, parent, tls, child);
	if (!(flags & 0x10000 /* CLONE_THREAD */))
		KEEP_ERRNO(forked(begin, r < 0 ? -errno : r));
	return r;
}

/* ---- filters of calls ---- */

/* Before a call that filters those to come; whether there was one before. Strict filters take the
 * clock, too, which is read without a call. */
bool wrap_filters(long nr, const long *a, bool *was)
{
	bool clock = (nr == SYS_prctl && a[0] == PR_SET_SECCOMP && a[1] == SECCOMP_MODE_STRICT) ||
		     (nr == SYS_prctl && a[0] == PR_SET_TSC && a[1] == PR_TSC_SIGSEGV) ||
		     (nr == SYS_seccomp && a[0] == SECCOMP_SET_MODE_STRICT);

	if (!clock && !(nr == SYS_prctl && a[0] == PR_SET_SECCOMP) &&
	    !(nr == SYS_seccomp && a[0] == SECCOMP_SET_MODE_FILTER))
		return false;
	*was = process_filtered(clock);
	return true;
}

WRAP int prctl(int what, ...)
{
	REAL(int, prctl, int, ...);
	bool filters, was = false;
	long a[5] = {what};
	va_list ap;
	int r;

	va_start(ap, what);
	for (int i = 1; i < 5; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	filters = (what == PR_SET_SECCOMP || what == PR_SET_TSC) && recording() &&
		  wrap_filters(SYS_prctl, a, &was);
	r = real(what, a[1], a[2], a[3], a[4]);
	if (filters && r < 0)
		KEEP_ERRNO(process_unfiltered(was));
	return r;
}

/* ---- the end ---- */

/* Without what exit(3) does: buffers of streams are lost. */
void wrap_leaving(int status)
{
	if (!recording())
		return;
	note(RING_EXIT, now_ns(), N(status & 0xff));
	maps_end();
	process_ends(0);
}

/* Libraries come by calls of the dynamic loader, which nothing here sees. */
static int note_library(struct dl_phdr_info *v, size_t size, void *of)
{
	static const char *const parts[] = {"/libtorch_cpu.so",    "/libtensorflow_framework.so",
					    "/_pywrap_tensorflow", "/jaxlib/",
					    "/nvidia/dali/",       "/libmxnet.so"};
	unsigned *noted = of;

	(void)size;
	for (unsigned i = 0; v->dlpi_name && i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!(*noted & 1u << i) && strstr(v->dlpi_name, parts[i])) {
			*noted |= 1u << i;
			note(RING_FACT, now_ns(), (uint64_t)RING_LIBRARY, parts[i]);
		}
	return 0;
}

/* exit(3), after functions of atexit(3) and destructors of what was loaded after this library. */
static __attribute__((destructor(101))) void unloaded(void)
{
	unsigned noted = 0;

	if (!recording() || process_is_vforked())
		return;
	dl_iterate_phdr(note_library, &noted);
	maps_end();
	process_ends(stdio_end());
}

#define LEAVE(name, before)                                                                        \
	WRAP _Noreturn void name(int status)                                                       \
	{                                                                                          \
		REAL(void, name, int);                                                             \
		before;                                                                            \
		real(status);                                                                      \
		__builtin_unreachable();                                                           \
	}
LEAVE(_exit, wrap_leaving(status))
LEAVE(_Exit, wrap_leaving(status))
LEAVE(quick_exit, wrap_leaving(status))
/* the atexit(3) functions run next, then this library's destructor */
LEAVE(exit, if (recording()) note(RING_EXIT, now_ns(), N(status & 0xff)))

static void waited(int64_t begin, int64_t pid, int status)
{
	note(RING_WAIT, begin, pid,
	     WIFSIGNALED(status) ? N(-WTERMSIG(status)) : N(WEXITSTATUS(status)));
	fd_doubt();
}

#define WAIT(name, type, params, args)                                                             \
	WRAP_CALL(pid_t, name, type, params, args, int mine = 0;                                   \
		  status = status ? status : &mine,                                                \
		  if (r != 0) waited(begin, RESULT, r > 0 ? *status : 0))
WAIT(wait, (int *), (int *status), (status))
WAIT(waitpid, (pid_t, int *, int), (pid_t pid, int *status, int how), (pid, status, how))
WAIT(wait3, (int *, int, struct rusage *), (int *status, int how, struct rusage *use),
     (status, how, use))
WAIT(wait4, (pid_t, int *, int, struct rusage *),
     (pid_t pid, int *status, int how, struct rusage *use), (pid, status, how, use))

static void waited_for(int64_t begin, const siginfo_t *info, int how)
{
	if (!info || !info->si_pid || how & WNOWAIT)
		return;
	note(RING_WAIT, begin, N(info->si_pid),
	     info->si_code == CLD_EXITED ? N(info->si_status) : N(-info->si_status));
	fd_doubt();
}

WRAP_CALL(int, waitid, (idtype_t, id_t, siginfo_t *, int),
	  (idtype_t type, id_t id, siginfo_t *info, int how), (type, id, info, how), ,
	  if (r == 0) waited_for(begin, info, how))

WRAP_CALL(int, system, (const char *), (const char *command), (command), ,
	  waited(begin, r < 0 ? -errno : 0, r < 0 ? 0 : r))
