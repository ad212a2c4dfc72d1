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
	const char *mark, *size, *rank, *name, *library;
} rows[] = {
	{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
	 "mpirun (Open MPI)", "openmpi"},
	{"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "mpirun (MVAPICH)",
	 "mpich"},
	{"PALS_RANKID", "PMI_SIZE", "PALS_RANKID", "mpiexec (PALS)", "mpich"},
	{"PMI_SIZE", "PMI_SIZE", "PMI_RANK", "mpiexec (MPICH)", "mpich"},
	{"PMIX_RANK", "SLURM_STEP_NUM_TASKS", "PMIX_RANK", "a PMIx launcher", "openmpi"},
	{"SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun", NULL},
};

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
