/* Who and what was slow, found in results made by hand. */
#include "judge/stragglers.h"

#include <math.h>

#include "judge/decompose.h"
#include "result/fields.h"
#include "result/sink.h"
#include "result/text.h"
#include "result_synth.h"

#define STEPS 10

/* Four ranks on two hosts; ranks 2 and 3, on the second, take turns in coming last. */
static void two_hosts(struct synth *s)
{
	static const double compute[STEPS] = {.01, .01, .01, .01, .01, .01, .01, .01, .01, .01};

	synth_begin(s, 4, 1, NULL);
	s->r.process = xcalloc(2, sizeof(*s->r.process));
	s->r.processes = s->r.nodes = 2;
	for (uint32_t p = 0; p < 2; p++) {
		struct result_process *o = &s->r.process[p];

		o->node = p;
		o->own = p == 0;
		o->first_rank = 2 * p;
		o->ranks = 2;
		snprintf(o->hostname, sizeof(o->hostname), "host%u", p);
		snprintf(o->host.hostname, sizeof(o->host.hostname), "host%u", p);
	}
	for (uint32_t k = 0; k < 4; k++) {
		struct rank_epoch *ep = &s->r.rank[k].epoch[0];
		double load[STEPS], barrier[STEPS];

		for (int i = 0; i < STEPS; i++) {
			bool last = (k == 2 && i % 2 == 0) || (k == 3 && i % 2 == 1);

			load[i] = last ? 0.02 : 0.001;
			barrier[i] = last ? 0.0001 : 0.0191;
		}
		ep->block = xcalloc(1, sizeof(*ep->block));
		ep->blocks = ep->block_capacity = 1;
		synth_phase(&ep->block[0], PHASE_BLOCK, 0, 0, STEPS, 2, load, compute, barrier, 0);
		ep->train_end_ns = ep->end_ns = ep->block[0].end_ns;
		ep->train_end_wall_ns = ep->end_wall_ns = ep->block[0].end_wall_ns;
	}
}

static void the_slow_host_is_found(void **state)
{
	const struct decomposition *d;
	const struct part *all;
	struct synth s;
	json_t *o;

	(void)state;
	two_hosts(&s);
	synth_metrics(&s);
	synth_judge(&s);
	d = &s.r.judged.time;
	assert_int_equal(d->last_node, 1);
	assert_true(d->last_node_share > 0.999);
	assert_true(d->last_share < 0.51);
	o = result_tree(&s.r, &s.m);
	all = part(part(part_whole(o), F_RUN_TRAINING), F_TRAINING_STRAGGLERS);
	assert_string_equal(figure_text(part(all, F_STRAGGLERS_HOST), F_SLOWEST_HOST_HOST),
			    "host1");
	assert_string_equal(figure_text(part(all, F_STRAGGLERS_RANK), F_SLOWEST_RANK_HOST),
			    "host1");
	json_decref(o);
	synth_end(&s);
}

/* The same hosts; rank 3 is last each time, and rank 2 as long before it as said. Rank 3 takes 10
 * ms for a sample and rank 2 as many as said, the others 1 ms. */
static void limit_of(double rank_2, double sample_2_ms, struct limit *limit)
{
	struct synth s;

	two_hosts(&s);
	for (uint32_t k = 0; k < 4; k++) {
		s.r.rank[k].sample_ns = k == 3   ? 10000000
					: k == 2 ? (int64_t)(sample_2_ms * 1e6)
						 : 1000000;
		for (int i = 0; i < STEPS; i++) {
			struct step_times *t = &s.r.rank[k].epoch[0].block[0].step[i];
			int64_t begin = s.r.rank[0].epoch[0].block[0].begin_ns + i * 40000000;
			double load = k == 3 ? 0.02 : k == 2 ? rank_2 : 0.001;

			t->ask_ns = begin;
			t->got_ns = t->compute_begin_ns = begin + (int64_t)(load * 1e9);
			t->compute_end_ns = t->barrier_in_ns = t->got_ns + 10000000;
			t->barrier_out_ns = begin + 30000000;
		}
	}
	synth_metrics(&s);
	synth_judge(&s);
	*limit = s.r.judged.limit;
	synth_end(&s);
}

