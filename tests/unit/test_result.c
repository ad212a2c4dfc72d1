/* Renderings: DLIO's files key by key against its real output, its log lines, result.json, .hydra,
 * and the text for people. */
#include "result_synth.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "judge/verdict.h"
#include "result/dlio_log.h"
#include "result/json_out.h"
#include "result/json_room.h"
#include "result/sink.h"
#include "result/answer.h"
#include "result/text.h"

static char folder[] = "/tmp/stoker-result-XXXXXX";

static const double train_wait[] = {0.3, 0.001, 0.001, 0.001, 0.001, 0.001};
static const double train_work[] = {0.0201, 0.0201, 0.0202, 0.0203, 0.0201, 0.0201};
static const double eval_wait[] = {0.4, 0.003, 0.003, 0.003};
static const double eval_work[] = {0.0101, 0.0101, 0.0101, 0.0101};
static const char *const eval_on[] = {"workflow.evaluation=true", NULL};

/* 2 ranks, 2 epochs of 6 steps and 4 evaluation steps: the shape of the fixture. */
static void fixture_shape(struct synth *s, const char *const *keys)
{
	synth_begin(s, 2, 2, keys);
	snprintf(s->r.folder, sizeof(s->r.folder), "%s", folder);
	for (uint32_t k = 0; k < 2; k++)
		for (uint32_t i = 0; i < 2; i++) {
			synth_block(s, k, i, 6, train_wait, train_work, NULL, 0);
			synth_eval(s, k, i, 4, eval_wait, eval_work, 0);
			hist_add(&s->r.rank[k].train_io.kind[IO_DATA].latency_ns, 1000 * (i + 1));
			s->r.rank[k].train_io.kind[IO_DATA].requests++;
			s->r.rank[k].train_io.kind[IO_DATA].asked_bytes += 65536;
		}
	synth_metrics(s);
	synth_judge(s);
}

static void render_all(const struct synth *s)
{
	struct err e = {0};

	if (sinks_write(&s->r, &s->m, &e) < 0)
		fail_msg("%s", e.text);
}

static json_t *load(const char *dir, const char *name)
{
	char path[512];
	json_error_t why;
	json_t *j;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	j = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
	if (!j)
		fail_msg("%s: %s at line %d", path, why.text, why.line);
	return j;
}

static bool is_checkpoint(const char *key)
{
	return strstr(key, "checkpoint") || str_starts(key, "save_ckpt");
}

/* Every key with its type in order, one a line; of the host's maps only that they are maps. */
static void tree(json_t *j, const char *path, struct buf *out)
{
	static const char *const types[] = {
		[JSON_OBJECT] = "object",   [JSON_ARRAY] = "array", [JSON_STRING] = "string",
		[JSON_INTEGER] = "integer", [JSON_REAL] = "real",   [JSON_TRUE] = "true",
		[JSON_FALSE] = "false",     [JSON_NULL] = "null"};
	const char *key;
	json_t *v;
	size_t i;

	buf_printf(out, "%s %s\n", path, types[json_typeof(j)]);
	if (str_ends(path, "cpuinfo") || str_ends(path, "meminfo"))
		return;
	json_object_foreach(j, key, v)
	{
		AUTO_FREE char *below = xasprintf("%s/%s", path, key);

		if (!is_checkpoint(key))
			tree(v, below, out);
	}
	json_array_foreach(j, i, v)
	{
		AUTO_FREE char *below = xasprintf("%s[]", path);

		tree(v, below, out);
	}
}

/* The mark of this program is all that DLIO's file does not have: first in the file, or in each
 * epoch where it has nothing but epochs. */
static void remove_mark(json_t *j, bool epochs)
{
	const char *key = json_object_iter_key(json_object_iter(j));
	json_t *epoch;

	if (epochs) {
		json_object_foreach(j, key, epoch) remove_mark(epoch, false);
		return;
	}
	assert_string_equal(key, "program");
	json_object_del(j, "program");
}

static void same_tree(const char *name)
{
	struct buf ours = {0}, theirs = {0};
	json_t *a = load(folder, name), *b = load(TEST_DATA "/dlio-output", name);

	remove_mark(a, strstr(name, "_per_epoch_stats") != NULL);
	tree(a, name, &ours);
	tree(b, name, &theirs);
	assert_string_equal(ours.data, theirs.data);
	json_decref(a);
	json_decref(b);
	buf_release(&ours);
	buf_release(&theirs);
}

