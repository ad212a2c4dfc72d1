#pragma once
/* The subjects of an account, in the order in which account_make goes through them. Each fills its
 * facts and its part of the tables from what those before it have found. Private to this folder. */
#include "jobtrace/account/account.h"

/* The role of each file, and the groups. */
void account_roles(struct account *a);
/* Groups in the order in which they are printed, and the roles of files as their groups have them;
 * after a group's role changed. */
void account_sort_groups(struct account *a);
/* Whether a part of the name is one that parts of datasets for evaluation have: val, test. */
bool account_is_evaluation_name(const char *name);

/* Whether an extension is one of checkpoints, and of hardly anything else. */
bool account_is_checkpoint_name(const char *extension);

/* Why something is not identifiable of a job whose readers were never idle. */
extern const char account_waiting_for_data[];

/* The framework. */
void account_framework(struct account *a);

/* The format of a file that is still at hand, by its first bytes: of those here, or another's name;
 * NULL. */
const char *account_format_now(const char *name);

struct format_facts;
/* The format of files with this extension; NULL. */
const struct format_facts *account_format_of(const char *extension);
/* Visits and samples; `reader` of a visit is the thread until account_crew. */
void account_visits(struct account *a);
/* Trainers, readers, generations of workers. */
void account_crew(struct account *a);
/* Threads that read for different purposes, by their names: `left_out` of those that only look, and
 * `round` of each crew of threads, the one that reads most first. Of ranks without worker processes
 * and with THREAD_KINDS_MAX kinds of names at most. Within account_crew. */
#define THREAD_KINDS_MAX 16
void account_thread_kinds(struct account *a);
/* Passes over the samples: parts of the dataset, epochs, evaluations, order of samples. */
void account_epochs(struct account *a);
/* Format, files, samples and their sizes. After account_epochs. */
void account_dataset(struct account *a);
/* Whether readers keep files open between samples. After account_dataset. */
void account_kept_open(struct account *a);
void account_order(struct account *a);
/* Batches, steps, prefetch, computation. After account_epochs. */
void account_batches(struct account *a);
/* Computation where the application marked it: instead of what was inferred. After
 * account_batches. */
void account_marks(struct account *a);
/* Checkpoints. After account_batches. */
void account_saves(struct account *a);
/* Of a log that has only counters: in place of what goes by requests. After account_dataset. */
void account_counters(struct account *a);
/* Decoding, page cache, waiting, what limited the job. After account_saves. */
void account_limit(struct account *a);
