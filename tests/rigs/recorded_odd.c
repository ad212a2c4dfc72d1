/* recorded_odd MODE FILE [FOLDER]: what must be as without a recorder. FILE has 64 KiB. Each mode
 * ends with status 0, and prints nothing but what it says. */
#include <aio.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define MUST(call)                                                                                 \
	do {                                                                                       \
		if (!(call)) {                                                                     \
			perror(#call);                                                             \
			exit(9);                                                                   \
		}                                                                                  \
	} while (0)
#define FAULTS(call, error) MUST((call) == -1 && errno == (error))

static const char *file;
static char data[4096];

/* ---- pointers that lead nowhere ---- */

static void pointers(void)
{
	static char *volatile nowhere = (char *)1;
	char *bad = nowhere, *arguments[] = {data, NULL}, *variables[] = {"A=b", bad, NULL}, *end;
	char **all = (char **)(void *)bad;
	struct aiocb *const *list = (void *)bad;
	int status;
	pid_t pid;

	/* names and lists that end where memory does */
	end = mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(end != MAP_FAILED && munmap(end + 8192, 4096) == 0);
	memset(end, 'a', 8192);
	FAULTS(open(end, O_RDONLY), ENAMETOOLONG);
	FAULTS(open(end + 8190, O_RDONLY), EFAULT);
	FAULTS(rename(file, end + 4000), ENAMETOOLONG);
	FAULTS(execve(bad, arguments, environ), EFAULT);
	FAULTS(execve(end + 8190, arguments, environ), EFAULT);
	FAULTS(execve("/bin/true", all, environ), EFAULT);
	FAULTS(execve("/bin/true", arguments, all), EFAULT);
	FAULTS(execve("/bin/true", arguments, variables), EFAULT);
	variables[1] = end + 8180;
	FAULTS(execve("/bin/true", arguments, variables), EFAULT);
	memcpy(end + 8192 - 14, "LD_PRELOAD=/no", 14);
	variables[1] = end + 8192 - 14;
	FAULTS(execve("/bin/true", arguments, variables), EFAULT);
	memcpy(end + 8192 - 8, &arguments[0], 8);
	FAULTS(execve("/bin/true", arguments, (char **)(void *)(end + 8192 - 8)), EFAULT);
	FAULTS(execveat(AT_FDCWD, bad, arguments, all, 0), EFAULT);
	FAULTS(fexecve(-1, arguments, all), EINVAL);
	FAULTS(fexecve(open("/bin/true", O_RDONLY), arguments, all), EFAULT);
	FAULTS(syscall(SYS_execve, "/bin/true", arguments, bad), EFAULT);
	MUST(posix_spawn(&pid, bad, NULL, NULL, arguments, environ) == EFAULT);
	MUST(posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, all) == EFAULT);
	FAULTS(linkat(-1, bad, -1, bad, 0x4000), EINVAL);
	MUST(linkat(-1, bad, -1, bad, AT_EMPTY_PATH) == -1);
	FAULTS(syscall(SYS_io_submit, 0L, 3L, bad), EINVAL);
	FAULTS(syscall(SYS_io_submit, 0L, 1L << 40, bad), EINVAL);
	FAULTS(syscall(SYS_io_getevents, 0L, 1L, 1L, bad, NULL), EINVAL);
	FAULTS(aio_fsync(99, (void *)bad), EINVAL);
	FAULTS(aio_cancel(-1, (void *)bad), EBADF);
	FAULTS(lio_listio(99, list, 2, NULL), EINVAL);
	FAULTS(closedir(NULL), EINVAL);
	FAULTS(pipe((int *)(void *)bad), EFAULT);
	FAULTS(chdir(NULL), EFAULT);
	FAULTS(prctl(PR_GET_NAME, bad), EFAULT);
	FAULTS(sigaction(999, NULL, NULL), EINVAL);
	MUST((pid = fork()) >= 0);
	if (pid == 0)
		_exit(3);
	FAULTS(wait4(pid, (int *)(void *)bad, 0, NULL), EFAULT);
	MUST((pid = fork()) >= 0);
	if (pid == 0)
		_exit(3);
	MUST(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 3);
}

/* ---- filters of calls ---- */

static void reads(int n)
{
	int fd = open(file, O_RDONLY);

	MUST(fd >= 0);
	while (n-- > 0)
		MUST(read(fd, data, 100) >= 0);
	MUST(close(fd) == 0);
}

