/* A thread that keeps whole objects of one worker under way. */
#include "loader/ahead.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/saturate.h"
#include "format/format.h"
#include "loader/crew.h"
#include "store/async.h"

/* Files of others have heads that differ a little from ours. */
#define SIZE_SLACK 4096u

/* The samples of a worker's batches, one after another. */
struct source {
	uint64_t batch, in_batch;
};

enum unit_state { UNIT_FREE, UNIT_FLYING, UNIT_READY };

/* An object. */
struct unit {
	enum unit_state state;
	struct blob *blob;
	struct store_request request;
	struct source from;
	uint64_t samples, file, chunk;
	int64_t begun_ns;
};

struct ahead {
	const struct loader_config *config;
	struct io io;
	struct store_objects client;
	struct store_queue *queue;
	struct unit *unit, **ready; /* ready: a ring in order of delivery */
	struct store_request **reaped;
	unsigned units;
	unsigned char *blobs;
	struct thread thread;
	char path[DATASET_PATH_MAX];

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t work, came;
	bool quit, off, busy; /* busy: the thread is at this epoch's objects */
	const struct order *order;
	uint64_t every, end;
	int64_t not_before_ns;
	struct source next;
	uint64_t asked; /* objects asked for in this epoch */
	unsigned flying, ready_first, readies;
	/* chunks: those that have come altogether, what is to come of the one that is asked for,
	 * and the one that the worker takes from */
	uint64_t chunks_come, chunk_left, taking;
	struct unit *taken; /* the worker's, and how many of its samples it had */
	uint64_t had;
	int failed;
	struct err err;
};

bool ahead_wanted(const struct loader_config *c)
{
	return c->workload->reader.access == ACCESS_OBJECT &&
	       !(c->dataset->format->is.flags & FORMAT_NO_IO);
}

static bool client_of(const struct loader_config *c, struct store_objects *out, struct err *e)
{
	if (c->store->ops->objects) {
		c->store->ops->objects(c->store, out);
		if (c->one_request)
			out->in_flight = 1, out->chunk = 0;
		return true;
	}
	err_set(e, ERR_USAGE,
		"reader.access object: the store '%s' has no client of objects; use the store s3, "
		"without another one before it, or another reader.access",
		c->store->ops->is.name);
	return false;
}

/* Objects on their way or waiting, at most, and the one that the worker takes samples of. */
static unsigned units_of(const struct store_objects *client)
{
	return 2 * (client->chunk ? client->chunk : client->in_flight) + 1;
}

uint64_t ahead_client_bytes(const struct loader_config *c, const struct store_objects *client)
{
	uint64_t per = c->dataset->samples_per_file, batch = c->batch_size / (per ? per : 1);

	return u64_product(u64_sum(units_of(client) - 1, batch ? batch : 1),
			   c->dataset->max_file_bytes != UINT64_MAX
				   ? c->dataset->max_file_bytes
				   : u64_product(c->dataset->max_sample_bytes, per));
}

static size_t blob_bytes(const struct store *s)
{
	return (store_blob_bytes(s) + 63) & ~(size_t)63;
}

uint64_t ahead_bytes(const struct loader_config *c, struct err *e)
{
	struct store_objects client;
	uint64_t units;

	if (!client_of(c, &client, e))
		return 0;
	units = units_of(&client);
	return sizeof(struct ahead) +
	       units * (sizeof(struct unit) + 2 * sizeof(void *) + blob_bytes(c->store)) +
	       loader_stack_bytes(c->workload) +
	       store_queue_bytes(c->store, client.in_flight, true);
}

int ahead_create(struct ahead **out, const struct loader_config *c, const struct io *io,
		 struct err *e)
{
	struct store_queue_config config = {.objects = true};
	struct store_objects client;
	pthread_condattr_t attr;
	struct ahead *a;
	int rc;

	if (!client_of(c, &client, e))
		return ERR_USAGE;
	a = try_calloc(1, sizeof(*a), "objects that are read ahead", e);
	if (!a)
		return -ENOMEM;
	a->config = c;
	a->io = *io;
	a->io.trace = NULL; /* the worker's */
	a->io.before = NULL;
	a->io.waits = NULL;
	a->client = client;
	a->units = units_of(&client);
	a->off = true;
	pthread_mutex_init(&a->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&a->work, &attr);
	pthread_cond_init(&a->came, &attr);
	pthread_condattr_destroy(&attr);
	a->unit = try_calloc(a->units, sizeof(*a->unit), "objects that are read ahead", e);
	a->ready = try_calloc(a->units, sizeof(*a->ready), "objects that are read ahead", e);
	a->reaped = try_calloc(a->units, sizeof(*a->reaped), "objects that are read ahead", e);
	a->blobs = try_calloc(a->units, blob_bytes(c->store), "objects that are read ahead", e);
	rc = a->unit && a->ready && a->reaped && a->blobs ? 0 : -ENOMEM;
	for (unsigned i = 0; rc == 0 && i < a->units; i++)
		a->unit[i].blob = (struct blob *)(a->blobs + i * blob_bytes(c->store));
	config.depth = client.in_flight;
	if (rc == 0)
		rc = store_queue_create(&a->queue, &a->io, &config, e);
	if (rc < 0)
		ahead_destroy(a);
	else
		*out = a;
	return rc;
}

