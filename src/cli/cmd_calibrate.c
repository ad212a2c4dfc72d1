/* stoker calibrate: measures what the framework's own code costs in the user's Python, and writes a
 * profile of it. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/file_out.h"
#include "base/say.h"
#include "cli/calibrate_script.h"
#include "cli/cli.h"
#include "cli/flags.h"
#include "os/child.h"
#include "os/signals.h"
#include "result/json_result.h"
#include "workload/framework_costs.h"
#include "workload/workload.h"

#define LOOK_NS (NS_PER_S / 10)
#define GRACE_NS (NS_PER_S / 2)
enum { REPORT_MAX_BYTES = 4 << 20, LOG_MAX_BYTES = 16 << 20 };

struct calibrate_args {
	const char *output, *python;
	const char *only, *name; /* NULL: not given */
	double time_limit;       /* s */
	int framework;           /* enum framework */
	bool quiet, json;
};

struct calibration {
	const struct calibrate_args *args;
	char *folder, *script, *report, *log;
	struct buf rows;     /* with commas between them */
	struct buf text;     /* the report so far */
	size_t told;         /* of it, said to the user */
	struct buf unsteady; /* of the text about the source: what did not repeat */
	struct node *doc, *laws;
	size_t measured;
	bool begun, done; /* it told of itself; all was measured */
};

static struct stop_flag stop;

/* ---- what is asked ---- */

static bool is_row(const char *word, size_t n)
{
	char name[64];

	for (size_t i = 0; costs_row_name(i, name); i++)
		if (strlen(name) == n && memcmp(name, word, n) == 0)
			return true;
	return false;
}

static int unknown_row(const char *word, size_t n, struct err *e)
{
	struct buf list = {0};
	char name[64];
	int rc;

	for (size_t i = 0; costs_row_name(i, name); i++)
		buf_printf(&list, "%s%s", i ? ", " : "", name);
	rc = err_set(e, ERR_USAGE, "--only: '%.*s' is none of %s", (int)(n < 60 ? n : 60), word,
		     list.data);
	buf_release(&list);
	return rc;
}

static int choose_rows(struct calibration *c, struct err *e)
{
	const char *only = c->args->only;
	char name[64];

	for (size_t i = 0; !only && costs_row_name(i, name); i++)
		buf_printf(&c->rows, "%s%s", i ? "," : "", name);
	for (const char *p = only; p;) {
		size_t n = strcspn(p, ",");

		if (!is_row(p, n))
			return unknown_row(p, n, e);
		buf_printf(&c->rows, "%s%.*s", c->rows.len ? "," : "", (int)n, p);
		p = p[n] ? p + n + 1 : NULL;
	}
	return 0;
}

/* Before a minute of measurements, not after it. */
static int check_name(const struct calibrate_args *a, struct err *e)
{
	const char *refusal = a->name ? costs_name_refusal(a->name) : NULL;

	return refusal ? err_set(e, ERR_USAGE, "--name '%.64s': %s", a->name, refusal) : 0;
}

static int check_output(const struct calibrate_args *a, struct err *e)
{
	struct stat python, output;

	if (stat(a->output, &output) == 0 && stat(a->python, &python) == 0 &&
	    python.st_ino == output.st_ino && python.st_dev == output.st_dev)
		return err_set(e, ERR_USAGE, "-o and --python name the same file, '%s'", a->output);
	return named_output_add(a->output, e);
}

/* ---- what the script reports ---- */

static void put_text(struct node *map, const char *key, const char *text)
{
	struct node *n;

	if (!text || !text[0])
		return;
	n = node_new_str(text, (struct node_mark){0});
	n->literal = true;
	node_set(map, key, n);
}

static struct node *number(const json_t *v)
{
	struct node *n = node_new(NODE_FLOAT, (struct node_mark){0});

	n->f = json_number_value(v);
	return n;
}

static void put_number(struct node *map, const char *key, const json_t *v)
{
	if (json_is_number(v))
		node_set(map, key, number(v));
}

static void take_about(struct calibration *c, json_t *about)
{
	static const char *const keys[] = {"version", "python", "libraries", "processor"};
	const char *version = json_string_value(json_object_get(about, "version"));
	const char *framework = workload_framework_names[c->args->framework];
	AUTO_FREE char *name = !version || !version[0] ? xstrdup("python-local")
			       : c->args->framework == FRAMEWORK_PYTORCH
				       ? xasprintf("torch-%s-local", version)
				       : xasprintf("%s-%s-local", framework, version);

	c->begun = true;
	put_text(c->doc, "name", c->args->name ? c->args->name : name);
	put_text(c->doc, "framework", framework);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		put_text(c->doc, keys[i], json_string_value(json_object_get(about, keys[i])));
}

