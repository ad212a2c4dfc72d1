/* Generates a dataset: what is there, is there room, write what is missing, say that it is
 * complete. */
#include "dataset/generate.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/folder_lock.h"
#include "base/log.h"
#include "base/str.h"
#include "dataset/each.h"
#include "dataset/folder_file.h"
#include "dataset/listing.h"
#include "dataset/manifest.h"
#include "dataset/presence.h"
#include "os/sysinfo.h"
#include "store/batch.h"

/* Besides the files: the manifest, its predecessor, folders. */
#define SPARE_BYTES (1u << 20)
#define SPARE_FILES 4u
/* Looks for what another process wrote, a tenth of a second apart. */
#define FIND_TRIES 30
/* One generator a folder at a time. */
#define LOCK_NAME ".stoker_generate.lock"

struct folder_lock {
	struct file_lock file;
	bool made; /* the folder is new: it is removed again if it stays empty */
};

struct generation {
	const struct dataset *d;
	struct stoppable_store store; /* for the files */
	struct io io;                 /* for all else: a manifest begun is finished */
	const struct generate_options *o;
	struct generate_progress *progress;
	struct generate_progress own_progress; /* when the caller gives none */
	struct folder_lock lock;
	struct buf leftovers; /* paths of temporary files, each ended by a NUL */
	bool any;             /* entries that are no temporary files */
	bool keep;            /* whole files with our names are ours */
	struct {
		_Atomic uint64_t there_files, there_bytes, whole_files, whole_bytes;
	} counted;                         /* by the threads of the survey */
	uint64_t there_files, there_bytes; /* with our names, whatever their size */
	uint64_t whole_files, whole_bytes;
};

/* ---- the lock ---- */

/* Takes the lock of the folder, which is created. -EBUSY when another process holds it; the
 * sentence names that one. Negative too where that cannot be told. On a store without files, or
 * where the file system has no locks or cannot be written, nothing is held and 0 is returned: what
 * cannot be written fails by itself. The lock ends with the process at the latest; its file is
 * removed with it, and one that was left does not matter. */
static int lock_folder(struct folder_lock *l, struct store *s, const char *folder, struct err *e)
{
	char path[sizeof(l->file.path)], who[FILE_LOCK_WHO_MAX];
	struct store_stat st;
	int rc;

	l->file.fd = -1;
	l->made = store_stat_path(s, folder, &st, NULL) == -ENOENT;
	if (!(store_base_flags(s) & STORE_HAS_FILES) ||
	    (size_t)snprintf(path, sizeof(path), "%s/" LOCK_NAME, folder) >= sizeof(path) ||
	    store_mkdirs(s, folder, NULL) < 0)
		return 0;
	rc = file_lock(&l->file, path, who, e);
	if (rc != -EBUSY)
		return rc;
	return err_set(e, -EBUSY,
		       "another program is generating a dataset in '%s'%s%s: wait for it to "
		       "finish, stop it, or choose another dataset.data_folder (lock file '%s')",
		       folder, who[0] ? ": " : "", who, path);
}

static void unlock_folder(struct folder_lock *l)
{
	if (l->file.fd < 0)
		return;
	file_unlock(&l->file);
	if (l->made) {
		*strrchr(l->file.path, '/') = '\0';
		rmdir(l->file.path);
	}
}

/* ---- files ---- */

static bool is_leader(const struct generation *g)
{
	return !g->o->together || g->o->together->rank == 0;
}

static int agree_on(const struct generation *g, int rc, struct err *e)
{
	return g->o->together ? comm_agree(g->o->together, rc, e) : rc;
}

/* All files, or this process's part of them. */
static struct each_job job_over(struct generation *g, bool mine)
{
	struct each_job job = {
		.dataset = g->d,
		.store = &g->store.base,
		.threads = g->o->threads,
		.stop = g->o->stop,
		.moved = &g->progress->moved,
		.arg = g,
	};

