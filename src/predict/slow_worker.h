#pragma once
/* One worker that is slower than the others of its rank, whoever its files are. */
#include "result/result.h"

struct slow_worker {
	uint32_t rank, worker;
	double each_s, others_s; /* a batch of it; of the others */
	double batches;          /* of it */
};

/* Of one rank, over the first `epochs` epochs. False: there is none, or it cannot be told, as where
 * batches are not taken in order. */
bool slow_worker_of(const struct result *r, uint32_t epochs, uint32_t rank,
		    struct slow_worker *out);
