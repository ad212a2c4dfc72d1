/* Addresses, answers of servers and bodies in chunks: what is understood, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "http/base64.h"
#include "http/response.h"
#include "http/url.h"

static void addresses(void **state)
{
	static const struct {
		const char *text, *host, *authority, *target;
		uint16_t port;
		bool tls;
	} good[] = {
		{"http://h", "h", "h", "", 80, false},
		{"HTTPS://h.example/x?y=1", "h.example", "h.example", "/x?y=1", 443, true},
		{"http://10.0.0.1:9000/", "10.0.0.1", "10.0.0.1:9000", "/", 9000, false},
		{"http://[::1]:9000", "::1", "[::1]:9000", "", 9000, false},
		{"https://[fd00::2]", "fd00::2", "[fd00::2]", "", 443, true},
		{"host:81", "host", "host:81", "", 81, false},
	};
	static const char *const bad[] = {
		"",
		"http://",
		"http://h:0",
		"http://h:65536",
		"http://h:x",
		"http://h:",
		"ftp://h",
		"http://a b",
		"http://[::1",
		"http://[::g]",
		"http://h\r\nx: y",
		"http://[::1]x",
		"http://h:123456",
	};
	struct err e;
	struct url u;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(url_parse(&u, good[i].text, &e), 0);
		assert_string_equal(u.host, good[i].host);
		assert_string_equal(u.authority, good[i].authority);
		assert_string_equal(u.target, good[i].target);
		assert_int_equal(u.port, good[i].port);
		assert_int_equal(u.tls, good[i].tls);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(url_parse(&u, bad[i], &e), ERR_USAGE);
	assert_int_equal(url_parse(&u, "http://me:geheim@h", &e), ERR_USAGE);
	assert_null(strstr(e.text, "geheim"));
	assert_int_equal(url_parse(&u, "http://me:ge/heim@h", &e), ERR_USAGE);
	assert_null(strstr(e.text, "heim"));
}

static void encodings(void **state)
{
	struct buf b = {0};
	char text[] = "a%2Fb%2bc+%zz%4";

	(void)state;
	url_encode(&b, "a/b c=+(@,)~-_.\xc3\xa9", 17, true);
	assert_string_equal(b.data, "a/b%20c%3D%2B%28%40%2C%29~-_.%C3%A9");
	buf_reset(&b);
	url_encode(&b, "a/b", 3, false);
	assert_string_equal(b.data, "a%2Fb");
	assert_int_equal(url_decode(text), 11);
	assert_string_equal(text, "a/b+c+%zz%4");
	buf_reset(&b);
	assert_true(url_query_sorted(&b, "b=2&a=x/y&uploads&a=%20"));
	assert_string_equal(b.data, "a=%20&a=x%2Fy&b=2&uploads=");
	buf_reset(&b);
	assert_true(url_query_sorted(&b, "a-b=1&a%25=2&a=3"));
	assert_string_equal(b.data, "a=3&a%25=2&a-b=1");
	buf_release(&b);
	char coded[16];
	base64("user:pa", 7, coded, sizeof(coded));
	assert_string_equal(coded, "dXNlcjpwYQ==");
}

static void proxies(void **state)
{
	struct url plain, secure;

	(void)state;
	assert_int_equal(url_parse(&plain, "http://s3.lab.example:9000", NULL), 0);
	assert_int_equal(url_parse(&secure, "https://s3.lab.example", NULL), 0);
	unsetenv("http_proxy");
	unsetenv("https_proxy");
	unsetenv("no_proxy");
	unsetenv("NO_PROXY");
	setenv("HTTP_PROXY", "http://p:1", 1);
	setenv("HTTPS_PROXY", "http://p:2", 1);
	assert_string_equal(url_proxy(&plain), "http://p:1");
	assert_string_equal(url_proxy(&secure), "http://p:2");
	static const char *const spared[] = {"*", "s3.lab.example", ".example", "lab.example",
					     "x, s3.lab.example:9000"};
	for (size_t i = 0; i < 5; i++) {
		setenv("NO_PROXY", spared[i], 1);
		assert_null(url_proxy(&plain));
	}
	setenv("NO_PROXY", "b.example,s3.lab.example:1,xample", 1);
	assert_non_null(url_proxy(&plain));
}

static ssize_t parse(struct http_head *h, const char *text)
{
	struct err e;

	return http_head_parse(h, text, strlen(text), &e);
}

static void heads(void **state)
{
	static const char text[] = "HTTP/1.1 206 Partial Content\r\nContent-Length: 12\r\n"
				   "ETag:  \"abc\" \r\nX:\r\n\r\nhello";
	struct http_head h;
	char value[8];

	(void)state;
	assert_int_equal(parse(&h, text), (int)sizeof(text) - 1 - 5);
	assert_int_equal(h.status, 206);
	assert_true(h.keep && h.has_length && !h.chunked && h.length == 12);
	assert_true(http_head_get(&h, "etag", value, sizeof(value)));
	assert_string_equal(value, "\"abc\"");
	assert_true(http_head_get(&h, "x", value, sizeof(value)));
	assert_string_equal(value, "");
	assert_false(http_head_get(&h, "content", value, sizeof(value)));
	/* every beginning of it is unfinished, none is refused */
	for (size_t n = 0; n < sizeof(text) - 6; n++)
		assert_int_equal(http_head_parse(&h, text, n, NULL), 0);
	assert_true(parse(&h, "HTTP/1.0 200 OK\n\n") > 0 && !h.keep);
	assert_true(parse(&h, "HTTP/1.0 200\r\nConnection: keep-alive\r\n\r\n") > 0 && h.keep);
	assert_true(parse(&h, "HTTP/1.1 200 \r\nConnection: x, close\r\n\r\n") > 0 && !h.keep);
	assert_true(parse(&h, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n") > 0);
	assert_true(h.chunked);
	/* both: the connection is not used again */
	assert_true(parse(&h, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
			      "Content-Length: 3\r\n\r\n") > 0);
	assert_true(h.chunked && !h.has_length && !h.keep);
	assert_true(parse(&h, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n") >
		    0);
}

static void bad_heads(void **state)
{
	static const char *const bad[] = {
		"HTTP/2 200 OK\r\n\r\n",
		"HTTP/1.1 20 OK\r\n\r\n",
		"HTTP/1.1 099 OK\r\n\r\n",
		"SSH-2.0-OpenSSH_9\r\n",
		"<html>\n\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
		"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
		"HTTP/1.1 200 OK\r\nbad name: 1\r\n\r\n",
		"HTTP/1.1 200 OK\r\na: b\r\n folded\r\n\r\n",
		"HTTP/1.1 200 OK\r\n: b\r\n\r\n",
		"HTTP/1.1 200 OK\r\na: b\rc: d\r\n\r\n",
	};
	struct http_head h;
	char *endless = malloc(2 * HTTP_HEAD_MAX);
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse(&h, bad[i]), ERR_DATA);
	memset(endless, 'a', 2 * HTTP_HEAD_MAX);
	memcpy(endless, "HTTP/1.1 200 OK\r\nx: ", 20);
	assert_int_equal(http_head_parse(&h, endless, HTTP_HEAD_MAX - 1, &e), 0);
	assert_int_equal(http_head_parse(&h, endless, HTTP_HEAD_MAX, &e), ERR_DATA);
	assert_int_equal(http_head_parse(&h, endless, 2 * HTTP_HEAD_MAX, &e), ERR_DATA);
	free(endless);
}

/* The body, taken `step` bytes at a time; NULL when it was refused or did not end. */
static char *unchunk(const char *text, size_t step)
{
	struct http_chunks c = {0};
	struct buf out = {0};
	size_t n = strlen(text), at = 0;

	while (at < n && !c.done) {
		const char *piece;
		size_t piece_n, ask = n - at < step ? n - at : step;
		ssize_t took = http_chunks_take(&c, text + at, ask, &piece, &piece_n, NULL);

		if (took < 0)
			break;
		buf_append(&out, piece, piece_n);
		at += (size_t)took;
	}
	if (c.done && at == n)
		return buf_take(&out);
	buf_release(&out);
	return NULL;
}

static void chunks(void **state)
{
	static const char *const good[] = {
		"5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n",
		"0b\r\nhello world\r\n00\r\nTrailer: 1\r\nB: 2\r\n\r\n",
		"B \nhello world\n0\n\n",
	};
	static const char *const bad[] = {
		"\r\n",        "g\r\n",
		"5\r\nhelloX", "1000000000000000\r\n",
		"-1\r\n",      "5\r\nhello\r\n0\r\n\rX",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		for (size_t step = 1; step < 40; step++) {
			char *text = unchunk(good[i], step);

			assert_non_null(text);
			assert_string_equal(text, "hello world");
			free(text);
		}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_null(unchunk(bad[i], 100));
}

static void dates(void **state)
{
	(void)state;
	assert_int_equal(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
	assert_int_equal(http_date("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
	assert_int_equal(http_date("Thu, 29 Feb 2024 23:59:59 GMT"), 1709251199);
	assert_int_equal(http_date("Fri, 01 Mar 2024 00:00:00 GMT"), 1709251200);
	assert_int_equal(http_date("Mon, 01 Mar 2100 00:00:00 GMT"), 4107542400);
	assert_true(http_date("yesterday") < 0);
	assert_true(http_date("Sun, 06 Foo 1994 08:49:37 GMT") < 0);
	assert_true(http_date("Sun, 06 anF 1994 08:49:37 GMT") < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses), cmocka_unit_test(encodings), cmocka_unit_test(proxies),
		cmocka_unit_test(heads),     cmocka_unit_test(bad_heads), cmocka_unit_test(chunks),
		cmocka_unit_test(dates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
