#pragma once
/* What the files of the store s3 share. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "store/async.h"
#include "store/s3_client.h"
#include "store/s3_profile.h"
#include "store/store.h"

#define S3_BUFFERS_KEPT 32

struct s3_store {
	struct store base;
	struct s3_options options;
	struct s3_client *client;
	const struct s3_profile *profile;
	/* of the buffers of parts that nobody uses, and of the folders that were looked at for
	 * unfinished uploads */
	pthread_mutex_t lock;
	struct str_list looked;
	void *buffer[S3_BUFFERS_KEPT];
	unsigned buffers;
};

struct s3_writer;

struct s3_blob {
	struct blob base;
	unsigned how;
	_Atomic uint64_t size; /* UINT64_MAX: not known yet */
	int64_t modified_s;
	struct s3_writer *writer; /* NULL: open for reading */
	/* STORE_STREAM: its one request, where its next byte lies, and whether all have come */
	struct s3_call *stream;
	uint64_t at;
	bool over;
	/* Of a client with read_ahead: the block that was fetched last. Whoever finds it in use
	 * asks without it. */
	_Atomic bool block_used;
	char *block;
	size_t block_cap, block_n;
	uint64_t block_at;
	char etag[S3_ETAG_MAX];
	char path[S3_PATH_MAX]; /* "/bucket/key", encoded */
};

static inline struct s3_store *s3_of(struct store *s)
{
	return (struct s3_store *)s;
}

/* An object that appears when it ends. Bytes come in order, but for what lies in the last part. */
struct s3_writer *s3_writer_begin(struct s3_store *s, const char *path);
ssize_t s3_writer_put(struct s3_writer *w, const void *p, size_t n, uint64_t offset, struct err *e);
/* Of what is not sent yet. */
ssize_t s3_writer_get(struct s3_writer *w, void *p, size_t n, uint64_t offset, struct err *e);
uint64_t s3_writer_bytes(struct s3_writer *w);
/* Releases it; the object is there, or an error and nothing of it. */
int s3_writer_end(struct s3_writer *w, struct err *e);

/* How many bytes of a read exist, as far as that is known. */
uint64_t s3_clip(const struct s3_blob *b, size_t n, uint64_t offset);
/* Sets up a GET, and what came of it: bytes or negative. */
void s3_prepare_get(struct s3_call *call, struct s3_blob *b, void *p, size_t n, uint64_t offset);
ssize_t s3_take_get(struct s3_call *call, struct s3_blob *b, struct err *e);

/* At an offset; as far as the object goes. */
ssize_t s3_range_read(struct s3_blob *b, void *p, size_t n, uint64_t offset, struct err *e);
/* The same through the blob's block, which is fetched anew where it does not hold them. Its caller
 * holds block_used. */
ssize_t s3_block_read(struct s3_blob *b, char *p, size_t n, uint64_t offset, struct err *e);
/* STORE_STREAM: the next bytes, fewer than n at the end of the object; and the end of its request.
 */
ssize_t s3_stream_read(struct s3_blob *b, void *p, size_t n, struct err *e);
void s3_stream_end(struct s3_blob *b);

extern const struct store_queue_ops s3_queue_ops;
