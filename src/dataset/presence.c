/* Whether a workload's dataset is on the store, found out without reading it. */
#include "dataset/presence.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "dataset/each.h"
#include "dataset/folder_file.h"
#include "dataset/listed.h"
#include "dataset/listing.h"
#include "dataset/manifest.h"

/* Compares all of a dataset with what it must be. */

struct verification {
	const struct dataset *d;
	pthread_mutex_t lock; /* over `out` and `first_number` */
	uint64_t first_number;
	struct verify_result *out;
};

static uint64_t compared_bytes(struct verification *v, enum dataset_kind kind, uint64_t index,
			       struct each_worker *w)
{
	uint64_t bytes = dataset_file_bytes(v->d, kind, index);
	struct store_stat st;

	if (bytes != UINT64_MAX)
		return bytes;
	return io_stat_path(&w->io, w->path, &st, NULL) == 0 ? st.bytes : 0;
}

static int verify_file(void *arg, enum dataset_kind kind, uint64_t index, struct each_worker *w,
		       struct err *e)
{
	struct verification *v = arg;
	struct verify_result *out = v->out;
	struct file_spec f;
	struct err why = {0};
	uint64_t bytes = 0;
	int rc;

	dataset_file_spec(v->d, kind, index, &f);
	rc = format_verify(v->d->format, &w->io, w->path, &f, &v->d->content, w->scratch,
			   w->scratch_bytes, &why);
	if (rc < 0 && rc != ERR_CANCELED)
		err_name(rc, &why, "'%s'", w->path);
	if (rc >= 0)
		rc = sidecars_verify(v->d, w, &f, &why);
	if (rc == ERR_CANCELED)
		return err_set(e, rc, "%s", why.text);
	if (rc >= 0)
		bytes = compared_bytes(v, kind, index, w) + sidecar_bytes(v->d, &f);
	pthread_mutex_lock(&v->lock);
	out->files++;
	out->bytes += bytes;
	if (rc < 0 && (out->bad_files++ == 0 || w->number < v->first_number)) {
		v->first_number = w->number;
		out->first = why;
	}
	pthread_mutex_unlock(&v->lock);
	return 0;
}

int dataset_verify(const struct dataset *d, struct store *store, unsigned threads,
		   const struct stop_flag *stop, _Atomic uint64_t *progress,
		   struct verify_result *out, struct err *e)
{
	struct verification v = {.d = d, .out = out};
	struct stoppable_store watched;
	struct each_job job = {
		.dataset = d,
		.store = &watched.base,
		.threads = threads,
		.scratch_bytes = FORMAT_WRITE_SCRATCH,
		.stop = stop,
		.file = verify_file,
		.arg = &v,
	};
	int rc;

	memset(out, 0, sizeof(*out));
	stoppable_init(&watched, store, stop, progress);
	pthread_mutex_init(&v.lock, NULL);
	rc = each_file(&job, e);
	pthread_mutex_destroy(&v.lock);
	if (rc == 0 && out->bad_files == 0)
		rc = folder_file_verify(d, &watched.base, &out->bytes, e);
	if (rc < 0 || out->bad_files == 0)
		return rc;
	if (out->bad_files == 1)
		return err_set(e, ERR_DATA, "%s", out->first.text);
	return err_set(e, ERR_DATA, "%s (and %" PRIu64 " more of %" PRIu64 " files are wrong)",
		       out->first.text, out->bad_files - 1, out->files);
}

/* The fewest files whose size is asked for that are worth the start of a thread. */
#define STATS_OF_THREAD 32
#define THREADS_MAX 16

#define WAY_OUT "generate it with 'stoker generate' or workflow.generate_data=true"

struct check {
	struct dataset *d;
	struct io io;
	int kinds; /* that matter */
	struct presence_result *out;
	struct presence_options options;
	struct listing_watch watch;
	/* Of every file whose size is asked for: which file of which file system it is. */
	struct identity {
		uint64_t device, inode;
	} * id;
	uint64_t ids;
};

uint64_t presence_looks(const struct workload *w, uint64_t files)
{
	uint64_t every = (uint64_t)w->dataset.listing_validation_interval;
	uint64_t most = every ? PRESENCE_LOOKS_MAX : PRESENCE_STATS_MAX;
	/* the first, the last, and one in so many */
	uint64_t n = every > 1 ? files / every + 2 : files;

	n = n < files ? n : files;
	return n < most ? n : most;
}

