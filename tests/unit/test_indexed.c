/* Indexed binary: DLIO's files, requests, indices that lie, files cut short under a map, and sizes
 * at which nothing may be kept per sample. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "../skip.h"
#include "base/alloc.h"
#include "base/file.h"
#include "dlio_files.h"
#include "format/indexed/indexed.h"
#include "store/mapped.h"

#define MEGATRON_SAMPLES 277203535u
#define MEGATRON_BYTES 2025u

static struct {
	struct io io;
	struct io_stat stat;
	struct blob *blob;
	void *scratch;
	char dir[64], path[96];
	const struct format_ops *format;
	struct content_source content;
	struct reader_config config;
	struct reader *reader;
	void *memory;
	size_t memory_bytes;
	struct sample sample;
	struct err e;
} t;

static int set_up(void **state)
{
	(void)state;
	memset(&t, 0, sizeof(t));
	strcpy(t.dir, "/tmp/stoker-indexed-XXXXXX");
	assert_non_null(mkdtemp(t.dir));
	snprintf(t.path, sizeof(t.path), "%s/f", t.dir);
	assert_int_equal(store_create(&t.io.store, "posix", NULL, &t.e), 0);
	t.io.stat = &t.stat;
	t.blob = store_blob_new(t.io.store, &t.e);
	t.scratch = buffer_alloc(FORMAT_WRITE_SCRATCH, "scratch", &t.e);
	return 0;
}

static void end_reader(void)
{
	if (t.reader)
		assert_int_equal(t.format->reader_close(t.reader, &t.e), 0);
	if (t.memory)
		buffer_free(t.memory, t.memory_bytes);
	t.reader = NULL;
	t.memory = NULL;
}

static const char *companion(uint32_t which)
{
	static char path[128];

	assert_int_equal(indexed_sidecar_path(t.path, which, path, sizeof(path)), 0);
	return path;
}

static int tear_down(void **state)
{
	(void)state;
	end_reader();
	unlink(t.path);
	unlink(companion(INDEXED_OFFSETS));
	unlink(companion(INDEXED_SIZES));
	rmdir(t.dir);
	free(t.blob);
	store_destroy(t.io.store);
	buffer_free(t.scratch, FORMAT_WRITE_SCRATCH);
	return 0;
}

static struct file_spec spec(uint64_t samples, uint64_t bytes)
{
	return (struct file_spec){.elem = elem_find("uint8"),
				  .ndims = 1,
				  .dims = {bytes},
				  .samples = samples,
				  .compression = "none"};
}

static void write_all(const struct file_spec *f)
{
	struct content_source c = test_content(f->elem);

	assert_int_equal(io_open(&t.io, t.path, STORE_WRITE | STORE_CREATE, t.blob, &t.e), 0);
	assert_int_equal(format_write(format_find("indexed_binary"), &t.io, t.blob, t.path, f, &c,
				      t.scratch, FORMAT_WRITE_SCRATCH, &t.e),
			 0);
	assert_int_equal(io_close(&t.io, t.blob, &t.e), 0);
	for (uint32_t i = 0; i < INDEXED_COMPANIONS; i++) {
		assert_int_equal(
			io_open(&t.io, companion(i), STORE_WRITE | STORE_CREATE, t.blob, &t.e), 0);
		assert_int_equal(format_sidecar_write(format_find("indexed_binary"), &t.io, t.blob,
						      companion(i), f, i, t.scratch,
						      FORMAT_WRITE_SCRATCH, &t.e),
				 0);
		assert_int_equal(io_close(&t.io, t.blob, &t.e), 0);
	}
}

static struct reader_config config(const struct file_spec *f, enum read_access access,
				   enum read_decode decode)
{
	return (struct reader_config){.access = access,
				      .decode = decode,
				      .python = 311,
				      .buffer_bytes = 4096,
				      .max_sample_bytes = file_spec_sample_bytes(f),
				      .max_file_bytes = indexed_file_bytes(f),
				      .samples_per_file = f->samples,
				      .files = 4};
}

static void begin_reader(const char *name, const struct file_spec *f, const struct reader_config *c)
{
	end_reader();
	t.format = format_find(name);
	t.content = test_content(f->elem);
	t.config = *c;
	t.config.content = &t.content;
	t.memory_bytes = t.format->reader_bytes(&t.config, t.io.store);
	assert_true(t.memory_bytes > 0);
	t.memory = buffer_alloc(t.memory_bytes, "a reader", &t.e);
	memset(t.memory, 0, t.memory_bytes);
	if (t.format->reader_init(t.memory, &t.config, &t.io, &t.reader, &t.e) < 0)
		fail_msg("%s", t.e.text);
}

/* Counts from 0. */
static int read_one(const struct file_spec *f, uint64_t index)
{
	memset(&t.stat, 0, sizeof(t.stat));
	memset(&t.e, 0, sizeof(t.e));
	return t.format->read(t.reader, t.path, f, index, &t.sample, &t.e);
}

