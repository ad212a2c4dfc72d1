/* The runner of a study. */
#include "study/study.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/folder_lock.h"
#include "study/command.h"
#include "base/child_log.h"
#include "base/remove_tree.h"

#define TICK_NS (NS_PER_S / 10)
#define GRACE_NS (15 * NS_PER_S)

struct running {
	struct study_plan *p;
	const struct study_options *o;
	struct run_status *status;
	bool *generated; /* per dataset */
	json_t *saved;
	study_event_fn fn;
	void *arg;
	struct file_lock lock;
	double wall_s, compute_s; /* of the runs made in this call */
	size_t made;
};

static bool study_stopped(const struct running *r)
{
	return r->o->stop && atomic_load_explicit(&r->o->stop->set, memory_order_acquire);
}

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

static void tell_event(struct running *r, enum study_event_kind kind, size_t i, double seconds,
		       const char *log)
{
	struct study_event ev = {.kind = kind,
				 .experiment = &r->p->experiment[i],
				 .reason = r->status[i].reason,
				 .seconds = seconds,
				 .left_s = seconds_left(r),
				 .log = log};

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

/* ---- children ---- */

/* Runs a command to its end. 0 when it ended well; ERR_CANCELED; else its reason is in `reason`.
 * `kept`: where the log will be when the command fails. */
static int run_child(struct running *r, size_t i, char *const *argv, const char *log,
		     const char *kept, double *seconds, char *reason, size_t reason_size)
{
	int64_t begin = clock_now_ns();
	struct child c;
	struct err why = {0};
	char outcome[128];

	*seconds = 0;
	if (child_start(&c, (const char *const *)argv, log, &why) < 0) {
		snprintf(reason, reason_size, "%s", why.text);
		return -1;
	}
	while (!child_wait(&c, TICK_NS)) {
		if (study_stopped(r)) {
			child_end(&c, GRACE_NS, r->o->stop);
			return ERR_CANCELED;
		}
		*seconds = (double)(clock_now_ns() - begin) / 1e9;
		tell_event(r, STUDY_TICK, i, *seconds, log);
	}
	*seconds = (double)(clock_now_ns() - begin) / 1e9;
	if (child_outcome(&c, outcome, sizeof(outcome)) == 0)
		return 0;
	if (study_stopped(r))
		return ERR_CANCELED;
	child_log_reason(log, outcome, kept, reason, reason_size);
	return -1;
}

/* ---- data ---- */

static int generate_dataset(struct running *r, size_t i)
{
	const struct experiment *x = &r->p->experiment[i];
	struct study_dataset *d = &r->p->dataset[x->dataset];
	AUTO_FREE char *log = xasprintf("%s/%s.generate.log", r->o->results, d->name);
	char **argv;
	double seconds;
	int rc;

	if (r->generated[x->dataset] || d->there)
		return 0;
	tell_event(r, STUDY_GENERATE, i, 0, log);
	argv = study_generate_argv(r->p, d);
	unlink(log);
	rc = run_child(r, i, argv, log, log, &seconds, r->status[i].reason,
		       sizeof(r->status[i].reason));
	study_argv_free(argv);
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
	return r->o->keep_data || r->p->dataset[dataset].given
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

/* A row that was set back replaces its old result. */
static int name_run(const struct experiment *x, const char *partial, struct err *e)
{
	int rc = remove_tree(x->folder, e);

	if (rc == 0 && rename(partial, x->folder) < 0)
		rc = err_sys(e, errno, "cannot rename '%s' to '%s'", partial, x->folder);
	return rc;
}

static int run_into(struct running *r, size_t i, const char *partial, const char *failed,
		    char **argv)
{
	const struct experiment *x = &r->p->experiment[i];
	struct run_status *s = &r->status[i];
	AUTO_FREE char *log = path_join(partial, "run.log");
	AUTO_FREE char *kept = path_join(failed, "run.log");
	int64_t begin = clock_wall_ns();
	struct err e = {0};
	int rc = remove_tree(partial, &e);

	if (rc == 0)
		rc = file_mkdirs(partial, &e);
	if (rc == 0) {
		tell_event(r, STUDY_RUN, i, 0, log);
		rc = run_child(r, i, argv, log, kept, &s->seconds, s->reason, sizeof(s->reason));
		if (rc < 0)
			return rc;
	}
	if (rc == 0)
		rc = run_mark_write(r->p, x, partial, argv, begin, s->seconds, &e);
	if (rc == 0)
		rc = name_run(x, partial, &e);
	if (rc < 0)
		snprintf(s->reason, sizeof(s->reason), "%s", e.text);
	return rc;
}

static int one_run(struct running *r, size_t i, struct err *e)
{
	struct experiment *x = &r->p->experiment[i];
	struct run_status *s = &r->status[i];
	AUTO_FREE char *partial = NULL, *failed = NULL;
	char **argv;
	int rc;

	/* again: another study may have ended since the plan was made */
	rc = study_place_run(r->p, x, e);
	if (rc < 0)
		return rc;
	partial = xasprintf("%s.partial", x->folder);
	failed = xasprintf("%s.failed", x->folder);
	s->ran = true;
	s->reason[0] = '\0';
	if (x->why.code) {
		snprintf(s->reason, sizeof(s->reason), "%s", x->why.text);
		rc = -1;
	} else {
		rc = x->dataset == SIZE_MAX ? 0 : generate_dataset(r, i);
	}
	if (rc == 0) {
		argv = study_run_argv(r->p, x, partial);
		rc = run_into(r, i, partial, failed, argv);
		study_argv_free(argv);
		if (x->checkpoints && !x->own_folder && drop_checkpoints(r, e) < 0)
			return e->code;
	}
	if (rc == ERR_CANCELED) {
		remove_tree(partial, NULL);
		return err_set(e, ERR_CANCELED,
			       "the study was interrupted; run the same command to continue it");
	}
	remove_tree(failed, NULL);
	if (rc < 0 && file_is_dir(partial) && rename(partial, failed) < 0)
		remove_tree(partial, NULL);
	r->wall_s += s->seconds;
	r->compute_s += x->compute_s;
	r->made++;
	rc = run_ended(r, i, rc == 0 ? RUN_DONE : RUN_BAD, e);
	tell_event(r, s->state == RUN_DONE ? STUDY_DONE : STUDY_FAILED, i, s->seconds, NULL);
	return rc;
}

/* Runs that were finished before a kill, but had not got their name. */
static int name_finished(struct running *r, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < r->p->experiments; i++) {
		const struct experiment *x = &r->p->experiment[i];
		AUTO_FREE char *partial = xasprintf("%s.partial", x->folder);

		if (r->p->design.row[x->row].state == DESIGN_PENDING &&
		    run_is_ready(r->p, x, partial))
			rc = name_run(x, partial, e);
	}
	return rc;
}

/* Runs that were finished before a kill, but not yet noted in the design. */
static int take_finished(struct running *r, struct err *e)
{
	bool any = false;
	int rc = name_finished(r, e);

	if (rc == 0)
		rc = study_status(r->p, r->status, e);
	for (size_t i = 0; i < r->p->experiments && rc == 0; i++) {
		const struct design_row *row = &r->p->design.row[r->p->experiment[i].row];

		if (r->status[i].state != RUN_DONE || row->state == DESIGN_DONE)
			continue;
		tell_event(r, STUDY_FOUND, i, 0, NULL);
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

static int lock_results(struct running *r, struct err *e)
{
	AUTO_FREE char *path = path_join(r->o->results, ".study.lock");
	char who[FILE_LOCK_WHO_MAX];
	int rc = file_mkdirs(r->o->results, e);

	if (rc == 0)
		rc = file_lock(&r->lock, path, who, e);
	if (rc != -EBUSY)
		return rc;
	return err_set(e, ERR_USAGE,
		       "another study is writing to '%s'%s%s: wait until it has ended, or choose "
		       "another folder with --results (lock file '%s')",
		       r->o->results, who[0] ? ": " : "", who, path);
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
	size_t i = smallest_pending(r);
	char reason[sizeof(r->status->reason)];
	struct child c;
	char **argv = i < SIZE_MAX ? study_trial_argv(r->p, &r->p->experiment[i]) : NULL;
	int rc;

	if (!argv)
		return 0;
	unlink(log);
	rc = child_start(&c, (const char *const *)argv, log, e);
	study_argv_free(argv);
	if (rc < 0)
		return rc;
	while (!child_wait(&c, TICK_NS))
		if (study_stopped(r)) {
			child_end(&c, GRACE_NS, r->o->stop);
			return err_set(e, ERR_CANCELED, "the study was interrupted");
		}
	if (child_outcome(&c, reason, sizeof(reason)) == 0) {
		unlink(log);
		return 0;
	}
	child_log_reason(log, reason, log, reason, sizeof(reason));
	return err_set(e, ERR_USAGE,
		       "the launcher cannot start a run (no row was tried, and the design is "
		       "unchanged): %s",
		       reason);
}

static int run_all(struct running *r, struct err *e)
{
	int rc = file_mkdirs(r->o->scratch, e);

	if (rc == 0)
		rc = try_launcher(r, e);
	if (rc == 0)
		rc = take_finished(r, e);
	for (size_t i = 0; rc == 0 && i < r->p->experiments; i++) {
		const struct experiment *x = &r->p->experiment[i];
		enum design_state state = r->p->design.row[x->row].state;

		if (r->status[i].state == RUN_BAD && r->o->retry)
			r->status[i].state = RUN_PENDING;
		if (r->status[i].state != RUN_PENDING || state == DESIGN_DONE)
			continue;
		if (study_stopped(r))
			return err_set(
				e, ERR_CANCELED,
				"the study was interrupted; run the same command to continue it");
		rc = one_run(r, i, e);
	}
	return rc;
}

int study_run(struct study_plan *p, study_event_fn fn, void *arg, size_t *failed, struct err *e)
{
	struct running r = {.p = p, .o = p->options, .fn = fn, .arg = arg, .lock.fd = -1};
	struct err unclean = {0};
	int rc, clean;

	*failed = 0;
	rc = design_check_saving(&p->design, e);
	if (rc == 0)
		rc = lock_results(&r, e);
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
