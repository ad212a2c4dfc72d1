/* Recordings: serials of the rings become files and positions. */
#include "trace/recording/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/map.h"
#include "base/saturate.h"
#include "base/vector.h"
#include "trace/connections.h"
#include "trace/trace_reader.h"

#define DEPTH_MAX 4096     /* forks of forks whose serials are followed */
#define MAPPINGS_MOST 1024 /* the recorder follows so many of a process */

/* What open(2) made. */
struct description {
	uint32_t file;
	int64_t position;        /* JOB_UNKNOWN */
	uint32_t fd, connection; /* of a socket that leads to a server; JOB_NONE */
	uint32_t holders;        /* descriptors of it, as far as they are known */
	uint8_t kind;
	bool append;
};

struct ring_state {
	int64_t parent; /* ring; -1 */
	char *cwd;
	bool executed, ended, continued;
};

struct mapping {
	uint32_t ring, file;
	int64_t at, bytes, there;
};

struct reading {
	struct job *job;
	struct ring_files files;
	struct ring_state *ring;
	uint32_t *process;   /* of each ring */
	struct map serials;  /* descriptions by ring and serial */
	struct map threads;  /* by process and tid */
	struct map ring_ids; /* rings */
	struct map pids;     /* the latest ring by pid and host */
	struct description *description;
	size_t descriptions, room;
	struct mapping *mapping;
	size_t mappings, mapping_room;
	struct file_state {
		int64_t size; /* as far as known: where appended bytes go */
		bool opened;
	} * file;
	size_t files_known, file_room;
	uint64_t name_bytes, names_most; /* of the files */
	struct connections connections;
	/* Names below /dev/shm that the job made: the others are data that somebody put there. */
	struct texts made_in_memory;
	bool events;
	struct recording_facts facts;
	struct job_event event;
	struct err *e;
	int rc;
};

/* ---- names ---- */

/* The absolute name without "." and "..", as far as the text tells; a relative name stays as it is
 * where its folder is not known. Heap string. */
static char *absolute(const char *folder, const char *name)
{
	struct buf whole = {0};

	if (*name != '/' && (*folder != '/' || strlen(folder) + strlen(name) > JOB_NAME_MAX))
		return xstrdup(name);
	if (*name != '/')
		job_walk(&whole, folder);
	job_walk(&whole, name);
	if (!whole.len)
		buf_putc(&whole, '/');
	return buf_take(&whole);
}

static struct description *description_of(struct reading *r, uint32_t ring, uint64_t serial)
{
	for (int depth = 0; depth < DEPTH_MAX; depth++) {
		uint32_t i;

		if (serial < r->files.ring[ring].head.first_serial && r->ring[ring].parent >= 0) {
			ring = (uint32_t)r->ring[ring].parent;
			continue;
		}
		i = map_get2(&r->serials, ring, (int64_t)serial);
		return i == JOB_NONE ? NULL : &r->description[i];
	}
	return NULL;
}

static enum job_file_kind kind_of(uint64_t kind)
{
	switch (kind) {
	case RING_FOLDER:
		return JOB_FILE_FOLDER;
	case RING_PIPE:
		return JOB_FILE_PIPE;
	case RING_SOCKETS:
		return JOB_FILE_SOCKET;
	case RING_MEMORY:
		return JOB_FILE_MEMORY;
	case RING_OTHER:
		return JOB_FILE_OTHER;
	default:
		return JOB_FILE_REGULAR;
	}
}

static uint32_t file_named(struct reading *r, uint32_t ring, uint64_t base, const char *name,
			   uint64_t kind)
{
	const char *folder = r->ring[ring].cwd ? r->ring[ring].cwd : "";
	enum job_file_kind k = kind_of(kind);
	size_t files = r->job->files;
	char *whole;
	uint32_t i;

	if (base) {
		const struct description *d = description_of(r, ring, base - 1);

		folder = d ? r->job->file[d->file].name : "";
	}
	if (k == JOB_FILE_MEMORY && strncmp(name, "/dev/shm/", 9) != 0 && *name == '/' &&
	    !r->facts.anonymous && strncmp(name, "/memfd:", 7) != 0)
		folder = "/dev/shm", name++;
	whole = absolute(folder, name);
	if (k == JOB_FILE_REGULAR && texts_find(&r->made_in_memory, whole) != TEXT_NONE)
		k = JOB_FILE_MEMORY;
	i = job_file(r->job, whole, k);
	if (i == files)
		r->name_bytes += strlen(whole);
	free(whole);
	/* front coding makes much text of few bytes */
	if (r->name_bytes > r->names_most && r->rc == 0)
		r->rc = err_set(r->e, -EFBIG,
				"the recording is damaged: its names have more than %llu bytes, "
				"and its requests %llu",
				(unsigned long long)r->names_most,
				(unsigned long long)r->files.event_bytes);
	return i;
}

