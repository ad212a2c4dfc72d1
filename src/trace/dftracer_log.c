/* DFTracer's traces: one JSON object a line, plain or gzip. Three generations: numbers in quotes
 * and names in full ("fname", before 1.0.4), hashes as numbers (1.x), hashes as 16 hexadecimal
 * digits (2.x, and ours). A hash may be used before the line that explains it, which may be in
 * another file: all files are first looked through for these. Numbers of 1.x have 16 bits, so that
 * one may stand for several names: the line that was seen last in the same file decides.
 *
 * Descriptors are those of a thread: under DLIO, forked workers write as threads of one process.
 * The FILE streams have no number in the log and are told apart by name.
 *
 * Memory: that of the job, and 40 bytes a name and thread. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "trace/call_log.h"
#include "base/map.h"
#include "base/vector.h"
#include "trace/pfw_line.h"
#include "trace/trace_reader.h"

#define PIECE (128U << 10)
#define STREAMS (INT64_C(1) << 30) /* the descriptors of FILE streams, by number of the file */

/* ---- a line ---- */

enum line_kind { LINE_NONE, LINE_FRAME, LINE_OBJECT };

static enum line_kind parse(const char *p, struct pfw_line *l)
{
	static const char blanks[] = " \t\r";

	p += strspn(p, blanks);
	if (!*p || ((*p == '[' || *p == ']' || *p == ',') && !p[1 + strspn(p + 1, blanks)]))
		return LINE_FRAME;
	if (*p == '[')
		p += 1 + strspn(p + 1, blanks);
	return pfw_object(p, false, l) && l->f[F_NAME].there ? LINE_OBJECT : LINE_NONE;
}

static int64_t number_or(const struct pfw_text *t, int64_t otherwise)
{
	int64_t v;

	return pfw_number(t, &v) ? v : otherwise;
}

static int64_t amount(const struct pfw_text *t)
{
	int64_t v = number_or(t, JOB_UNKNOWN);

	return v < 0 ? JOB_UNKNOWN : v;
}

/* Whether the line explains a hash or names something. */
static bool is_meta(const struct pfw_line *l)
{
	return l->f[A_NAME].there && l->f[A_VALUE].there && !l->f[F_TS].there;
}

/* ---- state ---- */

struct thread {
	struct caller caller;
	int64_t tid;
	uint32_t file; /* the last one that it occurred in, by number */
};

struct reading {
	struct call_log log;
	struct job *job;
	struct texts hashes;  /* what a hash is in the log, with its kind before it */
	const char **meaning; /* of the job's names, by number of the hash; NULL */
	size_t meanings, meaning_room;
	uint64_t ambiguous;
	struct texts who;     /* "host pid" and "process tid" */
	struct map number_of; /* of `who`: process, or index of thread */
	struct thread *thread;
	size_t threads, thread_room;
	struct buf text;
	uint64_t lines, unread, cut, bare;
	int64_t rank;
	uint32_t file;                 /* number of the present one */
	bool first_pass, says_compute; /* computation has a category of its own */
	struct err *e;
};

static const char *plain(struct reading *r, const struct pfw_text *t)
{
	return pfw_plain(t, &r->text);
}

static size_t hash_number(struct reading *r, char kind, const struct pfw_text *t, bool add)
{
	char key[64];

	if (!t->there || !t->n || t->n >= sizeof(key) - 2)
		return TEXT_NONE;
	key[0] = kind;
	memcpy(key + 1, t->p, t->n);
	key[t->n + 1] = '\0';
	return add ? texts_add(&r->hashes, key) : texts_find(&r->hashes, key);
}

static void explain_hash(struct reading *r, char kind, const struct pfw_line *l)
{
	size_t i = hash_number(r, kind, &l->f[A_VALUE], true);
	const char *name;

	if (i == TEXT_NONE)
		return;
	while (r->meanings <= i)
		VECTOR_PUSH(r->meaning, r->meanings, r->meaning_room, NULL);
	name = job_text(r->job, plain(r, &l->f[A_NAME]));
	if (r->first_pass && r->meaning[i] && strcmp(r->meaning[i], name) != 0)
		r->ambiguous++;
	if (!r->first_pass || !r->meaning[i])
		r->meaning[i] = name;
}

