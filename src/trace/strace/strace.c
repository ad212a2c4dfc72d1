/* Logs of strace: one file of `-f`, or the files of `-ff`, which are merged by time. Threads and
 * processes come from clone, fork and vfork. A child may be seen before its parent's call has
 * returned, so all files are first looked through for who made whom. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/vector.h"
#include "trace/strace/strace.h"
#include "trace/trace_reader.h"

#define NO_TIME STRACE_NO_TIME
#define S_NS INT64_C(1000000000)
#define DAY_NS (86400 * S_NS)
#define PIECE_FEW (256U << 10)
#define PIECE_MANY (16U << 10)
#define PENDING_BYTES (64U << 20) /* of all calls that have not returned */
#define NONE MAP_NONE
#define NS_SHIFT 40 /* the source in the key of a thread */

/* ---- state ---- */

/* That `parent` made a thread or process of this number; those of one number by time. */
struct birth {
	int64_t parent, time_ns;
	uint32_t next; /* of the same number; NONE */
	uint8_t flags; /* enum caller_flags */
};

struct tracee {
	struct caller caller;
	int64_t key;
	bool live, leader, forked; /* forked: its birth was told by an event */
	uint32_t birth;
	/* the call that has not returned */
	char *pending;
	size_t pending_n;
	int64_t pending_ns;
	size_t event; /* of a pending close, already added; SIZE_MAX */
};

struct source {
	struct trace_lines lines;
	struct buf joined; /* a line that strace's own message cut in two */
	struct strace_line line;
	int64_t time_ns, day_ns, last_ns; /* of the line, with days; last of it */
	int64_t pid;                      /* of lines that name none; -1: not known */
	bool any;                         /* a line is there */
	uint32_t number;
};

struct reading {
	struct strace_calls calls;
	struct source *source;
	size_t sources;
	struct map births, tracees; /* by key: first birth not yet used; index of tracee */
	struct birth *birth;
	size_t birth_n, birth_room;
	struct tracee *tracee;
	size_t tracee_n, tracee_room;
	struct map attached;
	size_t pending_bytes;
	uint64_t lines, unread, cut, orphans, dropped;
	bool timed, of_day, unix_time, prefixed;
	struct err *e;
};

static int64_t key_of(const struct reading *r, const struct source *s, int64_t pid)
{
	/* numbers of several logs with `[pid N]` or -f are of several name spaces, those of -ff of
	 * one */
	int64_t space = s->line.pid >= 0 && r->sources > 1 ? s->number + 1 : 0;

	if (pid < 0)
		return -1 - (int64_t)s->number;
	return (pid & ((INT64_C(1) << NS_SHIFT) - 1)) | space << NS_SHIFT;
}

/* ---- lines ---- */

static int64_t pid_of_path(const char *path)
{
	const char *dot = strrchr(path, '.');
	char *end;
	long long v;

	if (dot && strcmp(dot, ".gz") == 0) {
		const char *p = dot;

		while (p > path && p[-1] >= '0' && p[-1] <= '9')
			p--;
		if (p == dot || p == path || p[-1] != '.')
			return -1;
		return strtoll(p, NULL, 10) & INT32_MAX;
	}
	if (!dot || dot[1] < '0' || dot[1] > '9')
		return -1;
	v = strtoll(dot + 1, &end, 10);
	return *end || v > INT32_MAX ? -1 : v;
}

static void sources_open(struct reading *r, const char *const *paths)
{
	for (size_t i = 0; i < r->sources; i++) {
		struct source *s = &r->source[i];

		*s = (struct source){
			.number = (uint32_t)i, .pid = pid_of_path(paths[i]), .last_ns = NO_TIME};
		trace_lines_open(&s->lines, paths[i], r->sources > 16 ? PIECE_MANY : PIECE_FEW);
	}
}

