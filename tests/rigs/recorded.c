/* recorded MODE FILE [N]: what a recorder must see, by many ways of asking for it. FILE has 64 KiB.
 * Prints nothing but what a mode says. */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char data[65536];

#define MUST(call)                                                                                 \
	do {                                                                                       \
		if (!(call)) {                                                                     \
			perror(#call);                                                             \
			exit(9);                                                                   \
		}                                                                                  \
	} while (0)

/* Each request has a size of its own. */
static void variants(const char *file)
{
	int fd = open(file, O_RDONLY), copy, out, pair[2], ends[2];
	struct iovec v[2] = {{data, 100}, {data + 100, 11}};
	struct stat st;
	struct statx sx;
	off_t at = 300;
	loff_t in = 1000;
	char name[4096];
	FILE *f;

	MUST(fd >= 0 && fstat(fd, &st) == 0 && stat(file, &st) == 0 && lstat(file, &st) == 0);
	MUST(statx(AT_FDCWD, file, 0, STATX_SIZE, &sx) == 0 && access(file, R_OK) == 0);
	MUST(read(fd, data, 101) == 101);
	MUST(readv(fd, v, 2) == 111);
	MUST(pread(fd, data, 103, 7) == 103);
	MUST(preadv(fd, v, 2, 9000) == 111);
	MUST(preadv2(fd, v, 1, 9500, 0) == 100);
	MUST(preadv2(fd, v, 1, -1, 0) == 100);
	MUST(syscall(SYS_read, fd, data, 104) == 104);
	MUST(syscall(SYS_pread64, fd, data, 105, 8L) == 105);
	/* how programs ask whether the kernel has the call */
	MUST(syscall(SYS_openat2, -1, NULL, NULL, 0L) == -1);
	copy = dup(fd);
	MUST(copy >= 0 && read(copy, data, 106) == 106);
	MUST(dup2(fd, 77) == 77 && read(77, data, 107) == 107);
	MUST(fcntl(fd, F_DUPFD_CLOEXEC, 90) == 90 && read(90, data, 108) == 108);
	MUST(lseek(fd, 5000, SEEK_SET) == 5000 && read(fd, data, 109) == 109);
	MUST(pread(fd, data, 1000, 65530) == 6); /* short */
	MUST(read(fd, data, 0) == 0);
	MUST(pread(-1, data, 1, 0) == -1 && errno == EBADF);
	snprintf(name, sizeof(name), "%s.out", file);
	out = open(name, O_CREAT | O_RDWR | O_TRUNC, 0600);
	MUST(out >= 0 && write(out, data, 201) == 201 && writev(out, v, 2) == 111);
	MUST(pwrite(out, data, 202, 400) == 202 && pwritev(out, v, 2, 700) == 111);
	MUST(sendfile(out, fd, &at, 203) == 203);
	MUST(copy_file_range(fd, &in, out, NULL, 204, 0) == 204);
	MUST(fsync(out) == 0 && fdatasync(out) == 0 && ftruncate(out, 2000) == 0);
	MUST(posix_fadvise(fd, 0, 4096, POSIX_FADV_WILLNEED) == 0);
	close(out);
	out = open(name, O_WRONLY | O_APPEND);
	MUST(write(out, data, 205) == 205); /* at 2000 */
	close(out);
	f = fopen(file, "r");
	MUST(f && fread(data, 1, 301, f) == 301 &&
	     fread(data, 1, 302, f) == 302); /* 4096 in one request */
	MUST(fseek(f, 20000, SEEK_SET) == 0 && fgetc(f) != EOF && fgets(data, 50, f));
	fclose(f);
	f = fopen(name, "w");
	MUST(f && fprintf(f, "%d bytes\n", 7) == 8 && fputs("x\n", f) >= 0 &&
	     fwrite(data, 1, 401, f) == 401);
	fclose(f);
	MUST(pipe(pair) == 0 && write(pair[1], data, 501) == 501 &&
	     read(pair[0], data, 600) == 501);
	close(pair[0]);
	/* the number of a closed file now leads to a socket */
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && send(ends[0], data, 502, 0) == 502);
	MUST(recv(ends[1], data, 700, 0) == 502);
	strcat(name, ".new");
	MUST(mkdir(name, 0700) == 0 && rmdir(name) == 0);
	close(fd);
	snprintf(data, sizeof(data), "%s.out", file);
	MUST(rename(data, name) == 0 && unlink(name) == 0);
}

static void loop(const char *file, long n)
{
	int fd = open(file, O_RDONLY);

	for (long i = 0; i < n; i++)
		MUST(pread(fd, data, 512, (i * 7 & 127) * 512) == 512);
}

