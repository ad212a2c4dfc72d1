/* Page cache of whole datasets: every file for eviction, evenly spread ones for a look. */
#include "dataset/residency.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "dataset/each.h"
#include "os/file_system.h"
#include "store/page_cache.h"

/* Opening and syncing are waits, so more threads than cores help. */
#define THREADS 16
/* Pages that the kernel had in hand (taking back idle ones, compacting memory) stay in the cache
 * when it is asked to drop them, and can be dropped a moment later. So many files are tried again,
 * so often, after waits of which each is twice as long as the one before. Files that somebody maps
 * keep their pages through all of it. */
#define KEPT_MAX 1024u
#define KEPT_TRIES 5
#define KEPT_WAIT_NS (NS_PER_S / 200)

struct kept {
	enum dataset_kind kind;
	uint64_t index;
};

struct sums {
	const struct residency_job *job;
	_Atomic uint64_t looked, bytes, cached_bytes, reclaimed_bytes;
	_Atomic int mincore;
	/* of eviction: files of which pages stayed, the first KEPT_MAX of them */
	struct kept *kept;
	_Atomic uint32_t keeps;
};

static void tell_progress(const struct residency_job *job)
{
	if (job->progress_ns)
		atomic_store_explicit(job->progress_ns, clock_now_ns(), memory_order_relaxed);
}

static int look_file(void *arg, enum dataset_kind kind, uint64_t index, struct each_worker *w,
		     struct err *e)
{
	struct sums *s = arg;
	struct page_cached c;
	int rc = page_cache_look(w->path, &c, e);

	(void)kind;
	(void)index;
	if (rc < 0)
		return rc;
	/* relaxed: read after the threads were joined */
	atomic_fetch_add_explicit(&s->looked, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->bytes, c.file_bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->cached_bytes, c.cached_bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->reclaimed_bytes, c.reclaimed_bytes, memory_order_relaxed);
	if (c.mincore)
		atomic_store_explicit(&s->mincore, 1, memory_order_relaxed);
	tell_progress(s->job);
	return 0;
}

/* A file with its companions; *cached: bytes of it that stayed. */
static int evict_with_sidecars(const struct format_ops *f, const char *file, uint64_t *cached,
			       struct err *e)
{
	struct page_cached left;
	int rc = page_cache_evict(file, &left, e);
	char path[DATASET_PATH_MAX];

	*cached = left.cached_bytes;
	for (uint32_t i = 0; i < f->sidecars && rc == 0; i++) {
		if (f->sidecar_path(file, i, path, sizeof(path)) != 0)
			continue;
		rc = page_cache_evict(path, &left, e);
		*cached += rc == 0 ? left.cached_bytes : 0;
		/* not every reader needs them */
		rc = rc == -ENOENT ? 0 : rc;
	}
	return rc;
}

static int evict_file(void *arg, enum dataset_kind kind, uint64_t index, struct each_worker *w,
		      struct err *e)
{
	struct sums *s = arg;
	uint64_t cached;
	int rc = evict_with_sidecars(s->job->dataset->format, w->path, &cached, e);

	if (rc == 0 && cached) {
		uint32_t at = atomic_fetch_add_explicit(&s->keeps, 1, memory_order_relaxed);

		if (at < KEPT_MAX)
			s->kept[at] = (struct kept){kind, index};
	}
	tell_progress(s->job);
	return rc;
}

/* Those of which pages stayed, once more; the others are forgotten. */
static int evict_kept(const struct residency_job *job, struct sums *s, struct err *e)
{
	uint32_t n = atomic_load_explicit(&s->keeps, memory_order_relaxed), stay = 0;
	char path[DATASET_PATH_MAX];

	for (uint32_t i = 0; i < n; i++) {
		struct kept k = s->kept[i];
		uint64_t cached;
		int rc = dataset_path(job->dataset, k.kind, k.index, path, sizeof(path), e);

		if (rc >= 0)
			rc = evict_with_sidecars(job->dataset->format, path, &cached, e);
		if (rc < 0)
			return rc;
		if (cached)
			s->kept[stay++] = k;
		tell_progress(job);
		if (job->stop && stop_is_set(job->stop))
			return err_set(e, ERR_CANCELED, "eviction was stopped");
	}
	atomic_store_explicit(&s->keeps, stay, memory_order_relaxed);
	return 0;
}