static void sources_close(struct reading *r)
{
	for (size_t i = 0; i < r->sources; i++) {
		trace_lines_close(&r->source[i].lines);
		buf_release(&r->source[i].joined);
	}
}

/* On a terminal, the beginning of a child is told in the middle of another call's line, which goes
 * on in the next: `clone(...strace: Process 9 attached`. Keeps what is before it; false: it is not
 * there. */
static bool interrupted(struct reading *r, struct source *s, const char *text)
{
	static const char said[] = "strace: Process ";
	const char *p = strstr(text, said), *q = p;
	struct strace_line told;

	if (!p || p == text || s->joined.len > TRACE_LINE)
		return false;
	strace_line_parse(p, &told);
	q = p + sizeof(said) - 1;
	q += strspn(q, "0123456789");
	if (told.kind != STRACE_ATTACHED || strcmp(q, " attached") != 0)
		return false;
	map_put(&r->attached, key_of(r, s, told.value), 0);
	if (text == s->joined.data) {
		s->joined.len = (size_t)(p - text);
		s->joined.data[s->joined.len] = '\0';
	} else {
		buf_append(&s->joined, text, (size_t)(p - text));
	}
	return true;
}

/* The next line of a source that is one of strace. */
static int source_next(struct reading *r, struct source *s)
{
	bool cut = false;
	int rc;

	s->any = false;
	while ((rc = trace_lines_next(&s->lines, r->e)) > 0) {
		const char *text = s->lines.text.data;

		r->lines++;
		if (cut) {
			buf_puts(&s->joined, text);
			text = s->joined.data;
		} else {
			buf_reset(&s->joined);
		}
		cut = interrupted(r, s, text);
		if (cut)
			continue;
		strace_line_parse(text, &s->line);
		if (s->line.kind == STRACE_NOTHING) {
			r->unread++;
			continue;
		}
		if (!s->lines.whole)
			r->cut++;
		s->time_ns = s->line.time_ns;
		if (s->time_ns != NO_TIME) {
			r->timed = true;
			*(s->line.of_day ? &r->of_day : &r->unix_time) = true;
			s->time_ns += s->day_ns;
			if (s->line.of_day && s->last_ns != NO_TIME &&
			    s->time_ns < s->last_ns - DAY_NS / 2) {
				s->day_ns += DAY_NS;
				s->time_ns += DAY_NS;
			}
			s->last_ns = s->time_ns;
		} else {
			s->time_ns = s->last_ns;
		}
		r->prefixed = r->prefixed || s->line.pid >= 0;
		s->any = true;
		return 1;
	}
	return rc;
}

/* ---- who made whom ---- */

static unsigned clone_flags(struct strace_text body)
{
	unsigned flags = 0;

	if (memmem(body.p, body.n, "CLONE_THREAD", 12))
		flags |= CALLER_THREAD;
	if (memmem(body.p, body.n, "CLONE_FILES", 11))
		flags |= CALLER_FILES;
	return flags;
}

static bool is_fork(struct strace_text name)
{
	return call_is("clone clone3 fork vfork __clone2", name.p, name.n);
}

/* The number that a fork returned; 0: none. */
static int64_t child_of(struct strace_text body)
{
	const char *p = memrchr(body.p, '=', body.n);
	int64_t v = 0;

	if (!p)
		return 0;
	for (p++; p < body.p + body.n && *p == ' ';)
		p++;
	if (!strace_number((struct strace_text){p, (size_t)(body.p + body.n - p)}, &v) || v < 0)
		v = 0;
	return v;
}

