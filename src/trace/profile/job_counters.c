/* What counters of files tell where no request is seen: files, bytes, how often each was opened,
 * sizes of requests; bytes over time. Not batches, computation or order. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "trace/profile/profile_parts.h"

#define OPENS_MAX 1024
#define FILES_MIN 8  /* of a dataset that is read again and again */
#define FILES_OF 0.9 /* of them are opened as often */
/* An open is a visit where it goes with about the bytes of the file: some formats read parts twice,
 * or leave some out. */
#define WHOLE_LEAST 0.5
#define WHOLE_MOST 2.0

/* What Python starts for a process that loads data by others that it starts anew. */
static bool is_spawned(const struct job_process *p)
{
	return strstr(p->command, "multiprocessing.spawn") != NULL;
}

static bool is_helper(const struct job_process *p)
{
	return strstr(p->command, "multiprocessing.resource_tracker") ||
	       strstr(p->command, "multiprocessing.forkserver");
}

/* The most of the spawned processes that there are at once. */
static size_t spawned_at_once(const struct job *job)
{
	size_t most = 0;

	for (size_t i = 0; i < job->processes; i++) {
		size_t now = 0;

		for (size_t k = 0; k < job->processes && is_spawned(&job->process[i]); k++)
			now += is_spawned(&job->process[k]) &&
			       job->process[k].begin_ns <= job->process[i].begin_ns &&
			       (job->process[k].end_ns == JOB_UNKNOWN ||
				job->process[k].end_ns > job->process[i].begin_ns);
		most = now > most ? now : most;
	}
	return most;
}

/* Those that Python started anew read for the others; without any, a process whose parent is not
 * known is a rank, as far as it reads. */
static void say_crew(struct profile *a)
{
	const struct job *job = a->job;
	size_t ranks = 0, workers = spawned_at_once(job);

	for (size_t i = 0; i < job->processes; i++)
		ranks += job->process[i].parent == JOB_NONE && !is_spawned(&job->process[i]) &&
			 !is_helper(&job->process[i]);
	if (ranks > 0)
		profile_inferred(a, PROFILE_RANKS, (double)ranks, FACT(JOB_NOT_FORKED), 0, 0);
	else
		profile_unknown(a, PROFILE_RANKS, FACT(JOB_SPAWNED));
	if (ranks > 0 && workers > 0 && workers % ranks == 0)
		profile_inferred(a, PROFILE_WORKERS, (double)(workers / ranks),
				 FACT(JOB_SPAWNED_AT_ONCE), 0, 0)
			->text = "processes";
	else
		profile_unknown(a, PROFILE_WORKERS, FACT(JOB_ONLY_COUNTERS));
}

/* How often files were opened, where an open reads the file; how many reads that took. */
static void say_visits(struct profile *a)
{
	bool spawned = spawned_at_once(a->job) > 0;
	AUTO_FREE uint32_t *opens = xcalloc(OPENS_MAX + 1, sizeof(*opens));
	uint32_t best;
	uint64_t files = 0, whole = 0, agree;
	double reads = 0, all_opens = 0;

	for (size_t i = 0; i < a->job->files; i++) {
		const struct job_file *f = &a->job->file[i];
		double each, bytes = profile_file_bytes(f);

		if (a->role[i] != FILE_DATASET || f->counts.opens <= 0)
			continue;
		files++;
		each = (double)f->counts.bytes_read / (double)f->counts.opens;
		if (bytes <= 0 || each < WHOLE_LEAST * bytes || each > WHOLE_MOST * bytes)
			continue;
		whole++;
		opens[f->counts.opens < OPENS_MAX ? f->counts.opens : OPENS_MAX]++;
		reads += (double)f->counts.reads;
		all_opens += (double)f->counts.opens;
	}
	best = mode_of(opens, 1, OPENS_MAX + 1, &agree);
	/* what many ranks open at once, or once, is no pass of a training */
	a->trains = files >= FILES_MIN - (spawned ? FILES_MIN / 2 : 0) && best >= 2 &&
		    (double)agree >= FILES_OF * (double)files &&
		    (spawned || profile_has(a, PROFILE_FRAMEWORK));
	if (files > 0 && (double)whole > 0.9 * (double)files && best < OPENS_MAX) {
		profile_inferred(a, PROFILE_EPOCHS, best, FACT(JOB_OPENS_READ_WHOLE), agree, files);
		profile_inferred(a, PROFILE_REQUESTS, reads / all_opens, FACT(JOB_READS_BY_OPENS),
				 0, 0)
			->text = "in the mean";
	} else {
		profile_unknown(a, PROFILE_EPOCHS, FACT(JOB_OPENS_DIFFER));
	}
}

