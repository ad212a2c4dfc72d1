/* Calls become events; descriptors become files and offsets on the way. */
#include "trace/call_log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/compare.h"

void call_log_init(struct call_log *l, struct job *job, struct err *e)
{
	*l = (struct call_log){.job = job, .e = e, .descriptors = descriptors_new()};
}

void call_log_release(struct call_log *l)
{
	descriptors_free(l->descriptors);
	map_release(&l->mapped);
	*l = (struct call_log){0};
}

static void least(int64_t *base, int64_t t)
{
	if (t != JOB_UNKNOWN && (*base == JOB_UNKNOWN || t < *base))
		*base = t;
}

static void since(int64_t *t, int64_t base)
{
	if (*t != JOB_UNKNOWN && __builtin_sub_overflow(*t, base, t))
		*t = JOB_UNKNOWN;
}

int64_t call_log_finish(struct call_log *l)
{
	struct job *job = l->job;
	int64_t base = JOB_UNKNOWN;

	for (size_t i = 0; i < job->events; i++)
		least(&base, job->event[i].begin_ns);
	for (size_t i = 0; i < job->processes; i++)
		least(&base, job->process[i].begin_ns);
	if (base != JOB_UNKNOWN) {
		for (size_t i = 0; i < job->events; i++) {
			since(&job->event[i].begin_ns, base);
			since(&job->event[i].end_ns, base);
		}
		for (size_t i = 0; i < job->processes; i++) {
			since(&job->process[i].begin_ns, base);
			since(&job->process[i].end_ns, base);
		}
		for (size_t i = 0; i < job->connections; i++) {
			since(&job->connection[i].begin_ns, base);
			since(&job->connection[i].end_ns, base);
		}
		for (size_t i = 0; i < job->exchanges; i++) {
			since(&job->exchange[i].begin_ns, base);
			since(&job->exchange[i].first_ns, base);
			since(&job->exchange[i].last_ns, base);
		}
	}
	if (descriptors_lost(l->descriptors))
		job_note(job,
			 "more descriptors are open at a time than are kept: the files of some "
			 "requests are unknown");
	if (job->files >= CALL_FILES_MAX)
		job_note(job, "the log names more than %u files: the rest is one file here",
			 CALL_FILES_MAX);
	job->sees |= l->seen;
	return base;
}

/* ---- who calls ---- */

bool caller_begin(struct call_log *l, struct caller *c, const struct caller *parent, unsigned flags,
		  int64_t pid, const char *host)
{
	*c = (struct caller){.cwd = parent ? parent->cwd : ""};
	if (l->callers >= CALLERS_MAX || l->job->processes >= CALLERS_MAX ||
	    l->job->threads >= 4 * (size_t)CALLERS_MAX) {
		if (!l->failed)
			err_set(l->e, -EFBIG, "the log has more than %u threads", CALLERS_MAX);
		l->failed = true;
		return false;
	}
	l->callers++;
	if (parent && flags & CALLER_THREAD)
		c->process = parent->process;
	else
		c->process = job_process(l->job, pid, host, parent ? parent->process : JOB_NONE);
	c->thread = job_add_thread(l->job, c->process, pid);
	if (parent && flags & CALLER_FILES)
		c->table = descriptors_share(l->descriptors, parent->table);
	else if (parent)
		c->table = descriptors_fork(l->descriptors, parent->table);
	else
		c->table = descriptors_table(l->descriptors);
	return true;
}

void caller_end(struct call_log *l, struct caller *c)
{
	descriptors_drop(l->descriptors, c->table);
	l->callers--;
}

/* ---- files ---- */

