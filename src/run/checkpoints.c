/* A rank's part in each checkpoint. */
#include "run/checkpoints.h"

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
#include "metric/block_device.h"
#include "result/dlio_log.h"
#include "run/state.h"

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

/* ---- writing in the background ---- */

#define LOOK_NS (NS_PER_S / 10)

static void write_one(struct rank *k)
{
	struct rank_checkpoints *c = &k->checkpoints;
	struct checkpoint_times *t = &c->writing;

	c->rc = checkpoint_write(c->rank, t->epoch, t->step, &c->io, &t->stat, &c->err);
	rank_checkpoint_ended(k, t, c->rc == 0);
}

static void *background_main(void *arg)
{
	struct rank *k = arg;
	struct rank_checkpoints *c = &k->checkpoints;

	for (;;) {
		uint32_t state = atomic_load(&c->state);

		if (state == BACKGROUND_QUIT)
			return NULL;
		if (state == BACKGROUND_IDLE) {
			thread_wait(&c->state, state, -1);
			continue;
		}
		write_one(k);
		/* a failure ends the run at once, not when the next one is due */
		if (c->rc < 0 && c->rc != ERR_CANCELED)
			run_stop(k->run, &c->err);
		atomic_compare_exchange_strong(&c->state, &state, BACKGROUND_IDLE);
		thread_wake(&c->state, -1);
	}
}

int background_start(struct rank *k, struct err *e)
{
	struct rank_checkpoints *c = &k->checkpoints;
	char name[16];
	int rc;

	snprintf(name, sizeof(name), "ckpt%u", k->comm.rank);
	rc = thread_start(&c->thread, background_main, k, (size_t)k->run->w->run.stack_bytes, name,
			  e);
	c->started = rc == 0;
	return rc;
}

void background_write(struct rank *k, struct checkpoint_times *t)
{
	struct rank_checkpoints *c = &k->checkpoints;

	c->open = t;
	c->writing = *t;
	atomic_store(&c->state, BACKGROUND_WRITING);
	thread_wake(&c->state, -1);
}

int background_wait(struct rank *k, struct err *e)
{
	struct rank_checkpoints *c = &k->checkpoints;

	while (atomic_load(&c->state) == BACKGROUND_WRITING) {
		if (atomic_load(&k->run->stop.set))
			return ERR_CANCELED;
		thread_wait(&c->state, BACKGROUND_WRITING, LOOK_NS);
	}
	if (c->rc < 0)
		*e = c->err;
	return c->rc;
}

void background_stop(struct rank *k)
{
	struct rank_checkpoints *c = &k->checkpoints;

	if (!c->started)
		return;
	atomic_store(&c->state, BACKGROUND_QUIT);
	thread_wake(&c->state, -1);
	pthread_join(c->thread, NULL);
	c->started = false;
}

/* ---- once a process ---- */

static uint32_t nodes_of(const struct run_state *s)
{
	return s->net ? net_nodes(s->net) : 1;
}

/* Whose files a rank reads back; -ENOMEM. */
static int64_t source_of(const struct run_state *s, uint32_t rank, struct err *e)
{
	uint32_t n = s->net ? net_processes(s->net) : 1, *node;
	int64_t from = rank;

	if (!s->w->checkpoint.recovery_rank_shift || nodes_of(s) == 1)
		return from;
	node = try_calloc(n, sizeof(*node), "hosts", e);
	if (!node)
		return -ENOMEM;
	for (uint32_t p = 0; p < n; p++)
		node[p] = net_process(s->net, p)->node;
	from = recovery_source(node, n, s->locals, rank);
	free(node);
	return from;
}

/* Is there space? What an earlier run left is written over, so that only a folder of its own tells
 * that even the first will not fit. */
