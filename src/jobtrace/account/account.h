#pragma once
/* What a job did, as far as its log shows it: roles of files, visits of samples, epochs, order,
 * loader, checkpoints, what limited it. Each value says how it is known. Filled once by
 * account_make; everything that prints or writes workloads reads this and the job.
 *
 * Memory beside the job: 56 bytes a visit of a sample, 24 a sample, some tens a file and thread.
 * Time: the events are gone through a fixed number of times; visits are sorted. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "jobtrace/job_log.h"

enum fact_how {
	FACT_ABSENT,   /* the job has no such thing, as far as the log shows */
	FACT_SEEN,     /* counted in the log */
	FACT_INFERRED, /* by a rule */
	FACT_ASSUMED,  /* a usual value, which nothing in the log speaks for */
	FACT_UNKNOWN,  /* not identifiable; `rule` is the reason */
};

/* A value and how it is known. */
struct fact {
	enum fact_how how;
	bool at_most;       /* the number is an upper bound */
	bool at_least;      /* a lower one */
	double number;      /* in the unit of its row; of FACT_UNKNOWN without meaning */
	double in_log;      /* FACT_UNKNOWN since the log lacks a part: as many as it has; else 0 */
	double stdev;       /* of the observations; negative: none */
	const char *text;   /* a word or a remark; NULL */
	const char *rule;   /* the rule, or why it is not identifiable; NULL */
	uint64_t agree, of; /* observations that agree with the value; of == 0: not counted */
};

enum account_fact {
	ACCOUNT_FRAMEWORK,
	ACCOUNT_RANKS,
	ACCOUNT_FORMAT,
	ACCOUNT_FOLDER,
	ACCOUNT_FILES,
	ACCOUNT_DATA_BYTES,
	ACCOUNT_SAMPLES,
	ACCOUNT_SAMPLES_PER_FILE,
	ACCOUNT_SAMPLE_BYTES,
	ACCOUNT_SIZES,
	ACCOUNT_REQUESTS,
	ACCOUNT_KEPT_OPEN,
	ACCOUNT_EPOCHS,
	ACCOUNT_ORDER,
	ACCOUNT_SHUFFLE_WINDOW,
	ACCOUNT_SHARDING,
	ACCOUNT_WORKERS,
	ACCOUNT_PERSISTENT,
	ACCOUNT_WORKER_START,
	ACCOUNT_WORKER_INIT,
	ACCOUNT_BATCH,
	ACCOUNT_STEPS,
	ACCOUNT_PREFETCH,
	ACCOUNT_STEP,
	ACCOUNT_COMPUTE,
	ACCOUNT_DECODE,
	ACCOUNT_CHECKPOINTS,
	ACCOUNT_CHECKPOINT_STEPS,
	ACCOUNT_CHECKPOINT_SECONDS,
	ACCOUNT_CHECKPOINT_BYTES,
	ACCOUNT_CHECKPOINT_FILES,
	ACCOUNT_CHECKPOINT_WRITE,
	ACCOUNT_CHECKPOINT_SYNC,
	ACCOUNT_CHECKPOINT_RENAME,
	ACCOUNT_CHECKPOINT_STOPS,
	ACCOUNT_EVALUATIONS,
	ACCOUNT_EVAL_FILES,
	ACCOUNT_EVAL_SAMPLES,
	ACCOUNT_EVAL_BATCH,
	ACCOUNT_EVAL_COMPUTE,
	ACCOUNT_CACHE,
	ACCOUNT_WAITING,
	ACCOUNT_LIMIT,
	ACCOUNT_FACTS
};

enum fact_unit {
	FACT_COUNT,
	FACT_BYTES,
	FACT_SECONDS,
	FACT_SHARE, /* 0 to 1 */
	FACT_WORD,  /* only `text` */
	FACT_FLAG,  /* 0 or 1 */
};

struct fact_row {
	const char *key;    /* in JSON */
	const char *people; /* "batch size" */
	enum fact_unit unit;
	bool detail; /* the text has it with `verbose` alone */
};

extern const struct fact_row fact_rows[ACCOUNT_FACTS];
extern const char *const fact_how_names[]; /* "seen", "inferred", ... of JSON; by enum fact_how */

enum file_role {
	FILE_OTHER,
	FILE_DATASET,
	FILE_EVALUATION, /* dataset of evaluation */
	FILE_CHECKPOINT,
	FILE_CODE,  /* programs, libraries, configuration of the system */
	FILE_LOG,   /* written in small pieces, or by its name */
	FILE_CACHE, /* written, then read */
	FILE_ROLES
};

extern const char *const file_role_names[FILE_ROLES];

/* Files of one role in one folder (or in sibling folders) with one extension. */
struct file_group {
	enum file_role role;
	const char *folder;    /* of account->names; "" for names without folders */
	const char *extension; /* "npz", lower case; "" */
	size_t files;
	int64_t bytes; /* sum of the known sizes */
	int64_t sized; /* files whose size is known */
	bool regular;  /* any of them is a regular file */
	int64_t maps;
	int64_t opens, reads, writes;      /* -1 where the log does not count them */
	int64_t bytes_read, bytes_written; /* -1 */
};

