#include "page/trace_read.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/map.h"
#include "base/str.h"

/* ---- JSON of any size, read value by value in constant memory ---- */

#define TRACE_TEXT_MAX 4096u /* longer texts are cut */
#define TRACE_END (-1)       /* no code of an error */

struct trace_text {
	char s[TRACE_TEXT_MAX];
	size_t n;
};

struct trace_scan {
	void *file;
	char *path;
	unsigned char *chunk;
	unsigned used, have;
	uint64_t line; /* from 1 */
	bool cut;      /* TRACE_END was returned */
	int failed;    /* errno, where the file ends because it could not be read on; else 0 */
	struct trace_text word;
};

/* The next key of an object into `word`: 1, its value being next; 0 at the end of the object.
 * `first`: nothing of it was read but its bracket. */
int trace_scan_key(struct trace_scan *s, bool first, struct err *e);

#define CHUNK 65536u
#define DEPTH_MAX 64

static int trace_scan_open(struct trace_scan *s, const char *path, struct err *e)
{
	int fd = file_open(path, NULL, e);

	*s = (struct trace_scan){.line = 1};
	if (fd < 0)
		return fd;
	s->file = gzdopen(fd, "rb");
	if (!s->file) {
		close(fd);
		return err_set(e, -ENOMEM, "there is no memory to read the trace '%s'", path);
	}
	s->path = xstrdup(path);
	s->chunk = xmalloc(CHUNK);
	return 0;
}

static void trace_scan_close(struct trace_scan *s)
{
	gzclose(s->file);
	free(s->chunk);
	free(s->path);
}

/* "trace 'FILE', line N: <what>"; ERR_DATA. */
static int trace_scan_bad(struct trace_scan *s, struct err *e, const char *what)
{
	return err_set(e, ERR_DATA, "trace '%s', line %llu: %s", s->path,
		       (unsigned long long)s->line, what);
}

static int fill_chunk(struct trace_scan *s)
{
	int n, zlib = Z_OK;

	errno = 0;
	n = gzread(s->file, s->chunk, CHUNK);
	if (n < 0)
		gzerror(s->file, &zlib);
	if (zlib == Z_ERRNO)
		s->failed = errno ? errno : EIO;
	s->used = 0;
	s->have = n > 0 ? (unsigned)n : 0;
	return n > 0;
}

/* The next byte, or TRACE_END. A gzip stream that breaks off ends there. */
static int trace_scan_peek(struct trace_scan *s)
{
	if (s->used == s->have && !fill_chunk(s))
		return TRACE_END;
	return s->chunk[s->used];
}

static int trace_scan_take(struct trace_scan *s)
{
	int c = trace_scan_peek(s);

	if (c == TRACE_END)
		return TRACE_END;
	s->used++;
	s->line += c == '\n';
	return c;
}

/* Skips blanks, and commas too with `commas`; the byte after them, or TRACE_END. */
static int trace_scan_blanks(struct trace_scan *s, bool commas)
{
	int c = trace_scan_peek(s);

	while (c == ' ' || c == '\t' || c == '\n' || c == '\r' || (commas && c == ',')) {
		trace_scan_take(s);
		c = trace_scan_peek(s);
	}
	return c;
}

/* ---- values ---- */

/* Notes that the file ended too early; TRACE_END. */
static int trace_scan_early(struct trace_scan *s)
{
	s->cut = true;
	return TRACE_END;
}

static void keep_byte(struct trace_text *t, int c)
{
	if (t->n + 1 < sizeof(t->s))
		t->s[t->n++] = (char)c;
}

static void keep_code_point(struct trace_text *t, unsigned u)
{
	if (u < 0x80) {
		keep_byte(t, (int)u);
	} else if (u < 0x800) {
		keep_byte(t, (int)(0xc0 | u >> 6));
		keep_byte(t, (int)(0x80 | (u & 0x3f)));
	} else {
		keep_byte(t, (int)(0xe0 | u >> 12));
		keep_byte(t, (int)(0x80 | (u >> 6 & 0x3f)));
		keep_byte(t, (int)(0x80 | (u & 0x3f)));
	}
}

