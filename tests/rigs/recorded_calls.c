/* recorded_calls CASE FOLDER: what a recorder must see of many calls, and the truth of it.
 * recorded_calls all FOLDER runs each case as a program of its own. FOLDER/CASE.in has 64 KiB.
 *
 * On stdout, at the end: `read NAME OFFSET BYTES` or `write ...` a request, where each is known;
 * `cover NAME BEGIN END` where libc chooses the sizes: the bytes that were read of a file, or, with
 * `filled`, written. A name is the last part of a path. */
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char data[1 << 17], said[1 << 16], in_path[4096], out_path[4096];
static const char *folder, *self;
static size_t used;
static int in, out;

#define MUST(call)                                                                                 \
	do {                                                                                       \
		if (!(call)) {                                                                     \
			perror(#call);                                                             \
			_exit(9);                                                                  \
		}                                                                                  \
	} while (0)

static void truth(const char *kind, const char *path, long at, long n)
{
	const char *slash = strrchr(path, '/');

	used += (size_t)snprintf(said + used, sizeof(said) - used, "%s %s %ld %ld\n", kind,
				 slash ? slash + 1 : path, at, n);
}
#define READ(at, n) truth("read", in_path, at, n)
#define WROTE(at, n) truth("write", out_path, at, n)

/* stdout may be a file whose position others share. */
static void tell(void)
{
	MUST(write(1, said, used) == (ssize_t)used);
	used = 0;
}

static void reap(void)
{
	int status;

	MUST(wait(&status) > 0 && status == 0);
}

static const char *unnamed(int fd)
{
	static char name[64];
	struct stat st;

	MUST(fstat(fd, &st) == 0);
	snprintf(name, sizeof(name), "#%lu", (unsigned long)st.st_ino);
	return name;
}

/* ---- POSIX AIO ---- */

static struct aiocb request(int fd, long at, size_t n, int op)
{
	return (struct aiocb){.aio_fildes = fd,
			      .aio_offset = at,
			      .aio_buf = data,
			      .aio_nbytes = n,
			      .aio_lio_opcode = op,
			      .aio_sigevent.sigev_notify = SIGEV_NONE};
}

static void aio(void)
{
	struct aiocb a = request(in, 4000, 1001, 0), b = request(in, 8000, 1002, 0),
		     c = request(out, 100, 1003, 0), d = request(in, 65000, 1000, LIO_READ),
		     e = request(out, 5000, 1004, LIO_WRITE), f = request(in, 1, 7, LIO_READ);
	const struct aiocb *wait_for[] = {&a, NULL};
	struct aiocb *list[] = {&d, NULL, &e}, *more[] = {&f};

	MUST(aio_read(&a) == 0 && aio_read(&b) == 0 && aio_write(&c) == 0);
	while (aio_error(&a) == EINPROGRESS)
		MUST(aio_suspend(wait_for, 2, NULL) == 0);
	while (aio_error(&b) == EINPROGRESS || aio_error(&c) == EINPROGRESS)
		usleep(100);
	MUST(aio_return(&a) == 1001 && aio_return(&b) == 1002 && aio_return(&c) == 1003);
	MUST(lio_listio(LIO_WAIT, list, 3, NULL) == 0);
	MUST(aio_return(&d) == 536 && aio_return(&e) == 1004);
	MUST(lio_listio(LIO_NOWAIT, more, 1, NULL) == 0);
	while (aio_error(&f) == EINPROGRESS)
		usleep(100);
	MUST(aio_return(&f) == 7);
	/* the same block again: another request */
	a.aio_offset = 0;
	MUST(aio_read(&a) == 0);
	while (aio_error(&a) == EINPROGRESS)
		usleep(100);
	MUST(aio_return(&a) == 1001);
	READ(4000, 1001);
	READ(8000, 1002);
	WROTE(100, 1003);
	READ(65000, 536);
	WROTE(5000, 1004);
	READ(1, 7);
	READ(0, 1001);
}

/* ---- vectors and copies ---- */

static void vectors(void)
{
	struct iovec v[2] = {{data, 100}, {data + 100, 11}};

	MUST(preadv2(in, v, 2, 9000, 0) == 111 && preadv2(in, v, 2, -1, 0) == 111 &&
	     preadv64v2(in, v, 1, -1, 0) == 100);
	READ(9000, 111);
	READ(0, 111);
	READ(111, 100);
	MUST(pwritev2(out, v, 2, 500, 0) == 111 && pwritev2(out, v, 2, -1, 0) == 111);
	WROTE(500, 111);
	WROTE(0, 111);
	/* at the end, wherever that is asked for */
	MUST(pwritev2(out, v, 1, 0, RWF_APPEND) == 100);
	WROTE(611, 100);
	MUST(syscall(SYS_preadv, in, v, 2, 70L, 0L) == 111 &&
	     syscall(SYS_writev, out, v, 1) == 100);
	READ(70, 111);
	WROTE(111, 100);
}

static void copies(void)
{
	int a[2], b[2];
	loff_t at = 10000, to = 20000;
	struct iovec v = {data, 3000};

	MUST(pipe(a) == 0 && pipe(b) == 0);
	MUST(copy_file_range(in, NULL, out, NULL, 1000, 0) == 1000);
	READ(0, 1000);
	WROTE(0, 1000);
	MUST(copy_file_range(in, &at, out, &to, 1100, 0) == 1100 && at == 11100 && to == 21100);
	READ(10000, 1100);
	WROTE(20000, 1100);
	MUST(read(in, data, 5) == 5 && write(out, data, 6) == 6);
	READ(1000, 5);
	WROTE(1000, 6);
	MUST(sendfile(out, in, NULL, 1200) == 1200 && read(in, data, 7) == 7);
	READ(1005, 1200);
	WROTE(1006, 1200);
	READ(2205, 7);
	at = 30000;
	MUST(splice(in, &at, a[1], NULL, 1300, 0) == 1300 && at == 31300);
	READ(30000, 1300);
	MUST(tee(a[0], b[1], 1300, 0) == 1300 && read(b[0], data, 2000) == 1300);
	MUST(splice(a[0], NULL, out, NULL, 1300, 0) == 1300 && write(out, data, 8) == 8);
	WROTE(2206, 1300);
	WROTE(3506, 8);
	MUST(vmsplice(a[1], &v, 1, 0) == 3000 && read(a[0], data, 4000) == 3000);
	at = 100;
	MUST(syscall(SYS_sendfile, out, in, &at, 30L) == 30);
	READ(100, 30);
	WROTE(3514, 30);
	MUST(syscall(SYS_copy_file_range, in, &at, out, NULL, 40L, 0L) == 40);
	READ(130, 40);
	WROTE(3544, 40);
}

static void sizes(void)
{
	int fd = open(out_path, O_WRONLY | O_APPEND);

	MUST(fd >= 0 && fallocate(fd, 0, 0, 5000) == 0 && write(fd, data, 10) == 10);
	WROTE(5000, 10);
	MUST(posix_fallocate(fd, 0, 7000) == 0 && write(fd, data, 11) == 11);
	WROTE(7000, 11);
	MUST(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 9000) == 0 && write(fd, data, 12) == 12);
	WROTE(7011, 12);
	MUST(ftruncate(fd, 100) == 0 && write(fd, data, 13) == 13);
	WROTE(100, 13);
}

