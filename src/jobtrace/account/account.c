/* The facts as rows, and what sets them. */
#include "jobtrace/account/account.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "jobtrace/account/account_parts.h"

const struct fact_row fact_rows[ACCOUNT_FACTS] = {
	[ACCOUNT_FRAMEWORK] = {"framework", "framework", FACT_WORD, false},
	[ACCOUNT_RANKS] = {"ranks", "ranks (processes that train)", FACT_COUNT, false},
	[ACCOUNT_FORMAT] = {"format", "format", FACT_WORD, false},
	[ACCOUNT_FOLDER] = {"folder", "folder of the dataset", FACT_WORD, false},
	[ACCOUNT_FILES] = {"files", "files of the dataset", FACT_COUNT, false},
	[ACCOUNT_DATA_BYTES] = {"dataset_bytes", "size of the dataset", FACT_BYTES, false},
	[ACCOUNT_SAMPLES] = {"samples", "samples", FACT_COUNT, false},
	[ACCOUNT_SAMPLES_PER_FILE] = {"samples_per_file", "samples per file", FACT_COUNT, false},
	[ACCOUNT_SAMPLE_BYTES] = {"sample_bytes", "size of a sample", FACT_BYTES, false},
	[ACCOUNT_SIZES] = {"sizes", "sizes of samples", FACT_WORD, false},
	[ACCOUNT_REQUESTS] = {"requests_per_sample", "requests per sample", FACT_COUNT, false},
	[ACCOUNT_KEPT_OPEN] = {"files_kept_open", "files that a reader keeps open", FACT_COUNT,
			       false},
	[ACCOUNT_EPOCHS] = {"epochs", "epochs", FACT_COUNT, false},
	[ACCOUNT_ORDER] = {"order", "order of samples", FACT_WORD, false},
	[ACCOUNT_SHUFFLE_WINDOW] = {"shuffle_window", "shuffle buffer (samples)", FACT_COUNT,
				    false},
	[ACCOUNT_SHARDING] = {"sharding", "samples of the ranks", FACT_WORD, false},
	[ACCOUNT_WORKERS] = {"workers", "workers of each rank", FACT_COUNT, false},
	[ACCOUNT_PERSISTENT] = {"persistent_workers", "workers live through epochs", FACT_FLAG,
				false},
	[ACCOUNT_WORKER_START] = {"worker_start_s", "time to start a worker", FACT_SECONDS, true},
	[ACCOUNT_WORKER_INIT] = {"worker_init_s", "time to a worker's first read", FACT_SECONDS,
				 true},
	[ACCOUNT_BATCH] = {"batch", "batch size of each rank", FACT_COUNT, false},
	[ACCOUNT_STEPS] = {"steps", "training steps of each rank", FACT_COUNT, false},
	[ACCOUNT_PREFETCH] = {"prefetch", "batches read ahead by each rank", FACT_COUNT, false},
	[ACCOUNT_STEP] = {"step_s", "time of a step", FACT_SECONDS, false},
	[ACCOUNT_COMPUTE] = {"compute_s", "computation in a step", FACT_SECONDS, false},
	[ACCOUNT_DECODE] = {"decode_s", "decoding of a sample", FACT_SECONDS, false},
	[ACCOUNT_CHECKPOINTS] = {"checkpoints", "checkpoints", FACT_COUNT, false},
	[ACCOUNT_CHECKPOINT_STEPS] = {"steps_between_checkpoints", "steps between checkpoints",
				      FACT_COUNT, false},
	[ACCOUNT_CHECKPOINT_SECONDS] = {"seconds_between_checkpoints", "time between checkpoints",
					FACT_SECONDS, false},
	[ACCOUNT_CHECKPOINT_BYTES] = {"checkpoint_bytes", "size of a checkpoint", FACT_BYTES,
				      false},
	[ACCOUNT_CHECKPOINT_FILES] = {"checkpoint_files", "files of a checkpoint", FACT_COUNT,
				      true},
	[ACCOUNT_CHECKPOINT_WRITE] = {"checkpoint_write_bytes", "size of its writes", FACT_BYTES,
				      true},
	[ACCOUNT_CHECKPOINT_SYNC] = {"checkpoint_fsync", "it is synced (fsync)", FACT_FLAG, true},
	[ACCOUNT_CHECKPOINT_RENAME] = {"checkpoint_rename", "it is renamed when complete",
				       FACT_FLAG, true},
	[ACCOUNT_CHECKPOINT_STOPS] = {"checkpoint_stops_training", "training stops meanwhile",
				      FACT_FLAG, false},
	[ACCOUNT_EVALUATIONS] = {"evaluations", "evaluations", FACT_COUNT, false},
	[ACCOUNT_EVAL_FILES] = {"eval_files", "files of evaluation", FACT_COUNT, false},
	[ACCOUNT_EVAL_SAMPLES] = {"eval_samples", "samples of an evaluation", FACT_COUNT, false},
	[ACCOUNT_EVAL_BATCH] = {"eval_batch", "batch size of evaluation", FACT_COUNT, false},
	[ACCOUNT_EVAL_COMPUTE] = {"eval_compute_s", "computation in a step of it", FACT_SECONDS,
				  false},
	[ACCOUNT_CACHE] = {"cache", "page cache", FACT_WORD, false},
	[ACCOUNT_WAITING] = {"waiting", "share of time waiting for data", FACT_SHARE, false},
	[ACCOUNT_LIMIT] = {"limit", "what limited the job", FACT_WORD, false},
};

const char *const fact_how_names[] = {"absent", "seen", "inferred", "assumed", "unknown"};

const char *const file_role_names[FILE_ROLES] = {"other", "dataset", "evaluation", "checkpoint",
						 "code",  "log",     "cache"};

/* The reason that several subjects give. */
const char account_waiting_for_data[] = "the job was waiting for data";

const char *account_text(struct account *a, const char *fmt, ...)
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

static struct fact *set(struct account *a, enum account_fact f, enum fact_how how, double number,
			const char *rule)
{
	assert(f < ACCOUNT_FACTS);
	a->fact[f] = (struct fact){.how = how, .number = number, .stdev = -1, .rule = rule};
	return &a->fact[f];
}

struct fact *account_seen(struct account *a, enum account_fact f, double number)
{
	return set(a, f, FACT_SEEN, number, NULL);
}

struct fact *account_inferred(struct account *a, enum account_fact f, double number,
			      const char *rule, uint64_t agree, uint64_t of)
{
	struct fact *fact = set(a, f, FACT_INFERRED, number, rule);

	fact->agree = agree;
	fact->of = of;
	return fact;
}

struct fact *account_unknown(struct account *a, enum account_fact f, const char *reason)
{
	return set(a, f, FACT_UNKNOWN, 0, reason);
}

bool account_has(const struct account *a, enum account_fact f)
{
	return a->fact[f].how != FACT_ABSENT && a->fact[f].how != FACT_UNKNOWN;
}

void account_release(struct account *a)
{
	texts_release(&a->names);
	free(a->role);
	free(a->group_of);
	free(a->group);
	free(a->sample);
	free(a->visit);
	free(a->reader);
	free(a->trainer);
	free(a->apart_until_ns);
	free(a->step);
	*a = (struct account){0};
}
