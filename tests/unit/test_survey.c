/* Samples compared with what they should hold, of every format and in every store; the page cache
 * is as before; extents and links. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "dataset_fixture.h"
#include "../skip.h"
#include "disk_folder.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "dataset/generate.h"
#include "dataset/presence.h"
#include "format/blob_stream.h"
#include "store/page_cache.h"

#define TRAIN 9
#define EVAL 3
#define SIDE 700 /* files of some 480 KiB: longer than what is read of their beginning */

static struct {
	char root[64];
	bool there;
	struct workload w;
	struct dataset d;
	struct store *store;
	uint64_t made_bytes;
} t;

static void begin(const char *format, const char *store, uint64_t samples)
{
	struct generate_options o = {.threads = 2};
	struct err e;

	memset(&t, 0, sizeof(t));
	t.there = disk_folder(t.root, sizeof(t.root), "survey");
	if (!t.there)
		skip_because("no folder here lies on a disk");
	t.w = fixture_workload(format, t.root, TRAIN, EVAL);
	t.w.dataset.record_length_bytes = SIDE * SIDE;
	t.w.dataset.num_samples_per_file = (int64_t)samples;
	fixture_dataset(&t.d, &t.w);
	t.store = fixture_store(store, NULL);
	if (dataset_generate(&t.d, t.store, &o, &e) < 0)
		fail_msg("%s: %s", format, e.text);
}

static void end(void)
{
	struct err e;

	store_destroy(t.store);
	dataset_release(&t.d);
	assert_int_equal(remove_tree(t.root, &e), 0);
}

static struct survey look_for(bool generated, uint64_t samples, int64_t limit_ns)
{
	struct survey s = {0};
	struct survey_job job = {.dataset = &t.d,
				 .store = t.store,
				 .eval = true,
				 .generated = generated,
				 .samples = samples,
				 .seed = 11,
				 .limit_ns = limit_ns,
				 .made_bytes = t.made_bytes};
	struct err e;

	if (dataset_survey(&job, &s, &e) < 0)
		fail_msg("%s", e.text);
	return s;
}

/* With all the time that it takes, also under a sanitizer. */
static struct survey look(bool generated, uint64_t samples)
{
	return look_for(generated, samples, 600 * NS_PER_S);
}

static void path_of(uint64_t index, char path[DATASET_PATH_MAX])
{
	assert_int_equal(dataset_path(&t.d, DATASET_TRAIN, index, path, DATASET_PATH_MAX, NULL), 0);
}

/* Overwrites a part of a file. */
static void scribble(uint64_t index, off_t at, const void *bytes, size_t n)
{
	char path[DATASET_PATH_MAX];
	int fd;

	path_of(index, path);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, n, at), n);
	assert_int_equal(fsync(fd), 0);
	close(fd);
}

static void every_format(void **state)
{
	static const char *const stores[] = {"posix", "direct", "mmap", "memory"};

	(void)state;
	for (size_t i = 0; format_table[i]; i++) {
		const struct format_ops *f = format_table[i];
		uint64_t samples = f->is.flags & FORMAT_IMAGE ? 1 : 2;

		if (f->is.flags & FORMAT_NO_IO)
			continue;
		for (size_t k = 0; k < sizeof(stores) / sizeof(stores[0]); k++) {
			begin(f->is.name, stores[k], samples);
			struct survey s = look(true, 16);

			if (s.files_as_generated != s.files || s.files != TRAIN + EVAL)
				fail_msg("%s in %s: %d of %d files as generated: %s", f->is.name,
					 stores[k], (int)s.files_as_generated, (int)s.files,
					 s.first);
			assert_int_equal(s.samples, samples == 1 ? 12 : 16);
			assert_int_equal(s.failed_files, 0);
			assert_true(s.bytes > (uint64_t)s.files * 100000 &&
				    s.bytes <= s.file_bytes);
			if (k == 0) {
				/* what is known of files that are not made to their end */
				t.made_bytes = 50000;
				s = look(true, 16);
				if (s.files_as_generated != s.files || s.files != TRAIN + EVAL)
					fail_msg("%s: %s", f->is.name, s.first);
			}
			end();
		}
	}
}

