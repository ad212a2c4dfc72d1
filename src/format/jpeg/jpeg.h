#pragma once
/* JPEG images: of noise, and through libjpeg. */
#include <setjmp.h>
#include <stdio.h> /* jpeglib.h needs it */

#include <jpeglib.h>

#include "format/format.h"
#include "format/image.h"

/* ---- images of noise ---- */

#define JPEG_SIDE_MAX 65500u /* libjpeg's */

/* Takes an image's bytes in ascending pieces; its failure ends the work. */
typedef int jpeg_sink(void *arg, const unsigned char *bytes, size_t n, struct err *e);

/* Our images: baseline, quality 75, JFIF 1.01, standard Huffman tables, as Pillow's defaults are.
 * All of them begin alike, up to the data of the scan. */
#define JPEG_HEADER_BYTES 328
#define JPEG_NOISE_BYTES 16384
/* What all images are drawn from, some ms of work once a program; else the first image does it. */
void jpeg_noise_prepare(void);
/* Bytes of the file of such an image in the mean, within 1 %; of one with want_bytes these, but for
 * images of few blocks. */
uint64_t jpeg_noise_bytes(const struct image_shape *shape);
/* What want_bytes can be. */
uint64_t jpeg_least_bytes(const struct image_shape *shape);
uint64_t jpeg_most_bytes(const struct image_shape *shape);
/* An image of noise, or with want_bytes of blocks of noise and others that go on with the gray of
 * the block before, evenly spread, and fill bytes at the end: the same bytes on every machine.
 * `memory` is JPEG_NOISE_BYTES long. */
int jpeg_noise(void *memory, const struct image_shape *shape, uint64_t file_index,
	       const struct content_source *content, jpeg_sink *sink, void *arg, struct err *e);

/* ---- libjpeg behind errors that return and memory that is lent ---- */

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

/* Bytes that decoding asked for beyond the reader's own memory, for tests. */
size_t jpeg_reader_beyond(const struct reader *r);
