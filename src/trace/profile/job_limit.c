/* What the job's time went into, as far as its log shows it: reading, decoding, waiting for data,
 * checkpoints; whether reads came from the page cache; and what limited the job. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "trace/profile/profile_parts.h"

#define CACHED_BYTES_S 2e9 /* more a second in read calls of one thread: not from a device */
#define MOSTLY 0.5         /* of the time of training */
#define A_LITTLE 0.1
#define MANY 0.2 /* starts of epochs that are said first */
#define WITHIN_EPOCHS "within epochs"
#define FETCHED_BYTES_S 1e8 /* fewer a second may come from a device */
#define FEW_FETCHED 0.05    /* of the bytes */
#define SOME_FETCHED 0.9
#define HOT 3.0 /* times faster than the first epoch */

/* The middle one of the times in which a reader is neither reading a sample nor waiting for a
 * batch. */
static double say_decode(struct profile *a)
{
	struct values gap = {0};
	AUTO_FREE uint32_t *last = job_numbers(a->readers);
	double decode = 0;

	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];

		if (last[v->reader] != JOB_NONE) {
			const struct visit *before = &a->visit[last[v->reader]];

			if (before->batch == v->batch && v->batch != JOB_NONE &&
			    before->epoch == v->epoch && v->begin_ns > before->end_ns)
				values_add(&gap, (double)(v->begin_ns - before->end_ns) / 1e9);
		}
		last[v->reader] = (uint32_t)i;
	}
	if (gap.n > 2) {
		decode = values_middle(&gap);
		profile_inferred(a, PROFILE_DECODE, decode, FACT(JOB_BETWEEN_SAMPLES), 0, 0);
	}
	free(gap.v);
	return decode;
}

/* The share of what the readers read that the kernel fetched from storage for their processes, at
 * most, as it counts what else they read, too; NAN: not counted. */
static double share_of_storage(const struct profile *a)
{
	AUTO_FREE bool *reads = xcalloc(a->job->processes + 1, sizeof(*reads));
	double bytes = 0, fetched = 0;

	for (size_t i = 0; i < a->visits; i++) {
		bytes += (double)a->visit[i].bytes;
		reads[a->reader[a->visit[i].reader].process] = true;
	}
	for (size_t i = 0; i < a->job->processes; i++) {
		if (!reads[i])
			continue;
		if (a->job->process[i].storage_read_bytes == JOB_UNKNOWN)
			return NAN;
		fetched += (double)a->job->process[i].storage_read_bytes;
	}
	return bytes > 0 ? fmin(1, fetched / bytes) : NAN;
}

static void say_cache(struct profile *a)
{
	double s[2] = {0}, bytes[2] = {0}, rate[2]; /* of the first epoch, of later ones */
	static const char cached[] =
		"the data was in the page cache: the job tells nothing of the storage";
	double share = share_of_storage(a);
	char text[2][64];
	struct profile_value *f;

	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];

		if (is_eval(a, v))
			continue;
		s[v->epoch > 0] += (double)v->read_ns / 1e9;
		bytes[v->epoch > 0] += (double)v->bytes;
	}
	if (s[0] <= 0 || bytes[0] <= 0 || profile_is_objects(a))
		return;
	for (int i = 0; i < 2; i++) {
		rate[i] = s[i] > 0 ? bytes[i] / s[i] : 0;
		str_bytes(rate[i], text[i], sizeof(text[i]));
	}
	/* not every file system tells the kernel what it fetches: then reads are slow all the same
	 */
	if (share < FEW_FETCHED && rate[0] > FETCHED_BYTES_S) {
		profile_inferred(a, PROFILE_CACHE, 0, FACT(JOB_FETCHED), 0, 0)->text =
			profile_text(a, "%s (at most %.0f %% of the bytes came from there)", cached,
				     ceil(100 * share));
		return;
	}
	f = profile_inferred(a, PROFILE_CACHE, 0, FACT(JOB_RATES_IN_READS), 0, 0);
	if (rate[1] > 0 && share < SOME_FETCHED && rate[1] <= HOT * rate[0])
		f->text = profile_text(a, "in part: at most %.0f %% of the bytes came from storage",
				       ceil(100 * share));
	else if (rate[1] > 0)
		f->text = profile_text(a, "%s: %s/s in read calls in the first epoch, %s/s later",
				       rate[1] > HOT * rate[0]
					       ? "later epochs are read from the page cache"
				       : rate[0] > CACHED_BYTES_S ? cached
								  : "no sign of it",
				       text[0], text[1]);
	else
		f->text = profile_text(
			a, "%s: %s/s in read calls",
			rate[0] > CACHED_BYTES_S ? cached : "not known from one epoch", text[0]);
}

/* Of the training's time. */
struct waits {
	double share;  /* in which the trainer waited for a batch; -1: not known, or not whether it
			  is little */
	double starts; /* at starts of epochs, where these are most of what it waited; 0 */
};

/* Between batches of one epoch: s. */
struct between {
	double all;
	double waited; /* until the next batch was ready */
	double taking; /* batches that were */
};

static struct between wait_between(const struct profile *a, double compute)
{
	struct between out = {0};

	for (size_t i = 1; i < a->steps; i++) {
		const struct step *s = &a->step[i], *last = s - 1;
		double late;

		if (s->evaluation || s->rank != last->rank || s->epoch != last->epoch ||
		    last->evaluation)
			continue;
		out.all += (double)(s->taken_ns - last->taken_ns) / 1e9;
		if (s->asked_ns != JOB_UNKNOWN)
			out.taking +=
				(double)(s->taken_ns -
					 (s->asked_ns > s->ready_ns ? s->asked_ns : s->ready_ns)) /
				1e9;
		if (s->ready_ns == JOB_UNKNOWN || s->ready_ns <= last->taken_ns)
			continue;
		/* it was ready so long after the trainer would have asked */
		late = (double)(s->ready_ns - last->taken_ns) / 1e9 - (compute > 0 ? compute : 0);
		if (late > 0)
			out.waited += late;
	}
	return out;
}

