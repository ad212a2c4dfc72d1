/* The truth table: the sample of files, the commands of the runs, and the rows from their results.
 */
#include "study/truth_table.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "os/file_system.h"
#include "base/say.h"
#include "base/str.h"
#include "conf/override.h"
#include "dataset/dataset.h"
#include "loader/loader.h"
#include "readback/figures.h"
#include "readback/record.h"
#include "readback/result_folder.h"
#include "result/json_out.h"
#include "result/seal.h"
#include "study/study.h"

#define ROW_S 120
#define TABLE_NAME "truth_table.json"
#define OWN_FOLDER "truth_table"
#define COLUMNS 100

static const double BYTES_MOST = 1e9;
static const double COMPUTE_MOST_S = 20;
static const uint64_t STEPS_LEAST = 2;
static const uint64_t STEPS_AIM = 40;
static const double CACHED_COLD = 0.1; /* of the files, that a cold row may find cached */
static const double CACHED_WARM = 0.9; /* that a warm one has to */

static const struct {
	const char *name, *folder, *title;
} kinds[] = {
	[TRUTH_COLD] = {"cold", "cold", "the storage, files evicted from the page cache before"},
	[TRUTH_WARM] = {"warm", "warm", "the page cache, files read once before"},
	[TRUTH_DIRECT] = {"O_DIRECT", "o_direct", "the storage, past the page cache"},
	[TRUTH_MEMORY] = {"memory", "memory", "a dataset in the memory of the program"},
};

struct table_maker {
	struct truth_table *t;
	const struct workload *w;
	const struct truth_table_options *o;
	char *own_folder; /* of generated data; NULL: the workload's */
	/* the row that is made */
	enum truth_kind kind, next;
	bool generated; /* the data is there */
};

/* ---- the sample ---- */

static double bytes_a_file(const struct dataset *d)
{
	return (double)d->likely_bytes / (double)(d->files[DATASET_TRAIN] + d->files[DATASET_EVAL]);
}

static double files_a_step(const struct workload *w, int64_t ranks)
{
	return (double)w->reader.batch_size * (double)ranks /
	       (double)w->dataset.num_samples_per_file;
}

/* Enough steps to leave what is read ahead behind, within what bytes and time allow. */
static void choose_sample(struct table_maker *m, const struct dataset *d)
{
	const struct workload *w = m->w;
	struct truth_table *t = m->t;
	const struct loader_ops *loader = loader_find(w->reader.data_loader);
	double a_step = files_a_step(w, m->o->ranks);
	double compute_s = time_dist_mean(&w->train.computation_time), size = bytes_a_file(d);
	uint64_t steps = STEPS_AIM, window = 0;
	uint32_t workers;

	if (loader)
		loader->window(w, &workers, &window);
	if (steps < 3 * window)
		steps = 3 * window;
	if (compute_s > 0 && (double)steps * compute_s > COMPUTE_MOST_S)
		steps = (uint64_t)(COMPUTE_MOST_S / compute_s);
	if ((double)steps * a_step * size > BYTES_MOST)
		steps = (uint64_t)(BYTES_MOST / size / a_step);
	steps = steps < STEPS_LEAST ? STEPS_LEAST : steps;
	t->files_of = d->files[DATASET_TRAIN];
	t->files = (uint64_t)ceil((double)steps * a_step);
	if (t->files >= t->files_of) {
		t->files = t->files_of;
		t->whole = true;
	}
	t->steps = (uint64_t)((double)t->files / a_step);
	t->sample_bytes = (double)t->files * size;
}

/* Data that is there is used; what is generated goes into a folder of its own, so that a dataset
 * that is generated later finds no part of another size. */
static void choose_folder(struct table_maker *m, const struct dataset *d)
{
	AUTO_FREE char *train = path_join(d->folder, dataset_kind_folder[DATASET_TRAIN]);

	if (!m->w->workflow.generate_data || file_is_dir(train) ||
	    !(workload_base_store(m->w)->flags & STORE_HAS_FILES))
		return;
	m->own_folder = path_join(d->folder, OWN_FOLDER);
	m->t->own_data = true;
}

