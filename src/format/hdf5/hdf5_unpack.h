#pragma once
/* Undoing the filters of a chunk. */
#include "format/hdf5/hdf5_file.h"

struct libdeflate_decompressor;

struct hdf5_unpacked {
	const unsigned char *bytes; /* chunk_bytes of the chunk */
	bool shuffled; /* still to be put in order: byte b of element i is at b * n + i */
};

/* `packed` are the stored bytes; `room` has room_bytes + 4, of which a
 * compressed chunk needs chunk_bytes + 4. `inflater` may be NULL where none is compressed. */
int hdf5_unpack(const struct hdf5_dataset *d, const struct hdf5_chunk *chunk,
		const unsigned char *packed, unsigned char *room, size_t room_bytes,
		struct libdeflate_decompressor *inflater, struct hdf5_unpacked *out, struct err *e);
/* n bytes of the chunk from `offset` on; whole elements. */
void hdf5_unshuffle(const struct hdf5_dataset *d, const unsigned char *chunk, uint64_t offset,
		    unsigned char *out, size_t n);
