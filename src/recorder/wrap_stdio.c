/* Streams. What a call asks of the kernel does not pass through read(2) and write(2) of this
 * library: libc calls its own. It follows from the buffer of the stream before and after. */
#include "recorder/wrap.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
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
	int64_t ahead, behind;
	bool ended; /* the end of the file was met: libc does not fill the buffer again */
};

/* of FILE._flags */
#define UNBUFFERED 0x0002
#define ENDED 0x0010
#define BY_LINES 0x0200

#define DIRECT_LEAST 128     /* libc takes a smaller buffer for none */
#define CALL_MOST 0x7ffff000 /* bytes that Linux moves in one call */

static int64_t ahead_of(FILE *f)
{
	return f->_IO_read_end > f->_IO_read_ptr ? f->_IO_read_end - f->_IO_read_ptr : 0;
}

static int64_t behind_of(FILE *f)
{
	return f->_IO_write_ptr > f->_IO_write_base ? f->_IO_write_ptr - f->_IO_write_base : 0;
}

#define MAPPED 1 /* of _flags2: fopen(3) with mode "m" */

/* A stream with a descriptor that libc reads and writes; those of fmemopen(3) and of wide
 * characters have none, or other buffers. */
static bool followed(FILE *f)
{
	return f && f->_fileno >= 0 && f->_mode <= 0 && !(f->_flags2 & MAPPED);
}

/* The position must be known before the call moves it. */
static struct fill before(FILE *f)
{
	(void)fd_word_at_position(f->_fileno);
	return (struct fill){ahead_of(f), behind_of(f), f->_flags & ENDED};
}

static int64_t buffer_of(FILE *f)
{
	return f->_IO_buf_end > f->_IO_buf_base ? f->_IO_buf_end - f->_IO_buf_base : 1;
}

static void after_read(FILE *f, struct fill was, int64_t begin, int64_t got, int64_t asked)
{
	int64_t read = got - was.ahead + ahead_of(f);

	if (read > 0 || (got == 0 && was.ahead == 0 && !was.ended))
		note_transfer(RING_STDIO_READ, fd_word(f->_fileno), begin,
			      (uint64_t)(asked > read ? asked : read), 0, read > 0 ? read : 0);
	if (was.behind > behind_of(f))
		note_transfer(RING_STDIO_WRITE, fd_word(f->_fileno), begin, (uint64_t)was.behind, 0,
			      was.behind - behind_of(f));
}

/* fread(3) reads whole blocks to where the caller wants them, and the rest through the buffer: two
 * requests, and one that finds the end of the file where that comes first. Calls on what is no file
 * may return less at any time: there, only the sum is known. */
static void after_blocks(FILE *f, struct fill was, int64_t begin, int64_t got, int64_t asked)
{
	uint64_t w = fd_word(f->_fileno);
	int64_t left = got - was.ahead + ahead_of(f), want = asked - was.ahead,
		block = buffer_of(f), all = left, span = now_ns() - begin, done = 0;

	if (FD_KIND(w) != RING_REGULAR || was.behind > 0 || left < 0 || asked < 0) {
		after_read(f, was, begin, got, asked);
		return;
	}
	while (want > 0) {
		bool fills = want < block;
		int64_t ask = fills ? block : block < DIRECT_LEAST ? want : want - want % block;
		int64_t n = ask < left ? ask : left;

		if (fills && was.ended)
			break;
		n = n < CALL_MOST ? n : CALL_MOST;
		done += n;
		/* the time of the call, by bytes */
		note_ended(RING_STDIO_READ, w,
			   begin + (int64_t)((double)span * (double)(done - n) /
					     (double)(all > 0 ? all : 1)),
			   begin + (all > 0 ? (int64_t)((double)span * (double)done / (double)all)
					    : span),
			   (uint64_t)ask, 0, n);
		if (n == 0)
			break;
		left -= n;
		want -= n < want ? n : want;
	}
}

static void after_write(FILE *f, struct fill was, int64_t begin, int64_t put)
{
	int64_t written = was.behind + put - behind_of(f);

	if (put >= 0 && written > 0)
		note_transfer(RING_STDIO_WRITE, fd_word(f->_fileno), begin, (uint64_t)written, 0,
			      written);
}