static uint32_t file_numbered(struct reading *r, uint64_t kind, uint64_t inode)
{
	char name[48];

	snprintf(name, sizeof(name), "%s:[%" PRIu64 "]", kind == RING_PIPE ? "pipe" : "socket",
		 inode);
	return job_file(r->job, name, kind_of(kind));
}

static void describe(struct reading *r, uint32_t ring, uint64_t serial, struct description d)
{
	if (r->descriptions >= JOB_NONE - 1)
		return;
	d.connection = JOB_NONE;
	d.holders = 1;
	map_put2(&r->serials, ring, (int64_t)serial, (uint32_t)r->descriptions);
	VECTOR_PUSH(r->description, r->descriptions, r->room, d);
}

static int64_t *size_of(struct reading *r, uint32_t file)
{
	while (file >= r->files_known)
		VECTOR_ADD(r->file, r->files_known, r->file_room)->size = JOB_UNKNOWN;
	return &r->file[file].size;
}

static void saw_size(struct reading *r, uint32_t file, int64_t size)
{
	*size_of(r, file) = size;
	if (r->job->file[file].kind == JOB_FILE_REGULAR && size > r->job->file[file].size)
		r->job->file[file].size = size;
}

/* ---- events ---- */

static void add(struct reading *r)
{
	r->facts.events++;
	if (r->events && r->rc == 0)
		r->rc = job_add(r->job, &r->event, r->e);
}

static uint32_t thread_of(struct reading *r, uint32_t process, int64_t tid)
{
	uint32_t i = map_get2(&r->threads, process, tid);

	if (i == JOB_NONE) {
		i = job_add_thread(r->job, process, tid);
		map_put2(&r->threads, process, tid, i);
	}
	return i;
}

static struct job_event *event(struct reading *r, const struct ring_event *v,
			       enum job_event_kind kind, int64_t result)
{
	r->event = job_event_of(kind, thread_of(r, r->process[v->ring], v->tid), v->begin_ns,
				v->end_ns);
	r->event.result = result;
	return &r->event;
}

static struct job_event *event_on(struct reading *r, const struct ring_event *v,
				  enum job_event_kind kind, int64_t result)
{
	const struct description *d = description_of(r, v->ring, v->serial);
	struct job_event *j = event(r, v, kind, result);

	if (d) {
		j->file = d->file;
		j->descriptor = d->fd;
	}
	return j;
}

/* Bytes that move at a position; where they lie. */
static int64_t move(struct reading *r, struct description *d, int64_t n, bool write)
{
	int64_t at = d->position;

	if (d->kind != RING_REGULAR && d->kind != RING_MEMORY)
		return JOB_UNKNOWN;
	if (write && d->append)
		at = *size_of(r, d->file);
	if (n < 0)
		return at;
	if (at == JOB_UNKNOWN || __builtin_add_overflow(at, n, &d->position)) {
		d->position = JOB_UNKNOWN;
		return at;
	}
	if (write && d->position > *size_of(r, d->file))
		*size_of(r, d->file) = d->position;
	return at;
}

/* Bytes of a socket that leads to a server. */
static void moved_to_server(struct reading *r, const struct description *d, bool sent,
			    const struct ring_event *v)
{
	if (d && d->connection != JOB_NONE && v->result >= 0)
		connection_moved(&r->connections, d->connection, sent, v->result, v->end_ns);
}

static void transfer(struct reading *r, const struct ring_event *v)
{
	bool at = v->kind == RING_PREAD || v->kind == RING_PWRITE || v->kind == RING_AIO_READ ||
		  v->kind == RING_AIO_WRITE;
	bool write = v->kind == RING_WRITE || v->kind == RING_PWRITE ||
		     v->kind == RING_STDIO_WRITE || v->kind == RING_SEND ||
		     v->kind == RING_AIO_WRITE;
	struct description *d = description_of(r, v->ring, v->serial);
	struct job_event *j = event_on(r, v, write ? JOB_WRITE : JOB_READ, v->result);
	int64_t end;

	j->asked = v->asked;
	if (v->kind == RING_RECEIVE || v->kind == RING_SEND)
		r->facts.message_bytes += v->result > 0 ? (uint64_t)v->result : 0;
	/* asked for no bytes, none is not the end */
	if (write || v->asked > 0)
		moved_to_server(r, d, write, v);
	if (at)
		j->offset = v->offset;
	else if (d)
		j->offset = move(r, d, v->result, write);
	if (at && write && d && v->result > 0 &&
	    !__builtin_add_overflow(v->offset, v->result, &end) && end > *size_of(r, d->file))
		*size_of(r, d->file) = end;
	add(r);
}

