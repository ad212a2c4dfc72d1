/* The end of a result. */
#include "report/result.h"

#include <stdlib.h>

/* A block may be there whose phase never began. */
static uint32_t steps_held(const struct rank_epoch *ep)
{
	return ep->blocks > ep->block_capacity ? ep->blocks : ep->block_capacity;
}

static void release_rank(struct rank_result *k, uint32_t epochs)
{
	for (uint32_t i = 0; k->epoch && i < epochs; i++) {
		struct rank_epoch *ep = &k->epoch[i];

		for (uint32_t b = 0; ep->block && b < steps_held(ep); b++)
			free(ep->block[b].step);
		free(ep->save);
		free(ep->load);
		free(ep->block);
		free(ep->eval.step);
	}
	free(k->epoch);
}

static void release_usage(struct epoch_usage *u)
{
	for (size_t i = 0; i < u->meminfo_count; i++) {
		free(u->meminfo[i].key);
		free(u->meminfo[i].value);
	}
	free(u->meminfo);
}

void result_release(struct result *r)
{
	for (uint32_t k = 0; r->rank && k < r->ranks; k++)
		release_rank(&r->rank[k], r->epochs_planned);
	for (uint32_t i = 0; r->usage && i < r->epochs_planned; i++)
		release_usage(&r->usage[i]);
	free(r->rank);
	free(r->usage);
	host_facts_release(&r->host);
	system_facts_release(&r->system);
	*r = (struct result){0};
}
