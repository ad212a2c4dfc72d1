/* The design's CSV: read by column names, saved with nothing changed but the states. */
#include "study/design.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "base/vector.h"
#include "conf/override.h"
#include "workload/foreign.h"
#include "workload/key.h"

#define DESIGN_BYTES_MAX (16u << 20)
#define ROWS_MAX 100000
#define COLUMNS_MAX 256
#define REPEAT_MAX 10000

enum column { MODEL, EPOCHS, PROCESSES, OVERRIDES, REPEAT, RUN, COLUMNS };

static const char *const names[COLUMNS] = {"model",     "epochs", "processes",
					   "overrides", "repeat", "run"};

static const char *const states[] = {"N", "Y", "F"};

/* ---- fields of a line ---- */

struct field {
	size_t begin, end; /* its place in the line, quotes included */
	char *text;        /* unquoted, trimmed */
};

struct fields {
	struct field v[COLUMNS_MAX];
	size_t n;
};

static void fields_release(struct fields *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->v[i].text);
	f->n = 0;
}

static size_t line_length(const char *line)
{
	return strcspn(line, "\r\n");
}

static char *trimmed(const char *s, size_t n)
{
	while (n && isspace((unsigned char)*s)) {
		s++;
		n--;
	}
	while (n && isspace((unsigned char)s[n - 1]))
		n--;
	return xstrndup(s, n);
}

/* One field from line[at]; the place after it (a comma or the end). No text: a quote is not closed.
 */
static size_t take_field(const char *line, size_t at, size_t end, struct field *f)
{
	size_t p = at;

	f->begin = at;
	f->text = NULL;
	while (p < end && (line[p] == ' ' || line[p] == '\t'))
		p++;
	if (p < end && line[p] == '"') {
		struct buf text = {0};

		for (p++; p < end; p++) {
			if (line[p] != '"')
				buf_putc(&text, line[p]);
			else if (p + 1 < end && line[p + 1] == '"')
				buf_putc(&text, line[p++]);
			else
				break;
		}
		if (p == end) {
			buf_release(&text);
			return 0;
		}
		for (p++; p < end && line[p] != ','; p++)
			;
		f->text = buf_take(&text);
	} else {
		while (p < end && line[p] != ',')
			p++;
		f->text = trimmed(line + at, p - at);
	}
	f->end = p;
	return p;
}

static int split_line(const struct design *d, size_t index, struct fields *out, struct err *e)
{
	const char *line = d->lines.v[index];
	size_t end = line_length(line), at = 0;

	out->n = 0;
	for (;;) {
		struct field *f = &out->v[out->n];
		size_t next;

		if (out->n == COLUMNS_MAX)
			return err_set(e, ERR_USAGE, "%s: line %zu: more than %d columns", d->path,
				       index + 1, COLUMNS_MAX);
		next = take_field(line, at, end, f);
		if (!f->text)
			return err_set(e, ERR_USAGE,
				       "%s: line %zu, column %zu: the quote is not closed", d->path,
				       index + 1, at + 1);
		out->n++;
		if (next >= end)
			return 0;
		at = next + 1;
	}
}

/* ---- overrides ---- */

static bool closes(char open, char c)
{
	return (open == '[' && c == ']') || (open == '{' && c == '}') || (open == '(' && c == ')');
}

int design_split_overrides(const char *text, struct str_list *out, struct err *e)
{
	const char *p = text;

	while (*p) {
		const char *begin;
		char stack[64], quote = 0;
		int depth = 0;
		struct override o;
		char *word;
		int rc;

		p += strspn(p, " \t");
		begin = p;
		for (; *p && (quote || depth || (*p != ' ' && *p != '\t')); p++) {
			if (*p == '\\' && p[1])
				p++;
			else if (quote)
				quote = *p == quote ? 0 : quote;
			else if (*p == '\'' || *p == '"')
				quote = *p;
			else if (strchr("[{(", *p) && depth < (int)sizeof(stack))
				stack[depth++] = *p;
			else if (depth && closes(stack[depth - 1], *p))
				depth--;
		}
		if (p == begin)
			break;
		word = xstrndup(begin, (size_t)(p - begin));
		if (!strchr("+~", word[0]) && !strchr(word, '='))
			rc = err_set(e, ERR_USAGE, "'%s' is not an override (key=value)", word);
		else
			rc = override_parse(word, &o, e);
		if (rc < 0) {
			free(word);
			return rc;
		}
		override_release(&o);
		str_list_add(out, word);
	}
	return 0;
}

