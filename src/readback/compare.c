/* The comparison: what the sides measured, samples of each measure, Welch's test where it can be
 * made, what differs in the configurations. */
#include "readback/compare.h"
#include "base/say.h"
#include "readback/record_measures.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "readback/sides.h"
#include "result/json_out.h"

#define COLUMNS 100

static double eval_au_of(const struct run_record *r, size_t epoch)
{
	return epoch < r->eval_au.n ? r->eval_au.v[epoch] : NAN;
}

static double each_rate(const struct run_record *r, size_t epoch)
{
	return record_whole_rate(r, epoch) / r->ranks;
}

static double each_run_rate(const struct run_record *r)
{
	return record_whole_throughput(r) / r->ranks;
}

/* What the check goes by. */
enum gating { GATES, GATES_ALONE, GATES_NOT };

struct measure {
	const char *name, *unit;
	int better;
	enum gating gating; /* GATES_ALONE: where no measure before it is there */
	record_measure of;
	record_run_measure of_run; /* of a measure of whole runs; else NULL */
};

static const struct measure measures[] = {
	{"AU, whole run", "%", 1, GATES, record_whole_au, record_whole_run_au},
	{"AU, by DLIO's definition", "%", 1, GATES_ALONE, record_au, NULL},
	{"throughput of the measured steps", "samples/s", 1, GATES_NOT, record_throughput, NULL},
	/* where the sides have different numbers of them */
	{"throughput of one accelerator, whole run", "samples/s", 1, GATES_NOT, each_rate,
	 each_run_rate},
	{"wall time of an epoch", "s", -1, GATES, record_wall, NULL},
	{"evaluation AU", "%", 1, GATES, eval_au_of, NULL},
};

static double write_rate(const struct run_record *r)
{
	return r->save_gib_per_s;
}

static double read_rate(const struct run_record *r)
{
	return r->load_gib_per_s;
}

static double written_size(const struct run_record *r)
{
	return r->checkpoint_gib;
}

/* Of results of checkpoints alone; those of training that write some have their own figures. */
static const struct {
	const char *name, *unit;
	int better;
	record_run_measure of;
} checkpoint_measures[] = {
	{"checkpoint write rate", "GiB/s", 1, write_rate},
	{"checkpoint read rate", "GiB/s", 1, read_rate},
	{"size of a checkpoint", "GiB", 0, written_size},
};

/* Why no test can be made; "" when one can. */
static void refuse_test(const struct comparison *c, struct compared *m)
{
	if (c->shared)
		snprintf(m->why, sizeof(m->why), "%zu run%s %s on both sides", c->shared,
			 c->shared == 1 ? "" : "s", c->shared == 1 ? "is" : "are");
	else if (c->sides.unlike.n)
		snprintf(m->why, sizeof(m->why), "the sides cannot be compared, see above");
	else if (m->basis == COMPARE_RUNS && c->runs[0] >= COMPARE_RUNS_NEEDED &&
		 c->runs[1] >= COMPARE_RUNS_NEEDED &&
		 (m->a.n < COMPARE_RUNS_NEEDED || m->b.n < COMPARE_RUNS_NEEDED))
		snprintf(m->why, sizeof(m->why),
			 "a test needs at least %d independent runs with this figure on each side; "
			 "%zu of %zu and %zu of %zu have it",
			 COMPARE_RUNS_NEEDED, m->a.n, c->runs[0], m->b.n, c->runs[1]);
	else if (m->basis != COMPARE_RUNS || m->a.n < COMPARE_RUNS_NEEDED ||
		 m->b.n < COMPARE_RUNS_NEEDED)
		snprintf(m->why, sizeof(m->why),
			 "a test needs at least %d independent runs on each side; there are %zu "
			 "and %zu",
			 COMPARE_RUNS_NEEDED, c->runs[0], c->runs[1]);
}

