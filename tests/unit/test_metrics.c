/* AU and throughput: known answers from step times made by hand, DLIO's own numbers from its own
 * files. */
#include "result_synth.h"

#include <jansson.h>
#include <math.h>

#define DLIO_MODE "compat.dlio=true"

static const double waits[] = {1.0, 0.1, 0.1, 0.1, 0.1};
static const double work[] = {0.2, 0.2, 0.2, 0.2, 0.2};

static void one_rank(void **state)
{
	struct synth s;
	const struct epoch_metrics *e;

	(void)state;
	synth_begin(&s, 1, 1, NULL);
	synth_block(&s, 0, 0, 5, waits, work, NULL, 0);
	synth_metrics(&s);
	e = &s.m.epoch[0];
	assert_true(e->train_valid);
	assert_int_equal(e->measured_steps, 4);
	assert_int_equal(e->steps, 5);
	assert_near(e->train_au, 100 * 0.8 / 1.2, 1e-9);
	assert_near(e->train_throughput, 4 * 2 / 1.2, 1e-9);
	assert_near(e->train_io_mib, 4 * 2 / 1.2 * 65536 / 1048576, 1e-9);
	assert_near(e->wall_s, 2.4, 1e-9);
	assert_near(e->whole_au, 100 * 1.0 / 2.4, 1e-9);
	assert_near(e->whole_throughput, 10 / 2.4, 1e-9);
	assert_near(e->whole_payload_rate, 10 * 65536 / 2.4, 1e-6);
	assert_near(e->exposed_wait_s, 1.4, 1e-9);
	assert_near(s.m.train_au.mean, e->train_au, 0);
	assert_near(s.m.train_au.stdev, 0, 0);
	assert_int_equal(s.m.payload_bytes, 10 * 65536);
	synth_end(&s);
}

/* MB/s come from the bytes that were delivered, whatever the workload says of their size. */
static void bytes_are_counted(void **state)
{
	static const char *const dlio[] = {DLIO_MODE, NULL};
	struct synth s;

	(void)state;
	synth_begin(&s, 1, 1, NULL);
	synth_block(&s, 0, 0, 5, waits, work, NULL, 0);
	s.r.rank[0].epoch[0].payload_bytes *= 3;
	synth_metrics(&s);
	assert_near(s.m.train_io.mean, 3 * 4 * 2 / 1.2 / 16, 1e-9);
	synth_end(&s);
	synth_begin(&s, 1, 1, dlio);
	synth_block(&s, 0, 0, 5, waits, work, NULL, 0);
	s.r.rank[0].epoch[0].payload_bytes *= 3;
	synth_metrics(&s);
	assert_near(s.m.train_io.mean, 3 * 2 / 1.2 / 16, 1e-9);
	synth_end(&s);
}

/* The proc times of excluded steps leave the window; their barriers stay in, as in DLIO. */
static void barriers_stay(void **state)
{
	static const double barrier[] = {0.4, 0, 0, 0, 0.1};
	struct synth s;

	(void)state;
	synth_begin(&s, 1, 1, NULL);
	synth_block(&s, 0, 0, 5, waits, work, barrier, 0.3);
	synth_metrics(&s);
	assert_near(s.m.epoch[0].train_au, 100 * 0.8 / (1.2 + 0.4 + 0.1 + 0.3), 1e-9);
	assert_near(s.m.epoch[0].barrier_wait_s, 0.5, 1e-9);
	synth_end(&s);
}

