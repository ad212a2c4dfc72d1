/* Least levels of verdicts, by the figures of a result.json. The bounds are those of the rows, in
 * verdict_*.c. */
#include "judge/recorded.h"

#include "base/str.h"
#include "judge/recorded_json.h"
#include "judge/run_length.h"
#include "store/store.h"

static const double ALL_SHARE = 0.99; /* of what training read: the device delivered it all */
static const double CACHE_SHARE = 0.10;
static const double CACHE_WHOLE = 0.5;
static const double GROWN_SHARE = 0.01;
static const double GROWN_BYTES = 65536;
static const double SPREAD_POINTS = 5;
static const double EPOCH_SPREAD_SHARE = 0.10;
static const double GAP_POINTS = 2;
static const double START_POINTS = 5;
static const double RATE_SHARE = 0.05;
static const double START_SHARE = 0.10;
static const double WINDOW_SHARE = 0.20;
static const double WINDOW_POINTS = 5;
static const double DROPPED_SHARE = 0.01;
static const double TAKEN_SHARE = 0.95;
static const double STALL_WAITED_S = 0.25;
static const double STALL_WAITED_SHARE = 0.005;
static const double STALL_HIDDEN_S = 0.5;

void recorded_complete(const json_t *result, const struct workload *w, struct verdict *v)
{
	const char *status = json_string_value(part(result, "status"));

	(void)w;
	if (!says(result, "status", "interrupted") && !says(result, "status", "failed"))
		return;
	v->level = VERDICT_FAIL;
	verdict_say(v, "status is '%.20s'.", status);
}

void recorded_checkpoint(const json_t *result, const struct workload *w, struct verdict *v)
{
	static const char *const kinds[] = {"save", "load"};
	double written = 0, disk = 0;
	bool files = w && workload_base_store(w)->flags & STORE_HAS_FILES;

	for (int k = 0; k < 2; k++) {
		const json_t *each = part(part(part(result, "checkpoint"), kinds[k]), "each");

		for (size_t i = 0; i < json_array_size(each); i++) {
			const json_t *one = json_array_get(each, i);

			if (json_is_false(part(one, "whole")) && v->level != VERDICT_FAIL) {
				v->level = VERDICT_FAIL;
				verdict_say(v, "checkpoint.%s.each[%zu] is not whole.", kinds[k],
					    i);
			}
			if (k || !json_is_true(part(one, "whole")))
				continue;
			written += figure(one, "file_bytes");
			disk += figure(one, "disk_written_bytes");
		}
	}
	if (v->level != VERDICT_PASS || !w || !(written > 0))
		return;
	if (!files) {
		v->level = VERDICT_WARN;
		verdict_say(v, "the store has no files: they stay in memory or are discarded.");
	} else if (disk < TAKEN_SHARE * written) {
		v->level = VERDICT_WARN;
		verdict_say(v,
			    "%.10g bytes were written, and the disk received %.10g "
			    "(checkpoint.save.each).",
			    written, disk);
	} else if (isnan(disk) && !w->checkpoint.fsync) {
		v->level = VERDICT_WARN;
		verdict_say(v, "they were not synced (checkpoint.fsync).");
	} else if (isnan(disk)) {
		v->level = VERDICT_UNKNOWN;
		verdict_say(v, "no bytes that a disk received are recorded "
			       "(checkpoint.save.each).");
	}
}

/* Steps of the shortest measured window; NaN. *invalid: an epoch with steps has no AU. */
static double shortest_window(const json_t *epochs, bool *invalid)
{
	double least = NAN;

	*invalid = false;
	for (size_t i = 0; i < json_array_size(epochs); i++) {
		const json_t *e = json_array_get(epochs, i);

		if (!(figure(e, "steps") > 0))
			continue;
		if (!json_is_number(part(e, "au_percent")))
			*invalid = true;
		if (!(least <= figure(e, "measured_steps")))
			least = figure(e, "measured_steps");
	}
	return least;
}

static double batches_ahead(const json_t *result)
{
	const json_t *ranks = part(result, "ranks");

	for (size_t i = 0; i < json_array_size(ranks); i++)
		if (!json_is_true(part(json_array_get(ranks, i), "lost")))
			return figure(json_array_get(ranks, i), "prefetch_batches");
	return NAN;
}

/* Of the training time, in which checkpoints stopped it; 0 where that is not recorded. While one
 * rank writes, the others wait at the barrier: the time is on the critical path, not in the
 * mean. */
