/* One run: the order of its phases, and what becomes of it when one fails. */
#include "run/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/saturate.h"
#include "base/str.h"
#include "base/sysinfo.h"
#include "comm/net.h"
#include "dataset/generate.h"
#include "dataset/remove.h"
#include "dataset/verify.h"
#include "judge/judge.h"
#include "result/dlio_log.h"
#include "run/epoch_edges.h"
#include "run/state.h"
#include "store/map.h"
#include "store/mem_body.h"

/* Writers of a dataset: enough to keep a device busy, few enough for a small machine. */
#define GENERATE_THREADS_MAX 32
/* Code, libraries and small things that the program has not touched when it states its memory. */
#define UNTOUCHED_BYTES (1u << 20)

static uint64_t batch_of(const struct workload *w, int kind)
{
	return (uint64_t)(kind == DATASET_TRAIN ? w->reader.batch_size : w->reader.batch_size_eval);
}

void run_order(const struct run_state *s, int kind, uint32_t epoch, struct order *out)
{
	order_init(out, s->w, dataset_samples(s->d, kind), s->ranks, batch_of(s->w, kind), s->seed,
		   epoch);
	if (order_list_wanted(s->w))
		out->list = &s->list[kind];
}

void run_fill_lists(struct run_state *s, uint32_t epoch)
{
	for (int kind = 0; kind < DATASET_KINDS; kind++)
		if (s->list[kind].n && (kind == DATASET_TRAIN || run_epoch_has_eval(s->w, epoch)))
			order_list_fill(&s->list[kind], s->w, s->seed, epoch);
}

static int make_lists(struct run_state *s, struct err *e)
{
	int rc = 0;

	for (int kind = 0; kind < DATASET_KINDS && rc == 0 && order_list_wanted(s->w); kind++)
		if (s->steps[kind])
			rc = order_list_init(&s->list[kind], dataset_samples(s->d, kind), e);
	return rc;
}

static unsigned generate_threads(const struct run_state *s)
{
	unsigned cores = host_threads() / run_processes_here(s);
	unsigned threads = s->locals > cores ? s->locals : cores;

	return threads > GENERATE_THREADS_MAX ? GENERATE_THREADS_MAX : threads;
}

static int generate(struct run_state *s, struct err *e)
{
	struct generate_options o = {.stop = &s->stop, .progress = &s->generate};
	/* what lives in a process's memory is nobody else's */
	bool apart = s->net && store_base_flags(s->store) & STORE_IS_VOLATILE;
	int64_t begin = clock_now_ns();
	int rc;

	o.threads = generate_threads(s);
	o.together = s->net && !apart ? s->o->processes : NULL;
	s->phase = PROGRESS_GENERATE;
	s->phase_begin_ns = begin;
	dlio_log_generation_start(s->d);
	rc = monitor_start(s, e);
	if (rc < 0)
		return rc;
	rc = dataset_generate(s->d, s->store, &o, e);
	if (apart)
		rc = run_agree(s, rc, e);
	monitor_stop(s);
	run_tell(s, clock_now_ns(), true);
	s->monitor_quit = 0;
	s->r->generation.files = atomic_load(&s->generate.files_done);
	s->r->generation.skipped = atomic_load(&s->generate.files_skipped);
	s->r->generation.bytes = atomic_load(&s->generate.bytes_done);
	s->r->generation.wall_ns = clock_now_ns() - begin;
	s->r->generated = true;
	if (rc == 0)
		dlio_log_generation_end();
	return rc;
}

static int draw_seed(struct run_state *s, struct err *e)
{
	const struct workload *w = s->w;
	struct rng_np rng;

	s->seed = (uint64_t)w->train.seed;
	if (w->reader.sample_shuffle == SHUFFLE_RANDOM ||
	    w->reader.file_shuffle == SHUFFLE_RANDOM) {
		rng_np_seed_entropy(&rng);
		s->seed = rng_np_u32(&rng);
	}
	if (run_share(s, &s->seed, sizeof(s->seed), e) < 0)
		return e->code;
	s->r->shuffle_seed = s->seed;
	return 0;
}

