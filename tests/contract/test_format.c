/* The contract of format/format.h, the same for every format over memory and over files. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../tools/test_content.h"
#include "base/alloc.h"
#include "conf/node.h"
#include "format/format.h"

/* ---- allocations, counted by the linker's --wrap ---- */

static _Atomic long allocations;

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t m);
void *__wrap_realloc(void *p, size_t n);
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t m);
void *__real_realloc(void *p, size_t n);

void *__wrap_malloc(size_t n)
{
	allocations++;
	return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t m)
{
	allocations++;
	return __real_calloc(n, m);
}

void *__wrap_realloc(void *p, size_t n)
{
	allocations++;
	return __real_realloc(p, n);
}

/* ---- fixture ---- */

static const struct format_ops *format; /* of the group that runs */
static const char *base;

static struct {
	struct store *store;
	struct io io;
	struct io_stat stat;
	struct blob *blob;
	void *scratch;
	char dir[64], path[96];
	struct err e;
} t;

static void use_store(const char *expression, const char *yaml)
{
	struct node *n = yaml ? yaml_parse(yaml, strlen(yaml), "test", &t.e) : NULL;

	free(t.blob);
	store_destroy(t.store);
	t.store = NULL;
	if (store_create(&t.store, expression, n, &t.e) < 0)
		fail_msg("%s", t.e.text);
	node_free(n);
	t.io = (struct io){.store = t.store, .stat = &t.stat};
	t.blob = store_blob_new(t.store, &t.e);
}