static int go_over(const struct residency_job *job, struct sums *s, uint64_t files,
		   int (*fn)(void *, enum dataset_kind, uint64_t, struct each_worker *,
			     struct err *),
		   struct err *e)
{
	const uint64_t picks[DATASET_KINDS] = {[DATASET_TRAIN] = job->no_train ? 0 : files,
					       [DATASET_EVAL] = job->eval ? files : 0};
	struct each_job each = {.dataset = job->dataset,
				.store = job->store,
				.threads = THREADS,
				.stop = job->stop,
				.picks = picks,
				.file = fn,
				.arg = s};

	return each_file(&each, e);
}

int residency_look(const struct residency_job *job, struct residency *out, struct err *e)
{
	const struct dataset *d = job->dataset;
	struct sums s = {.job = job};
	struct file_system fs;
	struct err why = {0};
	int rc;

	*out = (struct residency){.files = (job->no_train ? 0 : d->files[DATASET_TRAIN]) +
					   (job->eval ? d->files[DATASET_EVAL] : 0)};
	if (file_system_of_path(d->folder, &fs)) {
		out->memory = fs.memory;
		snprintf(out->file_system, sizeof(out->file_system), "%s", fs.name);
	}
	if (job->files == 0) {
		snprintf(out->why, sizeof(out->why), "no file was looked at");
		return 0;
	}
	rc = go_over(job, &s, job->files, look_file, &why);
	if (rc == ERR_CANCELED) {
		if (e)
			*e = why;
		return rc;
	}
	if (rc < 0) {
		snprintf(out->why, sizeof(out->why), "%.*s", (int)sizeof(out->why) - 1, why.text);
		return 0;
	}
	out->known = true;
	out->mincore = atomic_load_explicit(&s.mincore, memory_order_relaxed);
	out->looked = atomic_load_explicit(&s.looked, memory_order_relaxed);
	out->bytes = atomic_load_explicit(&s.bytes, memory_order_relaxed);
	out->cached_bytes = atomic_load_explicit(&s.cached_bytes, memory_order_relaxed);
	out->reclaimed_bytes = atomic_load_explicit(&s.reclaimed_bytes, memory_order_relaxed);
	return 0;
}

static int evict(const struct residency_job *job, uint64_t files, struct err *e)
{
	struct sums s = {.job = job};
	int64_t wait_ns = KEPT_WAIT_NS;
	int rc;

	s.kept = try_calloc(KEPT_MAX, sizeof(*s.kept), "files of which pages stay cached", e);
	if (!s.kept)
		return -ENOMEM;
	rc = go_over(job, &s, files, evict_file, e);
	for (int i = 0; rc == 0 && i < KEPT_TRIES; i++) {
		uint32_t keeps = atomic_load_explicit(&s.keeps, memory_order_relaxed);

		/* more than that is no page here and there */
		if (keeps == 0 || keeps > KEPT_MAX)
			break;
		clock_sleep_until(clock_now_ns() + wait_ns);
		wait_ns *= 2;
		rc = evict_kept(job, &s, e);
	}
	free(s.kept);
	return rc;
}

int residency_evict(const struct residency_job *job, struct err *e)
{
	return evict(job, UINT64_MAX, e);
}

int residency_evict_some(const struct residency_job *job, struct err *e)
{
	return evict(job, job->files, e);
}

static double cached_share(const struct residency *c)
{
	return c->bytes ? (double)c->cached_bytes / (double)c->bytes : 0;
}

uint64_t residency_cached(const struct residency *c)
{
	return c->hosts ? c->hosts_cached_bytes : c->cached_bytes;
}

void residency_join(struct residency *to, const struct residency *from, uint32_t process)
{
	uint64_t cached = residency_cached(to) + residency_cached(from);
	uint32_t hosts = (to->hosts ? to->hosts : 1) + (from->hosts ? from->hosts : 1);

	if (to->known && (!from->known || cached_share(from) > cached_share(to))) {
		*to = *from;
		to->process = process;
	}
	to->hosts = hosts;
	to->hosts_cached_bytes = cached;
}
