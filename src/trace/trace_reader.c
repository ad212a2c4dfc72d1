/* Which reader a log is for. */
#include "trace/trace_reader.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/transfer.h"

/* ---- lines of plain and gzip files, in pieces ---- */

#define QUICK (64U << 10) /* longer lines are looked through for long strings */
/* Times its size that a gzip file of a log unpacks to at most, once it is so many bytes: lines with
 * times become a tenth to a fiftieth. */
#define UNPACKS_MOST 200
#define UNPACKS_FROM (64U << 20)

void trace_lines_open(struct trace_lines *l, const char *path, size_t piece)
{
	*l = (struct trace_lines){.path = path, .piece = piece};
	l->in = xmalloc(piece);
}

void trace_lines_close(struct trace_lines *l)
{
	if (l->gzip)
		inflateEnd(&l->z);
	free(l->in);
	free(l->out);
	buf_release(&l->text);
	*l = (struct trace_lines){0};
}

/* Reads the next piece of the file into `in`. The bytes, 0 at the end. */
static ssize_t read_piece(struct trace_lines *l, struct err *e)
{
	int fd = file_open(l->path, NULL, e);
	ssize_t got;

	if (fd < 0)
		return fd;
	got = pread_fully(fd, l->in, l->piece, l->at);
	if (got < 0)
		got = err_sys(e, (int)-got, "%s: cannot be read", l->path);
	close(fd);
	if (got > 0)
		l->at += got;
	return got;
}

/* More unpacked bytes in `out`; several gzip members follow each other (as `cat` makes them). */
static int unpack(struct trace_lines *l, struct err *e)
{
	l->used = 0;
	l->z.next_out = l->out;
	l->z.avail_out = (uInt)l->piece;
	while (l->z.avail_out == l->piece) {
		int rc;

		if (l->z.avail_in == 0) {
			ssize_t got = read_piece(l, e);

			if (got < 0)
				return (int)got;
			if (got == 0) {
				/* a member that is not at its end was cut */
				l->damaged = l->damaged || l->z.total_in > 0;
				l->ended = true;
				break;
			}
			l->z.next_in = l->in;
			l->z.avail_in = (uInt)got;
		}
		rc = inflate(&l->z, Z_NO_FLUSH);
		if (rc == Z_STREAM_END) {
			inflateReset(&l->z);
			l->z.total_in = 0;
		} else if (rc != Z_OK && rc != Z_BUF_ERROR) {
			l->damaged = l->ended = true;
			break;
		}
	}
	l->have = l->piece - l->z.avail_out;
	l->unpacked += (int64_t)l->have;
	if (l->unpacked > UNPACKS_FROM && l->unpacked / UNPACKS_MOST > l->at)
		return err_set(e, ERR_DATA,
			       "%s: unpacks to more than %d times its size, as no log with times "
			       "does: if it is one, unpack it first (gunzip)",
			       l->path, UNPACKS_MOST);
	return 0;
}

static int refill(struct trace_lines *l, struct err *e)
{
	ssize_t got;

	if (l->gzip)
		return unpack(l, e);
	got = read_piece(l, e);
	if (got < 0)
		return (int)got;
	l->used = 0;
	l->have = (size_t)got;
	l->ended = got == 0;
	if (l->began)
		return 0;
	l->began = true;
	if (got < 2 || l->in[0] != 0x1f || l->in[1] != 0x8b || inflateInit2(&l->z, 15 + 16) != Z_OK)
		return 0;
	l->gzip = true;
	l->out = xmalloc(l->piece);
	l->z.next_in = l->in;
	l->z.avail_in = (uInt)got;
	return unpack(l, e);
}

/* Leaves out what exceeds TRACE_STRING of each quoted string of a long line. */
static void shorten(struct buf *text)
{
	size_t to = 0, inside = 0;
	bool quoted = false, escaped = false;

	for (size_t i = 0; i < text->len; i++) {
		char c = text->data[i];

		if (quoted && ++inside > TRACE_STRING && (c != '"' || escaped)) {
			if (inside == TRACE_STRING + 1 && escaped) {
				to--; /* half an escape is left out whole */
				escaped = false;
				continue;
			}
			escaped = c == '\\' && !escaped;
			continue;
		}
		if (c == '"' && !escaped) {
			quoted = !quoted;
			inside = 0;
		}
		escaped = c == '\\' && !escaped;
		text->data[to++] = c;
	}
	if (quoted && inside > TRACE_STRING && escaped)
		text->data[to++] = '\\'; /* what it escapes is not here yet */
	text->len = to;
	text->data[to] = '\0';
}

/* Whether there are bytes that were not used. */
static int more(struct trace_lines *l, struct err *e)
{
	while (l->used == l->have && !l->ended) {
		int rc = refill(l, e);

		if (rc < 0)
			return rc;
	}
	return l->used < l->have;
}

static const unsigned char *unused(const struct trace_lines *l)
{
	return (l->gzip ? l->out : l->in) + l->used;
}

/* Leaves out the empty lines that come next. */
static void skip_empty(struct trace_lines *l)
{
	const unsigned char *from = unused(l);
	size_t n = 0;

	while (n < l->have - l->used && from[n] == '\n')
		n++;
	l->used += n;
	l->line += n;
}

