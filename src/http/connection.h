#pragma once
/* One connection to an HTTP server, and the request that is under way on it: stepped by whoever
 * waits for its descriptor, so that one thread can have any number of them. A body goes straight
 * from the socket into the caller's memory.
 *
 * Neither struct allocates once the connection stands, but for TLS, which does as it likes. */
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "http/response.h"
#include "http/tls.h"
#include "http/url.h"

#define HTTP_ADDRESSES_MAX 16

/* Bytes and time limits; 0: no limit. */
struct http_limits {
	int64_t connect_ns; /* until the connection stands, with TLS and proxy */
	int64_t first_ns;   /* from the last byte of a request to the first of the answer */
	int64_t idle_ns;    /* without a byte moved in either direction */
};

/* A server: where it is and how it is reached. Shared by all connections to it. */
struct http_server {
	struct url url, proxy;
	bool proxied;
	char proxy_login[512]; /* "user:password" in base64; "" */
	struct tls *tls;
	struct http_limits limits;
	pthread_mutex_t lock; /* of the addresses */
	struct sockaddr_storage address[HTTP_ADDRESSES_MAX];
	socklen_t address_n[HTTP_ADDRESSES_MAX];
	unsigned addresses;
	_Atomic unsigned next_address;
	_Atomic uint64_t opened, wire_sent, wire_received; /* connections; bytes, below TLS not */
};

/* Reads the environment for a proxy; ERR_USAGE for a wrong one, ERR_ABSENT without a libssl. */
int http_server_init(struct http_server *s, const struct url *url, const struct http_limits *limits,
		     struct err *e);
void http_server_release(struct http_server *s);

enum http_end {
	HTTP_RUNNING,
	HTTP_DONE,          /* an answer is there, of any status */
	HTTP_NO_CONNECTION, /* refused, no such host, TLS, the proxy */
	HTTP_RESET,         /* lost before the first byte of the answer */
	HTTP_CUT,           /* lost in the middle of the answer */
	HTTP_LATE_CONNECT,  /* limits */
	HTTP_LATE_FIRST,
	HTTP_LATE_IDLE,
	HTTP_MALFORMED, /* no HTTP, or beyond a bound */
	HTTP_UNTRUSTED, /* a certificate */
};

struct http_exchange {
	/* the request: bytes of its head and, maybe, a body; lent until the end */
	const char *head;
	size_t head_n;
	const void *body;
	size_t body_n;
	bool asks_head; /* HEAD: no body follows the answer */
	/* where the body of a 2xx answer goes, when `into` is not NULL; more than `room` is
	 * HTTP_MALFORMED. With sink_n, `into` has so many bytes only, and they are written over
	 * again and again: the body is counted. Other bodies are appended to `text`, up to text_max
	 * bytes. */
	void *into;
	size_t room, sink_n;
	/* The body is taken piece by piece: when `into` is full, http_step returns HTTP_RUNNING
	 * with `full`, and whoever gives it further memory (http_more) steps it again. */
	bool piecewise, full;
	uint64_t base; /* of `into`, in the body */
	struct buf *text;
	size_t text_max;

	/* the answer */
	struct http_head answer; /* its lines are the connection's, until its next request */
	uint64_t got;            /* bytes of the body */
	int64_t sent_ns, first_ns, done_ns;
	struct err err; /* the end of a sentence that begins with the server's name */
};

struct http_connection {
	struct http_server *server;
	int fd; /* -1: not open */
	int state;
	bool wants_write;
	unsigned first, tried; /* of the addresses, by the present attempt to connect */
	bool reused;           /* carried a request before the present one */
	bool dropped;          /* the caller's: closed by it, though it could have been kept */
	int64_t deadline_ns;   /* INT64_MAX: none */
	struct tls_session *tls;
	struct http_exchange *x;
	size_t head_sent, body_sent;
	bool any; /* of the answer */
	struct http_chunks chunks;
	uint64_t left; /* of a body with a length */
	size_t in_n, in_at;
	unsigned interim; /* answers 1xx so far */
	/* the caller's, for an epoll: the descriptor that is in it (-1 once that was closed) and
	 * the events it is watched for */
	int watched;
	short watched_for;
	void *owner;
	char in[HTTP_HEAD_MAX];
};

struct http_connection *http_connection_new(struct http_server *s);
void http_connection_free(struct http_connection *c);
/* Opens the connection if it is not open, and waits for that: before time is measured. */
int http_open(struct http_connection *c, struct err *e);
/* Begins a request, opening the connection if it is not open. Step it then. */
void http_begin(struct http_connection *c, struct http_exchange *x);
/* As far as it goes without waiting. HTTP_RUNNING: call it again when the descriptor is ready, or
 * at deadline_ns. After anything else but HTTP_DONE the connection is closed; after HTTP_DONE fd is
 * -1 if it cannot be used again. */
enum http_end http_step(struct http_connection *c);
void http_close(struct http_connection *c);
/* The next piece of a body goes there. */
void http_more(struct http_connection *c, void *into, size_t n);
/* What the descriptor is to be polled for (POLLIN, POLLOUT). */
short http_events(const struct http_connection *c);
/* Waits until one of `n` connections can be stepped or a deadline is past, at most until
 * `until_ns`. */
void http_wait(struct http_connection *const *c, size_t n, int64_t until_ns);
