#include "plan/point.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "conf/quantity.h"
#include "dataset/dataset.h"
#include "readback/figures.h"
#include "workload/need.h"

double duty_need(const struct duty *d)
{
	return d->batch / d->step_s;
}

/* "unet3d_h100" is of an h100: what stands behind the last underscore, where it has a digit and is
 * no size of a model. */
static void split_name(struct duty *d, const struct workload *w)
{
	const char *last = strrchr(d->name, '_');

	snprintf(d->model, sizeof(d->model), "%s", w->model.name ? w->model.name : "");
	if (last && strlen(last) > 2 && strlen(last) < sizeof(d->accelerator) &&
	    isalpha((unsigned char)last[1]) && strpbrk(last, "0123456789"))
		snprintf(d->accelerator, sizeof(d->accelerator), "%s", last + 1);
}

/* Of a loaded workload. ERR_USAGE when it reads no samples or its computation takes no time. */
static int duty_of_workload(struct duty *d, const struct workload *w, const char *name,
			    struct err *e)
{
	enum dataset_sizes how;
	struct need n;

	*d = (struct duty){.sample_bytes = dataset_bytes_of_sample(w, DATASET_TRAIN, &how),
			   .file_samples = (double)w->dataset.num_samples_per_file};
	snprintf(d->name, sizeof(d->name), "%s", name);
	need_find(w, NEED_TRAINING, d->sample_bytes, &n);
	if (!w->workflow.train || !n.known)
		return err_set(e, ERR_USAGE,
			       "the workload '%s' has no fixed need (%s): there is nothing to plan",
			       name, w->workflow.train ? n.why : "it does not train");
	d->batch = (double)n.batch;
	d->step_s = n.step_s;
	d->target = n.target;
	split_name(d, w);
	return 0;
}

int duty_load(struct duty *d, const char *name, const char *accelerator, struct err *e)
{
	AUTO_FREE char *full = accelerator ? xasprintf("%s_%s", name, accelerator) : xstrdup(name);
	const struct workload_request request = {.workload = full, .ranks = 1, .inspect = true};
	struct workload w = {0};
	int rc;

	for (char *c = full; accelerator && *c; c++)
		*c = (char)tolower((unsigned char)*c);
	rc = workload_load(&w, &request, e);
	if (rc == -ENOMEM)
		out_of_memory();
	if (rc == 0)
		rc = duty_of_workload(d, &w, str_ends(full, ".yaml") ? path_basename(full) : full,
				      e);
	workload_release(&w);
	return rc;
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 0.01 * fmax(fabs(a), fabs(b));
}

bool duty_same(const struct duty *a, const struct duty *b)
{
	return near(a->batch, b->batch) && near(a->step_s, b->step_s) &&
	       near(a->sample_bytes, b->sample_bytes);
}

/* ---- points ---- */

/* Beyond any system there is, and far below where arithmetic loses digits. */
#define HOSTS_MAX 1e6
#define ACCELERATORS_MAX 1e7
#define RATE_MAX 1e12
#define BYTES_MAX 1e15
#define BATCH_MAX 1e9
#define STEP_MAX 1e6

/* The rate may exceed what accelerators can take by what is measured inexactly, and AU, which
 * leaves out the start of an epoch, may be above the share by rate: by up to 15 points in published
 * results. */
#define EXCESS 1.03
#define GAP_MAX 0.20

double point_share(const struct point *p)
{
	return p->samples_per_s / (p->accelerators * duty_need(&p->of));
}

/* ---- typed ---- */

enum key {
	HOSTS,
	ACCELERATORS,
	RATE,
	AU,
	SPREAD,
	LARGEST,
	MODEL,
	ACCELERATOR,
	SAMPLE_BYTES,
	BATCH_SIZE,
	COMPUTATION_TIME,
	TARGET,
	KEYS
};

const char *const point_keys[] = {
	[HOSTS] = "hosts",
	[ACCELERATORS] = "accelerators",
	[RATE] = "samples_per_s",
	[AU] = "au",
	[SPREAD] = "spread",
	[LARGEST] = "largest",
	[MODEL] = "model",
	[ACCELERATOR] = "accelerator",
	[SAMPLE_BYTES] = "sample_bytes",
	[BATCH_SIZE] = "batch_size",
	[COMPUTATION_TIME] = "computation_time",
	[TARGET] = "target",
	[KEYS] = NULL,
};

