/* Plans from points of systems whose truth is known by arithmetic: what points tell, what they do
 * not, and that neither is taken for the other. */
/* tier: long */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/rng.h"
#include "plan/sizing.h"

/* 20 samples/s an accelerator of 100 MB. */
static const struct duty duty = {.name = "w",
				 .batch = 10,
				 .step_s = 0.5,
				 .sample_bytes = 100e6,
				 .file_samples = 1,
				 .target = 0.9};

static struct point measured(double hosts, double accelerators, double rate, double au)
{
	struct point p = {.from = "p",
			  .of = duty,
			  .hosts = hosts,
			  .accelerators = accelerators,
			  .samples_per_s = rate,
			  .au = au,
			  .spread = NAN,
			  .requests_per_sample = NAN,
			  .opens_per_sample = NAN};

	return p;
}

static int plan(struct sizing *s, const struct point *p, size_t n, double accelerators,
		double hosts, bool grows, struct err *e)
{
	const struct sizing_question q = {.plan = &duty,
					  .accelerators = &accelerators,
					  .count = 1,
					  .hosts = hosts,
					  .grows = grows};

	return sizing_find(s, &q, p, n, e);
}

static void planned(struct sizing *s, const struct point *p, size_t n, double accelerators,
		    double hosts)
{
	struct err e = {0};

	if (plan(s, p, n, accelerators, hosts, false, &e) < 0)
		fail_msg("%s", e.text);
}

static void holds(const struct sizing_range *r, double truth, const char *what)
{
	if (!(r->low <= truth && truth <= r->high && r->low <= r->mid && r->mid <= r->high))
		fail_msg("%s: %g is not in %g (%g to %g)", what, truth, r->mid, r->low, r->high);
}

/* What was measured is planned as it was, within a few points. */
static void test_the_same(void **state)
{
	const struct point p = measured(1, 8, 148, 0.94);
	struct sizing s = {0};

	(void)state;
	planned(&s, &p, 1, 8, 1);
	assert_true(s.row[0].bounded);
	holds(&s.row[0].au, 0.94, "AU");
	holds(&s.row[0].share, 0.925, "share by rate");
	assert_true(s.row[0].au.high - s.row[0].au.low < 0.06);
	assert_true(s.row[0].passes == SIZING_YES);
	/* 160 samples/s at 100 %, 144 of 100 MB for the target */
	assert_true(fabs(s.row[0].need_samples - 144) < 1e-9);
	assert_true(fabs(s.row[0].need_bytes - 14.4e9) < 1);
	assert_true(fabs(s.row[0].need_opens - 144) < 1e-9 && isnan(s.row[0].need_requests));
	/* eight pass: they did */
	assert_true(s.most.known && s.most.n.low == 8 && !s.most.bounded);
	sizing_release(&s);
}

/* One host says nothing of what the storage gives to four: at least what it gave. */
static void test_one_host(void **state)
{
	const struct point p = measured(1, 8, 156, 0.98);
	struct sizing s = {0};

	(void)state;
	planned(&s, &p, 1, 32, 4);
	assert_false(s.row[0].bounded);
	assert_true(s.row[0].passes == SIZING_UNKNOWN);
	/* 156 of 640 */
	assert_true(fabs(s.row[0].share.low - 156.0 / 640) < 0.02);
	assert_true(s.row[0].share.mid > 0.9);
	assert_non_null(strstr(s.row[0].assumption, "the storage gives more than"));
	assert_non_null(strstr(s.row[0].next, "2 hosts with 8"));
	sizing_release(&s);
}

/* What hardly waits with few accelerators is not taken to be so with many: systems are sized to
 * their target. */
static void test_sized(void **state)
{
	const struct point p = measured(1, 8, 157, 0.99);
	struct sizing s = {0};

	(void)state;
	planned(&s, &p, 1, 32, 4);
	assert_true(s.row[0].au.mid > 0.91 && s.row[0].au.mid < 0.977);
	assert_true(s.row[0].au.high > 0.97);
	sizing_release(&s);
}

