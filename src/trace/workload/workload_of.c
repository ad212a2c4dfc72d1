/* The profile's values as keys of a workload, each with how it is known. */
#include "trace/workload/workload_of.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_out.h"
#include "base/say.h"
#include "base/str.h"
#include "conf/node.h"
#include "trace/profile/profile_parts.h"
#include "trace/workload/workload_numbers.h"
#include "trace/workload/workload_storage.h"
#include "workload/framework_costs.h"
#include "workload/workload.h"

#define START_S 0.0005      /* more than the framework's own time, for starting workers */
#define PREPROCESS_S 0.0005 /* more than the library's own time, for a worker's wait */

static const char *known(const struct profile_value *f)
{
	static const char *const words[] = {"", "seen", "inferred", "assumed", ""};

	return f->in_log > 0 ? "seen in the log, which is incomplete" : words[f->how];
}

/* "  key: value   # how" */
static void put(struct buf *out, const char *key, const char *how, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static void put(struct buf *out, const char *key, const char *how, const char *fmt, ...)
{
	size_t begin = out->len;
	va_list ap;

	buf_printf(out, "  %s: ", key);
	va_start(ap, fmt);
	buf_vprintf(out, fmt, ap);
	va_end(ap);
	if (how && how[0]) {
		while (out->len - begin < 40)
			buf_putc(out, ' ');
		buf_printf(out, " # %s", how);
	}
	buf_putc(out, '\n');
}

/* A text of any characters. */
static void put_text(struct buf *out, const char *key, const char *text)
{
	struct node *map = node_new(NODE_MAP, (struct node_mark){0});
	struct buf line = {0};

	node_set(map, key, node_new_str(text, (struct node_mark){0}));
	yaml_emit(map, &line);
	buf_printf(out, "  %s", line.data);
	buf_release(&line);
	node_free(map);
}

static const char *why_not(const struct profile_value *v, char *out, unsigned size)
{
	const struct fact unsaid = FACT(JOB_NOT_SHOWN);

	return words_of(v->rule.reason ? &v->rule : &unsaid, WORDS_SHORT, out, size);
}

static const char *yes(bool v)
{
	return v ? "True" : "False";
}

/* ---- the dataset ---- */

/* A format whose files are only near the sizes that they should have. */
static bool is_text(const struct format_facts *f)
{
	return !f->magic && !f->kept_open &&
	       !(f->flags & (FORMAT_STREAM | FORMAT_MAPS | FORMAT_FILLED));
}

static const struct format_facts *format_with(unsigned flag, bool *same)
{
	*same = false;
	for (size_t i = 0; format_facts_table[i]; i++)
		if (format_facts_table[i]->flags & flag)
			return format_facts_table[i];
	return NULL;
}

/* The format of the job's files, or of ours the one that is read most alike. */
static const struct format_facts *format_for(const struct profile *a,
					     const struct recorded_has *has, bool *same)
{
	bool many = has->exact && has->per_file > 1;
	const struct format_facts *f = profile_format(a);

	if (workload_unread(a) > 0 && a->job->sees & JOB_SEES_REQUESTS) /* it is mapped */
		return format_with(FORMAT_MAPS, same);
	/* of an image or a text, files have not the sizes that requests need */
	if (f && (many ? f->flags & FORMAT_IMAGE : has->requests && is_text(f)))
		return format_with(FORMAT_RAW_ARRAY, same);

	*same = f != NULL;
	for (size_t i = 0; format_facts_table[i] && !f; i++) {
		const struct format_facts *v = format_facts_table[i];

		if (many           ? v->flags & FORMAT_RAW_ARRAY
		    : a->stream    ? v->flags & FORMAT_STREAM
		    : a->container ? v->kept_open > 0
				   : v->flags & FORMAT_RAW_ARRAY)
			f = v;
	}
	return f;
}

static void put_ways(const struct profile *a, const struct recorded_has *has, struct buf *out)
{
	bool held = a->piece && a->held_most > 0 && has->per_file <= (double)a->held_most;
	const struct profile_value *v = &a->value[PROFILE_SAMPLES_PER_FILE];

	put(out, "num_samples_per_file",
	    !held       ? "assumed: the ways in which the job read a file"
	    : v->of > 0 ? known(v)
			: "inferred: of the file with most, others have fewer",
	    "%.0f", has->per_file);
}

static void put_dataset(const struct profile *a, const char *recorded,
			const struct recorded_has *has, struct buf *out)
{
	bool many = recorded && has->exact && has->per_file > 1;
	bool same, sizes;
	const struct format_facts *f = format_for(a, has, &same);
	double per_file = workload_number(a, PROFILE_SAMPLES_PER_FILE, 1);
	/* a file of ours for the files of a sample */
	double files = workload_number(a, a->companions > 0 ? PROFILE_SAMPLES : PROFILE_FILES, 1);
	const struct profile_value *size = &a->value[PROFILE_SAMPLE_BYTES];

	sizes = recorded && has->sizes &&
		((!a->container && !many) || (same && f->flags & FORMAT_FILLED));
	buf_puts(out, "\ndataset:\n");
	put(out, "format",
	    same ? known(&a->value[PROFILE_FORMAT])
	    : profile_format(a)
		    ? "assumed: files of any bytes, as those of the job's format cannot be as long"
		    : "assumed: the format here that is read most alike",
	    "%s", f ? f->name : "");
	put(out, "num_files_train",
	    has->filled[RECORDED_TRAIN]
		    ? "seen, and one of which nothing is read: it fills up short batches"
		    : known(&a->value[PROFILE_FILES]),
	    "%.0f", files + has->filled[RECORDED_TRAIN]);
	if (many) {
		/* as long as the job's files, for requests anywhere in them */
		put_ways(a, has, out);
		if (!sizes)
			put(out, "record_length_bytes", "assumed, of the size of the largest file",
			    "%.0f", fmax(1, ceil(has->file_bytes / has->per_file)));
	} else if (workload_unread(a) > 0) {
		put(out, "num_samples_per_file",
		    workload_number(a, PROFILE_STEPS, 0) > 0
			    ? "assumed: a sample is a step, as the log does not show what is read"
			    : "assumed, for samples of about 100 KB: not identifiable",
		    "%.0f", workload_unread(a));
		put(out, "record_length_bytes", "assumed, of the size of the files", "%.0f",
		    fmax(1, ceil(workload_number(a, PROFILE_DATA_BYTES, 0) / fmax(1, files) /
				 workload_unread(a))));
	} else if (a->container) {
		put(out, "num_samples_per_file", known(&a->value[PROFILE_SAMPLES_PER_FILE]), "%.0f",
		    per_file);
	} else if (a->stream && has->requests) {
		put(out, "num_samples_per_file",
		    "assumed: a file is read from its begin to its end", "1");
	} else if (a->stream) {
		double bytes = workload_number(a, PROFILE_DATA_BYTES, 0) / fmax(files, 1);

		put(out, "num_samples_per_file",
		    "assumed, for samples of about 100 KB: not identifiable", "%.0f",
		    fmax(1, round(bytes / 100e3)));
		put(out, "record_length_bytes", "assumed, of the size of the files", "%.0f",
		    bytes / fmax(1, round(bytes / 100e3)));
	}
	if (profile_has(a, PROFILE_SAMPLE_BYTES) && !sizes && !many) {
		bool whole = !a->container;

		put(out, whole ? "file_bytes" : "record_length_bytes", known(size), "%.0f",
		    size->number);
		if (size->stdev > 0.001 * size->number)
			put(out, "record_length_bytes_stdev", known(size), "%.0f", size->stdev);
	}
	if (workload_counts(a, PROFILE_EVAL_FILES))
		put(out, "num_files_eval",
		    has->filled[RECORDED_EVAL] ? "seen, and one that fills up short batches"
					       : known(&a->value[PROFILE_EVAL_FILES]),
		    "%.0f", workload_number(a, PROFILE_EVAL_FILES, 0) + has->filled[RECORDED_EVAL]);
	if (sizes)
		put(out, "sizes", "seen: the size of each file, in recorded_file", "recorded");
	if (recorded)
		put_text(out, "recorded_file", recorded);
	put(out, "data_folder", "or --data on the command line", "data");
}

/* ---- the loader ---- */

/* What starting workers takes beyond the framework's own. */
static void put_starts(const struct profile *a, const struct framework_costs *costs,
		       struct buf *out)
{
	static const struct {
		enum profile_key value;
		enum cost_row row;
		const char *key;
	} all[] = {{PROFILE_WORKER_START, COST_START_WORKER, "worker_start_time"},
		   {PROFILE_WORKER_INIT, COST_BEGIN_WORKER, "worker_init_time"}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		double own = costs ? costs_of(costs, all[i].row)->fixed : 0;
		double more =
			profile_has(a, all[i].value) ? a->value[all[i].value].number - own : 0;

		if (more > START_S)
			put(out, all[i].key,
			    own > 0 ? "inferred: what the framework does not take" : "inferred",
			    "%.6g", more);
	}
}

/* Samples of the last batch of an epoch, where it is smaller than the others; 0: none, or it is not
 * known. Runs have whole batches. */
static double short_batch(const struct profile *a, const struct recorded_has *has)
{
	double batch = workload_number(a, PROFILE_BATCH, 0),
	       ranks = workload_number(a, PROFILE_RANKS, 0);
	double samples = workload_number(a, PROFILE_SAMPLES, 0),
	       epochs = workload_number(a, PROFILE_EPOCHS, 0);
	double of_rank, steps = workload_number(a, PROFILE_STEPS, 0);

	if (a->piece || has->filled[RECORDED_TRAIN] || !(batch > 1 && ranks >= 1 && epochs >= 1) ||
	    a->stream || a->replacement)
		return 0;
	of_rank = ceil(samples / ranks);
	return steps == epochs * ceil(of_rank / batch) ? fmod(of_rank, batch) : 0;
}

static void put_reader(const struct profile *a, const char *recorded,
		       const struct recorded_has *has, const struct framework_costs *costs,
		       struct buf *out)
{
	const struct profile_value *order = &a->value[PROFILE_ORDER];
	bool shuffled = !profile_has(a, PROFILE_ORDER) || a->order > JOB_ORDER_NEARLY_SAME;
	double workers = workload_number(a, PROFILE_WORKERS, 0);

	buf_puts(out, "\nreader:\n");
	if (a->files_of_sample)
		buf_printf(out,
			   "  # A sample of the job is %" PRIu32 " files. Here each of them is a "
			   "sample: batches have %" PRIu32 " times as many.\n",
			   a->files_of_sample, a->files_of_sample);
	if (a->stream && has->requests)
		put(out, "batch_size", "assumed: a step here is a file", "1");
	else if (workload_unread(a) > 0)
		put(out, "batch_size",
		    workload_number(a, PROFILE_STEPS, 0) > 0 ? "assumed: a sample here is a step"
							     : "assumed: not identifiable",
		    "1");
	else if (a->piece && a->value[PROFILE_BATCH].rule.reason == REASON_JOB_STREAMS)
		put(out, "batch_size",
		    "assumed: a sample here is a step, as the log does not show the job's", "1");
	else if (profile_has(a, PROFILE_BATCH))
		put(out, "batch_size", known(&a->value[PROFILE_BATCH]), "%.0f",
		    a->value[PROFILE_BATCH].number);
	else if (workload_mean_batch(a) >= 1)
		put(out, "batch_size", "assumed: batches differ; samples of a step in the mean",
		    "%.0f", workload_mean_batch(a));
	else
		buf_puts(out, "  # batch_size is not identifiable: reader.batch_size=N\n");
	if (short_batch(a, has) > 0)
		buf_printf(out,
			   "  # The last batch of an epoch, of %.0f, is left out: a run has whole "
			   "batches.\n",
			   short_batch(a, has));
	if (profile_has(a, PROFILE_EVAL_BATCH))
		put(out, "batch_size_eval", known(&a->value[PROFILE_EVAL_BATCH]), "%.0f",
		    a->value[PROFILE_EVAL_BATCH].number);
	else if (workload_counts(a, PROFILE_EVALUATIONS) && profile_has(a, PROFILE_BATCH))
		put(out, "batch_size_eval", "assumed: that of training", "%.0f",
		    a->value[PROFILE_BATCH].number);
	if (profile_has(a, PROFILE_WORKERS))
		put(out, "read_threads", known(&a->value[PROFILE_WORKERS]), "%.0f", workers);
	else
		put(out, "read_threads", "assumed", "1");
	if (a->stream && has->requests && workers > 0)
		put(out, "prefetch_size", "assumed: a file of each worker", "%.0f", workers);
	else if (profile_has(a, PROFILE_PREFETCH))
		put(out, "prefetch_size", known(&a->value[PROFILE_PREFETCH]), "%.0f",
		    a->value[PROFILE_PREFETCH].number);
	else if (workers > 0)
		put(out, "prefetch_size", "assumed: two batches a worker", "%.0f", 2 * workers);
	put(out, "file_shuffle", profile_has(a, PROFILE_ORDER) ? known(order) : "assumed", "%s",
	    shuffled ? "seed" : "off");
	put(out, "sample_shuffle", profile_has(a, PROFILE_ORDER) ? known(order) : "assumed", "%s",
	    shuffled ? "seed" : "off");
	if (profile_has(a, PROFILE_SHUFFLE_WINDOW))
		put(out, "shuffle_size", known(&a->value[PROFILE_SHUFFLE_WINDOW]), "%.0f",
		    a->value[PROFILE_SHUFFLE_WINDOW].number);
	if (profile_has(a, PROFILE_SHUFFLE_WINDOW) && a->shuffle_initial >= 1)
		buf_printf(out, "  # With reader.data_loader=webdataset: shuffle_initial: %.0f\n",
			   a->shuffle_initial);
	if (recorded && has->order)
		put(out, "order", "seen: the order of each epoch", "recorded");
	else if (workload_number(a, PROFILE_RANKS, 1) > 1)
		put(out, "order", "assumed: DistributedSampler", "distributed");
	if (recorded && has->requests)
		put(out, "access",
		    has->exact ? "seen: the requests of each visit"
			       : "seen: the requests for each sample",
		    "recorded");
	if (profile_has(a, PROFILE_KEPT_OPEN))
		put(out, "read_type", "inferred: files stay open", "memory");
	if (profile_has(a, PROFILE_PERSISTENT))
		put(out, "persistent_workers", known(&a->value[PROFILE_PERSISTENT]), "%s",
		    yes(a->value[PROFILE_PERSISTENT].number != 0));
	else if (workers > 0)
		put(out, "persistent_workers", "assumed", "False");
	put_starts(a, costs, out);
}

/* ---- the training ---- */

/* What the framework takes of a step, which a run with its costs adds. */
static double of_framework_s(const struct profile *a, const struct framework_costs *costs)
{
	double batch = workload_number(a, PROFILE_BATCH, 1);
	double bytes = batch * workload_number(a, PROFILE_SAMPLE_BYTES, 0);
	bool alone = workload_number(a, PROFILE_WORKERS, 0) == 0;
	const struct cost_law *law;

	if (!costs)
		return 0;
	law = costs_of(costs, alone ? COST_INLINE : COST_HAND_OVER);
	return cost_law_s(law, batch, bytes) +
	       cost_after_wait_s(law, bytes, workload_number(a, PROFILE_STEP, 0));
}

/* The same of what the log shows as computation: pipes show where taking a batch ends. `work`: the
 * run repeats what the job did for a batch without workers, too. */
static double framework_s(const struct profile *a, const struct framework_costs *costs, bool work)
{
	return a->steps > 0 || work ? 0 : of_framework_s(a, costs);
}

#define READY_LEAST 8    /* steps, and half of all */
#define READY_ALIKE 0.05 /* of the median, for most of them */

/* The time of a step whose batch lay ready; 0: most had to wait, or they differ. What libraries
 * that read shards hand over differs from what the framework's costs were measured with: then the
 * step is known better than its parts. */
static double ready_step_s(const struct profile *a)
{
	const struct format_facts *f = profile_format(a);
	struct values v = {0};
	size_t near = 0, all = 0;
	double step;

	if (!a->piece && !(f && f->folder_file))
		return 0;
	for (size_t i = 1; i < a->steps; i++) {
		const struct step *s = &a->step[i], *last = s - 1;

		if (s->evaluation || last->evaluation || s->rank != last->rank ||
		    s->epoch != last->epoch)
			continue;
		all++;
		if (s->asked_ns != JOB_UNKNOWN && s->ready_ns != JOB_UNKNOWN &&
		    s->ready_ns <= s->asked_ns && s->taken_ns > last->taken_ns)
			values_add(&v, (double)(s->taken_ns - last->taken_ns) / 1e9);
	}
	step = values_median(&v);
	for (size_t i = 0; i < v.n; i++)
		near += fabs(v.v[i] - step) <= READY_ALIKE * step;
	step = v.n >= READY_LEAST && 2 * v.n >= all && 2 * near >= v.n ? step : 0;
	free(v.v);
	return step;
}

/* Steps of the job for each file of a stream, which is a step of the workload; 1 of others. */
static double steps_of_file(const struct profile *a, const struct recorded_has *has)
{
	double files = workload_number(a, PROFILE_FILES, 0) *
		       workload_number(a, PROFILE_EPOCHS, 1) /
		       fmax(1, workload_number(a, PROFILE_RANKS, 1));
	double steps = workload_number(a, PROFILE_STEPS, 0);

	if (has->order) /* a step is a visit */
		files = (double)a->visits / fmax(1, workload_number(a, PROFILE_RANKS, 1));
	return a->stream && has->requests && files > 0 && steps > 0 ? steps / files : 1;
}

#define TAIL_MOST 0.02 /* by which it is above the median */

/* Every step of the workload takes the same, those of a job have a tail: between the median and the
 * mean, and nearer to the median where a few steps make the mean. */
static void put_own_time(const struct profile *a, double framework_s, struct buf *out)
{
	double each = fmin((a->own_s + a->own_mean_s) / 2, (1 + TAIL_MOST) * a->own_s);

	put(out, "computation_time",
	    "inferred: a step without the wait for its batch, less what the framework takes",
	    "%.6g", fmax(0, each - framework_s));
}

static void put_training(const struct profile *a, const struct recorded_has *has,
			 const struct framework_costs *costs, struct buf *out)
{
	double each = steps_of_file(a, has), ready = ready_step_s(a);
	char why[256];
	const struct profile_value *compute = &a->value[PROFILE_COMPUTE];
	bool same = profile_has(a, PROFILE_ORDER) &&
		    (a->order == JOB_ORDER_NEARLY_SAME || a->order == JOB_ORDER_RANDOM_SAME);

	buf_puts(out, "\ntrain:\n");
	if (workload_counts(a, PROFILE_EPOCHS))
		put(out, "epochs", known(&a->value[PROFILE_EPOCHS]), "%.0f",
		    fmax(1, workload_number(a, PROFILE_EPOCHS, 1)));
	else
		put(out, "epochs", "assumed", "1");
	/* where batches differ, a shorter epoch shows no end within it */
	if (profile_has(a, PROFILE_STEPS) && profile_has(a, PROFILE_BATCH) && recorded_of_cut(a))
		put(out, "total_training_steps", "seen: it ended within an epoch", "%.0f",
		    a->value[PROFILE_STEPS].number);
	if (same)
		put(out, "seed_change_epoch", "inferred: epochs have one order", "False");
	if (has->work && a->own_s > 0)
		put_own_time(a, of_framework_s(a, costs), out);
	else if (ready > 0 && profile_has(a, PROFILE_COMPUTE))
		put(out, "computation_time",
		    "inferred: a step whose batch lay ready, less what the framework takes", "%.6g",
		    fmax(0, ready - of_framework_s(a, costs)));
	else if (profile_has(a, PROFILE_COMPUTE))
		put(out, "computation_time",
		    each != 1          ? "inferred: of the steps for a file"
		    : compute->at_most ? "inferred: the step, less what the framework takes"
				       : known(compute),
		    "%.6g", each * fmax(0, compute->number - framework_s(a, costs, has->work)));
	else if (a->between_s > 0)
		put(out, "computation_time",
		    "assumed: the mean of the times from a batch to asking for the next, which "
		    "differ",
		    "%.6g", each * a->between_s);
	else
		buf_printf(out,
			   "  # computation_time is not identifiable (%s): "
			   "train.computation_time=SECONDS\n",
			   why_not(compute, why, sizeof(why)));
}

/* What a reader does within a visit of a sample beside its reads: libraries decode while they read,
 * and the requests of a job, made again, come one behind the other. */
static double within_visits(const struct profile *a)
{
	struct values beside = {0};
	double v;

	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *x = &a->visit[i];

		if (!is_eval(a, x) && x->begin_ns != JOB_UNKNOWN && x->end_ns != JOB_UNKNOWN)
			values_add(&beside, (double)(x->end_ns - x->begin_ns - x->read_ns) / 1e9);
	}
	v = values_median(&beside);
	free(beside.v);
	return fmax(0, v);
}

