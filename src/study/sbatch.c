/* Writing the batch script. */
#include "study/sbatch.h"
#include "study/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

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
	char *const argv[] = {(char *)(uintptr_t)word, NULL};

	buf_putc(out, ' ');
	study_argv_text(argv, out);
}

static void put_option(struct buf *out, const char *name, const char *value)
{
	put_word(out, name);
	put_word(out, value);
}

static void put_command(const struct study_plan *p, struct buf *out)
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
	put_command(p, out);
	return 0;
}