static void judge_measure(const struct comparison *c, struct compared *m, const double *a,
			  const double *b)
{
	refuse_test(c, m);
	if (m->why[0]) {
		m->verdict = COMPARE_UNKNOWN;
		return;
	}
	m->test = welch_test(a, m->a.n, b, m->b.n);
	if (m->test.p >= COMPARE_LEVEL)
		m->verdict = COMPARE_SAME;
	else if (m->better == 0 || c->sides.other_work)
		m->verdict = COMPARE_DIFFERENT;
	else
		m->verdict = m->test.change * m->better > 0 ? COMPARE_BETTER : COMPARE_WORSE;
}

static void config_differences(struct comparison *c, const struct run_record *a,
			       const struct run_record *b, const struct key_differences *d)
{
	c->configured = d->known;
	c->complete = d->complete;
	if (a->ranks != b->ranks)
		str_list_add(&c->differences, xasprintf("ranks: %u | %u", a->ranks, b->ranks));
	if (strcmp(a->hostname, b->hostname) != 0)
		str_list_add(&c->differences, xasprintf("host: %s | %s", a->hostname, b->hostname));
	for (size_t i = 0; i < d->n; i++) {
		const struct key_difference *one = &d->v[i];

		/* the location of a result is not a difference between runs */
		if (strncmp(one->key, "output.", 7) == 0 && strstr(one->key, "folder"))
			continue;
		str_list_add(&c->differences, xasprintf("%s: %s | %s", one->key, one->x, one->y));
	}
}

/* Runs of `a` that are in `b` too. */
static size_t count_shared(const struct side *a, const struct side *b)
{
	struct runs_seen seen = {0};
	size_t shared = 0;

	for (size_t i = 0; i < b->n; i++)
		runs_add(&seen, &b->r[b->index[i]], 0);
	for (size_t i = 0; i < a->n; i++)
		shared += runs_have(&seen, &a->r[a->index[i]], 0, NULL) != NULL;
	runs_release(&seen);
	return shared;
}

static void count_runs(struct comparison *c, const struct side *a, size_t na, const struct side *b,
		       size_t nb)
{
	static const char *const names[] = {"first", "second"};

	c->runs[0] = a->n;
	c->runs[1] = b->n;
	c->copies[0] = na - a->n;
	c->copies[1] = nb - b->n;
	c->shared = count_shared(a, b);
	if (c->shared && c->shared == a->n && a->n == b->n)
		str_list_add(&c->sides.unlike,
			     a->n == 1 ? xstrdup("Both sides are the same run, or one is a copy of "
						 "the other: there is nothing to compare.")
				       : xasprintf("Both sides are the same %zu runs, or copies of "
						   "them: there is nothing to compare.",
						   a->n));
	else if (c->shared)
		str_list_add(&c->sides.unlike,
			     xasprintf("%zu run%s, or copies of %s, %s on both sides: remove %s "
				       "from one side.",
				       c->shared, c->shared == 1 ? "" : "s",
				       c->shared == 1 ? "it" : "them",
				       c->shared == 1 ? "is" : "are",
				       c->shared == 1 ? "it" : "them"));
	for (int s = 0; s < 2; s++)
		if (c->copies[s])
			str_list_add(&c->sides.doubts,
				     xasprintf("The %s side has %zu results of %zu run%s: copies "
					       "of a run are not repetitions and are not counted.",
					       names[s], c->runs[s] + c->copies[s], c->runs[s],
					       c->runs[s] == 1 ? "" : "s"));
}

/* The values of a measure on one side, and what they come to. */
static double *values_of(const struct measure *m, const struct side *x, bool by_run,
			 struct sample_stat *s)
{
	record_run_measure whole = m->of_run;
	double mean, *v;
	size_t n;

	if (whole)
		v = record_whole_values(x->r, x->index, x->n, m->of, whole, !by_run, &n, &mean);
	else
		v = record_values(x->r, x->index, x->n, m->of, !by_run, &n);
	*s = sample_stat_of(v, n);
	if (whole && n)
		s->mean = mean;
	return v;
}