static void must_read(const struct file_spec *f, uint64_t index)
{
	if (read_one(f, index) < 0)
		fail_msg("sample %llu: %s", (unsigned long long)index, t.e.text);
}

static void must_fail(int rc, const char *part)
{
	if (rc != ERR_DATA || !strstr(t.e.text, part))
		fail_msg("code %d, '%s' does not say '%s'", rc, t.e.text, part);
}

/* Puts a number at entry `index` of a companion. */
static void set_entry(uint32_t which, uint64_t index, uint64_t value)
{
	int fd = open(companion(which), O_RDWR | O_CREAT, 0644);

	assert_int_equal(pwrite(fd, &value, 8, (off_t)(index * 8)), 8);
	close(fd);
}

static void cut(const char *path, uint64_t bytes)
{
	int fd = open(path, O_RDWR | O_CREAT, 0644);

	assert_true(fd >= 0);
	if (ftruncate(fd, (off_t)bytes) != 0)
		skip_because("the file system has no file of %llu bytes",
			     (unsigned long long)bytes);

	close(fd);
}

#define REQUESTS(kind_) (t.stat.kind[kind_].requests)
#define ASKED(kind_) (t.stat.kind[kind_].asked_bytes)

static void dlio_files(void **state)
{
	static const uint64_t dims[] = {32, 32};

	(void)state;
	dlio_read("indexed_binary", "indexed_binary", dims, 2, "uint8", 1, 4);
	dlio_read("indexed_binary", "indexed_binary_4x4", dims, 2, "uint8", 4, 4);
	dlio_read("indexed_binary", "indexed_binary_np2_8files", dims, 2, "uint8", 2, 8);
	dlio_read("mmap_indexed_binary", "mmap_indexed_binary", dims, 2, "uint8", 1, 4);
	dlio_read("mmap_indexed_binary", "mmap_indexed_binary_4x4", dims, 2, "uint8", 4, 4);
}

static void framework_requests(void **state)
{
	struct file_spec f = spec(600, 2025);
	struct reader_config c = config(&f, ACCESS_FRAMEWORK, DECODE_VERIFY);

	(void)state;
	write_all(&f);
	begin_reader("indexed_binary", &f, &c);
	must_read(&f, 7);
	/* three files opened and closed; each with one stat; 4,800 bytes of index in one read each
	 */
	assert_int_equal(REQUESTS(IO_OPEN), 6);
	assert_int_equal(REQUESTS(IO_META), 5);
	assert_int_equal(ASKED(IO_META), 2 * 4800);
	assert_int_equal(REQUESTS(IO_DATA), 1);
	assert_int_equal(ASKED(IO_DATA), 4096);
	must_read(&f, 8);
	assert_int_equal(REQUESTS(IO_OPEN), 2);
	assert_int_equal(REQUESTS(IO_META), 1);
	assert_int_equal(ASKED(IO_DATA), 4096);
	/* another file of the dataset has another index */
	f.file_index = 1;
	write_all(&f);
	must_read(&f, 8);
	assert_int_equal(REQUESTS(IO_OPEN), 6);
}

