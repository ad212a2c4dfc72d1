#pragma once
/* The runs of a study in groups: repetitions of one configuration together; copies of a run are no
 * repetitions. */
#include "base/stats.h"
#include "readback/audit.h"

struct run_group {
	const char *model; /* borrowed from a record */
	char *factors;     /* "reader.batch_size=14", several joined by ", "; "" for none */
	uint32_t ranks;
	size_t *record; /* indexes, in the order of the records */
	size_t records;
	size_t copies; /* results of these runs that are not counted again */
	bool unsound;  /* the audit says FAIL of one of them */
	/* Values of runs when there are several, else of the one run's epochs. */
	struct sample_stat au, whole_au, throughput, io;
	double *whole_au_v, *throughput_v; /* those of the tests; throughput over the wall time */
	size_t whole_au_n, throughput_n;
	double wait_share, other_share; /* percent of the ranks' training time */
	double target;                  /* metric.au in percent; NaN */
};

struct run_groups {
	const struct run_record *record;
	size_t records;
	const struct audit *audit;
	struct run_group *group; /* sorted by model, factors, ranks */
	size_t groups;
};

/* Runs without training are left out. Everything is borrowed and has to outlive the groups. */
void run_groups_build(struct run_groups *g, const struct run_record *r, size_t n,
		      const struct audit *audit);
void run_groups_release(struct run_groups *g);
