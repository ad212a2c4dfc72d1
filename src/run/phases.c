/* One run: the order of its phases, and what becomes of it when one fails. */
#include "run/run.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/run_delay.h"
#include "comm/net.h"
#include "conf/node.h"
#include "dataset/generate.h"
#include "dataset/listed.h"
#include "dataset/presence.h"
#include "os/sysinfo.h"
#include "result/dlio_log.h"
#include "run/apart.h"
#include "run/barrier_cost.h"
#include "run/checkpoints.h"
#include "run/epoch_edges.h"
#include "run/finish.h"
#include "run/memory_bound.h"
#include "run/plan.h"
#include "run/rank.h"
#include "run/shared.h"
#include "run/stops.h"
#include "run/sweep.h"
#include "run/together.h"
#include "run/watch.h"
#include "store/mapped.h"

/* Sizes asked for at once by the check of the dataset: their latencies count, not the CPU. */
#define CHECK_THREADS 16
#define CHECK_STACK (1u << 20)

struct run {
	const struct run_options *o;
	struct run_place at;
	struct run_plan plan;
	struct run_shared shared;
	struct run_watch watch;
	struct rank *rank; /* at.locals of them */
	struct result *r;
	struct file_lock output; /* of the folder of results, held by the leading process */
};

/* ---- what the storage may never answer ---- */

/* A part of the run in a thread that can be left behind: the result says stuck then. */
static int apart(struct run *run, int (*work)(void *arg, struct err *e), const char *place,
		 const char *folder, double limit_s, struct err *e)
{
	AUTO_FREE char *words = xasprintf("%s '%.600s'", place, folder);
	const struct apart a = {.work = work, .arg = run, .place = words, .limit_s = limit_s};

	return run_apart(&run->shared.stop, &a, &run->r->stuck, e);
}

static int apart_at_data(struct run *run, int (*work)(void *arg, struct err *e), struct err *e)
{
	return apart(run, work, "the storage below", run->plan.w->dataset.data_folder,
		     run->plan.w->run.watchdog, e);
}

/* ---- before anything is written or read ---- */

/* What is planned, in the result. */
static void state_plan(const struct run_plan *p, struct result *r)
{
	r->steps_per_epoch = p->steps[DATASET_TRAIN];
	r->eval_steps = p->steps[DATASET_EVAL];
	r->dropped_samples = p->dropped_samples;
	r->memory_bound_bytes = p->memory_bound_bytes;
	r->shuffle_seed = p->seed;
}

static int check_reading(const struct run_plan *p, struct err *e)
{
	int rc = page_cache_check(p, e);

	if (rc == 0 && p->d->format->is.flags & FORMAT_MAPS &&
	    p->w->reader.access == ACCESS_FRAMEWORK)
		rc = store_map_check(p->store, e);
	return rc;
}

/* What is stored where. */
static int describe_run(void *arg, struct err *e)
{
	struct run *run = arg;
	struct run_plan *p = &run->plan;
	int rc = store_create(&p->store, p->w->storage.store,
			      node_path(p->w->tree, "workload.storage"), e);

	if (rc == 0)
		rc = dataset_init(p->d, p->w, e);
	if (rc < 0 || p->w->dataset.names != NAMES_LISTED || !workload_reads(p->w))
		return rc;
	rc = dataset_find(p->d, p->store, CHECK_THREADS, &run->shared.stop.flag, NULL, e);
	return rc < 0 ? rc : dataset_found_agrees(p->d, e);
}

static int plan_run(void *arg, struct err *e)
{
	struct run *run = arg;
	struct run_plan *p = &run->plan;
	const struct workload *w = p->w;
	int rc = workload_reads(w) ? check_reading(p, e) : 0;

	if (rc == 0)
		rc = plan_make(p, e);
	if (rc == 0 && w->workflow.checkpoint)
		rc = checkpoint_open(&p->checkpoint, w, p->at->ranks, e);
	if (rc == 0 && p->checkpoint)
		rc = checkpoints_check(p, run->r, e);
	if (rc == 0)
		rc = run_memory(p, e);
	return rc;
}

/* All that can be found out before anything is written or read. The result has the dataset once no
 * thread that describes it can be left behind. */
static int prepare_run(struct run *run, struct err *e)
{
	const struct workload *w = run->plan.w;
	int rc = apart_at_data(run, describe_run, e);

	if (rc < 0)
		return rc;
	run->r->dataset = run->plan.d;
	rc = servers_init(&run->r->servers, run->plan.store, e);
	if (rc < 0)
		return rc;
	if ((!workload_reads(w) && !w->workflow.checkpoint) || run->o->dataset_only)
		return 0;
	return apart_at_data(run, plan_run, e);
}

