#pragma once
/* The subjects of a profile, in the order in which profile_make goes through them. Each fills its
 * values and its part of the tables from what those before it have found. Private to this folder.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "trace/profile/profile.h"

/* A copy of the job in which the requests to files of programs that feed a process over a pipe are
 * that process's; NULL: there are no such programs. It shares all but the events with the job. */
struct job *profile_feed(const struct job *job);
void profile_feed_end(struct job *fed);

/* The role of each file, and the groups. */
void profile_roles(struct profile *a);
/* Groups in the order in which they are printed, and the roles of files as their groups have them;
 * after a group's role changed. */
void profile_sort_groups(struct profile *a);
/* Leaves the samples of which `keep` is true, and their visits. */
void profile_keep_samples(struct profile *a, const bool *keep);
/* Which generation of workers, counted over all ranks, is the first of each rank, and of all how
 * many there are behind them. */
size_t *profile_rounds(const struct profile *a);
/* Whether a part of the name is one that parts of datasets for evaluation have: val, test. */
bool profile_is_evaluation_name(const char *name);

/* Whether an extension is one of checkpoints, and of hardly anything else. */
bool profile_is_checkpoint_name(const char *extension);

/* The format of files with this extension, which may be that of a compressed archive; NULL. Not of
 * one that many formats have. */
const struct format_facts *profile_format_of(const char *extension);
/* Of compressed archives, "tar.gz": the compressor; NULL. */
const char *profile_compressor_of(const char *extension);
/* Where that begins in the last part of a path; NULL: it has none of these. */
const char *profile_double_extension(const char *base);
/* Formats of groups whose extension many formats have, by the names of their files, and by their
 * first bytes where they are at hand. After the groups are made. */
void profile_shard_formats(struct profile *a);
/* That of the dataset's files, where it is one of ours; NULL. */
const struct format_facts *profile_format(const struct profile *a);
/* Whether a file of it is one image. */
bool profile_is_image(const struct profile *a);
/* Looks into the files for how many samples each holds. */
void profile_shard_counts(struct profile *a);
/* The values of samples of streams by that; false: it is not known of all files. */
bool profile_held_samples(struct profile *a);
/* Their batches, by the steps. After profile_batches. */
void profile_held_batches(struct profile *a);
/* The framework, by its libraries, memory, threads and commands. */
void profile_framework(struct profile *a);
/* Visits and samples; `reader` of a visit is the thread until profile_crew. */
void profile_visits(struct profile *a);
/* Joins places of files that are read one behind the other as one sample. After profile_crew. */
void profile_join_places(struct profile *a);
/* Trainers, readers, generations of workers. */
void profile_crew(struct profile *a);

/* Passes over the samples: parts of the dataset, epochs, evaluations, order of samples. */
void profile_epochs(struct profile *a);
/* Format, files, samples and their sizes. After profile_epochs. */
void profile_dataset(struct profile *a);
/* Whether readers keep files open between samples. After profile_dataset. */
void profile_kept_open(struct profile *a);
void profile_order(struct profile *a);
/* Batches, steps, prefetch, computation. After profile_epochs. */
void profile_batches(struct profile *a);
/* Computation where the application marked it: instead of what was inferred. After
 * profile_batches. */
void profile_marks(struct profile *a);
/* Buffers in which workers shuffle the samples of streams. After profile_held_batches. */
void profile_shuffle_ahead(struct profile *a);
/* Checkpoints. After profile_batches. */
void profile_saves(struct profile *a);
/* Of a log that has only counters: in place of what goes by requests. After profile_dataset. */
void profile_counters(struct profile *a);
/* Decoding, page cache, waiting, what limited the job. After profile_saves. */
void profile_limit(struct profile *a);

/* ---- observations of one value ---- */

/* Observations of one value of a job, and what most of them say. Zeroed structs are empty; whoever
 * has one frees its array. */
struct values {
	double *v;
	size_t n, room;
};

void values_add(struct values *s, double v);
void values_sort(double *v, size_t n);
/* These sort them; 0 of none. Of an even number there are two in the middle: the greater of them,
 * and their mean. */
double values_middle(struct values *s);
double values_median(struct values *s);
/* 0 of none. */
double values_mean(const struct values *s);
/* Of a sample: divided by n - 1. -1 of less than two. */
double values_stdev(const struct values *s);
/* How many lie within 10 % of `v`. */
uint64_t values_near(const struct values *s, double v);

