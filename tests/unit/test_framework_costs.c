/* Laws, profiles and the key framework.costs: every spelling, what is refused, and that a
 * configuration which was written down again is the same. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "workload_file.h"

#include "base/str.h"
#include "workload/framework_costs.h"

#define REST "dataset: {format: npz, num_files_train: 100000}\n"
#define GOOD "framework: pytorch\n" REST

static int load(const char *text, const char *const *overrides, struct workload *w, struct err *e)
{
	return load_request(text, overrides, (struct workload_request){.inspect = true}, w, e);
}

static struct framework_costs *profile(const char *text, struct err *e)
{
	struct node *doc = yaml_parse(text, strlen(text), "p.yaml", e);
	struct framework_costs *c = doc ? costs_from_node(doc, false, e) : NULL;

	node_free(doc);
	return c;
}

static void laws_add_up(void **state)
{
	const struct cost_law law = {.fixed = 1, .per_sample = 0.25, .per_byte = 0.125};
	const struct cost_law waits = {.after_wait = 0.5};

	(void)state;
	assert_true(fabs(cost_law_s(&law, 2, 8) - 2.5) < 1e-12);
	assert_true(cost_law_s(costs_of(NULL, COST_COLLATE), 5, 5) == 0);
	/* a wait counts in full once it is long */
	assert_true(cost_after_wait_s(&law, 8, 1) == 0 && cost_after_wait_s(&waits, 8, 0) == 0);
	assert_true(fabs(cost_after_wait_s(&waits, 8, 1) - 0.5) < 1e-12);
	assert_true(fabs(cost_after_wait_s(&waits, 8, 0.001) / 0.5 - 0.22) < 0.01);
	assert_true(cost_law_s(costs_of_load(NULL, format_facts_table[0]), 5, 5) == 0);
}

/* The format of the one law of loading that a profile has. */
static const struct format_facts *load_of(const struct framework_costs *c)
{
	size_t i = 0;

	while (format_facts_table[i] && !costs_of_load(c, format_facts_table[i])->present)
		i++;
	return format_facts_table[i];
}

/* Between points on straight lines; outside as its contract says; beside per_sample. */
static void laws_with_points(void **state)
{
	struct err e = {0};
	struct framework_costs *c = profile(
		"name: x\nlaws: {collate: {fixed: 9, per_sample: 0.5, per_byte: 1e-4, after_wait: "
		"9, "
		"points: [[10, 1, 0], [20, 3, 2], [40, 4, 1]]}, pack: {points: [[1, 5, 1], [2, 3, "
		"1]]}}",
		&e);
	static const struct {
		double bytes, s, wait;
	} at[] = {{0, 1, 0},      {10, 1, 0}, {15, 2, 1}, {20, 3, 2},
		  {30, 3.5, 1.5}, {40, 4, 1}, {80, 6, 1}};
	const struct cost_law *law, *falls;
	struct framework_costs *again;
	struct node *doc;

	(void)state;
	assert_non_null(c);
	doc = costs_node(c);
	again = costs_from_node(doc, false, &e);
	assert_non_null(again);
	assert_string_equal(again->digest, c->digest);
	law = costs_of(again, COST_COLLATE);
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		assert_true(fabs(cost_law_s(law, 2, at[i].bytes) - at[i].s - 1) < 1e-9);
		assert_true(fabs(cost_after_wait_s(law, at[i].bytes, 60) - at[i].wait) < 1e-6);
	}
	falls = costs_of(c, COST_PACK);
	assert_true(fabs(cost_law_s(falls, 1, 100) - 3) < 1e-9);
	node_free(doc);
	costs_release(again);
	costs_release(c);
	c = profile("name: x\nlaws: {load_npz: {after_each_wait: 1}}", &e);
	again = profile("name: x\nlaws: {load_npz: {after_each_wait: 0}}", &e);
	assert_string_not_equal(again->digest, c->digest);
	costs_release(again);
	costs_release(c);
	/* loading without workers: a fourth number of points, that of workers where it is left out
	 */
	c = profile("name: x\nlaws: {load_npz: {per_sample: 1, first: 2, before_data: 0.25, "
		    "after_data: 0.5, import: 0.75, points: [[0, 5, 1, 3], [2, 3, 1]]}}",
		    &e);
	doc = costs_node(c);
	again = costs_from_node(doc, false, &e);
	assert_non_null(again);
	assert_string_equal(again->digest, c->digest);
	law = costs_of_load(again, load_of(again));
	assert_true(law->first > 1.9 && law->before_data > 0.2 && law->after_data > 0.4);
	assert_true(law->import_s > 0.7);
	assert_true(fabs(cost_load_s(law, 1, true) - 4) < 1e-9);
	assert_true(fabs(cost_load_s(law, 1, false) - 5) < 1e-9);
	assert_true(fabs(cost_load_s(law, 4, true) - 4) < 1e-9);
	node_free(doc);
	costs_release(again);
	again = profile(
		"name: x\nlaws: {load_npz: {per_sample: 1, points: [[0, 5, 1], [2, 3, 1]]}}", &e);
	law = costs_of_load(again, load_of(again));
	assert_true(fabs(cost_load_s(law, 1, true) - 5) < 1e-9);
	assert_string_not_equal(again->digest, c->digest);
	costs_release(again);
	costs_release(c);
	c = profile("name: x\nlaws: {pack: {points: [[1, 5, 1], [2, 3, 2]]}}", &e);
	again = profile("name: x\nlaws: {pack: {points: [[1, 5, 1], [2, 3, 1]]}}", &e);
	assert_string_not_equal(again->digest, c->digest);
	costs_release(again);
	costs_release(c);
}