static void put_decoding(const struct profile *a, const struct recorded_has *has,
			 const struct framework_costs *costs, struct buf *out)
{
	bool same;
	const struct format_facts *f = format_for(a, has, &same);
	double decode = workload_number(a, PROFILE_DECODE, 0), library = 0, within = 0;
	struct buf why = {0};

	if (has->work) {
		put(out, "recorded_work",
		    a->steps > 0 ? "seen: a worker's time for a batch, less its requests"
				 : "seen: the time between samples",
		    "True");
		return;
	}
	if (has->requests && !a->stream)
		within = within_visits(a);
	buf_printf(&why, "inferred: medians, decoding %s ms", NUMBER(decode * 1e3, 3));
	if (within > 0)
		buf_printf(&why, ", and %s ms between the reads of a sample",
			   NUMBER(within * 1e3, 3));
	decode += within;
	if (costs && f && same)
		library = cost_load_s(costs_of_load(costs, f),
				      workload_number(a, PROFILE_SAMPLE_BYTES, 0),
				      workload_number(a, PROFILE_WORKERS, 0) == 0);
	if (library > 0)
		buf_printf(&why, ", less %s ms of the library", NUMBER(library * 1e3, 3));
	if (decode - library > PREPROCESS_S)
		put(out, "preprocess_time", why.data, "%.6g", decode - library);
	buf_release(&why);
}

