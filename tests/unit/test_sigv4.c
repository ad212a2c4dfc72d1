/* Signatures that Amazon publishes: of its test suite for version 4, and of the documentation of S3
 * ("Signature Calculations for the Authorization Header"). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "http/sigv4.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define SUITE "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
#define S3 "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

static void hmac(void **state)
{
	unsigned char out[SHA256_BYTES], key[131];

	(void)state;
	/* RFC 4231, cases 2 and 6 */
	hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, out);
	assert_memory_equal(out, "\x5b\xdc\xc1\x46\xbf\x60\x75\x4e", 8);
	memset(key, 0xaa, sizeof(key));
	hmac_sha256(key, sizeof(key), "Test Using Larger Than Block-Size Key - Hash Key First", 54,
		    out);
	assert_memory_equal(out, "\x60\xe4\x31\x59\x1e\xe0\xb6\x7f", 8);
}

static void vectors(void **state)
{
	static const struct sigv4_header suite[] = {{"host", "example.amazonaws.com"},
						    {"x-amz-date", "20150830T123600Z"}};
	static const struct sigv4_header s3[] = {{"host", "examplebucket.s3.amazonaws.com"},
						 {"range", "bytes=0-9"},
						 {"x-amz-content-sha256", EMPTY},
						 {"x-amz-date", "20130524T000000Z"}};
	static const struct sigv4_header list[] = {{"host", "examplebucket.s3.amazonaws.com"},
						   {"x-amz-content-sha256", EMPTY},
						   {"x-amz-date", "20130524T000000Z"}};
	static const struct {
		struct sigv4_request r;
		const char *access, *secret, *service, *out;
	} known[] = {
		{{"GET", "/", "", EMPTY, suite, 2, "20150830T123600Z"},
		 "AKIDEXAMPLE",
		 SUITE,
		 "service",
		 "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
		 "SignedHeaders=host;x-amz-date, "
		 "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{{"GET", "/", "Param1=value1&Param2=value2", EMPTY, suite, 2, "20150830T123600Z"},
		 "AKIDEXAMPLE",
		 SUITE,
		 "service",
		 "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
		 "SignedHeaders=host;x-amz-date, "
		 "Signature=b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		{{"POST", "/", NULL, EMPTY, suite, 2, "20150830T123600Z"},
		 "AKIDEXAMPLE",
		 SUITE,
		 "service",
		 "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
		 "SignedHeaders=host;x-amz-date, "
		 "Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		{{"GET", "/test.txt", "", EMPTY, s3, 4, "20130524T000000Z"},
		 "AKIAIOSFODNN7EXAMPLE",
		 S3,
		 "s3",
		 "AWS4-HMAC-SHA256 "
		 "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
		 "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
		 "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
		{{"GET", "/", "max-keys=2&prefix=J", EMPTY, list, 3, "20130524T000000Z"},
		 "AKIAIOSFODNN7EXAMPLE",
		 S3,
		 "s3",
		 "AWS4-HMAC-SHA256 "
		 "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
		 "SignedHeaders=host;x-amz-content-sha256;x-amz-date, "
		 "Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
	};
	struct sigv4_key key = {0};
	struct buf out = {0};

	(void)state;
	/* the key of one is not taken for another */
	for (size_t i = 0; i < 3 * sizeof(known) / sizeof(known[0]); i++) {
		size_t k = i % (sizeof(known) / sizeof(known[0]));

		buf_reset(&out);
		sigv4_sign(&out, &key, &known[k].r, known[k].access, known[k].secret, "us-east-1",
			   known[k].service);
		assert_string_equal(out.data, known[k].out);
	}
	buf_release(&out);
}

static void times(void **state)
{
	char text[SIGV4_TIME_MAX];

	(void)state;
	sigv4_time(1440938160, text);
	assert_string_equal(text, "20150830T123600Z");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hmac),
		cmocka_unit_test(vectors),
		cmocka_unit_test(times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
