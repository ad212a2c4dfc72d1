#include "page/trace_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/str.h"

#define PIECE 65536u
#define PENDING 256u /* events whose end has not come */
#define PATH_KEPT 4096u
#define BLANKS " \t\r\n"

struct trace_pending {
	struct trace_item item;
	uint64_t id;
	bool used;
	char name[64], cat[32], path[PATH_KEPT];
};

/* ---- values of the file ---- */

/* "trace 'FILE', line N: <what>"; ERR_DATA. `at`: in the value that was had last, or NULL for what
 * comes next. */
static int bad(const struct trace_items *r, struct err *e, const char *at, const char *what)
{
	uint64_t line = r->in.line + 1;

	for (; at && *at; at++)
		line -= *at == '\n';
	return err_set(e, ERR_DATA, "trace '%s', line %llu: %s", r->in.path,
		       (unsigned long long)line, what);
}

/* Both give 1, an error, or 0 when the file broke off. */
static int next_byte(struct trace_items *r, const char *skip, char *c, struct err *e)
{
	int rc = trace_lines_peek(&r->in, skip, c, e);

	r->cut = rc == 0;
	return rc;
}

static int next_value(struct trace_items *r, struct err *e)
{
	int rc = trace_lines_value(&r->in, e);

	r->cut = rc == 0;
	return rc;
}

/* The next value, an object, to r->ev. */
static int next_object(struct trace_items *r, bool args, struct err *e)
{
	int rc = next_value(r, e);

	if (rc < 0)
		return rc;
	if (!r->in.whole)
		return bad(r, e, NULL, "an event is longer than 1 MiB");
	/* a bracket that is missing takes the rest of the file: what is wrong is in the midst */
	pfw_object(r->in.text.data, args, &r->ev);
	return r->ev.wrong && (rc || *r->ev.at) ? bad(r, e, r->ev.at, r->ev.wrong) : rc;
}

/* ---- from events to items ---- */

static uint64_t text_key(const char *text)
{
	uint64_t h = fnv1a_text(FNV_START, text);

	return h == TRACE_NONE ? 0 : h;
}

static const struct pfw_text *either(const struct trace_items *r, enum pfw_field a,
				     enum pfw_field b)
{
	return &r->ev.f[r->ev.f[a].there ? a : b];
}

static uint64_t count(const struct pfw_text *t)
{
	int64_t v;

	return pfw_number(t, &v) && v >= 0 ? (uint64_t)v : TRACE_NONE;
}

static void set_item(struct trace_items *r, struct trace_item *item, int64_t begin_ns,
		     int64_t dur_ns)
{
	const struct pfw_text *f = r->ev.f, *ret = &f[A_RET];

	*item = (struct trace_item){
		.kind = TRACE_ITEM_SPAN,
		.name = pfw_plain(&f[F_NAME], &r->name),
		.cat = pfw_plain(&f[F_CAT], &r->cat),
		.text = pfw_plain(either(r, A_FILE, A_NAME), &r->text),
		.pid = f[F_PID].there ? count(&f[F_PID]) : 0,
		.tid = f[F_TID].there ? count(&f[F_TID]) : 0,
		.begin_ns = begin_ns,
		.end_ns = begin_ns + dur_ns,
		.epoch = count(&f[A_EPOCH]),
		.step = count(&f[A_STEP]),
		.sample = count(either(r, A_SAMPLE, A_IMAGE)),
		.offset = count(&f[A_OFFSET]),
		.asked = count(either(r, A_ASKED, A_COUNT)),
		.moved = count(either(r, A_BYTES, A_IMAGE_SIZE)),
		.file = TRACE_NONE,
		.metadata = pfw_is(&f[A_METADATA], "1"),
		.failed = pfw_is(&f[A_FAILED], "1"),
	};
	if (ret->n && ret->p[0] == '-')
		item->failed = true;
	else if (ret->there)
		item->moved = count(ret);
	if (f[A_FHASH].n)
		item->file = text_key(pfw_plain(&f[A_FHASH], &r->key));
	else if (item->text[0])
		item->file = text_key(item->text);
}

