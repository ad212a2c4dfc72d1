/* When a run evicts, and when it looks. */
#include "run/cache_control.h"

#include "base/clock.h"
#include "base/log.h"
#include "store/file_system.h"

static const char *const words[] = {[PAGE_CACHE_KEEP] = "keep",
				    [PAGE_CACHE_COLD] = "cold",
				    [PAGE_CACHE_COLD_EPOCHS] = "cold_epochs",
				    [PAGE_CACHE_DROP] = "drop_behind"};

/* Whether there is a page cache between this run and its bytes. */
static bool has_cache(const struct run_state *s)
{
	return store_base_flags(s->store) & STORE_HAS_FILES &&
	       !(s->d->format->is.flags & FORMAT_NO_IO);
}

int run_page_cache_check(const struct run_state *s, struct err *e)
{
	const char *word = words[s->w->storage.page_cache];
	struct file_system fs;

	if (s->w->storage.page_cache == PAGE_CACHE_KEEP)
		return 0;
	if (!has_cache(s))
		return err_set(e, ERR_USAGE,
			       "storage.page_cache is %s, but with storage.store '%s' and "
			       "dataset.format %s no file is read through a page cache: set it to "
			       "keep",
			       word, s->w->storage.store, s->w->dataset.format);
	if (file_system_of_path(s->d->folder, &fs) && fs.memory)
		return err_set(
			e, ERR_USAGE,
			"storage.page_cache is %s, but '%s' lies on %s, which is nothing "
			"but page cache and cannot be evicted: put the dataset on a disk, or "
			"set it to keep",
			word, s->d->folder, fs.name);
	return 0;
}

static struct residency_job job_of(struct run_state *s, _Atomic int64_t *progress_ns)
{
	return (struct residency_job){
		.dataset = s->d,
		.store = s->store,
		.eval = s->w->workflow.evaluation,
		.files = s->w->run.measure == MEASURE_NONE
				 ? 0
				 : (uint64_t)s->w->storage.page_cache_files,
		.stop = &s->stop,
		.progress_ns = progress_ns,
	};
}

/* Dropping leaves what was being read ahead when a file was closed, so it needs this as well. */
static bool evicts(const struct workload *w, uint32_t epoch)
{
	return w->storage.page_cache == PAGE_CACHE_COLD_EPOCHS ||
	       w->storage.page_cache == PAGE_CACHE_DROP ||
	       (w->storage.page_cache == PAGE_CACHE_COLD && epoch == 1);
}

int run_page_cache_begin(struct run_state *s, uint32_t epoch, _Atomic int64_t *progress_ns,
			 struct err *e)
{
	struct epoch_usage *u = &s->r->usage[epoch - 1];
	struct residency_job job = job_of(s, progress_ns);
	int64_t begin;
	int rc = 0;

	if (!has_cache(s))
		return 0;
	if (evicts(s->w, epoch)) {
		rc = residency_look(&job, &u->cache_found, e);
		begin = clock_now_ns();
		if (rc == 0 && epoch == 1)
			log_info("evicting the dataset in '%s' from the page cache", s->d->folder);
		if (rc == 0)
			rc = residency_evict(&job, e);
		u->evict_ns = clock_now_ns() - begin;
		u->evicted = rc == 0;
	}
	return rc < 0 ? rc : residency_look(&job, &u->cache_start, e);
}

int run_page_cache_end(struct run_state *s, uint32_t epoch, _Atomic int64_t *progress_ns,
		       struct err *e)
{
	struct residency_job job = job_of(s, progress_ns);

	return has_cache(s) ? residency_look(&job, &s->r->usage[epoch - 1].cache_end, e) : 0;
}
