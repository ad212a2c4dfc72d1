/* The zip records: NumPy's files byte for byte, what other writers make, and damage. */
#include <glob.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "codec/crc.h"
#include "codec/zip.h"

#define GIB (1ull << 30)

static void put16(unsigned char *p, unsigned v)
{
	p[0] = (unsigned char)v;
	p[1] = (unsigned char)(v >> 8);
}

static void put32(unsigned char *p, uint32_t v)
{
	put16(p, v & 0xffff);
	put16(p + 2, v >> 16);
}

static void put64(unsigned char *p, uint64_t v)
{
	put32(p, (uint32_t)v);
	put32(p + 4, (uint32_t)(v >> 32));
}

static size_t from_hex(const char *hex, unsigned char *out)
{
	size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < n; i++) {
		unsigned byte;

		assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
		out[i] = (unsigned char)byte;
	}
	return n;
}

static struct zip_entry member(const char *name, uint64_t bytes, uint64_t offset)
{
	struct zip_entry m = {.crc = 0x12345678,
			      .bytes = bytes,
			      .compressed_bytes = bytes,
			      .local_offset = offset};

	snprintf(m.name, sizeof(m.name), "%s", name);
	return m;
}

/* Reads a file of NumPy, writes every record again and compares with the file. */
static void rewrite(const char *path)
{
	struct buf f = {0}, again = {0};
	unsigned char header[400];
	struct zip_entry m[4];
	struct zip_end end;
	struct err e = {0};
	uint64_t record;
	size_t pos = 0, n = 0;
	int rc;

	assert_int_equal(file_read(path, 1 << 20, &f, &e), 0);
	assert_int_equal(zip_parse_end(f.data, f.len, f.len, &end, &record, &e), 0);
	assert_int_equal(end.needs_zip64, 0);
	assert_true(record == f.len - ZIP_EOCD_BYTES);
	while ((rc = zip_next_entry(f.data + end.directory_offset, end.directory_bytes, &pos,
				    end.directory_offset, &m[n], &e)) == 1)
		n++;
	assert_int_equal(rc, 0);
	assert_int_equal(n, end.entries);
	for (size_t i = 0; i < n; i++) {
		const char *at = f.data + m[i].local_offset;
		uint32_t skip;

		assert_int_equal(zip_parse_local(at, f.len - m[i].local_offset, m[i].local_offset,
						 &skip, &e),
				 0);
		at += ZIP_LOCAL_BYTES + skip;
		assert_int_equal(m[i].method, ZIP_STORED);
		assert_int_equal(crc32_update(0, at, m[i].bytes), m[i].crc);
		assert_true(again.len == m[i].local_offset);
		buf_append(&again, header, zip_write_local(header, &m[i]));
		buf_append(&again, at, m[i].bytes);
	}
	assert_true(again.len == end.directory_offset);
	for (size_t i = 0; i < n; i++)
		buf_append(&again, header, zip_write_central(header, &m[i]));
	assert_true(again.len - end.directory_offset == end.directory_bytes);
	buf_append(&again, header,
		   zip_write_end(header, n, end.directory_offset, end.directory_bytes));
	assert_int_equal(again.len, f.len);
	assert_memory_equal(again.data, f.data, f.len);
	buf_release(&f);
	buf_release(&again);
}

static void test_numpy_files_byte_for_byte(void **state)
{
	static const char *const pattern[] = {"npz*/train/*.npz", "npz*/train/*/*.npz"};
	size_t files = 0;

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		AUTO_FREE char *path = xasprintf("%s/dlio-data/%s", TEST_DATA, pattern[k]);
		glob_t found;

		if (glob(path, 0, NULL, &found) != 0)
			continue;
		for (size_t i = 0; i < found.gl_pathc; i++)
			rewrite(found.gl_pathv[i]);
		files += found.gl_pathc;
		globfree(&found);
	}
	assert_in_range(files, 20, 1000);
}

/* What Python's zipfile writes for members and directories around 2^31 and 2^32. `local` is NULL
 * where it is as for a small member. */
