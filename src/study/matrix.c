/* The matrix of a design's states. */
#include "study/study.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/file.h"
#include "base/say.h"
#include "base/str.h"
#include "base/vector.h"
#include "result/json_out.h"

#define COLUMNS_SHOWN 64
#define CELL_WIDTH 7

struct cell {
	unsigned done, failed, pending;
};

struct line {
	const char *model;
	char *factors; /* "batch_size=4", or "-" */
	struct cell *cell;
};

struct matrix {
	int64_t processes[COLUMNS_SHOWN];
	size_t columns, lines, room;
	struct line *line;
	struct cell all;
};

static int by_number(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return ORDER(*x, *y);
}

static char *factors_of(const struct design_row *r)
{
	struct buf text = {0};

	if (r->why.code) /* what cannot be read is shown as it is */
		buf_say(&text, "%s", r->typed);
	for (size_t i = 0; !r->why.code && i < r->overrides.n; i++) {
		const char *s = r->overrides.v[i], *equal = strchr(s, '=');
		size_t begin = equal ? (size_t)(equal - s) : strlen(s);

		while (begin > 0 && !strchr(".+~", s[begin - 1]))
			begin--;
		buf_say(&text, "%s%s", i ? " " : "", s + begin);
	}
	if (text.len == 0)
		buf_puts(&text, "-");
	return buf_take(&text);
}

static size_t column_of(struct matrix *m, int64_t processes)
{
	for (size_t i = 0; i < m->columns; i++)
		if (m->processes[i] == processes)
			return i;
	if (m->columns == COLUMNS_SHOWN)
		return SIZE_MAX;
	m->processes[m->columns++] = processes;
	return m->columns - 1;
}

static struct line *line_of(struct matrix *m, const struct design_row *r)
{
	AUTO_FREE char *factors = factors_of(r);

	for (size_t i = 0; i < m->lines; i++)
		if (strcmp(m->line[i].model, r->model) == 0 &&
		    strcmp(m->line[i].factors, factors) == 0)
			return &m->line[i];
	VECTOR_PUSH(m->line, m->lines, m->room,
		    {.model = r->model,
		     .factors = xstrdup(factors),
		     .cell = xcalloc(COLUMNS_SHOWN, sizeof(struct cell))});
	return &m->line[m->lines - 1];
}

static void count(struct cell *c, enum run_state state)
{
	c->done += state == RUN_DONE;
	c->failed += state == RUN_BAD;
	c->pending += state == RUN_PENDING;
}

static unsigned cell_runs(const struct cell *c)
{
	return c->done + c->failed + c->pending;
}

static void matrix_build(struct matrix *m, const struct study_plan *p,
			 const struct row_status *status)
{
	*m = (struct matrix){0};
	for (size_t i = 0; i < p->design.rows; i++)
		column_of(m, p->design.row[i].processes);
	qsort(m->processes, m->columns, sizeof(*m->processes), by_number);
	for (size_t i = 0; i < p->design.rows; i++)
		line_of(m, &p->design.row[i]);
	for (size_t i = 0; i < p->experiments; i++) {
		const struct design_row *r = &p->design.row[p->experiment[i].row];
		struct line *l = line_of(m, r);
		size_t c = column_of(m, r->processes);
		struct cell unseen = {0};
		struct cell *cell = c == SIZE_MAX ? &unseen : &l->cell[c];

		count(cell, status[i].state);
		count(&m->all, status[i].state);
	}
}