static void keys_as_dlio(void **state)
{
	static const char *const dlio[] = {"workflow.evaluation=true", "compat.dlio=true", NULL};
	struct synth s;

	(void)state;
	fixture_shape(&s, dlio);
	render_all(&s);
	same_tree("summary.json");
	same_tree("0_output.json");
	same_tree("1_output.json");
	same_tree("0_per_epoch_stats.json");
	same_tree("1_per_epoch_stats.json");
	synth_end(&s);
	/* the mended evaluation has one value an evaluation, and that is the only difference */
	fixture_shape(&s, eval_on);
	render_all(&s);
	same_tree("0_output.json");
	json_t *summary = load(folder, "summary.json");
	json_t *metric = json_object_get(summary, "metric");

	assert_int_equal(json_array_size(json_object_get(metric, "eval_au_percentage")), 2);
	assert_near(json_number_value(json_object_get(metric, "eval_au_mean_percentage")),
		    s.m.eval_au.mean, 1e-9);
	assert_true(s.m.eval_au.mean > 70);
	json_decref(summary);
	synth_end(&s);
}

static const char *text_at(json_t *j, const char *a, const char *b, const char *c)
{
	const char *s =
		json_string_value(json_object_get(json_object_get(json_object_get(j, a), b), c));

	return s ? s : "(none)";
}

static void values(void **state)
{
	struct synth s;
	json_t *j, *list;
	struct buf raw = {0};

	(void)state;
	fixture_shape(&s, eval_on);
	render_all(&s);
	j = load(folder, "0_output.json");
	list = json_object_get(json_object_get(json_object_get(j, "1"), "proc"), "block1");
	assert_near(json_number_value(json_array_get(list, 0)), 0.3201, 1e-12);
	list = json_object_get(json_object_get(json_object_get(j, "2"), "load"), "eval");
	assert_near(json_number_value(json_array_get(list, 3)), 0.003, 1e-12);
	assert_near(json_number_value(json_object_get(
			    json_object_get(json_object_get(j, "1"), "au"), "block1")),
		    100 * 0.1008 / 0.1058, 1e-9);
	json_decref(j);
	j = load(folder, "1_per_epoch_stats.json");
	assert_string_equal(text_at(j, "1", "block1", "duration"), "0.43");
	assert_string_equal(text_at(j, "2", "eval", "duration"), "0.45");
	assert_int_equal(strlen(text_at(j, "1", "block1", "start")), 26);
	json_decref(j);
	/* 4 spaces, and no digits that only the binary form knows */
	char path[512];
	struct err e = {0};

	snprintf(path, sizeof(path), "%s/0_output.json", folder);
	assert_int_equal(file_read(path, 1 << 20, &raw, &e), 0);
	assert_non_null(strstr(raw.data, "\n    \"host_memory_GB\": 23.5,\n"));
	assert_non_null(strstr(raw.data, " 0.0203,"));
	buf_release(&raw);
	synth_end(&s);
}

static json_t *metric_of(const char *name)
{
	json_t *j = load(folder, name), *m = json_incref(json_object_get(j, "metric"));

	json_decref(j);
	return m;
}

/* What does not exist is in no list and has no key; the checkers' "fail" stays. */
static void nothing_to_measure(void **state)
{
	struct synth s;
	json_t *m, *j;

	(void)state;
	synth_begin(&s, 2, 1, NULL);
	snprintf(s.r.folder, sizeof(s.r.folder), "%s", folder);
	synth_even(&s, 0, 0, 1, 0.3, 0.1, 0.02);
	synth_even(&s, 1, 0, 1, 0.3, 0.1, 0.02);
	s.r.host.memory_gib = NAN;
	synth_metrics(&s);
	synth_judge(&s);
	render_all(&s);
	m = metric_of("summary.json");
	assert_int_equal(json_array_size(json_object_get(m, "train_au_percentage")), 0);
	assert_true(json_is_array(json_object_get(m, "train_throughput_samples_per_second")));
	assert_null(json_object_get(m, "train_au_mean_percentage"));
	assert_null(json_object_get(m, "train_io_mean_MB_per_second"));
	assert_null(json_object_get(m, "eval_au_percentage"));
	assert_string_equal(json_string_value(json_object_get(m, "train_au_meet_expectation")),
			    "fail");
	json_decref(m);
	j = load(folder, "result.json");
	json_t *epoch =
		json_array_get(json_object_get(json_object_get(j, "training"), "epochs"), 0);

	assert_null(json_object_get(epoch, "au_percent"));
	assert_non_null(strstr(json_string_value(json_object_get(epoch, "au_missing_because")),
			       "rank 0: 1 step was completed"));
	json_decref(j);
	synth_end(&s);
}