static const struct {
	uint64_t bytes, offset, directory;
	const char *local, *rest;
} python[] = {
	{5 * GIB, 0, 5 * GIB + 100,
	 "504b03042d00000000000000210078563412ffffffffffffffff05001400782e6e70790100100000000040010"
	 "0"
	 "00000000004001000000",
	 "504b01022d032d00000000000000210078563412ffffffffffffffff050014000000000000000000800100000"
	 "000"
	 "782e6e70790100100000000040010000000000004001000000504b06062c000000000000002d002d000000000"
	 "000"
	 "0000000100000000000000010000000000000047000000000000006400004001000000504b060700000000ab0"
	 "000"
	 "400100000001000000504b0506000000000100010047000000ffffffff0000"},
	{(1u << 31) - 1, 1u << 31, (1ull << 32) + 5, NULL,
	 "504b01022d032d00000000000000210078563412ffffff7fffffff7f05000c0000000000000000008001fffff"
	 "fff"
	 "782e6e7079010008000000008000000000504b06062c000000000000002d002d0000000000000000000100000"
	 "000"
	 "00000001000000000000003f000000000000000500000001000000504b0607000000004400000001000000010"
	 "000"
	 "00504b050600000000010001003f000000ffffffff0000"},
	{1u << 31, (1u << 31) - 1, (1ull << 32) + (1u << 31),
	 "504b03042d00000000000000210078563412ffffffffffffffff05001400782e6e70790100100000000080000"
	 "00000"
	 "0000008000000000",
	 "504b01022d032d00000000000000210078563412ffffffffffffffff0500140000000000000000008001fffff"
	 "f7f"
	 "782e6e70790100100000000080000000000000008000000000504b06062c000000000000002d002d000000000"
	 "000"
	 "0000000100000000000000010000000000000047000000000000000000008001000000504b060700000000470"
	 "000"
	 "800100000001000000504b0506000000000100010047000000ffffffff0000"},
};

static void test_python_large_headers(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof(python) / sizeof(python[0]); k++) {
		struct zip_entry m = member("x.npy", python[k].bytes, python[k].offset);
		unsigned char want[400], got[400];
		size_t n, dir;

		n = zip_write_local(got, &m);
		assert_int_equal(n, 55);
		assert_int_equal(got[4], python[k].local ? 45 : 20);
		if (python[k].local) {
			assert_int_equal(from_hex(python[k].local, want), n);
			assert_memory_equal(got, want, n);
		}
		dir = zip_write_central(got, &m);
		n = dir + zip_write_end(got + dir, 1, python[k].directory, dir);
		assert_int_equal(from_hex(python[k].rest, want), n);
		assert_memory_equal(got, want, n);
	}
}

/* A 5 GiB file of which only the tail exists. */
static void test_parse_zip64(void **state)
{
	unsigned char tail[400];
	struct zip_entry m;
	struct zip_end end;
	struct err e = {0};
	uint64_t file, record, at;
	size_t n = from_hex(python[0].rest, tail), pos = 0, dir = 46 + 5 + 20;

	(void)state;
	file = python[0].directory + n;
	assert_int_equal(zip_parse_end(tail, n, file, &end, &record, &e), 0);
	assert_true(end.needs_zip64 && record == file - 22);
	assert_int_equal(zip_parse_locator(tail + n - 42, &at), 1);
	assert_true(at == python[0].directory + dir);
	assert_int_equal(zip_parse_end64(tail + dir, 56, file, &end, &e), 0);
	assert_true(end.entries == 1 && !end.needs_zip64);
	assert_true(end.directory_offset == python[0].directory && end.directory_bytes == dir);
	assert_int_equal(zip_next_entry(tail, dir, &pos, end.directory_offset, &m, &e), 1);
	assert_true(m.bytes == 5 * GIB && m.compressed_bytes == 5 * GIB && m.local_offset == 0);
	assert_string_equal(m.name, "x.npy");
	assert_int_equal(zip_next_entry(tail, dir, &pos, end.directory_offset, &m, &e), 0);
	/* no locator: the marks cannot be meant */
	assert_int_equal(zip_parse_end(tail, n, file, &end, &record, &e), 0);
	assert_int_equal(zip_end_without_zip64(&end, record, &e), ERR_DATA);
	assert_int_equal(zip_parse_locator(tail + n - 41, &at), 0);
}

/* Python before the 65536th member: 65535 is meant although it is the mark. */
static void test_65535_members(void **state)
{
	unsigned char record[98];
	uint64_t dir = 65535 * 51, at;
	struct zip_end end;
	struct err e = {0};

	(void)state;
	assert_int_equal(zip_write_end(record, 65535, 1000, dir), 22);
	assert_int_equal(zip_parse_end(record, 22, 1000 + dir + 22, &end, &at, &e), 0);
	assert_true(end.needs_zip64);
	assert_int_equal(zip_end_without_zip64(&end, at, &e), 0);
	assert_true(end.entries == 65535 && !end.needs_zip64);
	assert_int_equal(zip_write_end(record, 65536, 1000, dir + 51), 98);
	assert_int_equal(zip_parse_end64(record, 98, 1000 + dir + 51 + 98, &end, &e), 0);
	assert_true(end.entries == 65536);
}