static int plan_steps(struct run_state *s, struct err *e)
{
	const struct workload *w = s->w;
	struct order o;
	uint64_t all;

	for (int kind = 0; kind < DATASET_KINDS; kind++) {
		uint64_t samples = dataset_samples(s->d, kind), given;

		run_order(s, kind, 1, &o);
		s->steps[kind] = order_steps(&o);
		given = o.used - order_repeats(&o);
		if (kind == DATASET_TRAIN)
			s->r->dropped_samples = samples > given ? samples - given : 0;
	}
	s->r->steps_per_epoch = s->steps[DATASET_TRAIN];
	s->r->eval_steps = s->steps[DATASET_EVAL];
	if (s->steps[DATASET_TRAIN] == 0)
		return err_set(
			e, ERR_USAGE,
			"no training step is possible: %llu samples do not fill one batch of %lld "
			"on each of %u ranks (raise dataset.num_files_train, or lower "
			"reader.batch_size or the number of ranks)",
			(unsigned long long)dataset_samples(s->d, DATASET_TRAIN),
			(long long)w->reader.batch_size, s->ranks);
	all = u64_product(s->steps[DATASET_TRAIN], (uint64_t)w->train.epochs);
	if (w->train.total_training_steps > 0 && (uint64_t)w->train.total_training_steps > all)
		return err_set(
			e, ERR_USAGE,
			"train.total_training_steps: %lld steps are wanted but the dataset has "
			"only %llu for %lld epochs",
			(long long)w->train.total_training_steps, (unsigned long long)all,
			(long long)w->train.epochs);
	return 0;
}

/* What the run itself adds to its loaders: times of steps, rank threads and their counters, and a
 * dataset that lives in memory. Orders take none: they are computed. */
static uint64_t own_bytes(const struct run_state *s, uint64_t steps)
{
	uint64_t epochs = run_planned_epochs(s);
	uint64_t times =
		u64_sum(u64_product(steps, sizeof(struct step_times)),
			u64_product(epochs, sizeof(struct rank_epoch) + sizeof(struct phase)));
	uint64_t rank = u64_sum(times, sizeof(struct rank) + sizeof(struct rank_progress) +
					       2 * sizeof(struct io_stat) +
					       (uint64_t)s->w->run.stack_bytes);
	uint64_t total = u64_sum(u64_product(rank, s->locals),
				 u64_sum(u64_product(epochs, sizeof(struct epoch_usage)),
					 u64_sum(judge_bytes(epochs), series_memory_bytes())));
	uint64_t writing = generate_threads(s) * (uint64_t)FORMAT_WRITE_SCRATCH;

	/* generation is over before the ranks begin */
	if (s->w->workflow.generate_data && writing > total)
		total = writing;
	if (store_base_flags(s->store) & STORE_IS_VOLATILE)
		total = u64_sum(total, mem_body_bound(s->d->files[DATASET_TRAIN] +
							      s->d->files[DATASET_EVAL],
						      s->d->likely_bytes));
	for (int kind = 0; kind < DATASET_KINDS && order_list_wanted(s->w); kind++)
		total = u64_sum(total, order_list_bytes(dataset_samples(s->d, kind)));
	return u64_sum(total, proc_peak_rss_bytes() + UNTOUCHED_BYTES);
}

static int bound_memory(struct run_state *s, struct err *e)
{
	struct loader_config c = {.workload = s->w,
				  .dataset = s->d,
				  .store = s->store,
				  .batch_size = (uint64_t)s->w->reader.batch_size};
	uint64_t loader = 0, eval = 0, total, avail;
	uint64_t steps;
	int64_t cap = s->w->train.total_training_steps;
	char need[32], have[32];
	int rc = s->w->workflow.train ? s->loader_ops->memory_bytes(&c, &loader, e) : 0;

	if (rc < 0)
		return rc;
	steps = u64_product(run_epoch_steps(s, 1), (uint64_t)s->w->train.epochs);
	if (!s->w->compat.dlio && cap > 0 && steps > (uint64_t)cap)
		steps = (uint64_t)cap;
	if (s->w->workflow.evaluation && s->steps[DATASET_EVAL]) {
		c.kind = DATASET_EVAL;
		c.batch_size = (uint64_t)s->w->reader.batch_size_eval;
		steps = u64_sum(steps,
				u64_product(s->steps[DATASET_EVAL], (uint64_t)s->w->train.epochs));
		rc = s->loader_ops->memory_bytes(&c, &eval, e);
		if (rc < 0)
			return rc;
	}
	total = u64_sum(u64_product(u64_sum(loader, eval), s->locals), own_bytes(s, steps));
	total = u64_sum(total, run_checkpoints_bytes(s));
	s->r->memory_bound_bytes = total;
	total = u64_product(total, run_processes_here(s));
	avail = host_available_bytes();
	if (total > avail)
		return err_set(e, -ENOMEM,
			       "the run needs up to %s of memory and %s are available: lower the "
			       "number of "
			       "ranks, reader.read_threads or the record size, or use "
			       "reader.access=native",
			       str_bytes((double)total, need, sizeof(need)),
			       str_bytes((double)avail, have, sizeof(have)));
	return 0;
}

