/* stoker show: what there is to use, and what a workload means. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "base/sysinfo.h"
#include "base/system.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/show_checkpoint.h"
#include "cli/terminal.h"
#include "format/format.h"
#include "judge/verdict.h"
#include "loader/loader.h"
#include "result/result.h"
#include "store/store.h"

extern const struct command command_show;

static void print_buf(struct buf *b)
{
	fputs(b->data ? b->data : "", stdout);
	buf_release(b);
}

/* "name    text", the text in as many lines as the terminal needs. */
static void print_row(int margin, const char *name, int indent, const char *text)
{
	struct buf b = {0};
	size_t at;

	buf_printf(&b, "%*s%-*s ", margin, "", indent - margin - 1, name);
	at = b.len;
	buf_wrap(&b, text, at > (size_t)indent ? at - 1 : at, (size_t)indent,
		 (size_t)terminal_width(STDOUT_FILENO));
	print_buf(&b);
}

static int show_workloads(int argc, char **argv)
{
	struct err e = {0};

	(void)argc;
	(void)argv;
	for (const char *const *name = workload_builtin_names(); *name; name++) {
		struct workload_request req = {.workload = *name, .ranks = 1, .inspect = true};
		struct workload w = {0};
		int rc = workload_load(&w, &req, &e);

		if (rc < 0)
			printf("%-28s (%s)\n", *name, e.text);
		else
			printf("%-28s %s %s, %lld files x %lld samples, %lld a batch\n", *name,
			       w.reader.data_loader, w.dataset.format,
			       (long long)w.dataset.num_files_train,
			       (long long)w.dataset.num_samples_per_file,
			       (long long)w.reader.batch_size);
		workload_release(&w);
		req.inspect = false;
		if (rc == 0 && workload_load(&w, &req, &e) < 0)
			print_row(4, "CANNOT RUN as it is:", 25, e.text);
		workload_release(&w);
	}
	return 0;
}

static void config_man(struct buf *b)
{
	buf_puts(b,
		 ".TH STOKER 1\n.SH NAME\nstoker \\- can this storage keep its accelerators fed?\n"
		 ".SH SYNOPSIS\n");
	for (size_t i = 0; command_table[i]; i++)
		buf_printf(b, "%s.B stoker\n%s\n", i ? ".br\n" : "", command_table[i]->usage);
	buf_puts(b,
		 ".SH DESCRIPTION\nEmulates the input and output of deep\\-learning training: "
		 "generates "
		 "a dataset, reads it with the requests, order and concurrency of the framework, "
		 "waits "
		 "where accelerators would compute, and reports their utilization with verdicts on "
		 "whether the numbers can be trusted.\n.SH COMMANDS\n");
	for (size_t i = 0; command_table[i]; i++)
		buf_printf(b, ".TP\n.B %s\n%s\n", command_table[i]->name, command_table[i]->help);
	buf_printf(b, ".SH OPTIONS\n.nf\n%s.fi\n", cli_args_help);
	buf_puts(b, ".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 3 target missed or a "
		    "verdict is FAIL (with "
		    "\\-\\-check).\n");
	workload_man(b);
}

static int show_config(int argc, char **argv)
{
	struct cli_args a;
	struct workload w = {0};
	struct err e = {0};
	struct buf b = {0};
	int status = 0, rc = cli_args_parse(&a, argc, argv, &e);

	/* to look at, not to run */
	a.inspect = true;
	if (rc == 0 && a.markdown) {
		workload_docs_markdown(&b);
	} else if (rc == 0 && a.man) {
		config_man(&b);
	} else {
		if (rc == 0)
			rc = cli_load_workload(&a, clock_wall_ns(), &w, &e);
		if (rc == 0)
			workload_print(&w, a.only_set, &b);
		if (rc < 0)
			status = cli_fail(&e);
	}
	print_buf(&b);
	workload_release(&w);
	cli_args_release(&a);
	return status;
}

static void print_options(const char *prefix, const struct opt *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		AUTO_FREE char *key = xasprintf("%s%s", prefix, rows[i].key);
		AUTO_FREE char *text =
			xasprintf("%s%s%s%s", rows[i].help, rows[i].unit ? " (" : "",
				  rows[i].unit ? rows[i].unit : "", rows[i].unit ? ")" : "");

		print_row(4, key, 44, text);
	}
}

