#include "http/connection.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "http/base64.h"

#define INTERIM_MAX 8
#define WAIT_MAX 64
#define PIECE (64u << 10) /* of bodies that are not received in place */
/* A head is received with little more than itself, so that the body is not copied. */
#define HEAD_PIECE 2048u
#define CONNECT_ROOM 1024

enum { IDLE, CONNECTING, PROXY_SENDING, PROXY_ANSWER, HANDSHAKE, SENDING, HEAD, BODY, ENDED };

/* ---- servers ---- */

static int take_proxy(struct http_server *s, const char *text, struct err *e)
{
	const char *scheme = strstr(text, "://"), *from = scheme ? scheme + 3 : text,
		   *at = memchr(from, '@', strcspn(from, "/"));
	AUTO_FREE char *bare = NULL, *login = NULL;
	int rc;

	bare = at ? xasprintf("%.*s%s", (int)(from - text), text, at + 1) : xstrdup(text);
	rc = url_parse(&s->proxy, bare, e);
	if (rc == 0 && s->proxy.tls)
		rc = err_set(e, ERR_USAGE, "a proxy that is reached by https is not supported");
	if (rc < 0)
		return err_wrap(e, "the proxy that HTTPS_PROXY or HTTP_PROXY names");
	if (at) {
		login = xstrndup(from, (size_t)(at - from));
		base64(login, url_decode(login), s->proxy_login, sizeof(s->proxy_login));
	}
	s->proxied = true;
	s->proxy.target = "";
	return 0;
}

int http_server_init(struct http_server *s, const struct url *url, const struct http_limits *limits,
		     struct err *e)
{
	const char *proxy = url_proxy(url);
	struct err why = {0};

	memset(s, 0, sizeof(*s));
	s->url = *url;
	s->url.target = "";
	s->limits = *limits;
	pthread_mutex_init(&s->lock, NULL);
	if (url->tls) {
		s->tls = tls_load(&why);
		if (!s->tls)
			return err_set(e, why.code, "%s", why.text);
	}
	return proxy ? take_proxy(s, proxy, e ? e : &why) : 0;
}

void http_server_release(struct http_server *s)
{
	pthread_mutex_destroy(&s->lock);
}

/* Names are looked up for the first connection, and again after one failed. */
static int look_up(struct http_server *s, struct err *e)
{
	const struct url *u = s->proxied ? &s->proxy : &s->url;
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	char port[8];
	int rc;

	pthread_mutex_lock(&s->lock);
	if (s->addresses == 0) {
		snprintf(port, sizeof(port), "%u", u->port);
		rc = getaddrinfo(u->host, port, &hints, &found);
		if (rc != 0) {
			pthread_mutex_unlock(&s->lock);
			return err_set(e, -EHOSTUNREACH, "has a name that cannot be looked up (%s)",
				       gai_strerror(rc));
		}
		for (struct addrinfo *a = found; a && s->addresses < HTTP_ADDRESSES_MAX;
		     a = a->ai_next) {
			memcpy(&s->address[s->addresses], a->ai_addr, a->ai_addrlen);
			s->address_n[s->addresses++] = a->ai_addrlen;
		}
		freeaddrinfo(found);
	}
	pthread_mutex_unlock(&s->lock);
	return 0;
}

static void forget_addresses(struct http_server *s)
{
	pthread_mutex_lock(&s->lock);
	s->addresses = 0;
	pthread_mutex_unlock(&s->lock);
}

/* ---- connections ---- */

struct http_connection *http_connection_new(struct http_server *s)
{
	struct http_connection *c = xcalloc(1, sizeof(*c));

	c->server = s;
	c->fd = c->watched = -1;
	return c;
}

void http_close(struct http_connection *c)
{
	tls_end(c->tls);
	c->tls = NULL;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = c->watched = -1;
	c->reused = false;
	c->state = IDLE;
}

void http_connection_free(struct http_connection *c)
{
	if (!c)
		return;
	http_close(c);
	free(c);
}

static void limit(struct http_connection *c, int64_t ns)
{
	c->deadline_ns = ns > 0 ? clock_now_ns() + ns : INT64_MAX;
}

/* Bytes were moved: what runs until the connection stands is not put off by them. */
static void moved(struct http_connection *c)
{
	if (c->state > HANDSHAKE)
		limit(c, c->server->limits.idle_ns);
}

