/* Types of plain scalars, and Python's text of doubles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "conf/node.h"

struct scalar {
	const char *text;
	enum node_kind kind;
	double f;
};

static void kinds(void **state)
{
	static const struct scalar cases[] = {
		{"", NODE_NULL, 0},
		{"~", NODE_NULL, 0},
		{"null", NODE_NULL, 0},
		{"NULL", NODE_NULL, 0},
		{"nUll", NODE_STR, 0},
		{"None", NODE_STR, 0},
		{"0", NODE_INT, 0},
		{"-0", NODE_INT, 0},
		{"+5", NODE_INT, 5},
		{"1_000", NODE_INT, 1000},
		{"1__0", NODE_INT, 10},
		{"010", NODE_INT, 8},
		{"-010", NODE_INT, -8},
		{"08", NODE_STR, 0},
		{"0x1F", NODE_INT, 31},
		{"0X1F", NODE_STR, 0},
		{"0b101", NODE_INT, 5},
		{"0b2", NODE_STR, 0},
		{"0o17", NODE_STR, 0},
		{"0x", NODE_STR, 0},
		{"1:30", NODE_INT, 90},
		{"12:30:45", NODE_INT, 45045},
		{"-1:30", NODE_INT, -90},
		{"1:60", NODE_STR, 0},
		{"1:", NODE_STR, 0},
		{"0:30", NODE_STR, 0},
		{"1:30.5", NODE_FLOAT, 90.5},
		{"1.5", NODE_FLOAT, 1.5},
		{"1.", NODE_FLOAT, 1},
		{".5", NODE_FLOAT, .5},
		{"-.5", NODE_STR, 0},
		{"4_0.5", NODE_FLOAT, 40.5},
		{"1e3", NODE_FLOAT, 1000},
		{"1e-3", NODE_FLOAT, .001},
		{"1.0e3", NODE_FLOAT, 1000},
		{"1.0e+3", NODE_FLOAT, 1000},
		{".5e3", NODE_STR, 0},
		{".5e+3", NODE_FLOAT, 500},
		{"1e", NODE_STR, 0},
		{"e3", NODE_STR, 0},
		{".inf", NODE_FLOAT, INFINITY},
		{"-.INF", NODE_FLOAT, -INFINITY},
		{"inf", NODE_STR, 0},
		{".iNf", NODE_STR, 0},
		{"nan", NODE_STR, 0},
		{".", NODE_STR, 0},
		{"._", NODE_STR, 0},
		{"._e+1", NODE_STR, 0},
		{"_1", NODE_STR, 0},
		{"-", NODE_STR, 0},
		{"+", NODE_STR, 0},
		{"2020-01-01", NODE_STR, 0},
		{"1.5GB", NODE_STR, 0},
		{"yes", NODE_BOOL, 0},
		{"Off", NODE_BOOL, 0},
		{"ON", NODE_BOOL, 0},
		{"oN", NODE_STR, 0},
		{"y", NODE_STR, 0},
		{"TRUE", NODE_BOOL, 0},
		{"9223372036854775807", NODE_INT, 0x1p63},
		{"-9223372036854775808", NODE_INT, -0x1p63},
		{"9223372036854775808", NODE_FLOAT, 0x1p63},
		{"0xffffffffffffffffff", NODE_FLOAT, 0x1p72},
		{"1e400", NODE_FLOAT, INFINITY},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct node *n = yaml_plain_scalar(cases[i].text, (struct node_mark){0});

		if (n->kind != cases[i].kind)
			fail_msg("'%s' is %s", cases[i].text, node_kind_name(n->kind));
		if (n->kind == NODE_INT || n->kind == NODE_FLOAT)
			assert_true(n->f == cases[i].f);
		if (n->kind == NODE_INT)
			assert_true((double)n->i == cases[i].f);
		if (n->kind != NODE_NULL)
			assert_string_equal(n->s, cases[i].text);
		node_free(n);
	}
}

static void booleans(void **state)
{
	static const char *const yes[] = {"yes", "Yes",  "YES",  "on",  "On",
					  "ON",  "true", "True", "TRUE"};
	static const char *const no[] = {"no",  "No",    "NO",    "off",  "Off",
					 "OFF", "false", "False", "FALSE"};

	(void)state;
	for (size_t i = 0; i < 9; i++) {
		struct node *a = yaml_plain_scalar(yes[i], (struct node_mark){0});
		struct node *b = yaml_plain_scalar(no[i], (struct node_mark){0});

		assert_int_equal(a->kind, NODE_BOOL);
		assert_int_equal(b->kind, NODE_BOOL);
		assert_true(a->b);
		assert_false(b->b);
		node_free(a);
		node_free(b);
	}
}

static void extreme_integers(void **state)
{
	struct node *max = yaml_plain_scalar("9223372036854775807", (struct node_mark){0});
	struct node *min = yaml_plain_scalar("-9223372036854775808", (struct node_mark){0});

	(void)state;
	assert_true(max->i == INT64_MAX);
	assert_true(min->i == INT64_MIN);
	node_free(max);
	node_free(min);
}

static void float_text(void **state)
{
	static const struct {
		double v;
		const char *text;
	} cases[] = {
		{0, "0.0"},
		{-0.0, "-0.0"},
		{1, "1.0"},
		{0.1, "0.1"},
		{0.323, "0.323"},
		{1000, "1000.0"},
		{1e15, "1000000000000000.0"},
		{1e16, "1e+16"},
		{9999999999999998.0, "9999999999999998.0"},
		{1.5e300, "1.5e+300"},
		{0.0001, "0.0001"},
		{0.00001, "1e-05"},
		{1.25e-7, "1.25e-07"},
		{1.0 / 3, "0.3333333333333333"},
		{5e-324, "5e-324"},
		{1.7976931348623157e308, "1.7976931348623157e+308"},
		{INFINITY, "inf"},
		{-INFINITY, "-inf"},
		{123456789.125, "123456789.125"},
	};
	char out[NODE_FLOAT_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(node_float_text(cases[i].v, out, sizeof(out)), cases[i].text);
	assert_string_equal(node_float_text(NAN, out, sizeof(out)), "nan");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds),
		cmocka_unit_test(booleans),
		cmocka_unit_test(extreme_integers),
		cmocka_unit_test(float_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
