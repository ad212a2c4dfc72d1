/* A rank's part in each checkpoint. */
#include "run/checkpoints.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/saturate.h"
#include "base/str.h"
#include "comm/net.h"
#include "metric/host_io.h"
#include "result/dlio_log.h"
#include "workload/key.h"

/* How often a wait for the background thread looks at the run's stop. */
#define LOOK_NS (NS_PER_S / 10)

/* ---- whose files a rank reads back: the ranks of the hosts in a row, turned by a host ---- */

static uint32_t processes_on(const uint32_t *node, uint32_t processes, uint32_t which)
{
	uint32_t n = 0;

	for (uint32_t p = 0; p < processes; p++)
		n += node[p] == which;
	return n;
}

uint32_t recovery_source(const uint32_t *node, uint32_t processes, uint32_t each, uint32_t rank)
{
	uint32_t own = rank / each, at = 0, largest = 0, left = processes;

	for (uint32_t p = 0; p < processes; p++)
		at += node[p] < node[own] || (node[p] == node[own] && p < own);
	for (uint32_t host = 0; left > 0; host++) {
		uint32_t here = processes_on(node, processes, host);

		largest = here > largest ? here : largest;
		left -= here;
	}
	/* hosts have whole processes, so places within them stay as they are */
	at = (at + largest) % processes;
	for (uint32_t host = 0;; host++) {
		uint32_t here = processes_on(node, processes, host);

		if (at >= here) {
			at -= here;
			continue;
		}
		for (uint32_t p = 0; p < processes; p++)
			if (node[p] == host && at-- == 0)
				return p * each + rank % each;
	}
}

/* ---- once a process ---- */

/* Whose files a rank reads back; -ENOMEM. */
static int64_t recovery_rank(const struct run_plan *p, uint32_t rank, struct err *e)
{
	uint32_t n = p->at->net ? net_processes(p->at->net) : 1, *node;
	int64_t from = rank;

	if (!p->w->checkpoint.recovery_rank_shift || run_nodes(p->at) == 1)
		return from;
	node = try_calloc(n, sizeof(*node), "hosts", e);
	if (!node)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		node[i] = net_process(p->at->net, i)->node;
	from = recovery_source(node, n, p->at->locals, rank);
	free(node);
	return from;
}

/* Is there space? What an earlier run left is written over, so that only a folder of its own tells
 * that even the first will not fit. */
static int check_free_space(const struct run_plan *p, uint64_t one, struct err *e)
{
	AUTO_FREE char *folder = path_absolute(p->w->checkpoint.checkpoint_folder);
	/* by time only the first one is certain */
	uint64_t all = p->save_every_ns ? 1 : p->saves, bytes, files;
	uint64_t keep = (uint64_t)p->w->checkpoint.keep_last;
	char need[32], have[32];
	struct store_stat st;

	if (all == 0 || store_space(p->store, folder, &bytes, &files, NULL) != 0)
		return 0;
	if (keep > 0 && all > keep + 1)
		all = keep + 1;
	if ((double)one * (double)all <= (double)bytes)
		return 0;
	str_bytes((double)one * (double)all, need, sizeof(need));
	str_bytes((double)bytes, have, sizeof(have));
	if (one > bytes && store_stat_path(p->store, folder, &st, NULL) != 0)
		return err_set(
			e, -ENOSPC,
			"checkpoint.checkpoint_folder: %llu checkpoint%s of this model need%s "
			"%s, but only %s are free in '%s': free space, use another folder "
			"or a smaller model (stoker show checkpoint prints sizes)",
			(unsigned long long)all, all == 1 ? "" : "s", all == 1 ? "s" : "", need,
			have, folder);
	log_warning(
		"%llu checkpoint%s of this model need%s %s, but only %s are free in '%s'; files "
		"of an earlier run there may be overwritten",
		(unsigned long long)all, all == 1 ? "" : "s", all == 1 ? "s" : "", need, have,
		folder);
	return 0;
}

