#pragma once
/* The header of an npy array (NEP 1): magic, version, length, and a Python dict as text. Parsing
 * accepts every version, order of keys and spacing that NumPy does; writing is NumPy 1.24's, byte
 * for byte. Sentences do not name the file: the caller knows it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "format/format.h"

#define NPY_DIMS_MAX (FORMAT_DIMS_MAX + 1) /* a sample's and the number of samples */
#define NPY_MAGIC_BYTES 6
#define NPY_HEADER_MAX 16384       /* NumPy itself distrusts text over 10,000 bytes */
#define NPY_HEADER_WRITTEN_MAX 512 /* what npy_header_write makes at most */

extern const unsigned char npy_magic[NPY_MAGIC_BYTES];

struct npy_array {
	const struct elem_type *elem; /* NULL: a type that this program does not know */
	char descr[32];               /* as written, cut to fit */
	bool fortran_order;
	uint32_t ndims;
	uint64_t dims[NPY_DIMS_MAX];
	uint64_t header_bytes; /* data begin there */
	uint64_t data_bytes;   /* 0 when elem is NULL */
};

/* The bytes that magic, version and length take: 10 or 12. ERR_DATA when the first 8 bytes do not
 * begin an npy header; `n` >= 8. `offset` is their place in the file, for the sentence. */
int npy_prefix_bytes(const unsigned char *bytes, size_t n, uint64_t offset, struct err *e);
/* Length of the whole header from its prefix (npy_prefix_bytes of it): at most NPY_HEADER_MAX, else
 * ERR_DATA. */
int npy_header_length(const unsigned char *prefix, uint64_t offset, size_t *total, struct err *e);
/* Parses a whole header (npy_header_length of it). */
int npy_header_parse(const unsigned char *bytes, size_t n, uint64_t offset, struct npy_array *out,
		     struct err *e);
/* The array that a file of this spec holds: (*dims, samples), C order. Its header's size included.
 * ERR_USAGE when the sizes overflow. */
int npy_array_of(const struct file_spec *f, struct npy_array *out, struct err *e);
/* ERR_DATA, naming both, when `found` is not the array that the spec asks for. Either memory order
 * is right: it is read alike. */
int npy_array_check(const struct npy_array *found, const struct file_spec *f, struct err *e);
/* NumPy's header for an array. Returns its length, at most NPY_HEADER_WRITTEN_MAX. */
size_t npy_header_write(void *out, const struct elem_type *elem, uint32_t ndims,
			const uint64_t *dims);
