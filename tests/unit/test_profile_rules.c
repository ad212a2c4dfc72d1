/* The rules of a profile, one by one: a small job for which a rule holds, and one like it of which
 * the same value must be unknown, or absent. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trace/profile/job_advice.h"
#include "trace/profile/profile.h"
#include "trace/workload/workload_of.h"

#define MS 1000000LL

/* A job while it is made, and its profile. */
struct made {
	struct job job;
	struct profile a;
	int64_t now;
};

static void begin(struct made *m, unsigned sees, uint32_t processes)
{
	*m = (struct made){.now = MS};
	job_init(&m->job);
	m->job.source = "a test";
	m->job.sees = sees | JOB_SEES_REQUESTS | JOB_SEES_TIMES | JOB_SEES_OFFSETS;
	for (uint32_t i = 0; i < processes; i++) {
		job_process(&m->job, 1 + i, "", JOB_NONE);
		m->job.process[i].complete = true;
		m->job.process[i].command = "torchrun"; /* one of what speaks for a training */
		job_add_thread(&m->job, i, 1 + i);
	}
}

static void finish(struct made *m)
{
	struct err e = {0};

	assert_int_equal(job_finish(&m->job, &e), 0);
	profile_make(&m->a, &m->job);
}

static void release(struct made *m)
{
	profile_release(&m->a);
	job_release(&m->job);
}

static struct job_event *add(struct made *m, enum job_event_kind kind, uint32_t thread,
			     uint32_t file, int64_t begin_ns, int64_t bytes)
{
	struct job_event v = job_event_of(kind, thread, begin_ns, begin_ns + MS / 10);
	struct err e = {0};

	v.file = file;
	v.result = bytes;
	v.asked = bytes;
	v.offset = kind == JOB_READ || kind == JOB_WRITE ? 0 : JOB_UNKNOWN;
	assert_int_equal(job_add(&m->job, &v, &e), 0);
	return &m->job.event[m->job.events - 1];
}

static uint32_t file(struct made *m, const char *name)
{
	return job_file(&m->job, name, JOB_FILE_REGULAR);
}

/* `pattern` with the number for its '#' (five digits) or '@' (as many as it takes). */
static const char *numbered(const char *pattern, size_t i)
{
	static char name[64];
	size_t n = strcspn(pattern, "#@");

	if (pattern[n])
		snprintf(name, sizeof(name), "%.*s%0*zu%s", (int)n, pattern,
			 pattern[n] == '#' ? 5 : 1, i, pattern + n + 1);
	else
		snprintf(name, sizeof(name), "%s", pattern);
	return name;
}

/* A file of the dataset is read as a whole, now. */
static void visit(struct made *m, uint32_t thread, const char *pattern, size_t i)
{
	add(m, JOB_READ, thread, file(m, numbered(pattern, i)), m->now, 60000);
	m->now += MS / 2;
}

static void expect(const struct made *m, enum profile_key f, double v)
{
	const struct profile_value *x = &m->a.value[f];

	if (!profile_has(&m->a, f))
		fail_msg("%s is %s: %s", profile_rows[f].key, profile_how_names[x->how],
			 reason_name(x->rule.reason));
	if (x->number != v)
		fail_msg("%s is %g, not %g", profile_rows[f].key, x->number, v);
}

static void expect_unknown(const struct made *m, enum profile_key f)
{
	const struct profile_value *x = &m->a.value[f];

	if (x->how != HOW_UNKNOWN)
		fail_msg("%s is %s: %g", profile_rows[f].key, profile_how_names[x->how], x->number);
	assert_int_not_equal(x->rule.reason, REASON_NONE);
}

static void expect_absent(const struct made *m, enum profile_key f)
{
	if (m->a.value[f].how != HOW_ABSENT)
		fail_msg("%s is %s", profile_rows[f].key, profile_how_names[m->a.value[f].how]);
}

/* ---- a training without workers ---- */

/* How sample `i` of `n` of an epoch is drawn. */
typedef size_t draw(size_t i, size_t epoch, size_t n);

static size_t by_name(size_t i, size_t epoch, size_t n)
{
	(void)epoch;
	return i % n;
}

static size_t anew(size_t i, size_t epoch, size_t n)
{
	static const size_t step[] = {7, 11, 13};

	return (i * step[epoch % 3] + 5 * epoch) % n;
}

static size_t alike(size_t i, size_t epoch, size_t n)
{
	(void)epoch;
	return i * 7 % n;
}

/* Each sample near its place by name. */
static size_t near(size_t i, size_t epoch, size_t n)
{
	size_t to = i / 8 * 8 + (i * 3 + epoch * 5) % 8;

	return to < n ? to : i;
}

/* `files` samples an epoch, 4 a batch, 25 ms of computation behind each. */
static void train(struct made *m, const char *pattern, size_t files, size_t epochs, draw *drawn)
{
	for (size_t epoch = 0; epoch < epochs; epoch++)
		for (size_t i = 0; i < files; i++) {
			visit(m, 0, pattern, drawn(i, epoch, files));
			m->now += i % 4 == 3 ? 25 * MS : 0;
		}
}

static void trained(struct made *m, const char *pattern, size_t files, size_t epochs, draw *drawn)
{
	begin(m, 0, 1);
	train(m, pattern, files, epochs, drawn);
	finish(m);
}

