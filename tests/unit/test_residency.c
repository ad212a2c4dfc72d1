/* Looks at, and eviction of, whole datasets: which files, what becomes of a failure, and stopping.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "dataset_fixture.h"
#include "../skip.h"
#include "disk_folder.h"

#include "base/buf.h"
#include "dataset/each.h"
#include "dataset/generate.h"
#include "dataset/residency.h"

#define TRAIN 40
#define EVAL 10

static struct {
	char root[64];
	bool there;
	struct workload w;
	struct dataset d;
	struct store *store;
	struct residency_job job;
} t;

static int set_up(void **state)
{
	struct generate_options o = {.threads = 2};
	struct err e;

	(void)state;
	memset(&t, 0, sizeof(t));
	t.there = disk_folder(t.root, sizeof(t.root), "residency");
	if (!t.there)
		return 0;
	t.w = fixture_workload("npy", t.root, TRAIN, EVAL);
	fixture_dataset(&t.d, &t.w);
	t.store = fixture_store("posix", NULL);
	if (dataset_generate(&t.d, t.store, &o, &e) < 0)
		fail_msg("%s", e.text);
	t.job = (struct residency_job){
		.dataset = &t.d, .store = t.store, .eval = true, .files = 1000};
	return 0;
}

static int tear_down(void **state)
{
	char folder[DATASET_PATH_MAX];

	(void)state;
	if (!t.there)
		return 0;
	dataset_remove(&t.d, t.store, NULL);
	for (int k = 0; k < DATASET_KINDS; k++) {
		dataset_folder(&t.d, (enum dataset_kind)k, 0, folder, sizeof(folder), NULL);
		rmdir(folder);
	}
	rmdir(t.root);
	store_destroy(t.store);
	dataset_release(&t.d);
	return 0;
}

static struct residency look(void)
{
	struct residency r;
	struct err e;

	if (residency_look(&t.job, &r, &e) < 0)
		fail_msg("%s", e.text);
	return r;
}

/* Reads one file into the cache. */
static void touch(enum dataset_kind kind, uint64_t index)
{
	char path[DATASET_PATH_MAX], byte[4096];
	int fd;

	assert_int_equal(dataset_path(&t.d, kind, index, path, sizeof(path), NULL), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	while (read(fd, byte, sizeof(byte)) > 0)
		continue;
	close(fd);
}

static void even(void **state)
{
	static const uint64_t files[] = {1, 2, 3, 7, 1000, 1001, 12345, 1ull << 40, UINT64_MAX / 2};

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		uint64_t n = files[i] < 1000 ? files[i] : 1000, before = 0;

		assert_int_equal(each_even(files[i], n, 0), 0);
		for (uint64_t k = 1; k < n; k++) {
			uint64_t at = each_even(files[i], n, k);

			assert_true(at > before && at < files[i]);
			before = at;
		}
		if (files[i] < 1ull << 50)
			assert_int_equal(before, files[i] - 1);
	}
	assert_int_equal(each_even(9, 1, 0), 0);
	assert_int_equal(each_even(9, 3, 1), 4);
}

/* Files of all subfolders, each once, and from everywhere in them. */
static void spread(void **state)
{
	static const struct {
		uint64_t files, folders, n;
	} cases[] = {{60, 6, 12},     {60, 6, 6},          {60, 6, 60}, {1000, 7, 100},
		     {1003, 50, 64},  {997, 31, 8},        {10, 20, 5}, {10, 20, 10},
		     {64, 64, 16},    {100000, 128, 1000}, {5, 1, 3},   {40000, 3, 2},
		     {1000, 500, 600}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct dataset d = {.files = {cases[i].files}, .subfolders = {cases[i].folders}};
		uint64_t folders =
			cases[i].folders < cases[i].files ? cases[i].folders : cases[i].files;
		unsigned char *seen = calloc(cases[i].files, 1), *in = calloc(folders, 1);
		uint64_t covered = 0, late = 0;

		for (uint64_t k = 0; k < cases[i].n; k++) {
			uint64_t at = each_spread(&d, DATASET_TRAIN, cases[i].n, k);

			assert_true(at < cases[i].files);
			assert_false(seen[at]);
			seen[at] = 1;
			covered += !in[at % folders]++;
			late += at >= cases[i].files / 2;
		}
		assert_int_equal(covered, cases[i].n < folders ? cases[i].n : folders);
		/* not only the files that were generated first */
		if (cases[i].files > 100 && cases[i].n >= 8)
			assert_in_range(late, cases[i].n / 4, cases[i].n - cases[i].n / 4);
		for (uint64_t k = 0; k < cases[i].files; k++)
			seen[each_by_folder(&d, DATASET_TRAIN, k)] = 2;
		for (uint64_t k = 0; k < cases[i].files; k++)
			assert_int_equal(seen[k], 2);
		free(seen);
		free(in);
	}
}

/* What several hosts saw: the numbers of the fullest, and the sum of what they hold. */
static void joined(void **state)
{
	struct residency a = {.known = true, .looked = 4, .bytes = 100, .cached_bytes = 10};
	struct residency b = {.known = true, .looked = 4, .bytes = 100, .cached_bytes = 70};
	struct residency c = {.known = true, .looked = 4, .bytes = 100, .cached_bytes = 30};
	struct residency none = {.why = "not allowed"};

	(void)state;
	assert_int_equal(residency_cached(&a), 10);
	residency_join(&a, &b, 3);
	residency_join(&a, &c, 5);
	assert_true(a.known);
	assert_int_equal(a.cached_bytes, 70);
	assert_int_equal(a.process, 3);
	assert_int_equal(a.hosts, 3);
	assert_int_equal(residency_cached(&a), 110);
	residency_join(&a, &none, 6);
	assert_false(a.known);
	assert_string_equal(a.why, "not allowed");
	residency_join(&a, &c, 7);
	assert_false(a.known);
}

