/* The system calls of a log of strace, as rows: name, what it does, which arguments it has. */
#include "trace/strace/strace.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"

/* The number of a call's argument that is not there. */
#define NO -1

struct row {
	const char *names; /* separated by blanks */
	void (*add)(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		    const struct row *row);
	int fd, path, size, offset; /* arguments: what each means is said by `add` */
	int kind;                   /* of the event */
};

static struct strace_text arg(const struct strace_call *k, int i)
{
	static const struct strace_text nothing = {"", 0};

	return i >= 0 && i < (int)k->args ? k->arg[i] : nothing;
}

static int64_t number(const struct strace_call *k, int i, int64_t otherwise)
{
	int64_t v;

	return strace_number(arg(k, i), &v) ? v : otherwise;
}

/* A size or offset: negative ones are none. */
static int64_t amount(const struct strace_call *k, int i)
{
	int64_t v = number(k, i, JOB_UNKNOWN);

	return v < 0 ? JOB_UNKNOWN : v;
}

/* ---- descriptors and paths ---- */

/* `fd` leads to what the log names beside it. */
static void named(struct strace_calls *s, struct caller *caller, int64_t fd, bool deleted)
{
	const char *name = s->name.data;
	uint32_t file = call_file_of(&s->log, caller, fd);

	if (!name[0])
		return;
	if (file == JOB_NONE || strcmp(s->log.job->file[file].name, name) != 0) {
		file = call_named(&s->log, name, false);
		file = descriptors_expect(s->log.descriptors, caller->table, fd, file,
					  call_is_stream(&s->log, file) ? DESCRIPTOR_STREAM : 0);
	}
	if (deleted && s->log.job->file[file].kind == JOB_FILE_REGULAR)
		s->log.job->file[file].deleted = true;
}

int64_t strace_calls_fd(struct strace_calls *s, struct caller *caller, struct strace_text t)
{
	bool deleted;
	int64_t fd;

	if (!strace_descriptor(t, &fd, &s->name, &deleted))
		return -1;
	if (fd == CALL_CWD && s->name.len && strcmp(s->name.data, caller->cwd) != 0)
		caller->cwd = job_text(s->log.job, s->name.data);
	else if (fd >= 0)
		named(s, caller, fd, deleted);
	return fd;
}

static int64_t descriptor(struct strace_calls *s, const struct call *c, const struct strace_call *k,
			  int i)
{
	return i == NO ? CALL_CWD : strace_calls_fd(s, c->caller, arg(k, i));
}

uint32_t strace_calls_path(struct strace_calls *s, const struct call *c, int64_t dir,
			   struct strace_text t, bool folder)
{
	bool cut;

	if (!strace_string(t, &s->text, &cut) || !s->text.len)
		return JOB_NONE;
	return call_path(&s->log, c->caller, dir, s->text.data, folder);
}

/* A descriptor that a call returned or that stands in a list, with the file beside it; `kind` names
 * it where nothing is beside it. */
static void made(struct strace_calls *s, const struct call *c, struct strace_text t,
		 enum job_file_kind kind, bool cloexec)
{
	bool deleted;
	int64_t fd;

	if (!strace_descriptor(t, &fd, &s->name, &deleted) || fd < 0)
		return;
	call_make(&s->log, c, fd,
		  s->name.len ? call_named(&s->log, s->name.data, false)
			      : call_stream(&s->log, kind),
		  cloexec);
}

static const struct {
	const char *name;
	int flag;
} open_flags[] = {
	{"O_WRONLY", O_WRONLY},     {"O_RDWR", O_RDWR},         {"O_CREAT", O_CREAT},
	{"O_EXCL", O_EXCL},         {"O_TRUNC", O_TRUNC},       {"O_APPEND", O_APPEND},
	{"O_CLOEXEC", O_CLOEXEC},   {"O_DIRECT", O_DIRECT},     {"O_DIRECTORY", O_DIRECTORY},
	{"O_NONBLOCK", O_NONBLOCK}, {"O_SYNC", O_SYNC},         {"O_DSYNC", O_DSYNC},
	{"O_NOATIME", O_NOATIME},   {"O_NOFOLLOW", O_NOFOLLOW}, {"O_PATH", O_PATH},
	{"O_TMPFILE", O_TMPFILE},
};

