/* Verdicts of result.json against the figures beside them: each row of the table of verdicts knows
 * the least level that recorded figures allow. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "judge/measured.h"
#include "judge/verdict.h"
#include "readback/derivation.h"

static const char *const levels[] = {[VERDICT_PASS] = "pass",
				     [VERDICT_WARN] = "warn",
				     [VERDICT_FAIL] = "fail",
				     [VERDICT_UNKNOWN] = "unknown"};

static int badness(const char *level)
{
	static const char *const order[] = {"pass", "unknown", "warn", "fail"};

	for (int i = 0; i < 4; i++)
		if (level && strcmp(level, order[i]) == 0)
			return i;
	return -1;
}

static const json_t *verdict_of(const json_t *list, const char *check)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *is = derive_string(json_array_get(list, i), "check");

		if (is && strcmp(is, check) == 0)
			return json_array_get(list, i);
	}
	return NULL;
}

/* This version wrote it: all that a run has, it says. */
static bool of_this_version(const struct run_record *r)
{
	const char *version = derive_string(r->result, "version");

	return version && strcmp(version, STOKER_VERSION) == 0 &&
	       derive_string(r->result, "run_id");
}

/* What of VERDICT_OF_* the run had, as far as result.json tells; fewer where it does not. */
static unsigned traits_of(const struct run_record *r)
{
	const json_t *training = json_object_get(r->result, "training");
	const json_t *evaluation = json_object_get(r->result, "evaluation");
	const struct store_facts *base = r->has_workload ? workload_base_store(&r->workload) : NULL;
	unsigned traits = 0;

	if (training)
		traits |= VERDICT_OF_TRAINING;
	if (training && derive_number(training, "epochs_begun") > 0)
		traits |= VERDICT_OF_EPOCHS;
	if (evaluation && (training || (r->has_workload && !r->workload.workflow.train)))
		traits |= VERDICT_OF_EVALUATION;
	if (traits)
		traits |= VERDICT_OF_READING;
	if (json_object_get(r->result, "checkpoint"))
		traits |= VERDICT_OF_CHECKPOINTS;
	if (base && base->flags & STORE_HAS_FILES && workload_format(&r->workload) &&
	    !(workload_format(&r->workload)->flags & FORMAT_NO_IO) &&
	    json_object_get(r->result, "dataset"))
		traits |= VERDICT_OF_FILES;
	return traits;
}

static void check_missing(struct derive *d, const struct run_record *r,
			  const struct verdict_ops *row)
{
	if (!row->always || !of_this_version(r) || (row->needs & traits_of(r)) != row->needs)
		return;
	derive_holds(d, verdict_of(json_object_get(r->result, "verdicts"), row->name) != NULL,
		     "The verdict '%s' is missing in result.json, although every run like this has "
		     "one.",
		     row->name);
}

/* Of a warning or failure: it says what it takes from the numbers. */
static void check_takes(struct derive *d, const struct run_record *r, const json_t *said,
			const struct verdict_ops *row, const struct verdict *least)
{
	const char *level = derive_string(said, "level");
	bool bad = badness(level) >= badness("warn");
	unsigned takes = measured_taken(json_object_get(said, "takes"));

	if (!of_this_version(r) || (r->trained && row->needs & VERDICT_OF_EVALUATION))
		return;
	derive_holds(d, bad || (takes & ~(unsigned)(TAKES_ORIGIN | TAKES_TARGET)) == 0,
		     "The verdict '%s' in result.json is '%.20s', but takes something from the "
		     "numbers.",
		     row->name, level ? level : "");
	if (bad && badness(levels[least->level]) >= badness("warn"))
		derive_holds(d, (takes & least->takes) == least->takes,
			     "The verdict '%s' in result.json takes less from the numbers than its "
			     "figures require: %.200s",
			     row->name, least->text);
	if (bad && row->takes)
		derive_holds(d, takes != 0,
			     "The verdict '%s' in result.json is '%.20s', but takes nothing from "
			     "the numbers.",
			     row->name, level);
}

static void check_row(struct derive *d, const struct run_record *r, const struct verdict_ops *row)
{
	const json_t *said = verdict_of(json_object_get(r->result, "verdicts"), row->name);
	const struct workload *w = r->has_workload ? &r->workload : NULL;
	struct verdict least = {.level = VERDICT_PASS};
	const char *level = said ? derive_string(said, "level") : "missing";

	if (row->at_least)
		row->at_least(r->result, w, &least);
	/* an earlier version may have known no such verdict; runs had no number then */
	if (!said && (least.level == VERDICT_PASS || !derive_string(r->result, "run_id"))) {
		check_missing(d, r, row);
		return;
	}
	if (row->at_least)
		derive_holds(d, badness(level) >= badness(levels[least.level]),
			     "The verdict '%s' in result.json is '%.20s', but its figures require "
			     "at least '%s': %.300s",
			     row->name, level ? level : "missing", levels[least.level], least.text);
	if (said && of_this_version(r) && level && strcmp(level, "unknown") == 0 && w)
		derive_holds(d,
			     (row->may_be_unknown && row->may_be_unknown(r->result, w)) ||
				     measured_taken(json_object_get(said, "takes")) &
					     (TAKES_ORIGIN | TAKES_TARGET),
			     "The verdict '%s' in result.json is 'unknown', but its figures are "
			     "recorded.",
			     row->name);
	if (said)
		check_takes(d, r, said, row, &least);
}

