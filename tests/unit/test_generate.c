/* Generation: whole files or none, whatever fails and whenever it is killed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/str.h"
#include "dataset/generate.h"
#include "dataset/listing.h"
#include "dataset/manifest.h"
#include "dataset/presence.h"
#include "dataset_fixture.h"

static int generate(const struct dataset *d, struct store *s, unsigned threads,
		    struct generate_progress *p, struct err *e)
{
	struct generate_options o = {.threads = threads, .progress = p};

	return dataset_generate(d, s, &o, e);
}

static void must_generate(const struct dataset *d, struct store *s)
{
	struct err e;

	if (generate(d, s, 2, NULL, &e) < 0)
		fail_msg("%s", e.text);
}

static void must_verify(const struct dataset *d, struct store *s)
{
	struct verify_result r;
	struct err e;

	if (dataset_verify(d, s, 2, NULL, NULL, &r, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(r.files, d->files[0] + d->files[1]);
}

/* Every file that has its final name is right; says how many there are. */
static uint64_t whole_files(const struct dataset *d, struct store *s)
{
	void *scratch = malloc(FORMAT_WRITE_SCRATCH);
	struct io io = {.store = s};
	uint64_t n = 0;

	for (int k = 0; k < DATASET_KINDS; k++)
		for (uint64_t i = 0; i < d->files[k]; i++) {
			char path[DATASET_PATH_MAX];
			struct file_spec f;
			struct store_stat st;
			struct err e;

			dataset_path(d, (enum dataset_kind)k, i, path, sizeof(path), NULL);
			if (io_stat_path(&io, path, &st, NULL) < 0)
				continue;
			n++;
			dataset_file_spec(d, (enum dataset_kind)k, i, &f);
			if (format_verify(d->format, &io, path, &f, &d->content, scratch,
					  FORMAT_WRITE_SCRATCH, &e) < 0)
				fail_msg("%s", e.text);
		}
	free(scratch);
	return n;
}

static int no_part(void *arg, const char *folder, const char *name, bool is_dir)
{
	(void)arg;
	if (!is_dir && str_ends(name, ".part"))
		fail_msg("%s/%s was left", folder, name);
	return 0;
}

static void assert_no_parts(const struct dataset *d, struct store *s)
{
	for (int k = 0; k < DATASET_KINDS; k++)
		assert_int_equal(listing_each(d, s, (enum dataset_kind)k, no_part, NULL, NULL), 0);
}

static struct manifest manifest_of(const struct dataset *d, struct store *s)
{
	struct io io = {.store = s};
	struct manifest m;

	assert_int_equal(manifest_read(&io, d->folder, &m, NULL), 0);
	return m;
}

static void every_format(void **state)
{
	(void)state;
	for (size_t i = 0; format_table[i]; i++) {
		struct workload w = fixture_workload(format_table[i]->is.name, "/data/set", 11, 5);
		struct store *s = fixture_store("memory", NULL);
		struct generate_progress p = {0};
		struct dataset d;
		struct err e;

		w.dataset.num_samples_per_file = 3;
		w.dataset.record_length_bytes_stdev = 1000;
		w.dataset.num_subfolders_train = 3;
		fixture_dataset(&d, &w);
		if (generate(&d, s, 3, &p, &e) < 0)
			fail_msg("%s: %s", format_table[i]->is.name, e.text);
		assert_int_equal(p.files_done, 16);
		assert_int_equal(p.files_total, 16);
		/* 0: sizes depend on the content */
		assert_true(p.bytes_done == p.bytes_total || p.bytes_total == 0);
		must_verify(&d, s);
		assert_no_parts(&d, s);
		assert_true(manifest_of(&d, s).complete);
		dataset_release(&d);
		store_destroy(s);
	}
}