static void test_order(void **state)
{
	static const struct {
		const char *pattern;
		draw *drawn;
		enum job_order order;
		size_t files;
	} cases[] = {{"/d/train/#.npz", by_name, JOB_ORDER_NAMES, 120},
		     {"/d/train/@.npz", by_name, JOB_ORDER_NUMBERS, 28},
		     {"/d/train/#.npz", anew, JOB_ORDER_RANDOM_ANEW, 120},
		     {"/d/train/#.npz", alike, JOB_ORDER_RANDOM_SAME, 120},
		     {"/d/train/#.npz", near, JOB_ORDER_WINDOW, 120}};
	struct made m;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		trained(&m, cases[i].pattern, cases[i].files, 3, cases[i].drawn);
		assert_true(profile_has(&m.a, PROFILE_ORDER));
		assert_int_equal(m.a.order, cases[i].order);
		assert_int_equal(profile_has(&m.a, PROFILE_SHUFFLE_WINDOW),
				 cases[i].order == JOB_ORDER_WINDOW);
		release(&m);
	}
	/* too few follow each other */
	trained(&m, "/d/train/#.npz", 4, 2, anew);
	assert_false(profile_has(&m.a, PROFILE_ORDER));
	release(&m);
}

/* Mapped data beside a small file of a known format: what is mapped is the dataset. */
static void test_mapped(void **state)
{
	struct buf text = {0};
	struct made m;
	uint32_t tokens;

	(void)state;
	begin(&m, JOB_SEES_MAPPINGS | JOB_SEES_SIZES, 1);
	tokens = file(&m, "/d/text.bin");
	m.job.file[tokens].size = 50 << 20;
	add(&m, JOB_READ, 0, file(&m, "/d/text.idx"), m.now, 30000);
	add(&m, JOB_READ, 0, file(&m, "/d/vocab.json"), m.now + MS, 900);
	add(&m, JOB_MAP, 0, tokens, m.now + 2 * MS, 50 << 20);
	for (size_t i = 0; i < 3; i++)
		add(&m, JOB_WRITE, 0, file(&m, numbered("/out/@.pt", i)), m.now + (9 + i) * MS,
		    1 << 21);
	finish(&m);
	assert_true(m.a.trains);
	assert_string_equal(profile_main_group(&m.a)->extension, "bin");
	expect(&m, PROFILE_CHECKPOINTS, 3);
	expect_unknown(&m, PROFILE_BATCH);
	/* its workload maps, too, and needs no batch from the user */
	workload_of(&m.a, NULL, &text);
	assert_non_null(strstr(text.data, "format: mmap_indexed_binary"));
	assert_non_null(strstr(text.data, "num_samples_per_file: 524 "));
	assert_non_null(strstr(text.data, "batch_size: 1 "));
	buf_release(&text);
	release(&m);
}

/* What reads files and does not train: of each, the same reading by a job that does. */
static void test_no_training(void **state)
{
	static const struct {
		const char *command;
		size_t epochs;
		draw *drawn;
		bool saves, trains;
	} cases[] = {
		{"torchrun", 1, by_name, false, false}, /* an inference */
		{"torchrun", 1, by_name, true, false},  /* which keeps what it found */
		{"torchrun", 1, anew, false, true},     {"viewer", 1, anew, false, false},
		{"viewer", 2, by_name, false, false},   {"python3", 1, anew, true, true},
		{"python3", 2, anew, false, true},
	};
	struct made m;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(&m, 0, 1);
		m.job.process[0].command = cases[i].command;
		train(&m, "/d/train/#.npz", 60, cases[i].epochs, cases[i].drawn);
		if (cases[i].saves)
			add(&m, JOB_WRITE, 0, file(&m, "/out/a.pt"), m.now, 1 << 21);
		finish(&m);
		if (m.a.trains != cases[i].trains)
			fail_msg("case %zu %s", i, m.a.trains ? "trains" : "does not train");
		assert_int_equal(profile_has(&m.a, PROFILE_EPOCHS), cases[i].trains);
		assert_int_equal(profile_has(&m.a, PROFILE_CHECKPOINTS),
				 cases[i].trains && cases[i].saves);
		if (!m.a.trains)
			assert_string_equal(profile_role_name(&m.a, FILE_DATASET), "input");
		release(&m);
	}
}

/* A framework's library that is loaded, and no other sign of it: only beside an order that changes.
 */
static void test_loaded(void **state)
{
	static const struct {
		size_t epochs;
		draw *drawn;
		bool batches, trains;
	} cases[] = {
		{2, anew, false, true},
		{1, anew, true, true},
		{2, by_name, true, false}, /* two models are evaluated */
		{1, by_name, true, false},
	};
	struct made m;

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		bool loaded = i % 2;

		begin(&m, 0, 1);
		m.job.process[0].command = "python3";
		m.job.process[0].libraries = loaded ? " /libtorch_cpu.so" : "";
		for (size_t k = 0; k < 60 * cases[i / 2].epochs; k++) {
			visit(&m, 0, "/d/train/#.npz", cases[i / 2].drawn(k % 60, k / 60, 60));
			m.now += cases[i / 2].batches && k % 4 == 3 ? 25 * MS : 0;
		}
		finish(&m);
		if (m.a.trains != (loaded && cases[i / 2].trains))
			fail_msg("case %zu %s", i, m.a.trains ? "trains" : "does not train");
		assert_int_equal(profile_has(&m.a, PROFILE_FRAMEWORK), loaded);
		release(&m);
	}
	/* TensorFlow looks for plugins, which are not there */
	begin(&m, 0, 1);
	m.job.process[0].command = "python3";
	job_file(&m.job, "/venv/lib/tensorflow-plugins", JOB_FILE_OTHER);
	train(&m, "/d/train/#.npz", 60, 1, anew);
	finish(&m);
	assert_true(m.a.trains);
	assert_string_equal(m.a.value[PROFILE_FRAMEWORK].text, "TensorFlow");
	release(&m);
}