static void birth_add(struct reading *r, int64_t child, int64_t parent, int64_t time_ns,
		      unsigned flags)
{
	uint32_t i = (uint32_t)r->birth_n, at, *link;

	if (r->birth_n >= 4 * (size_t)CALLERS_MAX)
		return;
	VECTOR_PUSH(r->birth, r->birth_n, r->birth_room, {parent, time_ns, NONE, (uint8_t)flags});
	at = map_get(&r->births, child);
	if (at == NONE || r->birth[at].time_ns > time_ns) {
		r->birth[i].next = at;
		map_put(&r->births, child, i);
		return;
	}
	/* numbers are used again rarely; a log in which one is used thousands of times is hostile,
	 * and its order is then that of its lines */
	link = &r->birth[at].next;
	for (int steps = 0; *link != NONE && r->birth[*link].time_ns <= time_ns && steps < 64;
	     steps++)
		link = &r->birth[*link].next;
	r->birth[i].next = *link;
	*link = i;
}

/* Looks one source through for calls that made somebody. */
static int survey(struct reading *r, struct source *s)
{
	struct map flags = {0}; /* of calls that have not returned, by thread: flags, or NONE */
	int rc;

	while ((rc = source_next(r, s)) > 0) {
		const struct strace_line *line = &s->line;
		int64_t parent = key_of(r, s, line->pid >= 0 ? line->pid : s->pid), child = 0;
		unsigned f = 0;

		if ((line->kind != STRACE_CALL && line->kind != STRACE_UNFINISHED &&
		     line->kind != STRACE_RESUMED && line->kind != STRACE_ATTACHED) ||
		    (line->kind != STRACE_ATTACHED && !is_fork(line->name)))
			continue;
		if (line->kind == STRACE_ATTACHED) {
			map_put(&r->attached, key_of(r, s, line->value), 0);
			continue;
		}
		if (line->kind == STRACE_UNFINISHED) {
			map_put(&flags, parent, clone_flags(line->body));
			continue;
		}
		child = child_of(line->body);
		if (line->kind == STRACE_CALL) {
			f = clone_flags(line->body);
		} else {
			f = map_get(&flags, parent);
			f = (f == NONE ? 0 : f) | clone_flags(line->body);
		}
		if (child > 0)
			birth_add(r, key_of(r, s, child), parent, s->time_ns, f);
	}
	map_release(&flags);
	return rc;
}

/* ---- tracees ---- */

static void pending_drop(struct reading *r, struct tracee *t)
{
	r->pending_bytes -= t->pending_n;
	free(t->pending);
	t->pending = NULL;
	t->pending_n = 0;
	t->event = SIZE_MAX;
}

static uint32_t tracee_new(struct reading *r, int64_t key, int64_t pid, int64_t time_ns, int depth);

/* The tracee of a key that is alive; NONE. */
static uint32_t tracee_live(const struct reading *r, int64_t key)
{
	uint32_t i = map_get(&r->tracees, key);

	return i != NONE && r->tracee[i].live ? i : NONE;
}

/* The first process of a log to the terminal has no number until there are two: that of `key`, if
 * nobody made it. NONE. */
static uint32_t adopt_name(struct reading *r, int64_t key)
{
	struct source *s = &r->source[0];
	uint32_t nameless = r->sources == 1 && s->pid < 0 ? tracee_live(r, -1) : NONE;
	struct tracee *t;

	if (nameless == NONE || map_get(&r->births, key) != NONE)
		return NONE;
	t = &r->tracee[nameless];
	s->pid = key;
	t->key = key;
	map_put(&r->tracees, key, nameless);
	r->calls.log.job->process[t->caller.process].pid = key;
	r->calls.log.job->thread[t->caller.thread].tid = key;
	return nameless;
}

