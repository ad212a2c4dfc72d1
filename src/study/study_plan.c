/* From a design to runs: names, datasets and order. */
#include "study/study_plan.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/str.h"
#include "conf/node.h"
#include "dataset/dataset.h"
#include "base/file_system.h"
#include "study/state.h"
#include "workload/workload.h"

const char *const study_launcher_names[] = {"local", "mpirun", "srun", NULL};

/* FNV-1a (Fowler, Noll, Vo), 64 bit. */
static uint64_t hash_text(uint64_t h, const char *text)
{
	for (const char *p = text;; p++) {
		h = (h ^ (unsigned char)*p) * 0x100000001b3ull;
		if (!*p)
			return h;
	}
}

#define HASH_START 0xcbf29ce484222325ull

void study_folder_name(const char *text, char *out, size_t out_size)
{
	size_t n = 0, room = out_size - 18;
	bool changed = false;

	for (const char *p = text; *p; p++) {
		bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
			     (*p >= '0' && *p <= '9') || strchr("._+-=", *p);

		if (n == room) {
			changed = true;
			break;
		}
		/* no name begins with a dot: neither "..", nor hidden */
		if (*p == '.' && n == 0)
			plain = false;
		out[n++] = plain ? *p : '_';
		changed = changed || !plain;
	}
	out[n] = '\0';
	if (changed || n == 0)
		snprintf(out + n, 18, "-%08" PRIx64, hash_text(HASH_START, text) & 0xffffffff);
}

/* What "MODEL:text" says to a model: the text, or NULL when it is another model's. Without "MODEL:"
 * in front it is for all. */
static const char *for_model(const char *text, const char *model)
{
	size_t n = strcspn(text, ":=");

	if (text[n] != ':')
		return text;
	return strlen(model) == n && strncmp(text, model, n) == 0 ? text + n + 1 : NULL;
}

/* "batch_size_14" from "++workload.reader.batch_size=14". */
static void append_override(const char *override, struct buf *out)
{
	const char *equal = strchr(override, '=');
	size_t n = equal ? (size_t)(equal - override) : strlen(override);
	size_t begin = n;

	while (begin > 0 && !strchr(".+~", override[begin - 1]))
		begin--;
	buf_putc(out, '_');
	buf_append(out, override + begin, n - begin);
	if (equal)
		buf_printf(out, "_%s", equal + 1);
}

static void name_experiment(struct experiment *x, const struct design_row *row)
{
	struct buf text = {0};

	buf_printf(&text, "%lld", (long long)row->processes);
	for (size_t i = 0; i < row->overrides.n; i++)
		append_override(row->overrides.v[i], &text);
	study_folder_name(text.data, x->name, sizeof(x->name));
	study_folder_name(path_basename(row->model), x->model_folder, sizeof(x->model_folder));
	buf_release(&text);
}

/* Rows that would share a folder - the same factors, say, with other epochs - are told apart by
 * their line. */
static void part_names(struct study_plan *p)
{
	for (size_t i = 0; i < p->experiments; i++) {
		struct experiment *x = &p->experiment[i];

		for (size_t k = 0; k < i; k++) {
			const struct experiment *o = &p->experiment[k];

			if (o->row == x->row || strcmp(o->name, x->name) != 0 ||
			    strcmp(o->model_folder, x->model_folder) != 0)
				continue;
			size_t n = strlen(x->name);

			snprintf(x->name + n, sizeof(x->name) - n, "_line_%zu",
				 p->design.row[x->row].line);
			break;
		}
	}
}

/* ---- workloads ---- */

static int load_workload(const struct study_plan *p, const struct experiment *x, struct workload *w,
			 bool inspect, struct err *e)
{
	struct workload_request req = {
		.workload = x->model,
		.overrides = (const char *const *)x->overrides.v,
		.override_count = x->overrides.n,
		.config_dir = p->options->config_dir,
		.ranks = x->processes,
		.inspect = inspect,
	};

	return workload_load(w, &req, e);
}