static int set_up(void **state)
{
	(void)state;
	memset(&t, 0, sizeof(t));
	if (strcmp(base, "posix") == 0) {
		strcpy(t.dir, "/tmp/stoker-format-XXXXXX");
		assert_non_null(mkdtemp(t.dir));
		snprintf(t.path, sizeof(t.path), "%s/f", t.dir);
	} else {
		strcpy(t.path, "f");
	}
	t.scratch = buffer_alloc(FORMAT_WRITE_SCRATCH, "scratch", &t.e);
	use_store(base, NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (t.dir[0]) {
		unlink(t.path);
		rmdir(t.dir);
	}
	free(t.blob);
	store_destroy(t.store);
	buffer_free(t.scratch, FORMAT_WRITE_SCRATCH);
	return 0;
}

static struct file_spec spec(const char *elem, uint64_t samples, uint32_t ndims, uint64_t a,
			     uint64_t b, uint64_t c)
{
	return (struct file_spec){.elem = elem_find(elem),
				  .ndims = ndims,
				  .dims = {a, b, c},
				  .samples = samples,
				  .file_index = 3,
				  .compression = "none"};
}

#define SMALL spec("uint8", 2, 2, 5, 7, 0)

static void write_file(const struct file_spec *f)
{
	struct content_source c = test_content(f->elem);

	if (io_open(&t.io, t.path, STORE_WRITE | STORE_CREATE, t.blob, &t.e) < 0 ||
	    format->write(&t.io, t.blob, t.path, f, &c, t.scratch, FORMAT_WRITE_SCRATCH, &t.e) < 0 ||
	    io_close(&t.io, t.blob, &t.e) < 0)
		fail_msg("%s", t.e.text);
}

static void put_bytes(const void *bytes, size_t n)
{
	if (io_open(&t.io, t.path, STORE_WRITE | STORE_CREATE, t.blob, &t.e) < 0 ||
	    (n && io_pwrite(&t.io, t.blob, bytes, n, 0, &t.e) < 0) ||
	    io_close(&t.io, t.blob, &t.e) < 0)
		fail_msg("%s", t.e.text);
}

static unsigned char *get_bytes(size_t *n)
{
	struct store_stat st;
	unsigned char *p;

	if (io_open(&t.io, t.path, STORE_READ, t.blob, &t.e) < 0 ||
	    io_stat_blob(&t.io, t.blob, &st, &t.e) < 0)
		fail_msg("%s", t.e.text);
	p = xmalloc(st.bytes + 1);
	assert_int_equal(io_pread(&t.io, IO_DATA, t.blob, p, st.bytes, 0, &t.e), st.bytes);
	io_close(&t.io, t.blob, NULL);
	*n = st.bytes;
	return p;
}

static int verify(const struct file_spec *f)
{
	struct content_source c = test_content(f->elem);

	memset(&t.e, 0, sizeof(t.e));
	return format->verify(&t.io, t.path, f, &c, t.scratch, FORMAT_WRITE_SCRATCH, &t.e);
}

/* A reader and its memory. */
struct open_reader {
	struct reader *r;
	struct content_source content;
	struct reader_config c;
	size_t bytes;
	void *memory;
};

static struct reader_config config(const struct file_spec *f, enum read_access access,
				   enum read_decode decode)
{
	return (struct reader_config){.access = access,
				      .decode = decode,
				      .python = 311,
				      .block_bytes = 65536,
				      .max_sample_bytes = file_spec_sample_bytes(f),
				      .max_file_bytes = format->file_bytes(f),
				      .samples_per_file = f->samples,
				      .files = 4};
}

static void reader_open(struct open_reader *o, const struct file_spec *f,
			const struct reader_config *c)
{
	o->content = test_content(f->elem);
	o->c = *c;
	o->c.content = &o->content;
	o->bytes = format->reader_bytes(&o->c, t.store);
	assert_true(o->bytes > 0);
	o->memory = buffer_alloc(o->bytes, "a reader", &t.e);
	assert_non_null(o->memory);
	memset(o->memory, 0, o->bytes);
	if (format->reader_init(o->memory, &o->c, &t.io, &o->r, &t.e) < 0)
		fail_msg("%s", t.e.text);
}

static void reader_end(struct open_reader *o)
{
	assert_int_equal(format->reader_close(o->r, &t.e), 0);
	buffer_free(o->memory, o->bytes);
}

/* One sample with a new reader. */
static int read_once(const struct file_spec *f, const struct reader_config *c, uint64_t index)
{
	struct open_reader o;
	struct sample s;
	int rc;

	reader_open(&o, f, c);
	memset(&t.e, 0, sizeof(t.e));
	rc = format->read(o.r, t.path, f, index, &s, &t.e);
	reader_end(&o);
	return rc;
}

static bool no_io(void)
{
	return format->flags & FORMAT_NO_IO;
}

/* One image is the whole file and each of its samples, in a coded form. */
static bool image(void)
{
	return format->flags & FORMAT_IMAGE;
}

/* Images have a shape of their own kind; what they cannot have is refused. */
static bool not_for_images(const struct file_spec *f)
{
	if (!image() || format->check(f, &t.e) == 0)
		return false;
	assert_true(f->ndims > 2 || f->elem != elem_find("uint8") || file_spec_elements(f) == 0);
	return true;
}

static uint64_t size_now(void)
{
	struct store_stat st;

	assert_int_equal(io_stat_path(&t.io, t.path, &st, &t.e), 0);
	return st.bytes;
}

/* Offset of the payload in a file that was written. */
static size_t payload_at(const struct file_spec *f, const unsigned char *file, size_t n)
{
	size_t bytes = (size_t)(file_spec_sample_bytes(f) * f->samples);
	unsigned char *want = xmalloc(bytes + 1), *found;

	test_fill(NULL, f->file_index, 0, want, bytes);
	found = memmem(file, n, want, bytes);
	free(want);
	assert_non_null(found);
	return (size_t)(found - file);
}

static const enum read_decode decodes[] = {DECODE_FULL, DECODE_VERIFY, DECODE_NONE};
static const enum read_access accesses[] = {ACCESS_FRAMEWORK, ACCESS_NATIVE};

#define FOR_MODES(access, decode)                                                                  \
	for (int ai_ = 0; ai_ < 2; ai_++)                                                          \
		for (int di_ = 0; di_ < 3; di_++)                                                  \
			for (enum read_access access = accesses[ai_], once_ = 0; once_ == 0; once_++) \
				for (enum read_decode decode = decodes[di_], one_ = 0; one_ == 0; one_++)

/* ---- tests ---- */

static void size_is_as_said(void **state)
{
	struct file_spec f[] = {SMALL,
				spec("float32", 3, 3, 4, 2, 5),
				spec("uint8", 1, 2, 0, 4, 0),
				spec("int64", 7, 1, 9, 0, 0),
				spec("complex128", 1, 0, 0, 0, 0),
				spec("uint8", 0, 2, 4, 4, 0),
				spec("uint8", 2, 2, 2200, 1300, 0)};

	(void)state;
	for (size_t i = 0; i < sizeof(f) / sizeof(f[0]); i++) {
		if (not_for_images(&f[i]))
			continue;
		assert_int_equal(format->check(&f[i], &t.e), 0);
		write_file(&f[i]);
		if (format->file_bytes(&f[i]) != UINT64_MAX)
			assert_int_equal(size_now(), format->file_bytes(&f[i]));
		if (verify(&f[i]) < 0)
			fail_msg("%s", t.e.text);
	}
}

static void every_sample_in_every_mode(void **state)
{
	struct file_spec f[] = {SMALL, spec("float32", 3, 3, 4, 2, 5), spec("int16", 2, 2, 500, 400, 0),
				spec("uint8", 1, 2, 0, 4, 0), spec("uint8", 1, 2, 3100, 3100, 0)};
	static const uint32_t buffers[] = {0, 16, 4096, 1u << 20};

	(void)state;
	for (size_t i = 0; i < sizeof(f) / sizeof(f[0]); i++) {
		if (not_for_images(&f[i]))
			continue;
		write_file(&f[i]);
		FOR_MODES(access, decode) {
			for (int k = 0; k < 8; k++) {
				struct reader_config c = config(&f[i], access, decode);
				struct open_reader o;

				c.buffer_bytes = buffers[k % 4];
				c.python = k < 4 ? 311 : 314;
				if (c.buffer_bytes == 16 && f[i].dims[0] > 600)
					continue;
				uint64_t size = size_now();

				reader_open(&o, &f[i], &c);
				for (uint64_t s = 0; s < f[i].samples; s++) {
					struct sample got;

					memset(&t.stat, 0, sizeof(t.stat));
					if (format->read(o.r, t.path, &f[i], s, &got, &t.e) < 0)
						fail_msg("%s", t.e.text);
					if (no_io()) {
						assert_int_equal(t.stat.kind[IO_OPEN].requests, 0);
						continue;
					}
					assert_int_equal(got.payload_bytes,
							 file_spec_sample_bytes(&f[i]));
					/* whole arrays are read, whichever sample is wanted */
					assert_true(t.stat.kind[IO_DATA].returned_bytes +
							    t.stat.kind[IO_META].returned_bytes >=
						    (image() ? size - 4 :
							       got.payload_bytes * f[i].samples));
					assert_int_equal(t.stat.kind[IO_OPEN].requests, 2);
				}
				reader_end(&o);
			}
		}
	}
}

static void sample_beyond_the_end(void **state)
{
	struct file_spec f = SMALL;

	(void)state;
	write_file(&f);
	FOR_MODES(access, decode) {
		struct reader_config c = config(&f, access, decode);

		assert_int_equal(read_once(&f, &c, 2), ERR_USAGE);
		assert_int_equal(read_once(&f, &c, UINT64_MAX), ERR_USAGE);
		assert_int_equal(read_once(&f, &c, 1), 0);
	}
}

static void kept_files_cost_nothing(void **state)
{
	struct file_spec f = SMALL;
	struct reader_config c = config(&f, ACCESS_FRAMEWORK, DECODE_FULL);
	struct open_reader o;
	struct sample s;

	(void)state;
	if (no_io())
		return;
	write_file(&f);
	c.keep_open = true;
	reader_open(&o, &f, &c);
	assert_int_equal(format->read(o.r, t.path, &f, 0, &s, &t.e), 0);
	memset(&t.stat, 0, sizeof(t.stat));
	assert_int_equal(format->read(o.r, t.path, &f, 1, &s, &t.e), 0);
	assert_int_equal(s.payload_bytes, 35);
	for (int k = 0; k < IO_KINDS; k++)
		assert_int_equal(t.stat.kind[k].requests, 0);
	/* another file is not loaded yet, and one beyond the stated number is never marked */
	for (uint64_t file = 0; file < 100; file += file < 4 ? 1 : 32) {
		f.file_index = file;
		memset(&t.stat, 0, sizeof(t.stat));
		assert_int_equal(format->read(o.r, t.path, &f, 0, &s, &t.e), 0);
		assert_int_equal(t.stat.kind[IO_OPEN].requests, file == 3 ? 0 : 2);
	}
	reader_end(&o);
	/* without it, every sample is read again */
	f.file_index = 3;
	c.keep_open = false;
	reader_open(&o, &f, &c);
	for (int i = 0; i < 2; i++) {
		memset(&t.stat, 0, sizeof(t.stat));
		assert_int_equal(format->read(o.r, t.path, &f, 0, &s, &t.e), 0);
		assert_int_equal(t.stat.kind[IO_OPEN].requests, 2);
	}
	reader_end(&o);
}

static void native_reads_least(void **state)
{
	struct file_spec f = SMALL, big = spec("uint8", 1, 2, 3100, 3100, 0);

	(void)state;
	if (no_io())
		return;
	FOR_MODES(access, decode) {
		uint64_t size;
		struct reader_config c;

		if (access != ACCESS_NATIVE)
			continue;
		write_file(&f);
		memset(&t.stat, 0, sizeof(t.stat));
		c = config(&f, access, decode);
		assert_int_equal(read_once(&f, &c, 0), 0);
		assert_int_equal(t.stat.kind[IO_DATA].requests, 1);
		/* an image's file can have any size, which has to be asked for */
		assert_int_equal(t.stat.kind[IO_META].requests, image() ? 1 : 0);
		write_file(&big);
		size = size_now();
		memset(&t.stat, 0, sizeof(t.stat));
		c = config(&big, access, decode);
		assert_int_equal(read_once(&big, &c, 0), 0);
		/* every byte once */
		if (image())
			assert_int_equal(t.stat.kind[IO_DATA].returned_bytes, size);
		else
			assert_in_range(t.stat.kind[IO_DATA].returned_bytes, 9610000,
					9610000 + 512);
		assert_int_equal(t.stat.kind[IO_DATA].requests, size > 8u << 20 ? 2 : 1);
		assert_int_equal(t.stat.kind[IO_META].requests, image() ? 1 : 0);
	}
}

static void every_flipped_byte_is_found(void **state)
{
	struct file_spec f = SMALL;
	unsigned char *file;
	size_t n, payload = 0;

	(void)state;
	write_file(&f);
	file = get_bytes(&n);
	if (!no_io() && !image())
		payload = payload_at(&f, file, n);
	for (size_t i = 0; i < n; i++) {
		bool inside = !image() && i >= payload && i < payload + 70;
		char where[64];

		file[i] ^= 0x40;
		put_bytes(file, n);
		assert_int_equal(verify(&f), ERR_DATA);
		snprintf(where, sizeof(where), "offset %zu ", i);
		if (!strstr(t.e.text, where) || !strstr(t.e.text, t.path))
			fail_msg("byte %zu: %s", i, t.e.text);
		FOR_MODES(access, decode) {
			struct reader_config c = config(&f, access, decode);
			int rc = read_once(&f, &c, 1);

			if (no_io()) {
				assert_int_equal(rc, 0);
				continue;
			}
			assert_true(rc == 0 || rc == ERR_DATA);
			if (rc < 0)
				assert_non_null(strstr(t.e.text, t.path));
			if (inside && decode == DECODE_VERIFY) {
				assert_int_equal(rc, ERR_DATA);
				if (!strstr(t.e.text, where))
					fail_msg("byte %zu: %s", i, t.e.text);
			}
			if (inside && decode == DECODE_NONE)
				assert_int_equal(rc, 0);
			/* the archive's checksum finds it too */
			if (inside && decode == DECODE_FULL && strcmp(format->name, "npz") == 0)
				assert_int_equal(rc, ERR_DATA);
		}
		file[i] ^= 0x40;
	}
	free(file);
}

static void first_difference_of_a_large_file(void **state)
{
	struct file_spec f = spec("uint8", 1, 2, 3100, 3100, 0);
	unsigned char *file;
	size_t n, at[][2] = {{0, 1}, {14, 14}, {17, 9000000}, {500, 14}, {2097151, 5000000},
			     {4194304, 4194305}, {9610100, 9610100}, {9610182, 9610183}};

	(void)state;
	if (no_io())
		return;
	write_file(&f);
	file = get_bytes(&n);
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		size_t a = at[i][0], b = at[i][1];
		char where[64];

		if (a >= n || b >= n)
			continue;
		file[a] ^= 1;
		file[b] ^= a == b ? 0 : 1;
		put_bytes(file, n);
		assert_int_equal(verify(&f), ERR_DATA);
		snprintf(where, sizeof(where), "offset %zu ", a < b ? a : b);
		if (!strstr(t.e.text, where))
			fail_msg("bytes %zu and %zu: %s", a, b, t.e.text);
		file[a] ^= 1;
		file[b] ^= a == b ? 0 : 1;
	}
	put_bytes(file, n);
	assert_int_equal(verify(&f), 0);
	free(file);
}

