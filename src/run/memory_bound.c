/* What is in memory at once. */
#include "run/memory_bound.h"

#include <stdio.h>

#include "base/log.h"
#include "base/saturate.h"
#include "base/str.h"
#include "dataset/survey.h"
#include "loader/ahead.h"
#include "loader/row_groups.h"
#include "run/checkpoints.h"
#include "run/rank.h"
#include "run/run.h"
#include "run/sweep.h"

#define GROUPS_WORTH_TELLING (64u << 20)

/* What is there only while the loaders are not: before training, or after it. */
static uint64_t bytes_beside_training(const struct run_plan *p)
{
	uint64_t probe = probe_bytes(p), survey = 0;

	if (workload_reads(p->w))
		survey = survey_memory_bytes(p->d, (uint64_t)p->w->dataset.verify_samples);
	return probe > survey ? probe : survey;
}

/* What the emulated client of objects would need here, and what is known to limit it. */
static void tell_client(const struct run_plan *p)
{
	const struct loader_config c = {.workload = p->w,
					.dataset = p->d,
					.store = p->store,
					.batch_size = (uint64_t)p->w->reader.batch_size};
	uint64_t workers = (uint64_t)p->w->reader.read_threads, each;
	struct store_objects client;
	char held[32], all[32], rate[64] = "";

	if (!run_leads(p->at) || !workload_reads(p->w) || !ahead_wanted(&c) ||
	    workload_loader(p->w)->flags & LOADER_STREAMS || !p->store->ops->objects)
		return;
	p->store->ops->objects(p->store, &client);
	workers = workers ? workers : 1;
	each = ahead_client_bytes(&c, &client);
	if (client.process_bytes_s > 0)
		snprintf(rate, sizeof(rate), "; one process of it is known to reach %.3g GB/s",
			 client.process_bytes_s * 1e-9);
	log_msg(LOG_OUTPUT,
		"the client %s keeps up to %u objects under way for each worker and would hold up "
		"to "
		"%s for it, %s for a rank%s; Stoker counts bytes and holds none",
		client.client, client.in_flight, str_bytes((double)each, held, sizeof(held)),
		str_bytes((double)u64_product(each, workers), all, sizeof(all)), rate);
}

/* What a library that keeps row groups in memory would need for them. */
static void tell_groups(const struct run_plan *p)
{
	const struct loader_config c = {.workload = p->w,
					.dataset = p->d,
					.store = p->store,
					.batch_size = (uint64_t)p->w->reader.batch_size};
	uint64_t workers = (uint64_t)p->w->reader.read_threads, unit = 0, held = 0;
	char one[32], each[32], all[32];

	if (!run_leads(p->at) || !workload_reads(p->w) || !p->d->format->unit_pace ||
	    p->w->reader.access != ACCESS_FRAMEWORK)
		return;
	groups_of_library(&c, &unit, &held);
	workers = workers ? workers : 1;
	if (u64_product(held, workers) < GROUPS_WORTH_TELLING)
		return;
	log_msg(LOG_OUTPUT,
		"row groups are asked for in ranges of up to %s: the library that is emulated "
		"would hold up to %s of them for each worker, %s for a rank; Stoker reads them in "
		"pieces and holds none",
		str_bytes((double)unit, one, sizeof(one)),
		str_bytes((double)held, each, sizeof(each)),
		str_bytes((double)u64_product(held, workers), all, sizeof(all)));
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
	if (rc == 0)
		tell_client(p);
	if (rc == 0)
		tell_groups(p);
	return rc;
}
