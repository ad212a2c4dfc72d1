/* A store of known speed: whatever lies below seems to be a storage system of the given limits.
 * With a fast store below, every measure of a run can be predicted, and so
 * anyone can check that this program tells the truth. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "store/store.h"
#include "store/throttle_share.h"

struct throttle_config {
	double bandwidth, stream_bandwidth;
	struct time_dist latency, open_latency;
	int64_t concurrency, open_concurrency;
	double iops, iops_slice;
	double burst_bytes, burst_bandwidth, burst_refill;
	double half_life, floor;
	double stall, stall_at, stall_every;
	bool write;
	int64_t seed;
};

/* A number from 0, which is no limit, up to `most`. */
#define LIMIT(t, ctype, k, field, most, u, text)                                                   \
	STORE_OPTION(k, struct throttle_config, field, t, ctype, "0", text, .max = most, .unit = u)

static const struct opt throttle_options[] = {
	LIMIT(OPT_F64, double, "bandwidth", bandwidth, 1e18, "bytes/s",
	      "The bandwidth of all requests together, shared equally by those in progress; 0 "
	      "sets no limit."),
	LIMIT(OPT_F64, double, "stream_bandwidth", stream_bandwidth, 1e18, "bytes/s",
	      "The bandwidth of one request; 0 sets no limit."),
	STORE_OPTION("latency", struct throttle_config, latency, OPT_TIME, struct time_dist, NULL,
		     "The time before the first byte of each request, a number or a distribution "
		     "as for train.computation_time.",
		     .max = 1e6, .unit = "s"),
	STORE_OPTION("open_latency", struct throttle_config, open_latency, OPT_TIME,
		     struct time_dist, NULL,
		     "The time that each open and each stat of a path takes; these need no slot of "
		     "'concurrency'. A stat of an open file is free.",
		     .max = 1e6, .unit = "s"),
	LIMIT(OPT_I64, int64_t, "concurrency", concurrency, 1e9, "requests",
	      "How many requests are served at once, latency and transfer; the others wait, "
	      "first "
	      "come, first served; 0 sets no limit."),
	LIMIT(OPT_I64, int64_t, "open_concurrency", open_concurrency, 1e9, "opens",
	      "How many opens and stats are served at once, each for "
	      "open_latency; the others wait, first come, first served; 0 "
	      "sets no limit."),
	LIMIT(OPT_F64, double, "iops", iops, 1e9, "requests/s",
	      "How many requests are begun per second, over all readers, "
	      "evenly spaced and in order of arrival, before any wait for a "
	      "slot of 'concurrency'; 0 sets no limit."),
	LIMIT(OPT_F64, double, "iops_slice", iops_slice, 3600, "s",
	      "The period in which the requests of 'iops' are released "
	      "together, as the block layer does for a control group (0.1); "
	      "0 spaces them evenly."),
	LIMIT(OPT_F64, double, "burst_bytes", burst_bytes, 1e18, "bytes",
	      "The credit: so many bytes move at burst_bandwidth before "
	      "'bandwidth' is all that is left; 0 is no credit."),
	LIMIT(OPT_F64, double, "burst_bandwidth", burst_bandwidth, 1e18, "bytes/s",
	      "The bandwidth while credit of burst_bytes is left, above "
	      "'bandwidth'."),
	LIMIT(OPT_F64, double, "burst_refill", burst_refill, 1e18, "bytes/s",
	      "The credit that comes back while nothing is transferred, up "
	      "to burst_bytes."),
	LIMIT(OPT_F64, double, "bandwidth_half_life", half_life, 1e6, "s",
	      "The time, from the first request, after which 'bandwidth' is "
	      "half of what it was, and half of that again; 0 keeps it."),
	LIMIT(OPT_F64, double, "bandwidth_floor", floor, 1e18, "bytes/s",
	      "The bandwidth below which bandwidth_half_life does not take "
	      "it; 0 is a hundredth of 'bandwidth'."),
	LIMIT(OPT_F64, double, "stall", stall, 3600, "s",
	      "For how long everything stops: requests, opens and their "
	      "waiting; 0 is never."),
	LIMIT(OPT_F64, double, "stall_at", stall_at, 1e6, "s",
	      "When everything stops for the first time, from the first "
	      "request; 0 is after stall_every."),
	LIMIT(OPT_F64, double, "stall_every", stall_every, 1e6, "s",
	      "The time from the beginning of one stall to that of the "
	      "next; 0 is a single stall."),
	STORE_OPTION("write", struct throttle_config, write, OPT_BOOL, bool, "false",
		     "Whether writes, and opens for writing, are slowed like reads. Off, a dataset "
		     "is generated at full speed and then read at the given one."),
	STORE_OPTION("seed", struct throttle_config, seed, OPT_I64, int64_t, "42",
		     "The seed of the latencies: the n-th request of a store waits the same time "
		     "in every run.",
		     .max = 9e18),
};

struct throttle_store {
	struct store base;
	struct time_dist latency, open_latency;
	uint64_t data_key, open_key;
	_Atomic uint64_t data_requests, open_requests;
	bool write;
	bool data_limited, opens_limited;
	struct throttle_stall stall;
	struct throttle_line line;
	struct throttle_line opens;
};

struct throttle_blob {
	struct blob base;
};

static struct throttle_store *of(struct store *s)
{
	return (struct throttle_store *)s;
}

static int64_t ns_of(double s)
{
	return (int64_t)(s * (double)NS_PER_S);
}

