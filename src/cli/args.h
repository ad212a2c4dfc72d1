#pragma once
/* The arguments that run, generate, verify and show config share: a workload, overrides in DLIO's
 * (Hydra's) form, and a few flags. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "workload/workload.h"

struct cli_args {
	const char *workload;  /* NULL: none was named */
	const char **override; /* borrowed from argv */
	size_t overrides;
	const char *config_dir;
	int64_t ranks;       /* -n; 1 by default. After job_begin: of all processes */
	int64_t per_process; /* --accelerators-per-process; 0: not given */
	bool ranks_given;
	bool strict, quiet, verbose, check, inspect, help, only_set, markdown, man;
	const char *cfg; /* --cfg job: print the composed configuration and leave */
	const char *progress, *progress_file, *progress_interval; /* NULL: not given */
	char *output;                                             /* -o: as output.folder; owned */
};

/* Flags may stand anywhere, and so may Hydra's spellings of them (--config-dir, -cd, --cfg). */
int cli_args_parse(struct cli_args *a, int argc, char **argv, struct err *e);
void cli_args_release(struct cli_args *a);
/* Loads the workload the arguments name, sets start time and prints its warnings unless quiet. */
int cli_load_workload(const struct cli_args *a, int64_t start_wall_ns, struct workload *w,
		      struct err *e);
/* What to call the workload: its name or its file's, borrowed. */
const char *cli_workload_name(const struct cli_args *a);
/* The default output folder is named by the second: gives it a number when it is taken, so that
 * runs which begin together keep apart. A folder that was named on the command line is left as it
 * is. */
void cli_settle_folder(struct workload *w);
/* What goes to the terminal: warnings, or with -v DLIO's log lines too, or with -q errors alone. */
void cli_set_console(const struct cli_args *a);
extern const char cli_args_help[];
