/* AU in another window, by the definition of docs/metrics.md. */
#include "judge/window.h"

#include <math.h>

#include "base/clock.h"

struct sums {
	double left_s, all_s; /* time of steps: left out beyond the default; all */
	double counted, measured;
};

static double processing(const struct step_times *t)
{
	return clock_seconds(t->compute_end_ns - t->ask_ns);
}

/* One phase: AU and samples/s of [lo, hi); NAN where there is none. */
static double au_of(const struct phase *p, uint64_t lo, uint64_t hi, double *rate)
{
	double time = clock_seconds(p->end_ns - p->begin_ns), compute = 0;

	for (uint64_t i = 0; i < p->steps; i++) {
		const struct step_times *t = &p->step[i];

		if (i >= lo && i < hi)
			compute += clock_seconds(t->compute_end_ns - t->compute_begin_ns);
		else
			time -= processing(t);
	}
	if (hi <= lo || !(time > 0)) {
		*rate = NAN;
		return NAN;
	}
	*rate = (double)p->samples / (double)p->steps * (double)(hi - lo) / time;
	return 100 * compute / time;
}

static void look_at_phase(const struct result *r, const struct phase *p, uint64_t total,
			  struct window_view *v, struct sums *s, double *au, double *rate,
			  double *weight)
{
	bool dlio = r->workload->compat.dlio;
	uint64_t lo, hi, first = dlio || p->first_step == 0, from;
	double one, speed;

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
	one = au_of(p, from, p->steps, &speed);
	if (isnan(one))
		return;
	*au += one * (double)(p->steps - from);
	*rate += speed * (double)(p->steps - from);
	*weight += (double)(p->steps - from);
}

void window_look(const struct result *r, const struct run_metrics *m, bool eval,
		 struct window_view *v)
{
	int64_t start = r->workload->output.metric.exclude_start_steps;
	int64_t end = r->workload->output.metric.exclude_end_steps;
	double au_sum = 0, rate_sum = 0, ranks = 0, epochs = 0;
	struct sums s = {0};

	*v = (struct window_view){.chosen = start > 1 || end > 0};
	for (uint32_t k = 0; r->rank && k < r->ranks; k++)
		ranks += !r->rank[k].lost;
	for (uint32_t e = 0; e < m->epochs; e++) {
		double of_epoch = 0, n = 0;

		for (uint32_t k = 0; k < r->ranks; k++) {
			const struct rank_epoch *ep = &r->rank[k].epoch[e];
			double au = 0, rate = 0, weight = 0;
			uint64_t total = 0;

			if (r->rank[k].lost || (eval && !ep->has_eval))
				continue;
			for (uint32_t b = 0; b < ep->blocks; b++)
				total += ep->block[b].steps;
			if (eval)
				look_at_phase(r, &ep->eval, ep->eval.steps, v, &s, &au, &rate,
					      &weight);
			for (uint32_t b = 0; !eval && b < ep->blocks; b++)
				look_at_phase(r, &ep->block[b], total, v, &s, &au, &rate, &weight);
			if (!(weight > 0))
				continue;
			au_sum += au / weight / ranks;
			of_epoch += rate / weight;
			n++;
		}
		rate_sum += of_epoch;
		epochs += n > 0;
	}
	v->known = v->steps > 0 && epochs > 0;
	if (!v->known)
		return;
	v->steps_share = (v->start + v->end) / v->steps;
	v->time_share = s.all_s > 0 ? s.left_s / s.all_s : 0;
	v->au = eval ? m->eval_au.mean : m->train_au.mean;
	v->default_au = au_sum / epochs;
	v->default_rate = rate_sum / epochs;
	v->counted = s.measured > 0 ? s.counted / s.measured : 0;
}
