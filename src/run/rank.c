/* A rank's life: ask for a batch, compute (wait), meet the other ranks, and note six times a step.
 */
#include "run/rank.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/run_delay.h"
#include "comm/net.h"
#include "dataset/order.h"
#include "result/dlio_log.h"
#include "result/metrics.h"
#include "run/barrier_cost.h"
#include "run/epoch_edges.h"
#include "run/run.h"
#include "workload/time_draw.h"

static void seed_epoch(struct rank *k, uint32_t epoch)
{
	const struct run_plan *p = k->plan;

	if (!compute_draws_begin(&k->rng, p->w, p->d, p->seed, epoch, k->comm.rank, p->at->ranks) &&
	    epoch == 1)
		rng_np_seed_entropy(&k->rng);
}

static int phase_prepare(struct phase *p, enum phase_kind kind, uint32_t number, uint64_t first,
			 uint64_t steps, struct err *e)
{
	p->kind = kind;
	p->number = number;
	p->first_step = first;
	p->steps = 0;
	p->samples = 0;
	p->capacity = steps;
	p->step = try_calloc(steps, sizeof(*p->step), "the times of the steps", e);
	return p->step ? 0 : -ENOMEM;
}

/* Emulated computation: an absolute deadline, so that lateness never adds up inside a step. False
 * when the run was told to stop meanwhile: then the step does not count. */
static bool emulate_compute(struct rank *k, const struct time_dist *dist, struct step_times *t)
{
	int64_t wait_ns = time_draw_ns(dist, &k->rng), late, delay;

	t->compute_begin_ns = clock_now_ns();
	t->compute_end_ns = t->compute_begin_ns;
	if (wait_ns <= 0)
		return true;
	rank_publish(&k->live, RANK_COMPUTING, t->compute_begin_ns + wait_ns);
	t->compute_end_ns = run_wait_until(&k->shared->stop, t->compute_begin_ns + wait_ns);
	late = t->compute_end_ns - t->compute_begin_ns - wait_ns;
	if (late < 0)
		return false;
	t->over_compute = late_share(late, t->compute_end_ns - t->compute_begin_ns);
	delay = run_delay_take(late);
	t->late_compute =
		late_share(delay < late ? delay : late, t->compute_end_ns - t->compute_begin_ns);
	return true;
}

/* What the rank's thread spent on the framework's code in calls of the loader. */
static int64_t spent_in_loader(struct rank *k, struct loader *l)
{
	uint32_t n;
	const struct worker_stat *ws = k->plan->loader->stats(l, &n);

	return n ? ws[0].framework_rank.cpu_ns : 0;
}

/* The training loop's own code in one of its places. Returns when it was over. */
static int64_t loop_in_framework(struct rank *k, enum cost_row row, struct epoch_split *split)
{
	int64_t begin = clock_now_ns(), spent, end, late;

	if (!framework_on(&k->code))
		return begin;
	spent = framework_spend(&k->code, row, 0, 0, 0);
	end = clock_now_ns();
	late = run_delay_take(end - begin);
	split->framework_late_ns += late < end - begin - spent ? late : end - begin - spent;
	split->framework_loop_ns += spent;
	if (row == COST_STEP || row == COST_STEP_END)
		split->framework_step_ns += spent;
	return end;
}

/* A loop over a loader ends when it asks once more, which is part of the phase. */
static int ask_past_end(struct rank *k, struct loader *l, struct epoch_split *split, struct err *e)
{
	int64_t spent = spent_in_loader(k, l), begin = clock_now_ns(), rest, late;
	struct batch *b;
	int rc;

	rank_publish(&k->live, RANK_WAITING, begin);
	rc = k->plan->loader->next(l, &b, e);
	if (rc > 0)
		k->plan->loader->give_back(l, b);
	spent = spent_in_loader(k, l) - spent;
	if (spent > 0) {
		rest = clock_now_ns() - begin - spent;
		late = run_delay_take(rest + spent);
		split->framework_late_ns += late < rest ? late : rest;
		split->framework_loop_ns += spent;
	}
	loop_in_framework(k, COST_LOOP_END, split);
	return rc < 0 ? rc : 0;
}

