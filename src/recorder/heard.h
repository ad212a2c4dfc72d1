#pragma once
/* The heads of HTTP/1 messages and the first bytes of TLS, as a client's socket shows them: what
 * the recorder keeps of them, and what the readers of logs with data take from theirs. Of a head
 * only the fields below are looked at: names of users, passwords, and queries are cut off. Pure;
 * reads no byte beyond those given; any bytes. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HEARD_HEAD_MOST 16384 /* bytes of one call that are looked at */

enum heard_says {
	HEARD_NOTHING, /* none of these */
	HEARD_REQUEST,
	HEARD_ANSWER,
	HEARD_TLS,    /* a ClientHello */
	HEARD_SECOND, /* the preface of HTTP/2 */
};

enum heard_method {
	HEARD_GOES_ON, /* lines of a head that began before */
	HEARD_GET,
	HEARD_HEAD,
	HEARD_PUT,
	HEARD_POST,
	HEARD_DELETE,
	HEARD_CONNECT, /* to a proxy */
	HEARD_OTHER,
	HEARD_METHODS
};

/* Beside the method or the status. */
enum heard_flags {
	HEARD_WHOLE = 1 << 0,   /* the head's end is here */
	HEARD_CHUNKED = 1 << 1, /* Transfer-Encoding */
	HEARD_CLOSES = 1 << 2,  /* Connection: close */
	HEARD_AMAZON = 1 << 3,  /* a field of S3 is among them */
	HEARD_RANGES = 1 << 4,  /* a Range that is not one of bytes from a place */
	HEARD_LISTS = 1 << 5,   /* of the query: a listing, */
	HEARD_PART = 1 << 6,    /* a part of an upload, */
	HEARD_ABOUT = 1 << 7,   /* or another question about an object or a bucket */
	HEARD_PROXIED = 1 << 8, /* the target named the host */
	HEARD_CUT = 1 << 9,   /* the target's end is not here: `target` is its begin, or nothing */
	HEARD_REST = 1 << 10, /* of a head that goes on: `target` is the rest of such a one */
};

struct heard_text {
	const char *p;
	size_t n;
};

struct heard {
	enum heard_says says;
	unsigned method, status, flags;
	size_t bytes;        /* of what was given, those that are of the head */
	int64_t first, last; /* of Range or Content-Range; -1: none, or to the end. Of the last
				bytes: first is -1 - their number */
	int64_t whole;       /* of Content-Range: the object; -1 */
	int64_t length;      /* Content-Length; -1 */
	struct heard_text target, host, agent;
};

static inline char heard_lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

/* `word` is lower case. */
static inline bool heard_is(struct heard_text t, const char *word)
{
	size_t i = 0;

	while (i < t.n && word[i] && heard_lower(t.p[i]) == word[i])
		i++;
	return i == t.n && !word[i];
}

static inline bool heard_begins(struct heard_text t, const char *word)
{
	size_t i = 0;

	while (i < t.n && word[i] && heard_lower(t.p[i]) == word[i])
		i++;
	return !word[i];
}

/* Whether it is the begin of `word`. */
static inline bool heard_begins_so(struct heard_text t, const char *word)
{
	return t.n < strlen(word) && memcmp(t.p, word, t.n) == 0;
}

/* Digits at t, which moves behind them; -1: none, or too large. */
static inline int64_t heard_number(struct heard_text *t)
{
	int64_t v = 0;
	size_t i = 0;

	for (; i < t->n && t->p[i] >= '0' && t->p[i] <= '9'; i++) {
		if (v > INT64_MAX / 64)
			return -1;
		v = v * 10 + (t->p[i] - '0');
	}
	t->p += i;
	t->n -= i;
	return i ? v : -1;
}

static inline bool heard_skip(struct heard_text *t, char c)
{
	bool there = t->n > 0 && *t->p == c;

	t->p += there;
	t->n -= there;
	return there;
}

/* The host, and its port, of what may have a name and a password in front; nothing where what is
 * behind the last '@' is none: a part of a password may be there. */
static inline struct heard_text heard_host(struct heard_text t)
{
	size_t at = t.n, port = t.n;

	while (at > 0 && t.p[at - 1] != '@')
		at--;
	while (port > at && t.p[port - 1] >= '0' && t.p[port - 1] <= '9')
		port--;
	if (port > at && t.p[port - 1] == ':')
		port--;
	else
		port = t.n;
	for (size_t i = at; i < port && t.p[at] != '['; i++)
		if (t.p[i] == ':')
			return (struct heard_text){"", 0};
	return (struct heard_text){t.p + at, t.n - at};
}

