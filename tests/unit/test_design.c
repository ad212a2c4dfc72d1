/* The CSV of a design: what is read, what is refused, and that saving changes nothing but states.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "study/design.h"
#include "study/study.h"

static char path[64];

static void put(const char *text)
{
	struct err e = {0};

	snprintf(path, sizeof(path), "/tmp/test_design_%d.csv", (int)getpid());
	assert_int_equal(file_write(path, text, strlen(text), &e), 0);
}

static void expect_file(const char *want)
{
	struct buf got = {0};
	struct err e = {0};

	assert_int_equal(file_read(path, 1 << 20, &got, &e), 0);
	assert_string_equal(got.data, want);
	buf_release(&got);
}

static void refuse(const char *text, const char *words)
{
	struct design d;
	struct err e = {0};

	put(text);
	assert_int_equal(design_load(&d, path, &e), ERR_USAGE);
	if (!strstr(e.text, words))
		fail_msg("'%s' does not say '%s'", e.text, words);
	design_release(&d);
}

static void test_reads_and_saves(void **state)
{
	struct design d;
	struct err e = {0};

	(void)state;
	put("# first\r\nmodel,epochs,processes,overrides,run,note\r\n\r\n"
	    "m1 , 5,4,\"++a.b=[1, 2] ~c\",n,\"x, \"\"y\"\"\"\r\n"
	    "  # kept\r\nm2,,8,,Y\r\nm3,,8");
	assert_int_equal(design_load(&d, path, &e), 0);
	assert_int_equal(d.rows, 3);
	assert_string_equal(d.row[0].model, "m1");
	assert_true(d.row[0].epochs == 5 && d.row[0].processes == 4 && d.row[0].line == 4);
	assert_int_equal(d.row[0].overrides.n, 2);
	assert_string_equal(d.row[0].overrides.v[0], "++a.b=[1, 2]");
	assert_string_equal(d.row[0].overrides.v[1], "~c");
	assert_true(d.row[0].state == DESIGN_PENDING && d.row[1].state == DESIGN_DONE);
	assert_true(d.row[1].epochs == 0 && d.row[2].overrides.n == 0);
	design_set_state(&d, 0, DESIGN_DONE);
	design_set_state(&d, 2, DESIGN_FAILED);
	assert_int_equal(design_save(&d, &e), 0);
	expect_file("# first\r\nmodel,epochs,processes,overrides,run,note\r\n\r\n"
		    "m1 , 5,4,\"++a.b=[1, 2] ~c\",Y,\"x, \"\"y\"\"\"\r\n"
		    "  # kept\r\nm2,,8,,Y\r\nm3,,8,,F");
	design_release(&d);
}

/* Columns whose names are those of keys, here or in a framework; others are somebody's notes. */
static void test_unread_columns(void **state)
{
	struct design d;
	struct err e = {0};

	(void)state;
	put("model,processes,num_workers,note,name,reader.batch_size,batch_size,Epochs,v1.0,"
	    "reader.batch_sise , workload.reader.batch_size\nm,1,2,x,y,3,4,1,z,5,6\n");
	assert_int_equal(design_load(&d, path, &e), 0);
	assert_int_equal(d.unread.n, 5);
	assert_string_equal(d.unread.v[0], "num_workers");
	assert_string_equal(d.unread.v[1], "reader.batch_size");
	assert_string_equal(d.unread.v[2], "batch_size");
	assert_string_equal(d.unread.v[3], "reader.batch_sise");
	assert_string_equal(d.unread.v[4], "workload.reader.batch_size");
	design_release(&d);
	/* a slip in a name of ours is no note */
	put("model,processes,override\nm,1,reader.batch_size=2\n");
	assert_int_equal(design_load(&d, path, &e), ERR_USAGE);
	design_release(&d);
}

static void test_without_run_column(void **state)
{
	struct design d;
	struct err e = {0};

	(void)state;
	put("processes,model\n2,m\n");
	assert_int_equal(design_load(&d, path, &e), 0);
	assert_string_equal(d.row[0].model, "m");
	design_set_state(&d, 0, DESIGN_DONE);
	assert_int_equal(design_save(&d, &e), 0);
	expect_file("processes,model,run\n2,m,Y\n");
	design_release(&d);
}