static int flags_of(struct strace_text t)
{
	int flags = 0;

	for (size_t i = 0; i < sizeof(open_flags) / sizeof(*open_flags); i++)
		if (strace_has(t, open_flags[i].name))
			flags |= open_flags[i].flag;
	return flags;
}

/* fd: folder, path, size: flags */
static void add_open(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		     const struct row *row)
{
	int flags = row->size == NO ? O_WRONLY | O_CREAT | O_TRUNC : flags_of(arg(k, row->size));
	uint32_t file;
	int64_t fd;
	bool deleted;

	file = strace_calls_path(s, c, descriptor(s, c, k, row->fd), arg(k, row->path),
				 flags & O_DIRECTORY);
	if (c->result >= 0 && strace_descriptor(k->result_text, &fd, &s->name, &deleted) &&
	    s->name.len)
		file = call_named(&s->log, s->name.data, flags & O_DIRECTORY);
	if (file != JOB_NONE)
		call_open(&s->log, c, file, flags);
}

static void add_close(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		      const struct row *row)
{
	int64_t fd = descriptor(s, c, k, row->fd);

	strace_socket_closed(s, c, fd);
	call_close(&s->log, c, fd);
}

static void add_connect(struct strace_calls *s, const struct call *c, const struct strace_call *k,
			const struct row *row)
{
	strace_connected(s, c, descriptor(s, c, k, row->fd), arg(k, 1));
}

static void add_close_range(struct strace_calls *s, const struct call *c,
			    const struct strace_call *k, const struct row *row)
{
	int64_t first = number(k, 0, -1), last = number(k, 1, -1);

	(void)row;
	if (c->result < 0 || first < 0)
		return;
	if (strace_has(arg(k, 2), "CLOSE_RANGE_UNSHARE"))
		c->caller->table = descriptors_unshare(s->log.descriptors, c->caller->table);
	if (!strace_has(arg(k, 2), "CLOSE_RANGE_CLOEXEC"))
		descriptors_close_range(s->log.descriptors, c->caller->table, first,
					last < 0 ? INT64_MAX : last);
}

/* fd, size, offset (NO: at the position) */
static void add_transfer(struct strace_calls *s, const struct call *c, const struct strace_call *k,
			 const struct row *row)
{
	int64_t fd = descriptor(s, c, k, row->fd);

	strace_socket_moved(s, c, fd, row->kind == JOB_WRITE, arg(k, 1), arg(k, 3));
	call_transfer(&s->log, c, row->kind, fd, amount(k, row->size), amount(k, row->offset));
}

/* fd, size: the list of pieces */
static void add_vector(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		       const struct row *row)
{
	int64_t fd = descriptor(s, c, k, row->fd), asked;

	if (!strace_iov_bytes(arg(k, row->size), &asked))
		asked = JOB_UNKNOWN;
	strace_socket_moved(s, c, fd, row->kind == JOB_WRITE, arg(k, 1), arg(k, 2));
	call_transfer(&s->log, c, row->kind, fd, asked, amount(k, row->offset));
}

/* recvmsg: descriptors that are passed are new ones */
static void add_message(struct strace_calls *s, const struct call *c, const struct strace_call *k,
			const struct row *row)
{
	static const char rights[] = "cmsg_type=SCM_RIGHTS, cmsg_data=";
	struct strace_text t = arg(k, 1), fd;
	const char *p = memmem(t.p, t.n, rights, sizeof(rights) - 1);

	add_vector(s, c, k, row);
	if (!p || c->result < 0 || row->kind != JOB_READ)
		return;
	p += sizeof(rights) - 1;
	t = (struct strace_text){p, t.n - (size_t)(p - t.p)};
	for (size_t at = 0; strace_element(t, &at, &fd);) {
		int64_t n;
		bool deleted;

		if (!strace_descriptor(fd, &n, &s->name, &deleted) || n < 0)
			continue;
		descriptors_close(s->log.descriptors, c->caller->table, n);
		named(s, c->caller, n, deleted);
	}
}

