#pragma once
/* Values that are in DLIO's files and in its log. Private to this folder. */
#include "result/metrics.h"
#include "result/result.h"

/* Training data of the first host, by its ranks. */
double dlio_data_gib(const struct result *r);
/* Whether that fits into the memory of a host: DLIO's potential_caching. */
bool dlio_fits_memory(const struct result *r, const struct host_facts *h);
/* Size of a checkpoint of all ranks, GiB: what is written, or DLIO's number with compat.dlio. */
double dlio_checkpoint_gib(const struct result *r);
/* "success" or "fail". */
const char *dlio_expectation(const struct result *r, const struct series_stat *au);
