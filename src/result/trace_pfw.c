/* trace-R-of-N.pfw: the trace of each rank as DFTracer leaves it under DLIO. "[", one JSON object a
 * line without commas, "]"; hashes of names as DFTracer 2 writes them, 16 hexadecimal digits. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "codec/digest.h"
#include "result/trace_events.h"

/* Which files' names were written lately: a few may be written twice, as several processes of
 * DFTracer do. */
#define NAMED_SLOTS 65536u
#define HASH_DIGITS 17
#define FORMAT_VERSION "2.0.0"

static const struct {
	const char *cat, *name;
} names[SPAN_KINDS] = {
	[SPAN_OPEN] = {"POSIX", "open64"},
	[SPAN_CLOSE] = {"POSIX", "close"},
	[SPAN_STAT] = {"POSIX", "__xstat64"},
	[SPAN_READ] = {"POSIX", "pread64"},
	[SPAN_WRITE] = {"POSIX", "pwrite64"},
	[SPAN_SYNC] = {"POSIX", "fsync"},
	[SPAN_RENAME] = {"POSIX", "rename"},
	[SPAN_MAP] = {"POSIX", "mmap64"},
	[SPAN_TOUCH] = {"mapped", "touch"},
	[SPAN_SAMPLE] = {"reader", "read_index"}, /* with the reader's class before it */
	[SPAN_DECODE] = {"stoker", "decode"},
	[SPAN_PREPROCESS] = {"data", "preprocess"},
	[SPAN_ITEM] = {"data", "item"},
	[SPAN_BATCH] = {"stoker", "batch"},
	[SPAN_FRAMEWORK] = {"stoker", "framework"},
	[SPAN_TRANSPORT] = {"stoker", "transport"},
	[SPAN_UNPACK] = {"stoker", "unpack"},
	[SPAN_PIN] = {"stoker", "pin"},
	[SPAN_RUN] = {"ai_root", "ai_root"},
	[SPAN_EPOCH] = {"pipeline", "epoch.block"},
	[SPAN_TRAIN] = {"pipeline", "train"},
	[SPAN_EVALUATE] = {"pipeline", "evaluate"},
	[SPAN_WAIT] = {"dataloader", "fetch.iter"},
	[SPAN_STEP] = {"dataloader", "fetch.block"},
	[SPAN_COMPUTE] = {"compute", "compute"},
	[SPAN_BARRIER] = {"comm", "barrier"},
	[SPAN_CAPTURE] = {"checkpoint", "capture"},
	[SPAN_RESTART] = {"checkpoint", "restart"},
};

struct pfw {
	const struct result *r;
	struct out_file f;
	uint64_t id;
	const char *reader;
	bool has_files;
	char host[HASH_DIGITS];
	uint64_t *named; /* NAMED_SLOTS keys of files, plus 1 */
	uint64_t key;    /* of `file` */
	char file[HASH_DIGITS];
};

/* DFTracer's: the high half of each byte of the MD5. */
/* Microseconds since 1970 of a monotonic time, rounded down, so that spans nest as they did. */
static int64_t wall_us(const struct result *r, int64_t ns)
{
	return (r->begin_wall_ns + (ns - r->begin_ns)) / 1000;
}

static void hash(const char *text, char out[HASH_DIGITS])
{
	unsigned char sum[16];

	md5(text, strlen(text), sum);
	for (int i = 0; i < 16; i++)
		out[i] = "0123456789abcdef"[sum[i] >> 4];
	out[16] = '\0';
}

/* As DFTracer stores names. */
static void plain(char *text)
{
	for (char *p = text; (p = strpbrk(p, "()\\\"'|")); p++)
		*p = ' ';
}

static void put_meta(struct pfw *p, const char *what, uint32_t pid, uint32_t tid, const char *name,
		     const char *value)
{
	out_file_print(&p->f,
		       "{\"id\":%" PRIu64 ",\"name\":\"%s\",\"cat\":\"dftracer\",\"pid\":%u,"
		       "\"tid\":%u,\"ph\":\"M\",\"args\":{\"hhash\":\"%s\",\"name\":\"",
		       p->id++, what, pid, tid, p->host);
	trace_put_text(&p->f, name);
	out_file_print(&p->f, "\",\"value\":\"%s\"}}\n", value);
}

