/* A normal whose deviation is above its mean is cut at 0, or folded there as DLIO does: its draws
 * have another mean than was asked for. */
#include "judge/draws.h"

#include <math.h>

#include "metric/split.h"
#include "workload/time_draw.h"

static const double OFF_SHARE = 0.10; /* of the mean asked for */
static const double CHANCE = 3;       /* standard errors of the mean */
#define FILES_MOST 100000u            /* whose sizes are looked at */

struct draws {
	double n, mean, squares; /* Welford's sums */
};

static void draws_add(struct draws *d, double x)
{
	double from = x - d->mean;

	d->n++;
	d->mean += from / d->n;
	d->squares += from * (x - d->mean);
}

static double draws_dev(const struct draws *d)
{
	return d->n > 1 ? sqrt(d->squares / (d->n - 1)) : 0;
}

static bool is_off(double asked, double drawn, double dev, double n)
{
	double off = fabs(drawn - asked);

	return off > OFF_SHARE * asked && off > CHANCE * dev / sqrt(n);
}

static void add_steps(struct draws *d, const struct phase *p)
{
	for (uint64_t s = 0; s < p->steps; s++) {
		const struct step_times *t = &p->step[s];
		int64_t took = t->compute_end_ns - t->compute_begin_ns;

		draws_add(d, (double)(took - late_ns(t->over_compute, took)) / 1e9);
	}
}

static void judge_steps(struct verdict *v, const struct result *r, const struct time_dist *law,
			bool eval)
{
	double asked = time_dist_mean(law), dev;
	struct draws d = {.n = 0};

	if (!time_dist_varies(law))
		return;
	for (uint32_t k = 0; r->rank && k < r->ranks; k++)
		for (uint32_t i = 0; i < r->epochs_begun && !r->rank[k].lost; i++) {
			const struct rank_epoch *ep = &r->rank[k].epoch[i];

			for (uint32_t b = 0; !eval && b < ep->blocks; b++)
				add_steps(&d, &ep->block[b]);
			if (eval && ep->has_eval)
				add_steps(&d, &ep->eval);
		}
	if (d.n < 1)
		return;
	dev = draws_dev(&d);
	verdict_found(v, is_off(asked, d.mean, dev, d.n) ? VERDICT_WARN : VERDICT_PASS,
		      FACT(CONFIG_DRAWN_TIME, asked, law->kind == TIME_NORMAL ? law->b : NAN,
			   d.mean, dev, d.n, eval));
}

/* Of a run that is complete, all that was read was delivered. */
static void judge_preprocessing(struct verdict *v, const struct result *r)
{
	const struct time_dist *law = &r->workload->reader.preprocess_time;
	double asked = time_dist_mean(law), spent_s = 0, samples = 0;

	if (!time_dist_varies(law) || r->status != RUN_COMPLETE)
		return;
	for (uint32_t k = 0; r->rank && k < r->ranks; k++) {
		spent_s += (double)r->rank[k].preprocess_ns / 1e9;
		for (uint32_t i = 0; i < r->epochs_begun && !r->rank[k].lost; i++) {
			const struct rank_epoch *ep = &r->rank[k].epoch[i];

			for (uint32_t b = 0; b < ep->blocks; b++)
				samples += (double)ep->block[b].samples;
			samples += ep->has_eval ? (double)ep->eval.samples : 0;
		}
	}
	if (samples > 0 && spent_s > 0)
		verdict_found(v,
			      is_off(asked, spent_s / samples, asked, samples) ? VERDICT_WARN
									       : VERDICT_PASS,
			      FACT(CONFIG_DRAWN_PREPROCESSING, asked,
				   law->kind == TIME_NORMAL ? law->b : NAN, spent_s / samples,
				   samples));
}

static void judge_sizes(struct verdict *v, const struct result *r)
{
	const struct dataset *d = r->dataset;
	double asked = (double)r->workload->dataset.record_length_bytes,
	       dev = r->workload->dataset.record_length_bytes_stdev;
	enum dataset_kind kind = d && d->files[DATASET_TRAIN] ? DATASET_TRAIN : DATASET_EVAL;
	struct draws s = {.n = 0};
	uint64_t files, n;

	if (!d || !d->drawn || dev <= 0 || r->workload->dataset.sizes == SIZES_RECORDED)
		return;
	files = d->files[kind];
	n = files < FILES_MOST ? files : FILES_MOST;
	for (uint64_t i = 0; i < n; i++)
		draws_add(&s, (double)dataset_sample_bytes(
				      d, kind, (uint64_t)((double)i * (double)files / (double)n)));
	if (n)
		verdict_found(
			v, is_off(asked, s.mean, draws_dev(&s), s.n) ? VERDICT_WARN : VERDICT_PASS,
			FACT(CONFIG_DRAWN_SIZE, asked, dev, s.mean, draws_dev(&s), s.n));
}

void draws_judge(struct verdict *v, const struct result *r)
{
	judge_steps(v, r, &r->workload->train.computation_time, false);
	judge_steps(v, r, &r->workload->evaluation.eval_time, true);
	judge_preprocessing(v, r);
	judge_sizes(v, r);
}
