/* The folder of results: emptied before a run, written after it. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "report/dlio_log.h"
#include "run/state.h"

int run_write_results(struct run_state *s, struct err *e)
{
	struct run_metrics m = {0};
	bool ran = s->r->trained || s->r->checkpointed;
	int rc = ran ? metrics_compute(&m, s->r, e) : 0;

	if (rc < 0)
		return rc;
	if (ran)
		verdicts_compute(s->r, &m);
	system_facts_load(&s->r->system, "", s->d->folder);
	for (size_t i = 0; sink_table[i]; i++) {
		struct err one = {0};
		int one_rc = sink_table[i]->render(s->r, &m, &one);

		if (one_rc < 0 && rc == 0) {
			rc = one_rc;
			*e = one;
		}
	}
	if (ran)
		dlio_log_saved(s->r, &m);
	metrics_release(&m);
	return rc;
}

/* Files of an earlier run would be read as this one's: a run of fewer ranks, or one that fails,
 * would leave them. Only names that a run writes are removed. */
static void remove_old_results(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		const char *name = entry->d_name;
		const char *rest = name + strspn(name, "0123456789");
		bool ours = strcmp(name, "summary.json") == 0 || strcmp(name, "result.json") == 0 ||
			    (rest != name && (strcmp(rest, "_output.json") == 0 ||
					      strcmp(rest, "_per_epoch_stats.json") == 0));

		if (ours)
			unlinkat(dirfd(d), name, 0);
	}
	if (d)
		closedir(d);
}

int run_open_folder(struct run_state *s, struct err *e)
{
	const struct workload *w = s->w;
	AUTO_FREE char *log = NULL;
	int rc;

	rc = file_mkdirs(s->r->folder, e);
	if (rc < 0)
		return rc;
	remove_old_results(s->r->folder);
	log = path_join(s->r->folder, w->output.log_file);
	return log_open(log, e);
}
