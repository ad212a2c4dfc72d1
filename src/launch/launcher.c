/* What launchers leave in the environment. */
#include "launch/launcher.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/str.h"
#include "codec/digest.h"
#include "os/child.h"

static int64_t number(const char *variable, int64_t otherwise)
{
	const char *v = variable ? getenv(variable) : NULL;
	int64_t n;

	return v && str_to_i64(v, &n) && n >= 0 ? n : otherwise;
}

/* Where no launcher is known, the user says who each process is. */
#define BY_USER                                                                                    \
	.size = "STOKER_PROCESSES", .rank = "STOKER_PROCESS", .name = "the user",                  \
	.job = {"STOKER_ADDRESS"}, .address = "STOKER_ADDRESS"

/* The first row whose mark is set counts: an outer launcher's variables may be inherited, as those
 * of srun by the daemons of mpirun. */
static const struct row {
	const char *mark, *size, *rank; /* size NULL: the launcher tells when it is asked */
	const char *local, *nodes;      /* processes on this host, hosts; NULL: it does not say */
	const char *name, *library;
	bool pmi;     /* PMI_FD and PMI_PORT are its own */
	bool manages; /* it has a process management that MPI libraries use */
	const char
		*job[3]; /* what tells its jobs on a host apart; none: its daemon of the job does */
	const char *address, *port; /* where process 0 listens; port NULL: it is in the address */
	const char *or_mark;        /* another variable that says so */
} rows[] = {
	{.mark = "STOKER_HOSTS_SIZE",
	 .size = "STOKER_HOSTS_SIZE",
	 .rank = "STOKER_HOSTS_RANK",
	 .local = "STOKER_HOSTS_LOCAL",
	 .name = "stoker run --hosts"},
	/* whoever sets them means them */
	{.mark = "STOKER_PROCESS", BY_USER},
	/* within srun, which starts one for each node */
	{.mark = "TORCHELASTIC_RUN_ID",
	 .size = "WORLD_SIZE",
	 .rank = "RANK",
	 .local = "LOCAL_WORLD_SIZE",
	 .name = "torchrun",
	 .job = {"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"},
	 .address = "MASTER_ADDR",
	 .port = "MASTER_PORT"},
	{.mark = "OMPI_COMM_WORLD_SIZE",
	 .size = "OMPI_COMM_WORLD_SIZE",
	 .rank = "OMPI_COMM_WORLD_RANK",
	 .local = "OMPI_COMM_WORLD_LOCAL_SIZE",
	 .name = "mpirun (Open MPI)",
	 .library = "openmpi",
	 .job = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri"},
	 .manages = true},
	{.mark = "MV2_COMM_WORLD_SIZE",
	 .size = "MV2_COMM_WORLD_SIZE",
	 .rank = "MV2_COMM_WORLD_RANK",
	 .local = "MV2_COMM_WORLD_LOCAL_SIZE",
	 .name = "mpirun (MVAPICH)",
	 .library = "mpich",
	 .pmi = true,
	 .manages = true},
	{.mark = "PALS_RANKID",
	 .size = "PMI_SIZE",
	 .rank = "PALS_RANKID",
	 .local = "PALS_LOCAL_SIZE",
	 .name = "mpiexec (PALS)",
	 .library = "mpich",
	 .job = {"PALS_APID"},
	 .manages = true},
	{.mark = "JSM_NAMESPACE_SIZE",
	 .size = "JSM_NAMESPACE_SIZE",
	 .rank = "JSM_NAMESPACE_RANK",
	 .local = "JSM_NAMESPACE_LOCAL_SIZE",
	 .name = "jsrun",
	 .library = "openmpi",
	 .manages = true},
	{.mark = "FLUX_TASK_RANK",
	 .size = "FLUX_JOB_SIZE",
	 .rank = "FLUX_TASK_RANK",
	 .nodes = "FLUX_JOB_NNODES",
	 .name = "flux run",
	 .pmi = true,
	 .job = {"FLUX_JOB_ID", "FLUX_URI"},
	 .manages = true},
	{.mark = "PMI_SIZE",
	 .size = "PMI_SIZE",
	 .rank = "PMI_RANK",
	 .local = "MPI_LOCALNRANKS",
	 .name = "mpiexec (MPICH)",
	 .library = "mpich",
	 .pmi = true,
	 .manages = true},
	{.mark = "PMI_PORT",
	 .rank = "PMI_ID",
	 .name = "mpiexec (MPICH, -pmi-port)",
	 .library = "mpich",
	 .pmi = true,
	 .manages = true},
	{.mark = "PMIX_RANK",
	 .size = "SLURM_STEP_NUM_TASKS",
	 .rank = "PMIX_RANK",
	 .nodes = "SLURM_STEP_NUM_NODES",
	 .name = "a PMIx launcher",
	 .job = {"PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID"},
	 .manages = true},
	{.mark = "SLURM_STEP_NUM_TASKS",
	 .size = "SLURM_STEP_NUM_TASKS",
	 .rank = "SLURM_PROCID",
	 .nodes = "SLURM_STEP_NUM_NODES",
	 .name = "srun",
	 .job = {"SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_STEP_ID"}},
	/* without an MPI: PyTorchJob, Volcano, DeepSpeed */
	{.mark = "RANK",
	 .or_mark = "WORLD_SIZE",
	 .size = "WORLD_SIZE",
	 .rank = "RANK",
	 .local = "LOCAL_WORLD_SIZE",
	 .name = "a launcher of PyTorch",
	 .job = {"MASTER_ADDR", "MASTER_PORT"},
	 .address = "MASTER_ADDR",
	 .port = "MASTER_PORT"},
	{.mark = "LWS_WORKER_INDEX",
	 .or_mark = "LWS_GROUP_SIZE",
	 .size = "LWS_GROUP_SIZE",
	 .rank = "LWS_WORKER_INDEX",
	 .name = "a LeaderWorkerSet",
	 .job = {"LWS_LEADER_ADDRESS"},
	 .address = "LWS_LEADER_ADDRESS"},
	{.mark = "JOB_COMPLETION_INDEX",
	 .size = "STOKER_PROCESSES",
	 .rank = "JOB_COMPLETION_INDEX",
	 .name = "an Indexed Job of Kubernetes",
	 .job = {"STOKER_ADDRESS"},
	 .address = "STOKER_ADDRESS"},
	{.mark = "HOROVOD_RANK",
	 .or_mark = "HOROVOD_SIZE",
	 .size = "HOROVOD_SIZE",
	 .rank = "HOROVOD_RANK",
	 .local = "HOROVOD_LOCAL_SIZE",
	 .name = "horovodrun"},
	/* without a number: an Indexed Job above has its own */
	{.mark = "STOKER_PROCESSES", BY_USER},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* For so many seconds the other processes are waited for: those of a large job on a slow file
 * system begin one after another. */
#define START_LIMIT_S 60
#define START_LIMIT_MAX_S 86400
/* Where STOKER_ADDRESS and others name a host alone. */
#define MEET_PORT 29484
#define PROCESSES_MAX 1000000

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
		if (getenv(rows[i].mark) || (rows[i].or_mark && getenv(rows[i].or_mark)))
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
	out->mark = getenv(r->mark) ? r->mark : r->or_mark;
	out->own = r == &rows[0];
	out->manages = r->manages;
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

static bool is_said(const char *variable)
{
	const char *v = getenv(variable);

	return v && *v;
}

static int bad_environment(const struct launcher *l, struct err *e, const char *variable,
			   const char *what)
{
	const char *v = getenv(variable);
	char is[64] = "not set";

	if (v)
		snprintf(is, sizeof(is), "'%.40s'", v);
	return err_set(e, -ECONNREFUSED,
		       "%s started this process (%s is set), but %s is %s: it is %s. Without a "
		       "launcher, unset %s",
		       l->name, l->mark, variable, is, what, l->mark);
}

/* Numbers that contradict each other or are missing, as after a wrapper that sets some of them:
 * without this, a library would be blamed for what it finds, or one run would become many. */
int launcher_check(const struct launcher *l, struct err *e)
{
	const struct row *r = find_row();
	const char *size = r && r->size ? getenv(r->size) : NULL,
		   *rank = r ? getenv(r->rank) : NULL;
	char what[96] = "the number of this process, from 0";

	if (!r)
		return 0;
	/* what manages processes can be asked */
	if (r->size && (size || !r->manages) && (l->processes < 1 || l->processes > PROCESSES_MAX))
		return bad_environment(l, e, r->size, "the number of processes, 1 to 1000000");
	if (size)
		snprintf(what, sizeof(what), "the number of this process, 0 to %lld",
			 (long long)l->processes - 1);
	if ((rank || !r->manages) && (l->process < 0 || (size && l->process >= l->processes)))
		return bad_environment(l, e, r->rank, what);
	if (l->processes != 1 && r->address && !is_said(r->address) && !l->where.one_host)
		return bad_environment(l, e, r->address,
				       r->port ? "the host of process 0"
					       : "HOST:PORT of process 0");
	if (l->processes != 1 && r->port && !l->where.one_host && number(r->port, 0) < 1)
		return bad_environment(l, e, r->port, "a port of process 0");
	return 0;
}

/* Where process 0 is to listen. */
static void find_address(struct launcher *l, const struct row *r)
{
	const char *host = r->address ? getenv(r->address) : NULL;
	/* torchrun's agent listens at the port itself */
	const char *taken = getenv("TORCHELASTIC_USE_AGENT_STORE");
	int64_t port =
		number(r->port, MEET_PORT) + (r->port && taken && strcmp(taken, "True") == 0);
	struct sha256 h;
	char digest[SHA256_HEX];
	bool whole = host && !r->port && strchr(host, ':') && host[strlen(host) - 1] != ']';

	if (!host)
		return;
	if (whole)
		snprintf(l->address, sizeof(l->address), "%s", host);
	else if (strchr(host, ':') && host[0] != '[')
		snprintf(l->address, sizeof(l->address), "[%s]:%lld", host, (long long)port);
	else
		snprintf(l->address, sizeof(l->address), "%s:%lld", host, (long long)port);
	l->job.address = l->address;
	sha256_begin(&h);
	sha256_add(&h, l->job_name, strlen(l->job_name));
	sha256_add(&h, &l->processes, sizeof(l->processes));
	sha256_end(&h, digest);
	memcpy(l->job.token, digest, sizeof(l->job.token));
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
	if (launcher_check(l, e) < 0)
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
	find_address(l, r);
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
	} else if (l->job.address && l->job.name) {
		l->way = &meet_at_address;
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
