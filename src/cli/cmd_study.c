/* stoker study: a whole experiment from its design. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/file_out.h"
#include "base/say.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/flags.h"
#include "launch/launcher.h"
#include "os/signals.h"
#include "screen/terminal.h"
#include "study/small.h"
#include "study/study.h"

extern const struct command command_report;

static struct stop_flag stop;

struct study_args {
	struct study_options o;
	struct sbatch_options sbatch;
	const char *svg, *output;
	int launcher; /* enum study_launcher */
	struct flag_seed shuffle;
	bool dry_run, quiet, verbose, json;
};

/* ---- arguments ---- */

/* "key=value", or "MODEL:key=value". */
static int take_override(struct str_list *list, const char *word, struct err *e)
{
	size_t n = strcspn(word, ":=");
	struct str_list one = {0};
	int rc = design_split_overrides(word[n] == ':' ? word + n + 1 : word, &one, e);

	if (rc == 0 && one.n == 1)
		str_list_add(list, xstrdup(word));
	else if (rc == 0)
		rc = err_set(e, ERR_USAGE, "'%s' is not a single override (key=value)", word);
	str_list_release(&one);
	return rc;
}

/* The design, or an override for all its runs. */
static int take_word(void *args, const char *word, struct err *e)
{
	struct study_args *a = args;

	if (strchr(word, '=') || word[0] == '~' || word[0] == '+')
		return take_override(&a->o.overrides, word, e);
	if (a->o.design)
		return err_set(e, ERR_USAGE,
			       "'%s' is neither an option nor an override (key=value), and the "
			       "design is already '%s'",
			       word, a->o.design);
	a->o.design = word;
	return 0;
}

static int take_design(void *args, const char *word, struct err *e)
{
	struct study_args *a = args;

	if (a->o.design)
		return err_set(e, ERR_USAGE, "'%s': the design is already '%s'", word, a->o.design);
	a->o.design = word;
	return 0;
}

/* 1: the help was printed. Release in any case. */
static int study_args_parse(const struct command *c, struct study_args *a, int argc, char **argv,
			    int (*operand)(void *args, const char *word, struct err *e),
			    struct err *e)
{
	int rc;

	*a = (struct study_args){.o = {.scratch = "scratch", .repeat = 1, .stop = &stop},
				 .sbatch = {.nodes = 1}};
	rc = flags_parse(c, a, argc, argv, operand, e);
	/* what is shrunk is kept apart from what is not */
	if (!a->o.results)
		a->o.results = a->o.small ? "results-small" : "results";
	a->o.launcher = (enum study_launcher)a->launcher;
	a->o.shuffle = a->shuffle.set;
	a->o.shuffle_seed = a->shuffle.value;
	if (rc == 0 && !a->o.design)
		rc = err_set(e, ERR_USAGE, "'%s' needs the CSV of a design", c->name);
	for (int i = 0; rc == 0 && i < 2; i++)
		if (strpbrk(i ? a->o.results : a->o.scratch, "\n"))
			rc = err_set(e, ERR_USAGE,
				     "%s: the name of the folder cannot contain a line break",
				     i ? "--results" : "--scratch");
	return rc;
}

static void study_args_release(struct study_args *a)
{
	str_list_release(&a->o.launcher_args);
	str_list_release(&a->o.modules);
	str_list_release(&a->o.overrides);
	str_list_release(&a->o.scales);
	str_list_release(&a->sbatch.lines);
}

/* ---- what is seen ---- */

struct view {
	bool quiet, terminal;
	struct terminal screen;
};

static void put_tick(struct view *v, const struct study_event *ev)
{
	const struct experiment *x = ev->experiment;
	char took[32];
	struct buf line = {0};

	buf_say(&line, "  %s/%s: %s", x->model_folder, x->name,
		str_seconds(ev->seconds, took, sizeof(took)));
	terminal_line(&v->screen, &line);
	buf_release(&line);
}

static const char *left_text(const struct study_event *ev, char *out, size_t out_size)
{
	char took[32];

	if (!isfinite(ev->left_s) || ev->left_s <= 0)
		return "";
	snprintf(out, out_size, ", about %s left", str_seconds(ev->left_s, took, sizeof(took)));
	return out;
}