static void test_comment(void **state)
{
	unsigned char file[22 + 65535];
	size_t n = zip_write_end(file, 0, 0, 0);
	struct zip_end end;
	struct err e = {0};
	uint64_t record;

	(void)state;
	memset(file + n, 'c', sizeof(file) - n);
	/* a comment that looks like another record, whose own comment would end elsewhere */
	zip_write_end(file + 1000, 3, 0, 400);
	put16(file + 20, 65535);
	assert_int_equal(zip_parse_end(file, sizeof(file), sizeof(file), &end, &record, &e), 0);
	assert_true(record == 0 && end.entries == 0);
	put16(file + 20, 65534);
	assert_int_equal(zip_parse_end(file, sizeof(file), sizeof(file), &end, &record, &e),
			 ERR_DATA);
}

/* Since Python 3.11.4 the local header has marks and version 45; deflated members too. */
static void test_newer_python(void **state)
{
	struct zip_entry m = member("x.npy", 1000, 0);
	unsigned char b[400];
	uint32_t skip = 0;
	size_t n, pos = 0;
	struct zip_entry got;
	struct err e = {0};

	(void)state;
	m.method = ZIP_DEFLATED;
	m.compressed_bytes = 300;
	zip_write_local(b, &m);
	put16(b + 4, 45);
	memset(b + 18, 0xff, 8);
	assert_int_equal(zip_parse_local(b, 30, 0, &skip, &e), 0);
	assert_int_equal(skip, 25);
	n = zip_write_central(b, &m);
	assert_int_equal(zip_next_entry(b, n, &pos, 1000, &got, &e), 1);
	assert_int_equal(got.method, ZIP_DEFLATED);
	assert_true(got.compressed_bytes == 300 && got.bytes == 1000);
}

static void test_longest_name(void **state)
{
	struct zip_entry m = {
		.bytes = 6 * GIB, .compressed_bytes = 6 * GIB, .local_offset = 3 * GIB};
	unsigned char b[46 + 255 + 28 + 1];
	struct zip_entry got;
	struct err e = {0};
	size_t pos = 0;

	(void)state;
	memset(m.name, 'n', ZIP_NAME_MAX);
	b[30 + 255 + 20] = 0x5a;
	assert_int_equal(zip_write_local(b, &m), 30 + 255 + 20);
	assert_int_equal(b[30 + 255 + 20], 0x5a);
	b[46 + 255 + 28] = 0x5a;
	assert_int_equal(zip_write_central(b, &m), 46 + 255 + 28);
	assert_int_equal(b[46 + 255 + 28], 0x5a);
	assert_int_equal(zip_next_entry(b, 46 + 255 + 28, &pos, 10 * GIB, &got, &e), 1);
	assert_memory_equal(&got, &m, sizeof(m));
}

static void refuse_end(const unsigned char *p, size_t n, const char *why)
{
	struct zip_end end;
	struct err e = {0};
	uint64_t record;

	assert_int_equal(zip_parse_end(p, n, n, &end, &record, &e), ERR_DATA);
	if (!strstr(e.text, why) || !strstr(e.text, "offset"))
		fail_msg("'%s' does not say '%s'", e.text, why);
}

static void test_damaged_end(void **state)
{
	unsigned char b[200] = {0}, *end = b + 100;
	struct zip_end out;
	struct err e = {0};
	uint64_t record;

	(void)state;
	refuse_end(b, 0, "truncated");
	refuse_end(b, 21, "truncated");
	refuse_end(b, 122, "truncated");
	zip_write_end(end, 2, 0, 100);
	refuse_end(b, 121, "truncated");
	assert_int_equal(zip_parse_end(b, 122, 122, &out, &record, &e), 0);
	assert_int_equal(zip_parse_end(b, 122, 121, &out, &record, &e), ERR_DATA);
	put32(end + 16, 1);
	refuse_end(b, 122, "outside");
	put32(end + 16, 0xfffffffe);
	refuse_end(b, 122, "outside");
	zip_write_end(end, 3, 0, 100);
	refuse_end(b, 122, "too many");
	zip_write_end(end, 0, 0, 100);
	refuse_end(b, 122, "no members");
	zip_write_end(end, 2, 0, 100);
	put16(end + 8, 1);
	refuse_end(b, 122, "split");
	zip_write_end(end, 2, 0, 100);
	put16(end + 4, 1);
	refuse_end(b, 122, "split");
	zip_write_end(end, 2, 0, 100);
	put16(end + 6, 2);
	refuse_end(b, 122, "split");
	/* marks in the disk numbers alone */
	for (size_t field = 4; field <= 6; field += 2) {
		zip_write_end(end, 2, 0, 100);
		put16(end + field, 0xffff);
		assert_int_equal(zip_parse_end(b, 122, 122, &out, &record, &e), 0);
		assert_true(out.needs_zip64);
	}
}

