#pragma once
/* A result folder read back, ours or DLIO's: what audit, compare, study and the page of a report
 * know about a run that is over. Both leave the same files (docs/compatibility.md); ours leaves
 * result.json beside them. */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/map.h"
#include "codec/digest.h"
#include "conf/opt.h"
#include "readback/dlio_version.h"
#include "result/fields.h"
#include "result/judgement.h"
#include "workload/need.h"
#include "workload/workload.h"

struct run_record;

/* AU that a run would go on with: of the steps after those that prefetched batches and the start of
 * the workers serve, with its standard error. Short runs that differ in their number of steps can
 * be compared by it, as whole-run AU (the start is in it) and AU by DLIO's definition (the queue is
 * in it) cannot. docs/metrics.md, "Capacity". */
struct steady_au {
	bool known;         /* a phase of training has steps beyond its first ones */
	double au;          /* percent, mean over ranks, without lateness of computation */
	double error;       /* its standard error, points: circular block bootstrap over steps */
	double blocks;      /* of steps that the error is made from */
	double step_s;      /* mean time of a measured step, with its barrier */
	uint64_t steps;     /* measured, of a rank, all epochs */
	uint64_t left_out;  /* of a rank: before them, in all phases */
	uint64_t ahead;     /* batches that a rank reads ahead */
	uint64_t turn;      /* batches of a rank that are read at once: one a worker */
	uint64_t per_block; /* steps of a block of the bootstrap */
	double measured_s;  /* time of the measured steps */
	double varies_s;    /* of it, from one heavy wait to the next; all of it where there was one
			     * alone; 0: steps are even */
	double alone;       /* percent of it that one heavy wait alone cost; 0: none, or several */
	double slowed_s;    /* of steps before the storage became slower, which are left out */
	double later_au;    /* percent, of epochs after the first where they are faster than that:
			     * what was read before is served faster, and only the first is
			     * measured; NAN */
	double gain_s;      /* by which the steps after a checkpoint were faster than measured ones,
			     * as workers read on meanwhile; negative: slower. Mean; NAN */
	double begin_s, end_s; /* of the measured steps, before any of them are left out for
				* what varies; Unix time */
};

/* From a record that is whole. Of each phase (the steps between two checkpoints) the first
 * 1 + ahead steps are left out, and up to a worker's turn more, so that whole turns are measured:
 * workers that began together deliver together, one wait for a batch of each.
 *
 *     AU = sum of compute / sum of the time of steps
 *
 * The time of a step is that of the slowest rank from asking for its batch to the end of
 * computation, as a barrier ends each step; what barriers and the rest take beside it, the
 * difference to the wall time of the phase, is spread over its steps. Where a checkpoint is written
 * beside training, what follows it in the epoch counts for `gain_s` alone. Pure. */
void steady_au_find(const struct run_record *r, struct steady_au *out);
/* The same of the steps that lie between two times (Unix): of a run beside another one. */
void steady_au_between(const struct run_record *r, double begin_s, double end_s,
		       struct steady_au *out);

/* What is kept of a result after it was read: what tables, comparisons and findings say of many
 * results is said from this. The whole result (its JSON, the times of its steps) is there only
 * while its own checks run, one result at a time. */