/* Runs up to p->capacity steps into `p`; adds to `split`. 0 when all were made, the
 * loader's epoch ended, or a checkpoint is due by time. */
static int run_steps(struct rank *k, struct loader *l, struct phase *p,
		     struct order_proof *delivered, uint64_t *payload, struct epoch_split *split,
		     struct err *e)
{
	const struct loader_ops *ops = k->plan->loader;
	const struct time_dist *dist = p->kind == PHASE_EVAL ? &k->plan->w->evaluation.eval_time
							     : &k->plan->w->train.computation_time;
	bool by_time = p->kind == PHASE_BLOCK && k->plan->save_every_ns > 0;
	int64_t ask = k->began_ns, wait[WAIT_PARTS], met;

	k->checkpoints.due = false;
	for (uint64_t i = 0; i < p->capacity; i++) {
		struct step_times *t = &p->step[i];
		struct batch_work work;
		struct batch_span span;
		uint64_t bytes, samples;
		struct batch *b;
		int rc;

		t->ask_ns = ask;
		rank_publish(&k->live, RANK_WAITING, clock_now_ns());
		rc = ops->next(l, &b, e);
		if (rc <= 0)
			return rc;
		t->got_ns = clock_now_ns();
		work = b->work;
		span = (struct batch_span){
			.sent_ns = b->sent_ns,
			.begun_ns = b->begun_ns,
			.done_ns = b->done_ns,
			.late_ns = b->late_ns,
			.rank_late_ns =
				run_delay_take(t->got_ns - (b->done_ns > ask ? b->done_ns : ask)),
			.work = &work,
			.costs = b->costs};
		wait_split(wait, t, &span, p->first_step + i == 0);
		order_proof_merge(delivered, &b->proof);
		bytes = b->payload_bytes;
		samples = b->samples;
		*payload += bytes;
		p->samples += samples;
		atomic_fetch_add_explicit(&k->live.payload_bytes, bytes, memory_order_relaxed);
		atomic_fetch_add_explicit(&k->live.samples, samples, memory_order_relaxed);
		ops->give_back(l, b);
		loop_in_framework(k, COST_STEP, split);
		if (!emulate_compute(k, dist, t))
			return ERR_CANCELED;
		t->barrier_in_ns = framework_on(&k->code)
					   ? loop_in_framework(k, COST_STEP_END, split)
					   : t->compute_end_ns;
		t->barrier_out_ns = t->barrier_in_ns;
		p->steps = i + 1;
		epoch_split_add(split, wait, p->step, i, &span);
		if (p->kind == PHASE_BLOCK)
			service_times_add(&k->out->service,
					  span.done_ns - span.begun_ns + span.costs.pack_ns);
		if (p->kind == PHASE_BLOCK) {
			rank_publish(&k->live, RANK_BARRIER, t->barrier_in_ns);
			rc = by_time ? comm_barrier_until(&k->comm, k->checkpoints.due_ns,
							  &k->checkpoints.due)
				     : comm_barrier(&k->comm);
			if (rc)
				return rc;
			t->barrier_out_ns = clock_now_ns();
			met = t->barrier_out_ns - t->barrier_in_ns;
			t->late_barrier = late_share(run_delay_take(met), met);
		}
		rank_publish_step(&k->live, p, t, bytes, samples);
		ask = t->barrier_out_ns;
		if (k->checkpoints.due)
			return 0;
	}
	return 0;
}

static void add_spent(struct rank_result *out, const struct framework_spent *s)
{
	out->framework_ns += s->cpu_ns;
	out->framework_beyond_ns += s->beyond_ns;
}

struct settled {
	struct worker_stat stat;
	struct io_stat io;
};

/* One that is left behind may count at any moment: what it is added up from is a copy, for which
 * there may be no memory. */
static const struct worker_stat *settled(const struct worker_stat *s, struct settled **copy)
{
	struct err e;

	if (!*copy)
		*copy = try_calloc(1, sizeof(**copy), "a worker's counters", &e);
	if (!*copy)
		return NULL;
	(*copy)->stat.io = &(*copy)->io;
	worker_stat_glance(&(*copy)->stat, s);
	return &(*copy)->stat;
}