static const char *meaning(struct reading *r, char kind, const struct pfw_text *hash)
{
	size_t i = hash_number(r, kind, hash, false);

	return i < r->meanings ? r->meaning[i] : NULL;
}

/* ---- who ---- */

static uint32_t process_of(struct reading *r, const struct pfw_line *l)
{
	const char *host = meaning(r, 'H', &l->f[A_HHASH]);
	size_t known = r->who.n, i;
	int64_t pid = number_or(&l->f[F_PID], 0);
	char key[512];
	uint32_t process;

	if (!host && l->f[A_HOSTNAME].there)
		host = job_text(r->job, plain(r, &l->f[A_HOSTNAME]));
	snprintf(key, sizeof(key), "p%lld %s", (long long)pid, host ? host : "");
	i = texts_add(&r->who, key);
	if (i < known)
		return map_get(&r->number_of, (int64_t)i);
	process = job_process(r->job, pid, host ? host : "", JOB_NONE);
	r->job->process[process].rank = r->rank;
	map_put(&r->number_of, (int64_t)i, process);
	return process;
}

/* The thread of a line; NULL: there are too many. */
static struct caller *caller_of(struct reading *r, const struct pfw_line *l)
{
	uint32_t process = r->job->processes < CALLERS_MAX ? process_of(r, l) : 0;
	int64_t tid = number_or(&l->f[F_TID], number_or(&l->f[F_PID], 0));
	size_t known = r->who.n, i;
	struct thread *t;
	char key[64];

	if (r->job->processes >= CALLERS_MAX || r->threads >= CALLERS_MAX) {
		if (!r->log.failed)
			err_set(r->e, -EFBIG, "the log has more than %u threads", CALLERS_MAX);
		r->log.failed = true;
		return NULL;
	}
	snprintf(key, sizeof(key), "t%u %lld", process, (long long)tid);
	i = texts_add(&r->who, key);
	if (i < known) {
		t = &r->thread[map_get(&r->number_of, (int64_t)i)];
		t->file = r->file;
		return &t->caller;
	}
	map_put(&r->number_of, (int64_t)i, (uint32_t)r->threads);
	t = VECTOR_ADD(r->thread, r->threads, r->thread_room);
	*t = (struct thread){.tid = tid, .file = r->file};
	t->caller = (struct caller){
		.process = process,
		.thread = job_add_thread(r->job, process, tid),
		.table = descriptors_table(r->log.descriptors),
		.cwd = "",
	};
	return &t->caller;
}

/* ---- calls ---- */

static uint32_t file_of(struct reading *r, const struct caller *c, const struct pfw_line *l,
			const struct pfw_text *hash, bool folder)
{
	const char *name = meaning(r, 'F', hash);
	struct pfw_text in_full = l->f[A_FNAME];

	if (!name && hash == &l->f[A_FHASH] && in_full.there)
		name = plain(r, &in_full);
	if (!name && hash->there && hash->n && hash->p[0] == '/')
		name = plain(r, hash);
	return name && name[0] ? call_path(&r->log, c, CALL_CWD, name, folder) : JOB_NONE;
}

/* The descriptor of a call, that of its stream, or of its file alone. -1: nothing is known. */
static int64_t descriptor_of(struct reading *r, struct call *c, const struct pfw_line *l)
{
	int64_t fd = number_or(&l->f[A_FD], -1);
	uint32_t file = file_of(r, c->caller, l, &l->f[A_FHASH], false);

	if (fd < 0)
		fd = file == JOB_NONE ? -1 : STREAMS + file % (uint32_t)(STREAMS - 1);
	if (fd >= 0 && file != JOB_NONE)
		descriptors_expect(r->log.descriptors, c->caller->table, fd, file, 0);
	return fd;
}

