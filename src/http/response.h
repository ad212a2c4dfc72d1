#pragma once
/* The answers of HTTP/1.1 servers, which may be anything: nothing of them is trusted, and what is
 * kept of them is bounded. Pure: bytes in, facts out. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define HTTP_HEAD_MAX 16384 /* bytes of a status line and its headers */

struct http_head {
	int status;
	bool keep;         /* the connection can be used again once the body was read */
	bool chunked;      /* the body comes in chunks; else */
	bool has_length;   /* it has `length` bytes; else it ends with the connection */
	uint64_t length;   /* at most INT64_MAX */
	const char *lines; /* the header lines, in the text that was parsed */
	size_t lines_n;
};

/* Parses what has come of an answer: how many bytes its head has, 0 when it is not whole yet, or
 * ERR_DATA with the end of a sentence that begins with the server's name ("sent ..."). */
ssize_t http_head_parse(struct http_head *h, const char *text, size_t n, struct err *e);
/* Copies the value of the first header of this name (any case), cut to the room; false, and "",
 * when there is none. */
bool http_head_get(const struct http_head *h, const char *name, char *out, size_t size);
/* Whether a body follows an answer to such a request. */
bool http_head_has_body(const struct http_head *h, bool asked_head);
/* "Sun, 06 Nov 1994 08:49:37 GMT": seconds since 1970; negative when it is no such time. */
int64_t http_date(const char *text);

/* A body in chunks. A zeroed struct begins one. */
struct http_chunks {
	int state;
	uint64_t left;   /* of the present chunk */
	unsigned digits; /* of its size */
	unsigned extra;  /* bytes of extensions and trailers so far */
	bool done;
};

/* Takes bytes of the body: returns how many (at least 1), of which *piece_n at *piece are data.
 * Nothing is to be handed in once `done`. ERR_DATA as above. */
ssize_t http_chunks_take(struct http_chunks *c, const char *in, size_t n, const char **piece,
			 size_t *piece_n, struct err *e);
