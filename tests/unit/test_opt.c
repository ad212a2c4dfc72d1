/* Option rows: defaults, conversions, refusals, text, suggestions, distributions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/alloc.h"
#include "conf/opt.h"
#include "conf/override.h"

struct sample {
	bool flag, maybe;
	int64_t count, any, big;
	double ratio, free_number;
	char *name, *text;
	int loader, shuffle, packing;
	struct i64_list dims;
	struct str_list devices;
	struct time_dist wait;
	struct node *extra;
};

static const char *const loaders[] = {"tensorflow", "pytorch", "dali", NULL};
static const char *const shuffles[] = {"off", "seed", "random", NULL};
static const char *const packings[] = {"none", "gzip", NULL};

#define F(field, ctype) OPT_FIELD(struct sample, field, ctype)

static const struct opt rows[] = {
	{.key = "w.flag", .type = OPT_BOOL, .offset = F(flag, bool), .def = "true"},
	{.key = "w.maybe", .type = OPT_BOOL, .offset = F(maybe, bool)},
	{.key = "reader.batch_size",
	 .type = OPT_I64,
	 .offset = F(count, int64_t),
	 .def = "1",
	 .min = 1,
	 .max = 1048576,
	 .unit = "samples",
	 .alias = "data_reader.batch_size"},
	{.key = "w.any", .type = OPT_I64, .offset = F(any, int64_t), .def = "-1"},
	{.key = "dataset.chunk_size",
	 .type = OPT_I64,
	 .offset = F(big, int64_t),
	 .def = "1e3",
	 .min = 1,
	 .max = 9e18,
	 .unit = "bytes"},
	{.key = "metric.au",
	 .type = OPT_F64,
	 .offset = F(ratio, double),
	 .def = "0.9",
	 .min = 0,
	 .max = 1},
	{.key = "w.free",
	 .type = OPT_F64,
	 .offset = F(free_number, double),
	 .def = "0.1",
	 .min = -INFINITY,
	 .max = INFINITY},
	{.key = "model.name", .type = OPT_STR, .offset = F(name, char *), .def = "default"},
	{.key = "w.text", .type = OPT_STR, .offset = F(text, char *)},
	{.key = "reader.data_loader",
	 .type = OPT_ENUM,
	 .offset = F(loader, int),
	 .choices = loaders,
	 .def = "pytorch"},
	{.key = "reader.sample_shuffle",
	 .type = OPT_ENUM,
	 .offset = F(shuffle, int),
	 .choices = shuffles,
	 .def = "seed"},
	{.key = "dataset.compression",
	 .type = OPT_ENUM,
	 .offset = F(packing, int),
	 .choices = packings,
	 .def = "gzip"},
	{.key = "dataset.record_dims",
	 .type = OPT_I64_LIST,
	 .offset = F(dims, struct i64_list),
	 .def = "[2, 3]",
	 .min = 1,
	 .max = 100},
	{.key = "w.devices",
	 .type = OPT_STR_LIST,
	 .offset = F(devices, struct str_list),
	 .def = "[sda, sdb]"},
	{.key = "train.computation_time",
	 .type = OPT_TIME,
	 .offset = F(wait, struct time_dist),
	 .def = "{mean: 0.5, stdev: 0.1}",
	 .max = 1e6,
	 .unit = "s"},
	{.key = "w.extra", .type = OPT_MAP, .offset = F(extra, struct node *), .def = "{a: 1}"},
	{.key = "model.model_size_bytes", .type = OPT_I64, .offset = F(any, int64_t), .def = "-1"},
	{.key = "model.model_datatype", .type = OPT_I64, .offset = F(any, int64_t), .def = "-1"},
	{.key = "train.seed", .type = OPT_I64, .offset = F(any, int64_t), .def = "-1"},
	{.key = "w.seed", .type = OPT_I64, .offset = F(any, int64_t), .def = "-1"},
	{.key = "dataset.hdf5.chunk_dims", .type = OPT_I64, .offset = F(any, int64_t), .def = "-1"},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void start(struct sample *s)
{
	struct err e = {0};

	memset(s, 0, sizeof(*s));
	if (opt_set_defaults(rows, ROWS, s, &e) != 0)
		fail_msg("%s", e.text);
}

static int set(struct sample *s, const char *key, const char *yaml, struct err *e)
{
	AUTO_FREE char *text = xasprintf("\n\nk: %s\n", yaml);
	struct node *root = yaml_parse(text, strlen(text), "x.yaml", e);
	int rc;

	assert_non_null(root);
	rc = opt_set_node(opt_find(rows, ROWS, key), node_get(root, "k"), s, e);
	node_free(root);
	return rc;
}

static void accept(struct sample *s, const char *key, const char *yaml)
{
	struct err e = {0};

	if (set(s, key, yaml, &e) != 0)
		fail_msg("%s", e.text);
}

static void assert_sentence(const char *key, const char *yaml, const char *want)
{
	struct sample s;
	AUTO_FREE char *before = NULL, *after = NULL;
	struct err e = {0};

	start(&s);
	before = opt_get_text(opt_find(rows, ROWS, key), &s);
	if (set(&s, key, yaml, &e) != ERR_USAGE)
		fail_msg("%s: %s was accepted", key, yaml);
	if (strncmp(e.text, want, strlen(want)) != 0)
		fail_msg("'%s' instead of '%s'", e.text, want);
	after = opt_get_text(opt_find(rows, ROWS, key), &s);
	assert_string_equal(before, after);
	assert_int_equal(set(&s, key, yaml, NULL), ERR_USAGE);
	opt_release(rows, ROWS, &s);
}

static void defaults(void **state)
{
	struct sample s;

	(void)state;
	start(&s);
	assert_true(s.flag);
	assert_false(s.maybe);
	assert_int_equal(s.count, 1);
	assert_int_equal(s.big, 1000);
	assert_true(s.ratio == 0.9);
	assert_string_equal(s.name, "default");
	assert_null(s.text);
	assert_int_equal(s.loader, 1);
	assert_int_equal(s.shuffle, 1);
	assert_int_equal(s.dims.n, 2);
	assert_int_equal(s.dims.v[1], 3);
	assert_int_equal(s.devices.n, 2);
	assert_string_equal(s.devices.v[1], "sdb");
	assert_int_equal(s.wait.kind, TIME_NORMAL);
	assert_true(s.wait.b == 0.1);
	assert_int_equal(node_get(s.extra, "a")->i, 1);
	/* again over set fields: nothing leaks */
	assert_int_equal(opt_set_defaults(rows, ROWS, &s, NULL), 0);
	opt_release(rows, ROWS, &s);
	assert_null(s.name);
	assert_null(s.dims.v);
	assert_null(s.extra);
	opt_release(rows, ROWS, &s);
}