static void warn_partial(const struct run_plan *p, const struct checkpoint_totals *t)
{
	const struct checkpoint_plan *model = checkpoint_plan_of(p->checkpoint);

	if (p->w->checkpoint.mode == 1 || t->ranks >= t->whole_ranks)
		return;
	log_warning("partial model: %llu rank%s not a multiple of model.parallelism tensor %lld x "
		    "pipeline %lld; checkpoints contain only what the first %llu of %llu ranks "
		    "write (%.3g %% of the bytes)",
		    (unsigned long long)t->ranks, t->ranks == 1 ? " is" : "s are",
		    (long long)model->tensor, (long long)model->pipeline,
		    (unsigned long long)t->ranks, (unsigned long long)t->whole_ranks,
		    t->whole_bytes ? 100 * (double)t->total_bytes / (double)t->whole_bytes : 0.0);
}

/* What lies below the folder. */
static void find_disks(const struct run_plan *p, struct result *r)
{
	AUTO_FREE char *folder = path_absolute(p->w->checkpoint.checkpoint_folder);

	if (!(store_base_flags(p->store) & STORE_HAS_FILES))
		return;
	r->checkpoint_source = xcalloc(1, sizeof(*r->checkpoint_source));
	host_io_source_init(r->checkpoint_source, "", folder);
}

/* The folder that nobody has chosen is in the one where the command was given. */
static void warn_elsewhere(const struct run_plan *p)
{
	AUTO_FREE char *folder = path_absolute(p->w->checkpoint.checkpoint_folder);
	AUTO_FREE char *data = NULL, *own = NULL, *near = NULL;
	struct stat there = {0}, here = {0};

	if (!workload_reads(p->w) || !(store_base_flags(p->store) & STORE_HAS_FILES) ||
	    workload_is_chosen(p->w, "checkpoint.checkpoint_folder"))
		return;
	data = path_absolute(p->w->dataset.data_folder);
	near = path_nearest(data, &there);
	own = path_nearest(folder, &here);
	if (near && own && there.st_dev != here.st_dev)
		log_warning("checkpoints are written to '%s', which is on another file system than "
			    "the data ('%s'), and stay there: "
			    "checkpoint.checkpoint_folder=%s/checkpoints writes them beside it",
			    folder, data, p->w->dataset.data_folder);
}

int checkpoints_check(const struct run_plan *p, struct result *r, struct err *e)
{
	int rc = p->loads ? checkpoint_check_reading(p->checkpoint, p->store, e) : 0;

	assert(p->checkpoint);
	if (rc < 0)
		return rc;
	find_disks(p, r);
	if (run_leads(p->at))
		warn_elsewhere(p);
	if (p->w->checkpoint.recovery_rank_shift && run_nodes(p->at) == 1)
		log_warning("checkpoint.recovery_rank_shift has no effect: all ranks are on one "
			    "node and read back their own files");
	checkpoint_plan_totals(checkpoint_plan_of(p->checkpoint), &r->checkpoint_totals);
	if (run_leads(p->at))
		warn_partial(p, &r->checkpoint_totals);
	r->checkpoint_parameters = checkpoint_plan_of(p->checkpoint)->parameters;
	if (run_leads(p->at))
		dlio_log_checkpoint_size(r);
	return check_free_space(p, r->checkpoint_totals.total_bytes, e);
}

