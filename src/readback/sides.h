#pragma once
/* What each side of a comparison measured, and whether that is the same thing. */
#include "base/map.h"
#include "conf/opt.h"
#include "readback/configuration.h"
#include "readback/record.h"

/* One side: runs r[index[0..n)], each once. */
struct side {
	const struct run_record *r;
	const size_t *index;
	size_t n;
};

struct sides {
	/* Sentences with both values. The numbers do not mean the same on both sides, or not in all
	 * runs of one, so that a test of their difference would answer no question. */
	struct str_list unlike;
	struct str_list damage; /* files that are missing, unreadable, damaged or cut */
	struct str_list doubts; /* what else a reader has to know before the numbers */
	/* Both ran other work (another accelerator, batch, dataset, number of ranks): a difference
	 * is no better or worse storage. One of the doubts says it. */
	bool other_work;
};

/* `d`: of the first runs of both. Sentences are appended. */
void sides_compare(const struct side *a, const struct side *b, const struct key_differences *d,
		   struct sides *out);

/* "key=value of b" for each key that makes one run no repetition of the other, whatever their
 * numbers of ranks; not those that say where files lie, which parts of a run were done, or how it
 * was watched. Of data on another file system: "dataset.data_folder=" and its mount point.
 * Appended. */
void unlike_keys(const struct run_record *a, const struct run_record *b, struct str_list *out);

/* What a run says itself that its numbers are numbers of (`measured` of result.json). */

/* "yes", "part", "no", "emulated" or "unknown" (docs/metrics.md, "What was measured"); NULL: the
 * result does not say. */
const char *claim_storage(const struct run_record *r);
/* The sentence; NULL. */
const char *claim_text(const struct run_record *r);
/* Memory or the page cache served its reads, all or some of them. */
bool claim_from_memory(const struct run_record *r);

/* Which results are of one run: a copy of a result is no repetition of it. By run_id of result.json
 * where both have one; whatever those say, also when they began and ended at the same moments on
 * the same host, or when the waiting times of all steps of all ranks are equal, or in the same
 * order as all other times of the steps (readback/step_marks.h), or when times, stamps or figures
 * of one epoch are (record_facts.part). */

struct runs_seen {
	struct texts key;
	const struct run_record **run;
	size_t *group; /* of each */
	size_t n, room;
	size_t *of_key; /* the run of each key */
	size_t keys, key_room;
};

/* The run that was added to `seen` under this number of a group and is the run of `r`; NULL: none
 * is. `why` (may be NULL) gets what shows it, a sentence without its full stop. */
const struct run_record *runs_have(const struct runs_seen *seen, const struct run_record *r,
				   size_t group, const char **why);
void runs_add(struct runs_seen *seen, const struct run_record *r, size_t group);
void runs_release(struct runs_seen *seen);
/* Indexes of the first result of each run among r[0..n), on the heap; *count gets how many. */
size_t *records_distinct(const struct run_record *r, size_t n, size_t *count);
