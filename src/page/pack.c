/* gzip, base64. */
#include "page/pack.h"

#include <libdeflate.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"

#define LEVEL 6

static void put_base64(struct buf *out, const unsigned char *p, size_t n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char four[4];

	for (; n >= 3; n -= 3, p += 3) {
		uint32_t v = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];

		for (int i = 0; i < 4; i++)
			four[i] = digits[v >> (18 - 6 * i) & 63];
		buf_append(out, four, sizeof(four));
	}
	if (n) {
		uint32_t v = (uint32_t)p[0] << 16 | (n > 1 ? (uint32_t)p[1] << 8 : 0);

		four[0] = digits[v >> 18 & 63];
		four[1] = digits[v >> 12 & 63];
		four[2] = n > 1 ? digits[v >> 6 & 63] : '=';
		four[3] = '=';
		buf_append(out, four, sizeof(four));
	}
}

void pack_put(struct buf *out, const char *bytes, size_t n)
{
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(LEVEL);
	size_t room = c ? libdeflate_gzip_compress_bound(c, n) : 0;
	unsigned char *packed = xmalloc(room + 1);

	if (!c)
		out_of_memory();
	put_base64(out, packed, libdeflate_gzip_compress(c, bytes, n, packed, room));
	libdeflate_free_compressor(c);
	free(packed);
}
