/* A file system in user space (FUSE 3) that shows a folder and serves it slowly, for tests that
 * need a file system between a reader and files that are cached: slow_fs SOURCE MOUNT [KEY=VALUE
 * ...], in the foreground until it is unmounted.
 *
 *   read_us=N      each read takes N µs; open_us=N: each open
 *   bytes_s=N      all reads together get N bytes/s, one after another
 *   turns=1        one request at a time: the next begins when the one before it has ended
 *   newest=1       the same of reads, but the one that came last is served next
 *   open_turns=1   the same as turns=1 of opens alone
 *   crowd_us=N     a read takes N µs more for each other one under way when it begins
 *   nth_file=K     of each K files one is slow: each of its reads takes nth_us=N µs more
 *   nth_thread=K   the same of the threads that read, in the order in which they came
 *   nth_read=K     the same of reads, at random
 *   first_us=N     the first read of an open file takes N µs more
 *   large_us=N     a read of 32 KiB or more takes N µs more
 *   alone_us=N     a read waits until another one is under way, too, for N µs at most
 *   cache=1        reads of an open file take no time when it was read before that
 *   close_us=N     each close; stat_us=N: each stat by name
 *   turn_s=T       of each 2 T s, reads take nth_us=N µs more in the second half
 *   direct=1       nothing is kept in the page cache (direct_io)
 *   brief=N        a request moves N bytes at most, and always fewer than asked for (with direct=1:
 *                  otherwise the kernel fills up with zeros)
 *   keep=1         what was read stays in the page cache when the file is opened again
 *   control=FILE   requests whose names are in this file hang for as long as they are there:
 * getattr, readdir, open, create, read, write, flush, release, unlink, mkdir, rmdir, rename,
 * truncate, fsync, statfs, or all; with @TEXT, those of paths that contain it. A hung request
 * cannot be interrupted: its thread is in uninterruptible sleep.
 *   log=FILE       each write, with its bytes, and each fsync, in order (struct logged): under a
 *                  loop device, the writes and flushes of a disk. tests/power_loss.py reads it.
 */
#define FUSE_USE_VERSION 35
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

/* What an entry of the log begins with; a write's bytes follow. n is 0: all before it is safe. */
struct logged {
	uint64_t at, n;
};