static uint64_t id_of(struct trace_items *r)
{
	return r->ev.f[F_ID].there ? text_key(pfw_plain(&r->ev.f[F_ID], &r->key)) : TRACE_NONE;
}

static void put_pending(struct trace_items *r, const struct trace_item *item)
{
	struct trace_pending *p = &r->pending[r->next_pending++ % PENDING];

	*p = (struct trace_pending){.used = true, .id = id_of(r), .item = *item};
	snprintf(p->name, sizeof(p->name), "%.63s", item->name);
	snprintf(p->cat, sizeof(p->cat), "%.31s", item->cat);
	snprintf(p->path, sizeof(p->path), "%.*s", (int)PATH_KEPT - 1, item->text);
	p->item.name = p->name;
	p->item.cat = p->cat;
	p->item.text = p->path;
	p->item.in_flight = true;
}

/* The item that began before and ends with this one. */
static bool end_pending(struct trace_items *r, struct trace_item *item)
{
	uint64_t id = id_of(r);

	for (size_t i = 0; i < PENDING; i++) {
		struct trace_pending *p = &r->pending[i];
		int64_t end_ns = item->begin_ns;

		if (!p->used || p->item.pid != item->pid || p->id != id ||
		    strncmp(p->name, item->name, sizeof(p->name) - 1) != 0)
			continue;
		p->used = false;
		*item = p->item;
		item->end_ns = end_ns;
		return end_ns >= item->begin_ns;
	}
	return false;
}

/* Names of processes, threads and files, in either spelling. */
static bool meta_item(struct trace_items *r, struct trace_item *item)
{
	if (strcmp(item->name, "FH") == 0) {
		item->kind = TRACE_ITEM_FILE;
		item->file = text_key(pfw_plain(&r->ev.f[A_VALUE], &r->key));
	} else if (strcmp(item->name, "process_name") == 0) {
		item->kind = TRACE_ITEM_PROCESS;
	} else if (strcmp(item->name, "thread_name") == 0) {
		item->kind = TRACE_ITEM_THREAD;
	} else {
		if (strcmp(item->name, "SH") == 0 && pfw_is(&r->ev.f[A_NAME], "stoker"))
			r->ours = true;
		return false;
	}
	return true;
}

/* 1 when the event in r->ev makes an item, 0 when it does not. */
static int to_item(struct trace_items *r, struct trace_item *item, struct err *e)
{
	const struct pfw_text *f = r->ev.f;
	char ph = f[F_PH].n ? f[F_PH].p[0] : '\0';
	uint64_t dropped = count(&f[A_DROPPED]);
	int64_t ts = 0, dur = 0;

	if (f[F_TS].there && !pfw_ns(&f[F_TS], &ts))
		return bad(r, e, f[F_TS].p, "'ts' is not a time in microseconds");
	if (f[F_DUR].there && (!pfw_ns(&f[F_DUR], &dur) || dur < 0))
		return bad(r, e, f[F_DUR].p, "'dur' is not a duration in microseconds");
	if (dropped != TRACE_NONE && pfw_is(&f[F_CAT], "dftracer"))
		r->dropped = dropped;
	if (ph != 'M' && ph != 'X' && ph != 'b' && ph != 'e')
		return 0;
	set_item(r, item, r->zero_ns + ts, dur);
	if (ph == 'M')
		return meta_item(r, item);
	if (!f[F_TS].there)
		return bad(r, e, r->in.text.data, "an event has no 'ts'");
	if (ph == 'e')
		return end_pending(r, item);
	if (ph == 'b')
		put_pending(r, item);
	return ph == 'X';
}

/* ---- the file around the events ---- */