static void every_truncation_is_found(void **state)
{
	struct file_spec f = SMALL;
	unsigned char *file;
	size_t n, payload = 0;

	(void)state;
	write_file(&f);
	file = get_bytes(&n);
	if (!no_io() && !image())
		payload = payload_at(&f, file, n);
	for (size_t len = 0; len < n; len++) {
		put_bytes(file, len);
		assert_int_equal(verify(&f), ERR_DATA);
		FOR_MODES(access, decode) {
			struct reader_config c = config(&f, access, decode);
			int rc;

			c.python = len % 2 ? 311 : 314;
			rc = read_once(&f, &c, 0);
			if (no_io() ||
			    (!image() && access == ACCESS_NATIVE && len >= payload + 70)) {
				assert_int_equal(rc, 0);
				continue;
			}
			assert_int_equal(rc, ERR_DATA);
			assert_non_null(strstr(t.e.text, t.path));
		}
	}
	file[n] = 0;
	put_bytes(file, n + 1);
	assert_int_equal(verify(&f), ERR_DATA);
	free(file);
}

static void another_dataset_is_named(void **state)
{
	struct file_spec f = SMALL;
	struct file_spec other[] = {spec("int8", 2, 2, 5, 7, 0),   spec("uint8", 3, 2, 5, 7, 0),
				    spec("uint8", 2, 2, 7, 5, 0),  spec("uint8", 1, 3, 5, 7, 2),
				    spec("uint8", 2, 1, 35, 0, 0), spec("uint16", 2, 2, 50, 70, 0),
				    spec("uint8", 2, 2, 4000, 4000, 0)};

	(void)state;
	if (no_io())
		return;
	write_file(&f);
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		/* the number of samples is not in an image */
		if (not_for_images(&other[i]) || (image() && other[i].samples == 3))
			continue;
		assert_int_equal(verify(&other[i]), ERR_DATA);
		FOR_MODES(access, decode) {
			struct reader_config c = config(&other[i], access, decode);
			char want[32];

			assert_int_equal(read_once(&other[i], &c, 0), ERR_DATA);
			if (image()) {
				assert_non_null(strstr(t.e.text, "5 rows of 7 columns"));
				continue;
			}
			snprintf(want, sizeof(want), "%s (%d", other[i].elem->name,
				 (int)other[i].dims[0]);
			if (!strstr(t.e.text, "uint8 (5, 7, 2)") || !strstr(t.e.text, want))
				fail_msg("%s", t.e.text);
		}
	}
}