/* ---- the runs ---- */

static const char *store_with(unsigned has, unsigned without)
{
	for (size_t i = 0; store_facts_table[i]; i++)
		if ((store_facts_table[i]->flags & has) == has &&
		    !(store_facts_table[i]->flags & without))
			return store_facts_table[i]->name;
	return NULL;
}

/* The expression with another base, and without what drops files from the page cache. */
static char *over_shims(const char *expression, const char *base)
{
	struct buf made = {0};

	for (const char *part = expression, *plus; (plus = strchr(part, '+')); part = plus + 1) {
		AUTO_FREE char *name = xstrndup(part, (size_t)(plus - part));
		const struct store_facts *shim = store_facts_find(name);

		if (!shim || !(shim->flags & STORE_DROPS_BEHIND))
			buf_printf(&made, "%s+", name);
	}
	buf_puts(&made, base);
	return buf_take(&made);
}

/* The store of a row: the workload's, with another one below its shims; of memory without them,
 * since they stand for a storage. */
static char *store_of(const struct table_maker *m, enum truth_kind kind)
{
	const struct store_facts *base = workload_base_store(m->w);
	const char *below = base->name;

	if (kind == TRUTH_MEMORY)
		return xstrdup(store_with(STORE_IS_VOLATILE, STORE_HAS_FILES));
	if (kind == TRUTH_DIRECT)
		below = store_with(STORE_HAS_FILES | STORE_IS_UNCACHED, STORE_IS_SHIM);
	else if (base->flags & STORE_IS_UNCACHED || m->w->reader.odirect)
		below = store_with(STORE_HAS_FILES | STORE_IS_BUFFERED, STORE_IS_SHIM);
	return over_shims(m->w->storage.store, below);
}

/* What a run is told. `warm_up`: the run that only fills the page cache. */
static void put_keys(const struct table_maker *m, enum truth_kind kind, bool warm_up,
		     struct str_list *keys)
{
	AUTO_FREE char *store = store_of(m, kind);

	override_put(keys, "dataset.num_files_train", "%llu", (unsigned long long)m->t->files);
	override_put(keys, "dataset.keep_files", "true");
	if (m->own_folder && kind != TRUTH_MEMORY)
		override_put_text(keys, "dataset.data_folder", m->own_folder);
	override_put(keys, "workflow.train", "true");
	override_put(keys, "workflow.evaluation", "false");
	override_put(keys, "workflow.checkpoint", "false");
	override_put(keys, "train.epochs", "1");
	override_put(keys, "storage.store", "%s", store);
	override_put(keys, "storage.page_cache", kind == TRUTH_COLD ? "cold" : "keep");
	if (m->w->reader.odirect) {
		override_put(keys, "reader.odirect", "false");
		override_put(keys, "reader.access", "%s",
			     m->w->reader.access == ACCESS_FRAMEWORK ? "framework" : "native");
	}
	if (warm_up)
		override_put(keys, "train.computation_time", "0");
}

/* Its command, but for where its result goes. */
static void put_command(const struct table_maker *m, bool warm_up, struct str_list *out)
{
	struct str_list keys = {0}, places = {0};

	str_list_add(&places, xstrdup("-n"));
	str_list_add(&places, xasprintf("%lld", (long long)m->o->ranks));
	put_keys(m, m->kind, warm_up, &keys);
	runner_command(&m->o->base, "run", &places, &keys, out);
	str_list_release(&keys);
	str_list_release(&places);
}

static void put_generates(const struct table_maker *m, bool generates, struct str_list *command)
{
	override_put(command, "workflow.generate_data",
		     generates && !m->generated ? "true" : "false");
}