/* ---- the dataset ---- */

/* Whether each process has a dataset of its own, in its memory. */
static bool datasets_apart(const struct run *run)
{
	return run->at.net && store_base_flags(run->plan.store) & STORE_IS_VOLATILE;
}

/* NAN where it cannot be found out. */
static int find_mean_file_bytes(void *arg, struct err *e)
{
	struct run *run = arg;
	struct dataset *d = run->plan.d;
	enum dataset_kind kind = d->files[DATASET_TRAIN] ? DATASET_TRAIN : DATASET_EVAL;
	enum dataset_sizes how;
	double mean;
	int rc = d->total_bytes == UINT64_MAX ? file_sizes_look(d, run->plan.store, e) : 0;

	if (rc < 0)
		return rc; /* files that were just made cannot be looked at */
	mean = dataset_mean_file_bytes(d, kind, &how);
	run->r->generation.mean_file_bytes = how == SIZES_EXACT || how == SIZES_SEEN ? mean : NAN;
	return 0;
}

static int write_dataset(void *arg, struct err *e)
{
	struct run *run = arg;
	const struct generate_options o = {
		.stop = &run->shared.stop.flag,
		.progress = &run->shared.generate,
		.threads = plan_generate_threads(&run->at),
		.together = run->at.net && !datasets_apart(run) ? run->at.processes : NULL,
	};

	return dataset_generate(run->plan.d, run->plan.store, &o, e);
}

static int generate_dataset(struct run *run, struct err *e)
{
	struct generate_progress *done = &run->shared.generate;
	bool own = datasets_apart(run);
	int64_t begin = clock_now_ns();
	struct result *r = run->r;
	int rc;

	dlio_log_generation_start(run->plan.d);
	rc = watch_start(&run->watch, PROGRESS_GENERATE, e);
	if (rc < 0)
		return rc;
	/* watched by its progress: its thread waits for others */
	rc = apart(run, write_dataset, "the storage below", run->plan.w->dataset.data_folder, 0, e);
	if (own)
		rc = run_agree(&run->at, rc, e);
	watch_stop(&run->watch);
	watch_tell(&run->watch);
	r->generation.files = atomic_load_explicit(&done->files_done, memory_order_relaxed);
	r->generation.skipped = atomic_load_explicit(&done->files_skipped, memory_order_relaxed);
	r->generation.bytes = atomic_load_explicit(&done->bytes_done, memory_order_relaxed);
	r->generation.wall_ns = clock_now_ns() - begin;
	r->generated = true;
	if (rc < 0)
		return rc;
	dlio_log_generation_end();
	if (run_leads(&run->at) || own)
		rc = apart_at_data(run, find_mean_file_bytes, e);
	return rc;
}

struct checking {
	const struct run_plan *plan;
	bool survey_only;
	uint32_t node;
	struct run_shared *shared;
	struct presence_result found;
	struct err err;
	int rc;
	struct thread thread;
};

/* What the files hold and where they lie. Every host looks at some, and has at least a quarter of
 * the samples, since it may have a copy of its own. */
static int survey_files(const struct run_plan *p, struct run_shared *shared, uint32_t node,
			struct presence_result *found, struct err *e)
{
	uint64_t all = (uint64_t)p->w->dataset.verify_samples;
	uint64_t nodes = run_nodes(p->at), share = nodes < 4 ? nodes : 4;
	const struct survey_job job = {
		.dataset = p->d,
		.store = p->store,
		.eval = p->w->workflow.evaluation,
		.generated = found->how == PRESENCE_MANIFEST,
		/* what files that others wrote should hold is not known */
		.samples = p->d->listed ? 0 : (all + share - 1) / share,
		.seed = p->seed + node,
		.stop = &shared->stop.flag,
		.done = &shared->checked,
	};

	return dataset_survey(&job, &found->survey, e);
}

static void check_main(void *arg)
{
	struct checking *c = arg;
	const struct run_plan *p = c->plan;
	struct presence_options o = {.threads = CHECK_THREADS,
				     .stop = &c->shared->stop.flag,
				     .done = &c->shared->checked};

	if (!c->survey_only)
		c->rc = dataset_check(p->d, p->store, p->w->workflow.evaluation, &o, &c->found,
				      &c->err);
	if (c->rc == 0)
		c->rc = survey_files(p, c->shared, c->node, &c->found, &c->err);
}