static void impossible_specs(void **state)
{
	struct file_spec f = spec("float64", 1, 2, UINT64_MAX / 8, 9, 0);

	(void)state;
	assert_true(format->check(&f, &t.e) < 0);
	f = spec("uint8", 1, 3, 1u << 30, 1u << 30, 1u << 30);
	assert_true(format->check(&f, &t.e) < 0);
	f = SMALL;
	f.compression = "gzip";
	assert_true(format->check(&f, &t.e) < 0);
	assert_non_null(strstr(t.e.text, "gzip"));
	if (!no_io() && !image()) {
		f = spec("uint8", UINT64_MAX, 1, 1, 0, 0);
		assert_true(format->check(&f, &t.e) < 0);
	}
}

static void impossible_readers(void **state)
{
	struct file_spec f = SMALL;
	struct reader_config c = config(&f, ACCESS_FRAMEWORK, DECODE_VERIFY);
	struct reader *r;
	char memory[65536] __attribute__((aligned(4096)));

	(void)state;
	if (no_io())
		return;
	c.content = NULL;
	assert_int_equal(format->reader_init(memory, &c, &t.io, &r, &t.e), ERR_USAGE);
	c.decode = DECODE_FULL;
	c.python = 27;
	assert_int_equal(format->reader_init(memory, &c, &t.io, &r, &t.e), ERR_USAGE);
	c.python = 311;
	c.files = UINT64_MAX;
	c.max_file_bytes = UINT64_MAX;
	c.keep_open = true;
	assert_int_equal(format->reader_bytes(&c, t.store), 0);
	/* memory grows with a larger buffer only by that buffer */
	c = config(&f, ACCESS_FRAMEWORK, DECODE_FULL);
	c.block_bytes = 4096;
	size_t small = format->reader_bytes(&c, t.store);
	c.block_bytes = 0;
	assert_int_equal(format->reader_bytes(&c, t.store), small + FORMAT_BLOCK_MAX - 4096);
}

