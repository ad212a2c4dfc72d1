/* Watchdog, progress, and the sampling of the machine. */
#include "run/watch.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "comm/net.h"
#include "dataset/presence.h"
#include "metric/processors.h"

#define TICK_NS (NS_PER_S / 10)
/* A gap between two ticks that is longer: this process did not run (it was suspended). */
#define ASLEEP_NS (2 * NS_PER_S)

/* ---- watchdog ---- */

static const char *const activity_text[] = {
	[RANK_STARTING] = "is starting",
	[RANK_WAITING] = "waits for a batch",
	[RANK_COMPUTING] = "computes",
	[RANK_BARRIER] = "waits for the other ranks",
	[RANK_LOOKING] = "looks at the page cache of the dataset's files",
	[RANK_SAVING] = "writes a checkpoint",
	[RANK_LOADING] = "reads a checkpoint",
	[RANK_PAUSING] = "pauses between checkpoints",
	[RANK_DONE] = "is done",
};

static void describe_rank(struct run_watch *w, struct rank *k, char *out, size_t n)
{
	char inner[512] = "";
	int what = atomic_load_explicit(&k->live.activity, memory_order_relaxed);
	struct loader *l = rank_loader(
		k, atomic_load_explicit(&k->live.evaluating, memory_order_relaxed) ? DATASET_EVAL
										   : DATASET_TRAIN);

	if (what == RANK_WAITING && l)
		w->plan->loader->describe(l, inner, sizeof(inner));
	snprintf(out, n, "rank %u %s%s%s", k->comm.rank, activity_text[what], inner[0] ? ": " : "",
		 inner);
}

/* The rank that everyone waits for: one that is not in the barrier, the longest without progress.
 */
static struct rank *slowest_rank(struct run_watch *w)
{
	struct rank *worst = &w->rank[0];
	int64_t oldest = INT64_MAX;

	for (uint32_t r = 0; r < w->plan->at->locals; r++) {
		struct rank *k = &w->rank[r];
		int64_t t = atomic_load_explicit(&k->live.progress_ns, memory_order_relaxed);
		int what = atomic_load_explicit(&k->live.activity, memory_order_relaxed);

		if (what != RANK_BARRIER && what != RANK_DONE && t < oldest) {
			oldest = t;
			worst = k;
		}
	}
	return worst;
}

static void check_watchdog(struct run_watch *w, int64_t now)
{
	double limit_s = w->plan->w->run.watchdog;
	struct rank *late;
	int64_t last = 0;
	char text[768];
	struct err e;

	if (limit_s <= 0 || !w->rank || run_stopped(&w->shared->stop))
		return;
	for (uint32_t r = 0; r < w->plan->at->locals; r++) {
		int64_t t =
			atomic_load_explicit(&w->rank[r].live.progress_ns, memory_order_relaxed);

		if (t > last)
			last = t;
	}
	/* a suspended process makes no progress */
	if (last && last < w->awake_ns)
		last = w->awake_ns;
	late = slowest_rank(w);
	/* who waits for another process leaves it to that one to say what hangs there */
	if (w->plan->at->net &&
	    atomic_load_explicit(&late->live.activity, memory_order_relaxed) == RANK_BARRIER)
		limit_s = 1.5 * limit_s + 2;
	if (last == 0 || (double)(now - last) < limit_s * 1e9)
		return;
	describe_rank(w, late, text, sizeof(text));
	err_set(&e, -ETIMEDOUT, "no rank made progress for %.0f s (run.watchdog): %s",
		(double)(now - last) / 1e9, text);
	run_stop(&w->shared->stop, &e);
}

/* The check of a dataset moves with every file it looks at. */
static void check_stall(struct run_watch *w, int64_t now)
{
	double limit_s = w->plan->w->run.watchdog;
	uint64_t done = atomic_load_explicit(&w->shared->checked, memory_order_relaxed);
	struct err e;

	if (done != w->seen_checked || w->seen_ns < w->awake_ns) {
		w->seen_checked = done;
		w->seen_ns = now;
	}
	if (limit_s <= 0 || run_stopped(&w->shared->stop) ||
	    (double)(now - w->seen_ns) < limit_s * 1e9)
		return;
	err_set(&e, -ETIMEDOUT,
		"the check of the dataset in '%s' made no progress for %.0f s (run.watchdog): the "
		"storage does not answer; %llu files or names were checked before",
		w->plan->w->dataset.data_folder, (double)(now - w->seen_ns) / 1e9,
		(unsigned long long)done);
	run_stop(&w->shared->stop, &e);
}

