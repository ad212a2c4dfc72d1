#pragma once
/* Is a result valid? Checks over result folders that are read back, ours or DLIO's: each finding
 * has its evidence in figures and says what to do. What each check judges by: docs/metrics.md. */
#include "readback/record.h"
#include "result/basis.h"

enum audit_level {
	AUDIT_NOTE, /* correct, and easily misread */
	AUDIT_WARN, /* of limited validity */
	AUDIT_FAIL, /* invalid */
};

/* Bytes; what is longer is cut: parts of them are texts of files. */
#define FINDING_TEXT_MAX 899
#define FINDING_ADVICE_MAX 399

struct finding {
	size_t record;  /* index of the record it is about */
	char check[24]; /* "steady", "cache", "dataset", "config", ... as the verdicts of a run */
	enum audit_level level;
	bool about_cache; /* a warning of it means that the page cache served reads */
	bool copy;        /* of a run that is there twice: the first result stands for it */
	bool damage;      /* a file is missing, unreadable, damaged or cut */
	char *text;       /* what, with the figures that show it; heap */
	char *advice;     /* heap; "" */
};

/* What was compared: figures of one kind, derived from others in the folder. */
struct audit_topic {
	size_t record;
	const char *name;        /* "steps" */
	const char *what;        /* "AU and rates from the times of the steps, ..." */
	size_t compared, differ; /* figures */
	size_t finding;          /* that lists those that differ; its index + 1, 0: none */
	char *unchecked;         /* why nothing, or not all of it, was compared; NULL: all was */
	const char *by_digest;   /* what nothing but a digest vouches for; NULL */
};

/* Of more results than this, what limits each and what would change it is not made again. */
#define AUDIT_PREDICTED_MOST 20
struct audit {
	bool quick;                      /* there are more, or it was asked for */
	const struct run_record *record; /* borrowed; sorted as given */
	size_t records;
	struct finding *finding; /* in the order of the records, worst first within one */
	size_t findings, finding_room;
	struct audit_topic *topic; /* in the order of the records */
	size_t topics, topic_room;
	size_t *first; /* of each record its first finding, and how many there are in all; heap */
	size_t *first_topic; /* the same of topics */
};

/* Findings of record `i`, *n of them, worst first; of an audit that is over. */
const struct finding *audit_of(const struct audit *a, size_t i, size_t *n);
/* The worst level of record `i`; -1: nothing was found. */
int audit_worst_of(const struct audit *a, size_t i);

/* A new finding about record `i`; valid until the next one. */
struct finding *audit_add(struct audit *a, size_t i, const char *check, enum audit_level level);
struct audit_topic *audit_add_topic(struct audit *a, size_t i);
/* Appends to its evidence. */
void finding_say(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void finding_advise(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The findings and topics of `one` as those of record `i`, which are moved. */
void audit_append(struct audit *a, struct audit *one, size_t i);
void audit_release(struct audit *a);
/* The worst finding's level, or -1 when there is none. */
int audit_worst(const struct audit *a);
/* The first finding about damage, and in how many records there are some; NULL: in none. */
const struct finding *audit_damage(const struct audit *a, size_t *records);
/* A finding as one sentence without its full stop, with the folder where the text does not name it.
 */
void finding_sentence(const struct audit *a, const struct finding *f, struct buf *out);
/* Text for a terminal: of one record in full, of several what was found how often, with one example
 * each, and with `verbose` every record in full; then `sums`, of files that sum up results (NULL:
 * none). And
 * {"results": [{"folder", "findings": [...], "checked": [...], "unchecked": [...]}], "sums":
 * [{"file", the same}]}. */
void audit_text(const struct audit *a, const struct audit *sums, bool color, bool verbose,
		struct buf *out);
bool audit_json(const struct audit *a, const struct audit *sums,
		struct buf *out); /* false: no memory */
/* {"check", "level": "note", "warning" or "fail", "text", "advice"} */
json_t *finding_json(const struct finding *f);

/* Reads the results in `path` (readback/record.h) and runs every check, one result at a time, and
 * then those that compare results. `visit` (NULL: none) also sees each: while its own checks are
 * over and it is still whole. `predict`: limit and predictions are made again, too, of
 * AUDIT_PREDICTED_MOST results at most. Release `a` and `out` in any case, with audit_release and
 * records_release. */
int audit_read(struct audit *a, struct records *out, const char *const *path, size_t n,
	       bool predict, const struct record_visit *visit, struct err *e);
/* The checks of one whole record alone: r->failed_checks. */
void audit_alone(struct run_record *r);
/* What the run tells of larger ones, by its measures and today's rules; of results before there
 * were measures, what they say. */
void audit_basis(struct run_record *r, struct basis *out);
/* Whether a check of the record's own failed, and none but those of its length. */
bool audit_failed_by_length(const struct run_record *r);
/* Of an audit whose findings were added one by one: it is over. */
void audit_close(struct audit *a);
struct gate_run;
/* What --check asks of a run or of repetitions, by its measures and today's rules. Negative: it has
 * none. */
int audit_gate(struct run_record *r, struct gate_run *out, struct err *e);
/* All checks of records that are whole. */
void audit_run(struct audit *a, const struct run_record *record, size_t n);
