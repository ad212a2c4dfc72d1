/* The values as rows, what sets them, and observations from which they are taken. */
#include "trace/profile/profile.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/vector.h"
#include "trace/profile/profile_parts.h"

const struct profile_row profile_rows[PROFILE_VALUES] = {
	[PROFILE_FRAMEWORK] = {"framework", "framework", UNIT_WORD, false},
	[PROFILE_RANKS] = {"ranks", "ranks (processes that train)", UNIT_COUNT, false},
	[PROFILE_FORMAT] = {"format", "format", UNIT_WORD, false},
	[PROFILE_FOLDER] = {"folder", "folder of the dataset", UNIT_WORD, false},
	[PROFILE_FILES] = {"files", "files of the dataset", UNIT_COUNT, false},
	[PROFILE_DATA_BYTES] = {"dataset_bytes", "size of the dataset", UNIT_BYTES, false},
	[PROFILE_SAMPLES] = {"samples", "samples", UNIT_COUNT, false},
	[PROFILE_SAMPLES_PER_FILE] = {"samples_per_file", "samples per file", UNIT_COUNT, false},
	[PROFILE_SAMPLE_BYTES] = {"sample_bytes", "size of a sample", UNIT_BYTES, false},
	[PROFILE_SIZES] = {"sizes", "sizes of samples", UNIT_WORD, false},
	[PROFILE_REQUESTS] = {"requests_per_sample", "requests per sample", UNIT_COUNT, false},
	[PROFILE_KEPT_OPEN] = {"files_kept_open", "files that a reader keeps open", UNIT_COUNT,
			       false},
	[PROFILE_EPOCHS] = {"epochs", "epochs", UNIT_COUNT, false},
	[PROFILE_ORDER] = {"order", "order of samples", UNIT_WORD, false},
	[PROFILE_SHUFFLE_WINDOW] = {"shuffle_window", "shuffle buffer (samples)", UNIT_COUNT,
				    false},
	[PROFILE_SHARDING] = {"sharding", "samples of the ranks", UNIT_WORD, false},
	[PROFILE_WORKERS] = {"workers", "workers of each rank", UNIT_COUNT, false},
	[PROFILE_PERSISTENT] = {"persistent_workers", "workers live through epochs", UNIT_FLAG,
				false},
	[PROFILE_WORKER_START] = {"worker_start_s", "time to start a worker", UNIT_SECONDS, true},
	[PROFILE_WORKER_INIT] = {"worker_init_s", "time to a worker's first read", UNIT_SECONDS,
				 true},
	[PROFILE_BATCH] = {"batch", "batch size of each rank", UNIT_COUNT, false},
	[PROFILE_STEPS] = {"steps", "training steps of each rank", UNIT_COUNT, false},
	[PROFILE_PREFETCH] = {"prefetch", "batches read ahead by each rank", UNIT_COUNT, false},
	[PROFILE_STEP] = {"step_s", "time of a step", UNIT_SECONDS, false},
	[PROFILE_COMPUTE] = {"compute_s", "computation in a step", UNIT_SECONDS, false},
	[PROFILE_DECODE] = {"decode_s", "decoding of a sample", UNIT_SECONDS, false},
	[PROFILE_CHECKPOINTS] = {"checkpoints", "checkpoints", UNIT_COUNT, false},
	[PROFILE_CHECKPOINT_STEPS] = {"steps_between_checkpoints", "steps between checkpoints",
				      UNIT_COUNT, false},
	[PROFILE_CHECKPOINT_SECONDS] = {"seconds_between_checkpoints", "time between checkpoints",
					UNIT_SECONDS, false},
	[PROFILE_CHECKPOINT_BYTES] = {"checkpoint_bytes", "size of a checkpoint", UNIT_BYTES,
				      false},
	[PROFILE_CHECKPOINT_FILES] = {"checkpoint_files", "files of a checkpoint", UNIT_COUNT,
				      true},
	[PROFILE_CHECKPOINT_WRITE] = {"checkpoint_write_bytes", "size of its writes", UNIT_BYTES,
				      true},
	[PROFILE_CHECKPOINT_SYNC] = {"checkpoint_fsync", "it is synced (fsync)", UNIT_FLAG, true},
	[PROFILE_CHECKPOINT_RENAME] = {"checkpoint_rename", "it is renamed when complete",
				       UNIT_FLAG, true},
	[PROFILE_CHECKPOINT_STOPS] = {"checkpoint_stops_training", "training stops meanwhile",
				      UNIT_FLAG, false},
	[PROFILE_EVALUATIONS] = {"evaluations", "evaluations", UNIT_COUNT, false},
	[PROFILE_EVAL_FILES] = {"eval_files", "files of evaluation", UNIT_COUNT, false},
	[PROFILE_EVAL_SAMPLES] = {"eval_samples", "samples of an evaluation", UNIT_COUNT, false},
	[PROFILE_EVAL_BATCH] = {"eval_batch", "batch size of evaluation", UNIT_COUNT, false},
	[PROFILE_EVAL_COMPUTE] = {"eval_compute_s", "computation in a step of it", UNIT_SECONDS,
				  false},
	[PROFILE_CACHE] = {"cache", "page cache", UNIT_WORD, false},
	[PROFILE_WAITING] = {"waiting", "share of time waiting for data", UNIT_SHARE, false},
	[PROFILE_LIMIT] = {"limit", "what limited the job", UNIT_WORD, false},
};

