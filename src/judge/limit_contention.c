/* Requests that slow each other down so much that fewer readers get more: seen by a probe, or told
 * by the model of this run's requests. */
#include <math.h>

#include "judge/limit_view.h"

static const double FALLEN = 0.8; /* of the best rate of a probe, with fewer readers */
static const double WORTH = 2;    /* points of AU, beyond doubt, by fewer workers */

struct fall contention_probed(const struct probe *p)
{
	const struct probe_point *best = NULL, *now = NULL;

	for (uint32_t i = 0; p->done && i < p->count; i++) {
		const struct probe_point *q = &p->point[i];

		if (!best || probe_rate(q) > probe_rate(best))
			best = q;
		/* the nearest to the run's readers, in the logarithm */
		if (!now || fabs(log((double)q->readers / p->run_readers)) <
				    fabs(log((double)now->readers / p->run_readers)))
			now = q;
	}
	if (!best || p->run_readers == 0 || best->readers >= now->readers ||
	    probe_rate(now) > FALLEN * probe_rate(best))
		return (struct fall){0};
	return (struct fall){.readers = now->readers,
			     .rate = probe_rate(now),
			     .fewer = best->readers,
			     .best = probe_rate(best)};
}

/* The best of fewer workers, by the model; NULL: none is better beyond doubt. */
static const struct what_if *fewer_workers(const struct limit_view *v)
{
	const struct outlook *o = v->outlook;
	const struct what_if *best = NULL;

	for (uint32_t i = 0; o->known && i < o->changes; i++) {
		const struct what_if *w = &o->change[i];

		if (!w->known || w->workers == 0 || w->workers >= result_workers(v->r) ||
		    w->low < o->measured_au + WORTH || (best && best->au >= w->au))
			continue;
		best = w;
	}
	return best;
}

bool limit_at_contention(struct limit_view *v)
{
	struct fall f = contention_probed(&v->r->probe);
	const struct what_if *w = fewer_workers(v);

	if (v->doing != LOST_REQUESTS || (!(f.readers > 0) && !w))
		return false;
	limit_found(v, fact_with(f.readers > 0 ? FACT(LIMIT_CONTENTION, f.readers, f.rate, f.fewer,
						      f.best)
					       : FACT(LIMIT_CONTENTION_TOLD, v->reading.readers),
				 0, v->place));
	if (w)
		limit_would(v, FACT(EFFECT_FEWER_WORKERS, w->workers, w->au, w->low, w->high));
	else if (result_workers(v->r) > 1)
		limit_would(v, FACT(EFFECT_TRY_FEWER));
	return true;
}
