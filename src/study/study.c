/* A study is a list of rows for the runner, which share datasets. */
#include "study/study.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "study/runner.h"

struct running {
	struct study_plan *p;
	const struct study_options *o;
	struct row_status *status;
	bool *generated; /* per dataset */
	study_event_fn fn;
	void *arg;
	struct file_lock lock;
	size_t next, now;         /* experiments */
	double wall_s, compute_s; /* of the runs made in this call */
	size_t made;
};

/* ---- events ---- */

static double seconds_left(const struct running *r)
{
	double compute = 0;
	size_t n = 0;

	for (size_t i = 0; i < r->p->experiments; i++) {
		if (r->status[i].state != RUN_PENDING || r->p->experiment[i].why.code)
			continue;
		compute += r->p->experiment[i].compute_s;
		n++;
	}
	if (r->made == 0)
		return NAN;
	/* what a second of computation took, and what a run takes beside */
	if (r->compute_s > 0.5 * r->wall_s)
		return compute * r->wall_s / r->compute_s;
	return (double)n * r->wall_s / (double)r->made;
}

static void tell_event(struct running *r, enum study_event_kind kind, size_t i, double seconds)
{
	struct study_event ev = {.kind = kind,
				 .experiment = &r->p->experiment[i],
				 .reason = r->status[i].reason,
				 .seconds = seconds,
				 .left_s = seconds_left(r)};

	if (ev.experiment->dataset != SIZE_MAX)
		ev.dataset = &r->p->dataset[ev.experiment->dataset];
	for (size_t k = 0; k < r->p->experiments; k++) {
		ev.done += r->status[k].state == RUN_DONE;
		ev.failed += r->status[k].state == RUN_BAD;
		ev.pending += r->status[k].state == RUN_PENDING;
	}
	if (r->fn)
		r->fn(r->arg, &ev);
}

static void tick(void *arg, double seconds)
{
	struct running *r = arg;

	tell_event(r, STUDY_TICK, r->now, seconds);
}

/* ---- data ---- */

static int generate_dataset(void *arg, struct runner_row *row, struct err *e)
{
	struct running *r = arg;
	const struct experiment *x = &r->p->experiment[row->index];
	const struct study_dataset *d = x->dataset == SIZE_MAX ? NULL : &r->p->dataset[x->dataset];
	AUTO_FREE char *log = d ? xasprintf("%s/%s.generate.log", r->o->results, d->name) : NULL;
	struct runner_child child = {.log = log, .stop = r->o->stop, .tick = tick, .arg = r};
	struct str_list command = {0};
	int rc;

	if (!d || d->there || r->generated[x->dataset])
		return 0;
	tell_event(r, STUDY_GENERATE, row->index, 0);
	study_generate_command(r->p, d, &command);
	rc = runner_help(&command, &child, e);
	r->generated[x->dataset] = rc == 0;
	return rc;
}

static bool still_needed(const struct running *r, size_t dataset)
{
	for (size_t i = 0; i < r->p->experiments; i++)
		if (r->p->experiment[i].dataset == dataset && r->status[i].state == RUN_PENDING &&
		    !r->p->experiment[i].why.code)
			return true;
	return false;
}

static int drop_dataset(struct running *r, size_t dataset, struct err *e)
{
	r->generated[dataset] = false;
	return r->o->keep_data || r->p->dataset[dataset].given || r->p->dataset[dataset].objects
		       ? 0
		       : remove_tree(r->p->dataset[dataset].folder, e);
}

static int drop_checkpoints(const struct running *r, struct err *e)
{
	AUTO_FREE char *folder = path_join(r->o->scratch, "checkpoints");

	return remove_tree(folder, e);
}

/* Everything this study may have left there, also when it was killed. */
static int clean_scratch(struct running *r, struct err *e)
{
	int rc = drop_checkpoints(r, e);

	for (size_t i = 0; rc == 0 && i < r->p->datasets; i++)
		rc = drop_dataset(r, i, e);
	/* not empty: somebody else's files, or kept data */
	rmdir(r->o->scratch);
	return rc;
}

/* ---- runs ---- */

