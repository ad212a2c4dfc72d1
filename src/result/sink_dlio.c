/* The files of DLIO's output folder: summary.json, N_output.json and N_per_epoch_stats.json. */
#include <stdio.h>

#include "result/dlio_values.h"
#include "result/json_out.h"
#include "result/sink.h"

static int render(const struct result *r, const struct run_metrics *m, struct err *e)
{
	char name[64];
	int rc = 0;

	if ((!r->trained && !r->checkpointed) || !r->rank)
		return 0;
	for (uint32_t k = 0; rc == 0 && k < r->ranks; k++) {
		if (r->rank[k].lost)
			continue;
		snprintf(name, sizeof(name), "%u_per_epoch_stats.json", k);
		rc = json_write(dlio_rank_epochs(r, k), r->folder, name, e);
		if (rc < 0)
			break;
		snprintf(name, sizeof(name), "%u_output.json", k);
		rc = json_write(dlio_rank_output(r, k), r->folder, name, e);
	}
	if (rc == 0)
		rc = json_write(dlio_summary(r, m), r->folder, "summary.json", e);
	return rc;
}

extern const struct sink_ops sink_dlio;
const struct sink_ops sink_dlio = {
	.name = "dlio",
	.help = "summary.json, N_output.json and N_per_epoch_stats.json as DLIO writes them",
	.render = render,
};
