#pragma once
/* By what a run is known again, whatever its number and dates: the order in which the times of its
 * steps are. Chance decides it anew in every run, also over a store that answers always alike, and
 * adding to all times or scaling them leaves it as it is. */
#include "readback/record.h"

#define STEP_MARKS_KEPT 96

/* Of steps at equal distances, over all ranks and epochs. NULL: too few to tell one run from
 * another. Heap (free). */
struct step_marks *step_marks_find(const struct run_record *r);
/* Whether the two are of one run. Three times are compared: waits, computation, and the rest of a
 * step. Of each, steps that are an eighth of all apart in the one order have the same order in the
 * other, in 9 of 10 pairs; of independent runs it is half of them. Waits alone never decide: what
 * is read, and computation that is drawn, may be the same in each repetition. */
bool step_marks_same(const struct step_marks *a, const struct step_marks *b);