static void every_row_is_read_back(void **state)
{
	struct buf text = {0};
	struct framework_costs *c, *again;
	struct node *doc;

	(void)state;
	buf_puts(&text, "name: all\nprocessor: '8'\nlaws:\n");
	for (size_t i = 0; i < COST_ROWS; i++)
		buf_printf(&text, "  %s: {spread: 0.%zu%s}\n", cost_rows[i].name, i + 1,
			   cost_rows[i].parameters & COST_HAS_FIXED ? ", fixed: 1.5e-3" : "");
	for (size_t i = 0; format_facts_table[i]; i++)
		buf_printf(&text, "  load_%s: {per_byte: %zue-9, after_each_wait: %zue-6}\n",
			   format_facts_table[i]->name, i + 1, i + 1);
	c = profile(text.data, NULL);
	assert_non_null(c);
	doc = costs_node(c);
	again = costs_from_node(doc, false, NULL);
	assert_non_null(again);
	assert_string_equal(c->digest, again->digest);
	assert_string_equal(again->about[COST_ABOUT_PROCESSOR], "8");
	for (enum cost_row i = 0; i < COST_ROWS; i++) {
		assert_true(costs_of(again, i)->present);
		assert_memory_equal(costs_of(again, i), costs_of(c, i), sizeof(struct cost_law));
	}
	for (size_t i = 0; format_facts_table[i]; i++)
		assert_true(fabs(costs_of_load(again, format_facts_table[i])->per_byte -
				 (double)(i + 1) * 1e-9) < 1e-15 &&
			    fabs(costs_of_load(again, format_facts_table[i])->after_each_wait -
				 (double)(i + 1) * 1e-6) < 1e-12);
	node_free(doc);
	costs_release(c);
	costs_release(again);
	buf_release(&text);
}

