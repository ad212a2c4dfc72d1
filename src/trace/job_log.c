/* A job in memory: tables that grow, and what follows from the events. */
#include "trace/job_log.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/saturate.h"
#include "base/str.h"
#include "base/vector.h"
#include "os/sysinfo.h"

#define LOOKED_AT_FROM (UINT64_C(64) << 20) /* bytes that any machine has */
#define SIZES_FOLLOWED 32 /* request sizes a file; the four most frequent are of these */

void job_init(struct job *job)
{
	*job = (struct job){.source = "", .start_s = JOB_UNKNOWN, .wall_ns = JOB_UNKNOWN};
}

void job_release(struct job *job)
{
	for (size_t i = 0; i < job->heats; i++) {
		free(job->heat[i].read);
		free(job->heat[i].written);
	}
	free(job->heat);
	free(job->connection);
	free(job->exchange);
	free(job->event);
	free(job->thread);
	free(job->process);
	free(job->file);
	texts_release(&job->file_keys);
	texts_release(&job->names);
	texts_release(&job->notes);
	job_init(job);
}

static struct job_counts no_counts(int64_t none)
{
	struct job_counts c = {
		.first_ns = JOB_UNKNOWN,
		.last_ns = JOB_UNKNOWN,
		.read_begin_ns = JOB_UNKNOWN,
		.read_end_ns = JOB_UNKNOWN,
		.write_begin_ns = JOB_UNKNOWN,
		.write_end_ns = JOB_UNKNOWN,
	};
	int64_t *count = (void *)&c; /* all that is before the times is counts */

	for (size_t i = 0; i < offsetof(struct job_counts, read_s) / sizeof(*count); i++)
		count[i] = none;
	return c;
}

uint32_t job_file(struct job *job, const char *name, enum job_file_kind kind)
{
	size_t size = strlen(name) + 2, known = job->file_keys.n, i;
	char *key = xmalloc(size);

	snprintf(key, size, "%c%s", 'a' + (int)kind, name);
	i = texts_add(&job->file_keys, key);
	free(key);
	if (i < known)
		return (uint32_t)i;
	VECTOR_PUSH(job->file, job->files, job->file_room,
		    {.name = job->file_keys.v[i] + 1,
		     .kind = kind,
		     .size = JOB_UNKNOWN,
		     .counts = no_counts(-1)});
	assert(job->files == job->file_keys.n);
	return (uint32_t)i;
}

const char *job_text(struct job *job, const char *s)
{
	/* the array may move while the text is added */
	size_t i = texts_add(&job->names, s);

	return job->names.v[i];
}

uint32_t job_process(struct job *job, int64_t pid, const char *host, uint32_t parent)
{
	assert(parent == JOB_NONE || parent < job->processes);
	VECTOR_ROOM(job->process, job->processes, job->process_room, 1);
	job->process[job->processes] = (struct job_process){
		.pid = pid,
		.parent = parent,
		.host = job_text(job, host),
		.command = job_text(job, ""),
		.libraries = job_text(job, ""),
		.rank = -1,
		.begin_ns = JOB_UNKNOWN,
		.end_ns = JOB_UNKNOWN,
		.exit = JOB_UNKNOWN,
		.kernel_read_bytes = JOB_UNKNOWN,
		.kernel_write_bytes = JOB_UNKNOWN,
		.logged_read_bytes = JOB_UNKNOWN,
		.storage_read_bytes = JOB_UNKNOWN,
		.logged_write_bytes = JOB_UNKNOWN,
	};
	return (uint32_t)job->processes++;
}

uint32_t job_add_thread(struct job *job, uint32_t process, int64_t tid)
{
	assert(process < job->processes);
	VECTOR_PUSH(job->thread, job->threads, job->thread_room, {.process = process, .tid = tid});
	return (uint32_t)job->threads - 1;
}

struct job_heat *job_heat(struct job *job, uint32_t process, double bin_s, size_t bins)
{
	VECTOR_PUSH(job->heat, job->heats, job->heat_room,
		    {.process = process,
		     .bin_s = bin_s,
		     .bins = bins,
		     .read = xcalloc(bins, sizeof(int64_t)),
		     .written = xcalloc(bins, sizeof(int64_t))});
	return &job->heat[job->heats - 1];
}

static void bound(int64_t *v)
{
	if (*v != JOB_UNKNOWN && *v < -JOB_NUMBER_MAX)
		*v = -JOB_NUMBER_MAX;
	else if (*v > JOB_NUMBER_MAX)
		*v = JOB_NUMBER_MAX;
}