/* Exclusions count steps of the epoch, not of each block; DLIO's count anew in each block. */
static void blocks(void **state)
{
	static const char *const ends[] = {"output.metric.exclude_start_steps=4",
					   "output.metric.exclude_end_steps=1", NULL};
	static const char *const dlio[] = {DLIO_MODE, NULL};
	static const double load[] = {0.3, 0.1, 0.1, 0.5, 0.1, 0.1};
	static const double compute[] = {0.2, 0.2, 0.2, 0.3, 0.3, 0.3};
	double au1, au2;
	struct synth s;

	(void)state;
	synth_begin(&s, 1, 1, ends);
	synth_block(&s, 0, 0, 3, load, compute, NULL, 0);
	synth_block(&s, 0, 0, 3, load + 3, compute + 3, NULL, 0);
	synth_metrics(&s);
	/* only step 5 of 6 is left */
	assert_int_equal(s.m.epoch[0].measured_steps, 1);
	assert_near(s.m.epoch[0].train_au, 100 * 0.3 / 0.4, 1e-9);
	assert_near(s.m.epoch[0].train_throughput, 2 / 0.4, 1e-9);
	synth_end(&s);

	synth_begin(&s, 1, 1, NULL);
	synth_block(&s, 0, 0, 3, load, compute, NULL, 0);
	synth_block(&s, 0, 0, 3, load + 3, compute + 3, NULL, 0);
	synth_metrics(&s);
	au1 = 100 * 0.4 / 0.6;
	au2 = 100 * 0.9 / 1.6;
	assert_int_equal(s.m.epoch[0].measured_steps, 5);
	assert_near(s.m.epoch[0].train_au, (2 * au1 + 3 * au2) / 5, 1e-9);
	synth_end(&s);

	synth_begin(&s, 1, 1, dlio);
	synth_block(&s, 0, 0, 3, load, compute, NULL, 0);
	synth_block(&s, 0, 0, 3, load + 3, compute + 3, NULL, 0);
	synth_metrics(&s);
	au2 = 100 * 0.6 / 0.8;
	assert_near(s.m.epoch[0].train_au, (3 * au1 + 3 * au2) / 6, 1e-9);
	assert_near(s.m.epoch[0].train_throughput, (3 * (2 / 0.6) + 3 * (2 / 0.8)) / 6, 1e-9);
	synth_end(&s);
}

/* A block without steps, as a checkpoint after the last one opens, has no part in anything. */
static void empty_block(void **state)
{
	struct synth s;

	(void)state;
	synth_begin(&s, 1, 1, NULL);
	synth_block(&s, 0, 0, 5, waits, work, NULL, 0);
	synth_block(&s, 0, 0, 0, waits, work, NULL, 0);
	synth_metrics(&s);
	assert_true(s.m.epoch[0].train_valid);
	assert_near(s.m.epoch[0].train_au, 100 * 0.8 / 1.2, 1e-9);
	synth_end(&s);
}

static void impossible(void **state)
{
	static const char *const none[] = {NULL};
	static const char *const dlio[] = {DLIO_MODE, NULL};
	static const char *const more[] = {"output.metric.exclude_start_steps=9", NULL};
	const char *const *modes[] = {none, dlio, more};
	struct synth s;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		for (uint64_t steps = 0; steps < 2; steps++) {
			synth_begin(&s, 1, 1, modes[i]);
			synth_block(&s, 0, 0, steps, waits, work, NULL, 0);
			synth_metrics(&s);
			assert_false(s.m.epoch[0].train_valid);
			assert_true(s.m.epoch[0].why[0]);
			assert_int_equal(s.m.train_au.count, 0);
			assert_int_equal(s.m.train_throughput.count, 0);
			assert_int_equal(s.m.whole_au.count, steps);
			synth_end(&s);
		}
	}
	synth_begin(&s, 1, 1, none);
	synth_block(&s, 0, 0, 1, waits, work, NULL, 0);
	synth_metrics(&s);
	assert_non_null(strstr(s.m.epoch[0].why, "exclude_start_steps=1"));
	assert_near(s.m.epoch[0].whole_au, 100 * 0.2 / 1.2, 1e-9);
	synth_end(&s);
	/* two steps: DLIO's (n - 2) gives 0 samples/s, the mended formula counts one */
	synth_begin(&s, 1, 1, none);
	synth_block(&s, 0, 0, 2, waits, work, NULL, 0);
	synth_metrics(&s);
	assert_near(s.m.epoch[0].train_throughput, 2 / 0.3, 1e-9);
	synth_end(&s);
	synth_begin(&s, 1, 1, dlio);
	synth_block(&s, 0, 0, 2, waits, work, NULL, 0);
	synth_metrics(&s);
	assert_near(s.m.epoch[0].train_throughput, 0, 0);
	synth_end(&s);
	/* a block of one step behind a checkpoint: AU 0 in DLIO, which counts */
	for (int mode = 0; mode < 2; mode++) {
		synth_begin(&s, 1, 1, mode ? dlio : none);
		synth_block(&s, 0, 0, 2, waits, work, NULL, 0);
		synth_block(&s, 0, 0, 1, waits, work, NULL, 0);
		synth_metrics(&s);
		assert_true(s.m.epoch[0].train_valid);
		if (mode)
			assert_near(s.m.epoch[0].train_au, 2 / 3.0 * 100 * 0.2 / 0.3, 1e-9);
		synth_end(&s);
	}
}