static int next_row(void *arg, struct runner_row *row, struct err *e)
{
	struct table_maker *m = arg;
	enum truth_kind k = m->next;

	(void)e;
	while (k < TRUTH_ROWS && m->t->row[k].why[0])
		k++;
	if (k == TRUTH_ROWS)
		return 0;
	m->kind = k;
	m->next = k + 1;
	put_command(m, false, &row->command);
	runner_key(&row->command, row->key); /* whoever generates the data */
	if (k == TRUTH_MEMORY)
		override_put(&row->command, "workflow.generate_data", "true");
	else
		put_generates(m, m->own_folder && k != TRUTH_WARM, &row->command);
	row->folder = path_join(m->o->folder, kinds[k].folder);
	row->about = json_object();
	json_put_text(row->about, "model", m->w->model.name ? m->w->model.name : "");
	json_put_text(row->about, "row", kinds[k].name);
	row->limit_s = ROW_S;
	row->late_counts = true;
	return 1;
}

/* Files are in the page cache once a run has read them. */
static int warm_up(struct table_maker *m, struct err *e)
{
	AUTO_FREE char *folder = path_join(m->o->folder, "warm-up");
	AUTO_FREE char *log = path_join(folder, "run.log");
	struct runner_child child = {.log = log, .limit_s = ROW_S, .stop = m->o->stop};
	struct str_list command = {0};
	int rc = remove_tree(folder, e);

	if (rc == 0)
		rc = file_mkdirs(folder, e);
	if (rc < 0)
		return rc;
	put_command(m, true, &command);
	put_generates(m, m->own_folder, &command);
	str_list_add(&command, xstrdup("-o"));
	str_list_add(&command, xstrdup(folder));
	rc = runner_help(&command, &child, e);
	m->generated = m->generated || rc == 0;
	remove_tree(folder, NULL);
	return rc == -ETIMEDOUT ? 0 : rc;
}

static int prepare_row(void *arg, struct runner_row *row, struct err *e)
{
	struct table_maker *m = arg;

	(void)row;
	if (m->o->tell)
		m->o->tell(m->o->arg, kinds[m->kind].name);
	return m->kind == TRUTH_WARM ? warm_up(m, e) : 0;
}

/* ---- a row from its result ---- */

/* Whether the page cache was as the row's name says. */
static void check_cache(struct truth_row *row, enum truth_kind kind, double cached)
{
	if (kind != TRUTH_COLD && kind != TRUTH_WARM)
		return;
	if (!isfinite(cached))
		str_append(row->note, sizeof(row->note),
			   "how much of the files was in the page cache is not known%s",
			   kind == TRUTH_COLD ? ", so they may not have been evicted" : "");
	else if (kind == TRUTH_COLD && cached > CACHED_COLD)
		str_append(row->note, sizeof(row->note),
			   "%.0f %% of the files were still in the page cache: they could not be "
			   "evicted (other programs use them, or this user may not)",
			   100 * cached);
	else if (kind == TRUTH_WARM && cached < CACHED_WARM)
		str_append(row->note, sizeof(row->note),
			   "only %.0f %% of the files were in the page cache", 100 * cached);
}

static void read_row(struct truth_row *row, enum truth_kind kind, const struct run_record *r)
{
	struct run_figures f;

	figures_find(&f, r);
	row->measured = true;
	run_name_of(&row->run, r);
	row->au = r->au.n ? r->au.mean : NAN;
	row->whole_au = f.whole_au;
	row->samples_per_s = f.whole_rate;
	row->returned_bytes = f.returned_bytes;
	row->fetched_bytes = f.fetched_bytes;
	row->device_bytes = f.device_bytes;
	row->cached_share = r->facts.cached_share;
	snprintf(row->cause, sizeof(row->cause), "%s",
		 f.cause != CAUSE_NONE ? cause_name(f.cause) : "unknown");
	snprintf(row->limit, sizeof(row->limit), "%s", f.limit);
	check_cache(row, kind, f.cached_first);
}

static void read_record(struct truth_row *row, enum truth_kind kind, const struct run_record *r,
			bool late)
{
	if (!r->broken && r->trained)
		read_row(row, kind, r);
	else if (late)
		snprintf(row->why, sizeof(row->why), "no epoch ended within %d minutes",
			 ROW_S / 60);
	else
		snprintf(row->why, sizeof(row->why), "the run left no result: %.900s",
			 r->broken ? r->broken : "it did not train");
	row->failed = !row->measured;
	if (row->measured && late)
		str_append(row->note, sizeof(row->note), "%sended after %d minutes",
			   row->note[0] ? "; " : "", ROW_S / 60);
}

