#pragma once
/* The lines of DLIO's log, as the wrappers that watch it expect them. Rank 0 alone calls these,
 * outside the timed steps. Each stands at level OUTPUT with its local time unless said otherwise.
 */
#include <stdint.h>

#include "base/buf.h"
#include "result/metrics.h"
#include "result/result.h"

/* Whose log it is, in a line of the same form that DLIO does not have. */
void dlio_log_mark(void);
/* "Running DLIO [Training & Evaluation] with 2 process(es)" */
void dlio_log_running(const struct workload *w, uint32_t ranks);
void dlio_log_generation_start(const struct dataset *d);
void dlio_log_generation_end(void);
/* The step formulas; before them, at level WARNING, that the data fits into memory when it does. */
void dlio_log_plan(const struct result *r);

void dlio_log_epoch_start(uint32_t epoch, uint64_t steps);
void dlio_log_epoch_end(uint32_t epoch, uint64_t steps, int64_t end_wall_ns, int64_t took_ns);
void dlio_log_block_start(uint32_t block);
void dlio_log_block_end(uint32_t block, const struct phase *p);
/* AU, throughput of all ranks, and the emulated time per step beside the configured one. */
void dlio_log_block_metrics(uint32_t epoch, const struct phase *p, double au, double throughput,
			    const struct time_dist *computation_time);
void dlio_log_eval_start(uint64_t steps);
void dlio_log_eval_end(const struct phase *p);
void dlio_log_eval_metrics(uint32_t epoch, double au, double throughput);

/* Parameters of the model, if it has layers, and the sizes. */
void dlio_log_checkpoint_size(const struct result *r);
/* "Checkpointing write started" */
void dlio_log_checkpoint_phase(const char *what);
void dlio_log_checkpoint_start(const struct checkpoint_times *t, bool load, uint32_t epoch);
/* With rank 0's own time, which is all that is known then; in the background it has only begun. */
void dlio_log_checkpoint_end(const struct result *r, const struct checkpoint_times *t, bool load,
			     uint32_t epoch, bool background);

/* Where the outputs are, and the closing [METRIC] block as one record. A measure that does not
 * exist is said so in a warning. */
void dlio_log_saved(const struct result *r, const struct run_metrics *m);

/* ---- values that are in DLIO's files and in its log ---- */

/* Training data of the first host, by its ranks. */
double dlio_data_gib(const struct result *r);
/* Whether that fits into the memory of a host: DLIO's potential_caching. */
bool dlio_fits_memory(const struct result *r, const struct host_facts *h);
/* Size of a checkpoint of all ranks, GiB: what is written, or DLIO's number with compat.dlio. */
double dlio_checkpoint_gib(const struct result *r);
/* "success" or "fail". */
const char *dlio_expectation(const struct result *r, const struct series_stat *au);
