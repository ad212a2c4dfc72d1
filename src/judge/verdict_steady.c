/* Whether the run was long enough to measure the storage, and not what was prefetched; and whether
 * it went on as it began. */
#include <math.h>

#include "judge/run_length.h"
#include "judge/change_facts.h"
#include "judge/window.h"

static const double STEADY_GAP_POINTS = 2;    /* AU above whole-run AU that is still no trap */
static const double STEADY_START_POINTS = 5;  /* above it although the window is long enough */
static const double STEADY_RATE_SHARE = 0.05; /* the same two for samples/s */
static const double STEADY_START_SHARE = 0.10;
static const double CHECKPOINTS_SAID = 0.01; /* of the time */

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

static struct fact rates(const struct run_metrics *m)
{
	return FACT(STEADY_RATES, m->train_throughput.mean, m->whole.throughput);
}

static void judge_trap(struct verdict *v, const struct run_metrics *m, const struct gap *g,
		       const struct epoch_metrics *e, double ahead)
{
	double steps = (double)e->steps, measured = (double)e->measured_steps;

	if (g->au > STEADY_GAP_POINTS) {
		verdict_found(v, VERDICT_FAIL,
			      FACT(STEADY_QUEUE_AU, steps, measured, ahead, m->whole.au,
				   m->train_au.mean));
		verdict_found(v, VERDICT_FAIL, rates(m));
	} else {
		verdict_found(v, VERDICT_FAIL,
			      FACT(STEADY_QUEUE_RATE, steps, measured, ahead,
				   m->train_throughput.mean, m->whole.throughput, m->whole.au,
				   m->train_au.mean));
	}
	verdict_found(v, VERDICT_FAIL,
		      FACT(STEADY_NEEDED, (double)run_length_needed((uint64_t)ahead,
								    e->steps - e->measured_steps)));
}

/* Of all steps but the first of an epoch, above those of all: what a slow start costs. The time of
 * checkpoints is in no window, and what a window was chosen for is another question. */
static struct gap start_gap(const struct result *r, const struct run_metrics *m)
{
	struct window_view w;

	window_look(r, m, false, &w);
	return w.known ? (struct gap){.au = w.start_points, .rate = w.start_share} : gap_of(m);
}

static void judge_window(struct verdict *v, const struct result *r, const struct run_metrics *m,
			 const struct epoch_metrics *e, uint64_t ahead)
{
	double measured = (double)e->measured_steps, whole = m->whole.au, dlio = m->train_au.mean;
	double from_queue = run_length_queue_share(ahead, e->measured_steps), queue = (double)ahead;
	const struct decomposition *d = &r->judged.time;
	double saving = d->wall_s > 0 ? d->mean_s[TIME_CHECKPOINT] / d->wall_s : 0;
	struct gap g = gap_of(m), start = start_gap(r, m);
	bool apart = g.au > STEADY_GAP_POINTS || g.rate > STEADY_RATE_SHARE;

	if (apart && from_queue >= RUN_LENGTH_QUEUE_MOST) {
		judge_trap(v, m, &g, e, queue);
		return;
	}
	if (apart && from_queue > RUN_LENGTH_QUEUE_NOTICED)
		verdict_found(v, VERDICT_WARN,
			      FACT(STEADY_BARELY, from_queue, measured, queue,
				   computes(m) ? whole : NAN, dlio));
	else if (start.au > STEADY_START_POINTS || start.rate > STEADY_START_SHARE)
		verdict_found(v, VERDICT_WARN,
			      computes(m) ? FACT(STEADY_SLOW_START, whole, dlio)
					  : FACT(STEADY_SLOW_START_RATE));
	else if (from_queue >= 1)
		verdict_found(v, VERDICT_WARN, FACT(STEADY_FEW, measured, queue, whole, dlio));
	else
		verdict_found(v, VERDICT_PASS, FACT(STEADY_STEADY, measured, queue, whole, dlio));
	verdict_found(v, VERDICT_PASS, rates(m));
	if (saving >= CHECKPOINTS_SAID)
		verdict_found(v, VERDICT_PASS, FACT(STEADY_CHECKPOINTS, 100 * saving));
}

static void judge_plainly(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	const struct epoch_metrics *e = shortest_epoch(m);

	if (!e) {
		verdict_found(v, VERDICT_UNKNOWN, FACT(STEADY_NO_EPOCH));
		return;
	}
	if (!e->train_valid) {
		verdict_found(v, VERDICT_FAIL,
			      fact_with(FACT(STEADY_NO_AU, m->whole.au), 0, e->why));
		return;
	}
	judge_window(v, r, m, e, r->rank ? r->rank[result_present_rank(r)].prefetch_batches : 0);
	judge_change(v, r, false, &m->train_au);
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
		verdict_found(v, VERDICT_UNKNOWN, fact_with(FACT(STEADY_NOT_JUDGED), 0, e.text));
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