static void test_epochs(void **state)
{
	struct made m;

	(void)state;
	/* a pass in order that checks the files before the training is no epoch */
	begin(&m, 0, 1);
	for (size_t i = 0; i < 60; i++)
		visit(&m, 0, "/d/train/#.npz", i);
	train(&m, "/d/train/#.npz", 60, 2, anew);
	finish(&m);
	expect(&m, PROFILE_EPOCHS, 2);
	expect(&m, PROFILE_STEPS, 30);
	assert_true(profile_is_apart(&m.a, &m.job.event[0]));
	assert_false(profile_is_apart(&m.a, &m.job.event[m.job.events - 1]));
	release(&m);
	/* an evaluation in the middle of an epoch does not end it */
	begin(&m, 0, 1);
	for (size_t epoch = 0; epoch < 3; epoch++)
		for (size_t i = 0; i < 60; i++) {
			visit(&m, 0, "/d/train/#.npz", anew(i, epoch, 60));
			m.now += i % 4 == 3 ? 25 * MS : 0;
			for (size_t k = 0; k < 8 && i % 20 == 19; k++)
				visit(&m, 0, "/d/val/#.npz", k);
		}
	finish(&m);
	expect(&m, PROFILE_EPOCHS, 3);
	expect(&m, PROFILE_SAMPLES, 60);
	expect(&m, PROFILE_EVALUATIONS, 9);
	release(&m);
	trained(&m, "/d/train/#.npz", 40, 3, anew);
	expect(&m, PROFILE_EPOCHS, 3);
	expect(&m, PROFILE_SAMPLES, 40);
	expect(&m, PROFILE_STEPS, 30);
	release(&m);
	/* the log lacks a part: as many as it has are known, and no more */
	begin(&m, 0, 1);
	train(&m, "/d/train/#.npz", 40, 3, anew);
	m.job.process[0].complete = false;
	finish(&m);
	expect_unknown(&m, PROFILE_EPOCHS);
	assert_true(m.a.value[PROFILE_EPOCHS].in_log == 3);
	expect_unknown(&m, PROFILE_STEPS);
	release(&m);
	/* some samples come three times, most never again */
	begin(&m, 0, 1);
	for (size_t i = 0; i < 120; i++) {
		visit(&m, 0, "/d/train/#.npz", i % 4 == 0 ? i / 4 % 5 : i);
		m.now += i % 4 == 3 ? 25 * MS : 0;
	}
	finish(&m);
	expect_unknown(&m, PROFILE_EPOCHS);
	release(&m);
}

static void test_gaps(void **state)
{
	struct made m;

	(void)state;
	trained(&m, "/d/train/#.npz", 40, 2, anew);
	expect(&m, PROFILE_BATCH, 4);
	assert_true(profile_has(&m.a, PROFILE_COMPUTE));
	assert_true(profile_has(&m.a, PROFILE_STEP));
	release(&m);
	/* pauses of every length */
	begin(&m, 0, 1);
	for (size_t i = 0; i < 80; i++) {
		visit(&m, 0, "/d/train/#.npz", anew(i % 40, i / 40, 40));
		m.now += (int64_t)(i * i * 37 % 101) * MS / 4;
	}
	finish(&m);
	expect_unknown(&m, PROFILE_BATCH);
	expect_unknown(&m, PROFILE_COMPUTE);
	release(&m);
	/* pauses between folders are those of a walk through them */
	begin(&m, 0, 1);
	for (size_t i = 0; i < 80; i++) {
		char pattern[40];

		snprintf(pattern, sizeof(pattern), "/d/train/c%zu/#.npz", i / 4);
		visit(&m, 0, pattern, i);
		m.now += i % 4 == 3 ? 25 * MS : 0;
	}
	finish(&m);
	expect_unknown(&m, PROFILE_BATCH);
	release(&m);
}

static void test_evaluation(void **state)
{
	struct made m;

	(void)state;
	for (int named = 0; named < 2; named++) {
		begin(&m, 0, 1);
		for (size_t epoch = 0; epoch < 3; epoch++) {
			train(&m, "/d/train/#.npz", 40, 1, anew);
			if (named)
				train(&m, "/d/val/#.npz", 12, 1, by_name);
		}
		finish(&m);
		expect(&m, PROFILE_EPOCHS, 3);
		if (named) {
			expect(&m, PROFILE_EVALUATIONS, 3);
			expect(&m, PROFILE_EVAL_SAMPLES, 12);
			expect(&m, PROFILE_EVAL_FILES, 12);
		} else {
			expect_absent(&m, PROFILE_EVALUATIONS);
		}
		release(&m);
	}
}