/* `working`: threads that are left behind may still count. */
static void add_worker_stats(struct rank *k, struct loader *l, bool working, struct io_stat *io)
{
	uint32_t n;
	const struct worker_stat *ws = k->plan->loader->stats(l, &n);
	AUTO_FREE struct settled *copy = NULL;

	for (uint32_t i = 0; i < n; i++) {
		const struct worker_stat *s = working ? settled(&ws[i], &copy) : &ws[i];

		if (!s)
			continue;
		io_stat_merge(io, s->io);
		k->out->worker_busy_ns += s->read_ns;
		k->out->worker_idle_ns += s->idle_ns;
		k->out->preprocess_ns += s->preprocess_ns;
		k->out->transport_ns += s->transport_ns;
		k->out->unpack_ns += s->unpack_ns;
		k->out->pin_ns += s->pin_ns;
		add_spent(k->out, &s->framework);
		add_spent(k->out, &s->framework_pin);
		add_spent(k->out, &s->framework_rank);
	}
}

/* What a loader's workers asked for since its last look, when none of them is reading. */
static void note_requested(struct rank *k, struct loader *l, struct requested *before,
			   struct requested *out)
{
	struct requested now = {.known = k->plan->w->run.measure == MEASURE_ALL};
	const struct worker_stat *ws;
	uint32_t n;

	if (k->hung)
		return;
	ws = k->plan->loader->stats(l, &n);
	for (uint32_t i = 0; i < n; i++)
		for (int kind = IO_META; kind <= IO_DATA; kind++) {
			now.asked_bytes += ws[i].io->kind[kind].asked_bytes;
			now.returned_bytes += ws[i].io->kind[kind].returned_bytes;
		}
	*out = now;
	out->asked_bytes -= before->asked_bytes;
	out->returned_bytes -= before->returned_bytes;
	*before = now;
}

/* What was downloaded for a loader's workers since its last look, when no thread of theirs does. */
static void note_fetched(struct rank *k, struct loader *l, struct fetched *before,
			 struct fetched *out)
{
	const struct worker_stat *ws;
	struct fetched now = {0};
	uint32_t n;

	if (k->hung)
		return;
	ws = k->plan->loader->stats(l, &n);
	for (uint32_t i = 0; i < n; i++)
		fetched_merge(&now, &ws[i].fetched);
	fetched_add_since(out, &now, before);
}

/* Processor time of the framework's code since the last look, when no worker is reading. */
static void note_spent(struct rank *k, struct loader *l, enum dataset_kind kind, int64_t loop_ns,
		       int64_t *out)
{
	const struct worker_stat *ws;
	int64_t now = 0;
	uint32_t n;

	if (k->hung || !framework_on(&k->code))
		return;
	ws = k->plan->loader->stats(l, &n);
	for (uint32_t i = 0; i < n; i++)
		now += ws[i].framework.cpu_ns + ws[i].framework_pin.cpu_ns +
		       ws[i].framework_rank.cpu_ns;
	*out = now - k->spent_before[kind] + loop_ns;
	k->spent_before[kind] = now;
}

/* Of the training loader: which samples took longest. */
static void add_reading_times(struct rank *k, struct loader *l, bool working)
{
	uint32_t n;
	const struct worker_stat *ws = k->plan->loader->stats(l, &n);
	AUTO_FREE struct settled *copy = NULL;
	uint64_t samples = 0;
	int64_t took_ns = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct worker_stat *s = working ? settled(&ws[i], &copy) : &ws[i];

		if (!s)
			continue;
		samples += s->samples;
		/* samples that are in flight together take longer each than their share of it */
		took_ns += s->in_flight_ns ? s->in_flight_ns : s->read_ns;
		slow_samples_merge(&k->out->slow, &s->slow);
	}
	if (samples)
		k->out->sample_ns = took_ns / (int64_t)samples;
}

static int finish_reading(struct rank *k, struct loader *l, struct err *e)
{
	int rc = k->plan->loader->finish(l, e);

	if (rc == -ETIMEDOUT)
		k->hung = true;
	return rc;
}

