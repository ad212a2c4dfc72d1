/* What is heard on a client's socket: heads of HTTP/1, in one piece and in several, the first bytes
 * of TLS, and what must not be taken for either. */
#include "recorder/heard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct heard h;

static void sent(const char *text)
{
	heard_sent(text, strlen(text), &h);
}

static void got(const char *text)
{
	heard_received(text, strlen(text), &h);
}

static void same(struct heard_text t, const char *text)
{
	assert_int_equal(t.n, strlen(text));
	assert_memory_equal(t.p, text, t.n);
}

static void requests(void **state)
{
	(void)state;
	sent("GET /bucket/a%20b/x.npz HTTP/1.1\r\nHost: s3.example:9000\r\nUser-Agent: Boto3/1 "
	     "x\r\n"
	     "Range: bytes=100-299\r\nX-Amz-Date: now\r\nAuthorization: secret\r\n\r\n");
	assert_int_equal(h.says, HEARD_REQUEST);
	assert_int_equal(h.method, HEARD_GET);
	assert_int_equal(h.flags, HEARD_WHOLE | HEARD_AMAZON);
	assert_int_equal(h.first, 100);
	assert_int_equal(h.last, 299);
	assert_int_equal(h.length, -1);
	same(h.target, "/bucket/a%20b/x.npz");
	same(h.host, "s3.example:9000");
	same(h.agent, "Boto3/1 x");

	sent("PUT /b/k?partNumber=3&uploadId=abc HTTP/1.1\r\ncontent-LENGTH:  1048576 "
	     "\r\n\r\nbody");
	assert_int_equal(h.method, HEARD_PUT);
	assert_int_equal(h.length, 1048576);
	assert_int_equal(h.flags, HEARD_WHOLE | HEARD_PART);
	same(h.target, "/b/k");
	assert_int_equal(h.bytes, strlen("PUT /b/k?partNumber=3&uploadId=abc HTTP/1.1\r\n"
					 "content-LENGTH:  1048576 \r\n\r\n"));
	sent("GET /b?list-type=2&prefix=x HTTP/1.1\r\n\r\n");
	assert_int_equal(h.flags, HEARD_WHOLE | HEARD_LISTS);
	sent("GET /b/k?X-Amz-Signature=abc HTTP/1.1\r\n\r\n");
	assert_int_equal(h.flags, HEARD_WHOLE | HEARD_AMAZON);
	same(h.target, "/b/k");
	sent("HEAD /b/k HTTP/1.0\n\n");
	assert_int_equal(h.method, HEARD_HEAD);
	assert_int_equal(h.flags, HEARD_WHOLE);
}

