/* result.json: its measures from the files of the ranks, its means from its epochs, its times from
 * their parts; and what summary.json repeats of it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "readback/derivation.h"

static const double MIB = 1048576;
static const double STAMP_S = 0.1;      /* as in derive_steps.c */
static const double STAMP_SHARE = 0.01; /* of the time */

/* The parts of the tree that are used everywhere. */
struct tree {
	struct derive *d;
	const struct run_record *r;
	const json_t *root, *training, *epochs, *ranks;
	size_t done; /* epochs */
	bool all;    /* every rank that is not lost has its files */
};

static double series_value(const json_t *epoch, const char *key, bool with_steps)
{
	if (with_steps && !(derive_number(epoch, "steps") > 0))
		return NAN;
	return derive_number(epoch, key);
}

/* mean, stdev, min and max of a measure over epochs. */
static void check_series(struct tree *t, const json_t *part, const char *where, const char *name,
			 const char *unit, const char *key, bool with_steps)
{
	const json_t *list = json_object_get(part, "epochs");
	size_t n = json_array_size(list);
	AUTO_FREE double *v = xcalloc(n + 1, sizeof(*v));
	const char *const stats[] = {"mean", "stdev", "min", "max"};
	struct derive_stat s;

	for (size_t e = 0; e < n; e++)
		v[e] = series_value(json_array_get(list, e), key, with_steps);
	s = derive_stat_of(v, n);
	const double want[] = {s.mean, s.stdev, s.min, s.max};

	for (int i = 0; i < 4; i++) {
		char path[96];

		snprintf(path, sizeof(path), "%s_%s_%s", name, stats[i], unit);
		derive_near(t->d, derive_number(part, path), want[i],
			    1e-7 * fmax(1e-2, fabs(s.mean)), "its epochs", "result.json %s.%s",
			    where, path);
	}
}

static void check_training_series(struct tree *t)
{
	static const char *const series[][3] = {
		{"au", "percent", "au_percent"},
		{"throughput", "samples_per_s", "throughput_samples_per_s"},
		{"io", "mib_per_s", "io_mib_per_s"},
		{"whole_au", "percent", "whole_au_percent"},
		{"whole_throughput", "samples_per_s", "whole_throughput_samples_per_s"},
		{"payload_rate", "bytes_per_s", "payload_rate_bytes_per_s"},
	};

	for (size_t i = 0; i < sizeof(series) / sizeof(series[0]); i++)
		check_series(t, t->training, "training", series[i][0], series[i][1], series[i][2],
			     true);
}

static void check_eval_series(struct tree *t)
{
	const json_t *part = json_object_get(t->root, "evaluation");

	/* with compat.dlio the list is one of ranks and epochs */
	if (!part || derive_as_dlio(t->r))
		return;
	check_series(t, part, "evaluation", "au", "percent", "au_percent", false);
	check_series(t, part, "evaluation", "throughput", "samples_per_s",
		     "throughput_samples_per_s", false);
}

/* ---- an epoch ---- */

static const char *epoch_place(char out[96], size_t e, const char *key)
{
	snprintf(out, 96, "training.epochs[%zu].%s", e, key);
	return out;
}

/* over_ranks holds statistics of what the epoch has the mean of. */
static void check_over_ranks(struct tree *t, const json_t *epoch, size_t e)
{
	const json_t *over = json_object_get(epoch, "over_ranks");
	uint32_t present = 0;

	for (uint32_t k = 0; k < t->r->ranks; k++)
		present += !derive_is_lost(t->r, k);
	static const char *const same[][2] = {
		{"au_mean_percent", "au_percent"},
		{"whole_au_mean_percent", "whole_au_percent"},
		{"exposed_wait_mean_s", "exposed_wait_s"},
		{"barrier_wait_mean_s", "barrier_wait_s"},
		{"wall_mean_s", "wall_s"},
	};

	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		derive_equal(t->d, derive_number(epoch, same[i][1]),
			     derive_number(over, same[i][0]), same[i][0],
			     "result.json training.epochs[%zu].%s", e, same[i][1]);
	derive_equal(t->d, derive_number(epoch, "throughput_samples_per_s"),
		     present * derive_number(over, "throughput_mean_samples_per_s"),
		     "its mean over ranks, times the ranks,",
		     "result.json training.epochs[%zu].throughput_samples_per_s", e);
}

