/* JSON value by value, the indices of MDS and LitData, and the items of others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/json_scan.h"
#include "format/chunks/chunks_index.h"

static void values(void **state)
{
	static const char text[] = " {\"a\\u00e9\\n\": [1, 18446744073709551615, {\"b\": null}, "
				   "\"\\ud83d\\ude00\"], \"c\": -1.5e3, \"d\": true} ";
	struct json_scan s;
	char word[32];
	uint64_t n;

	(void)state;
	json_scan_begin(&s, text, strlen(text));
	assert_int_equal(json_scan_enter(&s, '{', NULL), 0);
	assert_int_equal(json_scan_more(&s, '}', NULL), 1);
	assert_int_equal(json_scan_key(&s, word, sizeof(word), NULL), 0);
	assert_string_equal(word, "a\xc3\xa9\n");
	assert_int_equal(json_scan_enter(&s, '[', NULL), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(json_scan_more(&s, ']', NULL), 1);
		assert_int_equal(json_scan_u64(&s, &n, NULL), 0);
		assert_true(n == (i ? UINT64_MAX : 1));
	}
	assert_int_equal(json_scan_more(&s, ']', NULL), 1);
	assert_int_equal(json_scan_skip(&s, NULL), 0);
	assert_int_equal(json_scan_more(&s, ']', NULL), 1);
	assert_int_equal(json_scan_string(&s, word, sizeof(word), NULL), 0);
	assert_string_equal(word, "\xf0\x9f\x98\x80");
	assert_int_equal(json_scan_more(&s, ']', NULL), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(json_scan_more(&s, '}', NULL), 1);
		assert_int_equal(json_scan_key(&s, word, sizeof(word), NULL), 0);
		assert_int_equal(json_scan_skip(&s, NULL), 0);
	}
	assert_int_equal(json_scan_more(&s, '}', NULL), 0);
	assert_int_equal(json_scan_end(&s, NULL), 0);
}

static void no_json(void **state)
{
	static const char *const bad[] = {
		"",      "{",      "[1",      "[1 2]",     "{\"a\"}",     "{\"a\":}",
		"{1:2}", "\"a",    "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "nul",
		"[,1]",  "\"\n\"", "}",
	};
	char deep[200];
	struct err e;

	(void)state;
	memset(deep, '[', sizeof(deep));
	for (size_t i = 0; i <= sizeof(bad) / sizeof(bad[0]); i++) {
		const char *text = i < sizeof(bad) / sizeof(bad[0]) ? bad[i] : deep;
		size_t n = text == deep ? sizeof(deep) : strlen(text);
		struct json_scan s;

		json_scan_begin(&s, text, n);
		if (json_scan_skip(&s, &e) != ERR_DATA)
			fail_msg("'%s' was taken", text);
		assert_true(s.at <= n);
	}
}

static void sentences(void **state)
{
	static const char *const said[][2] = {
		{"{\"a\"", "the JSON text ends at offset 4, where a colon should be"},
		{"{\"a\" 1}", "the JSON text lacks a colon at offset 5"},
		{"{1: 2}", "the JSON text lacks a string at offset 1"},
		{"[1 2]", "the JSON text lacks a comma or the end of its object or list at "
			  "offset 3"},
		{"\"a", "the JSON text ends at offset 2, where the end of a string should be"},
		{"[", "the JSON text ends at offset 1, where a value should be"},
	};
	struct json_scan s;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
		json_scan_begin(&s, said[i][0], strlen(said[i][0]));
		assert_int_equal(json_scan_skip(&s, &e), ERR_DATA);
		assert_string_equal(e.text, said[i][1]);
	}
	json_scan_begin(&s, "[]", 2);
	assert_int_equal(json_scan_enter(&s, '{', &e), ERR_DATA);
	assert_string_equal(e.text, "the JSON text lacks an object at offset 0");
}

static int file_of(const struct folder_files *files, uint64_t i, char *name, size_t name_size,
		   struct file_spec *f, struct err *e)
{
	static const struct file_spec form = {.ndims = 1, .dims = {10}, .samples = 4};

	(void)files;
	(void)e;
	snprintf(name, name_size, "shard.%05llu.mds", (unsigned long long)i);
	*f = form;
	f->elem = elem_find("uint8");
	return 0;
}

#define ENTRY(name, samples)                                                                       \
	"{\"format\": \"mds\", \"raw_data\": {\"basename\": \"" name                               \
	"\", \"bytes\": 9}, \"samples\": " #samples ", \"version\": 2, \"zip_data\": null}"

static void indices(void **state)
{
	static const struct {
		const char *text, *words; /* NULL: it is right */
	} mds[] = {
		{"{\"shards\": [" ENTRY("shard.00000.mds", 4) "," ENTRY("shard.00001.mds", 4) "]}",
		 NULL},
		{"{\"version\": 2, \"shards\": [" ENTRY("shard.00000.mds", 4) "," ENTRY(
			 "shard.00001.mds", 4) "," ENTRY("more", 1) "]}",
		 NULL},
		{"{\"shards\": []}", "it names 0 files"},
		{"{}", "no list 'shards'"},
		{"[]", "lacks an object"},
		{"{\"shards\": [{}]}", "entry 0 has no file name"},
		{"{\"version\": 1}", "only 2 is supported"},
		{"{\"shards\": [" ENTRY("../../etc/passwd", 4) "]}", "no name of a file"},
		{"{\"shards\": [" ENTRY("..", 4) "]}", "no name of a file"},
		{"{\"shards\": [" ENTRY("shard.00000.mds", 5) "]}", "has 5 samples"},
		{"{\"shards\": [" ENTRY("shard.00001.mds", 4) "]}", "where 'shard.00000.mds'"},
		{"{\"shards\": [" ENTRY("shard.00000.mds", 99999999999999999999) "]}", "too large"},
		{"{\"shards\": [{\"zip_data\": {}}]}", "compressed"},
		{"{\"shards\": [{\"format\": \"json\"}]}", "only 'mds' is supported"},
	};
	static const char litdata[] =
		"{\"chunks\": [{\"chunk_bytes\": 9, \"chunk_size\": 4, \"dim\": null, "
		"\"filename\": \"shard.00000.mds\"}, {\"dim\": null, \"filename\": "
		"\"shard.00001.mds\", \"chunk_size\": 4, \"chunk_bytes\": 9}], \"config\": "
		"{\"compression\": null, \"encryption\": null, \"item_loader\": "
		"\"PyTreeLoader\"}, \"updated_at\": \"0.0\"}";
	const struct folder_files files = {.files = 2, .file = file_of};
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(mds) / sizeof(mds[0]); i++) {
		int rc = mds_folder_check(mds[i].text, strlen(mds[i].text), &files, &e);

		assert_int_equal(rc, mds[i].words ? ERR_DATA : 0);
		if (mds[i].words && !strstr(e.text, mds[i].words))
			fail_msg("%s: %s", mds[i].text, e.text);
	}
	assert_int_equal(litdata_folder_check("{\"chunks\": [{\"dim\": 7}]}", 24, &files, &e),
			 ERR_DATA);
	assert_non_null(strstr(e.text, "tokens"));
	assert_int_equal(litdata_folder_check(litdata, strlen(litdata), &files, &e), 0);
}

