#pragma once
/* What is kept of a result after it was read: what tables, comparisons and findings say of many
 * results is said from this. The whole result (its JSON, the times of its steps) is there only
 * while its own checks run, one result at a time (readback/record.h). */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/digest.h"
#include "conf/opt.h"
#include "readback/steady_au.h"
#include "result/fields.h"
#include "workload/need.h"

struct run_record;

/* Of one epoch; NaN where it is not known. */
struct epoch_facts {
	double whole_au, whole_rate; /* record_whole_au, record_whole_rate */
	double wall_s;               /* of the training part, of the slowest rank */
	double payload;              /* bytes/s of sample data, of result.json */
};

struct record_facts {
	struct epoch_facts *epoch; /* heap */
	size_t epochs;     /* of the rank that has most, of summary.json or result.json if more */
	bool lists_epochs; /* result.json does */
	double whole_run_au, whole_throughput;
	double wait_share, other_share;
	uint64_t steps; /* of the first epoch */
	double sample_bytes, step_s;
	struct steady_au steady;
	double target; /* metric.au in percent; NaN */
	struct need need;
	double fed;        /* accelerators */
	double fed_stated; /* that of result.json where it has a need; else by the workload */
	double returned_rate, payload_mean;
	double shown[SHOWN_FIGURES + 1]; /* of result.json, by number; NaN */
	char *supply;                    /* heap; "" */
	double costs_au;
	char *costs_text; /* heap; "" */
	bool costs_limit; /* the framework's own code is what the run says limited it */
	/* what the run says of itself */
	char *run_id, *status, *claim_storage, *claim_text, *build; /* heap; NULL */
	struct str_list taken;
	char *unsteady; /* text of its verdict "steady" when that is bad; NULL */
	/* where its bytes came from */
	bool in_memory;      /* a dataset in memory */
	char *mount;         /* where the file system of the dataset is mounted; NULL */
	double cached_share; /* sides_cached_share */
	double samples, data_bytes;
	/* its waits, all of them; "": too few to tell one run from another */
	char waits[SHA256_HEX];
	/* what it read, or wrote, and where */
	bool generates;
	char *data_folder; /* heap; "" */
	int64_t train_files, batch;
};

/* From a whole record. Release with facts_release. */
void facts_find(struct record_facts *f, const struct run_record *r);
void facts_release(struct record_facts *f);