static void ranges(void **state)
{
	static const struct {
		const char *text;
		int64_t first, last;
		bool odd;
	} all[] = {
		{"bytes=0-", 0, -1, false},    {"bytes=-500", -501, -1, false},
		{"bytes=0-0", 0, 0, false},    {"bytes=5-1", 5, 1, true},
		{"bytes=0-1,5-6", 0, 1, true}, {"lines=1-2", -1, -1, true},
		{"bytes=x", -1, -1, true},     {"bytes=99999999999999999999-", -1, -1, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		char text[128] = "GET /k HTTP/1.1\r\nRange: ";

		strcat(strcat(text, all[i].text), "\r\n\r\n");
		sent(text);
		assert_int_equal(h.says, HEARD_REQUEST);
		assert_int_equal(h.first, all[i].first);
		assert_int_equal(h.last, all[i].last);
		assert_int_equal((h.flags & HEARD_RANGES) != 0, all[i].odd);
	}
}

/* What is a password, or a token, is in nothing that is kept. */
static void secrets(void **state)
{
	(void)state;
	sent("GET http://user:password@proxy.example:80/b/k?token=secret HTTP/1.1\r\n\r\n");
	same(h.host, "proxy.example:80");
	same(h.target, "/b/k");
	assert_true(h.flags & HEARD_PROXIED);
	sent("GET http://a@b@c HTTP/1.1\r\n\r\n");
	same(h.host, "c");
	same(h.target, "/");
	sent("CONNECT host:443 HTTP/1.1\r\nProxy-Authorization: Basic c2VjcmV0\r\n\r\n");
	assert_int_equal(h.method, HEARD_CONNECT);
	same(h.host, "host:443");
	same(h.target, "");
	sent("GET /k HTTP/1.1\r\nHost: user:secret@more@h:80\r\n\r\n");
	same(h.host, "h:80");
	sent("GET /k HTTP/1.1\r\nHost: [fd00::1]:80\r\n\r\n");
	same(h.host, "[fd00::1]:80");
	sent("CONNECT user:secret@h:80 HTTP/1.1\r\n\r\n");
	same(h.host, "h:80");
	/* one that begins a query, or a path, before the '@' */
	sent("GET http://user:sec?ret@h/k HTTP/1.1\r\n\r\n");
	same(h.host, "");
	sent("GET http://user:sec/ret HTTP/1.1\r\n\r\n");
	same(h.host, "");
	/* before the '@' comes */
	sent("GET http://user:secret");
	same(h.host, "");
	same(h.target, "");
	sent("GET http://user");
	same(h.host, "");
	assert_false(heard_has_rest(&h));
	sent("CONNECT user:80");
	same(h.host, "");
	assert_false(heard_has_rest(&h));
	sent("GET http://user:secret@h/k");
	same(h.host, "h");
	same(h.target, "/k");
	/* queries that are encoded, once and again */
	sent("GET /b/k%3FX-Amz-Signature=secret HTTP/1.1\r\n\r\n");
	same(h.target, "/b/k");
	sent("GET /b/k%253fX-Amz-Signature=secret");
	same(h.target, "/b/k");
	assert_false(h.flags & HEARD_CUT);
	sent("GET /b/k%3e%25/%3 HTTP/1.1\r\n\r\n");
	same(h.target, "/b/k%3e%25/%3");
	/* cut within its target */
	sent("GET /b/k?token=sec");
	same(h.target, "/b/k");
	assert_false(h.flags & HEARD_WHOLE);
}

static void answers(void **state)
{
	(void)state;
	got("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 100-299/1000\r\nContent-Length: "
	    "200\r\n"
	    "x-amz-request-id: 1\r\n\r\nbody");
	assert_int_equal(h.says, HEARD_ANSWER);
	assert_int_equal(h.status, 206);
	assert_int_equal(h.first, 100);
	assert_int_equal(h.whole, 1000);
	assert_int_equal(h.length, 200);
	assert_int_equal(h.flags, HEARD_WHOLE | HEARD_AMAZON);
	got("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	assert_int_equal(h.flags, HEARD_WHOLE | HEARD_CHUNKED | HEARD_CLOSES);
	got("HTTP/1.1 503 \r\n\r\n");
	assert_int_equal(h.status, 503);
	got("HTTP/1.1 20x OK\r\n\r\n");
	assert_int_equal(h.says, HEARD_NOTHING);
	got("HTTP/2.0 200 OK\r\n\r\n");
	assert_int_equal(h.says, HEARD_NOTHING);
	got("HTTP/1.1 099 OK\r\n\r\n");
	assert_int_equal(h.says, HEARD_NOTHING);
}

static void in_pieces(void **state)
{
	static const char rest[] = "Range: bytes=1-2\r\nContent-Le";

	(void)state;
	sent("GET /k HTTP/1.1\r\nHost: a\r\n");
	same(h.host, "a");
	assert_false(h.flags & HEARD_WHOLE);
	heard_more(rest, sizeof(rest) - 1, true, &h);
	assert_int_equal(h.method, HEARD_GOES_ON);
	assert_int_equal(h.first, 1);
	/* a line that is cut is not taken for a whole one */
	assert_int_equal(h.length, -1);
	assert_int_equal(h.bytes, sizeof(rest) - 1);
	heard_more("\r\nbody", 6, false, &h);
	assert_true(h.flags & HEARD_WHOLE);
	assert_int_equal(h.bytes, 2);
}

/* A path that is cut is none of an object's, and its rest is no secret. */
static void cut(void **state)
{
	static const char *const none[] = {"GET /k?a", "GET /k#", "GET /k H",
					   "GET /k HTTP/1.1\r\n"};
	static const char *const alone[] = {"GET http://u", "CONNECT h", "GET /k%",  "GET /k%3",
					    "GET /k%2",     "GET /k%25", "GET /%253"};

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		sent(none[i]);
		same(h.target, "/k");
		assert_false(h.flags & HEARD_CUT);
		assert_false(heard_has_rest(&h));
	}
	for (size_t i = 0; i < sizeof(alone) / sizeof(alone[0]); i++) {
		sent(alone[i]);
		assert_true(h.flags & HEARD_CUT);
		assert_false(heard_has_rest(&h));
	}
	sent("GET ");
	assert_int_equal(h.says, HEARD_REQUEST);
	assert_int_equal(h.method, HEARD_GET);
	assert_true(heard_has_rest(&h));
	heard_rest("/b/k?secret HTTP/1.1\r\nHost: a\r\n\r\n", 33, &h);
	assert_int_equal(h.method, HEARD_GOES_ON);
	assert_int_equal(h.flags, HEARD_REST | HEARD_WHOLE);
	same(h.target, "/b/k");
	same(h.host, "a");
	assert_int_equal(h.bytes, 33);
	sent("GET /b/k%20");
	assert_true(heard_has_rest(&h));
	heard_rest("x HTTP/1.", 9, &h);
	same(h.target, "");
	heard_rest("x HTTP/1.1", 10, &h);
	same(h.target, "x");
	heard_rest(" HTTP/1.1\r\n", 11, &h);
	same(h.target, "");
	assert_int_equal(h.flags, HEARD_REST);
	heard_rest("secret", 6, &h);
	same(h.target, "");
	assert_int_equal(h.flags, 0);
	heard_rest("http://u:secret@h/k HTTP/1.1\r\n", 30, &h);
	same(h.target, "");
	assert_int_equal(h.flags, 0);
}

static void others(void **state)
{
	static const char *const none[] = {"",
					   "G",
					   "GET",
					   "GET x",
					   "GETTING on\r\n",
					   "GET /k HTTP/2.0\r\n\r\n",
					   "POST ing",
					   "GET  \r\n",
					   "PUT it there\n",
					   "\x16\x03",
					   "DELETE FROM t;\r\n"};
	char long_line[HEARD_HEAD_MOST + 100];

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		sent(none[i]);
		assert_int_equal(h.says, HEARD_NOTHING);
		got(none[i]);
		assert_int_equal(h.says, HEARD_NOTHING);
	}
	sent("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
	assert_int_equal(h.says, HEARD_SECOND);
	memset(long_line, 'x', sizeof(long_line));
	memcpy(long_line, "GET /", 5);
	heard_sent(long_line, sizeof(long_line), &h);
	assert_int_equal(h.says, HEARD_REQUEST);
	assert_int_equal(h.bytes, HEARD_HEAD_MOST);
	assert_false(h.flags & HEARD_WHOLE);
}

static void tls(void **state)
{
	unsigned char hello[] = {
		0x16, 3,   1,    0,   0,  1, 0, 0,  0, 3, 3, [43] = 1, 7 /* session */,
		0,    2,   0x13, 1,   1,  0, 0, 18, /* extensions */
		0,    5,   0,    1,   0,  0, 0, 0,  9, 0, 7, 0,        0,
		4,    'h', 'o',  's', 't'};

	(void)state;
	heard_sent(hello, sizeof(hello), &h);
	assert_int_equal(h.says, HEARD_TLS);
	same(h.host, "host");
	/* any part of it, and nothing behind */
	for (size_t n = 0; n < sizeof(hello); n++) {
		unsigned char *part = malloc(n + 1);

		memcpy(part, hello, n);
		part = realloc(part, n ? n : 1);
		heard_sent(part, n, &h);
		assert_int_equal(h.says, n < 6 ? HEARD_NOTHING : HEARD_TLS);
		assert_int_equal(h.host.n, 0);
		free(part);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests), cmocka_unit_test(ranges),    cmocka_unit_test(secrets),
		cmocka_unit_test(answers),  cmocka_unit_test(in_pieces), cmocka_unit_test(others),
		cmocka_unit_test(tls),      cmocka_unit_test(cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
