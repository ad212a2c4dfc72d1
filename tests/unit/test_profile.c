/* What a profile of a job says, of jobs whose truth is in their making. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trace/profile/profile.h"
#include "trace/workload/workload_of.h"

#define MS 1000000LL

static void add(struct job *job, uint32_t thread, uint32_t file, uint8_t kind, int64_t at,
		int64_t took, int64_t offset, int64_t bytes)
{
	struct err e = {0};

	assert_int_equal(job_add(job,
				 &(struct job_event){.begin_ns = at,
						     .end_ns = at + took,
						     .offset = offset,
						     .asked = bytes,
						     .result = bytes,
						     .thread = thread,
						     .file = file,
						     .other = JOB_NONE,
						     .descriptor = JOB_NONE,
						     .kind = kind},
				 &e),
			 0);
}

/* A process that reads `files` files in an order that depends on the epoch, `batch` at a time, and
 * computes for 25 ms after each batch. */
static void make_inline(struct job *job, size_t files, size_t epochs, size_t batch)
{
	uint32_t thread;
	int64_t now = 0;
	char name[64];

	job_init(job);
	job->source = "a test";
	job->sees = JOB_SEES_REQUESTS | JOB_SEES_TIMES | JOB_SEES_OFFSETS;
	job_process(job, 1, "", JOB_NONE);
	job->process[0].complete = true;
	job->process[0].command = "torchrun";
	thread = job_add_thread(job, 0, 1);
	for (size_t i = 0; i < files; i++) {
		snprintf(name, sizeof(name), "/data/train/s%07zu.npz", i);
		job_file(job, name, JOB_FILE_REGULAR);
	}
	for (size_t e = 0; e < epochs; e++)
		for (size_t i = 0; i < files; i++) {
			uint32_t file = (uint32_t)((i * (2 * e + 7) * 37 + e * 11) % files);

			add(job, thread, file, JOB_READ, now, MS / 10, 0, 4096);
			add(job, thread, file, JOB_READ, now + MS / 8, MS / 10, 4096, 60000);
			now += MS / 2;
			if ((i + 1) % batch == 0)
				now += 25 * MS;
		}
}

static void expect(const struct profile *a, enum profile_key f, double v)
{
	if (a->value[f].how != HOW_INFERRED && a->value[f].how != HOW_SEEN)
		fail_msg("%s is %s: %s", profile_rows[f].key, profile_how_names[a->value[f].how],
			 reason_name(a->value[f].rule.reason));
	if (a->value[f].number != v)
		fail_msg("%s is %g, not %g", profile_rows[f].key, a->value[f].number, v);
}

static void test_inline(void **state)
{
	struct job job;
	struct profile a;
	struct err e = {0};
	struct buf text = {0};

	(void)state;
	make_inline(&job, 61, 3, 4);
	assert_int_equal(job_finish(&job, &e), 0);
	profile_make(&a, &job);
	expect(&a, PROFILE_FILES, 61);
	expect(&a, PROFILE_SAMPLES, 61);
	expect(&a, PROFILE_EPOCHS, 3);
	expect(&a, PROFILE_WORKERS, 0);
	expect(&a, PROFILE_BATCH, 4);
	assert_true(a.value[PROFILE_COMPUTE].number > 0.0225 &&
		    a.value[PROFILE_COMPUTE].number < 0.0275);
	assert_non_null(strstr(a.value[PROFILE_ORDER].text, "random"));
	workload_of(&a, NULL, &text);
	assert_non_null(strstr(text.data, "batch_size: 4"));
	assert_non_null(strstr(text.data, "epochs: 3"));
	buf_release(&text);
	profile_release(&a);
	job_release(&job);
}

