/* The search: which point is next, how long it is, and how it is made. */
#include "study/capacity_known.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/file.h"
#include "conf/override.h"
#include "result/json_out.h"
#include "study/beside.h"
#include "workload/need.h"

#define OWN_FOLDER "stoker_capacity"

static const uint64_t STEPS_LEAST = 16; /* measured, of a point's first run */
static const uint64_t TURNS_LEAST = 4;
static const double SECONDS_LEAST = 1; /* of computation */
static const uint64_t LONGER = 4;      /* times as many steps near the knee */
static const double ROOM = 0.5;        /* of the free space, for a checkpoint */
static const double LIMIT_TIMES = 20;  /* of the expected time, before a run is ended */
static const double LIMIT_S = 600;
static const double PROBE_S = 3;
static const size_t PROBED_MOST = 1; /* runs before the end */

/* Another workload beside each run. */
struct other_runs {
	const struct capacity_other *of;
	struct capacity_options o; /* with which its samples are planned and made */
	struct capacity c;
	struct samples samples;
	struct str_list keys;
};

struct searching {
	struct capacity *c;
	struct samples samples;
	double compute_s; /* of a step */
	uint32_t most;    /* accelerators; falls where files or memory are too few */
	struct search_folder folder;
	struct capacity_run now; /* the row that is made: its number, repetition and length */
	const struct workload *w;
	char *saves;      /* folder of the checkpoints of its runs; NULL */
	bool looked_back; /* the first number was measured again, to see a cache */
	struct other_runs other[CAPACITY_OTHERS_MOST];
	double others_s; /* of the measured steps of a point, so that each of them made enough */
};

/* ---- how long a point is ---- */

/* Of the run with the most accelerators so far, which says most of what the storage can do. */
static const struct capacity_run *highest(const struct capacity *c)
{
	const struct capacity_run *best = NULL;

	for (size_t i = 0; i < c->runs; i++)
		if (!c->run[i].outdated && isfinite(c->run[i].step_s) &&
		    (!best || c->run[i].accelerators > best->accelerators))
			best = &c->run[i];
	return best;
}

/* Time of a step, at most: as if all had been limited by a rate that stays the same. */
static double expected_step(const struct searching *s, uint32_t accelerators)
{
	const struct capacity_run *h = highest(s->c);
	double limited;

	for (size_t i = s->c->runs; i > 0; i--)
		if (s->c->run[i - 1].accelerators == accelerators)
			return s->c->run[i - 1].step_s;
	if (!h)
		return s->compute_s;
	limited = h->step_s * accelerators / h->accelerators;
	return h->au < 95 ? fmax(s->compute_s, limited) : s->compute_s;
}

/* With which a point says something. */
static double least_steps(const struct samples *s)
{
	uint64_t turn = s->workers ? s->workers : 1;

	return fmax((double)STEPS_LEAST, (double)(TURNS_LEAST * turn));
}

/* Of a point's first run. */
static double first_steps(const struct searching *s)
{
	return fmax(least_steps(&s->samples), ceil(SECONDS_LEAST / s->compute_s));
}

static uint64_t steps_wanted(const struct searching *s, const struct search_step *next, bool *full)
{
	uint64_t turn = s->samples.workers ? s->samples.workers : 1;
	double first = first_steps(s), step_s = expected_step(s, next->accelerators);
	double most = floor(s->c->o->time_s / step_s) - (double)s->samples.ahead;
	double want =
		next->longer ? fmax((double)LONGER * first, 10 * (double)s->samples.ahead) : first;

	/* a step is at least as long as its computation */
	if (next->confirms)
		want = fmax(want, ceil(CAPACITY_CONFIRM_S / step_s));
	want = fmax(want, ceil(capacity_least_seconds(s->c, next->accelerators) / step_s));
	want = fmax(want, ceil(s->others_s / step_s));
	most = fmax(most, 2 * (double)turn);
	*full = want >= most;
	return (uint64_t)fmin(want, most);
}

/* Number of accelerators that was measured. */
static uint32_t largest(const struct capacity *c)
{
	uint32_t most = 0;

	for (size_t i = 0; i < c->runs; i++)
		RAISE(most, c->run[i].accelerators);
	return most;
}