static void check_epoch_rates(struct tree *t, const json_t *epoch, size_t e)
{
	const json_t *over = json_object_get(epoch, "over_ranks");
	double samples = derive_number(epoch, "samples"), steps = derive_number(epoch, "steps");
	double payload = derive_number(epoch, "payload_bytes");
	double longest = derive_number(over, "wall_max_s"), each = payload / samples;
	char place[96];

	if (derive_as_dlio(t->r))
		each = t->r->has_workload ? t->r->workload.dataset.record_length_bytes : NAN;
	if (samples > 0 && longest > 0) {
		derive_equal(t->d, derive_number(epoch, "whole_throughput_samples_per_s"),
			     samples / longest, "its samples over wall_max_s", "result.json %s",
			     epoch_place(place, e, "whole_throughput_samples_per_s"));
		derive_equal(t->d, derive_number(epoch, "payload_rate_bytes_per_s"),
			     payload / longest, "its payload over wall_max_s", "result.json %s",
			     epoch_place(place, e, "payload_rate_bytes_per_s"));
		derive_equal(t->d, derive_number(epoch, "io_mib_per_s"),
			     derive_number(epoch, "throughput_samples_per_s") * each / MIB,
			     "its samples/s and the bytes of a sample", "result.json %s",
			     epoch_place(place, e, "io_mib_per_s"));
	}
	if (t->r->has_workload && t->r->workload.reader.batch_size > 0 && t->all &&
	    t->r->ranks_found == t->r->ranks) {
		double most = steps * (double)t->r->workload.reader.batch_size * t->r->ranks;

		/* ranks may end in different steps where one was stopped */
		derive_at_most(t->d, samples, most, 0, "steps x batch size x ranks",
			       "result.json %s", epoch_place(place, e, "samples"));
		derive_holds(t->d,
			     samples > most * (1 - 1.5 / fmax(steps, 1)) || samples == 0 ||
				     steps <= 1,
			     "result.json %s is %.10g, but steps x batch size x ranks is %.10g.",
			     epoch_place(place, e, "samples"), samples, most);
	}
}

/* Means over the ranks of what N_output.json lists step by step. */
static void check_epoch_steps(struct tree *t, const json_t *epoch, size_t e)
{
	const json_t *over = json_object_get(epoch, "over_ranks");
	double au[2] = {INFINITY, -INFINITY}, rate[2] = {INFINITY, -INFINITY};
	double compute = 0, load = 0, au_sum = 0, rate_sum = 0, steps = INFINITY;
	uint32_t n = 0;

	for (uint32_t k = 0; k < t->r->ranks; k++) {
		struct derive_rank one;

		if (!t->r->rank[k].found)
			continue;
		one = derive_rank_epoch(t->r, k, e);
		compute += one.compute_s;
		load += one.load_s;
		au_sum += one.au;
		rate_sum += one.throughput;
		steps = fmin(steps, (double)one.steps);
		au[0] = fmin(au[0], one.au);
		au[1] = fmax(au[1], one.au);
		rate[0] = fmin(rate[0], one.throughput);
		rate[1] = fmax(rate[1], one.throughput);
		n++;
	}
	if (n == 0)
		return;
	const struct {
		const json_t *in;
		const char *key;
		double want;
	} figure[] = {
		{epoch, "steps", steps},
		{epoch, "compute_s", compute / n},
		{epoch, "exposed_wait_s", load / n},
		{epoch, "au_percent", au_sum / n},
		{epoch, "throughput_samples_per_s", rate_sum},
		{over, "au_min_percent", au[0]},
		{over, "au_max_percent", au[1]},
		{over, "throughput_min_samples_per_s", rate[0]},
		{over, "throughput_max_samples_per_s", rate[1]},
	};

	for (size_t i = 0; i < sizeof(figure) / sizeof(figure[0]); i++)
		derive_equal(t->d, derive_number(figure[i].in, figure[i].key), figure[i].want,
			     "the files of the ranks", "result.json training.epochs[%zu].%s%s", e,
			     figure[i].in == over ? "over_ranks." : "", figure[i].key);
}

/* Of the computation what is not counted in whole-run AU; 0 in results of earlier versions. */
static double late_of(const json_t *o)
{
	double late = derive_number(o, "compute_late_s");

	return isnan(late) ? 0 : late;
}

/* The lateness is a part of no_processor, all of it unless the process stood still while it
 * computed as long as it should. */
