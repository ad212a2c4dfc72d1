/* The run watched from beside it: what ranks publish, progress, the watchdog, the passing on of
 * signals, and the sampling of the machine. */
#include "run/state.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "comm/net.h"

/* ---- watchdog ---- */

#define TICK_NS (NS_PER_S / 10)

static const char *const activity_text[] = {
	"is starting",
	"waits for a batch",
	"computes",
	"waits for the other ranks",
	"writes a checkpoint",
	"reads a checkpoint",
	"pauses between checkpoints",
	"is done",
};

static void describe_rank(struct run_state *s, struct rank *k, char *out, size_t n)
{
	char inner[512] = "";
	int what = atomic_load_explicit(&k->activity, memory_order_relaxed);
	struct loader *l =
		atomic_load_explicit(&k->evaluating, memory_order_relaxed) ? k->eval : k->train;

	if (what == RANK_WAITING && l)
		s->loader_ops->describe(l, inner, sizeof(inner));
	snprintf(out, n, "rank %u %s%s%s", k->comm.rank, activity_text[what], inner[0] ? ": " : "",
		 inner);
}

/* The rank that everyone waits for: one that is not in the barrier, the longest without progress.
 */
static struct rank *slowest(struct run_state *s)
{
	struct rank *worst = &s->rank[0];
	int64_t oldest = INT64_MAX;

	for (uint32_t r = 0; r < s->locals; r++) {
		struct rank *k = &s->rank[r];
		int64_t t = atomic_load_explicit(&k->progress_ns, memory_order_relaxed);
		int what = atomic_load_explicit(&k->activity, memory_order_relaxed);

		if (what != RANK_BARRIER && what != RANK_DONE && t < oldest) {
			oldest = t;
			worst = k;
		}
	}
	return worst;
}

static void check_watchdog(struct run_state *s, int64_t now)
{
	double limit_s = s->w->run.watchdog;
	struct rank *late;
	int64_t last = 0;
	char text[768];
	struct err e;

	if (limit_s <= 0 || !s->rank || atomic_load(&s->stop.set))
		return;
	for (uint32_t r = 0; r < s->locals; r++) {
		int64_t t = atomic_load_explicit(&s->rank[r].progress_ns, memory_order_relaxed);

		if (t > last)
			last = t;
	}
	late = slowest(s);
	/* who waits for another process leaves it to that one to say what hangs there */
	if (s->net && atomic_load_explicit(&late->activity, memory_order_relaxed) == RANK_BARRIER)
		limit_s = 1.5 * limit_s + 2;
	if (last == 0 || (double)(now - last) < limit_s * 1e9)
		return;
	describe_rank(s, late, text, sizeof(text));
	err_set(&e, -ETIMEDOUT, "no rank made progress for %.0f s (run.watchdog): %s",
		(double)(now - last) / 1e9, text);
	run_stop(s, &e);
}

/* The check of a dataset moves with every file it looks at. */
static void check_stall(struct run_state *s, int64_t now)
{
	double limit_s = s->w->run.watchdog;
	uint64_t done = atomic_load_explicit(&s->checked, memory_order_relaxed);
	struct err e;

	if (done != s->seen_checked || s->seen_ns == 0) {
		s->seen_checked = done;
		s->seen_ns = now;
	}
	if (limit_s <= 0 || atomic_load(&s->stop.set) || (double)(now - s->seen_ns) < limit_s * 1e9)
		return;
	err_set(&e, -ETIMEDOUT,
		"checking the dataset in '%s' has not moved for %.0f s (run.watchdog): its "
		"storage does not answer; %llu files or names were looked at",
		s->w->dataset.data_folder, (double)(now - s->seen_ns) / 1e9,
		(unsigned long long)done);
	run_stop(s, &e);
}

static void wake_everyone(struct run_state *s)
{
	if (s->group)
		comm_wake(s->group);
	for (uint32_t r = 0; s->rank && r < s->locals; r++) {
		struct loader *train = s->rank[r].train, *eval = s->rank[r].eval;

		if (train)
			s->loader_ops->wake(train);
		if (eval)
			s->loader_ops->wake(eval);
	}
}