/* Generation is alive as long as files, names or bytes go by. */
static void check_generation(struct run_watch *w, int64_t now)
{
	struct generate_progress *g = &w->shared->generate;
	double limit_s = w->plan->w->run.watchdog;
	uint64_t done = atomic_load_explicit(&g->moved, memory_order_relaxed) +
			atomic_load_explicit(&g->bytes_done, memory_order_relaxed);
	bool asking = atomic_load_explicit(&g->asking, memory_order_relaxed) > 0;
	struct err e;

	if (!asking || done != w->seen_generated || w->seen_ns < w->awake_ns) {
		w->seen_generated = done;
		w->seen_ns = now;
	}
	if (limit_s <= 0 || (double)(now - w->seen_ns) < limit_s * 1e9)
		return;
	err_set(&e, -ETIMEDOUT,
		"the generation of the dataset in '%s' made no progress for %.0f s (run.watchdog): "
		"the storage does not answer; %llu files were written before; run the same command "
		"again to complete it",
		w->plan->w->dataset.data_folder, (double)(now - w->seen_ns) / 1e9,
		(unsigned long long)atomic_load_explicit(&g->files_done, memory_order_relaxed));
	run_stop(&w->shared->stop, &e);
}

static void wake_everyone(struct run_watch *w)
{
	if (w->shared->stop.group)
		comm_wake(w->shared->stop.group);
	for (uint32_t r = 0; w->rank && r < w->plan->at->locals; r++)
		for (int kind = 0; kind < DATASET_KINDS; kind++) {
			struct loader *l = rank_loader(&w->rank[r], kind);

			if (l)
				w->plan->loader->wake(l);
		}
}

/* ---- progress ---- */

#define EVERY_LEAST_NS (NS_PER_S / 10)
/* Between two looks lies at least this many times what one look takes. */
#define REST 100

static uint64_t files_to_check(const struct run_watch *w, uint64_t done)
{
	/* not from the dataset, which the check may change */
	uint64_t train = (uint64_t)w->plan->w->dataset.num_files_train;
	uint64_t eval = (uint64_t)w->plan->w->dataset.num_files_eval;
	uint64_t stats = presence_looks(w->plan->w, train) + presence_looks(w->plan->w, eval);

	/* more than those: there is no manifest and the names are listed */
	return done <= stats ? stats : done > train + eval ? done : train + eval;
}

static void progress_of_generation(struct run_watch *w, struct run_progress *p)
{
	struct generate_progress *g = &w->shared->generate;

	p->skipped = atomic_load_explicit(&g->files_skipped, memory_order_relaxed);
	p->done = atomic_load_explicit(&g->files_done, memory_order_relaxed) + p->skipped;
	p->total = atomic_load_explicit(&g->files_total, memory_order_relaxed);
	p->bytes = atomic_load_explicit(&g->bytes_done, memory_order_relaxed);
	p->bytes_total = atomic_load_explicit(&g->bytes_total, memory_order_relaxed);
}

static void progress_of_rank(struct run_watch *w, uint32_t i, struct run_progress *p)
{
	struct rank *k = &w->rank[i];
	struct rank_progress *r = &w->seen_rank[i];
	int what = atomic_load_explicit(&k->live.activity, memory_order_relaxed);

	/* the order of rank_publish_step, backwards */
	r->steps = atomic_load_explicit(&k->live.steps_done, memory_order_acquire);
	r->compute_ns = atomic_load_explicit(&k->live.compute_ns, memory_order_acquire);
	r->wait_ns = atomic_load_explicit(&k->live.wait_ns, memory_order_acquire);
	p->train_samples += atomic_load_explicit(&k->live.train_samples, memory_order_relaxed);
	p->train_bytes += atomic_load_explicit(&k->live.train_bytes, memory_order_relaxed);
	r->train_ns = atomic_load_explicit(&k->live.train_ns, memory_order_relaxed);
	r->doing = activity_text[what];
	r->late = what != RANK_BARRIER && what != RANK_DONE;
	p->train_ns += r->train_ns;
	p->compute_ns += r->compute_ns;
	p->wait_ns += r->wait_ns;
	p->bytes += atomic_load_explicit(&k->live.payload_bytes, memory_order_relaxed);
	p->samples += atomic_load_explicit(&k->live.samples, memory_order_relaxed);
	p->checkpoint_bytes +=
		atomic_load_explicit(&k->live.checkpoint_bytes, memory_order_relaxed);
}