/* Several messages: the result is their number, the bytes of each are beside it. */
static void add_messages(struct strace_calls *s, const struct call *c, const struct strace_call *k,
			 const struct row *row)
{
	static const char length[] = "msg_len=";
	struct strace_call one = *k;
	struct strace_text message;
	int64_t n = 0;

	if (c->result < 0) {
		call_transfer(&s->log, c, row->kind, descriptor(s, c, k, row->fd), JOB_UNKNOWN,
			      JOB_UNKNOWN);
		return;
	}
	for (size_t at = 0; n < c->result && strace_element(arg(k, 1), &at, &message); n++) {
		struct strace_text rest = message, bytes = {"", 0};
		struct call part = *c;
		const char *p;

		/* the last one: data may say the same */
		while ((p = memmem(rest.p, rest.n, length, sizeof(length) - 1))) {
			p += sizeof(length) - 1;
			rest.n -= (size_t)(p - rest.p);
			rest.p = p;
			bytes = rest;
		}
		if (!strace_number(bytes, &part.result) || part.result < 0)
			continue;
		one.arg[1] = message;
		one.arg[2] = arg(k, 3);
		add_message(s, &part, &one, row);
	}
}

/* The offset in `[4096]` or `[0] => [4096]`; JOB_UNKNOWN for NULL: then it is the position. */
static int64_t pointed(struct strace_text t)
{
	int64_t v;

	if (t.n < 2 || *t.p != '[')
		return JOB_UNKNOWN;
	return strace_number((struct strace_text){t.p + 1, t.n - 1}, &v) && v >= 0 ? v
										   : JOB_UNKNOWN;
}

/* Bytes from one descriptor to another. fd, offset: of the source; path, kind: of the target */
static void add_between(struct strace_calls *s, const struct call *c, const struct strace_call *k,
			const struct row *row)
{
	int64_t from = descriptor(s, c, k, row->fd), to, asked = amount(k, row->size);

	call_transfer(&s->log, c, JOB_READ, from, asked,
		      row->offset == NO ? JOB_UNKNOWN : pointed(arg(k, row->offset)));
	to = descriptor(s, c, k, row->path);
	strace_socket_moved(s, c, to, true, (struct strace_text){"", 0},
			    (struct strace_text){"", 0});
	call_transfer(&s->log, c, JOB_WRITE, to, asked,
		      row->kind == NO ? JOB_UNKNOWN : pointed(arg(k, row->kind)));
}

static void add_seek(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		     const struct row *row)
{
	int whence = strace_has(arg(k, row->size), "SEEK_END") ? SEEK_END : SEEK_SET;

	call_seek(&s->log, c, descriptor(s, c, k, row->fd), number(k, row->offset, 0), whence);
}

static void add_dup(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		    const struct row *row)
{
	int64_t fd = descriptor(s, c, k, row->fd);

	if (c->result >= 0)
		descriptors_dup(s->log.descriptors, c->caller->table, fd, c->caller->table,
				c->result,
				strace_has(arg(k, 2), "O_CLOEXEC") ? DESCRIPTOR_CLOEXEC : 0);
}

static void add_fcntl(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		      const struct row *row)
{
	int64_t fd = descriptor(s, c, k, row->fd);
	struct descriptors *d = s->log.descriptors;
	uint32_t table = c->caller->table;

	if (c->result < 0)
		return;
	if (strace_has(arg(k, 1), "F_DUPFD") || strace_has(arg(k, 1), "F_DUPFD_CLOEXEC"))
		descriptors_dup(d, table, fd, table, c->result,
				strace_has(arg(k, 1), "F_DUPFD_CLOEXEC") ? DESCRIPTOR_CLOEXEC : 0);
	else if (strace_has(arg(k, 1), "F_SETFD"))
		descriptors_set_cloexec(d, table, fd, strace_has(arg(k, 2), "FD_CLOEXEC"));
	else if (strace_has(arg(k, 1), "F_SETFL"))
		descriptors_set_append(d, table, fd, strace_has(arg(k, 2), "O_APPEND"));
	else if (strace_has(arg(k, 1), "F_SETLKW"))
		call_other(&s->log, c, JOB_WAIT, JOB_NONE, fd, JOB_UNKNOWN, 0);
}

static void add_ioctl(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		      const struct row *row)
{
	int64_t fd = descriptor(s, c, k, row->fd);

	if (c->result < 0)
		return;
	if (strace_has(arg(k, 1), "FIOCLEX") || strace_has(arg(k, 1), "FIONCLEX"))
		descriptors_set_cloexec(s->log.descriptors, c->caller->table, fd,
					strace_has(arg(k, 1), "FIOCLEX"));
}