	if (mine && g->o->together) {
		job.part = g->o->together->rank;
		job.parts = g->o->together->size;
	}
	return job;
}

static int over_all_files(struct generation *g,
			  int (*file)(void *, enum dataset_kind, uint64_t, struct each_worker *,
				      struct err *),
			  struct err *e)
{
	struct each_job job = job_over(g, false);

	job.file = file;
	return each_file(&job, e);
}

static int note_entry(void *arg, const char *folder, const char *name, bool is_dir)
{
	struct generation *g = arg;

	atomic_fetch_add_explicit(&g->progress->moved, 1, memory_order_relaxed);
	if (!is_dir && name[0] == '.' && str_ends(name, ".part")) {
		buf_puts(&g->leftovers, folder);
		buf_putc(&g->leftovers, '/');
		buf_append(&g->leftovers, name, strlen(name) + 1);
	} else if (!is_dir) {
		g->any = true;
	}
	return 0;
}

static int list_folder(struct generation *g, struct err *e)
{
	int rc = 0;

	for (int k = 0; k < DATASET_KINDS && rc == 0; k++)
		rc = listing_each(g->d, g->io.store, (enum dataset_kind)k, note_entry, g, e);
	return rc;
}

/* Whether the file at w->path has the size it must have. A blob under its final name was whole, so
 * where the size depends on the content, its presence is enough. */
static int is_whole(const struct generation *g, enum dataset_kind kind, uint64_t index,
		    struct each_worker *w, struct store_stat *st, struct err *e)
{
	uint64_t want = dataset_file_bytes(g->d, kind, index);
	int rc = io_stat_path(&w->io, w->path, st, e);

	if (rc == -ENOENT)
		return -ENOENT;
	if (rc < 0)
		return rc;
	if (st->is_dir)
		return err_set(e, -EISDIR,
			       "'%s' is a folder, but the dataset needs a file of that name: "
			       "remove the folder",
			       w->path);
	return want == UINT64_MAX || st->bytes == want;
}

/* Relaxed: threads count, and who reads it later has joined them or only shows progress. */
static void count(_Atomic uint64_t *n, uint64_t more)
{
	atomic_fetch_add_explicit(n, more, memory_order_relaxed);
}

static void set_progress(_Atomic uint64_t *n, uint64_t value)
{
	atomic_store_explicit(n, value, memory_order_relaxed);
}

static int survey_file(void *arg, enum dataset_kind kind, uint64_t index, struct each_worker *w,
		       struct err *e)
{
	struct generation *g = arg;
	struct store_stat st;
	struct file_spec f;
	int sidecars, rc = is_whole(g, kind, index, w, &st, e);

	if (rc == -ENOENT)
		return 0;
	dataset_file_spec(g->d, kind, index, &f);
	sidecars = rc < 0 ? rc : sidecars_whole(g->d, &w->io, w->path, &f, &st.bytes, e);
	if (sidecars < 0)
		return sidecars;
	count(&g->counted.there_files, 1);
	count(&g->counted.there_bytes, st.bytes);
	if (rc == 1 && sidecars == 1) {
		count(&g->counted.whole_files, 1);
		count(&g->counted.whole_bytes, st.bytes);
	}
	return 0;
}

static int remove_file(void *arg, enum dataset_kind kind, uint64_t index, struct each_worker *w,
		       struct err *e)
{
	int rc = store_remove(w->io.store, w->path, e);

	(void)arg;
	(void)kind;
	(void)index;
	return rc == -ENOENT ? 0 : rc;
}

static int write_file(void *arg, enum dataset_kind kind, uint64_t index, struct each_worker *w,
		      struct err *e)
{
	struct generation *g = arg;
	struct store_batch *batch = w->own;
	struct store_stat st;
	struct file_spec f;
	int rc;

