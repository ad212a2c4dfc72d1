/* Downloads ahead of one worker: the laws of MosaicML Streaming and of LitData. */
#include "loader/fetch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "loader/shard_cache.h"

#define TICK_NS (7 * NS_PER_S / 1000) /* Streaming's constant TICK */
#define RETRIES 7                     /* its get_item */
#define LISTEN_NS (NS_PER_S / 10)     /* LitData's queues, and how often it looks for a file */
#define LISTEN_LONG_NS (5 * NS_PER_S)
#define FORCE_NS (30 * NS_PER_S)    /* FORCE_DOWNLOAD_TIME */
#define GIVE_UP_NS (120 * NS_PER_S) /* MAX_WAIT_TIME */

/* A place in the samples of the worker, in their order. */
struct place {
	uint64_t sample, file;
	bool begun;
};

struct fetch {
	const struct loader_config *config;
	struct shard_cache *cache;
	struct shard_copier copier;
	struct fetched *fetched;
	_Atomic uint32_t *worker_halt;
	uint32_t worker, workers;
	bool mds;
	uint64_t ahead; /* samples, or chunks */

	struct thread thread;
	_Atomic uint32_t halt; /* futex word */
	/* The epoch. */
	const struct order *order;
	uint64_t samples;          /* that the worker reads in it */
	_Atomic uint64_t prepared; /* MDS: samples that the thread is past */
	_Atomic uint64_t read;     /* samples that the worker is past: it has asked for the next */
	/* LitData */
	_Atomic uint32_t news;     /* futex word: one of these changed */
	_Atomic uint64_t consumed; /* chunks that the worker is past */
	_Atomic bool ended;        /* it has read all */
	_Atomic uint64_t forced;   /* chunk + 1 that it asks for; 0: none */
	/* the worker's: samples that it began to read */
	uint64_t begun;
	uint64_t file; /* it reads from; UINT64_MAX: none yet */
	uint64_t tries;
};

uint64_t fetch_bytes(const struct loader_config *c)
{
	return sizeof(struct fetch) + shard_copier_bytes(c->store) +
	       loader_stack_bytes(c->workload);
}

int fetch_create(struct fetch **out, const struct loader_config *c, uint32_t worker,
		 _Atomic uint32_t *halt, struct fetched *fetched, struct err *e)
{
	const struct workload *w = c->workload;
	struct fetch *f = try_calloc(1, sizeof(*f), "downloads of a worker", e);
	int rc;

	if (!f)
		return -ENOMEM;
	f->config = c;
	f->cache = c->cache;
	f->worker = worker;
	f->workers = w->reader.read_threads > 0 ? (uint32_t)w->reader.read_threads : 1;
	f->worker_halt = halt;
	f->fetched = fetched;
	f->mds = workload_loader(w)->deal == DEAL_MDS;
	f->ahead = !f->mds                     ? (uint64_t)w->reader.max_pre_download
		   : w->reader.predownload > 0 ? (uint64_t)w->reader.predownload
					       : 8 * c->batch_size;
	rc = shard_copier_init(&f->copier, c->cache, e);
	f->copier.halt = &f->halt;
	f->copier.stop = c->stop;
	f->copier.progress_ns = c->progress_ns;
	f->copier.fetched = fetched;
	if (rc < 0)
		fetch_destroy(f);
	else
		*out = f;
	return rc;
}

void fetch_destroy(struct fetch *f)
{
	if (!f)
		return;
	shard_copier_release(&f->copier);
	free(f);
}

/* ---- the order ---- */

/* The file of the worker's sample number k. */
static uint64_t file_of(const struct fetch *f, uint64_t k)
{
	uint64_t batch = f->config->batch_size;
	uint64_t at = (k / batch * f->workers + f->worker) * batch + k % batch;

	return order_at(f->order, f->config->rank, at) / f->config->dataset->samples_per_file;
}

/* The next chunk of the worker; false: there is none. */
static bool next_chunk(const struct fetch *f, struct place *p)
{
	for (; p->sample < f->samples; p->sample++) {
		uint64_t file = file_of(f, p->sample);

		if (p->begun && file == p->file)
			continue;
		p->begun = true;
		p->file = file;
		return true;
	}
	return false;
}

/* ---- the thread ---- */

static bool halted(const struct fetch *f)
{
	return atomic_load_explicit(&f->halt, memory_order_acquire) || stop_is_set(f->config->stop);
}

static void prepare_samples(struct fetch *f)
{
	for (uint64_t k = 0; k < f->samples && !halted(f);) {
		if (k > atomic_load_explicit(&f->read, memory_order_acquire) + f->ahead) {
			thread_wait(&f->halt, 0, TICK_NS);
			continue;
		}
		/* a failure is everybody's, who waits for a shard */
		if (shard_cache_prepare(&f->copier, file_of(f, k), NULL) < 0)
			break;
		k++;
		atomic_store_explicit(&f->prepared, k, memory_order_release);
	}
	atomic_store_explicit(&f->prepared, UINT64_MAX, memory_order_release);
}