static void what_is_wrong(void **state)
{
	uint64_t bytes;
	unsigned char *noise;
	char path[DATASET_PATH_MAX];
	struct survey s;

	(void)state;
	begin("npy", "posix", 1);
	bytes = dataset_file_bytes(&t.d, DATASET_TRAIN, 0);
	noise = malloc(bytes);
	for (uint64_t i = 0; i < bytes; i++)
		noise[i] = (unsigned char)(i * 2654435761u >> 13);
	/* one byte near the end */
	scribble(8, (off_t)bytes - 5, "\0\1\2\3\4", 5);
	s = look(true, 32);
	assert_int_equal(s.files, TRAIN + EVAL);
	assert_int_equal(s.other_files, 1);
	path_of(8, path);
	assert_non_null(strstr(s.first, path));
	/* two files with the same content, one of zeros, one of 0xff */
	scribble(1, 0, noise, bytes);
	scribble(2, 0, noise, bytes);
	memset(noise, 0, bytes);
	scribble(3, 0, noise, bytes);
	memset(noise, 0xff, bytes);
	scribble(4, 0, noise, bytes);
	s = look(true, 32);
	assert_int_equal(s.copied_files, 2);
	assert_int_equal(s.zero_files, 1);
	assert_int_equal(s.constant_files, 1);
	assert_int_equal(s.other_files, 1);
	assert_int_equal(s.files_as_generated, TRAIN + EVAL - 5);
	/* without a manifest, files that agree tell what the others should be */
	assert_true(look(false, 32).derivable);
	/* one that is not there is the run's to report */
	path_of(5, path);
	assert_int_equal(unlink(path), 0);
	s = look(true, 32);
	assert_int_equal(s.failed_files, 1);
	assert_int_equal(s.files, TRAIN + EVAL - 1);
	/* nothing is looked at */
	s = look(true, 0);
	assert_int_equal(s.files + s.mapped, 0);
	free(noise);
	end();
}

/* Of files so large that not all of one is made: what is wrong behind their begin, up to the last
 * block. */
static struct survey look_along(uint64_t seed)
{
	struct survey s = {0};
	struct survey_job job = {.dataset = &t.d,
				 .store = t.store,
				 .generated = true,
				 .samples = 4,
				 .seed = seed,
				 .limit_ns = 600 * NS_PER_S,
				 .made_bytes = 2000000};
	struct err e;

