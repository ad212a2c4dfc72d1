#include "predict/fleet_virtual.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "predict/fleet_sums.h"
#include "predict/store_model.h"
#include "predict/virtual_run.h"

/* Shared by the fibers at it. */
struct counter {
	struct shared_server server;
	struct virtual_timer timer;
	struct world *world;
};

struct world {
	const struct fleet *f;
	struct model m;
	struct store_model store;
	struct counter *bytes, *cpu;    /* of hosts; bytes: one where all share it */
	struct virtual_waiters **visit; /* of those at counters */
	uint32_t *spare, spares, visits;
	uint64_t *reads; /* of ranks */
	struct fleet_sums sums;
	uint64_t step; /* made, of all ranks, since the last barrier */
	double slowest;
};

static double now_s(void)
{
	return (double)virtual_now_ns() / 1e9;
}

static void sleep_until_s(double at)
{
	virtual_sleep_until((int64_t)ceil(at * 1e9));
}

/* ---- counters ---- */

static void counter_arm(struct counter *c)
{
	double due = server_due(&c->server);

	if (isinf(due))
		virtual_timer_clear(&c->timer);
	else
		virtual_timer_set(&c->timer, (int64_t)ceil(due * 1e9));
}

static void counter_serve(void *arg)
{
	struct counter *c = arg;
	struct world *w = c->world;
	double now = now_s();

	server_touch(&c->server, now);
	/* the clock has whole nanoseconds */
	while (server_due(&c->server) <= now + 1e-9) {
		uint32_t who = server_leave(&c->server, now);

		virtual_wake(w->visit[who], -1);
		w->spare[w->spares++] = who;
	}
	counter_arm(c);
}

static void counter_visit(struct counter *c, double amount)
{
	struct virtual_waiters mine = {NULL, NULL};
	struct world *w = c->world;
	uint32_t who;

	if (!(amount > 0))
		return;
	if (w->spares == 0) {
		uint32_t more = w->visits ? w->visits : 64;

		w->visit = xrealloc(w->visit,
				    (size_t)(w->visits + more) * sizeof(struct virtual_waiters *));
		w->spare = xrealloc(w->spare, (size_t)(w->visits + more) * sizeof(*w->spare));
		for (uint32_t i = 0; i < more; i++)
			w->spare[w->spares++] = w->visits + i;
		w->visits += more;
	}
	who = w->spare[--w->spares];
	w->visit[who] = &mine;
	server_enter(&c->server, now_s(), amount, who);
	counter_arm(c);
	virtual_wait(&mine);
}

static void use_processor(struct world *w, uint32_t rank, double s)
{
	w->sums.cpu += s;
	counter_visit(&w->cpu[store_host(&w->store, rank)], s);
}

/* ---- reading ---- */

static void read_part(struct world *w, const struct modelled_read *r, double part)
{
	struct store_model *store = &w->store;
	const struct store_ask ask = {
		.rank = r->rank, .key = w->reads[r->rank]++, .part = part, .size = 1};
	double came = now_s(), fluid, bytes = w->m.bytes * part;

	if (store->open.waits)
		sleep_until_s(store_pass(store, &store->open, now_s(), &ask));
	sleep_until_s(now_s() + w->m.delay_s * part + store_delay(store, &ask));
	if (store->read.waits)
		sleep_until_s(store_pass(store, &store->read, now_s(), &ask));
	if (bytes > 0 && store_moves(store)) {
		fluid = store_fluid(store, now_s(), r->rank, bytes);
		counter_visit(&w->bytes[store_bytes_of(store, r->rank)], bytes);
		sleep_until_s(fluid);
	}
	w->sums.at_store += now_s() - came;
	use_processor(w, r->rank, w->m.cpu_s * part);
}

static void read_run(void *arg, const struct modelled_read *r)
{
	struct world *w = arg;
	double part = r->samples / w->f->samples / w->m.parts;

	for (uint32_t i = 0; i < w->m.parts; i++)
		read_part(w, r, part);
}

/* ---- ranks ---- */

