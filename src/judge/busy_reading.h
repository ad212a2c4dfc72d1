#pragma once
/* The rate at which batches were read while the readers were busy: what a store gives them, also
 * where batches are read ahead faster than they are used, and the readers then pause. */
#include "result/result.h"

uint64_t busy_reading_bytes(void);
/* Over the finished epochs. An epoch is cut into equal parts; in each, readers and batches are
 * counted by the share of a batch's time, from begun to done, that lies in it. What counts are the
 * parts with at least half as many readers as the part with most. -ENOMEM. */
int busy_reading_find(const struct result *r, uint32_t epochs, struct busy_reading *out,
		      struct err *e);
