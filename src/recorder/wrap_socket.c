/* Sockets: connections, messages, and what clients of HTTP and their servers say on them. */
#include "recorder/wrap.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recorder/heard.h"

#define HOST_MOST 256 /* bytes that are kept */
#define AGENT_MOST 256

/* ---- connections ---- */

void wrap_socket_made(int fd, int64_t begin)
{
	struct fd_facts facts;
	uint64_t w;

	if (fd < 0)
		return;
	(void)fd_facts(fd, &facts);
	w = fd_new(fd, RING_SOCKETS);
	note(RING_SOCKET, begin, N(fd), FD_SERIAL(w), facts.inode);
}

#define SOCKET(name, type, params, args)                                                           \
	WRAP_CALL(int, name, type, params, args, , wrap_socket_made(r, begin))
SOCKET(socket, (int, int, int), (int family, int type, int what), (family, type, what))
SOCKET(accept, (int, struct sockaddr *, socklen_t *), (int fd, struct sockaddr *from, socklen_t *n),
       (fd, from, n))
SOCKET(accept4, (int, struct sockaddr *, socklen_t *, int),
       (int fd, struct sockaddr *from, socklen_t *n, int flags), (fd, from, n, flags))

static bool is_stream(int fd)
{
	int type = 0;
	socklen_t n = sizeof(type);

	return !raw_failed(raw(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &n)) &&
	       type == SOCK_STREAM;
}

/* The server at the other end, whose address has `size` bytes: there may be no memory behind them.
 * Returns the word of the socket from now on. */
