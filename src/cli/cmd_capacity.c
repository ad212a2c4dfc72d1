/* stoker capacity: how many accelerators a storage feeds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/say.h"
#include "base/str.h"
#include "study/capacity.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/data_folder.h"
#include "cli/flags.h"
#include "conf/override.h"
#include "launch/hosts.h"
#include "launch/launcher.h"
#include "os/signals.h"
#include "result/json_out.h"
#include "screen/terminal.h"

#define ACCELERATORS_MAX 100000
#define ACCELERATORS_DEFAULT 1024
#define TIME_DEFAULT 60
#define PAGE_NAME "capacity.html"
#define PAGE_WAIT_S 120
#define TOLD_EVERY_S 5

static struct stop_flag stop;

struct capacity_args {
	struct cli_args run; /* first: flags of 'run' fill it */
	int64_t max;
	double time_s, au;
	bool json, keep_data, checkpoint;
	/* --hosts: what the search is told of it */
	struct host_entry *host;
	struct spread_host *spread;
	size_t hosts;
	struct str_list ssh; /* the words of 'run' for it */
	/* Other workloads beside the one that is searched. */
	const char *program;
	struct str_list part_data;
	struct cli_args part[CAPACITY_OTHERS_MOST];
	struct workload part_w[CAPACITY_OTHERS_MOST];
	struct capacity_other other[CAPACITY_OTHERS_MOST];
	size_t others;
};

/* ---- what is seen ---- */

struct view {
	bool quiet, terminal;
	double said_s; /* of generation, when it was last told without a terminal */
	const struct capacity *c;
	struct terminal screen;
};

/* "8 to 16": where the knee is, as far as is known. */
static void put_bracket(const struct knee *k, struct buf *out)
{
	uint32_t low = 0, high = 0;

	for (size_t i = 0; i < k->points; i++)
		if (k->point[i].fit >= k->target)
			low = k->point[i].accelerators;
		else if (!high)
			high = k->point[i].accelerators;
	if (high)
		buf_say(out, "; the knee is between %u and %u", low, high);
	else if (low)
		buf_say(out, "; at least %u", low);
}

static void put_tick(struct view *v, const struct capacity_event *ev)
{
	char took[32], all[32];
	struct buf line = {0};

	if (ev->accelerators)
		buf_say(&line, "  %u accelerator%s: %s", ev->accelerators,
			ev->accelerators == 1 ? "" : "s",
			str_seconds(ev->seconds, took, sizeof(took)));
	else if (isfinite(ev->done))
		buf_say(&line, "  generating data: %.0f %%, %s", 100 * ev->done,
			str_seconds(ev->seconds, took, sizeof(took)));
	else
		buf_say(&line, "  generating data: %s",
			str_seconds(ev->seconds, took, sizeof(took)));
	if (isfinite(ev->expected_s))
		buf_say(&line, " of about %s", str_seconds(ev->expected_s, all, sizeof(all)));
	put_bracket(&v->c->knee, &line);
	terminal_line(&v->screen, &line);
	buf_release(&line);
}

static void put_plain(struct view *v, const struct capacity_event *ev)
{
	v->said_s = ev->seconds;
	if (isfinite(ev->done))
		say(stderr, "generated %.0f %%\n", 100 * ev->done);
}

static void show_event(void *arg, const struct capacity_event *ev)
{
	struct view *v = arg;
	struct buf line = {0};
	char bytes[32];

	if (v->quiet)
		return;
	if (ev->kind == CAPACITY_TICK) {
		if (v->terminal)
			put_tick(v, ev);
		else if (!ev->accelerators && ev->seconds - v->said_s >= TOLD_EVERY_S)
			put_plain(v, ev);
		return;
	}
	if (ev->kind == CAPACITY_RUN)
		return;
	terminal_line(&v->screen, NULL);
	if (ev->kind == CAPACITY_GENERATE) {
		v->said_s = 0;
		buf_say(&line, "generating %s in '%s'",
			isfinite(ev->bytes) ? str_bytes(ev->bytes, bytes, sizeof(bytes)) : "data",
			ev->data);
	} else if (ev->kind == CAPACITY_LONGER) {
		buf_say(&line,
			"the storage stalls, or its speed varies: runs last %.3g s from here on",
			ev->seconds);
	} else if (ev->kind == CAPACITY_CHANGED && v->c->warms) {
		buf_puts(&line, "reading the same data again is faster, by a cache of the storage: "
				"runs that it may have served do not count");
	} else if (ev->kind == CAPACITY_CHANGED) {
		buf_say(&line,
			"the storage has changed: %u accelerators had AU %.1f %%, and now %.1f %%; "
			"the search begins again",
			v->c->changed_at, v->c->changed_from, v->c->changed_to);
	} else {
		capacity_put_run(ev->run, &line);
		if (ev->kind == CAPACITY_FOUND)
			buf_puts(&line, ", already measured");
		put_bracket(&v->c->knee, &line);
	}
	say(stderr, "%s\n", line.data);
	buf_release(&line);
}

