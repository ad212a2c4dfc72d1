/* Results: gathered from all processes, proved, judged and written. */
#include "run/finish.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "base/sysinfo.h"
#include "base/transfer.h"
#include "codec/md5.h"
#include "comm/net.h"
#include "judge/judge.h"
#include "result/dlio_log.h"
#include "result/metrics.h"
#include "result/sink.h"
#include "result/trace_files.h"
#include "run/run.h"

/* How long process 0 waits for the others' results once the run was stopped, and they for it. */
#define PATIENCE_S 6
/* Samples whose order is proved in less than a second. */
#define PROVED_AFTER_STOP (1u << 24)
/* Of a process that writes the results because process 0 is gone; in the folder of results. */
#define TAKEN_OVER ".stoker-taken-over"

/* ---- the folder of results ---- */

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
int run_forget_results(const char *folder, struct err *e)
{
	DIR *d = folder_open(folder);
	struct dirent *entry;
	int rc = 0, more = 0;

	if (!d)
		return errno == ENOENT ? 0 : err_sys(e, errno, "cannot list '%s'", folder);
	while (rc == 0 && (more = folder_next(d, &entry)) > 0) {
		const char *name = entry->d_name;
		const char *rest = name + strspn(name, "0123456789");
		bool ours = strcmp(name, "summary.json") == 0 || strcmp(name, "result.json") == 0 ||
			    strcmp(name, "iostat.json") == 0 || strcmp(name, TAKEN_OVER) == 0 ||
			    is_trace(name) ||
			    (rest != name && (strcmp(rest, "_output.json") == 0 ||
					      strcmp(rest, "_per_epoch_stats.json") == 0));

		if (ours && unlinkat(dirfd(d), name, 0) != 0 && errno != ENOENT)
			rc = err_sys(e, errno,
				     "cannot remove '%s/%s', the result of an earlier run", folder,
				     name);
	}
	closedir(d);
	if (rc == 0 && more < 0)
		rc = err_sys(e, -more, "cannot list '%s'", folder);
	return rc;
}

int finish_open_folder(const struct workload *w, const char *folder, struct file_lock *lock,
		       struct err *e)
{
	AUTO_FREE char *log = NULL;
	AUTO_FREE char *lock_path = path_join(folder, RUN_LOCK_NAME);
	char who[FILE_LOCK_WHO_MAX];
	int rc;

	rc = file_mkdirs(folder, e);
	if (rc < 0)
		return rc;
	if (file_lock(lock, lock_path, who) < 0)
		return err_set(e, -EBUSY,
			       "another run is writing its results to '%s'%s%s: wait for it to "
			       "end, stop it, or choose another folder with -o",
			       folder, who[0] ? ": " : "", who);
	rc = run_forget_results(folder, e);
	if (rc < 0)
		return rc;
	log = path_join(folder, w->output.log_file);
	rc = log_open(log, e);
	if (rc == 0)
		dlio_log_mark();
	return rc;
}

/* ---- the result of all processes ---- */

static int describe_processes(const struct run_place *at, struct result *r, struct err *e)
{
	r->process = try_calloc(net_processes(at->net), sizeof(*r->process), "processes", e);
	if (!r->process)
		return -ENOMEM;
	r->processes = net_processes(at->net);
	r->nodes = net_nodes(at->net);
	for (uint32_t p = 0; p < r->processes; p++) {
		const struct net_process *n = net_process(at->net, p);
		struct result_process *o = &r->process[p];

		memcpy(o->hostname, n->host, sizeof(o->hostname));
		o->node = n->node;
		o->first_rank = p * at->locals;
		o->ranks = at->locals;
		o->own = p == net_process_number(at->net);
		o->lost = !o->own;
		o->wall_offset_ns = n->wall_offset_ns;
		o->offset_error_ns = n->rtt_ns / 2;
	}
	return 0;
}