/* 200 samples/s whatever the number: the cap is there, on one host or the storage. */
static void test_saturated_host(void **state)
{
	const struct point p[] = {measured(1, 8, 159, 0.995), measured(1, 20, 200, 0.5),
				  measured(1, 40, 200, 0.25)};
	struct sizing s = {0};

	(void)state;
	planned(&s, p, 3, 30, 1);
	assert_true(s.row[0].bounded);
	holds(&s.row[0].samples_per_s, 200, "samples/s");
	assert_true(s.row[0].samples_per_s.high < 212 && s.row[0].samples_per_s.low > 188);
	assert_true(s.row[0].passes == SIZING_NO);
	/* 200 / 20 accelerators, of which 0.9 */
	holds(&s.most.n, 11, "most");
	assert_true(s.most.bounded);
	sizing_release(&s);
	/* on two hosts: 200 at least, 400 if it was the host's */
	planned(&s, p, 3, 30, 2);
	assert_false(s.row[0].bounded);
	assert_true(s.row[0].samples_per_s.low < 206 && s.row[0].samples_per_s.low > 190);
	assert_true(s.row[0].samples_per_s.high > 370 && s.row[0].samples_per_s.high < 415);
	assert_non_null(strstr(s.row[0].assumption, "whether the hosts or the storage"));
	sizing_release(&s);
}

/* Four hosts get no more than two: it is the storage. */
static void test_saturated_storage(void **state)
{
	const struct point p[] = {measured(1, 8, 159, 0.995), measured(2, 16, 250, 0.79),
				  measured(4, 32, 250, 0.395)};
	struct sizing s = {0};

	(void)state;
	planned(&s, p, 3, 64, 8);
	assert_true(s.row[0].bounded);
	holds(&s.row[0].samples_per_s, 250, "samples/s");
	assert_true(s.row[0].samples_per_s.high < 265);
	assert_string_equal(s.row[0].limit, "the storage");
	sizing_release(&s);
}

/* The storage grows with the hosts: the wait of the slowest of more accelerators remains. */
static void test_grown(void **state)
{
	const struct point p = measured(1, 8, 155, 0.975);
	struct sizing s = {0};
	struct err e = {0};

	(void)state;
	assert_int_equal(plan(&s, &p, 1, 64, 8, true, &e), 0);
	assert_true(s.row[0].bounded);
	/* as before, and as the root of N: 1 / (1 + 0.0256 sqrt 8) */
	holds(&s.row[0].au, 0.97, "as before");
	holds(&s.row[0].au, 0.932, "as the root of N");
	assert_true(s.row[0].au.low > 0.7);
	sizing_release(&s);
}

/* The waits of 8 and 64 accelerators give those of 200: overhead 0.01 sqrt(N / 8). */
static void test_growth_is_measured(void **state)
{
	const struct point p[] = {measured(1, 8, 160 / 1.01, 1 / 1.01),
				  measured(8, 64, 1280 / 1.0283, 1 / 1.0283),
				  measured(25, 200, 4000 / 1.05, 1 / 1.05)};
	struct sizing s = {0};
	struct err e = {0};

	(void)state;
	assert_int_equal(plan(&s, p, 2, 200, 25, true, &e), 0);
	holds(&s.row[0].au, 1 / 1.05, "AU");
	if (s.row[0].au.high - s.row[0].au.low > 0.09)
		fail_msg("%g to %g is wide", s.row[0].au.low, s.row[0].au.high);
	sizing_release(&s);
}

/* So much a sample and so much a byte: 10 ms + 0.1 ns a byte of the whole storage. */
static void test_sizes(void **state)
{
	struct point p[] = {measured(1, 40, 1 / 0.02, 0.0625), measured(1, 40, 1 / 0.0101, NAN)};
	struct sizing s = {0};
	double truth = 1 / 0.011;
	struct duty other = duty;
	double n = 40;
	const struct sizing_question q = {
		.plan = &other, .accelerators = &n, .count = 1, .hosts = 1};
	struct err e = {0};

	(void)state;
	p[1].of.sample_bytes = 1e6;
	other.sample_bytes = 10e6;
	assert_int_equal(sizing_find(&s, &q, p, 2, &e), 0);
	holds(&s.row[0].samples_per_s, truth, "samples/s of the size between");
	sizing_release(&s);
	/* of one size only: between as many samples and as many bytes */
	assert_int_equal(sizing_find(&s, &q, p, 1, &e), 0);
	holds(&s.row[0].samples_per_s, 55, "as many samples");
	assert_true(s.row[0].samples_per_s.high > 3 * s.row[0].samples_per_s.low);
	assert_non_null(strstr(s.row[0].assumption, "goes with its bytes"));
	sizing_release(&s);
}

