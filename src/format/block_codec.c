#include "format/block_codec.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "base/little_endian.h"

int codec_damaged(const char *what, struct err *e)
{
	return err_set(e, ERR_DATA, "the compressed data are damaged: %s", what);
}

int codec_repeat(struct codec_out *o, size_t back, size_t n, struct err *e)
{
	if (back == 0 || back > o->done || n > o->raw - o->done)
		return codec_damaged("a copy reaches outside of the data", e);
	if (back >= n) {
		memcpy(o->out + o->done, o->out + o->done - back, n);
		o->done += n;
		return 0;
	}
	for (size_t i = 0; i < n; i++, o->done++)
		o->out[o->done] = o->out[o->done - back];
	return 0;
}

int codec_literal(struct codec_out *o, const unsigned char **at, const unsigned char *end, size_t n,
		  struct err *e)
{
	if (n > (size_t)(end - *at) || n > o->raw - o->done)
		return codec_damaged("it is cut off", e);
	memcpy(o->out + o->done, *at, n);
	o->done += n;
	*at += n;
	return 0;
}

int codec_whole(const struct codec_out *o, struct err *e)
{
	return o->done == o->raw ? 0 : codec_damaged("it holds fewer bytes than it says", e);
}

/* A length of 15 goes on in bytes of 255. */
static int lz4_length(const unsigned char **at, const unsigned char *end, size_t *n, struct err *e)
{
	unsigned char more;

	if (*n < 15)
		return 0;
	do {
		if (*at == end)
			return codec_damaged("it is cut off", e);
		more = *(*at)++;
		*n += more;
	} while (more == 255);
	return 0;
}

/* One block, which may repeat bytes of those before it. */
static int lz4_block(const unsigned char *in, size_t n, struct codec_out *o, struct err *e)
{
	const unsigned char *at = in, *end = in + n;
	int rc = 0;

	while (rc == 0 && at < end) {
		unsigned token = *at++;
		size_t length = token >> 4, back;

		rc = lz4_length(&at, end, &length, e) ?: codec_literal(o, &at, end, length, e);
		if (rc < 0 || at == end)
			break;
		if (end - at < 2)
			return codec_damaged("it is cut off", e);
		back = le_get(at, 2);
		at += 2;
		length = token & 15;
		rc = lz4_length(&at, end, &length, e) ?: codec_repeat(o, back, length + 4, e);
	}
	return rc;
}

int codec_lz4(const unsigned char *in, size_t n, struct codec_out *o, struct err *e)
{
	return lz4_block(in, n, o, e) ?: codec_whole(o, e);
}

/* Of the byte of flags of an LZ4 frame. */
enum { LZ4_SIZE = 8, LZ4_BLOCK_SUMS = 16, LZ4_DICTIONARY = 1 };

int codec_lz4_frame(const unsigned char *in, size_t n, struct codec_out *o, struct err *e)
{
	size_t at = 7;
	unsigned flags;
	int rc = 0;

	if (n < 7 || le_get(in, 4) != 0x184d2204u || in[4] >> 6 != 1 || in[4] & LZ4_DICTIONARY)
		return codec_damaged("it is not an LZ4 frame", e);
	flags = in[4];
	at += flags & LZ4_SIZE ? 8 : 0;
	while (rc == 0) {
		uint32_t size, stored;

		if (at > n || n - at < 4)
			return codec_damaged("it is cut off", e);
		size = (uint32_t)le_get(in + at, 4);
		at += 4;
		if (size == 0)
			break;
		stored = size >> 31;
		size &= INT32_MAX;
		if (size > n - at)
			return codec_damaged("it is cut off", e);
		if (stored) {
			const unsigned char *from = in + at;

			rc = codec_literal(o, &from, in + n, size, e);
		} else {
			rc = lz4_block(in + at, size, o, e);
		}
		at += size + (flags & LZ4_BLOCK_SUMS ? 4 : 0);
	}
	return rc < 0 ? rc : codec_whole(o, e);
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
static int zstd_stored(const unsigned char *in, size_t n, struct codec_out *o)
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

int codec_zstd(const unsigned char *in, size_t n, struct codec_out *o, struct err *e)
{
	size_t got;

	if (zstd_stored(in, n, o))
		return 0;
	pthread_once(&zstd_once, zstd_load);
	if (!zstd_library.decompress || !zstd_library.is_error)
		return err_set(
			e, ERR_ABSENT,
			"the data are compressed with Zstandard, whose library (libzstd.so.1) "
			"is not installed on this machine");
	got = zstd_library.decompress(o->out, o->raw, in, n);
	if (zstd_library.is_error(got))
		return codec_damaged("it is not a Zstandard frame", e);
	o->done = got;
	return codec_whole(o, e);
}
