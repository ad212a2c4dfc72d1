/* csv: numbers to text and back, text cut anywhere, requests, gzip, DLIO's files. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "../tools/test_content.h"
#include "base/alloc.h"
#include "base/rng.h"
#include "dataset/content.h"
#include "dlio_files.h"
#include "format/csv/csv_text.h"
#include "format/format.h"

static struct err e;

/* ---- numbers ---- */

static const char *text_of(const char *type, const void *v)
{
	static char text[64];
	char *end;

	memset(text, '#', sizeof(text));
	end = csv_put_of(elem_find(type))(text, v);
	assert_true(end - text < (ptrdiff_t)CSV_NUMBER_MAX);
	*end = '\0';
	return text;
}

#define CHECK(type, c_type, value, want)                                                           \
	do {                                                                                       \
		c_type v_ = value;                                                                 \
		assert_string_equal(text_of(type, &v_), want);                                     \
	} while (0)

static void whole_numbers(void **state)
{
	(void)state;
	CHECK("uint8", uint8_t, 0, "0");
	CHECK("uint8", uint8_t, 99, "99");
	CHECK("uint8", uint8_t, 255, "255");
	CHECK("int8", int8_t, -128, "-128");
	CHECK("int8", int8_t, 0, "0");
	CHECK("uint16", uint16_t, 65535, "65535");
	CHECK("int16", int16_t, -32768, "-32768");
	CHECK("uint32", uint32_t, 4294967295u, "4294967295");
	CHECK("int32", int32_t, INT32_MIN, "-2147483648");
	CHECK("uint64", uint64_t, UINT64_MAX, "18446744073709551615");
	CHECK("int64", int64_t, INT64_MIN, "-9223372036854775808");
	CHECK("int64", int64_t, 100, "100");
	CHECK("bool", uint8_t, 1, "True");
	CHECK("bool", uint8_t, 0, "False");
	assert_null(csv_put_of(elem_find("complex64")));
}

/* What pandas 1.5 writes. */
static void floats_as_pandas(void **state)
{
	(void)state;
	CHECK("float16", uint16_t, 0x3818, "0.5117");
	CHECK("float16", uint16_t, 0x270e, "0.02756");
	CHECK("float16", uint16_t, 0x7bff, "65500.0");
	CHECK("float16", uint16_t, 0x0001, "6e-08");
	CHECK("float16", uint16_t, 0x3c00, "1.0");
	CHECK("float16", uint16_t, 0xbc00, "-1.0");
	CHECK("float16", uint16_t, 0x6800, "2048.0");
	CHECK("float16", uint16_t, 0x7c00, "inf");
	CHECK("float16", uint16_t, 0x7e00, "nan");
	CHECK("float32", float, 0.95046371f, "0.9504637");
	CHECK("float32", float, 0.02755911275744438f, "0.027559113");
	CHECK("float32", float, 0.1f, "0.1");
	CHECK("float32", float, 0.5f, "0.5");
	CHECK("float32", float, 0.25f, "0.25");
	CHECK("float32", float, 123456789.f, "123456790.0");
	CHECK("float32", float, 1e16f, "1e+16");
	CHECK("float32", float, 3.4e38f, "3.4e+38");
	CHECK("float32", float, 1e-5f, "1e-05");
	CHECK("float32", float, 0.00012345f, "0.00012345");
	CHECK("float32", float, 0.f, "0.0");
	CHECK("float32", float, -0.f, "-0.0");
	CHECK("float64", double, 0.5118216247002567, "0.5118216247002567");
	CHECK("float64", double, 0.14415961271963373, "0.14415961271963373");
	CHECK("float64", double, 0.027559113243068367, "0.027559113243068367");
	CHECK("float64", double, 0.1 + 0.2, "0.30000000000000004");
	CHECK("float64", double, 123456789.0, "123456789.0");
	CHECK("float64", double, 1.5e15, "1500000000000000.0");
	CHECK("float64", double, 9007199254740993.0, "9007199254740992.0");
	CHECK("float64", double, 1e22, "1e+22");
	CHECK("float64", double, 1.5e-300, "1.5e-300");
	CHECK("float64", double, -1.7976931348623157e308, "-1.7976931348623157e+308");
	CHECK("float64", double, 5e-324, "5e-324");
	CHECK("float64", double, 0.0001, "0.0001");
	CHECK("float64", double, -(double)INFINITY, "-inf");
}

