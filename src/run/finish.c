/* Results: gathered from all processes, proved, judged and written. */
#include "run/finish.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "base/transfer.h"
#include "codec/digest.h"
#include "comm/net.h"
#include "judge/judge.h"
#include "judge/limit_memory.h"
#include "os/sysinfo.h"
#include "result/dlio_log.h"
#include "result/fields.h"
#include "result/measures.h"
#include "result/metrics.h"
#include "result/sink.h"
#include "result/trace_events.h"
#include "run/apart.h"
#include "run/run.h"
#include "store/servers.h"
#include "workload/recorded_file.h"

/* How long process 0 waits for the others' results once the run was stopped: their threads have
 * RUN_LEAVE_NS. */
#define PATIENCE_S 8
/* How long they wait for it to write, while it lives. */
#define CONCLUDE_S 30
/* A call to the system at the folder of results, and one about the file system of the data, where
 * storage has not answered before. */
#define UNANSWERED_S 2.5
#define FACTS_S 2.0
/* Samples whose order is proved in less than a second. */
#define PROVED_AFTER_STOP (1u << 24)
/* What proving, judging and writing allocate. */
#define RESULTS_LEAST ((size_t)16 << 20)
#define RESULTS_A_RANK ((size_t)128 << 10)
/* A file in the folder of results: the process whose number it holds writes them, though processes
 * were lost. */
#define TAKEN_OVER ".stoker-taken-over"
/* A process 0 that hangs is ended by its parent two seconds after the others have given it up. */
#define LOCK_PATIENCE_NS (5 * NS_PER_S)
#define LOCK_LOOK_NS (NS_PER_S / 20)
#define MARK_LOOKS 10
#define RESULT_BYTES_MAX ((size_t)256 << 20)

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

static bool is_result(const char *name)
{
	const char *rest = name + strspn(name, "0123456789");

	return strcmp(name, "summary.json") == 0 || strcmp(name, "result.json") == 0 ||
	       strcmp(name, "iostat.json") == 0 || strcmp(name, MEASURES_FILE) == 0 ||
	       strcmp(name, RECORDED_COPY) == 0 || strcmp(name, TAKEN_OVER) == 0 ||
	       is_trace(name) ||
	       (rest != name &&
		(strcmp(rest, "_output.json") == 0 || strcmp(rest, "_per_epoch_stats.json") == 0));
}

/* One that a killed run was writing. */
static bool is_left(const char *name)
{
	char of[NAME_MAX + 1];
	size_t n = file_temporary_of(name);

	snprintf(of, sizeof(of), "%.*s", (int)n, name + 1);
	return n > 0 && is_result(of);
}

/* What killed runs were writing there. */
static void forget_left(const char *folder)
{
	static const char *const names[] = {"config.yaml", "overrides.yaml", "hydra.yaml"};
	AUTO_FREE char *hydra = path_join(folder, ".hydra");

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		AUTO_FREE char *path = path_join(hydra, names[i]);

		file_remove_left(path);
	}
}

/* Files of an earlier run would be read as this one's: a run of fewer ranks, or one that fails,
 * would leave them. Only names that a run writes are removed. What cannot be removed could not be
 * replaced at the end, either. */
int run_forget_results(const char *folder, struct err *e)
{
	DIR *d = folder_open(folder);
	struct dirent *entry;
	int rc = 0, more = 0;

	if (!d)
		return errno == ENOENT ? 0 : err_sys(e, errno, "cannot list '%s'", folder);
	while (rc == 0 && (more = folder_next(d, &entry)) > 0) {
		const char *name = entry->d_name;

		if ((is_result(name) || is_left(name)) && unlinkat(dirfd(d), name, 0) != 0 &&
		    errno != ENOENT)
			rc = err_sys(e, errno,
				     "cannot remove '%s/%s', the result of an earlier run", folder,
				     name);
	}
	closedir(d);
	if (rc == 0 && more < 0)
		rc = err_sys(e, -more, "cannot list '%s'", folder);
	return rc;
}

