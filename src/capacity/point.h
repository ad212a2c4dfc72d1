#pragma once
/* A measured point: so many accelerators on so many hosts took so many samples a second. From a
 * result of this program or DLIO, or typed, as published results give it. */
#include "base/texts.h"
#include "capacity/duty.h"
#include "readback/record.h"

struct point {
	char from[160]; /* for sentences: "--point 2", "results/unet3d" */
	struct duty of;
	double hosts, accelerators;
	double samples_per_s;
	double au;      /* as DLIO defines it, 0 to 1; NAN: not known */
	double spread;  /* relative standard deviation of samples_per_s over repetitions; NAN */
	bool largest;   /* one accelerator more on each host misses the target */
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