static void read_result(struct truth_row *row, enum truth_kind kind, const char *folder, bool late)
{
	struct run_record r = {0};

	record_load(&r, folder);
	read_record(row, kind, &r, late);
	record_release(&r);
}

static int take_row(void *arg, const struct runner_row *made, struct err *e)
{
	struct table_maker *m = arg;
	struct truth_row *row = &m->t->row[m->kind];

	(void)e;
	m->generated = m->generated || (made->end == ROW_DONE && m->kind != TRUTH_MEMORY);
	if (made->end == ROW_FAILED) {
		snprintf(row->why, sizeof(row->why), "%s", made->why.text);
		/* what this workload cannot be read with, or this file system cannot do */
		row->failed = made->why.code != ERR_USAGE &&
			      !(m->kind == TRUTH_DIRECT && made->why.code == -EINVAL);
		return 0;
	}
	read_result(row, m->kind, made->folder, made->late);
	return 0;
}

/* A folder with a table is begun anew; one without has the rows of one that was interrupted. */
static int begin_folder(const struct table_maker *m, struct err *e)
{
	AUTO_FREE char *table = path_join(m->o->folder, TABLE_NAME);
	int rc = 0;

	if (!file_exists(table))
		return 0;
	for (int k = 0; rc == 0 && k < TRUTH_ROWS; k++) {
		AUTO_FREE char *folder = path_join(m->o->folder, kinds[k].folder);

		rc = remove_tree(folder, e);
	}
	return rc == 0 ? remove_tree(table, e) : rc;
}

static int make_rows(struct table_maker *m, struct err *e)
{
	const struct runner r = {.stop = m->o->stop,
				 .mark = STUDY_RUN_NAME,
				 .log = "run.log",
				 .next = next_row,
				 .prepare = prepare_row,
				 .take = take_row,
				 .arg = m};
	struct file_lock lock;
	int rc = runner_lock(&lock, m->o->folder, RUN_LOCK_NAME, "run", "-o", e);

	if (rc == 0)
		rc = begin_folder(m, e);
	if (rc == 0)
		rc = runner_run(&r, e);
	file_unlock(&lock);
	return rc;
}

/* ---- what cannot be ---- */

static bool memory_system(const struct table_maker *m, const struct dataset *d, char *name,
			  size_t name_size)
{
	struct file_system fs;

	if (!file_system_of_path(m->own_folder ? m->own_folder : d->folder, &fs) || !fs.memory)
		return false;
	snprintf(name, name_size, "%s", fs.name);
	return true;
}

/* Rows that the store or the file system rules out, with the reason; the others are left alone. */
static void rule_out(struct table_maker *m, const struct dataset *d)
{
	const struct store_facts *base = workload_base_store(m->w);
	char name[56];
	bool files = base->flags & STORE_HAS_FILES;
	bool memory = files && memory_system(m, d, name, sizeof(name));

	for (enum truth_kind k = TRUTH_COLD; k <= TRUTH_DIRECT; k++) {
		char *why = m->t->row[k].why;
		size_t size = sizeof(m->t->row[k].why);

		if (!files)
			snprintf(why, size,
				 "storage.store=%s keeps no files, so there is no page cache to "
				 "leave out or to fill",
				 m->w->storage.store);
		else if (memory && k != TRUTH_WARM)
			snprintf(why, size,
				 "'%s' is on %s, which is memory: there is no storage below the "
				 "page cache",
				 m->own_folder ? m->own_folder : d->folder, name);
	}
}

/* ---- the whole ---- */

static void know_nothing(struct truth_table *t)
{
	for (int k = 0; k < TRUTH_ROWS; k++)
		t->row[k].au = t->row[k].whole_au = t->row[k].samples_per_s =
			t->row[k].returned_bytes = t->row[k].fetched_bytes =
				t->row[k].device_bytes = t->row[k].cached_share = NAN;
}

