/* Decompressing pages: Snappy and LZ4 blocks here, gzip by zlib, Zstandard by its library where it
 * is installed, but for frames that hold their bytes stored; Brotli by its library. */
#include "format/parquet/parquet_codec.h"

#include <dlfcn.h>
#include <libdeflate.h>
#include <pthread.h>
#include <string.h>

#include "base/little_endian.h"
#include "format/parquet/parquet_layout.h"

static int damaged(const char *what, struct err *e)
{
	return err_set(e, ERR_DATA, "the compressed page is damaged: %s", what);
}

struct into {
	unsigned char *out;
	size_t done, raw;
};

/* Bytes again from `back` bytes before; they may overlap what they make. */
static int repeat(struct into *o, size_t back, size_t n, struct err *e)
{
	if (back == 0 || back > o->done || n > o->raw - o->done)
		return damaged("a copy reaches outside of the page", e);
	for (size_t i = 0; i < n; i++, o->done++)
		o->out[o->done] = o->out[o->done - back];
	return 0;
}

static int literal(struct into *o, const unsigned char **at, const unsigned char *end, size_t n,
		   struct err *e)
{
	if (n > (size_t)(end - *at) || n > o->raw - o->done)
		return damaged("it is cut off", e);
	memcpy(o->out + o->done, *at, n);
	o->done += n;
	*at += n;
	return 0;
}

static int whole(const struct into *o, struct err *e)
{
	return o->done == o->raw ? 0 : damaged("it holds fewer bytes than it says", e);
}

static int snappy(const unsigned char *in, size_t n, struct into *o, struct err *e)
{
	struct thrift_in head = {in, in, in + n};
	const unsigned char *at, *end = in + n;
	uint64_t says = 0;
	int rc = 0;

	if (thrift_varint(&head, &says, NULL) < 0 || says != o->raw)
		return damaged("its length is another one", e);
	at = head.at;
	while (rc == 0 && at < end) {
		unsigned tag = *at++, kind = tag & 3, extra, length = tag >> 2;

		if (kind == 0) {
			extra = length < 60 ? 0 : length - 59;
			if (extra > (size_t)(end - at))
				return damaged("it is cut off", e);
			if (extra)
				length = (unsigned)le_get(at, extra);
			at += extra;
			rc = literal(o, &at, end, (size_t)length + 1, e);
			continue;
		}
		extra = kind == 1 ? 1 : kind == 2 ? 2 : 4;
		if (extra > (size_t)(end - at))
			return damaged("it is cut off", e);
		at += extra;
		if (kind == 1)
			rc = repeat(o, (tag >> 5) << 8 | at[-1], 4 + (length & 7), e);
		else
			rc = repeat(o, le_get(at - extra, extra), length + 1, e);
	}
	return rc < 0 ? rc : whole(o, e);
}

/* A length of 15 goes on in bytes of 255. */
static int lz4_length(const unsigned char **at, const unsigned char *end, size_t *n, struct err *e)
{
	unsigned char more;

	if (*n < 15)
		return 0;
	do {
		if (*at == end)
			return damaged("it is cut off", e);
		more = *(*at)++;
		*n += more;
	} while (more == 255);
	return 0;
}

static int lz4(const unsigned char *in, size_t n, struct into *o, struct err *e)
{
	const unsigned char *at = in, *end = in + n;
	int rc = 0;

	while (rc == 0 && at < end) {
		unsigned token = *at++;
		size_t length = token >> 4, back;

		rc = lz4_length(&at, end, &length, e) ?: literal(o, &at, end, length, e);
		if (rc < 0 || at == end)
			break;
		if (end - at < 2)
			return damaged("it is cut off", e);
		back = le_get(at, 2);
		at += 2;
		length = token & 15;
		rc = lz4_length(&at, end, &length, e) ?: repeat(o, back, length + 4, e);
	}
	return rc < 0 ? rc : whole(o, e);
}

static int gzip(const unsigned char *in, size_t n, struct into *o, struct inflater *inflater,
		struct err *e)
{
	size_t at = 10;
	unsigned flags;

