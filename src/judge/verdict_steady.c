/* Whether the run was long enough to measure the storage, and not what was prefetched; and whether
 * it went on as it began. */
#include <math.h>
#include <stdio.h>

#include "base/str.h"

#include "judge/recorded.h"
#include "judge/verdict.h"
#include "judge/window.h"

static const double STEADY_GAP_POINTS = 2;    /* AU above whole-run AU that is still no trap */
static const double STEADY_START_POINTS = 5;  /* above it although the window is long enough */
static const double STEADY_RATE_SHARE = 0.05; /* the same two for samples/s */
static const double STEADY_START_SHARE = 0.10;

static const double STALL_WAITED_S = 0.25;      /* ranks waited in stalls: worth a warning */
static const double STALL_WAITED_SHARE = 0.005; /* and of the training time */
static const double STALL_HIDDEN_S = 0.5;       /* of a stall that prefetching hid */

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

/* What the measured window says beside what the whole run says. */
struct gap {
	double au;   /* points */
	double rate; /* share by which samples/s are above those of the whole run */
};

static struct gap gap_of(const struct run_metrics *m)
{
	struct gap g = {.au = m->train_au.mean - m->whole_au.mean};

	if (m->whole_throughput.mean > 0)
		g.rate = m->train_throughput.mean / m->whole_throughput.mean - 1;
	return g;
}

static void say_rates(struct verdict *v, const struct run_metrics *m)
{
	verdict_say(v,
		    " Throughput is %.1f samples/s in the measured steps, %.1f over the whole run.",
		    m->train_throughput.mean, m->whole_throughput.mean);
}

static void say_trap(struct verdict *v, const struct run_metrics *m, const struct gap *g,
		     const struct epoch_metrics *e, uint64_t ahead)
{
	v->level = VERDICT_FAIL;
	verdict_say(v, "Not steady: %llu steps per epoch, %llu measured, %llu batches prefetched. ",
		    (unsigned long long)e->steps, (unsigned long long)e->measured_steps,
		    (unsigned long long)ahead);
	if (g->au > STEADY_GAP_POINTS) {
		verdict_say(v, "AU %.1f %% describes the prefetch queue; whole-run AU is %.1f %%.",
			    m->train_au.mean, m->whole_au.mean);
		say_rates(v, m);
	} else {
		verdict_say(v,
			    "The throughput of %.1f samples/s describes the prefetch queue; over "
			    "the whole run it is %.1f (AU %.1f %%, whole-run AU %.1f %%).",
			    m->train_throughput.mean, m->whole_throughput.mean, m->train_au.mean,
			    m->whole_au.mean);
	}
	verdict_say(v, " At least %llu steps per epoch are needed.",
		    (unsigned long long)(10 * ahead + (e->steps - e->measured_steps)));
}

/* Of all steps but the first of an epoch, above those of all: what a slow start costs. The time of
 * checkpoints is in no window, and what a window was chosen for is another question. */
static struct gap start_gap(const struct result *r, const struct run_metrics *m)
{
	const struct decomposition *d = &r->judged.time;
	double share = d->wall_s > 0 ? d->mean_s[TIME_CHECKPOINT] / d->wall_s : 0;
	struct window_view w;
	struct gap g = {0};

	window_look(r, m, false, &w);
	if (!w.known || share >= 1)
		return gap_of(m);
	g.au = w.default_au - m->whole_au.mean / (1 - share);
	if (m->whole_throughput.mean > 0)
		g.rate = w.default_rate / (m->whole_throughput.mean / (1 - share)) - 1;
	return g;
}

static void say_checkpoints(struct verdict *v, const struct result *r)
{
	const struct decomposition *d = &r->judged.time;
	double share = d->wall_s > 0 ? d->mean_s[TIME_CHECKPOINT] / d->wall_s : 0;

	if (share >= 0.01)
		verdict_say(v, " AU leaves out checkpoints, which take %.1f %% of the time.",
			    100 * share);
}

