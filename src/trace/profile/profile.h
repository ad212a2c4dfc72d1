#pragma once
/* What a job did, as far as its log shows it: roles of files, visits of samples, epochs, order,
 * loader, checkpoints, what limited it. Each value says how it is known. Filled once by
 * profile_make; everything that prints or writes workloads reads this and the job.
 *
 * Memory beside the job: 64 bytes a visit of a sample, 24 a sample, some tens a file and thread.
 * Time: the events are gone through a fixed number of times; visits are sorted. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "trace/job_log.h"
#include "trace/profile/job_servers.h"
#include "words/words.h"

struct format_facts;

enum profile_how {
	HOW_ABSENT,   /* the job has no such thing, as far as the log shows */
	HOW_SEEN,     /* counted in the log */
	HOW_INFERRED, /* by a rule */
	HOW_ASSUMED,  /* a usual value, which nothing in the log speaks for */
	HOW_UNKNOWN,  /* not identifiable; its rule is the reason */
};

/* A value and how it is known. */
struct profile_value {
	enum profile_how how;
	bool at_most;       /* the number is an upper bound */
	bool at_least;      /* a lower one */
	double number;      /* in the unit of its row; of HOW_UNKNOWN without meaning */
	double in_log;      /* HOW_UNKNOWN since the log lacks a part: as many as it has; else 0 */
	double stdev;       /* of the observations; negative: none */
	const char *text;   /* a word or a remark; NULL */
	struct fact rule;   /* or why it is not identifiable; no reason: none */
	uint64_t agree, of; /* observations that agree with the value; of == 0: not counted */
};

enum profile_key {
	PROFILE_FRAMEWORK,
	PROFILE_RANKS,
	PROFILE_FORMAT,
	PROFILE_FOLDER,
	PROFILE_FILES,
	PROFILE_DATA_BYTES,
	PROFILE_SAMPLES,
	PROFILE_SAMPLES_PER_FILE,
	PROFILE_SAMPLE_BYTES,
	PROFILE_SIZES,
	PROFILE_REQUESTS,
	PROFILE_KEPT_OPEN,
	PROFILE_EPOCHS,
	PROFILE_ORDER,
	PROFILE_SHUFFLE_WINDOW,
	PROFILE_SHARDING,
	PROFILE_WORKERS,
	PROFILE_PERSISTENT,
	PROFILE_WORKER_START,
	PROFILE_WORKER_INIT,
	PROFILE_BATCH,
	PROFILE_STEPS,
	PROFILE_PREFETCH,
	PROFILE_STEP,
	PROFILE_COMPUTE,
	PROFILE_DECODE,
	PROFILE_CHECKPOINTS,
	PROFILE_CHECKPOINT_STEPS,
	PROFILE_CHECKPOINT_SECONDS,
	PROFILE_CHECKPOINT_BYTES,
	PROFILE_CHECKPOINT_FILES,
	PROFILE_CHECKPOINT_WRITE,
	PROFILE_CHECKPOINT_SYNC,
	PROFILE_CHECKPOINT_RENAME,
	PROFILE_CHECKPOINT_STOPS,
	PROFILE_EVALUATIONS,
	PROFILE_EVAL_FILES,
	PROFILE_EVAL_SAMPLES,
	PROFILE_EVAL_BATCH,
	PROFILE_EVAL_COMPUTE,
	PROFILE_CACHE,
	PROFILE_WAITING,
	PROFILE_LIMIT,
	PROFILE_VALUES
};

enum profile_unit {
	UNIT_COUNT,
	UNIT_BYTES,
	UNIT_SECONDS,
	UNIT_SHARE, /* 0 to 1 */
	UNIT_WORD,  /* only `text` */
	UNIT_FLAG,  /* 0 or 1 */
};

struct profile_row {
	const char *key;    /* in JSON */
	const char *people; /* "batch size" */
	enum profile_unit unit;
	bool detail; /* the text has it with `verbose` alone */
};

extern const struct profile_row profile_rows[PROFILE_VALUES];
extern const char
	*const profile_how_names[]; /* "seen", "inferred", ... of JSON; by enum profile_how */