/* ---- the page ---- */

/* By the command that makes pages, as a child: its findings are of single runs, and would stand
 * beside the answer. */
static int write_page(const struct capacity_options *o, struct err *e)
{
	AUTO_FREE char *page = path_join(o->folder, PAGE_NAME);
	AUTO_FREE char *log = path_join(o->folder, "page.log");
	AUTO_FREE char *title = xasprintf("Capacity: %s", o->name);
	const char *const argv[] = {o->base.program, "report", "-o", page,
				    "--title",       title,    "--", o->folder};
	struct runner_child child = {.log = log, .limit_s = PAGE_WAIT_S, .stop = &stop};
	struct str_list command = {0};
	int rc;

	for (size_t i = 0; i < sizeof(argv) / sizeof(argv[0]); i++)
		str_list_add(&command, xstrdup(argv[i]));
	rc = runner_help(&command, &child, e);
	if (rc == 0)
		unlink(log);
	return rc == 0 ? 0 : err_wrap(e, "the page was not written");
}

/* ---- the command ---- */

static int check_target(const struct workload *w, struct capacity_options *o, struct err *e)
{
	if (!(o->target > 0))
		o->target = 100 * w->metric.au;
	if (o->target > 0)
		return 0;
	return err_set(e, ERR_USAGE,
		       "capacity: metric.au is 0, so every number of accelerators meets it: give a "
		       "target with --au");
}

static int search_accelerators(const struct capacity_args *a, const struct workload *w,
			       struct capacity_options *o, struct view *view, struct err *e)
{
	struct err unwritten = {0};
	struct capacity c = {0};
	struct buf text = {0};
	int rc, page = 0;

	view->c = &c;
	rc = capacity_find(&c, w, o, show_event, view, e);
	terminal_line(&view->screen, NULL);
	if (c.complete && rc == 0)
		page = write_page(o, &unwritten);
	if (c.runs && a->json)
		json_put_document(&text, capacity_json(&c));
	else if (c.runs)
		capacity_text(&c, &text);
	if (c.runs && !a->json && c.complete)
		buf_say(&text, "\n  page: %s/%s\n", o->folder, PAGE_NAME);
	cli_print(&text);
	if (rc == 0 && page < 0) {
		rc = page;
		*e = unwritten;
	}
	capacity_release(&c);
	return rc;
}

/* --checkpoint */
static int search_writers(const struct capacity_args *a, const struct workload *w,
			  const struct capacity_options *o, struct view *view, struct err *e)
{
	const struct capacity none = {.o = o};
	struct buf text = {0};
	struct writers x;
	int rc;

	view->c = &none;
	rc = writers_find(&x, w, o, show_event, view, e);
	terminal_line(&view->screen, NULL);
	if (x.points && a->json)
		json_put_document(&text, writers_json(&x, o));
	else if (x.points)
		writers_text(&x, o, &text);
	cli_print(&text);
	return rc;
}

static int search(const struct capacity_args *a, const struct workload *w,
		  struct capacity_options *o, struct err *e)
{
	struct view view = {.quiet = a->run.quiet, .terminal = terminal_can_draw(STDERR_FILENO)};
	int rc = signals_start(&(struct signal_work){.stop = &stop, .hurries = true}, e);

	if (rc < 0)
		return rc;
	terminal_init(&view.screen, STDERR_FILENO);
	rc = a->checkpoint ? search_writers(a, w, o, &view, e)
			   : search_accelerators(a, w, o, &view, e);
	terminal_release(&view.screen);
	return rc != ERR_CANCELED ? rc
				  : err_set(e, rc,
					    "the search was interrupted; the same command with -o "
					    "'%.600s' continues it",
					    o->folder);
}