/* Makes the tracee of a key that is not alive, with the parent that the survey found. */
static uint32_t tracee_new(struct reading *r, int64_t key, int64_t pid, int64_t time_ns, int depth)
{
	uint32_t at = map_get(&r->births, key), parent = NONE, i = map_get(&r->tracees, key);
	struct birth birth = {.next = NONE};
	struct tracee *t;

	if (at != NONE && at != NONE - 1) {
		birth = r->birth[at];
		map_put(&r->births, key, birth.next == NONE ? NONE - 1 : birth.next);
		parent = tracee_live(r, birth.parent);
		if (parent == NONE)
			parent = adopt_name(r, birth.parent);
		if (parent == NONE && depth < 32 && birth.parent >= 0 &&
		    map_get(&r->tracees, birth.parent) == NONE)
			parent = tracee_new(r, birth.parent,
					    birth.parent & ((INT64_C(1) << NS_SHIFT) - 1), time_ns,
					    depth + 1);
	}
	if (i == NONE) {
		i = (uint32_t)r->tracee_n;
		VECTOR_ADD(r->tracee, r->tracee_n, r->tracee_room);
		map_put(&r->tracees, key, i);
	} else if (r->tracee[i].live) {
		return i; /* its own ancestor: a hostile log */
	}
	t = &r->tracee[i];
	*t = (struct tracee){.key = key, .event = SIZE_MAX, .birth = at};
	if (!caller_begin(&r->calls.log, &t->caller,
			  parent == NONE ? NULL : &r->tracee[parent].caller, birth.flags,
			  pid < 0 ? 0 : pid, ""))
		return NONE;
	t->live = true;
	t->leader = parent == NONE || !(birth.flags & CALLER_THREAD);
	if (t->leader)
		r->calls.log.job->process[t->caller.process].begin_ns = time_ns;
	return i;
}

/* Who made the line. */
static uint32_t tracee_of(struct reading *r, struct source *s)
{
	int64_t pid = s->line.pid >= 0 ? s->line.pid : s->pid;
	int64_t key = key_of(r, s, pid);
	uint32_t i = tracee_live(r, key);

	if (i != NONE)
		return i;
	if (s->line.pid >= 0 && map_get(&r->attached, key) == NONE) {
		i = adopt_name(r, key);
		if (i != NONE)
			return i;
	}
	return tracee_new(r, key, pid, s->time_ns, 0);
}

static void tracee_end(struct reading *r, struct tracee *t, int64_t time_ns, int64_t value)
{
	struct job_process *p = &r->calls.log.job->process[t->caller.process];
	struct call c = {&t->caller, time_ns, time_ns, value};

	if (t->leader) {
		struct job_event v = job_event_of(JOB_EXIT, c.caller->thread, time_ns, time_ns);

		v.result = value;
		p->exit = value;
		p->end_ns = time_ns;
		p->complete = true;
		if (job_add(r->calls.log.job, &v, r->e) < 0)
			r->calls.log.failed = true;
	}
	pending_drop(r, t);
	caller_end(&r->calls.log, &t->caller);
	t->live = false;
}

/* ---- calls ---- */

/* The command of an exec: its arguments, or its path where they were left out. */
static void exec(struct reading *r, struct call *c, const struct strace_call *k, bool at)
{
	struct strace_text list, word;
	struct buf command = {0};
	uint32_t file;
	int64_t dir = CALL_CWD;
	bool cut;

	if (k->args < 2u + at)
		return;
	if (at)
		dir = strace_calls_fd(&r->calls, c->caller, k->arg[0]);
	list = k->arg[1 + at];
	file = strace_calls_path(&r->calls, c, dir, k->arg[at], false);
	for (size_t i = 0; strace_element(list, &i, &word) && command.len < TRACE_STRING;) {
		if (!strace_string(word, &r->calls.text, &cut))
			continue;
		if (command.len)
			buf_putc(&command, ' ');
		buf_puts(&command, r->calls.text.data);
	}
	if (!command.len && file != JOB_NONE)
		buf_puts(&command, r->calls.log.job->file[file].name);
	buf_puts(&command, "");
	call_exec(&r->calls.log, c, file, command.data);
	buf_release(&command);
}

