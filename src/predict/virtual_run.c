/* The ranks of a training in virtual time: their loops, the barrier, and what they add up. */
#include "predict/virtual_run.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/saturate.h"
#include "dataset/compute_draws.h"
#include "workload/time_draw.h"

#define STACK_BYTES (1u << 20) /* of the thread */
#define THREADS_BESIDE 3       /* of a loader, that do not read: one each to map, prefetch, pin */
#define CALLS_LEAST 16         /* of map that wait, as AUTOTUNE has them at most */
#define GRACE_NS NS_PER_S      /* for threads of a loader to end, of which none hangs */

/* One rank. */
struct trainee {
	struct training *all;
	struct loader *loader;
	struct rng_np *rng; /* of its computation; NULL: it is told */
	uint32_t rank;
	uint64_t steps, samples;
	int64_t wall_ns, wait_ns, compute_ns, barrier_ns;
	double au_dlio; /* sum over epochs */
};

struct training {
	const struct virtual_training *t;
	const struct loader_ops *ops;
	struct trainee *rank;
	struct order_list list;
	uint32_t list_epoch;   /* that it is of */
	uint32_t epochs, here; /* here: ranks that came to the barrier */
	struct virtual_waiters barrier;
	struct stop_flag stop; /* of the loaders */
	struct err err, any;   /* the first failure, code 0: none; of any call */
	struct virtual_stats stats;
	double took_s;
};

/* ---- the end ---- */

static void fail(struct training *a, int rc)
{
	if (a->err.code == 0) {
		a->err = a->any;
		a->err.code = rc;
	}
	if (atomic_exchange_explicit(&a->stop.set, STOP_SOON, memory_order_relaxed))
		return;
	for (uint32_t i = 0; i < a->t->ranks; i++)
		if (a->rank[i].loader)
			a->ops->wake(a->rank[i].loader);
	virtual_wake(&a->barrier, -1);
}

static bool over(struct training *a)
{
	if (stop_is_set(a->t->stop) && a->err.code == 0) {
		err_set(&a->any, ERR_CANCELED, "the simulation was stopped");
		fail(a, ERR_CANCELED);
	}
	return a->err.code < 0;
}

/* ---- a rank ---- */

/* Waits for all ranks. */
static int meet(struct training *a)
{
	if (over(a))
		return ERR_CANCELED;
	if (++a->here < a->t->ranks) {
		virtual_wait(&a->barrier);
		return a->err.code < 0 ? ERR_CANCELED : 0;
	}
	a->here = 0;
	virtual_sleep_until(virtual_now_ns() + a->t->barrier_ns);
	virtual_wake(&a->barrier, -1);
	return 0;
}

static int64_t draw_compute(struct trainee *k, uint32_t epoch, uint64_t step)
{
	const struct virtual_training *t = k->all->t;

	return t->compute_ns ? t->compute_ns(t->arg, k->rank, epoch, step)
			     : time_draw_ns(&t->workload->train.computation_time, k->rng);
}

static void seed_compute(struct trainee *k, uint32_t epoch)
{
	const struct virtual_training *t = k->all->t;
	uint64_t seed = (uint64_t)t->workload->train.seed;

	/* where DLIO takes what the system gives, any will do */
	if (k->rng &&
	    !compute_draws_begin(k->rng, t->workload, t->dataset, seed, epoch, k->rank, t->ranks) &&
	    epoch == 1)
		rng_np_seed(k->rng, (uint32_t)rng_key(seed, epoch, k->rank));
}

/* What an epoch adds to DLIO's AU: the steps outside of the window go off, from the ask for their
 * batch to the end of their computation. */
struct window {
	uint64_t first, end;
	int64_t compute_ns, outside_ns;
};

static void window_begin(struct window *w, const struct workload *l, uint64_t steps)
{
	int64_t start = l->output.metric.exclude_start_steps;
	int64_t end = l->output.metric.exclude_end_steps;

	*w = (struct window){.first = start > 0 ? (uint64_t)start : 0, .end = steps};
	if (end > 0)
		w->end = (uint64_t)end < steps ? steps - (uint64_t)end : 0;
}

