/* Darshan logs of one job: a log of all ranks, or a log for each process of a job without MPI.
 *
 * Requests are those of the module DXT_POSIX, which has what MPI-IO and HDF5 made of their calls,
 * too; counts of a file are those of POSIX and STDIO. What Darshan books to a wrong file is told
 * apart: see `find_messages`. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/saturate.h"
#include "trace/darshan/darshan_log.h"
#include "trace/trace_reader.h"

#define RANKS_MAX (INT64_C(1) << 20)
#define HEAT_BINS_MAX (UINT64_C(1) << 24) /* of a job: 256 MiB */
#define LATEST_S 1e9                      /* no time of a request is later */
#define MESSAGE_HEAD 4                    /* bytes of the length before a message in a pipe */
#define CORRECTIONS_MAX 256

/* What is known of a log before it is read in full. */
struct source {
	const char *path;
	struct job_process process; /* pid, begin_ns and end_ns; parent is set in the end */
	int64_t start_s, start_ns, job_id, uid, parent_pid;
	bool has_job;
};

/* Reads and writes that Darshan counted in a record although they are not of its file. */
struct correction {
	uint64_t id;
	int64_t rank;
	int64_t reads, bytes, size; /* messages, all of the length that most have: 0 if none */
	int64_t written_end;        /* of the writes whose offset is known */
	bool all;                   /* no other reads */
};

struct importer {
	struct job *job;
	struct darshan_log log;
	const struct source *source;
	uint32_t process;   /* the log's, or that of rank 0 */
	int64_t base_ns;    /* the log's begin in the job */
	bool ranked;        /* the process of rank r is process + r */
	struct map threads; /* by process and tid */
	uint32_t last_thread;
	/* the record whose requests come */
	uint32_t file, trace_process;
	size_t first_event;
	uint64_t impossible; /* requests or times left out */
	uint64_t heat_bins;
	bool heat_full;
	struct correction correction[CORRECTIONS_MAX];
	size_t corrections;
	int64_t requests;    /* that the POSIX counters have */
	int64_t stdio_bytes; /* moved through stdio */
	uint64_t mapped_files;
};

static bool recognize(const char *path, bool folder, const unsigned char *head, size_t n)
{
	(void)path;
	return !folder && darshan_is_log(head, n);
}

static void add(int64_t *to, int64_t n)
{
	if (n < 0)
		return;
	*to = i64_sum(*to < 0 ? 0 : *to, n);
}

/* ---- the logs of a job ---- */

/* Darshan puts the pid into the name since 3.4: ..._idJOB-PID_MONTH-... */
static int64_t pid_of(const char *path)
{
	const char *name = strrchr(path, '/'), *id = NULL;
	int64_t job, pid;
	char end;

	name = name ? name + 1 : path;
	for (const char *p = name; (p = strstr(p, "_id")); p += 3)
		id = p;
	if (id && sscanf(id, "_id%" SCNd64 "-%" SCNd64 "%c", &job, &pid, &end) == 3 && end == '_')
		return pid;
	return -1;
}

static void describe(struct source *s, const struct darshan_log *log)
{
	char parent[32];

	s->has_job = log->has_job;
	s->start_s = log->start_s;
	s->start_ns = log->start_ns;
	s->job_id = log->job_id;
	s->uid = log->uid;
	s->parent_pid = darshan_metadata(log, "fork_parent", parent, sizeof(parent))
				? strtoll(parent, NULL, 10)
				: -1;
	s->process = (struct job_process){.pid = pid_of(s->path), .parent = JOB_NONE};
	if (s->process.pid < 0 && s->parent_pid < 0 && log->ranks == 1)
		s->process.pid = log->job_id;
	if (s->start_ns < 0 || s->start_ns >= 1000000000)
		s->start_ns = 0;
	/* beyond the year 9999 it is no time */
	if (s->start_s < 0 || s->start_s > INT64_C(253402300800))
		s->has_job = false;
}

static int by_begin(const void *a, const void *b)
{
	const struct source *x = a, *y = b;

	if (x->has_job != y->has_job)
		return y->has_job - x->has_job;
	if (x->start_s != y->start_s)
		return ORDER(x->start_s, y->start_s);
	if (x->start_ns != y->start_ns)
		return ORDER(x->start_ns, y->start_ns);
	/* a parent before its children */
	if ((x->parent_pid < 0) != (y->parent_pid < 0))
		return x->parent_pid < 0 ? -1 : 1;
	return ORDER(x->process.pid, y->process.pid);
}