json_t *study_status_json(const struct study_plan *p, const struct row_status *status)
{
	static const char *const names[] = {
		[RUN_PENDING] = "pending", [RUN_DONE] = "done", [RUN_BAD] = "failed"};
	json_t *root = json_object(), *rows = json_array();
	struct cell all = {0};

	for (size_t i = 0; i < p->experiments; i++) {
		const struct experiment *x = &p->experiment[i];
		const struct row_status *s = &status[i];
		const char *why = s->reason[0] ? s->reason : x->why.code ? x->why.text : NULL;
		json_t *o = json_object();

		count(&all, s->state);
		json_put_int(o, "line", p->design.row[x->row].line);
		json_put_text(o, "model", x->model);
		json_put_int(o, "processes", (uint64_t)x->processes);
		json_put(o, "overrides", json_texts(&p->design.row[x->row].overrides));
		json_put_int(o, "repeat", x->repeat);
		json_put_text(o, "state", names[s->state]);
		json_put_text(o, "folder", x->folder);
		if (s->seconds > 0)
			json_put_real(o, "seconds", s->seconds);
		if (why && s->state != RUN_DONE)
			json_put_text(o, "why", why);
		json_array_append_new(rows, o);
	}
	json_put_int(root, "done", all.done);
	json_put_int(root, "failed", all.failed);
	json_put_int(root, "pending", all.pending);
	json_put(root, "rows", rows);
	return root;
}

static void matrix_release(struct matrix *m)
{
	for (size_t i = 0; i < m->lines; i++) {
		free(m->line[i].factors);
		free(m->line[i].cell);
	}
	free(m->line);
}

/* "done", "2/5", "F" ... in at most 8 characters. */
static void cell_text(const struct cell *c, char out[16])
{
	unsigned all = cell_runs(c);

	if (all == 0)
		snprintf(out, 16, "%s", "");
	else if (c->failed)
		snprintf(out, 16, all > 1 ? "F %u/%u" : "F", c->done, all);
	else if (c->pending == all)
		snprintf(out, 16, "N");
	else if (c->done == all)
		snprintf(out, 16, all > 1 ? "Y %u" : "Y", all);
	else
		snprintf(out, 16, "%u/%u", c->done, all);
}

static const char *cell_color(const struct cell *c)
{
	return c->failed ? "\033[31;1m" : c->pending ? "\033[33m" : "\033[32m";
}

static int least(size_t a, size_t b)
{
	return (int)(a < b ? a : b);
}

/* How much of a text goes into a column. */
static int cut(const char *s, int columns)
{
	size_t n = strlen(s);

	return (int)(n > (size_t)columns ? utf8_whole(s, (size_t)columns) : n);
}

/* One line of the matrix, as many of the terminal as its texts need. */
static void put_line(const struct line *l, int model, int factors, size_t first, size_t end,
		     bool color, struct buf *out)
{
	const char *m = l->model[0] ? l->model : "(none)", *f = l->factors;
	bool begin = true;

	while (begin || *m || *f) {
		int mn = cut(m, model), fn = cut(f, factors);

		buf_say(out, "%-*.*s  %-*.*s", model, mn, m, begin ? factors : 0, fn, f);
		for (size_t c = first; begin && c < end; c++) {
			const struct cell *cell = &l->cell[c];
			char text[16];

			cell_text(cell, text);
			buf_putc(out, ' ');
			buf_puts(out, color && text[0] ? cell_color(cell) : "");
			buf_say(out, "%6s", text);
			buf_puts(out, color && text[0] ? "\033[0m" : "");
		}
		buf_putc(out, '\n');
		begin = false;
		m += mn;
		f += fn;
	}
}

static void put_reasons(const struct study_plan *p, const struct row_status *status,
			struct buf *out)
{
	AUTO_FREE char *file = state_path(p);

	for (size_t i = 0; i < p->experiments; i++) {
		const struct experiment *x = &p->experiment[i];
		size_t line = p->design.row[x->row].line;

		if (status[i].state == RUN_DONE)
			continue;
		if (x->why.code && x->repeat == 1)
			buf_say(out, "line %zu cannot run: %s\n", line, x->why.text);
		else if (!x->why.code && status[i].reason[0])
			buf_say(out, "line %zu, run %u failed: %s\n", line, x->repeat,
				status[i].reason);
	}
	if (path_look(file, NULL) != PATH_ABSENT)
		buf_say(out, "all runs, their times and reasons: %s\n", file);
}