/* A number that this machine, or the data, is too small for ends the search below it: what is known
 * stays known. */
static int give_up(struct searching *s, uint32_t accelerators, uint32_t most, const struct err *why,
		   struct err *e)
{
	struct capacity *c = s->c;
	bool lacks = search_lacks_resources(why);

	*e = *why;
	if ((lacks || why->code == -ENODATA) && most >= 1 && c->runs && accelerators > largest(c)) {
		if (lacks)
			err_wrap(e, "%u accelerators", accelerators);
		snprintf(c->stopped_by, sizeof(c->stopped_by), "%s", e->text);
		s->most = most;
		return 0;
	}
	return e->code == ERR_CANCELED || e->code == ERR_USAGE
		       ? e->code
		       : err_wrap(e, "%u accelerator%s", accelerators,
				  accelerators == 1 ? "" : "s");
}

/* It was made as long as it needs to be, and was shorter: another one would be, too. */
static bool came_short(const struct capacity *c, uint32_t accelerators)
{
	for (size_t i = 0; i < c->runs; i++)
		if (c->run[i].accelerators == accelerators &&
		    c->run[i].measured_s >=
			    CAPACITY_HALF_ENOUGH * capacity_least_seconds(c, accelerators))
			return c->least_s > 0;
	return false;
}

static void leave_out(struct capacity *c, const char *what, const char *why)
{
	if (strstr(c->left_out, what))
		return;
	snprintf(c->left_out + strlen(c->left_out), sizeof(c->left_out) - strlen(c->left_out),
		 "%s%s: %s", c->left_out[0] ? "; " : "", what, why);
}

/* How often the workload itself writes a checkpoint with so many accelerators, which no short run
 * shows. */
static void find_saves(struct searching *s, uint32_t accelerators)
{
	const struct workload *w = s->w;
	AUTO_FREE char *near = NULL;
	struct run_foresight f;
	struct statvfs v;
	struct err why = {0};
	int rc;

	if (!w->workflow.checkpoint)
		return;
	if (s->c->o->small) {
		leave_out(s->c, "checkpoints", "--small shortens the steps between them");
		return;
	}
	rc = samples_whole_run(s->c, accelerators, &f, &why);
	if (rc < 0 || f.train_steps == 0) {
		leave_out(s->c, "checkpoints", rc < 0 ? why.text : "the workload has no steps");
		return;
	}
	near = path_nearest(w->checkpoint.checkpoint_folder, &(struct stat){0});
	if (near && statvfs(near, &v) == 0 &&
	    (double)f.checkpoint_bytes > ROOM * (double)v.f_bavail * (double)v.f_frsize) {
		leave_out(s->c, "checkpoints", "there is no room for one");
		return;
	}
	s->now.whole_steps = (double)f.train_steps;
	s->now.saves = (double)f.checkpoints;
	s->now.save_every_s = f.checkpoints_by_time ? w->checkpoint.seconds_between_checkpoints : 0;
}

/* ---- other workloads ---- */

/* Of one that nothing limits: how long its files last before they are read again, so that the
 * begins of its epochs are few. */
static const double OTHER_EPOCH_S = 4;
static const double OTHER_TIMES = 3, OTHER_MORE_S = 60; /* of --time: it outlasts a point */
static const double OTHER_SLOWER = 1.2;

/* Each process has a store of its own, or a limit of its own before it. */
static bool has_own_store(const struct workload *w, const struct samples *s)
{
	bool limited = false;

	for (size_t i = 0; store_facts_table[i]; i++)
		limited = limited ||
			  (store_facts_table[i]->flags & STORE_LIMITS &&
			   store_expression_has(w->storage.store, store_facts_table[i]->name));
	return limited || s->kind == SAMPLES_RUN;
}

static int check_other(const struct searching *s, const struct other_runs *x, struct err *e)
{
	bool own = has_own_store(x->of->w, &x->samples);

	if (own || has_own_store(s->w, &s->samples))
		return err_set(e, ERR_USAGE,
			       "capacity: several workloads share a storage by its files: "
			       "storage.store of '%s' is '%s', of which each process has its own",
			       own ? x->of->name : s->c->o->name,
			       own ? x->of->w->storage.store : s->w->storage.store);
	for (const struct other_runs *y = s->other; y <= x; y++) {
		const char *folder = y == x ? s->samples.folder : y->samples.folder;

		if (strcmp(folder, x->samples.folder) == 0)
			return err_set(e, ERR_USAGE,
				       "capacity: '%s' and '%s' have the same folder of data "
				       "('%s'): name another one with %s:dataset.data_folder=",
				       x->of->name, y == x ? s->c->o->name : y->of->name, folder,
				       x->of->name);
	}
	return 0;
}