enum what {
	W_OPEN,
	W_FOPEN,
	W_CLOSE,
	W_READ,
	W_WRITE,
	W_FREAD,
	W_FWRITE,
	W_SEEK,
	W_FSEEK,
	W_TELL,
	W_STAT,
	W_OTHER,
	W_MAP,
	W_TRUNCATE,
	W_RENAME,
	W_DROP,
};

static const struct row {
	const char *names; /* separated by blanks */
	enum what what;
	enum job_event_kind kind;
} rows[] = {
	{"open open64 openat openat64 creat creat64", W_OPEN, 0},
	{"fopen fopen64", W_FOPEN, 0},
	{"close fclose", W_CLOSE, 0},
	{"read pread pread64 readv preadv", W_READ, 0},
	{"write pwrite pwrite64 writev pwritev", W_WRITE, 0},
	{"fread", W_FREAD, 0},
	{"fwrite", W_FWRITE, 0},
	{"lseek lseek64", W_SEEK, 0},
	{"fseek fseeko", W_FSEEK, 0},
	{"ftell", W_TELL, 0},
	{"__xstat __xstat64 __lxstat __lxstat64 __fxstat __fxstat64 __fxstatat "
	 "__fxstatat64 stat",
	 W_STAT, 0},
	{"opendir", W_OTHER, JOB_LIST},
	{"fsync fdatasync", W_OTHER, JOB_SYNC},
	{"access faccessat readlink readlinkat", W_OTHER, JOB_ACCESS},
	{"unlink unlinkat remove rmdir", W_OTHER, JOB_UNLINK},
	{"mkdir mkdirat", W_OTHER, JOB_MAKE_DIR},
	{"mmap mmap64", W_MAP, 0},
	{"truncate ftruncate", W_TRUNCATE, 0},
	{"rename", W_RENAME, 0},
};

static const struct row *row_of(const struct pfw_text *name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (call_is(rows[i].names, name->p, name->n))
			return &rows[i];
	return NULL;
}

/* A product of two counts; JOB_UNKNOWN. */
static int64_t times(int64_t a, int64_t b)
{
	int64_t v;

	return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &v) ? JOB_UNKNOWN : v;
}

static void transfer(struct reading *r, struct call *c, const struct pfw_line *l, bool write,
		     bool stream)
{
	int64_t fd = descriptor_of(r, c, l), asked = amount(&l->f[A_COUNT]);
	int64_t offset = amount(&l->f[A_OFFSET]), size = amount(&l->f[A_SIZE]);
	bool known = pfw_number(&l->f[A_RET], &c->result);

	if (stream) {
		asked = times(asked, size);
		c->result = times(c->result, size);
		known = known && c->result >= 0;
		offset = JOB_UNKNOWN;
	}
	if (!known) {
		/* nothing is known of it but that it was */
		struct job_event v = job_event_of(write ? JOB_WRITE : JOB_READ, c->caller->thread,
						  c->begin_ns, c->end_ns);

		v.asked = asked;
		v.file = fd < 0 ? JOB_NONE : call_file_of(&r->log, c->caller, fd);
		r->bare++;
		r->log.seen |= JOB_SEES_REQUESTS;
		if (!r->log.failed && job_add(r->job, &v, r->e) < 0)
			r->log.failed = true;
		return;
	}
	call_transfer(&r->log, c, write ? JOB_WRITE : JOB_READ, fd, asked, offset);
}

