#pragma once
/* The two halves of the npz format: how such a file looks, and how one is read. */
#include "codec/zip.h"
#include "format/format.h"
#include "format/numpy/npy_header.h"

#define NPZ_MEMBERS 2

/* x.npy (the samples) and y.npy (their labels, zeros), as np.savez(path, x=x, y=y) lays them out.
 */
struct npz_layout {
	struct npy_array array[NPZ_MEMBERS];
	struct zip_entry entry[NPZ_MEMBERS]; /* without the checksums */
	uint64_t file_bytes;
};

extern const char *const npz_member_name[NPZ_MEMBERS];

/* ERR_USAGE when the sizes overflow. */
int npz_layout_of(const struct file_spec *f, struct npz_layout *out, struct err *e);

/* struct format_ops' functions, by their names there. */
int npz_check(const struct file_spec *f, struct err *e);
uint64_t npz_file_bytes(const struct file_spec *f);
int npz_write(const struct io *io, struct blob *b, const char *path, const struct file_spec *f,
	      const struct content_source *content, void *scratch, size_t scratch_bytes,
	      struct err *e);
int npz_verify(const struct io *io, const char *path, const struct file_spec *f,
	       const struct content_source *content, void *scratch, size_t scratch_bytes,
	       struct err *e);
size_t npz_reader_bytes(const struct reader_config *c, const struct store *s);
int npz_reader_init(void *memory, const struct reader_config *c, const struct io *io,
		    struct reader **out, struct err *e);
int npz_read(struct reader *r, const char *path, const struct file_spec *f, uint64_t index,
	     struct sample *out, struct err *e);
int npz_reader_close(struct reader *r, struct err *e);