static double checkpoint_share(const json_t *training)
{
	const json_t *d = part(training, "decomposition");
	double mean = figure(part(d, "mean_over_ranks_percent"), "checkpoint") / 100;
	double critical = figure(part(d, "critical_path_percent"), "checkpoint") / 100;
	double share = fmax(mean, critical); /* one that is absent is not a number */

	return share > 0 && share < 1 ? share : 0;
}

/* Heavy waits that are worth a warning, of training or evaluations. */
static bool recorded_stalls(const json_t *change, double wall_s, struct verdict *v)
{
	const json_t *longest = json_array_get(part(change, "longest_stalls"), 0);
	double stalled = figure(change, "stalled_s"), length = figure(longest, "length_s");

	if (!(figure(change, "stalls") > 0) && !longest)
		return false;
	if (!(stalled > 1.001 * fmax(STALL_WAITED_S, STALL_WAITED_SHARE * wall_s)) &&
	    !(length > 1.001 * STALL_HIDDEN_S))
		return false;
	verdict_worsen(v, VERDICT_WARN);
	verdict_say(v, "a wait of %.4g s is recorded (steadiness.longest_stalls).", length);
	return true;
}

static bool window_chosen(const struct workload *w)
{
	return w &&
	       (w->output.metric.exclude_start_steps > 1 || w->output.metric.exclude_end_steps > 0);
}

/* What was found of changes: AU of the last part under the target, and of all of it not. */
static bool only_before_met(const json_t *change, double au, const struct workload *w)
{
	double target = w ? 100 * w->metric.au : NAN;

	return au >= target && figure(change, "last_au_percent") < target &&
	       figure(change, "lasting_samples_per_s") < figure(change, "before_samples_per_s");
}

/* Whole-run AU with the lateness of computation, as a window has it. */
static double computing_of(const json_t *t)
{
	double late = figure(t, "compute_late_mean_percent");

	return figure(t, "whole_au_mean_percent") + (late > 0 ? late : 0);
}

void recorded_steady(const json_t *result, const struct workload *w, struct verdict *v)
{
	const json_t *t = part(result, "training"), *change = part(t, "steadiness");
	double whole = figure(t, "whole_throughput_mean_samples_per_s");
	double computing = computing_of(t), au = figure(t, "au_mean_percent") - computing;
	double rate = figure(t, "throughput_mean_samples_per_s") / whole - 1;
	double kept = 1 - checkpoint_share(t), start_au, start_rate, window, queue;
	/* its figures are counted by block, which is not how length is judged */
	bool invalid, dlio = w && w->compat.dlio;

	if (dlio)
		rate = NAN;
	if (dlio && w->workflow.checkpoint)
		au = NAN;
	window = shortest_window(epochs_of(result), &invalid);
	if (invalid && !dlio) {
		v->level = VERDICT_FAIL;
		verdict_say(v, "an epoch with steps has no AU.");
		return;
	}
	if (only_before_met(change, figure(t, "au_mean_percent"), w)) {
		v->level = VERDICT_FAIL;
		verdict_say(v, "AU of the last part is %.4g %% (training.steadiness).",
			    figure(change, "last_au_percent"));
		return;
	}
	queue = fmin(1, batches_ahead(result) / fmax(1, window));
	/* a chosen window is judged by its own verdict */
	start_au = window_chosen(w) || isnan(au) ? NAN
						 : figure(t, "au_mean_percent") - computing / kept;
	start_rate = window_chosen(w) || dlio
			     ? NAN
			     : figure(t, "throughput_mean_samples_per_s") / (whole / kept) - 1;
	if ((au > GAP_POINTS || rate > RATE_SHARE) && queue >= RUN_LENGTH_QUEUE_MOST)
		v->level = VERDICT_FAIL;
	else if (((au > GAP_POINTS || rate > RATE_SHARE) && queue > RUN_LENGTH_QUEUE_NOTICED) ||
		 start_au > 1.05 * START_POINTS || start_rate > 1.05 * START_SHARE)
		v->level = VERDICT_WARN;
	if (v->level != VERDICT_PASS) {
		verdict_say(v,
			    "AU is %.4g points and throughput %.4g %% above those of the whole "
			    "run, with %.10g steps measured and %.10g batches prefetched.",
			    au, 100 * rate, window, batches_ahead(result));
	} else if (part(change, "change") && !says(change, "change", "none")) {
		v->level = VERDICT_WARN;
		verdict_say(v, "training.steadiness has a change.");
	} else {
		recorded_stalls(change, figure(part(t, "decomposition"), "wall_s"), v);
	}
}

