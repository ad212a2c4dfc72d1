/* From a design to runs: names, datasets and order. */
#include "study/study.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/file.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/transfer.h"
#include "base/vector.h"
#include "conf/node.h"
#include "conf/override.h"
#include "dataset/dataset.h"
#include "dataset/listing.h"
#include "dataset/manifest.h"
#include "os/file_system.h"
#include "study/scaling.h"
#include "study/small.h"
#include "workload/key.h"
#include "workload/workload.h"

const char *const study_launcher_names[] = {"local", "mpirun", "srun", NULL};

/* Adds to `e` where a workload of this name lies that --config-dir would find: beside the design.
 */
static void add_folder_hint(const struct study_plan *p, const char *model, struct err *e)
{
	static const char *const places[] = {"workload/", ""}; /* below --config-dir */
	AUTO_FREE char *folder = path_dirname(p->design.path);
	struct err said = *e;

	if (p->options->config_dir || workload_builtin_text(model))
		return;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		AUTO_FREE char *file = xasprintf("%s/%s%s.yaml", folder, places[i], model);

		if (!file_exists(file))
			continue;
		err_set(e, ERR_USAGE, "%.600s; it is '%.120s': add --config-dir %.100s", said.text,
			file, folder);
		return;
	}
}

int study_load(const struct study_plan *p, const struct experiment *x,
	       const struct str_list *overrides, bool inspect, struct workload *w, struct err *e)
{
	struct workload_request req = {
		.workload = x->model,
		.overrides = (const char *const *)overrides->v,
		.override_count = overrides->n,
		.config_dir = p->options->config_dir,
		.strict_overrides = true,
		.ranks = x->processes,
		.inspect = inspect,
	};

	int rc = workload_load(w, &req, e);

	if (rc == ERR_USAGE && p->design.path && e)
		add_folder_hint(p, x->model, e);
	return rc;
}

int study_load_values(const struct study_plan *p, const struct experiment *x, struct workload *w,
		      struct err *e)
{
	struct str_list look = {0};
	struct err first = {0}, ignored = {0};
	int rc = study_load(p, x, &x->overrides, true, w, &first);

	if (rc == 0)
		return 0;
	workload_release(w);
	*w = (struct workload){0};
	str_list_copy(&look, &x->overrides);
	str_list_add(&look, xstrdup("++workload.workflow.train=False"));
	if (study_load(p, x, &look, true, w, &ignored) == 0)
		rc = 0;
	else
		*e = first;
	str_list_release(&look);
	return rc;
}

/* Whether evicting the files in `folder` means nothing, and why. */
static bool cannot_evict(const struct workload *w, const char *folder, char *why, size_t size)
{
	const struct store_facts *store = workload_base_store(w);
	struct file_system fs;

	if (!(store->flags & STORE_HAS_FILES) || workload_format(w)->flags & FORMAT_NO_IO)
		snprintf(why, size,
			 "no file is read with storage.store '%.40s' and dataset.format %.20s",
			 w->storage.store, w->dataset.format);
	else if (store->flags & STORE_IS_UNCACHED)
		snprintf(why, size, "storage.store '%.40s' does not use it", w->storage.store);
	else if (file_system_of_path(folder, &fs) && fs.memory)
		snprintf(why, size, "'%.60s' is on %s, whose files cannot be evicted", folder,
			 fs.name);
	else
		return false;
	return true;
}

bool study_begins_cold(const struct workload *w)
{
	return !workload_is_set(w, "storage.page_cache") &&
	       w->storage.page_cache == PAGE_CACHE_KEEP &&
	       !cannot_evict(w, w->dataset.data_folder, NULL, 0);
}

bool study_is_pending(const struct study_plan *p, const struct experiment *x)
{
	enum design_state state = p->design.row[x->row].state;

	return state == DESIGN_PENDING || (state == DESIGN_FAILED && p->options->retry);
}

/* ---- names ---- */