/* What workers have read, while ranks may still wait for their first batches. */
static void progress_of_workers(struct run_watch *w, struct run_progress *p)
{
	for (uint32_t i = 0; i < w->plan->at->locals; i++)
		for (int kind = 0; kind < DATASET_KINDS; kind++) {
			struct loader *l = rank_loader(&w->rank[i], kind);

			if (l)
				worker_read_so_far(l, &p->read_samples, &p->read_bytes);
		}
	if (p->read_samples < w->read_samples || p->read_bytes < w->read_bytes) {
		p->read_samples = w->read_samples;
		p->read_bytes = w->read_bytes;
	}
	w->read_samples = p->read_samples;
	w->read_bytes = p->read_bytes;
}

static bool at_checkpoint(struct run_watch *w)
{
	int what = atomic_load_explicit(&w->rank[0].live.activity, memory_order_relaxed);

	return what == RANK_SAVING || what == RANK_LOADING;
}

/* Rank by rank all are in the same epoch, and within a step of each other. */
static void progress_of_run(struct run_watch *w, struct run_progress *p)
{
	struct rank *k = &w->rank[0];
	uint64_t before;

	p->training = workload_reads(w->plan->w);
	p->ranks = w->plan->at->ranks;
	p->ranks_here = w->plan->at->locals;
	p->first_rank = w->plan->at->first;
	p->rank = w->seen_rank;
	p->saves = atomic_load_explicit(&k->live.saves_done, memory_order_acquire);
	p->loads = atomic_load_explicit(&k->live.loads_done, memory_order_acquire);
	p->saves_total = w->plan->saves;
	p->saves_by_time = w->plan->save_every_ns > 0;
	p->loads_total = w->plan->loads;
	if (!p->training) {
		p->done = p->saves + p->loads;
		p->total = p->saves_total + p->loads_total;
		if (p->phase != PROGRESS_FINISH)
			p->phase = PROGRESS_CHECKPOINT;
		return;
	}
	p->epochs = w->plan->epochs;
	p->epoch = atomic_load_explicit(&w->shared->epoch, memory_order_relaxed);
	p->done = atomic_load_explicit(&k->live.steps_done, memory_order_acquire);
	p->total = w->plan->train_steps;
	p->eval_done = atomic_load_explicit(&k->live.eval_done, memory_order_acquire);
	p->eval_ns = atomic_load_explicit(&k->live.eval_ns, memory_order_relaxed);
	p->eval_total = w->plan->eval_steps;
	p->probe_done = atomic_load_explicit(&w->shared->probe_done, memory_order_relaxed);
	p->probe_total = atomic_load_explicit(&w->shared->probe_total, memory_order_relaxed);
	/* every epoch but the last of a capped run has the same number of steps */
	before = p->epoch > 1 ? (p->epoch - 1) * plan_epoch(w->plan, 1).steps : 0;
	p->epoch_total = p->epoch ? plan_epoch(w->plan, p->epoch).steps : 0;
	p->epoch_done = p->done > before ? p->done - before : 0;
	if (p->phase == PROGRESS_EVAL && w->plan->steps[DATASET_EVAL]) {
		before = atomic_load_explicit(&k->live.eval_before, memory_order_relaxed);
		p->epoch_total = w->plan->steps[DATASET_EVAL];
		p->epoch_done = p->eval_done > before ? p->eval_done - before : 0;
	} else if (p->phase == PROGRESS_TRAIN && at_checkpoint(w)) {
		p->phase = PROGRESS_CHECKPOINT;
	}
}