static void window_add(struct window *w, const struct virtual_step *s, int64_t compute_begin_ns)
{
	if (s->step >= w->first && s->step < w->end)
		w->compute_ns += s->compute_end_ns - compute_begin_ns;
	else
		w->outside_ns += s->compute_end_ns - s->ask_ns;
}

static double window_au(const struct window *w, int64_t time_ns)
{
	int64_t ns = time_ns - w->outside_ns;

	return w->first < w->end && ns > 0 ? 100.0 * (double)w->compute_ns / (double)ns : NAN;
}

/* One step: 1, or 0 when the epoch is over. */
static int make_step(struct trainee *k, struct virtual_step *s, struct window *w)
{
	struct training *a = k->all;
	struct batch *b;
	int64_t began;
	int rc = a->ops->next(k->loader, &b, &a->any);

	if (rc <= 0)
		return rc;
	s->got_ns = began = virtual_now_ns();
	s->batch = b->index;
	s->worker = b->worker;
	s->begun_ns = b->begun_ns;
	s->done_ns = b->done_ns;
	k->samples += b->samples;
	a->ops->give_back(k->loader, b);
	virtual_sleep_until(began + draw_compute(k, s->epoch, s->step));
	s->compute_end_ns = virtual_now_ns();
	rc = a->t->no_barrier ? 0 : meet(a);
	if (rc == 0 && over(a))
		rc = ERR_CANCELED;
	if (rc < 0)
		return rc;
	s->barrier_out_ns = virtual_now_ns();
	k->steps++;
	k->wait_ns += s->got_ns - s->ask_ns;
	k->compute_ns += s->compute_end_ns - began;
	k->barrier_ns += s->barrier_out_ns - s->compute_end_ns;
	window_add(w, s, began);
	if (a->t->step)
		a->t->step(a->t->arg, s);
	return 1;
}

static void get_order(struct trainee *k, uint32_t epoch, struct order *out)
{
	struct training *a = k->all;
	const struct workload *w = a->t->workload;
	uint64_t seed = (uint64_t)w->train.seed;

	order_init(out, w, dataset_samples(a->t->dataset, DATASET_TRAIN), a->t->ranks,
		   (uint64_t)w->reader.batch_size, seed, epoch);
	if (a->list.n == 0)
		return;
	out->list = &a->list;
	/* every rank has come to this epoch: none reads by the last one's */
	if (a->list_epoch != epoch)
		order_list_fill(&a->list, w, false, seed, epoch);
	a->list_epoch = epoch;
}

static int make_epoch(struct trainee *k, uint32_t epoch)
{
	struct training *a = k->all;
	int64_t begin = virtual_now_ns(), ask = begin;
	struct virtual_step s = {.rank = k->rank, .epoch = epoch};
	struct order order;
	struct window w;
	uint64_t steps;
	struct batch *b;
	int rc, end;

	get_order(k, epoch, &order);
	steps = order_steps(&order);
	if (a->t->steps && a->t->steps < steps)
		steps = a->t->steps;
	window_begin(&w, a->t->workload, steps);
	seed_compute(k, epoch);
	rc = a->ops->start(k->loader, &order, steps, &a->any);
	for (rc = rc < 0 ? rc : 1; rc == 1 && s.step < steps; ask = s.barrier_out_ns) {
		s.ask_ns = ask;
		rc = make_step(k, &s, &w);
		s.step += rc == 1;
	}
	/* a loop over a loader ends when it asks once more */
	if (rc == 1)
		rc = a->ops->next(k->loader, &b, &a->any);
	if (rc > 0)
		a->ops->give_back(k->loader, b);
	k->wall_ns += virtual_now_ns() - begin;
	k->au_dlio += window_au(&w, virtual_now_ns() - begin);
	end = a->ops->finish(k->loader, &a->any);
	return rc < 0 ? rc : end;
}

static void train(void *arg)
{
	struct trainee *k = arg;
	struct training *a = k->all;
	int rc = 0;

	for (uint32_t epoch = 1; rc == 0 && epoch <= a->epochs; epoch++) {
		rc = meet(a);
		if (rc == 0)
			rc = make_epoch(k, epoch);
	}
	if (rc < 0)
		fail(a, rc);
	a->ops->destroy(k->loader);
	k->loader = NULL;
}

