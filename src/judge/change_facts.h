#pragma once
/* What changed during training, or evaluations, as facts of a verdict. */
#include "judge/verdict.h"

/* Whether stalls of training, or of evaluations, are worth a warning. */
bool stalls_matter(const struct result *r, bool eval);

/* Adds what r->judged.steady (of evaluations: eval_steady) says, in place of the facts of a verdict
 * that has passed, and worsens its level. `au`: by which a target is met; NULL where none counts.
 */
void judge_change(struct verdict *v, const struct result *r, bool eval,
		  const struct series_stat *au);