static int hex_digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int read_escape(struct trace_scan *s, struct trace_text *t, struct err *e)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	int c = trace_scan_take(s);
	const char *at;
	unsigned u = 0;

	if (c == TRACE_END)
		return trace_scan_early(s);
	if (c != 'u') {
		at = c ? strchr(from, c) : NULL;
		if (!at)
			return trace_scan_bad(
				s, e, "a string contains an escape that is not valid in JSON");
		keep_byte(t, to[at - from]);
		return 0;
	}
	for (int i = 0; i < 4; i++) {
		c = trace_scan_take(s);
		if (c == TRACE_END)
			return trace_scan_early(s);
		if (hex_digit(c) < 0)
			return trace_scan_bad(s, e,
					      "\\u must be followed by four hexadecimal digits");
		u = u * 16 + (unsigned)hex_digit(c);
	}
	/* halves of a pair, and NUL, stand for nothing that a name needs */
	keep_code_point(t, u == 0 || (u >= 0xd800 && u <= 0xdfff) ? '?' : u);
	return 0;
}

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c != '"' && c != '\\';
}

/* 0, TRACE_END when the file ends, or an error. The opening quote is next. */
static int read_string(struct trace_scan *s, struct trace_text *t, struct err *e)
{
	int rc = 0;

	t->n = 0;
	trace_scan_take(s);
	while (rc == 0) {
		int c;

		/* what means nothing but itself, without going through every test */
		while (s->used < s->have && is_plain(s->chunk[s->used]))
			keep_byte(t, s->chunk[s->used++]);
		c = trace_scan_take(s);

		if (c == TRACE_END)
			return trace_scan_early(s);
		if (c == '"')
			break;
		if (c == '\\')
			rc = read_escape(s, t, e);
		else if (c < 0x20)
			return trace_scan_bad(s, e, "a string is not terminated on its line");
		else
			keep_byte(t, c);
	}
	t->s[t->n] = '\0';
	return rc;
}

static bool is_word_byte(int c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '-' || c == '+' || c == '.';
}

/* A string's text, or a number, true, false, null as written. */
static int trace_scan_scalar(struct trace_scan *s, struct trace_text *t, struct err *e)
{
	int c = trace_scan_peek(s);

	if (c == '"')
		return read_string(s, t, e);
	t->n = 0;
	while (is_word_byte(c)) {
		keep_byte(t, c);
		assert(s->used < s->have); /* trace_scan_peek saw it */
		s->used++;
		c = trace_scan_peek(s);
	}
	t->s[t->n] = '\0';
	if (c == TRACE_END)
		return trace_scan_early(s);
	return t->n ? 0 : trace_scan_bad(s, e, "expected a JSON value");
}

/* Any value. Overwrites `word`. */
static int trace_scan_skip(struct trace_scan *s, struct err *e)
{
	char open[DEPTH_MAX];
	int depth = 0, rc;

	for (;;) {
		/* what is left out needs its brackets and texts to be whole, no more */
		int c = trace_scan_blanks(s, false);

		if (c == TRACE_END)
			return trace_scan_early(s);
		if (c == '{' || c == '[') {
			if (depth == DEPTH_MAX)
				return trace_scan_bad(s, e,
						      "values are nested more than 64 levels deep");
			open[depth++] = c == '{' ? '}' : ']';
			trace_scan_take(s);
		} else if (c == '}' || c == ']') {
			if (depth == 0 || open[--depth] != c)
				return trace_scan_bad(
					s, e,
					"a closing bracket does not match any opening bracket");
			trace_scan_take(s);
		} else if (depth && (c == ',' || c == ':')) {
			trace_scan_take(s);
			continue;
		} else {
			rc = trace_scan_scalar(s, &s->word, e);
			if (rc < 0)
				return rc;
		}
		if (depth == 0)
			return 0;
	}
}