	dataset_file_spec(g->d, kind, index, &f);
	if (g->keep && g->any) {
		rc = is_whole(g, kind, index, w, &st, e);
		if (rc == 1) {
			count(&g->progress->files_skipped, 1);
			return sidecars_write(g->d, w, batch, &f, true, e);
		}
		if (rc < 0 && rc != -ENOENT)
			return rc;
	}
	rc = sidecars_write(g->d, w, batch, &f, false, e);
	if (rc == 0)
		rc = store_batch_open(batch, &w->io, w->path, w->blob, e);
	if (rc < 0)
		return rc;
	rc = format_write(g->d->format, &w->io, w->blob, w->path, &f, &g->d->content, w->scratch,
			  w->scratch_bytes, e);
	return store_batch_close(batch, &w->io, w->blob, rc, &g->progress->files_done, e);
}

static int begin_batch(void *arg, struct each_worker *w, struct err *e)
{
	struct generation *g = arg;
	struct store_batch *batch = NULL;
	int rc = store_batch_new(&batch, &g->store.base, g->o->threads, e);

	w->own = batch;
	return rc;
}

/* What was written before a failure is not worth a sync that may fail too. */
static int end_batch(void *arg, struct each_worker *w, int rc, struct err *e)
{
	(void)arg;
	if (rc == 0)
		rc = store_batch_commit(w->own, e);
	store_batch_free(w->own);
	return rc;
}

static int write_files(struct generation *g, struct err *e)
{
	struct each_job job = job_over(g, true);

	job.scratch_bytes = FORMAT_WRITE_SCRATCH;
	job.file = write_file;
	job.begin = begin_batch;
	job.end = end_batch;
	return each_file(&job, e);
}

/* What is to be written, against what can be; files that are there make room by being replaced. */
static int check_space(struct generation *g, struct err *e)
{
	uint64_t files = g->d->files[DATASET_TRAIN] + g->d->files[DATASET_EVAL];
	uint64_t free_bytes, free_files, bytes = 0;
	char need[32], have[32];
	int rc = store_space(g->io.store, g->d->folder, &free_bytes, &free_files, e);

	if (rc < 0)
		return rc;
	if (g->d->likely_bytes > g->there_bytes)
		bytes = g->d->likely_bytes - g->there_bytes;
	files -= g->there_files < files ? g->there_files : files;
	if (__builtin_mul_overflow(files, 1 + (uint64_t)g->d->format->sidecars, &files))
		files = UINT64_MAX / 2;
	for (int k = 0; k < DATASET_KINDS; k++)
		files += g->any ? 0 : g->d->subfolders[k];
	if (free_bytes != UINT64_MAX && bytes > 0 && bytes + SPARE_BYTES > free_bytes)
		return err_set(e, -ENOSPC,
			       "the dataset needs %s (%" PRIu64
			       " bytes) in '%s', but only %s (%" PRIu64
			       " bytes) are free: free space, or choose another "
			       "dataset.data_folder, or fewer or smaller files "
			       "(stoker run --small: at most 4 GB)",
			       str_bytes((double)bytes, need, sizeof(need)), bytes, g->d->folder,
			       str_bytes((double)free_bytes, have, sizeof(have)), free_bytes);
	if (free_files != UINT64_MAX && files > 0 && files + SPARE_FILES > free_files)
		return err_set(e, -ENOSPC,
			       "the dataset needs %" PRIu64
			       " more files in '%s', but the file system has room for only %" PRIu64
			       ": remove files, or use fewer files with more samples each",
			       files, g->d->folder, free_files);
	return 0;
}

