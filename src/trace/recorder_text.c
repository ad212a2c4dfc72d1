/* Recorder's logs as recorder2text writes them: a folder of one text a rank, `0.txt` or `007.txt`,
 * of lines
 *
 *     start end function level type ( arguments )
 *
 * in seconds since the begin of the job; older versions write no level or type. Descriptors are
 * replaced by names there, and results are not written: bytes are those asked for, and where a file
 * is open twice in a rank, its positions are not known. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/file.h"
#include "base/map.h"
#include "base/transfer.h"
#include "base/vector.h"
#include "trace/call_log.h"
#include "trace/trace_reader.h"

#define PIECE (128U << 10)
#define ARGS 8
#define RANKS_MAX (1 << 20)

enum what {
	W_OPEN,
	W_FOPEN,
	W_CLOSE,
	W_READ,  /* file at 0 */
	W_WRITE, /* likewise */
	W_FREAD,
	W_FWRITE,
	W_SEEK,
	W_STAT,
	W_OTHER,
	W_MAP,
	W_TRUNCATE,
	W_RENAME,
	W_WAIT,
};

static const struct row {
	const char *names; /* separated by blanks */
	enum what what;
	int args;         /* that follow the name of the file */
	int file;         /* argument */
	int size, offset; /* arguments of a whole list; -1: none */
	int kind;         /* of W_OTHER */
} rows[] = {
	{"open open64", W_OPEN, 1, 0, 1, -1, 0},
	{"creat creat64", W_OPEN, 1, 0, -1, -1, 0},
	{"fopen fopen64", W_FOPEN, 1, 0, 1, -1, 0},
	{"close fclose", W_CLOSE, 0, 0, -1, -1, 0},
	{"read", W_READ, 2, 0, 2, -1, 0},
	{"pread pread64", W_READ, 3, 0, 2, 3, 0},
	{"readv", W_READ, 2, 0, 1, -1, 0},
	{"write", W_WRITE, 2, 0, 2, -1, 0},
	{"pwrite pwrite64", W_WRITE, 3, 0, 2, 3, 0},
	{"writev", W_WRITE, 2, 0, 1, -1, 0},
	{"fprintf", W_WRITE, 1, 0, 1, -1, 0},
	{"fread", W_FREAD, 0, 3, 1, 2, 0},
	{"fwrite", W_FWRITE, 0, 3, 1, 2, 0},
	{"lseek lseek64 fseek fseeko", W_SEEK, 2, 0, 2, 1, 0},
	{"__xstat __xstat64 __lxstat __lxstat64 __fxstat __fxstat64", W_STAT, 1, 1, -1, -1, 0},
	{"mmap mmap64", W_MAP, 1, 4, 1, 5, 0},
	{"truncate ftruncate", W_TRUNCATE, 1, 0, 1, -1, 0},
	{"rename", W_RENAME, 1, 0, -1, -1, 0},
	{"fsync fdatasync", W_OTHER, 0, 0, -1, -1, JOB_SYNC},
	{"mkdir", W_OTHER, 1, 0, -1, -1, JOB_MAKE_DIR},
	{"rmdir unlink remove", W_OTHER, 0, 0, -1, -1, JOB_UNLINK},
	{"opendir", W_OTHER, 0, 0, -1, -1, JOB_LIST},
	{"access", W_OTHER, 1, 0, -1, -1, JOB_ACCESS},
	{"readlink", W_OTHER, 2, 0, -1, -1, JOB_ACCESS},
	{"MPI_Barrier MPI_Bcast MPI_Allreduce MPI_Reduce MPI_Allgather MPI_Alltoall "
	 "MPI_Recv MPI_Wait MPI_Waitall",
	 W_WAIT, 0, 0, -1, -1, 0},
};

/* ---- a line ---- */

struct line {
	double begin_s, end_s;
	char *name;
	char *arg[ARGS];
	int args;
	char *rest; /* all arguments in one, for names with blanks */
};

static char *word(char **p)
{
	char *from;

	while (**p == ' ' || **p == '\t')
		++*p;
	from = *p;
	while (**p && **p != ' ' && **p != '\t')
		++*p;
	if (**p)
		*(*p)++ = '\0';
	return from;
}

static bool is_number(const char *s)
{
	return *s && s[strspn(s, "0123456789")] == '\0';
}

