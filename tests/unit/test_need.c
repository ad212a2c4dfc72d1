/* What one accelerator needs, and how much of it a run gave. */
#include "result_synth.h"

#include <math.h>

#include "result/supply.h"
#include "workload/need.h"

#define GIB 1073741824.0

static void expect_near(double got, double want, double within)
{
	if (!(fabs(got - want) <= within))
		fail_msg("%.12g is not %.12g", got, want);
}

static void load(struct workload *w, const char *name, const char *const *overrides)
{
	struct workload_request req = {.workload = name,
				       .overrides = overrides,
				       .inspect = true,
				       .start_wall_ns = SYNTH_WALL_NS};
	struct err e = {0};

	memset(w, 0, sizeof(*w));
	while (overrides && overrides[req.override_count])
		req.override_count++;
	if (workload_load(w, &req, &e) < 0)
		fail_msg("%s: %s", name, e.text);
}

/* The table of MLPerf Storage's workloads: batch size times record length over computation time. */
static void test_mlperf(void **state)
{
	static const struct {
		const char *name;
		double samples, gib, gib_at_target, target;
	} rows[] = {
		{"unet3d_a100", 11.0, 1.50, 1.35, 0.9},
		{"unet3d_h100", 21.7, 2.96, 2.66, 0.9},
		{"unet3d_b200", 43.2, 5.90, 5.31, 0.9},
		{"resnet50_a100", 919.5, 0.098, 0.088, 0.9},
		{"resnet50_h100", 1785.7, 0.191, 0.172, 0.9},
		{"cosmoflow_a100", 181.5, 0.478, 0.335, 0.7},
		{"cosmoflow_h100", 285.7, 0.753, 0.527, 0.7},
		{"retinanet_b200", 504.7, 0.152, 0.129, 0.85},
		{"retinanet_mi355", 504.7, 0.152, 0.129, 0.85},
		{"dlrm_b200", 43.7e6, 31, 21.7, 0.7},
		{"flux_b200", 35.6, 0.072, 0.065, 0.9},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct workload w;
		struct need n;

		load(&w, rows[i].name, NULL);
		need_find(&w, NEED_TRAINING, w.dataset.record_length_bytes, &n);
		assert_true(n.known);
		/* half of the last digit of the table */
		expect_near(n.samples, rows[i].samples, rows[i].samples > 1e6 ? 5e4 : 0.051);
		expect_near(n.bytes / GIB, rows[i].gib,
			    rows[i].gib > 10  ? 0.5
			    : rows[i].gib < 1 ? 0.00051
					      : 0.0051);
		expect_near(n.bytes_at_target / GIB, rows[i].gib_at_target,
			    rows[i].gib > 10  ? 0.05
			    : rows[i].gib < 1 ? 0.00051
					      : 0.0051);
		expect_near(n.target, rows[i].target, 1e-12);
		workload_release(&w);
	}
}

static void expect_step(const char *time, double seconds)
{
	const char *const overrides[] = {time, "reader.batch_size=6", NULL};
	struct workload w;
	struct need n;

	load(&w, "default", overrides);
	need_find(&w, NEED_TRAINING, 1000, &n);
	expect_near(n.step_s, seconds, seconds * 1e-9);
	expect_near(n.samples, 6 / seconds, 1e-9 / seconds);
	expect_near(n.bytes, 6000 / seconds, 1e-6 / seconds);
	workload_release(&w);
}

/* The mean of what is waited: a draw's absolute value. */
static void test_times(void **state)
{
	(void)state;
	expect_step("train.computation_time=0.25", 0.25);
	expect_step("train.computation_time={mean:0.5,stdev:0.01}", 0.5);
	/* sqrt(2 / pi) where the mean is 0 */
	expect_step("train.computation_time={type:normal,mean:0,stdev:0.1}", 0.0797884560802865);
	/* scipy.stats.foldnorm(1, scale=0.1).mean() */
	expect_step("train.computation_time={type:normal,mean:0.1,stdev:0.1}", 0.116663094117537);
	expect_step("train.computation_time={type:uniform,min:0.1,max:0.3}", 0.2);
	expect_step("train.computation_time={type:gamma,shape:2,scale:0.1}", 0.2);
	expect_step("train.computation_time={type:exponential,scale:0.05}", 0.05);
	expect_step("train.computation_time={type:poisson,lam:3}", 3);
}

