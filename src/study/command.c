/* A study's commands, which run without a shell, and its batch script. */
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/say.h"
#include "base/str.h"
#include "conf/override.h"
#include "study/study.h"

static void put(struct str_list *a, const char *word)
{
	str_list_add(a, xstrdup(word));
}

/* "module" is a function of the shell, so a shell loads the modules and becomes the command. Its
 * text is this constant; names and command are its arguments. */
static const char load_modules[] = "command -v module >/dev/null 2>&1 || . /etc/profile\n"
				   "n=$1; shift\n"
				   "while [ \"$n\" -gt 0 ]; do\n"
				   "  module load \"$1\" || exit 126\n"
				   "  shift; n=$((n - 1))\n"
				   "done\n"
				   "exec \"$@\"\n";

static void put_modules(struct str_list *a, const struct study_options *o)
{
	if (o->modules.n == 0)
		return;
	put(a, "bash");
	put(a, "-c");
	put(a, load_modules);
	put(a, "stoker-modules");
	str_list_add(a, xasprintf("%zu", o->modules.n));
	str_list_copy(a, &o->modules);
}

static void put_launcher(struct str_list *a, const struct study_options *o, int64_t processes)
{
	if (o->launcher == LAUNCH_LOCAL)
		return;
	put(a, study_launcher_names[o->launcher]);
	put(a, o->launcher == LAUNCH_MPIRUN ? "-np" : "-n");
	str_list_add(a, xasprintf("%lld", (long long)processes));
	str_list_copy(a, &o->launcher_args);
}

static void put_workload(struct str_list *a, const struct study_plan *p, const struct experiment *x,
			 int64_t processes)
{
	const struct study_options *o = p->options;

	put(a, x->model);
	if (o->launcher == LAUNCH_LOCAL) {
		put(a, "-n");
		str_list_add(a, xasprintf("%lld", (long long)processes));
	}
	if (o->config_dir) {
		put(a, "--config-dir");
		put(a, o->config_dir);
	}
	str_list_copy(a, &x->overrides);
	if (x->dataset != SIZE_MAX)
		override_put_text(a, "dataset.data_folder", p->dataset[x->dataset].folder);
}

void study_generate_command(const struct study_plan *p, const struct study_dataset *d,
			    struct str_list *out)
{
	const struct experiment *x = &p->experiment[d->experiment];

	put_modules(out, p->options);
	put_launcher(out, p->options, d->processes);
	put(out, p->options->program);
	put(out, "generate");
	put_workload(out, p, x, d->processes);
}

void study_run_command(const struct study_plan *p, const struct experiment *x, struct str_list *out)
{
	AUTO_FREE char *checkpoints = path_join(p->options->scratch, "checkpoints");

	put_modules(out, p->options);
	put_launcher(out, p->options, x->processes);
	put(out, p->options->program);
	put(out, "run");
	put_workload(out, p, x, x->processes);
	override_put(out, "workflow.generate_data", x->generates ? "True" : "False");
	/* the next run may need it, and the study removes it */
	override_put(out, "dataset.keep_files", "True");
	if (x->checkpoints && !x->own_folder)
		override_put_text(out, "checkpoint.checkpoint_folder", checkpoints);
}

void study_trial_command(const struct study_plan *p, const struct experiment *x,
			 struct str_list *out)
{
	if (p->options->launcher == LAUNCH_LOCAL && p->options->modules.n == 0)
		return;
	put_modules(out, p->options);
	put_launcher(out, p->options, x->processes);
	put(out, p->options->program);
	put(out, "--version");
}

/* As a shell would need it typed, for people. */
static void put_typed(const struct str_list *command, struct buf *out)
{
	for (size_t i = 0; i < command->n; i++) {
		buf_puts(out, i ? " " : "  ");
		shell_put_word(out, command->v[i]);
	}
	buf_putc(out, '\n');
}

static void dataset_text(const struct study_plan *p, const struct study_dataset *d, struct buf *out)
{
	struct str_list command = {0};
	char bytes[32];

	buf_say(out, "\n%s: %llu file%s, %s, %s%s\n", d->model, (unsigned long long)d->files,
		d->files == 1 ? "" : "s", str_bytes((double)d->bytes, bytes, sizeof(bytes)),
		d->there ? "as they are in " : "in ", d->folder);
	if (d->there)
		return;
	study_generate_command(p, d, &command);
	put_typed(&command, out);
	str_list_release(&command);
}

