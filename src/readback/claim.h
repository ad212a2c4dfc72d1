#pragma once
/* What a run says itself that its numbers are numbers of (`measured` of result.json). */
#include "readback/record.h"

/* "yes", "part", "no", "emulated" or "unknown" (docs/metrics.md, "What was measured"); NULL: the
 * result does not say. */
const char *claim_storage(const struct run_record *r);
/* The sentence; NULL. */
const char *claim_text(const struct run_record *r);
/* Whether a verdict took this kind away from the numbers: "content", "client", ... */
bool claim_taken(const struct run_record *r, const char *kind);
/* Memory or the page cache served its reads, all or some of them. */
bool claim_from_memory(const struct run_record *r);
/* Whether both say the same served their reads: of two runs from memory, the same memory. True
 * where one of them does not say. */
bool claim_same_source(const struct run_record *a, const struct run_record *b);
