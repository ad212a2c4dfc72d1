/* Problems of a study, found and put together. */
#include "study/study.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/file.h"
#include "os/file_system.h"
#include "base/say.h"
#include "base/str.h"
#include "base/vector.h"
#include "os/sysinfo.h"

/* ---- items ---- */

static struct forecast_item *find_item(struct forecast *f, enum forecast_kind kind,
				       const char *text)
{
	for (size_t i = 0; i < f->items; i++)
		if (f->item[i].kind == kind && strcmp(f->item[i].text, text) == 0)
			return &f->item[i];
	return NULL;
}

/* `line` 0: of the whole study. */
__attribute__((format(printf, 4, 5))) static void add_item(struct forecast *f,
							   enum forecast_kind kind, size_t line,
							   const char *fmt, ...)
{
	struct forecast_item *item;
	char text[2 * ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	item = find_item(f, kind, text);
	if (!item) {
		item = VECTOR_ADD(f->item, f->items, f->item_room);
		item->kind = kind;
		item->text = xstrdup(text);
	}
	if (line == 0 || (item->lines && item->line[item->lines - 1] == line))
		return;
	VECTOR_PUSH(item->line, item->lines, item->room, line);
}

static int by_line(const void *a, const void *b)
{
	const size_t *x = a, *y = b;

	return ORDER(*x, *y);
}

static int by_kind(const void *a, const void *b)
{
	const struct forecast_item *x = a, *y = b;
	size_t i = x->lines ? x->line[0] : 0, k = y->lines ? y->line[0] : 0;

	return ORDER(x->kind, y->kind) ?: ORDER(i, k);
}

/* ---- disks ---- */

static double free_bytes(const char *path)
{
	uint64_t bytes, files;

	if (!file_system_room(path, &bytes, &files) || bytes == UINT64_MAX)
		return INFINITY;
	return (double)bytes;
}

static struct forecast_place *place_of(struct forecast *f, const char *path)
{
	struct forecast_place *place;
	struct file_system fs;
	struct stat st = {0};
	AUTO_FREE char *nearest = path_nearest(path, &st);

	for (size_t i = 0; i < f->places; i++)
		if (f->place[i].device == (uint64_t)st.st_dev)
			return &f->place[i];
	place = VECTOR_ADD(f->place, f->places, f->place_room);
	place->device = (uint64_t)st.st_dev;
	place->path = path_absolute(path);
	place->free_bytes = nearest ? free_bytes(nearest) : INFINITY;
	snprintf(place->file_system, sizeof(place->file_system), "%s",
		 file_system_of_path(path, &fs) ? fs.name : "unknown file system");
	return place;
}

static void check_space(struct forecast *f, size_t line, struct forecast_place *place, double data,
			double checkpoints)
{
	double need = place->kept_bytes + data + checkpoints;
	char all[32], have[32], saved[32], what[64] = "";

	RAISE(place->most_bytes, need);
	if (need <= place->free_bytes)
		return;
	str_bytes(need, all, sizeof(all));
	str_bytes(place->free_bytes, have, sizeof(have));
	if (checkpoints > 0)
		snprintf(what, sizeof(what), ", %s of it for checkpoints",
			 str_bytes(checkpoints, saved, sizeof(saved)));
	add_item(f, FORECAST_FAILS, line, "%s needed, %s free in '%s' (%s)%s", all, have,
		 place->path, place->file_system, what);
}

static const char *data_place(const struct study_plan *p, const struct study_dataset *d)
{
	return d->given ? d->folder : p->options->scratch;
}

static double checkpoint_need(const struct experiment *x)
{
	return x->checkpoint_folder
		       ? (double)x->foreseen.checkpoint_bytes * (double)x->foreseen.checkpoints_kept
		       : 0;
}

/* What a row puts on disks, while what stays from the rows before is there. `fresh`: it is the
 * first to use its dataset. */
static void foresee_space(const struct study_plan *p, struct forecast *f,
			  const struct experiment *x, bool fresh)
{
	const struct study_dataset *d = x->dataset == SIZE_MAX ? NULL : &p->dataset[x->dataset];
	size_t line = p->design.row[x->row].line;
	double data = d && !d->there ? (double)d->bytes : 0, checkpoints = checkpoint_need(x);
	struct stat st;
	size_t first, second;

	/* kept by a study before */
	if (data > 0 && !d->given && stat(d->folder, &st) == 0)
		data = 0;
	if (fresh)
		f->generate_bytes += data;
	if (!d && checkpoints <= 0)
		return;
	first = (size_t)(place_of(f, d ? data_place(p, d) : x->checkpoint_folder) - f->place);
	second = checkpoints > 0 ? (size_t)(place_of(f, x->checkpoint_folder) - f->place) : first;
	if (first == second) {
		check_space(f, line, &f->place[first], data, checkpoints);
	} else {
		check_space(f, line, &f->place[first], data, 0);
		check_space(f, line, &f->place[second], 0, checkpoints);
	}
}

/* What stays of a dataset when its last run has ended. */
static void keep_dataset(const struct study_plan *p, struct forecast *f, size_t dataset)
{
	const struct study_dataset *d = &p->dataset[dataset];

	if (!d->there && (d->given || p->options->keep_data))
		place_of(f, data_place(p, d))->kept_bytes += (double)d->bytes;
}

/* ---- a row ---- */

static void foresee_steps(struct forecast *f, const struct experiment *x, size_t line)
{
	const struct run_foresight *s = &x->foreseen;
	const char *processes = x->processes == 1 ? "process" : "processes";

	if (s->steps && s->steps < s->needed)
		add_item(f, FORECAST_DOUBT, line,
			 "%lld %s: %llu step%s an epoch, steady needs %llu",
			 (long long)x->processes, processes, (unsigned long long)s->steps,
			 s->steps == 1 ? "" : "s", (unsigned long long)s->needed);
	if (s->eval_steps && s->eval_steps < s->eval_needed)
		add_item(f, FORECAST_DOUBT, line,
			 "%lld %s: %llu step%s in each evaluation, the verdict evaluation needs "
			 "%llu",
			 (long long)x->processes, processes, (unsigned long long)s->eval_steps,
			 s->eval_steps == 1 ? "" : "s", (unsigned long long)s->eval_needed);
	if (x->files && s->steps && x->files < (uint64_t)x->processes)
		add_item(f, FORECAST_DOUBT, line,
			 "%llu training file%s for %lld processes: several read the same file",
			 (unsigned long long)x->files, x->files == 1 ? "" : "s",
			 (long long)x->processes);
	if (x->checkpoints && s->steps && s->checkpoints == 0 && !s->checkpoints_by_time)
		add_item(f, FORECAST_DOUBT, line,
			 "workflow.checkpoint is on, but no checkpoint is due in %u epoch%s "
			 "(checkpoint.checkpoint_after_epoch, epochs_between_checkpoints, "
			 "steps_between_checkpoints)",
			 s->epochs, s->epochs == 1 ? "" : "s");
}

static void foresee_cache(struct forecast *f, const struct experiment *x, size_t line)
{
	const struct study_cache *c = &x->cache;
	const char *word = workload_page_cache_names[c->value];

	if (!c->why[0])
		return;
	if (c->impossible)
		add_item(f, FORECAST_NOTE, line, "the page cache is left alone: %s", c->why);
	else
		add_item(f, FORECAST_NOTE, line, "storage.page_cache is %s (%s)", word, c->why);
}

static void foresee_folder(const struct study_plan *p, struct forecast *f,
			   const struct experiment *x, size_t line)
{
	AUTO_FREE char *scratch = path_absolute(p->options->scratch);
	struct stat here = {0}, there = {0};
	struct file_system fs;
	char name[56] = "another file system";

	if (x->dataset != SIZE_MAX && p->dataset[x->dataset].given) {
		const struct study_dataset *d = &p->dataset[x->dataset];

		add_item(f, FORECAST_NOTE, line, "the dataset in dataset.data_folder '%s' is %s",
			 d->folder, d->there ? "read" : "generated there and kept");
	}
	if (!x->unused_folder)
		return;
	AUTO_FREE char *a = path_nearest(scratch, &here);
	AUTO_FREE char *b = path_nearest(x->unused_folder, &there);

	if (a && b && here.st_dev != there.st_dev) {
		if (file_system_of_path(x->unused_folder, &fs))
			snprintf(name, sizeof(name), "%s", fs.name);
		add_item(f, FORECAST_DOUBT, line,
			 "dataset.data_folder of the workload, '%s' (%s), is not used: this study "
			 "measures the file system of '%s', where it generates its datasets "
			 "(--scratch)",
			 x->unused_folder, name, scratch);
	} else {
		add_item(f, FORECAST_NOTE, line,
			 "dataset.data_folder of the workload is not used: the study generates its "
			 "datasets in '%s' (--scratch); to read files that are there, give "
			 "dataset.data_folder in the design or on the command line",
			 scratch);
	}
}

/* Under a launcher the processes may be on many hosts. */
static void foresee_memory(const struct study_plan *p, struct forecast *f,
			   const struct experiment *x, size_t line)
{
	if (p->options->launcher != LAUNCH_LOCAL)
		return;
	if (x->memory_why.code)
		add_item(f, FORECAST_FAILS, line, "%s", x->memory_why.text);
	RAISE(f->memory_bytes, (double)x->foreseen.memory_bytes);
}

static void foresee_row(const struct study_plan *p, struct forecast *f, const struct experiment *x)
{
	size_t line = p->design.row[x->row].line;

	f->pending++;
	if (x->why.code) {
		add_item(f, FORECAST_FAILS, line, "%s", x->why.text);
		return;
	}
	foresee_steps(f, x, line);
	for (size_t i = 0; i < x->warnings.n; i++)
		add_item(f, FORECAST_WARNING, line, "%s", x->warnings.v[i]);
	foresee_cache(f, x, line);
	foresee_folder(p, f, x, line);
	if (x->own_folder)
		add_item(f, FORECAST_NOTE, line, "checkpoints stay in '%s'", x->checkpoint_folder);
	if (!x->target_set && x->foreseen.train_steps)
		add_item(f, FORECAST_NOTE, line,
			 "metric.au is not set: the target is the default, 90 %%");
	foresee_memory(p, f, x, line);
}

/* Rows that a version before ran with another page cache. */
static void foresee_mixture(const struct study_plan *p, struct forecast *f)
{
	for (size_t i = 0; i < p->experiments; i++) {
		const struct experiment *x = &p->experiment[i];
		uint64_t key;

		if (x->key_before && p->design.row[x->row].state == DESIGN_DONE &&
		    run_mark_key(x->folder, &key, NULL) == 0 && key == x->key_before)
			add_item(f, FORECAST_DOUBT, p->design.row[x->row].line,
				 "done by an earlier version, whose studies evicted the page cache "
				 "before the first epoch only; pending rows are cold in every "
				 "epoch. To compare them, set these rows back to N, or add "
				 "storage.page_cache=cold to the command");
	}
}

void study_forecast(const struct study_plan *p, struct forecast *f)
{
	struct err e = {0};
	size_t last = SIZE_MAX;

	*f = (struct forecast){.available_bytes = (double)host_available_bytes()};
	for (size_t i = 0; i < p->design.unread.n; i++)
		add_item(f, FORECAST_DOUBT, p->design.header + 1,
			 "the column '%s' has no effect: write %s=VALUE in the column 'overrides'",
			 p->design.unread.v[i], p->design.unread.v[i]);
	if (forecast_launcher(p->options, &e) < 0)
		add_item(f, FORECAST_FAILS, 0, "%s", e.text);
	for (size_t i = 0; i < p->experiments; i++) {
		const struct experiment *x = &p->experiment[i];

		if (!study_is_pending(p, x))
			continue;
		if (x->why.code == 0) {
			if (last != SIZE_MAX && last != x->dataset)
				keep_dataset(p, f, last);
			foresee_space(p, f, x, last != x->dataset);
			last = x->dataset;
			f->read_bytes += (double)x->foreseen.read_bytes;
		}
		if (x->repeat == 1)
			foresee_row(p, f, x);
	}
	if (f->pending)
		foresee_mixture(p, f);
	for (size_t i = 0; i < f->items; i++)
		if (f->item[i].lines)
			qsort(f->item[i].line, f->item[i].lines, sizeof(*f->item[i].line), by_line);
	if (f->items)
		qsort(f->item, f->items, sizeof(*f->item), by_kind);
}

void forecast_release(struct forecast *f)
{
	for (size_t i = 0; i < f->items; i++) {
		free(f->item[i].text);
		free(f->item[i].line);
	}
	for (size_t i = 0; i < f->places; i++)
		free(f->place[i].path);
	free(f->item);
	free(f->place);
	*f = (struct forecast){0};
}

int forecast_launcher(const struct study_options *o, struct err *e)
{
	const char *name = study_launcher_names[o->launcher], *path = getenv("PATH");

	if (o->launcher == LAUNCH_LOCAL || o->modules.n)
		return 0;
	for (const char *at = path; at && *at;) {
		size_t n = strcspn(at, ":");
		AUTO_FREE char *folder = xstrndup(at, n);
		AUTO_FREE char *file = path_join(n ? folder : ".", name);

		if (access(file, X_OK) == 0)
			return 0;
		at += n + (at[n] == ':');
	}
	return err_set(e, ERR_USAGE,
		       "--launcher %s: there is no program '%s' in PATH; install it, or load the "
		       "module that provides it with --module",
		       name, name);
}

/* ---- words ---- */

static void put_lines(const struct forecast *f, const struct forecast_item *item, struct buf *out)
{
	if (item->lines == 0)
		return;
	if (item->lines > 1 && item->lines == f->pending) {
		buf_say(out, "all %zu rows: ", f->pending);
		return;
	}
	buf_puts(out, item->lines == 1 ? "line " : "lines ");
	for (size_t i = 0; i < item->lines; i++) {
		size_t first = i;

		while (i + 1 < item->lines && item->line[i + 1] == item->line[i] + 1)
			i++;
		buf_say(out, "%s%zu", first ? ", " : "", item->line[first]);
		if (i > first)
			buf_say(out, "%s%zu", i > first + 1 ? "-" : ", ", item->line[i]);
	}
	buf_puts(out, ": ");
}

void forecast_text(const struct forecast *f, enum forecast_kind last, size_t most, struct buf *out)
{
	static const char *const heads[FORECAST_KINDS] = {
		"Will fail:", "Will not measure what it should:", "Warnings of the workloads:",
		"Notes:"};
	size_t put = 0, left = 0;

	for (int kind = 0; kind <= (int)last; kind++) {
		bool any = false;

		for (size_t i = 0; i < f->items; i++) {
			if ((int)f->item[i].kind != kind)
				continue;
			if (most && put == most) {
				left++;
				continue;
			}
			if (!any)
				buf_say(out, "%s\n", heads[kind]);
			any = true;
			buf_puts(out, "  ");
			put_lines(f, &f->item[i], out);
			buf_say(out, "%s\n", f->item[i].text);
			put++;
		}
	}
	if (left)
		buf_say(out, "  and %zu more: see --dry-run\n", left);
}

void forecast_needs_text(const struct forecast *f, struct buf *out)
{
	char a[32], b[32];

	for (size_t i = 0; i < f->places; i++) {
		const struct forecast_place *place = &f->place[i];

		if (!(place->most_bytes > 0))
			continue;
		buf_say(out, "disk: at most %s at a time in '%s' (%s)",
			str_bytes(place->most_bytes, a, sizeof(a)), place->path,
			place->file_system);
		if (isfinite(place->free_bytes))
			buf_say(out, ", %s free%s", str_bytes(place->free_bytes, b, sizeof(b)),
				place->most_bytes > place->free_bytes ? " (not enough)" : "");
		else
			buf_puts(out, ", free space not known");
		buf_putc(out, '\n');
	}
	if (f->memory_bytes > 0)
		buf_say(out, "memory: at most %s a run, %s available\n",
			str_bytes(f->memory_bytes, a, sizeof(a)),
			str_bytes(f->available_bytes, b, sizeof(b)));
}