static struct waits wait_for_batches(struct profile *a, double compute)
{
	struct epoch_starts *starts = &a->starts;
	struct profile_value *v;
	struct waits out = {-1, 0};
	struct between b = wait_between(a, compute);
	bool known =
		compute >= 0 && !a->value[PROFILE_COMPUTE].at_most; /* the trainer takes them */
	double waited = b.waited + starts->all_s, all = b.all;

	/* each epoch ends with a step behind which no batch comes */
	all += starts->all_s + (double)starts->n * fmax(0, compute);
	if (all <= 0)
		return out;
	starts->whole_s = all;
	starts->other_s = b.waited;
	v = profile_inferred(a, PROFILE_WAITING, fmin(1, (waited + (known ? b.taking : 0)) / all),
			     starts->n ? FACT(JOB_WAITED_AND_STARTS) : FACT(JOB_COMPUTED_TO_READY),
			     0, 0);
	v->at_most = compute < 0;
	v->text = starts->n ? NULL : WITHIN_EPOCHS;
	if (starts->all_s > A_LITTLE * all && starts->all_s > MOSTLY * waited)
		out.starts = starts->all_s / all;
	if (compute >= 0 || waited <= A_LITTLE * all)
		out.share = waited / all;
	return out;
}

static struct waits waiting(struct profile *a)
{
	struct waits out = {-1, 0};
	double compute, step;

	compute = profile_has(a, PROFILE_COMPUTE) ? a->value[PROFILE_COMPUTE].number : -1;
	if (a->steps > 0 && (profile_has(a, PROFILE_STEP) || a->starts.n))
		return wait_for_batches(a, compute);
	step = profile_has(a, PROFILE_STEP) ? a->value[PROFILE_STEP].number : 0;
	if (profile_has(a, PROFILE_WORKERS) && a->value[PROFILE_WORKERS].number == 0 &&
	    compute > 0 && step > 0) {
		out.share = fmax(0, 1 - compute / step);
		profile_inferred(a, PROFILE_WAITING, out.share, FACT(JOB_NOT_COMPUTATION), 0, 0)
			->text = WITHIN_EPOCHS;
	}
	return out;
}

void profile_limit(struct profile *a)
{
	double read = 0, decode, span = 0, waits;
	struct waits w;
	bool workers;
	const char *busy;

	if (a->visits == 0 || !(a->job->sees & JOB_SEES_TIMES))
		return;
	say_cache(a);
	decode = say_decode(a);
	w = waiting(a);
	waits = w.share;
	for (size_t i = 0; i < a->visits; i++) {
		read += (double)a->visit[i].read_ns / 1e9;
		span += (double)(a->visit[i].end_ns - a->visit[i].begin_ns) / 1e9;
	}
	read /= (double)a->visits;
	span /= (double)a->visits;
	workers = profile_has(a, PROFILE_WORKERS) && a->value[PROFILE_WORKERS].number > 0;
	/* what a reader is busy with */
	busy = read >= 0.5 * (span + decode)
		       ? "storage (readers spend most of their time in read calls)"
		       : "decode (readers spend most of their time outside of read calls)";
	if (w.starts > MANY)
		profile_inferred(a, PROFILE_LIMIT, 0, FACT(JOB_SLOW_STARTS), 0, 0)->text =
			profile_text(a, "slow epoch starts (%.0f %% of the time)%s%s",
				     100 * w.starts, waits < 0 ? "" : ", then ",
				     waits < 0                      ? ""
				     : waits - w.starts > 1 - waits ? busy
								    : "compute");
	else if (w.starts > 0)
		profile_inferred(a, PROFILE_LIMIT, 0, FACT(JOB_SLOW_STARTS), 0, 0)->text =
			profile_text(a, "compute; for %.0f %% of the time slow epoch starts",
				     100 * w.starts);
	else if (waits > MOSTLY)
		profile_inferred(a, PROFILE_LIMIT, 0,
				 workers ? FACT(JOB_WAITED_MOST) : FACT(JOB_TRAINER_READS_MOST), 0,
				 0)
			->text = busy;
	else if (waits > A_LITTLE)
		profile_inferred(a, PROFILE_LIMIT, 0, FACT(JOB_SHARES_OF_TIME), 0, 0)->text =
			profile_text(a, "compute; for %.0f %% of the time %s", 100 * waits, busy);
	else if (waits >= 0)
		profile_inferred(a, PROFILE_LIMIT, 0, FACT(JOB_WAITED_LITTLE), 0, 0)->text =
			"compute";
	else if (profile_has(a, PROFILE_COMPUTE) && workers)
		profile_inferred(a, PROFILE_LIMIT, 0, FACT(JOB_READERS_WAITED), 0, 0)->text =
			"compute";
	else if (workers && a->value[PROFILE_COMPUTE].how == HOW_UNKNOWN &&
		 a->value[PROFILE_COMPUTE].rule.reason == REASON_JOB_WAITED_FOR_DATA)
		profile_inferred(a, PROFILE_LIMIT, 0, FACT(JOB_READERS_NEVER_WAITED), 0, 0)->text =
			busy;
	else if (workers)
		profile_unknown(a, PROFILE_LIMIT, FACT(JOB_WAIT_NOT_SHOWN));
	else
		profile_unknown(a, PROFILE_LIMIT, FACT(JOB_TRAINER_BETWEEN_SAMPLES));
}
