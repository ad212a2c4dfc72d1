#pragma once
/* HDF5 files without the HDF5 library: the datasets of a file, for writing and reading.
 *
 * A file has the datasets records_0 .. records_(n-1), each with the samples along its first axis
 * and a share of every sample, and labels, one int64 zero a sample. A file's payload stream is
 * records_0 whole, then records_1, and so on, in row-major order. */
#include <stddef.h>
#include <stdint.h>

#include "base/little_endian.h"
#include "format/format.h"

/* Numbers and checksums in HDF5 files. */

/* An address that is none. */
#define HDF5_UNDEFINED UINT64_MAX

/* Checksum of metadata (Jenkins' lookup3) and of raw data (Fletcher). */
uint32_t hdf5_checksum(const void *bytes, size_t n);
uint32_t hdf5_fletcher32(const void *bytes, size_t n);

/* Bytes that hold v; at least 1. */
static inline uint32_t hdf5_bytes_for(uint64_t v)
{
	return v ? (uint32_t)(63 - __builtin_clzll(v) + 8) / 8 : 1;
}

#define HDF5_RANK_MAX (FORMAT_DIMS_MAX + 1)
/* As many records_k as a group's header holds beside labels; with more its links are in a symbol
 * table, of which this program writes one level up to this size. */
#define HDF5_COMPACT_MAX 7
#define HDF5_DATASETS_MAX 63
#define HDF5_NAME_MAX 16
/* The HDF5 library's buffers: one for chunks a dataset, one for small reads of contiguous data. */
#define HDF5_CHUNK_CACHE (1u << 20)
#define HDF5_SIEVE 65536u

enum hdf5_filter {
	HDF5_DEFLATE = 1,
	HDF5_SHUFFLE = 2,
	HDF5_FLETCHER32 = 3,
	HDF5_LZF = 32000, /* h5py's own */
};

/* One dataset as a workload describes it. */
struct hdf5_shape {
	const struct elem_type *elem;
	uint32_t rank;
	uint64_t dims[HDF5_RANK_MAX], max_dims[HDF5_RANK_MAX];
	uint64_t bytes;
	bool chunked;
	uint64_t chunk[HDF5_RANK_MAX]; /* chunked: elements */
	uint64_t chunk_bytes;          /* of its elements */
	uint64_t stored_bytes;         /* of a chunk in the file */
	uint64_t chunks, slots;        /* with data; room for as many in the index */
	bool single;                   /* one chunk for ever: it needs no index */
	enum hdf5_filter filter;       /* 0: none */
	uint32_t level;
};

/* The shape of each records_k. ERR_USAGE when there cannot be such a dataset. */
int hdf5_shape_of(const struct file_spec *f, struct hdf5_shape *out, struct err *e);
/* Bytes of one sample in each records_k. */
uint64_t hdf5_part_bytes(const struct hdf5_shape *s);

/* Rows of a chunk: runs of elements that follow each other in the dataset as well. */
struct hdf5_rows {
	const struct hdf5_shape *s;
	uint64_t origin[HDF5_RANK_MAX]; /* of the chunk */
	uint32_t axis;                  /* rows run along this one and, whole, those behind it */
	uint64_t tail;                  /* bytes of one step along it */
	uint64_t row_bytes;
};

/* Of chunk number `chunk`, in row-major order of those that have data. */
void hdf5_rows_of(struct hdf5_rows *r, const struct hdf5_shape *s, uint64_t chunk);
/* How many bytes of row `n` lie inside the dataset; *from gets where they do, in bytes. */
uint64_t hdf5_row_inside(const struct hdf5_rows *r, uint64_t n, uint64_t *from);

/* "records_12", at most HDF5_NAME_MAX bytes with its end, all written. Returns its length. */
size_t hdf5_name(uint32_t n, char out[HDF5_NAME_MAX]);
