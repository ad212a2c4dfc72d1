/* Looks at csv text. */
#include "format/csv/csv_scan.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#define COUNT_DIGITS_MAX 18 /* fit into 63 bits */

void csv_scan_start(struct csv_scan *s, enum read_decode decode, const struct file_spec *f,
		    uint64_t rows, const struct content_source *content, char *expect,
		    unsigned char *elements)
{
	assert(decode != DECODE_VERIFY || (content && expect && elements));
	*s = (struct csv_scan){.decode = decode,
			       .f = f,
			       .compressed = strcmp(f->compression, "none") != 0,
			       .rows_wanted = rows,
			       .columns = file_spec_elements(f),
			       .expect = expect};
	if (decode == DECODE_VERIFY) {
		csv_text_start(&s->text, f, content, elements);
		s->text.rows_left = rows;
	}
}

static int bad_text(const struct csv_scan *s, uint64_t offset, const char *what, struct err *e)
{
	if (s->compressed)
		return err_set(e, ERR_DATA,
			       "byte %" PRIu64 " of the text (compressed in the file) %s", offset,
			       what);
	return err_set(e, ERR_DATA, "the byte at offset %" PRIu64 " %s", offset, what);
}

/* ---- compare ---- */

static int compare_text(struct csv_scan *s, const char *text, size_t n, struct err *e)
{
	for (size_t done = 0; done < n;) {
		size_t part, same;

		if (s->at == s->end) {
			s->end = csv_text_next(&s->text, s->expect, CSV_EXPECT_BYTES);
			s->at = 0;
		}
		if (s->end == 0)
			return s->stops ? 1
					: bad_text(s, s->offset + done,
						   "is past the end of the generated data", e);
		part = s->end - s->at < n - done ? s->end - s->at : n - done;
		same = first_difference(text + done, s->expect + s->at, part);
		if (same < part)
			return bad_text(s, s->offset + done + same,
					"differs from the generated data", e);
		s->at += part;
		done += part;
	}
	/* the last piece may have ended with the last row */
	if (s->stops && s->at == s->end && s->text.rows_left == 0)
		return 1;
	return 0;
}

static int compare_end(struct csv_scan *s, struct err *e)
{
	if (s->at == s->end && s->text.rows_left == 0)
		return 0;
	return err_set(e, ERR_DATA,
		       "the text ends after %" PRIu64
		       " bytes, before the end of the generated data: the file is truncated or "
		       "belongs to another dataset",
		       s->offset);
}

/* ---- parse ---- */

static int end_row(struct csv_scan *s, struct err *e)
{
	if (s->column != s->columns)
		return err_set(e, ERR_DATA,
			       "row %" PRIu64 " (from 0) has %" PRIu64
			       " numbers, and a sample of the workload has %" PRIu64
			       ": the file is damaged or belongs to another dataset",
			       s->row, s->column, s->columns);
	s->row++;
	s->column = 0;
	return s->stops && s->row == s->rows_wanted;
}

static int put_field(struct csv_scan *s, const char *p, size_t n, uint64_t offset, struct err *e)
{
	double v;

	if (!csv_parse(p, n, &v))
		return bad_text(s, offset, "does not begin a number", e);
	s->sum += v;
	/* so that a file of one endless row ends somewhere */
	if (++s->column > s->columns)
		return end_row(s, e);
	return 0;
}

/* A field and its separator `c`. */
static int end_field(struct csv_scan *s, const char *p, size_t n, char c, uint64_t offset,
		     struct err *e)
{
	int rc;

	if (c == '\n' && n > 0 && p[n - 1] == '\r')
		n--;
	/* like pandas: an empty line is no row, unless there is nothing in one */
	if (c == '\n' && n == 0 && s->column == 0)
		return s->columns == 0 ? end_row(s, e) : 0;
	rc = put_field(s, p, n, offset, e);
	if (rc == 0 && c == '\n')
		rc = end_row(s, e);
	return rc;
}

static int hold_field(struct csv_scan *s, const char *p, size_t n, uint64_t offset, struct err *e)
{
	if (n > CSV_FIELD_MAX - s->held)
		return bad_text(s, offset, "is in a field that is too long for a number", e);
	memcpy(s->field + s->held, p, n);
	s->held += n;
	return 0;
}

static size_t field_length(const char *p, const char *end)
{
	const char *at = p;

	while (at < end && *at != ',' && *at != '\n')
		at++;
	return (size_t)(at - p);
}

/* The rest of a field that the last piece began; *used gets what it took of this one. */
static int finish_held(struct csv_scan *s, const char *text, size_t n, size_t *used, struct err *e)
{
	size_t rest = field_length(text, text + n);
	uint64_t start = s->offset - s->held;
	int rc = hold_field(s, text, rest, s->offset, e);

	*used = rest;
	if (rc < 0 || rest == n)
		return rc;
	*used = rest + 1;
	rc = end_field(s, s->field, s->held, text[rest], start, e);
	s->held = 0;
	return rc;
}

static int parse_rows(struct csv_scan *s, const char *text, size_t n, struct err *e)
{
	const char *p = text, *end = text + n;
	size_t used = 0;
	int rc = 0;

	if (s->held) {
		rc = finish_held(s, text, n, &used, e);
		p += used;
	}
	while (rc == 0 && p < end) {
		const char *start = p;
		uint64_t v = 0;

		/* nearly all fields are a few digits and a separator */
		while (p < end && (unsigned char)(*p - '0') <= 9)
			v = v * 10 + (uint64_t)(*p++ - '0');
		if (p < end && p > start && *p == ',' && p - start <= COUNT_DIGITS_MAX &&
		    s->column < s->columns) {
			s->sum += (double)v;
			s->column++;
			p++;
			continue;
		}
		p += field_length(p, end);
		if (p == end) {
			rc = hold_field(s, start, (size_t)(p - start),
					s->offset + (uint64_t)(start - text), e);
			break;
		}
		rc = end_field(s, start, (size_t)(p - start), *p,
			       s->offset + (uint64_t)(start - text), e);
		p++;
	}
	return rc;
}

static int parse_end(struct csv_scan *s, struct err *e)
{
	int rc = 0;

	/* the last line may lack its end */
	if (s->held || s->column)
		rc = end_field(s, s->field, s->held, '\n', s->offset - s->held, e);
	s->held = 0;
	if (rc != 0)
		return rc;
	if (s->row == s->rows_wanted)
		return 0;
	return err_set(e, ERR_DATA,
		       "the file has %" PRIu64 " rows and should have %" PRIu64
		       ": it is damaged or belongs to another dataset",
		       s->row, s->rows_wanted);
}

/* ---- count ---- */

static int count_rows(struct csv_scan *s, const char *text, size_t n)
{
	const char *p = text, *end = text + n;

	if (!s->stops)
		return 0;
	while (p < end && (p = memchr(p, '\n', (size_t)(end - p)))) {
		p++;
		if (++s->row == s->rows_wanted)
			return 1;
	}
	return 0;
}

int csv_scan_feed(struct csv_scan *s, const char *text, size_t n, struct err *e)
{
	int rc = s->decode == DECODE_VERIFY ? compare_text(s, text, n, e)
		 : s->decode == DECODE_FULL ? parse_rows(s, text, n, e)
					    : count_rows(s, text, n);

	s->offset += n;
	return rc;
}

int csv_scan_end(struct csv_scan *s, struct err *e)
{
	int rc = s->decode == DECODE_VERIFY ? compare_end(s, e)
		 : s->decode == DECODE_FULL ? parse_end(s, e)
					    : 0;

	return rc < 0 ? rc : 0;
}