/* The values of runs: of `of`, or without it of figure `i` of those that tables have. */
static double *run_values(record_run_measure of, size_t i, const struct side *x,
			  struct sample_stat *s)
{
	double *v = xcalloc(x->n + 1, sizeof(*v));
	size_t n = 0;

	for (size_t k = 0; k < x->n; k++) {
		const struct run_record *r = &x->r[x->index[k]];

		v[n] = of ? of(r) : record_shown(r, i);
		n += isfinite(v[n]);
	}
	*s = sample_stat_of(v, n);
	return v;
}

/* A measure of the values `va` and `vb`, which it frees. */
static void compare_values(struct comparison *c, const struct compared *of, double *va, double *vb)
{
	struct compared *m = &c->measure[c->measures];

	if (of->a.n && of->b.n) {
		*m = *of;
		judge_measure(c, m, va, vb);
		c->measures++;
	}
	free(va);
	free(vb);
}

static void compare_measure(struct comparison *c, const struct measure *of, const struct side *a,
			    const struct side *b)
{
	bool by_run = a->n > 1 && b->n > 1;
	struct compared m = {.unit = of->unit,
			     .better = of->better,
			     .gates = of->gating == GATES ||
				      (of->gating == GATES_ALONE && c->measures == 0),
			     .basis = by_run ? COMPARE_RUNS : COMPARE_EPOCHS};
	double *va = values_of(of, a, by_run, &m.a), *vb = values_of(of, b, by_run, &m.b);

	snprintf(m.name, sizeof(m.name), "%s", of->name);
	compare_values(c, &m, va, vb);
}

static void compare_shown(struct comparison *c, size_t i, const struct side *a,
			  const struct side *b)
{
	struct compared m = {.unit = shown_unit(i), .basis = COMPARE_RUNS};
	double *va = run_values(NULL, i, a, &m.a), *vb = run_values(NULL, i, b, &m.b);

	shown_name(i, m.name);
	compare_values(c, &m, va, vb);
}

static void compare_checkpoints(struct comparison *c, const struct side *a, const struct side *b)
{
	for (size_t i = 0; i < sizeof(checkpoint_measures) / sizeof(checkpoint_measures[0]); i++) {
		struct compared m = {.unit = checkpoint_measures[i].unit,
				     .better = checkpoint_measures[i].better,
				     .gates = checkpoint_measures[i].better != 0,
				     .basis = COMPARE_RUNS};
		record_run_measure of = checkpoint_measures[i].of;
		double *va = run_values(of, 0, a, &m.a), *vb = run_values(of, 0, b, &m.b);

		snprintf(m.name, sizeof(m.name), "%s", checkpoint_measures[i].name);
		compare_values(c, &m, va, vb);
	}
}

#define WARM_UP_OF 6 /* calls of a measurement by MLPerf Storage since v2.0: the first warms up */

/* The first of six of one workload of a submission is no measurement (rule 3.3.8). */
static void leave_warm_up(struct comparison *c, struct side *s, size_t *index, const char *side)
{
	const struct run_record *first = &s->r[index[0]];
	size_t at = 0;

	if (s->n != WARM_UP_OF)
		return;
	for (size_t i = 0; i < s->n; i++) {
		const struct run_record *r = &s->r[index[i]];

		if (!r->mlperf || r->dlio != DLIO_NEWER || !r->trained || !r->system[0] ||
		    strcmp(r->system, first->system) != 0 || strcmp(r->model, first->model) != 0)
			return;
		at = r->begin_s < s->r[index[at]].begin_s ? i : at;
	}
	str_list_add(&c->sides.doubts,
		     xasprintf("The first of the six runs of the %s side ('%s') is its warm-up by "
			       "the rules of MLPerf Storage (3.3.8), and is not counted.",
			       side, path_basename(s->r[index[at]].folder)));
	memmove(&index[at], &index[at + 1], (s->n - at - 1) * sizeof(*index));
	s->n--;
}