static void copied(struct reading *r, const struct ring_event *v)
{
	/* one call is a read of one file and a write of another */
	for (int write = 0; write < 2; write++) {
		uint64_t serial = write ? (uint64_t)v->v[0] : v->serial;
		struct description *d = description_of(r, v->ring, serial);
		struct job_event *j = event(r, v, write ? JOB_WRITE : JOB_READ, v->result);
		int64_t at = v->v[1 + write];

		j->asked = v->asked;
		if (write || v->asked > 0)
			moved_to_server(r, d, write, v);
		if (d) {
			j->file = d->file;
			j->descriptor = d->fd;
			if (at >= 0 && at != d->position)
				d->position = at;
			j->offset = move(r, d, v->result, write);
		}
		add(r);
	}
}

static void opened(struct reading *r, const struct ring_event *v)
{
	int64_t flags = v->v[1], fd = v->v[2], size = v->v[5];
	uint64_t kind = (uint64_t)v->v[4];
	uint32_t file;
	struct job_event *j;

	file = file_named(r, v->ring, (uint64_t)v->v[0], v->name[0],
			  flags & O_DIRECTORY                                    ? RING_FOLDER
			  : kind == RING_MEMORY && fd >= 0 && !(flags & O_CREAT) ? RING_REGULAR
										 : kind);
	if (kind == RING_MEMORY && flags & O_CREAT)
		texts_add(&r->made_in_memory, r->job->file[file].name);
	else if (kind == RING_MEMORY && r->job->file[file].kind == JOB_FILE_REGULAR)
		kind = RING_REGULAR;
	if (fd >= 0) {
		describe(r, v->ring, (uint64_t)v->v[3],
			 (struct description){.file = file,
					      .fd = (uint32_t)fd,
					      .kind = (uint8_t)kind,
					      .append = flags & O_APPEND});
		if (kind == RING_REGULAR) {
			saw_size(r, file, size);
			r->facts.files += !r->file[file].opened;
			r->file[file].opened = true;
		}
		if (flags & O_CREAT)
			r->job->file[file].deleted = false;
	}
	j = event(r, v, JOB_OPEN, fd);
	j->file = file;
	j->flags = (uint32_t)flags;
	j->descriptor = fd >= 0 ? (uint32_t)fd : JOB_NONE;
	j->asked = fd >= 0 && kind == RING_REGULAR && size >= 0 ? size : JOB_UNKNOWN;
	add(r);
}

static void found(struct reading *r, const struct ring_event *v)
{
	uint64_t kind = (uint64_t)v->v[3];
	uint32_t file;

	if (kind == RING_PIPE || kind == RING_SOCKETS) {
		file = file_numbered(r, kind, (uint64_t)v->v[5]);
	} else {
		bool deleted = v->v[4] & RING_DELETED;

		file = file_named(r, v->ring, 0, v->name[0],
				  kind == RING_MEMORY && !deleted && v->name[0][0] == '/' &&
						  strncmp(v->name[0], "/memfd:", 7) != 0
					  ? RING_REGULAR
					  : kind);
		if (deleted)
			r->job->file[file].deleted = true;
		if (kind == RING_MEMORY && r->job->file[file].kind == JOB_FILE_REGULAR)
			kind = RING_REGULAR;
	}
	if (kind == RING_REGULAR)
		saw_size(r, file, v->v[2]);
	describe(r, v->ring, v->serial,
		 (struct description){.file = file,
				      .position = v->v[1] >= 0 ? v->v[1] : JOB_UNKNOWN,
				      .fd = (uint32_t)v->v[0],
				      .kind = (uint8_t)kind,
				      .append = v->v[4] & O_APPEND});
}

static void paired(struct reading *r, const struct ring_event *v)
{
	uint64_t kind = (uint64_t)v->v[0];

	for (int i = 0; i < 2; i++) {
		const int64_t *end = &v->v[1 + 3 * i];
		uint32_t file = file_numbered(r, kind, (uint64_t)end[2]);
		struct job_event *j;

		describe(r, v->ring, (uint64_t)end[1],
			 (struct description){.file = file,
					      .position = JOB_UNKNOWN,
					      .fd = (uint32_t)end[0],
					      .kind = (uint8_t)kind});
		j = event(r, v, JOB_OPEN, end[0]);
		j->file = file;
		j->flags = i ? O_WRONLY : O_RDONLY;
		j->descriptor = (uint32_t)end[0];
		add(r);
	}
}