static const char *kind_word(enum dataset_kind kind)
{
	return kind == DATASET_TRAIN ? "training" : "evaluation";
}

/* Fewer files than the workload asks for: how many, and which is the first that is not there. */
static int missing_files(const struct check *c, enum dataset_kind kind, uint64_t found,
			 uint64_t first_missing, struct err *e)
{
	char path[DATASET_PATH_MAX];
	int rc = dataset_path(c->d, kind, first_missing, path, sizeof(path), e);

	if (rc < 0)
		return rc;
	return err_set(e, -ENOENT,
		       "there are not enough %s files: %" PRIu64 " of the %" PRIu64
		       " files of the workload exist in '%s'; the first missing file is '%s'. "
		       "Check dataset.data_folder and dataset.num_files_%s, or " WAY_OUT,
		       kind_word(kind), found, c->d->files[kind], c->d->folder, path,
		       kind == DATASET_TRAIN ? "train" : "eval");
}

static int count_missing(const struct check *c, enum dataset_kind kind, struct err *e)
{
	uint64_t found, first;
	int rc = listing_missing(c->d, c->io.store, kind, &c->watch, &found, &first, e);

	if (rc < 0)
		return rc;
	/* The listing and a stat may disagree on a store that lags behind. */
	if (first == c->d->files[kind])
		return err_set(e, -ENOENT,
			       "some %s files listed in '%s' cannot be found: the dataset is being "
			       "changed, one is a symbolic link that leads to nothing, or a file "
			       "is not in the subfolder that its number "
			       "requires (dataset.num_subfolders_%s)",
			       kind_word(kind), c->d->folder,
			       kind == DATASET_TRAIN ? "train" : "eval");
	return missing_files(c, kind, found, first, e);
}

/* How far a size may be from ours: nothing where we wrote it, else a header's or an index's worth.
 */
static uint64_t tolerance(const struct check *c, uint64_t want)
{
	uint64_t small = 256 + want / 8;

	if (c->out->how == PRESENCE_MANIFEST || c->out->how == PRESENCE_LISTED)
		return 0;
	if (want / 64 > 4096)
		return want / 64;
	return small < 4096 ? small : 4096;
}

/* One of the files whose size is asked for. -ENOENT when it is not there. */
static int check_file(const struct check *c, const struct io *io, enum dataset_kind kind,
		      uint64_t index, struct identity *id, uint64_t *odd, uint64_t *bytes,
		      struct err *e)
{
	uint64_t want = dataset_file_bytes(c->d, kind, index), off;
	char path[DATASET_PATH_MAX];
	struct store_stat st;
	int rc = dataset_path(c->d, kind, index, path, sizeof(path), e);

	if (rc == 0)
		rc = io_stat_path(io, path, &st, e);
	if (rc < 0)
		return rc == -ENOTDIR ? -ENOENT : rc;
	*id = (struct identity){.device = st.device, .inode = st.inode};
	*bytes += st.bytes;
	if (want == UINT64_MAX && !st.is_dir)
		return 0;
	off = st.bytes > want ? st.bytes - want : want - st.bytes;
	*odd += off != 0;
	if (!st.is_dir && off <= tolerance(c, want))
		return 0;
	return err_set(e, ERR_DATA,
		       "'%s' has %" PRIu64 " bytes, but the workload requires %" PRIu64
		       ": it was generated with other settings or is truncated. Correct the "
		       "dataset section of the workload, or " WAY_OUT "%s",
		       path, st.bytes, want,
		       c->d->format->is.flags & FORMAT_LISTED
			       ? ". Files that others wrote are read with dataset.names=listed"
			       : "");
}

/* The threads that ask for sizes take places in turn; the failure with the lowest number is
 * reported. */
struct sizes {
	const struct check *c;
	enum dataset_kind kind;
	uint64_t n;
	struct identity *id; /* n of them */
	_Atomic uint64_t next;
	_Atomic int failed;
};

struct sizer {
	struct sizes *job;
	pthread_t id;
	uint64_t at, checked, odd, bytes;
	int rc;
	struct err err;
};

