#pragma once
/* What will go wrong in a study, said before it begins: every problem of every pending row at once,
 * those that are the same put together. Steps, checkpoints and memory are what the run itself would
 * plan (run/foresee.h), and how many steps are enough is what the verdicts go by. */
#include "study/experiment.h"

enum forecast_kind {
	FORECAST_FAILS,   /* the run ends with an error */
	FORECAST_DOUBT,   /* it does not measure what it seems to */
	FORECAST_WARNING, /* what loading its workload says */
	FORECAST_NOTE,    /* worth knowing */
	FORECAST_KINDS
};

struct forecast_item {
	enum forecast_kind kind;
	char *text;   /* a sentence without its full stop */
	size_t *line; /* of the design, ascending; of none: it is the study's */
	size_t lines;
};

/* A file system on which a study keeps datasets or checkpoints. */
struct forecast_place {
	uint64_t device;
	char *path; /* the first folder on it */
	char file_system[56];
	double free_bytes; /* INFINITY: not known */
	double kept_bytes; /* by now: what stays until the study ends */
	double most_bytes; /* at a time */
};

struct forecast {
	struct forecast_item *item; /* by kind, then by line */
	size_t items;
	struct forecast_place *place;
	size_t places;
	size_t pending;      /* rows */
	double memory_bytes; /* the largest bound of a run */
	double available_bytes;
	double read_bytes, generate_bytes; /* of all runs */
};

/* Looks at every pending row of a plan made with options.memory. Release in any case. */
void study_forecast(const struct study_plan *p, struct forecast *out);
void forecast_release(struct forecast *f);
/* The problems of the kinds up to `last`, a line each, at most `most` (0: all) of them. */
void forecast_text(const struct forecast *f, enum forecast_kind last, size_t most, struct buf *out);
/* Disks and memory against what there is. */
void forecast_needs_text(const struct forecast *f, struct buf *out);
/* ERR_USAGE when the launcher of the options cannot be found, so that no run could start. With
 * --module it may come from there. */
int forecast_launcher(const struct study_options *o, struct err *e);