/* The kernel ends processes for memory that it promised and does not have. */
static int check_memory(struct job *job, struct err *e)
{
	uint64_t held = job->events * sizeof(*job->event) + job->files * sizeof(*job->file) +
			job->threads * sizeof(*job->thread) +
			job->processes * sizeof(*job->process) +
			job->connections * sizeof(*job->connection) +
			job->exchanges * sizeof(*job->exchange);
	uint64_t left;
	char has[32], takes[32];

	if (held < job->look_at)
		return 0;
	job->look_at = 2 * (held < LOOKED_AT_FROM ? LOOKED_AT_FROM : held);
	left = host_available_bytes();
	if (job->left_most && left > job->left_most)
		left = job->left_most;
	if (held < LOOKED_AT_FROM || left / 2 >= held)
		return 0;
	return err_set(e, -ENOMEM,
		       "the log is too large for this machine: %zu requests of %zu files take %s, "
		       "all of it more, and %s of memory are available. Use a part of the log, or "
		       "a machine with more memory",
		       job->events, job->files, str_bytes((double)held, takes, sizeof(takes)),
		       str_bytes((double)left, has, sizeof(has)));
}

int job_add(struct job *job, const struct job_event *event, struct err *e)
{
	struct job_event *added;

	assert(event->thread < job->threads && event->kind < JOB_KINDS);
	assert(event->file == JOB_NONE || event->file < job->files);
	if (job->events >= JOB_EVENTS_MAX)
		return err_set(e, -EFBIG,
			       "the log has more than %llu requests, which is as many as are read",
			       (unsigned long long)JOB_EVENTS_MAX);
	if (check_memory(job, e) < 0)
		return -ENOMEM;
	if (VECTOR_TRY(job->event, job->events, job->event_room, 1, "the requests of the log", e))
		return -ENOMEM;
	added = &job->event[job->events++];
	*added = *event;
	bound(&added->begin_ns);
	bound(&added->end_ns);
	bound(&added->offset);
	bound(&added->asked);
	bound(&added->result);
	return 0;
}

int job_add_connection(struct job *job, const struct job_connection *c, struct err *e)
{
	assert(c->process < job->processes);
	if (check_memory(job, e) < 0 || VECTOR_TRY(job->connection, job->connections,
						   job->connection_room, 1, "the connections", e))
		return -ENOMEM;
	job->connection[job->connections++] = *c;
	return 0;
}

int job_add_exchange(struct job *job, const struct job_exchange *x, struct err *e)
{
	assert(x->connection < job->connections && x->thread < job->threads);
	if (job->exchanges >= JOB_EVENTS_MAX || check_memory(job, e) < 0 ||
	    VECTOR_TRY(job->exchange, job->exchanges, job->exchange_room, 1, "the requests", e))
		return -ENOMEM;
	job->exchange[job->exchanges++] = *x;
	return 0;
}

struct job_event job_event_of(enum job_event_kind kind, uint32_t thread, int64_t begin_ns,
			      int64_t end_ns)
{
	return (struct job_event){
		.begin_ns = begin_ns,
		.end_ns = end_ns,
		.offset = JOB_UNKNOWN,
		.asked = JOB_UNKNOWN,
		.thread = thread,
		.file = JOB_NONE,
		.other = JOB_NONE,
		.descriptor = JOB_NONE,
		.kind = (uint8_t)kind,
	};
}

uint32_t *job_numbers(size_t n)
{
	uint32_t *v = xmalloc((n + 1) * sizeof(*v));

	memset(v, 0xff, (n + 1) * sizeof(*v)); /* JOB_NONE */
	return v;
}

static int by_name(const void *x, const void *y, void *of)
{
	const struct job_file *file = of;
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	return strcmp(file[a].name, file[b].name) ?: ORDER(a, b);
}

void job_sort_by_name(const struct job *job, uint32_t *file, size_t n)
{
	qsort_r(file, n, sizeof(*file), by_name, job->file);
}

static int by_number(const void *x, const void *y, void *of)
{
	const struct job_file *file = of;
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	return strverscmp(file[a].name, file[b].name) ?: ORDER(a, b);
}

void job_sort_by_number(const struct job *job, uint32_t *file, size_t n)
{
	qsort_r(file, n, sizeof(*file), by_number, job->file);
}