/* ---- descriptors ---- */

static void files_without_name(void)
{
	char path[64], name[4200], template[4200];
	int a = open(folder, O_TMPFILE | O_RDWR, 0600), b = open(folder, O_TMPFILE | O_RDWR, 0600),
	    c;
	FILE *f;

	MUST(a >= 0 && b >= 0 && write(a, data, 700) == 700 && write(b, data, 800) == 800);
	truth("write", unnamed(a), 0, 700);
	truth("write", unnamed(b), 0, 800);
	MUST(pread(a, data, 300, 100) == 300 && pread(b, data, 400, 200) == 400);
	truth("read", unnamed(b), 200, 400);
	/* one of them gets a name */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", a);
	snprintf(name, sizeof(name), "%s/files_without_name.linked", folder);
	MUST(linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0);
	c = open(name, O_RDONLY);
	MUST(c >= 0 && read(c, data, 600) == 600);
	truth("read", name, 0, 600);
	truth("read", unnamed(a), 100, 300);
	snprintf(template, sizeof(template), "%s/made.XXXXXX", folder);
	c = mkstemp(template);
	MUST(c >= 0 && write(c, data, 610) == 610);
	truth("write", template, 0, 610);
	f = tmpfile();
	MUST(f && fwrite(data, 1, 620, f) == 620 && fflush(f) == 0);
	truth("write", unnamed(fileno(f)), 0, 620);
	fclose(f);
}

