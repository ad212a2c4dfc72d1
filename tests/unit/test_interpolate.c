/* ${...}: references, environment, time, cycles and limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "conf/override.h"

/* 2025-11-30 18:34:59 UTC */
#define NOW_NS (1764527699000000000 + 999999999)

static struct node *parse(const char *text)
{
	struct err e = {0};
	struct node *n = yaml_parse(text, strlen(text), "t.yaml", &e);

	if (!n)
		fail_msg("%s", e.text);
	return n;
}

static void assert_resolves(const char *yaml, const char *want)
{
	struct node *n = parse(yaml);
	struct err e = {0};
	struct buf b = {0};

	if (node_interpolate(n, NOW_NS, &e) != 0)
		fail_msg("%s", e.text);
	/* a second pass changes nothing */
	assert_int_equal(node_interpolate(n, NOW_NS, &e), 0);
	node_emit_flow(n, &b);
	assert_string_equal(b.data, want);
	buf_release(&b);
	node_free(n);
}

static void assert_refused(const char *yaml, const char *sentence)
{
	struct node *n = parse(yaml);
	struct err e = {0};

	assert_int_equal(node_interpolate(n, NOW_NS, &e), ERR_USAGE);
	if (!strstr(e.text, sentence))
		fail_msg("'%s' instead of '%s'", e.text, sentence);
	node_free(n);
	n = parse(yaml);
	assert_int_equal(node_interpolate(n, NOW_NS, NULL), ERR_USAGE);
	node_free(n);
}

static void references(void **state)
{
	(void)state;
	assert_resolves("a: {b: 7}\nc: ${a.b}\nd: x${a.b}y\n", "{a: {b: 7}, c: 7, d: x7y}");
	assert_resolves("a: {b: [1, {c: z}]}\nd: ${a.b.1.c}\ne: ${a.b[0]}\nf: ${a}\n",
			"{a: {b: [1, {c: z}]}, d: z, e: 1, f: {b: [1, {c: z}]}}");
	assert_resolves("c: ${b}\nb: ${a}\na: 1\n", "{c: 1, b: 1, a: 1}");
	assert_resolves("a: {b: '${.c}', c: 3, d: {e: '${..c}'}}\n",
			"{a: {b: 3, c: 3, d: {e: 3}}}");
	assert_resolves("k: b\na: {b: 5}\nc: ${a.${k}}\n", "{k: b, a: {b: 5}, c: 5}");
	assert_resolves("m: {x: 1}\na: ${m}\nb: ${a.x}\n", "{m: {x: 1}, a: {x: 1}, b: 1}");
	assert_resolves("b: ${a.x}\na: ${m}\nm: {x: 1}\n", "{b: 1, a: {x: 1}, m: {x: 1}}");
	assert_resolves("a: [1, '${x}']\nx: '5'\n", "{a: [1, '5'], x: '5'}");
	assert_resolves("t: true\nf: 1e3\nn: null\ns: '${t} ${f} ${n}'\n",
			"{t: true, f: 1000.0, n: null, s: True 1000.0 None}");
	assert_resolves("a: $x $ {y} }\n", "{a: '$x $ {y} }'}");
}

static void escapes(void **state)
{
	(void)state;
	assert_resolves("a: 1\nb: '\\${a}'\n", "{a: 1, b: '${a}'}");
	assert_resolves("a: 1\nb: '\\\\${a}'\n", "{a: 1, b: '\\1'}");
	assert_resolves("a: 1\nb: 'x\\y'\n", "{a: 1, b: 'x\\y'}");
	assert_resolves("b: '\\${a}'\nc: ${b}\n", "{b: '${a}', c: '${a}'}");
}