static void check_late(struct tree *t, const json_t *epoch, size_t e)
{
	const json_t *parts = json_object_get(epoch, "decomposition");
	double late = derive_number(epoch, "compute_late_s");
	double of_parts = derive_number(parts, "late_compute_s"), slack = 1e-6 + 1e-9 * of_parts;
	double stood = derive_number(json_object_get(epoch, "processors"), "stood_still_s");

	if (isnan(late) || !parts)
		return;
	derive_at_most(t->d, late, of_parts, slack, "decomposition.late_compute_s",
		       "result.json training.epochs[%zu].compute_late_s", e);
	if (!(stood > 0))
		derive_at_most(t->d, of_parts, late, slack, "compute_late_s",
			       "result.json training.epochs[%zu].decomposition.late_compute_s", e);
	derive_near(t->d, derive_number(epoch, "compute_s"),
		    derive_number(json_object_get(parts, "mean_over_ranks_s"), "compute") +
			    of_parts,
		    1e-6 + 1e-9 * fabs(of_parts), "compute and late_compute_s of its decomposition",
		    "result.json training.epochs[%zu].compute_s", e);
}

/* Of each epoch the lateness, of all its mean share, and of the ranks the same in all. */
static void check_late_of_all(struct tree *t)
{
	double late = 0, least = 0, most = 0, ranks = 0, steps = 0;
	double mean = derive_number(t->training, "compute_late_mean_percent");
	uint32_t present = 0;

	for (size_t e = 0; e < json_array_size(t->epochs); e++) {
		const json_t *epoch = json_array_get(t->epochs, e);
		const json_t *over = json_object_get(epoch, "over_ranks");

		late += late_of(epoch);
		if (!(derive_number(epoch, "steps") > 0))
			continue;
		/* of each rank by its own time */
		least += 100 * late_of(epoch) / derive_number(over, "wall_max_s");
		most += 100 * late_of(epoch) / derive_number(over, "wall_min_s");
		steps++;
	}
	if (steps > 0 && isfinite(mean))
		derive_holds(t->d,
			     mean >= least / steps - 1e-6 &&
				     mean <= most / steps * (1 + 1e-9) + 1e-6,
			     "result.json training.compute_late_mean_percent is %.10g, but "
			     "compute_late_s of its epochs gives %.10g.",
			     mean, least / steps);
	for (uint32_t k = 0; k < json_array_size(t->ranks); k++) {
		present += !derive_is_lost(t->r, k);
		ranks += derive_is_lost(t->r, k) ? 0 : late_of(json_array_get(t->ranks, k));
	}
	if (present && t->all)
		derive_near(t->d, ranks / present, late, 1e-6 + 1e-9 * late,
			    "compute_late_s of training.epochs",
			    "the mean of ranks[].compute_late_s in result.json");
}

static void check_epoch_wall(struct tree *t, const json_t *epoch, size_t e)
{
	double sum = 0, wall = derive_number(epoch, "wall_s");
	uint32_t n = 0;

	for (uint32_t k = 0; k < t->r->ranks; k++) {
		if (!t->r->rank[k].found)
			continue;
		sum += t->r->rank[k].epoch[e].duration_s;
		n++;
	}
	if (fabs(fabs(wall - sum / n) - 3600) < 60)
		return;
	derive_near(t->d, wall, sum / n, STAMP_S + STAMP_SHARE * fabs(wall),
		    "the mean duration in N_per_epoch_stats.json",
		    "result.json training.epochs[%zu].wall_s", e);
	if (derive_number(epoch, "steps") > 0 && n == 1)
		derive_equal(t->d, derive_number(epoch, "whole_au_percent"),
			     100 * (derive_number(epoch, "compute_s") - late_of(epoch)) / wall,
			     "(compute_s - compute_late_s) / wall_s",
			     "result.json training.epochs[%zu].whole_au_percent", e);
}