/* Limits that need another one. */
static int check_limits(const struct throttle_config *c, struct err *e)
{
	if (c->open_concurrency > 0 && c->open_latency.kind == TIME_NONE)
		return err_set(e, ERR_USAGE,
			       "storage.throttle.open_concurrency needs the time of an open: set "
			       "storage.throttle.open_latency");
	if (c->iops_slice > 0 && c->iops == 0)
		return err_set(e, ERR_USAGE,
			       "storage.throttle.iops_slice needs a limit: set "
			       "storage.throttle.iops");
	if (c->burst_bytes > 0 && (c->bandwidth == 0 || c->burst_bandwidth <= c->bandwidth))
		return err_set(e, ERR_USAGE,
			       "storage.throttle.burst_bytes needs storage.throttle.bandwidth, the "
			       "rate that lasts, and storage.throttle.burst_bandwidth above it");
	if (c->burst_bytes == 0 && (c->burst_bandwidth > 0 || c->burst_refill > 0))
		return err_set(e, ERR_USAGE,
			       "storage.throttle.%s needs credit: set storage.throttle.burst_bytes",
			       c->burst_bandwidth > 0 ? "burst_bandwidth" : "burst_refill");
	if (c->half_life > 0 && c->bandwidth == 0)
		return err_set(e, ERR_USAGE,
			       "storage.throttle.bandwidth_half_life needs a limit: set "
			       "storage.throttle.bandwidth");
	if (c->stall > 0 && c->stall_at == 0 && c->stall_every == 0)
		return err_set(e, ERR_USAGE,
			       "storage.throttle.stall needs a time: set "
			       "storage.throttle.stall_at, storage.throttle.stall_every or both");
	if (c->stall_every > 0 && ns_of(c->stall) >= ns_of(c->stall_every))
		return err_set(e, ERR_USAGE,
			       "storage.throttle.stall (%g s) must be shorter than "
			       "storage.throttle.stall_every (%g s)",
			       c->stall, c->stall_every);
	return 0;
}

static void make_lines(struct throttle_store *t, const struct throttle_config *c)
{
	const struct share_limits data = {
		.bandwidth = c->bandwidth,
		.stream_bandwidth = c->stream_bandwidth,
		.slots = (uint64_t)c->concurrency,
		.rate = c->iops,
		.slice_ns = ns_of(c->iops_slice),
		.burst_bytes = c->burst_bytes,
		.burst_bandwidth = c->burst_bandwidth,
		.burst_refill = c->burst_refill,
		.half_life_ns = ns_of(c->half_life),
		.floor = c->floor > 0 ? c->floor : c->bandwidth / 100,
	};
	const struct share_limits opens = {.slots = (uint64_t)c->open_concurrency};
	struct throttle_stall *stall = c->stall > 0 ? &t->stall : NULL;

	t->stall.at_ns = ns_of(c->stall_at > 0 ? c->stall_at : c->stall_every);
	t->stall.every_ns = ns_of(c->stall_every);
	t->stall.length_ns = ns_of(c->stall);
	throttle_line_init(&t->line, &data, stall);
	throttle_line_init(&t->opens, &opens, stall);
	t->data_limited = c->bandwidth > 0 || c->stream_bandwidth > 0 || c->concurrency > 0 ||
			  c->iops > 0 || stall || c->latency.kind != TIME_NONE;
	t->opens_limited = c->open_latency.kind != TIME_NONE || stall;
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
	if (rc == 0)
		rc = check_limits(c, e);
	if (rc < 0)
		return rc;
	t = xcalloc(1, sizeof(*t));
	t->latency = c->latency;
	t->open_latency = c->open_latency;
	t->data_key = rng_key((uint64_t)c->seed, 0, 0);
	t->open_key = rng_key((uint64_t)c->seed, 1, 0);
	t->write = c->write;
	make_lines(t, c);
	*out = &t->base;
	return 0;
}

static void throttle_destroy(struct store *s)
{
	throttle_line_release(&of(s)->line);
	throttle_line_release(&of(s)->opens);
	free(s);
}

static void request_arrives(struct throttle_store *t, struct throttle_waiter *w, size_t n)
{
	uint64_t number = atomic_fetch_add_explicit(&t->data_requests, 1, memory_order_relaxed);

	throttle_stall_start(&t->stall, clock_now_ns());
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

static void open_arrives(struct throttle_store *t, struct throttle_waiter *w)
{
	uint64_t number = atomic_fetch_add_explicit(&t->open_requests, 1, memory_order_relaxed);

	throttle_line_arrive(&t->opens, w, latency_draw_ns(&t->open_latency, t->open_key, number),
			     0);
}

static int throttle_open(struct store *s, const char *path, unsigned how, struct blob *b,
			 struct err *e)
{
	struct throttle_store *t = of(s);
	struct throttle_waiter w;
	int rc;

	if (!t->opens_limited || (how & STORE_WRITE && !t->write))
		return store_open(s->lower, path, how, store_blob_below(b), e);
	throttle_stall_start(&t->stall, clock_now_ns());
	open_arrives(t, &w);
	rc = store_open(s->lower, path, how, store_blob_below(b), e);
	throttle_line_wait(&t->opens, &w, 0);
	return rc;
}

/* Stats also come before a run, so they do not begin the time of the stalls. */
static int throttle_stat(struct store *s, const char *path, struct store_stat *out, struct err *e)
{
	struct throttle_store *t = of(s);
	struct throttle_waiter w;
	int rc;

	if (!t->opens_limited)
		return store_stat_path(s->lower, path, out, e);
	open_arrives(t, &w);
	rc = store_stat_path(s->lower, path, out, e);
	throttle_line_wait(&t->opens, &w, 0);
	return rc;
}

const struct store_ops store_throttle = {
	.is.name = "throttle",
	.is.help =
		"makes the store below ('throttle+memory') behave as if it had the given limits of "
		"bandwidth, latency, requests and opens, burst credit and stalls, so that a run's "
		"result can be predicted and checked",
	.is.flags = STORE_IS_SHIM | STORE_LIMITS,
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
