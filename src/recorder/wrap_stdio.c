/* Streams. What a call asks of the kernel does not pass through read(2) and write(2) of this
 * library: libc calls its own. It follows from the buffer of the stream before and after. */
#include "recorder/wrap.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#undef getc
#undef putc
#undef putchar
#undef getchar
#undef fgetc
#undef fputc
#undef getc_unlocked
#undef putc_unlocked
#undef putchar_unlocked
#undef getchar_unlocked
#undef fread_unlocked
#undef fwrite_unlocked

/* Bytes that were read ahead, and bytes that are still to be written. */
struct fill {
	int64_t ahead, behind, begin;
};

static int64_t ahead_of(FILE *f)
{
	return f->_IO_read_end > f->_IO_read_ptr ? f->_IO_read_end - f->_IO_read_ptr : 0;
}

static int64_t behind_of(FILE *f)
{
	return f->_IO_write_ptr > f->_IO_write_base ? f->_IO_write_ptr - f->_IO_write_base : 0;
}

/* A stream with a descriptor; those of fmemopen(3) and of wide characters have none, or other
 * buffers. */
static bool followed(FILE *f)
{
	return f && f->_fileno >= 0 && f->_mode <= 0;
}

static struct fill before(FILE *f)
{
	return (struct fill){ahead_of(f), behind_of(f), now_ns()};
}

static void after_read(FILE *f, struct fill was, int64_t got, int64_t asked)
{
	int64_t read = got - was.ahead + ahead_of(f);

	if (read > 0 || (got == 0 && was.ahead == 0))
		note_transfer(RING_STDIO_READ, fd_word_at_position(f->_fileno), was.begin,
			      (uint64_t)(asked > read ? asked : read), 0, read > 0 ? read : 0);
	if (was.behind > behind_of(f))
		note_transfer(RING_STDIO_WRITE, fd_word(f->_fileno), was.begin,
			      (uint64_t)was.behind, 0, was.behind - behind_of(f));
}

static void after_write(FILE *f, struct fill was, int64_t put)
{
	int64_t written = was.behind + put - behind_of(f);

	if (put >= 0 && written > 0)
		note_transfer(RING_STDIO_WRITE, fd_word(f->_fileno), was.begin, (uint64_t)written,
			      0, written);
}

/* ---- open and close ---- */

static int flags_of(const char *mode)
{
	int flags = *mode == 'r' ? O_RDONLY : *mode == 'w' ? O_CREAT | O_TRUNC : O_CREAT | O_APPEND;

	if (strchr(mode, '+'))
		return flags | O_RDWR;
	return *mode == 'r' ? flags : flags | O_WRONLY;
}

#define FOPEN(name)                                                                                \
	WRAP FILE *name(const char *path, const char *mode)                                        \
	{                                                                                          \
		REAL(FILE *, name, const char *, const char *);                                    \
		int64_t begin;                                                                     \
		FILE *f;                                                                           \
		if (!recording())                                                                  \
			return real(path, mode);                                                   \
		begin = now_ns();                                                                  \
		f = real(path, mode);                                                              \
		KEEP_ERRNO(wrap_opened(AT_FDCWD, path, flags_of(mode), begin,                      \
				       f ? f->_fileno : -errno));                                  \
		return f;                                                                          \
	}
FOPEN(fopen)
FOPEN(fopen64)

#define FREOPEN(name)                                                                              \
	WRAP FILE *name(const char *path, const char *mode, FILE *f)                               \
	{                                                                                          \
		REAL(FILE *, name, const char *, const char *, FILE *);                            \
		int64_t begin;                                                                     \
		FILE *g;                                                                           \
		if (!recording())                                                                  \
			return real(path, mode, f);                                                \
		begin = now_ns();                                                                  \
		if (followed(f))                                                                   \
			wrap_closing(f->_fileno, begin);                                           \
		g = real(path, mode, f);                                                           \
		if (path)                                                                          \
			KEEP_ERRNO(wrap_opened(AT_FDCWD, path, flags_of(mode), begin,              \
					       g ? g->_fileno : -errno));                          \
		return g;                                                                          \
	}