/* Parts of the wall time add up to it; percentages are of it. */
static void check_parts(struct tree *t, const json_t *parts, const char *list, const char *percents,
			double wall, const char *where)
{
	json_t *seconds = json_object_get(parts, list), *one;
	const json_t *shares = json_object_get(parts, percents);
	const char *key;
	double sum = 0;
	size_t n = 0;

	json_object_foreach(seconds, key, one)
	{
		double v = json_is_number(one) ? json_number_value(one) : NAN;

		sum += v;
		n++;
		if (wall > 0)
			derive_equal(t->d, derive_number(shares, key), 100 * v / wall,
				     "its seconds of the wall time", "result.json %s.%s.%.40s",
				     where, percents, key);
	}
	if (n)
		derive_near(t->d, wall, sum, 1e-6 + 1e-9 * fabs(wall), "the sum of its parts",
			    "the wall time (s) of result.json %s.%s", where, list);
}

static void check_decomposition(struct tree *t, const json_t *parts, const char *where, double wall,
				double compute)
{
	if (!parts)
		return;
	derive_near(t->d, derive_number(parts, "wall_s"), wall, 1e-6 + 1e-9 * fabs(wall),
		    "the wall time of its epochs", "result.json %s.wall_s", where);
	/* what a thread waited for a processor is a part of its own */
	derive_at_most(t->d, derive_number(json_object_get(parts, "mean_over_ranks_s"), "compute"),
		       compute, 1e-6 + 1e-9 * fabs(compute), "compute_s of its epochs",
		       "result.json %s.mean_over_ranks_s.compute", where);
	check_parts(t, parts, "mean_over_ranks_s", "mean_over_ranks_percent",
		    derive_number(parts, "wall_s"), where);
	check_parts(t, parts, "critical_path_s", "critical_path_percent",
		    derive_number(parts, "critical_path_wall_s"), where);
}

/* All epochs together, each by its time. */
static void check_whole_run(struct tree *t)
{
	double compute = 0, wall = 0, longest = 0, samples = 0, payload = 0;

	for (size_t e = 0; e < json_array_size(t->epochs); e++) {
		const json_t *epoch = json_array_get(t->epochs, e);
		double s = derive_number(epoch, "wall_s");

		if (!(derive_number(epoch, "steps") > 0))
			continue;
		compute += derive_number(epoch, "whole_au_percent") * s;
		wall += s;
		longest += derive_number(json_object_get(epoch, "over_ranks"), "wall_max_s");
		samples += derive_number(epoch, "samples");
		payload += derive_number(epoch, "payload_bytes");
	}
	if (!(wall > 0) || !(longest > 0))
		return;
	derive_equal(t->d, derive_number(t->training, "whole_run_au_percent"), compute / wall,
		     "its epochs, each by its time,", "result.json training.whole_run_au_percent");
	derive_equal(t->d, derive_number(t->training, "whole_run_samples_per_s"), samples / longest,
		     "its epochs", "result.json training.whole_run_samples_per_s");
	derive_equal(t->d, derive_number(t->training, "whole_run_payload_bytes_per_s"),
		     payload / longest, "its epochs",
		     "result.json training.whole_run_payload_bytes_per_s");
}

static void check_epochs(struct tree *t)
{
	double wall = 0, compute = 0, payload = 0, device = 0;
	bool whole = derive_number(t->training, "epochs_begun") == (double)t->done;

	for (size_t e = 0; e < json_array_size(t->epochs); e++) {
		const json_t *epoch = json_array_get(t->epochs, e);
		char where[64];

		check_over_ranks(t, epoch, e);
		check_epoch_rates(t, epoch, e);
		check_late(t, epoch, e);
		if (t->all && e < t->done && t->r->has_workload) {
			check_epoch_steps(t, epoch, e);
			check_epoch_wall(t, epoch, e);
		}
		snprintf(where, sizeof(where), "training.epochs[%zu].decomposition", e);
		check_decomposition(t, json_object_get(epoch, "decomposition"), where,
				    derive_number(epoch, "wall_s"),
				    derive_number(epoch, "compute_s"));
		wall += derive_number(epoch, "wall_s");
		compute += derive_number(epoch, "compute_s");
		payload += derive_number(epoch, "payload_bytes");
		device += derive_number(json_object_get(epoch, "process_io"), "device_read_bytes");
	}
	derive_equal(t->d, derive_number(t->training, "payload_bytes"), payload, "its epochs",
		     "result.json training.payload_bytes");
	check_whole_run(t);
	check_late_of_all(t);
	if (whole) {
		derive_equal(t->d, derive_number(t->training, "device_read_bytes"), device,
			     "its epochs", "result.json training.device_read_bytes");
		check_decomposition(t, json_object_get(t->training, "decomposition"),
				    "training.decomposition", wall, compute);
	}
	derive_holds(t->d,
		     json_array_size(t->epochs) ==
			     (size_t)fmax(0, derive_number(t->training, "epochs_done")),
		     "result.json lists %zu epochs of training, but training.epochs_done is %.10g.",
		     json_array_size(t->epochs), derive_number(t->training, "epochs_done"));
}

