/* The values as rows, what sets them, and the subjects in their order. */
#include "trace/profile/profile.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/str.h"
#include "base/vector.h"
#include "trace/profile/profile_parts.h"
#include "workload/backend.h"

static void profile_framework(struct profile *a);

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
	free(a->role);
	free(a->group_of);
	free(a->group);
	free(a->apart_until_ns);
	free(a->step);
	*a = (struct profile){0};
}

/* ---- the subjects, in the order in which each can use what those before it found ---- */

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
		const struct format_facts *f = profile_format_of(v->extension);

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
	*a = (struct profile){.job = job};
	make(a);
}

void profile_make_files(struct profile *a, const struct profile *of)
{
	*a = (struct profile){.job = of->job, .files_of_sample = of->companions};
	make(a);
}

/* ---- the framework, by what only it leaves in a log ---- */

/* Lists end with NULL. */
struct signs {
	const char *name;
	const char *libraries[5]; /* parts of names of files */
	const char *looks_for;    /* the end of a name that it looks for, there or not; NULL */
	const char *memory;       /* of shared memory, at its begin; NULL */
	const char *threads[3];   /* at the begin of their names */
	const char *commands[4];  /* parts */
};

enum { TORCH, TENSORFLOW };

static const struct signs table[] = {
	[TORCH] = {"PyTorch",
		   {"/libtorch.so", "/libtorch_cpu.so", "/libtorch_python.so", "/torch/lib/"},
		   NULL,
		   "/torch_",
		   {"pt_data", "pt_main"},
		   {"torchrun", "torch.distributed", "torch/distributed"}},
	[TENSORFLOW] = {"TensorFlow",
			{"/libtensorflow", "/tensorflow/python/", "/_pywrap_tensorflow"},
			"/tensorflow-plugins",
			NULL,
			{"tf_data", "tf_Compute"},
			{"-m tensorflow", "/tensorflow/"}},
	{"JAX", {"/jaxlib/", "/xla_extension.so"}, NULL, NULL, {NULL}, {NULL}},
	{"DALI", {"/nvidia/dali/", "/libdali.so"}, NULL, NULL, {"DALI"}, {NULL}},
	{"MXNet", {"/libmxnet.so"}, NULL, NULL, {NULL}, {NULL}},
	{"Stoker", {NULL}, NULL, NULL, {NULL}, {"stoker run", "/stoker run"}},
	{"DLIO", {NULL}, NULL, NULL, {NULL}, {"dlio_benchmark"}},
};

#define FRAMEWORKS (sizeof(table) / sizeof(table[0]))

enum { BY_LIBRARY = 1, BY_MEMORY = 2, BY_THREAD = 4, BY_COMMAND = 8 };

static bool has_part(const char *text, const char *const *part)
{
	for (; *part; part++)
		if (strstr(text, *part))
			return true;
	return false;
}

static bool begins(const char *text, const char *const *with)
{
	for (; *with; with++)
		if (str_starts(text, *with))
			return true;
	return false;
}

/* `/dev/shm/torch_12_34`, or `/torch_12_34`. */
static bool is_memory(const struct job_file *f, const char *sign)
{
	const char *base = strrchr(f->name, '/');

	return sign && base && f->kind == JOB_FILE_MEMORY && str_starts(base, sign);
}

static unsigned find(const struct job *job, const struct signs *s)
{
	unsigned by = 0;

	for (size_t i = 0; i < job->files; i++) {
		const struct job_file *f = &job->file[i];

		/* programs look for libraries in many places where they are not */
		if (f->kind == JOB_FILE_REGULAR && (f->counts.reads > 0 || f->counts.maps > 0) &&
		    has_part(f->name, s->libraries))
			by |= BY_LIBRARY;
		if (s->looks_for && str_ends(f->name, s->looks_for))
			by |= BY_LIBRARY;
		if (is_memory(f, s->memory))
			by |= BY_MEMORY;
	}
	for (size_t i = 0; i < job->threads; i++)
		if (job->thread[i].name && begins(job->thread[i].name, s->threads))
			by |= BY_THREAD;
	for (size_t i = 0; i < job->processes; i++) {
		if (has_part(job->process[i].command, s->commands))
			by |= BY_COMMAND;
		if (has_part(job->process[i].libraries, s->libraries))
			by |= BY_LIBRARY;
	}
	return by;
}

static void profile_framework(struct profile *a)
{
	const char *text = NULL;
	struct fact how;
	bool torch = false, tensorflow = false;
	unsigned by = 0;

	for (size_t i = 0; i < FRAMEWORKS; i++) {
		unsigned found = find(a->job, &table[i]);

		if (!found)
			continue;
		by |= found;
		torch |= i == TORCH;
		tensorflow |= i == TENSORFLOW;
		text = text ? profile_text(a, "%s, %s", text, table[i].name) : table[i].name;
	}
	if (!text)
		return;
	a->tensorflow = tensorflow && !torch;
	a->loaded = by == BY_LIBRARY;
	how = by & BY_MEMORY    ? FACT(JOB_BY_SHARED_MEMORY)
	      : by & BY_LIBRARY ? FACT(JOB_BY_LIBRARIES)
	      : by & BY_THREAD  ? FACT(JOB_BY_THREADS)
				: FACT(JOB_BY_COMMAND);
	profile_inferred(a, PROFILE_FRAMEWORK, 0, how, 0, 0)->text = text;
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