/* The shortest "%.*e" that reads back, and its length in significant digits. */
static int shortest(double v, bool single)
{
	char t[40];

	for (int p = 0;; p++) {
		snprintf(t, sizeof(t), "%.*e", p, v);
		if (single ? strtof(t, NULL) == (float)v : strtod(t, NULL) == v)
			return p + 1;
	}
}

static int significant(const char *t)
{
	int n = 0, zeros = 0;

	for (; *t && *t != 'e'; t++) {
		if (*t == '-' || *t == '.' || (*t == '0' && n == 0))
			continue;
		zeros = *t == '0' ? zeros + 1 : 0;
		n++;
	}
	return n - zeros;
}

/* Every way of writing a float reads back as itself and has no digit too many. */
static void floats_read_back(void **state)
{
	struct content_source c32, c64;

	(void)state;
	content_init(&c32, 3, elem_find("float32"));
	content_init(&c64, 3, elem_find("float64"));
	for (uint64_t i = 0; i < 60000; i++) {
		uint64_t word = rng_word(9, i);
		uint32_t low = (uint32_t)word;
		double d, parsed;
		float f;
		const char *t;

		if (i % 2) {
			c32.fill(&c32, 0, i * 4, &f, 4);
			c64.fill(&c64, 0, i * 8, &d, 8);
			if (i % 4 == 3) {
				f = (float)(low >> (i % 29)) * 0x1p-32f;
				d = (double)(word >> (i % 61)) * 0x1p-64;
			}
		} else {
			memcpy(&f, &low, 4);
			memcpy(&d, &word, 8);
		}
		if (isfinite(f) && f != 0) {
			t = text_of("float32", &f);
			if (strtof(t, NULL) != f || significant(t) > shortest(f, true))
				fail_msg("%.9g became %s", (double)f, t);
		}
		if (isfinite(d) && d != 0) {
			t = text_of("float64", &d);
			if (strtod(t, NULL) != d || significant(t) > shortest(d, false))
				fail_msg("%.17g became %s", d, t);
			/* the parser is fast, and off by some units in the last place at most */
			assert_true(csv_parse(t, strlen(t), &parsed));
			if (fabs(parsed / d - 1) > 1e-14 && fabs(d) > 1e-290)
				fail_msg("%s was read as %.17g", t, parsed);
		}
	}
	/* every half there is */
	for (uint32_t h = 1; h < 0x7c00; h++) {
		uint16_t v = (uint16_t)h, next = (uint16_t)(h + 1), before = (uint16_t)(h - 1);
		const char *t = text_of("float16", &v);
		int x = h >> 10;
		double is = x ? ldexp((h & 0x3ff) + 1024, x - 25) : ldexp(h, -24), got;

		got = strtod(t, NULL);
		(void)next;
		(void)before;
		if (fabs(got - is) >= ldexp(1, (x ? x : 1) - 26) || significant(t) > 5)
			fail_msg("half 0x%04x became %s", h, t);
	}
}

static void fields(void **state)
{
	static const struct {
		const char *text;
		double value;
	} good[] = {{"0", 0},
		    {"254", 254},
		    {"-128", -128},
		    {"+7", 7},
		    {"18446744073709551615", 18446744073709551615.0},
		    {"123456789012345678901234567890", 123456789012345678901234567890.0},
		    {"0.5", .5},
		    {".5", .5},
		    {"5.", 5},
		    {"1e3", 1000},
		    {"1E-3", .001},
		    {"2.5e+2", 250},
		    {"1e99999999999999999999", INFINITY},
		    {"1e-99999999999999999999", 0},
		    {"0.0000000000000000000000000001", 1e-28},
		    {"True", 1},
		    {"false", 0},
		    {"inf", INFINITY},
		    {"-inf", -(double)INFINITY}};
	static const char *const bad[] = {"-",   "+",  ".",    "1.2.3", "1e",
					  "1e+", "x",  "1x",   "1 2",   "0x10",
					  "--1", "e5", "nanx", "\"1\"", "1e5.0"};
	double v;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		double want = good[i].value;

		if (!csv_parse(good[i].text, strlen(good[i].text), &v))
			fail_msg("refused: %s", good[i].text);
		if (v != want && !(fabs(v - want) <= fabs(want) * 1e-15))
			fail_msg("%s is %.17g", good[i].text, v);
	}
	assert_true(csv_parse("", 0, &v) && isnan(v));
	assert_true(csv_parse("nan", 3, &v) && isnan(v));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (csv_parse(bad[i], strlen(bad[i]), &v))
			fail_msg("taken: %s", bad[i]);
}

