/* The payload stream: the same bytes however they are asked for, of the right kind for the type. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "dataset/content.h"

#define BYTES 4096u

static void whole(const char *elem, uint64_t file, unsigned char *out, struct content_source *src)
{
	content_init(src, 42, elem_find(elem));
	src->fill(src, file, 0, out, BYTES);
}

static void any_split_gives_the_same_bytes(void **state)
{
	unsigned char want[BYTES], got[BYTES + 2];
	struct content_source src;

	(void)state;
	for (const struct elem_type *t = elem_table; t->name; t++) {
		uint64_t seed = 7;

		whole(t->name, 3, want, &src);
		for (int round = 0; round < 200; round++) {
			size_t at = 0;

			memset(got, 0xEE, sizeof(got));
			while (at < BYTES) {
				uint64_t most = round % 2 ? 700 : 11;
				size_t n = rng_word(seed++, 0) % most;

				if (n > BYTES - at)
					n = BYTES - at;
				src.fill(&src, 3, at, got + 1 + at, n);
				at += n;
			}
			assert_int_equal(got[0], 0xEE);
			assert_int_equal(got[BYTES + 1], 0xEE);
			assert_memory_equal(got + 1, want, BYTES);
		}
		/* One byte at a time, from every offset. */
		for (size_t i = 0; i < BYTES; i++) {
			src.fill(&src, 3, i, got, 1);
			assert_int_equal(got[0], want[i]);
		}
	}
}

static void far_offsets(void **state)
{
	unsigned char a[640], b[640];
	struct content_source src;
	uint64_t far = ((uint64_t)1 << 62) + 5;

	(void)state;
	content_init(&src, 42, elem_find("uint8"));
	src.fill(&src, 1, far, a, sizeof(a));
	for (unsigned i = 0; i < sizeof(b); i++)
		src.fill(&src, 1, far + i, b + i, 1);
	assert_memory_equal(a, b, sizeof(b));
}

/* What the stream is may never change: datasets on disk are verified against it. */
static void the_stream_is_fixed(void **state)
{
	unsigned char got[BYTES];
	struct content_source src;

	(void)state;
	whole("int64", 9, got, &src);
	for (uint64_t i = 0; i < BYTES / 8; i++) {
		uint64_t want = rng_word(rng_key(42, 9, 0), i), have;

		memcpy(&have, got + 8 * i, 8);
		assert_true(want == have);
	}
}

static void files_seeds_and_types(void **state)
{
	unsigned char a[BYTES], b[BYTES];
	struct content_source src, other;

	(void)state;
	whole("uint8", 0, a, &src);
	whole("uint8", 1, b, &src);
	assert_memory_not_equal(a, b, 16);
	content_init(&other, 43, elem_find("uint8"));
	other.fill(&other, 0, 0, b, BYTES);
	assert_memory_not_equal(a, b, 16);
	whole("uint32", 0, b, &src);
	assert_memory_equal(a, b, BYTES);
}

static double half_value(uint16_t h)
{
	int exponent = h >> 10 & 31, fraction = h & 1023;

	assert_true(exponent < 31);
	if (exponent == 0)
		return ldexp(fraction, -24);
	return (h & 0x8000 ? -1 : 1) * ldexp(1024 + fraction, exponent - 25);
}

static double value_at(const unsigned char *bytes, size_t width, size_t i)
{
	uint16_t h;
	float f;
	double v;

	switch (width) {
	case 2:
		memcpy(&h, bytes + 2 * i, 2);
		return half_value(h);
	case 4:
		memcpy(&f, bytes + 4 * i, 4);
		return f;
	default:
		memcpy(&v, bytes + 8 * i, 8);
		return v;
	}
}

static void floats_are_uniform(void **state)
{
	static const struct {
		const char *name;
		size_t width;
	} types[] = {{"float16", 2},
		     {"float32", 4},
		     {"float64", 8},
		     {"complex64", 4},
		     {"complex128", 8}};
	unsigned char got[BYTES];
	struct content_source src;

	(void)state;
	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		size_t n = BYTES / types[t].width, quarter[4] = {0};
		double sum = 0;

		whole(types[t].name, 5, got, &src);
		for (size_t i = 0; i < n; i++) {
			double v = value_at(got, types[t].width, i);

			assert_true(v >= 0 && v < 1);
			quarter[(int)(v * 4)]++;
			sum += v;
		}
		assert_true(fabs(sum / (double)n - 0.5) < 0.06);
		for (int q = 0; q < 4; q++)
			assert_true(quarter[q] > n / 6);
	}
}

static void bools_are_0_or_1(void **state)
{
	unsigned char got[BYTES];
	struct content_source src;
	size_t ones = 0;

	(void)state;
	whole("bool", 5, got, &src);
	for (size_t i = 0; i < BYTES; i++) {
		assert_true(got[i] <= 1);
		ones += got[i];
	}
	assert_true(ones > BYTES * 2 / 5 && ones < BYTES * 3 / 5);
}

static void ints_do_not_compress(void **state)
{
	size_t count[256] = {0};
	unsigned char *got = malloc(1u << 20);
	struct content_source src;

	(void)state;
	content_init(&src, 42, elem_find("uint8"));
	src.fill(&src, 5, 0, got, 1u << 20);
	for (size_t i = 0; i < 1u << 20; i++)
		count[got[i]]++;
	for (int v = 0; v < 256; v++)
		assert_true(count[v] > 3600 && count[v] < 4600);
	free(got);
}

static void costs_little(void **state)
{
	static const char *const types[] = {"uint8", "float16", "float32", "float64", "bool"};
	size_t n = 8u << 20;
	unsigned char *out = calloc(n, 1);

	(void)state;
	for (size_t t = 0; t < 5; t++) {
		struct content_source src;
		double best = 0;

		content_init(&src, 42, elem_find(types[t]));
		for (uint64_t round = 0; round < 5; round++) {
			int64_t begin = clock_now_ns();
			double rate;

			src.fill(&src, 5, round * n, out, n);
			rate = (double)n / (double)(clock_now_ns() - begin + 1);
			best = rate > best ? rate : best;
		}
		print_message("%s: %.1f GB/s\n", types[t], best);
		/* a fiftieth of the slowest on one processor of 2020; a sanitizer takes its time */
		if (best < 0.05 && (!getenv("STOKER_SANITIZE") || !*getenv("STOKER_SANITIZE")))
			fail_msg("%s: %.3f GB/s", types[t], best);
	}
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_split_gives_the_same_bytes),
		cmocka_unit_test(far_offsets),
		cmocka_unit_test(the_stream_is_fixed),
		cmocka_unit_test(files_seeds_and_types),
		cmocka_unit_test(floats_are_uniform),
		cmocka_unit_test(bools_are_0_or_1),
		cmocka_unit_test(ints_do_not_compress),
		cmocka_unit_test(costs_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