static bool seconds(const char *s, double *v)
{
	char *end;

	/* digits, a point, digits: nothing else that strtod would take */
	if (!isdigit((unsigned char)*s) || s[strspn(s, "0123456789.")] != '\0')
		return false;
	*v = strtod(s, &end);
	return !*end && *v < 1e9;
}

/* Takes `text` apart in place. False: it is no line of recorder2text. */
static bool parse(char *text, struct line *l)
{
	char *p = text, *close = text + strlen(text);

	*l = (struct line){0};
	while (close > text && (close[-1] == ' ' || close[-1] == '\r'))
		close--;
	if (close == text || close[-1] != ')')
		return false;
	close[-1] = '\0';
	if (!seconds(word(&p), &l->begin_s) || !seconds(word(&p), &l->end_s))
		return false;
	l->name = word(&p);
	if (is_number(l->name)) /* the thread */
		l->name = word(&p);
	if (!isalpha((unsigned char)*l->name) && *l->name != '_')
		return false;
	for (;;) {
		char *w = word(&p);

		if (strcmp(w, "(") == 0)
			break;
		if (*w == '(') { /* "(path" of older ones */
			if (p > w + strlen(w))
				p[-1] = ' ';
			p = w + 1;
			break;
		}
		if (!is_number(w))
			return false;
	}
	while (*p == ' ')
		p++;
	l->rest = p;
	for (size_t n = strlen(p); n && p[n - 1] == ' '; n--)
		p[n - 1] = '\0';
	return true;
}

/* Splits the arguments: those before the file, its name, which may have blanks, and `behind` more.
 */
static bool split(struct line *l, int file, int behind)
{
	char *p = l->rest, *end = p + strlen(p);
	char *last[ARGS];

	for (l->args = 0; l->args < file; l->args++) {
		l->arg[l->args] = word(&p);
		if (!*l->arg[l->args])
			return false;
	}
	for (int i = behind; i-- > 0;) {
		char *blank = memrchr(p, ' ', (size_t)(end - p));

		if (!blank)
			return false;
		last[i] = blank + 1;
		*blank = '\0';
		end = blank;
	}
	l->arg[l->args++] = p;
	for (int i = 0; i < behind; i++)
		l->arg[l->args++] = last[i];
	return *p;
}

static int64_t amount(const struct line *l, int i)
{
	char *end;
	long long v;

	if (i < 0 || i >= l->args)
		return JOB_UNKNOWN;
	errno = 0;
	v = strtoll(l->arg[i], &end, 10);
	return end == l->arg[i] || *end || errno || v < 0 ? JOB_UNKNOWN : v;
}

/* ---- calls ---- */

struct reading {
	struct call_log log;
	struct job *job;
	struct map open; /* how often a file is open, by caller and file */
	uint64_t lines, unread, cut, assumed;
	struct err *e;
};

static uint32_t opened(struct reading *r, const struct call *c, uint32_t file, int by)
{
	int64_t key = (int64_t)c->caller->thread << 32 | file;
	uint32_t n = map_get(&r->open, key);

	n = n == MAP_NONE ? 0 : n;
	if (by > 0 || n)
		map_put(&r->open, key, n += (uint32_t)by);
	return n;
}

/* The descriptor that stands for a file. */
static int64_t fd_of(struct reading *r, const struct call *c, uint32_t file)
{
	int64_t fd = file & DESCRIPTOR_MAX;

	descriptors_expect(r->log.descriptors, c->caller->table, fd, file, 0);
	return fd;
}

static void add_open(struct reading *r, struct call *c, uint32_t file, int flags)
{
	uint32_t times = opened(r, c, file, 1);

	c->result = file & DESCRIPTOR_MAX;
	call_open(&r->log, c, file, flags);
	if (times > 1)
		descriptors_seek(r->log.descriptors, c->caller->table, c->result, JOB_UNKNOWN);
}

static void add_close(struct reading *r, struct call *c, uint32_t file)
{
	if (opened(r, c, file, 0) > 1) {
		opened(r, c, file, -1);
		return;
	}
	if (opened(r, c, file, 0))
		opened(r, c, file, -1);
	call_close(&r->log, c, fd_of(r, c, file));
}

static void add_transfer(struct reading *r, struct call *c, uint32_t file, bool write,
			 int64_t asked, int64_t offset)
{
	if (asked == JOB_UNKNOWN) {
		r->unread++;
		return;
	}
	r->assumed++;
	c->result = asked;
	call_transfer(&r->log, c, write ? JOB_WRITE : JOB_READ, fd_of(r, c, file), asked, offset);
}