/* ---- rows ---- */

static int read_number(const struct design *d, size_t line, const char *name, const char *text,
		       int64_t most, int64_t *out, struct err *e)
{
	if (!text[0])
		return 0;
	if (str_to_i64(text, out) && *out >= 1 && *out <= most)
		return 0;
	*out = 0;
	return err_set(e, ERR_USAGE, "%s: line %zu: %s: '%s' is not a whole number from 1 to %lld",
		       d->path, line, name, text, (long long)most);
}

static int take_state(const struct design *d, struct design_row *r, const char *text, struct err *e)
{
	if (!text[0])
		return 0;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (strcasecmp(text, states[i]) != 0)
			continue;
		r->state = (enum design_state)i;
		return 0;
	}
	return err_set(e, ERR_USAGE,
		       "%s: line %zu: run: '%s' is not one of N (pending), Y (done), F (failed)",
		       d->path, r->line, text);
}

/* What one row says wrong is that row's failure, like a workload that does not exist. */
static void take_values(const struct design *d, struct design_row *r, const char *const text[])
{
	struct err *e = &r->why;
	int rc = 0;

	if (!r->model[0])
		rc = err_set(e, ERR_USAGE, "%s: line %zu: the row has no model", d->path, r->line);
	if (rc == 0 && !text[PROCESSES][0])
		rc = err_set(e, ERR_USAGE, "%s: line %zu: the row has no number of processes",
			     d->path, r->line);
	if (rc == 0)
		rc = read_number(d, r->line, "processes", text[PROCESSES], DESIGN_PROCESSES_MAX,
				 &r->processes, e);
	if (rc == 0)
		rc = read_number(d, r->line, "epochs", text[EPOCHS], 1000000, &r->epochs, e);
	if (rc == 0)
		rc = read_number(d, r->line, "repeat", text[REPEAT], REPEAT_MAX, &r->repeat, e);
	if (rc == 0 && design_split_overrides(text[OVERRIDES], &r->overrides, e) < 0)
		err_wrap(e, "%s: line %zu: overrides", d->path, r->line);
}

static int take_row(struct design *d, size_t index, const int column[COLUMNS], struct err *e)
{
	struct fields f;
	struct design_row *r;
	const char *text[COLUMNS];
	int rc = split_line(d, index, &f, e);

	if (rc < 0) {
		fields_release(&f);
		return rc;
	}
	for (int i = 0; i < COLUMNS; i++)
		text[i] = column[i] >= 0 && (size_t)column[i] < f.n ? f.v[column[i]].text : "";
	r = VECTOR_ADD(d->row, d->rows, d->room);
	r->line = index + 1;
	r->model = xstrdup(text[MODEL]);
	r->typed = xstrdup(text[OVERRIDES]);
	rc = take_state(d, r, text[RUN], e);
	if (rc == 0)
		take_values(d, r, text);
	fields_release(&f);
	return rc;
}

/* Whether somebody who names a column like this means a key of the workload. */
static bool is_key(const char *name)
{
	const struct foreign_name *f = foreign_find(name);
	char several[512];

	if (str_starts(name, "workload."))
		name += strlen("workload.");
	return workload_key_row(name) || (f && f->key) ||
	       foreign_bare_key(name, several, sizeof(several)) ||
	       (strchr(name, '.') && foreign_nearest_key(name));
}

static void note_unread(struct design *d, const struct fields *f, const int column[COLUMNS])
{
	for (size_t k = 0; k < f->n; k++) {
		bool read = false;

		for (int i = 0; i < COLUMNS; i++)
			read = read || column[i] == (int)k;
		if (!read && is_key(f->v[k].text))
			str_list_add(&d->unread, xstrdup(f->v[k].text));
	}
}

/* Somebody's note, or a column of ours with a slip? */
static int check_names(const struct design *d, const struct fields *f, const int column[COLUMNS],
		       struct err *e)
{
	const char *missing[COLUMNS];
	size_t n = 0;

