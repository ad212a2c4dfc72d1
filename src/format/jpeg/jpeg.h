#pragma once
/* JPEG images: those of noise, and what tests ask of the reader. */
#include "format/format.h"
#include "format/image.h"

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

/* Bytes that decoding asked for beyond the reader's own memory, for tests. */
size_t jpeg_reader_beyond(const struct reader *r);