int truth_table_run(struct truth_table *t, const struct workload *w,
		    const struct truth_table_options *o, struct err *e)
{
	struct table_maker m = {.t = t, .w = w, .o = o};
	struct dataset d = {0};
	int rc;

	*t = (struct truth_table){.target = 100 * w->metric.au};
	know_nothing(t);
	rc = dataset_init(&d, w, e);
	if (rc < 0)
		return rc;
	if (d.files[DATASET_TRAIN] == 0)
		rc = err_set(e, ERR_USAGE,
			     "dataset.num_files_train is 0: there is nothing to read");
	if (rc == 0) {
		choose_sample(&m, &d);
		choose_folder(&m, &d);
		rule_out(&m, &d);
	}
	if (rc == 0)
		rc = make_rows(&m, e);
	if (m.own_folder && remove_tree(m.own_folder, rc == 0 ? e : NULL) < 0 && rc == 0)
		rc = e->code;
	if (m.own_folder)
		rmdir(d.folder); /* it was made for this, or holds other files */
	free(m.own_folder);
	dataset_release(&d);
	return rc;
}

/* ---- renderings ---- */

static void cell(struct buf *out, int width, const char *fmt, double v)
{
	char text[32] = "-";

	if (isfinite(v)) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(text, sizeof(text), fmt, v);
#pragma GCC diagnostic pop
	}
	buf_say(out, " %*s", width, text);
}

static void bytes_cell(struct buf *out, double bytes)
{
	char text[32] = "-";

	if (isfinite(bytes))
		str_bytes(bytes, text, sizeof(text));
	buf_say(out, " %10s", text);
}

static void row_text(struct buf *out, const char *name, const struct truth_row *row)
{
	buf_say(out, "  %-9s", name);
	if (!row->measured) {
		buf_say(out, " %s\n", row->failed ? "failed" : "not available");
		return;
	}
	cell(out, 8, "%.1f", row->whole_au);
	cell(out, 8, "%.1f", row->au);
	cell(out, 10, "%.5g", row->samples_per_s);
	bytes_cell(out, row->returned_bytes);
	bytes_cell(out, row->fetched_bytes);
	bytes_cell(out, row->device_bytes);
	cell(out, 10, "%.0f %%", 100 * row->cached_share);
	buf_say(out, "  %s\n", row->cause);
}

/* What the rows say together; only what was measured. */
static void meaning_text(struct buf *to, const struct truth_table *t)
{
	struct buf lines[2] = {{0}};
	const struct truth_row *cold = &t->row[TRUTH_COLD], *warm = &t->row[TRUTH_WARM];
	const struct truth_row *memory = &t->row[TRUTH_MEMORY];
	double ratio = warm->samples_per_s / cold->samples_per_s;
	double most = memory->samples_per_s / cold->samples_per_s;

	if (cold->measured && warm->measured && isfinite(ratio) && ratio > 1.1)
		buf_printf(&lines[0],
			   "* With its files in the page cache this workload runs at %s times "
			   "the speed of the storage: a run that does not evict them first "
			   "measures memory.",
			   NUMBER(ratio, 3));
	else if (cold->measured && warm->measured && isfinite(ratio))
		buf_printf(&lines[0],
			   "* The page cache changes little here (%s times the speed of the "
			   "storage): %s.",
			   NUMBER(ratio, 3),
			   cold->whole_au >= 90 ? "the storage keeps up with the computation"
						: "something other than the storage limits both");
	if (cold->measured && memory->measured && isfinite(most))
		buf_printf(&lines[1],
			   "* With the dataset in its own memory this machine reaches %s times "
			   "the speed of the storage%s",
			   NUMBER(most, 3),
			   most > 1.1 ? ": no storage makes this workload faster here."
				      : ": a faster storage would not help.");
	for (int i = 0; i < 2; i++) {
		if (lines[i].len)
			buf_wrap(to, lines[i].data, 0, 2, COLUMNS);
		buf_release(&lines[i]);
	}
}