static const struct {
	const char *text;
	const char *says[3];
} bad[] = {
	{"[]", {"p.yaml", "a profile is a map"}},
	{"", {"name is missing"}},
	{"name: x\n", {"laws is missing"}},
	{"laws: {}\n", {"name is missing"}},
	{"name: x y\nlaws: {}\n", {"line 1: name:", "letters"}},
	{"name: none\nlaws: {}\n", {"another name"}},
	{"name: [x]\nlaws: {}\n", {"the name of a profile"}},
	{"name: x\nlaws: 5\n", {"line 2: laws: a map of laws"}},
	{"name: x\nlaw: {}\nlaws: {}\n", {"did you mean laws? ", "line 2", "law is none of name"}},
	{"name: x\nlaws:\n  colate: {}\n", {"did you mean collate? ", "line 3", "load_npz"}},
	{"name: x\nlaws:\n  load_npx: {}\n", {"did you mean load_npz? ", "laws.load_npx"}},
	{"name: x\nlaws:\n  collate: 3\n", {"line 3: laws.collate: a law is a map"}},
	{"name: x\nlaws:\n  collate: {fixd: 3}\n", {"did you mean fixed? ", "line 3", "per_byte"}},
	{"name: x\nlaws:\n  step: {per_byte: 0}\n",
	 {"laws.step.per_byte is none of fixed, after_wait, spread"}},
	{"name: x\nlaws:\n  step: {after_each_wait: 0}\n",
	 {"laws.step.after_each_wait is none of fixed, after_wait, spread"}},
	{"name: x\nlaws:\n  load_npz: {after_each_wait: -1}\n",
	 {"line 3: laws.load_npz.after_each_wait: -1", "0 to 60 s"}},
	{"name: x\nlaws:\n  step: {fixed: -1}\n", {"line 3: laws.step.fixed: -1", "0 to 60 s"}},
	{"name: x\nlaws:\n  step: {fixed: 61}\n", {"laws.step.fixed: 61", "0 to 60 s"}},
	{"name: x\nlaws:\n  step: {fixed: .nan}\n", {"laws.step.fixed", "finite"}},
	{"name: x\nlaws:\n  step: {fixed: .inf}\n", {"laws.step.fixed", "finite"}},
	{"name: x\nlaws:\n  step: {fixed: '1'}\n", {"laws.step.fixed", "remove the quotes"}},
	{"name: x\nlaws:\n  step: {fixed: []}\n", {"laws.step.fixed", "a list is not a number"}},
	{"name: x\nlaws:\n  pack: {per_byte: 1}\n", {"laws.pack.per_byte: 1", "0 to 0.001 s"}},
	{"name: x\nlaws:\n  pack: {spread: 11}\n", {"laws.pack.spread: 11", "0 to 10"}},
	{"name: x\nlaws:\n  pack: {}\n  pack: {}\n", {"line 4", "pack"}},
	{"name: x\nlaws:\n  step: {points: [[1, 1, 0], [2, 1, 0]]}\n",
	 {"laws.step.points is none of fixed, after_wait, spread"}},
	{"name: x\nlaws:\n  pack: {points: 3}\n", {"line 3: laws.pack.points", "2 to 16 points"}},
	{"name: x\nlaws:\n  pack: {points: [[1, 1, 0]]}\n", {"2 to 16 points"}},
	{"name: x\nlaws:\n  pack: {points: [[1, 1, 0], [2, 1]]}\n",
	 {"laws.pack.points", "of three"}},
	{"name: x\nlaws:\n  pack: {points: [[1, 1, 0], [1, 1, 0]]}\n", {"must rise"}},
	{"name: x\nlaws:\n  pack: {points: [[1, 1, 0], [2, -1, 0]]}\n", {"0 to 60 s"}},
	{"name: x\nlaws:\n  pack: {points: [[1, 1, 0], [2, 1, x]]}\n", {"laws.pack.points"}},
	{"name: x\ndate: {}\nlaws: {}\n", {"line 2: date: text is needed"}},
	{"name: x\nlaws: {pack: {fixed: 1}\n", {"p.yaml"}},
};

static void refused_with_a_sentence(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err e = {0};

		assert_null(profile(bad[i].text, &e));
		assert_int_equal(e.code, ERR_USAGE);
		for (size_t k = 0; k < 3 && bad[i].says[k]; k++)
			if (!strstr(e.text, bad[i].says[k]))
				fail_msg("%s: '%s' lacks '%s'", bad[i].text, e.text,
					 bad[i].says[k]);
	}
}

static void units_are_read(void **state)
{
	struct framework_costs *c =
		profile("name: x\nlaws: {step: {fixed: 1.5 ms}, pack: {per_byte: 2 ns}}", NULL);

	(void)state;
	assert_non_null(c);
	assert_true(fabs(costs_of(c, COST_STEP)->fixed - 1.5e-3) < 1e-12);
	assert_true(fabs(costs_of(c, COST_PACK)->per_byte - 2e-9) < 1e-15);
	costs_release(c);
}