	for (int i = 0; i < COLUMNS; i++)
		if (column[i] < 0)
			missing[n++] = names[i];
	for (size_t k = 0; k < f->n; k++) {
		const char *near = str_nearest(f->v[k].text, missing, n);
		bool read = false;

		for (int i = 0; i < COLUMNS; i++)
			read = read || column[i] == (int)k;
		if (near && !read && !is_key(f->v[k].text))
			return err_set(e, ERR_USAGE,
				       "%s: line %zu: no column is named '%s': did you mean '%s'?",
				       d->path, d->header + 1, f->v[k].text, near);
	}
	return 0;
}

static int take_header(struct design *d, size_t index, int column[COLUMNS], struct err *e)
{
	struct fields f;
	int rc = split_line(d, index, &f, e);

	for (int i = 0; i < COLUMNS; i++) {
		column[i] = -1;
		for (size_t k = 0; rc == 0 && k < f.n; k++)
			if (strcasecmp(f.v[k].text, names[i]) == 0 && column[i] >= 0)
				rc = err_set(e, ERR_USAGE,
					     "%s: line %zu: two columns are named '%s': rename or "
					     "remove one of them",
					     d->path, index + 1, names[i]);
			else if (strcasecmp(f.v[k].text, names[i]) == 0)
				column[i] = (int)k;
	}
	d->header = index;
	d->column_run = column[RUN];
	/* one alone may be all of them with another separator */
	if (rc == 0 && f.n > 1)
		rc = check_names(d, &f, column, e);
	for (int i = MODEL; rc == 0 && i <= PROCESSES; i += PROCESSES - MODEL)
		if (column[i] < 0)
			rc = err_set(e, ERR_USAGE,
				     "%s: line %zu: the first line must name the columns, and '%s' "
				     "is missing (columns are separated by commas)",
				     d->path, index + 1, names[i]);
	if (rc == 0)
		note_unread(d, &f, column);
	fields_release(&f);
	return rc;
}

static bool is_blank(const char *line)
{
	line += strspn(line, " \t");
	return *line == '#' || *line == '\r' || *line == '\n' || *line == '\0';
}

static int take_lines(struct design *d, const char *text, size_t n, struct err *e)
{
	int column[COLUMNS];
	bool named = false;
	size_t at = 0;

	if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		at = 3; /* the mark that spreadsheets write first; it is not kept */
	if (memchr(text, '\0', n))
		return err_set(e, ERR_USAGE, "%s: not a text file", d->path);
	while (at < n) {
		const char *end = memchr(text + at, '\n', n - at);
		size_t len = end ? (size_t)(end - text) - at + 1 : n - at;

		str_list_add(&d->lines, xstrndup(text + at, len));
		at += len;
	}
	for (size_t i = 0; i < d->lines.n; i++) {
		int rc;

		if (is_blank(d->lines.v[i]))
			continue;
		if (d->rows == ROWS_MAX)
			return err_set(e, ERR_USAGE, "%s: more than %d rows", d->path, ROWS_MAX);
		rc = named ? take_row(d, i, column, e) : take_header(d, i, column, e);
		if (rc < 0)
			return rc;
		named = true;
	}
	if (d->rows == 0)
		return err_set(e, ERR_USAGE, "%s: the design has no rows", d->path);
	return 0;
}

int design_load(struct design *d, const char *path, struct err *e)
{
	struct buf text = {0};
	int rc;

	*d = (struct design){.path = xstrdup(path), .column_run = -1};
	rc = file_read(path, DESIGN_BYTES_MAX, &text, e);
	if (rc == 0)
		rc = take_lines(d, text.data ? text.data : "", text.len, e);
	d->known = text;
	return rc;
}

int design_check_saving(const struct design *d, struct err *e)
{
	struct stat st;

	if (stat(d->path, &st) != 0)
		return err_sys(e, errno, "cannot read '%s'", d->path);
	if (!S_ISREG(st.st_mode))
		return err_set(
			e, ERR_USAGE,
			"'%s' is not a regular file: the states of the rows are saved in the "
			"design, so copy it to a file first",
			d->path);
	return 0;
}

void design_release(struct design *d)
{
	for (size_t i = 0; i < d->rows; i++) {
		free(d->row[i].model);
		free(d->row[i].typed);
		str_list_release(&d->row[i].overrides);
	}
	free(d->row);
	free(d->path);
	str_list_release(&d->lines);
	str_list_release(&d->unread);
	buf_release(&d->known);
	*d = (struct design){0};
}