/* ---- checkpoints and evaluations ---- */

static const char *checkpoint_format(const struct profile *a)
{
	for (size_t g = 0; g < a->groups; g++)
		for (size_t i = 0; a->group[g].role == FILE_CHECKPOINT && checkpoint_facts_table[i];
		     i++)
			if (strcmp(checkpoint_facts_table[i]->name, a->group[g].extension) == 0)
				return checkpoint_facts_table[i]->name;
	return NULL;
}

static void put_checkpoints(const struct profile *a, struct buf *out)
{
	double steps = workload_number(a, PROFILE_CHECKPOINT_STEPS, 0);
	double epochs = fmax(1, workload_number(a, PROFILE_EPOCHS, 1));
	double in_epoch = workload_number(a, PROFILE_STEPS, 0) / epochs;
	double each = in_epoch > 0 ? steps / in_epoch : 0;

	if (!workload_counts(a, PROFILE_CHECKPOINTS))
		return;
	buf_puts(out, "\ncheckpoint:\n");
	if (each >= 1 && fabs(each - round(each)) < 1e-6) {
		put(out, "checkpoint_after_epoch", known(&a->value[PROFILE_CHECKPOINT_STEPS]),
		    "%.0f", each);
		put(out, "epochs_between_checkpoints", known(&a->value[PROFILE_CHECKPOINT_STEPS]),
		    "%.0f", each);
	} else if (steps > 0) {
		put(out, "steps_between_checkpoints", known(&a->value[PROFILE_CHECKPOINT_STEPS]),
		    "%.0f", steps);
	} else if (profile_has(a, PROFILE_CHECKPOINT_SECONDS)) {
		put(out, "seconds_between_checkpoints",
		    known(&a->value[PROFILE_CHECKPOINT_SECONDS]), "%.6g",
		    a->value[PROFILE_CHECKPOINT_SECONDS].number);
	}
	if (checkpoint_format(a))
		put(out, "format", "seen", "%s", checkpoint_format(a));
	if (profile_has(a, PROFILE_CHECKPOINT_SYNC))
		put(out, "fsync", known(&a->value[PROFILE_CHECKPOINT_SYNC]), "%s",
		    yes(a->value[PROFILE_CHECKPOINT_SYNC].number != 0));
	if (profile_has(a, PROFILE_CHECKPOINT_STOPS) &&
	    a->value[PROFILE_CHECKPOINT_STOPS].number == 0)
		put(out, "async", known(&a->value[PROFILE_CHECKPOINT_STOPS]), "True");
}

