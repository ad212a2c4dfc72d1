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
	uint64_t rank = rank_bytes(p) + sizeof(struct rank_progress), saved = checkpoints_bytes(p);
	int rc = plan_memory(p, rank, saved, bytes_beside_training(p), e);

	/* a run is not refused for a probe that nobody asked for */
	if (rc < 0 && p->w->run.probe == PROBE_AUTO && !p->no_own_probe) {
		p->no_own_probe = true;
		rc = plan_memory(p, rank, saved, bytes_beside_training(p), e);
	}
	return rc;
}
