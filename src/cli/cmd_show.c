/* stoker show: what there is to use, and what a workload means. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/say.h"
#include "base/str.h"
#include "base/vector.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/complete.h"
#include "dataset/dataset.h"
#include "format/format.h"
#include "judge/verdict.h"
#include "loader/loader.h"
#include "os/signals.h"
#include "os/sysinfo.h"
#include "os/system.h"
#include "result/fields.h"
#include "result/json_out.h"
#include "result/json_result.h"
#include "result/result.h"
#include "screen/terminal.h"
#include "store/store.h"
#include "workload/need.h"
#include "checkpoint/checkpoint_plan.h"

/* ---- what the ranks write in a checkpoint ---- */

#define RANGES_MAX 4 /* then "and more" */

struct rank_kind {
	struct checkpoint_rank_bytes bytes;
	struct {
		int64_t first, last;
	} range[RANGES_MAX];
	int ranges;
	bool more;
	int64_t last, count;
};

struct kinds {
	struct rank_kind *v;
	size_t n, room;
};

static struct rank_kind *kind_of(struct kinds *k, const struct checkpoint_rank_bytes *b)
{
	/* the next rank is most likely like the one before it */
	for (size_t i = k->n; i-- > 0;)
		if (memcmp(&k->v[i].bytes, b, sizeof(*b)) == 0)
			return &k->v[i];
	VECTOR_PUSH(k->v, k->n, k->room, (struct rank_kind){.bytes = *b, .last = -2});
	return &k->v[k->n - 1];
}

static void add_rank(struct kinds *k, int64_t rank, const struct checkpoint_rank_bytes *b)
{
	struct rank_kind *kind = kind_of(k, b);

	if (kind->last != rank - 1) {
		if (kind->ranges < RANGES_MAX) {
			kind->range[kind->ranges].first = rank;
			kind->ranges++;
		} else {
			kind->more = true;
		}
	}
	if (!kind->more)
		kind->range[kind->ranges - 1].last = rank;
	kind->last = rank;
	kind->count++;
}

static void print_kind(const struct rank_kind *k)
{
	char ranges[200] = "", size[32];
	size_t at = 0;

	for (int i = 0; i < k->ranges; i++) {
		at += (size_t)snprintf(ranges + at, sizeof(ranges) - at, "%s%" PRId64, i ? "," : "",
				       k->range[i].first);
		if (k->range[i].last > k->range[i].first)
			at += (size_t)snprintf(ranges + at, sizeof(ranges) - at, "-%" PRId64,
					       k->range[i].last);
	}
	say(stdout,
	    "%8" PRId64 "  %16" PRIu64 " %16" PRIu64 " %16" PRIu64 "  %10s %7" PRIu64 "  %s%s\n",
	    k->count, k->bytes.part[CHECKPOINT_WHOLE] + k->bytes.part[CHECKPOINT_LAYERS],
	    k->bytes.part[CHECKPOINT_OPTIMIZER], k->bytes.total,
	    str_bytes((double)k->bytes.total, size, sizeof(size)), k->bytes.files, ranges,
	    k->more ? " and more" : "");
}

static double gib(uint64_t bytes)
{
	return (double)bytes / (1 << 30);
}

static void print_when(const struct workload *w)
{
	int64_t steps = w->checkpoint.steps_between_checkpoints;
	int64_t writes = w->checkpoint.num_checkpoints_write;
	int64_t reads = w->checkpoint.num_checkpoints_read;

	say(stdout, "when   ");
	if (!w->workflow.checkpoint)
		say(stdout, "never: workflow.checkpoint is false\n");
	else if (!w->workflow.train)
		say(stdout, "nothing is trained: %" PRId64 " written, %" PRId64 " read back\n",
		    writes > 0 ? writes : 0, reads > 0 ? reads : 0);
	else if (w->checkpoint.seconds_between_checkpoints > 0)
		say(stdout,
		    "after the first step that ends at least %g s after the last checkpoint, or "
		    "training, began\n",
		    w->checkpoint.seconds_between_checkpoints);
	else if (steps > 0)
		say(stdout, "after every %" PRId64 " steps of an epoch\n", steps);
	else if (steps == 0)
		say(stdout, "never: checkpoint.steps_between_checkpoints is 0\n");
	else
		say(stdout, "after epoch %" PRId64 ", then every %" PRId64 "\n",
		    w->checkpoint.checkpoint_after_epoch, w->checkpoint.epochs_between_checkpoints);
}