static enum http_end fail(struct http_connection *c, enum http_end end)
{
	http_close(c);
	c->x->done_ns = clock_now_ns();
	return end;
}

static int start_connecting(struct http_connection *c)
{
	struct http_server *s = c->server;
	struct err *e = &c->x->err;
	struct sockaddr_storage to;
	socklen_t to_n;
	unsigned n;
	int one = 1, rc = look_up(s, e);

	if (rc < 0)
		return rc;
	if (c->tried == 0)
		c->first = atomic_fetch_add_explicit(&s->next_address, 1, memory_order_relaxed);
	pthread_mutex_lock(&s->lock);
	n = s->addresses ? (c->first % s->addresses + c->tried) % s->addresses : 0;
	to = s->address[n];
	to_n = s->address_n[n];
	pthread_mutex_unlock(&s->lock);
	c->fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return err_sys(e, errno, "cannot be connected to%s",
			       errno == EMFILE ? " (each connection needs a descriptor: ulimit -n)"
					       : "");
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c->state = CONNECTING;
	c->wants_write = true;
	if (connect(c->fd, (struct sockaddr *)&to, to_n) != 0 && errno != EINPROGRESS &&
	    errno != EINTR)
		return err_sys(e, errno, "cannot be connected to");
	return 0;
}

/* 1: it stands; 0: not yet; negative. */
static int connected(struct http_connection *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLOUT};
	int code = 0;
	socklen_t n = sizeof(code);

	if (poll(&p, 1, 0) == 0)
		return 0;
	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &code, &n) != 0)
		code = errno;
	if (code)
		return err_sys(&c->x->err, code, "cannot be connected to");
	return 1;
}

/* ---- bytes ---- */

/* Bytes; 0 at the end; negative: it would wait (c->wants_write says for what), or -1 with err. */
#define WOULD_WAIT (-2)