void study_plan_text(const struct study_plan *p, struct buf *out, struct buf *commands)
{
	size_t last = SIZE_MAX, runs = 0, bad = 0;
	double seconds = 0;
	char took[32];

	for (size_t i = 0; i < p->experiments; i++) {
		const struct experiment *x = &p->experiment[i];
		struct str_list command = {0};

		if (!study_is_pending(p, x))
			continue;
		if (x->why.code) {
			bad += x->repeat == 1;
			continue;
		}
		if (x->dataset != last && x->dataset != SIZE_MAX)
			dataset_text(p, &p->dataset[x->dataset], commands);
		last = x->dataset;
		study_run_command(p, x, &command);
		put(&command, "-o");
		put(&command, x->folder);
		buf_say(commands, "  # line %zu: %s/%s, run %u, at least %s\n",
			p->design.row[x->row].line, x->model_folder, x->name, x->repeat,
			str_seconds(x->compute_s, took, sizeof(took)));
		put_typed(&command, commands);
		str_list_release(&command);
		runs++;
		seconds += x->compute_s;
	}
	if (runs == 0 && bad == 0) {
		buf_puts(out, "nothing to run: every row is done (Y) or failed (F); --retry runs "
			      "failed rows again\n");
		return;
	}
	buf_say(out, "%zu run%s", runs, runs == 1 ? "" : "s");
	if (bad)
		buf_say(out, "; %zu row%s cannot run", bad, bad == 1 ? "" : "s");
	buf_say(out,
		"\ntime: at least %s, the emulated computation alone; reading, generating and "
		"checkpoints add to it\n",
		str_seconds(seconds, took, sizeof(took)));
}

/* ---- the batch script ---- */

static int directive(struct buf *out, const char *name, const char *value, struct err *e)
{
	if (!value)
		return 0;
	if (!value[0] || strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "0123456789_-.,:+@()/=*") != strlen(value))
		return err_set(e, ERR_USAGE,
			       "--%s: '%s' contains characters that are not allowed there", name,
			       value);
	buf_printf(out, "#SBATCH --%s=%s\n", name, value);
	return 0;
}

/* A line of the user's: an option of sbatch, and no second line. */
static int free_line(struct buf *out, const char *line, struct err *e)
{
	const char *at = line;

	while (*at && (unsigned char)*at >= ' ' && *at != 0x7f)
		at++;
	if (line[0] != '-' || !line[1] || *at)
		return err_set(e, ERR_USAGE,
			       "--sbatch: '%s' is not an option of sbatch on one line, such as "
			       "--constraint=gpu",
			       line);
	buf_printf(out, "#SBATCH %s\n", line);
	return 0;
}

static void put_word(struct buf *out, const char *word)
{
	buf_putc(out, ' ');
	shell_put_word(out, word);
}

static void put_option(struct buf *out, const char *name, const char *value)
{
	put_word(out, name);
	put_word(out, value);
}

static void put_script(const struct study_plan *p, struct buf *out)
{
	const struct study_options *o = p->options;
	AUTO_FREE char *design = path_absolute(o->design);
	AUTO_FREE char *results = path_absolute(o->results);
	AUTO_FREE char *scratch = path_absolute(o->scratch);
	AUTO_FREE char *config = o->config_dir ? path_absolute(o->config_dir) : NULL;

	buf_puts(out, "exec");
	put_word(out, o->program);
	buf_puts(out, " study run");
	put_word(out, design);
	put_option(out, "--results", results);
	put_option(out, "--scratch", scratch);
	if (config)
		put_option(out, "--config-dir", config);
	buf_puts(out, " --launcher srun");
	for (size_t i = 0; i < o->launcher_args.n; i++)
		put_option(out, "--launcher-arg", o->launcher_args.v[i]);
	for (size_t i = 0; i < o->modules.n; i++)
		put_option(out, "--module", o->modules.v[i]);
	for (size_t i = 0; i < o->scales.n; i++)
		put_option(out, "--scale", o->scales.v[i]);
	if (o->repeat > 1)
		buf_printf(out, " --repeat %lld", (long long)o->repeat);
	if (o->shuffle)
		buf_printf(out, " --shuffle-order=%llu", (unsigned long long)o->shuffle_seed);
	if (o->warm)
		buf_puts(out, " --warm");
	if (o->small)
		buf_puts(out, " --small");
	if (o->keep_data)
		buf_puts(out, " --keep-data");
	if (o->retry)
		buf_puts(out, " --retry");
	for (size_t i = 0; i < o->overrides.n; i++)
		put_word(out, o->overrides.v[i]);
	buf_putc(out, '\n');
}

int study_sbatch(const struct study_plan *p, const struct sbatch_options *o, struct buf *out,
		 struct err *e)
{
	int64_t tasks = o->tasks;
	int rc;

	for (size_t i = 0; o->tasks == 0 && i < p->design.rows; i++)
		if (p->design.row[i].processes > tasks)
			tasks = p->design.row[i].processes;
	buf_puts(out, "#!/bin/bash\n#SBATCH --job-name=stoker-study\n");
	rc = directive(out, "partition", o->partition, e);
	if (rc == 0)
		rc = directive(out, "account", o->account, e);
	if (rc == 0)
		rc = directive(out, "time", o->time, e);
	if (rc == 0)
		rc = directive(out, "gres", o->gres, e);
	if (rc == 0 && o->exclusive)
		buf_puts(out, "#SBATCH --exclusive\n");
	for (size_t i = 0; rc == 0 && i < o->lines.n; i++)
		rc = free_line(out, o->lines.v[i], e);
	if (rc < 0)
		return rc;
	buf_printf(out, "#SBATCH --nodes=%lld\n#SBATCH --ntasks=%lld\n", (long long)o->nodes,
		   (long long)tasks);
	/* the signal leaves time to end the run and to clean the scratch folder */
	buf_puts(out, "#SBATCH --signal=B:TERM@60\n"
		      "#SBATCH --output=stoker-study-%j.log\n"
		      "set -u\n");
	put_script(p, out);
	return 0;
}
