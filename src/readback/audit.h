#pragma once
/* Is a result valid? Checks over result folders that are read back, ours or DLIO's: each finding
 * has its evidence in figures and says what to do. What each check judges by: docs/metrics.md. */
#include "readback/finding.h"
#include "result/basis.h"

/* Reads the results in `path` (readback/record.h) and runs every check, one result at a time, and
 * then those that compare results. `visit` (NULL: none) also sees each: while its own checks are
 * over and it is still whole. `predict`: limit and predictions are made again, too, of
 * AUDIT_PREDICTED_MOST results at most. Release `a` and `out` in any case, with audit_release and
 * records_release. */
int audit_read(struct audit *a, struct records *out, const char *const *path, size_t n,
	       bool predict, const struct record_visit *visit, struct err *e);
/* The checks of one whole record alone: r->failed_checks. */
void audit_alone(struct run_record *r);
/* What the run tells of larger ones, by its measures and today's rules; of results before there
 * were measures, what they say. */
void audit_basis(struct run_record *r, struct basis *out);
/* Whether a check of the record's own failed, and none but those of its length. */
bool audit_failed_by_length(const struct run_record *r);
/* All checks of records that are whole. */
void audit_run(struct audit *a, const struct run_record *record, size_t n);
