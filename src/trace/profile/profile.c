/* The subjects of a profile, in the order in which each can use what those before it found. */
#include "trace/profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "trace/profile/profile_parts.h"
#include "workload/backend.h"

/* As before they were found. */
static void forget_visits(struct profile *a)
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
	a->visit_room = 0;
	a->container = a->stream = false;
}

void profile_release(struct profile *a)
{
	forget_visits(a);
	texts_release(&a->names);
	job_servers_release(&a->servers);
	free(a->role);
	free(a->group_of);
	free(a->group);
	free(a->apart_until_ns);
	free(a->step);
	free(a->held);
	free(a->task);
	profile_feed_end(a->fed);
	*a = (struct profile){0};
}

/* What a log that lacks a part cannot tell: how much there was. */
static void admit_gaps(struct profile *a)
{
	static const enum profile_key counted[] = {
		PROFILE_FILES,       PROFILE_DATA_BYTES,   PROFILE_SAMPLES,
		PROFILE_STEPS,       PROFILE_EPOCHS,       PROFILE_CHECKPOINTS,
		PROFILE_EVALUATIONS, PROFILE_EVAL_SAMPLES, PROFILE_EVAL_FILES};
	bool whole = true;

	/* of processes that read samples; where none is known, of all */
	for (size_t i = 0; i < a->readers; i++)
		whole &= a->job->process[a->reader[i].process].complete;
	for (size_t i = 0; i < a->job->processes && a->readers == 0; i++)
		whole &= a->job->process[i].complete;
	for (size_t i = 0; !whole && i < sizeof(counted) / sizeof(counted[0]); i++)
		if (profile_has(a, counted[i])) {
			double n = a->value[counted[i]].number;

			profile_unknown(a, counted[i], FACT(JOB_INCOMPLETE, n))->in_log = n;
		}
}

/* Of a job that shows no training, only what it read and wrote is told: there are no samples,
 * batches or epochs, and what was written is no checkpoint. */
static void doubt_training(struct profile *a)
{
	static const enum profile_key of_training[] = {PROFILE_RANKS,   PROFILE_EPOCHS,
						       PROFILE_SAMPLES, PROFILE_BATCH,
						       PROFILE_WORKERS, PROFILE_CHECKPOINTS};

	if (!a->no_training.reason)
		a->no_training = a->job->sees & JOB_SEES_REQUESTS ? FACT(JOB_NOTHING_TRAINED)
								  : FACT(JOB_COUNTERS_ONCE);
	for (int f = 0; f < PROFILE_VALUES; f++)
		if (f != PROFILE_FRAMEWORK)
			a->value[f] = (struct profile_value){0};
	for (size_t i = 0; i < sizeof(of_training) / sizeof(of_training[0]); i++)
		profile_unknown(a, of_training[i], a->no_training);
	free(a->step);
	a->step = NULL;
	a->steps = a->step_room = 0;
	a->tasks = 0;
}

/* Processes that Python started anew, where the log shows no pipes: each may be a worker, or a rank
 * that reads by itself. */
static void doubt_spawned(struct profile *a)
{
	static const enum profile_key of_crew[] = {
		PROFILE_RANKS,      PROFILE_WORKERS,     PROFILE_PERSISTENT, PROFILE_STEPS,
		PROFILE_PREFETCH,   PROFILE_STEP,        PROFILE_COMPUTE,    PROFILE_SHARDING,
		PROFILE_EPOCHS,     PROFILE_EVALUATIONS, PROFILE_EVAL_FILES, PROFILE_EVAL_SAMPLES,
		PROFILE_EVAL_BATCH, PROFILE_LIMIT,       PROFILE_WAITING};
	const struct job *job = a->job;
	bool spawned = false;

	for (size_t i = 0; i < a->readers && !(job->sees & JOB_SEES_PIPES); i++) {
		const struct job_process *p = &job->process[a->reader[i].process];

		spawned |= p->parent == JOB_NONE && strstr(p->command, "multiprocessing.spawn");
	}
	for (size_t i = 0; spawned && i < sizeof(of_crew) / sizeof(of_crew[0]); i++)
		if (profile_has(a, of_crew[i]))
			profile_unknown(a, of_crew[i], FACT(JOB_SPAWNED));
}

#define READ_BEFORE 10 /* of the bytes, at least: of files that are mapped, which have a header */
#define SAVES_LEAST 2  /* checkpoints, where nothing but they and mapped data are seen */