/* The words of 'run --hosts' but for the list itself. */
static int take_hosts(struct capacity_args *a, struct capacity_options *o, struct err *e)
{
	struct str_list *words = &a->ssh;
	int rc;

	if (!a->run.hosts)
		return a->run.ssh || a->run.ssh_args.n || a->run.copy_binary
			       ? err_set(e, ERR_USAGE,
					 "--ssh, --ssh-arg and --copy-binary are for --hosts, "
					 "which is missing")
			       : 0;
	rc = hosts_parse(a->run.hosts, &a->host, &a->hosts, e);
	if (rc < 0)
		return rc;
	a->spread = xcalloc(a->hosts, sizeof(*a->spread));
	for (size_t i = 0; i < a->hosts; i++)
		a->spread[i] = (struct spread_host){a->host[i].name, a->host[i].processes};
	if (a->run.ssh) {
		str_list_add(words, xstrdup("--ssh"));
		str_list_add(words, xstrdup(a->run.ssh));
	}
	for (size_t i = 0; i < a->run.ssh_args.n; i++) {
		str_list_add(words, xstrdup("--ssh-arg"));
		str_list_add(words, xstrdup(a->run.ssh_args.v[i]));
	}
	if (a->run.copy_binary)
		str_list_add(words, xstrdup("--copy-binary"));
	o->host = a->spread;
	o->hosts = a->hosts;
	o->ssh = words;
	return 0;
}

/* ---- several workloads ---- */

/* Of "NAME:8", which becomes "NAME": the number, 0 for "?". */
static int take_number(char *part, int64_t *n, struct err *e)
{
	char *colon = strrchr(part, ':');

	*n = 0;
	if (strcmp(colon, ":?") != 0 &&
	    (!str_to_i64(colon + 1, n) || *n < 1 || *n > ACCELERATORS_MAX))
		return err_set(e, ERR_USAGE,
			       "'%s': what follows the colon is a number of accelerators from 1 to "
			       "%d, or '?' for the workload whose number is searched",
			       part, ACCELERATORS_MAX);
	*colon = '\0';
	return 0;
}

/* What follows in "NAME:key=value"; NULL: it is of all workloads. *n: length of the name. */
static const char *key_of_part(const char *word, size_t *n)
{
	*n = strcspn(word, ":=");
	return *n && word[*n] == ':' ? word + *n + 1 : NULL;
}

/* The overrides of one workload: those of all, then its own. Each has a folder of data below the
 * one that is named for all. */
static void keys_of(const struct capacity_args *a, const char *name, struct str_list *keys)
{
	static const char data[] = "dataset.data_folder=";
	size_t typed = a->run.override.n - (a->run.folder != NULL), n;
	const char *folder = NULL, *rest;

	for (size_t i = 0; i < typed; i++) {
		const char *word = a->run.override.v[i];

		if (key_of_part(word, &n))
			continue;
		str_list_add(keys, xstrdup(word));
		if (strstr(word, data))
			folder = strstr(word, data) + strlen(data);
	}
	if (folder) {
		AUTO_FREE char *own = path_join(folder, name);

		override_put_text(keys, "dataset.data_folder", own);
	}
	for (size_t i = 0; i < typed; i++) {
		rest = key_of_part(a->run.override.v[i], &n);
		if (rest && strlen(name) == n && strncmp(a->run.override.v[i], name, n) == 0)
			str_list_add(keys, xstrdup(rest));
	}
}

/* The arguments of one of several workloads, as if it had been named alone. */
static int take_part(struct capacity_args *a, const char *part, int64_t n, struct cli_args *p,
		     struct err *e)
{
	*p = (struct cli_args){.workload = part,
			       .config_dir = a->run.config_dir,
			       .strict = a->run.strict,
			       .quiet = a->run.quiet,
			       .small = a->run.small,
			       .ranks = n ? n : 1,
			       .must_name = true,
			       .cfg = -1};
	keys_of(a, path_basename(part), &p->override);
	if (!a->run.data)
		return 0;
	str_list_add(&a->part_data, path_join(a->run.data, path_basename(part)));
	p->data = a->part_data.v[a->part_data.n - 1];
	return data_folder_apply(p, true, e);
}

/* The others: loaded, with what their runs are told. */
static int take_other(struct capacity_args *a, const char *part, int64_t n, struct err *e)
{
	struct capacity_other *x = &a->other[a->others];
	struct cli_args *p = &a->part[a->others];
	struct workload *w = &a->part_w[a->others];
	int rc;

	if (a->others == CAPACITY_OTHERS_MOST)
		return err_set(e, ERR_USAGE,
			       "capacity: at most %d workloads beside the one that is "
			       "searched",
			       CAPACITY_OTHERS_MOST);
	a->others++;
	rc = take_part(a, part, n, p, e);
	if (rc < 0)
		return rc;
	cli_args_shrink(p, true, false);
	rc = cli_load_workload(p, clock_wall_ns(), w, e);
	if (rc < 0)
		return rc;
	*x = (struct capacity_other){
		.base = {.program = a->program, .workload = part, .config_dir = p->config_dir},
		.name = path_basename(part),
		.accelerators = (uint32_t)n,
		.target = a->au > 0 ? a->au : 100 * w->metric.au,
		.w = w};
	if (!(x->target > 0))
		return err_set(e, ERR_USAGE,
			       "capacity: metric.au of '%s' is 0, so that it cannot miss it: give "
			       "a target with --au",
			       x->name);
	if (a->au > 0)
		override_put(&p->override, "metric.au", "%.9g", x->target / 100);
	x->base.overrides = (const char *const *)p->override.v;
	x->base.override_count = p->override.n;
	return 0;
}