static void memory(void)
{
	int a = memfd_create("same", 0), b = memfd_create("same", MFD_CLOEXEC);
	char name[2][64];
	sem_t *s;

	snprintf(name[0], sizeof(name[0]), "/recorded_calls-%d", getpid());
	s = sem_open(name[0], O_CREAT | O_EXCL, 0600, 1); /* libc writes a file */
	MUST(s != SEM_FAILED && sem_wait(s) == 0 && sem_unlink(name[0]) == 0);
	snprintf(name[0], sizeof(name[0]), "memfd:same_[%s]", unnamed(a) + 1);
	snprintf(name[1], sizeof(name[1]), "memfd:same_[%s]", unnamed(b) + 1);
	MUST(write(a, data, 700) == 700 && write(b, data, 800) == 800);
	truth("write", name[0], 0, 700);
	truth("write", name[1], 0, 800);
	MUST(pread(a, data, 100, 300) == 100 && pread(b, data, 200, 400) == 200);
	truth("read", name[0], 300, 100);
	truth("read", name[1], 400, 200);
	if (fork() == 0) {
		char number[16];

		snprintf(number, sizeof(number), "%d", a);
		tell();
		execl(self, self, "inherited", folder, number, name[0], NULL);
		_exit(9);
	}
	used = 0;
	reap();
}

static void links(void)
{
	char path[4200];
	int dir = open(folder, O_PATH | O_DIRECTORY), at, fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", in);
	fd = open(path, O_RDONLY);
	MUST(fd >= 0 && read(fd, data, 501) == 501);
	READ(0, 501);
	snprintf(path, sizeof(path), "/dev/fd/%d", in);
	fd = open(path, O_RDONLY);
	MUST(fd >= 0 && read(fd, data, 502) == 502 && read(fd, data, 503) == 503);
	READ(0, 502);
	READ(502, 503);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), in);
	MUST(freopen(path, "r", stdin) && read(0, data, 504) == 504);
	READ(0, 504);
	at = openat(dir, strrchr(in_path, '/') + 1, O_PATH);
	MUST(at >= 0 && read(at, data, 1) == -1 && errno == EBADF);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
	fd = open(path, O_RDONLY);
	MUST(fd >= 0 && pread(fd, data, 505, 9) == 505);
	READ(9, 505);
	MUST(fchdir(dir) == 0);
	fd = open(strrchr(in_path, '/') + 1, O_RDONLY);
	MUST(fd >= 0 && pread(fd, data, 506, 10) == 506);
	READ(10, 506);
	{
		uint64_t how[3] = {O_RDONLY, 0, 0};

		fd = (int)syscall(SYS_openat2, dir, strrchr(in_path, '/') + 1, how, sizeof(how));
		if (fd >= 0) {
			MUST(pread(fd, data, 507, 11) == 507);
			READ(11, 507);
		}
	}
}

static void handles(void)
{
	char room[sizeof(struct file_handle) + MAX_HANDLE_SZ] __attribute__((aligned(8)));
	struct file_handle *h = (void *)room;
	int mount, fd;

	h->handle_bytes = MAX_HANDLE_SZ;
	if (name_to_handle_at(AT_FDCWD, in_path, h, &mount, 0) < 0)
		return;
	fd = open_by_handle_at(in, h, O_RDONLY);
	if (fd < 0)
		return; /* needs privileges */
	MUST(read(fd, data, 509) == 509 && pread(fd, data, 510, 12) == 510);
	READ(0, 509);
	READ(12, 510);
}