static ssize_t receive(struct http_connection *c, void *p, size_t n)
{
	ssize_t r;

	if (c->tls) {
		r = tls_read(c->tls, p, n, &c->x->err);
		c->wants_write = r == TLS_WANTS_WRITE;
		if (r == TLS_WANTS_READ || r == TLS_WANTS_WRITE)
			return WOULD_WAIT;
	} else {
		do
			r = recv(c->fd, p, n, 0);
		while (r < 0 && errno == EINTR);
		c->wants_write = false;
		if (r < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return WOULD_WAIT;
		if (r < 0)
			err_sys(&c->x->err, errno, "broke the connection");
	}
	if (r > 0) {
		atomic_fetch_add_explicit(&c->server->wire_received, (uint64_t)r,
					  memory_order_relaxed);
		moved(c);
	}
	return r < 0 ? -1 : r;
}

static ssize_t transmit(struct http_connection *c, const struct iovec *v, int pieces)
{
	ssize_t r;

	if (c->tls) {
		r = tls_write(c->tls, v[0].iov_base, v[0].iov_len, &c->x->err);
		c->wants_write = r != TLS_WANTS_READ;
		if (r == TLS_WANTS_READ || r == TLS_WANTS_WRITE)
			return WOULD_WAIT;
		if (r == 0)
			r = -1;
	} else {
		const struct msghdr m = {.msg_iov = (struct iovec *)(uintptr_t)v,
					 .msg_iovlen = (size_t)pieces};

		do
			r = sendmsg(c->fd, &m, MSG_NOSIGNAL);
		while (r < 0 && errno == EINTR);
		c->wants_write = true;
		if (r < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return WOULD_WAIT;
		if (r < 0)
			err_sys(&c->x->err, errno, "broke the connection");
	}
	if (r > 0) {
		atomic_fetch_add_explicit(&c->server->wire_sent, (uint64_t)r, memory_order_relaxed);
		moved(c);
	}
	return r < 0 ? -1 : r;
}

/* ---- the steps: 1 went on, 0 waits, or the end as a negative number ---- */

static int end_with(struct http_connection *c, enum http_end end)
{
	return -(int)fail(c, end);
}

static int lost(struct http_connection *c)
{
	if (!c->x->err.code)
		err_set(&c->x->err, -ECONNRESET, "closed the connection %s",
			c->any ? "in the middle of an answer" : "without an answer");
	return end_with(c, c->any ? HTTP_CUT : HTTP_RESET);
}

static int broken(struct http_connection *c)
{
	return end_with(c, HTTP_MALFORMED);
}

static int no_connection(struct http_connection *c)
{
	forget_addresses(c->server);
	return end_with(c,
			c->x->err.code == -EPERM && c->tls ? HTTP_UNTRUSTED : HTTP_NO_CONNECTION);
}

/* A name can have addresses that nobody listens at, as localhost's ::1: the next one is tried. */
static int next_address(struct http_connection *c)
{
	unsigned addresses;

	pthread_mutex_lock(&c->server->lock);
	addresses = c->server->addresses;
	pthread_mutex_unlock(&c->server->lock);
	if (++c->tried >= addresses)
		return no_connection(c);
	http_close(c);
	c->x->err.code = 0;
	return 1;
}

static void start_sending(struct http_connection *c)
{
	c->state = SENDING;
	c->wants_write = true;
	limit(c, c->server->limits.idle_ns);
}

static int start_tls(struct http_connection *c)
{
	if (!c->server->tls) {
		start_sending(c);
		return 1;
	}
	c->tls = tls_begin(c->server->tls, c->fd, c->server->url.host, &c->x->err);
	if (!c->tls)
		return no_connection(c);
	c->state = HANDSHAKE;
	return 1;
}

static int step_connecting(struct http_connection *c)
{
	int rc = connected(c);

	if (rc <= 0)
		return rc < 0 ? next_address(c) : 0;
	atomic_fetch_add_explicit(&c->server->opened, 1, memory_order_relaxed);
	if (c->server->proxied && c->server->url.tls) {
		c->state = PROXY_SENDING;
		c->head_sent = 0;
		return 1;
	}
	return start_tls(c);
}

static int step_proxy_sending(struct http_connection *c)
{
	const struct http_server *s = c->server;
	char text[CONNECT_ROOM];
	ssize_t r;
	int n = snprintf(text, sizeof(text),
			 "CONNECT %s%s%s:%u HTTP/1.1\r\nHost: %s:%u\r\n%s%s%s\r\n",
			 strchr(s->url.host, ':') ? "[" : "", s->url.host,
			 strchr(s->url.host, ':') ? "]" : "", s->url.port, s->url.host, s->url.port,
			 s->proxy_login[0] ? "Proxy-Authorization: Basic " : "", s->proxy_login,
			 s->proxy_login[0] ? "\r\n" : "");
	struct iovec v = {.iov_base = text + c->head_sent, .iov_len = (size_t)n - c->head_sent};

	if (n < 0 || (size_t)n >= sizeof(text)) {
		err_set(&c->x->err, -ENAMETOOLONG, "has a name that is too long for the proxy");
		return no_connection(c);
	}
	r = transmit(c, &v, 1);
	if (r < 0)
		return r == WOULD_WAIT ? 0 : no_connection(c);
	c->head_sent += (size_t)r;
	if (c->head_sent == (size_t)n) {
		c->state = PROXY_ANSWER;
		c->in_n = 0;
	}
	return 1;
}

static int step_proxy_answer(struct http_connection *c)
{
	struct http_head h;
	/* byte by byte: what follows is TLS's */
	ssize_t r = c->in_n < HTTP_HEAD_MAX ? receive(c, c->in + c->in_n, 1) : -1;

	if (r == WOULD_WAIT)
		return 0;
	if (r > 0) {
		c->in_n += (size_t)r;
		if (c->in[c->in_n - 1] != '\n')
			return 1;
		r = http_head_parse(&h, c->in, c->in_n, &c->x->err);
		if (r == 0)
			return 1;
		if (r > 0 && h.status / 100 == 2) {
			c->in_n = 0;
			return start_tls(c);
		}
		if (r > 0)
			err_set(&c->x->err, -EACCES,
				"cannot be reached through the proxy %s, which answered %d",
				c->server->proxy.authority, h.status);
	}
	if (!c->x->err.code)
		err_set(&c->x->err, -ECONNRESET, "cannot be reached: the proxy %s hung up",
			c->server->proxy.authority);
	return no_connection(c);
}

static int step_handshake(struct http_connection *c)
{
	int rc = tls_handshake(c->tls, &c->x->err);

	if (rc == TLS_WANTS_READ || rc == TLS_WANTS_WRITE) {
		c->wants_write = rc == TLS_WANTS_WRITE;
		return 0;
	}
	if (rc != 1) {
		if (!c->x->err.code)
			err_set(&c->x->err, -ECONNRESET, "hung up while agreeing on TLS");
		return no_connection(c);
	}
	start_sending(c);
	return 1;
}

/* A server that refuses a request may answer before it has all of it. */
static bool has_answered(const struct http_connection *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};

	return poll(&p, 1, 0) > 0 && p.revents & (POLLIN | POLLHUP);
}

static void await_answer(struct http_connection *c)
{
	c->state = HEAD;
	c->wants_write = false;
	c->in_n = c->in_at = 0;
	c->x->sent_ns = clock_now_ns();
	limit(c, c->server->limits.first_ns);
}

static int step_sending(struct http_connection *c)
{
	const struct http_exchange *x = c->x;
	struct iovec v[2];
	int pieces = 0;
	ssize_t r;

	if (!x->head_n) { /* http_open */
		c->reused = true;
		c->state = IDLE;
		return -(int)HTTP_DONE;
	}
	if (c->head_sent < x->head_n)
		v[pieces++] = (struct iovec){(char *)(uintptr_t)x->head + c->head_sent,
					     x->head_n - c->head_sent};
	if (c->body_sent < x->body_n)
		v[pieces++] = (struct iovec){(char *)(uintptr_t)x->body + c->body_sent,
					     x->body_n - c->body_sent};
	r = transmit(c, v, pieces);
	if (r == WOULD_WAIT || (r > 0 && c->body_sent && !c->tls)) {
		if (c->body_sent && !c->tls && has_answered(c)) {
			await_answer(c);
			return 1;
		}
		if (r == WOULD_WAIT)
			return 0;
	}
	if (r < 0) {
		/* why it hung up may be there to read */
		if (c->head_sent < x->head_n || c->tls)
			return lost(c);
		memset(&c->x->err, 0, sizeof(c->x->err));
		await_answer(c);
		return 1;
	}
	if (c->head_sent < x->head_n) {
		size_t head = x->head_n - c->head_sent;

		head = (size_t)r < head ? (size_t)r : head;
		c->head_sent += head;
		r -= (ssize_t)head;
	}
	c->body_sent += (size_t)r;
	if (c->head_sent < x->head_n || c->body_sent < x->body_n)
		return 1;
	await_answer(c);
	return 0; /* there is no answer yet */
}

static int finish(struct http_connection *c)
{
	struct http_exchange *x = c->x;
	bool whole = c->head_sent == x->head_n && c->body_sent == x->body_n;

	x->done_ns = clock_now_ns();
	c->reused = true;
	c->state = IDLE;
	if (!x->answer.keep || !whole || c->in_at < c->in_n)
		http_close(c);
	return -(int)HTTP_DONE;
}

/* Bytes of the body that were received elsewhere. */
static int put(struct http_connection *c, const char *p, size_t n)
{
	struct http_exchange *x = c->x;
	bool direct = x->into && x->answer.status / 100 == 2;

	if (direct ? n > x->room - x->got : !x->text || n > x->text_max - x->got) {
		err_set(&x->err, ERR_DATA, "sent more than the %llu bytes that were asked for",
			(unsigned long long)(direct ? x->room : x->text_max));
		return -1;
	}
	if (direct && !x->sink_n)
		memcpy((char *)x->into + (x->got - x->base), p, n);
	else if (!direct)
		buf_append(x->text, p, n);
	x->got += n;
	return 0;
}

static int start_body(struct http_connection *c)
{
	struct http_exchange *x = c->x;
	bool direct = x->into && x->answer.status / 100 == 2;

	if (!http_head_has_body(&x->answer, x->asks_head))
		return finish(c);
	if (x->answer.has_length && !(direct && x->piecewise) &&
	    x->answer.length > (direct ? x->room : x->text_max)) {
		err_set(&x->err, ERR_DATA,
			"announces %llu bytes, more than the %llu that were asked for",
			(unsigned long long)x->answer.length,
			(unsigned long long)(direct ? x->room : x->text_max));
		return broken(c);
	}
	if (!x->answer.has_length && !x->answer.chunked)
		x->answer.keep = false;
	memset(&c->chunks, 0, sizeof(c->chunks));
	c->left = x->answer.length;
	c->state = BODY;
	return 1;
}

static int step_head(struct http_connection *c)
{
	struct http_exchange *x = c->x;
	size_t room = HTTP_HEAD_MAX - c->in_n;
	ssize_t r = receive(c, c->in + c->in_n, room < HEAD_PIECE ? room : HEAD_PIECE), used;

	if (r == WOULD_WAIT)
		return 0;
	if (r <= 0)
		return lost(c);
	if (!c->any)
		x->first_ns = clock_now_ns();
	c->any = true;
	c->in_n += (size_t)r;
	for (;;) {
		used = http_head_parse(&x->answer, c->in, c->in_n, &x->err);
		if (used < 0)
			return broken(c);
		if (used == 0)
			return 1;
		if (x->answer.status >= 200)
			break;
		if (++c->interim > INTERIM_MAX || x->answer.status == 101) {
			err_set(&x->err, ERR_DATA, "sent answers 1xx without end");
			return broken(c);
		}
		memmove(c->in, c->in + used, c->in_n - (size_t)used);
		c->in_n -= (size_t)used;
	}
	c->in_at = (size_t)used;
	return start_body(c);
}

/* Consumes what is at p; 1, or an end. */
static int take_body(struct http_connection *c, const char *p, size_t n, size_t *used)
{
	struct http_exchange *x = c->x;

	*used = 0;
	if (!x->answer.chunked) {
		*used = x->answer.has_length && n > c->left ? (size_t)c->left : n;
		if (x->answer.has_length)
			c->left -= *used;
		return put(c, p, *used) < 0 ? broken(c) : 1;
	}
	while (*used < n && !c->chunks.done) {
		const char *piece;
		size_t piece_n;
		ssize_t took = http_chunks_take(&c->chunks, p + *used, n - *used, &piece, &piece_n,
						&x->err);

		if (took < 0 || put(c, piece, piece_n) < 0)
			return broken(c);
		*used += (size_t)took;
	}
	return 1;
}

static bool body_is_whole(const struct http_connection *c)
{
	const struct http_head *h = &c->x->answer;

	return h->chunked ? c->chunks.done : h->has_length && c->left == 0;
}

static int step_body(struct http_connection *c)
{
	struct http_exchange *x = c->x;
	bool direct = x->into && x->answer.status / 100 == 2 && !x->answer.chunked;
	bool paced = x->piecewise && x->answer.status / 100 == 2;
	size_t space = paced ? x->room - (size_t)x->got : SIZE_MAX;
	char piece[PIECE];
	size_t used;
	ssize_t r;
	int rc;

	if (c->in_at < c->in_n && space) {
		size_t n = c->in_n - c->in_at;

		rc = take_body(c, c->in + c->in_at, n < space ? n : space, &used);
		if (rc < 0)
			return rc;
		c->in_at += used;
	}
	if (body_is_whole(c))
		return finish(c);
	if (paced && x->got == x->room) {
		x->full = true;
		return 0;
	}
	if (c->in_at < c->in_n)
		return 1;
	if (direct) {
		size_t room = x->room - (size_t)x->got;

		if (x->answer.has_length && room > c->left)
			room = (size_t)c->left;
		/* one byte more tells whether a body without a length ends here */
		if (x->sink_n && room > x->sink_n)
			room = x->sink_n;
		if (room > 0) {
			r = receive(c, (char *)x->into + (x->sink_n ? 0 : x->got - x->base), room);
			if (r > 0) {
				x->got += (uint64_t)r;
				c->left -= x->answer.has_length ? (uint64_t)r : 0;
				return body_is_whole(c) ? finish(c) : 1;
			}
		} else {
			r = receive(c, piece, 1);
		}
	} else {
		r = receive(c, piece, sizeof(piece) < space ? sizeof(piece) : space);
	}
	if (r == WOULD_WAIT)
		return 0;
	/* TLS tells a connection that was cut from one that was ended */
	if (r == 0 && !x->answer.has_length && !x->answer.chunked && !x->err.code)
		return finish(c);
	if (r <= 0)
		return lost(c);
	rc = take_body(c, piece, (size_t)r, &used);
	if (rc < 0)
		return rc;
	if (used < (size_t)r)
		x->answer.keep = false;
	return body_is_whole(c) ? finish(c) : 1;
}

static enum http_end late(struct http_connection *c)
{
	static const char *const what[] = {
		[HTTP_LATE_CONNECT] = "could not be connected to in time",
		[HTTP_LATE_FIRST] = "sent no answer in time",
		[HTTP_LATE_IDLE] = "stopped in the middle of a transfer",
	};
	enum http_end end = c->state <= HANDSHAKE         ? HTTP_LATE_CONNECT
			    : c->state == HEAD && !c->any ? HTTP_LATE_FIRST
							  : HTTP_LATE_IDLE;

	err_set(&c->x->err, -ETIMEDOUT, "%s", what[end]);
	return fail(c, end);
}

/* Whether a kept connection was closed, or holds bytes that nobody asked for: they would be taken
 * for the next answer. */
static bool is_spent(struct http_connection *c)
{
	struct err unused;
	char byte;
	ssize_t r;

	if (c->tls) {
		r = tls_read(c->tls, &byte, 1, &unused);
		return r != TLS_WANTS_READ && r != TLS_WANTS_WRITE;
	}
	r = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	return r >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void http_begin(struct http_connection *c, struct http_exchange *x)
{
	if (c->fd >= 0 && is_spent(c))
		http_close(c);
	c->x = x;
	c->head_sent = c->body_sent = 0;
	c->in_n = c->in_at = 0;
	c->interim = 0;
	c->any = false;
	memset(&x->answer, 0, sizeof(x->answer));
	x->got = 0;
	x->sent_ns = x->first_ns = x->done_ns = 0;
	x->err.code = 0;
	x->err.text[0] = '\0';
	if (c->fd >= 0) {
		start_sending(c);
		return;
	}
	c->state = IDLE;
	c->tried = 0;
	limit(c, c->server->limits.connect_ns);
}

enum http_end http_step(struct http_connection *c)
{
	int rc = 1;

	while (rc > 0) {
		switch (c->state) {
		case IDLE:
			rc = start_connecting(c) < 0 ? next_address(c) : 1;
			break;
		case CONNECTING:
			rc = step_connecting(c);
			break;
		case PROXY_SENDING:
			rc = step_proxy_sending(c);
			break;
		case PROXY_ANSWER:
			rc = step_proxy_answer(c);
			break;
		case HANDSHAKE:
			rc = step_handshake(c);
			break;
		case SENDING:
			rc = step_sending(c);
			break;
		case HEAD:
			rc = step_head(c);
			break;
		default:
			rc = step_body(c);
			break;
		}
	}
	if (rc < 0)
		return (enum http_end) - rc;
	if (c->deadline_ns != INT64_MAX && clock_now_ns() >= c->deadline_ns)
		return late(c);
	return HTTP_RUNNING;
}

int http_open(struct http_connection *c, struct err *e)
{
	struct http_exchange nothing = {0};
	enum http_end end;

	if (c->fd >= 0)
		return 0;
	http_begin(c, &nothing);
	while ((end = http_step(c)) == HTTP_RUNNING)
		http_wait(&c, 1, INT64_MAX);
	c->x = NULL;
	return end == HTTP_DONE ? 0 : err_set(e, nothing.err.code, "%s", nothing.err.text);
}

void http_more(struct http_connection *c, void *into, size_t n)
{
	struct http_exchange *x = c->x;

	x->into = into;
	x->base = x->got;
	x->room = (size_t)x->got + n;
	x->full = false;
	limit(c, c->server->limits.idle_ns);
}

short http_events(const struct http_connection *c)
{
	if (!c->wants_write)
		return POLLIN;
	return c->state == SENDING && c->body_sent && !c->tls ? POLLIN | POLLOUT : POLLOUT;
}

void http_wait(struct http_connection *const *c, size_t n, int64_t until_ns)
{
	struct pollfd p[WAIT_MAX];
	int64_t now = clock_now_ns(), left;

	n = n < WAIT_MAX ? n : WAIT_MAX;
	for (size_t i = 0; i < n; i++) {
		p[i] = (struct pollfd){.fd = c[i]->fd, .events = http_events(c[i])};
		if (c[i]->deadline_ns < until_ns)
			until_ns = c[i]->deadline_ns;
	}
	left = until_ns == INT64_MAX ? -1 : until_ns <= now ? 0 : (until_ns - now) / 1000000 + 1;
	poll(p, n, left > INT32_MAX ? INT32_MAX : (int)left);
}
