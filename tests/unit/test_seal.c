/* SHA-256 against published vectors, in pieces of every length; the digest of a text that holds it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "result/seal.h"

static void digest(const char *text, size_t n, size_t piece, char hex[SHA256_HEX])
{
	struct sha256 h;

	sha256_begin(&h);
	for (size_t at = 0; at < n; at += piece)
		sha256_add(&h, text + at, n - at < piece ? n - at : piece);
	sha256_end(&h, hex);
}

static void test_vectors(void **state)
{
	/* FIPS 180-4, NIST's examples */
	static const char *const vector[][2] = {
		{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
	};
	char *million = xmalloc(1000000), hex[SHA256_HEX], again[SHA256_HEX];

	(void)state;
	for (size_t i = 0; i < sizeof(vector) / sizeof(vector[0]); i++) {
		digest(vector[i][0], strlen(vector[i][0]), 1000, hex);
		assert_string_equal(hex, vector[i][1]);
	}
	memset(million, 'a', 1000000);
	digest(million, 1000000, 4096, hex);
	assert_string_equal(hex,
			    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	for (size_t piece = 1; piece < 200; piece++) {
		digest(million, 517, 517, hex);
		digest(million, 517, piece, again);
		assert_string_equal(hex, again);
	}
	free(million);
}

static void test_text(void **state)
{
	char *text = xstrdup("{\n \"trap\": \"\\\"" SEAL_SELF "\\\": \\\"\",\n \"" SEAL_SELF
			     "\": \"\"\n}");
	char *none = xstrdup("{}"), hex[SHA256_HEX], *at;

	(void)state;
	assert_true(seal_text(&text, SEAL_SELF));
	at = strstr(text, SEAL_SELF "\": \"");
	assert_non_null(at);
	at += strlen(SEAL_SELF "\": \"");
	at[64] = '\0';
	char *stated = xstrdup(at);

	at[64] = '"';
	assert_true(seal_of_text(text, strlen(text), SEAL_SELF, stated, hex));
	assert_string_equal(hex, stated);
	text[3] ^= 1;
	assert_true(seal_of_text(text, strlen(text), SEAL_SELF, stated, hex));
	assert_string_not_equal(hex, stated);
	assert_false(seal_of_text(text, strlen(text), SEAL_SELF, "00", hex));
	assert_false(seal_text(&none, SEAL_SELF));
	free(stated);
	free(text);
	free(none);
}

static void test_names(void **state)
{
	uint32_t rank = 0;

	(void)state;
	assert_true(seal_rank_file("12_output.json", &rank));
	assert_int_equal(rank, 12);
	assert_true(seal_rank_file("0_per_epoch_stats.json", &rank));
	assert_false(seal_rank_file("01_output.json", &rank));
	assert_false(seal_rank_file("_output.json", &rank));
	assert_false(seal_rank_file("12345678901_output.json", &rank));
	assert_false(seal_rank_file("1_output.json.bak", &rank));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