static void ranks(void **state)
{
	struct synth s;

	(void)state;
	synth_begin(&s, 2, 1, NULL);
	synth_even(&s, 0, 0, 5, 1.0, 0.1, 0.2);
	synth_even(&s, 1, 0, 5, 2.0, 0.3, 0.2);
	synth_metrics(&s);
	assert_near(s.m.epoch[0].train_au, (100 * 0.8 / 1.2 + 100 * 0.8 / 2.0) / 2, 1e-9);
	assert_near(s.m.epoch[0].train_au_min, 40, 1e-9);
	assert_near(s.m.epoch[0].train_au_max, 200 / 3.0, 1e-9);
	assert_near(s.m.epoch[0].train_throughput, 8 / 1.2 + 8 / 2.0, 1e-9);
	assert_near(s.m.epoch[0].whole_au_min, 100 * 1.0 / 4.2, 1e-9);
	/* all samples over the time of the slowest rank */
	assert_near(s.m.epoch[0].whole_throughput, 20 / 4.2, 1e-9);
	synth_end(&s);

	synth_begin(&s, 2, 1, NULL);
	synth_even(&s, 0, 0, 5, 1.0, 0.1, 0.2);
	synth_even(&s, 1, 0, 1, 1.0, 0.1, 0.2);
	synth_metrics(&s);
	assert_false(s.m.epoch[0].train_valid);
	assert_non_null(strstr(s.m.epoch[0].why, "rank 1: 1 step was completed"));
	assert_near(s.m.epoch[0].train_au, 0, 0);
	synth_end(&s);
}

static const double eval_work[] = {0.1, 0.1, 0.1, 0.1};

static void evaluation(void **state)
{
	static const char *const on[] = {"workflow.evaluation=true", NULL};
	static const char *const dlio[] = {"workflow.evaluation=true", DLIO_MODE, NULL};
	double fast[] = {0.5, 0.1, 0.1, 0.1}, slow[] = {0.5, 0.3, 0.3, 0.3};
	struct synth s;

	(void)state;
	for (int mode = 0; mode < 2; mode++) {
		synth_begin(&s, 2, 2, mode ? dlio : on);
		for (uint32_t i = 0; i < 2; i++) {
			synth_even(&s, 0, i, 5, 1.0, 0.1, 0.2);
			synth_even(&s, 1, i, 5, 1.0, 0.1, 0.2);
			synth_eval(&s, 0, i, 4, fast, eval_work, 0);
			synth_eval(&s, 1, i, 4, slow, eval_work, 0);
		}
		synth_metrics(&s);
		if (!mode) {
			assert_int_equal(s.m.evals, 2);
			assert_near(s.m.eval_au_list[0], (50 + 25) / 2.0, 1e-9);
			/* samples over the whole wall time, first step included, as DLIO */
			assert_near(s.m.eval_throughput_list[1], 4 / 1.2 + 4 / 1.8, 1e-9);
			assert_near(s.m.eval_io.mean, (4 / 1.2 + 4 / 1.8) / 16, 1e-9);
		} else {
			assert_int_equal(s.m.evals, 4);
			assert_near(s.m.eval_au_list[1], 25, 1e-9);
			assert_near(s.m.eval_au_list[2], 12.5, 1e-9);
			assert_near(s.m.eval_throughput_list[3], 4 / 1.8, 1e-9);
		}
		synth_end(&s);
	}
}

static void evaluation_too_short(void **state)
{
	static const char *const on[] = {"workflow.evaluation=true", NULL};
	struct synth s;

	(void)state;
	synth_begin(&s, 1, 1, on);
	synth_even(&s, 0, 0, 5, 1.0, 0.1, 0.2);
	synth_eval(&s, 0, 0, 0, waits, eval_work, 0);
	synth_metrics(&s);
	assert_int_equal(s.m.evals, 1);
	assert_true(isnan(s.m.eval_au_list[0]));
	assert_int_equal(s.m.eval_au.count, 0);
	assert_string_equal(s.m.epoch[0].eval_why, "no step was completed");
	synth_end(&s);
}