static void forked(struct reading *r, struct source *s, uint32_t parent, struct call *c)
{
	uint32_t i = tracee_live(r, key_of(r, s, c->result));

	if (i == NONE || r->tracee[i].forked)
		i = i == NONE ? tracee_new(r, key_of(r, s, c->result), c->result, s->time_ns, 0)
			      : NONE;
	if (i == NONE)
		return;
	r->tracee[i].forked = true;
	c->caller = &r->tracee[parent].caller; /* they may have moved */
	if (r->tracee[i].leader)
		call_process(&r->calls.log, c, JOB_FORK, r->tracee[i].caller.process);
}

static void waited(struct reading *r, struct source *s, struct call *c)
{
	uint32_t i = c->result > 0 ? map_get(&r->tracees, key_of(r, s, c->result)) : NONE;

	call_process(&r->calls.log, c, JOB_WAIT,
		     i == NONE ? JOB_NONE : r->tracee[i].caller.process);
}

/* A whole call: `text` from its name on. */
static void add_call(struct reading *r, struct source *s, uint32_t who, struct strace_text name,
		     const char *text, int64_t begin_ns, int64_t returned_ns)
{
	struct strace_call k;
	struct call c = {&r->tracee[who].caller, begin_ns, returned_ns, 0};

	if (!strace_call_parse(text, &k)) {
		r->unread++;
		return;
	}
	if (!k.has_result) {
		r->dropped += !call_is("exit_group exit rt_sigreturn", name.p, name.n);
		return;
	}
	c.result = k.result;
	if (k.duration_ns != NO_TIME && begin_ns != NO_TIME &&
	    __builtin_add_overflow(begin_ns, k.duration_ns, &c.end_ns))
		c.end_ns = begin_ns;
	if (is_fork(name)) {
		if (c.result > 0)
			forked(r, s, who, &c);
	} else if (call_is("execve execveat", name.p, name.n)) {
		exec(r, &c, &k, name.n == 8);
	} else if (call_is("wait4 waitid waitpid", name.p, name.n)) {
		waited(r, s, &c);
	} else {
		strace_calls_add(&r->calls, name, &c, &k);
	}
}

/* A close frees its descriptor at once, and others may have it before the log shows its end. */
static void close_early(struct reading *r, uint32_t who, struct strace_text body, int64_t time_ns)
{
	struct tracee *t = &r->tracee[who];
	struct call c = {&t->caller, time_ns, time_ns, 0};
	const char *p = body.p + 6, *end = body.p + body.n - 16;
	size_t before = r->calls.log.job->events;
	int64_t fd;

	if (end <= p)
		return;
	fd = strace_calls_fd(&r->calls, &t->caller, (struct strace_text){p, (size_t)(end - p)});
	call_close(&r->calls.log, &c, fd);
	if (r->calls.log.job->events > before)
		t->event = before;
}

static void unfinished(struct reading *r, struct source *s, uint32_t who)
{
	struct tracee *t = &r->tracee[who];
	struct strace_text body = s->line.body;
	size_t n = body.n - 16; /* <unfinished ...> */

	pending_drop(r, t);
	if (body.n < 16 || body.p[n] != '<')
		return; /* detached */
	t->pending_ns = s->time_ns;
	if (call_is("close", s->line.name.p, s->line.name.n)) {
		close_early(r, who, body, s->time_ns);
		return;
	}
	if (r->pending_bytes + n + 1 > PENDING_BYTES) {
		r->orphans++;
		return;
	}
	t->pending = xmalloc(n + 1);
	memcpy(t->pending, body.p, n);
	t->pending[n] = '\0';
	t->pending_n = n + 1;
	r->pending_bytes += n + 1;
}