/* The row of the number in "key=factor", and the factor; NULL: it is not of that form. */
static const struct opt *scaled_key(const char *text, double *factor)
{
	const char *equal = strchr(text, '=');
	const char *bare = str_starts(text, "workload.") ? text + strlen("workload.") : text;
	AUTO_FREE char *key = equal && equal > bare ? xstrndup(bare, (size_t)(equal - bare)) : NULL;
	const struct opt *row = key ? opt_find(workload_rows, workload_row_count, key) : NULL;

	if (!row || !str_to_f64(equal + 1, factor) || !(*factor > 0) || !isfinite(*factor))
		return NULL;
	return row;
}

/* What is wrong with an option is an error of the command, before any row is marked as failed. */
static int check_scales(const struct study_options *o, struct err *e)
{
	double factor = 0;

	for (size_t i = 0; i < o->scales.n; i++) {
		const char *text = o->scales.v[i];
		size_t model = strcspn(text, ":=");

		if (!scaled_key(text[model] == ':' ? text + model + 1 : text, &factor))
			return err_set(e, ERR_USAGE,
				       "--scale: '%s' is not the key of a number and a factor "
				       "above 0 (dataset.num_files_train=0.1)",
				       text);
	}
	return 0;
}

/* "key=factor" as an override with the number that the key has so far, times the factor. */
static int apply_scale(struct study_plan *p, struct experiment *x, const char *text, struct err *e)
{
	AUTO_FREE char *value = NULL;
	struct workload w = {0};
	double factor = 0, v;
	const struct opt *row = scaled_key(text, &factor);
	int rc;

	assert(row); /* check_scales came first */
	rc = load_workload(p, x, &w, true, e);
	if (rc == 0)
		value = opt_get_text(row, &w);
	workload_release(&w);
	if (rc < 0)
		return rc;
	if ((row->type != OPT_I64 && row->type != OPT_F64) || !str_to_f64(value, &v))
		return err_set(e, ERR_USAGE, "--scale: %s is '%s', which is not a number", row->key,
			       value);
	v *= factor;
	/* a count of 1 or more stays one; lengths are in whole bytes too */
	v = v >= 1 || row->type == OPT_I64 ? floor(v) : v;
	if (v < 1 && factor < 1 && row->type == OPT_I64)
		v = 1;
	str_list_add(&x->overrides, xasprintf("++workload.%s=%.15g", row->key, v));
	return 0;
}

static uint64_t hash_list(uint64_t h, const struct str_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		h = hash_text(h, list->v[i]);
	return hash_text(h, ""); /* so that texts do not move from one list into the next */
}

static uint64_t config_of(const struct workload *w)
{
	const struct node *n = node_path(w->tree, "workload");
	struct buf text = {0};
	uint64_t h;

	yaml_emit(n ? n : w->tree, &text);
	h = hash_text(HASH_START, text.data ? text.data : "");
	buf_release(&text);
	return h;
}

/* Neither its line nor its neighbours in the design say which run it is, but all that it is made
 * of: the workload with what its file says now, and how and where it runs. */
static uint64_t key_of(const struct study_plan *p, const struct experiment *x)
{
	const struct study_options *o = p->options;
	AUTO_FREE char *scratch = path_absolute(o->scratch);
	AUTO_FREE char *text = xasprintf("%lld %u %s %016" PRIx64, (long long)x->processes,
					 x->repeat, study_launcher_names[o->launcher], x->config);
	uint64_t h = hash_text(hash_text(HASH_START, x->model), text);

	h = hash_text(h, scratch);
	h = hash_list(h, &x->overrides);
	h = hash_list(h, &o->launcher_args);
	h = hash_list(h, &o->modules);
	return x->why.code ? hash_text(h, x->why.text) : h;
}

