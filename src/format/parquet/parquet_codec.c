/* Decompressing pages: Snappy here, gzip by zlib, LZ4 and Zstandard by format/block_codec.h, Brotli
 * by its library where it is installed. */
#include "format/parquet/parquet_codec.h"

#include <dlfcn.h>
#include <libdeflate.h>
#include <pthread.h>
#include <string.h>

#include "base/little_endian.h"
#include "format/block_codec.h"
#include "format/parquet/parquet_layout.h"

static int snappy(const unsigned char *in, size_t n, struct codec_out *o, struct err *e)
{
	struct thrift_in head = {in, in, in + n};
	const unsigned char *at, *end = in + n;
	uint64_t says = 0;
	int rc = 0;

	if (thrift_varint(&head, &says, NULL) < 0 || says != o->raw)
		return codec_damaged("its length is another one", e);
	at = head.at;
	while (rc == 0 && at < end) {
		unsigned tag = *at++, kind = tag & 3, extra, length = tag >> 2;

		if (kind == 0) {
			extra = length < 60 ? 0 : length - 59;
			if (extra > (size_t)(end - at))
				return codec_damaged("it is cut off", e);
			if (extra)
				length = (unsigned)le_get(at, extra);
			at += extra;
			rc = codec_literal(o, &at, end, (size_t)length + 1, e);
			continue;
		}
		extra = kind == 1 ? 1 : kind == 2 ? 2 : 4;
		if (extra > (size_t)(end - at))
			return codec_damaged("it is cut off", e);
		at += extra;
		if (kind == 1)
			rc = codec_repeat(o, (tag >> 5) << 8 | at[-1], 4 + (length & 7), e);
		else
			rc = codec_repeat(o, le_get(at - extra, extra), length + 1, e);
	}
	return rc < 0 ? rc : codec_whole(o, e);
}

static int gzip(const unsigned char *in, size_t n, struct codec_out *o, struct inflater *inflater,
		struct err *e)
{
	size_t at = 10;
	unsigned flags;

	if (n < 18 || in[0] != 0x1f || in[1] != 0x8b || in[2] != 8)
		return codec_damaged("it is not a gzip member", e);
	flags = in[3];
	if (flags & 4)
		at += 2 + le_get(in + at, 2);
	for (unsigned bit = 8; bit <= 16; bit += 8)
		if (flags & bit) {
			while (at < n && in[at])
				at++;
			at++;
		}
	at += flags & 2 ? 2 : 0;
	if (at > n - 8 || inflater_start(inflater, e) < 0)
		return codec_damaged("its head is cut off", e);
	while (!inflater->ended) {
		size_t left = n - at;
		ssize_t got = inflater_run(inflater, in + at, &left, o->out + o->done,
					   o->raw - o->done, e);

		if (got < 0)
			return (int)got;
		at += left;
		o->done += (size_t)got;
		if (got == 0 && left == 0 && !inflater->ended)
			return codec_damaged("it is cut off", e);
	}
	if (n - at < 8 || le_get(in + at, 4) != libdeflate_crc32(0, o->out, o->done))
		return codec_damaged("its checksum does not match", e);
	return codec_whole(o, e);
}

/* ---- Brotli ---- */

static int (*brotli_decompress)(size_t n, const uint8_t *in, size_t *room, uint8_t *out);
static pthread_once_t brotli_once = PTHREAD_ONCE_INIT;

static void brotli_load(void)
{
	void *library = dlopen("libbrotlidec.so.1", RTLD_NOW | RTLD_LOCAL);

	if (library)
		*(void **)&brotli_decompress = dlsym(library, "BrotliDecoderDecompress");
}

static int brotli(const unsigned char *in, size_t n, struct codec_out *o, struct err *e)
{
	pthread_once(&brotli_once, brotli_load);
	if (!brotli_decompress)
		return err_set(e, ERR_ABSENT,
			       "the page is compressed with Brotli, whose library "
			       "(libbrotlidec.so.1) is not installed on this machine");
	o->done = o->raw;
	/* 1: all of it fitted */
	if (brotli_decompress(n, in, &o->done, o->out) != 1)
		return codec_damaged("it is not what Brotli makes", e);
	return codec_whole(o, e);
}

int parquet_decompress(int codec, const unsigned char *in, size_t n, unsigned char *out, size_t raw,
		       struct inflater *inflater, struct err *e)
{
	struct codec_out o = {out, 0, raw};
	const char *name = codec < 0 ? NULL : parquet_codec_name((unsigned)codec);

	switch (codec) {
	case PARQUET_PLAIN_BYTES:
		if (n != raw)
			return codec_damaged("its two lengths differ", e);
		memcpy(out, in, n);
		return 0;
	case PARQUET_SNAPPY:
		return snappy(in, n, &o, e);
	case PARQUET_GZIP:
		return gzip(in, n, &o, inflater, e);
	case PARQUET_ZSTD:
		return codec_zstd(in, n, &o, e);
	case PARQUET_BROTLI:
		return brotli(in, n, &o, e);
	case PARQUET_LZ4_RAW:
		return codec_lz4(in, n, &o, e);
	default:
		return err_set(e, ERR_ABSENT,
			       "pages compressed with codec %d (%s) are not read: none, snappy, "
			       "gzip, brotli, zstd and lz4_raw are",
			       codec,
			       name         ? name
			       : codec == 3 ? "lzo"
			       : codec == 5 ? "lz4 of Hadoop"
					    : "unknown");
	}
}
