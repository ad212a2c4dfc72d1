/* hdf5: datasets as h5py writes them, samples along the first axis. How they are written is said in
 * hdf5_layout.c and hdf5_write.c, how they are read in hdf5_read.c. */
#include "format/hdf5/hdf5.h"

const struct format_ops format_hdf5 = {
	.is.name = "hdf5",
	.is.help = "HDF5 files (h5py), samples along the first axis of one or more datasets.",
	.is.extension = "hdf5",
	.check = hdf5_check,
	.file_bytes = hdf5_file_bytes,
	.write = hdf5_write,
	.reader_bytes = hdf5_reader_bytes,
	.reader_init = hdf5_reader_init,
	.read = hdf5_read,
	.reader_close = hdf5_reader_close,
	.verify = hdf5_verify,
	.extent = hdf5_extent,
};