static void tell_servers(struct comparison *c, const struct run_record *r, const char *side)
{
	for (size_t i = 0; i < r->facts.servers.n; i++)
		str_list_add(&c->servers, xasprintf("%s, %s", side, r->facts.servers.v[i]));
}

void compare_records(struct comparison *c, const struct run_record *a, size_t na,
		     const struct run_record *b, size_t nb)
{
	struct side first = {.r = a}, second = {.r = b};
	struct key_differences keys;
	size_t *of_first = records_distinct(a, na, &first.n);
	size_t *of_second = records_distinct(b, nb, &second.n);

	static_assert(sizeof(measures) / sizeof(measures[0]) +
				      sizeof(checkpoint_measures) / sizeof(checkpoint_measures[0]) +
				      SHOWN_FIGURES <=
			      COMPARED_MAX,
		      "room for all");

	assert(na > 0 && nb > 0);
	first.index = of_first;
	second.index = of_second;
	*c = (struct comparison){0};
	count_runs(c, &first, na, &second, nb);
	leave_warm_up(c, &first, of_first, "first");
	leave_warm_up(c, &second, of_second, "second");
	c->runs[0] = first.n;
	c->runs[1] = second.n;
	key_differences_find(&keys, a, b);
	sides_compare(&first, &second, &keys, &c->sides);
	for (size_t i = 0; i < sizeof(measures) / sizeof(measures[0]); i++)
		if (measures[i].of != each_rate || a->ranks != b->ranks)
			compare_measure(c, &measures[i], &first, &second);
	if (!a->trained && !b->trained)
		compare_checkpoints(c, &first, &second);
	for (size_t i = 0; i < shown_count(); i++)
		compare_shown(c, i, &first, &second);
	config_differences(c, a, b, &keys);
	tell_servers(c, &a[of_first[0]], "first");
	tell_servers(c, &b[of_second[0]], "second");
	key_differences_release(&keys);
	free(of_first);
	free(of_second);
}

void comparison_release(struct comparison *c)
{
	str_list_release(&c->sides.unlike);
	str_list_release(&c->sides.doubts);
	str_list_release(&c->sides.damage);
	str_list_release(&c->differences);
	str_list_release(&c->servers);
	*c = (struct comparison){0};
}

/* ---- the check ---- */

/* A number for people, with its sign. */
#define CHANGE(v) signed_number(v, (char[40]){0}, 40)
static char *signed_number(double v, char *out, size_t size)
{
	snprintf(out, size, "%s%s", v >= 0 ? "+" : "", NUMBER(v, 4));
	return out;
}

/* Percent of the first side's mean by which the second one is worse; negative: better. */
static double loss_of(const struct compared *m, double change)
{
	return m->a.mean != 0 ? -100 * change * m->better / fabs(m->a.mean) : NAN;
}

static void put_loss(struct buf *why, const struct compared *m, double tolerance)
{
	buf_say(why,
		"%s is worse by %s %%: %s %s -> %s %s (95 %% interval of the change %s to %s, p = "
		"%.2g; the tolerance is %.4g %%)",
		m->name, NUMBER(loss_of(m, m->test.change), 3), NUMBER(m->a.mean, 4), m->unit,
		NUMBER(m->b.mean, 4), m->unit, CHANGE(m->test.low), CHANGE(m->test.high), m->test.p,
		tolerance);
}

static enum compare_outcome cannot_tell(struct buf *why, const char *reason)
{
	size_t n = strlen(reason);

	buf_say(why, "whether the second side is worse cannot be told: %.*s",
		(int)(n && reason[n - 1] == '.' ? n - 1 : n), reason);
	return COMPARE_CANNOT_TELL;
}

