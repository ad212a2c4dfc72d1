#pragma once
/* What a study will do: every run of the design with its name, folder, dataset and command, known
 * and checked before anything is written. */
#include "study/experiment.h"

/* Loads the design and every workload of it. A row that cannot run is an experiment with its
 * reason; only a design that cannot be read is an error. Release with study_plan_release. */
int study_plan_init(struct study_plan *p, const struct study_options *o, struct err *e);
void study_plan_release(struct study_plan *p);

/* Sets x->folder: results/MODEL/NAME/run-1, or beside it where that holds another run with this
 * name, of another design, with other overrides or of a workload that was another then. */
int study_place_run(const struct study_plan *p, struct experiment *x, struct err *e);

/* A text as the name of one folder: letters, digits and "._+-=", others become '_'; what was
 * changed or cut gets a hash, so that different texts keep different names. */
void study_folder_name(const char *text, char *out, size_t out_size);
