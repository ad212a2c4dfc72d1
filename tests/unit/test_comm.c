/* The ranks' barrier: nobody leaves before all arrived, and a stop leaves nobody behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "comm/comm.h"

#define RANKS 24
#define ROUNDS 300

struct rank_arg {
	struct comm comm;
	_Atomic uint32_t *arrived; /* of all, ever */
	uint32_t early;            /* times this rank left before all had come */
	uint32_t rounds, canceled;
};

static void *walk(void *p)
{
	struct rank_arg *a = p;

	for (a->rounds = 0; a->rounds < ROUNDS; a->rounds++) {
		atomic_fetch_add(a->arrived, 1);
		if (comm_barrier(&a->comm) != 0) {
			a->canceled = 1;
			break;
		}
		if (atomic_load(a->arrived) < (a->rounds + 1) * a->comm.size)
			a->early++;
	}
	return NULL;
}

static void everyone_waits_for_everyone(void **state)
{
	struct stop_flag stop = {0};
	struct comm comms[RANKS];
	struct comm_group *g = comm_create(comms, RANKS, NULL, COMM_RANKS, &stop);
	_Atomic uint32_t arrived = 0;
	struct rank_arg arg[RANKS];
	pthread_t t[RANKS];

	(void)state;
	for (uint32_t r = 0; r < RANKS; r++) {
		arg[r] = (struct rank_arg){.comm = comms[r], .arrived = &arrived};
		assert_int_equal(thread_start(&t[r], walk, &arg[r], 0, "rank", NULL), 0);
	}
	for (uint32_t r = 0; r < RANKS; r++) {
		pthread_join(t[r], NULL);
		assert_int_equal(arg[r].rounds, ROUNDS);
		assert_int_equal(arg[r].early, 0);
	}
	comm_local_destroy(g);
}

static void a_stop_releases_all(void **state)
{
	struct stop_flag stop = {0};
	struct comm comms[RANKS];
	struct comm_group *g = comm_create(comms, RANKS, NULL, COMM_RANKS, &stop);
	_Atomic uint32_t arrived = 0;
	struct rank_arg arg[RANKS];
	pthread_t t[RANKS];

	(void)state;
	/* the last rank never comes */
	for (uint32_t r = 0; r + 1 < RANKS; r++) {
		arg[r] = (struct rank_arg){.comm = comms[r], .arrived = &arrived};
		assert_int_equal(thread_start(&t[r], walk, &arg[r], 0, "rank", NULL), 0);
	}
	clock_sleep_until(clock_now_ns() + NS_PER_S / 20);
	atomic_store(&stop.set, 1);
	comm_wake(g);
	for (uint32_t r = 0; r + 1 < RANKS; r++) {
		pthread_join(t[r], NULL);
		assert_int_equal(arg[r].canceled, 1);
		assert_int_equal(arg[r].rounds, 0);
	}
	assert_int_equal(comm_barrier(&comms[RANKS - 1]), ERR_CANCELED);
	comm_local_destroy(g);
}

/* Rank 0 says when; in one round of three nobody is asked, and the others say what is not true. */
static void *told(void *p)
{
	struct rank_arg *a = p;

	for (int i = 0; i < ROUNDS; i++) {
		int64_t never = INT64_MAX, long_ago = 1;
		bool mine = i % 3 == 1, due = !mine;

		if (i % 3 == 2) {
			a->early += comm_barrier(&a->comm) != 0;
			continue;
		}
		a->early +=
			comm_barrier_until(&a->comm, (a->comm.rank == 0) == mine ? long_ago : never,
					   &due) != 0;
		a->early += due != mine;
	}
	return NULL;
}

static void rank_0_says_when(void **state)
{
	struct comm comms[RANKS];
	struct rank_arg arg[RANKS] = {0};
	struct stop_flag stop = {0};
	struct comm_group *g = comm_create(comms, RANKS, NULL, COMM_RANKS, &stop);
	pthread_t t[RANKS];
	bool due;

	(void)state;
	for (int r = 0; r < RANKS; r++) {
		arg[r].comm = comms[r];
		assert_int_equal(thread_start(&t[r], told, &arg[r], 0, "rank", NULL), 0);
	}
	for (int r = 0; r < RANKS; r++) {
		pthread_join(t[r], NULL);
		assert_int_equal(arg[r].early, 0);
	}
	comm_local_destroy(g);
	g = comm_create(comms, 1, NULL, COMM_RANKS, &stop);
	assert_int_equal(comm_barrier_until(&comms[0], 1, &due), 0);
	assert_true(due);
	assert_int_equal(comm_barrier_until(&comms[0], INT64_MAX, &due), 0);
	assert_false(due);
	comm_local_destroy(g);
}

static _Atomic int64_t when_ns;

/* Rank 0 comes before the time, the last rank after it. */
static void *late(void *p)
{
	struct rank_arg *a = p;
	int64_t due_ns = 1;
	bool due = false;

	if (a->comm.rank == 0) {
		due_ns = clock_now_ns() + NS_PER_S / 20;
		atomic_store(&when_ns, due_ns);
	} else if (a->comm.rank == RANKS - 1) {
		while (atomic_load(&when_ns) == 0 || clock_now_ns() < atomic_load(&when_ns))
			clock_sleep_until(clock_now_ns() + NS_PER_S / 100);
	}
	a->early += comm_barrier_until(&a->comm, due_ns, &due) != 0 || !due;
	return NULL;
}

static void the_last_to_arrive_decides(void **state)
{
	struct comm comms[RANKS];
	struct rank_arg arg[RANKS] = {0};
	struct stop_flag stop = {0};
	struct comm_group *g = comm_create(comms, RANKS, NULL, COMM_RANKS, &stop);
	pthread_t t[RANKS];

	(void)state;
	for (int r = 0; r < RANKS; r++) {
		arg[r].comm = comms[r];
		assert_int_equal(thread_start(&t[r], late, &arg[r], 0, "rank", NULL), 0);
	}
	for (int r = 0; r < RANKS; r++) {
		pthread_join(t[r], NULL);
		assert_int_equal(arg[r].early, 0);
	}
	comm_local_destroy(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everyone_waits_for_everyone),
		cmocka_unit_test(a_stop_releases_all),
		cmocka_unit_test(rank_0_says_when),
		cmocka_unit_test(the_last_to_arrive_decides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
