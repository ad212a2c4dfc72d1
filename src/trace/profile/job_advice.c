/* Of a job that waits for data, a step takes as long as a worker takes for a batch, divided by the
 * workers; of one that reads its batches itself, that much more than computing. What is taken off a
 * batch, or divided among more workers, is taken off the step, but for computing. */
#include "trace/profile/job_advice.h"

#include <math.h>
#include <string.h>

#include "base/say.h"
#include "result/json_facts.h"
#include "trace/profile/profile_parts.h"

#define HELPS 1.05   /* times as fast: less is no change */
#define AS_GOOD 0.95 /* of the most that any number of workers gives: the fewest are taken */
#define MOST_WORKERS 4
#define OVER 1.1           /* times a step: a bound that it does not keep is none */
#define STARTS_LITTLE 0.05 /* of the time */
#define WAITS_LITTLE 0.1
#define LEAST_LEFT 0.02 /* of a batch: less is not told from nothing */

struct job_advice {
	struct fact_list says; /* what more workers, cached data and faster storage would give, or
				  why it is not known; empty: the log shows no training */
	uint32_t workers;      /* that the next run should have; 0: those of the job */
	bool persistent;       /* it should keep them between epochs */
};

/* s */
struct times {
	double step;    /* mean */
	double compute; /* of it; NAN: not known */
	double batch;   /* of one worker, or of the trainer that reads */
	double read;    /* of that, in read calls */
	double workers;
	double processors; /* of a host, for the workers of its ranks; NAN: not known, or a step
			      takes less than they need for what is not reading: it waits */
	double bound;      /* of a step: what these need for that; 0: not known */
	double one;        /* step that lasted longer than all others together; 0: none did */
};

/* From one batch of a rank to its next, within an epoch; of one that reads its batches itself, the
 * middle one. */
static double mean_step(const struct profile *a, double *longest)
{
	double sum = 0, n = 0;

	*longest = 0;

	for (size_t i = 1; i < a->steps; i++) {
		const struct step *s = &a->step[i], *last = s - 1;

		if (s->evaluation || last->evaluation || s->rank != last->rank ||
		    s->epoch != last->epoch)
			continue;
		sum += (double)(s->taken_ns - last->taken_ns) / 1e9;
		*longest = fmax(*longest, (double)(s->taken_ns - last->taken_ns) / 1e9);
		n++;
	}
	if (2 * *longest < sum)
		*longest = 0;
	if (n > 0)
		return sum / n;
	return profile_has(a, PROFILE_STEP) ? a->value[PROFILE_STEP].number : NAN;
}

/* Of all visits of training, for each step of each rank. */
static double read_of_batch(const struct profile *a)
{
	double read = 0, steps;

	if (!profile_has(a, PROFILE_STEPS))
		return NAN;
	steps = a->value[PROFILE_STEPS].number *
		(profile_has(a, PROFILE_RANKS) ? a->value[PROFILE_RANKS].number : 1);
	for (size_t i = 0; i < a->visits; i++)
		if (!is_eval(a, &a->visit[i]))
			read += (double)a->visit[i].read_ns / 1e9;
	return steps > 0 ? read / steps : NAN;
}

/* Processes of a job on the same host share its processors. */
static double ranks_of_host(const struct profile *a)
{
	double ranks = profile_has(a, PROFILE_RANKS) ? a->value[PROFILE_RANKS].number : 1,
	       hosts = 1;
	const struct job *job = a->job;

	for (size_t i = 1; i < job->processes; i++) {
		size_t k = 0;

		while (k < i && strcmp(job->process[k].host, job->process[i].host) != 0)
			k++;
		hosts += k == i;
	}
	return fmax(1, ranks / hosts);
}

/* What is not reading is decoding, which processors do: they bound a step, whatever the workers.
 * A step that takes less than that waits for something else. */
static void find_bound(const struct profile *a, struct times *t)
{
	double processors = a->job->processors;
	double bound = processors > 0 ? (t->batch - t->read) * ranks_of_host(a) / processors : 0;

	t->bound = bound > OVER * t->step ? 0 : fmin(bound, t->step);
	t->processors = t->bound > 0 ? processors : NAN;
}

static bool find_times(const struct profile *a, struct times *t)
{
	if (!profile_has(a, PROFILE_WORKERS))
		return false;
	t->workers = a->value[PROFILE_WORKERS].number;
	t->step = mean_step(a, &t->one);
	t->compute = profile_has(a, PROFILE_COMPUTE) ? a->value[PROFILE_COMPUTE].number : NAN;
	t->batch = t->workers > 0 ? t->workers * t->step : t->step - t->compute;
	t->read = fmin(read_of_batch(a), t->batch);
	find_bound(a, t);
	return t->step > 0 && t->batch > 0 && t->read >= 0;
}

/* A step with so many workers whose batch takes so long. */
static double step_with(const struct times *t, double batch, double workers)
{
	double compute = isnan(t->compute) ? 0 : t->compute;

	return workers > 0 ? fmax(fmax(compute, t->bound), batch / workers) : compute + batch;
}

/* Faster than now by so many times; 0: nothing is left of a step, as far as the log shows. */
static double faster(const struct times *t, double batch, double workers)
{
	double step = step_with(t, batch, workers);

	return step > LEAST_LEFT * t->step ? t->step / step : 0;
}

/* A change that makes no step faster, or how much faster at most. */
static void add_change(const struct times *t, double by, struct fact same, struct fact faster,
		       struct job_advice *out)
{
	faster.figure[0] = by;
	faster.figure[1] = t->step / by;
	fact_add(&out->says, by > HELPS ? faster : same);
}