/* All blocks of an epoch: between two checkpoints, or the whole. */
static int blocks_prepare(struct rank_epoch *ep, const struct run_plan *p, uint64_t steps,
			  struct err *e)
{
	uint64_t every = p->save_every, first = 0;
	int rc = 0;

	ep->steps_planned = steps;
	/* by time the others are made when they begin */
	if (p->save_every_ns)
		return phase_prepare(&ep->block[0], PHASE_BLOCK, 1, 0, steps, e);
	for (uint32_t b = 0; rc == 0 && b < ep->block_capacity; b++) {
		uint64_t n = every && every < steps - first ? every : steps - first;

		rc = phase_prepare(&ep->block[b], PHASE_BLOCK, b + 1, first, n, e);
		first += n;
	}
	return rc;
}

/* The first step of a phase asks for its batch behind what the loop does before. */
static void phase_begin(struct rank *k, struct phase *p, struct epoch_split *split)
{
	p->begin_wall_ns = clock_wall_ns();
	p->begin_ns = k->began_ns = clock_now_ns();
	if (framework_on(&k->code))
		k->began_ns = loop_in_framework(k, COST_BLOCK, split);
}

static void block_begin(struct rank *k, struct rank_epoch *ep)
{
	struct phase *p;

	assert(ep->blocks < ep->block_capacity);
	p = &ep->block[ep->blocks++];
	if (k->comm.rank == 0)
		dlio_log_block_start(p->number);
	phase_begin(k, p, &ep->split);
}

static void block_end(struct rank_epoch *ep)
{
	struct phase *p = &ep->block[ep->blocks - 1];

	p->end_ns = clock_now_ns();
	p->end_wall_ns = clock_wall_ns();
}

static void block_log(struct rank *k, const struct phase *p, uint32_t epoch)
{
	double au, rate;
	uint64_t measured;
	char why[256];

	if (k->comm.rank != 0)
		return;
	dlio_log_block_end(p->number, p);
	if (metrics_phase(k->r, p, &au, &rate, &measured, why, sizeof(why)))
		dlio_log_block_metrics(epoch, p, au, rate * k->plan->at->ranks,
				       &k->plan->w->train.computation_time);
}

static uint64_t steps_made(const struct rank_epoch *ep)
{
	uint64_t n = 0;

	for (uint32_t b = 0; b < ep->blocks; b++)
		n += ep->block[b].steps;
	return n;
}

/* The steps of an epoch with the checkpoints that lie between them. The first block has begun. */
static int run_blocks(struct rank *k, struct loader *l, struct rank_epoch *ep, uint32_t epoch,
		      uint64_t steps, struct err *e)
{
	uint64_t every = k->plan->save_every;
	uint64_t made;
	bool ended, save;
	int rc;

	for (;;) {
		struct phase *p = &ep->block[ep->blocks - 1];

		rc = run_steps(k, l, p, &ep->delivered, &ep->payload_bytes, &ep->split, e);
		made = p->first_step + p->steps;
		ended = p->steps < p->capacity && !k->checkpoints.due;
		save = !ended && (every ? made % every == 0 : k->checkpoints.due);
		/* after a checkpoint that ends the epoch this is in no block */
		if (rc == 0 && !ended && made == steps && !save)
			rc = ask_past_end(k, l, &ep->split, e);
		block_end(ep);
		if (rc)
			return rc;
		block_log(k, p, epoch);
		if (ended || !save)
			return 0;
		rc = checkpoints_save(&k->checkpoints, epoch, (int64_t)made, made, e);
		if (rc)
			return rc;
		if (made == steps)
			return ask_past_end(k, l, &ep->split, e);
		rc = checkpoints_block_after(&k->checkpoints, ep, e);
		if (rc)
			return rc;
		block_begin(k, ep);
	}
}

static int meet_ranks(struct rank *k)
{
	rank_publish(&k->live, RANK_BARRIER, clock_now_ns());
	return comm_barrier(&k->comm);
}

