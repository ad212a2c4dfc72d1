/* stoker study: a whole experiment from its design. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/launcher.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "study/matrix.h"
#include "study/sbatch.h"
#include "study/study.h"

extern const struct command command_study, command_report;

static struct stop_flag stop;

static const char help[] =
	"  stoker study run DESIGN.csv [options] [key=value ...]\n"
	"                         carry out what is pending\n"
	"  stoker study status DESIGN.csv [options]\n"
	"                         the design with its states, and why rows failed\n"
	"  stoker study report DESIGN.csv [options]\n"
	"                         stoker report of its results\n"
	"  stoker study sbatch DESIGN.csv [options]\n"
	"                         the batch script for Slurm\n"
	"\n"
	"DESIGN.csv has the columns model, epochs, processes, overrides, run (N pending,\n"
	"Y done, F failed) and, if wanted, repeat. key=value goes into every run,\n"
	"MODEL:key=value into those of a model; a row's own overrides win. The same\n"
	"command again continues where the last one ended.\n"
	"\n"
	"  --results DIR          results/MODEL/EXPERIMENT/run-1/... (default: results)\n"
	"  --scratch DIR          datasets and checkpoints, removed at the end (default:\n"
	"                         scratch)\n"
	"  --config-dir DIR       look for workloads here first\n"
	"  --launcher NAME        local (default), mpirun or srun\n"
	"  --launcher-arg ARG     one more argument of the launcher; may be repeated\n"
	"  --module NAME          load this environment module before each command\n"
	"  --repeat N             repetitions of each row that does not say itself\n"
	"  --shuffle-order[=SEED] runs of a dataset in random order\n"
	"  --scale KEY=FACTOR     multiply a number of every run (MODEL:KEY=FACTOR: of a\n"
	"                         model's)\n"
	"  --warm                 leave what generation left in the page cache (else each\n"
	"                         run begins with its files evicted, unless\n"
	"                         storage.page_cache is set)\n"
	"  --keep-data            leave the datasets in the scratch folder\n"
	"  --retry                failed rows too\n"
	"  --dry-run              print every command and what it needs; write nothing\n"
	"  --svg FILE             status: the matrix as a picture\n"
	"  -o FILE                report: the page; sbatch: the script (default: the\n"
	"                         terminal)\n"
	"  --partition, --account, --nodes, --tasks, --time\n"
	"                         sbatch: as Slurm's options\n"
	"  -q, --quiet\n";

struct study_args {
	struct study_options o;
	struct sbatch_options sbatch;
	const char *svg, *output;
	bool dry_run, quiet, help;
};

/* ---- arguments ---- */

static const struct option options[] = {{"results", required_argument, NULL, 'r'},
					{"scratch", required_argument, NULL, 's'},
					{"config-dir", required_argument, NULL, 'd'},
					{"launcher", required_argument, NULL, 'l'},
					{"launcher-arg", required_argument, NULL, 'a'},
					{"module", required_argument, NULL, 'm'},
					{"repeat", required_argument, NULL, 'R'},
					{"shuffle-order", optional_argument, NULL, 'S'},
					{"scale", required_argument, NULL, 'x'},
					{"warm", no_argument, NULL, 'w'},
					{"keep-data", no_argument, NULL, 'k'},
					{"retry", no_argument, NULL, 'y'},
					{"dry-run", no_argument, NULL, 'n'},
					{"svg", required_argument, NULL, 'g'},
					{"output", required_argument, NULL, 'o'},
					{"partition", required_argument, NULL, 'p'},
					{"account", required_argument, NULL, 'A'},
					{"nodes", required_argument, NULL, 'N'},
					{"tasks", required_argument, NULL, 'T'},
					{"time", required_argument, NULL, 't'},
					{"quiet", no_argument, NULL, 'q'},
					{"help", no_argument, NULL, 'h'},
					{0}};

static int whole(const char *name, const char *text, int64_t *out, struct err *e)
{
	if (str_to_i64(text, out) && *out >= 1 && *out <= 1000000)
		return 0;
	return err_set(e, ERR_USAGE, "--%s: '%s' is not a whole number from 1 to 1000000", name,
		       text);
}

