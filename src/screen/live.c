/* What the figures of a run under way are made of. */
#include "screen/live.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/str.h"

/* A step that takes so many times the usual is told of, from this time on. */
#define STANDING_TIMES 3
#define STANDING_LEAST_S 2.0

const char *const live_phase_words[] = {
	[PROGRESS_GENERATE] = "generation",   [PROGRESS_CHECK] = "check",
	[PROGRESS_TRAIN] = "training",        [PROGRESS_EVAL] = "evaluation",
	[PROGRESS_CHECKPOINT] = "checkpoint", [PROGRESS_VERIFY] = "verification",
	[PROGRESS_FINISH] = "finishing",      [PROGRESS_PROBE] = "probe",
};

bool live_is_training(enum progress_phase phase)
{
	return phase == PROGRESS_TRAIN || phase == PROGRESS_EVAL || phase == PROGRESS_CHECKPOINT ||
	       phase == PROGRESS_PROBE || phase == PROGRESS_FINISH;
}

static const struct live_point *point(const struct live *l, uint64_t back)
{
	/* before anything was told: the zeros that the ring begins with */
	assert(back == 0 || back < l->points);
	return &l->point[(l->points - 1 - back) % LIVE_POINTS];
}

static uint64_t kept(uint64_t n)
{
	return n < LIVE_POINTS ? n : LIVE_POINTS;
}

void live_add(struct live *l, const struct run_progress *p, int64_t now_ns)
{
	struct live_point *at;

	if (l->points &&
	    (p->phase != l->phase && !(live_is_training(p->phase) && live_is_training(l->phase))))
		*l = (struct live){.phase = p->phase};
	l->phase = p->phase;
	if (l->points == 0 || p->done + p->eval_done != l->moved_done) {
		l->moved_done = p->done + p->eval_done;
		l->moved_ns = now_ns;
	}
	if (p->device != DEVICE_UNKNOWN &&
	    (l->devices == 0 || l->device[(l->devices - 1) % LIVE_POINTS].t_ns != p->device_ns))
		l->device[l->devices++ % LIVE_POINTS] = (struct live_device){
			p->device_ns, p->device_read_bytes, p->device_written_bytes};
	/* the newest is always this one; those before it lie apart */
	if (l->points < 2 || point(l, 0)->t_ns - point(l, 1)->t_ns >= LIVE_POINT_LEAST_NS)
		l->points++;
	at = &l->point[(l->points - 1) % LIVE_POINTS];
	*at = (struct live_point){.t_ns = now_ns,
				  .bytes = p->bytes,
				  .samples = p->samples,
				  .read_samples = p->read_samples,
				  .read_bytes = p->read_bytes,
				  .train_ns = p->train_ns,
				  .compute_ns = p->compute_ns,
				  .wait_ns = p->wait_ns};
}

static double per_second(uint64_t now, uint64_t before, int64_t ns)
{
	return ns > 0 && now >= before ? (double)(now - before) * 1e9 / (double)ns : NAN;
}

static double share(int64_t part_ns, int64_t whole_ns)
{
	return whole_ns > 0 ? 100.0 * (double)part_ns / (double)whole_ns : NAN;
}

static void recent(const struct live *l, struct live_figures *f)
{
	const struct live_point *now = point(l, 0);
	uint64_t n = kept(l->points), back = 0;

	/* the last seconds, and for shares at least one step */
	while (back + 1 < n && now->t_ns - point(l, back)->t_ns < LIVE_RECENT_NS)
		back++;
	if (back) {
		const struct live_point *then = point(l, back);

		f->bytes_recent = per_second(now->bytes, then->bytes, now->t_ns - then->t_ns);
		f->samples_recent = per_second(now->samples, then->samples, now->t_ns - then->t_ns);
		f->read_samples_recent =
			per_second(now->read_samples, then->read_samples, now->t_ns - then->t_ns);
		f->read_recent =
			per_second(now->read_bytes, then->read_bytes, now->t_ns - then->t_ns);
	}
	while (back + 1 < n && point(l, back)->train_ns == now->train_ns)
		back++;
	if (n) {
		const struct live_point *then = point(l, back);
		int64_t train = now->train_ns - then->train_ns;

		f->au_recent = share(now->compute_ns - then->compute_ns, train);
		f->wait_recent = share(now->wait_ns - then->wait_ns, train);
	}
}

