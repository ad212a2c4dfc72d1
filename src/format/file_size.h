#pragma once
/* The shape of a sample with which a file comes out at a given size. */
#include "format/format.h"

/* The two dimensions of a sample with which a file of `form` (whose own dimensions do not matter)
 * has about `want` bytes: the shape nearest to a square whose file comes nearest to it, for images
 * the smallest near a square whose noise alone takes that much. A file of content-dependent size
 * counts as its estimate. ERR_USAGE when even a single element takes more, or none takes so much.
 */
int file_size_shape(const struct format_ops *format, const struct file_spec *form, double want,
		    uint64_t dims[2], struct err *e);
