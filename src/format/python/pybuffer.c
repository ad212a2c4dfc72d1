/* The requests of a CPython file object open for reading. */
#include "format/python/pybuffer.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#define PY314_BUFFER_MIN (128u << 10)
#define PY314_BUFFER_MAX (8u << 20)
/* Up to this size of a file, Python 3.14's read() asks for the whole of it wherever it stands. */
#define PY314_SMALL_FILE 65536u

size_t pybuffer_size(uint32_t python, uint32_t block_bytes)
{
	size_t size = block_bytes > 1 ? block_bytes : 8192;

	if (python < 314)
		return size;
	if (size > PY314_BUFFER_MAX)
		size = PY314_BUFFER_MAX;
	return size < PY314_BUFFER_MIN ? PY314_BUFFER_MIN : size;
}

void pybuffer_start(struct pybuffer *p, const struct io *io, struct blob *blob, uint32_t python,
		    uint64_t file_bytes, void *buffer, size_t size)
{
	assert(size > 0);
	*p = (struct pybuffer){.io = io,
			       .blob = blob,
			       .kind = IO_META,
			       .python = python,
			       .file_bytes = file_bytes,
			       .buffer = buffer,
			       .size = size};
}

uint64_t pybuffer_tell(const struct pybuffer *p)
{
	return p->raw - (p->end - p->pos);
}

static void drop_buffered(struct pybuffer *p)
{
	p->pos = 0;
	p->end = 0;
}

void pybuffer_seek(struct pybuffer *p, uint64_t target)
{
	/* a buffer that was read to its end counts as empty, even for a step back into it */
	if (p->pos < p->end && target >= p->raw - p->end && target <= p->raw) {
		p->pos = (size_t)(target - (p->raw - p->end));
		return;
	}
	p->raw = target;
	drop_buffered(p);
}

void pybuffer_seek_end(struct pybuffer *p, uint64_t before)
{
	assert(before <= p->file_bytes);
	p->raw = p->file_bytes - before;
	drop_buffered(p);
}

static ssize_t raw_read(struct pybuffer *p, void *out, size_t n, struct err *e)
{
	ssize_t got = io_pread(p->io, p->kind, p->blob, out, n, p->raw, e);

	if (got > 0)
		p->raw += (uint64_t)got;
	return got;
}

/* Reads on into the buffer's free space. */
static ssize_t fill_buffer(struct pybuffer *p, struct err *e)
{
	ssize_t got;

	if (p->end == p->size)
		return 0;
	got = raw_read(p, p->buffer + p->end, p->size - p->end, e);
	if (got > 0)
		p->end += (size_t)got;
	return got;
}

static size_t take_buffered(struct pybuffer *p, void *out, size_t n)
{
	size_t have = p->end - p->pos;

	if (n > have)
		n = have;
	if (n)
		memcpy(out, p->buffer + p->pos, n);
	p->pos += n;
	return n;
}

ssize_t pybuffer_read(struct pybuffer *p, void *out, size_t n, struct err *e)
{
	unsigned char *to = out;
	size_t done = take_buffered(p, to, n);
	ssize_t got;

	if (done == n)
		return (ssize_t)n;
	drop_buffered(p);
	while (n - done >= p->size) {
		got = raw_read(p, to + done, (n - done) / p->size * p->size, e);
		if (got < 0)
			return got;
		if (got == 0)
			return (ssize_t)done;
		done += (size_t)got;
	}
	while (done < n && p->end < p->size) {
		got = fill_buffer(p, e);
		if (got < 0)
			return got;
		if (got == 0)
			break;
		done += take_buffered(p, to + done, n - done);
	}
	return (ssize_t)done;
}

ssize_t pybuffer_readinto(struct pybuffer *p, void *out, size_t n, struct err *e)
{
	unsigned char *to = out;
	size_t done = take_buffered(p, to, n);
	ssize_t got;

	if (done == n)
		return (ssize_t)n;
	drop_buffered(p);
	while (done < n) {
		if (n - done > p->size) {
			got = raw_read(p, to + done, n - done, e);
			if (got > 0)
				done += (size_t)got;
		} else {
			got = fill_buffer(p, e);
			if (got > 0)
				done += take_buffered(p, to + done, n - done);
		}
		if (got < 0)
			return got;
		if (got == 0)
			break;
	}
	return (ssize_t)done;
}

/* What FileIO.readall asks for first: all that is left and one byte, to see the end. */
static uint64_t first_ask(const struct pybuffer *p)
{
	uint64_t size = p->file_bytes;

	if (size == 0)
		return PYBUFFER_ALL_MIN;
	if (p->python >= 314)
		return size < PY314_SMALL_FILE || p->raw > size ? size + 1 : size - p->raw + 1;
	return p->raw > size ? PYBUFFER_ALL_MIN : size - p->raw + 1;
}

ssize_t pybuffer_read_all(struct pybuffer *p, void *out, size_t out_bytes, struct err *e)
{
	unsigned char *to = out;
	size_t done = take_buffered(p, to, out_bytes);
	uint64_t ask = first_ask(p);
	size_t whole = 0;

	drop_buffered(p);
	for (;;) {
		size_t n =
			ask - whole > out_bytes - done ? out_bytes - done : (size_t)(ask - whole);
		ssize_t got;

		if (n == 0)
			return err_set(e, ERR_DATA,
				       "the file grew while it was read: it had %" PRIu64
				       " bytes when it was opened",
				       p->file_bytes);
		got = raw_read(p, to + done, n, e);
		if (got < 0)
			return got;
		if (got == 0)
			return (ssize_t)done;
		done += (size_t)got;
		whole += (size_t)got;
	}
}