static void environment(void **state)
{
	(void)state;
	setenv("STOKER_TEST_N", "8", 1);
	setenv("STOKER_TEST_S", "${a}", 1);
	unsetenv("STOKER_TEST_NONE");
	assert_resolves("a: ${oc.env:STOKER_TEST_N}\nb: x${oc.env:STOKER_TEST_N}\n",
			"{a: 8, b: x8}");
	assert_resolves("a: ${oc.env:STOKER_TEST_S}\n", "{a: '${a}'}");
	assert_resolves("a: ${oc.env:STOKER_TEST_NONE,5}\nb: '${oc.env:STOKER_TEST_NONE, x y }'\n",
			"{a: 5, b: x y}");
	assert_resolves("a: ${oc.env:STOKER_TEST_NONE,null}\nb: ${oc.env:STOKER_TEST_NONE,'5'}\n",
			"{a: null, b: '5'}");
	assert_resolves("a: ${oc.env:STOKER_TEST_NONE,${b}}\nb: 3\n", "{a: 3, b: 3}");
	assert_resolves("a: ${oc.select:nope,4}\nb: ${oc.select:a}\nc: ${oc.select:nope}\n",
			"{a: 4, b: 4, c: null}");
	assert_refused(
		"a: {b: '${oc.env:STOKER_TEST_NONE}'}\n",
		"t.yaml: line 1: a.b: the environment variable 'STOKER_TEST_NONE' is not set");
}

static void start_time(void **state)
{
	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	assert_resolves("a: ${now:%Y-%m-%d}-${now:%H-%M-%S}\n", "{a: 2025-11-30-18-34-59}");
	assert_resolves("a: ${now:%H:%M}x\n", "{a: 18:34x}");
	assert_resolves("a: ${now:}x\n", "{a: x}");
	assert_refused("a: ${now:%1000Y}\n", "produces no text or more than");
}

static void refusals(void **state)
{
	(void)state;
	assert_refused(
		"x: 1\na: {b: '${nope.x}'}\n",
		"t.yaml: line 2: a.b: '${nope.x}' names a key that is not in the configuration");
	assert_refused("a: ${a}\n", "refers to itself");
	assert_refused("a: ${b}\nb: x${c}\nc: ${a}\n", "refers to itself");
	assert_refused("a: {b: '${a}'}\n", "refers to itself");
	assert_refused("a: '${b'\nb: 1\n", "'${' is not closed");
	assert_refused("a: '${}'\n", "does not name a key");
	assert_refused("a: ${.....x}\n", "is not in the configuration");
	assert_refused("a: ${x:y}\n", "the resolver 'x' is unknown");
	assert_refused(
		"a: [1]\nb: x${a}\n",
		"t.yaml: line 2: b: an interpolation inside other text must give text, not a "
		"list");
	assert_refused("a: '?\?\?'\nb: ${a}\n", "whose value is missing");
	assert_refused("a: ${b.x}\nb: 5\n", "is not in the configuration");
}

static void limits(void **state)
{
	struct buf b = {0};

	(void)state;
	for (int i = 0; i < 40; i++)
		buf_printf(&b, "k%d: ${k%d}\n", i, i + 1);
	buf_puts(&b, "k40: 1\n");
	assert_refused(b.data, "has more than 32 steps");
	buf_reset(&b);
	buf_puts(&b, "k0: [x, x, x, x, x, x, x, x, x, x]\n");
	for (int i = 1; i < 9; i++)
		buf_printf(&b,
			   "k%d: ['${k%d}', '${k%d}', '${k%d}', '${k%d}', '${k%d}', '${k%d}', "
			   "'${k%d}']\n",
			   i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
	assert_refused(b.data, "larger than 100000 values");
	buf_reset(&b);
	buf_puts(&b, "k0: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n");
	for (int i = 1; i < 30; i++)
		buf_printf(&b, "k%d: '${k%d}${k%d}'\n", i, i - 1, i - 1);
	assert_refused(b.data, "MiB of text");
	buf_reset(&b);
	buf_puts(&b, "a: '");
	for (int i = 0; i < 20; i++)
		buf_puts(&b, "${");
	buf_puts(&b, "'\n");
	assert_refused(b.data, "nested deeper than 16");
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(references),  cmocka_unit_test(escapes),
		cmocka_unit_test(environment), cmocka_unit_test(start_time),
		cmocka_unit_test(refusals),    cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
