/* The folder of results: emptied before a run, written after it; and was every sample delivered
 * once? */
#include "run/state.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/folder_lock.h"
#include "base/log.h"
#include "base/str.h"
#include "base/sysinfo.h"
#include "dataset/verify.h"
#include "judge/judge.h"
#include "result/dlio_log.h"
#include "result/metrics.h"
#include "result/sink.h"
#include "result/trace_files.h"

/* ---- the dataset and its order ---- */

/* How long threads may take to leave after the run was stopped. */
#define LEAVE_S 8
/* and while other processes wait for what this one measured */
#define LEAVE_TOGETHER_S 4
/* Samples whose order is proved in less than a second. */
#define PROVED_AFTER_STOP (1u << 24)
/* Sizes asked for at once by the check of the dataset: their latencies count, not the CPU. */
#define CHECK_THREADS 16
#define CHECK_STACK (1u << 20)

bool run_join(struct run_state *s, pthread_t thread)
{
	int64_t leave_s = s->net ? LEAVE_TOGETHER_S : LEAVE_S;

	for (;;) {
		int64_t stopped = atomic_load(&s->stop_ns);
		struct timespec ts;

		clock_gettime(CLOCK_REALTIME, &ts);
		ts.tv_nsec += NS_PER_S / 10;
		ts.tv_sec += ts.tv_nsec / NS_PER_S;
		ts.tv_nsec %= NS_PER_S;
		if (pthread_timedjoin_np(thread, NULL, &ts) == 0)
			return true;
		if (stopped && clock_now_ns() - stopped > leave_s * NS_PER_S)
			return false;
	}
}

struct checking {
	struct run_state *s;
	struct presence_result found;
	struct err err;
	int rc;
};

static void *check_main(void *arg)
{
	struct checking *c = arg;
	struct run_state *s = c->s;
	struct presence_options o = {
		.threads = CHECK_THREADS, .stop = &s->stop, .done = &s->checked};

	c->rc = dataset_check(s->d, s->store, s->w->workflow.evaluation, &o, &c->found, &c->err);
	return NULL;
}

int run_check_dataset(struct run_state *s, struct err *e)
{
	struct checking *c = xcalloc(1, sizeof(*c));
	pthread_t thread;
	int rc;

	c->s = s;
	s->phase = PROGRESS_CHECK;
	s->phase_begin_ns = clock_now_ns();
	rc = monitor_start(s, e);
	if (rc < 0) {
		free(c);
		return rc;
	}
	rc = thread_start(&thread, check_main, c, CHECK_STACK, "check", e);
	if (rc == 0)
		s->r->stuck = !run_join(s, thread);
	monitor_stop(s);
	s->monitor_quit = 0;
	if (rc == 0 && s->r->stuck) {
		/* the thread keeps `c` */
		*e = s->reason;
		return e->code;
	}
	s->r->presence = c->found;
	if (rc == 0 && c->rc < 0) {
		*e = s->reason.code ? s->reason : c->err;
		rc = e->code;
	}
	free(c);
	return rc;
}

static int prove_epoch(struct run_state *s, uint32_t epoch, enum dataset_kind kind, uint64_t steps,
		       struct err *e)
{
	bool eval = kind == DATASET_EVAL;
	struct epoch_usage *u = &s->r->usage[epoch - 1];
	const struct stop_flag *stop = s->o->stop;
	struct order_proof delivered = {0}, rest = {0};
	char *note = eval ? u->eval_order_note : u->order_note;
	enum order_kept *kept = eval ? &u->eval_order_kept : &u->order_kept;
	bool accounted = true;
	uint32_t lost = 0;
	struct order o;

	if (s->list[kind].n)
		order_list_fill(&s->list[kind], s->w, s->seed, epoch);
	run_order(s, kind, epoch, &o);
	for (uint32_t k = 0; k < s->ranks; k++) {
		const struct rank_epoch *ep = &s->r->rank[k].epoch[epoch - 1];

		order_proof_merge(&delivered, eval ? &ep->eval_delivered : &ep->delivered);
		order_proof_merge(&rest, eval ? &ep->eval_rest : &ep->rest);
		accounted = accounted && (eval ? ep->eval_accounted : ep->accounted);
		lost += s->r->rank[k].lost;
	}
	if (lost) {
		snprintf(note, sizeof(u->order_note), "what %u of %u ranks read is not known", lost,
			 s->ranks);
		return 0;
	}
	if (accounted) {
		*kept = order_proof_check(&o, &delivered, &rest, note, sizeof(u->order_note));
		return 0;
	}
	/* after a stop, what takes no time is still proved */
	if (stop && atomic_load(&stop->set) && o.samples <= PROVED_AFTER_STOP)
		stop = NULL;
	return order_prove(&o, steps, &delivered, host_threads(), stop, kept, note,
			   sizeof(u->order_note), e);
}

int run_prove_order(struct run_state *s, struct err *e)
{
	int rc = 0;

	for (uint32_t epoch = 1; epoch <= s->r->epochs_done && rc == 0; epoch++) {
		rc = prove_epoch(s, epoch, DATASET_TRAIN, run_epoch_steps(s, epoch), e);
		if (rc == 0 && run_epoch_has_eval(s->w, epoch))
			rc = prove_epoch(s, epoch, DATASET_EVAL, s->steps[DATASET_EVAL], e);
	}
	return rc;
}

/* ---- the folder of results ---- */

int run_write_results(struct run_state *s, struct err *e)
{
	struct run_metrics m = {0};
	bool ran = s->r->trained || s->r->checkpointed;
	int rc = ran ? metrics_compute(&m, s->r, e) : 0;

	if (rc == 0 && ran)
		rc = judge_result(s->r, &m, e);
	if (rc < 0) {
		metrics_release(&m);
		return rc;
	}
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