static int check_names(const struct capacity_args *a, struct err *e)
{
	const struct str_list *part = &a->run.part, *keys = &a->run.override;
	size_t n;

	for (size_t i = 0; i < part->n; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(path_basename(part->v[i]), path_basename(part->v[k])) == 0)
				return err_set(e, ERR_USAGE,
					       "capacity: the workload '%s' is named twice",
					       path_basename(part->v[i]));
	for (size_t i = 0; i < keys->n; i++) {
		bool known = !key_of_part(keys->v[i], &n);

		for (size_t k = 0; k < part->n && !known; k++)
			known = strlen(path_basename(part->v[k])) == n &&
				strncmp(path_basename(part->v[k]), keys->v[i], n) == 0;
		if (!known)
			return err_set(e, ERR_USAGE,
				       "'%s': no workload '%.*s' is among those that are named "
				       "with a number ('%.*s:2') or '?'",
				       keys->v[i], (int)n, keys->v[i], (int)n, keys->v[i]);
	}
	return 0;
}

/* "A:2 B:?": what is searched gets to be the workload of the command, and the others are beside it.
 */
static int take_parts(struct capacity_args *a, struct err *e)
{
	struct str_list *part = &a->run.part;
	AUTO_FREE int64_t *n = xcalloc(part->n + 1, sizeof(*n));
	const char *searched = NULL;
	struct cli_args own;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < part->n; i++) {
		rc = take_number(part->v[i], &n[i], e);
		if (rc == 0 && n[i] == 0 && searched)
			rc = err_set(e, ERR_USAGE,
				     "capacity: the number of one workload is searched at a time, "
				     "not of '%s' and '%s'",
				     searched, part->v[i]);
		searched = n[i] == 0 ? part->v[i] : searched;
	}
	if (rc == 0 && part->n && (!searched || a->run.workload || a->checkpoint))
		rc = err_set(e, ERR_USAGE,
			     "capacity: of several workloads each has a number (%s:2), and the one "
			     "that is searched a question mark (%s:?)%s",
			     part->v[0], a->run.workload ? a->run.workload : part->v[0],
			     a->checkpoint ? "; --checkpoint is for one alone" : "");
	if (rc == 0)
		rc = check_names(a, e);
	for (size_t i = 0; rc == 0 && i < part->n; i++)
		if (n[i])
			rc = take_other(a, part->v[i], n[i], e);
	if (rc == 0 && searched) {
		rc = take_part(a, searched, 0, &own, e);
		if (a->run.folder)
			override_put_text(&own.override, "output.folder", a->run.folder);
		a->run.workload = searched;
		a->run.data = own.data;
		str_list_release(&a->run.override);
		str_list_release(&a->run.data_keys);
		a->run.override = own.override;
		a->run.data_keys = own.data_keys;
	}
	return rc;
}

