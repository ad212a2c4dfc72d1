/* From the events of a job to the operations of its replay. The events are gone through once in the
 * order of their begin; what waits can only wait for what ended, in the log, before it began, so
 * that no circle can arise. Three kinds may wait for what went on at the same time: waits, for what
 * ended before them (at the same time: what began before them); reads of pipes and the making of a
 * name, for a write or removal that began before they ended, which wait for nothing of that sort
 * themselves. So, along what waits for what, from one of these to the next the ends descend. */
#include "trace/replay/replay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/heap.h"
#include "base/vector.h"

#define RECENT 6 /* threads of a process whose last operations are at hand */
#define NONE UINT32_MAX
/* Descriptors of parents that are looked at in all; later children inherit none. */
#define INHERITED_MAX (UINT64_C(1) << 26)

struct last { /* the last operation of somebody */
	uint32_t thread, op;
	uint32_t before; /* of a process: that thread's one before it */
};

/* A thread that used a file since its last change. */
struct user {
	uint32_t thread, op;
	uint32_t next; /* + 1 */
};
/* So many of a file are looked through; further ones are kept twice. */
#define USERS_SEARCHED 8

/* A wait of the log whose end the events have not come to. */
struct waiting {
	int64_t end_ns;
	uint32_t op;
};

/* What is known of each while the events are gone through. */
struct of_thread {
	int64_t ready_ns; /* end of the last operation, or of the last wait */
	uint32_t op;      /* the last; NONE */
	bool begun;
};

struct of_process {
	struct last recent[RECENT];
	uint32_t fork; /* the operation that made it */
	uint32_t held; /* its first descriptor in the table, + 1 */
};

struct of_file {
	struct last change;
	struct last removal; /* the last one that took the name away */
	uint32_t users;      /* + 1: since that change */
	uint32_t told;       /* the thread that waited for this change already */
	bool changes;        /* at any time: else nobody needs to know who uses it */
	bool exists;         /* as far as is known */
	uint32_t made_anew;  /* the operation that made it although it existed: its removal is
			      * still to come; NONE */
};

/* A descriptor of a process. */
struct held {
	uint32_t descriptor, slot;
	uint32_t sibling; /* of the same process, + 1 */
};

struct planner {
	struct replay_plan *p;
	const struct job *job;
	struct of_thread *thread;
	struct of_process *process;
	struct of_file *file;
	struct held *held;
	size_t helds, held_room;
	struct map held_at;     /* by process and descriptor */
	uint32_t *free_slot_of; /* of each file: the slot that is opened at first use */
	uint32_t *refs;         /* of each slot */
	struct last *slot_use;  /* of each slot */
	size_t ref_room, use_room;
	const struct replay_names *names;
	struct user *user; /* of all files */
	size_t users, user_room;
	uint32_t free_user;      /* + 1 */
	struct waiting *waiting; /* a heap: the first one to end in front */
	size_t waitings, waiting_room;
	int64_t origin_ns;
	uint64_t inherited;
	struct err *e;
	int rc;
};

static struct plan_op *op_at(struct planner *m, uint32_t i)
{
	return &m->p->op[i];
}

/* Room for one more of the array `v` of n elements; false, and the plan has failed, without memory.
 */
#define MORE(m, v, n, room, what)                                                                  \
	((m)->rc == 0 && ((m)->rc = VECTOR_TRY(v, n, room, 1, what " of the replay", (m)->e)) == 0)

/* ---- dependencies ---- */

static void wait_for(struct planner *m, uint32_t op, uint32_t on, int64_t lag_ns)
{
	struct replay_plan *p = m->p;
	struct plan_op *o = op_at(m, op);

	if (on == NONE || on == op || m->rc < 0)
		return;
	for (uint32_t i = 0; i < o->deps; i++)
		if (p->dep[o->dep + i].op == on) {
			RAISE(p->dep[o->dep + i].lag_ns, lag_ns);
			return;
		}
	if (p->deps == UINT32_MAX - 1) {
		m->rc = err_set(m->e, -EFBIG, "the log has more dependencies than are replayed");
		return;
	}
	if (!MORE(m, p->dep, p->deps, p->dep_room, "dependencies"))
		return;
	if (o->deps == 0)
		o->dep = p->deps;
	p->dep[p->deps++] = (struct plan_dep){.op = on, .lag_ns = lag_ns > 0 ? lag_ns : 0};
	o->deps++;
}

