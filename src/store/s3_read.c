/* Reading an object: as a stream, in ranges, and in blocks that are fetched ahead. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "store/s3_client.h"
#include "store/s3_store.h"

/* Whoever pipes an object in starts a program for each: no connection is kept. */
void s3_stream_end(struct s3_blob *b)
{
	if (!b->stream)
		return;
	if (b->stream->conn) {
		b->stream->conn->dropped = true;
		http_close(b->stream->conn);
	}
	s3_call_give(b->stream);
	b->stream = NULL;
}

/* The next bytes of a stream; fewer than n at its end. */
ssize_t s3_stream_read(struct s3_blob *b, void *p, size_t n, struct err *e)
{
	struct s3_call *call = b->stream;
	uint64_t before = 0;

	if (b->over || n == 0)
		return 0;
	if (!call) {
		call = b->stream = s3_call_take(s3_of(b->base.store)->client);
		call->kind = SERVER_GET;
		call->path = b->path;
		call->into = p;
		call->room = n;
		call->plain = call->piecewise = true;
		s3_call_begin(call);
	} else {
		before = call->x.got;
		http_more(call->conn, p, n);
	}
	s3_calls_wait(&call, 1, false);
	if (call->state == S3_CALL_DONE) {
		int rc = call->rc;

		if (rc < 0 && e)
			*e = call->err;
		b->over = true;
		n = (size_t)(call->x.got - before);
		s3_stream_end(b);
		if (rc < 0)
			return rc;
	}
	b->at += n;
	return (ssize_t)n;
}

uint64_t s3_clip(const struct s3_blob *b, size_t n, uint64_t offset)
{
	uint64_t size = atomic_load_explicit(&b->size, memory_order_acquire);

	if (size == UINT64_MAX)
		return n;
	return offset >= size ? 0 : n < size - offset ? n : size - offset;
}

void s3_prepare_get(struct s3_call *call, struct s3_blob *b, void *p, size_t n, uint64_t offset)
{
	call->kind = SERVER_GET;
	call->path = b->path;
	call->query = NULL;
	call->from = offset;
	call->n = n;
	call->into = p;
	call->sink_n = 0;
	call->if_match = s3_of(b->base.store)->profile->files_if_match ? b->etag : NULL;
	call->plain = false;
}

ssize_t s3_take_get(struct s3_call *call, struct s3_blob *b, struct err *e)
{
	/* behind the end of an object whose size was not known */
	if (call->rc == -ERANGE &&
	    atomic_load_explicit(&b->size, memory_order_acquire) == UINT64_MAX)
		return 0;
	if (call->rc < 0) {
		if (e)
			*e = call->err;
		return call->rc;
	}
	if (call->length != UINT64_MAX)
		atomic_store_explicit(&b->size, call->length, memory_order_release);
	return (ssize_t)call->got;
}

ssize_t s3_range_read(struct s3_blob *b, void *p, size_t n, uint64_t offset, struct err *e)
{
	struct s3_call *call = s3_call_take(s3_of(b->base.store)->client);
	ssize_t got;

	s3_prepare_get(call, b, p, n, offset);
	s3_call_run(call, NULL);
	got = s3_take_get(call, b, e);
	s3_call_give(call);
	return got;
}

/* As fsspec's ReadAheadCache: what the block has of it, and then a new block. n is what exists. */
ssize_t s3_block_read(struct s3_blob *b, char *p, size_t n, uint64_t offset, struct err *e)
{
	uint64_t end = offset + n, ahead = s3_of(b->base.store)->profile->read_ahead;
	size_t have = 0, want;
	ssize_t got;

	if (offset >= b->block_at && offset < b->block_at + b->block_n) {
		size_t in = (size_t)(offset - b->block_at);

		have = b->block_n - in < n ? b->block_n - in : n;
		memcpy(p, b->block + in, have);
		if (have == n)
			return (ssize_t)n;
	}
	offset += have;
	want = (size_t)s3_clip(b, (size_t)(end + ahead - offset), offset);
	b->block_n = 0;
	if (want > b->block_cap) {
		free(b->block);
		b->block_cap = 0;
		b->block = try_calloc(1, want, "a block that is read ahead", e);
		if (!b->block)
			return -ENOMEM;
		b->block_cap = want;
	}
	got = s3_range_read(b, b->block, want, offset, e);
	if (got < 0)
		return got;
	b->block_at = offset;
	b->block_n = (size_t)got;
	n = b->block_n < n - have ? b->block_n : n - have;
	memcpy(p + have, b->block, n);
	return (ssize_t)(have + n);
}
