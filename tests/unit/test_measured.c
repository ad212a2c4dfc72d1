/* No headline is kinder than the verdicts: what each of them takes away is in the first line, and
 * in what is said of the storage. */
#include "judge/measured.h"
#include "judge/origin.h"
#include "judge/verdict.h"
#include "result_synth.h"

static const struct verdict_ops *const *only(const struct verdict_ops *row)
{
	static const struct verdict_ops *table[2];

	table[0] = row;
	return table;
}

/* A run of one verdict of such a level, by which `takes` is taken. */
static struct measured of(const char *store, enum verdict_level level, unsigned takes,
			  enum reason instead, bool about_cache)
{
	const char *overrides[] = {store, NULL};
	const struct verdict_ops row = {.name = "planted", .about_cache = about_cache};
	struct verdict v = {.check = "planted", .level = level, .takes = takes};
	struct measured m;
	struct synth s;

	synth_begin(&s, 1, 1, overrides);
	synth_even(&s, 0, 0, 60, 0.01, 0.001, 0.02);
	v.instead = instead;
	s.r.judged.verdict = &v;
	s.r.judged.verdicts = 1;
	measured_find(&s.r, only(&row), &m);
	s.r.judged.verdict = NULL;
	s.r.judged.verdicts = 0;
	synth_end(&s);
	return m;
}

#define FILES "storage.store=posix"

static void each_is_named(void **state)
{
	struct measured m;

	(void)state;
	m = of(FILES, VERDICT_PASS, 0, REASON_NONE, true);
	assert_int_equal(m.storage, MEASURED_STORAGE);
	assert_int_equal(m.facts.fact[0].reason, REASON_MEASURED_STORAGE);
	m = of(FILES, VERDICT_WARN, TAKES_STORAGE, REASON_INSTEAD_PAGE_CACHE, true);
	assert_int_equal(m.storage, MEASURED_NOT);
	assert_int_equal(m.facts.fact[0].reason, REASON_MEASURED_NOT);
	assert_int_equal(m.instead, REASON_INSTEAD_PAGE_CACHE);
	assert_true(m.by[0] & TAKES_STORAGE);
	m = of(FILES, VERDICT_WARN, TAKES_PART, REASON_INSTEAD_PAGE_CACHE, true);
	assert_int_equal(m.storage, MEASURED_PART);
	assert_int_equal(m.facts.fact[0].reason, REASON_MEASURED_PART);
	assert_true(m.by[0] & TAKES_PART);
	m = of(FILES, VERDICT_UNKNOWN, 0, REASON_NONE, true);
	assert_int_equal(m.storage, MEASURED_UNKNOWN);
	/* another question without an answer takes nothing */
	m = of(FILES, VERDICT_UNKNOWN, 0, REASON_NONE, false);
	assert_int_equal(m.storage, MEASURED_STORAGE);
	m = of("storage.store=throttle+memory", VERDICT_UNKNOWN, 0, REASON_NONE, true);
	assert_int_equal(m.storage, MEASURED_EMULATED);
	assert_string_equal(m.facts.fact[0].text[0], "throttle+memory");
	for (unsigned i = 2; i < TAKEN_KINDS; i++) {
		m = of(FILES, VERDICT_FAIL, 1u << i, REASON_NONE, false);
		assert_int_equal(m.taken, 1u << i);
		assert_int_equal(m.storage,
				 1u << i == TAKES_ORIGIN ? MEASURED_UNKNOWN : MEASURED_STORAGE);
		assert_int_equal(m.by[m.facts.count - 1], 1u << i);
	}
}

/* Every row of the program: a warning of one that doubts the storage must take something. */
static void warnings_take(void **state)
{
	(void)state;
	for (size_t i = 0; verdict_table[i]; i++)
		if (verdict_table[i]->about_cache)
			assert_true(verdict_table[i]->takes & (TAKES_STORAGE | TAKES_PART));
}

/* The sentence that is kind, with and without a verdict that takes something. */
static void kindness(void **state)
{
	struct synth s;

	(void)state;
	for (int cached = 0; cached < 2; cached++) {
		synth_begin(&s, 1, 1, NULL);
		synth_even(&s, 0, 0, 60, 0.001, 0.0001, 0.02);
		for (uint32_t k = 0; k < s.r.ranks; k++) {
			struct io_stat *io = &s.r.rank[k].train_io;
			uint64_t bytes = s.r.rank[k].epoch[0].payload_bytes;

			io->kind[IO_DATA].requests += 10;
			io->kind[IO_DATA].asked_bytes += bytes;
			io->kind[IO_DATA].returned_bytes += bytes;
			s.r.usage[0].train.known = true;
			s.r.usage[0].train.rchar_bytes += bytes;
			s.r.usage[0].train.read_bytes += cached ? bytes / 2 : bytes;
		}
		s.r.usage[0].wall_ns = 1000000000;
		synth_metrics(&s);
		synth_judge(&s);
		assert_int_equal(s.r.judged.limit.cause, CAUSE_COMPUTE);
		assert_int_equal(s.r.judged.limit.facts.fact[0].reason,
				 cached ? REASON_LIMIT_COMPUTE_UNTOLD : REASON_LIMIT_COMPUTE);
		assert_int_equal(s.r.judged.measured.storage,
				 cached ? MEASURED_PART : MEASURED_STORAGE);
		synth_end(&s);
	}
}

/* Bytes whose origin is not known leave it open what was measured. */
static void unknown_origins(void **state)
{
	struct host_io_source source = {0};
	struct measured m;
	struct synth s;

	(void)state;
	for (int device = 0; device < 3; device++) {
		struct verdict v = {.check = "bytes"};
		bool taken = true;

		synth_begin(&s, 1, 1, (const char *[]){FILES, NULL});
		synth_even(&s, 0, 0, 60, 0.01, 0.001, 0.02);
		source = (struct host_io_source){0};
		s.r.host_source = &source;
		if (device == 2) {
			snprintf(source.tree.unseen, sizeof(source.tree.unseen), "loop0 is a file");
			taken = origin_judge_device(&v, &s.r);
		} else {
			snprintf(source.client.type, sizeof(source.client.type), "fuse.planted");
			source.client.local_server = true;
			origin_judge_server(&v, &s.r, 1e9, 0, device ? 1e9 : 0);
		}
		assert_true(taken && v.takes & TAKES_ORIGIN);
		s.r.judged.verdict = &v;
		s.r.judged.verdicts = 1;
		measured_find(&s.r, verdict_table, &m);
		assert_int_equal(m.storage, MEASURED_UNKNOWN);
		s.r.judged.verdict = NULL;
		s.r.judged.verdicts = 0;
		s.r.host_source = NULL;
		synth_end(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_named),
		cmocka_unit_test(warnings_take),
		cmocka_unit_test(kindness),
		cmocka_unit_test(unknown_origins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
