/* The plan of a study over the state that an earlier version left, whose studies evicted the page
 * cache before the first epoch only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "disk_folder.h"
#include "study/study.h"
#include "../skip.h"

static char folder[256];

static void put(const char *name, const char *text)
{
	AUTO_FREE char *path = path_join(folder, name);
	AUTO_FREE char *dir = path_dirname(path);
	struct err e = {0};

	assert_int_equal(file_mkdirs(dir, &e), 0);
	assert_int_equal(file_write(path, text, strlen(text), &e), 0);
}

struct options {
	struct study_options o;
	char design[300], results[300], scratch[300];
};

static void options_init(struct options *a, const char *rows)
{
	AUTO_FREE char *text = xasprintf("model,processes,overrides,run\n%s", rows);

	put("d.csv", text);
	snprintf(a->design, sizeof(a->design), "%s/d.csv", folder);
	snprintf(a->results, sizeof(a->results), "%s/results", folder);
	snprintf(a->scratch, sizeof(a->scratch), "%s/scratch", folder);
	a->o = (struct study_options){.design = a->design,
				      .results = a->results,
				      .scratch = a->scratch,
				      .program = "stoker",
				      .repeat = 1};
}

static void plan(struct study_plan *p, const struct options *a)
{
	struct err e = {0};

	if (study_plan_init(p, &a->o, &e) != 0)
		fail_msg("%s", e.text);
}

/* What the earlier version wrote for the run: the mark with its key. */
static void leave_mark(const struct experiment *x)
{
	AUTO_FREE char *text = xasprintf("{\"schema\": 2, \"key\": \"%016llx\"}",
					 (unsigned long long)x->key_before);

	put("results/default/1/run-1/study_run.json", text);
}

static bool says(const struct study_plan *p, const char *words)
{
	struct forecast f;
	struct buf text = {0};
	bool found;

	study_forecast(p, &f);
	forecast_text(&f, FORECAST_NOTE, 0, &text);
	found = text.data && strstr(text.data, words);
	forecast_release(&f);
	buf_release(&text);
	return found;
}

static void test_done_rows(void **state)
{
	struct options a;
	struct row_status status[1];
	struct study_plan p;

	(void)state;
	options_init(&a, "default,1,,N\n");
	plan(&p, &a);
	assert_int_equal(p.experiment[0].cache.value, PAGE_CACHE_COLD_EPOCHS);
	assert_true(p.experiment[0].key_before != 0);
	assert_true(p.experiment[0].key_before != p.experiment[0].key);
	leave_mark(&p.experiment[0]);
	study_plan_release(&p);

	/* a row that is done stays where it is, and what is pending beside it is said to differ */
	options_init(&a, "default,1,,Y\ndefault,2,,N\n");
	plan(&p, &a);
	for (size_t i = 0; i < p.experiments; i++)
		if (p.experiment[i].row == 0)
			assert_non_null(strstr(p.experiment[i].folder, "/default/1/run-1"));
	assert_true(says(&p, "line 2: done by an earlier version"));
	study_plan_release(&p);

	/* one that is set back gets a folder beside, and is not taken for the old run */
	options_init(&a, "default,1,,N\n");
	plan(&p, &a);
	assert_non_null(strstr(p.experiment[0].folder, "/default/1-"));
	assert_int_equal(study_status(&p, status, NULL), 0);
	assert_int_equal(status[0].state, RUN_PENDING);
	assert_false(says(&p, "earlier version"));
	study_plan_release(&p);

	/* a key of the row's own is the same run as ever */
	options_init(&a, "default,1,storage.page_cache=cold,Y\ndefault,2,,N\n");
	plan(&p, &a);
	for (size_t i = 0; i < p.experiments; i++)
		if (p.experiment[i].row == 0)
			assert_int_equal(p.experiment[i].key_before, 0);
	assert_false(says(&p, "earlier version"));
	study_plan_release(&p);
}

static void test_failed_rows(void **state)
{
	struct options a;
	struct study_plan p;
	struct row_status status[1];
	struct err e = {0};

	(void)state;
	options_init(&a, "default,1,,F\n");
	plan(&p, &a);
	AUTO_FREE char *text =
		xasprintf("{\"runs\": [{\"key\": \"%016llx\", \"reason\": \"why\"}]}",
			  (unsigned long long)p.experiment[0].key_before);

	put("results/d.csv.study.json", text);
	assert_int_equal(study_status(&p, status, NULL), 0);
	assert_int_equal(status[0].state, RUN_BAD);
	assert_string_equal(status[0].reason, "why");
	put("results/d.csv.study.json", "{\"runs\": [");
	assert_int_equal(study_status(&p, status, &e), ERR_DATA);
	assert_non_null(strstr(e.text, "d.csv.study.json' is damaged"));
	study_plan_release(&p);
}

static int set_up(void **state)
{
	(void)state;
	if (disk_folder(folder, sizeof(folder), "study"))
		return 0;
	left_out("the page cache of a study: there is no folder on a disk");
	exit(0);
}

static int tear_down(void **state)
{
	(void)state;
	return remove_tree(folder, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_done_rows),
		cmocka_unit_test(test_failed_rows),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
