/* Header, job, names and records of Darshan logs. */
#include "trace/darshan/darshan_log.h"

#include <byteswap.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/transfer.h"

#define MAGIC UINT64_C(6567223)
#define HEADER_BYTES 1328    /* version 3.41 and later */
#define HEADER_BYTES_OLD 360 /* before */
#define OLD_MODULES 16       /* of that header */
#define JOB_BYTES 4096       /* at most, unpacked */
#define METADATA_BYTES 1024
#define TRACE_BYTES 104 /* before the segments of a DXT record */
#define HEAT_BYTES 48
#define COMPONENT_BYTES 72
#define COMPONENTS_MAX 1024 /* of a Lustre layout */
#define STRIPES_MAX 65536
#define SEGMENT_BYTES 40

/* A note about the log, whose path comes first. */
__attribute__((format(printf, 2, 3))) static void note(struct darshan_log *log, const char *fmt,
						       ...)
{
	char text[512];
	int n = snprintf(text, sizeof(text), "%.400s: ", log->path);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	va_end(ap);
	texts_add(&log->notes, text);
}

/* ---- numbers in the order of the log ---- */

static uint64_t u64(const struct darshan_log *log, const unsigned char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return log->swap ? bswap_64(v) : v;
}

static uint32_t u32(const struct darshan_log *log, const unsigned char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return log->swap ? bswap_32(v) : v;
}

static int64_t i64(const struct darshan_log *log, const unsigned char *p)
{
	return (int64_t)u64(log, p);
}

static double f64(const struct darshan_log *log, const unsigned char *p)
{
	uint64_t v = u64(log, p);
	double d;

	memcpy(&d, &v, sizeof(d));
	return d;
}

/* ---- header ---- */

/* "3.41" with a NUL in 8 bytes; -1 if the bytes are no version. */
static int version_of(const unsigned char *p, int *minor)
{
	int part[2] = {0, 0}, digits = 0, k = 0;

	for (size_t i = 0; i < 8 && p[i]; i++) {
		if (p[i] == '.' && k == 0 && digits > 0) {
			k = 1;
			digits = 0;
		} else if (p[i] >= '0' && p[i] <= '9' && digits < 4) {
			part[k] = 10 * part[k] + (p[i] - '0');
			digits++;
		} else {
			return -1;
		}
	}
	*minor = part[1];
	return k == 1 && digits > 0 ? part[0] : -1;
}

bool darshan_is_log(const unsigned char *head, size_t n)
{
	uint64_t magic;
	int minor;

	if (n < 16 || version_of(head, &minor) < 0)
		return false;
	memcpy(&magic, head + 8, sizeof(magic));
	return magic == MAGIC || bswap_64(magic) == MAGIC;
}

static bool known_minor(int minor)
{
	return minor == 0 || minor == 10 || minor == 20 || minor == 21 || minor >= 41;
}

/* The id in version 3.41 of module `id` of an earlier header. */
static unsigned new_id(int minor, unsigned id)
{
	if (minor < 20 && id >= DARSHAN_H5D)
		id++;
	if (minor < 41 && id >= DARSHAN_PNETCDF_VAR)
		id++;
	return id;
}

/* Takes a region of the header's map at p. */
static void set_region(struct darshan_log *log, struct darshan_region *r, const unsigned char *p,
		       uint64_t header, const char *what)
{
	r->at = u64(log, p);
	r->len = u64(log, p + 8);
	r->usable =
		r->len > 0 && r->at >= header && r->at <= log->size && r->len <= log->size - r->at;
	if (r->len == 0 || r->usable)
		return;
	log->damaged = true;
	if (r->at >= header && r->at <= UINT64_MAX - r->len)
		note(log,
		     "the region %s ends at byte %llu, beyond the file's %llu bytes: it is left "
		     "out",
		     what, (unsigned long long)(r->at + r->len), (unsigned long long)log->size);
	else
		note(log,
		     "the header gives the region %s the impossible place %llu + %llu: it is left "
		     "out",
		     what, (unsigned long long)r->at, (unsigned long long)r->len);
}