/* ---- ranks ---- */

static double sum_over(const json_t *list, const char *key)
{
	double sum = 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);

		if (json_is_true(json_object_get(one, "lost")))
			continue;
		sum += derive_number(one, key);
	}
	return sum;
}

static void check_rank(struct tree *t, uint32_t k)
{
	const json_t *one = json_array_get(t->ranks, k);
	double load = 0, compute = 0, wall = derive_number(one, "wall_s"), stamps = 0;

	for (size_t e = 0; e < t->done; e++) {
		struct derive_rank d = derive_rank_epoch(t->r, k, e);

		load += d.load_s;
		compute += d.compute_s;
		stamps += t->r->rank[k].epoch[e].duration_s;
	}
	derive_near(t->d, derive_number(one, "exposed_wait_s"), load, 1e-6 + 1e-9 * load,
		    "the steps of its file", "result.json ranks[%u].exposed_wait_s", k);
	if (wall > 0)
		derive_equal(t->d, derive_number(one, "whole_au_percent"),
			     100 * (compute - late_of(one)) / wall,
			     "the computation in its file over ranks[].wall_s",
			     "result.json ranks[%u].whole_au_percent", k);
	if (fabs(fabs(wall - stamps) - 3600) > 60)
		derive_near(t->d, wall, stamps,
			    STAMP_S * (double)t->done + STAMP_SHARE * fabs(wall),
			    "the durations in its N_per_epoch_stats.json",
			    "result.json ranks[%u].wall_s", k);
}

static void check_ranks(struct tree *t)
{
	static const char *const sums[] = {"samples", "payload_bytes"};
	static const char *const means[] = {"wall_s", "exposed_wait_s", "barrier_wait_s"};
	uint32_t present = 0;
	double requests = 0;
	const char *kind;
	json_t *one;

	for (uint32_t k = 0; k < json_array_size(t->ranks); k++)
		present += !derive_is_lost(t->r, k);
	if (json_array_size(t->ranks) == 0)
		return;
	derive_holds(t->d, json_array_size(t->ranks) == t->r->ranks,
		     "result.json lists %zu ranks, but summary.json has %u accelerators.",
		     json_array_size(t->ranks), t->r->ranks);
	for (size_t i = 0; i < 2; i++)
		derive_equal(t->d, sum_over(t->epochs, sums[i]), sum_over(t->ranks, sums[i]),
			     "the sum over ranks[]", "%s over the epochs of result.json", sums[i]);
	for (size_t i = 0; i < 3; i++)
		derive_near(t->d, sum_over(t->epochs, means[i]),
			    sum_over(t->ranks, means[i]) / fmax(present, 1), 1e-6,
			    "the mean over ranks[]", "%s over the epochs of result.json", means[i]);
	json_object_foreach(json_object_get(t->training, "io"), kind, one) requests +=
		derive_number(one, "requests");
	derive_equal(t->d, requests, sum_over(t->ranks, "requests"), "the sum over ranks[]",
		     "the requests of result.json training.io");
	for (uint32_t k = 0; t->all && t->r->has_workload && k < t->r->ranks; k++)
		if (t->r->rank[k].found && !derive_is_lost(t->r, k))
			check_rank(t, k);
}

/* ---- the rest ---- */

static void check_overshoot(struct tree *t)
{
	const struct time_dist *want = &t->r->workload.train.computation_time;
	double sum = 0, most = 0;
	uint64_t n = 0;

	if (!t->all || !t->r->has_workload || want->kind != TIME_CONSTANT || !(want->a > 0))
		return;
	for (uint32_t k = 0; k < t->r->ranks; k++)
		for (size_t e = 0; t->r->rank[k].found && e < t->done; e++)
			for (size_t b = 0; b < t->r->rank[k].epoch[e].blocks; b++) {
				const struct record_phase *p = &t->r->rank[k].epoch[e].block[b];

				for (size_t s = 0; s < p->computes; s++, n++) {
					sum += p->compute[s] - want->a;
					most = fmax(most, p->compute[s] - want->a);
				}
			}
	if (n == 0)
		return;
	derive_near(t->d, derive_number(t->training, "compute_overshoot_mean_s"), sum / (double)n,
		    2e-9, "the steps in the files of the ranks",
		    "result.json training.compute_overshoot_mean_s");
	derive_near(t->d, derive_number(t->training, "compute_overshoot_max_s"), most, 2e-9,
		    "the steps in the files of the ranks",
		    "result.json training.compute_overshoot_max_s");
}