/* Interrupted in the second epoch, which rank 1 had not begun. */
static void interrupted(void **state)
{
	struct synth s;
	json_t *j;

	(void)state;
	synth_begin(&s, 2, 3, eval_on);
	snprintf(s.r.folder, sizeof(s.r.folder), "%s", folder);
	synth_even(&s, 0, 0, 5, 0.3, 0.1, 0.02);
	synth_even(&s, 1, 0, 5, 0.3, 0.1, 0.02);
	synth_even(&s, 0, 1, 3, 0.3, 0.1, 0.02);
	s.r.rank[0].epoch[1].end_wall_ns = 0;
	s.r.epochs_begun = 2;
	s.r.epochs_done = 1;
	s.r.status = RUN_INTERRUPTED;
	err_set(&s.r.reason, ERR_CANCELED, "interrupted by a signal");
	synth_metrics(&s);
	synth_judge(&s);
	render_all(&s);
	j = load(folder, "0_output.json");
	assert_int_equal(json_array_size(json_object_get(
				 json_object_get(json_object_get(j, "2"), "load"), "block1")),
			 3);
	assert_null(json_object_get(json_object_get(j, "2"), "end"));
	json_decref(j);
	j = load(folder, "1_per_epoch_stats.json");
	assert_null(json_object_get(j, "2"));
	json_decref(j);
	j = load(folder, "result.json");
	assert_string_equal(json_string_value(json_object_get(j, "status")), "interrupted");
	assert_string_equal(json_string_value(json_object_get(j, "reason")),
			    "interrupted by a signal");
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(j, "training"), "epochs_done")),
		1);
	json_decref(j);
	synth_end(&s);
}

static void result_json(void **state)
{
	static const char *const keys[] = {"workflow.evaluation=true", "reader.batch_size=2", NULL};
	json_t *j, *t, *c, *io, *buckets;
	struct synth s;

	(void)state;
	fixture_shape(&s, keys);
	s.r.generated = true;
	s.r.generation.bytes = 1000;
	s.r.generation.wall_ns = 500000000;
	s.r.peak_rss_bytes = 12345;
	/* a file system knows no encodings */
	snprintf(s.r.folder, sizeof(s.r.folder),
		 "%s/b\xff"
		 "d",
		 folder);
	mkdir(s.r.folder, 0755);
	render_all(&s);
	j = load(s.r.folder, "result.json");
	assert_int_equal(json_integer_value(json_object_get(j, "schema")), 2);
	assert_string_equal(json_string_value(json_object_get(j, "status")), "complete");
	assert_true(json_is_null(json_object_get(j, "reason")));
	assert_true(str_ends(json_string_value(json_object_get(j, "folder")), "/b\\xffd"));
	t = json_object_get(j, "training");
	assert_near(json_number_value(json_object_get(t, "whole_au_mean_percent")),
		    s.m.whole_au.mean, 1e-9);
	assert_near(json_number_value(json_object_get(t, "au_mean_percent")), s.m.train_au.mean,
		    1e-9);
	assert_true(json_is_null(json_object_get(t, "device_read_bytes")));
	assert_int_equal(json_integer_value(json_object_get(t, "steps_per_epoch")), 6);
	assert_int_equal(json_array_size(json_object_get(t, "epochs")), 2);
	assert_true(json_is_true(
		json_object_get(json_array_get(json_object_get(t, "epochs"), 1), "order_proved")));
	io = json_object_get(json_object_get(json_object_get(t, "io"), "data"), "latency");
	assert_int_equal(json_integer_value(json_object_get(io, "count")), 4);
	assert_int_equal(json_integer_value(json_object_get(io, "max_ns")), 2000);
	buckets = json_object_get(io, "buckets");
	assert_int_equal(json_array_size(buckets), 2);
	assert_int_equal(json_integer_value(json_array_get(json_array_get(buckets, 1), 1)), 2);
	assert_true(json_integer_value(json_array_get(json_array_get(buckets, 1), 0)) <= 2000);
	c = json_object_get(json_object_get(j, "configuration"), "reader.batch_size");
	assert_int_equal(json_integer_value(json_object_get(c, "value")), 2);
	assert_string_equal(json_string_value(json_object_get(c, "origin")), "override");
	assert_int_equal(json_object_size(json_object_get(j, "configuration")), workload_row_count);
	assert_int_equal(json_array_size(json_object_get(j, "verdicts")), s.r.judged.verdicts);
	assert_int_equal(json_array_size(json_object_get(j, "ranks")), 2);
	assert_near(json_number_value(
			    json_object_get(json_object_get(j, "generation"), "rate_bytes_per_s")),
		    2000, 1e-9);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(j, "memory"), "peak_rss_bytes")),
		12345);
	json_decref(j);
	synth_end(&s);
}

