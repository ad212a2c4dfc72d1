/* Requests summed into columns, a row a thread. */
#include "page/job_lanes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/say.h"
#include "result/json_out.h"

#define LEVELS 63
#define STEPS_SHOWN 40 /* of a window that shows a part */
#define PART_OF_JOB 50 /* of the job, where steps are not known */
#define WORTH_A_PART 4 /* a part is shown when the job is so many times as long */
#define PLACE(l, s, c) (((l)*LANE_STATES + (s)) * JOB_COLUMNS + (c))

static const char *const state_names[LANE_STATES] = {
	"read", "write", "open, stat, list", "programs", "wait: pipes, processes", "compute"};

/* What a row shows: one thread, or all that have no row of their own. */
struct lane {
	uint32_t thread; /* JOB_NONE: the rest */
	size_t threads;
	double state_s[LANE_STATES];
};

struct lanes {
	const struct profile *a;
	struct lane lane[JOB_LANES];
	size_t n;
	uint32_t *of_thread; /* JOB_NONE: it has no requests */
};

struct window {
	const char *title;
	int64_t begin, end;
};

/* ---- states ---- */

static bool is_program(const struct profile *a, const struct job_event *v)
{
	return v->kind == JOB_EXEC || (v->file != JOB_NONE && a->role[v->file] == FILE_CODE);
}

static bool is_between_processes(const struct job *job, const struct job_event *v)
{
	enum job_file_kind k;

	if (v->kind == JOB_WAIT)
		return true;
	if (v->kind != JOB_READ && v->kind != JOB_WRITE)
		return false;
	k = v->file == JOB_NONE ? JOB_FILE_OTHER : job->file[v->file].kind;
	return k == JOB_FILE_PIPE || k == JOB_FILE_SOCKET || k == JOB_FILE_OTHER;
}

static enum lane_state state_of(const struct profile *a, const struct job_event *v)
{
	if (v->kind == JOB_COMPUTE)
		return LANE_COMPUTE;
	if (is_program(a, v))
		return LANE_PROGRAM;
	if (is_between_processes(a->job, v))
		return LANE_WAIT;
	switch (v->kind) {
	case JOB_READ:
		return LANE_READ;
	case JOB_WRITE:
	case JOB_SYNC:
		return LANE_WRITE;
	case JOB_MARK:
	case JOB_FORK:
	case JOB_EXIT:
		return LANE_STATES;
	default:
		return LANE_METADATA;
	}
}

/* ---- rows ---- */

struct busy {
	uint32_t thread, process;
	double s;
};

static int busiest_first(const void *a, const void *b)
{
	const struct busy *x = a, *y = b;

	return ORDER(y->s, x->s) ?: ORDER(x->thread, y->thread);
}

static int by_process(const void *a, const void *b)
{
	const struct busy *x = a, *y = b;

	return ORDER(x->process, y->process) ?: ORDER(x->thread, y->thread);
}

/* The times of requests of the data count, so that a worker has a row before a shell has. */
static void choose_lanes(struct lanes *l)
{
	const struct job *job = l->a->job;
	AUTO_FREE struct busy *busy = xcalloc(job->threads + 1, sizeof(*busy));
	size_t n = 0, own;

	for (size_t i = 0; i < job->threads; i++)
		busy[i] = (struct busy){(uint32_t)i, job->thread[i].process, -1};
	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];
		double *s = &busy[v->thread].s;

		*s = fmax(*s, 0);
		if (v->begin_ns != JOB_UNKNOWN && v->end_ns > v->begin_ns &&
		    state_of(l->a, v) <= LANE_METADATA)
			*s += (double)(v->end_ns - v->begin_ns) / 1e9;
	}
	for (size_t i = 0; i < job->threads; i++)
		if (busy[i].s >= 0)
			busy[n++] = busy[i];
	own = n;
	if (n > JOB_LANES) {
		own = JOB_LANES - 1;
		qsort(busy, n, sizeof(*busy), busiest_first);
	}
	qsort(busy, own, sizeof(*busy), by_process);
	for (size_t i = 0; i < job->threads; i++)
		l->of_thread[i] = JOB_NONE;
	for (size_t i = 0; i < own; i++) {
		l->lane[i] = (struct lane){.thread = busy[i].thread, .threads = 1};
		l->of_thread[busy[i].thread] = (uint32_t)i;
	}
	l->n = own;
	if (n > own) {
		l->lane[own] = (struct lane){.thread = JOB_NONE, .threads = n - own};
		for (size_t i = own; i < n; i++)
			l->of_thread[busy[i].thread] = (uint32_t)own;
		l->n = own + 1;
	}
}

static const char *base_name(const char *command)
{
	const char *end = strchr(command, ' '), *from = command;

	for (const char *p = command; *p && p != end; p++)
		if (*p == '/')
			from = p + 1;
	return from;
}

/* A reader or trainer that is one thread: its name says enough. */
static bool is_own_reader(const struct profile *a, uint32_t thread)
{
	for (size_t i = 0; i < a->readers; i++)
		if (a->reader[i].thread == thread)
			return true;
	for (size_t i = 0; i < a->trainers; i++)
		if (a->trainer[i].thread == thread)
			return true;
	return false;
}