static const char *source, *control;
static FILE *logged_to;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static double read_s, open_s, bytes_s;
static int turns, direct, keep, newest, open_turns, nth_file, nth_thread, nth_read, cache;
static double crowd_s, nth_s, first_s, large_s, close_s, stat_s, turn_s, alone_s;
static size_t brief;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER, queue = PTHREAD_MUTEX_INITIALIZER;
static double free_at; /* when all bytes asked for will have been moved */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void sleep_until(double at)
{
	struct timespec t = {(time_t)at, (long)((at - (double)(time_t)at) * 1e9)};

	prctl(PR_SET_TIMERSLACK, 1);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/* Passes a request that began at `from` and moves so many bytes. */
static void take_time(double from, double each, double bytes)
{
	double end = from + each;

	if (bytes_s > 0) {
		pthread_mutex_lock(&queue);
		free_at = (free_at < from ? from : free_at) + bytes / bytes_s;
		end = free_at + each;
		pthread_mutex_unlock(&queue);
	}
	if (end > now())
		sleep_until(end);
}

/* ---- stores that no simple law describes ---- */

/* What a file handle is. */
struct handle {
	int fd, slow, read, cached;
	uint64_t name;
};

static struct handle *handle_of(const struct fuse_file_info *fi)
{
	return (struct handle *)(uintptr_t)fi->fh;
}

/* ---- stores that are better with more requests, or with the same again ---- */

static _Atomic int under_way;

static void wait_for_company(double until)
{
	while (under_way < 2 && now() < until)
		sleep_until(now() + 0.0005);
}

/* Names of files that are in the cache, by their hashes. */
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char cached_names[1 << 20];

static int is_cached(uint64_t name)
{
	int is;

	pthread_mutex_lock(&cache_lock);
	is = cached_names[name / 8 % sizeof(cached_names)] >> name % 8 & 1;
	pthread_mutex_unlock(&cache_lock);
	return is;
}

static void keep_cached(uint64_t name, int is)
{
	unsigned char *at = &cached_names[name / 8 % sizeof(cached_names)];

	pthread_mutex_lock(&cache_lock);
	*at = (unsigned char)((*at & ~(1 << name % 8)) | (is ? 1 << name % 8 : 0));
	pthread_mutex_unlock(&cache_lock);
}

/* Waits until it is its turn, when the last that came is served next. */
static pthread_mutex_t stack_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t stack_moved = PTHREAD_COND_INITIALIZER;
static unsigned stacked[4096], stack_top, stack_came;
static int stack_busy;

static void enter_newest(void)
{
	unsigned mine;

	pthread_mutex_lock(&stack_lock);
	mine = stacked[stack_top++ % 4096] = ++stack_came;
	while (stack_busy || stacked[(stack_top - 1) % 4096] != mine)
		pthread_cond_wait(&stack_moved, &stack_lock);
	stack_top--;
	stack_busy = 1;
	pthread_mutex_unlock(&stack_lock);
}

static void leave_newest(void)
{
	pthread_mutex_lock(&stack_lock);
	stack_busy = 0;
	pthread_cond_broadcast(&stack_moved);
	pthread_mutex_unlock(&stack_lock);
}

static uint64_t mixed(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static uint64_t name_hash(const char *path)
{
	uint64_t h = 14695981039346656037u;

	for (; *path; path++)
		h = (h ^ (unsigned char)*path) * 1099511628211u;
	return mixed(h);
}

static int slow_caller(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pid_t seen[1024];
	static int count;
	pid_t pid = fuse_get_context()->pid;
	int i = 0;

	pthread_mutex_lock(&lock);
	while (i < count && seen[i] != pid)
		i++;
	if (i == count && count < 1024)
		seen[count++] = pid;
	pthread_mutex_unlock(&lock);
	return i % nth_thread == 0;
}

/* What a read takes beside what all take. */
static double oddly(struct handle *h, size_t n, int others)
{
	static _Atomic uint64_t reads;
	double more = crowd_s * others;

	if (nth_file)
		more += h->slow ? nth_s : 0;
	if (nth_thread)
		more += slow_caller() ? nth_s : 0;
	if (nth_read)
		more += mixed(++reads) % (uint64_t)nth_read == 0 ? nth_s : 0;
	if (turn_s > 0)
		more += (uint64_t)(now() / turn_s) % 2 ? nth_s : 0;
	if (!h->read)
		more += first_s;
	h->read = 1;
	return more + (n >= 32768 ? large_s : 0);
}

/* Whether the control file names this kind of request now: "open", or "open@text" for paths with
 * that text. */
static int hangs(const char *what, const char *path)
{
	char words[256], *save = NULL;
	ssize_t n;
	int fd = open(control, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	n = read(fd, words, sizeof(words) - 1);
	close(fd);
	words[n > 0 ? n : 0] = '\0';
	for (char *w = strtok_r(words, " \n", &save); w; w = strtok_r(NULL, " \n", &save)) {
		char *text = strchr(w, '@');

		if (text)
			*text++ = '\0';
		if ((strcmp(w, what) == 0 || strcmp(w, "all") == 0) &&
		    (!text || (path && strstr(path, text))))
			return 1;
	}
	return 0;
}

static void gate(const char *what, const char *path)
{
	while (control && hangs(what, path))
		sleep_until(now() + 0.05);
}

static int under(char *out, size_t size, const char *path)
{
	return snprintf(out, size, "%s%s", source, path) < (int)size ? 0 : -ENAMETOOLONG;
}

static int slow_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	char p[4096];

	gate("getattr", path);
	(void)fi;
	if (stat_s > 0)
		take_time(now(), stat_s, 0);
	return under(p, sizeof(p), path) || lstat(p, st) ? -errno : 0;
}

static int slow_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t at,
			struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
	char p[4096];
	struct dirent *e;
	DIR *d;

	gate("readdir", path);
	(void)at, (void)fi, (void)flags;
	d = under(p, sizeof(p), path) ? NULL : opendir(p);
	if (!d)
		return -errno;
	while ((e = readdir(d)))
		fill(buf, e->d_name, NULL, 0, 0);
	closedir(d);
	return 0;
}

static int opened(struct fuse_file_info *fi, int fd, const char *path)
{
	struct handle *h = fd < 0 ? NULL : calloc(1, sizeof(*h));

	if (!h)
		return -errno;
	*h = (struct handle){.fd = fd, .name = name_hash(path)};
	h->slow = nth_file && h->name % (uint64_t)nth_file == 0;
	if (cache && (fi->flags & O_ACCMODE) == O_RDONLY)
		h->cached = is_cached(h->name);
	else if (cache)
		keep_cached(h->name, 0);
	fi->fh = (uintptr_t)h;
	fi->direct_io = direct != 0;
	fi->keep_cache = keep != 0;
	return 0;
}

static int slow_open(const char *path, struct fuse_file_info *fi)
{
	double from;
	char p[4096];

	gate("open", path);
	if (turns || open_turns)
		pthread_mutex_lock(&turn);
	from = now();
	if (open_s > 0)
		take_time(from, open_s, 0);
	if (turns || open_turns)
		pthread_mutex_unlock(&turn);
	return under(p, sizeof(p), path) ? -ENAMETOOLONG
					 : opened(fi, open(p, fi->flags & ~O_DIRECT), path);
}

static int slow_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	char p[4096];

	gate("create", path);
	return under(p, sizeof(p), path)
		       ? -ENAMETOOLONG
		       : opened(fi, open(p, (fi->flags & ~O_DIRECT) | O_CREAT, mode), path);
}