/* Looks at the dataset in a thread of its own, watched, so that storage that does not answer cannot
 * hold the run: then the result says stuck. `found` holds what is known, and is filled. */
static int look_at_files(struct run *run, bool survey_only, uint32_t node,
			 struct presence_result *found, struct err *e)
{
	struct checking *c = xcalloc(1, sizeof(*c));
	int rc;

	c->plan = &run->plan;
	c->shared = &run->shared;
	c->survey_only = survey_only;
	c->node = node;
	c->found = *found;
	rc = watch_start(&run->watch, PROGRESS_CHECK, e);
	if (rc < 0) {
		free(c);
		return rc;
	}
	rc = thread_run(&c->thread, check_main, c, CHECK_STACK, "check", e);
	if (rc == 0)
		run->r->stuck = !run_join(&run->shared.stop, &c->thread);
	watch_stop(&run->watch);
	/* the thread keeps `c` */
	if (run->r->stuck)
		return run_stop_reason(&run->shared.stop, e);
	if (rc == 0) {
		*found = c->found;
		rc = c->rc;
		/* of a check that ended because of the stop, the stop's cause */
		if (rc < 0 && run_stop_reason(&run->shared.stop, e) == 0)
			*e = c->err;
		else if (rc < 0)
			rc = e->code;
	}
	free(c);
	return rc;
}

/* The first process of each other host looks at files, too; process 0 adds up what they found. */
static int survey_hosts(struct run *run, struct err *e)
{
	const struct run_place *at = &run->at;
	const struct net_process *me = net_process(at->net, net_process_number(at->net));
	struct presence_result mine = {.how = run->r->presence.how};
	struct buf *part;
	int rc = 0;

	if (net_nodes(at->net) == 1)
		return 0;
	part = xcalloc(net_processes(at->net), sizeof(*part));
	if (me->on_node == 0 && !run_leads(at))
		rc = look_at_files(run, true, me->node, &mine, e);
	if (comm_gather(at->processes, &mine.survey, sizeof(mine.survey), part) < 0 && rc == 0)
		rc = err_set(e, ERR_CANCELED, "the run was stopped");
	for (uint32_t p = 1; p < net_processes(at->net); p++) {
		if (run_leads(at) && part[p].len == sizeof(mine.survey))
			survey_add(&run->r->presence.survey,
				   (const struct survey *)(const void *)part[p].data);
		buf_release(&part[p]);
	}
	buf_release(&part[0]);
	free(part);
	return run_agree(at, rc, e);
}

/* Process 0 looks for all. */
static int check_everywhere(struct run *run, struct err *e)
{
	const struct run_place *at = &run->at;
	struct dataset *d = run->plan.d;
	struct result *r = run->r;
	struct {
		struct presence_result presence;
		uint64_t name_total[DATASET_KINDS];
		uint64_t seen_files[DATASET_KINDS], seen_bytes[DATASET_KINDS];
	} found;
	int rc = 0;

	memset(&found, 0, sizeof(found));
	if (run_leads(at) || datasets_apart(run))
		rc = look_at_files(run, false, 0, &r->presence, e);
	if (!at->net)
		return rc;
	if (datasets_apart(run))
		return run_agree(at, rc, e);
	found.presence = r->presence;
	memcpy(found.name_total, d->name_total, sizeof(found.name_total));
	memcpy(found.seen_files, d->seen_files, sizeof(found.seen_files));
	memcpy(found.seen_bytes, d->seen_bytes, sizeof(found.seen_bytes));
	rc = run_follow(at, rc, &found, sizeof(found), e);
	if (rc < 0)
		return rc;
	r->presence = found.presence;
	memcpy(d->seen_files, found.seen_files, sizeof(found.seen_files));
	memcpy(d->seen_bytes, found.seen_bytes, sizeof(found.seen_bytes));
	if (memcmp(found.name_total, d->name_total, sizeof(found.name_total)) != 0)
		rc = dataset_set_name_total(d, found.name_total, e);
	rc = run_agree(at, rc, e);
	if (rc < 0)
		return rc;
	rc = run_check_shared(at,
			      &(struct shared_look){
				      .d = d,
				      .store = run->plan.store,
				      .eval = run->plan.w->workflow.evaluation,
				      .stop = &run->shared.stop,
				      .limit_s = run->plan.w->run.watchdog,
				      .stuck = &r->stuck,
			      },
			      r->presence.note, sizeof(r->presence.note), e);
	return rc < 0 ? rc : survey_hosts(run, e);
}