uint64_t checkpoints_bytes(const struct run_plan *p)
{
	const struct workload *w = p->w;
	uint64_t n, saves, each, counters = plan_saves(p) + (p->loads > 0);

	if (!p->checkpoint)
		return 0;
	n = checkpoint_memory_bytes(p->checkpoint);
	for (uint32_t k = p->at->first; k < p->at->first + p->at->locals; k++)
		n += checkpoint_rank_memory_bytes(p->checkpoint, p->store, k) +
		     counters * sizeof(struct io_stat) +
		     (w->run.trace == TRACE_OFF
			      ? 0
			      : trace_ring_named_bytes((uint64_t)w->run.trace_events)) +
		     (w->checkpoint.async ? (uint64_t)w->run.stack_bytes : 0);
	saves = p->save_every_ns ? u64_product(CHECKPOINTS_AT_FIRST, p->epochs) : p->saves;
	saves = u64_sum(saves, p->loads);
	each = sizeof(struct checkpoint_times) + sizeof(struct checkpoint_name) +
	       (p->save_every || p->save_every_ns ? sizeof(struct phase) : 0);
	return u64_sum(n, u64_product(u64_product(saves, p->at->locals), each));
}

/* ---- counters around one checkpoint ---- */

/* Bytes that the disks have read or written so far, whoever caused it. */
static bool disks_moved(const struct rank_checkpoints *c, bool load, uint64_t *bytes)
{
	struct block_counters now = {0};

	if (c->disks)
		block_list_sample(c->disks, &now);
	*bytes = load ? now.read_bytes : now.written_bytes;
	return now.known;
}

static void note_begin(struct rank_checkpoints *c, struct checkpoint_times *t, bool load)
{
	proc_io_sample(&t->io_before);
	t->disk_known = disks_moved(c, load, &t->disk_before_bytes);
	t->begin_wall_ns = clock_wall_ns();
	t->begin_ns = clock_now_ns();
}

static void note_end(struct rank_checkpoints *c, struct checkpoint_times *t, bool load, bool whole)
{
	bool known;

	t->end_ns = clock_now_ns();
	t->end_wall_ns = clock_wall_ns();
	t->done = whole;
	if (whole) {
		atomic_fetch_add_explicit(&c->live->checkpoint_bytes, t->stat.payload_bytes,
					  memory_order_relaxed);
		atomic_fetch_add_explicit(load ? &c->live->loads_done : &c->live->saves_done, 1,
					  memory_order_release);
	}
	proc_io_sample(&t->io_after);
	known = disks_moved(c, load, &t->disk_after_bytes);
	t->disk_known = t->disk_known && known;
}

/* ---- writing in the background ---- */

static void background_write_one(struct rank_checkpoints *c)
{
	struct checkpoint_times *t = &c->writing;

	c->rc = checkpoint_write(c->rank, t->epoch, t->step, &c->io, &t->stat, &c->err);
	note_end(c, t, false, c->rc == 0);
}

static void *background_main(void *arg)
{
	struct rank_checkpoints *c = arg;

	store_serve_rank(c->comm->rank);
	for (;;) {
		uint32_t state = atomic_load_explicit(&c->state, memory_order_acquire);

		if (state == BACKGROUND_QUIT)
			return NULL;
		if (state == BACKGROUND_IDLE) {
			thread_wait(&c->state, state, -1);
			continue;
		}
		background_write_one(c);
		/* a failure ends the run at once, not when the next one is due */
		if (c->rc < 0 && c->rc != ERR_CANCELED)
			run_stop(&c->shared->stop, &c->err);
		/* released: the rank takes `writing` and rc; fails when it was told to quit */
		atomic_compare_exchange_strong_explicit(&c->state, &state, BACKGROUND_IDLE,
							memory_order_release, memory_order_relaxed);
		thread_wake(&c->state, -1);
	}
}

static int background_start(struct rank_checkpoints *c, struct err *e)
{
	char name[16];
	int rc;

	snprintf(name, sizeof(name), "ckpt%u", c->comm->rank);
	rc = thread_start(&c->thread, background_main, c, (size_t)c->plan->w->run.stack_bytes, name,
			  e);
	c->started = rc == 0;
	return rc;
}

/* Has `t` written, by way of c->writing; the one before must have ended. */
static void background_write(struct rank_checkpoints *c, struct checkpoint_times *t)
{
	assert(!c->open);
	c->open = t;
	c->writing = *t;
	atomic_store_explicit(&c->state, BACKGROUND_WRITING, memory_order_release);
	thread_wake(&c->state, -1);
}

