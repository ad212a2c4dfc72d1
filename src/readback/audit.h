#pragma once
/* Is a result valid? Checks over result folders that are read back, ours or DLIO's: each finding
 * has its evidence in figures and says what to do. What each check judges by: docs/metrics.md. */
#include "readback/finding.h"

/* Runs every check on every record, and on those that belong together. Release with audit_release.
 */
void audit_run(struct audit *a, const struct run_record *record, size_t n);