/* With its end, so that texts do not run into each other. */
static uint64_t hash_text(uint64_t h, const char *text)
{
	return fnv1a(h, text, strlen(text) + 1);
}

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
		snprintf(out + n, 18, "-%08" PRIx64, hash_text(FNV_START, text) & 0xffffffff);
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

/* "KEY=FACTOR" as an override with the number that the key has so far, times the factor. */
static int apply_scale(const struct study_plan *p, struct experiment *x, const char *text,
		       struct err *e)
{
	struct workload w = {0};
	int rc = study_load_values(p, x, &w, e);

	if (rc == 0)
		rc = scaling_apply(&w, text, &x->overrides, e);
	workload_release(&w);
	return rc;
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
	h = hash_text(FNV_START, text.data ? text.data : "");
	buf_release(&text);
	return h;
}

/* Neither its line nor its neighbours in the design say which run it is, but all that it is made
 * of: the workload with what its file says now, and how and where it runs. */
static uint64_t key_of(const struct study_plan *p, const struct experiment *x,
		       const struct str_list *overrides)
{
	const struct study_options *o = p->options;
	AUTO_FREE char *scratch = path_absolute(o->scratch);
	AUTO_FREE char *text = xasprintf("%lld %u %s %016" PRIx64, (long long)x->processes,
					 x->repeat, study_launcher_names[o->launcher], x->config);
	uint64_t h = hash_text(hash_text(FNV_START, x->model), text);

	h = hash_text(h, scratch);
	h = hash_list(h, overrides);
	h = hash_list(h, &o->launcher_args);
	h = hash_list(h, &o->modules);
	return x->why.code ? hash_text(h, x->why.text) : h;
}

/* ---- what a run finds ---- */

/* Whether a list of overrides sets `key`, by any of Hydra's forms. */
static bool sets_key(const struct str_list *overrides, const char *model, const char *key)
{
	for (size_t i = 0; i < overrides->n; i++) {
		const char *text = scaling_for_model(overrides->v[i], model);
		size_t n;

		if (!text)
			continue;
		text += strspn(text, "+~");
		if (str_starts(text, "workload."))
			text += strlen("workload.");
		n = strcspn(text, "=");
		if (strlen(key) == n && strncmp(text, key, n) == 0)
			return true;
	}
	return false;
}

/* Who set a key that is no default. */
static const char *setter_of(const struct study_plan *p, const struct experiment *x,
			     const struct workload *w, const char *key)
{
	if (workload_set_in(w, key) == ORIGIN_FILE)
		return "the workload";
	return sets_key(&p->design.row[x->row].overrides, x->model, key) ? "the design"
									 : "the command line";
}

/* Data that was just generated is in the page cache, and what one epoch has read is there for the
 * next: where that means something, a run that says nothing about it begins each epoch cold.
 * compat.dlio does not change that: it is about how DLIO computes its numbers, and DLIO has no
 * opinion on the page cache. */
static void treat_page_cache(const struct study_plan *p, struct experiment *x,
			     const struct workload *w, const char *folder)
{
	struct study_cache *c = &x->cache;

	c->value = w->storage.page_cache;
	if (workload_set_in(w, "storage.page_cache") != ORIGIN_DEFAULT) {
		snprintf(c->why, sizeof(c->why), "%s", setter_of(p, x, w, "storage.page_cache"));
		return;
	}
	c->impossible = cannot_evict(w, folder, c->why, sizeof(c->why));
	if (!c->impossible && p->options->warm)
		snprintf(c->why, sizeof(c->why), "--warm");
	if (c->impossible || p->options->warm)
		return;
	c->value = PAGE_CACHE_COLD_EPOCHS;
	c->by_study = true;
	snprintf(c->why, sizeof(c->why), "the default of a study");
	str_list_add(&x->overrides, xstrdup("++workload.storage.page_cache=cold_epochs"));
}

/* The key of what versions before made of the row. */
static uint64_t key_before(const struct study_plan *p, struct experiment *x)
{
	static char was[] = "++workload.storage.page_cache=cold";
	char **last, *now;
	uint64_t key;

	if (!x->cache.by_study)
		return 0;
	last = &x->overrides.v[x->overrides.n - 1];
	now = *last;
	*last = was;
	key = key_of(p, x, &x->overrides);
	*last = now;
	return key;
}

