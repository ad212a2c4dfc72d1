/* The contract of format/format.h, the same for every format over memory and over files. */
#include "format/reader.h"
#include "format_fixture.h"

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
		if (is_text() && f[i].elem->class == ELEM_COMPLEX) {
			assert_int_equal(format_check(format, &f[i], &t.e), ERR_USAGE);
			continue;
		}
		assert_int_equal(format_check(format, &f[i], &t.e), 0);
		write_file(&f[i]);
		if (format->file_bytes(&f[i]) != UINT64_MAX)
			assert_int_equal(size_now(), format->file_bytes(&f[i]));
		if (verify(&f[i]) < 0)
			fail_msg("%s", t.e.text);
	}
}

static void every_sample_in_every_mode(void **state)
{
	struct file_spec f[] = {SMALL, spec("float32", 3, 3, 4, 2, 5),
				spec("int16", 2, 2, 500, 400, 0), spec("uint8", 1, 2, 0, 4, 0),
				spec("uint8", 1, 2, 3100, 3100, 0)};
	static const uint32_t buffers[] = {0, 16, 4096, 1u << 20};
	static const uint32_t transfers[] = {0, 16, TRANSFER_UNBUFFERED, 4096};

	(void)state;
	for (size_t i = 0; i < sizeof(f) / sizeof(f[0]); i++) {
		/* numbers of 4 bytes: 38 MB, of one group like the others */
		if (not_for_images(&f[i]) || (is_table() && f[i].dims[0] > 600))
			continue;
		write_file(&f[i]);
		FOR_MODES(access, decode)
		{
			for (int k = 0; k < 8; k++) {
				struct reader_config c = config(&f[i], access, decode);
				struct open_reader o;
				uint64_t data = 0, opens = 0;

				c.buffer_bytes = buffers[k % 4];
				c.transfer_bytes = transfers[k % 4];
				c.python = k < 4 ? 311 : 314;
				if (c.buffer_bytes == 16 && f[i].dims[0] > 600)
					continue;
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
					data += t.stat.kind[IO_DATA].returned_bytes +
						t.stat.kind[IO_META].returned_bytes;
					opens += t.stat.kind[IO_OPEN].requests;
					/* but for the checksum of PNG's end */
					if (image())
						assert_true(t.stat.kind[IO_DATA].returned_bytes +
								    t.stat.kind[IO_META]
									    .returned_bytes +
								    4 >=
							    size_now());
					if (!is_array())
						continue;
					/* whole arrays are read, whichever sample is wanted, or the
					 * sample and what goes with it */
					assert_true(t.stat.kind[IO_DATA].returned_bytes +
							    t.stat.kind[IO_META].returned_bytes >=
						    got.payload_bytes *
							    (by_sample() ? 1 : f[i].samples));
					assert_int_equal(t.stat.kind[IO_OPEN].requests, 2);
				}
				memset(&t.stat, 0, sizeof(t.stat));
				reader_end(&o);
				opens += t.stat.kind[IO_OPEN].requests;
				if (no_io())
					continue;
				if (!image())
					assert_true(data >=
						    file_spec_sample_bytes(&f[i]) * f[i].samples);
				assert_true(opens >= 2 && opens % 2 == 0);
			}
		}
	}
}

