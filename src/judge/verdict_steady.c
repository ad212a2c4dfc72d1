/* Whether the run was long enough to measure the storage, and not what was prefetched; and whether
 * it went on as it began. */
#include <math.h>

#include "judge/run_length.h"
#include "judge/say_change.h"
#include "judge/window.h"

static const double STEADY_GAP_POINTS = 2;    /* AU above whole-run AU that is still no trap */
static const double STEADY_START_POINTS = 5;  /* above it although the window is long enough */
static const double STEADY_RATE_SHARE = 0.05; /* the same two for samples/s */
static const double STEADY_START_SHARE = 0.10;

static const struct epoch_metrics *shortest_epoch(const struct run_metrics *m)
{
	const struct epoch_metrics *least = NULL;

	for (uint32_t i = 0; i < m->epochs; i++) {
		const struct epoch_metrics *e = &m->epoch[i];

		if (e->steps == 0)
			continue;
		if (!e->train_valid)
			return e;
		if (!least || e->measured_steps < least->measured_steps)
			least = e;
	}
	return least;
}

/* What the measured window says beside what the whole run says. Both with the lateness of
 * computation, which no window leaves out. */
struct gap {
	double au;   /* points */
	double rate; /* share by which samples/s are above those of the whole run */
};

static struct gap gap_of(const struct run_metrics *m)
{
	struct gap g = {.au = m->train_au.mean - m->whole_au.mean - m->late_percent};

	if (m->whole_throughput.mean > 0)
		g.rate = m->train_throughput.mean / m->whole_throughput.mean - 1;
	return g;
}

/* Without any computation there is no AU to speak of. */
static bool computes(const struct run_metrics *m)
{
	return m->train_au.mean >= 0.05 || m->whole_au.mean >= 0.05;
}

static void say_rates(struct verdict *v, const struct run_metrics *m)
{
	verdict_say(v,
		    " Throughput is %.1f samples/s in the measured steps, %.1f over the whole run.",
		    m->train_throughput.mean, m->whole.throughput);
}

static void say_trap(struct verdict *v, const struct run_metrics *m, const struct gap *g,
		     const struct epoch_metrics *e, uint64_t ahead)
{
	v->level = VERDICT_FAIL;
	verdict_say(v, "Not steady: %llu steps per epoch, %llu measured, %llu batches prefetched. ",
		    (unsigned long long)e->steps, (unsigned long long)e->measured_steps,
		    (unsigned long long)ahead);
	if (g->au > STEADY_GAP_POINTS) {
		verdict_say(v,
			    "Whole-run AU is %.1f %%; AU by DLIO's definition, %.1f %%, describes "
			    "the prefetch queue.",
			    m->whole.au, m->train_au.mean);
		say_rates(v, m);
	} else {
		verdict_say(v,
			    "The throughput of %.1f samples/s describes the prefetch queue; over "
			    "the whole run it is %.1f (whole-run AU %.1f %%, %.1f %% by DLIO's "
			    "definition).",
			    m->train_throughput.mean, m->whole.throughput, m->whole.au,
			    m->train_au.mean);
	}
	verdict_say(v, " At least %llu steps per epoch are needed.",
		    (unsigned long long)run_length_needed(ahead, e->steps - e->measured_steps));
}

/* Of all steps but the first of an epoch, above those of all: what a slow start costs. The time of
 * checkpoints is in no window, and what a window was chosen for is another question. */
static struct gap start_gap(const struct result *r, const struct run_metrics *m)
{
	struct window_view w;

	window_look(r, m, false, &w);
	return w.known ? (struct gap){.au = w.start_points, .rate = w.start_share} : gap_of(m);
}

static void say_checkpoints(struct verdict *v, const struct result *r)
{
	const struct decomposition *d = &r->judged.time;
	double share = d->wall_s > 0 ? d->mean_s[TIME_CHECKPOINT] / d->wall_s : 0;

	if (share >= 0.01)
		verdict_say(v,
			    " AU by DLIO's definition leaves out checkpoints, which take %.1f %% "
			    "of the time.",
			    100 * share);
}