void ahead_destroy(struct ahead *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->quit = a->off = true;
	pthread_cond_broadcast(&a->work);
	pthread_mutex_unlock(&a->lock);
	if (a->thread.running)
		thread_join_within(&a->thread, -1);
	store_queue_destroy(a->queue);
	pthread_cond_destroy(&a->work);
	pthread_cond_destroy(&a->came);
	pthread_mutex_destroy(&a->lock);
	free(a->blobs);
	free(a->reaped);
	free(a->ready);
	free(a->unit);
	free(a);
}

/* ---- which objects ---- */

static uint64_t sample_at(const struct ahead *a, const struct source *s)
{
	return order_at(a->order, a->config->rank, s->batch * a->config->batch_size + s->in_batch);
}

static void source_step(const struct ahead *a, struct source *s)
{
	if (++s->in_batch == a->config->batch_size) {
		s->in_batch = 0;
		s->batch += a->every;
	}
}

/* The next object and its samples. There is one. */
static void take_next(struct ahead *a, struct unit *u)
{
	uint64_t per = a->config->dataset->samples_per_file;

	u->from = a->next;
	u->samples = 0;
	u->file = sample_at(a, &a->next) / per;
	do {
		u->samples++;
		source_step(a, &a->next);
	} while (per > 1 && a->next.batch < a->end && sample_at(a, &a->next) / per == u->file);
	u->chunk = a->client.chunk ? a->asked / a->client.chunk : 0;
	a->asked++;
}

/* Whether the client would ask for a further object now. */
static bool may_ask(const struct ahead *a)
{
	uint64_t chunk;

	if (a->off || a->failed || a->next.batch >= a->end || a->flying >= a->client.in_flight)
		return false;
	if (!a->client.chunk)
		return a->flying + a->readies < 2 * a->client.in_flight;
	chunk = a->asked / a->client.chunk;
	/* once the one before has come, and the worker takes from it */
	return chunk <= a->chunks_come && (chunk == 0 || chunk <= a->taking + 1);
}

static struct unit *free_unit(struct ahead *a)
{
	for (unsigned i = 0; i < a->units; i++)
		if (a->unit[i].state == UNIT_FREE)
			return &a->unit[i];
	return NULL;
}

/* ---- asking ---- */

/* What the object should have; UINT64_MAX: not known. */
static uint64_t bytes_of(const struct ahead *a, uint64_t file)
{
	return dataset_file_bytes(a->config->dataset, a->config->kind, file);
}

static int ask(struct ahead *a, struct unit *u, struct err *e)
{
	uint64_t bytes = bytes_of(a, u->file);
	int rc = dataset_path(a->config->dataset, a->config->kind, u->file, a->path,
			      sizeof(a->path), e);

	if (rc == 0)
		rc = io_open(&a->io, a->path, STORE_READ | STORE_WHOLE, u->blob, e);
	if (rc < 0)
		return rc;
	u->request = (struct store_request){.blob = u->blob,
					    .n = bytes < INT64_MAX ? (size_t)bytes : 0,
					    .tag = (uint64_t)(u - a->unit)};
	rc = store_queue_submit(a->queue, &u->request, e);
	if (rc < 0)
		io_close(&a->io, u->blob, NULL);
	return rc;
}

/* What came of it. */
static int end_request(struct ahead *a, struct unit *u, struct err *e)
{
	uint64_t expected = bytes_of(a, u->file);
	int rc = 0, closed;

	if (u->request.result < 0) {
		rc = (int)u->request.result;
		*e = u->request.err;
	} else if (expected < INT64_MAX && (uint64_t)u->request.result + SIZE_SLACK < expected) {
		dataset_path(a->config->dataset, a->config->kind, u->file, a->path, sizeof(a->path),
			     NULL);
		rc = io_report_short(u->blob, a->path, (size_t)u->request.result, (size_t)expected,
				     0, e);
	}
	closed = io_close(&a->io, u->blob, rc == 0 ? e : NULL);
	return rc < 0 ? rc : closed;
}

