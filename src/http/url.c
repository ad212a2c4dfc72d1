#include "http/url.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"

#define PARAMETERS_MAX 64

static bool is_host_byte(unsigned char c)
{
	return isalnum(c) || c == '-' || c == '.' || c == '_';
}

/* "host", "host:port", "[v6]", "[v6]:port". NULL, or what is wrong. */
static const char *take_authority(struct url *u, const char *at, size_t n)
{
	const char *end = at + n, *host = at, *colon;
	bool six = n && *at == '[';
	size_t host_n;
	unsigned long port;
	char digits[8];

	if (six) {
		const char *close = memchr(at, ']', n);

		if (!close)
			return "an IPv6 address lacks its closing bracket";
		host = at + 1;
		host_n = (size_t)(close - host);
		colon = close + 1;
	} else {
		colon = memchr(at, ':', n);
		colon = colon ? colon : end;
		host_n = (size_t)(colon - at);
	}
	if (host_n == 0 || host_n >= URL_HOST_MAX)
		return "the name of its host is empty or too long";
	for (size_t i = 0; i < host_n; i++)
		if (six ? !isxdigit((unsigned char)host[i]) && host[i] != ':' && host[i] != '.'
			: !is_host_byte((unsigned char)host[i]))
			return "the name of its host holds a character that no host name has";
	memcpy(u->host, host, host_n);
	u->host[host_n] = '\0';
	u->port = u->tls ? 443 : 80;
	if (colon < end) {
		size_t digit_n = (size_t)(end - colon - 1);

		if (*colon != ':' || digit_n == 0 || digit_n > 5)
			return "its port is not a number from 1 to 65535";
		memcpy(digits, colon + 1, digit_n);
		digits[digit_n] = '\0';
		if (strspn(digits, "0123456789") != digit_n)
			return "its port is not a number from 1 to 65535";
		port = strtoul(digits, NULL, 10);
		if (port == 0 || port > 65535)
			return "its port is not a number from 1 to 65535";
		u->port = (uint16_t)port;
	}
	if (u->port == (u->tls ? 443 : 80))
		snprintf(u->authority, sizeof(u->authority), six ? "[%s]" : "%s", u->host);
	else
		snprintf(u->authority, sizeof(u->authority), six ? "[%s]:%u" : "%s:%u", u->host,
			 u->port);
	return NULL;
}

int url_parse(struct url *out, const char *text, struct err *e)
{
	const char *at = text, *wrong;
	size_t n;

	memset(out, 0, sizeof(*out));
	if (strncasecmp(at, "https://", 8) == 0) {
		out->tls = true;
		at += 8;
	} else if (strncasecmp(at, "http://", 7) == 0) {
		at += 7;
	} else if (strstr(at, "://")) {
		return err_set(e, ERR_USAGE, "'%.200s' does not begin with http:// or https://",
			       strchr(at, '@') ? "..." : at);
	}
	n = strcspn(at, "/?#");
	if (memchr(at, '@', n))
		return err_set(e, ERR_USAGE,
			       "an address of a server holds a user's name or password (before its "
			       "@): give them as credentials");
	out->target = at + n;
	wrong = take_authority(out, at, n);
	if (wrong)
		return err_set(e, ERR_USAGE, "'%.200s' is not the address of a server: %s",
			       strchr(text, '@') ? "..." : text, wrong);
	return 0;
}

void url_encode(struct buf *out, const char *text, size_t n, bool slash)
{
	static const char hex[] = "0123456789ABCDEF";

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if ((c < 128 && isalnum(c)) || c == '-' || c == '_' || c == '.' || c == '~' ||
		    (slash && c == '/')) {
			buf_putc(out, (char)c);
		} else {
			buf_putc(out, '%');
			buf_putc(out, hex[c >> 4]);
			buf_putc(out, hex[c & 15]);
		}
	}
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

size_t url_decode(char *text)
{
	char *out = text;

	for (const char *p = text; *p; p++) {
		int high = *p == '%' ? digit_of(p[1]) : -1, low = high >= 0 ? digit_of(p[2]) : -1;

		if (low >= 0) {
			*out++ = (char)(high << 4 | low);
			p += 2;
		} else {
			*out++ = *p;
		}
	}
	*out = '\0';
	return (size_t)(out - text);
}

/* By name, then by value: a name is before the longer ones that begin with it, whatever follows. */
static int by_name(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;

	for (; *x && *x == *y; x++)
		y++;
	return *x == *y    ? 0
	       : *x == '=' ? -1
	       : *y == '=' ? 1
			   : (unsigned char)*x - (unsigned char)*y;
}

bool url_query_sorted(struct buf *out, const char *query)
{
	AUTO_FREE char *copy = xstrdup(query);
	char *parameter[PARAMETERS_MAX], *save = NULL;
	size_t n = 0;
	bool fits = true;

	for (char *p = strtok_r(copy, "&", &save); p; p = strtok_r(NULL, "&", &save)) {
		struct buf one = {0};
		char *value = strchr(p, '=');

		if (n == PARAMETERS_MAX) {
			fits = false;
			break;
		}
		if (value)
			*value++ = '\0';
		url_encode(&one, p, url_decode(p), false);
		buf_putc(&one, '=');
		if (value)
			url_encode(&one, value, url_decode(value), false);
		parameter[n++] = buf_take(&one);
	}
	qsort(parameter, n, sizeof(parameter[0]), by_name);
	for (size_t i = 0; i < n; i++) {
		if (fits)
			buf_printf(out, "%s%s", i ? "&" : "", parameter[i]);
		free(parameter[i]);
	}
	return fits;
}

/* ---- proxies ---- */

static const char *variable(const char *upper, const char *lower)
{
	const char *v = getenv(lower);

	if (!v || !*v)
		v = upper ? getenv(upper) : NULL;
	return v && *v ? v : NULL;
}

/* "*", "host", ".domain", "host:port": as other programs read NO_PROXY. */
static bool is_spared(const struct url *u, const char *list)
{
	char port[8];

	snprintf(port, sizeof(port), "%u", u->port);
	while (*list) {
		size_t n = strcspn(list, ", "), host_n = strlen(u->host);
		const char *entry = list, *colon = memchr(entry, ':', n);
		size_t name_n = n;

		list += n + strspn(list + n, ", ");
		if (colon && strncmp(colon + 1, port, strlen(port)) == 0 &&
		    colon + 1 + strlen(port) == entry + n)
			name_n = (size_t)(colon - entry);
		if (name_n == 1 && *entry == '*')
			return true;
		while (name_n && *entry == '.')
			entry++, name_n--;
		if (name_n && name_n <= host_n &&
		    strncasecmp(u->host + host_n - name_n, entry, name_n) == 0 &&
		    (name_n == host_n || u->host[host_n - name_n - 1] == '.'))
			return true;
	}
	return false;
}

const char *url_proxy(const struct url *u)
{
	const char *spared = variable("NO_PROXY", "no_proxy");
	const char *proxy = u->tls ? variable("HTTPS_PROXY", "https_proxy")
				   : variable("HTTP_PROXY", "http_proxy");

	return proxy && !(spared && is_spared(u, spared)) ? proxy : NULL;
}
