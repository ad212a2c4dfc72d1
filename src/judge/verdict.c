/* Can the numbers be trusted? Each check says so in words, with the figures it judged by. The
 * thresholds and why they are what they are: docs/metrics.md. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "judge/verdict_parts.h"

static const double STEADY_GAP_POINTS = 2;    /* AU above whole-run AU that is still no trap */
static const double STEADY_START_POINTS = 5;  /* above it although the window is long enough */
static const double STEADY_RATE_SHARE = 0.05; /* the same two for samples/s */
static const double STEADY_START_SHARE = 0.10;
static const double RANK_SPREAD_POINTS = 5;
static const double EPOCH_SPREAD_SHARE = 0.10;
static const double DROPPED_SHARE = 0.01;
static const double CPU_BUSY_SHARE = 0.90;
static const double WORKER_BUSY_SHARE = 0.90;
static const double WORKER_CPU_SHARE = 0.80;
static const double MEMORY_SHARE = 0.90;
static const double OVERSHOOT_SHARE = 0.02;

static void check_complete(struct result *r)
{
	struct verdict *v;

	if (r->status == RUN_COMPLETE)
		return;
	v = add(r, "complete");
	v->level = VERDICT_FAIL;
	say(v, "The run %s", r->status == RUN_INTERRUPTED ? "was interrupted" : "failed");
	if (r->checkpointed && !r->trained)
		say(v, "; only whole checkpoints count below.");
	else
		say(v, " after %u of %u epochs; only finished epochs count below.", r->epochs_done,
		    r->epochs_planned);
	if (r->reason.text[0])
		say(v, " Reason: %.400s", r->reason.text);
}

/* ---- steady ---- */

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
	say(v, " Throughput is %.1f samples/s in the measured steps, %.1f over the whole run.",
	    m->train_throughput.mean, m->whole_throughput.mean);
}

static void say_trap(struct verdict *v, const struct run_metrics *m, const struct gap *g,
		     const struct epoch_metrics *e, uint64_t ahead)
{
	v->level = VERDICT_FAIL;
	say(v, "Not steady: %llu steps an epoch, %llu of them measured, %llu batches prefetched. ",
	    (unsigned long long)e->steps, (unsigned long long)e->measured_steps,
	    (unsigned long long)ahead);
	if (g->au > STEADY_GAP_POINTS) {
		say(v, "AU %.1f %% describes the prefetch queue; by wall time it is %.1f %%.",
		    m->train_au.mean, m->whole_au.mean);
		say_rates(v, m);
	} else {
		say(v,
		    "The throughput of %.1f samples/s describes the prefetch queue; over the whole "
		    "run it is %.1f (AU %.1f %%, by wall time %.1f %%).",
		    m->train_throughput.mean, m->whole_throughput.mean, m->train_au.mean,
		    m->whole_au.mean);
	}
	say(v, " At least %llu steps an epoch are needed.",
	    (unsigned long long)(10 * ahead + (e->steps - e->measured_steps)));
}

static void judge_steady(struct verdict *v, const struct run_metrics *m,
			 const struct epoch_metrics *e, uint64_t ahead)
{
	double steps = e->measured_steps ? (double)e->measured_steps : 1;
	double from_queue = fmin(1.0, (double)ahead / steps);
	struct gap g = gap_of(m);
	bool apart = g.au > STEADY_GAP_POINTS || g.rate > STEADY_RATE_SHARE;

	if (apart && from_queue >= 0.5) {
		say_trap(v, m, &g, e, ahead);
		return;
	}
	v->level = VERDICT_WARN;
	if (apart && from_queue > 0.1)
		say(v,
		    "Barely steady: %.0f %% of the measured steps (%llu an epoch) can come from "
		    "the %llu batches prefetched. AU is %.1f %%, by wall time %.1f %%.",
		    100 * from_queue, (unsigned long long)e->measured_steps,
		    (unsigned long long)ahead, m->train_au.mean, m->whole_au.mean);
	else if (g.au > STEADY_START_POINTS || g.rate > STEADY_START_SHARE)
		say(v,
		    "Steady after a slow start: AU %.1f %% leaves out the first steps of an epoch; "
		    "by wall time it is %.1f %%.",
		    m->train_au.mean, m->whole_au.mean);
	else if (from_queue >= 1)
		say(v,
		    "Too few steps to be sure: %llu measured an epoch, %llu batches prefetched. "
		    "But AU %.1f %% and AU by wall time %.1f %% agree.",
		    (unsigned long long)e->measured_steps, (unsigned long long)ahead,
		    m->train_au.mean, m->whole_au.mean);
	else
		v->level = VERDICT_PASS;
	if (v->level == VERDICT_PASS)
		say(v,
		    "Steady: %llu steps an epoch measured, %llu batches prefetched; AU is %.1f %%, "
		    "by wall time %.1f %%.",
		    (unsigned long long)e->measured_steps, (unsigned long long)ahead,
		    m->train_au.mean, m->whole_au.mean);
	say_rates(v, m);
}