/* One store behind two ranks may always serve the same one first. */
static void a_host_is_slow_though_one_of_its_ranks_is_always_last(void **state)
{
	struct limit limit;
	const struct fact *f;

	(void)state;
	limit_of(0.018, 1, &limit);
	assert_int_equal(limit.cause, CAUSE_SLOW_HOST);
	f = fact_first(&limit.facts, REASON_LIMIT_SLOW_HOST);
	assert_non_null(f);
	assert_string_equal(f->text[0], "host1");
	assert_true(f->figure[0] == 2 && f->figure[1] == 1);
	assert_true(fabs(f->figure[2] - 0.019) < 1e-9);
	limit_of(0.001, 1, &limit);
	assert_int_equal(limit.cause, CAUSE_SLOW_RANK);
	/* half a step before it, always: as far as their reads began apart */
	limit_of(0.007, 9, &limit);
	assert_int_equal(limit.cause, CAUSE_SLOW_HOST);
	limit_of(0.007, 2, &limit);
	assert_int_equal(limit.cause, CAUSE_SLOW_RANK);
}

/* A lost rank has no times; what is told is of the others. */
static void a_lost_rank_is_no_part_of_it(void **state)
{
	struct decomposition whole, rest;
	struct synth s;

	(void)state;
	two_hosts(&s);
	for (uint32_t k = 0; k < 4; k++) {
		struct rank_epoch *ep = &s.r.rank[k].epoch[0];

		ep->begin_ns += synth_ns(5000);
		ep->train_end_ns += synth_ns(5000);
	}
	decompose(&s.r, 0, 1, &whole);
	free(s.r.rank[0].epoch[0].block[0].step);
	free(s.r.rank[0].epoch[0].block);
	s.r.rank[0].epoch[0] = (struct rank_epoch){0};
	s.r.rank[0].lost = true;
	decompose(&s.r, 0, 1, &rest);
	assert_int_equal(whole.ranks, 4);
	assert_int_equal(rest.ranks, 3);
	assert_true(fabs(rest.wall_s - whole.wall_s) < 1e-9);
	assert_true(fabs(rest.critical_wall_s - whole.critical_wall_s) < 1e-9);
	assert_true(fabs(rest.mean_s[TIME_COMPUTE] - whole.mean_s[TIME_COMPUTE]) < 1e-9);
	synth_end(&s);
}

static void the_longest_samples_are_kept(void **state)
{
	struct slow_samples a = {0}, b = {0};
	int64_t least = INT64_MAX;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		struct slow_samples *to = i % 2 ? &a : &b;
		int64_t ns = (int64_t)(i * 7919 % 1000) + 1;

		if (ns > to->least_ns)
			slow_samples_add(to, i, (int64_t)i, ns);
	}
	slow_samples_merge(&a, &b);
	assert_int_equal(a.n, SLOW_SAMPLES_KEPT);
	for (uint32_t i = 0; i < a.n; i++) {
		least = a.kept[i].ns < least ? a.kept[i].ns : least;
		assert_int_equal(a.kept[i].sample * 7919 % 1000 + 1, a.kept[i].ns);
	}
	assert_int_equal(least, 1000 - SLOW_SAMPLES_KEPT + 1);
	assert_int_equal(a.least_ns, least);
}

static void they_are_named_longest_first(void **state)
{
	struct stragglers found;
	struct buf line = {0};
	struct synth s;

	(void)state;
	synth_begin(&s, 2, 1, NULL);
	for (uint32_t k = 0; k < 2; k++)
		s.r.rank[k].sample_ns = 1000000;
	slow_samples_add(&s.r.rank[0].slow, 3, 0, 4000000);
	slow_samples_add(&s.r.rank[1].slow, 5, 0, 9000000);
	slow_samples_add(&s.r.rank[1].slow, 6, 0, 2000000);
	stragglers_find(&s.r, &found);
	assert_int_equal(found.samples, 3);
	assert_int_equal(found.sample[0].of.sample, 5);
	assert_int_equal(found.sample[0].rank, 1);
	assert_int_equal(found.sample[1].of.sample, 3);
	s.r.judged.stragglers = found;
	result_text(&s.r, &s.m, false, &line);
	assert_non_null(strstr(line.data, "9 ms, 9 times the mean: rank 1, "));
	assert_non_null(strstr(line.data, "img_05_of_24"));
	buf_release(&line);
	synth_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_slow_host_is_found),
		cmocka_unit_test(a_host_is_slow_though_one_of_its_ranks_is_always_last),
		cmocka_unit_test(a_lost_rank_is_no_part_of_it),
		cmocka_unit_test(the_longest_samples_are_kept),
		cmocka_unit_test(they_are_named_longest_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