/* The order of samples, where PROFILE_ORDER has a value. */
enum job_order {
	JOB_ORDER_NAMES,
	JOB_ORDER_NUMBERS,     /* in the names */
	JOB_ORDER_NEARLY_SAME, /* nearly by name, the same in each epoch */
	JOB_ORDER_RANDOM_SAME, /* the same in each epoch */
	JOB_ORDER_REPLACEMENT, /* drawn with replacement */
	JOB_ORDER_WINDOW,      /* shuffled within a window */
	JOB_ORDER_RANDOM,      /* of one epoch */
	JOB_ORDER_RANDOM_ANEW, /* another one in each epoch */
};

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

/* Files of one role in one folder (or in sibling folders) with one extension. */
struct file_group {
	enum file_role role;
	const char *folder;    /* of profile->names; "" for names without folders */
	const char *extension; /* "npz", lower case; ""; of compressed archives "tar.gz" */
	const struct format_facts *format; /* NULL: none of ours */
	const char *now; /* its name where the first bytes tell it, and not the extension; NULL */
	size_t files;
	int64_t bytes; /* sum of the known sizes */
	int64_t sized; /* files whose size is known */
	bool regular;  /* any of them is a regular file or an object */
	bool objects;  /* any of them is an object of a server */
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
	int64_t offset; /* of the sample's first byte; 0 of a whole file */
	uint32_t sample, reader;
	uint32_t requests; /* reads */
	uint32_t epoch;    /* from 0 */
	uint32_t batch;    /* of the reader, from 0: visits of one have one number; JOB_NONE */
};

