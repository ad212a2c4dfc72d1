/* The rate of reading while readers are busy, of results made by hand. */
#include "judge/busy_reading.h"

#include <math.h>

#include "result_synth.h"

#define STEPS 40

/* One rank and three readers, each batch `service` s; the first `ahead` are read at once, the rest
 * one by one, when one has been used, a step of 0.1 s each. */
static void read_ahead(struct synth *s, uint64_t ahead, double service)
{
	double load[STEPS] = {service}, compute[STEPS], done = 0;
	struct rank_epoch *ep;

	synth_begin(s, 1, 1, NULL);
	for (int i = 0; i < STEPS; i++)
		compute[i] = 0.1;
	ep = &s->r.rank[0].epoch[0];
	ep->block = xcalloc(1, sizeof(*ep->block));
	ep->blocks = ep->block_capacity = 1;
	synth_phase(&ep->block[0], PHASE_BLOCK, 0, 0, STEPS, 2, load, compute, NULL, 0);
	ep->train_end_ns = ep->end_ns = ep->block[0].end_ns;
	s->r.rank[0].workers = 3;
	s->r.rank[0].prefetch_batches = ahead;
	for (uint64_t i = 0; i < STEPS; i++) {
		struct step_times *t = &ep->block[0].step[i];
		double used = service + 0.1 * (double)(i - ahead + 1);

		done = i < ahead ? service * (double)(i / 3 + 1) : fmax(used, done) + service;
		t->service_us = (uint32_t)(service * 1e6);
		t->ready_us = (uint32_t)fmax(0, (double)t->got_ns / 1e3 - done * 1e6);
	}
}

static void a_burst_is_told_from_what_follows(void **state)
{
	struct busy_reading b;
	struct err e = {0};
	struct synth s;

	(void)state;
	read_ahead(&s, 30, 0.05);
	assert_int_equal(busy_reading_find(&s.r, 1, &b, &e), 0);
	/* thirty batches, three at a time, in half a second; then one reader of three is too few */
	assert_true(fabs(b.batches / b.busy_s - 60) < 1);
	assert_true(fabs(b.busy_s - 0.5) < 0.02);
	assert_true(b.later_s == 0 && b.later_batches == 0);
	assert_true(fabs(b.wall_s - 4.05) < 0.01);
	synth_end(&s);
}

static void later_reading_is_told_apart(void **state)
{
	struct busy_reading b;
	struct err e = {0};
	struct synth s;

	(void)state;
	/* one reader is always busy: a batch each 0.1 s, read in 0.1 s */
	read_ahead(&s, 1, 0.1);
	assert_int_equal(busy_reading_find(&s.r, 1, &b, &e), 0);
	assert_true(fabs(b.batches / b.busy_s - 10) < 0.5);
	assert_true(b.later_s > 3 && b.later_s < b.busy_s);
	assert_true(fabs(b.later_batches / b.later_s - 10) < 0.5);
	synth_end(&s);
}

static void lost_ranks_and_no_steps(void **state)
{
	struct busy_reading b;
	struct err e = {0};
	struct synth s;

	(void)state;
	synth_begin(&s, 2, 1, NULL);
	s.r.rank[0].lost = s.r.rank[1].lost = true;
	assert_int_equal(busy_reading_find(&s.r, 1, &b, &e), 0);
	assert_true(b.busy_s == 0 && b.wall_s == 0);
	s.r.rank[0].lost = false;
	s.r.rank[0].epoch[0].train_end_ns = 1000;
	assert_int_equal(busy_reading_find(&s.r, 1, &b, &e), 0);
	assert_true(b.busy_s == 0 && b.batches == 0);
	synth_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_is_told_from_what_follows),
		cmocka_unit_test(later_reading_is_told_apart),
		cmocka_unit_test(lost_ranks_and_no_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
