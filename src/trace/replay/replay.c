/* The engine of a replay: threads that wait for each other's operations, think, and ask. */
#include "trace/replay/replay.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/beneath.h"
#include "base/clock.h"
#include "base/compare.h"
#include "base/file.h"

/* A wait ends this much earlier than it should and is spun to its end: a sleeper wakes late. */
#define SPIN_NS 70000
#define SLEEP_SLICE_NS (NS_PER_S / 10)
/* What came late by a slow wake-up is taken off later thinking, up to this. */
#define LATE_MAX_NS 10000000
#define THINK_MAX_NS (INT64_C(1) << 60)
#define LIST_BYTES 32768
#define BYTES_SHIFT (1u << 20)
#define OPEN_FLAGS                                                                                 \
	(O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_DIRECTORY | O_SYNC | O_DSYNC |      \
	 O_DIRECT | O_NOATIME)

struct performer { /* a thread */
	struct engine *x;
	uint32_t number;           /* of the job's thread */
	int64_t begins_ns;         /* when what it waits for first had ended */
	_Atomic uint32_t progress; /* operations made; a futex word */
	_Atomic uint32_t waiters;
	unsigned char *buffer; /* to read into */
	size_t buffer_bytes;
	char *names; /* of listings: LIST_BYTES behind the buffer */
	int64_t late_ns;
	uint32_t listed;      /* the open folder that was listed last */
	uint64_t listed_left; /* entries that its listing gave and nobody has asked for */
	uint64_t made, differing;
	uint32_t differs; /* the first operation that did, + 1 */
};

struct beginning { /* a thread begins once an operation has ended */
	uint32_t op, thread;
};

struct engine {
	struct replay_plan *p;
	const struct replay_image *image;
	const struct replay_options *o;
	struct performer *performer; /* of each thread of the job */
	_Atomic int *fd;             /* of each slot; -1 */
	struct beginning *begin;     /* of all threads that wait first, by what they wait for */
	size_t begins;
	unsigned char *bytes; /* that are written; of all threads */
	size_t bytes_most, bytes_room;
	int64_t origin_ns;
	_Atomic uint32_t started;
	_Atomic uint32_t active; /* threads; a futex word */
	_Atomic uint32_t failed; /* 1: `why` is being written, 2: it is */
	struct err why;
};

static bool ends(const struct engine *x)
{
	/* relaxed: only whether to go on */
	return atomic_load_explicit(&x->failed, memory_order_relaxed) || stop_is_set(x->o->stop);
}

static int64_t now_ns(const struct engine *x)
{
	return clock_now_ns() - x->origin_ns;
}

/* ---- failure ---- */

/* The first one counts. */
static bool may_fail(struct engine *x)
{
	uint32_t none = 0;

	return atomic_compare_exchange_strong_explicit(&x->failed, &none, 1, memory_order_relaxed,
						       memory_order_relaxed);
}

static void fail(struct performer *t, const struct job_event *v, int code, const char *what)
{
	struct engine *x = t->x;
	const char *path = v->file != JOB_NONE ? x->image->path[v->file] : NULL;

	if (!may_fail(x))
		return;
	err_sys(&x->why, code, "%s: cannot be %s, as the job did%s", path ? path : "a file", what,
		code == EMFILE ? " (more files are open at once than 'ulimit -n' allows)" : "");
}

/* ---- waiting ---- */

static void wait_until(struct engine *x, int64_t target_ns)
{
	for (;;) {
		int64_t now = now_ns(x), left = target_ns - now;

		if (left <= 0 || ends(x))
			return;
		if (left <= 2 * SPIN_NS) {
			while (now_ns(x) < target_ns)
				;
			return;
		}
		left -= SPIN_NS;
		clock_sleep_until(x->origin_ns + now +
				  (left < SLEEP_SLICE_NS ? left : SLEEP_SLICE_NS));
	}
}