void design_set_state(struct design *d, size_t row, enum design_state state)
{
	assert(row < d->rows);
	d->row[row].state = state;
}

/* ---- saving ---- */

static void put_line(const char *line, struct buf *out, const char *cell)
{
	size_t n = line_length(line);

	buf_append(out, line, n);
	buf_printf(out, ",%s%s", cell, line + n);
}

/* The row's line with another text in the place of its state. */
static int put_row(const struct design *d, const struct design_row *r, struct buf *out,
		   struct err *e)
{
	const char *line = d->lines.v[r->line - 1];
	const char *state = states[r->state];
	struct fields f;
	int rc;

	if (d->column_run < 0) {
		put_line(line, out, state);
		return 0;
	}
	rc = split_line(d, r->line - 1, &f, e);
	if (rc == 0 && (size_t)d->column_run < f.n) {
		const struct field *cell = &f.v[d->column_run];

		buf_append(out, line, cell->begin);
		buf_puts(out, state);
		buf_puts(out, line + cell->end);
	} else if (rc == 0) {
		size_t n = line_length(line);

		buf_append(out, line, n);
		for (size_t i = f.n; i <= (size_t)d->column_run; i++)
			buf_putc(out, ',');
		buf_printf(out, "%s%s", state, line + n);
	}
	fields_release(&f);
	return rc;
}

static int render(const struct design *d, struct buf *out, struct err *e)
{
	size_t row = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < d->lines.n; i++) {
		if (row < d->rows && d->row[row].line == i + 1)
			rc = put_row(d, &d->row[row++], out, e);
		else if (i == d->header && d->column_run < 0)
			put_line(d->lines.v[i], out, "run");
		else
			buf_puts(out, d->lines.v[i]);
	}
	return rc;
}

/* Whether somebody has changed the file since it was read or saved. One that was removed is made
 * again. */
static int look_for_edits(struct design *d, struct err *e)
{
	struct buf now = {0};
	struct err why = {0};
	int rc = file_read(d->path, DESIGN_BYTES_MAX, &now, &why);

	if (rc == 0 && !d->edited &&
	    (now.len != d->known.len ||
	     (now.len > 0 && memcmp(now.data, d->known.data, now.len) != 0))) {
		d->edited = true;
		log_warning(
			"'%s' was changed while the study runs: the states are saved in the rows "
			"that are still there; run the study again for new rows",
			d->path);
	}
	buf_release(&now);
	if (rc == -ENOENT) {
		d->edited = false;
		return 0;
	}
	if (rc < 0 && e)
		*e = why;
	return rc;
}

static bool same_row(const struct design_row *a, const struct design_row *b)
{
	return strcmp(a->model, b->model) == 0 && a->epochs == b->epochs &&
	       a->processes == b->processes && a->repeat == b->repeat &&
	       strcmp(a->typed, b->typed) == 0;
}

/* The states of `d` in the same rows of another: in their order, those between may be new. */
static void hand_over(const struct design *d, struct design *to)
{
	size_t next = 0;

	for (size_t i = 0; i < d->rows; i++) {
		size_t k = next;

		while (k < to->rows && !same_row(&d->row[i], &to->row[k]))
			k++;
		if (k == to->rows)
			continue;
		if (d->row[i].state != DESIGN_PENDING)
			to->row[k].state = d->row[i].state;
		next = k + 1;
	}
}

int design_save(struct design *d, struct err *e)
{
	struct design now = {0};
	struct err why = {0};
	struct buf out = {0};
	int rc = look_for_edits(d, e);

	if (rc == 0 && d->edited) {
		rc = design_load(&now, d->path, &why);
		if (rc < 0)
			err_set(e, rc,
				"%s. It was changed while the study ran, and is left as it is; "
				"correct it and run the study again: what is done is not repeated",
				why.text);
		else
			hand_over(d, &now);
	}
	if (rc == 0)
		rc = render(d->edited ? &now : d, &out, e);
	if (rc == 0)
		rc = file_rewrite(d->path, out.data, out.len, e);
	design_release(&now);
	if (rc < 0) {
		buf_release(&out);
		return rc;
	}
	buf_release(&d->known);
	d->known = out;
	return 0;
}