static void kept_open(void **state)
{
	struct file_spec f = spec(600, 2025);
	struct reader_config c = config(&f, ACCESS_FRAMEWORK, DECODE_FULL);

	(void)state;
	write_all(&f);
	c.keep_open = true;
	begin_reader("indexed_binary", &f, &c);
	must_read(&f, 0);
	assert_int_equal(REQUESTS(IO_OPEN), 5);
	/* the neighbour is in the buffer; the one after begins in it */
	must_read(&f, 1);
	assert_int_equal(REQUESTS(IO_OPEN) + REQUESTS(IO_META) + REQUESTS(IO_DATA), 0);
	must_read(&f, 2);
	assert_int_equal(REQUESTS(IO_OPEN) + REQUESTS(IO_META), 0);
	assert_int_equal(REQUESTS(IO_DATA), 1);
	/* so are files beyond those that are kept: opened anew, the index known */
	c.files = 40;
	begin_reader("indexed_binary", &f, &c);
	for (f.file_index = 0; f.file_index < 40; f.file_index++)
		must_read(&f, 0);
	f.file_index = 39;
	must_read(&f, 1);
	assert_int_equal(REQUESTS(IO_OPEN), 0);
	f.file_index = 0;
	must_read(&f, 1);
	assert_int_equal(REQUESTS(IO_OPEN), 2);
	c.access = ACCESS_NATIVE;
	begin_reader("indexed_binary", &f, &c);
	must_read(&f, 599);
	must_read(&f, 3);
	assert_int_equal(REQUESTS(IO_OPEN) + REQUESTS(IO_META), 0);
	assert_int_equal(REQUESTS(IO_DATA), 1);
}

static void native_needs_no_index(void **state)
{
	static const char *const names[] = {"indexed_binary", "mmap_indexed_binary"};
	struct file_spec f = spec(3, 9u << 20);
	struct reader_config c = config(&f, ACCESS_NATIVE, DECODE_VERIFY);

	(void)state;
	write_all(&f);
	unlink(companion(INDEXED_OFFSETS));
	for (int i = 0; i < 2; i++) {
		begin_reader(names[i], &f, &c);
		must_read(&f, 2);
		assert_int_equal(REQUESTS(IO_OPEN), 2);
		assert_int_equal(REQUESTS(IO_META), 0);
		assert_int_equal(REQUESTS(IO_DATA), 5);
		assert_int_equal(ASKED(IO_DATA), 9u << 20);
	}
}

static void mapped_requests(void **state)
{
	struct file_spec f = spec(600, 2025);
	struct reader_config c = config(&f, ACCESS_FRAMEWORK, DECODE_VERIFY);

	(void)state;
	write_all(&f);
	begin_reader("mmap_indexed_binary", &f, &c);
	must_read(&f, 7);
	/* open, stat, map, close of three files; two entries; the sample */
	assert_int_equal(REQUESTS(IO_OPEN), 6);
	assert_int_equal(REQUESTS(IO_META), 3 + 3 + 2);
	assert_int_equal(ASKED(IO_META), 16);
	assert_int_equal(REQUESTS(IO_DATA), 1);
	assert_int_equal(ASKED(IO_DATA), 2025);
	assert_int_equal(t.stat.kind[IO_DATA].returned_bytes, 2025);
	must_read(&f, 599);
	assert_int_equal(REQUESTS(IO_OPEN), 0);
	assert_int_equal(REQUESTS(IO_META), 2);
	assert_int_equal(t.sample.payload_bytes, 2025);
	/* more files than are kept */
	c.files = 100;
	c.decode = DECODE_FULL;
	begin_reader("mmap_indexed_binary", &f, &c);
	for (f.file_index = 0; f.file_index < 100; f.file_index++)
		must_read(&f, 1);
	f.file_index = 99;
	must_read(&f, 1);
	assert_int_equal(REQUESTS(IO_OPEN), 0);
	f.file_index = 1;
	must_read(&f, 1);
	assert_int_equal(REQUESTS(IO_OPEN), 6);
	/* DLIO's own reader takes a slice and reads nothing */
	c.dlio = true;
	begin_reader("mmap_indexed_binary", &f, &c);
	must_read(&f, 1);
	assert_int_equal(REQUESTS(IO_DATA), 0);
	assert_int_equal(t.sample.payload_bytes, 0);
}

