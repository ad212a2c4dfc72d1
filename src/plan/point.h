#pragma once
/* A measured point: so many accelerators on so many hosts took so many samples a second. From a
 * result of this program or DLIO, or typed, as published results give it. */
#include "base/map.h"
#include "readback/record.h"
#include "workload/workload.h"

/* What one accelerator does in a step, and the files behind it: all that a plan needs of a
 * workload. */
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
/* Of a workload built in, or of a YAML file. With `accelerator` (NULL: none) of "NAME_ACCELERATOR".
 * ERR_USAGE names the nearest one. */
int duty_load(struct duty *d, const char *name, const char *accelerator, struct err *e);
/* Whether both take the same samples at the same pace: batch, computation time and bytes of a
 * sample within 1 %. */
bool duty_same(const struct duty *a, const struct duty *b);

/* ---- points ---- */

struct point {
	char from[160]; /* for sentences: "--point 2", "results/unet3d" */
	struct duty of;
	double hosts, accelerators;
	double samples_per_s;
	double au;      /* as DLIO defines it, 0 to 1; NAN: not known */
	double spread;  /* relative standard deviation of samples_per_s over repetitions; NAN */
	bool largest;   /* one accelerator more on each host misses the target */
	bool capped;    /* the run says so: what all accelerators share was at its end */
	bool is_result; /* below is known */
	double requests_per_sample, opens_per_sample; /* NAN: not known */
	char store[64]; /* of this program; "": a storage system, or not known */
};

/* The share of time in which an accelerator really computed, from the rate:
 * samples/s . computation time / (accelerators . batch size). */
double point_share(const struct point *p);

/* Reads "hosts=1,accelerators=8,samples_per_s=160,au=93.1,...". `number`: its place on the command
 * line, from 1. `plan`: the workload of the plan, for what the point does not say; NULL: none is
 * known. ERR_USAGE for keys that are unknown, missing or given twice, and values out of range. */
int point_parse(struct point *p, const char *text, size_t number, const struct duty *plan,
		struct err *e);
/* Of a whole record that trained. ERR_DATA when it lacks what a point needs. */
int point_of_record(struct point *p, const struct run_record *r, struct err *e);
/* Whether the point agrees with itself: no more samples than its accelerators can take, and, where
 * it was typed, an AU neither below what the rate says nor far above it. ERR_USAGE for one that was
 * typed, ERR_DATA for one of a result. */
int point_check(const struct point *p, struct err *e);

/* The keys of a point, for the help and the documents. NULL-terminated. */
extern const char *const point_keys[];
