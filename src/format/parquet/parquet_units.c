/* Row groups as units. */
#include "format/parquet/parquet_units.h"

#include <stddef.h>
#include <string.h>

#include "base/saturate.h"
#include "format/parquet/parquet_index.h"

static const struct parquet_shape *shape_of(const struct reader_config *c)
{
	return c->example ? c->example->own : NULL;
}

const struct parquet_pattern *parquet_pattern_of(const struct reader_config *c, uint32_t *coalesce)
{
	const struct parquet_shape *s = shape_of(c);
	const struct parquet_pattern *p = &parquet_native;

	*coalesce = 1;
	if (c->access == ACCESS_FRAMEWORK) {
		p = s && s->pattern ? s->pattern : parquet_pattern_at(0);
		*coalesce = s && s->coalesce ? s->coalesce : p->coalesce;
	}
	return p;
}

int parquet_lay_out(struct parquet_laid *x, const struct file_spec *f, struct err *e)
{
	struct file_spec any;
	int rc;

	memcpy(&any, f, sizeof(any));
	any.file_index = 0;
	if (x->of.elem && memcmp(&any, &x->of, sizeof(any)) == 0)
		return 0;
	x->of.elem = NULL;
	rc = parquet_layout_of(f, &x->l, e);
	if (rc == 0)
		memcpy(&x->of, &any, sizeof(any));
	return rc;
}

void parquet_unit_of(const struct parquet_layout *l, uint32_t coalesce, uint64_t row,
		     uint64_t *first, uint64_t *end)
{
	uint64_t group = parquet_group_of_row(l, row);

	*first = group - group % coalesce;
	*end = l->groups - *first < coalesce ? l->groups : *first + coalesce;
}

uint64_t parquet_wanted_bytes(const struct file_spec *f)
{
	const struct parquet_shape *s = f->own;

	return s && s->row_bytes && !f->index ? s->row_bytes : file_spec_sample_bytes(f);
}

int parquet_unit_begin(void *unit, const struct reader_config *c, const struct file_spec *f,
		       uint64_t index, struct sample_unit *out, struct err *e)
{
	const struct parquet_pattern *p;
	struct parquet_unit *u = unit;
	struct parquet_group g;
	uint32_t coalesce;
	uint64_t first, end;
	int rc = parquet_lay_out(&u->laid, f, e);

	if (rc < 0)
		return rc;
	p = parquet_pattern_of(c, &coalesce);
	parquet_unit_of(&u->laid.l, coalesce, index, &first, &end);
	parquet_group_at(&u->laid.l, first, &g);
	out->first = g.first;
	parquet_group_at(&u->laid.l, end - 1, &g);
	out->end = g.first + g.rows;
	out->payload = parquet_wanted_bytes(f);
	parquet_ranges_of(&u->ranges, p, &u->laid.l, first, end);
	return 0;
}

bool parquet_unit_next(void *unit, struct extent *out)
{
	return parquet_next_range(&((struct parquet_unit *)unit)->ranges, out);
}

void parquet_unit_pace(const struct reader_config *c, struct unit_pace *out)
{
	const struct parquet_shape *s = shape_of(c);
	const struct parquet_pattern *p;
	struct parquet_layout l;
	uint32_t coalesce;

	p = parquet_pattern_of(c, &coalesce);
	*out = (struct unit_pace){.requests = s && s->workers ? s->workers : p->workers,
				  .window = s && s->window ? s->window : p->window,
				  .early = p->early,
				  .python = p->python_file};
	if (parquet_is_listed(c->example)) {
		out->unit_bytes = u64_product(c->example->room[PARQUET_ROOM_GROUP], coalesce);
		/* with what may lie between row groups */
		if (coalesce > 1)
			out->unit_bytes = c->example->bytes < 2 * out->unit_bytes
						  ? c->example->bytes
						  : 2 * out->unit_bytes;
		out->largest = out->unit_bytes;
		if (p->reads == PARQUET_READ_COALESCED && p->most < out->largest)
			out->largest = p->most;
		return;
	}
	if (!c->example || parquet_layout_of(c->example, &l, NULL) < 0)
		return;
	for (int i = 0; i < 3; i++)
		if (l.kind[i].bytes > out->unit_bytes)
			out->unit_bytes = l.kind[i].bytes;
	out->unit_bytes = u64_product(out->unit_bytes, l.groups < coalesce ? l.groups : coalesce);
	/* rows of unequal size */
	if (c->max_sample_bytes > file_spec_sample_bytes(c->example))
		out->unit_bytes = u64_product(
			out->unit_bytes,
			c->max_sample_bytes / (file_spec_sample_bytes(c->example) | 1) + 1);
	out->largest = out->unit_bytes;
	if (p->reads == PARQUET_READ_COALESCED && p->most < out->largest)
		out->largest = p->most;
}