/* A file system that prefers larger requests than the reader has room for. */
static void too_large_blocks(void **state)
{
	struct file_spec f = SMALL;
	struct reader_config c = config(&f, ACCESS_FRAMEWORK, DECODE_FULL);

	(void)state;
	if (no_io() || strcmp(base, "memory") != 0)
		return;
	use_store("memory", "memory: {block_bytes: 131072}");
	write_file(&f);
	assert_int_equal(read_once(&f, &c, 0), ERR_USAGE);
	assert_non_null(strstr(t.e.text, "131072"));
	c.block_bytes = 131072;
	assert_int_equal(read_once(&f, &c, 0), 0);
}

/* Fails the n-th call of each kind, for all n. */
static void every_failure_ends_in_a_sentence(void **state)
{
	static const char *const ops[] = {"open", "read", "stat", "close"};
	struct file_spec f = spec(image() ? "uint8" : "int16", 2, 2, 300, 400, 0);
	char expression[32];

	(void)state;
	snprintf(expression, sizeof(expression), "fault+%s", base);
	for (int op = 0; op < 4; op++) {
		FOR_MODES(access, decode) {
			for (int n = 1;; n++) {
				struct reader_config c = config(&f, access, decode);
				struct open_reader o;
				struct sample s;
				char yaml[96];
				int rc;

				/* writing opens and closes once */
				snprintf(yaml, sizeof(yaml), "fault: {op: %s, nth: %d}", ops[op],
					 n + (op == 0 || op == 3));
				use_store(expression, yaml);
				write_file(&f);
				c.buffer_bytes = 4096;
				c.keep_open = true;
				reader_open(&o, &f, &c);
				memset(&t.e, 0, sizeof(t.e));
				rc = format->read(o.r, t.path, &f, 0, &s, &t.e);
				if (rc < 0) {
					assert_int_equal(rc, -EIO);
					assert_non_null(strstr(t.e.text, "fault"));
					assert_non_null(strstr(t.e.text, t.path));
					/* not marked as loaded, and the reader works on */
					memset(&t.stat, 0, sizeof(t.stat));
					if (format->read(o.r, t.path, &f, 1, &s, &t.e) < 0)
						fail_msg("%s", t.e.text);
					assert_int_equal(t.stat.kind[IO_OPEN].requests, 2);
				}
				reader_end(&o);
				if (rc == 0)
					break;
				assert_true(n < 100);
			}
		}
	}
}