/* ---- datasets ---- */

int study_folder_holds(const char *folder, bool *any)
{
	DIR *dir = WITH_MEMORY(folder_open(folder));
	struct dirent *one;
	int more = 0;

	*any = false;
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while (!*any && (more = folder_next(dir, &one)) > 0)
		*any = strcmp(one->d_name, ".") != 0 && strcmp(one->d_name, "..") != 0;
	closedir(dir);
	return more < 0 ? more : 0;
}

/* What the user's own folder holds: nothing, so that the dataset is generated there; or files,
 * which are used and never replaced. */
static int look_at_given(struct study_dataset *s, const struct dataset *d, const struct workload *w,
			 struct err *e)
{
	struct store *store = NULL;
	struct manifest m = {0};
	struct buf why = {0};
	struct io io = {0};
	int rc = store_create(&store, w->storage.store, node_path(w->tree, "workload.storage"), e);

	io.store = store;
	if (rc == 0 && s->objects)
		s->there = manifest_read(&io, s->folder, &m, NULL) == 0 && m.found;
	else if (rc == 0 && (rc = found_any(s->folder, &s->there, e)) < 0)
		err_wrap(e, "dataset.data_folder");
	if (rc == 0 && s->there && manifest_read(&io, s->folder, &m, NULL) == 0 && m.found) {
		switch (manifest_compare(&m, d, w->workflow.evaluation, &why)) {
		case MANIFEST_OTHER:
			rc = err_set(e, ERR_USAGE,
				     "dataset.data_folder: the dataset in '%s' is not the one that "
				     "this row needs: %s",
				     s->folder, why.data ? why.data : "");
			break;
		case MANIFEST_SAME:
			s->there = m.complete;
			break;
		case MANIFEST_LARGER:
			break;
		}
	}
	buf_release(&why);
	store_destroy(store);
	return rc;
}

static struct study_dataset *find_dataset(struct study_plan *p, const struct experiment *x,
					  uint64_t key, const char *given)
{
	for (size_t i = 0; i < p->datasets; i++) {
		struct study_dataset *s = &p->dataset[i];

		if (given ? s->given && strcmp(s->folder, given) == 0
			  : !s->given && s->key == key && strcmp(s->model, x->model) == 0)
			return s;
	}
	return NULL;
}

static int share_dataset(struct study_plan *p, size_t index, const struct dataset *d,
			 const char *given, struct err *e)
{
	struct experiment *x = &p->experiment[index];
	struct study_dataset *s;
	char text[128];
	uint64_t key;

	snprintf(text, sizeof(text), "%016" PRIx64 " %" PRIu64 " %" PRIu64, d->config_hash,
		 d->files[DATASET_TRAIN], d->files[DATASET_EVAL]);
	key = hash_text(FNV_START, text);
	s = find_dataset(p, x, key, given);
	if (s && s->key != key)
		return err_set(e, ERR_USAGE,
			       "dataset.data_folder: '%s' can hold one dataset, but lines %zu and "
			       "%zu need different ones there: leave dataset.data_folder out, and "
			       "give the folder for the datasets of the study with --scratch",
			       given, p->design.row[p->experiment[s->experiment].row].line,
			       p->design.row[x->row].line);
	if (!s) {
		s = VECTOR_ADD(p->dataset, p->datasets, p->dataset_room);
		*s = (struct study_dataset){
			.model = xstrdup(x->model),
			.key = key,
			.given = given != NULL,
			.folder = given ? xstrdup(given) : NULL,
			.objects = workload_base_store(d->workload)->flags & STORE_HAS_OBJECTS,
			.bytes = d->likely_bytes,
			.files = d->files[DATASET_TRAIN] + d->files[DATASET_EVAL],
			.processes = x->processes,
			.experiment = index,
		};
		snprintf(s->name, sizeof(s->name), "%.60s-%016" PRIx64, x->model_folder, key);
	}
	if (s->processes < x->processes)
		s->processes = x->processes;
	x->dataset = (size_t)(s - p->dataset);
	return given ? look_at_given(s, d, d->workload, e) : 0;
}

