/* A store of known speed: whatever lies below seems to be a storage system of the given bandwidth,
 * latency and concurrency. With a fast store below, every measure of a run can be predicted, and so
 * anyone can check that this program tells the truth. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "store/latency.h"
#include "store/store.h"
#include "store/throttle_wait.h"

struct throttle_config {
	double bandwidth, stream_bandwidth;
	struct time_dist latency, open_latency;
	int64_t concurrency;
	bool write;
	int64_t seed;
};

#define FIELD(name, type) OPT_FIELD(struct throttle_config, name, type)

static const struct opt throttle_options[] = {
	{.key = "bandwidth",
	 .type = OPT_F64,
	 .offset = FIELD(bandwidth, double),
	 .def = "0",
	 .max = 1e18,
	 .unit = "bytes/s",
	 .help = "The bandwidth of all requests together, shared equally by those in progress; 0 "
		 "sets no limit.",
	 .flags = OPT_STOKER},
	{.key = "stream_bandwidth",
	 .type = OPT_F64,
	 .offset = FIELD(stream_bandwidth, double),
	 .def = "0",
	 .max = 1e18,
	 .unit = "bytes/s",
	 .help = "The bandwidth of one request; 0 sets no limit.",
	 .flags = OPT_STOKER},
	{.key = "latency",
	 .type = OPT_TIME,
	 .offset = FIELD(latency, struct time_dist),
	 .unit = "s",
	 .help = "The time before the first byte of each request, a number or a distribution as "
		 "for train.computation_time.",
	 .flags = OPT_STOKER},
	{.key = "open_latency",
	 .type = OPT_TIME,
	 .offset = FIELD(open_latency, struct time_dist),
	 .unit = "s",
	 .help = "The time that each open and each stat of a path takes; these need no slot of "
		 "'concurrency'. A stat of an open file is free.",
	 .flags = OPT_STOKER},
	{.key = "concurrency",
	 .type = OPT_I64,
	 .offset = FIELD(concurrency, int64_t),
	 .def = "0",
	 .max = 1e9,
	 .unit = "requests",
	 .help = "How many requests are served at once, latency and transfer; the others wait, "
		 "first "
		 "come, first served; 0 sets no limit.",
	 .flags = OPT_STOKER},
	{.key = "write",
	 .type = OPT_BOOL,
	 .offset = FIELD(write, bool),
	 .def = "false",
	 .help = "Whether writes, and opens for writing, are slowed like reads. Off, a dataset is "
		 "generated at full speed and then read at the given one.",
	 .flags = OPT_STOKER},
	{.key = "seed",
	 .type = OPT_I64,
	 .offset = FIELD(seed, int64_t),
	 .def = "42",
	 .max = 9e18,
	 .help = "The seed of the latencies: the n-th request of a store waits the same time in "
		 "every run.",
	 .flags = OPT_STOKER},
};

struct throttle_store {
	struct store base;
	struct time_dist latency, open_latency;
	uint64_t data_key, open_key;
	_Atomic uint64_t data_requests, open_requests;
	bool write;
	bool data_limited;
	struct throttle_line line;
};

struct throttle_blob {
	struct blob base;
};

static struct throttle_store *of(struct store *s)
{
	return (struct throttle_store *)s;
}

static int throttle_create(struct store **out, const void *config, struct store *lower,
			   struct err *e)
{
	const struct throttle_config *c = config;
	struct throttle_store *t;
	int rc = latency_check(&c->latency, "storage.throttle.latency", e);

	(void)lower;
	if (rc == 0)
		rc = latency_check(&c->open_latency, "storage.throttle.open_latency", e);
	if (rc < 0)
		return rc;
	t = xcalloc(1, sizeof(*t));
	t->latency = c->latency;
	t->open_latency = c->open_latency;
	t->data_key = rng_key((uint64_t)c->seed, 0, 0);
	t->open_key = rng_key((uint64_t)c->seed, 1, 0);
	t->write = c->write;
	t->data_limited = c->bandwidth > 0 || c->stream_bandwidth > 0 || c->concurrency > 0 ||
			  c->latency.kind != TIME_NONE;
	throttle_line_init(&t->line, c->bandwidth, c->stream_bandwidth, (uint64_t)c->concurrency);
	*out = &t->base;
	return 0;
}

static void throttle_destroy(struct store *s)
{
	throttle_line_release(&of(s)->line);
	free(s);
}

static void request_arrives(struct throttle_store *t, struct throttle_waiter *w, size_t n)
{
	uint64_t number = atomic_fetch_add_explicit(&t->data_requests, 1, memory_order_relaxed);

	throttle_line_arrive(&t->line, w, latency_draw_ns(&t->latency, t->data_key, number), n);
}

/* The request is timed from its arrival, so what the store below takes is part of the emulated time
 * and only what exceeds it is added. */
