/* AU in another window, by the definition of docs/metrics.md. */
#include "judge/window.h"

#include <math.h>

#include "base/clock.h"

struct sums {
	double left_s, all_s; /* time of steps: left out beyond the default; all */
	double counted, measured;
	/* blocks together: in the default window, and all */
	double compute_s, time_s, steps, whole_compute_s, whole_time_s;
};

static double processing(const struct step_times *t)
{
	return clock_seconds(t->compute_end_ns - t->ask_ns);
}

/* One phase: AU of [lo, hi); NAN where there is none. */
static double au_of(const struct phase *p, uint64_t lo, uint64_t hi, struct sums *s)
{
	double time = clock_seconds(p->end_ns - p->begin_ns), compute = 0;

	s->whole_time_s += time;
	for (uint64_t i = 0; i < p->steps; i++) {
		const struct step_times *t = &p->step[i];
		double one = clock_seconds(t->compute_end_ns - t->compute_begin_ns);

		s->whole_compute_s += one;
		if (i >= lo && i < hi)
			compute += one;
		else
			time -= processing(t);
	}
	if (hi <= lo || !(time > 0))
		return NAN;
	s->compute_s += compute;
	s->time_s += time;
	s->steps += (double)(hi - lo);
	return 100 * compute / time;
}

static void look_at_phase(const struct result *r, const struct phase *p, uint64_t total,
			  struct window_view *v, struct sums *s, double *au, double *weight)
{
	bool dlio = r->workload->compat.dlio;
	uint64_t lo, hi, first = dlio || p->first_step == 0, from;
	double one;

	metrics_window(r, p, total, &lo, &hi);
	from = first < p->steps ? first : p->steps;
	v->steps += (double)p->steps;
	for (uint64_t i = 0; i < p->steps; i++) {
		bool left = i >= from && (i < lo || i >= hi);

		v->start += left && i < lo;
		v->end += left && i >= lo;
		s->left_s +=
			left ? clock_seconds(p->step[i].barrier_out_ns - p->step[i].ask_ns) : 0;
		s->all_s += clock_seconds(p->step[i].barrier_out_ns - p->step[i].ask_ns);
	}
	s->counted += p->steps > 2 ? (double)p->steps - 2 : 0;
	s->measured += (double)(hi - lo);
	one = au_of(p, from, p->steps, s);
	if (isnan(one))
		return;
	*au += one * (double)(p->steps - from);
	*weight += (double)(p->steps - from);
}

void window_look(const struct result *r, const struct run_metrics *m, bool eval,
		 struct window_view *v)
{
	int64_t start = r->workload->output.metric.exclude_start_steps;
	int64_t end = r->workload->output.metric.exclude_end_steps;
	double au_sum = 0, ranks = 0, epochs = 0;
	struct sums s = {0};

	*v = (struct window_view){.chosen = start > 1 || end > 0};
	for (uint32_t k = 0; r->rank && k < r->ranks; k++)
		ranks += !r->rank[k].lost;
	for (uint32_t e = 0; e < m->epochs; e++) {
		double n = 0;

		for (uint32_t k = 0; k < r->ranks; k++) {
			const struct rank_epoch *ep = &r->rank[k].epoch[e];
			double au = 0, weight = 0;
			uint64_t total = 0;

			if (r->rank[k].lost || (eval && !ep->has_eval))
				continue;
			for (uint32_t b = 0; b < ep->blocks; b++)
				total += ep->block[b].steps;
			if (eval)
				look_at_phase(r, &ep->eval, ep->eval.steps, v, &s, &au, &weight);
			for (uint32_t b = 0; !eval && b < ep->blocks; b++)
				look_at_phase(r, &ep->block[b], total, v, &s, &au, &weight);
			if (!(weight > 0))
				continue;
			au_sum += au / weight / ranks;
			n++;
		}
		epochs += n > 0;
	}
	v->known = v->steps > 0 && epochs > 0;
	if (!v->known)
		return;
	v->steps_share = (v->start + v->end) / v->steps;
	v->time_share = s.all_s > 0 ? s.left_s / s.all_s : 0;
	v->au = eval ? m->eval_au.mean : m->train_au.mean;
	v->default_au = au_sum / epochs;
	if (s.time_s > 0 && s.whole_time_s > 0) {
		v->start_points =
			100 * (s.compute_s / s.time_s - s.whole_compute_s / s.whole_time_s);
		v->start_share = s.steps / s.time_s / (v->steps / s.whole_time_s) - 1;
	}
	v->counted = s.measured > 0 ? s.counted / s.measured : 0;
}