static void *monitor_main(void *arg)
{
	struct run_state *s = arg;

	while (!atomic_load(&s->monitor_quit)) {
		int64_t now = clock_now_ns();

		if (s->o->stop && atomic_load(&s->o->stop->set) && !atomic_load(&s->stop.set)) {
			struct err e;

			err_set(&e, ERR_CANCELED, "stopped by a signal");
			run_stop(s, &e);
		}
		if (s->net && !atomic_load(&s->stop.set)) {
			struct err e = {0};

			if (net_cause(s->net, NULL, &e))
				run_stop(s, &e);
		}
		/* a thread may have gone to sleep between its check and the first wake-up */
		if (atomic_load(&s->stop.set))
			wake_everyone(s);
		else if (atomic_load(&s->phase) == PROGRESS_CHECK)
			check_stall(s, now);
		else
			check_watchdog(s, now);
		run_tell(s, now, false);
		thread_wait(&s->monitor_quit, 0, TICK_NS);
	}
	return NULL;
}

int monitor_start(struct run_state *s, struct err *e)
{
	int rc = s->rank ? run_tell_begin(s, e) : 0;

	return rc < 0 ? rc : thread_start(&s->monitor, monitor_main, s, 0, "monitor", e);
}

void monitor_stop(struct run_state *s)
{
	atomic_store(&s->monitor_quit, 1);
	thread_wake(&s->monitor_quit, -1);
	pthread_join(s->monitor, NULL);
}

void run_stop(struct run_state *s, const struct err *why)
{
	pthread_mutex_lock(&s->lock);
	if (s->reason.code == 0)
		s->reason = *why;
	pthread_mutex_unlock(&s->lock);
	if (atomic_load(&s->stop_ns) == 0)
		atomic_store(&s->stop_ns, clock_now_ns());
	atomic_store(&s->stop.set, 1);
	atomic_store(&s->halt, 1);
	thread_wake(&s->halt, -1);
	if (s->group)
		comm_wake(s->group);
	if (s->net)
		net_stop(s->net, why->code == ERR_CANCELED ? NET_CAUSE_STOP : NET_CAUSE_ERROR, why);
}

/* ---- progress ---- */

#define EVERY_LEAST_NS (NS_PER_S / 10)
/* Between two looks lies at least this many times what one look takes. */
#define REST 100

void rank_publish(struct rank *k, enum rank_activity what, int64_t progress_ns)
{
	atomic_store_explicit(&k->activity, (int)what, memory_order_relaxed);
	atomic_store_explicit(&k->progress_ns, progress_ns, memory_order_relaxed);
}

/* A step is over. Steps come last and are read first, computation second, so that no reader sees
 * either without the time it took. */
void rank_publish_step(struct rank *k, const struct phase *p, const struct step_times *t,
		       uint64_t bytes, uint64_t samples)
{
	if (p->kind == PHASE_EVAL) {
		atomic_store_explicit(&k->eval_ns, t->compute_end_ns - k->eval_zero_ns,
				      memory_order_relaxed);
		atomic_fetch_add_explicit(&k->eval_done, 1, memory_order_release);
		return;
	}
	atomic_store_explicit(&k->train_ns, t->barrier_out_ns - k->train_zero_ns,
			      memory_order_relaxed);
	atomic_fetch_add_explicit(&k->train_bytes, bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&k->train_samples, samples, memory_order_relaxed);
	atomic_fetch_add_explicit(&k->wait_ns, t->got_ns - t->ask_ns, memory_order_release);
	atomic_fetch_add_explicit(&k->compute_ns, t->compute_end_ns - t->compute_begin_ns,
				  memory_order_release);
	atomic_fetch_add_explicit(&k->steps_done, 1, memory_order_release);
}

int run_tell_begin(struct run_state *s, struct err *e)
{
	const struct workload *w = s->w;

	s->total_steps = 0;
	s->total_eval_steps = 0;
	for (uint32_t i = 1; w->workflow.train && i <= s->r->epochs_planned; i++) {
		s->total_steps += run_epoch_steps(s, i);
		s->total_eval_steps += run_epoch_has_eval(w, i) ? s->steps[DATASET_EVAL] : 0;
	}
	s->total_saves = run_saves_planned(s);
	s->total_loads = run_loads_planned(s);
	if (s->r->series)
		block_list_names(series_devices(s->r->series), s->device_name,
				 sizeof(s->device_name));
	s->seen_rank = try_calloc(s->locals, sizeof(*s->seen_rank), "ranks", e);
	return s->seen_rank ? 0 : e->code;
}