static void test_texts(void **state)
{
	const char *const never[] = {"train.computation_time=0", NULL};
	const char *const no_target[] = {"metric.au=0", NULL};
	char text[128], rate[32];
	struct workload w;
	struct need n;

	(void)state;
	load(&w, "unet3d_h100", NULL);
	need_find(&w, NEED_TRAINING, w.dataset.record_length_bytes, &n);
	assert_string_equal(need_text(&n, text, sizeof(text)),
			    "2.96 GiB/s (21.7 samples/s) at 100 %, 2.66 at 90 %");
	/* enough for three and for a third of one */
	expect_near(need_fed(&n, 3 * 7 / 0.323), 3, 1e-9);
	expect_near(need_fed_at_target(&n, 0.9 * 7 / 0.323), 1, 1e-9);
	need_find(&w, NEED_TRAINING, NAN, &n);
	assert_string_equal(need_text(&n, text, sizeof(text)),
			    "21.7 samples/s at 100 %, 19.5 at 90 %");
	assert_true(isnan(n.bytes) && isnan(n.bytes_at_target));
	need_find(&w, NEED_TRAINING, 0, &n);
	assert_string_equal(need_text(&n, text, sizeof(text)),
			    "21.7 samples/s at 100 %, 19.5 at 90 %");
	workload_release(&w);

	load(&w, "resnet50_h100", NULL);
	need_find(&w, NEED_TRAINING, w.dataset.record_length_bytes, &n);
	assert_string_equal(need_text(&n, text, sizeof(text)),
			    "195 MiB/s (1786 samples/s) at 100 %, 176 at 90 %");
	workload_release(&w);

	load(&w, "unet3d_h100", no_target);
	need_find(&w, NEED_TRAINING, w.dataset.record_length_bytes, &n);
	assert_string_equal(need_text(&n, text, sizeof(text)),
			    "2.96 GiB/s (21.7 samples/s) at 100 %");
	assert_true(isnan(need_fed_at_target(&n, 1)));
	workload_release(&w);

	load(&w, "unet3d_h100", never);
	need_find(&w, NEED_TRAINING, w.dataset.record_length_bytes, &n);
	assert_false(n.known);
	assert_true(isnan(need_fed(&n, 1)) && isnan(n.samples));
	assert_string_equal(need_text(&n, text, sizeof(text)),
			    "no fixed rate: its computation takes no time");
	workload_release(&w);

	assert_string_equal(need_rate_text(999, rate, sizeof(rate)), "999 B/s");
	assert_string_equal(need_rate_text(9.996 * 1024, rate, sizeof(rate)), "10.0 KiB/s");
	assert_string_equal(need_rate_text(1023.7 * GIB, rate, sizeof(rate)), "1024 GiB/s");
}

static void test_evaluation(void **state)
{
	const char *const overrides[] = {"reader.batch_size_eval=3", "evaluation.eval_time=0.5",
					 "reader.batch_size=9", NULL};
	struct workload w;
	struct need n;

	(void)state;
	load(&w, "default", overrides);
	need_find(&w, NEED_EVALUATION, 1024, &n);
	expect_near(n.samples, 6, 1e-12);
	expect_near(n.bytes, 6144, 1e-9);
	workload_release(&w);
}

/* Files of a workload: bytes of one sample in them, and decoded. */
static void expect_sample(const char *const *overrides, double file, double decoded, double within,
			  enum dataset_sizes how)
{
	enum dataset_sizes got = SIZES_UNKNOWN;
	struct workload w;
	struct dataset d;
	struct err e = {0};
	double bytes;

	load(&w, "default", overrides);
	assert_int_equal(dataset_init(&d, &w, &e), 0);
	bytes = dataset_sample_file_bytes(&d, DATASET_TRAIN, &got);
	expect_near(bytes, file, within);
	expect_near(dataset_mean_sample_bytes(&d, DATASET_TRAIN), decoded, 1e-9);
	assert_int_equal(got, how);
	assert_true(isnan(dataset_sample_file_bytes(&d, DATASET_EVAL, &got)));
	assert_int_equal(got, SIZES_UNKNOWN);
	dataset_release(&d);
	workload_release(&w);
}

#define FILES "dataset.num_files_train=3", "dataset.num_files_eval=0", "reader.batch_size=1"

