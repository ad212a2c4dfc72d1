/* The folder of results: emptied before a run, written after it. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/folder_lock.h"
#include "base/log.h"
#include "base/str.h"
#include "result/dlio_log.h"
#include "result/trace_files.h"
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

int run_write_trace(struct run_state *s, struct err *e)
{
	struct result *r = s->r;
	uint64_t kept, dropped;
	int rc;

	if (!r->trace || !r->rank || !r->folder[0])
		return 0;
	r->end_wall_ns = clock_wall_ns();
	trace_count(r->trace, &kept, &dropped);
	if (dropped > 0)
		log_warning("the trace holds %llu spans of threads; %llu later ones did not fit "
			    "into run.trace_events=%lld a thread",
			    (unsigned long long)kept, (unsigned long long)dropped,
			    (long long)s->w->run.trace_events);
	/* that of another host may have no such folder yet */
	rc = file_mkdirs(r->folder, e);
	if (rc == 0 && s->w->run.trace & TRACE_PFW)
		rc = trace_write_pfw(r, e);
	if (rc == 0 && s->w->run.trace & TRACE_CHROME)
		rc = trace_write_chrome(r, s->net != NULL, e);
	return rc;
}

/* "trace.json", "trace-R.json" and "trace-R-of-N.pfw" */
static bool is_trace(const char *name)
{
	if (strcmp(name, "trace.json") == 0)
		return true;
	if (!str_starts(name, "trace-") || !isdigit((unsigned char)name[6]))
		return false;
	name += 6 + strspn(name + 6, "0123456789");
	if (strcmp(name, ".json") == 0)
		return true;
	if (!str_starts(name, "-of-"))
		return false;
	name += 4;
	return strcmp(name + strspn(name, "0123456789"), ".pfw") == 0;
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
			    strcmp(name, "iostat.json") == 0 || strcmp(name, RUN_TAKEN_OVER) == 0 ||
			    is_trace(name) ||
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
	AUTO_FREE char *lock = path_join(s->r->folder, ".stoker_run.lock");
	char who[FILE_LOCK_WHO_MAX];
	int rc;

	rc = file_mkdirs(s->r->folder, e);
	if (rc < 0)
		return rc;
	if (file_lock(&s->output, lock, who) < 0)
		return err_set(e, -EBUSY,
			       "another run is writing its results to '%s'%s%s: wait until it has "
			       "ended, end it, or choose another folder with -o",
			       s->r->folder, who[0] ? ": " : "", who);
	remove_old_results(s->r->folder);
	log = path_join(s->r->folder, w->output.log_file);
	return log_open(log, e);
}
