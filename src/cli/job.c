#include "cli/job.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/cli.h"
#include "conf/node.h"
#include "launch/hosts.h"
#include "launch/launcher.h"
#include "os/signals.h"
#include "screen/progress.h"

/* The ranks of one process; a->ranks becomes those of all. */
static int settle_ranks(struct cli_args *a, uint32_t processes, uint32_t *each, struct err *e)
{
	int64_t per = a->per_process;

	if (per == 0 && a->ranks_given) {
		if (a->ranks % processes)
			return err_set(
				e, ERR_USAGE,
				"-n %lld: each of the %u processes must have the same number of "
				"ranks; use a multiple, or --accelerators-per-process",
				(long long)a->ranks, processes);
		per = a->ranks / processes;
	}
	per = per ? per : 1;
	if (a->ranks_given && a->ranks != per * processes)
		return err_set(
			e, ERR_USAGE,
			"-n %lld does not match --accelerators-per-process %lld with %u process%s",
			(long long)a->ranks, (long long)per, processes, processes == 1 ? "" : "es");
	if (per * processes > UINT32_MAX / 2)
		return err_set(e, ERR_USAGE, "%lld ranks are too many",
			       (long long)(per * processes));
	a->ranks = per * processes;
	*each = (uint32_t)per;
	return 0;
}

/* A library is begun before there is a workload: it is asked for on the command line. */
static enum launch_mpi wants_mpi(const struct cli_args *a)
{
	static const char key[] = "comm.barrier=";
	enum launch_mpi wanted = LAUNCH_MPI_NOT_KEPT;

	for (size_t i = 0; i < a->override.n; i++) {
		const char *at = a->override.v[i];

		at += strspn(at, "+");
		at += str_starts(at, "workload.") ? strlen("workload.") : 0;
		if (!str_starts(at, key))
			continue;
		at += strlen(key);
		wanted = strcmp(at, "mpi") == 0    ? LAUNCH_MPI_KEPT
			 : strcmp(at, "auto") == 0 ? LAUNCH_MPI_TRIED
						   : LAUNCH_MPI_NOT_KEPT;
	}
	return wanted;
}

int job_begin(struct job *j, struct cli_args *a, struct stop_flag *stop, int *status, struct err *e)
{
	struct launcher l;
	struct launch place;
	uint32_t each;
	int rc;

	*j = (struct job){.speaks = true, .begin_wall_ns = clock_wall_ns(), .stop = stop};
	launcher_find(&l);
	if (launcher_check(&l, e) < 0)
		return e->code;
	if (!l.name || l.processes == 1)
		return settle_ranks(a, 1, &each, e);
	j->speaks = l.process <= 0;
	rc = launch(&l, wants_mpi(a), &place, status, e);
	if (rc == 1)
		return 1;
	if (rc == ERR_CANCELED) { /* said by the process beside this one */
		j->speaks = false;
		e->code = rc;
		return rc;
	}
	if (rc == -ECONNREFUSED)
		j->speaks = true; /* the others may not know */
	if (rc < 0)
		return rc;
	j->speaks = place.process == 0;
	rc = settle_ranks(a, place.processes, &each, e);
	if (rc < 0) {
		net_listener_close(place.listener);
		return rc;
	}
	if (place.processes == 1) {
		net_listener_close(place.listener);
		return 0;
	}
	j->begin_wall_ns = place.invitation.start_wall_ns;
	rc = net_open(&j->net, &place.invitation, place.listener, place.process, place.processes,
		      each, place.control, e);
	if (rc == -ECONNREFUSED)
		j->speaks = true; /* the others do not know */
	if (rc < 0)
		return rc;
	j->group = comm_create(&j->comm, 1, j->net, COMM_PROCESSES, stop);
	j->fabric = place.fabric;
	return 0;
}

bool job_leads(const struct job *j)
{
	return !j->net || net_process_number(j->net) == 0;
}

int job_agree(struct job *j, int rc, struct err *e)
{
	return j->net ? comm_agree(&j->comm, rc, e) : rc;
}