static void show_event(void *arg, const struct study_event *ev)
{
	static const char *const words[] = {[STUDY_GENERATE] = "generating data",
					    [STUDY_RUN] = "running",
					    [STUDY_FOUND] = "already complete, skipped",
					    [STUDY_DONE] = "done",
					    [STUDY_FAILED] = "FAILED"};
	const struct experiment *x = ev->experiment;
	struct view *v = arg;
	char took[32], left[64];

	if (v->quiet && ev->kind != STUDY_FAILED)
		return;
	if (ev->kind == STUDY_TICK) {
		if (v->terminal)
			put_tick(v, ev);
		return;
	}
	terminal_line(&v->screen, NULL);
	say(stderr, "[%zu done, %zu failed, %zu pending] %s/%s", ev->done, ev->failed, ev->pending,
	    x->model_folder, x->name);
	if (x->repeat > 1)
		say(stderr, " run %u", x->repeat);
	say(stderr, ": %s", words[ev->kind]);
	if (ev->kind == STUDY_GENERATE && ev->dataset->bytes != UINT64_MAX)
		say(stderr, " (%s)", str_bytes((double)ev->dataset->bytes, took, sizeof(took)));
	if (ev->kind == STUDY_DONE || ev->kind == STUDY_FAILED)
		say(stderr, " in %s%s", str_seconds(ev->seconds, took, sizeof(took)),
		    left_text(ev, left, sizeof(left)));
	if (ev->kind == STUDY_FAILED)
		say(stderr, ": %s", ev->reason);
	say(stderr, "\n");
}

/* ---- the verbs ---- */

/* A study is one process that starts the others: those of a launcher would meet at its lock. One
 * process of a launcher's is as good as none: an interactive step of Slurm's looks like that. */
static int refuse_launcher(struct err *e)
{
	return launcher_refuse("study run",
			       "a study starts the processes of each run itself (--launcher "
			       "mpirun or srun)",
			       e);
}

/* What --small did. */
static void put_shrunk(const struct study_plan *p, struct buf *out)
{
	char data[32], saved[32];

	if (!p->options->small || !p->shrunk.data)
		return;
	buf_say(out,
		"Shrunk (full size in brackets), so that every row has the steps that steady "
		"needs, with at most %s of data, %s of\ncheckpoints and %d s of computation for "
		"each run. The states in the design stay as they are.\n",
		str_bytes(SMALL_DATASET_BYTES, data, sizeof(data)),
		str_bytes(SMALL_CHECKPOINT_BYTES, saved, sizeof(saved)), SMALL_COMPUTE_S);
	buf_puts(out, p->shrunk.data);
}

/* Whether --small would help. */
static bool is_short(const struct study_plan *p)
{
	for (size_t i = 0; i < p->experiments; i++) {
		const struct run_foresight *f = &p->experiment[i].foreseen;

		if (study_is_pending(p, &p->experiment[i]) && f->steps < f->needed)
			return true;
	}
	return false;
}

static bool has_problem(const struct forecast *f)
{
	for (size_t i = 0; i < f->items; i++)
		if (f->item[i].kind != FORECAST_NOTE)
			return true;
	return false;
}

static int dry_run(const struct study_plan *p, bool verbose)
{
	struct buf text = {0}, commands = {0};
	struct forecast f;
	char bytes[32];

	study_plan_text(p, &text, &commands);
	study_forecast(p, &f);
	if (f.pending) {
		if (f.generate_bytes > 0)
			buf_say(&text, "bytes: %s to generate",
				str_bytes(f.generate_bytes, bytes, sizeof(bytes)));
		if (f.generate_bytes > 0 && f.read_bytes > 0)
			buf_say(&text, ", about %s to read",
				str_bytes(f.read_bytes, bytes, sizeof(bytes)));
		if (f.generate_bytes > 0)
			buf_putc(&text, '\n');
		forecast_needs_text(&f, &text);
		put_shrunk(p, &text);
		forecast_text(&f, FORECAST_NOTE, 0, &text);
		if (is_short(p) && !p->options->small)
			buf_puts(&text, "--small shrinks the design so that every row has enough "
					"steps for steady.\n");
		if (!has_problem(&f))
			buf_puts(&text, "No problem found.\n");
		if (commands.len)
			buf_puts(&text, verbose ? "\ncommands:\n" : "-v prints the commands.\n");
	}
	say_text(stdout, &text);
	if (verbose)
		say_text(stdout, &commands);
	forecast_release(&f);
	buf_release(&commands);
	buf_release(&text);
	return 0;
}

#define WARNINGS_MOST 8

