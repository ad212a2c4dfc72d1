/* Around the phases of an epoch: its page cache, and the counters of process and host. */
#include "run/epoch_edges.h"

#include <assert.h>

#include "base/clock.h"
#include "base/log.h"
#include "os/sysinfo.h"
#include "comm/net.h"
#include "dataset/residency.h"
#include "os/file_system.h"
#include "store/mapped.h"

/* The process is charged when it asks, the device counts when it has delivered: read-ahead that is
 * still under way when a phase ends is waited for a little. */
#define SETTLE_TRIES 10
#define SETTLE_NS (5 * NS_PER_S / 1000)

/* ---- counters ---- */

static void sample_host(const struct epoch_edges *g, struct host_io *out)
{
	*out = (struct host_io){0};
	if (g->host)
		host_io_sample(g->host, "", out);
}

/* The process's own counters are the last to be looked at before a phase and the first after it:
 * looking at the others is reading, too, of files in /proc and /sys. */
void usage_begin(struct epoch_edges *g)
{
	const struct run_place *at = g->plan->at;
	struct epoch_usage *u = g->usage;

	assert(g->epoch >= 1 && g->epoch <= g->plan->epochs);
	host_meminfo_load(&u->meminfo, &u->meminfo_count);
	u->memory = (struct memory_pressure){.stall_ns = -1, .refault_bytes = -1};
	u->memory_process = at->net ? net_process_number(at->net) : 0;
	u->cpu_train_process = u->cpu_eval_process = u->memory_process;
	if (g->plan->w->run.measure == MEASURE_ALL) {
		memory_pressure_take(&g->memory);
		processors_take(&g->processors);
		sample_host(g, &g->host_io);
		u->host_cpu_ns = host_cpu_ns();
		proc_io_sample(&g->process);
	}
	if (g->plan->w->workflow.train)
		servers_begin(g->servers, g->plan->store);
	g->cpu_ns = proc_cpu_ns();
}

static void await_device(const struct epoch_edges *g, const struct proc_io *process,
			 struct host_io *host)
{
	for (int i = 0; i < SETTLE_TRIES && host->whole.under_way > 0 &&
			host->whole.read_bytes - g->host_io.whole.read_bytes <
				process->read_bytes - g->process.read_bytes;
	     i++) {
		clock_sleep_until(clock_now_ns() + SETTLE_NS);
		host_io_sample(g->host, "", host);
	}
}

/* The difference since the phase began, when `now` was sampled at its end; the next one begins. */
static void end_phase(struct epoch_edges *g, const struct proc_io *now, struct proc_io *process,
		      struct host_io *host)
{
	struct host_io host_now;

	sample_host(g, &host_now);
	await_device(g, now, &host_now);
	*process = *now;
	proc_io_sub(process, &g->process);
	*host = host_now;
	host_io_sub(host, &g->host_io);
	g->host_io = host_now;
	proc_io_sample(&g->process);
}

void usage_of_training(struct epoch_edges *g)
{
	struct epoch_usage *u = g->usage;
	struct processors processors;
	struct proc_io now;

	u->cpu_ns = proc_cpu_ns() - g->cpu_ns;
	if (g->plan->w->workflow.train)
		servers_end(g->servers, g->plan->store);
	if (g->plan->w->run.measure == MEASURE_NONE)
		return;
	proc_io_sample(&now);
	u->host_cpu_ns = host_cpu_ns() - u->host_cpu_ns;
	memory_pressure_take(&u->memory);
	memory_pressure_sub(&u->memory, &g->memory);
	processors_take(&processors);
	u->cpu_train = processors;
	processors_sub(&u->cpu_train, &g->processors);
	end_phase(g, &now, &u->train, &u->host_train);
	processors_take(&g->processors);
}

void usage_of_evaluation(struct epoch_edges *g)
{
	struct proc_io now;

	if (!g->plan->w->workflow.train)
		servers_end(g->servers, g->plan->store);
	if (g->plan->w->run.measure == MEASURE_NONE)
		return;
	proc_io_sample(&now);
	processors_take(&g->usage->cpu_eval);
	processors_sub(&g->usage->cpu_eval, &g->processors);
	g->usage->cpu_eval_ns = g->usage->cpu_eval.cpu_ns;
	end_phase(g, &now, &g->usage->eval, &g->usage->host_eval);
}

