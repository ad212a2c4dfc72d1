/* trace.json: the trace of a run for Perfetto and chrome://tracing (Trace Event Format). */
#include <inttypes.h>

#include "base/alloc.h"
#include "base/file.h"
#include "result/trace_events.h"

static const struct {
	const char *cat, *name;
} names[SPAN_KINDS] = {
	[SPAN_OPEN] = {"store", "open"},
	[SPAN_CLOSE] = {"store", "close"},
	[SPAN_STAT] = {"store", "stat"},
	[SPAN_READ] = {"store", "read"},
	[SPAN_WRITE] = {"store", "write"},
	[SPAN_SYNC] = {"store", "sync"},
	[SPAN_RENAME] = {"store", "rename"},
	[SPAN_MAP] = {"store", "map"},
	[SPAN_TOUCH] = {"store", "touch"},
	[SPAN_SAMPLE] = {"reader", "sample"},
	[SPAN_DECODE] = {"reader", "decode"},
	[SPAN_PREPROCESS] = {"reader", "preprocess"},
	[SPAN_ITEM] = {"reader", "item"},
	[SPAN_BATCH] = {"reader", "batch"},
	[SPAN_FRAMEWORK] = {"reader", "framework"},
	[SPAN_TRANSPORT] = {"reader", "transport"},
	[SPAN_UNPACK] = {"reader", "unpack"},
	[SPAN_PIN] = {"reader", "pin"},
	[SPAN_RUN] = {"rank", "run"},
	[SPAN_EPOCH] = {"rank", "epoch"},
	[SPAN_TRAIN] = {"rank", "train"},
	[SPAN_EVALUATE] = {"rank", "evaluate"},
	[SPAN_WAIT] = {"rank", "wait"},
	[SPAN_STEP] = {"rank", "step"},
	[SPAN_COMPUTE] = {"rank", "compute"},
	[SPAN_BARRIER] = {"rank", "barrier"},
	[SPAN_CAPTURE] = {"rank", "checkpoint"},
	[SPAN_RESTART] = {"rank", "restore"},
};

struct chrome {
	const struct result *r;
	struct out_file f;
	uint64_t flying; /* ids of events that may overlap */
	bool more;
	uint64_t file; /* `path` is its path */
	const struct span_ring *ring;
	bool has_path;
	char path[DATASET_PATH_MAX];
};

/* Nanoseconds as microseconds, exactly: since the run began, so that a double holds them. */
static void put_time(struct chrome *c, const char *key, int64_t ns)
{
	unsigned part = (unsigned)(ns % 1000);
	const char digits[] = {'.', (char)('0' + part / 100), (char)('0' + part / 10 % 10),
			       (char)('0' + part % 10)};

	out_file_text(&c->f, key);
	out_file_number(&c->f, (uint64_t)ns / 1000);
	out_file_put(&c->f, digits, sizeof(digits));
}

/* `key` with quotes and colon. */
static void put_arg(struct chrome *c, const char *key, uint64_t v, const char **comma)
{
	out_file_text(&c->f, *comma);
	out_file_text(&c->f, key);
	out_file_number(&c->f, v);
	*comma = ",";
}

/* The path of a request's file, kept: its requests follow each other. */
static const char *path_of(struct chrome *c, const struct trace_event *ev)
{
	const struct span *s = ev->span;

	if (s->kind > SPAN_TOUCH || s->file == SPAN_NONE)
		return NULL;
	if (s->file != c->file || ev->ring != c->ring) {
		c->file = s->file;
		c->ring = ev->ring;
		c->has_path = trace_file_path(c->r, ev, c->path, sizeof(c->path));
	}
	return c->has_path ? c->path : NULL;
}

