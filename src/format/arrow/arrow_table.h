#pragma once
/* A file of format arrow_stream as pyarrow has it in memory: mapped, its batches listed. Files of
 * others are taken as they are, streams and files with a footer, as long as the sizes of
 * arrow_message.h hold. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "format/arrow/arrow_message.h"
#include "store/mapped.h"

/* A batch of rows, or of a dictionary. */
struct arrow_entry {
	uint64_t first; /* row; rows that came before those of a dictionary */
	uint64_t at;    /* of the metadata, behind its prefix */
	uint32_t rows;
	uint32_t metadata;   /* bytes */
	uint32_t earlier;    /* 1 and up: the last entry before it that is a dictionary's */
	uint16_t dictionary; /* 1 and up: which it has values of; 0: it has rows */
	bool delta;          /* its values follow those that are there */
};

struct arrow_table {
	struct store_map map;
	struct arrow_schema schema;
	uint64_t rows;
	uint32_t batches;
	uint32_t entries;
	bool compressed;
	struct arrow_entry *entry; /* room for `most` */
	uint32_t most;
};

/* A batch; of one that is compressed, its buffers as they were before. */
struct arrow_loaded {
	struct arrow_batch batch;
	unsigned char *room; /* NULL: none was needed */
	size_t room_bytes;
	uint64_t used; /* of the room */
	uint32_t held; /* 1 and up: the entry of the table that was listed last */
};

/* Of a batch, decompressed; one that has more is refused. */
#define ARROW_ROOM_MAX (1ull << 30)

/* Memory that functions of tables need while they work. Compressed batches need more, which is
 * mapped when the first of them is looked into and released by arrow_scratch_release. */
struct arrow_scratch {
	unsigned char metadata[ARROW_METADATA_MAX];
	bool decompress; /* every batch that is listed */
	bool list_only;  /* bodies are neither asked for nor touched */
	struct arrow_loaded rows, values;
	unsigned char *packed;
	size_t packed_bytes;
};
/* Of zeros. */
void arrow_scratch_begin(struct arrow_scratch *s);
void arrow_scratch_release(struct arrow_scratch *s);

/* Reads the messages of the file that `t->map` is, as read_all() of an open stream or file does: it
 * looks at the metadata alone, but asks the system to read every body ahead (Arrow 26, io/file.cc:
 * MemoryMappedFile::Read), and decompresses those that are compressed: they are touched. ERR_DATA
 * with a sentence when it is damaged, or has more than `most` batches.
 */
int arrow_table_list(struct arrow_table *t, const struct io *io, struct arrow_scratch *scratch,
		     struct err *e);

/* What one array has of a row: a range of the file, or bytes in memory of the scratch. */
struct arrow_part {
	const unsigned char *at; /* NULL: of the file */
	uint64_t offset, bytes;
};
/* Of a row: each array's, and for each that stands for values of a dictionary, the value. */
#define ARROW_PARTS_MAX (2 * ARROW_NODES_MAX)

/* Row `row` (below t->rows): looks at offsets and at whether values are there, as taking a row of
 * the table does, and gives the parts of each array. Of lists of values of a dictionary the values
 * are not looked at. */
int arrow_table_row(const struct arrow_table *t, const struct io *io, uint64_t row,
		    struct arrow_scratch *scratch, struct arrow_part part[ARROW_PARTS_MAX],
		    uint32_t *parts, struct err *e);
