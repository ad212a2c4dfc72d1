/* Hydra's override grammar: keys, values, refusals, and what applying one does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/alloc.h"
#include "conf/override.h"

static void assert_flow(const struct node *n, const char *want)
{
	struct buf b = {0};

	node_emit_flow(n, &b);
	assert_string_equal(b.data, want);
	buf_release(&b);
}

static struct node *value(const char *text)
{
	struct err e = {0};
	struct node *n = override_parse_value(text, &e);

	if (!n)
		fail_msg("%s", e.text);
	return n;
}

static void numbers(void **state)
{
	static const struct {
		const char *text;
		enum node_kind kind;
		double f;
	} cases[] = {
		{"1", NODE_INT, 1},
		{"-1", NODE_INT, -1},
		{"+5", NODE_INT, 5},
		{"0", NODE_INT, 0},
		{"-0", NODE_INT, 0},
		{"1_000", NODE_INT, 1000},
		{"010", NODE_STR, 0},
		{"00", NODE_STR, 0},
		{"1__0", NODE_STR, 0},
		{"0x10", NODE_STR, 0},
		{"0o17", NODE_STR, 0},
		{"1_", NODE_STR, 0},
		{"1e3", NODE_FLOAT, 1000},
		{".5", NODE_FLOAT, .5},
		{"1.", NODE_FLOAT, 1},
		{"-.5e2", NODE_FLOAT, -50},
		{"1e-3", NODE_FLOAT, .001},
		{"+.5", NODE_FLOAT, .5},
		{"inf", NODE_FLOAT, INFINITY},
		{"-INF", NODE_FLOAT, -INFINITY},
		{"1_0.5_0", NODE_FLOAT, 10.5},
		{"01.5", NODE_STR, 0},
		{".", NODE_STR, 0},
		{"1e", NODE_STR, 0},
		{"1e+", NODE_STR, 0},
		{"1.e2", NODE_FLOAT, 100},
		{"12:30:45", NODE_STR, 0},
		{"1.5GB", NODE_STR, 0},
		{"5 6", NODE_STR, 0},
		{"null", NODE_NULL, 0},
		{"NULL", NODE_NULL, 0},
		{"None", NODE_STR, 0},
		{"yes", NODE_STR, 0},
		{"off", NODE_STR, 0},
		{"~5", -1, 0},
		{"9223372036854775807", NODE_INT, 0x1p63},
		{"92233720368547758070", NODE_FLOAT, 92233720368547758070.0},
		{" 7 ", NODE_INT, 7},
		{"1e400", NODE_FLOAT, INFINITY},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct node *n = override_parse_value(cases[i].text, NULL);

		if ((int)cases[i].kind == -1) {
			assert_null(n);
			continue;
		}
		if (!n || n->kind != cases[i].kind)
			fail_msg("'%s' is %s", cases[i].text,
				 n ? node_kind_name(n->kind) : "refused");
		if (n->kind == NODE_INT || n->kind == NODE_FLOAT)
			assert_true(n->f == cases[i].f);
		node_free(n);
	}
}

static void nan_and_booleans(void **state)
{
	struct node *nan = value("-NaN"), *yes = value("TRUE"), *no = value("false");

	(void)state;
	assert_int_equal(nan->kind, NODE_FLOAT);
	assert_true(isnan(nan->f));
	assert_int_equal(yes->kind, NODE_BOOL);
	assert_true(yes->b);
	assert_int_equal(no->kind, NODE_BOOL);
	assert_false(no->b);
	node_free(nan);
	node_free(yes);
	node_free(no);
}

static void texts(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"", ""},
		{"   ", ""},
		{"a b c", "a b c"},
		{"  x  y  ", "x  y"},
		{"/a/b-c.d", "/a/b-c.d"},
		{"s3://bucket/x", "s3://bucket/x"},
		{"C:\\dir", "C:\\dir"},
		{"@a%b*c?d|e", "@a%b*c?d|e"},
		{"a\\,b", "a,b"},
		{"a\\=b", "a=b"},
		{"\\(\\)\\[\\]\\{\\}\\:", "()[]{}:"},
		{"\\ a\\ ", " a "},
		{"a\\\\b", "a\\b"},
		{"\\$x", "\\$x"},
		{"\\5", "\\5"},
		{"1\\ ", "1 "},
		{"'a, b'", "a, b"},
		{"\"it's\"", "it's"},
		{"'it\\'s'", "it's"},
		{"'a\\\\'", "a\\"},
		{"'a\\b'", "a\\b"},
		{"'a\\\\b'", "a\\\\b"},
		{"'\\\\\\'x'", "\\'x"},
		{"'5'", "5"},
		{"'true'", "true"},
		{"''", ""},
		{"'x' ", "x"},
		{"${workload.model.name}/x", "${workload.model.name}/x"},
		{"'${a:'x'}'", "${a:'x'}"},
		{"${oc.env:X,{a}}", "${oc.env:X,{a}}"},
		{"h\xc3\xa9", "h\xc3\xa9"},
		{"a:b", "a:b"},
		{"str('x')", "x"},
		{"str(5)", "5"},
		{"str(1e3)", "1000.0"},
		{"str(True)", "true"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct node *n = value(cases[i].text);

		assert_int_equal(n->kind, NODE_STR);
		assert_string_equal(n->s, cases[i].want);
		node_free(n);
	}
}

static void lists_maps_and_casts(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"[]", "[]"},
		{"{}", "{}"},
		{"[ ]", "[]"},
		{"[a, 2, \"x y\", [3,4], {k: v}]", "[a, 2, x y, [3, 4], {k: v}]"},
		{"[ a b , 'c,d' ]", "[a b, 'c,d']"},
		{"{mean: 1.0, b:{c:2}}", "{mean: 1.0, b: {c: 2}}"},
		{"{a:1,a:2}", "{a: 2}"},
		{"{a: b:c}", "{a: b:c}"},
		{"{1: x, a b : y}", "{1: x, a b: y}"},
		{"[null,True,'null']", "[null, true, 'null']"},
		{"[${a,b},1]", "['${a,b}', 1]"},
		{"int(\"3\")", "3"},
		{"int(2.9)", "2"},
		{"int(-2.9)", "-2"},
		{"int(true)", "1"},
		{"float(3)", "3.0"},
		{"float('1e3')", "1000.0"},
		{"bool('TRUE')", "true"},
		{"bool(0)", "false"},
		{"str([1, {a: 2.5}])", "['1', {a: '2.5'}]"},
		{"[int('1'), str( 2 )]", "[1, '2']"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct node *n = value(cases[i].text);

		assert_flow(n, cases[i].want);
		node_free(n);
	}
}

/* What the emitter writes on one line reads back as the same value. */
static void flow_text_reads_back(void **state)
{
	static const char *const texts[] = {
		"",          " ",    "a",       "a b",  " a",        "a ",    "a\tb", "\t",
		"5",         "1e3",  "null",    "Null", "true",      "on",    "~",    "inf",
		"010",       "1_0",  "a,b",     "[x]",  "{x}",       "a=b",   "it's", "'",
		"\"",        "\\",   "\\'",     "a\\",  "a\\'b\\\\", "${a}",  "$",    "x${",
		"(a)",       "f(a)", "a\nb",    "a:b",  "\\,",       "a\\,b", "#",    "h\xc3\xa9",
		"C:\\dir\\", "\\ ",  "x\\${a}", "a;b",  "<<",        ".5",    "1:30",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct node *list = node_new(NODE_LIST, (struct node_mark){0}), *again;
		struct buf b = {0};
		struct err e = {0};

		node_append(list, node_new_str(texts[i], (struct node_mark){0}));
		node_emit_flow(list, &b);
		again = override_parse_value(b.data, &e);
		if (!again || !node_equal(list, again))
			fail_msg("'%s' was written as %s: %s", texts[i], b.data, e.text);
		node_free(again);
		node_free(list);
		buf_release(&b);
	}
}