/* "bytes=0-99", "bytes=100-", "bytes=-100"; of answers "bytes 0-99/1000". */
static inline void heard_range(struct heard_text t, struct heard *h)
{
	if (!heard_begins(t, "bytes")) {
		h->flags |= HEARD_RANGES;
		return;
	}
	t.p += 5;
	t.n -= 5;
	if (!heard_skip(&t, '='))
		(void)heard_skip(&t, ' ');
	h->first = heard_number(&t);
	if (!heard_skip(&t, '-'))
		h->flags |= HEARD_RANGES;
	h->last = heard_number(&t);
	if (h->first < 0 && h->last >= 0) {
		h->first = -1 - h->last;
		h->last = -1;
	}
	if (heard_skip(&t, '/'))
		h->whole = heard_number(&t);
	if (heard_skip(&t, ',') || (h->last >= 0 && h->first > h->last))
		h->flags |= HEARD_RANGES;
}

static inline void heard_field(struct heard_text name, struct heard_text value, struct heard *h)
{
	while (value.n && (*value.p == ' ' || *value.p == '\t'))
		value.p++, value.n--;
	while (value.n && (value.p[value.n - 1] == ' ' || value.p[value.n - 1] == '\t'))
		value.n--;
	if (heard_begins(name, "x-amz-"))
		h->flags |= HEARD_AMAZON;
	else if (heard_is(name, "content-length"))
		h->length = heard_number(&value);
	else if (heard_is(name, h->says == HEARD_ANSWER ? "content-range" : "range"))
		heard_range(value, h);
	else if (heard_is(name, "transfer-encoding"))
		h->flags |= heard_begins(value, "chunked") ? HEARD_CHUNKED : 0;
	else if (heard_is(name, "connection"))
		h->flags |= heard_is(value, "close") ? HEARD_CLOSES : 0;
	else if (h->says == HEARD_REQUEST && heard_is(name, "host"))
		h->host = heard_host(value);
	else if (h->says == HEARD_REQUEST && heard_is(name, "user-agent"))
		h->agent = value;
}

/* Lines of fields up to an empty one, from s + at on. */
static inline void heard_fields(const char *s, size_t n, size_t at, struct heard *h)
{
	while (at < n) {
		const char *end = memchr(s + at, '\n', n - at);
		size_t line = end ? (size_t)(end - (s + at)) : n - at, colon = 0;

		if (end && (line == 0 || (line == 1 && s[at] == '\r'))) {
			h->flags |= HEARD_WHOLE;
			h->bytes = at + line + 1;
			return;
		}
		/* a line that is cut has half a value */
		if (!end)
			break;
		while (colon < line && s[at + colon] != ':')
			colon++;
		if (colon > 0 && colon < line)
			heard_field(
				(struct heard_text){s + at, colon},
				(struct heard_text){s + at + colon + 1,
						    line - colon - 1 - (s[at + line - 1] == '\r')},
				h);
		at += line + 1;
	}
	h->bytes = n;
}

static inline unsigned heard_method_of(const char *s, size_t n, size_t *length)
{
	static const char *const names[HEARD_METHODS] = {
		[HEARD_GET] = "GET ",       [HEARD_HEAD] = "HEAD ",
		[HEARD_PUT] = "PUT ",       [HEARD_POST] = "POST ",
		[HEARD_DELETE] = "DELETE ", [HEARD_CONNECT] = "CONNECT ",
		[HEARD_OTHER] = "OPTIONS ",
	};

	for (unsigned i = 1; i < HEARD_METHODS; i++) {
		*length = strlen(names[i]);
		if (n >= *length && memcmp(s, names[i], *length) == 0)
			return i;
	}
	return 0;
}

static inline void heard_clear(struct heard *h, enum heard_says says)
{
	*h = (struct heard){.says = says, .first = -1, .last = -1, .whole = -1, .length = -1};
}

/* Whether `c` may begin what heard_sent or heard_received find: cheap. */
static inline bool heard_may_begin(unsigned char c, bool sent)
{
	return sent ? c == 'G' || c == 'P' || c == 'H' || c == 'D' || c == 'C' || c == 'O' ||
			       c == 0x16
		    : c == 'H';
}

/* A head's fields, where it began in an earlier call. */
static inline void heard_more(const char *s, size_t n, bool sent, struct heard *h)
{
	heard_clear(h, sent ? HEARD_REQUEST : HEARD_ANSWER);
	heard_fields(s, n < HEARD_HEAD_MOST ? n : HEARD_HEAD_MOST, 0, h);
}