const char *const profile_how_names[] = {"absent", "seen", "inferred", "assumed", "unknown"};

const char *profile_role_name(const struct profile *a, enum file_role role)
{
	static const char *const names[FILE_ROLES] = {
		"other", "dataset", "evaluation", "checkpoint", "code", "log", "cache"};

	if (a->trains)
		return names[role];
	return role == FILE_DATASET || role == FILE_EVALUATION ? "input"
	       : role == FILE_CHECKPOINT                       ? "output"
							       : names[role];
}

const char *profile_text(struct profile *a, const char *fmt, ...)
{
	struct buf text = {0};
	const char *kept;
	va_list ap;
	size_t i;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	/* the array may move while the text is added */
	i = texts_add(&a->names, text.data ? text.data : "");
	kept = a->names.v[i];
	buf_release(&text);
	return kept;
}

static struct profile_value *set(struct profile *a, enum profile_key f, enum profile_how how,
				 double number, struct fact rule)
{
	assert(f < PROFILE_VALUES);
	a->value[f] =
		(struct profile_value){.how = how, .number = number, .stdev = -1, .rule = rule};
	return &a->value[f];
}

struct profile_value *profile_seen(struct profile *a, enum profile_key f, double number)
{
	return set(a, f, HOW_SEEN, number, (struct fact){0});
}

struct profile_value *profile_inferred(struct profile *a, enum profile_key f, double number,
				       struct fact rule, uint64_t agree, uint64_t of)
{
	struct profile_value *value = set(a, f, HOW_INFERRED, number, rule);

	value->agree = agree;
	value->of = of;
	return value;
}

struct profile_value *profile_unknown(struct profile *a, enum profile_key f, struct fact reason)
{
	return set(a, f, HOW_UNKNOWN, 0, reason);
}

bool profile_has(const struct profile *a, enum profile_key f)
{
	return a->value[f].how != HOW_ABSENT && a->value[f].how != HOW_UNKNOWN;
}

const struct file_group *profile_main_group(const struct profile *a)
{
	for (size_t g = 0; g < a->groups; g++)
		if (a->group[g].role == FILE_DATASET)
			return &a->group[g];
	return NULL;
}

void profile_keep_samples(struct profile *a, const bool *keep)
{
	AUTO_FREE uint32_t *now = job_numbers(a->samples);
	size_t samples = 0, visits = 0;

	for (size_t i = 0; i < a->samples; i++)
		if (keep[i]) {
			now[i] = (uint32_t)samples;
			a->sample[samples++] = a->sample[i];
		}
	for (size_t i = 0; i < a->visits; i++) {
		struct visit v = a->visit[i];

		v.sample = now[v.sample];
		if (v.sample != JOB_NONE)
			a->visit[visits++] = v;
	}
	a->samples = samples;
	a->visits = visits;
}

size_t *profile_rounds(const struct profile *a)
{
	size_t *first = xcalloc(a->trainers + 1, sizeof(*first));

	for (size_t t = 0; t < a->trainers; t++)
		first[t + 1] = first[t] + a->trainer[t].rounds;
	return first;
}

/* ---- observations ---- */

void values_add(struct values *s, double v)
{
	VECTOR_PUSH(s->v, s->n, s->room, v);
}

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return ORDER(a, b);
}

void values_sort(double *v, size_t n)
{
	if (n > 0)
		qsort(v, n, sizeof(*v), by_value);
}

double values_middle(struct values *s)
{
	values_sort(s->v, s->n);
	return s->n ? s->v[s->n / 2] : 0;
}

double values_median(struct values *s)
{
	double above = values_middle(s);

	return s->n == 0 || s->n % 2 ? above : (s->v[s->n / 2 - 1] + above) / 2;
}

double values_mean(const struct values *s)
{
	double sum = 0;

	for (size_t i = 0; i < s->n; i++)
		sum += s->v[i];
	return s->n ? sum / (double)s->n : 0;
}

double values_stdev(const struct values *s)
{
	double mean = values_mean(s), squares = 0;

	for (size_t i = 0; i < s->n; i++)
		squares += (s->v[i] - mean) * (s->v[i] - mean);
	return s->n > 1 ? sqrt(squares / (double)(s->n - 1)) : -1;
}

uint64_t values_near(const struct values *s, double v)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += fabs(s->v[i] - v) <= 0.1 * v;
	return n;
}

void counts_add(struct counts *c, size_t n)
{
	if (!c->of)
		c->of = xcalloc(COUNTS_MAX + 1, sizeof(*c->of));
	c->of[n < COUNTS_MAX ? n : COUNTS_MAX]++;
	c->all++;
}

uint32_t mode_of(const uint32_t *of, size_t first, size_t end, uint64_t *agree)
{
	size_t best = 0;

	*agree = 0;
	for (size_t i = first; i < end; i++)
		if (of[i] > *agree) {
			*agree = of[i];
			best = i;
		}
	return (uint32_t)best;
}

uint32_t counts_mode(const struct counts *c, uint64_t *agree)
{
	return mode_of(c->of, 1, c->of ? COUNTS_MAX : 0, agree);
}