static void mapped(struct reading *r, const struct ring_event *v)
{
	struct job_event *j = event_on(r, v, JOB_MAP, v->v[0] < 0 && v->v[0] > -4096 ? v->v[0] : 0);

	j->asked = v->v[1];
	j->offset = v->v[2];
	j->flags = (uint32_t)v->v[4];
	if (j->file != JOB_NONE && j->result == 0 &&
	    r->job->file[j->file].kind == JOB_FILE_REGULAR && v->v[1] > 0) {
		VECTOR_PUSH(r->mapping, r->mappings, r->mapping_room,
			    {v->ring, j->file, v->v[0], v->v[1], v->v[5]});
		r->facts.mapped_files++;
		r->facts.mapped_bytes += (uint64_t)v->v[1];
	}
	add(r);
}

static void unmapped(struct reading *r, const struct ring_event *v)
{
	struct job_event *j = event(r, v, JOB_UNMAP, 0);

	j->asked = v->v[1];
	for (size_t i = r->mappings, n = 0; i-- > 0 && n < MAPPINGS_MOST; n++) {
		struct mapping *m = &r->mapping[i];

		if (m->ring != v->ring || m->at != v->v[0])
			continue;
		j->file = m->file;
		if (m->there >= 0 && v->v[2] > m->there) {
			j->result = v->v[2] - m->there;
			r->facts.mapped_came += (uint64_t)j->result;
		}
		*m = r->mapping[--r->mappings];
		break;
	}
	add(r);
}

static uint32_t process_by_pid(struct reading *r, uint32_t ring, int64_t pid)
{
	uint32_t k = map_get2(&r->pids, pid, (int64_t)r->files.ring[ring].head.host);

	return pid > 0 && k != JOB_NONE ? r->process[k] : JOB_NONE;
}

static void moved(struct reading *r, const struct ring_event *v)
{
	struct ring_state *s = &r->ring[v->ring];
	char *to = absolute(s->cwd ? s->cwd : "", v->name[0]);

	if (v->v[1] >= 0 && *to == '/') {
		free(s->cwd);
		s->cwd = to;
	} else {
		free(to);
	}
}

static void add_library(struct job *job, struct job_process *p, const char *part)
{
	struct buf all = {0};

	buf_printf(&all, "%s %s", p->libraries, part);
	p->libraries = job_text(job, all.data);
	buf_release(&all);
}

static void fact(struct reading *r, const struct ring_event *v)
{
	struct ring_state *s = &r->ring[v->ring];
	struct job_process *p = &r->job->process[r->process[v->ring]];
	uint32_t i;

	switch (v->v[0]) {
	case RING_COMMAND:
		p->command = job_text(r->job, v->name[0]);
		break;
	case RING_LIBRARY:
		add_library(r->job, p, v->name[0]);
		break;
	case RING_HOST:
		p->host = job_text(r->job, v->name[0]);
		break;
	case RING_CWD:
		free(s->cwd);
		s->cwd = xstrdup(v->name[0]);
		break;
	case RING_NAME:
		i = thread_of(r, r->process[v->ring], v->tid);
		r->job->thread[i].name = job_text(r->job, v->name[0]);
		break;
	default:
		break;
	}
}

static void executed(struct reading *r, const struct ring_event *v)
{
	struct job_event *j = event(r, v, JOB_EXEC, 0);
	uint64_t image = (uint64_t)v->v[2];

	j->file = file_named(r, v->ring, (uint64_t)v->v[1], v->name[0], RING_REGULAR);
	j->other = process_by_pid(r, v->ring, v->v[0]);
	if (v->v[0] == r->files.ring[v->ring].head.pid)
		r->ring[v->ring].executed = true;
	if (recording_image_why(image)) {
		char text[512];

		snprintf(text, sizeof(text), "%.400s is %s", r->job->file[j->file].name,
			 recording_image_why(image));
		texts_add(&r->facts.unrecorded, text);
	}
	add(r);
}

static void statted(struct reading *r, const struct ring_event *v)
{
	struct job_event *j = event(r, v, JOB_STAT, v->v[1]);
	uint64_t kind = (uint64_t)v->v[2];

	j->file = file_named(r, v->ring, (uint64_t)v->v[0], v->name[0], kind);
	if (v->v[1] >= 0 && kind == RING_REGULAR)
		saw_size(r, j->file, v->v[1]);
	add(r);
}

