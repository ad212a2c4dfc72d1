/* Where a curve becomes flat. */
#include "readback/reach.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/stats.h"
#include "base/str.h"
#include "result/judgement.h"

/* The 95 % interval of a point's share of the best: half of its width; NaN: not known. */
static double margin(const struct reach_point *p, const struct reach_point *best)
{
	double share = p->rate / best->rate;
	double own = pow(p->error / p->rate, 2), of_best = pow(best->error / best->rate, 2);
	double both = own + of_best; /* Welch's degrees of freedom */
	double df = both * both / (own * own / p->df + of_best * of_best / best->df);

	if (p == best || (!(both > 0) && !isnan(both)))
		return 0;
	return student_t(0.05, df) * share * sqrt(both);
}

void reach_find(const struct reach_point *p, size_t n, struct reach *out)
{
	*out = (struct reach){.errors = true};
	for (size_t i = 1; i < n; i++)
		if (p[i].rate > p[out->best].rate)
			out->best = i;
	for (size_t i = 0; i < n; i++)
		out->errors = out->errors && isfinite(p[i].error) && p[i].df >= 1;
	for (size_t i = 0; i < out->best; i++) {
		double share = p[i].rate / p[out->best].rate, m = margin(&p[i], &p[out->best]);

		if (share < REACH_SHARE)
			out->from = i + 1;
		if (share + m < REACH_SHARE)
			out->low = i + 1;
		if (!(share - m >= REACH_SHARE))
			out->high = i + 1;
	}
	for (out->to = out->best; out->to + 1 < n;)
		if (p[out->to + 1].rate < REACH_SHARE * p[out->best].rate)
			break;
		else
			out->to++;
	if (!out->errors)
		out->low = out->high = out->from;
}

/* ---- of a family ---- */

struct value {
	const struct run_group *group;
	const char *text;
	double x;
};

static int by_x(const void *a, const void *b)
{
	double x = ((const struct value *)a)->x, y = ((const struct value *)b)->x;

	return x < y ? -1 : x > y;
}

/* By value, on the heap; NULL: they are no numbers, or fewer than REACH_POINTS. */
static struct value *values_of(const struct family *f)
{
	struct value *v = xcalloc(f->groups + 1, sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; i < f->groups; i++) {
		v[n] = (struct value){f->group[i], family_value(f, f->group[i]), 0};
		if (key_number(f->key, v[n].text, &v[n].x))
			n++;
	}
	if (n < f->groups || n < REACH_POINTS) {
		free(v);
		return NULL;
	}
	qsort(v, n, sizeof(*v), by_x);
	return v;
}

/* What limits all runs of a group that count; CAUSE_NONE: it is not known, or not the same. */
static enum cause cause_of_group(const struct run_group *x, const struct run_groups *g)
{
	enum cause first = g->record[x->record[0]].facts.cause;

	for (size_t i = 1; i < x->counted; i++)
		if (g->record[x->record[i]].facts.cause != first)
			return CAUSE_NONE;
	return first;
}

static const char *cause_said(enum cause c, char text[32])
{
	return c == CAUSE_NONE ? "not the same in all runs" : cause_text(c, text);
}

/* "4KiB to 64KiB: latency; 128KiB: bandwidth", or of values without an order "none, zip: bandwidth;
 * gzip: decode". */
static bool put_limits(struct buf *out, const struct value *v, size_t n, const struct run_groups *g,
		       bool ordered)
{
	size_t parts = 0;

	for (size_t i = 0, last; i < n; i = last + 1) {
		enum cause c = cause_of_group(v[i].group, g);
		char text[32];

		for (last = i; last + 1 < n && cause_of_group(v[last + 1].group, g) == c;)
			last++;
		if (i == 0 && last + 1 == n)
			return false;
		buf_printf(out, "%s%s", parts++ ? "; " : "", v[i].text);
		if (ordered && last > i)
			buf_printf(out, " to %s", v[last].text);
		for (size_t k = i + 1; !ordered && k <= last; k++)
			buf_printf(out, ", %s", v[k].text);
		buf_printf(out, ": %s", cause_said(c, text));
	}
	return parts > 0;
}