/* ---- .hydra ---- */

static char *slurp(const char *path)
{
	struct buf b = {0};
	struct err e = {0};

	if (file_read(path, 1 << 20, &b, &e) < 0)
		fail_msg("%s", e.text);
	return buf_take(&b);
}

static void hydra(void **state)
{
	AUTO_FREE char *dir = xasprintf("hydra.run.dir=%s/run", folder);
	AUTO_FREE char *sub = xasprintf("%s/run/.hydra/", folder);
	const char *keys[] = {"++workload.reader.batch_size=3", dir, "++workload.model.name='off'",
			      NULL};
	struct err e = {0};
	struct synth s;

	(void)state;
	fixture_shape(&s, keys);
	render_all(&s);
	AUTO_FREE char *overrides_path = xasprintf("%soverrides.yaml", sub);
	AUTO_FREE char *overrides = slurp(overrides_path);

	assert_non_null(strstr(overrides, "\n- ++workload.reader.batch_size=3\n"));
	assert_null(strstr(overrides, "hydra.run.dir"));
	AUTO_FREE char *config_path = xasprintf("%sconfig.yaml", sub);
	AUTO_FREE char *config = slurp(config_path);

	assert_true(str_starts(config, "# Written by stoker "));
	assert_non_null(strstr(config, "\nworkload:\n  "));
	assert_non_null(strstr(config, "\n    name: 'off'\n"));
	assert_non_null(strstr(config, "\n    batch_size: 3\n"));
	AUTO_FREE char *hydra_path = xasprintf("%shydra.yaml", sub);
	AUTO_FREE char *hydra = slurp(hydra_path);
	struct node *tree_of = yaml_parse(hydra, strlen(hydra), hydra_path, &e);

	if (!tree_of)
		fail_msg("%s", e.text);
	assert_string_equal(node_path(tree_of, "hydra.runtime.choices.workload")->s, "default");
	assert_string_equal(node_path(tree_of, "hydra.job.name")->s, "main");
	assert_string_equal(node_path(tree_of, "hydra.runtime.version_base")->s, "1.3");
	assert_int_equal(node_path(tree_of, "hydra.runtime.version_base")->kind, NODE_STR);
	assert_string_equal(node_path(tree_of, "hydra.overrides.hydra.0")->s, dir);
	assert_string_equal(node_path(tree_of, "hydra.overrides.hydra.1")->s, "hydra.mode=RUN");
	assert_int_equal(node_path(tree_of, "hydra.callbacks")->kind, NODE_MAP);
	assert_int_equal(node_path(tree_of, "hydra.env")->n, 0);
	assert_int_equal(node_path(tree_of, "hydra.searchpath")->kind, NODE_LIST);
	assert_int_equal(node_path(tree_of, "hydra.job.chdir")->kind, NODE_NULL);
	node_free(tree_of);
	synth_end(&s);
}

static void hydra_elsewhere(void **state)
{
	AUTO_FREE char *run = xasprintf("hydra.run.dir=%s/none", folder);
	AUTO_FREE char *out = xasprintf("output.folder=%s/with", folder);
	AUTO_FREE char *none = xasprintf("%s/none", folder);
	AUTO_FREE char *with = xasprintf("%s/with/.hydra/hydra.yaml", folder);
	const char *off[] = {run, "hydra.output_subdir=null", NULL};
	const char *set[] = {out, NULL};
	struct synth s;

	(void)state;
	fixture_shape(&s, off);
	render_all(&s);
	assert_false(file_exists(none));
	synth_end(&s);
	fixture_shape(&s, set);
	render_all(&s);
	assert_true(file_exists(with));
	synth_end(&s);
}

/* ---- log ---- */

/* The line with every time stamp as T and every number as N. */
static char *shape_of(const char *line, size_t n)
{
	struct buf b = {0};

	for (size_t i = 0; i < n;) {
		size_t digits = strspn(line + i, "0123456789-T:.");

		if (digits >= 26 && line[i + 10] == 'T') {
			buf_putc(&b, 'T');
			i += 26;
		} else if (line[i] >= '0' && line[i] <= '9') {
			buf_putc(&b, 'N');
			i += strspn(line + i, "0123456789.");
		} else {
			buf_putc(&b, line[i++]);
		}
	}
	return buf_take(&b);
}