/* Page tables are given back; the bytes stay right. */
static void maps_are_renewed(void **state)
{
	struct file_spec f = spec(3000, 5000);
	struct reader_config c = config(&f, ACCESS_FRAMEWORK, DECODE_VERIFY);
	const char *begin = NULL;
	unsigned moved = 0;

	(void)state;
	write_all(&f);
	begin_reader("mmap_indexed_binary", &f, &c);
	for (uint64_t i = 0; i < f.samples; i++) {
		const char *now;

		must_read(&f, i);
		now = (const char *)t.sample.data - i * 5000;
		moved += now != begin;
		begin = now;
	}
	/* 3,000 samples of two entries and two or three pages, renewed after 128 */
	assert_in_range(moved, 85, 105);
}

/* Cuts a file, and gives it its bytes back later: it stays the same file. */
struct cut_file {
	const char *path;
	struct buf bytes;
};

static void cut_for_now(struct cut_file *c, const char *path, uint64_t size)
{
	*c = (struct cut_file){.path = path};
	assert_int_equal(file_read(path, SIZE_MAX / 2, &c->bytes, NULL), 0);
	cut(path, size);
}

static void put_back(struct cut_file *c)
{
	int fd = open(c->path, O_WRONLY);

	assert_int_equal(write(fd, c->bytes.data, c->bytes.len), (ssize_t)c->bytes.len);
	close(fd);
	buf_release(&c->bytes);
}

/* A map whose file loses its pages gives a sentence and not a signal, and works when they are back.
 */
static void cut_while_mapped(void **state)
{
	struct file_spec f = spec(1000, 5000);
	struct reader_config c = config(&f, ACCESS_FRAMEWORK, DECODE_FULL);
	struct cut_file lost;
	int rc;

	(void)state;
	write_all(&f);
	for (int verify = 0; verify < 2; verify++) {
		c.decode = verify ? DECODE_VERIFY : DECODE_FULL;
		begin_reader("mmap_indexed_binary", &f, &c);
		must_read(&f, 999);
		cut_for_now(&lost, t.path, 3 * 4096);
		must_read(&f, 1);
		rc = read_one(&f, 2);
		assert_int_equal(rc, -EIO);
		assert_non_null(strstr(t.e.text, "offset 12288"));
		assert_non_null(strstr(t.e.text, t.path));
		assert_int_equal(read_one(&f, 999), -EIO);
		put_back(&lost);
		must_read(&f, 999);
		cut_for_now(&lost, companion(INDEXED_SIZES), 0);
		assert_int_equal(read_one(&f, 3), -EIO);
		assert_non_null(strstr(t.e.text, companion(INDEXED_SIZES)));
		put_back(&lost);
	}
	/* cut before it is mapped */
	cut(t.path, 1000 * 5000 - 1);
	begin_reader("mmap_indexed_binary", &f, &c);
	must_read(&f, 998);
	must_fail(read_one(&f, 999), "ends at 4999999");
	begin_reader("indexed_binary", &f, &c);
	must_read(&f, 998);
	must_fail(read_one(&f, 999), "ends at 4999999");
}