/* What the thread noted, beside what the rank has since. */
static void background_take(struct rank_checkpoints *c)
{
	c->writing.stall_ns = c->open->stall_ns;
	*c->open = c->writing;
}

/* Until nothing is being written or the run was stopped; the outcome of the last write. */
static int background_wait(struct rank_checkpoints *c, struct err *e)
{
	while (atomic_load_explicit(&c->state, memory_order_acquire) == BACKGROUND_WRITING) {
		if (run_stopped(&c->shared->stop))
			return ERR_CANCELED;
		thread_wait(&c->state, BACKGROUND_WRITING, LOOK_NS);
	}
	if (c->rc < 0)
		*e = c->err;
	return c->rc;
}

/* Ends the thread after the request that is under way. */
static void background_stop(struct rank_checkpoints *c)
{
	if (!c->started)
		return;
	atomic_store_explicit(&c->state, BACKGROUND_QUIT, memory_order_release);
	thread_wake(&c->state, -1);
	pthread_join(c->thread, NULL);
	c->started = false;
}

/* ---- once a rank ---- */

static int allocate_counters(struct rank_checkpoints *c, struct err *e)
{
	struct io_stat **io[] = {plan_saves(c->plan) ? &c->out->save_io : NULL,
				 c->plan->loads ? &c->out->load_io : NULL};

	for (size_t i = 0; i < sizeof(io) / sizeof(io[0]); i++) {
		if (!io[i])
			continue;
		*io[i] = try_calloc(1, sizeof(**io[i]), "the counters of checkpoints", e);
		if (!*io[i])
			return -ENOMEM;
		io_stat_init(*io[i]);
	}
	return 0;
}

static int allocate_lists(struct rank_checkpoints *c, struct err *e)
{
	size_t all = 0;

	for (uint32_t i = 0; i < c->plan->epochs; i++) {
		struct epoch_plan plan = plan_epoch(c->plan, i + 1);
		struct rank_epoch *ep = &c->out->epoch[i];

		ep->save = try_calloc((size_t)plan.saves + 1, sizeof(*ep->save), "checkpoints", e);
		ep->load = try_calloc((size_t)plan.loads + 1, sizeof(*ep->load), "checkpoints", e);
		if (!ep->save || !ep->load)
			return -ENOMEM;
		ep->save_capacity = plan.saves + 1;
		all += plan.saves;
	}
	c->kept = try_calloc(all + 1, sizeof(*c->kept), "the names of checkpoints", e);
	c->kept_capacity = (uint32_t)(all + 1);
	return c->kept ? 0 : -ENOMEM;
}

/* Twice the room once `used` fills it; what is new is zero. NULL: there is no memory. */
static void *grown_list(void *list, size_t each, uint32_t used, uint32_t *capacity, struct err *e)
{
	char *more;

	if (used < *capacity)
		return list;
	more = try_calloc((size_t)*capacity * 2, each, "checkpoints", e);
	if (!more)
		return NULL;
	memcpy(more, list, used * each);
	free(list);
	*capacity *= 2;
	return more;
}

/* By time lists may have to grow; no other thread reads them while the run goes on. Once it was
 * stopped, results may be written without a rank that is late: then its lists must not move. */
static bool lists_may_grow(const struct rank_checkpoints *c)
{
	return !run_stopped(&c->shared->stop);
}

static int room_for_save(struct rank_checkpoints *c, struct rank_epoch *ep, struct err *e)
{
	bool open_here = c->open && c->open >= ep->save && c->open < ep->save + ep->saves;
	size_t at = open_here ? (size_t)(c->open - ep->save) : 0;
	struct checkpoint_times *save;
	struct checkpoint_name *kept;

	if (!lists_may_grow(c))
		return ERR_CANCELED;
	save = grown_list(ep->save, sizeof(*save), ep->saves, &ep->save_capacity, e);
	if (!save)
		return -ENOMEM;
	ep->save = save;
	if (open_here)
		c->open = &save[at];
	/* completing the open one first may add a name */
	kept = grown_list(c->kept, sizeof(*kept), c->kept_count + 1, &c->kept_capacity, e);
	if (!kept)
		return -ENOMEM;
	c->kept = kept;
	return 0;
}

