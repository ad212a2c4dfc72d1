/* A rank's life: ask for a batch, compute (wait), meet the other ranks, and note six times a step.
 */
#include "run/rank.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "comm/net.h"
#include "result/dlio_log.h"
#include "run/epoch_edges.h"
#include "run/state.h"
#include "workload/time_draw.h"

/* DLIO re-seeds its global generator at every shuffle, so that compute times are a function of seed
 * and epoch and the same on every rank: the draws of one shuffle of `n` elements, without the
 * array. */
static void draw_shuffle(struct rng_np *rng, uint64_t n)
{
	for (uint64_t i = n; i-- > 1;)
		rng_np_interval(rng, i);
}

static void seed_epoch(struct rank *k, uint32_t epoch)
{
	const struct run_state *s = k->run;
	const struct workload *w = s->w;
	uint64_t seed = s->seed + (w->train.seed_change_epoch ? epoch : 0);

	if (!w->compat.dlio) {
		rng_np_seed(&k->rng, (uint32_t)rng_key(seed, epoch, k->comm.rank));
		return;
	}
	if (w->reader.sample_shuffle == SHUFFLE_OFF) {
		if (epoch == 1)
			rng_np_seed_entropy(&k->rng);
		return;
	}
	for (int kind = 0; kind < DATASET_KINDS; kind++) {
		uint64_t total = dataset_samples(s->d, kind);
		uint64_t share = (total + s->ranks - 1) / s->ranks;
		uint64_t first = share * k->comm.rank;

		if (total == 0)
			continue;
		rng_np_seed(&k->rng, (uint32_t)seed);
		draw_shuffle(&k->rng, first >= total          ? 0
				      : first + share > total ? total - first
							      : share);
	}
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

int64_t rank_wait_until(struct run_state *s, int64_t deadline_ns)
{
	int64_t now = clock_now_ns();

	while (now < deadline_ns && atomic_load_explicit(&s->halt, memory_order_relaxed) == 0) {
		thread_wait(&s->halt, 0, deadline_ns - now);
		now = clock_now_ns();
	}
	return now;
}

/* Emulated computation: an absolute deadline, so that lateness never adds up inside a step. False
 * when the run was told to stop meanwhile: then the step does not count. */
static bool compute(struct rank *k, const struct time_dist *dist, struct step_times *t)
{
	int64_t wait_ns = time_draw_ns(dist, &k->rng);

	t->compute_begin_ns = clock_now_ns();
	t->compute_end_ns = t->compute_begin_ns;
	if (wait_ns <= 0)
		return true;
	rank_publish(k, RANK_COMPUTING, t->compute_begin_ns + wait_ns);
	t->compute_end_ns = rank_wait_until(k->run, t->compute_begin_ns + wait_ns);
	return t->compute_end_ns - t->compute_begin_ns >= wait_ns;
}

/* A loop over a loader ends when it asks once more, which is part of the phase. */
static int ask_on(struct rank *k, struct loader *l, struct err *e)
{
	struct batch *b;
	int rc;

	rank_publish(k, RANK_WAITING, clock_now_ns());
	rc = k->run->loader_ops->next(l, &b, e);
	if (rc > 0)
		k->run->loader_ops->give_back(l, b);
	return rc < 0 ? rc : 0;
}

/* Runs up to p->capacity steps into `p`; adds to `split` unless NULL. 0 when all were made, the
 * loader's epoch ended, or a checkpoint is due by time. */
static int run_steps(struct rank *k, struct loader *l, struct phase *p,
		     struct order_proof *delivered, uint64_t *payload, struct epoch_split *split,
		     struct err *e)
{
	struct run_state *s = k->run;
	const struct time_dist *dist =
		p->kind == PHASE_EVAL ? &s->w->evaluation.eval_time : &s->w->train.computation_time;
	bool by_time = p->kind == PHASE_BLOCK && run_checkpoint_interval_ns(s->w) > 0;
	int64_t ask = p->begin_ns, wait[WAIT_PARTS];

	k->checkpoints.due = false;
	for (uint64_t i = 0; i < p->capacity; i++) {
		struct step_times *t = &p->step[i];
		struct batch_work work;
		struct batch_span span;
		uint64_t bytes, samples;
		struct batch *b;
		int rc;

		t->ask_ns = ask;
		rank_publish(k, RANK_WAITING, clock_now_ns());
		rc = s->loader_ops->next(l, &b, e);
		if (rc <= 0)
			return rc;
		t->got_ns = clock_now_ns();
		work = b->work;
		span = (struct batch_span){b->sent_ns, b->begun_ns, b->done_ns, &work};
		wait_split(wait, t, &span, p->first_step + i == 0);
		order_proof_merge(delivered, &b->proof);
		bytes = b->payload_bytes;
		samples = b->samples;
		*payload += bytes;
		p->samples += samples;
		atomic_fetch_add_explicit(&k->payload_bytes, bytes, memory_order_relaxed);
		atomic_fetch_add_explicit(&k->samples, samples, memory_order_relaxed);
		s->loader_ops->give_back(l, b);
		if (!compute(k, dist, t))
			return ERR_CANCELED;
		t->barrier_in_ns = t->compute_end_ns;
		t->barrier_out_ns = t->compute_end_ns;
		p->steps = i + 1;
		if (split) {
			epoch_split_add(split, wait, p->step, i, &span);
			service_times_add(&k->out->service, span.done_ns - span.begun_ns);
		}
		if (p->kind == PHASE_BLOCK) {
			rank_publish(k, RANK_BARRIER, t->compute_end_ns);
			rc = by_time ? comm_barrier_until(&k->comm, k->checkpoints.due_ns,
							  &k->checkpoints.due)
				     : comm_barrier(&k->comm);
			if (rc)
				return rc;
			t->barrier_out_ns = clock_now_ns();
		}
		rank_publish_step(k, p, t, bytes, samples);
		ask = t->barrier_out_ns;
		if (k->checkpoints.due)
			return 0;
	}
	return 0;
}

static void add_worker_stats(struct rank *k, struct loader *l, struct io_stat *io)
{
	uint32_t n;
	const struct worker_stat *ws = k->run->loader_ops->stats(l, &n);

	for (uint32_t i = 0; i < n; i++) {
		io_stat_merge(io, &ws[i].io);
		k->out->worker_busy_ns += ws[i].read_ns;
		k->out->worker_idle_ns += ws[i].idle_ns;
		k->out->preprocess_ns += ws[i].preprocess_ns;
		k->out->transport_ns += ws[i].transport_ns;
		k->out->unpack_ns += ws[i].unpack_ns;
		k->out->pin_ns += ws[i].pin_ns;
	}
}

/* What a loader's workers asked for since its last look, when none of them is reading. */
static void take_requested(struct rank *k, struct loader *l, struct requested *before,
			   struct requested *out)
{
	struct requested now = {.known = k->run->w->run.measure == MEASURE_ALL};
	const struct worker_stat *ws;
	uint32_t n;

	if (k->hung)
		return;
	ws = k->run->loader_ops->stats(l, &n);
	for (uint32_t i = 0; i < n; i++)
		for (int kind = IO_META; kind <= IO_DATA; kind++) {
			now.asked_bytes += ws[i].io.kind[kind].asked_bytes;
			now.returned_bytes += ws[i].io.kind[kind].returned_bytes;
		}
	*out = now;
	out->asked_bytes -= before->asked_bytes;
	out->returned_bytes -= before->returned_bytes;
	*before = now;
}

/* Of the training loader: which samples took longest. */
static void add_reading_times(struct rank *k, struct loader *l)
{
	uint32_t n;
	const struct worker_stat *ws = k->run->loader_ops->stats(l, &n);
	uint64_t samples = 0;
	int64_t took_ns = 0;

	for (uint32_t i = 0; i < n; i++) {
		samples += ws[i].samples;
		/* samples that are in flight together take longer each than their share of it */
		took_ns += ws[i].in_flight_ns ? ws[i].in_flight_ns : ws[i].read_ns;
		slow_samples_merge(&k->out->slow, &ws[i].slow);
	}
	if (samples)
		k->out->sample_ns = took_ns / (int64_t)samples;
}

static int finish(struct rank *k, struct loader *l, struct err *e)
{
	int rc = k->run->loader_ops->finish(l, e);

	if (rc == -ETIMEDOUT)
		k->hung = true;
	return rc;
}

/* All blocks of an epoch: between two checkpoints, or the whole. */
static int blocks_prepare(struct rank_epoch *ep, const struct run_state *s, uint64_t steps,
			  struct err *e)
{
	uint64_t every = run_checkpoint_steps(s->w), first = 0;
	int rc = 0;

	ep->steps_planned = steps;
	/* by time the others are made when they begin */
	if (run_checkpoint_interval_ns(s->w))
		return phase_prepare(&ep->block[0], PHASE_BLOCK, 1, 0, steps, e);
	for (uint32_t b = 0; rc == 0 && b < ep->block_capacity; b++) {
		uint64_t n = every && every < steps - first ? every : steps - first;

		rc = phase_prepare(&ep->block[b], PHASE_BLOCK, b + 1, first, n, e);
		first += n;
	}
	return rc;
}

static void block_begin(struct rank *k, struct rank_epoch *ep)
{
	struct phase *p = &ep->block[ep->blocks++];

	if (k->comm.rank == 0)
		dlio_log_block_start(p->number);
	p->begin_wall_ns = clock_wall_ns();
	p->begin_ns = clock_now_ns();
}

static void block_end(struct rank_epoch *ep)
{
	struct phase *p = &ep->block[ep->blocks - 1];

	p->end_ns = clock_now_ns();
	p->end_wall_ns = clock_wall_ns();
}

static void block_tell(struct rank *k, const struct phase *p, uint32_t epoch)
{
	const struct run_state *s = k->run;
	double au, rate;
	uint64_t measured;
	char why[256];

	if (k->comm.rank != 0)
		return;
	dlio_log_block_end(p->number, p);
	if (metrics_phase(s->r, p, &au, &rate, &measured, why, sizeof(why)))
		dlio_log_block_metrics(epoch, p, au, rate * s->ranks,
				       &s->w->train.computation_time);
}

static uint64_t steps_made(const struct rank_epoch *ep)
{
	uint64_t n = 0;

	for (uint32_t b = 0; b < ep->blocks; b++)
		n += ep->block[b].steps;
	return n;
}

/* The steps of an epoch with the checkpoints that lie between them. The first block has begun. */
static int run_blocks(struct rank *k, struct rank_epoch *ep, uint32_t epoch, uint64_t steps,
		      struct err *e)
{
	uint64_t every = run_checkpoint_steps(k->run->w);
	uint64_t made;
	bool ended, save;
	int rc;

	for (;;) {
		struct phase *p = &ep->block[ep->blocks - 1];

		rc = run_steps(k, k->train, p, &ep->delivered, &ep->payload_bytes, &ep->split, e);
		made = p->first_step + p->steps;
		ended = p->steps < p->capacity && !k->checkpoints.due;
		save = !ended && (every ? made % every == 0 : k->checkpoints.due);
		/* after a checkpoint that ends the epoch this is in no block */
		if (rc == 0 && !ended && made == steps && !save)
			rc = ask_on(k, k->train, e);
		block_end(ep);
		if (rc)
			return rc;
		block_tell(k, p, epoch);
		if (ended || !save)
			return 0;
		rc = rank_save(k, epoch, (int64_t)made, made, e);
		if (rc)
			return rc;
		if (made == steps)
			return ask_on(k, k->train, e);
		rc = rank_block_after(k, ep, e);
		if (rc)
			return rc;
		block_begin(k, ep);
	}
}

static int train_epoch(struct rank *k, struct rank_epoch *ep, uint32_t epoch, struct err *e)
{
	struct run_state *s = k->run;
	uint64_t steps = run_epoch_steps(s, epoch);
	struct order order;
	int rc, end;
	bool begun;

	run_order(s, DATASET_TRAIN, epoch, &order);
	rc = blocks_prepare(ep, s, steps, e);
	if (rc)
		return rc;
	if (k->comm.rank == 0)
		dlio_log_epoch_start(epoch, steps);
	block_begin(k, ep);
	rc = s->loader_ops->start(k->train, &order, steps, e);
	begun = rc == 0;
	if (begun)
		rc = run_blocks(k, ep, epoch, steps, e);
	if (rc && ep->block[ep->blocks - 1].end_ns == 0)
		block_end(ep);
	if (rc == 0 && run_epoch_has_checkpoint(s->w, epoch)) {
		uint64_t made = steps_made(ep);

		/* DLIO names it by the step that would have been next */
		rc = comm_barrier(&k->comm);
		if (rc == 0)
			rc = rank_save(k, epoch, (int64_t)made + s->w->compat.dlio, made, e);
	}
	ep->train_end_ns = ep->saves ? clock_now_ns() : ep->block[ep->blocks - 1].end_ns;
	ep->train_end_wall_ns = ep->saves ? clock_wall_ns() : ep->block[ep->blocks - 1].end_wall_ns;
	ep->accounted = begun && s->loader_ops->undelivered &&
			s->loader_ops->undelivered(k->train, steps_made(ep), &ep->rest);
	end = finish(k, k->train, rc ? NULL : e);
	take_requested(k, k->train, &k->train_requested, &ep->train_requested);
	if (rc == 0)
		rc = end;
	if (k->comm.rank == 0 && rc == 0)
		dlio_log_epoch_end(epoch, steps_made(ep), ep->train_end_wall_ns,
				   ep->train_end_ns - ep->begin_ns);
	return rc;
}

static int evaluate(struct rank *k, struct rank_epoch *ep, uint32_t epoch, struct err *e)
{
	struct run_state *s = k->run;
	struct phase *p = &ep->eval;
	struct order order;
	double au, rate;
	uint64_t measured;
	char why[256];
	int rc, end;
	bool begun;

	run_order(s, DATASET_EVAL, epoch, &order);
	rc = phase_prepare(p, PHASE_EVAL, 1, 0, s->steps[DATASET_EVAL], e);
	if (rc)
		return rc;
	ep->has_eval = true;
	atomic_store_explicit(&k->eval_before,
			      atomic_load_explicit(&k->eval_done, memory_order_relaxed),
			      memory_order_relaxed);
	atomic_store_explicit(&k->evaluating, 1, memory_order_relaxed);
	if (k->comm.rank == 0)
		dlio_log_eval_start(s->steps[DATASET_EVAL]);
	p->begin_wall_ns = clock_wall_ns();
	p->begin_ns = clock_now_ns();
	k->eval_zero_ns = p->begin_ns - atomic_load_explicit(&k->eval_ns, memory_order_relaxed);
	rc = s->loader_ops->start(k->eval, &order, s->steps[DATASET_EVAL], e);
	begun = rc == 0;
	if (begun)
		rc = run_steps(k, k->eval, p, &ep->eval_delivered, &ep->eval_payload_bytes, NULL,
			       e);
	if (rc == 0 && begun && p->steps == p->capacity)
		rc = ask_on(k, k->eval, e);
	p->end_ns = clock_now_ns();
	p->end_wall_ns = clock_wall_ns();
	ep->eval_accounted = begun && s->loader_ops->undelivered &&
			     s->loader_ops->undelivered(k->eval, p->steps, &ep->eval_rest);
	end = finish(k, k->eval, rc ? NULL : e);
	take_requested(k, k->eval, &k->eval_requested, &ep->eval_requested);
	atomic_store_explicit(&k->evaluating, 0, memory_order_relaxed);
	if (rc == 0)
		rc = end;
	if (k->comm.rank == 0 && rc == 0) {
		dlio_log_eval_end(p);
		if (metrics_phase(s->r, p, &au, &rate, &measured, why, sizeof(why)))
			dlio_log_eval_metrics(epoch, au, rate * s->ranks);
	}
	return rc;
}

static int one_epoch(struct rank *k, uint32_t epoch, struct err *e)
{
	struct run_state *s = k->run;
	struct rank_epoch *ep = &k->out->epoch[epoch - 1];
	bool first = k->comm.local == 0;
	struct usage_mark mark = {0};
	int rc;

	seed_epoch(k, epoch);
	if (first) {
		atomic_store(&s->epoch, epoch);
		rc = run_page_cache_begin(s, epoch, &k->progress_ns, e);
		if (rc < 0)
			return rc;
		run_fill_lists(s, epoch);
		usage_begin(s, epoch, &mark);
	}
	rc = comm_barrier(&k->comm);
	if (rc)
		return rc;
	ep->begin_wall_ns = clock_wall_ns();
	ep->begin_ns = clock_now_ns();
	ep->end_ns = ep->begin_ns;
	if (epoch == 1)
		k->checkpoints.due_ns = ep->begin_ns + run_checkpoint_interval_ns(s->w);
	k->train_zero_ns = ep->begin_ns - atomic_load_explicit(&k->train_ns, memory_order_relaxed);
	rc = train_epoch(k, ep, epoch, e);
	if (rc == 0)
		atomic_store_explicit(&k->train_ns, ep->train_end_ns - k->train_zero_ns,
				      memory_order_relaxed);
	if (first) {
		usage_of_training(s, epoch, &mark);
		s->r->usage[epoch - 1].wall_ns = ep->train_end_ns - ep->begin_ns;
	}
	if (rc == 0)
		rc = comm_barrier(&k->comm);
	if (rc == 0 && run_epoch_has_eval(s->w, epoch)) {
		if (first)
			atomic_store(&s->phase, PROGRESS_EVAL);
		rc = evaluate(k, ep, epoch, e);
		if (rc == 0)
			rc = comm_barrier(&k->comm);
		if (first) {
			usage_of_evaluation(s, epoch, &mark);
			atomic_store(&s->phase, PROGRESS_TRAIN);
		}
	}
	ep->end_ns = clock_now_ns();
	ep->end_wall_ns = clock_wall_ns();
	if (first && rc == 0)
		rc = run_page_cache_end(s, epoch, &k->progress_ns, e);
	return rc;
}

static int build(struct rank *k, struct err *e)
{
	struct run_state *s = k->run;
	struct loader_config c = {
		.workload = s->w,
		.dataset = s->d,
		.kind = DATASET_TRAIN,
		.store = s->store,
		.rank = k->comm.rank,
		.batch_size = (uint64_t)s->w->reader.batch_size,
		.stop = &s->stop,
		.trace = s->r->trace,
		.progress_ns = &k->progress_ns,
	};
	struct loader *l;
	int rc = rank_checkpoints_open(k, e);

	if (rc == 0 && s->w->workflow.train)
		rc = s->loader_ops->create(&l, &c, e);
	if (rc < 0 || !s->w->workflow.train)
		return rc;
	k->train = l;
	if (!s->w->workflow.evaluation || s->steps[DATASET_EVAL] == 0)
		return trace_check(s->r->trace, e);
	c.kind = DATASET_EVAL;
	c.batch_size = (uint64_t)s->w->reader.batch_size_eval;
	rc = s->loader_ops->create(&l, &c, e);
	if (rc == 0)
		k->eval = l;
	return rc == 0 ? trace_check(s->r->trace, e) : rc;
}

static int only_checkpoints(struct rank *k, struct err *e)
{
	if (k->comm.local == 0)
		k->run->r->epochs_begun = 1;
	return rank_checkpoints_only(k, e);
}

void *rank_main(void *arg)
{
	struct rank *k = arg;
	struct run_state *s = k->run;
	struct err e = {0};
	int rc;

	rank_publish(k, RANK_STARTING, clock_now_ns());
	rc = build(k, &e);
	if (rc < 0)
		run_stop(s, &e);
	/* every rank's memory is there before the first one is timed */
	if (rc == 0)
		rc = comm_barrier(&k->comm);
	if (rc == 0 && k->comm.local == 0)
		s->train_begin_ns = clock_now_ns();
	if (rc == 0 && !s->w->workflow.train)
		rc = only_checkpoints(k, &e);
	for (uint32_t epoch = 1; rc == 0 && s->w->workflow.train && epoch <= s->r->epochs_planned;
	     epoch++) {
		if (k->comm.local == 0)
			s->r->epochs_begun = epoch;
		rc = one_epoch(k, epoch, &e);
		if (rc == 0 && k->comm.local == 0)
			s->r->epochs_done = epoch;
	}
	if (rc == 0)
		rc = rank_checkpoints_drain(k, &e);
	if (rc < 0 && rc != ERR_CANCELED) {
		if (s->net && net_nodes(s->net) > 1)
			err_wrap(&e, "rank %u on host '%s'", k->comm.rank,
				 net_process(s->net, net_process_number(s->net))->host);
		/* the loader's own sentences say it already */
		else if (s->ranks > 1 && strncmp(e.text, "rank ", 5) != 0)
			err_wrap(&e, "rank %u", k->comm.rank);
		run_stop(s, &e);
	}
	if (k->train && !k->hung) {
		add_worker_stats(k, k->train, &k->out->train_io);
		add_reading_times(k, k->train);
		k->out->train_busy_ns = k->out->worker_busy_ns;
	}
	if (k->eval && !k->hung)
		add_worker_stats(k, k->eval, &k->out->eval_io);
	rank_checkpoints_close(k);
	atomic_store_explicit(&k->activity, RANK_DONE, memory_order_relaxed);
	return NULL;
}
