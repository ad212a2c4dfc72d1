/* The table of runs: a row of cells for each, as CSV and as JSON. */
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

/* What a run has in a column. */
struct cell {
	char *text;    /* heap; NULL: a number */
	double number; /* NaN: it has none */
};

struct row {
	struct cell *cell;
	size_t n, capacity;
};

static struct cell *add_cell(struct row *out)
{
	if (out->n == out->capacity) {
		out->capacity = 2 * out->capacity + 64;
		out->cell = xrealloc(out->cell, out->capacity * sizeof(*out->cell));
	}
	return &out->cell[out->n++];
}

static void put_text(struct row *out, const char *s)
{
	*add_cell(out) = (struct cell){.text = xstrdup(s), .number = NAN};
}

static void put_number(struct row *out, double v)
{
	*add_cell(out) = (struct cell){.number = v};
}

/* Of composed text, which is released. */
static void put_buf(struct row *out, struct buf *text)
{
	put_text(out, text->data ? text->data : "");
	buf_release(text);
}

static void row_clear(struct row *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->cell[i].text);
	r->n = 0;
}

/* The worst level, and the checks that found more than a remark. */
static void put_verdict(struct row *out, const struct audit *a, size_t i)
{
	static const char *const names[] = {
		[AUDIT_NOTE] = "ok", [AUDIT_WARN] = "warn", [AUDIT_FAIL] = "fail"};
	int level = audit_worst_of(a, i);
	struct buf found = {0};
	size_t n;
	const struct finding *f = audit_of(a, i, &n);

	put_text(out, names[level < 0 ? AUDIT_NOTE : level]);
	for (size_t k = 0; k < n; k++)
		if (f[k].level > AUDIT_NOTE)
			buf_printf(&found, "%s%s", found.len ? " " : "", f[k].check);
	put_buf(out, &found);
}

/* The checks that failed. */
static void put_failed(struct row *out, const struct audit *a, size_t i)
{
	const char *last = "";
	struct buf failed = {0};
	size_t n;
	const struct finding *f = audit_of(a, i, &n);

	for (; n; n--, f++) {
		if (f->level != AUDIT_FAIL || strcmp(f->check, last) == 0)
			continue;
		buf_printf(&failed, "%s%s", last[0] ? " " : "", f->check);
		last = f->check;
	}
	put_buf(out, &failed);
}

/* Over the epochs of a run: the standard deviation if there are enough, the least, the most. */
static void put_epochs(struct row *out, const struct run_record *r, record_measure of)
{
	size_t n;
	double *v = record_values(r, NULL, 1, of, true, &n);
	struct sample_stat s = sample_stat_of(v, n);

	put_number(out, n < SPREAD_VALUES ? NAN : s.stdev);
	put_number(out, n ? s.min : NAN);
	put_number(out, n ? s.max : NAN);
	free(v);
}

static void put_joined(struct row *out, const struct str_list *v)
{
	struct buf text = {0};

	for (size_t i = 0; v && i < v->n; i++)
		buf_printf(&text, "%s%s", i ? " " : "", v->v[i]);
	put_buf(out, &text);
}

/* "parameter" and "value" of the first override, all of them, and those that set the run apart. */
static void put_factors(struct row *out, const struct run_groups *g, size_t record)
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
	put_buf(out, &part);
	put_text(out, text[n] == '=' ? text + n + 1 : "");
	put_joined(out, factors);
	put_joined(out, x ? &x->factor : NULL);
}

/* What one accelerator needs, and what the run gave: rates are of bytes in files. */
static void put_need(struct row *out, const struct run_record *r)
{
	struct need n;

	record_need(r, &n);
	put_number(out, n.samples);
	put_number(out, n.bytes / MIB);
	put_number(out, n.bytes_at_target / MIB);
	put_number(out, r->facts.fed);
	put_text(out, r->facts.supply);
	put_number(out, r->facts.returned_rate / MIB);
}

static const char columns[] =
	"model,processes,parameter,value,overrides,factors,au_mean_percent,au_stdev_percent,"
	"throughput_mean_mib_per_s,throughput_stdev_mib_per_s,throughput_mean_samples_per_s,"
	"whole_run_au_percent,whole_run_samples_per_s,waiting_percent,other_percent,"
	"steps_per_epoch,wall_s,epochs,whole_run_au_stdev_percent,whole_run_au_least_percent,"
	"whole_run_au_most_percent,whole_run_stdev_samples_per_s,whole_run_least_samples_per_s,"
	"whole_run_most_samples_per_s,target_percent,checks,left_out,failed_checks,tool,folder,"
	"verdict,findings,need_samples_per_s,need_mib_per_s,need_at_target_mib_per_s,"
	"accelerators_fed,supply,files_mib_per_s,framework_costs_au_percent";

static void put_columns(struct buf *out)
{
	buf_puts(out, columns);
	for (size_t i = 0; i < shown_count(); i++) {
		char name[SHOWN_NAME_MAX];

		shown_name(i, name);
		buf_printf(out, ",%s", name);
	}
}

/* False: the table has no row for it. */
static bool make_row(const struct run_groups *g, size_t i, struct row *out)
{
	const struct run_record *r = &g->record[i];
	AUTO_FREE char *folder = path_absolute(r->folder);

	row_clear(out);
	if (!r->trained && !r->broken)
		return false;
	put_text(out, r->model);
	put_number(out, r->broken ? NAN : (double)r->ranks);
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
	put_text(out, audit_worst_of(g->audit, i) == AUDIT_FAIL ? "failed" : "ok");
	put_text(out, run_standing_name(g->standing[i]));
	put_failed(out, g->audit, i);
	put_text(out, r->ours ? "stoker" : "dlio");
	put_text(out, folder);
	put_verdict(out, g->audit, i);
	put_need(out, r);
	put_number(out, r->facts.costs_au);
	for (size_t k = 0; k < shown_count(); k++)
		put_number(out, record_shown(r, k));
	return true;
}

/* Escaped for people (say.h). What a spreadsheet would take for a formula begins with an
 * apostrophe, which makes it text there. */
static void put_csv(struct buf *out, const char *s)
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

void table_csv(const struct run_groups *g, struct buf *out)
{
	struct row row = {0};

	put_columns(out);
	buf_putc(out, '\n');
	for (size_t i = 0; i < g->records; i++) {
		if (!make_row(g, i, &row))
			continue;
		for (size_t k = 0; k < row.n; k++) {
			buf_puts(out, k ? "," : "");
			if (row.cell[k].text)
				put_csv(out, row.cell[k].text);
			else if (isfinite(row.cell[k].number))
				buf_printf(out, "%.10g", row.cell[k].number);
		}
		buf_putc(out, '\n');
	}
	row_clear(&row);
	free(row.cell);
}

json_t *table_json(const struct run_groups *g)
{
	json_t *list = json_array();
	struct buf names = {0};
	struct row row = {0};

	put_columns(&names);
	for (size_t i = 0; i < g->records; i++) {
		const char *name = names.data;
		json_t *o;

		if (!make_row(g, i, &row))
			continue;
		o = json_object();
		for (size_t k = 0; k < row.n; k++) {
			AUTO_FREE char *key = xstrndup(name, strcspn(name, ","));

			name += strlen(key) + (name[strlen(key)] == ',');
			json_put(o, key,
				 row.cell[k].text ? json_text(row.cell[k].text)
						  : json_number(row.cell[k].number));
		}
		json_array_append_new(list, o);
	}
	row_clear(&row);
	free(row.cell);
	buf_release(&names);
	return list;
}