/* Until operation `op` has ended: when. */
static int64_t await(struct engine *x, uint32_t op)
{
	const struct plan_op *o = &x->p->op[op];
	struct performer *other = &x->performer[x->p->job->event[o->event].thread];
	/* acquire: what it did is seen */
	int64_t end = atomic_load_explicit(&o->end_ns, memory_order_acquire);

	if (end != JOB_UNKNOWN)
		return end;
	/* sequentially consistent on both sides: either this one sees the end, or the other one
	 * sees that somebody waits */
	atomic_fetch_add_explicit(&other->waiters, 1, memory_order_seq_cst);
	for (;;) {
		uint32_t seen = atomic_load_explicit(&other->progress, memory_order_seq_cst);

		end = atomic_load_explicit(&o->end_ns, memory_order_acquire);
		if (end != JOB_UNKNOWN || ends(x))
			break;
		thread_wait(&other->progress, seen, SLEEP_SLICE_NS);
	}
	atomic_fetch_sub_explicit(&other->waiters, 1, memory_order_relaxed);
	return end;
}

static void publish(struct performer *t, struct plan_op *o, int64_t end_ns)
{
	atomic_store_explicit(&o->end_ns, end_ns, memory_order_release);
	atomic_fetch_add_explicit(&t->progress, 1, memory_order_seq_cst);
	if (atomic_load_explicit(&t->waiters, memory_order_seq_cst))
		thread_wake(&t->progress, INT32_MAX);
}

static int64_t scaled(const struct engine *x, int64_t ns)
{
	return (int64_t)fmin((double)ns * x->o->think_scale, (double)THINK_MAX_NS);
}

/* All that the operation waits for: `target_ns`, or the later time that one of them allows. */
static int64_t await_all(struct engine *x, const struct plan_op *o, int64_t target_ns)
{
	for (uint32_t i = 0; i < o->deps; i++) {
		const struct plan_dep *d = &x->p->dep[o->dep + i];
		int64_t end = await(x, d->op);

		if (end != JOB_UNKNOWN && end + scaled(x, d->lag_ns) > target_ns)
			target_ns = end + scaled(x, d->lag_ns);
	}
	return target_ns;
}

/* ---- requests ---- */

static int open_slot(struct performer *t, uint32_t slot)
{
	struct engine *x = t->x;
	const struct plan_slot *s = &x->p->slot[slot];
	int fd = atomic_load_explicit(&x->fd[slot], memory_order_acquire), none = -1;

	if (fd >= 0 || s->op != UINT32_MAX)
		return fd;
	/* no open in the log */
	fd = replay_image_open(x->image, s->file, s->writes ? O_RDWR | O_CREAT : O_RDONLY);
	if (fd >= 0 &&
	    !atomic_compare_exchange_strong_explicit(&x->fd[slot], &none, fd, memory_order_acq_rel,
						     memory_order_acquire)) {
		close(fd);
		fd = none;
	}
	return fd;
}

/* Where the file system has no O_TMPFILE. */
static int open_unnamed(const struct performer *t, uint32_t folder)
{
	AUTO_FREE char *name = xasprintf("unnamed-%ld-%u", (long)getpid(), t->number);
	int at = replay_image_open(t->x->image, folder, O_PATH | O_DIRECTORY), fd = -1;

	if (at < 0)
		return -1;
	fd = beneath_open(at, name, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd >= 0)
		unlinkat(at, name, 0);
	close(at);
	return fd;
}

static void differs(struct performer *t, const struct plan_op *o)
{
	if (t->differing++ == 0)
		t->differs = (uint32_t)(o - t->x->p->op) + 1;
}

/* A change that failed in the job is only looked up, as the system did then: here it could succeed,
 * and the files would be others from then on. */
