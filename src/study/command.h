#pragma once
/* The commands of a study's children. */
#include "study/experiment.h"

/* Commands as NULL-terminated vectors; free with study_argv_free. `folder`: where results go. */
char **study_generate_argv(const struct study_plan *p, const struct study_dataset *d);
char **study_run_argv(const struct study_plan *p, const struct experiment *x, const char *folder);
/* What shows whether the launcher and the modules work at all: the version of the program, printed
 * by as many processes as the run has. NULL without launcher and modules. */
char **study_trial_argv(const struct study_plan *p, const struct experiment *x);
void study_argv_free(char **argv);
/* The vector as a shell would need it typed, for people. */
void study_argv_text(char *const *argv, struct buf *out);

/* Every dataset and command of what is pending, and the least time of all. */
void study_plan_text(const struct study_plan *p, struct buf *out);