/* Names of a query that say what is asked for, but for the object's own. */
static inline unsigned heard_query_flags(struct heard_text name)
{
	static const char *const about[] = {
		"acl",  "tagging", "location",  "uploads",     "versioning", "delete", "attributes",
		"cors", "policy",  "retention", "object-lock", "lifecycle",  NULL};

	if (heard_is(name, "list-type") || heard_is(name, "prefix") || heard_is(name, "marker") ||
	    heard_is(name, "delimiter") || heard_is(name, "max-keys") || heard_is(name, "versions"))
		return HEARD_LISTS;
	if (heard_is(name, "partnumber") || heard_is(name, "uploadid"))
		return HEARD_PART;
	if (heard_begins(name, "x-amz-"))
		return HEARD_AMAZON;
	for (size_t i = 0; about[i]; i++)
		if (heard_is(name, about[i]))
			return HEARD_ABOUT;
	return 0;
}

/* Whether a path ends at s: with '#', '?', or that as %3F, which may be encoded again. */
static inline bool heard_ends_path(const char *s, size_t n)
{
	size_t i = 1;

	if (*s == '?' || *s == '#')
		return true;
	if (*s != '%')
		return false;
	while (i + 1 < n && s[i] == '2' && s[i + 1] == '5')
		i += 2;
	return i + 1 < n && s[i] == '3' && heard_lower(s[i + 1]) == 'f';
}

/* Whether what is cut may have an end of the path in two parts. */
static inline bool heard_may_end_path(struct heard_text t)
{
	size_t at = t.n;

	while (at > 0 && t.p[at - 1] != '%')
		at--;
	if (at == 0)
		return false;
	while (at + 1 < t.n && t.p[at] == '2' && t.p[at + 1] == '5')
		at += 2;
	return at == t.n || (at + 1 == t.n && (t.p[at] == '2' || t.p[at] == '3'));
}

/* The target without its query, and without who asks; flags say what the query asks. */
static inline void heard_target(struct heard_text t, struct heard *h)
{
	struct heard_text part = {0};
	size_t path = 0;

	while (path < t.n && !heard_ends_path(t.p + path, t.n - path))
		path++;
	if (path < t.n) {
		h->flags &= ~(unsigned)HEARD_CUT;
		if (t.p[path] == '?')
			part = (struct heard_text){t.p + path + 1, t.n - path - 1};
		t.n = path;
	}
	while (part.n) {
		struct heard_text name = {part.p, 0};

		while (name.n < part.n && part.p[name.n] != '=' && part.p[name.n] != '&')
			name.n++;
		h->flags |= heard_query_flags(name);
		while (part.n && *part.p != '&')
			part.p++, part.n--;
		(void)heard_skip(&part, '&');
	}
	/* to a proxy the whole address is sent, which may have a password in it */
	if (heard_begins(t, "http://")) {
		const char *slash = memchr(t.p + 7, '/', t.n - 7);
		struct heard_text host = {t.p + 7, slash ? (size_t)(slash - (t.p + 7)) : t.n - 7};

		h->flags |= HEARD_PROXIED;
		if (slash || !(h->flags & HEARD_CUT))
			h->host = heard_host(host);
		t = slash                  ? (struct heard_text){slash, t.n - (size_t)(slash - t.p)}
		    : h->flags & HEARD_CUT ? (struct heard_text){"", 0}
					   : (struct heard_text){"/", 1};
	} else if (h->method == HEARD_CONNECT) {
		if (!(h->flags & HEARD_CUT))
			h->host = heard_host(t);
		t = (struct heard_text){"", 0};
	} else if (t.n && *t.p != '/' && !(h->flags & HEARD_REST)) {
		t = (struct heard_text){"", 0};
	}
	h->target = t;
}

/* Whether the next bytes can be taken for the rest of a target: nothing secret may be in them. */
static inline bool heard_has_rest(const struct heard *h)
{
	return h->flags & HEARD_CUT && h->method != HEARD_CONNECT &&
	       (h->target.n || !(h->flags & HEARD_PROXIED)) && !heard_may_end_path(h->target);
}

/* Whether an address that may have a password in it begins in the text. */
static inline bool heard_names_host(struct heard_text t)
{
	for (size_t i = 0; i + 3 <= t.n; i++)
		if (memcmp(t.p + i, "://", 3) == 0)
			return true;
	return false;
}