/* Whether both are the log of one process: begun in the same nanosecond, with one pid. */
static bool same(const struct source *x, const struct source *y)
{
	return x->has_job && y->has_job && x->start_ns != 0 && x->start_s == y->start_s &&
	       x->start_ns == y->start_ns && x->process.pid == y->process.pid &&
	       x->job_id == y->job_id && x->parent_pid == y->parent_pid;
}

static void compare_jobs(struct job *job, const struct source *s, size_t n)
{
	bool jobs = false, users = false;

	for (size_t i = 1; i < n; i++) {
		jobs = jobs || (s[i].has_job && s[i].job_id != s[0].job_id);
		users = users || (s[i].has_job && s[i].uid != s[0].uid);
	}
	if (users)
		job_note(job, "the logs are of different users: they may be of different jobs");
	if (jobs)
		job_note(job, "the logs have different job numbers: processes that were started "
			      "anew (spawn) have their own, but so have other jobs");
}

/* ---- processes and threads ---- */

static uint32_t process_of(const struct importer *m, int64_t rank)
{
	return m->ranked && rank >= 0 ? m->process + (uint32_t)rank : m->process;
}

static uint32_t thread_of(struct importer *m, uint32_t process, int64_t tid)
{
	uint32_t i;

	if (m->last_thread != JOB_NONE && m->job->thread[m->last_thread].process == process &&
	    m->job->thread[m->last_thread].tid == tid)
		return m->last_thread;
	i = map_get2(&m->threads, process, tid);
	if (i == MAP_NONE) {
		i = job_add_thread(m->job, process, tid);
		map_put2(&m->threads, process, tid, i);
	}
	m->last_thread = i;
	return i;
}

/* ---- files ---- */

static enum job_file_kind kind_of(const char *name)
{
	if (strncmp(name, "/dev/shm/", 9) == 0)
		return JOB_FILE_MEMORY;
	if (name[0] == '<' || strncmp(name, "/dev/", 5) == 0)
		return JOB_FILE_OTHER;
	return JOB_FILE_REGULAR;
}

static uint32_t file_of(struct importer *m, uint64_t id)
{
	const char *name = darshan_name(&m->log, id);
	char number[48];

	if (!name) {
		snprintf(number, sizeof(number), "record %" PRIu64 " of Darshan", id);
		name = number;
	}
	return job_file(m->job, name, kind_of(name));
}

/* ---- requests ---- */

/* Nanoseconds in the job of seconds in the log; JOB_UNKNOWN of what is no time. */
static int64_t ns_of(const struct importer *m, double s)
{
	return isfinite(s) && s >= 0 && s < LATEST_S ? m->base_ns + llround(s * 1e9) : JOB_UNKNOWN;
}

static int begin_trace(void *context, const struct darshan_trace *t, struct err *e)
{
	struct importer *m = context;

	(void)e;
	m->file = file_of(m, t->id);
	m->trace_process = process_of(m, t->rank);
	m->first_event = m->job->events;
	if (t->host[0] && !m->job->process[m->trace_process].host[0])
		m->job->process[m->trace_process].host = job_text(m->job, t->host);
	return 0;
}

static int add_segment(void *context, const struct darshan_trace *t,
		       const struct darshan_segment *s, struct err *e)
{
	struct importer *m = context;
	struct job_event v = job_event_of(s->write ? JOB_WRITE : JOB_READ, 0, ns_of(m, s->begin_s),
					  ns_of(m, s->end_s));
	int64_t end;

	v.offset = t->has_offsets ? s->offset : JOB_UNKNOWN;
	v.result = s->length;
	v.file = m->file;
	if (v.begin_ns == JOB_UNKNOWN || v.end_ns == JOB_UNKNOWN || v.end_ns < v.begin_ns ||
	    v.result < 0 ||
	    (t->has_offsets &&
	     (v.offset < 0 || __builtin_add_overflow(v.offset, v.result, &end)))) {
		m->impossible++;
		return 0;
	}
	v.thread = thread_of(m, m->trace_process, t->has_threads ? (int64_t)s->thread : -1);
	return job_add(m->job, &v, e);
}

