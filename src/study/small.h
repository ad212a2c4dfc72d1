#pragma once
/* --small: a design on a laptop, or one run (small_run). Each model is shrunk by factors that are
 * the same for all of its rows, so that rows still differ in nothing but what the design varies:
 *
 *   files        as many times more, or fewer, as give every row the steps that the verdict
 *                `steady` needs, and a tenth more
 *   samples and  smaller and shorter by one factor, so that the bytes/s which an accelerator
 *   computation  needs stay the same, until the largest dataset is below SMALL_DATASET_BYTES and
 *                the computation of each run below SMALL_COMPUTE_S
 *   epochs       at most SMALL_EPOCHS; a checkpoint or evaluation that was due stays due
 *   models       smaller until the checkpoints of each run are below SMALL_CHECKPOINT_BYTES
 *
 * What is in a result's configuration says so, too: run.note. */
#include "study/study.h"

#define SMALL_DATASET_BYTES 4e9
#define SMALL_CHECKPOINT_BYTES 1e9
#define SMALL_COMPUTE_S 20
#define SMALL_EPOCHS 2
#define SMALL_KEPT_MOST 4  /* times the files that are needed: a dataset that is there is read */
#define SMALL_STEP_S 0.002 /* computation of a step below that is called too short */
#define SMALL_SAMPLE_BYTES 4096 /* no sample is made smaller than that */
#define SMALL_SAMPLES_MAX 1e6   /* of a run; one that needs more for its steps gets fewer steps */
#define SMALL_CHECKPOINTS "checkpoints" /* in the data folder, unless the user has set one */
#define SMALL_NOTE "shrunk by --small"

/* Adds what shrinks each run to its overrides, which are composed, and what was done to
 * p->shrunk, a line for each model. Rows that cannot be loaded stay as they are. Depends on nothing
 * but the design, its workloads and the options, so that a study can be continued. */
void study_shrink(struct study_plan *p);

/* One run of `workload` with the caller's overrides on `ranks` accelerators, as --small makes
 * it: appends to `out` all its overrides, the caller's first. Besides what shrinks it, they have
 * the dataset generated, and evicted before each epoch, where the caller says nothing of that and
 * it can be. `keeps_data`: the dataset
 * stays, beside others in the folder. `said`: what was changed, one line. A workload that cannot
 * be loaded stays as it is: loading it tells why. */
void small_run(const char *workload, const char *config_dir, const struct str_list *overrides,
	       int64_t ranks, bool keeps_data, struct str_list *out, struct buf *said);