static void do_failed(struct performer *t, struct plan_op *o, const struct job_event *v)
{
	struct stat st;
	int code = lstat(t->x->image->path[v->file], &st) < 0 ? errno : 0;

	o->result = v->result;
	if (v->result == -ENOENT && v->kind != JOB_RENAME && !(v->kind == JOB_OPEN) && code == 0)
		differs(t, o);
	if (v->result == -EEXIST && v->kind != JOB_LINK && code != 0)
		differs(t, o);
}

/* Opened by what the job did, but not by what was replayed: made by means that the log lacks, or
 * removed by others at the same time. It is made, and counted. */
static int open_missing(struct performer *t, const struct job_event *v, int flags)
{
	if (replay_image_restore(t->x->image, v->file) < 0)
		return -1;
	return replay_image_open(t->x->image, v->file, flags & ~O_EXCL);
}

static void do_open(struct performer *t, struct plan_op *o, const struct job_event *v)
{
	struct engine *x = t->x;
	bool expected = !job_failed(v);
	bool unnamed = (v->flags & O_TMPFILE) == O_TMPFILE; /* a file of the folder */
	int flags = (int)(v->flags & OPEN_FLAGS), fd;

	if (o->slot != PLAN_NO_SLOT && x->p->slot[o->slot].writes &&
	    (flags & O_ACCMODE) == O_RDONLY)
		flags = (flags & ~O_ACCMODE) | O_RDWR | O_CREAT;
	if (unnamed)
		flags = (int)(v->flags & (O_TMPFILE | O_ACCMODE | O_EXCL));
	else if (x->image->is_folder[v->file])
		flags = O_RDONLY | O_DIRECTORY;
	fd = replay_image_open(x->image, v->file, flags);
	/* flags that this file system does not have */
	if (fd < 0 && errno == EINVAL && flags & O_DIRECT)
		fd = replay_image_open(x->image, v->file, flags & ~O_DIRECT);
	if (fd < 0 && errno == EPERM && flags & O_NOATIME)
		fd = replay_image_open(x->image, v->file, flags & ~O_NOATIME);
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR) && unnamed)
		fd = open_unnamed(t, v->file);
	if (expected && fd < 0 && !unnamed && (errno == ENOENT || errno == EEXIST)) {
		if (x->image->place[v->file] != IMAGE_UNSEEN)
			differs(t, o);
		fd = open_missing(t, v, flags);
	}
	o->result = fd < 0 ? -errno : v->result;
	if (expected && fd < 0) {
		fail(t, v, errno, "opened");
		return;
	}
	if (!expected && fd >= 0)
		differs(t, o);
	if (o->slot != PLAN_NO_SLOT && fd >= 0)
		atomic_store_explicit(&x->fd[o->slot], fd, memory_order_release);
	else if (fd >= 0)
		close(fd);
}

static ssize_t transfer(const struct job_event *v, int fd, void *buffer, size_t n, int64_t at)
{
	if (v->kind == JOB_READ)
		return at >= 0 ? pread(fd, buffer, n, (off_t)at) : read(fd, buffer, n);
	return at >= 0 ? pwrite(fd, buffer, n, (off_t)at) : write(fd, buffer, n);
}

/* Threads write different bytes at a time: no storage finds them to be the same. */
static unsigned char *written_bytes(const struct performer *t)
{
	return t->x->bytes + (size_t)t->number * 4096 % BYTES_SHIFT;
}

static bool is_direct(const struct replay_plan *p, uint32_t slot)
{
	uint32_t op = p->slot[slot].op;

	return op != UINT32_MAX && p->job->event[p->op[op].event].flags & O_DIRECT;
}