/* What the configuration plans. */
static void check_plan(struct tree *t)
{
	const struct workload *w = &t->r->workload;
	const json_t *dataset = json_object_get(t->root, "dataset");
	double files = (double)w->dataset.num_files_train, planned;
	double samples = files * (double)w->dataset.num_samples_per_file;

	if (!t->r->has_workload)
		return;
	derive_equal(t->d, derive_number(t->training, "au_target_percent"), 100 * w->metric.au,
		     "metric.au", "result.json training.au_target_percent");
	derive_at_most(t->d, derive_number(t->training, "epochs_planned"), (double)w->train.epochs,
		       0, "train.epochs", "result.json training.epochs_planned");
	derive_equal(t->d, derive_number(dataset, "train_files"), files, "dataset.num_files_train",
		     "result.json dataset.train_files");
	derive_equal(t->d, derive_number(dataset, "samples_per_file"),
		     (double)w->dataset.num_samples_per_file, "dataset.num_samples_per_file",
		     "result.json dataset.samples_per_file");
	planned = derive_number(t->training, "steps_per_epoch") * (double)w->reader.batch_size *
		  t->r->ranks;
	/* each rank's last batch may be a part */
	derive_at_most(t->d, planned, samples, (double)w->reader.batch_size * t->r->ranks,
		       "the number of samples of the dataset",
		       "result.json training.steps_per_epoch x batch size x ranks");
}

/* Need from the configuration, and supply from the rates of the run. */
static void check_need(struct tree *t)
{
	const json_t *need = json_object_get(t->root, "need"),
		     *supply = json_object_get(need, "supply"), *rates;
	const char *of = derive_string(need, "of");
	bool training = of && strcmp(of, "training") == 0;
	double fed;
	struct need n;

	if (!need || !t->r->has_workload)
		return;
	need_find(&t->r->workload, training ? NEED_TRAINING : NEED_EVALUATION,
		  derive_number(need, "sample_file_bytes"), &n);
	derive_equal(t->d, derive_number(need, "computation_s"), n.step_s, "its distribution",
		     "result.json need.computation_s");
	derive_equal(t->d, derive_number(need, "samples_per_s"), n.samples,
		     "batch size and computation time", "result.json need.samples_per_s");
	derive_equal(t->d, derive_number(need, "bytes_per_s"), n.bytes,
		     "need.samples_per_s and need.sample_file_bytes",
		     "result.json need.bytes_per_s");
	derive_equal(t->d, derive_number(need, "samples_per_s_at_target"), n.samples_at_target,
		     "metric.au", "result.json need.samples_per_s_at_target");
	derive_equal(t->d, derive_number(need, "bytes_per_s_at_target"), n.bytes_at_target,
		     "metric.au", "result.json need.bytes_per_s_at_target");
	if (!supply)
		return;
	rates = training ? t->training : json_object_get(t->root, "evaluation");
	derive_equal(t->d, derive_number(supply, "samples_per_s"),
		     derive_number(rates, training ? "whole_run_samples_per_s"
						   : "throughput_mean_samples_per_s"),
		     training ? "the whole-run throughput" : "the throughput of evaluation",
		     "result.json need.supply.samples_per_s");
	fed = need_fed(&n, derive_number(supply, "samples_per_s"));
	derive_equal(t->d, derive_number(supply, "accelerators_fed"), fmin(fed, t->r->ranks),
		     "need.supply.samples_per_s over need.samples_per_s",
		     "result.json need.supply.accelerators_fed");
	fed = need_fed_at_target(&n, derive_number(supply, "samples_per_s"));
	derive_equal(t->d, derive_number(supply, "accelerators_fed_at_target"),
		     isnan(fed) ? fed : fmin(fed, t->r->ranks),
		     "need.supply.samples_per_s over need.samples_per_s_at_target",
		     "result.json need.supply.accelerators_fed_at_target");
}

