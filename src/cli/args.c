#include "cli/args.h"
#include "conf/override.h"
#include "workload/validate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"

#define RANKS_MAX 65536

const char cli_args_help[] =
	"  WORKLOAD        a built-in workload (stoker show workloads) or a YAML file\n"
	"  key=value       any key of the workload, with or without 'workload.' before;\n"
	"                  Hydra's ++key=value, +key=value and ~key work too\n"
	"  -n, --ranks N   emulated accelerators, of all processes together (default: 1\n"
	"                  each)\n"
	"  --accelerators-per-process N\n"
	"                  of each process that mpirun, mpiexec or srun starts\n"
	"  -o, --output FOLDER\n"
	"                  where results go (default: hydra.run.dir)\n"
	"  --config-dir DIR\n"
	"                  look for workloads here first\n"
	"  --strict        an unknown key is an error, not a warning\n"
	"  --check         leave with status 3 when the AU target (metric.au) is missed\n"
	"                  or a verdict is FAIL\n"
	"  -v, --verbose   DLIO's log lines on the terminal too (they are in dlio.log)\n"
	"  --progress MODE on stderr: panel (drawn in place), lines, json (an object a\n"
	"                  line) or none; auto (default): panel on a terminal, else lines\n"
	"  --progress-file FILE\n"
	"                  the objects of json into a file, a FIFO with a reader or\n"
	"                  /dev/fd/N too\n"
	"  --progress-interval S\n"
	"                  seconds from one to the next (default: panel 0.25, lines 10,\n"
	"                  json 1)\n"
	"  -q, --quiet     no progress and no warnings on the terminal\n"
	"  --cfg job       print the composed workload and stop\n";

static const struct {
	const char *name;
	char id;
	bool value;
} flags[] = {
	{"-n", 'n', true},
	{"--ranks", 'n', true},
	{"-o", 'o', true},
	{"--output", 'o', true},
	{"--config-dir", 'd', true},
	{"-cd", 'd', true},
	{"--strict", 's', false},
	{"-q", 'q', false},
	{"--quiet", 'q', false},
	{"-v", 'v', false},
	{"--verbose", 'v', false},
	{"--check", 'c', false},
	{"-h", 'h', false},
	{"--help", 'h', false},
	{"--cfg", 'j', true},
	{"--set", 'S', false},
	{"--markdown", 'm', false},
	{"--man", 'M', false},
	{"--progress", 'P', true},
	{"--progress-file", 'F', true},
	{"--progress-interval", 'I', true},
	{"-c", 'j', true},
	{"--accelerators-per-process", 'p', true},
};

static int apply(struct cli_args *a, char id, const char *flag, const char *value, struct err *e)
{
	switch (id) {
	case 'n':
		if (!str_to_i64(value, &a->ranks) || a->ranks < 1 || a->ranks > RANKS_MAX)
			return err_set(e, ERR_USAGE, "%s: '%s' is not a number of ranks (1 to %d)",
				       flag, value, RANKS_MAX);
		a->ranks_given = true;
		return 0;
	case 'p':
		if (!str_to_i64(value, &a->per_process) || a->per_process < 1 ||
		    a->per_process > RANKS_MAX)
			return err_set(e, ERR_USAGE, "%s: '%s' is not a number of ranks (1 to %d)",
				       flag, value, RANKS_MAX);
		return 0;
	case 'o': {
		AUTO_FREE char *quoted = override_quote(value);

		free(a->output);
		a->output = xasprintf("++workload.output.folder=%s", quoted);
		return 0;
	}
	case 'd':
		a->config_dir = value;
		return 0;
	case 'j':
		a->cfg = value;
		return 0;
	case 's':
		a->strict = true;
		return 0;
	case 'q':
		a->quiet = true;
		return 0;
	case 'v':
		a->verbose = true;
		return 0;
	case 'c':
		a->check = true;
		return 0;
	case 'S':
		a->only_set = true;
		return 0;
	case 'm':
		a->markdown = true;
		return 0;
	case 'P':
		a->progress = value;
		return 0;
	case 'F':
		a->progress_file = value;
		return 0;
	case 'I':
		a->progress_interval = value;
		return 0;
	case 'M':
		a->man = true;
		return 0;
	default:
		a->help = true;
		return 0;
	}
}