static void judge_window(struct verdict *v, const struct result *r, const struct run_metrics *m,
			 const struct epoch_metrics *e, uint64_t ahead)
{
	double from_queue = run_length_queue_share(ahead, e->measured_steps);
	struct gap g = gap_of(m), start = start_gap(r, m);
	bool apart = g.au > STEADY_GAP_POINTS || g.rate > STEADY_RATE_SHARE;

	if (apart && from_queue >= RUN_LENGTH_QUEUE_MOST) {
		say_trap(v, m, &g, e, ahead);
		return;
	}
	v->level = VERDICT_WARN;
	if (apart && from_queue > RUN_LENGTH_QUEUE_NOTICED) {
		verdict_say(v,
			    "Barely steady: %.0f %% of the measured steps (%llu per epoch) can be "
			    "served by the %llu prefetched batches.",
			    100 * from_queue, (unsigned long long)e->measured_steps,
			    (unsigned long long)ahead);
		if (computes(m))
			verdict_say(v, " Whole-run AU is %.1f %%, %.1f %% by DLIO's definition.",
				    m->whole.au, m->train_au.mean);
	} else if (start.au > STEADY_START_POINTS || start.rate > STEADY_START_SHARE) {
		verdict_say(v, "Steady after a slow start: ");
		if (computes(m))
			verdict_say(v,
				    "whole-run AU is %.1f %%; AU by DLIO's definition, %.1f "
				    "%%, leaves out the first steps of each epoch.",
				    m->whole.au, m->train_au.mean);
		else
			verdict_say(v, "the first steps of each epoch are left out.");
	} else if (from_queue >= 1) {
		verdict_say(v,
			    "Too few steps to be certain: %llu measured per epoch, %llu batches "
			    "prefetched. However, whole-run AU (%.1f %%) and AU by DLIO's "
			    "definition (%.1f %%) agree.",
			    (unsigned long long)e->measured_steps, (unsigned long long)ahead,
			    m->whole.au, m->train_au.mean);
	} else {
		v->level = VERDICT_PASS;
	}
	if (v->level == VERDICT_PASS)
		verdict_say(v,
			    "Steady: %llu steps measured per epoch, %llu batches "
			    "prefetched; whole-run AU is %.1f %%, %.1f %% by DLIO's definition.",
			    (unsigned long long)e->measured_steps, (unsigned long long)ahead,
			    m->whole.au, m->train_au.mean);
	say_rates(v, m);
	say_checkpoints(v, r);
}

static void judge_plainly(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	const struct epoch_metrics *e = shortest_epoch(m);

	if (!e) {
		v->level = VERDICT_UNKNOWN;
		verdict_say(v, "No training epoch was completed, so there is nothing to judge.");
		return;
	}
	if (!e->train_valid) {
		v->level = VERDICT_FAIL;
		verdict_say(v, "Not steady: there is no AU, because %s. Whole-run AU is %.1f %%.",
			    e->why, m->whole.au);
		return;
	}
	judge_window(v, r, m, e, r->rank ? r->rank[result_present_rank(r)].prefetch_batches : 0);
	say_change(v, r, false, &m->train_au);
}

/* How long a run was does not depend on how its numbers are counted: with compat.dlio throughput
 * has all steps but two of each block, and AU lacks the first of each. */
static void judge_steady(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	struct workload w = *r->workload;
	struct result plain = *r;
	struct run_metrics own;
	struct err e;

	if (!w.compat.dlio) {
		judge_plainly(r, m, v);
		return;
	}
	w.compat.dlio = false;
	plain.workload = &w;
	if (metrics_compute(&own, &plain, &e) < 0) {
		v->level = VERDICT_UNKNOWN;
		verdict_say(v, "Not judged: %s.", e.text);
		return;
	}
	judge_plainly(&plain, &own, v);
	metrics_release(&own);
}

extern const struct verdict_ops verdict_steady;
const struct verdict_ops verdict_steady = {
	.name = "steady",
	.help = "Was the run long enough to measure the storage, and did it go on as it "
		"began?",
	.about = ABOUT_LENGTH,
	.needs = VERDICT_OF_TRAINING,
	.takes = TAKES_LASTING,
	.judge = judge_steady,
};