static void duplicates(void)
{
	int a = dup(in), b, c;

	MUST(dup3(in, 70, O_CLOEXEC) == 70 && (b = fcntl(in, F_DUPFD_CLOEXEC, 80)) >= 80);
	c = fcntl(in, F_DUPFD, 90);
	MUST(read(in, data, 101) == 101 && read(a, data, 102) == 102 && read(70, data, 103) == 103);
	READ(0, 101);
	READ(101, 102);
	READ(203, 103);
	MUST(lseek(b, 5000, SEEK_SET) == 5000 && read(c, data, 104) == 104);
	READ(5000, 104);
	if (fork() == 0) {
		MUST(read(b, data, 105) == 105 && lseek(b, 10, SEEK_CUR) == 5219);
		_exit(0);
	}
	reap();
	READ(5104, 105);
	MUST(read(in, data, 106) == 106 && lseek(in, -6, SEEK_CUR) == 5319);
	READ(5219, 106);
	MUST(read(a, data, 107) == 107 && lseek(a, -65536 + 50, SEEK_END) == 50 &&
	     read(in, data, 108) == 108);
	READ(5319, 107);
	READ(50, 108);
	/* an open of its own has a position of its own */
	b = open(in_path, O_RDONLY);
	MUST(read(b, data, 109) == 109 && read(in, data, 110) == 110);
	READ(0, 109);
	READ(158, 110);
}

static void closed_ranges(void)
{
	int pair[2], fd;

	MUST(read(in, data, 11) == 11);
	READ(0, 11);
	MUST(dup2(in, 60) == 60 && close_range(in, 63, 0) == 0 && pipe(pair) == 0);
	MUST(pair[0] == in && write(pair[1], data, 12) == 12 && read(pair[0], data, 20) == 12);
	MUST(syscall(SYS_close_range, pair[0], 63, 0) == 0);
	fd = open(in_path, O_RDONLY);
	MUST(fd == in && read(fd, data, 13) == 13);
	READ(0, 13);
	closefrom(in);
	MUST(open(in_path, O_RDONLY) == in && read(in, data, 14) == 14);
	READ(0, 14);
	out = -1;
}

/* ---- streams ---- */

static void streams(void)
{
	size_t room = 0, n = 0;
	char *line = NULL;
	int a, i;
	FILE *f = fopen64(in_path, "r");

	/* lines of 16 bytes: "%015d\n" */
	MUST(f && getline(&line, &room, f) == 16 && getdelim(&line, &room, '\n', f) == 16);
	MUST(fscanf(f, "%d", &a) == 1 && a == 2 && fgetc(f) == '\n' && ungetc('x', f) == 'x');
	for (i = 3; i < 1500; i++)
		MUST(fscanf(f, "%*c%d", &a) == 1 && a == i);
	MUST(fgetc(f) == '\n' && fgets(data, 100, f) && atoi(data) == 1500);
	MUST(fread(data, 1, 40000, f) == 40000 && atoi(data) == 1501);
	MUST(fread(data, 1, 1 << 17, f) == 65536 - 40000 - 16 * 1501 && feof(f));
	truth("cover", in_path, 0, 65536);
	fclose(f);
	free(line);
	f = fopen(out_path, "w");
	MUST(f && fprintf(f, "%0100d", 7) == 100 && fwrite(data, 1, 50000, f) == 50000);
	for (n = 0; n < 5000; n++)
		MUST(putc('x', f) == 'x');
	MUST(fputs("end", f) >= 0);
	truth("filled", out_path, 0, 55103);
	/* not closed: exit(3) writes the rest */
}

/* What libc asks of the kernel for large parts: whole blocks directly, the rest by its buffer. */
static void blocks_of_streams(void)
{
	static char buffer[4096];
	FILE *f = fopen(in_path, "r");

	MUST(f && setvbuf(f, buffer, _IOFBF, sizeof(buffer)) == 0);
	MUST(fread(data, 1, 10000, f) == 10000);
	READ(0, 8192);
	READ(8192, 4096);
	MUST(fread(data, 1, 100000, f) == 65536 - 10000);
	READ(12288, 53248);
	READ(65536, 0);
	/* the end is known: nothing is asked for the buffer */
	MUST(fread(data, 1, 100, f) == 0);
	fclose(f);
	f = fopen(out_path, "w");
	MUST(f && setvbuf(f, buffer, _IOFBF, sizeof(buffer)) == 0);
	MUST(fwrite(data, 1, 1000, f) == 1000 && fwrite(data, 4, 2500, f) == 2500);
	WROTE(0, 4096);
	WROTE(4096, 4096);
	MUST(fwrite(data, 1, 8192, f) == 8192);
	WROTE(8192, 4096);
	WROTE(12288, 4096);
	fclose(f);
	WROTE(16384, 2808);
}