static size_t share_dataset(struct study_plan *p, size_t index, const struct dataset *d)
{
	struct experiment *x = &p->experiment[index];
	struct study_dataset *s;
	char text[128];
	uint64_t key;

	snprintf(text, sizeof(text), "%016" PRIx64 " %" PRIu64 " %" PRIu64, d->config_hash,
		 d->files[DATASET_TRAIN], d->files[DATASET_EVAL]);
	key = hash_text(HASH_START, text);
	for (size_t i = 0; i < p->datasets; i++) {
		if (p->dataset[i].key != key || strcmp(p->dataset[i].model, x->model) != 0)
			continue;
		if (p->dataset[i].processes < x->processes)
			p->dataset[i].processes = x->processes;
		return i;
	}
	p->dataset = xrealloc(p->dataset, (p->datasets + 1) * sizeof(*p->dataset));
	s = &p->dataset[p->datasets++];
	*s = (struct study_dataset){
		.model = xstrdup(x->model),
		.key = key,
		.bytes = d->likely_bytes,
		.files = d->files[DATASET_TRAIN] + d->files[DATASET_EVAL],
		.processes = x->processes,
		.experiment = index,
	};
	snprintf(s->name, sizeof(s->name), "%.60s-%016" PRIx64, x->model_folder, key);
	return p->datasets - 1;
}

static double least_seconds(const struct workload *w, const struct dataset *d, int64_t processes)
{
	double train = (double)dataset_samples(d, DATASET_TRAIN) /
		       ((double)w->reader.batch_size * (double)processes);
	double eval = (double)dataset_samples(d, DATASET_EVAL) /
		      ((double)w->reader.batch_size_eval * (double)processes);
	double s =
		floor(train) * time_dist_mean(&w->train.computation_time) * (double)w->train.epochs;

	if (w->workflow.evaluation)
		s += floor(eval) * time_dist_mean(&w->evaluation.eval_time) *
		     (double)w->train.epochs;
	return s;
}

/* Data that was just generated is in the page cache: a run that says nothing about it begins cold,
 * where that means something. */
static void begin_cold(struct study_plan *p, struct experiment *x, const struct workload *w)
{
	const struct opt *row = opt_find(workload_rows, workload_row_count, "storage.page_cache");
	const unsigned store = workload_base_store(w)->flags;
	struct file_system fs;

	if (p->options->warm || w->origin[row - workload_rows].source != ORIGIN_DEFAULT ||
	    !(store & STORE_HAS_FILES) || store & STORE_IS_UNCACHED ||
	    workload_format(w)->flags & FORMAT_NO_IO ||
	    (file_system_of_path(p->options->scratch, &fs) && fs.memory))
		return;
	str_list_add(&x->overrides, xstrdup("++workload.storage.page_cache=cold"));
}

/* "MODEL:text" for a model that no row has is probably a typing error. */
static void warn_of_absent_models(const struct study_plan *p, const struct str_list *texts)
{
	for (size_t i = 0; i < texts->n; i++) {
		bool used = false;

		for (size_t k = 0; k < p->design.rows && !used; k++)
			used = p->design.row[k].model &&
			       for_model(texts->v[i], p->design.row[k].model);
		if (!used && p->design.rows)
			log_warning("'%s' has no effect: no row of the design has that model",
				    texts->v[i]);
	}
}