/* path: the list of descriptors, size: flags */
static void add_pair(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		     const struct row *row)
{
	struct strace_text list = arg(k, row->path), fd;

	if (c->result < 0)
		return;
	if (row->kind == JOB_FILE_PIPE) {
		/* both ends have one name */
		uint32_t file = JOB_NONE;
		bool deleted;
		int64_t n;

		for (size_t at = 0; strace_element(list, &at, &fd);) {
			if (!strace_descriptor(fd, &n, &s->name, &deleted) || n < 0)
				continue;
			if (s->name.len)
				file = call_named(&s->log, s->name.data, false);
			else if (file == JOB_NONE)
				file = call_stream(&s->log, JOB_FILE_PIPE);
			call_make(&s->log, c, n, file, strace_has(arg(k, row->size), "O_CLOEXEC"));
		}
		return;
	}
	for (size_t at = 0; strace_element(list, &at, &fd);)
		made(s, c, fd, row->kind, strace_has(arg(k, 1), "SOCK_CLOEXEC"));
}

/* Calls that return a descriptor of no file. size: flags */
static void add_made(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		     const struct row *row)
{
	struct strace_text flags = arg(k, row->size);

	if (c->result < 0)
		return;
	made(s, c, k->result_text, row->kind,
	     strace_has(flags, "SOCK_CLOEXEC") || strace_has(flags, "EFD_CLOEXEC") ||
		     strace_has(flags, "EPOLL_CLOEXEC") || strace_has(flags, "TFD_CLOEXEC") ||
		     strace_has(flags, "SFD_CLOEXEC") || strace_has(flags, "IN_CLOEXEC"));
}

static void add_memfd(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		      const struct row *row)
{
	bool cut, deleted;
	uint32_t file;
	int64_t fd;

	(void)row;
	if (c->result < 0)
		return;
	if (!strace_descriptor(k->result_text, &fd, &s->name, &deleted) || !s->name.len) {
		buf_reset(&s->name);
		buf_puts(&s->name, "/memfd:");
		if (strace_string(arg(k, 0), &s->text, &cut))
			buf_puts(&s->name, s->text.data);
	}
	file = call_named(&s->log, s->name.data, false);
	descriptors_open(s->log.descriptors, c->caller->table, c->result, file, 0,
			 strace_has(arg(k, 1), "MFD_CLOEXEC") ? DESCRIPTOR_CLOEXEC : 0);
}

static void add_uring(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		      const struct row *row)
{
	if (c->result < 0)
		return;
	job_note(s->log.job, "io_uring was used: its requests are not in a log of system calls, so "
			     "bytes and order are those of the other requests");
	add_made(s, c, k, row);
}

static void add_libaio(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		       const struct row *row)
{
	(void)c;
	(void)k;
	(void)row;
	job_note(s->log.job, "io_submit was used: the log does not say which of its requests moved "
			     "how much, and they are left out");
}

/* fd, path (NO: of fd); size: the argument with st_size */
static void add_stat(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		     const struct row *row)
{
	static const char *const field[] = {"st_size", "stx_size"};
	struct strace_text st = arg(k, row->size);
	bool folder = strace_has(st, "S_IFDIR");
	int64_t fd = descriptor(s, c, k, row->fd), size = -1;
	uint32_t file = JOB_NONE;

	if (row->path != NO)
		file = strace_calls_path(s, c, fd, arg(k, row->path), folder);
	for (size_t i = 0; i < 2 && c->result >= 0; i++)
		strace_field(st, field[i], &size);
	if (file == JOB_NONE && fd < 0)
		return;
	call_stat(&s->log, c, file, file == JOB_NONE ? fd : -1, size);
}

/* fd and path, either may be NO; size: asked */
static void add_other(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		      const struct row *row)
{
	int64_t fd = descriptor(s, c, k, row->fd);
	uint32_t file = JOB_NONE;

	if (row->path != NO)
		file = strace_calls_path(s, c, fd, arg(k, row->path), row->kind == JOB_MAKE_DIR);
	if (file == JOB_NONE && fd < 0)
		return;
	call_other(&s->log, c, row->kind, file, file == JOB_NONE ? fd : -1, amount(k, row->size),
		   0);
}

static void add_list(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		     const struct row *row)
{
	int64_t fd = descriptor(s, c, k, row->fd);
	uint32_t file = call_file_of(&s->log, c->caller, fd);

	if (file != JOB_NONE && s->log.job->file[file].kind == JOB_FILE_REGULAR) {
		/* it was opened without saying that it is a folder */
		file = call_named(&s->log, s->log.job->file[file].name, true);
		descriptors_open(s->log.descriptors, c->caller->table, fd, file, JOB_UNKNOWN, 0);
	}
	call_other(&s->log, c, JOB_LIST, file, fd, amount(k, row->size), 0);
}

