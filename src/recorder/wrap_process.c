/* Processes: fork, exec, exit, wait. */
#include "recorder/wrap.h"

#include <alloca.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 65536

/* ---- what is executed ---- */

/* Reads the beginning of the file: what exec(2) will do, too. */
enum ring_image image_of(int dirfd, const char *path)
{
	char head[IMAGE_HEAD] __attribute__((aligned(8))), name[256];
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
		n = raw(SYS_read, fd, head, sizeof(head));
		raw(SYS_close, fd);
		if (!process_is_vforked())
			note_counted(n > 0 ? n : 0, 0);
		image = ring_image_of(head, n, name, sizeof(name));
		if (!*name)
			return image;
		path = name;
		dirfd = AT_FDCWD;
	}
	return image;
}

/* The program that a name without a slash leads to. */
static const char *search(const char *file, char *out, size_t size)
{
	const char *path = getenv("PATH"), *next;
	size_t n = strlen(file);

	if (strchr(file, '/') || !path)
		return file;
	for (; path; path = next) {
		const char *colon = strchr(path, ':');
		size_t m = colon ? (size_t)(colon - path) : strlen(path);

		next = colon ? colon + 1 : NULL;
		if (m == 0 || m + n + 2 > size)
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

	path = wrap_name(path, -EFAULT);
	(void)at_base(dirfd, path, &base);
	note(RING_EXEC, now_ns(), pid, base ? FD_SERIAL(base) + 1 : 0, path, N(image));
}

/* ---- the environment of what is executed ---- */

#define PRELOAD "LD_PRELOAD="

static size_t count_of(char *const *v)
{
	size_t n = 0;

	while (v && v[n] && n < ARGUMENTS_MAX)
		n++;
	return n;
}

static const char *value_in(char *const *env, const char *name_is)
{
	size_t n = strlen(name_is);

	for (size_t i = 0; env && env[i]; i++)
		if (strncmp(env[i], name_is, n) == 0)
			return env[i] + n;
	return NULL;
}

/* Bytes that environment() needs for the new LD_PRELOAD; 0: all is there already. */
static size_t preload_bytes(char *const *env)
{
	const char *const *add, *now;

	if (process_variables(&add) == 0)
		return 0;
	now = value_in(env, PRELOAD);
	if (now && strstr(now, add[0]) && value_in(env, RING_ENV_DIR "="))
		return 0;
	return sizeof(PRELOAD) + strlen(add[0]) + 1 + (now ? strlen(now) : 0) + 1;
}

static void environment(char *const *env, char **out, char *preload)
{
	const char *const *add, *now = value_in(env, PRELOAD);
	size_t n = process_variables(&add), to = 0, m = strlen(add[0]), k = sizeof(PRELOAD) - 1;

	memcpy(preload, PRELOAD, k);
	if (now && strstr(now, add[0])) {
		memcpy(preload + k, now, strlen(now) + 1);
	} else if (now && strstr(now, RING_SANITIZER)) {
		size_t before = strlen(now);

		memcpy(preload + k, now, before);
		preload[k + before] = ':';
		memcpy(preload + k + before + 1, add[0], m + 1);
	} else {
		memcpy(preload + k, add[0], m + 1);
		if (now && *now) {
			preload[k + m] = ':';
			memcpy(preload + k + m + 1, now, strlen(now) + 1);
		}
	}
	out[to++] = preload;
	for (size_t i = 0; i < count_of(env); i++)
		if (strncmp(env[i], PRELOAD, k) != 0 && strncmp(env[i], "STOKER_RECORD_", 14) != 0)
			out[to++] = env[i];
	for (size_t i = 1; i < n; i++)
		out[to++] = (char *)(uintptr_t)add[i];
	out[to] = NULL;
}

#define WITH_ENVIRONMENT(env)                                                                      \
	size_t need = preload_bytes(env);                                                          \
	if (need) {                                                                                \
		char **with = alloca((count_of(env) + 8) * sizeof(*with));                         \
		char *preload = alloca(need);                                                      \
		environment(env, with, preload);                                                   \
		env = with;                                                                        \
	}

/* Whether the program runs under the recorder at all, also as a child of vfork. */
static bool recorded(void)
{
	return recording() || process_is_vforked();
}

static void before_exec(int dirfd, const char *path)
{
	executes(dirfd, path, raw(SYS_getpid));
	if (process_is_vforked())
		return;
	maps_end();
	process_ends(0);
}

static void exec_failed(int error)
{
	note(RING_EXEC_FAILED, now_ns(), N(raw(SYS_getpid)), N(error));
}

static int exec_at(int dirfd, const char *path, char *const argv[], char *const *env, int flags)
{
	static void *slot;
	int (*real)(int, const char *, char *const[], char *const[], int) =
		(int (*)(int, const char *, char *const[], char *const[], int))real_of(&slot,
										       "execveat");
	long r;

	(void)real;
	if (recorded()) {
		WITH_ENVIRONMENT(env)
		before_exec(dirfd, path);
		r = raw(SYS_execveat, dirfd, path, argv, env, flags);
		exec_failed((int)-r);
	} else {
		r = raw(SYS_execveat, dirfd, path, argv, env, flags);
	}
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
	{
		WITH_ENVIRONMENT(env)
		before_exec(AT_FDCWD, path);
		r = real(path, argv, env);
	}
	KEEP_ERRNO(exec_failed(errno));
	return r;
}

WRAP int execveat(int dirfd, const char *path, char *const argv[], char *const envp[], int flags)
{
	return exec_at(dirfd, path, argv, envp, flags);
}

WRAP int fexecve(int fd, char *const argv[], char *const envp[])
{
	return exec_at(fd, "", argv, envp, AT_EMPTY_PATH);
}

WRAP int execvpe(const char *file, char *const argv[], char *const envp[])
{
	REAL(int, execvpe, const char *, char *const[], char *const[]);
	char *const *env = envp;
	char found[4096];
	int r;

	if (!recorded())
		return real(file, argv, envp);
	{
		WITH_ENVIRONMENT(env)
		before_exec(AT_FDCWD, search(file, found, sizeof(found)));
		r = real(file, argv, env);
	}
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

#define SPAWN(name, found_of)                                                                      \
	WRAP int name(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,     \
		      const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) \
	{                                                                                          \
		REAL(int, name, pid_t *, const char *, const posix_spawn_file_actions_t *,         \
		     const posix_spawnattr_t *, char *const[], char *const[]);                     \
		char *const *env = envp ? envp : environ;                                          \
		char found[4096];                                                                  \
		int64_t begin;                                                                     \
		pid_t child = 0;                                                                   \
		int r;                                                                             \
		if (!recording())                                                                  \
			return real(pid, path, actions, attributes, argv, envp);                   \
		WITH_ENVIRONMENT(env)                                                              \
		begin = now_ns();                                                                  \
		r = real(&child, path, actions, attributes, argv, env);                            \
		if (r == 0) {                                                                      \
			if (pid)                                                                   \
				*pid = child;                                                      \
			KEEP_ERRNO(note(RING_FORK, begin, N(child));                               \
				   executes(AT_FDCWD, found_of, child); fd_doubt());               \
		}                                                                                  \
		(void)found;                                                                       \
		return r;                                                                          \
	}
SPAWN(posix_spawn, path)
SPAWN(posix_spawnp, search(path, found, sizeof(found)))

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
	WRAP_CALL(pid_t, name, type, params, args, int mine = 0; int *given = status;              \
		  status = &mine, if (given && r > 0) *given = mine;                               \
		  if (r != 0) waited(begin, RESULT, mine))
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