/* Of numbers: the unit they may have, and what is allowed. */
static const struct {
	const char *unit;
	double least, most;
	bool whole;
	const char *allowed;
} ranges[KEYS] = {
	[HOSTS] = {NULL, 1, HOSTS_MAX, true, "a whole number from 1 to 1000000"},
	[ACCELERATORS] = {NULL, 1, ACCELERATORS_MAX, true, "a whole number from 1 to 10000000"},
	[RATE] = {NULL, 1e-9, RATE_MAX, false, "samples/s, more than 0 and at most 1e12"},
	[AU] = {NULL, 1.0000001, 100, false, "percent, more than 1 and at most 100, such as 93.1"},
	[SPREAD] = {NULL, 0, 100, false,
		    "percent, from 0 to 100: the standard deviation of samples_per_s"},
	[SAMPLE_BYTES] = {"bytes", 1, BYTES_MAX, false, "bytes, from 1 to 1e15, such as 146MB"},
	[BATCH_SIZE] = {NULL, 1, BATCH_MAX, true, "a whole number from 1 to 1000000000"},
	[COMPUTATION_TIME] = {"s", 1e-9, STEP_MAX, false,
			      "seconds, more than 0 and at most 1000000, such as 0.323 or 323ms"},
	[TARGET] = {NULL, 1.0000001, 100, false, "percent, more than 1 and at most 100"},
};

struct typed {
	const char *text[KEYS]; /* NULL: not given */
	double number[KEYS];    /* NAN */
};

static int find_key(const char *name, const char *from, enum key *out, struct err *e)
{
	const char *near;

	for (int k = 0; k < KEYS; k++)
		if (strcmp(name, point_keys[k]) == 0) {
			*out = (enum key)k;
			return 0;
		}
	near = str_nearest(name, point_keys, KEYS);
	return err_set(e, ERR_USAGE,
		       "%s: '%.60s' is no key of a point%s%s%s; the keys are hosts, accelerators, "
		       "samples_per_s, au, spread, largest, model, accelerator, sample_bytes, "
		       "batch_size, computation_time and target",
		       from, name, near ? "; did you mean '" : "", near ? near : "",
		       near ? "'?" : "");
}

static int read_number(enum key k, const char *from, const char *text, double *out, struct err *e)
{
	size_t n = strlen(text);
	AUTO_FREE char *bare = xstrdup(text);
	bool percent = k == AU || k == SPREAD || k == TARGET;

	if (percent && n && bare[n - 1] == '%')
		bare[n - 1] = '\0';
	if (quantity_number(bare, ranges[k].unit, out) && isfinite(*out) &&
	    *out >= ranges[k].least && *out <= ranges[k].most &&
	    (!ranges[k].whole || *out == floor(*out)))
		return 0;
	return err_set(e, ERR_USAGE, "%s: %s=%.60s: give %s", from, point_keys[k], text,
		       ranges[k].allowed);
}

