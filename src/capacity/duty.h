#pragma once
/* What one accelerator does in a step, and the files behind it: all that a plan needs of a
 * workload. */
#include <stdbool.h>

#include "base/err.h"
#include "workload/workload.h"

struct duty {
	char name[96];        /* for sentences: "unet3d_h100" */
	char model[64];       /* "unet3d"; "": not known */
	char accelerator[32]; /* "h100"; "": not known */
	double batch;         /* samples of a step */
	double step_s;        /* mean computation time of a step */
	double sample_bytes;  /* bytes in files for one sample */
	double file_samples;  /* samples of a file; NAN: not known */
	double target;        /* AU, 0 to 1; 0: none is set */
};

/* Samples/s of one accelerator that always computes. */
double duty_need(const struct duty *d);
/* Of a loaded workload. ERR_USAGE when it reads no samples or its computation takes no time. */
int duty_of_workload(struct duty *d, const struct workload *w, const char *name, struct err *e);
/* Of a workload built in, or of a YAML file. With `accelerator` (NULL: none) of "NAME_ACCELERATOR".
 * ERR_USAGE names the nearest one. */
int duty_load(struct duty *d, const char *name, const char *accelerator, struct err *e);
/* Whether both take the same samples at the same pace: batch, computation time and bytes of a
 * sample within 1 %. */
bool duty_same(const struct duty *a, const struct duty *b);