static void check_steady(struct result *r, const struct run_metrics *m)
{
	struct verdict *v = add(r, "steady");
	const struct epoch_metrics *e = shortest_epoch(m);

	if (!e) {
		v->level = VERDICT_UNKNOWN;
		say(v, "No training epoch was finished: there is nothing to judge.");
		return;
	}
	if (!e->train_valid) {
		v->level = VERDICT_FAIL;
		say(v, "Not steady: AU does not exist, because %s. By wall time AU is %.1f %%.",
		    e->why, m->whole_au.mean);
		return;
	}
	judge_steady(v, m, e, r->rank ? r->rank[result_present_rank(r)].prefetch_batches : 0);
}

/* ---- whole-run ---- */

static void check_whole(struct result *r, const struct run_metrics *m)
{
	struct verdict *v = add(r, "whole-run");
	double low = 100, high = 0, gap = 0, first_low = 0, first_high = 0;
	double shortest = INFINITY, longest = 0;
	uint32_t shortest_at = 0, longest_at = 0;

	if (m->whole_au.count == 0) {
		v->level = VERDICT_UNKNOWN;
		say(v, "No training epoch was finished.");
		return;
	}
	for (uint32_t i = 0; i < m->epochs; i++) {
		const struct epoch_metrics *e = &m->epoch[i];

		if (e->steps == 0)
			continue;
		low = fmin(low, e->whole_au_min);
		high = fmax(high, e->whole_au_max);
		if (e->train_valid && e->train_au_max - e->train_au_min > gap) {
			gap = e->train_au_max - e->train_au_min;
			first_low = e->train_au_min;
			first_high = e->train_au_max;
		}
		if (e->wall_s / (double)e->steps < shortest) {
			shortest = e->wall_s / (double)e->steps;
			shortest_at = i;
		}
		if (e->wall_s / (double)e->steps > longest) {
			longest = e->wall_s / (double)e->steps;
			longest_at = i;
		}
	}
	say(v,
	    "Compute takes %.1f %% of the wall time of training, nothing left out (ranks %.1f to "
	    "%.1f %%, epochs %.1f to %.1f %%).",
	    m->whole_au.mean, low, high, m->whole_au.min, m->whole_au.max);
	if (gap > RANK_SPREAD_POINTS || high - low > RANK_SPREAD_POINTS)
		worsen(v, VERDICT_WARN);
	if (gap > RANK_SPREAD_POINTS)
		say(v,
		    " The mean hides ranks: in one epoch their AU lies between %.1f and %.1f %%.",
		    first_low, first_high);
	if (longest > shortest * (1 + EPOCH_SPREAD_SHARE)) {
		worsen(v, VERDICT_WARN);
		say(v, " Epochs differ: a step took %.3g s in epoch %u and %.3g s in epoch %u.",
		    longest, longest_at + 1, shortest, shortest_at + 1);
	}
}

/* ---- the rest ---- */

static void close_sentence(struct verdict *v)
{
	size_t n = strlen(v->text);

	if (n && v->text[n - 1] != '.')
		say(v, ".");
}

