/* What is said of the servers of a store, on both sides of each limit; and how their counts are
 * summed. */
#include <math.h>

#include "judge/server_view.h"
#include "judge/verdict.h"
#include "result_synth.h"

/* Two epochs that wait for data: requests of `ms` each, 400 to each server. */
static void begin(struct synth *s, uint32_t servers)
{
	synth_begin(s, 1, 2, NULL);
	for (uint32_t i = 0; i < 2; i++) {
		synth_even(s, 0, i, 60, 0.01, 0.02, 0.005);
		s->r.usage[i].wall_ns = 1500000000;
		s->r.usage[i].cpu_ns = 200000000;
		s->r.rank[0].epoch[i].split.wait_ns[WAIT_DATA] = 1190000000;
		s->r.rank[0].epoch[i].split.work_ns[WORK_DATA] = 1190000000;
	}
	s->r.rank[0].train_io.kind[IO_DATA].requests = 800;
	s->r.rank[0].train_io.kind[IO_DATA].busy_ns = 10000000000;
	s->r.servers.use = xcalloc(servers, sizeof(*s->r.servers.use));
	s->r.servers.n = s->r.servers.room = servers;
	for (uint32_t i = 0; i < servers; i++) {
		struct server_use *u = &s->r.servers.use[i];

		snprintf(u->address, sizeof(u->address), "host%u:9000", i);
		u->given = true;
		u->timed = (struct server_counts){.requests[SERVER_GET] = 400,
						  .connections = 4,
						  .answers = 400,
						  .first_ns = 400 * 2000000ull,
						  .last_ns = 400 * 3000000ull,
						  .body_received = 1000000000,
						  .wire_received = 1000200000};
		u->whole = u->timed;
	}
}

static const struct fact *reason_of_run(struct synth *s, const char *check,
					enum verdict_level level, enum reason reason)
{
	const struct verdict *v;

	synth_metrics(s);
	synth_judge(s);
	v = synth_verdict(s, check);
	if (v->level != level || !fact_first(&v->facts, reason)) {
		char text[512] = "";

		if (v->facts.count)
			words_of(&v->facts.fact[0], WORDS_LONG, text, sizeof(text));
		fail_msg("%s: level %d, not %d, or not %s: %s", check, v->level, level,
			 reason_name(reason), text);
	}
	return fact_first(&v->facts, reason);
}

/* The fact is a warning's when `bad`, and is not there else. */
static void expect(struct synth *s, bool bad, enum reason reason)
{
	if (bad) {
		reason_of_run(s, "server", VERDICT_WARN, reason);
		return;
	}
	reason_of_run(s, "server", VERDICT_PASS, REASON_SERVER_ASKED);
	assert_null(fact_first(&synth_verdict(s, "server")->facts, reason));
}

static void healthy(void **state)
{
	struct synth s;

	(void)state;
	begin(&s, 2);
	expect(&s, false, REASON_SERVER_BUSY);
	assert_int_equal(synth_verdict(&s, "server")->facts.count, 1);
	assert_int_equal(s.r.judged.measured.taken & TAKES_PART, 0);
	synth_end(&s);
	/* no servers, no verdict */
	synth_begin(&s, 1, 1, NULL);
	synth_even(&s, 0, 0, 60, 0.01, 0.02, 0.005);
	synth_metrics(&s);
	synth_judge(&s);
	assert_string_equal(synth_verdict(&s, "server")->check, "");
	assert_string_equal(synth_verdict(&s, "far-cache")->check, "");
	assert_true(isnan(result_again_share(&s.r)) && isnan(result_cpu_per_gb(&s.r)));
	synth_end(&s);
}