/* Makes room for the ranks of all processes; those that are not here yet are lost. */
static int widen_ranks(const struct run_place *at, struct result *r, struct err *e)
{
	struct rank_result *all;

	if (!r->rank)
		return 0;
	all = try_calloc(at->ranks, sizeof(*all), "ranks", e);
	if (!all)
		return -ENOMEM;
	for (uint32_t k = 0; k < at->ranks; k++) {
		struct rank_result *one = &all[k];

		if (k >= at->first && k < at->first + at->locals) {
			*one = r->rank[k - at->first];
			continue;
		}
		one->lost = true;
		io_stat_init(&one->train_io);
		one->epoch = try_calloc(r->epochs_planned, sizeof(*one->epoch), "epochs", e);
		if (!one->epoch) {
			while (k-- > 0)
				if (all[k].lost)
					free(all[k].epoch);
			free(all);
			return -ENOMEM;
		}
	}
	free(r->rank);
	r->rank = all;
	r->ranks_here = at->ranks;
	r->first_rank = 0;
	return 0;
}

static int merge_processes(const struct run_place *at, struct result *r, struct err *e)
{
	uint32_t n = net_processes(at->net);
	struct buf *block = xcalloc(n, sizeof(*block));
	int rc = describe_processes(at, r, e);

	if (rc == 0)
		rc = net_collect(at->net, NULL, 0, PATIENCE_S, block, e);
	if (rc == 0)
		rc = widen_ranks(at, r, e);
	/* no place for the ranks of all: there is nothing to tell of them */
	if (rc < 0)
		r->trained = r->checkpointed = r->only_evaluated = false;
	for (uint32_t p = 1; p < n; p++) {
		if (rc == 0 && block[p].len)
			rc = part_unpack(at, r, p, &block[p], e);
		buf_release(&block[p]);
	}
	free(block);
	return rc;
}

/* Process 0 is gone. The first of the others to say so in the output folder writes what it has;
 * lower ones are sooner. */