/* The hash of a file's name, written out before it is first used; NULL: no file. */
static const char *file_hash(struct pfw *p, const struct trace_event *ev)
{
	unsigned kind = ev->dataset == SPAN_NAMED ? DATASET_KINDS : ev->dataset;
	uint64_t key = ev->span->file * (DATASET_KINDS + 1) + kind + 1;
	uint64_t *slot = &p->named[key % NAMED_SLOTS];
	char path[DATASET_PATH_MAX];

	if (ev->span->file == SPAN_NONE)
		return NULL;
	if (key == p->key && *slot == key)
		return p->file;
	if (!trace_file_path(p->r, ev, path, sizeof(path)))
		return NULL;
	plain(path);
	hash(path, p->file);
	p->key = key;
	if (*slot != key)
		put_meta(p, "FH", ev->pid, ev->tid, path, p->file);
	*slot = key;
	return p->file;
}

static void put_head(struct pfw *p, const char *cat, const char *class, const char *name,
		     uint32_t pid, uint32_t tid, int64_t ts, int64_t dur)
{
	struct out_file *f = &p->f;

	out_file_text(f, "{\"id\":");
	out_file_number(f, p->id++);
	out_file_text(f, ",\"name\":\"");
	if (class) {
		out_file_text(f, class);
		out_file_text(f, ".");
	}
	out_file_text(f, name);
	out_file_text(f, "\",\"cat\":\"");
	out_file_text(f, cat);
	out_file_text(f, "\",\"pid\":");
	out_file_number(f, pid);
	out_file_text(f, ",\"tid\":");
	out_file_number(f, tid);
	out_file_text(f, ",\"ts\":");
	out_file_number(f, (uint64_t)ts);
	out_file_text(f, ",\"dur\":");
	out_file_number(f, (uint64_t)dur);
	out_file_text(f, ",\"ph\":\"X\",\"args\":{\"hhash\":\"");
	out_file_text(f, p->host);
	out_file_text(f, "\"");
}

static void put_word(struct pfw *p, const char *key, uint64_t v)
{
	out_file_text(&p->f, key);
	out_file_number(&p->f, v);
	out_file_text(&p->f, "\"");
}

/* What DLIO adds comes from Python as texts. */
static void put_words(struct pfw *p, const struct trace_event *ev)
{
	const struct span *s = ev->span;

	if (ev->epoch)
		put_word(p, ",\"epoch\":\"", ev->epoch);
	if (s->kind == SPAN_EPOCH)
		put_word(p, ",\"count\":\"", ev->epoch);
	if (s->kind == SPAN_WAIT || s->kind == SPAN_STEP)
		put_word(p, ",\"count\":\"", (uint64_t)s->step + 1);
	if (s->step != SPAN_NO_STEP)
		put_word(p, ",\"step\":\"", (uint64_t)s->step + 1);
	if (s->sample != SPAN_NONE)
		put_word(p, ",\"image_idx\":\"", s->sample);
	if (s->kind == SPAN_SAMPLE || s->kind == SPAN_ITEM || s->kind == SPAN_DECODE)
		put_word(p, ",\"image_size\":\"", s->moved);
}

static void put_event(void *arg, const struct trace_event *ev)
{
	struct pfw *p = arg;
	const struct span *s = ev->span;
	int64_t ts = wall_us(p->r, s->begin_ns);
	const char *cat = names[s->kind].cat, *name = names[s->kind].name, *file = NULL;

	if (s->kind <= SPAN_TOUCH)
		file = file_hash(p, ev);
	if (s->kind < SPAN_TOUCH && !p->has_files)
		cat = "store";
	if (s->flags & SPAN_VECTOR)
		name = s->kind == SPAN_READ ? "preadv" : "pwritev";
	put_head(p, cat, s->kind == SPAN_SAMPLE ? p->reader : NULL, name, ev->pid, ev->tid, ts,
		 wall_us(p->r, s->end_ns) - ts);
	if (s->kind > SPAN_TOUCH) {
		put_words(p, ev);
	} else {
		if (file) {
			out_file_text(&p->f, ",\"fhash\":\"");
			out_file_text(&p->f, file);
			out_file_text(&p->f, "\"");
		}
		if (s->kind == SPAN_READ || s->kind == SPAN_WRITE || s->kind == SPAN_TOUCH) {
			out_file_text(&p->f, ",\"count\":");
			out_file_number(&p->f, s->asked);
			out_file_text(&p->f, ",\"offset\":");
			out_file_number(&p->f, s->offset);
		}
		out_file_text(&p->f, s->flags & SPAN_FAILED ? ",\"ret\":-" : ",\"ret\":");
		out_file_number(&p->f, s->flags & SPAN_FAILED ? 1 : s->moved);
	}
	out_file_put(&p->f, "}}\n", 3);
}

