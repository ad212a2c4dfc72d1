/* Reading the index files of indexed binary, through a bounded piece of memory.
 *
 * The library reads each companion into one array: open, fstat, one read, close. So does this,
 * except that a companion of more than INDEX_PIECE_MAX is read in pieces of that size, because
 * nobody needs the array: every entry is compared with what the spec says and forgotten. */
#include <inttypes.h>
#include <string.h>

#include "format/indexed/indexed.h"
#include "format/python/pybuffer.h"

#define INDEX_PIECE_MAX (8u << 20)

bool indexed_offset_fits(uint64_t offset, uint64_t index, uint64_t sample_bytes)
{
	uint64_t right = index * sample_bytes;

	return offset == right || (offset < right && offset % sample_bytes == 0);
}

int indexed_bad_entry(uint32_t which, uint64_t index, uint64_t has, uint64_t wanted, struct err *e)
{
	return err_set(e, ERR_DATA,
		       "entry %" PRIu64 " of the index says %s %" PRIu64 " and not %" PRIu64
		       ": it is damaged, or the file was generated with samples of another size",
		       index, which == INDEXED_OFFSETS ? "offset" : "size", has, wanted);
}

int indexed_cut_short(uint64_t index, uint64_t offset, uint64_t sample_bytes, uint64_t file_bytes,
		      struct err *e)
{
	return err_set(e, ERR_DATA,
		       "the file ends at %" PRIu64 " and sample %" PRIu64 " lies from %" PRIu64
		       " to %" PRIu64 ": it was cut short or is of another dataset",
		       file_bytes, index, offset, offset + sample_bytes);
}

uint64_t indexed_piece_bytes(const struct reader_config *c)
{
	/* never less than Python's buffer: what that holds is not asked for again */
	uint64_t most = reader_buffer_bytes(c) > INDEX_PIECE_MAX
				? (reader_buffer_bytes(c) + 4095) & ~(uint64_t)4095
				: INDEX_PIECE_MAX;
	uint64_t whole;

	if (__builtin_mul_overflow(c->samples_per_file, INDEXED_ENTRY, &whole) || whole > most)
		return most;
	return whole < 4096 ? 4096 : whole;
}

/* DLIO's offsets begin at 0 again with every chunk of generation, which is of the same number of
 * samples in all files of a dataset. */
static bool begins_chunk(struct indexed_index *x, uint64_t offset, uint64_t sample_bytes)
{
	if (x->chunk || offset != 0 || x->next == 0 || sample_bytes == 0)
		return false;
	x->chunk = x->next;
	x->place = 0;
	return true;
}

static int check_offset(struct indexed_index *x, uint64_t offset, uint64_t sample_bytes,
			struct err *e)
{
	uint64_t want;

	if (x->chunk && x->place == x->chunk)
		x->place = 0;
	want = x->place * sample_bytes;
	if (offset != want && !begins_chunk(x, offset, sample_bytes))
		return indexed_bad_entry(INDEXED_OFFSETS, x->next, offset, want, e);
	x->place++;
	return 0;
}

static int check_piece(struct indexed_index *x, uint32_t which, uint64_t sample_bytes, size_t n,
		       struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i += INDEXED_ENTRY, x->next++) {
		uint64_t entry;

		memcpy(&entry, x->piece + i, sizeof(entry));
		if (which == INDEXED_OFFSETS)
			rc = check_offset(x, entry, sample_bytes, e);
		else if (entry != sample_bytes)
			rc = indexed_bad_entry(which, x->next, entry, sample_bytes, e);
	}
	return rc;
}

/* readinto of all entries: one read of them, or of the buffer where that is larger. */
static int read_entries(struct indexed_index *x, uint32_t which, const struct file_spec *f,
			struct err *e)
{
	uint64_t bytes = indexed_sidecar_bytes(f, which), done = 0;
	uint64_t sample = file_spec_sample_bytes(f);
	struct store_stat st;
	struct pybuffer py;
	size_t buffer = 0;
	int rc = io_stat_blob(x->io, x->blob, &st, e);

	if (rc == 0)
		rc = reader_buffer_of(x->config, st.block_bytes, x->buffer_bytes, &buffer, e);
	if (rc < 0)
		return rc;
	pybuffer_start(&py, x->io, x->blob, x->config->python, st.bytes, x->buffer, buffer);
	x->next = x->place = 0;
	while (done < bytes) {
		size_t n = bytes - done < x->piece_bytes ? (size_t)(bytes - done) : x->piece_bytes;
		ssize_t got;

		/* later pieces must not be filled up to the buffer's size */
		if (done == 0)
			got = pybuffer_readinto(&py, x->piece, n, e);
		else
			got = io_pread(x->io, IO_META, x->blob, x->piece, n, done, e);
		if (got < 0)
			return (int)got;
		if ((size_t)got < n)
			return err_set(e, ERR_DATA,
				       "the index ends at %" PRIu64 " and %" PRIu64
				       " samples need %" PRIu64
				       " bytes of it: it was cut short or is of another dataset",
				       done + (uint64_t)got, f->samples, bytes);
		rc = check_piece(x, which, sample, n, e);
		if (rc < 0)
			return rc;
		done += n;
	}
	return 0;
}

int indexed_index_read(struct indexed_index *x, const char *path, const struct file_spec *f,
		       struct err *e)
{
	char companion[INDEXED_PATH_MAX];
	int rc = 0;

	for (uint32_t which = 0; rc == 0 && which < INDEXED_COMPANIONS; which++) {
		rc = indexed_path(path, which, companion, e);
		if (rc == 0)
			rc = io_open(x->io, companion, STORE_READ, x->blob, e);
		if (rc < 0)
			return rc;
		rc = reader_blob_close(x->io, x->blob, companion, read_entries(x, which, f, e), e);
	}
	return rc;
}
