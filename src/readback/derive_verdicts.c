/* Verdicts of result.json against the figures beside them: each row of the table of verdicts knows
 * the least level that recorded figures allow. */
#include <string.h>

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

static void check_row(struct derive *d, const struct run_record *r, const struct verdict_ops *row)
{
	const json_t *said = verdict_of(json_object_get(r->result, "verdicts"), row->name);
	struct verdict least = {.level = VERDICT_PASS};
	const char *level;

	if (!row->at_least)
		return;
	row->at_least(r->result, r->has_workload ? &r->workload : NULL, &least);
	if (least.level == VERDICT_PASS && !said)
		return;
	level = said ? derive_string(said, "level") : "missing";
	derive_holds(d, badness(level) >= badness(levels[least.level]),
		     "The verdict '%s' in result.json is '%.20s', but its figures require at least "
		     "'%s': %.300s",
		     row->name, level ? level : "missing", levels[least.level], least.text);
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
}
