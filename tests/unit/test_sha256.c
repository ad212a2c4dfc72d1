/* SHA-256: the examples of FIPS 180-4, and both ways of taking blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/digest.h"

static void digest(const char *text, size_t n, size_t piece, char hex[SHA256_HEX])
{
	struct sha256 h;

	sha256_begin(&h);
	for (size_t i = 0; i < n; i += piece)
		sha256_add(&h, text + i, n - i < piece ? n - i : piece);
	sha256_end(&h, hex);
}

static void test_examples(void **state)
{
	static const struct {
		const char *text, *hex;
	} examples[] = {
		{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
	};
	char hex[SHA256_HEX], million[1000000 + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
		digest(examples[i].text, strlen(examples[i].text), 7, hex);
		assert_string_equal(hex, examples[i].hex);
	}
	memset(million, 'a', sizeof(million) - 1);
	for (size_t piece = 63; piece < 1000000; piece = 4 * piece + 1) {
		digest(million, sizeof(million) - 1, piece, hex);
		assert_string_equal(
			hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	}
}

static void test_both_ways(void **state)
{
	unsigned char data[64 * 17];
	uint32_t plain[8];
	struct sha256 h;

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * 131 + (i >> 3));
	for (size_t blocks = 1; blocks <= 17; blocks++) {
		sha256_begin(&h);
		memcpy(plain, h.state, sizeof(plain));
		sha256_add(&h, data, 64 * blocks);
		sha256_blocks_plain(plain, data, blocks);
		assert_memory_equal(plain, h.state, sizeof(plain));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_examples),
		cmocka_unit_test(test_both_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