static void resumed(struct reading *r, struct source *s, uint32_t who)
{
	struct tracee *t = &r->tracee[who];
	struct strace_text name = s->line.name;
	char *whole, *first = t->pending;
	size_t n = t->pending_n;
	int64_t begin_ns = t->pending_ns;

	if (t->event != SIZE_MAX && call_is("close", name.p, name.n)) {
		struct job_event *v = &r->calls.log.job->event[t->event];
		struct strace_call k;

		whole = xasprintf("close(%.*s", (int)s->line.body.n, s->line.body.p);
		v->end_ns = s->time_ns;
		if (strace_call_parse(whole, &k) && k.has_result) {
			v->result = k.result;
			if (k.duration_ns != NO_TIME && v->begin_ns != NO_TIME &&
			    __builtin_add_overflow(v->begin_ns, k.duration_ns, &v->end_ns))
				v->end_ns = v->begin_ns;
		}
		free(whole);
		t->event = SIZE_MAX;
		return;
	}
	if (!first || n < name.n + 2 || memcmp(first, name.p, name.n) || first[name.n] != '(') {
		r->orphans++;
		return;
	}
	whole = xmalloc(n + s->line.body.n);
	memcpy(whole, first, n - 1);
	memcpy(whole + n - 1, s->line.body.p, s->line.body.n);
	whole[n - 1 + s->line.body.n] = '\0';
	pending_drop(r, t);
	add_call(r, s, who, (struct strace_text){whole, name.n}, whole, begin_ns, s->time_ns);
	free(whole);
}

static void add_line(struct reading *r, struct source *s)
{
	struct strace_line *line = &s->line;
	uint32_t who;

	if (line->kind == STRACE_SIGNAL || line->kind == STRACE_ATTACHED ||
	    line->kind == STRACE_SUPERSEDED)
		return;
	who = tracee_of(r, s);
	if (who == NONE)
		return;
	r->calls.log.line = (uint32_t)s->lines.line;
	switch (line->kind) {
	case STRACE_EXIT:
		tracee_end(r, &r->tracee[who], s->time_ns, line->value);
		return;
	case STRACE_UNFINISHED:
		unfinished(r, s, who);
		return;
	case STRACE_RESUMED:
		resumed(r, s, who);
		return;
	default:
		if (r->tracee[who].pending)
			pending_drop(r, &r->tracee[who]);
		add_call(r, s, who, line->name, line->body.p, s->time_ns, s->time_ns);
	}
}

/* ---- all sources by time ---- */

static bool earlier(const void *a, const void *b, const void *of)
{
	const struct source *x = *(struct source *const *)a, *y = *(struct source *const *)b;

	(void)of;
	return x->time_ns < y->time_ns || (x->time_ns == y->time_ns && x->number < y->number);
}

/* Without dates, files of a day that begin half a day before the first one are of the next. */
static void align_days(struct reading *r)
{
	int64_t latest = NO_TIME;

	if (!r->of_day || r->unix_time)
		return;
	for (size_t i = 0; i < r->sources; i++)
		if (r->source[i].any && r->source[i].time_ns > latest)
			latest = r->source[i].time_ns;
	for (size_t i = 0; i < r->sources; i++) {
		struct source *s = &r->source[i];

		if (s->any && s->time_ns != NO_TIME && s->time_ns < latest - DAY_NS / 2) {
			s->day_ns += DAY_NS;
			s->time_ns += DAY_NS;
			s->last_ns = s->time_ns;
		}
	}
}

static int read_all(struct reading *r)
{
	struct source **heap = xcalloc(r->sources, sizeof(struct source *));
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; i < r->sources && rc >= 0; i++) {
		rc = source_next(r, &r->source[i]);
		if (rc > 0)
			heap[n++] = &r->source[i];
	}
	align_days(r);
	heap_make(heap, n, sizeof(struct source *), earlier, NULL);
	while (n && rc >= 0 && !r->calls.log.failed) {
		add_line(r, heap[0]);
		rc = source_next(r, heap[0]);
		if (rc == 0)
			heap[0] = heap[--n];
		heap_sink(heap, n, sizeof(struct source *), 0, earlier, NULL);
	}
	free(heap);
	if (rc >= 0 && r->calls.log.failed)
		rc = r->e->code;
	return rc < 0 ? rc : 0;
}