static void indices_that_lie(void **state)
{
	static const char *const names[] = {"indexed_binary", "mmap_indexed_binary"};
	struct file_spec f = spec(1500, 100);
	struct reader_config c = config(&f, ACCESS_FRAMEWORK, DECODE_VERIFY);

	(void)state;
	for (int i = 0; i < 2; i++) {
		write_all(&f);
		set_entry(INDEXED_SIZES, 1234, 101);
		begin_reader(names[i], &f, &c);
		must_fail(read_one(&f, 1234),
			  "entry 1234 of the index has the size 101 instead of 100");
		assert_non_null(strstr(t.e.text, companion(INDEXED_SIZES)));
		/* found again, and right once it is right */
		must_fail(read_one(&f, 1234), "entry 1234");
		set_entry(INDEXED_SIZES, 1234, 100);
		must_read(&f, 1234);
		begin_reader(names[i], &f, &c);
		set_entry(INDEXED_OFFSETS, 3, 301);
		must_fail(read_one(&f, 3),
			  "entry 3 of the index has the offset 301 instead of 300");
		set_entry(INDEXED_OFFSETS, 3, UINT64_MAX);
		must_fail(read_one(&f, 3), "has the offset 18446744073709551615");
		write_all(&f);
		cut(companion(INDEXED_OFFSETS), 1500 * 8 - 1);
		begin_reader(names[i], &f, &c);
		must_fail(read_one(&f, 1499), "the index ends at 11999");
		/* entries that no sample has, as DLIO may write with several ranks */
		write_all(&f);
		set_entry(INDEXED_OFFSETS, 1500, 7);
		begin_reader(names[i], &f, &c);
		must_read(&f, 1499);
	}
}

/* DLIO counts offsets anew in each chunk of generation. The samples lie one after another all the
 * same, and that is where they are read; DLIO's own places only when its defects are asked for. */
static void restarting_offsets(void **state)
{
	struct file_spec f = spec(10, 5000);
	struct reader_config c = config(&f, ACCESS_FRAMEWORK, DECODE_VERIFY);
	uint64_t per_chunk = 4;

	(void)state;
	write_all(&f);
	for (uint64_t i = 0; i < f.samples; i++)
		set_entry(INDEXED_OFFSETS, i, i % per_chunk * 5000);
	begin_reader("indexed_binary", &f, &c);
	must_read(&f, 9);
	begin_reader("mmap_indexed_binary", &f, &c);
	must_read(&f, 9);
	/* two pages of it */
	c.dlio = true;
	c.decode = DECODE_FULL;
	begin_reader("indexed_binary", &f, &c);
	must_read(&f, 9);
	unsigned char want[5000];

	test_fill(NULL, 0, 9 % per_chunk * 5000, want, sizeof(want));
	assert_memory_equal(t.sample.data, want, sizeof(want));
	/* chunks of one dataset are alike */
	set_entry(INDEXED_OFFSETS, 8, 4 * 5000);
	begin_reader("indexed_binary", &f, &c);
	must_fail(read_one(&f, 1), "entry 8 of the index has the offset 20000 instead of 0");
}

/* The index of a file is read in bounded pieces. */
static void long_index(void **state)
{
	struct file_spec f = spec((1u << 20) + 3, 1);
	struct reader_config c = config(&f, ACCESS_FRAMEWORK, DECODE_VERIFY);

	(void)state;
	write_all(&f);
	for (int i = 0; i < 2; i++) {
		c.buffer_bytes = i ? 16u << 20 : 4096;
		begin_reader("indexed_binary", &f, &c);
		must_read(&f, 1u << 20);
		assert_int_equal(t.stat.kind[IO_META].returned_bytes, 2 * 8 * f.samples);
	}
	set_entry(INDEXED_OFFSETS, 1u << 20, 5);
	begin_reader("indexed_binary", &f, &c);
	must_fail(read_one(&f, 0), "entry 1048576 ");
}

