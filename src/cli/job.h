#pragma once
/* The processes that carry out one command together: one, or as many as a launcher started. */
#include <stdbool.h>

#include "cli/args.h"
#include "comm/comm.h"
#include "comm/net.h"
#include "run/run.h"

struct job {
	struct net *net;       /* NULL: this process is alone */
	struct fabric *fabric; /* the launcher's MPI library, where it is kept; or NULL */
	struct comm comm;      /* of the processes; unused when alone */
	struct comm_group *group;
	bool speaks;           /* this process tells people what happens */
	int64_t begin_wall_ns; /* the same in all */
	struct stop_flag *stop;
	bool signals; /* they are waited for */
};

/* Finds the other processes and settles the number of ranks (a->ranks becomes that of all). May go
 * on in a child of this process: call before any thread is started. 1: another process did all the
 * work; leave with *status. */
int job_begin(struct job *j, struct cli_args *a, struct stop_flag *stop, int *status,
	      struct err *e);
/* Whether this process does what one does for all: process 0, or the only one. */
bool job_leads(const struct job *j);
/* Whether all processes got this far (comm_agree); alone: rc itself. */
int job_agree(struct job *j, int rc, struct err *e);
/* Sets what goes to the terminal, and loads the workload in all processes. */
int job_load(struct job *j, const struct cli_args *a, struct workload *w, struct err *e);
/* All must have loaded the same. With `folder`, process 0 settles the output folder for all. */
int job_settle(struct job *j, struct workload *w, bool folder, struct err *e);
/* Settles and runs it, with signals and progress. Of `o` the caller fills in what is special to the
 * command. May be called again, for another run, after net_next_run. */
int job_execute(struct job *j, const struct cli_args *a, struct workload *w, struct run_options *o,
		struct dataset *d, struct result *r, struct err *e);
/* Prints the error unless another process does, and returns the exit status. */
int job_fail(const struct job *j, const struct err *e);
void job_end(struct job *j);

/* The carry_out of a command that all processes carry out: its arguments or its help, the other
 * processes, `work` (which prints its own errors and returns the exit status), the end. */
int job_main(const struct command *c, int argc, char **argv, struct stop_flag *stop,
	     int (*work)(const struct cli_args *a, struct job *j, struct err *e));