static void seek(struct reading *r, struct call *c, const struct pfw_line *l, const struct row *row)
{
	int64_t fd = descriptor_of(r, c, l), offset = number_or(&l->f[A_OFFSET], 0);
	int whence = (int)number_or(&l->f[A_WHENCE], SEEK_SET);

	if (fd < 0)
		return;
	if (row->what == W_FSEEK) {
		/* it returns 0, not the position */
		c->result = call_seek_target(&r->log, c->caller, fd, offset, whence);
		if (c->result == JOB_UNKNOWN) {
			descriptors_seek(r->log.descriptors, c->caller->table, fd, JOB_UNKNOWN);
			return;
		}
		whence = SEEK_SET;
	} else if (!pfw_number(&l->f[A_RET], &c->result)) {
		descriptors_seek(r->log.descriptors, c->caller->table, fd, JOB_UNKNOWN);
		return;
	}
	if (row->what == W_TELL)
		descriptors_seek(r->log.descriptors, c->caller->table, fd, c->result);
	else
		call_seek(&r->log, c, fd, offset, whence);
}

static void posix_call(struct reading *r, struct call *c, const struct pfw_line *l,
		       const struct row *row)
{
	uint32_t file;
	int64_t fd;

	c->result = number_or(&l->f[A_RET], 0);
	switch (row->what) {
	case W_OPEN:
	case W_FOPEN:
		file = file_of(r, c->caller, l, &l->f[A_FHASH], false);
		if (file == JOB_NONE)
			return;
		if (row->what == W_FOPEN || !l->f[A_FLAGS].there) {
			/* the number of the descriptor is not in the log */
			if (c->result >= 0)
				c->result = STREAMS + file % (uint32_t)(STREAMS - 1);
			call_open(&r->log, c, file,
				  call_mode_flags(l->f[A_MODE].p, l->f[A_MODE].n));
		} else {
			call_open(&r->log, c, file, (int)number_or(&l->f[A_FLAGS], 0));
		}
		return;
	case W_CLOSE:
		fd = descriptor_of(r, c, l);
		if (fd >= 0)
			call_close(&r->log, c, fd);
		return;
	case W_READ:
	case W_WRITE:
		transfer(r, c, l, row->what == W_WRITE, false);
		return;
	case W_FREAD:
	case W_FWRITE:
		transfer(r, c, l, row->what == W_FWRITE, true);
		return;
	case W_SEEK:
	case W_FSEEK:
	case W_TELL:
		seek(r, c, l, row);
		return;
	case W_MAP:
		fd = descriptor_of(r, c, l);
		if (fd >= 0)
			call_map(&r->log, c, fd, 0, amount(&l->f[A_LENGTH]),
				 amount(&l->f[A_OFFSET]));
		return;
	case W_RENAME:
		file = file_of(r, c->caller, l, &l->f[A_FHASH], false);
		if (file != JOB_NONE) {
			uint32_t to = file_of(r, c->caller, l, &l->f[A_NEWPATH], false);

			if (to != JOB_NONE)
				call_rename(&r->log, c, file, to);
		}
		return;
	default:
		break;
	}
	file = file_of(r, c->caller, l, &l->f[A_FHASH],
		       row->kind == JOB_LIST || row->kind == JOB_MAKE_DIR);
	if (file == JOB_NONE)
		return;
	if (row->what == W_STAT)
		call_stat(&r->log, c, file, -1, -1);
	else if (row->what == W_TRUNCATE)
		call_truncate(&r->log, c, file, -1, amount(&l->f[A_LENGTH]));
	else
		call_other(&r->log, c, row->kind, file, -1, JOB_UNKNOWN, 0);
}

/* What the application itself said. */
static void mark(struct reading *r, const struct call *c, const struct pfw_line *l)
{
	static const char call[] = ".compute";
	const struct pfw_text *name = &l->f[F_NAME];
	bool compute = pfw_is(&l->f[F_CAT], "compute");
	struct job_event v;

	/* older DLIO marks only its function (TorchFramework.compute) */
	if (!r->says_compute && pfw_is(&l->f[F_CAT], "ai_framework") && name->n >= sizeof(call) &&
	    memcmp(name->p + name->n - sizeof(call) + 1, call, sizeof(call) - 1) == 0)
		compute = true;
	v = job_event_of(compute ? JOB_COMPUTE : JOB_MARK, c->caller->thread, c->begin_ns,
			 c->end_ns);
	v.asked = amount(&l->f[A_EPOCH]);
	v.offset = amount(&l->f[A_STEP]);
	if (r->job->files < CALL_FILES_MAX - 1)
		v.file = job_file(r->job, plain(r, &l->f[F_NAME]), JOB_FILE_MARK);
	if (compute)
		r->log.seen |= JOB_SEES_COMPUTE;
	if (!r->log.failed && job_add(r->job, &v, r->e) < 0)
		r->log.failed = true;
}