static int train_epoch(struct rank *k, struct rank_epoch *ep, uint32_t epoch, struct err *e)
{
	struct loader *l = rank_loader(k, DATASET_TRAIN);
	struct epoch_plan plan = plan_epoch(k->plan, epoch);
	struct order order;
	int64_t looped;
	int rc, end;
	bool begun;

	plan_order(k->plan, &k->shared->list[DATASET_TRAIN], DATASET_TRAIN, epoch, &order);
	rc = blocks_prepare(ep, k->plan, plan.steps, e);
	if (rc)
		return rc;
	if (k->comm.rank == 0)
		dlio_log_epoch_start(epoch, plan.steps);
	looped = k->spent.cpu_ns;
	block_begin(k, ep);
	rc = k->plan->loader->start(l, &order, plan.steps, e);
	begun = rc == 0;
	if (begun)
		rc = run_blocks(k, l, ep, epoch, plan.steps, e);
	if (rc && ep->block[ep->blocks - 1].end_ns == 0)
		block_end(ep);
	if (rc == 0 && plan.saved_after) {
		uint64_t made = steps_made(ep);

		/* DLIO names it by the step that would have been next */
		rc = meet_ranks(k);
		if (rc == 0)
			rc = checkpoints_save(&k->checkpoints, epoch,
					      (int64_t)made + k->plan->w->compat.dlio, made, e);
	}
	ep->train_end_ns = ep->saves ? clock_now_ns() : ep->block[ep->blocks - 1].end_ns;
	ep->train_end_wall_ns = ep->saves ? clock_wall_ns() : ep->block[ep->blocks - 1].end_wall_ns;
	ep->accounted = begun && k->plan->loader->undelivered &&
			k->plan->loader->undelivered(l, steps_made(ep), &ep->rest);
	end = finish_reading(k, l, rc ? NULL : e);
	note_requested(k, l, &k->train_requested, &ep->train_requested);
	note_fetched(k, l, &k->train_fetched, &ep->train_fetched);
	note_spent(k, l, DATASET_TRAIN, k->spent.cpu_ns - looped, &ep->framework_ns);
	if (rc == 0)
		rc = end;
	if (k->comm.rank == 0 && rc == 0)
		dlio_log_epoch_end(epoch, steps_made(ep), ep->train_end_wall_ns,
				   ep->train_end_ns - ep->begin_ns);
	return rc;
}

static int evaluate_epoch(struct rank *k, struct rank_epoch *ep, uint32_t epoch, struct err *e)
{
	struct loader *l = rank_loader(k, DATASET_EVAL);
	struct phase *p = &ep->eval;
	struct order order;
	double au, rate;
	int64_t looped;
	uint64_t measured;
	char why[256];
	int rc, end;
	bool begun;

	plan_order(k->plan, &k->shared->list[DATASET_EVAL], DATASET_EVAL, epoch, &order);
	rc = phase_prepare(p, PHASE_EVAL, 1, 0, k->plan->steps[DATASET_EVAL], e);
	if (rc)
		return rc;
	ep->has_eval = true;
	atomic_store_explicit(&k->live.eval_before,
			      atomic_load_explicit(&k->live.eval_done, memory_order_relaxed),
			      memory_order_relaxed);
	atomic_store_explicit(&k->live.evaluating, 1, memory_order_relaxed);
	if (k->comm.rank == 0)
		dlio_log_eval_start(k->plan->steps[DATASET_EVAL]);
	looped = k->spent.cpu_ns;
	phase_begin(k, p, &ep->eval_split);
	k->live.eval_zero_ns =
		p->begin_ns - atomic_load_explicit(&k->live.eval_ns, memory_order_relaxed);
	/* DLIO enters a loop without a step, too: it takes no time, and needs no loader */
	rc = l ? k->plan->loader->start(l, &order, k->plan->steps[DATASET_EVAL], e) : 0;
	begun = l && rc == 0;
	if (begun)
		rc = run_steps(k, l, p, &ep->eval_delivered, &ep->eval_payload_bytes,
			       &ep->eval_split, e);
	if (rc == 0 && begun && p->steps == p->capacity)
		rc = ask_past_end(k, l, &ep->eval_split, e);
	p->end_ns = clock_now_ns();
	p->end_wall_ns = clock_wall_ns();
	ep->eval_accounted = begun && k->plan->loader->undelivered &&
			     k->plan->loader->undelivered(l, p->steps, &ep->eval_rest);
	end = l ? finish_reading(k, l, rc ? NULL : e) : 0;
	if (l) {
		note_requested(k, l, &k->eval_requested, &ep->eval_requested);
		note_fetched(k, l, &k->eval_fetched, &ep->eval_fetched);
		note_spent(k, l, DATASET_EVAL, k->spent.cpu_ns - looped, &ep->eval_framework_ns);
	}
	atomic_store_explicit(&k->live.evaluating, 0, memory_order_relaxed);
	if (rc == 0)
		rc = end;
	if (k->comm.rank == 0 && rc == 0) {
		dlio_log_eval_end(p);
		if (metrics_phase(k->r, p, &au, &rate, &measured, why, sizeof(why)))
			dlio_log_eval_metrics(epoch, au, rate * k->plan->at->ranks);
	}
	return rc;
}