static void judge_window(struct verdict *v, const struct result *r, const struct run_metrics *m,
			 const struct epoch_metrics *e, uint64_t ahead)
{
	double steps = e->measured_steps ? (double)e->measured_steps : 1;
	double from_queue = fmin(1.0, (double)ahead / steps);
	struct gap g = gap_of(m), start = start_gap(r, m);
	bool apart = g.au > STEADY_GAP_POINTS || g.rate > STEADY_RATE_SHARE;

	if (apart && from_queue >= 0.5) {
		say_trap(v, m, &g, e, ahead);
		return;
	}
	v->level = VERDICT_WARN;
	if (apart && from_queue > 0.1)
		verdict_say(v,
			    "Barely steady: %.0f %% of the measured steps (%llu per epoch) can be "
			    "served by the %llu prefetched batches. AU is %.1f %%, whole-run AU "
			    "%.1f %%.",
			    100 * from_queue, (unsigned long long)e->measured_steps,
			    (unsigned long long)ahead, m->train_au.mean, m->whole_au.mean);
	else if (start.au > STEADY_START_POINTS || start.rate > STEADY_START_SHARE)
		verdict_say(v,
			    "Steady after a slow start: AU %.1f %% leaves out the first steps of "
			    "each epoch; whole-run AU is %.1f %%.",
			    m->train_au.mean, m->whole_au.mean);
	else if (from_queue >= 1)
		verdict_say(v,
			    "Too few steps to be certain: %llu measured per epoch, %llu batches "
			    "prefetched. However, AU (%.1f %%) and whole-run AU (%.1f %%) agree.",
			    (unsigned long long)e->measured_steps, (unsigned long long)ahead,
			    m->train_au.mean, m->whole_au.mean);
	else
		v->level = VERDICT_PASS;
	if (v->level == VERDICT_PASS)
		verdict_say(v,
			    "Steady: %llu steps measured per epoch, %llu batches prefetched; AU is "
			    "%.1f %%, whole-run AU %.1f %%.",
			    (unsigned long long)e->measured_steps, (unsigned long long)ahead,
			    m->train_au.mean, m->whole_au.mean);
	say_rates(v, m);
	say_checkpoints(v, r);
}

/* ---- change ---- */

static double target_of(const struct result *r)
{
	return 100 * r->workload->metric.au;
}

/* " on rank 3", when only its reading changed. */
static const char *whose(const struct steadiness *c, char *out, size_t size)
{
	out[0] = '\0';
	if (c->rank != UINT32_MAX)
		snprintf(out, size, " on rank %u alone", c->rank);
	return out;
}

static void say_rate_change(struct verdict *v, const struct result *r, const struct run_metrics *m,
			    const struct steadiness *c)
{
	bool fell = c->last_rate < c->before_rate;
	const char *went = fell ? "fell" : "rose";
	char bytes[32], rank[32];

	str_bytes(c->last_payload, bytes, sizeof(bytes));
	if (c->change == CHANGE_ALTERNATE) {
		verdict_say(v,
			    "The rate alternates between %.4g and %.4g samples/s: %u slow phases "
			    "of %.2g s on average, one every %.2g s.",
			    c->before_rate, c->last_rate, c->slow_phases, c->slow_s, c->period_s);
		return;
	}
	if (c->change == CHANGE_TREND)
		verdict_say(v,
			    "Throughput %s during the whole run: %.4g samples/s in the last "
			    "quarter of the time (from %.3g s), %.4g before",
			    went, c->last_rate, c->at_s, c->before_rate);
	else
		verdict_say(v,
			    "Throughput %s at %.3g s (epoch %u, step %llu) from %.4g to %.4g "
			    "samples/s",
			    went, c->at_s, c->epoch, (unsigned long long)c->step, c->before_rate,
			    c->last_rate);
	verdict_say(v, "%s, because of %s%s.", fell ? "" : " (less time)", time_part_names[c->part],
		    whose(c, rank, sizeof(rank)));
	verdict_say(v,
		    " The lasting rate is %.4g samples/s (%s/s). AU of this last part (%.0f %% of "
		    "the time) is %.1f %%; before it %.1f %%; of the whole run %.1f %%.",
		    c->last_rate, bytes, 100 * c->last_share, c->last_au, c->before_au,
		    c->whole_au);
	if (fell && m->train_au.count && m->train_au.mean >= target_of(r) &&
	    c->last_au < target_of(r)) {
		verdict_worsen(v, VERDICT_FAIL);
		verdict_say(v, " The target of %.4g %% (metric.au) is met only by the faster part.",
			    target_of(r));
	}
}

