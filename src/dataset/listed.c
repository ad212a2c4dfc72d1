/* Listing a folder of files that others wrote, and counting what they hold. */
#include "dataset/listed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/saturate.h"
#include "base/str.h"
#include "base/vector.h"
#include "dataset/each.h"
#include "workload/extension.h"

#define DEPTH_MAX 16
#define FILES_MAX 10000000u

/* ---- names ---- */

/* Words that name a part to evaluate on: Hugging Face's and those of the usual datasets. */
static const char *const eval_words[] = {"validation", "valid", "val", "test", "eval", "dev", NULL};
static const char *const train_words[] = {"train", "training", NULL};

struct name {
	char *path;
	int kind;
};

struct names {
	const struct dataset *d;
	const struct stop_flag *stop;
	struct name *v;
	size_t n, room;
	struct str_list folders; /* found below the dataset's: listed one after another */
	struct place *place;     /* of each */
	size_t places, place_room;
	const char *folder; /* that is listed now: */
	size_t folder_at;   /* in `folders`, or ROOT */
};

#define ROOT SIZE_MAX

/* Which folder of the file system it is, and the one that it was found in. */
struct place {
	uint64_t device, inode; /* 0: unknown */
	size_t parent;
};

static bool is_one_of(const char *word, size_t n, const char *const *words)
{
	for (; *words; words++)
		if (strlen(*words) == n && strncasecmp(word, *words, n) == 0)
			return true;
	return false;
}

/* The last part of the path that says so; -1: none does. */
static int kind_of(const char *path)
{
	int kind = -1;

	for (const char *part = path; part; part = strchr(part, '/')) {
		size_t n;

		part += *part == '/';
		n = strcspn(part, "-_./");
		if (is_one_of(part, n, eval_words))
			kind = DATASET_EVAL;
		else if (is_one_of(part, n, train_words))
			kind = DATASET_TRAIN;
	}
	return kind;
}

static int add_entry(void *arg, const char *name, bool is_dir)
{
	struct names *l = arg;
	char *path;

	if (stop_is_set(l->stop))
		return ERR_CANCELED;
	if (name[0] == '.' || name[0] == '_')
		return 0;
	if (!is_dir && !format_has_extension(&l->d->format->is, name))
		return 0;
	path = l->folder[0] ? xasprintf("%s/%s", l->folder, name) : xstrdup(name);
	if (is_dir) {
		str_list_add(&l->folders, path);
		VECTOR_PUSH(l->place, l->places, l->place_room,
			    (struct place){.parent = l->folder_at});
		return 0;
	}
	if (l->n == l->room) {
		l->room = l->room ? 2 * l->room : 64;
		l->v = xrealloc(l->v, l->room * sizeof(*l->v));
	}
	l->v[l->n++] = (struct name){path, kind_of(path)};
	return l->n > FILES_MAX ? -E2BIG : 0;
}

static unsigned depth_of(const char *path)
{
	unsigned depth = *path != '\0';

	for (; *path; path++)
		depth += *path == '/';
	return depth;
}

static int list_folder(struct names *l, struct store *store, const char *folder, struct err *e)
{
	char path[DATASET_PATH_MAX];
	int n = snprintf(path, sizeof(path), folder[0] ? "%s/%s" : "%s%s", l->d->folder, folder);
	int rc;

	if (n < 0 || (size_t)n >= sizeof(path))
		return err_set(e, -ENAMETOOLONG, "paths in '%.200s' have more than %zu characters",
			       l->d->folder, sizeof(path) - 1);
	l->folder = folder;
	rc = store_list(store, path, add_entry, l, e);
	if (rc == ERR_CANCELED)
		return err_set(e, rc, "stopped on request");
	if (rc == -E2BIG)
		return err_set(e, ERR_USAGE, "'%.200s' has more than %u files", l->d->folder,
			       FILES_MAX);
	return rc;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct name *)a)->path, ((const struct name *)b)->path);
}

static struct place place_of(const struct names *l, struct store *store, const char *folder)
{
	AUTO_FREE char *path = path_join(l->d->folder, folder);
	struct store_stat st;