static void positioned(struct reading *r, const struct ring_event *v)
{
	struct description *d = description_of(r, v->ring, v->serial);

	if (d)
		d->position = v->v[0];
}

/* What an event of a recording means. */
static const struct meaning {
	void (*add)(struct reading *r, const struct ring_event *v);
	/* of one_event: what it becomes, about what, and which number is its result */
	uint8_t kind, result;
	enum about { NOTHING, DESCRIPTOR, NAME } about;
} meanings[RING_KINDS];

static void one_event(struct reading *r, const struct ring_event *v)
{
	const struct meaning *m = &meanings[v->kind];
	struct job_event *j = m->about == DESCRIPTOR ? event_on(r, v, m->kind, v->v[m->result])
						     : event(r, v, m->kind, v->v[m->result]);

	if (m->about == NAME)
		j->file = file_named(r, v->ring, (uint64_t)v->v[0], v->name[0],
				     m->kind == JOB_MAKE_DIR ? RING_FOLDER : RING_REGULAR);
	switch (v->kind) {
	case RING_SEEK:
		if (v->v[0] >= 0) {
			positioned(r, v);
			j->offset = v->v[0];
		}
		j->flags = (uint32_t)v->v[2];
		break;
	case RING_FSTAT:
		if (j->file != JOB_NONE && v->v[0] >= 0)
			saw_size(r, j->file, v->v[0]);
		break;
	case RING_RENAME:
	case RING_LINK:
		j->other = file_named(r, v->ring, (uint64_t)v->v[1], v->name[1], RING_REGULAR);
		break;
	case RING_UNLINK:
		if (v->v[1] >= 0)
			r->job->file[j->file].deleted = true;
		break;
	case RING_TRUNCATE:
	case RING_FTRUNCATE:
		j->asked = v->v[m->result - 1];
		if (j->file != JOB_NONE)
			*size_of(r, j->file) = j->asked;
		break;
	case RING_EXIT:
		r->job->process[r->process[v->ring]].exit = v->v[0];
		break;
	case RING_FORK:
	case RING_WAIT:
		j->other = process_by_pid(r, v->ring, v->v[0]);
		if (v->kind == RING_WAIT && j->other != JOB_NONE && v->v[0] > 0)
			r->job->process[j->other].exit = v->v[1];
		break;
	case RING_BLOCK:
		j->flags = (uint32_t)v->v[0];
		break;
	case RING_ADVISE:
		j->result = 0;
		j->offset = v->v[0];
		j->asked = v->v[1];
		j->flags = (uint32_t)v->v[2];
		break;
	default:
		break;
	}
	add(r);
}

/* Advice on memory is of interest where a file is mapped there. */
static void advised_memory(struct reading *r, const struct ring_event *v)
{
	struct job_event *j = event(r, v, JOB_ADVISE, 0);

	j->asked = v->v[1];
	j->flags = (uint32_t)v->v[2];
	for (size_t i = r->mappings, n = 0; i-- > 0 && j->file == JOB_NONE && n < MAPPINGS_MOST;
	     n++) {
		const struct mapping *m = &r->mapping[i];

		if (m->ring == v->ring && v->v[0] >= m->at &&
		    (uint64_t)v->v[0] - (uint64_t)m->at < (uint64_t)m->bytes)
			j->file = m->file;
	}
	if (j->file != JOB_NONE)
		add(r);
}

static void exec_failed(struct reading *r, const struct ring_event *v)
{
	r->ring[v->ring].executed = false;
}

static void socket_made(struct reading *r, const struct ring_event *v)
{
	describe(r, v->ring, (uint64_t)v->v[1],
		 (struct description){.file = file_numbered(r, RING_SOCKETS, (uint64_t)v->v[2]),
				      .position = JOB_UNKNOWN,
				      .fd = (uint32_t)v->v[0],
				      .kind = RING_SOCKETS});
}

/* ---- servers ---- */

static void closed(struct reading *r, const struct ring_event *v)
{
	struct description *d = description_of(r, v->ring, v->serial);

	/* copies that other processes have do not count */
	if (d && v->serial >= r->files.ring[v->ring].head.first_serial && d->holders > 0 &&
	    --d->holders == 0)
		connection_closed(&r->connections, d->connection, v->begin_ns);
	(void)event_on(r, v, JOB_CLOSE, v->v[0]);
	add(r);
}

static void duplicated(struct reading *r, const struct ring_event *v)
{
	struct description *d = description_of(r, v->ring, v->serial);

	if (d && v->serial >= r->files.ring[v->ring].head.first_serial)
		d->holders++;
}

