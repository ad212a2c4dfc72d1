#pragma once
/* Where everything lies in an HDF5 file that we write: as the HDF5 library (1.10 to 1.14, "latest")
 * places it for h5py's create_dataset calls, one after the other. */
#include "format/hdf5/hdf5_encode.h"

int hdf5_layout_of(const struct file_spec *f, struct hdf5_layout *out, struct err *e);

/* Length of one element of a fixed array. */
uint32_t hdf5_slot_bytes(const struct hdf5_shape *s);
/* Number of bytes that the sizes of compressed chunks take in an index. */
uint32_t hdf5_size_bytes(uint64_t chunk_bytes);
uint64_t hdf5_chunk_at(const struct hdf5_layout *l, const struct hdf5_place *p, uint64_t chunk);
