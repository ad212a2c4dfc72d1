#pragma once
/* The limit that control groups set to reads of one of the devices below a folder: version 1
 * (blkio.throttle.read_bps_device, read_iops_device) and 2 (io.max). */
#include "metric/block_device.h"

struct io_limit {
	char device[64];                 /* "vda"; "" when there is no limit */
	double bytes_per_s, reads_per_s; /* 0: none */
};

/* The least of the groups of this process and those above them, on any device of the tree. `root`
 * stands before /proc and /sys. */
void io_limit_of(struct io_limit *out, const char *root, const struct block_tree *tree);
