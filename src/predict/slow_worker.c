#include "predict/slow_worker.h"

#include <math.h>

#include "workload/workload.h"

#define WORKERS_MOST 256
static const double SLOW_TIMES = 2;     /* times any other worker: it alone is slow */
static const double BATCHES_LEAST = 12; /* of each worker, to tell that */

/* In order, batch i of an epoch is worker (i modulo their number)'s. */
bool slow_worker_of(const struct result *r, uint32_t epochs, uint32_t rank, struct slow_worker *out)
{
	uint32_t workers = r->rank[rank].workers, slowest = 0;
	double sum[WORKERS_MOST] = {0}, log_sum[WORKERS_MOST] = {0}, n[WORKERS_MOST] = {0};
	double others = 0, most = 0, others_n = 0;

	if (workload_loader(r->workload)->rule != RULE_PYTORCH || !r->workload->reader.in_order ||
	    workers < 2 || workers > WORKERS_MOST || r->rank[rank].lost)
		return false;
	for (uint32_t e = 0; e < epochs; e++)
		for (uint32_t b = 0; b < r->rank[rank].epoch[e].blocks; b++) {
			const struct phase *p = &r->rank[rank].epoch[e].block[b];

			for (uint64_t i = 0; i < p->steps; i++) {
				uint64_t at = p->first_step + i;

				/* the first batch of each begins it, too */
				if (at < workers)
					continue;
				sum[at % workers] += p->step[i].service_us * 1e-6;
				log_sum[at % workers] += log(fmax(1, p->step[i].service_us));
				n[at % workers]++;
			}
		}
	for (uint32_t k = 0; k < workers; k++) {
		if (n[k] < BATCHES_LEAST)
			return false;
		slowest = log_sum[k] / n[k] > log_sum[slowest] / n[slowest] ? k : slowest;
	}
	for (uint32_t k = 0; k < workers; k++)
		if (k != slowest) {
			others += sum[k];
			others_n += n[k];
			most = fmax(most, log_sum[k] / n[k]);
		}
	*out = (struct slow_worker){.rank = rank,
				    .worker = slowest,
				    .each_s = sum[slowest] / n[slowest],
				    .others_s = others / others_n,
				    .batches = n[slowest]};
	/* by the logarithms: one batch that took very long makes no worker slow */
	return log_sum[slowest] / n[slowest] >= log(SLOW_TIMES) + most &&
	       out->each_s >= SLOW_TIMES * out->others_s;
}
