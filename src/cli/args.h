#pragma once
/* The arguments that run, generate, verify and show config share: a workload, overrides in DLIO's
 * (Hydra's) form, and flags. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "cli/flags.h"
#include "screen/progress.h"
#include "workload/workload.h"

#define REPEAT_MAX 1000 /* of --repeat */

struct cli_args {
	const char *workload;     /* NULL: none was named */
	struct str_list override; /* that of -o is the last */
	const char *config_dir;
	int64_t ranks;        /* -n; 1 by default. After job_begin: of all processes */
	int64_t per_process;  /* --accelerators-per-process; 0: not given */
	int64_t repeat;       /* --repeat; 0: not given */
	double samples_per_s; /* --min-samples-per-s; 0: not given */
	bool ranks_given;
	bool strict, quiet, verbose, check, inspect, truth_table, small, json;
	/* The command takes several workloads: "NAME:N" and "NAME:?" are in `part`,
	 * "NAME:key=value" in `override`, and --data is left to it. */
	bool several;
	struct str_list part;
	bool must_name; /* the command needs a workload; DLIO's takes "default" */
	int cfg;        /* 0: --cfg job, print the composed configuration and exit; -1: not given */
	int progress;   /* enum progress_form */
	const char *progress_file, *progress_interval, *folder; /* NULL: not given */
	const char *title;        /* what progress calls the run; NULL: its workload */
	const char *hosts, *ssh;  /* --hosts, --ssh; NULL: not given */
	struct str_list ssh_args; /* --ssh-arg */
	bool copy_binary;
	const char *data;          /* --data; NULL: not given */
	struct str_list data_keys; /* what the folder says, as overrides; they are in `override` */
};

/* Rows of commands whose arguments begin with a struct cli_args. */
extern const struct flag operand_workload, operand_key;
extern const struct flag flag_ranks, flag_per_process, flag_output, flag_config_dir, flag_strict,
	flag_check, flag_verbose, flag_quiet, flag_progress, flag_progress_file,
	flag_progress_interval, flag_cfg, flag_truth_table, flag_small, flag_repeat,
	flag_samples_per_s, flag_data, flag_print_json, flag_hosts, flag_ssh, flag_ssh_arg,
	flag_copy_binary;

/* `a` may be the first member of a command's own arguments, which are all zeros otherwise. 1: the
 * help was printed. Release in any case. */
int cli_args_parse(const struct command *c, struct cli_args *a, int argc, char **argv,
		   struct err *e);
void cli_args_release(struct cli_args *a);
/* --small: adds the overrides that shrink the run on a->ranks accelerators; `speaks`: and says so.
 * `keeps_data` as small_run has it. */
void cli_args_shrink(struct cli_args *a, bool speaks, bool keeps_data);
/* Loads the workload the arguments name, sets start time and prints its warnings unless quiet. */
int cli_load_workload(const struct cli_args *a, int64_t start_wall_ns, struct workload *w,
		      struct err *e);
/* What to call the workload: its title, its name or its file's, borrowed. */
const char *cli_workload_name(const struct cli_args *a);
/* The default output folder is named by the second: gives it a number when it is taken, so that
 * runs which begin together keep apart. A folder that was named on the command line is left as it
 * is. */
void cli_settle_folder(struct workload *w);
/* Before the command ends: removes that folder, and those above it that were made for it, where
 * nothing was written into it. */
void cli_unsettle_folder(void);
/* What was asked for of the progress; borrows from `a`. */
struct progress_request cli_progress(const struct cli_args *a);
/* What goes to the terminal: warnings, or with -v DLIO's log lines too, or with -q errors alone. */
void cli_set_console(const struct cli_args *a);