static void add_workers(const struct times *t, struct job_advice *out)
{
	double by[MOST_WORKERS + 1] = {0}, most = 0, on;
	double compute = isnan(t->compute) ? 0 : t->compute;

	for (uint32_t n = 2; n <= MOST_WORKERS; n *= 2) {
		if (n <= t->workers)
			continue;
		by[n] = faster(t, t->batch, n);
		most = fmax(most, by[n]);
		on = t->bound > t->batch / n && t->bound > compute ? t->processors : NAN;
		add_change(t, by[n], FACT(ADVICE_WORKERS_SAME, n, on),
			   FACT(ADVICE_WORKERS, 0, 0, n, on), out);
	}
	for (uint32_t n = MOST_WORKERS; n >= 2 && most > HELPS; n /= 2)
		if (by[n] >= AS_GOOD * most)
			out->workers = n;
}

static void add_storage(const struct times *t, struct job_advice *out)
{
	double cached = faster(t, t->batch - t->read, t->workers);
	double twice = faster(t, t->batch - t->read / 2, t->workers);

	if (cached > 0)
		add_change(t, cached, FACT(ADVICE_CACHED_SAME), FACT(ADVICE_CACHED, 0, 0), out);
	else
		fact_add(&out->says, FACT(ADVICE_CACHED_ALL));
	add_change(t, twice, FACT(ADVICE_STORAGE_SAME), FACT(ADVICE_STORAGE, 0, 0), out);
}

/* Starts of epochs, where they are more than a little of the time. */
static void add_starts(const struct profile *a, struct job_advice *out)
{
	const struct epoch_starts *s = &a->starts;
	double by;

	if (s->n == 0 || s->all_s <= STARTS_LITTLE * s->whole_s)
		return;
	fact_add(&out->says, FACT(ADVICE_STARTS, s->all_s / s->whole_s, s->all_s / (double)s->n));
	by = s->whole_s / (s->whole_s - s->spared_s);
	if (by <= HELPS)
		return;
	out->persistent = true;
	fact_add(&out->says, FACT(ADVICE_PERSISTENT, by));
}

/* Whether training waited for data; -1: the log does not tell. */
static int waited(const struct profile *a)
{
	enum reason why = a->value[PROFILE_LIMIT].rule.reason;

	if (!profile_has(a, PROFILE_LIMIT))
		return -1;
	return why != REASON_JOB_WAITED_LITTLE && why != REASON_JOB_READERS_WAITED;
}

static void job_advice_find(const struct profile *a, struct job_advice *out)
{
	int waits = waited(a);
	bool starts = a->value[PROFILE_LIMIT].rule.reason == REASON_JOB_SLOW_STARTS, told;
	struct times t;

	*out = (struct job_advice){0};
	if (!a->trains)
		return;
	if (waits == 0) {
		fact_add(&out->says, FACT(ADVICE_KEEPS_UP));
		return;
	}
	add_starts(a, out);
	told = waits > 0 && find_times(a, &t);
	/* a worker that starts late, or a storage that stalls once: no mean describes it */
	if (told && t.one > 0)
		fact_add(&out->says, FACT(ADVICE_ONE_WAIT, t.one));
	else if (!told && !starts)
		fact_add(&out->says, FACT(ADVICE_UNTOLD));
	if (!told || t.one > 0 || (starts && a->starts.other_s <= WAITS_LITTLE * a->starts.whole_s))
		return;
	fact_add(&out->says, 2 * t.read < t.batch ? FACT(ADVICE_PROCESSOR, t.step, t.read / t.batch,
							 t.processors)
						  : FACT(ADVICE_READS, t.step, t.read / t.batch));
	add_workers(&t, out);
	add_storage(&t, out);
}

json_t *job_advice_json(const struct profile *a)
{
	struct job_advice v;

	job_advice_find(a, &v);
	return v.says.count ? json_facts(&v.says) : NULL;
}

static void put_commands(const struct job_advice *v, const struct str_list *log,
			 const char *workload, struct buf *out)
{
	const char *file = workload ? workload : "job.yaml";

	buf_puts(out, "\nnext\n");
	if (!workload) {
		buf_puts(out, "  stoker explain");
		for (size_t i = 0; i < log->n; i++) {
			buf_putc(out, ' ');
			shell_put_word(out, log->v[i]);
		}
		buf_puts(out, " -o job.yaml\n");
	}
	buf_puts(out, "  stoker run ");
	shell_put_word(out, file);
	buf_puts(out, " workflow.generate_data=true dataset.data_folder=job-data");
	if (v->workers)
		buf_printf(out, " reader.read_threads=%u reader.prefetch_size=%u", v->workers,
			   2 * v->workers);
	if (v->persistent)
		buf_puts(out, " reader.persistent_workers=true");
	buf_puts(out, " -o results/job\n");
}

void job_advice_put(const struct profile *a, const struct str_list *log, const char *workload,
		    struct buf *out)
{
	struct job_advice v;

	job_advice_find(a, &v);
	for (uint32_t i = 0; i < v.says.count; i++) {
		struct buf text = {0};

		words_put(&text, &v.says.fact[i], WORDS_SHORT);
		buf_puts(out, i ? "  " : "\nwhat would change it\n  ");
		buf_wrap(out, text.data, 2, 4, 100);
		buf_release(&text);
	}
	if (v.says.count)
		put_commands(&v, log, workload, out);
}
