#include "cli/args.h"
#include "base/say.h"
#include "cli/cli.h"
#include "cli/data_folder.h"
#include "conf/override.h"
#include "launch/launcher.h"
#include "study/small.h"
#include "workload/key.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"

#define RANKS_MAX 65536

#define FLAG_ARGS struct cli_args

static const char *const progress_names[] = {
	[PROGRESS_AUTO] = "auto", [PROGRESS_PANEL] = "panel", [PROGRESS_LINES] = "lines",
	[PROGRESS_JSON] = "json", [PROGRESS_NONE] = "none",   NULL};
static const char *const cfg_names[] = {"job", NULL};

/* clang-format off */
const struct flag operand_workload = F_OPERAND("WORKLOAD",
	"a built-in workload ('stoker show workloads' lists them) or a YAML file");
const struct flag operand_key = F_OPERAND("key=value",
	"any key of the workload, with or without the prefix 'workload.'; Hydra's ++key=value, "
	"+key=value and ~key are accepted too");
const struct flag flag_ranks = F_COUNT("--ranks", "N", ranks, 1, RANKS_MAX,
	"number of emulated accelerators in all processes together (default: 1 per process)",
	.letter = "-n");
const struct flag flag_per_process = F_COUNT("--accelerators-per-process", "N",
	per_process, 1, RANKS_MAX,
	"number of emulated accelerators in each process that mpirun, mpiexec or srun starts");
const struct flag flag_hosts = F_TEXT("--hosts", "HOSTS", hosts,
	"starts the run on these hosts over ssh, without MPI: names separated by commas, with "
	"one process each, or NAME:N for N; -n is the number of accelerators of all of them. "
	"The program has to be at the same path everywhere. Results are written on the first "
	"host");
const struct flag flag_ssh = F_TEXT("--ssh", "PROGRAM", ssh,
	"with --hosts: a program that takes arguments, the name of a host and a command for its "
	"shell, as ssh does (default: ssh -o BatchMode=yes)");
const struct flag flag_ssh_arg = F_LIST("--ssh-arg", "ARG", ssh_args,
	"with --hosts: one more argument of that program, before the host; can be repeated");
const struct flag flag_copy_binary = F_SET("--copy-binary", copy_binary,
	"with --hosts: sends this program to each host, into a new folder that is removed at "
	"once");
const struct flag flag_output = F_TEXT("--output", "FOLDER", folder,
	"folder for the results (default: hydra.run.dir)", .letter = "-o");
const struct flag flag_data = F_TEXT("--data", "FOLDER", data,
	"the folder of the dataset (dataset.data_folder); format, number and sizes of files are "
	"taken from what is there, and keys given as well win");
const struct flag flag_config_dir = F_TEXT("--config-dir", "DIR", config_dir,
	"search this folder for workloads first", .hidden = "-cd");
const struct flag flag_strict = F_SET("--strict", strict,
	"treat an unknown key as an error, not as a warning");
const struct flag flag_check = F_SET("--check", check,
	"exit with status 3 when AU of the whole run is below its target (metric.au), a verdict "
	"is FAIL, or more than 10 % of the bytes came from the page cache and nothing asked for "
	"that");
const struct flag flag_samples_per_s = F_REAL("--min-samples-per-s", "X", samples_per_s, 0,
	INT64_MAX,
	"exit with status 3 when the whole run delivered fewer samples a second");
const struct flag flag_repeat = F_COUNT("--repeat", "N", repeat, 1, REPEAT_MAX,
	"make N runs, each begun alike, with their results in the folders 1 to N, and print "
	"their mean and 95 % interval; the checks go by its lower end");
const struct flag flag_truth_table = F_SET("--truth-table", truth_table,
	"run a sample of the files four times instead (from the storage, from the page cache, "
	"with O_DIRECT, from memory) and print the results side by side");
const struct flag flag_small = F_SET("--small", small,
	"a quick look: generate a dataset of at most 4 GB and read it in two epochs, cold. "
	"Samples and steps are scaled down alike, so an accelerator needs the same bytes/s");
const struct flag flag_verbose = F_SET("--verbose", verbose,
	"print all that is known of a run instead of the short answer, and DLIO's log lines (in "
	"dlio.log in any case)", .letter = "-v");
const struct flag flag_print_json = F_SET("--json", json,
	"print as JSON, and nothing else on standard output");
