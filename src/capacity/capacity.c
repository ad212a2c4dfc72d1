/* The search: which point is next, how long it is, and what is known at its end. */
#include "capacity/capacity.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "capacity/point_run.h"
#include "capacity/knee_search.h"
#include "capacity/samples.h"
#include "capacity/search_folder.h"
#include "result/json_out.h"
#include "workload/need.h"

static const uint64_t STEPS_LEAST = 16; /* measured, of a point's first run */
static const uint64_t TURNS_LEAST = 4;
static const double SECONDS_LEAST = 1; /* of computation */
static const uint64_t LONGER = 4;      /* times as many steps near the knee */
static const double CHANGED_POINTS = 4;
static const double CHANGED_ERRORS = 5;
static const double LIMIT_TIMES = 20; /* of the expected time, before a run is ended */
static const double LIMIT_S = 600;

struct searching {
	struct capacity *c;
	struct samples samples;
	double compute_s; /* of a step */
	uint32_t most;    /* accelerators; falls where files are too few */
	struct search_folder folder;
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

	if (!h)
		return s->compute_s;
	limited = h->step_s * accelerators / h->accelerators;
	return h->au < 95 ? fmax(s->compute_s, limited) : s->compute_s;
}

static uint64_t steps_wanted(const struct searching *s, const struct search_step *next, bool *full)
{
	uint64_t turn = s->samples.workers ? s->samples.workers : 1;
	double first = fmax(fmax((double)STEPS_LEAST, (double)(TURNS_LEAST * turn)),
			    ceil(SECONDS_LEAST / s->compute_s));
	double most = floor(s->c->o->time_s / expected_step(s, next->accelerators)) -
		      (double)s->samples.ahead;
	double want =
		next->longer ? fmax((double)LONGER * first, 10 * (double)s->samples.ahead) : first;

	most = fmax(most, 2 * (double)turn);
	*full = want >= most;
	return (uint64_t)fmin(want, most);
}

/* ---- what is known ---- */

static size_t knee_runs(const struct capacity *c, struct knee_run *out)
{
	size_t n = 0;

	for (size_t i = 0; i < c->runs; i++) {
		const struct capacity_run *r = &c->run[i];

		if (!r->outdated)
			out[n++] = (struct knee_run){.accelerators = r->accelerators,
						     .au = r->au,
						     .error = r->error,
						     .blocks = r->blocks,
						     .client = r->client,
						     .index = i};
	}
	return n;
}

static void know(struct capacity *c)
{
	struct knee_run *run = xcalloc(c->runs + 1, sizeof(*run));
	size_t n = knee_runs(c, run);

	knee_release(&c->knee);
	knee_find(run, n, c->o->target, &c->knee);
	free(run);
}

static int save(struct searching *s, struct err *e)
{
	json_t *root = capacity_json(s->c);

	json_put_text(root, "key", s->folder.key);
	return json_write(root, s->c->o->folder, CAPACITY_NAME, e);
}

/* The same number gave another AU before, beyond chance: credit of a burst is used up, another
 * program reads, a cache of the storage has filled. What was measured before says nothing of the
 * storage as it is now. */
static bool has_changed(const struct capacity *c, double *before)
{
	const struct capacity_run *last = &c->run[c->runs - 1];
	double sum = 0, error = last->error * last->error, disturbed = last->disturbed;
	size_t n = 0;

	for (size_t i = 0; i + 1 < c->runs; i++) {
		const struct capacity_run *r = &c->run[i];

		if (r->outdated || r->accelerators != last->accelerators)
			continue;
		sum += r->au;
		error += r->error * r->error;
		disturbed = fmax(disturbed, r->disturbed);
		n++;
	}
	*before = sum / (double)n;
	return n && fabs(*before - last->au) >
			    disturbed + fmax(CHANGED_POINTS, CHANGED_ERRORS * sqrt(error));
}

static void look_for_change(struct capacity *c)
{
	struct capacity_event event = {.kind = CAPACITY_CHANGED};
	struct capacity_run *last = &c->run[c->runs - 1];
	double before;

	if (c->changed || !has_changed(c, &before))
		return;
	c->changed = true;
	c->changed_at = last->accelerators;
	c->changed_from = before;
	c->changed_to = last->au;
	for (size_t i = 0; i + 1 < c->runs; i++)
		c->run[i].outdated = true;
	if (c->tell)
		c->tell(c->arg, &event);
}

/* ---- one run ---- */

static unsigned repeats(const struct capacity *c, uint32_t accelerators)
{
	unsigned n = 1;

	for (size_t i = 0; i < c->runs; i++)
		n += c->run[i].accelerators == accelerators;
	return n;
}

static int prepare(void *arg, struct err *e)
{
	struct searching *s = arg;

	return samples_make(&s->samples, s->c, e);
}