static void add_rename(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		       const struct row *row)
{
	uint32_t from, to;

	/* two folders and two paths, or two paths */
	from = strace_calls_path(s, c, descriptor(s, c, k, row->fd), arg(k, row->path), false);
	to = strace_calls_path(s, c, descriptor(s, c, k, row->fd == NO ? NO : row->fd + 2),
			       arg(k, row->size), false);
	if (from != JOB_NONE && to != JOB_NONE)
		call_rename(&s->log, c, from, to);
}

static void add_truncate(struct strace_calls *s, const struct call *c, const struct strace_call *k,
			 const struct row *row)
{
	int64_t fd = descriptor(s, c, k, row->fd);
	uint32_t file = JOB_NONE;

	if (row->path != NO)
		file = strace_calls_path(s, c, fd, arg(k, row->path), false);
	if (file != JOB_NONE || fd >= 0)
		call_truncate(&s->log, c, file, file == JOB_NONE ? fd : -1, amount(k, row->size));
}

static void add_fallocate(struct strace_calls *s, const struct call *c, const struct strace_call *k,
			  const struct row *row)
{
	int64_t fd = descriptor(s, c, k, row->fd), end;
	uint32_t file = call_file_of(&s->log, c->caller, fd);

	if (number(k, 1, -1) == 0 && file != JOB_NONE && amount(k, 2) != JOB_UNKNOWN &&
	    amount(k, 3) != JOB_UNKNOWN &&
	    !__builtin_add_overflow(amount(k, 2), amount(k, 3), &end) &&
	    end > descriptors_size_of(s->log.descriptors, file))
		call_truncate(&s->log, c, file, fd, end);
}

static void add_map(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		    const struct row *row)
{
	int64_t fd;

	(void)row;
	if (strace_has(arg(k, 3), "MAP_ANONYMOUS"))
		return;
	fd = descriptor(s, c, k, 4);
	if (fd >= 0)
		call_map(&s->log, c, fd, (uint64_t)c->result, amount(k, 1), amount(k, 5));
}

static void add_unmap(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		      const struct row *row)
{
	(void)row;
	call_unmap(&s->log, c, (uint64_t)number(k, 0, 0), amount(k, 1));
}

static const struct {
	const char *name;
	unsigned advice;
} advices[] = {
	{"POSIX_FADV_RANDOM", POSIX_FADV_RANDOM},
	{"POSIX_FADV_SEQUENTIAL", POSIX_FADV_SEQUENTIAL},
	{"POSIX_FADV_WILLNEED", POSIX_FADV_WILLNEED},
	{"POSIX_FADV_DONTNEED", POSIX_FADV_DONTNEED},
	{"POSIX_FADV_NOREUSE", POSIX_FADV_NOREUSE},
	{"MADV_RANDOM", MADV_RANDOM},
	{"MADV_SEQUENTIAL", MADV_SEQUENTIAL},
	{"MADV_WILLNEED", MADV_WILLNEED},
	{"MADV_DONTNEED", MADV_DONTNEED},
};

static unsigned advice(struct strace_text t)
{
	for (size_t i = 0; i < sizeof(advices) / sizeof(*advices); i++)
		if (strace_has(t, advices[i].name))
			return advices[i].advice;
	return 0;
}

static void add_advise(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		       const struct row *row)
{
	call_other(&s->log, c, JOB_ADVISE, JOB_NONE, descriptor(s, c, k, row->fd),
		   amount(k, row->size),
		   row->path == NO ? POSIX_FADV_WILLNEED : advice(arg(k, row->path)));
}

static void add_address(struct strace_calls *s, const struct call *c, const struct strace_call *k,
			const struct row *row)
{
	call_at_address(&s->log, c, row->kind, (uint64_t)number(k, 0, 0), amount(k, 1),
			advice(arg(k, 2)));
}

static void add_chdir(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		      const struct row *row)
{
	uint32_t file;

	if (row->path == NO)
		file = call_file_of(&s->log, c->caller, descriptor(s, c, k, row->fd));
	else
		file = strace_calls_path(s, c, CALL_CWD, arg(k, row->path), true);
	if (c->result >= 0 && file != JOB_NONE)
		c->caller->cwd = job_text(s->log.job, s->log.job->file[file].name);
}

