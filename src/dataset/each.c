/* Threads that take files in turn from a shared number, and the files beside them. */
#include "dataset/each.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "store/store.h"

#define THREADS_MAX 1024u

struct run {
	const struct each_job *job;
	uint64_t files;
	uint64_t first, stride;
	_Atomic uint64_t next;
	_Atomic int failed;
};

struct each_thread {
	struct run *run;
	pthread_t id;
	struct each_worker worker;
	int rc;
};

static int canceled(struct err *e)
{
	return err_set(e, ERR_CANCELED, "stopped on request");
}

uint64_t each_even(uint64_t files, uint64_t n, uint64_t i)
{
	double at;

	if (n >= files)
		return i;
	if (n < 2)
		return 0;
	/* files * i would overflow for counts that no store has */
	at = (double)(files - 1) * (double)i / (double)(n - 1) + 0.5;
	return (uint64_t)at < files ? (uint64_t)at : files - 1;
}

/* Files lie in subfolder number % folders. */
uint64_t each_by_folder(const struct dataset *d, enum dataset_kind kind, uint64_t place)
{
	uint64_t folders = d->subfolders[kind] > 1 ? d->subfolders[kind] : 1;
	uint64_t each = d->files[kind] / folders, larger = d->files[kind] % folders;
	uint64_t in_larger = larger * (each + 1), folder, row;

	if (place < in_larger) {
		folder = place / (each + 1);
		row = place % (each + 1);
	} else {
		folder = larger + (place - in_larger) / each;
		row = (place - in_larger) % each;
	}
	return row * folders + folder;
}

uint64_t each_spread(const struct dataset *d, enum dataset_kind kind, uint64_t n, uint64_t i)
{
	/* turns of the golden section are spread evenly, however many there are */
	static const double GOLDEN = 0.6180339887498949;
	uint64_t files = d->files[kind], folders = d->subfolders[kind], folder, rows;
	double turn;

	if (n >= files || folders <= 1)
		return each_even(files, n, i);
	if (n >= folders || folders > files)
		return each_by_folder(d, kind, each_even(files, n, i));
	folder = each_even(folders, n, i);
	rows = files / folders + (folder < files % folders);
	turn = (double)i * GOLDEN;
	turn -= (double)(uint64_t)turn;
	return (uint64_t)(turn * (double)rows) * folders + folder;
}

/* How many files of a kind the job goes over. */
static uint64_t files_of(const struct each_job *job, enum dataset_kind kind)
{
	uint64_t all = job->dataset->files[kind];

	return job->picks && job->picks[kind] < all ? job->picks[kind] : all;
}

static int one_file(struct run *run, struct each_worker *w)
{
	const struct dataset *d = run->job->dataset;
	uint64_t train = files_of(run->job, DATASET_TRAIN);
	enum dataset_kind kind = w->number < train ? DATASET_TRAIN : DATASET_EVAL;
	uint64_t number = w->number - (kind == DATASET_EVAL ? train : 0);
	uint64_t n = files_of(run->job, kind);
	uint64_t index = run->job->pick ? run->job->pick(run->job->arg, kind, n, number)
					: each_spread(d, kind, n, number);
	int rc = dataset_path(d, kind, index, w->path, sizeof(w->path), &w->err);

	return rc < 0 ? rc : run->job->file(run->job->arg, kind, index, w, &w->err);
}

static void take_files(struct each_thread *t)
{
	struct run *run = t->run;

	/* relaxed: numbers only need to differ, and results are read after the threads were joined
	 */
	while (!atomic_load_explicit(&run->failed, memory_order_relaxed)) {
		t->worker.number =
			run->first + run->stride * atomic_fetch_add_explicit(&run->next, 1,
									     memory_order_relaxed);
		if (t->worker.number >= run->files)
			break;
		t->rc = stop_is_set(run->job->stop) ? canceled(&t->worker.err)
						    : one_file(run, &t->worker);
		if (run->job->moved)
			atomic_fetch_add_explicit(run->job->moved, 1, memory_order_relaxed);
		if (t->rc < 0)
			break;
	}
}

static void *each_main(void *arg)
{
	struct each_thread *t = arg;
	const struct each_job *job = t->run->job;

	if (job->begin)
		t->rc = job->begin(job->arg, &t->worker, &t->worker.err);
	if (t->rc == 0) {
		take_files(t);
		if (t->rc < 0)
			atomic_store_explicit(&t->run->failed, 1, memory_order_relaxed);
		if (job->end)
			t->rc = job->end(job->arg, &t->worker, t->rc, &t->worker.err);
	}
	if (t->rc < 0)
		atomic_store_explicit(&t->run->failed, 1, memory_order_relaxed);
	return NULL;
}