static void print_plan(const struct workload *w, const struct checkpoint_plan *p)
{
	struct kinds kinds = {0};
	struct checkpoint_totals t;

	for (int64_t rank = 0; rank < p->ranks; rank++) {
		struct checkpoint_rank_bytes b;

		checkpoint_rank_size(p, rank, &b);
		add_rank(&kinds, rank, &b);
	}
	checkpoint_plan_totals(p, &t);
	say(stdout,
	    "%s: %" PRId64 " rank%s%s, tensor %" PRId64 " x pipeline %" PRId64 " x data %" PRId64
	    ", ZeRO %d",
	    w->model.name, p->ranks, p->ranks == 1 ? "" : "s",
	    w->checkpoint.mode == 1 ? " (subset)" : "", p->tensor, p->pipeline, p->data, p->zero);
	if (p->parameters && !p->predefined)
		say(stdout, ", %" PRIu64 " parameters", p->parameters);
	say(stdout, "\nfolder %s/global_epoch<E>_step<S>\n", w->checkpoint.checkpoint_folder);
	print_when(w);
	say(stdout, "\n");
	say(stdout, "%8s  %16s %16s %16s  %10s %7s  %s\n", "ranks", "model bytes",
	    "optimizer bytes", "bytes per rank", "", "files", "rank numbers");
	for (size_t i = 0; i < kinds.n; i++)
		print_kind(&kinds.v[i]);
	say(stdout,
	    "\nmodel      %18" PRIu64 " bytes  %14.6f GiB\n"
	    "optimizer  %18" PRIu64 " bytes  %14.6f GiB\n"
	    "total      %18" PRIu64 " bytes  %14.6f GiB in %" PRIu64 " file%s of %" PRIu64
	    " rank%s\n",
	    t.model_bytes, gib(t.model_bytes), t.optimizer_bytes, gib(t.optimizer_bytes),
	    t.total_bytes, gib(t.total_bytes), t.files, t.files == 1 ? "" : "s", t.writers,
	    t.writers == 1 ? "" : "s");
	if (t.ranks < t.whole_ranks)
		say(stdout,
		    "partial: the first %" PRIu64 " of the %" PRIu64 " ranks of a job whose "
		    "checkpoint has %" PRIu64 " bytes (%.3g %%)\n",
		    t.ranks, t.whole_ranks, t.whole_bytes,
		    t.whole_bytes ? 100 * (double)t.total_bytes / (double)t.whole_bytes : 0.0);
	if (t.dlio_model_bytes + t.dlio_optimizer_bytes != t.total_bytes)
		say(stdout, "in DLIO    %18" PRIu64 " bytes  %14.6f GiB (docs/compatibility.md)\n",
		    t.dlio_model_bytes + t.dlio_optimizer_bytes,
		    gib(t.dlio_model_bytes + t.dlio_optimizer_bytes));
	free(kinds.v);
}

/* --json */
static void print_totals(const struct workload *w, const struct checkpoint_plan *p)
{
	json_t *o = json_object();
	struct checkpoint_totals t;

	checkpoint_plan_totals(p, &t);
	json_put_text(o, "model", w->model.name);
	json_put_text(o, "folder", w->checkpoint.checkpoint_folder);
	json_put_int(o, "ranks", t.ranks);
	json_put_int(o, "files", t.files);
	json_put_int(o, "model_bytes", t.model_bytes);
	json_put_int(o, "optimizer_bytes", t.optimizer_bytes);
	json_put_int(o, "total_bytes", t.total_bytes);
	json_put_int(o, "bytes_of_all_ranks", t.whole_bytes);
	cli_put_json(o);
}

static int show_checkpoint(const struct command *c, int argc, char **argv)
{
	struct cli_args a;
	struct workload w = {0};
	struct checkpoint_plan p;
	struct err e = {0};
	int rc = cli_args_parse(c, &a, argc, argv, &e);

	a.inspect = true;
	if (rc == 0) {
		rc = cli_load_workload(&a, clock_wall_ns(), &w, &e);
		if (rc == 0)
			rc = checkpoint_plan_init(&p, &w, a.ranks, &e);
		if (rc == 0) {
			if (a.json)
				print_totals(&w, &p);
			else
				print_plan(&w, &p);
			checkpoint_plan_release(&p);
		}
	}
	workload_release(&w);
	cli_args_release(&a);
	return rc < 0 ? cli_fail(&e) : 0;
}