static uint64_t note_peer(int fd, uint64_t w, const void *address, size_t size, int64_t begin)
{
	static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct sockaddr_in6 six = {0};
	struct sockaddr_in four;
	unsigned char bytes[16];
	char text[2 * sizeof(bytes) + 1];
	size_t n = 0;
	unsigned port = 0;
	bool local, stream;

	memcpy(&six, address, size < sizeof(six) ? size : sizeof(six));
	memcpy(&four, &six, sizeof(four));
	if (four.sin_family == AF_INET) {
		port = four.sin_port;
		memcpy(bytes, &four.sin_addr, n = 4);
	} else if (four.sin_family == AF_INET6) {
		port = six.sin6_port;
		memcpy(bytes, &six.sin6_addr, n = 16);
		if (memcmp(bytes, mapped, sizeof(mapped)) == 0) {
			memcpy(bytes, bytes + 12, 4);
			n = 4;
		}
	} else {
		return w;
	}
	port = (port & 0xff) << 8 | port >> 8;
	local = n == 4 ? bytes[0] == 127 : bytes[15] == 1;
	for (size_t i = 0; n == 16 && i < 15; i++)
		local &= bytes[i] == 0;
	for (size_t i = 0; i < n; i++) {
		text[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
		text[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
	}
	text[2 * n] = '\0';
	stream = is_stream(fd);
	note(RING_PEER, begin, FD_SERIAL(w), N(port),
	     N((stream ? RING_PEER_STREAM : 0) | (local ? RING_PEER_LOCAL : 0)), text);
	if (!stream || !fd_change(fd, w, (w & ~FD_SAID) | FD_HEARD))
		return w;
	return (w & ~FD_SAID) | FD_HEARD;
}

void wrap_connected(int fd, const struct sockaddr *to, size_t size, int64_t begin, int64_t result)
{
	uint64_t w = fd_word(fd);

	note(RING_CONNECT, begin, FD_SERIAL(w), result);
	if (FD_KIND(w) == RING_SOCKETS && (result == 0 || result == -EINPROGRESS))
		(void)note_peer(fd, w, to, size, begin);
}

WRAP_CALL(int, connect, (int, const struct sockaddr *, socklen_t),
	  (int fd, const struct sockaddr *to, socklen_t n), (fd, to, n), ,
	  wrap_connected(fd, to, n, begin, RESULT))

uint64_t socket_found(int fd, uint64_t word)
{
	struct sockaddr_storage to = {0};
	socklen_t n = sizeof(to);

	if (raw_failed(raw(SYS_getpeername, fd, &to, &n)))
		return word;
	return note_peer(fd, word, &to, n < sizeof(to) ? n : sizeof(to), now_ns());
}

/* ---- what is said ---- */

/* Of what is printable; `to` has room for one more than `most`. */
static const char *put_text(char *to, size_t most, struct heard_text t, bool blanks)
{
	size_t n = 0;

	for (;
	     n < t.n && n < most && (unsigned char)t.p[n] >= (blanks ? ' ' : '!') && t.p[n] != 0x7f;
	     n++)
		to[n] = t.p[n];
	to[n] = '\0';
	return to;
}

#define SAY(w, begin, what, text) note(RING_SPEAKS, begin, FD_SERIAL(w), N(what), text)

/* Nothing that follows on the connection is listened to. */
static uint64_t not_http(uint64_t w, int64_t begin, const struct heard *h, char *room)
{
	if (h->says == HEARD_TLS)
		SAY(w, begin, RING_SPEAKS_TLS, put_text(room, HOST_MOST, h->host, false));
	else
		SAY(w, begin, h->says == HEARD_SECOND ? RING_SPEAKS_HTTP2 : RING_SPEAKS_OTHER, "");
	return w & ~FD_HEARD;
}

static uint64_t head_goes_on(uint64_t w, uint64_t bit, const struct heard *h)
{
	if (h->flags & HEARD_WHOLE)
		return w & ~(bit | FD_PIECES);
	/* one that has no end is let go */
	return (w & FD_PIECES) == FD_PIECES ? w & ~FD_HEARD : (w | bit) + FD_PIECE;
}

static uint64_t note_request(uint64_t w, int64_t begin, const struct heard *h, char *room)
{
	unsigned flags = h->flags;
	bool goes_on;

	if (h->host.n && (!(w & FD_TOLD) || h->flags & HEARD_PROXIED))
		SAY(w, begin, RING_SPEAKS_HOST, put_text(room, HOST_MOST, h->host, false));
	if (h->agent.n && !(w & FD_TOLD) && !names_hashed())
		SAY(w, begin, RING_SPEAKS_AGENT, put_text(room, AGENT_MOST, h->agent, true));
	/* a name that is too long, or none, would be another's */
	if (strlen(put_text(room, RING_PATH_MAX, h->target, false)) < h->target.n)
		flags = (flags & ~(unsigned)HEARD_REST) | HEARD_CUT;
	note(RING_REQUEST, begin, FD_SERIAL(w), N(h->method | flags << RING_HTTP_FLAGS),
	     N(h->bytes), h->first, h->last, h->length, room);
	/* parts of a name have hashes that are not those of the whole */
	goes_on = heard_has_rest(h) && !(names_hashed() && h->target.n);
	w = h->flags & HEARD_WHOLE ? w | FD_TOLD : w;
	/* behind a proxy anything may follow */
	w = h->method == HEARD_CONNECT ? w & ~(FD_SPOKE | FD_TOLD) : w | FD_SPOKE;
	w = head_goes_on(w & ~FD_LINE, FD_SENDS, h);
	return goes_on && w & FD_HEARD ? w | FD_LINE : w;
}

static uint64_t hear_sent(uint64_t w, int64_t begin, const void *p, size_t n, char *room)
{
	struct heard h;

	if (w & FD_SENDS) {
		if (w & FD_LINE)
			heard_rest(p, n, &h);
		else
			heard_more(p, n, true, &h);
		return note_request(w, begin, &h, room);
	}
	if (w & FD_SPOKE && !heard_may_begin(*(const unsigned char *)p, true))
		return w;
	heard_sent(p, n, &h);
	if (h.says == HEARD_REQUEST) {
		w = note_request(w, begin, &h, room);
		return n > HEARD_HEAD_MOST ? w & ~FD_LINE : w;
	}
	return w & FD_SPOKE ? w : not_http(w, begin, &h, room);
}

static uint64_t hear_received(uint64_t w, int64_t begin, const void *p, size_t n)
{
	struct heard h;
	size_t before = 0;

	if (w & FD_GETS)
		heard_more(p, n, false, &h);
	else if (heard_may_begin(*(const unsigned char *)p, false))
		heard_received(p, n, &h);
	else
		return w;
	/* the answer may follow "100 Continue" at once */
	if (h.status / 100 == 1 && h.flags & HEARD_WHOLE && h.bytes < n) {
		before = h.bytes;
		heard_received((const char *)p + before, n - before, &h);
	}
	if (h.says != HEARD_ANSWER)
		return w;
	note(RING_ANSWER, begin, FD_SERIAL(w), N(h.status | h.flags << RING_HTTP_FLAGS),
	     N(before + h.bytes), h.first, h.last, h.whole, h.length);
	return head_goes_on(w, FD_GETS, &h);
}

#define GATHERED_AT (RING_PATH_MAX + 512) /* in the room, behind a path */
#define GATHERED_MOST (SCRATCH - GATHERED_AT)
#define SMALL 64 /* a piece of memory that may end within the first line */

static size_t gather(char *to, const struct iovec *v, uint64_t n, uint64_t left)
{
	size_t at = 0;

	for (uint64_t i = 0; i < n && left > 0 && at < GATHERED_MOST; i++) {
		size_t part = v[i].iov_len < left ? v[i].iov_len : left;

		left -= part;
		part = part < GATHERED_MOST - at ? part : GATHERED_MOST - at;
		memcpy(to + at, v[i].iov_base, part);
		at += part;
	}
	return at;
}

/* A head may be in several pieces of memory. */
static uint64_t hear(enum ring_kind kind, uint64_t w, int64_t begin, const struct iovec *v,
		     uint64_t n, uint64_t left)
{
	bool sent = kind == RING_WRITE || kind == RING_SEND;
	char *room = sent || n > 1 ? scratch_take() : NULL;
	struct iovec gathered;
	bool whole = true;

	if (n > 1 && v->iov_len < SMALL && room) {
		gathered.iov_base = room + GATHERED_AT;
		gathered.iov_len = gather(gathered.iov_base, v, n, left);
		whole = gathered.iov_len == left;
		left = gathered.iov_len;
		v = &gathered;
		n = 1;
	}
	for (uint64_t i = 0; i < n && left > 0 && w & FD_HEARD; i++) {
		size_t bytes = v[i].iov_len < left ? v[i].iov_len : left;
		const void *p = v[i].iov_base;

		if (bytes == 0)
			continue;
		left -= bytes;
		if (!sent)
			w = hear_received(w, begin, p, bytes);
		else if (room)
			w = hear_sent(w, begin, p, bytes, room);
		if (!(w & (sent ? FD_SENDS : FD_GETS)))
			break;
	}
	scratch_give(room);
	return whole ? w : w & ~FD_LINE;
}

void wrap_heard(enum ring_kind kind, int fd, uint64_t word, int64_t begin, const struct iovec *v,
		uint64_t n, uint64_t asked, int64_t result)
{
	int64_t end = now_ns();
	uint64_t w = word;
	/* of bodies, nothing more than their first byte is looked at */
	bool sent = kind == RING_WRITE || kind == RING_SEND;
	const unsigned char *first = v->iov_len ? v->iov_base : NULL;
	bool body = word & FD_SPOKE && !(word & (sent ? FD_SENDS : FD_GETS)) && first &&
		    !heard_may_begin(*first, sent);

	if (!body)
		w = hear(kind, word, begin, v, n, (uint64_t)result);
	note_ended(kind, word, begin, end, asked, 0, result);
	if (w != word)
		(void)fd_change(fd, word, w);
}

/* ---- messages ---- */

/* A connection may be made with the first bytes. */
static uint64_t made_with(int fd, uint64_t w, int flags, const void *to, size_t size, int64_t begin,
			  int64_t result)
{
	return UNLIKELY(flags & MSG_FASTOPEN) && to && result >= 0 && FD_KIND(w) == RING_SOCKETS
		       ? note_peer(fd, w, to, size, begin)
		       : w;
}

void wrap_sent_to(int fd, uint64_t word, const void *from, uint64_t n, int flags, const void *to,
		  size_t size, int64_t begin, int64_t result)
{
	word = made_with(fd, word, flags, to, size, begin, result);
	wrap_moved(RING_SEND, fd, word, begin, from, n, result);
}

void wrap_sent_message(int fd, uint64_t word, const struct msghdr *m, int flags, int64_t begin,
		       int64_t result)
{
	if (result >= 0)
		word = made_with(fd, word, flags, m->msg_name, m->msg_namelen, begin, result);
	wrap_moved_vector(RING_SEND, fd, word, begin, result < 0 ? NULL : m->msg_iov,
			  result < 0 ? 0 : m->msg_iovlen, result);
}

void wrap_sent_messages(int fd, const struct mmsghdr *m, int flags, int64_t begin, int64_t result)
{
	if (result < 0)
		note_transfer(RING_SEND, fd_word(fd), begin, 0, 0, result);
	for (int64_t i = 0; i < result; i++)
		wrap_sent_message(fd, fd_word(fd), &m[i].msg_hdr, flags, begin, m[i].msg_len);
}

#define SEND(name, type, params, args)                                                             \
	WRAP_CALL(ssize_t, name, type, params, args, uint64_t w = fd_word(fd),                     \
		  wrap_moved(RING_SEND, fd, w, begin, from, n, RESULT))
SEND(send, (int, const void *, size_t, int), (int fd, const void *from, size_t n, int flags),
     (fd, from, n, flags))
WRAP_CALL(ssize_t, sendto, (int, const void *, size_t, int, const struct sockaddr *, socklen_t),
	  (int fd, const void *from, size_t n, int flags, const struct sockaddr *to, socklen_t m),
	  (fd, from, n, flags, to, m), uint64_t w = fd_word(fd),
	  wrap_sent_to(fd, w, from, n, flags, to, m, begin, RESULT))
WRAP_CALL(ssize_t, sendmsg, (int, const struct msghdr *, int),
	  (int fd, const struct msghdr *m, int flags), (fd, m, flags), uint64_t w = fd_word(fd),
	  wrap_sent_message(fd, w, m, flags, begin, RESULT))
WRAP_CALL(int, sendmmsg, (int, struct mmsghdr *, unsigned, int),
	  (int fd, struct mmsghdr *m, unsigned n, int flags), (fd, m, n, flags), ,
	  wrap_sent_messages(fd, m, flags, begin, RESULT))

/* What is only looked at comes again. */
#define NOT_TAKEN (MSG_PEEK | MSG_ERRQUEUE)

void wrap_got(int fd, uint64_t word, void *to, uint64_t asked, int flags, int64_t begin,
	      int64_t result)
{
	if (flags & NOT_TAKEN && result >= 0)
		return;
	if (flags & MSG_TRUNC) /* the memory may be none */
		note_transfer(RING_RECEIVE, word, begin, asked, 0, result);
	else
		wrap_moved(RING_RECEIVE, fd, word, begin, to, asked, result);
}

#define RECEIVE(name, type, params, args)                                                          \
	WRAP_CALL(ssize_t, name, type, params, args, uint64_t w = fd_word(fd),                     \
		  wrap_got(fd, w, to, n, flags, begin, RESULT))
RECEIVE(recv, (int, void *, size_t, int), (int fd, void *to, size_t n, int flags),
	(fd, to, n, flags))
RECEIVE(__recv_chk, (int, void *, size_t, size_t, int),
	(int fd, void *to, size_t n, size_t room, int flags), (fd, to, n, room, flags))
RECEIVE(recvfrom, (int, void *, size_t, int, struct sockaddr *, socklen_t *),
	(int fd, void *to, size_t n, int flags, struct sockaddr *from, socklen_t *m),
	(fd, to, n, flags, from, m))
RECEIVE(__recvfrom_chk, (int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *),
	(int fd, void *to, size_t n, size_t room, int flags, struct sockaddr *from, socklen_t *m),
	(fd, to, n, room, flags, from, m))

/* Descriptors that came with a message replace what was known of their numbers. */
static void forget_received(struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			fd_forget(fd);
		}
	}
}

