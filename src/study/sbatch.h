#pragma once
/* The batch script of a study under Slurm. */
#include "study/experiment.h"

struct sbatch_options {
	const char *partition; /* NULL: the site's default */
	const char *account;   /* NULL */
	int64_t nodes, tasks;  /* tasks 0: the largest process count of the design */
	const char *time;      /* "04:00:00"; NULL: the site's default */
	const char *gres;      /* "gpu:4"; NULL */
	bool exclusive;        /* no other job on the nodes */
	struct str_list lines; /* further directives, without "#SBATCH ": "--constraint=x" */
};

/* Writes a script that continues the study with srun: submitted again, it goes on where it ended.
 * Values with characters that could end a line or a word are ERR_USAGE. */
int study_sbatch(const struct study_plan *p, const struct sbatch_options *o, struct buf *out,
		 struct err *e);