/* A descriptor that was closed by a call which Darshan does not wrap stays in its table, and what
 * later gets that number is booked to the old file: so do the reads of the pipe in which workers of
 * a DataLoader hand over batches, after a checkpoint was written. They are told apart by what no
 * file does: reads of 4 bytes and of the message behind it, in a file that this process wrote,
 * from where its last byte ends. They become reads of a pipe, so that they still tell when batches
 * came. Later offsets in that record count from the wrong place: they are unknown. */
struct messages {
	size_t writes;       /* events of the record, from first_event; the reads follow */
	int64_t written;     /* where the writes before the first message end */
	int64_t first_ns;    /* of the first message */
	int64_t bytes, size; /* of all, with their heads; of the last without */
	size_t found, others;
};

static bool is_head(const struct job_event *v, const struct job_event *next, int64_t written)
{
	return written > 0 && v->result == MESSAGE_HEAD && v->offset >= written &&
	       next->result > 0 && next->offset == v->offset + MESSAGE_HEAD &&
	       next->thread == v->thread && next->begin_ns >= v->end_ns;
}

/* Finds the messages, and with `to` makes them reads of that file. */
static void find_messages(struct importer *m, struct messages *f, uint32_t to)
{
	struct job_event *v = m->job->event + m->first_event;
	size_t n = m->job->events - m->first_event, w = 0;

	*f = (struct messages){.writes = f->writes, .first_ns = INT64_MAX};
	for (size_t r = f->writes; r < n; r++) {
		for (;
		     w < f->writes && v[w].begin_ns <= v[r].begin_ns && v[w].begin_ns < f->first_ns;
		     w++)
			RAISE(f->written, v[w].offset + v[w].result);
		if (r + 1 == n || !is_head(&v[r], &v[r + 1], f->written)) {
			f->others += v[r].result > 0;
			continue;
		}
		LOWER(f->first_ns, v[r].begin_ns);
		f->found++;
		f->size = v[r + 1].result;
		f->bytes = i64_sum(f->bytes, i64_sum(f->size, MESSAGE_HEAD));
		for (size_t k = 0; k < 2 && to != JOB_NONE; k++) {
			v[r + k].file = to;
			v[r + k].offset = JOB_UNKNOWN;
		}
		r++;
	}
}

static void move_messages(struct importer *m, const struct darshan_trace *t, struct messages *f)
{
	struct job_event *v = m->job->event + m->first_event;
	const char *name = m->job->file[m->file].name;
	size_t size = strlen(name) + 32;
	char *text = xmalloc(size);
	uint32_t pipe;

	snprintf(text, size, "pipe booked to %s", name);
	pipe = job_file(m->job, text, JOB_FILE_PIPE);
	free(text);
	find_messages(m, f, pipe);
	add(&m->job->file[pipe].counts.reads, 2 * (int64_t)f->found);
	add(&m->job->file[pipe].counts.bytes_read, f->bytes);
	for (size_t w = 0; w < f->writes; w++)
		if (v[w].begin_ns >= f->first_ns)
			v[w].offset = JOB_UNKNOWN;
	job_note(m->job,
		 "%s: Darshan booked %zu messages of a pipe to the file %s, whose descriptor had "
		 "its number before: they are taken as reads of a pipe",
		 m->log.path, f->found, m->job->file[m->file].name);
	if (m->corrections < CORRECTIONS_MAX)
		m->correction[m->corrections++] = (struct correction){
			.id = t->id,
			.rank = t->rank,
			.reads = 2 * (int64_t)f->found,
			.bytes = f->bytes,
			.size = f->size,
			.written_end = f->written,
			.all = f->others == 0,
		};
}

static int end_trace(void *context, const struct darshan_trace *t, struct err *e)
{
	struct importer *m = context;
	struct messages f = {0};
	size_t n = m->job->events - m->first_event;

	(void)e;
	while (f.writes < n && m->job->event[m->first_event + f.writes].kind == JOB_WRITE)
		f.writes++;
	if (!t->has_offsets || f.writes == 0 || n - f.writes < 2)
		return 0;
	find_messages(m, &f, JOB_NONE);
	if (f.found >= 2 || (f.found == 1 && f.others == 0))
		move_messages(m, t, &f);
	return 0;
}

/* ---- counts ---- */

/* `opens` of which `others` by fileno, dup or fdopen open nothing. */
static void add_opens(struct job_counts *c, int64_t opens, int64_t others)
{
	add(&c->opens, opens < others ? opens < 0 ? -1 : 0 : opens - others);
}