/* The runs of a row whose state the design has: from here on they are old results. */
static int note_row(struct running *r, size_t row, struct err *e)
{
	int rc = 0;

	if (r->o->small)
		return 0; /* the mark is the state */
	for (size_t i = 0; rc == 0 && i < r->p->experiments; i++)
		if (r->p->experiment[i].row == row)
			rc = run_mark_note(r->p, &r->p->experiment[i], e);
	return rc;
}

static int save_states(struct running *r, struct err *e)
{
	/* what a kill between the two keeps from the design is found in the folders of the runs */
	int rc = state_save(r->p, r->status, e);

	return rc < 0 || r->o->small ? rc : design_save(&r->p->design, e);
}

/* A row is done when all its repetitions are, and failed when all were tried and one failed. */
static void settle_row(struct running *r, size_t row)
{
	bool bad = false;

	for (size_t i = 0; i < r->p->experiments; i++) {
		if (r->p->experiment[i].row != row)
			continue;
		if (r->status[i].state == RUN_PENDING)
			return;
		bad = bad || r->status[i].state == RUN_BAD;
	}
	design_set_state(&r->p->design, row, bad ? DESIGN_FAILED : DESIGN_DONE);
}

static int run_ended(struct running *r, size_t i, enum run_state state, struct err *e)
{
	const struct experiment *x = &r->p->experiment[i];
	int rc = 0;

	assert(state != RUN_PENDING && r->status[i].state == RUN_PENDING);
	r->status[i].state = state;
	settle_row(r, x->row);
	if (x->dataset != SIZE_MAX && !still_needed(r, x->dataset))
		rc = drop_dataset(r, x->dataset, e);
	if (rc == 0)
		rc = save_states(r, e);
	if (rc == 0 && r->p->design.row[x->row].state != DESIGN_PENDING)
		rc = note_row(r, x->row, e);
	return rc;
}

static int next_row(void *arg, struct runner_row *row, struct err *e)
{
	struct running *r = arg;
	struct experiment *x;
	struct row_status *s;

	for (;; r->next++) {
		if (r->next == r->p->experiments)
			return 0;
		x = &r->p->experiment[r->next];
		s = &r->status[r->next];
		if (s->state == RUN_BAD && r->o->retry)
			s->state = RUN_PENDING;
		if (s->state == RUN_PENDING && r->p->design.row[x->row].state != DESIGN_DONE)
			break;
	}
	/* again: another study may have ended since the plan was made */
	if (study_place_run(r->p, x, e) < 0)
		return e->code;
	r->now = r->next++;
	row->index = r->now;
	row->folder = xstrdup(x->folder);
	row->about = run_mark_about(r->p, x);
	row->why = x->why;
	run_mark_key_text(x, row->key);
	study_run_command(r->p, x, &row->command);
	return 1;
}

static bool counts(void *arg, const struct runner_row *row, const json_t *mark)
{
	const struct running *r = arg;

	(void)row;
	return !run_mark_is_noted(r->p, mark);
}

static void tell_row(void *arg, enum runner_event event, const struct runner_row *row)
{
	tell_event(arg, event == RUNNER_RUN ? STUDY_RUN : STUDY_TICK, row->index, row->seconds);
}

static int take_row(void *arg, const struct runner_row *row, struct err *e)
{
	static const enum study_event_kind kinds[] = {
		[ROW_FOUND] = STUDY_FOUND, [ROW_DONE] = STUDY_DONE, [ROW_FAILED] = STUDY_FAILED};
	struct running *r = arg;
	const struct experiment *x = &r->p->experiment[row->index];
	struct row_status *s = &r->status[row->index];
	int rc = 0;

	s->seconds = row->end == ROW_FOUND ? 0 : row->seconds;
	snprintf(s->reason, sizeof(s->reason), "%s", row->end == ROW_FAILED ? row->why.text : "");
	if (x->checkpoints && !x->own_folder)
		rc = drop_checkpoints(r, e);
	if (row->end != ROW_FOUND) {
		r->wall_s += s->seconds;
		r->compute_s += x->compute_s;
		r->made++;
	}
	if (rc == 0)
		rc = run_ended(r, row->index, row->end == ROW_FAILED ? RUN_BAD : RUN_DONE, e);
	tell_event(r, kinds[row->end], row->index, s->seconds);
	return rc;
}

