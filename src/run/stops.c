#include "run/stops.h"

/* Of [begin, end] what counts: the whole process's, and a thread's where it lasts. */
static int64_t stood(const struct standstills *s, int64_t begin_ns, int64_t end_ns)
{
	int64_t all = standstill_within(s, false, begin_ns, end_ns, NULL, NULL);
	int64_t one = end_ns - begin_ns >= STANDSTILL_LEAST_NS
			      ? standstill_within(s, true, begin_ns, end_ns, NULL, NULL)
			      : 0;

	/* several threads may have stood still at once */
	one = all > one ? all : one;
	return one < end_ns - begin_ns ? one : end_ns - begin_ns;
}

static uint16_t later(uint16_t share, int64_t begin_ns, int64_t end_ns, int64_t stood_ns)
{
	return late_share(late_ns(share, end_ns - begin_ns) + stood_ns, end_ns - begin_ns);
}

/* `split`: NULL for an evaluation, whose waits are not divided. */
static void apply_to_phase(const struct standstills *s, struct phase *p, struct epoch_split *split)
{
	for (uint64_t i = 0; i < p->steps; i++) {
		struct step_times *t = &p->step[i];
		int64_t ns = stood(s, t->ask_ns, t->got_ns);

		if (ns)
			wait_split_take(split, t, ns);
		ns = standstill_within(s, false, t->compute_begin_ns, t->compute_end_ns, NULL,
				       NULL);
		if (ns)
			t->late_compute =
				later(t->late_compute, t->compute_begin_ns, t->compute_end_ns, ns);
		ns = standstill_within(s, false, t->barrier_in_ns, t->barrier_out_ns, NULL, NULL);
		if (ns)
			t->late_barrier =
				later(t->late_barrier, t->barrier_in_ns, t->barrier_out_ns, ns);
	}
}

static void add_facts(const struct standstills *s, struct processors *p, int64_t begin_ns,
		      int64_t end_ns)
{
	if (end_ns <= begin_ns)
		return;
	p->stopped_ns += standstill_within(s, false, begin_ns, end_ns, &p->stops, NULL);
	p->frozen_ns += standstill_within(s, true, begin_ns, end_ns, &p->freezes, p->frozen_thread);
}

static bool in(int64_t t, int64_t begin_ns, int64_t end_ns)
{
	return t >= begin_ns && t <= end_ns;
}

/* Whether a rank went on from one part of a step to the next in [begin, end]. */
static bool phase_moved(const struct phase *p, int64_t begin_ns, int64_t end_ns)
{
	uint64_t low = 0, high = p->steps;

	/* the first step that ended after it began */
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (p->step[middle].barrier_out_ns < begin_ns)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < p->steps && p->step[low].ask_ns <= end_ns; low++) {
		const struct step_times *t = &p->step[low];

		if (in(t->ask_ns, begin_ns, end_ns) || in(t->got_ns, begin_ns, end_ns) ||
		    in(t->compute_end_ns, begin_ns, end_ns) ||
		    in(t->barrier_out_ns, begin_ns, end_ns))
			return true;
	}
	return false;
}

static bool ranks_moved(void *arg, int64_t begin_ns, int64_t end_ns)
{
	const struct result *r = arg;

	for (uint32_t k = 0; k < r->ranks_here; k++)
		for (uint32_t e = 0; e < r->epochs_begun; e++) {
			const struct rank_epoch *ep = &r->rank[k].epoch[e];

			for (uint32_t b = 0; b < ep->blocks; b++)
				if (phase_moved(&ep->block[b], begin_ns, end_ns))
					return true;
			if (ep->has_eval && phase_moved(&ep->eval, begin_ns, end_ns))
				return true;
		}
	return false;
}

static int64_t steal_of(const struct result *r)
{
	int64_t sum = 0;

	for (uint32_t e = 0; e < r->epochs_begun; e++) {
		sum += r->usage[e].cpu_train.steal_ns > 0 ? r->usage[e].cpu_train.steal_ns : 0;
		sum += r->usage[e].cpu_eval.steal_ns > 0 ? r->usage[e].cpu_eval.steal_ns : 0;
	}
	return sum;
}

void stops_apply(struct standstills *s, struct result *r)
{
	if (s->n == 0 || !r->rank || !r->usage)
		return;
	standstill_sift(s, ranks_moved, r, steal_of(r));
	for (uint32_t e = 0; e < r->epochs_begun; e++) {
		const struct rank_epoch *first = &r->rank[0].epoch[e];

		add_facts(s, &r->usage[e].cpu_train, first->begin_ns, first->train_end_ns);
		if (first->has_eval)
			add_facts(s, &r->usage[e].cpu_eval, first->eval.begin_ns,
				  first->eval.end_ns);
		for (uint32_t k = 0; k < r->ranks_here; k++) {
			struct rank_epoch *ep = &r->rank[k].epoch[e];

			for (uint32_t b = 0; b < ep->blocks; b++)
				apply_to_phase(s, &ep->block[b], &ep->split);
			if (ep->has_eval)
				apply_to_phase(s, &ep->eval, NULL);
		}
	}
}
