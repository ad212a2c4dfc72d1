#pragma once
/* A plan's row from runs of this program: the loader's own code in virtual time over what the run
 * measured of its storage (predict/fleet.h). */
#include "capacity/sizing.h"
#include "result/basis.h"

struct sizing_run {
	const struct point *point; /* borrowed */
	struct basis basis;
};

struct sizing_runs {
	struct sizing_run *run; /* borrowed */
	size_t runs;
	const struct duty *plan;
	bool grows;
	struct str_list *notes; /* gets why a run was not used, once */
};

/* The `simulate` of a question; `arg` is a struct sizing_runs. By the run with most accelerators of
 * those with no more than the row's; the mean of up to 8 where it was repeated. */
int sizing_by_run(void *arg, struct sizing_row *row, struct err *e);