/* Runs that were finished before a kill, but not yet noted in the design. */
static int take_finished(struct running *r, struct err *e)
{
	bool any = false;
	int rc = study_status(r->p, r->status, e);

	for (size_t i = 0; i < r->p->experiments && rc == 0; i++) {
		const struct design_row *row = &r->p->design.row[r->p->experiment[i].row];

		if (r->status[i].state != RUN_DONE || row->state == DESIGN_DONE)
			continue;
		tell_event(r, STUDY_FOUND, i, 0);
		any = true;
	}
	for (size_t i = 0; any && i < r->p->design.rows; i++)
		if (r->p->design.row[i].state == DESIGN_PENDING)
			settle_row(r, i);
	if (rc == 0 && any)
		rc = save_states(r, e);
	/* also those that a kill kept from being noted */
	for (size_t i = 0; rc == 0 && !r->o->small && i < r->p->experiments; i++)
		if (r->p->design.row[r->p->experiment[i].row].state != DESIGN_PENDING)
			rc = run_mark_note(r->p, &r->p->experiment[i], e);
	return rc;
}

/* The pending run with the fewest processes; SIZE_MAX: none is pending. */
static size_t smallest_pending(const struct running *r)
{
	size_t least = SIZE_MAX;

	for (size_t i = 0; i < r->p->experiments; i++) {
		const struct experiment *x = &r->p->experiment[i];

		if (study_is_pending(r->p, x) && !x->why.code &&
		    (least == SIZE_MAX || x->processes < r->p->experiment[least].processes))
			least = i;
	}
	return least;
}

/* A launcher or a module that does not work is a fault of the command, and no row's. */
static int try_launcher(struct running *r, struct err *e)
{
	AUTO_FREE char *log = path_join(r->o->results, "launcher.log");
	struct runner_child child = {.log = log, .stop = r->o->stop};
	struct str_list command = {0};
	size_t i = smallest_pending(r);
	int rc;

	if (i < SIZE_MAX)
		study_trial_command(r->p, &r->p->experiment[i], &command);
	if (command.n == 0)
		return 0;
	rc = runner_help(&command, &child, e);
	if (rc == 0)
		unlink(log);
	if (rc == 0 || rc == ERR_CANCELED)
		return rc;
	err_wrap(e, "the launcher cannot start a run (no row was tried, and the design is "
		    "unchanged)");
	return e->code = ERR_USAGE;
}

static int run_all(struct running *r, struct err *e)
{
	const struct runner runner = {.stop = r->o->stop,
				      .mark = STUDY_RUN_NAME,
				      .log = "run.log",
				      .next = next_row,
				      .counts = counts,
				      .prepare = generate_dataset,
				      .tell = tell_row,
				      .take = take_row,
				      .arg = r};
	int rc = file_mkdirs(r->o->scratch, e);

	if (rc == 0)
		rc = try_launcher(r, e);
	if (rc == 0)
		rc = take_finished(r, e);
	if (rc == 0)
		rc = runner_run(&runner, e);
	return rc != ERR_CANCELED
		       ? rc
		       : err_set(e, rc,
				 "the study was interrupted; run the same command to continue it");
}

int study_run(struct study_plan *p, study_event_fn fn, void *arg, size_t *failed, struct err *e)
{
	struct running r = {.p = p, .o = p->options, .fn = fn, .arg = arg, .lock.fd = -1};
	struct err unclean = {0};
	int rc, clean;

	*failed = 0;
	rc = design_check_saving(&p->design, e);
	if (rc == 0)
		rc = runner_lock(&r.lock, r.o->results, ".study.lock", "study", "--results", e);
	if (rc < 0)
		return rc;
	r.status = xcalloc(p->experiments + 1, sizeof(*r.status));
	r.generated = xcalloc(p->datasets + 1, sizeof(*r.generated));
	rc = run_all(&r, e);
	clean = clean_scratch(&r, &unclean);
	if (rc == 0 && clean < 0) {
		*e = unclean;
		rc = clean;
	}
	for (size_t i = 0; i < p->design.rows; i++)
		*failed += p->design.row[i].state == DESIGN_FAILED;
	if (rc == 0 && *failed == 0)
		rc = study_check_done(p, r.status, e);
	free(r.status);
	free(r.generated);
	file_unlock(&r.lock);
	return rc;
}
