/* Requests for row groups. */
#include "format/parquet/parquet_ranges.h"

#include <stddef.h>

#include "format/parquet/parquet_index.h"

/* In the order of reader.parquet_requests. */
static const struct parquet_pattern patterns[] = {
	{
		.name = "dlio",
		.reads = PARQUET_READ_EXTENT,
		.python_file = true,
		.workers = 64,
		.window = 64,
		.coalesce = 1,
		.early = true,
	},
	{
		.name = "s3dlio",
		.reads = PARQUET_READ_EXTENT,
		.capped_tail = true,
		.keeps_metadata = true,
		.workers = 32,
		.window = 32,
		.coalesce = 8,
	},
	{
		.name = "pyarrow",
		.reads = PARQUET_READ_CHUNKS,
		.keeps_open = true,
		.workers = 1,
		.window = 1,
		.coalesce = 1,
	},
	{
		.name = "pyarrow_pre_buffer",
		.reads = PARQUET_READ_COALESCED,
		.hole = 8192,
		.most = 32u << 20,
		.keeps_open = true,
		.workers = 8,
		.window = 1,
		.coalesce = 1,
	},
};

const struct parquet_pattern parquet_native = {
	.name = "native",
	.reads = PARQUET_READ_COALESCED,
	.hole = NATIVE_WINDOW,
	.most = UINT64_MAX,
	.workers = 64,
	.window = 64,
	.coalesce = 1,
};

const struct parquet_pattern *parquet_pattern_at(unsigned i)
{
	return i < sizeof(patterns) / sizeof(patterns[0]) ? &patterns[i] : NULL;
}

void parquet_places_of(struct parquet_places *p, const struct parquet_layout *l, uint64_t first,
		       uint64_t end)
{
	*p = (struct parquet_places){.l = l, .end = end};
	parquet_group_at(l, first, &p->group);
	p->at = p->group.at;
}

bool parquet_next_place(struct parquet_places *p, struct parquet_place *out)
{
	for (;;) {
		struct parquet_chunk k;
		uint32_t i = p->column;

		if (i == p->l->columns) {
			if (p->group.index + 1 >= p->end)
				return false;
			parquet_group_at(p->l, p->group.index + 1, &p->group);
			p->at = p->group.at;
			p->column = 0;
			continue;
		}
		p->column++;
		if (p->l->index) {
			const struct parquet_stored_place *at =
				parquet_place_in(p->l->index, p->group.index, i);

			if (parquet_skips(p->l, i) || at->bytes == 0)
				continue;
			*out = (struct parquet_place){p->group, i, at->at, at->bytes};
			return true;
		}
		parquet_chunk_of(p->l, i, p->group.rows, &k);
		p->at += k.stored;
		if (parquet_skips(p->l, i))
			continue;
		*out = (struct parquet_place){p->group, i, p->at - k.stored, k.stored};
		return true;
	}
}

static bool skips(const struct parquet_layout *l)
{
	for (uint32_t i = 0; i < l->columns; i++)
		if (parquet_skips(l, i))
			return true;
	return false;
}

void parquet_ranges_of(struct parquet_ranges *r, const struct parquet_pattern *pattern,
		       const struct parquet_layout *l, uint64_t first, uint64_t end)
{
	struct parquet_group from, to;
	uint64_t bytes;

	*r = (struct parquet_ranges){.pattern = pattern, .all.bytes = EXTENT_TO_END};
	parquet_group_at(l, first, &from);
	parquet_group_at(l, end - 1, &to);
	bytes = to.at + to.bytes - from.at;
	/* nothing lies between row groups that are all wanted; in files of others the gaps of
	 * coalesced requests are looked at */
	if (pattern->reads != PARQUET_READ_CHUNKS && !skips(l) &&
	    (pattern->reads == PARQUET_READ_EXTENT || (!l->index && bytes <= pattern->most))) {
		r->all = (struct extent){.offset = from.at, .bytes = bytes};
		return;
	}
	parquet_places_of(&r->places, l, first, end);
	r->has_next = parquet_next_place(&r->places, &r->next);
}

static bool joins(const struct parquet_pattern *p, const struct extent *x,
		  const struct parquet_place *next)
{
	switch (p->reads) {
	case PARQUET_READ_EXTENT:
		return true;
	case PARQUET_READ_CHUNKS:
		return false;
	case PARQUET_READ_COALESCED:
		return next->at + next->bytes - x->offset <= p->most &&
		       next->at - (x->offset + x->bytes) <= p->hole;
	}
	return false;
}

bool parquet_next_range(struct parquet_ranges *r, struct extent *out)
{
	if (r->all.bytes != EXTENT_TO_END) {
		*out = r->all;
		r->all.bytes = EXTENT_TO_END;
		return out->bytes > 0;
	}
	if (!r->has_next)
		return false;
	*out = (struct extent){.offset = r->next.at, .bytes = r->next.bytes};
	while ((r->has_next = parquet_next_place(&r->places, &r->next)) &&
	       joins(r->pattern, out, &r->next))
		out->bytes = r->next.at + r->next.bytes - out->offset;
	return true;
}