/* ---- */

/* --json: what a list says, by name; NULL: it is printed. */
static json_t *listed;

static void list_begin(bool json)
{
	listed = json ? json_object() : NULL;
	if (json)
		cli_only_json();
}

static void list_end(void)
{
	if (listed)
		cli_put_json(listed);
	listed = NULL;
}

static void print_buf(struct buf *b)
{
	say_text(stdout, b);
	buf_release(b);
}

/* "name    text", the text in as many lines as the terminal needs. */
static void print_line(int margin, const char *name, int indent, const char *text)
{
	struct buf b = {0};
	size_t at;

	buf_printf(&b, "%*s%-*s ", margin, "", indent - margin - 1, name);
	at = b.len;
	buf_wrap(&b, text, at > (size_t)indent ? at - 1 : at, (size_t)indent,
		 (size_t)terminal_width(STDOUT_FILENO));
	print_buf(&b);
}

static void print_row(int margin, const char *name, int indent, const char *text)
{
	if (listed)
		json_put_text(listed, name, text);
	else
		print_line(margin, name, indent, text);
}

/* What one accelerator of the workload needs. The bytes in files are those that its dataset would
 * have; *estimated where they depend on content, or its format is not in this version. */
static void need_of(const struct workload *w, enum need_phase phase, struct need *n,
		    bool *estimated)
{
	enum dataset_sizes how;
	double bytes = dataset_bytes_of_sample(
		w, phase == NEED_TRAINING ? DATASET_TRAIN : DATASET_EVAL, &how);

	*estimated = how == SIZES_LIKELY;
	need_find(w, phase, bytes, n);
}

/* A row of columns that end (negative: begin) at fixed places; what is too long takes room from
 * those behind it. */
static void print_columns(const char *const *cell, const int *place, size_t n)
{
	struct buf b = {0};

	for (size_t i = 0; i < n; i++) {
		int at = place[i] < 0 ? -place[i] : place[i] - (int)strlen(cell[i]);
		int pad = at - (int)b.len;

		buf_printf(&b, "%*s%s", pad > 0 ? pad : i > 0, "", cell[i]);
	}
	buf_putc(&b, '\n');
	print_buf(&b);
}

static const int workload_places[] = {0, -24, 60, 66, 76, 87, 94};
#define WORKLOAD_COLUMNS (sizeof(workload_places) / sizeof(workload_places[0]))

static void list_workload(const char *name, const struct workload *w, bool runs,
			  const struct need *n, bool estimated)
{
	json_t *o = json_object();

	json_put_text(o, "loader", w->reader.data_loader);
	json_put_text(o, "format", w->dataset.format);
	json_put_int(o, "files", (uint64_t)w->dataset.num_files_train);
	json_put_int(o, "samples_per_file", (uint64_t)w->dataset.num_samples_per_file);
	json_put_int(o, "batch_size", (uint64_t)w->reader.batch_size);
	if (n->known) {
		json_put_real(o, "needs_samples_per_s", n->samples);
		json_put_real(o, "needs_bytes_per_s", n->bytes);
		if (n->target > 0)
			json_put_real(o, "needs_bytes_per_s_at_target", n->bytes_at_target);
		json_put_bool(o, "bytes_are_estimated", estimated);
	}
	json_put_bool(o, "runs", runs);
	json_put(listed, name, o);
}

static void print_workload(const char *name, const struct workload *w, bool runs)
{
	char reader[64], files[48], batch[24], samples[24] = "-", bytes[40] = "-", target[24] = "-";
	const char *const cell[WORKLOAD_COLUMNS] = {name,    reader, files, batch,
						    samples, bytes,  target};
	bool estimated = false;
	struct need n = {0};

	snprintf(reader, sizeof(reader), "%.20s %.24s", w->reader.data_loader, w->dataset.format);
	snprintf(files, sizeof(files), "%lld x %lld", (long long)w->dataset.num_files_train,
		 (long long)w->dataset.num_samples_per_file);
	snprintf(batch, sizeof(batch), "%lld", (long long)w->reader.batch_size);
	if (w->workflow.train)
		need_of(w, NEED_TRAINING, &n, &estimated);
	if (n.known) {
		char rate[32], part[32];

		snprintf(samples, sizeof(samples), n.samples < 99.95 ? "%.1f" : "%.0f", n.samples);
		need_rate_text(n.bytes, rate, sizeof(rate));
		snprintf(bytes, sizeof(bytes), "%s%s", estimated ? "~" : "", rate);
		if (n.target > 0)
			snprintf(target, sizeof(target), "%s",
				 need_part_text(n.bytes_at_target, n.bytes, part, sizeof(part)));
	}
	if (!runs)
		snprintf(target, sizeof(target), "no");
	if (listed)
		list_workload(name, w, runs, &n, estimated);
	print_columns(cell, workload_places, WORKLOAD_COLUMNS);
}