/* The dataset of a run, and how the run treats the page cache. */
static int find_data(struct study_plan *p, size_t index, const struct dataset *d, struct err *e)
{
	struct experiment *x = &p->experiment[index];
	const struct workload *w = d->workload;
	unsigned store = workload_base_store(w)->flags;
	bool given = workload_set_in(w, "dataset.data_folder") == ORIGIN_OVERRIDE;
	AUTO_FREE char *folder = given && store & STORE_HAS_OBJECTS
					 ? xstrdup(d->folder)
					 : path_absolute(given ? d->folder : p->options->scratch);

	x->files = d->files[DATASET_TRAIN];
	treat_page_cache(p, x, w, folder);
	x->generates = store & STORE_IS_VOLATILE;
	if (store & (STORE_IS_VOLATILE | STORE_KEEPS_NOTHING))
		return 0;
	if (!given && workload_set_in(w, "dataset.data_folder") == ORIGIN_FILE)
		x->unused_folder = path_absolute(d->folder);
	return share_dataset(p, index, d, given ? folder : NULL, e);
}

static void find_checkpoints(const struct study_plan *p, struct experiment *x,
			     const struct workload *w)
{
	AUTO_FREE char *scratch = path_join(p->options->scratch, "checkpoints");

	x->checkpoints = w->workflow.checkpoint;
	if (!x->checkpoints)
		return;
	x->own_folder = workload_set_in(w, "checkpoint.checkpoint_folder") == ORIGIN_OVERRIDE;
	x->checkpoint_folder =
		path_absolute(x->own_folder ? w->checkpoint.checkpoint_folder : scratch);
}

/* "MODEL:text" for a model that no row has is a typing error. */
static int check_models_named(const struct study_plan *p, const struct str_list *texts,
			      struct err *e)
{
	for (size_t i = 0; i < texts->n; i++) {
		bool used = false;

		for (size_t k = 0; k < p->design.rows && !used; k++)
			used = p->design.row[k].model &&
			       scaling_for_model(texts->v[i], p->design.row[k].model);
		if (!used && p->design.rows)
			return err_set(e, ERR_USAGE,
				       "command line: '%s' has no effect: no row of the design has "
				       "that model",
				       texts->v[i]);
	}
	return 0;
}

static int check_config_dir(const struct study_options *o, struct err *e)
{
	int kind = o->config_dir ? path_look(o->config_dir, e) : PATH_FOLDER;

	if (kind < 0 || kind == PATH_FOLDER)
		return kind < 0 ? kind : 0;
	return err_set(e, ERR_USAGE, "--config-dir: '%s' %s", o->config_dir,
		       kind == PATH_OTHER ? "is not a folder" : "does not exist");
}

/* All overrides of a run but those that the study itself adds. With `row_only` those of the command
 * line are left out. */
static int compose_overrides(const struct study_plan *p, struct experiment *x, bool row_only,
			     struct err *e)
{
	const struct design_row *row = &p->design.row[x->row];
	int rc = 0;

	for (size_t i = 0; !row_only && i < p->options->overrides.n; i++) {
		const char *text = scaling_for_model(p->options->overrides.v[i], x->model);

		if (text)
			str_list_add(&x->overrides, xstrdup(text));
	}
	if (row->epochs)
		str_list_add(&x->overrides,
			     xasprintf("++workload.train.epochs=%lld", (long long)row->epochs));
	for (size_t i = 0; i < row->overrides.n; i++) {
		const char *text = row->overrides.v[i];

		if (str_starts(text + strspn(text, "+~"), "hydra."))
			rc = err_set(e, ERR_USAGE,
				     "'%s': a study sets the folder of results itself (--results)",
				     text);
		str_list_add(&x->overrides, xstrdup(text));
	}
	for (size_t i = 0; rc == 0 && !row_only && i < p->options->scales.n; i++) {
		const char *text = scaling_for_model(p->options->scales.v[i], x->model);

		if (text)
			rc = apply_scale(p, x, text, e);
	}
	return rc;
}

