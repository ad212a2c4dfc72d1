#pragma once
/* Where bytes came from that the kernel does not follow to a device: a file system served by a
 * program of this machine (FUSE), a loop device over one of its files. */
#include "judge/verdict.h"

/* Of `returned` bytes of the file system, of which the kernel charged `charged` to a device, while
 * all disks and the network of this machine delivered `delivered` (NAN: not known). Says nothing of
 * a file system without a local server, nor where something else served all. */
void origin_judge_server(struct verdict *v, const struct result *r, double returned, double charged,
			 double delivered);
/* Bytes that reading from all disks and the network delivered, of `eval` or training, all epochs;
 * NAN when a counter is not known. */
double origin_delivered(const struct result *r, bool eval);
/* What is known of a device below the file system whose own source is not. False, and nothing
 * found, when there is none. */
bool origin_judge_device(struct verdict *v, const struct result *r);
/* Whether the page cache of this machine stood in for a file below the device: of the `device`
 * bytes that it delivered, the disks below it read only `disks` (NAN: not known). *share: their
 * part of them. */
bool origin_is_cached_below(const struct block_tree *t, double device, double disks, double *share);
/* Whether a program of this machine served `returned` bytes that hardly any disk or network
 * delivered (NAN: not known), nor a device was charged with. */
bool origin_is_from_server(const struct fs_client *c, double returned, double charged,
			   double delivered);
/* The same of the folder of checkpoints. */
void origin_judge_checkpoints(struct verdict *v, const struct result *r);
/* A program of this machine serves the dataset. */
bool origin_is_served(const struct result *r);