static void nothing_at_all(void **state)
{
	struct workload w = fixture_workload("npy", "/data", 0, 0);
	struct store *s = fixture_store("memory", NULL);
	struct store_stat st;
	struct dataset d;

	(void)state;
	fixture_dataset(&d, &w);
	must_generate(&d, s);
	assert_true(manifest_of(&d, s).complete);
	assert_int_equal(store_stat_path(s, "/data/train", &st, NULL), 0);
	assert_int_equal(store_stat_path(s, "/data/valid", &st, NULL), 0);
	dataset_release(&d);
	store_destroy(s);
}

static void a_complete_one_is_left_alone(void **state)
{
	struct workload w = fixture_workload("npy", "/data", 6, 2);
	struct store *s = fixture_store("memory", NULL);
	struct generate_progress p = {0}, q = {0};
	struct manifest before, after;
	struct dataset d;

	(void)state;
	fixture_dataset(&d, &w);
	must_generate(&d, s);
	before = manifest_of(&d, s);
	assert_int_equal(generate(&d, s, 2, &p, NULL), 0);
	after = manifest_of(&d, s);
	assert_string_equal(before.created, after.created);
	assert_int_equal(p.files_skipped, 8);
	assert_int_equal(p.files_done, 0);
	assert_int_equal(p.bytes_total, 0);
	/* One that lost a file and has one cut off gets these two back. */
	assert_int_equal(store_remove(s, "/data/train/img_3_of_6.npy", NULL), 0);
	fixture_put(s, "/data/valid/img_1_of_2.npy", "short", 5);
	assert_int_equal(generate(&d, s, 2, &q, NULL), 0);
	assert_int_equal(q.files_skipped, 6);
	assert_int_equal(q.files_done, 2);
	must_verify(&d, s);
	dataset_release(&d);
	store_destroy(s);
}

/* Files of the same names and sizes but another content must not be taken for ours, at no moment.
 */
static void another_dataset_is_replaced(void **state)
{
	struct workload w = fixture_workload("npy", "/data", 6, 2);
	struct store *s = fixture_store("memory", NULL);
	struct dataset old, new;
	size_t n;
	char *stays;

	(void)state;
	fixture_dataset(&old, &w);
	must_generate(&old, s);
	fixture_put(s, "/data/train/notes.txt", "mine", 4);
	w.dataset.seed = 7;
	fixture_dataset(&new, &w);
	must_generate(&new, s);
	must_verify(&new, s);
	stays = fixture_get(s, "/data/train/notes.txt", &n);
	assert_string_equal(stays, "mine");
	free(stays);
	/* Without a manifest nobody knows whose they are. */
	assert_int_equal(store_remove(s, "/data/" MANIFEST_NAME, NULL), 0);
	must_generate(&old, s);
	must_verify(&old, s);
	/* A manifest that is none is replaced. */
	fixture_put(s, "/data/" MANIFEST_NAME, "{", 1);
	must_generate(&new, s);
	must_verify(&new, s);
	dataset_release(&old);
	dataset_release(&new);
	store_destroy(s);
}

/* One failing call at a time, over an empty folder or over another dataset: a sentence, no file
 * under its final name that is not right, and the next attempt completes. */
static int fail_at(int nth, const char *op, const char *errnum, bool replace)
{
	struct workload w = fixture_workload("npy", "/data", 3, 1);
	struct dataset old, d;
	struct manifest m;
	struct err e = {0};
	char options[128];
	struct store *s;
	int rc;

	/* The first dataset is written without failures: its paths are not counted. */
	snprintf(options, sizeof(options), "fault: {op: %s, nth: %d, errno: %s, path: /data/}", op,
		 nth, errnum);
	s = fixture_store("fault+memory", options);
	w.dataset.num_subfolders_train = 2;
	fixture_dataset(&old, &w);
	if (replace)
		must_generate(&old, s->lower);
	w.dataset.seed = 7;
	fixture_dataset(&d, &w);
	rc = generate(&d, s, 1, NULL, &e);
	m = manifest_of(&d, s->lower);
	if (rc < 0) {
		assert_true(strlen(e.text) > 20);
		if (m.found && manifest_matches(&m, &d, NULL) && m.state != MANIFEST_CLEARING) {
			uint64_t n = whole_files(&d, s->lower);

			assert_true(!m.complete || n == 4);
		}
		if (strcmp(op, "remove") != 0)
			assert_no_parts(&d, s->lower);
		/* Once more, from what is there. */
		must_generate(&d, s->lower);
	}
	must_verify(&d, s->lower);
	assert_no_parts(&d, s->lower);
	m = manifest_of(&d, s->lower);
	assert_true(m.complete);
	dataset_release(&old);
	dataset_release(&d);
	store_destroy(s);
	return rc;
}