static void sample_beyond_the_end(void **state)
{
	struct file_spec f = SMALL;

	(void)state;
	write_file(&f);
	FOR_MODES(access, decode)
	{
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
	if (no_io() || by_sample())
		return;
	write_file(&f);
	c.keep_open = true;
	reader_open(&o, &f, &c);
	assert_int_equal(format->read(o.r, t.path, &f, 0, &s, &t.e), 0);
	memset(&t.stat, 0, sizeof(t.stat));
	assert_int_equal(format->read(o.r, t.path, &f, 1, &s, &t.e), 0);
	assert_int_equal(s.payload_bytes, 0);
	for (int k = 0; k < IO_KINDS; k++)
		assert_int_equal(t.stat.kind[k].requests, 0);
	/* another file is not loaded yet, and one beyond the stated number is never marked */
	for (uint64_t file = 0; file < 100; file += file < 4 ? 1 : 32) {
		f.file_index = file;
		memset(&t.stat, 0, sizeof(t.stat));
		assert_int_equal(format->read(o.r, t.path, &f, 0, &s, &t.e), 0);
		assert_int_equal(t.stat.kind[IO_OPEN].requests, file == 3 ? 0 : is_table() ? 4 : 2);
		assert_int_equal(s.payload_bytes, file == 3 ? 0 : 35);
	}
	/* a new reader in the same memory has loaded nothing */
	assert_int_equal(format->reader_close(o.r, &t.e), 0);
	assert_int_equal(format->reader_init(o.memory, &o.c, &t.io, &o.r, &t.e), 0);
	f.file_index = 3;
	assert_int_equal(format->read(o.r, t.path, &f, 0, &s, &t.e), 0);
	assert_int_equal(s.payload_bytes, 35);
	reader_end(&o);
	/* without it, every sample is read again */
	f.file_index = 3;
	c.keep_open = false;
	reader_open(&o, &f, &c);
	for (int i = 0; i < 2; i++) {
		memset(&t.stat, 0, sizeof(t.stat));
		assert_int_equal(format->read(o.r, t.path, &f, 0, &s, &t.e), 0);
		assert_true(t.stat.kind[IO_DATA].returned_bytes +
				    t.stat.kind[IO_META].returned_bytes >=
			    35);
		if (is_array())
			assert_int_equal(t.stat.kind[IO_OPEN].requests, 2);
	}
	reader_end(&o);
}

static uint64_t pieces(uint64_t bytes)
{
	return (bytes + NATIVE_PIECE_MAX - 1) / NATIVE_PIECE_MAX;
}

static void native_reads_least(void **state)
{
	struct file_spec f = SMALL, big = spec("uint8", 1, 2, 3100, 3100, 0);

	(void)state;
	if (no_io())
		return;
	FOR_MODES(access, decode)
	{
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
		memset(&t.stat, 0, sizeof(t.stat));
		c = config(&big, access, decode);
		assert_int_equal(read_once(&big, &c, 0), 0);
		if (image()) {
			assert_int_equal(t.stat.kind[IO_DATA].requests, pieces(size_now()));
			assert_int_equal(t.stat.kind[IO_DATA].returned_bytes, size_now());
			continue;
		}
		if (is_table())
			assert_int_equal(t.stat.kind[IO_DATA].requests, pieces(9610000 * 4));
		if (is_text() || is_table())
			continue;
		assert_int_equal(
			t.stat.kind[IO_DATA].requests,
			is_array() || by_sample() || decode == DECODE_NONE ? pieces(9610000) : 1);
		assert_int_equal(t.stat.kind[IO_META].requests, 0);
		/* every byte once */
		assert_in_range(t.stat.kind[IO_DATA].returned_bytes, 9610000, 9610000 + 2048);
	}
}

static void every_flipped_byte_is_found(void **state)
{
	struct file_spec f = in_one_piece();
	unsigned char *file;
	size_t n, payload = 0;

	(void)state;
	write_file(&f);
	file = get_bytes(&n);
	if (!no_io() && !image() && !is_text() && !is_table())
		payload = payload_at(&f, file, n);
	for (size_t i = 0; i < n; i++) {
		bool inside = !image() && !is_text() && !is_table() &&
			      i >= payload + (is_array() && by_sample() ? 35 : 0) &&
			      i < payload + 70;
		char where[64];

		file[i] ^= 0x40;
		put_bytes(file, n);
		assert_int_equal(verify(&f), ERR_DATA);
		snprintf(where, sizeof(where), "offset %zu ", i);
		if (!strstr(t.e.text, where) || !strstr(t.e.text, t.path))
			fail_msg("byte %zu: %s", i, t.e.text);
		FOR_MODES(access, decode)
		{
			struct reader_config c = config(&f, access, decode);
			int rc = read_once(&f, &c, f.samples - 1);

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
			if (inside && decode == DECODE_FULL && has_checksum())
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
	size_t n, at[][2] = {{0, 1},
			     {3, 14},
			     {14, 14},
			     {17, 9000000},
			     {500, 14},
			     {2097151, 5000000},
			     {4194304, 4194305},
			     {9610100, 9610100},
			     {9610182, 9610183}};

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
	struct file_spec f = in_one_piece();
	unsigned char *file;
	size_t n, payload = 0;

	(void)state;
	write_file(&f);
	file = get_bytes(&n);
	if (!no_io() && !image() && !is_text() && !is_table())
		payload = payload_at(&f, file, n);
	for (size_t len = 0; len < n; len++) {
		put_bytes(file, len);
		assert_int_equal(verify(&f), ERR_DATA);
		FOR_MODES(access, decode)
		{
			struct reader_config c = config(&f, access, decode);
			int rc;

			c.python = len % 2 ? 311 : 314;
			rc = read_once(&f, &c, 0);
			/* nothing is looked at, or the last number lacks only digits */
			if (is_text() &&
			    (decode == DECODE_NONE || (decode == DECODE_FULL && len + 5 > n))) {
				assert_true(rc == 0 || rc == ERR_DATA);
				continue;
			}
			/* the metadata are not asked for */
			if (is_table() && access == ACCESS_NATIVE && len > 280) {
				assert_true(rc == 0 || rc == ERR_DATA);
				continue;
			}
			if (no_io() || (access == ACCESS_NATIVE && is_array() &&
					len >= payload + (by_sample() ? 35 : 70))) {
				assert_int_equal(rc, 0);
				continue;
			}
			if (has_an_end() && len >= payload + (by_sample() ? 35 : 71) && rc == 0)
				continue;
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
	struct file_spec other[] = {
		spec("int8", 2, 2, 5, 7, 0),       spec("uint8", 3, 2, 5, 7, 0),
		spec("uint8", 2, 2, 7, 5, 0),      spec("uint8", 1, 3, 5, 7, 2),
		spec("uint8", 2, 1, 35, 0, 0),     spec("uint16", 2, 2, 50, 70, 0),
		spec("uint8", 2, 2, 4000, 4000, 0)};

	(void)state;
	if (no_io())
		return;
	write_file(&f);
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		/* without a header only another size shows; samples do not, of an image */
		if (image() ? not_for_images(&other[i]) || i == 1 : !is_array() && i < 5)
			continue;
		assert_int_equal(verify(&other[i]), ERR_DATA);
		FOR_MODES(access, decode)
		{
			struct reader_config c = config(&other[i], access, decode);
			char want[32];

			if (is_text() && decode == DECODE_NONE)
				continue;
			assert_int_equal(read_once(&other[i], &c, 0), ERR_DATA);
			if (image())
				assert_non_null(strstr(t.e.text, "5 rows of 7 columns"));
			if (!is_array())
				continue;
			snprintf(want, sizeof(want), "%s (%d", other[i].elem->name,
				 (int)(by_sample() ? other[i].samples : other[i].dims[0]));
			if (!strstr(t.e.text,
				    by_sample() ? "uint8 (2, 5, 7)" : "uint8 (5, 7, 2)") ||
			    !strstr(t.e.text, want))
				fail_msg("%s", t.e.text);
		}
	}
}

static void impossible_specs(void **state)
{
	struct file_spec f = spec("float64", 1, 2, UINT64_MAX / 8, 9, 0);

	(void)state;
	assert_true(format_check(format, &f, &t.e) < 0);
	f = spec("uint8", 1, 3, 1u << 30, 1u << 30, 1u << 30);
	assert_true(format_check(format, &f, &t.e) < 0);
	f = SMALL;
	f.compression = "bz2";
	assert_true(format_check(format, &f, &t.e) < 0);
	assert_non_null(strstr(t.e.text, "bz2"));
	if (!no_io() && !image()) {
		f = spec("uint8", UINT64_MAX, 1, 1, 0, 0);
		assert_true(format_check(format, &f, &t.e) < 0);
	}
}

static void found_by_name(void **state)
{
	(void)state;
	assert_ptr_equal(format_find(format->is.name), format);
	assert_null(format_find("nosuch"));
	assert_null(format_find(""));
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
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
		T(found_by_name),
	};
	char group[64];
	size_t i = 0;
	int failed = 0;

	while (next_backend(&i, group, sizeof(group)))
		failed += _cmocka_run_group_tests(group, tests, sizeof(tests) / sizeof(tests[0]),
						  NULL, NULL);
	return failed ? 1 : 0;
}