const struct flag flag_quiet = F_SET("--quiet", quiet,
	"print neither progress nor warnings on the terminal", .letter = "-q");
const struct flag flag_progress = F_CHOICE("--progress", "MODE", progress, progress_names,
	"form of the progress on stderr: panel (redrawn in place), lines, json (one object per "
	"line) or none; the default, auto, is panel on a terminal and lines elsewhere");
const struct flag flag_progress_file = F_TEXT("--progress-file", "FILE", progress_file,
	"also write the json form to this file, to a FIFO that has a reader, or to /dev/fd/N");
const struct flag flag_progress_interval = F_TEXT("--progress-interval", "S", progress_interval,
	"seconds between two updates (default: panel 0.25, lines 10, json 1)");
const struct flag flag_cfg = F_CHOICE("--cfg", "job", cfg, cfg_names,
	"print the composed workload and exit, as Hydra does", .hidden = "-c");
/* clang-format on */

/* Paths may hold '=', too. In an override no '/' stands before it, and a file may have any name but
 * that of a key. */
static bool is_path(const char *word)
{
	size_t n = strcspn(word, "=");
	AUTO_FREE char *key = xasprintf("%.*s", (int)n, word);
	const char *bare = str_starts(key, "workload.") ? key + 9 : key;

	if (word[0] == '+' || word[0] == '~' || word[n] == '\0')
		return false;
	return strchr(key, '/') || (!workload_key_known(bare) && file_exists(word));
}

/* "NAME:8", "NAME:?" */
static bool is_part(const char *word)
{
	const char *colon = strrchr(word, ':');

	return colon && colon > word && colon[1] && !file_exists(word) &&
	       (strcmp(colon, ":?") == 0 || !colon[1 + strspn(colon + 1, "0123456789")]);
}

/* "NAME:key=value" */
static bool is_key_of_part(const char *word)
{
	size_t n = strcspn(word, ":=");

	return word[n] == ':' && n > 0 && strchr(word, '=');
}

/* What has the form of an override is one; the first other word names the workload. */
static int take_word(void *args, const char *word, struct err *e)
{
	struct cli_args *a = args;

	if (a->several && is_part(word))
		str_list_add(&a->part, xstrdup(word));
	else if (a->several && is_key_of_part(word))
		str_list_add(&a->override, xstrdup(word));
	else if ((strchr(word, '=') || word[0] == '~' || word[0] == '+') &&
		 (a->workload || !is_path(word)))
		str_list_add(&a->override, xstrdup(word));
	else if (!a->workload)
		a->workload = word;
	else
		return err_set(e, ERR_USAGE,
			       "'%s' is neither an option nor an override (key=value), and the "
			       "workload is already '%s'",
			       word, a->workload);
	return 0;
}

int cli_args_parse(const struct command *c, struct cli_args *a, int argc, char **argv,
		   struct err *e)
{
	int rc;

	*a = (struct cli_args){.cfg = -1, .several = c->several};
	rc = flags_parse(c, a, argc, argv, take_word, e);
	a->must_name = !a->data && c->operands && str_starts(c->operands, "WORKLOAD") &&
		       !(c->link && strcmp(path_basename(argv[0]), c->link) == 0);
	a->ranks_given = a->ranks > 0;
	a->ranks = a->ranks > 0 ? a->ranks : 1;
	if (rc == 0 && a->folder)
		override_put_text(&a->override, "output.folder", a->folder);
	if (rc == 0 && a->part.n == 0)
		rc = data_folder_apply(a, c->generates, e);
	return rc;
}

void cli_args_release(struct cli_args *a)
{
	str_list_release(&a->ssh_args);
	str_list_release(&a->override);
	str_list_release(&a->data_keys);
	str_list_release(&a->part);
	*a = (struct cli_args){0};
}

static void say_small(const struct buf *said)
{
	struct buf text = {0};

	buf_puts(&text, "--small:");
	buf_puts(&text, said->data + strspn(said->data, " ") - 1);
	say_text(stderr, &text);
	buf_release(&text);
}

void cli_args_shrink(struct cli_args *a, bool speaks, bool keeps_data)
{
	struct str_list shrunk = {0};
	struct buf said = {0};

	if (!a->small || !a->workload)
		return;
	small_run(a->workload, a->config_dir, &a->override, a->ranks, keeps_data, &shrunk, &said);
	str_list_release(&a->override);
	a->override = shrunk;
	if (speaks && !a->quiet && said.len)
		say_small(&said);
	buf_release(&said);
}