	if (dataset_survey(&job, &s, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(s.files, 4);
	assert_true(s.file_bytes > 4 * 4000000u);
	return s;
}

static void generate_along(const char *format, int64_t seed)
{
	struct generate_options o = {.threads = 2};
	struct err e;

	t.w = fixture_workload(format, t.root, 4, 0);
	t.w.dataset.record_length_bytes = 1050 * 1050;
	t.w.dataset.num_samples_per_file = 4;
	t.w.dataset.seed = seed;
	fixture_dataset(&t.d, &t.w);
	t.d.workload = &t.w;
	if (dataset_generate(&t.d, t.store, &o, &e) < 0)
		fail_msg("%s: %s", format, e.text);
}

static void whole_length(void **state)
{
	static const char *const formats[] = {"npy", "npz", "hdf5", "tfrecord", "indexed_binary"};
	unsigned char *bytes = calloc(1, 4 << 20);
	char path[DATASET_PATH_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		struct survey s;
		uint64_t size;
		size_t n;

		memset(&t, 0, sizeof(t));
		if (!disk_folder(t.root, sizeof(t.root), "survey"))
			skip_because("no folder here lies on a disk");
		t.store = fixture_store("posix", NULL);
		generate_along(formats[i], 0);
		s = look_along(11);
		if (s.files_as_generated != 4 || s.unknown_files)
			fail_msg("%s: %s", formats[i], s.first);
		/* the front, 16 blocks, the end and a sample of each */
		assert_int_equal(s.places, 4 * 19);
		assert_true(s.bytes > 4 * 700000u);
		size = dataset_file_bytes(&t.d, DATASET_TRAIN, 0);
		/* half of it zeros; an eighth of another file; an end of zeros */
		scribble(0, (off_t)(size / 2), bytes, size / 2);
		path_of(3, path);
		AUTO_FREE char *other = fixture_get(t.store, path, &n);
		scribble(1, (off_t)(size - size / 8), other + size - size / 8, size / 8 - 1024);
		scribble(2, (off_t)size - 9000, bytes, 9000 - 1024);
		s = look_along(11);
		if (s.files_as_generated != 1 || s.other_files != 3)
			fail_msg("%s: %d as generated, %d other", formats[i],
				 (int)s.files_as_generated, (int)s.other_files);
		path_of(0, path);
		assert_non_null(strstr(s.first, path));
		assert_non_null(strstr(s.first, "holds zeros from byte"));
		/* all of another seed */
		dataset_release(&t.d);
		for (uint64_t k = 0; k < 4; k++) {
			fixture_dataset(&t.d, &t.w);
			path_of(k, path);
			dataset_release(&t.d);
			assert_int_equal(unlink(path), 0);
		}
		generate_along(formats[i], 7);
		dataset_release(&t.d);
		t.w.dataset.seed = 0;
		fixture_dataset(&t.d, &t.w);
		assert_int_equal(look_along(11).other_files, 4);
		end();
	}
	free(bytes);
}

/* Where a byte depends on all before it, the begin alone is compared, and that is said. */
static void in_front_only(void **state)
{
	struct survey s;

	(void)state;
	memset(&t, 0, sizeof(t));
	if (!disk_folder(t.root, sizeof(t.root), "survey"))
		skip_because("no folder here lies on a disk");
	t.store = fixture_store("posix", NULL);
	generate_along("csv", 0);
	s = look_along(11);
	assert_int_equal(s.files_as_generated, 4);
	assert_int_equal(s.unknown_files, 4);
	assert_true(s.bytes < 4 * 800000u);
	/* a sample behind that is none that was compared */
	assert_true(look_along(12).samples + look_along(13).samples + s.samples < 12);
	end();
}

/* Of a file that is too short only the samples that it has. */
static void short_file(void **state)
{
	static const char *const formats[] = {"tfrecord", "indexed_binary"};

	(void)state;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		struct generate_options o = {.threads = 2};
		char path[DATASET_PATH_MAX];
		struct survey s;
		struct err e;

		memset(&t, 0, sizeof(t));
		if (!disk_folder(t.root, sizeof(t.root), "survey"))
			skip_because("no folder here lies on a disk");
		t.store = fixture_store("posix", NULL);
		t.w = fixture_workload(formats[i], t.root, 4, 0);
		t.w.dataset.record_length_bytes = 100;
		t.w.dataset.num_samples_per_file = 100;
		fixture_dataset(&t.d, &t.w);
		if (dataset_generate(&t.d, t.store, &o, &e) < 0)
			fail_msg("%s: %s", formats[i], e.text);
		path_of(0, path);
		assert_int_equal(truncate(path, 5000), 0);
		s = look(false, 64);
		assert_int_equal(s.files, 4);
		assert_int_equal(s.failed_files, 0);
		assert_in_range(s.samples, 49, 63);
		end();
	}
}

/* What takes long to be made ends when it is asked to. */
static void stopped(void **state)
{
	static unsigned char made[4096];
	struct blob_part part = {.offset = 100000, .bytes = sizeof(made), .made = made};
	struct stop_flag stop = {0};
	struct io io = {.stop = &stop};
	AUTO_FREE void *scratch = calloc(1, FORMAT_WRITE_SCRATCH);
	struct file_spec f;
	struct err e;

	(void)state;
	begin("csv", "posix", 1);
	dataset_file_spec(&t.d, DATASET_TRAIN, 0, &f);
	for (int set = 0; set < 2; set++) {
		atomic_store(&stop.set, set);
		for (unsigned parts = 0; parts < 2; parts++)
			assert_int_equal(format_make_parts(t.d.format, &io, "x", &f, &t.d.content,
							   &part, parts, 200000, scratch,
							   FORMAT_WRITE_SCRATCH, &e),
					 set && parts ? ERR_CANCELED : 0);
	}
	end();
}

static uint64_t cached(uint64_t index)
{
	char path[DATASET_PATH_MAX];
	struct page_cached now;
	struct err e;

	path_of(index, path);
	if (page_cache_look(path, &now, &e) < 0)
		fail_msg("%s", e.text);
	/* the kernel may take pages back meanwhile */
	return now.cached_bytes + now.reclaimed_bytes;
}

/* Cold files stay cold, warm ones warm, and of others the same pages. */
static void page_cache_stays(void **state)
{
	char path[DATASET_PATH_MAX], page[4096];
	uint64_t part, whole;
	int fd;

	(void)state;
	begin("npy", "posix", 1);
	for (uint64_t i = 0; i < TRAIN; i++) {
		path_of(i, path);
		/* a page that the kernel has in hand stays for a moment */
		for (int k = 0; k < 40 && (k == 0 || cached(i)); k++) {
			if (k)
				usleep(25000);
			assert_int_equal(page_cache_evict(path, NULL, NULL), 0);
		}
	}
	path_of(1, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (read(fd, page, sizeof(page)) > 0)
		continue;
	close(fd);
	path_of(2, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	for (int i = 0; i < 20; i++)
		assert_int_equal(pread(fd, page, sizeof(page), 8192 * i), sizeof(page));
	close(fd);
	whole = cached(1);
	part = cached(2);
	assert_true(whole > 0 && part > 0 && part < whole);
	assert_int_equal(look(true, 64).files, TRAIN + EVAL);
	assert_int_equal(cached(0), 0);
	assert_int_equal(cached(1), whole);
	assert_int_equal(cached(2), part);
	assert_int_equal(cached(8), 0);
	end();
}

static void ends_in_time(void **state)
{
	struct survey s;

	(void)state;
	begin("npy", "posix", 1);
	s = look_for(true, 16, 1);
	assert_true(s.out_of_time);
	assert_true(s.files < TRAIN + EVAL);
	assert_false(look(true, 16).out_of_time);
	end();
}

/* The same bytes as read otherwise, at any offset. */
static void aside_reads(void **state)
{
	static const size_t at[] = {0, 1, 511, 4096, 100000, 262143};
	char path[DATASET_PATH_MAX];
	struct aside_store aside;
	struct blob *b;
	struct err e;
	size_t n = 0;

	(void)state;
	begin("npy", "posix", 1);
	path_of(0, path);
	AUTO_FREE char *want = fixture_get(t.store, path, &n);
	AUTO_FREE char *got = malloc(n + 100);

	aside_init(&aside);
	b = store_blob_new(&aside.base, &e);
	assert_int_equal(store_open(&aside.base, path, STORE_READ, b, &e), 0);
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		assert_int_equal(store_pread(b, got, n + 100, at[i], &e), n - at[i]);
		assert_memory_equal(got, want + at[i], n - at[i]);
		assert_int_equal(store_pread(b, got, 777, at[i], &e), 777);
		assert_memory_equal(got, want + at[i], 777);
	}
	assert_int_equal(store_pread(b, got, 10, n, &e), 0);
	assert_int_equal(store_pread(b, got, 10, n + 5000, &e), 0);
	assert_int_equal(store_close(b, &e), 0);
	assert_true(store_open(&aside.base, "/nowhere/at/all", STORE_READ, b, &e) < 0);
	assert_true(store_open(&aside.base, path, STORE_READ | STORE_WRITE, b, &e) < 0);
	free(b);
	end();
}

static void holes(void **state)
{
	char path[DATASET_PATH_MAX];
	struct file_extents x;
	struct survey s;
	struct err e;
	int fd, rc;

	(void)state;
	begin("npy", "posix", 1);
	path_of(0, path);
	rc = extents_look(path, &x, &e);
	if (rc == -EOPNOTSUPP) {
		end();
		skip_because("the file system here reports no extents");
	}
	assert_int_equal(rc, 0);
	assert_int_equal(x.hole_bytes, 0);
	assert_int_equal(x.file_bytes, dataset_file_bytes(&t.d, DATASET_TRAIN, 0));
	s = look(true, 4);
	assert_int_equal(s.mapped, TRAIN + EVAL);
	assert_int_equal(s.hole_files + s.twin_files, 0);
	/* a hole at the end, as truncate makes one */
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 65536), 0);
	assert_int_equal(ftruncate(fd, (off_t)x.file_bytes), 0);
	close(fd);
	assert_int_equal(extents_look(path, &x, &e), 0);
	assert_int_equal(x.hole_bytes, x.file_bytes - 65536);
	s = look(true, 4);
	assert_int_equal(s.hole_files, 1);
	assert_int_equal(s.hole_bytes, x.hole_bytes);
	/* data that is not written out has no blocks yet, and is no hole */
	path_of(1, path);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(pwrite(fd, path, sizeof(path), 0), sizeof(path));
	close(fd);
	assert_int_equal(extents_look(path, &x, &e), 0);
	assert_int_equal(x.hole_bytes, 0);
	assert_true(extents_look("/nowhere", &x, &e) < 0);
	end();
}