/* What will go wrong, before it does. */
static void warn_before(const struct study_plan *p)
{
	struct buf text = {0};
	struct forecast f;

	study_forecast(p, &f);
	put_shrunk(p, &text);
	forecast_text(&f, FORECAST_WARNING, WARNINGS_MOST, &text);
	say_text(stderr, &text);
	forecast_release(&f);
	buf_release(&text);
}

/* The command that makes a page and figures of the results. */
static void print_next(const char *results)
{
	struct buf word = {0};

	shell_put_word(&word, results);
	say(stdout, "page and figures: stoker report %s -o study.html --plots plots\n", word.data);
	buf_release(&word);
}

static int study_run_pending(struct study_plan *p, const struct study_args *a, struct err *e)
{
	struct view view = {.quiet = a->quiet, .terminal = terminal_can_draw(STDERR_FILENO)};
	size_t failed = 0;
	int rc = refuse_launcher(e);

	if (rc < 0)
		return rc;
	if (a->dry_run)
		return dry_run(p, a->verbose);
	rc = forecast_launcher(p->options, e);
	if (rc < 0)
		return rc;
	if (!a->quiet)
		warn_before(p);
	terminal_init(&view.screen, STDERR_FILENO);
	rc = signals_start(&(struct signal_work){.stop = &stop, .hurries = true}, e);
	if (rc == 0)
		rc = study_run(p, show_event, &view, &failed, e);
	terminal_line(&view.screen, NULL);
	if (rc == 0)
		say(stdout, "%zu row%s of the design, %zu failed; results in '%s'\n",
		    p->design.rows, p->design.rows == 1 ? "" : "s", failed, a->o.results);
	if (rc == 0 && failed < p->design.rows)
		print_next(a->o.results);
	if (rc == 0 && failed) {
		AUTO_FREE char *file = state_path(p);

		rc = err_set(e, -EIO,
			     "%zu of %zu rows failed; the reasons are in '%s'. Correct them, "
			     "then use --retry to run failed rows again",
			     failed, p->design.rows, file);
	}
	return rc;
}

static int study_print_status(struct study_plan *p, const struct study_args *a, struct err *e)
{
	struct row_status *s = xcalloc(p->experiments + 1, sizeof(*s));
	struct buf text = {0}, svg = {0};
	int rc = study_status(p, s, e);

	if (rc == 0) {
		study_matrix_text(p, s, terminal_has_colour(STDOUT_FILENO),
				  (int)terminal_width(STDOUT_FILENO), &text);
		say_text(stdout, &text);
	}
	if (rc == 0 && a->svg) {
		study_matrix_svg(p, s, &svg);
		rc = file_write(a->svg, svg.data, svg.len, e);
	}
	fflush(stdout);
	if (rc == 0)
		rc = study_check_done(p, s, e);
	buf_release(&text);
	buf_release(&svg);
	free(s);
	return rc;
}

static int study_write_script(struct study_plan *p, const struct study_args *a, struct err *e)
{
	struct buf text = {0};
	int rc = study_sbatch(p, &a->sbatch, &text, e);

	if (rc == 0 && a->output)
		rc = file_write(a->output, text.data, text.len, e);
	else if (rc == 0)
		say_text(stdout, &text);
	buf_release(&text);
	return rc;
}

/* ---- the commands ---- */

/* --json: how each run stands now. */
static int print_states(const struct study_plan *p, struct err *e)
{
	struct row_status *s = xcalloc(p->experiments + 1, sizeof(*s));
	int rc = study_status(p, s, e);

	if (rc == 0)
		cli_put_json(study_status_json(p, s));
	free(s);
	return rc;
}

/* The plan of what `argv` says, and what `work` makes of it. */
static int planned(const struct command *c, int argc, char **argv,
		   int (*work)(struct study_plan *p, const struct study_args *a, struct err *e))
{
	AUTO_FREE char *program = NULL;
	struct study_args a;
	struct study_plan p = {0};
	struct err e = {0};
	bool planned;
	int rc = study_args_parse(c, &a, argc, argv, take_word, &e);

	if (rc == 0) {
		a.o.program = program = path_of_program(&e);
		rc = program ? 0 : e.code;
	}
	a.o.memory = work == study_run_pending;
	if (rc == 0 && a.output)
		rc = named_output_add(a.output, &e);
	if (rc == 0 && a.svg)
		rc = named_output_add(a.svg, &e);
	if (rc == 0 && a.json)
		cli_only_json();
	if (rc == 0)
		rc = study_plan_init(&p, &a.o, &e);
	planned = rc == 0;
	if (rc == 0)
		rc = work(&p, &a, &e);
	if (planned && a.json) {
		int put = print_states(&p, rc == 0 ? &e : NULL);

		rc = rc < 0 ? rc : put;
	}
	study_plan_release(&p);
	study_args_release(&a);
	return rc < 0 ? cli_fail(&e) : 0;
}

