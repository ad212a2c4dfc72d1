/* The reference of all keys, written from the rows so that it cannot be out of date. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "workload/backend.h"
#include "workload/feature.h"
#include "workload/foreign.h"
#include "workload/framework_costs.h"
#include "workload/tables.h"
#include "workload/workload.h"

static const char *const type_names[] = {
	[OPT_BOOL] = "boolean",
	[OPT_I64] = "whole number",
	[OPT_F64] = "number",
	[OPT_STR] = "text",
	[OPT_ENUM] = "choice",
	[OPT_I64_LIST] = "list of whole numbers",
	[OPT_STR_LIST] = "list of texts",
	[OPT_TIME] = "time",
	[OPT_MAP] = "map",
	[OPT_NODES] = "list",
};

static const struct {
	const char *name, *text;
} sections[] = {
	{"framework", "The framework."},
	{"storage", "Where the bytes live."},
	{"dataset", "What the dataset is made of."},
	{"reader", "How it is read. A section `data_reader` replaces `reader` as a whole."},
	{"train", "The training."},
	{"evaluation", "Evaluations between epochs of the training."},
	{"checkpoint", "Checkpoints: when, what, where, and how they are written and read back."},
	{"model", "The model, of which checkpoints are made."},
	{"output", "Results."},
	{"workflow", "What a run does."},
	{"profiling", "Profilers."},
	{"metric", "Targets."},
	{"compat", "Compatibility with DLIO."},
	{"comm", "How the processes of a run meet."},
	{"run", "The program itself."},
};

static size_t section_length(const char *key)
{
	return strcspn(key, ".");
}

static void number_text(double v, char *out, size_t out_size)
{
	snprintf(out, out_size, v == floor(v) && fabs(v) < 1e16 ? "%.0f" : "%g", v);
}

/* "at least 1", "0 to 9", or nothing. */
static void range_text(const struct opt *row, char *out, size_t out_size)
{
	char min[32], max[32];

	out[0] = '\0';
	if (row->min == 0 && row->max == 0)
		return;
	number_text(row->min, min, sizeof(min));
	number_text(row->max, max, sizeof(max));
	if (row->max >= WORKLOAD_COUNT_MAX || row->max == WORKLOAD_SECONDS_MAX)
		snprintf(out, out_size, "at least %s", min);
	else
		snprintf(out, out_size, "%s to %s", min, max);
}

/* Type, unit, range or choices: "whole number of samples, at least 1". */
static void put_kind(const struct opt *row, struct buf *out)
{
	char range[80], names[1024];

	buf_puts(out, type_names[row->type]);
	if (row->unit && row->type == OPT_TIME)
		buf_puts(out, " in s, or a map");
	else if (row->unit)
		buf_printf(out, " (%s)", row->unit);
	range_text(row, range, sizeof(range));
	if (range[0])
		buf_printf(out, ", %s", range);
	for (size_t i = 0; row->choices && row->choices[i]; i++)
		buf_printf(out, "%s %s", i ? "," : ":", row->choices[i]);
	if (row->type == OPT_STR && feature_list(row->key, names, sizeof(names))[0])
		buf_printf(out, ": %s", names);
}

static void put_marks(const struct opt *row, struct buf *out)
{
	char has[256];

	if (row->flags & OPT_STOKER)
		buf_puts(out, " *Not in DLIO.*");
	if (row->flags & OPT_UNUSED)
		buf_puts(out, " *Has no effect.*");
	if (row->choices && feature_list(row->key, has, sizeof(has))[0])
		buf_printf(out, " *Supported: %s only.*", has);
	else if (row->flags & OPT_LATER)
		buf_puts(out, " *Not supported.*");
}

static void put_aliases(const struct opt *row, struct buf *out)
{
	const char *before = " Also spelt `";

	if (row->alias) {
		buf_printf(out, "%s%s`", before, row->alias);
		before = ", `";
	}
	for (const struct workload_alias *a = workload_aliases; a->alias; a++) {
		if (strcmp(a->key, row->key) == 0) {
			buf_printf(out, "%s%s`", before, a->alias);
			before = ", `";
		}
	}
	if (before[0] == ',')
		buf_puts(out, ".");
}

static const char table_head[] = "| key | type | default | meaning |\n|---|---|---|---|\n";

static void put_row(const char *prefix, const struct opt *row, struct buf *out)
{
	buf_printf(out, "| `%s%s` | ", prefix, row->key);
	put_kind(row, out);
	if (row->def && row->def[0])
		buf_printf(out, " | `%s` | ", row->def);
	else
		buf_puts(out, " | | ");
	buf_puts(out, row->help);
	put_marks(row, out);
	put_aliases(row, out);
	buf_puts(out, " |\n");
}

static const char *section_text(const char *key, size_t length)
{
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
		if (strlen(sections[i].name) == length &&
		    strncmp(sections[i].name, key, length) == 0)
			return sections[i].text;
	return "";
}