static void add_seek(struct reading *r, struct call *c, uint32_t file, const struct line *l,
		     const struct row *row)
{
	int64_t fd = fd_of(r, c, file), offset = strtoll(l->arg[row->offset], NULL, 10);

	c->result = call_seek_target(&r->log, c->caller, fd, offset, amount(l, row->size));
	if (c->result == JOB_UNKNOWN || opened(r, c, file, 0) > 1) {
		descriptors_seek(r->log.descriptors, c->caller->table, fd, JOB_UNKNOWN);
		return;
	}
	call_seek(&r->log, c, fd, offset, SEEK_SET);
}

static void add_call(struct reading *r, struct call *c, struct line *l, const struct row *row)
{
	int behind = row->args;
	uint32_t file;
	int64_t n;

	if (row->what == W_WAIT) {
		call_process(&r->log, c, JOB_WAIT, JOB_NONE);
		return;
	}
	/* the mode is written only with O_CREAT: two numbers at the end */
	if (row->what == W_OPEN && row->size == 1) {
		char *last = strrchr(l->rest, ' '), *before;

		before = last && is_number(last + 1)
				 ? memrchr(l->rest, ' ', (size_t)(last - l->rest))
				 : NULL;
		if (before && strspn(before + 1, "0123456789") == (size_t)(last - before) - 1)
			behind = 2;
	}
	if (!split(l, row->file, behind)) {
		r->unread++;
		return;
	}
	file = call_path(&r->log, c->caller, CALL_CWD, l->arg[row->file],
			 row->kind == JOB_LIST || row->kind == JOB_MAKE_DIR);
	switch (row->what) {
	case W_OPEN:
		add_open(r, c, file,
			 row->size < 0 ? O_WRONLY | O_CREAT | O_TRUNC
				       : (int)(amount(l, 1) & INT32_MAX));
		return;
	case W_FOPEN:
		add_open(r, c, file, call_mode_flags(l->arg[1], strlen(l->arg[1])));
		return;
	case W_CLOSE:
		add_close(r, c, file);
		return;
	case W_READ:
	case W_WRITE:
		add_transfer(r, c, file, row->what == W_WRITE, amount(l, row->size),
			     amount(l, row->offset));
		return;
	case W_FREAD:
	case W_FWRITE:
		n = amount(l, row->size);
		if (n == JOB_UNKNOWN || amount(l, row->offset) == JOB_UNKNOWN ||
		    __builtin_mul_overflow(n, amount(l, row->offset), &n))
			n = JOB_UNKNOWN;
		add_transfer(r, c, file, row->what == W_FWRITE, n, JOB_UNKNOWN);
		return;
	case W_SEEK:
		add_seek(r, c, file, l, row);
		return;
	case W_STAT:
		call_stat(&r->log, c, file, -1, -1);
		return;
	case W_MAP:
		call_map(&r->log, c, fd_of(r, c, file), 0, amount(l, row->size),
			 amount(l, row->offset));
		return;
	case W_TRUNCATE:
		call_truncate(&r->log, c, file, -1, amount(l, row->size));
		return;
	case W_RENAME:
		call_rename(&r->log, c, file,
			    call_path(&r->log, c->caller, CALL_CWD, l->arg[1], false));
		return;
	default:
		call_other(&r->log, c, row->kind, file, -1, JOB_UNKNOWN, 0);
	}
}

/* ---- files ---- */

static int64_t rank_of(const char *path)
{
	const char *base = path_basename(path);
	size_t digits = strspn(base, "0123456789");

	return digits && digits < 8 && strcmp(base + digits, ".txt") == 0 ? strtol(base, NULL, 10)
									  : -1;
}

