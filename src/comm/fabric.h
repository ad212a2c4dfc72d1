#pragma once
/* The barrier between processes over the launcher's MPI library. The process that the launcher
 * started keeps the library and waits in it; its child, which does the work and is measured, has
 * none of the library's memory and threads. Both share one page. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/thread.h"

struct mpi_library;
struct net;

struct fabric {
	_Atomic uint32_t asked, done; /* barriers; futex words across processes */
	_Atomic uint32_t quit;
	_Atomic int failed; /* a call of the library returned an error */
	bool timed, due;    /* of the barrier under way: as comm_barrier_until; and its answer */
	int64_t due_ns;     /* process 0's; 0: none */
	char library[128];  /* what it says of itself */
	char why[ERR_TEXT_MAX]; /* there is no library that can be used; "": there is one */
};

/* Memory that a child shares; NULL: there is none. Before fork. `library` and `why` are filled in
 * before the child hears of the other processes. */
struct fabric *fabric_create(void);

/* The process with the library: carries out barriers until fabric_quit. A library that is polled
 * sleeps in between, up to half a millisecond, so that it does not keep a processor. `process`: 0
 * says whether it is due. */
void fabric_serve(struct fabric *f, const struct mpi_library *mpi, uint32_t process);
/* Whether a barrier is under way, which others have not come to. Any thread. */
bool fabric_is_waiting(struct fabric *f);
void fabric_quit(struct fabric *f);

/* The child, one thread at a time: returns when all processes have come. `timed`: the same in all
 * processes; then *due as in comm_barrier_until, of process 0's due_ns. ERR_CANCELED once `stop` is
 * set or the net has a cause to end; then the fabric is of no use any more. */
int fabric_barrier(struct fabric *f, bool timed, int64_t due_ns, bool *due,
		   const struct stop_flag *stop, struct net *net);