static int run_epoch(struct rank *k, uint32_t epoch, struct err *e)
{
	struct run_shared *shared = k->shared;
	struct rank_epoch *ep = &k->out->epoch[epoch - 1];
	struct epoch_edges edges = {.plan = k->plan,
				    .stop = &shared->stop.flag,
				    .host = k->r->host_source,
				    .usage = &k->r->usage[epoch - 1],
				    .servers = &k->r->servers,
				    .progress_ns = &k->live.progress_ns,
				    .epoch = epoch};
	bool first = k->comm.local == 0;
	int rc;

	assert(epoch >= 1 && epoch <= k->plan->epochs);
	seed_epoch(k, epoch);
	if (first) {
		atomic_store_explicit(&shared->epoch, epoch, memory_order_relaxed);
		rank_publish(&k->live, RANK_LOOKING, clock_now_ns());
		page_cache_let_go(&edges);
	}
	/* processes of one host map the same files */
	if (k->plan->at->net && page_cache_evicts(&edges)) {
		rc = meet_ranks(k);
		if (rc)
			return rc;
	}
	if (first) {
		rc = page_cache_begin(&edges, e);
		if (rc < 0)
			return rc;
		plan_fill_lists(k->plan, shared->list, epoch);
		usage_begin(&edges);
	}
	rc = meet_ranks(k);
	if (rc)
		return rc;
	ep->begin_wall_ns = clock_wall_ns();
	ep->begin_ns = clock_now_ns();
	ep->end_ns = ep->begin_ns;
	if (epoch == 1)
		k->checkpoints.due_ns = ep->begin_ns + k->plan->save_every_ns;
	k->live.train_zero_ns =
		ep->begin_ns - atomic_load_explicit(&k->live.train_ns, memory_order_relaxed);
	if (k->plan->w->workflow.train) {
		rc = train_epoch(k, ep, epoch, e);
	} else {
		ep->train_end_ns = ep->begin_ns;
		ep->train_end_wall_ns = ep->begin_wall_ns;
	}
	if (rc == 0)
		atomic_store_explicit(&k->live.train_ns, ep->train_end_ns - k->live.train_zero_ns,
				      memory_order_relaxed);
	if (first) {
		usage_of_training(&edges);
		edges.usage->wall_ns = ep->train_end_ns - ep->begin_ns;
		if (rc == 0 && plan_epoch(k->plan, epoch).evaluated) {
			rank_publish(&k->live, RANK_LOOKING, clock_now_ns());
			rc = page_cache_before_evaluation(&edges, e);
		}
	}
	if (rc == 0)
		rc = meet_ranks(k);
	if (rc == 0 && plan_epoch(k->plan, epoch).evaluated) {
		if (first)
			atomic_store_explicit(&shared->phase, PROGRESS_EVAL, memory_order_relaxed);
		rc = evaluate_epoch(k, ep, epoch, e);
		if (rc == 0)
			rc = meet_ranks(k);
		if (first) {
			usage_of_evaluation(&edges);
			edges.usage->eval_wall_ns = ep->eval.end_ns - ep->eval.begin_ns;
			atomic_store_explicit(&shared->phase, PROGRESS_TRAIN, memory_order_relaxed);
		}
	}
	ep->end_ns = clock_now_ns();
	ep->end_wall_ns = clock_wall_ns();
	if (first && rc == 0) {
		rank_publish(&k->live, RANK_LOOKING, clock_now_ns());
		rc = page_cache_end(&edges, e);
	}
	return rc;
}

