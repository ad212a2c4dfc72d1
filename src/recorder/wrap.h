#pragma once
/* What the files of wrapped functions share. They define the names of libc themselves, so no header
 * may turn these into others (fortify, 64-bit offsets). */
#ifndef __NO_INLINE__
#define __NO_INLINE__ 1 /* of headers: their own definitions of these names */
#endif

#include <errno.h>
#include <stdarg.h>
#include <sys/uio.h>

#include "recorder/recorder.h"

#if defined(_FILE_OFFSET_BITS) || defined(_FORTIFY_SOURCE)
#error "wrapped functions are compiled without _FILE_OFFSET_BITS and _FORTIFY_SOURCE"
#endif

/* As REAL, with the parameters in parentheses. */
#define REAL_V(ret, name, type)                                                                    \
	static void *real_slot;                                                                    \
	ret(*real) type = (ret(*) type)real_of(&real_slot, #name)
#undef REAL
#define REAL(ret, name, ...) REAL_V(ret, name, (__VA_ARGS__))

/* Fields of note() are 64 bits wide. */
#define N(x) ((int64_t)(x))
#define KEEP_ERRNO(...)                                                                            \
	do {                                                                                       \
		int kept = errno;                                                                  \
		__VA_ARGS__;                                                                       \
		errno = kept;                                                                      \
	} while (0)

/* What a wrapped function does: `call`, and where calls are recorded, `before` in front of it and
 * the rest behind, which finds its begin in `begin`, its result in `r`, and errno as it left it. */
#define WRAP_BODY(ret, call, before, ...)                                                          \
	int64_t begin __attribute__((unused));                                                     \
	ret r;                                                                                     \
	if (!recording())                                                                          \
		return call;                                                                       \
	before;                                                                                    \
	begin = now_ns();                                                                          \
	r = call;                                                                                  \
	KEEP_ERRNO(__VA_ARGS__);                                                                   \
	return r

/* The whole function. Types of parameters, the parameters and their names are in parentheses. */
#define WRAP_CALL(ret, name, type, params, args, before, ...)                                      \
	WRAP ret name params                                                                       \
	{                                                                                          \
		REAL_V(ret, name, type);                                                           \
		WRAP_BODY(ret, real args, before, __VA_ARGS__);                                    \
	}

/* A function with arguments for `format`, which `call` takes as `ap`. */
#define WRAP_FORMAT(name, params, call)                                                            \
	WRAP int name params                                                                       \
	{                                                                                          \
		va_list ap;                                                                        \
		int r;                                                                             \
		va_start(ap, format);                                                              \
		r = call;                                                                          \
		va_end(ap);                                                                        \
		return r;                                                                          \
	}

/* Within these: the result as of the kernel, -errno for errors. */
#define RESULT (r < 0 ? N(-errno) : N(r))

/* Beside the flags of open(2): a file in memory; one of which only the kernel knows the name. */
#define RECORD_MEMORY (1 << 30)
#define RECORD_UNNAMED (1 << 29)

static inline int no_call(void)
{
	errno = ENOSYS;
	return -1;
}

/* Programs probe with pointers that lead nowhere, and live: what a call that failed may not have
 * read is not read here either. Results as below. */

/* Bytes of a vector; 0 when the call failed. */
static inline uint64_t vector_bytes(const struct iovec *v, uint64_t n, int64_t result)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; result >= 0 && i < n; i++)
		sum += v[i].iov_len;
	return sum;
}

/* The name; NULL when it cannot be read. */
const char *wrap_name(const char *path, int64_t result);

/* Results as of the kernel: -errno for errors. Begin is the time before the call. */
void wrap_opened(int dirfd, const char *path, int flags, int64_t begin, long result);
void wrap_closing(int fd, int64_t begin); /* before the call */
void wrap_leaving(int status);            /* before _exit(2) */
/* Before a system call: whether it filters those to come (process_filtered). */
bool wrap_filters(long nr, const long *a, bool *was);
void wrap_closing_range(unsigned first, unsigned last, int flags);
void wrap_duplicated(int old, int copy, int64_t begin);
void wrap_copied(int in, int out, int64_t at_in, int64_t at_out, uint64_t asked, int64_t begin,
		 int64_t result, bool counted);
/* A read or write at the position, or a message: what a client and its server say is noted, too. */
void wrap_heard(enum ring_kind kind, int fd, uint64_t word, int64_t begin, const struct iovec *v,
		uint64_t n, uint64_t asked, int64_t result);
static inline void wrap_moved_vector(enum ring_kind kind, int fd, uint64_t word, int64_t begin,
				     const struct iovec *v, uint64_t n, int64_t result)
{
	uint64_t asked = vector_bytes(v, n, result);

	if (UNLIKELY(word & FD_HEARD) && result > 0)
		wrap_heard(kind, fd, word, begin, v, n, asked, result);
	else
		note_transfer(kind, word, begin, asked, 0, result);
}

static inline void wrap_moved(enum ring_kind kind, int fd, uint64_t word, int64_t begin,
			      const void *at, uint64_t asked, int64_t result)
{
	struct iovec v = {(void *)(size_t)at, asked};

	if (UNLIKELY(word & FD_HEARD) && result > 0)
		wrap_heard(kind, fd, word, begin, &v, 1, asked, result);
	else
		note_transfer(kind, word, begin, asked, 0, result);
}

struct sockaddr;
struct msghdr;
struct mmsghdr;
void wrap_socket_made(int fd, int64_t begin);
void wrap_connected(int fd, const struct sockaddr *to, size_t size, int64_t begin, int64_t result);
void wrap_sent_to(int fd, uint64_t word, const void *from, uint64_t n, int flags, const void *to,
		  size_t size, int64_t begin, int64_t result);
void wrap_sent_message(int fd, uint64_t word, const struct msghdr *m, int flags, int64_t begin,
		       int64_t result);
/* Of several messages in one call, the result is their number. */
void wrap_sent_messages(int fd, const struct mmsghdr *m, int flags, int64_t begin, int64_t result);
void wrap_got_messages(int fd, struct mmsghdr *m, int flags, int64_t begin, int64_t result);
void wrap_got(int fd, uint64_t word, void *to, uint64_t asked, int flags, int64_t begin,
	      int64_t result);
void wrap_got_message(int fd, uint64_t word, struct msghdr *m, int flags, int64_t begin,
		      int64_t result);
struct io_event;