static void put_thread(void *arg, uint32_t pid, uint32_t tid, const char *name)
{
	struct pfw *p = arg;

	if (pid == tid)
		put_meta(p, "process_name", pid, tid, name, "process_name");
	put_meta(p, "thread_name", pid, tid, name, "thread_name");
}

/* The events that frame a file. */
static void put_frame(struct pfw *p, uint32_t rank, bool begin)
{
	uint64_t kept, dropped;
	char command[HASH_DIGITS], date[32];
	int64_t end = p->r->begin_ns + (p->r->end_wall_ns - p->r->begin_wall_ns);
	int64_t at = wall_us(p->r, begin ? p->r->begin_ns : end);

	if (begin) {
		hash("stoker", command);
		put_meta(p, "SH", rank + 1, rank + 1, "stoker", command);
		put_head(p, "dftracer", NULL, "start", rank + 1, rank + 1, at, 0);
		clock_timestamp(p->r->begin_wall_ns, date, sizeof(date));
		out_file_print(
			&p->f,
			",\"cmd_hash\":\"%s\",\"exec_hash\":\"%s\",\"version\":\"" FORMAT_VERSION
			"\",\"date\":\"%s\",\"ppid\":%ld}}\n",
			command, command, date, (long)getppid());
		return;
	}
	trace_count(p->r->trace, &kept, &dropped);
	put_head(p, "dftracer", NULL, "end", rank + 1, rank + 1, at, 0);
	out_file_print(&p->f, ",\"num_events\":%" PRIu64 ",\"spans_dropped\":%" PRIu64 "}}\n",
		       p->id, dropped);
}

static int write_rank(struct pfw *p, uint32_t rank, struct err *e)
{
	AUTO_FREE char *name = xasprintf("trace-%u-of-%u.pfw", rank, p->r->ranks);
	AUTO_FREE char *path = path_join(p->r->folder, name);
	int rc = out_file_open(&p->f, path, FILE_OURS, e);

	if (rc < 0)
		return rc;
	p->id = 0;
	p->key = 0;
	memset(p->named, 0, NAMED_SLOTS * sizeof(*p->named));
	out_file_print(&p->f, "[\n");
	put_meta(p, "HH", rank + 1, rank + 1, p->r->host.hostname, p->host);
	put_frame(p, rank, true);
	trace_rank_threads(p->r, rank, put_thread, p);
	trace_rank_events(p->r, rank, put_event, p);
	put_frame(p, rank, false);
	out_file_print(&p->f, "]\n");
	return out_file_close(&p->f, e);
}

int trace_write_pfw(const struct result *r, struct err *e)
{
	struct pfw p = {.r = r, .reader = "FormatReader"};
	int rc = 0;

	p.named = try_calloc(NAMED_SLOTS, sizeof(*p.named), "names of a trace", e);
	if (!p.named)
		return -ENOMEM;
	p.has_files = workload_base_store(r->workload)->flags & STORE_HAS_FILES;
	hash(r->host.hostname, p.host);
	if (workload_format(r->workload)->dlio_reader)
		p.reader = workload_format(r->workload)->dlio_reader;
	for (uint32_t k = 0; rc == 0 && k < r->ranks_here; k++)
		rc = write_rank(&p, r->first_rank + k, e);
	free(p.named);
	return rc;
}
