/* Objects that are written: one PUT, or parts in parallel once they are large. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "store/s3_answer.h"
#include "store/s3_store.h"

#define PARTS_MAX 10000
#define FLIGHT_MAX 64
#define FIRST_BYTES (64u << 10)
/* So many parts have the size that was asked for; from then on the size doubles as often. */
#define PARTS_ALIKE 1000

struct part {
	struct s3_call *call; /* NULL: free */
	void *buffer;
	unsigned number;
	char query[1200];
};

struct s3_writer {
	struct s3_store *s;
	char *path;
	pthread_mutex_t lock;
	uint64_t sent; /* bytes that went into parts; what follows is in the buffer */
	char *buffer;
	size_t n, cap;
	/* The first part, which is sent last: headers are completed there once all is written. NULL
	 * before there is a second one. */
	char *first;
	size_t first_n;
	struct buf id;   /* of the upload, encoded; empty: none has begun */
	unsigned parts;  /* begun */
	unsigned flight; /* at most, and how many there are places for */
	char (*etag)[S3_ETAG_MAX];
	unsigned etags;
	int failed;
	struct err err;
	struct part part[];
};

/* ---- buffers ---- */

static size_t part_bytes(const struct s3_writer *w, unsigned part)
{
	return (size_t)w->s->options.part_bytes << (part / PARTS_ALIKE);
}

/* Those of the usual size are kept, so that they are had once. */
static void give_buffer(struct s3_writer *w, void *buffer, size_t cap)
{
	struct s3_store *s = w->s;

	pthread_mutex_lock(&s->lock);
	if (buffer && cap == (size_t)s->options.part_bytes && s->buffers < S3_BUFFERS_KEPT) {
		s->buffer[s->buffers++] = buffer;
		buffer = NULL;
	}
	pthread_mutex_unlock(&s->lock);
	free(buffer);
}

static int make_room(struct s3_writer *w, size_t n, struct err *e)
{
	struct s3_store *s = w->s;
	size_t part = (size_t)s->options.part_bytes, cap = w->cap ? w->cap : FIRST_BYTES;
	char *fresh = NULL;

	if (n <= w->cap)
		return 0;
	while (cap < n)
		cap *= 2;
	if (cap > part && n <= part)
		cap = part;
	if (cap == part) {
		pthread_mutex_lock(&s->lock);
		if (s->buffers)
			fresh = s->buffer[--s->buffers];
		pthread_mutex_unlock(&s->lock);
	}
	if (fresh && w->n)
		memcpy(fresh, w->buffer, w->n);
	if (fresh) {
		give_buffer(w, w->buffer, w->cap);
	} else {
		fresh = realloc(w->buffer, cap);
		if (!fresh)
			return err_set(e, -ENOMEM, "no memory for %zu bytes of an object", cap);
	}
	w->buffer = fresh;
	w->cap = cap;
	return 0;
}

/* ---- parts ---- */

struct s3_writer *s3_writer_begin(struct s3_store *s, const char *path)
{
	unsigned flight = (unsigned)s->options.parts_in_flight;
	struct s3_writer *w;

	assert(flight >= 1 && flight <= FLIGHT_MAX);
	w = xcalloc(1, sizeof(*w) + flight * sizeof(w->part[0]));
	w->s = s;
	w->path = xstrdup(path);
	w->flight = flight;
	pthread_mutex_init(&w->lock, NULL);
	return w;
}

static int fail(struct s3_writer *w, int rc, const struct err *why)
{
	if (!w->failed) {
		w->failed = rc;
		w->err = *why;
	}
	return w->failed;
}

/* Takes back the parts that are done. */
static void collect(struct s3_writer *w)
{
	for (unsigned i = 0; i < w->flight; i++) {
		struct part *p = &w->part[i];

		if (!p->call)
			continue;
		s3_call_step(p->call);
		if (p->call->state != S3_CALL_DONE)
			continue;
		if (p->call->rc < 0)
			fail(w, p->call->rc, &p->call->err);
		else
			memcpy(w->etag[p->number - 1], p->call->etag, S3_ETAG_MAX);
		give_buffer(w, p->buffer, p->call->body_n);
		s3_call_give(p->call);
		p->call = NULL;
	}
}

/* A free place, waiting for one. */
static struct part *place(struct s3_writer *w)
{
	struct s3_call *calls[FLIGHT_MAX];

	for (;;) {
		unsigned n = 0;

		collect(w);
		for (unsigned i = 0; i < w->flight; i++) {
			if (!w->part[i].call)
				return &w->part[i];
			calls[n++] = w->part[i].call;
		}
		s3_calls_wait(calls, n, true);
	}
}

static void wait_all(struct s3_writer *w)
{
	struct s3_call *calls[FLIGHT_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < w->flight; i++)
		if (w->part[i].call)
			calls[n++] = w->part[i].call;
	if (n)
		s3_calls_wait(calls, n, false);
	collect(w);
}

