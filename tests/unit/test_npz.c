/* npz archives: DLIO's files, sizes of known workloads, large files, and directories that lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "dlio_files.h"
#include "format/numpy/npy.h"

extern const struct format_ops format_npz;

static struct err e;

static void dlio_files(void **state)
{
	(void)state;
	dlio_read("npz", "npz", (uint64_t[]){32, 32}, 2, "uint8", 1, 4);
	dlio_read("npz", "npz_4x4", (uint64_t[]){32, 32}, 2, "uint8", 4, 4);
	dlio_read("npz", "npz_f16_dims", (uint64_t[]){16, 16}, 2, "float16", 1, 4);
	/* DLIO asked for zip compression stores members all the same */
	dlio_read("npz", "npz_zip", (uint64_t[]){32, 32}, 2, "uint8", 1, 4);
}

static uint64_t size_of(const char *elem, uint64_t a, uint64_t b, uint64_t samples)
{
	struct file_spec f = {.elem = elem_find(elem),
			      .ndims = 2,
			      .dims = {a, b},
			      .samples = samples,
			      .compression = "none"};

	assert_int_equal(format_npz.check(&f, &e), 0);
	return format_npz.file_bytes(&f);
}

static void sizes(void **state)
{
	(void)state;
	/* 55 + 128 for x, 55 + 128 + 8 for y, 102 of directory, 22 of end record */
	assert_int_equal(size_of("uint8", 12107, 12107, 1), 12107 * 12107 + 498);
	assert_int_equal(size_of("uint8", 15865, 14125, 1), 15865 * 14125 + 498);
	assert_int_equal(size_of("uint8", 32, 32, 1), 1522);
	/* from 2 GiB on the directory's entries for x and y have zip64 fields, and the end its
	 * record */
	assert_int_equal(size_of("uint8", 1, 2147483647 - 128, 1),
			 2147483647u - 128 + 498 + 12 + 76);
	assert_int_equal(size_of("uint8", 1, 2147483647, 1), 2147483647u + 498 + 20 + 12 + 76);
	assert_int_equal(size_of("uint8", 1, 1u << 20, 1), (1u << 20) + 498);
}

/* A store of one file in memory and a reader over it. */
static struct {
	struct io io;
	struct io_stat stat;
	struct blob *blob;
} t;

static int set_up(void **state)
{
	(void)state;
	memset(&t, 0, sizeof(t));
	assert_int_equal(store_create(&t.io.store, "memory", NULL, &e), 0);
	t.io.stat = &t.stat;
	t.blob = store_blob_new(t.io.store, &e);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(t.blob);
	store_destroy(t.io.store);
	return 0;
}

static void put(const void *bytes, size_t n)
{
	assert_int_equal(io_open(&t.io, "f", STORE_WRITE | STORE_CREATE, t.blob, &e), 0);
	assert_true(io_pwrite(&t.io, t.blob, bytes, n, 0, &e) >= 0);
	assert_int_equal(io_close(&t.io, t.blob, &e), 0);
}

static int read_f(const struct file_spec *f, enum read_access access, enum read_decode decode,
		  uint32_t python)
{
	struct content_source content = test_content(f->elem);
	struct reader_config c = {.access = access,
				  .decode = decode,
				  .python = python,
				  .block_bytes = 4096,
				  .max_file_bytes = format_npz.file_bytes(f),
				  .content = &content};
	size_t bytes = format_npz.reader_bytes(&c, t.io.store);
	void *memory = buffer_alloc(bytes, "a reader", &e);
	struct reader *r;
	struct sample s;
	int rc;

	memset(memory, 0xa5, bytes);
	assert_int_equal(format_npz.reader_init(memory, &c, &t.io, &r, &e), 0);
	memset(&t.stat, 0, sizeof(t.stat));
	memset(&e, 0, sizeof(e));
	rc = format_npz.read(r, "f", f, 0, &s, &e);
	buffer_free(memory, bytes);
	return rc;
}

#define SPEC                                                                                       \
	{                                                                                          \
		.elem = elem_find("uint8"), .ndims = 2, .dims = {40, 50}, .samples = 1,            \
		.compression = "none"                                                              \
	}