/* Its number stays, so that its data is made once. */
static int plan_other(struct searching *s, struct other_runs *x, struct err *e)
{
	double step_s = time_dist_mean(&x->of->w->train.computation_time);
	struct samples_want want = {.beside = true};
	struct samples_plan plan;
	uint32_t most;
	int rc = samples_init(&x->samples, x->of->w, e);

	if (rc == 0)
		rc = check_other(s, x, e);
	if (rc < 0)
		return rc;
	want.first = (uint64_t)fmax(least_steps(&x->samples), ceil(OTHER_EPOCH_S / step_s));
	want.measured = (uint64_t)ceil((OTHER_TIMES * x->o.time_s + OTHER_MORE_S) / step_s);
	s->others_s = fmax(s->others_s, OTHER_SLOWER * step_s *
						(least_steps(&x->samples) +
						 (double)samples_left_out(&x->samples)));
	rc = samples_plan(&x->samples, &x->c, x->of->accelerators, &want, &plan, &x->keys, &most,
			  e);
	if (rc < 0)
		return rc;
	override_put(&x->keys, "train.epochs", "%llu", (unsigned long long)plan.epochs);
	override_put(&x->keys, "train.total_training_steps", "-1");
	if (x->of->w->workflow.checkpoint) {
		AUTO_FREE char *what = xasprintf("checkpoints of %s", x->of->name);

		leave_out(s->c, what, "it trains alone beside the search");
	}
	return 0;
}

static int plan_others(struct searching *s, struct err *e)
{
	const struct capacity_options *o = s->c->o;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < o->others; i++) {
		struct other_runs *x = &s->other[i];

		x->of = &o->other[i];
		x->o = *o;
		x->o.base = x->of->base;
		x->c = (struct capacity){.o = &x->o, .tell = s->c->tell, .arg = s->c->arg};
		rc = plan_other(s, x, e);
		if (rc < 0)
			err_wrap(e, "%u of %s", x->of->accelerators, x->of->name);
	}
	return rc;
}

static void put_others(const struct searching *s, struct runner_row *row)
{
	const struct capacity_options *o = s->c->o;

	row->besides = o->others;
	row->beside = xcalloc(o->others + 1, sizeof(*row->beside));
	for (size_t i = 0; i < o->others; i++) {
		const struct other_runs *x = &s->other[i];

		row->beside[i] = (struct beside){.name = xstrdup(x->of->name),
						 .ready = samples_left_out(&x->samples),
						 .limit_s = LIMIT_S};
		search_command(o, &x->of->base, x->of->accelerators, &x->keys,
			       &row->beside[i].command);
	}
}

static int clean_others(const struct searching *s, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < s->c->o->others; i++)
		if (samples_clean(&s->other[i].samples, &s->other[i].c, e) < 0)
			rc = e->code;
	return rc;
}

static void release_others(struct searching *s)
{
	for (size_t i = 0; i < s->c->o->others; i++) {
		samples_release(&s->other[i].samples);
		str_list_release(&s->other[i].keys);
	}
}

/* ---- rows ---- */

