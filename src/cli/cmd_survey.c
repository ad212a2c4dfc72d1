/* stoker survey: how many accelerators of each built-in workload this storage feeds. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/say.h"
#include "cli/cli.h"
#include "cli/flags.h"
#include "cli/result_args.h"
#include "launch/launcher.h"
#include "os/signals.h"
#include "page/page.h"
#include "result/json_out.h"
#include "screen/terminal.h"
#include "study/census.h"

#define TIME_DEFAULT 120

static struct stop_flag stop;

struct survey_args {
	struct str_list word; /* first: FOLDER and keys */
	struct str_list key;
	const char *folder, *only, *page;
	double time_s;
	bool checkpoint, json, quiet;
};

struct view {
	bool terminal;
	struct terminal screen;
};

static void show(void *arg, const char *text, bool ends)
{
	struct view *v = arg;
	struct buf line = {0};

	if (v->terminal && !ends) {
		buf_say(&line, "  %s", text);
		terminal_line(&v->screen, &line);
	} else if (ends) {
		terminal_line(&v->screen, NULL);
		say(stderr, "%s\n", text);
	}
	buf_release(&line);
}

static int sort_words(struct survey_args *a, struct err *e)
{
	for (size_t i = 0; i < a->word.n; i++) {
		const char *word = a->word.v[i];

		if (strchr(word, '=') && !file_exists(word))
			str_list_add(&a->key, xstrdup(word));
		else if (!a->folder)
			a->folder = word;
		else
			return err_set(e, ERR_USAGE,
				       "survey: '%s' and '%s': one folder at a time is surveyed",
				       a->folder, word);
	}
	if (a->folder)
		return 0;
	return err_set(e, ERR_USAGE,
		       "survey: which storage? Name a folder on it, such as 'stoker survey .'");
}

static int write_page(const json_t *root, const char *path, struct err *e)
{
	struct buf page = {0};
	int rc;

	survey_page_render(root, &page);
	rc = file_write(path, page.data, page.len, e);
	buf_release(&page);
	return rc;
}

static int print(const struct survey_args *a, const struct census *s, struct err *e)
{
	json_t *root = census_json(s);
	struct buf text = {0};
	int rc = 0;

	if (a->page)
		rc = write_page(root, a->page, e);
	if (a->json) {
		json_put_document(&text, root);
	} else {
		census_text(s, (size_t)terminal_width(STDOUT_FILENO), &text);
		if (a->page && rc == 0)
			buf_say(&text, "  page          %s\n", a->page);
		json_decref(root);
	}
	cli_print(&text);
	return rc;
}

static int survey(void *arg, struct err *e)
{
	struct survey_args *a = arg;
	AUTO_FREE char *program = path_of_program(e);
	struct view view = {.terminal = terminal_can_draw(STDERR_FILENO)};
	struct census s = {.tell = a->quiet ? NULL : show, .arg = &view};
	struct census_options o = {.base = {.program = program},
				   .time_s = a->time_s > 0 ? a->time_s : TIME_DEFAULT,
				   .checkpoint = a->checkpoint,
				   .stop = &stop};
	int rc = program ? launcher_refuse("survey", "it surveys a storage from one host", e)
			 : e->code;

	if (rc == 0)
		rc = sort_words(a, e);
	if (rc == 0)
		rc = signals_start(&(struct signal_work){.stop = &stop, .hurries = true}, e);
	if (rc == 0) {
		o.folder = a->folder;
		o.only = a->only;
		o.base.overrides = (const char *const *)a->key.v;
		o.base.override_count = a->key.n;
		terminal_init(&view.screen, STDERR_FILENO);
		rc = census_make(&s, &o, e);
		terminal_line(&view.screen, NULL);
		terminal_release(&view.screen);
		if (rc == ERR_CANCELED)
			err_set(e, rc, "the survey was interrupted; nothing of it is left");
	}
	if (rc == 0)
		rc = print(a, &s, e);
	if (rc == 0)
		rc = census_check(&s, e);
	census_release(&s);
	str_list_release(&a->key);
	return rc;
}

static int survey_main(const struct command *c, int argc, char **argv)
{
	struct survey_args a = {0};

	return flags_carry_out(c, &a, argc, argv, flags_list_operand, survey);
}

#define FLAG_ARGS struct survey_args

/* clang-format off */
static const struct flag *const flags[] = {
	F(OPERAND, "FOLDER",
	  "a folder on the storage; a folder '" CENSUS_FOLDER "' is made there, and removed"),
	F(OPERAND, "key=value",
	  "a key of all workloads, such as storage.store=direct or reader.read_threads=16"),
	F(TEXT, "--only", "TEXT", only,
	  "workloads with this in their names (default: all that train)"),
	F(REAL, "--time", "SECONDS", time_s, 5, 3600, "about so long in all (default: 120)"),
	F(SET, "--checkpoint", checkpoint,
	  "measure also how fast checkpoints are written: the time of those of MLPerf Storage"),
	F(TEXT, "--output", "FILE", page, "write a page with the table and all curves",
	  .letter = "-o"),
	F(SET, "--json", json, "print JSON"),
	F(SET, "--quiet", quiet, "show no progress", .letter = "-q"), NULL};
/* clang-format on */

const struct command command_survey = {
	.name = "survey",
	.operands = "FOLDER [key=value ...]",
	.help = "How many accelerators of all workloads this storage feeds.",
	.about = "Measures in two minutes and with less than 2 GB what 1, 2, 4, ... readers get of "
		 "small datasets that it makes, reads cold and removes. 'capacity' searches the "
		 "number of one workload with full runs.",
	.flags = flags,
	.generates = true,
	.alone = true,
	.examples = {"stoker survey . --only resnet50 --time 10",
		     "stoker survey . --only retinanet --time 8 --checkpoint -o survey.html"},
	.carry_out = survey_main,
};
