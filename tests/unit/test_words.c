/* Facts and their sentences: every row can be said with known and unknown figures. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "result/json_facts.h"
#include "words/words.h"

#define LINE 82 /* of 100 columns, after a label */

static struct fact any_fact(enum reason reason, double value)
{
	double figure[FACT_FIGURES];
	struct fact f;

	for (unsigned i = 0; i < FACT_FIGURES; i++)
		figure[i] = value;
	f = fact_of(reason, reason_figures(reason), figure);
	for (unsigned i = 0; i < reason_texts(reason); i++)
		f = fact_with(f, i, "/dev/x");
	return f;
}

static void test_every_row_can_be_said(void **state)
{
	static const double values[] = {0, 1, 2.5, 1e9, -3, NAN};

	(void)state;
	for (int i = REASON_NONE + 1; i < REASONS; i++)
		for (unsigned k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
			struct fact f = any_fact((enum reason)i, values[k]);
			struct buf full = {0}, brief = {0};

			words_put(&full, &f, WORDS_LONG);
			words_put(&brief, &f, WORDS_SHORT);
			assert_true(full.len > 0 && brief.len > 0);
			if (full.data[full.len - 1] != '.' || brief.data[brief.len - 1] == '.' ||
			    strpbrk(full.data, "{}[]") || strpbrk(brief.data, "{}[]"))
				fail_msg("%s: '%s' / '%s'", reason_name(f.reason), full.data,
					 brief.data);
			buf_release(&full);
			buf_release(&brief);
		}
}

/* Short forms are clauses that fit beside a label as they are: nothing cuts them. With large
 * figures (98765000 ms) they may need a second line, what limits and what would change it else not.
 */
static void test_short_forms_are_short(void **state)
{
	(void)state;
	for (int i = REASON_NONE + 1; i < REASONS; i++) {
		struct fact f = any_fact((enum reason)i, 98765);
		char text[512];

		if (strncmp(reason_name(f.reason), "job.", 4) == 0 ||
		    strncmp(reason_name(f.reason), "ledger.", 7) == 0)
			continue; /* have as many lines as they need */
		words_of(&f, WORDS_SHORT, text, sizeof(text));
		if (strlen(text) > 2 * LINE - 20 || strstr(text, "..."))
			fail_msg("%s: %zu characters: %s", reason_name(f.reason), strlen(text),
				 text);
	}
}

static void test_short_forms_fit_a_line(void **state)
{
	static const char *const of[] = {"limit.", "remedy.", "untold.", "no_figure.", "costs."};

	(void)state;
	for (int i = REASON_NONE + 1; i < REASONS; i++)
		for (size_t k = 0; k < sizeof(of) / sizeof(of[0]); k++) {
			struct fact f = any_fact((enum reason)i, 0.987);
			char text[512];

			if (strncmp(reason_name(f.reason), of[k], strlen(of[k])) != 0)
				continue;
			if (reason_texts(f.reason))
				f = fact_with(f, 0, "file system nfs4");
			if (strlen(words_of(&f, WORDS_SHORT, text, sizeof(text))) > LINE)
				fail_msg("%zu characters: %s", strlen(text), text);
		}
}

static void test_names_are_found_again(void **state)
{
	(void)state;
	for (int i = REASON_NONE + 1; i < REASONS; i++)
		assert_int_equal(reason_of(reason_name((enum reason)i)), i);
	assert_int_equal(reason_of("no.such"), REASON_NONE);
	assert_int_equal(reason_of(NULL), REASON_NONE);
}

static void test_figures_and_texts(void **state)
{
	char out[256], name[32];
	struct fact f = FACT(WHOLE_RUN_EPOCHS_DIFFER, 0.25, 3, 0.125, 1);

	(void)state;
	assert_string_equal(reason_figure_name(f.reason, 1, name, sizeof(name)), "epoch_longest");
#ifdef STOKER_BARE_WORDS
	assert_string_equal(words_of(&f, WORDS_LONG, out, sizeof(out)), "whole_run.epochs_differ.");
#else
	assert_string_equal(
		words_of(&f, WORDS_LONG, out, sizeof(out)),
		"Epochs differ: a step took 0.25 s on average in epoch 3 and 0.125 s in "
		"epoch 1.");
	/* what ranks waited is not what the stalls took */
	f = FACT(CHANGE_STALLS, 2, 0.0117);
	assert_string_equal(words_of(&f, WORDS_SHORT, out, sizeof(out)),
			    "2 such stalls: ranks waited 0.0117 s for them");
#endif
}

/* Every row goes to JSON and back: figures that are known, and texts. */
static void test_facts_are_read_back(void **state)
{
	(void)state;
	for (int i = REASON_NONE + 1; i < REASONS; i++) {
		struct fact f = any_fact((enum reason)i, 2.5);
		struct fact_list list = {0}, back;
		json_t *o;

		if (reason_figures(f.reason))
			f.figure[0] = NAN;
		fact_add(&list, f);
		o = json_facts(&list);
		json_array_append_new(o, json_pack("{s:s}", "reason", "no.such"));
		json_read_facts(o, &back);
		json_decref(o);
		assert_int_equal(back.count, 1);
		assert_int_equal(back.fact[0].reason, f.reason);
		for (unsigned k = 0; k < FACT_FIGURES; k++)
			assert_true(back.fact[0].figure[k] == f.figure[k] ||
				    (isnan(back.fact[0].figure[k]) && isnan(f.figure[k])));
		for (unsigned k = 0; k < FACT_TEXTS; k++)
			assert_string_equal(back.fact[0].text[k], f.text[k]);
	}
}

static void test_a_full_list_takes_no_more(void **state)
{
	struct fact_list list = {0};

	(void)state;
	for (int i = 0; i < FACTS_MOST + 3; i++)
		fact_add(&list, FACT(WHOLE_RUN_RANKS_DIFFER, i, i));
	assert_int_equal(list.count, FACTS_MOST);
	assert_ptr_equal(fact_first(&list, REASON_WHOLE_RUN_RANKS_DIFFER), &list.fact[0]);
	assert_null(fact_first(&list, REASON_WHOLE_RUN_SHARE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_row_can_be_said),
		cmocka_unit_test(test_short_forms_are_short),
		cmocka_unit_test(test_short_forms_fit_a_line),
		cmocka_unit_test(test_names_are_found_again),
		cmocka_unit_test(test_figures_and_texts),
		cmocka_unit_test(test_facts_are_read_back),
		cmocka_unit_test(test_a_full_list_takes_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