static void test_marks(void **state)
{
	struct made m;

	(void)state;
	begin(&m, JOB_SEES_COMPUTE, 1);
	train(&m, "/d/train/#.npz", 40, 2, anew);
	for (int i = 0; i < 5; i++)
		add(&m, JOB_COMPUTE, 0, JOB_NONE, m.now + i * MS, 0)->end_ns += 9 * MS / 10;
	finish(&m);
	assert_int_equal(m.a.value[PROFILE_COMPUTE].how, HOW_SEEN);
	assert_true(m.a.value[PROFILE_COMPUTE].number == 0.001);
	assert_int_equal(m.a.value[PROFILE_COMPUTE].of, 5);
	release(&m);
	/* a log that could have marks, and has none */
	begin(&m, JOB_SEES_COMPUTE, 1);
	train(&m, "/d/train/#.npz", 40, 2, anew);
	finish(&m);
	assert_int_equal(m.a.value[PROFILE_COMPUTE].how, HOW_INFERRED);
	release(&m);
}

/* ---- files ---- */

static void test_roles(void **state)
{
	static const struct {
		const char *name;
		enum job_event_kind kind;
		int64_t bytes;
		enum file_role role;
	} files[] = {{"/usr/lib/libx.so.6", JOB_READ, 900000, FILE_CODE},
		     {"/home/u/train.py", JOB_READ, 9000, FILE_CODE},
		     {"/out/step-1.pt", JOB_WRITE, 90000, FILE_CHECKPOINT},
		     {"/out/step-2.ckpt.tmp", JOB_WRITE, 90000, FILE_CHECKPOINT},
		     {"/out/train.log", JOB_WRITE, 2 << 20, FILE_LOG},
		     {"/out/loss.bin", JOB_WRITE, 900, FILE_LOG},
		     {"/d/labels.csv2", JOB_READ, 4000, FILE_OTHER}};
	enum { N = sizeof(files) / sizeof(files[0]) };
	uint32_t number[N], cache;
	struct made m;

	(void)state;
	begin(&m, JOB_SEES_OPENS, 1);
	for (size_t i = 0; i < N; i++) {
		number[i] = file(&m, files[i].name);
		add(&m, files[i].kind, 0, number[i], m.now += MS, files[i].bytes);
	}
	cache = file(&m, "/tmp/index.cache");
	add(&m, JOB_WRITE, 0, cache, m.now += MS, 5000);
	add(&m, JOB_READ, 0, cache, m.now += MS, 5000);
	train(&m, "/d/train/#.npz", 40, 3, anew);
	finish(&m);
	for (size_t i = 0; i < N; i++)
		if (m.a.role[number[i]] != files[i].role)
			fail_msg("%s is %s", files[i].name,
				 profile_role_name(&m.a, m.a.role[number[i]]));
	assert_int_equal(m.a.role[cache], FILE_CACHE);
	assert_int_equal(m.a.role[file(&m, "/d/train/00003.npz")], FILE_DATASET);
	expect(&m, PROFILE_FILES, 40);
	release(&m);
}

/* Files of a format that is none of ours are a dataset where they are many. */
static void test_dataset(void **state)
{
	struct made m;

	(void)state;
	trained(&m, "/d/train/#.zzz", 40, 2, anew);
	expect(&m, PROFILE_FILES, 40);
	assert_string_equal(m.a.value[PROFILE_FORMAT].text, "zzz");
	release(&m);
	trained(&m, "/d/train/part@", 40, 2, anew);
	expect(&m, PROFILE_FILES, 40);
	expect_unknown(&m, PROFILE_FORMAT);
	release(&m);
}

static void test_kept_open(void **state)
{
	struct made m;

	(void)state;
	for (int kept = 0; kept < 2; kept++) {
		begin(&m, JOB_SEES_OPENS, 1);
		for (size_t epoch = 0; epoch < 3; epoch++)
			for (size_t i = 0; i < 24; i++) {
				uint32_t f =
					file(&m, numbered("/d/train/#.npz", anew(i, epoch, 24)));

				if (epoch == 0 || !kept)
					add(&m, JOB_OPEN, 0, f, m.now, 3)->flags = O_RDONLY;
				m.now += MS / 4;
				visit(&m, 0, "/d/train/#.npz", anew(i, epoch, 24));
				if (!kept)
					add(&m, JOB_CLOSE, 0, f, m.now, 0);
				m.now += MS / 4 + (i % 4 == 3 ? 25 * MS : 0);
			}
		finish(&m);
		if (kept)
			expect(&m, PROFILE_KEPT_OPEN, 24);
		else
			expect_absent(&m, PROFILE_KEPT_OPEN);
		release(&m);
	}
}

/* Records of a few large files are samples by their places; of a stream they are not told apart. */
static void test_visits(void **state)
{
	struct made m;

	(void)state;
	for (int stream = 0; stream < 2; stream++) {
		begin(&m, 0, 1);
		for (size_t epoch = 0; epoch < 2; epoch++)
			for (size_t i = 0; i < 64; i++) {
				size_t at = stream ? i : anew(i, epoch, 64);
				uint32_t f = file(&m, at < 32  ? stream ? "/d/0.tar" : "/d/0.h5"
						      : stream ? "/d/1.tar"
							       : "/d/1.h5");

				add(&m, JOB_READ, 0, f, m.now, 8192)->offset =
					(int64_t)(at % 32) * 8192;
				m.now += MS / 2 + (i % 4 == 3 ? 25 * MS : 0);
			}
		finish(&m);
		if (stream) {
			expect_unknown(&m, PROFILE_SAMPLES);
			expect_unknown(&m, PROFILE_SAMPLE_BYTES);
			expect_unknown(&m, PROFILE_BATCH);
		} else {
			expect(&m, PROFILE_SAMPLES, 64);
			expect(&m, PROFILE_SAMPLES_PER_FILE, 32);
			expect(&m, PROFILE_SAMPLE_BYTES, 8192);
			expect(&m, PROFILE_BATCH, 4);
		}
		release(&m);
	}
}

