/* The table of runs as CSV. */
#include "readback/groups.h"
#include "base/say.h"
#include "readback/record_measures.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "result/json_out.h"

static const double MIB = 1048576;

/* Escaped for people (say.h). What a spreadsheet would take for a formula begins with an
 * apostrophe, which makes it text there. */
static void put_text(struct buf *out, const char *s)
{
	struct buf text = {0};

	buf_puts(&text, s[0] && strchr("=+-@", s[0]) ? "'" : "");
	buf_put_said(&text, s, strlen(s), SAY_LINE);
	if (!strpbrk(text.data, ",\"")) {
		buf_puts(out, text.data);
	} else {
		buf_putc(out, '"');
		for (const char *c = text.data; *c; c++) {
			if (*c == '"')
				buf_putc(out, '"');
			buf_putc(out, *c);
		}
		buf_putc(out, '"');
	}
	buf_release(&text);
}

static void put_number(struct buf *out, double v)
{
	buf_putc(out, ',');
	if (isfinite(v))
		buf_printf(out, "%.10g", v);
}

/* The worst level, and the checks that found more than a remark. */
static void put_verdict(struct buf *out, const struct audit *a, size_t i)
{
	static const char *const names[] = {
		[AUDIT_NOTE] = "ok", [AUDIT_WARN] = "warn", [AUDIT_FAIL] = "fail"};
	int level = audit_worst_of(a, i);
	const char *sep = "";
	size_t n;
	const struct finding *f = audit_of(a, i, &n);

	buf_printf(out, ",%s,", names[level < 0 ? AUDIT_NOTE : level]);
	for (size_t k = 0; k < n; k++)
		if (f[k].level > AUDIT_NOTE) {
			buf_printf(out, "%s%s", sep, f[k].check);
			sep = " ";
		}
}

/* The checks that failed. */
static void put_failed(struct buf *out, const struct audit *a, size_t i)
{
	const char *last = "";
	size_t n;
	const struct finding *f = audit_of(a, i, &n);

	buf_putc(out, ',');
	for (; n; n--, f++) {
		if (f->level != AUDIT_FAIL || strcmp(f->check, last) == 0)
			continue;
		buf_printf(out, "%s%s", last[0] ? " " : "", f->check);
		last = f->check;
	}
}

/* Over the epochs of a run: the standard deviation if there are enough, the least, the most. */
static void put_epochs(struct buf *out, const struct run_record *r, record_measure of)
{
	size_t n;
	double *v = record_values(r, NULL, 1, of, true, &n);
	struct sample_stat s = sample_stat_of(v, n);

	put_number(out, n < SPREAD_VALUES ? NAN : s.stdev);
	put_number(out, n ? s.min : NAN);
	put_number(out, n ? s.max : NAN);
	free(v);
}

static void put_joined(struct buf *out, const struct str_list *v)
{
	struct buf text = {0};

	for (size_t i = 0; v && i < v->n; i++)
		buf_printf(&text, "%s%s", i ? " " : "", v->v[i]);
	buf_putc(out, ',');
	put_text(out, text.data ? text.data : "");
	buf_release(&text);
}

/* "parameter" and "value" of the first override, all of them, and those that set the run apart. */
static void put_factors(struct buf *out, const struct run_groups *g, size_t record)
{
	const struct str_list *factors = &g->record[record].factors;
	const struct run_group *x = g->of[record] == SIZE_MAX ? NULL : &g->group[g->of[record]];
	struct buf part = {0};
	const char *text = factors->n ? factors->v[0] : "";
	size_t n = strcspn(text, "=");
	size_t begin = n;

	while (begin > 0 && text[begin - 1] != '.')
		begin--;
	buf_append(&part, text + begin, n - begin);
	buf_putc(out, ',');
	put_text(out, part.data ? part.data : "");
	buf_putc(out, ',');
	put_text(out, text[n] == '=' ? text + n + 1 : "");
	buf_release(&part);
	put_joined(out, factors);
	put_joined(out, x ? &x->factor : NULL);
}

/* What one accelerator needs, and what the run gave: rates are of bytes in files. */
static void put_need(struct buf *out, const struct run_record *r)
{
	struct need n;

	record_need(r, &n);
	put_number(out, n.samples);
	put_number(out, n.bytes / MIB);
	put_number(out, n.bytes_at_target / MIB);
	put_number(out, r->facts.fed);
	buf_printf(out, ",%s", r->facts.supply);
	put_number(out, r->facts.returned_rate / MIB);
}

