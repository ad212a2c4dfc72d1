#pragma once
/* Darshan logs packed anew: the regions of a log unpacked, then packed by another method or in
 * several pieces. Independent of the reader under test. */
#include <byteswap.h>
#include <bzlib.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"

#define PACK_ROOM (16u << 20) /* of all unpacked regions */

struct pack_log {
	const uint8_t *data;
	size_t size;
	bool swap, old; /* old: the header before version 3.41 */
	size_t header, maps, modules;
};

static inline uint64_t pack_get(const struct pack_log *l, const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return l->swap ? bswap_64(v) : v;
}

static inline void pack_put(const struct pack_log *l, char *p, uint64_t v)
{
	v = l->swap ? bswap_64(v) : v;
	memcpy(p, &v, 8);
}

/* False for bytes that are no log. */
static inline bool pack_open(struct pack_log *l, const uint8_t *data, size_t size)
{
	uint64_t magic;

	*l = (struct pack_log){.data = data, .size = size};
	if (size < 360 || data[0] != '3' || data[1] != '.' || data[16] > 2)
		return false;
	memcpy(&magic, data + 8, 8);
	l->swap = bswap_64(magic) == 6567223;
	if (magic != 6567223 && !l->swap)
		return false;
	l->old = data[3] == '\0' || memchr(data + 2, '\0', 6) == NULL ||
		 atoi((const char *)data + 2) < 41;
	l->header = l->old ? 360 : 1328;
	l->maps = l->old ? 24 : 32;
	l->modules = l->old ? 16 : 64;
	return size >= l->header;
}

/* The entry of a region in the header: 0 names, 1 + id modules. */
static inline size_t pack_entry(const struct pack_log *l, size_t i)
{
	return l->maps + 16 * i;
}

/* Where the job ends. */
static inline uint64_t pack_job_end(const struct pack_log *l)
{
	uint64_t end = pack_get(l, l->data + l->maps), at;

	for (size_t i = 1; i <= l->modules && pack_get(l, l->data + l->maps) == 0; i++) {
		at = pack_get(l, l->data + pack_entry(l, i));
		if (at != 0 && (end == 0 || at < end))
			end = at;
	}
	return end == 0 ? l->size : end;
}

/* Unpacks a region; what comes before damage counts. */
static inline void pack_inflate(const uint8_t *in, size_t n, unsigned method, struct buf *out)
{
	size_t at = 0;

	if (method == 2)
		buf_append(out, in, n);
	while (method == 0 && at < n) {
		z_stream z = {.next_in = (uint8_t *)(uintptr_t)in + at, .avail_in = (uInt)(n - at)};
		uint8_t room[4096];
		int rc = inflateInit(&z);

		do {
			z.next_out = room;
			z.avail_out = sizeof(room);
			rc = inflate(&z, Z_NO_FLUSH);
			buf_append(out, room, sizeof(room) - z.avail_out);
		} while (rc == Z_OK && out->len < PACK_ROOM);
		at = n - z.avail_in;
		inflateEnd(&z);
		if (rc != Z_STREAM_END)
			break;
	}
	while (method == 1 && at < n) {
		bz_stream z = {.next_in = (char *)(uintptr_t)in + at,
			       .avail_in = (unsigned)(n - at)};
		char room[4096];
		int rc = BZ2_bzDecompressInit(&z, 0, 0);

		do {
			z.next_out = room;
			z.avail_out = sizeof(room);
			rc = BZ2_bzDecompress(&z);
			buf_append(out, room, sizeof(room) - z.avail_out);
		} while (rc == BZ_OK && out->len < PACK_ROOM && (z.avail_in || !z.avail_out));
		at = n - z.avail_in;
		BZ2_bzDecompressEnd(&z);
		if (rc != BZ_STREAM_END)
			break;
	}
}

static inline void pack_deflate(const char *in, size_t n, unsigned method, struct buf *out)
{
	uLongf z = compressBound(n);
	unsigned b = (unsigned)(n + n / 100 + 600);

	if (method == 2) {
		buf_append(out, in, n);
		return;
	}
	if (!buf_room(out, z > b ? z : b))
		abort();
	if (method == 0 &&
	    compress2((Bytef *)out->data + out->len, &z, (const Bytef *)in, n, 1) != Z_OK)
		abort();
	if (method == 1 && BZ2_bzBuffToBuffCompress(out->data + out->len, &b, (char *)(uintptr_t)in,
						    (unsigned)n, 1, 0, 0) != BZ_OK)
		abort();
	out->len += method == 0 ? z : b;
}

/* Packs bytes [at, end) of the log into `out`, in streams of at most `piece` bytes. */
static inline void pack_region(const struct pack_log *l, uint64_t at, uint64_t end, unsigned method,
			       size_t piece, struct buf *out)
{
	struct buf raw = {0};

	pack_inflate(l->data + at, (size_t)(end - at), l->data[16], &raw);
	for (size_t i = 0; i == 0 || i < raw.len; i += piece)
		pack_deflate(raw.data ? raw.data + i : "",
			     raw.len - i < piece ? raw.len - i : piece, method, out);
	buf_release(&raw);
}

/* The log of `data` with its regions packed by `method`; false for what is no log. Regions that are
 * not within the file become empty. */
static inline bool pack_again(const uint8_t *data, size_t size, unsigned method, size_t piece,
			      struct buf *out)
{
	struct pack_log l;
	uint64_t job_end, job_at;

	buf_reset(out);
	if (!pack_open(&l, data, size))
		return false;
	buf_append(out, data, l.header);
	out->data[16] = (char)method;
	job_end = pack_job_end(&l);
	if (job_end > l.header && job_end <= size)
		pack_region(&l, l.header, job_end, method, piece, out);
	job_at = out->len;
	for (size_t i = 0; i <= l.modules; i++) {
		size_t entry = pack_entry(&l, i);
		uint64_t at = pack_get(&l, data + entry), n = pack_get(&l, data + entry + 8);
		size_t begin = out->len;

		if (n == 0 || at < l.header || at > size || n > size - at) {
			pack_put(&l, out->data + entry, at ? job_at : 0);
			pack_put(&l, out->data + entry + 8, 0);
			continue;
		}
		pack_region(&l, at, at + n, method, piece, out);
		pack_put(&l, out->data + entry, begin);
		pack_put(&l, out->data + entry + 8, out->len - begin);
	}
	return true;
}