static void bad_default_is_an_error(void **state)
{
	static const struct opt bad = {.key = "x", .type = OPT_I64, .def = "abc"};
	static const struct opt worse = {.key = "x", .type = OPT_I64_LIST, .def = "[1"};
	struct i64_list field = {0};
	struct err e = {0};

	(void)state;
	assert_int_equal(opt_set_defaults(&bad, 1, &field, &e), ERR_USAGE);
	assert_int_equal(opt_set_defaults(&worse, 1, &field, &e), ERR_USAGE);
}

static void booleans(void **state)
{
	struct sample s;

	(void)state;
	start(&s);
	accept(&s, "w.flag", "off");
	assert_false(s.flag);
	accept(&s, "w.flag", "'TRUE'");
	assert_true(s.flag);
	accept(&s, "w.flag", "0");
	assert_false(s.flag);
	accept(&s, "w.maybe", "1");
	assert_true(s.maybe);
	accept(&s, "w.maybe", "null");
	assert_false(s.maybe);
	opt_release(rows, ROWS, &s);
	assert_sentence("w.flag", "2",
			"x.yaml: line 3: w.flag: 2 is not a boolean: write true or false");
	assert_sentence("w.flag", "'yes'", "x.yaml: line 3: w.flag: 'yes' is not a boolean");
	assert_sentence("w.flag", "null", "x.yaml: line 3: w.flag: null is not a boolean");
}

