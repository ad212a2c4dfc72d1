/* Growth, lookup, deletion, merge and copies of the document tree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "conf/node.h"

static struct node *parse(const char *text)
{
	struct err e = {0};
	struct node *n = yaml_parse(text, strlen(text), "t.yaml", &e);

	if (!n)
		fail_msg("%s", e.text);
	return n;
}

static void assert_flow(const struct node *n, const char *want)
{
	struct buf b = {0};

	node_emit_flow(n, &b);
	assert_string_equal(b.data, want);
	buf_release(&b);
}

static void keys_keep_their_order(void **state)
{
	struct node *map = node_new(NODE_MAP, (struct node_mark){0});

	(void)state;
	for (int i = 0; i < 100; i++) {
		AUTO_FREE char *key = xasprintf("k%d", 99 - i);

		node_set(map, key, node_new_str(key, (struct node_mark){0}));
	}
	assert_int_equal(map->n, 100);
	assert_string_equal(map->key[0], "k99");
	assert_string_equal(map->key[99], "k0");
	node_set(map, "k50", node_new_str("new", (struct node_mark){"n.yaml", 7, 1}));
	assert_int_equal(map->key_mark[49].line, 7);
	assert_int_equal(map->n, 100);
	assert_string_equal(node_get(map, "k50")->s, "new");
	assert_true(node_unset(map, "k99"));
	assert_false(node_unset(map, "k99"));
	assert_true(node_unset(map, "k0"));
	assert_int_equal(map->n, 98);
	assert_string_equal(map->key[0], "k98");
	assert_string_equal(map->child[97]->s, "k1");
	assert_null(node_get(map, "k0"));
	assert_null(node_get(NULL, "k0"));
	node_free(map);
	node_free(NULL);
}

static void paths(void **state)
{
	struct node *n = parse("a: {b: {c: 7}, l: [1, {d: 8}]}\nx.y: 1\n");

	(void)state;
	assert_int_equal(node_path(n, "a.b.c")->i, 7);
	assert_int_equal(node_path(n, "a.l.0")->i, 1);
	assert_int_equal(node_path(n, "a.l.1.d")->i, 8);
	assert_null(node_path(n, "a.l.2"));
	assert_null(node_path(n, "a.l.-1"));
	assert_null(node_path(n, "a.l.x"));
	assert_null(node_path(n, "a.b.c.d"));
	assert_null(node_path(n, ""));
	assert_null(node_path(n, "a..b"));
	node_free(n);
}

static void merge_is_deep_for_maps_only(void **state)
{
	struct node *into = parse("a: {x: 1, y: [1, 2, 3], z: {p: 1}}\nb: 5\n");
	struct node *from = parse("a: {y: [9], z: {q: 2}, w: null}\nb: {c: 1}\nd: 4\n");

	(void)state;
	node_merge(into, from);
	assert_flow(into, "{a: {x: 1, y: [9], z: {p: 1, q: 2}, w: null}, b: {c: 1}, d: 4}");
	assert_int_equal(node_path(into, "a.x")->mark.line, 1);
	assert_int_equal(node_path(into, "d")->mark.line, 3);
	node_free(from);
	assert_int_equal(node_path(into, "b.c")->i, 1);
	node_free(into);
}

static void clones_are_independent(void **state)
{
	struct node *n = parse("a: [1, {b: 'x'}]\n"), *c = node_clone(n);

	(void)state;
	assert_true(node_equal(n, c));
	assert_true(node_path(c, "a.1.b")->quoted);
	node_set(node_path(n, "a.1"), "b", node_new_str("y", (struct node_mark){0}));
	assert_string_equal(node_path(c, "a.1.b")->s, "x");
	assert_false(node_equal(n, c));
	assert_int_equal(node_count(c), 5);
	assert_int_equal(node_depth(c), 4);
	assert_null(node_clone(NULL));
	node_free(n);
	node_free(c);
}

static void equality_is_pythons(void **state)
{
	static const struct {
		const char *a, *b;
		bool equal;
	} cases[] = {
		{"1", "1.0", true},          {"1", "2", false},
		{"1", "'1'", false},         {"null", "~", true},
		{"yes", "true", true},       {"yes", "no", false},
		{"[1, 2]", "[1, 2]", true},  {"[1, 2]", "[2, 1]", false},
		{"[1]", "[1, 1]", false},    {"{a: 1, b: 2}", "{b: 2, a: 1}", true},
		{"{a: 1}", "{b: 1}", false}, {"[]", "{}", false},
		{".nan", ".nan", false},     {"9223372036854775807", "9223372036854775806", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct node *a = parse(cases[i].a), *b = parse(cases[i].b);

		if (node_equal(a, b) != cases[i].equal)
			fail_msg("%s and %s", cases[i].a, cases[i].b);
		node_free(a);
		node_free(b);
	}
}

static void marks(void **state)
{
	char out[64];

	(void)state;
	assert_string_equal(node_mark_text((struct node_mark){"a.yaml", 3, 1}, out, sizeof(out)),
			    "a.yaml: line 3");
	assert_string_equal(
		node_mark_text((struct node_mark){NODE_COMMAND_LINE, 0, 9}, out, sizeof(out)),
		"command line");
	assert_string_equal(node_mark_text((struct node_mark){0}, out, sizeof(out)),
			    "configuration");
	assert_ptr_equal(node_file_name("same"), node_file_name("same"));
}

static void quotes_are_cut(void **state)
{
	char text[200], out[NODE_QUOTE_MAX];
	struct node *n;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	n = node_new_str(text, (struct node_mark){0});
	node_quote(n, out, sizeof(out));
	assert_int_equal(strlen(out), 65);
	assert_string_equal(out + 61, "...'");
	node_free(n);
}

static void the_first_difference_is_named(void **state)
{
	static const struct {
		const char *a, *b, *path;
		bool only_a, only_b;
	} cases[] = {
		{"{a: 1, b: {c: 2, d: 3}}", "{b: {d: 4, c: 2}, a: 1.0}", "b.d", false, false},
		{"{a: [1, {x: 2}]}", "{a: [1, {x: 3}]}", "a.1.x", false, false},
		{"{a: [1]}", "{a: [1, 2]}", "a.1", false, true},
		{"{a: 1}", "{a: 1, s: {p: cold, q: 2}}", "s.p", false, true},
		{"{a: {b: 1}, s: 2}", "{s: 2}", "a.b", true, false},
		{"{a: {b: 1}}", "{a: text}", "a", false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct node *a = yaml_parse(cases[i].a, strlen(cases[i].a), "a", NULL);
		struct node *b = yaml_parse(cases[i].b, strlen(cases[i].b), "b", NULL);
		struct buf path = {0};
		const struct node *x, *y;

		assert_true(node_first_difference(a, b, &path, &x, &y));
		assert_string_equal(path.data, cases[i].path);
		assert_int_equal(y == NULL, cases[i].only_a);
		assert_int_equal(x == NULL, cases[i].only_b);
		assert_false(node_first_difference(a, a, &path, &x, &y));
		buf_release(&path);
		node_free(a);
		node_free(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_difference_is_named),
		cmocka_unit_test(keys_keep_their_order),
		cmocka_unit_test(paths),
		cmocka_unit_test(merge_is_deep_for_maps_only),
		cmocka_unit_test(clones_are_independent),
		cmocka_unit_test(equality_is_pythons),
		cmocka_unit_test(marks),
		cmocka_unit_test(quotes_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