int trace_scan_key(struct trace_scan *s, bool first, struct err *e)
{
	int c = trace_scan_blanks(s, false), rc;

	if (c == TRACE_END)
		return trace_scan_early(s);
	if (c == '}') {
		trace_scan_take(s);
		return 0;
	}
	if (!first) {
		if (c != ',')
			return trace_scan_bad(s, e,
					      "expected a comma or a closing brace in an object");
		trace_scan_take(s);
		c = trace_scan_blanks(s, false);
	}
	if (c == TRACE_END)
		return trace_scan_early(s);
	if (c != '"')
		return trace_scan_bad(s, e, "expected a quoted object key");
	rc = read_string(s, &s->word, e);
	if (rc < 0)
		return rc;
	c = trace_scan_blanks(s, false);
	if (c == TRACE_END)
		return trace_scan_early(s);
	if (c != ':')
		return trace_scan_bad(s, e, "expected a colon after a key");
	trace_scan_take(s);
	return trace_scan_blanks(s, false) == TRACE_END ? trace_scan_early(s) : 1;
}

/* ---- */

#define KEY_MAX 32u
#define PENDING 256u /* events whose end has not come */
#define NS_MAX (INT64_MAX / 4)

enum state { AT_START, IN_EVENTS, AT_END };

/* One event as its file writes it. */
struct event {
	struct trace_text name, cat, path, value, hash;
	char ph;
	bool has_ts;
	int64_t ts, dur;
	uint64_t pid, tid, id;
	uint64_t epoch, step, sample, offset, asked, moved, dropped;
	bool metadata, failed;
};

struct pending {
	uint64_t pid, id;
	struct trace_item item;
	bool used;
	char name[64], cat[32], path[TRACE_TEXT_MAX];
};

struct trace_reader {
	struct trace_scan in;
	enum state state;
	bool in_object, seen_events, ours;
	int64_t zero_ns;
	uint64_t dropped;
	struct event ev;
	struct pending pending[PENDING];
	size_t next_pending;
};

static uint64_t text_key(const char *text)
{
	uint64_t h = fnv1a_text(FNV_START, text);

	return h == TRACE_NONE ? 0 : h;
}

static uint64_t to_count(const char *s)
{
	uint64_t v;

	return str_to_u64(s, &v) ? v : TRACE_NONE;
}

/* Microseconds with decimals as ns: doubles do not hold those since 1970. */
static bool to_ns(const char *s, int64_t *out)
{
	int64_t v = 0, scale = 100;
	bool point = false, any = false;
	double d;

	if (strpbrk(s, "eE-")) {
		if (!str_to_f64(s, &d) || !(d > -1e15 && d < 1e15))
			return false;
		*out = (int64_t)(d * 1000);
		return true;
	}
	for (; *s; s++) {
		if (*s == '.' && !point) {
			point = true;
			continue;
		}
		if (*s < '0' || *s > '9' || v > NS_MAX / 10 - 10000)
			return false;
		any = true;
		if (point) {
			v += (*s - '0') * scale;
			scale /= 10;
		} else {
			v = v * 10 + (*s - '0') * 1000;
		}
	}
	*out = v;
	return any;
}

static uint64_t *count_of(struct event *ev, const char *key)
{
	static const struct {
		const char *key;
		size_t at;
	} counts[] = {
		{"epoch", offsetof(struct event, epoch)},
		{"step", offsetof(struct event, step)},
		{"sample", offsetof(struct event, sample)},
		{"image_idx", offsetof(struct event, sample)},
		{"offset", offsetof(struct event, offset)},
		{"asked_bytes", offsetof(struct event, asked)},
		{"count", offsetof(struct event, asked)},
		{"bytes", offsetof(struct event, moved)},
		{"image_size", offsetof(struct event, moved)},
	};

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		if (strcmp(key, counts[i].key) == 0)
			return (uint64_t *)(void *)((char *)ev + counts[i].at);
	return NULL;
}

static void copy_text(struct trace_text *to, const struct trace_text *from)
{
	memcpy(to->s, from->s, from->n + 1);
	to->n = from->n;
}

static void take_arg(struct event *ev, const char *key, const struct trace_text *v)
{
	uint64_t *count = count_of(ev, key);

	if (count) {
		*count = to_count(v->s);
	} else if (strcmp(key, "ret") == 0) {
		ev->failed = v->s[0] == '-';
		if (!ev->failed)
			ev->moved = to_count(v->s);
	} else if (strcmp(key, "file") == 0 || strcmp(key, "name") == 0) {
		copy_text(&ev->path, v);
	} else if (strcmp(key, "value") == 0) {
		copy_text(&ev->value, v);
	} else if (strcmp(key, "fhash") == 0) {
		copy_text(&ev->hash, v);
	} else if (strcmp(key, "metadata") == 0) {
		ev->metadata = strcmp(v->s, "1") == 0;
	} else if (strcmp(key, "failed") == 0) {
		ev->failed = strcmp(v->s, "1") == 0;
	} else if (strcmp(key, "spans_dropped") == 0) {
		ev->dropped = to_count(v->s);
	}
}

