/* hdf5: checksums, shapes as h5py makes them, files byte for byte those of DLIO, what is asked for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "dlio_files.h"
#include "format/hdf5/hdf5_layout.h"

extern const struct format_ops format_hdf5;

static struct err e;
static struct io_stat stat_;
static struct io io = {.stat = &stat_};
static struct blob *blob;

static int set_up(void **state)
{
	(void)state;
	memset(&stat_, 0, sizeof(stat_));
	assert_int_equal(store_create(&io.store, "memory", NULL, &e), 0);
	blob = store_blob_new(io.store, &e);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(blob);
	store_destroy(io.store);
	return 0;
}

static struct file_spec spec(const char *elem, uint64_t samples, uint32_t ndims, uint64_t a,
			     uint64_t b, uint64_t c)
{
	return (struct file_spec){.elem = elem_find(elem),
				  .ndims = ndims,
				  .dims = {a, b, c},
				  .samples = samples,
				  .compression = "none",
				  .compression_level = 4};
}

static void write_file(const char *path, const struct file_spec *f)
{
	struct content_source content = test_content(f->elem);
	void *scratch = buffer_alloc(FORMAT_WRITE_SCRATCH, "scratch", &e);

	if (io_open(&io, path, STORE_WRITE | STORE_CREATE, blob, &e) < 0 ||
	    format_write(&format_hdf5, &io, blob, path, f, &content, scratch, FORMAT_WRITE_SCRATCH,
			 &e) < 0 ||
	    io_close(&io, blob, &e) < 0)
		fail_msg("%s", e.text);
	buffer_free(scratch, FORMAT_WRITE_SCRATCH);
}

static unsigned char *get_bytes(const char *path, size_t *n)
{
	struct store_stat st;
	unsigned char *p;

	assert_int_equal(io_open(&io, path, STORE_READ, blob, &e), 0);
	assert_int_equal(io_stat_blob(&io, blob, &st, &e), 0);
	p = xmalloc(st.bytes + 1);
	assert_int_equal(io_pread(&io, IO_DATA, blob, p, st.bytes, 0, &e), st.bytes);
	assert_int_equal(io_close(&io, blob, &e), 0);
	*n = st.bytes;
	return p;
}

struct opened {
	struct content_source content;
	struct reader *r;
	void *memory;
	size_t bytes;
};

static void reader_open(struct opened *o, const struct file_spec *f, enum read_access access,
			enum read_decode decode, bool keep_open, uint64_t files)
{
	struct reader_config c = {.access = access,
				  .decode = decode,
				  .python = 311,
				  .keep_open = keep_open,
				  .max_sample_bytes = file_spec_sample_bytes(f),
				  .max_file_bytes = format_hdf5.file_bytes(f),
				  .samples_per_file = f->samples,
				  .files = files,
				  .content = &o->content,
				  .example = f};

	o->content = test_content(f->elem);
	o->bytes = format_hdf5.reader_bytes(&c, io.store);
	o->memory = buffer_alloc(o->bytes, "a reader", &e);
	assert_non_null(o->memory);
	memset(o->memory, 0, o->bytes);
	assert_int_equal(format_hdf5.reader_init(o->memory, &c, &io, &o->r, &e), 0);
}

static void reader_end(struct opened *o)
{
	assert_int_equal(format_hdf5.reader_close(o->r, &e), 0);
	buffer_free(o->memory, o->bytes);
}

static void checksums(void **state)
{
	unsigned char all[256 * 9];

	(void)state;
	assert_int_equal(hdf5_checksum("", 0), 0xdeadbeef);
	assert_int_equal(hdf5_checksum("Four score and seven years ago", 30), 0x17770551);
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (unsigned char)i;
	assert_int_equal(hdf5_fletcher32("abcde", 5), 0x4ff029c7);
	assert_int_equal(hdf5_fletcher32(all, sizeof(all)), 0x7ca4c23d);
}

/* Against guess_chunk of h5py 3.7. */
static void chunks_that_h5py_chooses(void **state)
{
	static const struct {
		const char *elem;
		uint32_t rank;
		uint64_t dims[3], chunk[3];
	} known[] = {
		{"uint8", 3, {1, 32, 32}, {1, 32, 32}},
		{"uint8", 3, {4, 100, 100}, {2, 50, 100}},
		{"uint8", 3, {1, 12107, 12107}, {1, 190, 379}},
		{"float32", 3, {7, 316, 316}, {1, 79, 79}},
		{"uint8", 3, {300, 100, 100}, {38, 25, 25}},
		{"uint8", 3, {15, 291, 383}, {4, 73, 96}},
		{"float64", 2, {1, 5}, {1, 5}},
		{"int16", 2, {1000000, 3}, {15625, 1}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct file_spec f = spec(known[i].elem, known[i].dims[0], known[i].rank - 1,
					  known[i].dims[1], known[i].dims[2], 0);
		struct hdf5_shape s;

		f.compression = "gzip";
		if (hdf5_shape_of(&f, &s, &e) < 0)
			fail_msg("%s", e.text);
		assert_int_equal(s.rank, known[i].rank);
		for (uint32_t k = 0; k < s.rank; k++)
			assert_int_equal(s.chunk[k], known[i].chunk[k]);
	}
}

static void what_cannot_be(void **state)
{
	static const struct {
		const char *word;
		struct file_spec f;
	} bad[] = {
		{"bz2", {.compression = "bz2"}},
		{"is 64; at most 63", {.datasets = 64}},
		{"does not divide", {.datasets = 3}},
		{"has 2 dimensions; it needs 3", {.chunk_ndims = 2, .chunk = {1, 1}}},
		{"dimension 5", {.chunk_ndims = 3, .chunk = {5, 1, 1}}},
		{"dimension 0", {.chunk_ndims = 3, .chunk = {1, 0, 1}}},
		{"max_shape has 1 dim", {.max_ndims = 1, .max_dims = {100}}},
		{"at least the sample's, 16", {.max_ndims = 2, .max_dims = {15, 16}}},
		{"more than 134217728 chunks",
		 {.max_ndims = 2,
		  .max_dims = {1u << 30, 1u << 30},
		  .chunk_ndims = 3,
		  .chunk = {1, 1, 1}}},
		{"less than 4 GiB",
		 {.max_ndims = 2,
		  .max_dims = {1u << 20, 1u << 20},
		  .chunk_ndims = 3,
		  .chunk = {1, 1u << 17, 1u << 17}}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct file_spec f = bad[i].f;

		f.elem = elem_find("uint8");
		f.ndims = 2;
		f.dims[0] = f.dims[1] = 16;
		f.samples = 4;
		if (!f.compression)
			f.compression = "none";
		assert_int_equal(format_hdf5.check(&f, &e), ERR_USAGE);
		if (!strstr(e.text, bad[i].word))
			fail_msg("%zu: %s", i, e.text);
	}
}

/* Sizes that h5py's files have, and some that no test can write. */
static void sizes(void **state)
{
	struct file_spec f = spec("uint8", 4, 2, 100, 100, 0);

	(void)state;
	assert_int_equal(format_hdf5.file_bytes(&f), 42080);
	f.dims[0] = 700;
	f.datasets = 7;
	assert_int_equal(format_hdf5.file_bytes(&f), 284128);
	f = spec("uint8", 1, 2, 12107, 12107, 0);
	assert_int_equal(format_hdf5.file_bytes(&f), 146579449 + 2048 + 8);
	f = spec("float64", 300000, 2, 1u << 10, 1u << 10, 0);
	assert_int_equal(format_hdf5.file_bytes(&f), (UINT64_C(300000) << 23) + 2048 + 300000 * 8);
	f = spec("uint8", 1000000, 1, 3, 0, 0);
	f.chunk_ndims = 2;
	f.chunk[0] = 1;
	f.chunk[1] = 3;
	/* 977 pages of 1024 addresses */
	assert_true(format_hdf5.file_bytes(&f) > 1000000 * (3 + 8 + 8) &&
		    format_hdf5.file_bytes(&f) < 1000000 * (3 + 8 + 8) + 20000);
	f = spec("uint8", UINT64_MAX / 2, 1, 1, 0, 0);
	assert_int_equal(format_hdf5.check(&f, &e), ERR_USAGE);
}

/* ---- DLIO's files ---- */

/* Everything but raw data, the root group's times and with them its checksum. */
static void same_but_data(const char *path, const struct file_spec *f)
{
	struct hdf5_layout l;
	struct buf theirs = {0};
	unsigned char *ours;
	size_t n;
	uint64_t from, bytes;

	write_file("f", f);
	ours = get_bytes("f", &n);
	if (file_read(path, 1u << 20, &theirs, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(theirs.len, n);
	assert_int_equal(hdf5_layout_of(f, &l, &e), 0);
	from = l.place[0].data != HDF5_UNDEFINED ? l.place[0].data : l.place[0].run[0].at;
	bytes = l.datasets * (l.records.chunked ? l.records.chunks : 1) * l.records.stored_bytes;
	assert_int_equal(from, 2048);
	for (size_t i = 0; i < n; i++) {
		bool time = (i >= 54 && i < 70) || (i >= 191 && i < 195);
		bool data = i >= from && i < from + bytes;

		if (!time && !data && ours[i] != (unsigned char)theirs.data[i])
			fail_msg("%s: byte %zu is %02x, ours %02x", path, i,
				 (unsigned char)theirs.data[i], ours[i]);
	}
	buf_release(&theirs);
	free(ours);
}

static void dlios_files(void **state)
{
	struct {
		const char *folder;
		struct file_spec f;
	} kinds[] = {
		{"hdf5", spec("uint8", 1, 2, 32, 32, 0)},
		{"hdf5_4x4", spec("uint8", 4, 2, 32, 32, 0)},
		{"hdf5_2dset", spec("uint8", 1, 2, 16, 16, 0)},
		{"hdf5_i16_dims", spec("int16", 1, 2, 16, 16, 0)},
		{"hdf5_gzip", spec("uint8", 1, 2, 32, 32, 0)},
		{"hdf5_chunk", spec("uint8", 4, 2, 16, 16, 0)},
	};

	(void)state;
	kinds[2].f.datasets = 2;
	kinds[4].f.compression = "gzip";
	kinds[5].f.chunk_ndims = 3;
	kinds[5].f.chunk[0] = 1;
	kinds[5].f.chunk[1] = kinds[5].f.chunk[2] = 8;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		for (int file = 0; file < 4; file++) {
			char path[1024];

			kinds[i].f.file_index = (uint64_t)file;
			snprintf(path, sizeof(path), "%s/dlio-data/%s/train/img_%d_of_4.hdf5",
				 TEST_DATA, kinds[i].folder, file);
			same_but_data(path, &kinds[i].f);
			dlio_read_file(format_find("hdf5"), path, &kinds[i].f);
		}
	}
}

/* ---- reading ---- */

static uint64_t requests(enum io_kind kind)
{
	return stat_.kind[kind].requests;
}

static uint64_t data_bytes(void)
{
	return stat_.kind[IO_DATA].returned_bytes;
}

static void small_samples_fill_the_librarys_buffer(void **state)
{
	static const uint64_t want[] = {40000, 30000, 20000, 10000};
	struct file_spec f = spec("uint8", 4, 2, 100, 100, 0),
			 large = spec("uint8", 4, 2, 256, 257, 0);
	struct opened o;
	struct sample s;

	(void)state;
	write_file("f", &f);
	reader_open(&o, &f, ACCESS_FRAMEWORK, DECODE_VERIFY, false, 1);
	for (uint64_t i = 0; i < 4; i++) {
		memset(&stat_, 0, sizeof(stat_));
		if (format_hdf5.read(o.r, "f", &f, i, &s, &e) < 0)
			fail_msg("%s", e.text);
		assert_int_equal(data_bytes(), want[i]);
		assert_int_equal(requests(IO_DATA), 1);
		assert_int_equal(s.payload_bytes, 10000);
	}
	reader_end(&o);
	write_file("f", &large);
	reader_open(&o, &large, ACCESS_FRAMEWORK, DECODE_VERIFY, false, 1);
	memset(&stat_, 0, sizeof(stat_));
	assert_int_equal(format_hdf5.read(o.r, "f", &large, 1, &s, &e), 0);
	assert_int_equal(data_bytes(), 256 * 257);
	reader_end(&o);
}

static void kept_files_cost_their_data(void **state)
{
	struct file_spec f = spec("uint8", 4, 2, 100, 100, 0);
	struct opened o;
	struct sample s;

	(void)state;
	write_file("f", &f);
	reader_open(&o, &f, ACCESS_FRAMEWORK, DECODE_FULL, true, 100);
	for (uint64_t file = 0; file < 18; file++) {
		f.file_index = file % 17;
		memset(&stat_, 0, sizeof(stat_));
		assert_int_equal(format_hdf5.read(o.r, "f", &f, 0, &s, &e), 0);
		/* sixteen files stay open; the first of seventeen is opened anew */
		assert_int_equal(requests(IO_OPEN), file < 16 ? 1 : 2);
		assert_true(requests(IO_META) >= 5);
	}
	memset(&stat_, 0, sizeof(stat_));
	assert_int_equal(format_hdf5.read(o.r, "f", &f, 3, &s, &e), 0);
	assert_int_equal(requests(IO_OPEN) + requests(IO_META), 0);
	assert_int_equal(requests(IO_DATA), 1);
	assert_int_equal(data_bytes(), 10000);
	/* after an error the file is opened anew */
	f.dims[0] = 99;
	f.file_index = 77;
	assert_int_equal(format_hdf5.read(o.r, "f", &f, 3, &s, &e), ERR_DATA);
	f.dims[0] = 100;
	assert_int_equal(format_hdf5.read(o.r, "f", &f, 3, &s, &e), 0);
	reader_end(&o);
}

/* Every way to lay data out, every sample, every mode; then a flipped byte of each chunk. */
static void all_layouts(void **state)
{
	static const char *const packings[] = {"none", "gzip", "lzf"};
	static const uint64_t chunks[][3] = {{0}, {1, 8, 8}, {3, 5, 7}, {2, 30, 20}, {7, 1, 20}};

	(void)state;
	for (int i = 0; i < 3 * 5 * 2; i++) {
		struct file_spec f = spec("int16", 7, 2, 60, 20, 0);
		struct opened o;
		struct sample s;

		f.compression = packings[i % 3];
		f.chunk_ndims = i / 3 % 5 ? 3 : 0;
		memcpy(f.chunk, chunks[i / 3 % 5], sizeof(chunks[0]));
		f.datasets = i < 15 ? 1 : 2;
		if (i % 4 == 1) {
			f.max_ndims = 2;
			f.max_dims[0] = 61;
			f.max_dims[1] = 40;
		}
		write_file("f", &f);
		for (int mode = 0; mode < 6; mode++) {
			reader_open(&o, &f, (enum read_access)(mode % 2),
				    (enum read_decode)(mode / 2), false, 1);
			for (uint64_t k = 0; k < f.samples; k++)
				if (format_hdf5.read(o.r, "f", &f, k, &s, &e) < 0)
					fail_msg("%d, mode %d, sample %d: %s", i, mode, (int)k,
						 e.text);
			reader_end(&o);
		}
	}
}

static void damaged_chunks(void **state)
{
	struct file_spec f = spec("uint8", 2, 2, 50, 50, 0);
	struct hdf5_layout l;
	struct opened o;
	struct sample s;
	unsigned char *file;
	size_t n;

	(void)state;
	f.compression = "gzip";
	f.chunk_ndims = 3;
	f.chunk[0] = 1;
	f.chunk[1] = f.chunk[2] = 50;
	write_file("f", &f);
	file = get_bytes("f", &n);
	assert_int_equal(hdf5_layout_of(&f, &l, &e), 0);
	reader_open(&o, &f, ACCESS_FRAMEWORK, DECODE_FULL, false, 1);
	for (uint64_t k = 0; k < l.records.stored_bytes; k += k < 8 ? 1 : 97) {
		uint64_t at = hdf5_chunk_at(&l, &l.place[0], 1) + k;
		int rc;

		if (k == 2)
			continue; /* only pads a stored block's first byte */
		assert_int_equal(io_open(&io, "f", STORE_WRITE, blob, &e), 0);
		file[at] ^= 0x10;
		assert_int_equal(io_pwrite(&io, blob, file + at, 1, at, &e), 1);
		file[at] ^= 0x10;
		assert_int_equal(format_hdf5.read(o.r, "f", &f, 0, &s, &e), 0);
		rc = format_hdf5.read(o.r, "f", &f, 1, &s, &e);
		assert_int_equal(rc, ERR_DATA);
		assert_non_null(strstr(e.text, "'f': the chunk"));
		assert_int_equal(io_pwrite(&io, blob, file + at, 1, at, &e), 1);
		assert_int_equal(io_close(&io, blob, &e), 0);
	}
	reader_end(&o);
	free(file);
}

/* ---- dense links ---- */

/* A file of h5py with one thing made wrong, and what is then said. */
struct damage {
	const char *file,
		*mark;    /* of the structure; NULL: the record or the message of records_0 */
	size_t at, bytes; /* of the field, from there on */
	uint64_t value;
	size_t sum, sum_bytes; /* where the checksum is put right again, and of how much */
	const char *word;
};

static const struct damage damages[] = {
	{"dense", "BTHD", 5, 1, 6, 34, 34, "is not one of names"},
	{"dense", "BTHD", 4, 1, 1, 34, 34, "is not one of names"},
	{"dense", "BTHD", 6, 4, 20, 34, 34, "(version 2) at offset"},
	{"dense", "BTHD", 6, 4, UINT32_MAX, 34, 34, "has invalid sizes"},
	{"dense", "BTHD", 10, 2, 0, 34, 34, "has invalid sizes"},
	{"dense", "BTHD", 10, 2, 12, 34, 34, "has invalid sizes"},
	{"dense", "BTHD", 10, 2, 60000, 34, 34, "has invalid sizes"},
	{"dense", "BTHD", 12, 2, 1, 34, 34, "are not a node of a B-tree (version 2)"},
	{"dense", "BTHD", 12, 2, 30, 34, 34, "has invalid sizes"},
	{"dense", "BTHD", 12, 2, UINT16_MAX, 34, 34, "has invalid sizes"},
	{"dense", "BTHD", 16, 8, UINT64_MAX, 34, 34, "but the file ends at"},
	{"dense", "BTHD", 24, 2, 60000, 34, 34, "has invalid sizes"},
	{"dense", "BTHD", 24, 2, 0, 34, 34, "no dataset records_0"},
	{"dense", "BTHD", 14, 1, 99, 0, 0, "the checksum of the header of a B-tree"},
	{"dense", "BTLF", 5, 1, 6, 0, 0, "the checksum of a node"},
	{"dense", "BTLF", 5, 1, 6, 105, 105, "has invalid sizes"},
	{"dense_nodes", "BTIN", 26, 8, 48, 35, 35, "are not a node of a B-tree"},
	{"dense_nodes", "BTIN", 26, 8, 1 << 30, 35, 35, "but the file ends at"},
	{"dense_nodes", "BTIN", 34, 1, 200, 35, 35, "has invalid sizes"},
	{"dense", "FRHP", 7, 2, 5, 0, 0, "are filtered"},
	{"dense", "FRHP", 5, 2, 5, 142, 142, "has invalid sizes"},
	{"dense", "FRHP", 5, 2, 8, 142, 142, "has invalid sizes"},
	{"dense", "FRHP", 5, 2, 60000, 142, 142, "has invalid sizes"},
	{"dense", "FRHP", 110, 2, 3, 142, 142, "has invalid sizes"},
	{"dense", "FRHP", 110, 2, 0, 142, 142, "has invalid sizes"},
	{"dense", "FRHP", 112, 8, 0, 142, 142, "has invalid sizes"},
	{"dense", "FRHP", 112, 8, UINT64_C(1) << 63, 142, 142, "has invalid sizes"},
	{"dense", "FRHP", 120, 8, 64, 142, 142, "has invalid sizes"},
	{"dense", "FRHP", 120, 8, UINT64_C(1) << 40, 142, 142, "has invalid sizes"},
	{"dense", "FRHP", 128, 2, 64, 142, 142, "has invalid sizes"},
	{"dense", "FRHP", 128, 2, 8, 142, 142, "has invalid sizes"},
	{"dense", "FRHP", 140, 2, 1, 142, 142, "are not an indirect block"},
	{"dense", "FRHP", 140, 2, 200, 142, 142, "has invalid sizes"},
	{"dense", "FRHP", 20, 8, 1, 0, 0, "the checksum of the header of a fractal heap"},
	{"dense", "FHDB", 500, 1, 1, 0, 0, "the checksum of a direct block"},
	{"dense", "FHDB", 5, 8, 48, 17, 512, "are not a direct block"},
	{"dense", "FHDB", 13, 4, 512, 17, 512, "are not a direct block"},
	{"dense", "FHDB", 4, 1, 1, 17, 512, "are not a direct block"},
	{"dense_nodes", "FRHP", 140, 2, 0, 142, 142, "are not a direct block"},
	{"dense_nodes", "FHIB", 17, 8, UINT64_MAX, 49, 49, "but the file ends at"},
	{"dense_nodes", "FHIB", 5, 8, 48, 49, 49, "are not an indirect block"},
	{"dense_nodes", "FHIB", 13, 4, 1, 49, 49, "are not an indirect block"},
	{"dense_nodes", "FHIB", 20, 1, 1, 0, 0, "the checksum of an indirect block"},
	{"dense_nested", "FHIB", 57, 8, 2088, 65, 65, "the checksum of an indirect block"},
	{"dense_nested", "FRHP", 140, 2, 2, 142, 142, "which is smaller"},
	{"dense", NULL, 4, 1, 0x10, 0, 0, "is not in a block of the fractal heap"},
	{"dense", NULL, 5, 4, 512, 0, 0, "which is smaller"},
	{"dense", NULL, 5, 4, UINT32_MAX, 0, 0, "which is smaller"},
	{"dense", NULL, 5, 4, 20, 0, 0, "would be at 20 of the 512 bytes"},
	{"dense", NULL, 9, 2, 512, 0, 0, "a link of 512 bytes would be at"},
	{"dense", NULL, 9, 2, 3, 0, 0, "the link at offset"},
	{"dense", NULL, 9, 2, 12, 0, 0, "the name of the link at offset"},
};

static size_t find_bytes(const struct buf *b, const void *bytes, size_t n)
{
	for (size_t i = 0; i + n <= b->len; i++)
		if (memcmp(b->data + i, bytes, n) == 0)
			return i;
	fail_msg("the file does not have %.*s", (int)n, (const char *)bytes);
	return 0;
}

static void make_wrong(struct buf *b, const struct damage *d)
{
	unsigned char *p, hash[4];
	size_t leaf;

	if (d->mark) {
		p = (unsigned char *)b->data + find_bytes(b, d->mark, 4);
		le_put(p + d->at, d->value, d->bytes);
		/* a checksum in the middle counts as zero */
		if (d->sum_bytes > d->sum)
			le_put(p + d->sum, 0, 4);
		if (d->sum_bytes)
			le_put(p + d->sum, hdf5_checksum(p, d->sum_bytes), 4);
		return;
	}
	le_put(hash, hdf5_checksum("records_0", 9), 4);
	leaf = find_bytes(b, "BTLF", 4);
	p = (unsigned char *)b->data + find_bytes(b, hash, 4);
	le_put(p + d->at, d->value, d->bytes);
	p = (unsigned char *)b->data + leaf;
	le_put(p + 6 + 9 * 11, hdf5_checksum(p, 6 + 9 * 11), 4);
}

static int read_dense(const char *name, const struct damage *d, enum read_access access)
{
	struct file_spec f = spec("uint8", 2, 2, 4, 5, 0);
	char path[1024];
	struct buf b = {0};
	struct opened o;
	struct sample s;
	int rc;

	snprintf(path, sizeof(path), "%s/../fuzz/corpus/hdf5/%s", TEST_DATA, name);
	if (file_read(path, 1u << 20, &b, &e) < 0)
		fail_msg("%s", e.text);
	if (d)
		make_wrong(&b, d);
	assert_int_equal(io_open(&io, "f", STORE_WRITE | STORE_CREATE, blob, &e), 0);
	assert_int_equal(io_pwrite(&io, blob, b.data, b.len, 0, &e), b.len);
	assert_int_equal(io_close(&io, blob, &e), 0);
	buf_release(&b);
	reader_open(&o, &f, access, DECODE_FULL, false, 1);
	rc = format_hdf5.read(o.r, "f", &f, 1, &s, &e);
	/* sample 1 of h5py's, which counts bytes */
	for (size_t i = 0; rc == 0 && i < 20; i++)
		assert_int_equal(((const unsigned char *)s.data)[i], 20 + i);
	reader_end(&o);
	return rc;
}

static void dense_links(void **state)
{
	/* in the last another name has the checksum of records_0 */
	static const char *const files[] = {"dense", "dense_nodes", "dense_nested",
					    "dense_same_hash"};

	(void)state;
	for (int i = 0; i < 8; i++)
		if (read_dense(files[i / 2], NULL, (enum read_access)(i % 2)) < 0)
			fail_msg("%s: %s", files[i / 2], e.text);
	for (size_t i = 0; i < 2 * sizeof(damages) / sizeof(damages[0]); i++) {
		const struct damage *d = &damages[i / 2];
		int rc = read_dense(d->file, d, (enum read_access)(i % 2));

		if (rc != ERR_DATA || !strstr(e.text, d->word))
			fail_msg("%s, '%s', byte %zu := %llu: %d, %s instead of '%s'", d->file,
				 d->mark ? d->mark : "record", d->at, (unsigned long long)d->value,
				 rc, rc < 0 ? e.text : "read", d->word);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(checksums),
		T(chunks_that_h5py_chooses),
		T(what_cannot_be),
		T(sizes),
		T(dlios_files),
		T(small_samples_fill_the_librarys_buffer),
		T(kept_files_cost_their_data),
		T(all_layouts),
		T(damaged_chunks),
		T(dense_links),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