static void check_dataset(struct result *r)
{
	struct verdict *v = add(r, "dataset");

	if (!r->presence.note[0]) {
		v->level = VERDICT_UNKNOWN;
		say(v, "The dataset was not checked against the workload.");
		return;
	}
	say(v, "%c%s", toupper((unsigned char)r->presence.note[0]), r->presence.note + 1);
	close_sentence(v);
	if (r->presence.how == PRESENCE_SIZES && r->presence.sizes_checked == 0)
		v->level = VERDICT_WARN;
}

static uint64_t train_samples(const struct workload *w)
{
	return (uint64_t)w->dataset.num_files_train * (uint64_t)w->dataset.num_samples_per_file;
}

static void check_config(struct result *r)
{
	const struct str_list *warnings = &r->workload->warnings;
	struct verdict *v = add(r, "config");
	uint64_t samples = train_samples(r->workload);
	double share = samples ? (double)r->dropped_samples / (double)samples : 0;

	if (r->dropped_samples)
		say(v,
		    "%llu of %llu samples (%.2g %%) fill no whole step and are left out of each "
		    "epoch.",
		    (unsigned long long)r->dropped_samples, (unsigned long long)samples,
		    100 * share);
	if (share > DROPPED_SHARE)
		worsen(v, VERDICT_WARN);
	if (warnings->n == 0) {
		say(v, "%sEvery key of the workload was understood.", v->text[0] ? " " : "");
		return;
	}
	worsen(v, VERDICT_WARN);
	say(v, "%s%zu warning%s: ", v->text[0] ? " " : "", warnings->n,
	    warnings->n == 1 ? "" : "s");
	for (size_t i = 0; i < warnings->n && i < 3; i++)
		say(v, "%s%.150s", i ? "; " : "", warnings->v[i]);
	say(v, "%s", warnings->n > 3 ? "; and more" : ".");
}

static void check_order(struct result *r)
{
	struct verdict *v = add(r, "order");

	if (r->epochs_done == 0 || !r->usage) {
		v->level = VERDICT_UNKNOWN;
		say(v, "No epoch was finished, so that none was proved complete.");
		return;
	}
	for (uint32_t i = 0; i < r->epochs_done; i++) {
		if (r->usage[i].order_proved)
			continue;
		v->level = VERDICT_FAIL;
		say(v, "Epoch %u is not proved complete: %s", i + 1,
		    r->usage[i].order_note[0] ? r->usage[i].order_note : "no proof was taken");
		return;
	}
	for (uint32_t i = 0; i < r->epochs_done; i++) {
		if (r->usage[i].eval_order_proved || !r->usage[i].eval_order_note[0])
			continue;
		v->level = VERDICT_FAIL;
		say(v, "The evaluation of epoch %u is not proved complete: %s", i + 1,
		    r->usage[i].eval_order_note);
		return;
	}
	if (r->epochs_done == 1)
		say(v, "Proved for the epoch: ");
	else
		say(v, "Proved for each of %u epochs; the first: ", r->epochs_done);
	say(v, "%s", r->usage[0].order_note);
	close_sentence(v);
}

/* The reader threads have no time left, and spend it on the CPU. A fast store cannot help them. */
static void check_workers(struct verdict *v, const struct result *r)
{
	double wall = 0, cpu = 0, busy = 0, workers = 0, share;

	for (uint32_t i = 0; r->usage && i < r->epochs_begun; i++) {
		wall += (double)r->usage[i].wall_ns;
		cpu += (double)r->usage[i].cpu_ns;
	}
	for (uint32_t k = 0; r->rank && k < r->ranks; k++) {
		if (r->rank[k].lost)
			continue;
		workers += r->rank[k].workers ? r->rank[k].workers : 1;
		busy += (double)r->rank[k].train_busy_ns;
	}
	if (!(wall > 0) || !(busy > 0))
		return;
	share = busy / (wall * workers);
	if (share <= WORKER_BUSY_SHARE || cpu / busy <= WORKER_CPU_SHARE)
		return;
	worsen(v, VERDICT_WARN);
	say(v,
	    " The workers (%.0f) were reading %.0f %% of the time, with CPU time for %.0f %% of "
	    "it: "
	    "they spend their time computing (CRC, decoding, copying), not waiting for the store.",
	    workers, fmin(100, 100 * share), fmin(100, 100 * cpu / busy));
}

