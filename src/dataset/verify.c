/* Compares all of a dataset with what it must be. */
#include "dataset/verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/each.h"
#include "dataset/sidecar.h"

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
	rc = v->d->format->verify(&w->io, w->path, &f, &v->d->content, w->scratch, w->scratch_bytes,
				  &why);
	if (rc < 0 && rc != ERR_CANCELED && !strstr(why.text, w->path))
		err_wrap(&why, "'%s'", w->path);
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
	if (rc < 0 || out->bad_files == 0)
		return rc;
	if (out->bad_files == 1)
		return err_set(e, ERR_DATA, "%s", out->first.text);
	return err_set(e, ERR_DATA, "%s (and %" PRIu64 " more of %" PRIu64 " files are wrong)",
		       out->first.text, out->bad_files - 1, out->files);
}