static int plan_row(struct searching *s, const struct search_step *next, struct runner_row *row,
		    uint32_t *most, struct err *e)
{
	struct capacity *c = s->c;
	struct str_list keys = {0};
	struct samples_plan plan;
	struct samples_want want = {.first = (uint64_t)least_steps(&s->samples)};
	bool full;
	int rc;

	s->now = (struct capacity_run){.accelerators = next->accelerators,
				       .repeat = capacity_repeats(c, next->accelerators)};
	find_saves(s, next->accelerators);
	want.measured = steps_wanted(s, next, &full);
	want.saves = capacity_saves(&s->now);
	rc = samples_plan(&s->samples, c, next->accelerators, &want, &plan, &keys, most, e);
	if (rc == 0) {
		override_put(&keys, "train.epochs", "%llu", (unsigned long long)plan.epochs);
		override_put(&keys, "train.total_training_steps", "%llu",
			     (unsigned long long)plan.steps);
		if (want.saves)
			override_put_text(&keys, "checkpoint.checkpoint_folder", s->saves);
		s->now.steps = plan.steps;
		s->now.full = full || plan.all || came_short(c, next->accelerators);
		s->now.confirms = next->confirms;
		s->now.probes = next->probes;
		if (next->probes) {
			override_put(&keys, "run.probe", "true");
			override_put(&keys, "run.probe_time", "%g", PROBE_S);
		}
		s->now.samples_read = plan.samples_read;
		search_row(c->o, next->accelerators, s->now.repeat, plan.steps, &keys, row);
		capacity_put_mark(&s->now, row->about);
		put_others(s, row);
		row->expected_s = expected_step(s, next->accelerators) * (double)plan.steps;
		row->limit_s = LIMIT_S + LIMIT_TIMES * row->expected_s;
	}
	str_list_release(&keys);
	return rc;
}

/* Before an answer that nothing missed: whether a cache has served it. */
static bool looks_back(struct searching *s, struct search_step *next)
{
	const struct capacity *c = s->c;
	const struct capacity_run *first = c->runs ? &c->run[0] : NULL;

	if (s->looked_back || c->warms || !first || s->samples.kind == SAMPLES_RUN ||
	    !c->knee.at_least || c->run[c->runs - 1].accelerators == first->accelerators)
		return false;
	s->looked_back = true;
	*next = (struct search_step){.accelerators = first->accelerators};
	return true;
}

/* Causes that a run tells by itself, and a probe does not. */
static bool is_told(enum cause cause)
{
	return cause == CAUSE_STALL || cause == CAUSE_CHECKPOINT || cause == CAUSE_IO_LIMIT;
}

/* The smallest number that misses the target is probed when it is measured again, or else in a run
 * of its own at the end: a rate of requests, of bytes or of opens, and a queue, have one curve, and
 * reads of other sizes and depths tell them apart. */
static void look_for_probe(const struct searching *s, struct search_step *next)
{
	const struct capacity *c = s->c;
	const struct capacity_run *limited = capacity_limited(c);
	size_t probed = 0;
	bool of_limited = false;

	for (size_t i = 0; i < c->runs; i++) {
		probed += c->run[i].probes;
		of_limited = of_limited || (c->run[i].probes && limited &&
					    c->run[i].accelerators == limited->accelerators);
	}
	if (!limited || of_limited || probed >= PROBED_MOST + next->done ||
	    is_told(limited->cause) || s->w->run.probe == PROBE_NEVER)
		return;
	if (next->done && !limited->client)
		*next = (struct search_step){.accelerators = limited->accelerators, .longer = true};
	next->probes = next->accelerators == limited->accelerators && !next->done;
}

static int next_row(void *arg, struct runner_row *row, struct err *e)
{
	struct searching *s = arg;
	struct capacity *c = s->c;

	for (;;) {
		AUTO_FREE struct knee_run *run = xcalloc(c->runs + 1, sizeof(*run));
		size_t n = capacity_knee_runs(c, run);
		struct search_bounds bounds = {c->o->target, s->most,
					       spread_processes(c->o->host, c->o->hosts),
					       c->least_s > 0};
		struct search_step next = search_next(run, n, &bounds);
		struct err why = {0};
		uint32_t most = 0;

		/* what was given cannot be read for the first time again */
		if (c->warms && s->samples.kind == SAMPLES_GIVEN)
			return 0;
		if (!next.done || !looks_back(s, &next))
			look_for_probe(s, &next);
		if (next.done)
			return 0;
		s->samples.anew = c->warms;
		if (plan_row(s, &next, row, &most, &why) == 0)
			return 1;
		if (give_up(s, next.accelerators, most, &why, e) < 0)
			return e->code;
	}
}