/* summary.json was made of the same numbers. */
static void check_summary(struct tree *t)
{
	static const char *const same[][4] = {
		{"training", "au_mean_percent", "train_au_mean_percentage"},
		{"training", "au_stdev_percent", "train_au_stdev_percentage"},
		{"training", "throughput_mean_samples_per_s",
		 "train_throughput_mean_samples_per_second"},
		{"training", "throughput_stdev_samples_per_s",
		 "train_throughput_stdev_samples_per_second"},
		{"training", "io_mean_mib_per_s", "train_io_mean_MB_per_second"},
		{"training", "io_stdev_mib_per_s", "train_io_stdev_MB_per_second"},
		{"evaluation", "au_mean_percent", "eval_au_mean_percentage"},
		{"evaluation", "throughput_mean_samples_per_s",
		 "eval_throughput_mean_samples_per_second"},
		{"evaluation", "io_mean_mib_per_s", "eval_io_mean_MB_per_second"},
	};
	const json_t *metric = json_object_get(t->r->summary, "metric"), *lists[2], *au;
	size_t at = 0;

	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		derive_equal(t->d, derive_number(json_object_get(t->root, same[i][0]), same[i][1]),
			     derive_number(metric, same[i][2]), "summary.json", "result.json %s.%s",
			     same[i][0], same[i][1]);
	derive_equal(t->d, derive_number(t->training, "epochs_done"),
		     derive_number(t->r->summary, "epochs"), "summary.json",
		     "result.json training.epochs_done");
	lists[0] = json_object_get(metric, "train_au_percentage");
	lists[1] = json_object_get(metric, "train_throughput_samples_per_second");
	for (size_t e = 0; e < json_array_size(t->epochs); e++) {
		const json_t *epoch = json_array_get(t->epochs, e);

		if (!(derive_number(epoch, "steps") > 0) ||
		    (!derive_has_null(lists[0]) && !isfinite(derive_number(epoch, "au_percent"))))
			continue;
		au = json_array_get(lists[0], at);
		derive_equal(t->d, derive_number(epoch, "au_percent"),
			     json_is_number(au) ? json_number_value(au) : NAN, "summary.json",
			     "result.json training.epochs[%zu].au_percent", e);
		au = json_array_get(lists[1], at++);
		derive_equal(t->d, derive_number(epoch, "throughput_samples_per_s"),
			     json_is_number(au) ? json_number_value(au) : NAN, "summary.json",
			     "result.json training.epochs[%zu].throughput_samples_per_s", e);
	}
}

static void check_checkpoints(struct tree *t, const char *what)
{
	const json_t *part = json_object_get(t->root, "checkpoint");
	const json_t *metric = json_object_get(t->r->summary, "metric");
	const json_t *kind = json_object_get(part, what), *each = json_object_get(kind, "each");
	double duration[2] = {NAN, NAN}, size = 0;
	double sum = 0, rates = 0;
	size_t n = 0;
	char key[64];

	for (size_t i = 0; i < json_array_size(each); i++) {
		const json_t *one = json_array_get(each, i);
		double rate = derive_number(one, "throughput_bytes_per_s");
		double took = derive_number(one, "duration_s");

		if (!json_is_true(json_object_get(one, "whole")))
			continue;
		size = derive_number(part,
				     derive_as_dlio(t->r) ? "dlio_total_bytes" : "total_bytes");
		if (took > 0)
			derive_equal(t->d, rate, size / took, "its size and duration",
				     "result.json checkpoint.%s.each[%zu].throughput_bytes_per_s",
				     what, i);
		derive_at_most(t->d, derive_number(one, "duration_shortest_rank_s"), took, 1e-9,
			       "the longest", "result.json checkpoint.%s.each[%zu] (shortest rank)",
			       what, i);
		derive_at_most(t->d, took, derive_number(one, "span_s"), 1e-9, "its span_s",
			       "result.json checkpoint.%s.each[%zu].duration_s", what, i);
		/* without async a rank stands still for the whole of it */
		if (!json_is_true(json_object_get(part, "async")))
			derive_at_most(t->d, took, derive_number(one, "stall_max_s"), 1e-9,
				       "its stall_max_s",
				       "result.json checkpoint.%s.each[%zu].duration_s", what, i);
		if (derive_as_dlio(t->r))
			took = derive_number(one, "duration_rank_0_s");
		sum += took;
		rates += took > 0 ? size / took : 0;
		duration[0] = fmin(took, isnan(duration[0]) ? took : duration[0]);
		duration[1] = fmax(took, isnan(duration[1]) ? took : duration[1]);
		n++;
	}
	derive_equal(t->d, derive_number(kind, "count"), (double)n, "its list",
		     "result.json checkpoint.%s.count", what);
	if (n == 0)
		return;
	derive_equal(t->d, derive_number(kind, "duration_mean_s"), sum / (double)n, "its list",
		     "result.json checkpoint.%s.duration_mean_s", what);
	derive_equal(t->d, derive_number(kind, "duration_min_s"), duration[0], "its list",
		     "result.json checkpoint.%s.duration_min_s", what);
	derive_equal(t->d, derive_number(kind, "duration_max_s"), duration[1], "its list",
		     "result.json checkpoint.%s.duration_max_s", what);
	derive_near(t->d, derive_number(kind, "throughput_mean_bytes_per_s"), rates / (double)n,
		    1e-6 * rates / (double)n + 1, "its list",
		    "result.json checkpoint.%s.throughput_mean_bytes_per_s", what);
	snprintf(key, sizeof(key), "%s_checkpoint_duration_mean_seconds", what);
	derive_equal(t->d, derive_number(metric, key), derive_number(kind, "duration_mean_s"),
		     "result.json", "summary.json %s", key);
}