/* The bytes of a file of SPEC, with room behind. */
static unsigned char *make(const struct file_spec *f, size_t *n)
{
	struct content_source content = test_content(f->elem);
	void *scratch = xmalloc(FORMAT_WRITE_SCRATCH);
	unsigned char *p;

	*n = (size_t)format_npz.file_bytes(f);
	p = xcalloc(1, *n + 70000);
	assert_int_equal(io_open(&t.io, "f", STORE_WRITE | STORE_CREATE, t.blob, &e), 0);
	assert_int_equal(format_write(&format_npz, &t.io, t.blob, "f", f, &content, scratch,
				      FORMAT_WRITE_SCRATCH, &e),
			 0);
	assert_int_equal(io_close(&t.io, t.blob, &e), 0);
	assert_int_equal(io_open(&t.io, "f", STORE_READ, t.blob, &e), 0);
	assert_int_equal(io_pread(&t.io, IO_DATA, t.blob, p, *n, 0, &e), *n);
	io_close(&t.io, t.blob, &e);
	free(scratch);
	return p;
}

/* Sizes in the local header are not trusted blindly, and needed for reading without the directory.
 */
static void local_headers(void **state)
{
	struct file_spec f = SPEC;
	size_t n;
	unsigned char *p = make(&f, &n);

	(void)state;
	put(p, n);
	assert_int_equal(read_f(&f, ACCESS_NATIVE, DECODE_VERIFY, 311), 0);
	assert_int_equal(t.stat.kind[IO_META].requests, 0);
	assert_int_equal(t.stat.kind[IO_DATA].requests, 1);
	/* as Python from 3.11.4 writes: sizes in the zip64 field only */
	memset(p + 18, 0xff, 8);
	put(p, n);
	assert_int_equal(read_f(&f, ACCESS_NATIVE, DECODE_FULL, 311), 0);
	assert_int_equal(t.stat.kind[IO_META].requests, 0);
	/* not even there: the directory has them */
	p[35] = 9;
	put(p, n);
	assert_int_equal(read_f(&f, ACCESS_NATIVE, DECODE_FULL, 311), 0);
	assert_int_equal(t.stat.kind[IO_META].requests, 5);
	assert_int_equal(read_f(&f, ACCESS_FRAMEWORK, DECODE_FULL, 311), 0);
	/* sizes that the file does not have */
	p[35] = 1;
	p[39 + 2] ^= 1;
	put(p, n);
	assert_int_equal(read_f(&f, ACCESS_NATIVE, DECODE_FULL, 311), ERR_DATA);
	assert_int_equal(read_f(&f, ACCESS_FRAMEWORK, DECODE_FULL, 311), 0);
	p[39 + 2] ^= 1;
	/* stored, but less of it than there is: found without looking at the array */
	p[47] ^= 0x10;
	put(p, n);
	assert_int_equal(read_f(&f, ACCESS_NATIVE, DECODE_NONE, 311), ERR_DATA);
	p[47] ^= 0x10;
	put(p, n);
	assert_int_equal(read_f(&f, ACCESS_NATIVE, DECODE_NONE, 311), 0);
	/* a data descriptor follows: sizes here mean nothing */
	p[6] |= 8;
	memset(p + 18, 0, 8);
	put(p, n);
	assert_int_equal(read_f(&f, ACCESS_NATIVE, DECODE_FULL, 311), 0);
	assert_int_equal(t.stat.kind[IO_META].requests, 5);
	free(p);
}

static void comments(void **state)
{
	static const size_t lengths[] = {1, 5, 4096, 65534, 65535};
	struct file_spec f = SPEC;
	size_t n;
	unsigned char *p = make(&f, &n);

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		p[n - 2] = (unsigned char)lengths[i];
		p[n - 1] = (unsigned char)(lengths[i] >> 8);
		memset(p + n, 'c', lengths[i]);
		put(p, n + lengths[i]);
		for (uint32_t python = 311; python <= 314; python += 3)
			if (read_f(&f, ACCESS_FRAMEWORK, DECODE_VERIFY, python) < 0)
				fail_msg("%zu: %s", lengths[i], e.text);
	}
	/* longer than its field can say */
	put(p, n + 65536);
	assert_int_equal(read_f(&f, ACCESS_FRAMEWORK, DECODE_VERIFY, 311), ERR_DATA);
	free(p);
}