static int allocate_ranks(struct run_state *s, struct err *e)
{
	struct result *r = s->r;

	r->rank = try_calloc(s->locals, sizeof(*r->rank), "ranks", e);
	r->usage = try_calloc(r->epochs_planned, sizeof(*r->usage), "epochs", e);
	s->rank = try_calloc(s->locals, sizeof(*s->rank), "ranks", e);
	if (!r->rank || !r->usage || !s->rank)
		return -ENOMEM;
	r->ranks_here = s->locals;
	r->first_rank = s->first;
	for (uint32_t k = 0; k < s->locals; k++) {
		struct rank_result *out = &r->rank[k];

		io_stat_init(&out->train_io);
		io_stat_init(&out->eval_io);
		io_stat_init(&out->save_io);
		io_stat_init(&out->load_io);
		out->epoch = try_calloc(r->epochs_planned, sizeof(*out->epoch), "epochs", e);
		if (!out->epoch)
			return -ENOMEM;
		for (uint32_t i = 0; i < r->epochs_planned; i++) {
			uint32_t n = run_epoch_blocks(s->w, run_epoch_steps(s, i + 1));

			out->epoch[i].block = try_calloc(n, sizeof(struct phase), "blocks", e);
			if (!out->epoch[i].block)
				return -ENOMEM;
			out->epoch[i].block_capacity = n;
		}
		s->rank[k].run = s;
		s->rank[k].out = out;
		if (s->w->workflow.train)
			s->loader_ops->window(s->w, &out->workers, &out->prefetch_batches);
	}
	return s->w->run.trace == TRACE_OFF ? 0
					    : trace_create(&r->trace, s->first, s->locals,
							   (uint32_t)s->w->run.trace_events, e);
}

/* Waits for the rank threads; once the run was stopped, LEAVE_S for all of them together. false
 * when one is stuck in the system: then nothing it uses may be freed, and the process should end
 * soon. */
static bool join_ranks(struct run_state *s)
{
	bool all = true;

	for (uint32_t k = 0; k < s->locals; k++) {
		struct rank *rk = &s->rank[k];

		if (rk->started && !rk->joined)
			rk->joined = run_join(s, rk->thread);
		all = all && (!rk->started || rk->joined);
	}
	return all;
}

static int train(struct run_state *s, struct err *e)
{
	struct comm *comms = xcalloc(s->locals, sizeof(*comms));
	size_t stack = (size_t)s->w->run.stack_bytes;
	bool all_left;
	int rc;

	s->group = comm_create(comms, s->locals, s->net, COMM_RANKS, &s->stop);
	for (uint32_t k = 0; k < s->locals; k++)
		s->rank[k].comm = comms[k];
	free(comms);
	s->phase = PROGRESS_TRAIN;
	s->phase_begin_ns = clock_now_ns();
	s->r->trained = s->w->workflow.train;
	s->r->checkpointed = s->checkpoint != NULL;
	rc = run_sampling_begin(s, e);
	if (rc == 0) {
		rc = monitor_start(s, e);
		if (rc < 0)
			run_sampling_end(s);
	}
	if (rc < 0) {
		comm_local_destroy(s->group);
		s->group = NULL;
		return rc;
	}
	for (uint32_t k = 0; rc == 0 && k < s->locals; k++) {
		char name[16];

		snprintf(name, sizeof(name), "rank%u", s->first + k);
		rc = thread_start(&s->rank[k].thread, rank_main, &s->rank[k], stack, name, e);
		s->rank[k].started = rc == 0;
		if (rc < 0)
			run_stop(s, e);
	}
	all_left = join_ranks(s);
	run_sampling_end(s);
	monitor_stop(s);
	for (uint32_t k = 0; k < s->locals && all_left; k++) {
		struct loader *both[2] = {s->rank[k].train, s->rank[k].eval};

		for (int i = 0; i < 2; i++)
			if (both[i] && s->loader_ops->destroy(both[i]) > 0)
				all_left = false;
	}
	s->r->stuck = !all_left;
	if (all_left) {
		comm_local_destroy(s->group);
		s->group = NULL;
	} else {
		log_warning("a thread is stuck in a request to the storage that cannot be "
			    "cancelled; the "
			    "results are written without it");
	}
	if (s->reason.code) {
		*e = s->reason;
		return e->code;
	}
	return rc;
}

