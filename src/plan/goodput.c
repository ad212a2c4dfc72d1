#include "plan/goodput.h"

#include <math.h>

double goodput_young(double c, double m)
{
	return sqrt(2 * c * m);
}

double goodput_daly(double c, double m)
{
	double x = c / (2 * m);

	if (c >= 2 * m)
		return m;
	return sqrt(2 * c * m) * (1 + sqrt(x) / 3 + x / 9) - c;
}

double goodput_availability(double c, double r, double m)
{
	return c + sqrt(2 * (m + r) * c + c * c);
}

double goodput_share(double t, double c, double r, double m)
{
	double x = (t + c) / m, e = exp(-r / m);

	/* expm1 overflows where nothing is ever finished */
	if (!(t > 0) || x > 700 || e <= 0)
		return 0;
	return t * e / (m * expm1(x));
}

/* g(T) = ln(1 - T/M) + (T + C)/M is falling from C/M > 0 on (0, M). */
double goodput_best(double c, double m)
{
	double low = 0, high = 1;

	for (int i = 0; i < 200 && high - low > 1e-15 * high; i++) {
		double x = (low + high) / 2;

		if (log1p(-x) + x + c / m > 0)
			low = x;
		else
			high = x;
	}
	return m * (low + high) / 2;
}

/* ---- all of it ---- */

/* What does not depend on T, for a write rate `b`. */
struct cost {
	double c, r, least;
};

static struct cost cost_of(const struct goodput_input *in, double b)
{
	double write = in->bytes / b, read = in->bytes / (isnan(in->read_rate) ? b : in->read_rate);
	struct cost x = {.c = write, .r = in->restart_s + read};

	if (!isnan(in->pause_s)) {
		x.c = in->pause_s;
		/* what is still being written is lost with the job */
		x.r += write;
		x.least = fmax(0, write - x.c);
	}
	return x;
}

static double share_at(const struct goodput_input *in, double b, double t, double m)
{
	struct cost x = cost_of(in, b);

	/* the next checkpoint waits for the one before */
	return goodput_share(t, x.c + fmax(0, x.least - t), x.r, m);
}

static struct goodput_at look_at(const struct goodput_input *in, double t, double m)
{
	double b = in->write_rate, step = fmin(1e9, b) * 1e-3;
	struct goodput_at a = {.interval_s = t, .share = share_at(in, b, t, m)};

	a.per_gigabyte = (share_at(in, b + step, t, m) - a.share) / step * 1e9;
	return a;
}

static void find_two_levels(const struct goodput_input *in, struct goodput *out)
{
	double c1 = in->bytes / in->local_rate, c2 = out->write_s;
	double m1 = out->mtbf_s / in->local_share, m2 = out->mtbf_s / (1 - in->local_share);
	double r1 = in->restart_s + c1, loss;

	out->local_interval_s = goodput_young(c1, m1);
	out->shared_interval_s = goodput_young(c2, m2);
	/* first order, as each level alone */
	loss = sqrt(2 * c1 / m1) + sqrt(2 * c2 / m2) + r1 / m1 + out->restart_s / m2;
	out->two_level_share = fmax(0, 1 - loss);
}

/* The best share that a rate of writing allows. */
static double best_share(const struct goodput_input *in, double b, double m)
{
	struct cost x = cost_of(in, b);

	return share_at(in, b, fmax(x.least, goodput_best(x.c, m)), m);
}

static void find_needed(const struct goodput_input *in, struct goodput *out)
{
	double m = out->mtbf_s, low = log(1.0), high = log(1e24);

	/* with a rate of writing that is no limit */
	out->restart_loss = 1 - best_share(in, 1e24, m);
	if (isnan(in->loss) || out->restart_loss > in->loss)
		return;
	for (int i = 0; i < 100; i++) {
		double middle = (low + high) / 2;

		if (best_share(in, exp(middle), m) < 1 - in->loss)
			low = middle;
		else
			high = middle;
	}
	out->needed_rate = exp(high);
}

void goodput_find(const struct goodput_input *in, struct goodput *out)
{
	struct cost x;

	*out = (struct goodput){.mtbf_s = in->mtbf_one_s / in->accelerators,
				.pause_s = NAN,
				.write_s = NAN,
				.restart_s = NAN,
				.young_s = NAN,
				.daly_s = NAN,
				.availability_s = NAN,
				.best = {NAN, NAN, NAN},
				.asked = {NAN, NAN, NAN},
				.read_demand = NAN,
				.needed_rate = NAN,
				.local_interval_s = NAN,
				.shared_interval_s = NAN,
				.two_level_share = NAN};
	find_needed(in, out);
	if (isnan(in->write_rate))
		return;
	x = cost_of(in, in->write_rate);
	out->write_s = in->bytes / in->write_rate;
	out->pause_s = x.c;
	out->restart_s = x.r;
	out->least_interval_s = x.least;
	out->young_s = goodput_young(x.c, out->mtbf_s);
	out->daly_s = goodput_daly(x.c, out->mtbf_s);
	out->availability_s = goodput_availability(x.c, x.r, out->mtbf_s);
	out->best = look_at(in, goodput_best(x.c, out->mtbf_s), out->mtbf_s);
	if (out->best.interval_s < x.least) {
		out->best_is_bound = true;
		out->best = look_at(in, x.least, out->mtbf_s);
	}
	out->read_demand = in->bytes / (out->best.interval_s + x.c);
	if (!isnan(in->interval_s)) {
		out->asked = look_at(in, in->interval_s, out->mtbf_s);
		out->asked_waits = in->interval_s < x.least;
	}
	if (!isnan(in->local_rate))
		find_two_levels(in, out);
}
