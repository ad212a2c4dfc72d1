/* Tables of descriptors: what fork, exec, dup and close do, against a model of plain arrays, and
 * the bounds under hostile calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trace/call_log.h"
#include "trace/job_log.h"

static void test_positions(void **state)
{
	struct descriptors *d = descriptors_new();
	uint32_t t = descriptors_table(d), child;

	(void)state;
	assert_int_equal(descriptors_file(d, t, 3), JOB_NONE);
	assert_true(descriptors_transfer(d, t, 3, 10, false) == JOB_UNKNOWN);
	descriptors_open(d, t, 3, 7, 0, 0);
	assert_int_equal(descriptors_file(d, t, 3), 7);
	assert_int_equal(descriptors_transfer(d, t, 3, 100, false), 0);
	assert_int_equal(descriptors_transfer(d, t, 3, -11, false),
			 100); /* an error moves nothing */
	assert_int_equal(descriptors_transfer_at(d, t, 3, 5000, 10, false), 5000);
	descriptors_dup(d, t, 3, t, 9, 0);
	child = descriptors_fork(d, t);
	assert_int_equal(descriptors_transfer(d, child, 9, 50, false), 100);
	assert_int_equal(descriptors_transfer(d, t, 3, 1, false), 150);
	descriptors_close(d, t, 3);
	assert_int_equal(descriptors_file(d, t, 3), JOB_NONE);
	assert_int_equal(descriptors_file(d, child, 3), 7);
	descriptors_seek(d, child, 3, 4096);
	assert_int_equal(descriptors_transfer(d, t, 9, 1, false), 4096);
	/* an unknown length loses the position, a seek finds it again */
	assert_int_equal(descriptors_transfer(d, t, 9, JOB_UNKNOWN, false), 4097);
	assert_true(descriptors_transfer(d, t, 9, 1, false) == JOB_UNKNOWN);
	descriptors_seek(d, t, 9, 12);
	assert_int_equal(descriptors_transfer(d, child, 3, 1, false), 12);
	/* a position beyond the numbers is unknown */
	descriptors_seek(d, t, 9, INT64_MAX - 1);
	assert_true(descriptors_transfer(d, t, 9, 100, false) == INT64_MAX - 1);
	assert_true(descriptors_position(d, t, 9) == JOB_UNKNOWN);
	/* streams have none */
	descriptors_open(d, t, 4, 8, 0, DESCRIPTOR_STREAM);
	descriptors_seek(d, t, 4, 5);
	assert_true(descriptors_transfer(d, t, 4, 1, false) == JOB_UNKNOWN);
	descriptors_drop(d, t);
	assert_int_equal(descriptors_file(d, child, 9), 7);
	descriptors_free(d);
	descriptors_free(NULL);
}

static void test_append(void **state)
{
	struct descriptors *d = descriptors_new();
	uint32_t t = descriptors_table(d);

	(void)state;
	descriptors_open(d, t, 3, 1, 0, DESCRIPTOR_APPEND);
	assert_true(descriptors_transfer(d, t, 3, 10, true) == JOB_UNKNOWN);
	descriptors_size(d, 1, 1000);
	assert_int_equal(descriptors_transfer(d, t, 3, 10, true), 1000);
	assert_int_equal(descriptors_position(d, t, 3), 1010);
	/* another description of the same file writes beyond its end */
	descriptors_open(d, t, 4, 1, 2000, 0);
	assert_int_equal(descriptors_transfer(d, t, 4, 24, true), 2000);
	assert_int_equal(descriptors_transfer_at(d, t, 3, 0, 6, true), 2024);
	descriptors_seek(d, t, 3, 0);
	assert_int_equal(descriptors_transfer(d, t, 3, 5, false), 0); /* reads are not appended */
	assert_int_equal(descriptors_size_of(d, 1), 2030);
	descriptors_set_append(d, t, 3, false);
	assert_int_equal(descriptors_transfer(d, t, 3, 5, true), 5);
	descriptors_free(d);
}