static void all_files(void **state)
{
	uint64_t one = dataset_file_bytes(&t.d, DATASET_TRAIN, 0);
	struct residency r;

	(void)state;
	if (!t.there)
		skip_because("no folder here lies on a disk");
	assert_int_equal(residency_evict(&t.job, NULL), 0);
	r = look();
	assert_true(r.known && !r.memory);
	assert_string_not_equal(r.file_system, "");
	assert_int_equal(r.files, TRAIN + EVAL);
	assert_int_equal(r.looked, TRAIN + EVAL);
	assert_int_equal(r.bytes, (TRAIN + EVAL) * one);
	assert_int_equal(r.cached_bytes, 0);
	touch(DATASET_TRAIN, 3);
	touch(DATASET_EVAL, EVAL - 1);
	assert_int_equal(look().cached_bytes, 2 * one);
	/* evaluation files belong to it only when they are read */
	t.job.eval = false;
	r = look();
	assert_int_equal(r.files, TRAIN);
	assert_int_equal(r.looked, TRAIN);
	assert_int_equal(r.cached_bytes, one);
	assert_int_equal(residency_evict(&t.job, NULL), 0);
	t.job.eval = true;
	assert_int_equal(look().cached_bytes, one);
}

static void some_files(void **state)
{
	uint64_t one = dataset_file_bytes(&t.d, DATASET_TRAIN, 0);
	struct residency r;

	(void)state;
	if (!t.there)
		skip_because("no folder here lies on a disk");
	assert_int_equal(residency_evict(&t.job, NULL), 0);
	/* 0, 13, 26, 39 of one kind; 0, 3, 6, 9 of the other */
	t.job.files = 4;
	touch(DATASET_TRAIN, 39);
	touch(DATASET_TRAIN, 12);
	touch(DATASET_EVAL, 3);
	r = look();
	assert_int_equal(r.files, TRAIN + EVAL);
	assert_int_equal(r.looked, 8);
	assert_int_equal(r.bytes, 8 * one);
	assert_int_equal(r.cached_bytes, 2 * one);
	/* eviction is of all */
	assert_int_equal(residency_evict(&t.job, NULL), 0);
	t.job.files = 1000;
	assert_int_equal(look().cached_bytes, 0);
	t.job.files = 0;
	r = look();
	assert_false(r.known);
	assert_string_equal(r.why, "no file was looked at");
}

/* Somebody holds a page until the eviction has begun, and lets it go soon after. */
struct holder {
	pthread_t thread;
	_Atomic int64_t *progress;
	void *page;
};

static void *hold(void *arg)
{
	struct holder *h = arg;

	while (atomic_load(h->progress) == 0)
		usleep(100);
	usleep(2000);
	munmap(h->page, 4096);
	return NULL;
}

static void hold_page(struct holder *h)
{
	char path[DATASET_PATH_MAX];
	int fd;

	assert_int_equal(dataset_path(&t.d, DATASET_TRAIN, 5, path, sizeof(path), NULL), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	h->page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(h->page != MAP_FAILED);
	close(fd);
	assert_true(*(volatile char *)h->page == (char)0x93);
}

static void held_for_a_moment(void **state)
{
	uint64_t left = 1;

	(void)state;
	if (!t.there)
		skip_because("no folder here lies on a disk");
	/* a machine without a free processor may let the holder go on too late */
	for (int i = 0; i < 5 && left; i++) {
		_Atomic int64_t progress = 0;
		struct holder h = {.progress = &progress};

		hold_page(&h);
		t.job.progress_ns = &progress;
		assert_int_equal(pthread_create(&h.thread, NULL, hold, &h), 0);
		assert_int_equal(residency_evict(&t.job, NULL), 0);
		pthread_join(h.thread, NULL);
		left = look().cached_bytes;
	}
	assert_int_equal(left, 0);
}

/* A page that is never let go stays, and is no failure. */
static void held(void **state)
{
	struct holder h = {0};

	(void)state;
	if (!t.there)
		skip_because("no folder here lies on a disk");
	hold_page(&h);
	assert_int_equal(residency_evict(&t.job, NULL), 0);
	assert_true(look().cached_bytes > 0);
	munmap(h.page, 4096);
}

static void failures(void **state)
{
	char path[DATASET_PATH_MAX];
	struct stop_flag stop = {0};
	_Atomic int64_t progress = 0;
	struct residency r;
	struct err e = {0};

	(void)state;
	if (!t.there)
		skip_because("no folder here lies on a disk");
	t.job.stop = &stop;
	t.job.progress_ns = &progress;
	look();
	assert_true(progress > 0);
	assert_int_equal(dataset_path(&t.d, DATASET_TRAIN, 7, path, sizeof(path), NULL), 0);
	assert_int_equal(unlink(path), 0);
	r = look();
	assert_false(r.known);
	assert_non_null(strstr(r.why, path));
	assert_int_equal(residency_evict(&t.job, &e), -ENOENT);
	assert_non_null(strstr(e.text, path));
	atomic_store(&stop.set, 1);
	assert_int_equal(residency_look(&t.job, &r, &e), ERR_CANCELED);
	assert_false(r.known);
	assert_int_equal(residency_evict(&t.job, &e), ERR_CANCELED);
}

int main(void)
{
#define CHECK(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(even),
		cmocka_unit_test(spread),
		cmocka_unit_test(joined),
		CHECK(all_files),
		CHECK(some_files),
		CHECK(held_for_a_moment),
		CHECK(held),
		CHECK(failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