static void each_call_fails(void **state)
{
	static const char *const ops[] = {"any",   "write", "rename", "sync",
					  "close", "open",  "stat"};

	(void)state;
	for (int replace = 0; replace < 2; replace++)
		for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
			int nth = 1, failed = 0, good = 0;

			/* Some calls may fail without harm; several in a row without failure mean
			 * that there are no more. */
			for (; good < 5 && nth < 400; nth++) {
				int rc = fail_at(nth, ops[i], i == 1 ? "ENOSPC" : "EIO", replace);

				failed += rc < 0;
				good = rc < 0 ? 0 : good + 1;
			}
			assert_true(nth < 400);
			assert_true(failed >= 4 || i == 6);
		}
}

static void the_sentence_names_the_file(void **state)
{
	struct workload w = fixture_workload("npy", "/data", 9, 0);
	struct store *s = fixture_store("fault+memory",
					"fault: {op: write, nth: 1, errno: ENOSPC, path: img_4}");
	struct dataset d;
	struct err e;

	(void)state;
	fixture_dataset(&d, &w);
	assert_int_equal(generate(&d, s, 1, NULL, &e), -ENOSPC);
	assert_non_null(strstr(e.text, "/data/train/img_4_of_9.npy"));
	assert_non_null(strstr(e.text, "No space"));
	assert_int_equal(whole_files(&d, s), 4);
	assert_false(manifest_of(&d, s).complete);
	dataset_release(&d);
	store_destroy(s);
}

static void no_room(void **state)
{
	struct workload w = fixture_workload("npy", "/data", 400, 0);
	struct store *s = fixture_store("memory", "memory: {size: 1500000}");
	struct store_stat st;
	struct dataset d;
	struct err e;

	(void)state;
	w.dataset.record_length_bytes = 10000;
	fixture_dataset(&d, &w);
	assert_int_equal(generate(&d, s, 1, NULL, &e), -ENOSPC);
	assert_non_null(strstr(e.text, "4051200"));
	assert_non_null(strstr(e.text, "1500000"));
	assert_non_null(strstr(e.text, "/data"));
	assert_int_equal(store_stat_path(s, "/data", &st, NULL), -ENOENT);
	dataset_release(&d);
	store_destroy(s);
}

/* Content that sets the stop flag in the middle of a file. */
static struct stop_flag stop;
static _Atomic int fills_left;
static void (*real_fill)(const struct content_source *, uint64_t, uint64_t, void *, size_t);

static void stopping_fill(const struct content_source *src, uint64_t file, uint64_t offset,
			  void *out, size_t n)
{
	if (atomic_fetch_sub(&fills_left, 1) == 1)
		atomic_store(&stop.set, 1);
	real_fill(src, file, offset, out, n);
}

static void stopping(void **state)
{
	struct workload w = fixture_workload("npy", "/data", 9, 0);
	struct generate_options o = {.threads = 2, .stop = &stop};
	struct store *s = fixture_store("memory", NULL);
	struct generate_progress p = {0};
	struct dataset d;
	struct err e;

	(void)state;
	w.dataset.record_length_bytes = 1 << 20;
	fixture_dataset(&d, &w);
	atomic_store(&stop.set, 1);
	assert_int_equal(dataset_generate(&d, s, &o, &e), ERR_CANCELED);
	assert_int_equal(whole_files(&d, s), 0);
	atomic_store(&stop.set, 0);
	real_fill = d.content.fill;
	d.content.fill = stopping_fill;
	atomic_store(&fills_left, 5);
	assert_int_equal(dataset_generate(&d, s, &o, &e), ERR_CANCELED);
	d.content.fill = real_fill;
	assert_true(whole_files(&d, s) < 9);
	assert_no_parts(&d, s);
	assert_int_equal(manifest_of(&d, s).state, MANIFEST_WRITING);
	assert_int_equal(generate(&d, s, 2, &p, &e), 0);
	assert_int_equal(p.files_done + p.files_skipped, 9);
	must_verify(&d, s);
	dataset_release(&d);
	store_destroy(s);
}