static void *ask_sizes(void *arg)
{
	struct sizer *t = arg;
	struct sizes *j = t->job;
	const struct presence_options *o = &j->c->options;

	/* relaxed: places only need to differ, and results are read after the threads were joined
	 */
	while (t->rc == 0 && !atomic_load_explicit(&j->failed, memory_order_relaxed)) {
		t->at = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed);
		if (t->at >= j->n)
			break;
		if (stop_is_set(o->stop))
			t->rc = err_set(&t->err, ERR_CANCELED, "stopped on request");
		else
			t->rc = check_file(j->c, &j->c->io, j->kind,
					   each_spread(j->c->d, j->kind, j->n, t->at),
					   &j->id[t->at], &t->odd, &t->bytes, &t->err);
		t->checked += t->rc == 0;
		if (o->done)
			atomic_fetch_add_explicit(o->done, 1, memory_order_relaxed);
	}
	if (t->rc < 0)
		atomic_store_explicit(&j->failed, 1, memory_order_relaxed);
	return NULL;
}

static int check_kind(struct check *c, enum dataset_kind kind, uint64_t *odd, struct err *e)
{
	struct sizes job = {.c = c, .kind = kind};
	struct sizer t[THREADS_MAX] = {0};
	const struct sizer *first = NULL;
	unsigned n = c->options.threads, started = 1;

	job.n = presence_looks(c->d->workload, c->d->files[kind]);
	n = n > THREADS_MAX ? THREADS_MAX : n;
	if (n > job.n / STATS_OF_THREAD)
		n = (unsigned)(job.n / STATS_OF_THREAD);
	c->d->seen_files[kind] = c->d->seen_bytes[kind] = 0;
	job.id = c->id + c->ids;
	c->ids += job.n;
	t[0].job = &job;
	for (; started < n; started++) {
		t[started].job = &job;
		/* fewer threads than wanted find the same */
		if (thread_start(&t[started].id, ask_sizes, &t[started], 0, "check", NULL) < 0)
			break;
	}
	ask_sizes(&t[0]);
	for (unsigned i = 0; i < started; i++) {
		if (i > 0)
			pthread_join(t[i].id, NULL);
		c->out->sizes_checked += t[i].checked;
		*odd += t[i].odd;
		c->d->seen_files[kind] += t[i].checked;
		c->d->seen_bytes[kind] += t[i].bytes;
		if (t[i].rc < 0 && (!first || t[i].at < first->at))
			first = &t[i];
	}
	if (!first)
		return 0;
	if (first->rc == -ENOENT)
		return count_missing(c, kind, e);
	if (e)
		*e = first->err;
	return first->rc;
}

static int by_identity(const void *a, const void *b)
{
	const struct identity *x = a, *y = b;

	if (x->device != y->device)
		return x->device > y->device ? 1 : -1;
	return (x->inode > y->inode) - (x->inode < y->inode);
}

/* Links, hard or symbolic, are names of one file. */
static void count_distinct(struct check *c)
{
	struct survey *s = &c->out->survey;

	qsort(c->id, c->ids, sizeof(*c->id), by_identity);
	for (uint64_t i = 0; i < c->ids; i++) {
		/* not every store numbers its files */
		if (c->id[i].inode == 0)
			continue;
		s->named++;
		s->distinct += i == 0 || by_identity(&c->id[i], &c->id[i - 1]) != 0;
	}
}

static int check_sizes(struct check *c, uint64_t *odd, struct err *e)
{
	uint64_t most = 0;
	int rc = 0;

	for (int k = 0; k < c->kinds; k++)
		most += presence_looks(c->d->workload, c->d->files[k]);
	c->id = try_calloc(most + 1, sizeof(*c->id), "the identities of files", e);
	if (!c->id)
		return -ENOMEM;
	for (int k = 0; k < c->kinds && rc == 0; k++) {
		rc = check_kind(c, (enum dataset_kind)k, odd, e);
		c->out->files_found += c->d->files[k];
	}
	if (rc == 0)
		count_distinct(c);
	free(c->id);
	c->id = NULL;
	return rc;
}

