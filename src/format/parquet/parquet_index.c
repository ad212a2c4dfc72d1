/* The metadata of files that others wrote, as an index. */
#include "format/parquet/parquet_index.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/saturate.h"
#include "conf/node.h"
#include "format/parquet/parquet_footer.h"
#include "format/parquet/parquet_layout.h"

#define CHOICES_TOLD 64
/* What is read at first, as pyarrow does. */
#define TAIL_BYTES 65536u

struct building {
	struct parquet_visitor v;
	struct parquet_index *x;
	const struct node *choice; /* names of columns that are wanted; NULL: all */
	uint64_t chosen;           /* a bit for each of the first that was found */
	uint64_t row, behind;      /* behind: where the chunk before this one ends */
	uint64_t wanted;           /* bytes of wanted chunks */
	struct file_look *out;
};

static bool is_skipped(struct building *b, const struct parquet_leaf *leaf)
{
	const struct node *names = b->choice;

	for (size_t i = 0; names && i < names->n; i++) {
		const char *name = names->child[i]->s;

		if (strlen(name) != leaf->top_bytes ||
		    memcmp(name, leaf->top, leaf->top_bytes) != 0)
			continue;
		if (i < CHOICES_TOLD)
			b->chosen |= (uint64_t)1 << i;
		return false;
	}
	return names != NULL;
}

static int all_chosen(const struct building *b, struct err *e)
{
	for (size_t i = 0; b->choice && i < b->choice->n && i < CHOICES_TOLD; i++)
		if (!(b->chosen >> i & 1))
			return err_set(e, ERR_DATA,
				       "it has no column '%.60s' (storage.storage_options.columns)",
				       b->choice->child[i]->s);
	return 0;
}

static int keep_leaf(struct parquet_visitor *v, uint64_t column, const struct parquet_leaf *leaf,
		     struct err *e)
{
	struct building *b = (struct building *)v;

	(void)e;
	b->x->leaf[column] = (struct parquet_stored_leaf){
		.type = leaf->type,
		.type_length = leaf->type_length,
		.definition_max = leaf->definition_max,
		.repetition_max = leaf->repetition_max,
		.skipped = is_skipped(b, leaf),
	};
	return 0;
}

static void most(uint64_t *room, uint64_t bytes)
{
	if (bytes > *room)
		*room = bytes;
}

static int keep_chunk(struct parquet_visitor *v, const struct parquet_stored_chunk *c,
		      struct err *e)
{
	struct building *b = (struct building *)v;
	struct parquet_stored_group *g = &b->x->group[c->group];

	if (c->stored > 0 && c->at < b->behind)
		return err_set(e, ERR_DATA,
			       "the column chunks of its row group %" PRIu64
			       " do not lie one behind another: such files are not read",
			       c->group);
	if (c->stored > 0)
		b->behind = c->at + c->stored;
	if (c->type != b->x->leaf[c->column].type)
		return err_set(e, ERR_DATA,
			       "column %" PRIu64 " of its row group %" PRIu64
			       " has another type than the schema says",
			       c->column, c->group);
	b->x->place[c->group * b->x->columns + c->column] = (struct parquet_stored_place){
		.at = c->at, .bytes = c->stored, .values = c->values, .codec = c->codec};
	if (c->column == 0)
		g->at = c->at;
	if (c->stored > 0)
		g->end = c->at + c->stored;
	if (g->end < g->at)
		g->end = g->at;
	if (b->x->leaf[c->column].skipped)
		return 0;
	b->wanted = u64_sum(b->wanted, c->stored);
	most(&b->out->room[PARQUET_ROOM_RAW], c->raw);
	most(&b->out->room[PARQUET_ROOM_STORED], c->stored);
	return 0;
}

static int keep_group(struct parquet_visitor *v, uint64_t group, uint64_t rows, struct err *e)
{
	struct building *b = (struct building *)v;
	struct parquet_stored_group *g = &b->x->group[group];

	(void)e;
	g->first = b->row;
	b->row += rows;
	g[1].first = b->row;
	if (rows > 0 && g->end == g->at)
		return err_set(e, ERR_DATA, "its row group %" PRIu64 " has rows and no bytes",
			       group);
	for (uint32_t i = 0; i < b->x->columns; i++)
		if (b->x->leaf[i].repetition_max == 0 &&
		    parquet_place_in(b->x, group, i)->values != rows)
			return err_set(e, ERR_DATA,
				       "column %" PRIu32 " of its row group %" PRIu64
				       " has another number of values than the group has rows",
				       i, group);
	most(&b->out->room[PARQUET_ROOM_GROUP], g->end - g->at);
	return 0;
}

static struct parquet_index *index_new(const struct parquet_totals *t, size_t *bytes, struct err *e)
{
	uint64_t leaves = t->columns * sizeof(struct parquet_stored_leaf);
	uint64_t groups = u64_product(t->groups + 1, sizeof(struct parquet_stored_group));
	uint64_t places = u64_product(u64_product(t->groups, t->columns),
				      sizeof(struct parquet_stored_place));
	uint64_t all = u64_sum(u64_sum(leaves, groups),
			       u64_sum(places, sizeof(struct parquet_index) + 16));
	struct parquet_index *x;
	char *at;

