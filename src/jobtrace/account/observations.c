/* Observations of one value. */
#include "jobtrace/account/observations.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

void values_add(struct values *s, double v)
{
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 64;
		s->v = xrealloc(s->v, s->room * sizeof(*s->v));
	}
	s->v[s->n++] = v;
}

int values_compare(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

double values_median(struct values *s)
{
	if (s->n == 0)
		return 0;
	qsort(s->v, s->n, sizeof(*s->v), values_compare);
	return s->n % 2 ? s->v[s->n / 2] : (s->v[s->n / 2 - 1] + s->v[s->n / 2]) / 2;
}

uint64_t values_near(const struct values *s, double v)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += fabs(s->v[i] - v) <= 0.1 * v;
	return n;
}

void counts_add(struct counts *c, size_t n)
{
	if (!c->of)
		c->of = xcalloc(COUNTS_MAX + 1, sizeof(*c->of));
	c->of[n < COUNTS_MAX ? n : COUNTS_MAX]++;
	c->all++;
}

uint32_t counts_mode(const struct counts *c, uint64_t *agree)
{
	uint32_t best = 0;

	*agree = 0;
	for (uint32_t i = 1; c->of && i < COUNTS_MAX; i++)
		if (c->of[i] > *agree) {
			*agree = c->of[i];
			best = i;
		}
	return best;
}
