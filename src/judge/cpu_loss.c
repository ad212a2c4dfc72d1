/* Who had the processors: counters of the worst process, and the shares of the steps. */
#include "judge/cpu_loss.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"

static const double STOOD_SHARE = 0.5;    /* of what was lost: standing still explains it */
static const double PERIODS_SHARE = 0.1;  /* of the periods of a quota: it binds */
static const double QUOTA_USED = 0.7;     /* of a quota that binds although others are busy, too */
static const double OTHERS_SHARE = 0.25;  /* of the processors */
static const double OTHERS_TO_LOST = 0.5; /* of the loss: processors were free, else */
static const double OTHERS_TO_OWN = 0.4;  /* of what the run used: not its own threads are it */

static void add(int64_t *to, int64_t ns)
{
	*to = *to < 0 || ns < 0 ? -1 : *to + ns;
}

/* The sum over epochs, with the facts of the worst one. `cpu_ns`: of all processes. */
static bool sum_up(const struct result *r, bool eval, struct processors *all, int64_t *cpu_ns,
		   uint32_t *process)
{
	int64_t worst = -1;
	bool any = false;

	*all = (struct processors){0};
	*cpu_ns = 0;
	for (uint32_t i = 0; i < r->epochs_done; i++) {
		const struct epoch_usage *u = &r->usage[i];
		const struct processors *p = eval ? &u->cpu_eval : &u->cpu_train;
		int64_t here = p->stopped_ns + p->frozen_ns + p->waited_ns;
		const struct processor_group *g = processors_throttled(p);

		if (p->wall_ns <= 0)
			continue;
		if (!any || here > worst) {
			worst = here;
			*process = eval ? u->cpu_eval_process : u->cpu_train_process;
			all->allowed = p->allowed;
			all->online = p->online;
			all->nice = p->nice;
			all->idle_class = p->idle_class;
		}
		any = true;
		*cpu_ns += eval ? u->cpu_eval_ns : u->cpu_ns;
		all->wall_ns += p->wall_ns;
		add(&all->waited_ns, p->waited_ns);
		add(&all->ran_ns, p->ran_ns);
		add(&all->busy_ns, p->busy_ns);
		add(&all->steal_ns, p->steal_ns);
		all->cpu_ns += p->cpu_ns;
		all->stopped_ns += p->stopped_ns;
		all->frozen_ns += p->frozen_ns;
		all->stops += p->stops;
		if (p->frozen_thread[0])
			memcpy(all->frozen_thread, p->frozen_thread, sizeof(all->frozen_thread));
		/* of several groups that bind, the one that did so most */
		if (g) {
			all->groups = 1;
			all->group[0].quota = g->quota;
			all->group[0].of_threads = g->of_threads;
			all->group[0].periods += g->periods;
			all->group[0].throttled_periods += g->throttled_periods;
			all->group[0].throttled_ns += g->throttled_ns;
		}
	}
	return any;
}

/* Of the waits, computations and barriers of one rank's evaluations. */
static double lost_in_evaluation(const struct result *r, uint32_t k, double *wall)
{
	double lost = 0;

	for (uint32_t i = 0; i < r->epochs_done; i++) {
		const struct rank_epoch *ep = &r->rank[k].epoch[i];

		if (!ep->has_eval)
			continue;
		*wall += clock_seconds(ep->eval.end_ns - ep->eval.begin_ns);
		for (uint64_t s = 0; s < ep->eval.steps; s++) {
			const struct step_times *t = &ep->eval.step[s];

			lost += clock_seconds(t->got_ns - t->ask_ns) * t->share[WAIT_NO_CPU] / 255;
			lost += clock_seconds(
				late_ns(t->late_compute, t->compute_end_ns - t->compute_begin_ns));
		}
	}
	return lost;
}

static void find_lost(const struct result *r, bool eval, struct cpu_loss *out)
{
	const struct decomposition *d = &r->judged.time;

	if (!eval) {
		double mean = d->wall_s > 0 ? d->mean_s[TIME_NO_CPU] / d->wall_s : 0;
		double path = d->critical_wall_s > 0
				      ? d->critical_s[TIME_NO_CPU] / d->critical_wall_s
				      : 0;

		/* one rank without a processor makes all others wait at the barrier */
		out->wall_s = d->wall_s;
		out->lost_share = fmax(mean, path);
		out->lost_s = out->lost_share * d->wall_s;
		return;
	}
	for (uint32_t k = 0; k < r->ranks; k++) {
		double wall = 0, lost = r->rank[k].lost ? 0 : lost_in_evaluation(r, k, &wall);

		if (wall > 0 && lost / wall >= out->lost_share) {
			out->wall_s = wall;
			out->lost_s = lost;
			out->lost_share = lost / wall;
		}
	}
}

/* Processes of the run on the host of `process`. */
static uint32_t processes_beside(const struct result *r, uint32_t process)
{
	uint32_t n = 0;

	for (uint32_t p = 0; r->process && p < r->processes; p++)
		n += r->process[p].node == r->process[process].node;
	return n ? n : 1;
}

static enum cpu_taker taker_of(const struct cpu_loss *l)
{
	double others = isnan(l->others_share) ? 0 : l->others_share;
	double own = isnan(l->own_share) ? 0 : l->own_share;
	bool quota = l->quota > 0 && l->throttled >= PERIODS_SHARE * l->periods;
	bool by_others = others >= OTHERS_SHARE && others >= OTHERS_TO_OWN * own &&
			 others >= OTHERS_TO_LOST * l->lost_share;