static uint64_t files_to_check(const struct run_state *s, uint64_t done)
{
	/* not from the dataset, which the check may change */
	uint64_t train = (uint64_t)s->w->dataset.num_files_train;
	uint64_t eval = (uint64_t)s->w->dataset.num_files_eval;
	uint64_t stats = (train < PRESENCE_STATS_MAX ? train : PRESENCE_STATS_MAX) +
			 (eval < PRESENCE_STATS_MAX ? eval : PRESENCE_STATS_MAX);

	/* more than those: there is no manifest and the names are listed */
	return done <= stats ? stats : done > train + eval ? done : train + eval;
}

static void of_generation(struct run_state *s, struct run_progress *p)
{
	struct generate_progress *g = &s->generate;

	p->skipped = atomic_load(&g->files_skipped);
	p->done = atomic_load(&g->files_done) + p->skipped;
	p->total = atomic_load(&g->files_total);
	p->bytes = atomic_load(&g->bytes_done);
	p->bytes_total = atomic_load(&g->bytes_total);
}

static void of_rank(struct run_state *s, uint32_t i, struct run_progress *p)
{
	struct rank *k = &s->rank[i];
	struct rank_progress *r = &s->seen_rank[i];
	int what = atomic_load_explicit(&k->activity, memory_order_relaxed);

	/* the order of rank_publish_step, backwards */
	r->steps = atomic_load_explicit(&k->steps_done, memory_order_acquire);
	r->compute_ns = atomic_load_explicit(&k->compute_ns, memory_order_acquire);
	r->wait_ns = atomic_load_explicit(&k->wait_ns, memory_order_acquire);
	p->train_samples += atomic_load_explicit(&k->train_samples, memory_order_relaxed);
	p->train_bytes += atomic_load_explicit(&k->train_bytes, memory_order_relaxed);
	r->train_ns = atomic_load_explicit(&k->train_ns, memory_order_relaxed);
	r->doing = activity_text[what];
	r->late = what != RANK_BARRIER && what != RANK_DONE;
	p->train_ns += r->train_ns;
	p->compute_ns += r->compute_ns;
	p->wait_ns += r->wait_ns;
	p->bytes += atomic_load_explicit(&k->payload_bytes, memory_order_relaxed);
	p->samples += atomic_load_explicit(&k->samples, memory_order_relaxed);
	p->checkpoint_bytes += atomic_load_explicit(&k->checkpoint_bytes, memory_order_relaxed);
}

static bool at_checkpoint(struct run_state *s)
{
	int what = atomic_load_explicit(&s->rank[0].activity, memory_order_relaxed);

	return what == RANK_SAVING || what == RANK_LOADING;
}

/* Rank by rank all are in the same epoch, and within a step of each other. */
static void of_first(struct run_state *s, struct run_progress *p)
{
	struct rank *k = &s->rank[0];
	uint64_t before;

	p->training = s->w->workflow.train;
	p->ranks = s->ranks;
	p->ranks_here = s->locals;
	p->first_rank = s->first;
	p->rank = s->seen_rank;
	p->saves = atomic_load_explicit(&k->saves_done, memory_order_acquire);
	p->loads = atomic_load_explicit(&k->loads_done, memory_order_acquire);
	p->saves_total = s->total_saves;
	p->saves_by_time = run_checkpoint_interval_ns(s->w) > 0;
	p->loads_total = s->total_loads;
	if (!p->training) {
		p->done = p->saves + p->loads;
		p->total = p->saves_total + p->loads_total;
		if (p->phase != PROGRESS_FINISH)
			p->phase = PROGRESS_CHECKPOINT;
		return;
	}
	p->epochs = s->r->epochs_planned;
	p->epoch = atomic_load(&s->epoch);
	p->done = atomic_load_explicit(&k->steps_done, memory_order_acquire);
	p->total = s->total_steps;
	p->eval_done = atomic_load_explicit(&k->eval_done, memory_order_acquire);
	p->eval_ns = atomic_load_explicit(&k->eval_ns, memory_order_relaxed);
	p->eval_total = s->total_eval_steps;
	/* every epoch but the last of a capped run has the same number of steps */
	before = p->epoch > 1 ? (p->epoch - 1) * run_epoch_steps(s, 1) : 0;
	p->epoch_total = p->epoch ? run_epoch_steps(s, p->epoch) : 0;
	p->epoch_done = p->done > before ? p->done - before : 0;
	if (p->phase == PROGRESS_EVAL && s->steps[DATASET_EVAL]) {
		before = atomic_load_explicit(&k->eval_before, memory_order_relaxed);
		p->epoch_total = s->steps[DATASET_EVAL];
		p->epoch_done = p->eval_done > before ? p->eval_done - before : 0;
	} else if (p->phase == PROGRESS_TRAIN && at_checkpoint(s)) {
		p->phase = PROGRESS_CHECKPOINT;
	}
}