/* fwrite(3) fills the buffer and writes that; then whole blocks from where they are. */
static void after_put_blocks(FILE *f, struct fill was, int64_t begin, int64_t put)
{
	int64_t written = was.behind + put - behind_of(f), block = buffer_of(f),
		span = now_ns() - begin;
	uint64_t w = fd_word(f->_fileno);

	if (put < 0 || was.behind <= 0 || was.behind > block || written <= block ||
	    block < DIRECT_LEAST || FD_KIND(w) != RING_REGULAR ||
	    (f->_flags & (UNBUFFERED | BY_LINES))) {
		after_write(f, was, begin, put);
		return;
	}
	note_ended(RING_STDIO_WRITE, w, begin,
		   begin + (int64_t)((double)span * (double)block / (double)written),
		   (uint64_t)block, 0, block);
	note_ended(RING_STDIO_WRITE, w,
		   begin + (int64_t)((double)span * (double)block / (double)written), begin + span,
		   (uint64_t)(written - block), 0, written - block);
}

/* ---- open and close ---- */

static int flags_of(const char *mode)
{
	int flags = *mode == 'r' ? O_RDONLY : *mode == 'w' ? O_CREAT | O_TRUNC : O_CREAT | O_APPEND;

	if (strchr(mode, '+'))
		return flags | O_RDWR;
	return *mode == 'r' ? flags : flags | O_WRONLY;
}

static void opened(FILE *f, const char *path, const char *mode, int64_t begin)
{
	struct fd_facts facts;
	uint64_t w;

	wrap_opened(AT_FDCWD, path, flags_of(mode), begin, f ? f->_fileno : -errno);
	if (!f || !(f->_flags2 & MAPPED) || !fd_facts(f->_fileno, &facts))
		return;
	w = fd_word(f->_fileno);
	if (facts.kind == RING_REGULAR && facts.size > 0 && FD_KIND(w) != RING_EXCLUDED)
		note(RING_MAP, begin, FD_SERIAL(w), N(0), facts.size, N(0), N(PROT_READ),
		     N(MAP_SHARED), N(-1));
}

#define FOPEN(name)                                                                                \
	WRAP_CALL(FILE *, name, (const char *, const char *),                                      \
		  (const char *path, const char *mode), (path, mode), ,                            \
		  opened(r, path, mode, begin))
FOPEN(fopen)
FOPEN(fopen64)

/* What is still to be written, and will be next. Returns the bytes. */
static int64_t settle(FILE *f)
{
	int64_t n = behind_of(f);

	if (n > 0)
		note_transfer(RING_STDIO_WRITE, fd_word(f->_fileno), now_ns(), (uint64_t)n, 0, n);
	return n;
}

/* libc's list of open streams, which it flushes when exit(3) ends. */
extern FILE *_IO_list_all __attribute__((weak));
extern void _IO_list_lock(void) __attribute__((weak));
extern void _IO_list_unlock(void) __attribute__((weak));

static uint64_t settle_all(void)
{
	uint64_t sum = 0;

	if (!&_IO_list_all || !_IO_list_lock || !_IO_list_unlock)
		return followed(stdout) ? (uint64_t)settle(stdout) : 0;
	_IO_list_lock();
	for (FILE *f = _IO_list_all; f; f = f->_chain)
		if (followed(f))
			sum += (uint64_t)settle(f);
	_IO_list_unlock();
	return sum;
}

uint64_t stdio_end(void)
{
	return settle_all();
}

static void closes(FILE *f)
{
	if (!recording() || !followed(f))
		return;
	(void)settle(f);
	wrap_closing(f->_fileno, now_ns());
}

#define FREOPEN(name)                                                                              \
	WRAP_CALL(FILE *, name, (const char *, const char *, FILE *),                              \
		  (const char *path, const char *mode, FILE *f), (path, mode, f), closes(f),       \
		  if (path) opened(r, path, mode, begin))
FREOPEN(freopen)
FREOPEN(freopen64)

#define TMPFILE(name)                                                                              \
	WRAP_CALL(FILE *, name, (void), (void), (), ,                                              \
		  wrap_opened(AT_FDCWD, "", O_RDWR | O_TMPFILE, begin, r ? r->_fileno : -errno))
TMPFILE(tmpfile)
TMPFILE(tmpfile64)

/* libc makes the pipe. */
WRAP_CALL(FILE *, popen, (const char *, const char *), (const char *command, const char *mode),
	  (command, mode), , if (r) fd_forget(r->_fileno))

WRAP int fclose(FILE *f)
{
	REAL(int, fclose, FILE *);

	closes(f);
	return real(f);
}

