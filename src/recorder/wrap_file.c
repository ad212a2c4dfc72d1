/* Calls on files: open, read, write, seek, stat, listings, names. */
#include "recorder/wrap.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

struct stat64;
struct statx;

/* ---- open ---- */

/* The base of a relative name; -1: the folder is not known. */
int at_base(int dirfd, const char *path, uint64_t *base)
{
	uint64_t w;

	*base = 0;
	if (dirfd == AT_FDCWD || (path && *path == '/'))
		return 0;
	w = fd_word(dirfd);
	*base = w;
	return w ? 0 : -1;
}

/* Only these results are of calls that may have ended before the whole name was read: by the
 * kernel, or by a filter of calls. */
const char *wrap_name(const char *path, int64_t result)
{
	bool doubtful = result == -EFAULT || result == -EINVAL || result == -ENOSYS ||
			result == -E2BIG || result == -EPERM || result == -EACCES ||
			result == -ENAMETOOLONG;
	struct probe k = {0};
	size_t n;

	if (doubtful && (!text_readable(&k, path, RING_PATH_MAX, &n) || n == RING_PATH_MAX))
		return NULL;
	return path;
}

#define BASE(w) ((w) ? FD_SERIAL(w) + 1 : 0)

static void opened_as(int dirfd, const char *path, int flags, int64_t begin, int fd, int error,
		      struct fd_facts facts)
{
	uint64_t base, w = 0;

	(void)at_base(dirfd, path, &base);
	if (path && strncmp(path, "/dev/shm/", 9) == 0)
		facts.kind = RING_MEMORY;
	if (name_excluded(path, base)) {
		if (fd >= 0)
			fd_put(fd, (uint64_t)RING_EXCLUDED << 36);
		note_excluded(0, 0);
		return;
	}
	if (fd >= 0)
		w = fd_new(fd, facts.kind);
	note(RING_OPEN, begin, BASE(base), path, N((unsigned)flags), fd >= 0 ? N(fd) : N(-error),
	     FD_SERIAL(w), N(facts.kind), facts.size);
}

