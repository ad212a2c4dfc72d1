/* The gate: which number decides, and what fails a run. */
#include <math.h>

#include "judge/gate.h"
#include "result_synth.h"

/* A run that nothing is wrong with. */
static struct gate_run sound(double au, double rate)
{
	return (struct gate_run){
		.reads = true, .au = au, .samples_per_s = rate, .cached_share = 0.01};
}

static const struct gate_limits check90 = {.check = true, .au = 90};

/* Fails with all of these words (NULL-terminated), in a line for each reason, or passes without
 * any. */
static void expect(const struct gate_run *run, size_t n, struct gate_limits want,
		   const char *const *words)
{
	struct buf why = {0};
	bool passed = gate_passes(run, n, &want, &why);

	assert_int_equal(passed, words == NULL);
	if (passed)
		assert_int_equal(why.len, 0);
	for (size_t i = 0; words && words[i]; i++)
		if (!strstr(why.data, words[i]))
			fail_msg("no '%s' in: %s", words[i], why.data);
	if (!passed) {
		assert_null(strstr(why.data, "; the "));
		assert_false(why.data[why.len - 1] == '.');
	}
	buf_release(&why);
}

#define FAILS(run, n, want, ...) expect(run, n, want, (const char *const[]){__VA_ARGS__, NULL})
#define PASSES(run, n, want) expect(run, n, want, NULL)

static void one_run(void **state)
{
	struct gate_run run = sound(90, 100);
	struct gate_limits rate = {.samples_per_s = 100};

	(void)state;
	PASSES(&run, 1, check90);
	run.au = 89.99;
	FAILS(&run, 1, check90, "AU of the whole run 89.99 % is below the target 90 % (metric.au)");
	/* a rate alone asks for nothing else */
	snprintf(run.failed, sizeof(run.failed), "steady");
	PASSES(&run, 1, rate);
	rate.samples_per_s = 100.5;
	FAILS(&run, 1, rate, "100 samples/s over the whole run",
	      "below the required 100.5 (--min-samples-per-s)");
	run.samples_per_s = NAN;
	FAILS(&run, 1, rate, "cannot be judged: no rate was measured");
	run = sound(NAN, 100);
	FAILS(&run, 1, check90, "cannot be judged: no AU was measured");
	/* checkpoints alone have none, and are not asked for it */
	run.reads = false;
	PASSES(&run, 1, check90);
	run = sound(50, 100);
	run.only_evaluated = true;
	FAILS(&run, 1, check90, "AU of evaluation 50.00 %");
}

static void page_cache(void **state)
{
	struct gate_run run[2] = {sound(95, 1), sound(95, 1)};

	(void)state;
	run->cached_share = 0.10;
	PASSES(run, 1, check90);
	run->cached_share = 0.11;
	FAILS(run, 1, check90, "11 % of the bytes came from the page cache", "allowed");
	FAILS(run, 2, check90, "(1 of 2 runs)");
	run->warm = true;
	PASSES(run, 1, check90);
	run->warm = false;
	run->cached_share = NAN; /* not known is no failure: the verdict 'cache' says so */
	PASSES(run, 1, check90);
	/* asked for, but one run began cold */
	run[0].warm = run[1].warm = true;
	run[0].cached_share = 0.05;
	run[1].cached_share = 0.30;
	FAILS(run, 2, check90, "did not start alike: 5 % to 30 %");
	run[1].cached_share = 0.24;
	PASSES(run, 2, check90);
}

static void verdicts(void **state)
{
	struct gate_run run[2] = {sound(95, 1), sound(95, 1)};

	(void)state;
	snprintf(run[1].failed, sizeof(run[1].failed), "order");
	snprintf(run[1].failure, sizeof(run[1].failure), "A sample came twice.");
	FAILS(run + 1, 1, check90, "the verdict 'order' is FAIL: A sample came twice");
	FAILS(run, 2, check90, "the verdict 'order' is FAIL in 1 of 2 runs");
	run[1].au = 10;
	snprintf(run[1].failed, sizeof(run[1].failed), "order, steady");
	FAILS(run + 1, 1, check90, "AU of the whole run 10.00 %",
	      "\nthe verdicts 'order, steady' are");
}

/* 38, 39, 40: t of 2 degrees of freedom at 95 % is 4.302653, so 39 +- 4.302653 / sqrt(3). */
static void lower_end(void **state)
{
	struct gate_run run[3] = {sound(38, 10), sound(39, 10), sound(40, 10)};
	struct gate_measure m = gate_au(run, 3);
	struct gate_limits want = {.check = true, .au = 36.6};

	(void)state;
	assert_true(m.interval && m.of.n == 3);
	assert_near(m.of.mean, 39, 1e-9);
	assert_near(m.of.stdev, 1, 1e-9);
	assert_near(m.low, 36.5159, 1e-3);
	assert_near(m.high, 41.4841, 1e-3);
	/* every run is above the target, and the lower end is not */
	FAILS(run, 3, want,
	      "AU of the whole run 36.52 % (the lower end of the 95 % interval over "
	      "3 runs)");
	want.au = 36.5;
	PASSES(run, 3, want);
	/* of two: the least, and that is said */
	m = gate_au(run, 2);
	assert_true(!m.interval && m.low == 38 && m.high == 39);
	want.au = 38.5;
	FAILS(run, 2, want, "38.00 % (the lowest of 2 runs; an interval needs 3)");
	want.au = 38;
	PASSES(run, 2, want);
	/* one of three has none: nothing is told by the others */
	run[1].au = NAN;
	want.au = 1;
	FAILS(run, 3, want, "no AU was measured");
}

