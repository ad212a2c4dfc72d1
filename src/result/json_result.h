#pragma once
/* The parts of result.json. Private to this folder. */
#include <jansson.h>

#include "result/metrics.h"
#include "result/result.h"

/* Requests, bytes and time of one kind of operation each, with the latencies as a histogram. */
json_t *json_io(const struct io_stat *io);
/* Everything measured while training, and while evaluating (NULL without evaluation). */
json_t *json_training(const struct result *r, const struct run_metrics *m);
json_t *json_evaluation(const struct result *r, const struct run_metrics *m);
/* What one accelerator needs, and what the run gave (result/supply.h). */
json_t *json_need(const struct result *r, const struct run_metrics *m);
/* Of what judging yields: each verdict, what they leave of the numbers, what held the run back,
 * what would change it. */
json_t *json_verdicts(const struct judgement *j);
json_t *json_measured(const struct measured *m);
json_t *json_limit(const struct limit *l);
json_t *json_probe(const struct probe *p);
json_t *json_what_if(const struct outlook *w);
/* Whether training went on as it began. */
json_t *json_steadiness(const struct steadiness *c);
/* Where the time of training went. */
json_t *json_decomposition(const struct decomposition *d);
/* "slowest_rank" and "slowest_host" when one is, and "slowest_samples". */
json_t *json_stragglers(const struct result *r);
/* Sizes, and each checkpoint written and read back over all ranks. */
json_t *json_checkpoint(const struct result *r);
/* Curves over time of the machine; only with r->series. */
json_t *json_series(const struct result *r);
/* One object a rank. */
json_t *json_ranks(const struct result *r, const struct run_metrics *m);
/* One object a host, with the processes and ranks it had; of a run of several processes. */
json_t *json_hosts(const struct result *r);
/* The lines of the ledger of bytes, in their order. */
json_t *json_ledger(const struct result *r);
/* What the host's counters moved by in a phase; null where nobody looked. */
json_t *json_host_io(const struct result *r, const struct host_io *h);
/* Puts "processors", of the process that waited longest for one; nothing when it was not measured.
 */
void json_put_processors(json_t *o, const struct result *r, const struct processors *p,
			 uint32_t process);
/* What lies below the dataset's folder; only with r->host_source. */
json_t *json_storage_path(const struct result *r);
