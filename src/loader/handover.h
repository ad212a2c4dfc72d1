#pragma once
/* What it costs to hand a batch from a PyTorch worker to the rank: a POSIX shared memory object per
 * batch, created, unlinked, sized, mapped and filled by the worker, and mapped and touched by the
 * receiver, as torch.multiprocessing does with the one tensor of a DLIO batch. The descriptor needs
 * no socket here, because workers are threads: PyTorch's connection per tensor is not emulated.
 *
 * Batches carry no bytes: what is copied is an area of the collated batch's size that all workers
 * of a loader share. */
#include <stdbool.h>
#include <stdint.h>

#include "loader/loader.h"

/* One batch on its way. All zeros: nothing is. */
struct parcel {
	bool packed;
	int fd; /* valid while packed and not mapped */
	void *map;
};

struct handover {
	uint64_t bytes;         /* of a collated batch */
	unsigned char *content; /* what is copied */
	uint32_t rank;
};

/* Bytes of a collated batch in memory: samples of reader.transformed_record_dims, else of
 * dataset.record_length_bytes_resize, else as they were read. 0 and `e` when beyond any machine. */
uint64_t handover_bytes(const struct loader_config *c, struct err *e);
/* Takes the area. Checks that `parcels` batches fit into the shared
 * memory file system (`shared`). Release in any case. */
int handover_init(struct handover *h, const struct loader_config *c, uint64_t parcels, bool shared,
		  struct err *e);
void handover_release(struct handover *h);
/* The worker's part. A full file system is an error and not a signal. */
int handover_pack(const struct handover *h, struct parcel *p, struct err *e);
/* The receiver's: maps, and touches every page. */
int handover_unpack(const struct handover *h, struct parcel *p, struct err *e);
/* Frees what there is of it. Any state. */
void handover_drop(const struct handover *h, struct parcel *p);
