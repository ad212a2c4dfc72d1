/* The rows of a table, one after another. */
#include "judge/verdict.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static int badness(enum verdict_level level)
{
	static const int of[] = {
		[VERDICT_PASS] = 0, [VERDICT_UNKNOWN] = 1, [VERDICT_WARN] = 2, [VERDICT_FAIL] = 3};

	return of[level];
}

struct fact *verdict_found(struct verdict *v, enum verdict_level level, struct fact f)
{
	struct fact *added;

	if (badness(level) > badness(v->level)) {
		v->level = level;
		/* the reason has a place, however much was found before */
		if (v->facts.count == FACTS_MOST)
			v->facts.count--;
		v->first_bad = v->facts.count;
	}
	added = fact_add(&v->facts, f);
	v->end_bad = v->facts.count;
	return added;
}

void verdict_takes(struct verdict *v, unsigned takes, enum reason instead)
{
	v->takes |= takes;
	if (instead != REASON_NONE)
		v->instead = instead;
}

void verdict_takes_origin(struct verdict *v, struct fact origin)
{
	v->takes |= TAKES_ORIGIN;
	v->origin = origin;
}

const struct verdict_ops *verdict_find(const char *name)
{
	for (size_t i = 0; verdict_table[i]; i++)
		if (strcmp(verdict_table[i]->name, name) == 0)
			return verdict_table[i];
	return NULL;
}

size_t verdicts_count(const struct verdict_ops *const *table)
{
	size_t n = 0;

	while (table[n])
		n++;
	return n;
}

/* What of VERDICT_OF_* a run has. */
static unsigned traits_of(const struct result *r)
{
	const struct store_facts *base = workload_base_store(r->workload);
	unsigned traits = 0;

	traits |= r->trained ? VERDICT_OF_TRAINING : 0;
	traits |= r->trained || r->only_evaluated ? VERDICT_OF_READING : 0;
	traits |= r->evaluated && (r->trained || r->only_evaluated) && r->rank
			  ? VERDICT_OF_EVALUATION
			  : 0;
	traits |= r->eval_steps ? VERDICT_OF_EVAL_STEPS : 0;
	traits |= r->checkpointed ? VERDICT_OF_CHECKPOINTS : 0;
	traits |= r->usage && r->epochs_begun ? VERDICT_OF_EPOCHS : 0;
	traits |= r->servers.n ? VERDICT_OF_SERVERS : 0;
	if (base->flags & STORE_HAS_FILES && r->dataset &&
	    !(r->dataset->format->is.flags & FORMAT_NO_IO))
		traits |= VERDICT_OF_FILES;
	return traits;
}

/* The reason, what was found after it, and then the rest. */
static void put_worst_first(struct verdict *v)
{
	struct fact_list in_turn = v->facts;
	uint32_t n = v->facts.count, first = v->first_bad;

	for (uint32_t i = 0; i < n; i++)
		v->facts.fact[i] = in_turn.fact[(first + i) % n];
	v->first_bad = 0;
	v->end_bad = n - first;
}

int verdicts_judge(struct result *r, const struct run_metrics *m,
		   const struct verdict_ops *const *table, struct err *e)
{
	unsigned traits = traits_of(r);
	size_t rows = verdicts_count(table);
	struct verdict *list = try_calloc(rows, sizeof(*list), "verdicts", e);
	uint32_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < rows; i++) {
		const struct verdict_ops *row = table[i];
		struct verdict *v = &list[n];

		if ((row->needs & traits) != row->needs)
			continue;
		assert(strlen(row->name) < sizeof(v->check));
		*v = (struct verdict){.level = VERDICT_PASS, .about = row->about};
		snprintf(v->check, sizeof(v->check), "%s", row->name);
		row->judge(r, m, v);
		if (row->worst_first && v->first_bad > 0)
			put_worst_first(v);
		if (v->level != VERDICT_WARN && v->level != VERDICT_FAIL)
			v->takes &= TAKES_ORIGIN | TAKES_TARGET;
		else if (v->takes == 0)
			v->takes = row->takes;
		/* the headline of a run that trains is about training */
		if (r->trained && row->needs & VERDICT_OF_EVALUATION)
			v->takes = 0;
		n += v->facts.count > 0;
	}
	free(r->judged.verdict);
	r->judged.verdict = list;
	r->judged.verdicts = n;
	return 0;
}