static int over_folders(struct generation *g,
			int (*fn)(struct store *s, const char *path, struct err *e), struct err *e)
{
	char path[DATASET_PATH_MAX];
	int rc = 0;

	for (int k = 0; k < DATASET_KINDS && rc == 0; k++) {
		uint64_t subs = g->d->subfolders[k];

		for (uint64_t i = 0; i < (subs ? subs : 1) && rc == 0; i++) {
			rc = dataset_folder(g->d, (enum dataset_kind)k, i, path, sizeof(path), e);
			if (rc == 0)
				rc = fn(g->io.store, path, e);
			if (rc == 0)
				rc = sidecar_folders(g->d, g->io.store, path, fn, e);
		}
		if (rc == 0 && subs) {
			snprintf(path, sizeof(path), "%s/%s", g->d->folder, dataset_kind_folder[k]);
			rc = fn(g->io.store, path, e);
		}
	}
	return rc < 0 ? rc : fn(g->io.store, g->d->folder, e);
}

static int sync_folders(struct generation *g, struct err *e)
{
	AUTO_FREE char *parent = path_dirname(g->d->folder);
	int rc = over_folders(g, store_sync_dir, e);

	/* The folder's own name. What lies above may not even be ours to open. */
	store_sync_dir(g->io.store, parent, NULL);
	return rc;
}

static int remove_leftovers(struct generation *g, struct err *e)
{
	for (size_t at = 0; at < g->leftovers.len; at += strlen(g->leftovers.data + at) + 1) {
		int rc = store_remove(g->io.store, g->leftovers.data + at, e);

		if (rc < 0 && rc != -ENOENT)
			return rc;
	}
	return 0;
}

/* Makes the folders; after this, a file with one of our names is ours. The manifest says CLEARING
 * until then, so that an interruption does not leave other files of the right size to be taken for
 * ours. */
static int take_names(struct generation *g, struct err *e)
{
	int rc = store_mkdirs(g->io.store, g->d->folder, e);

	/* first of all: where a store cannot write, nothing else is left behind */
	if (rc == 0)
		rc = manifest_write(&g->io, g->d, g->keep ? MANIFEST_WRITING : MANIFEST_CLEARING,
				    e) ?:
		     over_folders(g, store_mkdirs, e) ?:
		     remove_leftovers(g, e);
	if (rc < 0 || g->keep)
		return rc;
	if (g->any && g->there_files)
		rc = over_all_files(g, remove_file, e);
	if (rc == 0)
		rc = sync_folders(g, e) ?: manifest_write(&g->io, g->d, MANIFEST_WRITING, e);
	g->there_files = 0;
	g->any = false;
	g->keep = true;
	return rc;
}

static void read_manifest(struct generation *g, struct manifest *m, int *rc, struct err *e)
{
	struct err why = {0};

	*rc = manifest_read(&g->io, g->d->folder, m, &why);
	if (*rc == ERR_DATA) {
		log_warning("%s; it is replaced", why.text);
		*rc = 0;
	} else if (*rc < 0 && e) {
		*e = why;
	}
}

static void warn_replaced(const struct generation *g, const struct manifest *m,
			  const struct buf *why)
{
	unsigned long long n = g->there_files;

	if (m->found)
		log_warning(
			"'%s' contains a different dataset (%s); %llu of its files have the same "
			"names as files of the new one and are replaced, the others are kept",
			g->d->folder, why->data ? why->data : "", n);
	else if (n)
		log_warning("'%s' contains %llu files with names of this dataset but no manifest; "
			    "they are replaced",
			    g->d->folder, n);
}