/* Loaders that are none of ours are taken as PyTorch's, and so is one that would read in a way of
 * its own where the requests of the job are known. */
static int framework_of(const struct profile *a, const struct recorded_has *has)
{
	return a->tensorflow && !has->requests ? FRAMEWORK_TENSORFLOW : FRAMEWORK_PYTORCH;
}

/* How near the requests of the workload are to those of the log. */
static void put_fidelity(const struct profile *a, const struct recorded_has *has, struct buf *out)
{
	double reads = 0, bytes = 0;
	char text[2][64];

	for (size_t i = 0; i < a->job->events; i++) {
		const struct job_event *v = &a->job->event[i];

		if (v->kind == JOB_READ && v->result > 0 && profile_is_data(a, v->file) &&
		    !profile_is_apart(a, v)) {
			reads++;
			bytes += (double)v->result;
		}
	}
	buf_puts(out, "# Fidelity: ");
	if (reads <= 0) {
		buf_puts(out,
			 "the log has no requests to the dataset (they are counted or mapped): "
			 "those of the\n# workload are the format's.\n");
		return;
	}
	buf_printf(out, "the log has %.0f reads of %s of the dataset. ", reads,
		   str_bytes(bytes, text[0], sizeof(text[0])));
	if (has->requests)
		buf_printf(
			out,
			"The workload makes %.0f of %s\n# (%.1f %% of the reads): those of the "
			"job (reader.access: recorded). With reader.access=framework\n# it reads "
			"as the format's library, for other sizes and files.\n",
			has->reads, str_bytes(has->read_bytes, text[1], sizeof(text[1])),
			100 * has->reads / reads);
	else
		buf_puts(out, "The workload makes\n# those of the format's library, which are not "
			      "compared.\n");
}