	if (all > PARQUET_FOREIGN_INDEX_MAX) {
		err_set(e, ERR_DATA,
			"the index of its %" PRIu64 " row groups of %" PRIu64
			" columns would take more than %u MiB of memory",
			t->groups, t->columns, PARQUET_FOREIGN_INDEX_MAX >> 20);
		return NULL;
	}
	x = try_calloc(1, (size_t)all, "the index of a Parquet file", e);
	if (!x)
		return NULL;
	at = (char *)(x + 1);
	x->place = (struct parquet_stored_place *)(void *)at;
	at += places;
	x->group = (struct parquet_stored_group *)(void *)at;
	at += groups;
	x->leaf = (struct parquet_stored_leaf *)(void *)at;
	x->rows = t->rows;
	x->groups = t->groups;
	x->columns = (uint32_t)t->columns;
	*bytes = (size_t)all;
	return x;
}

int parquet_index_of(const void *metadata, size_t n, uint64_t file_bytes,
		     const struct file_spec *form, struct file_look *out, struct err *e)
{
	const struct parquet_shape *shape = form->own;
	struct building b = {.v = {.leaf = keep_leaf, .chunk = keep_chunk, .group = keep_group},
			     .choice = shape ? shape->choice : NULL,
			     .out = out};
	uint64_t data_end = file_bytes - PARQUET_TAIL_BYTES - n;
	struct parquet_totals t;
	int rc = parquet_metadata_parse(metadata, n, data_end, NULL, &t, e);

	*out = (struct file_look){0};
	if (rc < 0)
		return rc;
	if (t.columns == 0)
		return err_set(e, ERR_DATA, "it has no columns");
	b.x = index_new(&t, &out->index_bytes, e);
	if (!b.x)
		return e && e->code == -ENOMEM ? -ENOMEM : ERR_DATA;
	b.x->metadata_bytes = (uint32_t)n;
	/* the same walk as before */
	rc = parquet_metadata_parse(metadata, n, data_end, &b.v, &t, e);
	if (rc == 0)
		rc = all_chosen(&b, e);
	if (rc < 0) {
		free(b.x);
		*out = (struct file_look){0};
		return rc;
	}
	out->index = b.x;
	out->samples = t.rows;
	if (t.rows) {
		out->sample_bytes = (b.wanted + t.rows / 2) / t.rows;
		out->sample_bytes += out->sample_bytes == 0;
	}
	out->most_bytes = out->sample_bytes;
	most(&out->room[PARQUET_ROOM_METADATA], n + (uint64_t)PARQUET_TAIL_BYTES);
	return 0;
}

/* Large metadata of several files are not in memory at once. */
static pthread_mutex_t large = PTHREAD_MUTEX_INITIALIZER;

static int read_at(const struct io *io, struct blob *b, void *to, size_t n, uint64_t at,
		   struct err *e)
{
	ssize_t got = io_pread(io, IO_META, b, to, n, at, e);

	if (got < 0)
		return (int)got;
	return (size_t)got == n
		       ? 0
		       : err_set(e, ERR_DATA, "it ends at offset %" PRIu64, at + (uint64_t)got);
}

static int read_index(const struct io *io, struct blob *b, uint64_t bytes, unsigned char *tail,
		      const struct file_spec *form, struct file_look *out, struct err *e)
{
	size_t have = bytes < TAIL_BYTES ? (size_t)bytes : TAIL_BYTES;
	unsigned char *all;
	uint32_t n = 0;
	int rc;

	if (bytes < 12)
		return err_set(e, ERR_DATA, "it has %" PRIu64 " bytes and is no Parquet file",
			       bytes);
	rc = read_at(io, b, tail, have, bytes - have, e);
	if (rc == 0)
		rc = parquet_tail_parse(tail + have - PARQUET_TAIL_BYTES, bytes, &n, e);
	if (rc < 0)
		return rc;
	if (n + (uint64_t)PARQUET_TAIL_BYTES <= have)
		return parquet_index_of(tail + have - PARQUET_TAIL_BYTES - n, n, bytes, form, out,
					e);
	if (n > PARQUET_FOREIGN_METADATA_MAX)
		return err_set(e, ERR_DATA,
			       "its metadata have %" PRIu32 " bytes: at most %u MiB are read", n,
			       PARQUET_FOREIGN_METADATA_MAX >> 20);
	pthread_mutex_lock(&large);
	all = try_calloc(1, n, "the metadata of a Parquet file", e);
	rc = all ? read_at(io, b, all, n, bytes - PARQUET_TAIL_BYTES - n, e) : -ENOMEM;
	if (rc == 0)
		rc = parquet_index_of(all, n, bytes, form, out, e);
	free(all);
	pthread_mutex_unlock(&large);
	return rc;
}

int parquet_look(const struct io *io, const char *path, uint64_t bytes,
		 const struct file_spec *form, struct file_look *out, struct err *e)
{
	struct blob *b = store_blob_new(io->store, e);
	unsigned char *tail = b ? try_calloc(1, TAIL_BYTES, "the end of a Parquet file", e) : NULL;
	int rc = tail ? io_open(io, path, STORE_READ, b, e) : -ENOMEM;

	*out = (struct file_look){0};
	if (rc == 0) {
		rc = read_index(io, b, bytes, tail, form, out, e);
		io_close(io, b, NULL);
	}
	free(tail);
	free(b);
	return rc;
}