void study_matrix_text(const struct study_plan *p, const struct row_status *status, bool color,
		       int width, struct buf *out)
{
	struct matrix m;
	size_t model = 6, factors = 9, fit;
	int mw, fw;

	matrix_build(&m, p, status);
	for (size_t i = 0; i < m.lines; i++) {
		RAISE(model, strlen(m.line[i].model));
		RAISE(factors, strlen(m.line[i].factors));
	}
	width = width < 60 ? 60 : width;
	mw = least(model, (size_t)width / 3);
	/* the columns of at least two numbers of processes fit */
	fw = least(factors, (size_t)(width - mw - 2 - 13 - CELL_WIDTH * least(m.columns, 2)));
	fit = (size_t)(width - mw - 2 - fw - 13) / CELL_WIDTH;
	for (size_t first = 0; first < m.columns; first += fit) {
		size_t end = m.columns - first > fit ? first + fit : m.columns;

		buf_say(out, "%s%-*s  %-*s", first ? "\n" : "", mw, "model", fw, "overrides");
		for (size_t c = first; c < end; c++)
			if (m.processes[c] > 0)
				buf_say(out, " %6lld", (long long)m.processes[c]);
			else
				buf_puts(out, "      ?");
		buf_puts(out, "  (processes)\n");
		for (size_t i = 0; i < m.lines; i++)
			put_line(&m.line[i], mw, fw, first, end, color, out);
	}
	buf_say(out, "\n%u runs: %u done (Y), %u failed (F), %u pending (N)\n", cell_runs(&m.all),
		m.all.done, m.all.failed, m.all.pending);
	put_reasons(p, status, out);
	matrix_release(&m);
}

void study_matrix_svg(const struct study_plan *p, const struct row_status *status, struct buf *out)
{
	const int left = 520, cell_w = 64, cell_h = 26, top = 70;
	struct matrix m;
	int width, height;

	matrix_build(&m, p, status);
	width = left + cell_w * (int)m.columns + 20;
	height = top + cell_h * (int)m.lines + 50;
	buf_say(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
		"<text x=\"12\" y=\"26\" font-size=\"16\">%u runs: %u done, %u failed, %u "
		"pending</text>\n",
		width, height, width, height, cell_runs(&m.all), m.all.done, m.all.failed,
		m.all.pending);
	for (size_t c = 0; c < m.columns; c++)
		buf_say(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%lld</text>\n",
			left + cell_w * (int)c + cell_w / 2, top - 10, (long long)m.processes[c]);
	for (size_t i = 0; i < m.lines; i++) {
		int y = top + cell_h * (int)i;

		buf_say(out, "<text x=\"12\" y=\"%d\">", y + 18);
		buf_put_markup(out, m.line[i].model);
		buf_puts(out, "  ");
		buf_put_markup(out, m.line[i].factors);
		buf_puts(out, "</text>\n");
		for (size_t c = 0; c < m.columns; c++) {
			const struct cell *cell = &m.line[i].cell[c];
			const char *fill = cell->failed    ? "#f4b6b0"
					   : cell->pending ? "#d7dce2"
							   : "#b5ddb5";
			char text[16];

			cell_text(cell, text);
			if (!text[0])
				continue;
			buf_say(out,
				"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\" "
				"fill=\"%s\"/><text x=\"%d\" y=\"%d\" "
				"text-anchor=\"middle\">%s</text>\n",
				left + cell_w * (int)c + 2, y + 2, cell_w - 4, cell_h - 4, fill,
				left + cell_w * (int)c + cell_w / 2, y + 18, text);
		}
	}
	buf_say(out,
		"<text x=\"12\" y=\"%d\" fill=\"#555\">columns: processes; Y done, N pending, F "
		"failed</text>\n</svg>\n",
		height - 16);
	matrix_release(&m);
}
