#pragma once
/* The reader of the hdf5 format. */
#include "format/format.h"

/* Files that a reader keeps open at most. */
#define HDF5_KEPT_OPEN 16u
/* With compat.dlio: DLIO keeps all, and its workers are processes, of 1,024 files each. */
#define HDF5_KEPT_OPEN_DLIO 64u

/* struct format_ops' functions of the reader, by their names there. */
size_t hdf5_reader_bytes(const struct reader_config *c, const struct store *s);
int hdf5_reader_init(void *memory, const struct reader_config *c, const struct io *io,
		     struct reader **out, struct err *e);
int hdf5_read(struct reader *r, const char *path, const struct file_spec *f, uint64_t index,
	      struct sample *out, struct err *e);
int hdf5_reader_close(struct reader *r, struct err *e);
