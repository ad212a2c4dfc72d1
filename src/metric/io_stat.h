#pragma once
/* What one thread asked of a store: requests, bytes and time per kind of operation. One writer, no
 * locks; merged after the phase. */
#include <stdint.h>

#include "base/hist.h"
#include "metric/read_fit.h"

enum io_kind {
	IO_OPEN,  /* open and close */
	IO_META,  /* stat, headers, indexes, directories: bytes read that are not payload */
	IO_DATA,  /* payload reads */
	IO_WRITE, /* any write, allocate, rename */
	IO_SYNC,  /* fsync of files and folders */
	IO_KINDS
};

extern const char *const io_kind_names[IO_KINDS];

struct io_stat {
	struct {
		uint64_t requests;
		uint64_t asked_bytes;    /* as the calls asked */
		uint64_t returned_bytes; /* as they returned */
		int64_t busy_ns;
		struct hist latency_ns;
	} kind[IO_KINDS];
	struct read_fit reads; /* metadata and data that returned bytes */
};

void io_stat_init(struct io_stat *s);
/* Counts one request that took `took_ns`; `returned` is negative when it failed. */
void io_stat_add(struct io_stat *s, enum io_kind kind, int64_t took_ns, uint64_t asked,
		 int64_t returned);
void io_stat_merge(struct io_stat *into, const struct io_stat *from);