static void add_s(struct importer *m, double *to, double s)
{
	if (isfinite(s) && s >= 0 && s < LATEST_S * 1e6)
		*to += s;
	else if (s != -1) /* not counted by this version */
		m->impossible++;
}

/* The least begin and the greatest end. 0 means never, -1 not measured. */
static void add_span(const struct importer *m, int64_t *begin, int64_t *end, double from, double to)
{
	int64_t b = from > 0 ? ns_of(m, from) : JOB_UNKNOWN;
	int64_t f = to > 0 ? ns_of(m, to) : JOB_UNKNOWN;

	if (b != JOB_UNKNOWN && (*begin == JOB_UNKNOWN || b < *begin))
		*begin = b;
	if (f != JOB_UNKNOWN && f > *end) /* JOB_UNKNOWN is the least */
		*end = f;
}

/* Adds four sizes with their counts to the four most frequent. */
static void add_accesses(struct job_counts *c, const int64_t *size, const int64_t *count)
{
	int64_t s[2 * JOB_ACCESSES], n[2 * JOB_ACCESSES];
	size_t k = 0;

	for (size_t i = 0; i < 2 * JOB_ACCESSES; i++) {
		int64_t a = i < JOB_ACCESSES ? c->access[i] : size[i - JOB_ACCESSES];
		int64_t b = i < JOB_ACCESSES ? c->access_count[i] : count[i - JOB_ACCESSES];
		size_t j = 0;

		if (b <= 0)
			continue;
		while (j < k && s[j] != a)
			j++;
		if (j == k) {
			s[k] = a;
			n[k++] = 0;
		}
		n[j] = i64_sum(n[j], b);
	}
	for (size_t i = 0; i < JOB_ACCESSES; i++) {
		size_t best = 0;

		for (size_t j = 1; j < k; j++)
			if (n[j] > n[best] || (n[j] == n[best] && s[j] > s[best]))
				best = j;
		c->access[i] = k && n[best] > 0 ? s[best] : 0;
		c->access_count[i] = k && n[best] > 0 ? n[best] : 0;
		if (k)
			n[best] = 0;
	}
}

static void less(int64_t *from, int64_t n)
{
	*from = *from > n ? *from - n : 0;
}

static void remove_access(struct darshan_record *r, int64_t size, int64_t n)
{
	for (size_t i = 0; i < JOB_ACCESSES; i++)
		if (r->ints[POSIX_ACCESS + i] == size)
			less(&r->ints[POSIX_ACCESS_COUNT + i], n);
}

/* What a record of POSIX would be without the messages of a pipe. */
static void correct(struct darshan_record *r, const struct correction *c)
{
	int64_t *v = r->ints, n = c->reads / 2;

	less(&v[POSIX_READS], c->reads);
	less(&v[POSIX_BYTES_READ], c->bytes);
	less(&v[POSIX_SIZE_READ], n);
	less(&v[POSIX_SIZE_READ + job_size_bucket(c->size)], n);
	remove_access(r, MESSAGE_HEAD, n);
	remove_access(r, c->size, n);
	v[POSIX_MAX_BYTE_WRITTEN] = c->written_end - 1;
	if (!c->all)
		return;
	v[POSIX_READS] = v[POSIX_BYTES_READ] = v[POSIX_MAX_BYTE_READ] = 0;
	v[POSIX_CONSEC_READS] = v[POSIX_SEQ_READS] = 0;
	memset(v + POSIX_SIZE_READ, 0, JOB_SIZES * sizeof(*v));
	r->doubles[POSIX_F_READ_START] = r->doubles[POSIX_F_READ_END] = 0;
	r->doubles[POSIX_F_READ_TIME] = 0;
}

/* The same from the counters alone: as many reads of 4 bytes as of one other size and no others,
 * each from where the one before ended, beyond what the file had when they began. */
