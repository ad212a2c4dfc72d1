/* What the job's time went into, as far as its log shows it: reading, decoding, waiting for data,
 * checkpoints; whether reads came from the page cache; and what limited the job. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "jobtrace/account/account_parts.h"

#define CACHED_BYTES_S 2e9 /* more a second in read calls of one thread: not from a device */
#define CACHED_CALL_S 50e-6
#define MOSTLY 0.5 /* of the time of training */
#define A_LITTLE 0.1
#define HOT 3.0 /* times faster than the first epoch */

static int by_real(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

/* Median of the times in which a reader is neither reading a sample nor waiting for a batch. */
static double say_decode(struct account *a)
{
	double *gap = xcalloc(a->visits + 1, sizeof(*gap)), decode = 0;
	uint32_t *last = xcalloc(a->readers + 1, sizeof(*last));
	size_t n = 0;

	for (size_t i = 0; i < a->readers; i++)
		last[i] = JOB_NONE;
	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];

		if (last[v->reader] != JOB_NONE) {
			const struct visit *before = &a->visit[last[v->reader]];

			if (before->batch == v->batch && v->batch != JOB_NONE &&
			    before->epoch == v->epoch && v->begin_ns > before->end_ns)
				gap[n++] = (double)(v->begin_ns - before->end_ns) / 1e9;
		}
		last[v->reader] = (uint32_t)i;
	}
	if (n > 2) {
		qsort(gap, n, sizeof(*gap), by_real);
		decode = gap[n / 2];
		account_inferred(a, ACCOUNT_DECODE, decode,
				 "median of the times from the end of a sample's requests to the "
				 "next sample's first, within a batch",
				 0, 0);
	}
	free(last);
	free(gap);
	return decode;
}

static void say_cache(struct account *a)
{
	double s[2] = {0}, bytes[2] = {0}, rate[2];
	char text[2][64];
	struct fact *f;

	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];

		if (a->sample[v->sample].evaluation)
			continue;
		s[v->epoch > 0] += (double)v->read_ns / 1e9;
		bytes[v->epoch > 0] += (double)v->bytes;
	}
	if (s[0] <= 0 || bytes[0] <= 0)
		return;
	for (int i = 0; i < 2; i++)
		rate[i] = s[i] > 0 ? bytes[i] / s[i] : 0;
	f = account_inferred(a, ACCOUNT_CACHE, 0,
			     "bytes by the time within read calls, of the first epoch and of the "
			     "others",
			     0, 0);
	if (rate[1] > 0)
		f->text = account_text(
			a, "%s: %s/s in read calls in the first epoch, %s/s later",
			rate[1] > HOT * rate[0] ? "later epochs are read from the page cache"
			: rate[0] > CACHED_BYTES_S
				? "the data was in the page cache: the job tells nothing of the "
				  "storage"
				: "no sign of it",
			str_bytes(rate[0], text[0], sizeof(text[0])),
			str_bytes(rate[1], text[1], sizeof(text[1])));
	else
		f->text = account_text(
			a, "%s: %s/s in read calls",
			rate[0] > CACHED_BYTES_S
				? "the data was in the page cache: the job tells nothing of the "
				  "storage"
				: "not known from one epoch",
			str_bytes(rate[0], text[0], sizeof(text[0])));
}

/* The share of the training's time in which the trainer waited for a batch, at least whether that
 * is little; negative: not known. */
static double waiting(struct account *a)
{
	double waited = 0, all = 0, compute, step;

	if (!account_has(a, ACCOUNT_STEP))
		return -1;
	step = a->fact[ACCOUNT_STEP].number;
	compute = account_has(a, ACCOUNT_COMPUTE) ? a->fact[ACCOUNT_COMPUTE].number : -1;
	if (a->steps > 0) {
		for (size_t i = 1; i < a->steps; i++) {
			const struct step *s = &a->step[i], *last = s - 1;
			double late;

			if (s->evaluation || s->rank != last->rank || s->epoch != last->epoch ||
			    last->evaluation)
				continue;
			all += (double)(s->taken_ns - last->taken_ns) / 1e9;
			if (s->ready_ns == JOB_UNKNOWN || s->ready_ns <= last->taken_ns)
				continue;
			/* it was ready so long after the trainer would have asked */
			late = (double)(s->ready_ns - last->taken_ns) / 1e9 -
			       (compute > 0 ? compute : 0);
			if (late > 0)
				waited += late;
		}
		if (all <= 0)
			return -1;
		account_inferred(a, ACCOUNT_WAITING, fmin(1, waited / all),
				 "times from when a batch was computed to when the next was ready",
				 0, 0);
		if (compute < 0)
			a->fact[ACCOUNT_WAITING].at_most = true;
		return compute < 0 && waited > A_LITTLE * all ? -1 : waited / all;
	}
	if (account_has(a, ACCOUNT_WORKERS) && a->fact[ACCOUNT_WORKERS].number == 0 &&
	    compute > 0 && step > 0) {
		waited = fmax(0, 1 - compute / step);
		account_inferred(a, ACCOUNT_WAITING, waited,
				 "the trainer reads itself: what is not computation", 0, 0);
		return waited;
	}
	return -1;
}

void account_limit(struct account *a)
{
	double read = 0, decode, waits, span = 0;
	bool workers;
	const char *busy;

	if (a->visits == 0 || !(a->job->sees & JOB_SEES_TIMES))
		return;
	say_cache(a);
	if (!a->trains)
		return;
	decode = say_decode(a);
	waits = waiting(a);
	for (size_t i = 0; i < a->visits; i++) {
		read += (double)a->visit[i].read_ns / 1e9;
		span += (double)(a->visit[i].end_ns - a->visit[i].begin_ns) / 1e9;
	}
	read /= (double)a->visits;
	span /= (double)a->visits;
	workers = account_has(a, ACCOUNT_WORKERS) && a->fact[ACCOUNT_WORKERS].number > 0;
	/* what a reader is busy with */
	busy = read >= 0.5 * (span + decode)
		       ? "storage (readers spend most of their time in read calls)"
		       : "decode (readers spend most of their time outside of read calls)";
	if (waits > MOSTLY)
		account_inferred(a, ACCOUNT_LIMIT, 0,
				 workers ? "training waited for data most of the time; what the "
					   "readers did meanwhile"
					 : "the process that trains reads itself, most of the time",
				 0, 0)
			->text = busy;
	else if (waits > A_LITTLE)
		account_inferred(a, ACCOUNT_LIMIT, 0, "shares of the time of training", 0, 0)
			->text =
			account_text(a, "compute; for %.0f %% of the time %s", 100 * waits, busy);
	else if (waits >= 0)
		account_inferred(a, ACCOUNT_LIMIT, 0,
				 "training waited for data for at most a tenth of its time", 0, 0)
			->text = "compute";
	else if (account_has(a, ACCOUNT_COMPUTE) && workers)
		account_inferred(a, ACCOUNT_LIMIT, 0,
				 "readers waited between batches: training did not keep them busy",
				 0, 0)
			->text = "compute";
	else if (workers && a->fact[ACCOUNT_COMPUTE].how == FACT_UNKNOWN &&
		 a->fact[ACCOUNT_COMPUTE].rule == account_waiting_for_data)
		account_inferred(a, ACCOUNT_LIMIT, 0,
				 "readers never waited; what they spent their time on", 0, 0)
			->text = busy;
	else if (workers)
		account_unknown(a, ACCOUNT_LIMIT,
				"how long the trainer waited for batches is not shown");
	else
		account_unknown(a, ACCOUNT_LIMIT,
				"the process that trains reads itself, and what it does between "
				"samples is not shown");
}