/* Counts of small numbers: how often each came. */
#define COUNTS_MAX 65536
struct counts {
	uint32_t *of; /* COUNTS_MAX + 1; the last: longer ones */
	uint64_t all;
};

void counts_add(struct counts *c, size_t n);
/* The most frequent number, the least of equals, and how often it came; 0 of none. */
uint32_t counts_mode(const struct counts *c, uint64_t *agree);
/* The same of numbers from `first` on and below `end`: of[i] is how often i came. */
uint32_t mode_of(const uint32_t *of, size_t first, size_t end, uint64_t *agree);

/* ---- messages over pipes ---- */

/* Messages over the pipes between a trainer and its workers: Python's connections, which send four
 * bytes of length and then the message. Index pipes bring a batch's indices to a worker, result
 * pipes its batches to the trainer. */
struct message {
	uint32_t pipe;           /* its file */
	uint32_t thread, writer; /* that read and wrote it; JOB_NONE */
	int64_t ready_ns;        /* its first bytes were written; JOB_UNKNOWN */
	int64_t asked_ns;        /* the reader began to wait for it, or to read it */
	int64_t begin_ns;        /* it was there and is being read */
	int64_t taken_ns;        /* it and what it refers to (sockets, shared memory) was taken */
	uint64_t position;       /* in the stream of the pipe */
	bool waited;             /* asked_ns is the begin of a wait */
	bool fetched;            /* something that it refers to was taken */
};

struct messages {
	struct message *v; /* by pipe, then in their order */
	size_t n, room;
	struct map first; /* of each pipe */
};

/* Pipes that hold anything but such messages have none. */
void messages_find(struct messages *m, const struct job *job);
void messages_release(struct messages *m);
/* Those of one pipe: the first, and how many. */
const struct message *messages_of(const struct messages *m, uint32_t pipe, size_t *n);

/* ---- batches while they are found ---- */

/* Batches of a job while they are found: by the messages of pipes, or by gaps between samples.
 * Private to profile_batches. */
struct batches {
	struct profile *a;
	struct messages messages;
	uint32_t *index_pipe; /* of each reader; JOB_NONE */
	uint32_t *worker_of;  /* of each process: the reader with an index pipe; JOB_NONE */
	uint32_t *sequence; /* of each reader: itself, or the first of threads that share batches */
	size_t *begin;      /* of each sequence in `visit`; readers + 1 */
	uint32_t *visit;    /* by sequence, in their order */
	bool threads;       /* some readers are threads that share batches */
	bool unread;        /* batches came for which nothing was read, */
	bool many_in_file;  /* from the begin on: files hold several samples */
	uint32_t begins;    /* epochs that workers were told to begin; 0: not known */
	/* of training, of evaluation: */
	uint32_t batch[2];
	double threshold_s[2]; /* between short and long gaps; 0: none */
};

static inline bool has_workers(const struct profile *a)
{
	return profile_has(a, PROFILE_WORKERS) && a->value[PROFILE_WORKERS].number > 0;
}

static inline bool profile_is_pipe(const struct job *job, uint32_t file)
{
	return file != JOB_NONE && job->file[file].kind == JOB_FILE_PIPE;
}

/* Of a number above 0: rounded down. */
static inline unsigned log2_of(int64_t v)
{
	return 63 - (unsigned)__builtin_clzll((unsigned long long)v);
}

/* The size of a file, or how far it was read. */
static inline double profile_file_bytes(const struct job_file *f)
{
	return (double)(f->size > 0 ? f->size : f->counts.read_end);
}

static inline bool is_eval(const struct profile *a, const struct visit *v)
{
	return a->sample[v->sample].evaluation;
}

static inline struct visit *batches_visit(const struct batches *b, size_t i)
{
	return &b->a->visit[b->visit[i]];
}

/* Whether the i-th follows the one before it in its sequence, in one pass. */
bool batches_follows(const struct batches *b, size_t i);
/* The time of a step: the median. */
double batches_say_step(struct profile *a, struct values *period, struct fact rule);
/* Batches, steps, prefetch and computation from what workers and the trainer tell each other. False
 * when the pipes show no batch: nothing was set. */
bool batches_by_pipes(struct batches *b);
/* The same from the gaps in which readers wait; says why what cannot be told. */
void batches_by_gaps(struct batches *b);