static void read_at(struct made *m, uint32_t thread, uint32_t f, int64_t offset, int64_t bytes)
{
	add(m, JOB_READ, thread, f, m->now, bytes)->offset = offset;
	m->now += MS / 2;
}

/* Places that are read with others are no samples of their own. */
static void test_places(void **state)
{
	struct made m;

	(void)state;
	/* an image, then its label, which lies behind all images; a fifth of the labels come from
	 * memory */
	begin(&m, 0, 1);
	for (size_t epoch = 0; epoch < 3; epoch++)
		for (size_t i = 0; i < 60; i++) {
			size_t at = anew(i, epoch, 60);

			read_at(&m, 0, file(&m, "/d/0.h5"), (int64_t)at * 60000, 60000);
			if (at % 5)
				read_at(&m, 0, file(&m, "/d/0.h5"), 60 * 60000 + (int64_t)at * 512,
					40000);
			m.now += i % 4 == 3 ? 25 * MS : 0;
		}
	finish(&m);
	expect(&m, PROFILE_SAMPLES, 60);
	expect(&m, PROFILE_BATCH, 4);
	release(&m);
	/* the footer of a file is read anew before each of its parts */
	begin(&m, 0, 1);
	for (size_t epoch = 0; epoch < 3; epoch++)
		for (size_t i = 0; i < 40; i++) {
			size_t at = anew(i, epoch, 40);
			uint32_t f = file(&m, numbered("/d/@.h5", at / 8));

			read_at(&m, 0, f, 8 * 60000, 50000);
			read_at(&m, 0, f, (int64_t)(at % 8) * 60000, 60000);
			m.now += i % 4 == 3 ? 25 * MS : 0;
		}
	finish(&m);
	expect(&m, PROFILE_SAMPLES, 40);
	expect(&m, PROFILE_SAMPLES_PER_FILE, 8);
	expect(&m, PROFILE_BATCH, 4);
	release(&m);
	/* samples of 4 to 30 thousand bytes, one of which is much smaller than most */
	begin(&m, 0, 1);
	for (size_t epoch = 0; epoch < 3; epoch++)
		for (size_t i = 0; i < 60; i++) {
			size_t at = anew(i, epoch, 60);

			read_at(&m, 0, file(&m, "/d/0.dat"), (int64_t)at * 30000,
				at == 17 ? 4000 : 9000 + 350 * (int64_t)at);
			m.now += i % 4 == 3 ? 25 * MS : 0;
		}
	finish(&m);
	expect(&m, PROFILE_SAMPLES, 60);
	release(&m);
}

/* ---- checkpoints ---- */

/* After every fourth batch: as one file with a new name each time, or the same one written over. */
static void save(struct made *m, const char *pattern, size_t i)
{
	uint32_t f = file(m, numbered(pattern, i));

	add(m, JOB_OPEN, 0, f, m->now, 4)->flags = O_WRONLY | O_CREAT | O_TRUNC;
	add(m, JOB_WRITE, 0, f, m->now + MS, 90000);
	add(m, JOB_SYNC, 0, f, m->now + 2 * MS, 0);
	add(m, JOB_CLOSE, 0, f, m->now + 3 * MS, 0);
	m->now += 5 * MS;
}

static void test_saves(void **state)
{
	static const char *const patterns[] = {"/out/step-@.pt", "/out/last.pt"};
	struct made m;

	(void)state;
	for (int k = 0; k < 2; k++) {
		begin(&m, JOB_SEES_OPENS | JOB_SEES_METADATA | JOB_SEES_PROCESSES, 1);
		for (size_t i = 0; i < 96; i++) {
			visit(&m, 0, "/d/train/#.npz", anew(i % 48, i / 48, 48));
			m.now += i % 4 == 3 ? 25 * MS : 0;
			if (i % 16 == 15)
				save(&m, patterns[k], i);
		}
		finish(&m);
		expect(&m, PROFILE_CHECKPOINTS, 6);
		expect(&m, PROFILE_CHECKPOINT_BYTES, 90000);
		expect(&m, PROFILE_CHECKPOINT_FILES, 1);
		expect(&m, PROFILE_CHECKPOINT_STEPS, 4);
		expect(&m, PROFILE_CHECKPOINT_SYNC, 1);
		expect(&m, PROFILE_CHECKPOINT_RENAME, 0);
		expect(&m, PROFILE_CHECKPOINT_STOPS, 1);
		release(&m);
	}
	/* steps are not known: neither is how many are between two; and who writes is not shown */
	begin(&m, 0, 1);
	for (size_t i = 0; i < 120; i++) {
		visit(&m, 0, "/d/train/#.npz", anew(i % 40, i / 40, 40));
		m.now += (int64_t)(i * i * 37 % 101) * MS / 4;
		if (i % 17 == 11)
			save(&m, patterns[1], i);
	}
	finish(&m);
	expect(&m, PROFILE_CHECKPOINTS, 7);
	expect_unknown(&m, PROFILE_CHECKPOINT_STEPS);
	expect_unknown(&m, PROFILE_CHECKPOINT_STOPS);
	release(&m);
}

/* ---- workers ---- */

/* Two processes that the trainer (0) forked. `sees`: what the log has beside their reads. */
static void begin_workers(struct made *m, unsigned sees, const char *command)
{
	begin(m, sees, 3);
	for (uint32_t i = 1; i < 3; i++) {
		m->job.process[i].parent = command ? JOB_NONE : 0;
		m->job.process[i].command = job_text(&m->job, command ? command : "");
		m->job.process[i].begin_ns = MS / 2;
	}
	m->job.process[0].begin_ns = 0;
}