static void led_to_server(struct reading *r, const struct ring_event *v)
{
	struct description *d = description_of(r, v->ring, v->serial);
	char peer[256];

	if (!d || d->kind != RING_SOCKETS || !(v->v[1] & RING_PEER_STREAM))
		return;
	connection_closed(&r->connections, d->connection, v->begin_ns);
	connection_peer(v->name[0], (unsigned)(v->v[0] & 0xffff), peer, sizeof(peer));
	d->connection = connection_made(&r->connections, r->process[v->ring], peer,
					v->v[1] & RING_PEER_LOCAL, v->begin_ns);
}

static uint32_t connection_of(struct reading *r, const struct ring_event *v)
{
	const struct description *d = description_of(r, v->ring, v->serial);

	return d ? d->connection : JOB_NONE;
}

static void spoke(struct reading *r, const struct ring_event *v)
{
	uint32_t i = connection_of(r, v);

	switch (v->v[0]) {
	case RING_SPEAKS_TLS:
		connection_speaks(&r->connections, i, JOB_SPEAKS_TLS);
		connection_host(&r->connections, i, v->name[0]);
		break;
	case RING_SPEAKS_HTTP2:
		connection_speaks(&r->connections, i, JOB_SPEAKS_HTTP2);
		break;
	case RING_SPEAKS_HOST:
		connection_host(&r->connections, i, v->name[0]);
		break;
	case RING_SPEAKS_AGENT:
		connection_agent(&r->connections, i, v->name[0]);
		break;
	default:
		break;
	}
}

/* What both kinds of heads have: number and flags, bytes, a range. */
static struct heard head_of(const struct ring_event *v)
{
	uint64_t what = (uint64_t)v->v[0];

	return (struct heard){
		.method = (unsigned)(what & 0xffff),
		.status = (unsigned)(what & 0xffff),
		.flags = (unsigned)(what >> RING_HTTP_FLAGS),
		.bytes = (uint64_t)v->v[1] < HEARD_HEAD_MOST ? (size_t)v->v[1] : HEARD_HEAD_MOST,
		.first = v->v[2],
		.last = v->v[3],
		.whole = -1,
		.length = v->v[4],
	};
}

static void requested(struct reading *r, const struct ring_event *v)
{
	struct heard h = head_of(v);

	h.target = (struct heard_text){v->name[0], strlen(v->name[0])};
	connection_request(&r->connections, connection_of(r, v),
			   thread_of(r, r->process[v->ring], v->tid), &h, v->begin_ns);
}

static void answered(struct reading *r, const struct ring_event *v)
{
	struct heard h = head_of(v);

	h.whole = v->v[4];
	h.length = v->v[5];
	if (h.status < 1000)
		connection_answer(&r->connections, connection_of(r, v), &h, v->end_ns);
}

static const struct meaning meanings[RING_KINDS] = {
	[RING_FACT] = {.add = fact},
	[RING_OPEN] = {.add = opened},
	[RING_CLOSE] = {.add = closed},
	[RING_DUP] = {.add = duplicated},
	[RING_FOUND] = {.add = found},
	[RING_POSITION] = {.add = positioned},
	[RING_READ... RING_SEND] = {.add = transfer},
	[RING_SEEK] = {one_event, JOB_SEEK, 0, DESCRIPTOR},
	[RING_STAT] = {.add = statted},
	[RING_FSTAT] = {one_event, JOB_STAT, 0, DESCRIPTOR},
	[RING_ACCESS] = {one_event, JOB_ACCESS, 1, NAME},
	[RING_LIST] = {one_event, JOB_LIST, 0, DESCRIPTOR},
	[RING_MAP] = {.add = mapped},
	[RING_UNMAP] = {.add = unmapped},
	[RING_ADVISE] = {one_event, JOB_ADVISE, 0, DESCRIPTOR},
	[RING_MADVISE] = {.add = advised_memory},
	[RING_SYNC] = {one_event, JOB_SYNC, 0, DESCRIPTOR},
	[RING_RENAME] = {one_event, JOB_RENAME, 2, NAME},
	[RING_UNLINK] = {one_event, JOB_UNLINK, 1, NAME},
	[RING_MKDIR] = {one_event, JOB_MAKE_DIR, 1, NAME},
	[RING_TRUNCATE] = {one_event, JOB_TRUNCATE, 2, NAME},
	[RING_FTRUNCATE] = {one_event, JOB_TRUNCATE, 1, DESCRIPTOR},
	[RING_CHDIR] = {.add = moved},
	[RING_FORK] = {one_event, JOB_FORK, 0, NOTHING},
	[RING_EXEC] = {.add = executed},
	[RING_EXEC_FAILED] = {.add = exec_failed},
	[RING_EXIT] = {one_event, JOB_EXIT, 0, NOTHING},
	[RING_WAIT] = {one_event, JOB_WAIT, 0, NOTHING},
	[RING_BLOCK] = {one_event, JOB_WAIT, 1, NOTHING},
	[RING_PAIR] = {.add = paired},
	[RING_SOCKET] = {.add = socket_made},
	[RING_COPY] = {.add = copied},
	[RING_AIO_READ... RING_AIO_WRITE] = {.add = transfer},
	[RING_LINK] = {one_event, JOB_LINK, 2, NAME},
	[RING_PEER] = {.add = led_to_server},
	[RING_SPEAKS] = {.add = spoke},
	[RING_REQUEST] = {.add = requested},
	[RING_ANSWER] = {.add = answered},
};