static int read_pair(struct typed *t, char *pair, const char *from, struct err *e)
{
	char *value = strchr(pair, '=');
	enum key k = KEYS;
	int rc;

	if (!value)
		return err_set(e, ERR_USAGE,
			       "%s: '%.60s' is not key=value; a point is written "
			       "hosts=1,accelerators=8,samples_per_s=160,au=93.1",
			       from, pair);
	*value++ = '\0';
	rc = find_key(pair, from, &k, e);
	if (rc < 0)
		return rc;
	if (t->text[k])
		return err_set(e, ERR_USAGE, "%s: '%s' is given twice", from, point_keys[k]);
	if (!*value)
		return err_set(e, ERR_USAGE, "%s: %s has no value", from, point_keys[k]);
	t->text[k] = value;
	if (k == LARGEST && strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
		return err_set(e, ERR_USAGE, "%s: largest=%.60s: give yes or no", from, value);
	if (!ranges[k].allowed)
		return 0;
	return read_number(k, from, value, &t->number[k], e);
}

/* What the point says of its workload, over what the named or the planned one has. */
static int find_duty(struct point *p, const struct typed *t, const struct duty *plan, struct err *e)
{
	struct duty *d = &p->of;
	bool own = t->text[BATCH_SIZE] && t->text[COMPUTATION_TIME] && t->text[SAMPLE_BYTES];
	int rc = 0;

	*d = plan && !t->text[MODEL] && !t->text[ACCELERATOR] ? *plan
							      : (struct duty){.file_samples = NAN};
	if (t->text[MODEL] && !own) {
		rc = duty_load(d, t->text[MODEL], t->text[ACCELERATOR], e);
		if (rc < 0)
			return err_wrap(e, "%s", p->from);
	} else if (t->text[ACCELERATOR] && !t->text[MODEL]) {
		if (!plan)
			return err_set(e, ERR_USAGE,
				       "%s: accelerator=%.40s needs model=, such as "
				       "model=unet3d,accelerator=h100",
				       p->from, t->text[ACCELERATOR]);
		rc = duty_load(d, plan->model, t->text[ACCELERATOR], e);
		if (rc < 0 && !own)
			return err_wrap(e, "%s", p->from);
	}
	if (own) {
		snprintf(d->name, sizeof(d->name), "%s%s%s",
			 t->text[MODEL] ? t->text[MODEL] : d->name, t->text[ACCELERATOR] ? "_" : "",
			 t->text[ACCELERATOR] ? t->text[ACCELERATOR] : "");
		if (t->text[MODEL])
			snprintf(d->model, sizeof(d->model), "%s", t->text[MODEL]);
		if (t->text[ACCELERATOR])
			snprintf(d->accelerator, sizeof(d->accelerator), "%s",
				 t->text[ACCELERATOR]);
	}
	if (!d->name[0])
		snprintf(d->name, sizeof(d->name), "a workload without a name");
	if (t->text[BATCH_SIZE])
		d->batch = t->number[BATCH_SIZE];
	if (t->text[COMPUTATION_TIME])
		d->step_s = t->number[COMPUTATION_TIME];
	if (t->text[SAMPLE_BYTES])
		d->sample_bytes = t->number[SAMPLE_BYTES];
	if (t->text[TARGET])
		d->target = t->number[TARGET] / 100;
	if (!(d->batch > 0) || !(d->step_s > 0) || !(d->sample_bytes > 0))
		return err_set(e, ERR_USAGE,
			       "%s: the workload is not known: add model= and accelerator=, or "
			       "sample_bytes=, batch_size= and computation_time=, or name the "
			       "workload of the plan (--model)",
			       p->from);
	return 0;
}

int point_parse(struct point *p, const char *text, size_t number, const struct duty *plan,
		struct err *e)
{
	AUTO_FREE char *copy = xstrdup(text);
	struct typed t = {0};
	char *at = copy;
	int rc = 0;

	*p = (struct point){
		.au = NAN, .spread = NAN, .requests_per_sample = NAN, .opens_per_sample = NAN};
	snprintf(p->from, sizeof(p->from), "--point %zu", number);
	for (int k = 0; k < KEYS; k++)
		t.number[k] = NAN;
	while (rc == 0 && at) {
		char *next = strchr(at, ',');

		if (next)
			*next++ = '\0';
		rc = read_pair(&t, at, p->from, e);
		at = next;
	}
	for (int k = HOSTS; rc == 0 && k <= RATE; k++)
		if (!t.text[k])
			rc = err_set(e, ERR_USAGE, "%s: %s= is missing", p->from, point_keys[k]);
	if (rc == 0)
		rc = find_duty(p, &t, plan, e);
	if (rc < 0)
		return rc;
	p->hosts = t.number[HOSTS];
	p->accelerators = t.number[ACCELERATORS];
	p->samples_per_s = t.number[RATE];
	p->au = t.number[AU] / 100;
	p->spread = t.number[SPREAD] / 100;
	p->largest = t.text[LARGEST] && strcmp(t.text[LARGEST], "yes") == 0;
	return 0;
}

/* ---- of a result ---- */

int point_of_record(struct point *p, const struct run_record *r, struct err *e)
{
	const struct need *n = &r->facts.need;
	struct run_figures f;
	int rc;

	*p = (struct point){.hosts = r->hosts ? r->hosts : 1,
			    .accelerators = r->ranks,
			    .samples_per_s = r->facts.whole_throughput,
			    .au = r->au.mean / 100,
			    .spread = NAN,
			    .is_result = true,
			    .requests_per_sample = NAN,
			    .opens_per_sample = NAN};
	snprintf(p->from, sizeof(p->from), "%.159s", r->folder);
	if (r->trained && !r->has_workload)
		return err_set(e, ERR_DATA,
			       "the configuration of '%s' is not known (.hydra, dlio_config or "
			       "configs): give its figures with --point",
			       r->folder);
	if (!r->trained)
		return err_set(e, ERR_DATA, "'%s' has no completed training epoch to plan from",
			       r->folder);
	rc = duty_of_workload(&p->of, &r->workload, r->model[0] ? r->model : "the workload", e);
	if (rc < 0)
		return err_wrap(e, "'%s'", r->folder);
	if (n->known) {
		p->of.batch = (double)n->batch;
		p->of.step_s = n->step_s;
		if (isfinite(n->bytes))
			p->of.sample_bytes = n->bytes / n->samples;
	}
	if (!isfinite(p->samples_per_s) || p->samples_per_s <= 0 || p->accelerators < 1)
		return err_set(e, ERR_DATA, "'%s' does not say how many samples/s it took",
			       r->folder);
	if (!(p->of.sample_bytes > 0))
		return err_set(e, ERR_DATA,
			       "'%s' read nothing from storage: there is nothing to plan from",
			       r->folder);
	if (!(p->au > 0))
		p->au = NAN;
	if (r->throughput.n > 1 && r->throughput.mean > 0)
		p->spread =
			r->throughput.stdev / r->throughput.mean / sqrt((double)r->throughput.n);
	figures_find(&f, r);
	p->capped = f.cause == CAUSE_BANDWIDTH || f.cause == CAUSE_REQUESTS ||
		    f.cause == CAUSE_QUEUE || f.cause == CAUSE_CONTENTION ||
		    f.cause == CAUSE_THROTTLED;
	if (f.emulated)
		snprintf(p->store, sizeof(p->store), "%.63s", r->workload.storage.store);
	if (f.samples > 0) {
		p->requests_per_sample = f.requests / f.samples;
		/* each is opened and closed */
		p->opens_per_sample = f.opens / 2 / f.samples;
	}
	return 0;
}

/* ---- both ---- */

int point_check(const struct point *p, struct err *e)
{
	int code = p->is_result ? ERR_DATA : ERR_USAGE;
	double share = point_share(p), most = p->accelerators * duty_need(&p->of);

	if (p->accelerators < p->hosts)
		return err_set(e, code,
			       "%s: %.0f accelerator%s on %.0f hosts: each host needs one or more",
			       p->from, p->accelerators, p->accelerators == 1 ? "" : "s", p->hosts);
	if (share > EXCESS)
		return err_set(e, code,
			       "%s: %.0f accelerators take at most %.4g samples/s (batch size / "
			       "computation time of '%s'), not %.4g: check model, batch_size, "
			       "computation_time and accelerators",
			       p->from, p->accelerators, most, p->of.name, p->samples_per_s);
	/* a result says why: short epochs, late computation */
	if (p->is_result)
		return 0;
	if (share > p->au * EXCESS)
		return err_set(
			e, code,
			"%s: %.4g samples/s mean that accelerators compute %.1f %% of the "
			"time, which is more than the AU of %.1f %%: one of the two is wrong",
			p->from, p->samples_per_s, 100 * share, 100 * p->au);
	if (p->au > share + GAP_MAX)
		return err_set(
			e, code,
			"%s: the AU of %.1f %% is higher than the rate allows: %.4g samples/s "
			"are enough for %.1f %% of the %.4g that %.0f accelerators take; "
			"published results differ by 15 points at most",
			p->from, 100 * p->au, p->samples_per_s, 100 * share, most, p->accelerators);
	return 0;
}
