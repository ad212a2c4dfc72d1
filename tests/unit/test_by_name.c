/* Reads by folder and file, of stores simulated here: workers read files one after another. */
#include "judge/by_name.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"

#define READS 960
#define WORKERS 8
#define MS 1000000LL

/* What a read of file `file` of `folder` takes when it begins, ns; the free times are the caller's.
 */
typedef int64_t (*store_fn)(int64_t at, uint32_t folder, uint32_t file, uint32_t n);

static struct read_seen seen[READS];
static int64_t free_at[64];

static int by_begin(const void *x, const void *y)
{
	const struct read_seen *a = x, *b = y;

	return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

static uint32_t draw(uint32_t n, uint32_t below)
{
	return (uint32_t)(rng_word(rng_key(7, 0, 0), n) % below);
}

/* Files of `reads` reads in `folders` folders, in an order that is drawn. */
static struct by_name read_all(store_fn store, uint32_t folders, uint32_t files, uint32_t reads)
{
	int64_t at[WORKERS] = {0};
	uint32_t file[WORKERS] = {0}, left[WORKERS] = {0}, next = 0;

	for (int i = 0; i < 64; i++)
		free_at[i] = 0;
	for (uint32_t i = 0; i < READS; i++) {
		char path[64];
		int w = 0;
		int64_t took;

		for (int k = 1; k < WORKERS; k++)
			w = at[k] < at[w] ? k : w;
		if (!left[w]) {
			left[w] = reads;
			file[w] = draw(next++, files);
		}
		snprintf(path, sizeof(path), "/data/train/%u/img_%u_of_%u.npz", file[w] % folders,
			 file[w], files);
		took = store(at[w], file[w] % folders, file[w], i) + MS / 20 * draw(9000 + i, 10);
		seen[i] = (struct read_seen){.begin_ns = at[w],
					     .end_ns = at[w] + took,
					     .bytes = 100000 + draw(i, 20000),
					     .place = reads - left[w]--,
					     .name = read_name(path)};
		at[w] += took + MS / 10;
	}
	qsort(seen, READS, sizeof(*seen), by_begin);
	return by_name_find(seen, READS, 0, 0);
}

static int64_t slow_folder(int64_t at, uint32_t folder, uint32_t file, uint32_t n)
{
	(void)at;
	(void)file;
	(void)n;
	return folder == 2 ? 31 * MS : 6 * MS;
}

static int64_t slow_files(int64_t at, uint32_t folder, uint32_t file, uint32_t n)
{
	(void)at;
	(void)folder;
	(void)n;
	return file % 9 == 4 ? 40 * MS : 5 * MS;
}

static int64_t tail(int64_t at, uint32_t folder, uint32_t file, uint32_t n)
{
	(void)at;
	(void)folder;
	(void)file;
	return draw(n, 9) == 4 ? 40 * MS : 5 * MS;
}

static int64_t phases(int64_t at, uint32_t folder, uint32_t file, uint32_t n)
{
	(void)folder;
	(void)file;
	(void)n;
	return at % (400 * MS) < 100 * MS ? 40 * MS : 5 * MS;
}

static int64_t in_turn(int64_t at, uint32_t of)
{
	free_at[of] = (free_at[of] > at ? free_at[of] : at) + 4 * MS;
	return free_at[of] - at;
}

static int64_t folder_turns(int64_t at, uint32_t folder, uint32_t file, uint32_t n)
{
	(void)file;
	(void)n;
	return in_turn(at, folder);
}

static int64_t file_turns(int64_t at, uint32_t folder, uint32_t file, uint32_t n)
{
	(void)folder;
	(void)n;
	return in_turn(at, file);
}

static int64_t all_in_turn(int64_t at, uint32_t folder, uint32_t file, uint32_t n)
{
	(void)folder;
	(void)file;
	(void)n;
	return in_turn(at, 0);
}

static void slow_ones_are_told(void **state)
{
	struct by_name f = read_all(slow_folder, 5, 400, 3);

	(void)state;
	assert_int_equal(f.what, NAME_SLOW_FOLDERS);
	assert_true(f.slow == 1 && f.all == 5);
	assert_int_equal(f.folder, read_name_folder(read_name("/data/train/2/any")));
	assert_true(f.slow_s > 0.03 && f.others_s < 0.008 && f.share > 0.3 && f.share < 0.8);
	f = read_all(slow_files, 1, 120, 4);
	assert_int_equal(f.what, NAME_SLOW_FILES);
	assert_true(f.slow >= 8 && f.slow <= 14 && f.all > 80);
	assert_true(f.slow_s > 0.04 && f.others_s < 0.007);
}

static void slow_moments_and_tails_are_not(void **state)
{
	(void)state;
	for (uint32_t folders = 1; folders <= 4; folders += 3) {
		assert_int_equal(read_all(tail, folders, 200, 4).what, NAME_NOTHING);
		assert_int_equal(read_all(phases, folders, 200, 4).what, NAME_NOTHING);
	}
	/* each read is of another file: none is seen again */
	assert_int_equal(read_all(slow_files, 1, 100000, 1).what, NAME_NOTHING);
}

static void turns_are_told(void **state)
{
	struct by_name f = read_all(folder_turns, 5, 400, 1);

	(void)state;
	assert_int_equal(f.what, NAME_TURNS_FOLDER);
	assert_true(f.others_s < 0.006 && f.slow_s > 0.006);
	f = read_all(file_turns, 1, 6, 1);
	assert_int_equal(f.what, NAME_TURNS_FILE);
	assert_int_equal(read_all(all_in_turn, 5, 400, 1).what, NAME_NOTHING);
	assert_int_equal(read_all(all_in_turn, 1, 6, 1).what, NAME_NOTHING);
	/* one folder has nothing to be compared with */
	assert_int_equal(read_all(folder_turns, 1, 400, 1).what, NAME_NOTHING);
}

static void names_that_are_not_known_tell_nothing(void **state)
{
	(void)state;
	read_all(slow_folder, 4, 400, 3);
	for (int i = 0; i < READS; i++)
		seen[i].name = 0;
	assert_int_equal(by_name_find(seen, READS, 0, 0).what, NAME_NOTHING);
	assert_int_equal(by_name_find(NULL, 0, 0, 0).what, NAME_NOTHING);
	assert_true(read_name("") != 0 && read_name("a") != 0);
	assert_true(read_name("/d/1/a") != read_name("/d/1/b"));
	assert_true(read_name_folder(read_name("/d/1/a")) == read_name_folder(read_name("/d/1/b")));
	assert_true(read_name_folder(read_name("/d/1/a")) != read_name_folder(read_name("/d/2/a")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slow_ones_are_told),
		cmocka_unit_test(slow_moments_and_tails_are_not),
		cmocka_unit_test(turns_are_told),
		cmocka_unit_test(names_that_are_not_known_tell_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
