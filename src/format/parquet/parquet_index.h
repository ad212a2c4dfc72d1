#pragma once
/* Where row groups and column chunks of a file that others wrote lie, by its own metadata. One
 * block of memory, made before a run and shared by all readers. */
#include <stddef.h>
#include <stdint.h>

#include "format/format.h"

/* Of one file, at most: metadata that are read, and the index that is kept. */
#define PARQUET_FOREIGN_METADATA_MAX (256u << 20)
#define PARQUET_FOREIGN_INDEX_MAX (256u << 20)
/* Of a page, raw or stored, and of a dictionary: larger ones are not decoded. */
#define PARQUET_FOREIGN_PAGE_MAX (64u << 20)
#define PARQUET_FOREIGN_DICTIONARY_MAX (16u << 20)

struct parquet_stored_leaf {
	int type, type_length;
	unsigned definition_max, repetition_max;
	bool skipped; /* storage.storage_options.columns leaves it out */
};

struct parquet_stored_group {
	uint64_t first;   /* row */
	uint64_t at, end; /* from its first chunk to the end of its last one */
};

struct parquet_stored_place {
	uint64_t at, bytes;
	uint64_t values;
	int codec;
};

struct parquet_index {
	uint64_t rows, groups;
	uint32_t columns, metadata_bytes;
	struct parquet_stored_leaf *leaf;
	struct parquet_stored_group *group; /* one more, whose `first` is the number of rows */
	struct parquet_stored_place *place; /* of each column of each group */
};

/* What file_spec.room has, of all files. */
enum {
	PARQUET_ROOM_GROUP,    /* bytes of a row group */
	PARQUET_ROOM_METADATA, /* with the 8 bytes behind them */
	PARQUET_ROOM_RAW,      /* of a column chunk, decompressed */
	PARQUET_ROOM_STORED    /* of a column chunk */
};

static inline const struct parquet_stored_place *parquet_place_in(const struct parquet_index *x,
								  uint64_t group, uint32_t column)
{
	return &x->place[group * x->columns + column];
}

/* struct format_ops' look. */
int parquet_look(const struct io *io, const char *path, uint64_t bytes,
		 const struct file_spec *form, struct file_look *out, struct err *e);
/* The same of metadata in memory, of a file of so many bytes. Negative: nothing is kept. */
int parquet_index_of(const void *metadata, size_t n, uint64_t file_bytes,
		     const struct file_spec *form, struct file_look *out, struct err *e);
