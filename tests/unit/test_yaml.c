/* Documents to trees and back: kinds, marks, anchors, limits, hostile text, DLIO's own files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/file.h"
#include "conf/node.h"

static struct node *parse(const char *text)
{
	struct err e = {0};
	struct node *n = yaml_parse(text, strlen(text), "t.yaml", &e);

	if (!n)
		fail_msg("%s", e.text);
	return n;
}

static void assert_flow(const char *yaml, const char *want)
{
	struct node *n = parse(yaml);
	struct buf b = {0};

	node_emit_flow(n, &b);
	assert_string_equal(b.data, want);
	buf_release(&b);
	node_free(n);
}

static void assert_refused(const char *text, const char *sentence)
{
	struct err e = {0};

	assert_null(yaml_parse(text, strlen(text), "t.yaml", &e));
	assert_int_equal(e.code, ERR_USAGE);
	if (!strstr(e.text, sentence))
		fail_msg("'%s' instead of '%s'", e.text, sentence);
	assert_null(yaml_parse(text, strlen(text), "t.yaml", NULL));
}

static void values_have_places(void **state)
{
	struct node *n = parse("model:\n  name: unet3d\n  dims: [4, 'x']\n# end\n");
	const struct node *model = node_get(n, "model");

	(void)state;
	assert_string_equal(node_get(model, "name")->s, "unet3d");
	assert_int_equal(node_get(model, "name")->mark.line, 2);
	assert_int_equal(node_get(model, "name")->mark.column, 9);
	assert_string_equal(node_get(model, "name")->mark.file, "t.yaml");
	assert_int_equal(model->key_mark[1].line, 3);
	assert_int_equal(model->key_mark[1].column, 3);
	assert_true(node_path(model, "dims.1")->quoted);
	assert_false(node_get(model, "name")->quoted);
	node_free(n);
}

static void documents(void **state)
{
	(void)state;
	assert_flow("", "{}");
	assert_flow("# nothing\n", "{}");
	assert_flow("---\n", "{}");
	assert_flow("null\n", "{}");
	assert_flow("a:\n", "{a: null}");
	assert_flow("--- {a: 1}\n...\n", "{a: 1}");
	assert_flow("- 1\n- b\n", "[1, b]");
	assert_flow("a: \"1\"\nb: '2'\nc: 3\n", "{a: '1', b: '2', c: 3}");
	assert_flow("a: |\n  x\n  y\n", "{a: 'x\ny\n'}");
	assert_flow("a: !!str 5\nb: !!float 5\nc: !!int 5\n", "{a: '5', b: 5.0, c: 5}");
	assert_flow("on: 1\n", "{on: 1}");
}

static void anchors_and_merge_keys(void **state)
{
	(void)state;
	assert_flow("a: &x {p: 1, q: 2}\nb: *x\n", "{a: {p: 1, q: 2}, b: {p: 1, q: 2}}");
	assert_flow("a: &x {p: 1, q: 2}\nb:\n  r: 3\n  <<: *x\n  q: 9\n",
		    "{a: {p: 1, q: 2}, b: {p: 1, q: 9, r: 3}}");
	assert_flow("a: &x {p: 1}\nb: &y {p: 2, q: 3}\nc:\n  <<: [*x, *y]\n",
		    "{a: {p: 1}, b: {p: 2, q: 3}, c: {p: 1, q: 3}}");
	assert_flow("a: &x 1\nb: &x 2\nc: *x\n", "{a: 1, b: 2, c: 2}");
	assert_flow("c:\n  <<: &in {p: 1}\nd: *in\n", "{c: {p: 1}, d: {p: 1}}");
	assert_refused("a: {<<: 5}\n", "line 1, column 9: '<<' merges a map or a list of maps");
	assert_refused("a: {<<: [5]}\n", "'<<' merges maps");
	assert_refused("a: *nope\n", "line 1, column 4: the alias '*nope'");
	assert_refused(
		"a: &x [*x]\n",
		"the alias '*x' refers to an anchor that is undefined or contains the alias");
}

static void bad_documents(void **state)
{
	(void)state;
	assert_refused("a: 1\nb: 2\na: 3\n",
		       "t.yaml: line 3, column 1: duplicate key 'a', first defined on "
		       "line 1");
	assert_refused("a: 1\n---\nb: 2\n", "line 2, column 1: a second document");
	assert_refused("a:\n\tb: 1\n", "line 2, column 1: a tab cannot indent");
	assert_refused("[a, b]: 1\n", "a key must be plain text");
	assert_refused("a: 1\n*x : 2\n", "a key must be plain text");
	assert_refused("? \n: 1\n", "a key is missing");
	assert_refused("a: [1, 2\n", "line 2");
	assert_refused("a: 'x\n", "line 2, column 1");
	assert_refused("a: b: c\n", "line 1, column 5");
	assert_refused("a: !!python/object:os.system x\n", "is not supported");
	assert_refused("a: !mine x\n", "is not supported");
	assert_refused("a: !!int x\n", "the value is text, but its tag is for a whole number");
	assert_refused("a: !!map [1]\n", "its tag is for a map");
	assert_refused("a: \"x\\0y\"\n", "zero byte");
	assert_refused("\"x\\0y\": 1\n", "zero byte");
}

static void binary_bytes(void **state)
{
	static const char bad[] = "a: \xff\xfe\x01\n", nul[] = "a: b\0c\n";
	struct err e = {0};

	(void)state;
	assert_null(yaml_parse(bad, sizeof(bad) - 1, "t.yaml", &e));
	assert_non_null(strstr(e.text, "byte 3"));
	assert_null(yaml_parse(nul, sizeof(nul) - 1, "t.yaml", &e));
	assert_int_equal(e.code, ERR_USAGE);
}

static char *repeated(const char *a, int n, const char *b)
{
	struct buf t = {0};

	for (int i = 0; i < n; i++)
		buf_puts(&t, a);
	buf_puts(&t, b);
	return buf_take(&t);
}

static void nesting_is_bounded(void **state)
{
	AUTO_FREE char *deep = repeated("[", 65, ""), *ok_open = repeated("[", 64, "");
	AUTO_FREE char *ok = repeated("]", 64, "\n"), *hostile = repeated("[", 1000000, "");
	AUTO_FREE char *text = xasprintf("%s%s", ok_open, ok);
	struct node *n = parse(text);

	(void)state;
	assert_int_equal(node_depth(n), 64);
	node_free(n);
	assert_refused(deep, "nesting is deeper than 64 levels");
	assert_refused(hostile, "nesting is deeper than 64 levels");
}

static void aliases_cannot_explode(void **state)
{
	struct buf t = {0};

	(void)state;
	buf_puts(&t, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
	for (int i = 1; i < 10; i++)
		buf_printf(&t, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n",
			   i, i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
	assert_refused(t.data, "more than 100000 values");
	buf_reset(&t);
	buf_puts(&t, "a0: &a0 [x]\n");
	for (int i = 1; i < 70; i++)
		buf_printf(&t, "a%d: &a%d [*a%d]\n", i, i, i - 1);
	assert_refused(t.data, "nesting is deeper");
	buf_reset(&t);
	buf_puts(&t, "a: &a [x");
	for (int i = 1; i < 30000; i++)
		buf_puts(&t, ",x");
	buf_puts(&t, "]\nb: [*a, *a]\n");
	assert_refused(t.data, "line 2, column 9: the document has more than 100000 values");
	buf_release(&t);
}

static void size_is_bounded(void **state)
{
	AUTO_FREE char *keys = NULL, *items = repeated("- 1\n", 100001, "");
	AUTO_FREE char *large = repeated(
		"#2345678901234567890123456789012345678901234567890123456789012\n", 70000, "");
	struct buf t = {0};

	(void)state;
	for (int i = 0; i < 10001; i++)
		buf_printf(&t, "k%d: 1\n", i);
	keys = buf_take(&t);
	assert_refused(keys, "a map has more than 10000 keys");
	assert_refused(items, "more than 100000 values");
	assert_refused(large, "are more than the 4194304 allowed");
}

static void assert_emits(const char *yaml, const char *want)
{
	struct node *n = parse(yaml);
	struct buf b = {0};

	yaml_emit(n, &b);
	assert_string_equal(b.data, want);
	buf_release(&b);
	node_free(n);
}

static void emission_is_omegaconfs(void **state)
{
	(void)state;
	assert_emits("", "{}\n");
	assert_emits("[]", "[]\n");
	assert_emits("a: {b: [1, [2, 3], {c: d, e: f}], g: {}, h: []}",
		     "a:\n  b:\n  - 1\n  - - 2\n    - 3\n  - c: d\n    e: f\n  g: {}\n  h: []\n");
	assert_emits("a: ~\nb: Yes\nc: OFF\n", "a: null\nb: true\nc: false\n");
	assert_emits("a: 1e3\nb: 0x10\nc: 1e20\nd: 1e-7\ne: .inf\nf: .NaN\ng: 1_0\n",
		     "a: 1000.0\nb: 16\nc: 1.0e+20\nd: 1.0e-07\ne: .inf\nf: .nan\ng: 10\n");
	assert_emits("a: 99999999999999999999\n", "a: 99999999999999999999\n");
	assert_emits("a: 'off'\nb: '12:30:45'\nc: '010'\n'y': 1\nd: ''\ne: 'null'\nf: '~'\n",
		     "a: 'off'\nb: '12:30:45'\nc: '010'\n'y': 1\nd: ''\ne: 'null'\nf: '~'\n");
	assert_emits(
		"a: '1e5'\nb: 'nan'\nc: '2020-01-01'\nd: '1_0'\ne: '0o17'\nf: 'infinity'\ng: 'n'\n",
		"a: '1e5'\nb: 'nan'\nc: '2020-01-01'\nd: '1_0'\ne: 0o17\nf: 'infinity'\ng: 'n'\n");
	assert_emits("a: 'x: y'\nb: '- x'\nc: ' x'\nd: 'it''s'\ne: '#x'\nf: '${a.b}'\n",
		     "a: 'x: y'\nb: '- x'\nc: ' x'\nd: it's\ne: '#x'\nf: ${a.b}\n");
	assert_emits("a: \"x\\ty\"\nb: \"é\"\n", "a: \"x\\ty\"\nb: é\n");
	assert_emits("a: \"x\\ny\"\n", "a: 'x\n\n  y'\n");
}

static void long_text_folds_at_eighty(void **state)
{
	AUTO_FREE char *words = repeated("word ", 30, "end");
	AUTO_FREE char *yaml = xasprintf("a: %s\n", words);
	struct node *n = parse(yaml), *again;
	struct buf b = {0};

	(void)state;
	yaml_emit(n, &b);
	assert_int_equal(strchr(b.data, '\n') - b.data, 82);
	again = parse(b.data);
	assert_true(node_equal(n, again));
	node_free(again);
	node_free(n);
	buf_release(&b);
}

static void hostile_bytes_are_emitted_as_something(void **state)
{
	struct node *n = node_new(NODE_MAP, (struct node_mark){0}), *again;
	struct buf b = {0};

	(void)state;
	node_set(n, "a", node_new_str("x\xff", (struct node_mark){0}));
	node_set(n, "b", node_new_str("y", (struct node_mark){0}));
	yaml_emit(n, &b);
	again = parse(b.data);
	assert_string_equal(node_get(again, "b")->s, "y");
	node_free(again);
	node_free(n);
	buf_release(&b);
}

static void check_file(const char *path)
{
	struct buf file = {0}, out = {0};
	struct err e = {0};
	struct node *n;

	if (file_read(path, 1 << 20, &file, &e) != 0)
		fail_msg("%s", e.text);
	n = yaml_parse(file.data, file.len, path, &e);
	if (!n)
		fail_msg("%s", e.text);
	yaml_emit(n, &out);
	assert_string_equal(out.data, file.data);
	node_free(n);
	buf_release(&file);
	buf_release(&out);
}

static void dlios_files_come_back_byte_for_byte(void **state)
{
	DIR *d = opendir(TEST_DATA "/dlio-data");
	struct dirent *entry;
	int seen = 0;

	(void)state;
	check_file(TEST_DATA "/dlio-output/.hydra/config.yaml");
	check_file(TEST_DATA "/dlio-output/.hydra/overrides.yaml");
	assert_non_null(d);
	while ((entry = readdir(d))) {
		AUTO_FREE char *path =
			xasprintf(TEST_DATA "/dlio-data/%s/overrides.yaml", entry->d_name);

		if (entry->d_name[0] == '.' || !file_exists(path))
			continue;
		check_file(path);
		seen++;
	}
	closedir(d);
	assert_true(seen > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_have_places),
		cmocka_unit_test(documents),
		cmocka_unit_test(anchors_and_merge_keys),
		cmocka_unit_test(bad_documents),
		cmocka_unit_test(binary_bytes),
		cmocka_unit_test(nesting_is_bounded),
		cmocka_unit_test(aliases_cannot_explode),
		cmocka_unit_test(size_is_bounded),
		cmocka_unit_test(emission_is_omegaconfs),
		cmocka_unit_test(long_text_folds_at_eighty),
		cmocka_unit_test(hostile_bytes_are_emitted_as_something),
		cmocka_unit_test(dlios_files_come_back_byte_for_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