static void refused(const struct point *p, size_t n, double accelerators, double hosts,
		    const char *why)
{
	struct sizing s = {0};
	struct err e = {0};

	assert_true(plan(&s, p, n, accelerators, hosts, false, &e) < 0);
	if (!strstr(e.text, why))
		fail_msg("'%s' does not say '%s'", e.text, why);
	sizing_release(&s);
}

static void test_refused(void **state)
{
	const struct point p[] = {measured(1, 8, 156, 0.98), measured(1, 16, 60, 0.19),
				  measured(1, 8, 100, 0.63)};

	(void)state;
	refused(p, 1, 241, 1, "beyond 30 times");
	refused(p, 1, 100, 31, "31 hosts");
	refused(p, 1, 4, 8, "each host needs one or more");
	refused(p, 2, 8, 1, "cannot be of one system");
	refused(p, 3, 8, 1, "contradict each other");
}

static void reads(const char *text, const char *why)
{
	struct point p;
	struct err e = {0};
	int rc = point_parse(&p, text, 1, &duty, &e);

	if (rc == 0)
		rc = point_check(&p, &e);
	if (why && (rc == 0 || !strstr(e.text, why)))
		fail_msg("'%s': '%s' does not say '%s'", text, e.text, why);
	if (!why && rc < 0)
		fail_msg("'%s': %s", text, e.text);
}

static void test_typed(void **state)
{
	(void)state;
	reads("hosts=1,accelerators=8,samples_per_s=150,au=95%,spread=0.4,largest=yes", NULL);
	reads("accelerators=8,hosts=1,samples_per_s=1.5e2,sample_bytes=100MB,computation_time="
	      "500ms",
	      NULL);
	reads("hosts=1,accelerators=8", "samples_per_s= is missing");
	reads("hosts=1,acelerators=8,samples_per_s=150", "did you mean 'accelerators'?");
	reads("hosts=1,hosts=1,accelerators=8,samples_per_s=150", "given twice");
	reads("hosts=1.5,accelerators=8,samples_per_s=150", "whole number");
	reads("hosts=1,accelerators=8,samples_per_s=0", "more than 0");
	reads("hosts=1,accelerators=8,samples_per_s=inf", "more than 0");
	reads("hosts=1,accelerators=1e8,samples_per_s=150", "10000000");
	reads("hosts=1,accelerators=8,samples_per_s=150,au=0.95", "percent");
	reads("hosts=1,accelerators=8,samples_per_s=150,au=101", "percent");
	reads("hosts=1,accelerators=8,samples_per_s=150,largest=perhaps", "yes or no");
	reads("hosts=1,accelerators=8,samples_per_s=150,", "not key=value");
	reads("hosts=1,accelerators=8,samples_per_s=150,au=", "no value");
	reads("hosts=9,accelerators=8,samples_per_s=150", "each host needs one or more");
	reads("hosts=1,accelerators=8,samples_per_s=170", "take at most 160");
	reads("hosts=1,accelerators=8,samples_per_s=150,au=85", "one of the two is wrong");
	reads("hosts=1,accelerators=8,samples_per_s=100,au=95", "higher than the rate allows");
}

/* ---- what holds for any points ---- */

/* A system and points of it, measured inexactly; the same, another accelerator or another model is
 * planned. STOKER_PLANS=500 tries more of them. */
#define SYSTEMS 28
#define NUMBERS 6 /* of accelerators that are planned, */
#define WIDTHS 3  /* and of hosts */