static void test_damaged_end64(void **state)
{
	const uint64_t dir = 5 * GIB, file = dir + 100 + 98;
	const struct {
		size_t field;
		uint64_t value;
	} bad[] = {
		{4, 43},          {24, 3},          {32, 3},          {40, 101},
		{40, UINT64_MAX}, {48, dir + 1},    {48, UINT64_MAX}, {48, UINT64_MAX - 99},
		{16, 1},          {16, 1ull << 32},
	};
	unsigned char good[98], b[98];
	uint64_t at;
	struct zip_end end;
	struct err e = {0};

	(void)state;
	assert_int_equal(zip_write_end(good, 2, dir, 100), 98);
	assert_int_equal(zip_parse_end64(good, 98, file, &end, &e), 0);
	assert_int_equal(zip_parse_end64(good, 55, file, &end, &e), ERR_DATA);
	assert_int_equal(zip_parse_end64(good, 0, file, &end, &e), ERR_DATA);
	assert_int_equal(zip_parse_end64(good, 98, 97, &end, &e), ERR_DATA);
	assert_int_equal(zip_parse_end64(good, 98, file - 1, &end, &e), ERR_DATA);
	assert_int_equal(zip_parse_end64(good + 1, 97, file, &end, &e), ERR_DATA);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memcpy(b, good, sizeof(b));
		put64(b + bad[i].field, bad[i].value);
		assert_int_equal(zip_parse_end64(b, 98, file, &end, &e), ERR_DATA);
	}
	memcpy(b, good, sizeof(b));
	put64(b + 24, UINT64_MAX);
	put64(b + 32, UINT64_MAX);
	assert_int_equal(zip_parse_end64(b, 98, file, &end, &e), ERR_DATA);
	put64(b + 56 + 8, UINT64_MAX);
	assert_int_equal(zip_parse_locator(b + 56, &at), 0);
}

#define DIR_OFFSET 5000ull

static void refuse_entry(const unsigned char *b, size_t n, const char *why)
{
	AUTO_FREE unsigned char *exact = xmalloc(n + !n);
	struct zip_entry m;
	struct err e = {0};
	size_t pos = 0;

	memcpy(exact, b, n);
	assert_int_equal(zip_next_entry(exact, n, &pos, DIR_OFFSET, &m, &e), ERR_DATA);
	assert_int_equal(pos, 0);
	if (!strstr(e.text, why) || !strstr(e.text, "offset 5000"))
		fail_msg("'%s' does not say '%s'", e.text, why);
}

static size_t entry_with_extra(unsigned char *b, const unsigned char *extra, size_t n)
{
	struct zip_entry m = member("x.npy", 100, 0);
	size_t len = zip_write_central(b, &m);

	put16(b + 30, (unsigned)n);
	memcpy(b + len, extra, n);
	return len + n;
}

static void test_damaged_entry(void **state)
{
	struct zip_entry m = member("x.npy", 100, 0);
	unsigned char b[400];
	size_t n = zip_write_central(b, &m);

	(void)state;
	for (size_t cut = 1; cut < n; cut++)
		refuse_entry(b, cut, cut < 46 ? "no directory entry" : "cut off");
	b[3] ^= 1;
	refuse_entry(b, n, "no directory entry");
	zip_write_central(b, &m);
	put16(b + 32, 1);
	refuse_entry(b, n, "cut off");
	put16(b + 32, 0xffff);
	refuse_entry(b, n, "cut off");
	zip_write_central(b, &m);
	put16(b + 28, 256);
	refuse_entry(b, sizeof(b), "at most 255");
	zip_write_central(b, &m);
	b[47] = '\0';
	refuse_entry(b, n, "NUL");
	for (unsigned flag = 1; flag <= 0x2000; flag = flag == 1      ? 0x40
						       : flag == 0x40 ? 0x2000
								      : 0x4000) {
		zip_write_central(b, &m);
		put16(b + 8, flag);
		refuse_entry(b, n, "encrypted");
	}
	zip_write_central(b, &m);
	put16(b + 34, 1);
	refuse_entry(b, n, "split");
	zip_write_central(b, &m);
	put32(b + 24, 99);
	refuse_entry(b, n, "stored");
	zip_write_central(b, &m);
	put32(b + 42, DIR_OFFSET - 134);
	refuse_entry(b, n, "before the directory");
	m.local_offset = DIR_OFFSET - 135;
	zip_write_central(b, &m);
	size_t pos = 0;
	assert_int_equal(zip_next_entry(b, n, &pos, DIR_OFFSET, &m, NULL), 1);
}