static void do_transfer(struct performer *t, struct plan_op *o, const struct job_event *v)
{
	bool reads = v->kind == JOB_READ;
	int64_t want = v->result > 0 ? v->result : 0, ask = want, done = 0;
	int64_t offset = v->offset >= 0 ? v->offset : -1;
	int fd = o->slot == PLAN_NO_SLOT ? -1 : open_slot(t, o->slot);
	bool direct = fd >= 0 && is_direct(t->x->p, o->slot);

	if (fd < 0) {
		fail(t, v, errno ? errno : EBADF, reads ? "read" : "written");
		return;
	}
	/* more than came only where the file ends there, too; past the page cache all of it, as
	 * requests there have whole blocks */
	if (reads && direct && v->asked > ask && v->asked < REPLAY_TRANSFER_MAX)
		ask = v->asked;
	else if (reads && v->asked != JOB_UNKNOWN && v->asked > ask &&
		 v->asked < REPLAY_TRANSFER_MAX && offset >= 0 &&
		 offset + want >= t->x->p->job->file[v->file].size)
		ask = v->asked;
	do {
		size_t most = reads ? t->buffer_bytes : t->x->bytes_most;
		size_t n = ask - done < (int64_t)most ? (size_t)(ask - done) : most;
		ssize_t k = transfer(v, fd, reads ? t->buffer : written_bytes(t), n,
				     offset < 0 ? -1 : offset + done);

		if (k < 0 && errno == EINTR && !ends(t->x))
			continue;
		/* larger blocks than those of the job's file system */
		if (k < 0 && errno == EINVAL && direct) {
			direct = false;
			if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_DIRECT) == 0)
				continue;
			errno = EINVAL;
		}
		if (k < 0) {
			o->result = -errno;
			fail(t, v, errno, reads ? "read" : "written");
			return;
		}
		done += k;
		if (k == 0)
			break;
	} while (done < want && !ends(t->x));
	o->result = done;
	if (v->result != JOB_UNKNOWN && done != want)
		differs(t, o);
}

/* The log has entries (readdir, scandir) or bytes (getdents); libc asks the system for many entries
 * at once. A listing goes on where the one before of the same open folder ended. */
static void do_list(struct performer *t, struct plan_op *o, const struct job_event *v)
{
	uint64_t want = v->result > 0 ? (uint64_t)v->result : 1;
	int fd = o->slot == PLAN_NO_SLOT ? -1 : open_slot(t, o->slot);

	o->result = v->result;
	if (t->listed != o->slot)
		t->listed_left = 0;
	t->listed = o->slot;
	while (fd >= 0 && t->listed_left < want && !ends(t->x)) {
		long n = syscall(SYS_getdents64, fd, t->names, LIST_BYTES);

		if (n <= 0)
			break;
		for (long at = 0; at < n; t->listed_left++)
			at += ((struct dirent64 *)(void *)(t->names + at))->d_reclen;
	}
	t->listed_left -= want < t->listed_left ? want : t->listed_left;
}

/* Whether the answer to a question is that there is no such file. */
static bool is_missing(int64_t result)
{
	return result == -ENOENT || result == -ENOTDIR;
}

static int answer(int rc)
{
	return rc < 0 ? -errno : 0;
}

/* A change of names, in the folder that holds them. */
static int change_name(const struct replay_image *m, const struct job_event *v)
{
	const char *name, *other;
	int at = replay_image_at(m, v->file, &name), to, rc;

	if (at < 0)
		return -errno;
	if (v->kind == JOB_MAKE_DIR) {
		rc = answer(mkdirat(at, name, 0777));
	} else if (v->kind == JOB_UNLINK) {
		int how = m->is_folder[v->file] ? AT_REMOVEDIR : 0;

		rc = answer(unlinkat(at, name, how));
		/* the name was a folder and a file by turns */
		if (rc == -EISDIR || rc == -ENOTDIR)
			rc = answer(unlinkat(at, name, how ^ AT_REMOVEDIR));
	} else if ((to = replay_image_at(m, v->other, &other)) < 0) {
		rc = -errno;
	} else {
		rc = answer(v->kind == JOB_LINK ? linkat(at, name, to, other, 0)
						: renameat(at, name, to, other));
		close(to);
	}
	close(at);
	return rc;
}