/* 1 when argv[*i] is a flag (and *i moved past its value), 0 when it is not. */
static int flag(struct cli_args *a, int argc, char **argv, int *i, struct err *e)
{
	const char *arg = argv[*i];
	const char *names[sizeof(flags) / sizeof(flags[0])];
	const char *near;

	for (size_t k = 0; k < sizeof(flags) / sizeof(flags[0]); k++) {
		size_t n = strlen(flags[k].name);

		names[k] = flags[k].name;
		if (strncmp(arg, flags[k].name, n) != 0)
			continue;
		if (arg[n] == '=' && flags[k].value && n > 2)
			return apply(a, flags[k].id, flags[k].name, arg + n + 1, e) < 0 ? e->code
											: 1;
		/* -n4 */
		if (flags[k].id == 'n' && n == 2 && arg[n] >= '0' && arg[n] <= '9')
			return apply(a, 'n', flags[k].name, arg + n, e) < 0 ? e->code : 1;
		if (arg[n] != '\0')
			continue;
		if (!flags[k].value)
			return apply(a, flags[k].id, arg, NULL, e) < 0 ? e->code : 1;
		if (*i + 1 >= argc)
			return err_set(e, ERR_USAGE, "%s needs a value", arg);
		return apply(a, flags[k].id, arg, argv[++*i], e) < 0 ? e->code : 1;
	}
	if (arg[0] != '-' || arg[1] == '\0')
		return 0;
	near = str_nearest(arg, names, sizeof(flags) / sizeof(flags[0]));
	return err_set(e, ERR_USAGE, "unknown option '%s'%s%s%s (overrides are written key=value)",
		       arg, near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

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

int cli_args_parse(struct cli_args *a, int argc, char **argv, struct err *e)
{
	*a = (struct cli_args){.ranks = 1};
	a->override = xcalloc((size_t)argc + 1, sizeof(*a->override));
	for (int i = 1; i < argc; i++) {
		int rc = flag(a, argc, argv, &i, e);

		if (rc < 0)
			return rc;
		if (rc > 0)
			continue;
		/* what looks like an override is one; the first other word names the workload */
		if ((strchr(argv[i], '=') || argv[i][0] == '~' || argv[i][0] == '+') &&
		    (a->workload || !is_path(argv[i])))
			a->override[a->overrides++] = argv[i];
		else if (!a->workload)
			a->workload = argv[i];
		else
			return err_set(
				e, ERR_USAGE,
				"'%s': the workload is already '%s', and an override is written "
				"key=value",
				argv[i], a->workload);
	}
	if (a->output)
		a->override[a->overrides++] = a->output;
	return 0;
}

void cli_args_release(struct cli_args *a)
{
	free(a->override);
	free(a->output);
	*a = (struct cli_args){0};
}

int cli_load_workload(const struct cli_args *a, int64_t start_wall_ns, struct workload *w,
		      struct err *e)
{
	struct workload_request req = {
		.workload = a->workload,
		.overrides = a->override,
		.override_count = a->overrides,
		.config_dir = a->config_dir,
		.strict = a->strict,
		.start_wall_ns = start_wall_ns,
		.ranks = a->ranks,
		.inspect = a->inspect || a->cfg,
	};
	int rc = workload_load(w, &req, e);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < w->warnings.n && !a->quiet; i++)
		log_warning("%s", w->warnings.v[i]);
	return 0;
}

const char *cli_workload_name(const struct cli_args *a)
{
	static const char hydra[] = "workload=";

	if (a->workload)
		return path_basename(a->workload);
	for (size_t i = 0; i < a->overrides; i++)
		if (str_starts(a->override[i], hydra))
			return a->override[i] + strlen(hydra);
	return "default";
}

void cli_set_console(const struct cli_args *a)
{
	log_set_console(a->quiet     ? LOG_CONSOLE_ERRORS
			: a->verbose ? LOG_CONSOLE_ALL
				     : LOG_CONSOLE_WARNINGS);
}

void cli_settle_folder(struct workload *w)
{
	bool named = w->output.folder != NULL;

	for (size_t i = 0; i < w->hydra_overrides.n; i++)
		named = named || strstr(w->hydra_overrides.v[i], "hydra.run.dir=");
	if (named)
		return;
	AUTO_FREE char *parent = path_dirname(w->run_dir);

	if (file_mkdirs(parent, NULL) < 0)
		return; /* the run will say so */
	for (int n = 2; n < 1000; n++) {
		AUTO_FREE char *first = n == 2 ? xstrdup(w->run_dir) : NULL;
		char *next;

		if (mkdir(w->run_dir, 0755) == 0 || errno != EEXIST)
			return;
		next = n == 2 ? xasprintf("%s-%d", first, n)
			      : xasprintf("%.*s-%d", (int)(strrchr(w->run_dir, '-') - w->run_dir),
					  w->run_dir, n);
		free(w->run_dir);
		w->run_dir = next;
	}
}