/* One that had ended when `op` began. */
static void wait_for_ended(struct planner *m, uint32_t op, struct last on)
{
	if (on.op != NONE && on.thread != m->job->event[op_at(m, op)->event].thread &&
	    op_at(m, on.op)->log_end_ns <= op_at(m, op)->log_begin_ns)
		wait_for(m, op, on.op, 0);
}

static void remember(struct of_process *p, const struct replay_plan *plan, struct last l)
{
	size_t oldest = 0;

	l.before = NONE;
	for (size_t i = 0; i < RECENT; i++) {
		if (p->recent[i].op == NONE || p->recent[i].thread == l.thread) {
			l.before = p->recent[i].op;
			p->recent[i] = l;
			return;
		}
		if (plan->op[p->recent[i].op].log_end_ns <
		    plan->op[p->recent[oldest].op].log_end_ns)
			oldest = i;
	}
	p->recent[oldest] = l;
}

/* The operation of another thread of `process` that ended last in (after, until]; NONE. `going`:
 * also of threads that had begun another one. */
static uint32_t ended_last(struct planner *m, uint32_t process, uint32_t thread, int64_t after,
			   int64_t until, bool going)
{
	const struct of_process *p = &m->process[process];
	uint32_t best = NONE;

	for (size_t i = 0; i < RECENT; i++) {
		uint32_t op = p->recent[i].op;

		if (op == NONE || p->recent[i].thread == thread)
			continue;
		if (going && op_at(m, op)->log_end_ns > until)
			op = p->recent[i].before;
		if (op == NONE)
			continue;
		if (op_at(m, op)->log_end_ns > after && op_at(m, op)->log_end_ns <= until &&
		    (best == NONE || op_at(m, op)->log_end_ns > op_at(m, best)->log_end_ns))
			best = op;
	}
	return best;
}

/* ---- open files ---- */

static struct held *find_held(struct planner *m, uint32_t process, uint32_t descriptor)
{
	uint32_t i = map_get2(&m->held_at, process, descriptor);

	return i == MAP_NONE ? NULL : &m->held[i];
}

static void hold(struct planner *m, uint32_t process, uint32_t descriptor, uint32_t slot)
{
	struct held *h = find_held(m, process, descriptor);

	if (slot != PLAN_NO_SLOT)
		m->refs[slot]++;
	if (h) {
		/* closed unseen; what it was stays open */
		h->slot = slot;
		return;
	}
	if (!MORE(m, m->held, m->helds, m->held_room, "descriptors"))
		return;
	m->held[m->helds] = (struct held){descriptor, slot, m->process[process].held};
	map_put2(&m->held_at, process, descriptor, (uint32_t)m->helds);
	m->process[process].held = (uint32_t)++m->helds;
}

static uint32_t new_slot(struct planner *m, uint32_t file, uint32_t thread, uint32_t op)
{
	struct replay_plan *p = m->p;

	if (!MORE(m, p->slot, p->slots, p->slot_room, "open files") ||
	    !MORE(m, m->refs, p->slots, m->ref_room, "open files") ||
	    !MORE(m, m->slot_use, p->slots, m->use_room, "open files"))
		return PLAN_NO_SLOT;
	p->slot[p->slots] =
		(struct plan_slot){.file = file, .thread = thread, .op = op, .next = PLAN_NO_SLOT};
	m->refs[p->slots] = 0;
	m->slot_use[p->slots] = (struct last){NONE, NONE, NONE};
	return p->slots++;
}

/* A child has its parent's descriptors. Only those of files are known. */
static void inherit(struct planner *m, uint32_t parent, uint32_t child)
{
	if (m->process[child].fork != NONE)
		return;
	for (uint32_t i = m->process[parent].held; i && m->rc == 0; i = m->held[i - 1].sibling) {
		if (m->inherited++ >= INHERITED_MAX)
			return;
		if (m->held[i - 1].slot != PLAN_NO_SLOT)
			hold(m, child, m->held[i - 1].descriptor, m->held[i - 1].slot);
	}
}