static void find_job(struct darshan_log *log, uint64_t header)
{
	uint64_t end = log->name.at;

	for (unsigned i = 0; i < DARSHAN_MODULES && log->name.at == 0; i++)
		if (log->module[i].at != 0 && (end == 0 || log->module[i].at < end))
			end = log->module[i].at;
	if (end == 0)
		end = log->size;
	log->job.at = header;
	log->job.len = end > header ? end - header : 0;
	log->job.usable = log->job.len > 0 && end <= log->size;
}

static bool darshan_is_partial(const struct darshan_log *log, unsigned module)
{
	return module < DARSHAN_MODULES && log->partial >> module & 1;
}

static int read_header(struct darshan_log *log, struct err *e)
{
	unsigned char h[HEADER_BYTES] = {0};
	ssize_t got = pread_fully(log->fd, h, sizeof(h), 0);
	int minor = 0, major;
	size_t need, maps, versions, modules;
	uint64_t magic, flags;

	if (got < 0)
		return err_sys(e, (int)-got, "%s: cannot be read", log->path);
	if (got >= 2 && h[0] == 0x1f && h[1] == 0x8b)
		return err_set(e, ERR_DATA,
			       "%s: the file is packed by gzip as a whole, which logs of Darshan 3 "
			       "are not: unpack it first",
			       log->path);
	if (!darshan_is_log(h, (size_t)got))
		return err_set(e, ERR_DATA, "%s: no Darshan log", log->path);
	major = version_of(h, &minor);
	if (major != 3 || !known_minor(minor))
		return err_set(e, ERR_DATA,
			       "%s: Darshan log version %d.%02d is not read here: 3.00, 3.10, "
			       "3.20, 3.21, 3.41 and later ones of 3 are",
			       log->path, major, minor);
	memcpy(&magic, h + 8, sizeof(magic));
	log->swap = magic != MAGIC;
	log->minor = (unsigned)minor;
	modules = minor >= 41 ? DARSHAN_MODULES : OLD_MODULES;
	need = minor >= 41 ? HEADER_BYTES : HEADER_BYTES_OLD;
	maps = minor >= 41 ? 32 : 24;
	versions = maps + 16 + 16 * modules;
	if ((size_t)got < need)
		return err_set(e, ERR_DATA,
			       "%s: the log is cut in its header: %zd of %zu bytes are there",
			       log->path, got, need);
	log->compression = h[16];
	if (log->compression > DARSHAN_PLAIN)
		return err_set(e, ERR_DATA,
			       "%s: compression method %u is unknown: 0 (zlib), 1 (bzip2) and 2 "
			       "(none) are read",
			       log->path, log->compression);
	if (minor > 41)
		note(log,
		     "log version 3.%d is later than 3.41, the newest that is known: it is read as "
		     "that",
		     minor);
	if (minor == 20)
		note(log, "Darshan 3.2.0 wrote this log. Its counters are known to be corrupt in "
			  "part, the ACCESS counters first");
	flags = minor >= 41 ? u64(log, h + 24) : u32(log, h + 20);
	set_region(log, &log->name, h + maps, need, "of names");
	for (unsigned i = 0; i < modules; i++) {
		unsigned id = minor >= 41 ? i : new_id(minor, i);
		struct darshan_region *r = &log->module[id];

		set_region(log, r, h + maps + 16 + 16 * i, need, darshan_module_name(id));
		r->version = u32(log, h + versions + 4 * i);
		if (flags >> i & 1)
			log->partial |= UINT64_C(1) << id;
	}
	find_job(log, need);
	for (unsigned id = 0; id < DARSHAN_MODULES; id++)
		if (darshan_is_partial(log, id))
			note(log,
			     "%s is incomplete: Darshan ran out of memory for it and left out what "
			     "came last",
			     darshan_module_name(id));
	return 0;
}

/* ---- regions ---- */

