/* Around the epochs of a run: its page cache, and the counters of process and host. */
#include "run/epoch_edges.h"

#include "base/clock.h"
#include "base/log.h"
#include "comm/net.h"
#include "store/file_system.h"

/* ---- counters around phases ---- */

static void host_take(struct run_state *s, struct usage_mark *m)
{
	m->host = (struct host_io){0};
	if (run_tells_host(s) && s->r->host_source)
		host_io_sample(s->r->host_source, "", &m->host);
}

/* The process's own counters are the last to be looked at before a phase and the first after it:
 * looking at the others is reading, too, of files in /proc and /sys. */
void usage_begin(struct run_state *s, uint32_t epoch, struct usage_mark *m)
{
	struct epoch_usage *u = &s->r->usage[epoch - 1];

	host_meminfo_load(&u->meminfo, &u->meminfo_count);
	u->memory = (struct memory_pressure){.stall_ns = -1, .refault_bytes = -1};
	u->memory_process = s->net ? net_process_number(s->net) : 0;
	if (s->w->run.measure == MEASURE_ALL) {
		memory_pressure_take(&m->memory);
		host_take(s, m);
		u->host_cpu_ns = host_cpu_ns();
		proc_io_sample(&m->process);
	}
	m->cpu_ns = proc_cpu_ns();
}

/* The process is charged when it asks, the device counts when it has delivered: read-ahead that is
 * still under way when a phase ends is waited for a little, outside of all that is timed. */
#define SETTLE_TRIES 10
#define SETTLE_NS (5 * NS_PER_S / 1000)

static void usage_settle(struct run_state *s, const struct usage_mark *since,
			 struct usage_mark *now)
{
	for (int i = 0; i < SETTLE_TRIES && now->host.whole.under_way > 0 &&
			now->host.whole.read_bytes - since->host.whole.read_bytes <
				now->process.read_bytes - since->process.read_bytes;
	     i++) {
		clock_sleep_until(clock_now_ns() + SETTLE_NS);
		host_io_sample(s->r->host_source, "", &now->host);
	}
}

/* The difference since *since, which becomes now. */
static void usage_next(struct run_state *s, struct proc_io *process, struct host_io *host,
		       struct usage_mark *since, struct usage_mark *now)
{
	host_take(s, now);
	usage_settle(s, since, now);
	*process = now->process;
	proc_io_sub(process, &since->process);
	*host = now->host;
	host_io_sub(host, &since->host);
	since->host = now->host;
	proc_io_sample(&since->process);
}

void usage_of_training(struct run_state *s, uint32_t epoch, struct usage_mark *since)
{
	struct epoch_usage *u = &s->r->usage[epoch - 1];
	struct usage_mark now;

	u->cpu_ns = proc_cpu_ns() - since->cpu_ns;
	if (s->w->run.measure == MEASURE_NONE)
		return;
	proc_io_sample(&now.process);
	u->host_cpu_ns = host_cpu_ns() - u->host_cpu_ns;
	memory_pressure_take(&u->memory);
	memory_pressure_sub(&u->memory, &since->memory);
	usage_next(s, &u->train, &u->host_train, since, &now);
}

void usage_of_evaluation(struct run_state *s, uint32_t epoch, struct usage_mark *since)
{
	struct epoch_usage *u = &s->r->usage[epoch - 1];
	struct usage_mark now;

	if (s->w->run.measure == MEASURE_NONE)
		return;
	proc_io_sample(&now.process);
	usage_next(s, &u->eval, &u->host_eval, since, &now);
}

/* ---- the page cache: when a run evicts, and when it looks ---- */

/* Whether there is a page cache between this run and its bytes. */
static bool has_cache(const struct run_state *s)
{
	return store_base_flags(s->store) & STORE_HAS_FILES &&
	       !(s->d->format->is.flags & FORMAT_NO_IO);
}

int run_page_cache_check(const struct run_state *s, struct err *e)
{
	const char *word = workload_page_cache_names[s->w->storage.page_cache];
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
