#pragma once
/* The reader of Parquet files, for the format's row. */
#include "format/format.h"

size_t parquet_reader_bytes(const struct reader_config *c, const struct store *s);
int parquet_reader_init(void *memory, const struct reader_config *c, const struct io *io,
			struct reader **out, struct err *e);
int parquet_read(struct reader *r, const char *path, const struct file_spec *f, uint64_t index,
		 struct sample *out, struct err *e);
int parquet_load_index(struct reader *r, const char *path, const struct file_spec *f,
		       struct err *e);
int parquet_reader_close(struct reader *r, struct err *e);