static int begin_upload(struct s3_writer *w, struct err *e)
{
	struct s3_call *call = s3_call_take(w->s->client);
	struct buf id = {0};
	int rc;

	call->kind = SERVER_MULTIPART_BEGIN;
	call->path = w->path;
	call->query = "uploads=";
	rc = s3_call_run(call, e) ?: s3_upload_id(call, &id, e);
	if (rc == 0)
		url_encode(&w->id, id.data, id.len, false);
	buf_release(&id);
	s3_call_give(call);
	if (rc == 0 && w->id.len > 1100)
		rc = err_set(e, ERR_DATA,
			     "the server gave the upload an id of more than 1,100 bytes");
	return rc;
}

/* Sends a buffer as a part; it is the part's from then on. */
static int start_part(struct s3_writer *w, void *buffer, size_t n, unsigned number, struct err *e)
{
	struct part *p = place(w);

	if (w->failed) {
		give_buffer(w, buffer, n);
		*e = w->err;
		return w->failed;
	}
	p->number = number;
	snprintf(p->query, sizeof(p->query), "partNumber=%u&uploadId=%s", number, w->id.data);
	p->buffer = buffer;
	p->call = s3_call_take(w->s->client);
	p->call->kind = SERVER_PART;
	p->call->path = w->path;
	p->call->query = p->query;
	p->call->body = buffer;
	p->call->body_n = n;
	s3_call_begin(p->call);
	s3_call_step(p->call);
	return 0;
}

/* Takes the first `n` bytes of the buffer as the next part. */
static int send_part(struct s3_writer *w, size_t n, struct err *e)
{
	size_t rest = w->n - n;
	void *whole = w->buffer;
	int rc = w->id.len ? 0 : begin_upload(w, e);

	if (rc == 0 && w->parts == PARTS_MAX)
		rc = err_set(e, -EFBIG,
			     "an object of more than %d parts, which is what S3 allows: raise "
			     "storage.s3.part_bytes",
			     PARTS_MAX);
	if (rc < 0)
		return rc;
	if (w->parts == w->etags) {
		w->etags = w->etags ? 2 * w->etags : 64;
		w->etag = xrealloc(w->etag, w->etags * sizeof(w->etag[0]));
	}
	w->buffer = NULL;
	w->cap = w->n = 0;
	if (rest) {
		rc = make_room(w, rest, e);
		if (rc < 0) {
			free(whole);
			return rc;
		}
		memcpy(w->buffer, (char *)whole + n, rest);
		w->n = rest;
	}
	w->sent += n;
	w->etag[w->parts][0] = '\0';
	if (w->parts++ == 0) {
		w->first = whole;
		w->first_n = n;
		return 0;
	}
	return start_part(w, whole, n, w->parts, e);
}

/* How much the buffer holds before a part of it has to go. */
static size_t most(const struct s3_writer *w)
{
	size_t part = part_bytes(w, w->parts), put = (size_t)w->s->options.put_bytes;

	return w->id.len || put < part ? part : put;
}

static ssize_t put_locked(struct s3_writer *w, const char *p, size_t n, uint64_t offset,
			  struct err *e)
{
	size_t left = n;

	if (w->first && offset < w->first_n && n <= w->first_n - (size_t)offset) {
		memcpy(w->first + offset, p, n);
		return (ssize_t)n;
	}
	if (offset < w->sent)
		return err_set(
			e, ERR_ABSENT,
			"bytes at %llu of an object cannot be changed: they were sent with a "
			"part of it (raise storage.s3.put_bytes to keep more of it)",
			(unsigned long long)offset);
	while (left > 0) {
		uint64_t at = offset - w->sent;
		size_t room = most(w), take;
		int rc;

		if (at >= room) {
			/* what lies between is zero, as in a file */
			rc = make_room(w, room, e);
			if (rc < 0)
				return rc;
			/* more is there after the first of several parts that one PUT could have
			 * held */
			if (w->n < room) {
				memset(w->buffer + w->n, 0, room - w->n);
				w->n = room;
			}
			rc = send_part(w, part_bytes(w, w->parts), e);
			if (rc < 0)
				return rc;
			continue;
		}
		take = left < room - (size_t)at ? left : room - (size_t)at;
		rc = make_room(w, (size_t)at + take, e);
		if (rc < 0)
			return rc;
		if (at > w->n)
			memset(w->buffer + w->n, 0, (size_t)at - w->n);
		memcpy(w->buffer + at, p, take);
		if (w->n < at + take)
			w->n = (size_t)at + take;
		p += take;
		offset += take;
		left -= take;
	}
	collect(w);
	return (ssize_t)n;
}