/* Number of accelerators that was measured. */
static uint32_t largest(const struct capacity *c)
{
	uint32_t most = 0;

	for (size_t i = 0; i < c->runs; i++)
		most = c->run[i].accelerators > most ? c->run[i].accelerators : most;
	return most;
}

static int measure(struct searching *s, const struct search_step *next, struct err *e)
{
	struct capacity *c = s->c;
	struct str_list keys = {0};
	struct samples_plan plan;
	struct capacity_run run;
	struct capacity_event event = {.kind = CAPACITY_DONE, .run = &run};
	bool full, found;
	uint64_t want = steps_wanted(s, next, &full);
	double step_s = expected_step(s, next->accelerators);
	uint32_t most;
	int rc = samples_plan(&s->samples, c, next->accelerators, want, &plan, &keys, &most, e);

	if (rc == 0) {
		struct point_order order = {.accelerators = next->accelerators,
					    .repeat = repeats(c, next->accelerators),
					    .steps = plan.steps,
					    .epochs = plan.epochs,
					    .keys = &keys,
					    .prepare = prepare,
					    .arg = s};

		order.expected_s = step_s * (double)plan.steps;
		order.limit_s = LIMIT_S + LIMIT_TIMES * order.expected_s;
		rc = point_run(c, &order, &run, &found, e);
		most = largest(c);
	}
	str_list_release(&keys);
	/* what is known stays known */
	if ((rc == -ENODATA || rc == -ENOMEM) && most >= 1 && c->runs &&
	    next->accelerators > largest(c)) {
		if (rc == -ENOMEM)
			err_wrap(e, "%u accelerators", next->accelerators);
		snprintf(c->stopped_by, sizeof(c->stopped_by), "%s", e->text);
		s->most = most;
		return 0;
	}
	if (rc == ERR_CANCELED || rc == ERR_USAGE)
		return rc;
	if (rc < 0)
		return err_wrap(e, "%u accelerator%s", next->accelerators,
				next->accelerators == 1 ? "" : "s");
	run.full = full || plan.all || next->longer;
	c->run = xrealloc(c->run, (c->runs + 1) * sizeof(*c->run));
	c->run[c->runs++] = run;
	c->seconds += isfinite(run.seconds) ? run.seconds : 0;
	event.kind = found ? CAPACITY_FOUND : CAPACITY_DONE;
	event.accelerators = run.accelerators;
	event.repeat = run.repeat;
	event.seconds = run.seconds;
	look_for_change(c);
	know(c);
	if (c->tell)
		c->tell(c->arg, &event);
	return save(s, e);
}

static int search(struct searching *s, struct err *e)
{
	struct capacity *c = s->c;
	struct search_step next;
	int rc = 0;

	while (rc == 0) {
		struct knee_run *run = xcalloc(c->runs + 1, sizeof(*run));
		size_t n = knee_runs(c, run);

		next = search_next(
			run, n,
			&(struct search_bounds){c->o->target, s->most,
						spread_processes(c->o->host, c->o->hosts)});
		free(run);
		if (next.done)
			break;
		rc = stop_is_set(c->o->stop) ? err_set(e, ERR_CANCELED, "interrupted")
					     : measure(s, &next, e);
	}
	c->complete = rc == 0;
	return rc;
}

/* ---- the whole ---- */

int capacity_find(struct capacity *c, const struct workload *w, const struct capacity_options *o,
		  capacity_event_fn tell, void *arg, struct err *e)
{
	struct searching s = {.c = c, .most = o->max, .folder.lock.fd = -1};
	struct err unclean = {0};
	int rc, clean;

	*c = (struct capacity){.o = o, .tell = tell, .arg = arg};
	s.compute_s = time_dist_mean(&w->train.computation_time);
	rc = samples_init(&s.samples, w, e);
	if (rc == 0) {
		struct need need;

		need_find(w, NEED_TRAINING, s.samples.file_bytes / (double)s.samples.per_file,
			  &need);
		c->need_samples = need.samples;
		c->need_bytes = need.bytes;
		snprintf(c->data, sizeof(c->data), "%s", s.samples.folder);
		c->made_data = s.samples.kind == SAMPLES_OWN;
		rc = search_folder_open(&s.folder, o, "accelerators", e);
	}
	if (rc == 0)
		rc = search(&s, e);
	know(c);
	if (c->complete) { /* an interrupted search goes on with its data */
		clean = samples_clean(&s.samples, c, &unclean);
		rc = save(&s, e);
		if (rc == 0 && clean < 0) {
			*e = unclean;
			rc = clean;
		}
	}
	samples_release(&s.samples);
	search_folder_close(&s.folder);
	return rc;
}

void capacity_release(struct capacity *c)
{
	free(c->run);
	knee_release(&c->knee);
	*c = (struct capacity){0};
}