/* A key, cut to a length that no known one has. */
static void take_key(char key[KEY_MAX], const struct trace_text *word)
{
	size_t n = word->n < KEY_MAX - 1 ? word->n : KEY_MAX - 1;

	memcpy(key, word->s, n);
	key[n] = '\0';
}

/* The next key of an object, and its value: r->in.word, where it is no object or list. 1; 0 at the
 * object's end, TRACE_END, or an error. */
static int next_member(struct trace_reader *r, bool first, char key[KEY_MAX], bool *scalar,
		       struct err *e)
{
	int rc = trace_scan_key(&r->in, first, e), c;

	if (rc != 1)
		return rc;
	take_key(key, &r->in.word);
	c = trace_scan_peek(&r->in);
	*scalar = c != '{' && c != '[';
	rc = *scalar ? trace_scan_scalar(&r->in, &r->in.word, e) : trace_scan_skip(&r->in, e);
	return rc < 0 ? rc : 1;
}

static int read_args(struct trace_reader *r, struct event *ev, struct err *e)
{
	char key[KEY_MAX];
	bool scalar;
	int rc;

	if (trace_scan_peek(&r->in) != '{')
		return trace_scan_skip(&r->in, e);
	trace_scan_take(&r->in);
	for (bool first = true; (rc = next_member(r, first, key, &scalar, e)) == 1; first = false)
		if (scalar)
			take_arg(ev, key, &r->in.word);
	return rc;
}

static int take_field(struct trace_reader *r, struct event *ev, const char *key, struct err *e)
{
	const struct trace_text *v = &r->in.word;

	if (strcmp(key, "name") == 0) {
		copy_text(&ev->name, v);
	} else if (strcmp(key, "cat") == 0) {
		copy_text(&ev->cat, v);
	} else if (strcmp(key, "ph") == 0) {
		ev->ph = v->s[0];
	} else if (strcmp(key, "pid") == 0) {
		ev->pid = to_count(v->s);
	} else if (strcmp(key, "tid") == 0) {
		ev->tid = to_count(v->s);
	} else if (strcmp(key, "id") == 0) {
		ev->id = text_key(v->s);
	} else if (strcmp(key, "ts") == 0) {
		ev->has_ts = to_ns(v->s, &ev->ts);
		if (!ev->has_ts)
			return trace_scan_bad(&r->in, e, "'ts' is not a time in microseconds");
	} else if (strcmp(key, "dur") == 0) {
		if (!to_ns(v->s, &ev->dur) || ev->dur < 0)
			return trace_scan_bad(&r->in, e, "'dur' is not a duration in microseconds");
	}
	return 0;
}

static void clear_event(struct event *ev)
{
	ev->name.s[0] = ev->cat.s[0] = ev->path.s[0] = ev->value.s[0] = ev->hash.s[0] = '\0';
	ev->ph = '\0';
	ev->has_ts = ev->metadata = ev->failed = false;
	ev->ts = ev->dur = 0;
	ev->pid = ev->tid = 0;
	ev->id = TRACE_NONE;
	ev->epoch = ev->step = ev->sample = TRACE_NONE;
	ev->offset = ev->asked = ev->moved = ev->dropped = TRACE_NONE;
}

/* 0, TRACE_END when the file ends within it, or an error. The opening bracket is next. */
static int read_event(struct trace_reader *r, struct event *ev, struct err *e)
{
	char key[KEY_MAX];
	int rc;

	clear_event(ev);
	trace_scan_take(&r->in);
	for (bool first = true; (rc = trace_scan_key(&r->in, first, e)) == 1; first = false) {
		int c = trace_scan_peek(&r->in);

		take_key(key, &r->in.word);
		if (strcmp(key, "args") == 0)
			rc = read_args(r, ev, e);
		else if (c == '{' || c == '[')
			rc = trace_scan_skip(&r->in, e);
		else if ((rc = trace_scan_scalar(&r->in, &r->in.word, e)) == 0)
			rc = take_field(r, ev, key, e);
		if (rc < 0)
			return rc;
	}
	return rc;
}