	if (n < 18 || in[0] != 0x1f || in[1] != 0x8b || in[2] != 8)
		return damaged("it is not a gzip member", e);
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
		return damaged("its head is cut off", e);
	while (!inflater->ended) {
		size_t left = n - at;
		ssize_t got = inflater_run(inflater, in + at, &left, o->out + o->done,
					   o->raw - o->done, e);

		if (got < 0)
			return (int)got;
		at += left;
		o->done += (size_t)got;
		if (got == 0 && left == 0 && !inflater->ended)
			return damaged("it is cut off", e);
	}
	if (n - at < 8 || le_get(in + at, 4) != libdeflate_crc32(0, o->out, o->done))
		return damaged("its checksum does not match", e);
	return whole(o, e);
}

/* ---- Zstandard ---- */

static struct {
	size_t (*decompress)(void *out, size_t room, const void *in, size_t n);
	unsigned (*is_error)(size_t code);
} zstd_library;
static pthread_once_t zstd_once = PTHREAD_ONCE_INIT;

static void zstd_load(void)
{
	void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return;
	*(void **)&zstd_library.decompress = dlsym(library, "ZSTD_decompress");
	*(void **)&zstd_library.is_error = dlsym(library, "ZSTD_isError");
}

/* A frame of one segment whose blocks are stored: 1; 0: it is another one. */
static int zstd_stored(const unsigned char *in, size_t n, struct into *o)
{
	size_t at = 9;

	if (n < 9 || le_get(in, 4) != 0xfd2fb528u || in[4] != 0xa0 || le_get(in + 5, 4) != o->raw)
		return 0;
	while (n - at >= 3) {
		uint32_t head = (uint32_t)le_get(in + at, 3), size = head >> 3;

		at += 3;
		if ((head >> 1 & 3) != 0 || size > n - at || size > o->raw - o->done)
			break;
		memcpy(o->out + o->done, in + at, size);
		o->done += size;
		at += size;
		if (head & 1)
			return at == n && o->done == o->raw;
	}
	o->done = 0;
	return 0;
}

static int zstd(const unsigned char *in, size_t n, struct into *o, struct err *e)
{
	size_t got;

	if (zstd_stored(in, n, o))
		return 0;
	pthread_once(&zstd_once, zstd_load);
	if (!zstd_library.decompress || !zstd_library.is_error)
		return err_set(
			e, ERR_ABSENT,
			"the page is compressed with Zstandard, whose library (libzstd.so.1) "
			"is not installed on this machine");
	got = zstd_library.decompress(o->out, o->raw, in, n);
	if (zstd_library.is_error(got))
		return damaged("it is not a Zstandard frame", e);
	o->done = got;
	return whole(o, e);
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

static int brotli(const unsigned char *in, size_t n, struct into *o, struct err *e)
{
	pthread_once(&brotli_once, brotli_load);
	if (!brotli_decompress)
		return err_set(e, ERR_ABSENT,
			       "the page is compressed with Brotli, whose library "
			       "(libbrotlidec.so.1) is not installed on this machine");
	o->done = o->raw;
	/* 1: all of it fitted */
	if (brotli_decompress(n, in, &o->done, o->out) != 1)
		return damaged("it is not what Brotli makes", e);
	return whole(o, e);
}

int parquet_decompress(int codec, const unsigned char *in, size_t n, unsigned char *out, size_t raw,
		       struct inflater *inflater, struct err *e)
{
	struct into o = {out, 0, raw};
	const char *name = codec < 0 ? NULL : parquet_codec_name((unsigned)codec);

	switch (codec) {
	case PARQUET_PLAIN_BYTES:
		if (n != raw)
			return damaged("its two lengths differ", e);
		memcpy(out, in, n);
		return 0;
	case PARQUET_SNAPPY:
		return snappy(in, n, &o, e);
	case PARQUET_GZIP:
		return gzip(in, n, &o, inflater, e);
	case PARQUET_ZSTD:
		return zstd(in, n, &o, e);
	case PARQUET_BROTLI:
		return brotli(in, n, &o, e);
	case PARQUET_LZ4_RAW:
		return lz4(in, n, &o, e);
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