static void check_client(struct result *r)
{
	struct verdict *v = add(r, "client");
	const struct host_facts *h = &r->host;
	double cpus = result_cpus(r);
	double busy = 0, memory = result_memory_gib(r) * 1073741824.0;
	bool known = false;
	char a[32], b[32];

	for (uint32_t i = 0; r->usage && i < r->epochs_done; i++) {
		const struct epoch_usage *u = &r->usage[i];

		if (u->wall_ns <= 0 || !(cpus > 0))
			continue;
		known = true;
		busy = fmax(busy, (double)u->cpu_ns / (double)u->wall_ns / cpus);
	}
	if (known) {
		say(v, "%.0f %% of %.3g cores busy in the busiest epoch", 100 * busy, cpus);
		if (r->nodes > 1)
			say(v, " of %u hosts", r->nodes);
		else if (cpus < h->cpu_count)
			say(v, " (this process may not use all %d)", h->cpu_count);
	} else {
		v->level = VERDICT_UNKNOWN;
		say(v, "No epoch was finished, so that CPU use is not known");
	}
	say(v, "; at most %s of %s memory used.", bytes_text((double)r->peak_rss_bytes, a),
	    bytes_text(memory, b));
	if (busy > CPU_BUSY_SHARE) {
		worsen(v, VERDICT_WARN);
		say(v, " This machine's CPU, not the storage, may be the limit.");
	}
	check_workers(v, r);
	if (memory > 0 && (double)r->peak_rss_bytes > MEMORY_SHARE * memory) {
		worsen(v, VERDICT_WARN);
		say(v, " Memory was nearly full: swapping may have been measured.");
	}
}

static void check_compute(struct result *r, const struct run_metrics *m)
{
	double nominal = r->workload->train.computation_time.a, share;
	struct verdict *v;

	if (!m->overshoot_known)
		return;
	v = add(r, "compute");
	share = m->compute_overshoot_mean_s / nominal;
	say(v,
	    "The emulated computation of %.6g s took %.3f ms longer on average (%.2f %%), at most "
	    "%.3f ms.",
	    nominal, 1e3 * m->compute_overshoot_mean_s, 100 * share,
	    1e3 * m->compute_overshoot_max_s);
	if (fabs(share) > OVERSHOOT_SHARE) {
		v->level = VERDICT_WARN;
		say(v, " AU is too high by up to that share of itself: this machine wakes threads "
		       "late.");
	}
}

static void check_evaluation(struct result *r, const struct run_metrics *m)
{
	struct verdict *v;

	if (!r->evaluated)
		return;
	v = add(r, "evaluation");
	if (r->eval_steps == 0) {
		v->level = VERDICT_WARN;
		say(v,
		    "Evaluation is on, but %lld evaluation files fill no step: nothing was "
		    "evaluated.",
		    (long long)r->workload->dataset.num_files_eval);
		return;
	}
	for (uint32_t i = 0; i < m->epochs; i++) {
		if (!m->epoch[i].has_eval || m->epoch[i].eval_valid)
			continue;
		v->level = VERDICT_WARN;
		say(v, "The evaluation of epoch %u has no AU: %s.", i + 1, m->epoch[i].eval_why);
		return;
	}
	if (m->eval_au.count == 0) {
		v->level = VERDICT_UNKNOWN;
		say(v, "No evaluation was finished.");
		return;
	}
	say(v, "%llu steps each time.", (unsigned long long)r->eval_steps);
}

void verdicts_compute(struct result *r, const struct run_metrics *m)
{
	r->verdicts = 0;
	r->limit = (struct limit){0};
	r->outlook = (struct outlook){0};
	check_complete(r);
	if (r->checkpointed)
		verdict_checkpoint(r);
	if (!r->trained) {
		check_config(r);
		return;
	}
	check_steady(r, m);
	check_whole(r, m);
	verdict_bytes(r, m);
	verdict_ledger(r);
	verdict_page_cache(r);
	check_dataset(r);
	check_order(r);
	check_config(r);
	check_client(r);
	check_compute(r, m);
	check_evaluation(r, m);
	verdict_limit(r, m);
}
