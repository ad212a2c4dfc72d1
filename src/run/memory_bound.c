/* What is in memory at once. */
#include "run/memory_bound.h"

#include "dataset/survey.h"
#include "run/checkpoints.h"
#include "run/rank.h"
#include "run/run.h"
#include "run/sweep.h"

/* What is there only while the loaders are not: before training, or after it. */
static uint64_t bytes_beside_training(const struct run_plan *p)
{
	uint64_t probe = probe_bytes(p), survey = 0;

	if (workload_reads(p->w))
		survey = survey_memory_bytes(p->d, (uint64_t)p->w->dataset.verify_samples);
	return probe > survey ? probe : survey;
}

int run_memory(struct run_plan *p, struct err *e)
{
	return plan_memory(p, rank_bytes(p) + sizeof(struct rank_progress), checkpoints_bytes(p),
			   bytes_beside_training(p), e);
}