static int run_main(const struct command *c, int argc, char **argv)
{
	return planned(c, argc, argv, study_run_pending);
}

static int status_main(const struct command *c, int argc, char **argv)
{
	return planned(c, argc, argv, study_print_status);
}

static int sbatch_main(const struct command *c, int argc, char **argv)
{
	return planned(c, argc, argv, study_write_script);
}

/* The report of the study's results, by the command of that name. */
static int report_main(const struct command *c, int argc, char **argv)
{
	struct study_args a;
	struct err e = {0};
	int status = 0, rc = study_args_parse(c, &a, argc, argv, take_design, &e);

	if (rc == 0) {
		char *words[] = {(char *)(uintptr_t) "report",
				 (char *)(uintptr_t) "-o",
				 (char *)(uintptr_t)(a.output ? a.output : "report.html"),
				 (char *)(uintptr_t) "--",
				 (char *)(uintptr_t)a.o.results,
				 NULL};

		status = command_report.carry_out(&command_report, 5, words);
	}
	study_args_release(&a);
	return rc < 0 ? cli_fail(&e) : status;
}

#define FLAG_ARGS struct study_args

#define NUMBER_MAX 1000000

/* clang-format off */
static const struct flag operand_design = F_OPERAND("DESIGN.csv",
	"the design: a CSV with the columns model, epochs, processes, overrides, run (N "
	"pending, Y done, F failed) and, optionally, repeat");
static const struct flag operand_override = F_OPERAND("key=value",
	"a key for every run; MODEL:key=value: for the runs of one model. Overrides in a row "
	"take precedence");
static const struct flag flag_results = F_TEXT("--results", "DIR", o.results,
	"results are in DIR/MODEL/EXPERIMENT/run-1/... (default: results; with --small "
	"results-small)");
static const struct flag flag_scratch = F_TEXT("--scratch", "DIR", o.scratch,
	"folder on the storage to measure, for datasets and checkpoints, which are removed at "
	"the end (default: scratch). An override of dataset.data_folder is used instead for the "
	"dataset, and one of checkpoint.checkpoint_folder for checkpoints");
static const struct flag flag_config_dir_of_study = F_TEXT("--config-dir", "DIR", o.config_dir,
	"search this folder for workloads first");
static const struct flag flag_launcher = F_CHOICE("--launcher", "NAME", launcher,
	study_launcher_names,
	"local (default), mpirun or srun");
static const struct flag flag_launcher_arg = F_LIST("--launcher-arg", "ARG", o.launcher_args,
	"one more argument for the launcher; may be repeated");
static const struct flag flag_module = F_LIST("--module", "NAME", o.modules,
	"load this environment module before each command; may be repeated");
static const struct flag flag_repeat = F_COUNT("--repeat", "N", o.repeat, 1, NUMBER_MAX,
	"repetitions of each row that has no repeat of its own (default: 1)");
static const struct flag flag_shuffle = F_SEED("--shuffle-order", "SEED", shuffle,
	"run the runs that share a dataset in random order");
static const struct flag flag_scale = F_LIST("--scale", "KEY=FACTOR", o.scales,
	"multiply a number or a time in every run (MODEL:KEY=FACTOR: in the runs of one model); "
	"may be repeated");
static const struct flag flag_warm = F_SET("--warm", o.warm,
	"leave the page cache alone (otherwise the files of a run are evicted before each "
	"epoch, storage.page_cache=cold_epochs, unless that key is set)");
static const struct flag flag_small = F_SET("--small", o.small,
	"shrink every run so that the design can be tried on a laptop, and each row has the "
	"steps that steady needs; the states in the design are not used");
static const struct flag flag_states = F_SET("--json", json,
	"print how each run stands as JSON, and nothing else on standard output");
static const struct flag flag_keep_data = F_SET("--keep-data", o.keep_data,
	"keep the datasets in the scratch folder");
static const struct flag flag_retry = F_SET("--retry", o.retry, "run failed rows again");

/* What says which runs a design makes, and where. */
#define FLAGS_OF_PLAN                                                                              \
	&operand_design, &operand_override, &flag_results, &flag_scratch,                          \
		&flag_config_dir_of_study, &flag_launcher_arg, &flag_module, &flag_repeat,         \
		&flag_scale, &flag_warm, &flag_small

