#pragma once
/* What the numbers of a run are numbers of, by its verdicts: so that no headline is kinder than
 * they are. The words: docs/metrics.md, "What was measured". */
#include "judge/verdict.h"

/* From r->judged.verdict, made by the rows of `table`. */
void measured_find(const struct result *r, const struct verdict_ops *const *table,
		   struct measured *out);

/* Of a list of names in result.json ("takes", "taken"): enum taken. */
unsigned measured_taken(const json_t *list);
/* What was measured by a list of verdicts in result.json, as measured_find() judges it;
 * `has_files`: the base store keeps files. Its text is only the words that do not depend on more.
 */
void measured_recorded(const json_t *verdicts, bool trained, bool only_evaluated, bool has_files,
		       const struct verdict_ops *const *table, struct measured *out);
/* Whether a text says no less than `m` must: its opening, and a clause for each of `m->taken`. */
bool measured_says(const struct measured *m, bool trained, const char *text);