/* ---- scanning ---- */

static struct file_spec spec(const char *elem, uint64_t samples, uint64_t columns)
{
	return (struct file_spec){.elem = elem_find(elem),
				  .ndims = 1,
				  .dims = {columns},
				  .samples = samples,
				  .compression = "none"};
}

/* The text cut into pieces of `cut` bytes. */
static int scan(const char *text, size_t n, size_t cut, uint64_t rows, uint64_t columns,
		double *sum)
{
	struct file_spec f = spec("uint8", rows, columns);
	struct csv_scan s;
	int rc = 0;

	memset(&e, 0, sizeof(e));
	csv_scan_start(&s, DECODE_FULL, &f, rows, NULL, NULL, NULL);
	for (size_t at = 0; at < n && rc == 0; at += cut) {
		size_t part = n - at < cut ? n - at : cut;
		char *exact = xmalloc(part);

		memcpy(exact, text + at, part);
		rc = csv_scan_feed(&s, exact, part, &e);
		free(exact);
	}
	if (rc == 0)
		rc = csv_scan_end(&s, &e);
	*sum = s.sum;
	return rc;
}

static void cut_anywhere(void **state)
{
	static const struct {
		const char *text;
		uint64_t rows, columns;
		double sum;
		const char *says; /* NULL: taken */
	} cases[] = {
		{"1,22,333\n4,5,6\n", 2, 3, 371, NULL},
		{"1,22,333\r\n4,5,6\r\n", 2, 3, 371, NULL},
		{"1,22,333\n\n\n4,5,6", 2, 3, 371, NULL},
		{"-1.5,+2e1\n.25,True\n", 2, 2, 19.75, NULL},
		{"7\n", 1, 1, 7, NULL},
		{"1234567890123456789\n", 1, 1, 1234567890123456789.0, NULL},
		{"\n\n", 2, 0, 0, NULL},
		{"", 0, 3, 0, NULL},
		{"", 1, 3, 0, "has 0 rows and should have 1"},
		{"1,2,3\n", 2, 3, 0, "has 1 rows and should have 2"},
		{"1,2,3\n1,2,3\n", 1, 3, 0, "has 2 rows and should have 1"},
		{"1,2\n", 1, 3, 0,
		 "row 0 (from 0) has 2 numbers, and a sample of the workload has 3"},
		{"1,2,3\n1,2,3,4\n", 2, 3, 0, "row 1 (from 0) has 4 numbers"},
		{"1,2,3,", 1, 3, 0, "row 0 (from 0) has 4"},
		{"1,2,3x\n", 1, 3, 0, "the byte at offset 4 does not begin a number"},
		{"1,\x80,3\n", 1, 3, 0, "the byte at offset 2 does not begin a number"},
		{"1,                                                                   2\n", 1, 2,
		 0, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) - 1; i++) {
		size_t n = strlen(cases[i].text);

		for (size_t cut = 1; cut <= n + 1; cut++) {
			double sum;
			int rc = scan(cases[i].text, n, cut, cases[i].rows, cases[i].columns, &sum);

			if (!cases[i].says && (rc != 0 || sum != cases[i].sum))
				fail_msg("%zu in pieces of %zu: %d %f %s", i, cut, rc, sum, e.text);
			if (cases[i].says && (rc != ERR_DATA || !strstr(e.text, cases[i].says)))
				fail_msg("%s in pieces of %zu: %s", cases[i].text, cut, e.text);
		}
	}
	/* a field that never ends is refused as soon as it is longer than a number */
	double sum;

	assert_int_equal(scan(cases[16].text, strlen(cases[16].text), 8, 1, 2, &sum), ERR_DATA);
	assert_non_null(strstr(e.text, "too long for a number"));
}