enum compare_outcome comparison_check(const struct comparison *c, double tolerance, struct buf *why)
{
	const struct compared *untold = NULL;
	double room = -INFINITY;
	size_t gating = 0;

	if (c->sides.unlike.n)
		return cannot_tell(why, c->sides.unlike.v[0]);
	for (size_t i = 0; i < c->measures; i++) {
		const struct compared *m = &c->measure[i];

		if (!m->gates)
			continue;
		gating++;
		if (m->verdict == COMPARE_WORSE && loss_of(m, m->test.change) > tolerance) {
			put_loss(why, m, tolerance);
			return COMPARE_FAILS;
		}
		if (m->verdict == COMPARE_DIFFERENT || m->verdict == COMPARE_UNKNOWN)
			untold = untold ? untold : m;
		else
			room = fmax(room, fmax(loss_of(m, m->test.low), loss_of(m, m->test.high)));
	}
	if (untold && untold->verdict == COMPARE_DIFFERENT)
		return cannot_tell(why, "the sides did other work");
	if (untold || gating == 0)
		return cannot_tell(why, untold ? untold->why : "they have no measure in common");
	if (room > tolerance) {
		buf_say(why,
			"whether the second side is worse cannot be told: the intervals leave room "
			"for a loss of %s %%, and the tolerance is %.4g %% (more runs, or longer "
			"ones, narrow them)",
			NUMBER(room, 3), tolerance);
		return COMPARE_CANNOT_TELL;
	}
	if (room > 0)
		buf_say(why,
			"no measure of the whole run is worse by more than %.4g %%: the intervals "
			"leave room for a loss of %s %%",
			tolerance, NUMBER(room, 3));
	else
		buf_puts(why, "every measure of the whole run is better");
	return COMPARE_PASSES;
}

/* ---- renderings ---- */

static const char *verdict_word(enum compare_verdict v)
{
	static const char *const words[] = {
		[COMPARE_UNKNOWN] = "unknown",     [COMPARE_SAME] = "no difference shown",
		[COMPARE_BETTER] = "better",       [COMPARE_WORSE] = "worse",
		[COMPARE_DIFFERENT] = "different",
	};

	return words[v];
}

static const char *basis_word(enum compare_basis b)
{
	return b == COMPARE_RUNS ? "runs" : "epochs";
}

static void list_text(struct buf *out, const char *title, const struct str_list *list)
{
	if (list->n)
		buf_say(out, "%s\n", title);
	for (size_t i = 0; i < list->n; i++) {
		buf_puts(out, "! ");
		buf_wrap(out, list->v[i], 2, 2, COLUMNS);
	}
	if (list->n)
		buf_putc(out, '\n');
}

static void side_text(struct buf *out, const char *name, size_t runs, size_t copies)
{
	buf_say(out, "%s: %zu run%s", name, runs, runs == 1 ? "" : "s");
	if (copies)
		buf_say(out, " (and %zu cop%s, not counted)", copies, copies == 1 ? "y" : "ies");
}

static void measure_text(struct buf *out, const struct compared *m)
{
	double share = m->a.mean != 0 ? 100 * (m->b.mean / m->a.mean - 1) : NAN;
	/* a change of a percentage is in points; its share of the first is another number */
	bool percent = strcmp(m->unit, "%") == 0;
	const char *unit = percent ? "points" : m->unit;
	struct buf line = {0};

	buf_say(out, m->unit[0] ? "%s (%s): " : "%s: ", m->name, m->unit);
	buf_say(out, "%s", NUMBER(m->a.mean, 4));
	if (m->a.n > 1)
		buf_say(out, " +- %s", NUMBER(m->a.stdev, 2));
	buf_say(out, " -> %s", NUMBER(m->b.mean, 4));
	if (m->b.n > 1)
		buf_say(out, " +- %s", NUMBER(m->b.stdev, 2));
	if (isfinite(share))
		buf_say(out, percent ? " (relative %+.1f %%)" : " (%+.1f %%)", share);
	if (m->verdict == COMPARE_UNKNOWN)
		buf_say(&line, "no test: %s", m->why);
	else
		buf_say(&line,
			"%s: change %s %s, 95 %% interval %s to %s, p = %.3g "
			"(Welch's t-test over %zu and %zu %s)",
			verdict_word(m->verdict), CHANGE(m->test.change), unit, CHANGE(m->test.low),
			CHANGE(m->test.high), m->test.p, m->a.n, m->b.n, basis_word(m->basis));
	buf_puts(out, "\n    ");
	buf_wrap(out, line.data, 4, 4, COLUMNS);
	buf_release(&line);
}