	/* names of objects lead nowhere else */
	if (!(workload_base_store(l->d->workload)->flags & STORE_HAS_FILES) ||
	    store_stat_path(store, path, &st, NULL) < 0)
		return (struct place){0};
	return (struct place){.device = st.device, .inode = st.inode};
}

static bool are_same(const struct place *a, const struct place *b)
{
	return a->inode != 0 && a->inode == b->inode && a->device == b->device;
}

/* Whether a link leads back from folder `i` to one that it lies in. */
static bool leads_back(struct names *l, struct store *store, const struct place *root, size_t i)
{
	struct place *of = &l->place[i];
	size_t parent = of->parent;

	*of = place_of(l, store, l->folders.v[i]);
	of->parent = parent;
	for (; parent != ROOT; parent = l->place[parent].parent)
		if (are_same(of, &l->place[parent]))
			return true;
	return are_same(of, root);
}

static int list_all(struct names *l, struct store *store, struct err *e)
{
	struct place root = place_of(l, store, "");
	int rc;

	l->folder_at = ROOT;
	rc = list_folder(l, store, "", e);
	for (size_t i = 0; rc == 0 && i < l->folders.n; i++) {
		l->folder_at = i;
		if (depth_of(l->folders.v[i]) < DEPTH_MAX && !leads_back(l, store, &root, i))
			rc = list_folder(l, store, l->folders.v[i], e);
	}
	if (rc == 0 && l->n == 0)
		rc = err_set(e, -ENOENT,
			     "'%.200s' has no file of format %s (dataset.names listed looks for "
			     "names that end with .%s, in it and below)",
			     l->d->folder, l->d->format->is.name, l->d->format->is.extension);
	if (l->n > 1)
		qsort(l->v, l->n, sizeof(*l->v), by_path);
	return rc;
}

static void release_names(struct names *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].path);
	free(l->v);
	free(l->place);
	str_list_release(&l->folders);
}

/* Takes the paths out of the list. */
static void take_names(struct listed_files *out, struct names *l)
{
	bool train = false;

	for (size_t i = 0; i < l->n; i++)
		train = train || l->v[i].kind != DATASET_EVAL;
	for (int k = 0; k < DATASET_KINDS; k++) {
		struct listed_kind *kind = &out->kind[k];

		kind->file = xcalloc(l->n + 1, sizeof(*kind->file));
		for (size_t i = 0; i < l->n; i++) {
			if ((train && l->v[i].kind == DATASET_EVAL) != (k == DATASET_EVAL))
				continue;
			kind->file[kind->files++].path = l->v[i].path;
			l->v[i].path = NULL;
		}
	}
}

/* ---- what they hold ---- */

struct finding {
	struct dataset *d;
	_Atomic uint64_t index_bytes;
};

static int look_at(void *arg, enum dataset_kind kind, uint64_t index, struct each_worker *w,
		   struct err *e)
{
	struct finding *f = arg;
	struct listed_file *file = &f->d->listed->kind[kind].file[index];
	struct store_stat st;
	uint64_t all;
	int rc = io_stat_path(&w->io, w->path, &st, e);

	if (rc < 0)
		return rc;
	file->bytes = st.bytes;
	rc = f->d->format->look(&w->io, w->path, st.bytes, &f->d->form, &file->look, e);
	if (rc < 0)
		return rc == ERR_CANCELED ? rc : err_name(rc, e, "'%s'", w->path);
	/* relaxed: a sum that is only compared with a limit */
	all = atomic_fetch_add_explicit(&f->index_bytes, file->look.index_bytes,
					memory_order_relaxed) +
	      file->look.index_bytes;
	if (all > LISTED_INDEX_MAX)
		return err_set(e, ERR_USAGE,
			       "the indexes of the files in '%.200s' take more than %llu bytes of "
			       "memory: use fewer files, or files with fewer and larger groups of "
			       "samples",
			       f->d->folder, LISTED_INDEX_MAX);
	return 0;
}

