/* What one accelerator needs. */
#include "workload/need.h"

#include <math.h>
#include <stdio.h>

#include "base/str.h"

/* E|X| of a normal X: the folded normal distribution's mean. */
static double folded_normal(double mean, double stdev)
{
	double z;

	if (!(stdev > 0))
		return fabs(mean);
	z = mean / (stdev * M_SQRT2);
	return stdev * sqrt(2 / M_PI) * exp(-z * z) + mean * erf(z);
}

static double folded_uniform(double from, double to)
{
	double low = from < to ? from : to, high = from < to ? to : from;

	if (low >= 0 || high <= 0)
		return fabs(low + high) / 2;
	return (low * low + high * high) / (2 * (high - low));
}

/* The mean of the delays that time_draw_ns makes. */
static double waited_mean(const struct time_dist *d)
{
	double mean = time_dist_mean(d);

	if (d->kind == TIME_NORMAL)
		mean = d->b >= 0 ? folded_normal(d->a, d->b) : 0;
	else if (d->kind == TIME_UNIFORM)
		mean = folded_uniform(d->a, d->b);
	else if (d->kind != TIME_CONSTANT && (d->a < 0 || d->b < 0))
		return 0;
	return fabs(mean);
}

void need_find(const struct workload *w, enum need_phase phase, double sample_bytes,
	       struct need *out)
{
	bool training = phase == NEED_TRAINING;
	double target = w->metric.au;

	*out = (struct need){
		.step_s = waited_mean(training ? &w->train.computation_time
					       : &w->evaluation.eval_time),
		.batch = training ? w->reader.batch_size : w->reader.batch_size_eval,
		.samples = NAN,
		.bytes = NAN,
		.target = target > 0 ? target : 0,
		.samples_at_target = NAN,
		.bytes_at_target = NAN,
	};
	if (!(out->step_s > 0) || !isfinite((double)out->batch / out->step_s)) {
		snprintf(out->why, sizeof(out->why), "its computation takes no time");
		return;
	}
	out->known = true;
	out->samples = (double)out->batch / out->step_s;
	out->bytes = out->samples * sample_bytes;
	if (out->target > 0) {
		out->samples_at_target = out->samples * out->target;
		out->bytes_at_target = out->bytes * out->target;
	}
}

double need_fed(const struct need *n, double samples_per_s)
{
	return n->known ? samples_per_s / n->samples : NAN;
}

double need_fed_at_target(const struct need *n, double samples_per_s)
{
	return n->known && n->target > 0 ? samples_per_s / n->samples_at_target : NAN;
}

/* Three digits, all before the point of a larger number. */
static void put_number(char *out, size_t out_size, double v)
{
	str_append(out, out_size, v < 9.995 ? "%.2f" : v < 99.95 ? "%.1f" : "%.0f", v);
}

/* The unit in which a rate has a digit before the point. */
static const char *unit_of(double bytes_per_s, double *unit)
{
	static const char *const names[] = {"B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s"};
	size_t i = 0;

	*unit = 1;
	while (i < sizeof(names) / sizeof(names[0]) - 1 && bytes_per_s / *unit >= 1024) {
		*unit *= 1024;
		i++;
	}
	return names[i];
}

char *need_rate_text(double bytes_per_s, char *out, size_t out_size)
{
	double unit;
	const char *name = unit_of(bytes_per_s, &unit);

	snprintf(out, out_size, "%s", "");
	put_number(out, out_size, bytes_per_s / unit);
	str_append(out, out_size, " %s", name);
	return out;
}

char *need_part_text(double bytes_per_s, double whole, char *out, size_t out_size)
{
	double unit;

	unit_of(whole, &unit);
	snprintf(out, out_size, "%s", "");
	put_number(out, out_size, bytes_per_s / unit);
	return out;
}

char *need_text(const struct need *n, char *out, size_t out_size)
{
	bool bytes = isfinite(n->bytes) && n->bytes > 0;
	double unit = 1;

	if (!n->known) {
		snprintf(out, out_size, "no fixed rate: %s", n->why);
		return out;
	}
	snprintf(out, out_size, "%s", "");
	if (bytes) {
		need_rate_text(n->bytes, out, out_size);
		unit_of(n->bytes, &unit);
		str_append(out, out_size, " (");
	}
	put_number(out, out_size, n->samples);
	str_append(out, out_size, " samples/s%s at 100 %%", bytes ? ")" : "");
	if (n->target > 0 && n->target != 1) {
		str_append(out, out_size, ", ");
		put_number(out, out_size, bytes ? n->bytes_at_target / unit : n->samples_at_target);
		str_append(out, out_size, " at %.4g %%", n->target * 100);
	}
	return out;
}
