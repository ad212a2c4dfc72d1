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

void stops_apply(const struct standstills *s, struct result *r)
{
	if (s->n == 0 || !r->rank || !r->usage)
		return;
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