/* What the workload says of the run; x->why when it cannot be. */
static void inspect_experiment(struct study_plan *p, size_t index)
{
	struct experiment *x = &p->experiment[index];
	const struct design_row *row = &p->design.row[x->row];
	struct workload w = {0};
	struct dataset d = {0};
	int rc = row->why.code;

	x->why = row->why;
	for (size_t i = 0; i < p->options->overrides.n; i++) {
		const char *text = for_model(p->options->overrides.v[i], x->model);

		if (text)
			str_list_add(&x->overrides, xstrdup(text));
	}
	if (row->epochs)
		str_list_add(&x->overrides,
			     xasprintf("++workload.train.epochs=%lld", (long long)row->epochs));
	for (size_t i = 0; i < row->overrides.n; i++) {
		const char *text = row->overrides.v[i];

		if (str_starts(text + strspn(text, "+~"), "hydra."))
			rc = err_set(&x->why, ERR_USAGE,
				     "'%s': a study sets the folder of results itself (--results)",
				     text);
		str_list_add(&x->overrides, xstrdup(text));
	}
	for (size_t i = 0; rc == 0 && i < p->options->scales.n; i++) {
		const char *text = for_model(p->options->scales.v[i], x->model);

		if (text)
			rc = apply_scale(p, x, text, &x->why);
	}
	if (rc == 0)
		rc = load_workload(p, x, &w, false, &x->why);
	if (rc == 0)
		x->config = config_of(&w);
	if (rc == 0 && w.workflow.train) {
		rc = dataset_init(&d, &w, &x->why);
		if (rc == 0) {
			begin_cold(p, x, &w);
			x->compute_s = least_seconds(&w, &d, x->processes);
			x->dataset = share_dataset(p, index, &d);
		}
		dataset_release(&d);
	}
	x->checkpoints = rc == 0 && w.workflow.checkpoint;
	x->key = key_of(p, x);
	workload_release(&w);
}

/* Repetitions of a row load nothing again. */
static void copy_experiment(struct study_plan *p, size_t index)
{
	struct experiment *x = &p->experiment[index];
	const struct experiment *first = &p->experiment[index - 1];

	for (size_t i = 0; i < first->overrides.n; i++)
		str_list_add(&x->overrides, xstrdup(first->overrides.v[i]));
	x->why = first->why;
	x->config = first->config;
	x->key = key_of(p, x);
	x->compute_s = first->compute_s;
	x->checkpoints = first->checkpoints;
	x->dataset = first->dataset;
}

/* ---- order ---- */

/* Models stay together in the order in which they appear, and so do the datasets of a model, so
 * that no more than one dataset is on the disk at a time. */
static int by_dataset(const void *a, const void *b)
{
	const struct experiment *x = a, *y = b;

	if (x->dataset != y->dataset)
		return x->dataset < y->dataset ? -1 : 1;
	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	return x->repeat < y->repeat ? -1 : x->repeat > y->repeat;
}

static void group_models(struct study_plan *p)
{
	size_t *place = xcalloc(p->datasets + 1, sizeof(*place));
	size_t n = 0;
	struct study_dataset *sorted = xcalloc(p->datasets + 1, sizeof(*sorted));

	for (size_t i = 0; i < p->datasets; i++)
		place[i] = SIZE_MAX;
	for (size_t i = 0; i < p->datasets; i++) {
		bool first = place[i] == SIZE_MAX;

		for (size_t k = i; first && k < p->datasets; k++)
			if (strcmp(p->dataset[k].model, p->dataset[i].model) == 0) {
				place[k] = n;
				sorted[n++] = p->dataset[k];
			}
	}
	for (size_t i = 0; i < p->experiments; i++)
		if (p->experiment[i].dataset != SIZE_MAX)
			p->experiment[i].dataset = place[p->experiment[i].dataset];
	free(p->dataset);
	p->dataset = sorted;
	free(place);
}

/* Any order of the runs of one dataset: what drifts with time is then no factor's. */
static void shuffle_runs(struct study_plan *p)
{
	struct rng_np rng;

	rng_np_seed(&rng, (uint32_t)p->options->shuffle_seed);
	for (size_t from = 0; from < p->experiments;) {
		size_t to = from;

		while (to < p->experiments &&
		       p->experiment[to].dataset == p->experiment[from].dataset)
			to++;
		for (size_t i = to - from; i-- > 1;) {
			size_t k = from + (size_t)rng_np_interval(&rng, i);
			struct experiment keep = p->experiment[from + i];

			p->experiment[from + i] = p->experiment[k];
			p->experiment[k] = keep;
		}
		from = to;
	}
}

void study_place_run(const struct study_plan *p, struct experiment *x)
{
	AUTO_FREE char *results = path_absolute(p->options->results);
	uint64_t key;

	free(x->folder);
	x->folder = xasprintf("%s/%s/%s/run-%u", results, x->model_folder, x->name, x->repeat);
	key = run_mark_key(x->folder);
	if (key == 0 || key == x->key)
		return;
	free(x->folder);
	x->folder = xasprintf("%s/%s/%s-%08x/run-%u", results, x->model_folder, x->name,
			      (unsigned)(x->key & 0xffffffff), x->repeat);
}