static uint64_t counted(_Atomic uint64_t *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

static int count_files(struct generation *g, struct err *e)
{
	int rc = over_all_files(g, survey_file, e);

	g->there_files = counted(&g->counted.there_files);
	g->there_bytes = counted(&g->counted.there_bytes);
	g->whole_files = counted(&g->counted.whole_files);
	g->whole_bytes = counted(&g->counted.whole_bytes);
	assert(rc < 0 || (g->whole_files <= g->there_files && g->whole_bytes <= g->there_bytes));
	return rc;
}

/* Decides which existing files are kept. 1: all, and there is nothing to write. */
static int survey_folder(struct generation *g, struct err *e)
{
	uint64_t files = g->d->files[DATASET_TRAIN] + g->d->files[DATASET_EVAL];
	struct buf why = {0};
	struct manifest m;
	uint64_t listed = 0;
	bool same;
	int rc;

	rc = lock_folder(&g->lock, g->io.store, g->d->folder, e);
	if (rc < 0)
		return rc;
	read_manifest(g, &m, &rc, e);
	if (rc == 0)
		rc = list_folder(g, e);
	if (rc == 0 && g->any)
		rc = count_files(g, e);
	if (rc < 0)
		return rc;
	same = m.found && manifest_matches(&m, g->d, &why);
	g->keep = same && m.state != MANIFEST_CLEARING;
	if (!same)
		warn_replaced(g, &m, &why);
	buf_release(&why);
	set_progress(&g->progress->files_total, files);
	set_progress(&g->progress->bytes_total,
		     g->d->total_bytes == UINT64_MAX
			     ? 0
			     : g->d->total_bytes - (g->keep ? g->whole_bytes : 0));
	if (!g->keep || !m.complete || g->whole_files < files || g->leftovers.len ||
	    folder_file_verify(g->d, g->io.store, &listed, NULL) < 0)
		return 0;
	set_progress(&g->progress->files_skipped, files);
	return 1;
}

/* 1: nothing is to be written. */
static int prepare_folder(struct generation *g, struct err *e)
{
	int rc = survey_folder(g, e);

	if (rc != 0)
		return rc;
	return check_space(g, e) ?: take_names(g, e);
}

static int complete_folder(struct generation *g, struct err *e)
{
	struct dataset made = *g->d;
	/* not through g->store: its bytes are none of the files' */
	int rc = folder_file_write(g->d, g->io.store, e) ?: sync_folders(g, e);

	if (rc == 0 && made.total_bytes == UINT64_MAX)
		rc = file_sizes_look(&made, g->io.store, e);
	return rc < 0 ? rc : manifest_write(&g->io, &made, MANIFEST_COMPLETE, e);
}

/* The folder must be the one in which rank 0 has just begun: its manifest is there. A client of a
 * network file system may need a moment to see it. */
static int find_begun(struct generation *g, struct err *e)
{
	for (int i = 0; i < FIND_TRIES; i++) {
		struct manifest m;

		if (manifest_read(&g->io, g->d->folder, &m, NULL) == 0 && m.found && !m.complete &&
		    manifest_matches(&m, g->d, NULL))
			return 0;
		if (stop_is_set(g->o->stop))
			break;
		clock_sleep_until(clock_now_ns() + NS_PER_S / 10);
	}
	return err_set(e, ERR_DATA,
		       "'%s' is not the folder in which process 0 started to generate the dataset: "
		       "use a folder that all hosts share, or run 'stoker generate' on each host",
		       g->d->folder);
}

/* Runs a part in which this process uses the storage and waits for no other process. */
static int asking(struct generation *g, int (*part)(struct generation *g, struct err *e),
		  struct err *e)
{
	int rc;

	atomic_fetch_add_explicit(&g->progress->moved, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&g->progress->asking, 1, memory_order_relaxed);
	rc = part(g, e);
	atomic_fetch_sub_explicit(&g->progress->asking, 1, memory_order_relaxed);
	return rc;
}

static int generate(struct generation *g, struct err *e)
{
	struct {
		bool done, keep, any;
	} decided = {0};
	int rc = is_leader(g) ? asking(g, prepare_folder, e) : 0;

	decided.done = rc == 1;
	decided.keep = g->keep;
	decided.any = g->any;
	rc = agree_on(g, rc < 0 ? rc : 0, e);
	if (rc == 0 && g->o->together)
		rc = comm_broadcast(g->o->together, 0, &decided, sizeof(decided));
	if (rc < 0 || decided.done)
		return rc;
	g->keep = decided.keep;
	g->any = decided.any;
	rc = agree_on(g, is_leader(g) ? 0 : asking(g, find_begun, e), e);
	if (rc < 0)
		return rc;
	rc = agree_on(g, asking(g, write_files, e), e);
	if (rc == 0)
		rc = agree_on(g, is_leader(g) ? asking(g, complete_folder, e) : 0, e);
	return rc;
}

/* What the format cannot hold exactly. */
static void warn_of_sizes(const struct dataset *d)
{
	if (d->sizes_missed)
		log_warning("%llu of %llu files are not exactly as large as recorded, which %s "
			    "files cannot be: the farthest is off by %llu bytes",
			    (unsigned long long)d->sizes_missed,
			    (unsigned long long)(d->files[DATASET_TRAIN] + d->files[DATASET_EVAL]),
			    d->format->is.name, (unsigned long long)d->sizes_missed_most);
}

int dataset_generate(const struct dataset *d, struct store *store, const struct generate_options *o,
		     struct err *e)
{
	struct generation g = {.d = d, .o = o, .lock = {.file.fd = -1}};
	struct err why = {0};
	int rc;

	if (d->workload->dataset.names == NAMES_LISTED)
		return err_set(e, ERR_USAGE,
			       "dataset.names=listed is for files that others wrote: leave it out "
			       "to generate a dataset");
	g.progress = o->progress ? o->progress : &g.own_progress;
	stoppable_init(&g.store, store, o->stop, &g.progress->bytes_done);
	g.io.store = store;
	if (!o->together || o->together->rank == 0)
		warn_of_sizes(d);
	rc = generate(&g, &why);
	unlock_folder(&g.lock);
	buf_release(&g.leftovers);
	if (rc < 0 && e)
		*e = why;
	return rc;
}

/* Removing a dataset by its exact names: a folder may hold more than what was generated. */

static int remove_blob(void *arg, enum dataset_kind kind, uint64_t index, struct each_worker *w,
		       struct err *e)
{
	const struct dataset *d = arg;
	struct store *s = w->io.store;
	int rc = store_remove(s, w->path, e);

	(void)kind;
	(void)index;
	return rc == -ENOENT || rc == 0 ? sidecars_remove(d, s, w->path, e) : rc;
}

static int remove_if_empty(struct store *s, const char *path, struct err *e)
{
	(void)e;
	store_remove(s, path, NULL);
	return 0;
}

/* Subfolders, then train and valid, then the dataset's own folder; those with other files stay. */
static void remove_folders(const struct dataset *d, struct store *s)
{
	char path[DATASET_PATH_MAX];

	for (int kind = 0; kind < DATASET_KINDS; kind++) {
		for (uint64_t i = 0; d->subfolders[kind] > 1 && i < d->subfolders[kind]; i++)
			if (dataset_folder(d, (enum dataset_kind)kind, i, path, sizeof(path),
					   NULL) == 0) {
				sidecar_folders(d, s, path, remove_if_empty, NULL);
				store_remove(s, path, NULL);
			}
		snprintf(path, sizeof(path), "%s/%s", d->folder, dataset_kind_folder[kind]);
		sidecar_folders(d, s, path, remove_if_empty, NULL);
		store_remove(s, path, NULL);
	}
	store_remove(s, d->folder, NULL);
}

int dataset_remove(const struct dataset *d, struct store *store, struct err *e)
{
	struct each_job job = {
		.dataset = d,
		.store = store,
		.threads = host_threads(),
		.file = remove_blob,
		.arg = (void *)(uintptr_t)d,
	};
	AUTO_FREE char *manifest = path_join(d->folder, MANIFEST_NAME);
	int rc;

	/* a workload that says so is refused when it is loaded */
	assert(d->workload->dataset.names != NAMES_LISTED);
	/* the manifest first: what is left after a failure must not look like a dataset */
	rc = store_remove(store, manifest, e);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	rc = each_file(&job, e);
	if (rc == 0)
		rc = folder_file_remove(d, store, e);
	if (rc == 0)
		remove_folders(d, store);
	return rc;
}