static void device(const struct live *l, const struct run_progress *p, struct live_figures *f)
{
	uint64_t n = kept(l->devices), back = 0;
	const struct live_device *now, *then;

	f->device = p->device;
	snprintf(f->device_name, sizeof(f->device_name), "%s",
		 p->device == DEVICE_DISK ? p->device_name : "");
	if (n < 2)
		return;
	now = &l->device[(l->devices - 1) % LIVE_POINTS];
	do {
		back++;
		then = &l->device[(l->devices - 1 - back) % LIVE_POINTS];
	} while (back + 1 < n && now->t_ns - then->t_ns < LIVE_RECENT_NS);
	f->device_read = per_second(now->read_bytes, then->read_bytes, now->t_ns - then->t_ns);
	if (p->device == DEVICE_DISK)
		f->device_write =
			per_second(now->written_bytes, then->written_bytes, now->t_ns - then->t_ns);
}

/* The rank that took the longest for its own part of the steps, so that others waited. */
static void slowest(const struct run_progress *p, struct live_figures *f)
{
	const struct rank_progress *worst = NULL, *late = NULL;
	int64_t most = -1, sum = 0;

	if (!p->rank)
		return;
	f->has_slowest = false;
	for (uint32_t i = 0; i < p->ranks_here; i++) {
		const struct rank_progress *r = &p->rank[i];
		int64_t own = r->compute_ns + r->wait_ns;

		sum += own;
		if (own > most) {
			most = own;
			worst = r;
		}
		if (r->late && (!late || own > late->compute_ns + late->wait_ns))
			late = r;
	}
	/* in a step that stands, the one it stands for */
	if (!isnan(f->standing_s) && late)
		worst = late;
	if (p->ranks_here < 2 || !worst || worst->train_ns <= 0)
		return;
	f->has_slowest = true;
	f->slow_rank = p->first_rank + (uint32_t)(worst - p->rank);
	f->slow_behind_s =
		((double)(worst->compute_ns + worst->wait_ns) - (double)sum / p->ranks_here) / 1e9;
	f->slow_wait = share(worst->wait_ns, worst->train_ns);
	f->slow_doing = worst->doing;
}

static void left_by_part(const struct run_progress *p, struct live_figures *f, double part,
			 const char *unit)
{
	double s = (double)p->elapsed_ns / 1e9;

	if (!(part > 0.01) || !(part <= 1) || s < 1)
		return;
	f->left_s = s / part - s;
	snprintf(f->left_how, sizeof(f->left_how), "from the %s so far", unit);
}

/* Steps left at the mean time of those made, less what the one under way has taken. */
static void left_of_training(const struct live *l, const struct run_progress *p, int64_t now_ns,
			     struct live_figures *f)
{
	double since = (double)(now_ns - l->moved_ns) / 1e9, step, eval = NAN;
	uint64_t steps = p->total > p->done ? p->total - p->done : 0;
	uint64_t evals = p->eval_total > p->eval_done ? p->eval_total - p->eval_done : 0;
	char a[32], b[32];
	int n;

	if (p->done == 0 || p->train_ns <= 0 || p->ranks_here == 0)
		return;
	step = (double)p->train_ns / 1e9 / p->ranks_here / (double)p->done;
	if (p->eval_done && p->eval_ns > 0)
		eval = (double)p->eval_ns / 1e9 / (double)p->eval_done;
	f->left_s = (double)steps * step + (evals && !isnan(eval) ? (double)evals * eval : 0);
	if (since < step && p->phase == PROGRESS_TRAIN)
		f->left_s -= since;
	if (f->left_s < 0)
		f->left_s = 0;
	n = snprintf(f->left_how, sizeof(f->left_how), "%llu step%s at %s",
		     (unsigned long long)steps, steps == 1 ? "" : "s",
		     str_seconds(step, a, sizeof(a)));
	if (!evals)
		return;
	if (isnan(eval))
		snprintf(f->left_how + n, sizeof(f->left_how) - (size_t)n,
			 ", and evaluation (duration not known yet)");
	else
		snprintf(f->left_how + n, sizeof(f->left_how) - (size_t)n,
			 ", %llu of evaluation at %s", (unsigned long long)evals,
			 str_seconds(eval, b, sizeof(b)));
}