static void place_folders(struct study_plan *p)
{
	AUTO_FREE char *scratch = path_absolute(p->options->scratch);

	for (size_t i = 0; i < p->experiments; i++)
		study_place_run(p, &p->experiment[i]);
	for (size_t i = 0; i < p->datasets; i++) {
		p->dataset[i].folder = xasprintf("%s/%s", scratch, p->dataset[i].name);
		p->dataset[i].experiment = SIZE_MAX;
		for (size_t k = 0; k < p->experiments; k++)
			if (p->experiment[k].dataset == i) {
				p->dataset[i].experiment = k;
				break;
			}
	}
}

/* When no row can run, and a model alone could be loaded but not with the overrides of the command
 * line, then these are what is wrong: an error of the command, and no row is marked as failed. */
static int check_overrides(const struct study_plan *p, struct err *e)
{
	struct experiment x = {0};
	struct err ignored = {0};
	struct workload w = {0};
	int rc;

	for (size_t i = 0; i < p->experiments; i++)
		if (p->experiment[i].why.code == 0)
			return 0;
	if (p->experiments == 0 || p->design.row[0].why.code)
		return 0;
	x.model = p->experiment[0].model;
	x.processes = p->experiment[0].processes;
	rc = load_workload(p, &x, &w, true, &ignored);
	workload_release(&w);
	if (rc < 0)
		return 0;
	w = (struct workload){0};
	for (size_t i = 0; i < p->options->overrides.n; i++) {
		const char *text = for_model(p->options->overrides.v[i], x.model);

		if (text)
			str_list_add(&x.overrides, xstrdup(text));
	}
	rc = load_workload(p, &x, &w, true, e);
	workload_release(&w);
	str_list_release(&x.overrides);
	return rc;
}

int study_plan_init(struct study_plan *p, const struct study_options *o, struct err *e)
{
	int rc;

	*p = (struct study_plan){.options = o};
	rc = check_scales(o, e);
	if (rc == 0)
		rc = design_load(&p->design, o->design, e);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < p->design.rows; i++) {
		const struct design_row *row = &p->design.row[i];
		int64_t repeat = row->repeat ? row->repeat : o->repeat > 0 ? o->repeat : 1;

		for (int64_t k = 1; k <= repeat; k++) {
			struct experiment *x;

			p->experiment = xrealloc(p->experiment,
						 (p->experiments + 1) * sizeof(*p->experiment));
			x = &p->experiment[p->experiments++];
			*x = (struct experiment){.row = i,
						 .repeat = (uint32_t)k,
						 .model = row->model,
						 .processes = row->processes,
						 .dataset = SIZE_MAX};
			name_experiment(x, row);
			if (k == 1)
				inspect_experiment(p, p->experiments - 1);
			else
				copy_experiment(p, p->experiments - 1);
		}
	}
	rc = check_overrides(p, e);
	if (rc < 0)
		return rc;
	warn_of_absent_models(p, &o->overrides);
	warn_of_absent_models(p, &o->scales);
	part_names(p);
	group_models(p);
	qsort(p->experiment, p->experiments, sizeof(*p->experiment), by_dataset);
	if (o->shuffle)
		shuffle_runs(p);
	place_folders(p);
	return 0;
}

void study_plan_release(struct study_plan *p)
{
	for (size_t i = 0; i < p->experiments; i++) {
		str_list_release(&p->experiment[i].overrides);
		free(p->experiment[i].folder);
	}
	for (size_t i = 0; i < p->datasets; i++) {
		free(p->dataset[i].model);
		free(p->dataset[i].folder);
	}
	free(p->experiment);
	free(p->dataset);
	design_release(&p->design);
	*p = (struct study_plan){0};
}
