#pragma once
/* What the image formats share: one image per file, dims[0] rows of dims[1] gray bytes, whatever
 * the number of samples per file (each sample is that image again); reading a file as Pillow asks
 * for it, or in the largest pieces; and the frame of a reader. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/format.h"
#include "format/pyfile.h"
#include "format/reader.h"

/* Pillow hands its decoders this much at a time. */
#define IMAGE_PIECE 65536u

struct image_shape {
	uint32_t width, height;
	uint64_t want_bytes; /* as in struct file_spec */
};

/* ERR_USAGE when the spec is not of such images: more than two dimensions, another element than
 * uint8, a side of 0 or over side_max (at most 2^31 - 1). */
int image_shape_of(const struct file_spec *f, const char *format, uint32_t side_max,
		   struct image_shape *out, struct err *e);
/* ERR_USAGE when the file of such an image cannot have want_bytes, only `least` to `most`. */
int image_check_want(const struct image_shape *s, const char *format, uint64_t least, uint64_t most,
		     struct err *e);
/* ERR_DATA, naming both, when the image found is not as wide and high as the spec's. */
int image_shape_check(uint64_t width, uint64_t height, const struct image_shape *want,
		      struct err *e);

/* A file's bytes in ascending order. Framework: the calls are those on a Python file object.
 * Native: served from requests of a whole piece each. */
struct image_source {
	const struct io *io;
	struct blob *blob;
	bool native;
	uint64_t file_bytes; /* at open */
	uint64_t offset;     /* of the next byte given out */
	struct pybuffer py;
	unsigned char *piece; /* framework: IMAGE_PIECE bytes for runs */
	size_t piece_bytes, pos, end;
	uint64_t next; /* native: of the next request */
};

/* Fewer than n bytes only at the end of the file. */
ssize_t image_source_read(struct image_source *s, void *out, size_t n, struct err *e);
/* n bytes, or ERR_DATA. */
int image_source_read_all(struct image_source *s, void *out, size_t n, struct err *e);
/* ERR_DATA: the file ends within its image. */
int image_cut_short(const struct image_source *s, struct err *e);
/* As a pointer to up to n (framework: at most IMAGE_PIECE) bytes, which stay until the next call. 0
 * at the end of the file; native gives out fewer where a piece ends. */
ssize_t image_source_run(struct image_source *s, size_t n, const unsigned char **run,
			 struct err *e);
/* Back to the file's first byte, as Pillow does between sniffing, parsing and decoding. */
void image_source_rewind(struct image_source *s);
/* The following requests are for pixels. */
void image_source_data(struct image_source *s);

/* First member of an image format's struct reader. */
struct image_reader {
	struct reader_base base;
	unsigned char *python_buffer;
	size_t python_buffer_bytes;
	struct image_source source;
};

/* Carves the frame's parts. `file_bytes`: about the largest file, so that native has room to read
 * it at once. */
void image_reader_lay_out(struct carver *c, const struct reader_config *config,
			  const struct store *s, uint64_t file_bytes, struct image_reader *r);
/* Begins at the first byte of r->base's open blob. */
int image_source_start(struct image_reader *r, struct err *e);
