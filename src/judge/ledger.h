#pragma once
/* The ledger of bytes: each place between the samples and the storage where bytes of training were
 * counted, and why two of the counts differ. What the lines mean and when a difference counts as
 * explained: docs/metrics.md. */
#include "result/result.h"

/* Of training, over all epochs that were begun. Pure. */
void ledger_of(const struct result *r, struct ledger *out);
/* Whether the file system below the dataset leaves reads out of the process's count of bytes
 * fetched, of which it has `charged`. */
bool ledger_uncounted(const struct result *r, double charged);
/* The part of one epoch (from 0) in each line: of its training, or of its evaluation. NAN where it
 * is not known, or there was none; known lines of training sum up to those of ledger_of. */
void ledger_of_epoch(const struct result *r, uint32_t epoch, bool eval, double bytes[LEDGER_LINES]);