static void of_device(struct run_state *s, struct run_progress *p)
{
	struct series_point at;

	if (!s->r->series || store_base_flags(s->store) & STORE_IS_VOLATILE)
		return;
	series_latest(s->r->series, &at);
	p->device_ns = at.t_ns;
	if (at.disk.known) {
		p->device = DEVICE_DISK;
		memcpy(p->device_name, s->device_name, sizeof(p->device_name));
		p->device_read_bytes = at.disk.read_bytes;
		p->device_written_bytes = at.disk.written_bytes;
	} else if (at.process.known) {
		p->device = DEVICE_CALLS;
		p->device_read_bytes = at.process.rchar_bytes;
	}
}

static void gather(struct run_state *s, int64_t now, struct run_progress *p)
{
	*p = (struct run_progress){.phase = (enum progress_phase)atomic_load(&s->phase),
				   .elapsed_ns = now - s->phase_begin_ns};
	if (p->phase == PROGRESS_GENERATE) {
		of_generation(s, p);
	} else if (p->phase == PROGRESS_CHECK) {
		p->done = atomic_load_explicit(&s->checked, memory_order_relaxed);
		p->total = files_to_check(s, p->done);
	} else if (s->rank && s->seen_rank) {
		of_first(s, p);
		for (uint32_t i = 0; i < s->locals; i++)
			of_rank(s, i, p);
		if (!p->training)
			p->bytes = p->checkpoint_bytes;
		of_device(s, p);
	}
}

/* Not the time of day: on a busy machine that says nothing of the cost. */
static int64_t own_cpu_ns(void)
{
	struct timespec t = {0};

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

void run_tell(struct run_state *s, int64_t now, bool now_due)
{
	int64_t every = s->o->progress_ns, took = own_cpu_ns();
	struct run_progress p;

	if (!s->o->progress || (!now_due && now < s->next_tell_ns))
		return;
	gather(s, now, &p);
	s->o->progress(s->o->progress_arg, &p);
	took = own_cpu_ns() - took;
	every = every > EVERY_LEAST_NS ? every : EVERY_LEAST_NS;
	/* the monitor's ticks are that long: a look a little early beats one a tick late */
	s->next_tell_ns = now + (every > REST * took ? every : REST * took) - EVERY_LEAST_NS / 4;
}

void run_tell_end(struct run_state *s)
{
	if (!s->rank)
		return;
	s->phase = PROGRESS_FINISH;
	run_tell(s, clock_now_ns(), true);
}

/* ---- sampling ---- */

static uint64_t payload_so_far(void *arg)
{
	const struct run_state *s = arg;
	uint64_t sum = 0;

	for (uint32_t k = 0; k < s->locals; k++)
		sum += atomic_load_explicit(&s->rank[k].payload_bytes, memory_order_relaxed);
	return sum;
}

static int start_iostat(struct run_state *s, struct err *e)
{
	const struct str_list *devices = &s->w->profiling.iostat_devices;
	AUTO_FREE char *path = NULL;

	if (!s->w->workflow.profiling || s->w->profiling.profiler != PROFILER_IOSTAT ||
	    !run_leads(s))
		return 0;
	path = path_join(s->r->folder, "iostat.json");
	return iostat_start(&s->iostat, path, (const char *const *)devices->v, devices->n, e);
}

int run_sampling_begin(struct run_state *s, struct err *e)
{
	double interval = s->w->run.sample_interval;
	int rc = start_iostat(s, e);

	if (s->w->workflow.train && run_tells_host(s) && s->w->run.measure == MEASURE_ALL) {
		s->r->host_source = xcalloc(1, sizeof(*s->r->host_source));
		host_io_source_init(s->r->host_source, "", s->d->folder);
	}
	if (rc == 0 && interval > 0 && s->w->run.measure == MEASURE_ALL)
		rc = series_start(&s->r->series, s->d->folder, (int64_t)(interval * 1e9),
				  s->w->run.sample_gpus && run_leads(s), payload_so_far, s, e);
	if (rc < 0)
		run_sampling_end(s);
	return rc;
}

void run_sampling_end(struct run_state *s)
{
	struct err e = {0};

	series_stop(s->r->series);
	if (iostat_stop(s->iostat, &e) < 0)
		log_warning("iostat.json was not written: %s", e.text);
	s->iostat = NULL;
}
