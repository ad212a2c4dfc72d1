/* Arrays of structs as bytes: back, by another version of the struct, cut and damaged. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/columns.h"

struct inner {
	uint8_t few[3];
	double part;
};
struct one {
	int64_t at_ns;
	uint64_t count;
	double value;
	bool known;
	char name[12];
	uint32_t bucket[100];
	struct inner in[2];
};

#define SHAPE struct inner
DEFINE_SHAPE(inner, V(few), V(part));
#undef SHAPE
#define SHAPE struct one
DEFINE_SHAPE(one, V(at_ns), V(count), V(value), V(known), V(name), V(bucket), S(in, inner));
#undef SHAPE

/* As a later version has it: without some members, others wider or longer, and one more. */
struct later {
	double more, value;
	char name[5];
	uint64_t bucket[50];
	int64_t at_ns;
};
#define SHAPE struct later
DEFINE_SHAPE(later, V(more), V(value), V(name), V(bucket), V(at_ns));
#undef SHAPE

static void fill(struct one *v, size_t n)
{
	memset(v, 0, n * sizeof(*v));
	for (size_t i = 0; i < n; i++) {
		v[i].at_ns = (int64_t)i * 1000003 - 7;
		v[i].count = i % 2 ? UINT64_MAX : i;
		v[i].value = i == 3 ? NAN : 0.1 * (double)(i / 2);
		v[i].known = i % 3 == 0;
		if (i != 2)
			snprintf(v[i].name, sizeof(v[i].name), "name %u", (unsigned)(i % 100000));
		v[i].bucket[i % 100] = UINT32_MAX;
		v[i].in[1].few[2] = (uint8_t)(255 - i);
		v[i].in[0].part = -INFINITY;
	}
}

static void put(struct buf *b, const struct one *v, size_t n)
{
	const struct piece piece[] = {{v, n / 2}, {v + n / 2, n - n / 2}};

	columns_put(b, "ones", &shape_one, piece, 2);
	columns_put_texts(b, "texts", (const char *const[]){"a", NULL, "c d"}, 3);
}

static void test_back(void **state)
{
	struct one v[40], out[40];
	struct columns_in in;
	struct buf b = {0};
	struct err e = {0};

	(void)state;
	fill(v, 40);
	memset(out, 0, sizeof(out));
	put(&b, v, 40);
	assert_int_equal(columns_open(&in, b.data, b.len, "file", 1 << 20, &e), 0);
	assert_int_equal(columns_count(&in, "ones"), 40);
	assert_int_equal(columns_count(&in, "texts"), 3);
	assert_int_equal(columns_count(&in, "others"), 0);
	assert_int_equal(columns_get(&in, "ones", &shape_one, &(struct piece){out, 40}, 1, &e), 0);
	for (size_t i = 0; i < 40; i++) {
		assert_int_equal(out[i].at_ns, v[i].at_ns);
		assert_true(out[i].count == v[i].count && out[i].known == v[i].known);
		assert_memory_equal(&out[i].value, &v[i].value, sizeof(double));
		assert_string_equal(out[i].name, v[i].name);
		assert_memory_equal(out[i].bucket, v[i].bucket, sizeof(v[i].bucket));
		assert_int_equal(out[i].in[1].few[2], v[i].in[1].few[2]);
		assert_true(out[i].in[0].part == -INFINITY);
	}
	assert_true(columns_get(&in, "ones", &shape_one, &(struct piece){out, 39}, 1, &e) < 0);
	assert_non_null(strstr(e.text, "'file' is damaged"));
	buf_release(&b);
}

static void test_another_version(void **state)
{
	struct one v[10];
	struct later out[10];
	struct columns_in in;
	struct buf b = {0};
	struct err e = {0};

	(void)state;
	fill(v, 10);
	memset(out, 0, sizeof(out));
	put(&b, v, 10);
	assert_int_equal(columns_open(&in, b.data, b.len, "file", 1 << 20, &e), 0);
	assert_int_equal(columns_get(&in, "ones", &shape_later, &(struct piece){out, 10}, 1, &e),
			 0);
	for (size_t i = 0; i < 10; i++) {
		assert_true(out[i].more == 0 && out[i].at_ns == v[i].at_ns);
		assert_memory_equal(&out[i].value, &v[i].value, sizeof(double));
		assert_memory_equal(out[i].name, v[i].name, strnlen(v[i].name, 4));
		assert_true(out[i].bucket[i] == UINT32_MAX);
	}
	buf_release(&b);
}

static void count_text(void *arg, const char *text)
{
	*(size_t *)arg += 1 + strlen(text);
}

/* Whatever is cut or changed gives structs or a sentence. */
static void test_damage(void **state)
{
	struct one v[6], out[6];
	struct buf b = {0};
	size_t cut_found = 0;

	(void)state;
	fill(v, 6);
	put(&b, v, 6);
	for (size_t i = 0; i < 2 * b.len; i++) {
		char *copy = malloc(b.len);
		size_t n = i < b.len ? i : b.len, texts = 0;
		struct columns_in in;
		struct err e = {0};
		int rc;

		memcpy(copy, b.data, n);
		if (i >= b.len)
			copy[i - b.len] = (char)(copy[i - b.len] ^ (1 << i % 8));
		rc = columns_open(&in, copy, n, "file", 1 << 20, &e);
		cut_found += rc < 0 && i < b.len;
		memset(out, 0, sizeof(out));
		if (rc == 0 && columns_count(&in, "ones") == 6)
			rc = columns_get(&in, "ones", &shape_one, &(struct piece){out, 6}, 1, &e);
		if (rc == 0)
			rc = columns_get_texts(&in, "texts", count_text, &texts, &e);
		assert_true(rc == 0 || e.text[0]);
		free(copy);
	}
	/* all cuts but those between parts */
	assert_true(cut_found == b.len - 2);
	buf_release(&b);
}

static void test_room(void **state)
{
	struct columns_in in;
	struct err e = {0};
	void *p;

	(void)state;
	assert_int_equal(columns_open(&in, "", 0, "file", 1000, &e), 0);
	assert_null(columns_room(&in, SIZE_MAX / 2, 16, &e));
	assert_non_null(strstr(e.text, "more memory"));
	assert_null(columns_room(&in, 1001, 1, &e));
	p = columns_room(&in, 1000, 1, &e);
	assert_non_null(p);
	assert_null(columns_room(&in, 1, 1, &e));
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_back),
		cmocka_unit_test(test_another_version),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