static const struct {
	const char *text, *overrides[3];
	const char *label; /* the name before its @; "none" */
	int framework;
} spelled[] = {
	{GOOD, {0}, "none", FRAMEWORK_PYTORCH},
	{GOOD "framework.costs: torch-1.13\n", {0}, "torch-1.13", FRAMEWORK_PYTORCH},
	{"framework: {name: pytorch, costs: torch-1.13}\n" REST,
	 {0},
	 "torch-1.13",
	 FRAMEWORK_PYTORCH},
	{"workload:\n  framework: {name: pytorch, costs: torch-1.13}\n",
	 {0},
	 "torch-1.13",
	 FRAMEWORK_PYTORCH},
	{"defaults: [unet3d_h100]\nframework: {costs: torch-1.13}\n",
	 {0},
	 "torch-1.13",
	 FRAMEWORK_PYTORCH},
	{GOOD, {"framework.costs=torch-1.13"}, "torch-1.13", FRAMEWORK_PYTORCH},
	{GOOD, {"++workload.framework.costs=torch-1.13"}, "torch-1.13", FRAMEWORK_PYTORCH},
	{GOOD, {"framework.costs=torch"}, "torch-2.15", FRAMEWORK_PYTORCH},
	{GOOD, {"framework.costs=tensorflow"}, "tensorflow-2.21", FRAMEWORK_PYTORCH},
	{GOOD, {"+workload.framework.costs=torch-1.13"}, "torch-1.13", FRAMEWORK_PYTORCH},
	{GOOD "framework.costs: torch-1.13\n", {"~framework.costs"}, "none", FRAMEWORK_PYTORCH},
	{GOOD "framework.costs: torch-1.13\n", {"framework.costs=none"}, "none", FRAMEWORK_PYTORCH},
	{GOOD "framework.costs: torch-1.13\n", {"framework.costs=null"}, "none", FRAMEWORK_PYTORCH},
	{REST, {"framework={name: pytorch, costs: torch-1.13}"}, "torch-1.13", FRAMEWORK_PYTORCH},
	{REST,
	 {"framework.name=pytorch", "framework.costs=torch-1.13"},
	 "torch-1.13",
	 FRAMEWORK_PYTORCH},
	{GOOD "compat: {dlio: true}\n", {0}, "torch-1.13", FRAMEWORK_PYTORCH},
	{GOOD, {"compat.dlio=true", "framework.costs=none"}, "none", FRAMEWORK_PYTORCH},
	{REST, {"compat.dlio=true", "framework=tensorflow"}, "none", FRAMEWORK_TENSORFLOW},
};

static void every_spelling(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(spelled) / sizeof(spelled[0]); i++) {
		struct workload w;
		struct err e = {0};
		size_t n = strlen(spelled[i].label);

		if (load(spelled[i].text, spelled[i].overrides, &w, &e) != 0)
			fail_msg("%zu: %s", i, e.text);
		assert_int_equal(w.framework, spelled[i].framework);
		if (strncmp(w.framework_costs, spelled[i].label, n) != 0 ||
		    (w.framework_costs[n] != '@' && w.framework_costs[n] != '\0'))
			fail_msg("%zu: %s", i, w.framework_costs);
		assert_int_equal(w.costs != NULL, strcmp(spelled[i].label, "none") != 0);
		workload_release(&w);
	}
}

static void said_twice(void **state)
{
	static const char *const texts[] = {
		"framework: {name: pytorch, costs: torch-1.13}\nframework.costs: none\n" REST,
		"workload:\n  framework.costs: none\n  framework: {costs: none}\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct workload w;
		struct err e = {0};

		assert_int_equal(load(texts[i], NULL, &w, &e), ERR_USAGE);
		assert_non_null(strstr(e.text, "framework.costs"));
		assert_non_null(strstr(e.text, "keep one"));
		workload_release(&w);
	}
}