static int64_t compute_ns(void *arg, uint32_t rank, uint32_t epoch, uint64_t step)
{
	const struct world *w = arg;
	uint64_t key = rng_key(w->m.seed + 2, rank | (uint64_t)(epoch - 1) << 32, step);

	return (int64_t)(drawn_value(&w->f->compute, rng_word(key, 0)) * 1e9 + 0.5);
}

static void step_over(void *arg, const struct virtual_step *s)
{
	struct world *w = arg;
	int64_t wait = s->got_ns - s->ask_ns;

	hist_add(&w->sums.wait_ns, (uint64_t)wait);
	w->sums.wait += (double)wait / 1e9;
	w->slowest = fmax(w->slowest, (double)wait / 1e9);
	if (++w->step % w->f->ranks == 0) {
		w->sums.slowest += w->slowest;
		w->slowest = 0;
	}
	/* what a rank does when a batch comes and when it has computed */
	use_processor(w, s->rank, w->f->take_s + w->f->end_s);
}

static void world_init(struct world *w, const struct fleet *f, uint64_t seed)
{
	*w = (struct world){.f = f, .m = fleet_model(f, seed)};
	store_model_init(&w->store, &w->m);
	w->bytes = xcalloc(w->store.hosts, sizeof(*w->bytes));
	w->cpu = xcalloc(w->store.hosts, sizeof(*w->cpu));
	w->reads = xcalloc(f->ranks, sizeof(*w->reads));
	hist_init(&w->sums.wait_ns);
	for (uint32_t i = 0; i < w->store.hosts; i++) {
		w->bytes[i] = (struct counter){.world = w, .timer = {.fn = counter_serve}};
		w->cpu[i] = w->bytes[i];
		w->bytes[i].timer.arg = &w->bytes[i];
		w->cpu[i].timer.arg = &w->cpu[i];
		store_bytes_init(&w->store, &w->bytes[i].server);
		w->cpu[i].server.each = 1;
		w->cpu[i].server.all = f->cpus > 0 ? f->cpus : INFINITY;
	}
}

static void world_release(struct world *w)
{
	for (uint32_t i = 0; i < w->store.hosts; i++) {
		moments_release(&w->bytes[i].server.heap);
		moments_release(&w->cpu[i].server.heap);
	}
	store_model_release(&w->store);
	free(w->bytes);
	free(w->cpu);
	free(w->reads);
	free(w->visit);
	free(w->spare);
}

int fleet_run_virtual(const struct fleet *f, const struct workload *workload, uint64_t seed,
		      struct fleet_result *out, struct err *e)
{
	struct workload own = *workload; /* nothing that it points to is changed */
	struct read_model reading = {.whole = true, .read = read_run};
	struct virtual_training t = {.workload = &own, .model = &reading};
	struct virtual_outcome got;
	struct dataset d = {0};
	struct world w;
	int rc;

	*out = (struct fleet_result){.known = false};
	if (f->ranks == 0 || f->steps == 0 || !(drawn_mean(&f->compute) > 0))
		return err_set(e, -EINVAL, "there are no ranks, no steps or no computation");
	virtual_steps(&own, f->ranks, f->steps);
	rc = dataset_init_typical(&d, &own, e);
	if (rc < 0)
		return rc;
	world_init(&w, f, seed);
	reading.arg = t.arg = &w;
	t.dataset = &d;
	t.ranks = f->ranks;
	t.epochs = f->epochs ? f->epochs : 1;
	t.steps = f->steps;
	t.compute_ns = compute_ns;
	t.step = step_over;
	t.barrier_ns = (int64_t)(f->step_s * 1e9);
	rc = virtual_training_run(&t, &got, e);
	if (rc == 0) {
		w.sums.wall = got.wall_s;
		w.sums.computed = got.compute_s;
		w.sums.au = got.au_dlio * t.epochs;
		w.sums.steps = (double)got.steps;
		fleet_fill(f, &w.sums, t.epochs, out);
	}
	world_release(&w);
	dataset_release(&d);
	return rc;
}
