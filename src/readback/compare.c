/* The comparison: samples of each measure, Welch's test, what differs in the configurations. */
#include "readback/compare.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "readback/audit.h"
#include "result/json_out.h"

#define LEVEL 0.05

static double wall_of(const struct run_record *r, size_t epoch)
{
	double longest = NAN;

	for (uint32_t k = 0; k < r->ranks; k++)
		if (epoch < r->rank[k].epochs && !(longest >= r->rank[k].epoch[epoch].train_wall_s))
			longest = r->rank[k].epoch[epoch].train_wall_s;
	return longest;
}

static double eval_au_of(const struct run_record *r, size_t epoch)
{
	return epoch < r->eval_au.n ? r->eval_au.v[epoch] : NAN;
}

static const struct {
	const char *name, *unit;
	int better;
	record_measure of;
} measures[] = {
	{"AU, by DLIO's definition", "%", 1, record_au},
	{"AU, whole run", "%", 1, record_whole_au},
	{"throughput of the measured steps", "samples/s", 1, record_throughput},
	{"wall time of an epoch", "s", -1, wall_of},
	{"evaluation AU", "%", 1, eval_au_of},
};

static void judge_measure(struct compared *m, const double *a, const double *b)
{
	if (m->a.n < 2 || m->b.n < 2) {
		m->basis = COMPARE_SINGLE;
		m->verdict = COMPARE_UNKNOWN;
		return;
	}
	m->test = welch_test(a, m->a.n, b, m->b.n);
	if (m->test.p >= LEVEL)
		m->verdict = COMPARE_SAME;
	else if (m->better == 0)
		m->verdict = COMPARE_DIFFERENT;
	else
		m->verdict = m->test.change * m->better > 0 ? COMPARE_BETTER : COMPARE_WORSE;
}

static void config_differences(struct comparison *c, const struct run_record *a,
			       const struct run_record *b)
{
	if (a->ranks != b->ranks)
		str_list_add(&c->differences, xasprintf("ranks: %u | %u", a->ranks, b->ranks));
	if (strcmp(a->hostname, b->hostname) != 0)
		str_list_add(&c->differences, xasprintf("host: %s | %s", a->hostname, b->hostname));
	if (!a->has_workload || !b->has_workload)
		return;
	for (size_t i = 0; i < workload_row_count; i++) {
		const struct opt *row = &workload_rows[i];
		AUTO_FREE char *x = opt_get_text(row, &a->workload);
		AUTO_FREE char *y = opt_get_text(row, &b->workload);

		/* the location of a result is not a difference between runs */
		if (strncmp(row->key, "output.", 7) == 0 && strstr(row->key, "folder"))
			continue;
		if (strcmp(x, y) != 0)
			str_list_add(&c->differences, xasprintf("%s: %s | %s", row->key, x, y));
	}
}

static bool many_failures(const struct run_record *r, size_t n)
{
	struct audit audit;
	bool bad;

	audit_run(&audit, r, n);
	bad = audit_worst(&audit) == AUDIT_FAIL;
	audit_release(&audit);
	return bad;
}

static void add_warnings(struct comparison *c, const struct run_record *a, size_t na,
			 const struct run_record *b, size_t nb, bool by_run)
{
	if (!by_run)
		str_list_add(
			&c->warnings,
			xasprintf("Each side is a single run, compared by its epochs: a difference "
				  "may come from the state of the machine at the time of the run. "
				  "Repeat whole runs to rule this out."));
	if (many_failures(a, na))
		str_list_add(&c->warnings, xasprintf("The audit reports invalid results on the "
						     "first side (see stoker audit)."));
	if (many_failures(b, nb))
		str_list_add(&c->warnings, xasprintf("The audit reports invalid results on the "
						     "second side (see stoker audit)."));
	if (a->ours != b->ours)
		str_list_add(
			&c->warnings,
			xasprintf("One side was made by DLIO and the other by Stoker, which count "
				  "steps differently in throughput (docs/compatibility.md)."));
}