FREOPEN(freopen)
FREOPEN(freopen64)

/* What calls that are not wrapped, as fscanf(3), read of a file: by its position. */
static void settle(FILE *f)
{
	struct fill was = before(f);

	if (was.behind > 0)
		note_transfer(RING_STDIO_WRITE, fd_word(f->_fileno), was.begin,
			      (uint64_t)was.behind, 0, was.behind);
}

WRAP int fclose(FILE *f)
{
	REAL(int, fclose, FILE *);

	if (recording() && followed(f)) {
		settle(f);
		wrap_closing(f->_fileno, now_ns());
	}
	return real(f);
}

WRAP int pclose(FILE *f)
{
	REAL(int, pclose, FILE *);
	int r;

	if (recording() && followed(f)) {
		settle(f);
		wrap_closing(f->_fileno, now_ns());
	}
	r = real(f);
	fd_doubt();
	return r;
}

#define FFLUSH(name)                                                                               \
	WRAP int name(FILE *f)                                                                     \
	{                                                                                          \
		REAL(int, name, FILE *);                                                           \
		struct fill was;                                                                   \
		int r;                                                                             \
		if (!f && recording()) {                                                           \
			if (followed(stdout))                                                      \
				settle(stdout);                                                    \
			return real(f);                                                            \
		}                                                                                  \
		if (!f || !recording() || !followed(f))                                            \
			return real(f);                                                            \
		was = before(f);                                                                   \
		r = real(f);                                                                       \
		KEEP_ERRNO(after_write(f, was, 0));                                                \
		return r;                                                                          \
	}
FFLUSH(fflush)
FFLUSH(fflush_unlocked)

/* libc moves to the begin of a block and reads that, unless the buffer has the place. */
static void sought(FILE *f, uint64_t w, struct fill was, int64_t before_at, int64_t at, int whence)
{
	int64_t now = raw(SYS_lseek, f->_fileno, 0, SEEK_CUR);
	int64_t read = f->_IO_read_end > f->_IO_read_base ? f->_IO_read_end - f->_IO_read_base : 0;

	after_write(f, was, 0);
	if (now == before_at)
		read = 0;
	if (FD_KIND(w) == RING_EXCLUDED)
		note_excluded(0, 0);
	else
		note(RING_SEEK, was.begin, FD_SERIAL(w), now < 0 ? now : now - read, at, N(whence));
	if (read > 0)
		note_transfer(RING_STDIO_READ, w, now_ns(), (uint64_t)read, 0, read);
}

#define FSEEK(name, off)                                                                           \
	WRAP int name(FILE *f, off at, int whence)                                                 \
	{                                                                                          \
		REAL(int, name, FILE *, off, int);                                                 \
		int64_t position;                                                                  \
		struct fill was;                                                                   \
		uint64_t w;                                                                        \
		int r;                                                                             \
		if (!recording() || !followed(f))                                                  \
			return real(f, at, whence);                                                \
		w = fd_word(f->_fileno);                                                           \
		position = raw(SYS_lseek, f->_fileno, 0, SEEK_CUR);                                \
		was = before(f);                                                                   \
		r = real(f, at, whence);                                                           \
		KEEP_ERRNO(sought(f, w, was, position, N(at), whence));                            \
		return r;                                                                          \
	}
FSEEK(fseek, long)
FSEEK(fseeko, off_t)
FSEEK(fseeko64, off64_t)

WRAP void rewind(FILE *f)
{
	(void)fseek(f, 0, SEEK_SET);
	clearerr(f);
}

/* ---- read ---- */

