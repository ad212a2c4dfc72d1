/* Checkpoint intervals and goodput against figures computed by hand, and against a job that fails
 * at random; the longest of many waits against its closed forms. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "plan/goodput.h"
#include "plan/point_fit.h"

static void close_to(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance))
		fail_msg("%.12g, not %.12g", got, want);
}

/* C = 60 s, M = 10,000 s: sqrt(1.2e6) = 1095.445; C / 2M = 0.003, so Daly's factor is
 * 1 + 0.0547723 / 3 + 0.003 / 9. */
static void test_intervals(void **state)
{
	(void)state;
	close_to(goodput_young(60, 10000), 1095.4451, 1e-3);
	close_to(goodput_daly(60, 10000), 1055.8103, 1e-3);
	close_to(goodput_daly(30000, 10000), 10000, 0);
	/* 60 + sqrt(2 * 10300 * 60 + 3600) */
	close_to(goodput_availability(60, 300, 10000), 60 + sqrt(1239600), 1e-9);
	/* 1000 e^-0.03 / (10000 (e^0.106 - 1)) */
	close_to(goodput_share(1000, 60, 300, 10000), 0.0970445534 / 0.1118219, 1e-6);
	close_to(goodput_share(1e9, 60, 300, 10000), 0, 0);
}

static void test_best(void **state)
{
	static const double c[] = {0.1, 5, 60, 900, 20000};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		double t = goodput_best(c[i], 10000), at = goodput_share(t, c[i], 300, 10000);

		close_to((1 - t / 10000) * exp((t + c[i]) / 10000), 1, 1e-9);
		assert_true(at > goodput_share(t * 1.01, c[i], 300, 10000));
		assert_true(at > goodput_share(t * 0.99, c[i], 300, 10000));
	}
	/* for small C it is Young's */
	close_to(goodput_best(0.1, 10000) / goodput_young(0.1, 10000), 1, 2e-3);
}

/* A job that fails at random: what it trained of what it took. */
static double simulated(double t, double c, double r, double m)
{
	double wall = 0;
	uint64_t word = 0;
	int segments = 20000;

	for (int i = 0; i < segments;) {
		double u = (double)(rng_word(7, word++) >> 11) * 0x1p-53, fails = -m * log1p(-u);

		if (fails >= t + c) {
			wall += t + c;
			i++;
			continue;
		}
		wall += fails;
		/* a failure while it restarts begins the restart again */
		for (;;) {
			u = (double)(rng_word(7, word++) >> 11) * 0x1p-53;
			fails = -m * log1p(-u);
			if (fails >= r)
				break;
			wall += fails;
		}
		wall += r;
	}
	return segments * t / wall;
}

static void test_share_is_exact(void **state)
{
	(void)state;
	close_to(simulated(1000, 60, 300, 10000), goodput_share(1000, 60, 300, 10000), 0.005);
	close_to(simulated(800, 400, 900, 1500), goodput_share(800, 400, 900, 1500), 0.006);
}

static struct goodput_input job(void)
{
	/* M = 50000 h / 1000 = 180,000 s; S / B = 100 s */
	return (struct goodput_input){.accelerators = 1000,
				      .bytes = 1e12,
				      .write_rate = 10e9,
				      .read_rate = NAN,
				      .pause_s = NAN,
				      .interval_s = NAN,
				      .loss = NAN,
				      .restart_s = 300,
				      .mtbf_one_s = 50000 * 3600.0,
				      .local_rate = NAN};
}