static void whole_numbers(void **state)
{
	struct sample s;

	(void)state;
	start(&s);
	accept(&s, "reader.batch_size", "4.0");
	assert_int_equal(s.count, 4);
	accept(&s, "reader.batch_size", "1e3");
	assert_int_equal(s.count, 1000);
	accept(&s, "reader.batch_size", "1048576");
	accept(&s, "data_reader.batch_size", "7");
	assert_int_equal(s.count, 7);
	accept(&s, "w.any", "9223372036854775807");
	assert_true(s.any == INT64_MAX);
	accept(&s, "w.any", "-9223372036854775808");
	assert_true(s.any == INT64_MIN);
	opt_release(rows, ROWS, &s);
	assert_sentence("reader.batch_size", "4.5",
			"x.yaml: line 3: reader.batch_size: 4.5 is not a whole number");
	assert_sentence("reader.batch_size", "true",
			"x.yaml: line 3: reader.batch_size: true is not a whole number");
	assert_sentence("reader.batch_size", "0",
			"x.yaml: line 3: reader.batch_size: 0 is below the minimum 1 (allowed: 1 "
			"to 1048576 "
			"samples)");
	assert_sentence("reader.batch_size", "1048577",
			"x.yaml: line 3: reader.batch_size: 1048577 is above the maximum 1048576 "
			"(allowed: 1 "
			"to 1048576 samples)");
	assert_sentence(
		"dataset.chunk_size", "0",
		"x.yaml: line 3: dataset.chunk_size: 0 is below the minimum 1 (allowed: 1 bytes or "
		"more)");
	assert_sentence(
		"reader.batch_size", "'4'",
		"x.yaml: line 3: reader.batch_size: '4' is text, but a whole number is needed: "
		"remove the "
		"quotes");
	assert_sentence(
		"reader.batch_size", "4k",
		"x.yaml: line 3: reader.batch_size: write 4000: samples are counted without a "
		"unit, not '4k'");
	assert_sentence("reader.batch_size", "[1]",
			"x.yaml: line 3: reader.batch_size: a list is not a");
	assert_sentence("reader.batch_size", ".inf",
			"x.yaml: line 3: reader.batch_size: .inf is not a");
	assert_sentence("reader.batch_size", ".nan",
			"x.yaml: line 3: reader.batch_size: .nan is not a");
	assert_sentence("w.any", "9223372036854775808",
			"x.yaml: line 3: w.any: 9223372036854775808 does not");
	assert_sentence("w.any", "null", "x.yaml: line 3: w.any: null is not a whole number");
}

static void real_numbers(void **state)
{
	struct sample s;

	(void)state;
	start(&s);
	accept(&s, "metric.au", "1");
	assert_true(s.ratio == 1.0);
	accept(&s, "w.free", "-.inf");
	assert_true(s.free_number == -INFINITY);
	opt_release(rows, ROWS, &s);
	assert_sentence("metric.au", "1.5",
			"x.yaml: line 3: metric.au: 1.5 is above the maximum 1 (allowed: 0 "
			"to 1)");
	assert_sentence("metric.au", ".inf",
			"x.yaml: line 3: metric.au: .inf is not a finite number");
	assert_sentence("w.free", ".nan", "x.yaml: line 3: w.free: .nan is not a finite number");
	assert_sentence("metric.au", "high", "x.yaml: line 3: metric.au: 'high' is not a number");
	assert_sentence("metric.au", "'0.5'",
			"x.yaml: line 3: metric.au: '0.5' is text, but a number is needed");
	assert_sentence("metric.au", "yes", "x.yaml: line 3: metric.au: yes is not a number");
}

static void texts(void **state)
{
	struct sample s;

	(void)state;
	start(&s);
	accept(&s, "model.name", "2024");
	assert_string_equal(s.name, "2024");
	accept(&s, "model.name", "010");
	assert_string_equal(s.name, "010");
	accept(&s, "model.name", "On");
	assert_string_equal(s.name, "On");
	accept(&s, "model.name", "null");
	assert_null(s.name);
	accept(&s, "model.name", "''");
	assert_string_equal(s.name, "");
	opt_release(rows, ROWS, &s);
	assert_sentence("model.name", "[a]",
			"x.yaml: line 3: model.name: text is needed here, not a list");
}