static void shapes(const char *log, struct buf *out)
{
	while (*log) {
		size_t n = strcspn(log, "\n");
		AUTO_FREE char *shape = shape_of(log, n);

		if (!strstr(shape, "heckpoint") && !strstr(shape, "Model size"))
			buf_printf(out, "%s\n",
				   strncmp(shape, "[OUTPUT] T Saved", 16) == 0
					   ? "[OUTPUT] T Saved outputs in"
					   : shape);
		log += n + (log[n] == '\n');
	}
}

static void log_one_epoch(struct synth *s, uint32_t epoch)
{
	const struct rank_epoch *ep = &s->r.rank[0].epoch[epoch - 1];

	dlio_log_epoch_start(epoch, 6);
	dlio_log_block_start(1);
	dlio_log_block_end(1, &ep->block[0]);
	dlio_log_block_metrics(epoch, &ep->block[0], 78.4595, 119.7806,
			       &s->w.train.computation_time);
	dlio_log_epoch_end(epoch, ep->block[0].steps, ep->block[0].end_wall_ns,
			   ep->block[0].end_ns - ep->block[0].begin_ns);
	dlio_log_eval_start(4);
	dlio_log_eval_end(&ep->eval);
	dlio_log_eval_metrics(epoch, 70.5729, 17.3007);
}

static void log_lines(void **state)
{
	static const char *const keys[] = {"workflow.evaluation=true",
					   "workflow.generate_data=false", "metric.au=0.99", NULL};
	AUTO_FREE char *path = xasprintf("%s/dlio.log", folder);
	struct buf ours = {0}, theirs = {0};
	struct err e = {0};
	struct synth s;

	(void)state;
	fixture_shape(&s, keys);
	log_set_console(LOG_CONSOLE_ERRORS);
	assert_int_equal(log_open(path, &e), 0);
	dlio_log_running(&s.w, 2);
	dlio_log_plan(&s.r);
	log_one_epoch(&s, 1);
	log_one_epoch(&s, 2);
	dlio_log_saved(&s.r, &s.m);
	assert_int_equal(log_close(&e), 0);
	AUTO_FREE char *log = slurp(path);
	AUTO_FREE char *golden = slurp(TEST_DATA "/dlio-output/dlio.log");
	/* the fixture's run also checkpointed */
	char *modes = strstr(golden, " & Checkpointing");

	assert_non_null(modes);
	memmove(modes, modes + 16, strlen(modes + 16) + 1);
	shapes(log, &ours);
	shapes(golden, &theirs);
	assert_string_equal(ours.data, theirs.data);
	assert_non_null(strstr(log, "Max steps per epoch: 6 = 1 * 24 / 2 / 2 (samples per file"));
	assert_non_null(strstr(log, "Steps per eval: 4 = 1 * 8 / 1 / 2 (samples"));
	assert_non_null(strstr(log,
			       "Epoch 2 - Block 1 [Training] Accelerator Utilization [AU] (%): "
			       "78.4595\n"));
	assert_non_null(strstr(log, "0.0202+/-0.0001 (set value: {'mean': 0.02})\n"));
	assert_non_null(strstr(log, "Ending block 1 - 6 steps completed in 0.43 s\n"));
	buf_release(&ours);
	buf_release(&theirs);
	synth_end(&s);
}

static void log_without_values(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/short.log", folder);
	struct err e = {0};
	struct synth s;

	(void)state;
	synth_begin(&s, 1, 1, NULL);
	synth_even(&s, 0, 0, 1, 0.3, 0.1, 0.02);
	synth_metrics(&s);
	log_set_console(LOG_CONSOLE_ERRORS);
	assert_int_equal(log_open(path, &e), 0);
	dlio_log_saved(&s.r, &s.m);
	assert_int_equal(log_close(&e), 0);
	AUTO_FREE char *log = slurp(path);

	assert_null(strstr(log, "nan"));
	assert_null(strstr(log, "Training Throughput"));
	assert_non_null(strstr(log, "[METRIC] train_au_meet_expectation: fail\n"));
	assert_non_null(
		strstr(log, "[WARNING] Epoch 1 has no AU or throughput: 1 step was completed"));
	synth_end(&s);
}

/* ---- text ---- */

static void check_columns(const char *text)
{
	size_t at = 0;

	for (; *text; text++) {
		at = *text == '\n' ? 0 : at + 1;
		assert_true(at <= 100);
		assert_true((unsigned char)*text < 0x80);
	}
}