/* Waits for so long, or until one of the worker's words says something. */
static void listen(struct fetch *f, int64_t ns, bool (*heard)(const struct fetch *f, uint64_t n),
		   uint64_t n)
{
	int64_t until = clock_now_ns() + ns, left = ns;

	while (left > 0 && !halted(f)) {
		uint32_t seen = atomic_load_explicit(&f->news, memory_order_acquire);

		if (heard(f, n))
			return;
		/* the stop flag is looked at now and then */
		thread_wait(&f->news, seen, left < NS_PER_S ? left : NS_PER_S);
		left = until - clock_now_ns();
	}
}

static bool is_forced(const struct fetch *f, uint64_t n)
{
	(void)n;
	return atomic_load_explicit(&f->forced, memory_order_acquire) != 0;
}

static bool has_ended(const struct fetch *f, uint64_t n)
{
	(void)n;
	return atomic_load_explicit(&f->ended, memory_order_acquire);
}

static bool has_consumed(const struct fetch *f, uint64_t n)
{
	return atomic_load_explicit(&f->consumed, memory_order_acquire) > n;
}

/* PrepareChunksThread's state. */
struct chunks_ahead {
	struct place down, gone; /* the next to download, to remove */
	uint64_t under_way;      /* downloaded and not yet read, as it counts */
	uint64_t taken, removed; /* chunks that it knows to be read; of these it has let go */
};

static bool can_delete(const struct fetch *f, const struct chunks_ahead *a)
{
	return shard_cache_passes_through(f->cache) ? a->under_way + 1 >= f->ahead
						    : shard_cache_is_full(f->cache);
}

/* _maybe_delete_chunks */
static void let_go(struct fetch *f, struct chunks_ahead *a)
{
	listen(f, a->under_way == f->ahead ? LISTEN_LONG_NS : LISTEN_NS, has_consumed, a->taken);
	if (!has_consumed(f, a->taken))
		return;
	a->taken++;
	while (a->removed < a->taken && can_delete(f, a)) {
		if (next_chunk(f, &a->gone))
			shard_cache_remove(&f->copier, a->gone.file, NULL);
		a->removed++;
	}
	a->under_way -= a->under_way > 0;
}

static int force(struct fetch *f, struct chunks_ahead *a)
{
	uint64_t file;
	int rc;

	listen(f, LISTEN_NS, is_forced, 0);
	file = atomic_exchange_explicit(&f->forced, 0, memory_order_acq_rel);
	if (file == 0 || shard_cache_state(f->cache, file - 1, NULL) != SHARD_REMOTE)
		return 0;
	rc = shard_cache_claim(&f->copier, file - 1, true, NULL);
	a->under_way++;
	return rc;
}

static void prepare_chunks(struct fetch *f)
{
	struct chunks_ahead a = {0};

	while (!halted(f)) {
		if (force(f, &a) < 0)
			return;
		if (a.under_way < f->ahead) {
			if (next_chunk(f, &a.down)) {
				if (shard_cache_claim(&f->copier, a.down.file, false, NULL) < 0)
					return;
				a.under_way++;
			} else {
				listen(f, LISTEN_NS, has_ended, 0);
				if (has_ended(f, 0)) {
					let_go(f, &a);
					return;
				}
			}
		}
		let_go(f, &a);
	}
}

static void fetch_main(void *arg)
{
	struct fetch *f = arg;

	store_serve_rank(f->config->rank);
	if (f->mds)
		prepare_samples(f);
	else
		prepare_chunks(f);
}

int fetch_begin(struct fetch *f, const struct order *order, uint64_t steps, struct err *e)
{
	uint64_t batches = steps > f->worker ? (steps - f->worker - 1) / f->workers + 1 : 0;
	char name[32];

	f->order = order;
	f->samples = batches * f->config->batch_size;
	f->file = UINT64_MAX;
	f->begun = 0;
	f->tries = 0;
	atomic_store_explicit(&f->halt, 0, memory_order_relaxed);
	atomic_store_explicit(&f->prepared, 0, memory_order_relaxed);
	atomic_store_explicit(&f->read, 0, memory_order_relaxed);
	atomic_store_explicit(&f->consumed, 0, memory_order_relaxed);
	atomic_store_explicit(&f->ended, false, memory_order_relaxed);
	atomic_store_explicit(&f->forced, 0, memory_order_relaxed);
	snprintf(name, sizeof(name), "d%u.%u", f->config->rank, f->worker);
	return thread_run(&f->thread, fetch_main, f, loader_stack_bytes(f->config->workload), name,
			  e);
}

void fetch_halt(struct fetch *f)
{
	if (!f)
		return;
	atomic_store_explicit(&f->halt, 1, memory_order_release);
	thread_wake(&f->halt, -1);
	atomic_fetch_add_explicit(&f->news, 1, memory_order_release);
	thread_wake(&f->news, -1);
}

