/* What a plan is made from: the results and points that were named. */
#include "cli/plan_known.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/say.h"
#include "base/str.h"
#include "cli/result_args.h"
#include "readback/audit.h"
#include "readback/figures.h"
#include "workload/need.h"

#define CACHED 0.1 /* of a checkpoint, that may come from the page cache */

bool plan_wants_checkpoint(const struct plan_args *a)
{
	return a->checkpoint || a->parameters;
}

void known_begin(void *arg, size_t n)
{
	struct known *k = arg;

	k->results = n;
	k->result = xcalloc(n + 1, sizeof(*k->result));
	k->run = xcalloc(n + 1, sizeof(*k->run));
}

static double above_zero(double rate)
{
	return rate > 0 ? rate : NAN;
}

void known_look(void *arg, size_t i, struct run_record *r)
{
	struct known *k = arg;
	struct known_result *x = &k->result[i];
	struct run_figures f;

	x->write = x->read = NAN;
	x->folder = xstrdup(r->folder);
	snprintf(x->system, sizeof(x->system), "%s", r->system);
	run_name_of(&x->name, r);
	if (r->broken) {
		err_set(&x->why, ERR_DATA, "%s", r->broken);
		return;
	}
	audit_alone(r);
	str_list_copy(&x->failed, &r->alone.failed);
	audit_basis(r, &k->run[i].basis);
	k->run[i].point = &x->point;
	figures_find(&f, r);
	x->write = above_zero(f.write_rate);
	/* a restarted job finds nothing in a page cache */
	x->cached = f.read_cached > CACHED;
	x->read = x->cached ? NAN : above_zero(f.read_rate);
	if (r->damage.n)
		err_set(&x->why, ERR_DATA, "%s", r->damage.v[0]);
	else
		x->lacks = point_of_record(&x->point, r, &x->why) < 0;
}

static void release_result(struct known_result *x)
{
	free(x->folder);
	str_list_release(&x->failed);
}

void known_release(struct known *k)
{
	for (size_t i = 0; i < k->results; i++)
		release_result(&k->result[i]);
	free(k->run);
	free(k->result);
	free(k->point);
	str_list_release(&k->notes);
}

static int refuse_failed(const struct known_result *x, struct err *e)
{
	struct buf names = {0};

	for (size_t n = 0; n < x->failed.n; n++)
		buf_say(&names, "%s%s", n ? ", " : "", x->failed.v[n]);
	err_set(e, ERR_DATA,
		"'%s' has failed checks (%s), so a plan from it would be wrong: measure again "
		"('stoker audit' says what to do), or accept it with --despite-verdicts",
		x->point.from, names.data);
	buf_release(&names);
	return e->code;
}

static void drop_results(struct known *k, const bool *drop)
{
	size_t n = 0;

	for (size_t i = 0; i < k->results; i++) {
		if (drop[i]) {
			release_result(&k->result[i]);
			continue;
		}
		k->result[n] = k->result[i];
		k->run[n] = k->run[i];
		k->run[n].point = &k->result[n].point;
		n++;
	}
	k->results = n;
}

/* Of a folder of which some results can be planned from, those that can. */
static void leave_unusable(const struct plan_args *a, struct known *k)
{
	AUTO_FREE bool *drop = xcalloc(k->results + 1, sizeof(*drop));
	const struct err *first = NULL;
	size_t of = 0, others = 0;

	for (size_t i = 0; i < k->results; i++) {
		const struct known_result *x = &k->result[i];

		drop[i] = x->lacks && !(isfinite(x->write) && plan_wants_checkpoint(a));
		of += !x->why.code;
		others += drop[i];
		first = first || !drop[i] ? first : &x->why;
	}
	if (of == 0 || others == 0)
		return;
	say(stderr,
	    "stoker: %zu of %zu results %s left out, as nothing can be planned from %s; the first: "
	    "%s\n",
	    others, k->results, others == 1 ? "is" : "are", others == 1 ? "it" : "them",
	    first->text);
	drop_results(k, drop);
}

/* Of a folder of many workloads' results, those of the one that is planned, where there are any. */
static void take_those_of(const struct duty *plan, struct known *k)
{
	AUTO_FREE bool *drop = xcalloc(k->results + 1, sizeof(*drop));
	size_t of = 0, others = 0;

	for (size_t i = 0; i < k->results; i++) {
		const struct known_result *x = &k->result[i];

		drop[i] = !x->why.code && !duty_same(&x->point.of, plan);
		others += drop[i];
		of += !x->why.code && !drop[i];
	}
	if (of == 0 || others == 0)
		return;
	drop_results(k, drop);
	/* no note of the plan, which knows nothing of them */
	say(stderr,
	    "stoker: planned from the %zu result%s of this workload; %zu of others %s left out\n",
	    of, of == 1 ? "" : "s", others, others == 1 ? "is" : "are");
}