static int read_rank(struct reading *r, const char *path)
{
	struct trace_lines lines;
	struct caller caller;
	int64_t rank = rank_of(path);
	bool whole = true;
	int rc;

	if (!caller_begin(&r->log, &caller, NULL, 0, rank < 0 ? 0 : rank, ""))
		return r->e->code;
	r->job->process[caller.process].rank = rank;
	trace_lines_open(&lines, path, PIECE);
	while ((rc = trace_lines_next(&lines, r->e)) > 0 && !r->log.failed) {
		struct call c = {.caller = &caller};
		struct line l;

		r->lines++;
		whole = lines.whole || !lines.text.len;
		if (!parse(lines.text.data, &l)) {
			r->unread += lines.whole;
			continue;
		}
		whole = true;
		c.begin_ns = (int64_t)(l.begin_s * 1e9 + 0.5);
		c.end_ns = (int64_t)(l.end_s * 1e9 + 0.5);
		for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
			if (call_is(rows[i].names, l.name, strlen(l.name)))
				add_call(r, &c, &l, &rows[i]);
	}
	r->cut += !whole || lines.damaged;
	trace_lines_close(&lines);
	caller_end(&r->log, &caller);
	return r->log.failed ? r->e->code : rc;
}

static int by_rank(const void *a, const void *b)
{
	int64_t x = rank_of(*(char *const *)a), y = rank_of(*(char *const *)b);

	return ORDER(x, y);
}

/* The text files of a folder, sorted by rank; if it has none, those of its subfolder `_text`. */
static char **texts_of(const char *folder, size_t *n)
{
	DIR *d = folder_open(folder);
	char **found = NULL;
	size_t room = 0;

	*n = 0;
	for (struct dirent *f; d && *n < RANKS_MAX && folder_next(d, &f) > 0;) {
		if (rank_of(f->d_name) >= 0)
			VECTOR_PUSH(found, *n, room, path_join(folder, f->d_name));
	}
	if (d)
		closedir(d);
	if (*n == 0) {
		char *inner = path_join(folder, "_text");
		bool here = strcmp(path_basename(folder), "_text") == 0;

		if (!here && access(inner, F_OK) == 0) {
			free(found);
			found = texts_of(inner, n);
		}
		free(inner);
		return found;
	}
	qsort(found, *n, sizeof(*found), by_rank);
	return found;
}

static void texts_free(char **v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i]);
	free(v);
}

static int read_path(struct reading *r, const char *path)
{
	size_t n = 0;
	char **text = texts_of(path, &n);
	int rc = 0;

	if (!n)
		rc = read_rank(r, path);
	for (size_t i = 0; i < n && rc >= 0; i++)
		rc = read_rank(r, text[i]);
	texts_free(text, n);
	return rc;
}

static int recorder_read(struct job *job, const char *const *paths, size_t n, struct err *e)
{
	struct reading r = {.job = job, .e = e};
	int rc = 0;

	call_log_init(&r.log, job, e);
	for (size_t i = 0; i < n && rc >= 0; i++)
		rc = read_path(&r, paths[i]);
	if (rc >= 0 && !job->events)
		rc = err_set(e, ERR_DATA, "%s: no call of Recorder in it", paths[0]);
	if (rc >= 0) {
		call_log_finish(&r.log);
		job->source = "Recorder";
		job->sees |= JOB_SEES_TIMES;
		if (r.assumed)
			job_note(job,
				 "the text of recorder2text has no results: requests count with "
				 "the bytes they asked for, also those at the end of a file");
		if (r.unread)
			job_note(job, "%llu of %llu lines are no calls, or damaged",
				 (unsigned long long)r.unread, (unsigned long long)r.lines);
		if (r.cut)
			job_note(job, "%llu logs are cut at their end", (unsigned long long)r.cut);
	}
	map_release(&r.open);
	call_log_release(&r.log);
	return rc < 0 ? rc : 0;
}

static bool recorder_recognize(const char *path, bool folder, const unsigned char *head, size_t n)
{
	char *text, *line, *save = NULL;
	struct line l;
	bool known;

	if (folder) {
		size_t found = 0;
		char **texts = texts_of(path, &found), first[TRACE_HEAD];
		int fd = found ? file_open(texts[0], NULL, NULL) : -1;
		ssize_t got = fd < 0 ? 0 : pread_fully(fd, first, sizeof(first), 0);

		if (fd >= 0)
			close(fd);
		texts_free(texts, found);
		return got > 0 &&
		       recorder_recognize(path, false, (const unsigned char *)first, (size_t)got);
	}
	text = xstrndup((const char *)head, n);
	line = strtok_r(text, "\n", &save);
	known = line && parse(line, &l);
	free(text);
	return known;
}

const struct trace_reader trace_reader_recorder = {
	.name = "recorder",
	.people = "the text of recorder2text",
	.recognize = recorder_recognize,
	.read = recorder_read,
};