/* The stream is the same however much room each call has. */
static void text_in_pieces(void **state)
{
	static const char *const types[] = {"uint8", "int16", "float64", "bool", "float16"};

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct file_spec f = spec(types[i], 3, 5001);
		struct content_source content;
		unsigned char *elements = xmalloc(CSV_ELEMENTS);
		char *all = xmalloc(1 << 20), *some = xmalloc(1 << 20);
		size_t n = 0, got, rows = 0;
		struct csv_text t;

		content_init(&content, 1, f.elem);
		csv_text_start(&t, &f, &content, elements);
		while ((got = csv_text_next(&t, all + n, (1 << 20) - n)) > 0)
			n += got;
		for (size_t room = CSV_NUMBER_MAX; room < 3000; room = room * 3 / 2) {
			size_t m = 0;

			csv_text_start(&t, &f, &content, elements);
			while ((got = csv_text_next(&t, some + m, room)) > 0) {
				assert_true(got <= room);
				m += got;
			}
			assert_int_equal(m, n);
			assert_memory_equal(all, some, n);
		}
		for (size_t k = 0; k < n; k++)
			rows += all[k] == '\n';
		assert_int_equal(rows, 3);
		/* and about as long as said, a little too long rather */
		double mean = (double)n / 15003 * 100, said = csv_mean_chars(f.elem);

		if (mean > said * 1.01 || mean < said * .95)
			fail_msg("%s: %.0f, said %.0f", types[i], mean, said);
		free(all);
		free(some);
		free(elements);
	}
}

/* ---- files ---- */

static const struct format_ops *csv(void)
{
	return format_find("csv");
}

static struct {
	struct store *store;
	struct io io;
	struct io_stat stat;
	struct blob *blob;
	void *scratch, *memory;
	size_t bytes;
	struct reader *r;
	struct content_source content;
} t;

static int set_up(void **state)
{
	(void)state;
	memset(&t, 0, sizeof(t));
	assert_int_equal(store_create(&t.store, "memory", NULL, &e), 0);
	t.io = (struct io){.store = t.store, .stat = &t.stat};
	t.blob = store_blob_new(t.store, &e);
	t.content = test_content(elem_find("uint8"));
	t.scratch = buffer_alloc(FORMAT_WRITE_SCRATCH, "scratch", &e);
	return 0;
}

static void end_reader(void)
{
	if (!t.memory)
		return;
	assert_int_equal(csv()->reader_close(t.r, &e), 0);
	buffer_free(t.memory, t.bytes);
	t.memory = NULL;
}

static int tear_down(void **state)
{
	(void)state;
	end_reader();
	buffer_free(t.scratch, FORMAT_WRITE_SCRATCH);
	free(t.blob);
	store_destroy(t.store);
	return 0;
}

static void put_bytes(const void *bytes, size_t n)
{
	assert_int_equal(io_open(&t.io, "f", STORE_WRITE | STORE_CREATE, t.blob, &e), 0);
	if (n)
		assert_int_equal(io_pwrite(&t.io, t.blob, bytes, n, 0, &e), n);
	assert_int_equal(io_close(&t.io, t.blob, &e), 0);
}

static void put(const struct file_spec *f)
{
	if (io_open(&t.io, "f", STORE_WRITE | STORE_CREATE, t.blob, &e) < 0 ||
	    format_write(csv(), &t.io, t.blob, "f", f, &t.content, t.scratch, FORMAT_WRITE_SCRATCH,
			 &e) < 0 ||
	    io_close(&t.io, t.blob, &e) < 0)
		fail_msg("%s", e.text);
}

static unsigned char *get_bytes(size_t *n)
{
	struct store_stat st;
	unsigned char *p;

	assert_int_equal(io_open(&t.io, "f", STORE_READ, t.blob, &e), 0);
	assert_int_equal(io_stat_blob(&t.io, t.blob, &st, &e), 0);
	p = xmalloc(st.bytes + 1);
	assert_int_equal(io_pread(&t.io, IO_DATA, t.blob, p, st.bytes, 0, &e), st.bytes);
	io_close(&t.io, t.blob, NULL);
	*n = st.bytes;
	return p;
}