/* The workload as the run will see it: the study has generated the data by then. */
static int load_for_run(const struct study_plan *p, struct experiment *x, struct workload *w,
			struct err *e)
{
	struct str_list all = {0};
	int rc = study_load(p, x, &x->overrides, false, w, e);

	if (rc < 0)
		return rc;
	x->config = config_of(w);
	if (!w->workflow.generate_data)
		return 0;
	workload_release(w);
	*w = (struct workload){0};
	str_list_copy(&all, &x->overrides);
	str_list_add(&all, xstrdup("++workload.workflow.generate_data=False"));
	rc = study_load(p, x, &all, false, w, e);
	str_list_release(&all);
	return rc;
}

/* Its steps, checkpoints and memory. */
static void foresee_run(const struct study_plan *p, struct experiment *x, const struct workload *w,
			struct dataset *d)
{
	struct err e = {0};
	int rc = run_foresee(w, d, (uint32_t)x->processes, p->options->memory, &x->foreseen, &e);

	if (rc == -ENOMEM)
		x->memory_why = e;
	else if (rc < 0)
		x->why = e;
}

/* Whether the command line says anything of the model's runs. */
static bool command_names(const struct study_options *o, const char *model)
{
	for (size_t i = 0; i < o->overrides.n; i++)
		if (scaling_for_model(o->overrides.v[i], model))
			return true;
	for (size_t i = 0; i < o->scales.n; i++)
		if (scaling_for_model(o->scales.v[i], model))
			return true;
	return false;
}

/* The same; of the dataset's folder alone, when that is what cannot be. */
static bool command_says(const struct study_plan *p, const struct experiment *x)
{
	const struct study_options *o = p->options;

	if (x->data_refused)
		return sets_key(&o->overrides, x->model, "dataset.data_folder") &&
		       !sets_key(&p->design.row[x->row].overrides, x->model, "dataset.data_folder");
	return command_names(o, x->model);
}

/* What the workload says of the run; x->why when it cannot be. */
static void inspect_experiment(struct study_plan *p, size_t index)
{
	struct experiment *x = &p->experiment[index];
	struct workload w = {0};
	struct dataset d = {0};
	int rc = x->why.code;

	/* a reason that names the place of an override means the row */
	if (!command_names(p->options, x->model))
		override_place_set("overrides");
	if (rc == 0)
		rc = load_for_run(p, x, &w, &x->why);
	override_place_set("command line");
	if (rc == 0) {
		x->target_set = workload_set_in(&w, "metric.au") != ORIGIN_DEFAULT;
		str_list_copy(&x->warnings, &w.warnings);
		find_checkpoints(p, x, &w);
	}
	if (rc == 0 && workload_reads(&w)) {
		rc = dataset_init(&d, &w, &x->why);
		if (rc == 0)
			x->data_refused = (rc = find_data(p, index, &d, &x->why)) < 0;
	}
	if (rc == 0)
		foresee_run(p, x, &w, d.format ? &d : NULL);
	x->compute_s = x->foreseen.compute_s;
	x->key = key_of(p, x, &x->overrides);
	x->key_before = key_before(p, x);
	dataset_release(&d);
	workload_release(&w);
}

/* Repetitions of a row load nothing again. */
static void copy_experiment(struct study_plan *p, size_t index)
{
	struct experiment *x = &p->experiment[index];
	const struct experiment *first = &p->experiment[index - 1];

	str_list_copy(&x->overrides, &first->overrides);
	x->why = first->why;
	x->config = first->config;
	x->cache = first->cache;
	x->key = key_of(p, x, &x->overrides);
	x->key_before = key_before(p, x);
	x->compute_s = first->compute_s;
	x->checkpoints = first->checkpoints;
	x->own_folder = first->own_folder;
	x->checkpoint_folder = first->checkpoint_folder ? xstrdup(first->checkpoint_folder) : NULL;
	x->foreseen = first->foreseen;
	x->dataset = first->dataset;
	x->generates = first->generates;
}