static void choices(void **state)
{
	struct sample s;

	(void)state;
	start(&s);
	accept(&s, "reader.data_loader", "TensorFlow");
	assert_int_equal(s.loader, 0);
	accept(&s, "reader.sample_shuffle", "off");
	assert_int_equal(s.shuffle, 0);
	accept(&s, "reader.sample_shuffle", "random");
	accept(&s, "reader.sample_shuffle", "No");
	assert_int_equal(s.shuffle, 0);
	accept(&s, "reader.sample_shuffle", "random");
	accept(&s, "reader.sample_shuffle", "'off'");
	assert_int_equal(s.shuffle, 0);
	accept(&s, "dataset.compression", "null");
	assert_int_equal(s.packing, 0);
	opt_release(rows, ROWS, &s);
	assert_sentence("reader.data_loader", "pytroch",
			"did you mean pytorch? x.yaml: line 3: reader.data_loader: 'pytroch' is "
			"not one of tensorflow, pytorch, dali");
	assert_sentence("reader.data_loader", "off",
			"x.yaml: line 3: reader.data_loader: off is not one of");
	assert_sentence("reader.sample_shuffle", "on",
			"x.yaml: line 3: reader.sample_shuffle: on is not one");
	assert_sentence("reader.data_loader", "null",
			"x.yaml: line 3: reader.data_loader: null is not one");
	assert_sentence("reader.data_loader", "[dali]",
			"x.yaml: line 3: reader.data_loader: a list is not");
}

static void lists_and_maps(void **state)
{
	struct sample s;

	(void)state;
	start(&s);
	accept(&s, "dataset.record_dims", "[4, 5.0, 6]");
	assert_int_equal(s.dims.n, 3);
	assert_int_equal(s.dims.v[1], 5);
	accept(&s, "dataset.record_dims", "[]");
	assert_int_equal(s.dims.n, 0);
	accept(&s, "dataset.record_dims", "null");
	assert_int_equal(s.dims.n, 0);
	accept(&s, "w.devices", "sdc");
	assert_int_equal(s.devices.n, 1);
	assert_string_equal(s.devices.v[0], "sdc");
	accept(&s, "w.devices", "null");
	assert_int_equal(s.devices.n, 0);
	accept(&s, "w.extra", "null");
	assert_null(s.extra);
	opt_release(rows, ROWS, &s);
	assert_sentence("dataset.record_dims", "4",
			"x.yaml: line 3: dataset.record_dims: a list such as [4, 4]");
	assert_sentence("dataset.record_dims", "[1, x]",
			"x.yaml: line 3: dataset.record_dims: 'x' is not a");
	assert_sentence("dataset.record_dims", "[1, 0]",
			"x.yaml: line 3: dataset.record_dims: 0 is below");
	assert_sentence("w.devices", "{a: 1}",
			"x.yaml: line 3: w.devices: a list of texts is needed");
	assert_sentence("w.devices", "[[a]]", "x.yaml: line 3: w.devices: an item is a list");
	assert_sentence("w.devices", "[null]", "x.yaml: line 3: w.devices: an item is null");
	assert_sentence("w.extra", "true", "x.yaml: line 3: w.extra: a map is needed, not true");
}