static void fail(struct ahead *a, struct unit *u, int rc, const struct err *why)
{
	if (a->failed)
		return;
	a->failed = rc;
	a->err = *why;
	if (dataset_path(a->config->dataset, a->config->kind, u->file, a->path, sizeof(a->path),
			 NULL) == 0)
		err_wrap(&a->err, "reading '%s'", a->path);
}

static void give_back(struct ahead *a, struct unit *u)
{
	u->state = UNIT_FREE;
	pthread_cond_signal(&a->work);
}

/* In order of arrival, or, in chunks, of asking. */
static void put_ready(struct ahead *a, struct unit *u)
{
	u->state = UNIT_READY;
	if (!a->client.chunk) {
		a->ready[(a->ready_first + a->readies++) % a->units] = u;
		return;
	}
	if (--a->chunk_left == 0)
		a->chunks_come++;
}

/* Its objects lie in the ring in the order in which they were asked for. */
static void put_asked(struct ahead *a, struct unit *u)
{
	if (!a->client.chunk)
		return;
	a->ready[(a->ready_first + a->readies++) % a->units] = u;
	if ((a->asked - 1) % a->client.chunk == 0)
		a->chunk_left = a->client.chunk;
}

/* ---- the thread ---- */

static void ask_for_more(struct ahead *a)
{
	while (may_ask(a)) {
		struct unit *u = free_unit(a);
		struct err why = {0};
		int rc;

		if (!u)
			return;
		take_next(a, u);
		u->state = UNIT_FLYING;
		u->begun_ns = clock_now_ns();
		a->flying++;
		put_asked(a, u);
		pthread_mutex_unlock(&a->lock);
		rc = ask(a, u, &why);
		pthread_mutex_lock(&a->lock);
		if (rc < 0) {
			a->flying--;
			fail(a, u, rc, &why);
			put_ready(a, u);
			pthread_cond_signal(&a->came);
		}
	}
}

/* Waits for objects that come, at most a tenth of a second. */
static void take_results(struct ahead *a)
{
	struct err why = {0};
	int n;

	pthread_mutex_unlock(&a->lock);
	n = store_queue_reap(a->queue, a->reaped, a->units, &why);
	pthread_mutex_lock(&a->lock);
	if (n < 0) {
		a->failed = a->failed ? a->failed : n;
		a->err = why;
		a->off = true;
		a->flying = 0;
	}
	for (int i = 0; i < n; i++) {
		struct unit *u = &a->unit[a->reaped[i]->tag];
		int rc;

		pthread_mutex_unlock(&a->lock);
		rc = end_request(a, u, &why);
		pthread_mutex_lock(&a->lock);
		a->flying--;
		if (rc < 0)
			fail(a, u, rc, &why);
		put_ready(a, u);
	}
	if (n != 0)
		pthread_cond_signal(&a->came);
}

static void wait_until(struct ahead *a, pthread_cond_t *what, int64_t ns)
{
	struct timespec until = {ns / NS_PER_S, ns % NS_PER_S};

	pthread_cond_timedwait(what, &a->lock, &until);
}

/* What is in flight when an epoch is called off comes back, unless the run ends or has
 * failed: the slowest object may take long. */
static bool leaves(const struct ahead *a)
{
	return a->off && (a->flying == 0 || a->failed || a->quit || stop_is_set(a->config->stop));
}

static void ahead_main(void *arg)
{
	struct ahead *a = arg;

	store_serve_rank(a->config->rank);
	pthread_mutex_lock(&a->lock);
	while (!a->quit) {
		if (stop_is_set(a->config->stop))
			a->off = true;
		if (leaves(a)) {
			a->busy = false;
			pthread_cond_broadcast(&a->came);
			pthread_cond_wait(&a->work, &a->lock);
			continue;
		}
		if (!a->off && clock_now_ns() < a->not_before_ns) {
			int64_t next = clock_now_ns() + NS_PER_S / 10;

			wait_until(a, &a->work, next < a->not_before_ns ? next : a->not_before_ns);
			continue;
		}
		ask_for_more(a);
		if (a->flying)
			take_results(a);
		else if (!may_ask(a) && !a->off && !a->quit)
			pthread_cond_wait(&a->work, &a->lock);
	}
	a->busy = false;
	pthread_cond_broadcast(&a->came);
	pthread_mutex_unlock(&a->lock);
}

/* ---- the worker's side ---- */

void ahead_end(struct ahead *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->off = true;
	pthread_cond_signal(&a->work);
	while (a->busy)
		wait_until(a, &a->came, clock_now_ns() + NS_PER_S / 10);
	pthread_mutex_unlock(&a->lock);
}