/* ---- all of them ---- */

static struct loader_config config_of(const struct virtual_training *t, uint32_t rank,
				      const struct stop_flag *stop)
{
	return (struct loader_config){
		.workload = t->workload,
		.dataset = t->dataset,
		.kind = DATASET_TRAIN,
		.model = t->model,
		.costs = t->costs,
		.rank = rank,
		.ranks = t->ranks,
		.batch_size = (uint64_t)t->workload->reader.batch_size,
		.stop = stop,
		.grace_ns = GRACE_NS,
	};
}

static int find_loader(const struct virtual_training *t, const struct loader_ops **out,
		       struct err *e)
{
	const char *name = t->workload->reader.data_loader;

	*out = name ? loader_find(name) : NULL;
	if (!*out)
		return err_set(e, ERR_USAGE, "there is no data loader '%s'", name ? name : "");
	if (t->ranks == 0 || t->workload->reader.batch_size < 1)
		return err_set(e, ERR_USAGE,
			       "a simulation needs ranks and a batch size: it has %u and %lld",
			       t->ranks, (long long)t->workload->reader.batch_size);
	return 0;
}

/* Fibers of one rank at most. */
static uint64_t fibers_of(const struct virtual_training *t, const struct loader_ops *ops)
{
	int64_t calls = t->workload->reader.computation_threads;
	uint64_t batches;
	uint32_t workers;

	ops->window(t->workload, &workers, &batches);
	return 1 + (uint64_t)workers + THREADS_BESIDE +
	       (calls > CALLS_LEAST ? (uint64_t)calls : CALLS_LEAST);
}

static void settings_of(const struct virtual_training *t, const struct loader_ops *ops,
			struct virtual_settings *out)
{
	uint64_t fibers = u64_sum(u64_product(t->ranks, fibers_of(t, ops)), t->fibers_more);

	*out = (struct virtual_settings){
		.fibers = fibers < UINT32_MAX ? (uint32_t)fibers : UINT32_MAX,
		.compute = t->processors,
		.compute_arg = t->arg,
	};
}

uint64_t virtual_training_bytes(const struct virtual_training *t, struct err *e)
{
	const struct loader_ops *ops;
	struct virtual_settings s;
	struct loader_config c;
	uint64_t loader, batches, samples;
	uint32_t workers;

	if (find_loader(t, &ops, e) < 0)
		return 0;
	c = config_of(t, 0, NULL);
	if (ops->memory_bytes(&c, &loader, e) < 0)
		return 0;
	settings_of(t, ops, &s);
	ops->window(t->workload, &workers, &batches);
	if (!time_dist_waits(&t->workload->reader.preprocess_time)) {
		uint64_t fibers =
			u64_sum(u64_product(t->ranks, 1 + (uint64_t)workers + THREADS_BESIDE),
				t->fibers_more);

		s.fibers = fibers < s.fibers ? (uint32_t)fibers : s.fibers;
	}
	samples =
		order_list_entries(t->workload, false, dataset_samples(t->dataset, DATASET_TRAIN));
	loader = u64_sum(loader, sizeof(struct trainee) + sizeof(struct rng_np));
	return u64_sum(u64_sum(u64_product(loader, t->ranks), virtual_bytes(&s)),
		       samples ? order_list_bytes(samples) : 0);
}

static int make_ranks(struct training *a, struct virtual *v, struct err *e)
{
	const struct virtual_training *t = a->t;
	int rc = 0;

	for (uint32_t i = 0; i < t->ranks && rc == 0; i++) {
		struct trainee *k = &a->rank[i];
		const struct loader_config c = config_of(t, i, &a->stop);

		k->all = a;
		k->rank = i;
		if (!t->compute_ns) {
			k->rng = try_calloc(1, sizeof(*k->rng), "ranks", e);
			if (!k->rng)
				return -ENOMEM;
		}
		rc = a->ops->create(&k->loader, &c, e);
		if (rc == 0)
			rc = virtual_spawn(v, train, k, e);
	}
	return rc;
}