static void text(void **state)
{
	struct buf b = {0};
	struct synth s;

	(void)state;
	fixture_shape(&s, eval_on);
	s.r.rank[0].prefetch_batches = 8;
	workload_warn(&s.w,
		      "line 3: the key 'model_size' is read as model_size_bytes, which is a long "
		      "sentence that needs more than one line on any terminal");
	synth_judge(&s);
	result_text(&s.r, &s.m, false, &b);
	check_columns(b.data);
	assert_non_null(strstr(b.data, "FAIL steady"));
	/* what is wrong comes first */
	assert_true(strstr(b.data, "FAIL ") < strstr(b.data, "WARN "));
	assert_true(strstr(b.data, "WARN ") < strstr(b.data, "  ok "));
	assert_true(strstr(b.data, "  ok ") < strstr(b.data, "AU, by DLIO's definition"));
	assert_non_null(strstr(b.data, "95.2"));
	assert_non_null(strstr(b.data, " %, target 90 %: "));
	assert_non_null(strstr(b.data, folder));
	buf_reset(&b);
	result_text(&s.r, &s.m, true, &b);
	assert_non_null(strstr(b.data, "\033[1;31mFAIL"));
	buf_release(&b);
	synth_end(&s);
}

static unsigned lines_of(const struct buf *b)
{
	unsigned n = 0;

	for (size_t i = 0; i < b->len; i++)
		n += b->data[i] == '\n';
	return n;
}

static void put_brief(struct buf *b, const struct fact *f)
{
	words_put(b, f, WORDS_SHORT);
}

/* However much there is to say, and however little room there is. */
static void answer(void **state)
{
	struct buf b = {0}, remedy = {0}, effect = {0};
	struct fact costs;
	struct synth s;

	(void)state;
	fixture_shape(&s, eval_on);
	s.r.rank[0].prefetch_batches = 8;
	workload_warn(&s.w, "line 3: the key 'model_size' is read as model_size_bytes");
	synth_judge(&s);
	s.r.judged.limit = (struct limit){.cause = CAUSE_STORAGE};
	fact_add(&s.r.judged.limit.facts,
		 fact_with(FACT(LIMIT_STORAGE_QUEUE, 0.99, 1234, 0.0123), 0,
			   "file system of a name so long that hardly any clause has room for it"));
	for (int i = 0; i < 4; i++)
		fact_add(&s.r.judged.limit.facts, FACT(UNTOLD_READS, 12));
	fact_add(&s.r.judged.limit.effects, FACT(EFFECT_WORKERS, 4, 93, 91, 95));
	fact_add(&s.r.judged.limit.remedy, FACT(REMEDY_WORKERS, 4, 93, 91, 95));
	for (unsigned lines = 20; lines >= 12; lines -= 4) {
		result_answer(&s.r, &s.m, false, lines, &b);
		if (lines_of(&b) > lines)
			fail_msg("%u lines, not %u:\n%s", lines_of(&b), lines, b.data);
		assert_non_null(strstr(b.data, " %, target 90 %: "));
		assert_non_null(strstr(b.data, "by DLIO's definition)"));
		assert_non_null(strstr(b.data, "FAIL"));
		put_brief(&remedy, &s.r.judged.limit.remedy.fact[0]);
		assert_non_null(strstr(b.data, "to change it"));
		assert_non_null(strstr(b.data, remedy.data));
		buf_reset(&remedy);
		assert_non_null(strstr(b.data, "stoker report "));
		put_brief(&effect, &s.r.judged.limit.effects.fact[0]);
		assert_null(strstr(b.data, effect.data));
		buf_reset(&effect);
		/* each verdict that is not ok is there, with a line or by its name */
		for (uint32_t i = 0; i < s.r.judged.verdicts; i++)
			if (s.r.judged.verdict[i].level != VERDICT_PASS)
				assert_non_null(strstr(b.data, s.r.judged.verdict[i].check));
	}
	/* what a run would have been with costs is a line; without those it had, a detail */
	s.r.judged.outlook.costs = (struct costs_effect){.said = true,
							 .profile = "torch-1.13",
							 .au = 70,
							 .low = 68,
							 .high = 72,
							 .dlio_au = NAN,
							 .loop_au = NAN};
	costs = costs_effect_fact(&s.r.judged.outlook.costs);
	put_brief(&effect, &costs);
	result_answer(&s.r, &s.m, false, ANSWER_LINES, &b);
	assert_true(lines_of(&b) <= ANSWER_LINES);
	assert_non_null(strstr(b.data, "  framework       "));
	assert_non_null(strstr(b.data, effect.data));
	s.r.judged.outlook.costs.spent = true;
	result_answer(&s.r, &s.m, false, ANSWER_LINES, &b);
	assert_null(strstr(b.data, "  framework       "));
	result_text(&s.r, &s.m, false, &b);
	assert_non_null(strstr(b.data, "  framework       "));
	/* a path is not cut, whatever its length */
	memset(s.r.folder, 'x', 300);
	s.r.folder[300] = '\0';
	result_answer(&s.r, &s.m, false, ANSWER_LINES, &b);
	assert_non_null(strstr(b.data, s.r.folder));
	/* a shell takes it as one word */
	snprintf(s.r.folder, sizeof(s.r.folder), "a 'b");
	result_answer(&s.r, &s.m, false, ANSWER_LINES, &b);
	assert_non_null(strstr(b.data, "stoker report 'a '\\''b' -o report.html"));
	buf_release(&b);
	buf_release(&remedy);
	buf_release(&effect);
	synth_end(&s);
}