static void say_sizes(struct profile *a)
{
	struct values size = {0};
	double sum = 0;

	for (size_t i = 0; i < a->job->files; i++)
		if (a->role[i] == FILE_DATASET && profile_file_bytes(&a->job->file[i]) > 0) {
			values_add(&size, profile_file_bytes(&a->job->file[i]));
			sum += profile_file_bytes(&a->job->file[i]);
		}
	if (size.n > 0) {
		profile_inferred(a, PROFILE_DATA_BYTES, sum, FACT(JOB_LAST_BYTE), 0, 0);
		profile_inferred(a, PROFILE_SAMPLE_BYTES, values_mean(&size),
				 FACT(JOB_LAST_BYTE_SAMPLE), 0, 0)
			->stdev = values_stdev(&size);
	}
	free(size.v);
}

static void say_samples(struct profile *a)
{
	if (profile_is_image(a)) {
		profile_inferred(a, PROFILE_SAMPLES, a->value[PROFILE_FILES].number,
				 FACT(JOB_FILE_IS_IMAGE), 0, 0);
		profile_inferred(a, PROFILE_SAMPLES_PER_FILE, 1, FACT(JOB_FILE_IS_IMAGE), 0, 0);
		return;
	}
	profile_unknown(a, PROFILE_SAMPLES, FACT(JOB_ONLY_COUNTERS));
	profile_unknown(a, PROFILE_SAMPLES_PER_FILE, FACT(JOB_ONLY_COUNTERS));
}

/* Files that were only written: each open a checkpoint, where all have as many. */
static void say_checkpoints(struct profile *a)
{
	double bytes = 0;
	int64_t opens = -1;
	uint64_t files = 0;
	bool same = true;

	for (size_t i = 0; i < a->job->files; i++) {
		const struct job_counts *c = &a->job->file[i].counts;

		if (a->role[i] != FILE_CHECKPOINT || c->bytes_written <= 0)
			continue;
		files++;
		bytes += (double)c->bytes_written;
		same &= opens < 0 || opens == c->opens;
		opens = c->opens;
	}
	if (files == 0)
		return;
	if (same && opens > 1)
		profile_inferred(a, PROFILE_CHECKPOINTS, (double)opens,
				 FACT(JOB_OPENS_OF_CHECKPOINT), files, files);
	else
		profile_unknown(a, PROFILE_CHECKPOINTS, FACT(JOB_CHECKPOINTS_TOGETHER));
	if (same && opens > 1)
		profile_inferred(a, PROFILE_CHECKPOINT_BYTES, bytes / (double)opens,
				 FACT(JOB_BYTES_BY_CHECKPOINTS), 0, 0);
}

void profile_counters(struct profile *a)
{
	static const enum profile_key not_shown[] = {
		PROFILE_ORDER, PROFILE_BATCH,   PROFILE_STEPS, PROFILE_PREFETCH,
		PROFILE_STEP,  PROFILE_COMPUTE, PROFILE_LIMIT};

	if (a->job->sees & JOB_SEES_REQUESTS || !(a->job->sees & JOB_SEES_COUNTS))
		return;
	if (profile_has(a, PROFILE_FILES)) {
		say_visits(a);
		say_sizes(a);
		say_samples(a);
		for (size_t i = 0; i < sizeof(not_shown) / sizeof(not_shown[0]); i++)
			profile_unknown(a, not_shown[i], FACT(JOB_ONLY_COUNTERS));
		say_crew(a);
	}
	say_checkpoints(a);
}
