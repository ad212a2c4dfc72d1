/* POSIX AIO. libc's own threads make the requests, with calls that pass no function of this
 * library: each is noted for the thread that asked for it, from there to the moment at which the
 * program learns that it is complete. One of which the program never asks again stays unseen. */
#include "recorder/wrap.h"

#include <aio.h>
#include <sys/syscall.h>
#include <time.h>

#define REQUESTS 1024
#define PROBES 64 /* slots that a request may have */

static struct {
	const struct aiocb *request; /* NULL: free */
	int64_t begin;
	uint64_t word;
	int what;
} requests[REQUESTS];

enum { AIO_READS, AIO_WRITES, AIO_SYNCS };

static size_t slot_of(const struct aiocb *c, size_t probe)
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
		size_t k = slot_of(c, i);

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
		if (swap(slot_of(c, i), c, NULL))
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
		size_t k = slot_of(c, i);
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

static void submits_all(const void *requests_of, int n, int64_t begin)
{
	const struct aiocb *const *list = requests_of;

	for (int i = 0; i < n; i++)
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
		  submits((const void *)c, AIO_SYNCS, now_ns()),                                   \
		  if (r < 0) refused((const void *)c))
/* In a list, each request has an error of its own. */
#define LIST(name, aiocb)                                                                          \
	WRAP_CALL(int, name, (int, struct aiocb *const *, int, struct sigevent *),                 \
		  (int how, struct aiocb *const *list, int n, struct sigevent *event),             \
		  (how, list, n, event), submits_all(list, n, now_ns()),                           \
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
		  if (c) asked(c))

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
