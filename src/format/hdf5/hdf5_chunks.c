/* Reading a sample out of the chunks of a dataset. */
#include <string.h>

#include "format/hdf5/hdf5_reader.h"

/* Chunks taken together at most. */
#define BATCH 64u

struct found {
	uint64_t number;
	struct hdf5_chunk chunk;
};

/* Where in the chunk the rows of a sample are. */
struct rows_wanted {
	struct hdf5_rows rows;
	uint64_t first, n, skip, bytes; /* rows; bytes of a row left out, taken at most */
};

static void rows_wanted(struct rows_wanted *w, const struct hdf5_shape *s, uint64_t number,
			uint64_t index)
{
	uint64_t step = index - index / s->chunk[0] * s->chunk[0];

	hdf5_rows_of(&w->rows, s, number);
	w->n = 1;
	w->skip = w->rows.axis == 0 ? step * w->rows.tail : 0;
	w->bytes = w->rows.axis == 0 ? w->rows.tail : w->rows.row_bytes;
	for (uint32_t i = 1; i < w->rows.axis; i++)
		w->n *= s->chunk[i];
	w->first = w->rows.axis == 0 ? 0 : step * w->n;
}

/* Takes the sample's rows out of a chunk in memory, or straight from the file when `chunk` is NULL,
 * or as zeros when there is no chunk. */
static int take_rows(struct reader *r, struct hdf5_file *f, const struct hdf5_dataset *d,
		     const struct found *x, const struct hdf5_unpacked *chunk, uint64_t index,
		     struct err *e)
{
	uint64_t base = index * hdf5_part_bytes(&d->shape), from;
	struct rows_wanted w;
	int rc = 0;

	rows_wanted(&w, &d->shape, x->number, index);
	for (uint64_t k = w.first; rc == 0 && k < w.first + w.n; k++) {
		uint64_t inside = hdf5_row_inside(&w.rows, k, &from);
		uint64_t at = k * w.rows.row_bytes + w.skip;
		unsigned char *to;

		if (inside == 0)
			continue;
		if (inside > w.bytes)
			inside = w.bytes;
		to = r->data + (from + w.skip - base);
		if (x->chunk.at == HDF5_UNDEFINED)
			memset(to, 0, inside);
		else if (!chunk)
			rc = hdf5_read_data(r, f, to, inside, x->chunk.at + at, e);
		else if (chunk->shuffled)
			hdf5_unshuffle(d, chunk->bytes, at, to, inside);
		else
			memcpy(to, chunk->bytes + at, inside);
	}
	return rc;
}

/* The same straight from the file, where the sample's rows follow each other in the chunk: as many
 * of them in one request as fit. */
static int take_runs(struct reader *r, struct hdf5_file *f, const struct hdf5_dataset *d,
		     const struct found *x, uint64_t index, const void **last, struct err *e)
{
	uint64_t base = index * hdf5_part_bytes(&d->shape), from, inside, fit;
	struct rows_wanted w;
	int rc = 0;

	rows_wanted(&w, &d->shape, x->number, index);
	fit = r->packed_bytes / w.rows.row_bytes;
	if (w.bytes < w.rows.row_bytes || fit == 0)
		return take_rows(r, f, d, x, NULL, index, e);
	for (uint64_t k = 0; rc == 0 && k < w.n; k += fit) {
		if (fit > w.n - k)
			fit = w.n - k;
		rc = hdf5_read_data(r, f, r->packed, fit * w.rows.row_bytes,
				    x->chunk.at + (w.first + k) * w.rows.row_bytes, e);
		*last = r->packed;
		for (uint64_t i = 0; rc == 0 && r->expect.content && i < fit; i++) {
			inside = hdf5_row_inside(&w.rows, w.first + k + i, &from);
			if (inside > 0)
				memcpy(r->data + (from - base), r->packed + i * w.rows.row_bytes,
				       inside);
		}
	}
	return rc;
}

static bool read_by_rows(const struct reader *r, const struct hdf5_dataset *d)
{
	if (d->filters)
		return false;
	return d->shape.chunk_bytes >
	       (r->config.access == ACCESS_FRAMEWORK ? HDF5_CHUNK_CACHE : r->packed_bytes);
}

