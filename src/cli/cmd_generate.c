/* stoker generate: the dataset of a workload, and nothing else. */
#include <stdio.h>

#include "base/str.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/job.h"

static struct stop_flag stop;

static void print_outcome(const struct result *r)
{
	double s = (double)r->generation.wall_ns / 1e9;
	char bytes[32], rate[32], took[32];

	printf("%llu files written (%s, %s/s), %llu already existed, in %s: '%s'\n",
	       (unsigned long long)r->generation.files,
	       str_bytes((double)r->generation.bytes, bytes, sizeof(bytes)),
	       str_bytes(s > 0 ? (double)r->generation.bytes / s : 0, rate, sizeof(rate)),
	       (unsigned long long)r->generation.skipped, str_seconds(s, took, sizeof(took)),
	       r->dataset->folder);
}

static int generate(const struct cli_args *a, struct job *j, struct err *e)
{
	struct workload w = {0};
	struct dataset d = {0};
	struct result r = {0};
	struct run_options o = {.dataset_only = true};
	int rc = job_load(j, a, &w, e);

	if (rc == 0)
		rc = job_execute(j, a, &w, &o, &d, &r, e);
	if (rc == 0 && j->speaks)
		print_outcome(&r);
	result_release(&r);
	dataset_release(&d);
	workload_release(&w);
	return rc < 0 ? job_fail(j, e) : 0;
}

static int generate_main(const struct command *c, int argc, char **argv)
{
	return job_main(c, argc, argv, &stop, generate);
}

static const struct flag *const flags[] = {&operand_workload,
					   &operand_key,
					   &flag_ranks,
					   &flag_per_process,
					   &flag_config_dir,
					   &flag_strict,
					   &flag_verbose,
					   &flag_quiet,
					   &flag_progress,
					   &flag_progress_file,
					   &flag_progress_interval,
					   NULL};

const struct command command_generate = {
	.name = "generate",
	.operands = "WORKLOAD [key=value ...]",
	.help = "Write the dataset of a workload; an interrupted one is completed.",
	.flags = flags,
	.examples = {"stoker generate cosmoflow_h100 dataset.num_files_train=64",
		     "stoker generate default dataset.format=jpeg dataset.record_length_bytes=40KB "
		     "dataset.data_folder=data/jpeg"},
	.carry_out = generate_main,
};
