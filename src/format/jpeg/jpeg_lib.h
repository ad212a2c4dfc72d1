#pragma once
/* libjpeg behind errors that return and memory that is lent, and images of pixels encoded by it. */
#include <setjmp.h>
#include <stdio.h> /* jpeglib.h needs it */

#include <jpeglib.h>

#include "format/jpeg/jpeg_noise.h"

#define JPEG_ROW_ROOM 65536u /* a row of gray pixels */

/* What libjpeg needs for a gray image of a width, made or decoded, and a row of its pixels. What
 * does not fit (rows in colour, all the coefficients of a progressive image) libjpeg allocates. */
#define JPEG_ARENA_BYTES(width) ((size_t)32768 + (size_t)(width)*16)

/* libjpeg's errors jump out to `escape`, with rc and *e set. Nothing is ever printed. */
struct jpeg_guard {
	struct jpeg_error_mgr manager;
	jmp_buf escape;
	struct err *e;
	int rc;
};

void jpeg_guard_init(struct jpeg_guard *g);
/* Ends the library's work with a failure that *g->e already describes. */
void jpeg_guard_fail(j_common_ptr c, int rc) __attribute__((noreturn));

/* Lends an object's further allocations from `memory`. */
struct jpeg_arena {
	unsigned char *memory;
	size_t bytes, used;
	size_t beyond; /* bytes that did not fit, since the object was made */
	void *(*alloc_small)(j_common_ptr c, int pool, size_t n);
	void *(*alloc_large)(j_common_ptr c, int pool, size_t n);
	JSAMPARRAY (*alloc_sarray)(j_common_ptr c, int pool, JDIMENSION samples, JDIMENSION rows);
};

/* `a` becomes the object's client_data. */
void jpeg_arena_arm(struct jpeg_arena *a, j_common_ptr c, void *memory, size_t bytes);

/* The content's bytes as pixels, through libjpeg: files of version 0.1.0. One build of the library
 * always makes the same bytes; another may choose other bits. */
struct jpeg_encoder {
	struct jpeg_guard guard;
	struct jpeg_compress_struct c;
	struct jpeg_destination_mgr dest;
	struct jpeg_arena arena;
	unsigned char *row; /* JPEG_ROW_ROOM */
	unsigned char *out; /* IMAGE_PIECE */
	jpeg_sink *sink;
	void *arg;
	bool made;
};

/* What an encoder lives in: row, out and arena for images of at most `width` columns. */
#define JPEG_ENCODER_BYTES(width) (JPEG_ROW_ROOM + IMAGE_PIECE + JPEG_ARENA_BYTES(width))
/* `memory` is JPEG_ENCODER_BYTES(width) long, 64-aligned. */
int jpeg_encoder_init(struct jpeg_encoder *j, void *memory, uint32_t width, struct err *e);
int jpeg_encode(struct jpeg_encoder *j, const struct image_shape *shape, uint64_t file_index,
		const struct content_source *content, jpeg_sink *sink, void *arg, struct err *e);
/* Accepts a zeroed one. */
void jpeg_encoder_release(struct jpeg_encoder *j);