static void put_evaluation(const struct profile *a, struct buf *out)
{
	double epochs = workload_number(a, PROFILE_EPOCHS, 1),
	       evaluations = workload_number(a, PROFILE_EVALUATIONS, 0), each;

	if (evaluations <= 0)
		return;
	each = fmax(1, round(epochs / evaluations));
	buf_puts(out, "\nevaluation:\n");
	if (workload_of_evaluations(a) > 1)
		buf_printf(out, "  # The %" PRIu32 " evaluations of an epoch follow it as one.\n",
			   workload_of_evaluations(a));
	put(out, "eval_after_epoch", "inferred", "%.0f", each);
	put(out, "epochs_between_evals", "inferred", "%.0f", each);
	if (profile_has(a, PROFILE_EVAL_COMPUTE))
		put(out, "eval_time", known(&a->value[PROFILE_EVAL_COMPUTE]), "%.6g",
		    a->value[PROFILE_EVAL_COMPUTE].number);
	else if (a->eval_between_s > 0)
		put(out, "eval_time",
		    "assumed: the mean of the times from a batch to asking for the next, which "
		    "differ",
		    "%.6g", a->eval_between_s);
	else
		buf_puts(out, "  # its time of computation is not identifiable: "
			      "evaluation.eval_time=SECONDS\n");
}

