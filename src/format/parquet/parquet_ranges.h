#pragma once
/* How libraries ask for row groups: a row for each of them, and the ranges of a file that follow.
 *
 * (Reference: DLIO of MLPerf Storage v3, dlio_benchmark/reader/parquet_reader_*.py; s3dlio,
 * src/data_loader/parquet_file_cache.rs; Apache Arrow, cpp/src/parquet/file_reader.cc and
 * cpp/src/arrow/io/{caching,interfaces}.cc.) */
#include <stdbool.h>
#include <stdint.h>

#include "format/format.h"
#include "format/parquet/parquet_layout.h"

/* What one request of the columns that are wanted is. */
enum parquet_reads {
	PARQUET_READ_EXTENT,   /* all from the first column to the last */
	PARQUET_READ_CHUNKS,   /* one column of a row group */
	PARQUET_READ_COALESCED /* columns between which little lies */
};

struct parquet_pattern {
	const char *name; /* as in reader.parquet_requests */
	enum parquet_reads reads;
	uint64_t hole, most; /* coalesced: the largest gap within a request; its largest size */
	bool python_file;    /* files are read by Python's file objects; objects are not */
	bool capped_tail;    /* one request of up to footer_cap bytes brings the metadata */
	bool keeps_metadata; /* as long as a worker lives */
	bool keeps_open;     /* the file that is read remains open */
	/* Of a worker that reads row groups ahead (loader row_groups): requests at once, units that
	 * were asked for and not delivered, row groups of a unit. `early`: another is asked for
	 * before the next one is waited for. */
	uint32_t workers, window, coalesce;
	bool early;
};

extern const struct parquet_pattern parquet_native;
/* By number; NULL behind the last. */
const struct parquet_pattern *parquet_pattern_at(unsigned i);

/* A chunk of a column that is wanted. */
struct parquet_place {
	struct parquet_group group;
	uint32_t column;
	uint64_t at, bytes;
};

/* The chunks that are wanted of consecutive row groups, in the file's order. */
struct parquet_places {
	const struct parquet_layout *l;
	uint64_t end; /* row group */
	struct parquet_group group;
	uint32_t column; /* the next one */
	uint64_t at;
};
void parquet_places_of(struct parquet_places *p, const struct parquet_layout *l, uint64_t first,
		       uint64_t end);
bool parquet_next_place(struct parquet_places *p, struct parquet_place *out);

/* The requests for them. */
struct parquet_ranges {
	const struct parquet_pattern *pattern;
	struct parquet_places places;
	struct parquet_place next;
	bool has_next;
	struct extent all; /* bytes: EXTENT_TO_END, or all that is asked for at once */
};
/* Row groups [first, end) of a file. */
void parquet_ranges_of(struct parquet_ranges *r, const struct parquet_pattern *pattern,
		       const struct parquet_layout *l, uint64_t first, uint64_t end);
bool parquet_next_range(struct parquet_ranges *r, struct extent *out);