/* While a study runs, somebody adds rows, deletes one and mends a comment. */
static void test_edited_meanwhile(void **state)
{
	struct design d;
	struct err e = {0};

	(void)state;
	put("model,processes,run\na,1,N\nb,2,N\nc,3,N\n");
	assert_int_equal(design_load(&d, path, &e), 0);
	design_set_state(&d, 0, DESIGN_DONE);
	assert_int_equal(design_save(&d, &e), 0);
	expect_file("model,processes,run\na,1,Y\nb,2,N\nc,3,N\n");
	put("# new\nmodel,processes,note,run\nx,1,n,N\na,1,n,Y\nc,3,n,N\ny,4,n,N\n");
	design_set_state(&d, 1, DESIGN_DONE);
	assert_int_equal(design_save(&d, &e), 0);
	expect_file("# new\nmodel,processes,note,run\nx,1,n,N\na,1,n,Y\nc,3,n,N\ny,4,n,N\n");
	design_set_state(&d, 2, DESIGN_FAILED);
	assert_int_equal(design_save(&d, &e), 0);
	expect_file("# new\nmodel,processes,note,run\nx,1,n,N\na,1,n,Y\nc,3,n,F\ny,4,n,N\n");
	put("half a li");
	assert_int_equal(design_save(&d, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "left as it is"));
	expect_file("half a li");
	assert_int_equal(unlink(path), 0);
	e = (struct err){0};
	assert_int_equal(design_save(&d, &e), 0);
	expect_file("model,processes,run\na,1,Y\nb,2,Y\nc,3,F\n");
	design_release(&d);
}

static void test_refuses(void **state)
{
	(void)state;
	refuse("", "no row");
	refuse("# only\n", "no row");
	refuse("model,epochs\nm,1\n", "'processes' is missing");
	refuse("model,processes,run\nm,1,maybe\n", "'maybe' is not one of");
	refuse("model,processes,overrides\nm,1,\"a=1\nm,1,,\n", "the quote is not closed");
	refuse("model,processes\nm,1\n\x01\x02,2,\"\n", "");
}

/* What is wrong in the values of one row leaves the others. */
static void test_bad_values(void **state)
{
	static const char *const why[] = {
		"line 2: the row has no model",
		"line 3: the row has no number of processes",
		"line 4: processes: '-1' is not a whole number from 1",
		"line 5: processes: '99999999999999999999' is not a whole number",
		"line 6: epochs: 'two' is not a whole number",
		"line 7: repeat: '0' is not a whole number",
	};
	struct design d;
	struct err e = {0};

	(void)state;
	put("model,processes,epochs,repeat,run\n,1\nm,\nm,-1\nm,99999999999999999999\nm,1,two\n"
	    "m,1,2,0\nm,1,2,3,N\n");
	assert_int_equal(design_load(&d, path, &e), 0);
	assert_int_equal(d.rows, 7);
	for (size_t i = 0; i < 6; i++) {
		assert_non_null(strstr(d.row[i].why.text, why[i]));
		assert_true(d.row[i].processes >= 0 && d.row[i].epochs >= 0);
		design_set_state(&d, i, DESIGN_FAILED);
	}
	assert_int_equal(d.row[2].processes, 0);
	assert_int_equal(d.row[6].why.code, 0);
	assert_int_equal(design_save(&d, &e), 0);
	expect_file("model,processes,epochs,repeat,run\n,1,,,F\nm,,,,F\nm,-1,,,F\n"
		    "m,99999999999999999999,,,F\nm,1,two,,F\nm,1,2,0,F\nm,1,2,3,N\n");
	design_release(&d);
}

/* What is wrong in the overrides of one row leaves the others. */
static void test_bad_overrides(void **state)
{
	struct design d;
	struct err e = {0};

	(void)state;
	put("model,processes,overrides\nm,1,; rm -rf x\nm,1,a=1 rm -rf x\nm,1,--strict\nm,1,a=1; "
	    "b\n"
	    "m,1,a=1\n");
	assert_int_equal(design_load(&d, path, &e), 0);
	assert_non_null(strstr(d.row[0].why.text, "line 2: overrides: ';' is not an override"));
	assert_non_null(strstr(d.row[1].why.text, "'rm' is not an override"));
	assert_non_null(strstr(d.row[2].why.text, "'--strict' is not an override"));
	assert_non_null(strstr(d.row[3].why.text, "';' is not allowed here"));
	assert_int_equal(d.row[4].why.code, 0);
	design_release(&d);
}

static void test_names(void **state)
{
	char a[64], b[64];

	(void)state;
	study_folder_name("4_batch_size_14", a, sizeof(a));
	assert_string_equal(a, "4_batch_size_14");
	study_folder_name("../../x", a, sizeof(a));
	assert_null(strchr(a, '/'));
	assert_true(a[0] != '.');
	study_folder_name("..", a, sizeof(a));
	assert_string_not_equal(a, "..");
	study_folder_name("a/b", a, sizeof(a));
	study_folder_name("a;b", b, sizeof(b));
	assert_string_not_equal(a, b);
	study_folder_name("a_very_long_name_that_does_not_fit_into_the_room_that_is_there_1", a,
			  40);
	study_folder_name("a_very_long_name_that_does_not_fit_into_the_room_that_is_there_2", b,
			  40);
	assert_true(strlen(a) < 40);
	assert_string_not_equal(a, b);
}

static int clean(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_and_saves),
		cmocka_unit_test(test_unread_columns),
		cmocka_unit_test(test_without_run_column),
		cmocka_unit_test(test_edited_meanwhile),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_bad_overrides),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, clean);
}