/* Uses n bytes for the text. `looked`: up to where long strings were looked for. */
static void use(struct trace_lines *l, size_t n, size_t *looked)
{
	if (l->text.len < TRACE_LINE)
		buf_append(&l->text, unused(l), n);
	else
		l->whole = false;
	l->used += n;
	if (l->text.len > *looked) {
		/* the quotes of a string that is not at its end are had again with its rest: a
		 * string is cut once, and stays open */
		shorten(&l->text);
		*looked = l->text.len + QUICK;
	}
}

int trace_lines_next(struct trace_lines *l, struct err *e)
{
	size_t looked = QUICK;
	bool any = false;
	int rc;

	buf_reset(&l->text);
	l->whole = true;
	while ((rc = more(l, e)) > 0) {
		const unsigned char *from, *end;
		size_t n;

		if (!any)
			skip_empty(l);
		from = unused(l);
		n = l->have - l->used;
		if (n == 0)
			continue;
		end = memchr(from, '\n', n);
		any = true;
		use(l, end ? (size_t)(end - from) : n, &looked);
		if (!end)
			continue;
		l->used++;
		for (char *nul = l->text.data;
		     (nul = memchr(nul, 0, l->text.len - (size_t)(nul - l->text.data)));)
			*nul = ' ';
		l->line++;
		return 1;
	}
	l->whole = false;
	l->line += any;
	return rc < 0 ? rc : any;
}

int trace_lines_peek(struct trace_lines *l, const char *skip, char *c, struct err *e)
{
	int rc;

	while ((rc = more(l, e)) > 0) {
		*c = (char)*unused(l);
		if (!*c || !strchr(skip, *c))
			break;
		l->line += *c == '\n';
		l->used++;
	}
	return rc;
}

int trace_lines_value(struct trace_lines *l, struct err *e)
{
	size_t looked = QUICK, depth = 0;
	bool quoted = false, escaped = false, ended = false;
	int rc = 1;

	buf_reset(&l->text);
	l->whole = true;
	while (!ended && (rc = more(l, e)) > 0) {
		const unsigned char *from = unused(l);
		size_t n = l->have - l->used, i;

		for (i = 0; i < n && !ended; i++) {
			unsigned char c = from[i];

			if (quoted && !escaped && c > '\\')
				continue; /* most bytes of strings */
			l->line += c == '\n';
			if (quoted) {
				/* a quote that is missing must not take the rest of the file */
				ended = c < ' ' || (c == '"' && !escaped && depth == 0);
				quoted = c != '"' || escaped;
				escaped = c == '\\' && !escaped;
			} else if (c == '"') {
				quoted = true;
			} else if (c == '{' || c == '[') {
				depth++;
			} else if (depth && (c == '}' || c == ']')) {
				ended = --depth == 0;
			} else if (!depth && !isalnum(c) && !strchr("+-.", c)) {
				break;
			}
		}
		ended = ended || i < n;
		use(l, i, &looked);
	}
	return rc;
}

/* ---- readers ---- */

void trace_readers_put(struct buf *out)
{
	for (size_t i = 0; trace_reader_table[i]; i++)
		buf_printf(out, "%s%s", i ? ", " : "", trace_reader_table[i]->people);
}

/* What a folder holds cannot be told without these. */
static int folder_readable(const char *path, struct err *e)
{
	DIR *d = access(path, X_OK) == 0 ? folder_open(path) : NULL;

	if (!d)
		return err_sys(e, errno, "%s: this folder cannot be read", path);
	closedir(d);
	return 0;
}

static const struct trace_reader *reader_of(const char *path, struct err *e)
{
	struct trace_lines head;
	struct stat st;
	bool seen = stat(path, &st) == 0, folder = seen && S_ISDIR(st.st_mode);
	const struct trace_reader *known = NULL;
	struct buf all = {0};
	int rc;

	if (!seen && errno != ENOENT) {
		err_sys(e, errno, "cannot read '%s'", path);
		return NULL;
	}
	trace_lines_open(&head, path, TRACE_HEAD);
	rc = folder ? folder_readable(path, e) : more(&head, e);
	for (size_t i = 0; rc >= 0 && !known && trace_reader_table[i]; i++)
		if (trace_reader_table[i]->recognize(path, folder, unused(&head), head.have))
			known = trace_reader_table[i];
	trace_lines_close(&head);
	if (known || rc < 0)
		return known;
	trace_readers_put(&all);
	err_set(e, ERR_DATA, "%s: no log of a job that is known here (%s)", path, all.data);
	buf_release(&all);
	return NULL;
}

int job_read(struct job *job, const char *const *paths, size_t n, struct err *e)
{
	const struct trace_reader *reader = NULL;
	int rc;

	for (size_t i = 0; i < n; i++) {
		const struct trace_reader *r = reader_of(paths[i], e);

		if (!r)
			return e->code;
		if (reader && r != reader)
			return err_set(e, ERR_USAGE,
				       "%s is a log of another kind (%s) than %s (%s): the logs of "
				       "one job are of one kind",
				       paths[i], r->people, paths[0], reader->people);
		reader = r;
	}
	rc = reader ? reader->read(job, paths, n, e) : err_set(e, ERR_USAGE, "no log was named");
	return rc < 0 ? rc : job_finish(job, e);
}
