/* Whether readers keep files open: a reader that comes to a file again did not open it for that. */
#include <stdlib.h>

#include "base/alloc.h"
#include "jobtrace/account/account_parts.h"

#define AGAIN_MIN 4 /* visits of a file that its reader had visited before; fewer tell nothing */
#define AGREE 0.9

/* An open, close or visit of a file of the dataset by a process. */
struct use {
	uint32_t process, file;
	int64_t at_ns;
	enum { USE_OPEN, USE_CLOSE, USE_VISIT } what;
};

struct uses {
	struct use *v;
	size_t n, room;
};

static void add(struct uses *u, struct use use)
{
	if (u->n == u->room) {
		u->room = u->room ? 2 * u->room : 1024;
		u->v = xrealloc(u->v, u->room * sizeof(*u->v));
	}
	u->v[u->n++] = use;
}

static int by_file(const void *a, const void *b)
{
	const struct use *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return (int)x->what - (int)y->what; /* a visit begins with the open that it needs */
}

static int by_time(const void *a, const void *b)
{
	const struct use *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return (int)y->what - (int)x->what;
}

static void gather(const struct account *a, struct uses *u)
{
	bool *reads = xcalloc(a->job->processes + 1, sizeof(*reads));

	for (size_t i = 0; i < a->readers; i++)
		reads[a->reader[i].process] = true;
	for (size_t i = 0; i < a->job->events; i++) {
		const struct job_event *v = &a->job->event[i];
		uint32_t process = a->job->thread[v->thread].process;

		if ((v->kind != JOB_OPEN && v->kind != JOB_CLOSE) || v->file == JOB_NONE ||
		    (v->result < 0 && v->result != JOB_UNKNOWN) || !reads[process] ||
		    a->role[v->file] != FILE_DATASET || v->begin_ns == JOB_UNKNOWN)
			continue;
		add(u, (struct use){process, v->file, v->begin_ns,
				    v->kind == JOB_OPEN ? USE_OPEN : USE_CLOSE});
	}
	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];

		if (v->begin_ns != JOB_UNKNOWN && !a->reader[v->reader].left_out)
			add(u, (struct use){a->reader[v->reader].process, a->sample[v->sample].file,
					    v->begin_ns, USE_VISIT});
	}
	free(reads);
}

/* The most files that a process has open at a time. */
static double most_open(struct uses *u)
{
	int64_t now = 0, most = 0;

	qsort(u->v, u->n, sizeof(*u->v), by_time);
	for (size_t i = 0; i < u->n; i++) {
		if (i == 0 || u->v[i].process != u->v[i - 1].process)
			now = 0;
		now += u->v[i].what == USE_OPEN;
		now -= u->v[i].what == USE_CLOSE && now > 0;
		most = now > most ? now : most;
	}
	return (double)most;
}

void account_kept_open(struct account *a)
{
	struct uses u = {0};
	uint64_t again = 0, kept = 0;
	bool visited = false, opened = false;

	if (a->stream || a->visits == 0 || !(a->job->sees & JOB_SEES_OPENS) ||
	    !(a->job->sees & JOB_SEES_TIMES))
		return;
	gather(a, &u);
	qsort(u.v, u.n, sizeof(*u.v), by_file);
	for (size_t i = 0; i < u.n; i++) {
		if (i == 0 || u.v[i].process != u.v[i - 1].process ||
		    u.v[i].file != u.v[i - 1].file)
			visited = opened = false;
		opened |= u.v[i].what == USE_OPEN;
		if (u.v[i].what != USE_VISIT)
			continue;
		again += visited;
		kept += visited && !opened;
		visited = true;
		opened = false;
	}
	if (again >= AGAIN_MIN && (double)kept >= AGREE * (double)again)
		account_inferred(a, ACCOUNT_KEPT_OPEN, most_open(&u),
				 "a reader that comes to a file again does not open it; the most "
				 "that one has open at a time",
				 kept, again);
	free(u.v);
}