static int cut_file(const struct replay_image *m, const struct job_event *v)
{
	int fd = replay_image_open(m, v->file, O_WRONLY), rc;

	if (fd < 0)
		return -errno;
	rc = answer(ftruncate(fd, (off_t)v->asked));
	close(fd);
	return rc;
}

static void do_other(struct performer *t, struct plan_op *o, const struct job_event *v)
{
	const struct replay_image *m = t->x->image;
	const char *path = m->path[v->file];
	int fd = o->slot == PLAN_NO_SLOT ? -1 : open_slot(t, o->slot), rc = 0;
	struct stat st;

	/* made by means that the log lacks: so it is now */
	if (m->place[v->file] == IMAGE_UNSEEN && !job_failed(v) && v->kind != JOB_CLOSE &&
	    v->kind != JOB_SEEK && access(path, F_OK) < 0 && errno == ENOENT)
		replay_image_restore(m, v->file);
	switch ((enum job_event_kind)v->kind) {
	case JOB_STAT:
		rc = answer(lstat(path, &st));
		break;
	case JOB_ACCESS:
		rc = answer(access(path, F_OK));
		break;
	case JOB_SEEK:
		if (v->offset >= 0 && fd >= 0)
			rc = answer(lseek(fd, (off_t)v->offset, SEEK_SET) < 0 ? -1 : 0);
		break;
	case JOB_SYNC:
		rc = fd >= 0 ? answer(fsync(fd)) : 0;
		break;
	case JOB_TRUNCATE:
		if (v->asked >= 0 && fd >= 0 && v->descriptor != JOB_NONE)
			rc = answer(ftruncate(fd, (off_t)v->asked));
		else if (v->asked >= 0)
			rc = cut_file(m, v);
		break;
	case JOB_RENAME:
	case JOB_UNLINK:
	case JOB_LINK:
	case JOB_MAKE_DIR:
		rc = change_name(m, v);
		break;
	case JOB_CLOSE:
		/* others may be within a request: then at the end of the replay */
		if (o->closes && fd >= 0 && !t->x->p->slot[o->slot].shared) {
			atomic_store_explicit(&t->x->fd[o->slot], -1, memory_order_relaxed);
			close(fd);
		}
		break;
	default:
		break;
	}
	o->result = rc < 0 ? rc : v->result;
	if ((rc == -EIO || rc == -ENOSPC || rc == -EDQUOT) && (v->result >= 0))
		fail(t, v, -rc, "changed");
	else if (v->kind == JOB_STAT || v->kind == JOB_ACCESS
			 ? is_missing(rc) != is_missing(v->result)
			 : (rc < 0) != job_failed(v))
		differs(t, o);
}

/* One that may change what others find. */
static bool is_change(const struct job_event *v)
{
	return v->kind == JOB_RENAME || v->kind == JOB_UNLINK || v->kind == JOB_MAKE_DIR ||
	       v->kind == JOB_LINK || v->kind == JOB_TRUNCATE ||
	       (v->kind == JOB_OPEN && v->flags & (O_CREAT | O_TRUNC));
}

static void request(struct performer *t, struct plan_op *o, const struct job_event *v)
{
	errno = 0;
	if (job_failed(v) && is_change(v))
		do_failed(t, o, v);
	else if (v->kind == JOB_OPEN)
		do_open(t, o, v);
	else if (v->kind == JOB_READ || v->kind == JOB_WRITE)
		do_transfer(t, o, v);
	else if (v->kind == JOB_LIST)
		do_list(t, o, v);
	else
		do_other(t, o, v);
}

/* ---- a thread ---- */

/* The time to begin at, less what came late before. */
static int64_t made_up(struct performer *t, int64_t ready_ns, int64_t target_ns)
{
	int64_t off = target_ns - ready_ns < t->late_ns ? target_ns - ready_ns : t->late_ns;

	if (off <= 0)
		return target_ns;
	t->late_ns -= off;
	return target_ns - off;
}

