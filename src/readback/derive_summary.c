/* summary.json: lists from the files of the ranks, means from lists, and what follows from them. */
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "readback/derivation.h"

/* A list of summary.json, nulls kept. Heap. */
static double *list_of(const struct run_record *r, const char *key, size_t *n)
{
	const json_t *v = json_object_get(json_object_get(r->summary, "metric"), key);
	double *out;

	*n = json_array_size(v);
	out = xcalloc(*n + 1, sizeof(*out));
	for (size_t i = 0; i < *n; i++) {
		const json_t *one = json_array_get(v, i);

		out[i] = json_is_number(one) ? json_number_value(one) : NAN;
	}
	return out;
}

/* Mean and standard deviation as stated, of the list. */
static void check_mean(struct derive *d, const struct run_record *r, const char *list,
		       const char *name, const char *unit)
{
	const json_t *metric = json_object_get(r->summary, "metric");
	size_t n;
	AUTO_FREE double *v = list_of(r, list, &n);
	struct derive_stat s = derive_stat_of(v, n);
	char key[96];

	snprintf(key, sizeof(key), "%s_mean_%s", name, unit);
	derive_equal(d, derive_number(metric, key), s.mean, list, "summary.json %s", key);
	snprintf(key, sizeof(key), "%s_stdev_%s", name, unit);
	derive_near(d, derive_number(metric, key), s.stdev,
		    1e-7 * fmax(1, fabs(s.mean)) /* of a difference of near numbers */, list,
		    "summary.json %s", key);
}

/* Ours leave out what was not measured; those of earlier versions had null there, DLIO's zeros. */
static bool is_listed(const struct run_record *r, const char *list, double value)
{
	const json_t *v = json_object_get(json_object_get(r->summary, "metric"), list);

	return !r->ours || isfinite(value) || derive_has_null(v);
}

/* Of an epoch of training, by the ranks' files: the mean of their AU, the sum of their rates. NaN
 * where one of them has none. */
struct ranks_epoch {
	double au, rate;
	uint64_t steps;
	bool several_blocks;
};

static struct ranks_epoch add_ranks(const struct run_record *r, size_t epoch)
{
	struct ranks_epoch out = {0};
	uint32_t n = 0;

	for (uint32_t k = 0; k < r->ranks; k++) {
		struct derive_rank one;

		if (!r->rank[k].found || epoch >= r->rank[k].epochs)
			continue;
		one = derive_rank_epoch(r, k, epoch);
		out.au += one.au;
		out.rate += one.throughput;
		out.steps += one.steps;
		out.several_blocks |= r->rank[k].epoch[epoch].blocks > 1;
		n++;
	}
	out.au /= n;
	return out;
}

static void check_epoch(struct derive *d, const struct run_record *r, size_t epoch,
			const struct ranks_epoch *of, double au, double rate)
{
	/* which weights DLIO gives blocks depends on its version */
	if (!r->ours && of->several_blocks) {
		derive_unchecked(d, "epochs have several blocks, which versions of DLIO weigh "
				    "differently");
		return;
	}
	derive_equal(d, au, of->au, "the mean of the ranks' files",
		     "summary.json train_au_percentage, epoch %zu,", epoch + 1);
	derive_equal(d, rate, of->rate, "the sum of the ranks' files",
		     "summary.json train_throughput_samples_per_second, epoch %zu,", epoch + 1);
}

static void check_training(struct derive *d, const struct run_record *r)
{
	size_t n, m, at = 0, epochs = derive_epochs(r);
	AUTO_FREE double *au = list_of(r, "train_au_percentage", &n);
	AUTO_FREE double *rate = list_of(r, "train_throughput_samples_per_second", &m);

	derive_holds(d, n == m, "summary.json lists %zu values of AU and %zu of samples/s.", n, m);
	for (size_t e = 0; e < epochs; e++) {
		struct ranks_epoch of = add_ranks(r, e);

		/* an epoch without a step is not listed by us */
		if ((r->ours && of.steps == 0) || !is_listed(r, "train_au_percentage", of.au))
			continue;
		if (at < n && at < m)
			check_epoch(d, r, e, &of, au[at], rate[at]);
		at++;
	}
	if (epochs > 0 && r->trained)
		derive_holds(d, at == n,
			     "summary.json lists the AU of %zu epoch%s, but the files of the ranks "
			     "have %zu.",
			     n, n == 1 ? "" : "s", at);
}

/* The two lists of evaluations and the next place in each: one step has a rate, but no AU. */
struct eval_lists {
	struct derive *d;
	const struct run_record *r;
	const double *au, *rate;
	size_t aus, rates, au_at, rate_at;
};

static const char eval_au_list[] = "eval_au_percentage";
static const char eval_rate_list[] = "eval_throughput_samples_per_second";

/* The next evaluation: what the ranks' files give, and how it is named ("of rank 0, epoch 1,"). */
static void check_eval(struct eval_lists *l, double au, double rate, const char *au_from,
		       const char *rate_from, const char *which)
{
	if (is_listed(l->r, eval_au_list, au)) {
		if (l->au_at < l->aus)
			derive_equal(l->d, l->au[l->au_at], au, au_from, "summary.json %s%s",
				     eval_au_list, which);
		l->au_at++;
	}
	if (is_listed(l->r, eval_rate_list, rate)) {
		if (l->rate_at < l->rates)
			derive_equal(l->d, l->rate[l->rate_at], rate, rate_from,
				     "summary.json %s%s", eval_rate_list, which);
		l->rate_at++;
	}
}