/* Where all steps are excluded there is no AU; the throughput is over all steps and stays. */
static void evaluation_excluded(void **state)
{
	static const char *const on[] = {"workflow.evaluation=true",
					 "output.metric.exclude_start_steps=4", NULL};
	struct synth s;

	(void)state;
	synth_begin(&s, 1, 1, on);
	synth_even(&s, 0, 0, 6, 1.0, 0.1, 0.2);
	synth_eval(&s, 0, 0, 4, waits, eval_work, 0);
	synth_metrics(&s);
	assert_false(s.m.epoch[0].eval_valid);
	assert_int_equal(s.m.eval_au.count, 0);
	assert_int_equal(s.m.eval_throughput.count, 1);
	assert_true(s.m.epoch[0].eval_throughput > 0);
	assert_near(s.m.eval_throughput.mean, s.m.epoch[0].eval_throughput, 1e-9);
	synth_end(&s);
}

/* With a cap on all steps, later epochs make none; they must not pull means down. */
static void capped(void **state)
{
	static const char *const cap[] = {"train.total_training_steps=8",
					  "output.metric.exclude_end_steps=1", NULL};
	double au, rate;
	uint64_t measured;
	char why[256];
	struct synth s;

	(void)state;
	synth_begin(&s, 1, 3, cap);
	synth_even(&s, 0, 0, 5, 1.0, 0.1, 0.2);
	synth_even(&s, 0, 1, 3, 1.0, 0.1, 0.2);
	synth_even(&s, 0, 2, 0, 1.0, 0.1, 0.2);
	synth_metrics(&s);
	assert_int_equal(s.m.train_au.count, 2);
	assert_int_equal(s.m.whole_au.count, 2);
	assert_near(s.m.train_au.mean, 200 / 3.0, 1e-9);
	assert_int_equal(s.m.epoch[1].measured_steps, 1);
	/* the log line of that epoch, written before its result is whole, says the same */
	assert_true(metrics_phase(&s.r, &s.r.rank[0].epoch[1].block[0], &au, &rate, &measured, why,
				  sizeof(why)));
	assert_int_equal(measured, 1);
	assert_near(au, s.m.epoch[1].train_au, 1e-9);
	assert_near(rate, s.m.epoch[1].train_throughput, 1e-9);
	synth_end(&s);
}

static void overshoots(void **state)
{
	static const double late[] = {0.0201, 0.0202, 0.0206};
	static const char *const normal[] = {"train.computation_time={mean: 0.02, stdev: 0.001}",
					     NULL};
	struct synth s;

	(void)state;
	synth_begin(&s, 1, 1, NULL);
	synth_block(&s, 0, 0, 3, waits, late, NULL, 0);
	synth_metrics(&s);
	assert_true(s.m.overshoot_known);
	assert_near(s.m.compute_overshoot_mean_s, 0.0003, 1e-9);
	assert_near(s.m.compute_overshoot_max_s, 0.0006, 1e-9);
	synth_end(&s);
	synth_begin(&s, 1, 1, normal);
	synth_block(&s, 0, 0, 3, waits, late, NULL, 0);
	synth_metrics(&s);
	assert_false(s.m.overshoot_known);
	synth_end(&s);
}

static void nothing_trained(void **state)
{
	struct synth s;

	(void)state;
	synth_begin(&s, 1, 1, NULL);
	s.r.epochs_done = 0;
	synth_metrics(&s);
	assert_int_equal(s.m.epochs, 0);
	assert_int_equal(s.m.train_au.count, 0);
	synth_end(&s);
}

static void statistics(void **state)
{
	const double v[] = {2, NAN, 4, 4, 4, 5, 5, 7, 9, INFINITY};
	struct series_stat s = series_stat_of(v, 10);

	(void)state;
	assert_int_equal(s.count, 8);
	assert_near(s.mean, 5, 1e-12);
	assert_near(s.stdev, 2, 1e-12);
	assert_near(s.min, 2, 0);
	assert_near(s.max, 9, 0);
	s = series_stat_of(v, 0);
	assert_int_equal(s.count, 0);
	assert_near(s.mean, 0, 0);
}