void recorded_window(const json_t *result, const struct workload *w, struct verdict *v)
{
	const json_t *t = part(result, "training"), *epochs = part(t, "epochs");
	double steps = 0, measured = 0, first = 0, gap, left;

	/* compat.dlio leaves out steps of blocks, which are not recorded one by one */
	if (!window_chosen(w) || w->compat.dlio)
		return;
	for (size_t i = 0; i < json_array_size(epochs); i++) {
		const json_t *e = json_array_get(epochs, i);

		if (!(figure(e, "steps") > 0))
			continue;
		steps += figure(e, "steps");
		measured += figure(e, "measured_steps");
		first++;
	}
	left = (steps - measured - first) / steps;
	gap = figure(t, "au_mean_percent") - computing_of(t) / (1 - checkpoint_share(t));
	/* without an AU there is none to doubt: steady says so */
	if (isnan(gap) || (!(left > WINDOW_SHARE) && !(fabs(gap) > 1.05 * WINDOW_POINTS)))
		return;
	v->level = VERDICT_FAIL;
	verdict_say(v,
		    "%.10g of %.10g steps were measured, and AU is %.4g points off whole-run AU.",
		    measured, steps, gap);
}

void recorded_whole_run(const json_t *result, const struct workload *w, struct verdict *v)
{
	const json_t *epochs = epochs_of(result);
	double low = NAN, high = NAN, gap = 0, shortest = NAN, longest = NAN;

	(void)w;
	for (size_t i = 0; i < json_array_size(epochs); i++) {
		const json_t *e = json_array_get(epochs, i), *over = part(e, "over_ranks");
		double step = figure(e, "wall_s") / figure(e, "steps");

		if (!(figure(e, "steps") > 0))
			continue;
		low = fmin(isnan(low) ? INFINITY : low, figure(over, "whole_au_min_percent"));
		high = fmax(isnan(high) ? -INFINITY : high, figure(over, "whole_au_max_percent"));
		if (json_is_number(part(e, "au_percent")))
			gap = fmax(gap,
				   figure(over, "au_max_percent") - figure(over, "au_min_percent"));
		shortest = fmin(isnan(shortest) ? INFINITY : shortest, step);
		longest = fmax(isnan(longest) ? -INFINITY : longest, step);
	}
	if (gap > SPREAD_POINTS * 1.001 || high - low > SPREAD_POINTS * 1.001) {
		v->level = VERDICT_WARN;
		verdict_say(v,
			    "AU of ranks spreads over %.4g points in an epoch, whole-run AU over "
			    "%.4g.",
			    gap, high - low);
	} else if (longest > shortest * (1 + 1.001 * EPOCH_SPREAD_SHARE)) {
		v->level = VERDICT_WARN;
		verdict_say(v, "a step took %.4g s in one epoch and %.4g s in another.", longest,
			    shortest);
	}
}

/* The largest share of the dataset that the page cache held before an epoch; NaN. */
/* `served`: of the epochs alone in which the device did not deliver all. */
static double cached_share(const json_t *result, const struct workload *w, bool served,
			   bool *memory)
{
	const json_t *epochs = epochs_of(result);
	double most = NAN;

	*memory = false;
	for (size_t i = 0; i < json_array_size(epochs); i++) {
		const json_t *epoch = json_array_get(epochs, i), *c = part(epoch, "page_cache");
		double share = figure(c, "cached_at_start_bytes") / figure(c, "bytes_looked_at");
		double device = figure(part(epoch, "process_io"), "device_read_bytes");

		double read =
			!w ? 0
			   : fmin(figure(epoch, "returned_bytes"),
				  figure(epoch, "payload_bytes") * recorded_file_share(result, w));

		if (served && read > 0 && device >= ALL_SHARE * read)
			share = NAN;
		*memory = *memory || says(c, "file_system", "tmpfs") ||
			  says(c, "file_system", "ramfs");
		if (isfinite(share) && !(share <= most))
			most = share;
	}
	return most;
}

void recorded_bytes(const json_t *result, const struct workload *w, struct verdict *v)
{
	const json_t *t = part(result, "training");
	double returned = figure(t, "returned_bytes"), device = figure(t, "device_read_bytes");
	bool memory;
	double cached = cached_share(result, w, false, &memory);

	/* a file system may not report its reads: the cache must say the same */
	if (!w || !(workload_base_store(w)->flags & STORE_HAS_FILES) || !(returned > 0) ||
	    !(device < CACHE_SHARE * returned) || !(cached >= CACHE_WHOLE)) {
		recorded_device(result, w, v);
		return;
	}
	v->level = VERDICT_WARN;
	verdict_say(v,
		    "%.10g of %.10g bytes came from the device, and %.4g %% of the dataset were in "
		    "the page cache before an epoch.",
		    device, returned, 100 * cached);
}

