/* What launchers leave in the environment. */
#include "cli/launcher.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static int64_t number(const char *variable, int64_t otherwise)
{
	const char *v = getenv(variable);
	int64_t n;

	return v && str_to_i64(v, &n) && n >= 0 ? n : otherwise;
}

/* The first row whose mark is set counts: an outer launcher's variables may be inherited, as those
 * of srun by the daemons of mpirun. */
static const struct {
	const char *mark, *size, *rank, *local, *name, *library;
} rows[] = {
	{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
	 "OMPI_COMM_WORLD_LOCAL_SIZE", "mpirun (Open MPI)", "openmpi"},
	{"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK",
	 "MV2_COMM_WORLD_LOCAL_SIZE", "mpirun (MVAPICH)", "mpich"},
	{"PALS_RANKID", "PMI_SIZE", "PALS_RANKID", "PALS_LOCAL_SIZE", "mpiexec (PALS)", "mpich"},
	{"PMI_SIZE", "PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "mpiexec (MPICH)", "mpich"},
	{"PMIX_RANK", "SLURM_STEP_NUM_TASKS", "PMIX_RANK", NULL, "a PMIx launcher", "openmpi"},
	{"SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", NULL, "srun", NULL},
};

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

static void find_where(struct net_where *out, int64_t processes, const char *local)
{
	int64_t here = local ? number(local, 0) : 0;

	for (size_t i = 0; !out->interfaces && i < sizeof(interfaces) / sizeof(interfaces[0]);
	     i++) {
		const char *v = getenv(interfaces[i]);

		out->interfaces = v && *v ? v : NULL;
	}
	out->one_host = processes > 0 && (here == processes ||
					  (here == 0 && number("SLURM_STEP_NUM_NODES", 0) == 1));
}

void launcher_find(struct launcher *out)
{
	const char *forced = getenv("STOKER_MPI");

	*out = (struct launcher){.process = -1};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!getenv(rows[i].mark))
			continue;
		out->name = rows[i].name;
		out->mark = rows[i].mark;
		out->library = rows[i].library;
		out->processes = number(rows[i].size, 0);
		out->process = number(rows[i].rank, -1);
		find_where(&out->where, out->processes, rows[i].local);
		break;
	}
	if (out->name && out->library && getenv("SLURM_STEP_NUM_TASKS") &&
	    !getenv("HYDRA_LAUNCHER") && !getenv("OMPI_COMM_WORLD_SIZE") && getenv("SLURM_PROCID"))
		out->name = getenv("PMIX_RANK") ? "srun --mpi=pmix" : "srun --mpi=pmi2";
	if (out->name && forced && *forced)
		out->library = forced;
}

bool launcher_leads(void)
{
	struct launcher l;

	launcher_find(&l);
	return l.process <= 0;
}