static void progress_of_device(struct run_watch *w, struct run_progress *p)
{
	struct series_point at;

	if (!w->r->series || store_base_flags(w->plan->store) & STORE_IS_VOLATILE)
		return;
	series_latest(w->r->series, &at);
	p->device_ns = at.t_ns;
	if (at.disk.known) {
		p->device = DEVICE_DISK;
		memcpy(p->device_name, w->device_name, sizeof(p->device_name));
		p->device_read_bytes = at.disk.read_bytes;
		p->device_written_bytes = at.disk.written_bytes;
	} else if (at.process.known) {
		p->device = DEVICE_CALLS;
		p->device_read_bytes = at.process.rchar_bytes;
	}
}

static void gather_progress(struct run_watch *w, int64_t now, struct run_progress *p)
{
	*p = (struct run_progress){.phase = (enum progress_phase)atomic_load_explicit(
					   &w->shared->phase, memory_order_relaxed),
				   .elapsed_ns = now - w->shared->phase_begin_ns};
	if (p->phase == PROGRESS_GENERATE) {
		progress_of_generation(w, p);
	} else if (p->phase == PROGRESS_CHECK) {
		p->done = atomic_load_explicit(&w->shared->checked, memory_order_relaxed);
		p->total = files_to_check(w, p->done);
	} else if (w->rank && w->seen_rank) {
		progress_of_run(w, p);
		for (uint32_t i = 0; i < w->plan->at->locals; i++)
			progress_of_rank(w, i, p);
		if (p->training)
			progress_of_workers(w, p);
		else
			p->bytes = p->checkpoint_bytes;
		progress_of_device(w, p);
	}
}

