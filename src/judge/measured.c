/* What the numbers are numbers of: all that warnings and failures take from them. */
#include "judge/measured.h"

#include <string.h>

static const struct {
	unsigned takes;
	enum reason but;
} others[] = {
	{TAKES_CHECKPOINT, REASON_MEASURED_CHECKPOINTS},
	{TAKES_TARGET, REASON_MEASURED_TARGET},
	{TAKES_CONTENT, REASON_MEASURED_CONTENT},
	{TAKES_LASTING, REASON_MEASURED_LASTING},
	{TAKES_WINDOW, REASON_MEASURED_WINDOW},
	{TAKES_CLIENT, REASON_MEASURED_CLIENT},
	{TAKES_END, REASON_MEASURED_END},
};

static void add(struct measured *out, struct fact f, unsigned by)
{
	out->by[out->facts.count] = by;
	fact_add(&out->facts, f);
}

/* Whether there are verdicts about the source of the data, and all of them are unknown. */
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
	if (!(base->flags & (STORE_HAS_FILES | STORE_HAS_OBJECTS)))
		return MEASURED_EMULATED;
	if (out->taken & TAKES_PART)
		return MEASURED_PART;
	if (out->taken & TAKES_ORIGIN || (!r->trained && out->taken & TAKES_TARGET))
		return MEASURED_UNKNOWN;
	return (r->trained || r->only_evaluated) && nobody_knows(r, table) ? MEASURED_UNKNOWN
									   : MEASURED_STORAGE;
}

static struct fact storage_fact(const struct result *r, const struct measured *out)
{
	char instead[64];

	measured_instead(out, instead, sizeof(instead));
	switch (out->storage) {
	case MEASURED_NOT:
		return fact_with(FACT(MEASURED_NOT), 0, instead);
	case MEASURED_PART:
		return fact_with(FACT(MEASURED_PART), 0, instead);
	case MEASURED_EMULATED:
		return fact_with(FACT(MEASURED_EMULATED), 0, r->workload->storage.store);
	case MEASURED_UNKNOWN:
		return out->origin.reason != REASON_NONE ? out->origin : FACT(MEASURED_UNKNOWN);
	case MEASURED_STORAGE:
	case MEASURED_KINDS:
		break;
	}
	return FACT(MEASURED_STORAGE);
}

void measured_find(const struct result *r, const struct verdict_ops *const *table,
		   struct measured *out)
{
	static const unsigned takers[MEASURED_KINDS] = {
		[MEASURED_NOT] = TAKES_STORAGE | TAKES_PART | TAKES_CHECKPOINT,
		[MEASURED_PART] = TAKES_PART,
		[MEASURED_UNKNOWN] = TAKES_ORIGIN,
	};
	const struct judgement *j = &r->judged;
	unsigned worst = 0;

	*out = (struct measured){0};
	if (!r->trained && !r->checkpointed && !r->only_evaluated)
		return;
	for (uint32_t i = 0; i < j->verdicts; i++) {
		const struct verdict *v = &j->verdict[i];

		out->taken |= v->takes;
		if (v->origin.reason != REASON_NONE)
			out->origin = v->origin;
		/* what took all of it, and of two the later row, which looks closer */
		if (v->instead != REASON_NONE &&
		    (out->instead == REASON_NONE || (v->takes & TAKES_STORAGE) >= worst)) {
			out->instead = v->instead;
			worst = v->takes & TAKES_STORAGE;
		}
	}
	if (out->instead == REASON_NONE)
		out->instead = REASON_INSTEAD_UNKNOWN;
	out->storage = storage_of(r, out, table);
	add(out, storage_fact(r, out), takers[out->storage]);
	if (out->storage == MEASURED_PART && out->taken & TAKES_ORIGIN)
		add(out, out->origin, 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (!(out->taken & others[i].takes) ||
		    (others[i].takes == TAKES_CHECKPOINT && out->storage == MEASURED_NOT &&
		     !r->trained))
			continue;
		add(out, fact_of(others[i].but, 0, NULL), others[i].takes);
	}
}