ssize_t s3_writer_put(struct s3_writer *w, const void *p, size_t n, uint64_t offset, struct err *e)
{
	struct err why = {0};
	ssize_t rc;

	pthread_mutex_lock(&w->lock);
	rc = w->failed ? w->failed : put_locked(w, p, n, offset, &why);
	if (rc < 0) {
		fail(w, (int)rc, &why);
		if (e)
			*e = w->err;
	}
	pthread_mutex_unlock(&w->lock);
	return rc;
}

ssize_t s3_writer_get(struct s3_writer *w, void *p, size_t n, uint64_t offset, struct err *e)
{
	ssize_t got = 0;

	pthread_mutex_lock(&w->lock);
	if (offset < w->sent)
		got = err_set(e, ERR_ABSENT, "an object that is being written cannot be read");
	else if (offset - w->sent < w->n) {
		got = (ssize_t)(n < w->n - (size_t)(offset - w->sent)
					? n
					: w->n - (size_t)(offset - w->sent));
		memcpy(p, w->buffer + (offset - w->sent), (size_t)got);
	}
	pthread_mutex_unlock(&w->lock);
	return got;
}

uint64_t s3_writer_bytes(struct s3_writer *w)
{
	uint64_t n;

	pthread_mutex_lock(&w->lock);
	n = w->sent + w->n;
	pthread_mutex_unlock(&w->lock);
	return n;
}

/* ---- the end ---- */

static int put_whole(struct s3_writer *w, struct err *e)
{
	struct s3_call *call = s3_call_take(w->s->client);
	int rc;

	call->kind = SERVER_PUT;
	call->path = w->path;
	call->body = w->buffer;
	call->body_n = w->n;
	rc = s3_call_run(call, e);
	s3_call_give(call);
	return rc;
}

/* An end that was sent again may have been done the first time. */
static bool is_there(struct s3_writer *w)
{
	struct s3_call *call = s3_call_take(w->s->client);
	bool there;

	call->kind = SERVER_HEAD;
	call->path = w->path;
	there = s3_call_run(call, NULL) == 0 && call->length == w->sent;
	s3_call_give(call);
	return there;
}

static int complete(struct s3_writer *w, struct err *e)
{
	struct s3_call *call = s3_call_take(w->s->client);
	AUTO_FREE char *query = xasprintf("uploadId=%s", w->id.data);
	struct buf body = {0};
	int rc;

	buf_puts(&body, "<CompleteMultipartUpload "
			"xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
	for (unsigned i = 0; i < w->parts; i++) {
		buf_printf(&body, "<Part><PartNumber>%u</PartNumber><ETag>", i + 1);
		for (const char *p = w->etag[i]; *p; p++) {
			if (*p == '"')
				buf_puts(&body, "&quot;");
			else if (*p == '<' || *p == '&' || *p == '>')
				buf_printf(&body, "&#%u;", (unsigned)*p);
			else
				buf_putc(&body, *p);
		}
		buf_puts(&body, "</ETag></Part>");
	}
	buf_puts(&body, "</CompleteMultipartUpload>");
	call->kind = SERVER_MULTIPART_END;
	call->path = w->path;
	call->query = query;
	call->body = body.data;
	call->body_n = body.len;
	rc = s3_call_run(call, e);
	if (rc == -ENOENT && (call->tries || call->reused_again) && is_there(w))
		rc = 0;
	s3_call_give(call);
	buf_release(&body);
	return rc;
}

/* Parts of an upload that does not end would be kept, and paid for. */
static void abort_upload(struct s3_writer *w, struct err *e)
{
	struct s3_call *call = s3_call_take(w->s->client);
	AUTO_FREE char *query = xasprintf("uploadId=%s", w->id.data);
	struct err why = {0};

	call->kind = SERVER_MULTIPART_ABORT;
	call->path = w->path;
	call->query = query;
	if (s3_call_run(call, &why) < 0 && why.code != -ENOENT && e)
		err_wrap(e, "the parts of an upload were left behind (abort it by hand)");
	s3_call_give(call);
}

int s3_writer_end(struct s3_writer *w, struct err *e)
{
	struct err why = {0};
	int rc = w->failed;

	if (rc < 0)
		why = w->err;
	else if (!w->id.len && w->n <= most(w) && (w->s->options.put_bytes || !w->n))
		rc = put_whole(w, &why);
	else if (w->n)
		rc = send_part(w, w->n, &why);
	if (rc == 0 && w->first) {
		rc = start_part(w, w->first, w->first_n, 1, &why);
		w->first = NULL;
	}
	wait_all(w);
	if (rc == 0 && w->failed) {
		rc = w->failed;
		why = w->err;
	}
	if (rc == 0 && w->id.len)
		rc = complete(w, &why);
	if (rc < 0 && w->id.len)
		abort_upload(w, &why);
	if (rc < 0 && e)
		*e = why;
	give_buffer(w, w->buffer, w->cap);
	free(w->first);
	buf_release(&w->id);
	free(w->etag);
	free(w->path);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return rc;
}