/* ---- lines ---- */

/* Stoker's own traces name their threads, before the first event of any. */
static void add_thread_name(struct reading *r, const struct pfw_line *l)
{
	const struct caller *c = caller_of(r, l);

	if (c)
		r->job->thread[c->thread].name = job_text(r->job, plain(r, &l->f[A_NAME]));
}

static void add_meta(struct reading *r, const struct pfw_line *l)
{
	const struct pfw_text *name = &l->f[F_NAME];

	if (pfw_is(name, "FH"))
		explain_hash(r, 'F', l);
	else if (pfw_is(name, "HH"))
		explain_hash(r, 'H', l);
	else if (pfw_is(name, "SH"))
		explain_hash(r, 'S', l);
	else if (!r->first_pass && pfw_is(name, "thread_name"))
		add_thread_name(r, l);
}

/* The first event of a process: its parent and command. */
static void add_start(struct reading *r, const struct caller *c, const struct pfw_line *l,
		      int64_t begin_ns)
{
	struct job_process *p = &r->job->process[c->process];
	const char *command = meaning(r, 'S', &l->f[A_CMD]);
	int64_t ppid;

	p->begin_ns = begin_ns;
	if (command)
		p->command = command;
	if (!pfw_number(&l->f[A_PPID], &ppid))
		return;
	for (uint32_t i = 0; i < r->job->processes && i < 4096; i++)
		if (i != c->process && r->job->process[i].pid == ppid &&
		    r->job->process[i].host == p->host && r->job->process[i].parent != c->process)
			p->parent = i;
}

static void add_event(struct reading *r, const struct pfw_line *l)
{
	static const char *const own[] = {"start", "end"};
	int64_t ts, dur = 0;
	const struct pfw_text *cat = &l->f[F_CAT];
	const struct row *row = NULL;
	struct call c = {0};

	if (!pfw_ns(&l->f[F_TS], &ts) || ts < 0 ||
	    (l->f[F_DUR].there && (!pfw_ns(&l->f[F_DUR], &dur) || dur < 0))) {
		r->unread++;
		return;
	}
	c.caller = caller_of(r, l);
	if (!c.caller)
		return;
	c.begin_ns = ts;
	c.end_ns = ts + dur;
	if (pfw_is(cat, "dftracer")) {
		if (pfw_is(&l->f[F_NAME], own[0]))
			add_start(r, c.caller, l, c.begin_ns);
		else if (pfw_is(&l->f[F_NAME], own[1]))
			r->job->process[c.caller->process].complete = true;
		return;
	}
	if (pfw_is(cat, "POSIX") || pfw_is(cat, "STDIO") || pfw_is(cat, "store"))
		row = row_of(&l->f[F_NAME]);
	else {
		mark(r, &c, l);
		return;
	}
	if (row)
		posix_call(r, &c, l, row);
}