/* The most that a region can sensibly unpack to, so that a small file cannot keep the reader busy.
 * bzip2 packs zeros nearly a million to one, zlib 1032 to one; real records, each with a number of
 * its own and times, a hundred to one, and requests ten to one. */
static uint64_t ceiling_of(const struct darshan_region *r, unsigned module)
{
	bool requests = module == DARSHAN_DXT_POSIX || module == DARSHAN_DXT_MPIIO;
	uint64_t ratio = requests ? 256 : 1100, most = UINT64_C(1) << 24;

	if (r->len > (DARSHAN_REGION_MAX - most) / ratio)
		return DARSHAN_REGION_MAX;
	return most + ratio * r->len;
}

static struct darshan_stream *open_region(const struct darshan_log *log,
					  const struct darshan_region *r, unsigned module)
{
	struct darshan_stream *s = xmalloc(sizeof(*s));

	darshan_stream_open(s, log->fd, (enum darshan_compression)log->compression, r->at, r->len,
			    ceiling_of(r, module));
	return s;
}

static void close_region(struct darshan_stream *s)
{
	darshan_stream_close(s);
	free(s);
}

/* ---- job ---- */

static int by_length(const void *a, const void *b)
{
	const struct darshan_mount *x = a, *y = b;
	size_t m = strlen(x->path), n = strlen(y->path);

	return (m < n) - (m > n);
}

/* The command line ends at the first line break, each further line is `type` tab `path`. */
static void split_text(struct darshan_log *log, char *line)
{
	size_t lines = 0;

	for (const char *p = line; (p = strchr(p, '\n')); p++)
		lines++;
	log->command = line;
	log->mount = xcalloc(lines + 1, sizeof(*log->mount));
	while ((line = strchr(line, '\n'))) {
		char *tab;

		*line++ = '\0';
		tab = strchr(line, '\t');
		if (!tab || (strchr(line, '\n') && strchr(line, '\n') < tab))
			continue;
		*tab = '\0';
		log->mount[log->mounts++] = (struct darshan_mount){tab + 1, line};
		line = tab + 1;
	}
	/* the paths end at line breaks, which are NULs by now */
	qsort(log->mount, log->mounts, sizeof(*log->mount), by_length);
}

/* Whether the job has its times in nanoseconds. Those of 3.41 do, but for the builds of Darshan
 * between the change of the header and that of the job: there the end lies where the nanoseconds
 * of the begin should be, which are then too many. */
static bool has_nanoseconds(const struct darshan_log *log, const unsigned char *raw)
{
	int64_t start_s = i64(log, raw + 8), start_ns = i64(log, raw + 16);

	if (log->minor < 41)
		return false;
	return (start_ns >= 0 && start_ns < 1000000000) || start_ns < start_s ||
	       i64(log, raw + 24) < 1;
}

static void read_job(struct darshan_log *log)
{
	unsigned char raw[JOB_BYTES] = {0};
	bool fine = log->minor >= 41;
	size_t metadata = fine ? 56 : 40, text, got = 0;
	struct darshan_stream *s;

	log->text = xcalloc(JOB_BYTES + 2, 1);
	log->metadata = log->text;
	log->command = log->text;
	if (!log->job.usable) {
		log->damaged = true;
		note(log, "the region of the job is cut: its begin and command are unknown");
		return;
	}
	s = open_region(log, &log->job, 0);
	got = darshan_stream_take(s, raw, sizeof(raw));
	if (s->broken || got < metadata) {
		log->damaged = true;
		note(log, "the region of the job is damaged: %s%s",
		     s->broken ? s->broken : "it is too short",
		     got < metadata ? ": begin and command are unknown" : "");
	}
	close_region(s);
	if (got < metadata)
		return;
	log->has_job = true;
	log->nanoseconds = fine = has_nanoseconds(log, raw);
	metadata = fine ? 56 : 40;
	text = metadata + METADATA_BYTES;
	log->uid = i64(log, raw);
	log->start_s = i64(log, raw + 8);
	log->start_ns = fine ? i64(log, raw + 16) : 0;
	log->end_s = i64(log, raw + (fine ? 24 : 16));
	log->end_ns = fine ? i64(log, raw + 32) : 0;
	log->ranks = i64(log, raw + (fine ? 40 : 24));
	log->job_id = i64(log, raw + (fine ? 48 : 32));
	memcpy(log->text, raw + metadata, METADATA_BYTES);
	log->command = log->text + METADATA_BYTES + 1;
	if (got > text)
		memcpy(log->text + METADATA_BYTES + 1, raw + text, got - text);
	split_text(log, log->text + METADATA_BYTES + 1);
	if (log->ranks < 1) {
		note(log, "the job has %lld processes, which cannot be", (long long)log->ranks);
		log->ranks = 0;
	}
}