size_t finish_memory(uint32_t ranks)
{
	return RESULTS_LEAST + (size_t)ranks * RESULTS_A_RANK;
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
	rc = file_lock(lock, lock_path, who, e);
	if (rc == -EBUSY)
		return err_set(e, -EBUSY,
			       "another run is writing its results to '%s'%s%s: wait for it to "
			       "end, stop it, or choose another folder with -o (lock file '%s')",
			       folder, who[0] ? ": " : "", who, lock_path);
	if (rc < 0)
		return rc;
	rc = run_forget_results(folder, e);
	if (rc < 0)
		return rc;
	forget_left(folder);
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

/* ---- the folder of results after the run: it may not answer ---- */

double finish_limit_s(const struct run_plan *p, const struct result *r)
{
	double limit_s = p->w->run.watchdog;

	return r->stuck && limit_s > UNANSWERED_S ? UNANSWERED_S : limit_s;
}

/* Work at the folder; `arg` as in struct apart. Left behind, it makes r->unwritable. */
static int at_folder(const struct run_plan *p, struct run_shared *shared, struct result *r,
		     int (*work)(void *arg, struct err *e), void *arg, struct err *e)
{
	AUTO_FREE char *place = xasprintf("the folder of results '%.600s'", r->folder);
	const struct apart a = {.work = work,
				.arg = arg,
				.place = place,
				.limit_s = finish_limit_s(p, r),
				.after = true};
	bool left = false;
	int rc = run_apart(&shared->stop, &a, &left, e);

	if (left) {
		/* main logs after this, too, and must not block on the storage */
		log_leave();
		r->stuck = r->unwritable = true;
	}
	return rc;
}

/* Who writes to the folder of results when processes are cut off from each other. */
enum whose_folder { TAKEN_BY_OTHERS, TAKEN_HERE, TAKEN_APART };

struct taking {
	uint32_t process;
	int64_t begin_wall_ns;
	char folder[sizeof(((struct result *)0)->folder)];
	char apart[sizeof(((struct result *)0)->folder)]; /* for this host's, beside the folder */
	struct file_lock lock;                            /* of that */
};

/* Whether process 0 wrote the results: its ranks are there. Else one of those that lost it did. */
static bool is_of_process_0(const char *path)
{
	struct buf text = {0};
	json_t *root = file_read(path, RESULT_BYTES_MAX, &text, NULL) == 0
			       ? json_loadb(text.data ? text.data : "", text.len, 0, NULL)
			       : NULL;
	bool its =
		root && !figure_flag(part_at(part(part_whole(root), F_RUN_RANKS), 0), F_RANK_LOST);

	json_decref(root);
	buf_release(&text);
	return its;
}

/* The first process of this host that comes writes there. */
static enum whose_folder take_apart(struct taking *t, struct err *e)
{
	AUTO_FREE char *lock = path_join(t->apart, RUN_LOCK_NAME);
	AUTO_FREE char *done = path_join(t->apart, "result.json");
	char who[FILE_LOCK_WHO_MAX];
	struct stat st;

	if (file_mkdirs(t->apart, e) < 0 || file_lock(&t->lock, lock, who, e) < 0)
		return TAKEN_BY_OTHERS;
	if (stat(done, &st) == 0 && st.st_mtim.tv_sec >= t->begin_wall_ns / NS_PER_S)
		return TAKEN_BY_OTHERS;
	return run_forget_results(t->apart, e) < 0 ? TAKEN_BY_OTHERS : TAKEN_APART;
}

/* Marks the folder as this process's to write to. False when another one was faster; *first: that
 * is process 0. */
static bool mark_taken(const struct taking *t, const char *mark, bool *first)
{
	int fd = open(mark, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0644);
	char text[16] = "";

	*first = false;
	if (fd >= 0) {
		int n = snprintf(text, sizeof(text), "%u\n", t->process);
		(void)!write(fd, text, (size_t)n);
		close(fd);
		return true;
	}
	for (int i = 0; i < MARK_LOOKS && !text[0]; i++) {
		fd = open(mark, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
			clock_sleep_until(clock_now_ns() + LOCK_LOOK_NS);
		if (fd >= 0)
			close(fd);
	}
	*first = strcmp(text, "0\n") == 0;
	return false;
}

/* Process 0 is gone, or cut off. Gone, its lock goes with it, and the first of the others to say so
 * in the folder writes what it has; lower ones are sooner. Cut off, it keeps its lock, or has
 * written already: the folder is its, and each host's results go beside it. */
static int take_over(void *arg, struct err *e)
{
	struct taking *t = arg;
	AUTO_FREE char *lock = path_join(t->folder, RUN_LOCK_NAME);
	AUTO_FREE char *mark = path_join(t->folder, TAKEN_OVER);
	AUTO_FREE char *done = path_join(t->folder, "result.json");
	char who[FILE_LOCK_WHO_MAX];
	uint32_t p = t->process;
	int64_t until = clock_now_ns() + LOCK_PATIENCE_NS;
	bool first = false;

	clock_sleep_until(clock_now_ns() + (int64_t)(p < 20 ? p - 1 : 20) * NS_PER_S / 20);
	while (file_lock_held(lock, who) && access(done, F_OK) != 0) {
		if (clock_now_ns() > until)
			return take_apart(t, e);
		clock_sleep_until(clock_now_ns() + LOCK_LOOK_NS);
	}
	if (access(done, F_OK) == 0)
		return is_of_process_0(done) ? take_apart(t, e) : TAKEN_BY_OTHERS;
	if (!mark_taken(t, mark, &first))
		return first ? take_apart(t, e) : TAKEN_BY_OTHERS;
	/* it may have written between the two looks */
	if (access(done, F_OK) != 0)
		return TAKEN_HERE;
	unlink(mark);
	return is_of_process_0(done) ? take_apart(t, e) : TAKEN_BY_OTHERS;
}

/* Process 0 has lost others, which may have taken it for dead where locks do not reach them. */
static int keep_folder(void *arg, struct err *e)
{
	struct taking *t = arg;
	AUTO_FREE char *mark = path_join(t->folder, TAKEN_OVER);
	AUTO_FREE char *done = path_join(t->folder, "result.json");
	bool first;

	if (access(done, F_OK) != 0 && mark_taken(t, mark, &first))
		return TAKEN_HERE;
	return take_apart(t, e);
}

static int forget_take_over(void *arg, struct err *e)
{
	struct taking *t = arg;
	AUTO_FREE char *mark = path_join(t->folder, TAKEN_OVER);

	(void)e;
	unlink(mark);
	file_unlock(&t->lock);
	return 0;
}

static struct taking *taking_of(const struct run_place *at, const struct result *r)
{
	struct taking *t = xcalloc(1, sizeof(*t));

	t->process = net_process_number(at->net);
	t->begin_wall_ns = r->begin_wall_ns;
	t->lock.fd = -1;
	memcpy(t->folder, r->folder, sizeof(t->folder));
	snprintf(t->apart, sizeof(t->apart), "%.*s.%s", (int)sizeof(t->apart) - NET_HOST_MAX - 2,
		 r->folder, net_process(at->net, t->process)->host);
	return t;
}

/* Whether this process writes, by `look`; where that is, is in r->folder then. Where the folder
 * does not answer, it is process 1, or 0. */
static bool takes_over(const struct run_plan *p, struct run_shared *shared, struct result *r,
		       int (*look)(void *arg, struct err *e), struct err *e)
{
	struct err was = *e;
	struct taking *t;
	int rc;

	if (!r->folder[0])
		return false;
	t = taking_of(p->at, r);
	rc = at_folder(p, shared, r, look, t, NULL);
	if (r->unwritable)
		return net_process_number(p->at->net) <= 1;
	if (rc == TAKEN_APART) {
		err_set(e, was.code,
			"%.500s; the others write to '%.300s', and the results of this side are in "
			"'%.300s'",
			was.text, r->folder, t->apart);
		memcpy(r->folder, t->apart, sizeof(r->folder));
		shared->apart = t->lock;
	} else {
		file_unlock(&t->lock);
	}
	free(t);
	return rc != TAKEN_BY_OTHERS;
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
static void gather_result(const struct run_plan *p, struct run_shared *shared, struct result *r,
			  int *rc, struct err *e)
{
	const struct run_place *at = p->at;
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
		for (uint32_t i = 0; code == 0 && *rc < 0 && i < r->processes; i++)
			if (r->process[i].lost) {
				takes_over(p, shared, r, keep_folder, e);
				break;
			}
		return;
	}
	part_pack(at, r, &mine);
	net_collect(at->net, mine.data, mine.len, PATIENCE_S, NULL, &own);
	buf_release(&mine);
	code = net_conclude(at->net, *rc, CONCLUDE_S);
	first_cause(at, rc, e);
	if (code != -EPIPE) {
		if (code < 0 && *rc == 0)
			*rc = err_set(e, code, "the run failed in process 0");
		return;
	}
	if (*rc == 0)
		*rc = err_set(e, -EPIPE, "process 0 on host '%s' ended before it wrote the results",
			      net_process(at->net, 0)->host);
	if (takes_over(p, shared, r, take_over, e) && describe_processes(at, r, &own) == 0 &&
	    widen_ranks(at, r, &own) == 0)
		r->speaks = true;
}

/* Tells the others that the results are written. */
static int conclude(const struct run_plan *p, struct run_shared *shared, struct result *r, int rc)
{
	struct taking *t;

	if (p->at->net && run_leads(p->at))
		net_conclude(p->at->net, rc, CONCLUDE_S);
	if (p->at->net && rc < 0 && r->folder[0] && !r->unwritable) {
		t = taking_of(p->at, r);
		t->lock = shared->apart;
		at_folder(p, shared, r, forget_take_over, t, NULL);
		if (!r->unwritable)
			free(t);
	}
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
		order_list_fill(&shared->list[kind], p->w, eval, p->seed, epoch);
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

/* What a thread that may be left behind writes from: a copy, so that the result can go elsewhere.
 */
struct writing {
	const struct run_plan *p;
	struct result r;
	struct run_metrics m;
	bool ran, logs;
};

static int write_files(void *arg, struct err *e)
{
	struct writing *w = arg;
	struct err why = {0};
	int rc = 0;

	if (w->r.stuck)
		log_warning("a thread is blocked in a request to the storage that cannot be "
			    "cancelled; the results are written without it");
	if (w->ran && w->logs)
		dlio_log_saved(&w->r, &w->m);
	if (w->logs)
		keep_first(&rc, e, log_close(&why), &why);
	keep_first(&rc, e, sinks_write(&w->r, &w->m, &why), &why);
	return rc;
}

static int write_elsewhere(void *arg, struct err *e)
{
	struct writing *w = arg;
	const char *place = getenv("TMPDIR");

	snprintf(w->r.folder, sizeof(w->r.folder), "%.2000s/stoker-results-XXXXXX",
		 place && *place ? place : "/tmp");
	if (!mkdtemp(w->r.folder))
		return err_sys(e, errno, "cannot make a folder '%.800s'", w->r.folder);
	return write_files(w, e);
}

static struct writing *writing_of(const struct run_plan *p, const struct result *r,
				  const struct run_metrics *m, bool ran, bool logs)
{
	struct writing *w = xcalloc(1, sizeof(*w));

	*w = (struct writing){.p = p, .r = *r, .m = *m, .ran = ran, .logs = logs};
	return w;
}

/* `e` holds why the folder was left behind, and says more afterwards. */
static int rescue_results(const struct run_plan *p, struct run_shared *shared, struct result *r,
			  const struct run_metrics *m, bool ran, struct err *e)
{
	struct writing *w = writing_of(p, r, m, ran, false);
	const struct apart a = {.work = write_elsewhere,
				.arg = w,
				.place = "the folder for temporary files",
				.limit_s = 2 * UNANSWERED_S,
				.after = true};
	struct err why = *e, other = {0};
	bool left = false;
	int rc = run_apart(&shared->stop, &a, &left, &other);

	if (rc == 0) {
		snprintf(r->folder, sizeof(r->folder), "%s", w->r.folder);
		free(w);
		return err_set(e, -ETIMEDOUT, "%.900s; the results are in '%.600s'", why.text,
			       r->folder);
	}
	r->folder[0] = '\0';
	if (!left)
		free(w);
	return err_set(e, -ETIMEDOUT,
		       "%.800s; the results could not be written to another folder either: %.400s",
		       why.text, other.text);
}

struct facts {
	struct system_facts of;
	char *folder;
};

static int load_facts(void *arg, struct err *e)
{
	struct facts *f = arg;

	(void)e;
	system_facts_load(&f->of, "", f->folder);
	return 0;
}

/* With the file system of the data where it answers. */
static void find_facts(const struct run_plan *p, struct run_shared *shared, struct result *r)
{
	struct facts *f = xcalloc(1, sizeof(*f));
	const struct apart a = {.work = load_facts,
				.arg = f,
				.place = "the storage",
				.limit_s = FACTS_S,
				.after = true};
	bool left = false;

	/* of objects it is no path */
	f->folder = workload_base_store(p->w)->flags & STORE_HAS_OBJECTS
			    ? NULL
			    : xstrdup(p->d->folder ? p->d->folder : "");
	if (!r->stuck && run_apart(&shared->stop, &a, &left, NULL) == 0) {
		r->system = f->of;
		free(f->folder);
		free(f);
		return;
	}
	r->stuck = r->stuck || left;
	system_facts_load(&r->system, "", NULL);
}

/* Judges the measures, closes the log and writes all files, result.json first: it has digests of
 * the log and of all others. */
static int write_results(const struct run_plan *p, struct run_shared *shared, struct result *r,
			 struct err *e)
{
	struct run_metrics m = {0};
	struct writing *w;
	bool ran = r->trained || r->checkpointed || r->only_evaluated;
	int rc = ran ? metrics_compute(&m, r, e) : 0;

	if (rc == 0)
		r->memory_copy.threads = limit_copiers(r, &m);
	if (r->memory_copy.threads)
		r->memory_copy.bytes_per_s = memory_copy_speed(r->memory_copy.threads);
	if (rc == 0 && ran)
		rc = judge_result(r, &m, e);
	if (rc < 0) {
		/* the configuration and what happened can still be told */
		r->trained = r->evaluated = r->checkpointed = r->only_evaluated = false;
		r->status = RUN_FAILED;
		r->reason = *e;
		metrics_release(&m);
		m = (struct run_metrics){0};
		ran = false;
	}
	find_facts(p, shared, r);
	if (r->unwritable) {
		err_set(e, -ETIMEDOUT, "the folder of results '%.600s' does not answer", r->folder);
		return rescue_results(p, shared, r, &m, ran, e);
	}
	w = writing_of(p, r, &m, ran, true);
	rc = at_folder(p, shared, r, write_files, w, e);
	/* the thread keeps `w`, and with it what `m` holds */
	if (r->unwritable)
		return rescue_results(p, shared, r, &m, ran, e);
	free(w);
	metrics_release(&m);
	return rc;
}

/* The trace of this process's ranks, where one is kept. */
struct tracing {
	const struct run_plan *p;
	struct result r;
};

static int write_trace_files(void *arg, struct err *e)
{
	struct tracing *t = arg;
	const struct run_plan *p = t->p;
	struct result *r = &t->r;
	uint64_t kept, dropped;
	int rc;

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

static int write_trace(const struct run_plan *p, struct run_shared *shared, struct result *r,
		       struct err *e)
{
	struct tracing *t;
	int rc;

	if (!r->trace || !r->rank || !r->folder[0])
		return 0;
	r->end_wall_ns = clock_wall_ns();
	t = xcalloc(1, sizeof(*t));
	*t = (struct tracing){.p = p, .r = *r};
	rc = at_folder(p, shared, r, write_trace_files, t, e);
	if (!r->unwritable)
		free(t);
	return rc;
}

static int close_log(void *arg, struct err *e)
{
	(void)arg;
	return log_close(e);
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

	if (p->store) {
		store_servers_log(p->store);
		servers_count(&r->servers, p->store);
	}
	/* this process's trace, by its own clock: before the results are merged */
	failed = write_trace(p, shared, r, &why);
	gather_result(p, shared, r, &rc, cause);
	/* only the speaking process prints the cause later: the others log it */
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
	/* one that ended because storage does not answer says so, even if nothing was measured */
	if (r->folder[0] && (r->trained || r->generated || r->checkpointed || r->only_evaluated ||
			     (r->stuck && r->dataset)))
		add_failure(&rc, cause, write_results(p, shared, r, &why), &why);
	if (!r->unwritable)
		add_failure(&rc, cause, at_folder(p, shared, r, close_log, NULL, &why), &why);
	return conclude(p, shared, r, rc);
}