static void distributions(void **state)
{
	static const struct {
		const char *yaml;
		enum time_kind kind;
		double a, b;
		const char *python;
	} cases[] = {
		{"0.323", TIME_CONSTANT, 0.323, 0, "{'mean': 0.323}"},
		{"0", TIME_CONSTANT, 0, 0, "{'mean': 0}"},
		{"{mean: 1}", TIME_CONSTANT, 1, 0, "{'mean': 1}"},
		{"{mean: 1, stdev: 0.5}", TIME_NORMAL, 1, .5, "{'mean': 1, 'stdev': 0.5}"},
		{"{type: normal, mean: 1, stdev: 2}", TIME_NORMAL, 1, 2, "{'mean': 1, 'stdev': 2}"},
		{"{type: uniform, min: 1, max: 2}", TIME_UNIFORM, 1, 2,
		 "{'type': 'uniform', 'min': 1, 'max': 2}"},
		{"{type: gamma, shape: 1, scale: 2}", TIME_GAMMA, 1, 2,
		 "{'type': 'gamma', 'shape': 1, 'scale': 2}"},
		{"{type: exponential, scale: 2}", TIME_EXPONENTIAL, 2, 0,
		 "{'type': 'exponential', 'scale': 2}"},
		{"{type: poisson, lam: 3}", TIME_POISSON, 3, 0, "{'type': 'poisson', 'lam': 3}"},
		{"{type: pareto, shape: 2, min: 3}", TIME_PARETO, 2, 3,
		 "{'type': 'pareto', 'shape': 2, 'min': 3}"},
		{"{}", TIME_NONE, 0, 0, "{}"},
		{"null", TIME_NONE, 0, 0, "{}"},
	};
	static const char key[] = "train.computation_time";
	struct sample s;

	(void)state;
	start(&s);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_FREE char *python = NULL;

		accept(&s, key, cases[i].yaml);
		assert_int_equal(s.wait.kind, cases[i].kind);
		assert_true(s.wait.a == cases[i].a && s.wait.b == cases[i].b);
		python = time_dist_python(&s.wait);
		assert_string_equal(python, cases[i].python);
	}
	opt_release(rows, ROWS, &s);
	assert_sentence(key, "fast",
			"x.yaml: line 3: train.computation_time: 'fast' is not a number");
	assert_sentence(key, ".nan",
			"x.yaml: line 3: train.computation_time: .nan is not a finite number");
	assert_sentence(key, "{mena: 1}",
			"x.yaml: line 3: train.computation_time: 'mena' is not a field");
	assert_sentence(key, "{stdev: 1}",
			"x.yaml: line 3: train.computation_time: the distribution has no 'mean'");
	assert_sentence(key, "{type: normal, mean: 1}",
			"x.yaml: line 3: train.computation_time: the distribution has no 'stdev'");
	assert_sentence(key, "{mean: 1, stdev: -1}",
			"x.yaml: line 3: train.computation_time.stdev: -1 is below the "
			"minimum 0");
	assert_sentence(key, "{type: zipf}",
			"x.yaml: line 3: train.computation_time: 'zipf' is not a distr");
	assert_sentence(key, "{mean: x}",
			"x.yaml: line 3: train.computation_time.mean: 'x' is not a number");
	assert_sentence(key, "[1]",
			"x.yaml: line 3: train.computation_time: a list is not a number");
	assert_sentence(key, "-0.5",
			"x.yaml: line 3: train.computation_time: -0.5 is below the minimum 0 "
			"(allowed: 0 to 1000000 s)");
	assert_sentence(key, "-1ms", "x.yaml: line 3: train.computation_time: -1ms is below the");
	assert_sentence(key, "{mean: -1}",
			"x.yaml: line 3: train.computation_time.mean: -1 is below the minimum 0");
	assert_sentence(key, "{type: uniform, min: -1, max: 2}",
			"x.yaml: line 3: train.computation_time.min: -1 is below the minimum 0");
	assert_sentence(key, "{type: gamma, shape: -1, scale: 2}",
			"x.yaml: line 3: train.computation_time.shape: -1 is below the minimum 0");
	assert_sentence(key, "{mean: .inf, stdev: 1}",
			"x.yaml: line 3: train.computation_time.mean: .inf is not a finite number");
	assert_sentence(key, "1e7",
			"x.yaml: line 3: train.computation_time: 1e7 is above the maximum 1000000");
}

static void stdev_keys(void **state)
{
	struct time_dist none = {.kind = TIME_NONE}, constant = {.kind = TIME_CONSTANT, .a = 2};
	struct time_dist uniform = {.kind = TIME_UNIFORM, .a = 1, .b = 2};

	(void)state;
	time_dist_set_stdev(&none, 1);
	time_dist_set_stdev(&constant, 0.5);
	time_dist_set_stdev(&uniform, 9);
	assert_int_equal(none.kind, TIME_NONE);
	assert_int_equal(constant.kind, TIME_NORMAL);
	assert_true(constant.a == 2 && constant.b == 0.5);
	assert_true(uniform.b == 2);
	time_dist_set_stdev(&constant, 0.7);
	assert_true(constant.b == 0.7);
}

