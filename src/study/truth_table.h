#pragma once
/* One workload four times over the same few files: from the storage, from the page cache, past the
 * page cache, and from memory. Side by side they show what each number of this workload measures on
 * this machine. */
#include <stdbool.h>

#include "study/runner.h"
#include "readback/sums.h"
#include "workload/workload.h"

struct truth_table_options {
	struct runner_base base;
	int64_t ranks;
	const char *folder; /* of results; each run gets a folder of its own in it */
	const struct stop_flag *stop;
	void (*tell)(void *arg, const char *what); /* a run begins; may be NULL */
	void *arg;
};

enum truth_kind { TRUTH_COLD, TRUTH_WARM, TRUTH_DIRECT, TRUTH_MEMORY, TRUTH_ROWS };

struct truth_row {
	bool measured;
	bool failed;    /* it should have been possible: a run ended with an error */
	char why[1024]; /* not measured: the reason */
	char note[256]; /* measured, but not quite what the row's name says; "" */
	/* NaN: not known */
	double au, whole_au, samples_per_s;
	double returned_bytes, fetched_bytes, device_bytes; /* in training */
	double cached_share;                                /* of the bytes returned, 0 to 1 */
	char cause[64], limit[1024];
	struct run_name run;
};

struct truth_table {
	uint64_t files, files_of; /* used, of how many that the workload names */
	uint64_t steps;           /* of each rank */
	double sample_bytes;      /* of the files used */
	bool whole;               /* all files */
	bool own_data;            /* generated for this, and removed */
	double target;            /* metric.au, percent; 0: none */
	struct truth_row row[TRUTH_ROWS];
};

/* Measures all rows that can be had; `w` is the workload as loaded. A row that cannot be had is no
 * error: its reason is in the row. At most about 1 GiB of files and 20 s of emulated computation a
 * row (more where two steps of all ranks are more), and 2 minutes. ERR_CANCELED once the stop is
 * set: the rows that were measured so far are taken by the next table of the same settings in this
 * folder, if it has no table yet. */
int truth_table_run(struct truth_table *t, const struct workload *w,
		    const struct truth_table_options *o, struct err *e);
/* The table and what it means: 9 lines. With `all` also what each row is, what it differs from its
 * name by, and what limited it. */
void truth_table_text(const struct truth_table *t, bool all, struct buf *out);
/* "<folder>/truth_table.json": the same, for programs. */
int truth_table_write(const struct truth_table *t, const char *folder, struct err *e);
/* 0: every row was measured, or cannot exist here. -EIO: a run failed, or none could be made. */
int truth_table_outcome(const struct truth_table *t, struct err *e);