/* ---- all of it ---- */

/* The first that is built in; NULL: none is. */
static const char *torch_profile(void)
{
	const char *const *name = costs_builtin_names();

	while (*name && !str_starts(*name, "torch-"))
		name++;
	return *name;
}

void workload_of(const struct profile *a, const char *recorded, struct buf *out)
{
	const char *profile = torch_profile();
	bool torch = workload_number(a, PROFILE_WORKERS, 0) == 0 || a->steps > 0 || a->processes;
	struct framework_costs *costs = torch && profile ? costs_load(profile, NULL) : NULL;
	double ranks = fmax(1, workload_number(a, PROFILE_RANKS, 1));
	struct recorded_has has;

	recorded_of_look(a, &has);

	buf_say(out, "# What a real job did, from its log (%s). Of each value: seen in the log,\n",
		a->job->source);
	buf_puts(out, "# inferred from it, or assumed.\n#\n");
	buf_printf(out,
		   "#     stoker run THIS.yaml -n %.0f workflow.generate_data=true "
		   "dataset.data_folder=FOLDER\n",
		   ranks);
	buf_puts(out, "#\n# generates files like those of the job in FOLDER and reads them.\n#\n");
	put_fidelity(a, &has, out);
	buf_puts(out, "model:\n  name: job\n");
	if (profile_has(a, PROFILE_CHECKPOINT_BYTES))
		put(out, "model_size_bytes", "seen: the size of a checkpoint", "%.0f",
		    a->value[PROFILE_CHECKPOINT_BYTES].number);
	buf_puts(out, "\nframework:\n");
	put(out, "name",
	    profile_has(a, PROFILE_FRAMEWORK) ? known(&a->value[PROFILE_FRAMEWORK]) : "assumed",
	    "%s", workload_framework_names[framework_of(a, &has)]);
	if (costs)
		put(out, "costs", "assumed: 'stoker calibrate' measures those of a machine", "%s",
		    profile);
	buf_puts(out, "\nworkflow:\n");
	put(out, "train", NULL, "True");
	put(out, "evaluation", NULL, "%s", yes(workload_counts(a, PROFILE_EVALUATIONS)));
	put(out, "checkpoint", NULL, "%s", yes(workload_counts(a, PROFILE_CHECKPOINTS)));
	workload_put_storage(a, out);
	put_dataset(a, recorded, &has, out);
	put_reader(a, recorded, &has, costs, out);
	put_decoding(a, &has, costs, out);
	put_training(a, &has, costs, out);
	put_evaluation(a, out);
	put_checkpoints(a, out);
	costs_release(costs);
}