/* ---- order ---- */

/* Models stay together in the order in which they appear, and so do the datasets of a model, so
 * that no more than one dataset is on the disk at a time. */
static int by_dataset(const void *a, const void *b)
{
	const struct experiment *x = a, *y = b;

	return ORDER(x->dataset, y->dataset)
		       ?: ORDER(x->row, y->row) ?: ORDER(x->repeat, y->repeat);
}

static void group_models(struct study_plan *p)
{
	AUTO_FREE size_t *place = xcalloc(p->datasets + 1, sizeof(*place));
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
	p->dataset_room = p->datasets + 1;
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

int study_place_run(const struct study_plan *p, struct experiment *x, struct err *e)
{
	AUTO_FREE char *results = path_absolute(p->options->results);
	bool done = p->design.row[x->row].state == DESIGN_DONE;
	uint64_t key;
	int rc;

	free(x->folder);
	x->folder = xasprintf("%s/%s/%s/run-%u", results, x->model_folder, x->name, x->repeat);
	rc = run_mark_key(x->folder, &key, e);
	/* what is done is not written again, and told elsewhere */
	if (rc < 0)
		return done ? 0 : rc;
	if (key == 0 || key == x->key || (key == x->key_before && done))
		return 0;
	free(x->folder);
	x->folder = xasprintf("%s/%s/%s-%08x/run-%u", results, x->model_folder, x->name,
			      (unsigned)(x->key & 0xffffffff), x->repeat);
	return 0;
}

/* The design's file without what follows its last dot: keys of objects begin with it, as where this
 * machine keeps its files means nothing there. */
static char *study_name(const struct study_plan *p)
{
	const char *slash = strrchr(p->design.path, '/');
	const char *name = slash ? slash + 1 : p->design.path, *dot = strrchr(name, '.');

	return dot > name ? xstrndup(name, (size_t)(dot - name)) : xstrdup(name);
}

static int place_folders(struct study_plan *p, struct err *e)
{
	AUTO_FREE char *scratch = path_absolute(p->options->scratch);
	AUTO_FREE char *name = study_name(p);
	int rc = 0;

	for (size_t i = 0; i < p->experiments && rc == 0; i++)
		rc = study_place_run(p, &p->experiment[i], e);
	for (size_t i = 0; i < p->datasets; i++) {
		if (!p->dataset[i].given)
			p->dataset[i].folder =
				xasprintf("%s/%s", p->dataset[i].objects ? name : scratch,
					  p->dataset[i].name);
		p->dataset[i].experiment = SIZE_MAX;
		for (size_t k = 0; k < p->experiments; k++)
			if (p->experiment[k].dataset == i) {
				p->dataset[i].experiment = k;
				break;
			}
	}
	return rc;
}

/* Whether a row can run by what it says itself. */
static bool runs_alone(const struct study_plan *p, const struct experiment *x)
{
	struct experiment alone = {.row = x->row, .model = x->model, .processes = x->processes};
	struct run_foresight ignored;
	struct workload w = {0};
	struct dataset d = {0};
	struct err e = {0};
	int rc = compose_overrides(p, &alone, true, &e);

	if (rc == 0)
		rc = load_for_run(p, &alone, &w, &e);
	if (rc == 0 && workload_reads(&w))
		rc = dataset_init(&d, &w, &e);
	if (rc == 0)
		rc = run_foresee(&w, d.format ? &d : NULL, (uint32_t)x->processes, false, &ignored,
				 &e);
	dataset_release(&d);
	workload_release(&w);
	str_list_release(&alone.overrides);
	return rc == 0;
}

/* A row that cannot run, but could without the options of the command line: then these are what is
 * wrong. That is an error of the command, and no row is marked as failed. */
static int check_overrides(const struct study_plan *p, struct err *e)
{
	for (size_t i = 0; i < p->experiments; i++) {
		const struct experiment *x = &p->experiment[i];

		if (x->repeat > 1 || x->why.code == 0 || p->design.row[x->row].why.code ||
		    !study_is_pending(p, x) || !command_says(p, x) || !runs_alone(p, x))
			continue;
		return err_set(e, ERR_USAGE,
			       "line %zu of the design could run, but not with the options of the "
			       "command line: %s",
			       p->design.row[x->row].line, x->why.text);
	}
	return 0;
}

/* Every row as one run or more, with its overrides. */
static void list_experiments(struct study_plan *p)
{
	for (size_t i = 0; i < p->design.rows; i++) {
		const struct design_row *row = &p->design.row[i];
		int64_t repeat = row->repeat              ? row->repeat
				 : p->options->repeat > 0 ? p->options->repeat
							  : 1;

		for (int64_t k = 1; k <= repeat; k++) {
			struct experiment *x =
				VECTOR_ADD(p->experiment, p->experiments, p->experiment_room);

			*x = (struct experiment){.row = i,
						 .repeat = (uint32_t)k,
						 .model = row->model,
						 .processes = row->processes,
						 .dataset = SIZE_MAX,
						 .why = row->why};
			name_experiment(x, row);
			if (k == 1 && x->why.code == 0)
				compose_overrides(p, x, false, &x->why);
		}
	}
}

/* The states of shrunk runs are in their folders: the design's are those of the runs in full. */
static int take_small_states(struct study_plan *p, struct err *e)
{
	AUTO_FREE struct row_status *s = xcalloc(p->experiments + 1, sizeof(*s));
	int rc = study_status(p, s, e);

	for (size_t i = 0; i < p->design.rows && rc == 0; i++) {
		bool done = true, failed = false;

		for (size_t k = 0; k < p->experiments; k++) {
			if (p->experiment[k].row != i)
				continue;
			done = done && s[k].state == RUN_DONE;
			failed = failed || s[k].state == RUN_BAD;
		}
		if (failed || done)
			design_set_state(&p->design, i, failed ? DESIGN_FAILED : DESIGN_DONE);
	}
	return rc;
}

int study_plan_init(struct study_plan *p, const struct study_options *o, struct err *e)
{
	int rc;

	*p = (struct study_plan){.options = o};
	rc = check_config_dir(o, e);
	if (rc == 0)
		rc = scaling_check(&o->scales, e);
	if (rc == 0)
		rc = design_load(&p->design, o->design, e);
	if (rc == 0)
		rc = check_models_named(p, &o->overrides, e);
	if (rc == 0)
		rc = check_models_named(p, &o->scales, e);
	if (rc < 0)
		return rc;
	for (size_t i = 0; o->small && i < p->design.rows; i++)
		design_set_state(&p->design, i, DESIGN_PENDING);
	list_experiments(p);
	if (o->small)
		study_shrink(p);
	for (size_t i = 0; i < p->experiments; i++) {
		if (p->experiment[i].repeat == 1)
			inspect_experiment(p, i);
		else
			copy_experiment(p, i);
	}
	rc = check_overrides(p, e);
	if (rc < 0)
		return rc;
	part_names(p);
	group_models(p);
	qsort(p->experiment, p->experiments, sizeof(*p->experiment), by_dataset);
	if (o->shuffle)
		shuffle_runs(p);
	rc = place_folders(p, e);
	if (rc == 0 && o->small)
		rc = take_small_states(p, e);
	return rc;
}

void study_plan_release(struct study_plan *p)
{
	for (size_t i = 0; i < p->experiments; i++) {
		str_list_release(&p->experiment[i].overrides);
		str_list_release(&p->experiment[i].warnings);
		free(p->experiment[i].folder);
		free(p->experiment[i].checkpoint_folder);
		free(p->experiment[i].unused_folder);
	}
	for (size_t i = 0; i < p->datasets; i++) {
		free(p->dataset[i].model);
		free(p->dataset[i].folder);
	}
	free(p->experiment);
	free(p->dataset);
	design_release(&p->design);
	buf_release(&p->shrunk);
	*p = (struct study_plan){0};
}
