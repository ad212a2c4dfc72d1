#pragma once
/* Counters of a whole disk (Documentation/block/stat.rst of the Linux kernel). */
#include <stdbool.h>
#include <stdint.h>

struct block_device {
	char name[64]; /* "nvme0n1"; "" when there is none */
	char stat[512];
};

struct block_counters {
	bool known;
	uint64_t reads, read_bytes, writes, written_bytes;
	uint64_t busy_ms;   /* with at least one request under way */
	uint64_t queued_ms; /* requests times time */
};

/* The whole disk below the file system of `path` (or of its nearest parent that exists): of a
 * partition the disk it belongs to, so that nothing is counted twice. name "" for file systems that
 * lie on no block device of this machine (tmpfs, NFS) or on several. */
void block_device_of(struct block_device *d, const char *path);
void block_device_sample(const struct block_device *d, struct block_counters *out);
