#include "format/inflater.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>

static voidpf lend(voidpf opaque, uInt count, uInt size)
{
	struct zlib_memory *m = opaque;
	size_t n = ((size_t)count * size + 63) & ~(size_t)63;

	if (n > m->bytes - m->used)
		return Z_NULL;
	m->used += n;
	return m->base + m->used - n;
}

static void keep_lent(voidpf opaque, voidpf p)
{
	(void)opaque;
	(void)p;
}

void zlib_memory_lend(struct zlib_memory *m, z_stream *z)
{
	m->used = 0;
	*z = (z_stream){.zalloc = lend, .zfree = keep_lent, .opaque = m};
}

void inflater_init(struct inflater *f, unsigned char *memory)
{
	assert(memory);
	*f = (struct inflater){.memory = {.base = memory, .bytes = INFLATER_MEMORY}};
}

int inflater_start(struct inflater *f, struct err *e)
{
	int rc;

	if (!f->ready) {
		zlib_memory_lend(&f->memory, &f->z);
		rc = inflateInit2(&f->z, -MAX_WBITS);
		f->ready = rc == Z_OK;
	} else {
		rc = inflateReset(&f->z);
	}
	f->ended = false;
	if (rc != Z_OK)
		return err_set(e, -ENOMEM, "zlib cannot start inflating (code %d)", rc);
	return 0;
}

ssize_t inflater_run(struct inflater *f, const unsigned char *in, size_t *in_n, unsigned char *out,
		     size_t out_n, struct err *e)
{
	int rc;

	assert(f->ready);
	f->z.next_in = (z_const Bytef *)(uintptr_t)in;
	f->z.avail_in = *in_n < UINT_MAX ? (uInt)*in_n : UINT_MAX;
	f->z.next_out = out;
	f->z.avail_out = out_n < UINT_MAX ? (uInt)out_n : UINT_MAX;
	*in_n = f->z.avail_in;
	out_n = f->z.avail_out;
	rc = inflate(&f->z, Z_SYNC_FLUSH);
	*in_n -= f->z.avail_in;
	out_n -= f->z.avail_out;
	f->ended = rc == Z_STREAM_END;
	if (rc == Z_MEM_ERROR)
		return err_set(e, -ENOMEM,
			       "zlib needs more memory to inflate than the reader provides");
	if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
		return err_set(e, ERR_DATA, "the compressed data are damaged: %s",
			       f->z.msg ? f->z.msg : "not a deflate stream");
	return (ssize_t)out_n;
}
