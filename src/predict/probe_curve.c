#include "predict/probe_curve.h"

#include <math.h>

#define ROUNDS 12 /* samples of a reader */
#define STEPS_LEAST 48

static const double NONE = 1e-9;         /* s: a probe computes nothing */
static const double LITTLE = 0.06;       /* of a time: points repeat no better, */
static const double NOTHING = 0.02;      /* and it may be chance */
static const double SURE = 2;            /* standard errors */
static const double VARIES = 0.1;        /* of a sample's time, at least */
static const double SCALES = 0.7;        /* of a reader's rate alone, beside most of them */
static const double MOST = 50;           /* times as long: no explanation is used that far */
static const uint64_t SAMPLES_LEAST = 4; /* of a point */

static struct model model_of(const struct model *of, double delay_s, uint32_t readers)
{
	struct model m = *of;
	double by = 1 / fmax(1, m.samples);

	m.ranks = 1;
	m.workers = readers;
	m.window = 4 * (uint64_t)readers;
	m.in_order = false;
	m.runs = m.parts = 1;
	m.steps = (uint64_t)ROUNDS * readers;
	if (m.steps < STEPS_LEAST)
		m.steps = STEPS_LEAST;
	m.samples = 1;
	m.delay_s = by * delay_s;
	m.bytes *= by;
	model_queue_scale(&m.open, by, by);
	model_queue_scale(&m.read, by, by);
	m.cpu_s = m.start_s = m.hand_s = m.step_s = 0;
	m.fork_s = m.begin_s = m.take_s = m.end_s = 0;
	m.stall_every = 0;
	m.lists = m.computes = 1;
	m.compute_drawn = NULL;
	m.compute = &NONE;
	m.spreads = 0;
	return m;
}

/* Variance of the time of a request, s^2. */
static double variance_of(const struct probe_log *l)
{
	double n = (double)l->n, mean = 0, square = 0;

	for (size_t i = 0; i < l->n; i++)
		mean += (double)(l->seen[i].end_ns - l->seen[i].begin_ns) / 1e9 / n;
	for (size_t i = 0; i < l->n; i++) {
		double d = (double)(l->seen[i].end_ns - l->seen[i].begin_ns) / 1e9 - mean;

		square += d * d / n;
	}
	return square;
}

/* Standard deviation of the time of a sample, of its mean. */
static double varies(const struct probe_point *q)
{
	double n = (double)q->samples, time = (q->open_s + q->read_s) / n;
	double square = (double)q->requests / n * variance_of(&q->reads) +
			(double)q->opens / n * variance_of(&q->open_log);

	return time > 0 ? fmax(VARIES, sqrt(square) / time) : 1;
}

void probe_curve_of(struct probe_curve *c, const struct probe *p, const struct model *of,
		    double delay_s)
{
	*c = (struct probe_curve){.count = 0};
	for (uint32_t k = 0; k < p->count; k++) {
		const struct probe_point *q = &p->point[k];
		struct model m = model_of(of, delay_s, q->readers);
		double wall;

		if (q->samples < SAMPLES_LEAST || q->samples < q->readers || !(probe_rate(q) > 0))
			continue;
		wall = model_run(&m).wall_s;
		if (!(wall > 0))
			continue;
		c->at[c->count++] = (struct probe_curve_at){
			.readers = q->readers,
			.times = (double)m.steps / wall / probe_rate(q),
			.sure = varies(q) / sqrt((double)q->samples),
		};
	}
	if (c->count < 2)
		c->count = 0;
}

bool probe_scales(const struct probe *p)
{
	const struct probe_point *a = &p->point[0], *b = &p->point[p->count - 1];

	return p->count >= 2 && a->samples >= SAMPLES_LEAST && probe_rate(a) > 0 &&
	       probe_rate(b) / b->readers >= SCALES * probe_rate(a) / a->readers;
}

/* Between two points, in logarithms; the nearest one beyond all of them. */
static struct probe_curve_at look(const struct probe_curve *c, double readers)
{
	struct probe_curve_at found = {.readers = readers};
	const struct probe_curve_at *a, *b;
	uint32_t i = 0;
	double part;

	while (i < c->count && c->at[i].readers < readers)
		i++;
	if (i == 0 || i == c->count)
		return c->at[i ? i - 1 : 0];
	a = &c->at[i - 1];
	b = &c->at[i];
	part = log(readers / a->readers) / log(b->readers / a->readers);
	found.times = a->times * pow(b->times / a->times, part);
	found.sure = fmax(a->sure, b->sure);
	return found;
}

static double within(double times)
{
	return fmin(MOST, fmax(1 / MOST, times));
}

struct misfit_range probe_curve_from_to(const struct probe_curve *c, double from, double to)
{
	const struct probe_curve_at a = look(c, from), b = look(c, to);
	double sure = SURE * hypot(a.sure, b.sure), times = b.times / a.times, slope;
	const struct probe_curve_at *last = &c->at[c->count - 1];
	struct misfit_range r = {1, 1, 1};

	if (fabs(log(times)) > fmax(LITTLE, sure)) {
		r.factor = within(times);
		r.low = within(times / (1 + sure));
		r.high = within(times * (1 + sure));
	} else if (fabs(log(times)) > NOTHING) {
		r.low = fmin(1, times);
		r.high = fmax(1, times);
	}
	if (to > last->readers) {
		/* what grew between the last two points may go on */
		slope = log(last->times / last[-1].times) / log(last->readers / last[-1].readers);
		if (fabs(slope) * log(last->readers / last[-1].readers) > fmax(LITTLE, sure)) {
			times = within(r.factor * pow(to / last->readers, slope));
			r.low = fmin(r.low, times);
			r.high = fmax(r.high, times);
		}
	}
	return r;
}