static void test_samples(void **state)
{
	const char *const npy[] = {FILES,
				   "framework=pytorch",
				   "dataset.format=npy",
				   "dataset.num_samples_per_file=4",
				   "dataset.record_length_bytes=10000",
				   NULL};
	const char *const indexed[] = {FILES,
				       "framework=pytorch",
				       "dataset.format=indexed_binary",
				       "dataset.num_samples_per_file=10",
				       "dataset.record_length_bytes=10000",
				       NULL};
	const char *const png[] = {FILES,
				   "framework=pytorch",
				   "dataset.format=png",
				   "dataset.num_samples_per_file=4",
				   "dataset.record_length_bytes=10000",
				   NULL};
	const char *const jpeg[] = {FILES, "framework=pytorch", "dataset.format=jpeg",
				    "dataset.record_length_bytes=1000000", NULL};
	struct dataset d;
	struct workload w;
	struct err e = {0};
	double sum = 0;

	(void)state;
	/* 128 bytes of header over four samples */
	expect_sample(npy, 10000 + 128.0 / 4, 10000, 1e-9, SIZES_EXACT);
	/* two indexes of 8 bytes a sample */
	expect_sample(indexed, 10016, 10000, 1e-9, SIZES_EXACT);
	/* an image is the whole file: each of its samples takes all of it */
	expect_sample(png, 10183, 10000, 20, SIZES_EXACT);
	expect_sample(jpeg, 650000, 1000000, 100000, SIZES_LIKELY);

	const char *const drawn[] = {"dataset.num_files_train=40",
				     "framework=pytorch",
				     "dataset.format=npy",
				     "dataset.record_length_bytes=40000",
				     "dataset.record_length_bytes_stdev=15000",
				     NULL};

	load(&w, "default", drawn);
	assert_int_equal(dataset_init(&d, &w, &e), 0);
	for (uint64_t i = 0; i < 40; i++)
		sum += (double)dataset_file_bytes(&d, DATASET_TRAIN, i);
	expect_near(dataset_sample_file_bytes(&d, DATASET_TRAIN, NULL), sum / 40, 1e-6);
	expect_near(dataset_mean_sample_bytes(&d, DATASET_TRAIN), sum / 40 - 128, 1e-6);
	/* these forty are larger or smaller than most */
	assert_true(fabs(sum / 40 - 40128) > 100);
	dataset_release(&d);
	assert_int_equal(dataset_init_typical(&d, &w, &e), 0);
	expect_near(dataset_sample_file_bytes(&d, DATASET_TRAIN, NULL), 40128, 1e-6);
	dataset_release(&d);
	workload_release(&w);
}

/* ---- supply ---- */

#define STEPS 50

/* Two accelerators whose steps wait and compute so long, with a batch of 2. */
static void run_of(struct synth *s, double wait, double compute)
{
	char time[64];
	const char *const overrides[] = {"framework=pytorch", "dataset.format=npy", time, NULL};
	struct err e = {0};

	snprintf(time, sizeof(time), "train.computation_time=%.17g", compute);
	synth_begin(s, 2, 1, overrides);
	for (uint32_t k = 0; k < 2; k++)
		synth_even(s, k, 0, STEPS, wait, wait, compute);
	assert_int_equal(metrics_compute(&s->m, &s->r, &e), 0);
	s->r.judged.epoch = xcalloc(1, sizeof(*s->r.judged.epoch));
	s->r.judged.epochs = 1;
	s->r.judged.epoch[0].train_bytes[LEDGER_RETURNED] = NAN;
	s->r.judged.measured.storage = MEASURED_STORAGE;
}

static void expect_fed(struct synth *s, const char *cause, enum supply_source source,
		       const char *text)
{
	struct supply out;
	char fed[128], instead[64], want[128];

	/* '@' is what served, in words or by its name */
	measured_instead(&s->r.judged.measured, instead, sizeof(instead));
	snprintf(want, sizeof(want), "%.*s%s%s", (int)strcspn(text, "@"), text,
		 strchr(text, '@') ? instead : "", strchr(text, '@') ? strchr(text, '@') + 1 : "");
	s->r.judged.limit.cause = cause_of(cause);
	supply_find(&s->r, &s->m, &out);
	assert_int_equal(out.source, source);
	assert_string_equal(supply_fed_text(&out, fed, sizeof(fed)), want);
}

static void test_causes_are_words(void **state)
{
	char text[32];

	(void)state;
	assert_string_equal(cause_text(CAUSE_OTHER_PROGRAMS, text), "other programs");
	assert_string_equal(cause_text(CAUSE_NONE, text), "");
}

