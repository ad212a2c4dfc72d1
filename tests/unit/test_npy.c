/* npy headers: parsing what NumPy accepts, refusing the rest, writing NumPy's text; DLIO's files.
 */
#include <dirent.h>
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

static struct err e;

/* A whole header around `text`, in an exact heap block. */
static int parse_version(int version, const char *text, size_t len, struct npy_array *a)
{
	size_t before = version == 1 ? 10 : 12, total = 0;
	unsigned char *h = xmalloc(before + len);
	int rc;

	memcpy(h, npy_magic, NPY_MAGIC_BYTES);
	h[6] = (unsigned char)version;
	h[7] = 0;
	h[8] = (unsigned char)len;
	h[9] = (unsigned char)(len >> 8);
	if (version != 1)
		h[10] = h[11] = 0;
	memcpy(h + before, text, len);
	memset(&e, 0, sizeof(e));
	assert_int_equal(npy_prefix_bytes(h, 8, 0, &e), before);
	assert_int_equal(npy_header_length(h, 0, &total, &e), 0);
	assert_int_equal(total, before + len);
	rc = npy_header_parse(h, total, 0, a, &e);
	free(h);
	return rc;
}

static int parse(const char *text, struct npy_array *a)
{
	return parse_version(1, text, strlen(text), a);
}

static void what_numpy_accepts(void **state)
{
	struct npy_array a;

	(void)state;
	assert_int_equal(
		parse("{'descr': '|u1', 'fortran_order': False, 'shape': (32, 32, 1), }   \n", &a),
		0);
	assert_string_equal(a.elem->name, "uint8");
	assert_false(a.fortran_order);
	assert_int_equal(a.ndims, 3);
	assert_int_equal(a.dims[0] * 10000 + a.dims[1] * 100 + a.dims[2], 323201);
	assert_int_equal(a.data_bytes, 1024);
	assert_int_equal(parse("{ \"shape\" :(3L,),\t\"fortran_order\":True,\"descr\":'<f4' }", &a),
			 0);
	assert_true(a.fortran_order);
	assert_int_equal(a.data_bytes, 12);
	assert_int_equal(parse("{'descr': '<c16', 'fortran_order': False, 'shape': ()}", &a), 0);
	assert_int_equal(a.ndims, 0);
	assert_int_equal(a.data_bytes, 16);
	assert_int_equal(parse("{'descr': '<i8', 'fortran_order': False, 'shape': (0, "
			       "9223372036854775807, 9223372036854775807)}",
			       &a),
			 0);
	assert_int_equal(a.data_bytes, 0);
	assert_int_equal(parse("{'descr': '<i8', 'fortran_order': False, 'shape': "
			       "(1,2,3,4,5,6,7,8,9)}",
			       &a),
			 0);
	assert_int_equal(a.data_bytes, 362880 * 8);
	/* a type that is not a sample's is told apart later */
	assert_int_equal(parse("{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", &a), 0);
	assert_null(a.elem);
	assert_int_equal(parse("{'descr': 'float', 'fortran_order': False, 'shape': (2,)}", &a), 0);
	assert_null(a.elem);
	for (int v = 1; v <= 3; v++) {
		const char *t = "{'descr': '<u2', 'fortran_order': False, 'shape': (7,), }\n";

		assert_int_equal(parse_version(v, t, strlen(t), &a), 0);
		assert_int_equal(a.data_bytes, 14);
		assert_int_equal(a.header_bytes, strlen(t) + (v == 1 ? 10 : 12));
	}
}

static void what_numpy_refuses(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"}",
		"{}",
		"[]",
		"{'descr': '|u1', 'fortran_order': False}",
		"{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'more': 1}",
		"{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (1,)}",
		"{'descr': '|u1', 'fortran_order': False, 'shape': (1,)} x",
		"{'descr': '|u1', 'fortran_order': Falsey, 'shape': (1,)}",
		"{'descr': '|u1', 'fortran_order': 0, 'shape': (1,)}",
		"{'descr': '|u1', 'fortran_order': False, 'shape': (1)}",
		"{'descr': '|u1', 'fortran_order': False, 'shape': 1}",
		"{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}",
		"{'descr': '|u1', 'fortran_order': False, 'shape': (1,,)}",
		"{'descr': '|u1', 'fortran_order': False, 'shape': (,)}",
		"{'descr': '|u1', 'fortran_order': False, 'shape': (1 2)}",
		"{'descr': '|u1', 'fortran_order': False, 'shape': (1,2}",
		"{'descr': '|u1', 'fortran_order': False, 'shape': (1,",
		"{'descr': '|u1', 'fortran_order': False, 'shape': (1.0,)}",
		"{'descr': '|u1' 'fortran_order': False, 'shape': (1,)}",
		"{'descr' '|u1', 'fortran_order': False, 'shape': (1,)}",
		"{'descr': '|u1, 'fortran_order': False, 'shape': (1,)}",
		"{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,)}",
		"{,'descr': '|u1', 'fortran_order': False, 'shape': (1,)}",
		"{'descr': '|u1', 'fortran_order': False, 'shape': (1,2,3,4,5,6,7,8,9,10)}",
		"{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775808,)}",
		"{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999999,)}",
		"{'descr': '<i8', 'fortran_order': False, 'shape': (4611686018427387904, 2)}",
		"{'descr': '<i8', 'fortran_order': False, 'shape': (1152921504606846976,)}",
	};
	struct npy_array a;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (parse(texts[i], &a) != ERR_DATA)
			fail_msg("accepted: %s", texts[i]);
		assert_true(strlen(e.text) > 20);
	}
	/* a NUL is no space */
	assert_int_equal(parse_version(1,
				       "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}\0",
				       57, &a),
			 ERR_DATA);
	assert_int_equal(parse_version(1,
				       "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}\0",
				       55, &a),
			 0);
}

