/* Arrays that grow, hash tables and heaps, also when the system refuses memory. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/heap.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/vector.h"

#define MANY 100000
#define KEYS 700 /* of the random calls: few enough that they meet */

static int allowed = -1; /* allocations before the system refuses them; -1: all */

void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

static bool refused(void)
{
	if (allowed > 0)
		allowed--;
	if (allowed == 0)
		errno = ENOMEM;
	return allowed == 0;
}

void *__wrap_realloc(void *p, size_t n)
{
	return refused() ? NULL : __real_realloc(p, n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return refused() ? NULL : __real_calloc(n, size);
}

/* How a process ends in which `grow` finds no memory after so many allocations. */
static int status_without(void (*grow)(void), int after)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		close(STDERR_FILENO);
		allowed = after;
		grow();
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* ---- arrays ---- */

struct pair {
	int a, b;
};

static void test_vector(void **state)
{
	struct pair *v = NULL, *p;
	uint32_t n = 0, room = 0;

	(void)state;
	for (int i = 0; i < 1000; i += 2) {
		p = VECTOR_ADD(v, n, room);
		assert_true(p == &v[n - 1] && p->a == 0 && p->b == 0);
		p->a = i;
		VECTOR_PUSH(v, n, room, {i + 1, v[0].a});
	}
	assert_true(n == 1000 && room >= n && room <= 2 * n);
	for (int i = 0; i < 1000; i++)
		assert_true(v[i].a == i && v[i].b == 0);
	/* removed elements leave nothing behind in those that take their place */
	v[999] = (struct pair){7, 7};
	n = 999;
	assert_int_equal(VECTOR_ADD(v, n, room)->b, 0);
	VECTOR_ROOM(v, n, room, 5000);
	assert_true(n == 1000 && room >= 6000 && v[999].a == 0);
	free(v);
}

static void test_vector_that_may_fail(void **state)
{
	uint64_t *v = NULL;
	size_t n = 0, room = 0;
	struct err e = {0};

	(void)state;
	assert_int_equal(VECTOR_TRY(v, n, room, 10, "a list", &e), 0);
	for (; n < 10; n++)
		v[n] = n;
	assert_int_equal(VECTOR_TRY(v, n, room, SIZE_MAX, "a list", &e), -ENOMEM);
	assert_int_equal(VECTOR_TRY(v, n, room, SIZE_MAX / 8, "a list", &e), -ENOMEM);
	allowed = 0;
	assert_int_equal(VECTOR_TRY(v, n, room, room - n, "a list", &e), 0);
	assert_int_equal(VECTOR_TRY(v, n, room, 100, "a list of names", &e), -ENOMEM);
	allowed = -1;
	assert_string_equal(e.text, "a list of names: the system refused 880 bytes of memory");
	assert_true(n == 10 && room < 110);
	for (size_t i = 0; i < n; i++)
		assert_true(v[i] == i);
	free(v);
}

static void grow_a_vector(void)
{
	int *v = NULL;
	size_t n = 0, room = 0;

	for (int i = 0; i < MANY; i++)
		VECTOR_PUSH(v, n, room, i);
	free(v);
}

static void grow_too_long(void)
{
	char *v = NULL;
	uint8_t n = 0, room = 0;

	for (int i = 0; i < 129; i++)
		VECTOR_PUSH(v, n, room, 'x');
	free(v);
}

static void grow_beyond_memory(void)
{
	uint64_t *v = NULL;
	size_t n = 0, room = 0;

	VECTOR_ROOM(v, n, room, SIZE_MAX / 8 + 2);
	free(v);
}

/* ---- numbers ---- */

static void test_map(void **state)
{
	struct map m = {0};

	(void)state;
	assert_true(map_get(&m, 0) == MAP_NONE && map_take2(&m, 0, 0) == MAP_NONE);
	for (int64_t i = 0; i < MANY; i++)
		map_put2(&m, i, -i, (uint32_t)i);
	map_put(&m, INT64_MIN, 7);
	map_put(&m, INT64_MIN, MAP_NONE - 1);
	assert_true(m.n == MANY + 1 && map_get(&m, INT64_MIN) == MAP_NONE - 1);
	assert_true(map_get(&m, 0) == 0 && map_get(&m, 1) == MAP_NONE);
	for (int64_t i = 0; i < MANY; i++)
		assert_true(map_get2(&m, i, -i) == (uint32_t)i);
	map_release(&m);
	assert_true(m.n == 0 && map_get(&m, 0) == MAP_NONE);
}

/* Against an array, so that taking out leaves all others to be found. */
static void test_map_at_random(void **state)
{
	for (uint64_t key = 0; key < 2; key++) {
		struct map m = {.key = key};
		uint32_t value[KEYS];
		size_t held = 0;

		(void)state;
		memset(value, 0xff, sizeof(value));
		for (uint32_t i = 0; i < MANY; i++) {
			uint64_t draw = rng_word(rng_key(key, 1, 2), i);
			uint32_t k = (uint32_t)(draw % KEYS), *v = &value[k];

			if (draw >> 32 & 1) {
				held += *v == MAP_NONE;
				map_put2(&m, k % 7, k / 7, *v = i);
			} else {
				held -= *v != MAP_NONE;
				assert_true(map_take2(&m, k % 7, k / 7) == *v);
				*v = MAP_NONE;
			}
			assert_true(m.n == held);
			k = (uint32_t)(draw >> 33) % KEYS;
			assert_true(map_get2(&m, k % 7, k / 7) == value[k]);
		}
		map_release(&m);
		assert_true(m.key == key);
	}
}

static void grow_a_map(void)
{
	struct map m = {0};

	for (uint32_t i = 0; i < MANY; i++)
		map_put(&m, i, i);
	map_release(&m);
}

/* ---- texts ---- */

static void test_texts(void **state)
{
	struct texts t = {0};
	char text[32];

	(void)state;
	assert_true(texts_find(&t, "") == TEXT_NONE);
	assert_true(texts_add(&t, "") == 0);
	for (size_t i = 1; i < MANY; i++) {
		snprintf(text, sizeof(text), "%zu", i);
		assert_true(texts_find(&t, text) == TEXT_NONE);
		assert_true(texts_add(&t, text) == i);
	}
	for (size_t i = 1; i < MANY; i++) {
		snprintf(text, sizeof(text), "%zu", i);
		assert_true(texts_add(&t, text) == i);
		assert_true(texts_find(&t, text) == i);
		assert_string_equal(t.v[i], text);
	}
	assert_true(t.n == MANY && texts_find(&t, "") == 0);
	texts_release(&t);
	assert_true(t.n == 0 && texts_find(&t, "1") == TEXT_NONE);
}

static void grow_texts(void)
{
	struct texts t = {0};
	char text[32];

	for (int i = 0; i < MANY; i++) {
		snprintf(text, sizeof(text), "%d", i);
		texts_add(&t, text);
	}
	texts_release(&t);
}

/* The digests that are in names and results. */
static void test_fnv(void **state)
{
	(void)state;
	assert_true(fnv1a_text(FNV_START, "") == UINT64_C(0xcbf29ce484222325));
	assert_true(fnv1a_text(FNV_START, "a") == UINT64_C(0xaf63dc4c8601ec8c));
	assert_true(fnv1a_text(FNV_START, "foobar") == UINT64_C(0x85944171f73967e8));
	assert_true(fnv1a(fnv1a_text(FNV_START, "foo"), "bar", 3) == UINT64_C(0x85944171f73967e8));
}

/* ---- heaps ---- */

struct item {
	int key;
	char of[21]; /* of no word's size */
};

static bool before(const void *a, const void *b, const void *of)
{
	const struct item *x = a, *y = b;

	(*(size_t *)(uintptr_t)of)++;
	return x->key < y->key;
}

static int draw_key(size_t i)
{
	return (int)(rng_word(rng_key(5, 6, 7), i) % 1000);
}

static void check_leaving(struct item *v, size_t n, size_t *asked)
{
	for (int last = -1; n > 0; n--) {
		int key = v[0].key;

		assert_true(key >= last && v[0].of[20] == (char)key);
		heap_take(v, n, sizeof(*v), before, asked);
		assert_int_equal(v[n - 1].key, key);
		last = key;
	}
}

static void test_heap(void **state)
{
	static struct item v[1000];
	size_t n, asked = 0;

	(void)state;
	for (size_t most = 0; most <= 1000; most += most < 20 ? 1 : 245) {
		for (n = 0; n < most; n++) {
			int key = draw_key(n);

			v[n] = (struct item){.key = key};
			v[n].of[20] = (char)key;
			heap_add(v, n + 1, sizeof(*v), before, &asked);
		}
		check_leaving(v, n, &asked);
		for (n = 0; n < most; n++) {
			int key = draw_key(n + 7);

			v[n] = (struct item){.key = key};
			v[n].of[20] = (char)key;
		}
		heap_make(v, n, sizeof(*v), before, &asked);
		check_leaving(v, n, &asked);
	}
	/* not more comparisons than its height */
	heap_make(v, 1000, sizeof(*v), before, &asked);
	asked = 0;
	v[0].key = 2000;
	heap_sink(v, 1000, sizeof(*v), 0, before, &asked);
	assert_true(asked <= 20 && v[0].key < 2000);
}

/* ---- without memory ---- */

static void test_without_memory(void **state)
{
	static void (*const grow[])(void) = {grow_a_vector, grow_a_map, grow_texts};

	(void)state;
	for (size_t i = 0; i < sizeof(grow) / sizeof(grow[0]); i++) {
		assert_int_equal(status_without(grow[i], -1), 0);
		for (int after = 1; after < 6; after++)
			assert_int_equal(status_without(grow[i], after), 1);
	}
	assert_int_equal(status_without(grow_too_long, -1), 1);
	assert_int_equal(status_without(grow_beyond_memory, -1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vector), cmocka_unit_test(test_vector_that_may_fail),
		cmocka_unit_test(test_map),    cmocka_unit_test(test_map_at_random),
		cmocka_unit_test(test_texts),  cmocka_unit_test(test_fnv),
		cmocka_unit_test(test_heap),   cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