/* ---- processes ---- */

static int64_t parent_ring(struct reading *r, size_t i)
{
	const struct ring_head *h = &r->files.ring[i].head;
	uint32_t k = h->parent ? map_get(&r->ring_ids, (int64_t)h->parent) : JOB_NONE;

	/* a ring cannot be its own ancestor: parents begin earlier */
	return k != JOB_NONE && k < i ? (int64_t)k : -1;
}

/* The ring before in the same process, which became another program. */
static int64_t image_before(struct reading *r, size_t i)
{
	const struct ring_head *h = &r->files.ring[i].head;
	uint32_t k = map_get2(&r->pids, h->pid, (int64_t)h->host);

	if (k == JOB_NONE || h->parent)
		return -1;
	return r->files.ring[k].head.end_ns && r->files.ring[k].head.end_ns <= h->start_ns &&
			       r->files.ring[k].head.host == h->host
		       ? (int64_t)k
		       : -1;
}

static uint32_t parent_process(struct reading *r, size_t i)
{
	const struct ring_head *h = &r->files.ring[i].head;
	uint32_t k;

	if (r->ring[i].parent >= 0)
		return r->process[r->ring[i].parent];
	k = map_get2(&r->pids, h->ppid, (int64_t)h->host);
	return k == JOB_NONE ? JOB_NONE : r->process[k];
}

static void make_processes(struct reading *r)
{
	r->ring = xcalloc(r->files.rings + 1, sizeof(*r->ring));
	r->process = xcalloc(r->files.rings + 1, sizeof(*r->process));
	for (size_t i = 0; i < r->files.rings; i++)
		map_put(&r->ring_ids, (int64_t)r->files.ring[i].head.id, (uint32_t)i);
	for (size_t i = 0; i < r->files.rings; i++) {
		const struct ring_info *info = &r->files.ring[i];
		const struct ring_head *h = &info->head;
		struct job_process *p;
		int64_t before;

		r->ring[i].parent = parent_ring(r, i);
		before = image_before(r, i);
		if (before >= 0) {
			r->process[i] = r->process[before];
			r->ring[i].continued = true;
			r->ring[before].ended = true;
		} else {
			r->process[i] = job_process(r->job, h->pid, "", parent_process(r, i));
			r->job->process[r->process[i]].begin_ns = h->start_ns + info->shift_ns;
		}
		p = &r->job->process[r->process[i]];
		p->rank = h->ranked ? h->rank : -1;
		/* behind a filter of calls nothing can be counted */
		p->complete = h->last.known || (h->filtered && h->end_ns);
		p->end_ns = h->end_ns ? h->end_ns + info->shift_ns : JOB_UNKNOWN;
		if (r->ring[i].parent >= 0 && r->ring[r->ring[i].parent].cwd)
			r->ring[i].cwd = xstrdup(r->ring[r->ring[i].parent].cwd);
		map_put2(&r->pids, h->pid, (int64_t)h->host, (uint32_t)i);
		r->facts.anonymous |= h->anonymous != 0;
		r->facts.full |= h->full != 0;
		r->facts.lost += h->lost;
		r->facts.cut_off += info->counts.cut_off;
		r->facts.lost_bytes += h->lost_rchar + h->lost_wchar;
		r->facts.uring += h->uring != 0;
		r->facts.filtered += h->filtered != 0;
		r->facts.filtered_children += h->filtered_children;
		r->facts.limit = h->limit;
	}
}

int recording_read(struct job *job, const char *folder, bool events, struct recording_facts *facts,
		   struct err *e)
{
	struct reading r = {.job = job, .events = events, .e = e};
	struct ring_event v;