bool darshan_metadata(const struct darshan_log *log, const char *key, char *value, size_t size)
{
	size_t n = strlen(key);

	for (const char *p = log->metadata; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : "")
		if (strncmp(p, key, n) == 0 && p[n] == '=') {
			snprintf(value, size, "%.*s", (int)strcspn(p + n + 1, "\n"), p + n + 1);
			return true;
		}
	return false;
}

double darshan_run_s(const struct darshan_log *log)
{
	if (!log->has_job)
		return 0;
	if (!log->nanoseconds)
		return (double)log->end_s - (double)log->start_s + 1;
	return (double)log->end_s - (double)log->start_s +
	       ((double)log->end_ns - (double)log->start_ns) / 1e9;
}

const struct darshan_mount *darshan_mount_of(const struct darshan_log *log, const char *path)
{
	for (size_t i = 0; i < log->mounts; i++) {
		const char *m = log->mount[i].path;
		size_t n = strlen(m);

		if (n > 0 && strncmp(path, m, n) == 0 &&
		    (m[n - 1] == '/' || path[n] == '/' || path[n] == '\0'))
			return &log->mount[i];
	}
	return NULL;
}

/* ---- names ---- */

/* The first name of an id counts, unless it is empty. */
static void add_name(struct darshan_log *log, uint64_t id, const char *name)
{
	if (name[0] == '\0' || map_get(&log->names, (int64_t)id) != MAP_NONE)
		return;
	map_put(&log->names, (int64_t)id, (uint32_t)log->names_text.len);
	buf_append(&log->names_text, name, strlen(name) + 1);
}

const char *darshan_name(const struct darshan_log *log, uint64_t id)
{
	uint32_t at = map_get(&log->names, (int64_t)id);

	return at == MAP_NONE ? NULL : log->names_text.data + at;
}

/* One name of version 3.00, with its length before it. */
static size_t take_sized(struct darshan_log *log, struct darshan_stream *s, char *name, bool *whole)
{
	unsigned char raw[4];
	uint32_t length, kept;

	*whole = false;
	name[0] = '\0';
	if (darshan_stream_take(s, raw, 4) < 4)
		return 0;
	length = u32(log, raw);
	kept = length < DARSHAN_NAME_MAX ? length : DARSHAN_NAME_MAX;
	if (darshan_stream_take(s, name, kept) < kept) {
		name[0] = '\0';
		return 0;
	}
	name[kept] = '\0';
	for (length -= kept; length > 0; length -= kept) {
		char rest[1024];

		kept = length < sizeof(rest) ? length : (uint32_t)sizeof(rest);
		if (darshan_stream_take(s, rest, kept) < kept)
			return 0;
	}
	*whole = true;
	return 4;
}