static void say_hidden_change(struct verdict *v, const struct steadiness *c)
{
	char rank[32];

	whose(c, rank, sizeof(rank));
	if (c->change == CHANGE_TREND)
		verdict_say(v, "Reading became slower during the whole run%s", rank);
	else
		verdict_say(v, "Reading became slower at %.3g s (epoch %u, step %llu)%s", c->at_s,
			    c->epoch, (unsigned long long)c->step, rank);
	verdict_say(v,
		    ": a batch took %.3g ms, then %.3g ms. Computation hides it so far: the "
		    "workers read for %.0f %% of the time, and AU does not show it.",
		    1e3 * c->before_read_s, 1e3 * c->last_read_s, 100 * fmin(1, c->read_busy));
	if (c->kept_up_s > 0)
		verdict_say(v,
			    " If this continues, the workers no longer keep up after another "
			    "%.3g s.",
			    c->kept_up_s);
}

static void say_stalls(struct verdict *v, const struct steadiness *c, double wall_s)
{
	const struct stall *s = &c->stall[0];

	verdict_say(v, " %s stood still for %.3g s at %.3g s (epoch %u, step %llu, rank %u)",
		    s->process ? "All threads of this program" : "Reading", s->length_s, s->at_s,
		    s->epoch, (unsigned long long)s->step, s->rank);
	if (s->waited_s < 0.05 * s->length_s)
		verdict_say(v, ", hidden by prefetching");
	else
		verdict_say(v, "; a rank waited for %.3g s of it", s->waited_s);
	if (c->stalls > 1)
		verdict_say(v, ". %u such stalls took %.3g s", c->stalls, c->stalled_s);
	verdict_say(v, ".");
	if (c->stalled_s > 0 && wall_s > c->stalled_s && c->whole_au >= 1)
		verdict_say(v, " Without %s, whole-run AU is %.1f %%.",
			    c->stalls > 1 ? "them" : "it",
			    c->whole_au * wall_s / (wall_s - c->stalled_s));
}

static bool stalls_matter(const struct steadiness *c, double wall_s)
{
	return c->stalls > 0 &&
	       (c->stalled_s >= fmax(STALL_WAITED_S, STALL_WAITED_SHARE * wall_s) ||
		c->stall[0].length_s >= STALL_HIDDEN_S);
}

static void judge_change(struct verdict *v, const struct result *r, const struct run_metrics *m)
{
	const struct steadiness *c = &r->judged.steady;
	double wall_s = r->judged.time.wall_s;
	bool long_enough = v->level == VERDICT_PASS;

	if (!c->changed && !c->hidden && !stalls_matter(c, wall_s))
		return;
	verdict_worsen(v, VERDICT_WARN);
	/* of a window that is long enough there is nothing else to say */
	if (long_enough)
		v->text[0] = '\0';
	if (c->changed || c->hidden) {
		verdict_say(v, "%sNot steady: ", v->text[0] ? " " : "");
		if (c->changed)
			say_rate_change(v, r, m, c);
		else
			say_hidden_change(v, c);
	}
	if (!stalls_matter(c, wall_s))
		return;
	if (v->text[0] == '\0')
		verdict_say(v, "Steady but for heavy waits:");
	say_stalls(v, c, wall_s);
}

static void judge_steady(const struct result *r, const struct run_metrics *m, struct verdict *v)
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
			    e->why, m->whole_au.mean);
		return;
	}
	judge_window(v, r, m, e, r->rank ? r->rank[result_present_rank(r)].prefetch_batches : 0);
	judge_change(v, r, m);
}

extern const struct verdict_ops verdict_steady;
const struct verdict_ops verdict_steady = {
	.name = "steady",
	.help = "Was the run long enough to measure the storage, and did it go on as it began?",
	.needs = VERDICT_OF_TRAINING,
	.takes = TAKES_LASTING,
	.judge = judge_steady,
	.at_least = recorded_steady,
};