	if (l->stopped_s > 0 && l->stopped_s >= STOOD_SHARE * l->lost_s)
		return CPU_STOPPED;
	if (l->frozen_s > 0 && l->frozen_s >= STOOD_SHARE * l->lost_s)
		return CPU_FROZEN;
	/* a group whose quota is shared with other programs is throttled without being used up */
	if (quota &&
	    (l->quota_of_threads || !by_others || own * l->allowed >= QUOTA_USED * l->quota))
		return CPU_TAKEN_BY_QUOTA;
	if (by_others)
		return CPU_TAKEN_BY_OTHERS;
	return own >= others && own > 0 ? CPU_TAKEN_BY_SELF : CPU_TAKEN_BY_NOBODY;
}

bool cpu_loss_spoils(const struct cpu_loss *l)
{
	return l->taker != CPU_TAKEN_BY_SELF && l->lost_share >= CPU_LOSS_SPOILS;
}

void cpu_loss_of(const struct result *r, bool eval, struct cpu_loss *out)
{
	struct processors p;
	int64_t cpu_ns, others;
	double room;

	*out = (struct cpu_loss){.own_share = NAN, .others_share = NAN, .steal_share = NAN};
	if (!r->rank || !r->usage || !sum_up(r, eval, &p, &cpu_ns, &out->process))
		return;
	find_lost(r, eval, out);
	/* what stands still stops all ranks, whatever they were at */
	if (out->wall_s > 0 && clock_seconds(p.stopped_ns) > out->lost_s) {
		out->lost_s = fmin(clock_seconds(p.stopped_ns), out->wall_s);
		out->lost_share = out->lost_s / out->wall_s;
	}
	out->measured = true;
	out->known = p.waited_ns >= 0;
	out->allowed = p.allowed;
	out->online = p.online;
	out->nice = p.nice;
	out->idle_class = p.idle_class;
	out->stopped_s = clock_seconds(p.stopped_ns);
	out->frozen_s = clock_seconds(p.frozen_ns);
	out->stops = p.stops;
	memcpy(out->frozen_thread, p.frozen_thread, sizeof(out->frozen_thread));
	if (out->known) {
		out->waited_s = clock_seconds(p.waited_ns);
		out->wanted_share = p.waited_ns + p.ran_ns > 0
					    ? (double)p.waited_ns / (double)(p.waited_ns + p.ran_ns)
					    : 0;
	}
	out->processors = p.allowed;
	if (p.groups) {
		out->quota = p.group[0].quota;
		out->periods = (double)p.group[0].periods;
		out->throttled = (double)p.group[0].throttled_periods;
		out->quota_of_threads = p.group[0].of_threads;
		if (!out->quota_of_threads)
			out->processors = fmin(out->processors, out->quota);
	}
	/* processes of one run beside each other are no others: about as busy as this one */
	if (r->nodes < 2)
		p.cpu_ns = cpu_ns > p.cpu_ns ? cpu_ns : p.cpu_ns;
	else
		p.cpu_ns *= processes_beside(r, out->process);
	others = processors_of_others(&p, p.cpu_ns);
	room = (double)p.wall_ns * p.allowed;
	if (room > 0) {
		out->own_share = fmin(1, (double)p.cpu_ns / room);
		out->others_share = others < 0 ? NAN : fmin(1, (double)others / room);
		out->steal_share = p.steal_ns < 0 ? NAN : fmin(1, (double)p.steal_ns / room);
	}
	out->taker = taker_of(out);
}

bool cpu_loss_fact(const struct result *r, const struct cpu_loss *l, struct fact *out)
{
	bool named = r->nodes > 1 && r->process && l->process < r->processes;
	const char *host = named ? r->process[l->process].hostname : "";
	double online = l->allowed < l->online ? (double)l->online : (double)NAN;
	double nice = l->nice > 0 ? (double)l->nice : (double)NAN;

	switch (l->taker) {
	case CPU_STOPPED:
		*out = FACT(CPU_STOPPED, l->stopped_s, l->stops);
		break;
	case CPU_FROZEN:
		*out = fact_with(FACT(CPU_FROZEN, l->frozen_s), 0, l->frozen_thread);
		*out = fact_with(*out, 1, host);
		return true;
	case CPU_TAKEN_BY_QUOTA:
		*out = l->quota_of_threads
			       ? FACT(CPU_QUOTA_OF_THREADS, l->quota, l->throttled, l->periods)
			       : FACT(CPU_QUOTA, l->quota, l->throttled, l->periods);
		break;
	case CPU_TAKEN_BY_OTHERS:
		*out = l->idle_class
			       ? FACT(CPU_OTHERS_IDLE_CLASS, l->others_share, l->allowed, online)
			       : FACT(CPU_OTHERS, l->others_share, l->allowed, online, nice);
		break;
	case CPU_TAKEN_BY_SELF:
		*out = FACT(CPU_SELF, l->own_share, l->allowed, online);
		break;
	case CPU_TAKEN_BY_NOBODY:
		return false;
	}
	*out = fact_with(*out, 0, host);
	return true;
}