static double drawn(uint64_t system, uint64_t *at, double low, double high)
{
	return low * pow(high / low, (double)(rng_word(system, (*at)++) >> 11) * 0x1p-53);
}

/* Every fifth has as much more storage as hosts. */
static bool grows(uint64_t system)
{
	return system % 5 == 4;
}

static struct point of_system(uint64_t system, uint64_t *at, double hosts, double n)
{
	uint64_t own = 0;
	double host = drawn(system, &own, 60, 2000), store = host * drawn(system, &own, 0.5, 8);
	double wait = drawn(system, &own, 0.0005, 0.2) * pow(n / 8, drawn(system, &own, 0.01, 0.5));
	double rate =
		fmin(20 * n / (1 + wait), fmin(host * hosts, store * (grows(system) ? hosts : 1)));
	struct point p = measured(hosts, n, rate * drawn(system, at, 0.99, 1.01), NAN);

	p.samples_per_s = fmin(p.samples_per_s, 20 * n);
	if (system % 7)
		p.au = fmin(1, point_share(&p) * drawn(system, at, 1.001, 1.03));
	return p;
}

/* What is planned of it: half of the systems have another accelerator, or another model. */
static struct duty other_duty(uint64_t system, uint64_t *at)
{
	struct duty d = duty;

	if (system % 4 == 1)
		d.step_s *= drawn(system, at, 0.3, 3);
	if (system % 4 == 3) {
		d.sample_bytes *= drawn(system, at, 0.001, 10);
		d.step_s *= drawn(system, at, 0.1, 2);
	}
	return d;
}

static void holds_order(const struct sizing_range *r, const char *what)
{
	if (!(r->low <= r->mid + 1e-9 && r->mid <= r->high + 1e-9 && r->low >= 0))
		fail_msg("%s: %g (%g to %g) are in no order", what, r->mid, r->low, r->high);
}

/* No less in `easier`, neither in figures nor in answers. */
static void holds_easier(const struct sizing_row *easier, const struct sizing_row *r,
			 uint64_t system)
{
	const double a[] = {easier->au.low,    easier->au.mid,    easier->au.high,
			    easier->share.low, easier->share.mid, easier->share.high};
	const double b[] = {r->au.low,    r->au.mid,    r->au.high,
			    r->share.low, r->share.mid, r->share.high};

	for (int i = 0; i < 6; i++)
		if (a[i] < b[i] - 1e-6)
			fail_msg("system %d: figure %d of %g accelerators on %g hosts is %.5f, of "
				 "%g on %g %.5f",
				 (int)system, i, easier->accelerators, easier->hosts, a[i],
				 r->accelerators, r->hosts, b[i]);
	if ((easier->passes == SIZING_NO && r->passes != SIZING_NO) ||
	    (easier->passes != SIZING_YES && r->passes == SIZING_YES) ||
	    (easier->enough == SIZING_NO && r->enough != SIZING_NO) ||
	    (easier->enough != SIZING_YES && r->enough == SIZING_YES))
		fail_msg("system %d: %g accelerators on %g hosts pass (%d, %d), %g on %g (%d, %d)",
			 (int)system, easier->accelerators, easier->hosts, easier->passes,
			 easier->enough, r->accelerators, r->hosts, r->passes, r->enough);
}

/* The answer of a row, and the most that pass on its hosts. */
static void holds_most(const struct sizing *s, const struct sizing_row *r, uint64_t system)
{
	holds_order(&s->most.n, "most that pass");
	if (s->most.n.low > 0 && s->most.n.low < r->hosts)
		fail_msg("system %d: at least %g pass, fewer than %g hosts", (int)system,
			 s->most.n.low, r->hosts);
	if ((r->passes == SIZING_YES && s->most.n.high + r->hosts <= r->accelerators) ||
	    (r->passes == SIZING_NO && s->most.n.low >= r->accelerators))
		fail_msg("system %d: %g accelerators on %g hosts: answer %d, most %g (%g to %g)",
			 (int)system, r->accelerators, r->hosts, r->passes, s->most.n.mid,
			 s->most.n.low, s->most.n.high);
}

