/* Decodes any Parquet file with the program's own parser: parquet_tool FILE FOLDER writes the
 * values of column N, those that are not null, as PLAIN bytes (booleans a byte each) into FOLDER/N,
 * and a line for the file. parquet_tool FILE: a line for each column chunk instead, in front of
 * that line: row group, column, offset, bytes, values. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "format/parquet/parquet_decode.h"

#define COLUMNS_MAX 20000u
#define ROOM (64u << 20)

struct tool {
	struct parquet_visitor v;
	const unsigned char *file;
	size_t bytes;
	struct parquet_leaf leaf[COLUMNS_MAX];
	struct parquet_decoder decode;
	const char *folder;
	FILE *out;
};

static int leaf(struct parquet_visitor *v, uint64_t column, const struct parquet_leaf *l,
		struct err *e)
{
	(void)e;
	((struct tool *)v)->leaf[column] = *l;
	return 0;
}

static int put(void *arg, const unsigned char *values, size_t n, size_t bytes, struct err *e)
{
	(void)n;
	(void)e;
	fwrite(values, 1, bytes, ((struct tool *)arg)->out);
	return 0;
}

static int chunk(struct parquet_visitor *v, const struct parquet_stored_chunk *c, struct err *e)
{
	struct tool *t = (struct tool *)v;
	const struct parquet_leaf *l = &t->leaf[c->column];
	uint64_t at = c->at, end = c->at + c->stored;
	char path[512];
	int rc = 0;

	snprintf(path, sizeof(path), "%s/%" PRIu64, t->folder, c->column);
	t->out = fopen(path, c->group ? "ab" : "wb");
	if (!t->out)
		return err_set(e, ERR_USAGE, "cannot write '%s'", path);
	parquet_decoder_begin(&t->decode, c->type, l->type_length, c->codec, l->definition_max,
			      l->repetition_max);
	while (rc == 0 && at < end) {
		struct parquet_page_head h;
		size_t used = 0;

		rc = parquet_page_head_parse(t->file + at, end - at, &h, &used, e);
		if (rc == 0 && h.stored > end - at - used)
			rc = err_set(e, ERR_DATA, "a page reaches behind its chunk");
		if (rc == 0)
			rc = parquet_decode_page(&t->decode, &h, t->file + at + used, put, t, e);
		at += used + h.stored;
	}
	if (rc == 0 && t->decode.levels != c->values)
		rc = err_set(e, ERR_DATA, "a chunk has %" PRIu64 " values, not %" PRIu64,
			     t->decode.levels, c->values);
	fclose(t->out);
	return rc;
}

static int tell(struct parquet_visitor *v, const struct parquet_stored_chunk *c, struct err *e)
{
	(void)v;
	(void)e;
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", c->group, c->column,
	       c->at, c->stored, c->values);
	return 0;
}

static unsigned char *load(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	unsigned char *bytes;

	if (!f || fseek(f, 0, SEEK_END) < 0)
		return NULL;
	*n = (size_t)ftell(f);
	rewind(f);
	bytes = xmalloc(*n + 1);
	*n = fread(bytes, 1, *n, f);
	fclose(f);
	return bytes;
}

int main(int argc, char **argv)
{
	struct tool *t = xcalloc(1, sizeof(*t));
	struct parquet_totals totals = {0};
	struct err e = {0};
	uint32_t n = 0;
	int rc;

	if (argc != 3 && argc != 2)
		return 2;
	t->file = load(argv[1], &t->bytes);
	t->folder = argv[2];
	t->v = (struct parquet_visitor){.leaf = leaf, .chunk = argc == 3 ? chunk : tell};
	t->decode.raw_room = t->decode.dictionary_room = ROOM;
	t->decode.raw = xmalloc(ROOM);
	t->decode.dictionary = xmalloc(ROOM);
	t->decode.place = xmalloc((ROOM / 4 + 2) * sizeof(uint32_t));
	t->decode.scratch = xmalloc(PARQUET_SCRATCH_BYTES);
	inflater_init(&t->decode.inflater, xmalloc(INFLATER_MEMORY));
	if (!t->file || t->bytes < 12)
		return 2;
	rc = parquet_tail_parse(t->file + t->bytes - 8, t->bytes, &n, &e);
	if (rc == 0)
		rc = parquet_metadata_parse(t->file + t->bytes - 8 - n, n, t->bytes - 8 - n, &t->v,
					    &totals, &e);
	if (rc < 0) {
		printf("%s\n", e.text);
		return 1;
	}
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", totals.rows, totals.groups, totals.columns);
	return 0;
}