static void put_name(json_t *o, const struct lanes *l, const struct lane *lane)
{
	const struct profile *a = l->a;
	const struct job_process *p;
	const struct job_thread *t;
	struct buf name = {0};

	if (lane->thread == JOB_NONE) {
		buf_say(&name, "%zu other threads", lane->threads);
		json_put_text(o, "name", name.data);
		buf_release(&name);
		return;
	}
	t = &a->job->thread[lane->thread];
	p = &a->job->process[t->process];
	if (t->tid != p->pid && !is_own_reader(a, lane->thread))
		buf_say(&name, "thread %lld", (long long)t->tid);
	for (size_t i = 0; i < a->readers && !name.len; i++) {
		const struct job_reader *r = &a->reader[i];
		const struct trainer *owner = r->rank < a->trainers ? &a->trainer[r->rank] : NULL;

		if (!r->worker || r->process != t->process ||
		    (r->thread != JOB_NONE && r->thread != lane->thread))
			continue;
		if (a->trainers > 1)
			buf_say(&name, "rank %u, ", r->rank);
		buf_say(&name, "worker %u", r->number);
		if (owner && owner->rounds > 1)
			buf_say(&name, " (round %u)", r->round + 1);
	}
	for (size_t i = 0; i < a->trainers && !name.len; i++) {
		const struct trainer *r = &a->trainer[i];

		if (r->process != t->process ||
		    (r->thread != JOB_NONE && r->thread != lane->thread))
			continue;
		buf_puts(&name, "trainer");
		if (a->trainers > 1)
			buf_say(&name, " of rank %zu", i);
	}
	if (!name.len) {
		const char *base = base_name(p->command);
		size_t n = strcspn(base, " ");

		buf_say(&name, "%.*s", (int)(n < 24 ? n : 24), base);
		buf_say(&name, "%s%lld", name.len ? " " : "process ", (long long)p->pid);
	}
	json_put_text(o, "name", name.data);
	json_put(o, "pid", json_integer(p->pid));
	json_put(o, "tid", json_integer(t->tid));
	json_put(o, "process", json_integer(t->process));
	buf_reset(&name);
	buf_say(&name, "%.200s", p->command);
	json_put_text(o, "command", name.data ? name.data : "");
	buf_release(&name);
	if (p->host[0])
		json_put_text(o, "host", p->host);
}

static json_t *lanes_json(const struct lanes *l)
{
	json_t *list = json_array();

	for (size_t i = 0; i < l->n; i++) {
		json_t *o = json_object(), *times = json_array();

		put_name(o, l, &l->lane[i]);
		for (size_t s = 0; s < LANE_STATES; s++)
			json_array_append_new(times, json_number(l->lane[i].state_s[s]));
		json_put(o, "seconds", times);
		json_array_append_new(list, o);
	}
	return list;
}

/* ---- columns ---- */

/* Adds [from, to) in columns: whole columns as a difference where they begin and end, which is
 * summed up once. */
static void add_span(double *whole, double *part, double from, double to)
{
	size_t first, last;

	from = fmax(from, 0);
	to = fmin(to, JOB_COLUMNS);
	if (!(to > from))
		return;
	first = (size_t)from;
	last = (size_t)to;
	if (first == last || first >= JOB_COLUMNS - 1) {
		part[first] += to - from;
		return;
	}
	part[first] += (double)(first + 1) - from;
	if (last < JOB_COLUMNS)
		part[last] += to - (double)last;
	if (last > first + 1) {
		whole[first + 1] += 1;
		if (last < JOB_COLUMNS)
			whole[last] -= 1;
	}
}

static void sum_window(struct lanes *l, const struct window *w, double *whole, double *part,
		       bool count)
{
	const struct job *job = l->a->job;
	double column = (double)(w->end - w->begin) / JOB_COLUMNS;

	memset(whole, 0, PLACE(l->n, 0, 0) * sizeof(*whole));
	memset(part, 0, PLACE(l->n, 0, 0) * sizeof(*part));
	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];
		uint32_t lane = l->of_thread[v->thread];
		enum lane_state s;

		if (v->begin_ns == JOB_UNKNOWN || v->end_ns == JOB_UNKNOWN ||
		    v->end_ns < w->begin || v->begin_ns >= w->end || lane == JOB_NONE)
			continue;
		s = state_of(l->a, v);
		if (s == LANE_STATES)
			continue;
		if (count)
			l->lane[lane].state_s[s] += (double)(v->end_ns - v->begin_ns) / 1e9;
		add_span(whole + PLACE(lane, s, 0), part + PLACE(lane, s, 0),
			 (double)(v->begin_ns - w->begin) / column,
			 (double)(v->end_ns - w->begin) / column);
	}
}

static void put_run(struct buf *out, char c, size_t n)
{
	if (n > 4) {
		buf_printf(out, "%c{%zu}", c, n);
		return;
	}
	while (n--)
		buf_putc(out, c);
}