/* Setting the printed text again by an override gives the same text. */
static void text_round_trips(void **state)
{
	static const char *const values[][2] = {
		{"w.flag", "false"},
		{"w.any", "-9223372036854775807"},
		{"metric.au", "0.1"},
		{"w.free", "1e300"},
		{"model.name", "'a, b'"},
		{"model.name", "''"},
		{"model.name", "'null'"},
		{"model.name", "./data/x y"},
		{"w.text", "null"},
		{"dataset.record_dims", "[]"},
		{"w.devices", "[a, 'b, c', '5']"},
		{"train.computation_time", "{type: gamma, shape: 1.5, scale: 2}"},
		{"train.computation_time", "0.25"},
		{"w.extra", "{a: [1, 'x''y'], b: null}"},
	};
	struct sample s;

	(void)state;
	start(&s);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		accept(&s, values[i][0], values[i][1]);
	for (size_t i = 0; i < ROWS; i++) {
		AUTO_FREE char *text = opt_get_text(&rows[i], &s), *again = NULL;
		struct err e = {0};
		struct node *v = override_parse_value(text, &e);

		if (!v || opt_set_node(&rows[i], v, &s, &e) != 0)
			fail_msg("%s: %s: %s", rows[i].key, text, e.text);
		again = opt_get_text(&rows[i], &s);
		assert_string_equal(text, again);
		node_free(v);
	}
	opt_release(rows, ROWS, &s);
}

static void printed_text(void **state)
{
	static const struct {
		const char *key, *yaml, *want;
	} cases[] = {
		{"w.flag", "on", "true"},
		{"metric.au", "1", "1"},
		{"metric.au", "0.9", "0.9"},
		{"model.name", "x y", "x y"},
		{"model.name", "null", "null"},
		{"model.name", "'5'", "'5'"},
		{"reader.sample_shuffle", "off", "off"},
		{"dataset.record_dims", "[4, 5]", "[4, 5]"},
		{"train.computation_time", "0.323", "0.323"},
		{"train.computation_time", "{mean: 1, stdev: 0.5}", "{mean: 1, stdev: 0.5}"},
		{"train.computation_time", "{type: poisson, lam: 2}", "{type: poisson, lam: 2}"},
		{"train.computation_time", "null", "{}"},
		{"w.extra", "null", "null"},
	};
	struct sample s;

	(void)state;
	start(&s);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_FREE char *text = NULL;

		accept(&s, cases[i].key, cases[i].yaml);
		text = opt_get_text(opt_find(rows, ROWS, cases[i].key), &s);
		assert_string_equal(text, cases[i].want);
	}
	opt_release(rows, ROWS, &s);
}

static void override_sentences_have_no_line(void **state)
{
	struct node *v = override_parse_value("x", NULL);
	struct sample s;
	struct err e = {0};

	(void)state;
	start(&s);
	assert_int_equal(opt_set_node(opt_find(rows, ROWS, "reader.batch_size"), v, &s, &e),
			 ERR_USAGE);
	assert_string_equal(e.text, "command line: reader.batch_size: 'x' is not a whole number");
	node_free(v);
	opt_release(rows, ROWS, &s);
}

static void suggestions(void **state)
{
	static const struct {
		const char *key, *want;
	} cases[] = {
		{"model.model_size", "model.model_size_bytes"},
		{"reader.batchsize", "reader.batch_size"},
		{"train.batch_size", "reader.batch_size"},
		{"batch_size", "reader.batch_size"},
		{"reader.data_loadr", "reader.data_loader"},
		{"dataset.chunk_dims", "dataset.hdf5.chunk_dims"},
		{"trian.seed", "train.seed"},
		{"w.sed", "w.seed"},
		{"READER.BATCH_SIZE", "reader.batch_size"},
		{"dataset.zzz", NULL},
		{"x", NULL},
		{"", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *near = opt_nearest_key(rows, ROWS, cases[i].key);

		if ((near == NULL) != (cases[i].want == NULL) ||
		    (near && strcmp(near, cases[i].want) != 0))
			fail_msg("'%s' suggests %s", cases[i].key, near ? near : "nothing");
	}
	assert_null(opt_find(rows, ROWS, "nope"));
	assert_null(opt_nearest_key(rows, 0, "x"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(bad_default_is_an_error),
		cmocka_unit_test(booleans),
		cmocka_unit_test(whole_numbers),
		cmocka_unit_test(real_numbers),
		cmocka_unit_test(texts),
		cmocka_unit_test(choices),
		cmocka_unit_test(lists_and_maps),
		cmocka_unit_test(distributions),
		cmocka_unit_test(stdev_keys),
		cmocka_unit_test(text_round_trips),
		cmocka_unit_test(printed_text),
		cmocka_unit_test(override_sentences_have_no_line),
		cmocka_unit_test(suggestions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