/* Whether a run with its own keys is possible in this version. */
static bool can_run(const char *name)
{
	struct workload_request req = {.workload = name, .ranks = 1};
	struct workload w = {0};
	int rc = workload_load(&w, &req, NULL);

	if (rc == -ENOMEM)
		out_of_memory();
	workload_release(&w);
	return rc == 0;
}

struct list_args {
	const char *word; /* a filter, or a folder */
	bool json;
};

/* Those whose names have the filter in them, if there is one: a line each. */
static int print_workloads(void *args, struct err *why)
{
	const struct list_args *a = args;
	const char *filter = a->word;
	static const char *const head[WORKLOAD_COLUMNS] = {
		"workload",  "loader, format", "files x samples", "batch",
		"samples/s", "bytes/s",        "target"};
	struct err e = {0};
	size_t shown = 0;
	bool none = false;

	list_begin(a->json);
	for (const char *const *name = workload_builtin_names(); *name; name++) {
		struct workload_request req = {.workload = *name, .ranks = 1, .inspect = true};
		struct workload w = {0};
		bool runs;
		int rc;

		if (filter && !strcasestr(*name, filter))
			continue;
		if (shown++ == 0) {
			print_line(0, "One accelerator needs:", 23,
				   "samples/s and bytes/s, of bytes in files, at 100 % AU; target: "
				   "the same bytes/s at metric.au; ~ an estimate.");
			print_columns(head, workload_places, WORKLOAD_COLUMNS);
		}
		rc = workload_load(&w, &req, &e);
		if (rc == -ENOMEM)
			out_of_memory();
		runs = rc == 0 && can_run(*name);
		none = none || !runs;
		if (rc < 0)
			say(stdout, "%-28s (%s)\n", *name, e.text);
		else
			print_workload(*name, &w, runs);
		workload_release(&w);
	}
	if (none)
		print_line(0, "no:", 23,
			   "needs a feature that this version does not have; 'stoker run WORKLOAD' "
			   "says "
			   "which.");
	list_end();
	return shown ? 0
		     : err_set(why, ERR_USAGE,
			       "no built-in workload has '%.100s' in its name; 'stoker show "
			       "workloads' "
			       "lists all",
			       filter);
}

static void config_man(struct buf *b)
{
	buf_puts(b,
		 ".TH STOKER 1\n.SH NAME\nstoker \\- can this storage keep its accelerators fed?\n"
		 ".SH SYNOPSIS\n");
	for (size_t i = 0; command_table[i]; i++) {
		const struct command *c = command_table[i];

		buf_printf(b, "%s.B stoker\n%s %s\n", i ? ".br\n" : "", c->name,
			   c->operands ? c->operands : "");
	}
	buf_puts(b,
		 ".SH DESCRIPTION\nEmulates the input and output of deep\\-learning training: "
		 "generates "
		 "a dataset, reads it with the requests, order and concurrency of the framework, "
		 "waits "
		 "where accelerators would compute, and reports their utilization with verdicts on "
		 "whether the numbers can be trusted.\n.SH COMMANDS\n");
	examples_man(b, program_examples);
	commands_man(b);
	buf_puts(b, ".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 3 target missed or a "
		    "verdict is FAIL (with "
		    "\\-\\-check).\n.SH SIGNALS\n");
	signals_man(b);
	buf_puts(
		b,
		".PP\nThe same holds for processes under mpirun and srun, which get what the "
		"launcher passes on, and for a launcher that is killed.\n"
		".SH STORAGE THAT DOES NOT ANSWER\n"
		"When nothing has moved for run.watchdog seconds, a run ends, and its results "
		"are written without the storage within ten seconds, with status 1 and the "
		"reason. When the folder of results does not answer either, they are written "
		"to a new folder stoker\\-results\\-XXXXXX in $TMPDIR or /tmp, which the "
		"error message names. A process with a thread in an uninterruptible request "
		"remains until the request returns or the file system is unmounted (umount "
		"\\-f): only the kernel can end it. A launcher does not wait for it; a shell "
		"does.\n"
		".SH ENVIRONMENT\n"
		"stoker run \\-\\-hosts passes all variables STOKER_* on to the hosts. "
		"Processes that mpirun, mpiexec or srun started find each other without an MPI "
		"library where all are on one host or the launcher sets PMI_FD. Elsewhere its MPI "
		"library is loaded.\n"
		".TP\n.B STOKER_MPI\nThe path of the MPI library; or openmpi, mpich or standard: "
		"a library of that kind, found by its name; or none.\n"
		".TP\n.B STOKER_PROCESS, STOKER_PROCESSES, STOKER_ADDRESS\nThe number of this "
		"process from 0, how many there are, and HOST:PORT of process 0, for launchers "
		"that are not known (the port is 29484 where it is left out). In an Indexed Job of "
		"Kubernetes, JOB_COMPLETION_INDEX is the number.\n"
		".TP\n.B STOKER_START_LIMIT\nFor how many seconds the other processes are waited "
		"for (default 60; an MPI library has twice that).\n"
		".TP\n.B STOKER_TREE_FROM\nFrom how many processes on barriers go over a tree of "
		"connections (default 65).\n"
		".TP\n.B STOKER_INTERFACES\nThe network interfaces, networks or addresses of this "
		"host over which the others connect.\n");
	workload_man(b);
}