int checkpoints_block_after(struct rank_checkpoints *c, struct rank_epoch *ep, struct err *e)
{
	const struct phase *p;
	struct phase *block;

	if (c->plan->save_every_ns == 0)
		return 0;
	if (!lists_may_grow(c))
		return ERR_CANCELED;
	block = grown_list(ep->block, sizeof(*block), ep->blocks, &ep->block_capacity, e);
	if (!block)
		return -ENOMEM;
	ep->block = block;
	p = &block[ep->blocks - 1];
	block[ep->blocks] =
		(struct phase){.kind = PHASE_BLOCK,
			       .number = ep->blocks + 1,
			       .first_step = p->first_step + p->steps,
			       .step = p->step + p->steps,
			       .shared = true,
			       .capacity = ep->steps_planned - p->first_step - p->steps};
	return 0;
}

int checkpoints_open(struct rank_checkpoints *c, struct err *e)
{
	int rc;

	if (!c->plan->checkpoint)
		return 0;
	rc = allocate_counters(c, e);
	if (rc < 0)
		return rc;
	c->disks = c->r->checkpoint_source ? block_tree_own(&c->r->checkpoint_source->tree) : NULL;
	c->io = (struct io){.store = c->plan->store,
			    .stat = c->out->save_io,
			    .stop = &c->shared->stop.flag,
			    .progress_ns = &c->live->progress_ns};
	c->io.trace =
		trace_ring_named(c->r->trace, c->comm->rank,
				 !(c->plan->w->checkpoint.async && c->plan->w->workflow.train));
	c->load_io = c->io;
	c->load_io.stat = c->out->load_io;
	rc = trace_check(c->r->trace, e);
	c->source = recovery_rank(c->plan, c->comm->rank, e);
	if (rc == 0 && c->source < 0)
		rc = (int)c->source;
	if (rc == 0)
		rc = allocate_lists(c, e);
	if (rc == 0)
		rc = checkpoint_rank_open(&c->rank, c->plan->checkpoint, c->plan->store,
					  c->comm->rank, e);
	if (rc == 0 && c->plan->w->checkpoint.async && c->plan->w->workflow.train)
		rc = background_start(c, e);
	return rc;
}

void checkpoints_close(struct rank_checkpoints *c)
{
	background_stop(c);
	if (c->open)
		background_take(c);
	checkpoint_rank_close(c->rank);
	free(c->kept);
	c->rank = NULL;
	c->kept = NULL;
}

/* ---- one checkpoint ---- */

static int meet_ranks(struct rank_checkpoints *c)
{
	rank_publish(c->live, RANK_BARRIER, clock_now_ns());
	return comm_barrier(c->comm);
}

/* The rank's own files go first, then the folder. */
static int forget_oldest(struct rank_checkpoints *c, struct err *e)
{
	struct checkpoint_name old = c->kept[0];
	int rc;

	c->kept_count--;
	memmove(c->kept, c->kept + 1, c->kept_count * sizeof(*c->kept));
	rc = checkpoint_remove(c->rank, old.epoch, old.step, &c->io, e);
	if (rc == 0)
		rc = meet_ranks(c);
	if (rc == 0 && c->comm->rank == 0)
		rc = checkpoint_remove_end(c->rank, old.epoch, old.step, &c->io, e);
	return rc;
}

/* What is left to do for all ranks together once each has written. */
static int complete_save(struct rank_checkpoints *c, const struct checkpoint_times *t,
			 struct err *e)
{
	int64_t keep = c->plan->w->checkpoint.keep_last;
	int rc = 0;

