#pragma once
/* Verdicts: can the numbers of a run be trusted? Each is a row that looks at one question and
 * answers it in facts, whose sentences are rows of words/. What each means, with its thresholds:
 * docs/verdicts.md. */
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
	VERDICT_OF_EVAL_STEPS = 1u << 6, /* an evaluation has at least one step */
	VERDICT_OF_SERVERS = 1u << 7     /* the store counts what it did with servers */
};

struct verdict_ops {
	const char *name; /* as in result.json; at most 23 characters */
	const char *help; /* the question it answers */
	unsigned needs;   /* VERDICT_OF_*, all of them */
	bool worst_first; /* its facts do not rest on each other: the reason is said first */
	bool about_cache; /* a warning means that the page cache may have served the reads */
	enum verdict_about about;
	unsigned takes; /* enum taken: what a warning or failure takes, unless it says otherwise */
	/* `v` has passed and has no fact yet: adds what it finds (verdict_found). A verdict that
	 * is left without a fact does not apply and is not listed. The rest of r->judged is there,
	 * but for the verdicts, limit and outlook. */
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

/* ---- what several of them ask ---- */

/* Processors that the processes of a run may use, of all its nodes. */
double verdict_cpus(const struct result *r);
/* Of the files that were looked at: in the page cache. And what that takes, from which share on. */
#define VERDICT_CACHE_SHARE 0.10
double verdict_cached(const struct residency *c);
unsigned verdict_takes_cached(double share);
/* Whether the page cache was to be evicted before an epoch, from 0. */
bool verdict_evicted(const struct result *r, uint32_t epoch);

/* ---- what they answer ---- */

/* Adds what it found. Its level becomes at least `level` (pass, unknown, warn, fail, from good to
 * bad); the first fact of the worst level is the reason for it. */
struct fact *verdict_found(struct verdict *v, enum verdict_level level, struct fact f);
/* A warning or failure (of TAKES_TARGET any level) that takes `takes` (enum taken) from the
 * numbers, in place of its row's. `instead` (INSTEAD_*), with TAKES_STORAGE or TAKES_PART: what was
 * measured; or REASON_NONE. */
void verdict_takes(struct verdict *v, unsigned takes, enum reason instead);
/* It is not known where the bytes came from (TAKES_ORIGIN), whatever its level: the short form of
 * `origin` is all that the headline can say. */
void verdict_takes_origin(struct verdict *v, struct fact origin);