/* ---- the ranks ---- */

static int start_ranks(struct run *run, struct err *e)
{
	size_t stack = (size_t)run->plan.w->run.stack_bytes;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < run->at.locals; i++) {
		struct rank *k = &run->rank[i];
		char name[16];

		snprintf(name, sizeof(name), "rank%u", run->at.first + i);
		rc = thread_run(&k->thread, rank_main, k, stack, name, e);
		if (rc < 0)
			run_stop(&run->shared.stop, e);
	}
	return rc;
}

/* Waits for the rank threads; once the run was stopped, a few seconds for all of them together.
 * false when one is stuck in the system: then nothing it uses may be freed, and the process should
 * end soon. */
static bool join_ranks(struct run *run)
{
	bool all = true;

	for (uint32_t i = 0; i < run->at.locals; i++) {
		struct rank *k = &run->rank[i];

		if (!k->thread.running) /* not started */
			continue;
		run_join(&run->shared.stop, &k->thread);
		rank_collect(k);
		all = all && !k->thread.running;
	}
	return all;
}

static void create_group(struct run *run)
{
	struct comm *comms = xcalloc(run->at.locals, sizeof(*comms));

	run->shared.stop.group =
		comm_create(comms, run->at.locals, run->at.net, COMM_RANKS, &run->shared.stop.flag);
	for (uint32_t i = 0; i < run->at.locals; i++)
		run->rank[i].comm = comms[i];
	free(comms);
}

static void destroy_group(struct run *run)
{
	assert(run->shared.stop.group);
	comm_local_destroy(run->shared.stop.group);
	run->shared.stop.group = NULL;
}

static int begin_sampling(void *arg, struct err *e)
{
	struct run *run = arg;

	return watch_sampling_begin(&run->watch, e);
}

static int end_sampling(void *arg, struct err *e)
{
	struct run *run = arg;

	return watch_sampling_end(&run->watch, e);
}

/* Closing files is a request, too. */
static int release_loaders(void *arg, struct err *e)
{
	struct run *run = arg;

	(void)e;
	for (uint32_t i = 0; i < run->at.locals; i++)
		if (!rank_release_loaders(&run->rank[i]))
			return 1;
	return 0;
}

static int run_ranks(struct run *run, struct err *e)
{
	const char *folder = run->r->folder;
	struct err first, unwritten;
	int rc, rc_end, rc_release;
	bool all_left;

	rc = barrier_choose(&run->at, run->o->fabric, &run->r->barrier, run->plan.w,
			    &run->shared.stop.flag, e);
	if (rc < 0)
		return rc;
	create_group(run);
	run->r->trained = run->plan.w->workflow.train;
	run->r->only_evaluated = workload_only_evaluates(run->plan.w);
	run->r->checkpointed = run->plan.checkpoint != NULL;
	rc = apart_at_data(run, begin_sampling, e);
	if (rc == 0) {
		rc = watch_start(&run->watch, PROGRESS_TRAIN, e);
		if (rc < 0)
			watch_sampling_end(&run->watch, NULL);
	}
	if (rc < 0) {
		destroy_group(run);
		return rc;
	}
	run_delay_enable(run->plan.w->run.measure == MEASURE_ALL);
	rc = start_ranks(run, e);
	all_left = join_ranks(run);
	rc_end = apart(run, end_sampling, "the folder of results", folder,
		       run->plan.w->run.watchdog, &unwritten);
	/* its thread was refused: nothing may sample when what it reads is released */
	if (rc_end < 0 && !run->r->stuck)
		watch_sampling_end(&run->watch, NULL);
	if (rc_end < 0 && rc == 0) {
		*e = unwritten;
		rc = unwritten.code;
	}
	watch_stop(&run->watch);
	watch_keep_reads(&run->watch);
	if (all_left) {
		rc_release = apart_at_data(run, release_loaders, &unwritten);
		/* its thread was refused */
		if (rc_release < 0 && !run->r->stuck)
			rc_release = release_loaders(run, &unwritten);
		all_left = rc_release == 0;
	}
	run->r->stuck = run->r->stuck || !all_left;
	if (all_left)
		stops_apply(&run->watch.stops, run->r);
	if (all_left)
		destroy_group(run);
	if (run_stop_reason(&run->shared.stop, &first) < 0) {
		*e = first;
		rc = first.code;
	}
	return rc;
}

