#pragma once
/* The processes of one run: who they are, and the connections between process 0 and each other one.
 * The connections are stream sockets of our own, which wait in the kernel; how the processes found
 * each other (an MPI library, for example) is over when they exist.
 *
 * Many processes have a second set of connections, a tree with process 0 at its root: barriers and
 * exchanges go over it, so that no process handles more than 2 * NET_TREE_BELOW messages a barrier.
 * All else, which has to work when a process in the middle is lost, stays with process 0:
 * heartbeats, the end, results.
 *
 * One thread a process reads the sockets. It answers heartbeats, and a process that ended or fell
 * silent, or a stop that any process asked for, becomes the cause (net_cause) in every process
 * within net_silence_ns. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/thread.h"

/* Of the limit of silence where nobody sets one: it is as long as the start of all processes took,
 * as machines on which that takes long let them wait later, too, between these. */
#define NET_SILENCE_S 6
#define NET_SILENCE_MOST_S 60
#define NET_HOST_MAX 128
#define NET_TREE_BELOW 4 /* processes below each one of the tree, at most */
#define NET_TREE_FROM 65 /* processes of a run that has a tree */

/* What process 0 tells the others before there is a connection: where it listens, and a secret.
 * `version` is its build_id; a launcher may have started different programs, so the layout is that
 * of every version. */
struct net_invitation {
	unsigned char secret[16];
	char version[32];
	char host[NET_HOST_MAX];
	int64_t start_wall_ns; /* of the run, by process 0's clock */
	uint16_t port;
	uint16_t addresses;
	char address[16][46]; /* numeric, IPv4 or IPv6 */
};

/* A process of the run, as every process knows it. */
struct net_process {
	char host[NET_HOST_MAX];
	char boot[40];    /* the kernel's boot id: two hosts may have one name */
	int32_t pid;      /* on its host */
	uint32_t node;    /* hosts numbered in the order of their first process */
	uint32_t on_node; /* its number among the processes of its host */
	/* Its clocks minus process 0's, from the fastest of several round trips, which took rtt_ns:
	 * known within half of that. 0 when the difference is within it: one host, one clock. Only
	 * process 0 knows them. */
	int64_t wall_offset_ns, mono_offset_ns, rtt_ns;
};

/* Why a run of several processes is to end. */
enum net_cause_kind {
	NET_CAUSE_STOP = 1, /* a signal, or the launcher ended a process it had started */
	NET_CAUSE_ERROR,    /* something failed in a process that lives */
	NET_CAUSE_DEATH,    /* a process ended or fell silent */
};

struct net;

/* Where the others are, as far as the launcher says: there is listened. */
struct net_where {
	bool one_host;          /* all are on this host: on the loopback interface alone */
	const char *interfaces; /* of this host (comm/interface.h); NULL, or none of them is here:
				 * on all */
};

/* Process 0, before the others are told. */
struct net_listener;
int net_listen(struct net_listener **out, struct net_invitation *inv, const struct net_where *where,
	       struct err *e);
void net_listener_close(struct net_listener *l);

/* Joins the processes 0..processes-1 of one invitation: collective. Process 0 hands in its
 * listener, which is consumed whatever happens. `ranks_each`: ranks of every process, for
 * sentences. All have to be the same program (base/program.h): ERR_USAGE otherwise, in
 * process 0 and in the one that differs. `control`: a socket whose end means that the launcher
 * ended this process, or -1; a byte a second goes into it while the thread lives. It stays the
 * caller's. Fails after a minute without the others. Starts the thread. */
int net_open(struct net **out, const struct net_invitation *inv, struct net_listener *l,
	     uint32_t process, uint32_t processes, uint32_t ranks_each, int control, struct err *e);
/* Says goodbye, so that the end of this process is no death to the others, and frees. */
void net_close(struct net *n);

/* Before net_open, in process 0: from how many processes on there is a tree, other than
 * NET_TREE_FROM. */
void net_set_tree_from(uint32_t processes);
/* How long a process may be silent before it counts as lost. Every process sets the same: whole
 * seconds, up to 255. The bytes that go into `control` say it. */
int64_t net_silence_ns(const struct net *n);
void net_set_silence(struct net *n, int64_t ns);
/* How far the furthest process is from process 0: 1 without a tree. */
uint32_t net_depth(const struct net *n);
/* Messages of barriers and exchanges that this process has sent and received so far. Any thread. */
uint64_t net_round_messages(const struct net *n);

uint32_t net_process_number(const struct net *n);
uint32_t net_processes(const struct net *n);
const struct net_process *net_process(const struct net *n, uint32_t process);
uint32_t net_nodes(const struct net *n);

/* Barriers of ranks (COMM_RANKS) go over MPI from here on; NULL: over the sockets. Every process
 * calls it between the same two barriers, when no group of ranks exists. */
struct fabric;
void net_use_fabric(struct net *n, struct fabric *f);
/* NULL: over the sockets. */
struct fabric *net_fabric(const struct net *n);

/* Asks every process to end, with this sentence as the reason. The first cause of the highest kind
 * is the one that counts. Any thread. */
void net_stop(struct net *n, enum net_cause_kind kind, const struct err *why);
/* The cause so far; 0 and `e` untouched while there is none. Any thread. */
int net_cause(struct net *n, enum net_cause_kind *kind, struct err *e);

/* The end of a run, after a stop too: each process hands process 0 a block of bytes. At process 0
 * block[p] holds that of process p (empty: it died, or gave nothing within `patience_s` after a
 * stop); elsewhere nothing is filled. Blocks are released by the caller. */
int net_collect(struct net *n, const void *mine, size_t bytes, int patience_s, struct buf *block,
		struct err *e);
/* Afterwards: process 0 says how the run ended (`code`); the others wait for it, at most patience_s
 * after a stop, and return it. -EPIPE: process 0 is gone. */
int net_conclude(struct net *n, int code, int patience_s);
/* After net_conclude: the connections serve another run. Every process calls it, and then agrees
 * with the others (comm_agree) before it goes on. */
void net_next_run(struct net *n);