static void every_failed_write_ends_in_a_sentence(void **state)
{
	struct file_spec f = spec("uint8", 1, 2, 3000, 1500, 0);
	struct content_source content = test_content(f.elem);
	char expression[32], yaml[64];
	int n, rc = -1;

	(void)state;
	snprintf(expression, sizeof(expression), "fault+%s", base);
	for (n = 1; rc < 0; n++) {
		snprintf(yaml, sizeof(yaml), "fault: {op: write, errno: ENOSPC, nth: %d}", n);
		use_store(expression, yaml);
		assert_int_equal(io_open(&t.io, t.path, STORE_WRITE | STORE_CREATE, t.blob, &t.e), 0);
		rc = format->write(&t.io, t.blob, t.path, &f, &content, t.scratch,
				   FORMAT_WRITE_SCRATCH, &t.e);
		io_close(&t.io, t.blob, NULL);
		if (rc < 0) {
			assert_int_equal(rc, -ENOSPC);
			assert_non_null(strstr(t.e.text, t.path));
		}
		/* the same, for verifying */
		snprintf(yaml, sizeof(yaml), "fault: {op: read, nth: %d}", n);
		use_store(expression, yaml);
		write_file(&f);
		if (verify(&f) < 0)
			assert_non_null(strstr(t.e.text, "fault"));
	}
	assert_true(n > 2);
}