/* DLIO lists each rank's evaluations, one rank after the other, divided by the ranks. */
static void check_ranks_evals(struct eval_lists *l, size_t epochs)
{
	const struct run_record *r = l->r;
	char which[64];

	for (uint32_t k = 0; k < r->ranks; k++)
		for (size_t e = 0; r->rank[k].found && e < epochs; e++) {
			const struct record_epoch *ep = &r->rank[k].epoch[e];

			if (!ep->has_eval)
				continue;
			snprintf(which, sizeof(which), " of rank %u, epoch %zu,", k, e + 1);
			check_eval(l, ep->eval.au / r->ranks, ep->eval.throughput,
				   "that rank's file, divided by the ranks,", "that rank's file",
				   which);
		}
}

static void check_evaluation(struct derive *d, const struct run_record *r)
{
	size_t n, m, epochs = derive_epochs(r);
	AUTO_FREE double *au = list_of(r, eval_au_list, &n);
	AUTO_FREE double *rate = list_of(r, eval_rate_list, &m);
	struct eval_lists l = {.d = d, .r = r, .au = au, .rate = rate, .aus = n, .rates = m};
	char which[64];

	if (derive_as_dlio(r)) {
		check_ranks_evals(&l, epochs);
		return;
	}
	for (size_t e = 0; e < epochs; e++) {
		double au_sum = 0, rate_sum = 0;
		uint32_t ranks = 0;

		for (uint32_t k = 0; k < r->ranks; k++) {
			if (!r->rank[k].found || !r->rank[k].epoch[e].has_eval)
				continue;
			au_sum += r->rank[k].epoch[e].eval.au;
			rate_sum += r->rank[k].epoch[e].eval.throughput;
			ranks++;
		}
		if (ranks == 0)
			continue;
		snprintf(which, sizeof(which), ", epoch %zu,", e + 1);
		check_eval(&l, au_sum / ranks, rate_sum, "the mean of the ranks' files",
			   "the sum of the ranks' files", which);
	}
}

static void check_target(struct derive *d, const struct run_record *r, const char *name)
{
	const json_t *metric = json_object_get(r->summary, "metric");
	char key[64];
	const char *said;
	double mean;

	snprintf(key, sizeof(key), "%s_mean_percentage", name);
	mean = derive_number(metric, key);
	snprintf(key, sizeof(key), "%s_meet_expectation", name);
	said = derive_string(metric, key);
	if (!said || !r->has_workload || !isfinite(mean) ||
	    fabs(mean - 100 * r->workload.metric.au) < 1e-9)
		return;
	derive_text(d, said, mean >= 100 * r->workload.metric.au ? "success" : "fail",
		    "its mean against metric.au", "summary.json %s", key);
}

/* Checkpoints of rank 0, or of the longest rank, by the stamps; only DLIO's are of rank 0 alone. */
static void check_checkpoints(struct derive *d, const struct run_record *r, bool load)
{
	const json_t *metric = json_object_get(r->summary, "metric");
	const char *what = load ? "load" : "save";
	double sum = 0, rates = 0;
	size_t n = 0;
	char key[64];

	if (r->ours || !r->rank[0].found)
		return;
	for (size_t e = 0; e < r->rank[0].epochs; e++)
		for (size_t c = 0; c < r->rank[0].epoch[e].checkpoints; c++) {
			const struct record_checkpoint *one = &r->rank[0].epoch[e].checkpoint[c];

			if (one->load != load)
				continue;
			sum += one->seconds;
			rates += one->gib_per_s;
			n++;
			derive_equal(d, one->gib_per_s, r->checkpoint_gib / one->seconds,
				     "checkpoint_size_GB and its duration",
				     "the rate (GiB/s) of %s in 0_per_epoch_stats.json, epoch %zu",
				     one->name, e + 1);
		}
	if (n == 0)
		return;
	snprintf(key, sizeof(key), "%s_checkpoint_duration_mean_seconds", what);
	derive_equal(d, derive_number(metric, key), sum / (double)n, "0_per_epoch_stats.json",
		     "summary.json %s", key);
	snprintf(key, sizeof(key), "%s_checkpoint_io_mean_GB_per_second", what);
	derive_equal(d, derive_number(metric, key), rates / (double)n, "0_per_epoch_stats.json",
		     "summary.json %s", key);
}

void derive_summary(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	struct derive d = derive_begin(a, i, "figures", "summary",
				       "summary.json from the files of the ranks; means, standard "
				       "deviations and success from its lists");

	check_mean(&d, r, "train_au_percentage", "train_au", "percentage");
	check_mean(&d, r, "train_throughput_samples_per_second", "train_throughput",
		   "samples_per_second");
	check_mean(&d, r, "eval_au_percentage", "eval_au", "percentage");
	check_mean(&d, r, "eval_throughput_samples_per_second", "eval_throughput",
		   "samples_per_second");
	check_target(&d, r, "train_au");
	check_target(&d, r, "eval_au");
	if (!derive_all_ranks(r)) {
		derive_unchecked(&d, "files of ranks are missing: lists were not derived");
		return;
	}
	if (!r->has_workload) {
		derive_unchecked(&d, "the configuration is unknown: lists were not derived");
		return;
	}
	check_training(&d, r);
	check_evaluation(&d, r);
	check_checkpoints(&d, r, false);
	check_checkpoints(&d, r, true);
}