static void prefixes(void **state)
{
	unsigned char h[12] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 0xff, 0xff, 0xff, 0xff};
	size_t total;

	(void)state;
	assert_int_equal(npy_prefix_bytes(h, 8, 7, &e), 10);
	assert_int_equal(npy_prefix_bytes(h, 7, 7, &e), ERR_DATA);
	assert_int_equal(npy_header_length(h, 7, &total, &e), ERR_DATA);
	h[9] = 0;
	assert_int_equal(npy_header_length(h, 7, &total, &e), 0);
	assert_int_equal(total, 265);
	h[6] = 2;
	assert_int_equal(npy_prefix_bytes(h, 8, 7, &e), 12);
	assert_int_equal(npy_header_length(h, 7, &total, &e), ERR_DATA);
	h[6] = 4;
	assert_int_equal(npy_prefix_bytes(h, 8, 7, &e), ERR_DATA);
	assert_non_null(strstr(e.text, "4.0"));
	h[6] = 0;
	assert_int_equal(npy_prefix_bytes(h, 8, 7, &e), ERR_DATA);
	h[6] = 1;
	h[0] = 'x';
	assert_int_equal(npy_prefix_bytes(h, 8, 777, &e), ERR_DATA);
	assert_non_null(strstr(e.text, "777"));
}

/* Written and parsed again, for every element type and the largest header there can be. */
static void round_trip(void **state)
{
	unsigned char h[NPY_HEADER_WRITTEN_MAX];
	uint64_t dims[NPY_DIMS_MAX];
	struct npy_array a;

	(void)state;
	for (const struct elem_type *t = elem_table; t->name; t++) {
		for (uint32_t n = 0; n <= NPY_DIMS_MAX; n++) {
			size_t len;

			for (uint32_t i = 0; i < n; i++)
				dims[i] = i == 4 ? 0 : 9223372036854775807u;
			for (uint32_t i = 0; n <= 4 && i < n; i++)
				dims[i] = i + 3;
			len = npy_header_write(h, t, n, dims);
			assert_int_equal(len % 64, 0);
			assert_true(len <= sizeof(h));
			assert_int_equal(npy_header_parse(h, len, 0, &a, &e), 0);
			assert_ptr_equal(a.elem, t);
			assert_int_equal(a.ndims, n);
			assert_memory_equal(a.dims, dims, n * sizeof(dims[0]));
		}
	}
}

/* Where the text already ends at a multiple of 64, NumPy adds 64 spaces all the same. */
static void padding(void **state)
{
	unsigned char h[NPY_HEADER_WRITTEN_MAX];
	uint64_t dims[NPY_DIMS_MAX] = {1, 1, 1, 1, 1, 1};
	size_t seen_full = 0;

	(void)state;
	for (uint32_t n = 1; n <= NPY_DIMS_MAX; n++) {
		for (uint64_t last = 1; last < 1000000000000000000u; last *= 10) {
			size_t len, spaces = 0;

			for (uint32_t i = 0; i < n; i++)
				dims[i] = 1;
			dims[n - 1] = last;
			len = npy_header_write(h, elem_find("uint8"), n, dims);
			assert_int_equal(h[len - 1], '\n');
			while (h[len - 2 - spaces] == ' ')
				spaces++;
			/* 20 for the first dimension to grow, then 1 to 64 */
			assert_in_range(spaces, 3, 84);
			if (n > 1 && spaces == 84)
				seen_full = 1;
		}
	}
	assert_int_equal(seen_full, 1);
}

static void dlio_files(void **state)
{
	(void)state;
	dlio_read("npy", "npy", (uint64_t[]){32, 32}, 2, "uint8", 1, 4);
	dlio_read("npy", "npy_4x4", (uint64_t[]){32, 32}, 2, "uint8", 4, 4);
	dlio_read("npy", "npy_f32_dims", (uint64_t[]){4, 8, 8}, 3, "float32", 1, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_numpy_accepts),
		cmocka_unit_test(what_numpy_refuses),
		cmocka_unit_test(prefixes),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(padding),
		cmocka_unit_test(dlio_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