static const struct flag *const run_flags[] = {
	FLAGS_OF_PLAN, &flag_launcher, &flag_shuffle, &flag_keep_data, &flag_retry,
	F(SET, "--dry-run", dry_run,
	  "print what would run, what it needs and what will go wrong, and write nothing"),
	F(SET, "--verbose", verbose, "with --dry-run: print every command, too", .letter = "-v"),
	F(SET, "--quiet", quiet, "print failures only, no progress", .letter = "-q"),
	&flag_states,
	NULL};
static const struct flag *const status_flags[] = {
	FLAGS_OF_PLAN, &flag_launcher,
	F(TEXT, "--svg", "FILE", svg, "also write the states as a picture"),
	&flag_states,
	NULL};
static const struct flag *const report_flags[] = {
	&operand_design, &flag_results, &flag_small,
	F(TEXT, "--output", "FILE", output,
	  "file for the page (default: report.html)", .letter = "-o"),
	NULL};
static const struct flag *const sbatch_flags[] = {
	FLAGS_OF_PLAN, &flag_shuffle, &flag_keep_data, &flag_retry,
	F(TEXT, "--partition", "NAME", sbatch.partition, "as for sbatch (default: the site's)"),
	F(TEXT, "--account", "NAME", sbatch.account, "as for sbatch"),
	F(COUNT, "--nodes", "N", sbatch.nodes, 1, NUMBER_MAX, "as for sbatch (default: 1)"),
	F(COUNT, "--tasks", "N", sbatch.tasks, 1, NUMBER_MAX,
	  "as --ntasks of sbatch (default: the largest number of processes in the design)"),
	F(TEXT, "--time", "TIME", sbatch.time, "as for sbatch: 04:00:00 (default: the site's)"),
	F(TEXT, "--gres", "LIST", sbatch.gres, "as for sbatch: gpu:4"),
	F(SET, "--exclusive", sbatch.exclusive,
	  "as for sbatch: no other job on the nodes, so that nothing else is measured"),
	F(LIST, "--sbatch", "OPTION", sbatch.lines,
	  "a further line '#SBATCH OPTION' (--sbatch=--constraint=nvme); may be repeated"),
	F(TEXT, "--output", "FILE", output,
	  "file for the script (default: stdout)", .letter = "-o"),
	NULL};
/* clang-format on */

#define OPERANDS "DESIGN.csv [key=value ...]"

static const struct command run_of_study = {
	.name = "study run",
	.operands = OPERANDS,
	.help = "Run the pending rows; the same command continues an interrupted study.",
	.flags = run_flags,
	.examples = {"stoker study run examples/design.csv --config-dir examples --dry-run",
		     "stoker study run examples/design.csv --config-dir examples --small"},
	.carry_out = run_main};
static const struct command status_of_study = {
	.name = "study status",
	.operands = OPERANDS,
	.help = "Print the state of every row, and why rows failed.",
	.about = "Give the options of 'study run' that the runs were made with.",
	.flags = status_flags,
	.examples = {"stoker study status examples/design.csv --config-dir examples",
		     "stoker study status examples/design.csv --config-dir examples --small"},
	.carry_out = status_main};
static const struct command report_of_study = {
	.name = "study report",
	.operands = "DESIGN.csv",
	.help = "Write the report of the study's results ('stoker report' has more options).",
	.flags = report_flags,
	.examples = {"stoker study report examples/design.csv --small",
		     "stoker study report examples/design.csv --small -o study.html"},
	.carry_out = report_main};
static const struct command sbatch_of_study = {
	.name = "study sbatch",
	.operands = OPERANDS,
	.help = "Write the batch script that runs the study under Slurm.",
	.flags = sbatch_flags,
	.examples = {"stoker study sbatch examples/design.csv --config-dir examples",
		     "stoker study sbatch examples/design.csv --config-dir examples --nodes 2 -o "
		     "study.sh"},
	.carry_out = sbatch_main};

static const struct command *const subcommands[] = {&run_of_study, &status_of_study,
						    &report_of_study, &sbatch_of_study, NULL};

const struct command command_study = {
	.name = "study",
	.operands = "COMMAND DESIGN.csv",
	.help = "Run a study from a design (CSV); an interrupted one continues.",
	.examples = {"stoker study run examples/design.csv --config-dir examples --dry-run",
		     "stoker study run examples/design.csv --config-dir examples --small"},
	.subcommand = subcommands,
	.alone = true,
};