static void test_sharing(void **state)
{
	struct descriptors *d = descriptors_new();
	uint32_t t = descriptors_table(d), shared = descriptors_share(d, t), own;

	(void)state;
	descriptors_open(d, t, 3, 1, 0, DESCRIPTOR_CLOEXEC);
	descriptors_open(d, t, 5, 2, 0, 0);
	descriptors_open(d, shared, 6, 3, 0, 0);
	assert_int_equal(descriptors_file(d, t, 6), 3);
	descriptors_dup(d, t, 5, t, 70000, DESCRIPTOR_CLOEXEC);
	descriptors_dup(d, t, 3, t, 8, 0);
	own = descriptors_exec(d, shared);
	assert_int_not_equal(own, t);
	assert_int_equal(descriptors_file(d, own, 3), JOB_NONE);
	assert_int_equal(descriptors_file(d, own, 70000), JOB_NONE);
	assert_int_equal(descriptors_file(d, own, 8), 1);
	assert_int_equal(descriptors_file(d, own, 5), 2);
	assert_int_equal(descriptors_file(d, t, 3), 1);
	assert_int_equal(descriptors_file(d, t, 70000), 2);
	descriptors_set_cloexec(d, t, 3, false);
	descriptors_set_cloexec(d, t, 5, true);
	assert_int_equal(descriptors_exec(d, t), t);
	assert_int_equal(descriptors_file(d, t, 3), 1);
	assert_int_equal(descriptors_file(d, t, 5), JOB_NONE);
	/* what is not open makes the other unknown too */
	descriptors_dup(d, t, 99, t, 3, 0);
	assert_int_equal(descriptors_file(d, t, 3), JOB_NONE);
	descriptors_close_range(d, t, 6, INT64_MAX);
	assert_int_equal(descriptors_file(d, t, 6), JOB_NONE);
	assert_int_equal(descriptors_file(d, t, 8), JOB_NONE);
	descriptors_free(d);
}

/* A log that names the file beside each descriptor. */
static void test_expected(void **state)
{
	struct descriptors *d = descriptors_new();
	uint32_t t = descriptors_table(d);

	(void)state;
	descriptors_open(d, t, 3, 1, 0, 0);
	descriptors_transfer(d, t, 3, 8, false);
	assert_int_equal(descriptors_expect(d, t, 3, 1, 0), 1);
	assert_int_equal(descriptors_position(d, t, 3), 8);
	descriptors_rename(d, 1, 2);
	descriptors_rename(d, 2, 5);
	assert_int_equal(descriptors_expect(d, t, 3, 5, 0), 1);
	assert_int_equal(descriptors_position(d, t, 3), 8);
	/* reused unseen */
	assert_int_equal(descriptors_expect(d, t, 3, 9, 0), 9);
	assert_true(descriptors_position(d, t, 3) == JOB_UNKNOWN);
	/* two names that were exchanged do not turn for ever */
	descriptors_rename(d, 10, 11);
	descriptors_rename(d, 11, 10);
	descriptors_open(d, t, 3, 10, 0, 0);
	assert_int_equal(descriptors_expect(d, t, 3, 12, 0), 12);
	descriptors_free(d);
}

/* ---- the model ---- */

#define NUMBERS 12
#define TABLES 6

static const int64_t number[NUMBERS] = {0,    1,    2,      31,      32,        33,
					1023, 1024, 100000, 1 << 30, INT32_MAX, 7};

struct model {
	int slot[TABLES][NUMBERS]; /* description + 1 */
	bool cloexec[TABLES][NUMBERS];
	int64_t position[1 << 16];
	uint32_t file[1 << 16];
	int n;
};

static void forget(struct model *m, int t)
{
	memset(m->slot[t], 0, sizeof(m->slot[t]));
	memset(m->cloexec[t], 0, sizeof(m->cloexec[t]));
}

static void step(struct model *m, struct descriptors *d, uint32_t *table, unsigned what, int t,
		 int u, int a, int b)
{
	switch (what) {
	case 0:
	case 1:
		m->slot[t][a] = ++m->n;
		m->position[m->n] = 0;
		m->file[m->n] = (uint32_t)m->n;
		m->cloexec[t][a] = what;
		descriptors_open(d, table[t], number[a], (uint32_t)m->n, 0,
				 what ? DESCRIPTOR_CLOEXEC : 0);
		break;
	case 2:
		m->slot[t][a] = 0;
		descriptors_close(d, table[t], number[a]);
		break;
	case 3:
	case 4:
		if (t != u || a != b) {
			m->slot[u][b] = m->slot[t][a];
			m->cloexec[u][b] = what == 3;
		}
		descriptors_dup(d, table[t], number[a], table[u], number[b],
				what == 3 ? DESCRIPTOR_CLOEXEC : 0);
		break;
	case 5:
		if (t == u)
			break;
		memcpy(m->slot[u], m->slot[t], sizeof(m->slot[u]));
		memcpy(m->cloexec[u], m->cloexec[t], sizeof(m->cloexec[u]));
		descriptors_drop(d, table[u]);
		table[u] = descriptors_fork(d, table[t]);
		break;
	case 6:
		for (int i = 0; i < NUMBERS; i++)
			if (m->cloexec[t][i])
				m->slot[t][i] = 0;
		table[t] = descriptors_exec(d, table[t]);
		break;
	case 7:
		forget(m, t);
		descriptors_drop(d, table[t]);
		table[t] = descriptors_table(d);
		break;
	case 8:
		for (int i = 0; i < NUMBERS; i++)
			if (number[i] >= number[a] && number[i] <= number[b])
				m->slot[t][i] = 0;
		descriptors_close_range(d, table[t], number[a], number[b]);
		break;
	case 9:
		m->cloexec[t][a] = b & 1;
		descriptors_set_cloexec(d, table[t], number[a], b & 1);
		break;
	default:
		if (m->slot[t][a]) {
			assert_int_equal(descriptors_transfer(d, table[t], number[a], b, b & 1),
					 m->position[m->slot[t][a]]);
			m->position[m->slot[t][a]] += b;
		}
	}
}