static int slow_read(const char *path, char *buf, size_t n, off_t at, struct fuse_file_info *fi)
{
	double from;
	ssize_t got;
	int others = under_way++;

	gate("read", path);
	if (alone_s > 0)
		wait_for_company(now() + alone_s);
	if (turns)
		pthread_mutex_lock(&turn);
	if (newest)
		enter_newest();
	from = now();
	if (brief && n > 1)
		n = n > 2 * brief ? brief : n / 2; /* never all, never nothing */
	got = pread(handle_of(fi)->fd, buf, n, at);
	if (got >= 0 && !handle_of(fi)->cached)
		take_time(from, read_s + oddly(handle_of(fi), n, others), (double)got);
	if (cache)
		keep_cached(handle_of(fi)->name, 1);
	if (newest)
		leave_newest();
	if (turns)
		pthread_mutex_unlock(&turn);
	under_way--;
	return got < 0 ? -errno : (int)got;
}

static void log_entry(const char *buf, size_t n, off_t at)
{
	const struct logged head = {(uint64_t)at, n};

	if (!logged_to)
		return;
	pthread_mutex_lock(&log_lock);
	if (fwrite(&head, sizeof(head), 1, logged_to) != 1 ||
	    (n && fwrite(buf, n, 1, logged_to) != 1) || fflush(logged_to))
		abort(); /* no conclusion can be drawn from a log that lacks something */
	pthread_mutex_unlock(&log_lock);
}

static int slow_write(const char *path, const char *buf, size_t n, off_t at,
		      struct fuse_file_info *fi)
{
	ssize_t put;

	(void)path;
	gate("write", path);
	if (brief && n > 1)
		n = n > 2 * brief ? brief : n / 2;
	put = pwrite(handle_of(fi)->fd, buf, n, at);
	if (put > 0)
		log_entry(buf, (size_t)put, at);
	return put < 0 ? -errno : (int)put;
}

static int slow_flush(const char *path, struct fuse_file_info *fi)
{
	(void)path, (void)fi;
	if (!control && !(close_s > 0))
		return -ENOSYS; /* the kernel does not ask again */
	gate("flush", path);
	take_time(now(), close_s, 0);
	return 0;
}

static int slow_release(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	gate("release", path);
	close(handle_of(fi)->fd);
	free(handle_of(fi));
	return 0;
}

static int slow_unlink(const char *path)
{
	char p[4096];

	gate("unlink", path);
	return under(p, sizeof(p), path) || unlink(p) ? -errno : 0;
}

static int slow_rmdir(const char *path)
{
	char p[4096];

	gate("rmdir", path);
	return under(p, sizeof(p), path) || rmdir(p) ? -errno : 0;
}