static void test_damaged_extra(void **state)
{
	unsigned char b[400], extra[40] = {0};
	struct zip_entry m;
	size_t n, pos = 0;

	(void)state;
	/* a foreign field, then padding: fine */
	put16(extra, 0x5455);
	put16(extra + 2, 5);
	n = entry_with_extra(b, extra, 12);
	assert_int_equal(zip_next_entry(b, n, &pos, DIR_OFFSET, &m, NULL), 1);
	put16(extra + 2, 6);
	n = entry_with_extra(b, extra, 9);
	refuse_entry(b, n, "extra field of 6");
	/* marks without values */
	n = entry_with_extra(b, extra, 0);
	put32(b + 24, UINT32_MAX);
	refuse_entry(b, n, "missing");
	put16(extra, 1);
	put16(extra + 2, 8);
	put64(extra + 4, 100);
	n = entry_with_extra(b, extra, 12);
	put32(b + 20, UINT32_MAX);
	put32(b + 24, UINT32_MAX);
	refuse_entry(b, n, "missing");
	put16(extra + 2, 7);
	n = entry_with_extra(b, extra, 11);
	put32(b + 24, UINT32_MAX);
	refuse_entry(b, n, "missing");
	/* offsets that overflow */
	put16(extra + 2, 24);
	put64(extra + 4, UINT64_MAX - 20);
	put64(extra + 12, UINT64_MAX - 20);
	put64(extra + 20, 40);
	n = entry_with_extra(b, extra, 28);
	put32(b + 20, UINT32_MAX);
	put32(b + 24, UINT32_MAX);
	put32(b + 42, UINT32_MAX);
	refuse_entry(b, n, "before the directory");
	put64(extra + 4, 5);
	put64(extra + 12, 5);
	put64(extra + 20, UINT64_MAX - 2);
	n = entry_with_extra(b, extra, 28);
	put32(b + 20, UINT32_MAX);
	put32(b + 24, UINT32_MAX);
	put32(b + 42, UINT32_MAX);
	refuse_entry(b, n, "before the directory");
	/* only the marked fields have values, in order */
	put16(extra + 2, 8);
	put64(extra + 4, 77);
	n = entry_with_extra(b, extra, 12);
	put32(b + 42, UINT32_MAX);
	pos = 0;
	assert_int_equal(zip_next_entry(b, n, &pos, DIR_OFFSET, &m, NULL), 1);
	assert_true(m.local_offset == 77 && m.bytes == 100);
	/* behind a foreign field too */
	put16(extra, 0x5455);
	put16(extra + 12, 1);
	put16(extra + 14, 8);
	put64(extra + 16, 78);
	n = entry_with_extra(b, extra, 24);
	put32(b + 42, UINT32_MAX);
	pos = 0;
	assert_int_equal(zip_next_entry(b, n, &pos, DIR_OFFSET, &m, NULL), 1);
	assert_true(m.local_offset == 78);
}

static void test_damaged_local(void **state)
{
	struct zip_entry m = member("x.npy", 100, 0);
	unsigned char b[100];
	uint32_t skip;
	struct err e = {0};

	(void)state;
	zip_write_local(b, &m);
	assert_int_equal(zip_parse_local(b, 29, 70, &skip, &e), ERR_DATA);
	assert_non_null(strstr(e.text, "offset 70"));
	put16(b + 26, 0xffff);
	put16(b + 28, 0xffff);
	assert_int_equal(zip_parse_local(b, 30, 70, &skip, &e), 0);
	assert_int_equal(skip, 131070);
	b[6] = 1;
	assert_int_equal(zip_parse_local(b, 30, 70, &skip, &e), ERR_DATA);
	b[6] = 0;
	b[0] = 'Q';
	assert_int_equal(zip_parse_local(b, 30, 70, &skip, &e), ERR_DATA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numpy_files_byte_for_byte),
		cmocka_unit_test(test_python_large_headers),
		cmocka_unit_test(test_parse_zip64),
		cmocka_unit_test(test_65535_members),
		cmocka_unit_test(test_comment),
		cmocka_unit_test(test_newer_python),
		cmocka_unit_test(test_longest_name),
		cmocka_unit_test(test_damaged_end),
		cmocka_unit_test(test_damaged_end64),
		cmocka_unit_test(test_damaged_entry),
		cmocka_unit_test(test_damaged_extra),
		cmocka_unit_test(test_damaged_local),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