/* A process or thread that reads samples. */
struct job_reader {
	uint32_t process, thread; /* thread: JOB_NONE where the process is one reader */
	uint32_t rank;            /* index in profile->trainer */
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

/* What begins of epochs cost the ranks, as far as the log shows them: from the creation of workers,
 * or the first request of an epoch, to its first batch, and the end of workers behind the last. */
struct epoch_starts {
	size_t n;        /* epochs of all ranks; 0: not seen */
	double all_s;    /* sum */
	double spared_s; /* of it, what workers that live through epochs do not take */
	double whole_s;  /* of all epochs, with this; 0: not known */
	double other_s;  /* of it, waits for further batches of an epoch */
};

/* A batch that a worker was asked for. */
struct task {
	uint32_t reader;
	int64_t begin_ns;    /* the worker took the message */
	int64_t answered_ns; /* its answer was written; JOB_UNKNOWN */
};

/* Requests of a visit that are not those between its begin and the next one's. */
struct piece {
	size_t first, n; /* in piece_event */
	uint32_t task;   /* of its reader, from 0 */
};

struct profile {
	const struct job *job;
	/* The same, where programs feed processes of it: these have their requests. NULL: none
	 * does. */
	struct job *fed;
	struct texts names;
	struct profile_value value[PROFILE_VALUES];
	uint8_t *role;            /* enum file_role, of each file of the job */
	uint32_t *group_of;       /* of each file; JOB_NONE */
	struct file_group *group; /* dataset first, then by bytes moved */
	size_t groups;
	int64_t *held; /* samples that each file holds, by its content; -1: not known; NULL: of none
			*/
	struct job_sample *sample;
	size_t samples;
	struct visit *visit;
	size_t visits;
	struct job_reader *reader;
	size_t readers;
	struct trainer *trainer;
	size_t trainers;
	int64_t *apart_until_ns;  /* of each thread of the job: until then it only looks at samples,
				     beside those that train; INT64_MAX: always; NULL: none does */
	int64_t looks_end_ns;     /* before, all looked at the files; INT64_MIN: nobody did */
	uint32_t files_of_sample; /* of a profile in which each of them is a sample; 0 */
	struct job_servers servers;
	struct task *task; /* by reader, in their order; NULL: the log does not show them */
	size_t tasks;
	/* Of a profile by profile_make_pieces: of each visit, and the events that they point to. */
	struct piece *piece;
	uint32_t *piece_event;
	uint64_t held_most; /* samples of a file, at least; 0: not known */
	struct step *step;  /* by rank, then time; none where the log does not show them */
	size_t steps;
	/* Means of the times from a batch taken to asking for the next; 0: not seen. */
	double between_s, eval_between_s; /* of training, of evaluation */
	/* What the trainer takes of a step of training whatever it waits for its batch, from one
	 * batch to the next: the median, and the mean; 0: not seen. */
	double own_s, own_mean_s;
	double shuffle_initial; /* samples in a shuffle buffer at the first batch; 0: not seen */
	struct epoch_starts starts; /* of training */
	uint32_t companions;        /* files of a sample, each read after the other; 0: one */
	size_t trainings;           /* that follow each other; 0: one */
	bool container;             /* files hold many samples, told apart by their places */
	bool again;  /* places of containers hold several samples: an epoch comes to them again */
	bool stream; /* files are streams of samples that the log cannot tell apart */
	bool larger; /* files hold several samples and are read in pieces larger than a batch */
	bool trains; /* the log shows a training: else no value tells of one */
	struct fact no_training; /* why it shows none */
	bool replacement;        /* samples are drawn with replacement */
	bool processes;          /* the workers are processes, not threads */
	bool pooled; /* any of them shares the pipe of its tasks with others: no loader's does */
	bool loaded; /* all that shows the framework is that its library was loaded */
	bool tensorflow; /* it is the only framework that the log shows, or beside others than
			    PyTorch */
	enum job_order order;
	size_t visit_room, step_room, task_room;
};

/* Never fails but for want of memory: what the log does not show is HOW_UNKNOWN. The job must
 * outlive the profile. */
void profile_make(struct profile *a, const struct job *job);
/* That of the same job in which each file of `of->companions` is a sample of its own. */
void profile_make_files(struct profile *a, const struct profile *of);
void profile_release(struct profile *a);
/* That of the same job in which each batch of a worker is as many visits as a batch has samples,
 * with the requests that the worker made for it: a stream shows no samples, but batches. `of` must
 * outlive it. False, and nothing is made: the log shows no batches, or not all of them. */
bool profile_make_pieces(struct profile *a, const struct profile *of);
void profile_release_pieces(struct profile *a);

/* A formatted text that lives as long as the profile. */
const char *profile_text(struct profile *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Sets a value. */
struct profile_value *profile_seen(struct profile *a, enum profile_key f, double number);
struct profile_value *profile_inferred(struct profile *a, enum profile_key f, double number,
				       struct fact rule, uint64_t agree, uint64_t of);
struct profile_value *profile_unknown(struct profile *a, enum profile_key f, struct fact reason);
/* The name of a role in this job: nothing is called a dataset or a checkpoint of a job that does
 * not train. */
const char *profile_role_name(const struct profile *a, enum file_role role);
/* Whether it has a value. */
bool profile_has(const struct profile *a, enum profile_key f);
/* The files that were trained from; NULL. */
const struct file_group *profile_main_group(const struct profile *a);
/* Whether these are objects of a server. */
static inline bool profile_is_objects(const struct profile *a)
{
	const struct file_group *main = profile_main_group(a);

	return main && main->objects;
}
/* Whether a file is of the dataset, for training or evaluation. */
static inline bool profile_is_data(const struct profile *a, uint32_t file)
{
	return file != JOB_NONE &&
	       (a->role[file] == FILE_DATASET || a->role[file] == FILE_EVALUATION);
}
/* Whether the thread of an event does not train, or not yet: a scan of the files, a check. */
bool profile_is_apart(const struct profile *a, const struct job_event *v);

/* A value without how it is known: "4", "28.2 ms", "not identifiable". */
void profile_put_value(const struct profile *a, enum profile_key f, struct buf *out);
/* The answer in words, then tables; `verbose`: the rules, too. */
void profile_print(const struct profile *a, bool verbose, struct buf *out);
/* The same as JSON. */
void profile_json(const struct profile *a, struct buf *out);