static bool take_over(const struct run_place *at, const struct result *r)
{
	AUTO_FREE char *mark = path_join(r->folder, TAKEN_OVER);
	AUTO_FREE char *done = path_join(r->folder, "result.json");
	uint32_t p = net_process_number(at->net);
	int fd;

	if (!r->folder[0])
		return false;
	clock_sleep_until(clock_now_ns() + (int64_t)(p < 20 ? p - 1 : 20) * NS_PER_S / 20);
	if (access(done, F_OK) == 0)
		return false;
	fd = open(mark, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static void forget_take_over(const struct result *r)
{
	AUTO_FREE char *mark = path_join(r->folder, TAKEN_OVER);

	unlink(mark);
}

static void first_cause(const struct run_place *at, int *rc, struct err *e)
{
	struct err cause = {0};

	if (net_cause(at->net, NULL, &cause)) {
		*rc = cause.code;
		*e = cause;
	}
}

/* `*rc` and `e` become those of the run. Then r->speaks tells who goes on to write. */
static void gather_result(const struct run_place *at, struct result *r, int *rc, struct err *e)
{
	struct buf mine = {0};
	struct err own;
	int code;

	r->speaks = run_leads(at);
	if (!at->net)
		return;
	if (*rc < 0)
		net_stop(at->net, *rc == ERR_CANCELED ? NET_CAUSE_STOP : NET_CAUSE_ERROR, e);
	if (r->speaks) {
		code = merge_processes(at, r, &own);
		first_cause(at, rc, e);
		if (code < 0 && *rc == 0) {
			*rc = code;
			*e = own;
		}
		return;
	}
	part_pack(at, r, &mine);
	net_collect(at->net, mine.data, mine.len, PATIENCE_S, NULL, &own);
	buf_release(&mine);
	code = net_conclude(at->net, *rc, PATIENCE_S);
	first_cause(at, rc, e);
	if (code != -EPIPE) {
		if (code < 0 && *rc == 0)
			*rc = err_set(e, code, "the run failed in process 0");
		return;
	}
	if (*rc == 0)
		*rc = err_set(e, -EPIPE, "process 0 on host '%s' ended before it wrote the results",
			      net_process(at->net, 0)->host);
	if (take_over(at, r) && describe_processes(at, r, &own) == 0 &&
	    widen_ranks(at, r, &own) == 0)
		r->speaks = true;
}

/* Tells the others that the results are written. */
static int conclude(const struct run_place *at, const struct result *r, int rc)
{
	if (at->net && run_leads(at))
		net_conclude(at->net, rc, PATIENCE_S);
	else if (at->net && r->speaks)
		forget_take_over(r);
	return rc;
}

/* ---- was every sample delivered once? ---- */

static int prove_epoch(const struct run_plan *p, struct run_shared *shared,
		       const struct stop_flag *stop, struct result *r, uint32_t epoch,
		       enum dataset_kind kind, struct err *e)
{
	bool eval = kind == DATASET_EVAL;
	struct epoch_usage *u = &r->usage[epoch - 1];
	uint64_t steps = eval ? p->steps[DATASET_EVAL] : plan_epoch(p, epoch).steps;
	struct order_proof delivered = {0}, rest = {0};
	char *note = eval ? u->eval_order_note : u->order_note;
	enum order_kept *kept = eval ? &u->eval_order_kept : &u->order_kept;
	bool accounted = true;
	uint32_t lost = 0;
	struct order o;

	assert(epoch <= r->epochs_planned && r->ranks_here == p->at->ranks);
	if (shared->list[kind].n)
		order_list_fill(&shared->list[kind], p->w, p->seed, epoch);
	plan_order(p, &shared->list[kind], kind, epoch, &o);
	for (uint32_t k = 0; k < p->at->ranks; k++) {
		const struct rank_epoch *ep = &r->rank[k].epoch[epoch - 1];

		order_proof_merge(&delivered, eval ? &ep->eval_delivered : &ep->delivered);
		order_proof_merge(&rest, eval ? &ep->eval_rest : &ep->rest);
		accounted = accounted && (eval ? ep->eval_accounted : ep->accounted);
		lost += r->rank[k].lost;
	}
	if (lost) {
		snprintf(note, sizeof(u->order_note),
			 "the samples that %u of %u ranks read are unknown", lost, p->at->ranks);
		return 0;
	}
	if (accounted) {
		*kept = order_proof_check(&o, &delivered, &rest, note, sizeof(u->order_note));
		return 0;
	}
	/* after a stop, what takes no time is still proved */
	if (stop && atomic_load_explicit(&stop->set, memory_order_relaxed) &&
	    o.samples <= PROVED_AFTER_STOP)
		stop = NULL;
	return order_prove(&o, steps, &delivered, host_threads(), stop, kept, note,
			   sizeof(u->order_note), e);
}

/* Proves the order of the epochs that every rank ended. */
static int prove_order(const struct run_plan *p, struct run_shared *shared,
		       const struct stop_flag *stop, struct result *r, struct err *e)
{
	int rc = 0;

	for (uint32_t epoch = 1; epoch <= r->epochs_done && rc == 0; epoch++) {
		rc = r->trained ? prove_epoch(p, shared, stop, r, epoch, DATASET_TRAIN, e) : 0;
		if (rc == 0 && plan_epoch(p, epoch).evaluated)
			rc = prove_epoch(p, shared, stop, r, epoch, DATASET_EVAL, e);
	}
	return rc;
}

/* ---- files ---- */

static void keep_first(int *rc, struct err *e, int code, const struct err *why)
{
	if (code < 0 && *rc == 0) {
		*rc = code;
		*e = *why;
	}
}

/* Judges the measures, closes the log and writes all files, result.json first: it has digests of
 * the log and of all others. */
static int write_results(const struct run_plan *p, struct result *r, struct err *e)
{
	struct run_metrics m = {0};
	struct err why = {0};
	bool ran = r->trained || r->checkpointed || r->only_evaluated;
	int rc = ran ? metrics_compute(&m, r, e) : 0;

	if (rc == 0 && ran)
		rc = judge_result(r, &m, e);
	if (rc < 0) {
		metrics_release(&m);
		return rc;
	}
	system_facts_load(&r->system, "", p->d->folder);
	if (ran)
		dlio_log_saved(r, &m);
	keep_first(&rc, e, log_close(&why), &why);
	keep_first(&rc, e, sinks_write(r, &m, &why), &why);
	metrics_release(&m);
	return rc;
}

/* The trace of this process's ranks, where one is kept. */
static int write_trace(const struct run_plan *p, struct result *r, struct err *e)
{
	uint64_t kept, dropped;
	int rc;

	if (!r->trace || !r->rank || !r->folder[0])
		return 0;
	r->end_wall_ns = clock_wall_ns();
	trace_count(r->trace, &kept, &dropped);
	if (dropped > 0)
		log_warning("the trace holds %llu spans; %llu later ones were dropped "
			    "(run.trace_events is %lld per thread)",
			    (unsigned long long)kept, (unsigned long long)dropped,
			    (long long)p->w->run.trace_events);
	/* that of another host may have no such folder yet */
	rc = file_mkdirs(r->folder, e);
	if (rc == 0 && p->w->run.trace & TRACE_PFW)
		rc = trace_write_pfw(r, e);
	if (rc == 0 && p->w->run.trace & TRACE_CHROME)
		rc = trace_write_chrome(r, p->at->net != NULL, e);
	return rc;
}

/* ---- the whole ---- */

/* Of the process that writes the results: all files of a run have the same. */
static void draw_id(struct result *r)
{
	unsigned char bytes[sizeof(r->id) / 2];

	if (getrandom(bytes, sizeof(bytes), GRND_NONBLOCK) != (ssize_t)sizeof(bytes)) {
		/* early after the start of a machine: still of this host, process and moment */
		int64_t now[2] = {clock_wall_ns(), clock_now_ns()};
		AUTO_FREE char *seed = xasprintf("%s %d %lld %lld", r->host.hostname, (int)getpid(),
						 (long long)now[0], (long long)now[1]);

		md5(seed, strlen(seed), bytes);
	}
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(r->id + 2 * i, 3, "%02x", bytes[i]);
}

/* A failure after the run, or another beside its own: a run ends with one sentence, the first. */
static void add_failure(int *rc, struct err *cause, int failed, const struct err *why)
{
	if (failed < 0 && *rc < 0)
		log_error("%s", why->text);
	if (failed < 0 && *rc == 0) {
		*rc = failed;
		*cause = *why;
	}
}

int finish_run(const struct run_plan *p, struct run_shared *shared, const struct stop_flag *stop,
	       struct result *r, int rc, struct err *cause)
{
	struct err why = {0};
	int failed;

	/* of this process and by its clock: before all is one result */
	failed = write_trace(p, r, &why);
	gather_result(p->at, r, &rc, cause);
	/* elsewhere nobody prints the cause */
	if (failed < 0 && !r->speaks)
		log_error("%s", why.text);
	if (failed < 0 && (r->speaks || rc == 0))
		add_failure(&rc, cause, failed, &why);
	if (!r->speaks)
		return rc;
	if ((r->trained || r->only_evaluated) && r->rank &&
	    prove_order(p, shared, stop, r, &why) < 0 && rc == 0) {
		*cause = why;
		rc = why.code;
	}
	draw_id(r);
	r->end_wall_ns = clock_wall_ns();
	r->peak_rss_bytes = proc_peak_rss_bytes();
	for (uint32_t i = 0; i < r->processes; i++)
		r->peak_rss_bytes += r->process[i].peak_rss_bytes;
	r->status = rc == 0 ? RUN_COMPLETE : rc == ERR_CANCELED ? RUN_INTERRUPTED : RUN_FAILED;
	if (rc < 0)
		r->reason = *cause;
	if (r->folder[0] && (r->trained || r->generated || r->checkpointed || r->only_evaluated))
		add_failure(&rc, cause, write_results(p, r, &why), &why);
	add_failure(&rc, cause, log_close(&why), &why);
	return conclude(p->at, r, rc);
}