static void assert_refused(const char *text, const char *sentence)
{
	struct override o;
	struct err e = {0};

	if (override_parse(text, &o, &e) != ERR_USAGE)
		fail_msg("'%s' was accepted", text);
	if (!strstr(e.text, sentence))
		fail_msg("'%s' instead of '%s'", e.text, sentence);
	assert_int_equal(override_parse(text, &o, NULL), ERR_USAGE);
}

static void refusals(void **state)
{
	(void)state;
	assert_refused("foo", "command line: 'foo': column 4: '=' is missing: write foo=VALUE");
	assert_refused("a=1,2", "column 4: the comma makes the value ambiguous: a list is written "
				"a=[1,2], text with a comma a='1,2'");
	assert_refused("a=b#c", "column 4: '#' is not allowed here");
	assert_refused("a=b=c", "column 4: '=' is not allowed here");
	assert_refused("a=b&c", "'&'");
	assert_refused("a=b;c", "';'");
	assert_refused("a=~b", "'~'");
	assert_refused("a=b!", "'!'");
	assert_refused("a=<b", "'<'");
	assert_refused("a=b\"c", "'\"'");
	assert_refused("a=b'c", "not allowed here");
	assert_refused("a='x' y", "column 7");
	assert_refused("a='x", "column 3: the quote is not closed");
	assert_refused("a=${b", "column 3: '${' is not closed");
	assert_refused("a=[1", "column 5: the list is not closed by ']'");
	assert_refused("a=[1,", "a value is missing at the end");
	assert_refused("a=[1,]", "a value is missing before ']'");
	assert_refused("a=[,]", "a value is missing before ','");
	assert_refused("a={b}", "column 5: 'key: value' is expected");
	assert_refused("a={b:1", "the map is not closed");
	assert_refused("a={'b':1}", "column 4: a key must be written without quotes");
	assert_refused("a={${b}:1}", "a key cannot contain '${'");
	assert_refused("a={:1}", "a key is missing");
	assert_refused("a=]", "a value is missing before ']'");
	assert_refused("a=1]", "']'");
	assert_refused("a=choice(1,2)", "choice() describes several runs");
	assert_refused("a=nope(1)", "unknown function 'nope'");
	assert_refused("a=int(x)", "int() cannot convert 'x'");
	assert_refused("a=int(1", "the call is not closed");
	assert_refused("a=int(1,2)", "int() takes one value");
	assert_refused("a=bool(yes)", "bool() cannot convert 'yes'");
	assert_refused("a=int(inf)", "int() cannot convert");
	assert_refused("a=float(null)", "float() cannot convert null");
	assert_refused("=1", "column 1: a key such as");
	assert_refused("", "a key such as");
	assert_refused("+++a=1", "a key such as");
	assert_refused("a b=1", "column 2: ' ' cannot be part of a key");
	assert_refused("a..b=1", "column 3: a part of the key is missing");
	assert_refused("a.=1", "column 3: a part of the key is missing");
	assert_refused("-a=1", "column 1: a key such as");
	assert_refused("a.01=1", "column 4: '1' cannot be part of a key");
	assert_refused("a=x\ny", "a control character");
	assert_refused("a=x\xff", "column 4: the text is not UTF-8");
	assert_refused("a=x\xed\xa0\x80", "column 4: the text is not UTF-8");
}

