/* The order of judging: what is measured in parts first, then the verdicts and what they leave of
 * the numbers, then what limits. */
#include "judge/judge.h"

#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/saturate.h"
#include "judge/busy_reading.h"
#include "judge/by_name.h"
#include "judge/decompose.h"
#include "judge/ledger.h"
#include "judge/limit.h"
#include "judge/measured.h"
#include "judge/slow_requests.h"
#include "judge/steadiness.h"
#include "judge/stragglers.h"
#include "judge/verdict.h"

uint64_t judge_memory_bytes(uint64_t epochs)
{
	return u64_sum(u64_product(epochs, sizeof(struct epoch_judgement)),
		       verdicts_count(verdict_table) * sizeof(struct verdict) + steadiness_bytes() +
			       busy_reading_bytes() + sizeof(struct basis));
}

static int judge_epochs(struct result *r, const struct run_metrics *m, struct err *e)
{
	struct judgement *j = &r->judged;

	if (!r->rank || r->epochs_begun == 0)
		return 0;
	j->epoch = try_calloc(r->epochs_begun, sizeof(*j->epoch), "epochs", e);
	if (!j->epoch)
		return -ENOMEM;
	j->epochs = r->epochs_begun;
	for (uint32_t i = 0; i < j->epochs; i++) {
		if (r->trained && i < m->epochs)
			decompose(r, i, i + 1, &j->epoch[i].time);
		ledger_of_epoch(r, i, false, j->epoch[i].train_bytes);
		ledger_of_epoch(r, i, true, j->epoch[i].eval_bytes);
	}
	return 0;
}

int judge_trust(struct result *r, const struct run_metrics *m, struct err *e)
{
	int rc;

	assert(m->epochs <= r->epochs_begun);
	judgement_release(&r->judged);
	rc = r->trained || r->only_evaluated ? judge_epochs(r, m, e) : 0;
	if (rc < 0)
		return rc;
	if (r->trained && r->rank) {
		if (m->epochs)
			decompose(r, 0, m->epochs, &r->judged.time);
		ledger_of(r, &r->judged.ledger);
		stragglers_find(r, &r->judged.stragglers);
		if (m->epochs) {
			r->judged.slow = slow_requests_find(r);
			r->judged.by_name = by_name_of(r);
		}
		rc = busy_reading_find(r, m->epochs, &r->judged.reading, e);
		if (rc == 0)
			rc = steadiness_find(r, m, false, &r->judged.steady, e);
		if (rc < 0)
			return rc;
	}
	if (r->evaluated && r->rank) {
		rc = steadiness_find(r, m, true, &r->judged.eval_steady, e);
		if (rc < 0)
			return rc;
	}
	rc = verdicts_judge(r, m, verdict_table, e);
	if (rc == 0)
		measured_find(r, verdict_table, &r->judged.measured);
	return rc;
}

int judge_result(struct result *r, const struct run_metrics *m, struct err *e)
{
	int rc = judge_trust(r, m, e);

	if (rc == 0 && r->trained)
		limit_find(r, m, &r->judged.limit, &r->judged.outlook, &r->judged.basis);
	if (rc == 0 && r->only_evaluated)
		limit_of_evaluation(r, m, &r->judged.limit);
	return rc;
}
