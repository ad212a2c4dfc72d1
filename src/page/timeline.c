#include "page/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static double last_end(const struct run_record *r)
{
	double end = 0;

	for (uint32_t k = 0; k < r->ranks; k++)
		for (size_t i = 0; i < r->rank[k].epochs; i++) {
			const struct record_epoch *ep = &r->rank[k].epoch[i];

			for (size_t b = 0; b < ep->blocks; b++)
				if (ep->block[b].begin_s + ep->block[b].wall_s > end)
					end = ep->block[b].begin_s + ep->block[b].wall_s;
			if (ep->end_s > end)
				end = ep->end_s;
		}
	return end;
}

/* Adds `amount` over [from, to), spread evenly. */
static void spread_amount(double *v, const struct timeline *t, double from, double to,
			  double amount)
{
	double width = to - from;
	size_t first, last;

	if (!(width > 0) || from < 0 || !isfinite(from) || !isfinite(to))
		return;
	/* times of a file may be any number */
	first = (size_t)fmin(from / t->dt_s, (double)t->bins);
	last = (size_t)fmin(to / t->dt_s, (double)t->bins);
	for (size_t b = first; b <= last && b < t->bins; b++) {
		double low = fmax(from, (double)b * t->dt_s);
		double high = fmin(to, (double)(b + 1) * t->dt_s);

		if (high > low)
			v[b] += amount * (high - low) / width;
	}
}

static void add_block(struct timeline *t, const struct record_phase *p, double batch)
{
	double sum = 0, gap, at = p->begin_s;
	size_t n = p->computes < p->loads ? p->computes : p->loads;

	for (size_t i = 0; i < n; i++)
		sum += p->load[i] + p->compute[i];
	if (n == 0 || !isfinite(at) || !isfinite(p->wall_s))
		return;
	gap = p->wall_s > sum ? (p->wall_s - sum) / (double)n : 0;
	for (size_t i = 0; i < n; i++) {
		double got = at + p->load[i], done = got + p->compute[i];

		spread_amount(t->busy, t, got, done, p->compute[i]);
		spread_amount(t->rate, t, at, done + gap, batch);
		at = done + gap;
	}
}

bool timeline_build(struct timeline *t, const struct run_record *r)
{
	double end = last_end(r), batch = 1;

	*t = (struct timeline){0};
	if (!(end > 0) || r->ranks_found == 0)
		return false;
	t->bins = TIMELINE_BINS;
	t->dt_s = end / TIMELINE_BINS;
	t->busy = xcalloc(t->bins, sizeof(*t->busy));
	t->rate = xcalloc(t->bins, sizeof(*t->rate));
	if (r->has_workload)
		batch = (double)r->workload.reader.batch_size;
	for (uint32_t k = 0; k < r->ranks; k++)
		for (size_t i = 0; i < r->rank[k].epochs; i++)
			for (size_t b = 0; b < r->rank[k].epoch[i].blocks; b++)
				add_block(t, &r->rank[k].epoch[i].block[b], batch);
	for (size_t b = 0; b < t->bins; b++) {
		t->busy[b] /= t->dt_s * r->ranks_found;
		t->rate[b] /= t->dt_s;
	}
	return true;
}

void timeline_release(struct timeline *t)
{
	free(t->busy);
	free(t->rate);
	*t = (struct timeline){0};
}
