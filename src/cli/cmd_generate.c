/* stoker generate: the dataset of a workload, and nothing else. */
#include <math.h>
#include <stdio.h>

#include "base/say.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/job.h"
#include "result/json_out.h"

static struct stop_flag stop;

/* "22.6 KB": powers of 1000, as the keys of sizes are given. */
static const char *decimal(double bytes, char *out, size_t size)
{
	static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
	size_t i = 0;

	for (; bytes >= 999.5 && i < sizeof(units) / sizeof(units[0]) - 1; i++)
		bytes /= 1000;
	snprintf(out, size, i == 0 || bytes >= 99.95 ? "%.0f %s" : "%.1f %s", bytes, units[i]);
	return out;
}

/* What files became, beside what was asked for. */
static void print_mean(const struct result *r)
{
	const struct workload *w = r->workload;
	double mean = r->generation.mean_file_bytes, sample;
	char made[32], text[32];
	bool image, other;

	if (!(mean > 0))
		return;
	sample = dataset_mean_sample_bytes(
		r->dataset, r->dataset->files[DATASET_TRAIN] ? DATASET_TRAIN : DATASET_EVAL);
	image = r->dataset->format->is.flags & FORMAT_IMAGE;
	say(stdout, "mean file %s", decimal(mean, made, sizeof(made)));
	if (w->dataset.file_bytes > 0) {
		say(stdout,
		    "; files of %s were asked for (dataset.file_bytes), %.0f bytes each "
		    "decoded\n",
		    decimal(w->dataset.file_bytes, text, sizeof(text)),
		    sample * (image ? 1 : (double)r->dataset->samples_per_file));
		return;
	}
	if (!image && r->dataset->samples_per_file > 1)
		say(stdout, " of %llu samples", (unsigned long long)r->dataset->samples_per_file);
	other = fabs(mean / (sample * (image ? 1 : (double)r->dataset->samples_per_file)) - 1) >
		0.1;
	say(stdout, "; samples of %.0f bytes were asked for%s\n", sample,
	    other ? ", decoded (dataset.file_bytes sets the size of files)" : "");
}

static void print_outcome(const struct result *r)
{
	double s = (double)r->generation.wall_ns / 1e9;
	char bytes[32], rate[32], took[32];

	say(stdout, "%llu files written (%s, %s/s), %llu already existed, in %s: '%s'\n",
	    (unsigned long long)r->generation.files,
	    str_bytes((double)r->generation.bytes, bytes, sizeof(bytes)),
	    str_bytes(s > 0 ? (double)r->generation.bytes / s : 0, rate, sizeof(rate)),
	    (unsigned long long)r->generation.skipped, str_seconds(s, took, sizeof(took)),
	    r->dataset->folder);
	print_mean(r);
}

static void put_outcome(const struct result *r)
{
	json_t *o = json_object();

	json_put_text(o, "schema", "stoker-generate/1");
	json_put_text(o, "folder", r->dataset->folder);
	json_put_int(o, "files_written", r->generation.files);
	json_put_int(o, "bytes_written", r->generation.bytes);
	json_put_int(o, "files_that_existed", r->generation.skipped);
	if (r->generation.mean_file_bytes > 0)
		json_put_real(o, "mean_file_bytes", r->generation.mean_file_bytes);
	json_put_int(o, "samples_per_file", r->dataset->samples_per_file);
	json_put_real(o, "seconds", (double)r->generation.wall_ns / 1e9);
	cli_put_json(o);
}

static int generate(const struct cli_args *a, struct job *j, struct err *e)
{
	struct workload w = {0};
	struct dataset d = {0};
	struct result r = {0};
	struct run_options o = {.dataset_only = true};
	int rc = job_load(j, a, &w, e);

	if (a->json)
		cli_only_json();
	if (rc == 0)
		rc = job_execute(j, a, &w, &o, &d, &r, e);
	if (rc == 0 && j->speaks)
		(a->json ? put_outcome : print_outcome)(&r);
	if (r.stuck)
		cli_leave(rc < 0 ? job_fail(j, e) : 0);
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
					   &flag_data,
					   &flag_ranks,
					   &flag_per_process,
					   &flag_config_dir,
					   &flag_strict,
					   &flag_verbose,
					   &flag_print_json,
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
	.generates = true,
	.carry_out = generate_main,
};
