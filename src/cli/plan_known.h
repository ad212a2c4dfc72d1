#pragma once
/* What 'stoker plan' is asked, and the results and points that it is made from. */
#include "plan/sizing.h"
#include "readback/sums.h"

#define PLAN_POINTS_MAX 256
#define PLAN_RUNS_MAX 1024 /* that a plan may name */

struct plan_args {
	struct str_list from; /* first: also the operands */
	struct str_list point;
	const char *accelerators, *model, *json, *page;
	int64_t hosts;
	double target;
	bool grows, despite;
	/* checkpoints */
	const char *checkpoint, *parameters;
	const char *write_rate, *read_rate, *interval, *pause, *restart, *local_rate;
	double loss, mtbf, local_share;
};

/* Whether checkpoints are planned, too. */
bool plan_wants_checkpoint(const struct plan_args *a);

/* A result that was named. */
struct known_result {
	char *folder; /* as it was given */
	struct run_name name;
	char system[128]; /* of one that was published; "" */
	struct point point;
	struct err why; /* code 0: it is a point */
	/* Bytes/s of its checkpoints, each the mean of the run; NAN: it wrote, or read, none. */
	double write, read;
	bool cached;            /* the page cache gave back what was read */
	bool lacks;             /* `why`: it is whole, and lacks what a plan needs */
	struct str_list failed; /* its checks that failed */
};

struct known {
	struct point *point; /* heap */
	size_t points;
	struct known_result *result;
	struct sizing_run *run; /* of each result */
	size_t results;
	struct str_list notes;
};

/* Of records_visit: `known` is the argument of both. */
void known_begin(void *known, size_t n);
void known_look(void *known, size_t i, struct run_record *r);
/* Reads the results that were named; some that lack what a plan needs are left out, and said. */
int known_load(const struct plan_args *a, struct known *k, struct err *e);
/* Results that were looked at, points that were typed, and the workload that is planned: `plan` has
 * it where it was named. */
int known_take(const struct plan_args *a, struct known *k, struct duty *plan, struct err *e);
void known_release(struct known *k);