static void add_unshare(struct strace_calls *s, const struct call *c, const struct strace_call *k,
			const struct row *row)
{
	(void)row;
	if (c->result >= 0 && strace_has(arg(k, 0), "CLONE_FILES"))
		c->caller->table = descriptors_unshare(s->log.descriptors, c->caller->table);
}

/* The thread was blocked. Sleeping is not waiting for anybody. */
static void add_wait(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		     const struct row *row)
{
	if (row->fd != NO)
		call_other(&s->log, c, JOB_WAIT, JOB_NONE, descriptor(s, c, k, row->fd),
			   JOB_UNKNOWN, 0);
	else
		call_process(&s->log, c, JOB_WAIT, JOB_NONE);
}

static void add_futex(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		      const struct row *row)
{
	(void)row;
	if (memmem(arg(k, 1).p, arg(k, 1).n, "FUTEX_WAIT", 10) ||
	    memmem(arg(k, 1).p, arg(k, 1).n, "FUTEX_LOCK", 10))
		call_process(&s->log, c, JOB_WAIT, JOB_NONE);
}

static void add_name(struct strace_calls *s, const struct call *c, const struct strace_call *k,
		     const struct row *row)
{
	bool cut;

	(void)row;
	if (strace_has(arg(k, 0), "PR_SET_NAME") && strace_string(arg(k, 1), &s->text, &cut) &&
	    s->text.len && !cut)
		s->log.job->thread[c->caller->thread].name = job_text(s->log.job, s->text.data);
}

#define OTHER JOB_FILE_OTHER