/* The same without requests: only what counters can tell. */
static void test_counters(void **state)
{
	struct job job;
	struct profile a;
	struct err e = {0};

	(void)state;
	make_inline(&job, 61, 3, 4);
	assert_int_equal(job_finish(&job, &e), 0);
	job.sees = JOB_SEES_COUNTS;
	job.events = 0;
	for (size_t i = 0; i < job.files; i++)
		job.file[i].counts.opens = 3;
	profile_make(&a, &job);
	expect(&a, PROFILE_FILES, 61);
	expect(&a, PROFILE_EPOCHS, 3);
	assert_int_equal(a.value[PROFILE_BATCH].how, HOW_UNKNOWN);
	assert_int_equal(a.value[PROFILE_COMPUTE].how, HOW_UNKNOWN);
	assert_int_equal(a.value[PROFILE_ORDER].how, HOW_UNKNOWN);
	assert_int_equal(a.value[PROFILE_WORKERS].how, HOW_UNKNOWN);
	profile_release(&a);
	/* of a program that is no framework, they are files that are opened three times */
	job.process[0].command = "./simulation";
	profile_make(&a, &job);
	assert_false(a.trains);
	for (int f = 0; f < PROFILE_VALUES; f++)
		assert_false(profile_has(&a, f));
	profile_release(&a);
	job_release(&job);
}

/* No pause between samples: neither batch nor computation is claimed. */
static void test_no_pauses(void **state)
{
	struct job job;
	struct profile a;
	struct err e = {0};

	(void)state;
	make_inline(&job, 61, 2, 1000);
	assert_int_equal(job_finish(&job, &e), 0);
	profile_make(&a, &job);
	expect(&a, PROFILE_EPOCHS, 2);
	assert_int_equal(a.value[PROFILE_BATCH].how, HOW_UNKNOWN);
	assert_int_equal(a.value[PROFILE_COMPUTE].how, HOW_UNKNOWN);
	profile_release(&a);
	job_release(&job);
}

static void test_nothing(void **state)
{
	struct job job;
	struct profile a;
	struct buf text = {0};

	(void)state;
	job_init(&job);
	profile_make(&a, &job);
	profile_print(&a, true, &text);
	profile_json(&a, &text);
	assert_int_equal(workload_of_write(&a, "/nowhere/x.yaml", &text, NULL), ERR_DATA);
	buf_release(&text);
	profile_release(&a);
	job_release(&job);
}

/* Results as nobody has: sums stop at the greatest number. */
static void test_huge(void **state)
{
	struct profile a;
	struct err e = {0};
	struct job job;

	(void)state;
	make_inline(&job, 8, 2, 4);
	for (size_t i = 0; i < job.events; i++)
		job.event[i].result = JOB_NUMBER_MAX;
	assert_int_equal(job_finish(&job, &e), 0);
	assert_true(job.file[0].counts.bytes_read == INT64_MAX);
	profile_make(&a, &job);
	for (size_t i = 0; i < a.visits; i++)
		assert_true(a.visit[i].bytes >= 0);
	profile_release(&a);
	job_release(&job);
}

static void read_file(struct job *job, const char *kind, size_t i, uint32_t thread, int64_t *now)
{
	char name[64];

	snprintf(name, sizeof(name), "/data/%s/s%07zu.npz", kind, i);
	add(job, thread, job_file(job, name, JOB_FILE_REGULAR), JOB_READ, *now, MS / 10, 0, 60000);
	*now += MS / 2;
}

/* Threads of one process, by their names: two that train, two that evaluate, some that check files
 * before and after. And checkpoints that get their names when they are whole. */