#define RUN_PARTS 64
enum run_part_kind { PART_STEPS, PART_STAMPS, PART_FIGURES, PART_KINDS };

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
	/* Means over the ranks' training times: waiting for data, and all that
	 * is neither this nor computation (meeting the other ranks, what was late), as shares of
	 * wall time, percent; NaN when a file is missing. */
	double wait_share, other_share;
	char others[128];    /* the largest parts of other_share; "": not known */
	uint64_t steps;      /* of the first epoch of rank 0; 0: not known */
	double sample_bytes; /* of one sample as configured; NaN */
	double step_s;
	struct steady_au steady;
	double target; /* metric.au in percent; NaN */
	struct need need;
	/* How many accelerators the whole run fed at 100 %, as result.json has it, else by
	 * whole_throughput, and at most as many as it had; NaN when it is not known. */
	double fed;
	double fed_stated;    /* that of result.json where it has a need; else by the workload */
	double returned_rate; /* bytes/s that requests returned over the whole run; NaN */
	double payload_mean;
	double shown[SHOWN_FIGURES + 1]; /* of result.json, by number; NaN */
	/* What gave the bytes: "storage", "at_least", "run", "cache" ... (result/supply.h); "": not
	 * known. Heap. */
	char *supply;
	/* Whole-run AU as it is predicted with the framework's own costs, or without them in a run
	 * that had them: percent, NaN; and the sentence, heap, "". */
	double costs_au;
	char *costs_text;
	enum cause cause; /* what the run says limited it */
	/* what the run says of itself; seal: the digest of its result.json */
	char *run_id, *workload, *seal, *status, *claim_storage, *claim_instead, *claim_text,
		*build; /* heap; NULL */
	struct str_list taken;
	struct str_list servers; /* that its store talked to, with what they were asked */
	char *unsteady;          /* text of its verdict "steady" when that is bad; NULL */
	/* where its bytes came from */
	bool in_memory;      /* a dataset in memory */
	char *mount;         /* where the file system of the dataset is mounted; NULL */
	double cached_share; /* sides_cached_share */
	double samples, data_bytes;
	/* its waits, all of them; "": too few to tell one run from another */
	char waits[SHA256_HEX];
	struct step_marks *marks; /* readback/step_marks.h; NULL */
	/* What no other run has in common with it by chance: hashes of times, stamps and figures of
	 * single epochs, the least RUN_PARTS of all. The lowest bits are an enum run_part_kind. */
	uint64_t *part; /* heap, sorted; NULL */
	size_t parts;
	/* what it read, or wrote, and where */
	bool generates;
	char *data_folder; /* heap; "" */
	int64_t train_files, batch;
};

/* From a whole record. Release with facts_release. */
void facts_find(struct record_facts *f, const struct run_record *r);
void facts_release(struct record_facts *f);

/* One block of training or one evaluation of one rank, as N_output.json lists it. Seconds. */
struct record_phase {
	double *load, *compute, *proc; /* per step; proc: from asking for a batch to its end */
	size_t loads, computes, procs;
	double au, throughput; /* NaN when the file has none */
	double begin_s;        /* since the run's start; NaN */
	double wall_s;         /* from the two timestamps; NaN when one is missing */
	double duration_s;     /* as the file states it, with two decimals; NaN */
};

struct record_checkpoint {
	char name[32]; /* "save_ckpt1" */
	bool load;
	double begin_s, seconds, gib_per_s; /* begin_s: since the run's start */
};

struct record_epoch {
	uint32_t number;
	struct record_phase *block;
	size_t blocks;
	struct record_phase eval;
	bool has_eval;
	double eval_begin_s;
	struct record_checkpoint *checkpoint;
	size_t checkpoints;
	double begin_s, end_s; /* since the run's start; NaN when not known */
	double train_wall_s; /* begin of the first block to end of the last, or of checkpoints after
				it */
	double duration_s;   /* of the training part as the file states it; NaN */
	double cached_bytes; /* of the host's page cache at its start; NaN */
	char memory_digest[SHA256_HEX]; /* of what the host's memory held then; "": unknown */
	char times_digest[SHA256_HEX];  /* of the times of its steps; "": fewer than 4 of them */
};

struct record_rank {
	struct record_epoch *epoch;
	size_t epochs;
	size_t epochs_listed; /* in N_output.json */
	char hostname[128];
	bool found;                   /* both files can be read */
	double memory_gib;            /* of its host; NaN */
	char host_digest[SHA256_HEX]; /* of processors and memory of its host; "": unknown */
	json_t *output, *stats;       /* the files, where they are small (record_file); NULL */
};

/* A list of summary.json with its statistics. count 0: the key was absent. */
struct record_series {
	double *v;
	size_t n;
	double mean, stdev; /* as written in the file; NaN when absent */
};

