/* Values that are in DLIO's files and in its log. */
#include "result/dlio_values.h"

static const double GIB = 1073741824.0;

double dlio_data_gib(const struct result *r)
{
	double share = 1;

	/* of the first host, by its ranks */
	for (uint32_t p = 0; p < r->processes; p++)
		share -= r->process[p].node != 0 ? (double)r->process[p].ranks / r->ranks : 0;
	return share * metrics_data_bytes(r) / GIB;
}

double dlio_checkpoint_gib(const struct result *r)
{
	return checkpoint_size_bytes(r) / GIB;
}

bool dlio_fits_memory(const struct result *r, const struct host_facts *h)
{
	return dlio_data_gib(r) <= h->memory_gib;
}

const char *dlio_expectation(const struct result *r, const struct series_stat *au)
{
	return au->count && au->mean >= r->workload->metric.au * 100 ? "success" : "fail";
}
