#pragma once
/* What readers of mapped files share. */
#include "format/reader.h"
#include "store/mapped.h"

/* Touched pages until the mappings of a file are renewed (store_map_renew). Each may have needed a
 * page table, and may have mapped a huge page of cache, which counts as this process's memory
 * though nobody needs it. No request differs. */
#define READER_RENEW_PAGES 128u

/* Opens the reader's blob at `path`, maps all of it and closes it. The sentence of a failure names
 * the path. */
int reader_map(struct reader_base *b, const char *path, struct store_map *out, struct err *e);
/* Compares n mapped bytes at `offset` with the payload of the file from its byte `from` on; `copy`
 * is EXPECT_BYTES long. Nothing is counted. */
int reader_compare_map(struct reader_base *b, const struct store_map *map, uint64_t file_index,
		       uint64_t offset, uint64_t from, uint64_t n, unsigned char *copy,
		       struct err *e);
