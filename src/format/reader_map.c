#include "format/reader_map.h"

int reader_map(struct reader_base *b, const char *path, struct store_map *out, struct err *e)
{
	struct store_stat st;
	int rc = io_open(b->io, path, STORE_READ, b->blob, e);

	if (rc < 0)
		return rc;
	rc = io_stat_blob(b->io, b->blob, &st, e);
	if (rc == 0)
		rc = io_map(b->io, b->blob, st.bytes, out, e);
	return reader_blob_close(b->io, b->blob, path, rc, e);
}

int reader_compare_map(struct reader_base *b, const struct store_map *map, uint64_t file_index,
		       uint64_t offset, uint64_t from, uint64_t n, unsigned char *copy,
		       struct err *e)
{
	int rc = 0;

	for (uint64_t done = 0; rc == 0 && done < n;) {
		size_t part = n - done < EXPECT_BYTES ? (size_t)(n - done) : EXPECT_BYTES;

		rc = store_map_copy(map, offset + done, copy, part, e);
		if (rc == 0)
			rc = expectation_check(&b->expect, file_index, from + done, offset - from,
					       copy, part, e);
		done += part;
	}
	return rc;
}