struct config_args {
	struct cli_args a; /* first: the rows of args.h belong to it */
	bool only_set, markdown, man;
};

/* What one accelerator needs, after the keys. */
static void put_needs(const struct workload *w, struct buf *out)
{
	static const char *const titles[] = {[NEED_TRAINING] = "one accelerator needs",
					     [NEED_EVALUATION] =
						     "one accelerator needs, evaluation"};
	const bool made[] = {[NEED_TRAINING] = w->workflow.train && !workload_only_evaluates(w),
			     [NEED_EVALUATION] = w->workflow.evaluation};

	for (int phase = 0; phase < 2 && workload_reads(w); phase++) {
		struct need n;
		char text[128];
		bool estimated;

		if (!made[phase])
			continue;
		need_of(w, (enum need_phase)phase, &n, &estimated);
		buf_printf(out, "%s%-42s %s%s\n", phase == 0 || !made[0] ? "\n" : "", titles[phase],
			   need_text(&n, text, sizeof(text)),
			   estimated && n.known ? " (bytes in files: estimated)" : "");
	}
}

static int show_config(const struct command *c, int argc, char **argv)
{
	struct config_args args = {0};
	struct cli_args *a = &args.a;
	struct workload w = {0};
	struct err e = {0};
	struct buf b = {0};
	int rc = cli_args_parse(c, a, argc, argv, &e);

	/* to look at, not to run */
	a->inspect = true;
	if (rc == 0 && args.markdown) {
		workload_docs_markdown(&b);
	} else if (rc == 0 && args.man) {
		config_man(&b);
	} else if (rc == 0) {
		if (a->json)
			cli_only_json();
		rc = cli_load_workload(a, clock_wall_ns(), &w, &e);
		if (rc == 0 && a->json)
			cli_put_json(json_configuration(&w));
		if (rc == 0)
			workload_print(&w, args.only_set, &b);
		if (rc == 0)
			put_needs(&w, &b);
	}
	print_buf(&b);
	workload_release(&w);
	cli_args_release(a);
	return rc < 0 ? cli_fail(&e) : 0;
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

static void print_stores(void)
{
	say(stdout, "storage.store is one of these; shims are put before a store with '+': "
		    "throttle+posix\n\n");
	for (size_t i = 0; store_table[i]; i++) {
		const struct store_ops *s = store_table[i];
		AUTO_FREE char *help =
			xasprintf("%s%s", s->is.help, s->is.flags & STORE_IS_SHIM ? " [shim]" : "");
		char prefix[64];

		print_row(0, s->is.name, 13, help);
		snprintf(prefix, sizeof(prefix), "storage.%s.", s->is.name);
		print_options(prefix, s->is.options, s->is.option_count);
	}
}

static void print_formats(void)
{
	for (size_t i = 0; format_table[i]; i++)
		print_row(0, format_table[i]->is.name, 21, format_table[i]->is.help);
}

static void print_loaders(void)
{
	for (size_t i = 0; loader_table[i]; i++)
		print_row(0, loader_table[i]->is.name, 13, loader_table[i]->is.help);
}

static void print_verdicts(void)
{
	for (size_t i = 0; verdict_table[i]; i++)
		print_row(0, verdict_table[i]->name, 13, verdict_table[i]->help);
}

static void print_result(void)
{
	struct buf b = {0};

	fields_markdown(&b);
	print_buf(&b);
}

/* A list takes nothing but --help and --json. */
static int show_list(const struct command *c, int argc, char **argv)
{
	struct err e = {0};
	struct list_args a = {0};
	int rc = flags_parse(c, &a, argc, argv, flags_no_operand, &e);

	if (rc == 0) {
		list_begin(a.json);
		c->list();
		list_end();
	}
	return rc < 0 ? cli_fail(&e) : 0;
}

static int print_system(void *args, struct err *e)
{
	const struct list_args *a = args;
	struct system_facts s;
	struct host_facts h = {0};
	char processors[32];

	(void)e;
	host_facts_load(&h);
	system_facts_load(&s, "", a->word ? a->word : ".");
	snprintf(processors, sizeof(processors), "%.1f", h.usable_cpus);
	list_begin(a->json);
	print_row(0, "host", 33, h.hostname);
	for (size_t i = 0; i < s.pairs; i++)
		print_row(0, s.pair[i].key, 33, s.pair[i].value);
	print_row(0, "processors available", 33, processors);
	list_end();
	system_facts_release(&s);
	host_facts_release(&h);
	return 0;
}

static int take_folder(void *args, const char *word, struct err *e)
{
	struct list_args *a = args;
	int kind;

	if (a->word)
		return err_set(e, ERR_USAGE, "'%s': the folder is already '%s'", word, a->word);
	kind = path_look(word, e);
	if (kind < 0)
		return kind;
	if (kind != PATH_FOLDER)
		return err_set(e, ERR_USAGE, "'%s' does not exist or is not a folder", word);
	a->word = word;
	return 0;
}

static int take_filter(void *args, const char *word, struct err *e)
{
	struct list_args *a = args;

	if (a->word)
		return err_set(e, ERR_USAGE, "'%s': the filter is already '%s'", word, a->word);
	a->word = word;
	return 0;
}

struct script_args {
	const char *shell;
};

static const char *script_of(const char *shell)
{
	static const struct {
		const char *shell, *text;
	} scripts[] = {
		{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};

	for (size_t i = 0; shell && i < sizeof(scripts) / sizeof(scripts[0]); i++)
		if (strcmp(scripts[i].shell, shell) == 0)
			return scripts[i].text;
	return NULL;
}

static int take_shell(void *args, const char *word, struct err *e)
{
	struct script_args *a = args;

	if (a->shell)
		return err_set(e, ERR_USAGE, "'%s': the shell is already '%s'", word, a->shell);
	if (!script_of(word))
		return err_set(e, ERR_USAGE, "'%s' is not one of bash, zsh, fish", word);
	a->shell = word;
	return 0;
}

static int print_script(void *args, struct err *e)
{
	const char *text = script_of(((const struct script_args *)args)->shell);
	struct buf b = {0};

	if (!text)
		return err_set(e, ERR_USAGE,
			       "'show completion' needs the name of a shell: bash, zsh or fish");
	buf_puts(&b, text);
	cli_print(&b);
	return 0;
}

static int show_completion(const struct command *c, int argc, char **argv)
{
	struct script_args a = {0};

	return flags_carry_out(c, &a, argc, argv, take_shell, print_script);
}

static int show_workloads(const struct command *c, int argc, char **argv)
{
	struct list_args a = {0};

	return flags_carry_out(c, &a, argc, argv, take_filter, print_workloads);
}

static int show_system(const struct command *c, int argc, char **argv)
{
	struct list_args a = {0};

	return flags_carry_out(c, &a, argc, argv, take_folder, print_system);
}

#define FLAG_ARGS struct config_args

/* clang-format off */
static const struct flag *const config_flags[] = {
	&operand_workload, &operand_key, &flag_data,
	F(SET, "--set", only_set, "only the keys that differ from their defaults"),
	&flag_ranks, &flag_config_dir, &flag_strict, &flag_quiet, &flag_print_json,
	F(SET, "--markdown", markdown, "print the reference of all keys as Markdown instead"),
	F(SET, "--man", man, "print the manual page (roff) instead"),
	NULL};
static const struct flag *const checkpoint_flags[] = {
	&operand_workload, &operand_key, &flag_ranks, &flag_config_dir, &flag_strict, &flag_quiet,
	&flag_print_json, NULL};
#undef FLAG_ARGS
#define FLAG_ARGS struct list_args
static const struct flag list_json = F_SET("--json", json,
	"print as JSON, and nothing else on standard output");
static const struct flag *const list_flags[] = {&list_json, NULL};
static const struct flag *const workloads_flags[] = {
	F(OPERAND, "FILTER", "list only those that have this in their names"),
	&list_json, NULL};
static const struct flag *const system_flags[] = {
	F(OPERAND, "FOLDER", "a folder of the file system to be described (default: .)"),
	&list_json, NULL};
static const struct flag *const completion_flags[] = {
	F(OPERAND, "SHELL", "bash, zsh or fish"), NULL};
/* clang-format on */

static const struct command workloads = {
	.name = "show workloads",
	.operands = "[FILTER]",
	.help = "List the workloads built into the program.",
	.flags = workloads_flags,
	.examples = {"stoker show workloads", "stoker show workloads h100"},
	.carry_out = show_workloads};
static const struct command config = {
	.name = "show config",
	.operands = "[WORKLOAD] [key=value ...]",
	.help = "Print every key of a workload, its value and where it came from.",
	.flags = config_flags,
	.examples = {"stoker show config unet3d_h100 --set",
		     "stoker show config unet3d_h100 -n 8 reader.read_threads=8"},
	.carry_out = show_config};
static const struct command checkpoint = {
	.name = "show checkpoint",
	.operands = "WORKLOAD [key=value ...]",
	.help = "Print what each rank would write in the checkpoints of a workload.",
	.flags = checkpoint_flags,
	.examples = {"stoker show checkpoint llama3_8b -n 8",
		     "stoker show checkpoint llama3_70b -n 64"},
	.carry_out = show_checkpoint};
static const struct command formats = {
	.name = "show formats",
	.help = "List the dataset formats.",
	.examples = {"stoker show formats", "stoker show formats | grep hdf5"},
	.flags = list_flags,
	.list = print_formats,
	.carry_out = show_list};
static const struct command stores = {
	.name = "show stores",
	.help = "List the stores and shims, with their options.",
	.examples = {"stoker show stores", "stoker show stores | grep bandwidth"},
	.flags = list_flags,
	.list = print_stores,
	.carry_out = show_list};
static const struct command loaders = {
	.name = "show loaders",
	.help = "List the loaders.",
	.examples = {"stoker show loaders", "stoker show loaders | grep pytorch"},
	.flags = list_flags,
	.list = print_loaders,
	.carry_out = show_list};
static const struct command verdicts = {
	.name = "show verdicts",
	.help = "List the checks of every run, and the question that each answers.",
	.examples = {"stoker show verdicts", "stoker show verdicts | grep cache"},
	.flags = list_flags,
	.list = print_verdicts,
	.carry_out = show_list};
static const struct command result_topic = {
	.name = "show result",
	.help = "Describe every key of result.json, as Markdown.",
	.examples = {"stoker show result", "stoker show result | grep whole_au"},
	.list = print_result,
	.carry_out = show_list};
static const struct command system_topic = {
	.name = "show system",
	.operands = "[FOLDER]",
	.help = "Describe this machine and the file system of a folder.",
	.flags = system_flags,
	.examples = {"stoker show system", "stoker show system /tmp"},
	.carry_out = show_system};
static const struct command completion = {
	.name = "show completion",
	.operands = "SHELL",
	.help = "Print the script with which a shell completes the words of this program.",
	.flags = completion_flags,
	.examples = {"stoker show completion bash", "stoker show completion fish"},
	.carry_out = show_completion};

static const struct command *const topics[] = {
	&workloads, &config,       &checkpoint,   &formats,    &stores, &loaders,
	&verdicts,  &result_topic, &system_topic, &completion, NULL};

const struct command command_show = {
	.name = "show",
	.operands = "TOPIC",
	.help = "List workloads, formats, stores ..., or explain a workload.",
	.examples = {"stoker show workloads", "stoker show config unet3d_h100 --set"},
	.subcommand = topics,
	.alone = true,
};