/* Of an event on an open file. */
static uint32_t slot_of(struct planner *m, const struct job_event *v)
{
	uint32_t process = m->job->thread[v->thread].process;
	struct held *h = v->descriptor != JOB_NONE ? find_held(m, process, v->descriptor) : NULL;

	if (h && h->slot != PLAN_NO_SLOT && m->p->slot[h->slot].file == v->file)
		return h->slot;
	/* opened before the log began, or by a call that it does not record */
	if (m->free_slot_of[v->file] == PLAN_NO_SLOT)
		m->free_slot_of[v->file] = new_slot(m, v->file, v->thread, NONE);
	return m->free_slot_of[v->file];
}

/* ---- operations ---- */

static bool is_stored(const struct planner *m, uint32_t file)
{
	return file != JOB_NONE && job_is_stored(&m->job->file[file]);
}

static bool is_pipe(const struct planner *m, const struct job_event *v)
{
	return v->file != JOB_NONE && m->job->file[v->file].kind == JOB_FILE_PIPE &&
	       (v->kind == JOB_READ || v->kind == JOB_WRITE);
}

/* What failed changed nothing. */
static bool changes(const struct job_event *v)
{
	return !job_failed(v) &&
	       (v->kind == JOB_WRITE || v->kind == JOB_TRUNCATE || v->kind == JOB_RENAME ||
		v->kind == JOB_UNLINK || v->kind == JOB_MAKE_DIR || v->kind == JOB_LINK ||
		(v->kind == JOB_OPEN && v->flags & (O_CREAT | O_TRUNC)));
}

/* Whether the event becomes an operation, and whether one of which only the place counts. */
static bool is_taken(const struct planner *m, const struct job_event *v, bool *only)
{
	*only = false;
	switch ((enum job_event_kind)v->kind) {
	case JOB_OPEN:
	case JOB_STAT:
	case JOB_ACCESS:
	case JOB_UNLINK:
	case JOB_MAKE_DIR:
	case JOB_LIST:
		return is_stored(m, v->file);
	case JOB_RENAME:
	case JOB_LINK:
		return is_stored(m, v->file) && v->other != JOB_NONE && v->other < m->job->files &&
		       is_stored(m, v->other);
	case JOB_READ:
	case JOB_WRITE:
		*only = is_pipe(m, v);
		return *only || (is_stored(m, v->file) && !job_failed(v));
	case JOB_CLOSE:
	case JOB_SEEK:
	case JOB_SYNC:
	case JOB_TRUNCATE:
		return is_stored(m, v->file) && !job_failed(v);
	case JOB_FORK:
	case JOB_EXIT:
	case JOB_WAIT:
		*only = true;
		return true;
	case JOB_MAP:
	case JOB_UNMAP:
	case JOB_ADVISE:
	case JOB_EXEC:
	case JOB_COMPUTE:
	case JOB_MARK:
	case JOB_KINDS:
		break;
	}
	return false;
}

/* The first operation of a thread: who made it? */
static void begin_thread(struct planner *m, uint32_t op, uint32_t thread)
{
	uint32_t process = m->job->thread[thread].process;
	uint32_t parent = m->job->process[process].parent;
	struct plan_op *o = op_at(m, op);
	uint32_t on = ended_last(m, process, thread, INT64_MIN, o->log_begin_ns, false);

	if (on == NONE)
		on = m->process[process].fork;
	if (on == NONE && parent != JOB_NONE && parent < m->job->processes)
		on = ended_last(m, parent, thread, INT64_MIN, o->log_begin_ns, false);
	if (on == NONE)
		o->think_ns = o->log_begin_ns - m->origin_ns;
	else
		wait_for(m, op, on, o->log_begin_ns - op_at(m, on)->log_end_ns);
}

/* How long the thread thought, and for whom of its process it may have waited. */
static void set_think(struct planner *m, uint32_t op, const struct job_event *v)
{
	uint32_t process = m->job->thread[v->thread].process;
	struct of_thread *t = &m->thread[v->thread];
	struct plan_op *o = op_at(m, op);
	int64_t gap = o->log_begin_ns - t->ready_ns;
	uint32_t on = NONE;

	if (!t->begun) {
		begin_thread(m, op, v->thread);
		return;
	}
	o->think_ns = gap > 0 ? gap : 0;
	if (gap > PLAN_GAP_NS)
		on = ended_last(m, process, v->thread, t->ready_ns, o->log_begin_ns, false);
	if (on == NONE)
		return;
	o->think_ns = 0;
	wait_for(m, op, on, o->log_begin_ns - op_at(m, on)->log_end_ns);
}