static void items_of_others(void **state)
{
	struct chunks_columns c = {.n = 3, .size = {8, 0, 0}};
	unsigned char item[64] = {20, 0, 0, 0, 3, 0, 0, 0};
	struct err e;

	(void)state;
	assert_int_equal(chunks_payload_at(&c, item, 8 + 8 + 20 + 3, 20), 8 + 8);
	assert_int_equal(chunks_payload_at(&c, item, 8 + 8 + 20 + 3, 8), 8);
	assert_int_equal(chunks_payload_at(&c, item, 8 + 8 + 20 + 4, 20), -1);
	assert_int_equal(chunks_payload_at(&c, item, 8 + 8 + 20 + 3, 21), -1);
	assert_int_equal(chunks_payload_at(&c, item, 3, 20), -1);
	assert_int_equal(chunks_payload_at(NULL, item, 8 + 20 + 3, 3), 8 + 20);
	assert_int_equal(chunks_payload_at(NULL, item, 8 + 20 + 2, 3), -1);
	item[3] = 0xff;
	assert_int_equal(chunks_payload_at(NULL, item, 8 + 20 + 3, 3), -1);
	assert_int_equal(chunks_columns_parse("{\"column_sizes\": [null, 8]}", 27, &c, &e), 0);
	assert_true(c.n == 2 && c.size[0] == 0 && c.size[1] == 8);
	assert_int_equal(chunks_columns_parse("{\"column_sizes\": [-1]}", 22, &c, &e), ERR_DATA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),          cmocka_unit_test(no_json),
		cmocka_unit_test(sentences),       cmocka_unit_test(indices),
		cmocka_unit_test(items_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