static void read_names(struct darshan_log *log)
{
	char *name = xmalloc(DARSHAN_NAME_MAX + 1);
	struct darshan_stream *s;

	if (!log->name.usable) {
		free(name);
		return;
	}
	s = open_region(log, &log->name, 0);
	for (;;) {
		unsigned char raw[8];
		size_t got = darshan_stream_take(s, raw, 8);
		bool whole = false;

		if (got == 8 && log->minor == 0)
			take_sized(log, s, name, &whole);
		else if (got == 8)
			darshan_stream_text(s, name, DARSHAN_NAME_MAX, &whole);
		if (s->broken || (got > 0 && !whole)) {
			log->damaged = true;
			note(log,
			     "the region of names is damaged: %s. Records without a name are "
			     "called by their number",
			     s->broken ? s->broken : "its last name is cut");
		}
		if (s->broken || got == 0 || !whole)
			break;
		if (log->names_text.len > DARSHAN_NAMES_MAX) {
			note(log,
			     "the log has more than %llu MiB of names: further records are called "
			     "by their number",
			     (unsigned long long)(DARSHAN_NAMES_MAX >> 20));
			break;
		}
		add_name(log, u64(log, raw), name);
	}
	close_region(s);
	free(name);
}

/* ---- open and close ---- */

static bool anything(const struct darshan_log *log)
{
	bool regions = false;

	for (unsigned i = 0; i < DARSHAN_MODULES; i++) {
		if (log->module[i].usable)
			return true;
		regions = regions || log->module[i].len > 0;
	}
	return log->has_job && !regions;
}

int darshan_open(struct darshan_log *log, const char *path, struct err *e)
{
	struct stat st;
	const void *random;
	int rc;

	*log = (struct darshan_log){.fd = -1};
	log->fd = file_open(path, &st, e);
	if (log->fd < 0)
		return log->fd;
	log->path = xstrdup(path);
	log->size = (uint64_t)st.st_size;
	random = (const void *)getauxval(AT_RANDOM);
	if (random)
		memcpy(&log->names.key, random, sizeof(log->names.key));
	rc = read_header(log, e);
	if (rc == 0) {
		read_job(log);
		read_names(log);
		if (!anything(log))
			rc = err_set(e, ERR_DATA,
				     "%s: the log is cut or damaged: no region of it is within its "
				     "%llu bytes",
				     path, (unsigned long long)log->size);
	}
	if (rc < 0)
		darshan_close(log);
	return rc;
}

void darshan_close(struct darshan_log *log)
{
	if (log->fd >= 0)
		close(log->fd);
	log->fd = -1;
	free(log->path);
	free(log->text);
	free(log->mount);
	map_release(&log->names);
	buf_release(&log->names_text);
	texts_release(&log->notes);
	*log = (struct darshan_log){.fd = -1};
}

/* ---- records ---- */

/* A walk through one region. */
struct region_walk {
	struct darshan_log *log;
	struct darshan_stream *s;
	const struct darshan_walk *w;
	unsigned module;
	uint32_t version;
	uint64_t records, strange_ranks;
	const char *damage; /* a clause, where the bytes unpack but make no sense */
	struct err *e;
};

static bool strange_rank(struct region_walk *r, int64_t rank)
{
	bool strange = rank < -1 || (r->log->ranks > 0 && rank >= r->log->ranks);

	r->strange_ranks += strange;
	return strange;
}

/* n bytes, or false at the end of the region and when it is cut. */
static bool take(struct region_walk *r, unsigned char *to, size_t n)
{
	size_t got = darshan_stream_take(r->s, to, n);

	if (got > 0 && got < n && !r->s->broken)
		r->damage = "its last record is cut";
	return got == n;
}

/* The same within a record: the end of the region cuts it. */
static bool take_rest(struct region_walk *r, unsigned char *to, size_t n)
{
	bool taken = take(r, to, n);

	if (!taken && !r->s->broken)
		r->damage = "its last record is cut";
	return taken;
}

static bool listed(const int8_t *index, int i)
{
	for (; index && *index >= 0; index++)
		if (*index == i)
			return true;
	return false;
}

