#pragma once
/* Ranks. Each rank holds one `struct comm`; calls are collective: every rank of the group makes the
 * same calls in the same order. Ranks are threads of this process or, with a net, of several: then
 * each process has the same number, and process p has the ranks from p times that on. Ranks of one
 * process meet there first; between processes goes one message a process and call.
 *
 * All return 0, or ERR_CANCELED once the group was told to stop: then no rank stays behind in a
 * call, though of those in the same call some may already have got their 0. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/thread.h"

struct comm_group; /* the ranks of this process */
struct net;        /* comm/net.h */

struct comm {
	struct comm_group *group;
	uint32_t rank, size; /* over all processes */
	uint32_t local;      /* among those of this process */
};

/* The groups that can exist at once over one net. */
enum comm_channel { COMM_PROCESSES, COMM_RANKS };

/* `locals` ranks of this process among those of all processes of `net` (NULL: of this one alone).
 * Every process makes the group before any rank uses it, with the same number. */
struct comm_group *comm_create(struct comm *ranks, uint32_t locals, struct net *net,
			       enum comm_channel channel, const struct stop_flag *stop);
void comm_local_destroy(struct comm_group *g);
/* Releases everyone who waits in a call; call after setting the stop flag. Any thread. */
void comm_wake(struct comm_group *g);

/* The one that is called in the timed path. */
int comm_barrier(struct comm *c);
/* The same, and *due says, equally on all ranks, whether `due_ns` of rank 0 (monotonic, by its own
 * process's clock; not 0) had come when the last rank arrived. What others give is not looked at.
 * It takes no message more. */
int comm_barrier_until(struct comm *c, int64_t due_ns, bool *due);

/* Everybody gets the n bytes of rank `root`; all know n. */
int comm_broadcast(struct comm *c, uint32_t root, void *p, size_t n);

/* Rank 0's part[r] becomes the n bytes that rank r gave (any number, each its own); other ranks'
 * are left alone. Released by the caller. */
int comm_gather(struct comm *c, const void *mine, size_t n, struct buf *part);

/* All ranks say whether they failed, and take the same branch: 0 when none did; else the code and
 * sentence of the lowest failing rank, with its host, if there are several, in front when others
 * did not fail. A rank that
 * was only told to stop counts when no other failed. */
int comm_agree(struct comm *c, int rc, struct err *e);