/* Chunks found that lie one behind the other: one request, then each is unpacked. */
static int read_batch(struct reader *r, struct hdf5_file *f, const struct hdf5_dataset *d,
		      const struct found *found, uint32_t n, uint64_t index, const void **last,
		      struct err *e)
{
	uint64_t bytes = 0, at = found[0].chunk.at;
	const unsigned char *packed = r->packed;
	int rc = 0;

	for (uint32_t i = 0; i < n; i++)
		bytes += found[i].chunk.bytes;
	if (at == HDF5_UNDEFINED || (f->framework && read_by_rows(r, d)))
		return take_rows(r, f, d, &found[0], NULL, index, e);
	if (read_by_rows(r, d))
		return take_runs(r, f, d, &found[0], index, last, e);
	if (bytes > r->packed_bytes)
		return hdf5_no_room(d, bytes, r->packed_bytes, e);
	if (f->window != r->data && at < f->window_bytes && bytes <= f->window_bytes - at)
		packed = f->window + at;
	else
		rc = hdf5_read_data(r, f, r->packed, bytes, at, e);
	if (r->config.decode == DECODE_NONE)
		return rc;
	bytes = 0;
	for (uint32_t i = 0; rc == 0 && i < n; i++) {
		struct hdf5_unpacked chunk = {.bytes = packed + bytes};

		if (d->filters)
			rc = hdf5_unpack(d, &found[i].chunk, packed + bytes, r->chunk,
					 r->chunk_bytes, r->inflater, &chunk, e);
		/* nobody wants the sample in one piece unless it is to be compared */
		if (rc == 0 && (r->expect.content || chunk.shuffled))
			rc = take_rows(r, f, d, &found[i], &chunk, index, e);
		else if (rc == 0)
			*last = chunk.bytes;
		bytes += found[i].chunk.bytes;
	}
	return rc;
}

/* Whether a chunk can join the batch before it in one request. */
static bool joins(const struct reader *r, const struct hdf5_dataset *d, const struct found *found,
		  uint32_t n, uint64_t batch_bytes, const struct hdf5_chunk *next)
{
	const struct hdf5_chunk *last = &found[n - 1].chunk;

	return n < BATCH && next->at != HDF5_UNDEFINED && last->at != HDF5_UNDEFINED &&
	       last->at + last->bytes == next->at && !read_by_rows(r, d) &&
	       batch_bytes + next->bytes <= r->packed_bytes;
}

static int read_chunks(struct reader *r, struct hdf5_file *f, const struct hdf5_dataset *d,
		       uint64_t index, const void **last, struct err *e)
{
	const struct hdf5_shape *s = &d->shape;
	struct found found[BATCH];
	uint64_t each = 1, bytes = 0;
	uint32_t n = 0;
	int rc = 0;

	for (uint32_t i = 1; i < s->rank; i++)
		each *= (s->dims[i] + s->chunk[i] - 1) / s->chunk[i];
	for (uint64_t k = 0; rc == 0 && k < each; k++) {
		struct found next = {.number = index / s->chunk[0] * each + k};
		struct hdf5_rows rows;

		hdf5_rows_of(&rows, s, next.number);
		rc = hdf5_chunk_find(f, d, rows.origin, &next.chunk, e);
		if (rc == 0 && n > 0 &&
		    (f->framework || !joins(r, d, found, n, bytes, &next.chunk))) {
			rc = read_batch(r, f, d, found, n, index, last, e);
			n = 0;
			bytes = 0;
		}
		bytes += next.chunk.bytes;
		found[n++] = next;
		if (rc == 0 && f->framework) {
			rc = read_batch(r, f, d, found, n, index, last, e);
			n = 0;
			bytes = 0;
		}
	}
	return rc < 0 || n == 0 ? rc : read_batch(r, f, d, found, n, index, last, e);
}

int hdf5_read_chunked(struct reader *r, struct hdf5_file *f, const struct hdf5_dataset *d,
		      uint64_t stream, uint64_t index, const void **last, struct err *e)
{
	uint64_t part = hdf5_part_bytes(&d->shape);
	int rc;

	if (part == 0)
		return 0;
	if (part > r->data_bytes)
		return hdf5_no_room(d, part, r->data_bytes, e);
	*last = r->data;
	rc = read_chunks(r, f, d, index, last, e);
	if (rc < 0)
		return rc;
	return expectation_check(&r->expect, r->spec->file_index, stream + index * part, UINT64_MAX,
				 r->data, (size_t)part, e);
}