/* Ranks with all their memory, but for what they allocate themselves. */
static int create_ranks(struct run *run, struct err *e)
{
	int rc;

	run->r->epochs_planned = run->plan.epochs;
	rc = ranks_create(&run->rank, &run->plan, &run->shared, run->r, e);
	run->watch.rank = run->rank;
	if (rc == 0 && workload_reads(run->plan.w))
		rc = plan_lists(&run->plan, run->shared.list, e);
	return run_agree(&run->at, rc, e);
}

/* The folders into which shards are downloaded. */
static int set_up_caches(void *arg, struct err *e)
{
	struct run *run = arg;
	struct run_plan *p = &run->plan;
	const bool read[DATASET_KINDS] = {
		[DATASET_TRAIN] = p->w->workflow.train,
		[DATASET_EVAL] = p->w->workflow.evaluation && p->steps[DATASET_EVAL],
	};
	int rc = 0;

	for (int kind = 0; kind < DATASET_KINDS && rc == 0; kind++) {
		if (!read[kind])
			continue;
		rc = shard_cache_create(&p->cache[kind], p->d, (enum dataset_kind)kind, p->store,
					e);
		if (rc == 0)
			rc = shard_cache_set_up(p->cache[kind], &run->shared.stop.flag, e);
	}
	return rc;
}

/* Hosts have a folder each. The account of one is this process's. */
static int open_caches(struct run *run, struct err *e)
{
	const struct workload *w = run->plan.w;
	int rc = 0;

	if (!workload_reads(w) || !shard_cache_wanted(w))
		return 0;
	if (run_processes_here(&run->at) > 1)
		rc = err_set(e, ERR_USAGE,
			     "reader.cache_folder: %u processes of the run are on this host, and "
			     "each would keep its own account of what the folder holds: start one "
			     "process on each host, with all its ranks",
			     run_processes_here(&run->at));
	else if (w->reader.nodes > 1 && w->reader.nodes != run_nodes(&run->at))
		rc = err_set(e, ERR_USAGE,
			     "reader.nodes is %lld and the run is on %u %s: with "
			     "reader.cache_folder, each node needs the folder of a host of its own",
			     (long long)w->reader.nodes, run_nodes(&run->at),
			     run_nodes(&run->at) == 1 ? "host" : "hosts");
	if (rc == 0)
		rc = apart_at_data(run, set_up_caches, e);
	return run_agree(&run->at, rc, e);
}

static void probe_storage(struct run *run)
{
	double time_s = probe_time_s(&run->plan, run->r);
	struct err e;
	bool watched;

	if (!(time_s > 0))
		return;
	watched = watch_start(&run->watch, PROGRESS_PROBE, &e) == 0;
	probe_sweep(&run->plan, &run->shared, time_s, run->r);
	if (watched)
		watch_stop(&run->watch);
	else
		log_warning("the probe could not be stopped by a signal: %s", e.text);
}

static int remove_dataset(void *arg, struct err *e)
{
	struct run *run = arg;

	log_info("dataset.keep_files is false: removing the dataset in '%s'", run->plan.d->folder);
	return dataset_remove(run->plan.d, run->plan.store, e);
}

/* ---- the phases ---- */

static int carry_out(struct run *run, struct err *e)
{
	const struct workload *w = run->plan.w;
	int rc = run_agree(&run->at, prepare_run(run, e), e);

	if (rc == 0)
		rc = plan_draw_seed(&run->plan, e);
	/* a thread that was left behind may still be planning */
	if (!run->r->stuck)
		state_plan(&run->plan, run->r);
	if (rc == 0 && (w->workflow.generate_data || run->o->dataset_only))
		rc = generate_dataset(run, e);
	if (rc < 0 || (!workload_reads(w) && !run->plan.checkpoint) || run->o->dataset_only)
		return rc;
	if (workload_reads(w))
		rc = check_everywhere(run, e);
	if (rc == 0)
		rc = open_caches(run, e);
	if (rc < 0)
		return rc;
	run->r->evaluated = workload_reads(w) && w->workflow.evaluation;
	rc = create_ranks(run, e);
	if (rc < 0)
		return rc;
	if (w->workflow.train && run_leads(&run->at))
		dlio_log_plan(run->r);
	rc = run_agree(&run->at, run_ranks(run, e), e);
	if (rc == 0)
		probe_storage(run);
	if (rc == 0 && workload_reads(w) && !w->dataset.keep_files && run_leads(&run->at))
		rc = apart_at_data(run, remove_dataset, e);
	return rc;
}