static ssize_t throttle_pread(struct blob *b, void *p, size_t n, uint64_t offset, struct err *e)
{
	struct throttle_store *t = of(b->store);
	struct throttle_waiter w;
	ssize_t r;

	if (!t->data_limited)
		return store_pread(store_blob_below(b), p, n, offset, e);
	request_arrives(t, &w, n);
	r = store_pread(store_blob_below(b), p, n, offset, e);
	throttle_line_wait(&t->line, &w, r > 0 ? (uint64_t)r : 0);
	return r;
}

static ssize_t throttle_pwrite(struct blob *b, const void *p, size_t n, uint64_t offset,
			       struct err *e)
{
	struct throttle_store *t = of(b->store);
	struct throttle_waiter w;
	ssize_t r;

	if (!t->data_limited || !t->write)
		return store_pwrite(store_blob_below(b), p, n, offset, e);
	request_arrives(t, &w, n);
	r = store_pwrite(store_blob_below(b), p, n, offset, e);
	throttle_line_wait(&t->line, &w, r > 0 ? (uint64_t)r : 0);
	return r;
}

static ssize_t throttle_preadv(struct blob *b, const struct iovec *v, int count, uint64_t offset,
			       struct err *e)
{
	struct throttle_store *t = of(b->store);
	struct throttle_waiter w;
	ssize_t r;

	if (!t->data_limited)
		return io_preadv(NULL, IO_DATA, store_blob_below(b), v, count, offset, e);
	request_arrives(t, &w, io_pieces_bytes(v, count));
	r = io_preadv(NULL, IO_DATA, store_blob_below(b), v, count, offset, e);
	throttle_line_wait(&t->line, &w, r > 0 ? (uint64_t)r : 0);
	return r;
}

static ssize_t throttle_pwritev(struct blob *b, const struct iovec *v, int count, uint64_t offset,
				struct err *e)
{
	struct throttle_store *t = of(b->store);
	struct throttle_waiter w;
	ssize_t r;

	if (!t->data_limited || !t->write)
		return io_pwritev(NULL, store_blob_below(b), v, count, offset, e);
	request_arrives(t, &w, io_pieces_bytes(v, count));
	r = io_pwritev(NULL, store_blob_below(b), v, count, offset, e);
	throttle_line_wait(&t->line, &w, r > 0 ? (uint64_t)r : 0);
	return r;
}

static void open_wait(struct throttle_store *t, int64_t start_ns)
{
	uint64_t number = atomic_fetch_add_explicit(&t->open_requests, 1, memory_order_relaxed);

	throttle_precise();
	clock_sleep_until(start_ns + latency_draw_ns(&t->open_latency, t->open_key, number));
}

static int throttle_open(struct store *s, const char *path, unsigned how, struct blob *b,
			 struct err *e)
{
	struct throttle_store *t = of(s);
	int64_t start_ns;
	int rc;

	if (t->open_latency.kind == TIME_NONE || (how & STORE_WRITE && !t->write))
		return store_open(s->lower, path, how, store_blob_below(b), e);
	start_ns = clock_now_ns();
	rc = store_open(s->lower, path, how, store_blob_below(b), e);
	open_wait(t, start_ns);
	return rc;
}

static int throttle_stat(struct store *s, const char *path, struct store_stat *out, struct err *e)
{
	struct throttle_store *t = of(s);
	int64_t start_ns;
	int rc;

	if (t->open_latency.kind == TIME_NONE)
		return store_stat_path(s->lower, path, out, e);
	start_ns = clock_now_ns();
	rc = store_stat_path(s->lower, path, out, e);
	open_wait(t, start_ns);
	return rc;
}

const struct store_ops store_throttle = {
	.is.name = "throttle",
	.is.help =
		"makes the store below ('throttle+memory') behave as if it had a given bandwidth, "
		"latency and concurrency, so that a run's result can be predicted and checked",
	.is.flags = STORE_IS_SHIM,
	.is.options = throttle_options,
	.is.option_count = sizeof(throttle_options) / sizeof(throttle_options[0]),
	.is.config_bytes = sizeof(struct throttle_config),
	.blob_bytes = sizeof(struct throttle_blob),
	.create = throttle_create,
	.destroy = throttle_destroy,
	.open = throttle_open,
	.pread = throttle_pread,
	.pwrite = throttle_pwrite,
	.stat = throttle_stat,
	.preadv = throttle_preadv,
	.pwritev = throttle_pwritev,
};