static void holds_bounds(const struct sizing *s, const struct sizing_row *r, uint64_t system)
{
	bool same = duty_same(&s->plan, &duty);
	double most = 0;

	holds_order(&r->au, "AU");
	holds_order(&r->share, "share by rate");
	holds_order(&r->samples_per_s, "samples/s");
	for (size_t i = 0; i < s->points; i++) {
		const struct point *p = &s->point[i];
		double share = fmin(1, point_share(p)), grown = s->grows ? r->hosts / p->hosts : 1;

		most = fmax(most, p->samples_per_s * p->of.sample_bytes * grown);
		if (!same || p->accelerators != r->accelerators || p->hosts != r->hosts)
			continue;
		/* what other points bound it by is within what they were measured exactly */
		if (fabs(r->share.mid - share) > 0.021 || fabs(r->au.mid - p->au) > 0.051)
			fail_msg("%g accelerators were measured with %g (AU %g), and are planned "
				 "with %g (%g)",
				 p->accelerators, share, p->au, r->share.mid, r->au.mid);
		assert_true(r->bounded);
	}
	/* what fails is not said to reach the target */
	if ((r->passes == SIZING_NO && r->au.mid >= s->plan.target) ||
	    (r->enough == SIZING_NO && r->share.mid >= s->plan.target))
		fail_msg("system %d: %g accelerators on %g hosts miss the target with %g, %g",
			 (int)system, r->accelerators, r->hosts, r->au.mid, r->share.mid);
	if (r->samples_per_s.low * s->plan.sample_bytes > most * (1 + 1e-9))
		fail_msg("system %d: at least %g bytes/s, of which %g were measured", (int)system,
			 r->samples_per_s.low * s->plan.sample_bytes, most);
	if (s->points == 1 && s->plan.sample_bytes != duty.sample_bytes)
		assert_true(r->passes != SIZING_NO && r->enough != SIZING_NO);
	/* the largest that passes is at the end of a host or of the storage: both stay open */
	if (same && s->points == 1 && s->point[0].largest && r->hosts > s->point[0].hosts &&
	    r->accelerators / r->hosts <= s->point[0].accelerators / s->point[0].hosts &&
	    r->accelerators > s->point[0].accelerators) {
		assert_true(r->passes != SIZING_NO && (s->grows || !r->bounded));
		assert_true(r->share.high > 0.85);
	}
}

/* The same plan on storage that grows, or not. */
static void find(struct sizing *s, const struct sizing_question *q, bool with_growth,
		 const struct point *p, size_t points, struct err *e)
{
	struct sizing_question as = *q;

	*e = (struct err){0};
	as.grows = with_growth;
	if (sizing_find(s, &as, p, points, e) < 0) {
		sizing_release(s);
		*s = (struct sizing){.rows = 0};
	}
}

/* Storage that grows is no less than storage that does not, on no fewer hosts than were measured.
 */
static void holds_grown(const struct sizing *grown, const struct sizing *fixed, double measured,
			uint64_t system)
{
	const struct sizing_most *a = &grown->most, *b = &fixed->most;

	for (size_t i = 0; i < fixed->rows && i < grown->rows; i++)
		if (fixed->row[i].hosts >= measured)
			holds_easier(&grown->row[i], &fixed->row[i], system);
	if (!grown->rows || !fixed->rows || fixed->row[0].hosts < measured)
		return;
	if (a->n.low < b->n.low || a->n.mid < b->n.mid || a->n.high < b->n.high)
		fail_msg("system %d: %g (%g to %g) pass, and %g (%g to %g) where storage grows",
			 (int)system, b->n.mid, b->n.low, b->n.high, a->n.mid, a->n.low, a->n.high);
}

/* As many on each host, or more, of as many hosts or more, get no larger a share than the point, on
 * the same storage and on one that grows; where one more on each host fails, it fails there. */