void job_walk(struct buf *to, const char *path)
{
	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && path[0] == '.' && path[1] == '.') {
			const char *last = to->len ? strrchr(to->data, '/') : NULL;

			to->len = last ? (size_t)(last - to->data) : 0;
			if (to->data)
				to->data[to->len] = '\0';
		} else if (n && !(n == 1 && path[0] == '.')) {
			buf_putc(to, '/');
			buf_append(to, path, n);
		}
		path += n + (path[n] == '/');
	}
}

void job_note(struct job *job, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	texts_add(&job->notes, text);
}

/* ---- what follows from the events ---- */

size_t job_size_bucket(int64_t bytes)
{
	static const int64_t most[JOB_SIZES - 1] = {
		100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30};
	size_t i = 0;

	while (i < JOB_SIZES - 1 && bytes > most[i])
		i++;
	return i;
}

/* The sizes of requests of one file while they are counted. */
struct sizes {
	int64_t size[SIZES_FOLLOWED], count[SIZES_FOLLOWED];
	int64_t last_end; /* of the reads */
};

static void follow(struct sizes *s, int64_t size)
{
	for (size_t i = 0; i < SIZES_FOLLOWED && size > 0; i++) {
		if (s->count[i] == 0)
			s->size[i] = size;
		if (s->size[i] == size) {
			s->count[i]++;
			return;
		}
	}
}

static void most_frequent(struct sizes *s, struct job_counts *c)
{
	for (size_t k = 0; k < JOB_ACCESSES; k++) {
		size_t best = 0;

		for (size_t i = 1; i < SIZES_FOLLOWED; i++)
			if (s->count[i] > s->count[best] ||
			    (s->count[i] == s->count[best] && s->size[i] > s->size[best]))
				best = i;
		c->access[k] = s->count[best] ? s->size[best] : 0;
		c->access_count[k] = s->count[best];
		s->count[best] = 0;
		s->size[best] = 0;
	}
}

static void span(int64_t *begin, int64_t *end, const struct job_event *v)
{
	if (v->begin_ns != JOB_UNKNOWN && (*begin == JOB_UNKNOWN || v->begin_ns < *begin))
		*begin = v->begin_ns;
	if (v->end_ns != JOB_UNKNOWN && (*end == JOB_UNKNOWN || v->end_ns > *end))
		*end = v->end_ns;
}

static double seconds(const struct job_event *v)
{
	return v->begin_ns == JOB_UNKNOWN || v->end_ns == JOB_UNKNOWN
		       ? 0
		       : (double)(v->end_ns - v->begin_ns) / 1e9;
}

static void count_transfer(struct job_counts *c, struct sizes *s, const struct job_event *v)
{
	bool read = v->kind == JOB_READ;
	int64_t *most = read ? &c->read_end : &c->write_end, end;
	int64_t *bytes = read ? &c->bytes_read : &c->bytes_written;

	*(read ? &c->reads : &c->writes) += 1;
	*bytes = i64_sum(*bytes, v->result);
	(read ? c->read_size : c->write_size)[job_size_bucket(v->result)]++;
	*(read ? &c->read_s : &c->write_s) += seconds(v);
	follow(s, v->result);
	span(read ? &c->read_begin_ns : &c->write_begin_ns,
	     read ? &c->read_end_ns : &c->write_end_ns, v);
	if (v->offset == JOB_UNKNOWN || __builtin_add_overflow(v->offset, v->result, &end))
		return;
	if (end > *most && v->result > 0)
		*most = end;
	if (read && c->reads > 1) {
		c->sequential_reads += v->offset >= s->last_end;
		c->consecutive_reads += v->offset == s->last_end;
	}
	if (read)
		s->last_end = end;
}

static void count_event(struct job_counts *c, struct sizes *s, const struct job_event *v)
{
	if (v->result < 0 && v->kind != JOB_EXIT)
		return;
	span(&c->first_ns, &c->last_ns, v);
	if (v->kind == JOB_READ || v->kind == JOB_WRITE) {
		count_transfer(c, s, v);
		return;
	}
	c->metadata_s += seconds(v);
	c->opens += v->kind == JOB_OPEN;
	c->seeks += v->kind == JOB_SEEK;
	c->stats += v->kind == JOB_STAT;
	c->maps += v->kind == JOB_MAP;
	c->syncs += v->kind == JOB_SYNC;
}