static void throttled(void **state)
{
	struct synth s;
	struct server_counts *n;
	uint64_t many = 20000;

	(void)state;
	begin(&s, 1);
	n = &s.r.servers.use[0].timed;
	n->again[SERVER_BUSY] = 19; /* more than 1 %, and too few to say so */
	expect(&s, false, REASON_SERVER_BUSY);
	reason_of_run(&s, "server", VERDICT_PASS, REASON_SERVER_SOME_AGAIN);
	n->again[SERVER_BUSY] = 20;
	expect(&s, true, REASON_SERVER_BUSY);
	n->requests[SERVER_GET] = many;
	n->again[SERVER_BUSY] = 200; /* of 20,200 */
	expect(&s, false, REASON_SERVER_BUSY);
	n->again[SERVER_BUSY] = 204;
	expect(&s, true, REASON_SERVER_BUSY);
	/* the limit: what repetitions took of the time that was lost */
	n->requests[SERVER_GET] = 961;
	n->again[SERVER_BUSY] = 314;
	n->again_ns = 5000000000;
	assert_near(result_again_share(&s.r), 0.5, 1e-9);
	reason_of_run(&s, "server", VERDICT_WARN, REASON_SERVER_BUSY);
	assert_int_equal(synth_verdict(&s, "server")->takes, 0);
	assert_null(fact_first(&synth_verdict(&s, "server")->facts, REASON_SERVER_AGAIN));
	if (s.r.judged.limit.cause != CAUSE_THROTTLED)
		fail_msg("cause %d, %g s lost to requests", s.r.judged.limit.cause,
			 s.r.judged.time.work_s[WORK_DATA]);
	synth_end(&s);
}

static void repeated(void **state)
{
	const struct fact *f;
	struct synth s;
	struct server_counts *n;

	(void)state;
	begin(&s, 1);
	n = &s.r.servers.use[0].timed;
	n->again[SERVER_LOST] = 5;
	n->again_ns = 499000000; /* of 10 s */
	expect(&s, false, REASON_SERVER_AGAIN);
	n->again_ns = 501000000;
	expect(&s, true, REASON_SERVER_AGAIN);
	/* at once and without a pause: kept connections that had ended */
	n->again[SERVER_LOST] = 0;
	n->again[SERVER_CLOSED] = 5;
	expect(&s, false, REASON_SERVER_AGAIN);
	/* refused too seldom to say that it throttles, and yet most of the time; those of the
	 * kind are told, not those that took no time */
	n->again[SERVER_BUSY] = 4;
	expect(&s, true, REASON_SERVER_AGAIN);
	assert_null(fact_first(&synth_verdict(&s, "server")->facts, REASON_SERVER_BUSY));
	f = fact_first(&synth_verdict(&s, "server")->facts, REASON_SERVER_AGAIN);
	assert_true(f && f->figure[0] == 4);
	synth_end(&s);
}

static void connections(void **state)
{
	struct synth s;
	struct server_counts *n;

	(void)state;
	begin(&s, 1);
	n = &s.r.servers.use[0].timed;
	n->connections = 300; /* at the start, of that many readers */
	n->reopened = 40;
	expect(&s, false, REASON_SERVER_REOPENED);
	n->reopened = 41;
	expect(&s, true, REASON_SERVER_REOPENED);
	n->requests[SERVER_GET] = n->answers = 100;
	n->reopened = 19;
	expect(&s, false, REASON_SERVER_REOPENED);
	synth_end(&s);
}

static void clump(void **state)
{
	struct synth s;
	struct server_counts *n;

	(void)state;
	begin(&s, 1);
	n = &s.r.servers.use[0].timed;
	n->clumped = 40;
	expect(&s, false, REASON_SERVER_CLUMP);
	n->clumped = 41;
	n->beside_clump = 10;
	expect(&s, true, REASON_SERVER_CLUMP);
	n->beside_clump = 11; /* a server that takes about that long */
	expect(&s, false, REASON_SERVER_CLUMP);
	synth_end(&s);
	assert_int_equal(server_waited(-1, 24900000), 0);
	assert_int_equal(server_waited(-1, 25000000), -1);
	assert_int_equal(server_waited(-1, 41000000), -1); /* over a network that nobody knows */
	assert_int_equal(server_waited(-1, 56000000), 0);
}

