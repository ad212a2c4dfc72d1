/* Layout as PyTorch 1.13 writes it; vectors of its bytes are in tests/unit/test_checkpoint_torch.c.
 * Each stream_put is one call that the library makes. */
#include "checkpoint/torch_zip.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codec/crc32.h"

#define MARK32 0xffffffffu
#define ALIGN 64u
#define FLAGS 0x0808u /* sizes in a descriptor, names in UTF-8 */

static unsigned char *le(unsigned char *p, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		*p++ = (unsigned char)(v >> 8 * i);
	return p;
}

void torch_zip_begin(struct torch_zip *z, struct stream *s, struct buf *directory)
{
	/* offsets of the records are those of the archive, not of the file */
	*z = (struct torch_zip){.stream = s, .directory = directory, .begin = s->offset};
	buf_reset(directory);
}

/* The zip64 field of a record: sizes and offset, those that 32 bits cannot hold. Before the data
 * the library does not know their stored size yet and says 0. */
static size_t wide_extra(const struct torch_zip *z, uint64_t stored, unsigned char *out)
{
	bool sizes = z->bytes >= MARK32, offset = z->local >= MARK32;
	unsigned char *p = out;

	if (!sizes && !offset)
		return 0;
	p = le(p, 1, 2);
	p = le(p, (sizes ? 16u : 0u) + (offset ? 8u : 0u), 2);
	if (sizes) {
		p = le(p, z->bytes, 8);
		p = le(p, stored, 8);
	}
	if (offset)
		p = le(p, z->local, 8);
	return (size_t)(p - out);
}

void torch_zip_record(struct torch_zip *z, const char *name, uint64_t bytes)
{
	unsigned char header[30], extra[32], pad[4 + ALIGN], *p = header;
	size_t wide, name_bytes, padding;

	snprintf(z->name, sizeof(z->name), "archive/%s", name);
	name_bytes = strlen(z->name);
	assert(name_bytes < sizeof(z->name) - 1); /* none was cut */
	z->local = z->stream->offset - z->begin;
	z->bytes = bytes;
	wide = wide_extra(z, 0, extra);
	z->wide = wide > 0;
	padding = (size_t)(z->local + sizeof(header) + name_bytes + wide + 4) % ALIGN;
	padding = (ALIGN - padding) % ALIGN;
	p = le(p, 0x04034b50, 4);
	p = le(p, 0, 2);
	p = le(p, FLAGS, 2);
	memset(p, 0, 18); /* stored, no time; CRC and sizes follow the data */
	p = le(p + 18, name_bytes, 2);
	le(p, wide + 4 + padding, 2);
	stream_put(z->stream, header, sizeof(header));
	stream_put(z->stream, z->name, name_bytes);
	if (wide)
		stream_put(z->stream, extra, wide);
	memcpy(pad, "FB", 2);
	le(pad + 2, padding, 2);
	memset(pad + 4, 'Z', padding);
	stream_put(z->stream, pad, 4 + padding);
}

void torch_zip_record_end(struct torch_zip *z, uint32_t crc)
{
	unsigned char d[24], extra[32], header[46], *p = d;
	size_t wide = wide_extra(z, z->bytes, extra), name_bytes = strlen(z->name);

	p = le(p, 0x08074b50, 4);
	p = le(p, crc, 4);
	p = le(p, z->bytes, z->wide ? 8 : 4);
	p = le(p, z->bytes, z->wide ? 8 : 4);
	stream_put(z->stream, d, (size_t)(p - d));

	memset(header, 0, sizeof(header));
	le(header, 0x02014b50, 4);
	le(header + 8, FLAGS, 2);
	le(header + 16, crc, 4);
	le(header + 20, z->bytes < MARK32 ? z->bytes : MARK32, 4);
	le(header + 24, z->bytes < MARK32 ? z->bytes : MARK32, 4);
	le(header + 28, name_bytes, 2);
	le(header + 30, wide, 2);
	le(header + 42, z->local < MARK32 ? z->local : MARK32, 4);
	buf_append(z->directory, header, sizeof(header));
	buf_append(z->directory, z->name, name_bytes);
	if (wide)
		buf_append(z->directory, extra, wide);
	z->entries++;
}

void torch_zip_put(struct torch_zip *z, const char *name, const void *bytes, size_t n)
{
	torch_zip_record(z, name, n);
	stream_put(z->stream, bytes, n);
	torch_zip_record_end(z, crc32_update(0, bytes, n));
}

void torch_zip_end(struct torch_zip *z)
{
	const uint64_t at = z->stream->offset - z->begin, n = z->directory->len;
	unsigned char e[56], *p = e;

	stream_put(z->stream, z->directory->data, z->directory->len);
	p = le(p, 0x06064b50, 4);
	p = le(p, 44, 8);
	p = le(p, 0x031e, 2);
	p = le(p, 0x2d, 2);
	p = le(p, 0, 8);
	p = le(p, z->entries, 8);
	p = le(p, z->entries, 8);
	p = le(p, n, 8);
	le(p, at, 8);
	stream_put(z->stream, e, 56);
	p = le(e, 0x07064b50, 4);
	p = le(p, 0, 4);
	p = le(p, at + n, 8);
	le(p, 1, 4);
	stream_put(z->stream, e, 20);
	p = le(e, 0x06054b50, 4);
	p = le(p, 0, 4);
	p = le(p, z->entries < 0xffff ? z->entries : 0xffff, 2);
	p = le(p, z->entries < 0xffff ? z->entries : 0xffff, 2);
	p = le(p, n < MARK32 ? n : MARK32, 4);
	p = le(p, at < MARK32 ? at : MARK32, 4);
	le(p, 0, 2);
	stream_put(z->stream, e, 22);
}