static void test_whole(void **state)
{
	struct goodput_input in = job();
	struct goodput g;

	(void)state;
	goodput_find(&in, &g);
	close_to(g.mtbf_s, 180000, 1e-6);
	close_to(g.pause_s, 100, 1e-9);
	close_to(g.restart_s, 400, 1e-9);
	close_to(g.young_s, 6000, 1e-9);
	/* 1 - sqrt(2 C / M) - R / M, first order */
	close_to(g.best.share, 1 - 0.033333 - 0.002222, 1e-3);
	assert_true(isnan(g.needed_rate) && isnan(g.asked.share) && isnan(g.two_level_share));
	/* twice the rate saves (1 - 1/sqrt 2) of 3.3 %, so 10 GB/s are worth about 1 % */
	close_to(g.best.per_gigabyte, 0.0333333 / 2 / 10 + 100.0 / 180000 / 10, 1.5e-4);
	/* of 5 %, 300 / 180000 go to restarts: C = (0.0483333)^2 * 90000 = 210 s, first order */
	in.loss = 0.05;
	in.read_rate = INFINITY;
	goodput_find(&in, &g);
	close_to(g.needed_rate * 210.25 / 1e12, 1, 0.05);
	/* and with that rate it loses just so much */
	in.write_rate = g.needed_rate;
	goodput_find(&in, &g);
	close_to(g.best.share, 0.95, 1e-9);
	/* restarts alone lose more */
	in.loss = 0.001;
	goodput_find(&in, &g);
	assert_true(isnan(g.needed_rate));
	close_to(g.restart_loss, 300.0 / 180000, 1e-5);
}

static void test_asynchronous(void **state)
{
	struct goodput_input in = job();
	struct goodput g;

	(void)state;
	/* stands still for 2 s, writes for 1000 s: Young's interval, 849 s, is too short */
	in.write_rate = 1e9;
	in.pause_s = 2;
	in.interval_s = 500;
	goodput_find(&in, &g);
	close_to(g.least_interval_s, 998, 1e-9);
	assert_true(g.best_is_bound && g.asked_waits);
	close_to(g.best.interval_s, 998, 1e-9);
	close_to(g.read_demand, 1e9, 1);
	assert_true(g.asked.share < g.best.share);
	/* what is being written when the job fails is lost, too */
	close_to(g.restart_s, 300 + 1000 + 1000, 1e-9);
}

static void test_two_levels(void **state)
{
	struct goodput_input in = job();
	struct goodput g;

	(void)state;
	/* 90 % of failures leave the first level, written in 1 s: M1 = 200,000 s, M2 = 1.8e6 s */
	in.local_rate = 1e12;
	in.local_share = 0.9;
	goodput_find(&in, &g);
	close_to(g.local_interval_s, sqrt(2 * 1 * 200000.0), 1e-6);
	close_to(g.shared_interval_s, sqrt(2 * 100 * 1.8e6), 1e-6);
	close_to(g.two_level_share,
		 1 - sqrt(2 / 200000.0) - sqrt(200 / 1.8e6) - 301 / 200000.0 - 400 / 1.8e6, 1e-9);
	assert_true(g.two_level_share > g.best.share);
}

static void test_longest_wait(void **state)
{
	double harmonic = 0;

	(void)state;
	for (int n = 1; n <= 1000; n++) {
		harmonic += 1.0 / n;
		if (n == 1 || n == 8 || n == 1000)
			close_to(tail_max(n, 0, 1) / harmonic, 1, 1e-4);
	}
	/* (Gamma(N + 1) Gamma(1/2) / Gamma(N + 1/2) - 1) / 0.5; for N = 1 the mean, 2 */
	close_to(tail_max(1, 0.5, 1), 2, 2e-3);
	close_to(tail_max(64, 0.5, 1), 2 * (exp(lgamma(65) + lgamma(0.5) - lgamma(64.5)) - 1),
		 0.02);
	/* rare waits hardly meet: the sum of all ranks' */
	close_to(tail_max(10, 0, 1e-4), 10e-4, 1e-6);
	/* one wait of p = 1/2: half of it */
	close_to(tail_max(1, 0, 0.5), 0.5, 1e-4);
	close_to(tail_max(1e6, 0.5, 1) / tail_max(1e4, 0.5, 1), 10, 0.1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_intervals),      cmocka_unit_test(test_best),
		cmocka_unit_test(test_share_is_exact), cmocka_unit_test(test_whole),
		cmocka_unit_test(test_asynchronous),   cmocka_unit_test(test_two_levels),
		cmocka_unit_test(test_longest_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
