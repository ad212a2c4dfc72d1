/* The subjects of an account, in the order in which each can use what those before it found. */
#include "jobtrace/account/account.h"

#include <stdlib.h>
#include <string.h>

#include "jobtrace/account/account_parts.h"
#include "workload/backend.h"

/* What a log that lacks a part cannot tell: how much there was. */
static void admit_gaps(struct account *a)
{
	static const enum account_fact counted[] = {
		ACCOUNT_FILES,       ACCOUNT_DATA_BYTES,   ACCOUNT_SAMPLES,
		ACCOUNT_STEPS,       ACCOUNT_EPOCHS,       ACCOUNT_CHECKPOINTS,
		ACCOUNT_EVALUATIONS, ACCOUNT_EVAL_SAMPLES, ACCOUNT_EVAL_FILES};
	bool whole = true;

	/* of processes that read samples; where none is known, of all */
	for (size_t i = 0; i < a->readers; i++)
		whole &= a->job->process[a->reader[i].process].complete;
	for (size_t i = 0; i < a->job->processes && a->readers == 0; i++)
		whole &= a->job->process[i].complete;
	for (size_t i = 0; !whole && i < sizeof(counted) / sizeof(counted[0]); i++)
		if (account_has(a, counted[i])) {
			double n = a->fact[counted[i]].number;

			account_unknown(a, counted[i],
					account_text(a,
						     "the log is incomplete; it has %.0f, and "
						     "there may have been more",
						     n))
				->in_log = n;
		}
}

/* Files that were read once, or again in the same order, by processes without workers, and without
 * pauses: that may be anything. */
static void doubt_training(struct account *a)
{
	static const enum account_fact of_training[] = {
		ACCOUNT_RANKS,        ACCOUNT_EPOCHS,      ACCOUNT_WORKERS,
		ACCOUNT_SHARDING,     ACCOUNT_EVALUATIONS, ACCOUNT_EVAL_FILES,
		ACCOUNT_EVAL_SAMPLES, ACCOUNT_SAMPLES,     ACCOUNT_SAMPLES_PER_FILE};

	for (size_t i = 0; i < sizeof(of_training) / sizeof(of_training[0]); i++)
		if (account_has(a, of_training[i]))
			account_unknown(
				a, of_training[i],
				"nothing in the log shows that the job trained: no batches, "
				"no passes in changing order, no workers");
}

/* Processes that Python started anew, where the log shows no pipes: each may be a worker, or a rank
 * that reads by itself. */
static void doubt_spawned(struct account *a)
{
	static const enum account_fact of_crew[] = {
		ACCOUNT_RANKS,      ACCOUNT_WORKERS,     ACCOUNT_PERSISTENT, ACCOUNT_STEPS,
		ACCOUNT_PREFETCH,   ACCOUNT_STEP,        ACCOUNT_COMPUTE,    ACCOUNT_SHARDING,
		ACCOUNT_EPOCHS,     ACCOUNT_EVALUATIONS, ACCOUNT_EVAL_FILES, ACCOUNT_EVAL_SAMPLES,
		ACCOUNT_EVAL_BATCH, ACCOUNT_LIMIT,       ACCOUNT_WAITING};
	const struct job *job = a->job;
	bool spawned = false;

	for (size_t i = 0; i < a->readers && !(job->sees & JOB_SEES_PIPES); i++) {
		const struct job_process *p = &job->process[a->reader[i].process];

		spawned |= p->parent == JOB_NONE && strstr(p->command, "multiprocessing.spawn");
	}
	for (size_t i = 0; spawned && i < sizeof(of_crew) / sizeof(of_crew[0]); i++)
		if (account_has(a, of_crew[i]))
			account_unknown(a, of_crew[i],
					"Python started the processes that read anew (spawn): the "
					"log does not show whether they are ranks or workers");
}

/* Before they are found without the threads that are apart. */
static void forget_visits(struct account *a)
{
	free(a->sample);
	free(a->visit);
	free(a->reader);
	free(a->trainer);
	a->sample = NULL;
	a->visit = NULL;
	a->reader = NULL;
	a->trainer = NULL;
	a->samples = a->visits = a->readers = a->trainers = 0;
	a->visit_room = a->reader_room = 0;
	a->container = a->stream = false;
}

/* Whether the files hold many samples each and are mapped into memory: page faults are in no log.
 */
static bool is_mapped(const struct account *a)
{
	for (size_t g = 0; g < a->groups; g++) {
		const struct format_facts *f = account_format_of(a->group[g].extension);

		if (a->group[g].role == FILE_DATASET && f && f->flags & FORMAT_MAPS &&
		    2 * a->group[g].maps >= (int64_t)a->group[g].files)
			return true;
	}
	return false;
}

static void admit_mappings(struct account *a)
{
	static const enum account_fact of_reading[] = {
		ACCOUNT_RANKS,   ACCOUNT_SAMPLES,     ACCOUNT_SAMPLES_PER_FILE,
		ACCOUNT_EPOCHS,  ACCOUNT_ORDER,       ACCOUNT_WORKERS,
		ACCOUNT_BATCH,   ACCOUNT_STEPS,       ACCOUNT_PREFETCH,
		ACCOUNT_COMPUTE, ACCOUNT_EVALUATIONS, ACCOUNT_LIMIT};

	for (size_t i = 0; i < sizeof(of_reading) / sizeof(of_reading[0]); i++)
		if (a->fact[of_reading[i]].how != FACT_SEEN)
			account_unknown(a, of_reading[i],
					"the files are mapped into memory: what is read of them is "
					"not seen");
}

void account_make(struct account *a, const struct job *job)
{
	bool mapped;

	*a = (struct account){.job = job};
	account_framework(a);
	account_roles(a);
	account_visits(a);
	account_crew(a);
	if (a->apart_until_ns) {
		forget_visits(a);
		account_visits(a);
		account_crew(a);
	}
	mapped = is_mapped(a);
	if (mapped)
		forget_visits(a);
	account_epochs(a);
	account_dataset(a);
	account_kept_open(a);
	account_counters(a);
	account_order(a);
	account_batches(a);
	account_marks(a);
	if (a->visits > 0 && !a->trains)
		doubt_training(a);
	account_saves(a);
	account_limit(a);
	doubt_spawned(a);
	if (mapped)
		admit_mappings(a);
	admit_gaps(a);
}
