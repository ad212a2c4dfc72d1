/* What limits a run, of results made by hand. */
#include "judge/limit_view.h"
#include "result_synth.h"

static struct probe probe_of(uint32_t run_readers, const double *rate, uint32_t n)
{
	struct probe p = {.done = true, .run_readers = run_readers, .count = n};

	for (uint32_t i = 0; i < n; i++)
		p.point[i] = (struct probe_point){
			.readers = 1u << i, .seconds = 2, .samples = (uint64_t)(2 * rate[i])};
	return p;
}

static void a_fall_is_found(void **state)
{
	static const double falls[] = {412, 333, 231, 120, 61},
			    shares[] = {100, 190, 200, 195, 198};
	static const double collapses[] = {90, 170, 300, 110, 105};
	struct probe p = probe_of(6, falls, 5);
	struct fall f = contention_probed(&p);

	(void)state;
	assert_near(f.readers, 8, 0);
	assert_near(f.rate, 120, 0.5);
	assert_near(f.fewer, 1, 0);
	assert_near(f.best, 412, 0.5);
	p = probe_of(4, shares, 5);
	assert_near(contention_probed(&p).readers, 0, 0);
	/* beyond the run's readers only */
	p = probe_of(4, collapses, 5);
	assert_near(contention_probed(&p).readers, 0, 0);
	p = probe_of(8, collapses, 5);
	assert_near(contention_probed(&p).fewer, 4, 0);
	p.done = false;
	assert_near(contention_probed(&p).readers, 0, 0);
	p = (struct probe){0};
	assert_near(contention_probed(&p).readers, 0, 0);
}

/* Blocks of 50 steps with a checkpoint between them; `slow` of them wait, at the beginning of each
 * block or at its end. */
static enum reason reason_of_blocks(bool at_end)
{
	enum { BLOCKS = 7, STEPS = 50, SLOW = 15 };
	double load[STEPS] = {0}, compute[STEPS];
	struct rank_epoch *ep;
	struct synth s;
	enum reason reason;

	synth_begin(&s, 1, 1, NULL);
	ep = &s.r.rank[0].epoch[0];
	ep->save = xcalloc(BLOCKS, sizeof(*ep->save));
	for (int i = 0; i < STEPS; i++) {
		compute[i] = 0.02;
		load[i] = (at_end ? i >= STEPS - SLOW : i < SLOW) ? 0.18 : 0.0002;
	}
	for (int i = 0; i < BLOCKS; i++) {
		synth_block(&s, 0, 0, STEPS, load, compute, NULL, 0);
		if (i + 1 == BLOCKS)
			break;
		ep->save[i] = (struct checkpoint_times){
			.done = true, .begin_ns = ep->end_ns - 1000, .end_ns = ep->end_ns};
		ep->saves++;
	}
	synth_metrics(&s);
	synth_judge(&s);
	reason = s.r.judged.limit.facts.fact[0].reason;
	synth_end(&s);
	return reason;
}

static void slow_reads_after_checkpoints(void **state)
{
	(void)state;
	assert_int_equal(reason_of_blocks(false), REASON_LIMIT_AFTER_CHECKPOINTS);
	assert_int_equal(reason_of_blocks(true), REASON_LIMIT_PHASES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fall_is_found),
		cmocka_unit_test(slow_reads_after_checkpoints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