static void test_crews(void **state)
{
	static const char *const named[] = {NULL, "check", "check", "r.0", "r.1", "e.0", "e.1"};
	struct job job;
	struct profile a;
	struct err e = {0};
	int64_t now = MS;
	char name[64];

	(void)state;
	job_init(&job);
	job.source = "a test";
	job.sees = JOB_SEES_REQUESTS | JOB_SEES_TIMES | JOB_SEES_OFFSETS;
	job_process(&job, 1, "", JOB_NONE);
	job.process[0].complete = true;
	for (uint32_t i = 0; i < 7; i++) {
		uint32_t thread = job_add_thread(&job, 0, 1 + i);

		job.thread[thread].name = named[i];
	}
	for (size_t i = 0; i < 32; i++) /* all files, in their order */
		read_file(&job, i < 26 ? "train" : "valid", i % 26, 1 + i % 2, &now);
	for (size_t epoch = 0; epoch < 3; epoch++) {
		for (size_t i = 0; i < 61; i++) {
			read_file(&job, "train", (i * (2 * epoch + 7) + 11 * epoch) % 61,
				  3 + i / 4 % 2, &now);
			now += i % 4 == 3 ? 25 * MS : 0;
		}
		for (size_t i = 0; i < 12; i++) {
			read_file(&job, "valid", i, 5 + i / 4 % 2, &now);
			now += i % 4 == 3 ? 25 * MS : 0;
		}
		snprintf(name, sizeof(name), "/out/model-%zu.pt.tmp", epoch);
		add(&job, 0, job_file(&job, name, JOB_FILE_REGULAR), JOB_WRITE, now, MS, 0, 90000);
		now += 2 * MS;
	}
	for (size_t i = 0; i < 10; i++)
		read_file(&job, "train", 3 * i, 1, &now);
	assert_int_equal(job_finish(&job, &e), 0);
	profile_make(&a, &job);
	expect(&a, PROFILE_RANKS, 1);
	expect(&a, PROFILE_FILES, 61);
	expect(&a, PROFILE_EPOCHS, 3);
	expect(&a, PROFILE_WORKERS, 2);
	expect(&a, PROFILE_BATCH, 4);
	expect(&a, PROFILE_STEPS, 48);
	expect(&a, PROFILE_EVALUATIONS, 3);
	expect(&a, PROFILE_EVAL_SAMPLES, 12);
	expect(&a, PROFILE_CHECKPOINTS, 3);
	profile_release(&a);
	job_release(&job);
}

static void begin_job(struct job *job, uint32_t processes)
{
	job_init(job);
	job->source = "a test";
	job->sees = JOB_SEES_REQUESTS | JOB_SEES_TIMES | JOB_SEES_OFFSETS;
	for (uint32_t i = 0; i < processes; i++) {
		job_process(job, 1 + i, "", JOB_NONE);
		job->process[i].complete = true;
		job->process[i].command = "torchrun";
		job_add_thread(job, i, 1 + i);
	}
}

static void end_job(struct job *job, struct profile *a)
{
	struct err e = {0};

	assert_int_equal(job_finish(job, &e), 0);
	profile_make(a, job);
}

/* An image and its mask, files of one name in two folders, are one sample. */
static void test_companions(void **state)
{
	struct job job;
	struct profile a;
	int64_t now = MS;

	(void)state;
	begin_job(&job, 1);
	for (size_t epoch = 0; epoch < 2; epoch++)
		for (size_t i = 0; i < 60; i++) {
			size_t sample = (i * (2 * epoch + 7) + 11 * epoch) % 60;

			read_file(&job, "images", sample, 0, &now);
			read_file(&job, "masks", sample, 0, &now);
			now += i % 4 == 3 ? 25 * MS : 0;
		}
	end_job(&job, &a);
	expect(&a, PROFILE_SAMPLES, 60);
	expect(&a, PROFILE_FILES, 120);
	expect(&a, PROFILE_BATCH, 4);
	expect(&a, PROFILE_STEPS, 30);
	profile_release(&a);
	job_release(&job);
}