void table_csv(const struct run_groups *g, struct buf *out)
{
	buf_puts(out,
		 "model,processes,parameter,value,overrides,factors,au_mean_percent,au_stdev_"
		 "percent,"
		 "throughput_mean_mib_per_s,throughput_stdev_mib_per_s,"
		 "throughput_mean_samples_per_s,whole_run_au_percent,"
		 "whole_run_samples_per_s,waiting_percent,other_percent,steps_per_epoch,wall_s,"
		 "epochs,whole_run_au_stdev_percent,whole_run_au_least_percent,"
		 "whole_run_au_most_percent,whole_run_stdev_samples_per_s,"
		 "whole_run_least_samples_per_s,whole_run_most_samples_per_s,target_percent,"
		 "checks,left_out,failed_checks,tool,folder,verdict,findings,need_samples_per_s,"
		 "need_mib_per_s,need_at_target_mib_per_s,accelerators_fed,supply,"
		 "files_mib_per_s,framework_costs_au_percent");
	for (size_t i = 0; i < shown_count(); i++) {
		char name[SHOWN_NAME_MAX];

		shown_name(i, name);
		buf_printf(out, ",%s", name);
	}
	buf_putc(out, '\n');
	for (size_t i = 0; i < g->records; i++) {
		const struct run_record *r = &g->record[i];

		if (!r->trained && !r->broken)
			continue;
		put_text(out, r->model);
		buf_puts(out, ",");
		if (!r->broken)
			buf_printf(out, "%u", r->ranks);
		put_factors(out, g, i);
		put_number(out, r->au.mean);
		put_number(out, r->au.stdev);
		put_number(out, r->io.mean);
		put_number(out, r->io.stdev);
		put_number(out, r->throughput.mean);
		put_number(out, record_whole_run_au(r));
		put_number(out, record_whole_throughput(r));
		put_number(out, r->facts.wait_share);
		put_number(out, r->facts.other_share);
		put_number(out, r->broken ? NAN : (double)r->facts.steps);
		put_number(out, r->end_s - r->begin_s);
		put_number(out, r->broken ? NAN : (double)r->au.n);
		put_epochs(out, r, record_whole_au);
		put_epochs(out, r, record_whole_rate);
		put_number(out, r->facts.target);
		buf_printf(out, ",%s,%s",
			   audit_worst_of(g->audit, i) == AUDIT_FAIL ? "failed" : "ok",
			   run_standing_name(g->standing[i]));
		put_failed(out, g->audit, i);
		buf_printf(out, ",%s,", r->ours ? "stoker" : "dlio");
		AUTO_FREE char *folder = path_absolute(r->folder);

		put_text(out, folder);
		put_verdict(out, g->audit, i);
		put_need(out, r);
		put_number(out, r->facts.costs_au);
		for (size_t k = 0; k < shown_count(); k++)
			put_number(out, record_shown(r, k));
		buf_putc(out, '\n');
	}
}

/* The cell at *at, unquoted; *at: the next one, or the end of the line. */
static void take_cell(const char **at, struct buf *cell)
{
	const char *c = *at;
	bool quoted = *c == '"';

	buf_reset(cell);
	buf_puts(cell, "");
	for (c += quoted; *c && *c != '\n' && (quoted || *c != ','); c++) {
		if (quoted && *c == '"' && *++c != '"')
			break;
		buf_putc(cell, *c);
	}
	*at = *c == ',' ? c + 1 : c;
}

static json_t *cell_json(const char *name, const char *cell)
{
	static const char *const texts[] = {"model",   "parameter", "value",    "overrides",
					    "factors", "checks",    "left_out", "failed_checks",
					    "tool",    "folder",    "verdict",  "findings",
					    "supply",  NULL};
	bool formula = cell[0] == '\'' && cell[1] && strchr("=+-@", cell[1]);

	for (const char *const *t = texts; *t; t++)
		if (strcmp(name, *t) == 0)
			return json_text(cell + formula);
	return cell[0] ? json_number(strtod(cell, NULL)) : json_null();
}

json_t *table_json(const struct run_groups *g)
{
	struct buf text = {0}, name = {0}, cell = {0};
	json_t *list = json_array();
	const char *line;

	table_csv(g, &text);
	line = strchr(text.data, '\n') + 1;
	while (*line) {
		const char *head = text.data;
		json_t *o = json_object();

		while (*head != '\n') {
			take_cell(&head, &name);
			take_cell(&line, &cell);
			json_put(o, name.data, cell_json(name.data, cell.data));
		}
		line += *line == '\n';
		json_array_append_new(list, o);
	}
	buf_release(&text);
	buf_release(&name);
	buf_release(&cell);
	return list;
}
