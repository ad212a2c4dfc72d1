#pragma once
/* Block devices below a file system, and their counters (Documentation/block/stat.rst of the Linux
 * kernel). */
#include <stdbool.h>
#include <stdint.h>

#define BLOCK_DEVICES_MAX 32

struct block_device {
	char name[64];  /* "nvme0n1" */
	char path[400]; /* its folder in /sys/devices */
};

struct block_list {
	uint32_t n;
	struct block_device device[BLOCK_DEVICES_MAX];
};

/* What a file system lies on. Whole disks: of a partition the disk it belongs to, so that a disk
 * and its partitions, or two partitions of one disk, are counted once. Lists have no device twice.
 */
struct block_tree {
	/* The whole devices it was made on: a disk, or what the device mapper, md or loop offer as
	 * one. None for file systems that lie on no block device of this machine (tmpfs, NFS), or
	 * do not say on which (ZFS, FUSE). Of an overlay those of the layer with the files. */
	struct block_list whole;
	/* Of those the partitions it has; none where it has a whole device. */
	struct block_list part;
	/* The disks at the end of the way down, through members of the device mapper and md and the
	 * backing files of loop devices; none where these are `whole` themselves. */
	struct block_list lower;
	bool loop; /* a loop device is on the way */
	/* What on the way is no storage, each as far as it fits; "" for nothing. In memory: "loop0
	 * is a file in memory (/dev/shm/x.img on tmpfs)". A file that is read through this
	 * machine's page cache: "loop0 is the file /srv/x.img". What cannot be seen through: "nbd0
	 * is a network block device". */
	char memory[200], cached[200], unseen[200];
};

struct block_counters {
	bool known; /* every device of the list has counters; a list without devices is not known */
	uint64_t reads, read_bytes, writes, written_bytes;
	uint64_t busy_ms;   /* with at least one request under way; of several devices the mean */
	uint64_t queued_ms; /* requests times time; of a difference the low 32 bits */
	uint64_t under_way; /* requests now */
};

/* The devices below the file system of `path` (or of its nearest parent that exists). `root` stands
 * before /sys, /proc, /dev and backing files ("" for the machine's own; a folder in tests). Devices
 * beyond BLOCK_DEVICES_MAX leave the list empty, which is then not known. */
void block_tree_of(struct block_tree *t, const char *root, const char *path);
/* The disks of this machine with hardware, or a hypervisor, behind them. Empty when there are none,
 * or more than BLOCK_DEVICES_MAX. */
void block_disks_of(struct block_list *l, const char *root);
/* What the file system's own bytes are counted at: its partitions, or the whole devices. */
const struct block_list *block_tree_own(const struct block_tree *t);
/* Sums over the list. */
void block_list_sample(const struct block_list *l, struct block_counters *out);
/* a - b, of an earlier moment; levels (under_way) stay a's. Not known when one went back. */
void block_counters_sub(struct block_counters *a, const struct block_counters *b);
/* Adds what another host's devices counted; busy_ms stays. */
void block_counters_add(struct block_counters *to, const struct block_counters *from);
/* "sda, sdb" into `out`; "" for none. Returns `out`. */
char *block_list_names(const struct block_list *l, char *out, unsigned long out_size);