static void test_crew(void **state)
{
	struct made m;

	(void)state;
	for (int spawned = 0; spawned < 2; spawned++) {
		begin_workers(&m, 0, spawned ? "python3 -c from multiprocessing.spawn" : NULL);
		for (size_t epoch = 0; epoch < 2; epoch++)
			for (size_t i = 0; i < 64; i++) {
				visit(&m, 1 + (uint32_t)(i / 4 % 2), "/d/train/#.npz",
				      anew(i, epoch, 64));
				m.now += i % 4 == 3 ? 25 * MS : 0;
			}
		finish(&m);
		if (spawned) {
			expect_unknown(&m, PROFILE_WORKERS);
			expect_unknown(&m, PROFILE_RANKS);
		} else {
			expect(&m, PROFILE_WORKERS, 2);
			expect(&m, PROFILE_RANKS, 1);
			expect(&m, PROFILE_PERSISTENT, 1);
		}
		release(&m);
	}
}

/* A message: four bytes of its length, and `bytes` more. */
static void put_message(struct made *m, uint32_t from, uint32_t pipe, int64_t bytes)
{
	add(m, JOB_WRITE, from, pipe, m->now, 4 + bytes);
	m->now += MS / 5;
}

static void take_message(struct made *m, uint32_t to, uint32_t pipe, int64_t bytes)
{
	add(m, JOB_READ, to, pipe, m->now, 4);
	m->now += MS / 5;
	add(m, JOB_READ, to, pipe, m->now, bytes);
	m->now += MS / 5;
}

/* PyTorch's DataLoader with two workers that live through both epochs: `ahead` batches are asked
 * for before the first is taken. Batches of 3, or of 1 to 4 samples. */
static void make_pipes(struct made *m, bool equal, size_t ahead, size_t shift)
{
	uint32_t pipe[3];

	begin_workers(m, JOB_SEES_PIPES | JOB_SEES_PROCESSES, NULL);
	for (int i = 0; i < 3; i++) {
		char name[32];

		snprintf(name, sizeof(name), "pipe:[%d]", 100 + i);
		pipe[i] = job_file(&m->job, name, JOB_FILE_PIPE);
	}
	for (size_t epoch = 0; epoch < 2; epoch++) {
		size_t sample = 0, sent = 0;

		for (size_t batch = 0; batch < 16; batch++) {
			size_t size = equal ? 3 : 1 + batch * 5 % 4;
			uint32_t worker = 1 + (uint32_t)(batch % 2);

			for (; sent < 16 && sent < batch + ahead; sent++)
				put_message(m, 0, pipe[sent % 2], 40);
			take_message(m, worker, pipe[batch % 2], 40);
			for (size_t i = 0; i < size; i++, sample++)
				visit(m, worker, "/d/train/#.npz", anew(sample, epoch * shift, 48));
			put_message(m, worker, pipe[2], 60);
			take_message(m, 0, pipe[2], 60);
			m->now += 20 * MS;
		}
	}
	finish(m);
}

static void test_pipes(void **state)
{
	struct made m;

	(void)state;
	make_pipes(&m, true, 4, 2);
	expect(&m, PROFILE_WORKERS, 2);
	expect(&m, PROFILE_RANKS, 1);
	expect(&m, PROFILE_BATCH, 3);
	expect(&m, PROFILE_STEPS, 32);
	expect(&m, PROFILE_EPOCHS, 2);
	expect(&m, PROFILE_PREFETCH, 4);
	assert_true(profile_has(&m.a, PROFILE_STEP));
	assert_int_equal(m.a.steps, 32);
	release(&m);
	make_pipes(&m, false, 4, 2);
	expect_unknown(&m, PROFILE_BATCH);
	expect(&m, PROFILE_STEPS, 32);
	release(&m);
	/* no worker comes to a sample twice: it may keep what it has read */
	make_pipes(&m, true, 4, 1);
	expect_unknown(&m, PROFILE_EPOCHS);
	release(&m);
	/* all of an epoch at once: how far ahead is not known */
	make_pipes(&m, true, 16, 2);
	expect_unknown(&m, PROFILE_PREFETCH);
	release(&m);
}

/* Each epoch has workers of its own, which take 300 ms to start, or one in which they live on;
 * of 12 batches, each with 30 ms of computation behind it. */