/* Something that is read as one: a file, or a place in a file. By name of the file and offset. */
struct job_sample {
	uint32_t file;
	bool evaluation;
	int64_t offset; /* of its first byte; 0 of a whole file */
	int64_t bytes;  /* the most that a visit read */
};

/* The requests of one sample in one go, by one reader. In order of their begin. */
struct visit {
	int64_t begin_ns, end_ns; /* JOB_UNKNOWN without times */
	int64_t read_ns;          /* within read calls */
	int64_t bytes;
	uint32_t sample, reader;
	uint32_t requests; /* reads */
	uint32_t epoch;    /* from 0 */
	uint32_t batch;    /* of the reader, from 0: visits of one have one number; JOB_NONE */
};

/* A process or thread that reads samples. */
struct job_reader {
	uint32_t process, thread; /* thread: JOB_NONE where the process is one reader */
	uint32_t rank;            /* index in account->trainer */
	bool worker;              /* a process or thread beside the trainer's own */
	bool left_out;            /* looked at some samples only, beside the workers */
	uint32_t round;           /* which generation of its rank's workers, from 0 */
	uint32_t number;          /* within it, from 0, in the order of their begin */
	size_t visits;
	uint32_t answers;         /* the pipe over which it answers; JOB_NONE */
	int64_t begin_ns, end_ns; /* of its life, or of its visits where that is not known */
};

/* A process that trains. */
struct trainer {
	uint32_t process;
	uint32_t thread;              /* that takes the batches; JOB_NONE */
	uint32_t rounds;              /* generations of workers */
	uint32_t epochs, evaluations; /* passes over the samples of training and of evaluation */
};

/* A batch that a trainer took from its workers, or read itself. */
struct step {
	uint32_t rank, epoch;
	bool evaluation;
	uint64_t at;      /* its number in the pass, where workers take turns */
	int64_t ready_ns; /* it lay ready; JOB_UNKNOWN */
	int64_t asked_ns; /* the trainer asked for it; JOB_UNKNOWN */
	bool waited; /* asked_ns is the begin of a wait: it is known whether it lay ready or not */
	int64_t taken_ns; /* the trainer had it */
};

struct account {
	const struct job *job;
	struct texts names;
	struct fact fact[ACCOUNT_FACTS];
	uint8_t *role;            /* enum file_role, of each file of the job */
	uint32_t *group_of;       /* of each file; JOB_NONE */
	struct file_group *group; /* dataset first, then by bytes moved */
	size_t groups;
	struct job_sample *sample;
	size_t samples;
	struct visit *visit;
	size_t visits;
	struct job_reader *reader;
	size_t readers;
	struct trainer *trainer;
	size_t trainers;
	int64_t *apart_until_ns; /* of each thread of the job: until then it only looks at samples,
				    beside those that train; INT64_MAX: always; NULL: none does */
	struct step *step;       /* by rank, then time; none where the log does not show them */
	size_t steps;
	/* Means of the times from a batch taken to asking for the next; 0: not seen. */
	double between_s, eval_between_s; /* of training, of evaluation */
	uint32_t companions;              /* files of a sample, each read after the other; 0: one */
	size_t trainings;                 /* that follow each other; 0: one */
	bool container;                   /* files hold many samples, told apart by their places */
	bool stream;      /* files are streams of samples that the log cannot tell apart */
	bool trains;      /* more than a single pass of one process over files */
	bool replacement; /* samples are drawn with replacement */
	size_t visit_room, reader_room, step_room;
};

/* Never fails but for want of memory: what the log does not show is FACT_UNKNOWN. The job must
 * outlive the account. */
void account_make(struct account *a, const struct job *job);
void account_release(struct account *a);

/* A formatted text that lives as long as the account. */
const char *account_text(struct account *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Sets a fact; `rule` lives as long as the account or the program. */
struct fact *account_seen(struct account *a, enum account_fact f, double number);
struct fact *account_inferred(struct account *a, enum account_fact f, double number,
			      const char *rule, uint64_t agree, uint64_t of);
struct fact *account_unknown(struct account *a, enum account_fact f, const char *reason);
/* Whether it has a value. */
bool account_has(const struct account *a, enum account_fact f);

/* What the job did, in a paragraph. */
void account_answer(const struct account *a, struct buf *out);
/* A value without how it is known: "4", "28.2 ms", "not identifiable". */
void account_put_value(const struct account *a, enum account_fact f, struct buf *out);
/* The answer in words, then tables; `verbose`: the rules, too. */
void account_print(const struct account *a, bool verbose, struct buf *out);
/* The same as JSON. */
void account_json(const struct account *a, struct buf *out);
