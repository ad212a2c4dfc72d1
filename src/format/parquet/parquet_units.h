#pragma once
/* Row groups as units, for loaders that ask for them ahead: struct format_ops' functions. */
#include "format/format.h"
#include "format/parquet/parquet_ranges.h"

/* The layout of the file that was used last, which is that of all files of the same keys. */
struct parquet_laid {
	struct file_spec of; /* its elem is NULL: of none */
	struct parquet_layout l;
};

/* x->l becomes that of a file: to measure it takes longer than to read a small row group. What was
 * zeros is ready. ERR_USAGE when there cannot be such a file. */
int parquet_lay_out(struct parquet_laid *x, const struct file_spec *f, struct err *e);

struct parquet_unit {
	struct parquet_laid laid;
	struct parquet_ranges ranges;
};

/* What a reader of this configuration asks for, and how many row groups at once. */
const struct parquet_pattern *parquet_pattern_of(const struct reader_config *c, uint32_t *coalesce);
/* The row groups [*first, *end) that are asked for together with the one that has a row. */
void parquet_unit_of(const struct parquet_layout *l, uint32_t coalesce, uint64_t row,
		     uint64_t *first, uint64_t *end);

uint64_t parquet_wanted_bytes(const struct file_spec *f);
int parquet_unit_begin(void *unit, const struct reader_config *c, const struct file_spec *f,
		       uint64_t index, struct sample_unit *out, struct err *e);
bool parquet_unit_next(void *unit, struct extent *out);
void parquet_unit_pace(const struct reader_config *c, struct unit_pace *out);
