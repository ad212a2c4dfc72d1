#pragma once
/* The two halves of the csv format: how such a file looks, and how one is read. */
#include "format/format.h"

/* struct format_ops' functions, by their names there. */
size_t csv_reader_bytes(const struct reader_config *c, const struct store *s);
int csv_reader_init(void *memory, const struct reader_config *c, const struct io *io,
		    struct reader **out, struct err *e);
int csv_read(struct reader *r, const char *path, const struct file_spec *f, uint64_t index,
	     struct sample *out, struct err *e);
int csv_reader_close(struct reader *r, struct err *e);
/* verify, of a gzip file: what was compressed is compared, since programs compress differently. */
int csv_verify_gzip(const struct io *io, const char *path, const struct file_spec *f,
		    const struct content_source *content, void *scratch, size_t scratch_bytes,
		    struct err *e);
