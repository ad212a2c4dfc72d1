#pragma once
/* The least level of a verdict that the figures of a result.json allow: what its row judged is
 * recorded beside it, as far as a result holds it. For who reads a result back and doubts it. Each
 * is the column `at_least` of one row: raises the level of `v`, which has passed and says nothing,
 * and says by which figures. Lenient where figures leave a choice, so that results of other
 * versions pass. `result` is the root of result.json, which may hold anything; `w` its workload as
 * read back, or NULL. */
#include <jansson.h>

#include "judge/verdict.h"

void recorded_complete(const json_t *result, const struct workload *w, struct verdict *v);
void recorded_checkpoint(const json_t *result, const struct workload *w, struct verdict *v);
void recorded_steady(const json_t *result, const struct workload *w, struct verdict *v);
void recorded_window(const json_t *result, const struct workload *w, struct verdict *v);
void recorded_whole_run(const json_t *result, const struct workload *w, struct verdict *v);
void recorded_bytes(const json_t *result, const struct workload *w, struct verdict *v);
void recorded_ledger(const json_t *result, const struct workload *w, struct verdict *v);
void recorded_cache(const json_t *result, const struct workload *w, struct verdict *v);
void recorded_order(const json_t *result, const struct workload *w, struct verdict *v);
void recorded_config(const json_t *result, const struct workload *w, struct verdict *v);
void recorded_dataset(const json_t *result, const struct workload *w, struct verdict *v);
void recorded_client(const json_t *result, const struct workload *w, struct verdict *v);
void recorded_evaluation(const json_t *result, const struct workload *w, struct verdict *v);
/* Of `bytes`, by what the device delivered. */
void recorded_device(const json_t *result, const struct workload *w, struct verdict *v);

/* Whether the figures leave the verdict unknown: the column `may_be_unknown` of its row. */
bool recorded_unknown_bytes(const json_t *result, const struct workload *w);
bool recorded_unknown_cache(const json_t *result, const struct workload *w);
bool recorded_unknown_dataset(const json_t *result, const struct workload *w);
bool recorded_unknown_order(const json_t *result, const struct workload *w);
bool recorded_unknown_rates(const json_t *result, const struct workload *w);
bool recorded_unknown_client(const json_t *result, const struct workload *w);
bool recorded_unknown_checkpoint(const json_t *result, const struct workload *w);
/* More than a result records. */
bool recorded_unknown_always(const json_t *result, const struct workload *w);