/* Not the time of day: on a busy machine that says nothing of the cost. */
static int64_t own_cpu_ns(void)
{
	struct timespec t = {0};

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void tell_progress(struct run_watch *w, int64_t now, bool now_due)
{
	int64_t every = w->o->progress_ns, took = own_cpu_ns();
	struct run_progress p;

	if (!w->o->progress || (!now_due && now < w->next_tell_ns))
		return;
	gather_progress(w, now, &p);
	w->o->progress(w->o->progress_arg, &p);
	took = own_cpu_ns() - took;
	every = every > EVERY_LEAST_NS ? every : EVERY_LEAST_NS;
	/* the thread's ticks are that long: a look a little early beats one a tick late */
	w->next_tell_ns = now + (every > REST * took ? every : REST * took) - EVERY_LEAST_NS / 4;
}

void watch_keep_reads(struct run_watch *w)
{
	struct run_progress p = {0};

	progress_of_workers(w, &p);
}

void watch_tell(struct run_watch *w)
{
	tell_progress(w, clock_now_ns(), true);
}

void watch_tell_end(struct run_watch *w)
{
	if (!w->rank)
		return;
	atomic_store_explicit(&w->shared->phase, PROGRESS_FINISH, memory_order_relaxed);
	watch_tell(w);
}

/* ---- the thread ---- */

#define GROUPS_EVERY_NS NS_PER_S
#define GROUPS_REST 200

/* Threads may be moved to other groups while they run. */
static void look_for_groups(struct run_watch *w, int64_t now)
{
	int64_t rest;

	processors_note_groups();
	rest = GROUPS_REST * (clock_now_ns() - now);
	w->next_groups_ns = now + (rest > GROUPS_EVERY_NS ? rest : GROUPS_EVERY_NS);
}

/* Until the next tick; meanwhile looks whether the process stands still. */
static void wait_tick(struct run_watch *w, bool stops, int64_t until_ns)
{
	int64_t tick = stops ? STANDSTILL_TICK_NS : TICK_NS;
	int64_t now = clock_now_ns();

	while (now < until_ns && !atomic_load_explicit(&w->quit, memory_order_relaxed)) {
		int64_t begin = now;

		thread_wait(&w->quit, 0, tick);
		now = clock_now_ns();
		if (stops) {
			standstill_tick(&w->stops, begin, now, tick);
			now = clock_now_ns();
		}
		if (stops && now >= w->next_groups_ns)
			look_for_groups(w, now);
	}
}

static void *watch_main(void *arg)
{
	struct run_watch *w = arg;
	struct run_stop *stop = &w->shared->stop;
	bool stops = w->rank && w->plan->w->run.measure == MEASURE_ALL;

	if (stops)
		standstill_begin(&w->stops);
	while (!atomic_load_explicit(&w->quit, memory_order_relaxed)) {
		int64_t now = clock_now_ns();

		if (now - w->round_ns > ASLEEP_NS)
			w->awake_ns = now;
		w->round_ns = now;
		run_stop_look(stop);
		/* a thread may have gone to sleep between its check and the first wake-up */
		if (run_stopped(stop))
			wake_everyone(w);
		else if (atomic_load_explicit(&w->shared->phase, memory_order_relaxed) ==
			 PROGRESS_CHECK)
			check_stall(w, now);
		else if (atomic_load_explicit(&w->shared->phase, memory_order_relaxed) ==
			 PROGRESS_GENERATE)
			check_generation(w, now);
		/* a probe has limits of its own, and its end is not the run's */
		else if (atomic_load_explicit(&w->shared->phase, memory_order_relaxed) !=
			 PROGRESS_PROBE)
			check_watchdog(w, now);
		tell_progress(w, now, false);
		wait_tick(w, stops, clock_now_ns() + TICK_NS);
	}
	return NULL;
}

int watch_start(struct run_watch *w, enum progress_phase phase, struct err *e)
{
	assert(phase != PROGRESS_TRAIN || w->rank);
	atomic_store_explicit(&w->shared->phase, phase, memory_order_relaxed);
	w->shared->phase_begin_ns = clock_now_ns();
	atomic_store_explicit(&w->quit, 0, memory_order_relaxed);
	w->round_ns = w->awake_ns = w->shared->phase_begin_ns;
	if (w->rank && !w->seen_rank) {
		w->seen_rank = try_calloc(w->plan->at->locals, sizeof(*w->seen_rank), "ranks", e);
		if (!w->seen_rank)
			return -ENOMEM;
	}
	if (w->r->series)
		block_list_names(series_devices(w->r->series), w->device_name,
				 sizeof(w->device_name));
	return thread_start(&w->thread, watch_main, w, 0, "monitor", e);
}

void watch_stop(struct run_watch *w)
{
	atomic_store_explicit(&w->quit, 1, memory_order_relaxed);
	thread_wake(&w->quit, -1);
	pthread_join(w->thread, NULL);
}

void watch_release(struct run_watch *w)
{
	free(w->seen_rank);
}

/* ---- sampling ---- */

static uint64_t payload_so_far(void *arg)
{
	const struct run_watch *w = arg;
	uint64_t sum = 0;

	for (uint32_t k = 0; k < w->plan->at->locals; k++)
		sum += atomic_load_explicit(&w->rank[k].live.payload_bytes, memory_order_relaxed);
	return sum;
}

static int start_iostat(struct run_watch *w, struct err *e)
{
	const struct str_list *devices = &w->plan->w->profiling.iostat_devices;
	AUTO_FREE char *path = NULL;

	if (!w->plan->w->workflow.profiling || w->plan->w->profiling.profiler != PROFILER_IOSTAT ||
	    !run_leads(w->plan->at))
		return 0;
	path = path_join(w->r->folder, "iostat.json");
	return iostat_start(&w->iostat, path, (const char *const *)devices->v, devices->n, e);
}

int watch_sampling_begin(struct run_watch *w, struct err *e)
{
	double interval = w->plan->w->run.sample_interval;
	/* of objects the folder is no path: what lies below it here is not theirs */
	bool objects = workload_base_store(w->plan->w)->flags & STORE_HAS_OBJECTS;
	int rc = start_iostat(w, e);

	if (!objects && workload_reads(w->plan->w) && run_reads_host(w->plan->at) &&
	    w->plan->w->run.measure == MEASURE_ALL) {
		w->r->host_source = xcalloc(1, sizeof(*w->r->host_source));
		host_io_source_init(w->r->host_source, "", w->plan->d->folder);
	}
	if (rc == 0 && interval > 0 && w->plan->w->run.measure == MEASURE_ALL)
		rc = series_start(&w->r->series, objects ? NULL : w->plan->d->folder,
				  (int64_t)(interval * 1e9),
				  w->plan->w->run.sample_gpus && run_leads(w->plan->at),
				  payload_so_far, w, e);
	if (rc < 0)
		watch_sampling_end(w, NULL);
	return rc;
}

int watch_sampling_end(struct run_watch *w, struct err *e)
{
	int rc;

	series_stop(w->r->series);
	rc = iostat_stop(w->iostat, e);
	w->iostat = NULL;
	return rc;
}
