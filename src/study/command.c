/* The commands of a study as vectors: nothing of the design is ever read by a shell. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/say.h"
#include "base/shell.h"
#include "base/str.h"
#include "conf/override.h"
#include "study/command.h"

struct vector {
	char **v;
	size_t n;
};

static void vector_put(struct vector *a, char *text)
{
	a->v = xrealloc(a->v, (a->n + 2) * sizeof(*a->v));
	a->v[a->n++] = text;
	a->v[a->n] = NULL;
}

static void vector_put_copy(struct vector *a, const char *text)
{
	vector_put(a, xstrdup(text));
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

static void put_modules(struct vector *a, const struct study_options *o)
{
	if (o->modules.n == 0)
		return;
	vector_put_copy(a, "bash");
	vector_put_copy(a, "-c");
	vector_put_copy(a, load_modules);
	vector_put_copy(a, "stoker-modules");
	vector_put(a, xasprintf("%zu", o->modules.n));
	for (size_t i = 0; i < o->modules.n; i++)
		vector_put_copy(a, o->modules.v[i]);
}

static void put_launcher(struct vector *a, const struct study_options *o, int64_t processes)
{
	if (o->launcher == LAUNCH_LOCAL)
		return;
	vector_put_copy(a, study_launcher_names[o->launcher]);
	vector_put_copy(a, o->launcher == LAUNCH_MPIRUN ? "-np" : "-n");
	vector_put(a, xasprintf("%lld", (long long)processes));
	for (size_t i = 0; i < o->launcher_args.n; i++)
		vector_put_copy(a, o->launcher_args.v[i]);
}

static void put_folder(struct vector *a, const char *key, const char *folder, const char *below)
{
	AUTO_FREE char *path = xasprintf("%s%s", folder, below);
	AUTO_FREE char *quoted = override_quote(path);

	vector_put(a, xasprintf("++workload.%s=%s", key, quoted));
}

static void put_workload(struct vector *a, const struct study_plan *p, const struct experiment *x,
			 int64_t processes)
{
	const struct study_options *o = p->options;

	vector_put_copy(a, x->model);
	if (o->launcher == LAUNCH_LOCAL) {
		vector_put_copy(a, "-n");
		vector_put(a, xasprintf("%lld", (long long)processes));
	}
	if (o->config_dir) {
		vector_put_copy(a, "--config-dir");
		vector_put_copy(a, o->config_dir);
	}
	for (size_t i = 0; i < x->overrides.n; i++)
		vector_put_copy(a, x->overrides.v[i]);
	if (x->dataset != SIZE_MAX) {
		put_folder(a, "dataset.data_folder", p->dataset[x->dataset].folder, "");
	}
}

char **study_generate_argv(const struct study_plan *p, const struct study_dataset *d)
{
	const struct experiment *x = &p->experiment[d->experiment];
	struct vector a = {0};

	put_modules(&a, p->options);
	put_launcher(&a, p->options, d->processes);
	vector_put_copy(&a, p->options->program);
	vector_put_copy(&a, "generate");
	put_workload(&a, p, x, d->processes);
	return a.v;
}

char **study_run_argv(const struct study_plan *p, const struct experiment *x, const char *folder)
{
	struct vector a = {0};

	put_modules(&a, p->options);
	put_launcher(&a, p->options, x->processes);
	vector_put_copy(&a, p->options->program);
	vector_put_copy(&a, "run");
	put_workload(&a, p, x, x->processes);
	vector_put(&a, xasprintf("++workload.workflow.generate_data=%s",
				 x->generates ? "True" : "False"));
	/* the next run may need it, and the study removes it */
	vector_put_copy(&a, "++workload.dataset.keep_files=True");
	if (x->checkpoints && !x->own_folder)
		put_folder(&a, "checkpoint.checkpoint_folder", p->options->scratch, "/checkpoints");
	vector_put_copy(&a, "-o");
	vector_put_copy(&a, folder);
	return a.v;
}

char **study_trial_argv(const struct study_plan *p, const struct experiment *x)
{
	struct vector a = {0};

	if (p->options->launcher == LAUNCH_LOCAL && p->options->modules.n == 0)
		return NULL;
	put_modules(&a, p->options);
	put_launcher(&a, p->options, x->processes);
	vector_put_copy(&a, p->options->program);
	vector_put_copy(&a, "--version");
	return a.v;
}

void study_argv_free(char **argv)
{
	for (char **p = argv; p && *p; p++)
		free(*p);
	free(argv);
}

void study_argv_text(char *const *argv, struct buf *out)
{
	for (char *const *p = argv; *p; p++) {
		if (p != argv)
			buf_putc(out, ' ');
		shell_put_word(out, *p);
	}
}

static void dataset_text(const struct study_plan *p, const struct study_dataset *d, struct buf *out)
{
	char **argv;
	char bytes[32];

	buf_say(out, "\n%s: %llu file%s, %s, %s%s\n", d->model, (unsigned long long)d->files,
		d->files == 1 ? "" : "s", str_bytes((double)d->bytes, bytes, sizeof(bytes)),
		d->there ? "as they are in " : "in ", d->folder);
	if (d->there)
		return;
	argv = study_generate_argv(p, d);
	buf_puts(out, "  ");
	study_argv_text(argv, out);
	buf_putc(out, '\n');
	study_argv_free(argv);
}

void study_plan_text(const struct study_plan *p, struct buf *out)
{
	size_t last = SIZE_MAX, runs = 0, bad = 0;
	double seconds = 0;
	char took[32];

	for (size_t i = 0; i < p->experiments; i++) {
		const struct experiment *x = &p->experiment[i];
		char **argv;

		if (!study_is_pending(p, x))
			continue;
		if (x->why.code) {
			bad += x->repeat == 1;
			continue;
		}
		if (x->dataset != last && x->dataset != SIZE_MAX)
			dataset_text(p, &p->dataset[x->dataset], out);
		last = x->dataset;
		argv = study_run_argv(p, x, x->folder);
		buf_say(out, "  # line %zu: %s/%s, run %u, at least %s\n  ",
			p->design.row[x->row].line, x->model_folder, x->name, x->repeat,
			str_seconds(x->compute_s, took, sizeof(took)));
		study_argv_text(argv, out);
		buf_putc(out, '\n');
		study_argv_free(argv);
		runs++;
		seconds += x->compute_s;
	}
	if (runs == 0 && bad == 0) {
		buf_puts(out, "nothing to run: every row is done (Y) or failed (F); --retry runs "
			      "failed rows again\n");
		return;
	}
	buf_say(out, "\n%zu run%s", runs, runs == 1 ? "" : "s");
	if (bad)
		buf_say(out, "; %zu row%s cannot run", bad, bad == 1 ? "" : "s");
	buf_say(out,
		"\ntime: at least %s, the emulated computation alone; reading, generating and "
		"checkpoints add to it\n",
		str_seconds(seconds, took, sizeof(took)));
}