static bool counted_messages(const struct darshan_record *r, struct correction *c)
{
	const int64_t *v = r->ints, n = v[POSIX_READS] / 2;
	int64_t size = 0, bytes;
	bool heads = false;

	if (n < 2 || v[POSIX_READS] % 2 || v[POSIX_BYTES_WRITTEN] <= 0 ||
	    v[POSIX_CONSEC_READS] < v[POSIX_READS] - 1 ||
	    v[POSIX_MAX_BYTE_READ] < v[POSIX_BYTES_READ] ||
	    !(r->doubles[POSIX_F_WRITE_START] < r->doubles[POSIX_F_READ_START]))
		return false;
	for (size_t i = 0; i < JOB_ACCESSES; i++) {
		int64_t a = v[POSIX_ACCESS + i];

		if (v[POSIX_ACCESS_COUNT + i] < n || a <= 0 || a > INT64_MAX - MESSAGE_HEAD)
			continue;
		if (a == MESSAGE_HEAD)
			heads = true;
		else if (!__builtin_mul_overflow(n, a + MESSAGE_HEAD, &bytes) &&
			 bytes == v[POSIX_BYTES_READ])
			size = a;
	}
	if (!heads || size == 0)
		return false;
	*c = (struct correction){.reads = 2 * n,
				 .bytes = v[POSIX_BYTES_READ],
				 .size = size,
				 .all = true,
				 .written_end = v[POSIX_MAX_BYTE_READ] - v[POSIX_BYTES_READ] + 1};
	return true;
}

static int add_posix(void *context, const struct darshan_record *given, struct err *e)
{
	struct importer *m = context;
	struct darshan_record r = *given;
	uint32_t index = file_of(m, r.id); /* may move the files */
	struct job_file *file = &m->job->file[index];
	struct job_counts *c = &file->counts;
	const int64_t *v = r.ints;
	const double *d = r.doubles;
	struct correction found;
	int64_t extra = 0;

	(void)e;
	for (size_t i = 0; i < m->corrections; i++)
		if (m->correction[i].id == r.id && (r.rank < 0 || m->correction[i].rank == r.rank))
			correct(&r, &m->correction[i]);
	if (!m->log.module[DARSHAN_DXT_POSIX].usable && counted_messages(&r, &found)) {
		correct(&r, &found);
		job_note(m->job,
			 "%s: the %" PRId64 " reads of the written file %s are messages of a pipe "
			 "that Darshan booked to it: they are left out",
			 m->log.path, found.reads, file->name);
	}
	add(&extra, v[POSIX_FILENOS]);
	add(&extra, v[POSIX_DUPS]);
	add_opens(c, v[POSIX_OPENS], extra);
	add(&c->reads, v[POSIX_READS]);
	add(&c->writes, v[POSIX_WRITES]);
	add(&c->seeks, v[POSIX_SEEKS]);
	add(&c->stats, v[POSIX_STATS]);
	add(&c->maps, v[POSIX_MMAPS]);
	add(&c->syncs, v[POSIX_FSYNCS]);
	add(&c->syncs, v[POSIX_FDSYNCS]);
	add(&c->bytes_read, v[POSIX_BYTES_READ]);
	add(&c->bytes_written, v[POSIX_BYTES_WRITTEN]);
	add(&c->sequential_reads, v[POSIX_SEQ_READS]);
	add(&c->consecutive_reads, v[POSIX_CONSEC_READS]);
	for (size_t i = 0; i < JOB_SIZES; i++) {
		add(&c->read_size[i], v[POSIX_SIZE_READ + i]);
		add(&c->write_size[i], v[POSIX_SIZE_WRITE + i]);
	}
	RAISE(c->read_end, v[POSIX_BYTES_READ] > 0 && v[POSIX_MAX_BYTE_READ] < INT64_MAX
				   ? v[POSIX_MAX_BYTE_READ] + 1
				   : 0);
	RAISE(c->write_end, v[POSIX_BYTES_WRITTEN] > 0 && v[POSIX_MAX_BYTE_WRITTEN] < INT64_MAX
				    ? v[POSIX_MAX_BYTE_WRITTEN] + 1
				    : 0);
	add_accesses(c, v + POSIX_ACCESS, v + POSIX_ACCESS_COUNT);
	add_s(m, &c->read_s, d[POSIX_F_READ_TIME]);
	add_s(m, &c->write_s, d[POSIX_F_WRITE_TIME]);
	add_s(m, &c->metadata_s, d[POSIX_F_META_TIME]);
	add_span(m, &c->read_begin_ns, &c->read_end_ns, d[POSIX_F_READ_START], d[POSIX_F_READ_END]);
	add_span(m, &c->write_begin_ns, &c->write_end_ns, d[POSIX_F_WRITE_START],
		 d[POSIX_F_WRITE_END]);
	for (size_t i = POSIX_F_OPEN_START; i <= POSIX_F_CLOSE_START; i++)
		add_span(m, &c->first_ns, &c->last_ns, d[i], d[i + 4]);
	add(&m->requests, v[POSIX_READS]);
	add(&m->requests, v[POSIX_WRITES]);
	m->mapped_files += v[POSIX_MMAPS] > 0;
	return 0;
}