static int make_world(struct training *a, struct virtual **v, struct err *e)
{
	const struct virtual_training *t = a->t;
	struct virtual_settings s;
	uint64_t samples;
	int rc;

	settings_of(t, a->ops, &s);
	rc = virtual_create(v, &s, e);
	if (rc < 0)
		return rc;
	a->rank = try_calloc(t->ranks, sizeof(*a->rank), "ranks", e);
	if (!a->rank)
		return -ENOMEM;
	samples =
		order_list_entries(t->workload, false, dataset_samples(t->dataset, DATASET_TRAIN));
	if (samples)
		rc = order_list_init(&a->list, samples, e);
	if (rc == 0 && t->begin)
		rc = t->begin(t->arg, *v, e);
	return rc < 0 ? rc : make_ranks(a, *v, e);
}

static void release(struct training *a, struct virtual *v)
{
	for (uint32_t i = 0; a->rank && i < a->t->ranks; i++) {
		/* of a world that never ran: it has no threads */
		if (a->rank[i].loader)
			a->ops->destroy(a->rank[i].loader);
		free(a->rank[i].rng);
	}
	order_list_release(&a->list);
	virtual_destroy(v);
}

/* The thread. */
static void *train_all(void *arg)
{
	struct training *a = arg;
	int64_t begin = clock_now_ns();
	struct virtual *v = NULL;
	int rc = make_world(a, &v, &a->err);

	a->err.code = rc;
	if (rc == 0) {
		rc = virtual_run(v, &a->any);
		/* a failure of the model: what its ranks hold is lost */
		if (rc < 0) {
			a->err = a->any;
			a->err.code = rc;
			memset(a->rank, 0, a->t->ranks * sizeof(*a->rank));
		}
		virtual_stats_of(v, &a->stats);
	}
	release(a, v);
	a->took_s = clock_seconds(clock_now_ns() - begin);
	return NULL;
}

static void sum_up(const struct training *a, struct virtual_outcome *out)
{
	uint32_t n = a->t->ranks;

	*out = (struct virtual_outcome){.stats = a->stats, .took_s = a->took_s};
	for (uint32_t i = 0; i < n; i++) {
		const struct trainee *k = &a->rank[i];

		out->steps = k->steps > out->steps ? k->steps : out->steps;
		out->samples += k->samples;
		out->wall_s += clock_seconds(k->wall_ns) / n;
		out->wait_s += clock_seconds(k->wait_ns) / n;
		out->compute_s += clock_seconds(k->compute_ns) / n;
		out->barrier_s += clock_seconds(k->barrier_ns) / n;
		out->au_dlio += k->au_dlio / a->epochs / n;
		if (k->wall_ns > 0)
			out->au += 100.0 * (double)k->compute_ns / (double)k->wall_ns / n;
	}
}

int virtual_training_run(const struct virtual_training *t, struct virtual_outcome *out,
			 struct err *e)
{
	struct training a = {.t = t};
	pthread_t id;
	int rc = find_loader(t, &a.ops, e);

	assert(!virtual_on());
	if (rc < 0)
		return rc;
	a.epochs = t->epochs ? t->epochs : (uint32_t)t->workload->train.epochs;
	rc = thread_start(&id, train_all, &a, STACK_BYTES, "virtual", e);
	if (rc < 0)
		return rc;
	pthread_join(id, NULL);
	rc = a.err.code;
	if (rc < 0 && e)
		*e = a.err;
	if (rc == 0)
		sum_up(&a, out);
	free(a.rank);
	return rc;
}

void virtual_steps(struct workload *w, uint32_t ranks, uint64_t steps)
{
	uint64_t per_file =
		w->dataset.num_samples_per_file > 0 ? (uint64_t)w->dataset.num_samples_per_file : 1;
	uint64_t samples = u64_product(u64_product(ranks, steps), (uint64_t)w->reader.batch_size);
	uint64_t files = samples / per_file + (samples % per_file != 0);

	w->dataset.num_files_train = files < INT64_MAX ? (int64_t)files : INT64_MAX;
}