/* Whether the name says nothing of the file that it leads to. */
static bool is_indirect(const char *path, int flags)
{
	return (flags & O_TMPFILE) == O_TMPFILE ||
	       (path && ((strncmp(path, "/proc/", 6) == 0 && strstr(path, "/fd/")) ||
			 strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/dev/std", 8) == 0));
}

static __attribute__((noinline)) void opened_indirectly(int flags, int64_t begin, int fd,
							struct fd_facts facts)
{
	char *name = scratch_take();

	if (name)
		(void)fd_name(fd, facts.inode, name);
	if (!name || *name != '/') {
		scratch_give(name);
		fd_forget(fd);
		(void)fd_word(fd);
		return;
	}
	/* one that nobody else can open, until it is linked */
	if ((flags & O_TMPFILE) == O_TMPFILE)
		flags = (flags & ~O_TMPFILE) | O_CREAT | O_EXCL;
	opened_as(AT_FDCWD, name, flags, begin, fd, 0, facts);
	scratch_give(name);
}

static void opened(int dirfd, const char *path, int flags, int64_t begin, int fd, int error)
{
	struct fd_facts facts = {RING_UNKNOWN, -1, 0};

	path = wrap_name(path, fd >= 0 ? 0 : -error);
	if (fd >= 0)
		(void)fd_facts(fd, &facts);
	if (flags & RECORD_MEMORY)
		facts.kind = RING_MEMORY;
	if (fd >= 0 && (flags & (RECORD_MEMORY | RECORD_UNNAMED) || is_indirect(path, flags)))
		opened_indirectly(flags & ~(RECORD_MEMORY | RECORD_UNNAMED), begin, fd, facts);
	else
		opened_as(dirfd, path, flags & ~(RECORD_MEMORY | RECORD_UNNAMED), begin, fd, error,
			  facts);
}

#define OPEN(name, type, params, args, dirfd, path, flags)                                         \
	WRAP_CALL(int, name, type, params, args, , opened(dirfd, path, flags, begin, r, errno))
#define MODE                                                                                       \
	mode_t mode = 0;                                                                           \
	if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {                                 \
		va_list ap;                                                                        \
		va_start(ap, flags);                                                               \
		mode = va_arg(ap, mode_t);                                                         \
		va_end(ap);                                                                        \
	}
#define OPEN_MODE(name, type, params, args, dirfd)                                                 \
	WRAP int name params                                                                       \
	{                                                                                          \
		REAL_V(int, name, type);                                                           \
		MODE WRAP_BODY(int, real args, , opened(dirfd, path, flags, begin, r, errno));     \
	}
OPEN_MODE(open, (const char *, int, ...), (const char *path, int flags, ...), (path, flags, mode),
	  AT_FDCWD)
OPEN_MODE(open64, (const char *, int, ...), (const char *path, int flags, ...), (path, flags, mode),
	  AT_FDCWD)
OPEN_MODE(openat, (int, const char *, int, ...), (int dir, const char *path, int flags, ...),
	  (dir, path, flags, mode), dir)
OPEN_MODE(openat64, (int, const char *, int, ...), (int dir, const char *path, int flags, ...),
	  (dir, path, flags, mode), dir)
OPEN(__open_2, (const char *, int), (const char *path, int flags), (path, flags), AT_FDCWD, path,
     flags)
OPEN(__open64_2, (const char *, int), (const char *path, int flags), (path, flags), AT_FDCWD, path,
     flags)
OPEN(__openat_2, (int, const char *, int), (int dir, const char *path, int flags),
     (dir, path, flags), dir, path, flags)
OPEN(__openat64_2, (int, const char *, int), (int dir, const char *path, int flags),
     (dir, path, flags), dir, path, flags)
OPEN(creat, (const char *, mode_t), (const char *path, mode_t mode), (path, mode), AT_FDCWD, path,
     (O_CREAT | O_TRUNC | O_WRONLY))
OPEN(creat64, (const char *, mode_t), (const char *path, mode_t mode), (path, mode), AT_FDCWD, path,
     (O_CREAT | O_TRUNC | O_WRONLY))
/* the name of shared memory is below /dev/shm */
OPEN(shm_open, (const char *, int, mode_t), (const char *path, int flags, mode_t mode),
     (path, flags, mode), AT_FDCWD, path, (flags | RECORD_MEMORY))
OPEN(memfd_create, (const char *, unsigned), (const char *path, unsigned flags), (path, flags),
     AT_FDCWD, path, (O_RDWR | RECORD_MEMORY))

OPEN(open_by_handle_at, (int, struct file_handle *, int),
     (int dir, struct file_handle *h, int flags), (dir, h, flags), AT_FDCWD, "",
     (flags | RECORD_UNNAMED))
#define MAKE(name, type, params, args, flags)                                                      \
	OPEN(name, type, params, args, AT_FDCWD, path, (flags | O_RDWR | O_CREAT | O_EXCL))
MAKE(mkstemp, (char *), (char *path), (path), 0)
MAKE(mkstemp64, (char *), (char *path), (path), 0)
MAKE(mkostemp, (char *, int), (char *path, int flags), (path, flags), flags)
MAKE(mkostemp64, (char *, int), (char *path, int flags), (path, flags), flags)
MAKE(mkstemps, (char *, int), (char *path, int n), (path, n), 0)
MAKE(mkstemps64, (char *, int), (char *path, int n), (path, n), 0)
MAKE(mkostemps, (char *, int, int), (char *path, int n, int flags), (path, n, flags), flags)
MAKE(mkostemps64, (char *, int, int), (char *path, int n, int flags), (path, n, flags), flags)

void wrap_opened(int dirfd, const char *path, int flags, int64_t begin, long result)
{
	opened(dirfd, path, flags, begin, result < 0 ? -1 : (int)result, (int)-result);
}

/* ---- close and dup ---- */

void wrap_closing(int fd, int64_t begin)
{
	uint64_t w = fd_known(fd);

	fd_forget(fd);
	if (FD_KIND(w) == RING_EXCLUDED)
		note_excluded(0, 0);
	else if (w)
		note(RING_CLOSE, begin, FD_SERIAL(w), N(0));
}

/* Before the call: afterwards the number may be somebody else's already. */
#define CLOSE(name)                                                                                \
	WRAP int name(int fd)                                                                      \
	{                                                                                          \
		REAL(int, name, int);                                                              \
		if (recording())                                                                   \
			wrap_closing(fd, now_ns());                                                \
		return real(fd);                                                                   \
	}
CLOSE(close)
CLOSE(__close)

static void close_some(unsigned first, unsigned last)
{
	int64_t begin = now_ns();

	for (unsigned fd = first; fd <= last && fd < 65536; fd++)
		if (fd_known((int)fd))
			wrap_closing((int)fd, begin);
	if (last >= 65536)
		fd_forget_range(first > 65536 ? first : 65536, last);
}

void wrap_closing_range(unsigned first, unsigned last, int flags)
{
	if (!(flags & 4 /* CLOSE_RANGE_CLOEXEC */))
		close_some(first, last);
}

WRAP int close_range(unsigned first, unsigned last, int flags)
{
	REAL(int, close_range, unsigned, unsigned, int);

	if (recording())
		wrap_closing_range(first, last, flags);
	return real ? real(first, last, flags) : no_call();
}

WRAP void closefrom(int first)
{
	REAL(void, closefrom, int);

	if (recording())
		close_some(first < 0 ? 0 : (unsigned)first, ~0u);
	if (real)
		real(first);
}

void wrap_duplicated(int old, int copy, int64_t begin)
{
	uint64_t w = fd_word(old);

	if (copy < 0 || copy == old)
		return;
	fd_put(copy, w);
	if (w && FD_KIND(w) != RING_EXCLUDED)
		note(RING_DUP, begin, FD_SERIAL(w), N(copy));
}

#define DUP(name, type, params, args)                                                              \
	WRAP_CALL(int, name, type, params, args, , wrap_duplicated(old, r, begin))
DUP(dup, (int), (int old), (old))
DUP(dup2, (int, int), (int old, int to), (old, to))
DUP(__dup2, (int, int), (int old, int to), (old, to))
DUP(dup3, (int, int, int), (int old, int to, int flags), (old, to, flags))

#define FCNTL(name)                                                                                \
	WRAP int name(int old, int command, ...)                                                   \
	{                                                                                          \
		REAL(int, name, int, int, ...);                                                    \
		va_list ap;                                                                        \
		void *arg;                                                                         \
		va_start(ap, command);                                                             \
		arg = va_arg(ap, void *);                                                          \
		va_end(ap);                                                                        \
		if (command != F_DUPFD && command != F_DUPFD_CLOEXEC)                              \
			return real(old, command, arg);                                            \
		WRAP_BODY(int, real(old, command, arg), , wrap_duplicated(old, r, begin));         \
	}
FCNTL(fcntl)
FCNTL(fcntl64)
FCNTL(__fcntl)

/* ---- read and write ---- */

#define TRANSFER_OF(ret, kind, name, type, params, args, asked)                                    \
	WRAP_CALL(ret, name, type, params, args, uint64_t w = fd_word_at_position(fd),             \
		  note_transfer(kind, w, begin, asked, 0, RESULT))
#define TRANSFER_AT(kind, name, type, params, args, asked)                                         \
	WRAP_CALL(ssize_t, name, type, params, args, uint64_t w = fd_word(fd),                     \
		  note_transfer(kind, w, begin, asked, at, RESULT))
/* preadv2: offset -1 is the position */
static void transferred_2(bool write, int fd, uint64_t w, int64_t begin, uint64_t asked, int64_t at,
			  int flags, int64_t result)
{
	struct fd_facts facts;

	if (write && result > 0 && flags & 16 /* RWF_APPEND */ && fd_facts(fd, &facts)) {
		if (at == -1)
			fd_doubt();
		at = facts.size - result;
	}
	if (at == -1)
		note_transfer(write ? RING_WRITE : RING_READ, w, begin, asked, 0, result);
	else
		note_transfer(write ? RING_PWRITE : RING_PREAD, w, begin, asked, at, result);
}

#define TRANSFER_2(name, write)                                                                    \
	WRAP_CALL(ssize_t, name, (int, const struct iovec *, int, off64_t, int),                   \
		  (int fd, const struct iovec *v, int n, off64_t at, int flags),                   \
		  (fd, v, n, at, flags),                                                           \
		  uint64_t w = at == -1 ? fd_word_at_position(fd) : fd_word(fd),                   \
		  transferred_2(write, fd, w, begin, vector_bytes(v, (uint64_t)n, r), at, flags,   \
				RESULT))

/* Sockets are read and written this way, too. */
#define MOVE(kind, name, type, params, args, at)                                                   \
	WRAP_CALL(ssize_t, name, type, params, args, uint64_t w = fd_word_at_position(fd),         \
		  wrap_moved(kind, fd, w, begin, at, n, RESULT))
#define READ(name)                                                                                 \
	MOVE(RING_READ, name, (int, void *, size_t), (int fd, void *to, size_t n), (fd, to, n), to)
#define WRITE(name)                                                                                \
	MOVE(RING_WRITE, name, (int, const void *, size_t), (int fd, const void *from, size_t n),  \
	     (fd, from, n), from)
#define VECTOR(kind, name)                                                                         \
	WRAP_CALL(ssize_t, name, (int, const struct iovec *, int),                                 \
		  (int fd, const struct iovec *v, int n), (fd, v, n),                              \
		  uint64_t w = fd_word_at_position(fd),                                            \
		  wrap_moved_vector(kind, fd, w, begin, v, (uint64_t)n, RESULT))
READ(read)
READ(__read)
MOVE(RING_READ, __read_chk, (int, void *, size_t, size_t),
     (int fd, void *to, size_t n, size_t room), (fd, to, n, room), to)
VECTOR(RING_READ, readv)
WRITE(write)
WRITE(__write)
VECTOR(RING_WRITE, writev)
TRANSFER_OF(int, RING_WRITE, vdprintf, (int, const char *, va_list),
	    (int fd, const char *format, va_list ap), (fd, format, ap), r < 0 ? 0 : (uint64_t)r)
TRANSFER_OF(int, RING_WRITE, __vdprintf_chk, (int, int, const char *, va_list),
	    (int fd, int how, const char *format, va_list ap), (fd, how, format, ap),
	    r < 0 ? 0 : (uint64_t)r)
WRAP_FORMAT(dprintf, (int fd, const char *format, ...), vdprintf(fd, format, ap))
WRAP_FORMAT(__dprintf_chk, (int fd, int how, const char *format, ...),
	    __vdprintf_chk(fd, how, format, ap))

#define PREAD(name, off)                                                                           \
	TRANSFER_AT(RING_PREAD, name, (int, void *, size_t, off),                                  \
		    (int fd, void *to, size_t n, off at), (fd, to, n, at), n)
#define PREAD_CHK(name, off)                                                                       \
	TRANSFER_AT(RING_PREAD, name, (int, void *, size_t, off, size_t),                          \
		    (int fd, void *to, size_t n, off at, size_t room), (fd, to, n, at, room), n)
#define PWRITE(name, off)                                                                          \
	TRANSFER_AT(RING_PWRITE, name, (int, const void *, size_t, off),                           \
		    (int fd, const void *from, size_t n, off at), (fd, from, n, at), n)
#define VECTOR_AT(kind, name, off)                                                                 \
	TRANSFER_AT(kind, name, (int, const struct iovec *, int, off),                             \
		    (int fd, const struct iovec *v, int n, off at), (fd, v, n, at),                \
		    vector_bytes(v, (uint64_t)n, r))
PREAD(pread, off_t)
PREAD(pread64, off64_t)
PREAD(__pread64, off64_t)
PREAD_CHK(__pread_chk, off_t)
PREAD_CHK(__pread64_chk, off64_t)
VECTOR_AT(RING_PREAD, preadv, off_t)
VECTOR_AT(RING_PREAD, preadv64, off64_t)
TRANSFER_2(preadv2, false)
TRANSFER_2(preadv64v2, false)
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)
PWRITE(__pwrite64, off64_t)
VECTOR_AT(RING_PWRITE, pwritev, off_t)
VECTOR_AT(RING_PWRITE, pwritev64, off64_t)
TRANSFER_2(pwritev2, true)
TRANSFER_2(pwritev64v2, true)

/* ---- from one file to another ---- */

void wrap_copied(int in, int out, int64_t at_in, int64_t at_out, uint64_t asked, int64_t begin,
		 int64_t result, bool counted)
{
	uint64_t from = fd_word(in), to = fd_word(out);

	if (counted && result > 0)
		note_counted(result, result);
	if (FD_KIND(from) == RING_EXCLUDED && FD_KIND(to) == RING_EXCLUDED)
		note_excluded(0, 0);
	else
		note(RING_COPY, begin, FD_SERIAL(from), FD_SERIAL(to), at_in, at_out, asked,
		     result);
	/* they move positions, as another process could */
	fd_doubt();
}

/* Where a copy began; -1: not known. `at`: the pointer that is passed. */
#define POSITION(at, fd) ((at) ? -1 : raw(SYS_lseek, fd, 0, SEEK_CUR))
#define BEGAN(at, position)                                                                        \
	((at) && r >= 0 ? (int64_t) * (at)-r : (position) < 0 ? -1 : (int64_t)(position))

#define SENDFILE(name, off)                                                                        \
	WRAP_CALL(ssize_t, name, (int, int, off *, size_t), (int out, int in, off *at, size_t n),  \
		  (out, in, at, n), long from = POSITION(at, in),                                  \
		  wrap_copied(in, out, BEGAN(at, from), -1, n, begin, RESULT, true))
SENDFILE(sendfile, off_t)
SENDFILE(sendfile64, off64_t)

#define COPY(name, counted)                                                                        \
	WRAP_CALL(ssize_t, name, (int, off64_t *, int, off64_t *, size_t, unsigned),               \
		  (int in, off64_t *at_in, int out, off64_t *at_out, size_t n, unsigned flags),    \
		  (in, at_in, out, at_out, n, flags), long from = POSITION(at_in, in);             \
		  long to = POSITION(at_out, out),                                                 \
		  wrap_copied(in, out, BEGAN(at_in, from), BEGAN(at_out, to), n, begin, RESULT,    \
			      counted))
COPY(copy_file_range, true)
COPY(splice, false)

/* Between pipes, and from memory: what goes into a pipe. The kernel counts none of it. */
WRAP_CALL(ssize_t, tee, (int, int, size_t, unsigned), (int in, int fd, size_t n, unsigned flags),
	  (in, fd, n, flags), uint64_t w = fd_word(fd),
	  note_transfer(RING_SEND, w, begin, n, 0, RESULT))
WRAP_CALL(ssize_t, vmsplice, (int, const struct iovec *, size_t, unsigned),
	  (int fd, const struct iovec *v, size_t n, unsigned flags), (fd, v, n, flags),
	  uint64_t w = fd_word(fd);
	  bool takes = (raw(SYS_fcntl, fd, F_GETFL) & O_ACCMODE) == O_RDONLY,
	  note_transfer(takes ? RING_RECEIVE : RING_SEND, w, begin, vector_bytes(v, n, r), 0,
			RESULT))

/* ---- positions ---- */

static void sought(uint64_t w, int64_t begin, int64_t result, int64_t at, int whence)
{
	if (FD_KIND(w) == RING_EXCLUDED)
		note_excluded(0, 0);
	else
		note(RING_SEEK, begin, FD_SERIAL(w), result, at, N(whence));
}

#define SEEK(name, off)                                                                            \
	WRAP_CALL(off, name, (int, off, int), (int fd, off at, int whence), (fd, at, whence),      \
		  uint64_t w = fd_word(fd), sought(w, begin, RESULT, at, whence))
SEEK(lseek, off_t)
SEEK(lseek64, off64_t)
SEEK(__lseek, off_t)

/* ---- questions about files ---- */

static void asked_name(int dirfd, const char *path, int64_t begin, int64_t result, unsigned mode)
{
	uint64_t base;

	(void)at_base(dirfd, path, &base);
	if (name_excluded(path, base))
		note_excluded(0, 0);
	else
		note(RING_STAT, begin, BASE(base), path, result, N(kind_of_mode(mode)));
}

static void asked_descriptor(int fd, int64_t begin, int64_t result)
{
	uint64_t w = fd_word(fd);

	if (FD_KIND(w) == RING_EXCLUDED || !w)
		note_excluded(0, 0);
	else
		note(RING_FSTAT, begin, FD_SERIAL(w), result);
}

static void wrap_statted(int dirfd, const char *path, int64_t begin, int64_t result, unsigned mode)
{
	path = wrap_name(path, result);
	if (dirfd >= 0 && (!path || !*path))
		asked_descriptor(dirfd, begin, result);
	else
		asked_name(dirfd, path, begin, result, mode);
}

/* struct stat and struct stat64 are the same on 64-bit machines */
#define STAT(name, type, params, args, dirfd, path)                                                \
	WRAP int name params                                                                       \
	{                                                                                          \
		REAL_V(int, name, type);                                                           \
		WRAP_BODY(int, real ? real args : no_call(), ,                                     \
			  wrap_statted(dirfd, path, begin, r < 0 ? N(-errno) : N(s->st_size),      \
				       r < 0 ? 0 : s->st_mode));                                   \
	}
/* `st`: the structure, whose name is part of the names. */
#define STAT_FAMILY(st, bits)                                                                      \
	STAT(stat##bits, (const char *, struct st *), (const char *path, struct st *s), (path, s), \
	     AT_FDCWD, path)                                                                       \
	STAT(lstat##bits, (const char *, struct st *), (const char *path, struct st *s),           \
	     (path, s), AT_FDCWD, path)                                                            \
	STAT(fstat##bits, (int, struct st *), (int fd, struct st *s), (fd, s), fd, "")             \
	STAT(fstatat##bits, (int, const char *, struct st *, int),                                 \
	     (int dir, const char *path, struct st *s, int flags), (dir, path, s, flags), dir,     \
	     path)                                                                                 \
	STAT(__xstat##bits, (int, const char *, struct st *),                                      \
	     (int v, const char *path, struct st *s), (v, path, s), AT_FDCWD, path)                \
	STAT(__lxstat##bits, (int, const char *, struct st *),                                     \
	     (int v, const char *path, struct st *s), (v, path, s), AT_FDCWD, path)                \
	STAT(__fxstat##bits, (int, int, struct st *), (int v, int fd, struct st *s), (v, fd, s),   \
	     fd, "")                                                                               \
	STAT(__fxstatat##bits, (int, int, const char *, struct st *, int),                         \
	     (int v, int dir, const char *path, struct st *s, int flags),                          \
	     (v, dir, path, s, flags), dir, path)
STAT_FAMILY(stat, )
STAT_FAMILY(stat64, 64)

WRAP_CALL(int, statx, (int, const char *, int, unsigned, struct statx *),
	  (int dir, const char *path, int flags, unsigned mask, struct statx *s),
	  (dir, path, flags, mask, s), ,
	  wrap_statted(dir, path, begin, r < 0 ? N(-errno) : N(s->stx_size),
		       r < 0 ? 0 : s->stx_mode))

static void asked_access(int dirfd, const char *path, int64_t begin, int64_t result)
{
	uint64_t base;

	path = wrap_name(path, result);
	(void)at_base(dirfd, path, &base);
	if (name_excluded(path, base))
		note_excluded(0, 0);
	else
		note(RING_ACCESS, begin, BASE(base), path, result);
}

#define ACCESS(ret, name, type, params, args, dirfd)                                               \
	WRAP_CALL(ret, name, type, params, args, , asked_access(dirfd, path, begin, RESULT))
#define ACCESS_PATH(name)                                                                          \
	ACCESS(int, name, (const char *, int), (const char *path, int how), (path, how), AT_FDCWD)
ACCESS_PATH(access)
ACCESS_PATH(eaccess)
ACCESS_PATH(euidaccess)
ACCESS(int, faccessat, (int, const char *, int, int),
       (int dir, const char *path, int how, int flags), (dir, path, how, flags), dir)
ACCESS(ssize_t, readlink, (const char *, char *, size_t), (const char *path, char *to, size_t n),
       (path, to, n), AT_FDCWD)
ACCESS(ssize_t, readlinkat, (int, const char *, char *, size_t),
       (int dir, const char *path, char *to, size_t n), (dir, path, to, n), dir)

/* ---- listings ---- */

WRAP_CALL(DIR *, opendir, (const char *), (const char *path), (path), ,
	  opened(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, begin, r ? dirfd(r) : -1, errno))

WRAP int closedir(DIR *d)
{
	REAL(int, closedir, DIR *);

	if (d && recording())
		wrap_closing(dirfd(d), now_ns());
	return real(d);
}

static void listed(int fd, int64_t begin, int64_t result)
{
	uint64_t w = fd_word(fd);

	if (FD_KIND(w) == RING_EXCLUDED || !w)
		note_excluded(0, 0);
	else
		note(RING_LIST, begin, FD_SERIAL(w), result);
}

#define READDIR(name, type)                                                                        \
	WRAP_CALL(struct type *, name, (DIR *), (DIR * d), (d), ,                                  \
		  listed(dirfd(d), begin, r ? 1 : 0))
READDIR(readdir, dirent)
READDIR(readdir64, dirent64)

WRAP_CALL(ssize_t, getdents64, (int, void *, size_t), (int fd, void *to, size_t n), (fd, to, n), ,
	  listed(fd, begin, RESULT))

/* The whole of a folder in one call. */
static void scanned(const char *path, int64_t begin, int64_t result)
{
	uint64_t serial = serial_next();

	path = wrap_name(path, result);
	if (name_excluded(path, 0)) {
		note_excluded(0, 0);
		return;
	}
	note(RING_OPEN, begin, N(0), path, N(O_RDONLY | O_DIRECTORY),
	     result < 0 ? result : N(INT32_MAX), serial, N(RING_FOLDER), N(-1));
	if (result >= 0) {
		note(RING_LIST, now_ns(), serial, result);
		note(RING_CLOSE, now_ns(), serial, N(0));
	}
}

#define SCANDIR(name, type)                                                                        \
	WRAP_CALL(int, name,                                                                       \
		  (const char *, struct type ***, int (*)(const struct type *),                    \
		   int (*)(const struct type **, const struct type **)),                           \
		  (const char *path, struct type ***out, int (*keep)(const struct type *),         \
		   int (*order)(const struct type **, const struct type **)),                      \
		  (path, out, keep, order), , scanned(path, begin, RESULT))
SCANDIR(scandir, dirent)
SCANDIR(scandir64, dirent64)

/* ---- advice, sync, size ---- */

#define DESCRIPTOR(ret, name, type, params, args, ...)                                             \
	WRAP_CALL(ret, name, type, params, args, uint64_t w = fd_word(fd),                         \
		  FD_KIND(w) == RING_EXCLUDED ? note_excluded(0, 0) : note(__VA_ARGS__))
DESCRIPTOR(int, posix_fadvise, (int, off_t, off_t, int), (int fd, off_t at, off_t n, int advice),
	   (fd, at, n, advice), RING_ADVISE, begin, FD_SERIAL(w), N(at), N(n), N(advice))
DESCRIPTOR(int, posix_fadvise64, (int, off64_t, off64_t, int),
	   (int fd, off64_t at, off64_t n, int advice), (fd, at, n, advice), RING_ADVISE, begin,
	   FD_SERIAL(w), N(at), N(n), N(advice))
DESCRIPTOR(ssize_t, readahead, (int, off64_t, size_t), (int fd, off64_t at, size_t n), (fd, at, n),
	   RING_ADVISE, begin, FD_SERIAL(w), N(at), N(n), N(3 /* will need */))
DESCRIPTOR(int, fsync, (int), (int fd), (fd), RING_SYNC, begin, FD_SERIAL(w), RESULT, N(0))
DESCRIPTOR(int, fdatasync, (int), (int fd), (fd), RING_SYNC, begin, FD_SERIAL(w), RESULT, N(1))
DESCRIPTOR(int, syncfs, (int), (int fd), (fd), RING_SYNC, begin, FD_SERIAL(w), RESULT, N(3))
DESCRIPTOR(int, sync_file_range, (int, off64_t, off64_t, unsigned),
	   (int fd, off64_t at, off64_t n, unsigned flags), (fd, at, n, flags), RING_SYNC, begin,
	   FD_SERIAL(w), RESULT, N(2))
DESCRIPTOR(int, ftruncate, (int, off_t), (int fd, off_t n), (fd, n), RING_FTRUNCATE, begin,
	   FD_SERIAL(w), N(n), RESULT)
DESCRIPTOR(int, ftruncate64, (int, off64_t), (int fd, off64_t n), (fd, n), RING_FTRUNCATE, begin,
	   FD_SERIAL(w), N(n), RESULT)

/* The size that is left, as ftruncate(2) would. `result` 0: it was done. */
static void allocated(int fd, int64_t begin, int64_t result, int mode)
{
	uint64_t w = fd_word(fd);
	struct fd_facts facts;

	if (mode & 1 /* FALLOC_FL_KEEP_SIZE */ || FD_KIND(w) == RING_EXCLUDED ||
	    !fd_facts(fd, &facts))
		note_excluded(0, 0);
	else
		note(RING_FTRUNCATE, begin, FD_SERIAL(w), facts.size, result);
}

#define ALLOCATE(name, off)                                                                        \
	WRAP_CALL(int, name, (int, int, off, off), (int fd, int mode, off at, off n),              \
		  (fd, mode, at, n), , allocated(fd, begin, RESULT, mode))
#define ALLOCATE_POSIX(name, off)                                                                  \
	WRAP_CALL(int, name, (int, off, off), (int fd, off at, off n), (fd, at, n), ,              \
		  allocated(fd, begin, -r, 0))
ALLOCATE(fallocate, off_t)
ALLOCATE(fallocate64, off64_t)
ALLOCATE_POSIX(posix_fallocate, off_t)
ALLOCATE_POSIX(posix_fallocate64, off64_t)

/* ---- names ---- */

#define NAMED(name, type, params, args, dirfd, ...)                                                \
	WRAP_CALL(int, name, type, params, args, uint64_t base, path = wrap_name(path, RESULT);    \
		  (void)at_base(dirfd, path, &base);                                               \
		  name_excluded(path, base) ? note_excluded(0, 0) : note(__VA_ARGS__))
#define PATH BASE(base), path
#define REMOVE(name)                                                                               \
	NAMED(name, (const char *), (const char *path), (path), AT_FDCWD, RING_UNLINK, begin,      \
	      PATH, RESULT)
REMOVE(unlink)
REMOVE(rmdir)
REMOVE(remove)
NAMED(unlinkat, (int, const char *, int), (int dir, const char *path, int flags),
      (dir, path, flags), dir, RING_UNLINK, begin, PATH, RESULT)
NAMED(mkdir, (const char *, mode_t), (const char *path, mode_t mode), (path, mode), AT_FDCWD,
      RING_MKDIR, begin, PATH, RESULT)
NAMED(mkdirat, (int, const char *, mode_t), (int dir, const char *path, mode_t mode),
      (dir, path, mode), dir, RING_MKDIR, begin, PATH, RESULT)
#define TRUNCATE(name, off)                                                                        \
	NAMED(name, (const char *, off), (const char *path, off n), (path, n), AT_FDCWD,           \
	      RING_TRUNCATE, begin, PATH, N(n), RESULT)
TRUNCATE(truncate, off_t)
TRUNCATE(truncate64, off64_t)

/* As shm_open has it, the name is below /dev/shm. */
static void removed_memory(const char *path, int64_t begin, int64_t result)
{
	static const char folder[] = "/dev/shm/";
	char name[sizeof(folder) + NAME_MAX];
	size_t n = sizeof(folder) - 1;

	path = wrap_name(path, result);
	while (path && *path == '/')
		path++;
	memcpy(name, folder, n);
	while (path && *path && n < sizeof(name) - 1)
		name[n++] = *path++;
	name[n] = '\0';
	note(RING_UNLINK, begin, N(0), name, result);
}

WRAP_CALL(int, shm_unlink, (const char *), (const char *path), (path), ,
	  removed_memory(path, begin, RESULT))

static void renamed(unsigned kind, int dir, const char *path, int to_dir, const char *to,
		    int64_t begin, int64_t result)
{
	uint64_t base, to_base;

	path = wrap_name(path, result);
	to = wrap_name(to, result);
	(void)at_base(dir, path, &base);
	(void)at_base(to_dir, to, &to_base);
	if (name_excluded(path, base) && name_excluded(to, to_base))
		note_excluded(0, 0);
	else
		note(kind, begin, PATH, BASE(to_base), to, result);
}

#define RENAME(name, type, params, args, dir, to_dir)                                              \
	WRAP_CALL(int, name, type, params, args, ,                                                 \
		  renamed(RING_RENAME, dir, path, to_dir, to, begin, RESULT))
RENAME(rename, (const char *, const char *), (const char *path, const char *to), (path, to),
       AT_FDCWD, AT_FDCWD)
RENAME(renameat, (int, const char *, int, const char *),
       (int from, const char *path, int into, const char *to), (from, path, into, to), from, into)
RENAME(renameat2, (int, const char *, int, const char *, unsigned),
       (int from, const char *path, int into, const char *to, unsigned flags),
       (from, path, into, to, flags), from, into)
WRAP_CALL(int, link, (const char *, const char *), (const char *path, const char *to), (path, to), ,
	  renamed(RING_LINK, AT_FDCWD, path, AT_FDCWD, to, begin, RESULT))

/* A file that has no name may get one. */
static __attribute__((noinline)) void linked(int dir, const char *path, int to_dir, const char *to,
					     int64_t begin, int64_t result)
{
	struct fd_facts facts;
	int fd = dir;
	char *name;

	/* without the privilege for AT_EMPTY_PATH, the kernel does not look at the names */
	if (result == -ENOENT && !wrap_name(path, -EFAULT))
		path = NULL;
	if (result == -ENOENT && !wrap_name(to, -EFAULT))
		to = NULL;
	if (result < 0 || (*path && !is_indirect(path, 0))) {
		renamed(RING_LINK, dir, path, to_dir, to, begin, result);
		return;
	}
	if (*path) {
		fd = 0;
		for (const char *p = strrchr(path, '/') + 1; *p >= '0' && *p <= '9'; p++)
			fd = fd * 10 + *p - '0';
	}
	if (!fd_facts(fd, &facts))
		return;
	name = scratch_take();
	if (name) {
		(void)fd_name(fd, facts.inode, name);
		renamed(RING_RENAME, AT_FDCWD, name, to_dir, to, begin, 0);
	}
	scratch_give(name);
}

WRAP_CALL(int, linkat, (int, const char *, int, const char *, int),
	  (int dir, const char *path, int to_dir, const char *to, int flags),
	  (dir, path, to_dir, to, flags), , linked(dir, path, to_dir, to, begin, RESULT))

static void moved(bool by_name, const char *path, int64_t begin, int64_t result)
{
	char *cwd;

	if (by_name)
		note(RING_CHDIR, begin, N(0), wrap_name(path, result), result);
	if (result < 0)
		return;
	cwd = scratch_take();
	if (cwd && raw(SYS_getcwd, cwd, FD_NAME_MAX) > 0 && cwd[0] == '/') {
		names_cwd(cwd);
		if (!by_name)
			note(RING_CHDIR, begin, N(0), cwd, result);
	}
	scratch_give(cwd);
}

WRAP_CALL(int, chdir, (const char *), (const char *path), (path), ,
	  moved(true, path, begin, RESULT))
WRAP_CALL(int, fchdir, (int), (int fd), (fd), , moved(false, NULL, begin, RESULT))