/* ---- waits of the log ---- */

static void wait_for_late(struct planner *m, uint32_t op, uint32_t on, int64_t lag_ns);

/* For a child, for another thread, or for whoever writes the pipe that is read next: for what
 * ended last before it. Of several that end at once, the earlier ones are waited for only. */
static void plan_wait(struct planner *m, uint32_t op)
{
	struct plan_op *o = op_at(m, op);
	const struct job_event *v = &m->job->event[o->event];
	uint32_t process = m->job->thread[v->thread].process, on = NONE;

	if (v->other != JOB_NONE && v->other < m->job->processes && v->other != process)
		on = ended_last(m, v->other, NONE, INT64_MIN, o->log_end_ns, true);
	if (on == NONE)
		on = ended_last(m, process, v->thread, o->log_begin_ns, o->log_end_ns, true);
	if (on != NONE && (op_at(m, on)->log_end_ns < o->log_end_ns || on < op))
		wait_for_late(m, op, on, o->log_end_ns - op_at(m, on)->log_end_ns);
	else
		o->hold_ns = o->log_end_ns - o->log_begin_ns;
}

static bool earlier(const void *a, const void *b, const void *of)
{
	const struct waiting *x = a, *y = b;

	(void)of;
	return x->end_ns != y->end_ns ? x->end_ns < y->end_ns : x->op < y->op;
}

/* It is planned once what ends before it is known. */
static void plan_wait_later(struct planner *m, uint32_t op)
{
	if (!MORE(m, m->waiting, m->waitings, m->waiting_room, "waits"))
		return;
	m->waiting[m->waitings++] = (struct waiting){op_at(m, op)->log_end_ns, op};
	heap_add(m->waiting, m->waitings, sizeof(*m->waiting), earlier, NULL);
}

static void plan_waits_until(struct planner *m, int64_t now_ns)
{
	while (m->waitings > 0 && m->waiting[0].end_ns <= now_ns && m->rc == 0) {
		uint32_t op = m->waiting[0].op;

		heap_take(m->waiting, m->waitings--, sizeof(*m->waiting), earlier, NULL);
		plan_wait(m, op);
	}
}

/* ---- files ---- */

static void plan_open(struct planner *m, uint32_t op, const struct job_event *v)
{
	uint32_t process = m->job->thread[v->thread].process;
	uint32_t descriptor =
		v->result >= 0 && v->result <= INT32_MAX ? (uint32_t)v->result : v->descriptor;
	struct plan_op *o = op_at(m, op);
	uint32_t slot;

	if (job_failed(v))
		return;
	slot = new_slot(m, v->file, v->thread, op);
	if (m->rc < 0)
		return;
	m->p->slot[slot].writes = (v->flags & O_ACCMODE) != O_RDONLY;
	o = op_at(m, op);
	o->slot = slot;
	if (descriptor != JOB_NONE)
		hold(m, process, descriptor, slot);
}

static void use_slot(struct planner *m, uint32_t op, const struct job_event *v)
{
	uint32_t process = m->job->thread[v->thread].process;
	uint32_t slot = slot_of(m, v);
	struct plan_slot *s;
	struct held *h;

	if (m->rc < 0 || slot == PLAN_NO_SLOT)
		return;
	s = &m->p->slot[slot];
	op_at(m, op)->slot = slot;
	s->shared = s->shared || s->thread != v->thread;
	s->writes = s->writes || v->kind == JOB_WRITE || v->kind == JOB_TRUNCATE;
	if (s->op != NONE)
		wait_for_ended(m, op, (struct last){s->thread, s->op, NONE});
	wait_for_ended(m, op,
		       v->kind == JOB_CLOSE ? m->slot_use[slot] : (struct last){NONE, NONE, NONE});
	m->slot_use[slot] = (struct last){v->thread, op, NONE};
	if (v->kind != JOB_CLOSE || s->op == NONE)
		return;
	h = v->descriptor != JOB_NONE ? find_held(m, process, v->descriptor) : NULL;
	if (h && h->slot == slot) {
		h->slot = PLAN_NO_SLOT;
		if (m->refs[slot] > 0 && --m->refs[slot] == 0)
			op_at(m, op)->closes = true;
	} else if (v->descriptor == JOB_NONE) {
		op_at(m, op)->closes = true;
	}
}