static void test_supply(void **state)
{
	struct supply out;
	struct synth s;
	char text[256];

	(void)state;
	/* computation is a quarter of the time */
	run_of(&s, 0.03, 0.01);
	s.r.judged.epoch[0].train_bytes[LEDGER_RETURNED] = 4e6;
	supply_find(&s.r, &s.m, &out);
	expect_near(out.samples, 4 / 0.04, 1e-6);
	expect_near(out.fed, 0.5, 1e-9);
	expect_near(out.fed_at_target, 0.5 / 0.9, 1e-9);
	expect_near(out.bytes, 4e6 / (STEPS * 0.04), 1e-3);
	assert_false(out.all);
	expect_fed(&s, "bandwidth", SUPPLY_STORAGE, "this storage fed 0.5 of 2");
	expect_fed(&s, "decode", SUPPLY_RUN, "this run fed 0.5 of 2");
	expect_fed(&s, "", SUPPLY_RUN, "this run fed 0.5 of 2");
	s.r.judged.measured.storage = MEASURED_NOT;
	s.r.judged.measured.instead = REASON_INSTEAD_PAGE_CACHE;
	expect_fed(&s, "page_cache", SUPPLY_CACHE, "@ fed 0.5 of 2");
	/* what was slow is not what served the bytes */
	expect_fed(&s, "preprocess", SUPPLY_CACHE, "this run fed 0.5 of 2");
	expect_fed(&s, "decode", SUPPLY_CACHE, "this run fed 0.5 of 2");
	s.r.judged.measured.storage = MEASURED_PART;
	expect_fed(&s, "bandwidth", SUPPLY_CACHE, "the storage and @ fed 0.5 of 2");
	s.r.judged.measured.storage = MEASURED_EMULATED;
	expect_fed(&s, "bandwidth", SUPPLY_EMULATED, "the emulated store fed 0.5 of 2");
	s.r.judged.measured.storage = MEASURED_UNKNOWN;
	expect_fed(&s, "bandwidth", SUPPLY_UNKNOWN, "this run fed 0.5 of 2");
	supply_find(&s.r, &s.m, &out);
	assert_string_equal(supply_text(&out, text, sizeof(text)),
			    "12.5 MiB/s (200 samples/s) at 100 %, 11.3 at 90 %: this run fed 0.5 "
			    "of 2");
	assert_string_equal(supply_text_within(&out, 77, text, sizeof(text)),
			    "12.5 MiB/s (200 samples/s) at 100 %, 11.3 at 90 %: this run fed 0.5 "
			    "of 2");
	assert_string_equal(supply_text_within(&out, 71, text, sizeof(text)),
			    "12.5 MiB/s at 100 %, 11.3 at 90 %: this run fed 0.5 of 2");
	assert_string_equal(supply_text_within(&out, 50, text, sizeof(text)),
			    "12.5 MiB/s at 100 %: this run fed 0.5 of 2");
	synth_end(&s);

	/* kept busy: what the storage could give beyond is not known */
	run_of(&s, 0.0002, 0.01);
	expect_fed(&s, "compute", SUPPLY_AT_LEAST, "this storage fed at least 2");
	expect_fed(&s, "bandwidth", SUPPLY_AT_LEAST, "this storage fed at least 2");
	synth_end(&s);

	/* the target was reached, but the storage limits */
	run_of(&s, 0.0008, 0.01);
	expect_fed(&s, "latency", SUPPLY_STORAGE, "this storage fed 2 of 2 at 90 %");
	synth_end(&s);

	/* next to nothing */
	run_of(&s, 0.99, 0.01);
	expect_fed(&s, "latency", SUPPLY_STORAGE, "this storage fed 0.02 of 2");
	synth_end(&s);

	/* no need, nothing to compare with */
	run_of(&s, 0.01, 0);
	supply_find(&s.r, &s.m, &out);
	assert_true(isnan(out.fed));
	assert_string_equal(supply_text(&out, text, sizeof(text)),
			    "no fixed rate: its computation takes no time");
	synth_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mlperf),  cmocka_unit_test(test_times),
		cmocka_unit_test(test_texts),   cmocka_unit_test(test_evaluation),
		cmocka_unit_test(test_samples), cmocka_unit_test(test_causes_are_words),
		cmocka_unit_test(test_supply),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