static int wrong_manifest(const struct check *c, const char *why, struct err *e)
{
	return err_set(e, ERR_DATA,
		       "'%s' contains a different dataset than the workload describes: %s. Correct "
		       "the dataset section of the workload or dataset.data_folder, or " WAY_OUT,
		       c->d->folder, why);
}

static int take_larger(struct check *c, const struct manifest *m, struct err *e)
{
	uint64_t total[DATASET_KINDS];

	for (int k = 0; k < DATASET_KINDS; k++)
		total[k] = m->files[k] > c->d->files[k] ? m->files[k] : c->d->files[k];
	return dataset_set_name_total(c->d, total, e);
}

static int check_manifest(struct check *c, const struct manifest *m, struct err *e)
{
	struct buf why = {0};
	enum manifest_fit fit = manifest_compare(m, c->d, c->kinds > DATASET_EVAL, &why);
	uint64_t odd = 0;
	int rc = 0;

	c->out->how = PRESENCE_MANIFEST;
	if (fit == MANIFEST_OTHER)
		rc = wrong_manifest(c, why.data ? why.data : "", e);
	buf_release(&why);
	if (rc == 0 && !m->complete)
		rc = err_set(e, ERR_DATA,
			     "the generation of the dataset in '%s' was started at %s and not "
			     "completed: complete it with 'stoker generate' or "
			     "workflow.generate_data=true",
			     c->d->folder, m->created);
	if (rc == 0)
		rc = take_larger(c, m, e) ?: check_sizes(c, &odd, e);
	if (rc < 0)
		return rc;
	if (fit == MANIFEST_LARGER)
		snprintf(c->out->note, sizeof(c->out->note),
			 "the manifest matches; the dataset has %" PRIu64 " + %" PRIu64
			 " files, of which the first %" PRIu64 " + %" PRIu64 " are used",
			 m->files[DATASET_TRAIN], m->files[DATASET_EVAL],
			 c->d->files[DATASET_TRAIN],
			 c->kinds > DATASET_EVAL ? c->d->files[DATASET_EVAL] : 0);
	else
		snprintf(c->out->note, sizeof(c->out->note),
			 "the manifest matches, and so do the sizes of %" PRIu64 " files",
			 c->out->sizes_checked);
	return 0;
}

static int wrong_folders(const struct check *c, enum dataset_kind kind, struct err *e)
{
	return err_set(e, -ENOENT,
		       "'%s/%s' contains subfolders but no %s files: check "
		       "dataset.num_subfolders_%s, which is 0 or 1 in the workload",
		       c->d->folder, dataset_kind_folder[kind], kind_word(kind),
		       kind == DATASET_TRAIN ? "train" : "eval");
}

/* The N of "_of_N" of a dataset that no manifest describes: our own if those names are complete,
 * else the smallest larger one that has all the files asked for. */
static int find_total(const struct check *c, enum dataset_kind kind, uint64_t *total, struct err *e)
{
	struct listing_totals t;
	uint64_t own = 0;
	bool found = false;
	int rc = listing_totals(c->d, c->io.store, kind, &c->watch, &t, e);

	if (rc < 0)
		return rc;
	*total = c->d->files[kind];
	for (unsigned i = 0; i < t.n; i++) {
		if (t.of[i].total == c->d->files[kind])
			own = t.of[i].wanted;
		if (t.of[i].wanted < c->d->files[kind])
			continue;
		if (!found || t.of[i].total < *total)
			*total = t.of[i].total;
		found = true;
	}
	if (found)
		return 0;
	if (t.n == 0 && t.folders > 0 && c->d->subfolders[kind] == 0)
		return wrong_folders(c, kind, e);
	if (own == 0 && t.n > 0)
		return err_set(e, -ENOENT,
			       "there are not enough %s files in '%s': the workload needs %" PRIu64
			       ", but the files there belong to a dataset of %" PRIu64
			       ", of which %" PRIu64
			       " exist. Check dataset.num_files_%s, or " WAY_OUT,
			       kind_word(kind), c->d->folder, c->d->files[kind], t.of[0].total,
			       t.of[0].wanted, kind == DATASET_TRAIN ? "train" : "eval");
	return count_missing(c, kind, e);
}