/* For thread_join_grace: when it was first seen that the run stops. */
struct stopping {
	const struct stop_flag *stop;
	int64_t since_ns;
};

static int64_t stopped_ns(void *arg)
{
	struct stopping *s = arg;

	if (s->since_ns == 0 && stop_is_set(s->stop))
		s->since_ns = clock_now_ns();
	return s->since_ns;
}

bool fetch_end(struct fetch *f)
{
	const struct loader_config *c = f ? f->config : NULL;
	struct stopping s = {.stop = c ? c->stop : NULL};

	if (!f || !f->thread.running)
		return true;
	return thread_join_grace(&f->thread, stopped_ns, &s,
				 c->grace_ns > 0 ? c->grace_ns : 5 * NS_PER_S);
}

/* ---- the worker ---- */

static void tell(struct fetch *f)
{
	atomic_fetch_add_explicit(&f->news, 1, memory_order_release);
	thread_wake(&f->news, -1);
}

static bool worker_is_off(const struct fetch *f)
{
	return atomic_load_explicit(f->worker_halt, memory_order_acquire) ||
	       stop_is_set(f->config->stop);
}

/* Whoever halts the worker wakes it. */
static void worker_waits(const struct fetch *f, int64_t ns)
{
	thread_wait(f->worker_halt, 0, ns);
}

static int await_shard(struct fetch *f, uint64_t file, struct err *e)
{
	uint64_t at = atomic_load_explicit(&f->read, memory_order_relaxed);

	for (;;) {
		int state = shard_cache_state(f->cache, file, e);

		if (state < 0 || state == SHARD_LOCAL)
			return state < 0 ? state : 0;
		if (worker_is_off(f))
			return err_set(e, ERR_CANCELED, "a shard was not awaited");
		/* removed again before it was read, or the thread has ended */
		if (state == SHARD_REMOTE &&
		    atomic_load_explicit(&f->prepared, memory_order_acquire) > at) {
			int rc = shard_cache_prepare(&f->copier, file, e);

			if (rc < 0)
				return rc;
			continue;
		}
		worker_waits(f, TICK_NS);
	}
}

static int await_chunk(struct fetch *f, uint64_t file, struct err *e)
{
	int64_t since = clock_now_ns(), waited = 0;
	bool asked = false;

	for (;;) {
		int state = shard_cache_state(f->cache, file, e);

		if (state < 0 || state == SHARD_LOCAL)
			return state < 0 ? state : 0;
		if (worker_is_off(f))
			return err_set(e, ERR_CANCELED, "a chunk was not awaited");
		worker_waits(f, LISTEN_NS);
		waited = clock_now_ns() - since;
		if (!asked && waited > FORCE_NS) {
			asked = true;
			atomic_store_explicit(&f->forced, file + 1, memory_order_release);
			tell(f);
		}
		if (waited > GIVE_UP_NS)
			return err_set(e, -ETIMEDOUT,
				       "a chunk was not in the cache after %d s, when LitData "
				       "gives up (MAX_WAIT_TIME): the storage is too slow for "
				       "chunks of this size",
				       (int)(GIVE_UP_NS / NS_PER_S));
	}
}

int fetch_await(struct fetch *f, uint64_t file, struct err *e)
{
	int64_t begin = clock_now_ns();
	int rc = 0;

	atomic_store_explicit(&f->read, f->begun++, memory_order_release);
	f->tries = 0;
	if (f->mds)
		rc = await_shard(f, file, e);
	else if (file != f->file)
		rc = await_chunk(f, file, e);
	__atomic_fetch_add(&f->fetched->waited_ns, clock_now_ns() - begin, __ATOMIC_RELAXED);
	return rc;
}

int fetch_again(struct fetch *f, uint64_t file, int rc, struct err *e)
{
	if (rc != -ENOENT || !f->mds || ++f->tries > RETRIES)
		return rc;
	shard_cache_missed(f->cache, file);
	return await_shard(f, file, e);
}

void fetch_was_read(struct fetch *f, uint64_t file)
{
	bool new_chunk = file != f->file, last = f->begun == f->samples;

	if (f->mds) {
		shard_cache_touch(f->cache, file);
		return;
	}
	if (new_chunk && f->file != UINT64_MAX) {
		shard_cache_disclaim(f->cache, f->file);
		atomic_fetch_add_explicit(&f->consumed, 1, memory_order_release);
	}
	f->file = file;
	if (last) {
		shard_cache_disclaim(f->cache, file);
		atomic_fetch_add_explicit(&f->consumed, 1, memory_order_release);
		atomic_store_explicit(&f->ended, true, memory_order_release);
	}
	if (new_chunk || last)
		tell(f);
	if (last && !worker_is_off(f))
		thread_join_within(&f->thread, LISTEN_LONG_NS);
}