static void holds_whole(const struct sizing *s, const struct point *p, uint64_t system)
{
	for (size_t i = 0; i < s->rows; i++) {
		const struct sizing_row *r = &s->row[i];
		double a_host = r->accelerators / r->hosts, of_point = p->accelerators / p->hosts;

		if (!duty_same(&s->plan, &p->of) || r->hosts < p->hosts || a_host < of_point)
			continue;
		if (r->share.mid > point_share(p) * 1.02)
			fail_msg("system %d: %g accelerators on %g hosts get %g, %g on %g got %g",
				 (int)system, r->accelerators, r->hosts, r->share.mid,
				 p->accelerators, p->hosts, point_share(p));
		if (p->largest && a_host >= of_point + 1 && r->passes != SIZING_NO)
			fail_msg("system %d: %g accelerators on %g hosts pass (%d)", (int)system,
				 r->accelerators, r->hosts, r->passes);
	}
	if (s->rows && p->largest && duty_same(&s->plan, &p->of) && s->row[0].hosts >= p->hosts)
		assert_true(s->most.n.high < s->row[0].hosts * (p->accelerators / p->hosts + 1));
}

static void try_system(uint64_t system)
{
	uint64_t at = 100;
	double a_host = ceil(drawn(system, &at, 1, 40)), few = ceil(drawn(system, &at, 1, 6));
	struct point p[3] = {of_system(system, &at, few, few * a_host),
			     of_system(system, &at, few, 2 * few * a_host),
			     of_system(system, &at, 2 * few, 2 * few * a_host)};
	const struct duty of = other_duty(system, &at);
	double all = few * a_host;
	const double n[NUMBERS] = {ceil(all * drawn(system, &at, 0.3, 1)),
				   all,
				   all + 1,
				   ceil(all * drawn(system, &at, 1.1, 4)) + 1,
				   ceil(all * 4.5) + 1,
				   ceil(all * drawn(system, &at, 5, 28)) + 1};
	const double hosts[WIDTHS] = {few, few + 1, 2 * few};
	struct sizing s[WIDTHS] = {{.rows = 0}};
	size_t points = 1 + system % 3;
	double most_hosts = points == 3 ? 2 * few : few;

	/* as submissions say it, of what passes */
	p[0].largest = points == 1 && point_share(&p[0]) >= 0.9;
	for (int h = 0; h < WIDTHS; h++) {
		const struct sizing_question q = {.plan = &of,
						  .accelerators = n,
						  .count = NUMBERS,
						  .hosts = hosts[h],
						  .grows = grows(system)};
		struct err e = {0};

		if (hosts[h] > n[0])
			continue;
		if (sizing_find(&s[h], &q, p, points, &e) < 0)
			fail_msg("system %d: %s", (int)system, e.text);
		if (hosts[h] >= most_hosts) {
			struct sizing other = {.rows = 0};

			find(&other, &q, !grows(system), p, points, &e);
			holds_grown(grows(system) ? &s[h] : &other, grows(system) ? &other : &s[h],
				    most_hosts, system);
			sizing_release(&other);
		}
		holds_whole(&s[h], &p[0], system);
		for (int i = 0; i < NUMBERS; i++) {
			holds_bounds(&s[h], &s[h].row[i], system);
			holds_most(&s[h], &s[h].row[i], system);
		}
		for (int i = 1; i < NUMBERS; i++)
			holds_easier(&s[h].row[i - 1], &s[h].row[i], system);
		for (int i = 0; h > 0 && i < NUMBERS; i++)
			holds_easier(&s[h].row[i], &s[h - 1].row[i], system);
	}
	for (int h = 0; h < WIDTHS; h++)
		sizing_release(&s[h]);
}

static void test_any_points(void **state)
{
	const char *more = getenv("STOKER_PLANS");
	int systems = more ? atoi(more) : SYSTEMS;

	(void)state;
	for (int i = 0; i < systems; i++)
		try_system((uint64_t)i);
}

/* 12 accelerators were measured with 62.6 %: they are not planned as 8 with 93 % are, nor are 13.
 */