bool limits_put(struct buf *out, const struct family *f, const struct run_groups *g)
{
	struct value *v = values_of(f);
	bool said, ordered = v != NULL;

	if (!v) { /* in the family's own order */
		v = xcalloc(f->groups + 1, sizeof(*v));
		for (size_t i = 0; i < f->groups; i++) {
			const char *text = family_value(f, f->group[i]);

			v[i] = (struct value){f->group[i], text[0] ? text : "no override", 0};
		}
	}
	said = put_limits(out, v, f->groups, g, ordered);
	free(v);
	return said;
}

/* What is reached, where all runs of the range say the same. */
static void put_reached(struct buf *out, const struct value *v, const struct reach *r,
			const struct run_groups *g)
{
	enum cause c = cause_of_group(v[r->from].group, g);
	char text[32];

	for (size_t i = r->from + 1; i <= r->to; i++)
		if (cause_of_group(v[i].group, g) != c)
			return;
	if (c == CAUSE_BANDWIDTH)
		buf_puts(out, ": the store's bandwidth is reached");
	else if (c == CAUSE_COMPUTE)
		buf_puts(out, ": the accelerators are fed");
	else if (c != CAUSE_NONE && c != CAUSE_UNKNOWN && c != CAUSE_OTHER)
		buf_printf(out, ": the limit there is %s", cause_text(c, text));
}

static void put_errors(struct buf *out, const struct value *v, const struct reach *r)
{
	if (!r->errors)
		buf_puts(out, " The error is not known: that needs three epochs, or runs, of each "
			      "value.");
	else if (r->low < r->high)
		buf_printf(out,
			   " By the spread of what was measured, it begins between %s and %s "
			   "(95 %% confidence).",
			   v[r->low].text, v[r->high].text);
}

static void put_sentence(struct buf *out, const struct family *f, const struct run_groups *g,
			 const struct value *v, const struct reach_point *p)
{
	size_t n = f->groups;
	double near = 100 * (1 - REACH_SHARE);
	char rate[32];
	struct reach r;

	reach_find(p, n, &r);
	str_bytes(p[r.best].rate, rate, sizeof(rate));
	if (r.to + 1 < n)
		buf_printf(out, "%s %s=%s%s%s, throughput is within %.0f %%",
			   r.from < r.to ? "from" : "with", f->key, v[r.from].text,
			   r.from < r.to ? " to " : "", r.from < r.to ? v[r.to].text : "", near);
	else if (r.from == 0)
		buf_printf(out, "for all values of %s, %s to %s, throughput is within %.0f %%",
			   f->key, v[0].text, v[n - 1].text, near);
	else
		buf_printf(out, "from %s=%s on, throughput stays within %.0f %%", f->key,
			   v[r.from].text, near);
	buf_printf(out, " of its highest (%s/s of samples, with %s)", rate, v[r.best].text);
	put_reached(out, v, &r, g);
	if (r.to + 1 < n)
		buf_printf(out, "; with %s it falls to %.0f %% of that", v[r.to + 1].text,
			   100 * p[r.to + 1].rate / p[r.best].rate);
	buf_putc(out, '.');
	put_errors(out, v, &r);
}

bool reach_put(struct buf *out, const struct family *f, const struct run_groups *g)
{
	struct value *v = values_of(f);
	struct reach_point *p = xcalloc(f->groups + 1, sizeof(*p));
	bool known = v != NULL;

	for (size_t i = 0; known && i < f->groups; i++) {
		const struct run_group *x = v[i].group;
		double bytes = g->record[x->record[0]].facts.sample_bytes;
		const struct sample_stat *s = &x->whole_rate;
		bool spread = s->n >= SPREAD_VALUES;

		known = x->throughput_n && s->mean > 0 && bytes > 0 && isfinite(s->mean * bytes);
		p[i] = (struct reach_point){v[i].x, s->mean * bytes,
					    spread ? bytes * s->stdev / sqrt((double)s->n) : NAN,
					    (double)s->n - 1};
	}
	if (known)
		put_sentence(out, f, g, v, p);
	free(v);
	free(p);
	return known;
}