static void note_late(struct performer *t, int64_t begin_ns, int64_t target_ns)
{
	if (begin_ns > target_ns)
		t->late_ns += begin_ns - target_ns;
	LOWER(t->late_ns, LATE_MAX_NS);
}

/* One that only orders: what it waits for is what it takes, beside what it holds in any case. */
static void make_only(struct performer *t, struct plan_op *o, int64_t ready_ns)
{
	struct engine *x = t->x;
	int64_t target = made_up(t, ready_ns, ready_ns + scaled(x, o->think_ns));

	wait_until(x, target);
	o->begin_ns = now_ns(x);
	note_late(t, o->begin_ns, target);
	target = await_all(x, o, o->begin_ns + scaled(x, o->hold_ns));
	if (target > o->begin_ns)
		wait_until(x, target);
}

static void make_request(struct performer *t, struct plan_op *o, int64_t ready_ns,
			 const struct job_event *v)
{
	struct engine *x = t->x;
	int64_t target = await_all(x, o, ready_ns + scaled(x, o->think_ns));

	target = made_up(t, ready_ns, target);
	wait_until(x, target);
	o->begin_ns = now_ns(x);
	note_late(t, o->begin_ns, target);
	if (!ends(x))
		request(t, o, v);
}

/* What the end of a process closes. */
static void close_from(struct engine *x, uint32_t slot)
{
	for (; slot != PLAN_NO_SLOT; slot = x->p->slot[slot].next) {
		int fd = atomic_exchange_explicit(&x->fd[slot], -1, memory_order_relaxed);

		if (fd >= 0)
			close(fd);
	}
}

static void begin_waiting(struct performer *t, uint32_t op, int64_t end_ns);

static void perform_all(struct performer *t)
{
	struct engine *x = t->x;
	const struct plan_thread *r = &x->p->thread[t->number];
	int64_t ready = t->begins_ns;

	for (uint32_t next = r->first; next && !ends(x);) {
		struct plan_op *o = &x->p->op[next - 1];
		uint32_t op = next - 1;
		int64_t end;

		if (o->only)
			make_only(t, o, ready);
		else
			make_request(t, o, ready, &x->p->job->event[o->event]);
		if (ends(x))
			break;
		if (o->only)
			close_from(x, o->slot);
		end = now_ns(x);
		ready = end;
		t->made++;
		next = o->next;
		publish(t, o, end);
		if (o->begins)
			begin_waiting(t, op, end);
	}
}

static bool get_buffer(struct performer *t)
{
	int64_t most = t->x->p->thread[t->number].most_bytes;
	void *at;

	LOWER(most, REPLAY_TRANSFER_MAX);
	t->buffer_bytes = ((size_t)(most > 0 ? most : 1) + 4095) & ~(size_t)4095;
	/* not touched here: of a read of everything only what came is */
	at = mmap(NULL, t->buffer_bytes + LIST_BYTES, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED) {
		if (may_fail(t->x))
			err_set(&t->x->why, -ENOMEM,
				"no memory for requests of %zu bytes, as a thread of the job made",
				t->buffer_bytes);
		return false;
	}
	t->buffer = at;
	t->names = (char *)at + t->buffer_bytes;
	return true;
}

static void *perform(void *arg)
{
	struct performer *t = arg;
	struct engine *x = t->x;

	clock_precise_timers();
	while (!atomic_load_explicit(&x->started, memory_order_acquire))
		thread_wait(&x->started, 0, SLEEP_SLICE_NS);
	if (get_buffer(t)) {
		perform_all(t);
		munmap(t->buffer, t->buffer_bytes + LIST_BYTES);
	}
	/* release: what it did is seen; the last one wakes who waits for all */
	if (atomic_fetch_sub_explicit(&x->active, 1, memory_order_acq_rel) == 1)
		thread_wake(&x->active, INT32_MAX);
	return NULL;
}