/* What is written into results, and the label that is shown, mean the same costs. */
static void written_down_again(void **state)
{
	const char *const overrides[] = {"framework.costs=torch-1.13", NULL};
	struct workload w, back, again;
	struct err e = {0};
	struct buf text = {0};

	(void)state;
	assert_int_equal(load(GOOD, overrides, &w, &e), 0);
	yaml_emit(w.composed, &text);
	assert_int_equal(load(text.data, NULL, &again, &e), 0);
	assert_string_equal(again.framework_costs, w.framework_costs);
	assert_true(node_equal(again.composed, w.composed));
	assert_int_equal(workload_read_back(&back, w.composed, &e), 0);
	assert_string_equal(back.framework_costs, w.framework_costs);
	assert_memory_equal(costs_of(back.costs, COST_COLLATE), costs_of(w.costs, COST_COLLATE),
			    sizeof(struct cost_law));
	workload_release(&again);
	workload_release(&back);

	AUTO_FREE char *key = xasprintf("framework.costs=%s", w.framework_costs);
	const char *const label[] = {key, NULL};

	assert_int_equal(load(GOOD, label, &again, &e), 0);
	assert_string_equal(again.framework_costs, w.framework_costs);
	workload_release(&again);
	workload_release(&w);
	buf_release(&text);
}

/* A path is of the folder of the file that has the key; a result of another version may have rows
 * that are not known here. */
static void files_and_other_versions(void **state)
{
	static const char text[] = "name: mine\nlaws: {step: {fixed: 1e-3}}\n";
	static const char other[] = "workload:\n"
				    "  framework: pytorch\n"
				    "  framework.costs:\n"
				    "    name: later\n"
				    "    colour: red\n"
				    "    laws: {step: {fixed: 1e-3, odd: 2}, dance: {fixed: 1}}\n";
	AUTO_FREE char *path = path_join(folder, "p.yaml");
	struct node *doc;
	struct workload w;
	struct err e = {0};

	(void)state;
	assert_int_equal(file_write(path, text, strlen(text), &e), 0);
	assert_int_equal(load(GOOD "framework.costs: p.yaml\n", NULL, &w, &e), 0);
	assert_true(str_starts(w.framework_costs, "mine@"));
	workload_release(&w);
	unlink(path);
	assert_int_equal(load(GOOD "framework.costs: p.yaml\n", NULL, &w, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "framework.costs"));
	workload_release(&w);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(load(GOOD "framework.costs: p.yaml\n", NULL, &w, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "FIFO"));
	workload_release(&w);
	unlink(path);
	assert_int_equal(load(GOOD "framework.costs: ./\n", NULL, &w, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "folder"));
	workload_release(&w);
	assert_int_equal(load(GOOD "framework.costs: /dev/zero\n", NULL, &w, &e), ERR_USAGE);
	workload_release(&w);

	doc = yaml_parse(other, strlen(other), "config.yaml", &e);
	assert_non_null(doc);
	assert_int_equal(workload_read_back(&w, doc, &e), 0);
	assert_true(fabs(costs_of(w.costs, COST_STEP)->fixed - 1e-3) < 1e-12);
	workload_release(&w);
	node_free(doc);
}

static void built_in_ones_are_sound(void **state)
{
	(void)state;
	for (const char *const *name = costs_builtin_names(); *name; name++) {
		struct err e = {0};
		struct framework_costs *c = costs_load(*name, &e);

		if (!c)
			fail_msg("%s", e.text);
		assert_string_equal(c->name, *name);
		for (size_t i = 0; i < COST_ABOUTS; i++)
			assert_non_null(c->about[i]);
		costs_release(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(laws_add_up),
		cmocka_unit_test(laws_with_points),
		cmocka_unit_test(every_row_is_read_back),
		cmocka_unit_test(refused_with_a_sentence),
		cmocka_unit_test(units_are_read),
		cmocka_unit_test(every_spelling),
		cmocka_unit_test(said_twice),
		cmocka_unit_test(written_down_again),
		cmocka_unit_test(files_and_other_versions),
		cmocka_unit_test(built_in_ones_are_sound),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