#define ERRORS_SHOWN 20

/* Of several errors all but the last, which the caller prints as it prints any error. */
static void show_errors(const struct workload *w, struct err *e)
{
	size_t n = w->errors.n, lines = n < ERRORS_SHOWN ? n : ERRORS_SHOWN;

	if (n < 2 || !launcher_leads())
		return;
	for (size_t i = 0; i + 1 < lines; i++)
		say(stderr, "stoker: %s\n", w->errors.v[i]);
	if (n > lines)
		err_set(e, e->code, "and %zu more errors in the workload", n - lines + 1);
	else
		err_set(e, e->code, "%s", w->errors.v[n - 1]);
}

static void show_warnings(const struct cli_args *a, const struct workload *w)
{
	for (size_t i = 0; i < w->warnings.n && !a->quiet; i++)
		log_warning("%s", w->warnings.v[i]);
}

int cli_load_workload(const struct cli_args *a, int64_t start_wall_ns, struct workload *w,
		      struct err *e)
{
	struct workload_request req = {
		.workload = a->workload,
		.overrides = (const char *const *)a->override.v,
		.override_count = a->override.n,
		.config_dir = a->config_dir,
		.strict = a->strict,
		.must_name = a->must_name,
		.start_wall_ns = start_wall_ns,
		.ranks = a->ranks,
		.inspect = a->inspect || a->cfg >= 0,
	};
	int rc = workload_load(w, &req, e);

	if (rc < 0) {
		/* an error may be the consequence of what was warned of */
		show_warnings(a, w);
		show_errors(w, e);
		return rc;
	}
	rc = data_folder_refuse_mixing(a, w, e);
	if (rc < 0)
		return rc;
	data_folder_conflicts(a, w);
	show_warnings(a, w);
	for (size_t i = 0; i < w->notes.n && a->verbose && !a->quiet; i++)
		log_info("%s", w->notes.v[i]);
	return 0;
}

const char *cli_workload_name(const struct cli_args *a)
{
	static const char hydra[] = "workload=";

	if (a->title)
		return a->title;
	if (a->workload)
		return path_basename(a->workload);
	for (size_t i = 0; i < a->override.n; i++)
		if (str_starts(a->override.v[i], hydra))
			return a->override.v[i] + strlen(hydra);
	return "default";
}

struct progress_request cli_progress(const struct cli_args *a)
{
	return (struct progress_request){.title = cli_workload_name(a),
					 .form = (enum progress_form)a->progress,
					 .quiet = a->quiet,
					 .file = a->progress_file,
					 .interval = a->progress_interval};
}

void cli_set_console(const struct cli_args *a)
{
	log_set_console(a->quiet     ? LOG_CONSOLE_ERRORS
			: a->verbose ? LOG_CONSOLE_ALL
				     : LOG_CONSOLE_WARNINGS);
}

/* That was made, and the nearest folder above it that was there; NULL: none was. */
static char *settled, *settled_in;

void cli_settle_folder(struct workload *w)
{
	struct stat above;
	bool named = w->output.folder != NULL;

	for (size_t i = 0; i < w->hydra_overrides.n; i++)
		named = named || strstr(w->hydra_overrides.v[i], "hydra.run.dir=");
	if (named)
		return;
	AUTO_FREE char *parent = path_dirname(w->run_dir);

	free(settled_in);
	settled_in = path_nearest(parent, &above);
	if (file_mkdirs(parent, NULL) < 0)
		return; /* the run will say so */
	for (int n = 2; n < 1000; n++) {
		AUTO_FREE char *first = n == 2 ? xstrdup(w->run_dir) : NULL;
		char *next;

		if (mkdir(w->run_dir, 0755) == 0) {
			free(settled);
			settled = path_absolute(w->run_dir);
			return;
		}
		if (errno != EEXIST)
			return;
		next = n == 2 ? xasprintf("%s-%d", first, n)
			      : xasprintf("%.*s-%d", (int)(strrchr(w->run_dir, '-') - w->run_dir),
					  w->run_dir, n);
		free(w->run_dir);
		w->run_dir = next;
	}
}

void cli_unsettle_folder(void)
{
	if (settled)
		remove_empty_folders(settled, settled_in);
	free(settled);
	free(settled_in);
	settled = settled_in = NULL;
}