/* A checkpoint benchmark is one epoch in which nothing is trained. */
static int only_checkpoints(struct run_state *s, struct err *e)
{
	int rc;

	s->r->epochs_planned = 1;
	rc = run_agree(s, allocate_ranks(s, e), e);
	return rc < 0 ? rc : run_agree(s, train(s, e), e);
}

static int check_reading(struct run_state *s, struct err *e)
{
	int rc = run_page_cache_check(s, e);

	if (rc == 0 && s->d->format->is.flags & FORMAT_MAPS &&
	    s->w->reader.access == ACCESS_FRAMEWORK)
		rc = store_map_check(s->store, e);
	return rc == 0 ? plan_steps(s, e) : rc;
}

/* All that can be found out before anything is written or read. */
static int prepare(struct run_state *s, struct err *e)
{
	const struct workload *w = s->w;
	int rc = store_create(&s->store, w->storage.store, node_path(w->tree, "workload.storage"),
			      e);

	if (rc < 0)
		return rc;
	rc = dataset_init(s->d, w, e);
	if (rc < 0)
		return rc;
	s->r->dataset = s->d;
	if ((!w->workflow.train && !w->workflow.checkpoint) || s->o->dataset_only)
		return 0;
	if (w->workflow.train)
		rc = check_reading(s, e);
	if (rc == 0 && w->workflow.checkpoint)
		rc = run_checkpoints_open(s, e);
	if (rc == 0)
		rc = bound_memory(s, e);
	return rc;
}

/* Process 0 looks for all. */
static int check_dataset(struct run_state *s, struct err *e)
{
	struct {
		struct presence_result presence;
		uint64_t name_total[DATASET_KINDS];
	} found;
	bool apart = s->net && store_base_flags(s->store) & STORE_IS_VOLATILE;
	int rc = 0;

	memset(&found, 0, sizeof(found));
	if (run_leads(s) || apart)
		rc = run_check_dataset(s, e);
	if (!s->net)
		return rc;
	if (apart)
		return run_agree(s, rc, e);
	found.presence = s->r->presence;
	memcpy(found.name_total, s->d->name_total, sizeof(found.name_total));
	rc = run_follow(s, rc, &found, sizeof(found), e);
	if (rc < 0)
		return rc;
	s->r->presence = found.presence;
	if (memcmp(found.name_total, s->d->name_total, sizeof(found.name_total)) != 0)
		rc = dataset_set_name_total(s->d, found.name_total, e);
	rc = run_agree(s, rc, e);
	return rc < 0 ? rc : run_check_shared(s, e);
}

static int carry_out(struct run_state *s, struct err *e)
{
	const struct workload *w = s->w;
	int rc = run_agree(s, prepare(s, e), e);

	if (rc == 0)
		rc = draw_seed(s, e);
	if (rc < 0)
		return rc;
	if (w->workflow.generate_data || s->o->dataset_only) {
		rc = generate(s, e);
		if (rc < 0)
			return rc;
	}
	if ((!w->workflow.train && !s->checkpoint) || s->o->dataset_only)
		return 0;
	if (!w->workflow.train)
		return only_checkpoints(s, e);
	rc = check_dataset(s, e);
	if (rc < 0)
		return rc;
	s->r->epochs_planned = run_planned_epochs(s);
	s->r->evaluated = w->workflow.evaluation;
	rc = allocate_ranks(s, e);
	if (rc == 0)
		rc = make_lists(s, e);
	rc = run_agree(s, rc, e);
	if (rc < 0)
		return rc;
	if (run_leads(s))
		dlio_log_plan(s->r);
	rc = run_agree(s, train(s, e), e);
	if (rc == 0 && !w->dataset.keep_files && run_leads(s)) {
		log_info("dataset.keep_files is false: removing the dataset in '%s'", s->d->folder);
		rc = dataset_remove(s->d, s->store, e);
	}
	return rc;
}

