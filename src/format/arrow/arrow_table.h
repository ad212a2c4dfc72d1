#pragma once
/* A file of format arrow_stream as pyarrow has it in memory: mapped, its batches listed. Files of
 * others are taken as they are, as long as the sizes of arrow_message.h hold. */
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "format/arrow/arrow_message.h"
#include "store/mapped.h"

struct arrow_entry {
	uint64_t first;    /* row */
	uint64_t at;       /* of the metadata, behind its prefix */
	uint64_t metadata; /* bytes */
};

struct arrow_table {
	struct store_map map;
	struct arrow_schema schema;
	uint64_t rows;
	uint32_t batches;
	struct arrow_entry *entry; /* room for `most` */
	uint32_t most;
};

/* Memory that functions of tables need while they work. */
struct arrow_scratch {
	unsigned char metadata[ARROW_METADATA_MAX];
	struct arrow_batch batch;
};

/* Reads the messages of the file that `t->map` is, as read_all() of an open stream does: it looks
 * at the metadata alone, but asks the system to read every body ahead (Arrow 26, io/file.cc:
 * MemoryMappedFile::Read). ERR_DATA with a sentence when it is damaged, or has more than `most`
 * batches.
 */
int arrow_table_list(struct arrow_table *t, const struct io *io, struct arrow_scratch *scratch,
		     struct err *e);

/* The range of the file that one array has of a row. */
struct arrow_part {
	uint64_t offset, bytes;
};

/* Row `row` (below t->rows): looks at offsets and at whether values are there, as taking a row of
 * the table does, and gives the parts of each array, at most ARROW_NODES_MAX of them. */
int arrow_table_row(const struct arrow_table *t, const struct io *io, uint64_t row,
		    struct arrow_scratch *scratch, struct arrow_part part[ARROW_NODES_MAX],
		    uint32_t *parts, struct err *e);
