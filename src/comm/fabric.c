/* The barrier over MPI: the two sides of the shared page. */
#include "comm/fabric.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/mpi_library.h"
#include "comm/net.h"

/* A waiter looks so often whether the run is to end. */
#define LOOK_NS (NS_PER_S / 20)
/* Between two looks at a barrier: at once first, then longer and longer. */
#define PAUSE_FIRST_NS 10000
#define PAUSE_MOST_NS 500000
#define LOOKS_AT_ONCE 20

struct fabric *fabric_create(void)
{
	void *p = mmap(NULL, sizeof(struct fabric), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* As thread_wait and thread_wake, between processes. */
static void shared_wait(_Atomic uint32_t *word, uint32_t seen)
{
	const struct timespec most = {.tv_nsec = LOOK_NS};

	syscall(SYS_futex, word, FUTEX_WAIT, seen, &most, NULL, 0);
}

static void shared_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* ---- the process with the library ---- */

/* Until the request is done: false when it failed, or the end was asked for. */
static bool await_request(struct fabric *f, const struct mpi_library *mpi, void *request)
{
	int64_t pause = PAUSE_FIRST_NS;
	char status[512]; /* larger than any library's */
	int looks = 0, flag = 0;

	while (mpi->test(request, &flag, status) == 0) {
		if (flag)
			return true;
		if (atomic_load_explicit(&f->quit, memory_order_acquire))
			return false;
		if (++looks <= LOOKS_AT_ONCE)
			continue;
		clock_sleep_until(clock_now_ns() + pause);
		pause = 2 * pause < PAUSE_MOST_NS ? 2 * pause : PAUSE_MOST_NS;
	}
	return false;
}

static bool meet(struct fabric *f, const struct mpi_library *mpi, uint32_t process)
{
	void *request[2] = {NULL, NULL}; /* a handle is a pointer or an int */
	unsigned char due = 0;

	if (mpi->ibarrier(mpi->comm_world, request) != 0 || !await_request(f, mpi, request))
		return false;
	if (!f->timed)
		return true;
	due = process == 0 && f->due_ns && clock_now_ns() >= f->due_ns;
	request[0] = NULL;
	if (mpi->ibcast(&due, 1, mpi->byte, 0, mpi->comm_world, request) != 0 ||
	    !await_request(f, mpi, request))
		return false;
	f->due = due != 0;
	return true;
}

void fabric_serve(struct fabric *f, const struct mpi_library *mpi, uint32_t process)
{
	uint32_t done = 0;

	while (!atomic_load_explicit(&f->quit, memory_order_acquire)) {
		if (atomic_load_explicit(&f->asked, memory_order_acquire) == done) {
			shared_wait(&f->asked, done);
			continue;
		}
		if (!meet(f, mpi, process)) {
			atomic_store_explicit(&f->failed, 1, memory_order_release);
			return;
		}
		atomic_store_explicit(&f->done, ++done, memory_order_release);
		shared_wake(&f->done);
	}
}

bool fabric_is_waiting(struct fabric *f)
{
	return atomic_load_explicit(&f->asked, memory_order_acquire) !=
	       atomic_load_explicit(&f->done, memory_order_acquire);
}

void fabric_quit(struct fabric *f)
{
	atomic_store_explicit(&f->quit, 1, memory_order_release);
	shared_wake(&f->asked);
}

/* ---- the child ---- */

int fabric_barrier(struct fabric *f, bool timed, int64_t due_ns, bool *due,
		   const struct stop_flag *stop, struct net *net)
{
	uint32_t seen = atomic_load_explicit(&f->done, memory_order_relaxed);

	f->timed = timed;
	f->due_ns = due_ns;
	atomic_fetch_add_explicit(&f->asked, 1, memory_order_release);
	shared_wake(&f->asked);
	while (atomic_load_explicit(&f->done, memory_order_acquire) == seen) {
		if (stop_is_set(stop) || net_cause(net, NULL, NULL))
			return ERR_CANCELED;
		if (atomic_load_explicit(&f->failed, memory_order_acquire)) {
			struct err e;

			err_set(&e, -EPROTO, "the barrier of the MPI library (%s) failed",
				f->library);
			net_stop(net, NET_CAUSE_ERROR, &e);
			return ERR_CANCELED;
		}
		shared_wait(&f->done, seen);
	}
	*due = f->due;
	return 0;
}