void recorded_ledger(const json_t *result, const struct workload *w, struct verdict *v)
{
	const json_t *ledger = part(result, "ledger");

	(void)w;
	for (size_t i = 0; i < json_array_size(ledger); i++) {
		const char *title = json_string_value(part(json_array_get(ledger, i), "title"));

		if (!says(json_array_get(ledger, i), "state", "flagged"))
			continue;
		v->level = VERDICT_WARN;
		verdict_say(v, "the line '%.60s' is flagged.", title ? title : "");
		return;
	}
}

/* The page cache must not grow behind O_DIRECT. */
static void recorded_uncached(const json_t *result, struct verdict *v)
{
	const json_t *epochs = epochs_of(result);

	for (size_t i = 0; i < json_array_size(epochs); i++) {
		const json_t *c = part(json_array_get(epochs, i), "page_cache");
		double grown =
			figure(c, "cached_at_end_bytes") - figure(c, "cached_at_start_bytes");

		if (!(grown > GROWN_BYTES) ||
		    !(grown > 1.001 * GROWN_SHARE * figure(c, "bytes_looked_at")))
			continue;
		v->level = VERDICT_FAIL;
		verdict_say(v, "the page cache grew by %.10g bytes in epoch %zu.", grown, i + 1);
		return;
	}
}

void recorded_cache(const json_t *result, const struct workload *w, struct verdict *v)
{
	unsigned flags = w ? workload_base_store(w)->flags : 0;
	bool memory;
	double share = cached_share(result, w, true, &memory);

	if (!(flags & STORE_HAS_FILES))
		return;
	if (flags & STORE_IS_UNCACHED) {
		recorded_uncached(result, v);
		return;
	}
	if (memory) {
		v->level = VERDICT_WARN;
		verdict_say(v, "the dataset is on a file system in memory.");
	} else if (share > 1.001 * CACHE_SHARE) {
		v->level = VERDICT_WARN;
		verdict_say(v, "%.4g %% of the dataset were in the page cache before an epoch.",
			    100 * share);
	}
}

void recorded_order(const json_t *result, const struct workload *w, struct verdict *v)
{
	static const char *const parts[] = {"training", "evaluation"};

	(void)w;
	for (int k = 0; k < 2; k++) {
		const json_t *epochs = part(part(result, parts[k]), "epochs");

		for (size_t i = 0; i < json_array_size(epochs); i++) {
			if (!json_is_false(part(json_array_get(epochs, i), "order_proved")))
				continue;
			v->level = VERDICT_UNKNOWN;
			verdict_say(v, "%s.epochs[%zu].order_proved is false.", parts[k], i);
			return;
		}
	}
}

void recorded_config(const json_t *result, const struct workload *w, struct verdict *v)
{
	double dropped = figure(part(result, "training"), "dropped_samples_per_epoch");
	const json_t *dataset = part(result, "dataset");
	double samples = figure(dataset, "train_files") * figure(dataset, "samples_per_file");
	size_t warnings = json_array_size(part(result, "warnings"));

	(void)w;
	if (warnings) {
		v->level = VERDICT_WARN;
		verdict_say(v, "there are %zu warnings.", warnings);
	} else if (dropped > 1.001 * DROPPED_SHARE * samples) {
		v->level = VERDICT_WARN;
		verdict_say(v, "%.10g of %.10g samples are dropped in each epoch.", dropped,
			    samples);
	}
}

void recorded_evaluation(const json_t *result, const struct workload *w, struct verdict *v)
{
	const json_t *e = part(result, "evaluation"), *epochs = part(e, "epochs");

	(void)w;
	if (figure(e, "steps") == 0 && part(result, "training")) {
		v->level = VERDICT_WARN;
		verdict_say(v, "evaluations have no step.");
		return;
	}
	for (size_t i = 0; i < json_array_size(epochs); i++) {
		if (json_is_number(part(json_array_get(epochs, i), "au_percent")))
			continue;
		v->level = VERDICT_WARN;
		verdict_say(v, "evaluation.epochs[%zu] has no AU.", i);
		return;
	}
}