/* ---- the whole ---- */

static void finish(struct reading *r, struct job *job)
{
	int64_t base = call_log_finish(&r->calls.log);
	uint64_t damaged = 0;

	job->source = "strace";
	if (r->timed)
		job->sees |= JOB_SEES_TIMES;
	if (r->unix_time && !r->of_day && base != JOB_UNKNOWN)
		job->start_s = base / S_NS;
	if (r->prefixed || r->sources > 1)
		job->sees |= JOB_SEES_PROCESSES;
	if (r->unread)
		job_note(job, "%llu of %llu lines are not of strace, or damaged",
			 (unsigned long long)r->unread, (unsigned long long)r->lines);
	if (r->cut)
		job_note(job,
			 "the last line of a log has no end: it was cut, or the job still ran");
	if (r->orphans)
		job_note(job, "%llu calls have no beginning in the log",
			 (unsigned long long)r->orphans);
	if (r->dropped)
		job_note(job, "%llu calls have no result (the process was ended in them)",
			 (unsigned long long)r->dropped);
	for (size_t i = 0; i < r->sources; i++)
		damaged += r->source[i].lines.damaged;
	if (damaged)
		job_note(job, "the gzip data of %llu logs are cut or damaged: the rest is missing",
			 (unsigned long long)damaged);
	if (!r->timed)
		job_note(job, "the log has no times: use `strace -f -ttt -T -y`");
}

static int strace_read(struct job *job, const char *const *paths, size_t n, struct err *e)
{
	struct reading r = {.sources = n, .e = e};
	int rc = 0;

	call_log_init(&r.calls.log, job, e);
	connections_init(&r.calls.servers, job, true, e);
	r.calls.servers.printed = true;
	r.source = xcalloc(n, sizeof(*r.source));
	sources_open(&r, paths);
	for (size_t i = 0; i < n && rc >= 0; i++)
		rc = survey(&r, &r.source[i]);
	if (rc >= 0) {
		sources_close(&r);
		r.lines = r.unread = r.cut = 0;
		sources_open(&r, paths);
		rc = read_all(&r);
	}
	if (rc >= 0 && !r.tracee_n)
		rc = err_set(e, ERR_DATA, "%s: no system call of strace in it", paths[0]);
	if (connections_finish(&r.calls.servers, NULL) < 0 && rc >= 0)
		rc = e->code;
	if (rc >= 0)
		finish(&r, job);
	for (size_t i = 0; i < r.tracee_n; i++)
		free(r.tracee[i].pending);
	sources_close(&r);
	free(r.source);
	map_release(&r.births);
	map_release(&r.tracees);
	map_release(&r.attached);
	free(r.birth);
	free(r.tracee);
	buf_release(&r.calls.name);
	buf_release(&r.calls.text);
	texts_release(&r.calls.known);
	map_release(&r.calls.server_of);
	call_log_release(&r.calls.log);
	return rc;
}

/* The first line that is whole, or all there is, must be one of strace, and a third of all. */
static bool strace_recognize(const char *path, bool folder, const unsigned char *head, size_t n)
{
	size_t lines = 0, known = 0;
	char *text = xstrndup((const char *)head, n), *save = NULL;

	(void)path;
	for (char *line = folder ? NULL : strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		struct strace_line l;

		strace_line_parse(line, &l);
		lines++;
		/* `name(` alone could be anything: a time, a result or a remark must be there */
		if (l.kind == STRACE_NOTHING)
			continue;
		known += l.time_ns != NO_TIME || l.kind != STRACE_CALL || strstr(line, ") = ") ||
			 strstr(line, ")  ");
	}
	free(text);
	return known && 3 * known >= lines;
}

const struct trace_reader trace_reader_strace = {
	.name = "strace",
	.people = "strace -f -ttt -T -y",
	.recognize = strace_recognize,
	.read = strace_read,
};