	r.rc = ring_files_open(&r.files, folder, e);
	if (r.rc == 0) {
		make_processes(&r);
		r.facts.folder_bytes = r.files.bytes;
		r.names_most = u64_sum(RECORDING_NAMES_BYTES,
				       u64_product(RECORDING_NAMES_TIMES, r.files.event_bytes));
		connections_init(&r.connections, job, events, e);
		r.connections.names_most = r.names_most;
		while (r.rc == 0 && r.connections.rc == 0 && ring_files_next(&r.files, &v))
			if (meanings[v.kind].add)
				meanings[v.kind].add(&r, &v);
		if (connections_finish(&r.connections, &r.facts.requests) < 0 && r.rc == 0)
			r.rc = e->code;
		r.facts.connections = job->connections;
		r.facts.processes = job->processes;
		r.facts.damaged = r.files.damaged + r.files.unread;
		r.facts.harmed = r.files.harmed;
		r.files.harmed = (struct texts){0};
		r.facts.cut = r.files.cut;
		if (r.files.begun > r.files.found)
			r.facts.missing = r.files.begun - r.files.found;
		recording_ends(job, &r.files, r.process, &r.facts);
		job->start_s = r.files.start_s;
		job->source = "a recording of stoker";
		job->sees |= JOB_SEES_REQUESTS | JOB_SEES_TIMES | JOB_SEES_OFFSETS |
			     JOB_SEES_OPENS | JOB_SEES_METADATA | JOB_SEES_PIPES |
			     JOB_SEES_PROCESSES | JOB_SEES_MAPPINGS | JOB_SEES_ASKED |
			     JOB_SEES_SIZES;
	}
	for (size_t i = 0; r.ring && i < r.files.rings; i++)
		free(r.ring[i].cwd);
	free(r.ring);
	free(r.process);
	map_release(&r.serials);
	map_release(&r.threads);
	map_release(&r.ring_ids);
	map_release(&r.pids);
	texts_release(&r.made_in_memory);
	free(r.description);
	free(r.mapping);
	free(r.file);
	ring_files_close(&r.files);
	if (r.rc == 0 && facts)
		*facts = r.facts;
	else
		recording_facts_release(&r.facts);
	return r.rc;
}

int recording_summary(const char *folder, struct recording_facts *facts, struct err *e)
{
	struct job job;
	int rc;

	job_init(&job);
	rc = recording_read(&job, folder, false, facts, e);
	job_release(&job);
	return rc;
}

void recording_facts_release(struct recording_facts *f)
{
	texts_release(&f->unrecorded);
	texts_release(&f->harmed);
}

/* ---- the row ---- */

static bool begins(const unsigned char *head, size_t n, const char *with)
{
	return n >= strlen(with) && memcmp(head, with, strlen(with)) == 0;
}

/* Also single files of a recording, which read_folders refuses with what to name instead. */
static bool recognize(const char *path, bool folder, const unsigned char *head, size_t n)
{
	return folder ? ring_folder(path)
		      : begins(head, n, "STKRING") || begins(head, n, "STKEND") ||
				begins(head, n, RING_JOB_MAGIC) ||
				begins(head, n, RING_JOB_MAGIC_WITHOUT_HTTP) ||
				begins(head, n, RING_JOB_MAGIC_UNCHECKED);
}

static int read_folders(struct job *job, const char *const *paths, size_t n, struct err *e)
{
	struct recording_facts facts;
	int rc = 0;

	for (size_t i = 0; i < n; i++)
		if (!ring_folder(paths[i])) {
			AUTO_FREE char *folder = path_dirname(paths[i]);

			return err_set(e, ERR_USAGE,
				       "%s is one file of a recording, which is read as a whole: "
				       "name its folder, %s",
				       paths[i], folder);
		}
	if (n > 1)
		return err_set(e, ERR_USAGE, "%s and %s are two recordings: each folder is one job",
			       paths[0], paths[1]);
	if (ring_folder_check(paths[0], &job->processors, e) < 0)
		return e->code;
	if (recording_read(job, paths[0], true, &facts, e) < 0)
		return e->code;
	/* not a job that did nothing */
	if (job->events == 0 && (facts.damaged || facts.missing || facts.cut))
		rc = err_set(e, ERR_DATA, "%s: no request of the recording can be read: %s",
			     paths[0],
			     facts.harmed.n  ? facts.harmed.v[0]
			     : facts.damaged ? "all of it is damaged"
			     : facts.missing ? "the files of its processes were removed"
					     : "its files were cut while they were written");
	recording_facts_release(&facts);
	return rc;
}

const struct trace_reader trace_reader_recording = {
	.name = "recording",
	.people = "the folder of 'stoker record'",
	.recognize = recognize,
	.read = read_folders,
};
