/* Any bytes as a file of Arrow: its messages listed, and rows of it found. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "format/arrow/arrow_table.h"

#define BATCHES 50

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void told(int rc, const struct err *e)
{
	if (rc < 0 && ((rc != ERR_DATA && rc != ERR_ABSENT && rc != -ENOMEM) || !e->text[0] ||
		       strchr(e->text, '\n')))
		abort();
}

static void row(const struct arrow_table *t, const struct io *io, uint64_t index,
		struct arrow_scratch *scratch)
{
	struct arrow_part part[ARROW_PARTS_MAX];
	uint32_t parts;
	struct err e;
	int rc = arrow_table_row(t, io, index, scratch, part, &parts, &e);

	told(rc, &e);
	if (parts > ARROW_PARTS_MAX)
		abort();
	for (uint32_t i = 0; rc == 0 && i < parts; i++)
		if (part[i].at) {
			if (part[i].at < scratch->rows.room && part[i].at < scratch->values.room)
				abort();
		} else if (part[i].offset > t->map.bytes ||
			   part[i].bytes > t->map.bytes - part[i].offset)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arrow_entry entry[BATCHES];
	struct arrow_scratch *scratch;
	struct arrow_table t = {.entry = entry, .most = BATCHES};
	struct io io = {0};
	unsigned char *copy;
	struct err e;
	int rc;

	if (size == 0 || size > 1u << 20)
		return 0;
	/* no byte behind it may be looked at */
	copy = xmalloc(size);
	memcpy(copy, data, size);
	scratch = xmalloc(sizeof(*scratch));
	arrow_scratch_begin(scratch);
	scratch->decompress = size % 2;
	t.map = (struct store_map){.at = copy, .bytes = size};
	rc = arrow_table_list(&t, &io, scratch, &e);
	told(rc, &e);
	if (rc == 0 && t.rows > 0)
		for (uint64_t i = 0; i < 3; i++)
			row(&t, &io, (t.rows - 1) / 2 * i, scratch);
	arrow_scratch_release(scratch);
	free(scratch);
	free(copy);
	return 0;
}
