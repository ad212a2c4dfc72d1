#pragma once
/* Messages between processes, and what a process keeps of its connections. Private to comm/. */
#include <pthread.h>
#include <stdatomic.h>

#include "comm/net.h"

enum net_message {
	NET_HELLO = 1, /* a process introduces itself; process 0 answers in kind */
	NET_PING,      /* process 0 asks for the clocks */
	NET_PONG,
	NET_WELCOME, /* the table of processes: the connection is in use from here on */
	NET_MEET,    /* upwards: a process and all below it have arrived at a barrier; downwards:
		      * all have, and with a body of one byte: due_ns had come */
	NET_GIVE,    /* upwards: the parts of an exchange of a process and all below it, each after
		      * a struct net_part */
	NET_TAKE,    /* downwards: process 0's answer to an exchange */
	NET_STOP,
	NET_BEAT,
	NET_RESULT, /* net_collect */
	NET_END,    /* net_conclude */
	NET_BYE,
	NET_OPEN_DOOR,    /* process 0: listen for those below you in a tree; answered with */
	NET_DOOR,         /* where: struct net_invitation, or nothing */
	NET_PLACE,        /* process 0: struct net_tree_place */
	NET_PLACED,       /* one byte: whether all connections of that place were made */
	NET_WELCOME_TREE, /* NET_WELCOME, and the connections of the tree are in use, too */
	NET_MESSAGES
};

struct net_head {
	uint32_t magic;
	uint8_t type, channel;
	uint16_t zero;
	uint32_t process; /* sender */
	uint32_t zero2;
	uint64_t bytes; /* that follow */
};
#define NET_MAGIC 0x736b7231u

/* Secret, version and the host at the front of `self` lie where every version of the program has
 * them, so that a process of another one can be told what it is. */
struct net_hello {
	unsigned char secret[16];
	char version[32];
	struct net_process self;
	uint32_t processes, ranks_each;
};

struct net_part {
	uint32_t process, zero;
	uint64_t bytes; /* that follow */
};

struct net_pong {
	int64_t wall_ns, mono_ns;
};

struct net_stop_body {
	int32_t kind, code;
	int64_t wall_ns; /* by process 0's clock as well as known; the earlier one of a kind counts
			  */
	char text[ERR_TEXT_MAX];
};

struct net_peer {
	int fd;           /* -1: none */
	uint32_t process; /* at the other end */
	/* Of the tree: what cannot be sent at once is sent by the thread, so that no process waits
	 * for another one's. Under send_lock, as `unsent`. */
	bool queues;
	struct buf unsent;
	size_t sent; /* of that */
	pthread_mutex_t send_lock;
	/* release/acquire: whoever sees it set also sees fd and the row of the table */
	_Atomic int lives;
	bool said_bye; /* the thread's alone */
	int64_t heard_ns;
	/* the message being received */
	struct net_head head;
	size_t have; /* of the head, then of the body */
	bool in_body;
	char *body;
};

/* One group's rounds: barriers and exchanges, one at a time. */
#define NET_CHANNELS 4
struct net_channel {
	_Atomic uint32_t gathered; /* process 0: exchanges to which all gave */
	_Atomic uint32_t taken;    /* others: answers that came */
	uint32_t arrived;          /* in the round under way: this process and those below */
	struct buf *given;         /* process 0: one a process */
	struct buf bundle;         /* others: parts of those below, and this one's */
	struct buf answer;         /* others */
	/* all processes arrived at the barrier; the thread calls it */
	void (*met)(void *arg, bool due);
	void *met_arg;
	int64_t due_ns; /* process 0: as in comm_barrier_until; 0: never given one */
};

struct net {
	uint32_t process, processes, ranks_each, nodes;
	struct net_process *table;
	struct net_peer *peer; /* process 0: one a process; others: peer[0] alone */
	uint32_t peers;
	struct net_peer *tree; /* with a tree: those below this process, then the one above */
	uint32_t trees;
	/* What the rounds of channels go over: connections of the tree, or `peer` */
	struct net_peer *up, *down; /* up NULL: process 0 */
	uint32_t downs, depth;
	struct fabric *fabric;           /* barriers of ranks go over it; NULL: over the above */
	_Atomic uint64_t round_messages; /* sent and received by this process */
	int control, wake_fd, poll_fd;
	pthread_t thread;
	bool started;
	_Atomic uint32_t quit;
	pthread_mutex_t lock; /* of channels, cause and results */
	struct net_channel channel[NET_CHANNELS];
	bool stopped;
	struct net_stop_body cause;
	_Atomic uint32_t events; /* moves when a cause, a death, a result or the end arrives */
	struct buf *result;      /* process 0 */
	bool *has_result;
	int end_code;
	_Atomic int has_end;
	int64_t beat_ns, round_ns;
	int64_t told_ns; /* the limit of silence that the parent knows */
	_Atomic int64_t silence_ns;
};

/* The thread is to hear of these connections; before it begins. */
void net_poll_peers(struct net *n);
/* The loop of the thread (net.c); connections are made in net_connect.c. */
void *net_main(void *arg);

/* ---- for collective.c ---- */

/* This process arrived at the barrier of a channel; met() is called when all have. */
int net_arrive(struct net *n, unsigned channel);
/* One thread a process and channel: gives `mine`; process 0 makes the answer of everybody's parts
 * (part[p], in the order of processes), and all get it (or, not for_all, process 0 alone).
 * ERR_CANCELED once the run was stopped or `stop` is set. */
int net_exchange(struct net *n, unsigned channel, const void *mine, size_t bytes,
		 int (*answer)(void *arg, const struct buf *part, struct buf *out), void *arg,
		 bool for_all, struct buf *out, const struct stop_flag *stop);