static int slow_mkdir(const char *path, mode_t mode)
{
	char p[4096];

	gate("mkdir", path);
	return under(p, sizeof(p), path) || mkdir(p, mode) ? -errno : 0;
}

static int slow_rename(const char *from, const char *to, unsigned flags)
{
	char p[4096], q[4096];

	gate("rename", from);
	if (flags)
		return -EINVAL;
	keep_cached(name_hash(to), 0);
	return under(p, sizeof(p), from) || under(q, sizeof(q), to) || rename(p, q) ? -errno : 0;
}

static int slow_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	char p[4096];

	(void)fi;
	return under(p, sizeof(p), path) || chmod(p, mode) ? -errno : 0;
}

static int slow_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
	char p[4096];

	gate("truncate", path);
	(void)fi;
	return under(p, sizeof(p), path) || truncate(p, size) ? -errno : 0;
}

static int slow_fsync(const char *path, int data, struct fuse_file_info *fi)
{
	(void)path;
	gate("fsync", path);
	log_entry(NULL, 0, 0);
	return (data ? fdatasync(handle_of(fi)->fd) : fsync(handle_of(fi)->fd)) ? -errno : 0;
}

static int slow_statfs(const char *path, struct statvfs *out)
{
	char p[4096];

	gate("statfs", path);
	return under(p, sizeof(p), path) || statvfs(p, out) ? -errno : 0;
}

static const struct fuse_operations operations = {
	.getattr = slow_getattr,
	.readdir = slow_readdir,
	.open = slow_open,
	.create = slow_create,
	.read = slow_read,
	.write = slow_write,
	.flush = slow_flush,
	.release = slow_release,
	.unlink = slow_unlink,
	.mkdir = slow_mkdir,
	.rmdir = slow_rmdir,
	.rename = slow_rename,
	.chmod = slow_chmod,
	.truncate = slow_truncate,
	.fsync = slow_fsync,
	.statfs = slow_statfs,
};

static double value_of(const char *arg, const char *key)
{
	size_t n = strlen(key);

	return strncmp(arg, key, n) == 0 && arg[n] == '=' ? atof(arg + n + 1) : 0;
}

int main(int argc, char **argv)
{
	char *fuse[] = {argv[0], argc > 2 ? argv[2] : NULL,        "-f",
			"-o",    "max_threads=128,attr_timeout=0", NULL};

	if (argc < 3) {
		fprintf(stderr, "slow_fs SOURCE MOUNT [KEY=VALUE ...]\n");
		return 2;
	}
	source = argv[1];
	for (int i = 3; i < argc; i++) {
		read_s += value_of(argv[i], "read_us") * 1e-6;
		open_s += value_of(argv[i], "open_us") * 1e-6;
		bytes_s += value_of(argv[i], "bytes_s");
		crowd_s += value_of(argv[i], "crowd_us") * 1e-6;
		nth_s += value_of(argv[i], "nth_us") * 1e-6;
		first_s += value_of(argv[i], "first_us") * 1e-6;
		large_s += value_of(argv[i], "large_us") * 1e-6;
		close_s += value_of(argv[i], "close_us") * 1e-6;
		stat_s += value_of(argv[i], "stat_us") * 1e-6;
		turn_s += value_of(argv[i], "turn_s");
		alone_s += value_of(argv[i], "alone_us") * 1e-6;
		cache += value_of(argv[i], "cache") > 0;
		nth_file += (int)value_of(argv[i], "nth_file");
		nth_thread += (int)value_of(argv[i], "nth_thread");
		nth_read += (int)value_of(argv[i], "nth_read");
		newest += value_of(argv[i], "newest") > 0;
		open_turns += value_of(argv[i], "open_turns") > 0;
		turns += value_of(argv[i], "turns") > 0;
		direct += value_of(argv[i], "direct") > 0;
		brief += (size_t)value_of(argv[i], "brief");
		keep += value_of(argv[i], "keep") > 0;
		if (strncmp(argv[i], "control=", 8) == 0)
			control = argv[i] + 8;
		if (strncmp(argv[i], "log=", 4) == 0 && !(logged_to = fopen(argv[i] + 4, "ab"))) {
			perror(argv[i]);
			return 1;
		}
	}
	return fuse_main(5, fuse, &operations, NULL);
}