static const struct node *workload_tree(const struct workload *w)
{
	const struct node *n = node_path(w->tree, "workload");

	return n ? n : w->tree;
}

static const char *value_text(const struct node *v, struct buf *out)
{
	if (!v)
		return "not set";
	node_emit_flow(v, out);
	return out->data ? out->data : "";
}

/* Names the first key whose value is not that of process 0. */
static int compare_workloads(const struct job *j, const struct node *mine, const struct node *first,
			     struct err *e)
{
	uint32_t me = net_process_number(j->net);
	struct buf key = {0}, here = {0}, there = {0};
	const struct node *x, *y;
	int rc = 0;

	if (node_first_difference(first, mine, &key, &x, &y)) {
		rc = err_set(e, ERR_USAGE,
			     "the workload is not the same in all processes: %.200s is %.200s in "
			     "process %u on host '%s' and %.200s in process 0 on host '%s': all "
			     "processes need the same file, arguments and environment",
			     key.data ? key.data : "workload", value_text(y, &here), me,
			     net_process(j->net, me)->host, value_text(x, &there),
			     net_process(j->net, 0)->host);
	}
	buf_release(&key);
	buf_release(&here);
	buf_release(&there);
	return rc;
}

/* Beats come every second. */
#define SILENCE_LEAST_S 3

/* All have one limit of silence: process 0 saw the whole start. */
static int settle_silence(struct job *j, const struct workload *w)
{
	int64_t ns = net_silence_ns(j->net);
	int rc;

	if (w->comm.silence > 0)
		ns = (int64_t)fmax(ceil(w->comm.silence), SILENCE_LEAST_S) * NS_PER_S;
	rc = comm_broadcast(&j->comm, 0, &ns, sizeof(ns));
	if (rc == 0)
		net_set_silence(j->net, ns);
	return rc;
}

/* Whether this process has the workload of process 0, which shows all the others its own. */
static int check_workload(struct job *j, const struct workload *w, struct err *e)
{
	struct buf text = {0};
	struct node *first;
	uint64_t bytes;
	char *theirs;
	int rc;

	yaml_emit(workload_tree(w), &text);
	bytes = text.len;
	rc = comm_broadcast(&j->comm, 0, &bytes, sizeof(bytes));
	if (rc < 0) {
		buf_release(&text);
		return rc;
	}
	theirs = xcalloc(bytes + 1, 1);
	if (job_leads(j))
		memcpy(theirs, text.data, bytes);
	rc = comm_broadcast(&j->comm, 0, theirs, bytes);
	if (rc == 0 && !job_leads(j)) {
		first = yaml_parse(theirs, bytes, node_file_name("the workload of process 0"), e);
		rc = first ? compare_workloads(j, workload_tree(w), first, e) : e->code;
		node_free(first);
	}
	free(theirs);
	buf_release(&text);
	return rc;
}

int job_settle(struct job *j, struct workload *w, bool folder, struct err *e)
{
	char dir[PATH_MAX] = "";
	int rc = 0;

	if (folder && job_leads(j))
		cli_settle_folder(w);
	if (!j->net)
		return 0;
	if (w->run_dir && strlen(w->run_dir) >= sizeof(dir))
		rc = err_set(e, -ENAMETOOLONG, "the path '%.64s...' is too long", w->run_dir);
	else if (w->run_dir)
		memcpy(dir, w->run_dir, strlen(w->run_dir) + 1);
	rc = comm_agree(&j->comm, rc, e);
	if (rc == 0)
		rc = comm_broadcast(&j->comm, 0, dir, sizeof(dir));
	if (rc == 0)
		rc = check_workload(j, w, e);
	rc = comm_agree(&j->comm, rc, e);
	if (rc == 0)
		rc = comm_agree(&j->comm, settle_silence(j, w), e);
	if (rc == 0 && w->run_dir) {
		free(w->run_dir);
		w->run_dir = xstrdup(dir);
	}
	return rc;
}

