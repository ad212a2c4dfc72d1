#pragma once
/* The reader of HDF5 files, for its two parts: files with contiguous data, and chunks. */
#include "format/hdf5/hdf5_unpack.h"
#include "format/parts.h"

struct reader {
	struct reader_config config;
	const struct io *io;
	struct expectation expect;
	struct libdeflate_decompressor *inflater; /* NULL: nothing will be inflated */
	struct hdf5_cache cache;
	struct hdf5_file *file; /* of `files` */
	uint32_t files;
	uint32_t datasets; /* of a file: room */
	uint64_t clock;
	unsigned char
		*data; /* a sample's part in one dataset; native and contiguous: a piece of it */
	size_t data_bytes;
	unsigned char *window; /* native: the beginning of the file */
	size_t window_bytes;
	unsigned char *packed, *chunk;
	size_t packed_bytes, chunk_bytes;
	const struct file_spec *spec; /* of the file being read */
};

/* n bytes of data at `at`. */
int hdf5_read_data(struct reader *r, struct hdf5_file *f, unsigned char *out, uint64_t n,
		   uint64_t at, struct err *e);
/* ERR_DATA: the dataset's sample or chunk is larger than it should be. */
int hdf5_no_room(const struct hdf5_dataset *d, uint64_t bytes, size_t room, struct err *e);
/* The sample's part in a chunked dataset, whose payload begins at `stream`, into r->data. */
int hdf5_read_chunked(struct reader *r, struct hdf5_file *f, const struct hdf5_dataset *d,
		      uint64_t stream, uint64_t index, const void **last, struct err *e);
