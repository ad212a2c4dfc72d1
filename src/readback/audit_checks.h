#pragma once
/* The checks of an audit, by subject. Each looks at record `i` of the audit and adds its findings;
 * what each judges by: docs/metrics.md. */
#include "readback/audit.h"

/* audit_times.c */
void audit_steady(struct audit *a, size_t i);
void audit_window(struct audit *a, size_t i);
void audit_rank_spread(struct audit *a, size_t i);
void audit_possible(struct audit *a, size_t i);
void audit_rate_formula(struct audit *a, size_t i);
void audit_compute_time(struct audit *a, size_t i);
void audit_few_epochs(struct audit *a, size_t i);
void audit_evaluation(struct audit *a, size_t i);

/* audit_bytes.c */
void audit_page_cache(struct audit *a, size_t i);
void audit_memory(struct audit *a, size_t i);
void audit_nominal_bytes(struct audit *a, size_t i);
void audit_checkpoints(struct audit *a, size_t i);
void audit_complete(struct audit *a, size_t i);

/* audit_keys.c */
void audit_keys(struct audit *a, size_t i);
void audit_profiler(struct audit *a, size_t i);
void audit_shuffle(struct audit *a, size_t i);

/* audit_mlperf.c: rules of MLPerf Storage that one result shows. */
void audit_mlperf(struct audit *a, size_t i);

/* audit_dataset.c: every record that is whole, compared with the others of the audit. */
void audit_datasets(struct audit *a);
/* The same: results that are copies of others, in whole or in part. */
void audit_copies(struct audit *a);