static int launcher(struct study_args *a, const char *name, struct err *e)
{
	for (int i = 0; study_launcher_names[i]; i++)
		if (strcmp(name, study_launcher_names[i]) == 0) {
			a->o.launcher = (enum study_launcher)i;
			return 0;
		}
	return err_set(e, ERR_USAGE, "--launcher: '%s' is none of local, mpirun, srun", name);
}

static int seed(struct study_args *a, const char *text, struct err *e)
{
	a->o.shuffle = true;
	a->o.shuffle_seed = 1;
	if (text && !str_to_u64(text, &a->o.shuffle_seed))
		return err_set(e, ERR_USAGE, "--shuffle-order: '%s' is not a whole number", text);
	return 0;
}

static int take(struct study_args *a, int c, struct err *e)
{
	const char **const texts[] = {
		['r'] = &a->o.results,      ['s'] = &a->o.scratch,
		['d'] = &a->o.config_dir,   ['g'] = &a->svg,
		['o'] = &a->output,         ['p'] = &a->sbatch.partition,
		['A'] = &a->sbatch.account, ['t'] = &a->sbatch.time,
	};

	switch (c) {
	case 'l':
		return launcher(a, optarg, e);
	case 'a':
		str_list_add(&a->o.launcher_args, xstrdup(optarg));
		return 0;
	case 'm':
		str_list_add(&a->o.modules, xstrdup(optarg));
		return 0;
	case 'x':
		str_list_add(&a->o.scales, xstrdup(optarg));
		return 0;
	case 'R':
		return whole("repeat", optarg, &a->o.repeat, e);
	case 'N':
		return whole("nodes", optarg, &a->sbatch.nodes, e);
	case 'T':
		return whole("tasks", optarg, &a->sbatch.tasks, e);
	case 'S':
		return seed(a, optarg, e);
	case 'w':
		a->o.warm = true;
		return 0;
	case 'k':
		a->o.keep_data = true;
		return 0;
	case 'y':
		a->o.retry = true;
		return 0;
	case 'n':
		a->dry_run = true;
		return 0;
	case 'q':
		a->quiet = true;
		return 0;
	case 'h':
		a->help = true;
		return 0;
	default:
		*texts[c] = optarg;
		return 0;
	}
}

/* "key=value", or "MODEL:key=value". */
static int take_override(struct str_list *list, const char *word, struct err *e)
{
	size_t n = strcspn(word, ":=");
	struct str_list one = {0};
	int rc = design_split_overrides(word[n] == ':' ? word + n + 1 : word, &one, e);

	if (rc == 0 && one.n == 1)
		str_list_add(list, xstrdup(word));
	else if (rc == 0)
		rc = err_set(e, ERR_USAGE, "'%s' is not one override (key=value)", word);
	str_list_release(&one);
	return rc;
}

static int parse(struct study_args *a, int argc, char **argv, struct err *e)
{
	int c, rc = 0;

	*a = (struct study_args){
		.o = {.results = "results", .scratch = "scratch", .repeat = 1, .stop = &stop},
		.sbatch = {.nodes = 1}};
	opterr = 0;
	optind = 1;
	while (rc == 0 && (c = getopt_long(argc, argv, "ho:q", options, NULL)) != -1) {
		if (c == '?' || c == ':')
			return err_set(e, ERR_USAGE,
				       "study: '%s' is no option, or lacks its value; see stoker "
				       "study --help",
				       argv[optind - 1]);
		rc = take(a, c, e);
	}
	for (; rc == 0 && optind < argc; optind++) {
		const char *word = argv[optind];

		if (strchr(word, '=') || word[0] == '~' || word[0] == '+')
			rc = take_override(&a->o.overrides, word, e);
		else if (!a->o.design)
			a->o.design = word;
		else
			rc = err_set(e, ERR_USAGE,
				     "'%s': the design is already '%s', and an override is written "
				     "key=value",
				     word, a->o.design);
	}
	if (rc == 0 && !a->help && !a->o.design)
		rc = err_set(e, ERR_USAGE, "study needs the CSV of a design");
	for (int i = 0; rc == 0 && i < 2; i++)
		if (strpbrk(i ? a->o.results : a->o.scratch, "\n"))
			rc = err_set(e, ERR_USAGE,
				     "%s: the name of the folder cannot hold a line break",
				     i ? "--results" : "--scratch");
	return rc;
}