/* clang-format off */
static const struct row rows[] = {
	/* names, add, fd, path, size, offset, kind; a blank behind mmap: it is no store here */
	{"accept", add_made, NO, NO, NO, NO, JOB_FILE_SOCKET},
	{"accept4", add_made, NO, NO, 3, NO, JOB_FILE_SOCKET},
	{"access readlink statfs", add_other, NO, 0, NO, NO, JOB_ACCESS},
	{"chdir", add_chdir, NO, 0, NO, NO, 0},
	{"close", add_close, 0, NO, NO, NO, 0},
	{"close_range", add_close_range, NO, NO, NO, NO, 0},
	{"connect", add_connect, 0, NO, NO, NO, 0},
	{"copy_file_range splice", add_between, 0, 2, 4, 1, 3},
	{"creat", add_open, NO, 0, NO, NO, 0},
	{"dup dup2 dup3", add_dup, 0, NO, NO, NO, 0},
	{"epoll_create eventfd pidfd_open userfaultfd", add_made, NO, NO, NO, NO, OTHER},
	{"epoll_create1 inotify_init1", add_made, NO, NO, 0, NO, OTHER},
	{"epoll_pwait epoll_pwait2 epoll_wait poll ppoll pselect6 select",
	 add_wait, NO, NO, NO, NO, 0},
	{"eventfd2 timerfd_create", add_made, NO, NO, 1, NO, OTHER},
	{"faccessat faccessat2 futimesat readlinkat utimensat",
	 add_other, 0, 1, NO, NO, JOB_ACCESS},
	{"fadvise64", add_advise, 0, 3, 2, NO, 0},
	{"fallocate", add_fallocate, 0, NO, NO, NO, 0},
	{"fchdir", add_chdir, 0, NO, NO, NO, 0},
	{"fcntl fcntl64", add_fcntl, 0, NO, NO, NO, 0},
	{"fdatasync fsync sync_file_range syncfs", add_other, 0, NO, NO, NO, JOB_SYNC},
	{"flock", add_wait, 0, NO, NO, NO, 0},
	{"fstat fstat64", add_stat, 0, NO, 1, NO, 0},
	{"fstatat64 newfstatat", add_stat, 0, 1, 2, NO, 0},
	{"fstatfs", add_other, 0, NO, NO, NO, JOB_ACCESS},
	{"ftruncate ftruncate64", add_truncate, 0, NO, 1, NO, 0},
	{"futex", add_futex, NO, NO, NO, NO, 0},
	{"getdents getdents64", add_list, 0, NO, 2, NO, 0},
	{"io_submit", add_libaio, NO, NO, NO, NO, 0},
	{"io_uring_setup", add_uring, NO, NO, NO, NO, OTHER},
	{"ioctl", add_ioctl, 0, NO, NO, NO, 0},
	{"lseek", add_seek, 0, NO, 2, 1, 0},
	{"lstat lstat64 stat stat64", add_stat, NO, 0, 1, NO, 0},
	{"madvise", add_address, NO, NO, NO, NO, JOB_ADVISE},
	{"memfd_create", add_memfd, NO, NO, NO, NO, 0},
	{"mkdir", add_other, NO, 0, NO, NO, JOB_MAKE_DIR},
	{"mkdirat", add_other, 0, 1, NO, NO, JOB_MAKE_DIR},
	{"mmap ", add_map, NO, NO, NO, NO, 0},
	{"msync", add_address, NO, NO, NO, NO, JOB_SYNC},
	{"munmap", add_unmap, NO, NO, NO, NO, 0},
	{"open", add_open, NO, 0, 1, NO, 0},
	{"openat openat2", add_open, 0, 1, 2, NO, 0},
	{"pipe", add_pair, NO, 0, NO, NO, JOB_FILE_PIPE},
	{"pipe2", add_pair, NO, 0, 1, NO, JOB_FILE_PIPE},
	{"prctl", add_name, NO, NO, NO, NO, 0},
	{"pread64", add_transfer, 0, NO, 2, 3, JOB_READ},
	{"preadv preadv2", add_vector, 0, NO, 1, 3, JOB_READ},
	{"pwrite64", add_transfer, 0, NO, 2, 3, JOB_WRITE},
	{"pwritev pwritev2", add_vector, 0, NO, 1, 3, JOB_WRITE},
	{"read recvfrom", add_transfer, 0, NO, 2, NO, JOB_READ},
	{"readahead", add_advise, 0, NO, 2, NO, 0},
	{"readv", add_vector, 0, NO, 1, NO, JOB_READ},
	{"recvmmsg", add_messages, 0, NO, 1, NO, JOB_READ},
	{"recvmsg", add_message, 0, NO, 1, NO, JOB_READ},
	{"rename", add_rename, NO, 0, 1, NO, 0},
	{"renameat renameat2", add_rename, 0, 1, 3, NO, 0},
	{"rmdir unlink", add_other, NO, 0, NO, NO, JOB_UNLINK},
	{"sendfile sendfile64", add_between, 1, 0, 3, 2, NO},
	{"sendmmsg", add_messages, 0, NO, 1, NO, JOB_WRITE},
	{"sendmsg", add_message, 0, NO, 1, NO, JOB_WRITE},
	{"sendto write", add_transfer, 0, NO, 2, NO, JOB_WRITE},
	{"signalfd4", add_made, NO, NO, 3, NO, OTHER},
	{"socket", add_made, NO, NO, 1, NO, JOB_FILE_SOCKET},
	{"socketpair", add_pair, NO, 3, NO, NO, JOB_FILE_SOCKET},
	{"statx", add_stat, 0, 1, 4, NO, 0},
	{"truncate", add_truncate, NO, 0, 1, NO, 0},
	{"unlinkat", add_other, 0, 1, NO, NO, JOB_UNLINK},
	{"unshare", add_unshare, NO, NO, NO, NO, 0},
	{"writev", add_vector, 0, NO, 1, NO, JOB_WRITE},
};
/* clang-format on */

/* Files each name under its row, which a name is looked for in for every line of a log. */
static void number_names(struct strace_calls *s)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (const char *p = rows[i].names; *p;) {
			size_t n = strcspn(p, " ");
			AUTO_FREE char *name = xstrndup(p, n);

			s->row_of[texts_add(&s->known, name)] = (uint8_t)i;
			p += n + (p[n] == ' ');
		}
	assert(s->known.n <= STRACE_CALLS);
}

bool strace_calls_add(struct strace_calls *s, struct strace_text name, const struct call *call,
		      const struct strace_call *parsed)
{
	char text[32];
	size_t i;

	if (!s->known.n)
		number_names(s);
	if (name.n >= sizeof(text))
		return false;
	memcpy(text, name.p, name.n);
	text[name.n] = '\0';
	i = texts_find(&s->known, text);
	if (i == TEXT_NONE)
		return false;
	rows[s->row_of[i]].add(s, call, parsed, &rows[s->row_of[i]]);
	return true;
}
