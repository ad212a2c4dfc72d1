/* The checkpoints of a run. */
#include "predict/cadence.h"

#include <math.h>
#include <stdio.h>

#include "base/stats.h"
#include "result/metrics.h"

static const double LEAST_OFF = 0.02; /* of a stall: how exactly a mean is known at best */
static const double SLOWED = 1.25;    /* times the time of a write beside reads */

/* Bytes that the rank with most of them wrote. */
static double most_written(const struct result *r)
{
	double most = 0;

	for (uint32_t k = 0; k < r->ranks; k++)
		for (uint32_t e = 0; e < r->epochs_done && !r->rank[k].lost; e++)
			for (uint32_t i = 0; i < r->rank[k].epoch[e].saves; i++)
				most = fmax(most,
					    (double)r->rank[k].epoch[e].save[i].stat.payload_bytes);
	return most;
}

void cadence_of(const struct result *r, uint32_t epochs, uint64_t steps, double wall_s,
		struct cadence *out)
{
	const struct workload *w = r->workload;
	double sum = 0, squares = 0, n;

	*out = (struct cadence){.epochs = epochs, .steps = steps};
	for (uint32_t e = 0; r->checkpointed && e < epochs; e++) {
		struct checkpoint_measure one;

		for (uint32_t i = 0; checkpoint_measure_of(r, e, i, false, &one); i++) {
			double s = checkpoint_stall_s(r, &one);

			out->count++;
			sum += s;
			squares += s * s;
			out->write_s += one.duration_s;
			out->waited_s += one.wait_max_s;
			out->staged_s += one.stage_max_s;
		}
	}
	if (out->count == 0)
		return;
	n = out->count;
	out->stall_s = sum / n;
	if (out->count > 1)
		out->stdev_s = sqrt(fmax(0, squares - sum * sum / n) / (n - 1));
	out->write_s /= n;
	out->waited_s /= n;
	out->staged_s /= n;
	out->apart_s = fmax(0, wall_s - sum) / n;
	out->share = wall_s > 0 ? sum / wall_s : 0;
	if (w->checkpoint.stage_rate > 0)
		out->stage_s = most_written(r) / w->checkpoint.stage_rate;
	out->every = (uint64_t)w->checkpoint.steps_between_checkpoints;
	if (w->checkpoint.steps_between_checkpoints <= 0 ||
	    w->checkpoint.seconds_between_checkpoints > 0)
		out->every = (uint64_t)fmax(1, (double)steps * epochs / n + 0.5);
	out->every = out->every < steps ? out->every : steps;
}

/* `all` checkpoints in the run, each after `every` steps and so long. */
static bool place(const struct cadence *c, double all, uint64_t every, double stall_s,
		  struct model *m)
{
	every = every < c->steps ? every : c->steps;
	if (every == 0)
		return false;
	m->stall_every = every;
	m->stall_s = stall_s * all / c->epochs / (double)(c->steps / every);
	return true;
}

void cadence_now(const struct cadence *c, struct model *m)
{
	if (c->count)
		place(c, c->count, c->every, c->stall_s, m);
}

/* How many a run would have. By time, stalls that are no longer there leave room for fewer. */
static double count_apart(const struct cadence *c, const struct workload *w, double by,
			  double stall_s, enum cadence_end end)
{
	double seconds = w->checkpoint.seconds_between_checkpoints * by, n;
	double epochs = c->epochs;

	if (seconds > 0) {
		n = c->apart_s * c->count / fmax(seconds - stall_s, 0.1 * seconds);
		return end == CADENCE_LONG ? ceil(n) : floor(end == CADENCE_SHORT ? n - 0.2 : n);
	}
	if (w->checkpoint.steps_between_checkpoints > 0)
		return epochs * floor((double)c->steps / ((double)c->every * by));
	epochs -= (double)w->checkpoint.checkpoint_after_epoch;
	return epochs < 0
		       ? 0
		       : floor(epochs / ((double)w->checkpoint.epochs_between_checkpoints * by)) +
				 1;
}

bool cadence_apart(const struct cadence *c, const struct workload *w, double by,
		   enum cadence_end end, struct model *m)
{
	double stall = c->stall_s - fmin(c->waited_s, c->apart_s * (by - 1)), off, all;

	all = count_apart(c, w, by, stall, CADENCE_MEAN);
	if (all < 1 || all >= c->count)
		return false;
	off = LEAST_OFF * stall;
	if (c->count > 1)
		off = fmax(off, student_t(0.05, c->count - 1) * c->stdev_s *
					sqrt(1 / (double)c->count + 1 / all));
	if (end != CADENCE_MEAN)
		stall = fmax(0, stall + (end == CADENCE_LONG ? off : -off));
	return place(c, count_apart(c, w, by, stall, end), (uint64_t)((double)c->every * by), stall,
		     m);
}

bool cadence_async(const struct cadence *c, const struct workload *w, enum cadence_end end,
		   struct model *m)
{
	double write = c->write_s, stall;
	double each = (double)c->count / c->epochs;

	if (w->checkpoint.async || c->count == 0)
		return false;
	if (end == CADENCE_LONG && m->steps > 0) {
		/* each worker, of its part of the batches */
		m->delay_s += each * write * fmax(1, m->workers) / (double)m->steps;
		write *= SLOWED;
	}
	stall = c->stage_s + fmax(0, write - c->apart_s);
	return place(c, c->count, c->every, end == CADENCE_SHORT ? c->stage_s : stall, m);
}

void cadence_key(const struct workload *w, double by, char *out, size_t size)
{
	if (w->checkpoint.seconds_between_checkpoints > 0)
		snprintf(out, size, "checkpoint.seconds_between_checkpoints=%.6g",
			 w->checkpoint.seconds_between_checkpoints * by);
	else if (w->checkpoint.steps_between_checkpoints > 0)
		snprintf(out, size, "checkpoint.steps_between_checkpoints=%.0f",
			 (double)w->checkpoint.steps_between_checkpoints * by);
	else
		snprintf(out, size, "checkpoint.epochs_between_checkpoints=%.0f",
			 (double)w->checkpoint.epochs_between_checkpoints * by);
}