static void settle_places(struct run_state *s)
{
	const struct workload *w = s->w;

	s->net = s->o->net;
	s->ranks = s->o->ranks;
	s->locals = s->net ? s->ranks / net_processes(s->net) : s->ranks;
	s->first = s->net ? net_process_number(s->net) * s->locals : 0;
	s->r->speaks = run_leads(s);
	/* a dataset needs no folder of results */
	if (!s->o->dataset_only)
		snprintf(s->r->folder, sizeof(s->r->folder), "%s",
			 w->output.folder ? w->output.folder : w->run_dir);
}

/* Gathers, judges and writes; the code and sentence of the run. */
static int finish(struct run_state *s, int rc, struct err *cause)
{
	struct result *r = s->r;
	struct err unwritten = {0}, untraced = {0};
	int write_rc = 0, trace_rc;

	run_tell_end(s);
	/* of this process and by its clock: before all is one result */
	trace_rc = run_write_trace(s, &untraced);
	run_gather(s, &rc, cause);
	if (trace_rc < 0) {
		log_error("%s", untraced.text);
		if (rc == 0) {
			rc = trace_rc;
			*cause = untraced;
		}
	}
	if (!r->speaks)
		return rc;
	if (r->trained && r->rank) {
		struct err proof = {0};

		if (run_prove_order(s, &proof) < 0 && rc == 0) {
			*cause = proof;
			rc = proof.code;
		}
	}
	r->end_wall_ns = clock_wall_ns();
	r->peak_rss_bytes = proc_peak_rss_bytes();
	for (uint32_t p = 0; p < r->processes; p++)
		r->peak_rss_bytes += r->process[p].peak_rss_bytes;
	r->status = rc == 0 ? RUN_COMPLETE : rc == ERR_CANCELED ? RUN_INTERRUPTED : RUN_FAILED;
	if (rc < 0)
		r->reason = *cause;
	if (r->folder[0] && (r->trained || r->generated || r->checkpointed))
		write_rc = run_write_results(s, &unwritten);
	/* the first cause is the one to tell; the other one is at least logged */
	if (write_rc < 0 && rc < 0)
		log_error("%s", unwritten.text);
	if (write_rc < 0 && rc == 0) {
		rc = write_rc;
		*cause = unwritten;
	}
	return run_conclude(s, rc);
}

int run_execute(const struct workload *w, const struct run_options *o, struct dataset *d,
		struct result *r, struct err *e)
{
	struct run_state *s = xcalloc(1, sizeof(*s));
	struct err cause = {0};
	int64_t since;
	int rc;

	s->w = w;
	s->output.fd = -1;
	s->o = o;
	s->d = d;
	s->r = r;
	pthread_mutex_init(&s->lock, NULL);
	clock_init();
	r->workload = w;
	r->ranks = o->ranks;
	r->begin_wall_ns = o->start_wall_ns;
	/* not in the future, where another host's clock that is ahead, or a step back, would put it
	 */
	since = clock_wall_ns() - o->start_wall_ns;
	r->begin_ns = clock_now_ns() - (since > 0 ? since : 0);
	host_facts_load(&r->host);
	settle_places(s);
	s->loader_ops = loader_find(w->reader.data_loader);
	rc = r->folder[0] && run_leads(s) ? run_open_folder(s, &cause) : 0;
	if (rc == 0 && !s->loader_ops && w->workflow.train)
		rc = err_set(&cause, ERR_ABSENT, "reader.data_loader: '%s' is not in this version",
			     w->reader.data_loader);
	rc = run_agree(s, rc, &cause);
	if (rc == 0) {
		if (run_leads(s))
			dlio_log_running(w, o->ranks);
		rc = carry_out(s, &cause);
	}
	rc = finish(s, rc, &cause);
	if (rc < 0)
		*e = cause;
	log_close(rc ? NULL : e);
	file_unlock(&s->output);
	/* a stuck thread still uses them; the process is about to end */
	if (!r->stuck) {
		checkpoint_close(s->checkpoint);
		store_destroy(s->store);
		free(s->rank);
		free(s->seen_rank);
		for (int kind = 0; kind < DATASET_KINDS; kind++)
			order_list_release(&s->list[kind]);
		pthread_mutex_destroy(&s->lock);
		free(s);
	}
	return rc;
}