void compare_records(struct comparison *c, const struct run_record *a, size_t na,
		     const struct run_record *b, size_t nb)
{
	bool by_run = na > 1 && nb > 1;

	static_assert(sizeof(measures) / sizeof(measures[0]) <= COMPARED_MAX, "room for all");

	assert(na > 0 && nb > 0);
	*c = (struct comparison){0};
	for (size_t i = 0; i < sizeof(measures) / sizeof(measures[0]); i++) {
		struct compared *m = &c->measure[c->measures];
		size_t va_n, vb_n;
		double *va = record_values(a, NULL, na, measures[i].of, !by_run, &va_n);
		double *vb = record_values(b, NULL, nb, measures[i].of, !by_run, &vb_n);

		if (va_n && vb_n) {
			*m = (struct compared){.name = measures[i].name,
					       .unit = measures[i].unit,
					       .better = measures[i].better,
					       .basis = by_run ? COMPARE_RUNS : COMPARE_EPOCHS,
					       .a = sample_stat_of(va, va_n),
					       .b = sample_stat_of(vb, vb_n)};
			judge_measure(m, va, vb);
			c->measures++;
		}
		free(va);
		free(vb);
	}
	config_differences(c, a, b);
	add_warnings(c, a, na, b, nb, by_run);
}

void comparison_release(struct comparison *c)
{
	str_list_release(&c->differences);
	str_list_release(&c->warnings);
	*c = (struct comparison){0};
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

void comparison_text(const struct comparison *c, struct buf *out)
{
	for (size_t i = 0; i < c->differences.n; i++)
		buf_printf(out, "%s%s\n", i ? "  " : "Differences (first | second):\n  ",
			   c->differences.v[i]);
	if (c->differences.n == 0)
		buf_puts(out, "The configurations are identical.\n");
	buf_puts(out, "\nMean +- standard deviation, first -> second:\n");
	for (size_t i = 0; i < c->measures; i++) {
		const struct compared *m = &c->measure[i];
		double share = m->a.mean != 0 ? 100 * (m->b.mean / m->a.mean - 1) : NAN;

		buf_printf(out, "%s (%s): %.4g +- %.2g -> %.4g +- %.2g", m->name, m->unit,
			   m->a.mean, m->a.stdev, m->b.mean, m->b.stdev);
		if (isfinite(share))
			buf_printf(out, " (%+.1f %%)", share);
		if (m->verdict == COMPARE_UNKNOWN)
			buf_printf(out,
				   "\n    unknown: %zu and %zu values; the test needs at least 2 "
				   "on each side\n",
				   m->a.n, m->b.n);
		else
			buf_printf(out,
				   "\n    %s: change %+.4g, 95 %% interval %+.4g to %+.4g, p = "
				   "%.3g (Welch's t-test over %zu and %zu %s)\n",
				   verdict_word(m->verdict), m->test.change, m->test.low,
				   m->test.high, m->test.p, m->a.n, m->b.n, basis_word(m->basis));
	}
	for (size_t i = 0; i < c->warnings.n; i++)
		buf_printf(out, "\n! %s\n", c->warnings.v[i]);
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
		if (m->verdict != COMPARE_UNKNOWN) {
			json_put_text(o, "test", "Welch's t-test, two-sided, 5 %");
			json_put_text(o, "values_are", basis_word(m->basis));
			json_put_real(o, "change", m->test.change);
			json_put_real(o, "change_low_95", m->test.low);
			json_put_real(o, "change_high_95", m->test.high);
			json_put_real(o, "p", m->test.p);
		}
		json_array_append_new(list, o);
	}
	json_put(root, "measures", list);
	json_put(root, "differences", json_texts(&c->differences));
	json_put(root, "warnings", json_texts(&c->warnings));
	return root;
}