#define FREAD(name, type, params, args)                                                            \
	WRAP size_t name params                                                                    \
	{                                                                                          \
		REAL_V(size_t, name, type);                                                        \
		struct fill was;                                                                   \
		size_t r;                                                                          \
		if (!recording() || !followed(f) || ahead_of(f) >= (int64_t)(size * n))            \
			return real args;                                                          \
		(void)fd_word_at_position(f->_fileno);                                             \
		was = before(f);                                                                   \
		r = real args;                                                                     \
		/* a part of an element that was read at the end of the file is not in r */        \
		KEEP_ERRNO(after_read(f, was, (int64_t)(r * size), (int64_t)(size * n)));          \
		return r;                                                                          \
	}
FREAD(fread, (void *, size_t, size_t, FILE *), (void *to, size_t size, size_t n, FILE *f),
      (to, size, n, f))
FREAD(fread_unlocked, (void *, size_t, size_t, FILE *), (void *to, size_t size, size_t n, FILE *f),
      (to, size, n, f))
FREAD(__fread_chk, (void *, size_t, size_t, size_t, FILE *),
      (void *to, size_t room, size_t size, size_t n, FILE *f), (to, room, size, n, f))
FREAD(__fread_unlocked_chk, (void *, size_t, size_t, size_t, FILE *),
      (void *to, size_t room, size_t size, size_t n, FILE *f), (to, room, size, n, f))

#define FGETS(name, type, params, args)                                                            \
	WRAP char *name params                                                                     \
	{                                                                                          \
		REAL_V(char *, name, type);                                                        \
		struct fill was;                                                                   \
		char *r;                                                                           \
		if (!recording() || !followed(f))                                                  \
			return real args;                                                          \
		was = before(f);                                                                   \
		r = real args;                                                                     \
		KEEP_ERRNO(after_read(f, was, r ? (int64_t)strlen(r) : 0, 0));                     \
		return r;                                                                          \
	}
FGETS(fgets, (char *, int, FILE *), (char *to, int n, FILE *f), (to, n, f))
FGETS(fgets_unlocked, (char *, int, FILE *), (char *to, int n, FILE *f), (to, n, f))
FGETS(__fgets_chk, (char *, size_t, int, FILE *), (char *to, size_t room, int n, FILE *f),
      (to, room, n, f))
FGETS(__fgets_unlocked_chk, (char *, size_t, int, FILE *), (char *to, size_t room, int n, FILE *f),
      (to, room, n, f))

#define GETLINE(name, type, params, args)                                                          \
	WRAP ssize_t name params                                                                   \
	{                                                                                          \
		REAL_V(ssize_t, name, type);                                                       \
		struct fill was;                                                                   \
		ssize_t r;                                                                         \
		if (!recording() || !followed(f))                                                  \
			return real args;                                                          \
		was = before(f);                                                                   \
		r = real args;                                                                     \
		KEEP_ERRNO(after_read(f, was, r > 0 ? r : 0, 0));                                  \
		return r;                                                                          \
	}
GETLINE(getline, (char **, size_t *, FILE *), (char **to, size_t *n, FILE *f), (to, n, f))
GETLINE(getdelim, (char **, size_t *, int, FILE *), (char **to, size_t *n, int end, FILE *f),
	(to, n, end, f))
GETLINE(__getdelim, (char **, size_t *, int, FILE *), (char **to, size_t *n, int end, FILE *f),
	(to, n, end, f))

#define GETC(name)                                                                                 \
	WRAP int name(FILE *f)                                                                     \
	{                                                                                          \
		REAL(int, name, FILE *);                                                           \
		struct fill was;                                                                   \
		int r;                                                                             \
		if (ahead_of(f) > 0 || !recording() || !followed(f))                               \
			return real(f);                                                            \
		was = before(f);                                                                   \
		r = real(f);                                                                       \
		KEEP_ERRNO(after_read(f, was, r >= 0, 1));                                         \
		return r;                                                                          \
	}
GETC(fgetc)
GETC(getc)
GETC(_IO_getc)
GETC(fgetc_unlocked)
GETC(getc_unlocked)
GETC(__uflow)

WRAP int getchar(void)
{
	return getc(stdin);
}

