#pragma once
/* Whether something started this process as one of several. */
#include "base/err.h"

/* An error sentence when a launcher (mpirun, mpiexec, srun, PALS) started more than one process:
 * each would be a run of its own, writing over the others. */
int launcher_check(struct err *e);