static void begin_thread(struct engine *x, uint32_t thread, int64_t now)
{
	struct performer *t = &x->performer[thread];
	struct err why = {0};
	pthread_t id;

	t->begins_ns = now;
	atomic_fetch_add_explicit(&x->active, 1, memory_order_relaxed);
	if (thread_start(&id, perform, t, 0, "replay", &why) == 0) {
		pthread_detach(id);
		return;
	}
	atomic_fetch_sub_explicit(&x->active, 1, memory_order_relaxed);
	if (may_fail(x))
		x->why = why;
}

/* The threads of the job that wait for this operation before anything else. */
static void begin_waiting(struct performer *t, uint32_t op, int64_t end_ns)
{
	struct engine *x = t->x;
	size_t low = 0, high = x->begins;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (x->begin[middle].op < op)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < x->begins && x->begin[low].op == op; low++)
		begin_thread(x, x->begin[low].thread, end_ns);
}

/* ---- all ---- */

static int by_op(const void *a, const void *b)
{
	const struct beginning *x = a, *y = b;

	return ORDER(x->op, y->op) ?: ORDER(x->thread, y->thread);
}

/* One whose beginning is not known thinks from the begin of the job on. */
static bool begins_late(const struct replay_plan *p, const struct plan_thread *r)
{
	return r->first && p->op[r->first - 1].deps > 0 && p->op[r->first - 1].think_ns == 0;
}

/* A job may have many processes, but few at a time: a thread begins when that of the job can. */
static void find_beginnings(struct engine *x)
{
	for (uint32_t i = 0; i < x->p->job->threads; i++) {
		const struct plan_thread *r = &x->p->thread[i];
		uint32_t on;

		x->performer[i] = (struct performer){.x = x, .number = i, .listed = PLAN_NO_SLOT};
		if (!begins_late(x->p, r))
			continue;
		on = x->p->dep[x->p->op[r->first - 1].dep].op;
		x->p->op[on].begins = true;
		x->begin[x->begins++] = (struct beginning){on, i};
	}
	qsort(x->begin, x->begins, sizeof(*x->begin), by_op);
}

static int make_bytes(struct engine *x, struct err *e)
{
	int64_t most = 0;
	void *at;

	for (size_t i = 0; i < x->p->job->threads; i++)
		RAISE(most, x->p->thread[i].most_written);
	if (most == 0)
		return 0;
	x->bytes_most = (size_t)(most < REPLAY_TRANSFER_MAX ? most : REPLAY_TRANSFER_MAX);
	x->bytes_room = (x->bytes_most + BYTES_SHIFT + 4095) & ~(size_t)4095;
	at = mmap(NULL, x->bytes_room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED) {
		x->bytes_room = 0;
		return err_set(e, -ENOMEM, "no memory for writes of %zu bytes, as the job made",
			       x->bytes_most);
	}
	x->bytes = at;
	replay_image_fill(1, 0, x->bytes, x->bytes_room);
	return 0;
}

static int run(struct engine *x, struct replay_done *done, struct err *e)
{
	int rc = make_bytes(x, e);

	if (rc < 0)
		return rc;
	find_beginnings(x);
	for (uint32_t i = 0; i < x->p->job->threads; i++) {
		const struct plan_thread *r = &x->p->thread[i];

		if (r->first && !begins_late(x->p, r))
			begin_thread(x, i, 0);
	}
	x->origin_ns = clock_now_ns();
	/* release: the origin belongs to it */
	atomic_store_explicit(&x->started, 1, memory_order_release);
	thread_wake(&x->started, INT32_MAX);
	for (uint32_t n; (n = atomic_load_explicit(&x->active, memory_order_acquire)) > 0;)
		thread_wait(&x->active, n, SLEEP_SLICE_NS);
	for (size_t i = 0; i < x->p->job->threads; i++) {
		const struct performer *t = &x->performer[i];

		done->ops += t->made;
		done->differing += t->differing;
		if (t->differing && t->differs < done->differs)
			done->differs = t->differs;
	}
	done->wall_ns = now_ns(x);
	if (atomic_load_explicit(&x->failed, memory_order_relaxed)) {
		rc = x->why.code;
		if (e)
			*e = x->why;
	}
	done->stopped = stop_is_set(x->o->stop);
	return rc;
}