static void ask(const struct profile *a, const struct recorded_has *has, struct buf *asked)
{
	char why[256];

	if (short_batch(a, has) > 0)
		buf_printf(asked,
			   "The job's epochs end with a batch of %.0f samples. A run has whole "
			   "batches and leaves it out.\n",
			   short_batch(a, has));
	if (!profile_has(a, PROFILE_BATCH) && !(a->stream && has->requests) &&
	    workload_mean_batch(a) < 1 && workload_unread(a) <= 0)
		buf_printf(asked,
			   "the batch size is not identifiable (%s): give "
			   "reader.batch_size=N\n",
			   why_not(&a->value[PROFILE_BATCH], why, sizeof(why)));
	if (!profile_has(a, PROFILE_COMPUTE) && a->between_s <= 0)
		buf_printf(asked,
			   "the time of computation is not identifiable (%s): give "
			   "train.computation_time=SECONDS\n",
			   why_not(&a->value[PROFILE_COMPUTE], why, sizeof(why)));
	if (workload_counts(a, PROFILE_EVALUATIONS) && !profile_has(a, PROFILE_EVAL_COMPUTE) &&
	    a->eval_between_s <= 0)
		buf_puts(asked, "the time of computation of an evaluation step is not "
				"identifiable: give evaluation.eval_time=SECONDS\n");
}