static void decode(const struct darshan_log *log, const struct darshan_layout *l,
		   const unsigned char *p, struct darshan_record *r)
{
	unsigned taken = 0;

	r->layout = l;
	r->id = u64(log, p);
	r->rank = i64(log, p + 8);
	r->file_id = 0;
	p += 16 + l->before;
	if (l->has_file_id) {
		r->file_id = u64(log, p);
		p += 8;
	}
	for (int i = 0; i < l->ints; i++) {
		bool absent = listed(l->absent_int, i);

		r->ints[i] = !absent || (l->absent_zero && l->absent_zero == i) ? 0 : -1;
		if (absent || l->merged)
			continue;
		if (l->dropped && taken++ == l->keep)
			p += 8 * l->dropped;
		r->ints[i] = i64(log, p);
		p += 8;
	}
	for (unsigned i = 0; i < l->merged; i++, p += 8)
		r->ints[l->merged_into] =
			(int64_t)((uint64_t)r->ints[l->merged_into] + u64(log, p));
	for (int i = 0; i < l->doubles; i++) {
		bool absent = listed(l->absent_double, i);

		r->doubles[i] = absent ? -1 : f64(log, p);
		p += absent ? 0 : 8;
	}
}

static int walk_records(struct region_walk *r, const struct darshan_layout *l)
{
	size_t n = darshan_record_bytes(l);
	unsigned char raw[DARSHAN_RECORD_MAX];
	struct darshan_record record;
	int rc = 0;

	while (rc >= 0 && take(r, raw, n)) {
		r->records++;
		if (l->dropped && i64(r->log, raw + 16 + 8 * l->keep) > 0)
			continue;
		decode(r->log, l, raw, &record);
		if (!strange_rank(r, record.rank) && r->w->record)
			rc = r->w->record(r->w->context, &record, r->e);
	}
	return rc;
}

static int walk_segments(struct region_walk *r, const struct darshan_trace *t)
{
	size_t n = t->has_threads ? SEGMENT_BYTES : SEGMENT_BYTES - 8;
	bool skip = strange_rank(r, t->rank);
	unsigned char raw[SEGMENT_BYTES];
	struct darshan_segment g;
	int rc = 0;

	if (r->w->trace && !skip)
		rc = r->w->trace(r->w->context, t, r->e);
	for (int64_t i = 0; rc >= 0 && i < t->writes + t->reads; i++) {
		if (!take_rest(r, raw, n))
			break;
		g = (struct darshan_segment){
			.write = i < t->writes,
			.index = i < t->writes ? i : i - t->writes,
			.offset = i64(r->log, raw),
			.length = i64(r->log, raw + 8),
			.begin_s = f64(r->log, raw + 16),
			.end_s = f64(r->log, raw + 24),
			.thread = t->has_threads ? u64(r->log, raw + 32) : 0,
		};
		if (r->w->segment && !skip)
			rc = r->w->segment(r->w->context, t, &g, r->e);
	}
	if (rc >= 0 && r->w->trace_end && !skip)
		rc = r->w->trace_end(r->w->context, t, r->e);
	return rc;
}

static int walk_traces(struct region_walk *r)
{
	bool mpi = r->module == DARSHAN_DXT_MPIIO;
	unsigned char raw[TRACE_BYTES];
	struct darshan_trace t = {.module = r->module,
				  .has_threads = r->version >= (mpi ? 3 : 2),
				  .has_offsets = !mpi || r->version > 1};
	int64_t size = t.has_threads ? SEGMENT_BYTES : SEGMENT_BYTES - 8, room;
	int rc = 0;

	while (rc >= 0 && !r->damage && take(r, raw, TRACE_BYTES)) {
		t.id = u64(r->log, raw);
		t.rank = i64(r->log, raw + 8);
		t.shared = i64(r->log, raw + 16);
		memcpy(t.host, raw + 24, DARSHAN_HOST);
		t.host[DARSHAN_HOST] = '\0';
		t.writes = i64(r->log, raw + 88);
		t.reads = i64(r->log, raw + 96);
		room = (int64_t)r->s->ceiling / size;
		if (t.writes < 0 || t.reads < 0 || t.writes > room || t.reads > room - t.writes) {
			r->damage = "a record has an impossible number of requests";
			break;
		}
		r->records++;
		rc = walk_segments(r, &t);
	}
	return rc;
}