int job_fail(const struct job *j, const struct err *e)
{
	return j->speaks ? cli_fail(e) : err_exit_status(e->code);
}

void job_end(struct job *j)
{
	if (!j->net)
		return;
	comm_local_destroy(j->group);
	net_close(j->net);
	*j = (struct job){.speaks = j->speaks};
}

int job_execute(struct job *j, const struct cli_args *a, struct workload *w, struct run_options *o,
		struct dataset *d, struct result *r, struct err *e)
{
	static struct progress_view view; /* a thread that is stuck may log into it to the end */
	const struct progress_request request = cli_progress(a);
	double target = o->dataset_only ? 0 : 100 * w->metric.au;
	int rc = job_settle(j, w, !o->dataset_only, e);

	o->ranks = (uint32_t)a->ranks;
	o->net = j->net;
	o->processes = &j->comm;
	o->fabric = j->fabric;
	o->start_wall_ns = j->begin_wall_ns;
	o->stop = j->stop;
	o->one_of_many = getenv(ERR_CODE_FILE) != NULL;
	o->progress = progress_show;
	o->progress_arg = &view;
	if (rc == 0 && !j->signals) {
		rc = signals_start(&(struct signal_work){.stop = j->stop, .hurries = true}, e);
		j->signals = rc == 0;
	}
	if (rc == 0)
		rc = job_agree(j, progress_begin(&view, &request, j->speaks, target, e), e);
	if (rc < 0)
		return rc;
	o->progress_ns = progress_interval_ns(&view);
	rc = run_execute(w, o, d, r, e);
	progress_done(&view, rc);
	j->speaks = r->speaks;
	return rc;
}

int job_load(struct job *j, const struct cli_args *a, struct workload *w, struct err *e)
{
	cli_set_console(a);
	if (!j->speaks)
		log_set_console(LOG_CONSOLE_ERRORS);
	return job_agree(j, cli_load_workload(a, j->begin_wall_ns, w, e), e);
}

static int on_hosts(const struct cli_args *a, int argc, char **argv)
{
	const struct hosts_request request = {.hosts = a->hosts,
					      .ssh = a->ssh,
					      .ssh_args = &a->ssh_args,
					      .copy_binary = a->copy_binary};
	struct err e = {0};
	int status = 0;

	if (a->truth_table)
		err_set(&e, ERR_USAGE,
			"--truth-table starts runs of its own, on this host alone: it cannot "
			"be combined with --hosts");
	else if (hosts_run(&request, argc, argv, &status, &e) == 0)
		return status;
	return cli_fail(&e);
}

int job_main(const struct command *c, int argc, char **argv, struct stop_flag *stop,
	     int (*work)(const struct cli_args *a, struct job *j, struct err *e))
{
	struct cli_args a;
	struct err e = {0};
	struct job j = {.speaks = launcher_leads()};
	int status = 0, rc = cli_args_parse(c, &a, argc, argv, &e);

	/* under DLIO's name, what DLIO prints */
	a.verbose = a.verbose || (c->link && strcmp(path_basename(argv[0]), c->link) == 0);
	signals_of_writes();
	if (rc == 0 && (a.ssh || a.ssh_args.n || a.copy_binary) && !a.hosts)
		rc = err_set(
			&e, ERR_USAGE,
			"--ssh, --ssh-arg and --copy-binary are for --hosts, which is missing");
	if (rc == 0 && a.hosts) {
		status = on_hosts(&a, argc, argv);
		cli_args_release(&a);
		return status;
	}
	if (rc == 0)
		rc = job_begin(&j, &a, stop, &status, &e);
	/* until the run looks at its flag */
	if (rc == 0)
		rc = signals_start(&(struct signal_work){0}, &e);
	if (rc < 0)
		status = job_fail(&j, &e);
	if (rc == 0) {
		cli_args_shrink(&a, j.speaks, true);
		status = work(&a, &j, &e);
	}
	job_end(&j);
	cli_unsettle_folder();
	cli_args_release(&a);
	return status;
}