static int check_names(struct check *c, struct err *e)
{
	uint64_t total[DATASET_KINDS] = {c->d->files[DATASET_TRAIN], c->d->files[DATASET_EVAL]};
	uint64_t odd = 0;
	int rc = 0;

	c->out->how = PRESENCE_SIZES;
	for (int k = 0; k < c->kinds && rc == 0; k++)
		if (c->d->files[k])
			rc = find_total(c, (enum dataset_kind)k, &total[k], e);
	if (rc == 0)
		rc = dataset_set_name_total(c->d, total, e) ?: check_sizes(c, &odd, e);
	if (rc < 0)
		return rc;
	snprintf(c->out->note, sizeof(c->out->note),
		 "the dataset has no manifest (it was generated by another program): names agree, "
		 "and so do the sizes of %" PRIu64 " files, %" PRIu64 " of them only approximately",
		 c->out->sizes_checked, odd);
	return 0;
}

/* What lies there is the dataset: dataset_find looked at each file. */
static int check_listed(struct check *c, struct err *e)
{
	const struct listed_files *l = c->d->listed;
	uint64_t odd = 0;
	int rc;

	c->out->how = PRESENCE_LISTED;
	rc = check_sizes(c, &odd, e);
	if (rc < 0)
		return rc;
	snprintf(c->out->note, sizeof(c->out->note),
		 "the dataset is the %" PRIu64 " + %" PRIu64 " %s files that lie in the folder; by "
		 "their own indexes they have %" PRIu64 " + %" PRIu64 " samples",
		 l->kind[DATASET_TRAIN].files, l->kind[DATASET_EVAL].files, c->d->format->is.name,
		 l->kind[DATASET_TRAIN].samples, l->kind[DATASET_EVAL].samples);
	return 0;
}

static int check_nothing(const struct check *c, struct err *e)
{
	if (!(c->d->format->is.flags & FORMAT_NO_IO))
		return err_set(e, ERR_USAGE,
			       "storage.store: the synthetic store keeps no data, but samples of "
			       "format %s are read from files: use another store, or "
			       "dataset.format=synthetic, which reads nothing",
			       c->d->format->is.name);
	c->out->how = PRESENCE_ASSUMED;
	snprintf(c->out->note, sizeof(c->out->note),
		 "the synthetic store keeps no data and format %s reads nothing: no files were "
		 "checked",
		 c->d->format->is.name);
	return 0;
}

int dataset_check(struct dataset *d, struct store *store, bool need_eval,
		  const struct presence_options *o, struct presence_result *out, struct err *e)
{
	struct check c = {.d = d, .io = {.store = store}, .out = out};
	struct manifest m;
	int rc;

	memset(out, 0, sizeof(*out));
	if (o) {
		c.options = *o;
		c.watch = (struct listing_watch){.stop = o->stop, .done = o->done};
	}
	c.kinds = need_eval ? DATASET_KINDS : DATASET_EVAL;
	if (store_base_flags(store) & STORE_KEEPS_NOTHING)
		return check_nothing(&c, e);
	if (d->listed)
		return check_listed(&c, e);
	rc = manifest_read(&c.io, d->folder, &m, e);
	if (rc < 0)
		return rc;
	rc = m.found ? check_manifest(&c, &m, e) : check_names(&c, e);
	return rc < 0 ? rc : folder_file_check(d, store, c.kinds, e);
}

int file_sizes_look(struct dataset *d, struct store *store, struct err *e)
{
	struct io io = {.store = store};
	char path[DATASET_PATH_MAX];
	int rc = 0;

	for (int k = 0; k < DATASET_KINDS; k++) {
		enum dataset_kind kind = (enum dataset_kind)k;
		uint64_t n = presence_looks(d->workload, d->files[k]);
		uint64_t bytes = 0;

		for (uint64_t i = 0; rc == 0 && i < n; i++) {
			struct store_stat st;

			rc = dataset_path(d, kind, each_spread(d, kind, n, i), path, sizeof(path),
					  e);
			if (rc == 0)
				rc = io_stat_path(&io, path, &st, e);
			if (rc == 0)
				bytes += st.bytes;
		}
		if (rc < 0)
			return rc;
		d->seen_files[k] = n;
		d->seen_bytes[k] = bytes;
	}
	return 0;
}