/* Prints the seconds of processor time of n reads of 4 KiB. */
static void timed(const char *file, long n)
{
	int fd = open(file, O_RDONLY);
	struct timespec a, b;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	for (long i = 0; i < n; i++)
		MUST(pread(fd, data, 4096, (i * 7 & 15) * 4096) == 4096);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	printf("%.9f\n", (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec));
}

static void *thread(void *file)
{
	loop(file, 100);
	return NULL;
}

static void threads(const char *file, long n)
{
	for (long i = 0; i < n; i += 8) {
		pthread_t t[8];

		for (int k = 0; k < 8; k++)
			MUST(pthread_create(&t[k], NULL, thread, (void *)file) == 0);
		for (int k = 0; k < 8; k++)
			pthread_join(t[k], NULL);
	}
}

static void on_signal(int sig)
{
	int saved = errno;

	(void)sig;
	MUST(pread(55, data, 77, 0) == 77);
	errno = saved;
}

/* Children, one after another, read on from the position they share. */
static void forks(const char *file, long n)
{
	int fd = open(file, O_RDONLY), status;

	for (long i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			MUST(read(fd, data, 16) == 16);
			_exit(i % 5);
		}
		MUST(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == i % 5);
	}
	MUST(read(fd, data, 17) == 17);
}

