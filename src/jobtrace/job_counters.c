/* What counters of files tell where no request is seen: files, bytes, how often each was opened,
 * sizes of requests; bytes over time. Not batches, computation or order. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "jobtrace/account/account_parts.h"
#include "workload/backend.h"

#define OPENS_MAX 1024
/* An open is a visit where it goes with about the bytes of the file: some formats read parts twice,
 * or leave some out. */
#define WHOLE_LEAST 0.5
#define WHOLE_MOST 2.0

static const char only_counters[] = "the log has counters of files and no requests";

static double size_of(const struct job_file *f)
{
	return (double)(f->size > 0 ? f->size : f->counts.read_end);
}

/* How often files were opened, where an open reads the file; how many reads that took. */
static void say_visits(struct account *a)
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
		account_inferred(a, ACCOUNT_EPOCHS, best,
				 "opens of a file, each of which read about as many bytes as it "
				 "has",
				 opens[best], files);
		account_inferred(a, ACCOUNT_REQUESTS, reads / all_opens, "reads by opens", 0, 0)
			->text = "in the mean";
	} else {
		account_unknown(a, ACCOUNT_EPOCHS,
				"an open of a file does not go with reading it once, and the log "
				"has no requests");
	}
	free(opens);
}

static void say_sizes(struct account *a)
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
	account_inferred(a, ACCOUNT_DATA_BYTES, sum, "the last byte that was read of each file", 0,
			 0);
	account_inferred(a, ACCOUNT_SAMPLE_BYTES, sum / n,
			 "the last byte that was read of each file, where a file is a sample", 0, 0)
		->stdev = n > 1 ? sqrt(squares / (n - 1)) : -1;
}

static void say_samples(struct account *a)
{
	const struct format_facts *f = NULL;

	if (a->fact[ACCOUNT_FORMAT].text)
		f = account_format_of(a->fact[ACCOUNT_FORMAT].text);
	if (f && f->flags & FORMAT_IMAGE) {
		account_inferred(a, ACCOUNT_SAMPLES, a->fact[ACCOUNT_FILES].number,
				 "a file of this format is one image", 0, 0);
		account_inferred(a, ACCOUNT_SAMPLES_PER_FILE, 1,
				 "a file of this format is one image", 0, 0);
		return;
	}
	account_unknown(a, ACCOUNT_SAMPLES, only_counters);
	account_unknown(a, ACCOUNT_SAMPLES_PER_FILE, only_counters);
}

/* Files that were only written: each open a checkpoint, where all have as many. */
static void say_checkpoints(struct account *a)
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
		account_inferred(a, ACCOUNT_CHECKPOINTS, (double)opens,
				 "opens of each file of a checkpoint", files, files);
	else
		account_unknown(a, ACCOUNT_CHECKPOINTS,
				"files of one checkpoint and of several are not told apart");
	if (same && opens > 1)
		account_inferred(a, ACCOUNT_CHECKPOINT_BYTES, bytes / (double)opens,
				 "bytes written, by checkpoints", 0, 0);
}

void account_counters(struct account *a)
{
	static const enum account_fact not_shown[] = {
		ACCOUNT_ORDER,    ACCOUNT_WORKERS, ACCOUNT_BATCH,   ACCOUNT_STEPS,
		ACCOUNT_PREFETCH, ACCOUNT_STEP,    ACCOUNT_COMPUTE, ACCOUNT_LIMIT};
	double ranks = 0;

	if (a->job->sees & JOB_SEES_REQUESTS || !(a->job->sees & JOB_SEES_COUNTS))
		return;
	if (account_has(a, ACCOUNT_FILES)) {
		say_visits(a);
		say_sizes(a);
		say_samples(a);
		for (size_t i = 0; i < sizeof(not_shown) / sizeof(not_shown[0]); i++)
			account_unknown(a, not_shown[i], only_counters);
		for (size_t i = 0; i < a->job->processes; i++)
			ranks += a->job->process[i].parent == JOB_NONE;
		account_inferred(a, ACCOUNT_RANKS, ranks, "processes that no other one forked", 0,
				 0);
	}
	say_checkpoints(a);
}
