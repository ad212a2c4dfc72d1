/* What result.json concludes from its figures: the headline, the limit, the predictions and the
 * points of the probe. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "judge/measured.h"
#include "readback/derivation.h"

static const double SMALL_LOSS = 5; /* % of the wall time: computation limits */

/* ---- what was measured ---- */

static void check_measured(struct derive *d, const struct run_record *r)
{
	const json_t *said = json_object_get(r->result, "measured");
	const json_t *verdicts = json_object_get(r->result, "verdicts");
	const char *storage = derive_string(said, "storage"), *text = derive_string(said, "text");
	bool files = r->has_workload && workload_base_store(&r->workload)->flags & STORE_HAS_FILES;
	bool trained = json_object_get(r->result, "training") != NULL;
	bool only = !trained && json_object_get(r->result, "evaluation");
	struct measured m;

	if (!said || !r->has_workload)
		return;
	/* a run that ended before its first epoch trained, although nothing of it is recorded */
	if (!trained && r->workload.workflow.train)
		return;
	measured_recorded(verdicts, trained, only, files, verdict_table, &m);
	derive_text(d, storage, measured_names[m.storage], "the list of verdicts",
		    "result.json measured.storage");
	derive_holds(d, measured_taken(json_object_get(said, "taken")) == m.taken,
		     "The headline of result.json (measured.taken) does not list what its verdicts "
		     "take from the numbers.");
	derive_holds(d, text && measured_says(&m, trained, text),
		     "The headline of result.json (measured.text) does not say what its verdicts "
		     "do: '%.150s'",
		     text ? text : "");
}

/* ---- the limit ---- */

static const char at_once[] = "compute"; /* the cause of a run that loses hardly any time */

/* Causes that such a run may have. */
static bool at_computation(const char *cause)
{
	static const char *const causes[] = {at_once, "page_cache"};

	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		if (strcmp(cause, causes[i]) == 0)
			return true;
	return false;
}

static void check_limit_words(struct derive *d, const struct run_record *r, const char *cause,
			      const char *text)
{
	const json_t *said = json_object_get(r->result, "measured");
	const char *storage = derive_string(said, "storage");
	bool taken = json_array_size(json_object_get(said, "taken")) > 0 ||
		     (storage && (strcmp(storage, "no") == 0 || strcmp(storage, "unknown") == 0));

	derive_holds(d, (strstr(text, ": limited by computation") != NULL) == at_computation(cause),
		     "The limit in result.json is '%.30s', but its sentence is '%.150s'.", cause,
		     text);
	derive_holds(d, !strstr(text, " keeps up (") || !taken,
		     "The limit in result.json says that the storage keeps up, but its headline "
		     "does not.");
}

static void check_limit(struct derive *d, const struct run_record *r)
{
	const json_t *limit = json_object_get(r->result, "limit");
	const json_t *t = json_object_get(r->result, "training");
	const json_t *parts =
		json_object_get(json_object_get(t, "decomposition"), "mean_over_ranks_percent");
	const char *cause = derive_string(limit, "cause"), *text = derive_string(limit, "text");
	double loss = 100 - derive_number(parts, "compute"), au;
	bool compute, claims;

	if (!cause || !text)
		return;
	derive_near(d, derive_number(limit, "lost_percent"), loss, 1e-6, "the parts of time",
		    "result.json limit.lost_percent");
	compute = at_computation(cause);
	/* reads from memory may be slow, too */
	claims = strstr(text, "limited by computation") || strcmp(cause, at_once) == 0;
	if (fabs(loss - SMALL_LOSS) > 1e-6)
		derive_holds(d, compute ? loss < SMALL_LOSS || !claims : !(loss < SMALL_LOSS),
			     "The limit in result.json is '%.30s', but computation takes %.4g %% "
			     "of the time.",
			     cause, 100 - loss);
	au = derive_number(t, "au_mean_percent");
	if (isnan(au))
		au = derive_number(t, "whole_au_mean_percent");
	if (str_starts(text, "Whole-run AU "))
		derive_near(d, strtod(text + strlen("Whole-run AU "), NULL),
			    derive_number(t, "whole_run_au_percent"), 0.0501, "training",
			    "whole-run AU (%%) in the sentence of result.json limit.text");
	else if (str_starts(text, "AU ")) /* as earlier versions said it */
		derive_near(d, strtod(text + 3, NULL), au, 0.0501, "training",
			    "AU (%%) in the sentence of result.json limit.text");
	check_limit_words(d, r, cause, text);
}

/* ---- predictions ---- */