static void megatron_is_bounded(void **state)
{
	struct file_spec f = spec(MEGATRON_SAMPLES, MEGATRON_BYTES);
	struct reader_config c = config(&f, ACCESS_FRAMEWORK, DECODE_FULL);

	(void)state;
	assert_int_equal(indexed_check(&f, &t.e), 0);
	assert_int_equal(indexed_file_bytes(&f), 561337158375);
	assert_int_equal(indexed_sidecar_bytes(&f, 0), 2217628280);
	assert_in_range(format_find("indexed_binary")->reader_bytes(&c, t.io.store), 1, 9u << 20);
	assert_in_range(format_find("mmap_indexed_binary")->reader_bytes(&c, t.io.store), 1, 65536);
	/* the whole file, with holes, and the entries of two samples */
	cut(t.path, 561337158375);
	cut(companion(INDEXED_OFFSETS), 2217628280);
	cut(companion(INDEXED_SIZES), 2217628280);
	begin_reader("mmap_indexed_binary", &f, &c);
	for (uint64_t i = MEGATRON_SAMPLES - 1; i > 200000000; i -= 77203533) {
		set_entry(INDEXED_OFFSETS, i, i * MEGATRON_BYTES);
		set_entry(INDEXED_SIZES, i, MEGATRON_BYTES);
		must_read(&f, i);
		assert_int_equal(ASKED(IO_DATA), MEGATRON_BYTES);
	}
	c.access = ACCESS_NATIVE;
	begin_reader("mmap_indexed_binary", &f, &c);
	must_read(&f, MEGATRON_SAMPLES - 1);
}

static void impossible(void **state)
{
	struct file_spec f = spec(1, 1);
	struct reader_config c;
	struct store *s;
	char path[INDEXED_PATH_MAX];
	char name[INDEXED_PATH_MAX + 1];
	struct reader *r;

	(void)state;
	f = spec(UINT64_MAX / 8 + 1, 0);
	assert_int_equal(indexed_check(&f, &t.e), ERR_USAGE);
	f = spec(3, 1ull << 62);
	assert_int_equal(indexed_check(&f, &t.e), ERR_USAGE);
	f = spec(1, (1ull << 63) - 1);
	assert_int_equal(indexed_check(&f, &t.e), 0);
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_true(indexed_path(name, 0, path, &t.e) < 0);
	assert_true(indexed_sidecar_path("12345678", INDEXED_SIZES, path, 15) < 0);
	assert_int_equal(indexed_sidecar_path("12345678", INDEXED_SIZES, path, 16), 0);
	/* stores that cannot be mapped */
	f = spec(2, 100);
	c = config(&f, ACCESS_FRAMEWORK, DECODE_FULL);
	for (int i = 0; i < 2; i++) {
		char memory[65536] __attribute__((aligned(4096))) = {0};
		struct io io = {0};

		assert_int_equal(store_create(&s, i ? "memory" : "fault+posix", NULL, &t.e), 0);
		io.store = s;
		assert_int_equal(
			format_find("mmap_indexed_binary")->reader_init(memory, &c, &io, &r, &t.e),
			ERR_USAGE);
		assert_non_null(strstr(t.e.text, i ? "'memory'" : "'fault'"));
		assert_non_null(strstr(t.e.text, "reader.access to native"));
		store_destroy(s);
	}
	/* more than an address space */
	struct rlimit old, small;

	write_all(&f);
	cut(t.path, 1ull << 40);
	begin_reader("mmap_indexed_binary", &f, &c);
	assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
	small = old;
	small.rlim_cur = 1ull << 36;
	if (getenv("STOKER_SANITIZE") && getenv("STOKER_SANITIZE")[0])
		return;
	assert_int_equal(setrlimit(RLIMIT_AS, &small), 0);
	int rc = read_one(&f, 0);

	assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
	assert_int_equal(rc, -ENOMEM);
	assert_non_null(strstr(t.e.text, "cannot map 1099511627776 bytes"));
	assert_non_null(strstr(t.e.text, t.path));
	must_read(&f, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(dlio_files),          T(framework_requests),
		T(kept_open),           T(native_needs_no_index),
		T(mapped_requests),     T(maps_are_renewed),
		T(cut_while_mapped),    T(indices_that_lie),
		T(restarting_offsets),  T(long_index),
		T(megatron_is_bounded), T(impossible),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