static void release(struct study_args *a)
{
	str_list_release(&a->o.launcher_args);
	str_list_release(&a->o.modules);
	str_list_release(&a->o.overrides);
	str_list_release(&a->o.scales);
}

/* ---- what is seen ---- */

struct view {
	bool quiet, terminal;
	size_t total;
	bool line; /* a line is being rewritten */
	struct terminal screen;
};

static void clear_line(struct view *v)
{
	if (v->line)
		fputs("\r\033[K", stderr);
	v->line = false;
}

/* Rewrites the line; one that a narrow terminal would wrap is cut. */
static void put_tick(struct view *v, const struct study_event *ev)
{
	const struct experiment *x = ev->experiment;
	unsigned columns, rows;
	char took[32];
	struct buf line = {0};

	if (!terminal_ready(&v->screen))
		return;
	terminal_size(&v->screen, &columns, &rows);
	buf_printf(&line, "  %s/%s: %s", x->model_folder, x->name,
		   str_seconds(ev->seconds, took, sizeof(took)));
	fprintf(stderr, "\r\033[K%.*s", (int)columns - 1, line.data);
	buf_release(&line);
	v->line = true;
}

static const char *left_text(const struct study_event *ev, char *out, size_t out_size)
{
	char took[32];

	if (!isfinite(ev->left_s))
		return "";
	snprintf(out, out_size, ", about %s left", str_seconds(ev->left_s, took, sizeof(took)));
	return out;
}

static void show(void *arg, const struct study_event *ev)
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
	clear_line(v);
	fprintf(stderr, "[%zu done, %zu failed, %zu pending] %s/%s", ev->done, ev->failed,
		ev->pending, x->model_folder, x->name);
	if (x->repeat > 1)
		fprintf(stderr, " run %u", x->repeat);
	fprintf(stderr, ": %s", words[ev->kind]);
	if (ev->kind == STUDY_GENERATE && ev->dataset->bytes != UINT64_MAX)
		fprintf(stderr, " (%s)", str_bytes((double)ev->dataset->bytes, took, sizeof(took)));
	if (ev->kind == STUDY_DONE || ev->kind == STUDY_FAILED)
		fprintf(stderr, " in %s%s", str_seconds(ev->seconds, took, sizeof(took)),
			left_text(ev, left, sizeof(left)));
	if (ev->kind == STUDY_FAILED)
		fprintf(stderr, ": %s", ev->reason);
	fputc('\n', stderr);
}

static void print(const struct buf *text)
{
	fputs(text->data ? text->data : "", stdout);
}

/* ---- the verbs ---- */

/* A study is one process that starts the others: those of a launcher would meet at its lock. One
 * process of a launcher's is as good as none: an interactive step of Slurm's looks like that. */
static int refuse_launcher(struct err *e)
{
	struct launcher l;
	char count[48] = "";

	launcher_find(&l);
	if (!l.name || l.processes == 1)
		return 0;
	if (l.processes > 1)
		snprintf(count, sizeof(count), " in %lld processes", (long long)l.processes);
	return err_set(e, ERR_USAGE,
		       "study: it was started%s under %s; run it once, without a launcher: the "
		       "study starts the processes of each run itself (--launcher mpirun or srun). "
		       "If no launcher is at work, unset %s",
		       count, l.name, l.mark);
}

static int run(struct study_plan *p, const struct study_args *a, struct err *e)
{
	struct view view = {.quiet = a->quiet, .terminal = terminal_can_draw(STDERR_FILENO)};
	struct buf text = {0};
	size_t failed = 0;
	int rc;

	if (a->dry_run) {
		study_plan_text(p, &text);
		print(&text);
		buf_release(&text);
		return 0;
	}
	terminal_init(&view.screen, STDERR_FILENO);
	rc = signals_start(&stop, e);
	if (rc == 0)
		rc = study_run(p, show, &view, &failed, e);
	clear_line(&view);
	if (rc == 0)
		printf("%zu row%s of the design, %zu failed; results in '%s'\n", p->design.rows,
		       p->design.rows == 1 ? "" : "s", failed, a->o.results);
	if (rc == 0 && failed) {
		AUTO_FREE char *file = state_path(p);

		rc = err_set(e, -EIO, "%zu of %zu rows failed; their reasons are in '%s'", failed,
			     p->design.rows, file);
	}
	return rc;
}