static int add_stdio(void *context, const struct darshan_record *r, struct err *e)
{
	struct importer *m = context;
	uint32_t index = file_of(m, r->id); /* may move the files */
	struct job_file *file = &m->job->file[index];
	struct job_counts *c = &file->counts;
	const int64_t *v = r->ints;
	const double *d = r->doubles;

	(void)e;
	add_opens(c, v[STDIO_OPENS], v[STDIO_FDOPENS] > 0 ? v[STDIO_FDOPENS] : 0);
	add(&c->reads, v[STDIO_READS]);
	add(&c->writes, v[STDIO_WRITES]);
	add(&c->seeks, v[STDIO_SEEKS]);
	add(&c->bytes_read, v[STDIO_BYTES_READ]);
	add(&c->bytes_written, v[STDIO_BYTES_WRITTEN]);
	RAISE(c->read_end, v[STDIO_BYTES_READ] > 0 && v[STDIO_MAX_BYTE_READ] < INT64_MAX
				   ? v[STDIO_MAX_BYTE_READ] + 1
				   : 0);
	RAISE(c->write_end, v[STDIO_BYTES_WRITTEN] > 0 && v[STDIO_MAX_BYTE_WRITTEN] < INT64_MAX
				    ? v[STDIO_MAX_BYTE_WRITTEN] + 1
				    : 0);
	add_s(m, &c->read_s, d[STDIO_F_READ_TIME]);
	add_s(m, &c->write_s, d[STDIO_F_WRITE_TIME]);
	add_s(m, &c->metadata_s, d[STDIO_F_META_TIME]);
	add_span(m, &c->read_begin_ns, &c->read_end_ns, d[STDIO_F_READ_START], d[STDIO_F_READ_END]);
	add_span(m, &c->write_begin_ns, &c->write_end_ns, d[STDIO_F_WRITE_START],
		 d[STDIO_F_WRITE_END]);
	for (size_t i = STDIO_F_OPEN_START; i <= STDIO_F_READ_START; i++)
		add_span(m, &c->first_ns, &c->last_ns, d[i], d[i + 4]);
	if (file->kind == JOB_FILE_REGULAR) {
		add(&m->stdio_bytes, v[STDIO_BYTES_READ]);
		add(&m->stdio_bytes, v[STDIO_BYTES_WRITTEN]);
	}
	return 0;
}

/* ---- bytes over time ---- */

static int add_heat(void *context, const struct darshan_heat *h, struct err *e)
{
	struct importer *m = context;
	const char *name = darshan_name(&m->log, h->id);
	struct job_heat *row;

	(void)e;
	/* what went through MPI-IO is in that of POSIX */
	if (!name || h->bins == 0 ||
	    (strcmp(name, "heatmap:POSIX") != 0 && strcmp(name, "heatmap:STDIO") != 0))
		return 0;
	if (m->heat_bins + h->bins > HEAT_BINS_MAX) {
		m->heat_full = true;
		return 0;
	}
	m->heat_bins += h->bins;
	row = job_heat(m->job, process_of(m, h->rank), h->bin_s, h->bins);
	for (size_t i = 0; i < h->bins; i++) {
		row->read[i] = h->read[i] > 0 ? h->read[i] : 0;
		row->written[i] = h->written[i] > 0 ? h->written[i] : 0;
	}
	return 0;
}

/* ---- a log ---- */

static void add_processes(struct importer *m, uint32_t parent)
{
	const struct source *s = m->source;
	int64_t ranks = m->log.ranks;
	uint32_t first = (uint32_t)m->job->processes;

	if (ranks > RANKS_MAX) {
		job_note(m->job,
			 "%s: the job has %" PRId64 " ranks, more than the %" PRId64
			 " that are told apart: they are taken as one process",
			 m->log.path, ranks, RANKS_MAX);
		ranks = 1;
	}
	m->ranked = ranks > 1;
	for (int64_t r = 0; r < (ranks > 1 ? ranks : 1); r++) {
		uint32_t i = job_process(m->job, m->ranked ? -1 : s->process.pid, "", parent);
		struct job_process *p = &m->job->process[i];

		p->rank = m->ranked ? r : -1;
		p->begin_ns = m->log.has_job ? m->base_ns : JOB_UNKNOWN;
		p->end_ns = m->log.has_job ? ns_of(m, darshan_run_s(&m->log)) : JOB_UNKNOWN;
		p->command = job_text(m->job, m->log.command);
	}
	m->process = first;
}