static int create_loader(struct rank *k, enum dataset_kind kind, struct err *e)
{
	const struct workload *w = k->plan->w;
	struct loader_config c = {
		.workload = w,
		.dataset = k->plan->d,
		.kind = kind,
		.store = k->plan->store,
		.cache = k->plan->cache[kind],
		.costs = w->costs,
		.rank = k->comm.rank,
		.ranks = k->plan->at->ranks,
		.batch_size = (uint64_t)(kind == DATASET_TRAIN ? w->reader.batch_size
							       : w->reader.batch_size_eval),
		.stop = &k->shared->stop.flag,
		.trace = k->r->trace,
		.progress_ns = &k->live.progress_ns,
		.grace_ns = RUN_LOADER_LEAVE_NS,
	};
	struct loader *l;
	int rc = k->plan->loader->create(&l, &c, e);

	if (rc == 0)
		atomic_store_explicit(&k->loader[kind], l, memory_order_release);
	return rc;
}

/* All the memory that the rank needs. */
static int rank_build(struct rank *k, struct err *e)
{
	const struct workload *w = k->plan->w;
	int rc = checkpoints_open(&k->checkpoints, e);

	k->code = (struct framework_code){
		.costs = w->costs,
		.stop = &k->shared->stop.flag,
		.spent = &k->spent,
		.dlio = w->compat.dlio,
		.key = rng_key((uint64_t)w->train.seed, UINT32_MAX, k->comm.rank),
	};
	if (rc < 0 || !workload_reads(w))
		return rc;
	rc = w->workflow.train ? create_loader(k, DATASET_TRAIN, e) : 0;
	if (rc == 0 && w->workflow.evaluation && k->plan->steps[DATASET_EVAL])
		rc = create_loader(k, DATASET_EVAL, e);
	return rc == 0 ? trace_check(k->r->trace, e) : rc;
}

static int run_epochs(struct rank *k, struct err *e)
{
	bool first = k->comm.local == 0;
	int rc = 0;

	if (!workload_reads(k->plan->w)) {
		if (first)
			k->r->epochs_begun = 1;
		return checkpoints_only(&k->checkpoints, e);
	}
	for (uint32_t epoch = 1; rc == 0 && epoch <= k->plan->epochs; epoch++) {
		if (first)
			k->r->epochs_begun = epoch;
		rc = run_epoch(k, epoch, e);
		if (rc == 0 && first)
			k->r->epochs_done = epoch;
	}
	return rc;
}

static void stop_run(struct rank *k, struct err *e)
{
	const struct run_place *at = k->plan->at;

	if (at->net && net_nodes(at->net) > 1)
		err_wrap(e, "rank %u on host '%s'", k->comm.rank,
			 net_process(at->net, net_process_number(at->net))->host);
	/* the loader's own sentences say it already */
	else if (at->ranks > 1 && strncmp(e->text, "rank ", 5) != 0)
		err_wrap(e, "rank %u", k->comm.rank);
	run_stop(&k->shared->stop, e);
}

/* What its workers counted in training, once: by the rank, or by who left the rank behind. A worker
 * that hangs counts when its request returns, which is not awaited. */
static void collect_training(struct rank *k, bool working)
{
	struct loader *l = rank_loader(k, DATASET_TRAIN);

	if (!l || atomic_exchange_explicit(&k->collected, true, memory_order_acq_rel))
		return;
	add_worker_stats(k, l, working, &k->out->train_io);
	if (!working)
		add_spent(k->out, &k->spent);
	add_reading_times(k, l, working);
	k->out->train_busy_ns = k->out->worker_busy_ns;
}