static void depth_is_bounded(void **state)
{
	struct buf b = {0};

	(void)state;
	buf_puts(&b, "a=");
	for (int i = 0; i < 65; i++)
		buf_putc(&b, '[');
	for (int i = 0; i < 65; i++)
		buf_putc(&b, ']');
	assert_refused(b.data, "column 67: nesting is deeper than 64 levels");
	/* one level less: without "a=[" and the last bracket */
	b.data[b.len - 1] = '\0';
	node_free(value(b.data + 3));
	buf_reset(&b);
	for (int i = 0; i < 65; i++)
		buf_puts(&b, i ? ".a" : "a");
	buf_puts(&b, "=1");
	assert_refused(b.data, "the key has more than 64 parts");
	buf_reset(&b);
	buf_puts(&b, "a=[0");
	for (int i = 0; i < 100000; i++)
		buf_puts(&b, ",0");
	buf_putc(&b, ']');
	assert_refused(b.data, "more than 100000 items");
	buf_release(&b);
}

static void operations_and_keys(void **state)
{
	static const struct {
		const char *text;
		enum override_op op;
		const char *key;
		bool value;
	} cases[] = {
		{"a.b=1", OVERRIDE_SET, "a.b", true},
		{"+a.b=1", OVERRIDE_ADD, "a.b", true},
		{"++a.b=1", OVERRIDE_FORCE, "a.b", true},
		{"~a.b", OVERRIDE_DELETE, "a.b", false},
		{"~a.b=1", OVERRIDE_DELETE, "a.b", true},
		{"workload=x", OVERRIDE_SET, "workload", true},
		{"hydra/help=y", OVERRIDE_SET, "hydra/help", true},
		{"g/s@p.q=y", OVERRIDE_SET, "g/s@p.q", true},
		{"a.0.b-c=", OVERRIDE_SET, "a.0.b-c", true},
		{"$x._y1=2", OVERRIDE_SET, "$x._y1", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct override o;
		struct err e = {0};

		if (override_parse(cases[i].text, &o, &e) != 0)
			fail_msg("%s", e.text);
		assert_int_equal(o.op, cases[i].op);
		assert_string_equal(o.key, cases[i].key);
		assert_string_equal(o.text, cases[i].text);
		assert_int_equal(o.value != NULL, cases[i].value);
		if (o.value)
			assert_string_equal(o.value->mark.file, NODE_COMMAND_LINE);
		override_release(&o);
	}
}

static const char base[] = "w: {name: x, n: 4, list: [1, {k: 2}], none: null, sub: {a: 1, b: 2}}\n";

static int apply(const char *text, struct node **root, struct err *e)
{
	struct override o;
	int rc = override_parse(text, &o, e);

	if (rc != 0)
		return rc;
	*root = yaml_parse(base, strlen(base), "t.yaml", e);
	assert_non_null(*root);
	rc = override_apply(*root, &o, e);
	override_release(&o);
	return rc;
}

static void assert_applies(const char *text, const char *path, const char *want)
{
	struct node *root = NULL, *n;
	struct err e = {0};

	if (apply(text, &root, &e) != 0)
		fail_msg("%s", e.text);
	n = node_path(root, path);
	if (!want) {
		assert_null(n);
	} else {
		assert_non_null(n);
		assert_flow(n, want);
	}
	node_free(root);
}

static void assert_not_applied(const char *text, const char *sentence)
{
	struct node *root = NULL;
	struct err e = {0};

	assert_int_equal(apply(text, &root, &e), ERR_USAGE);
	if (!strstr(e.text, sentence))
		fail_msg("'%s' instead of '%s'", e.text, sentence);
	node_free(root);
}

static void set(void **state)
{
	(void)state;
	assert_applies("w.n=5", "w.n", "5");
	assert_applies("w.n=[1]", "w.n", "[1]");
	assert_applies("w.list=[7]", "w.list", "[7]");
	assert_applies("w.list.0=7", "w.list", "[7, {k: 2}]");
	assert_applies("w.list.1.k=7", "w.list", "[1, {k: 7}]");
	assert_applies("w.none=3", "w.none", "3");
	assert_applies("w.sub={b: 9}", "w.sub", "{a: 1, b: 9}");
	assert_applies("w.sub=3", "w.sub", "3");
	assert_not_applied("w.nme=1", "did you mean 'name'? command line: 'w.nme=1': there is no "
				      "key 'w.nme' (++w.nme=1 would add it)");
	assert_not_applied("v.n=1", "there is no key 'v.n' (++v.n=1 would add it)");
	assert_not_applied("w.name.foo=1", "the parent of 'foo' is text");
	assert_not_applied("w.sub={c: 1}", "'w.sub' has no key 'c'");
	assert_not_applied("w.list.2=1", "'w.list.2' is not in the configuration");
	assert_not_applied("g/s=1", "names a configuration group");
	assert_not_applied("g@p=1", "names a configuration group");
}

static void add(void **state)
{
	(void)state;
	assert_applies("+w.new=1", "w.new", "1");
	assert_applies("+w.x.y.z=1", "w.x", "{y: {z: 1}}");
	assert_applies("+w.none=1", "w.none", "1");
	assert_applies("+w.sub={c: 3}", "w.sub", "{a: 1, b: 2, c: 3}");
	assert_not_applied("+w.n=1", "'w.n' already exists: to change it, write ++w.n=1, or w.n=1 "
				     "without the plus");
	assert_not_applied("+w.list.2=1", "not a position in the list, which has 2 items");
}

static void force(void **state)
{
	(void)state;
	assert_applies("++w.n=5", "w.n", "5");
	assert_applies("++w.new=5", "w.new", "5");
	assert_applies("++w.name.foo=1", "w.name", "{foo: 1}");
	assert_applies("++x.y.z=1", "x", "{y: {z: 1}}");
	assert_applies("++w.sub={b: 9, c: 1}", "w.sub", "{a: 1, b: 9, c: 1}");
	assert_applies("++w.sub=[1]", "w.sub", "[1]");
	assert_applies("++w.list.1.m=4", "w.list", "[1, {k: 2, m: 4}]");
	assert_applies("++w.n=", "w.n", "''");
	assert_not_applied("++w.list.5=1", "not a position in the list");
	assert_not_applied("++w.list.x.y=1", "'x' is not a position in the list");
}

static void delete (void **state)
{
	(void)state;
	assert_applies("~w.n", "w.n", NULL);
	assert_applies("~w.n=4.0", "w.n", NULL);
	assert_applies("~w.sub={b: 2, a: 1}", "w.sub", NULL);
	assert_applies("~w.none", "w.none", NULL);
	assert_applies("~w", "w", NULL);
	assert_not_applied("~w.nope", "'w.nope' cannot be deleted: it is not in the configuration");
	assert_not_applied("~v.nope", "cannot be deleted");
	assert_not_applied("~w.name=y", "'w.name' was not deleted: its value is 'x', not 'y'");
	assert_not_applied("~w.name.x", "cannot be deleted");
	assert_not_applied("~w.list.0", "items of a list cannot be deleted");
}

static void marks_follow_the_winner(void **state)
{
	struct node *root = NULL;
	struct err e = {0};

	(void)state;
	assert_int_equal(apply("w.n=5", &root, &e), 0);
	assert_string_equal(node_path(root, "w.n")->mark.file, NODE_COMMAND_LINE);
	assert_string_equal(node_path(root, "w.name")->mark.file, "t.yaml");
	node_free(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(nan_and_booleans),
		cmocka_unit_test(texts),
		cmocka_unit_test(lists_maps_and_casts),
		cmocka_unit_test(flow_text_reads_back),
		cmocka_unit_test(refusals),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(operations_and_keys),
		cmocka_unit_test(set),
		cmocka_unit_test(add),
		cmocka_unit_test(force),
		cmocka_unit_test(delete),
		cmocka_unit_test(marks_follow_the_winner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
