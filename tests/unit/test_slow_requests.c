/* Tails of single kinds of requests, of logs made by hand. */
#include "judge/slow_requests.h"

#include "metric/io_stat.h"
#include "result_synth.h"

#define US 1000LL
#define MS (1000 * US)

enum { OPEN, LOOK_UP, HEADER, DATA, CLOSE, REQUESTS };

/* One rank's workers, which are busy for `busy` of the time. */
static void begin(struct synth *s, double busy)
{
	synth_begin(s, 1, 1, NULL);
	s->r.rank[0].workers = 4;
	s->r.judged.time.wall_s = 10;
	s->r.judged.time.work_s[WORK_DATA] = busy * 10 * 4;
}

static int64_t request(struct synth *s, int what, int64_t at, int64_t took)
{
	static const enum io_kind kind[REQUESTS] = {IO_OPEN, IO_META, IO_META, IO_DATA, IO_OPEN};
	struct io_stat *io = &s->r.rank[0].train_io;
	uint64_t bytes = what == HEADER ? 128 : what == DATA ? 65536 : 0;

	io_stat_add(io, kind[what], took, bytes, (int64_t)bytes);
	if (bytes)
		read_log_add(&io->reads, at, at + took, bytes, what == DATA, 0);
	else if (what != CLOSE)
		read_log_add(&io->opens, at, at + took, 1, what == LOOK_UP ? SEEN_STAT : SEEN_OPEN,
			     0);
	return at + took;
}

/* Files that four workers read in turn, each 1 ms a request; every `nth` one has a request of kind
 * `slow` that takes `long_ns`, and nobody waits for it. */
static void read_files(struct synth *s, int slow, int nth, int64_t long_ns)
{
	int64_t at[4] = {0};

	for (int i = 0; i < 240; i++)
		for (int what = OPEN; what < REQUESTS; what++) {
			int64_t took =
				what == slow && i % nth == 3 ? long_ns : MS + 7 * US * (i % 5);

			at[i % 4] = request(s, what, at[i % 4], took);
		}
}

static void a_slow_kind_is_told(void **state)
{
	static const enum slow_kind kind[REQUESTS] = {SLOW_OPENS, SLOW_STATS, SLOW_NONE, SLOW_READS,
						      SLOW_CLOSES};
	struct synth s;

	(void)state;
	for (int what = OPEN; what < REQUESTS; what++) {
		struct slow_requests found;

		begin(&s, 0.95);
		read_files(&s, what, 15, 90 * MS);
		found = slow_requests_find(&s.r);
		if (found.kind != kind[what])
			fail_msg("kind %d of requests: told %d", what, found.kind);
		if (found.kind != SLOW_NONE) {
			assert_near(found.count, 16, 0.1);
			assert_near(found.all, 240, 0.1);
			assert_near(found.each_s, 0.09, 0.004);
			assert_true(found.longest_s > 0.2 && found.longest_s < 0.5);
		}
		synth_end(&s);
	}
}

/* All requests that were begun in it end with it: each of four workers is at another one. */
static void a_stall_is_none(void **state)
{
	struct synth s;
	int64_t at[4] = {0};

	(void)state;
	begin(&s, 0.95);
	for (int i = 0; i < 240; i++)
		for (int what = OPEN; what < REQUESTS; what++) {
			int64_t begin_ns = at[i % 4], end = begin_ns + MS + 7 * US * (i % 5);
			int64_t in = begin_ns % (57 * MS);

			if (in < 20 * MS)
				end = begin_ns - in + 20 * MS + MS;
			at[i % 4] = request(&s, what, begin_ns, end - begin_ns);
		}
	assert_int_equal(slow_requests_find(&s.r).kind, SLOW_NONE);
	synth_end(&s);
}

/* Idle workers are met by a stall when they begin a file: all that is slow are opens. */
static void idle_workers_open_first(void **state)
{
	struct synth s;

	(void)state;
	for (int busy = 0; busy < 2; busy++) {
		begin(&s, busy ? 0.95 : 0.2);
		for (int i = 0; i < 240; i++)
			for (int what = OPEN; what < REQUESTS; what++)
				request(&s, what, i * 200 * MS + what * 2 * MS,
					what == OPEN && i % 40 == 3 ? 180 * MS : MS);
		assert_int_equal(slow_requests_find(&s.r).kind, busy ? SLOW_OPENS : SLOW_NONE);
		synth_end(&s);
	}
}

/* One data read of a file in five is as long as its bytes take, as are all like it. */
static void large_and_first_reads_are_no_tail(void **state)
{
	struct synth s;
	int64_t at[4] = {0};

	(void)state;
	for (int first = 0; first < 2; first++) {
		memset(at, 0, sizeof(at));
		begin(&s, 0.95);
		for (int i = 0; i < 200; i++)
			for (int k = 0; k < 6; k++) {
				struct io_stat *io = &s.r.rank[0].train_io;
				int64_t *t = &at[i % 4], took = k ? MS : 40 * MS;
				uint64_t bytes = first || k == 0 ? 262144 : 4096;

				io_stat_add(io, IO_DATA, took, bytes, (int64_t)bytes);
				read_log_add(&io->reads, *t, *t + took, bytes,
					     first ? (uint32_t)k : 1, 0);
				*t += took;
			}
		assert_int_equal(slow_requests_find(&s.r).kind, SLOW_NONE);
		synth_end(&s);
	}
}

static void nothing_is_no_tail(void **state)
{
	struct synth s;

	(void)state;
	begin(&s, 0.5);
	assert_int_equal(slow_requests_find(&s.r).kind, SLOW_NONE);
	read_files(&s, OPEN, 1000, MS);
	assert_int_equal(slow_requests_find(&s.r).kind, SLOW_NONE);
	synth_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_kind_is_told),
		cmocka_unit_test(a_stall_is_none),
		cmocka_unit_test(idle_workers_open_first),
		cmocka_unit_test(large_and_first_reads_are_no_tail),
		cmocka_unit_test(nothing_is_no_tail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
