#pragma once
/* DLIO's log lines, with its words, so that whoever reads its log can read ours. Called by rank 0 only,
 * outside every timed phase. */
#include <stdbool.h>
#include <stdint.h>

#include "conf/opt.h"
#include "metric/step.h"
#include "report/result.h"

/* "Running DLIO [Generating data & Training] with N process(es)". */
void dlio_log_running(const struct workload *w, uint32_t ranks);
void dlio_log_generation_start(const struct dataset *d);
void dlio_log_generation_end(void);
/* Steps per epoch and per evaluation. */
void dlio_log_plan(const struct result *r);
void dlio_log_epoch_start(uint32_t epoch, uint64_t steps);
void dlio_log_epoch_end(uint32_t epoch, const struct phase *p);
void dlio_log_block_start(uint32_t block);
void dlio_log_block_end(uint32_t block, const struct phase *p);
/* AU in percent, samples/s of all ranks, and the emulated compute times. */
void dlio_log_block_metrics(uint32_t epoch, const struct phase *p, double au, double throughput,
			    const struct time_dist *set);
void dlio_log_eval_start(uint64_t steps);
void dlio_log_eval_end(const struct phase *p);
void dlio_log_eval_metrics(uint32_t epoch, double au, double throughput);
/* The closing lines with the block of metrics. */
void dlio_log_saved(const struct result *r, const struct run_metrics *m);