/* Results that are not of one workload on one storage. */
static int refuse_mixed(const struct point *a, const struct point *b, struct err *e)
{
	char bytes[2][32];

	if (!duty_same(&a->of, &b->of))
		return err_set(
			e, ERR_USAGE,
			"results of different workloads: '%.200s' has batches of %.0f samples of "
			"%s in %.4g s, '%.200s' of %.0f of %s in %.4g s; plan from one workload, "
			"or name it (--model)",
			a->from, a->of.batch, str_bytes(a->of.sample_bytes, bytes[0], 32),
			a->of.step_s, b->from, b->of.batch,
			str_bytes(b->of.sample_bytes, bytes[1], 32), b->of.step_s);
	if (strcmp(a->store, b->store) != 0)
		return err_set(e, ERR_USAGE,
			       "results of different storage: '%.200s' was measured with %s, "
			       "'%.200s' with %s; plan from one",
			       a->from, a->store[0] ? a->store : "a storage system", b->from,
			       b->store[0] ? b->store : "a storage system");
	return 0;
}

static int take_results(const struct plan_args *a, struct known *k, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < k->results; i++) {
		const struct known_result *x = &k->result[i];

		if (x->why.code && isfinite(x->write) && plan_wants_checkpoint(a))
			continue; /* of a run that made checkpoints alone */
		if (x->why.code) {
			*e = x->why;
			return e->code;
		}
		if (x->failed.n && !a->despite)
			return refuse_failed(x, e);
		if (x->failed.n)
			str_list_add(&k->notes,
				     xasprintf("'%s' has failed checks, which were to be ignored",
					       x->point.from));
		if (k->points == PLAN_POINTS_MAX)
			return err_set(e, ERR_USAGE, "more than %d results and points",
				       PLAN_POINTS_MAX);
		rc = k->points ? refuse_mixed(&k->point[0], &x->point, e) : 0;
		if (rc == 0 && strcmp(k->result[0].system, x->system) != 0)
			rc = err_set(e, ERR_USAGE,
				     "results of different storage: '%.200s' is of '%s', '%.200s' "
				     "of '%s'; plan from one",
				     k->result[0].folder, k->result[0].system, x->folder,
				     x->system);
		if (rc == 0)
			rc = point_check(&x->point, e);
		k->point[k->points++] = x->point;
	}
	if (rc == 0 && k->results && k->result[0].point.store[0])
		str_list_add(&k->notes,
			     xasprintf("measured with the store '%s' of this program, which is no "
				       "storage system",
				       k->result[0].point.store));
	return rc;
}

int known_load(const struct plan_args *a, struct known *k, struct err *e)
{
	const struct record_visit visit = {.arg = k, .begin = known_begin, .look = known_look};
	struct records all = {0};
	int rc = records_visit(&all, (const char *const *)a->from.v, a->from.n, &visit, e);

	if (rc == 0 && all.unread.n)
		rc = err_set(e, ERR_DATA, "%s", all.unread.v[0]);
	if (rc == 0 && a->json && k->results > PLAN_RUNS_MAX)
		rc = err_set(e, ERR_USAGE,
			     "--json: the plan would name %zu results, and may name %d: plan from "
			     "fewer",
			     k->results, PLAN_RUNS_MAX);
	if (rc == 0)
		result_tell_running(&all);
	if (rc == 0)
		leave_unusable(a, k);
	records_release(&all);
	return rc;
}

/* The workload of the plan where none is named: the one of all points. */
static int common_duty(const struct known *k, struct duty *out, struct err *e)
{
	*out = k->point[0].of;
	for (size_t i = 1; i < k->points; i++)
		if (!duty_same(out, &k->point[i].of))
			return err_set(e, ERR_USAGE,
				       "%s is of '%s', %s of '%s': name the workload that is "
				       "planned (--model)",
				       k->point[0].from, out->name, k->point[i].from,
				       k->point[i].of.name);
	return 0;
}

/* Results that were looked at, points that were typed, and the workload that is planned: `plan` has
 * it where it was named. */
int known_take(const struct plan_args *a, struct known *k, struct duty *plan, struct err *e)
{
	int rc;

	if (a->model)
		take_those_of(plan, k);
	rc = take_results(a, k, e);
	for (size_t i = 0; rc == 0 && i < a->point.n; i++) {
		struct point *p = &k->point[k->points];

		if (k->points == PLAN_POINTS_MAX)
			return err_set(e, ERR_USAGE, "more than %d results and points",
				       PLAN_POINTS_MAX);
		rc = point_parse(p, a->point.v[i], i + 1,
				 a->model    ? plan
				 : k->points ? &k->point[0].of
					     : NULL,
				 e);
		if (rc == 0)
			rc = point_check(p, e);
		k->points++;
	}
	if (rc == 0 && !a->model && k->points)
		rc = common_duty(k, plan, e);
	if (rc == 0 && !isnan(a->target))
		plan->target = a->target / 100;
	return rc;
}