static void add_user(struct planner *m, struct of_file *f, uint32_t thread, uint32_t op)
{
	uint32_t i = f->users;

	for (int n = 0; i && n < USERS_SEARCHED; n++, i = m->user[i - 1].next)
		if (m->user[i - 1].thread == thread) {
			m->user[i - 1].op = op;
			return;
		}
	i = m->free_user;
	if (i) {
		m->free_user = m->user[i - 1].next;
	} else {
		if (!MORE(m, m->user, m->users, m->user_room, "files"))
			return;
		i = (uint32_t)++m->users;
	}
	m->user[i - 1] = (struct user){thread, op, f->users};
	f->users = i;
}

/* Others' changes of the file, and others' use of what this one changes. */
static void use_name(struct planner *m, uint32_t op, const struct job_event *v, uint32_t name,
		     bool change)
{
	struct of_file *f = &m->file[name];

	if (!f->changes)
		return;
	if (f->told != v->thread) {
		wait_for_ended(m, op, f->change);
		f->told = v->thread;
	}
	if (change) {
		for (uint32_t i = f->users, next; i && m->rc == 0; i = next) {
			next = m->user[i - 1].next;
			wait_for_ended(
				m, op,
				(struct last){m->user[i - 1].thread, m->user[i - 1].op, NONE});
			m->user[i - 1].next = m->free_user;
			m->free_user = i;
		}
		f->users = 0;
		f->change = (struct last){v->thread, op, NONE};
		f->told = v->thread;
	}
	add_user(m, f, v->thread, op);
}

static bool makes_anew(const struct job_event *v)
{
	return v->kind == JOB_MAKE_DIR || v->kind == JOB_LINK ||
	       (v->kind == JOB_OPEN && v->flags & O_CREAT && v->flags & O_EXCL);
}

/* Of a removal and a making of one name at the same time the removal came first, whichever began
 * first: names are made anew only where they are not. `made`: what the event leaves. */
static void order_name(struct planner *m, uint32_t op, const struct job_event *v, uint32_t name,
		       bool made)
{
	struct of_file *f = &m->file[name];

	if (job_failed(v))
		return;
	if (!made) {
		if (f->made_anew != NONE &&
		    m->job->event[op_at(m, f->made_anew)->event].thread != v->thread &&
		    op_at(m, op)->log_begin_ns < op_at(m, f->made_anew)->log_end_ns) {
			wait_for_late(m, f->made_anew, op, 0);
			f->made_anew = NONE;
			return;
		}
		f->removal = (struct last){v->thread, op, NONE};
		f->exists = false;
		return;
	}
	if (makes_anew(v)) {
		f->made_anew = f->exists ? op : NONE;
		if (f->removal.op != NONE && f->removal.thread != v->thread)
			wait_for(m, op, f->removal.op, 0);
	}
	f->exists = true;
}

static bool removes(const struct job_event *v)
{
	return v->kind == JOB_UNLINK || v->kind == JOB_RENAME;
}

static void use_file(struct planner *m, uint32_t op, const struct job_event *v, uint32_t file,
		     bool change)
{
	uint32_t name = m->names->of[file];

	order_name(m, op, v, name, file != v->file || !removes(v));
	use_name(m, op, v, name, change);
	/* what is below a folder comes after its making, and before its end */
	for (uint32_t k = m->names->above[name]; k != JOB_NONE && m->rc == 0;
	     k = m->names->above[k])
		use_name(m, op, v, k, false);
}

static void plan_stored(struct planner *m, uint32_t op, const struct job_event *v)
{
	struct plan_thread *t = &m->p->thread[v->thread];

	if (v->kind == JOB_OPEN)
		plan_open(m, op, v);
	else if (v->kind == JOB_READ || v->kind == JOB_WRITE || v->kind == JOB_SEEK ||
		 v->kind == JOB_CLOSE || v->kind == JOB_SYNC || v->kind == JOB_LIST ||
		 (v->kind == JOB_TRUNCATE && v->descriptor != JOB_NONE))
		use_slot(m, op, v);
	if (m->rc < 0)
		return;
	if (v->kind != JOB_CLOSE && v->kind != JOB_SEEK)
		use_file(m, op, v, v->file, changes(v) && v->kind != JOB_LINK);
	if (v->kind == JOB_RENAME || v->kind == JOB_LINK)
		use_file(m, op, v, v->other, changes(v));
	if (v->kind == JOB_READ || v->kind == JOB_WRITE) {
		bool more_asked = v->kind == JOB_READ && v->asked > v->result;
		int64_t bytes = more_asked ? v->asked : v->result;

		t->most_bytes = bytes > t->most_bytes ? bytes : t->most_bytes;
		if (v->kind == JOB_WRITE && v->result > t->most_written)
			t->most_written = v->result;
	}
}

