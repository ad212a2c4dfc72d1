/* Header blocks of tar archives, and shards that are none. */
#include "format/tar/tar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct err e;
static unsigned char block[TAR_BLOCK];
static struct tar_header h;
static struct tar_member m;

/* Puts the checksum right again. */
static void mend(void)
{
	unsigned sum = 0;

	memset(block + 148, ' ', 8);
	for (unsigned i = 0; i < TAR_BLOCK; i++)
		sum += block[i];
	for (int i = 5; i >= 0; i--, sum >>= 3)
		block[148 + i] = (unsigned char)('0' + (sum & 7));
	block[154] = 0;
}

static void written_is_read(void **state)
{
	static const uint64_t size[] = {0, 1, 511, 512, 1u << 20, TAR_SIZE_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		tar_put_header(block, "000003_000017.bin", size[i]);
		assert_int_equal(tar_get_header(block, &h, &e), 0);
		assert_int_equal(h.kind, TAR_FILE);
		assert_int_equal(h.bytes, size[i]);
		assert_string_equal(h.name, "000003_000017.bin");
	}
	memset(block, 0, sizeof(block));
	assert_int_equal(tar_get_header(block, &h, &e), 0);
	assert_int_equal(h.kind, TAR_END);
}

static void every_flipped_bit_is_found(void **state)
{
	(void)state;
	tar_put_header(block, "a.bin", 35);
	for (unsigned i = 0; i < TAR_BLOCK * 8; i++) {
		block[i / 8] ^= (unsigned char)(1u << i % 8);
		/* the sum may begin with a space and end with a space or a zero */
		if (i / 8 < 148 || i / 8 > 155)
			assert_int_equal(tar_get_header(block, &h, &e), ERR_DATA);
		block[i / 8] ^= (unsigned char)(1u << i % 8);
	}
}

static void sizes(void **state)
{
	static const struct {
		const char *text;
		int64_t size; /* -1: refused */
	} row[] = {{"00000000043", 35},
		   {"        43 ", 35},
		   {"43", 35},
		   {"77777777777", (1ll << 33) - 1},
		   {"\200\0\0\0\0\0\0\2\0\0\0\0", 1ll << 33},
		   {"\200\0\0\0\200\0\0\0\0\0\0\0", -1},
		   {"\200\1\0\0\0\0\0\0\0\0\0\0", -1},
		   {"\377\377\377\377\377\377\377\377\377\377\377\377", -1},
		   {"9", -1},
		   {"-1", -1},
		   {"12x", -1}};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		size_t n = (unsigned char)row[i].text[0] >= 0x80 ? 12 : strlen(row[i].text);

		tar_put_header(block, "a.bin", 1);
		memset(block + 124, 0, 12);
		memcpy(block + 124, row[i].text, n);
		mend();
		assert_int_equal(tar_get_header(block, &h, &e), row[i].size < 0 ? ERR_DATA : 0);
		if (row[i].size >= 0)
			assert_int_equal(h.bytes, row[i].size);
	}
}

static int records(const char *text, size_t n)
{
	tar_member_begin(&m);
	return tar_member_extra(&m, TAR_PAX, (const unsigned char *)text, n, &e);
}

static void extended_headers(void **state)
{
	static const char good[] = "16 path=a/b.jpg\n21 mtime=1.123456789\n12 size=999\n";
	static const char *const bad[] = {"99 path=a\n",       "x path=a\n",
					  "0 path=a\n",        "5 path=a\n",
					  "9 patha\n\n",       "10 path=a",
					  "99999999999 a=b\n", "12 size=-99\n",
					  "10 size=\n\n",      "28 size=99999999999999999999\n"};
	char *big = calloc(1, TAR_NAME_MAX + 1);

	(void)state;
	assert_int_equal(records(good, sizeof(good) - 1), 0);
	assert_true(m.named && m.sized);
	assert_string_equal(m.name, "a/b.jpg");
	assert_int_equal(m.bytes, 999);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(records(bad[i], strlen(bad[i])), ERR_DATA);
	for (size_t n = 1; n < 15; n++)
		assert_int_equal(records(good, n), ERR_DATA);
	memset(big, 'n', TAR_NAME_MAX);
	tar_member_begin(&m);
	assert_int_equal(
		tar_member_extra(&m, TAR_LONG_NAME, (unsigned char *)big, TAR_NAME_MAX + 1, &e),
		ERR_DATA);
	assert_int_equal(
		tar_member_extra(&m, TAR_LONG_NAME, (unsigned char *)big + 1, TAR_NAME_MAX, &e), 0);
	/* the name of the header that follows is not used any more, its size is */
	tar_put_header(block, "other.bin", 7);
	assert_int_equal(tar_get_header(block, &h, &e), 0);
	assert_int_equal(tar_member_end(&m, &h, &e), 0);
	assert_int_equal(strlen(m.name), TAR_NAME_MAX - 1);
	assert_int_equal(m.bytes, 7);
	free(big);
}

static void sparse_files_are_refused(void **state)
{
	(void)state;
	tar_put_header(block, "a.bin", 35);
	block[156] = 'S';
	mend();
	assert_int_equal(tar_get_header(block, &h, &e), ERR_DATA);
	assert_non_null(strstr(e.text, "sparse"));
	assert_int_equal(records("22 GNU.sparse.major=1\n", 22), ERR_DATA);
}

static void keys(void **state)
{
	static const struct {
		const char *name;
		int key; /* bytes; -1: none */
		const char *extension;
	} row[] = {{"0001.jpg", 4, "jpg"},
		   {"a.b/0001.seg.png", 8, "seg.png"},
		   {"../../etc/x.bin", 11, "bin"},
		   {"0001", -1, ""},
		   {".hidden", -1, ""},
		   {"a/.x", 2, "x"},
		   {"a.b/c/.x", 6, "x"},
		   {"a.b/.x", -1, ""},
		   {"./.x", -1, ""},
		   {"./0001.jpg", 6, "jpg"},
		   {"x.", 1, ""},
		   {"", -1, ""}};
	const char *extension = "";
	size_t key = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		assert_int_equal(tar_sample_key(row[i].name, &key, &extension), row[i].key >= 0);
		if (row[i].key < 0)
			continue;
		assert_int_equal(key, row[i].key);
		assert_string_equal(extension, row[i].extension);
	}
	assert_true(tar_is_meta("__index__") && tar_is_meta("__x__/a.bin") && tar_is_meta("____"));
	assert_false(tar_is_meta("__x") || tar_is_meta("x__") || tar_is_meta("___") ||
		     tar_is_meta("__x__.bin"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_is_read),
		cmocka_unit_test(every_flipped_bit_is_found),
		cmocka_unit_test(sizes),
		cmocka_unit_test(extended_headers),
		cmocka_unit_test(sparse_files_are_refused),
		cmocka_unit_test(keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