/* A large file is given up in the middle; being stopped is said even where nothing is to be
 * written. */
static void stopping_in_a_large_file(void **state)
{
	struct workload w = fixture_workload("npy", "/data", 1, 0);
	struct generate_options o = {.threads = 2, .stop = &stop};
	struct store *s = fixture_store("memory", NULL);
	struct dataset d;
	struct err e;

	(void)state;
	w.dataset.record_length_bytes = 20 << 20;
	fixture_dataset(&d, &w);
	real_fill = d.content.fill;
	d.content.fill = stopping_fill;
	atomic_store(&fills_left, 2);
	atomic_store(&stop.set, 0);
	assert_int_equal(dataset_generate(&d, s, &o, &e), ERR_CANCELED);
	assert_true(fills_left > -3);
	assert_int_equal(whole_files(&d, s), 0);
	assert_no_parts(&d, s);
	d.content.fill = real_fill;
	must_generate(&d, s);
	assert_int_equal(dataset_generate(&d, s, &o, &e), ERR_CANCELED);
	assert_true(manifest_of(&d, s).complete);
	dataset_release(&d);
	store_destroy(s);
}

/* A name means that the bytes are on the device: a file whose sync fails does not get it. */
static void files_are_synced_before_they_are_named(void **state)
{
	struct workload w = fixture_workload("npy", "/data", 5, 0);
	struct store *s = fixture_store("fault+memory", "fault: {op: sync, nth: 1, path: img_2}");
	struct dataset d;
	struct err e;

	(void)state;
	fixture_dataset(&d, &w);
	assert_int_equal(generate(&d, s, 1, NULL, &e), -EIO);
	assert_non_null(strstr(e.text, "img_2_of_5"));
	assert_int_equal(whole_files(&d, s), 2);
	store_destroy(s);
	s = fixture_store("fault+memory", "fault: {op: sync, nth: 1, path: stoker_manifest}");
	assert_int_equal(generate(&d, s, 1, NULL, &e), -EIO);
	assert_int_equal(whole_files(&d, s), 0);
	assert_false(manifest_of(&d, s).found);
	store_destroy(s);
	dataset_release(&d);
}

static char *temporary_folder(void)
{
	const char *root = getenv("TMPDIR");
	char path[256];

	snprintf(path, sizeof(path), "%s/stoker-generate-XXXXXX", root ? root : "/tmp");
	if (!mkdtemp(path))
		fail_msg("mkdtemp %s: %s", path, strerror(errno));
	return strdup(path);
}

/* Files left behind by a killed generator are removed, those of other programs stay. */
static void leftovers(void **state)
{
	char *folder = temporary_folder(), path[512];
	struct workload w = fixture_workload("npy", folder, 4, 0);
	struct store *s = fixture_store("posix", NULL);
	struct dataset d;
	struct stat st;

	(void)state;
	fixture_dataset(&d, &w);
	must_generate(&d, s);
	snprintf(path, sizeof(path), "%s/train/.img_1_of_4.npy.part", folder);
	fixture_put(s, path, "x", 1);
	must_generate(&d, s);
	assert_int_equal(stat(path, &st), -1);
	assert_true(manifest_of(&d, s).complete);
	must_verify(&d, s);
	dataset_release(&d);
	store_destroy(s);
	remove_tree(folder, NULL);
	free(folder);
}