WRAP int pclose(FILE *f)
{
	REAL(int, pclose, FILE *);
	int r;

	closes(f);
	r = real(f);
	fd_doubt();
	return r;
}

/* Calls on a stream: as WRAP_BODY, with what its buffer held before in `was`. */
#define STREAM_BODY(ret, f, call, ...)                                                             \
	if (!followed(f))                                                                          \
		return call;                                                                       \
	WRAP_BODY(ret, call, struct fill was = before(f), __VA_ARGS__)
#define STREAM_CALL(ret, name, type, params, args, f, ...)                                         \
	WRAP ret name params                                                                       \
	{                                                                                          \
		REAL_V(ret, name, type);                                                           \
		STREAM_BODY(ret, f, real args, __VA_ARGS__);                                       \
	}

#define FFLUSH(name)                                                                               \
	WRAP int name(FILE *f)                                                                     \
	{                                                                                          \
		REAL(int, name, FILE *);                                                           \
		if (!f && recording())                                                             \
			(void)settle_all();                                                        \
		STREAM_BODY(int, f, real(f), after_write(f, was, begin, 0));                       \
	}
FFLUSH(fflush)
FFLUSH(fflush_unlocked)

/* libc moves to the begin of a block and reads that, unless the buffer has the place. */
static void sought(FILE *f, uint64_t w, struct fill was, int64_t begin, int64_t before_at,
		   int64_t at, int whence)
{
	int64_t now = raw(SYS_lseek, f->_fileno, 0, SEEK_CUR);
	int64_t read = f->_IO_read_end > f->_IO_read_base ? f->_IO_read_end - f->_IO_read_base : 0;

	after_write(f, was, begin, 0);
	if (now == before_at)
		read = 0;
	if (FD_KIND(w) == RING_EXCLUDED)
		note_excluded(0, 0);
	else
		note(RING_SEEK, begin, FD_SERIAL(w), now < 0 ? now : now - read, at, N(whence));
	if (read > 0)
		note_transfer(RING_STDIO_READ, w, now_ns(), (uint64_t)read, 0, read);
}