static const char intro[] =
	"# Keys of a workload\n"
	"\n"
	"A workload is one YAML file. On the command line, `key=value` sets a key; Hydra's forms\n"
	"`++workload.KEY=VALUE`, `+KEY=VALUE` and `~KEY` work too. The keys are those of DLIO "
	"unless\n"
	"marked. An unknown key is reported with the nearest known one; it is an error with "
	"`--strict`,\n"
	"and on the command line where it has neither `+` nor `++` before it, as in Hydra.\n"
	"\n"
	"A time is a number of seconds or a map: `{mean: 0.3, stdev: 0.1}`, or with `type` one of "
	"`normal`\n"
	"(mean, stdev), `uniform` (min, max), `gamma` (shape, scale), `exponential` (scale), "
	"`poisson`\n"
	"(lam) and, which DLIO has not, `pareto` (shape above 1, min).\n"
	"\n"
	"A number in bytes, bytes/s or seconds can have a unit, in files and on the command line: "
	"`40KB`,\n"
	"`64KiB`, `1.5GB`; `100MB/s`; `30ms`, `2s`, `5min`. KB, MB, GB, TB are powers of 1000, "
	"KiB, "
	"MiB,\n"
	"GiB, TiB powers of 1024. `metric.au` can be `90%`. Counts have no unit, and `40K` and "
	"`40Kb` are\n"
	"refused with what to write instead.\n"
	"\n"
	"All errors of a file and of the command line are printed at once. A key that has no "
	"effect "
	"because\n"
	"its part of the run is switched off (`checkpoint.*` without `workflow.checkpoint`) gives "
	"a "
	"warning,\n"
	"unless the switch is off at the same place: then it was meant.\n"
	"\n"
	"This page is written by the program from its own table of keys.\n";

static const char foreign_intro[] = "\n## Names of the frameworks\n\n"
				    "These names are read as keys, on the command line "
				    "(`num_workers=8`) and in files, also in a "
				    "section\n"
				    "`dataloader` or `training`. A key without its section "
				    "(`read_threads=8`) is accepted where "
				    "only one\n"
				    "section has it. The result's `notes` say what was read.\n\n";

static void put_names_of(const char *key, struct buf *out)
{
	const char *before = NULL;

	for (const struct foreign_name *f = foreign_names; f->name; f++) {
		if (!f->key || strcmp(f->key, key) != 0)
			continue;
		if (before)
			buf_puts(out, before);
		else
			buf_printf(out, "* `%s`: ", key);
		before = ", ";
		buf_printf(out, "`%s`%s%s%s", f->name, f->note ? " (" : "", f->note ? f->note : "",
			   f->note ? ")" : "");
		if (f->how == FOREIGN_SHUFFLE)
			buf_puts(out, " (true: seed, false: off)");
	}
	buf_puts(out, before ? "\n" : "");
}

static void put_foreign(struct buf *out)
{
	const char *before = "";

	buf_puts(out, foreign_intro);
	for (size_t i = 0; i < workload_row_count; i++)
		put_names_of(workload_rows[i].key, out);
	buf_puts(out, "\n`AUTOTUNE` of tf.data is -1. Arguments that have no key are refused with "
		      "what to write instead:\n");
	for (const struct foreign_name *f = foreign_names; f->name; f++)
		if (f->how == FOREIGN_HINT) {
			buf_printf(out, "%s`%s`", before, f->name);
			before = ", ";
		}
	buf_puts(out, ".\n");
}

static void put_stores(struct buf *out)
{
	buf_puts(out, "\n## Options of stores\n\n`storage.store` names a store, or shims over one "
		      "joined by `+` (`throttle+posix`). DLIO has no such options.\n");
	for (size_t i = 0; store_facts_table[i]; i++) {
		const struct store_facts *s = store_facts_table[i];
		char prefix[64];

		buf_printf(out, "\n**%s**: %s%s.\n", s->name, s->help,
			   s->flags & STORE_IS_SHIM ? " (shim)" : "");
		if (s->option_count)
			buf_printf(out, "\n%s", table_head);
		snprintf(prefix, sizeof(prefix), "storage.%.40s.", s->name);
		for (size_t k = 0; k < s->option_count; k++) {
			struct opt row = s->options[k];

			row.flags &= ~(unsigned)OPT_STOKER; /* as all of them */
			put_row(prefix, &row, out);
		}
	}
}

void workload_docs_markdown(struct buf *out)
{
	const char *last = "";

	buf_puts(out, intro);
	for (size_t i = 0; i < workload_row_count; i++) {
		const char *key = workload_rows[i].key;
		size_t n = section_length(key);

		if (n != section_length(last) || strncmp(key, last, n) != 0) {
			buf_printf(out, "\n## %.*s\n\n%s\n\n", (int)n, key, section_text(key, n));
			buf_puts(out, table_head);
		}
		put_row("", &workload_rows[i], out);
		last = key;
	}
	put_stores(out);
	costs_docs_markdown(out);
	put_foreign(out);
}

void workload_man(struct buf *out)
{
	buf_puts(out, ".SH WORKLOAD KEYS\n");
	for (size_t i = 0; i < workload_row_count; i++) {
		const struct opt *row = &workload_rows[i];
		struct buf kind = {0};

		put_kind(row, &kind);
		buf_puts(out, ".TP\n.B ");
		buf_put_roff(out, row->key);
		buf_puts(out, "\n");
		buf_put_roff(out, row->help);
		buf_puts(out, "\nType: ");
		buf_put_roff(out, kind.data);
		if (row->def && row->def[0]) {
			buf_puts(out, "; default ");
			buf_put_roff(out, row->def);
		}
		buf_puts(out, row->flags & OPT_UNUSED ? ". No effect.\n" : ".\n");
		buf_release(&kind);
	}
}