/* The text with one blank for each run of them. */
static void flatten(struct buf *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->len; i++)
		if (!isspace((unsigned char)b->data[i]))
			b->data[n++] = b->data[i];
		else if (n && b->data[n - 1] != ' ')
			b->data[n++] = ' ';
	b->data[b->len = n] = '\0';
}

/* The short form is there, as a whole. */
static void check_said(const struct buf *b, const struct fact *f)
{
	struct buf said = {0};

	put_brief(&said, f);
	while (said.len && strchr(".;:, ", said.data[said.len - 1]))
		said.data[--said.len] = '\0';
	if (!strstr(b->data, said.data))
		fail_msg("%s: no '%s' in:\n%s", reason_name(f->reason), said.data, b->data);
	buf_release(&said);
}

static struct fact fact_with_figures(enum reason reason, double value)
{
	double figure[FACT_FIGURES];
	struct fact f;

	for (unsigned i = 0; i < FACT_FIGURES; i++)
		figure[i] = value;
	f = fact_of(reason, reason_figures(reason), figure);
	for (unsigned i = 0; i < reason_texts(reason); i++)
		f = fact_with(f, i, "file system fuse.gcsfuse of host gpu-node-0123.example.org");
	return f;
}

static bool is_of(const char *name, const char *first)
{
	return strncmp(name, first, strlen(first)) == 0;
}

/* Whatever limits a run, would change it, or is wrong with it: 14 lines at most, each reason and
 * remedy as a whole. */
static void answers_are_not_cut(void **state)
{
	static const double values[] = {0.987, 98765};
	struct verdict bad[3] = {{.check = "compute"}, {.check = "steady"}, {.check = "client"}};
	struct buf b = {0};
	unsigned answers = 0;
	struct synth s;

	(void)state;
	fixture_shape(&s, eval_on);
	free(s.r.judged.verdict);
	s.r.judged.verdict = bad;
	for (int i = 2 * (REASON_NONE + 1); i < 2 * REASONS; i++) {
		struct fact f = fact_with_figures((enum reason)(i / 2), values[i % 2]);
		const char *name = reason_name(f.reason);
		bool limit = is_of(name, "limit.") || is_of(name, "cpu.");
		bool remedy = is_of(name, "remedy.") || is_of(name, "effect.");
		struct limit *of = &s.r.judged.limit;

		if (is_of(name, "job.") || is_of(name, "ledger.") || is_of(name, "measured.") ||
		    is_of(name, "instead."))
			continue;
		*of = (struct limit){.cause = CAUSE_STORAGE};
		fact_add(&of->facts, limit ? f : FACT(LIMIT_METADATA, 0.9, 0.8, 12, 0.01));
		fact_add(&of->facts, FACT(LIMIT_METADATA_UNTOLD));
		fact_add(&of->remedy, remedy ? f : FACT(REMEDY_STORAGE, 93, 91, 95));
		s.r.judged.verdicts = limit || remedy ? 1 : 3;
		for (unsigned k = 0; k < 3; k++) {
			bad[k].level = i % 3 ? VERDICT_WARN : VERDICT_FAIL;
			bad[k].facts = (struct fact_list){0};
			fact_add(&bad[k].facts, k ? FACT(CLIENT_MEMORY, 0.97, 0.9) : f);
			fact_add(&bad[k].facts, FACT(STEADY_NEEDED, 24));
			bad[k].first_bad = 0;
			bad[k].end_bad = bad[k].facts.count;
		}
		result_answer(&s.r, &s.m, false, ANSWER_LINES, &b);
		check_columns(b.data);
		if (lines_of(&b) > ANSWER_LINES || strstr(b.data, "..."))
			fail_msg("%s: %u lines:\n%s", name, lines_of(&b), b.data);
		flatten(&b);
		check_said(&b, &of->facts.fact[0]);
		check_said(&b, &of->remedy.fact[0]);
		check_said(&b, &bad[0].facts.fact[0]);
		answers++;
	}
	assert_true(answers >= 2 * 200);
	s.r.judged.verdict = NULL;
	buf_release(&b);
	synth_end(&s);
}