struct run_record {
	char *folder;   /* that holds summary.json */
	char name[256]; /* for tables: the workload's name and the last parts of the path */
	bool ours;      /* this program wrote it, whether or not its result.json is left */
	char *broken;   /* why it cannot be judged, a sentence that names the file: without a whole
			 * result.json and summary.json, nothing but folder, name and ours is set;
			 * NULL: it can */
	json_t *summary, *result; /* result: NULL for DLIO's */
	struct node *config;      /* .hydra/config.yaml as written, root key "workload"; NULL */
	struct workload workload; /* typed, defaults filled in; valid when has_workload */
	bool has_workload;
	struct str_list overrides; /* .hydra/overrides.yaml */
	char model[128];           /* name of the workload */
	char system[128]; /* of a result in a tree of MLPerf Storage: "HPE/e2000"; "": none */
	struct str_list
		factors; /* what sets it apart: "reader.batch_size=14"; from the design of
			  * the study, else the overrides without what says where files lie */
	uint32_t ranks, hosts;
	char hostname[128];
	double begin_s, end_s;               /* Unix time, local zone of the reader; NaN */
	double host_memory_bytes;            /* of one host */
	double memory_bytes;                 /* of all hosts */
	uint32_t memory_slots, memory_empty; /* entries of host_memory_GB; those that are 0 */
	/* Of DLIO: the dataset by summary.json, which has it without a configuration. NaN */
	double files, samples_per_file, data_bytes;
	bool trained;
	bool checkpointed; /* DLIO's figures of checkpoints are there */
	/* DLIO, where no rank left the times of its steps: rank 0 has what the stamps of its epochs
	 * say, and is not `found`. */
	bool stamps_alone;
	enum dlio_version dlio; /* that wrote it, where it is none of ours */
	bool mlperf; /* of a run of MLPerf Storage's harness, by the name of its configuration */
	struct record_series au, throughput, io; /* of training; io: MiB/s, mean and stdev only */
	struct record_series eval_au, eval_throughput;
	double checkpoint_gib;
	double save_gib_per_s, load_gib_per_s; /* means that DLIO states; NaN */
	struct record_rank *rank;              /* `ranks` of them; one without files has 0 epochs */
	uint32_t ranks_found;
	struct str_list notes;  /* sentences: files that are missing */
	struct str_list damage; /* sentences: files that cannot be read or are damaged, and those of
				 * this program that are missing */
	struct record_facts facts;
	struct configuration *configuration; /* readback/configuration.h; NULL: not asked for */
	/* Of audit_alone. */
	struct record_alone {
		struct str_list damage, changed; /* sentences: damaged files, digests that differ */
		struct str_list failed;          /* names of checks */
	} alone;
};

/* A file of its folder, as result_folder_json gives it; one that was read and kept is not read
 * again. Of a whole record. */
json_t *record_file(const struct run_record *r, const char *name, struct err *e);
/* An object or list of its result.json (F_RUN_TRAINING); NULL: there is none. */
const struct part *record_part(const struct run_record *r, enum field id);
/* What its result.json says of a key of the workload (F_CONFIGURED_VALUE); NULL: nothing. */
const json_t *record_configured(const struct run_record *r, const char *key, enum field id);

/* What is not kept: after it a record has no summary, result, config, workload and no times of
 * steps. About 2 KiB stay, and what records_visit was asked to keep. */
void record_settle(struct run_record *r);
void configuration_release(struct configuration *c);

/* What is done with each result while it is whole. */
struct record_visit {
	void *arg;
	struct texts *texts; /* not NULL: the configurations are kept, by these texts */
	/* How many there are; before all others. */
	void (*begin)(void *arg, size_t n);
	/* Of result i, beside others in other threads. */
	void (*look)(void *arg, size_t i, struct run_record *r);
	/* In the order of the results, one after the other; the record is settled. */
	void (*take)(void *arg, size_t i, struct run_record *r);
};

/* The results in or below each of `path` (up to RECORD_DEPTH_MAX levels), sorted, without
 * duplicates. ERR_USAGE when a path holds none. One that cannot be read is in the list, too
 * (run_record.broken). Sizes are bounded; DLIO's NaN and Infinity are understood. Release with
 * records_release in any case. */
#define RECORD_DEPTH_MAX 12
struct records {
	struct run_record *v;
	size_t n;
	struct str_list running; /* sentences: folders of runs that have left no result so far */
	struct str_list unread;  /* sentences: folders that cannot be searched */
	struct str_list sums;    /* paths: files that sum up several of them (readback/sums.h) */
};
int records_load(struct records *out, const char *const *path, size_t n, struct err *e);
/* One of them, which can always be read: see run_record.broken. Release with record_release. */
void record_load(struct run_record *r, const char *folder);
/* 0 when the folder of a run of this program holds a whole result; else the sentence about the
 * first file that is missing, damaged or cannot be read. Digests are not compared. */
int record_check(const char *folder, struct err *e);
/* The same, settled: each is whole only while it is looked at, and as many are as there are
 * processors. Any function of `v` may be NULL. */
int records_visit(struct records *out, const char *const *path, size_t n,
		  const struct record_visit *v, struct err *e);
void records_release(struct records *r);
/* Of one that was taken out of the list. */
void record_release(struct run_record *r);