/* All at once. */
static void crowd(const char *file, long n)
{
	for (long i = 0; i < n; i++)
		if (fork() == 0) {
			loop(file, 50);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
}

static void children(const char *file)
{
	char *const argv[] = {"cat", (char *)file, NULL}, *const empty[] = {NULL};
	posix_spawn_file_actions_t a;
	pid_t pid;
	int status;

	posix_spawn_file_actions_init(&a);
	posix_spawn_file_actions_addopen(&a, 1, "/dev/null", O_WRONLY, 0);
	MUST(posix_spawnp(&pid, "cat", &a, NULL, argv, empty) == 0 &&
	     waitpid(pid, &status, 0) == pid && status == 0);
	pid = vfork();
	if (pid == 0) {
		close(1);
		open("/dev/null", O_WRONLY);
		execve("/bin/cat", argv, empty);
		_exit(3);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	pid = fork();
	if (pid == 0) {
		clearenv();
		MUST(freopen("/dev/null", "w", stdout));
		execlp("cat", "cat", file, NULL);
		_exit(3);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	/* descriptors of the parent are as before */
	loop(file, 3);
}

static void mapped(const char *file)
{
	int fd = open(file, O_RDONLY);
	unsigned char *p = mmap(NULL, 65536, PROT_READ, MAP_SHARED, fd, 0);
	volatile unsigned sum = 0;

	MUST(p != MAP_FAILED && madvise(p, 65536, MADV_RANDOM) == 0);
	for (int i = 0; i < 65536; i += 4096)
		sum += p[i];
	munmap(p, 65536);
}

/* libaio, which the test preloads where it is installed */
int __attribute__((weak)) io_setup(int n, void *context);
int __attribute__((weak)) io_submit(void *context, long n, struct iocb **requests);
int __attribute__((weak))
io_getevents(void *context, long least, long n, struct io_event *done, struct timespec *t);

static void libaio(const char *file, int n)
{
	int fd = open(file, O_RDONLY);
	void *context = NULL;

	MUST(io_setup && io_submit && io_getevents && io_setup(8, &context) == 0);
	for (int i = 0; i < n; i++) {
		struct iocb r = {.aio_fildes = (unsigned)fd,
				 .aio_lio_opcode = IOCB_CMD_PREAD,
				 .aio_buf = (unsigned long)data,
				 .aio_nbytes = 512,
				 .aio_offset = 512 * i},
			    *one = &r;
		struct io_event done;

		MUST(io_submit(context, 1, &one) == 1);
		MUST(io_getevents(context, 1, 1, &done, NULL) == 1 && done.res == 512);
	}
}

static void unnamed(const char *folder)
{
	int fd = open(folder, O_TMPFILE | O_RDWR, 0600);

	MUST(fd >= 0 && write(fd, data, 700) == 700 && pread(fd, data, 300, 100) == 300);
}

/* Pointers that lead nowhere: each call must fail, and the program live. */
static void bad_pointers(const char *file)
{
	static char *volatile nowhere = (char *)1;
	char *bad = nowhere;
	const struct iovec *v = (const void *)bad;
	char *arguments[] = {data, NULL};
	off64_t *where = (void *)bad;
	int fd = open(file, O_RDONLY), pair[2];
	struct stat st;

#define FAULTS(call, error) MUST((call) == -1 && errno == (error))
	MUST(fd >= 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	FAULTS(open(bad, O_RDONLY), EFAULT);
	FAULTS(open(bad, O_TMPFILE | O_RDONLY, 0600), EINVAL);
	FAULTS(openat(fd, bad, O_RDONLY), EFAULT);
	FAULTS(syscall(SYS_openat, AT_FDCWD, bad, O_RDONLY, 0L), EFAULT);
	FAULTS(syscall(SYS_openat2, AT_FDCWD, file, bad, 24L), EFAULT);
	FAULTS(stat(bad, &st), EFAULT);
	FAULTS(fstatat(fd, bad, &st, 0), EFAULT);
	FAULTS(fstatat(fd, bad, &st, 0x40000000), EINVAL);
	FAULTS(access(bad, R_OK), EFAULT);
	FAULTS(readlink(bad, data, sizeof(data)), EFAULT);
	FAULTS(unlink(bad), EFAULT);
	FAULTS(mkdir(bad, 0700), EFAULT);
	FAULTS(truncate(bad, 0), EFAULT);
	FAULTS(truncate(bad, -1), EINVAL);
	FAULTS(rename(bad, file), EFAULT);
	FAULTS(rename(file, bad), EFAULT);
	FAULTS(chdir(bad), EFAULT);
	FAULTS(readv(fd, v, 2), EFAULT);
	FAULTS(readv(-1, v, 2), EBADF);
	FAULTS(preadv(fd, v, 2, 0), EFAULT);
	FAULTS(preadv2(fd, v, 2, 0, 0), EFAULT);
	FAULTS(writev(pair[0], v, 2), EFAULT);
	FAULTS(syscall(SYS_readv, fd, v, 2L), EFAULT);
	FAULTS(sendmsg(pair[0], (const void *)bad, 0), EFAULT);
	FAULTS(sendfile(pair[0], fd, (void *)bad, 10), EFAULT);
	FAULTS(copy_file_range(fd, where, fd, NULL, 10, 0), EFAULT);
	FAULTS(execv(bad, arguments), EFAULT);
	MUST(read(fd, data, 77) == 77);
}

int main(int argc, char **argv)
{
	long n = argc > 3 ? atol(argv[3]) : 1;
	const char *mode = argv[1], *file = argv[2];

	if (strcmp(mode, "variants") == 0)
		variants(file);
	else if (strcmp(mode, "bad_pointers") == 0)
		bad_pointers(file);
	else if (strcmp(mode, "loop") == 0)
		loop(file, n);
	else if (strcmp(mode, "timed") == 0)
		timed(file, n);
	else if (strcmp(mode, "threads") == 0)
		threads(file, n);
	else if (strcmp(mode, "forks") == 0)
		forks(file, n);
	else if (strcmp(mode, "crowd") == 0)
		crowd(file, n);
	else if (strcmp(mode, "children") == 0)
		children(file);
	else if (strcmp(mode, "libaio") == 0)
		libaio(file, (int)n);
	else if (strcmp(mode, "unnamed") == 0)
		unnamed(file);
	else if (strcmp(mode, "mapped") == 0)
		mapped(file);
	else if (strcmp(mode, "killed") == 0) {
		loop(file, n);
		raise(SIGKILL);
	} else if (strcmp(mode, "waits") == 0) {
		/* until a signal is passed on */
		sigset_t term, none;

		sigemptyset(&none);
		sigemptyset(&term);
		sigaddset(&term, SIGTERM);
		sigprocmask(SIG_BLOCK, &term, NULL);
		signal(SIGTERM, on_signal);
		MUST(dup2(open(file, O_RDONLY), 55) == 55);
		puts("ready");
		fflush(stdout);
		sigsuspend(&none);
		return 42;
	} else if (strcmp(mode, "interrupted") == 0) {
		struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
		struct timespec tick = {0, 100000};
		struct itimerspec often = {tick, tick};
		timer_t timer;

		MUST(dup2(open(file, O_RDONLY), 55) == 55 && sigaction(SIGALRM, &a, NULL) == 0);
		MUST(timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0 &&
		     timer_settime(timer, 0, &often, NULL) == 0);
		loop(file, n);
		timer_delete(timer);
	} else if (strcmp(mode, "deleted") == 0) {
		char name[4200];
		int fd;

		snprintf(name, sizeof(name), "%s.gone", file);
		fd = open(name, O_CREAT | O_RDWR, 0600);
		MUST(fd >= 0 && write(fd, data, 600) == 600 && unlink(name) == 0);
		MUST(lseek(fd, 0, SEEK_SET) == 0 && dup2(fd, 0) == 0);
		execl("/bin/cat", "cat", NULL);
	} else {
		return 8;
	}
	return 0;
}