/* Two trainings, one after the other, are no ranks. */
static void test_trainings(void **state)
{
	struct job job;
	struct profile a;
	int64_t now = MS;

	(void)state;
	begin_job(&job, 2);
	for (uint32_t process = 0; process < 2; process++)
		for (size_t epoch = 0; epoch < 2; epoch++)
			for (size_t i = 0; i < 40; i++) {
				read_file(&job, "train", (i * (2 * epoch + 7) + 11 * epoch) % 40,
					  process, &now);
				now += i % 4 == 3 ? 25 * MS : 0;
			}
	end_job(&job, &a);
	expect(&a, PROFILE_RANKS, 1);
	expect(&a, PROFILE_EPOCHS, 2);
	expect(&a, PROFILE_STEPS, 20);
	assert_int_equal(a.trainings, 2);
	profile_release(&a);
	job_release(&job);
}

/* Files that are copied and then checked, in one order, are no training: nothing of it is claimed,
 * and no workload is made. A large file that is written is no checkpoint. */
static void test_no_training(void **state)
{
	struct job job;
	struct profile a;
	struct err e = {0};
	struct buf text = {0};
	int64_t now = MS;

	(void)state;
	begin_job(&job, 1);
	for (size_t i = 0; i < 80; i++)
		read_file(&job, "photos", (i * 7) % 40, 0, &now);
	add(&job, 0, job_file(&job, "/backup/all.tar", JOB_FILE_REGULAR), JOB_WRITE, now, MS, 0,
	    8 << 20);
	end_job(&job, &a);
	for (int f = PROFILE_EPOCHS; f <= PROFILE_COMPUTE; f++)
		if (f != PROFILE_ORDER)
			assert_false(profile_has(&a, (enum profile_key)f));
	assert_false(profile_has(&a, PROFILE_CHECKPOINTS));
	assert_false(profile_has(&a, PROFILE_RANKS));
	assert_int_equal(workload_of_write(&a, "/nowhere/x.yaml", &text, &e), ERR_DATA);
	buf_release(&text);
	profile_release(&a);
	job_release(&job);
}

/* Windows at any place of a file are drawn at random: there are no epochs. What grows through the
 * training is a log, however large. */
static void test_windows(void **state)
{
	struct job job;
	struct profile a;
	int64_t now = MS, wrote = 0;
	uint32_t tokens, record;

	(void)state;
	begin_job(&job, 1);
	tokens = job_file(&job, "/data/tokens.bin", JOB_FILE_REGULAR);
	record = job_file(&job, "/out/run.record", JOB_FILE_REGULAR);
	job.file[tokens].size = 64 << 20;
	for (int64_t i = 0; i < 240; i++) {
		add(&job, 0, tokens, JOB_READ, now, MS / 10, i * 7654321 % (63 << 20), 8192);
		now += MS / 2;
		if (i % 6 != 5)
			continue;
		add(&job, 0, record, JOB_WRITE, now, MS / 10, wrote, 50000);
		wrote += 50000;
		now += 25 * MS;
	}
	end_job(&job, &a);
	expect(&a, PROFILE_BATCH, 6);
	assert_int_equal(a.value[PROFILE_EPOCHS].how, HOW_UNKNOWN);
	assert_false(profile_has(&a, PROFILE_CHECKPOINTS));
	assert_int_equal(a.role[record], FILE_LOG);
	profile_release(&a);
	job_release(&job);
}

/* Threads of a pool share the batches. */
static void test_threads(void **state)
{
	struct job job;
	struct profile a;
	int64_t now = MS;

	(void)state;
	begin_job(&job, 1);
	for (uint32_t i = 0; i < 3; i++)
		job_add_thread(&job, 0, 10 + i);
	for (size_t epoch = 0; epoch < 2; epoch++)
		for (size_t i = 0; i < 64; i++) {
			size_t sample = (i * (2 * epoch + 7) + 11 * epoch) % 64;

			read_file(&job, "train", sample, 1 + (uint32_t)(i * 5 / 3) % 3, &now);
			now += i % 8 == 7 ? 25 * MS : 0;
		}
	end_job(&job, &a);
	expect(&a, PROFILE_WORKERS, 3);
	expect(&a, PROFILE_BATCH, 8);
	expect(&a, PROFILE_STEPS, 16);
	profile_release(&a);
	job_release(&job);
}