/* What the log shows. */
static unsigned sees_of(const struct importer *m)
{
	const struct darshan_region *r = m->log.module;
	bool counts = r[DARSHAN_POSIX].usable || r[DARSHAN_STDIO].usable;
	bool requests = r[DARSHAN_DXT_POSIX].usable || r[DARSHAN_DXT_MPIIO].usable;
	bool offsets = r[DARSHAN_DXT_POSIX].usable || r[DARSHAN_DXT_MPIIO].version > 1;

	/* without a request there is nothing to be seen */
	if (m->requests == 0 && !requests)
		requests = offsets = true;
	return (counts || m->requests == 0 ? JOB_SEES_COUNTS : 0u) |
	       (requests ? (unsigned)JOB_SEES_REQUESTS | JOB_SEES_TIMES : 0u) |
	       (offsets ? JOB_SEES_OFFSETS : 0u);
}

static int import(struct importer *m, struct err *e)
{
	const struct darshan_walk traces = {
		.context = m, .trace = begin_trace, .segment = add_segment, .trace_end = end_trace};
	const struct darshan_walk posix = {.context = m, .record = add_posix};
	const struct darshan_walk stdio = {.context = m, .record = add_stdio};
	const struct darshan_walk heat = {.context = m, .heat = add_heat};
	bool posix_requests = m->log.module[DARSHAN_DXT_POSIX].usable;
	int rc;

	m->last_thread = JOB_NONE;
	rc = darshan_walk(&m->log, posix_requests ? DARSHAN_DXT_POSIX : DARSHAN_DXT_MPIIO, &traces,
			  e);
	if (rc >= 0)
		rc = darshan_walk(&m->log, DARSHAN_POSIX, &posix, e);
	if (rc >= 0)
		rc = darshan_walk(&m->log, DARSHAN_STDIO, &stdio, e);
	if (rc >= 0)
		rc = darshan_walk(&m->log, DARSHAN_HEATMAP, &heat, e);
	if (m->impossible)
		job_note(m->job,
			 "%s: %" PRIu64 " requests or times are impossible and were left out",
			 m->log.path, m->impossible);
	return rc;
}

/* The latest process with this pid; JOB_NONE. */
static uint32_t parent_of(const struct job *job, int64_t pid)
{
	for (size_t i = job->processes; pid >= 0 && i-- > 0;)
		if (job->process[i].pid == pid)
			return (uint32_t)i;
	return JOB_NONE;
}

/* The parent of a forked process. One that was killed has no log: it is known from its children. */
static uint32_t parent_for(struct job *job, const struct source *s)
{
	uint32_t parent = parent_of(job, s->parent_pid);

	if (parent != JOB_NONE || s->parent_pid < 0)
		return parent;
	job_note(job, "a process that forked others has no log: it may have been killed");
	return job_process(job, s->parent_pid, "", JOB_NONE);
}

/* Sums over the logs. */
struct whole {
	unsigned sees;
	size_t logs, with_requests;
	unsigned oldest, newest; /* minor versions */
	int64_t stdio_bytes;
	uint64_t mapped_files, heat_bins;
	int64_t end_ns;
};

static int read_one(struct job *job, const struct source *s, struct whole *w, int64_t begin_s,
		    int64_t begin_ns, struct err *e)
{
	struct importer *m = xcalloc(1, sizeof(*m));
	int rc = darshan_open(&m->log, s->path, e);

	if (rc < 0) {
		free(m);
		return rc;
	}
	m->job = job;
	m->source = s;
	m->threads.key = m->log.names.key;
	m->heat_bins = w->heat_bins;
	if (s->has_job && s->start_s - begin_s < (int64_t)LATEST_S)
		m->base_ns = (s->start_s - begin_s) * 1000000000 + s->start_ns - begin_ns;
	add_processes(m, parent_for(job, s));
	rc = import(m, e);
	for (size_t i = m->process; i < job->processes; i++) {
		job->process[i].complete = !m->log.partial && !m->log.damaged;
		RAISE(w->end_ns, job->process[i].end_ns);
	}
	for (size_t i = 0; i < m->log.notes.n; i++)
		job_note(job, "%s", m->log.notes.v[i]);
	if (m->heat_full)
		job_note(job,
			 "%s: the bytes over time of some processes are left out: there are "
			 "too many",
			 s->path);
	w->sees &= sees_of(m);
	w->with_requests +=
		m->log.module[DARSHAN_DXT_POSIX].usable || m->log.module[DARSHAN_DXT_MPIIO].usable;
	w->stdio_bytes = i64_sum(w->stdio_bytes, m->stdio_bytes > 0 ? m->stdio_bytes : 0);
	w->mapped_files += m->mapped_files;
	w->heat_bins = m->heat_bins;
	w->oldest = w->logs == 0 || m->log.minor < w->oldest ? m->log.minor : w->oldest;
	w->newest = m->log.minor > w->newest ? m->log.minor : w->newest;
	w->logs++;
	darshan_close(&m->log);
	map_release(&m->threads);
	free(m);
	return rc;
}