static void of_several(void **state)
{
	struct synth s;
	struct server_use *u;

	(void)state;
	begin(&s, 4);
	u = s.r.servers.use;
	u[2].timed.requests[SERVER_GET] = 82; /* a quarter of the even share is 80.1 */
	expect(&s, false, REASON_SERVER_IDLE);
	u[2].timed.requests[SERVER_GET] = 79;
	expect(&s, true, REASON_SERVER_IDLE);
	u[2].given = false; /* redirected to: it has no share */
	expect(&s, false, REASON_SERVER_IDLE);
	u[1].timed.last_ns = 400 * 5900000ull;
	expect(&s, false, REASON_SERVER_SLOW);
	u[1].timed.last_ns = 400 * 6100000ull;
	expect(&s, true, REASON_SERVER_SLOW);
	u[0].timed.again[SERVER_MOVED] = 1; /* a redirect is a short answer */
	expect(&s, false, REASON_SERVER_SLOW);
	u[0].timed.again[SERVER_MOVED] = 0;
	u[1].timed.requests[SERVER_PART] = 8; /* it alone takes checkpoints */
	expect(&s, false, REASON_SERVER_SLOW);
	synth_end(&s);
	/* twice as long, and nothing that matters */
	begin(&s, 2);
	s.r.servers.use[0].timed.last_ns = s.r.servers.use[0].timed.first_ns = 400 * 300000ull;
	s.r.servers.use[1].timed.last_ns = s.r.servers.use[1].timed.first_ns = 400 * 1200000ull;
	expect(&s, false, REASON_SERVER_SLOW);
	synth_end(&s);
}

static void clocks(void **state)
{
	const struct fact *f;
	struct synth s;

	(void)state;
	begin(&s, 2);
	s.r.servers.use[0].skew_s = s.r.servers.use[1].skew_s = -3600;
	f = reason_of_run(&s, "server", VERDICT_WARN, REASON_SERVER_CLOCK);
	assert_true(isnan(f->figure[0]));
	assert_near(f->figure[1], 3600, 0);
	synth_end(&s);
}

/* `n` reads in the second half of an epoch (from 0), of `us` each; or in its first. */
static void reads(struct synth *s, uint32_t epoch, bool late, uint32_t n, int64_t us)
{
	struct read_log *l = &s->r.rank[0].train_io.reads;
	const struct rank_epoch *ep = &s->r.rank[0].epoch[epoch];
	int64_t at = ep->begin_ns + (late ? (ep->train_end_ns - ep->begin_ns) / 2 : 0);

	for (uint32_t i = 0; i < n; i++)
		l->seen[l->n++] = (struct read_seen){.begin_ns = at + i * 1000,
						     .end_ns = at + i * 1000 + us * 1000,
						     .bytes = 65536};
}

