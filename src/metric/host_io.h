#pragma once
/* Everything between this machine's processes and the storage below one folder that the kernel
 * counts, at one moment: block devices, network, clients of file systems. Whoever caused it. */
#include "metric/block_device.h"
#include "metric/fs_client.h"
#include "metric/io_limit.h"
#include "metric/net_io.h"

struct host_io_source {
	struct block_tree tree;
	struct fs_client client;
	/* Of a file system with a local server: all disks of this machine. */
	struct block_list disks;
	char file_system[64];  /* "ext4", "overlay over ext4"; "" when it is not known */
	bool memory;           /* the file system keeps its files in memory */
	char interfaces[256];  /* as net_io_sample */
	struct io_limit limit; /* of this process's control groups */
};

struct host_io {
	struct block_counters whole, part, lower;
	struct net_io net;
	struct fs_client_io client;
	struct block_counters disks; /* not known but with a local server */
};

/* What lies below `folder` (or its nearest parent that exists). `root` stands before /proc, /sys
 * and /dev. */
void host_io_source_init(struct host_io_source *s, const char *root, const char *folder);
/* Some tens of small files are read; nothing is kept open. */
void host_io_sample(const struct host_io_source *s, const char *root, struct host_io *out);
/* a - b, of an earlier moment; requests under way stay a's. */
void host_io_sub(struct host_io *a, const struct host_io *b);
/* Adds what another host counted. */
void host_io_add(struct host_io *to, const struct host_io *from);