	if (!checkpoint_has_commit(c->plan->checkpoint) && keep == 0)
		return 0;
	rc = meet_ranks(c);
	if (rc == 0 && c->comm->rank == 0)
		rc = checkpoint_commit(c->rank, t->epoch, t->step, &c->io, e);
	if (rc == 0 && keep > 0) {
		assert(c->kept_count < c->kept_capacity);
		c->kept[c->kept_count++] = (struct checkpoint_name){t->epoch, t->step};
		/* nothing older goes before the new one is committed */
		rc = meet_ranks(c);
		while (rc == 0 && c->kept_count > keep)
			rc = forget_oldest(c, e);
	}
	return rc;
}

static int save_now(struct rank_checkpoints *c, struct checkpoint_times *t, struct err *e)
{
	int rc = checkpoint_write(c->rank, t->epoch, t->step, &c->io, &t->stat, e);

	if (rc == 0 && c->plan->w->checkpoint.rank_sync)
		rc = meet_ranks(c);
	note_end(c, t, false, rc == 0);
	return rc ? rc : complete_save(c, t, e);
}

/* Until the one under way has ended on this rank, and then on all. */
static int finish_background(struct rank_checkpoints *c, int64_t *waited_ns, struct err *e)
{
	struct checkpoint_times *t = c->open;
	int64_t start = clock_now_ns();
	int rc;

	*waited_ns = 0;
	if (!t)
		return 0;
	rc = background_wait(c, e);
	*waited_ns = clock_now_ns() - start;
	if (rc)
		return rc;
	background_take(c);
	t->waited_ns = *waited_ns;
	c->open = NULL;
	if (c->comm->rank == 0)
		dlio_log_checkpoint_end(c->r, t, false, (uint32_t)t->epoch, false);
	return complete_save(c, t, e);
}

static int save_later(struct rank_checkpoints *c, struct checkpoint_times *t, struct err *e)
{
	double rate = c->plan->w->checkpoint.stage_rate;
	struct checkpoint_rank_bytes held;
	int64_t start, stage_ns = 0;
	int rc = finish_background(c, &t->wait_ns, e);

	if (rc)
		return rc;
	checkpoint_rank_size(checkpoint_plan_of(c->plan->checkpoint), c->comm->rank, &held);
	if (rate > 0)
		stage_ns = (int64_t)fmin((double)held.total / rate * 1e9, 9e18);
	start = clock_now_ns();
	if (stage_ns > 0) {
		rank_publish(c->live, RANK_SAVING, start + stage_ns);
		t->stage_ns = run_wait_until(&c->shared->stop, start + stage_ns) - start;
		if (t->stage_ns < stage_ns)
			return ERR_CANCELED;
	}
	background_write(c, t);
	return 0;
}

int checkpoints_save(struct rank_checkpoints *c, uint32_t epoch, int64_t step, uint64_t steps,
		     struct err *e)
{
	struct rank_epoch *ep = &c->out->epoch[epoch - 1];
	int64_t interval_ns = c->plan->save_every_ns;
	bool async = c->started;
	struct checkpoint_times *t;
	int rc = interval_ns ? room_for_save(c, ep, e) : 0;

	if (rc)
		return rc;
	assert(epoch >= 1 && epoch <= c->plan->epochs && ep->saves < ep->save_capacity);
	t = &ep->save[ep->saves];
	t->number = ++ep->saves;
	t->epoch = epoch;
	t->step = step;
	t->total_steps = steps;
	note_begin(c, t, false);
	c->due_ns = t->begin_ns + interval_ns;
	rank_publish(c->live, RANK_SAVING, t->begin_ns);
	if (c->comm->rank == 0)
		dlio_log_checkpoint_start(t, false, epoch);
	rc = async ? save_later(c, t, e) : save_now(c, t, e);
	t->stall_ns = clock_now_ns() - t->begin_ns;
	if (rc == 0 && c->comm->rank == 0)
		dlio_log_checkpoint_end(c->r, t, false, epoch, async);
	return rc;
}