static void begin_reader(struct reader_config c)
{
	end_reader();
	c.python = c.python ? c.python : 311;
	c.files = 9;
	c.block_bytes = 65536;
	c.max_file_bytes = UINT64_MAX;
	c.max_sample_bytes = 1 << 20;
	c.samples_per_file = 8;
	c.content = &t.content;
	t.bytes = csv()->reader_bytes(&c, t.store);
	t.memory = buffer_alloc(t.bytes, "a reader", &e);
	memset(t.memory, 0, t.bytes);
	assert_int_equal(csv()->reader_init(t.memory, &c, &t.io, &t.r, &e), 0);
}

static int read_at(const struct file_spec *f, uint64_t index)
{
	struct sample s;

	memset(&t.stat, 0, sizeof(t.stat));
	memset(&e, 0, sizeof(e));
	return csv()->read(t.r, "f", f, index, &s, &e);
}

static int verify(const struct file_spec *f)
{
	memset(&e, 0, sizeof(e));
	return format_verify(csv(), &t.io, "f", f, &t.content, t.scratch, FORMAT_WRITE_SCRATCH, &e);
}

/* n bytes of one row of "1,". */
static void requests_of_pandas(void **state)
{
	/* size, requests, bytes asked */
	static const uint64_t cases[][3] = {
		{38, 3, 262144 + 262106 + 262144}, {262142, 3, 262144 + 8192 + 262144},
		{262144, 2, 2 * 262144},           {262146, 4, 2 * 262144 + 262142 + 262144},
		{524288, 3, 3 * 262144},           {524280, 4, 2 * 262144 + 8192 + 262144},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n = cases[i][0];
		struct file_spec f = spec("uint8", 1, n / 2);
		char *text = xmalloc(n);

		for (size_t k = 0; k < n; k += 2)
			memcpy(text + k, "1,", 2);
		text[n - 1] = '\n';
		put_bytes(text, n);
		free(text);
		for (int d = 0; d < 3; d += 2) {
			begin_reader((struct reader_config){.decode = (enum read_decode)d});
			if (read_at(&f, 0) < 0)
				fail_msg("%s", e.text);
			assert_int_equal(t.stat.kind[IO_OPEN].requests, 2);
			assert_int_equal(t.stat.kind[IO_META].requests, 0);
			assert_int_equal(t.stat.kind[IO_DATA].requests, cases[i][1]);
			assert_int_equal(t.stat.kind[IO_DATA].asked_bytes, cases[i][2]);
			assert_int_equal(t.stat.kind[IO_DATA].returned_bytes, n);
		}
	}
}

/* Reading stops with the piece in which the row ends. */
static void native_stops(void **state)
{
	struct file_spec f = spec("uint8", 8, 1 << 20);

	(void)state;
	put(&f);
	for (int d = 0; d < 3; d++) {
		begin_reader((struct reader_config){.access = ACCESS_NATIVE,
						    .decode = (enum read_decode)d});
		if (read_at(&f, 0) < 0)
			fail_msg("%s", e.text);
		/* of 2 MiB each, for 3.7 MB a row */
		assert_int_equal(t.stat.kind[IO_DATA].requests, 2);
		assert_int_equal(read_at(&f, 7), 0);
		assert_int_equal(t.stat.kind[IO_DATA].requests, 15);
	}
}