static void killed_generator(const struct dataset *d, struct store *s, int64_t after_us)
{
	struct timespec t = {.tv_sec = 0, .tv_nsec = after_us * 1000};
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0)
		_exit(generate(d, s, 3, NULL, NULL) == 0 ? 0 : 1);
	nanosleep(&t, NULL);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

static void same_bytes(const struct dataset *a, const struct dataset *b, struct store *s)
{
	for (int k = 0; k < DATASET_KINDS; k++)
		for (uint64_t i = 0; i < a->files[k]; i++) {
			char path[DATASET_PATH_MAX];
			size_t n, m;
			char *x, *y;

			dataset_path(a, (enum dataset_kind)k, i, path, sizeof(path), NULL);
			x = fixture_get(s, path, &n);
			dataset_path(b, (enum dataset_kind)k, i, path, sizeof(path), NULL);
			y = fixture_get(s, path, &m);
			assert_non_null(x);
			assert_non_null(y);
			assert_int_equal(n, m);
			assert_memory_equal(x, y, n);
			free(x);
			free(y);
		}
}

/* Killed again and again, at first over another dataset of the same sizes: in the end it is what an
 * uninterrupted generation makes. */
static void killed_and_resumed(void **state)
{
	char *folder = temporary_folder(), *whole = temporary_folder();
	struct workload w = fixture_workload("npy", folder, 60, 10);
	struct store *s = fixture_store("posix", NULL);
	struct dataset d, other, reference;
	struct manifest m;
	uint64_t random = (uint64_t)getpid();

	(void)state;
	w.dataset.record_length_bytes = 30000;
	w.dataset.num_subfolders_train = 2;
	w.dataset.seed = 1;
	fixture_dataset(&other, &w);
	must_generate(&other, s);
	w.dataset.seed = 42;
	fixture_dataset(&d, &w);
	w.dataset.data_folder = whole;
	fixture_dataset(&reference, &w);
	for (int i = 0; i < 12; i++) {
		killed_generator(&d, s, (int64_t)(rng_word(random, (uint64_t)i) % 40000));
		m = manifest_of(&d, s);
		if (m.found && manifest_matches(&m, &d, NULL) && m.state != MANIFEST_CLEARING)
			whole_files(&d, s);
	}
	must_generate(&d, s);
	must_generate(&reference, s);
	must_verify(&d, s);
	same_bytes(&d, &reference, s);
	assert_no_parts(&d, s);
	dataset_release(&d);
	dataset_release(&other);
	dataset_release(&reference);
	store_destroy(s);
	remove_tree(folder, NULL);
	remove_tree(whole, NULL);
	free(folder);
	free(whole);
}

static void any_number_of_threads(void **state)
{
	struct workload w = fixture_workload("npy", "/a", 23, 4);
	struct store *s = fixture_store("memory", NULL);
	struct dataset one, many;
	struct err e;

	(void)state;
	fixture_dataset(&one, &w);
	w.dataset.data_folder = (char *)(uintptr_t) "/b";
	fixture_dataset(&many, &w);
	assert_int_equal(generate(&one, s, 0, NULL, &e), 0);
	assert_int_equal(generate(&many, s, 100, NULL, &e), 0);
	same_bytes(&one, &many, s);
	dataset_release(&one);
	dataset_release(&many);
	store_destroy(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_format),
		cmocka_unit_test(nothing_at_all),
		cmocka_unit_test(a_complete_one_is_left_alone),
		cmocka_unit_test(another_dataset_is_replaced),
		cmocka_unit_test(each_call_fails),
		cmocka_unit_test(the_sentence_names_the_file),
		cmocka_unit_test(no_room),
		cmocka_unit_test(stopping),
		cmocka_unit_test(stopping_in_a_large_file),
		cmocka_unit_test(files_are_synced_before_they_are_named),
		cmocka_unit_test(leftovers),
		cmocka_unit_test(killed_and_resumed),
		cmocka_unit_test(any_number_of_threads),
	};

	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