static void caches(void **state)
{
	static const struct {
		uint32_t early, late;
		int64_t early_us, late_us, later_us;
		enum verdict_level level;
		enum reason reason;
	} runs[] = {
		{0, 30, 0, 19900, 10000, VERDICT_PASS, REASON_FAR_CACHE_NOT},
		{0, 30, 0, 20100, 10000, VERDICT_WARN, REASON_FAR_CACHE},
		/* the beginning of a run is no disk */
		{30, 30, 50000, 10000, 10000, VERDICT_PASS, REASON_FAR_CACHE_NOT},
		{30, 19, 50000, 50000, 10000, VERDICT_PASS, REASON_FAR_CACHE_UNSEEN},
		/* less than a millisecond more */
		{0, 30, 0, 1800, 850, VERDICT_PASS, REASON_FAR_CACHE_NOT},
	};
	struct synth s;

	(void)state;
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		begin(&s, 1);
		reads(&s, 0, false, runs[i].early, runs[i].early_us);
		reads(&s, 0, true, runs[i].late, runs[i].late_us);
		reads(&s, 1, false, 30, runs[i].later_us);
		reason_of_run(&s, "far-cache", runs[i].level, runs[i].reason);
		assert_int_equal(s.r.judged.measured.storage == MEASURED_PART,
				 runs[i].level == VERDICT_WARN);
		/* many of them were quick in the first epoch, too */
		for (uint32_t k = 0; k < 9; k++)
			s.r.rank[0].train_io.reads.seen[runs[i].early + k].end_ns =
				s.r.rank[0].train_io.reads.seen[runs[i].early + k].begin_ns + 1000;
		if (runs[i].level == VERDICT_WARN)
			reason_of_run(&s, "far-cache", VERDICT_PASS, REASON_FAR_CACHE_NOT);
		synth_end(&s);
	}
	begin(&s, 1);
	reads(&s, 0, true, 30, 50000);
	reads(&s, 1, true, 30, 10000);
	s.r.epochs_done = 1;
	reason_of_run(&s, "far-cache", VERDICT_PASS, REASON_FAR_CACHE_UNSEEN);
	synth_end(&s);
}

/* Https is named where the processors are short, and nowhere else. */
static void decryption(void **state)
{
	struct synth s;

	(void)state;
	for (int tls = 0; tls < 2; tls++)
		for (int busy = 0; busy < 2; busy++) {
			bool told;

			begin(&s, 1);
			s.r.servers.use[0].tls = tls;
			for (uint32_t i = 0; i < 2; i++)
				s.r.usage[i].cpu_ns = busy ? 2900000000 : 2600000000; /* of 3 s */
			synth_metrics(&s);
			synth_judge(&s);
			told = fact_first(&synth_verdict(&s, "client")->facts, REASON_CLIENT_TLS);
			assert_int_equal(told, tls && busy);
			assert_near(result_cpu_per_gb(&s.r), busy ? 5.8 : 5.2, 0.01);
			synth_end(&s);
		}
}

static void sums(void **state)
{
	struct servers all = {0};
	struct server_use one = {.address = "a:1", .given = true, .first_max_ns = 5};
	struct server_counts n;
	struct err e;

	(void)state;
	one.whole.requests[SERVER_GET] = 3;
	one.whole.again[SERVER_BUSY] = 2;
	one.timed.wire_received = 7;
	assert_int_equal(servers_add(&all, &one, &e), 0);
	one.first_max_ns = 9;
	one.skew_s = 60;
	assert_int_equal(servers_add(&all, &one, &e), 0);
	assert_int_equal(all.n, 1);
	assert_int_equal(all.use[0].first_max_ns, 9);
	assert_int_equal(all.use[0].skew_s, 60);
	one.tls = true; /* another server, as it were */
	assert_int_equal(servers_add(&all, &one, &e), 0);
	for (int i = 0; i < 2 * SERVERS_MAX; i++) {
		snprintf(one.address, sizeof(one.address), "b:%d", i);
		assert_int_equal(servers_add(&all, &one, &e), 0);
	}
	assert_int_equal(all.n, SERVERS_MAX);
	n = servers_sum(&all, false);
	assert_int_equal(server_requests(&n), 3 * (SERVERS_MAX + 1));
	assert_int_equal(server_tries(&n), 5 * (SERVERS_MAX + 1));
	n = servers_sum(&all, true);
	assert_int_equal(n.wire_received, 7 * (SERVERS_MAX + 1));
	servers_release(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(healthy),    cmocka_unit_test(throttled),
		cmocka_unit_test(repeated),   cmocka_unit_test(connections),
		cmocka_unit_test(clump),      cmocka_unit_test(of_several),
		cmocka_unit_test(clocks),     cmocka_unit_test(caches),
		cmocka_unit_test(decryption), cmocka_unit_test(sums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