/* A server and what came from it; over http a GET of an object came on each connection. */
static void serve(struct job *job, unsigned port, enum job_speaks speaks, bool local, int64_t bytes)
{
	struct job_connection c = {.host = "",
				   .agent = "",
				   .end_ns = JOB_UNKNOWN,
				   .received = bytes,
				   .requests = speaks == JOB_SPEAKS_HTTP,
				   .speaks = speaks,
				   .local = local};
	struct job_exchange x = {.begin_ns = MS * (int64_t)job->exchanges,
				 .offset = JOB_UNKNOWN,
				 .asked = JOB_UNKNOWN,
				 .length = bytes,
				 .whole = bytes,
				 .got = bytes,
				 .connection = (uint32_t)job->connections,
				 .status = 200,
				 .method = JOB_GET,
				 .complete = true};
	struct err e = {0};
	char text[64];

	snprintf(text, sizeof(text), "%s:%u", local ? "127.0.0.1" : "10.0.0.1", port);
	c.peer = job_text(job, text);
	x.first_ns = x.last_ns = x.begin_ns + MS / 2;
	snprintf(text, sizeof(text), "s3://bucket/k%zu", job->exchanges);
	if (speaks == JOB_SPEAKS_HTTP)
		x.file = job_file(job, text, JOB_FILE_OBJECT);
	assert_int_equal(job_add_connection(job, &c, &e), 0);
	if (speaks == JOB_SPEAKS_HTTP)
		assert_int_equal(job_add_exchange(job, &x, &e), 0);
}

/* However many others there are, before it and behind: that of the objects is told by its name. */
static void test_servers(void **state)
{
	struct job_servers s;
	struct job job;

	(void)state;
	make_inline(&job, 4, 1, 1);
	for (unsigned i = 0; i < 70; i++)
		serve(&job, 1000 + i, JOB_SPEAKS_UNKNOWN, i < 63, 8 << 20);
	for (unsigned i = 0; i < 40; i++)
		serve(&job, 9000, JOB_SPEAKS_HTTP, false, 4096);
	job_servers_find(&job, &s);
	assert_int_equal(s.n, 2);
	assert_string_equal(s.v[0].name, "10.0.0.1:9000");
	assert_int_equal(s.v[0].speaks, JOB_SPEAKS_HTTP);
	assert_int_equal(s.v[0].gets, 40);
	assert_int_equal(s.v[0].connections, 40);
	assert_false(s.v[0].others);
	/* those of this host are none of the others' bytes */
	assert_true(s.v[1].others);
	assert_int_equal(s.v[1].connections, 7);
	assert_int_equal(s.v[1].received, 7 * (8 << 20));
	job_servers_release(&s);
	for (unsigned i = 0; i < 70; i++)
		serve(&job, 2000 + i, JOB_SPEAKS_HTTP, false, 4096);
	job_servers_find(&job, &s);
	/* 64, the other 7 of http, and the 7 of an unknown protocol */
	assert_int_equal(s.n, 66);
	assert_string_equal(s.v[0].name, "10.0.0.1:9000");
	for (size_t i = 0; i < s.n; i++)
		if (s.v[i].others && s.v[i].speaks == JOB_SPEAKS_HTTP) {
			assert_int_equal(s.v[i].gets, 7);
			assert_null(s.v[i].bucket);
		}
	job_servers_release(&s);
	job_release(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inline),      cmocka_unit_test(test_counters),
		cmocka_unit_test(test_no_pauses),   cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_huge),        cmocka_unit_test(test_crews),
		cmocka_unit_test(test_companions),  cmocka_unit_test(test_trainings),
		cmocka_unit_test(test_no_training), cmocka_unit_test(test_windows),
		cmocka_unit_test(test_threads),     cmocka_unit_test(test_servers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
