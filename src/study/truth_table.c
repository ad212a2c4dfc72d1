/* The truth table: the sample of files, the commands of the runs, and the rows from their results.
 */
#include "study/truth_table.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/say.h"
#include "base/str.h"
#include "conf/override.h"
#include "dataset/dataset.h"
#include "loader/loader.h"
#include "readback/record.h"
#include "readback/sides.h"
#include "result/json_out.h"
#include "base/file_system.h"
#include "base/child_log.h"
#include "base/remove_tree.h"

#define TICK_NS (NS_PER_S / 10)
#define GRACE_NS (15 * NS_PER_S)
#define ROW_NS (120 * NS_PER_S)
#define OWN_FOLDER "truth_table"
#define COLUMNS 100
#define WHY_SHORT 70 /* bytes of a reason in the table */

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
};

/* ---- the sample ---- */

static double bytes_a_file(const struct dataset *d)
{
	return (double)d->likely_bytes / (double)(d->files[DATASET_TRAIN] + d->files[DATASET_EVAL]);
}

/* Enough steps to leave what is read ahead behind, within what bytes and time allow. */
static void choose_sample(struct table_maker *m, const struct dataset *d)
{
	const struct workload *w = m->w;
	struct truth_table *t = m->t;
	const struct loader_ops *loader = loader_find(w->reader.data_loader);
	double a_step = (double)w->reader.batch_size * (double)m->o->ranks; /* samples */
	double files_a_step = a_step / (double)d->samples_per_file;
	double compute_s = time_dist_mean(&w->train.computation_time), size = bytes_a_file(d);
	uint64_t steps = STEPS_AIM, window = 0;
	uint32_t workers;

	if (loader)
		loader->window(w, &workers, &window);
	if (steps < 3 * window)
		steps = 3 * window;
	if (compute_s > 0 && (double)steps * compute_s > COMPUTE_MOST_S)
		steps = (uint64_t)(COMPUTE_MOST_S / compute_s);
	if ((double)steps * files_a_step * size > BYTES_MOST)
		steps = (uint64_t)(BYTES_MOST / size / files_a_step);
	steps = steps < STEPS_LEAST ? STEPS_LEAST : steps;
	t->files_of = d->files[DATASET_TRAIN];
	t->files = (uint64_t)ceil((double)steps * files_a_step);
	if (t->files >= t->files_of) {
		t->files = t->files_of;
		t->whole = true;
	}
	t->steps = (uint64_t)((double)t->files / files_a_step);
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

/* `value` as an override would have it: a number, a word, or quoted. */
static void put_key(struct str_list *a, const char *key, const char *value)
{
	str_list_add(a, xasprintf("++workload.%s=%s", key, value));
}

/* `warm_up`: the run that only fills the page cache. */
static void put_command(const struct table_maker *m, enum truth_kind kind, bool generates,
			bool warm_up, const char *folder, struct str_list *a)
{
	const struct truth_table_options *o = m->o;
	AUTO_FREE char *store = store_of(m, kind);
	char files[32];

	snprintf(files, sizeof(files), "%llu", (unsigned long long)m->t->files);
	str_list_add(a, xstrdup(o->program));
	str_list_add(a, xstrdup("run"));
	if (o->workload)
		str_list_add(a, xstrdup(o->workload));
	str_list_add(a, xstrdup("-q"));
	str_list_add(a, xstrdup("-n"));
	str_list_add(a, xasprintf("%lld", (long long)o->ranks));
	if (o->config_dir) {
		str_list_add(a, xstrdup("--config-dir"));
		str_list_add(a, xstrdup(o->config_dir));
	}
	for (size_t i = 0; i < o->override_count; i++)
		str_list_add(a, xstrdup(o->overrides[i]));
	put_key(a, "dataset.num_files_train", files);
	put_key(a, "dataset.keep_files", "true");
	if (m->own_folder && kind != TRUTH_MEMORY) {
		AUTO_FREE char *quoted = override_quote(m->own_folder);

		put_key(a, "dataset.data_folder", quoted);
	}
	put_key(a, "workflow.generate_data", generates ? "true" : "false");
	put_key(a, "workflow.train", "true");
	put_key(a, "workflow.evaluation", "false");
	put_key(a, "workflow.checkpoint", "false");
	put_key(a, "train.epochs", "1");
	put_key(a, "storage.store", store);
	put_key(a, "storage.page_cache", kind == TRUTH_COLD ? "cold" : "keep");
	if (m->w->reader.odirect) {
		put_key(a, "reader.odirect", "false");
		put_key(a, "reader.access",
			m->w->reader.access == ACCESS_FRAMEWORK ? "framework" : "native");
	}
	if (warm_up)
		put_key(a, "train.computation_time", "0");
	str_list_add(a, xstrdup("-o"));
	str_list_add(a, xstrdup(folder));
}

/* 0; ERR_CANCELED; ERR_USAGE: the program refused; -EIO: it failed; `why` says so. *late: it was
 * ended because it took too long. */
static int run_child(const struct table_maker *m, const struct str_list *command, const char *log,
		     bool *late, char *why, size_t why_size, struct err *e)
{
	const char **argv = xcalloc(command->n + 1, sizeof(*argv));
	int64_t begin = clock_now_ns();
	struct child c;
	char outcome[128];
	int rc;

	for (size_t i = 0; i < command->n; i++)
		argv[i] = command->v[i];
	rc = child_start(&c, argv, log, e);
	free(argv);
	if (rc < 0) {
		snprintf(why, why_size, "%s", e->text);
		return -EIO;
	}
	while (!child_wait(&c, TICK_NS)) {
		if (stop_is_set(m->o->stop)) {
			child_end(&c, GRACE_NS, m->o->stop);
			return err_set(e, ERR_CANCELED, "interrupted");
		}
		*late = clock_now_ns() - begin > ROW_NS;
		if (*late) {
			child_end(&c, GRACE_NS, m->o->stop);
			break;
		}
	}
	if (child_outcome(&c, outcome, sizeof(outcome)) == 0 || *late)
		return 0;
	child_log_reason(log, outcome, log, why, why_size);
	return WIFEXITED(c.status) && WEXITSTATUS(c.status) == 2 ? ERR_USAGE : -EIO;
}

static int run_into(const struct table_maker *m, enum truth_kind kind, bool generates, bool warm_up,
		    const char *folder, bool *late, char *why, size_t why_size, struct err *e)
{
	AUTO_FREE char *log = path_join(folder, "run.log");
	struct str_list command = {0};
	int rc = remove_tree(folder, e);

	*late = false;
	if (rc == 0)
		rc = file_mkdirs(folder, e);
	if (rc < 0) {
		snprintf(why, why_size, "%s", e->text);
		return rc;
	}
	put_command(m, kind, generates, warm_up, folder, &command);
	rc = run_child(m, &command, log, late, why, why_size, e);
	str_list_release(&command);
	return rc;
}

/* ---- a row from its result ---- */

static double number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static double ledger_bytes(const json_t *result, const char *key)
{
	const json_t *line, *ledger = json_object_get(result, "ledger");
	size_t i;

	json_array_foreach(ledger, i, line)
	{
		const char *name = json_string_value(json_object_get(line, "key"));

		if (name && strcmp(name, key) == 0)
			return number(line, "bytes");
	}
	return NAN;
}

/* Whether the page cache was as the row's name says. */
static void check_cache(struct truth_row *row, enum truth_kind kind, const json_t *training)
{
	const json_t *cache = json_object_get(
		json_array_get(json_object_get(training, "epochs"), 0), "page_cache");
	double looked = number(cache, "bytes_looked_at");
	double cached = number(cache, "cached_at_start_bytes") / looked;

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
	const json_t *training = json_object_get(r->result, "training");
	const json_t *limit = json_object_get(r->result, "limit");
	const char *cause = json_string_value(json_object_get(limit, "cause"));
	const char *text = json_string_value(json_object_get(limit, "text"));

	row->measured = true;
	row->au = r->au.n ? r->au.mean : NAN;
	row->whole_au = number(training, "whole_run_au_percent");
	row->samples_per_s = number(training, "whole_run_samples_per_s");
	row->returned_bytes = number(training, "returned_bytes");
	row->fetched_bytes = ledger_bytes(r->result, "process_fetched");
	row->device_bytes = ledger_bytes(r->result, "device");
	row->cached_share = sides_cached_share(r);
	snprintf(row->cause, sizeof(row->cause), "%s", cause ? cause : "unknown");
	snprintf(row->limit, sizeof(row->limit), "%s", text ? text : "");
	check_cache(row, kind, training);
}

static void read_result(struct truth_row *row, enum truth_kind kind, const char *folder, bool late)
{
	struct records all;
	struct err e = {0};

	if (records_load(&all, &folder, 1, &e) == 0 && all.n == 1 && all.v[0].trained)
		read_row(row, kind, &all.v[0]);
	else
		snprintf(row->why, sizeof(row->why), "%s%.900s",
			 late ? "no epoch ended within 2 minutes" : "the run left no result: ",
			 late                            ? ""
			 : all.n == 1 && all.v[0].broken ? all.v[0].broken
							 : e.text);
	row->failed = !row->measured;
	if (row->measured && late)
		str_append(row->note, sizeof(row->note), "%sended after 2 minutes",
			   row->note[0] ? "; " : "");
	records_release(&all);
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

static int measure_row(struct table_maker *m, enum truth_kind kind, bool *generated, struct err *e)
{
	struct truth_row *row = &m->t->row[kind];
	AUTO_FREE char *folder = path_join(m->o->folder, kinds[kind].folder);
	AUTO_FREE char *warm_up = path_join(m->o->folder, "warm-up");
	bool late = false, generates = kind == TRUTH_MEMORY || (m->own_folder && !*generated);
	int rc = 0;

	if (row->why[0])
		return 0;
	if (m->o->tell)
		m->o->tell(m->o->arg, kinds[kind].name);
	if (kind == TRUTH_WARM) {
		rc = run_into(m, kind, generates, true, warm_up, &late, row->why, sizeof(row->why),
			      e);
		*generated = *generated || rc == 0;
		generates = false;
		remove_tree(warm_up, NULL);
	}
	if (rc == 0)
		rc = run_into(m, kind, generates, false, folder, &late, row->why, sizeof(row->why),
			      e);
	if (rc == ERR_CANCELED)
		return rc;
	*generated = *generated || (rc == 0 && kind != TRUTH_MEMORY);
	if (rc == 0)
		read_result(row, kind, folder, late);
	else /* what this workload cannot be read with, or this file system cannot do */
		row->failed =
			rc != ERR_USAGE && !(kind == TRUTH_DIRECT && strstr(row->why, "O_DIRECT"));
	return 0;
}

int truth_table_run(struct truth_table *t, const struct workload *w,
		    const struct truth_table_options *o, struct err *e)
{
	struct table_maker m = {.t = t, .w = w, .o = o};
	struct dataset d = {0};
	bool generated = false;
	int rc;

	*t = (struct truth_table){.target = 100 * w->metric.au};
	for (int k = 0; k < TRUTH_ROWS; k++)
		t->row[k].au = t->row[k].whole_au = t->row[k].samples_per_s =
			t->row[k].returned_bytes = t->row[k].fetched_bytes =
				t->row[k].device_bytes = t->row[k].cached_share = NAN;
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
	for (enum truth_kind k = TRUTH_COLD; rc == 0 && k < TRUTH_ROWS; k++)
		rc = measure_row(&m, k, &generated, e);
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
		size_t n = strcspn(row->why, ";\n");

		/* one line; the whole of it is below, and in truth_table.json */
		buf_say(out, " %s: %.*s\n", row->failed ? "failed" : "not available",
			(int)(n > WHY_SHORT ? WHY_SHORT : n), row->why);
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
			   "* With its files in the page cache this workload runs at %.3g times "
			   "the speed of the storage: a run that does not evict them first "
			   "measures memory.",
			   ratio);
	else if (cold->measured && warm->measured && isfinite(ratio))
		buf_printf(&lines[0],
			   "* The page cache changes little here (%.3g times the speed of the "
			   "storage): %s.",
			   ratio,
			   cold->whole_au >= 90 ? "the storage keeps up with the computation"
						: "something other than the storage limits both");
	if (cold->measured && memory->measured && isfinite(most))
		buf_printf(&lines[1],
			   "* With the dataset in its own memory this machine reaches %.3g times "
			   "the speed of the storage%s",
			   most,
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
	for (int k = 0; !all && k < TRUTH_ROWS; k++)
		if (t->row[k].measured && t->row[k].note[0])
			buf_say(out, "  %-9s but: %s\n", kinds[k].name, t->row[k].note);
	meaning_text(out, t);
}

static json_t *table_json(const struct truth_table *t)
{
	json_t *root = json_object(), *rows = json_array();

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
	return json_write(table_json(t), folder, "truth_table.json", e);
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