/* What each row is, why it is missing, and what limited it. */
static void rows_in_words(const struct truth_table *t, struct buf *out)
{
	buf_puts(out, "\n");
	for (int k = 0; k < TRUTH_ROWS; k++) {
		const struct truth_row *row = &t->row[k];

		buf_say(out, "  %-9s %s", kinds[k].name, kinds[k].title);
		if (!row->measured)
			buf_say(out, ".\n            %s: %s",
				row->failed ? "Failed" : "Not available", row->why);
		else if (row->note[0])
			buf_say(out, ".\n            But: %s", row->note);
		if (row->measured && row->limit[0])
			buf_say(out, ".\n            %s", row->limit);
		buf_putc(out, '\n');
	}
	buf_puts(out, "\n");
}

void truth_table_text(const struct truth_table *t, bool all, struct buf *out)
{
	char bytes[32];

	buf_say(out, "%llu", (unsigned long long)t->files);
	if (!t->whole)
		buf_say(out, " of %llu", (unsigned long long)t->files_of);
	buf_say(out, " training files%s, %s, one epoch of %llu steps of each rank.\n",
		t->own_data ? ", generated for this" : "",
		str_bytes(t->sample_bytes, bytes, sizeof(bytes)), (unsigned long long)t->steps);
	buf_puts(out, "  whole-run AU %   DLIO's  samples/s   returned    fetched     device from "
		      "cache  limited by\n");
	for (int k = 0; k < TRUTH_ROWS; k++)
		row_text(out, kinds[k].name, &t->row[k]);
	if (all)
		rows_in_words(t, out);
	for (int k = 0; !all && k < TRUTH_ROWS; k++) {
		const char *said = t->row[k].measured ? t->row[k].note : t->row[k].why;

		if (!said[0])
			continue;
		buf_say(out, "  %-9s ", kinds[k].name);
		buf_wrap(out, said, 12, 12, COLUMNS);
	}
	meaning_text(out, t);
}

static json_t *table_json(const struct truth_table *t)
{
	json_t *root = json_object(), *rows = json_array();

	json_put_mark(root);
	json_put_int(root, "files", t->files);
	json_put_int(root, "files_of_workload", t->files_of);
	json_put_int(root, "steps", t->steps);
	json_put_real(root, "sample_bytes", t->sample_bytes);
	for (int k = 0; k < TRUTH_ROWS; k++) {
		const struct truth_row *row = &t->row[k];
		json_t *o = json_object();

		json_put_text(o, "row", kinds[k].name);
		json_put_text(o, "reads_from", kinds[k].title);
		json_put_bool(o, "measured", row->measured);
		if (!row->measured) {
			json_put_bool(o, "failed", row->failed);
			json_put_text(o, "why", row->why);
			json_array_append_new(rows, o);
			continue;
		}
		json_put_text(o, "folder", kinds[k].folder);
		run_name_put(o, &row->run);
		json_put_text(o, "note", row->note[0] ? row->note : NULL);
		json_put_real(o, "au_percent", row->au);
		json_put_real(o, "whole_au_percent", row->whole_au);
		json_put_real(o, "throughput_samples_per_s", row->samples_per_s);
		json_put_real(o, "returned_bytes", row->returned_bytes);
		json_put_real(o, "fetched_bytes", row->fetched_bytes);
		json_put_real(o, "device_bytes", row->device_bytes);
		json_put_real(o, "page_cache_percent", 100 * row->cached_share);
		json_put_text(o, "cause", row->cause);
		json_put_text(o, "limit", row->limit);
		json_array_append_new(rows, o);
	}
	json_put(root, "rows", rows);
	return root;
}

int truth_table_write(const struct truth_table *t, const char *folder, struct err *e)
{
	return seal_write(table_json(t), folder, TABLE_NAME, e);
}

int truth_table_outcome(const struct truth_table *t, struct err *e)
{
	size_t measured = 0;

	for (int k = 0; k < TRUTH_ROWS; k++) {
		if (t->row[k].failed)
			return err_set(e, -EIO, "the row '%s' of the truth table failed: %.600s",
				       kinds[k].name, t->row[k].why);
		measured += t->row[k].measured;
	}
	return measured ? 0 : err_set(e, -EIO, "no row of the truth table could be measured");
}

