/* What every part of a study asks of a run. */
#include "study/experiment.h"

#include <assert.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/file_system.h"

const char *const study_launcher_names[] = {"local", "mpirun", "srun", NULL};

/* ---- workloads ---- */

int study_load(const struct study_plan *p, const struct experiment *x,
	       const struct str_list *overrides, bool inspect, struct workload *w, struct err *e)
{
	struct workload_request req = {
		.workload = x->model,
		.overrides = (const char *const *)overrides->v,
		.override_count = overrides->n,
		.config_dir = p->options->config_dir,
		.ranks = x->processes,
		.inspect = inspect,
	};

	return workload_load(w, &req, e);
}

int study_load_values(const struct study_plan *p, const struct experiment *x, struct workload *w,
		      struct err *e)
{
	struct str_list look = {0};
	struct err first = {0}, ignored = {0};
	int rc = study_load(p, x, &x->overrides, true, w, &first);

	if (rc == 0)
		return 0;
	workload_release(w);
	*w = (struct workload){0};
	for (size_t i = 0; i < x->overrides.n; i++)
		str_list_add(&look, xstrdup(x->overrides.v[i]));
	str_list_add(&look, xstrdup("++workload.workflow.train=False"));
	if (study_load(p, x, &look, true, w, &ignored) == 0)
		rc = 0;
	else
		*e = first;
	str_list_release(&look);
	return rc;
}

int study_source_of(const struct workload *w, const char *key)
{
	const struct opt *row = opt_find(workload_rows, workload_row_count, key);

	assert(row);
	return (int)w->origin[row - workload_rows].source;
}

bool study_cannot_evict(const struct workload *w, const char *folder, char *why, size_t size)
{
	const struct store_facts *store = workload_base_store(w);
	struct file_system fs;

	if (!(store->flags & STORE_HAS_FILES) || workload_format(w)->flags & FORMAT_NO_IO)
		snprintf(why, size,
			 "no file is read with storage.store '%.40s' and dataset.format %.20s",
			 w->storage.store, w->dataset.format);
	else if (store->flags & STORE_IS_UNCACHED)
		snprintf(why, size, "storage.store '%.40s' does not use it", w->storage.store);
	else if (file_system_of_path(folder, &fs) && fs.memory)
		snprintf(why, size, "'%.60s' is on %s, whose files cannot be evicted", folder,
			 fs.name);
	else
		return false;
	return true;
}

bool study_is_pending(const struct study_plan *p, const struct experiment *x)
{
	enum design_state state = p->design.row[x->row].state;

	return state == DESIGN_PENDING || (state == DESIGN_FAILED && p->options->retry);
}
