#pragma once
/* The runs of a study in groups: repetitions of one configuration together; copies of a run are no
 * repetitions. Which runs count is decided here, once, for findings, tables, charts and figures. */
#include <jansson.h>

#include "base/stats.h"
#include "readback/audit.h"

/* Whether the figures of a run are evidence, and if not, why. */
enum run_standing {
	RUN_COUNTS,
	RUN_FAILED,      /* the audit says FAIL */
	RUN_IMPOSSIBLE,  /* its whole-run AU or rate is unknown, or cannot be */
	RUN_FROM_MEMORY, /* memory or the page cache served its reads, and not those of another run
			    of the model that counts */
	RUN_COPY,        /* of another result */
	RUN_BROKEN,      /* it cannot be read in full */
	RUN_UNTRAINED,   /* there was no training */
};
/* "check failed", ...; "" for RUN_COUNTS. */
const char *run_standing_name(enum run_standing s);

/* Values that a standard deviation needs: that of two is no estimate of it. */
#define SPREAD_VALUES 3

struct run_group {
	const char *model;      /* borrowed from a record */
	char *factors;          /* what sets it apart from the other runs of the model:
				   "reader.batch_size=14", several joined by ", "; "" for none */
	bool shared;            /* all runs of the model have further overrides in common */
	struct str_list factor; /* each of them, sorted */
	uint32_t ranks;
	size_t *record; /* indexes, in the order of the records; those that count come first */
	size_t records;
	size_t counted; /* runs that count: all figures are of these; 0: none does, and the figures
			   are of all runs */
	size_t copies;  /* results of these runs that are not counted again */
	bool unsound;   /* no run counts */
	/* Values of runs when there are several, else of the one run's epochs. The standard
	 * deviation is NaN of fewer than SPREAD_VALUES. */
	struct sample_stat au, whole_au, throughput, whole_rate, io;
	double *whole_au_v, *throughput_v; /* those of the tests; throughput over the wall time */
	size_t whole_au_n, throughput_n;
	double wait_share, other_share; /* percent of the ranks' training time */
	double target;                  /* metric.au in percent; NaN */
};

struct run_groups {
	const struct run_record *record;
	size_t records;
	const struct audit *audit;
	enum run_standing *standing; /* of each record */
	size_t *of;                  /* index of each record's group; SIZE_MAX: it has none */
	struct run_group *group;     /* sorted by model, factors, ranks */
	size_t groups;
};

/* Runs without training are left out. Overrides that all runs of a model share are no factors. Runs
 * with the same overrides whose configurations differ
 * otherwise are no repetitions: the keys that differ become factors. Everything is borrowed and has
 * to outlive the groups. */
void run_groups_build(struct run_groups *g, const struct run_record *r, size_t n,
		      const struct audit *audit);
void run_groups_release(struct run_groups *g);

/* Memory or the page cache served reads of the run: by its own words, or where it has none by the
 * audit. */
bool run_from_memory(const struct run_groups *g, size_t record);

/* Colors and marks of models, the same on the page and in the figures of one report. */

#define PALETTE_COLORS 8
#define PALETTE_MARKS 6

enum palette_mark {
	MARK_CIRCLE,
	MARK_SQUARE,
	MARK_TRIANGLE,
	MARK_TRIANGLE_DOWN,
	MARK_DIAMOND,
	MARK_PENTAGON
};

struct palette_color {
	const char *light, *dark; /* "#rrggbb", on a light and on a dark background */
};
/* Each has a contrast of at least 3 to 1 with its background, and neighbors differ in brightness as
 * well as in hue. */
extern const struct palette_color palette[PALETTE_COLORS];

/* Place of a model in the order of all models of the report; 0 for one that it does not have. */
size_t palette_place(const struct run_groups *g, const char *model);
/* Of a place: beyond the last color they begin again, with other marks. */
const struct palette_color *palette_color_of(size_t place);
enum palette_mark palette_mark_of(size_t place);

/* As CSV, a line for each run: model, processes, what was varied, AU and throughput with their
 * spread. The columns that analyses of DLIO results use come first. */
void table_csv(const struct run_groups *g, struct buf *out);
/* The same as a list of objects: numbers, texts, and null where a run has none. */
json_t *table_json(const struct run_groups *g);

/* What a set of runs shows, in sentences, each with the figures it rests on. All of them rest on
 * the same runs, those that count, and on whole-run AU. */

struct key_finding {
	/* "verdict", "limit", "best", "scaling", "reach", "factor", "more", "same", "untested" */
	char topic[24];
	struct buf text;
};

struct key_findings {
	struct key_finding *v;
	size_t n;
};

void key_findings_build(struct key_findings *k, const struct run_groups *g);
void key_findings_release(struct key_findings *k);