/* A read that gives less than asked is not the end of the file for Python either. */
static void short_reads(void **state)
{
	struct file_spec f = spec(image() ? "uint8" : "int16", 2, 2, 300, 400, 0);
	char expression[32], yaml[96];

	(void)state;
	snprintf(expression, sizeof(expression), "fault+%s", base);
	for (int n = 1; n < 20; n++) {
		FOR_MODES(access, decode) {
			struct reader_config c = config(&f, access, decode);
			int rc;

			snprintf(yaml, sizeof(yaml), "fault: {op: read, action: short, nth: %d}", n);
			use_store(expression, yaml);
			write_file(&f);
			rc = read_once(&f, &c, 0);
			if (rc != 0 && rc != ERR_DATA)
				fail_msg("%s", t.e.text);
		}
	}
}

static void reading_allocates_nothing(void **state)
{
	struct file_spec f = spec("uint8", 2, 2, 600, 700, 0);

	(void)state;
	write_file(&f);
	FOR_MODES(access, decode) {
		struct reader_config c = config(&f, access, decode);
		struct open_reader o;
		struct sample s;
		long before;

		reader_open(&o, &f, &c);
		before = allocations;
		assert_true(before > 0);
		assert_int_equal(format->read(o.r, t.path, &f, 0, &s, &t.e), 0);
		assert_int_equal(format->read(o.r, t.path, &f, 1, &s, &t.e), 0);
		assert_int_equal(allocations, before);
		reader_end(&o);
	}
}

static void missing_file(void **state)
{
	struct file_spec f = SMALL;

	(void)state;
	if (no_io())
		return;
	FOR_MODES(access, decode) {
		struct reader_config c = config(&f, access, decode);

		assert_int_equal(read_once(&f, &c, 0), -ENOENT);
		assert_non_null(strstr(t.e.text, t.path));
	}
	assert_int_equal(verify(&f), -ENOENT);
}

static void found_by_name(void **state)
{
	(void)state;
	assert_ptr_equal(format_find(format->name), format);
	assert_null(format_find("nosuch"));
	assert_null(format_find(""));
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	static const char *const bases[] = {"memory", "posix"};
	const struct CMUnitTest tests[] = {
		T(found_by_name),
		T(size_is_as_said),
		T(every_sample_in_every_mode),
		T(sample_beyond_the_end),
		T(kept_files_cost_nothing),
		T(native_reads_least),
		T(every_flipped_byte_is_found),
		T(first_difference_of_a_large_file),
		T(every_truncation_is_found),
		T(another_dataset_is_named),
		T(impossible_specs),
		T(impossible_readers),
		T(too_large_blocks),
		T(every_failure_ends_in_a_sentence),
		T(every_failed_write_ends_in_a_sentence),
		T(short_reads),
		T(reading_allocates_nothing),
		T(missing_file),
	};
	int failed = 0;

	for (size_t i = 0; format_table[i]; i++) {
		for (size_t k = 0; k < 2; k++) {
			char name[64];

			format = format_table[i];
			base = bases[k];
			snprintf(name, sizeof(name), "%s over %s", format->name, base);
			failed += _cmocka_run_group_tests(name, tests, sizeof(tests) / sizeof(tests[0]),
							  NULL, NULL);
		}
	}
	return failed ? 1 : 0;
}