static int status(const struct study_plan *p, const struct study_args *a, struct err *e)
{
	struct run_status *s = xcalloc(p->experiments + 1, sizeof(*s));
	struct buf text = {0}, svg = {0};
	int rc = 0;

	study_status(p, s);
	study_matrix_text(p, s, terminal_has_colour(STDOUT_FILENO),
			  (int)terminal_width(STDOUT_FILENO), &text);
	print(&text);
	if (a->svg) {
		study_matrix_svg(p, s, &svg);
		rc = file_write(a->svg, svg.data, svg.len, e);
	}
	buf_release(&text);
	buf_release(&svg);
	free(s);
	return rc;
}

static int sbatch(const struct study_plan *p, const struct study_args *a, struct err *e)
{
	struct buf text = {0};
	int rc = study_sbatch(p, &a->sbatch, &text, e);

	if (rc == 0 && a->output)
		rc = file_write(a->output, text.data, text.len, e);
	else if (rc == 0)
		print(&text);
	buf_release(&text);
	return rc;
}

/* The report of the study's results, by the command of that name. */
static int report(const struct study_args *a)
{
	char *argv[] = {(char *)(uintptr_t) "report", (char *)(uintptr_t)a->o.results,
			(char *)(uintptr_t) "-o",
			(char *)(uintptr_t)(a->output ? a->output : "report.html"), NULL};

	return command_report.main(4, argv);
}

static int verb(const char *name, struct study_args *a, struct err *e)
{
	struct study_plan p;
	int rc = strcmp(name, "run") == 0 ? refuse_launcher(e) : 0;

	if (rc < 0)
		return rc;
	rc = study_plan_init(&p, &a->o, e);
	if (rc == 0 && strcmp(name, "run") == 0)
		rc = run(&p, a, e);
	else if (rc == 0 && strcmp(name, "status") == 0)
		rc = status(&p, a, e);
	else if (rc == 0)
		rc = sbatch(&p, a, e);
	study_plan_release(&p);
	return rc;
}

static int study_main(int argc, char **argv)
{
	static const char *const verbs[] = {"run", "status", "report", "sbatch", NULL};
	const char *name = argc > 1 ? argv[1] : "";
	char program[4096];
	struct study_args a = {0};
	struct err e = {0};
	bool known = false;
	ssize_t n;
	int exit_status = 0, rc = 0;

	if (argc < 2 || strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0) {
		printf("usage: stoker %s\n\n%s\n\n%s", command_study.usage, command_study.help,
		       help);
		return argc < 2 ? 2 : 0;
	}
	for (int i = 0; !known && verbs[i]; i++)
		known = strcmp(name, verbs[i]) == 0;
	if (!known)
		rc = err_set(&e, ERR_USAGE, "study: '%s' is none of run, status, report, sbatch",
			     name);
	n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	if (rc == 0 && n <= 0)
		rc = err_sys(&e, errno, "finding the path of this program (/proc/self/exe)");
	program[n > 0 ? n : 0] = '\0';
	if (rc == 0)
		rc = parse(&a, argc - 1, argv + 1, &e);
	a.o.program = program;
	if (rc == 0 && a.help)
		printf("usage: stoker %s\n\n%s\n\n%s", command_study.usage, command_study.help,
		       help);
	else if (rc == 0 && strcmp(name, "report") == 0)
		exit_status = report(&a);
	else if (rc == 0)
		rc = verb(name, &a, &e);
	release(&a);
	return rc < 0 ? cli_fail(&e) : exit_status;
}

const struct command command_study = {
	.name = "study",
	.usage = "study run|status|report|sbatch DESIGN.csv [options] [key=value...]",
	.help = "Run a whole study from a design (CSV), resumable.",
	.main = study_main,
	.alone = true,
};