/* Whatever the times are, a number is finite and not negative, and AU is at most 100. */
static void never_nonsense(void **state)
{
	static const char *const on[] = {"workflow.evaluation=true", NULL};
	static const char *const dlio[] = {"workflow.evaluation=true", DLIO_MODE, NULL};
	uint32_t seed = 7;
	struct synth s;

	(void)state;
	for (int round = 0; round < 400; round++) {
		uint64_t n = (uint64_t)round % 6;

		synth_begin(&s, 1, 1, round % 2 ? dlio : on);
		s.w.output.metric.exclude_start_steps = round % 5 - 1;
		s.w.output.metric.exclude_end_steps = round % 3 - 1;
		synth_block(&s, 0, 0, n, waits, work, NULL, 0);
		synth_eval(&s, 0, 0, n, waits, work, 0);
		for (uint64_t i = 0; i < n; i++) {
			seed = seed * 1664525u + 1013904223u;
			s.r.rank[0].epoch[0].block[0].step[i].compute_end_ns += (int32_t)seed;
			s.r.rank[0].epoch[0].eval.step[i].ask_ns -= (int32_t)seed;
		}
		if (round % 7 == 0)
			s.r.rank[0].epoch[0].block[0].end_ns = 0;
		synth_metrics(&s);
		for (int k = 0; k < 2; k++) {
			const struct epoch_metrics *e = &s.m.epoch[0];
			double au = k ? e->eval_au : e->train_au;
			double rate = k ? e->eval_throughput : e->train_throughput;

			assert_true(isfinite(au) && au >= 0 && au <= 100);
			assert_true(isfinite(rate) && rate >= 0);
		}
		synth_end(&s);
	}
}

/* ---- DLIO's own files ---- */

static json_t *fixture(const char *name)
{
	char path[512];
	json_error_t why;
	json_t *j;

	snprintf(path, sizeof(path), "%s/dlio-output/%s", TEST_DATA, name);
	j = json_load_file(path, 0, &why);
	if (!j)
		fail_msg("%s: %s", path, why.text);
	return j;
}

static json_t *at(json_t *j, const char *a, const char *b)
{
	json_t *v = json_object_get(json_object_get(j, a), b);

	assert_non_null(v);
	return v;
}

static double real_at(const json_t *list, size_t i)
{
	return json_number_value(json_array_get(list, i));
}

static void read_list(const json_t *list, double out[16], size_t n)
{
	assert_int_equal(json_array_size(list), n);
	for (size_t i = 0; i < n; i++)
		out[i] = real_at(list, i);
}

/* One phase of the fixture; DLIO's wall time of it is in its throughput, to the last bit. */
static void load_phase(struct synth *s, json_t *epoch, uint32_t rank, uint32_t number, bool eval)
{
	const char *name = eval ? "eval" : "block1";
	size_t n = eval ? 4 : 6;
	double load[16], compute[16], proc[16], rate, wall;
	struct phase *p;

	read_list(at(epoch, "load", name), load, n);
	read_list(at(epoch, "compute", name), compute, n);
	read_list(at(epoch, "proc", name), proc, n);
	/* what lies between the two is the loop's own time, part of proc */
	for (size_t i = 0; i < n; i++)
		load[i] = proc[i] - compute[i];
	if (eval)
		synth_eval(s, rank, number, n, load, compute, 0);
	else
		synth_block(s, rank, number, n, load, compute, NULL, 0);
	p = eval ? &s->r.rank[rank].epoch[number].eval : &s->r.rank[rank].epoch[number].block[0];
	rate = json_number_value(at(epoch, "throughput", name));
	wall = eval ? 4 / rate : (6 - 2) * 2 / rate + proc[0];
	p->end_ns = p->begin_ns + synth_ns(wall);
}

static double stamp_s(const char *text)
{
	int h, m;
	double sec;

	assert_int_equal(sscanf(strchr(text, 'T'), "T%d:%d:%lf", &h, &m, &sec), 3);
	return h * 3600 + m * 60 + sec;
}

static void load_fixture(struct synth *s)
{
	static const char *const keys[] = {DLIO_MODE, "workflow.evaluation=true", NULL};
	char name[64], number[8];

	synth_begin(s, 2, 2, keys);
	for (uint32_t k = 0; k < 2; k++) {
		snprintf(name, sizeof(name), "%u_output.json", k);
		json_t *out = fixture(name);

		for (uint32_t i = 0; i < 2; i++) {
			snprintf(number, sizeof(number), "%u", i + 1);
			load_phase(s, json_object_get(out, number), k, i, false);
			load_phase(s, json_object_get(out, number), k, i, true);
		}
		json_decref(out);
	}
}