/* ---- the file around the events ---- */

static int read_other(struct trace_reader *r, struct err *e)
{
	char key[KEY_MAX];
	bool scalar;
	int rc;

	if (trace_scan_peek(&r->in) != '{')
		return trace_scan_skip(&r->in, e);
	trace_scan_take(&r->in);
	for (bool first = true; (rc = next_member(r, first, key, &scalar, e)) == 1; first = false) {
		if (!scalar)
			continue;
		if (strcmp(key, "program") == 0)
			r->ours = str_starts(r->in.word.s, "stoker ");
		else if (strcmp(key, "spans_dropped") == 0)
			str_to_u64(r->in.word.s, &r->dropped);
		else if (strcmp(key, "begin_unix_ns") == 0 &&
			 (!str_to_i64(r->in.word.s, &r->zero_ns) || r->zero_ns < 0 ||
			  r->zero_ns > NS_MAX))
			return trace_scan_bad(
				&r->in, e,
				"'begin_unix_ns' is not a plausible Unix time in nanoseconds");
	}
	return rc;
}

/* Keys of the whole file up to its events. */
static int find_events(struct trace_reader *r, bool first, struct err *e)
{
	int rc;

	while ((rc = trace_scan_key(&r->in, first, e)) == 1) {
		first = false;
		if (strcmp(r->in.word.s, "traceEvents") == 0) {
			if (trace_scan_take(&r->in) != '[')
				return trace_scan_bad(&r->in, e, "'traceEvents' is not an array");
			r->state = IN_EVENTS;
			r->seen_events = true;
			return 0;
		}
		rc = strcmp(r->in.word.s, "otherData") == 0 ? read_other(r, e)
							    : trace_scan_skip(&r->in, e);
		if (rc < 0)
			return rc;
	}
	if (rc == 0 && !r->seen_events)
		return trace_scan_bad(&r->in, e, "the array 'traceEvents' is missing");
	r->state = AT_END;
	return rc;
}

static int begin_file(struct trace_reader *r, struct err *e)
{
	int c = trace_scan_blanks(&r->in, false);

	if (c == '[') {
		trace_scan_take(&r->in);
		r->state = IN_EVENTS;
		return 0;
	}
	if (c != '{')
		return trace_scan_bad(&r->in, e,
				      c == TRACE_END
					      ? "the file is empty or unreadable"
					      : "expected '[' or '{' at the start of the trace");
	trace_scan_take(&r->in);
	r->in_object = true;
	return find_events(r, true, e);
}

/* ---- from events to items ---- */

static void set_item(struct trace_item *item, const struct event *ev, int64_t zero_ns)
{
	const struct trace_text *file = ev->hash.s[0] ? &ev->hash : &ev->path;

	*item = (struct trace_item){
		.kind = TRACE_ITEM_SPAN,
		.name = ev->name.s,
		.cat = ev->cat.s,
		.text = ev->path.s,
		.pid = ev->pid,
		.tid = ev->tid,
		.begin_ns = zero_ns + ev->ts,
		.end_ns = zero_ns + ev->ts + ev->dur,
		.epoch = ev->epoch,
		.step = ev->step,
		.sample = ev->sample,
		.offset = ev->offset,
		.asked = ev->asked,
		.moved = ev->moved,
		.file = file->s[0] ? text_key(file->s) : TRACE_NONE,
		.metadata = ev->metadata,
		.failed = ev->failed,
	};
}

static void put_pending(struct trace_reader *r)
{
	struct pending *p = &r->pending[r->next_pending++ % PENDING];

	p->used = true;
	p->pid = r->ev.pid;
	p->id = r->ev.id;
	set_item(&p->item, &r->ev, r->zero_ns);
	snprintf(p->name, sizeof(p->name), "%.63s", r->ev.name.s);
	snprintf(p->cat, sizeof(p->cat), "%.31s", r->ev.cat.s);
	snprintf(p->path, sizeof(p->path), "%s", r->ev.path.s);
	p->item.name = p->name;
	p->item.cat = p->cat;
	p->item.text = p->path;
	p->item.in_flight = true;
}