static int capacity(struct capacity_args *a, struct err *e)
{
	AUTO_FREE char *program = path_of_program(e);
	struct workload w = {0};
	struct capacity_options o = {.base = {.program = program, .config_dir = a->run.config_dir},
				     .max = a->max ? (uint32_t)a->max : ACCELERATORS_DEFAULT,
				     .time_s = a->time_s > 0 ? a->time_s : TIME_DEFAULT,
				     .target = a->au,
				     .keep_data = a->keep_data,
				     .stop = &stop};
	struct str_list own = {0}, typed = {0};
	int rc = program ? launcher_refuse("capacity", "it starts the runs itself", e) : e->code;

	if (rc == 0)
		rc = take_hosts(a, &o, e);
	if (rc < 0)
		return rc;
	cli_set_console(&a->run);
	a->program = program;
	rc = take_parts(a, e);
	if (rc < 0)
		return rc;
	o.base.workload = a->run.workload;
	o.name = cli_workload_name(&a->run);
	o.small = a->run.small;
	o.other = a->other;
	o.others = a->others;
	str_list_copy(&typed, &a->run.override);
	o.typed = &typed;
	cli_args_shrink(&a->run, true, false);
	rc = cli_load_workload(&a->run, clock_wall_ns(), &w, e);
	if (rc == 0 && !a->checkpoint)
		rc = check_target(&w, &o, e);
	if (rc == 0) {
		if (!a->run.folder)
			cli_settle_folder(&w);
		/* the folder is of the search, and each run has its own */
		for (size_t i = 0; i < a->run.override.n; i++)
			if (!a->run.folder ||
			    !str_starts(a->run.override.v[i], "++workload.output.folder="))
				str_list_add(&own, xstrdup(a->run.override.v[i]));
		/* so that the runs are judged by it, too */
		if (a->au > 0)
			override_put(&own, "metric.au", "%.9g", o.target / 100);
		o.base.overrides = (const char *const *)own.v;
		o.base.override_count = own.n;
		o.folder = a->run.folder ? a->run.folder : w.run_dir;
		rc = search(a, &w, &o, e);
	}
	workload_release(&w);
	str_list_release(&own);
	str_list_release(&typed);
	return rc;
}

static int capacity_main(const struct command *c, int argc, char **argv)
{
	struct capacity_args a = {0};
	struct err e = {0};
	int rc = cli_args_parse(c, &a.run, argc, argv, &e);

	if (rc == 0)
		rc = capacity(&a, &e);
	cli_unsettle_folder();
	str_list_release(&a.ssh);
	for (size_t i = 0; i < a.others; i++) {
		workload_release(&a.part_w[i]);
		cli_args_release(&a.part[i]);
	}
	str_list_release(&a.part_data);
	free(a.spread);
	free(a.host);
	cli_args_release(&a.run);
	return rc < 0 ? cli_fail(&e) : 0;
}

#define FLAG_ARGS struct capacity_args

/* clang-format off */
static const struct flag operand_parts = F_OPERAND("NAME:N, NAME:?",
	"several workloads at once on one storage: N accelerators of each, and of the one with '?' "
	"as many as are fed beside them. NAME:key=value sets a key of one of them");

/* clang-format off */
static const struct flag *const flags[] = {
	&operand_workload, &operand_parts, &operand_key, &flag_data, &flag_small,
	F(TEXT, "--hosts", "HOSTS", run.hosts,
	  "spreads the accelerators over these hosts, as 'stoker run --hosts' does: names "
	  "separated by commas, or NAME:N for one with N times the processes. The folder of the "
	  "search (-o) and the data must be the same on all of them"),
	&flag_ssh, &flag_ssh_arg, &flag_copy_binary,
	F(COUNT, "--max", "N", max, 1, ACCELERATORS_MAX,
	  "measure no more accelerators than that (default: 1024)"),
	F(REAL, "--time", "SECONDS", time_s, 1, 1000000,
	  "training of one run, at most (default: 60); each is as short as its statistics allow"),
	F(REAL, "--au", "PERCENT", au, 1, 99, "the target (default: metric.au of the workload)"),
	F(SET, "--checkpoint", checkpoint,
	  "measure checkpoints instead, with 1, 2, 4, ... writers: the highest rates of writing "
	  "and reading, and the time of one"),
	F(TEXT, "--output", "FOLDER", run.folder,
	  "folder for the runs, capacity.json and the page capacity.html (default: "
	  "hydra.run.dir); an interrupted search in it is continued", .letter = "-o"),
	F(SET, "--keep-data", keep_data, "leave the data that was generated for the search"),
	F(SET, "--json", json, "print the content of capacity.json instead of the answer in words"),
	&flag_config_dir, &flag_strict, &flag_quiet, NULL};
/* clang-format on */

const struct command command_capacity = {
	.name = "capacity",
	.operands = "WORKLOAD|NAME:N NAME:? [key=value ...]",
	.help = "Find how many accelerators this storage keeps at the AU target.",
	.about = "Makes short runs with 1, 2, 4, ... accelerators, and then between those that "
		 "meet the target and those that miss it. Data is generated where there is none, "
		 "and evicted from the page cache before each run.",
	.flags = flags,
	.generates = true,
	.alone = true,
	.several = true,
	.examples = {"stoker capacity default train.computation_time=0.1 --max 2 "
		     "dataset.data_folder=data/search -o capacity",
		     "stoker capacity default --au 95 --max 4 -q train.computation_time=0.05 "
		     "dataset.record_length_bytes=100000 storage.store=throttle+memory "
		     "storage.throttle.bandwidth=20e6"},
	.carry_out = capacity_main,
};