static int walk_heat(struct region_walk *r)
{
	unsigned char raw[HEAT_BYTES], *bins = NULL;
	int64_t *values = NULL, first_n = 0;
	double first_bin = 0;
	int rc = 0;

	while (rc >= 0 && !r->damage && take(r, raw, HEAT_BYTES)) {
		struct darshan_heat h = {.id = u64(r->log, raw),
					 .rank = i64(r->log, raw + 8),
					 .bin_s = f64(r->log, raw + 16)};
		int64_t n = i64(r->log, raw + 24);

		if (n < 0 || n > DARSHAN_BINS_MAX || !(h.bin_s > 0) || !isfinite(h.bin_s)) {
			r->damage = "a record has impossible bins";
			break;
		}
		if (!bins) {
			bins = xmalloc(16 * DARSHAN_BINS_MAX);
			/* one more each: see below */
			values = xcalloc(2 * DARSHAN_BINS_MAX + 2, sizeof(*values));
		}
		if (n > 0 && !take_rest(r, bins, 16 * (size_t)n))
			break;
		for (int64_t i = 0; i < n; i++) {
			values[i] = i64(r->log, bins + 8 * i);
			values[DARSHAN_BINS_MAX + 1 + i] = i64(r->log, bins + 8 * (n + i));
		}
		if (r->records++ == 0) {
			first_n = n;
			first_bin = h.bin_s;
		} else if (h.bin_s == first_bin && n == first_n + 1) {
			/* Darshan 3.4.0 to 3.4.3 may be off by one bin (its issue 941) */
			n--;
		} else if (h.bin_s == first_bin && n == first_n - 1) {
			values[n] = values[DARSHAN_BINS_MAX + 1 + n] = 0;
			n++;
		}
		h.bins = (size_t)n;
		h.written = values;
		h.read = values + DARSHAN_BINS_MAX + 1;
		if (!strange_rank(r, h.rank) && r->w->heat)
			rc = r->w->heat(r->w->context, &h, r->e);
	}
	free(bins);
	free(values);
	return rc;
}

/* What a Lustre record has after its beginning, read into memory. */
struct lustre {
	unsigned char *component, *ost; /* as in the log */
	int64_t components;
};

static int give_stripes(struct region_walk *r, struct darshan_stripes *st, const struct lustre *l)
{
	int64_t used = 0, all = st->stripes;
	int rc = 0;

	/* components that the runtime did not use end the list; the rest of the OSTs is unused */
	for (st->components = st->stripes = 0; st->components < l->components; st->components++) {
		const unsigned char *p = l->component + COMPONENT_BYTES * st->components;
		int64_t n = i64(r->log, p + 8 * DARSHAN_STRIPE_COUNT);

		if (i64(r->log, p) == -1)
			break;
		if (n < 0 || n > all - st->stripes) {
			r->damage = "a record has an impossible number of stripes";
			return 0;
		}
		st->stripes += n;
	}
	if (strange_rank(r, st->rank))
		return 0;
	if (r->w->stripes)
		rc = r->w->stripes(r->w->context, st, r->e);
	for (int64_t i = 0; rc >= 0 && r->w->component && i < st->components; i++) {
		const unsigned char *p = l->component + COMPONENT_BYTES * i;
		int64_t counter[DARSHAN_COMPONENT_INTS], *ost;
		char pool[17];

		for (int k = 0; k < DARSHAN_COMPONENT_INTS; k++)
			counter[k] = i64(r->log, p + 8 * k);
		memcpy(pool, p + 8 * DARSHAN_COMPONENT_INTS, 16);
		pool[16] = '\0';
		ost = xcalloc((size_t)counter[DARSHAN_STRIPE_COUNT] + 1, sizeof(*ost));
		for (int64_t k = 0; k < counter[DARSHAN_STRIPE_COUNT]; k++)
			ost[k] = i64(r->log, l->ost + 8 * used++);
		rc = r->w->component(r->w->context, st, i, counter, pool, ost, r->e);
		free(ost);
	}
	return rc;
}