int replay_run(struct replay_plan *p, const struct replay_image *image,
	       const struct replay_options *o, struct replay_done *done, struct err *e)
{
	struct engine x = {.p = p, .image = image, .o = o};
	int rc;

	*done = (struct replay_done){.differs = UINT32_MAX};
	clock_init();
	file_allow_more();
	x.performer = try_calloc(p->job->threads + 1, sizeof(*x.performer), "the threads", e);
	x.fd = try_calloc((size_t)p->slots + 1, sizeof(*x.fd), "the open files", e);
	x.begin = try_calloc(p->job->threads + 1, sizeof(*x.begin), "the threads", e);
	if (!x.performer || !x.fd || !x.begin) {
		rc = -ENOMEM;
	} else {
		for (uint32_t i = 0; i < p->slots; i++)
			atomic_init(&x.fd[i], -1);
		rc = run(&x, done, e);
		for (uint32_t i = 0; i < p->slots; i++) {
			int fd = atomic_load_explicit(&x.fd[i], memory_order_relaxed);

			if (fd >= 0)
				close(fd);
		}
	}
	if (x.bytes_room)
		munmap(x.bytes, x.bytes_room);
	free(x.performer);
	free(x.begin);
	free(x.fd);
	return rc;
}

/* ---- what was made, as a job ---- */

/* The same numbers come out because names were told apart in the same way. */
static void copy_tables(const struct job *from, struct job *out)
{
	out->sees = from->sees & ~(unsigned)JOB_SEES_COUNTS;
	out->source = from->source;
	for (size_t i = 0; i < from->files; i++) {
		uint32_t k = job_file(out, from->file[i].name, from->file[i].kind);

		out->file[k].size = from->file[i].size;
		out->file[k].deleted = from->file[i].deleted;
	}
	for (size_t i = 0; i < from->processes; i++) {
		const struct job_process *p = &from->process[i];
		uint32_t k = job_process(out, p->pid, p->host, JOB_NONE);

		out->process[k].parent = p->parent;
		out->process[k].rank = p->rank;
		out->process[k].complete = p->complete;
		out->process[k].command = job_text(out, p->command);
	}
	for (size_t i = 0; i < from->threads; i++)
		job_add_thread(out, from->thread[i].process, from->thread[i].tid);
}

/* A process lives from its first operation to its last. */
static void extend_life(struct job *out, const struct job_event *v)
{
	struct job_process *p = &out->process[out->thread[v->thread].process];

	if (p->begin_ns == JOB_UNKNOWN || v->begin_ns < p->begin_ns)
		p->begin_ns = v->begin_ns;
	RAISE(p->end_ns, v->end_ns);
}

int replay_job(const struct replay_plan *p, struct job *out, struct err *e)
{
	int rc = 0;

	job_init(out);
	copy_tables(p->job, out);
	for (uint32_t i = 0; i < p->ops && rc == 0; i++) {
		const struct plan_op *o = &p->op[i];
		struct job_event v = p->job->event[o->event];
		/* the threads have ended */
		int64_t end = atomic_load_explicit(&o->end_ns, memory_order_relaxed);

		if (end == JOB_UNKNOWN)
			continue;
		v.begin_ns = o->begin_ns;
		v.end_ns = end;
		if (!o->only)
			v.result = o->result;
		extend_life(out, &v);
		rc = job_add(out, &v, e);
	}
	return rc < 0 ? rc : job_finish(out, e);
}
