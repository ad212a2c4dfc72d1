/* The end of a result. */
#include "report/result.h"

#include <stdlib.h>

static void release_rank(struct rank_result *k, uint32_t epochs)
{
	for (uint32_t i = 0; k->epoch && i < epochs; i++) {
		struct rank_epoch *ep = &k->epoch[i];

		/* a block may be there whose phase never began */
		for (uint32_t b = 0; ep->block && b < (ep->blocks ? ep->blocks : 1); b++)
			free(ep->block[b].step);
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
	series_release(r->series);
	trace_destroy(r->trace);
	*r = (struct result){0};
}