/* ---- the page cache ---- */

/* Whether there is a page cache between this run and its bytes. */
static bool has_page_cache(const struct run_plan *p)
{
	return store_base_flags(p->store) & STORE_HAS_FILES &&
	       !(p->d->format->is.flags & FORMAT_NO_IO);
}

int page_cache_check(const struct run_plan *p, struct err *e)
{
	const char *word = workload_page_cache_names[p->w->storage.page_cache];
	struct file_system fs;

	if (p->w->storage.page_cache == PAGE_CACHE_KEEP)
		return 0;
	if (!has_page_cache(p))
		return err_set(
			e, ERR_USAGE,
			"storage.page_cache is %s, but with storage.store '%s' and "
			"dataset.format %s no file is read through the page cache: set it to "
			"keep",
			word, p->w->storage.store, p->w->dataset.format);
	if (file_system_of_path(p->d->folder, &fs) && fs.memory)
		return err_set(
			e, ERR_USAGE,
			"storage.page_cache is %s, but '%s' is on %s, which keeps its files "
			"in the page cache and cannot evict them: put the dataset on a disk, "
			"or set storage.page_cache to keep",
			word, p->d->folder, fs.name);
	return 0;
}

static struct residency_job residency_of(const struct epoch_edges *g)
{
	const struct workload *w = g->plan->w;

	return (struct residency_job){
		.dataset = g->plan->d,
		.store = g->plan->store,
		.eval = w->workflow.evaluation,
		.no_train = !w->workflow.train,
		.files = w->run.measure == MEASURE_NONE ? 0 : (uint64_t)w->storage.page_cache_files,
		.stop = g->stop,
		.progress_ns = g->progress_ns,
	};
}

/* Dropping leaves what was being read ahead when a file was closed, so it needs this as well. */
bool page_cache_evicts(const struct epoch_edges *g)
{
	int how = g->plan->w->storage.page_cache;

	return has_page_cache(g->plan) &&
	       (how == PAGE_CACHE_COLD_EPOCHS || how == PAGE_CACHE_DROP ||
		(how == PAGE_CACHE_COLD && g->epoch == 1));
}

void page_cache_let_go(struct epoch_edges *g)
{
	if (page_cache_evicts(g))
		g->usage->own_mapped_bytes = store_maps_let_go();
}

int page_cache_begin(struct epoch_edges *g, struct err *e)
{
	struct residency_job job = residency_of(g);
	struct epoch_usage *u = g->usage;
	int64_t begin;
	int rc = 0;

	if (!has_page_cache(g->plan))
		return 0;
	if (page_cache_evicts(g)) {
		rc = residency_look(&job, &u->cache_found, e);
		begin = clock_now_ns();
		if (rc == 0 && g->epoch == 1)
			log_info("evicting the dataset in '%s' from the page cache",
				 g->plan->d->folder);
		if (rc == 0)
			rc = residency_evict(&job, e);
		u->evict_ns = clock_now_ns() - begin;
		u->evicted = rc == 0;
	}
	return rc < 0 ? rc : residency_look(&job, &u->cache_start, e);
}

int page_cache_before_evaluation(struct epoch_edges *g, struct err *e)
{
	struct residency_job job = residency_of(g);
	int rc;

	if (!g->plan->w->workflow.train)
		servers_begin(g->servers, g->plan->store);
	if (!has_page_cache(g->plan))
		return 0;
	job.no_train = true;
	rc = residency_look(&job, &g->usage->cache_eval, e);
	if (g->plan->w->run.measure == MEASURE_NONE)
		return rc;
	/* looking is no part of the evaluation */
	sample_host(g, &g->host_io);
	processors_take(&g->processors);
	proc_io_sample(&g->process);
	return rc;
}

int page_cache_end(struct epoch_edges *g, struct err *e)
{
	struct residency_job job = residency_of(g);

	return has_page_cache(g->plan) ? residency_look(&job, &g->usage->cache_end, e) : 0;
}
