/* What counters of files tell where no request is seen: files, bytes, how often each was opened,
 * sizes of requests; bytes over time. Not batches, computation or order. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "trace/profile/profile_parts.h"
#include "workload/backend.h"

#define OPENS_MAX 1024
/* An open is a visit where it goes with about the bytes of the file: some formats read parts twice,
 * or leave some out. */
#define WHOLE_LEAST 0.5
#define WHOLE_MOST 2.0

static double size_of(const struct job_file *f)
{
	return (double)(f->size > 0 ? f->size : f->counts.read_end);
}

/* How often files were opened, where an open reads the file; how many reads that took. */
static void say_visits(struct profile *a)
{
	uint32_t *opens = xcalloc(OPENS_MAX + 1, sizeof(*opens)), best = 0;
	uint64_t files = 0, whole = 0;
	double reads = 0, all_opens = 0;

	for (size_t i = 0; i < a->job->files; i++) {
		const struct job_file *f = &a->job->file[i];
		double each;

		if (a->role[i] != FILE_DATASET || f->counts.opens <= 0)
			continue;
		files++;
		each = (double)f->counts.bytes_read / (double)f->counts.opens;
		if (size_of(f) <= 0 || each < WHOLE_LEAST * size_of(f) ||
		    each > WHOLE_MOST * size_of(f))
			continue;
		whole++;
		opens[f->counts.opens < OPENS_MAX ? f->counts.opens : OPENS_MAX]++;
		reads += (double)f->counts.reads;
		all_opens += (double)f->counts.opens;
	}
	for (uint32_t i = 1; i <= OPENS_MAX; i++)
		if (opens[i] > opens[best] || best == 0)
			best = i;
	if (files > 0 && (double)whole > 0.9 * (double)files && best < OPENS_MAX) {
		profile_inferred(a, PROFILE_EPOCHS, best, FACT(JOB_OPENS_READ_WHOLE), opens[best],
				 files);
		profile_inferred(a, PROFILE_REQUESTS, reads / all_opens, FACT(JOB_READS_BY_OPENS),
				 0, 0)
			->text = "in the mean";
	} else {
		profile_unknown(a, PROFILE_EPOCHS, FACT(JOB_OPENS_DIFFER));
	}
	free(opens);
}

static void say_sizes(struct profile *a)
{
	double sum = 0, squares = 0, n = 0;

	for (size_t i = 0; i < a->job->files; i++)
		if (a->role[i] == FILE_DATASET && size_of(&a->job->file[i]) > 0) {
			n++;
			sum += size_of(&a->job->file[i]);
		}
	if (n == 0)
		return;
	for (size_t i = 0; i < a->job->files; i++)
		if (a->role[i] == FILE_DATASET && size_of(&a->job->file[i]) > 0)
			squares += pow(size_of(&a->job->file[i]) - sum / n, 2);
	profile_inferred(a, PROFILE_DATA_BYTES, sum, FACT(JOB_LAST_BYTE), 0, 0);
	profile_inferred(a, PROFILE_SAMPLE_BYTES, sum / n, FACT(JOB_LAST_BYTE_SAMPLE), 0, 0)
		->stdev = n > 1 ? sqrt(squares / (n - 1)) : -1;
}

static void say_samples(struct profile *a)
{
	const struct format_facts *f = NULL;

	if (a->value[PROFILE_FORMAT].text)
		f = profile_format_of(a->value[PROFILE_FORMAT].text);
	if (f && f->flags & FORMAT_IMAGE) {
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
		PROFILE_ORDER,    PROFILE_WORKERS, PROFILE_BATCH,   PROFILE_STEPS,
		PROFILE_PREFETCH, PROFILE_STEP,    PROFILE_COMPUTE, PROFILE_LIMIT};
	double ranks = 0;

	if (a->job->sees & JOB_SEES_REQUESTS || !(a->job->sees & JOB_SEES_COUNTS))
		return;
	if (profile_has(a, PROFILE_FILES)) {
		say_visits(a);
		say_sizes(a);
		say_samples(a);
		for (size_t i = 0; i < sizeof(not_shown) / sizeof(not_shown[0]); i++)
			profile_unknown(a, not_shown[i], FACT(JOB_ONLY_COUNTERS));
		for (size_t i = 0; i < a->job->processes; i++)
			ranks += a->job->process[i].parent == JOB_NONE;
		profile_inferred(a, PROFILE_RANKS, ranks, FACT(JOB_NOT_FORKED), 0, 0);
	}
	say_checkpoints(a);
}