static void check_range(struct derive *d, const json_t *o, const char *at, const char *low,
			const char *high, const char *where)
{
	double l = derive_number(o, low), h = derive_number(o, high), v = derive_number(o, at);

	if (isnan(v) || isnan(l) || isnan(h))
		return;
	derive_holds(d, l <= v + 1e-6 && v <= h + 1e-6,
		     "result.json %s.%s is %.6g, outside of its own interval (%.6g to %.6g).",
		     where, at, v, l, h);
}

/* "4 workers per rank would reach 78 % (75 to 82)" */
static void check_promise(struct derive *d, const json_t *w, const char *text)
{
	static const char words[] = " per rank would reach ";
	const char *at = text ? strstr(text, words) : NULL, *from = at;
	double au, low, high, count = derive_number(w, "workers_for_90_percent");

	if (!at || sscanf(at + strlen(words), "%lf %% (%lf to %lf)", &au, &low, &high) != 3)
		return;
	while (from > text && from[-1] != ';')
		from--;
	if (!(count > 0))
		count = derive_number(w, "workers_best");
	derive_near(d, strtod(from, NULL), count, 0.001, "what_if",
		    "the number of workers in the sentence of result.json limit.text");
	derive_near(d, au, derive_number(w, "workers_whole_au_percent"), 0.501,
		    "what_if.workers_whole_au_percent",
		    "the prediction (%%) in the sentence of result.json limit.text");
	derive_near(d, low, derive_number(w, "workers_low_percent"), 0.501,
		    "what_if.workers_low_percent",
		    "its lower end in the sentence of result.json limit.text");
	derive_near(d, high, derive_number(w, "workers_high_percent"), 0.501,
		    "what_if.workers_high_percent",
		    "its upper end in the sentence of result.json limit.text");
}

/* "with torch 1.13's own costs AU would be about 70 %" */
static void check_costs(struct derive *d, const json_t *costs)
{
	static const char words[] = " AU would be about ";
	const char *text = derive_string(costs, "text"), *at = text ? strstr(text, words) : NULL;

	check_range(d, costs, "whole_au_percent", "low_percent", "high_percent",
		    "what_if.framework_costs");
	if (at)
		derive_near(d, strtod(at + strlen(words), NULL),
			    derive_number(costs, "whole_au_percent"), 0.501,
			    "what_if.framework_costs.whole_au_percent",
			    "the prediction (%%) in the sentence of result.json "
			    "what_if.framework_costs");
}

static void check_what_if(struct derive *d, const struct run_record *r)
{
	const json_t *w = json_object_get(r->result, "what_if");
	const json_t *changes = json_object_get(w, "changes");
	const json_t *t = json_object_get(r->result, "training");
	const json_t *parts =
		json_object_get(json_object_get(t, "decomposition"), "mean_over_ranks_percent");

	if (!w)
		return;
	derive_near(d, derive_number(w, "measured_whole_au_percent"),
		    derive_number(parts, "compute"), 1e-6, "the parts of time",
		    "result.json what_if.measured_whole_au_percent");
	check_range(d, w, "workers_whole_au_percent", "workers_low_percent", "workers_high_percent",
		    "what_if");
	check_costs(d, json_object_get(w, "framework_costs"));
	check_promise(d, w, derive_string(json_object_get(r->result, "limit"), "text"));
	for (size_t i = 0; i < json_array_size(changes); i++) {
		const json_t *one = json_array_get(changes, i);
		check_range(d, one, "whole_au_percent", "low_percent", "high_percent",
			    "what_if.changes");
	}
	derive_unchecked(d, "the predictions (what_if) rest on a model of more than is recorded");
}

/* ---- the probe ---- */

static void check_points(struct derive *d, const json_t *list, const char *name)
{
	static const char *const counts[] = {"samples", "opens", "requests", "bytes"};

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);
		double s = derive_number(one, "seconds");

		for (size_t k = 0; s > 0 && k < sizeof(counts) / sizeof(counts[0]); k++) {
			char rate[32];

			snprintf(rate, sizeof(rate), "%s_per_s", counts[k]);
			derive_equal(d, derive_number(one, rate), derive_number(one, counts[k]) / s,
				     "its count and its seconds", "result.json probe.%s[%zu].%s",
				     name, i, rate);
		}
	}
}

void derive_judged(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	const json_t *probe = json_object_get(r->result, "probe");
	struct derive d;

	if (!r->ours)
		return;
	d = derive_begin(a, i, "verdict", "conclusions",
			 "headline, limit, predictions and probe of result.json against the "
			 "figures they follow from");
	check_measured(&d, r);
	check_limit(&d, r);
	check_what_if(&d, r);
	check_points(&d, json_object_get(probe, "points"), "points");
	check_points(&d, json_object_get(probe, "sized"), "sized");
}