void rank_main(void *arg)
{
	struct rank *k = arg;
	struct err e = {0};
	int rc;

	store_serve_rank(k->comm.rank);
	rank_publish(&k->live, RANK_STARTING, clock_now_ns());
	rc = rank_build(k, &e);
	if (rc < 0)
		run_stop(&k->shared->stop, &e);
	/* every rank's memory is there before the first one is timed */
	if (rc == 0)
		rc = comm_barrier(&k->comm);
	if (rc == 0 && k->plan->w->workflow.train && k->comm.size > 1)
		rc = barrier_cost_measure(&k->comm, k->plan->at->net, &k->r->barrier);
	if (rc == 0)
		rc = run_epochs(k, &e);
	if (rc == 0)
		rc = checkpoints_drain(&k->checkpoints, &e);
	if (rc < 0 && rc != ERR_CANCELED)
		stop_run(k, &e);
	collect_training(k, k->hung);
	checkpoints_close(&k->checkpoints);
	atomic_store_explicit(&k->live.activity, RANK_DONE, memory_order_relaxed);
}

/* ---- the ranks of this process ---- */

uint64_t rank_bytes(const struct run_plan *p)
{
	return sizeof(struct rank) + sizeof(struct rank_result) + (uint64_t)p->w->run.stack_bytes;
}

static int allocate_epochs(const struct run_plan *p, struct rank_result *out, struct err *e)
{
	out->epoch = try_calloc(p->epochs, sizeof(*out->epoch), "epochs", e);
	if (!out->epoch)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->epochs; i++) {
		uint32_t n = plan_epoch(p, i + 1).blocks;

		out->epoch[i].block = try_calloc(n, sizeof(struct phase), "blocks", e);
		if (!out->epoch[i].block)
			return -ENOMEM;
		out->epoch[i].block_capacity = n;
	}
	return 0;
}

int ranks_create(struct rank **out, const struct run_plan *p, struct run_shared *shared,
		 struct result *r, struct err *e)
{
	struct rank *rank = try_calloc(p->at->locals, sizeof(*rank), "ranks", e);
	int rc = 0;

	*out = rank;
	r->rank = try_calloc(p->at->locals, sizeof(*r->rank), "ranks", e);
	r->usage = try_calloc(p->epochs, sizeof(*r->usage), "epochs", e);
	if (p->eval_steps)
		r->eval_io = try_calloc(1, sizeof(*r->eval_io), "the counters of evaluations", e);
	if (!rank || !r->rank || !r->usage || (p->eval_steps && !r->eval_io))
		return -ENOMEM;
	if (r->eval_io)
		io_stat_init(r->eval_io);
	r->ranks_here = p->at->locals;
	r->first_rank = p->at->first;
	for (uint32_t i = 0; rc == 0 && i < p->at->locals; i++) {
		struct rank_result *result = &r->rank[i];
		struct rank *k = &rank[i];

		io_stat_init(&result->train_io);
		k->plan = p;
		k->shared = shared;
		k->r = r;
		k->out = result;
		k->checkpoints = (struct rank_checkpoints){.plan = p,
							   .shared = shared,
							   .r = r,
							   .comm = &k->comm,
							   .live = &k->live,
							   .out = result};
		if (workload_reads(p->w))
			p->loader->window(p->w, &result->workers, &result->prefetch_batches);
		rc = allocate_epochs(p, result, e);
	}
	if (rc < 0 || p->w->run.trace == TRACE_OFF)
		return rc;
	return trace_create(&r->trace, p->at->first, p->at->locals,
			    (uint32_t)p->w->run.trace_events, e);
}

void rank_collect(struct rank *k)
{
	struct loader *l = rank_loader(k, DATASET_EVAL);
	bool working = k->thread.running || k->hung;

	collect_training(k, working);
	if (l && k->r->eval_io)
		add_worker_stats(k, l, working, k->r->eval_io);
}

bool rank_release_loaders(struct rank *k)
{
	bool all = true;

	for (int kind = 0; kind < DATASET_KINDS; kind++) {
		struct loader *l = rank_loader(k, kind);

		if (l && k->plan->loader->destroy(l) > 0)
			all = false;
		else
			/* nobody is to wake or describe it any more */
			atomic_store_explicit(&k->loader[kind], NULL, memory_order_release);
	}
	return all;
}