/* The end of a process closes what nobody else has open. */
static void plan_exit(struct planner *m, uint32_t op, uint32_t process)
{
	for (uint32_t i = m->process[process].held; i; i = m->held[i - 1].sibling) {
		uint32_t slot = m->held[i - 1].slot;

		m->held[i - 1].slot = PLAN_NO_SLOT;
		if (slot == PLAN_NO_SLOT || m->refs[slot] == 0 || --m->refs[slot] > 0 ||
		    m->p->slot[slot].shared)
			continue;
		m->p->slot[slot].next = op_at(m, op)->slot;
		op_at(m, op)->slot = slot;
	}
}

static void append(struct planner *m, uint32_t op, const struct job_event *v)
{
	struct of_thread *t = &m->thread[v->thread];
	struct plan_thread *r = &m->p->thread[v->thread];

	if (t->op == NONE)
		r->first = op + 1;
	else
		op_at(m, t->op)->next = op + 1;
	r->ops++;
	t->op = op;
	t->begun = true;
	t->ready_ns = op_at(m, op)->log_end_ns;
}

/* Times of a thread's operations follow one another, whatever the log says. */
static void set_times(struct planner *m, struct plan_op *o, const struct job_event *v)
{
	const struct of_thread *t = &m->thread[v->thread];
	int64_t begin = v->begin_ns != JOB_UNKNOWN ? v->begin_ns : m->origin_ns;
	int64_t end = v->end_ns != JOB_UNKNOWN ? v->end_ns : begin;

	if (t->begun && begin < t->ready_ns)
		begin = t->ready_ns;
	o->log_begin_ns = begin;
	o->log_end_ns = end > begin ? end : begin;
}

/* An event that is not replayed. Opening and closing an object are none of its requests. */
static void leave_out(struct planner *m, const struct job_event *v)
{
	if (v->file == JOB_NONE || m->job->file[v->file].kind != JOB_FILE_OBJECT)
		m->p->left_out[v->kind]++;
	else
		m->p->of_objects += v->kind == JOB_READ || v->kind == JOB_WRITE ||
				    v->kind == JOB_STAT || v->kind == JOB_UNLINK;
}

static void take_event(struct planner *m, uint32_t i)
{
	const struct job_event *v = &m->job->event[i];
	uint32_t process = m->job->thread[v->thread].process, op = m->p->ops;
	bool only;

	if (!is_taken(m, v, &only)) {
		leave_out(m, v);
		return;
	}
	m->p->op[op] = (struct plan_op){
		.event = i, .slot = PLAN_NO_SLOT, .only = only, .begin_ns = JOB_UNKNOWN};
	atomic_init(&m->p->op[op].end_ns, JOB_UNKNOWN);
	m->p->ops++;
	set_times(m, op_at(m, op), v);
	plan_waits_until(m, op_at(m, op)->log_begin_ns);
	set_think(m, op, v);
	/* what a fork or an end takes belongs to it */
	if (v->kind == JOB_FORK || v->kind == JOB_EXIT)
		op_at(m, op)->hold_ns = op_at(m, op)->log_end_ns - op_at(m, op)->log_begin_ns;
	if (v->kind == JOB_EXIT)
		plan_exit(m, op, process);
	if (v->kind == JOB_WAIT)
		plan_wait_later(m, op);
	else if (!only)
		plan_stored(m, op, v);
	if (m->rc < 0)
		return;
	append(m, op, v);
	remember(&m->process[process], m->p, (struct last){v->thread, op, NONE});
	if (v->kind == JOB_FORK && !job_failed(v) && v->other != JOB_NONE &&
	    v->other < m->job->processes && v->other != process) {
		inherit(m, process, v->other);
		m->process[v->other].fork = op;
	}
}

/* ---- pipes ---- */

/* Writes and reads of one pipe, in their order, with the bytes before them. */
struct piped {
	uint32_t op;
	uint64_t before, bytes;
};

