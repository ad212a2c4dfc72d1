/* mmap_indexed_binary: the files of indexed_binary, read through memory maps.
 *
 * FRAMEWORK is np.memmap of the two companions and of the data, whole, before the file's first
 * sample: open, stat, mmap, close each. They stay mapped. A sample is then two entries of the
 * companions and every page that it lies on; the system reads what is not cached, in the sizes of
 * its read-ahead. DLIO itself only makes a slice of the map and so reads no data at all
 * (compat.dlio); a real training reads its samples.
 *
 * Page tables cost 8 bytes for each page touched in each worker, which a long epoch over a large
 * file would let grow without bound; so mappings are renewed once in a while. No request differs.
 *
 * NATIVE reads as indexed_binary's does. */
#include <inttypes.h>
#include <string.h>

#include "format/indexed/indexed.h"
#include "format/reader_map.h"

/* Files kept mapped by a reader; further ones are mapped anew, the longest unused giving way. DLIO
 * maps all files of its rank when a worker begins, and keeps them; a process has 65,530 maps. */
#define KEPT_MAPPED 64u
#define KEPT_MAPPED_DLIO 512u
#define DATA INDEXED_COMPANIONS
#define MAPS (INDEXED_COMPANIONS + 1)

struct mapped_file {
	struct store_map map[MAPS];
	uint64_t index;  /* number of the file */
	uint64_t serial; /* of its last use; 0: not mapped */
	uint64_t touched;
};

struct reader {
	struct reader_base base;
	struct reader *plain; /* another kind of reader: indexed.c's; NULL: files are mapped */
	void *plain_memory;
	unsigned char *copy; /* EXPECT_BYTES, to compare */
	struct mapped_file *file;
	uint32_t files;
	uint64_t serial;
};

static void mmap_lay_out(struct carver *c, const struct reader_config *config,
			 const struct store *s, struct reader *r)
{
	if (config->access == ACCESS_NATIVE) {
		size_t plain = format_indexed_binary.reader_bytes(config, s);

		c->overflow |= plain == 0;
		r->plain_memory = carve(c, plain);
		return;
	}
	r->files = config->dlio ? KEPT_MAPPED_DLIO : KEPT_MAPPED;
	if (r->files > config->files)
		r->files = (uint32_t)config->files;
	if (r->files == 0)
		r->files = 1;
	r->file = carve(c, r->files * sizeof(*r->file));
	r->base.blob = carve(c, store_blob_bytes(s));
	if (config->decode == DECODE_VERIFY) {
		r->base.expect.expect = carve(c, EXPECT_BYTES);
		r->copy = carve(c, EXPECT_BYTES);
	}
}

static int mmap_start(struct reader *r, struct err *e)
{
	const struct reader_config *config = &r->base.config;
	const struct io *io = r->base.io;

	if (config->access == ACCESS_NATIVE)
		return format_indexed_binary.reader_init(r->plain_memory, config, io, &r->plain, e);
	memset(r->file, 0, r->files * sizeof(*r->file));
	return store_map_check(io->store, e);
}

FORMAT_READER(mmap, mmap_lay_out, mmap_start)

static void unmap_file(struct mapped_file *m)
{
	for (int i = 0; i < MAPS; i++)
		store_unmap(&m->map[i]);
	m->serial = 0;
}

static int map_file(struct reader *r, const char *path, struct mapped_file *m, struct err *e)
{
	char companion[INDEXED_PATH_MAX];
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < INDEXED_COMPANIONS; i++) {
		rc = indexed_path(path, i, companion, e);
		if (rc == 0)
			rc = reader_map(&r->base, companion, &m->map[i], e);
	}
	if (rc == 0)
		rc = reader_map(&r->base, path, &m->map[DATA], e);
	if (rc < 0)
		unmap_file(m);
	else if (r->base.config.dlio) /* which never looks at the data */
		store_unmap(&m->map[DATA]);
	return rc;
}

static int mapped_file_of(struct reader *r, const char *path, uint64_t file_index,
			  struct mapped_file **out, struct err *e)
{
	struct mapped_file *m = &r->file[0];
	int rc = 0;

	for (uint32_t i = 0; i < r->files; i++) {
		struct mapped_file *one = &r->file[i];

		if (one->serial && one->index == file_index) {
			m = one;
			break;
		}
		if (one->serial < m->serial)
			m = one;
	}
	if (!m->serial || m->index != file_index) {
		unmap_file(m);
		rc = map_file(r, path, m, e);
		m->index = file_index;
		m->touched = 0;
	}
	if (rc == 0)
		m->serial = ++r->serial;
	*out = m;
	return rc;
}

