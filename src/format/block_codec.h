#pragma once
/* Blocks of bytes that are compressed one by one, in files of several formats: LZ4 here, Zstandard
 * by its library where it is installed, but for frames that hold their bytes stored. */
#include <stddef.h>

#include "base/err.h"

/* What is decompressed: `done` of `raw` bytes are there. */
struct codec_out {
	unsigned char *out;
	size_t done, raw;
};

int codec_damaged(const char *what, struct err *e);
/* The n bytes again that lie `back` bytes before; they may overlap what they make. */
int codec_repeat(struct codec_out *o, size_t back, size_t n, struct err *e);
/* n bytes from *at, which lie before `end`. */
int codec_literal(struct codec_out *o, const unsigned char **at, const unsigned char *end, size_t n,
		  struct err *e);
/* ERR_DATA unless all of it is there. */
int codec_whole(const struct codec_out *o, struct err *e);

/* These make exactly what is left of `raw`: an LZ4 block, an LZ4 frame (github.com/lz4/lz4,
 * doc/lz4_Frame_format.md), a Zstandard frame. ERR_DATA for what is damaged, ERR_ABSENT for a
 * library that is not there. Checksums of frames are not compared. */
int codec_lz4(const unsigned char *in, size_t n, struct codec_out *o, struct err *e);
int codec_lz4_frame(const unsigned char *in, size_t n, struct codec_out *o, struct err *e);
int codec_zstd(const unsigned char *in, size_t n, struct codec_out *o, struct err *e);
