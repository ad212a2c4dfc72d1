#pragma once
/* What DLIO's two files for each rank and its summary have in common. Private to this folder. */
#include <jansson.h>

#include "result/metrics.h"
#include "result/result.h"

/* Whether the training data of a host fits into its memory: DLIO's potential_caching. */
bool dlio_fits_memory(const struct result *r, const struct host_facts *h);
/* Training data of one host, by its ranks. */
double dlio_data_gib(const struct result *r);
/* Size of a checkpoint of all ranks, GiB: what is written, or DLIO's number with compat.dlio. */
double dlio_checkpoint_gib(const struct result *r);
/* N_output.json and N_per_epoch_stats.json of one rank. */
json_t *dlio_rank_output(const struct result *r, uint32_t rank);
json_t *dlio_rank_epochs(const struct result *r, uint32_t rank);
/* summary.json. */
json_t *dlio_summary(const struct result *r, const struct run_metrics *m);
/* "success" or "fail". */
const char *dlio_expectation(const struct result *r, const struct series_stat *au);