void wrap_got_message(int fd, uint64_t word, struct msghdr *m, int flags, int64_t begin,
		      int64_t result)
{
	if (result >= 0)
		forget_received(m);
	if (flags & NOT_TAKEN && result >= 0)
		return;
	if (result < 0 || flags & MSG_TRUNC || m->msg_flags & MSG_TRUNC)
		note_transfer(RING_RECEIVE, word, begin,
			      result < 0 ? 0 : vector_bytes(m->msg_iov, m->msg_iovlen, result), 0,
			      result);
	else
		wrap_moved_vector(RING_RECEIVE, fd, word, begin, m->msg_iov, m->msg_iovlen, result);
}

WRAP_CALL(ssize_t, recvmsg, (int, struct msghdr *, int), (int fd, struct msghdr *m, int flags),
	  (fd, m, flags), uint64_t w = fd_word(fd),
	  wrap_got_message(fd, w, m, flags, begin, RESULT))

void wrap_got_messages(int fd, struct mmsghdr *m, int flags, int64_t begin, int64_t result)
{
	if (result < 0)
		note_transfer(RING_RECEIVE, fd_word(fd), begin, 0, 0, result);
	for (int64_t i = 0; i < result; i++)
		wrap_got_message(fd, fd_word(fd), &m[i].msg_hdr, flags, begin, m[i].msg_len);
}

WRAP_CALL(int, recvmmsg, (int, struct mmsghdr *, unsigned, int, struct timespec *),
	  (int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *t),
	  (fd, m, n, flags, t), , wrap_got_messages(fd, m, flags, begin, RESULT))