static int check_space(struct run_state *s, struct err *e)
{
	AUTO_FREE char *folder = path_absolute(s->w->checkpoint.checkpoint_folder);
	/* by time one is what is known to be meant */
	uint64_t one = s->r->checkpoint_totals.total_bytes, bytes, files,
		 all = run_checkpoint_interval_ns(s->w) ? 1 : run_saves_planned(s);
	uint64_t keep = (uint64_t)s->w->checkpoint.keep_last;
	char need[32], have[32];
	struct store_stat st;

	if (all == 0 || store_space(s->store, folder, &bytes, &files, NULL) != 0)
		return 0;
	if (keep > 0 && all > keep + 1)
		all = keep + 1;
	if ((double)one * (double)all <= (double)bytes)
		return 0;
	str_bytes((double)one * (double)all, need, sizeof(need));
	str_bytes((double)bytes, have, sizeof(have));
	if (one > bytes && store_stat_path(s->store, folder, &st, NULL) != 0)
		return err_set(e, -ENOSPC,
			       "checkpoint.checkpoint_folder: %llu checkpoint%s of this model need "
			       "%s and %s are free for '%s': free space, use another folder, or "
			       "take a smaller model (stoker show checkpoint prints sizes)",
			       (unsigned long long)all, all == 1 ? "" : "s", need, have, folder);
	log_warning("%llu checkpoint%s of this model need %s and %s are free for '%s'; what an "
		    "earlier run left there may be written over",
		    (unsigned long long)all, all == 1 ? "" : "s", need, have, folder);
	return 0;
}

static void warn_partial(const struct run_state *s)
{
	const struct checkpoint_totals *t = &s->r->checkpoint_totals;
	const struct checkpoint_plan *p = checkpoint_plan_of(s->checkpoint);

	if (s->w->checkpoint.mode == 1 || t->ranks >= t->whole_ranks)
		return;
	log_warning("partial model: %llu rank%s no multiple of model.parallelism tensor %lld x "
		    "pipeline %lld, so that checkpoints hold what the first %llu of %llu ranks "
		    "write (%.3g %% of the bytes)",
		    (unsigned long long)t->ranks, t->ranks == 1 ? " is" : "s are",
		    (long long)p->tensor, (long long)p->pipeline, (unsigned long long)t->ranks,
		    (unsigned long long)t->whole_ranks,
		    t->whole_bytes ? 100 * (double)t->total_bytes / (double)t->whole_bytes : 0.0);
}

int run_checkpoints_open(struct run_state *s, struct err *e)
{
	int rc = checkpoint_open(&s->checkpoint, s->w, s->ranks, e);

	if (rc < 0)
		return rc;
	if (s->w->checkpoint.recovery_rank_shift && nodes_of(s) == 1)
		log_warning("checkpoint.recovery_rank_shift has no effect: all ranks are on one "
			    "node, each reads back its own files");
	checkpoint_plan_totals(checkpoint_plan_of(s->checkpoint), &s->r->checkpoint_totals);
	if (run_leads(s))
		warn_partial(s);
	s->r->checkpoint_parameters = checkpoint_plan_of(s->checkpoint)->parameters;
	if (run_leads(s))
		dlio_log_checkpoint_size(s->r);
	return check_space(s, e);
}

uint64_t run_checkpoints_bytes(const struct run_state *s)
{
	uint64_t n, saves;

	if (!s->checkpoint)
		return 0;
	n = checkpoint_memory_bytes(s->checkpoint);
	for (uint32_t k = s->first; k < s->first + s->locals; k++)
		n += checkpoint_rank_memory_bytes(s->checkpoint, s->store, k) +
		     2 * sizeof(struct io_stat) +
		     (s->w->run.trace == TRACE_OFF
			      ? 0
			      : trace_ring_named_bytes((uint64_t)s->w->run.trace_events)) +
		     (s->w->checkpoint.async ? (uint64_t)s->w->run.stack_bytes : 0);
	saves = run_checkpoint_interval_ns(s->w)
			? u64_product(CHECKPOINTS_AT_FIRST, run_planned_epochs(s))
			: run_saves_planned(s);
	saves = u64_sum(saves, run_loads_planned(s));
	return u64_sum(
		n,
		u64_product(u64_product(saves, s->locals),
			    sizeof(struct checkpoint_times) + sizeof(struct checkpoint_name) +
				    (run_checkpoint_steps(s->w) || run_checkpoint_interval_ns(s->w)
					     ? sizeof(struct phase)
					     : 0)));
}

