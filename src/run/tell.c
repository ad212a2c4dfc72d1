/* What ranks publish, and its gathering: they store, the monitor loads. */
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "run/state.h"

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
	r->doing = rank_activity_text(what);
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