/* Computes the counts of all files from the events; job_finish does where the log has none. */
static void job_count(struct job *job)
{
	struct sizes *sizes = xcalloc(job->files + 1, sizeof(*sizes));

	for (size_t i = 0; i < job->files; i++)
		job->file[i].counts = no_counts(0);
	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];

		if (v->file != JOB_NONE)
			count_event(&job->file[v->file].counts, &sizes[v->file], v);
	}
	for (size_t i = 0; i < job->files; i++)
		most_frequent(&sizes[i], &job->file[i].counts);
	free(sizes);
	job->sees |= JOB_SEES_COUNTS;
}

static int by_begin(const void *a, const void *b)
{
	const struct job_event *x = a, *y = b;

	return ORDER(x->begin_ns, y->begin_ns);
}

static bool in_order(const struct job *job)
{
	for (size_t i = 1; i < job->events; i++)
		if (job->event[i].begin_ns < job->event[i - 1].begin_ns)
			return false;
	return true;
}

/* Runs of `width` sorted events are merged two by two: stable, and with one spare array. */
static int sort_events(struct job *job, struct err *e)
{
	struct job_event *from = job->event, *to;
	size_t n = job->events;

	if (in_order(job))
		return 0;
	to = malloc(n * sizeof(*to));
	if (!to)
		return err_set(e, -ENOMEM, "no memory to sort %zu requests of the log", n);
	for (size_t width = 1; width < n; width *= 2) {
		struct job_event *swap = from;

		for (size_t low = 0; low < n; low += 2 * width) {
			size_t middle = low + width < n ? low + width : n;
			size_t high = low + 2 * width < n ? low + 2 * width : n;
			size_t i = low, j = middle;

			for (size_t k = low; k < high; k++)
				to[k] = i < middle && (j >= high ||
						       by_begin(&from[i], &from[j]) <= 0)
						? from[i++]
						: from[j++];
		}
		from = to;
		to = swap;
	}
	free(to);
	job->event = from;
	job->event_room = n;
	return 0;
}

/* The greatest size that the events show; of regular files alone. */
static void see_sizes(struct job *job)
{
	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];
		int64_t size = JOB_UNKNOWN;

		if (v->file == JOB_NONE || v->result < 0)
			continue;
		if (v->kind == JOB_STAT)
			size = v->result;
		else if ((v->kind == JOB_READ || v->kind == JOB_WRITE) &&
			 v->offset != JOB_UNKNOWN && v->result > 0 &&
			 __builtin_add_overflow(v->offset, v->result, &size))
			continue;
		if (size > job->file[v->file].size)
			job->file[v->file].size = size;
	}
}

int job_finish(struct job *job, struct err *e)
{
	int rc = sort_events(job, e);

	if (rc < 0)
		return rc;
	see_sizes(job);
	if (job->sees & JOB_SEES_REQUESTS && !(job->sees & JOB_SEES_COUNTS))
		job_count(job);
	if (job->wall_ns == JOB_UNKNOWN && job->sees & JOB_SEES_TIMES) {
		int64_t begin = JOB_UNKNOWN, end = JOB_UNKNOWN;

		for (size_t i = 0; i < job->events; i++)
			span(&begin, &end, &job->event[i]);
		if (begin != JOB_UNKNOWN && end != JOB_UNKNOWN && end >= begin)
			job->wall_ns = end - (begin < 0 ? begin : 0);
	}
	return 0;
}

const char *job_kind_name(enum job_event_kind kind)
{
	static const char *const name[JOB_KINDS] = {
		[JOB_OPEN] = "open",      [JOB_CLOSE] = "close",    [JOB_READ] = "read",
		[JOB_WRITE] = "write",    [JOB_SEEK] = "seek",      [JOB_STAT] = "stat",
		[JOB_LIST] = "listing",   [JOB_MAP] = "mapping",    [JOB_UNMAP] = "unmapping",
		[JOB_ADVISE] = "advice",  [JOB_SYNC] = "sync",      [JOB_RENAME] = "rename",
		[JOB_UNLINK] = "removal", [JOB_MAKE_DIR] = "mkdir", [JOB_TRUNCATE] = "truncation",
		[JOB_ACCESS] = "access",  [JOB_FORK] = "fork",      [JOB_EXEC] = "exec",
		[JOB_EXIT] = "exit",      [JOB_WAIT] = "wait",      [JOB_COMPUTE] = "computation",
		[JOB_MARK] = "mark",      [JOB_LINK] = "link",
	};

	return (unsigned)kind < JOB_KINDS ? name[kind] : "request";
}