static int open_folder(void *arg, struct err *e)
{
	struct run *run = arg;

	return finish_open_folder(run->plan.w, run->r->folder, &run->output, e);
}

static int close_folder(void *arg, struct err *e)
{
	struct run *run = arg;

	(void)e;
	file_unlock(&run->output);
	return 0;
}

static int open_run(struct run *run, struct err *e)
{
	const struct workload *w = run->plan.w;
	struct result *r = run->r;
	int rc = 0;

	/* a dataset needs no folder of results */
	if (!run->o->dataset_only)
		snprintf(r->folder, sizeof(r->folder), "%s",
			 w->output.folder ? w->output.folder : w->run_dir);
	if (r->folder[0])
		rc = alloc_reserve(finish_memory(run->at.ranks), e);
	if (rc == 0 && r->folder[0] && run_leads(&run->at))
		rc = apart(run, open_folder, "the folder of results", r->folder, w->run.watchdog,
			   e);
	if (rc == 0 && !run->plan.loader && workload_reads(w))
		rc = err_set(e, ERR_ABSENT, "reader.data_loader: '%s' is not supported",
			     w->reader.data_loader);
	rc = run_agree(&run->at, rc, e);
	if (rc == 0 && run_leads(&run->at))
		dlio_log_running(w, run->at.ranks);
	return rc;
}

static struct run *create_run(const struct workload *w, const struct run_options *o,
			      struct dataset *d, struct result *r)
{
	struct run *run = xcalloc(1, sizeof(*run));

	assert(o->ranks > 0 && (!o->net || o->processes));
	run->o = o;
	run->r = r;
	run->output.fd = run->shared.apart.fd = -1;
	run_place_init(&run->at, o->net, o->processes, o->ranks);
	run_stop_init(&run->shared.stop, o->net, o->stop);
	run->plan = (struct run_plan){
		.w = w,
		.at = &run->at,
		.d = d,
		.loader = loader_find(w->reader.data_loader),
		.no_own_probe = o->net || o->one_of_many,
	};
	run->watch = (struct run_watch){.plan = &run->plan, .o = o, .shared = &run->shared, .r = r};
	return run;
}

static void release_run(struct run *run)
{
	checkpoint_close(run->plan.checkpoint);
	for (int kind = 0; kind < DATASET_KINDS; kind++)
		shard_cache_destroy(run->plan.cache[kind]);
	store_destroy(run->plan.store);
	watch_release(&run->watch);
	free(run->rank);
	for (int kind = 0; kind < DATASET_KINDS; kind++)
		order_list_release(&run->shared.list[kind]);
	run_stop_release(&run->shared.stop);
	free(run);
}

static void begin_result(struct result *r, const struct run *run)
{
	int64_t since;

	clock_init();
	r->workload = run->plan.w;
	r->ranks = run->at.ranks;
	r->speaks = run_leads(&run->at);
	r->begin_wall_ns = run->o->start_wall_ns;
	/* not in the future, where another host's clock that is ahead, or a step back, would put it
	 */
	since = clock_wall_ns() - run->o->start_wall_ns;
	r->begin_ns = clock_now_ns() - (since > 0 ? since : 0);
	host_facts_load(&r->host);
}

int run_execute(const struct workload *w, const struct run_options *o, struct dataset *d,
		struct result *r, struct err *e)
{
	struct run *run = create_run(w, o, d, r);
	struct err cause = {0};
	int rc;

	begin_result(r, run);
	rc = open_run(run, &cause);
	if (rc == 0)
		rc = carry_out(run, &cause);
	if (rc == 0)
		rc = alloc_refusal(&cause);
	watch_tell_end(&run->watch);
	alloc_for_results();
	rc = finish_run(&run->plan, &run->shared, o->stop, r, rc, &cause);
	if (rc < 0)
		*e = cause;
	/* where the folder does not answer, the end of the process ends the lock */
	if (run->output.fd >= 0 && !r->unwritable)
		run_apart(&run->shared.stop,
			  &(struct apart){.work = close_folder,
					  .arg = run,
					  .place = "the folder of results",
					  .limit_s = finish_limit_s(&run->plan, r),
					  .after = true},
			  &r->stuck, NULL);
	r->stuck = r->stuck || r->probe.hung;
	/* a stuck thread still uses them; the process is about to end */
	if (!r->stuck) {
		release_run(run);
		alloc_reserve_release();
	}
	return rc;
}
