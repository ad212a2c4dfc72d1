#pragma once
/* Two configurations compared: did a measure change, by how much, and is it more than chance? */
#include "base/stats.h"
#include "readback/record.h"
#include "readback/sides.h"

/* What the values of a sample are. Runs are independent; epochs of one run share its luck. */
enum compare_basis { COMPARE_RUNS, COMPARE_EPOCHS };

enum compare_verdict {
	COMPARE_UNKNOWN, /* no test can be made: `why` of the comparison */
	COMPARE_SAME,    /* the change is within chance, at 5 % */
	COMPARE_BETTER,
	COMPARE_WORSE,
	COMPARE_DIFFERENT, /* neither direction is better: the sides did other work */
};

/* Independent runs that a test needs on each side. Welch's test takes the spread from the runs
 * themselves; that of two, with one degree of freedom, is no estimate of it. */
#define COMPARE_RUNS_NEEDED 3
/* A difference is shown where its test's p is below this. */
#define COMPARE_LEVEL 0.05

struct compared {
	char name[SHOWN_NAME_MAX];
	const char *unit;
	int better; /* 1: more is better, -1: less is, 0: neither */
	bool gates; /* comparison_check goes by it */
	struct sample_stat a, b;
	enum compare_basis basis;
	struct welch test; /* when the verdict is not COMPARE_UNKNOWN */
	enum compare_verdict verdict;
	char why[200]; /* of COMPARE_UNKNOWN: a sentence without its full stop */
};

#define COMPARED_MAX (12 + SHOWN_FIGURES)
struct comparison {
	size_t runs[2], copies[2]; /* of each side: independent ones, and copies of them */
	size_t shared;             /* runs that are on both sides */
	struct compared measure[COMPARED_MAX];
	size_t measures;
	struct sides sides;          /* what to know before the numbers */
	bool configured;             /* something of both configurations is known */
	bool complete;               /* and all of it */
	struct str_list differences; /* "reader.batch_size: 4 | 8", of the configurations */
	struct str_list servers;     /* those of either side's first run, with their figures */
};

/* Each side is one run or several repetitions of it; copies of a run are counted once. Means of
 * runs are tested where both sides have COMPARE_RUNS_NEEDED of them and measured the same thing;
 * otherwise numbers are given without a test, those of single runs by their epochs. The mean of
 * whole-run AU is that of the runs' own values in either case. Measures that a side lacks are left
 * out. */
void compare_records(struct comparison *c, const struct run_record *a, size_t na,
		     const struct run_record *b, size_t nb);
void comparison_release(struct comparison *c);

enum compare_outcome { COMPARE_PASSES, COMPARE_FAILS, COMPARE_CANNOT_TELL };
/* Whether the second side is worse than the first: a measure of the whole run (of AU by DLIO's
 * definition where the whole run is not known) is worse in the test, by more than `tolerance`
 * percent of the first side's mean. Without a test of each of them, or where an interval leaves
 * room for a larger loss than that, it cannot be told. `why` gets a line without a full stop: which
 * measure, or what cannot be told; of what passes, the largest loss that the intervals leave room
 * for. Pure. */
enum compare_outcome comparison_check(const struct comparison *c, double tolerance,
				      struct buf *why);

void comparison_text(const struct comparison *c, struct buf *out);
json_t *comparison_json(const struct comparison *c);