/* Entry `index` of a companion. */
static int index_entry(struct reader *r, struct mapped_file *m, uint32_t which, uint64_t index,
		       uint64_t *out, struct err *e)
{
	const struct store_map *map = &m->map[which];

	m->touched++;
	if (map->bytes / INDEXED_ENTRY <= index)
		return err_set(e, ERR_DATA,
			       "the index ends at %" PRIu64 " and entry %" PRIu64
			       " is needed: it is truncated or belongs to another dataset",
			       map->bytes, index);
	return io_map_copy(r->base.io, IO_META, map, index * INDEXED_ENTRY, out, INDEXED_ENTRY, e);
}

static int check_index(struct reader *r, const char *path, struct mapped_file *m, uint64_t index,
		       uint64_t sample_bytes, struct err *e)
{
	char companion[INDEXED_PATH_MAX];
	uint32_t which = INDEXED_OFFSETS;
	uint64_t offset = 0, size = 0;
	int rc = index_entry(r, m, which, index, &offset, e);

	if (rc == 0 && !indexed_offset_fits(offset, index, sample_bytes))
		rc = indexed_bad_entry(which, index, offset, index * sample_bytes, e);
	if (rc == 0) {
		which = INDEXED_SIZES;
		rc = index_entry(r, m, which, index, &size, e);
	}
	if (rc == 0 && size != sample_bytes)
		rc = indexed_bad_entry(which, index, size, sample_bytes, e);
	if (rc == 0 || indexed_path(path, which, companion, NULL) < 0)
		return rc;
	return err_in_path(rc, companion, e);
}

static int touch_sample(struct reader *r, struct mapped_file *m, const struct file_spec *f,
			uint64_t index, struct sample *out, struct err *e)
{
	const struct store_map *map = &m->map[DATA];
	uint64_t n = file_spec_sample_bytes(f), offset = index * n;
	int rc;

	if (r->base.config.dlio)
		return 0;
	if (offset > map->bytes || n > map->bytes - offset)
		return indexed_cut_short(index, offset, n, map->bytes, e);
	if (n == 0)
		return 0;
	m->touched += store_map_pages(offset, n);
	rc = io_map_touch(r->base.io, IO_DATA, map, offset, n, e);
	if (rc == 0 && r->base.expect.content)
		rc = reader_compare_map(&r->base, map, f->file_index, offset, offset, n, r->copy,
					e);
	out->data = map->at + offset;
	return rc;
}

static void renew_mappings(struct mapped_file *m)
{
	if (m->touched < READER_RENEW_PAGES)
		return;
	for (int k = 0; k < MAPS; k++)
		store_map_renew(&m->map[k]);
	m->touched = 0;
}

static int mmap_load_index(struct reader *r, const char *path, const struct file_spec *f,
			   struct err *e)
{
	struct mapped_file *m;

	return mapped_file_of(r, path, f->file_index, &m, e);
}

static int mmap_read(struct reader *r, const char *path, const struct file_spec *f, uint64_t index,
		     struct sample *out, struct err *e)
{
	struct mapped_file *m = NULL;
	int rc;

	if (r->plain)
		return format_indexed_binary.read(r->plain, path, f, index, out, e);
	rc = reader_sample_begin(f, index, path, out, e);
	if (rc == 0)
		rc = mapped_file_of(r, path, f->file_index, &m, e);
	if (rc == 0) {
		renew_mappings(m);
		rc = check_index(r, path, m, index, file_spec_sample_bytes(f), e);
	}
	if (rc < 0)
		return rc;
	rc = touch_sample(r, m, f, index, out, e);
	if (rc < 0)
		return err_in_path(rc, path, e);
	/* DLIO's reader forms a view and touches no data */
	if (!r->base.config.dlio)
		reader_sample_done(f, out);
	return 0;
}

static int mmap_reader_close(struct reader *r, struct err *e)
{
	if (r->plain)
		return format_indexed_binary.reader_close(r->plain, e);
	for (uint32_t i = 0; i < r->files; i++)
		unmap_file(&r->file[i]);
	return 0;
}

const struct format_ops format_mmap_indexed_binary = {
	.is.name = "mmap_indexed_binary",
	.is.help =
		"The files of indexed_binary, read through memory maps (needs a store with files).",
	.is.extension = "mmap_indexed_binary",
	.is.flags = FORMAT_MAPS | FORMAT_INDEX_UNTOLD,
	.is.dlio_reader = "IndexedBinaryMMapReader",
	INDEXED_FILE_OPS,
	.reader_bytes = mmap_reader_bytes,
	.reader_init = mmap_reader_init,
	.read = mmap_read,
	.load_index = mmap_load_index,
	.reader_close = mmap_reader_close,
};
