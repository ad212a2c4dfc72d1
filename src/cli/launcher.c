#include "cli/launcher.h"

#include <stdlib.h>

#include "base/str.h"

static const struct {
	const char *variable, *launcher;
} sizes[] = {
	{"OMPI_COMM_WORLD_SIZE", "mpirun (Open MPI)"},
	{"PMI_SIZE", "mpiexec (MPICH)"},
	{"PALS_SIZE", "PALS mpiexec"},
	{"MV2_COMM_WORLD_SIZE", "mpirun (MVAPICH)"},
	{"SLURM_STEP_NUM_TASKS", "srun"},
};

int launcher_check(struct err *e)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const char *v = getenv(sizes[i].variable);
		int64_t n;

		if (v && str_to_i64(v, &n) && n > 1)
			return err_set(
				e, ERR_ABSENT,
				"%s started %lld processes, and ranks in several processes are not "
				"in this version: start one process with -n %lld instead",
				sizes[i].launcher, (long long)n, (long long)n);
	}
	return 0;
}
