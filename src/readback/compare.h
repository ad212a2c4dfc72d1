#pragma once
/* Two configurations compared: did a measure change, by how much, and is it more than chance? */
#include "base/stats.h"
#include "readback/record.h"

/* What the values of a sample are. Runs are independent; epochs of one run share its luck. */
enum compare_basis { COMPARE_RUNS, COMPARE_EPOCHS, COMPARE_SINGLE };

enum compare_verdict {
	COMPARE_UNKNOWN, /* fewer than 2 values a side */
	COMPARE_SAME,    /* the change is within chance, at 5 % */
	COMPARE_BETTER,
	COMPARE_WORSE,
	COMPARE_DIFFERENT, /* neither direction is better */
};

struct compared {
	const char *name, *unit;
	int better; /* 1: more is better, -1: less is, 0: neither */
	struct sample_stat a, b;
	enum compare_basis basis;
	struct welch test; /* when the verdict is not COMPARE_UNKNOWN */
	enum compare_verdict verdict;
};

#define COMPARED_MAX 8
struct comparison {
	struct compared measure[COMPARED_MAX];
	size_t measures;
	struct str_list differences; /* "reader.batch_size: 4 | 8", of the configurations */
	struct str_list warnings;    /* why the two sides may not be comparable */
};

/* Each side is one run or several repetitions of it. Several runs a side are compared by their
 * means, single runs by their epochs. Measures that a side lacks are left out. */
void compare_records(struct comparison *c, const struct run_record *a, size_t na,
		     const struct run_record *b, size_t nb);
void comparison_release(struct comparison *c);
void comparison_text(const struct comparison *c, struct buf *out);
json_t *comparison_json(const struct comparison *c);