static bool end_pending(struct trace_reader *r, struct trace_item *item)
{
	for (size_t i = 0; i < PENDING; i++) {
		struct pending *p = &r->pending[i];

		if (!p->used || p->pid != r->ev.pid || p->id != r->ev.id ||
		    strncmp(p->name, r->ev.name.s, sizeof(p->name) - 1) != 0)
			continue;
		p->used = false;
		*item = p->item;
		item->end_ns = r->zero_ns + r->ev.ts;
		return item->end_ns >= item->begin_ns;
	}
	return false;
}

/* Names of processes, threads and files, in either spelling. */
static bool meta_item(struct trace_reader *r, struct trace_item *item)
{
	const struct event *ev = &r->ev;
	const char *what = ev->name.s;

	set_item(item, ev, 0);
	if (strcmp(what, "FH") == 0) {
		item->kind = TRACE_ITEM_FILE;
		item->file = text_key(ev->value.s);
	} else if (strcmp(what, "process_name") == 0) {
		item->kind = TRACE_ITEM_PROCESS;
	} else if (strcmp(what, "thread_name") == 0) {
		item->kind = TRACE_ITEM_THREAD;
	} else {
		if (strcmp(what, "SH") == 0 && strcmp(ev->path.s, "stoker") == 0)
			r->ours = true;
		return false;
	}
	return true;
}

/* 1 when the event makes an item, 0 when it does not. */
static int to_item(struct trace_reader *r, struct trace_item *item, struct err *e)
{
	const struct event *ev = &r->ev;

	if (ev->dropped != TRACE_NONE && strcmp(ev->cat.s, "dftracer") == 0)
		r->dropped = ev->dropped;
	if (ev->ph == 'M')
		return meta_item(r, item);
	if (ev->ph != 'X' && ev->ph != 'b' && ev->ph != 'e')
		return 0;
	if (!ev->has_ts)
		return trace_scan_bad(&r->in, e, "an event has no 'ts'");
	if (ev->ph == 'e')
		return end_pending(r, item);
	if (ev->ph == 'b') {
		put_pending(r);
		return 0;
	}
	set_item(item, ev, r->zero_ns);
	return 1;
}

int trace_reader_next(struct trace_reader *r, struct trace_item *item, struct err *e)
{
	int rc = 0;

	while (rc == 0 && r->state != AT_END) {
		int c;

		if (r->state == AT_START) {
			rc = begin_file(r, e);
			continue;
		}
		c = trace_scan_blanks(&r->in, true);
		if (c == TRACE_END) {
			rc = trace_scan_early(&r->in);
		} else if (c == ']') {
			trace_scan_take(&r->in);
			r->state = AT_END;
			if (r->in_object)
				rc = find_events(r, false, e);
		} else if (c != '{') {
			return trace_scan_bad(&r->in, e, "expected an event in braces");
		} else {
			rc = read_event(r, &r->ev, e);
			if (rc == 0)
				rc = to_item(r, item, e);
		}
	}
	if (rc == TRACE_END) {
		r->state = AT_END;
		return r->in.failed
			       ? err_sys(e, r->in.failed, "cannot read the trace '%s'", r->in.path)
			       : 0;
	}
	return rc;
}

int trace_reader_open(struct trace_reader **out, const char *path, struct err *e)
{
	struct trace_reader *r = xcalloc(1, sizeof(*r));
	int rc = trace_scan_open(&r->in, path, e);

	*out = NULL;
	if (rc < 0) {
		free(r);
		return rc;
	}
	*out = r;
	return 0;
}

void trace_reader_close(struct trace_reader *r)
{
	if (!r)
		return;
	trace_scan_close(&r->in);
	free(r);
}

bool trace_reader_cut(const struct trace_reader *r, uint64_t *line)
{
	*line = r->in.line;
	return r->in.cut;
}

bool trace_reader_ours(const struct trace_reader *r)
{
	return r->ours;
}

uint64_t trace_reader_dropped(const struct trace_reader *r)
{
	return r->dropped;
}