void comparison_text(const struct comparison *c, struct buf *out)
{
	list_text(out, "The two sides cannot be compared:", &c->sides.unlike);
	list_text(out, "Before you read the numbers:", &c->sides.doubts);
	side_text(out, "First", c->runs[0], c->copies[0]);
	side_text(out, ". Second", c->runs[1], c->copies[1]);
	buf_puts(out, ".\n\n");
	if (c->differences.n)
		buf_puts(out, "Differences (first | second):\n");
	for (size_t i = 0; i < c->differences.n; i++)
		buf_say(out, "  %s\n", c->differences.v[i]);
	if (!c->configured)
		buf_puts(out, "The configuration of at least one side is not known.\n");
	else if (!c->complete)
		buf_puts(out, "The configuration of at least one side is not known in full: there "
			      "may be more differences.\n");
	else if (c->differences.n == 0)
		buf_puts(out, "The configurations are identical.\n");
	if (c->servers.n)
		buf_puts(out, "\nServers of the store, in the timed part:\n");
	for (size_t i = 0; i < c->servers.n; i++)
		buf_say(out, "  %s\n", c->servers.v[i]);
	if (c->measures)
		buf_say(out, "\nMean +- standard deviation over %s, first -> second:\n",
			c->measure[0].basis == COMPARE_RUNS ? "runs" : "the epochs of each side");
	for (size_t i = 0; i < c->measures; i++)
		measure_text(out, &c->measure[i]);
}

json_t *comparison_json(const struct comparison *c)
{
	json_t *root = json_object(), *list = json_array();

	for (size_t i = 0; i < c->measures; i++) {
		const struct compared *m = &c->measure[i];
		json_t *o = json_object();

		json_put_text(o, "measure", m->name);
		json_put_text(o, "unit", m->unit);
		json_put(o, "first", json_stat(&m->a));
		json_put(o, "second", json_stat(&m->b));
		json_put_text(o, "verdict", verdict_word(m->verdict));
		json_put_text(o, "values_are", basis_word(m->basis));
		if (m->verdict == COMPARE_UNKNOWN) {
			json_put_text(o, "no_test", m->why);
		} else {
			json_put_text(o, "test", "Welch's t-test, two-sided, 5 %");
			json_put_real(o, "change", m->test.change);
			json_put_real(o, "change_low_95", m->test.low);
			json_put_real(o, "change_high_95", m->test.high);
			json_put_real(o, "p", m->test.p);
		}
		json_array_append_new(list, o);
	}
	json_put(root, "not_comparable", json_texts(&c->sides.unlike));
	json_put(root, "warnings", json_texts(&c->sides.doubts));
	json_put(root, "runs", json_pack("[I, I]", (json_int_t)c->runs[0], (json_int_t)c->runs[1]));
	json_put(root, "copies_not_counted",
		 json_pack("[I, I]", (json_int_t)c->copies[0], (json_int_t)c->copies[1]));
	json_put_int(root, "runs_needed", COMPARE_RUNS_NEEDED);
	json_put(root, "measures", list);
	json_put(root, "differences", json_texts(&c->differences));
	if (c->servers.n)
		json_put(root, "servers", json_texts(&c->servers));
	json_put(root, "configurations_complete", json_boolean(c->complete));
	return root;
}