static void sum_up(struct job *job, const struct whole *w)
{
	char text[96];
	size_t n = 0;

	job->sees = w->sees;
	/* a log without a request shows none, which is no trace of requests */
	if (w->with_requests == 0)
		job->sees &= ~(unsigned)(JOB_SEES_REQUESTS | JOB_SEES_TIMES | JOB_SEES_OFFSETS);
	n += (size_t)snprintf(text, sizeof(text), "Darshan 3.%02u", w->oldest);
	if (w->newest != w->oldest)
		n += (size_t)snprintf(text + n, sizeof(text) - n, " to 3.%02u", w->newest);
	snprintf(text + n, sizeof(text) - n, " %s",
		 job->sees & JOB_SEES_REQUESTS ? "with DXT" : "without DXT");
	job->source = job_text(job, text);
	if (w->with_requests > 0 && !(job->sees & JOB_SEES_REQUESTS))
		job_note(job,
			 "%zu of %zu logs have each request (DXT): those of the job as a whole are "
			 "not known",
			 w->with_requests, w->logs);
	if (w->stdio_bytes > 0 && job->sees & JOB_SEES_REQUESTS)
		job_note(job,
			 "%" PRId64 " bytes went through stdio, of which Darshan counts the calls "
			 "and has no requests",
			 w->stdio_bytes);
	if (w->mapped_files > 0)
		job_note(job,
			 "%" PRIu64 " files were mapped into memory: Darshan does not see "
			 "what was read from them in that way",
			 w->mapped_files);
	if (w->end_ns > 0)
		job->wall_ns = w->end_ns;
}

/* Reads what orders the logs, and leaves out those that are none. */
static int survey(struct job *job, const char *const *paths, size_t n, struct source *s,
		  size_t *usable, struct err *e)
{
	struct err first = {0};

	*usable = 0;
	for (size_t i = 0; i < n; i++) {
		struct darshan_log log;
		struct err mine = {0};

		if (darshan_open(&log, paths[i], &mine) < 0) {
			if (n > 1)
				job_note(job, "%s", mine.text);
			if (!first.code)
				first = mine;
			continue;
		}
		s[*usable] = (struct source){.path = paths[i]};
		describe(&s[*usable], &log);
		++*usable;
		darshan_close(&log);
	}
	return *usable ? 0 : err_set(e, first.code, "%s", first.text);
}

static int read_logs(struct job *job, const char *const *paths, size_t n, struct err *e)
{
	struct source *s = xcalloc(n, sizeof(*s));
	struct whole w = {.sees = ~0u};
	size_t usable;
	int rc = survey(job, paths, n, s, &usable, e);

	if (rc == 0) {
		qsort(s, usable, sizeof(*s), by_begin);
		compare_jobs(job, s, usable);
	}
	for (size_t i = 0; rc == 0 && i < usable; i++) {
		if (i > 0 && same(&s[i], &s[i - 1])) {
			job_note(job, "%s is left out: %s is the log of the same process",
				 s[i].path, s[i - 1].path);
			continue;
		}
		rc = read_one(job, &s[i], &w, s[0].has_job ? s[0].start_s : 0,
			      s[0].has_job ? s[0].start_ns : 0, e);
	}
	if (rc == 0) {
		if (s[0].has_job)
			job->start_s = s[0].start_s;
		sum_up(job, &w);
	}
	free(s);
	return rc;
}

const struct trace_reader trace_reader_darshan = {
	.name = "darshan",
	.people = "a log of Darshan",
	.recognize = recognize,
	.read = read_logs,
};
