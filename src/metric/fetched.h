#pragma once
/* Whole shards that were downloaded into a cache on this host before their samples were read. */
#include <stdint.h>

struct fetched {
	uint64_t shards, requests, bytes; /* downloaded; reads of the remote dataset, and their
					   * bytes, also of downloads that failed */
	uint64_t removed, removed_bytes;  /* to make room, or because they were read */
	int64_t busy_ns;                  /* in downloads, of all threads */
	int64_t waited_ns;                /* samples waited for their shard, of all workers */
};

/* Adds what came since `before`, and makes it `now`. */
static inline void fetched_add_since(struct fetched *out, const struct fetched *now,
				     struct fetched *before)
{
	out->shards += now->shards - before->shards;
	out->requests += now->requests - before->requests;
	out->bytes += now->bytes - before->bytes;
	out->removed += now->removed - before->removed;
	out->removed_bytes += now->removed_bytes - before->removed_bytes;
	out->busy_ns += now->busy_ns - before->busy_ns;
	out->waited_ns += now->waited_ns - before->waited_ns;
	*before = *now;
}

static inline void fetched_merge(struct fetched *into, const struct fetched *from)
{
	struct fetched none = {0};

	fetched_add_since(into, from, &none);
}