static int read_other(struct trace_items *r, struct err *e)
{
	const struct pfw_text *f = r->ev.f;
	int rc = next_object(r, true, e);
	uint64_t dropped;

	if (rc <= 0)
		return rc;
	r->ours = str_starts(pfw_plain(&f[A_PROGRAM], &r->key), "stoker ");
	dropped = count(&f[A_DROPPED]);
	if (dropped != TRACE_NONE)
		r->dropped = dropped;
	if (f[A_BEGIN].there &&
	    (!pfw_number(&f[A_BEGIN], &r->zero_ns) || r->zero_ns < 0 || r->zero_ns > PFW_NS_MAX))
		return bad(r, e, f[A_BEGIN].p,
			   "'begin_unix_ns' is not a plausible Unix time in nanoseconds");
	return 1;
}

/* A member of the object that is the whole file, or its end. */
static int read_member(struct trace_items *r, struct err *e)
{
	const char *key;
	bool events, other;
	char c;
	int rc = next_byte(r, BLANKS ",", &c, e);

	if (rc > 0 && c == '}') {
		r->state = TRACE_OVER;
		return r->seen_events ? 1 : bad(r, e, NULL, "the array 'traceEvents' is missing");
	}
	if (rc > 0 && c != '"')
		return bad(r, e, NULL, "expected a quoted object key");
	if (rc > 0)
		rc = next_value(r, e);
	if (rc <= 0)
		return rc;
	key = r->in.text.data;
	events = strcmp(key, "\"traceEvents\"") == 0;
	other = strcmp(key, "\"otherData\"") == 0;
	rc = next_byte(r, BLANKS, &c, e);
	if (rc > 0 && c != ':')
		return bad(r, e, NULL, "expected a colon after a key");
	r->in.used += rc > 0;
	if (rc > 0)
		rc = next_byte(r, BLANKS, &c, e);
	if (rc <= 0)
		return rc;
	if (events && c != '[')
		return bad(r, e, NULL, "'traceEvents' is not an array");
	if (events) {
		r->in.used++;
		r->seen_events = true;
		r->state = TRACE_EVENTS;
		return 1;
	}
	if (other && c == '{')
		return read_other(r, e);
	rc = next_value(r, e);
	return rc > 0 && !r->in.text.len ? bad(r, e, NULL, "expected a JSON value") : rc;
}

static int read_begin(struct trace_items *r, struct err *e)
{
	char c = '\0';
	int rc = next_byte(r, BLANKS, &c, e);

	if (rc < 0)
		return rc;
	if (c != '[' && c != '{')
		return bad(r, e, NULL,
			   rc ? "expected '[' or '{' at the start of the trace"
			      : "the file is empty or unreadable");
	r->in.used++;
	r->in_object = c == '{';
	r->state = r->in_object ? TRACE_MEMBERS : TRACE_EVENTS;
	return 1;
}

int trace_items_next(struct trace_items *r, struct trace_item *item, struct err *e)
{
	int rc = 1;

	while (rc > 0 && r->state != TRACE_OVER) {
		char c;

		if (r->state != TRACE_EVENTS) {
			rc = r->state == TRACE_BEGIN ? read_begin(r, e) : read_member(r, e);
			continue;
		}
		rc = next_byte(r, BLANKS ",", &c, e);
		if (rc <= 0)
			break;
		if (c == ']') {
			r->in.used++;
			r->state = r->in_object ? TRACE_MEMBERS : TRACE_OVER;
			continue;
		}
		if (c != '{')
			return bad(r, e, NULL, "expected an event in braces");
		rc = next_object(r, false, e);
		if (rc <= 0)
			break;
		rc = to_item(r, item, e);
		if (rc)
			return rc;
		rc = 1;
	}
	return rc < 0 ? rc : 0;
}

void trace_items_open(struct trace_items *r, const char *path)
{
	*r = (struct trace_items){.pending = xcalloc(PENDING, sizeof(*r->pending))};
	trace_lines_open(&r->in, path, PIECE);
}

void trace_items_close(struct trace_items *r)
{
	trace_lines_close(&r->in);
	buf_release(&r->name);
	buf_release(&r->cat);
	buf_release(&r->text);
	buf_release(&r->key);
	free(r->pending);
}