static void damaged_directories(void **state)
{
	struct file_spec f = SPEC;
	size_t n;
	unsigned char *p = make(&f, &n);
	const struct {
		size_t at;
		unsigned char value;
		const char *says;
	} damage[] = {
		{n - 22 + 12, 0xff, "directory"},           /* longer than the file */
		{n - 22 + 19, 0x7f, "directory"},           /* far behind the end */
		{n - 22, 'X', "end-of-directory"},          /* no end record */
		{n - 124, 'X', "no directory entry"},       /* no entry */
		{n - 124 + 46, 'z', "no member 'x.npy'"},   /* another name */
		{n - 124 + 10, 99, "compressed by method"}, /* unknown compression */
		{n - 124 + 42, 1, "no member begins"},      /* the local header is elsewhere */
		{n - 124 + 44, 0xff, "end before the directory"},
		{n - 124 + 16, 0, "CRC-32"},
		{30, 'q', "does not have the name"},
		{55, 'Q', "npy"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(damage) / sizeof(damage[0]); i++) {
		unsigned char was = p[damage[i].at];

		p[damage[i].at] = was == damage[i].value ? (unsigned char)~was : damage[i].value;
		put(p, n);
		if (read_f(&f, ACCESS_FRAMEWORK, DECODE_FULL, 311) != ERR_DATA)
			fail_msg("accepted damage %zu", i);
		if (!strstr(e.text, damage[i].says))
			fail_msg("%zu: %s", i, e.text);
		p[damage[i].at] = was;
	}
	free(p);
}

/* Stored blocks of 16,383 bytes, 5 more each. */
static void compressed(void **state)
{
	static const struct {
		const char *elem;
		uint64_t dims, samples, more;
	} c[] = {{"uint8", 1, 1, 5},
		 {"uint8", 16383 - 128, 1, 5},
		 {"uint8", 16384 - 128, 1, 10},
		 {"float32", 50000, 3, 185},
		 {"uint8", 0, 4, 5}};
	struct content_source content = test_content(elem_find("uint8"));
	void *scratch = buffer_alloc(FORMAT_WRITE_SCRATCH, "scratch", &e);

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct file_spec f = {.elem = elem_find(c[i].elem),
				      .ndims = 1,
				      .dims = {c[i].dims},
				      .samples = c[i].samples,
				      .compression = "none"};
		uint64_t plain = format_npz.file_bytes(&f);
		struct store_stat st;

		f.compression = "zip";
		assert_int_equal(format_npz.check(&f, &e), 0);
		/* y, too, is a block */
		assert_int_equal(format_npz.file_bytes(&f), plain + c[i].more + 5);
		assert_int_equal(io_open(&t.io, "f", STORE_WRITE | STORE_CREATE, t.blob, &e), 0);
		assert_int_equal(format_write(&format_npz, &t.io, t.blob, "f", &f, &content,
					      scratch, FORMAT_WRITE_SCRATCH, &e),
				 0);
		assert_int_equal(io_close(&t.io, t.blob, &e), 0);
		assert_int_equal(io_stat_path(&t.io, "f", &st, &e), 0);
		assert_int_equal(st.bytes, format_npz.file_bytes(&f));
		for (int mode = 0; mode < 12; mode++)
			if (read_f(&f, (enum read_access)(mode % 2),
				   (enum read_decode)(mode / 2 % 3), mode < 6 ? 311 : 314) < 0)
				fail_msg("%s", e.text);
		/* verify sees every byte: the last of them changed, and one in the middle */
		for (uint64_t at = st.bytes - 1; at > 40 && i < 2; at = at / 2) {
			unsigned char byte;

			assert_int_equal(format_verify(&format_npz, &t.io, "f", &f, &content,
						       scratch, FORMAT_WRITE_SCRATCH, &e),
					 0);
			io_open(&t.io, "f", STORE_READ | STORE_WRITE, t.blob, &e);
			io_pread(&t.io, IO_DATA, t.blob, &byte, 1, at, &e);
			byte ^= 1;
			io_pwrite(&t.io, t.blob, &byte, 1, at, &e);
			assert_int_equal(format_verify(&format_npz, &t.io, "f", &f, &content,
						       scratch, FORMAT_WRITE_SCRATCH, &e),
					 ERR_DATA);
			byte ^= 1;
			io_pwrite(&t.io, t.blob, &byte, 1, at, &e);
			io_close(&t.io, t.blob, &e);
		}
	}
	struct file_spec f = SPEC;

	f.compression = "gzip";
	assert_int_equal(format_check(&format_npz, &f, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "one of: none, zip"));
	buffer_free(scratch, FORMAT_WRITE_SCRATCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dlio_files),
		cmocka_unit_test(sizes),
		cmocka_unit_test_setup_teardown(compressed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(local_headers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(comments, set_up, tear_down),
		cmocka_unit_test_setup_teardown(damaged_directories, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