/* As heard_more, where the target was cut: its rest, if the version is behind it. */
static inline void heard_rest(const char *s, size_t n, struct heard *h)
{
	const char *blank, *end;

	n = n < HEARD_HEAD_MOST ? n : HEARD_HEAD_MOST;
	blank = memchr(s, ' ', n);
	end = memchr(s, '\n', n);
	heard_clear(h, HEARD_REQUEST);
	if (blank && (!end || blank < end) && n - (size_t)(blank - s) >= 9 &&
	    memcmp(blank, " HTTP/1.", 8) == 0 &&
	    !heard_names_host((struct heard_text){s, (size_t)(blank - s)})) {
		h->flags |= HEARD_REST;
		heard_target((struct heard_text){s, (size_t)(blank - s)}, h);
	}
	if (end)
		heard_fields(s, n, (size_t)(end + 1 - s), h);
	else
		h->bytes = n;
}

/* The name of the server in a ClientHello (RFC 8446, 4.1.2; RFC 6066, 3). */
static inline struct heard_text heard_server_name(const unsigned char *s, size_t n)
{
	size_t at = 5 + 4 + 2 + 32, step;

#define HEARD_TWO(i) ((size_t)s[i] << 8 | s[(i) + 1])
	if (at + 1 > n)
		return (struct heard_text){"", 0};
	at += 1 + s[at]; /* session */
	if (at + 2 > n)
		return (struct heard_text){"", 0};
	at += 2 + HEARD_TWO(at); /* ciphers */
	if (at + 1 > n)
		return (struct heard_text){"", 0};
	at += 1 + s[at] + 2; /* compression; the length of the extensions */
	for (; at + 4 <= n; at += 4 + step) {
		step = HEARD_TWO(at + 2);
		if (HEARD_TWO(at) != 0)
			continue;
		/* a list, of which the first is a host's name */
		if (at + 9 > n || s[at + 6] != 0 || at + 9 + HEARD_TWO(at + 7) > n)
			break;
		return (struct heard_text){(const char *)s + at + 9, HEARD_TWO(at + 7)};
	}
#undef HEARD_TWO
	return (struct heard_text){"", 0};
}

/* What a client's bytes begin with. */
static inline void heard_sent(const void *data, size_t n, struct heard *h)
{
	static const char second[] = "PRI * HTTP/2.0\r\n";
	const unsigned char *u = data;
	const char *s = data, *end;
	struct heard_text line;
	size_t at;

	heard_clear(h, HEARD_NOTHING);
	n = n < HEARD_HEAD_MOST ? n : HEARD_HEAD_MOST;
	if (n >= 6 && u[0] == 0x16 && u[1] == 3 && u[2] <= 4 && u[5] == 1) {
		h->says = HEARD_TLS;
		h->host = heard_host(heard_server_name(u, n));
		return;
	}
	if (n >= sizeof(second) - 1 && memcmp(s, second, sizeof(second) - 1) == 0) {
		h->says = HEARD_SECOND;
		return;
	}
	h->method = heard_method_of(s, n, &at);
	if (!h->method)
		return;
	end = memchr(s, '\n', n);
	line = (struct heard_text){s + at, (end ? (size_t)(end - s) : n) - at};
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	/* of a line that is whole, the version is known */
	if (end) {
		if (line.n < 10 || memcmp(line.p + line.n - 9, " HTTP/1.", 8) != 0) {
			h->method = 0;
			return;
		}
		line.n -= 9;
	} else {
		const char *blank = memchr(line.p, ' ', line.n);

		line.n = blank ? (size_t)(blank - line.p) : line.n;
		if (line.n && *line.p != '/' && h->method != HEARD_CONNECT &&
		    !heard_begins(line, "http://") && !heard_begins_so(line, "http://")) {
			h->method = 0;
			return;
		}
		h->flags |= blank ? 0 : HEARD_CUT;
	}
	h->says = HEARD_REQUEST;
	heard_target(line, h);
	if (end)
		heard_fields(s, n, (size_t)(end + 1 - s), h);
	else
		h->bytes = n;
}

/* What a server's bytes begin with. */
static inline void heard_received(const void *data, size_t n, struct heard *h)
{
	const char *s = data, *end;
	struct heard_text code;

	heard_clear(h, HEARD_NOTHING);
	n = n < HEARD_HEAD_MOST ? n : HEARD_HEAD_MOST;
	if (n < 12 || memcmp(s, "HTTP/1.", 7) != 0 || s[8] != ' ')
		return;
	code = (struct heard_text){s + 9, 3};
	h->status = (unsigned)heard_number(&code);
	if (code.n || h->status < 100) {
		h->status = 0;
		return;
	}
	h->says = HEARD_ANSWER;
	if (s[7] == '0')
		h->flags |= HEARD_CLOSES;
	end = memchr(s, '\n', n);
	if (end)
		heard_fields(s, n, (size_t)(end + 1 - s), h);
	else
		h->bytes = n;
}