/* Whether a job that maps its data saved its state several times. */
static bool saves_often(const struct profile *a)
{
	int64_t saves = 0;

	for (size_t g = 0; g < a->groups; g++) {
		const struct file_group *v = &a->group[g];

		if (v->role == FILE_CHECKPOINT && v->bytes_written > 0 &&
		    profile_is_checkpoint_name(v->extension))
			saves += v->opens > (int64_t)v->files ? v->opens : (int64_t)v->files;
	}
	return saves >= SAVES_LEAST;
}

/* Whether the files hold many samples each and are mapped into memory: page faults are in no log.
 */
static bool is_mapped(const struct profile *a)
{
	for (size_t g = 0; g < a->groups; g++) {
		const struct file_group *v = &a->group[g];
		const struct format_facts *f = v->format;

		if (v->role == FILE_DATASET && 2 * v->maps >= (int64_t)v->files &&
		    (f ? f->flags & FORMAT_MAPS : v->bytes_read < v->bytes / READ_BEFORE))
			return true;
	}
	return false;
}

static void admit_mappings(struct profile *a)
{
	static const enum profile_key of_reading[] = {
		PROFILE_RANKS,   PROFILE_SAMPLES,     PROFILE_SAMPLES_PER_FILE,
		PROFILE_EPOCHS,  PROFILE_ORDER,       PROFILE_WORKERS,
		PROFILE_BATCH,   PROFILE_STEPS,       PROFILE_PREFETCH,
		PROFILE_COMPUTE, PROFILE_EVALUATIONS, PROFILE_LIMIT};

	/* where steps are, these are told by pipes, too */
	static const enum profile_key by_pipes[] = {PROFILE_RANKS, PROFILE_EPOCHS, PROFILE_WORKERS,
						    PROFILE_PREFETCH, PROFILE_COMPUTE};

	for (size_t i = 0; i < sizeof(of_reading) / sizeof(of_reading[0]); i++) {
		bool told = false;

		for (size_t k = 0; k < sizeof(by_pipes) / sizeof(by_pipes[0]); k++)
			told |= a->steps > 0 && of_reading[i] == by_pipes[k] &&
				profile_has(a, by_pipes[k]);
		if (a->value[of_reading[i]].how != HOW_SEEN && !told)
			profile_unknown(a, of_reading[i], FACT(JOB_MAPPED));
	}
}

/* Places that hold several samples each. */
static void admit_pieces(struct profile *a)
{
	static const enum profile_key of_samples[] = {
		PROFILE_SAMPLES, PROFILE_SAMPLES_PER_FILE, PROFILE_SAMPLE_BYTES,
		PROFILE_SIZES,   PROFILE_REQUESTS,         PROFILE_BATCH};

	for (size_t i = 0; i < sizeof(of_samples) / sizeof(of_samples[0]); i++)
		profile_unknown(a, of_samples[i], FACT(JOB_PIECES_AGAIN));
}

static void make(struct profile *a)
{
	bool mapped;

	a->looks_end_ns = INT64_MIN;
	profile_framework(a);
	job_servers_find(a->job, &a->servers);
	profile_roles(a);
	profile_visits(a);
	profile_crew(a);
	if (a->apart_until_ns) { /* again, without the threads that are apart */
		forget_visits(a);
		profile_visits(a);
		profile_crew(a);
	}
	mapped = is_mapped(a);
	if (mapped) { /* workers and steps are told by pipes, too */
		forget_visits(a);
		profile_crew(a);
	}
	if (a->container)
		profile_join_places(a);
	profile_epochs(a);
	profile_dataset(a);
	profile_kept_open(a);
	profile_counters(a);
	profile_order(a);
	profile_batches(a);
	if (a->larger) {
		profile_shard_counts(a);
		(void)profile_held_samples(a);
	}
	if (a->stream || a->larger)
		profile_held_batches(a);
	if (a->stream)
		profile_shuffle_ahead(a);
	profile_marks(a);
	if (a->again)
		admit_pieces(a);
	a->trains |= mapped && saves_often(a);
	if (!a->trains) {
		doubt_training(a);
		return;
	}
	profile_saves(a);
	profile_limit(a);
	doubt_spawned(a);
	if (mapped)
		admit_mappings(a);
	admit_gaps(a);
}

void profile_make(struct profile *a, const struct job *job)
{
	*a = (struct profile){.job = job, .fed = profile_feed(job)};
	if (a->fed)
		a->job = a->fed;
	make(a);
}

void profile_make_files(struct profile *a, const struct profile *of)
{
	*a = (struct profile){.job = of->job, .files_of_sample = of->companions};
	make(a);
}
