#pragma once
/* Where everything lies in an HDF5 file that we write: as the HDF5 library (1.10 to 1.14, "latest")
 * places it for h5py's create_dataset calls, one after the other. */
#include "format/hdf5/hdf5_shape.h"

/* The metadata of an HDF5 file that we write: where its parts lie, and their bytes. */

#define HDF5_SUPER_BYTES 48u
#define HDF5_ROOT_BYTES 147u
/* A dataset's header: 268 bytes unless its messages need more. */
#define HDF5_HEADER_MIN 256u
#define HDF5_HEADER_MAX 512u
#define HDF5_INDEX_BYTES 28u
#define HDF5_PAGE_BITS 10u
/* The root group's header goes on in up to three chunks when it has more than three links. */
#define HDF5_MORE_MAX 3

/* Chunks from `first` on lie one behind the other from `at` on. */
struct hdf5_run {
	uint64_t first, at;
};

struct hdf5_place {
	uint64_t header;
	uint64_t index, block; /* fixed array and its data block, when chunked and not single */
	uint64_t data;         /* contiguous, or of the single chunk; HDF5_UNDEFINED when empty */
	struct hdf5_run run[3];
	uint32_t runs;
};

struct hdf5_layout {
	struct hdf5_shape records, labels;
	uint32_t datasets;        /* of records; place[datasets] is labels */
	uint32_t header_bytes[2]; /* of a header's messages: records, labels */
	uint64_t more[HDF5_MORE_MAX];
	uint32_t more_bytes[HDF5_MORE_MAX]; /* 0: not there */
	uint64_t group; /* the symbol table; 0: the links are in the root group's header */
	uint64_t file_bytes;
	struct hdf5_place place[HDF5_DATASETS_MAX + 1]; /* of all, the first `datasets` + 1 */
};

/* The root group's symbol table for `datasets` records_k and labels: a heap of names, a tree and
 * its nodes, one behind the other from l->group on. */
#define HDF5_GROUP_MAX 4352u
size_t hdf5_group_bytes(uint32_t datasets);
/* Writes all hdf5_group_bytes of it. Returns its tree's address; the heap's is l->group. */
uint64_t hdf5_group_make(const struct hdf5_layout *l, unsigned char *out);

/* The head of a header message with `bytes` of contents. Returns where those go. */
unsigned char *hdf5_message(unsigned char *p, unsigned type, size_t bytes, unsigned flags);
/* The messages of a dataset's header, at most HDF5_HEADER_MAX bytes. Returns their length. */
size_t hdf5_header_messages(const struct hdf5_shape *s, const struct hdf5_place *p,
			    unsigned char *out);

int hdf5_layout_of(const struct file_spec *f, struct hdf5_layout *out, struct err *e);

/* Length of one element of a fixed array. */
uint32_t hdf5_slot_bytes(const struct hdf5_shape *s);
/* Number of bytes that the sizes of compressed chunks take in an index. */
uint32_t hdf5_size_bytes(uint64_t chunk_bytes);
uint64_t hdf5_chunk_at(const struct hdf5_layout *l, const struct hdf5_place *p, uint64_t chunk);