static void check_stamps_of_checkpoints(struct tree *t, bool load)
{
	const json_t *each = json_object_get(
		json_object_get(json_object_get(t->root, "checkpoint"), load ? "load" : "save"),
		"each");

	for (size_t i = 0; i < json_array_size(each) && t->all; i++) {
		const json_t *one = json_array_get(each, i);
		double epoch = derive_number(one, "epoch"), number = derive_number(one, "number");
		double took = derive_number(one, "duration_s"), most = NAN;
		char name[48];

		snprintf(name, sizeof(name), "%s_ckpt%.0f", load ? "load" : "save", number);
		for (uint32_t k = 0; k < t->r->ranks; k++) {
			const struct record_rank *rank = &t->r->rank[k];

			if (!rank->found || !(epoch >= 1) || epoch > (double)rank->epochs)
				continue;
			for (size_t c = 0; c < rank->epoch[(size_t)epoch - 1].checkpoints; c++) {
				const struct record_checkpoint *x =
					&rank->epoch[(size_t)epoch - 1].checkpoint[c];

				if (strcmp(x->name, name) == 0 && !(most >= x->seconds))
					most = x->seconds;
			}
		}
		derive_near(t->d, took, most, STAMP_S + STAMP_SHARE * fabs(took),
			    "the longest in N_per_epoch_stats.json",
			    "result.json checkpoint.%s.each[%zu].duration_s",
			    load ? "load" : "save", i);
	}
}

void derive_result(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	const json_t *generation = json_object_get(r->result, "generation");
	struct derive d;
	struct tree t;

	if (!r->ours)
		return;
	d = derive_begin(a, i, "figures", "result",
			 "result.json from the files of the ranks and summary.json; means from "
			 "epochs and ranks; wall times from their parts");
	t = (struct tree){.d = &d, .r = r, .root = r->result};
	t.training = json_object_get(r->result, "training");
	t.epochs = json_object_get(t.training, "epochs");
	t.ranks = json_object_get(r->result, "ranks");
	t.done = derive_epochs(r);
	t.all = derive_all_ranks(r);
	if (t.training && !t.all)
		derive_unchecked(&d, "files of ranks are missing: epochs were compared among "
				     "themselves only");
	if (t.training) {
		check_training_series(&t);
		check_epochs(&t);
		check_ranks(&t);
		check_overshoot(&t);
		check_plan(&t);
	}
	check_need(&t);
	check_eval_series(&t);
	check_summary(&t);
	check_checkpoints(&t, "save");
	check_checkpoints(&t, "load");
	check_stamps_of_checkpoints(&t, false);
	check_stamps_of_checkpoints(&t, true);
	if (derive_number(generation, "wall_s") > 0)
		derive_equal(&d, derive_number(generation, "rate_bytes_per_s"),
			     derive_number(generation, "written_bytes") /
				     derive_number(generation, "wall_s"),
			     "its bytes and wall time", "result.json generation.rate_bytes_per_s");
}