#define FSEEK(name, off)                                                                           \
	WRAP int name(FILE *f, off at, int whence)                                                 \
	{                                                                                          \
		REAL(int, name, FILE *, off, int);                                                 \
		if (!followed(f))                                                                  \
			return real(f, at, whence);                                                \
		WRAP_BODY(int, real(f, at, whence), uint64_t w = fd_word(f->_fileno);              \
			  int64_t position = raw(SYS_lseek, f->_fileno, 0, SEEK_CUR);              \
			  struct fill was = before(f),                                             \
			  sought(f, w, was, begin, position, N(at), whence));                      \
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

/* A part of an element that was read at the end of the file is not in r. */
#define FREAD(name, type, params, args)                                                            \
	WRAP size_t name params                                                                    \
	{                                                                                          \
		REAL_V(size_t, name, type);                                                        \
		if (!followed(f) || ahead_of(f) >= (int64_t)(size * n))                            \
			return real args;                                                          \
		WRAP_BODY(size_t, real args, (void)fd_word_at_position(f->_fileno);                \
			  struct fill was = before(f),                                             \
			  after_blocks(f, was, begin, (int64_t)(r * size), (int64_t)(size * n)));  \
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
	STREAM_CALL(char *, name, type, params, args, f,                                           \
		    after_read(f, was, begin, r ? (int64_t)strlen(r) : 0, 0))
FGETS(fgets, (char *, int, FILE *), (char *to, int n, FILE *f), (to, n, f))
FGETS(fgets_unlocked, (char *, int, FILE *), (char *to, int n, FILE *f), (to, n, f))
FGETS(__fgets_chk, (char *, size_t, int, FILE *), (char *to, size_t room, int n, FILE *f),
      (to, room, n, f))
FGETS(__fgets_unlocked_chk, (char *, size_t, int, FILE *), (char *to, size_t room, int n, FILE *f),
      (to, room, n, f))

#define GETLINE(name, type, params, args)                                                          \
	STREAM_CALL(ssize_t, name, type, params, args, f,                                          \
		    after_read(f, was, begin, r > 0 ? r : 0, 0))
GETLINE(getline, (char **, size_t *, FILE *), (char **to, size_t *n, FILE *f), (to, n, f))
GETLINE(getdelim, (char **, size_t *, int, FILE *), (char **to, size_t *n, int end, FILE *f),
	(to, n, end, f))
GETLINE(__getdelim, (char **, size_t *, int, FILE *), (char **to, size_t *n, int end, FILE *f),
	(to, n, end, f))

#define GETC(name)                                                                                 \
	WRAP int name(FILE *f)                                                                     \
	{                                                                                          \
		REAL(int, name, FILE *);                                                           \
		if (ahead_of(f) > 0)                                                               \
			return real(f);                                                            \
		STREAM_BODY(int, f, real(f), after_read(f, was, begin, r >= 0, 1));                \
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

	if (ahead_of(f) > 0)
		return real(f);
	STREAM_BODY(int, f, real(f), after_read(f, was, begin, 0, 1));
}

/* How much scanf(3) takes is not known: the kernel's position tells what was read for it, and where
 * there is none, what the buffer holds now. */
static void scanned(FILE *f, struct fill was, const char *end, const char *at, int64_t begin,
		    int64_t position)
{
	int64_t now = raw(SYS_lseek, f->_fileno, 0, SEEK_CUR), read = now - position;

	if (now < 0 || position < 0)
		read = f->_IO_read_end != end || f->_IO_read_ptr < at
			       ? f->_IO_read_end - f->_IO_read_base
			       : 0;
	if (read > 0)
		note_transfer(RING_STDIO_READ, fd_word(f->_fileno), begin, (uint64_t)read, 0, read);
	if (was.behind > behind_of(f))
		after_write(f, was, begin, 0);
}

/* stdio.h gives one of these families the name of another: each has its own symbol here. */
#define SCAN_FAMILY(name, prefix)                                                                  \
	WRAP int name##_vfscanf(FILE *, const char *, va_list) __asm__(prefix "vfscanf");          \
	WRAP int name##_vscanf(const char *, va_list) __asm__(prefix "vscanf");                    \
	WRAP int name##_fscanf(FILE *, const char *, ...) __asm__(prefix "fscanf");                \
	WRAP int name##_scanf(const char *, ...) __asm__(prefix "scanf");                          \
	WRAP int name##_vfscanf(FILE *f, const char *format, va_list ap)                           \
	{                                                                                          \
		static void *slot;                                                                 \
		int (*real)(FILE *, const char *, va_list) =                                       \
			(int (*)(FILE *, const char *, va_list))real_of(&slot, prefix "vfscanf");  \
		if (!followed(f))                                                                  \
			return real(f, format, ap);                                                \
		WRAP_BODY(int, real(f, format, ap), struct fill was = before(f);                   \
			  long position = raw(SYS_lseek, f->_fileno, 0, SEEK_CUR);                 \
			  const char *end = f->_IO_read_end;                                       \
			  const char *at = f->_IO_read_ptr,                                        \
			  scanned(f, was, end, at, begin, position));                              \
	}                                                                                          \
	WRAP int name##_vscanf(const char *format, va_list ap)                                     \
	{                                                                                          \
		return name##_vfscanf(stdin, format, ap);                                          \
	}                                                                                          \
	WRAP_FORMAT(name##_fscanf, (FILE * f, const char *format, ...),                            \
		    name##_vfscanf(f, format, ap))                                                 \
	WRAP_FORMAT(name##_scanf, (const char *format, ...), name##_vfscanf(stdin, format, ap))
SCAN_FAMILY(gnu, "")
SCAN_FAMILY(c99, "__isoc99_")
SCAN_FAMILY(c23, "__isoc23_")

/* ---- write ---- */

#define PUT(ret, name, type, params, args, stream, put)                                            \
	STREAM_CALL(ret, name, type, params, args, stream,                                         \
		    after_write(stream, was, begin, (int64_t)(put)))
#define PUT_BLOCKS(name)                                                                           \
	STREAM_CALL(size_t, name, (const void *, size_t, size_t, FILE *),                          \
		    (const void *from, size_t size, size_t n, FILE *f), (from, size, n, f), f,     \
		    after_put_blocks(f, was, begin, (int64_t)(r * size)))
PUT_BLOCKS(fwrite)
PUT_BLOCKS(fwrite_unlocked)
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

WRAP_FORMAT(printf, (const char *format, ...), vprintf(format, ap))
WRAP_FORMAT(fprintf, (FILE * f, const char *format, ...), vfprintf(f, format, ap))
WRAP_FORMAT(__printf_chk, (int how, const char *format, ...), __vprintf_chk(how, format, ap))
WRAP_FORMAT(__fprintf_chk, (FILE * f, int how, const char *format, ...),
	    __vfprintf_chk(f, how, format, ap))
