#pragma once
/* Addresses of HTTP servers: http://host:port/path?query, and texts in their percent encoding. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define URL_HOST_MAX 256

struct url {
	bool tls;
	char host[URL_HOST_MAX]; /* without the brackets of an IPv6 address */
	uint16_t port;
	/* "host:port" as in a Host line: brackets where needed, no port where it is the usual one
	 */
	char authority[URL_HOST_MAX + 16];
	const char *target; /* in the text that was parsed: what follows the authority, maybe "" */
};

/* ERR_USAGE with a sentence that begins with the text, unless it holds a user's name or password,
 * which is refused. Without a scheme it is an http address. */
int url_parse(struct url *out, const char *text, struct err *e);
/* Appends `n` bytes, of which all but A-Za-z0-9-_.~ (and / where `slash`) become %XX. */
void url_encode(struct buf *out, const char *text, size_t n, bool slash);
/* The bytes that a percent encoding stands for, in place; returns their number. A + stays. */
size_t url_decode(char *text);
/* The same in sorted order, each with its =: the form that is signed. `query` without its "?", in
 * any encoding, at most 64 parameters; false when it has more. */
bool url_query_sorted(struct buf *out, const char *query);

/* The proxy that the environment asks for: HTTPS_PROXY or HTTP_PROXY (https_proxy, http_proxy),
 * unless NO_PROXY names the host. NULL: none. */
const char *url_proxy(const struct url *u);