/* ---- what a result brings to it ---- */

static struct gate_run of(const char *first, double returned, double fetched, uint64_t held,
			  enum ledger_state charged)
{
	const char *overrides[] = {"storage.store=posix", first, NULL};
	struct gate_run run;
	struct synth s;

	synth_begin(&s, 1, 2, overrides);
	for (uint32_t i = 0; i < 2; i++)
		synth_even(&s, 0, i, 60, 0.4, 0, 0.02);
	synth_metrics(&s);
	s.r.judged.epochs = 2;
	s.r.judged.epoch = xcalloc(2, sizeof(*s.r.judged.epoch));
	for (uint32_t i = 0; i < 2; i++) {
		s.r.judged.epoch[i].train_bytes[LEDGER_RETURNED] = returned;
		s.r.judged.epoch[i].train_bytes[LEDGER_CHARGED] = fetched;
		s.r.usage[i].cache_start =
			(struct residency){.known = true, .bytes = 1000, .cached_bytes = held};
	}
	s.r.judged.ledger.line[LEDGER_CHARGED].state = charged;
	gate_run_of(&s.r, &s.m, &run);
	synth_end(&s);
	return run;
}

static void of_a_result(void **state)
{
	struct gate_run run = of("reader.batch_size=2", 1000, 1000, 0, LEDGER_AGREES);

	(void)state;
	assert_true(run.reads && !run.warm && !run.only_evaluated);
	/* 1.2 s of computation in 1.6 s: DLIO's AU would be 100 */
	assert_near(run.au, 75, 0.01);
	assert_near(run.samples_per_s, 120 / 1.6, 0.01);
	assert_near(run.cached_share, 0, 1e-9);
	assert_near(of("reader.batch_size=2", 1000, 300, 800, LEDGER_EXPLAINED).cached_share, 0.7,
		    1e-9);
	/* a cold cache: bytes that are read twice, or holes */
	assert_near(of("reader.batch_size=2", 2000, 1000, 0, LEDGER_EXPLAINED).cached_share, 0,
		    1e-9);
	/* what nothing explains: another program read the files in */
	assert_near(of("reader.batch_size=2", 1000, 400, 0, LEDGER_FLAGGED).cached_share, 0.6,
		    1e-9);
	/* a file system that does not count */
	assert_near(of("reader.batch_size=2", 1000, 0, 900, LEDGER_EXPLAINED).cached_share, 0.9,
		    1e-9);
	assert_near(of("reader.batch_size=2", 1000, 0, 0, LEDGER_EXPLAINED).cached_share, 0, 1e-9);
	/* only what is written out asks for a warm cache */
	assert_true(of("storage.page_cache=keep", 1, 1, 0, LEDGER_AGREES).warm);
	assert_true(of("storage.store=throttle+memory", 1, 1, 0, LEDGER_AGREES).warm);
	assert_false(of("storage.page_cache=cold", 1, 1, 0, LEDGER_AGREES).warm);
}

static void verdicts_of_a_result(void **state)
{
	struct verdict v[3] = {{.check = "steady", .level = VERDICT_FAIL},
			       {.check = "cache", .level = VERDICT_WARN},
			       {.check = "order", .level = VERDICT_FAIL}};
	const struct fact why = FACT(STEADY_NO_EPOCH);
	struct gate_run run;
	char text[128];
	struct synth s;

	(void)state;
	for (int i = 0; i < 3; i++) {
		fact_add(&v[i].facts, why);
		v[i].end_bad = 1;
	}
	synth_begin(&s, 1, 1, NULL);
	synth_even(&s, 0, 0, 60, 0, 0, 0.02);
	synth_metrics(&s);
	s.r.judged.verdict = v;
	s.r.judged.verdicts = 3;
	gate_run_of(&s.r, &s.m, &run);
	assert_string_equal(run.failed, "steady, order");
	assert_string_equal(run.failure, words_of(&why, WORDS_SHORT, text, sizeof(text)));
	s.r.status = RUN_INTERRUPTED;
	gate_run_of(&s.r, &s.m, &run);
	assert_string_equal(run.failed, "");
	s.r.judged.verdict = NULL;
	s.r.judged.verdicts = 0;
	synth_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_run),     cmocka_unit_test(page_cache),
		cmocka_unit_test(verdicts),    cmocka_unit_test(lower_end),
		cmocka_unit_test(of_a_result), cmocka_unit_test(verdicts_of_a_result),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
