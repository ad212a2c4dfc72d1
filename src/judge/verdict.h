#pragma once
/* Verdicts: can the numbers of a run be trusted? Each is a row that looks at one question and
 * answers it in words, with the figures it went by. What each means, with its thresholds:
 * docs/metrics.md. */
#include <stdbool.h>

#include "result/metrics.h"
#include "result/result.h"

/* What a run must have for a verdict to apply. */
enum {
	VERDICT_OF_TRAINING = 1u << 0,
	VERDICT_OF_EVALUATION = 1u << 1,
	VERDICT_OF_CHECKPOINTS = 1u << 2,
	VERDICT_OF_EPOCHS = 1u << 3,  /* at least one begun, with the kernel's counters around it */
	VERDICT_OF_READING = 1u << 5, /* training, or evaluations alone */
	VERDICT_OF_FILES = 1u << 4,   /* of the dataset, in a store that keeps files */
	VERDICT_OF_EVAL_STEPS = 1u << 6 /* an evaluation has at least one step */
};

struct verdict_ops {
	const char *name; /* as in result.json; at most 23 characters */
	const char *help; /* the question it answers */
	unsigned needs;   /* VERDICT_OF_*, all of them */
	bool about_cache; /* a warning means that the page cache may have served the reads */
	enum verdict_about about;
	unsigned takes; /* enum taken: what a warning or failure takes, unless it says otherwise */
	/* `v` has passed and says nothing yet: sets its level and text. A verdict that is left
	 * without a text does not apply and is not listed. The rest of r->judged is there, but for
	 * the verdicts, limit and outlook. */
	void (*judge)(const struct result *r, const struct run_metrics *m, struct verdict *v);
};

/* NULL-terminated, written by the build; in the order in which they are listed. */
extern const struct verdict_ops *const verdict_table[];

/* NULL when no verdict of this version has that name. */
const struct verdict_ops *verdict_find(const char *name);
/* Judges by the rows of a table; replaces r->judged.verdict. */
int verdicts_judge(struct result *r, const struct run_metrics *m,
		   const struct verdict_ops *const *table, struct err *e);
/* Rows of a table. */
size_t verdicts_count(const struct verdict_ops *const *table);

/* Adds what it found; of a level worse than before, the reason for it. */
struct fact *verdict_found(struct verdict *v, enum verdict_level level, struct fact f);
/* Appends to its text. */
void verdict_say(struct verdict *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Ends its text with a full stop where it has none. */
void verdict_close(struct verdict *v);
/* A warning or failure (of TAKES_TARGET any level) that takes `takes` (enum taken) from the
 * numbers, in place of its row's. `instead`, with TAKES_STORAGE or TAKES_PART: what was measured,
 * "the page cache"; or NULL. */
void verdict_takes(struct verdict *v, unsigned takes, const char *instead);
/* It is not known where the bytes came from (TAKES_ORIGIN), whatever its level: `origin` is all
 * that the headline can say: "unknown whether it was the storage: loop0 is the file ...". */
void verdict_takes_origin(struct verdict *v, const char *origin);
/* Its level becomes at least as bad: pass, unknown, warn, fail. What it says next is the reason. */
void verdict_worsen(struct verdict *v, enum verdict_level level);