static bool starts(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

static enum job_file_kind kind_of(const char *name, bool folder)
{
	if (starts(name, "pipe:"))
		return JOB_FILE_PIPE;
	if (starts(name, "socket:") || starts(name, "TCP") || starts(name, "UDP") ||
	    starts(name, "UNIX") || starts(name, "NETLINK"))
		return JOB_FILE_SOCKET;
	if (starts(name, "/dev/shm/") || starts(name, "/memfd:"))
		return JOB_FILE_MEMORY;
	if (folder)
		return JOB_FILE_FOLDER;
	if (starts(name, "anon_inode:") || starts(name, "/dev/") || starts(name, "net:") ||
	    starts(name, "mnt:"))
		return JOB_FILE_OTHER;
	return JOB_FILE_REGULAR;
}

uint32_t call_named(struct call_log *l, const char *name, bool folder)
{
	if (l->job->files >= CALL_FILES_MAX - 1)
		return job_file(l->job, "(a file beyond the number that is kept)", JOB_FILE_OTHER);
	return job_file(l->job, name, kind_of(name, folder));
}

uint32_t call_path(struct call_log *l, const struct caller *c, int64_t dir, const char *path,
		   bool folder)
{
	const char *base = "";
	struct buf name = {0};
	uint32_t file;

	if (path[0] != '/' && dir == CALL_CWD) {
		base = c->cwd;
	} else if (path[0] != '/') {
		file = call_file_of(l, c, dir);
		base = file == JOB_NONE ? "" : l->job->file[file].name;
	}
	/* where it is cannot be known, or a log whose names grow with each line */
	if (path[0] != '/' && (base[0] != '/' || strlen(base) + strlen(path) > JOB_NAME_MAX))
		return call_named(l, path, folder);
	job_walk(&name, base);
	job_walk(&name, path);
	file = call_named(l, name.len ? name.data : "/", folder || !name.len);
	buf_release(&name);
	return file;
}

bool call_is_stream(const struct call_log *l, uint32_t file)
{
	enum job_file_kind kind = l->job->file[file].kind;

	return kind == JOB_FILE_PIPE || kind == JOB_FILE_SOCKET ||
	       (kind == JOB_FILE_OTHER && starts(l->job->file[file].name, "anon_inode:"));
}

uint32_t call_file_of(const struct call_log *l, const struct caller *c, int64_t fd)
{
	return descriptors_file(l->descriptors, c->table, fd);
}

uint32_t call_stream(struct call_log *l, enum job_file_kind kind)
{
	char name[64];

	snprintf(name, sizeof(name), "%s:[unnamed %" PRIu64 "]",
		 kind == JOB_FILE_PIPE     ? "pipe"
		 : kind == JOB_FILE_SOCKET ? "socket"
					   : "anon_inode",
		 ++l->streams);
	return call_named(l, name, false);
}

/* ---- what logs write differently ---- */

bool call_is(const char *names, const char *name, size_t n)
{
	for (size_t length; *names; names += length + (names[length] == ' ')) {
		length = strcspn(names, " ");
		if (length == n && memcmp(names, name, n) == 0)
			return true;
	}
	return false;
}

int call_mode_flags(const char *mode, size_t n)
{
	int flags = O_RDONLY;

	if (n && mode[0] == 'w')
		flags = O_WRONLY | O_CREAT | O_TRUNC;
	else if (n && mode[0] == 'a')
		flags = O_WRONLY | O_CREAT | O_APPEND;
	return n && memchr(mode, '+', n) ? (flags & ~O_ACCMODE) | O_RDWR : flags;
}

int64_t call_seek_target(const struct call_log *l, const struct caller *c, int64_t fd,
			 int64_t offset, int64_t whence)
{
	int64_t from = 0, to;

	if (whence == SEEK_CUR)
		from = descriptors_position(l->descriptors, c->table, fd);
	else if (whence != SEEK_SET)
		from = descriptors_size_of(l->descriptors, call_file_of(l, c, fd));
	if (from == JOB_UNKNOWN || __builtin_add_overflow(from, offset, &to) || to < 0)
		return JOB_UNKNOWN;
	return to;
}

/* ---- events ---- */

static struct job_event event_of(const struct call *c, enum job_event_kind kind)
{
	struct job_event v = job_event_of(kind, c->caller->thread, c->begin_ns, c->end_ns);

	v.result = c->result;
	return v;
}

static void add(struct call_log *l, const struct job_event *v)
{
	if (!l->failed && job_add(l->job, v, l->e) < 0)
		l->failed = true;
}

static uint32_t descriptor(int64_t fd)
{
	return fd >= 0 && fd <= DESCRIPTOR_MAX ? (uint32_t)fd : JOB_NONE;
}

/* The same about a file: the one that the call names, or that of the descriptor. `seen`: what the
 * log shows with it. */
static struct job_event event_on(struct call_log *l, const struct call *c, enum job_event_kind kind,
				 uint32_t file, int64_t fd, unsigned seen)
{
	struct job_event v = event_of(c, kind);

	l->seen |= seen;
	v.file = file != JOB_NONE ? file : call_file_of(l, c->caller, fd);
	v.descriptor = descriptor(fd);
	return v;
}

void call_open(struct call_log *l, const struct call *c, uint32_t file, int flags)
{
	struct job_event v = event_on(l, c, JOB_OPEN, file, c->result, JOB_SEES_OPENS);
	bool writes = (flags & O_ACCMODE) != O_RDONLY;

	v.flags = (unsigned)flags;
	add(l, &v);
	if (c->result < 0)
		return;
	if ((flags & O_TRUNC && writes) || (flags & O_CREAT && flags & O_EXCL))
		descriptors_size(l->descriptors, file, 0);
	descriptors_open(l->descriptors, c->caller->table, c->result, file, 0,
			 (flags & O_CLOEXEC ? DESCRIPTOR_CLOEXEC : 0) |
				 (flags & O_APPEND ? DESCRIPTOR_APPEND : 0) |
				 (call_is_stream(l, file) ? DESCRIPTOR_STREAM : 0));
}

void call_make(struct call_log *l, const struct call *c, int64_t fd, uint32_t file, bool cloexec)
{
	l->seen |= JOB_SEES_PIPES;
	descriptors_open(l->descriptors, c->caller->table, fd, file, JOB_UNKNOWN,
			 DESCRIPTOR_STREAM | (cloexec ? DESCRIPTOR_CLOEXEC : 0));
}

void call_close(struct call_log *l, const struct call *c, int64_t fd)
{
	struct job_event v = event_on(l, c, JOB_CLOSE, JOB_NONE, fd, 0);

	add(l, &v);
	/* close(2) releases the descriptor whatever it returns, but for EBADF */
	if (c->result != -EBADF)
		descriptors_close(l->descriptors, c->caller->table, fd);
}

void call_transfer(struct call_log *l, const struct call *c, enum job_event_kind kind, int64_t fd,
		   int64_t asked, int64_t offset)
{
	struct job_event v =
		event_on(l, c, kind, JOB_NONE, fd, JOB_SEES_REQUESTS | JOB_SEES_OFFSETS);
	bool write = kind == JOB_WRITE;

	assert(kind == JOB_READ || kind == JOB_WRITE);
	v.asked = asked;
	v.flags = l->line;
	if (asked != JOB_UNKNOWN)
		l->seen |= JOB_SEES_ASKED;
	v.offset = offset == JOB_UNKNOWN ? descriptors_transfer(l->descriptors, c->caller->table,
								fd, c->result, write)
					 : descriptors_transfer_at(l->descriptors, c->caller->table,
								   fd, offset, c->result, write);
	add(l, &v);
}

static void see_size(struct call_log *l, uint32_t file, int64_t size)
{
	if (file == JOB_NONE || size < 0)
		return;
	l->seen |= JOB_SEES_SIZES;
	descriptors_size(l->descriptors, file, size);
	if (l->job->file[file].kind != JOB_FILE_FOLDER && size > l->job->file[file].size)
		l->job->file[file].size = size;
}

void call_seek(struct call_log *l, const struct call *c, int64_t fd, int64_t offset, int whence)
{
	struct job_event v = event_on(l, c, JOB_SEEK, JOB_NONE, fd, JOB_SEES_METADATA);
	int64_t size;

	if (c->result >= 0) {
		v.offset = c->result;
		descriptors_seek(l->descriptors, c->caller->table, fd, c->result);
		if (whence == SEEK_END && !__builtin_sub_overflow(c->result, offset, &size))
			see_size(l, v.file, size);
	}
	add(l, &v);
}

void call_other(struct call_log *l, const struct call *c, enum job_event_kind kind, uint32_t file,
		int64_t fd, int64_t asked, unsigned flags)
{
	struct job_event v = event_on(l, c, kind, file, fd, JOB_SEES_METADATA);

	v.asked = asked;
	v.flags = flags;
	if (kind == JOB_UNLINK && c->result >= 0 && v.file != JOB_NONE)
		l->job->file[v.file].deleted = true;
	add(l, &v);
}

void call_stat(struct call_log *l, const struct call *c, uint32_t file, int64_t fd, int64_t size)
{
	struct job_event v = event_on(l, c, JOB_STAT, file, fd, JOB_SEES_METADATA);

	if (c->result >= 0) {
		v.result = size < 0 ? 0 : size;
		see_size(l, v.file, size);
	}
	add(l, &v);
}

void call_truncate(struct call_log *l, const struct call *c, uint32_t file, int64_t fd,
		   int64_t size)
{
	struct job_event v = event_on(l, c, JOB_TRUNCATE, file, fd, JOB_SEES_METADATA);

	v.asked = size;
	add(l, &v);
	if (c->result >= 0 && size >= 0)
		see_size(l, v.file, size);
}

void call_rename(struct call_log *l, const struct call *c, uint32_t from, uint32_t to)
{
	struct job_event v = event_on(l, c, JOB_RENAME, from, -1, JOB_SEES_METADATA);

	v.other = to;
	add(l, &v);
	if (c->result < 0)
		return;
	descriptors_rename(l->descriptors, from, to);
	RAISE(l->job->file[to].size, l->job->file[from].size);
}

/* ---- mapped memory ---- */

void call_map(struct call_log *l, const struct call *c, int64_t fd, uint64_t address, int64_t asked,
	      int64_t offset)
{
	struct job_event v = event_on(l, c, JOB_MAP, JOB_NONE, fd, JOB_SEES_MAPPINGS);

	v.asked = asked;
	v.offset = offset;
	if (c->result >= 0) {
		v.result = 0;
		if (v.file != JOB_NONE && address && l->mapped.n < CALL_MAPS_MAX)
			map_put2(&l->mapped, (int64_t)address, c->caller->process, v.file);
	}
	add(l, &v);
}

void call_at_address(struct call_log *l, const struct call *c, enum job_event_kind kind,
		     uint64_t address, int64_t asked, unsigned flags)
{
	struct job_event v = event_of(c, kind);

	v.file = map_get2(&l->mapped, (int64_t)address, c->caller->process);
	v.asked = asked;
	v.flags = flags;
	if (v.file != JOB_NONE) /* memory without a file is not of interest */
		add(l, &v);
}

void call_unmap(struct call_log *l, const struct call *c, uint64_t address, int64_t asked)
{
	call_at_address(l, c, JOB_UNMAP, address, asked, 0);
	if (c->result >= 0)
		map_take2(&l->mapped, (int64_t)address, c->caller->process);
}

/* ---- processes ---- */

void call_process(struct call_log *l, const struct call *c, enum job_event_kind kind,
		  uint32_t other)
{
	struct job_event v = event_of(c, kind);

	l->seen |= kind == JOB_FORK ? JOB_SEES_PROCESSES : 0;
	v.other = other;
	add(l, &v);
}

void call_exec(struct call_log *l, const struct call *c, uint32_t file, const char *command)
{
	struct job_event v = event_on(l, c, JOB_EXEC, file, -1, JOB_SEES_PROCESSES);

	add(l, &v);
	if (c->result < 0)
		return;
	l->job->process[c->caller->process].command = job_text(l->job, command);
	c->caller->table = descriptors_exec(l->descriptors, c->caller->table);
}