static void make_epochs(struct made *m, bool persistent)
{
	int64_t next = 0;

	begin(m, JOB_SEES_PIPES | JOB_SEES_PROCESSES, 5);
	for (size_t epoch = 0; epoch < 2; epoch++) {
		uint32_t first = persistent ? 1 : 1 + 2 * (uint32_t)epoch, pipe[3];

		for (uint32_t i = 0; i < 3; i++)
			pipe[i] = job_file(&m->job, numbered("pipe:[@]", 100 + 10 * first + i),
					   JOB_FILE_PIPE);
		for (uint32_t i = 0; i < 2 && (epoch == 0 || !persistent); i++) {
			m->job.process[first + i].parent = 0;
			m->job.process[first + i].command = "";
			m->job.process[first + i].begin_ns = m->now + MS / 2;
			add(m, JOB_FORK, 0, JOB_NONE, m->now, 0)->other = first + i;
			m->now += MS;
		}
		m->now += persistent && epoch > 0 ? 0 : 300 * MS;
		next = m->now;
		for (size_t batch = 0; batch < 14; batch++) {
			uint32_t k = batch % 2;

			/* two batches ahead */
			if (batch < 12) {
				put_message(m, 0, pipe[k], 40);
				take_message(m, first + k, pipe[k], 40);
				for (size_t i = 0; i < 4; i++)
					visit(m, first + k, "/d/train/#.npz",
					      anew(4 * batch + i, epoch, 48));
				put_message(m, first + k, pipe[2], 60);
			}
			if (batch < 2)
				continue;
			m->now = next > m->now ? next : m->now;
			take_message(m, 0, pipe[2], 60);
			next = m->now + 30 * MS;
		}
		m->now = next;
		for (uint32_t i = 0; i < 2 && !persistent; i++) {
			put_message(m, 0, pipe[i], 4);
			take_message(m, first + i, pipe[i], 4);
			m->job.process[first + i].end_ns = m->now + 20 * MS;
		}
		m->now += persistent ? 0 : 25 * MS;
	}
	finish(m);
}

static void test_epoch_starts(void **state)
{
	struct buf text = {0};
	struct made m;

	(void)state;
	make_epochs(&m, false);
	expect(&m, PROFILE_EPOCHS, 2);
	expect(&m, PROFILE_STEPS, 24);
	expect(&m, PROFILE_PERSISTENT, 0);
	assert_true(m.a.value[PROFILE_WAITING].number > 0.4);
	assert_int_equal(m.a.value[PROFILE_LIMIT].rule.reason, REASON_JOB_SLOW_STARTS);
	job_advice_put(&m.a, &(struct str_list){0}, "w.yaml", &text);
	assert_non_null(strstr(text.data, "persistent_workers=True"));
	assert_non_null(strstr(text.data, "reader.persistent_workers=true"));
	buf_release(&text);
	release(&m);
	/* once in the job: most of what is lost all the same, and nothing would spare it */
	make_epochs(&m, true);
	expect(&m, PROFILE_PERSISTENT, 1);
	assert_int_equal(m.a.starts.n, 2);
	assert_true(m.a.value[PROFILE_WAITING].number > 0.2);
	job_advice_put(&m.a, &(struct str_list){0}, "w.yaml", &text);
	assert_null(strstr(text.data, "persistent_workers"));
	buf_release(&text);
	release(&m);
}

/* Of mapped data only batches that are fetched count as steps. Before the first is fetched, Python
 * loads modules; a message behind which nothing but an old batch is closed brings none. */
static void test_fetched(void **state)
{
	uint32_t pipe[3], data, socket, memory;
	struct made m;

	(void)state;
	begin_workers(&m, JOB_SEES_PIPES | JOB_SEES_PROCESSES | JOB_SEES_MAPPINGS, NULL);
	for (int i = 0; i < 3; i++) {
		char name[32];

		snprintf(name, sizeof(name), "pipe:[%d]", 100 + i);
		pipe[i] = job_file(&m.job, name, JOB_FILE_PIPE);
	}
	socket = job_file(&m.job, "socket:[9]", JOB_FILE_SOCKET);
	memory = job_file(&m.job, "/dev/shm/torch_1_2_3", JOB_FILE_MEMORY);
	data = file(&m, "/d/all.arrow");
	m.job.file[data].size = 50 << 20;
	for (uint32_t i = 1; i < 3; i++)
		add(&m, JOB_MAP, i, data, m.now + i * MS, 50 << 20);
	m.now += 5 * MS;
	for (size_t batch = 0; batch < 17; batch++) {
		put_message(&m, 0, pipe[batch % 2], 40);
		take_message(&m, 1 + (uint32_t)(batch % 2), pipe[batch % 2], 40);
		put_message(&m, 1 + (uint32_t)(batch % 2), pipe[2], 60);
		take_message(&m, 0, pipe[2], 60);
		if (batch == 0)
			add(&m, JOB_STAT, 0, file(&m, "/job/code"), m.now, 4096);
		m.now += MS / 5;
		add(&m, batch < 16 ? JOB_READ : JOB_CLOSE, 0, batch < 16 ? socket : memory, m.now,
		    batch < 16 ? 20 : 0);
		m.now += 20 * MS;
	}
	for (size_t i = 0; i < 2; i++)
		add(&m, JOB_WRITE, 0, file(&m, numbered("/out/@.pt", i)), m.now + i * MS, 1 << 21);
	finish(&m);
	assert_true(m.a.trains);
	expect(&m, PROFILE_STEPS, 16);
	release(&m);
}

/* Processes that Python started anew and that send batches unasked, each over a pipe of its own;
 * the chunks that they read hold several samples each, or one. */
