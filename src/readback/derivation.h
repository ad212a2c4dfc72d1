#pragma once
/* Figures of a result folder that follow from others in it: each is derived again and compared. One
 * topic is one kind of figures; what differs becomes one finding of it, with both values and both
 * places. For readback/ and what audits files that sum up runs (readback/sums.c). */
#include "readback/audit.h"

struct derive {
	struct audit *audit;
	size_t record, topic;
	const char *check; /* of its finding */
};

/* A new topic about record `i`; the texts are borrowed. */
struct derive derive_begin(struct audit *a, size_t i, const char *check, const char *name,
			   const char *what);
/* Why figures of the topic could not be compared; the first reason stays. */
void derive_unchecked(struct derive *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What nothing but the digest vouches for. */
void derive_by_digest(struct derive *d, const char *what);
/* Written by one computation with 15 digits or more: equal but for rounding. What is NaN on either
 * side is not compared. `fmt`: the place of `stated`; `source`: what gives `derived`. */
bool derive_equal(struct derive *d, double stated, double derived, const char *source,
		  const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Equal within `least`. */
bool derive_near(struct derive *d, double stated, double derived, double least, const char *source,
		 const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/* `stated` is not above `bound` + `least`. */
bool derive_at_most(struct derive *d, double stated, double bound, double least, const char *source,
		    const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/* The same text. NULL on either side is not compared. */
bool derive_text(struct derive *d, const char *stated, const char *derived, const char *source,
		 const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Any other statement that holds or not: counts, and where it does not, says the sentence. */
bool derive_holds(struct derive *d, bool holds, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define DERIVE_PATH 160
/* Two trees: one of a file, one made again. */
struct derive_trees {
	struct derive *d;
	bool same;              /* this build wrote the file: what it lacks is missing */
	bool whole;             /* and what it has beyond the other is nobody's figure */
	bool words;             /* and words are figures as any other */
	const char *source;     /* "the measures of the run" */
	char path[DERIVE_PATH]; /* where they begin: "summary.json " */
};
void derive_trees(struct derive_trees *t, const json_t *stated, const json_t *made);
/* This build wrote the result. */
bool derive_is_this_build(const struct run_record *r);

/* ---- shared by the topics ---- */

/* Statistics of a list as this program and DLIO write them: population standard deviation. */
struct derive_stat {
	size_t n;
	double mean, stdev, min, max;
};
struct derive_stat derive_stat_of(const double *v, size_t n);
/* A number of an object; NaN when it has none of that name. */
double derive_number(const json_t *o, const char *key);
const char *derive_string(const json_t *o, const char *key);
/* Whether a list has null: where a list of an earlier version had no value. */
bool derive_has_null(const json_t *list);

/* AU and samples/s of one rank in one epoch, over its blocks; NaN where it has none. */
struct derive_rank {
	double au, throughput;
	uint64_t steps;
	double compute_s, load_s;
};
struct derive_rank derive_rank_epoch(const struct run_record *r, uint32_t rank, size_t epoch);
/* The measured steps [*lo, *hi) of a phase with `steps` steps, of which `before` were made in
 * earlier blocks of the epoch, of `total`. */
void derive_window(const struct run_record *r, uint64_t steps, uint64_t before, uint64_t total,
		   uint64_t *lo, uint64_t *hi);
/* Steps of the epoch by which the window ends. */
uint64_t derive_total_steps(const struct run_record *r, uint32_t rank, size_t epoch, bool eval);
/* The rates are DLIO's own: a result of DLIO, or one with compat.dlio. */
bool derive_as_dlio(const struct run_record *r);
/* Epochs that are finished on all ranks: those that means are made of. */
size_t derive_epochs(const struct run_record *r);
/* Every rank has its files, but those that the result itself says are lost. */
bool derive_all_ranks(const struct run_record *r);

/* ---- the topics ---- */

/* N_output.json and N_per_epoch_stats.json: rates from steps, steps from stamps. */
void derive_steps(struct audit *a, size_t i);
/* summary.json from the files of the ranks. */
void derive_summary(struct audit *a, size_t i);
/* result.json from the measures of the run, judged again by today's rules: what it would be; NULL
 * without measures. New reference. */
json_t *derive_again(struct audit *a, size_t i);
/* Curves of the machine from what the epochs counted, both of the measures of a run. */
struct result;
/* The measures of a run against each other. */
void derive_measures(struct audit *a, size_t i, const struct result *r);
void derive_curves(struct audit *a, size_t i, const struct result *r);
/* The log from the files of the ranks and summary.json. */
void derive_log(struct audit *a, size_t i);
/* Whose files these are: dates, hosts, processors, memory, configuration. */
void derive_origin(struct audit *a, size_t i);
/* Digests that result.json has of the other files, and of itself. */
void derive_digests(struct audit *a, size_t i);