/* Figures that sentences repeat, with one decimal. */
static const struct {
	const char *before, *after;
	const char *key;     /* of training */
	const char *earlier; /* the same where a result of an earlier version has no such key */
} spoken[] = {
	{"Computation takes ", " % of the wall time", "whole_run_au_percent",
	 "whole_au_mean_percent"},
	{"Throughput is ", " samples/s in the measured steps", "throughput_mean_samples_per_s",
	 NULL},
	{" samples/s in the measured steps, ", " over the whole run", "whole_run_samples_per_s",
	 "whole_throughput_mean_samples_per_s"},
	{" batches prefetched; AU is ", " %, whole-run AU", "au_mean_percent", NULL},
	{" batches prefetched; whole-run AU is ", " %, ", "whole_run_au_percent", NULL},
};

static void check_sentence(struct derive *d, const struct run_record *r, const char *text,
			   const char *where)
{
	const json_t *training = json_object_get(r->result, "training");
	const struct verdict_ops *row = verdict_find(where);

	if (row && row->counts_plainly && r->has_workload && r->workload.compat.dlio)
		return;
	for (size_t i = 0; i < sizeof(spoken) / sizeof(spoken[0]); i++) {
		const char *at = strstr(text, spoken[i].before), *key = spoken[i].key;
		char *end;
		double v;

		if (!at)
			continue;
		if (spoken[i].earlier && isnan(derive_number(training, key)))
			key = spoken[i].earlier;
		v = strtod(at + strlen(spoken[i].before), &end);
		if (strncmp(end, spoken[i].after, strlen(spoken[i].after)) != 0)
			continue;
		derive_near(d, v, derive_number(training, key), 0.0501 + 1e-9 * fabs(v), key,
			    "the sentence of %.40s in result.json ('%.40s')", where,
			    spoken[i].before);
	}
}

/* "516 KiB of 516 KiB of the dataset were in the page cache before epoch 1" */
static void check_cached(struct derive *d, const struct run_record *r, const char *text)
{
	static const char middle[] = " of the dataset were in the page cache before epoch ";
	const json_t *epochs = json_object_get(json_object_get(r->result, "training"), "epochs");
	const char *at = strstr(text, middle);
	char a[32], b[32], want[80];
	const json_t *c;
	unsigned epoch;

	if (!at || sscanf(at + sizeof(middle) - 1, "%u", &epoch) != 1 || epoch < 1 ||
	    epoch > json_array_size(epochs))
		return;
	c = json_object_get(json_array_get(epochs, epoch - 1), "page_cache");
	if (!(derive_number(c, "cached_at_start_bytes") >= 0))
		return;
	snprintf(want, sizeof(want), "%s of %s",
		 str_bytes(derive_number(c, "cached_at_start_bytes"), a, sizeof(a)),
		 str_bytes(derive_number(c, "bytes_looked_at"), b, sizeof(b)));
	derive_holds(d,
		     (size_t)(at - text) >= strlen(want) &&
			     strncmp(at - strlen(want), want, strlen(want)) == 0,
		     "The sentence of the page cache in result.json does not say what its figures "
		     "of epoch %u do: %s.",
		     epoch, want);
}

static void check_sentences(struct derive *d, const struct run_record *r)
{
	const json_t *list = json_object_get(r->result, "verdicts");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *text = derive_string(json_array_get(list, i), "text");
		const char *check = derive_string(json_array_get(list, i), "check");

		if (!text || !check)
			continue;
		check_sentence(d, r, text, check);
		check_cached(d, r, text);
	}
}

/* Those that rest on more than a result records. */
static void list_unchecked(struct derive *d, const struct run_record *r)
{
	const json_t *list = json_object_get(r->result, "verdicts");
	struct buf names = {0};

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *check = derive_string(json_array_get(list, i), "check");
		const struct verdict_ops *row = check ? verdict_find(check) : NULL;

		if (check && (!row || !row->at_least))
			buf_printf(&names, "%s%.30s", names.len ? ", " : "", check);
	}
	if (names.len)
		derive_unchecked(d, "the level of %.250s rests on more than is recorded",
				 names.data);
	buf_release(&names);
}

void derive_verdicts(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	struct derive d;

	if (!r->ours)
		return;
	d = derive_begin(a, i, "verdict", "verdicts",
			 "levels of verdicts in result.json against the figures they judge");
	for (size_t k = 0; verdict_table[k]; k++)
		check_row(&d, r, verdict_table[k]);
	check_sentences(&d, r);
	list_unchecked(&d, r);
}