int ahead_begin(struct ahead *a, const struct order *order, uint64_t first, uint64_t every,
		uint64_t end, const char *name, struct err *e)
{
	double compute = time_dist_mean(&a->config->workload->train.computation_time);
	int rc = 0;

	ahead_end(a);
	pthread_mutex_lock(&a->lock);
	if (a->flying > 0) {
		rc = a->failed ? err_set(e, a->err.code, "%s", a->err.text)
			       : err_set(e, -EINTR, "what was read ahead was called off");
		pthread_mutex_unlock(&a->lock);
		return rc;
	}
	for (unsigned i = 0; i < a->units; i++)
		if (a->unit[i].state != UNIT_FLYING)
			a->unit[i].state = UNIT_FREE;
	a->order = order;
	a->every = every ? every : 1;
	a->end = end;
	a->next = (struct source){.batch = first};
	a->asked = a->chunks_come = a->chunk_left = a->taking = 0;
	a->ready_first = a->readies = 0;
	a->taken = NULL;
	a->failed = 0;
	a->not_before_ns = 0;
	if (a->client.staggers && compute > 0)
		a->not_before_ns = clock_now_ns() + (int64_t)(compute * 1e9 * (double)first);
	a->off = false;
	a->busy = true;
	pthread_cond_signal(&a->work);
	pthread_mutex_unlock(&a->lock);
	if (!a->thread.running)
		rc = thread_run(&a->thread, ahead_main, a, loader_stack_bytes(a->config->workload),
				name, e);
	if (rc < 0)
		a->busy = false;
	return rc;
}

/* The object whose samples come next is there. */
static bool can_take(struct ahead *a)
{
	if (a->taken && a->had < a->taken->samples)
		return true;
	if (a->taken) {
		give_back(a, a->taken);
		a->taken = NULL;
	}
	if (a->readies == 0)
		return false;
	if (a->client.chunk) {
		uint64_t chunk = a->ready[a->ready_first]->chunk;

		if (chunk > a->taking) {
			a->taking = chunk;
			pthread_cond_signal(&a->work);
		}
		/* the last one may be short */
		if (chunk >= a->chunks_come && (a->flying || a->next.batch < a->end))
			return false;
	}
	a->taken = a->ready[a->ready_first];
	a->ready_first = (a->ready_first + 1) % a->units;
	a->readies--;
	a->had = 0;
	pthread_cond_signal(&a->work);
	return true;
}

static void tell_sample(struct ahead *a, struct ahead_sample *out)
{
	const struct unit *u = a->taken;
	struct source at = u->from;

	for (uint64_t i = 0; i < a->had; i++)
		source_step(a, &at);
	out->sample = sample_at(a, &at);
	out->first = a->had == 0;
	out->begun_ns = u->begun_ns;
	out->done_ns = u->request.done_ns;
	out->object_bytes = out->first ? (uint64_t)u->request.result : 0;
	a->had++;
}

int ahead_take(struct ahead *a, struct ahead_sample *out, int64_t timeout_ns, struct err *e)
{
	int64_t until = clock_now_ns() + timeout_ns;
	int rc = 0;

	pthread_mutex_lock(&a->lock);
	while (rc == 0) {
		if (a->failed) {
			rc = a->failed;
			*e = a->err;
		} else if (can_take(a)) {
			tell_sample(a, out);
			rc = 1;
		} else if (clock_now_ns() >= until) {
			break;
		} else {
			wait_until(a, &a->came, until);
		}
	}
	pthread_mutex_unlock(&a->lock);
	return rc;
}

bool ahead_oldest(struct ahead *a, uint64_t *sample, int64_t *since_ns)
{
	const struct unit *oldest = NULL;

	pthread_mutex_lock(&a->lock);
	for (unsigned i = 0; i < a->units; i++)
		if (a->unit[i].state == UNIT_FLYING &&
		    (!oldest || a->unit[i].begun_ns < oldest->begun_ns))
			oldest = &a->unit[i];
	if (oldest) {
		*sample = oldest->file * a->config->dataset->samples_per_file;
		*since_ns = oldest->begun_ns;
	}
	pthread_mutex_unlock(&a->lock);
	return oldest != NULL;
}

int ahead_read(struct ahead *a, uint64_t file, int64_t *begun_ns, struct err *e)
{
	struct unit *u = &a->unit[0];
	int n = 0, rc;

	assert(!a->busy);
	u->file = file;
	*begun_ns = clock_now_ns();
	rc = ask(a, u, e);
	if (rc < 0)
		return rc;
	while (n == 0 && !stop_is_set(a->config->stop))
		n = store_queue_reap(a->queue, a->reaped, 1, e);
	if (n <= 0)
		return n < 0 ? n : err_set(e, ERR_CANCELED, "an object was not read to its end");
	return end_request(a, u, e);
}