static void test_measured_is_kept(void **state)
{
	const struct point p[] = {measured(1, 8, 148, 0.94), measured(1, 12, 150, 0.64)};
	struct sizing s = {0};

	(void)state;
	planned(&s, p, 2, 12, 1);
	assert_true(fabs(s.row[0].share.mid - 0.625) < 1e-9);
	assert_true(fabs(s.row[0].au.mid - 0.64) < 1e-9);
	assert_int_equal(s.row[0].passes, SIZING_NO);
	sizing_release(&s);
	planned(&s, p, 2, 13, 1);
	assert_true(s.row[0].share.mid <= 0.625);
	assert_int_equal(s.row[0].passes, SIZING_NO);
	sizing_release(&s);
	/* within what was measured: yes */
	planned(&s, p, 1, 7, 1);
	assert_int_equal(s.row[0].passes, SIZING_YES);
	sizing_release(&s);
}

/* A part of what was measured, with as many on each host, passes; the largest that passes is. */
static void test_parts(void **state)
{
	struct point p = measured(4, 32, 592, 0.93);
	struct sizing s = {0};

	(void)state;
	planned(&s, &p, 1, 16, 2);
	assert_int_equal(s.row[0].passes, SIZING_YES);
	sizing_release(&s);
	/* so does a slower accelerator; where a slower one fails, it fails */
	p.of.step_s = 0.2;
	p.samples_per_s *= 2.5;
	planned(&s, &p, 1, 32, 4);
	assert_int_equal(s.row[0].passes, SIZING_YES);
	assert_true(s.most.n.low >= 32);
	sizing_release(&s);
	p = measured(4, 32, 400, 0.63);
	p.of.step_s = 0.6;
	p.samples_per_s /= 1.2;
	planned(&s, &p, 1, 32, 4);
	assert_int_equal(s.row[0].passes, SIZING_NO);
	assert_true(s.row[0].au.high <= 0.65);
	sizing_release(&s);
	p = measured(4, 32, 592, 0.93);
	p.largest = true;
	planned(&s, &p, 1, 36, 4);
	assert_int_equal(s.row[0].passes, SIZING_NO);
	assert_true(s.most.known && s.most.bounded && s.most.n.low == 32 && s.most.n.high == 32);
	sizing_release(&s);
	/* on more hosts, neither the end of a host nor that of the storage is taken for the other
	 */
	planned(&s, &p, 1, 64, 8);
	assert_int_equal(s.row[0].passes, SIZING_UNKNOWN);
	assert_false(s.row[0].bounded);
	assert_true(s.row[0].share.low * 64 * 20 <= 592.0 + 1e-6 && s.row[0].share.mid > 0.85);
	sizing_release(&s);
}

/* One point of another size is no reason for a no; bytes are, where a run says what limited it. */
static void test_other_size(void **state)
{
	struct point p = measured(1, 8, 148, 0.94);
	struct sizing s = {0};

	(void)state;
	p.of.sample_bytes = 100e3;
	planned(&s, &p, 1, 8, 1);
	assert_int_equal(s.row[0].passes, SIZING_UNKNOWN);
	assert_true(s.row[0].share.low <= 148.0 / 160 / 1000 + 1e-9);
	sizing_release(&s);
	/* 5 samples/s of 100 MB, limited by the bandwidth: 80 samples/s of 1 MB are as many bytes
	 * as 0.8 */
	p = measured(1, 8, 80, 0.5);
	p.of.sample_bytes = 1e6;
	p.is_result = p.capped = true;
	planned(&s, &p, 1, 8, 1);
	assert_int_equal(s.row[0].passes, SIZING_NO);
	holds(&s.row[0].samples_per_s, 0.8, "samples/s of the same bytes");
	assert_true(s.row[0].share.high < 0.01);
	sizing_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_same),
		cmocka_unit_test(test_one_host),
		cmocka_unit_test(test_sized),
		cmocka_unit_test(test_saturated_host),
		cmocka_unit_test(test_saturated_storage),
		cmocka_unit_test(test_grown),
		cmocka_unit_test(test_growth_is_measured),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_typed),
		cmocka_unit_test(test_measured_is_kept),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_other_size),
		cmocka_unit_test(test_any_points),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