static int show_stores(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	puts("storage.store takes one of these, or shims joined to one with '+': throttle+posix\n");
	for (size_t i = 0; store_table[i]; i++) {
		const struct store_ops *s = store_table[i];
		AUTO_FREE char *help =
			xasprintf("%s%s", s->is.help, s->is.flags & STORE_IS_SHIM ? " [shim]" : "");
		char prefix[64];

		print_row(0, s->is.name, 13, help);
		snprintf(prefix, sizeof(prefix), "storage.%s.", s->is.name);
		print_options(prefix, s->is.options, s->is.option_count);
	}
	return 0;
}

static int show_formats(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (size_t i = 0; format_table[i]; i++)
		print_row(0, format_table[i]->is.name, 13, format_table[i]->is.help);
	return 0;
}

static int show_loaders(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (size_t i = 0; loader_table[i]; i++)
		print_row(0, loader_table[i]->is.name, 13, loader_table[i]->is.help);
	return 0;
}

static int show_verdicts(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (size_t i = 0; verdict_table[i]; i++)
		print_row(0, verdict_table[i]->name, 13, verdict_table[i]->help);
	return 0;
}

static int show_system(int argc, char **argv)
{
	struct system_facts s;
	struct host_facts h = {0};

	if (argc > 1 && !file_is_dir(argv[1])) {
		fprintf(stderr,
			"stoker: '%s' is not a folder: give one that exists, of the file system "
			"to be described\n",
			argv[1]);
		return 2;
	}
	host_facts_load(&h);
	system_facts_load(&s, "", argc > 1 ? argv[1] : ".");
	printf("%-32s %s\n", "host", h.hostname);
	for (size_t i = 0; i < s.pairs; i++)
		print_row(0, s.pair[i].key, 33, s.pair[i].value);
	printf("%-32s %.1f\n", "processors this may use", h.usable_cpus);
	system_facts_release(&s);
	host_facts_release(&h);
	return 0;
}

static const struct {
	const char *name;
	int (*show)(int argc, char **argv);
	const char *help;
} topics[] = {
	{"workloads", show_workloads, "the workloads built into the program"},
	{"config", show_config, "every key of a workload, its value and where it came from"},
	{"checkpoint", show_checkpoint, "what each rank of a workload's checkpoints holds"},
	{"formats", show_formats, "dataset formats"},
	{"stores", show_stores, "stores and shims, with their options"},
	{"loaders", show_loaders, "loaders"},
	{"verdicts", show_verdicts, "the checks of every run, and the question each answers"},
	{"system", show_system, "what this machine is, and the file system of a FOLDER"},
};

static int show_main(int argc, char **argv)
{
	size_t n = sizeof(topics) / sizeof(topics[0]);
	const char *names[sizeof(topics) / sizeof(topics[0])];
	const char *near;

	for (size_t i = 0; i < n; i++) {
		names[i] = topics[i].name;
		if (argc > 1 && strcmp(argv[1], topics[i].name) == 0)
			return topics[i].show(argc - 1, argv + 1);
	}
	if (argc > 1 && strcmp(argv[1], "--help") != 0 && strcmp(argv[1], "-h") != 0) {
		near = str_nearest(argv[1], names, n);
		fprintf(stderr,
			"stoker: there is nothing called '%s' to show%s%s%s; there are:", argv[1],
			near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
		for (size_t i = 0; i < n; i++)
			fprintf(stderr, "%s %s", i ? "," : "", names[i]);
		fputc('\n', stderr);
		return 2;
	}
	puts("usage: stoker show TOPIC\n");
	for (size_t i = 0; i < n; i++)
		printf("  %-10s %s\n", topics[i].name, topics[i].help);
	return argc > 1 ? 0 : 2;
}

const struct command command_show = {
	.name = "show",
	.usage = "show workloads|config|checkpoint|formats|stores|loaders|verdicts|system",
	.help = "List what there is to use, or what a workload means.",
	.alone = true,
	.main = show_main,
};
