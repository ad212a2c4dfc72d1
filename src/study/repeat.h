#pragma once
/* Repetitions of one run (stoker run --repeat), and what they say together. */
#include "base/buf.h"
#include "judge/gate.h"
#include "readback/sums.h"

struct repeated {
	const char *name;     /* of the workload */
	char *folder;         /* results are in its folders 1, 2, ... */
	int64_t asked, ranks; /* runs; accelerators */
	double target;        /* percent; 0: none */
	struct gate_limits want;
	bool cold;                /* by default */
	struct gate_run *run;     /* of `asked` */
	struct run_name *name_of; /* of each run; NULL: they are read from their folders */
	size_t done;
};

void repeated_text(const struct repeated *x, struct buf *out);
/* "FOLDER/repeat.json": the same, for programs. `why`: of the gate, whether it `passed`; NULL:
 * nothing was asked of it. */
int repeated_write(const struct repeated *x, bool passed, const char *why, struct err *e);