/* All calls but those in the list end the process. */
static void filter(const int *calls, size_t n, bool by_prctl)
{
	struct sock_filter code[40] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
	struct sock_fprog program = {.filter = code};
	size_t to = 1;

	for (size_t i = 0; i < n; i++) {
		code[to++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							  (unsigned)calls[i], 0, 1);
		code[to++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	code[to++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	program.len = (unsigned short)to;
	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	if (by_prctl)
		MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
	else
		MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
}

static void *reads_in_thread(void *unused)
{
	reads(100);
	return unused;
}

static const int few[] = {SYS_read,       SYS_write, SYS_openat, SYS_close,
			  SYS_exit_group, SYS_exit,  SYS_futex};

static void filtered(void)
{
	static const int more[] = {
		SYS_read,  SYS_write, SYS_openat, SYS_close,           SYS_exit_group,
		SYS_clone, SYS_wait4, SYS_gettid, SYS_set_robust_list, SYS_rseq};
	pthread_t before;
	int status;
	pid_t pid;

	reads(50);
	MUST((pid = fork()) >= 0);
	if (pid == 0) {
		filter(few, sizeof(few) / sizeof(few[0]), true);
		reads(5000);
		_exit(7);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 7 << 8);
	MUST((pid = fork()) >= 0);
	if (pid == 0) {
		filter(more, sizeof(more) / sizeof(more[0]), false);
		MUST((pid = fork()) >= 0);
		reads(20);
		if (pid == 0)
			_exit(5);
		MUST(waitpid(pid, &status, 0) == pid && status == 5 << 8);
		_exit(6);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 6 << 8);
	/* a refused one changes nothing */
	FAULTS(prctl(PR_SET_SECCOMP, 77, NULL), EINVAL);
	MUST(pthread_create(&before, NULL, reads_in_thread, NULL) == 0 &&
	     pthread_join(before, NULL) == 0);
}

/* A program that is executed behind a filter: what the recorder begins with is not allowed. */
static void filtered_exec(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_statx, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
	execl("/bin/echo", "echo", "behind", NULL);
	exit(9);
}

static void strict(void)
{
	int fd = open(file, O_RDONLY);

	MUST(fd >= 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
	for (int i = 0; i < 5000; i++)
		if (read(fd, data, 4) != 4)
			syscall(SYS_exit, 9);
	syscall(SYS_exit, 0);
}

/* ---- small stacks ---- */

#define STACK ((size_t)65536)

static char *stack;
static ucontext_t back, there;
static void (*work)(void);

static void work_there(void)
{
	work();
}

/* Bytes of the stack that the function needs. */
static size_t depth_of(void (*function)(void))
{
	size_t n = 0;

	memset(stack, 0x5a, STACK);
	MUST(getcontext(&there) == 0);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = STACK;
	there.uc_link = &back;
	work = function;
	makecontext(&there, work_there, 0);
	MUST(swapcontext(&back, &there) == 0);
	while (n < STACK && stack[n] == 0x5a)
		n++;
	return STACK - n;
}

static void opens(void)
{
	int fd = open(file, O_RDONLY);

	MUST(fd >= 0 && read(fd, data, 10) == 10 && close(fd) == 0);
	fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDONLY);
	MUST(fd >= 0 && lseek(fd, 5, SEEK_SET) == 5 && close(fd) == 0);
}

static void names(void)
{
	struct stat st;

	MUST(stat(file, &st) == 0 && access(file, R_OK) == 0);
	FAULTS(rename("/no/such/a.npz", "/no/such/b.npz"), ENOENT);
	FAULTS(link("/no/such/a", "/no/such/b"), ENOENT);
	FAULTS(unlink("/no/such/a"), ENOENT);
	FAULTS(mkdir("/no/such/a", 0700), ENOENT);
}

static void finds(void)
{
	/* a descriptor that no call of libc made */
	int fd = open("/proc/self/fd/0", O_RDONLY), other = memfd_create("m", 0);

	MUST(other >= 0 && write(other, data, 10) == 10 && close(other) == 0);
	if (fd >= 0)
		close(fd);
	MUST(chdir("/") == 0);
}

static void maps(void)
{
	int fd = open(file, O_RDONLY);
	void *p = mmap(NULL, 65536, PROT_READ, MAP_SHARED, fd, 0);

	MUST(p != MAP_FAILED && munmap(p, 65536) == 0 && close(fd) == 0);
}

static void executes(void)
{
	char *arguments[] = {"none", NULL};

	FAULTS(execve("/no/such/program", arguments, environ), ENOENT);
	execv(file, arguments);
}

static void forks(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		reads(1);
		_exit(0);
	}
	MUST(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

/* Prints what each needs; twice, as the first call of each finds the function. */
static void depths(void)
{
	static void (*const functions[])(void) = {opens, names, finds, maps, executes, forks};

	stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(stack != MAP_FAILED);
	for (size_t i = 0; i < 2 * sizeof(functions) / sizeof(functions[0]); i++)
		printf("%zu\n", depth_of(functions[i / 2]));
}

static void on_signal(int sig)
{
	(void)sig;
	opens();
	names();
	finds();
	maps();
	executes();
	forks();
}

static void *minimal(void *unused)
{
	on_signal(0);
	return unused;
}

static void small_stacks(void)
{
	static const size_t sizes[] = {8192, 12288};
	pthread_attr_t a;
	pthread_t t;

	MUST(pthread_attr_init(&a) == 0 && pthread_attr_setstacksize(&a, 16384) == 0);
	MUST(pthread_create(&t, &a, minimal, NULL) == 0 && pthread_join(t, NULL) == 0);
	for (size_t i = 0; i < 2; i++) {
		struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
		stack_t s = {.ss_size = sizes[i]};
		char *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		MUST(p != MAP_FAILED && mprotect(p, 32768, PROT_NONE) == 0);
		s.ss_sp = p + 32768;
		MUST(sigaltstack(&s, NULL) == 0 && sigaction(SIGUSR1, &act, NULL) == 0);
		MUST(raise(SIGUSR1) == 0);
	}
}

/* ---- files of the recording that others cut ---- */

static const char *folder;
static pthread_barrier_t together;

static void cut_all(void)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	char path[4352];

	MUST(d);
	while ((e = readdir(d))) {
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		if (strstr(e->d_name, ".ring") || strstr(e->d_name, "control-"))
			MUST(truncate(path, 0) == 0);
	}
	closedir(d);
}

static void *goes_on(void *blocks)
{
	sigset_t all;

	if (blocks) {
		/* as many libraries have their threads */
		sigfillset(&all);
		MUST(pthread_sigmask(SIG_BLOCK, &all, NULL) == 0);
	}
	reads(20);
	pthread_barrier_wait(&together);
	pthread_barrier_wait(&together);
	for (int i = 0; i < 20; i++)
		reads(500);
	return NULL;
}

static void cut(void)
{
	pthread_t t[2];

	MUST(pthread_barrier_init(&together, NULL, 3) == 0);
	for (int i = 0; i < 2; i++)
		MUST(pthread_create(&t[i], NULL, goes_on, i ? data : NULL) == 0);
	reads(20);
	pthread_barrier_wait(&together);
	cut_all();
	pthread_barrier_wait(&together);
	for (int i = 0; i < 20; i++)
		reads(500);
	for (int i = 0; i < 2; i++)
		MUST(pthread_join(t[i], NULL) == 0);
	forks();
}

/* The signal of such pages is the program's own, too. */
static volatile sig_atomic_t buses;
static char *page;

static void on_bus(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	buses++;
	if (info->si_code > 0 && mmap(page, 4096, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		_exit(9);
}

static void own_bus(void)
{
	struct sigaction act = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_RESETHAND}, old;
	int fd = memfd_create("m", 0), status;
	pid_t pid;

	MUST(sigaction(SIGBUS, NULL, &old) == 0 && old.sa_handler == SIG_DFL && !old.sa_flags);
	MUST(signal(SIGBUS, SIG_IGN) == SIG_DFL && signal(SIGBUS, SIG_DFL) == SIG_IGN);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(page != MAP_FAILED && (pid = fork()) >= 0);
	if (pid == 0) {
		*(volatile char *)page = 1;
		_exit(9);
	}
	MUST(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	MUST((pid = fork()) >= 0);
	if (pid == 0) {
		raise(SIGBUS);
		_exit(9);
	}
	MUST(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	MUST(sigaction(SIGBUS, &act, NULL) == 0 && sigaction(SIGBUS, NULL, &old) == 0);
	MUST(old.sa_sigaction == on_bus && old.sa_flags & SA_SIGINFO);
	*(volatile char *)page = 1;
	MUST(buses == 1 && sigaction(SIGBUS, NULL, &old) == 0 && old.sa_handler == SIG_DFL);
	act.sa_flags = SA_SIGINFO;
	MUST(sigaction(SIGBUS, &act, NULL) == 0 && raise(SIGBUS) == 0 && buses == 2);
	if (folder) {
		cut_all();
		reads(600);
		MUST(raise(SIGBUS) == 0 && buses == 3);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = {
		{"pointers", pointers}, {"filtered", filtered}, {"filtered_exec", filtered_exec},
		{"strict", strict},     {"depths", depths},     {"small_stacks", small_stacks},
		{"cut", cut},           {"own_bus", own_bus},
	};

	file = argc > 2 ? argv[2] : "";
	folder = argc > 3 ? argv[3] : NULL;
	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(modes[i].name, argv[1]) == 0) {
			modes[i].run();
			return 0;
		}
	return 8;
}