static int worker_init(struct each_worker *w, const struct each_job *job, struct err *e)
{
	w->io.store = job->store;
	w->blob = store_blob_new(job->store, e);
	if (!w->blob)
		return -ENOMEM;
	if (job->scratch_bytes == 0)
		return 0;
	w->scratch_bytes = job->scratch_bytes;
	w->scratch = buffer_alloc(w->scratch_bytes, "the buffer of a file thread", e);
	return w->scratch ? 0 : -ENOMEM;
}

static void worker_release(struct each_worker *w)
{
	free(w->blob);
	if (w->scratch)
		buffer_free(w->scratch, w->scratch_bytes);
}

/* Reports the failure with the lowest number; a stop only where nothing else failed. */
static int first_failure(struct each_thread *t, unsigned n, struct err *e)
{
	const struct each_thread *first = NULL;

	for (unsigned i = 0; i < n; i++) {
		bool better = !first || (first->rc == ERR_CANCELED && t[i].rc != ERR_CANCELED) ||
			      (t[i].worker.number < first->worker.number &&
			       (t[i].rc != ERR_CANCELED || first->rc == ERR_CANCELED));

		if (t[i].rc < 0 && better)
			first = &t[i];
	}
	if (!first)
		return 0;
	if (e)
		*e = first->worker.err;
	return first->rc;
}

int each_file(const struct each_job *job, struct err *e)
{
	struct run run = {.job = job, .first = job->part, .stride = job->parts ? job->parts : 1};
	unsigned n = job->threads ? job->threads : 1, ready = 0, started = 1;
	struct each_thread *t;
	int rc = 0;

	run.files = files_of(job, DATASET_TRAIN) + files_of(job, DATASET_EVAL);
	n = n > THREADS_MAX ? THREADS_MAX : n;
	if (n > run.files)
		n = run.files ? (unsigned)run.files : 1;
	t = try_calloc(n, sizeof(*t), "the file threads", e);
	if (!t)
		return -ENOMEM;
	while (rc == 0 && ready < n) {
		t[ready].run = &run;
		rc = worker_init(&t[ready++].worker, job, e);
	}
	for (; rc == 0 && started < n; started++) {
		rc = thread_start(&t[started].id, each_main, &t[started], 0, "files", e);
		if (rc < 0)
			break;
	}
	if (rc == 0)
		each_main(&t[0]);
	else
		atomic_store_explicit(&run.failed, 1, memory_order_relaxed);
	for (unsigned i = 1; i < started; i++)
		pthread_join(t[i].id, NULL);
	if (rc == 0)
		rc = first_failure(t, n, e);
	for (unsigned i = 0; i < ready; i++)
		worker_release(&t[i].worker);
	free(t);
	return rc;
}

static struct stoppable_store *stoppable_of(struct blob *b)
{
	return (struct stoppable_store *)b->store;
}

static ssize_t stoppable_pread(struct blob *b, void *p, size_t n, uint64_t offset, struct err *e)
{
	ssize_t r = stop_is_set(stoppable_of(b)->stop)
			    ? canceled(e)
			    : store_pread(store_blob_below(b), p, n, offset, e);

	if (r > 0 && stoppable_of(b)->bytes)
		atomic_fetch_add_explicit(stoppable_of(b)->bytes, (uint64_t)r,
					  memory_order_relaxed);
	return r;
}

static ssize_t stoppable_pwrite(struct blob *b, const void *p, size_t n, uint64_t offset,
				struct err *e)
{
	ssize_t r = stop_is_set(stoppable_of(b)->stop)
			    ? canceled(e)
			    : store_pwrite(store_blob_below(b), p, n, offset, e);

	if (r > 0 && stoppable_of(b)->bytes)
		atomic_fetch_add_explicit(stoppable_of(b)->bytes, (uint64_t)r,
					  memory_order_relaxed);
	return r;
}

static const struct store_ops stoppable_ops = {
	.is.name = "stoppable",
	.is.help = "ends reads and writes once a flag is set",
	.is.flags = STORE_IS_SHIM,
	.blob_bytes = sizeof(struct blob),
	.pread = stoppable_pread,
	.pwrite = stoppable_pwrite,
};

void stoppable_init(struct stoppable_store *s, struct store *lower, const struct stop_flag *stop,
		    _Atomic uint64_t *bytes)
{
	s->base.ops = &stoppable_ops;
	s->base.lower = lower;
	s->stop = stop;
	s->bytes = bytes;
}