/* A list of lists of numbers, or nothing. */
static void put_points(struct node *law, const json_t *points)
{
	struct node *list;

	if (json_array_size(points) < 2)
		return;
	list = node_new(NODE_LIST, (struct node_mark){0});
	for (size_t i = 0; i < json_array_size(points); i++) {
		const json_t *point = json_array_get(points, i);
		struct node *n = node_new(NODE_LIST, (struct node_mark){0});

		for (size_t k = 0; k < json_array_size(point); k++)
			node_append(n, number(json_array_get(point, k)));
		node_append(list, n);
	}
	node_set(law, "points", list);
}

static void take_row(struct calibration *c, const char *row, json_t *o)
{
	struct node *law = node_new(NODE_MAP, (struct node_mark){0});
	const char *key;
	json_t *v;

	json_object_foreach(json_object_get(o, "law"), key, v)
	{
		put_number(law, key, v);
	}
	put_points(law, json_object_get(o, "law_points"));
	put_number(law, "spread", json_object_get(o, "spread"));
	node_set(c->laws, row, law);
	c->measured++;
}

static const char *text_of(json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static void say_missing(json_t *o)
{
	const json_t *rows = json_object_get(o, "rows");
	struct buf list = {0};

	for (size_t i = 0; i < json_array_size(rows); i++) {
		const char *row = json_string_value(json_array_get(rows, i));

		buf_printf(&list, "%s%s", i ? ", " : "", row ? row : "?");
	}
	say(stderr, "%s cannot be imported (%s): not measured: %s\n", text_of(o, "missing"),
	    text_of(o, "why"), list.data ? list.data : "nothing");
	buf_release(&list);
}

/* What did not repeat is said now, and in the profile. */
static void take_unsteady(struct calibration *c, json_t *o)
{
	const char *what = text_of(o, "unsteady");
	double least = json_number_value(json_object_get(o, "least")) * 1e6,
	       most = json_number_value(json_object_get(o, "most")) * 1e6;

	say(stderr, "%s did not repeat: %.0f to %.0f us. Measure it again with --only\n", what,
	    least, most);
	buf_printf(&c->unsteady, "%s%s", c->unsteady.len ? ", " : "; did not repeat: ", what);
}

/* The machine never was as quick again while these were measured. */
static void take_disturbed(struct calibration *c, json_t *o)
{
	long long n = json_integer_value(json_object_get(o, "disturbed"));

	say(stderr,
	    "%lld measurement%s made while this machine was slower than at its best, because of "
	    "other programs or processors that share a core: their times may be too long. Measure "
	    "again when the machine is idle\n",
	    n, n == 1 ? " was" : "s were");
	buf_printf(&c->unsteady, "; measured while the machine was slower: %lld", n);
}

static void take_line(struct calibration *c, const char *line, size_t n)
{
	json_t *o = json_loadb(line, n, JSON_REJECT_DUPLICATES, NULL);

	if (json_object_get(o, "about"))
		take_about(c, json_object_get(o, "about"));
	else if (json_object_get(o, "row"))
		take_row(c, text_of(o, "row"), o);
	else if (json_object_get(o, "missing"))
		say_missing(o);
	else if (json_object_get(o, "absent"))
		say(stderr, "%s is not measured: %s\n", text_of(o, "absent"), text_of(o, "why"));
	else if (json_object_get(o, "unsteady"))
		take_unsteady(c, o);
	else if (json_object_get(o, "disturbed"))
		take_disturbed(c, o);
	else if (json_object_get(o, "failed"))
		say(stderr, "a measurement failed (%s): %s\n", text_of(o, "failed"),
		    text_of(o, "why"));
	else if (json_object_get(o, "doing") && !c->args->quiet)
		say(stderr, "measuring %s\n", text_of(o, "doing"));
	else if (json_object_get(o, "done"))
		c->done = true;
	json_decref(o);
}

/* Whole lines that are new. */
static int take_report(struct calibration *c, struct err *e)
{
	int rc;

	c->text.len = 0;
	rc = file_read(c->report, REPORT_MAX_BYTES, &c->text, e);
	if (rc == -ENOENT)
		return 0;
	while (rc == 0 && c->told < c->text.len) {
		const char *line = c->text.data + c->told;
		const char *end = memchr(line, '\n', c->text.len - c->told);

		if (!end)
			break;
		take_line(c, line, (size_t)(end - line));
		c->told += (size_t)(end - line) + 1;
	}
	return rc;
}

/* ---- the child ---- */

static int watch(struct calibration *c, struct child *child, struct err *e)
{
	int64_t end = clock_now_ns() + (int64_t)(c->args->time_limit * (double)NS_PER_S);
	pid_t group = child->pid;
	struct stat log;
	int rc = 0;

	while (rc == 0 && !child_wait(child, LOOK_NS)) {
		rc = take_report(c, e);
		if (rc == 0 && stat(c->log, &log) == 0 && log.st_size > LOG_MAX_BYTES)
			rc = err_set(e, ERR_DATA,
				     "'%s' prints without end and was ended: is it a Python 3?",
				     c->args->python);
		else if (rc == 0 && stop_is_set(&stop))
			rc = err_set(e, ERR_CANCELED, "interrupted: no profile was written");
		else if (rc == 0 && clock_now_ns() > end)
			rc = err_set(e, -ETIMEDOUT,
				     "'%s' did not finish within %g s and was ended: no profile "
				     "was written (--time-limit)",
				     c->args->python, c->args->time_limit);
	}
	if (rc < 0)
		child_end(child, GRACE_NS, &stop);
	child_end_rest(group);
	return rc == 0 ? take_report(c, e) : rc;
}

static int measure(struct calibration *c, struct err *e)
{
	const char *const argv[] = {c->args->python,
				    c->script,
				    c->report,
				    c->folder,
				    c->rows.data,
				    workload_framework_names[c->args->framework],
				    NULL};
	struct child child = {0};
	char outcome[ERR_TEXT_MAX], *see;
	int rc = file_write(c->script, calibrate_script, strlen(calibrate_script), e);

	if (rc == 0)
		rc = child_start(&child, argv, c->log, e);
	if (rc < 0)
		return err_wrap(e, "the measurements need Python (--python)");
	rc = watch(c, &child, e);
	if (rc < 0)
		return rc;
	if (child_outcome(&child, outcome, sizeof(outcome)) != 0 || !c->done) {
		if (child.status == 0)
			snprintf(outcome, sizeof(outcome), "ended before all was measured");
		child_log_reason(c->log, outcome, "", outcome, sizeof(outcome));
		see = strstr(outcome, "; see ");
		if (see)
			*see = '\0'; /* the log goes with its folder */
		return err_set(e, ERR_DATA, "'%s': %.800s%s", c->args->python, outcome,
			       c->begun ? "; no profile was written" : ": is it a Python 3?");
	}
	return c->measured ? 0
			   : err_set(e, ERR_DATA,
				     "nothing could be measured with '%s': no profile was written",
				     c->args->python);
}

/* ---- the profile ---- */

static int write_profile(struct calibration *c, const struct file_out *out, struct err *e)
{
	struct framework_costs *costs;
	AUTO_FREE char *source = NULL;
	struct buf text = {0};
	char date[32];
	time_t now = time(NULL);
	struct tm tm;
	struct node *doc;
	int rc;

	strftime(date, sizeof(date), "%Y-%m-%d", gmtime_r(&now, &tm));
	put_text(c->doc, "date", date);
	source = xasprintf("stoker calibrate " STOKER_VERSION ": processor time; of hand_over with "
			   "the answers of other processes; elapsed time of workers%.300s",
			   c->unsteady.data ? c->unsteady.data : "");
	put_text(c->doc, "source", source);
	node_set(c->doc, "laws", c->laws);
	c->laws = NULL;
	costs = costs_from_node(c->doc, false, e);
	if (!costs && e)
		e->code = ERR_DATA;
	if (!costs)
		return err_wrap(e, "what '%s' reported is no profile", c->args->python);
	doc = costs_node(costs);
	buf_puts(&text, "# Processor time of a framework's own code, in seconds.\n");
	yaml_emit(doc, &text);
	if (text.len && text.data[text.len - 1] != '\n')
		buf_puts(&text, "\n");
	rc = file_out_write(out, text.data, text.len);
	if (rc < 0)
		rc = err_sys(e, -rc, "cannot write '%s'", c->args->output);
	if (rc == 0 && c->args->json) {
		cli_put_json(json_node(doc));
	} else if (rc == 0 && !c->args->quiet) {
		text.len = 0;
		costs_print(costs, &text);
		say_text(stdout, &text);
		say(stdout, "\nwritten to %s: use it with framework.costs=%s\n", c->args->output,
		    c->args->output);
	}
	node_free(doc);
	costs_release(costs);
	buf_release(&text);
	return rc;
}

static int calibrate(void *args, struct err *e)
{
	const struct calibrate_args *a = args;
	const char *tmp = getenv("TMPDIR");
	struct calibration c = {
		.args = a,
		.folder = xasprintf("%s/stoker-calibrate-XXXXXX", tmp && tmp[0] ? tmp : "/tmp"),
		.doc = node_new(NODE_MAP, (struct node_mark){0}),
		.laws = node_new(NODE_MAP, (struct node_mark){0})};
	struct file_out out;
	bool made = false, opened = false;
	int rc = choose_rows(&c, e);

	if (rc == 0)
		rc = check_name(a, e);
	if (rc == 0)
		rc = check_output(a, e);
	if (rc == 0)
		rc = file_out_open(&out, a->output, FILE_NAMED, e);
	opened = rc == 0;
	if (rc == 0 && !mkdtemp(c.folder))
		rc = err_set(e, -errno, "cannot make the folder '%s'", c.folder);
	else
		made = rc == 0;
	c.script = path_join(c.folder, "calibrate.py");
	c.report = path_join(c.folder, "report");
	c.log = path_join(c.folder, "log.txt");
	if (rc == 0)
		rc = signals_start(&(struct signal_work){.stop = &stop}, e);
	if (rc == 0)
		rc = measure(&c, e);
	if (rc == 0)
		rc = write_profile(&c, &out, e);
	if (opened) {
		int closed = file_out_close(&out, rc, rc == 0 ? e : NULL);

		rc = rc < 0 ? rc : closed;
	}
	if (made)
		remove_tree(c.folder, NULL);
	node_free(c.doc);
	node_free(c.laws);
	buf_release(&c.rows);
	buf_release(&c.unsteady);
	buf_release(&c.text);
	free(c.folder);
	free(c.script);
	free(c.report);
	free(c.log);
	return rc;
}

static int calibrate_main(const struct command *c, int argc, char **argv)
{
	struct calibrate_args a = {.output = "costs.yaml",
				   .python = "python3",
				   .time_limit = 600,
				   .framework = FRAMEWORK_PYTORCH};

	return flags_carry_out(c, &a, argc, argv, flags_no_operand, calibrate);
}

#define FLAG_ARGS struct calibrate_args

/* clang-format off */
static const struct flag *const flags[] = {
	F(TEXT, "--output", "FILE", output,
	  "where the profile is written (costs.yaml)", .letter = "-o"),
	F(TEXT, "--python", "PROGRAM", python,
	  "the Python of your training, such as venv/bin/python (python3)"),
	F(CHOICE, "--framework", "FRAMEWORK", framework, workload_framework_names,
	  "whose code is measured: pytorch (default) or tensorflow"),
	F(TEXT, "--only", "ROWS", only,
	  "measure these rows, with commas between them, such as load_npz,collate"),
	F(TEXT, "--name", "NAME", name, "the name of the profile (torch-VERSION-local)"),
	F(REAL, "--time-limit", "SECONDS", time_limit, 1, 86400,
	  "end Python if it takes longer (600)"),
	F(SET, "--json", json, "print the profile as JSON, and nothing else on standard output"),
	F(SET, "--quiet", quiet, "print only what is missing", .letter = "-q"),
	NULL};
/* clang-format on */

const struct command command_calibrate = {
	.name = "calibrate",
	.help = "Measure what a framework's own code costs on this machine.",
	.about = "Runs short measurements, about a minute, in your own Python (numpy, h5py, "
		 "Pillow, pandas and torch or TensorFlow, where they are installed), and writes a "
		 "profile for "
		 "the key framework.costs. The machine should have nothing else to do.",
	.flags = flags,
	.alone = true,
	.examples = {"stoker calibrate --only sample,step -o dlio_costs.yaml",
		     "stoker calibrate --python python3 --only step --name mine -o mine.yaml"},
	.carry_out = calibrate_main,
};
