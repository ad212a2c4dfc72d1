#pragma once
/* The requests of one thread to a store: requests, bytes and time per kind of operation. One
 * writer, no locks; merged after the phase. */
#include <stdint.h>

#include "base/hist.h"
#include "metric/read_log.h"

enum io_kind {
	IO_OPEN,  /* open and close */
	IO_META,  /* stat, headers, indexes, directories: bytes read that are not payload */
	IO_DATA,  /* payload reads */
	IO_WRITE, /* any write, allocate, rename */
	IO_SYNC,  /* fsync of files and folders */
	IO_KINDS
};

extern const char *const io_kind_names[IO_KINDS];

/* By the bytes a request asked for. */
enum io_class { IO_TO_4_KIB, IO_TO_64_KIB, IO_TO_1_MIB, IO_ABOVE_1_MIB, IO_CLASSES };
extern const char *const io_class_names[IO_CLASSES];

#define IO_SIZED_KINDS 3                    /* IO_META, IO_DATA, IO_WRITE */
#define IO_CLASS_BUCKETS (HIST_BUCKETS / 2) /* each is two of struct hist: within 1/16 */

/* Latencies of the requests of one kind and size: half as fine as struct hist, for its memory. */
struct io_latency {
	uint64_t total, max_ns;
	uint32_t count[IO_CLASS_BUCKETS]; /* saturate at 2^32-1 */
};

struct io_stat {
	struct {
		uint64_t requests;
		uint64_t asked_bytes;    /* as the calls asked */
		uint64_t returned_bytes; /* as they returned; io_stat_read_so_far */
		int64_t busy_ns;
		struct hist latency_ns;
	} kind[IO_KINDS];
	struct read_log reads; /* metadata and data that asked for bytes */
	struct read_log opens; /* and stats by name: of 1 byte each */
	struct io_latency sized[IO_SIZED_KINDS][IO_CLASSES]; /* requests that asked for bytes */
};

void io_stat_init(struct io_stat *s);
/* Counts one request that took `took_ns`; `returned` is negative when it failed. */
void io_stat_add(struct io_stat *s, enum io_kind kind, int64_t took_ns, uint64_t asked,
		 int64_t returned);
/* Bytes that requests for metadata and data returned so far. Any thread, while the writer goes on:
 * at most a moment old. */
uint64_t io_stat_read_so_far(const struct io_stat *s);
/* The latencies of a kind and size; NULL for a kind whose requests have none (open, sync). */
const struct io_latency *io_stat_sized(const struct io_stat *s, enum io_kind kind,
				       enum io_class size);
/* As hist_quantile. */
uint64_t io_latency_quantile(const struct io_latency *l, double fraction);
/* Lower bound of a bucket, inclusive. */
uint64_t io_latency_bucket_low(size_t bucket);
void io_stat_merge(struct io_stat *into, const struct io_stat *from);

/* Bytes of requests for metadata and data. */
static inline uint64_t io_stat_asked(const struct io_stat *s)
{
	return s->kind[IO_DATA].asked_bytes + s->kind[IO_META].asked_bytes;
}

static inline uint64_t io_stat_returned(const struct io_stat *s)
{
	return s->kind[IO_DATA].returned_bytes + s->kind[IO_META].returned_bytes;
}