static void test_producers(void **state)
{
	struct made m;

	(void)state;
	for (int pieces = 0; pieces < 2; pieces++) {
		begin(&m, JOB_SEES_PIPES | JOB_SEES_PROCESSES, 5);
		for (uint32_t i = 1; i < 5; i++) {
			m.job.process[i].parent = 0;
			m.job.process[i].command =
				"python3 -c from multiprocessing.spawn import spawn_main";
			m.job.process[i].begin_ns = MS + (i > 2 ? 3000 * MS : 0);
		}
		m.job.process[0].begin_ns = 0;
		m.job.process[0].command = "python3";
		for (size_t epoch = 0; epoch < 2; epoch++) {
			m.now = MS + (int64_t)epoch * 3100 * MS;
			for (size_t i = 0; i < 48; i++) {
				uint32_t worker = 1 + (uint32_t)(2 * epoch + i / 3 % 2);
				char name[32];
				uint32_t pipe;

				snprintf(name, sizeof(name), "pipe:[%u]", 200 + worker);
				pipe = job_file(&m.job, name, JOB_FILE_PIPE);
				if (pieces)
					read_at(&m, worker, file(&m, "/d/0.h5"),
						(int64_t)(anew(i, epoch, 48) / 8) * 60000, 60000);
				else
					visit(&m, worker, "/d/train/#.npz", anew(i, epoch, 48));
				if (i % 3 < 2)
					continue;
				put_message(&m, worker, pipe, 60);
				take_message(&m, 0, pipe, 60);
				m.now += 20 * MS;
			}
		}
		finish(&m);
		assert_true(m.a.trains);
		expect(&m, PROFILE_WORKERS, 2);
		expect(&m, PROFILE_RANKS, 1);
		expect(&m, PROFILE_EPOCHS, 2);
		if (pieces)
			expect_unknown(&m, PROFILE_SAMPLES);
		else
			expect(&m, PROFILE_SAMPLES, 48);
		release(&m);
	}
}

/* ---- what limited it ---- */

static void test_limit(void **state)
{
	struct made m;

	(void)state;
	trained(&m, "/d/train/#.npz", 40, 3, anew);
	assert_string_equal(m.a.value[PROFILE_LIMIT].text, "compute");
	assert_true(m.a.value[PROFILE_WAITING].number < 0.1);
	release(&m);
	/* without pauses nobody knows what the process does between samples */
	begin(&m, 0, 1);
	for (size_t i = 0; i < 120; i++)
		visit(&m, 0, "/d/train/#.npz", anew(i % 40, i / 40, 40));
	finish(&m);
	expect_unknown(&m, PROFILE_LIMIT);
	expect_absent(&m, PROFILE_WAITING);
	release(&m);
}

/* Of a job that waits for its workers, whose batches take 200 ms without a read. */
static void test_advice(void **state)
{
	static const struct {
		double ranks, workers, processors;
		const char *says, *threads; /* NULL: no number of workers is proposed */
	} rows[] = {
		{1, 1, 0, "4 workers: at most 4.0 times as fast, 50 ms a step", "read_threads=4 "},
		{1, 1, 64, "4 workers: at most 4.0 times as fast, 50 ms a step", "read_threads=4 "},
		{1, 1, 2, "4 workers on 2 processors: at most 2.0 times", "read_threads=2 "},
		{2, 1, 2, "4 workers on 2 processors: no faster", NULL},
		/* two of them at once on one processor: they wait for something else */
		{1, 2, 1, "4 workers: at most 2.0 times as fast", "read_threads=4 "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const double values[][2] = {{PROFILE_RANKS, rows[i].ranks},
					    {PROFILE_WORKERS, rows[i].workers},
					    {PROFILE_STEPS, 10},
					    {PROFILE_STEP, 0.2 / rows[i].workers}};
		struct profile a = {.trains = true};
		struct str_list log = {0};
		struct buf text = {0};
		struct made m;

		begin(&m, 0, 2);
		m.job.processors = rows[i].processors;
		a.job = &m.job;
		for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++)
			a.value[(int)values[k][0]] =
				(struct profile_value){.how = HOW_SEEN, .number = values[k][1]};
		a.value[PROFILE_LIMIT] =
			(struct profile_value){.how = HOW_SEEN, .rule = FACT(JOB_WAITED_MOST)};
		job_advice_put(&a, &log, "job.yaml", &text);
		assert_non_null(strstr(text.data, rows[i].says));
		if (rows[i].threads)
			assert_non_null(strstr(text.data, rows[i].threads));
		else
			assert_null(strstr(text.data, "read_threads"));
		buf_release(&text);
		release(&m);
	}
}

/* What the kernel fetched from storage tells more than how fast the reads were: 600 MB/s. */
static void test_cache(void **state)
{
	static const struct {
		int64_t fetched;
		const char *says;
	} cases[] = {{JOB_UNKNOWN, "no sign of it"},
		     {24576, "the data was in the page cache"},
		     {40 * 60000, "in part"},
		     {120 * 60000, "no sign of it"}};
	struct made m;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(&m, 0, 1);
		train(&m, "/d/train/#.npz", 40, 3, anew);
		m.job.process[0].storage_read_bytes = cases[i].fetched;
		finish(&m);
		assert_non_null(strstr(m.a.value[PROFILE_CACHE].text, cases[i].says));
		release(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),        cmocka_unit_test(test_epochs),
		cmocka_unit_test(test_mapped),       cmocka_unit_test(test_no_training),
		cmocka_unit_test(test_gaps),         cmocka_unit_test(test_evaluation),
		cmocka_unit_test(test_marks),        cmocka_unit_test(test_roles),
		cmocka_unit_test(test_dataset),      cmocka_unit_test(test_kept_open),
		cmocka_unit_test(test_visits),       cmocka_unit_test(test_saves),
		cmocka_unit_test(test_advice),       cmocka_unit_test(test_crew),
		cmocka_unit_test(test_pipes),        cmocka_unit_test(test_limit),
		cmocka_unit_test(test_loaded),       cmocka_unit_test(test_places),
		cmocka_unit_test(test_producers),    cmocka_unit_test(test_fetched),
		cmocka_unit_test(test_epoch_starts), cmocka_unit_test(test_cache),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