static int prepare_row(void *arg, struct runner_row *row, struct err *e)
{
	struct searching *s = arg;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->c->o->others; i++)
		rc = samples_make(&s->other[i].samples, &s->other[i].c, e);
	if (rc == 0)
		rc = samples_make(&s->samples, s->c, e);

	json_put_bool(row->about, "fresh", s->samples.unread);
	s->samples.unread = false;
	return rc;
}

static void tell_row(void *arg, enum runner_event event, const struct runner_row *row)
{
	const struct searching *s = arg;
	const struct capacity_event told = {.kind = event == RUNNER_RUN ? CAPACITY_RUN
									: CAPACITY_TICK,
					    .accelerators = s->now.accelerators,
					    .repeat = s->now.repeat,
					    .expected_s = row->expected_s,
					    .seconds = row->seconds};

	if (s->c->tell)
		s->c->tell(s->c->arg, &told);
}

static int take_row(void *arg, const struct runner_row *row, struct err *e)
{
	struct searching *s = arg;
	struct capacity *c = s->c;
	struct capacity_run run = s->now;
	const struct capacity_event event = {.kind = row->end == ROW_FOUND ? CAPACITY_FOUND
									   : CAPACITY_DONE,
					     .accelerators = run.accelerators,
					     .repeat = run.repeat,
					     .seconds = row->seconds,
					     .run = &run};

	if (s->saves)
		remove_tree(s->saves, NULL);
	if (row->end == ROW_FAILED)
		return give_up(s, run.accelerators, largest(c), &row->why, e);
	if (capacity_read_point(c, row->folder, &run, e) < 0)
		return err_wrap(e, "%u accelerator%s", run.accelerators,
				run.accelerators == 1 ? "" : "s");
	capacity_add(c, &run);
	capacity_know(c);
	if (c->tell)
		c->tell(c->arg, &event);
	return search_folder_save(&s->folder, c->o, capacity_json(c), e);
}

static int search(struct searching *s, struct err *e)
{
	const struct runner r = {.stop = s->c->o->stop,
				 .mark = search_mark,
				 .log = search_log,
				 .next = next_row,
				 .prepare = prepare_row,
				 .tell = tell_row,
				 .take = take_row,
				 .arg = s};
	int rc = runner_run(&r, e);

	s->c->complete = rc == 0;
	return rc;
}

/* ---- the whole ---- */

int capacity_find(struct capacity *c, const struct workload *w, const struct capacity_options *o,
		  capacity_event_fn tell, void *arg, struct err *e)
{
	AUTO_FREE char *saves = path_join(w->checkpoint.checkpoint_folder, OWN_FOLDER);
	AUTO_FREE char *above = path_nearest(w->checkpoint.checkpoint_folder, &(struct stat){0});
	struct searching s = {.c = c, .w = w, .most = o->max, .folder.lock.fd = -1, .saves = saves};
	struct err unclean = {0};
	bool began = false;
	int rc, clean = 0;

	*c = (struct capacity){.o = o, .tell = tell, .arg = arg};
	s.compute_s = time_dist_mean(&w->train.computation_time);
	if (w->workflow.evaluation)
		leave_out(c, "evaluations", "AU does not count their time");
	rc = samples_init(&s.samples, w, e);
	if (rc == 0) {
		struct need need;

		need_find(w, NEED_TRAINING, s.samples.file_bytes / (double)s.samples.per_file,
			  &need);
		c->need_samples = need.samples;
		c->need_bytes = need.bytes;
		rc = plan_others(&s, e);
	}
	if (rc == 0)
		rc = search_folder_open(&s.folder, o, "accelerators", e);
	began = rc == 0;
	if (rc == 0)
		rc = search(&s, e);
	capacity_know(c);
	/* a search that goes on later makes its data again */
	if (began)
		clean = samples_clean(&s.samples, c, &unclean);
	if (began && clean_others(&s, &unclean) < 0)
		clean = unclean.code;
	if (began && w->workflow.checkpoint) {
		remove_tree(saves, NULL);
		remove_empty_folders(w->checkpoint.checkpoint_folder, above);
	}
	if (c->complete)
		rc = search_folder_save(&s.folder, o, capacity_json(c), e);
	if (rc == 0 && clean < 0) {
		*e = unclean;
		rc = clean;
	}
	samples_release(&s.samples);
	release_others(&s);
	file_unlock(&s.folder.lock);
	return rc;
}
