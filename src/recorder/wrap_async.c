/* Requests that do not wait: POSIX AIO, libaio, io_uring; and calls that programs make through
 * syscall(2). */
#include "recorder/wrap.h"

#include <aio.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/abi.h"

/* wrap_process.c has it, C libraries before 2.34 have not */
int execveat(int, const char *, char *const[], char *const[], int);

/* ---- POSIX AIO ---- */

/* libc's own threads make the requests, with calls that pass no function of this
 * library: each is noted for the thread that asked for it, from there to the moment at which the
 * program learns that it is complete. One of which the program never asks again stays unseen. */

#define REQUESTS 1024
#define PROBES 64 /* slots that a request may have */

static struct {
	const struct aiocb *request; /* NULL: free */
	int64_t begin;
	uint64_t word;
	int what;
} requests[REQUESTS];

enum { AIO_READS, AIO_WRITES, AIO_SYNCS };

static size_t request_slot(const struct aiocb *c, size_t probe)
{
	size_t first = ((uintptr_t)c >> 4) * 0x9e3779b97f4a7c15u >> 54;

	return (first + probe) % REQUESTS;
}

/* Takes what is at the slot if it is `is`. */
static bool swap(size_t k, const struct aiocb *is, const struct aiocb *to)
{
	return __atomic_load_n(&requests[k].request, __ATOMIC_RELAXED) == is &&
	       __atomic_compare_exchange_n(&requests[k].request, &is, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/* Before the call: it may be complete before the call is. */
static void submits(const struct aiocb *c, int what, int64_t begin)
{
	static const struct aiocb being_filled;
	uint64_t word = fd_word(c->aio_fildes);

	for (size_t i = 0; i < PROBES; i++) {
		size_t k = request_slot(c, i);

		if (!swap(k, NULL, &being_filled))
			continue;
		requests[k].begin = begin;
		requests[k].word = word;
		requests[k].what = what;
		__atomic_store_n(&requests[k].request, c, __ATOMIC_RELEASE);
		return;
	}
}

static void refused(const struct aiocb *c)
{
	for (size_t i = 0; i < PROBES; i++)
		if (swap(request_slot(c, i), c, NULL))
			return;
}

static void note_complete(const struct aiocb *c, uint64_t word, int what, int64_t begin,
			  int64_t result)
{
	bool placed = FD_KIND(word) == RING_REGULAR || FD_KIND(word) == RING_MEMORY ||
		      FD_KIND(word) == RING_EXCLUDED;

	if (what == AIO_SYNCS)
		note(RING_SYNC, begin, FD_SERIAL(word), result, N(0));
	else if (what == AIO_READS)
		note_transfer(placed ? RING_PREAD : RING_READ, word, begin, c->aio_nbytes,
			      c->aio_offset, result);
	else
		note_transfer(placed ? RING_PWRITE : RING_WRITE, word, begin, c->aio_nbytes,
			      c->aio_offset, result);
}

static void asked(const void *request)
{
	const struct aiocb *c = request;
	int error = __atomic_load_n(&c->__error_code, __ATOMIC_ACQUIRE);

	for (size_t i = 0; error != EINPROGRESS && i < PROBES; i++) {
		size_t k = request_slot(c, i);
		uint64_t word = requests[k].word;
		int64_t begin = requests[k].begin;
		int what = requests[k].what;

		if (!swap(k, c, NULL))
			continue;
		note_complete(c, word, what, begin, error ? -error : N(c->__return_value));
		return;
	}
}

static void asked_all(const void *requests_of, int n)
{
	const struct aiocb *const *list = requests_of;

	for (int i = 0; i < n; i++)
		if (list[i])
			asked(list[i]);
}

static void submits_all(int how, const void *requests_of, int n, int64_t begin)
{
	const struct aiocb *const *list = requests_of;

	for (int i = 0; (how == LIO_WAIT || how == LIO_NOWAIT) && i < n; i++)
		if (list[i] && list[i]->aio_lio_opcode != LIO_NOP)
			submits(list[i],
				list[i]->aio_lio_opcode == LIO_READ ? AIO_READS : AIO_WRITES,
				begin);
}

/* struct aiocb64 is the same on 64-bit machines */
#define SUBMIT(name, aiocb, what)                                                                  \
	WRAP_CALL(int, name, (struct aiocb *), (struct aiocb * c), (c),                            \
		  submits((const void *)c, what, now_ns()), if (r < 0) refused((const void *)c))
#define SYNC(name, aiocb)                                                                          \
	WRAP_CALL(int, name, (int, struct aiocb *), (int how, struct aiocb *c), (how, c),          \
		  if (how == O_SYNC || how == O_DSYNC)                                             \
			  submits((const void *)c, AIO_SYNCS, now_ns()),                           \
		  if (r < 0) refused((const void *)c))
/* In a list, each request has an error of its own. */
#define LIST(name, aiocb)                                                                          \
	WRAP_CALL(int, name, (int, struct aiocb *const *, int, struct sigevent *),                 \
		  (int how, struct aiocb *const *list, int n, struct sigevent *event),             \
		  (how, list, n, event), submits_all(how, list, n, now_ns()),                      \
		  if (how == LIO_WAIT) asked_all(list, n))
#define SUSPEND(name, aiocb)                                                                       \
	WRAP_CALL(int, name, (const struct aiocb *const *, int, const struct timespec *),          \
		  (const struct aiocb *const *list, int n, const struct timespec *t),              \
		  (list, n, t), , asked_all(list, n))
#define ASK(name, aiocb)                                                                           \
	WRAP_CALL(int, name, (const struct aiocb *), (const struct aiocb *c), (c), , asked(c))
/* Afterwards the memory is the program's again. */
#define RETURN(name, aiocb)                                                                        \
	WRAP_CALL(ssize_t, name, (struct aiocb *), (struct aiocb * c), (c), asked(c), )
#define CANCEL(name, aiocb)                                                                        \
	WRAP_CALL(int, name, (int, struct aiocb *), (int fd, struct aiocb *c), (fd, c), ,          \
		  if (c && r >= 0) asked(c))

SUBMIT(aio_read, aiocb, AIO_READS)
SUBMIT(aio_read64, aiocb64, AIO_READS)
SUBMIT(aio_write, aiocb, AIO_WRITES)
SUBMIT(aio_write64, aiocb64, AIO_WRITES)
SYNC(aio_fsync, aiocb)
SYNC(aio_fsync64, aiocb64)
LIST(lio_listio, aiocb)
LIST(lio_listio64, aiocb64)
SUSPEND(aio_suspend, aiocb)
SUSPEND(aio_suspend64, aiocb64)
ASK(aio_error, aiocb)
ASK(aio_error64, aiocb64)
RETURN(aio_return, aiocb)
RETURN(aio_return64, aiocb64)
CANCEL(aio_cancel, aiocb)
CANCEL(aio_cancel64, aiocb64)

/* ---- libaio: a request is noted when it is complete ---- */

#define SUBMITTED 4096

static struct {
	uint64_t iocb;
	int64_t begin;
} submitted[SUBMITTED];

static size_t slot_of(uint64_t iocb)
{
	return (iocb >> 4) * 0x9e3779b97f4a7c15u >> 52;
}

/*
 * libaio of some distributions makes its calls with syscall(2) of libc, others with instructions
 * of their own. What the caller asked libaio for is noted once.
 */
static __thread bool in_libaio;

#define BATCH_MOST 65536 /* no context of the kernel has more */
#define VECTOR_MOST 1024

static void wrap_submitted(long n, void *const *iocb, int64_t begin)
{
	struct probe k = {0};

	for (long i = 0; i < n && n <= BATCH_MOST && memory_readable(&k, iocb + i, sizeof(*iocb));
	     i++) {
		size_t k = slot_of((uint64_t)(uintptr_t)iocb[i]);

		submitted[k].begin = begin;
		__atomic_store_n(&submitted[k].iocb, (uint64_t)(uintptr_t)iocb[i],
				 __ATOMIC_RELEASE);
	}
}

/* The kernel does not need the program's requests any more when they are complete. */
static void wrap_completed(long n, const struct io_event *event)
{
	struct probe p = {0};

	for (long i = 0; i < n; i++) {
		const struct iocb *c = (const void *)(uintptr_t)event[i].obj;
		size_t k = slot_of(event[i].obj);
		int64_t begin = now_ns();
		enum ring_kind kind;
		uint64_t asked;

		if (__atomic_load_n(&submitted[k].iocb, __ATOMIC_ACQUIRE) == event[i].obj)
			begin = submitted[k].begin;
		if (!memory_readable(&p, c, sizeof(*c)))
			continue;
		asked = c->aio_nbytes;
		switch (c->aio_lio_opcode) {
		case IOCB_CMD_PREADV:
		case IOCB_CMD_PWRITEV: {
			const struct iovec *v = (const void *)(uintptr_t)c->aio_buf;

			asked = c->aio_nbytes <= VECTOR_MOST &&
						memory_readable(&p, v, asked * sizeof(*v))
					? vector_bytes(v, c->aio_nbytes, event[i].res)
					: 0;
		}
			__attribute__((fallthrough));
		case IOCB_CMD_PREAD:
		case IOCB_CMD_PWRITE:
			kind = c->aio_lio_opcode == IOCB_CMD_PREAD ||
					       c->aio_lio_opcode == IOCB_CMD_PREADV
				       ? RING_AIO_READ
				       : RING_AIO_WRITE;
			note_transfer(kind, fd_word((int)c->aio_fildes), begin, asked,
				      c->aio_offset, event[i].res);
			break;
		case IOCB_CMD_FSYNC:
		case IOCB_CMD_FDSYNC:
			note(RING_SYNC, begin, FD_SERIAL(fd_word((int)c->aio_fildes)),
			     N(event[i].res), N(c->aio_lio_opcode == IOCB_CMD_FDSYNC));
			break;
		default:
			break;
		}
	}
}

WRAP int io_submit(void *context, long n, void **iocb)
{
	REAL(int, io_submit, void *, long, void **);

	if (!real)
		return -ENOSYS;
	/* before the call: it may be complete before the call is */
	if (recording())
		wrap_submitted(n, iocb, now_ns());
	return real(context, n, iocb);
}

WRAP int io_getevents(void *context, long least, long n, void *event, void *t)
{
	REAL(int, io_getevents, void *, long, long, void *, void *);
	int r;

	if (!real)
		return -ENOSYS;
	in_libaio = true;
	r = real(context, least, n, event, t);
	in_libaio = false;
	if (r > 0 && recording())
		KEEP_ERRNO(wrap_completed(r, event));
	return r;
}

WRAP int io_pgetevents(void *context, long least, long n, void *event, void *t, void *mask)
{
	REAL(int, io_pgetevents, void *, long, long, void *, void *, void *);
	int r;

	if (!real)
		return -ENOSYS;
	in_libaio = true;
	r = real(context, least, n, event, t, mask);
	in_libaio = false;
	if (r > 0 && recording())
		KEEP_ERRNO(wrap_completed(r, event));
	return r;
}

/* ---- io_uring: requests are stores to memory; only that it is used can be seen ---- */

static void uses_uring(int r)
{
	if (r < 0 || !recording())
		return;
	note_uring_used();
	note(RING_URING, now_ns(), N(r));
}

#define URING(name, type, params, args)                                                            \
	WRAP int name params                                                                       \
	{                                                                                          \
		REAL_V(int, name, type);                                                           \
		int r;                                                                             \
		if (!real)                                                                         \
			return -ENOSYS;                                                            \
		r = real args;                                                                     \
		uses_uring(r);                                                                     \
		return r;                                                                          \
	}
URING(io_uring_queue_init, (unsigned, void *, unsigned), (unsigned n, void *ring, unsigned flags),
      (n, ring, flags))
URING(io_uring_queue_init_params, (unsigned, void *, void *),
      (unsigned n, void *ring, void *params), (n, ring, params))
URING(io_uring_queue_init_mem, (unsigned, void *, void *, void *, size_t),
      (unsigned n, void *ring, void *params, void *mem, size_t size), (n, ring, params, mem, size))
URING(io_uring_setup, (unsigned, void *), (unsigned n, void *params), (n, params))

/* ---- syscall(2) ---- */

/* Before the call: what afterwards is not there any more. */
static void before_call(long nr, const long *a, int64_t begin)
{
	if (nr == SYS_close)
		wrap_closing((int)a[0], begin);
	else if (nr == SYS_close_range)
		wrap_closing_range((unsigned)a[0], (unsigned)a[1], (int)a[2]);
	else if (nr == SYS_exit_group)
		wrap_leaving((int)a[0]);
	else if (nr == SYS_io_submit)
		wrap_submitted(a[1], (void *const *)a[2], begin);
}

/* Flags of struct open_how, which the kernel may not have looked at. */
static int how_of(const uint64_t *how)
{
	struct probe k = {0};

	return memory_readable(&k, how, sizeof(*how)) ? (int)*how : 0;
}

/* Of a copy, where it has a pointer to its offset. */
static int64_t began(long pointer, long r)
{
	return pointer && r >= 0 ? *(const int64_t *)pointer - r : -1;
}

static void vectors_moved(enum ring_kind kind, const long *a, int64_t begin, long r)
{
	uint64_t w = fd_word((int)a[0]);

	if (kind == RING_READ || kind == RING_WRITE)
		wrap_moved_vector(kind, (int)a[0], w, begin, (const void *)a[1], (uint64_t)a[2], r);
	else
		note_transfer(kind, w, begin, vector_bytes((const void *)a[1], (uint64_t)a[2], r),
			      a[3], r);
}

static void after_call(long nr, const long *a, int64_t begin, long r)
{
	switch (nr) {
	case SYS_read:
	case SYS_write:
		wrap_moved(nr == SYS_read ? RING_READ : RING_WRITE, (int)a[0], fd_word((int)a[0]),
			   begin, (const void *)a[1], (uint64_t)a[2], r);
		break;
	case SYS_pread64:
	case SYS_pwrite64:
		note_transfer(nr == SYS_pread64 ? RING_PREAD : RING_PWRITE, fd_word((int)a[0]),
			      begin, (uint64_t)a[2], a[3], r);
		break;
	case SYS_socket:
	case SYS_accept:
	case SYS_accept4:
		wrap_socket_made((int)r, begin);
		break;
	case SYS_connect:
		wrap_connected((int)a[0], (const void *)a[1], (socklen_t)a[2], begin, r);
		break;
	case SYS_sendto:
		wrap_sent_to((int)a[0], fd_word((int)a[0]), (const void *)a[1], (uint64_t)a[2],
			     (int)a[3], (const void *)a[4], (socklen_t)a[5], begin, r);
		break;
	case SYS_sendmsg:
		wrap_sent_message((int)a[0], fd_word((int)a[0]), (const void *)a[1], (int)a[2],
				  begin, r);
		break;
	case SYS_sendmmsg:
		wrap_sent_messages((int)a[0], (const void *)a[1], (int)a[3], begin, r);
		break;
	case SYS_recvfrom:
		wrap_got((int)a[0], fd_word((int)a[0]), (void *)a[1], (uint64_t)a[2], (int)a[3],
			 begin, r);
		break;
	case SYS_recvmsg:
		wrap_got_message((int)a[0], fd_word((int)a[0]), (void *)a[1], (int)a[2], begin, r);
		break;
	case SYS_recvmmsg:
		wrap_got_messages((int)a[0], (void *)a[1], (int)a[3], begin, r);
		break;
	case SYS_readv:
	case SYS_preadv:
	case SYS_preadv2:
		vectors_moved(nr == SYS_readv ? RING_READ : RING_PREAD, a, begin, r);
		break;
	case SYS_writev:
	case SYS_pwritev:
	case SYS_pwritev2:
		vectors_moved(nr == SYS_writev ? RING_WRITE : RING_PWRITE, a, begin, r);
		break;
#ifdef SYS_open
	case SYS_open:
		wrap_opened(AT_FDCWD, (const char *)a[0], (int)a[1], begin, r);
		break;
#endif
	case SYS_openat:
		wrap_opened((int)a[0], (const char *)a[1], (int)a[2], begin, r);
		break;
	case SYS_openat2:
		wrap_opened((int)a[0], (const char *)a[1], how_of((const void *)a[2]), begin, r);
		break;
	case SYS_memfd_create:
		wrap_opened(AT_FDCWD, (const char *)a[0], O_RDWR | RECORD_MEMORY, begin, r);
		break;
	case SYS_dup:
	case SYS_dup3:
#ifdef SYS_dup2
	case SYS_dup2:
#endif
		wrap_duplicated((int)a[0], (int)r, begin);
		break;
	case SYS_lseek:
		note(RING_SEEK, begin, FD_SERIAL(fd_word((int)a[0])), N(r), N(a[1]), N(a[2]));
		break;
	case SYS_getdents64:
		note(RING_LIST, begin, FD_SERIAL(fd_word((int)a[0])), N(r));
		break;
	case SYS_sendfile:
		wrap_copied((int)a[1], (int)a[0], began(a[2], r), -1, (uint64_t)a[3], begin, r,
			    true);
		break;
	case SYS_copy_file_range:
	case SYS_splice:
		wrap_copied((int)a[0], (int)a[2], began(a[1], r), began(a[3], r), (uint64_t)a[4],
			    begin, r, nr == SYS_copy_file_range);
		break;
	case SYS_io_getevents:
#ifdef SYS_io_pgetevents
	case SYS_io_pgetevents:
#endif
		if (r > 0 && !in_libaio)
			wrap_completed(r, (const void *)a[3]);
		break;
	case SYS_io_uring_setup:
		uses_uring((int)r);
		break;
	default:
		break;
	}
}

WRAP long syscall(long nr, ...)
{
	REAL(long, syscall, long, ...);
	long a[6], r;
	bool filters, was = false;
	int64_t begin;
	va_list ap;

	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (nr == SYS_execve)
		return execve((const char *)a[0], (char *const *)a[1], (char *const *)a[2]);
	if (nr == SYS_execveat)
		return execveat((int)a[0], (const char *)a[1], (char *const *)a[2],
				(char *const *)a[3], (int)a[4]);
	/* most calls that come this way are of locks */
	if (nr == SYS_futex || nr == SYS_gettid || !recording())
		return real(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	begin = now_ns();
	KEEP_ERRNO(before_call(nr, a, begin); filters = wrap_filters(nr, a, &was));
	r = real(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (filters && r < 0)
		KEEP_ERRNO(process_unfiltered(was));
	KEEP_ERRNO(after_call(nr, a, begin, r < 0 ? -errno : r));
	return r;
}