static void put_args(struct chrome *c, const struct trace_event *ev)
{
	const struct span *s = ev->span;
	const char *comma = "", *path = path_of(c, ev);

	out_file_text(&c->f, ",\"args\":{");
	if (ev->epoch)
		put_arg(c, "\"epoch\":", ev->epoch, &comma);
	if (s->step != SPAN_NO_STEP)
		put_arg(c, "\"step\":", (uint64_t)s->step + 1, &comma);
	if (s->sample != SPAN_NONE)
		put_arg(c, "\"sample\":", s->sample, &comma);
	if (s->kind == SPAN_READ || s->kind == SPAN_WRITE || s->kind == SPAN_TOUCH) {
		put_arg(c, "\"offset\":", s->offset, &comma);
		put_arg(c, "\"asked_bytes\":", s->asked, &comma);
	}
	if (s->moved)
		put_arg(c, "\"bytes\":", s->moved, &comma);
	if (s->flags & SPAN_META)
		put_arg(c, "\"metadata\":", 1, &comma);
	if (s->flags & SPAN_FAILED)
		put_arg(c, "\"failed\":", 1, &comma);
	if (path) {
		out_file_text(&c->f, comma);
		out_file_text(&c->f, "\"file\":\"");
		trace_put_text(&c->f, path);
		out_file_text(&c->f, "\"");
	}
	out_file_text(&c->f, "}}");
}

static void head(struct chrome *c, const struct trace_event *ev, const char *phase)
{
	const struct span *s = ev->span;

	out_file_text(&c->f, c->more ? ",\n{\"ph\":\"" : "{\"ph\":\"");
	out_file_text(&c->f, phase);
	out_file_text(&c->f, "\",\"name\":\"");
	out_file_text(&c->f, names[s->kind].name);
	out_file_text(&c->f, "\",\"cat\":\"");
	out_file_text(&c->f, names[s->kind].cat);
	out_file_text(&c->f, "\",\"pid\":");
	out_file_number(&c->f, ev->pid);
	out_file_text(&c->f, ",\"tid\":");
	out_file_number(&c->f, ev->tid);
	c->more = true;
}

static void put_event(void *arg, const struct trace_event *ev)
{
	struct chrome *c = arg;
	const struct span *s = ev->span;

	if (!(s->flags & SPAN_IN_FLIGHT)) {
		head(c, ev, "X");
		put_time(c, ",\"ts\":", s->begin_ns - c->r->begin_ns);
		put_time(c, ",\"dur\":", s->end_ns - s->begin_ns);
		put_args(c, ev);
		return;
	}
	head(c, ev, "b");
	put_time(c, ",\"ts\":", s->begin_ns - c->r->begin_ns);
	out_file_print(&c->f, ",\"id\":\"0x%" PRIx64 "\"", ++c->flying);
	put_args(c, ev);
	head(c, ev, "e");
	put_time(c, ",\"ts\":", s->end_ns - c->r->begin_ns);
	out_file_print(&c->f, ",\"id\":\"0x%" PRIx64 "\"}", c->flying);
}

static void put_name(struct chrome *c, const char *what, uint32_t pid, uint32_t tid,
		     const char *name)
{
	out_file_print(&c->f,
		       "%s{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":"
		       "\"%s\"}}",
		       c->more ? ",\n" : "", what, pid, tid, name);
	c->more = true;
}

static void put_thread(void *arg, uint32_t pid, uint32_t tid, const char *name)
{
	if (pid == tid)
		put_name(arg, "process_name", pid, tid, name);
	put_name(arg, "thread_name", pid, tid, name);
}

int trace_write_chrome(const struct result *r, bool several, struct err *e)
{
	struct chrome c = {.r = r, .file = SPAN_NONE};
	AUTO_FREE char *name =
		several ? xasprintf("trace-%u.json", r->first_rank) : xstrdup("trace.json");
	AUTO_FREE char *path = path_join(r->folder, name);
	uint64_t kept, dropped;
	int rc = out_file_open(&c.f, path, FILE_OURS, e);

	if (rc < 0)
		return rc;
	trace_count(r->trace, &kept, &dropped);
	out_file_print(
		&c.f,
		"{\"displayTimeUnit\":\"ms\",\"otherData\":{\"program\":\"stoker " STOKER_VERSION
		"\",\"begin_unix_ns\":\"%" PRId64 "\",\"spans_dropped\":%" PRIu64
		"},\n\"traceEvents\":[\n",
		r->begin_wall_ns, dropped);
	for (uint32_t k = 0; k < r->ranks_here; k++) {
		trace_rank_threads(r, r->first_rank + k, put_thread, &c);
		trace_rank_events(r, r->first_rank + k, put_event, &c);
	}
	out_file_print(&c.f, "\n]}\n");
	return out_file_close(&c.f, e);
}