/* ---- made again ---- */

static const double BYTES_SHARE = 0.05; /* of files that compress, or have heads */

struct again {
	struct truth_table t;
	const char *folder;
	const json_t *stated[TRUTH_ROWS]; /* of rows that no run is there for */
};

static void *begin_again(const json_t *stated, const char *folder)
{
	struct again *a = xcalloc(1, sizeof(*a));

	a->folder = folder;
	a->t.files = (uint64_t)json_integer_value(json_object_get(stated, "files"));
	a->t.files_of = (uint64_t)json_integer_value(json_object_get(stated, "files_of_workload"));
	a->t.steps = (uint64_t)json_integer_value(json_object_get(stated, "steps"));
	a->t.sample_bytes = derive_number(stated, "sample_bytes");
	know_nothing(&a->t);
	return a;
}

static bool was_late(const char *folder)
{
	json_t *mark = result_folder_json(folder, STUDY_RUN_NAME, NULL);
	bool late = json_is_true(json_object_get(mark, "late"));

	json_decref(mark);
	return late;
}

/* Of files of one size, those of the evaluation left out: no run of a table evaluates. */
static double train_bytes(const struct run_record *r)
{
	const struct part *dataset = record_part(r, F_RUN_DATASET);
	double train = figure(dataset, F_DATASET_TRAIN_FILES);

	return r->facts.data_bytes * train / (train + figure(dataset, F_DATASET_EVAL_FILES));
}

static void take_again(void *of, const json_t *row, struct run_record *r, struct derive *d)
{
	struct again *a = of;
	const char *name = derive_string(row, "row");
	int k = 0;

	while (k < TRUTH_ROWS && (!name || strcmp(kinds[k].name, name) != 0))
		k++;
	if (k == TRUTH_ROWS) {
		derive_holds(d, false, TABLE_NAME " has a row '%.40s', which no table has.",
			     name ? name : "");
		return;
	}
	if (!r) {
		a->stated[k] = row;
		return;
	}
	read_record(&a->t.row[k], (enum truth_kind)k, r, was_late(r->folder));
	run_name_stated(&a->t.row[k].run, row);
	if (!r->has_workload)
		return;
	derive_equal(d, (double)a->t.files, (double)r->workload.dataset.num_files_train,
		     "the configuration of its runs", TABLE_NAME " files");
	derive_equal(d, (double)a->t.steps,
		     floor((double)a->t.files / files_a_step(&r->workload, r->ranks)), "its runs",
		     TABLE_NAME " steps");
	derive_at_most(d, (double)a->t.files, (double)a->t.files_of, 0,
		       TABLE_NAME " files_of_workload", TABLE_NAME " files");
	if (!(r->workload.dataset.record_length_bytes_stdev > 0))
		derive_near(d, a->t.sample_bytes, train_bytes(r), BYTES_SHARE * train_bytes(r),
			    "the dataset of its runs", TABLE_NAME " sample_bytes");
}

static json_t *made_again(void *of, struct derive *d)
{
	struct again *a = of;
	json_t *made = table_json(&a->t), *rows = json_object_get(made, "rows");

	for (size_t k = 0; k < TRUTH_ROWS; k++) {
		AUTO_FREE char *folder = path_join(a->folder, kinds[k].folder);

		if (!a->stated[k])
			continue;
		derive_holds(d,
			     json_is_true(json_object_get(a->stated[k], "measured")) ||
				     record_check(folder, NULL) < 0,
			     TABLE_NAME " says that the row '%s' was not measured, but its run is "
					"in '%s'.",
			     kinds[k].name, kinds[k].folder);
		json_array_set(rows, k, (json_t *)(uintptr_t)a->stated[k]);
	}
	return made;
}

static void release_again(void *of)
{
	free(of);
}

const struct sums_ops sums_truth_table = {
	.file = TABLE_NAME,
	.list = "rows",
	.told = "how many files the workload has, and why a row was not measured",
	.begin = begin_again,
	.take = take_again,
	.made = made_again,
	.release = release_again,
};
