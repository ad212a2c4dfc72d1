#pragma once
/* What order.h's functions do for the tensorflow loader's own orders. */
#include "dataset/order.h"

/* ORDER_TF_RECORDS: the rest of order_init, once sizes are set. */
void order_tf_init(struct order *o, const struct workload *w, uint64_t seed, uint64_t epoch);
/* Makes an ORDER_DLIO of the tensorflow loader ORDER_TF_LISTS; `files` are those that are left.
 * Does nothing to those of other loaders. */
void order_tf_lists(struct order *o, const struct workload *w, uint64_t files, uint64_t seed,
		    uint64_t epoch);
/* order_at and order_proof_undelivered of ORDER_TF_LISTS. Each rank accounts for the end of its own
 * list, rank 0 for the files that were cut. */
uint64_t order_tf_list_at(const struct order *o, uint32_t rank, uint64_t k);
void order_tf_lists_undelivered(struct order_proof *p, const struct order *o, uint32_t rank,
				uint64_t steps_done);