/* A request that is too short for its column to show is shown as the least level. */
static json_t *state_text(const double *whole, const double *part, size_t threads)
{
	static const char digits[] =
		"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
	struct buf out = {0};
	double level = 0;
	size_t run = 0;
	char last = 0;
	bool any = false;
	json_t *text;

	for (size_t c = 0; c < JOB_COLUMNS; c++) {
		double share;
		char d;

		level += whole[c];
		share = fmin(1, (level + part[c]) / (double)threads);
		d = digits[share > 0 ? (size_t)fmax(1, share * LEVELS + 0.5) : 0];
		any = any || share > 1e-9;
		if (run && d != last) {
			put_run(&out, last, run);
			run = 0;
		}
		last = d;
		run++;
	}
	put_run(&out, last, run);
	text = json_text(any ? out.data : "");
	buf_release(&out);
	return text;
}

static json_t *window_json(struct lanes *l, const struct window *w, double *whole, double *part,
			   bool count)
{
	json_t *o = json_object(), *rows = json_array();

	sum_window(l, w, whole, part, count);
	json_put_text(o, "title", w->title);
	json_put_real(o, "begin", (double)w->begin / 1e9);
	json_put_real(o, "end", (double)w->end / 1e9);
	for (size_t i = 0; i < l->n; i++) {
		json_t *row = json_array();

		for (size_t s = 0; s < LANE_STATES; s++)
			json_array_append_new(row, state_text(whole + PLACE(i, s, 0),
							      part + PLACE(i, s, 0),
							      l->lane[i].threads));
		json_array_append_new(rows, row);
	}
	json_put(o, "rows", rows);
	return o;
}

/* ---- what is shown ---- */

static int64_t part_length(const struct profile *a, int64_t length)
{
	const struct profile_value *step = &a->value[PROFILE_STEP];

	if (profile_has(a, PROFILE_STEP) && step->number > 0 &&
	    step->number * STEPS_SHOWN * 1e9 < (double)length)
		return (int64_t)(step->number * STEPS_SHOWN * 1e9);
	return length / PART_OF_JOB;
}

static size_t choose_windows(const struct profile *a, struct window *w)
{
	const struct job *job = a->job;
	int64_t begin = INT64_MAX, end = INT64_MIN, first = JOB_UNKNOWN, last = JOB_UNKNOWN, part;
	int64_t saved = JOB_UNKNOWN;
	size_t n = 0;

	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];

		if (v->begin_ns == JOB_UNKNOWN || v->end_ns == JOB_UNKNOWN)
			continue;
		LOWER(begin, v->begin_ns);
		RAISE(end, v->end_ns);
		if (saved == JOB_UNKNOWN && v->kind == JOB_WRITE && v->file != JOB_NONE &&
		    a->role[v->file] == FILE_CHECKPOINT)
			saved = v->begin_ns;
	}
	if (begin >= end)
		return 0;
	w[n++] = (struct window){"the whole job", begin, end};
	for (size_t i = 0; i < a->visits; i++) {
		if (a->visit[i].begin_ns == JOB_UNKNOWN || a->visit[i].end_ns == JOB_UNKNOWN)
			continue;
		if (first == JOB_UNKNOWN)
			first = a->visit[i].begin_ns;
		last = a->visit[i].end_ns;
	}
	part = part_length(a, end - begin);
	if (part <= 0 || (end - begin) / part < WORTH_A_PART || first == JOB_UNKNOWN)
		return n;
	w[n++] = (struct window){"the first batches", first - part / 20, first + part};
	w[n++] = (struct window){"steps in the middle", (first + last) / 2,
				 (first + last) / 2 + part};
	if (saved != JOB_UNKNOWN)
		w[n++] =
			(struct window){"the first checkpoint", saved - part / 2, saved + part / 2};
	return n;
}

json_t *job_lanes(const struct profile *a)
{
	const unsigned needed = JOB_SEES_REQUESTS | JOB_SEES_TIMES;
	struct lanes l = {.a = a};
	struct window w[JOB_WINDOWS];
	json_t *o, *states = json_array(), *windows = json_array();
	double *whole, *part;
	size_t n;

	if ((a->job->sees & needed) != needed || (n = choose_windows(a, w)) == 0) {
		json_decref(states);
		json_decref(windows);
		return json_null();
	}
	l.of_thread = xcalloc(a->job->threads + 1, sizeof(*l.of_thread));
	choose_lanes(&l);
	whole = xcalloc(PLACE(l.n + 1, 0, 0), sizeof(*whole));
	part = xcalloc(PLACE(l.n + 1, 0, 0), sizeof(*part));
	for (size_t i = 0; i < n; i++)
		json_array_append_new(windows, window_json(&l, &w[i], whole, part, i == 0));
	for (size_t s = 0; s < LANE_STATES; s++)
		json_array_append_new(states, json_text(state_names[s]));
	o = json_object();
	json_put(o, "states", states);
	json_put_int(o, "columns", JOB_COLUMNS);
	json_put(o, "lanes", lanes_json(&l));
	json_put(o, "windows", windows);
	json_put_bool(o, "pipes", (a->job->sees & JOB_SEES_PIPES) != 0);
	free(whole);
	free(part);
	free(l.of_thread);
	return o;
}
