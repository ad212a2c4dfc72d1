#pragma once
/* What a study remembers beside its CSV: results/DESIGN.study.json, replaced atomically after each
 * run, and study_run.json in each finished run's folder. */
#include <jansson.h>

#include "study/study_plan.h"

#define STUDY_RUN_NAME "study_run.json"

/* How a run stands. */
enum run_state { RUN_PENDING, RUN_DONE, RUN_BAD };

struct run_status {
	enum run_state state;
	bool ran;       /* in this call */
	double seconds; /* wall time; 0 when it was found finished */
	char reason[ERR_TEXT_MAX];
};

/* Where the state file of a design lies. Heap string. */
char *state_path(const struct study_plan *p);
/* true when the last state saved has this row (by what it says, not where) as done: a row that is
 * pending now was then set back by hand. `saved` may be NULL. */
bool state_was_done(const struct study_plan *p, const json_t *saved, size_t row);
/* NULL when there is none or it cannot be read. */
json_t *state_load(const struct study_plan *p);
/* Why a run failed, as the last state saved has it; "" when it does not say. `saved` may be NULL.
 */
const char *state_reason(const struct study_plan *p, const json_t *saved, size_t experiment);
int state_save(const struct study_plan *p, const struct run_status *status, struct err *e);

/* The mark of a finished run, in its folder. */
int run_mark_write(const struct study_plan *p, const struct experiment *x, const char *folder,
		   char *const *argv, int64_t begin_wall_ns, double seconds, struct err *e);
/* The key in the mark of `folder`; 0 when there is no mark. */
uint64_t run_mark_key(const char *folder);