static void left(const struct live *l, const struct run_progress *p, int64_t now_ns,
		 struct live_figures *f)
{
	if (p->phase == PROGRESS_FINISH || p->phase == PROGRESS_PROBE)
		return;
	if (p->training)
		left_of_training(l, p, now_ns, f);
	else if (p->phase == PROGRESS_GENERATE && p->bytes_total)
		left_by_part(p, f, (double)p->bytes / (double)p->bytes_total, "bytes");
	else if (p->phase == PROGRESS_GENERATE && p->total > p->skipped)
		left_by_part(p, f, (double)(p->done - p->skipped) / (double)(p->total - p->skipped),
			     "files");
	else if (p->total)
		left_by_part(p, f, (double)p->done / (double)p->total,
			     p->phase == PROGRESS_CHECK    ? "files"
			     : p->phase == PROGRESS_VERIFY ? "bytes"
							   : "checkpoints");
}

static void so_far(const struct run_progress *p, struct live_figures *f)
{
	double ranks = p->ranks_here ? p->ranks_here : 1;

	if (p->training) {
		f->au = share(p->compute_ns, p->train_ns);
		f->wait = share(p->wait_ns, p->train_ns);
		f->samples_rate = per_second(p->train_samples, 0, p->train_ns) * ranks;
		f->bytes_rate = per_second(p->train_bytes, 0, p->train_ns) * ranks;
	} else {
		f->bytes_rate = per_second(p->bytes, 0, p->elapsed_ns);
	}
}

void live_figures(const struct live *l, const struct run_progress *p, int64_t now_ns,
		  struct live_figures *f)
{
	struct live_figures old = *f;
	double step, since = (double)(now_ns - l->moved_ns) / 1e9;

	*f = (struct live_figures){
		.part = p->total ? (double)p->done / (double)p->total : 0,
		.au = NAN,
		.au_recent = NAN,
		.wait = NAN,
		.wait_recent = NAN,
		.samples_rate = NAN,
		.bytes_rate = NAN,
		.samples_recent = NAN,
		.bytes_recent = NAN,
		.read_samples_recent = NAN,
		.read_recent = NAN,
		.filling = p->training && p->done == 0 && p->eval_done == 0 &&
			   (p->phase == PROGRESS_TRAIN || p->phase == PROGRESS_EVAL),
		.device_read = NAN,
		.device_write = NAN,
		.left_s = NAN,
		.has_slowest = old.has_slowest,
		.slow_rank = old.slow_rank,
		.slow_behind_s = old.slow_behind_s,
		.slow_wait = old.slow_wait,
		.slow_doing = old.slow_doing,
		.standing_s = NAN};
	if (f->part > 1)
		f->part = 1;
	so_far(p, f);
	recent(l, f);
	device(l, p, f);
	left(l, p, now_ns, f);
	if (p->training && p->phase == PROGRESS_TRAIN && p->ranks_here && p->done) {
		step = (double)p->train_ns / 1e9 / p->ranks_here / (double)p->done;
		if (since > STANDING_LEAST_S && since > STANDING_TIMES * step)
			f->standing_s = since;
	}
	slowest(p, f);
}

void live_spark(const struct live *l, int64_t now_ns, double span_s, unsigned cells, double *bytes,
		double *au)
{
	uint64_t n = kept(l->points), back = 0;
	double cell_ns = span_s * 1e9 / cells;

	for (unsigned c = cells; c-- > 0;) {
		int64_t from = now_ns - (int64_t)(cell_ns * (cells - c));
		const struct live_point *end = back < n ? point(l, back) : NULL, *begin = end;

		while (back + 1 < n && begin->t_ns > from)
			begin = point(l, ++back);
		bytes[c] = begin && end ? per_second(end->read_bytes, begin->read_bytes,
						     end->t_ns - begin->t_ns)
					: NAN;
		au[c] = begin && end ? share(end->compute_ns - begin->compute_ns,
					     end->train_ns - begin->train_ns)
				     : NAN;
	}
}