static void put64(const struct darshan_log *log, unsigned char *p, int64_t value)
{
	uint64_t v = log->swap ? bswap_64((uint64_t)value) : (uint64_t)value;

	memcpy(p, &v, sizeof(v));
}

/* The one component of version 1 in the form of version 2. */
static void old_component(const struct darshan_log *log, const unsigned char *raw,
			  unsigned char *to)
{
	int64_t counter[DARSHAN_COMPONENT_INTS] = {
		i64(log, raw + 40), i64(log, raw + 48), -1, -1, 0, -1, -1};

	memset(to, 0, COMPONENT_BYTES);
	for (int k = 0; k < DARSHAN_COMPONENT_INTS; k++)
		put64(log, to + 8 * k, counter[k]);
}

static int walk_lustre(struct region_walk *r)
{
	size_t head = r->version == 1 ? 56 : 32;
	unsigned char raw[56];
	struct lustre l = {.component = xmalloc(COMPONENTS_MAX * COMPONENT_BYTES),
			   .ost = xmalloc(STRIPES_MAX * 8)};
	int rc = 0;

	while (rc >= 0 && !r->damage && take(r, raw, head)) {
		struct darshan_stripes st = {.id = u64(r->log, raw), .rank = i64(r->log, raw + 8)};

		l.components = r->version == 1 ? 1 : i64(r->log, raw + 16);
		st.stripes = i64(r->log, raw + (r->version == 1 ? 48 : 24));
		if (l.components < 0 || l.components > COMPONENTS_MAX || st.stripes < 0 ||
		    st.stripes > STRIPES_MAX) {
			r->damage = "a record has an impossible number of stripes";
			break;
		}
		if (r->version == 1)
			old_component(r->log, raw, l.component);
		if ((r->version > 1 && l.components > 0 &&
		     !take_rest(r, l.component, (size_t)l.components * COMPONENT_BYTES)) ||
		    (st.stripes > 0 && !take_rest(r, l.ost, (size_t)st.stripes * 8)))
			break;
		r->records++;
		rc = give_stripes(r, &st, &l);
	}
	free(l.component);
	free(l.ost);
	return rc;
}

static int walk_region(struct region_walk *r)
{
	const struct darshan_layout *l = darshan_layout(r->module, r->version);

	if (l)
		return walk_records(r, l);
	if (r->module == DARSHAN_DXT_POSIX || r->module == DARSHAN_DXT_MPIIO)
		return walk_traces(r);
	return r->module == DARSHAN_HEATMAP ? walk_heat(r) : walk_lustre(r);
}

int darshan_walk(struct darshan_log *log, unsigned module, const struct darshan_walk *w,
		 struct err *e)
{
	struct region_walk r = {.log = log, .w = w, .module = module, .e = e};
	const struct darshan_region *region = &log->module[module];
	const char *name = darshan_module_name(module);
	int rc;

	if (!region->usable)
		return 0;
	r.version = region->version;
	if (darshan_newest(module) == 0) {
		note(log, "%s is not read here: it is left out", name);
		return 0;
	}
	if (r.version == 0 || r.version > darshan_newest(module)) {
		note(log, "version %u of %s is not known: it is left out", r.version, name);
		return 0;
	}
	r.s = open_region(log, region, module);
	rc = walk_region(&r);
	if (r.s->broken || r.damage) {
		log->damaged = true;
		note(log, "the region %s is damaged: %s. What came before is used (%llu records)",
		     name, r.s->broken ? r.s->broken : r.damage, (unsigned long long)r.records);
	}
	if (r.strange_ranks)
		note(log,
		     "%llu records of %s have a rank that the job does not have: they are left out",
		     (unsigned long long)r.strange_ranks, name);
	close_region(r.s);
	return rc;
}