/* The reason of a verdict has a place, however much was found before. */
static void full_verdict(void **state)
{
	struct verdict v = {.check = "x"};

	(void)state;
	for (int i = 0; i < FACTS_MOST + 2; i++)
		verdict_found(&v, VERDICT_PASS, FACT(STEADY_NEEDED, i));
	verdict_found(&v, VERDICT_WARN, FACT(CLIENT_MEMORY, 0.97, 0.9));
	assert_int_equal(v.level, VERDICT_WARN);
	assert_true(v.first_bad < v.facts.count);
	assert_int_equal(v.facts.fact[v.first_bad].reason, REASON_CLIENT_MEMORY);
}

static void text_of_many_epochs(void **state)
{
	struct buf b = {0};
	struct synth s;
	int lines = 0;

	(void)state;
	synth_begin(&s, 1, 40, NULL);
	for (uint32_t i = 0; i < 40; i++)
		synth_even(&s, 0, i, 5, 0.3, 0.1, 0.02);
	synth_metrics(&s);
	synth_judge(&s);
	result_text(&s.r, &s.m, false, &b);
	check_columns(b.data);
	assert_non_null(strstr(b.data, "(28 more, in result.json)"));
	assert_non_null(strstr(b.data, "\n      40 "));
	assert_null(strstr(b.data, "\n      20 "));
	for (const char *p = strstr(b.data, "Training"), *end = strstr(p, "Where the time went");
	     (p = strchr(p, '\n')) && p < end; p++)
		lines++;
	assert_true(lines < 25);
	buf_reset(&b);
	s.r.trained = false;
	s.r.generated = true;
	result_text(&s.r, &s.m, false, &b);
	assert_non_null(strstr(b.data, "generation"));
	buf_release(&b);
	synth_end(&s);
}

static void nothing_is_left(void **state)
{
	struct result r = {0};
	struct err e = {0};
	struct synth s;

	(void)state;
	result_release(&r);
	/* a folder that cannot be written is a sentence */
	fixture_shape(&s, NULL);
	snprintf(s.r.folder, sizeof(s.r.folder), "%s/file/missing", folder);
	assert_int_equal(file_write("file", "", 0, &e), 0);
	assert_true(sinks_write(&s.r, &s.m, &e) < 0);
	assert_non_null(strstr(e.text, "/file"));
	result_release(&s.r);
	result_release(&s.r);
	synth_end(&s);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? chdir(folder) : -1;
}

/* Values in a room and outside of it are parts of one tree, of any size, and its text is neither.
 */
static void room_of_values(void **state)
{
	json_t *tree, *first;
	char *text;

	(void)state;
	json_set_alloc_funcs(json_room_alloc, json_room_free);
	json_room_use(true);
	first = tree = json_array();
	json_array_append_new(tree, json_integer(1));
	json_room_use(false);
	for (int i = 2; i < 30; i++)
		json_array_append_new(tree, json_integer(i));
	json_room_use(true);
	json_array_append_new(tree, json_string("end"));
	text = json_dump_text(tree, JSON_COMPACT);
	assert_int_equal(strncmp(text, "[1,2,3,", 7), 0);
	assert_non_null(strstr(text, "29,\"end\"]"));
	free(text);
	json_decref(tree);
	json_room_clear();

	/* the next one lies where the first one did; what has no place there lies elsewhere */
	tree = json_array();
#ifndef __SANITIZE_ADDRESS__
	assert_ptr_equal(tree, first);
#endif
	for (int i = 0; i < 200000; i++)
		json_array_append_new(tree, json_integer(i));
	assert_int_equal(json_integer_value(json_array_get(tree, 199999)), 199999);
	json_decref(tree);
	json_room_release();
	json_set_alloc_funcs(malloc, free);
}

static int drop_folder(void **state)
{
	(void)state;
	remove_tree(folder, NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_as_dlio),
		cmocka_unit_test(values),
		cmocka_unit_test(nothing_to_measure),
		cmocka_unit_test(interrupted),
		cmocka_unit_test(result_json),
		cmocka_unit_test(hydra),
		cmocka_unit_test(hydra_elsewhere),
		cmocka_unit_test(log_lines),
		cmocka_unit_test(log_without_values),
		cmocka_unit_test(text),
		cmocka_unit_test(answer),
		cmocka_unit_test(answers_are_not_cut),
		cmocka_unit_test(full_verdict),
		cmocka_unit_test(text_of_many_epochs),
		cmocka_unit_test(room_of_values),
		cmocka_unit_test(nothing_is_left),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