/* A file that 'stoker run' would refuse is not left behind. */
static int check_workload(const struct profile *a, const char *path, struct err *e)
{
	struct workload w;
	struct err refused = {0};
	struct workload_request request = {
		.workload = path,
		.ranks = (int64_t)fmax(1, workload_number(a, PROFILE_RANKS, 1)),
	};
	int rc = workload_load(&w, &request, &refused);

	workload_release(&w);
	return rc < 0 ? err_set(e, ERR_DATA,
				"what the log shows makes no workload that can be run: %s",
				refused.text)
		      : 0;
}

static bool asks_for_objects(const struct job *job)
{
	for (size_t i = 0; i < job->files; i++)
		if (job->file[i].kind == JOB_FILE_OBJECT)
			return true;
	return false;
}

static int write_workload(const struct profile *a, const char *path, struct buf *asked,
			  struct err *e)
{
	struct recorded_has has;
	bool recorded, written;
	struct buf text = {0}, beside = {0};
	const char *base = strrchr(path, '/');
	int rc = 0;

	char why[256];

	if (!a->trains)
		return err_set(e, ERR_DATA,
			       "a training was not seen (%s), so there is no workload to write%s",
			       words_of(&a->no_training, WORDS_SHORT, why, sizeof(why)),
			       a->job->sees & JOB_SEES_REQUESTS && !asks_for_objects(a->job)
				       ? ": 'stoker replay' repeats the requests of any job"
				       : "");
	if (!workload_counts(a, PROFILE_FILES))
		return err_set(e, ERR_DATA,
			       "the log shows no dataset that the job read: there is nothing to "
			       "make a workload of");
	recorded_of_look(a, &has);
	recorded = (has.sizes && !a->container && (!a->stream || has.requests)) || has.order ||
		   has.requests;
	buf_printf(&beside, "%s.recorded", path);
	if (recorded)
		rc = recorded_of_write(a, beside.data, 0, has.requests, e);
	written = rc == 0;
	if (rc == 0) {
		struct buf name = {0};

		buf_printf(&name, "%s.recorded", base ? base + 1 : path);
		workload_of(a, recorded ? name.data : NULL, &text);
		buf_release(&name);
		rc = file_write(path, text.data, text.len, e);
		written = written && rc == 0;
		if (rc == 0)
			rc = check_workload(a, path, e);
		if (rc == 0)
			ask(a, &has, asked);
	}
	if (rc < 0 && written) {
		(void)unlink(path);
		if (recorded)
			(void)unlink(beside.data);
	}
	buf_release(&beside);
	buf_release(&text);
	return rc;
}

int workload_of_write(const struct profile *a, const char *path, struct buf *asked, struct err *e)
{
	struct profile files, pieces;
	int rc;

	if (a->trains && (a->stream || a->larger) && profile_make_pieces(&pieces, a)) {
		rc = write_workload(&pieces, path, asked, e);
		profile_release_pieces(&pieces);
		return rc;
	}
	if (!a->trains || a->companions == 0)
		return write_workload(a, path, asked, e);
	profile_make_files(&files, a);
	rc = write_workload(files.trains ? &files : a, path, asked, e);
	profile_release(&files);
	return rc;
}