static void unbuffered(void)
{
	char *big = malloc(1 << 15);
	FILE *f = fopen(in_path, "r");
	struct stat st;

	setvbuf(f, NULL, _IONBF, 0);
	MUST(fgetc(f) == '0' && fread(data, 1, 31, f) == 31 && fread(data, 16, 10, f) == 10);
	truth("cover", in_path, 0, 192);
	MUST(freopen(in_path, "r", f) && fseek(f, 20000, SEEK_SET) == 0 && fgetc(f) == '0');
	setvbuf(f, big, _IOFBF, 1 << 15);
	fclose(f);
	MUST((f = fdopen(in, "r")) && fseek(f, 40000, SEEK_SET) == 0 &&
	     fread(data, 1, 100, f) == 100 && ftell(f) == 40100);
	fclose(f);
	MUST(dprintf(out, "%03d", 7) == 3 && write(out, data, 7) == 7);
	WROTE(0, 3);
	WROTE(3, 7);
	MUST((f = fdopen(out, "w")) && fprintf(f, "kept") == 4 && fflush(NULL) == 0);
	WROTE(10, 4);
	MUST(fprintf(f, "lost") == 4 && fstat(out, &st) == 0 && st.st_size == 14);
	tell();
	_exit(0); /* what is in the buffer is lost */
}

static void mapped_stream(void)
{
	FILE *f = fopen(in_path, "rm");

	MUST(f && fread(data, 1, 1000, f) == 1000 && fseek(f, 30000, SEEK_SET) == 0 &&
	     fread(data, 1, 1000, f) == 1000);
	fclose(f);
}

/* ---- threads and signals ---- */

static int waiting[2], blocks;

static void *blocked(void *unused)
{
	(void)unused;
	MUST(pread(in, data, 21, 3) == 21);
	__atomic_store_n(&blocks, 1, __ATOMIC_RELEASE);
	return (void *)(long)read(waiting[0], data, 100);
}

static void cancelled(void)
{
	pthread_t t;
	void *result;

	MUST(pipe(waiting) == 0);
	for (int i = 0; i < 3; i++) {
		MUST(pthread_create(&t, NULL, blocked, NULL) == 0);
		while (!__atomic_load_n(&blocks, __ATOMIC_ACQUIRE))
			sched_yield();
		blocks = 0;
		MUST(pthread_cancel(t) == 0 && pthread_join(t, &result) == 0 &&
		     result == PTHREAD_CANCELED);
		READ(3, 21);
		MUST(pread(in, data, 22, 4) == 22);
		READ(4, 22);
	}
}

static sigjmp_buf back;
static volatile sig_atomic_t ready;

static void jumps(int sig)
{
	(void)sig;
	if (ready)
		siglongjmp(back, 1);
}

/* Out of reads, and out of the recorder's own work. */
static void jumped(void)
{
	struct sigaction a = {.sa_handler = jumps};
	struct timespec tick = {0, 50000};
	struct itimerspec often = {tick, tick};
	volatile int jumps_left = 300;
	timer_t timer;

	MUST(sigaction(SIGALRM, &a, NULL) == 0 &&
	     timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0 &&
	     timer_settime(timer, 0, &often, NULL) == 0);
	if (sigsetjmp(back, 1))
		jumps_left--;
	ready = 1;
	while (jumps_left > 0)
		MUST(pread(in, data, 64, 64) == 64);
	ready = 0;
	timer_delete(timer);
	for (int i = 0; i < 500; i++) {
		MUST(pread(in, data, 333, 16L * i) == 333);
		READ(16L * i, 333);
	}
}

static void *reads(void *stop)
{
	while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED))
		MUST(pread(in, data, 64, 64) == 64);
	return NULL;
}

static void *reads_once(void *at)
{
	MUST(pread(in, data, 334, (long)at) == 334);
	return NULL;
}

/* Children of a process whose threads read all the time, and threads that come and go. */
static void crowded(void)
{
	pthread_t t[3], s;
	int stop = 0;

	for (int i = 0; i < 3; i++)
		MUST(pthread_create(&t[i], NULL, reads, &stop) == 0);
	for (long i = 0; i < 20; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			MUST(pread(in, data, 333, 16 * i) == 333);
			_exit(0);
		}
		MUST(pid > 0 && pthread_create(&s, NULL, reads_once, (void *)(8 * i)) == 0);
		pthread_join(s, NULL);
		reap();
		READ(16 * i, 333);
		READ(8 * i, 334);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
}