static void names(void **state)
{
	char one[DATASET_PATH_MAX], other[DATASET_PATH_MAX];
	struct presence_result found;
	struct err e;

	(void)state;
	begin("npy", "posix", 1);
	if (dataset_check(&t.d, t.store, true, NULL, &found, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(found.survey.named, TRAIN + EVAL);
	assert_int_equal(found.survey.distinct, TRAIN + EVAL);
	path_of(0, one);
	path_of(3, other);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(link(one, other), 0);
	path_of(4, other);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(symlink(one, other), 0);
	assert_int_equal(dataset_check(&t.d, t.store, true, NULL, &found, &e), 0);
	assert_int_equal(found.survey.named, TRAIN + EVAL);
	assert_int_equal(found.survey.distinct, TRAIN + EVAL - 2);
	/* names of one file have the same blocks */
	assert_int_equal(look(true, 4).twin_files, look(true, 4).mapped ? 3 : 0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_format),
		cmocka_unit_test(what_is_wrong),
		cmocka_unit_test(whole_length),
		cmocka_unit_test(in_front_only),
		cmocka_unit_test(short_file),
		cmocka_unit_test(stopped),
		cmocka_unit_test(page_cache_stays),
		cmocka_unit_test(ends_in_time),
		cmocka_unit_test(aside_reads),
		cmocka_unit_test(holes),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