int checkpoints_drain(struct rank_checkpoints *c, struct err *e)
{
	int64_t start = clock_now_ns(), waited_ns;
	int rc;

	if (!c->open)
		return 0;
	rank_publish(c->live, RANK_SAVING, start);
	rc = finish_background(c, &waited_ns, e);
	c->out->drain_ns = clock_now_ns() - start;
	return rc;
}

/* ---- a checkpoint benchmark ---- */

static int pause_before(struct rank_checkpoints *c)
{
	const struct workload *w = c->plan->w;
	double wait_s = w->checkpoint.time_between_checkpoints;
	int64_t now = clock_now_ns(), deadline;

	/* DLIO waits the absolute value */
	if (w->compat.dlio)
		wait_s = fabs(wait_s);
	if (wait_s > 0) {
		deadline = now + (int64_t)(wait_s * 1e9);
		rank_publish(c->live, RANK_PAUSING, deadline);
		if (run_wait_until(&c->shared->stop, deadline) < deadline)
			return ERR_CANCELED;
	}
	return meet_ranks(c);
}

static int load_one(struct rank_checkpoints *c, int64_t step, struct err *e)
{
	struct rank_epoch *ep = &c->out->epoch[0];
	struct checkpoint_times *t = &ep->load[ep->loads];
	int rc;

	t->number = ++ep->loads;
	t->epoch = 1;
	t->step = step;
	note_begin(c, t, true);
	rank_publish(c->live, RANK_LOADING, t->begin_ns);
	if (c->comm->rank == 0)
		dlio_log_checkpoint_start(t, true, 1);
	rc = checkpoint_read(c->rank, c->source, 1, step, &c->load_io, &t->stat, e);
	if (rc == 0 && c->plan->w->checkpoint.rank_sync)
		rc = meet_ranks(c);
	note_end(c, t, true, rc == 0);
	t->stall_ns = t->end_ns - t->begin_ns;
	if (rc == 0 && c->comm->rank == 0)
		dlio_log_checkpoint_end(c->r, t, true, 1, false);
	return rc;
}

int checkpoints_only(struct rank_checkpoints *c, struct err *e)
{
	const struct workload *w = c->plan->w;
	struct rank_epoch *ep = &c->out->epoch[0];
	bool first = c->comm->rank == 0;
	int64_t writes = w->checkpoint.num_checkpoints_write;
	int64_t reads = w->checkpoint.num_checkpoints_read;
	/* only the last ones are there when old ones were removed */
	int64_t before = w->checkpoint.keep_last > 0 && writes > reads ? writes - reads : 0;
	int rc = comm_barrier(c->comm);

	ep->begin_wall_ns = clock_wall_ns();
	ep->begin_ns = clock_now_ns();
	if (first && writes > 0)
		dlio_log_checkpoint_phase("write started");
	for (int64_t i = 1; rc == 0 && i <= writes; i++) {
		rc = pause_before(c);
		if (rc == 0)
			rc = checkpoints_save(c, 1, i, 0, e);
	}
	/* what a rank reads may be another's */
	if (rc == 0)
		rc = meet_ranks(c);
	if (first && rc == 0 && writes > 0)
		dlio_log_checkpoint_phase("write finished");
	if (first && rc == 0 && reads > 0)
		dlio_log_checkpoint_phase("read started");
	for (int64_t i = 1; rc == 0 && i <= reads; i++) {
		rc = pause_before(c);
		if (rc == 0)
			rc = load_one(c, before + i, e);
	}
	if (first && rc == 0 && reads > 0)
		dlio_log_checkpoint_phase("read finished");
	ep->end_ns = clock_now_ns();
	ep->end_wall_ns = clock_wall_ns();
	return rc;
}