static int read_file(struct reading *r, const char *path)
{
	struct trace_lines lines;
	const char *base = strrchr(path, '/');
	int rank, ranks, rc;
	bool whole = true, closed = false;

	base = base ? base + 1 : path;
	r->rank = sscanf(base, "trace-%d-of-%d", &rank, &ranks) == 2 && rank >= 0 && rank < ranks
			  ? rank
			  : -1;
	trace_lines_open(&lines, path, PIECE);
	while ((rc = trace_lines_next(&lines, r->e)) > 0 && !r->log.failed) {
		struct pfw_line l;
		enum line_kind kind = parse(lines.text.data, &l);

		r->lines++;
		whole = lines.whole || kind != LINE_NONE;
		closed = kind == LINE_FRAME && strchr(lines.text.data, ']');
		if (kind == LINE_NONE)
			r->unread += lines.whole;
		if (kind != LINE_OBJECT)
			continue;
		if (is_meta(&l))
			add_meta(r, &l);
		else if (r->first_pass)
			r->says_compute = r->says_compute || pfw_is(&l.f[F_CAT], "compute");
		else if (l.f[F_TS].there)
			add_event(r, &l);
	}
	if (!whole || lines.damaged)
		r->cut++;
	/* `]` is written when a process finalizes its tracer */
	for (size_t i = 0; i < r->threads && closed && !r->first_pass; i++)
		if (r->thread[i].file == r->file)
			r->job->process[r->thread[i].caller.process].complete = true;
	r->file++;
	trace_lines_close(&lines);
	return r->log.failed ? r->e->code : rc;
}

/* ---- the whole ---- */

static void finish(struct reading *r)
{
	int64_t base = call_log_finish(&r->log);
	struct job *job = r->job;

	job->source = "DFTracer";
	job->sees |= JOB_SEES_TIMES;
	if (base != JOB_UNKNOWN)
		job->start_s = base / 1000000000;
	if (r->bare)
		job_note(job,
			 "%llu requests have no sizes in the log (DFTRACER_INC_METADATA=1 writes "
			 "them): bytes are not known",
			 (unsigned long long)r->bare);
	if (r->unread)
		job_note(job, "%llu of %llu lines are no events, or damaged",
			 (unsigned long long)r->unread, (unsigned long long)r->lines);
	if (r->cut)
		job_note(job, "%llu logs are cut or damaged at their end: the rest is missing",
			 (unsigned long long)r->cut);
	if (r->ambiguous)
		job_note(job,
			 "%llu hashes stand for more than one name: requests may be told of "
			 "another file than theirs",
			 (unsigned long long)r->ambiguous);
}

static int dftracer_read(struct job *job, const char *const *paths, size_t n, struct err *e)
{
	struct reading r = {.job = job, .e = e, .first_pass = true};
	int rc = 0;

	call_log_init(&r.log, job, e);
	for (size_t i = 0; i < n && rc >= 0; i++)
		rc = read_file(&r, paths[i]);
	r.first_pass = false;
	r.lines = r.unread = r.cut = 0;
	for (size_t i = 0; i < n && rc >= 0; i++)
		rc = read_file(&r, paths[i]);
	if (rc >= 0 && !job->events)
		rc = err_set(e, ERR_DATA, "%s: no event of DFTracer in it", paths[0]);
	if (rc >= 0)
		finish(&r);
	texts_release(&r.hashes);
	texts_release(&r.who);
	map_release(&r.number_of);
	free(r.meaning);
	free(r.thread);
	buf_release(&r.text);
	call_log_release(&r.log);
	return rc < 0 ? rc : 0;
}

/* A first line `[` or none, then one with DFTracer's keys; the timelines of others are one object,
 * or objects on several lines. */
static bool dftracer_recognize(const char *path, bool folder, const unsigned char *head, size_t n)
{
	char *text = xstrndup((const char *)head, n), *save = NULL;
	bool known = false;

	(void)path;
	for (char *p = folder ? NULL : strtok_r(text, "\n", &save); p;
	     p = strtok_r(NULL, "\n", &save)) {
		struct pfw_line l;
		enum line_kind kind = parse(p, &l);

		if (kind == LINE_FRAME)
			continue;
		known = kind == LINE_OBJECT && l.f[F_CAT].there && l.f[F_PID].there &&
			(l.f[F_TS].there || is_meta(&l));
		break;
	}
	free(text);
	return known;
}

const struct trace_reader trace_reader_dftracer_log = {
	.name = "dftracer_log",
	.people = "DFTracer's .pfw",
	.recognize = dftracer_recognize,
	.read = dftracer_read,
};
