/* What launchers leave in the environment. */
#include "launch/launcher.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/str.h"
#include "os/child.h"

static int64_t number(const char *variable, int64_t otherwise)
{
	const char *v = variable ? getenv(variable) : NULL;
	int64_t n;

	return v && str_to_i64(v, &n) && n >= 0 ? n : otherwise;
}

/* The first row whose mark is set counts: an outer launcher's variables may be inherited, as those
 * of srun by the daemons of mpirun. */
static const struct row {
	const char *mark, *size, *rank; /* size NULL: the launcher tells when it is asked */
	const char *local, *nodes;      /* processes on this host, hosts; NULL: it does not say */
	const char *name, *library;
	bool pmi; /* PMI_FD and PMI_PORT are its own */
	const char
		*job[3]; /* what tells its jobs on a host apart; none: its daemon of the job does */
} rows[] = {
	{"STOKER_HOSTS_SIZE",
	 "STOKER_HOSTS_SIZE",
	 "STOKER_HOSTS_RANK",
	 "STOKER_HOSTS_LOCAL",
	 NULL,
	 "stoker run --hosts",
	 NULL,
	 false,
	 {NULL}},
	{"OMPI_COMM_WORLD_SIZE",
	 "OMPI_COMM_WORLD_SIZE",
	 "OMPI_COMM_WORLD_RANK",
	 "OMPI_COMM_WORLD_LOCAL_SIZE",
	 NULL,
	 "mpirun (Open MPI)",
	 "openmpi",
	 false,
	 {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri"}},
	{"MV2_COMM_WORLD_SIZE",
	 "MV2_COMM_WORLD_SIZE",
	 "MV2_COMM_WORLD_RANK",
	 "MV2_COMM_WORLD_LOCAL_SIZE",
	 NULL,
	 "mpirun (MVAPICH)",
	 "mpich",
	 true,
	 {NULL}},
	{"PALS_RANKID",
	 "PMI_SIZE",
	 "PALS_RANKID",
	 "PALS_LOCAL_SIZE",
	 NULL,
	 "mpiexec (PALS)",
	 "mpich",
	 false,
	 {"PALS_APID"}},
	{"JSM_NAMESPACE_SIZE",
	 "JSM_NAMESPACE_SIZE",
	 "JSM_NAMESPACE_RANK",
	 "JSM_NAMESPACE_LOCAL_SIZE",
	 NULL,
	 "jsrun",
	 "openmpi",
	 false,
	 {NULL}},
	{"FLUX_TASK_RANK",
	 "FLUX_JOB_SIZE",
	 "FLUX_TASK_RANK",
	 NULL,
	 "FLUX_JOB_NNODES",
	 "flux run",
	 NULL,
	 true,
	 {"FLUX_JOB_ID", "FLUX_URI"}},
	{"PMI_SIZE",
	 "PMI_SIZE",
	 "PMI_RANK",
	 "MPI_LOCALNRANKS",
	 NULL,
	 "mpiexec (MPICH)",
	 "mpich",
	 true,
	 {NULL}},
	{"PMI_PORT",
	 NULL,
	 "PMI_ID",
	 NULL,
	 NULL,
	 "mpiexec (MPICH, -pmi-port)",
	 "mpich",
	 true,
	 {NULL}},
	{"PMIX_RANK",
	 "SLURM_STEP_NUM_TASKS",
	 "PMIX_RANK",
	 NULL,
	 "SLURM_STEP_NUM_NODES",
	 "a PMIx launcher",
	 NULL,
	 false,
	 {"PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID"}},
	{"SLURM_STEP_NUM_TASKS",
	 "SLURM_STEP_NUM_TASKS",
	 "SLURM_PROCID",
	 NULL,
	 "SLURM_STEP_NUM_NODES",
	 "srun",
	 NULL,
	 false,
	 {"SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_STEP_ID"}},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* For so many seconds the other processes are waited for: those of a large job on a slow file
 * system begin one after another. */
#define START_LIMIT_S 60
#define START_LIMIT_MAX_S 86400

/* The variables with which a launcher's own connections are kept to some interfaces; the user's
 * comes first, and a node's name in Slurm's configuration, by which the other nodes reach it, last.
 */
static const char *const interfaces[] = {
	"STOKER_INTERFACES",           "OMPI_MCA_btl_tcp_if_include",
	"OMPI_MCA_oob_tcp_if_include", "PRTE_MCA_oob_tcp_if_include",
	"PRTE_MCA_prte_if_include",    "MPIR_CVAR_CH3_INTERFACE_HOSTNAME",
	"MPICH_INTERFACE_HOSTNAME",    "HYDRA_IFACE",
	"I_MPI_HYDRA_IFACE",           "SLURMD_NODENAME",
};

static void find_where(struct net_where *out, const struct row *r, int64_t processes)
{
	/* the older rule: an srun whose tasks get their numbers from a PMI */
	const char *nodes = r->nodes ? r->nodes : "SLURM_STEP_NUM_NODES";
	int64_t here = r->local ? number(r->local, 0) : 0;

	for (size_t i = 0; !out->interfaces && i < sizeof(interfaces) / sizeof(interfaces[0]);
	     i++) {
		const char *v = getenv(interfaces[i]);

		out->interfaces = v && *v ? v : NULL;
	}
	out->one_host =
		processes > 0 && (here == processes || (here == 0 && number(nodes, 0) == 1));
}

static const struct row *find_row(void)
{
	for (size_t i = 0; i < ROWS; i++)
		if (getenv(rows[i].mark))
			return &rows[i];
	return NULL;
}

void launcher_find(struct launcher *out)
{
	const struct row *r = find_row();

	*out = (struct launcher){.process = -1};
	if (!r)
		return;
	out->name = r->name;
	out->mark = r->mark;
	out->own = r == &rows[0];
	out->manages = !out->own && r != &rows[ROWS - 1];
	out->mpich = r->library && strcmp(r->library, "mpich") == 0;
	out->processes = number(r->size, 0);
	out->process = number(r->rank, -1);
	find_where(&out->where, r, out->processes);
	if (out->manages && getenv("SLURM_STEP_NUM_TASKS") && !getenv("HYDRA_LAUNCHER") &&
	    !getenv("OMPI_COMM_WORLD_SIZE") && getenv("SLURM_PROCID"))
		out->name = getenv("PMIX_RANK") ? "srun --mpi=pmix" : "srun --mpi=pmi2";
}

bool launcher_leads(void)
{
	struct launcher l;

	launcher_find(&l);
	return l.process <= 0;
}

/* ---- how the processes meet ---- */

/* What all processes of the job have in common, and no others. */
static void name_job(struct launcher *l, const struct row *r)
{
	struct ancestor above[ANCESTORS_MAX];
	size_t n;

	for (size_t i = 0; i < sizeof(r->job) / sizeof(r->job[0]); i++) {
		const char *v = r->job[i] ? getenv(r->job[i]) : NULL;

		if (v && *v)
			str_append(l->job_name, sizeof(l->job_name), "%s=%s\n", r->job[i], v);
	}
	if (!l->job_name[0]) {
		n = ancestors_to_launcher(l->rank, above);
		if (n > 0)
			str_append(l->job_name, sizeof(l->job_name), "%s %d %llu", r->mark,
				   (int)above[n - 1].pid, (unsigned long long)above[n - 1].start);
	}
	l->job.name = l->job_name[0] ? l->job_name : NULL;
}

static bool pmi_is_open(void)
{
	int64_t fd = number("PMI_FD", -1);
	struct stat st;

	return fd >= 0 && fd <= INT32_MAX && fstat((int)fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* The connection that PMI_FD names is there, or PMI_PORT says where it can be had, and it is this
 * launcher's: its numbers are the same. */
static bool has_pmi(const struct launcher *l, const struct row *r)
{
	if (!r->pmi || l->process < 0)
		return false;
	if (!getenv("PMI_FD"))
		return getenv("PMI_PORT") && number("PMI_ID", -1) == l->process;
	return pmi_is_open() && number("PMI_RANK", -1) == l->process &&
	       number("PMI_SIZE", -1) == l->processes;
}

/* Numbers that contradict each other, as after a wrapper that sets some of them: without this, a
 * library would be blamed for what it finds. */
static int check_numbers(const struct row *r, const struct launcher *l, struct err *e)
{
	const char *size = r->size ? getenv(r->size) : NULL, *rank = getenv(r->rank);

	if (size && l->processes < 1)
		return err_set(
			e, -ECONNREFUSED,
			"the environment is that of a process of %s, but %s is '%.40s': it is "
			"the number of processes. Unset %s if there is no launcher",
			l->name, r->size, size, r->mark);
	if (rank && (l->process < 0 || (size && l->process >= l->processes)))
		return err_set(e, -ECONNREFUSED,
			       "the environment is that of a process of %s, but %s is '%.40s'%s%s: "
			       "processes are numbered from 0. Unset %s if there is no launcher",
			       l->name, r->rank, rank, size ? " of " : "", size ? size : "",
			       r->mark);
	return 0;
}

/* From how many processes on their connections are a tree. */
static int set_tree(struct err *e)
{
	const char *v = getenv("STOKER_TREE_FROM");
	int64_t from;

	if (!v || !*v)
		return 0;
	if (!str_to_i64(v, &from) || from < 2 || from > UINT32_MAX)
		return err_set(e, ERR_USAGE,
			       "STOKER_TREE_FROM is '%s': it is from how many processes on "
			       "barriers go over a tree of connections, 2 or more (default: %d)",
			       v, NET_TREE_FROM);
	net_set_tree_from((uint32_t)from);
	return 0;
}

int launcher_start_limit(int64_t *limit_ns, struct err *e)
{
	const char *limit = getenv("STOKER_START_LIMIT");
	int64_t limit_s = START_LIMIT_S;

	if (limit && *limit &&
	    (!str_to_i64(limit, &limit_s) || limit_s < 1 || limit_s > START_LIMIT_MAX_S))
		return err_set(e, ERR_USAGE,
			       "STOKER_START_LIMIT is '%s': it is the seconds for which the other "
			       "processes are waited for, 1 to %d",
			       limit, START_LIMIT_MAX_S);
	*limit_ns = limit_s * NS_PER_S;
	return 0;
}

int launcher_way(struct launcher *l, struct err *e)
{
	static const char *const libraries[] = {"openmpi", "mpich", "standard"};
	const char *forced = getenv("STOKER_MPI");
	const struct row *r = find_row();
	int64_t limit_ns;
	bool none = forced && strcmp(forced, "none") == 0, known = none || !forced || !*forced;

	if (launcher_start_limit(&limit_ns, e) < 0)
		return e->code;
	for (size_t i = 0; !known && i < sizeof(libraries) / sizeof(libraries[0]); i++)
		known = strcmp(forced, libraries[i]) == 0;
	if (!known && !strchr(forced, '/'))
		return err_set(
			e, ERR_USAGE,
			"STOKER_MPI is '%s': it is openmpi, mpich, standard, none, or the path "
			"of an MPI library",
			forced);
	if (set_tree(e) < 0)
		return e->code;
	if (check_numbers(r, l, e) < 0)
		return -ECONNREFUSED;
	snprintf(l->rank, sizeof(l->rank), "%s=%s", r->rank,
		 getenv(r->rank) ? getenv(r->rank) : "");
	l->job = (struct meet_job){.launcher = l->name,
				   .library = r->library,
				   .rank = l->rank,
				   .process = l->process,
				   .processes = l->processes,
				   .limit_ns = limit_ns};
	name_job(l, r);
	l->no_library = none;
	if (l->own) {
		l->way = &meet_over_agent;
	} else if (forced && *forced && !none) {
		l->job.library = forced;
		l->way = &meet_over_mpi;
	} else if (has_pmi(l, r)) {
		l->way = &meet_over_pmi;
	} else if (l->where.one_host && l->process >= 0 && l->process < l->processes &&
		   l->job.name) {
		l->way = &meet_on_host;
	} else if (l->manages && !none && r->pmi && getenv("PMI_FD") && !pmi_is_open()) {
		/* a library would print and end the process */
		return err_set(e, -ECONNREFUSED,
			       "%s says that it can be reached at descriptor %.20s (PMI_FD), but "
			       "there is no connection: a program between it and this one may have "
			       "closed it, as sudo and containers do",
			       l->name, getenv("PMI_FD"));
	} else if (l->manages && !none) {
		l->way = &meet_over_mpi;
	}
	return 0;
}

int launcher_refuse(const char *command, const char *why, struct err *e)
{
	struct launcher l;
	char count[48] = "";

	launcher_find(&l);
	if (!l.name || l.processes == 1)
		return 0;
	if (l.processes > 1)
		snprintf(count, sizeof(count), " in %lld processes", (long long)l.processes);
	return err_set(e, ERR_USAGE,
		       "'%s' was started%s under %s; run it once, without a launcher: %s. If there "
		       "is no launcher, unset %s",
		       command, count, l.name, why, l.mark);
}