static void gzip_files(void **state)
{
	struct file_spec f = spec("uint8", 3, 100000);
	unsigned char *file, *out = xmalloc(2 << 20);
	char *text = xmalloc(2 << 20);
	unsigned char *elements = xmalloc(CSV_ELEMENTS);
	struct csv_text plain;
	size_t n, m = 0, got;
	z_stream z = {0};

	(void)state;
	f.compression = "gzip";
	put(&f);
	file = get_bytes(&n);
	csv_text_start(&plain, &f, &t.content, elements);
	while ((got = csv_text_next(&plain, text + m, (2 << 20) - m)) > 0)
		m += got;
	assert_int_equal(inflateInit2(&z, 31), Z_OK);
	z.next_in = file;
	z.avail_in = (uInt)n;
	z.next_out = out;
	z.avail_out = 2 << 20;
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.total_out, m);
	assert_int_equal(z.avail_in, 0);
	assert_memory_equal(out, text, m);
	inflateEnd(&z);
	if (verify(&f) < 0)
		fail_msg("%s", e.text);
	for (int mode = 0; mode < 12; mode++) {
		begin_reader((struct reader_config){.access = (enum read_access)(mode & 1),
						    .decode = (enum read_decode)(mode / 2 % 3),
						    .python = mode < 6 ? 311 : 314});
		for (uint64_t i = 0; i < 3; i++)
			if (read_at(&f, i) < 0)
				fail_msg("mode %d: %s", mode, e.text);
		if (mode & 1)
			assert_int_equal(t.stat.kind[IO_DATA].requests, 1);
	}
	/* one wrong bit: the checksum, or the text */
	file[n / 2] ^= 4;
	put_bytes(file, n);
	assert_int_equal(verify(&f), ERR_DATA);
	begin_reader((struct reader_config){.decode = DECODE_FULL});
	assert_int_equal(read_at(&f, 0), ERR_DATA);
	assert_non_null(strstr(e.text, "'f': "));
	file[n / 2] ^= 4;
	file[n - 6] ^= 1;
	put_bytes(file, n);
	assert_int_equal(read_at(&f, 0), ERR_DATA);
	assert_non_null(strstr(e.text, "the checksum of the compressed data"));
	file[n - 6] ^= 1;
	for (size_t len = 0; len < n; len += len < 30 || len > n - 30 ? 1 : 9973) {
		put_bytes(file, len);
		assert_int_equal(verify(&f), ERR_DATA);
		assert_int_equal(read_at(&f, 0), ERR_DATA);
	}
	free(file);
	free(out);
	free(text);
	free(elements);
}

/* Headers with everything that may be in one, several members, zeros behind. */
static void other_gzip_files(void **state)
{
	static const char head[] = "\x1f\x8b\x08\x1e\0\0\0\0\0\0\x03\0abcname\0comment\0\xff\xff";
	struct file_spec f = spec("uint8", 2, 3);
	unsigned char file[512];
	size_t n = 0;

	(void)state;
	f.compression = "gzip";
	for (int member = 0; member < 2; member++) {
		const char *text = member ? "5,6\n" : "1,2,3\n4,";
		size_t len = strlen(text);
		z_stream z = {0};
		uint32_t crc = (uint32_t)crc32(0, (const Bytef *)text, (uInt)len);

		memcpy(file + n, head, sizeof(head) - 1);
		n += sizeof(head) - 1;
		assert_int_equal(deflateInit2(&z, 6, 8, -15, 8, 0), Z_OK);
		z.next_in = (Bytef *)(uintptr_t)text;
		z.avail_in = (uInt)len;
		z.next_out = file + n;
		z.avail_out = 200;
		assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
		n += z.total_out;
		deflateEnd(&z);
		memcpy(file + n, &crc, 4);
		n += 4;
		memset(file + n, 0, 9); /* the length, and zeros */
		file[n] = (unsigned char)len;
		n += 9;
	}
	for (int mode = 0; mode < 4; mode++) {
		put_bytes(file, n);
		begin_reader((struct reader_config){.access = (enum read_access)(mode & 1),
						    .buffer_bytes = mode < 2 ? 16 : 4096});
		if (read_at(&f, 1) < 0)
			fail_msg("mode %d: %s", mode, e.text);
		for (size_t len = 0; len < n - 5; len++) {
			put_bytes(file, len);
			int rc = read_at(&f, 1);

			/* native needs no more than the last row */
			if (!(mode & 1 && len > n - 20 && rc == 0))
				assert_int_equal(rc, ERR_DATA);
		}
	}
	put_bytes("1,2,3\n", 6);
	assert_int_equal(read_at(&f, 0), ERR_DATA);
	assert_non_null(strstr(e.text, "no gzip header at offset 0"));
}

static void dlio_files(void **state)
{
	uint64_t dims[] = {32, 32};

	(void)state;
	dlio_read("csv", "csv", dims, 2, "uint8", 1, 4);
	dlio_read("csv", "csv_4x4", dims, 2, "uint8", 4, 4);
	dlio_read_compressed("csv", "csv_gzip", dims, 2, "uint8", 1, 4, "gzip");
}

#define R(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_numbers),
		cmocka_unit_test(floats_as_pandas),
		cmocka_unit_test(floats_read_back),
		cmocka_unit_test(fields),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(text_in_pieces),
		R(requests_of_pandas),
		R(native_stops),
		R(gzip_files),
		R(other_gzip_files),
		cmocka_unit_test(dlio_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