/* Companion files: sized, written and compared beside their blobs. */

#define SIDECAR_PATH_MAX (DATASET_PATH_MAX + 32)

static int path_of(const struct dataset *d, const char *blob_path, uint32_t which,
		   char out[SIDECAR_PATH_MAX], struct err *e)
{
	int rc = d->format->sidecar_path(blob_path, which, out, SIDECAR_PATH_MAX);

	return rc < 0 ? err_set(e, rc, "the path of a companion file of '%s' is too long",
				blob_path)
		      : 0;
}

/* 1: there with its size. */
static int is_whole(const struct dataset *d, const struct io *io, const char *path,
		    const struct file_spec *f, uint32_t which, uint64_t *bytes, struct err *e)
{
	struct store_stat st;
	int rc = io_stat_path(io, path, &st, e);

	if (rc < 0)
		return rc == -ENOENT || rc == -ENOTDIR ? 0 : rc;
	if (st.is_dir)
		return err_set(e, -EISDIR,
			       "'%s' is a folder, but the dataset needs a file of that name: "
			       "remove the folder",
			       path);
	*bytes += st.bytes;
	return st.bytes == d->format->sidecar_bytes(f, which);
}

int sidecars_whole(const struct dataset *d, const struct io *io, const char *path,
		   const struct file_spec *f, uint64_t *bytes, struct err *e)
{
	char name[SIDECAR_PATH_MAX];
	int whole = 1;

	for (uint32_t i = 0; i < d->format->sidecars; i++) {
		int rc = path_of(d, path, i, name, e);

		if (rc == 0)
			rc = is_whole(d, io, name, f, i, bytes, e);
		if (rc < 0)
			return rc;
		whole = whole && rc;
	}
	return whole;
}

static int write_one(const struct dataset *d, struct each_worker *w, struct store_batch *batch,
		     const char *path, const struct file_spec *f, uint32_t which, struct err *e)
{
	int rc = store_batch_open(batch, &w->io, path, w->blob, e);

	if (rc < 0)
		return rc;
	rc = format_sidecar_write(d->format, &w->io, w->blob, path, f, which, w->scratch,
				  w->scratch_bytes, e);
	return store_batch_close(batch, &w->io, w->blob, rc, NULL, e);
}

int sidecars_write(const struct dataset *d, struct each_worker *w, struct store_batch *batch,
		   const struct file_spec *f, bool missing, struct err *e)
{
	char name[SIDECAR_PATH_MAX];
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < d->format->sidecars; i++) {
		int rc = path_of(d, w->path, i, name, e);

		if (rc == 0 && missing)
			rc = is_whole(d, &w->io, name, f, i, &bytes, e);
		if (rc == 0)
			rc = write_one(d, w, batch, name, f, i, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int sidecars_verify(const struct dataset *d, struct each_worker *w, const struct file_spec *f,
		    struct err *e)
{
	char name[SIDECAR_PATH_MAX];
	int rc = 0;

	for (uint32_t i = 0; i < d->format->sidecars && rc == 0; i++) {
		rc = path_of(d, w->path, i, name, e);
		if (rc == 0)
			rc = format_sidecar_verify(d->format, &w->io, name, f, i, w->scratch,
						   w->scratch_bytes, e);
	}
	return rc;
}

int sidecars_remove(const struct dataset *d, struct store *store, const char *path, struct err *e)
{
	char name[SIDECAR_PATH_MAX];
	int rc = 0;

	for (uint32_t i = 0; i < d->format->sidecars && rc == 0; i++) {
		rc = path_of(d, path, i, name, e);
		if (rc == 0)
			rc = store_remove(store, name, e);
		if (rc == -ENOENT || rc == -ENOTDIR)
			rc = 0;
	}
	return rc;
}

/* Cuts the last component off. False when none is left. */
static bool cut(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return false;
	*slash = '\0';
	return true;
}

int sidecar_folders(const struct dataset *d, struct store *store, const char *folder,
		    int (*fn)(struct store *s, const char *path, struct err *e), struct err *e)
{
	char any[DATASET_PATH_MAX + 8], path[SIDECAR_PATH_MAX], above[SIDECAR_PATH_MAX];

	snprintf(any, sizeof(any), "%s/any", folder);
	for (uint32_t i = 0; i < d->format->sidecars; i++) {
		int rc = path_of(d, any, i, path, e);

		if (rc < 0)
			return rc;
		if (!cut(path) || strcmp(path, folder) == 0)
			continue;
		rc = fn(store, path, e);
		memcpy(above, path, sizeof(path));
		if (rc == 0 && cut(above))
			rc = fn(store, above, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}