/* ---- once a rank ---- */

static uint64_t device_of(const struct run_state *s)
{
	AUTO_FREE char *at = path_absolute(s->w->checkpoint.checkpoint_folder);
	struct store_stat st = {0};

	while (store_stat_path(s->store, at, &st, NULL) != 0 && strcmp(at, "/") != 0) {
		char *up = path_dirname(at);

		free(at);
		at = up;
	}
	return st.device;
}

static int make_lists(struct rank *k, struct err *e)
{
	struct run_state *s = k->run;
	const struct workload *w = s->w;
	size_t all = 0;

	for (uint32_t i = 0; i < s->r->epochs_planned; i++) {
		uint32_t loads = 0, saves;

		if (w->workflow.train) {
			saves = run_epoch_saves(w, i + 1, run_epoch_steps(s, i + 1));
		} else {
			saves = (uint32_t)run_saves_planned(s);
			loads = (uint32_t)run_loads_planned(s);
		}
		k->out->epoch[i].save =
			try_calloc(saves + 1, sizeof(struct checkpoint_times), "checkpoints", e);
		k->out->epoch[i].load =
			try_calloc(loads + 1, sizeof(struct checkpoint_times), "checkpoints", e);
		if (!k->out->epoch[i].save || !k->out->epoch[i].load)
			return -ENOMEM;
		k->out->epoch[i].save_capacity = saves + 1;
		all += saves;
	}
	k->checkpoints.kept =
		try_calloc(all + 1, sizeof(*k->checkpoints.kept), "the names of checkpoints", e);
	k->checkpoints.kept_capacity = (uint32_t)(all + 1);
	return k->checkpoints.kept ? 0 : -ENOMEM;
}

/* Twice the room once `used` fills it; what is new is zero. NULL: there is no memory. */
static void *grown(void *list, size_t each, uint32_t used, uint32_t *capacity, struct err *e)
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

/* By time lists may have to grow, none of which another thread looks at while the run goes on. Once
 * it was stopped results may be written without a rank that came late: then they stay where they
 * are. */
static bool may_grow(const struct rank *k)
{
	return !atomic_load(&k->run->stop.set);
}

static int room_for_save(struct rank *k, struct rank_epoch *ep, struct err *e)
{
	struct rank_checkpoints *c = &k->checkpoints;
	bool open_here = c->open && c->open >= ep->save && c->open < ep->save + ep->saves;
	size_t at = open_here ? (size_t)(c->open - ep->save) : 0;
	struct checkpoint_times *save;
	struct checkpoint_name *kept;

	if (!may_grow(k))
		return ERR_CANCELED;
	save = grown(ep->save, sizeof(*save), ep->saves, &ep->save_capacity, e);
	if (!save)
		return -ENOMEM;
	ep->save = save;
	if (open_here)
		c->open = &save[at];
	/* settling may add the one that is open first */
	kept = grown(c->kept, sizeof(*kept), c->kept_count + 1, &c->kept_capacity, e);
	if (!kept)
		return -ENOMEM;
	c->kept = kept;
	return 0;
}

