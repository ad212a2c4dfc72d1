/* What the numbers are numbers of: all that warnings and failures take from them. */
#include "judge/measured.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "judge/origin.h"

static const struct {
	unsigned takes;
	const char *but;
} others[] = {
	{TAKES_CHECKPOINT, "of checkpoints, the page cache or memory"},
	{TAKES_TARGET, "of checkpoints, not known whether they reached the storage"},
	{TAKES_CONTENT, "not the samples of the workload"},
	{TAKES_LASTING, "not a rate that lasts"},
	{TAKES_WINDOW, "not the whole run, but a window of it"},
	{TAKES_CLIENT, "this machine was short of what training needs"},
	{TAKES_END, "the run did not end as planned"},
};

/* Appends the names of the verdicts that take one of `takes`: " (cache, bytes)". */
static void name_verdicts(struct measured *out, const struct judgement *j, unsigned takes)
{
	const char *before = " (";

	for (uint32_t i = 0; i < j->verdicts; i++) {
		if (!(j->verdict[i].takes & takes))
			continue;
		str_append(out->text, sizeof(out->text), "%s%s", before, j->verdict[i].check);
		before = ", ";
	}
	if (before[0] == ',')
		str_append(out->text, sizeof(out->text), ")");
}

/* Whether verdicts that look for the storage are there, and none of them has an answer. */
static bool nobody_knows(const struct result *r, const struct verdict_ops *const *table)
{
	const struct judgement *j = &r->judged;
	bool asked = false;

	for (uint32_t i = 0; i < j->verdicts; i++)
		for (size_t k = 0; table[k]; k++) {
			if (!table[k]->about_cache ||
			    (r->trained && table[k]->needs & VERDICT_OF_EVALUATION) ||
			    strcmp(table[k]->name, j->verdict[i].check) != 0)
				continue;
			asked = true;
			if (j->verdict[i].level != VERDICT_UNKNOWN)
				return false;
		}
	return asked;
}

static enum measured_storage storage_of(const struct result *r, const struct measured *out,
					const struct verdict_ops *const *table)
{
	const struct store_facts *base = workload_base_store(r->workload);

	/* of checkpoints alone, what became of them is all there is */
	if (out->taken & TAKES_STORAGE || (!r->trained && out->taken & TAKES_CHECKPOINT))
		return MEASURED_NOT;
	if (!(base->flags & STORE_HAS_FILES))
		return MEASURED_EMULATED;
	if (out->taken & TAKES_PART)
		return MEASURED_PART;
	if (out->taken & TAKES_ORIGIN || (!r->trained && out->taken & TAKES_TARGET))
		return MEASURED_UNKNOWN;
	return (r->trained || r->only_evaluated) && nobody_knows(r, table) ? MEASURED_UNKNOWN
									   : MEASURED_STORAGE;
}

static void say_storage(const struct result *r, struct measured *out)
{
	static const unsigned takers[MEASURED_KINDS] = {
		[MEASURED_NOT] = TAKES_STORAGE | TAKES_PART | TAKES_CHECKPOINT,
		[MEASURED_PART] = TAKES_PART,
		[MEASURED_UNKNOWN] = TAKES_ORIGIN,
	};
	const char *instead = out->instead[0] ? out->instead : "something else";

	switch (out->storage) {
	case MEASURED_NOT:
		snprintf(out->what, sizeof(out->what), "not the storage: %s", instead);
		break;
	case MEASURED_PART:
		snprintf(out->what, sizeof(out->what),
			 "the storage only in part: %s served the rest", instead);
		break;
	case MEASURED_EMULATED:
		snprintf(out->what, sizeof(out->what),
			 "the store '%.80s' of this program, not a storage system",
			 r->workload->storage.store ? r->workload->storage.store : "");
		break;
	case MEASURED_UNKNOWN:
		snprintf(out->what, sizeof(out->what), "%s",
			 out->origin[0] ? out->origin
					: "unknown whether it was the storage or the page cache");
		break;
	case MEASURED_STORAGE:
	case MEASURED_KINDS:
		snprintf(out->what, sizeof(out->what), "the storage");
	}
	str_append(out->text, sizeof(out->text), "%s", out->what);
	if (takers[out->storage])
		name_verdicts(out, &r->judged, takers[out->storage]);
}

void measured_find(const struct result *r, const struct verdict_ops *const *table,
		   struct measured *out)
{
	const struct judgement *j = &r->judged;
	unsigned worst = 0;

	*out = (struct measured){0};
	if (!r->trained && !r->checkpointed && !r->only_evaluated)
		return;
	for (uint32_t i = 0; i < j->verdicts; i++) {
		const struct verdict *v = &j->verdict[i];

		out->taken |= v->takes;
		if (v->origin[0])
			snprintf(out->origin, sizeof(out->origin), "%s", v->origin);
		/* what took all of it, and of two the later row, which looks closer */
		if (v->instead[0] && (!out->instead[0] || (v->takes & TAKES_STORAGE) >= worst)) {
			snprintf(out->instead, sizeof(out->instead), "%s", v->instead);
			worst = v->takes & TAKES_STORAGE;
		}
	}
	out->storage = storage_of(r, out, table);
	say_storage(r, out);
	if (out->storage == MEASURED_PART && out->taken & TAKES_ORIGIN)
		str_append(out->text, sizeof(out->text), "; %s", out->origin);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (!(out->taken & others[i].takes) ||
		    (others[i].takes == TAKES_CHECKPOINT && out->storage == MEASURED_NOT &&
		     !r->trained))
			continue;
		str_append(out->text, sizeof(out->text), "; %s", others[i].but);
		name_verdicts(out, j, others[i].takes);
	}
	str_append(out->text, sizeof(out->text), ".");
}
