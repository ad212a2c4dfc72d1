/* The engine of a replay: threads that wait for each other's operations, think, and ask. */
#include "jobtrace/replay.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

/* A wait ends this much earlier than it should and is spun to its end: a sleeper wakes late. */
#define SPIN_NS 70000
#define SLEEP_SLICE_NS (NS_PER_S / 10)
/* What came late by a slow wake-up is taken off later thinking, up to this. */
#define LATE_MAX_NS 10000000
#define THINK_MAX_NS (INT64_C(1) << 60)
#define OPEN_FLAGS                                                                                 \
	(O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_DIRECTORY | O_SYNC | O_DSYNC |      \
	 O_DIRECT | O_NOATIME)

struct performer { /* a thread */
	struct engine *x;
	uint32_t number; /* of the job's thread */
	pthread_t id;
	_Atomic uint32_t progress; /* operations made; a futex word */
	_Atomic uint32_t waiters;
	unsigned char *buffer;
	size_t buffer_bytes;
	int64_t late_ns;
	uint32_t listed; /* the folder that was listed last */
	uint64_t made, differing;
};

struct engine {
	struct replay_plan *p;
	const struct replay_image *image;
	const struct replay_options *o;
	struct performer *performer; /* of each thread of the job */
	_Atomic int *fd;             /* of each slot; -1 */
	int64_t origin_ns;
	_Atomic uint32_t started;
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

/* ---- requests ---- */

static int open_slot(struct performer *t, uint32_t slot)
{
	struct engine *x = t->x;
	const struct plan_slot *s = &x->p->slot[slot];
	const char *path = x->image->path[s->file];
	int fd = atomic_load_explicit(&x->fd[slot], memory_order_acquire), none = -1;

	if (fd >= 0 || s->op != UINT32_MAX)
		return fd;
	/* no open in the log */
	fd = open(path, (s->writes ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC, 0666);
	if (fd >= 0 &&
	    !atomic_compare_exchange_strong_explicit(&x->fd[slot], &none, fd, memory_order_acq_rel,
						     memory_order_acquire)) {
		close(fd);
		fd = none;
	}
	return fd;
}

/* Where the file system has no O_TMPFILE. */
static int open_unnamed(const char *folder)
{
	AUTO_FREE char *name = xasprintf("%s/unnamed-XXXXXX", folder);
	int fd = mkostemp(name, O_CLOEXEC);

	if (fd >= 0)
		unlink(name);
	return fd;
}

static void do_open(struct performer *t, struct plan_op *o, const struct job_event *v)
{
	struct engine *x = t->x;
	bool expected = v->result >= 0 || v->result == JOB_UNKNOWN;
	bool unnamed = (v->flags & O_TMPFILE) == O_TMPFILE; /* a file of the folder */
	int flags = (int)(v->flags & OPEN_FLAGS), fd;

	if (o->slot != PLAN_NO_SLOT && x->p->slot[o->slot].writes &&
	    (flags & O_ACCMODE) == O_RDONLY)
		flags = (flags & ~O_ACCMODE) | O_RDWR | O_CREAT;
	if (unnamed)
		flags = (int)(v->flags & (O_TMPFILE | O_ACCMODE | O_EXCL));
	else if (x->image->is_folder[v->file])
		flags = O_RDONLY | O_DIRECTORY;
	fd = open(x->image->path[v->file], flags | O_CLOEXEC, 0666);
	/* flags that this file system does not have */
	if (fd < 0 && errno == EINVAL && flags & O_DIRECT)
		fd = open(x->image->path[v->file], (flags & ~O_DIRECT) | O_CLOEXEC, 0666);
	if (fd < 0 && errno == EPERM && flags & O_NOATIME)
		fd = open(x->image->path[v->file], (flags & ~O_NOATIME) | O_CLOEXEC, 0666);
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR) && unnamed)
		fd = open_unnamed(x->image->path[v->file]);
	o->result = fd < 0 ? -errno : v->result;
	if (expected && fd < 0) {
		fail(t, v, errno, "opened");
		return;
	}
	t->differing += !expected && fd >= 0;
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

static void do_transfer(struct performer *t, struct plan_op *o, const struct job_event *v)
{
	bool reads = v->kind == JOB_READ;
	int64_t want = v->result > 0 ? v->result : 0, ask = want, done = 0;
	int64_t offset = v->offset >= 0 ? v->offset : -1;
	int fd = o->slot == PLAN_NO_SLOT ? -1 : open_slot(t, o->slot);

	if (fd < 0) {
		fail(t, v, errno ? errno : EBADF, reads ? "read" : "written");
		return;
	}
	/* more than came only where the file ends there, too */
	if (reads && v->asked != JOB_UNKNOWN && v->asked > ask && v->asked < REPLAY_TRANSFER_MAX &&
	    offset >= 0 && offset + want >= t->x->p->job->file[v->file].size)
		ask = v->asked;
	do {
		size_t n = ask - done < (int64_t)t->buffer_bytes ? (size_t)(ask - done)
								 : t->buffer_bytes;
		ssize_t k = transfer(v, fd, t->buffer, n, offset < 0 ? -1 : offset + done);

		if (k < 0 && errno == EINTR && !ends(t->x))
			continue;
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
	t->differing += v->result != JOB_UNKNOWN && done != want;
}

static void do_list(struct performer *t, const struct job_event *v)
{
	DIR *d;

	/* a listing is several calls in the log */
	if (t->listed == v->file)
		return;
	d = opendir(t->x->image->path[v->file]);
	while (d && readdir(d))
		;
	if (d)
		closedir(d);
	t->listed = v->file;
}

static int answer(int rc)
{
	return rc < 0 ? -errno : 0;
}

static void do_other(struct performer *t, struct plan_op *o, const struct job_event *v)
{
	const struct replay_image *m = t->x->image;
	const char *path = m->path[v->file];
	int fd = o->slot == PLAN_NO_SLOT ? -1 : open_slot(t, o->slot), rc = 0;
	bool folder = m->is_folder[v->file];
	struct stat st;

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
		if (v->asked >= 0 && fd >= 0)
			rc = answer(ftruncate(fd, (off_t)v->asked));
		break;
	case JOB_RENAME:
		rc = answer(rename(path, m->path[v->other]));
		break;
	case JOB_UNLINK:
		rc = answer(folder ? rmdir(path) : unlink(path));
		break;
	case JOB_MAKE_DIR:
		rc = answer(mkdir(path, 0777));
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
	else
		t->differing += (rc < 0) != (v->result < 0 && v->result != JOB_UNKNOWN);
}

static void request(struct performer *t, struct plan_op *o, const struct job_event *v)
{
	errno = 0;
	if (v->kind != JOB_LIST)
		t->listed = JOB_NONE;
	if (v->kind == JOB_OPEN)
		do_open(t, o, v);
	else if (v->kind == JOB_READ || v->kind == JOB_WRITE)
		do_transfer(t, o, v);
	else if (v->kind == JOB_LIST)
		do_list(t, v);
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
	if (t->late_ns > LATE_MAX_NS)
		t->late_ns = LATE_MAX_NS;
}

/* One that only orders: what it waits for is what it takes, beside what it holds in any case. */
static void make_only(struct performer *t, struct plan_op *o, int64_t ready_ns)
{
	struct engine *x = t->x;
	int64_t target = made_up(t, ready_ns, ready_ns + scaled(x, o->think_ns));

	wait_until(x, target);
	o->begin_ns = now_ns(x);
	note_late(t, o->begin_ns, target);
	target = o->begin_ns + scaled(x, o->hold_ns);
	for (uint32_t i = 0; i < o->deps; i++) {
		const struct plan_dep *d = &x->p->dep[o->dep + i];
		int64_t end = await(x, d->op);

		if (end != JOB_UNKNOWN && end + scaled(x, d->lag_ns) > target)
			target = end + scaled(x, d->lag_ns);
	}
	if (target > o->begin_ns)
		wait_until(x, target);
}

static void make_request(struct performer *t, struct plan_op *o, int64_t ready_ns,
			 const struct job_event *v)
{
	struct engine *x = t->x;
	int64_t target = ready_ns + scaled(x, o->think_ns);

	for (uint32_t i = 0; i < o->deps; i++) {
		const struct plan_dep *d = &x->p->dep[o->dep + i];
		int64_t end = await(x, d->op);

		if (end != JOB_UNKNOWN && end + scaled(x, d->lag_ns) > target)
			target = end + scaled(x, d->lag_ns);
	}
	target = made_up(t, ready_ns, target);
	wait_until(x, target);
	o->begin_ns = now_ns(x);
	note_late(t, o->begin_ns, target);
	if (!ends(x))
		request(t, o, v);
}

static void *perform(void *arg)
{
	struct performer *t = arg;
	struct engine *x = t->x;
	const struct plan_thread *r = &x->p->thread[t->number];
	int64_t ready = 0;

	clock_precise_timers();
	while (!atomic_load_explicit(&x->started, memory_order_acquire))
		thread_wait(&x->started, 0, SLEEP_SLICE_NS);
	for (uint32_t next = r->first; next && !ends(x);) {
		struct plan_op *o = &x->p->op[next - 1];
		const struct job_event *v = &x->p->job->event[o->event];
		int64_t end;

		if (o->only)
			make_only(t, o, ready);
		else
			make_request(t, o, ready, v);
		if (ends(x))
			break;
		end = now_ns(x);
		ready = end;
		t->made++;
		next = o->next;
		publish(t, o, end);
	}
	return NULL;
}

/* ---- all ---- */

static int get_buffer(struct performer *t, const struct plan_thread *r, struct err *e)
{
	int64_t most = r->most_bytes < REPLAY_TRANSFER_MAX ? r->most_bytes : REPLAY_TRANSFER_MAX;
	void *at;

	t->buffer_bytes = ((size_t)(most > 0 ? most : 1) + 4095) & ~(size_t)4095;
	/* not touched here: of a read of everything only what came is */
	at = mmap(NULL, t->buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		  0);
	if (at == MAP_FAILED)
		return err_set(e, -ENOMEM,
			       "no memory for requests of %zu bytes, as a thread of the job made",
			       t->buffer_bytes);
	t->buffer = at;
	if (r->writes)
		replay_image_fill(t->number + 1, 0, t->buffer, t->buffer_bytes);
	return 0;
}

static void raise_files(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

static int start_threads(struct engine *x, size_t *started, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < x->p->job->threads && rc == 0; i++) {
		struct performer *t = &x->performer[i];

		*started = i;
		if (x->p->thread[i].ops == 0)
			continue;
		*t = (struct performer){.x = x, .number = (uint32_t)i, .listed = JOB_NONE};
		rc = get_buffer(t, &x->p->thread[i], e);
		if (rc == 0)
			rc = thread_start(&t->id, perform, t, 0, "replay", e);
		if (rc < 0 && t->buffer)
			munmap(t->buffer, t->buffer_bytes);
		if (rc == 0)
			*started = i + 1;
	}
	return rc;
}

static int run(struct engine *x, struct replay_done *done, struct err *e)
{
	size_t started = 0;
	int rc = start_threads(x, &started, e);

	if (rc < 0)
		atomic_store_explicit(&x->failed, 1, memory_order_relaxed);
	x->origin_ns = clock_now_ns();
	/* release: the origin belongs to it */
	atomic_store_explicit(&x->started, 1, memory_order_release);
	thread_wake(&x->started, INT32_MAX);
	for (size_t i = 0; i < started; i++) {
		struct performer *t = &x->performer[i];

		if (x->p->thread[i].ops == 0)
			continue;
		pthread_join(t->id, NULL);
		munmap(t->buffer, t->buffer_bytes);
		done->ops += t->made;
		done->differing += t->differing;
	}
	done->wall_ns = now_ns(x);
	if (rc == 0 && atomic_load_explicit(&x->failed, memory_order_relaxed)) {
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

	*done = (struct replay_done){0};
	clock_init();
	raise_files();
	x.performer = try_calloc(p->job->threads + 1, sizeof(*x.performer), "the threads", e);
	x.fd = try_calloc((size_t)p->slots + 1, sizeof(*x.fd), "the open files", e);
	if (!x.performer || !x.fd) {
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
	free(x.performer);
	free(x.fd);
	return rc;
}