/* Fills the buffer and takes nothing of it. */
WRAP int __underflow(FILE *f)
{
	REAL(int, __underflow, FILE *);
	struct fill was;
	int r;

	if (ahead_of(f) > 0 || !recording() || !followed(f))
		return real(f);
	was = before(f);
	r = real(f);
	KEEP_ERRNO(after_read(f, was, 0, 1));
	return r;
}

/* ---- write ---- */

#define PUT(ret, name, type, params, args, stream, put)                                            \
	WRAP ret name params                                                                       \
	{                                                                                          \
		REAL_V(ret, name, type);                                                           \
		struct fill was;                                                                   \
		ret r;                                                                             \
		if (!recording() || !followed(stream))                                             \
			return real args;                                                          \
		was = before(stream);                                                              \
		r = real args;                                                                     \
		KEEP_ERRNO(after_write(stream, was, (int64_t)(put)));                              \
		return r;                                                                          \
	}
PUT(size_t, fwrite, (const void *, size_t, size_t, FILE *),
    (const void *from, size_t size, size_t n, FILE *f), (from, size, n, f), f, r *size)
PUT(size_t, fwrite_unlocked, (const void *, size_t, size_t, FILE *),
    (const void *from, size_t size, size_t n, FILE *f), (from, size, n, f), f, r *size)
PUT(int, fputs, (const char *, FILE *), (const char *s, FILE *f), (s, f), f, r < 0 ? 0 : strlen(s))
PUT(int, fputs_unlocked, (const char *, FILE *), (const char *s, FILE *f), (s, f), f,
    r < 0 ? 0 : strlen(s))
PUT(int, puts, (const char *), (const char *s), (s), stdout, r < 0 ? 0 : strlen(s) + 1)
PUT(int, fputc, (int, FILE *), (int c, FILE *f), (c, f), f, r >= 0)
PUT(int, putc, (int, FILE *), (int c, FILE *f), (c, f), f, r >= 0)
PUT(int, _IO_putc, (int, FILE *), (int c, FILE *f), (c, f), f, r >= 0)
PUT(int, fputc_unlocked, (int, FILE *), (int c, FILE *f), (c, f), f, r >= 0)
PUT(int, putc_unlocked, (int, FILE *), (int c, FILE *f), (c, f), f, r >= 0)
PUT(int, __overflow, (FILE *, int), (FILE * f, int c), (f, c), f, r >= 0)
PUT(int, putchar, (int), (int c), (c), stdout, r >= 0)
PUT(int, putchar_unlocked, (int), (int c), (c), stdout, r >= 0)
PUT(int, vfprintf, (FILE *, const char *, va_list), (FILE * f, const char *format, va_list ap),
    (f, format, ap), f, r > 0 ? r : 0)
PUT(int, __vfprintf_chk, (FILE *, int, const char *, va_list),
    (FILE * f, int how, const char *format, va_list ap), (f, how, format, ap), f, r > 0 ? r : 0)
PUT(int, vprintf, (const char *, va_list), (const char *format, va_list ap), (format, ap), stdout,
    r > 0 ? r : 0)
PUT(int, __vprintf_chk, (int, const char *, va_list), (int how, const char *format, va_list ap),
    (how, format, ap), stdout, r > 0 ? r : 0)

#define PRINT(name, params, call)                                                                  \
	WRAP int name params                                                                       \
	{                                                                                          \
		va_list ap;                                                                        \
		int r;                                                                             \
		va_start(ap, format);                                                              \
		r = call;                                                                          \
		va_end(ap);                                                                        \
		return r;                                                                          \
	}
PRINT(printf, (const char *format, ...), vprintf(format, ap))
PRINT(fprintf, (FILE * f, const char *format, ...), vfprintf(f, format, ap))
PRINT(__printf_chk, (int how, const char *format, ...), __vprintf_chk(how, format, ap))
PRINT(__fprintf_chk, (FILE * f, int how, const char *format, ...),
      __vfprintf_chk(f, how, format, ap))

/* What libc writes when the program ends, after this. */
void stdio_end(void)
{
	if (followed(stdout))
		settle(stdout);
}