struct pipe_use {
	uint32_t file, op;
};

static int by_file(const void *a, const void *b)
{
	const struct pipe_use *x = a, *y = b;

	return ORDER(x->file, y->file) ?: ORDER(x->op, y->op);
}

/* The read, or the wait just before it (a poll), waited for the write: what passed after that until
 * it returned is the machine's. What was there at once takes as long as it took. */
static void was_awaited(struct planner *m, uint32_t read, uint32_t before, uint32_t write)
{
	struct plan_op *r = op_at(m, read), *w = op_at(m, write);
	struct plan_op *b = before != NONE ? op_at(m, before) : NULL;

	if (b && m->job->event[b->event].kind == JOB_WAIT && w->log_begin_ns < b->log_end_ns &&
	    w->log_end_ns > b->log_begin_ns) {
		b->hold_ns = 0;
		b->deps = 0;
		wait_for_late(m, before, write, b->log_end_ns - w->log_end_ns);
	}
	if (b && w->log_end_ns > b->log_end_ns && r->log_begin_ns >= w->log_end_ns &&
	    r->log_begin_ns - w->log_end_ns < PLAN_PROMPT_NS)
		r->think_ns = 0;
}

/* Adds a dependency to an operation whose others lie elsewhere: they are copied to the end. */
static void wait_for_late(struct planner *m, uint32_t op, uint32_t on, int64_t lag_ns)
{
	struct replay_plan *p = m->p;
	struct plan_op *o = op_at(m, op);
	uint32_t from = o->dep, n = o->deps;

	o->deps = 0;
	wait_for(m, op, on, lag_ns);
	for (uint32_t i = 0; i < n && m->rc == 0; i++)
		wait_for(m, op, p->dep[from + i].op, p->dep[from + i].lag_ns);
}

static void match_pipe(struct planner *m, const struct pipe_use *u, size_t n,
		       const uint32_t *before)
{
	uint64_t written = 0, got = 0;
	size_t w = 0;

	/* w: the write that holds the last byte that was read */
	for (size_t i = 0; i < n && m->rc == 0; i++) {
		const struct job_event *v = &m->job->event[op_at(m, u[i].op)->event];
		struct plan_op *o = op_at(m, u[i].op);

		if (v->kind != JOB_READ)
			continue;
		if (v->result <= 0) {
			/* nothing, or the end: what it took belongs to it */
			o->hold_ns = o->log_end_ns - o->log_begin_ns;
			continue;
		}
		got += (uint64_t)v->result;
		for (; w < n && written < got; w++) {
			const struct job_event *x = &m->job->event[op_at(m, u[w].op)->event];

			if (x->kind == JOB_WRITE && x->result > 0)
				written += (uint64_t)x->result;
		}
		if (written >= got && w > 0 &&
		    op_at(m, u[w - 1].op)->log_begin_ns < o->log_end_ns &&
		    m->job->event[op_at(m, u[w - 1].op)->event].kind == JOB_WRITE) {
			m->p->matched++;
			was_awaited(m, u[i].op, before[i], u[w - 1].op);
			if (op_at(m, u[w - 1].op)->log_end_ns <= o->log_begin_ns)
				o->hold_ns = o->log_end_ns - o->log_begin_ns;
			if (v->thread != m->job->event[op_at(m, u[w - 1].op)->event].thread)
				wait_for_late(m, u[i].op, u[w - 1].op,
					      o->hold_ns
						      ? 0
						      : o->log_end_ns -
								op_at(m, u[w - 1].op)->log_end_ns);
		} else {
			m->p->unmatched++;
			o->hold_ns = o->log_end_ns - o->log_begin_ns;
		}
	}
}