static int count(struct dataset *d, struct err *e)
{
	struct listed_files *l = d->listed;

	for (int k = 0; k < DATASET_KINDS; k++)
		for (uint64_t i = 0; i < l->kind[k].files; i++)
			if (l->kind[k].file[i].look.samples > l->stride)
				l->stride = l->kind[k].file[i].look.samples;
	if (l->stride == 0)
		return err_set(
			e, ERR_DATA, "none of the %" PRIu64 " files in '%.200s' has a sample",
			l->kind[DATASET_TRAIN].files + l->kind[DATASET_EVAL].files, d->folder);
	for (int k = 0; k < DATASET_KINDS; k++) {
		struct listed_kind *kind = &l->kind[k];
		uint64_t *first;

		first = try_calloc(kind->files + 1, sizeof(*first), "the samples of every file", e);
		if (!first)
			return -ENOMEM;
		kind->counts = (struct sample_counts){kind->files, l->stride, first};
		for (uint64_t i = 0; i < kind->files; i++) {
			const struct listed_file *f = &kind->file[i];

			kind->differ = kind->differ || f->look.samples != l->stride;
			kind->samples = u64_sum(kind->samples, f->look.samples);
			first[i + 1] = kind->samples;
			kind->bytes = u64_sum(kind->bytes, f->bytes);
			kind->payload = u64_sum(kind->payload,
						u64_product(f->look.samples, f->look.sample_bytes));
		}
		if (u64_product(kind->files, l->stride) > INT64_MAX || kind->samples > INT64_MAX ||
		    kind->bytes > INT64_MAX)
			return err_set(e, ERR_DATA,
				       "the files in '%.200s' say that they have more samples or "
				       "bytes than can be counted",
				       d->folder);
	}
	return 0;
}

/* Sizes and numbers become those of all files together. */
static void take_totals(struct dataset *d)
{
	/* the mean is that of training */
	const struct listed_kind *of =
		&d->listed->kind[d->files[DATASET_TRAIN] ? DATASET_TRAIN : DATASET_EVAL];
	uint64_t half = of->samples / 2;

	d->samples_per_file = d->listed->stride;
	d->total_bytes = 0;
	for (int k = 0; k < DATASET_KINDS; k++) {
		d->kind_bytes[k] = d->listed->kind[k].bytes;
		d->total_bytes = u64_sum(d->total_bytes, d->kind_bytes[k]);
	}
	d->likely_bytes = d->total_bytes;
	free(d->drawn);
	d->drawn = NULL;
	d->elem = d->form.elem = elem_find("uint8");
	d->ndims = d->form.ndims = 1;
	d->dims[0] = d->form.dims[0] = of->samples ? u64_sum(of->payload, half) / of->samples : 0;
	d->form.samples = d->samples_per_file;
	d->form.bytes = d->max_file_bytes;
}

static void take_listed(struct dataset *d)
{
	d->max_sample_bytes = d->max_file_bytes = 0;
	for (int k = 0; k < DATASET_KINDS; k++) {
		const struct listed_kind *kind = &d->listed->kind[k];

		for (uint64_t i = 0; i < kind->files; i++) {
			const struct file_look *look = &kind->file[i].look;

			for (int r = 0; r < FILE_ROOMS; r++)
				if (look->room[r] > d->form.room[r])
					d->form.room[r] = look->room[r];
			if (look->most_bytes > d->max_sample_bytes)
				d->max_sample_bytes = look->most_bytes;
			if (kind->file[i].bytes > d->max_file_bytes)
				d->max_file_bytes = kind->file[i].bytes;
		}
	}
	take_totals(d);
}

struct listed_totals dataset_listed_totals(const struct dataset *d)
{
	struct listed_totals t = {.max_sample_bytes = d->max_sample_bytes,
				  .max_file_bytes = d->max_file_bytes};

	for (int k = 0; k < DATASET_KINDS; k++) {
		t.samples[k] = d->listed->kind[k].samples;
		t.bytes[k] = d->listed->kind[k].bytes;
		t.payload[k] = d->listed->kind[k].payload;
	}
	return t;
}