static void test_model(void **state)
{
	struct descriptors *d = descriptors_new();
	struct model *m = calloc(1, sizeof(*m));
	uint32_t table[TABLES];

	(void)state;
	srand(7);
	for (int t = 0; t < TABLES; t++)
		table[t] = descriptors_table(d);
	for (int i = 0; i < 60000; i++) {
		step(m, d, table, (unsigned)rand() % 14, rand() % TABLES, rand() % TABLES,
		     rand() % NUMBERS, rand() % NUMBERS);
		for (int t = i % TABLES, a = 0; a < NUMBERS; a++)
			assert_int_equal(descriptors_file(d, table[t], number[a]),
					 m->slot[t][a] ? m->file[m->slot[t][a]] : JOB_NONE);
	}
	assert_int_equal(descriptors_lost(d), 0);
	free(m);
	descriptors_free(d);
}

/* ---- bounds ---- */

#define FORKS (DESCRIPTORS_ENTRIES / DESCRIPTORS_OPEN - 1)

static void test_hostile(void **state)
{
	static uint32_t fork[FORKS];
	struct descriptors *d = descriptors_new();
	uint32_t t = descriptors_table(d), u;

	(void)state;
	descriptors_open(d, t, -1, 1, 0, 0);
	descriptors_open(d, t, INT64_C(1) << 31, 1, 0, 0);
	descriptors_open(d, t, INT64_MAX, 1, 0, 0);
	descriptors_close_range(d, t, INT64_MIN, INT64_MAX);
	assert_int_equal(descriptors_file(d, t, INT64_MAX), JOB_NONE);
	/* as many as are kept, and more: then the table is unknown, and begins anew */
	for (int64_t i = 0; i < DESCRIPTORS_OPEN; i++)
		descriptors_open(d, t, (i * 40503 * 32) & INT32_MAX, 1, 0, 0);
	assert_int_equal(descriptors_lost(d), 0);
	descriptors_open(d, t, 1, 1, 0, 0);
	assert_int_equal(descriptors_lost(d), 1);
	assert_int_equal(descriptors_file(d, t, 0), JOB_NONE);
	/* of all tables together */
	for (int64_t i = 0; i < DESCRIPTORS_OPEN; i++)
		descriptors_open(d, t, i, (uint32_t)i, 0, DESCRIPTOR_CLOEXEC);
	for (uint32_t i = 0; i < FORKS; i++)
		fork[i] = descriptors_fork(d, t);
	assert_int_equal(descriptors_lost(d), 1);
	u = descriptors_fork(d, t);
	assert_int_equal(descriptors_lost(d), 2);
	assert_int_equal(descriptors_file(d, u, 5), JOB_NONE);
	assert_int_equal(descriptors_file(d, fork[FORKS - 1], 5), 5);
	/* what was freed is there again */
	for (uint32_t i = 0; i < FORKS; i++)
		descriptors_drop(d, fork[i]);
	for (int i = 0; i < 1000; i++) {
		u = descriptors_fork(d, t);
		descriptors_close(d, u, i);
		assert_int_equal(descriptors_file(d, u, i), JOB_NONE);
		descriptors_drop(d, u);
	}
	assert_int_equal(descriptors_lost(d), 2);
	assert_int_equal(descriptors_file(d, t, 5), 5);
	t = descriptors_exec(d, t);
	assert_int_equal(descriptors_file(d, t, 5), JOB_NONE);
	descriptors_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_positions), cmocka_unit_test(test_append),
		cmocka_unit_test(test_sharing),   cmocka_unit_test(test_expected),
		cmocka_unit_test(test_model),     cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