/* ---- programs ---- */

static void programs(void)
{
	char *const argv[] = {(char *)"again", (char *)"reader", (char *)folder, in_path, NULL};
	int image = open(self, O_RDONLY | O_CLOEXEC), null = open("/dev/null", O_WRONLY);
	pid_t pid;

	/* the descriptor is the program's, and the position that of each open */
	for (int how = 0; how < 6; how++) {
		if (how == 4) {
			MUST(posix_spawn(&pid, self, NULL, NULL, argv, environ) == 0);
		} else if (how == 5) {
			pid = vfork();
			if (pid == 0) {
				/* what a child of vfork does is nothing of its parent */
				close(in);
				close(out);
				dup2(null, out);
				execve(self, argv, environ);
				_exit(9);
			}
		} else if ((pid = fork()) == 0) {
			if (how == 0)
				fexecve(image, argv, environ);
			else if (how == 1)
				execveat(AT_FDCWD, self, argv, environ, 0);
			else if (how == 2)
				syscall(SYS_execve, self, argv, environ);
			else
				execv(self, argv);
			_exit(9);
		}
		reap();
		READ(0, 41);
		READ(100, 42);
	}
	MUST(read(in, data, 43) == 43 && write(out, data, 44) == 44);
	READ(0, 43);
	WROTE(0, 44);
}

static void daemons(void)
{
	char *const none[] = {NULL};
	int done[2];
	char c;

	(void)none;
	MUST(pipe(done) == 0);
	if (fork() == 0) {
		close(done[0]);
		MUST(daemon(1, 1) == 0);
		MUST(read(in, data, 51) == 51);
		_exit(0);
	}
	close(done[1]);
	MUST(read(done[0], &c, 1) == 0); /* the daemon has ended */
	reap();
	MUST(read(in, data, 52) == 52);
	READ(0, 51);
	READ(51, 52);
	{
		FILE *f = popen("exit 0", "r");

		MUST(f && fread(data, 1, 10, f) == 0 && pclose(f) == 0);
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"aio", aio},
	{"vectors", vectors},
	{"copies", copies},
	{"sizes", sizes},
	{"files_without_name", files_without_name},
	{"memory", memory},
	{"links", links},
	{"handles", handles},
	{"duplicates", duplicates},
	{"closed_ranges", closed_ranges},
	{"streams", streams},
	{"blocks_of_streams", blocks_of_streams},
	{"unbuffered", unbuffered},
	{"mapped_stream", mapped_stream},
	{"cancelled", cancelled},
	{"jumped", jumped},
	{"crowded", crowded},
	{"programs", programs},
	{"daemons", daemons},
};

static void each(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (fork() == 0) {
			execl(self, self, cases[i].name, folder, NULL);
			_exit(9);
		}
		reap();
	}
}

int main(int argc, char **argv)
{
	static char image[4096];

	MUST(argc >= 3 && readlink("/proc/self/exe", image, sizeof(image) - 1) > 0);
	self = image;
	folder = argv[2];
	if (strcmp(argv[1], "all") == 0) {
		each();
		return 0;
	}
	if (strcmp(argv[1], "reader") == 0) {
		int fd = open(argv[3], O_RDONLY);

		MUST(read(fd, data, 41) == 41 && pread(fd, data, 42, 100) == 42);
		return 0;
	}
	if (strcmp(argv[1], "inherited") == 0) {
		MUST(read(atoi(argv[3]), data, 100) == 0 &&
		     pread(atoi(argv[3]), data, 60, 6) == 60);
		truth("read", argv[4], 700, 0);
		truth("read", argv[4], 6, 60);
		tell();
		return 0;
	}
	snprintf(in_path, sizeof(in_path), "%s/%s.in", folder, argv[1]);
	snprintf(out_path, sizeof(out_path), "%s/%s.out", folder, argv[1]);
	in = open(in_path, O_RDONLY);
	out = open(out_path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	MUST(in >= 0 && out >= 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (strcmp(cases[i].name, argv[1]) == 0)
			cases[i].run();
	tell();
	return 0;
}