void dataset_recall(struct dataset *d, const struct listed_totals *t, struct listed_name *name,
		    size_t names)
{
	struct listed_files *l = xcalloc(1, sizeof(*l));

	listed_release(d->listed);
	d->listed = l;
	l->stride = d->samples_per_file;
	l->name = name;
	l->names = names;
	for (int k = 0; k < DATASET_KINDS; k++)
		l->kind[k] = (struct listed_kind){.files = d->files[k],
						  .samples = t->samples[k],
						  .bytes = t->bytes[k],
						  .payload = t->payload[k]};
	d->max_sample_bytes = t->max_sample_bytes;
	d->max_file_bytes = t->max_file_bytes;
	take_totals(d);
}

int dataset_find(struct dataset *d, struct store *store, unsigned threads,
		 const struct stop_flag *stop, _Atomic uint64_t *done, struct err *e)
{
	struct names names = {.d = d, .stop = stop};
	struct finding finding = {.d = d};
	struct each_job job = {.dataset = d,
			       .store = store,
			       .threads = threads,
			       .stop = stop,
			       .moved = done,
			       .file = look_at,
			       .arg = &finding};
	int rc;

	if (!d->format->look)
		return err_set(e, ERR_USAGE,
			       "dataset.names listed does not go with dataset.format %s",
			       d->format->is.name);
	listed_release(d->listed);
	d->listed = xcalloc(1, sizeof(*d->listed));
	rc = list_all(&names, store, e);
	if (rc == 0)
		take_names(d->listed, &names);
	release_names(&names);
	for (int k = 0; k < DATASET_KINDS; k++)
		d->files[k] = d->name_total[k] = d->listed->kind[k].files;
	if (rc == 0)
		rc = each_file(&job, e);
	if (rc == 0)
		rc = count(d, e);
	if (rc < 0) {
		listed_release(d->listed);
		d->listed = NULL;
		return rc;
	}
	d->listed->index_bytes = finding.index_bytes;
	take_listed(d);
	return 0;
}

int dataset_found_agrees(const struct dataset *d, struct err *e)
{
	const struct workload *w = d->workload;
	const struct listed_kind *train = &d->listed->kind[DATASET_TRAIN],
				 *eval = &d->listed->kind[DATASET_EVAL];

	if ((uint64_t)w->dataset.num_files_train == train->files &&
	    (uint64_t)w->dataset.num_files_eval == eval->files &&
	    (uint64_t)w->dataset.num_samples_per_file == d->listed->stride &&
	    (uint64_t)workload_samples(w, false) == train->samples &&
	    (uint64_t)workload_samples(w, true) == eval->samples)
		return 0;
	return err_set(e, ERR_USAGE,
		       "'%.200s' has %" PRIu64 " training files with %" PRIu64
		       " samples and %" PRIu64 " evaluation files with %" PRIu64
		       ", of which one has at most %" PRIu64
		       ", but the workload says otherwise: set dataset.num_files_train=%" PRIu64
		       " dataset.num_files_eval=%" PRIu64 " dataset.num_samples_per_file=%" PRIu64
		       " dataset.num_samples_train=%" PRIu64 " dataset.num_samples_eval=%" PRIu64
		       ", or name the folder with --data, which does",
		       d->folder, train->files, train->samples, eval->files, eval->samples,
		       d->listed->stride, train->files, eval->files, d->listed->stride,
		       train->differ ? train->samples : 0, eval->differ ? eval->samples : 0);
}

const struct sample_counts *dataset_counts(const struct dataset *d, enum dataset_kind kind)
{
	return d->listed && d->listed->kind[kind].differ ? &d->listed->kind[kind].counts : NULL;
}

uint64_t dataset_file_samples(const struct dataset *d, enum dataset_kind kind, uint64_t index)
{
	return samples_in_file(dataset_counts(d, kind), index, d->samples_per_file);
}

void listed_release(struct listed_files *l)
{
	if (!l)
		return;
	for (int k = 0; k < DATASET_KINDS; k++) {
		for (uint64_t i = 0; l->kind[k].file && i < l->kind[k].files; i++) {
			free(l->kind[k].file[i].path);
			free(l->kind[k].file[i].look.index);
		}
		free(l->kind[k].file);
		free(l->kind[k].counts.first);
	}
	for (size_t i = 0; i < l->names; i++)
		free(l->name[i].path);
	free(l->name);
	free(l);
}
