#pragma once
/* What a study remembers beside its CSV: results/DESIGN.study.json, replaced atomically after each
 * run, and study_run.json in each finished run's folder. */
#include <jansson.h>

#include "study/experiment.h"

#define STUDY_RUN_NAME "study_run.json"

/* How a run stands. */
enum run_state { RUN_PENDING, RUN_DONE, RUN_BAD };

struct run_status {
	enum run_state state;
	bool ran;       /* in this call */
	double seconds; /* wall time; 0 when it was already complete */
	char reason[ERR_TEXT_MAX];
};

/* The path of a design's state file. Heap string. */
char *state_path(const struct study_plan *p);
/* Why a run failed, as the last saved state has it; "" when that says nothing of it. `saved` may be
 * NULL. */
const char *state_reason(const struct study_plan *p, const json_t *saved, size_t experiment);
int state_save(const struct study_plan *p, const struct run_status *status, struct err *e);

/* The mark of a finished run, in its folder. */
int run_mark_write(const struct study_plan *p, const struct experiment *x, const char *folder,
		   char *const *argv, int64_t begin_wall_ns, double seconds, struct err *e);
/* To be called once the design has the row's state: writes into the mark that the run was noted.
 * Fine when there is no such mark. */
int run_mark_note(const struct study_plan *p, const struct experiment *x, struct err *e);
/* Whether `folder` holds this run, finished, whole and not noted yet. */
bool run_is_ready(const struct study_plan *p, const struct experiment *x, const char *folder);
/* The key in the mark of `folder`; 0 when there is no mark. */
int run_mark_key(const char *folder, uint64_t *key, struct err *e);

/* How each run stands, and why it failed, by the design, the folders and the saved state. status:
 * of `experiments`. A run is done, whatever the design says, if its folder holds it, finished, and
 * the design has not noted it yet: the study was killed between the two. What was noted before is
 * an old result: its row is pending because somebody set it back. So is one whose result is not
 * whole, with the reason. */
int study_status(const struct study_plan *p, struct run_status *status, struct err *e);
/* ERR_DATA, with the first of them, when results of finished runs are damaged or incomplete. */
int study_check_done(const struct study_plan *p, const struct run_status *status, struct err *e);