/* The operation before each in its thread. */
static void plan_pipes(struct planner *m)
{
	static const char what[] = "the pipes of the log";
	struct replay_plan *p = m->p;
	AUTO_FREE struct pipe_use *use = NULL;
	AUTO_FREE uint32_t *before = NULL, *of = NULL;
	size_t n = 0, k = 0;

	for (uint32_t i = 0; i < p->ops; i++)
		n += is_pipe(m, &m->job->event[p->op[i].event]);
	if (n == 0)
		return;
	use = try_calloc(n, sizeof(*use), what, m->e);
	before = try_calloc(n, sizeof(*before), what, m->e);
	of = try_calloc((size_t)p->ops + 1, sizeof(*of), what, m->e);
	if (!use || !before || !of) {
		m->rc = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < p->ops; i++) {
		if (p->op[i].next)
			of[p->op[i].next - 1] = i + 1;
		if (is_pipe(m, &m->job->event[p->op[i].event]))
			use[k++] = (struct pipe_use){m->job->event[p->op[i].event].file, i};
	}
	qsort(use, n, sizeof(*use), by_file);
	for (size_t i = 0; i < n; i++)
		before[i] = of[use[i].op] ? of[use[i].op] - 1 : NONE;
	for (size_t i = 0; i < n && m->rc == 0; i = k) {
		for (k = i; k < n && use[k].file == use[i].file; k++)
			;
		match_pipe(m, use + i, k - i, before + i);
	}
}

/* ---- all ---- */

static void set_origin(struct planner *m)
{
	m->origin_ns = 0;
	for (size_t i = 0; i < m->job->events; i++)
		if (m->job->event[i].begin_ns != JOB_UNKNOWN) {
			m->origin_ns = m->job->event[i].begin_ns;
			break;
		}
}

static int get_memory(struct planner *m)
{
	const struct job *job = m->job;
	static const char what[] = "the plan of the replay";
	struct replay_plan *p = m->p;

	m->thread = try_calloc(job->threads + 1, sizeof(*m->thread), what, m->e);
	m->process = try_calloc(job->processes + 1, sizeof(*m->process), what, m->e);
	m->file = try_calloc(job->files + 1, sizeof(*m->file), what, m->e);
	m->free_slot_of = try_calloc(job->files + 1, sizeof(*m->free_slot_of), what, m->e);
	p->op = try_calloc(job->events + 1, sizeof(*p->op), what, m->e);
	p->thread = try_calloc(job->threads + 1, sizeof(*p->thread), what, m->e);
	if (!m->thread || !m->process || !m->file || !m->free_slot_of || !p->op || !p->thread)
		return -ENOMEM;
	for (size_t i = 0; i < job->threads; i++)
		m->thread[i].op = NONE;
	for (size_t i = 0; i < job->processes; i++) {
		m->process[i].fork = NONE;
		for (size_t k = 0; k < RECENT; k++)
			m->process[i].recent[k] = (struct last){NONE, NONE, NONE};
	}
	for (size_t i = 0; i < job->files; i++) {
		m->file[i] = (struct of_file){.change = {NONE, NONE, NONE},
					      .removal = {NONE, NONE, NONE},
					      .told = NONE,
					      .made_anew = NONE};
		m->free_slot_of[i] = PLAN_NO_SLOT;
	}
	return 0;
}

static void find_changes(struct planner *m)
{
	for (size_t i = 0; i < m->job->events; i++) {
		const struct job_event *v = &m->job->event[i];

		if (v->file == JOB_NONE || !changes(v))
			continue;
		m->file[m->names->of[v->file]].changes = true;
		if (v->other != JOB_NONE && v->other < m->job->files &&
		    (v->kind == JOB_RENAME || v->kind == JOB_LINK))
			m->file[m->names->of[v->other]].changes = true;
	}
}

int replay_plan_make(struct replay_plan *p, const struct job *job, const struct replay_names *names,
		     struct err *e)
{
	struct planner m = {.p = p, .job = job, .names = names, .e = e};

	*p = (struct replay_plan){.job = job};
	if (job->events > UINT32_MAX - 2)
		return err_set(e, -EFBIG, "the log has more requests than can be replayed");
	m.rc = get_memory(&m);
	if (m.rc == 0) {
		set_origin(&m);
		find_changes(&m);
	}
	for (size_t i = 0; i < job->events && m.rc == 0; i++)
		take_event(&m, (uint32_t)i);
	plan_waits_until(&m, INT64_MAX);
	if (m.rc == 0)
		plan_pipes(&m);
	free(m.thread);
	free(m.process);
	free(m.file);
	free(m.free_slot_of);
	map_release(&m.held_at);
	free(m.held);
	free(m.refs);
	free(m.slot_use);
	free(m.user);
	free(m.waiting);
	return m.rc;
}

void replay_plan_release(struct replay_plan *p)
{
	free(p->op);
	free(p->dep);
	free(p->slot);
	free(p->thread);
	*p = (struct replay_plan){0};
}