int rank_block_after(struct rank *k, struct rank_epoch *ep, struct err *e)
{
	const struct phase *p;
	struct phase *block;

	if (run_checkpoint_interval_ns(k->run->w) == 0)
		return 0;
	if (!may_grow(k))
		return ERR_CANCELED;
	block = grown(ep->block, sizeof(*block), ep->blocks, &ep->block_capacity, e);
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

int rank_checkpoints_open(struct rank *k, struct err *e)
{
	struct run_state *s = k->run;
	struct rank_checkpoints *c = &k->checkpoints;
	int rc;

	if (!s->checkpoint)
		return 0;
	c->device = device_of(s);
	c->io = (struct io){.store = s->store,
			    .stat = &k->out->save_io,
			    .stop = &s->stop,
			    .progress_ns = &k->progress_ns};
	c->io.trace = trace_ring_named(s->r->trace, k->comm.rank,
				       !(s->w->checkpoint.async && s->w->workflow.train));
	c->load_io = c->io;
	c->load_io.stat = &k->out->load_io;
	rc = trace_check(s->r->trace, e);
	c->source = source_of(s, k->comm.rank, e);
	if (rc == 0 && c->source < 0)
		rc = (int)c->source;
	if (rc == 0)
		rc = make_lists(k, e);
	if (rc == 0)
		rc = checkpoint_rank_open(&c->rank, s->checkpoint, s->store, k->comm.rank, e);
	if (rc == 0 && s->w->checkpoint.async && s->w->workflow.train)
		rc = background_start(k, e);
	return rc;
}

/* What the thread noted, beside what the rank has since. */
static void take_written(struct rank_checkpoints *c)
{
	c->writing.stall_ns = c->open->stall_ns;
	*c->open = c->writing;
}

void rank_checkpoints_close(struct rank *k)
{
	background_stop(k);
	if (k->checkpoints.open)
		take_written(&k->checkpoints);
	checkpoint_rank_close(k->checkpoints.rank);
	free(k->checkpoints.kept);
	k->checkpoints.rank = NULL;
	k->checkpoints.kept = NULL;
}

/* ---- one checkpoint ---- */

static void began(struct rank *k, struct checkpoint_times *t, bool load)
{
	uint64_t read = 0, written = 0;

	proc_io_sample(&t->io_before);
	t->disk_known = block_device_moved(k->checkpoints.device, &read, &written);
	t->disk_before_bytes = load ? read : written;
	t->begin_wall_ns = clock_wall_ns();
	t->begin_ns = clock_now_ns();
}

static void ended(struct rank *k, struct checkpoint_times *t, bool load, bool whole)
{
	uint64_t read = 0, written = 0;

	t->end_ns = clock_now_ns();
	t->end_wall_ns = clock_wall_ns();
	t->done = whole;
	if (whole) {
		atomic_fetch_add_explicit(&k->checkpoint_bytes, t->stat.payload_bytes,
					  memory_order_relaxed);
		atomic_fetch_add_explicit(load ? &k->loads_done : &k->saves_done, 1,
					  memory_order_release);
	}
	proc_io_sample(&t->io_after);
	t->disk_known = t->disk_known && block_device_moved(k->checkpoints.device, &read, &written);
	t->disk_after_bytes = load ? read : written;
}

void rank_checkpoint_ended(struct rank *k, struct checkpoint_times *t, bool whole)
{
	ended(k, t, false, whole);
}

static int meet(struct rank *k)
{
	rank_publish(k, RANK_BARRIER, clock_now_ns());
	return comm_barrier(&k->comm);
}

/* Removes the oldest one: it is gone before its folder is. */
static int forget_oldest(struct rank *k, struct err *e)
{
	struct rank_checkpoints *c = &k->checkpoints;
	struct checkpoint_name old = c->kept[0];
	int rc;

	c->kept_count--;
	memmove(c->kept, c->kept + 1, c->kept_count * sizeof(*c->kept));
	rc = checkpoint_remove(c->rank, old.epoch, old.step, &c->io, e);
	if (rc == 0)
		rc = meet(k);
	if (rc == 0 && k->comm.rank == 0)
		rc = checkpoint_remove_end(c->rank, old.epoch, old.step, &c->io, e);
	return rc;
}

/* What is left to do for all ranks together once each has written. */
static int settle(struct rank *k, const struct checkpoint_times *t, struct err *e)
{
	struct run_state *s = k->run;
	struct rank_checkpoints *c = &k->checkpoints;
	int64_t keep = s->w->checkpoint.keep_last;
	int rc = 0;

	if (!checkpoint_has_commit(s->checkpoint) && keep == 0)
		return 0;
	rc = meet(k);
	if (rc == 0 && k->comm.rank == 0)
		rc = checkpoint_commit(c->rank, t->epoch, t->step, &c->io, e);
	if (rc == 0 && keep > 0) {
		c->kept[c->kept_count++] = (struct checkpoint_name){t->epoch, t->step};
		/* nothing older goes before the new one is committed */
		rc = meet(k);
		while (rc == 0 && c->kept_count > keep)
			rc = forget_oldest(k, e);
	}
	return rc;
}

static int save_now(struct rank *k, struct checkpoint_times *t, struct err *e)
{
	struct rank_checkpoints *c = &k->checkpoints;
	int rc = checkpoint_write(c->rank, t->epoch, t->step, &c->io, &t->stat, e);

	if (rc == 0 && k->run->w->checkpoint.rank_sync)
		rc = meet(k);
	ended(k, t, false, rc == 0);
	return rc ? rc : settle(k, t, e);
}

/* Until the one under way has ended on this rank, and then on all. */
static int finish_open(struct rank *k, int64_t *waited_ns, struct err *e)
{
	struct rank_checkpoints *c = &k->checkpoints;
	struct checkpoint_times *t = c->open;
	int64_t start = clock_now_ns();
	int rc;

	*waited_ns = 0;
	if (!t)
		return 0;
	rc = background_wait(k, e);
	*waited_ns = clock_now_ns() - start;
	if (rc)
		return rc;
	take_written(c);
	t->waited_ns = *waited_ns;
	c->open = NULL;
	if (k->comm.rank == 0)
		dlio_log_checkpoint_end(k->run->r, t, false, (uint32_t)t->epoch, false);
	return settle(k, t, e);
}

static int save_later(struct rank *k, struct checkpoint_times *t, struct err *e)
{
	double rate = k->run->w->checkpoint.stage_rate;
	struct checkpoint_rank_bytes held;
	int64_t start, stage_ns = 0;
	int rc = finish_open(k, &t->wait_ns, e);

	if (rc)
		return rc;
	checkpoint_rank_size(checkpoint_plan_of(k->run->checkpoint), k->comm.rank, &held);
	if (rate > 0)
		stage_ns = (int64_t)fmin((double)held.total / rate * 1e9, 9e18);
	start = clock_now_ns();
	if (stage_ns > 0) {
		rank_publish(k, RANK_SAVING, start + stage_ns);
		t->stage_ns = rank_wait_until(k->run, start + stage_ns) - start;
		if (t->stage_ns < stage_ns)
			return ERR_CANCELED;
	}
	background_write(k, t);
	return 0;
}

int rank_save(struct rank *k, uint32_t epoch, int64_t step, uint64_t steps, struct err *e)
{
	struct rank_epoch *ep = &k->out->epoch[epoch - 1];
	int64_t interval_ns = run_checkpoint_interval_ns(k->run->w);
	bool async = k->checkpoints.started;
	struct checkpoint_times *t;
	int rc = interval_ns ? room_for_save(k, ep, e) : 0;

	if (rc)
		return rc;
	t = &ep->save[ep->saves];
	t->number = ++ep->saves;
	t->epoch = epoch;
	t->step = step;
	t->total_steps = steps;
	began(k, t, false);
	k->checkpoints.due_ns = t->begin_ns + interval_ns;
	rank_publish(k, RANK_SAVING, t->begin_ns);
	if (k->comm.rank == 0)
		dlio_log_checkpoint_start(t, false, epoch);
	rc = async ? save_later(k, t, e) : save_now(k, t, e);
	t->stall_ns = clock_now_ns() - t->begin_ns;
	if (rc == 0 && k->comm.rank == 0)
		dlio_log_checkpoint_end(k->run->r, t, false, epoch, async);
	return rc;
}

int rank_checkpoints_drain(struct rank *k, struct err *e)
{
	int64_t start = clock_now_ns(), waited_ns;
	int rc;

	if (!k->checkpoints.open)
		return 0;
	rank_publish(k, RANK_SAVING, start);
	rc = finish_open(k, &waited_ns, e);
	k->out->drain_ns = clock_now_ns() - start;
	return rc;
}

/* ---- a checkpoint benchmark ---- */

static int pause_before(struct rank *k)
{
	const struct workload *w = k->run->w;
	double wait_s = w->checkpoint.time_between_checkpoints;
	int64_t now = clock_now_ns(), deadline;

	/* DLIO waits the absolute value */
	if (w->compat.dlio)
		wait_s = fabs(wait_s);
	if (wait_s > 0) {
		deadline = now + (int64_t)(wait_s * 1e9);
		rank_publish(k, RANK_PAUSING, deadline);
		if (rank_wait_until(k->run, deadline) < deadline)
			return ERR_CANCELED;
	}
	return meet(k);
}

static int load_one(struct rank *k, int64_t step, struct err *e)
{
	struct rank_checkpoints *c = &k->checkpoints;
	struct rank_epoch *ep = &k->out->epoch[0];
	struct checkpoint_times *t = &ep->load[ep->loads];
	int rc;

	t->number = ++ep->loads;
	t->epoch = 1;
	t->step = step;
	began(k, t, true);
	rank_publish(k, RANK_LOADING, t->begin_ns);
	if (k->comm.rank == 0)
		dlio_log_checkpoint_start(t, true, 1);
	rc = checkpoint_read(c->rank, c->source, 1, step, &c->load_io, &t->stat, e);
	if (rc == 0 && k->run->w->checkpoint.rank_sync)
		rc = meet(k);
	ended(k, t, true, rc == 0);
	t->stall_ns = t->end_ns - t->begin_ns;
	if (rc == 0 && k->comm.rank == 0)
		dlio_log_checkpoint_end(k->run->r, t, true, 1, false);
	return rc;
}

int rank_checkpoints_only(struct rank *k, struct err *e)
{
	const struct workload *w = k->run->w;
	struct rank_epoch *ep = &k->out->epoch[0];
	bool first = k->comm.rank == 0;
	int64_t writes = w->checkpoint.num_checkpoints_write;
	int64_t reads = w->checkpoint.num_checkpoints_read;
	/* only the last ones are there when old ones were removed */
	int64_t before = w->checkpoint.keep_last > 0 && writes > reads ? writes - reads : 0;
	int rc = comm_barrier(&k->comm);

	ep->begin_wall_ns = clock_wall_ns();
	ep->begin_ns = clock_now_ns();
	if (first && writes > 0)
		dlio_log_checkpoint_phase("write started");
	for (int64_t i = 1; rc == 0 && i <= writes; i++) {
		rc = pause_before(k);
		if (rc == 0)
			rc = rank_save(k, 1, i, 0, e);
	}
	/* what a rank reads may be another's */
	if (rc == 0)
		rc = meet(k);
	if (first && rc == 0 && writes > 0)
		dlio_log_checkpoint_phase("write finished");
	if (first && rc == 0 && reads > 0)
		dlio_log_checkpoint_phase("read started");
	for (int64_t i = 1; rc == 0 && i <= reads; i++) {
		rc = pause_before(k);
		if (rc == 0)
			rc = load_one(k, before + i, e);
	}
	if (first && rc == 0 && reads > 0)
		dlio_log_checkpoint_phase("read finished");
	ep->end_ns = clock_now_ns();
	ep->end_wall_ns = clock_wall_ns();
	return rc;
}