static void as_dlio(void **state)
{
	json_t *summary = fixture("summary.json"), *metric = json_object_get(summary, "metric");
	struct synth s;
	static const struct {
		const char *name;
		size_t member;
		bool stdev;
	} rows[] = {
		{"train_au_mean_percentage", offsetof(struct run_metrics, train_au), false},
		{"train_au_stdev_percentage", offsetof(struct run_metrics, train_au), true},
		{"train_throughput_mean_samples_per_second",
		 offsetof(struct run_metrics, train_throughput), false},
		{"train_throughput_stdev_samples_per_second",
		 offsetof(struct run_metrics, train_throughput), true},
		{"train_io_mean_MB_per_second", offsetof(struct run_metrics, train_io), false},
		{"train_io_stdev_MB_per_second", offsetof(struct run_metrics, train_io), true},
		{"eval_au_mean_percentage", offsetof(struct run_metrics, eval_au), false},
		{"eval_au_stdev_percentage", offsetof(struct run_metrics, eval_au), true},
		{"eval_throughput_mean_samples_per_second",
		 offsetof(struct run_metrics, eval_throughput), false},
		{"eval_throughput_stdev_samples_per_second",
		 offsetof(struct run_metrics, eval_throughput), true},
		{"eval_io_mean_MB_per_second", offsetof(struct run_metrics, eval_io), false},
		{"eval_io_stdev_MB_per_second", offsetof(struct run_metrics, eval_io), true},
	};

	(void)state;
	load_fixture(&s);
	synth_metrics(&s);
	for (size_t i = 0; i < 2; i++) {
		const struct epoch_metrics *e = &s.m.epoch[i];

		assert_near(e->train_au, real_at(json_object_get(metric, "train_au_percentage"), i),
			    1e-5);
		assert_near(
			e->train_throughput,
			real_at(json_object_get(metric, "train_throughput_samples_per_second"), i),
			1e-5);
	}
	assert_int_equal(s.m.evals, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_near(s.m.eval_au_list[i],
			    real_at(json_object_get(metric, "eval_au_percentage"), i), 1e-5);
		assert_near(
			s.m.eval_throughput_list[i],
			real_at(json_object_get(metric, "eval_throughput_samples_per_second"), i),
			1e-5);
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct series_stat *have =
			(const struct series_stat *)((const char *)&s.m + rows[i].member);

		assert_near(rows[i].stdev ? have->stdev : have->mean,
			    json_number_value(json_object_get(metric, rows[i].name)), 1e-5);
	}
	json_decref(summary);
	synth_end(&s);
}

/* With the walls of the time stamps, which DLIO takes a little outside those of its formula. */
static void as_dlio_by_time_stamps(void **state)
{
	json_t *summary = fixture("summary.json"), *metric = json_object_get(summary, "metric");
	char name[64], number[8];
	struct synth s;

	(void)state;
	load_fixture(&s);
	for (uint32_t k = 0; k < 2; k++) {
		snprintf(name, sizeof(name), "%u_per_epoch_stats.json", k);
		json_t *spans = fixture(name);

		for (uint32_t i = 0; i < 2; i++) {
			struct phase *p = &s.r.rank[k].epoch[i].block[0];

			snprintf(number, sizeof(number), "%u", i + 1);
			json_t *block = at(spans, number, "block1");
			double wall = stamp_s(json_string_value(json_object_get(block, "end"))) -
				      stamp_s(json_string_value(json_object_get(block, "start")));

			p->end_ns = p->begin_ns + synth_ns(wall);
		}
		json_decref(spans);
	}
	synth_metrics(&s);
	for (size_t i = 0; i < 2; i++) {
		double au = real_at(json_object_get(metric, "train_au_percentage"), i);
		double rate =
			real_at(json_object_get(metric, "train_throughput_samples_per_second"), i);

		assert_near(s.m.epoch[i].train_au, au, au * 0.005);
		assert_near(s.m.epoch[i].train_throughput, rate, rate * 0.005);
	}
	json_decref(summary);
	synth_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_rank),
		cmocka_unit_test(bytes_are_counted),
		cmocka_unit_test(barriers_stay),
		cmocka_unit_test(blocks),
		cmocka_unit_test(empty_block),
		cmocka_unit_test(impossible),
		cmocka_unit_test(ranks),
		cmocka_unit_test(evaluation),
		cmocka_unit_test(evaluation_too_short),
		cmocka_unit_test(evaluation_excluded),
		cmocka_unit_test(capped),
		cmocka_unit_test(overshoots),
		cmocka_unit_test(nothing_trained),
		cmocka_unit_test(statistics),
		cmocka_unit_test(never_nonsense),
		cmocka_unit_test(as_dlio),
		cmocka_unit_test(as_dlio_by_time_stamps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
